//! How many sessions have arrived by a time: the integral of a rate, and its inverse.

use std::sync::Arc;

/// One point of a ramp: at this time the rate is this.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Stage {
    /// Nanoseconds from the start of the run.
    pub at: u64,
    /// Sessions per second.
    pub rate: f64,
}

/// How many sessions have arrived by when.
#[derive(Debug, Clone, PartialEq)]
pub struct Profile(Shape);

#[derive(Debug, Clone, PartialEq)]
enum Shape {
    Ramps(Ramps),
    Wave(Wave),
    Trace(Arc<[u64]>),
}

/// A rate over time, linear between its points.
#[derive(Debug, Clone, PartialEq)]
struct Ramps {
    /// Ascending in time. The last one holds for ever if `open_ended`, else the profile ends there.
    stages: Vec<Stage>,
    /// Sessions that have arrived when each stage begins.
    before: Vec<f64>,
    open_ended: bool,
}

/// A rate that swings around its mean: mean * (1 + share * sin(2 pi t / period)).
#[derive(Debug, Clone, Copy, PartialEq)]
struct Wave {
    mean: f64,
    /// Of the mean, from 0 to 1.
    share: f64,
    /// Nanoseconds.
    period: u64,
}

/// Why a list of stages is no profile.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ProfileError {
    /// Fewer than two points make no ramp.
    #[error("a ramp needs at least two stages, such as 0s:0/s,30s:500/s")]
    TooFew,
    /// The first point is not the start.
    #[error("the first stage must be at 0s")]
    NotFromStart,
    /// A point is not later than the one before it.
    #[error("stage {0} is not later than the one before it")]
    NotAscending(usize),
    /// No session would ever arrive.
    #[error("the rate is 0 in every stage")]
    Empty,
}

const NANOS_PER_SECOND: f64 = 1e9;

impl Profile {
    /// The same rate for ever.
    pub fn constant(rate: f64) -> Profile {
        let stages = vec![Stage { at: 0, rate }];
        Profile(Shape::Ramps(Ramps { stages, before: vec![0.0], open_ended: true }))
    }

    /// A rate that is linear between the given points and ends with the last one.
    ///
    /// # Errors
    /// If the points are too few, not ascending from 0, or all zero.
    pub fn stages(stages: Vec<Stage>) -> Result<Profile, ProfileError> {
        if stages.len() < 2 {
            return Err(ProfileError::TooFew);
        }
        if stages[0].at != 0 {
            return Err(ProfileError::NotFromStart);
        }
        if let Some(index) = stages.windows(2).position(|pair| pair[1].at <= pair[0].at) {
            return Err(ProfileError::NotAscending(index + 2));
        }
        if stages.iter().all(|stage| stage.rate == 0.0) {
            return Err(ProfileError::Empty);
        }
        let mut before = vec![0.0];
        let mut sum = 0.0;
        for pair in stages.windows(2) {
            // A trapezium: the mean of both rates times the seconds between them.
            sum += (pair[0].rate + pair[1].rate) / 2.0 * seconds(pair[1].at - pair[0].at);
            before.push(sum);
        }
        Ok(Profile(Shape::Ramps(Ramps { stages, before, open_ended: false })))
    }

    /// A rate that swings for ever: `mean` sessions per second times 1 + `share` sin(2 pi t / `period`), `share` from 0 to
    /// 1 and the period in nanoseconds, at least one.
    pub fn sine(mean: f64, share: f64, period: u64) -> Profile {
        Profile(Shape::Wave(Wave { mean, share: share.clamp(0.0, 1.0), period: period.max(1) }))
    }

    /// Exactly these times, in nanoseconds and ascending: session n arrives at the nth.
    pub fn trace(times: Arc<[u64]>) -> Profile {
        Profile(Shape::Trace(times))
    }

    /// When the profile ends by itself, in nanoseconds; `None` if it never does, or with its last session.
    pub fn end(&self) -> Option<u64> {
        match &self.0 {
            Shape::Ramps(ramps) if !ramps.open_ended => ramps.stages.last().map(|stage| stage.at),
            _ => None,
        }
    }

    /// How many sessions there are, if the profile lists them.
    pub fn listed(&self) -> Option<u64> {
        match &self.0 {
            Shape::Trace(times) => Some(times.len() as u64),
            _ => None,
        }
    }

