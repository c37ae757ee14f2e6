//! Routes: which handler a request goes to, and the HTTP around its answer.

use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use smallvec::SmallVec;

use super::Shared;
use super::connection::{Caller, Counted, Worker};
use super::delivery::Held;
use super::directory::{self, Form};
use super::documents;
use super::mcp::Entry;
use super::way::Way;
use crate::dispatch::{self, Entrance, Fields, dispatch};
use crate::faults::Carried;
use crate::faults::effect::HttpOverride;
use crate::journal::{Client, Outcome, Pending, Told};
use crate::ledger::Ticket;
use crate::protocol::discovery::Paper;
use crate::protocol::error::AapCode;
use crate::protocol::{Binding, Contract, mcp, pap};
use crate::stable::{mix, stable_hash};
use crate::world::{Door, Site, World};

pub(super) type Reply = Response<Bytes>;

pub(super) const SERVER: HeaderValue =
    HeaderValue::from_static(concat!("dealer-sim/", env!("CARGO_PKG_VERSION")));
pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");
const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");
const PLAIN: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const A2A_EXTENSIONS: HeaderName = HeaderName::from_static("a2a-extensions");
const FAULT_APPLIED: HeaderName = HeaderName::from_static("x-sim-fault-applied");
const TRACEPARENT: HeaderName = HeaderName::from_static("traceparent");
/// Bytes of a refused body that are still read, and for how long.
const MAX_DISCARDED: usize = 8 << 20;
const LINGER: Duration = Duration::from_secs(2);
/// Why a lead that was stored is not acknowledged.
const NOT_WRITTEN: &str = "the dealer could not write the lead down";
/// A reply buffer starts with this much room; most replies fit.
const USUAL_REPLY: usize = 8 << 10;

pub(super) fn reply(status: StatusCode, content_type: HeaderValue, body: impl Into<Bytes>) -> Reply {
    let mut reply = Response::new(body.into());
    *reply.status_mut() = status;
    reply.headers_mut().insert(header::CONTENT_TYPE, content_type);
    reply
}

pub(super) fn plain(status: StatusCode, text: impl Into<String>) -> Reply {
    let mut text = text.into();
    text.push('\n');
    reply(status, PLAIN, text)
}

fn not_allowed(allow: &'static str) -> Reply {
    let mut reply = plain(StatusCode::METHOD_NOT_ALLOWED, format!("use {allow}"));
    reply.headers_mut().insert(header::ALLOW, HeaderValue::from_static(allow));
    reply
}

/// Why a body could not be had.
pub(super) enum BodyError {
    TooLarge,
    TooSlow,
    Broken,
}

pub(super) async fn read_body(body: &mut Incoming, most: usize, shared: &Shared) -> Result<Bytes, BodyError> {
    let traffic = &shared.world.traffic;
    let read = tokio::time::timeout(shared.limits.body_timeout(), collect(body, most)).await;
    let result = read.unwrap_or(Err(BodyError::TooSlow));
    match result {
        Err(BodyError::TooSlow) => _ = traffic.too_slow.fetch_add(1, Ordering::Relaxed),
        Err(BodyError::TooLarge) => {
            traffic.too_large.fetch_add(1, Ordering::Relaxed);
            hear_out(body).await;
        }
        Ok(_) | Err(BodyError::Broken) => {}
    }
    result
}

/// The whole body; the usual one comes in one piece and is not copied.
async fn collect(body: &mut Incoming, most: usize) -> Result<Bytes, BodyError> {
    let mut first = Bytes::new();
    let mut rest = Vec::new();
    while let Some(frame) = body.frame().await {
        let Ok(piece) = frame.map_err(|_| BodyError::Broken)?.into_data() else { continue };
        if first.len() + rest.len() + piece.len() > most {
            return Err(BodyError::TooLarge);
        }
        if first.is_empty() {
            first = piece;
        } else {
            rest.extend_from_slice(&piece);
        }
    }
    if rest.is_empty() { Ok(first) } else { Ok([&first[..], &rest[..]].concat().into()) }
}

