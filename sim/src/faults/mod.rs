//! Faults: what may go wrong, when, and how it is done. Pure: facts and a seed in, a decision out; dispatch and the
//! server carry it out.

pub mod draw;
pub mod effect;
pub mod effects;
pub mod registry;
pub mod script;

pub use draw::Draw;
pub use effect::{Apply, Args, Effect, EffectInfo, Slot};
pub use registry::registry;
pub use script::{Script, Step};
