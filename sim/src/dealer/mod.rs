//! The business: the five skills, leads, idempotency, appointments, conversations and the clock. Knows nothing of A2A.

pub mod clock;
pub mod conversation;
pub mod diary;
pub mod ids;
pub mod leads;
pub mod limiter;
