//! What is compared: the seconds of each side's runs, as sparse histograms over one common list of values.

use std::collections::BTreeMap;

use crate::record::Latency;
use crate::report::Stored;

/// The figures of a set of times, in this order.
pub(super) const FIGURES: [&str; 4] = ["p50", "p90", "p99", "mean"];
const QUANTILES: [f64; 3] = [0.5, 0.9, 0.99];
/// The place of the mean among the figures.
pub(super) const MEAN: usize = 3;
/// A percentile with fewer requests than this beyond it is not compared.
const MIN_BEYOND: f64 = 10.0;
/// Seconds of a longer run are put together until there are no more pieces than this.
const MAX_PIECES: usize = 120;

/// A piece of a run: a second, or several.
#[derive(Debug, Clone, Default)]
pub(super) struct Piece {
    /// Places in the list of values, and how many requests took so long.
    pub(super) times: Vec<(usize, u64)>,
    pub(super) finished: u64,
    pub(super) errors: u64,
    pub(super) seconds: u64,
}

/// One side of a comparison.
#[derive(Debug, Clone, Default)]
pub(super) struct Side {
    /// In milliseconds, ascending; the same list for both sides.
    pub(super) values: Vec<f64>,
    pub(super) runs: Vec<Vec<Piece>>,
    /// The generator's own lateness at the quantiles, in milliseconds: the most of all runs.
    pub(super) lag: [f64; 3],
}

/// Makes the sides.
pub(super) struct Sample;

impl Sample {
    /// Both sides' times of this tag.
    pub(super) fn of(sides: [&[Stored]; 2], tag: &str) -> [Side; 2] {
        let raw = sides.map(|side| side.iter().map(|run| seconds_of(run, tag)).collect::<Vec<_>>());
        let mut places: BTreeMap<u64, usize> = BTreeMap::new();
        for second in raw.iter().flatten().flatten() {
            places.extend(second.times.iter().map(|&(nanos, _)| (nanos, 0)));
        }
        places.values_mut().enumerate().for_each(|(index, place)| *place = index);
        let values: Vec<f64> = places.keys().map(|&nanos| nanos as f64 / 1e6).collect();
        let lags = sides.map(|side| {
            QUANTILES.map(|q| {
                let lags = side.iter().filter_map(|run| run.result.tally.lag.quantile(q));
                lags.max().unwrap_or(0) as f64 / 1e6
            })
        });
        let mut sides = raw.into_iter().zip(lags).map(|(runs, lag)| Side {
            values: values.clone(),
            runs: runs.into_iter().map(|seconds| pieces(seconds, &places)).collect(),
            lag,
        });
        [sides.next().unwrap_or_default(), sides.next().unwrap_or_default()]
    }
}

/// A second as the folder has it.
struct RawSecond {
    times: Vec<(u64, u64)>,
    finished: u64,
    errors: u64,
}

fn seconds_of(run: &Stored, tag: &str) -> Vec<RawSecond> {
    let mut seconds: BTreeMap<u64, RawSecond> = BTreeMap::new();
    for line in run.lines().iter().filter(|line| line.tag == tag) {
        let mut latency = Latency::new();
        // A line that cannot be decoded was told when the totals were read.
        if line.add_to(&mut latency).is_err() {
            continue;
        }
        let times = latency.histogram().iter_recorded();
        let times = times.map(|value| (value.value_iterated_to(), value.count_at_value())).collect();
        let until = (line.start + line.length).as_secs_f64().round() as u64;
        seconds
            .entry(until)
            .or_insert(RawSecond { times: Vec::new(), finished: 0, errors: 0 })
            .times
            .extend::<Vec<_>>(times);
    }
    for second in &run.seconds {
        if let Some(raw) = seconds.get_mut(&second.until) {
            (raw.finished, raw.errors) = (second.finished, second.errors);
        }
    }
    seconds.into_values().collect()
}

fn pieces(seconds: Vec<RawSecond>, places: &BTreeMap<u64, usize>) -> Vec<Piece> {
    let together = seconds.len().div_ceil(MAX_PIECES).max(1);
    let pieces = seconds.chunks(together).map(|chunk| {
        let mut times: BTreeMap<usize, u64> = BTreeMap::new();
        for (nanos, count) in chunk.iter().flat_map(|second| &second.times) {
            if let Some(&place) = places.get(nanos) {
                *times.entry(place).or_default() += count;
            }
        }
        Piece {
            times: times.into_iter().collect(),
            finished: chunk.iter().map(|second| second.finished).sum(),
            errors: chunk.iter().map(|second| second.errors).sum(),
            seconds: chunk.len() as u64,
        }
    });
    pieces.collect()
}

/// Pieces added up.
#[derive(Debug, Clone)]
pub(super) struct Sum {
    counts: Vec<u64>,
    finished: u64,
    errors: u64,
    seconds: u64,
}

impl Sum {
    pub(super) fn new(values: usize) -> Sum {
        Sum { counts: vec![0; values], finished: 0, errors: 0, seconds: 0 }
    }

    pub(super) fn add(&mut self, piece: &Piece) {
        for &(place, count) in &piece.times {
            self.counts[place] += count;
        }
        self.finished += piece.finished;
        self.errors += piece.errors;
        self.seconds += piece.seconds;
    }

    pub(super) fn clear(&mut self) {
        self.counts.fill(0);
        (self.finished, self.errors, self.seconds) = (0, 0, 0);
    }

    /// [`FIGURES`], in milliseconds; `None` where there are too few to tell.
    pub(super) fn times(&self, values: &[f64]) -> [Option<f64>; 4] {
        let total: u64 = self.counts.iter().sum();
        let mut figures = [None; 4];
        if total == 0 {
            return figures;
        }
        let mut wanted = QUANTILES.iter().enumerate();
        let mut next = wanted.next();
        let mut below = 0;
        for (value, &count) in values.iter().zip(&self.counts) {
            below += count;
            while let Some((index, &q)) = next
                && below as f64 >= (q * total as f64).ceil()
            {
                figures[index] = (total as f64 * (1.0 - q) >= MIN_BEYOND).then_some(*value);
                next = wanted.next();
            }
        }
        let sum: f64 = values.iter().zip(&self.counts).map(|(value, &count)| value * count as f64).sum();
        figures[MEAN] = Some(sum / total as f64);
        figures
    }

    pub(super) fn errors(&self) -> Option<f64> {
        (self.finished > 0).then(|| self.errors as f64 / self.finished as f64)
    }

    pub(super) fn requests(&self) -> f64 {
        self.finished as f64 / self.seconds.max(1) as f64
    }
}

impl Side {
    fn sum(&self) -> Sum {
        let mut sum = Sum::new(self.values.len());
        self.runs.iter().flatten().for_each(|piece| sum.add(piece));
        sum
    }

    /// [`FIGURES`] of all runs together.
    pub(super) fn times(&self) -> [Option<f64>; 4] {
        self.sum().times(&self.values)
    }

    /// The share of requests with an unexpected outcome.
    pub(super) fn errors(&self) -> Option<f64> {
        self.sum().errors()
    }

    /// Requests per second.
    pub(super) fn requests(&self) -> f64 {
        self.sum().requests()
    }
}
