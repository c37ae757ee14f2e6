//! The admin listener: the HTTP around what [`crate::admin`] answers.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use bytes::Bytes;
use http_body_util::{Either, Full};
use hyper::body::Incoming;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::http::request::Parts;
use hyper::{Method, Request, Response, StatusCode};
use tokio::sync::watch;

use super::events::Events;
use super::routes::{Reply, SERVER, hear_out, plain, read_body, reply};
use super::{Phase, Shared};
use crate::admin::guard::Stranger;
use crate::admin::{self, AdminReply, AdminRequest};

/// Bytes of an admin body.
const MAX_ADMIN_BODY: usize = 256 << 10;

/// What `If-Match` holds: all its lines (RFC 9110, section 5.3). One that is no text matches nothing, and is not left out: the
/// edit it guards would go through.
fn if_match(head: &HeaderMap) -> Option<String> {
    let lines = head.get_all(header::IF_MATCH).iter().map(|line| String::from_utf8_lossy(line.as_bytes()));
    lines.map(String::from).reduce(|all, line| format!("{all}, {line}"))
}

fn admin_request<'a>(head: &'a Parts, if_match: Option<&'a str>, body: &'a [u8]) -> AdminRequest<'a> {
    AdminRequest {
        method: head.method.as_str(),
        path: head.uri.path(),
        query: head.uri.query().unwrap_or_default(),
        if_match,
        body,
    }
}

/// The admin listener.
#[derive(Clone)]
pub(super) struct Admin {
    pub(super) shared: Arc<Shared>,
    pub(super) phase: watch::Receiver<Phase>,
}

impl Admin {
    pub(super) async fn answer(self, request: Request<Incoming>) -> Response<Either<Full<Bytes>, Events>> {
        let shared = &self.shared;
        let (head, mut body) = request.into_parts();
        if let Err(stranger) = shared.guard.check(head.uri.path(), &head.headers) {
            shared.world.traffic.admin_refused.fetch_add(1, Ordering::Relaxed);
            hear_out(&mut body).await;
            return refuse_stranger(stranger).map(whole);
        }
        let body = match read_body(&mut body, MAX_ADMIN_BODY, shared).await {
            Ok(body) => body,
            Err(error) => return error.reply(MAX_ADMIN_BODY).map(whole),
        };
        if let Some(reply) = self.stream(&head) {
            return reply;
        }
        if head.method == Method::GET && head.uri.path() == "/tls/certificate" {
            return self.certificate().map(whole);
        }
        let tags = if_match(&head.headers);
        let request = admin_request(&head, tags.as_deref(), &body);
        let ready = shared.ready.load(Ordering::Relaxed);
        let now = shared.clocks.now();
        let is_reset = request.method == "POST" && request.path.ends_with("/reset");
        let answer = if admin::is_long(&request) {
            // What takes long for a large stock or journal must not keep a health check waiting.
            let (shared, head, body) = (shared.clone(), head.clone(), body.clone());
            let work = move || {
                admin::handle(&shared.world, admin_request(&head, tags.as_deref(), &body), ready, now)
            };
            tokio::task::spawn_blocking(work).await.unwrap_or_else(|error| admin::failed(&error.to_string()))
        } else {
            admin::handle(&shared.world, request, ready, now)
        };
        // Nobody is told of a reset that a crash may take back.
        if let Some(ledger) = shared.world.ledger.as_ref().filter(|_| is_reset)
            && let Err(error) = ledger.settled(ledger.last()).await
        {
            return to_reply(admin::failed(&error.to_string())).map(whole);
        }
        to_reply(answer).map(whole)
    }

    /// The dealer's certificate, if it was made at the start.
    fn certificate(&self) -> Reply {
        match self.shared.tls.as_ref().and_then(|tls| tls.made.as_ref()) {
            Some(pem) => {
                reply(StatusCode::OK, HeaderValue::from_static("application/x-pem-file"), pem.clone())
            }
            None => to_reply(admin::refused(404, "no certificate was made at the start (--tls-self-signed)")),
        }
    }

    /// The journal's stream, if it is asked for.
    fn stream(&self, head: &Parts) -> Option<Response<Either<Full<Bytes>, Events>>> {
        if head.method != Method::GET {
            return None;
        }
        let (path, query) = (head.uri.path(), head.uri.query().unwrap_or_default());
        let last = head.headers.get("last-event-id").and_then(|id| id.to_str().ok());
        Some(match admin::journal::subscriber(&self.shared.world, path, query, last)? {
            Err(refusal) => to_reply(refusal).map(whole),
            Ok(subscriber) => match Events::open(&self.shared, subscriber, self.phase.clone()) {
                Err(refusal) => plain(StatusCode::SERVICE_UNAVAILABLE, refusal).map(whole),
                Ok(events) => stream(events),
            },
        })
    }
}

fn refuse_stranger(stranger: Stranger) -> Reply {
    let (status, text) = stranger.told();
    let mut reply = to_reply(admin::refused(status, text));
    if stranger == Stranger::Token {
        let challenge = HeaderValue::from_static("Bearer realm=\"dealer-sim admin\"");
        reply.headers_mut().insert(header::WWW_AUTHENTICATE, challenge);
    }
    reply
}

fn whole(body: Bytes) -> Either<Full<Bytes>, Events> {
    Either::Left(Full::new(body))
}

fn stream(events: Events) -> Response<Either<Full<Bytes>, Events>> {
    let mut reply = Response::new(Either::Right(events));
    let headers = reply.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/event-stream"));
    headers.insert(header::SERVER, SERVER);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    reply
}

fn to_reply(answer: AdminReply) -> Reply {
    let status = StatusCode::from_u16(answer.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut reply = reply(status, HeaderValue::from_static(answer.content_type), answer.body);
    let headers = reply.headers_mut();
    headers.insert(header::SERVER, SERVER);
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    if let Some(etag) = answer.etag.and_then(|etag| HeaderValue::try_from(etag).ok()) {
        headers.insert(header::ETAG, etag);
    }
    if let Some(allow) = answer.allow {
        headers.insert(header::ALLOW, HeaderValue::from_static(allow));
    }
    reply
}