    /// When the last session arrives, if the profile lists them.
    pub fn last(&self) -> Option<u64> {
        match &self.0 {
            Shape::Trace(times) => times.last().copied(),
            _ => None,
        }
    }

    /// The highest rate it ever asks for, in sessions per second; of a trace, the most sessions within a second.
    pub fn peak_rate(&self) -> f64 {
        match &self.0 {
            Shape::Ramps(ramps) => ramps.stages.iter().map(|stage| stage.rate).fold(0.0, f64::max),
            Shape::Wave(wave) => wave.mean * (1.0 + wave.share),
            Shape::Trace(times) => {
                let within = |(index, at): (usize, &u64)| {
                    let end = times.partition_point(|time| *time < at.saturating_add(1_000_000_000));
                    end - index
                };
                times.iter().enumerate().map(within).max().unwrap_or(0) as f64
            }
        }
    }

    /// The mean rate between two times, per second; 0 if there is nothing between them.
    pub fn mean_rate(&self, from: u64, to: u64) -> f64 {
        if to <= from {
            return 0.0;
        }
        (self.arrived_by(to) - self.arrived_by(from)) / seconds(to - from)
    }

    /// Sessions that arrive before this time, as a real number: the integral of the rate.
    pub fn arrived_by(&self, at: u64) -> f64 {
        match &self.0 {
            Shape::Ramps(ramps) => ramps.arrived_by(at),
            Shape::Wave(wave) => wave.arrived_by(at),
            Shape::Trace(times) => times.partition_point(|time| *time < at) as f64,
        }
    }

    /// When the session at this position arrives, in nanoseconds; `None` after the end of the profile.
    pub(super) fn when(&self, position: f64) -> Option<u64> {
        match &self.0 {
            Shape::Ramps(ramps) => ramps.when(position),
            Shape::Wave(wave) => wave.when(position),
            Shape::Trace(times) => times.get(position as usize).copied(),
        }
    }
}

impl Wave {
    /// The integral of the rate: mean (t + share period / (2 pi) (1 - cos(2 pi t / period))).
    fn arrived_by(&self, at: u64) -> f64 {
        let turn = std::f64::consts::TAU;
        let period = seconds(self.period);
        // Only the part of the last period counts for the cosine; libm's is the same on every machine.
        let phase = seconds(at % self.period) / period * turn;
        self.mean * (seconds(at) + self.share * period / turn * (1.0 - libm::cos(phase)))
    }

    /// The first nanosecond by which so many have arrived: the integral never falls, so it is halved down to one.
    fn when(&self, position: f64) -> Option<u64> {
        if self.mean <= 0.0 {
            return None;
        }
        // The swing never brings a session earlier than by its largest lead, share period / pi.
        let at_mean = position / self.mean * NANOS_PER_SECOND;
        let lead = self.share * self.period as f64 / std::f64::consts::PI;
        let (mut low, mut high) = ((at_mean - lead - 2.0).max(0.0) as u64, (at_mean + 2.0) as u64);
        while low < high {
            let middle = low + (high - low) / 2;
            if self.arrived_by(middle) < position {
                low = middle + 1;
            } else {
                high = middle;
            }
        }
        Some(low)
    }
}

impl Ramps {
    fn arrived_by(&self, at: u64) -> f64 {
        let index = self.stages.partition_point(|stage| stage.at <= at).saturating_sub(1);
        let stage = self.stages[index];
        let passed = seconds(at - stage.at);
        match self.stages.get(index + 1) {
            Some(next) => {
                let slope = (next.rate - stage.rate) / seconds(next.at - stage.at);
                self.before[index] + stage.rate * passed + slope * passed * passed / 2.0
            }
            None if self.open_ended => self.before[index] + stage.rate * passed,
            None => self.before[index],
        }
    }

