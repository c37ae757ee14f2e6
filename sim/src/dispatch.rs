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
use crate::dealer::ids::{Ids, mix, stable_hash};
use crate::dealer::limiter::LimitKey;
use crate::dealer::skills::{Call, Work};
use crate::protocol::call::{self, Envelope, Message};
use crate::protocol::error::{
    self, AapCode, AapError, Detail, Failure, Occurrence, ProtocolError, write_aap_error,
    write_protocol_error,
};
use crate::protocol::json::{Doc, Kind, Value};
use crate::protocol::{Skill, headers};

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
}

/// What is to be said beside the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Reply {
    /// The extension that was activated, to be echoed in `A2A-Extensions`.
    pub activated: Option<&'static str>,
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
    let mut run = Run { dealer, request, now, work, canonical, activated: false };
    match doc.parse(request.body) {
        Err(error) => run.refuse(out, "null", &ProtocolError::parse(&error)),
        Ok(root) if root.kind() == Kind::List => run.batch(root, out),
        Ok(root) => run.single(root, 0, out),
    }
    Reply { activated: run.activated.then_some(dealer.spec().contract.extension_uri) }
}

struct Run<'r> {
    dealer: &'r Dealer,
    request: &'r Request<'r>,
    now: Now,
    work: &'r mut Work,
    canonical: &'r mut Vec<u8>,
    activated: bool,
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
        let mut ids = self.ids(skill.id(), Some(message.payload), index);
        let mut message_id = ids.make("");
        if message_id.as_str() == message.message_id {
            message_id = ids.make("");
        }
        let made = ids.make("ctx_");
        let context_id = message.context_id.unwrap_or(made.as_str());
        let from = out.len();
        call::open_reply(out, envelope.id, message_id.as_str(), context_id);
        let result = self.check_and_handle(message, *skill, context_id, &mut ids, out);
        if message.context_id.is_some() || result.is_ok() {
            let ours = message.context_id.is_none();
            self.dealer.conversations().note(context_id, ours, self.now.business);
        }
        self.dealer.counters().skill(*skill, result.as_ref().err().map(|error| error.code));
        match result {
            Ok(()) => call::close_reply(out, *skill),
            Err(error) => {
                out.truncate(from);
                self.write_failure(out, envelope.id, &error, &mut ids);
            }
        }
    }

    fn check_and_handle(
        &mut self,
        message: &Message<'_>,
        skill: Skill,
        context_id: &str,
        ids: &mut Ids,
        out: &mut Vec<u8>,
    ) -> Result<(), AapError> {
        self.check_rate(message.context_id)?;
        call::check_payload(skill, message.payload, &self.dealer.spec().contract.features)?;
        let mut call = Call { now: self.now, context_id, ids };
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
        buckets.take(key, self.now.traffic_ns).map_err(|wait_ns| {
            // Rounded up: a caller that waits as long as it is told must not be refused again.
            let wait_ms = wait_ns.div_ceil(1_000_000);
            AapError::new(AapCode::RateLimited, format!("too many calls; retry after {wait_ms} ms"))
                .with("retry_after_ms", Detail::Integer(i64::try_from(wait_ms).unwrap_or(i64::MAX)))
        })
    }

    /// Identifiers for one call. With a frozen clock they come from the seed, the request's stable key and how often it
    /// was seen, so that a run repeats; otherwise from a number that no other call has.
    fn ids(&mut self, skill: &str, payload: Option<Value<'_>>, index: u64) -> Ids {
        let spec = self.dealer.spec();
        if !spec.clock.is_frozen() {
            return Ids::new(spec.seed, self.request.nonce, index);
        }
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
        Ids::new(spec.seed, key, u64::from(self.dealer.attempts().next(key)))
    }

    fn write_failure(&self, out: &mut Vec<u8>, id: &str, error: &AapError, ids: &mut Ids) {
        let error_id = ids.make("err_");
        let created_at = to_rfc3339(self.now.business);
        let occurrence = Occurrence { error_id: error_id.as_str(), created_at: &created_at };
        write_aap_error(out, id, error, self.dealer.spec().contract, occurrence);
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
