//! Random draws of a fault, from what names its occurrence and nothing else: the same seed faults the same logical
//! requests with one connection or a thousand.

use crate::stable::{mix, stable_hash};

/// A stream of draws for one rule and one occurrence of a request.
#[derive(Debug, Clone)]
pub struct Draw {
    state: u64,
}

impl Draw {
    /// The stream of (seed, rule, stable key, attempt).
    pub fn new(seed: u64, rule: &str, key: u64, attempt: u64) -> Draw {
        let rule = stable_hash(seed, rule.as_bytes());
        Draw { state: mix(mix(rule ^ mix(key)).wrapping_add(mix(attempt ^ 0x6a09_e667_f3bc_c908))) }
    }

    /// The next word.
    pub fn word(&mut self) -> u64 {
        // SplitMix64's own step.
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.state)
    }

    /// A number in [0, 1), of 53 bits.
    pub fn unit(&mut self) -> f64 {
        (self.word() >> 11) as f64 / 9_007_199_254_740_992.0
    }

    /// Whether a chance of `p` (0 to 1) hits; 0 never does, 1 always.
    pub fn hits(&mut self, p: f64) -> bool {
        self.unit() < p
    }
}
