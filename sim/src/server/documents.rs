//! The HTTP around what a dealer publishes about itself.

use bytes::Bytes;
use hyper::header::{self, HeaderMap, HeaderValue};
use hyper::{Response, StatusCode};

use super::routes::{Reply, reply};
use crate::faults::effect::HttpOverride;
use crate::protocol::pap;
use crate::world::{Document, entity_tag};

/// A document, with what caches need (A2A 1.0, section 8.6; RFC 9110, sections 13.1.2 and 13.1.3).
pub(super) fn serve(document: &Document, max_age_s: u32, head: &HeaderMap) -> Reply {
    let modified = http_date(document.issued);
    let known = match head.get(header::IF_NONE_MATCH) {
        Some(tags) => tags.to_str().is_ok_and(|tags| {
            tags.split(',')
                .map(str::trim)
                .any(|tag| tag == "*" || tag.trim_start_matches("W/") == document.etag)
        }),
        None => head
            .get(header::IF_MODIFIED_SINCE)
            .and_then(|since| since.to_str().ok())
            .is_some_and(|since| modified_since(since, document.issued)),
    };
    let mut answer = if known {
        let mut answer = Response::new(Bytes::new());
        *answer.status_mut() = StatusCode::NOT_MODIFIED;
        answer
    } else {
        reply(StatusCode::OK, HeaderValue::from_static(document.media_type), document.body.clone())
    };
    let headers = answer.headers_mut();
    // Pages of other origins read it, too (BINDINGS, a.2 and b.4).
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, HeaderValue::from_static("*"));
    let cached = format!("public, max-age={max_age_s}");
    let fields = [
        (header::CACHE_CONTROL, cached),
        (header::ETAG, document.etag.clone()),
        (header::LAST_MODIFIED, modified),
    ];
    for (name, value) in fields {
        if let Ok(value) = HeaderValue::try_from(value) {
            headers.insert(name, value);
        }
    }
    answer
}

/// A document as a fault left it. One that says something else has an entity tag of its own, so that no cache hides it; one
/// that is only late, or delivered in another way, is known again as ever.
pub(super) fn serve_touched(
    document: &Document,
    body: Vec<u8>,
    http: Option<&HttpOverride>,
    max_age_s: u32,
    head: &HeaderMap,
) -> Reply {
    let is_itself = body == document.body;
    let told = http.and_then(|http| http.headers.iter().find(|(name, _)| *name == "etag"));
    let etag = match told {
        Some((_, etag)) => etag.clone(),
        None if is_itself => document.etag.clone(),
        None => entity_tag(&body),
    };
    let is_replaced = http.is_some_and(|http| http.status.is_some() || http.body.is_some());
    let mut conditions = HeaderMap::new();
    // Without a tag there is nothing to know it by.
    if !is_replaced && !etag.is_empty() {
        let dates = is_itself.then_some(header::IF_MODIFIED_SINCE);
        for name in [header::IF_NONE_MATCH].into_iter().chain(dates) {
            if let Some(value) = head.get(&name) {
                conditions.insert(name, value.clone());
            }
        }
    }
    serve(&Document { body, etag, ..*document }, max_age_s, &conditions)
}

/// A refusal in plain text as the PAP door says it.
pub(super) fn problem(mut refusal: Reply) -> Reply {
    let status = refusal.status();
    if !refusal.body().is_empty() {
        let detail = String::from_utf8_lossy(refusal.body());
        let body =
            pap::problem(status.as_u16(), status.canonical_reason().unwrap_or("Error"), detail.trim_end());
        *refusal.body_mut() = body.into();
        refusal.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(pap::PROBLEM));
    }
    refusal
}

/// IMF-fixdate (RFC 9110, section 5.6.7).
fn http_date(instant: jiff::Timestamp) -> String {
    instant.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string()
}

/// Whether a document of this instant is unchanged since a date. A date that cannot be read changes nothing.
fn modified_since(since: &str, issued: jiff::Timestamp) -> bool {
    jiff::fmt::rfc2822::parse(since).is_ok_and(|since| issued.as_second() <= since.timestamp().as_second())
}
