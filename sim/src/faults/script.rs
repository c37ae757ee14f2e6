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
    /// Write the reply's head up to and including its blank line, without the fields of one name and with further lines:
    /// [`edit_head`].
    Head {
        /// The field to leave out, in any letter case; empty leaves none out.
        without: &'static str,
        /// Whole lines to add, each with its line end.
        with: &'static str,
    },
    /// Write these bytes, which are not of the reply.
    WriteRaw(&'static [u8]),
    /// Leave the next `n` bytes of the reply out; `u64::MAX` leaves out what is left.
    Skip(u64),
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

impl Script {
    /// Whether nothing can follow it on its connection.
    pub fn ends(&self) -> bool {
        let last = self.steps.last();
        matches!(last, Some(Step::Silence | Step::Close | Step::HalfClose | Step::Reset))
    }
}

/// A reply's head without the fields of one name and with further lines before its blank line. `head` ends with the blank
/// line; what does not is returned as it is.
///
/// ```
/// use dealer_sim::faults::script::edit_head;
/// let head = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";
/// let edited = edit_head(head, "content-length", "content-length: 9\r\n");
/// assert_eq!(edited, b"HTTP/1.1 200 OK\r\ncontent-length: 9\r\n\r\n");
/// ```
pub fn edit_head(head: &[u8], without: &str, with: &str) -> Vec<u8> {
    let Some(lines) = head.strip_suffix(b"\r\n") else { return head.to_vec() };
    let mut out = Vec::with_capacity(head.len() + with.len());
    for line in lines.split_inclusive(|byte| *byte == b'\n') {
        let name = line.split(|byte| *byte == b':').next().unwrap_or_default();
        if without.is_empty() || !name.eq_ignore_ascii_case(without.as_bytes()) {
            out.extend_from_slice(line);
        }
    }
    out.extend_from_slice(with.as_bytes());
    out.extend_from_slice(b"\r\n");
    out
}
