//! The journal: what was asked, answered and delivered, as evidence for people, checks and reports.
//!
//! A worker writes each call once, after its delivery, into a shard of its own; nobody else takes that shard's lock but
//! a reader, for the time of a small copy. Bytes are kept as they came and become JSON only when read. The journal is
//! bounded in entries and bytes, and every entry has the number after the last one's, so that whatever is missing
//! can be counted.

mod entry;
mod exchange;
mod filter;
mod matching;
mod notes;
mod redact;
mod ring;
mod stream;
mod verify;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

pub use entry::{Delivered, Entry, Fault, Page, Said};
pub use exchange::{Body, Client, Delivery, DeliveryState, Exchange, FaultMark, Head, Outcome, Sent};
pub(crate) use filter::decoded;
pub use filter::{BadFilter, DEFAULT_LIMIT, Filter, MAX_LIMIT};
pub use matching::{Difference, Match};
pub use notes::{Notes, Pending, Told};
pub use redact::{Marks, Redactor};
pub use stream::Subscriber;
pub use verify::{BadQuery, Demand, Finding, NearMiss, Query, Verdict, verify};

use entry::key_of;
use ring::{Record, Ring, View};

/// Bytes of a text (an identifier, a name, a fault's repro) that are kept.
pub const MAX_TEXT: usize = 512;
/// Faults of one call that are kept.
pub const MAX_FAULTS: usize = 16;
/// What a reader copies before it lets the shard's writer go on.
const READ_ENTRIES: usize = 64;
const READ_SCANNED: usize = 2048;
const READ_BYTES: usize = 256 << 10;

fn bounded(text: &[u8]) -> &[u8] {
    &text[..text.len().min(MAX_TEXT)]
}

/// How much the journal keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Entries kept: the newest this many, over all shards. 0 keeps none.
    pub entries: u64,
    /// Bytes of texts and bodies kept, shared out evenly over the shards. An entry's fixed facts come on top: less than
    /// 300 bytes each.
    pub bytes: usize,
    /// Bytes kept of a request's body; the rest is cut, and the entry says so.
    pub request_bytes: usize,
    /// Bytes kept of a reply's body. Copying it is most of what a record costs.
    pub reply_bytes: usize,
}

impl Limits {
    /// Keeps nothing: the journal is switched off.
    pub const OFF: Limits = Limits { entries: 0, bytes: 0, request_bytes: 0, reply_bytes: 0 };

    /// Whether anything can be kept.
    pub fn is_on(&self) -> bool {
        self.entries > 0
    }
}

impl Default for Limits {
    fn default() -> Limits {
        Limits { entries: 10_000, bytes: 64 << 20, request_bytes: 16 << 10, reply_bytes: 1 << 10 }
    }
}

/// What happened to all that was recorded since the last clearing; `kept + dropped = recorded` while nobody records.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Totals {
    /// Calls recorded.
    pub recorded: u64,
    /// Entries that can be read.
    pub kept: u64,
    /// Entries that no longer fit.
    pub dropped: u64,
    /// Bytes of texts and bodies held.
    pub bytes: u64,
}

/// Keeps one shard's lock off its neighbours' cache lines.
#[derive(Debug)]
#[repr(align(128))]
struct Cell {
    ring: Mutex<Ring>,
    /// Odd while the shard's writer hands bytes to the network that it will record before it does anything else.
    writing: AtomicU64,
}

impl Cell {
    fn lock(&self) -> MutexGuard<'_, Ring> {
        // A ring is sound after every statement of `push`: what a panic left behind is at worst one record short.
        self.ring.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until what is being written now is recorded. A client that has its reply and asks for the entry must find it,
    /// though its writer may have lost the processor between the two.
    fn await_writer(&self) {
        /// A writer that is gone for longer than this is not waited for.
        const MOST_YIELDS: u32 = 1 << 20;
        let seen = self.writing.load(Ordering::SeqCst);
        if seen.is_multiple_of(2) {
            return;
        }
        for _ in 0..MOST_YIELDS {
            if self.writing.load(Ordering::SeqCst) != seen {
                return;
            }
            std::thread::yield_now();
        }
    }
}

/// The journal of a process.
#[derive(Debug)]
pub struct Journal {
    cells: Vec<Cell>,
    limits: Limits,
    redactor: Option<Redactor>,
    /// The number that the next entry gets; the first is 1.
    next: AtomicU64,
    /// The number of the last entry that was cleared away on request.
    cleared: AtomicU64,
}

/// A writer's own part of the journal.
#[derive(Debug, Clone)]
pub struct Shard {
    journal: Arc<Journal>,
    at: usize,
}

impl Shard {
    /// Records a call, once it is known what its client got. Returns its number.
    pub fn record(&self, exchange: &Exchange<'_>) -> u64 {
        match &self.journal.redactor {
            None => self.push(exchange),
            Some(redactor) => self.push_redacted(exchange, redactor),
        }
    }

