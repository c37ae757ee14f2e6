//! The hot path: one HTTP body in, one JSON-RPC reply out. Deterministic: no I/O and no clock of its own.
//!
//! The order of checks is part of the contract with callers: parse (-32700, -32600), `A2A-Version`, method (-32601,
//! -32004, -32003), `A2A-Extensions`, Message rules, media types, skill, rate limit, payload, and then what the skill
//! itself checks: consent, idempotency, vehicle, appointment.

use std::net::IpAddr;

use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, USER_AGENT};

use crate::dealer::Dealer;
use crate::dealer::clock::{Now, to_rfc3339};
use crate::dealer::ids::Ids;
use crate::dealer::limiter::LimitKey;
use crate::dealer::skills::{Call, Work};
use crate::faults::effect::{AnswerContext, Behaviour, BucketKey};
use crate::faults::effects::business::{rate_limited, too_many_requests};
use crate::faults::{Apply, Carried, Decision, Facts, FaultDesk, Script};
use crate::protocol::call::{self, Envelope, Message};
use crate::protocol::error::{
    self, AapCode, AapError, Detail, Failure, Occurrence, ProtocolError, write_aap_error,
    write_protocol_error,
};
use crate::protocol::json::{Doc, Kind, Value};
use crate::protocol::validate::Faults;
use crate::protocol::{Skill, headers};
use crate::stable::{mix, stable_hash};

/// Calls that one batch may hold.
pub const MAX_BATCH: usize = 100;
/// Bytes of replies after which the rest of a batch is refused.
const MAX_BATCH_REPLY: usize = 8 << 20;
/// A caller may name the stable key of its request.
const SIM_KEY: &str = "x-sim-key";
/// A caller may name itself.
const SIM_CLIENT: &str = "x-sim-client";
/// Members of a payload that change when a request is sent again; they take no part in its stable key.
const UNSTABLE: [&str; 4] = ["idempotency_key", "submitted_at", "granted_at", "expires_at"];

/// One HTTP request to the dealer's endpoint.
#[derive(Debug, Clone, Copy)]
pub struct Request<'a> {
    /// The caller's address.
    pub peer: IpAddr,
    /// The header fields.
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
    let Scratch { doc, work, canonical } = scratch;
    let mut run =
        Run { dealer, request, now, work, canonical, activated: false, carried: None, limited_for: None };
    match doc.parse(request.body) {
        Err(error) => run.refuse(out, "null", &ProtocolError::parse(&error)),
        Ok(root) if root.kind() == Kind::List => run.batch(root, out),
        Ok(root) => run.single(root, 0, out),
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
}

/// What a call was admitted as.
struct Admitted<'a> {
    message: Message<'a>,
    skill: Skill,
}

