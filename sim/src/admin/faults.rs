//! `/faults`, `/faults/rules`, `/faults/catalogue` and `/magic`.

use std::collections::HashMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::{AdminReply, AdminRequest, json_reply, problem};
use crate::dealer::clock::Now;
use crate::faults::{Edit, EditError, Engine, Plan, catalogue, registry};
use crate::world::Site;

/// Answers a request below `/faults`, or for `/magic`, for these dealers together.
pub(super) fn handle(sites: &[Site], request: AdminRequest<'_>, now: Now) -> AdminReply {
    let engines: Vec<&Engine> = sites.iter().map(|site| &site.faults.engine).collect();
    let edited = |edit: Edit<'_>| {
        let result = Engine::edit(&engines, &edit, request.if_match, now.traffic_ns);
        edited(sites, result)
    };
    match (request.method, request.path) {
        ("GET" | "HEAD", "/faults") => {
            AdminReply { etag: Some(Engine::etag_of(&engines)), ..json_reply(200, &shown(sites)) }
        }
        ("PUT", "/faults") => match text(request.body)
            .and_then(|text| Plan::parse("the plan", text, registry()).map_err(|error| error.to_string()))
        {
            Ok(plan) => edited(Edit::Put(Arc::new(plan))),
            Err(error) => problem(400, &error),
        },
        ("DELETE", "/faults") => edited(Edit::Clear),
        (_, "/faults") => {
            AdminReply { allow: Some("GET, HEAD, PUT, DELETE"), ..problem(405, "use GET, PUT or DELETE") }
        }
        ("GET" | "HEAD", "/faults/catalogue") => json_reply(200, &catalogue::json()),
        ("GET" | "HEAD", "/magic") => match sites.iter().any(|site| site.faults.magic) {
            true => json_reply(200, &catalogue::magic_table()),
            false => problem(404, "magic values are switched off (--no-magic)"),
        },
        (_, "/faults/catalogue" | "/magic") => {
            AdminReply { allow: Some("GET, HEAD"), ..problem(405, "use GET") }
        }
        ("POST", "/faults/rules") => match text(request.body).and_then(|text| {
            Plan::parse_rule("the rule", text, registry()).map_err(|error| error.to_string())
        }) {
            Ok(rule) => edited(Edit::AddRule(Arc::new(rule))),
            Err(error) => problem(400, &error),
        },
        (_, "/faults/rules") => AdminReply { allow: Some("POST"), ..problem(405, "use POST") },
        (method, path) => match (method, path.strip_prefix("/faults/rules/")) {
            ("DELETE", Some(id)) => edited(Edit::RemoveRule(id)),
            ("PATCH", Some(id)) => match serde_json::from_slice::<Patch>(request.body) {
                Ok(patch) => edited(Edit::SetEnabled(id, patch.enabled)),
                Err(error) => problem(400, &format!("{error}; the body is {{\"enabled\": true|false}}")),
            },
            (_, Some(_)) => {
                AdminReply { allow: Some("PATCH, DELETE"), ..problem(405, "use PATCH or DELETE") }
            }
            (_, None) => problem(404, "no such resource"),
        },
    }
}

/// The rules in force at the first of these dealers, with what each fired at all of them, and who has others.
fn shown(sites: &[Site]) -> Value {
    let engine = &sites[0].faults.engine;
    let mut shown = engine.to_json();
    if sites.len() > 1 {
        for (rule, fired) in fired(sites) {
            if let Some(state) = shown["state"].get_mut(&*rule) {
                state["fired"] = fired.into();
            }
        }
        let forgotten: u64 = sites.iter().map(|site| site.faults.engine.forgotten()).sum();
        let others = sites.iter().filter(|site| !site.faults.engine.agrees_with(engine));
        let others: Vec<&str> = others.map(Site::id).collect();
        shown["counts_forgotten"] = forgotten.into();
        shown["dealers_with_other_rules"] = others.into();
    }
    shown
}

/// How often each rule fired at these dealers together, in the order in which they are met.
pub(super) fn fired(sites: &[Site]) -> Vec<(Arc<str>, u64)> {
    let mut places: HashMap<Arc<str>, usize> = HashMap::new();
    let mut sums: Vec<(Arc<str>, u64)> = Vec::new();
    for (rule, fired) in sites.iter().flat_map(|site| site.faults.engine.fired()) {
        let place = *places.entry(rule.clone()).or_insert_with(|| {
            sums.push((rule, 0));
            sums.len() - 1
        });
        sums[place].1 += fired;
    }
    sums
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Patch {
    enabled: bool,
}

fn text(body: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(body).map_err(|error| format!("the body is not UTF-8: {error}"))
}

fn edited(sites: &[Site], result: Result<String, EditError>) -> AdminReply {
    match result {
        Ok(etag) => AdminReply { etag: Some(etag), ..json_reply(200, &shown(sites)) },
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
