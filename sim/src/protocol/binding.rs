//! The interfaces through which one dealer is reached: the same skills, payloads and errors in three envelopes.

use serde::{Serialize, Serializer};

/// An interface of a dealer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Binding {
    /// A2A 1.0 JSON-RPC: the payload is the first part of a Message.
    A2a,
    /// MCP: the payload is the arguments of a tool.
    Mcp,
    /// PAP: the payload is the body of a POST.
    Pap,
}

impl Binding {
    /// All of them.
    pub const ALL: [Binding; 3] = [Binding::A2a, Binding::Mcp, Binding::Pap];

    /// The word for it in plans, the journal and reports.
    pub fn word(self) -> &'static str {
        match self {
            Binding::A2a => "a2a",
            Binding::Mcp => "mcp",
            Binding::Pap => "pap",
        }
    }

    /// The binding with this word.
    pub fn from_word(word: &str) -> Option<Binding> {
        Binding::ALL.into_iter().find(|binding| binding.word() == word)
    }
}

impl Serialize for Binding {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}

/// A set of bindings.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Bindings(u8);

impl Bindings {
    /// None of them.
    pub const NONE: Bindings = Bindings::of(&[]);
    /// All of them.
    pub const ALL: Bindings = Bindings::of(&Binding::ALL);

    /// These.
    pub const fn of(bindings: &[Binding]) -> Bindings {
        let mut set = 0;
        let mut at = 0;
        // No iterator runs in a constant.
        while at < bindings.len() {
            set |= 1 << bindings[at] as u8;
            at += 1;
        }
        Bindings(set)
    }

    /// Whether it is one of them.
    pub const fn has(self, binding: Binding) -> bool {
        self.0 & (1 << binding as u8) != 0
    }

    /// Those in either set.
    #[must_use]
    pub const fn or(self, other: Bindings) -> Bindings {
        Bindings(self.0 | other.0)
    }

    /// Each of them.
    pub fn iter(self) -> impl Iterator<Item = Binding> {
        Binding::ALL.into_iter().filter(move |binding| self.has(*binding))
    }

    /// Whether there is none.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

impl std::fmt::Debug for Bindings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.iter()).finish()
    }
}

impl std::fmt::Display for Bindings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let words: Vec<_> = self.iter().map(Binding::word).collect();
        f.write_str(&words.join(","))
    }
}

impl std::str::FromStr for Bindings {
    type Err = BindingsError;

    fn from_str(list: &str) -> Result<Bindings, BindingsError> {
        let mut bindings = Bindings::NONE;
        for word in list.split(',').map(str::trim) {
            let binding = Binding::from_word(word).ok_or_else(|| BindingsError::Unknown(word.to_owned()))?;
            bindings = bindings.or(Bindings::of(&[binding]));
        }
        if bindings.has(Binding::A2a) { Ok(bindings) } else { Err(BindingsError::WithoutA2a) }
    }
}

/// Why a list of bindings is none that a dealer can have.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BindingsError {
    /// One of them does not exist.
    #[error("unknown interface {0:?}; the interfaces are a2a, mcp and pap")]
    Unknown(String),
    /// The agent card is A2A's.
    #[error("a2a cannot be left out: the agent card is how the other interfaces are found")]
    WithoutA2a,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_set_holds_what_was_put_in() {
        let some = Bindings::of(&[Binding::Pap, Binding::A2a]);
        assert!(some.iter().eq([Binding::A2a, Binding::Pap]));
        assert!(!some.has(Binding::Mcp) && Bindings::ALL.has(Binding::Mcp) && Bindings::NONE.is_empty());
        assert_eq!(some.or(Bindings::of(&[Binding::Mcp])), Bindings::ALL);
        for binding in Binding::ALL {
            assert_eq!(Binding::from_word(binding.word()), Some(binding));
        }
    }

    #[test]
    fn a_list_is_read_and_shown() {
        assert_eq!("pap, a2a".parse::<Bindings>().unwrap().to_string(), "a2a,pap");
        assert_eq!("a2a,mcp,pap".parse(), Ok(Bindings::ALL));
        assert_eq!("mcp".parse::<Bindings>(), Err(BindingsError::WithoutA2a));
        for unknown in ["", "a2a,", "a2a,grpc"] {
            assert!(matches!(unknown.parse::<Bindings>(), Err(BindingsError::Unknown(_))), "{unknown:?}");
        }
    }
}
