//! When sessions arrive: pure iterators of intended times.
//!
//! Two independent values make a schedule. The *profile* says how many sessions have arrived by a time, as the integral
//! of a rate; the *spacing* says how far apart they are, measured in sessions (always one, or exponential with mean one).
//! An intended time is the profile's inverse at the running sum of the spacing, so every spacing works with every
//! profile.

mod profile;
mod spacing;

pub use profile::{Profile, ProfileError, Stage};
pub use spacing::Spacing;

use spacing::Positions;

/// One session to start.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrival {
    /// The session's number in the whole run, from 0. Everything random about the session is drawn from it.
    pub ordinal: u64,
    /// The intended time, in nanoseconds from the start of the run.
    pub at: u64,
}

/// When sessions arrive: a value, from which any number of equal iterators can be made.
#[derive(Debug, Clone, PartialEq)]
pub struct Schedule {
    /// How many have arrived by when.
    pub profile: Profile,
    /// How they are spaced.
    pub spacing: Spacing,
    /// The seed of the spacing.
    pub seed: u64,
    /// No arrival at or after this time, in nanoseconds from the start.
    pub end: Option<u64>,
    /// No more sessions than this.
    pub sessions: Option<u64>,
}

impl Schedule {
    /// All arrivals, in order.
    pub fn iter(&self) -> Arrivals<'_> {
        Arrivals { schedule: self, positions: self.spacing.positions(self.seed), next: 0, lane: 0, lanes: 1 }
    }

    /// When the gap after the last session ends, if it is a number of sessions that ends the schedule: N sessions take N gaps, as
    /// those of a rate do. Even gaps and bursts end where the next session would come on the mean, a Poisson process with its next
    /// gap, a trace with its next time or, behind its last one, with its mean gap. `None` where nothing tells: of a trace of
    /// one session, of an endless schedule, and of a Poisson process of too many sessions to draw them beforehand.
    pub fn last_gap_end(&self) -> Option<u64> {
        let sessions = [self.sessions, self.profile.listed()].into_iter().flatten().min()?;
        let end = match self.profile.times() {
            Some(times) => end_of_trace(times, usize::try_from(sessions).ok()?),
            None => self.profile.when(self.spacing.position_after(self.seed, sessions)?),
        };
        self.end.into_iter().chain(end).min()
    }

    /// The arrivals that belong to worker `lane` of `lanes`: every worker walks the same whole and keeps its own, so
    /// that the number of workers changes nothing about the whole.
    pub fn lane(&self, lane: u64, lanes: u64) -> Arrivals<'_> {
        Arrivals { lane, lanes: lanes.max(1), ..self.iter() }
    }
}

/// When the gap of the last of the first so many times ends.
fn end_of_trace(times: &[u64], sessions: usize) -> Option<u64> {
    let (first, last) = (*times.first()?, *times.get(sessions.checked_sub(1)?)?);
    let next = match times.get(sessions) {
        Some(next) => *next,
        None => last + (last - first).checked_div(sessions as u64 - 1)?,
    };
    // Several may come at once.
    Some(next.max(last + 1))
}

/// Iterator over a [`Schedule`].
#[derive(Debug, Clone)]
pub struct Arrivals<'a> {
    schedule: &'a Schedule,
    positions: Positions,
    next: u64,
    lane: u64,
    lanes: u64,
}