/// Reads on, keeping nothing, until the body ends or enough has come: a connection closed over unread bytes is reset, and
/// the refusal is lost with it.
pub(super) async fn hear_out(body: &mut Incoming) {
    let discard = async {
        let mut heard = 0;
        while heard < MAX_DISCARDED
            && let Some(Ok(frame)) = body.frame().await
        {
            heard += frame.data_ref().map_or(0, Bytes::len);
        }
    };
    _ = tokio::time::timeout(LINGER, discard).await;
}

impl BodyError {
    pub(super) fn reply(&self, most: usize) -> Reply {
        let mut reply = match self {
            BodyError::TooLarge => {
                plain(StatusCode::PAYLOAD_TOO_LARGE, format!("a body may have {most} bytes"))
            }
            BodyError::TooSlow => plain(StatusCode::REQUEST_TIMEOUT, "the body did not come in time"),
            BodyError::Broken => plain(StatusCode::BAD_REQUEST, "the body is not framed as HTTP says"),
        };
        // What is left of the body is not read, so the connection cannot carry another request.
        reply.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        reply
    }
}

/// The dealer's listener, for one connection of HTTP/1.1 or one stream of HTTP/2.
#[derive(Clone)]
pub(super) struct Front(Rc<FrontParts>);

struct FrontParts {
    worker: Rc<Worker>,
    wire: Way,
    caller: Caller,
    /// A number of this connection's own, from which its requests' numbers follow.
    nonce: Cell<u64>,
    /// Requests that came this way.
    taken: Cell<u64>,
}

impl Front {
    /// Of a connection on which so many requests have begun elsewhere.
    pub(super) fn new(worker: Rc<Worker>, wire: Way, caller: Caller, begun: u64) -> Front {
        // Each connection has 2^32 numbers to itself.
        let nonce = Cell::new(worker.shared.process.wrapping_add(caller.number << 32).wrapping_add(begun));
        Front(Rc::new(FrontParts { worker, wire, caller, nonce, taken: Cell::new(0) }))
    }

    pub(super) async fn answer(self, request: Request<Incoming>) -> Reply {
        let FrontParts { worker, wire, .. } = &*self.0;
        wire.take_request().await;
        let traffic = &worker.shared.world.traffic;
        traffic.in_flight.fetch_add(1, Ordering::Relaxed);
        let _in_flight = Counted(&traffic.in_flight);
        let traceparent = request.headers().get(TRACEPARENT).cloned();
        let mut reply = self.route(request).await;
        let headers = reply.headers_mut();
        headers.insert(header::SERVER, SERVER);
        if let Some(traceparent) = traceparent {
            headers.insert(TRACEPARENT, traceparent);
        }
        match Held::take(&worker.shared, reply.body()) {
            Ok(None) => {}
            Ok(Some(held)) => wire.hold(held),
            Err(()) => {
                let text = "too many large replies wait for their readers; ask again for less";
                reply = plain(StatusCode::SERVICE_UNAVAILABLE, text);
                reply.headers_mut().insert(header::SERVER, SERVER);
                reply.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
            }
        }
        let taken = &self.0.taken;
        taken.set(taken.get() + 1);
        if taken.get() >= worker.shared.limits.connection_requests {
            reply.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
        }
        traffic.requests.fetch_add(1, Ordering::Relaxed);
        self.note_reply(&reply);
        reply
    }

    /// Notes a request that is no call, or whose call could not be had, for the journal.
    fn note_other(&self, site: &Site, head: &Parts) {
        let FrontParts { worker, wire, .. } = &*self.0;
        wire.with_pending(|pending| {
            let Some(pending) = pending else { return };
            let now = site.now(worker.shared.clocks.now());
            let fields = self.fields(&head.headers, None);
            pending.set_facts((now.business, now.traffic_ns), (fields.client, fields.key), site.id());
            pending.binding = None;
            pending.head = fields.head;
            pending.notes.add(Told::other(&format!("{} {}", head.method, head.uri.path())));
            let length = head.headers.get(header::CONTENT_LENGTH).and_then(|length| length.to_str().ok());
            pending.request_bytes = length.and_then(|length| length.parse().ok()).unwrap_or(0);
        });
    }

