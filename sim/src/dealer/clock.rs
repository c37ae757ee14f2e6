//! The two clocks, as values. The business clock rules consent, idempotency, dates and appointments and can be frozen;
//! the traffic clock rules limits and waits, and nobody moves it.

use std::str::FromStr;

use jiff::Timestamp;

use crate::protocol::format;

/// What a call is told about time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Now {
    /// The business clock.
    pub business: Timestamp,
    /// The traffic clock, in nanoseconds since the dealer opened.
    pub traffic_ns: u64,
}

/// How the business clock runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ClockMode {
    /// With the machine's clock.
    Real,
    /// It stands at this instant.
    Frozen(Timestamp),
}

impl ClockMode {
    /// The business time when the machine's clock shows `machine`.
    pub fn business(self, machine: Timestamp) -> Timestamp {
        match self {
            ClockMode::Real => machine,
            ClockMode::Frozen(instant) => instant,
        }
    }

    /// Whether replies must repeat for a seed.
    pub fn is_frozen(self) -> bool {
        matches!(self, ClockMode::Frozen(_))
    }
}

/// A clock setting that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{given:?} is no clock; use \"real\", or an instant with offset such as 2026-01-01T12:00:00Z")]
pub struct BadClock {
    given: String,
}

impl FromStr for ClockMode {
    type Err = BadClock;

    fn from_str(given: &str) -> Result<ClockMode, BadClock> {
        if given == "real" {
            return Ok(ClockMode::Real);
        }
        instant(given).map(ClockMode::Frozen).ok_or_else(|| BadClock { given: given.to_owned() })
    }
}

/// The instant of an RFC 3339 text. The last day and a half of the year 9999, which a `Timestamp` does not reach, is its
/// last instant.
pub fn instant(text: &str) -> Option<Timestamp> {
    let (seconds, nanos) = format::date_time(text)?;
    Some(Timestamp::new(seconds, nanos as i32).unwrap_or(Timestamp::MAX))
}

/// RFC 3339 in UTC, to the second.
pub fn to_rfc3339(instant: Timestamp) -> String {
    Timestamp::from_second(instant.as_second()).unwrap_or(instant).to_string()
}
