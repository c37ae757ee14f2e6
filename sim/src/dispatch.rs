//! The hot path: one HTTP body in, one reply out. Deterministic: no I/O and no clock of its own.
//!
//! Three envelopes stand around one core. An envelope (`a2a`, `mcp`, `pap`) reads what its protocol wraps around a
//! payload and refuses what breaks that protocol; the core (`Run::perform`) has what all share: faults, identifiers, the
//! rate limit, the payload's shape, the skill, counters.
//!
//! The order of checks is part of the contract with callers. Of A2A: parse (-32700, -32600), `A2A-Version`, method (-32601,
//! -32004, -32003), `A2A-Extensions`, Message rules, media types, skill; then of all: rate limit, payload, and then what
//! the skill itself checks: consent, idempotency, vehicle, appointment.

mod a2a;
mod discovery;
mod fields;
mod mcp;
mod noting;
mod pap;

use std::borrow::Cow;
use std::ops::Range;

use hyper::HeaderMap;

pub use discovery::{accept_script, touch_document};
pub use fields::Fields;
use fields::{client, client_name};
use noting::{Heard, note_faults};

use crate::dealer::Dealer;
use crate::dealer::clock::{Now, to_rfc3339};
use crate::dealer::ids::Ids;
use crate::dealer::limiter::LimitKey;
use crate::dealer::skills::{Call, Work};
use crate::faults::effect::{AnswerContext, Behaviour, BucketKey};
use crate::faults::effects::business::{rate_limited, too_many_requests};
use crate::faults::effects::reply::repeat_in_text;
use crate::faults::{Apply, Carried, Decision, Facts, FaultDesk};
use crate::journal::{Notes, Outcome};
use crate::ledger::Ticket;
use crate::protocol::call;
use crate::protocol::error::{AapCode, AapError, Detail, Occurrence, ProtocolError};
use crate::protocol::json::{Doc, Value};
use crate::protocol::{Binding, Skill};
use crate::stable::stable_hash;

/// Where a request came in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Entrance {
    /// `/a2a`.
    A2a,
    /// `/mcp`.
    Mcp,
    /// The path of a skill below `/pap`.
    Pap(Skill),
}

impl Entrance {
    /// The interface that it belongs to.
    pub fn binding(self) -> Binding {
        match self {
            Entrance::A2a => Binding::A2a,
            Entrance::Mcp => Binding::Mcp,
            Entrance::Pap(_) => Binding::Pap,
        }
    }
}

/// One HTTP request to the dealer's endpoint.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Where it came in.
    pub entrance: Entrance,
    /// What its header fields say.
    pub fields: Fields<'a>,
    /// The header fields themselves, for what is seldom asked.
    pub head: &'a HeaderMap,
    /// The whole body.
    pub body: &'a [u8],
    /// A number that no other request of this process has; identifiers come from it while the clock runs.
    pub nonce: u64,
    /// The faults that may touch it.
    pub faults: Option<&'a FaultDesk>,
    /// Requests being answered, this one included.
    pub in_flight: u64,
}

impl<'a> Request<'a> {
    /// The fault that it asks for by its header, where that is honoured.
    fn asked(&self) -> Option<Cow<'a, str>> {
        self.faults.filter(|_| self.fields.asks_fault)?.asked(self.head)
    }
}

/// What is to be said beside the body.
#[derive(Debug)]
pub struct Reply {
    /// The HTTP status. For A2A it is always 200: the Python SDK drops the body of any other.
    pub status: u16,
    /// Seconds for `Retry-After`.
    pub retry_after_s: Option<u64>,
    /// The extension that was activated, to be echoed in `A2A-Extensions`.
    pub activated: Option<&'static str>,
    /// What faults do beyond the body.
    pub carried: Option<Box<Carried>>,
    /// The record of a lead that has to be safe before the reply goes out.
    pub commit: Option<Ticket>,
}

impl Default for Reply {
    fn default() -> Reply {
        Reply { status: 200, retry_after_s: None, activated: None, carried: None, commit: None }
    }
}

