//! HTTP and the JSON-RPC envelope (AAP c; JSON-RPC 2.0).

use dealer_sim::protocol::Skill;
use serde_json::{Map, Value};

use super::super::evidence::{Answer, Evidence, Exchange, Unread};
use super::super::rule::{Finding, Refusal, Rule};
use super::{SERVED, SURVIVED, law, must, refused, served_or, should, silent};
use crate::transport::Fault;

const PARSE: &[Refusal] = &[Refusal::Code(-32700)];
const REQUEST: &[Refusal] = &[Refusal::Code(-32600)];
const METHOD: &[Refusal] = &[Refusal::Code(-32601)];
const PARAMS: &[Refusal] = &[Refusal::Code(-32602), Refusal::Aap(super::VALIDATION)];
const UNSUPPORTED: &[Refusal] = &[Refusal::Code(-32004)];
const PUSH: &[Refusal] = &[Refusal::Code(-32003)];
const TASK: &[Refusal] = &[Refusal::Code(-32004), Refusal::Code(-32001)];

pub(super) const RULES: &[Rule] = &[
    must(
        "http.whole-replies",
        "replies are whole HTTP/1.1 messages, and begin with the status line",
        "RFC 9112 2.1",
        law(whole),
    ),
    must(
        "http.lengths",
        "a reply ends where its Content-Length or its last chunk says",
        "RFC 9110 8.6; RFC 9112 6.3, 7.1",
        law(lengths),
    ),
    must(
        "http.nothing-behind",
        "nothing follows the reply to a request",
        "RFC 9112 6.3, 9.2",
        law(nothing_behind),
    ),
    must(
        "http.no-login",
        "no credentials are asked for (HTTP 401) unless the card says so",
        "AAP d.2, f",
        law(no_login),
    ),
    must("http.body", "a 2xx reply to a call has a body", "JSON-RPC 2.0, 5", law(body)),
    must(
        "http.json-type",
        "the Content-Type of a JSON-RPC reply is application/json",
        "A2A 9.1",
        law(json_type),
    ),
    must(
        "http.no-coding",
        "no content coding that the client did not accept",
        "RFC 9110 12.5.3",
        law(coding),
    ),
    silent("http.status-200", "JSON-RPC replies come under HTTP 200", "AAP b; INTEROP 17", law(status)),
    must(
        "rpc.json",
        "replies are JSON in UTF-8: one document, no name twice, no byte order mark",
        "RFC 8259",
        law(json),
    ),
    must(
        "rpc.object",
        "a reply to one request is one object",
        "JSON-RPC 2.0, 5",
        law(|seen| over(seen, |_, json| json.is_object())),
    ),
    must(
        "rpc.version",
        "replies have \"jsonrpc\": \"2.0\"",
        "JSON-RPC 2.0, 5",
        law(|seen| over(seen, |_, json| json.get("jsonrpc").and_then(Value::as_str) == Some("2.0"))),
    ),
    must(
        "rpc.one-of",
        "a reply has exactly one of result and error, and the other not even as null",
        "JSON-RPC 2.0, 5",
        law(|seen| over(seen, |_, json| json.get("result").is_some() != json.get("error").is_some())),
    ),
    must(
        "rpc.not-null",
        "neither result nor error is null",
        "A2A 9.4",
        law(|seen| {
            over(seen, |_, json| {
                !matches!(
                    (json.get("result"), json.get("error")),
                    (Some(Value::Null), _) | (_, Some(Value::Null))
                )
            })
        }),
    ),
    must("rpc.id", "the id is echoed with value and type", "JSON-RPC 2.0, 5; AAP c", law(ids)),
    must("rpc.id-number", "a number as id comes back as that number", "AAP c", SERVED),
    must("rpc.id-zero", "0 is an id", "AAP c", SERVED),
    should("rpc.id-large", "an id beyond 2^53 keeps all its digits", "AAP c", SERVED),
    silent("rpc.id-null", "null as id is answered with null, or refused", "AAP c", served_or(REQUEST)),
    silent(
        "rpc.id-missing",
        "a request without id is refused, or gets no body",
        "AAP c",
        served_or(&[Refusal::Code(-32600), Refusal::Http(200), Refusal::Http(202), Refusal::Http(204)]),
    ),
    must("rpc.id-object", "an object as id is refused with -32600", "JSON-RPC 2.0, 4", refused(REQUEST)),
    must("rpc.id-true", "true as id is refused with -32600", "JSON-RPC 2.0, 4", refused(REQUEST)),
    must("rpc.truncated", "truncated JSON is refused with -32700", "JSON-RPC 2.0, 5.1", refused(PARSE)),
    must("rpc.empty", "an empty body is refused with -32700", "JSON-RPC 2.0, 5.1", refused(PARSE)),
    must(
        "rpc.trailing",
        "data behind the document is refused with -32700",
        "JSON-RPC 2.0, 5.1",
        refused(PARSE),
    ),
    must("rpc.not-utf8", "bytes that are no UTF-8 are refused with -32700", "RFC 8259 8.1", refused(PARSE)),
    must("rpc.nan", "NaN is no JSON", "RFC 8259 6", refused(PARSE)),
    must("rpc.comment", "a comment is no JSON", "RFC 8259", refused(PARSE)),
    must("rpc.single-quotes", "single quotes are no JSON", "RFC 8259", refused(PARSE)),
    silent(
        "rpc.double-names",
        "a name twice in one object is refused",
        "RFC 7493 2.3",
        refused(&[Refusal::Code(-32700), Refusal::Code(-32600)]),
    ),
    silent(
        "rpc.byte-order-mark",
        "a byte order mark is skipped or refused, and not stumbled over",
        "RFC 8259 8.1",
        refused(&[Refusal::Code(-32700), Refusal::Code(-32600)]),
    ),
    must("rpc.scalar", "a number as a body is refused with -32600", "JSON-RPC 2.0, 4", refused(REQUEST)),
    must("rpc.empty-object", "{} is refused with -32600", "JSON-RPC 2.0, 4", refused(REQUEST)),
    must("rpc.empty-batch", "[] is refused with -32600", "JSON-RPC 2.0, 6", refused(REQUEST)),
    silent("rpc.batch", "a batch is served or refused, and not stumbled over", "AAP c", SURVIVED),
    must(
        "rpc.no-version",
        "a request without jsonrpc is refused with -32600",
        "JSON-RPC 2.0, 4",
        refused(REQUEST),
    ),
    must("rpc.version-1.0", "jsonrpc 1.0 is refused with -32600", "JSON-RPC 2.0, 4", refused(REQUEST)),
    must(
        "rpc.version-number",
        "jsonrpc as a number is refused with -32600",
        "JSON-RPC 2.0, 4",
        refused(REQUEST),
    ),
    must(
        "rpc.no-method",
        "a request without method is refused with -32600",
        "JSON-RPC 2.0, 4",
        refused(REQUEST),
    ),
    must(
        "rpc.method-number",
        "a method that is no string is refused with -32600",
        "JSON-RPC 2.0, 4",
        refused(REQUEST),
    ),
    must(
        "rpc.method-unknown",
        "an unknown method is refused with -32601",
        "JSON-RPC 2.0, 5.1",
        refused(METHOD),
    ),
    must("rpc.method-case", "sendMessage is an unknown method", "AAP c", refused(METHOD)),
    must(
        "rpc.method-0.3",
        "message/send, the name of A2A 0.3, is an unknown method",
        "AAP c; INTEROP 13",
        refused(&[Refusal::Code(-32601), Refusal::Code(-32009)]),
    ),
    must("rpc.method-skill", "a skill's id is an unknown method", "AAP c", refused(METHOD)),
    must("rpc.no-params", "SendMessage without params is refused with -32602", "AAP c", refused(PARAMS)),
    must("rpc.params-list", "a list as params is refused with -32602", "AAP c", refused(PARAMS)),
    must(
        "rpc.unknown-members",
        "unknown members of envelope, params and message are ignored",
        "A2A 5.7",
        SERVED,
    ),
    must(
        "a2a.streaming",
        "SendStreamingMessage is refused with -32004 unless the card declares streaming",
        "AAP c; A2A 3.3.4",
        law(|seen| unless(seen, "streaming", "a2a.streaming", UNSUPPORTED)),
    ),
    must(
        "a2a.subscribe",
        "SubscribeToTask is refused with -32004 unless the card declares streaming",
        "AAP c; A2A 3.3.4",
        law(|seen| unless(seen, "streaming", "a2a.subscribe", TASK)),
    ),
    must(
        "a2a.extended-card",
        "GetExtendedAgentCard is refused with -32004 unless the card declares it",
        "AAP c; A2A 3.3.4",
        law(|seen| unless(seen, "extendedAgentCard", "a2a.extended-card", UNSUPPORTED)),
    ),
    must(
        "a2a.push-create",
        "CreateTaskPushNotificationConfig is refused with -32003 unless declared",
        "AAP c; A2A 3.3.4",
        law(|seen| unless(seen, "pushNotifications", "a2a.push-create", PUSH)),
    ),
    must(
        "a2a.push-get",
        "GetTaskPushNotificationConfig is refused with -32003 unless declared",
        "AAP c; A2A 3.3.4",
        law(|seen| unless(seen, "pushNotifications", "a2a.push-get", PUSH)),
    ),
    must(
        "a2a.push-list",
        "ListTaskPushNotificationConfigs is refused with -32003 unless declared",
        "AAP c; A2A 3.3.4",
        law(|seen| unless(seen, "pushNotifications", "a2a.push-list", PUSH)),
    ),
    must(
        "a2a.push-delete",
        "DeleteTaskPushNotificationConfig is refused with -32003 unless declared",
        "AAP c; A2A 3.3.4",
        law(|seen| unless(seen, "pushNotifications", "a2a.push-delete", PUSH)),
    ),
    must(
        "a2a.get-task",
        "GetTask is refused with -32004, or with -32001 where tasks are served",
        "AAP c",
        refused(TASK),
    ),
    must(
        "a2a.cancel-task",
        "CancelTask is refused with -32004, or with -32001 where tasks are served",
        "AAP c",
        refused(TASK),
    ),
];