impl Run<'_> {
    fn refuse(&self, out: &mut Vec<u8>, id: &str, error: &ProtocolError) {
        self.dealer.counters().refused(error.code);
        write_protocol_error(out, id, error);
    }

    /// A batch (JSON-RPC 2.0, section 6): an array of the replies, in the order of the calls.
    fn batch(&mut self, root: Value<'_>, out: &mut Vec<u8>) {
        if root.is_empty() || root.len() > MAX_BATCH {
            let text = format!("a batch holds 1 to {MAX_BATCH} calls");
            return self.refuse(out, "null", &ProtocolError::invalid_request(&text));
        }
        for (index, member) in root.items().enumerate() {
            out.push(if index == 0 { b'[' } else { b',' });
            if out.len() < MAX_BATCH_REPLY {
                self.single(member, index as u64, out);
            } else {
                let id = call::read_envelope(member).map_or("null", |envelope| envelope.id);
                let text = "the replies to this batch are too long; send the rest of it again";
                self.refuse(out, id, &ProtocolError::invalid_request(text));
            }
        }
        out.push(b']');
    }

    fn single(&mut self, value: Value<'_>, index: u64, out: &mut Vec<u8>) {
        let envelope = match call::read_envelope(value) {
            Ok(envelope) => envelope,
            Err(bad) => return self.refuse(out, bad.id, &bad.error),
        };
        let admitted = match self.admit(&envelope) {
            Ok(admitted) => admitted,
            Err(Failure::Protocol(error)) => return self.refuse(out, envelope.id, &error),
            Err(Failure::Skill(error)) => {
                self.dealer.counters().refused(self.dealer.spec().contract.number(error.code));
                let mut ids = self.ids("", call::payload_of(envelope.params), index);
                return self.write_failure(out, envelope.id, &error, &mut ids);
            }
        };
        self.run_skill(&envelope, &admitted, index, out);
    }

    /// Everything before the payload is looked at.
    fn admit<'a>(&mut self, envelope: &Envelope<'a>) -> Result<Admitted<'a>, Failure> {
        let spec = self.dealer.spec();
        let lines = |name| self.request.head.get_all(name).iter().map(hyper::header::HeaderValue::as_bytes);
        headers::check_version(spec.headers, lines(headers::VERSION))?;
        call::check_method(envelope.method)?;
        headers::check_extensions(spec.contract, spec.headers, lines(headers::EXTENSIONS))?;
        self.activated = true;
        let message = call::read_message(envelope.params, &spec.contract.features)?;
        let skill = call::choose_skill(&message, &spec.skills)?;
        Ok(Admitted { message, skill })
    }

    fn run_skill(&mut self, envelope: &Envelope<'_>, admitted: &Admitted<'_>, index: u64, out: &mut Vec<u8>) {
        let Admitted { message, skill } = admitted;
        let (mut ids, fault) = self.ids_and_faults(message, *skill, index);
        if let Some(why) = fault.as_ref().and_then(|fault| fault.unread.as_deref()) {
            return self.refuse(out, envelope.id, &ProtocolError::bad_fault_header(why));
        }
        if let Some(fault) = fault.as_deref().filter(|fault| self.refuses_context(message, fault)) {
            let from = out.len();
            self.refuse(out, envelope.id, &unknown_context());
            return self.carry(fault, *skill, from, out);
        }
        let mut message_id = ids.make("");
        if message_id.as_str() == message.message_id {
            message_id = ids.make("");
        }
        let made = ids.make("ctx_");
        let context_id = message.context_id.unwrap_or(made.as_str());
        let from = out.len();
        call::open_reply(out, envelope.id, message_id.as_str(), context_id);
        if let Some(fault) = fault.as_deref().filter(|fault| Carried::keeps_from_dealer(fault)) {
            // The request never reached the dealer: nothing is done, and what was begun here is never sent.
            return self.carry(fault, *skill, from, out);
        }
        let result = self.check_and_handle(message, *skill, context_id, &mut ids, fault.as_deref(), out);
        if message.context_id.is_some() || result.is_ok() {
            let ours = message.context_id.is_none();
            self.dealer.conversations().note(context_id, ours, self.now.business);
        }
        self.dealer.counters().skill(*skill, result.as_ref().err().map(|error| error.code));
        match &result {
            Ok(()) => call::close_reply(out, *skill),
            Err(error) => {
                out.truncate(from);
                self.write_failure(out, envelope.id, error, &mut ids);
            }
        }
        if let Some(fault) = fault {
            self.carry(&fault, *skill, from, out);
        }
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
    fn stable_key(&mut self, skill: &str, payload: Option<Value<'_>>) -> (u64, u64) {
        let key = match self.request.head.get(SIM_KEY) {
            Some(key) => stable_hash(2, key.as_bytes()),
            None => {
                self.canonical.clear();
                self.canonical.extend_from_slice(self.dealer.id().as_bytes());
                self.canonical.extend_from_slice(skill.as_bytes());
                if let Some(payload) = payload {
                    payload.write_canonical(&UNSTABLE, self.canonical);
                }
                stable_hash(2, self.canonical)
            }
        };
        (key, self.dealer.attempts().next(key))
    }

    /// Identifiers for one call. With a frozen clock they come from the seed, the request's stable key and how often it
    /// was seen, so that a run repeats; otherwise from a number that no other call has.
    fn ids(&mut self, skill: &str, payload: Option<Value<'_>>, index: u64) -> Ids {
        let spec = self.dealer.spec();
        if !spec.clock.is_frozen() {
            return Ids::new(spec.seed, self.request.nonce, index);
        }
        let (key, attempt) = self.stable_key(skill, payload);
        Ids::new(spec.seed, key, attempt)
    }

    /// The same, and what faults touch the call. Where none can, none is looked for.
    fn ids_and_faults(
        &mut self,
        message: &Message<'_>,
        skill: Skill,
        index: u64,
    ) -> (Ids, Option<Box<Decision>>) {
        let asked = self.request.faults.and_then(|desk| desk.asked(self.request.head));
        let magic = self.request.faults.and_then(|desk| desk.magic_in(skill, message.payload));
        let touched = self.request.faults.filter(|desk| desk.may_touch(asked.is_some() || magic.is_some()));
        let Some(desk) = touched else {
            return (self.ids(skill.id(), Some(message.payload), index), None);
        };
        let (key, attempt) = self.stable_key(skill.id(), Some(message.payload));
        let spec = self.dealer.spec();
        let client = client_name(self.request);
        let facts = Facts {
            dealer: self.dealer.id(),
            skill: Some(skill),
            path: None,
            binding: "a2a",
            conversation: message.context_id,
            client: &client,
            vin: vin_of(message.payload),
            key,
            attempt,
            request_effect: asked.as_deref(),
            magic: None,
            accepting: false,
        };
        let decision = desk.decide(spec.seed, facts, magic.as_ref(), self.now.traffic_ns);
        let ids = match spec.clock.is_frozen() {
            true => Ids::new(spec.seed, key, attempt),
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
    }

    fn write_failure(&self, out: &mut Vec<u8>, id: &str, error: &AapError, ids: &mut Ids) {
        let error_id = ids.make("err_");
        let created_at = to_rfc3339(self.now.business);
        let occurrence = Occurrence { error_id: error_id.as_str(), created_at: &created_at };
        write_aap_error(out, id, error, self.dealer.spec().contract, occurrence);
    }
}

/// Lets faults touch the agent card: its bytes are rewritten in place, and what is left for the rim is given back.
pub fn touch_card(
    dealer: &Dealer,
    request: &Request<'_>,
    path: &str,
    now: Now,
    card: &mut Vec<u8>,
) -> Option<Box<Carried>> {
    let desk = request.faults?;
    let asked = desk.asked(request.head);
    if !desk.may_touch(asked.is_some()) {
        return None;
    }
    let spec = dealer.spec();
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
        attempt: dealer.attempts().next(key),
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
            Apply::RefineCard(refine) => {
                let context =
                    AnswerContext { contract: spec.contract, skill: None, request: b"", now: now.business };
                carried.http = Some(refine(args, &context, &mut answer.draw.clone(), card));
            }
            Apply::Http(http) => carried.http = Some(http(args)),
            _ => {}
        }
    }
    carried.add_delivery(&decision, request.in_flight);
    Some(Box::new(carried))
}

