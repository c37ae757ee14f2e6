//! One shard's ring: a queue of records, each with its texts and bodies end to end in one buffer, which the record that
//! takes its place uses again.
//!
//! A record is bytes until somebody reads it: writing one is a handful of copies, whatever it says.

use std::collections::VecDeque;
use std::net::IpAddr;

use jiff::Timestamp;

use super::exchange::{Body, Client, Delivery, Exchange, FaultMark, Head, Outcome};
use super::{Limits, MAX_FAULTS, bounded};
use crate::protocol::{Binding, Skill};

/// How a client was told from others.
#[derive(Debug, Clone, Copy)]
enum Caller {
    Named,
    Credential(u64),
    Origin(IpAddr),
}

/// The pieces of a record in its buffer, in this order.
#[derive(Debug, Clone, Copy)]
enum Piece {
    Dealer,
    Client,
    Method,
    Conversation,
    MessageId,
    Faults,
    Request,
    Reply,
}

const PIECES: usize = 8;
/// Buffers that are spared for records to come, at most.
const MOST_SPARES: usize = 64;
/// Sizes that differ by less share buffers.
const STEP: usize = 128;
/// Bytes of one copy. For longer ones the C library turns to other instructions, which are slower here: a call with
/// 4 KiB of a reply took 420 ns in one copy and 250 ns in pieces (AMD EPYC, `benches/journal.rs`).
const COPIED_AT_ONCE: usize = 1024;

/// The facts of a record that have a fixed size, and where its pieces lie.
#[derive(Debug, Clone, Copy)]
pub(super) struct Record {
    pub(super) seq: u64,
    /// Where its pieces end.
    ends: [u32; PIECES],
    caller: Caller,
    pub(super) at: Timestamp,
    pub(super) traffic_ns: u64,
    pub(super) connection: u64,
    pub(super) ordinal: u64,
    pub(super) head: Head,
    pub(super) key: Option<u64>,
    pub(super) attempt: u64,
    pub(super) binding: Option<Binding>,
    pub(super) skill: Option<Skill>,
    pub(super) outcome: Outcome,
    pub(super) http_status: u16,
    pub(super) request_bytes: u64,
    pub(super) reply_bytes: u64,
    pub(super) delivered: Delivery,
}

/// A record with its pieces: in the ring, or copied out of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct View<'a> {
    pub(super) record: &'a Record,
    pub(super) bytes: &'a [u8],
}

impl<'a> View<'a> {
    fn piece(self, piece: Piece) -> &'a [u8] {
        let at = piece as usize;
        let from = if at == 0 { 0 } else { self.record.ends[at - 1] as usize };
        self.bytes.get(from..self.record.ends[at] as usize).unwrap_or_default()
    }

    pub(super) fn dealer(self) -> &'a [u8] {
        self.piece(Piece::Dealer)
    }

    pub(super) fn method(self) -> &'a [u8] {
        self.piece(Piece::Method)
    }

    pub(super) fn conversation(self) -> &'a [u8] {
        self.piece(Piece::Conversation)
    }

    pub(super) fn message_id(self) -> &'a [u8] {
        self.piece(Piece::MessageId)
    }

    /// The client as reports show it.
    pub(super) fn client(self) -> String {
        let text = String::from_utf8_lossy(self.piece(Piece::Client));
        match self.record.caller {
            Caller::Named => text.into_owned(),
            Caller::Credential(hash) => format!("credential:{hash:016x}"),
            Caller::Origin(address) => format!("{address} {text}"),
        }
    }

    pub(super) fn request(self) -> Body<'a> {
        Body { bytes: self.record.request_bytes, body: self.piece(Piece::Request) }
    }

    pub(super) fn reply(self) -> Body<'a> {
        Body { bytes: self.record.reply_bytes, body: self.piece(Piece::Reply) }
    }

    /// The faults: for each, trigger, effect and repro.
    pub(super) fn faults(self) -> impl Iterator<Item = [&'a [u8]; 3]> {
        let mut rest = self.piece(Piece::Faults);
        let mut text = move || {
            let (length, after) = rest.split_first_chunk::<2>()?;
            let (text, after) = after.split_at_checked(usize::from(u16::from_le_bytes(*length)))?;
            rest = after;
            Some(text)
        };
        std::iter::from_fn(move || Some([text()?, text()?, text()?]))
    }
}

/// A record and its pieces, end to end.
#[derive(Debug)]
struct Stored {
    record: Record,
    bytes: Vec<u8>,
}

impl Stored {
    fn view(&self) -> View<'_> {
        View { record: &self.record, bytes: &self.bytes }
    }
}

/// The ring of one shard.
#[derive(Debug)]
pub(super) struct Ring {
    records: VecDeque<Stored>,
    /// Buffers of dropped records. With several shards some records drop none and others several.
    spares: Vec<Vec<u8>>,
    /// What all buffers may take together, and what they take.
    most_bytes: usize,
    taken: usize,
    window: u64,
    request_bytes: usize,
    reply_bytes: usize,
    /// Where the faults of a record are put together.
    faults: Vec<u8>,
    /// Bytes of texts and bodies that are kept.
    pub(super) held: u64,
    /// Records that no longer fit, since the ring was last cleared.
    pub(super) dropped: u64,
    /// The number of the newest of them; 0 when there is none.
    pub(super) dropped_to: u64,
}

