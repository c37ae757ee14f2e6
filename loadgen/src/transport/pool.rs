//! The connections of one worker: who may open one, who waits for one, which are idle.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use tokio::sync::oneshot;

use super::exchange::Wire;

/// What a worker's connections have been through.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ConnectionCounts {
    /// Opened.
    pub opened: u64,
    /// Attempts that failed.
    pub failed: u64,
    /// Closed or made unusable by the server while idle; found before a request was sent on them.
    pub closed_idle: u64,
    /// Ended by the server with a reply or instead of one.
    pub closed_by_server: u64,
    /// Ended here, because their share of requests was used up.
    pub retired: u64,
    /// The most open at one time, as the sum over the workers.
    pub peak: u64,
}

impl ConnectionCounts {
    /// Adds another worker's counts.
    pub fn add(&mut self, other: &ConnectionCounts) {
        self.opened += other.opened;
        self.failed += other.failed;
        self.closed_idle += other.closed_idle;
        self.closed_by_server += other.closed_by_server;
        self.retired += other.retired;
        self.peak += other.peak;
    }
}

/// The right to hold one open connection. Dropping it lets the next one in line open its own.
#[derive(Debug)]
pub(super) struct Slot {
    inner: Rc<RefCell<Inner>>,
    armed: bool,
}

/// What someone who needs a connection gets, with the right to hold it open.
#[derive(Debug)]
pub(super) struct Ticket {
    /// An idle connection; without one, a new one is to be opened.
    pub(super) wire: Option<Wire>,
    pub(super) slot: Slot,
}

#[derive(Debug)]
struct Inner {
    idle: Vec<Wire>,
    /// Connections in use, idle, and being opened.
    open: usize,
    limit: usize,
    /// Each is sent an idle connection, or `None` for the right to open one. Neither carries a [`Slot`]: one that is lost
    /// on the way because the run has ended needs no care.
    waiting: VecDeque<oneshot::Sender<Option<Wire>>>,
    counts: ConnectionCounts,
}

/// A worker's pool.
#[derive(Debug)]
pub(super) struct Pool {
    inner: Rc<RefCell<Inner>>,
}

impl Pool {
    /// A pool of at most `limit` connections.
    pub(super) fn new(limit: usize) -> Pool {
        Pool {
            inner: Rc::new(RefCell::new(Inner {
                idle: Vec::new(),
                open: 0,
                limit: limit.max(1),
                waiting: VecDeque::new(),
                counts: ConnectionCounts::default(),
            })),
        }
    }

    /// An idle connection, or the right to open one; waits, first come first served, when there is neither.
    pub(super) async fn take(&self) -> Ticket {
        let receiver = {
            let mut inner = self.inner.borrow_mut();
            if let Some(wire) = inner.try_take() {
                return Ticket { wire, slot: self.slot() };
            }
            let (sender, receiver) = oneshot::channel();
            inner.waiting.push_back(sender);
            receiver
        };
        // The sender is only dropped with the pool, when nobody waits any more.
        let Ok(wire) = receiver.await else { return std::future::pending().await };
        let slot = self.slot();
        let wire = wire.filter(|wire| {
            let quiet = wire.is_quiet();
            if !quiet {
                self.inner.borrow_mut().counts.closed_idle += 1;
            }
            quiet
        });
        Ticket { wire, slot }
    }

    /// Puts a usable connection back, or hands it to who has waited longest.
    pub(super) fn put(&self, wire: Wire, mut slot: Slot) {
        slot.armed = false;
        let mut inner = self.inner.borrow_mut();
        let mut wire = Some(wire);
        while let Some(next) = inner.waiting.pop_front() {
            match next.send(wire) {
                Ok(()) => return,
                // Whoever waited has given up.
                Err(returned) => wire = returned,
            }
        }
        inner.idle.extend(wire);
    }

    /// Changes the counts.
    pub(super) fn count(&self, change: impl FnOnce(&mut ConnectionCounts)) {
        change(&mut self.inner.borrow_mut().counts);
    }

    /// The counts so far.
    pub(super) fn counts(&self) -> ConnectionCounts {
        self.inner.borrow().counts
    }

    fn slot(&self) -> Slot {
        Slot { inner: Rc::clone(&self.inner), armed: true }
    }
}

impl Inner {
    /// `Some(None)` is the right to open a connection.
    fn try_take(&mut self) -> Option<Option<Wire>> {
        // The most recently used first: the others may reach the server's idle limit, as they should.
        while let Some(wire) = self.idle.pop() {
            if wire.is_quiet() {
                return Some(Some(wire));
            }
            self.counts.closed_idle += 1;
            self.open -= 1;
        }
        if self.open < self.limit {
            self.open += 1;
            self.counts.peak = self.counts.peak.max(self.open as u64);
            return Some(None);
        }
        None
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        if !self.armed {
            return;
        }
        let mut inner = self.inner.borrow_mut();
        while let Some(next) = inner.waiting.pop_front() {
            if next.send(None).is_ok() {
                return;
            }
        }
        inner.open -= 1;
    }
}
