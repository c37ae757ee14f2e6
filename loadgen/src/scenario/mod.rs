//! Scenarios: what a buyer does, written in YAML. A file is read, every fault of it reported at once with its place, and
//! compiled into a [`Workload`] of flows; a [`Session`] is one run of a flow.
//!
//! ```yaml
//! name: shopping
//! variables: { budget: "${uniform(15000, 40000)}" }
//! flows:
//!   browse:
//!     - step: search
//!       skill: inventory.search
//!       request: { filters: { condition: [used], price_max: "${budget}" } }
//!       extract: { vin: /data/vehicles/0/vin }
//!       check: [ { path: /data/total, gte: 1 } ]
//!       expect: [ ok, check.data_total ]
//!     - think: lognormal(p50=200ms, p99=1500ms)
//!     - step: detail
//!       skill: inventory.vehicle
//!       when: "${vin}"
//!       request: { vin: "${vin}" }
//! ```
//!
//! `${…}` holds a name with a path (`${rows.email}`, `${list[0]}`), a constant, or a call:
//!
//! | Function | Gives |
//! |---|---|
//! | `uniform(a, b)` | a number from a to b; an integer, both included, if both are |
//! | `lognormal(p50=a, p99=b)` | a number with this median and 99th percentile; an integer if both are |
//! | `pick(a, b, …)`, `pick(list)` | one of them |
//! | `int(x)` | x as an integer, fraction cut off; null if it is none |
//! | `uuid()`, `vin()` | a version 4 UUID; a VIN with a right check digit that no vehicle bears |
//! | `now()`, `now(+48h)`, `now(-5m)`, `now(uniform(24h, 72h))` | a time in UTC, RFC 3339 |
//! | `buyer()`, `buyer(prefers=email)` | a Customer of lead.submit |
//! | `consent()`, `consent(email, phone)` | a ConsentGrant given a little before; without arguments for all three channels |
//! | `first_name()`, `last_name()`, `email()`, `phone()` | texts |
//!
//! `now` and `consent` need the moment of sending: they stand in a `request`. A check compares with constants and names.
//! Variables are evaluated in the order written, each may use those before it. A name stands for what `--set` gives it,
//! else for what a step extracted, else for a feeder's row or column, else for its variable.
//!
//! The way of a file: `yaml` (text to tree) and `draft` (outline), then `compile` and `functions` (expressions), `flows`
//! (steps) and `load` (all together). What runs is `workload`, `step`, `body` (requests) and `pointer` and `check`
//! (replies). Nothing here opens a socket, reads a clock or draws from an unseeded source.

mod ast;
mod body;
mod check;
mod compile;
mod cursor;
mod draft;
mod draw;
mod expect;
mod explain;
mod expr;
mod feeder;
mod flows;
mod functions;
mod load;
mod mark;
mod members;
mod people;
mod pointer;
mod raw;
mod retry;
mod step;
mod trace;
mod workload;

pub use check::CheckFailed;
pub use cursor::Loop;
pub(crate) use draft::MAX_LOOPS;
pub use dealer_sim::document::{Fault, LoadError};
use dealer_sim::document::{fault, yaml};
pub use load::load;
pub(crate) use raw::merge_patch;
pub use raw::Replaced;
pub use retry::Word;
pub use step::{Item, ReplyParts, Session, Step, Think};
pub use workload::{Flow, Workload};