impl Ring {
    /// A ring with this share of the journal's bytes. The queue's room is reserved now, so that no call waits for it to grow.
    pub(super) fn new(limits: &Limits, most_bytes: usize) -> Ring {
        const MOST_RESERVED: u64 = 1 << 16;
        Ring {
            records: VecDeque::with_capacity(limits.entries.min(MOST_RESERVED) as usize),
            spares: Vec::with_capacity(MOST_SPARES),
            most_bytes,
            taken: 0,
            window: limits.entries,
            // Places within a record are 32 bits wide.
            request_bytes: limits.request_bytes.min(1 << 30),
            reply_bytes: limits.reply_bytes.min(1 << 30),
            faults: Vec::new(),
            held: 0,
            dropped: 0,
            dropped_to: 0,
        }
    }

    pub(super) fn clear(&mut self) {
        self.records.clear();
        self.spares.clear();
        self.taken = 0;
        self.held = 0;
        self.dropped = 0;
        self.dropped_to = 0;
    }

    /// Records numbered up to `floor`, which no reader is shown any more though they are still here.
    pub(super) fn count_to(&self, floor: u64) -> u64 {
        self.records.partition_point(|stored| stored.record.seq <= floor) as u64
    }

    pub(super) fn len(&self) -> usize {
        self.records.len()
    }

    /// The records numbered above `after` and below `end`, in order.
    pub(super) fn range(&self, after: u64, end: u64) -> impl Iterator<Item = View<'_>> {
        let from = self.records.partition_point(|stored| stored.record.seq <= after);
        self.records.range(from..).take_while(move |stored| stored.record.seq < end).map(Stored::view)
    }

    /// Drops the oldest record; its buffer is spared.
    fn drop_oldest(&mut self) {
        let Some(Stored { record, bytes }) = self.records.pop_front() else { return };
        self.held -= bytes.len() as u64;
        self.dropped += 1;
        // One that was too large may have gone before an older one.
        self.dropped_to = self.dropped_to.max(record.seq);
        if self.spares.len() < MOST_SPARES {
            self.spares.push(bytes);
        } else {
            self.taken -= bytes.capacity();
        }
    }

    /// Writes a record; the oldest ones make room. One that even an empty ring has no room for is dropped at once.
    pub(super) fn push(&mut self, seq: u64, exchange: &Exchange<'_>) {
        while self.records.front().is_some_and(|oldest| seq - oldest.record.seq >= self.window) {
            self.drop_oldest();
        }
        let mut faults = std::mem::take(&mut self.faults);
        faults.clear();
        write_faults(&mut faults, exchange.faults);
        self.store(seq, exchange, &faults);
        self.faults = faults;
    }

    fn store(&mut self, seq: u64, exchange: &Exchange<'_>, faults: &[u8]) {
        let (caller, client) = match exchange.client {
            Client::Named(name) => (Caller::Named, name),
            Client::Credential(hash) => (Caller::Credential(hash), &b""[..]),
            Client::Origin { address, program } => (Caller::Origin(address), program),
        };
        let pieces: [&[u8]; PIECES] = [
            bounded(exchange.dealer.as_bytes()),
            bounded(client),
            bounded(exchange.method.as_bytes()),
            bounded(exchange.conversation.as_bytes()),
            bounded(exchange.message_id.as_bytes()),
            faults,
            beginning(exchange.request, self.request_bytes),
            beginning(exchange.reply, self.reply_bytes),
        ];
        let mut ends = [0; PIECES];
        let mut len = 0;
        for (end, piece) in ends.iter_mut().zip(pieces) {
            len += piece.len();
            *end = len as u32;
        }
        if len > self.most_bytes || self.window == 0 {
            self.dropped += 1;
            self.dropped_to = seq;
            return;
        }
        let mut bytes = self.make_room(len);
        for run in pieces.into_iter().flat_map(|piece| piece.chunks(COPIED_AT_ONCE)) {
            bytes.extend_from_slice(run);
        }
        self.held += len as u64;
        let record = Record {
            seq,
            ends,
            caller,
            at: exchange.at,
            traffic_ns: exchange.traffic_ns,
            connection: exchange.connection,
            ordinal: exchange.ordinal,
            head: exchange.head,
            key: exchange.key,
            attempt: exchange.attempt,
            binding: exchange.binding,
            skill: exchange.skill,
            outcome: exchange.outcome,
            http_status: exchange.http_status,
            request_bytes: exchange.request.bytes.max(exchange.request.body.len() as u64),
            reply_bytes: exchange.reply.bytes.max(exchange.reply.body.len() as u64),
            delivered: exchange.delivered,
        };
        self.records.push_back(Stored { record, bytes });
    }

    /// An empty buffer for so many bytes, with the oldest records dropped that it leaves no room for. It is that of a record
    /// dropped before where that serves: as much memory as is kept is written round and round, and no more.
    fn make_room(&mut self, len: usize) -> Vec<u8> {
        let fits = |buffer: &Vec<u8>| (len..=4 * len + 8 * STEP).contains(&buffer.capacity());
        let size = len.next_multiple_of(STEP).min(self.most_bytes);
        loop {
            while let Some(mut spare) = self.spares.pop() {
                if fits(&spare) {
                    spare.clear();
                    return spare;
                }
                self.taken -= spare.capacity();
            }
            if self.taken + size <= self.most_bytes {
                let buffer = Vec::with_capacity(size);
                self.taken += buffer.capacity();
                return buffer;
            }
            self.drop_oldest();
        }
    }
}

fn beginning(body: Body<'_>, most: usize) -> &[u8] {
    &body.body[..body.body.len().min(most)]
}

/// Each text with its length in front (16 bits, little endian); at most [`MAX_FAULTS`] of them.
fn write_faults(out: &mut Vec<u8>, faults: &[FaultMark<'_>]) {
    for fault in faults.iter().take(MAX_FAULTS) {
        for text in [fault.trigger, fault.effect, fault.repro] {
            let text = bounded(text.as_bytes());
            out.extend_from_slice(&(text.len() as u16).to_le_bytes());
            out.extend_from_slice(text);
        }
    }
}
