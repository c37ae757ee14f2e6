//! From a reply to its outcome: a pure function of bytes and of what was expected. What stands here is A2A's; the other
//! bindings have files of their own.

use dealer_sim::protocol::contract::ErrorShape;
use dealer_sim::protocol::error::{AAP_ERROR_KIND, AAP_ERROR_TYPE};
use dealer_sim::protocol::{Binding, Contract, Skill};
use serde::Deserialize;
use serde_json::value::RawValue;

use super::reply::{Envelope, MessageView, ResultView, check_id};
use super::scan::{Kind, Raw};
use super::{Breach, Outcome, mcp, pap};
use crate::transport::Content;

/// What the reply to a request must look like.
#[derive(Debug, Clone, Copy)]
pub struct Expectation<'a> {
    /// The JSON-RPC id sent, as its JSON text.
    pub id: &'a [u8],
    /// The `messageId` sent, without its quotes.
    pub message_id: &'a [u8],
    /// The `contextId` sent, as the inside of its JSON string; `None` on the first request of a conversation.
    pub context_id: Option<&'a [u8]>,
    /// The skill asked.
    pub skill: Skill,
    /// The contract spoken.
    pub contract: Contract,
    /// The binding through which the request went.
    pub binding: Binding,
}

/// The outcome of a whole reply, and the conversation's id if it has a valid one, as the inside of its JSON string.
///
/// A JSON-RPC error counts as that error under any HTTP status, since it says more than the status does; a status
/// other than 2xx with any other body counts as the status.
pub fn classify<'a>(
    status: u16,
    content: Content,
    body: &'a [u8],
    expected: &Expectation<'_>,
) -> (Outcome, Option<&'a [u8]>) {
    let success = (200..300).contains(&status);
    if content == Content::Encoded {
        return (
            if success { Outcome::Protocol(Breach::ContentEncoding) } else { Outcome::Http(status) },
            None,
        );
    }
    match expected.binding {
        Binding::A2a => {}
        Binding::Mcp => return (mcp::classify(status, content, body, expected), None),
        Binding::Pap => return (pap::classify(status, content, body, expected), None),
    }
    let envelope = match Envelope::read(body, ResultView::read) {
        Ok(envelope) if envelope.is_object => envelope,
        Ok(_) if success => return (Outcome::Protocol(Breach::Envelope), None),
        Err(_) if success => return (Outcome::Protocol(Breach::NotJson), None),
        _ => return (Outcome::Http(status), None),
    };
    if !success && envelope.error.is_none() {
        return (Outcome::Http(status), None);
    }
    match judge(&envelope, content, expected) {
        Ok((outcome, context_id)) => (outcome, context_id),
        Err(breach) => (Outcome::Protocol(breach), None),
    }
}

fn judge<'a>(
    envelope: &Envelope<'a, ResultView<'a>>,
    content: Content,
    expected: &Expectation<'_>,
) -> Result<(Outcome, Option<&'a [u8]>), Breach> {
    if content != Content::Json {
        return Err(Breach::ContentType);
    }
    if !is_text(envelope.jsonrpc, "2.0") {
        return Err(Breach::Envelope);
    }
    match (&envelope.result, envelope.error) {
        (Some(result), None) => {
            check_id(envelope.id, expected.id)?;
            if result.is_null {
                return Err(Breach::ResultShape);
            }
            let message = match &result.message {
                Some(message) if message.is_object => message,
                Some(_) => return Err(Breach::ResultShape),
                None if result.has_task => return Err(Breach::Task),
                None if result.is_flat => return Err(Breach::FlatResult),
                None => return Err(Breach::ResultShape),
            };
            let context_id = check_message(message, expected)?;
            Ok((Outcome::Ok, context_id))
        }
        (None, Some(error)) => {
            let outcome = error_outcome(error, expected.contract.error_shape)?;
            // A typed error comes of a request that was read.
            let code = if let Outcome::Rpc(code) = outcome { code } else { 0 };
            envelope.check_error_id(code, expected.id)?;
            Ok((outcome, None))
        }
        (Some(result), Some(error)) if result.is_null || error.kind() == Kind::Null => {
            Err(Breach::NullMember)
        }
        _ => Err(Breach::Envelope),
    }
}

pub(super) fn is_text(value: Option<Raw<'_>>, wanted: &str) -> bool {
    // Nearly always byte for byte; the same text may be escaped otherwise.
    value.is_some_and(|value| {
        value.quoted() == Some(wanted.as_bytes()) || value.text().is_some_and(|text| text == wanted)
    })
}

