//! A finished reply, opened for a change, whatever envelope the payload is in. Only faulted replies come here, so clarity goes
//! before speed.

use serde_json::value::RawValue;
use serde_json::{Map, Value};

pub(super) type Members = Map<String, Value>;

/// Opens a reply, or each reply of a batch, and writes it anew if `change` says that it changed it. What is no JSON object
/// is left alone. The id keeps its letters unless `change` touched it: integers beyond 64 bits would not survive a parse.
pub(super) fn edit(out: &mut Vec<u8>, mut change: impl FnMut(&mut Members) -> bool) {
    if let Some(edited) = edit_text(out, &mut change) {
        *out = edited;
    }
}

fn edit_text(text: &[u8], change: &mut dyn FnMut(&mut Members) -> bool) -> Option<Vec<u8>> {
    if text.trim_ascii_start().starts_with(b"[") {
        let replies: Vec<&RawValue> = serde_json::from_slice(text).ok()?;
        let mut any = false;
        let mut out = vec![b'['];
        for (index, reply) in replies.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            let reply = reply.get().as_bytes();
            match edit_one(reply, change) {
                Some(edited) => {
                    any = true;
                    out.extend_from_slice(&edited);
                }
                None => out.extend_from_slice(reply),
            }
        }
        out.push(b']');
        return any.then_some(out);
    }
    edit_one(text, change)
}

fn edit_one(text: &[u8], change: &mut dyn FnMut(&mut Members) -> bool) -> Option<Vec<u8>> {
    let mut root: Members = serde_json::from_slice(text).ok()?;
    let id = root.get("id").cloned();
    if !change(&mut root) {
        return None;
    }
    let raw_id = raw_id(text).filter(|_| root.get("id") == id.as_ref());
    let mut out = vec![b'{'];
    for (index, (name, value)) in root.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        crate::protocol::write::string(&mut out, name);
        out.push(b':');
        match raw_id {
            Some(raw) if name == "id" => out.extend_from_slice(raw.as_bytes()),
            _ => serde_json::to_writer(&mut out, value).ok()?,
        }
    }
    out.push(b'}');
    Some(out)
}

/// The id of a reply, as it is written.
pub(super) fn raw_id(text: &[u8]) -> Option<&str> {
    #[derive(serde::Deserialize)]
    struct Only<'a> {
        #[serde(borrow)]
        id: &'a RawValue,
    }
    serde_json::from_slice::<Only<'_>>(text).ok().map(|only| only.id.get())
}

/// The Message of a success reply.
pub(super) fn message(root: &mut Members) -> Option<&mut Members> {
    root.get_mut("result")?.get_mut("message")?.as_object_mut()
}

/// The first part of a success reply.
pub(super) fn part(root: &mut Members) -> Option<&mut Members> {
    message(root)?.get_mut("parts")?.get_mut(0)?.as_object_mut()
}

/// The payload of a success reply, with its `type`: what is no JSON-RPC is a payload itself, and MCP has it as structured
/// content.
pub(super) fn whole_payload(root: &mut Members) -> Option<&mut Members> {
    if !root.contains_key("jsonrpc") {
        return Some(root);
    }
    let is_mcp = root.get("result").is_some_and(|result| result.get(STRUCTURED).is_some());
    let payload =
        if is_mcp { root.get_mut("result")?.get_mut(STRUCTURED)? } else { part(root)?.get_mut("data")? };
    payload.as_object_mut()
}

const STRUCTURED: &str = "structuredContent";

/// Has the text block of an MCP reply repeat its structured content again, after that was changed.
pub(crate) fn repeat_in_text(out: &mut Vec<u8>) {
    edit(out, |root| {
        let Some(result) = root.get_mut("result").and_then(Value::as_object_mut) else { return false };
        let Some(content) = result.get(STRUCTURED).map(Value::to_string) else { return false };
        let block = result.get_mut("content").and_then(|content| content.get_mut(0)?.as_object_mut());
        block.is_some_and(|block| set(block, "text", content))
    });
}

/// The `data` of a success reply whose `type` is this skill's response.
pub(super) fn payload<'a>(root: &'a mut Members, skill: &str) -> Option<&'a mut Members> {
    let payload = whole_payload(root)?;
    let said = payload.get("type")?.as_str()?.strip_suffix(".response")?;
    (said == skill).then(|| payload.get_mut("data")?.as_object_mut())?
}

/// The listings of a search reply.
pub(super) fn listings(root: &mut Members) -> Option<&mut Vec<Value>> {
    payload(root, "inventory.search")?.get_mut("vehicles")?.as_array_mut()
}

/// Changes each vehicle of a search or a detail reply; whether any was changed.
pub(super) fn each_vehicle(root: &mut Members, mut change: impl FnMut(&mut Members) -> bool) -> bool {
    if let Some(vehicle) = payload(root, "inventory.vehicle") {
        return change(vehicle);
    }
    let Some(vehicles) = listings(root) else { return false };
    let mut any = false;
    for vehicle in vehicles.iter_mut().filter_map(Value::as_object_mut) {
        any |= change(vehicle);
    }
    any
}

/// The `error` of an error reply.
pub(super) fn error(root: &mut Members) -> Option<&mut Members> {
    root.get_mut("error")?.as_object_mut()
}

/// Sets a member; whether it was another before.
pub(super) fn set(members: &mut Members, name: &str, value: impl Into<Value>) -> bool {
    let value = value.into();
    let before = members.insert(name.to_owned(), value);
    before.as_ref() != members.get(name)
}

/// Takes a member out; whether it was there.
pub(super) fn take(members: &mut Members, name: &str) -> bool {
    members.remove(name).is_some()
}