/// Buffers that serve one request after the other.
#[derive(Debug, Default)]
pub struct Scratch {
    doc: Doc,
    work: Work,
    canonical: Vec<u8>,
    notes: Option<Notes>,
}

impl Scratch {
    /// Buffers with which every call is noted for the journal.
    pub fn noting() -> Scratch {
        Scratch { notes: Some(Notes::default()), ..Scratch::default() }
    }

    /// Takes what was noted of the request just answered, and leaves buffers for the next one.
    pub fn take_notes(&mut self, into: &mut Notes) {
        if let Some(notes) = &mut self.notes {
            std::mem::swap(notes, into);
        }
    }
}

/// Answers one HTTP request; the body of the reply is appended to `out`.
pub fn dispatch(
    dealer: &Dealer,
    scratch: &mut Scratch,
    request: &Request<'_>,
    now: Now,
    out: &mut Vec<u8>,
) -> Reply {
    let Scratch { doc, work, canonical, notes } = scratch;
    if let Some(notes) = notes {
        notes.clear();
    }
    work.commit = None;
    let mut run = Run {
        dealer,
        request,
        now,
        work,
        canonical,
        reply: Reply::default(),
        limited_for: None,
        counted: None,
        notes: notes.as_mut(),
    };
    match request.entrance {
        Entrance::A2a => a2a::answer(&mut run, doc, out),
        Entrance::Mcp => mcp::answer(&mut run, doc, out),
        Entrance::Pap(skill) => pap::answer(&mut run, doc, skill, out),
    }
    let Run { reply, work, .. } = run;
    Reply { commit: work.commit, ..reply }
}

/// The reply when a handler fails in a way nobody foresaw, or what it did could not be written down.
pub fn internal_error(
    dealer: &Dealer,
    request: &Request<'_>,
    why: &str,
    now: Now,
    out: &mut Vec<u8>,
) -> Reply {
    let error = AapError::new(AapCode::InternalError, why);
    let error_id = Ids::new(dealer.spec().seed, request.nonce, u64::MAX).make("err_");
    let created_at = to_rfc3339(now.business);
    let occurrence = Occurrence { error_id: error_id.as_str(), created_at: &created_at };
    let mut doc = Doc::default();
    let root = doc.parse(request.body).ok();
    let id = root.and_then(|root| root.get("id")?.as_raw()).unwrap_or("null");
    let mut reply = Reply::default();
    match request.entrance {
        Entrance::A2a => a2a::Wrap { id }.fail(dealer, &error, occurrence, &mut reply, out),
        Entrance::Mcp => {
            let wrap = mcp::Wrap::of_request(id, request);
            wrap.fail(dealer, &error, occurrence, &mut reply, out);
        }
        Entrance::Pap(_) => pap::Wrap.fail(dealer, &error, occurrence, &mut reply, out),
    }
    reply
}

/// What a protocol wraps around payloads and errors.
trait Envelope {
    /// Whether calls belong to conversations.
    const CONVERSES: bool;

    /// Writes the reply of a successful call up to its payload.
    fn open(&self, out: &mut Vec<u8>, message_id: &str, context_id: &str);

    /// Writes the reply of a successful call from behind its payload, which begins at `payload`. `spare` is a buffer.
    fn close(&self, payload: usize, skill: Skill, spare: &mut Vec<u8>, out: &mut Vec<u8>);

    /// Writes the reply of a call that a skill refuses, and says in `reply` what HTTP says of it.
    fn fail(
        &self,
        dealer: &Dealer,
        error: &AapError,
        occurrence: Occurrence<'_>,
        reply: &mut Reply,
        out: &mut Vec<u8>,
    );

    /// Refuses a call whose payload nobody looks at.
    fn refuse(&self, run: &mut Run<'_>, error: &ProtocolError, out: &mut Vec<u8>) -> Outcome;
}

/// A request on its way through dispatch.
struct Run<'r> {
    dealer: &'r Dealer,
    request: &'r Request<'r>,
    now: Now,
    work: &'r mut Work,
    canonical: &'r mut Vec<u8>,
    reply: Reply,
    /// How long a caller over a fault's limit is to wait, when that is said by HTTP 429.
    limited_for: Option<u64>,
    /// The stable key of the call under way and which occurrence it is, from 0, once that was worked out.
    counted: Option<(u64, u64)>,
    /// Where calls are noted, if they are.
    notes: Option<&'r mut Notes>,
}

