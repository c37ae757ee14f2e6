//! From an MCP reply to its outcome: a tool's result, whose structured content is the payload or, with `isError`, the typed error
//! (BINDINGS, sections b.2 and c.2).

use serde::Deserialize;

use super::classify::{Expectation, is_text};
use super::pap::Payload;
use super::reply::{Envelope, check_id, is_unread};
use super::scan::{Kind, NotJson, Raw, Scanner};
use super::{Breach, Outcome};
use crate::transport::Content;

/// `result`.
#[derive(Debug, Default)]
struct ToolResult<'a> {
    is_object: bool,
    result_type: Option<Raw<'a>>,
    is_error: Option<Raw<'a>>,
    has_content: bool,
    payload: Option<Payload<'a>>,
}

impl<'a> ToolResult<'a> {
    fn read(scanner: &mut Scanner<'a>) -> Result<ToolResult<'a>, NotJson> {
        let mut result = ToolResult::default();
        result.is_object = scanner.object(|name, scanner| {
            match name {
                b"resultType" => result.result_type = Some(scanner.value()?),
                b"isError" => result.is_error = Some(scanner.value()?),
                b"content" => result.has_content = scanner.value()?.kind() == Kind::Array,
                b"structuredContent" => result.payload = Some(Payload::read(scanner)?),
                _ => drop(scanner.value()?),
            }
            Ok(())
        })?;
        Ok(result)
    }
}

#[derive(Deserialize)]
struct ErrorMember {
    code: i64,
    #[serde(rename = "message")]
    _message: String,
}

/// The outcome of a whole reply. A JSON-RPC error counts as that error under any HTTP status, since it says more than the
/// status does; a status other than 2xx with any other body counts as the status.
pub(super) fn classify(status: u16, content: Content, body: &[u8], expected: &Expectation<'_>) -> Outcome {
    let success = (200..300).contains(&status);
    // A dealer may answer with a stream of events instead of one object; this one is not read.
    let envelope = match Envelope::read(body, ToolResult::read) {
        Ok(envelope) if envelope.is_object && (success || envelope.error.is_some()) => envelope,
        Ok(_) if success => return Outcome::Protocol(Breach::Envelope),
        Err(_) if success && content == Content::Json => return Outcome::Protocol(Breach::NotJson),
        Err(_) if success => return Outcome::Protocol(Breach::ContentType),
        _ => return Outcome::Http(status),
    };
    judge(&envelope, content, expected).unwrap_or_else(Outcome::Protocol)
}

fn judge(
    envelope: &Envelope<'_, ToolResult<'_>>,
    content: Content,
    expected: &Expectation<'_>,
) -> Result<Outcome, Breach> {
    if content != Content::Json {
        return Err(Breach::ContentType);
    }
    if !is_text(envelope.jsonrpc, "2.0") {
        return Err(Breach::Envelope);
    }
    match (&envelope.result, envelope.error) {
        (Some(result), None) => {
            check_id(envelope.id, expected.id)?;
            check_result(result, expected)
        }
        (None, Some(error)) => {
            let error: ErrorMember = serde_json::from_slice(error.0).map_err(|_| Breach::ErrorShape)?;
            // MCP's schema lets an error lack the id that nobody could read.
            if envelope.id.is_some() || !is_unread(error.code) {
                envelope.check_error_id(error.code, expected.id)?;
            }
            Ok(Outcome::Rpc(error.code))
        }
        (Some(_), Some(error)) if error.kind() == Kind::Null => Err(Breach::NullMember),
        _ => Err(Breach::Envelope),
    }
}

fn check_result(result: &ToolResult<'_>, expected: &Expectation<'_>) -> Result<Outcome, Breach> {
    if !result.is_object {
        return Err(Breach::ResultShape);
    }
    if !is_text(result.result_type, "complete") {
        return Err(Breach::ResultType);
    }
    if !result.has_content {
        return Err(Breach::Content);
    }
    let is_error = match result.is_error {
        None => false,
        Some(Raw(b"false")) => false,
        Some(Raw(b"true")) => true,
        Some(_) => return Err(Breach::ResultShape),
    };
    let payload = result.payload.as_ref().filter(|payload| payload.is_object);
    let payload = payload.ok_or(Breach::StructuredContent)?;
    match is_error {
        true if payload.is_error() => Ok(payload.error_outcome()),
        true => Err(Breach::ErrorShape),
        false if is_text(payload.kind, expected.skill.response_type()) => Ok(Outcome::Ok),
        false => Err(Breach::PayloadType),
    }
}

#[cfg(test)]
mod tests {
    use dealer_sim::protocol::{Binding, Contract, Skill};
    use serde_json::{Value, json};

