//! Which outcomes of a step are no error.

use std::fmt;

use dealer_sim::protocol::error::AapCode;

use super::compile::Compiler;
use super::fault::{Fault, quoted};
use super::members::text_of;
use super::yaml::{Kind, Node};

/// Classes of outcomes that have members, such as `aap.RATE_LIMITED`; `ok` stands alone.
const CLASSES: [&str; 8] = ["aap", "a2a", "rpc", "http", "transport", "timeout", "check", "protocol"];

const SYNTAX: &str = "ok, aap.VEHICLE_UNAVAILABLE, rpc.-32602, a2a.-32009, http.503, transport.reset, timeout.first_byte, \
                      check.<name>, protocol.context_id; a class as a whole: aap.*";

/// One pattern of `expect`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Pattern {
    Exactly(String),
    /// `class.*`, kept with its dot.
    Class(String),
}

impl Pattern {
    /// The `expect` of a step that has none.
    pub(crate) fn ok() -> Pattern {
        Pattern::Exactly("ok".to_owned())
    }

    pub(crate) fn matches(&self, outcome: &str) -> bool {
        match self {
            Pattern::Exactly(name) => name == outcome,
            Pattern::Class(prefix) => outcome.starts_with(prefix.as_str()),
        }
    }

    /// Reads a pattern; `checks` are the names of the step's checks. The fault has no place yet: `with` gives it one.
    pub(crate) fn parse(
        text: &str,
        checks: &[&str],
        with: impl Fn(String) -> Fault,
    ) -> Result<Pattern, Fault> {
        if text == "ok" {
            return Ok(Pattern::ok());
        }
        let Some((class, member)) = text.split_once('.').filter(|(class, _)| CLASSES.contains(class)) else {
            let class = text.split('.').next().unwrap_or(text);
            let words = CLASSES.iter().copied().chain(["ok"]);
            return Err(with(format!("{} is no outcome", quoted(text))).near(class, words).allowed(SYNTAX));
        };
        if member == "*" {
            return Ok(Pattern::Class(format!("{class}.")));
        }
        let number = member.parse::<i64>().ok();
        let valid = match class {
            "rpc" | "a2a" => number.is_some(),
            "http" => number.is_some_and(|status| (100..=599).contains(&status)),
            // One that AAP does not have is taken for a slip; `aap.*` takes any.
            "aap" => AapCode::from_name(member).is_some(),
            "check" => checks.contains(&member),
            _ => {
                !member.is_empty()
                    && member.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_')
            }
        };
        if valid {
            return Ok(Pattern::Exactly(text.to_owned()));
        }
        Err(match class {
            "aap" => with(format!("AAP has no error code {}", quoted(member)))
                .one_of(member, AapCode::ALL.map(AapCode::name)),
            "check" => with(format!("this step has no check {}", quoted(member)))
                .one_of(member, checks.iter().copied()),
            "http" => with(format!("{} is no HTTP status", quoted(member))).allowed("100 to 599, or http.*"),
            "rpc" | "a2a" => {
                with(format!("{} is no error code", quoted(member))).allowed("an integer, as in rpc.-32602")
            }
            _ => with(format!("{} is no outcome", quoted(text))).allowed(SYNTAX),
        })
    }
}

impl Compiler<'_, '_> {
    /// One outcome or a list of them, the value of `what`. `checks` are the names of the step's checks.
    pub(super) fn patterns(&mut self, node: &Node, what: &str, checks: &[&str]) -> Option<Vec<Pattern>> {
        let entries = match &node.kind {
            Kind::List(items) => items.as_slice(),
            _ => std::slice::from_ref(node),
        };
        if entries.is_empty() {
            let what = format!("{what} names at least one outcome");
            self.reporter.add(Fault::new(node.at, what).allowed("[ok]"));
        }
        let patterns: Vec<_> = entries
            .iter()
            .map(|entry| {
                let with = |what: String| Fault::new(entry.at, what);
                let text = text_of(entry, "an outcome", self.reporter)?;
                Pattern::parse(text, checks, with).map_err(|fault| self.reporter.add(fault)).ok()
            })
            .collect();
        patterns.into_iter().collect()
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Pattern::Exactly(name) => f.write_str(name),
            Pattern::Class(prefix) => write!(f, "{prefix}*"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::fault::Pos;
    use super::*;

    fn parse(text: &str) -> Result<Pattern, String> {
        let with = |what: String| Fault::new(Pos::START, what);
        Pattern::parse(text, &["total"], with).map_err(|fault| fault.to_string())
    }

    #[test]
    fn outcomes_match_by_name_or_class() {
        assert!(parse("ok").unwrap().matches("ok"));
        assert!(parse("aap.RATE_LIMITED").unwrap().matches("aap.RATE_LIMITED"));
        assert!(!parse("aap.RATE_LIMITED").unwrap().matches("aap.INTERNAL_ERROR"));
        assert!(parse("a2a.*").unwrap().matches("a2a.-32009"));
        assert!(!parse("a2a.*").unwrap().matches("aap.RATE_LIMITED"));
        assert!(parse("check.total").unwrap().matches("check.total"));
        assert!(
            parse("timeout.first_byte").is_ok() && parse("http.503").is_ok() && parse("rpc.-32602").is_ok()
        );
    }

    #[test]
    fn wrong_outcomes_are_refused_with_a_hint() {
        assert!(parse("aap.VEHICLE_UNAVAILABEL").unwrap_err().contains("did you mean `VEHICLE_UNAVAILABLE`"));
        assert!(parse("check.totl").unwrap_err().contains("did you mean `total`"));
        assert!(parse("aapp.X").unwrap_err().contains("did you mean `aap`"));
        for wrong in ["", "ok.x", "http.99", "rpc.x", "transport.", "transport.RESET", "*", "aap."] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
