//! The two clocks, as values. The business clock rules consent, idempotency, dates and appointments and can be frozen;
//! the traffic clock rules limits and waits, and nobody moves it.

use std::str::FromStr;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::{SignedDuration, Timestamp};

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

/// The last second at which a business clock can be put: there are no models to sell after it.
pub const LAST: Timestamp = Timestamp::constant(4_102_444_799, 0);

/// A dealer's business clock: how it runs, and how far it was moved. A real clock that was moved goes on running; a frozen one
/// stands where it was put.
#[derive(Debug)]
pub struct Clock {
    mode: ClockMode,
    /// Microseconds by which it was moved. One number, so that a reader needs no lock.
    moved_us: AtomicI64,
}

/// Why a clock was not moved.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MoveError {
    /// Time does not go back.
    #[error("the clock shows {now} and is not put back to {to}; POST /reset begins anew")]
    Backwards {
        /// What it shows.
        now: String,
        /// What was wanted.
        to: String,
    },
    /// There is no stock for such a day.
    #[error("the clock cannot be put beyond {}", to_rfc3339(LAST))]
    TooFar,
}

/// Where a clock is to be moved.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Move {
    /// By so much.
    Advance(SignedDuration),
    /// To this instant.
    Set(Timestamp),
}

impl Clock {
    /// A clock that was not moved yet.
    pub fn new(mode: ClockMode) -> Clock {
        Clock { mode, moved_us: AtomicI64::new(0) }
    }

    /// `real` or `frozen`.
    pub fn word(&self) -> &'static str {
        if self.mode.is_frozen() { "frozen" } else { "real" }
    }

    fn moved(&self) -> SignedDuration {
        SignedDuration::from_micros(self.moved_us.load(Ordering::Acquire))
    }

    /// The time on this clock, when `now` is that of one that was never moved.
    pub fn read(&self, now: Now) -> Now {
        let business = now.business.checked_add(self.moved()).unwrap_or(Timestamp::MAX);
        Now { business, ..now }
    }

    /// Where a move leads, if it is forward; `now` is that of a clock that was never moved.
    ///
    /// # Errors
    /// When it is backwards, or beyond [`LAST`].
    pub fn target(&self, now: Now, to: Move) -> Result<Timestamp, MoveError> {
        let shown = self.read(now).business;
        let target = match to {
            Move::Advance(by) => shown.checked_add(by).map_err(|_| MoveError::TooFar)?,
            Move::Set(instant) => instant,
        };
        if target < shown {
            let (now, to) = (to_rfc3339(shown), to_rfc3339(target));
            return Err(MoveError::Backwards { now, to });
        }
        if target > LAST { Err(MoveError::TooFar) } else { Ok(target) }
    }

    /// Has the clock show `target` when one that was never moved shows `now`.
    pub fn put(&self, now: Now, target: Timestamp) {
        let moved = target.duration_since(now.business).as_micros();
        self.moved_us.store(i64::try_from(moved).unwrap_or(i64::MAX), Ordering::Release);
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