/// Ends that are not those of a connection that was lost: the server's HTTP itself is broken.
fn whole(seen: &Evidence) -> Finding {
    http(seen, |exchange| match &exchange.answer {
        Err(none) => none.fault != Fault::BadHttp,
        Ok(answer) => answer.begins_well,
    })
}

/// Lengths that are wrong. A connection may be lost in the middle of a document, but not behind its end.
fn lengths(seen: &Evidence) -> Finding {
    let mut finding = http(
        seen,
        |exchange| !matches!(&exchange.answer, Err(none) if none.document && none.fault != Fault::BadHttp),
    );
    if let Finding::Fail(breaches) = &mut finding {
        breaches
            .push("each time a whole JSON document came, and the length announced was another".to_owned());
    }
    finding
}

fn nothing_behind(seen: &Evidence) -> Finding {
    let answered = |exchange: &&Exchange| exchange.answer.is_ok();
    let mut breaches = Vec::new();
    for exchange in seen.exchanges.iter().filter(answered) {
        let Some(answer) = exchange.answered().filter(|answer| !answer.behind.is_empty()) else { continue };
        let text = String::from_utf8_lossy(&answer.behind);
        let text: String = text.chars().take(120).collect();
        breaches.push(format!(
            "[{}] HTTP {}, and {} bytes or more behind the reply: {text}",
            exchange.label,
            answer.status,
            answer.behind.len()
        ));
    }
    breaches.truncate(3);
    Finding::of(breaches, seen.exchanges.iter().filter(answered).count(), "nothing was answered")
}

