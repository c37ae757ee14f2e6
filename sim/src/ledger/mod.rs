//! Records of leads, so that a dealer that was killed knows the leads that it acknowledged: what a record is, how a file of them is
//! read, and which of them are written. No file is touched here; `server::leads_file` does that.
//!
//! A skill enters a record where it stores the lead, under the same lock, so that records are in the order in which leads are
//! stored. What it gets is a ticket; the reply goes out when the ticket is settled. A repeated lead is answered with the
//! ticket of the first one, so that nobody hears of a lead that a crash may still take away.

mod reader;
mod record;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use tokio::sync::{Notify, watch};

pub use reader::{ReadError, Reader, Torn};
pub use record::{BadRecord, Entry, LeadEntry, Record};

/// Bytes of records that wait to be written; beyond them no lead is taken.
pub const MAX_WAITING: usize = 64 << 20;

/// A record that a reply has to wait for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket(u64);

impl Ticket {
    /// That of every record which was in the file at the start: all of them are settled together.
    pub const KNOWN: Ticket = Ticket(1);
}

/// A record could not be written; it will be tried again, but nobody waits for that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the leads file cannot be written")]
pub struct NotWritten;

/// The records of a process on their way to the file.
#[derive(Debug)]
pub struct Ledger {
    waiting: Mutex<Waiting>,
    /// Something waits, or nothing more will come.
    came: Notify,
    state: watch::Sender<State>,
    /// What was counted.
    pub counts: Counts,
}

/// What was counted of a ledger.
#[derive(Debug, Default)]
pub struct Counts {
    /// Leads known from before the start.
    pub recovered: AtomicU64,
    /// Records of dealers that are not served, passed over at the start.
    pub passed_over: AtomicU64,
    /// Bytes of a torn record, cut off at the start.
    pub torn_bytes: AtomicU64,
    /// Records written.
    pub written: AtomicU64,
    /// Times that the file was synced.
    pub synced: AtomicU64,
    /// Attempts to write or sync that failed.
    pub failed: AtomicU64,
}

#[derive(Debug, Default)]
struct Waiting {
    lines: Vec<u8>,
    last: u64,
    /// The last of those that were in the file at the start.
    known: u64,
    is_closed: bool,
}

#[derive(Debug, Clone, Copy, Default)]
struct State {
    /// All up to this one are as safe as they are to be.
    settled: u64,
    is_failing: bool,
}

impl Default for Ledger {
    fn default() -> Ledger {
        Ledger {
            waiting: Mutex::default(),
            came: Notify::new(),
            state: watch::Sender::new(State::default()),
            counts: Counts::default(),
        }
    }
}

impl Ledger {
    fn waiting(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Goes on behind so many records, which are in the file already, though maybe not yet on the disk.
    pub fn go_on_after(&self, records: u64) {
        let mut waiting = self.waiting();
        (waiting.last, waiting.known) = (records, records);
    }

    /// The records that were in the file at the start are as safe as they are to be.
    pub fn settle_known(&self) {
        let known = self.waiting().known;
        self.state
            .send_modify(|state| *state = State { settled: state.settled.max(known), is_failing: false });
    }

    /// Whether another lead can be taken: the file can be written, and not too much waits for it.
    pub fn is_open(&self) -> bool {
        !self.state.borrow().is_failing && self.waiting().lines.len() < MAX_WAITING
    }

    /// Has a record written.
    pub fn enter(&self, dealer: &str, entry: &Entry<'_>) -> Ticket {
        let mut waiting = self.waiting();
        waiting.last += 1;
        let number = waiting.last;
        record::write_line(&mut waiting.lines, number, dealer, entry);
        drop(waiting);
        self.came.notify_one();
        Ticket(number)
    }

    /// The ticket of the record that was entered last.
    pub fn last(&self) -> Ticket {
        Ticket(self.waiting().last)
    }

    /// Waits until a record is as safe as it is to be.
    ///
    /// # Errors
    /// When it could not be written. It may be later, but not now.
    pub async fn settled(&self, ticket: Ticket) -> Result<(), NotWritten> {
        let mut states = self.state.subscribe();
        let state = states.wait_for(|state| state.settled >= ticket.0 || state.is_failing).await;
        match state.is_ok_and(|state| state.settled >= ticket.0) {
            true => Ok(()),
            false => Err(NotWritten),
        }
    }

    /// Waits for records and appends their lines to `batch`; the number of the last of them, or nothing when no more will come.
    pub async fn next_batch(&self, batch: &mut Vec<u8>) -> Option<u64> {
        loop {
            if let Some(last) = self.take_waiting(batch) {
                return Some(last);
            }
            if self.is_closed() {
                return None;
            }
            self.came.notified().await;
        }
    }

    /// Appends the lines of what waits to `batch`; the number of the last of them, if there are any.
    pub fn take_waiting(&self, batch: &mut Vec<u8>) -> Option<u64> {
        let mut waiting = self.waiting();
        let is_any = !waiting.lines.is_empty();
        batch.append(&mut waiting.lines);
        is_any.then_some(waiting.last)
    }

    /// Everything up to this record is as safe as it is to be.
    pub fn settle(&self, last: u64) {
        let before = self.state.borrow().settled.max(self.waiting().known);
        self.counts.written.fetch_add(last.saturating_sub(before), Ordering::Relaxed);
        self.state.send_modify(|state| *state = State { settled: last, is_failing: false });
    }

    /// What waits cannot be written: nobody waits for it any longer, and no lead is taken until it is written after all.
    pub fn fail(&self) {
        self.counts.failed.fetch_add(1, Ordering::Relaxed);
        self.state.send_modify(|state| state.is_failing = true);
    }

    /// No more records will come.
    pub fn close(&self) {
        self.waiting().is_closed = true;
        self.came.notify_one();
    }

    /// Whether no more records will come.
    pub fn is_closed(&self) -> bool {
        self.waiting().is_closed
    }
}

#[cfg(test)]
mod tests {
    use super::record::tests::lead;
    use super::*;

    #[tokio::test]
    async fn a_ticket_is_settled_in_order_and_what_fails_keeps_nobody_waiting() {
        let ledger = Ledger::default();
        ledger.go_on_after(5);
        let (first, second) = (ledger.enter("d", &lead("a")), ledger.enter("d", &Entry::Reset));
        let mut batch = Vec::new();
        assert_eq!(ledger.next_batch(&mut batch).await, Some(7));
        assert!(batch.starts_with(b"{\"n\":6,"));
        let waits = ledger.settled(second);
        ledger.settle(7);
        assert_eq!((waits.await, ledger.settled(first).await), (Ok(()), Ok(())));
        let third = ledger.enter("d", &Entry::Reset);
        ledger.fail();
        assert!(!ledger.is_open());
        assert_eq!(ledger.settled(third).await, Err(NotWritten));
        assert_eq!(ledger.settled(second).await, Ok(()));
        assert_eq!(ledger.next_batch(&mut batch).await, Some(8));
        ledger.settle(8);
        assert!(ledger.is_open());
        assert_eq!(ledger.settled(third).await, Ok(()));
        ledger.close();
        assert_eq!(ledger.next_batch(&mut batch).await, None);
        assert_eq!(ledger.counts.written.load(Ordering::Relaxed), 3);
    }

    #[test]
    fn what_waits_is_bounded() {
        let ledger = Ledger::default();
        let long = "x".repeat(MAX_WAITING / 4);
        let entries = (0..).take_while(|_| ledger.is_open()).map(|_| ledger.enter(&long, &Entry::Reset));
        assert_eq!(entries.count(), 4);
    }
}
