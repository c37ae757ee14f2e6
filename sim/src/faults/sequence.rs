//! Sequences: one effect after another, and over what occurrences are counted.

use std::sync::Arc;

use super::effect::Effect;

/// Over what `nth`, `first` and a sequence count.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Per {
    /// All that the rule matches: depends on the order of arrival.
    All,
    /// The same logical request (its stable key).
    Key,
    /// The conversation; calls without one count together for their client.
    Conversation,
    /// The client.
    Client,
    /// The dealer.
    Dealer,
    /// The vehicle asked for; calls that name none count together.
    Vin,
}

impl Per {
    /// The words, in the order of the variants.
    pub const WORDS: [&'static str; 6] = ["all", "key", "conversation", "client", "dealer", "vin"];
    const ALL: [Per; 6] = [Per::All, Per::Key, Per::Conversation, Per::Client, Per::Dealer, Per::Vin];

    /// The word for it.
    pub fn word(self) -> &'static str {
        Per::WORDS[self as usize]
    }

    /// What a word stands for.
    pub fn from_word(word: &str) -> Option<Per> {
        Per::ALL.into_iter().find(|per| per.word() == word)
    }
}

/// One element of a sequence.
#[derive(Debug, Clone)]
pub struct Element {
    /// What happens; `None` is `ok`.
    pub effect: Option<Arc<Effect>>,
    /// How many times in a row.
    pub times: u64,
}

/// One effect after another.
#[derive(Debug, Clone)]
pub struct Sequence {
    per: Per,
    elements: Vec<Element>,
    repeats: bool,
}

impl Sequence {
    /// A sequence whose last element is for ever if it `repeats`; else nothing more happens after it.
    pub fn new(per: Per, elements: Vec<Element>, repeats: bool) -> Sequence {
        Sequence { per, elements, repeats }
    }

    /// Over what it counts.
    pub fn per(&self) -> Per {
        self.per
    }

    /// Its effects.
    pub fn effects(&self) -> impl Iterator<Item = &Arc<Effect>> {
        self.elements.iter().filter_map(|element| element.effect.as_ref())
    }

    /// What happens at an occurrence, counted from 0.
    pub fn at(&self, occurrence: u64) -> Option<&Arc<Effect>> {
        let mut left = occurrence;
        for element in &self.elements {
            match left.checked_sub(element.times) {
                None => return element.effect.as_ref(),
                Some(rest) => left = rest,
            }
        }
        self.elements.last().filter(|_| self.repeats)?.effect.as_ref()
    }
}

/// As it would be written.
impl std::fmt::Display for Sequence {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "sequence(per={}, [", self.per.word())?;
        for (index, element) in self.elements.iter().enumerate() {
            f.write_str(if index == 0 { "" } else { ", " })?;
            match &element.effect {
                Some(effect) => effect.fmt(f)?,
                None => f.write_str("ok")?,
            }
            if element.times > 1 {
                write!(f, "*{}", element.times)?;
            }
        }
        f.write_str(if self.repeats { "...])" } else { "])" })
    }
}
