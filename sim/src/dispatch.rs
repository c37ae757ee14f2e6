//! The hot path: one HTTP body in, one JSON-RPC reply out. Deterministic: no I/O and no clock of its own.
//!
//! The order of checks is part of the contract with callers: parse (-32700, -32600), `A2A-Version`, method (-32601,
//! -32004, -32003), `A2A-Extensions`, Message rules, media types, skill, rate limit, payload, and then what the skill
//! itself checks: consent, idempotency, vehicle, appointment.

mod fields;
mod noting;

use std::borrow::Cow;
use std::net::IpAddr;
use std::ops::Range;

use hyper::HeaderMap;

pub use fields::Fields;
use fields::{client, client_name};
use noting::{Heard, item_ranges, note_faults};

use crate::dealer::Dealer;
use crate::dealer::clock::{Now, to_rfc3339};
use crate::dealer::ids::Ids;
use crate::dealer::limiter::LimitKey;
use crate::dealer::skills::{Call, Work};
use crate::faults::effect::{AnswerContext, Behaviour, BucketKey};
use crate::faults::effects::business::{rate_limited, too_many_requests};
use crate::faults::{Apply, Carried, Decision, Facts, FaultDesk, Script};
use crate::journal::{Notes, Outcome};
use crate::protocol::Skill;
use crate::protocol::call::{self, Envelope, Message};
use crate::protocol::discovery::Paper;
use crate::protocol::error::{
    self, AapCode, AapError, Detail, Failure, Occurrence, ProtocolError, write_aap_error,
    write_protocol_error,
};
use crate::protocol::json::{Doc, Kind, Value};
use crate::stable::stable_hash;

/// Calls that one batch may hold.
pub const MAX_BATCH: usize = 100;
/// Bytes of replies after which the rest of a batch is refused.
const MAX_BATCH_REPLY: usize = 8 << 20;

/// One HTTP request to the dealer's endpoint.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
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
#[derive(Debug, Default)]
pub struct Reply {
    /// The extension that was activated, to be echoed in `A2A-Extensions`.
    pub activated: Option<&'static str>,
    /// What faults do beyond the body.
    pub carried: Option<Box<Carried>>,
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

/// Answers one HTTP request; the JSON-RPC reply is appended to `out`. The HTTP status is always 200: the Python SDK drops
/// the body of any other.
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
    let mut run = Run {
        dealer,
        request,
        now,
        work,
        canonical,
        activated: false,
        carried: None,
        limited_for: None,
        counted: None,
        notes: notes.as_mut(),
    };
    match doc.parse(request.body) {
        Err(error) => run.refuse_all(out, &ProtocolError::parse(&error)),
        Ok(root) if root.kind() == Kind::List => run.batch(root, out),
        Ok(root) => run.single(root, 0, 0..request.body.len(), out),
    }
    let Run { activated, carried, .. } = run;
    Reply { activated: activated.then_some(dealer.spec().contract.extension_uri), carried }
}

struct Run<'r> {
    dealer: &'r Dealer,
    request: &'r Request<'r>,
    now: Now,
    work: &'r mut Work,
    canonical: &'r mut Vec<u8>,
    activated: bool,
    carried: Option<Box<Carried>>,
    /// How long a caller over a fault's limit is to wait, when that is said by HTTP 429.
    limited_for: Option<u64>,
    /// The stable key of the call under way and which occurrence it is, from 0, once that was worked out.
    counted: Option<(u64, u64)>,
    /// Where calls are noted, if they are.
    notes: Option<&'r mut Notes>,
}

/// What a call was admitted as.
struct Admitted<'a> {
    message: Message<'a>,
    skill: Skill,
}

