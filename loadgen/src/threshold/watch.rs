//! Conditions watched while a run goes on: those over windows, and those that end a run which cannot succeed any more.

use super::{Figures, Judged, Threshold};
use crate::load::{ArrivalTime, Load, Window};
use crate::record::Tally;
use crate::report::per_second;

/// A run is not ended by a condition over the whole of it before this much of it is measured, in nanoseconds: the first
/// seconds have too few requests to say much.
const SETTLED: u64 = 5_000_000_000;

/// Watches conditions, second by second.
#[derive(Debug)]
pub(crate) struct Watch {
    thresholds: Vec<Threshold>,
    window: Window,
    arrival_time: ArrivalTime,
    /// Up to here all is added, in nanoseconds from the start.
    until: u64,
    /// One for each length of window that a condition has.
    frames: Vec<Frame>,
    /// The worst so far, by the condition's place among all.
    worst: Vec<Option<Judged>>,
}

/// The seconds of the window that is open now.
#[derive(Debug)]
struct Frame {
    length: u64,
    filled: u64,
    is_open: bool,
    tally: Tally,
}

impl Watch {
    /// Watches these conditions in a run of this load and so many steps.
    pub(crate) fn new(thresholds: Vec<Threshold>, load: &Load, steps: usize) -> Watch {
        let mut lengths: Vec<u64> = thresholds.iter().filter_map(|threshold| threshold.window).collect();
        lengths.sort_unstable();
        lengths.dedup();
        let frames = lengths.iter().map(|seconds| Frame {
            length: seconds * 1_000_000_000,
            filled: 0,
            is_open: load.is_open(),
            tally: Tally::new(steps),
        });
        Watch {
            frames: frames.collect(),
            worst: vec![None; thresholds.len()],
            window: load.window,
            arrival_time: load.arrival_time(),
            until: 0,
            thresholds,
        }
    }

    /// Adds what ended between two times.
    pub(crate) fn add(&mut self, tally: &Tally, from: u64, until: u64, labels: &[String]) {
        let measured = self.window.overlap(from, until);
        // Once all sessions of a schedule have arrived, those that are still under way say nothing of a rate.
        let is_arriving = self.arrival_time.holds(from);
        self.until = self.until.max(until);
        for frame in &mut self.frames {
            frame.tally.add(tally);
            frame.filled += measured;
            if frame.filled >= frame.length {
                judge(&self.thresholds, &mut self.worst, frame, labels, is_arriving);
            }
        }
    }

    /// Judges what is left in windows when the measured time is over at `end`: the last one, which is whole if nothing came in
    /// the rest of its time, replies that came after the end, and the last seconds. Those are too short for rates.
    pub(crate) fn finish(&mut self, end: u64, labels: &[String]) {
        let rest = self.window.overlap(self.until, end);
        let is_arriving = self.arrival_time.holds(self.until);
        for frame in &mut self.frames {
            frame.filled += rest;
            let is_whole = frame.filled >= frame.length;
            if is_whole || frame.tally.finished() > 0 {
                judge(&self.thresholds, &mut self.worst, frame, labels, is_whole && is_arriving);
            }
        }
    }

    /// Each condition with what came out, for a run that has come to these figures.
    pub(crate) fn judged(&self, figures: &Figures<'_>) -> Vec<Judged> {
        let all = self.thresholds.iter().zip(&self.worst);
        all.map(|(threshold, worst)| match worst {
            _ if !threshold.is_windowed() => threshold.judge(figures),
            Some(worst) => worst.clone(),
            None => Judged { text: threshold.text.clone(), value: None, pass: false, unit: threshold.unit() },
        })
        .collect()
    }

    /// The first condition that a run which has measured so many nanoseconds fails.
    pub(crate) fn failed(&self, figures: &Figures<'_>, measured: u64) -> Option<String> {
        let mut all = self.thresholds.iter().zip(&self.worst);
        let failed = all.find(|(threshold, worst)| {
            let judged = if threshold.is_windowed() {
                (*worst).clone()
            } else {
                (measured >= SETTLED).then(|| threshold.judge(figures))
            };
            judged.is_some_and(|judged| judged.value.is_some() && !judged.pass)
        });
        failed.map(|(threshold, _)| threshold.text.clone())
    }

    /// Whether there is anything to watch.
    pub(crate) fn is_empty(&self) -> bool {
        self.thresholds.is_empty()
    }
}