    /// Notes what is answered, if the request is one that the journal keeps.
    fn note_reply(&self, reply: &Reply) {
        self.0.wire.with_pending(|pending| {
            if let Some(pending) = pending.filter(|pending| !pending.notes.is_empty()) {
                pending.http_status = reply.status().as_u16();
                pending.reply = reply.body().clone();
            }
        });
    }

    async fn route(&self, request: Request<Incoming>) -> Reply {
        let (head, mut body) = request.into_parts();
        let world = &self.0.worker.shared.world;
        let is_read = matches!(head.method, Method::GET | Method::HEAD);
        let Some((door, path)) = world.enter(head.uri.path()) else {
            hear_out(&mut body).await;
            return plain(StatusCode::NOT_FOUND, "no dealer has this id; GET / lists the dealers");
        };
        if let Some(refused) = self.refuse(door.site, &head, path) {
            hear_out(&mut body).await;
            return refused;
        }
        let reply = match path {
            // Some clients add a slash to the card's URL; a redirect would lose the body.
            "/a2a" | "/a2a/" => match self.call(door.site, Entrance::A2a, &head, &mut body).await {
                Ok(reply) => return reply,
                Err(refusal) => refusal,
            },
            mcp::PATH | "/mcp/" if serves(door.site, Binding::Mcp) => {
                match self.mcp_call(door.site, &head, &mut body).await {
                    Ok(reply) => return reply,
                    Err(refusal) => refusal,
                }
            }
            _ if path.starts_with(pap::BASE_PATH) && serves(door.site, Binding::Pap) => {
                match pap::skill_at(path) {
                    Some(skill) => match self.call(door.site, Entrance::Pap(skill), &head, &mut body).await {
                        Ok(reply) => return reply,
                        Err(refusal) => refusal,
                    },
                    None => documents::problem(plain(StatusCode::NOT_FOUND, "no skill has this path")),
                }
            }
            "/" if !is_read => not_allowed("GET, HEAD"),
            "/" if door.at_root => entrance(world, door, &head.headers),
            "/" => introduction(door),
            _ => match Paper::at(path) {
                Some(paper) => self.document(door, paper, &head).await,
                None => not_found(door),
            },
        };
        hear_out(&mut body).await;
        reply
    }

    /// The refusal of a caller without the credentials that the dealer asks for. Whoever has none yet may see the card, and what
    /// stands beside it.
    fn refuse(&self, site: &Site, head: &Parts, path: &str) -> Option<Reply> {
        let FrontParts { worker, caller, .. } = &*self.0;
        let shared = &worker.shared;
        let is_public = path == "/" || Paper::at(path).is_some() || path.starts_with("/.well-known/");
        // What a browser asks before a request has no credentials (Fetch, section 3.3.5).
        if shared.auth.is_open() || is_public || head.method == Method::OPTIONS {
            return None;
        }
        let refusal = shared.auth.judge(&head.headers, caller.certified).err()?;
        shared.world.traffic.unauthorized.fetch_add(1, Ordering::Relaxed);
        self.note_other(site, head);
        let status = StatusCode::from_u16(refusal.status).unwrap_or(StatusCode::UNAUTHORIZED);
        let mut reply = plain(status, refusal.text);
        for challenge in refusal.challenges {
            if let Ok(challenge) = HeaderValue::try_from(challenge) {
                reply.headers_mut().append(header::WWW_AUTHENTICATE, challenge);
            }
        }
        Some(reply)
    }

