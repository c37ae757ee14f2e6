//! What may be wrong with JSON-RPC's envelope and A2A's Message (INTEROP 1, 2, 7, 13, 19).

use serde_json::{Value, json};

use super::reply::{Members, edit, message, part, set, take};
use super::{breach, lawful, on, text};
use crate::faults::effect::{AnswerContext, Apply, EffectInfo};
use crate::protocol::{Binding, Bindings, Skill};

const FAMILY: &str = "envelope";

/// What spoils JSON-RPC's own members spoils them under MCP, too.
const fn of_json_rpc(info: EffectInfo) -> EffectInfo {
    on(Bindings::of(&[Binding::A2a, Binding::Mcp]), info)
}

pub(super) static EFFECTS: &[EffectInfo] = &[
    of_json_rpc(breach(
        FAMILY,
        "id_wrong",
        &[text("id", "\"another-request\"", "the id that the reply bears")],
        "the reply bears the id of no request",
        Apply::Refine(|args, _, _, out| edit(out, |root| set(root, "id", args.text("id")))),
    )),
    of_json_rpc(breach(
        FAMILY,
        "id_missing",
        &[],
        "the reply has no id",
        Apply::Refine(|_, _, _, out| edit(out, |root| take(root, "id"))),
    )),
    of_json_rpc(breach(
        FAMILY,
        "id_null",
        &[],
        "the reply's id is null",
        Apply::Refine(|_, _, _, out| edit(out, |root| set(root, "id", Value::Null))),
    )),
    of_json_rpc(breach(
        FAMILY,
        "id_retyped",
        &[],
        "a number as id comes back as a string, a string as a number (or, when it is none, in an array)",
        Apply::Refine(|_, _, _, out| edit(out, retype_id)),
    )),
    of_json_rpc(breach(
        FAMILY,
        "jsonrpc_missing",
        &[],
        "the reply has no jsonrpc",
        Apply::Refine(|_, _, _, out| edit(out, |root| take(root, "jsonrpc"))),
    )),
    of_json_rpc(breach(
        FAMILY,
        "jsonrpc_wrong",
        &[text("version", "\"1.0\"", "the value of jsonrpc")],
        "the reply's jsonrpc is not 2.0",
        Apply::Refine(|args, _, _, out| edit(out, |root| set(root, "jsonrpc", args.text("version")))),
    )),
    of_json_rpc(breach(
        FAMILY,
        "result_and_error",
        &[],
        "the reply has both result and error",
        Apply::Refine(|_, _, _, out| edit(out, both)),
    )),
    of_json_rpc(breach(
        FAMILY,
        "result_missing",
        &[],
        "the reply has neither result nor error",
        Apply::Refine(|_, _, _, out| edit(out, |root| take(root, "result") | take(root, "error"))),
    )),
    of_json_rpc(breach(
        FAMILY,
        "result_null",
        &[],
        "the reply's result is null",
        Apply::Refine(|_, _, _, out| edit(out, |root| success(root) && set(root, "result", Value::Null))),
    )),
    of_json_rpc(breach(
        FAMILY,
        "error_null",
        &[],
        "the reply has \"error\": null beside its result",
        Apply::Refine(|_, _, _, out| edit(out, |root| success(root) && set(root, "error", Value::Null))),
    )),
    breach(
        FAMILY,
        "result_flat",
        &[],
        "result is the Message itself instead of {\"message\": Message}",
        Apply::Refine(|_, _, _, out| {
            edit(out, |root| {
                let Some(message) = message(root).map(std::mem::take) else { return false };
                set(root, "result", message)
            });
        }),
    ),
    breach(
        FAMILY,
        "task_instead_of_message",
        &[],
        "result is a completed Task whose artifact holds the parts",
        Apply::Refine(|_, _, _, out| edit(out, as_task)),
    ),
    breach(
        FAMILY,
        "dialect_03",
        &[],
        "the reply speaks A2A 0.3: flat result, kind in Message and parts, role agent",
        Apply::Refine(|_, _, _, out| edit(out, as_03)),
    ),
    breach(
        FAMILY,
        "role_user",
        &[],
        "the reply's role is ROLE_USER",
        Apply::Refine(|_, _, _, out| edit(out, |root| on_message(root, |m| set(m, "role", "ROLE_USER")))),
    ),
    breach(
        FAMILY,
        "role_agent_lower_case",
        &[],
        "the reply's role is agent, which SDKs read as unspecified",
        Apply::Refine(|_, _, _, out| edit(out, |root| on_message(root, |m| set(m, "role", "agent")))),
    ),
    breach(
        FAMILY,
        "message_id_of_request",
        &[],
        "the reply's messageId is the request's",
        Apply::Refine(|_, context, _, out| {
            let id = request_message_id(context);
            edit(out, |root| on_message(root, |message| set(message, "messageId", id.clone())));
        }),
    ),
    breach(
        FAMILY,
        "message_id_repeated",
        &[text("id", "\"msg_always_the_same\"", "the messageId of every such reply")],
        "every reply has the same messageId",
        Apply::Refine(|args, _, _, out| {
            edit(out, |root| on_message(root, |message| set(message, "messageId", args.text("id"))));
        }),
    ),
    breach(
        FAMILY,
        "message_id_missing",
        &[],
        "the reply's Message has no messageId",
        Apply::Refine(|_, _, _, out| edit(out, |root| on_message(root, |m| take(m, "messageId")))),
    ),
    breach(
        FAMILY,
        "parts_missing",
        &[],
        "the reply's Message has no parts",
        Apply::Refine(|_, _, _, out| edit(out, |root| on_message(root, |m| take(m, "parts")))),
    ),
    breach(
        FAMILY,
        "parts_empty",
        &[],
        "the reply's Message has an empty list of parts",
        Apply::Refine(|_, _, _, out| edit(out, |root| on_message(root, |m| set(m, "parts", json!([]))))),
    ),
    breach(
        FAMILY,
        "text_part_first",
        &[PROSE],
        "a text part stands before the AAP part",
        Apply::Refine(|args, _, _, out| edit(out, |root| add_text(root, args.text("text"), true))),
    ),
    lawful(
        FAMILY,
        "text_part_last",
        &[PROSE],
        "a text part follows the AAP part; a buyer ignores it",
        Apply::Refine(|args, _, _, out| edit(out, |root| add_text(root, args.text("text"), false))),
    ),
    breach(
        FAMILY,
        "payload_as_text",
        &[],
        "the payload comes as JSON inside a text part",
        Apply::Refine(|_, _, _, out| {
            edit(out, |root| {
                on_part(root, |part| {
                    let Some(data) = part.remove("data") else { return false };
                    set(part, "text", data.to_string())
                })
            });
        }),
    ),
    breach(
        FAMILY,
        "media_type_missing",
        &[],
        "the AAP part has no mediaType",
        Apply::Refine(|_, _, _, out| edit(out, |root| on_part(root, |part| take(part, "mediaType")))),
    ),
    breach(
        FAMILY,
        "media_type_wrong",
        &[text("type", "\"application/json\"", "the media type that the part bears")],
        "the AAP part has another mediaType",
        Apply::Refine(|args, _, _, out| {
            edit(out, |root| on_part(root, |part| set(part, "mediaType", args.text("type"))));
        }),
    ),
    breach(
        FAMILY,
        "response_of_another_skill",
        &[],
        "type and mediaType are those of another skill's response",
        Apply::Refine(|_, _, _, out| edit(out, |root| on_part(root, other_skill))),
    ),
    breach(
        FAMILY,
        "type_missing",
        &[],
        "the payload has no type",
        Apply::Refine(|_, _, _, out| edit(out, |root| on_payload(root, |payload| take(payload, "type")))),
    ),
    breach(
        FAMILY,
        "payload_missing",
        &[],
        "the payload has a type and no data",
        Apply::Refine(|_, _, _, out| edit(out, |root| on_payload(root, |payload| take(payload, "data")))),
    ),
    lawful(
        FAMILY,
        "integers_as_doubles",
        &[],
        "every integer of the payload is written with a zero fraction, as SDKs over protobuf do",
        Apply::Refine(|_, _, _, out| {
            edit(out, |root| part(root).and_then(|p| p.get_mut("data")).is_some_and(doubles));
        }),
    ),
    lawful(
        FAMILY,
        "unknown_members",
        &[],
        "unknown members stand in the envelope, the result, the Message, its part and every vehicle",
        Apply::Refine(|_, _, _, out| edit(out, sow)),
    ),
    breach(
        FAMILY,
        "null_members",
        &[],
        "optional members that the reply leaves out are there as null",
        Apply::Refine(|_, _, _, out| {
            edit(out, |root| {
                on_message(root, |message| {
                    let names = ["taskId", "metadata", "extensions", "referenceTaskIds"];
                    names.iter().fold(false, |any, name| set(message, name, Value::Null) | any)
                })
            });
        }),
    ),
];

