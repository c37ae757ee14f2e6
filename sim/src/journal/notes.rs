//! Between the answer and the end of its delivery: what is known of a request until it can be recorded.
//!
//! `dispatch` notes each call as it answers it; the rim adds what it knows, and records all of it once the delivery has
//! ended. The buffers serve one request after the other.

use std::net::IpAddr;
use std::ops::Range;

use bytes::Bytes;
use jiff::Timestamp;

use super::entry::Fault;
use super::exchange::{Body, Client, Delivery, Exchange, FaultMark, Head, Outcome};
use super::{MAX_FAULTS, MAX_TEXT, Shard, bounded};
use crate::protocol::{Binding, Skill};

/// Bytes of a body that is not kept by reference.
const LARGE: usize = 64 << 10;
/// Buffers above this size are given back after the request that needed them.
const KEPT: usize = 4 << 10;

/// A call as `dispatch` tells it.
#[derive(Debug, Clone)]
pub struct Told<'a> {
    /// The skill, once it was chosen.
    pub skill: Option<Skill>,
    /// The JSON-RPC method, or what stands for it ([`Exchange::method`]).
    pub method: &'a str,
    /// The conversation's `contextId`.
    pub conversation: &'a str,
    /// The request's `messageId`.
    pub message_id: &'a str,
    /// The stable key, where it was worked out.
    pub key: Option<u64>,
    /// Which occurrence of it, from 1; 0 where nobody counted.
    pub attempt: u64,
    /// How it was answered.
    pub outcome: Outcome,
    /// Where its text lies in the request's body.
    pub request: Range<usize>,
    /// Where its reply lies in the reply's body.
    pub reply: Range<usize>,
}

/// A call that was noted: its texts lie in [`Notes::texts`], one after the other.
#[derive(Debug)]
struct Note {
    skill: Option<Skill>,
    ends: [usize; 3],
    key: Option<u64>,
    attempt: u64,
    outcome: Outcome,
    request: Range<usize>,
    reply: Range<usize>,
    /// Its faults end here; they begin where those of the call before end.
    faults_end: usize,
}

/// The calls of one request, one unless it is a batch.
#[derive(Debug, Default)]
pub struct Notes {
    texts: String,
    calls: Vec<Note>,
    faults: Vec<Fault>,
}

impl Notes {
    /// Forgets all, but not the room for it.
    pub fn clear(&mut self) {
        if self.texts.capacity() > KEPT || self.calls.capacity() * size_of::<Note>() > KEPT {
            *self = Notes::default();
        }
        self.texts.clear();
        self.calls.clear();
        self.faults.clear();
    }

    /// Notes a fault of the call that is noted next.
    pub fn add_fault(&mut self, fault: Fault) {
        let before = self.calls.last().map_or(0, |call| call.faults_end);
        if self.faults.len() - before < MAX_FAULTS {
            self.faults.push(fault);
        }
    }

    /// Notes a call.
    pub fn add(&mut self, told: Told<'_>) {
        let Told { skill, method, conversation, message_id, key, attempt, outcome, request, reply } = told;
        let ends = [method, conversation, message_id].map(|text| {
            self.texts.push_str(beginning(text));
            self.texts.len()
        });
        let faults_end = self.faults.len();
        self.calls.push(Note { skill, ends, key, attempt, outcome, request, reply, faults_end });
    }

    /// A fault wraps the reply into HTTP of its own: where that takes the place of the reply, or a status other than 2xx
    /// stands over a success, the status is what the calls were answered with.
    pub fn answered_by_http(&mut self, status: u16, replaced: bool) {
        let is_success = (200..300).contains(&status);
        for call in &mut self.calls {
            if replaced || (!is_success && call.outcome == Outcome::Ok) {
                call.outcome = Outcome::Http(status);
            }
            if replaced {
                // What took the place of all replies is the reply to each call.
                call.reply = 0..usize::MAX;
            }
        }
    }

    /// Whether nothing was noted.
    pub fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }
}

/// The beginning of a text that is certain to hold the bytes that an entry keeps.
fn beginning(text: &str) -> &str {
    let mut end = MAX_TEXT.min(text.len());
    while !text.is_char_boundary(end) {
        end += 1;
    }
    &text[..end]
}

/// Who called, kept until the delivery has ended.
#[derive(Debug, Clone, Copy)]
enum Caller {
    Named,
    Credential(u64),
    Origin(IpAddr),
}

/// What is known of a request until its delivery has ended.
#[derive(Debug)]
pub struct Pending {
    /// Its calls.
    pub notes: Notes,
    /// The connection's ordinal.
    pub connection: u64,
    /// Its ordinal on the connection, from 1.
    pub ordinal: u64,
    /// The header fields that matter.
    pub head: Head,
    /// Bytes of its body, where it is not there.
    pub request_bytes: u64,
    /// The interface that it came through; none where it is no call.
    pub binding: Option<Binding>,
    /// The HTTP status of its reply.
    pub http_status: u16,
    /// The reply's body.
    pub reply: Bytes,
    /// Its body, or the beginning of it.
    request: Bytes,
    at: Timestamp,
    /// The traffic clock when it had come.
    pub traffic_ns: u64,
    dealer: String,
    /// The stable key that it names itself.
    key: Option<u64>,
    caller: Caller,
    /// A name, or the value of `User-Agent`.
    program: Vec<u8>,
}