    /// What the header fields say, of a request that is no call or of a call under this contract. Where keys are asked for, a key
    /// says who calls, as a token does.
    fn fields<'h>(&self, head: &'h HeaderMap, contract: Option<Contract>) -> Fields<'h> {
        let FrontParts { worker, caller, .. } = &*self.0;
        let auth = &worker.shared.auth;
        let mut fields = Fields::read(caller.peer, head, contract);
        if !auth.is_open()
            && let Client::Origin { .. } = fields.client
            && let Some(key) = auth.key(head)
        {
            fields.client = Client::Credential(stable_hash(4, key));
        }
        fields
    }

    /// Answers a request to the MCP endpoint, as [`Front::call`] does.
    async fn mcp_call(&self, site: &Site, head: &Parts, body: &mut Incoming) -> Result<Reply, Reply> {
        match super::mcp::enter(&self.0.worker.shared.guests, &head.method, &head.headers) {
            Entry::Answered(reply) => {
                self.note_other(site, head);
                Err(reply)
            }
            Entry::Open => {
                let share = |reply| super::mcp::share(reply, &head.headers);
                self.call(site, Entrance::Mcp, head, body).await.map(share).map_err(share)
            }
        }
    }

    async fn document(&self, door: Door<'_>, paper: Paper, head: &Parts) -> Reply {
        let FrontParts { worker, wire, .. } = &*self.0;
        let shared = &worker.shared;
        let Parts { headers, uri, .. } = head;
        let scene = door.site.scene();
        let Some(document) = door.document(&scene, paper) else { return not_found(door) };
        if !matches!(head.method, Method::GET | Method::HEAD) {
            return not_allowed("GET, HEAD");
        }
        let fields = self.fields(headers, None);
        let call = self.to_dispatch(door.site, Entrance::A2a, fields, headers, b"", 0);
        let mut body = document.body.clone();
        let now = door.site.now(shared.clocks.now());
        let carried = wire.with_pending(|pending| {
            let notes = pending.map(|pending| &mut pending.notes);
            dispatch::touch_document(&scene.dealer, &call, (paper, uri.path()), now, &mut body, notes)
        });
        self.note_other(door.site, head);
        let max_age_s = shared.limits.card_max_age_s;
        match carried {
            None => documents::serve(document, max_age_s, headers),
            Some(carried) => {
                let answer =
                    documents::serve_touched(document, body, carried.http.as_ref(), max_age_s, headers);
                self.carry_out(door.site, *carried, answer).await
            }
        }
    }

    fn to_dispatch<'a>(
        &'a self,
        site: &'a Site,
        entrance: Entrance,
        fields: Fields<'a>,
        head: &'a HeaderMap,
        body: &'a [u8],
        nonce: u64,
    ) -> dispatch::Request<'a> {
        let in_flight = self.0.worker.shared.world.traffic.in_flight.load(Ordering::Relaxed);
        dispatch::Request { entrance, fields, head, body, nonce, faults: Some(&site.faults), in_flight }
    }

    /// Does what faults want beyond the body: waits, changes the HTTP around it, and has it delivered their way.
    async fn carry_out(&self, site: &Site, carried: Carried, mut reply: Reply) -> Reply {
        let wire = &self.0.wire;
        // A client that leaves during the delay was answered all the same.
        self.note_reply(&reply);
        if !carried.delay.is_zero() {
            wire.wait(carried.delay).await;
        }
        if let Some(http) = carried.http {
            let replaced = http.body.is_some();
            if http.close {
                wire.end_connection();
            }
            reply = override_http(reply, http);
            wire.with_pending(|pending| {
                if let Some(pending) = pending {
                    pending.notes.answered_by_http(reply.status().as_u16(), replaced);
                }
            });
        }
        if site.faults.headers {
            for told in &carried.told {
                if let Ok(value) = HeaderValue::from_str(told) {
                    reply.headers_mut().append(FAULT_APPLIED, value);
                }
            }
        }
        if let Some(script) = carried.script {
            wire.play(script, carried.lost);
        }
        reply
    }

    /// Waits until the record of a lead is written; whether it is.
    async fn is_safe(&self, ticket: Ticket) -> bool {
        match &self.0.worker.shared.world.ledger {
            Some(ledger) => ledger.settled(ticket).await.is_ok(),
            None => true,
        }
    }

    /// Answers a call; one that HTTP refuses, whose body nobody has read, with its refusal.
    async fn call(
        &self,
        site: &Site,
        entrance: Entrance,
        head: &Parts,
        body: &mut Incoming,
    ) -> Result<Reply, Reply> {
        let FrontParts { worker, wire, nonce, .. } = &*self.0;
        let Worker { shared, scratch, .. } = &**worker;
        let media_type = settle(entrance, head).map_err(|refusal| {
            self.note_other(site, head);
            in_words_of(entrance, *refusal)
        })?;
        let most = shared.limits.body_bytes;
        let body = match read_body(body, most, shared).await {
            Ok(body) => body,
            Err(error) => {
                self.note_other(site, head);
                return Ok(in_words_of(entrance, error.reply(most)));
            }
        };
        nonce.set(nonce.get().wrapping_add(1));
        let nonce = mix(nonce.get());
        let now = site.now(shared.clocks.now());
        let scene = site.scene();
        let fields = self.fields(&head.headers, Some(scene.dealer.spec().contract));
        let call = self.to_dispatch(site, entrance, fields, &head.headers, &body, nonce);
        let mut out = Vec::with_capacity(USUAL_REPLY);
        // The scratch buffers hold nothing over a call, and shared state is changed last: both survive a panic.
        let said = catch_unwind(AssertUnwindSafe(|| {
            dispatch(&scene.dealer, &mut scratch.borrow_mut(), &call, now, &mut out)
        }));
        wire.keep_request(&body);
        let said = wire.with_pending(|pending| {
            let Some(pending) = pending else { return said };
            scratch.borrow_mut().take_notes(&mut pending.notes);
            let caller = (fields.client, fields.key);
            pending.set_facts((now.business, now.traffic_ns), caller, scene.dealer.id());
            pending.binding = Some(entrance.binding());
            pending.head = fields.head.under(scene.dealer.spec().headers);
            if said.is_err() {
                note_failure(Some(pending));
            }
            said
        });
        let said = match said {
            Ok(dispatch::Reply { commit: Some(ticket), .. }) if !self.is_safe(ticket).await => {
                wire.with_pending(note_failure);
                out.clear();
                dispatch::internal_error(&scene.dealer, &call, NOT_WRITTEN, now, &mut out)
            }
            Ok(said) => said,
            Err(_) => {
                shared.world.traffic.panics.fetch_add(1, Ordering::Relaxed);
                tracing::error!("a handler panicked; the call was answered with INTERNAL_ERROR");
                out.clear();
                dispatch::internal_error(
                    &scene.dealer,
                    &call,
                    "the dealer failed unexpectedly",
                    now,
                    &mut out,
                )
            }
        };
        let status = StatusCode::from_u16(said.status).unwrap_or(StatusCode::OK);
        // Errors have no media type of their own.
        let media_type = if status == StatusCode::OK { media_type } else { JSON };
        let mut reply = reply(status, media_type, out);
        if status == StatusCode::ACCEPTED {
            reply.headers_mut().remove(header::CONTENT_TYPE);
        }
        if let Some(seconds) = said.retry_after_s {
            reply.headers_mut().insert(header::RETRY_AFTER, HeaderValue::from(seconds));
        }
        if let Some(uri) = said.activated {
            reply.headers_mut().insert(A2A_EXTENSIONS, HeaderValue::from_static(uri));
        }
        drop(scene);
        Ok(match said.carried {
            None => reply,
            Some(carried) => self.carry_out(site, *carried, reply).await,
        })
    }
}

