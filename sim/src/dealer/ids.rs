//! Identifiers: 128 bits in Crockford base 32, drawn from what they are asked for, so that a frozen clock and a seed
//! repeat them.

use crate::stable::mix;

const ALPHABET: &[u8; 32] = b"0123456789ABCDEFGHJKMNPQRSTVWXYZ";
/// 26 characters of five bits hold 128 bits.
const LENGTH: usize = 26;

/// A source of identifiers for one request.
#[derive(Debug, Clone)]
pub struct Ids {
    state: u64,
}

impl Ids {
    /// The source of the `attempt`-th request with this key, under this seed.
    pub fn new(seed: u64, key: u64, attempt: u64) -> Ids {
        Ids { state: mix(mix(mix(seed).wrapping_add(key)).wrapping_add(attempt)) }
    }

    fn next(&mut self) -> u64 {
        // SplitMix64's own step.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// The next identifier, behind a prefix.
    pub fn make(&mut self, prefix: &str) -> Id {
        let mut bits = (u128::from(self.next()) << 64) | u128::from(self.next());
        let mut id = Id { bytes: [0; 32], len: prefix.len() + LENGTH };
        id.bytes[..prefix.len()].copy_from_slice(prefix.as_bytes());
        for byte in id.bytes[prefix.len()..id.len].iter_mut().rev() {
            *byte = ALPHABET[(bits & 31) as usize];
            bits >>= 5;
        }
        id
    }
}

/// An identifier, such as `lead_3X…`; held in place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Id {
    bytes: [u8; 32],
    len: usize,
}

impl Id {
    /// The identifier of a text that [`Ids::make`] made.
    pub fn from_text(text: &str) -> Option<Id> {
        let mut id = Id { bytes: [0; 32], len: text.len() };
        id.bytes.get_mut(..text.len())?.copy_from_slice(text.as_bytes());
        Some(id)
    }

    /// Its text.
    pub fn as_str(&self) -> &str {
        // The alphabet and the prefixes are ASCII.
        std::str::from_utf8(&self.bytes[..self.len]).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_repeat_for_their_key_and_differ_otherwise() {
        let make = |seed, key, attempt| Ids::new(seed, key, attempt).make("ctx_").as_str().to_owned();
        assert_eq!(make(42, 7, 0), make(42, 7, 0));
        assert_eq!(make(42, 7, 0).len(), 30);
        let all: std::collections::HashSet<_> =
            [(42, 7, 0), (43, 7, 0), (42, 8, 0), (42, 7, 1)].map(|(s, k, a)| make(s, k, a)).into();
        assert_eq!(all.len(), 4);
        let mut ids = Ids::new(1, 2, 3);
        let id = ids.make("lead_");
        assert_ne!(ids.make(""), ids.make(""));
        assert_eq!(Id::from_text(id.as_str()), Some(id));
        assert_eq!(Id::from_text(&"x".repeat(33)), None);
    }
}