impl Iterator for Arrivals<'_> {
    type Item = Arrival;

    fn next(&mut self) -> Option<Arrival> {
        loop {
            let ordinal = self.next;
            if self.schedule.sessions.is_some_and(|limit| ordinal >= limit) {
                return None;
            }
            let position = self.positions.next_position();
            self.next += 1;
            if ordinal % self.lanes != self.lane {
                continue;
            }
            let at = self.schedule.profile.when(position)?;
            if self.schedule.end.is_some_and(|end| at >= end) {
                return None;
            }
            return Some(Arrival { ordinal, at });
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const SECOND: u64 = 1_000_000_000;

    fn schedule(profile: Profile, spacing: Spacing, seed: u64, end_s: u64) -> Schedule {
        Schedule { profile, spacing, seed, end: Some(end_s * SECOND), sessions: None }
    }

    #[test]
    fn a_constant_rate_has_an_exact_count_and_even_gaps() {
        let arrivals: Vec<_> = schedule(Profile::constant(50.0), Spacing::Even, 1, 15).iter().collect();
        assert_eq!(arrivals.len(), 750);
        assert_eq!(arrivals[0].at, 0);
        assert_eq!(arrivals[1].at, 20_000_000);
        assert_eq!(arrivals[749].at, 749 * 20_000_000);
    }

    #[test]
    fn a_ramp_has_the_integral_of_its_rate() {
        // 0 to 500/s in 30 s is 7,500 sessions; 90 s at 500/s are 45,000 more.
        let stages = Profile::stages(vec![
            Stage { at: 0, rate: 0.0 },
            Stage { at: 30 * SECOND, rate: 500.0 },
            Stage { at: 120 * SECOND, rate: 500.0 },
        ])
        .unwrap();
        let arrivals: Vec<_> = schedule(stages, Spacing::Even, 1, 1000).iter().collect();
        assert_eq!(arrivals.len(), 52_500);
        let in_ramp = arrivals.iter().filter(|arrival| arrival.at < 30 * SECOND).count();
        assert!((7500..=7501).contains(&in_ramp), "{in_ramp}");
        // Half of the ramp's time holds a quarter of its sessions.
        let in_half = arrivals.iter().filter(|arrival| arrival.at < 15 * SECOND).count();
        assert!((1875..=1876).contains(&in_half), "{in_half}");
    }

    #[test]
    fn poisson_counts_and_gaps_follow_the_law() {
        let arrivals: Vec<_> =
            schedule(Profile::constant(1000.0), Spacing::Poisson, 42, 100).iter().collect();
        // Mean 100,000, standard deviation 316: five of them.
        assert!((98_400..101_600).contains(&arrivals.len()), "{}", arrivals.len());
        // For an exponential gap the share longer than the mean is 1/e.
        let longer = arrivals.windows(2).filter(|pair| pair[1].at - pair[0].at > 1_000_000).count();
        let share = longer as f64 / arrivals.len() as f64;
        assert!((share - (-1.0f64).exp()).abs() < 0.01, "{share}");
    }

    #[test]
    fn a_session_limit_ends_the_schedule() {
        let mut limited = schedule(Profile::constant(10.0), Spacing::Even, 1, 1000);
        limited.sessions = Some(7);
        assert_eq!(limited.iter().count(), 7);
    }

    #[test]
    fn bursts_come_at_once_and_keep_the_rate() {
        let arrivals: Vec<_> = schedule(Profile::constant(100.0), Spacing::Burst(20), 1, 2).iter().collect();
        assert_eq!(arrivals.len(), 200);
        assert!(arrivals.iter().all(|arrival| arrival.at == arrival.ordinal / 20 * SECOND / 5));
    }

    #[test]
    fn n_sessions_take_n_gaps() {
        let end = |profile: Profile, spacing, sessions| {
            Schedule { profile, spacing, seed: 7, end: None, sessions }.last_gap_end()
        };
        let ten = || Profile::constant(10.0);
        assert_eq!(end(ten(), Spacing::Even, Some(5)), Some(SECOND / 2));
        assert_eq!(end(ten(), Spacing::Even, None), None);
        // Three bursts of 20, the last one cut short: still ten a second.
        assert_eq!(end(ten(), Spacing::Burst(20), Some(50)), Some(5 * SECOND));
        let poisson =
            Schedule { profile: ten(), spacing: Spacing::Poisson, seed: 7, end: None, sessions: Some(5) };
        let sixth = Schedule { sessions: None, ..poisson.clone() }.iter().nth(5).unwrap().at;
        assert_eq!(poisson.last_gap_end(), Some(sixth));
        assert_eq!(end(ten(), Spacing::Poisson, Some(u64::MAX)), None);
        let trace = |sessions| end(Profile::trace([0, 10, 20, 20, 60].into()), Spacing::Even, sessions);
        assert_eq!([Some(2), Some(3), Some(9), None].map(trace), [Some(20), Some(21), Some(75), Some(75)]);
        assert_eq!(end(Profile::trace([5].into()), Spacing::Even, None), None);
        // What ends by its time ends there.
        let timed = Schedule { end: Some(SECOND), ..poisson };
        assert_eq!(Schedule { sessions: Some(500), ..timed }.last_gap_end(), Some(SECOND));
    }

    fn any_spacing() -> impl Strategy<Value = Spacing> {
        prop_oneof![Just(Spacing::Even), Just(Spacing::Poisson), (1u32..50).prop_map(Spacing::Burst)]
    }

    fn any_profile() -> impl Strategy<Value = Profile> {
        prop_oneof![
            (1u32..5000).prop_map(|rate| Profile::constant(f64::from(rate))),
            proptest::collection::vec((1u64..20, 0u32..2000), 1..5).prop_map(|parts| {
                let mut at = 0;
                let mut stages = vec![Stage { at: 0, rate: 10.0 }];
                for (seconds, rate) in parts {
                    at += seconds * SECOND;
                    stages.push(Stage { at, rate: f64::from(rate) });
                }
                Profile::stages(stages).unwrap()
            }),
            (1u32..2000, 0u32..=100, 1u64..20).prop_map(|(mean, percent, seconds)| {
                Profile::sine(f64::from(mean), f64::from(percent) / 100.0, seconds * SECOND)
            }),
            proptest::collection::vec(0u64..10_000_000_000, 1..200).prop_map(|mut times| {
                times.sort_unstable();
                Profile::trace(times.into())
            }),
        ]
    }

    proptest! {
        #[test]
        fn never_backwards_and_equal_for_equal_seeds(profile in any_profile(), spacing in any_spacing(), seed: u64) {
            let plan = schedule(profile, spacing, seed, 5);
            let first: Vec<_> = plan.iter().collect();
            prop_assert!(first.windows(2).all(|pair| pair[0].at <= pair[1].at));
            prop_assert!(first.iter().enumerate().all(|(i, arrival)| arrival.ordinal == i as u64));
            let again: Vec<_> = plan.iter().collect();
            prop_assert_eq!(first, again);
        }

        #[test]
        fn workers_together_do_the_whole(profile in any_profile(), spacing in any_spacing(), seed: u64, lanes in 1u64..6) {
            let plan = schedule(profile, spacing, seed, 3);
            let whole: Vec<_> = plan.iter().collect();
            let mut parts: Vec<_> = (0..lanes).flat_map(|lane| plan.lane(lane, lanes)).collect();
            parts.sort_by_key(|arrival| arrival.ordinal);
            prop_assert_eq!(whole, parts);
        }

        #[test]
        fn even_counts_equal_the_integral(profile in any_profile(), seconds in 1u64..30) {
            let expected = profile.arrived_by(seconds * SECOND).ceil();
            let count = schedule(profile, Spacing::Even, 0, seconds).iter().count() as f64;
            // One for the boundary itself: times are whole nanoseconds.
            prop_assert!((count - expected).abs() <= 1.0, "{} against {}", count, expected);
        }
    }
}