/// A call, taken out of its envelope.
#[derive(Clone, Copy)]
struct Asked<'a> {
    skill: Skill,
    payload: Value<'a>,
    /// The caller's conversation, where its protocol has any.
    context_id: Option<&'a str>,
    /// The caller's `messageId`, where its protocol has any.
    message_id: &'a str,
}

impl Run<'_> {
    /// Everything from the rate limit on: what a skill does is the same, whatever envelope the call came in. `index` is that
    /// of the call in its batch.
    fn perform<'a, E: Envelope>(
        &mut self,
        envelope: &E,
        asked: &Asked<'a>,
        index: u64,
        heard: &mut Heard<'a>,
        out: &mut Vec<u8>,
    ) -> Outcome {
        heard.skill = Some(asked.skill);
        heard.message_id = asked.message_id;
        heard.context_id = asked.context_id;
        let (mut ids, fault) = self.ids_and_faults(asked, index);
        if let Some(why) = fault.as_ref().and_then(|fault| fault.unread.as_deref()) {
            return envelope.refuse(self, &ProtocolError::bad_fault_header(why), out);
        }
        let from = out.len();
        if let Some(fault) = fault.as_deref().filter(|fault| self.refuses_context(asked, fault)) {
            let outcome = envelope.refuse(self, &ProtocolError::unknown_context(), out);
            self.carry(fault, Some(asked.skill), from, out);
            return outcome;
        }
        // Drawn whether the envelope has words for them or not, so that what the skill draws is the same through all.
        let mut message_id = ids.make("");
        if message_id.as_str() == asked.message_id {
            message_id = ids.make("");
        }
        let made = ids.make("ctx_");
        let context_id = if E::CONVERSES {
            heard.made = Some(made);
            asked.context_id.unwrap_or(made.as_str())
        } else {
            ""
        };
        envelope.open(out, message_id.as_str(), context_id);
        if let Some(fault) = fault.as_deref().filter(|fault| Carried::keeps_from_dealer(fault)) {
            // The request never reached the dealer: nothing is done, and what was begun here is never sent.
            self.carry(fault, Some(asked.skill), from, out);
            out.truncate(from);
            return Outcome::Http(0);
        }
        let payload = out.len();
        let result = self.check_and_handle(asked, context_id, &mut ids, fault.as_deref(), out);
        if E::CONVERSES && (asked.context_id.is_some() || result.is_ok()) {
            let ours = asked.context_id.is_none();
            self.dealer.conversations().note(context_id, ours, self.now.business);
        }
        self.dealer.counters().skill(asked.skill, result.as_ref().err().map(|error| error.code));
        let outcome = match &result {
            Ok(()) => {
                envelope.close(payload, asked.skill, self.canonical, out);
                Outcome::Ok
            }
            Err(error) => {
                out.truncate(from);
                self.fail(envelope, error, &mut ids, out)
            }
        };
        if let Some(fault) = fault {
            self.carry(&fault, Some(asked.skill), from, out);
        }
        outcome
    }

    fn fail<E: Envelope>(
        &mut self,
        envelope: &E,
        error: &AapError,
        ids: &mut Ids,
        out: &mut Vec<u8>,
    ) -> Outcome {
        let error_id = ids.make("err_");
        let created_at = to_rfc3339(self.now.business);
        let occurrence = Occurrence { error_id: error_id.as_str(), created_at: &created_at };
        envelope.fail(self.dealer, error, occurrence, &mut self.reply, out);
        Outcome::Aap(error.code)
    }

    fn check_and_handle(
        &mut self,
        asked: &Asked<'_>,
        context_id: &str,
        ids: &mut Ids,
        fault: Option<&Decision>,
        out: &mut Vec<u8>,
    ) -> Result<(), AapError> {
        self.check_rate(asked.context_id)?;
        call::check_payload(asked.skill, asked.payload, &self.dealer.spec().contract.features)?;
        let behaviour = self.behaviour(asked, fault)?;
        let mut call = Call { now: self.now, context_id, ids, behaviour };
        self.dealer.handle(asked.skill, asked.payload, &mut call, self.work, out)
    }

    fn check_rate(&self, context_id: Option<&str>) -> Result<(), AapError> {
        let (Some(limit), Some(mut buckets)) = (self.dealer.spec().rate_limit, self.dealer.buckets()) else {
            return Ok(());
        };
        let key = match limit.key {
            LimitKey::Global => 0,
            LimitKey::Client => client(self.request),
            // A call that opens a conversation has none to share a bucket with; its client's stands in.
            LimitKey::Conversation => {
                context_id.map_or_else(|| client(self.request), |id| stable_hash(1, id.as_bytes()))
            }
        };
        buckets.take(limit, key, self.now.traffic_ns).map_err(|wait_ns| {
            // Rounded up: a caller that waits as long as it is told must not be refused again.
            let wait_ms = wait_ns.div_ceil(1_000_000);
            AapError::new(AapCode::RateLimited, format!("too many calls; retry after {wait_ms} ms"))
                .with("retry_after_ms", Detail::Integer(i64::try_from(wait_ms).unwrap_or(i64::MAX)))
        })
    }

    /// How often this request was seen before, with its stable key: `X-Sim-Key` if sent, else dealer, skill and payload
    /// without what changes when it is sent again.
    fn stable_key(&mut self, skill: &str, payload: Option<Value<'_>>) -> u64 {
        let named = self.request.fields.key;
        named.unwrap_or_else(|| call::stable_key(self.dealer.id(), skill, payload, self.canonical))
    }

    /// Identifiers for one call. With a frozen clock they come from the seed, the request's stable key and how often it
    /// was seen, so that a run repeats; otherwise from a number that no other call has.
    fn ids(&mut self, skill: &str, payload: Option<Value<'_>>, index: u64) -> Ids {
        let spec = self.dealer.spec();
        if !spec.clock.is_frozen() {
            return self.dealer.ids(self.request.nonce, index);
        }
        let key = self.stable_key(skill, payload);
        let attempt = self.dealer.attempts().next(key);
        self.counted = Some((key, attempt));
        self.dealer.ids(key, attempt)
    }

    /// The same, and what faults touch the call. Where none can, none is looked for.
    fn ids_and_faults(&mut self, call: &Asked<'_>, index: u64) -> (Ids, Option<Box<Decision>>) {
        let Asked { skill, payload, context_id, .. } = *call;
        let asked = self.request.asked();
        let magic = self.request.faults.and_then(|desk| desk.magic_in(skill, payload));
        let touched = self.request.faults.filter(|desk| desk.may_touch(asked.is_some() || magic.is_some()));
        let Some(desk) = touched else {
            return (self.ids(skill.id(), Some(payload), index), None);
        };
        let key = self.stable_key(skill.id(), Some(payload));
        let attempt = desk.engine.attempt(key);
        self.counted = Some((key, attempt));
        let spec = self.dealer.spec();
        let client = client_name(self.request);
        let facts = Facts {
            dealer: self.dealer.id(),
            skill: Some(skill),
            path: None,
            binding: self.request.entrance.binding(),
            conversation: context_id,
            client: &client,
            vin: call::vin_of(payload),
            key,
            attempt,
            request_effect: asked.as_deref(),
            magic: None,
            accepting: false,
        };
        let decision = desk.decide(spec.seed, facts, magic.as_ref(), self.now.traffic_ns);
        let ids = match spec.clock.is_frozen() {
            // Counted apart: a new plan counts anew, and must not bring back identifiers that are in use.
            true => self.dealer.ids(key, self.dealer.attempts().next(key)),
            false => self.dealer.ids(self.request.nonce, index),
        };
        (ids, (!decision.is_empty()).then(|| Box::new(decision)))
    }

    /// Whether a fault has the call's contextId refused.
    fn refuses_context(&self, asked: &Asked<'_>, fault: &Decision) -> bool {
        let (Some(answer), Some(id)) = (&fault.answer, asked.context_id) else { return false };
        let Apply::Behave(behave) = answer.effect.info.apply else { return false };
        match behave(&answer.effect.args) {
            Behaviour::ConversationExpired => true,
            Behaviour::RefuseUnknownContext => {
                !self.dealer.conversations().get(id).is_some_and(|conversation| conversation.ours)
            }
            _ => false,
        }
    }

    /// How a fault has the dealer behave; a fault that refuses the call ends it here, as a dealer of its own would: after
    /// the payload is known to be valid.
    fn behaviour(
        &mut self,
        asked: &Asked<'_>,
        fault: Option<&Decision>,
    ) -> Result<Option<Behaviour>, AapError> {
        let Some(answer) = fault.and_then(|fault| fault.answer.as_ref()) else { return Ok(None) };
        let args = &answer.effect.args;
        let behaviour = match answer.effect.info.apply {
            Apply::Refuse(refuse) => return Err(refuse(args)),
            Apply::RefuseHttp(refuse) => return Err(refuse(args).0),
            Apply::Behave(behave) => behave(args),
            _ => return Ok(None),
        };
        if let Behaviour::TokenBucket(bucket) = behaviour {
            let key = match bucket.key {
                BucketKey::Global => 0,
                BucketKey::Client => client(self.request),
                BucketKey::Conversation => {
                    asked.context_id.map_or_else(|| client(self.request), |id| stable_hash(1, id.as_bytes()))
                }
            };
            let taken = self.dealer.take_fault_token(answer.owner, bucket, key, self.now.traffic_ns);
            if let Err(wait_ns) = taken {
                self.limited_for = bucket.http.then_some(wait_ns);
                return Err(rate_limited(wait_ns, bucket.hint));
            }
        }
        Ok(Some(behaviour))
    }

    /// Carries out what faults do to the finished reply, and notes what is left for the rim.
    fn carry(&mut self, fault: &Decision, skill: Option<Skill>, from: usize, out: &mut Vec<u8>) {
        let mut carried = self.reply.carried.take().unwrap_or_default();
        if let Some(answer) = &fault.answer {
            let args = &answer.effect.args;
            let context = AnswerContext {
                contract: self.dealer.spec().contract,
                skill,
                request: self.request.body,
                now: self.now.business,
            };
            let mut draw = answer.draw.clone();
            match answer.effect.info.apply {
                Apply::Refine(refine) | Apply::RefineTools(refine) => {
                    let mut reply = out.split_off(from);
                    refine(args, &context, &mut draw, &mut reply);
                    out.append(&mut reply);
                }
                Apply::RefinePayload(refine) => {
                    let mut reply = out.split_off(from);
                    refine(args, &context, &mut draw, &mut reply);
                    if self.request.entrance == Entrance::Mcp {
                        repeat_in_text(&mut reply);
                    }
                    out.append(&mut reply);
                }
                Apply::RefineHttp(refine) => {
                    let mut reply = out.split_off(from);
                    carried.take_http(refine(args, &context, &mut draw, &mut reply));
                    out.append(&mut reply);
                }
                Apply::Http(http) => carried.take_http(http(args)),
                Apply::RefuseHttp(refuse) => carried.take_http(refuse(args).1),
                Apply::Behave(_) => {
                    if let Some(wait_ns) = self.limited_for.take() {
                        carried.take_http(too_many_requests(wait_ns));
                    }
                }
                _ => {}
            }
        }
        carried.add_delivery(fault, self.request.in_flight);
        self.reply.carried = Some(carried);
        if let Some(notes) = &mut self.notes {
            note_faults(notes, fault);
        }
    }

    /// Counts and notes what was refused as a whole, before any call was found in it.
    fn note_whole(&mut self, outcome: Outcome, out: &[u8]) {
        self.note(&Heard::default(), outcome, 0..self.request.body.len(), 0..out.len());
    }

    /// The call that is the whole body, from now on.
    fn whole(&self) -> Range<usize> {
        0..self.request.body.len()
    }
}
