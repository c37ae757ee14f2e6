//! Random draws of one session. Each variable, step and pause draws from a stream of its own, so that skipping one (a
//! false `when`, `--think 0x`, a `--set`) does not move the others.

use std::time::Duration;

use rand::Rng;
use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::SeedableRng;

/// What a stream is for; with a position it numbers the streams of a session.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Purpose {
    Flow = 0,
    Feeder = 1,
    Variable = 2,
    Item = 3,
    When = 4,
    Retry = 5,
    IdempotencyKey = 6,
}

/// The key of a session's streams.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key([u8; 32]);

impl Key {
    /// ChaCha's key is 256 bits: run seed and ordinal stand in it as they are, behind them a tag of this use.
    pub(crate) fn new(seed: u64, ordinal: u64) -> Key {
        let mut key = *b"................dealer-loadgen/1";
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8..16].copy_from_slice(&ordinal.to_le_bytes());
        Key(key)
    }

    /// The key of what all sessions of this run share.
    pub(crate) fn of_run(mut self) -> Key {
        // No session has this ordinal: a run has fewer.
        self.0[8..16].copy_from_slice(&u64::MAX.to_le_bytes());
        self
    }

    /// The draws for one purpose at one position.
    pub(crate) fn draws(self, purpose: Purpose, position: usize) -> Draws {
        self.draws_in(purpose, position, 0)
    }

    /// The draws for one purpose at one position, in one round of the loops around it. Positions fit 32 bits, purposes 4
    /// and rounds the rest.
    pub(crate) fn draws_in(self, purpose: Purpose, position: usize, round: u32) -> Draws {
        let stream = (u64::from(round) << 36) | ((purpose as u64) << 32) | position as u64;
        Draws { key: self, stream, rng: None }
    }
}

/// One stream, started by its first draw: most steps draw nothing.
#[derive(Debug)]
pub(crate) struct Draws {
    key: Key,
    stream: u64,
    rng: Option<ChaCha8Rng>,
}

impl Draws {
    pub(crate) fn rng(&mut self) -> &mut ChaCha8Rng {
        self.rng.get_or_insert_with(|| {
            let mut rng = ChaCha8Rng::from_seed(self.key.0);
            rng.set_stream(self.stream);
            rng
        })
    }

