//! A delivery script: what the rim does with the bytes of a reply.

use std::time::Duration;

/// One step of a delivery.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Step {
    /// Write the next `n` bytes of the reply; `u64::MAX` writes what is left.
    Write(u64),
    /// Write the rest in pieces of `bytes`, one every `every`.
    Drip {
        /// Bytes of a piece.
        bytes: u64,
        /// Time between pieces.
        every: Duration,
    },
    /// Wait.
    Wait(Duration),
    /// Read and write nothing more, and keep the connection open until the peer or a stop ends it.
    Silence,
    /// Send FIN and close.
    Close,
    /// Close the sending side alone and keep reading.
    HalfClose,
    /// Close with RST (`SO_LINGER` 0).
    Reset,
}

/// The steps of a delivery, in order. A script without `Close` or `Reset` leaves the connection to HTTP.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Script {
    /// The steps.
    pub steps: Vec<Step>,
}