/// Search must not demand a login, nor any skill one that the card does not declare.
fn no_login(seen: &Evidence) -> Finding {
    let asked = seen.card.as_ref().and_then(|card| card.card()?.get("securityRequirements")?.as_array());
    // An empty requirement among them is the anonymous way in.
    if asked.is_some_and(|list| !list.is_empty() && !list.iter().any(|one| one == &Value::Object(Map::new())))
    {
        return Finding::not_run("the card asks for credentials");
    }
    http(seen, |exchange| exchange.status() != Some(401))
}

/// A rule on every exchange, whatever came of it.
fn http(seen: &Evidence, keeps: impl Fn(&Exchange) -> bool) -> Finding {
    let breaches =
        seen.exchanges.iter().filter(|exchange| !keeps(exchange)).take(3).map(Exchange::quote).collect();
    Finding::of(breaches, seen.exchanges.iter().filter(|e| e.answer.is_ok()).count(), "nothing was answered")
}

/// The replies of calls that ask for one, under a status of success.
fn replies(seen: &Evidence) -> impl Iterator<Item = (&Exchange, &Answer)> {
    let answered = seen.exchanges.iter().filter_map(|exchange| Some((exchange, exchange.answered()?)));
    answered.filter(|(exchange, answer)| {
        (200..300).contains(&answer.status)
            && exchange.label != "rpc.id-missing"
            && exchange.label != "rpc.batch"
    })
}

