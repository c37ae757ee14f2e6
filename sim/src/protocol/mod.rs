//! The wire, without I/O: JSON-RPC framing, A2A message and header rules, AAP payloads and errors, contracts and the
//! agent card. The only place that knows a code number, a URI or a media type.

pub mod accept;
pub mod binding;
pub mod call;
pub mod card;
pub mod contract;
pub mod discovery;
pub mod error;
pub mod format;
pub mod headers;
pub mod json;
pub mod mcp;
pub mod merge;
pub mod pap;
pub mod payload;
pub mod schema;
pub mod shape;
pub mod skill;
pub mod validate;
pub mod write;

pub use binding::{Binding, Bindings};
pub use contract::{Contract, HeaderMode};
pub use skill::Skill;
