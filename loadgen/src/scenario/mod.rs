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
//! | `exponential(mean=2s)` | in `think` and `pacing`: a length of time with this mean |
//! | `first_name()`, `last_name()`, `email()`, `phone()` | texts |
//!
//! What a flow does besides steps: `think: 2s` (a pause), `pacing: 10s` (a pause that ends 10 s after the session, or this
//! round of a loop, began), `loop: 3` or `loop: { while: "${more}", max: 20 }` with `do: [ … ]`, and `include: flow`.
//!
//! A step may say `retry` (`honour: server|fixed|exponential|none`, `max`, `delays`, `jitter`, `idempotency_key: keep|fresh`,
//! `on`). Each attempt is a request of its own, with its own outcome and latency; its intended time is the end of the one
//! before plus the wait. The step is what its last attempt was, `expect` speaks of that, and its `total` in the summary spans
//! all attempts. `raw` sends something else than the protocol asks for (`method`, `path`, `headers`, `envelope`, `body`,
//! `body_base64`); its connection is not used again.
//!
//! A feeder picks `sequential` (row n for session n, round and round), `random`, `unique` (each row once, then no more
//! sessions) or `shared` (one row for all sessions) rows. A `trace` lists the sessions themselves: when each starts, which flow
//! it runs, and values. All of it depends on the seed and the session's number alone, so that shards share the work without
//! speaking to each other.
//!
//! `now` and `consent` need the moment of sending: they stand in a `request`. A check compares with constants and names.
//! Variables are evaluated in the order written, each may use those before it. A name stands for what `--set` gives it,
//! else for what a step extracted, else for a feeder's row or column, else for its variable.
//!
//! The way of a file: `yaml` (text to tree) and `draft` (outline), then `compile` and `functions` (expressions), `flows`
//! (steps), `retry` and `raw`, and `load` (all together). What runs is `workload`, `cursor` (the way along a flow), `step`,
//! `body` (requests) and `pointer` and `check` (replies). Nothing here opens a socket, reads a clock or draws from an unseeded source.

pub(crate) mod agent;
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
pub use dealer_sim::document::{Fault, LoadError};
use dealer_sim::document::{fault, yaml};
pub(crate) use draft::MAX_LOOPS;
pub use load::load;
pub use raw::Replaced;
pub use retry::Word;
pub use step::{Item, ReplyParts, Session, Step, Think};
pub use workload::{Flow, Workload};