fn judge(
    thresholds: &[Threshold],
    worst: &mut [Option<Judged>],
    frame: &mut Frame,
    labels: &[String],
    tells_rates: bool,
) {
    let figures = Figures {
        tally: &frame.tally,
        labels,
        rate: per_second(frame.tally.sessions.of_rate(frame.is_open), frame.filled),
        requests: per_second(frame.tally.finished(), frame.filled),
    };
    for (threshold, worst) in thresholds.iter().zip(worst) {
        let is_its = threshold.window.is_some_and(|seconds| seconds * 1_000_000_000 == frame.length);
        if !is_its || (threshold.is_rate() && !tells_rates) {
            continue;
        }
        let judged = threshold.judge(&figures);
        let Some(value) = judged.value else { continue };
        if worst.as_ref().and_then(|worst| worst.value).is_none_or(|before| threshold.is_worse(value, before))
        {
            *worst = Some(judged);
        }
    }
    frame.tally.clear();
    frame.filled = 0;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::arrival::{Profile, Schedule, Spacing};
    use crate::load::{Arrivals, Limits, OnFull, Shard};

    const SECOND: u64 = 1_000_000_000;

    fn load(arrivals: Arrivals) -> Load {
        Load {
            arrivals,
            window: Window { from: 2 * SECOND, to: Some(12 * SECOND) },
            sessions: None,
            limits: Limits { in_flight: 100, on_full: OnFull::Queue, connections: 100 },
            think: 1.0,
            slot: std::time::Duration::ZERO,
            seed: 1,
            shard: Shard::WHOLE,
        }
    }

    fn open() -> Load {
        let (profile, end) = (Profile::constant(100.0), Some(12 * SECOND));
        let schedule = Schedule { profile, spacing: Spacing::Even, seed: 1, end, sessions: None };
        load(Arrivals::Open(schedule))
    }

    #[test]
    fn a_session_that_waits_for_a_place_has_no_part_in_the_rate() {
        let thresholds = vec![Threshold::parse("rate[2s]>=90/s").unwrap()];
        let mut tally = Tally::new(0);
        // Let go in time by the pacer, and most of them to wait.
        let sessions = &mut tally.sessions;
        (sessions.scheduled, sessions.on_time, sessions.started, sessions.started_in_time) =
            (200, 200, 20, 20);
        (sessions.finished, sessions.failed) = (150, 30);
        for (load, rate) in [(open(), 10.0), (load(Arrivals::Closed { users: 3 }), 90.0)] {
            let mut watch = Watch::new(thresholds.clone(), &load, 0);
            watch.add(&tally, 2 * SECOND, 4 * SECOND, &[]);
            let figures = Figures { tally: &tally, labels: &[], rate: 0.0, requests: 0.0 };
            let judged = &watch.judged(&figures)[0];
            assert_eq!((judged.value, judged.pass), (Some(rate), rate >= 90.0));
        }
    }

    /// Ten seconds of 100 requests each, of 1 ms, but of 50 ms in the fifth.
    fn watched(texts: &[&str]) -> (Watch, Tally) {
        let thresholds = texts.iter().map(|text| Threshold::parse(text).unwrap()).collect();
        let mut watch = Watch::new(thresholds, &open(), 1);
        let mut total = Tally::new(1);
        for second in 0..12 {
            let mut tally = Tally::new(1);
            for _ in 0..100 {
                if second >= 2 {
                    tally.steps[0].response.record(if second == 6 { 50_000_000 } else { 1_000_000 });
                    tally.steps[0].ok += 1;
                    tally.steps[0].expected += 1;
                    tally.sessions.started_in_time += 1;
                }
            }
            watch.add(&tally, second * SECOND, (second + 1) * SECOND, &["f/s".to_owned()]);
            total.add(&tally);
        }
        watch.finish(12 * SECOND, &["f/s".to_owned()]);
        (watch, total)
    }

    #[test]
    fn a_window_finds_what_the_whole_hides() {
        let (watch, total) =
            watched(&["p50<10ms", "p50[1s]<10ms", "p50[5s]<10ms", "rate[2s]>=99/s", "p99.9[1s]<1s"]);
        let labels = ["f/s".to_owned()];
        let figures = Figures { tally: &total, labels: &labels, rate: 100.0, requests: 100.0 };
        let judged = watch.judged(&figures);
        let passes: Vec<bool> = judged.iter().map(|judged| judged.pass).collect();
        // Fewer than 1,000 requests in a second cannot tell the last of 1,000.
        assert_eq!(passes, [true, false, true, true, false]);
        assert!(judged[1].value.unwrap() > 49.0 && judged[4].value.is_none(), "{judged:?}");
        assert_eq!(judged[3].value, Some(100.0));
        assert_eq!(watch.failed(&figures, SETTLED), Some("p50[1s]<10ms".to_owned()));
    }

    #[test]
    fn the_last_window_is_judged_if_its_time_has_passed() {
        // All sessions had ended a moment before the end: nothing was reported any more.
        for (end, value) in [(3 * SECOND, Some(7.0)), (3 * SECOND - 1, None)] {
            let mut watch = Watch::new(vec![Threshold::parse("rate[1s]>=9/s").unwrap()], &open(), 0);
            let mut tally = Tally::new(0);
            tally.sessions.started_in_time = 7;
            watch.add(&tally, 2 * SECOND, 3 * SECOND - 20_000_000, &[]);
            watch.finish(end, &[]);
            let figures = Figures { tally: &tally, labels: &[], rate: 0.0, requests: 0.0 };
            assert_eq!(watch.judged(&figures)[0].value, value);
        }
    }

    #[test]
    fn a_condition_over_the_whole_ends_no_run_in_its_first_seconds() {
        let (watch, total) = watched(&["mean<1ms"]);
        let labels = ["f/s".to_owned()];
        let figures = Figures { tally: &total, labels: &labels, rate: 100.0, requests: 100.0 };
        assert_eq!(watch.failed(&figures, SETTLED - 1), None);
        assert_eq!(watch.failed(&figures, SETTLED), Some("mean<1ms".to_owned()));
    }
}
