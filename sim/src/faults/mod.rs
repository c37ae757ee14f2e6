//! Faults: what may go wrong, when, and how it is done. Pure: facts and a seed in, a decision out; dispatch and the
//! server carry it out.
//!
//! The way of a fault: `plan` (text to rules) with `syntax` and `call` (effects), `when` and `sequence`; `decide` says what
//! touches a request; `engine` holds the rules in force; `repro` names a fault so that it can be had again.

pub mod call;
pub mod carried;
pub mod catalogue;
pub mod counters;
pub mod decide;
pub mod desk;
pub mod draw;
pub mod effect;
pub mod effects;
pub mod engine;
pub mod magic;
pub mod on_stream;
pub mod plan;
pub mod registry;
pub mod repro;
pub mod script;
pub mod sequence;
mod syntax;
pub mod when;

pub use call::{Action, Registry, parse_effects};
pub use carried::Carried;
pub use decide::{Applied, Decision, Facts, MagicHit, Trigger};
pub use desk::FaultDesk;
pub use draw::Draw;
pub use effect::{Apply, Args, Effect, EffectInfo, Slot};
pub(crate) use engine::Edit;
pub use engine::{EditError, Engine};
pub use plan::{Plan, Rule};
pub use registry::registry;
pub use repro::{Repro, explain};
pub use script::{Script, Step};
