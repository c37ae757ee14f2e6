//! `retry`: whether a request that went wrong is sent again, and after which wait. Pure: an attempt in, a wait out.

use std::time::Duration;

use super::compile::Compiler;
use super::draw::Draws;
use super::expect::Pattern;
use super::expr::pause_of_value;
use super::fault::{Fault, quoted};
use super::members::{Members, integer_of, text_of};
use super::yaml::{Kind, Node};

/// Attempts after the first.
const MAX_RETRIES: u64 = 100;
/// Waits that one step lists.
const MAX_DELAYS: usize = 100;
/// The first own wait, and the longest, unless `delays` says others.
const FIRST: Duration = Duration::from_millis(200);
const LONGEST: Duration = Duration::from_secs(30);
const DURATIONS: &str = "a duration (250ms, 30s), or a list of them";

/// Whose waits are kept to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Honour {
    /// The dealer's hint; without one, as [`Honour::Exponential`].
    Server,
    /// The waits of `delays`, the last one over and over.
    Fixed,
    /// Twice as long each time, from the first of `delays` to the second.
    Exponential,
    /// Nothing is sent again.
    None,
}

impl Honour {
    const ALL: [Honour; 4] = [Honour::Server, Honour::Fixed, Honour::Exponential, Honour::None];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Honour::Server => "server",
            Honour::Fixed => "fixed",
            Honour::Exponential => "exponential",
            Honour::None => "none",
        }
    }
}

/// What the dealer said about a request that went wrong.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Word {
    /// Whether it may be sent again, as an AAP error says; `None` where nothing was said.
    pub retryable: Option<bool>,
    /// Not before this has passed: `retry_after_ms` or `retry_after_seconds` of an AAP error, or HTTP's `Retry-After`.
    pub after: Option<Duration>,
}

/// The retries of one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Retry {
    pub(crate) honour: Honour,
    /// Attempts after the first.
    pub(crate) max: u32,
    /// Never empty.
    pub(crate) delays: Vec<Duration>,
    /// The share of a wait that is drawn, in thousandths.
    pub(crate) jitter_permille: u32,
    /// Whether each attempt at a lead has an idempotency key of its own.
    pub(crate) fresh_key: bool,
    /// The outcomes that are tried again, instead of those that the dealer's word or their kind makes so.
    pub(crate) on: Option<Vec<Pattern>>,
}

impl Retry {
    /// How long to wait before the next attempt, after attempt number `attempt` (from 0) ended with the outcome `label`;
    /// `None` if there is none.
    pub(crate) fn wait(&self, attempt: u32, label: &str, word: Word, draws: &mut Draws) -> Option<Duration> {
        let again = match &self.on {
            Some(patterns) => patterns.iter().any(|pattern| pattern.matches(label)),
            None => is_transient(label, word),
        };
        if !again || attempt >= self.max || self.honour == Honour::None {
            return None;
        }
        if let (Honour::Server, Some(hint)) = (self.honour, word.after) {
            // Never before the hint: whoever is early counts against the limit again.
            return Some(hint + self.drawn(hint, draws));
        }
        let own = self.own_wait(attempt);
        // Spread downwards, so that the longest wait stays the longest.
        Some(own.saturating_sub(self.drawn(own, draws)))
    }

    fn own_wait(&self, attempt: u32) -> Duration {
        let first = self.delays.first().copied().unwrap_or(FIRST);
        match self.honour {
            Honour::Fixed => {
                let last = self.delays.last().copied().unwrap_or(first);
                self.delays.get(attempt as usize).copied().unwrap_or(last)
            }
            _ => {
                let longest = self.delays.get(1).copied().unwrap_or(LONGEST.max(first));
                first.saturating_mul(1 << attempt.min(30)).min(longest)
            }
        }
    }

    /// A part of a wait, up to its jitter.
    fn drawn(&self, wait: Duration, draws: &mut Draws) -> Duration {
        let most = wait.saturating_mul(self.jitter_permille) / 1000;
        if most.is_zero() { most } else { draws.duration(Duration::ZERO, most) }
    }
}

