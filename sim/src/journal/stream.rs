//! Following the journal as it grows: `GET /journal/stream`, server-sent events.
//!
//! The journal itself is the subscriber's queue. A subscriber is a number up to which it has read, so that it costs
//! the writers nothing; one that falls behind further than the journal reaches is told how many entries it missed.

use super::{Entry, Filter, Journal};

/// A reader that follows the journal.
#[derive(Debug, Clone)]
pub struct Subscriber {
    filter: Filter,
    missed: u64,
}

impl Subscriber {
    /// A subscriber that begins above the filter's `after`. Its `limit` does not apply.
    pub fn new(filter: Filter) -> Subscriber {
        Subscriber { filter, missed: 0 }
    }

    /// Goes on after the last event that a client had (`Last-Event-ID`); nonsense is ignored.
    #[must_use]
    pub fn resume(mut self, last_event_id: &str) -> Subscriber {
        self.filter.after = last_event_id.trim().parse().unwrap_or(self.filter.after);
        self
    }

    /// The entries wanted among the next few hundred, in order; empty when there is none among them.
    /// Ask again at once while [`Subscriber::is_behind`], else after a pause.
    pub fn poll(&mut self, journal: &Journal) -> Vec<Entry> {
        let (entries, after, missed) = journal.step(self.filter.after, &self.filter);
        self.filter.after = after;
        self.missed += missed;
        entries
    }

    /// Whether there are entries that it has not looked at.
    pub fn is_behind(&self, journal: &Journal) -> bool {
        self.filter.after + 1 < journal.bounds().0
    }

    /// Entries that were dropped before it came to them, wanted or not; what was cleared on request does not count.
    pub fn missed(&self) -> u64 {
        self.missed
    }

    /// The same place in the journal, with nothing missed so far.
    #[must_use]
    pub fn without_missed(self) -> Subscriber {
        Subscriber { missed: 0, ..self }
    }

    /// The next events as they go over the wire: one `missed` event when that count grew, then one event for each entry.
    /// Appends nothing when there is nothing to say.
    pub fn poll_events(&mut self, journal: &Journal, out: &mut Vec<u8>) {
        let before = self.missed;
        let entries = self.poll(journal);
        if self.missed > before {
            out.extend_from_slice(
                format!("event: missed\ndata: {{\"missed\":{}}}\n\n", self.missed).as_bytes(),
            );
        }
        for entry in &entries {
            entry.write_event(out);
        }
    }
}

impl Entry {
    /// Appends the entry as a server-sent event: `id:` is its number, `data:` its JSON, in which no line ends.
    pub fn write_event(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(format!("id: {}\ndata: ", self.seq).as_bytes());
        // An entry has no map with other keys than text and no number that is not finite: writing to memory cannot fail.
        _ = serde_json::to_writer(&mut *out, self);
        out.extend_from_slice(b"\n\n");
    }
}