    /// An integer below `bound` (0 if that is 0), by a widening product: its bias, below 2^-64 times `bound`, is never
    /// seen, and unlike rejection it takes one word, the same on every version of `rand`.
    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        ((u128::from(self.rng().next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// An index into a list of `length` elements, which must not be empty.
    pub(crate) fn index(&mut self, length: usize) -> usize {
        self.below(length as u64) as usize
    }

    /// An integer from `low` to `high`, both included.
    pub(crate) fn integer(&mut self, low: i64, high: i64) -> i64 {
        let (low, high) = (low.min(high), low.max(high));
        let span = high.wrapping_sub(low) as u64;
        let offset = match span.checked_add(1) {
            Some(bound) => self.below(bound),
            None => self.rng().next_u64(),
        };
        low.wrapping_add(offset as i64)
    }

    /// A fraction in the open interval (0, 1): 53 bits, shifted by half a step off zero.
    pub(crate) fn fraction(&mut self) -> f64 {
        ((self.rng().next_u64() >> 11) as f64 + 0.5) / (1_u64 << 53) as f64
    }

    pub(crate) fn duration(&mut self, low: Duration, high: Duration) -> Duration {
        let nanos = |d: Duration| d.as_nanos() as i64;
        Duration::from_nanos(self.integer(nanos(low), nanos(high)).unsigned_abs())
    }
}

/// A lognormal distribution given by its median and its 99th percentile.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) struct Lognormal {
    median: f64,
    sigma: f64,
}

/// The 99th percentile of the standard normal distribution.
const Z99: f64 = 2.326_347_874_040_841;

impl Lognormal {
    /// `None` unless 0 < p50 <= p99. Logarithm and exponential come from `libm`, whose results do not depend on the
    /// machine's C library.
    pub(crate) fn new(p50: f64, p99: f64) -> Option<Lognormal> {
        let valid = p50 > 0.0 && p99 >= p50 && p99.is_finite();
        // ln X is normal with mean ln p50, and p99 = p50 * exp(sigma * Z99).
        valid.then(|| Lognormal { median: p50, sigma: libm::log(p99 / p50) / Z99 })
    }

    pub(crate) fn draw(self, draws: &mut Draws) -> f64 {
        self.median * libm::exp(self.sigma * normal_quantile(draws.fraction()))
    }
}

/// One draw of an exponential distribution with this mean, by inversion. `libm`'s logarithm is the same everywhere.
pub(crate) fn exponential(mean: f64, draws: &mut Draws) -> f64 {
    -mean * libm::log(draws.fraction())
}

/// The inverse of the standard normal distribution (Acklam's rational approximation, relative error below 1.2e-9): one
/// draw per value and, but for the tails, only the four operations that round alike everywhere.
fn normal_quantile(p: f64) -> f64 {
    const A: [f64; 6] = [
        -3.969_683_028_665_376e1,
        2.209_460_984_245_205e2,
        -2.759_285_104_469_687e2,
        1.383_577_518_672_69e2,
        -3.066_479_806_614_716e1,
        2.506_628_277_459_239,
    ];
    const B: [f64; 6] = [
        -5.447_609_879_822_406e1,
        1.615_858_368_580_409e2,
        -1.556_989_798_598_866e2,
        6.680_131_188_771_972e1,
        -1.328_068_155_288_572e1,
        1.0,
    ];
    const C: [f64; 6] = [
        -7.784_894_002_430_293e-3,
        -3.223_964_580_411_365e-1,
        -2.400_758_277_161_838,
        -2.549_732_539_343_734,
        4.374_664_141_464_968,
        2.938_163_982_698_783,
    ];
    const D: [f64; 5] = [
        7.784_695_709_041_462e-3,
        3.224_671_290_700_398e-1,
        2.445_134_137_142_996,
        3.754_408_661_907_416,
        1.0,
    ];
    const TAIL: f64 = 0.02425;
    let horner = |coefficients: &[f64], x: f64| coefficients.iter().fold(0.0, |sum, c| sum * x + c);
    if p < TAIL {
        let q = (-2.0 * libm::log(p)).sqrt();
        horner(&C, q) / horner(&D, q)
    } else if p > 1.0 - TAIL {
        -normal_quantile(1.0 - p)
    } else {
        let q = p - 0.5;
        let r = q * q;
        q * horner(&A, r) / horner(&B, r)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_are_fixed_for_ever() {
        let mut draws = Key::new(42, 7).draws(Purpose::Item, 3);
        let drawn: Vec<u64> = (0..3).map(|_| draws.below(1_000_000)).collect();
        let law = Lognormal::new(200e6, 1500e6).unwrap();
        let micros: Vec<u64> = (0..3).map(|_| (law.draw(&mut draws) / 1e3) as u64).collect();
        assert_eq!(micros, [682_150, 243_089, 60_870], "golden: the same pauses with every optimisation");
        assert_eq!(drawn, [654_729, 10_957, 374_690], "golden: a change breaks every recorded run");
    }

    #[test]
    fn purposes_positions_seeds_and_ordinals_draw_apart() {
        let first = |key: Key, purpose, position| key.draws(purpose, position).rng().next_u64();
        let base = first(Key::new(1, 1), Purpose::Item, 1);
        assert_eq!(base, first(Key::new(1, 1), Purpose::Item, 1));
        for other in [
            first(Key::new(2, 1), Purpose::Item, 1),
            first(Key::new(1, 2), Purpose::Item, 1),
            first(Key::new(1, 1), Purpose::When, 1),
            first(Key::new(1, 1), Purpose::Item, 2),
            Key::new(1, 1).draws_in(Purpose::Item, 1, 1).rng().next_u64(),
        ] {
            assert_ne!(base, other);
        }
    }

    #[test]
    fn integers_reach_both_ends_and_never_leave() {
        let mut draws = Key::new(0, 0).draws(Purpose::Item, 0);
        let drawn: Vec<i64> = (0..1000).map(|_| draws.integer(-1, 2)).collect();
        assert_eq!((drawn.iter().min(), drawn.iter().max()), (Some(&-1), Some(&2)));
        draws.integer(i64::MIN, i64::MAX);
        assert_eq!(draws.integer(5, 5), 5);
    }

    #[test]
    fn a_lognormal_has_the_percentiles_it_was_given() {
        let law = Lognormal::new(200.0, 1500.0).unwrap();
        let mut draws = Key::new(3, 0).draws(Purpose::Item, 0);
        let mut drawn: Vec<f64> = (0..200_000).map(|_| law.draw(&mut draws)).collect();
        drawn.sort_by(f64::total_cmp);
        let near = |got: f64, want: f64| (got / want - 1.0).abs() < 0.02;
        assert!(
            near(drawn[100_000], 200.0) && near(drawn[198_000], 1500.0),
            "{} {}",
            drawn[100_000],
            drawn[198_000]
        );
        assert!(Lognormal::new(0.0, 1.0).is_none() && Lognormal::new(2.0, 1.0).is_none());
    }

    #[test]
    fn the_normal_quantile_is_right_in_the_middle_and_the_tails() {
        for (p, z) in [(0.5, 0.0), (0.975, 1.959_963_985), (0.01, -2.326_347_874), (0.999, 3.090_232_306)] {
            assert!((normal_quantile(p) - z).abs() < 1e-8, "{p}");
        }
    }
}