impl Run<'_> {
    fn refuse(&self, out: &mut Vec<u8>, id: &str, error: &ProtocolError) -> Outcome {
        self.dealer.counters().refused(error.code);
        write_protocol_error(out, id, error);
        Outcome::Rpc(error.code.into())
    }

    /// Refuses a body as a whole.
    fn refuse_all(&mut self, out: &mut Vec<u8>, error: &ProtocolError) {
        let outcome = self.refuse(out, "null", error);
        self.note(&Heard::default(), outcome, 0..self.request.body.len(), 0..out.len());
    }

    /// A batch (JSON-RPC 2.0, section 6): an array of the replies, in the order of the calls.
    fn batch(&mut self, root: Value<'_>, out: &mut Vec<u8>) {
        if root.is_empty() || root.len() > MAX_BATCH {
            let text = format!("a batch holds 1 to {MAX_BATCH} calls");
            return self.refuse_all(out, &ProtocolError::invalid_request(&text));
        }
        let texts = if self.notes.is_some() { item_ranges(self.request.body) } else { Vec::new() };
        for (index, member) in root.items().enumerate() {
            out.push(if index == 0 { b'[' } else { b',' });
            let text = texts.get(index).cloned().unwrap_or_default();
            if out.len() < MAX_BATCH_REPLY {
                self.single(member, index as u64, text, out);
            } else {
                let id = call::read_envelope(member).map_or("null", |envelope| envelope.id);
                let why = "the replies to this batch are too long; send the rest of it again";
                let from = out.len();
                let outcome = self.refuse(out, id, &ProtocolError::invalid_request(why));
                self.note(&Heard::default(), outcome, text, from..out.len());
            }
        }
        out.push(b']');
    }

    /// One call, whose text lies at `text` in the body.
    fn single(&mut self, value: Value<'_>, index: u64, text: Range<usize>, out: &mut Vec<u8>) {
        let from = out.len();
        self.counted = None;
        let mut heard = Heard::default();
        let outcome = self.answer(value, index, &mut heard, out);
        self.note(&heard, outcome, text, from..out.len());
    }

    fn answer<'a>(
        &mut self,
        value: Value<'a>,
        index: u64,
        heard: &mut Heard<'a>,
        out: &mut Vec<u8>,
    ) -> Outcome {
        let envelope = match call::read_envelope(value) {
            Ok(envelope) => envelope,
            Err(bad) => return self.refuse(out, bad.id, &bad.error),
        };
        heard.method = envelope.method;
        let admitted = match self.admit(&envelope) {
            Ok(admitted) => admitted,
            Err(failure) => {
                let named = |name| envelope.params?.get("message")?.get(name)?.as_str();
                heard.message_id = named("messageId").unwrap_or_default();
                heard.context_id = named("contextId");
                return self.refuse_call(&envelope, &failure, index, out);
            }
        };
        heard.skill = Some(admitted.skill);
        heard.message_id = admitted.message.message_id;
        heard.context_id = admitted.message.context_id;
        self.run_skill(&envelope, &admitted, index, heard, out)
    }

    /// Refuses what was not admitted.
    fn refuse_call(
        &mut self,
        envelope: &Envelope<'_>,
        failure: &Failure,
        index: u64,
        out: &mut Vec<u8>,
    ) -> Outcome {
        match failure {
            Failure::Protocol(error) => self.refuse(out, envelope.id, error),
            Failure::Skill(error) => {
                self.dealer.counters().refused(self.dealer.spec().contract.number(error.code));
                let mut ids = self.ids("", call::payload_of(envelope.params), index);
                self.write_failure(out, envelope.id, error, &mut ids)
            }
        }
    }

    /// Everything before the payload is looked at.
    fn admit<'a>(&mut self, envelope: &Envelope<'a>) -> Result<Admitted<'a>, Failure> {
        let spec = self.dealer.spec();
        fields::check_version(self.request, spec.headers)?;
        call::check_method(envelope.method)?;
        self.activated = fields::check_extensions(self.request, spec.contract, spec.headers)?;
        let message = call::read_message(envelope.params, &spec.contract.features)?;
        let skill = call::choose_skill(&message, &spec.skills)?;
        Ok(Admitted { message, skill })
    }

    fn run_skill(
        &mut self,
        envelope: &Envelope<'_>,
        admitted: &Admitted<'_>,
        index: u64,
        heard: &mut Heard<'_>,
        out: &mut Vec<u8>,
    ) -> Outcome {
        let Admitted { message, skill } = admitted;
        let (mut ids, fault) = self.ids_and_faults(message, *skill, index);
        if let Some(why) = fault.as_ref().and_then(|fault| fault.unread.as_deref()) {
            return self.refuse(out, envelope.id, &ProtocolError::bad_fault_header(why));
        }
        let from = out.len();
        if let Some(fault) = fault.as_deref().filter(|fault| self.refuses_context(message, fault)) {
            let outcome = self.refuse(out, envelope.id, &ProtocolError::unknown_context());
            self.carry(fault, *skill, from, out);
            return outcome;
        }
        let mut message_id = ids.make("");
        if message_id.as_str() == message.message_id {
            message_id = ids.make("");
        }
        let made = ids.make("ctx_");
        heard.made = Some(made);
        let context_id = message.context_id.unwrap_or(made.as_str());
        call::open_reply(out, envelope.id, message_id.as_str(), context_id);
        if let Some(fault) = fault.as_deref().filter(|fault| Carried::keeps_from_dealer(fault)) {
            // The request never reached the dealer: nothing is done, and what was begun here is never sent.
            self.carry(fault, *skill, from, out);
            out.truncate(from);
            return Outcome::Http(0);
        }
        let result = self.check_and_handle(message, *skill, context_id, &mut ids, fault.as_deref(), out);
        if message.context_id.is_some() || result.is_ok() {
            let ours = message.context_id.is_none();
            self.dealer.conversations().note(context_id, ours, self.now.business);
        }
        self.dealer.counters().skill(*skill, result.as_ref().err().map(|error| error.code));
        let outcome = match &result {
            Ok(()) => {
                call::close_reply(out, *skill);
                Outcome::Ok
            }
            Err(error) => {
                out.truncate(from);
                self.write_failure(out, envelope.id, error, &mut ids)
            }
        };
        if let Some(fault) = fault {
            self.carry(&fault, *skill, from, out);
        }
        outcome
    }

    fn check_and_handle(
        &mut self,
        message: &Message<'_>,
        skill: Skill,
        context_id: &str,
        ids: &mut Ids,
        fault: Option<&Decision>,
        out: &mut Vec<u8>,
    ) -> Result<(), AapError> {
        self.check_rate(message.context_id)?;
        call::check_payload(skill, message.payload, &self.dealer.spec().contract.features)?;
        let behaviour = self.behaviour(message, fault)?;
        let mut call = Call { now: self.now, context_id, ids, behaviour };
        self.dealer.handle(skill, message.payload, &mut call, self.work, out)
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
            return Ids::new(spec.seed, self.request.nonce, index);
        }
        let key = self.stable_key(skill, payload);
        let attempt = self.dealer.attempts().next(key);
        self.counted = Some((key, attempt));
        Ids::new(spec.seed, key, attempt)
    }

    /// The same, and what faults touch the call. Where none can, none is looked for.
    fn ids_and_faults(
        &mut self,
        message: &Message<'_>,
        skill: Skill,
        index: u64,
    ) -> (Ids, Option<Box<Decision>>) {
        let asked = self.request.asked();
        let magic = self.request.faults.and_then(|desk| desk.magic_in(skill, message.payload));
        let touched = self.request.faults.filter(|desk| desk.may_touch(asked.is_some() || magic.is_some()));
        let Some(desk) = touched else {
            return (self.ids(skill.id(), Some(message.payload), index), None);
        };
        let key = self.stable_key(skill.id(), Some(message.payload));
        let attempt = desk.engine.attempt(key);
        self.counted = Some((key, attempt));
        let spec = self.dealer.spec();
        let client = client_name(self.request);
        let facts = Facts {
            dealer: self.dealer.id(),
            skill: Some(skill),
            path: None,
            binding: "a2a",
            conversation: message.context_id,
            client: &client,
            vin: call::vin_of(message.payload),
            key,
            attempt,
            request_effect: asked.as_deref(),
            magic: None,
            accepting: false,
        };
        let decision = desk.decide(spec.seed, facts, magic.as_ref(), self.now.traffic_ns);
        let ids = match spec.clock.is_frozen() {
            // Counted apart: a new plan counts anew, and must not bring back identifiers that are in use.
            true => Ids::new(spec.seed, key, self.dealer.attempts().next(key)),
            false => Ids::new(spec.seed, self.request.nonce, index),
        };
        (ids, (!decision.is_empty()).then(|| Box::new(decision)))
    }

    /// Whether a fault has the call's contextId refused.
    fn refuses_context(&self, message: &Message<'_>, fault: &Decision) -> bool {
        let (Some(answer), Some(id)) = (&fault.answer, message.context_id) else { return false };
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
        message: &Message<'_>,
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
                BucketKey::Conversation => message
                    .context_id
                    .map_or_else(|| client(self.request), |id| stable_hash(1, id.as_bytes())),
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
    fn carry(&mut self, fault: &Decision, skill: Skill, from: usize, out: &mut Vec<u8>) {
        let mut carried = self.carried.take().unwrap_or_default();
        if let Some(answer) = &fault.answer {
            let args = &answer.effect.args;
            match answer.effect.info.apply {
                Apply::Refine(refine) => {
                    let context = AnswerContext {
                        contract: self.dealer.spec().contract,
                        skill: Some(skill),
                        request: self.request.body,
                        now: self.now.business,
                    };
                    let mut reply = out.split_off(from);
                    refine(args, &context, &mut answer.draw.clone(), &mut reply);
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
        self.carried = Some(carried);
        if let Some(notes) = &mut self.notes {
            note_faults(notes, fault);
        }
    }

    fn write_failure(&self, out: &mut Vec<u8>, id: &str, error: &AapError, ids: &mut Ids) -> Outcome {
        let error_id = ids.make("err_");
        let created_at = to_rfc3339(self.now.business);
        let occurrence = Occurrence { error_id: error_id.as_str(), created_at: &created_at };
        write_aap_error(out, id, error, self.dealer.spec().contract, occurrence);
        Outcome::Aap(error.code)
    }
}

/// Lets faults touch a document: its bytes are rewritten in place, and what is left for the rim is given back. `place` says
/// which one it is and under which path it was asked for.
pub fn touch_document(
    dealer: &Dealer,
    request: &Request<'_>,
    place: (Paper, &str),
    now: Now,
    document: &mut Vec<u8>,
    notes: Option<&mut Notes>,
) -> Option<Box<Carried>> {
    let desk = request.faults?;
    let asked = request.asked();
    if !desk.may_touch(asked.is_some()) {
        return None;
    }
    let spec = dealer.spec();
    let (paper, path) = place;
    let key = stable_hash(7, path.as_bytes());
    let client = client_name(request);
    let facts = Facts {
        dealer: dealer.id(),
        skill: None,
        path: Some(path),
        binding: "a2a",
        conversation: None,
        client: &client,
        vin: None,
        key,
        attempt: desk.engine.attempt(key),
        request_effect: asked.as_deref(),
        magic: None,
        accepting: false,
    };
    let decision = desk.decide(spec.seed, facts, None, now.traffic_ns);
    if decision.is_empty() {
        return None;
    }
    let mut carried = Carried::default();
    if let Some(answer) = &decision.answer {
        let args = &answer.effect.args;
        match answer.effect.info.apply {
            Apply::RefineCard(refine) if paper == Paper::AgentCard => {
                let context =
                    AnswerContext { contract: spec.contract, skill: None, request: b"", now: now.business };
                carried.http = Some(refine(args, &context, &mut answer.draw.clone(), document));
            }
            Apply::Http(http) => carried.http = Some(http(args)),
            _ => {}
        }
    }
    carried.add_delivery(&decision, request.in_flight);
    if let Some(notes) = notes {
        note_faults(notes, &decision);
    }
    Some(Box::new(carried))
}

/// What faults do to a connection as it is accepted: a script to play on it instead of speaking HTTP, and what is told of
/// it. `number` is the connection's ordinal, from which its draws are made.
pub fn accept_script(
    dealer: &Dealer,
    desk: &FaultDesk,
    peer: IpAddr,
    number: u64,
    now: Now,
    notes: &mut Notes,
) -> Option<Script> {
    if !desk.may_touch(false) {
        return None;
    }
    let client = peer.to_string();
    let facts = Facts {
        dealer: dealer.id(),
        skill: None,
        path: None,
        binding: "a2a",
        conversation: None,
        client: &client,
        vin: None,
        key: number,
        attempt: 0,
        request_effect: None,
        magic: None,
        accepting: true,
    };
    let decision = desk.decide(dealer.spec().seed, facts, None, now.traffic_ns);
    let delivery = decision.delivery.as_ref()?;
    note_faults(notes, &decision);
    match delivery.effect.info.apply {
        Apply::Accept(accept) => Some(accept(&delivery.effect.args, &mut delivery.draw.clone())),
        _ => None,
    }
}

/// The reply when a handler fails in a way nobody foresaw.
pub fn internal_error(dealer: &Dealer, request: &Request<'_>, now: Now, out: &mut Vec<u8>) {
    let mut doc = Doc::default();
    let id = doc.parse(request.body).ok().and_then(|root| root.get("id")?.as_raw()).unwrap_or("null");
    let error = AapError::new(error::AapCode::InternalError, "the dealer failed unexpectedly");
    let error_id = Ids::new(dealer.spec().seed, request.nonce, u64::MAX).make("err_");
    let created_at = to_rfc3339(now.business);
    let occurrence = Occurrence { error_id: error_id.as_str(), created_at: &created_at };
    write_aap_error(out, id, &error, dealer.spec().contract, occurrence);
}
