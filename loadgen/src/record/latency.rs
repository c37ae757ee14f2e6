//! A histogram of times.

use hdrhistogram::Histogram;

/// The finest difference kept, in nanoseconds: three digits from 64 us on, and 64 ns below.
const LOWEST: u64 = 64;
/// The longest time kept, one hour in nanoseconds. Longer ones are counted here and as saturated.
pub const HIGHEST: u64 = 3_600_000_000_000;
const DIGITS: u8 = 3;

/// Times in nanoseconds, to three significant digits. Recording never allocates.
#[derive(Debug, Clone)]
pub struct Latency {
    histogram: Histogram<u64>,
    saturated: u64,
}

impl Default for Latency {
    fn default() -> Latency {
        // The bounds are constants that the constructor accepts: a test makes one.
        #[expect(clippy::expect_used, reason = "constant bounds")]
        let histogram = Histogram::new_with_bounds(LOWEST, HIGHEST, DIGITS).expect("constant bounds");
        Latency { histogram, saturated: 0 }
    }
}

impl Latency {
    /// An empty histogram.
    pub fn new() -> Latency {
        Latency::default()
    }

    /// Records one time.
    pub fn record(&mut self, nanos: u64) {
        if nanos > HIGHEST {
            self.saturated += 1;
        }
        self.histogram.saturating_record(nanos);
    }

    /// Adds all of another's times.
    pub fn add(&mut self, other: &Latency) {
        if !other.histogram.is_empty() {
            // Fails only where the other's values do not fit, and the bounds are the same.
            let added = self.histogram.add(&other.histogram);
            debug_assert!(added.is_ok());
        }
        self.saturated += other.saturated;
    }

    /// Takes away times that were added before, as those of a part.
    pub fn subtract(&mut self, part: &Latency) {
        if !part.histogram.is_empty() {
            // Fails only where there is less than is to be taken away: of a file that was written in between.
            let _ = self.histogram.subtract(&part.histogram);
        }
        self.saturated = self.saturated.saturating_sub(part.saturated);
    }

    /// Counts times beyond an hour that another record knows of; a histogram that was read from a file does not.
    pub(crate) fn count_saturated(&mut self, times: u64) {
        self.saturated += times;
    }

    /// Adds the times of a histogram that was read from a file.
    ///
    /// # Errors
    /// If it holds values beyond an hour.
    pub fn add_histogram(&mut self, other: &Histogram<u64>) -> Result<(), hdrhistogram::AdditionError> {
        self.histogram.add(other)
    }

    /// Forgets everything, keeps the memory.
    pub fn clear(&mut self) {
        if !self.histogram.is_empty() {
            self.histogram.reset();
        }
        self.saturated = 0;
    }

    /// How many times there are.
    pub fn count(&self) -> u64 {
        self.histogram.len()
    }

    /// How many were longer than an hour.
    pub fn saturated(&self) -> u64 {
        self.saturated
    }

    /// The time below which this share of all times lies, in nanoseconds; `None` if there are too few to tell: with
    /// fewer than 1/(1-q) of them the quantile would be the maximum, or less.
    pub fn quantile(&self, q: f64) -> Option<u64> {
        let count = self.count();
        // 1 - 0.99 is a little more or less than 0.01: a hair of tolerance keeps p99 at exactly 100 samples.
        let enough = count > 0 && count as f64 * (1.0 - q) >= 1.0 - 1e-9;
        enough.then(|| self.histogram.value_at_quantile(q))
    }

    /// The shortest, in nanoseconds.
    pub fn min(&self) -> Option<u64> {
        (self.count() > 0).then(|| self.histogram.min())
    }

    /// The longest, in nanoseconds.
    pub fn max(&self) -> Option<u64> {
        (self.count() > 0).then(|| self.histogram.max())
    }

    /// The mean, in nanoseconds.
    pub fn mean(&self) -> Option<f64> {
        (self.count() > 0).then(|| self.histogram.mean())
    }

    /// The histogram itself, for files.
    pub fn histogram(&self) -> &Histogram<u64> {
        &self.histogram
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn three_digits_from_64_us_to_an_hour() {
        let mut latency = Latency::new();
        for value in [64_000, 1_000_000, 123_456_789, 59_999_000_000, HIGHEST] {
            latency.clear();
            latency.record(value);
            let error = latency.max().unwrap().abs_diff(value) as f64 / value as f64;
            assert!(error <= 0.001, "{value}: {error}");
        }
    }

    #[test]
    fn too_few_samples_give_no_percentile() {
        let mut latency = Latency::new();
        assert_eq!(latency.quantile(0.5), None);
        for value in 1..100 {
            latency.record(value * 1_000_000);
        }
        assert_eq!(latency.quantile(0.99), None);
        latency.record(100_000_000);
        assert!(latency.quantile(0.99).is_some());
        assert_eq!(latency.quantile(0.999), None);
    }

    #[test]
    fn too_long_is_counted() {
        let mut latency = Latency::new();
        latency.record(HIGHEST + 1_000_000_000);
        assert_eq!((latency.count(), latency.saturated()), (1, 1));
    }

    proptest! {
        #[test]
        fn a_sum_is_the_histogram_of_the_union(
            first in proptest::collection::vec(0..HIGHEST, 0..200),
            second in proptest::collection::vec(0..HIGHEST, 0..200),
        ) {
            let of = |values: &[u64]| {
                let mut latency = Latency::new();
                values.iter().for_each(|&value| latency.record(value));
                latency
            };
            let mut sum = of(&first);
            sum.add(&of(&second));
            let union = of(&[first, second].concat());
            prop_assert_eq!(sum.histogram(), union.histogram());
        }
    }
}