/// What a dealer says of itself to whom happens upon it.
fn introduction(door: Door<'_>) -> Reply {
    let scene = door.site.scene();
    let text = door.document(&scene, Paper::Llms).map(|document| document.body.clone());
    reply(StatusCode::OK, PLAIN, text.unwrap_or_default())
}

fn not_found(door: Door<'_>) -> Reply {
    let text = format!("no such resource; the JSON-RPC endpoint is {}/a2a", door.path());
    plain(StatusCode::NOT_FOUND, text)
}

/// Notes that a call was answered with INTERNAL_ERROR, whatever it was.
fn note_failure(pending: Option<&mut Pending>) {
    if let Some(pending) = pending {
        pending.notes.clear();
        pending.notes.add(Told { outcome: Outcome::Aap(AapCode::InternalError), ..Told::other("") });
    }
}

/// Whether a dealer is reached through an interface.
fn serves(site: &Site, binding: Binding) -> bool {
    site.scene().dealer.spec().doors.has(binding)
}

/// What `/` answers: all dealers, or the only one's introduction unless the caller prefers otherwise.
fn entrance(world: &World, door: Door<'_>, head: &HeaderMap) -> Reply {
    let accept: Vec<_> = head.get_all(header::ACCEPT).iter().filter_map(|line| line.to_str().ok()).collect();
    let usual = if world.sites().len() > 1 { Form::Json } else { Form::Text };
    let mut reply = match Form::wanted(&accept.join(","), usual) {
        Form::Json => reply(StatusCode::OK, JSON, directory::json(world)),
        Form::Html => reply(StatusCode::OK, HTML, directory::html(world)),
        Form::Text => introduction(door),
    };
    reply.headers_mut().insert(header::VARY, HeaderValue::from_static("Accept"));
    reply
}

