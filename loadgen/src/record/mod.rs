//! What is recorded: histograms per worker, added up each second, written as an interval log.

mod hlog;
mod latency;
mod tally;

pub use hlog::{IntervalLog, ReadError, read_totals};
pub use latency::{HIGHEST, Latency};
pub use tally::{SessionTally, StepTally, Tally};
