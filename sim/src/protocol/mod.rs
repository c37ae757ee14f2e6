//! The wire, without I/O: JSON-RPC framing, A2A message and header rules, AAP payloads and errors, contracts and the
//! agent card. The only place that knows a code number, a URI or a media type.

pub mod contract;
pub mod skill;

pub use contract::{Contract, HeaderMode};
pub use skill::Skill;
