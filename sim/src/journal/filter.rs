//! Which entries a reader wants: the query of `GET /journal` and `/journal/stream`.

use super::bounded;
use super::ring::View;
use crate::protocol::{Binding, Skill};

/// Entries of a page unless the reader says.
pub const DEFAULT_LIMIT: usize = 100;
/// Entries of a page at most.
pub const MAX_LIMIT: usize = 1000;

/// What a reader wants; every member that is set must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Filter {
    /// Entries numbered above this.
    pub after: u64,
    /// At most this many, 1 to [`MAX_LIMIT`].
    pub limit: usize,
    /// Of this dealer.
    pub dealer: Option<String>,
    /// Through this interface.
    pub binding: Option<Binding>,
    /// Of this skill.
    pub skill: Option<Skill>,
    /// Of this conversation.
    pub conversation: Option<String>,
    /// Of this client, written as entries show it.
    pub client: Option<String>,
    /// Touched by a fault with this trigger or effect; an effect by its name, or with its arguments.
    pub fault: Option<String>,
}

impl Default for Filter {
    fn default() -> Filter {
        Filter {
            after: 0,
            limit: DEFAULT_LIMIT,
            dealer: None,
            binding: None,
            skill: None,
            conversation: None,
            client: None,
            fault: None,
        }
    }
}

/// A query that asks for what there is not.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", faults.join("; "))]
pub struct BadFilter {
    /// Every fault: the parameter, what is wrong with it and what it takes.
    pub faults: Vec<String>,
}

impl Filter {
    /// The filter that a URL's query asks for: `after=17&limit=50&binding=mcp&skill=lead.submit&conversation=…&client=…&fault=…`.
    ///
    /// # Errors
    /// Every parameter that is unknown or has no such value.
    pub fn parse(query: &str) -> Result<Filter, BadFilter> {
        let mut filter = Filter::default();
        let mut faults = Vec::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            if let Err(fault) = filter.set(&decoded(name), decoded(value)) {
                faults.push(fault);
            }
        }
        if faults.is_empty() { Ok(filter) } else { Err(BadFilter { faults }) }
    }

    fn set(&mut self, name: &str, value: String) -> Result<(), String> {
        match name {
            "after" => {
                self.after = value
                    .parse()
                    .map_err(|_| format!("after={value:?} is no entry's number; use one, or 0"))?;
            }
            "limit" => {
                self.limit = value
                    .parse()
                    .ok()
                    .filter(|limit| (1..=MAX_LIMIT).contains(limit))
                    .ok_or_else(|| format!("limit={value:?} is not within 1 to {MAX_LIMIT}"))?;
            }
            "binding" => self.binding = Some(binding(&value).map_err(|fault| format!("binding={fault}"))?),
            "skill" => self.skill = Some(skill(&value).map_err(|fault| format!("skill={fault}"))?),
            "conversation" => self.conversation = Some(value),
            "client" => self.client = Some(value),
            "fault" => self.fault = Some(value),
            _ => {
                return Err(format!(
                    "{name:?} is no parameter; there are after, limit, binding, skill, conversation, client, fault"
                ));
            }
        }
        Ok(())
    }

    pub(super) fn admits(&self, view: View<'_>) -> bool {
        let is = |wanted: &Option<String>, got: &[u8]| {
            wanted.as_ref().is_none_or(|wanted| bounded(wanted.as_bytes()) == got)
        };
        self.binding.is_none_or(|binding| view.record.binding == Some(binding))
            && self.skill.is_none_or(|skill| view.record.skill == Some(skill))
            && is(&self.dealer, view.dealer())
            && is(&self.conversation, view.conversation())
            && self.client.as_ref().is_none_or(|client| *client == view.client())
            && self.fault.as_ref().is_none_or(|wanted| {
                view.faults().any(|[trigger, effect, _]| names_fault(wanted.as_bytes(), trigger, effect))
            })
    }
}

/// The binding with this word.
pub(super) fn binding(word: &str) -> Result<Binding, String> {
    Binding::from_word(word).ok_or_else(|| {
        format!("{word:?} is no binding; there are {}", Binding::ALL.map(Binding::word).join(", "))
    })
}

/// The skill with this id.
pub(super) fn skill(id: &str) -> Result<Skill, String> {
    Skill::from_id(id)
        .ok_or_else(|| format!("{id:?} is no skill; there are {}", Skill::ALL.map(Skill::id).join(", ")))
}

/// Whether a fault is meant by a text: its trigger, its effect's name, or its effect with the arguments.
pub(super) fn names_fault(wanted: &[u8], trigger: &[u8], effect: &[u8]) -> bool {
    let name = effect.split(|byte| *byte == b'(').next().unwrap_or_default();
    wanted == trigger || wanted == effect || wanted == name
}

/// A query's text without its escapes: `%XX`, and `+` for a space. An escape that is none stands for itself.
pub(crate) fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(byte) = bytes.get(at) {
        let escape = (*byte == b'%')
            .then(|| bytes.get(at + 1..at + 3))
            .flatten()
            .filter(|digits| digits.iter().all(u8::is_ascii_hexdigit))
            .and_then(|digits| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok());
        out.push(escape.unwrap_or(if *byte == b'+' { b' ' } else { *byte }));
        at += if escape.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_becomes_a_filter() {
        let filter = Filter::parse(
            "after=17&limit=5&skill=lead.submit&binding=pap&client=127.0.0.1+a%2Fb&fault=%C3%A9%2",
        )
        .unwrap();
        assert_eq!((filter.after, filter.limit, filter.skill), (17, 5, Some(Skill::LeadSubmit)));
        assert_eq!(filter.binding, Some(Binding::Pap));
        assert_eq!(filter.client.as_deref(), Some("127.0.0.1 a/b"));
        assert_eq!(filter.fault.as_deref(), Some("é%2"));
        assert_eq!(Filter::parse("").unwrap(), Filter::default());
    }

    #[test]
    fn every_fault_of_a_query_is_named() {
        let error = Filter::parse("after=-1&limit=0&skill=lead&binding=soap&color=red").unwrap_err();
        let names: Vec<_> = error.faults.iter().map(|fault| &fault[..6]).collect();
        assert_eq!(names, ["after=", "limit=", "skill=", "bindin", "\"color"]);
    }

    #[test]
    fn a_fault_is_named_by_trigger_or_effect() {
        for wanted in ["throttle", "rate_limited", "rate_limited(retry_after=2s)"] {
            assert!(names_fault(wanted.as_bytes(), b"throttle", b"rate_limited(retry_after=2s)"));
        }
        assert!(!names_fault(b"rate", b"throttle", b"rate_limited(retry_after=2s)"));
    }
}
