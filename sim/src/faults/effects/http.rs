//! What may stand between a client and its JSON-RPC reply in HTTP: gateways, statuses, header fields.

use std::time::Duration;

use super::{breach, bytes, duration, integer, lawful, text, word};
use crate::faults::effect::{Apply, Args, EffectInfo, HttpOverride, Param};
use crate::faults::script::{Script, Step};

const FAMILY: &str = "http";
const RETRY_AFTER: Param =
    duration("retry_after", "0s", "Retry-After in whole seconds, rounded up; 0s leaves it out");
const TYPE: &str = "content-type";

pub(super) static EFFECTS: &[EffectInfo] = &[
    lawful(
        FAMILY,
        "http_status",
        &[integer("status", 400, 599, "500", "the status"), RETRY_AFTER],
        "this status with a gateway's page of HTML; the work is not done",
        Apply::Http(|args| {
            let status = u16::try_from(args.integer("status").clamp(400, 599)).unwrap_or(500);
            gateway(status, "Error", args)
        }),
    ),
    lawful(
        FAMILY,
        "http_400",
        &[],
        "HTTP 400 with a page of HTML, as a gateway that dislikes the request",
        Apply::Http(|args| gateway(400, "Bad Request", args)),
    ),
    // No login may be demanded that the card does not declare (AAP digest, d.2 and f).
    breach(
        FAMILY,
        "http_401",
        &[],
        "HTTP 401 with WWW-Authenticate, though the card asks for no credentials",
        Apply::Http(|args| {
            let mut reply = gateway(401, "Authorization Required", args);
            reply.headers.push(("www-authenticate", "Bearer realm=\"dealer\"".to_owned()));
            reply
        }),
    ),
    lawful(
        FAMILY,
        "http_403",
        &[],
        "HTTP 403 with a page of HTML, as a web application firewall gives it",
        Apply::Http(|args| gateway(403, "Forbidden", args)),
    ),
    lawful(
        FAMILY,
        "http_404",
        &[],
        "HTTP 404: the endpoint has moved away",
        Apply::Http(|args| gateway(404, "Not Found", args)),
    ),
    lawful(
        FAMILY,
        "http_408",
        &[],
        "HTTP 408, and the connection closes",
        Apply::Http(|args| HttpOverride { close: true, ..gateway(408, "Request Time-out", args) }),
    ),
    lawful(
        FAMILY,
        "http_413",
        &[],
        "HTTP 413, and the connection closes",
        Apply::Http(|args| HttpOverride { close: true, ..gateway(413, "Request Entity Too Large", args) }),
    ),
    lawful(
        FAMILY,
        "http_429",
        &[duration("retry_after", "2s", "Retry-After in whole seconds, rounded up; 0s leaves it out")],
        "HTTP 429 with a page of HTML",
        Apply::Http(|args| gateway(429, "Too Many Requests", args)),
    ),
    lawful(
        FAMILY,
        "http_429_with_date",
        &[],
        "HTTP 429 whose Retry-After is a date (RFC 9110, 10.2.3), long past",
        Apply::Http(|args| {
            let mut reply = gateway(429, "Too Many Requests", args);
            reply.headers.push(("retry-after", "Thu, 01 Jan 2026 00:00:00 GMT".to_owned()));
            reply
        }),
    ),
    lawful(
        FAMILY,
        "http_500",
        &[],
        "HTTP 500 with a page of HTML",
        Apply::Http(|args| gateway(500, "Internal Server Error", args)),
    ),
    lawful(
        FAMILY,
        "http_502",
        &[],
        "HTTP 502 with a page of HTML",
        Apply::Http(|args| gateway(502, "Bad Gateway", args)),
    ),
    lawful(
        FAMILY,
        "http_503",
        &[RETRY_AFTER],
        "HTTP 503 with a page of HTML, with Retry-After if asked for",
        Apply::Http(|args| gateway(503, "Service Temporarily Unavailable", args)),
    ),
    lawful(
        FAMILY,
        "http_504",
        &[],
        "HTTP 504 with a page of HTML, though the work is done: the gateway gave up waiting",
        Apply::Http(|args| HttpOverride { commit: true, ..gateway(504, "Gateway Time-out", args) }),
    ),
    lawful(
        FAMILY,
        "http_status_with_reply",
        &[integer("status", 201, 599, "429", "the status around the JSON-RPC reply")],
        "the JSON-RPC reply under another status than 200; the Python SDK drops its body",
        Apply::Http(|args| HttpOverride {
            status: u16::try_from(args.integer("status").clamp(201, 599)).ok(),
            ..HttpOverride::default()
        }),
    ),
    breach(
        FAMILY,
        "http_204",
        &[],
        "HTTP 204 without a body",
        Apply::Http(|_| HttpOverride { status: Some(204), body: Some(Vec::new()), ..unset(&[TYPE]) }),
    ),
    lawful(
        FAMILY,
        "http_redirect",
        &[
            word("status", &["301", "302", "303", "307", "308"], "307", "the status"),
            text("location", "\"/a2a/\"", "the value of Location"),
        ],
        "a redirect; some clients repeat the call there, some turn it into a GET, some fail",
        Apply::Http(|args| HttpOverride {
            status: args.text("status").parse().ok(),
            // A line break in a field's value would be another field.
            headers: vec![("location", one_line(args.text("location")))],
            body: Some(Vec::new()),
            ..HttpOverride::default()
        }),
    ),
    breach(
        FAMILY,
        "http_wrong_content_type",
        &[text("type", "\"text/html; charset=utf-8\"", "the content type")],
        "the JSON-RPC reply under another content type",
        Apply::Http(|args| HttpOverride {
            headers: vec![(TYPE, one_line(args.text("type")))],
            ..HttpOverride::default()
        }),
    ),
    breach(
        FAMILY,
        "http_no_content_type",
        &[],
        "the JSON-RPC reply without a content type",
        Apply::Http(|_| unset(&[TYPE])),
    ),
    breach(
        FAMILY,
        "http_gzip_claimed",
        &[],
        "Content-Encoding says gzip and the body is not compressed",
        Apply::Http(|_| HttpOverride {
            headers: vec![("content-encoding", "gzip".to_owned())],
            ..HttpOverride::default()
        }),
    ),
    breach(
        FAMILY,
        "http_encoding_unknown",
        &[],
        "Content-Encoding names a coding that does not exist",
        Apply::Http(|_| HttpOverride {
            headers: vec![("content-encoding", "x-dealer".to_owned())],
            ..HttpOverride::default()
        }),
    ),
    lawful(
        FAMILY,
        "http_huge_headers",
        &[bytes("size", 1 << 20, "64KiB", "the size of the field")],
        "a header field larger than most clients take",
        Apply::Http(|args| HttpOverride {
            headers: vec![("x-huge", "h".repeat(args.bytes("size").min(1 << 20) as usize))],
            ..HttpOverride::default()
        }),
    ),
    lawful(
        FAMILY,
        "http_no_echo",
        &[],
        "the reply has no A2A-Extensions: the activated extension is not echoed",
        Apply::Http(|_| unset(&["a2a-extensions"])),
    ),
    breach(
        FAMILY,
        "http_echo_wrong",
        &[],
        "A2A-Extensions of the reply names an extension that was not activated",
        Apply::Http(|_| HttpOverride {
            headers: vec![("a2a-extensions", "https://vendor.example.test/extensions/other/v9".to_owned())],
            ..HttpOverride::default()
        }),
    ),
    lawful(
        FAMILY,
        "http_close",
        &[],
        "Connection: close, and the connection ends after the reply",
        Apply::Http(|_| HttpOverride { close: true, ..HttpOverride::default() }),
    ),
    breach(
        FAMILY,
        "http_content_length_long",
        &[],
        "Content-Length promises 1 GiB; the body ends early and the connection closes",
        Apply::Deliver(|_, _| head("content-length", "content-length: 1073741824\r\n", &[REST, Step::Close])),
    ),
    breach(
        FAMILY,
        "http_content_length_short",
        &[],
        "Content-Length is 10; the rest of the body runs into the next reply",
        Apply::Deliver(|_, _| head("content-length", "content-length: 10\r\n", &[REST, Step::Close])),
    ),
    breach(
        FAMILY,
        "http_content_length_twice",
        &[],
        "two Content-Length fields that differ",
        Apply::Deliver(|_, _| head("", "content-length: 10\r\n", &[REST, Step::Close])),
    ),
    breach(
        FAMILY,
        "http_content_length_text",
        &[],
        "Content-Length is no number",
        Apply::Deliver(|_, _| head("content-length", "content-length: many\r\n", &[REST, Step::Close])),
    ),
    breach(
        FAMILY,
        "http_chunk_size_broken",
        &[],
        "a chunked body whose chunk size is no number",
        Apply::Deliver(|_, _| {
            head(
                "content-length",
                CHUNKED,
                &[Step::WriteRaw(b"zz\r\n"), REST, Step::WriteRaw(LAST_CHUNK), Step::Close],
            )
        }),
    ),
    breach(
        FAMILY,
        "http_chunk_cut",
        &[],
        "a chunked body whose first chunk promises more than comes before the connection closes",
        Apply::Deliver(|_, _| {
            head("content-length", CHUNKED, &[Step::WriteRaw(b"40000000\r\n"), REST, Step::Close])
        }),
    ),
    // As silence_in_body: a message that has not ended yet breaks no rule.
    lawful(
        FAMILY,
        "http_chunks_unfinished",
        &[],
        "a chunked body of one whole chunk, whose end never comes: the connection stays open",
        Apply::Deliver(|_, _| {
            let chunk = Step::WriteRaw(b"12\r\n{\"jsonrpc\":\"2.0\",\"\r\n");
            head("content-length", CHUNKED, &[chunk, Step::Silence])
        }),
    ),
    breach(
        FAMILY,
        "http_status_line_broken",
        &[],
        "a status line without a status",
        Apply::Deliver(|_, _| Script {
            steps: vec![Step::WriteRaw(b"HTTP/1.1 fine\r\nconnection: close\r\n\r\n"), Step::Close],
        }),
    ),
    lawful(
        FAMILY,
        "http_early_hints",
        &[],
        "an informational 103 before the reply",
        Apply::Deliver(|_, _| Script {
            steps: vec![Step::WriteRaw(b"HTTP/1.1 103 Early Hints\r\nlink: </llms.txt>\r\n\r\n"), REST],
        }),
    ),
    breach(
        FAMILY,
        "http_extra_reply",
        &[],
        "a second reply that nobody asked for follows on the connection",
        Apply::Deliver(|_, _| {
            let extra = b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 30\r\n\r\n\
                          {\"jsonrpc\":\"2.0\",\"id\":\"extra\"}";
            Script { steps: vec![REST, Step::WriteRaw(extra)] }
        }),
    ),
    lawful(
        FAMILY,
        "http_head_then_body",
        &[duration("pause", "500ms", "the time between head and body")],
        "the head comes at once and the body later",
        Apply::Deliver(|args, _| {
            let pause = Duration::from_nanos(args.duration_ns("pause"));
            head("", "", &[Step::Wait(pause), REST])
        }),
    ),
];

const REST: Step = Step::Write(u64::MAX);
const CHUNKED: &str = "transfer-encoding: chunked\r\n";
const LAST_CHUNK: &[u8] = b"\r\n0\r\n\r\n";

fn head(without: &'static str, with: &'static str, rest: &[Step]) -> Script {
    let mut steps = vec![Step::Head { without, with }];
    steps.extend_from_slice(rest);
    Script { steps }
}

/// The reply of a gateway that stands before the dealer: HTML, in the form that the common ones use.
pub(super) fn gateway(status: u16, reason: &str, args: &Args) -> HttpOverride {
    let body = format!(
        "<html>\r\n<head><title>{status} {reason}</title></head>\r\n<body>\r\n<center><h1>{status} {reason}</h1>\
         </center>\r\n<hr><center>gateway</center>\r\n</body>\r\n</html>\r\n"
    );
    let mut headers = vec![(TYPE, "text/html".to_owned())];
    let wait = args.duration_ns("retry_after").div_ceil(1_000_000_000);
    if wait > 0 {
        headers.push(("retry-after", wait.to_string()));
    }
    HttpOverride { status: Some(status), headers, body: Some(body.into_bytes()), ..HttpOverride::default() }
}

/// An override that takes header fields out.
pub(super) fn unset(fields: &[&'static str]) -> HttpOverride {
    let headers = fields.iter().map(|field| (*field, String::new())).collect();
    HttpOverride { headers, ..HttpOverride::default() }
}

fn one_line(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).collect()
}