/// What faults do to a connection as it is accepted: a script to play on it instead of speaking HTTP. `number` is the
/// connection's ordinal, from which its draws are made.
pub fn accept_script(
    dealer: &Dealer,
    desk: &FaultDesk,
    peer: IpAddr,
    number: u64,
    now: Now,
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
    let delivery = desk.decide(dealer.spec().seed, facts, None, now.traffic_ns).delivery?;
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

/// The client's name, for rules and reports.
fn client_name(request: &Request<'_>) -> String {
    match request.head.get(SIM_CLIENT).and_then(|name| name.to_str().ok()) {
        Some(name) => name.to_owned(),
        None => format!("{:016x}", client(request)),
    }
}

/// The vehicle that a payload asks for.
fn vin_of(payload: Value<'_>) -> Option<&str> {
    let objects = [Some(payload), payload.get("filters"), payload.get("vehicle_of_interest")];
    objects.into_iter().flatten().find_map(|object| object.get("vin")?.as_str())
}

/// A conversation that the dealer does not know, or no longer. A contextId that is not accepted is refused, never replaced
/// (A2A 1.0, section 3.4.1).
fn unknown_context() -> ProtocolError {
    let mut faults = Faults::default();
    let text = "names no conversation of this dealer; begin another without it";
    faults.push("/params/message/contextId".to_owned(), "contextId", text.to_owned());
    ProtocolError::invalid_params(faults)
}

/// Who calls: the name it gives itself, else its credential, else its address and program.
fn client(request: &Request<'_>) -> u64 {
    if let Some(name) = request.head.get(SIM_CLIENT) {
        return stable_hash(3, name.as_bytes());
    }
    if let Some(credential) = request.head.get(AUTHORIZATION) {
        return stable_hash(4, credential.as_bytes());
    }
    let program = request.head.get(USER_AGENT).map_or(&b""[..], |value| value.as_bytes());
    let address = match request.peer {
        IpAddr::V4(address) => stable_hash(5, &address.octets()),
        IpAddr::V6(address) => stable_hash(5, &address.octets()),
    };
    mix(address ^ stable_hash(6, program))
}
