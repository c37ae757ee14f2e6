//! Scenarios: what a buyer does, written in YAML. A file is read, every fault of it reported at once with its place, and
//! compiled into a [`Workload`] of flows; a [`Session`] is one run of a flow.
//!
//! The way of a file: `yaml` (text to tree) and `draft` (outline), then `compile` and `functions` (expressions), `flows`
//! (steps) and `load` (all together). What runs is `workload`, `step`, `body` (requests) and `pointer` and `check`
//! (replies). Nothing here opens a socket, reads a clock or draws from an unseeded source.

mod ast;
mod body;
mod check;
mod compile;
mod draft;
mod draw;
mod expect;
mod explain;
mod expr;
mod fault;
mod feeder;
mod flows;
mod functions;
mod load;
mod mark;
mod members;
mod people;
mod pointer;
mod step;
mod workload;
mod yaml;

pub use check::CheckFailed;
pub use fault::{Fault, LoadError};
pub use load::load;
pub use step::{Item, ReplyParts, Session, Step, Think};
pub use workload::{Flow, Workload};
