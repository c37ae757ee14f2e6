//! Replays shopping scenarios against any Auto Agent Protocol endpoint and records latency that stays true when the
//! server stalls.

pub mod arrival;
pub mod cli;
mod collect;
mod command;
mod embedded;
mod endpoint;
mod envelope;
pub mod load;
pub mod outcome;
mod pacer;
mod process;
mod progress;
pub mod record;
mod recorder;
mod report;
mod run;
pub mod scenario;
mod session;
mod settings;
mod signals;
mod threshold;
pub mod transport;
mod units;
mod verdict;
mod worker;

pub use command::main;
