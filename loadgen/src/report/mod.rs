//! What a run came to, for people and for scripts.

mod folder;
mod hgrm;
pub(crate) mod html;
mod junit;
mod series;
mod stored;
mod summary;
mod text;

pub(crate) use folder::{Folder, FolderError, write_page};
pub(crate) use html::{Page, page};
pub(crate) use series::{CLASSES, Second};
pub(crate) use stored::{Stored, StoredError};
pub(crate) use summary::Summary;
pub(crate) use text::write_text;

use std::collections::BTreeMap;

use dealer_sim::protocol::Binding;
use jiff::Timestamp;

use crate::basis::is_unanswered;
use crate::record::Tally;
use crate::threshold::Judged;
use crate::transport::ConnectionCounts;
use crate::verdict::Verdict;

/// The binding in a sentence, unless it is the one that goes without saying.
pub(crate) fn through(binding: &str) -> String {
    if binding == Binding::A2a.word() {
        String::new()
    } else {
        format!(" through {}", binding.to_ascii_uppercase())
    }
}

/// Everything that is known about a run after it.
#[derive(Debug, Clone)]
pub(crate) struct RunResult {
    pub(crate) scenario: String,
    pub(crate) endpoint: String,
    pub(crate) is_embedded: bool,
    pub(crate) contract: String,
    /// The binding spoken through, by its word.
    pub(crate) binding: String,
    pub(crate) seed: u64,
    pub(crate) started: Timestamp,
    /// The load, in the words of its flags.
    pub(crate) load: String,
    /// Whether it ended before its time, or has not ended yet.
    pub(crate) is_interrupted: bool,
    /// The threshold that ended it (`--abort-on-fail`).
    pub(crate) aborted: Option<String>,
    /// What must be equal for two results to be comparable, by name: the flags that shape the load.
    pub(crate) conditions: BTreeMap<String, String>,
    /// Of the scenario files and `--set`, in hexadecimal.
    pub(crate) scenario_sha256: String,
    /// The results that this one was merged from.
    pub(crate) parts: Vec<String>,
    pub(crate) verdict: Verdict,
    /// Sessions per second asked for.
    pub(crate) target_rate: Option<f64>,
    /// Sessions per second started in time.
    pub(crate) achieved_rate: f64,
    pub(crate) warmup_nanos: u64,
    pub(crate) measured_nanos: u64,
    pub(crate) workers: usize,
    pub(crate) cores: usize,
    pub(crate) cpu_nanos: Option<u64>,
    pub(crate) busiest_worker: Option<f64>,
    /// By the step's id.
    pub(crate) labels: Vec<String>,
    pub(crate) tally: Tally,
    /// Requests whose reply failed a check that the scenario does not expect to fail.
    pub(crate) checks_failed: u64,
    /// Each check of each step.
    pub(crate) checks: Vec<CheckResult>,
    pub(crate) connections: ConnectionCounts,
    pub(crate) thresholds: Vec<Judged>,
}

/// What became of one check of one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct CheckResult {
    /// `flow/step`.
    pub(crate) step: String,
    pub(crate) name: String,
    /// Replies that failed it.
    pub(crate) failed: u64,
    /// Whether the scenario expects that.
    pub(crate) is_expected: bool,
}

impl RunResult {
    /// Requests finished per second.
    pub(crate) fn requests_rate(&self) -> f64 {
        per_second(self.tally.finished(), self.measured_nanos)
    }

    /// That the dealer gave at least one HTTP reply, if the scenario expects any; else what happened, in a sentence.
    pub(crate) fn answered(&self) -> Result<(), String> {
        if !is_unanswered(&self.tally) {
            return Ok(());
        }
        let outcomes = self.tally.outcomes();
        let words: Vec<String> = outcomes.iter().map(|(label, count)| format!("{label} {count}")).collect();
        Err(format!("not one request got an HTTP reply from {}: {}", self.endpoint, words.join(", ")))
    }

