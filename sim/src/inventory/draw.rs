//! Random draws that are the same on every machine: integers only, from a ChaCha stream of their own.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// One stream of draws. The arithmetic is written out here, since the distributions of `rand` may change their values
/// between minor versions and the stock of a seed must not (only a new major version may change it).
pub(crate) struct Draw {
    rng: ChaCha8Rng,
}

impl Draw {
    /// The stream numbered `stream` of `seed`; streams are independent, so they can be drawn from in any order.
    pub(crate) fn new(seed: u64, stream: u64) -> Draw {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(stream);
        Draw { rng }
    }

    /// A number of `0..bound`; 0 where `bound` is 0.
    pub(crate) fn below(&mut self, bound: u32) -> u32 {
        // Fixed-point multiplication (Lemire): its bias is below bound / 2^32, far under what a stock could show.
        ((u64::from(self.rng.next_u32()) * u64::from(bound)) >> 32) as u32
    }

    /// A number of `low..=high`.
    pub(crate) fn between(&mut self, low: u32, high: u32) -> u32 {
        low + self.below(high.saturating_sub(low).saturating_add(1))
    }

    /// Whether something that happens `percent` times out of a hundred happens now.
    pub(crate) fn percent(&mut self, percent: u32) -> bool {
        self.below(100) < percent
    }

    /// One of `items`; `None` only where there are none.
    pub(crate) fn pick<'a, T>(&mut self, items: &'a [T]) -> Option<&'a T> {
        items.get(self.below(items.len() as u32) as usize)
    }

    /// The index of one of the weights that `cumulative` adds up (its last member is their sum).
    pub(crate) fn weighted(&mut self, cumulative: &[u32]) -> usize {
        let point = self.below(cumulative.last().copied().unwrap_or(0));
        cumulative.partition_point(|&sum| sum <= point).min(cumulative.len().saturating_sub(1))
    }

    /// The generator itself, for `fake`.
    pub(crate) fn rng(&mut self) -> &mut ChaCha8Rng {
        &mut self.rng
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_differ_and_repeat() {
        let run = |seed, stream| {
            let mut draw = Draw::new(seed, stream);
            (0..8).map(|_| draw.below(1_000_000)).collect::<Vec<_>>()
        };
        assert_eq!(run(42, 7), run(42, 7));
        assert_ne!(run(42, 7), run(42, 8));
        assert_ne!(run(42, 7), run(43, 7));
    }

    #[test]
    fn draws_stay_in_bounds() {
        let mut draw = Draw::new(1, 1);
        for _ in 0..2_000 {
            assert!((5..=9).contains(&draw.between(5, 9)));
            assert!(draw.weighted(&[1, 1, 4]) != 1, "a weight of nothing is never drawn");
        }
        assert_eq!(draw.below(0), 0);
        assert!(draw.pick::<u8>(&[]).is_none());
    }
}