    /// Records a call without the people in it.
    fn push_redacted(&self, exchange: &Exchange<'_>, redactor: &Redactor) -> u64 {
        let (request, marks) = redactor.request(exchange.request.body);
        let reply = redactor.reply(exchange.reply.body, &marks);
        let text = |text| redactor.text(&marks.applied(text)).into_owned();
        let (conversation, message_id) = (text(exchange.conversation), text(exchange.message_id));
        let named = |bytes| redactor.text(&String::from_utf8_lossy(bytes)).into_owned();
        let program;
        let client = match exchange.client {
            Client::Named(name) => {
                program = named(name);
                Client::Named(program.as_bytes())
            }
            Client::Origin { address, program: given } => {
                program = named(given);
                Client::Origin { address, program: program.as_bytes() }
            }
            credential @ Client::Credential(_) => credential,
        };
        self.push(&Exchange {
            client,
            conversation: &conversation,
            message_id: &message_id,
            // From here on nobody can work it out.
            key: exchange.key.or_else(|| {
                key_of(exchange.binding?, exchange.dealer, exchange.skill?, exchange.request.body)
            }),
            request: exchange.request.replaced_by(&request),
            reply: exchange.reply.replaced_by(&reply),
            ..*exchange
        })
    }

    fn push(&self, exchange: &Exchange<'_>) -> u64 {
        let mut ring = self.journal.cells[self.at].lock();
        // Numbered under the shard's lock: a reader that saw a number given, and then gets the lock, sees its entry.
        let seq = self.journal.next.fetch_add(1, Ordering::SeqCst);
        ring.push(seq, exchange);
        seq
    }

    /// What its journal keeps.
    pub fn limits(&self) -> Limits {
        self.journal.limits
    }

    /// Says that bytes are about to go out; readers wait until [`Shard::end_writing`]. The writer must not wait in between.
    pub fn begin_writing(&self) {
        let writing = &self.journal.cells[self.at].writing;
        // One writer a shard: nobody else changes it. A second one, if there is, only makes readers wait less.
        // What goes out is handed to the kernel behind it, and a client that has it got it from the kernel.
        writing.store(writing.load(Ordering::Relaxed) | 1, Ordering::Release);
    }

    /// Says that what went out is recorded, or goes on later.
    pub fn end_writing(&self) {
        let writing = &self.journal.cells[self.at].writing;
        let now = writing.load(Ordering::Relaxed);
        writing.store(now + (now & 1), Ordering::Release);
    }
}

/// A record copied out of its ring.
struct Copied {
    record: Record,
    bytes: Vec<u8>,
}

impl Copied {
    fn to_entry(&self) -> Entry {
        Entry::of(View { record: &self.record, bytes: &self.bytes })
    }
}

fn in_order(found: &mut [Copied]) {
    found.sort_unstable_by_key(|copied| copied.record.seq);
}

impl Journal {
    /// A journal for this many writers (at least one).
    pub fn new(limits: Limits, writers: usize) -> Arc<Journal> {
        Journal::redacting(limits, writers, None)
    }

    /// The same, without the people in what is asked and answered, if a redactor is given.
    pub fn redacting(limits: Limits, writers: usize, redactor: Option<Redactor>) -> Arc<Journal> {
        let writers = writers.max(1);
        let share = limits.bytes / writers;
        let cells = (0..writers)
            .map(|_| Cell { ring: Mutex::new(Ring::new(&limits, share)), writing: AtomicU64::new(0) })
            .collect();
        let (next, cleared) = (AtomicU64::new(1), AtomicU64::new(0));
        Arc::new(Journal { cells, limits, redactor, next, cleared })
    }

    /// The shard of a writer. Writers beyond the number given to [`Journal::new`] share shards, and wait for each other.
    pub fn shard(self: &Arc<Journal>, writer: usize) -> Shard {
        Shard { journal: self.clone(), at: writer % self.cells.len() }
    }

    /// What takes people out of what it keeps, if anything does.
    pub fn redactor(&self) -> Option<&Redactor> {
        self.redactor.as_ref()
    }

    /// What it may keep.
    pub fn limits(&self) -> Limits {
        self.limits
    }

    /// Whether it keeps anything.
    pub fn is_on(&self) -> bool {
        self.limits.is_on()
    }

    /// Answers whether the dealer was asked what it should have been asked.
    pub fn verify(&self, query: &Query) -> Verdict {
        verify(&self.all(query.after), query)
    }

    /// Forgets all entries; they do not count as dropped. Numbers go on.
    pub fn clear(&self) {
        // All locks at once, in their order, so that no call is recorded half before and half after. A writer holds
        // one lock and waits for none.
        let mut rings: Vec<_> = self.cells.iter().map(Cell::lock).collect();
        self.cleared.store(self.next.load(Ordering::SeqCst) - 1, Ordering::SeqCst);
        rings.iter_mut().for_each(|ring| ring.clear());
    }

    /// The number below which every entry is written or dropped, and the number above which entries are in the window.
    fn bounds(&self) -> (u64, u64) {
        let end = self.next.load(Ordering::SeqCst);
        let cleared = self.cleared.load(Ordering::SeqCst);
        (end, cleared.max((end - 1).saturating_sub(self.limits.entries)))
    }