    /// Requests in flight on average, from the time that each spent in flight within the measured time.
    pub(crate) fn mean_in_flight(&self) -> f64 {
        if self.measured_nanos == 0 { 0.0 } else { self.tally.busy_nanos as f64 / self.measured_nanos as f64 }
    }

    /// The same by Little's law, from what was recorded: requests per second times the mean of queue and service.
    pub(crate) fn little_in_flight(&self) -> f64 {
        let queue = self.tally.queue().mean().unwrap_or(0.0);
        let service = self.tally.service();
        // A request that never had a connection has no service time: the mean is over all requests.
        let finished = self.tally.finished().max(1) as f64;
        let service = service.mean().unwrap_or(0.0) * service.count() as f64 / finished;
        self.requests_rate() * (queue + service) / 1e9
    }
}

/// A count as a rate.
pub(crate) fn per_second(count: u64, nanos: u64) -> f64 {
    if nanos == 0 { 0.0 } else { count as f64 * 1e9 / nanos as f64 }
}

#[cfg(test)]
pub(crate) mod tests {
    use std::path::Path;
    use std::time::Duration;

    use super::*;

    /// A small result of a valid run.
    pub(crate) fn result() -> RunResult {
        let mut tally = Tally::new(1);
        let step = &mut tally.steps[0];
        for millis in 1..=1000u64 {
            step.response.record(millis * 100_000);
            step.service.record(millis * 90_000);
            step.queue.record(10_000);
        }
        (step.sent, step.ok, step.expected) = (1000, 1000, 1000);
        tally.sessions.scheduled = 1000;
        tally.sessions.on_time = 1000;
        tally.sessions.started = 1000;
        tally.sessions.finished = 1000;
        RunResult {
            scenario: "smoke".to_owned(),
            endpoint: "http://127.0.0.1:1/a2a".to_owned(),
            is_embedded: false,
            contract: "3.0".to_owned(),
            binding: "a2a".to_owned(),
            seed: 42,
            started: Timestamp::UNIX_EPOCH,
            load: "100/s constant for 10s".to_owned(),
            is_interrupted: false,
            aborted: None,
            conditions: BTreeMap::from([("rate".to_owned(), "100/s".to_owned())]),
            scenario_sha256: "00".to_owned(),
            parts: Vec::new(),
            verdict: Verdict { valid: true, reasons: Vec::new(), notes: Vec::new() },
            target_rate: Some(100.0),
            achieved_rate: 100.0,
            warmup_nanos: 0,
            measured_nanos: 10_000_000_000,
            workers: 1,
            cores: 2,
            cpu_nanos: Some(1_000_000),
            busiest_worker: Some(0.1),
            labels: vec!["search/search".to_owned()],
            tally,
            checks_failed: 0,
            checks: Vec::new(),
            connections: ConnectionCounts::default(),
            thresholds: Vec::new(),
        }
    }

    /// A folder of a run with these response times, second by second. Those that end in 0 nanoseconds failed.
    pub(crate) fn folder_of<'t>(
        path: &Path,
        change: impl FnOnce(&mut RunResult),
        seconds: impl Iterator<Item = &'t [u64]>,
    ) {
        let mut result = result();
        change(&mut result);
        let mut total = Tally::new(1);
        let mut folder = Folder::create(path, result.labels.clone(), result.started, "test").unwrap();
        for (second, times) in seconds.enumerate() {
            let mut tally = Tally::new(1);
            for &nanos in times {
                let step = &mut tally.steps[0];
                step.response.record(nanos);
                step.sent += 1;
                if nanos % 10 == 0 {
                    step.count_other("http.503");
                    step.record_other("http.503", nanos);
                } else {
                    (step.ok, step.expected) = (step.ok + 1, step.expected + 1);
                }
                tally.lag.record(50_000);
            }
            let start = Duration::from_secs(second as u64);
            folder.add(&tally, start, Duration::from_secs(1), 3).unwrap();
            total.add(&tally);
        }
        result.tally = total;
        folder.finish(&result).unwrap();
    }
}