impl<'a> Told<'a> {
    /// A request that was no call; its outcome is the HTTP status that goes out.
    pub fn other(method: &'a str) -> Told<'a> {
        Told {
            skill: None,
            method,
            conversation: "",
            message_id: "",
            key: None,
            attempt: 0,
            outcome: Outcome::Http(0),
            request: 0..usize::MAX,
            reply: 0..usize::MAX,
        }
    }
}

impl Pending {
    /// Nothing yet, on the connection with this ordinal.
    pub fn new(connection: u64) -> Pending {
        Pending {
            notes: Notes::default(),
            at: Timestamp::UNIX_EPOCH,
            traffic_ns: 0,
            connection,
            ordinal: 0,
            head: Head::default(),
            request: Bytes::new(),
            request_bytes: 0,
            binding: None,
            http_status: 0,
            reply: Bytes::new(),
            dealer: String::new(),
            key: None,
            caller: Caller::Named,
            program: Vec::new(),
        }
    }

    /// Says when a request had come by the business and the traffic clock, whom from and with which stable key if it names
    /// one, and for whom.
    pub fn set_facts(
        &mut self,
        (at, traffic_ns): (Timestamp, u64),
        (client, key): (Client<'_>, Option<u64>),
        dealer: &str,
    ) {
        self.key = key;
        self.at = at;
        self.traffic_ns = traffic_ns;
        let (caller, program) = match client {
            Client::Named(name) => (Caller::Named, name),
            Client::Credential(hash) => (Caller::Credential(hash), &b""[..]),
            Client::Origin { address, program } => (Caller::Origin(address), program),
        };
        self.caller = caller;
        self.program.clear();
        self.program.extend_from_slice(bounded(program));
        if self.dealer != dealer {
            dealer.clone_into(&mut self.dealer);
        }
    }

    /// Keeps the body until it is recorded: by reference, unless it is large. Many slow readers would otherwise hold many
    /// large bodies of which the journal takes the beginning.
    pub fn keep_request(&mut self, body: &Bytes, shard: &Shard) {
        let kept = shard.limits().request_bytes;
        self.request =
            if body.len() <= LARGE.max(kept) { body.clone() } else { Bytes::copy_from_slice(&body[..kept]) };
    }

    /// Records every call that was noted, with the delivery that they share, and forgets them and the bodies.
    pub fn record(&mut self, shard: &Shard, delivered: Delivery) {
        let Notes { texts, calls, faults } = &self.notes;
        let client = match self.caller {
            Caller::Named => Client::Named(&self.program),
            Caller::Credential(hash) => Client::Credential(hash),
            Caller::Origin(address) => Client::Origin { address, program: &self.program },
        };
        let http_status = if delivered.bytes == 0 { 0 } else { self.http_status };
        // What is answered by HTTP alone is known by the status that went out.
        let outcome =
            |outcome| if outcome == Outcome::Http(0) { Outcome::Http(http_status) } else { outcome };
        let (mut from, mut first_fault) = (0, 0);
        for call in calls {
            let [method, conversation, message_id] = call.ends.map(|end| {
                let text = texts.get(from..end).unwrap_or_default();
                from = end;
                text
            });
            let marks: Vec<_> = faults[first_fault..call.faults_end].iter().map(Fault::mark).collect();
            first_fault = call.faults_end;
            shard.record(&Exchange {
                at: self.at,
                traffic_ns: self.traffic_ns,
                dealer: &self.dealer,
                client,
                connection: self.connection,
                ordinal: self.ordinal,
                head: self.head,
                binding: self.binding,
                skill: call.skill,
                method,
                conversation,
                message_id,
                key: call.key.or(self.key),
                attempt: call.attempt,
                request: part(&self.request, &call.request, self.request_bytes),
                outcome: outcome(call.outcome),
                http_status,
                reply: part(&self.reply, &call.reply, 0),
                faults: &marks,
                delivered,
            });
        }
        self.notes.clear();
        // Held longer, they would keep the connection's read buffer from serving the next request.
        self.request = Bytes::new();
        self.request_bytes = 0;
        self.reply = Bytes::new();
    }
}

impl Fault {
    fn mark(&self) -> FaultMark<'_> {
        FaultMark { trigger: &self.trigger, effect: &self.effect, repro: &self.repro }
    }
}

/// A call's part of a body, or of the beginning of it that is there. `whole` is what is known of the length of a part that
/// goes to the end.
fn part<'a>(body: &'a [u8], range: &Range<usize>, whole: u64) -> Body<'a> {
    let end = range.end.min(body.len());
    let body = body.get(range.start.min(end)..end).unwrap_or_default();
    let bytes = if range.end == usize::MAX { whole } else { range.len() as u64 };
    Body { bytes: bytes.max(body.len() as u64), body }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv4Addr;

    use super::super::{DeliveryState, Filter, Journal, Limits};
    use super::*;

    const NOON: (Timestamp, u64) = (Timestamp::UNIX_EPOCH, 7);

    fn told<'a>(method: &'a str, request: Range<usize>, reply: Range<usize>) -> Told<'a> {
        Told {
            skill: None,
            method,
            conversation: "c",
            message_id: "m",
            key: None,
            attempt: 0,
            outcome: Outcome::Ok,
            request,
            reply,
        }
    }

    #[test]
    fn each_call_of_a_batch_is_recorded_with_its_own_text_and_faults() {
        let journal = Journal::new(Limits::default(), 1);
        let mut pending = Pending::new(3);
        pending.set_facts(
            NOON,
            (Client::Origin { address: Ipv4Addr::LOCALHOST.into(), program: b"p" }, None),
            "metro",
        );
        pending.keep_request(&Bytes::from_static(b"[{1},{2}]"), &journal.shard(0));
        pending.reply = Bytes::from_static(b"[{A},{B}]");
        pending.http_status = 200;
        let fault =
            |effect: &str| Fault { trigger: "header".into(), effect: effect.into(), repro: "r".into() };
        pending.notes.add_fault(fault("a"));
        pending.notes.add(told("first", 1..4, 1..4));
        (0..20).for_each(|_| pending.notes.add_fault(fault("b")));
        pending.notes.add(told(&"é".repeat(400), 5..8, 5..8));
        pending.record(&journal.shard(0), Delivery { bytes: 90, state: DeliveryState::Complete, took_ns: 5 });
        assert!(pending.notes.is_empty() && pending.request.is_empty());

        let entries = journal.query(&Filter::default()).entries;
        let said: Vec<_> = entries
            .iter()
            .map(|e| (e.request.body.as_str(), e.reply.body.as_str(), e.faults.len()))
            .collect();
        assert_eq!(said, [("{1}", "{A}", 1), ("{2}", "{B}", MAX_FAULTS)]);
        assert_eq!(entries[0].method.as_deref(), Some("first"));
        assert_eq!(entries[1].method.as_deref(), Some("é".repeat(256).as_str()));
        assert_eq!(entries[1].conversation.as_deref(), Some("c"));
        assert_eq!((entries[0].client.as_str(), entries[0].dealer.as_str()), ("127.0.0.1 p", "metro"));
    }

    #[test]
    fn of_a_large_body_the_beginning_is_held() {
        let journal = Journal::new(Limits::default(), 1);
        let mut pending = Pending::new(0);
        pending.keep_request(&Bytes::from(vec![b'a'; 1 << 20]), &journal.shard(0));
        assert_eq!(pending.request.len(), Limits::default().request_bytes);
        pending.notes.add(told("m", 0..1 << 20, 0..0));
        pending.notes.add(told("m", 1 << 19..(1 << 19) + 7, 0..0));
        pending.record(&journal.shard(0), Delivery { bytes: 9, state: DeliveryState::Complete, took_ns: 5 });
        let said: Vec<_> = journal.query(&Filter::default()).entries.into_iter().map(|e| e.request).collect();
        assert_eq!((said[0].bytes, said[0].body.len()), (1 << 20, Limits::default().request_bytes));
        assert_eq!((said[1].bytes, said[1].truncated, said[1].body.as_str()), (7, true, ""));
    }

    #[test]
    fn http_in_place_of_a_reply_is_the_outcome_of_every_call() {
        let journal = Journal::new(Limits::default(), 1);
        let mut pending = Pending::new(0);
        pending.reply = Bytes::from_static(b"<html>");
        pending.notes.add(told("m", 0..0, 0..2));
        pending.notes.answered_by_http(200, true);
        pending.record(&journal.shard(0), Delivery { bytes: 9, state: DeliveryState::Complete, took_ns: 5 });
        pending.notes.add(told("m", 0..0, 0..0));
        pending.notes.answered_by_http(429, false);
        pending.record(&journal.shard(0), Delivery { bytes: 0, state: DeliveryState::Reset, took_ns: 5 });
        let entries = journal.query(&Filter::default()).entries;
        assert_eq!((entries[0].outcome, entries[0].reply.body.as_str()), (Outcome::Http(200), "<html>"));
        assert_eq!((entries[1].outcome, entries[1].http_status), (Outcome::Http(429), None));
    }

    #[test]
    fn a_large_request_leaves_no_large_buffers() {
        let mut notes = Notes::default();
        for _ in 0..100 {
            notes.add(told(&"x".repeat(600), 0..0, 0..0));
        }
        notes.clear();
        assert_eq!((notes.texts.capacity(), notes.calls.capacity()), (0, 0));
    }
}