fn held<'a>(
    looked_at: impl Iterator<Item = (&'a Exchange, &'a Answer)>,
    keeps: impl Fn(&Exchange, &Answer) -> bool,
) -> Finding {
    let mut count = 0;
    let mut breaches = Vec::new();
    for (exchange, answer) in looked_at {
        count += 1;
        if !keeps(exchange, answer) && breaches.len() < 3 {
            breaches.push(exchange.quote());
        }
    }
    Finding::of(breaches, count, "no such reply was seen")
}

fn body(seen: &Evidence) -> Finding {
    held(replies(seen), |_, answer| !answer.body.is_empty())
}

fn json_type(seen: &Evidence) -> Finding {
    held(replies(seen).filter(|(_, answer)| !answer.body.is_empty()), |_, answer| {
        let essence = answer.content_type.as_deref().and_then(|value| value.split(';').next());
        essence.is_some_and(|essence| essence.trim().eq_ignore_ascii_case("application/json"))
    })
}

fn coding(seen: &Evidence) -> Finding {
    held(replies(seen), |_, answer| {
        answer.content_encoding.as_deref().is_none_or(|coding| coding.eq_ignore_ascii_case("identity"))
    })
}

fn status(seen: &Evidence) -> Finding {
    let with_json = seen.exchanges.iter().filter_map(|exchange| Some((exchange, exchange.answered()?)));
    held(with_json.filter(|(exchange, _)| exchange.error().is_some()), |_, answer| answer.status == 200)
}

fn json(seen: &Evidence) -> Finding {
    let readable = replies(seen)
        .filter(|(_, answer)| !answer.body.is_empty() && !matches!(answer.json, Err(Unread::TooMuch(_))));
    let mut finding =
        held(readable, |_, answer| answer.json.is_ok() && !answer.body.starts_with(b"\xef\xbb\xbf"));
    if let Finding::Fail(breaches) = &mut finding {
        let why = replies(seen).find_map(|(_, answer)| match &answer.json {
            Err(Unread::NotJson(why)) => Some(why.clone()),
            _ => None,
        });
        breaches.extend(why.map(|why| format!("the first of them: {why}")));
    }
    finding
}

fn over(seen: &Evidence, keeps: impl Fn(&Exchange, &Value) -> bool) -> Finding {
    held(replies(seen).filter(|(exchange, _)| exchange.json().is_some()), |exchange, _| {
        exchange.json().is_some_and(|json| keeps(exchange, json))
    })
}

fn ids(seen: &Evidence) -> Finding {
    let with_id = replies(seen).filter(|(exchange, _)| exchange.json().is_some() && exchange.id.is_some());
    held(with_id, |exchange, _| {
        let got = exchange.json().and_then(|json| json.get("id"));
        // A refusal of the request as such may not know its id.
        let may_be_null = matches!(exchange.error_number(), Some(-32700 | -32600));
        got == exchange.id.as_ref() || (may_be_null && got == Some(&Value::Null))
    })
}

/// An operation that is refused unless the card declares the capability; a declared one must be served (AAP c).
fn unless(seen: &Evidence, capability: &str, label: &str, refusals: &[Refusal]) -> Finding {
    let Some(exchange) = seen.of(label) else { return seen.unasked(label) };
    let declared =
        seen.card.as_ref().and_then(|card| card.card()?.get("capabilities")?.get(capability)?.as_bool());
    let number = exchange.error_number();
    if let Some(why) = exchange.unjudgeable() {
        return Finding::NotRun(why);
    }
    if exchange.typed_code().is_some() && exchange.skill == Some(Skill::DealerInformation) {
        return Finding::not_run(format!("the dealer answered {}", exchange.said()));
    }
    // The order of header and method checks is free on a strict endpoint, but the probes carry both headers.
    let is_refused =
        refusals.iter().any(|refusal| matches!(refusal, Refusal::Code(code) if number == Some(*code)));
    match (declared == Some(true), is_refused || number == Some(-32601)) {
        (true, true) => Finding::fail(format!(
            "the card declares capabilities.{capability}, and the operation is refused; {}",
            exchange.quote()
        )),
        (true, false) => Finding::Pass,
        (false, _) if is_refused => Finding::Pass,
        (false, _) => Finding::fail(format!(
            "the card does not declare capabilities.{capability}: expected {refusals:?}; {}",
            exchange.quote()
        )),
    }
}
