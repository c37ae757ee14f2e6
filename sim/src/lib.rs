//! A car dealer that does not exist: speaks the Auto Agent Protocol (AAP) over A2A 1.0 JSON-RPC, serves a synthetic
//! inventory of any size, and does both exactly.

pub mod dealer;
pub mod inventory;
pub mod protocol;
