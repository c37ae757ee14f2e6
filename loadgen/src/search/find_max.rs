//! The search for the highest rate that meets the objectives: a pure state machine. One observation goes in, the next rate
//! to try comes out; it has no clock and no dealer of its own.
//!
//! It grows by half until a rate fails, halves the gap between the highest rate that held and the lowest that did not, and
//! at last tries the highest one again, twice: a rate that holds once may have been luck.

use serde::Serialize;

/// How the search is made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Options {
    /// The first rate, per second.
    pub(crate) start: f64,
    /// No rate above this.
    pub(crate) highest: f64,
    /// The lowest rate that failed may be above the answer by this share. (Together with what chance does to the last runs,
    /// three percent make an answer that is within five.)
    pub(crate) tolerance: f64,
    /// How often the answer must hold again.
    pub(crate) confirmations: u32,
    /// No more rates than this.
    pub(crate) max_steps: u32,
}

/// No rate below this, per second.
const LOWEST: f64 = 0.1;
/// By how much a rate grows while none has failed.
const GROWTH: f64 = 1.5;

impl Default for Options {
    fn default() -> Options {
        Options { start: 50.0, highest: 100_000.0, tolerance: 0.03, confirmations: 2, max_steps: 60 }
    }
}

/// What came of a rate: the objectives that it failed; none if it held.
#[derive(Debug, Clone)]
pub(crate) struct Observation {
    pub(crate) rate: f64,
    pub(crate) failed: Vec<String>,
}

/// How a search ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Ending {
    /// The answer held, again and again, and a rate a little above it did not.
    Converged,
    /// The highest rate allowed held too: the limit was not found.
    NoLimit,
    /// Not even the lowest rate held.
    NothingHolds,
    /// Too many rates were tried; the answer is the best so far.
    OutOfSteps,
}

/// The answer.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Answer {
    pub(crate) ending: Ending,
    /// The highest rate that held.
    pub(crate) rate: Option<f64>,
    /// The lowest rate that did not, and what failed there.
    pub(crate) failed_at: Option<f64>,
    pub(crate) limited_by: Vec<String>,
}

/// What to do next.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Next {
    /// Try this rate.
    Measure(f64),
    /// It is over.
    Done(Answer),
}

/// A search.
#[derive(Debug, Clone)]
pub(crate) struct Search {
    options: Options,
    /// The rates that held, ascending.
    held: Vec<f64>,
    /// The lowest that did not, and why.
    failed: Option<(f64, Vec<String>)>,
    /// How often the highest that held did so again.
    confirmed: u32,
    steps: u32,
}

impl Search {
    /// A search, and the first rate to try.
    pub(crate) fn begin(options: Options) -> (Search, f64) {
        let first = round_down(options.start.clamp(LOWEST, options.highest));
        (Search { options, held: Vec::new(), failed: None, confirmed: 0, steps: 0 }, first)
    }

    /// Takes what came of a rate.
    pub(crate) fn observe(&mut self, seen: Observation) -> Next {
        self.steps += 1;
        if seen.failed.is_empty() {
            if self.held.last() == Some(&seen.rate) {
                self.confirmed += 1;
            } else {
                self.held.push(seen.rate);
                self.confirmed = 0;
            }
        } else {
            // What held once and fails now did not hold.
            self.held.retain(|rate| *rate < seen.rate);
            self.confirmed = 0;
            if self.failed.as_ref().is_none_or(|(rate, _)| seen.rate <= *rate) {
                self.failed = Some((seen.rate, seen.failed));
            }
        }
        self.next()
    }

    /// What is known so far, for a search that is ended from outside.
    pub(crate) fn so_far(&self, ending: Ending) -> Answer {
        Answer {
            ending,
            rate: self.held.last().copied(),
            failed_at: self.failed.as_ref().map(|(rate, _)| *rate),
            limited_by: self.failed.as_ref().map(|(_, failed)| failed.clone()).unwrap_or_default(),
        }
    }

    fn next(&self) -> Next {
        let low = self.held.last().copied();
        let high = self.failed.as_ref().map(|(rate, _)| *rate);
        let wanted = match (low, high) {
            (Some(low), None) if low >= round_down(self.options.highest) => {
                return self.confirm(low, Ending::NoLimit);
            }
            (Some(low), None) => Some(round_down((low * GROWTH).min(self.options.highest))),
            (None, Some(high)) => {
                let next = round_down(high / 2.0);
                if next < LOWEST {
                    return Next::Done(self.so_far(Ending::NothingHolds));
                }
                Some(next)
            }
            (Some(low), Some(high)) => {
                let between = round_down((low + high) / 2.0);
                let is_close = high <= low * (1.0 + self.options.tolerance);
                (!is_close && between > low && between < high).then_some(between)
            }
            (None, None) => Some(round_down(self.options.start)),
        };
        match wanted {
            _ if self.steps >= self.options.max_steps => Next::Done(self.so_far(Ending::OutOfSteps)),
            Some(rate) => Next::Measure(rate),
            None => self.confirm(low.unwrap_or(LOWEST), Ending::Converged),
        }
    }