fn check_message<'a>(
    message: &MessageView<'a>,
    expected: &Expectation<'_>,
) -> Result<Option<&'a [u8]>, Breach> {
    if !is_text(message.role, "ROLE_AGENT") {
        return Err(Breach::Role);
    }
    match message.message_id.and_then(Raw::quoted) {
        Some(id) if !id.is_empty() && id != expected.message_id => {}
        _ => return Err(Breach::MessageId),
    }
    let context_id = match message.context_id {
        Some(raw) => Some(check_context(raw, expected)?),
        None if expected.contract.replies_name_context => return Err(Breach::ContextId),
        None => None,
    };
    let part = message.part.as_ref().filter(|part| part.has_data).ok_or(Breach::Parts)?;
    if !is_text(part.media_type, expected.skill.response_media_type()) {
        return Err(Breach::MediaType);
    }
    if !is_text(part.payload_type, expected.skill.response_type()) {
        return Err(Breach::PayloadType);
    }
    Ok(context_id)
}

fn check_context<'a>(raw: Raw<'a>, expected: &Expectation<'_>) -> Result<&'a [u8], Breach> {
    let context_id = raw.quoted().filter(|id| !id.is_empty()).ok_or(Breach::ContextId)?;
    let same = |sent: &[u8]| {
        context_id == sent
            || raw.text()
                == serde_json::from_slice(&[b"\"", sent, b"\""].concat()).ok().map(std::borrow::Cow::Owned)
    };
    if expected.context_id.is_none_or(same) { Ok(context_id) } else { Err(Breach::ContextId) }
}

#[derive(Deserialize)]
struct ErrorMember<'a> {
    code: i64,
    #[serde(default, borrow)]
    data: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct ErrorEntry {
    #[serde(rename = "@type")]
    type_url: String,
    #[serde(default)]
    code: Option<serde_json::Value>,
}

/// The typed entry where it is all of `data` (1.x).
#[derive(Deserialize)]
struct ErrorObject {
    #[serde(rename = "type")]
    kind: String,
    #[serde(default)]
    code: Option<serde_json::Value>,
}

/// The outcome of `error`. Errors are small, so they are parsed in full.
fn error_outcome(error: Raw<'_>, shape: ErrorShape) -> Result<Outcome, Breach> {
    if error.kind() == Kind::Null {
        return Err(Breach::Envelope);
    }
    let error: ErrorMember<'_> = serde_json::from_slice(error.0).map_err(|_| Breach::ErrorShape)?;
    if let Some(data) = error.data {
        // By the typed entry, never by the number: -32004 (-32601 in 1.x) with one is UNSUPPORTED_SKILL, without one it is
        // A2A's (JSON-RPC's).
        if let Some(code) = typed_code(data.get(), shape)? {
            let code = code.as_ref().and_then(serde_json::Value::as_str);
            let code = code.filter(|code| is_code(code)).ok_or(Breach::ErrorShape)?;
            return Ok(Outcome::Aap(code.into()));
        }
    }
    Ok(match error.code {
        // A2A's own range (A2A 1.0, section 5.4).
        -32009..=-32001 => Outcome::A2a(error.code),
        code => Outcome::Rpc(code),
    })
}

/// The `code` of the typed entry, if there is one. A2A's own errors are an array under every contract.
fn typed_code(data: &str, shape: ErrorShape) -> Result<Option<Option<serde_json::Value>>, Breach> {
    let is_object = data.starts_with('{');
    match shape {
        ErrorShape::Object if is_object => {
            let entry: ErrorObject = serde_json::from_str(data).map_err(|_| Breach::ErrorShape)?;
            if entry.kind == AAP_ERROR_KIND { Ok(Some(entry.code)) } else { Err(Breach::ErrorShape) }
        }
        ErrorShape::Object | ErrorShape::Array => {
            let entries: Vec<ErrorEntry> = serde_json::from_str(data).map_err(|_| Breach::ErrorShape)?;
            match entries.into_iter().find(|entry| entry.type_url == AAP_ERROR_TYPE) {
                Some(_) if shape == ErrorShape::Object => Err(Breach::ErrorShape),
                entry => Ok(entry.map(|entry| entry.code)),
            }
        }
    }
}

