//! Replays shopping scenarios against any Auto Agent Protocol endpoint and records latency that stays true when the
//! server stalls.

pub mod arrival;
mod attempt;
mod authorize;
mod base64;
mod basis;
pub mod cli;
mod collect;
mod command;
mod compare;
mod conditions;
pub mod conform;
mod deviation;
mod embedded;
mod endpoint;
mod envelope;
mod explain;
mod form;
mod import;
pub mod load;
mod merge;
mod metrics;
mod oauth;
pub mod outcome;
mod pacer;
mod process;
mod progress;
pub mod record;
mod recorder;
mod report;
mod results;
mod run;
pub mod scenario;
mod search;
mod session;
mod settings;
mod signals;
mod threshold;
pub mod transport;
mod units;
mod verdict;
mod worker;

pub use command::main;