    /// What happened to all that was recorded since the last clearing.
    pub fn totals(&self) -> Totals {
        let (_, floor) = self.bounds();
        let mut totals = Totals::default();
        for cell in &self.cells {
            let ring = cell.lock();
            let outdated = ring.count_to(floor);
            totals.kept += ring.len() as u64 - outdated;
            totals.dropped += ring.dropped + outdated;
            totals.bytes += ring.held;
        }
        totals.recorded = totals.kept + totals.dropped;
        totals
    }

    /// Waits until what is being written now is recorded: a client that has its reply finds its entry.
    pub fn settle(&self) {
        self.cells.iter().for_each(Cell::await_writer);
    }

    /// The entries that a filter admits, oldest first, up to its limit.
    pub fn query(&self, filter: &Filter) -> Page {
        self.read(filter, filter.limit.clamp(1, MAX_LIMIT))
    }

    /// Every entry numbered above `after`.
    pub fn all(&self, after: u64) -> Page {
        self.read(&Filter { after, ..Filter::default() }, usize::MAX)
    }

    fn read(&self, filter: &Filter, limit: usize) -> Page {
        self.settle();
        let (end, floor) = self.bounds();
        // A number that was not given yet comes from before a restart: its reader has seen all there is.
        let after = filter.after.min(end - 1).max(floor);
        let (mut found, mut dropped, mut complete_after) = (Vec::new(), 0, 0);
        for cell in &self.cells {
            self.read_shard(cell, filter, (after, end), limit, &mut found);
            let ring = cell.lock();
            dropped += ring.dropped + ring.count_to(floor);
            complete_after = complete_after.max(ring.dropped_to);
        }
        if floor > self.cleared.load(Ordering::SeqCst) {
            complete_after = complete_after.max(floor);
        }
        in_order(&mut found);
        // What was not looked at begins after the last entry given; else everything up to `end` was.
        let next = if found.len() >= limit { found[limit - 1].record.seq } else { end - 1 };
        found.truncate(limit);
        Page { entries: found.iter().map(Copied::to_entry).collect(), next, dropped, complete_after }
    }

    /// What a filter admits among the next entries above `after`, with the number up to which it looked and how many of
    /// them are missing.
    fn step(&self, after: u64, filter: &Filter) -> (Vec<Entry>, u64, u64) {
        /// Numbers looked at in one step.
        const STEP: u64 = 256;
        let (end, floor) = self.bounds();
        let cleared = self.cleared.load(Ordering::SeqCst);
        let after = after.min(end - 1);
        let outdated = floor.saturating_sub(after.max(cleared));
        let from = after.max(floor);
        let end = end.min(from + 1 + STEP);
        let mut found = Vec::new();
        let looked_at: u64 = self
            .cells
            .iter()
            .map(|cell| self.read_shard(cell, filter, (from, end), usize::MAX, &mut found))
            .sum();
        in_order(&mut found);
        // Numbers have no gaps: one that is in no shard was dropped.
        let missing = (end - 1 - from).saturating_sub(looked_at);
        (found.iter().map(Copied::to_entry).collect(), end - 1, outdated + missing)
    }

    /// Copies what a filter admits out of a shard, letting its writer go on after every few. Returns how many entries
    /// were looked at.
    fn read_shard(
        &self,
        cell: &Cell,
        filter: &Filter,
        (after, end): (u64, u64),
        limit: usize,
        out: &mut Vec<Copied>,
    ) -> u64 {
        let (mut after, mut wanted, mut looked_at) = (after, limit, 0);
        loop {
            let ring = cell.lock();
            let (mut scanned, mut copied, mut bytes) = (0, 0, 0);
            let mut is_done = true;
            for view in ring.range(after, end) {
                if wanted == 0 {
                    return looked_at;
                }
                if scanned == READ_SCANNED || copied == READ_ENTRIES || bytes >= READ_BYTES {
                    is_done = false;
                    break;
                }
                scanned += 1;
                looked_at += 1;
                after = view.record.seq;
                if filter.admits(view) {
                    out.push(Copied { record: *view.record, bytes: view.bytes.to_vec() });
                    copied += 1;
                    wanted -= 1;
                    bytes += view.bytes.len();
                }
            }
            if is_done {
                return looked_at;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_reader_waits_for_what_is_being_written() {
        let journal = Journal::new(Limits::default(), 1);
        let shard = journal.shard(0);
        shard.begin_writing();
        shard.begin_writing();
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| journal.all(0));
            (0..1000).for_each(|_| std::thread::yield_now());
            assert!(!reader.is_finished());
            shard.end_writing();
            assert!(reader.join().unwrap().entries.is_empty());
        });
        shard.end_writing();
        assert!(journal.all(0).entries.is_empty());
    }

    #[test]
    fn fixed_facts_are_as_small_as_the_limits_say() {
        assert!(size_of::<Record>() < 300, "{}", size_of::<Record>());
    }
}
