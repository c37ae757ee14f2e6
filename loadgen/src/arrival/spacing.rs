//! How far apart sessions are, measured in sessions: the mean is one, the profile stretches it.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

/// The stream of the seed's generator that belongs to arrivals; sessions use the streams of their ordinals.
const ARRIVALS: u64 = u64::MAX;

/// The spacing of sessions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Spacing {
    /// Always one: even gaps at a constant rate. Hides the queues that chance makes.
    Even,
    /// Exponential with mean one: a Poisson process, as independent people arrive.
    Poisson,
    /// So many at once, then none for as long as they would have taken: the mean is one all the same. At least 1.
    Burst(u32),
}

impl Spacing {
    pub(super) fn positions(self, seed: u64) -> Positions {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(ARRIVALS);
        Positions { spacing: self, rng, next: 0, sum: 0.0 }
    }
}

/// More arrivals than this are not drawn beforehand, only to know where they end: that takes a tenth of a second.
const MOST_DRAWN: u64 = 5_000_000;

impl Spacing {
    /// The position at which the gap after so many arrivals ends; `None` if that takes too long to find out.
    pub(super) fn position_after(self, seed: u64, arrivals: u64) -> Option<f64> {
        match self {
            Spacing::Even | Spacing::Burst(_) => Some(arrivals as f64),
            Spacing::Poisson if arrivals > MOST_DRAWN => None,
            Spacing::Poisson => {
                let mut positions = self.positions(seed);
                (0..=arrivals).map(|_| positions.next_position()).last()
            }
        }
    }
}

/// The running sum of the spacing. Even spacing starts at 0, a Poisson process with its first gap.
#[derive(Debug, Clone)]
pub(super) struct Positions {
    spacing: Spacing,
    rng: ChaCha8Rng,
    next: u64,
    sum: f64,
}

impl Positions {
    pub(super) fn next_position(&mut self) -> f64 {
        match self.spacing {
            Spacing::Even => {
                let position = self.next as f64;
                self.next += 1;
                position
            }
            Spacing::Burst(size) => {
                let position = self.next - self.next % u64::from(size.max(1));
                self.next += 1;
                position as f64
            }
            Spacing::Poisson => {
                let uniform: f64 = self.rng.random();
                // By inversion: -ln(1 - u) is exponential with mean 1. libm's logarithm is the same on every machine.
                self.sum -= libm::log(1.0 - uniform);
                self.sum
            }
        }
    }
}
