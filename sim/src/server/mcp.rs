//! The HTTP around the MCP endpoint: who may ask, from which pages, and for what kind of reply.

use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, StatusCode};

use super::routes::{JSON, Reply, plain, reply};
use crate::protocol::accept::liking;
use crate::protocol::error::code;
use crate::protocol::mcp::{Guests, Refusal, write_refusal};

/// What a page may send beyond the fields that every page may.
const ALLOWED: HeaderValue = HeaderValue::from_static(
    "Content-Type, Accept, MCP-Protocol-Version, Mcp-Method, Mcp-Name, Mcp-Session-Id, Last-Event-ID, X-Sim-Client, \
     X-Sim-Key, X-Sim-Fault",
);

/// What comes before a request is a call.
pub(super) enum Entry {
    /// It may be one.
    Open,
    /// It is answered already.
    Answered(Reply),
}

/// Lets a request in, or answers it.
pub(super) fn enter(guests: &Guests, method: &Method, head: &HeaderMap) -> Entry {
    let value = |name: HeaderName| head.get(name).map(HeaderValue::as_bytes);
    if let Err(unwelcome) = guests.admit(value(header::ORIGIN), value(header::HOST)) {
        let mut body = Vec::new();
        write_refusal(&mut body, "null", &Refusal::new(403, code::INVALID_REQUEST, unwelcome.to_string()));
        return Entry::Answered(reply(StatusCode::FORBIDDEN, JSON, body));
    }
    if *method == Method::OPTIONS {
        let mut answer = reply(StatusCode::NO_CONTENT, JSON, Vec::new());
        let headers = answer.headers_mut();
        headers.remove(header::CONTENT_TYPE);
        headers.insert(header::ALLOW, HeaderValue::from_static("POST, OPTIONS"));
        if head.contains_key(header::ORIGIN) {
            headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("POST"));
            headers.insert(header::ACCESS_CONTROL_ALLOW_HEADERS, ALLOWED);
            headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
        }
        return Entry::Answered(share(answer, head));
    }
    if *method == Method::POST && !takes_json(head) {
        let text = "the reply is application/json, which Accept does not take";
        return Entry::Answered(share(plain(StatusCode::NOT_ACCEPTABLE, text), head));
    }
    Entry::Open
}

/// Clients must list two types and many list one or none; JSON is what they get, so JSON must do.
fn takes_json(head: &HeaderMap) -> bool {
    let mut lines = head.get_all(header::ACCEPT).iter().peekable();
    lines.peek().is_none()
        || lines.any(|line| {
            line.to_str().is_ok_and(|line| {
                liking([line], ["application", "json"]).is_some_and(|(_, weight)| weight > 0)
            })
        })
}

/// Lets the page that asked read the reply.
pub(super) fn share(mut answer: Reply, head: &HeaderMap) -> Reply {
    if let Some(origin) = head.get(header::ORIGIN) {
        let headers = answer.headers_mut();
        headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
        headers.append(header::VARY, HeaderValue::from_static("Origin"));
    }
    answer
}