    fn when(&self, position: f64) -> Option<u64> {
        // The last stage that begins at or below the position; a stage at rate 0 that ends where it began is passed over.
        let index = self.before.partition_point(|&before| before <= position).saturating_sub(1);
        let stage = self.stages[index];
        let missing = position - self.before[index];
        let after = match self.stages.get(index + 1) {
            Some(next) => {
                let slope = (next.rate - stage.rate) / seconds(next.at - stage.at);
                // rate t + slope t^2 / 2 = missing, solved in the form that does not cancel when the slope is near 0.
                let root = (stage.rate * stage.rate + 2.0 * slope * missing).max(0.0).sqrt();
                let denominator = stage.rate + root;
                if denominator == 0.0 { 0.0 } else { 2.0 * missing / denominator }
            }
            None if self.open_ended && stage.rate > 0.0 => missing / stage.rate,
            None => return None,
        };
        let at = stage.at + (after * NANOS_PER_SECOND) as u64;
        if self.stages.get(index + 1).is_some_and(|next| at > next.at) {
            return self.stages.get(index + 1).map(|next| next.at);
        }
        Some(at)
    }
}

fn seconds(nanos: u64) -> f64 {
    nanos as f64 / NANOS_PER_SECOND
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn bad_stages_are_refused() {
        let at = |seconds: u64, rate: f64| Stage { at: seconds * SECOND, rate };
        assert_eq!(Profile::stages(vec![at(0, 1.0)]), Err(ProfileError::TooFew));
        assert_eq!(Profile::stages(vec![at(1, 1.0), at(2, 1.0)]), Err(ProfileError::NotFromStart));
        assert_eq!(
            Profile::stages(vec![at(0, 1.0), at(2, 1.0), at(2, 1.0)]),
            Err(ProfileError::NotAscending(3))
        );
        assert_eq!(Profile::stages(vec![at(0, 0.0), at(2, 0.0)]), Err(ProfileError::Empty));
    }

    #[test]
    fn a_pause_in_the_middle_holds_no_arrival() {
        let at = |seconds: u64, rate: f64| Stage { at: seconds * SECOND, rate };
        let profile =
            Profile::stages(vec![at(0, 10.0), at(1, 10.0), at(2, 0.0), at(12, 0.0), at(13, 10.0)]).unwrap();
        assert!((profile.arrived_by(13 * SECOND) - 20.0).abs() < 1e-9);
        for position in 0..20 {
            let when = profile.when(f64::from(position)).unwrap();
            assert!(when <= 2 * SECOND || when >= 12 * SECOND, "{position} at {when}");
        }
        assert_eq!(profile.when(20.0), None);
    }

    #[test]
    fn a_wave_has_its_mean_over_whole_periods_and_its_peak_in_the_first_half() {
        let wave = Profile::sine(100.0, 0.5, 10 * SECOND);
        assert!((wave.arrived_by(30 * SECOND) - 3000.0).abs() < 1e-6);
        // Half a period: mean t + mean share period / pi = 500 + 159.15.
        assert!((wave.arrived_by(5 * SECOND) - (500.0 + 500.0 / std::f64::consts::PI)).abs() < 1e-6);
        assert!((wave.peak_rate() - 150.0).abs() < 1e-9);
        for position in [0, 1, 17, 500, 999, 12_345] {
            let at = wave.when(f64::from(position)).unwrap();
            assert!(wave.arrived_by(at) >= f64::from(position), "{position}");
            assert!(at == 0 || wave.arrived_by(at - 1) < f64::from(position), "{position}");
        }
    }

    #[test]
    fn a_trace_is_its_times() {
        let trace = Profile::trace([0, 5, 5, 2 * SECOND].into());
        let times: Vec<_> = (0..5).map(|n| trace.when(f64::from(n))).collect();
        assert_eq!(times, [Some(0), Some(5), Some(5), Some(2 * SECOND), None]);
        assert_eq!((trace.listed(), trace.last(), trace.end()), (Some(4), Some(2 * SECOND), None));
        assert!((trace.peak_rate() - 3.0).abs() < 1e-9 && (trace.arrived_by(6) - 3.0).abs() < 1e-9);
    }

    #[test]
    fn the_mean_rate_is_the_integral_over_the_time() {
        let profile = Profile::stages(vec![
            Stage { at: 0, rate: 0.0 },
            Stage { at: 10 * SECOND, rate: 100.0 },
            Stage { at: 20 * SECOND, rate: 100.0 },
        ])
        .unwrap();
        assert!((profile.mean_rate(0, 10 * SECOND) - 50.0).abs() < 1e-9);
        assert!((profile.mean_rate(5 * SECOND, 20 * SECOND) - 1375.0 / 15.0).abs() < 1e-9);
    }
}
