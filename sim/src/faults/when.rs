//! When a rule applies: what it asks of a request, and how what it counts depends on the order of arrival.

use super::decide::Facts;
use super::effect::{Apply, Class, EffectInfo};
use super::sequence::Per;
use crate::protocol::{Binding, Bindings, Skill};

impl Class {
    /// The class of counting over this.
    pub fn of_counting(per: Per) -> Class {
        match per {
            Per::Key | Per::Conversation => Class::PerKey,
            // Several conversations of one client, dealer or vehicle run at once, in any order.
            Per::All | Per::Client | Per::Dealer | Per::Vin => Class::Arrival,
        }
    }
}

/// What is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target {
    /// A call of a skill.
    Skill(Skill),
    /// The agent card or another discovery document.
    Discovery,
}

impl Target {
    /// The words of `when: { skill }`.
    pub const WORDS: [&'static str; 6] = [
        "dealer.information",
        "inventory.facets",
        "inventory.search",
        "inventory.vehicle",
        "lead.submit",
        "discovery",
    ];

    /// What a word stands for.
    pub fn from_word(word: &str) -> Option<Target> {
        if word == "discovery" { Some(Target::Discovery) } else { Skill::from_id(word).map(Target::Skill) }
    }

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Target::Skill(skill) => skill.id(),
            Target::Discovery => "discovery",
        }
    }
}

/// Bindings that a rule can name.
pub const BINDINGS: [&str; 3] = ["a2a", "mcp", "pap"];

/// The conditions of a rule: all given apply. A list is met by any of its members, an empty one by all.
#[derive(Debug, Clone, PartialEq)]
pub struct When {
    /// Dealer ids.
    pub dealer: Vec<String>,
    /// Skills or discovery.
    pub skill: Vec<Target>,
    /// Bindings.
    pub binding: Vec<String>,
    /// Context ids.
    pub conversation: Vec<String>,
    /// Clients.
    pub client: Vec<String>,
    /// VINs, in either case.
    pub vin: Vec<String>,
    /// Every nth occurrence.
    pub nth: Option<u64>,
    /// The first so many occurrences.
    pub first: Option<u64>,
    /// What `nth` and `first` count over.
    pub per: Per,
    /// How often it fires at most, over all.
    pub count: Option<u64>,
    /// Traffic time from the plan taking force until the rule does, in nanoseconds.
    pub after_ns: u64,
    /// Traffic time that the rule is in force from then on.
    pub for_ns: Option<u64>,
}

impl Default for When {
    fn default() -> When {
        When {
            dealer: Vec::new(),
            skill: Vec::new(),
            binding: Vec::new(),
            conversation: Vec::new(),
            client: Vec::new(),
            vin: Vec::new(),
            nth: None,
            first: None,
            per: Per::All,
            count: None,
            after_ns: 0,
            for_ns: None,
        }
    }
}

impl When {
    /// Whether occurrences have to be counted.
    pub fn counts(&self) -> bool {
        self.nth.is_some() || self.first.is_some()
    }

    /// Whether a request meets the conditions that need no counting, `age_ns` after the rule took force.
    pub fn matches(&self, facts: &Facts<'_>, age_ns: u64) -> bool {
        let target = match facts.skill {
            Some(skill) => Some(Target::Skill(skill)),
            None => facts.path.map(|_| Target::Discovery),
        };
        self.in_window(age_ns)
            && (self.skill.is_empty() || target.is_some_and(|target| self.skill.contains(&target)))
            && any(&self.dealer, Some(facts.dealer))
            && any(&self.binding, Some(facts.binding.word()))
            && any(&self.client, Some(facts.client))
            && any(&self.conversation, facts.conversation)
            && (self.vin.is_empty()
                || facts.vin.is_some_and(|vin| self.vin.iter().any(|own| own.eq_ignore_ascii_case(vin))))
    }

    fn in_window(&self, age_ns: u64) -> bool {
        age_ns >= self.after_ns && self.for_ns.is_none_or(|length| age_ns - self.after_ns < length)
    }

    /// Whether the occurrence, counted from 0, is one of those asked for.
    pub fn meets_count(&self, occurrence: u64) -> bool {
        self.nth.is_none_or(|nth| (occurrence + 1).is_multiple_of(nth))
            && self.first.is_none_or(|first| occurrence < first)
    }

    /// The class of these conditions.
    pub fn class(&self) -> Class {
        let counting = if self.counts() { Class::of_counting(self.per) } else { Class::Independent };
        let timed = self.count.is_some() || self.after_ns > 0 || self.for_ns.is_some();
        counting.max(if timed { Class::Arrival } else { Class::Independent })
    }
}

fn any(wanted: &[String], value: Option<&str>) -> bool {
    wanted.is_empty() || value.is_some_and(|value| wanted.iter().any(|own| own == value))
}

/// Documents are told of as A2A's, whose card is the first of them.
const DOCUMENTS: Bindings = Bindings::of(&[Binding::A2a]);

/// What an effect can touch: what rewrites the card means nothing to a call, and the other way round.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Reach {
    /// Calls of the dealer endpoint, through these interfaces.
    pub calls: Bindings,
    /// Discovery: the agent card and other documents (of A2A), MCP's lists.
    pub discovery: Bindings,
    /// Connections, before any request is read from them.
    pub connections: bool,
}

impl Reach {
    /// What a rule's effect reaches. What is of discovery leaves calls alone, however it is applied.
    pub fn of(info: &EffectInfo) -> Reach {
        let (calls, discovery) = match info.apply {
            _ if info.family == "discovery" => (Bindings::NONE, DOCUMENTS),
            Apply::Accept(_) => (Bindings::NONE, Bindings::NONE),
            Apply::RefineCard(_) => (Bindings::NONE, DOCUMENTS),
            Apply::RefineTools(_) => (Bindings::NONE, info.bindings),
            Apply::Refuse(_)
            | Apply::RefuseHttp(_)
            | Apply::Behave(_)
            | Apply::Refine(_)
            | Apply::RefinePayload(_)
            | Apply::RefineHttp(_) => (info.bindings, Bindings::NONE),
            Apply::Http(_) | Apply::Deliver(_) | Apply::Lose(_) | Apply::Delay(_) => {
                (info.bindings, info.bindings)
            }
        };
        Reach { calls, discovery, connections: calls.is_empty() && discovery.is_empty() }
    }

    /// What the effect reaches when the request itself asks for it: its connection was accepted before.
    pub fn of_own(info: &EffectInfo) -> Reach {
        match info.apply {
            Apply::Accept(_) => Reach { calls: Bindings::ALL, discovery: Bindings::ALL, connections: false },
            _ => Reach::of(info),
        }
    }

    /// What either reaches.
    pub fn or(self, other: Reach) -> Reach {
        Reach {
            calls: self.calls.or(other.calls),
            discovery: self.discovery.or(other.discovery),
            connections: self.connections | other.connections,
        }
    }

    /// Whether it reaches this.
    pub fn covers(self, facts: &Facts<'_>) -> bool {
        match (facts.accepting, facts.path) {
            (true, _) => self.connections,
            (false, Some(_)) => self.discovery.has(facts.binding),
            (false, None) => self.calls.has(facts.binding),
        }
    }
}
