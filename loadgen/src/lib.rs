//! Replays shopping scenarios against any Auto Agent Protocol endpoint and records latency that stays true when the
//! server stalls.
pub mod scenario;
