//! What each of several dealers may keep of what one alone may.

/// How many dealers may keep in full what is bounded for one; more of them share what these would have.
const IN_FULL: usize = 8;

/// A dealer's share of the bounds of a process: so many dealers divide them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share(u16);

impl Share {
    /// The share of one of so many dealers.
    pub fn among(dealers: u16) -> Share {
        Share(dealers)
    }

    /// What is left of a bound.
    pub fn of(self, bound: usize) -> usize {
        // The division last, so that nothing is rounded away twice; no bound is near the end of the range.
        bound.min((bound.saturating_mul(IN_FULL) / usize::from(self.0.max(1))).max(1))
    }
}

impl Default for Share {
    /// That of a dealer alone: all.
    fn default() -> Share {
        Share(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_keep_all_and_many_share() {
        for dealers in [0, 1, 8] {
            assert_eq!(Share::among(dealers).of(65_536), 65_536);
        }
        assert_eq!(Share::among(16).of(65_536), 32_768);
        assert_eq!(Share::among(1000).of(100_000), 800);
        assert_eq!(Share::among(1000).of(3), 1, "something can always be kept");
    }
}
