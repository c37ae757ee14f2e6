//! How much a side's figures would differ if it were measured again: it is put together many times from its own pieces.

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::sample::{Side, Sum};

/// A run is cut into about so many blocks of neighbouring pieces: what lasts for several seconds, such as a busy machine,
/// must not look like many independent events.
const BLOCKS: usize = 6;

/// A side's figures, over and over.
#[derive(Debug, Default)]
pub(super) struct Drawn {
    times: Vec<[Option<f64>; 4]>,
    errors: Vec<Option<f64>>,
    requests: Vec<f64>,
}

/// Puts a side together `count` times. Each side and series has a stream of its own of the seed's generator.
pub(super) fn draw(side: &Side, count: usize, seed: u64, stream: u64) -> Drawn {
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    rng.set_stream(stream);
    let mut drawn = Drawn::default();
    let mut sum = Sum::new(side.values.len());
    for _ in 0..count {
        sum.clear();
        for index in 0..side.runs.len() {
            // With several runs, runs are drawn first: what differs between them is part of the spread.
            let run = if side.runs.len() > 1 { rng.random_range(0..side.runs.len()) } else { index };
            let pieces = &side.runs[run];
            if pieces.is_empty() {
                continue;
            }
            let block = (pieces.len() / BLOCKS).max(1);
            let mut taken = 0;
            while taken < pieces.len() {
                let start = rng.random_range(0..pieces.len());
                let length = block.min(pieces.len() - taken);
                // Past the end it goes on at the begin, so that each piece is as likely as any other.
                (start..start + length).for_each(|at| sum.add(&pieces[at % pieces.len()]));
                taken += length;
            }
        }
        drawn.times.push(sum.times(&side.values));
        drawn.errors.push(sum.errors());
        drawn.requests.push(sum.requests());
    }
    drawn
}

impl Drawn {
    /// The standard deviation of one of the figures of time.
    pub(super) fn spread_of_time(&self, figure: usize) -> f64 {
        deviation(self.times.iter().filter_map(|times| times[figure]))
    }

    pub(super) fn spread_of_errors(&self) -> f64 {
        deviation(self.errors.iter().copied().flatten())
    }

    pub(super) fn spread_of_requests(&self) -> f64 {
        deviation(self.requests.iter().copied())
    }
}

fn deviation(values: impl Iterator<Item = f64> + Clone) -> f64 {
    let count = values.clone().count() as f64;
    if count < 2.0 {
        return 0.0;
    }
    let mean = values.clone().sum::<f64>() / count;
    (values.map(|value| (value - mean) * (value - mean)).sum::<f64>() / (count - 1.0)).sqrt()
}

#[cfg(test)]
mod tests {
    use super::super::sample::Piece;
    use super::*;

    #[test]
    fn the_spread_is_that_of_the_mean_of_independent_pieces() {
        // 600 pieces of one request each, of 0 or 1 ms: the mean has a deviation of 0.5 / sqrt(600).
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let piece = |place| Piece { times: vec![(place, 1)], finished: 1, errors: place as u64, seconds: 1 };
        let pieces: Vec<Piece> = (0..600).map(|_| piece(rng.random_range(0..2))).collect();
        let side = Side { values: vec![0.0, 1.0], runs: vec![pieces], lag: [0.0; 3] };
        let drawn = draw(&side, 500, 42, 0);
        let wanted = 0.5 / 600f64.sqrt();
        for spread in [drawn.spread_of_time(super::super::MEAN), drawn.spread_of_errors()] {
            assert!((spread / wanted - 1.0).abs() < 0.35, "{spread} {wanted}");
        }
        assert_eq!(drawn.spread_of_requests(), 0.0);
        let again = draw(&side, 500, 42, 0);
        assert_eq!(drawn.spread_of_errors().to_bits(), again.spread_of_errors().to_bits());
    }

    #[test]
    fn several_runs_vary_by_run() {
        let run = |place: usize| vec![Piece { times: vec![(place, 100)], ..Piece::default() }; 30];
        let side = Side { values: vec![20.0, 24.0], runs: vec![run(0), run(1)], lag: [0.0; 3] };
        assert!(draw(&side, 500, 42, 0).spread_of_time(super::super::MEAN) > 1.0);
        let side = Side { values: vec![20.0, 24.0], runs: vec![run(0), run(0)], lag: [0.0; 3] };
        assert_eq!(draw(&side, 500, 42, 0).spread_of_time(super::super::MEAN), 0.0);
    }
}