/// Codes become names in results: only what looks like one is taken.
pub(super) fn is_code(code: &str) -> bool {
    (1..=64).contains(&code.len())
        && code.bytes().all(|byte| byte.is_ascii_uppercase() || byte.is_ascii_digit() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const EXPECTED: Expectation<'static> = Expectation {
        id: b"\"r1\"",
        message_id: b"m-sent",
        context_id: Some(b"ctx-1"),
        skill: Skill::InventorySearch,
        contract: Contract::V3_0,
        binding: Binding::A2a,
    };

    /// What the same body is under contract 1.2.
    fn before_2_0(value: &Value) -> String {
        let expected = Expectation { contract: Contract::V1_2, ..EXPECTED };
        classify(200, Content::Json, value.to_string().as_bytes(), &expected).0.to_string()
    }

    #[test]
    fn errors_of_1_x_are_the_typed_entry_alone() {
        let entry =
            |code: &str| json!({"type": "aap.error", "code": code, "message": "m", "retryable": false});
        assert_eq!(before_2_0(&failed(-32601, &entry("UNSUPPORTED_SKILL"))), "aap.UNSUPPORTED_SKILL");
        assert_eq!(before_2_0(&failed(-32002, &entry("RATE_LIMITED"))), "aap.RATE_LIMITED");
        assert_eq!(before_2_0(&failed(-32601, &json!([]))), "rpc.-32601");
        assert_eq!(
            before_2_0(&json!({"jsonrpc": "2.0", "id": "r1", "error": {"code": -32601, "message": "m"}})),
            "rpc.-32601"
        );
        let info = json!([{"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "X", "domain": "a2a-protocol.org"}]);
        assert_eq!(before_2_0(&failed(-32004, &info)), "a2a.-32004");
        for wrong in [
            json!({"code": "RATE_LIMITED"}),
            json!({"type": "aap.error"}),
            json!({"type": "error", "code": "RATE_LIMITED"}),
            json!([{"@type": AAP_ERROR_TYPE, "type": "aap.error", "code": "RATE_LIMITED"}]),
            json!("RATE_LIMITED"),
        ] {
            assert_eq!(before_2_0(&failed(-32002, &wrong)), "protocol.error_shape", "{wrong}");
        }
        assert_eq!(of(&failed(-32601, &entry("UNSUPPORTED_SKILL"))), "protocol.error_shape");
    }

    #[test]
    fn replies_of_1_x_need_not_name_the_conversation() {
        let mut reply = good();
        reply["result"]["message"]["contextId"] = json!("ctx-2");
        assert_eq!(before_2_0(&reply), "protocol.context_id");
        reply["result"]["message"].as_object_mut().unwrap().remove("contextId");
        assert_eq!((before_2_0(&reply), of(&reply)), ("ok".to_owned(), "protocol.context_id".to_owned()));
    }

    fn good() -> Value {
        json!({"jsonrpc": "2.0", "id": "r1", "result": {"message": {
            "messageId": "m-new", "contextId": "ctx-1", "role": "ROLE_AGENT",
            "parts": [{
                "data": {"type": "inventory.search.response", "data": {"total": 0, "vehicles": []}},
                "mediaType": "application/vnd.autoagent.inventory-search-response+json"
            }]
        }}})
    }

    fn failed(code: i64, data: &Value) -> Value {
        json!({"jsonrpc": "2.0", "id": "r1", "error": {"code": code, "message": "m", "data": data}})
    }

    fn label(status: u16, body: &str) -> String {
        classify(status, Content::Json, body.as_bytes(), &EXPECTED).0.to_string()
    }

    fn of(value: &Value) -> String {
        label(200, &value.to_string())
    }

    /// The good reply with one member changed; `Value::Null` as the pointer's value means that it is removed.
    fn changed(pointer: &str, change: impl FnOnce(&mut Value)) -> String {
        let mut value = good();
        change(value.pointer_mut(pointer).unwrap());
        of(&value)
    }

    #[test]
    fn a_good_reply_is_ok_and_carries_the_conversation() {
        let body = good().to_string();
        let (outcome, context_id) = classify(200, Content::Json, body.as_bytes(), &EXPECTED);
        assert_eq!((outcome, context_id), (Outcome::Ok, Some(&b"ctx-1"[..])));
    }

    #[test]
    fn breaches_have_their_names() {
        let message = "/result/message";
        let without =
            |name: &'static str| changed(message, |value| drop(value.as_object_mut().unwrap().remove(name)));
        assert_eq!(changed("/id", |id| *id = json!("r2")), "protocol.id");
        assert_eq!(changed("/id", |id| *id = json!(1)), "protocol.id");
        assert_eq!(changed("/jsonrpc", |version| *version = json!("1.0")), "protocol.envelope");
        assert_eq!(changed("/result/message/role", |role| *role = json!("agent")), "protocol.role");
        assert_eq!(changed("/result/message/contextId", |id| *id = json!("ctx-2")), "protocol.context_id");
        assert_eq!(changed("/result/message/contextId", |id| *id = json!("")), "protocol.context_id");
        assert_eq!(changed("/result/message/messageId", |id| *id = json!("m-sent")), "protocol.message_id");
        assert_eq!(without("contextId"), "protocol.context_id");
        assert_eq!(without("messageId"), "protocol.message_id");
        assert_eq!(without("role"), "protocol.role");
        assert_eq!(without("parts"), "protocol.parts");
        let part = "/result/message/parts/0";
        assert_eq!(
            changed(&format!("{part}/mediaType"), |m| *m = json!("application/json")),
            "protocol.media_type"
        );
        assert_eq!(
            changed(&format!("{part}/data/type"), |t| *t = json!("aap.error")),
            "protocol.payload_type"
        );
        assert_eq!(changed(part, |part| *part = json!({"text": "hello"})), "protocol.parts");
        assert_eq!(changed("/result", |result| *result = result["message"].take()), "protocol.flat_result");
        assert_eq!(changed("/result", |result| *result = json!({"task": {}})), "protocol.task");
        assert_eq!(changed("/result", |result| *result = json!(7)), "protocol.result_shape");
        let mut both = good();
        both["error"] = Value::Null;
        assert_eq!(of(&both), "protocol.null_member");
        both["error"] = json!({"code": 1, "message": "m"});
        assert_eq!(of(&both), "protocol.envelope");
        assert_eq!(label(200, "<html></html>"), "protocol.not_json");
        assert_eq!(label(200, ""), "protocol.not_json");
        assert_eq!(label(200, "[]"), "protocol.envelope");
        let body = good().to_string();
        let of = |status, content| classify(status, content, body.as_bytes(), &EXPECTED).0.to_string();
        assert_eq!(of(200, Content::Other), "protocol.content_type");
        assert_eq!(of(200, Content::Encoded), "protocol.content_encoding");
        assert_eq!(of(502, Content::Encoded), "http.502");
    }

    #[test]
    fn errors_go_by_the_typed_entry() {
        let info = json!({"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": "X", "domain": "a2a-protocol.org"});
        let typed =
            |code: &str| json!({"@type": AAP_ERROR_TYPE, "type": "aap.error", "code": code, "message": "m"});
        assert_eq!(of(&failed(-32004, &json!([info, typed("UNSUPPORTED_SKILL")]))), "aap.UNSUPPORTED_SKILL");
        assert_eq!(of(&failed(-32004, &json!([info]))), "a2a.-32004");
        assert_eq!(of(&failed(-32009, &json!([info]))), "a2a.-32009");
        assert_eq!(
            of(&failed(-32602, &json!([typed("SCHEMA_VALIDATION_FAILED"), info]))),
            "aap.SCHEMA_VALIDATION_FAILED"
        );
        assert_eq!(of(&failed(-32602, &json!([info]))), "rpc.-32602");
        assert_eq!(
            of(&json!({"jsonrpc": "2.0", "id": "r1", "error": {"code": -32601, "message": "m"}})),
            "rpc.-32601"
        );
        assert_eq!(of(&failed(-32000, &json!({"code": "RATE_LIMITED"}))), "protocol.error_shape");
        assert_eq!(of(&failed(-32000, &json!([{"@type": AAP_ERROR_TYPE}]))), "protocol.error_shape");
        assert_eq!(
            of(&failed(-32000, &json!([typed("not a code, but an attack\n")]))),
            "protocol.error_shape"
        );
    }

    #[test]
    fn a_null_id_is_right_only_for_who_could_not_read() {
        let with_null =
            |code: i64| of(&json!({"jsonrpc": "2.0", "id": null, "error": {"code": code, "message": "m"}}));
        assert_eq!(with_null(-32700), "rpc.-32700");
        assert_eq!(with_null(-32600), "rpc.-32600");
        assert_eq!(with_null(-32602), "protocol.id");
    }

    #[test]
    fn an_error_counts_under_any_status() {
        let limited = failed(-32000, &json!([{"@type": AAP_ERROR_TYPE, "code": "RATE_LIMITED"}])).to_string();
        assert_eq!(label(429, &limited), "aap.RATE_LIMITED");
        assert_eq!(label(503, "busy"), "http.503");
        assert_eq!(label(500, &good().to_string()), "http.500");
        assert_eq!(label(302, ""), "http.302");
    }

    #[test]
    fn text_that_looks_like_a_member_fools_nobody() {
        let mut value = good();
        value["result"]["message"]["parts"][0]["data"]["data"]["note"] =
            json!(r#"","error":{"code":-32000},"id":"r2","result":{"#);
        assert_eq!(of(&value), "ok");
    }
}
