//! What is recorded: histograms per worker, added up each second, written as an interval log.

mod hlog;
mod latency;
mod tally;

pub use hlog::{IntervalLog, ReadError, read_totals};
pub(crate) use hlog::{Line, RESPONSE, read_lines};
pub use latency::{HIGHEST, Latency};
pub use tally::{AfterEnd, SessionTally, StepTally, Tally};