/// Whether trying again may help: what the dealer says of an error; else what is over soon as a rule. A lost reply is
/// among it, since whoever repeats the idempotency key may ask again (AAP digest, section f).
fn is_transient(label: &str, word: Word) -> bool {
    match word.retryable {
        Some(retryable) => retryable,
        None => {
            let of_this_machine = matches!(label, "transport.no_ports" | "transport.no_descriptors");
            matches!(label, "http.429" | "http.502" | "http.503" | "http.504")
                || label.starts_with("timeout.")
                || (label.starts_with("transport.") && !of_this_machine)
        }
    }
}

impl Compiler<'_, '_> {
    /// The value of `retry`; `is_lead` tells whether there is an idempotency key to speak of.
    pub(super) fn retry(&mut self, node: &Node, is_lead: bool, checks: &[&str]) -> Option<Retry> {
        let known = ["honour", "max", "delays", "jitter", "idempotency_key", "on"];
        let members = Members::of(node, "`retry`", &known, &[], self.reporter)?;
        let honour = match members.get("honour") {
            None => Some(Honour::Server),
            Some(node) => self.word_of(node, "whose waits are kept to", Honour::ALL.map(|h| (h.name(), h))),
        };
        let max = members
            .get("max")
            .map_or(Some(3), |node| integer_of(node, "`max`", 1, MAX_RETRIES, self.reporter));
        let delays = members.get("delays").map(|node| self.delays(node));
        let jitter = members.get("jitter").map(|node| self.jitter(node));
        let fresh_key = members.get("idempotency_key").map(|node| {
            if !is_lead {
                let fault = Fault::new(node.at, "only a lead has an idempotency key");
                self.reporter.add(fault.allowed("leave it out, or `skill: lead.submit`"));
            }
            self.word_of(node, "what becomes of the key", [("keep", false), ("fresh", true)])
        });
        let on = members.get("on").map(|node| self.patterns(node, "`on`", checks));
        // Whatever is missing from here on was reported.
        let honour = honour?;
        let default_delays = match honour {
            Honour::Fixed => vec![Duration::from_secs(1)],
            _ => vec![FIRST, LONGEST],
        };
        let default_jitter = if honour == Honour::Fixed { 0 } else { 200 };
        Some(Retry {
            honour,
            max: u32::try_from(max?).unwrap_or(u32::MAX),
            delays: delays.unwrap_or(Some(default_delays))?,
            jitter_permille: jitter.unwrap_or(Some(default_jitter))?,
            fresh_key: fresh_key.unwrap_or(Some(false))?,
            on: on.map_or(Some(None), |patterns| patterns.map(Some))?,
        })
    }