/// Puts an HTTP reply of a fault's own around, or in place of, the usual one.
fn override_http(mut reply: Reply, http: HttpOverride) -> Reply {
    if let Some(status) = http.status.and_then(|status| StatusCode::from_u16(status).ok()) {
        *reply.status_mut() = status;
    }
    if let Some(body) = http.body {
        *reply.body_mut() = body.into();
    }
    for (name, value) in http.headers {
        let name = HeaderName::from_static(name);
        match HeaderValue::try_from(value) {
            Ok(value) if !value.is_empty() => _ = reply.headers_mut().insert(name, value),
            _ => _ = reply.headers_mut().remove(name),
        }
    }
    if http.close {
        reply.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    }
    reply
}

/// What can be said of a call before its body is read: the media type to answer it with.
fn settle(entrance: Entrance, head: &Parts) -> Result<HeaderValue, Box<Reply>> {
    if head.method == Method::OPTIONS && matches!(entrance, Entrance::Pap(_)) {
        let mut reply = not_allowed("POST");
        *reply.status_mut() = StatusCode::NO_CONTENT;
        reply.headers_mut().remove(header::CONTENT_TYPE);
        *reply.body_mut() = Bytes::new();
        return Err(reply.into());
    }
    if head.method != Method::POST {
        return Err(not_allowed("POST").into());
    }
    match entrance {
        Entrance::A2a | Entrance::Mcp if is_json(&head.headers) => Ok(JSON),
        Entrance::A2a | Entrance::Mcp => {
            Err(plain(StatusCode::UNSUPPORTED_MEDIA_TYPE, "send Content-Type: application/json").into())
        }
        Entrance::Pap(skill) => {
            let given = head.headers.get_all(header::CONTENT_TYPE).iter().map(HeaderValue::as_bytes);
            let accept = head.headers.get_all(header::ACCEPT).iter();
            let accept: SmallVec<[&str; 4]> =
                accept.map(|line| line.to_str().unwrap_or("unreadable")).collect();
            pap::negotiate(skill, given, &accept).map(HeaderValue::from_static).map_err(|error| {
                let status = StatusCode::from_u16(error.status()).unwrap_or(StatusCode::BAD_REQUEST);
                plain(status, error.to_string()).into()
            })
        }
    }
}

/// A refusal by HTTP itself, as the protocol says such things.
fn in_words_of(entrance: Entrance, refusal: Reply) -> Reply {
    match entrance {
        Entrance::A2a | Entrance::Mcp => refusal,
        Entrance::Pap(_) => documents::problem(refusal),
    }
}

/// Whether the body is said to be JSON; an absent type is taken for it.
fn is_json(head: &HeaderMap) -> bool {
    head.get_all(header::CONTENT_TYPE).iter().all(|given| {
        let essence = given.as_bytes().split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        let Some((kind, form)) = essence.split_at_checked(b"application/".len()) else { return false };
        kind.eq_ignore_ascii_case(b"application/")
            && (form.eq_ignore_ascii_case(b"json")
                || form.last_chunk::<5>().is_some_and(|end| end.eq_ignore_ascii_case(b"+json")))
    })
}
