//! One dealer through its interfaces: the same payloads, one idempotency store, one journal.

#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

#[path = "doors/conduct.rs"]
mod conduct;
#[path = "doors/faults.rs"]
mod faults;
#[path = "doors/mcp.rs"]
mod mcp;
#[path = "doors/reports.rs"]
mod reports;
#[path = "doors/rmcp.rs"]
mod rmcp;
mod support;

use serde_json::{Value, json};
use support::{Sim, call, http, lead, rpc};

const CLOCK: [&str; 4] = ["--clock", "2026-03-02T10:00:00Z", "--vehicles", "60"];

/// The text of the payload, or of the typed error, that an interface answered with.
type Ask = fn(&Sim, &str, &Value) -> String;

fn base(sim: &Sim) -> String {
    sim.url().strip_suffix("/a2a").unwrap().to_owned()
}

fn by_a2a(sim: &Sim, skill: &str, payload: &Value) -> String {
    let stem = if skill == "inventory.vehicle" { "vehicle-detail".into() } else { skill.replace('.', "-") };
    let reply = rpc(&sim.url(), &call(&stem, payload).to_string()).2;
    let (from, to) = match reply.find("\"parts\":[{\"data\":") {
        Some(at) => (at + "\"parts\":[{\"data\":".len(), reply.rfind(",\"mediaType\"").unwrap()),
        None => (reply.find("{\"@type\":\"https://auto").unwrap(), reply.rfind("]}}").unwrap()),
    };
    reply[from..to].to_owned()
}

fn by_pap(sim: &Sim, skill: &str, payload: &Value) -> String {
    let url = format!("{}/pap/v3/{}", base(sim), skill.replace('.', "/"));
    http("POST", &url, &[("Content-Type", "application/json")], &payload.to_string()).2
}

/// The structured content; the text block must repeat it, letter for letter.
fn by_mcp(sim: &Sim, skill: &str, payload: &Value) -> String {
    let reply = mcp::call(&mcp::url(sim), skill, payload);
    let (from, to) =
        (reply.find("\"structuredContent\":").unwrap() + 20, reply.find(",\"content\":[").unwrap());
    let read: Value = serde_json::from_str(&reply).unwrap();
    assert_eq!(read["result"]["content"][0]["text"], reply[from..to], "{reply}");
    reply[from..to].to_owned()
}

const DOORS: [(&str, Ask); 3] = [("a2a", by_a2a), ("mcp", by_mcp), ("pap", by_pap)];

/// A conversation that meets every skill, an error of each kind and a repeated lead.
fn scenario(sim: &Sim, ask: Ask) -> Vec<String> {
    let fixtures: Value = serde_json::from_str(&http("GET", &sim.admin("/fixtures"), &[], "").2).unwrap();
    let mut keyed = lead("Lee");
    keyed["idempotency_key"] = "key-1".into();
    keyed["vehicle_of_interest"] = json!({ "vin": fixtures["available_vin"] });
    let mut other = keyed.clone();
    other["customer"]["last_name"] = "Roe".into();
    let mut without = lead("Doe");
    without.as_object_mut().unwrap().remove("consent");
    let search =
        json!({ "type": "inventory.search.request", "filters": { "make": [fixtures["some_make"]] } });
    [
        ("dealer.information", json!({ "type": "dealer.information.request" })),
        ("inventory.facets", json!({ "type": "inventory.facets.request" })),
        ("inventory.search", search.clone()),
        ("inventory.search", search),
        (
            "inventory.vehicle",
            json!({ "type": "inventory.vehicle.request", "vin": fixtures["available_vin"] }),
        ),
        ("inventory.vehicle", json!({ "type": "inventory.vehicle.request", "vin": fixtures["unknown_vin"] })),
        ("inventory.vehicle", json!({ "type": "inventory.vehicle.request", "stock": 7 })),
        ("lead.submit", keyed.clone()),
        ("lead.submit", keyed),
        ("lead.submit", other),
        ("lead.submit", without),
    ]
    .iter()
    .map(|(skill, payload)| ask(sim, skill, payload))
    .collect()
}

#[test]
fn a_seed_and_a_clock_give_the_same_payloads_through_every_interface() {
    let said = DOORS.map(|(_, ask)| scenario(&Sim::start(&CLOCK), ask));
    for text in &said[0] {
        let value: Value = serde_json::from_str(text).unwrap();
        let kind = value["type"].as_str().unwrap();
        assert!(kind.ends_with(".response") || kind == "aap.error", "{text}");
    }
    assert!(said[0].iter().any(|text| text.contains("\"lead_id\"")));
    for (number, (door, _)) in DOORS.iter().enumerate().skip(1) {
        assert_eq!(said[0], said[number], "a2a and {door}");
    }
}

