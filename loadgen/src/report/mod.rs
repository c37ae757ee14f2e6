//! What a run came to, for people and for scripts.

mod folder;
mod hgrm;
mod series;
mod summary;
mod text;

pub(crate) use folder::{Folder, FolderError};
pub(crate) use summary::Summary;
pub(crate) use text::write_text;

use jiff::Timestamp;

use crate::record::Tally;
use crate::threshold::Judged;
use crate::transport::ConnectionCounts;
use crate::verdict::Verdict;

/// Everything that is known about a run after it.
#[derive(Debug)]
pub(crate) struct RunResult {
    pub(crate) scenario: String,
    pub(crate) endpoint: String,
    pub(crate) is_embedded: bool,
    pub(crate) contract: String,
    pub(crate) seed: u64,
    pub(crate) started: Timestamp,
    /// The load, in the words of its flags.
    pub(crate) load: String,
    pub(crate) is_interrupted: bool,
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
    pub(crate) connections: ConnectionCounts,
    pub(crate) thresholds: Vec<Judged>,
}

impl RunResult {
    /// Requests finished per second.
    pub(crate) fn requests_rate(&self) -> f64 {
        per_second(self.tally.finished(), self.measured_nanos)
    }

    /// Requests in flight on average, from the time that each spent in flight within the measured time.
    pub(crate) fn mean_in_flight(&self) -> f64 {
        if self.measured_nanos == 0 { 0.0 } else { self.tally.busy_nanos as f64 / self.measured_nanos as f64 }
    }

    /// The same by Little's law, from what was recorded: requests per second times the mean of queue and service.
    pub(crate) fn little_in_flight(&self) -> f64 {
        let queue = self.tally.queue.mean().unwrap_or(0.0);
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