    /// One of a few words.
    fn word_of<T: Copy, const N: usize>(
        &mut self,
        node: &Node,
        what: &str,
        words: [(&'static str, T); N],
    ) -> Option<T> {
        let text = text_of(node, what, self.reporter)?;
        let found = words.iter().find(|(word, _)| *word == text).map(|(_, value)| *value);
        if found.is_none() {
            let fault = Fault::new(node.at, format!("{} does not say {what}", quoted(text)));
            self.reporter.add(fault.one_of(text, words.map(|(word, _)| word)));
        }
        found
    }

    fn delays(&mut self, node: &Node) -> Option<Vec<Duration>> {
        let nodes = match &node.kind {
            Kind::List(items) => items.as_slice(),
            _ => std::slice::from_ref(node),
        };
        if nodes.is_empty() || nodes.len() > MAX_DELAYS {
            let what = format!("`delays` has 1 to {MAX_DELAYS} waits, this has {}", nodes.len());
            self.reporter.add(Fault::new(node.at, what).allowed(DURATIONS));
            return None;
        }
        let read = |node: &Node| pause_of_value(&serde_json::Value::from(node.text()?));
        let delays: Vec<Option<Duration>> = nodes
            .iter()
            .map(|node| {
                let delay = read(node);
                if delay.is_none() {
                    self.reporter.add(Fault::new(node.at, "this is no wait").allowed(DURATIONS));
                }
                delay
            })
            .collect();
        delays.into_iter().collect()
    }

    /// A share as `20%` or `0.2`, in thousandths.
    fn jitter(&mut self, node: &Node) -> Option<u32> {
        let text = match &node.kind {
            Kind::Scalar(scalar) => scalar.text.as_str(),
            _ => "",
        };
        let share = match text.strip_suffix('%') {
            Some(percent) => percent.parse::<f64>().ok().map(|percent| percent / 100.0),
            None => text.parse::<f64>().ok(),
        };
        let share = share.filter(|share| (0.0..=1.0).contains(share));
        if share.is_none() {
            let what = "`jitter` is the share of a wait that is drawn";
            self.reporter.add(Fault::new(node.at, what).allowed("0% to 100%, or 0 to 1"));
        }
        share.map(|share| (share * 1000.0).round() as u32)
    }
}

#[cfg(test)]
mod tests {
    use super::super::draw::{Key, Purpose};
    use super::*;

    fn draws() -> Draws {
        Key::new(1, 1).draws(Purpose::Retry, 0)
    }

    fn retry(honour: Honour) -> Retry {
        let delays = vec![Duration::from_millis(100), Duration::from_millis(500)];
        Retry { honour, max: 4, delays, jitter_permille: 0, fresh_key: false, on: None }
    }

    fn waits(retry: &Retry, label: &str, word: Word) -> Vec<u128> {
        (0..).map_while(|n| retry.wait(n, label, word, &mut draws())).map(|wait| wait.as_millis()).collect()
    }

    const YES: Word = Word { retryable: Some(true), after: None };

    #[test]
    fn waits_follow_the_policy() {
        let limited = "aap.RATE_LIMITED";
        let hinted = Word { after: Some(Duration::from_secs(2)), ..YES };
        assert_eq!(waits(&retry(Honour::Server), limited, hinted), [2000; 4]);
        assert_eq!(waits(&retry(Honour::Server), limited, YES), [100, 200, 400, 500]);
        assert_eq!(waits(&retry(Honour::Exponential), limited, hinted), [100, 200, 400, 500]);
        assert_eq!(waits(&retry(Honour::Fixed), limited, hinted), [100, 500, 500, 500]);
        assert!(waits(&retry(Honour::None), limited, hinted).is_empty());
    }

    #[test]
    fn the_dealers_word_decides_and_else_the_kind() {
        let server = retry(Honour::Server);
        let no = Word { retryable: Some(false), after: Some(Duration::ZERO) };
        assert!(waits(&server, "aap.RATE_LIMITED", no).is_empty());
        for label in ["http.429", "http.503", "transport.reset", "timeout.first_byte"] {
            assert_eq!(waits(&server, label, Word::default()).len(), 4, "{label}");
        }
        for label in ["ok", "http.400", "aap.INVALID_CONSENT", "protocol.id", "check.x", "transport.no_ports"]
        {
            assert!(waits(&server, label, Word::default()).is_empty(), "{label}");
        }
        let own = Retry { on: Some(vec![Pattern::Exactly("http.400".to_owned())]), ..server };
        assert_eq!(waits(&own, "http.400", Word::default()).len(), 4);
        assert!(waits(&own, "http.503", Word::default()).is_empty());
    }

    #[test]
    fn jitter_never_comes_before_a_hint_nor_after_an_own_wait() {
        let jittered = Retry { jitter_permille: 500, ..retry(Honour::Server) };
        let hinted = Word { after: Some(Duration::from_secs(1)), ..YES };
        let mut draws = draws();
        let mut lengths = std::collections::BTreeSet::new();
        for _ in 0..100 {
            let wait = jittered.wait(0, "x", hinted, &mut draws).unwrap();
            assert!((1000..=1500).contains(&wait.as_millis()), "{wait:?}");
            let own = jittered.wait(0, "x", YES, &mut draws).unwrap();
            assert!((50..=100).contains(&own.as_millis()), "{own:?}");
            lengths.insert(wait);
        }
        assert!(lengths.len() > 50);
    }
}
