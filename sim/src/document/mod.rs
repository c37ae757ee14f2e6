//! Input files that people write, in YAML or JSON: a text as a tree whose every key and value knows its place, and the
//! faults of it, all collected before the user sees any. Fault plans and scenarios are read with it.

pub mod fault;
pub mod members;
pub mod source;
pub mod units;
pub mod yaml;

pub use fault::{Fault, Faults, LoadError, Pos, Reporter, Source, quoted};
pub use yaml::{Kind, Limits, Node};