    use super::*;
    use crate::outcome::classify as any;

    fn label(status: u16, content: Content, body: &str) -> String {
        let expected = Expectation {
            id: b"\"r1\"",
            message_id: b"m",
            context_id: None,
            skill: Skill::InventorySearch,
            contract: Contract::V3_0,
            binding: Binding::Mcp,
        };
        any(status, content, body.as_bytes(), &expected).0.to_string()
    }

    fn good() -> Value {
        json!({"jsonrpc": "2.0", "id": "r1", "result": {
            "resultType": "complete",
            "content": [{"type": "text", "text": "{}"}],
            "structuredContent": {"type": "inventory.search.response", "data": {"total": 0, "vehicles": []}},
        }})
    }

    fn changed(change: impl FnOnce(&mut Value)) -> String {
        let mut value = good();
        change(&mut value);
        label(200, Content::Json, &value.to_string())
    }

    #[test]
    fn a_result_is_told_from_an_error_and_from_what_is_neither() {
        assert_eq!(changed(|_| {}), "ok");
        let refusal = json!({"type": "aap.error", "code": "RATE_LIMITED"});
        let refused = |reply: &mut Value| {
            reply["result"]["isError"] = json!(true);
            reply["result"]["structuredContent"] = refusal.clone();
        };
        assert_eq!(changed(refused), "aap.RATE_LIMITED");
        assert_eq!(
            changed(|reply| reply["result"]["structuredContent"] = refusal.clone()),
            "protocol.payload_type"
        );
        assert_eq!(changed(|reply| reply["result"]["isError"] = json!(true)), "protocol.error_shape");
        assert_eq!(changed(|reply| reply["result"]["isError"] = json!("no")), "protocol.result_shape");
        assert_eq!(changed(|reply| reply["id"] = json!(1)), "protocol.id");
        assert_eq!(changed(|reply| reply["result"] = json!(7)), "protocol.result_shape");
        assert_eq!(changed(|reply| reply["error"] = json!(null)), "protocol.null_member");
        for (member, wanted) in [
            ("resultType", "protocol.result_type"),
            ("content", "protocol.content"),
            ("structuredContent", "protocol.structured_content"),
        ] {
            let without = |reply: &mut Value| drop(reply["result"].as_object_mut().unwrap().remove(member));
            assert_eq!(changed(without), wanted);
        }
    }

    #[test]
    fn an_error_is_its_number_under_any_status() {
        let error = |id: Value, code: i64| {
            json!({"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": "m"}}).to_string()
        };
        assert_eq!(label(200, Content::Json, &error(json!("r1"), -32602)), "rpc.-32602");
        // A2A's numbers mean nothing here.
        assert_eq!(label(400, Content::Json, &error(json!("r1"), -32004)), "rpc.-32004");
        assert_eq!(label(400, Content::Json, &error(json!(null), -32700)), "rpc.-32700");
        assert_eq!(label(400, Content::Json, &error(json!(null), -32020)), "protocol.id");
        let without_id = |code| format!(r#"{{"jsonrpc":"2.0","error":{{"code":{code},"message":"m"}}}}"#);
        assert_eq!(label(400, Content::Json, &without_id(-32700)), "rpc.-32700");
        assert_eq!(label(400, Content::Json, &without_id(-32020)), "protocol.id");
        assert_eq!(
            label(400, Content::Json, r#"{"jsonrpc":"2.0","id":"r1","error":{"code":1}}"#),
            "protocol.error_shape"
        );
        assert_eq!(label(403, Content::Other, "Forbidden"), "http.403");
        assert_eq!(label(200, Content::Other, "event: message\ndata: {}\n\n"), "protocol.content_type");
        assert_eq!(label(200, Content::Json, "{"), "protocol.not_json");
        assert_eq!(label(500, Content::Json, &good().to_string()), "http.500");
    }
}