    fn confirm(&self, rate: f64, ending: Ending) -> Next {
        if self.confirmed >= self.options.confirmations {
            Next::Done(self.so_far(ending))
        } else if self.steps >= self.options.max_steps {
            Next::Done(self.so_far(Ending::OutOfSteps))
        } else {
            Next::Measure(rate)
        }
    }
}

/// A rate that people would choose, at most two percent below: a multiple of 1, 2 or 5 times a power of ten.
fn round_down(rate: f64) -> f64 {
    let fine = rate * 0.02;
    let mut base = 1.0;
    while base > fine {
        base /= 10.0;
    }
    while base * 10.0 <= fine {
        base *= 10.0;
    }
    let step = [5.0, 2.0, 1.0].into_iter().map(|step| step * base).find(|step| *step <= fine).unwrap_or(base);
    // Below one the step is a fraction: its reciprocal is whole, and dividing by that keeps the rate as people write it.
    if step < 1.0 {
        let parts = (1.0 / step).round();
        ((rate * parts) + 1e-6).floor() / parts
    } else {
        ((rate / step) + 1e-9).floor() * step
    }
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    /// Searches a dealer for which a rate fails as `fails` says.
    fn search(options: Options, mut fails: impl FnMut(f64) -> bool) -> (Answer, u32) {
        let (mut search, mut rate) = Search::begin(options);
        loop {
            let failed = if fails(rate) { vec!["p99<50ms".to_owned()] } else { Vec::new() };
            match search.observe(Observation { rate, failed }) {
                Next::Measure(next) => rate = next,
                Next::Done(answer) => return (answer, search.steps),
            }
        }
    }

    #[test]
    fn a_sharp_limit_is_found_from_below_and_from_above() {
        for capacity in [0.5, 3.0, 37.0, 300.0, 1234.0, 56_789.0] {
            for start in [0.1, 10.0, 50.0, 5000.0] {
                let (answer, steps) = search(Options { start, ..Options::default() }, |rate| rate > capacity);
                let rate = answer.rate.unwrap();
                assert_eq!(answer.ending, Ending::Converged);
                assert!(rate <= capacity && rate >= capacity * 0.93, "{capacity} from {start}: {rate}");
                assert!(steps < 60, "{steps}");
                assert_eq!(answer.limited_by, ["p99<50ms"]);
                assert!(answer.failed_at.unwrap() > capacity);
            }
        }
    }

    /// The response time's 99th percentile of a queue with Poisson arrivals and one server with exponential service times,
    /// simulated for four minutes.
    fn p99(arrivals: f64, capacity: f64, rng: &mut ChaCha8Rng) -> f64 {
        let mut exponential = |rate: f64| -libm::log(1.0 - rng.random::<f64>()) / rate;
        let (mut now, mut free) = (0.0, 0.0f64);
        let mut times = Vec::new();
        while now < 240.0 {
            now += exponential(arrivals);
            free = free.max(now) + exponential(capacity);
            times.push(free - now);
        }
        let at = times.len() * 99 / 100;
        *times.select_nth_unstable_by(at, f64::total_cmp).1
    }

    #[test]
    fn the_capacity_of_simulated_servers_is_found_within_five_percent() {
        // Response times of M/M/1 are exponential with the rate mu - lambda: p99 = ln(100) / (mu - lambda), so that the highest
        // arrival rate with p99 below a limit is mu - ln(100) / limit.
        let limit = 0.05;
        for (seed, capacity) in [(1, 400.0), (2, 1000.0), (3, 2500.0), (4, 700.0), (5, 1500.0)] {
            let mut rng = ChaCha8Rng::seed_from_u64(seed);
            let wanted = capacity - 100f64.ln() / limit;
            let (answer, _) = search(Options::default(), |rate| p99(rate, capacity, &mut rng) > limit);
            let rate = answer.rate.unwrap();
            assert!((rate / wanted - 1.0).abs() <= 0.05, "{rate} of {wanted}");
        }
    }

    #[test]
    fn luck_does_not_pass_for_an_answer() {
        // 200/s holds the first time only.
        let mut tries = 0;
        let (answer, _) = search(Options::default(), |rate| {
            if (195.0..=205.0).contains(&rate) {
                tries += 1;
                return tries > 1;
            }
            rate > 205.0
        });
        assert!(answer.rate.unwrap() < 200.0, "{answer:?}");
    }

    #[test]
    fn searches_without_an_answer_end() {
        let (answer, _) = search(Options { highest: 1000.0, ..Options::default() }, |_| false);
        assert_eq!((answer.ending, answer.rate), (Ending::NoLimit, Some(1000.0)));
        let (answer, _) = search(Options::default(), |_| true);
        assert_eq!((answer.ending, answer.rate), (Ending::NothingHolds, None));
        let mut turn = false;
        let (_, steps) = search(Options { max_steps: 12, ..Options::default() }, |_| {
            turn = !turn;
            turn
        });
        assert!(steps <= 12);
    }

    #[test]
    fn rates_are_round() {
        for (rate, round) in [
            (300.0, 300.0),
            (304.9, 300.0),
            (112.5, 112.0),
            (50.0, 50.0),
            (0.1, 0.1),
            (1234.0, 1220.0),
            (3.33, 3.3),
        ] {
            assert!((round_down(rate) - round).abs() < 1e-9, "{rate}: {}", round_down(rate));
        }
    }
}
