//! `/faults`, `/faults/rules`, `/faults/catalogue` and `/magic`.

use serde_json::json;

use super::{AdminReply, AdminRequest, json_reply, problem};
use crate::dealer::clock::Now;
use crate::faults::{EditError, FaultDesk, Plan, Rule, catalogue, registry};

/// Answers a request below `/faults`, or for `/magic`.
pub(super) fn handle(desk: &FaultDesk, request: AdminRequest<'_>, now: Now) -> AdminReply {
    let engine = &desk.engine;
    let if_match = request.if_match;
    match (request.method, request.path) {
        ("GET" | "HEAD", "/faults") => {
            AdminReply { etag: Some(engine.etag()), ..json_reply(200, &engine.to_json()) }
        }
        ("PUT", "/faults") => match text(request.body)
            .and_then(|text| Plan::parse("the plan", text, registry()).map_err(|error| error.to_string()))
        {
            Ok(plan) => edited(desk, engine.put(plan, if_match, now.traffic_ns)),
            Err(error) => problem(400, &error),
        },
        ("DELETE", "/faults") => edited(desk, engine.clear(if_match, now.traffic_ns)),
        (_, "/faults") => {
            AdminReply { allow: Some("GET, HEAD, PUT, DELETE"), ..problem(405, "use GET, PUT or DELETE") }
        }
        ("GET" | "HEAD", "/faults/catalogue") => json_reply(200, &catalogue::json()),
        ("GET" | "HEAD", "/magic") => match desk.magic {
            true => json_reply(200, &catalogue::magic_table()),
            false => problem(404, "magic values are switched off (--no-magic)"),
        },
        (_, "/faults/catalogue" | "/magic") => {
            AdminReply { allow: Some("GET, HEAD"), ..problem(405, "use GET") }
        }
        ("POST", "/faults/rules") => match text(request.body).and_then(|text| {
            Plan::parse_rule("the rule", text, registry()).map_err(|error| error.to_string())
        }) {
            Ok(rule) => edited(desk, add(desk, rule, if_match, now)),
            Err(error) => problem(400, &error),
        },
        (_, "/faults/rules") => AdminReply { allow: Some("POST"), ..problem(405, "use POST") },
        (method, path) => match (method, path.strip_prefix("/faults/rules/")) {
            ("DELETE", Some(id)) => edited(desk, engine.remove_rule(id, if_match)),
            ("PATCH", Some(id)) => match serde_json::from_slice::<Patch>(request.body) {
                Ok(patch) => edited(desk, engine.set_enabled(id, patch.enabled, if_match)),
                Err(error) => problem(400, &format!("{error}; the body is {{\"enabled\": true|false}}")),
            },
            (_, Some(_)) => {
                AdminReply { allow: Some("PATCH, DELETE"), ..problem(405, "use PATCH or DELETE") }
            }
            (_, None) => problem(404, "no such resource"),
        },
    }
}

fn add(desk: &FaultDesk, rule: Rule, if_match: Option<&str>, now: Now) -> Result<String, EditError> {
    desk.engine.add_rule(rule, if_match, now.traffic_ns)
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Patch {
    enabled: bool,
}

fn text(body: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(body).map_err(|error| format!("the body is not UTF-8: {error}"))
}

fn edited(desk: &FaultDesk, result: Result<String, EditError>) -> AdminReply {
    match result {
        Ok(etag) => AdminReply { etag: Some(etag), ..json_reply(200, &desk.engine.to_json()) },
        Err(error) => {
            let status = match error {
                EditError::Unknown { .. } => 404,
                EditError::Stale { .. } => 412,
                _ => 409,
            };
            json_reply(status, &json!({ "error": error.to_string() }))
        }
    }
}