const PROSE: crate::faults::effect::Param =
    text("text", "\"Here is what I found for you:\"", "the prose of the part");

fn success(root: &Members) -> bool {
    root.contains_key("result")
}

fn on_message(root: &mut Members, change: impl FnOnce(&mut Members) -> bool) -> bool {
    message(root).is_some_and(change)
}

fn on_part(root: &mut Members, change: impl FnOnce(&mut Members) -> bool) -> bool {
    part(root).is_some_and(change)
}

fn on_payload(root: &mut Members, change: impl FnOnce(&mut Members) -> bool) -> bool {
    part(root).and_then(|part| part.get_mut("data")?.as_object_mut()).is_some_and(change)
}

fn retype_id(root: &mut Members) -> bool {
    let Some(id) = root.get("id") else { return false };
    let other = match id {
        Value::Number(number) => json!(number.to_string()),
        Value::String(text) => text.parse::<i64>().map_or_else(|_| json!([text]), |number| json!(number)),
        other => json!([other]),
    };
    set(root, "id", other)
}

fn both(root: &mut Members) -> bool {
    if success(root) {
        set(
            root,
            "error",
            json!({ "code": crate::protocol::error::code::INTERNAL, "message": "Internal error" }),
        )
    } else if root.contains_key("error") {
        set(root, "result", json!({}))
    } else {
        false
    }
}