#[test]
fn one_key_is_one_lead_through_every_interface() {
    let sim = Sim::start(&CLOCK);
    let mut keyed = lead("Lee");
    keyed["idempotency_key"] = "one-for-all".into();
    let receipts: Vec<_> = DOORS.iter().map(|(_, ask)| ask(&sim, "lead.submit", &keyed)).collect();
    assert!(receipts[0].contains("lead.submit.response"), "{}", receipts[0]);
    assert!(receipts.iter().all(|receipt| *receipt == receipts[0]), "{receipts:?}");
    let fixtures: Value = serde_json::from_str(&http("GET", &sim.admin("/fixtures"), &[], "").2).unwrap();
    assert_eq!(fixtures["lead_count"], 1);
    // Another payload under the same key is a conflict, wherever it comes from.
    keyed["customer"]["last_name"] = "Roe".into();
    for (door, ask) in DOORS {
        assert!(ask(&sim, "lead.submit", &keyed).contains("IDEMPOTENCY_CONFLICT"), "{door}");
    }
}

#[test]
fn the_journal_tells_the_interfaces_apart_and_gives_them_one_stable_key() {
    let sim = Sim::start(&CLOCK);
    let payload = json!({ "type": "inventory.search.request", "pagination": { "limit": 1 } });
    for (_, ask) in DOORS {
        ask(&sim, "inventory.search", &payload);
    }
    let (_, _, page) = http("GET", &sim.admin("/journal"), &[], "");
    let page: Value = serde_json::from_str(&page).unwrap();
    let entries = page["entries"].as_array().unwrap();
    let bindings: Vec<_> = entries.iter().map(|entry| entry["binding"].as_str().unwrap()).collect();
    assert_eq!(bindings, DOORS.map(|(door, _)| door));
    assert!(entries.iter().all(|entry| entry["key"].is_string() && entry["key"] == entries[0]["key"]));
    assert_eq!(entries.last().unwrap()["attempt"], DOORS.len());
    for (door, _) in DOORS {
        let (_, _, page) = http("GET", &sim.admin(&format!("/journal?binding={door}")), &[], "");
        let page: Value = serde_json::from_str(&page).unwrap();
        assert_eq!(page["entries"].as_array().unwrap().len(), 1, "{door}");
        let wanted = json!({ "match": { "binding": door, "payload": payload }, "count": 1 }).to_string();
        let (_, _, verdict) = http("POST", &sim.admin("/verify"), &[], &wanted);
        assert!(verdict.contains("\"pass\""), "{door}: {verdict}");
    }
}

#[test]
fn a_plan_may_mean_one_interface_alone() {
    let dir = tempfile::tempdir().unwrap();
    let plan = dir.path().join("plan.yaml");
    let rules: String = DOORS
        .iter()
        .map(|(door, _)| format!("  - {{ id: of-{door}, when: {{ binding: {door}, skill: inventory.facets }}, effect: internal_error }}\n"))
        .collect();
    std::fs::write(&plan, format!("rules:\n{rules}")).unwrap();
    let sim = Sim::start(&["--faults", plan.to_str().unwrap()]);
    let facets = json!({ "type": "inventory.facets.request" });
    for (door, ask) in DOORS {
        assert!(ask(&sim, "inventory.facets", &facets).contains("INTERNAL_ERROR"), "{door}");
    }
    let (_, _, page) = http("GET", &sim.admin("/journal"), &[], "");
    let page: Value = serde_json::from_str(&page).unwrap();
    for (entry, (door, _)) in page["entries"].as_array().unwrap().iter().zip(DOORS) {
        assert_eq!(entry["faults"][0]["trigger"], format!("of-{door}"));
    }
}

#[test]
fn contracts_before_3_0_have_one_interface() {
    let sim = Sim::start(&["--contract", "2.0"]);
    let body = json!({ "type": "dealer.information.request" }).to_string();
    for path in ["/pap/v3/dealer/information", "/mcp"] {
        let url = format!("{}{path}", base(&sim));
        assert_eq!(http("POST", &url, &[("Content-Type", "application/json")], &body).0, 404, "{path}");
    }
}