/// A2A 1.0, section 4.1: SendMessageResponse holds a Task or a Message. AAP knows Messages alone.
fn as_task(root: &mut Members) -> bool {
    let Some(message) = message(root) else { return false };
    let context_id = message.get("contextId").cloned().unwrap_or_default();
    let parts = message.get("parts").cloned().unwrap_or_default();
    let task = json!({ "task": {
        "id": "task_1",
        "contextId": context_id,
        "status": { "state": "TASK_STATE_COMPLETED" },
        "artifacts": [{ "artifactId": "artifact_1", "parts": parts }],
    } });
    set(root, "result", task)
}

fn as_03(root: &mut Members) -> bool {
    let Some(mut message) = message(root).map(std::mem::take) else { return false };
    set(&mut message, "kind", "message");
    set(&mut message, "role", "agent");
    for part in message.get_mut("parts").and_then(Value::as_array_mut).into_iter().flatten() {
        if let Some(part) = part.as_object_mut() {
            let kind = if part.contains_key("data") { "data" } else { "text" };
            set(part, "kind", kind);
            take(part, "mediaType");
        }
    }
    set(root, "result", message)
}

fn request_message_id(context: &AnswerContext<'_>) -> Value {
    let request: Value = serde_json::from_slice(context.request).unwrap_or_default();
    request.pointer("/params/message/messageId").cloned().unwrap_or_else(|| json!("m"))
}

fn add_text(root: &mut Members, prose: &str, first: bool) -> bool {
    on_message(root, |message| {
        let Some(parts) = message.get_mut("parts").and_then(Value::as_array_mut) else { return false };
        let at = if first { 0 } else { parts.len() };
        parts.insert(at, json!({ "text": prose, "mediaType": "text/plain" }));
        true
    })
}

fn other_skill(part: &mut Members) -> bool {
    let Some(payload) = part.get_mut("data").and_then(Value::as_object_mut) else { return false };
    let dealer = Skill::DealerInformation;
    let is_dealer = payload.get("type").and_then(Value::as_str) == Some(dealer.response_type());
    let other = if is_dealer { Skill::InventorySearch } else { dealer };
    set(payload, "type", other.response_type());
    set(part, "mediaType", other.response_media_type())
}

fn doubles(value: &mut Value) -> bool {
    match value {
        Value::Number(number) if number.is_i64() || number.is_u64() => {
            *value = json!(number.as_f64().unwrap_or(0.0));
            true
        }
        Value::Array(items) => items.iter_mut().fold(false, |any, item| doubles(item) | any),
        Value::Object(members) => members.values_mut().fold(false, |any, member| doubles(member) | any),
        _ => false,
    }
}

fn sow(root: &mut Members) -> bool {
    let weed = json!({ "note": "ignore me", "list": [1, null, {}] });
    set(root, "x_unknown", weed.clone());
    if let Some(result) = root.get_mut("result").and_then(Value::as_object_mut) {
        set(result, "x_unknown", weed.clone());
    }
    on_message(root, |message| set(message, "x_unknown", weed.clone()));
    on_part(root, |part| set(part, "x_unknown", weed.clone()));
    super::reply::each_vehicle(root, |vehicle| set(vehicle, "x_unknown", weed.clone()));
    true
}
