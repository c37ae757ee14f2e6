//! What a dealer takes from its callers: bodies, header fields, and each skill's request through the whole of dispatch. The law
//! is that whatever is asked, the answer is a lawful reply: valid JSON, as the load generator reads it.

use std::net::Ipv4Addr;

use dealer_loadgen::outcome::{Expectation, Outcome, classify};
use dealer_loadgen::transport::Content;
use dealer_sim::Dealer;
use dealer_sim::dealer::clock::Now;
use dealer_sim::dispatch::{Entrance, Fields, Request, Scratch};
use dealer_sim::journal::Redactor;
use dealer_sim::protocol::json::Doc;
use dealer_sim::protocol::{Contract, Skill};
use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};
use serde_json::{Value, json};

use super::engine::{Said, Target};
use super::mutate::Form;

const NOW: jiff::Timestamp = jiff::Timestamp::constant(1_767_268_800, 0);
/// Requests after which a dealer is replaced, so that what a finding needs is not in what came long before.
const FRESH_AFTER: u64 = 5_000;

/// A dealer that answers one request after the other.
struct Door {
    contract: Contract,
    dealer: Dealer,
    scratch: Scratch,
    asked: u64,
    has_faults: bool,
}

impl Door {
    fn new(contract: Contract, has_faults: bool) -> Door {
        let dealer = Dealer::builder().seed(7).vehicles(40).contract(contract).build().unwrap();
        Door { contract, dealer, scratch: Scratch::noting(), asked: 0, has_faults }
    }

    fn ask(&mut self, entrance: Entrance, head: &HeaderMap, body: &[u8]) -> (u16, Vec<u8>) {
        if self.asked % FRESH_AFTER == FRESH_AFTER - 1 {
            *self = Door::new(self.contract, self.has_faults);
        }
        self.asked += 1;
        let site = self.dealer.world().first();
        let fields = Fields::read(Ipv4Addr::LOCALHOST.into(), head, Some(self.contract));
        let faults = self.has_faults.then_some(&site.faults);
        let request = Request { entrance, fields, head, body, nonce: self.asked, faults, in_flight: 1 };
        let mut out = Vec::new();
        let now = Now { business: NOW, traffic_ns: self.asked * 1_000_000 };
        let reply = self.dealer.dispatch(&mut self.scratch, &request, now, &mut out);
        (reply.status, out)
    }
}

/// The reply, if it is JSON. One that echoes an id beyond what this reader can hold, such as 1e+340, is JSON all the same.
fn parsed(out: &[u8]) -> Result<Value, String> {
    match (serde_json::from_slice(out), serde_json::from_slice::<serde::de::IgnoredAny>(out)) {
        (Ok(reply), _) => Ok(reply),
        (Err(_), Ok(_)) => Ok(json!({ "error": { "code": 0, "message": "a number that nobody can hold" } })),
        (Err(error), Err(_)) => {
            Err(format!("the reply is no JSON: {error}: {}", String::from_utf8_lossy(out)))
        }
    }
}

/// What a reply says, without what is different each time.
fn said(reply: &Value) -> Said {
    let told = |reply: &Value| -> Said {
        let error = &reply["error"];
        match (reply.get("result"), error.is_object()) {
            (Some(result), false) => Ok(format!("ok {}", result["message"]["parts"][0]["data"]["type"])),
            (None, true) if error["code"].is_i64() && error["message"].is_string() => {
                Ok(format!("{} {}", error["code"], error["message"].as_str().unwrap_or_default()))
            }
            _ => Err(format!("neither a result nor an error: {reply}")),
        }
    };
    match reply {
        Value::Array(replies) => {
            let all: Result<Vec<_>, _> = replies.iter().map(told).collect();
            Ok(format!("batch {}", all?.join(" ")))
        }
        reply => told(reply),
    }
}

/// The body of a call.
fn call(skill: Skill, payload: &Value) -> Value {
    let media = |way| format!("application/vnd.autoagent.{}-{way}+json", skill.id().replace('.', "-"));
    json!({
        "jsonrpc": "2.0", "id": 1, "method": "SendMessage",
        "params": {
            "message": {
                "messageId": "m-1", "role": "ROLE_USER",
                "parts": [{ "data": payload, "mediaType": media("request") }],
            },
            "configuration": { "acceptedOutputModes": [media("response")] },
        },
    })
}

fn payloads(skill: Skill) -> Vec<Value> {
    let vin = {
        let dealer = Dealer::builder().seed(7).vehicles(40).build().unwrap();
        let scene = dealer.world().first().scene();
        serde_json::to_value(scene.dealer.fixtures(Now { business: NOW, traffic_ns: 0 })).unwrap()["available_vin"].clone()
    };
    let of_type = |mut payload: Value| {
        payload["type"] = format!("{}.request", skill.id()).into();
        payload
    };
    let filters = json!({
        "make": ["Ford"], "model": ["Escape"], "condition": ["used", "cpo"], "status": ["available"], "year_min": 2015, "year_max": 2026,
        "price_min": 1000, "price_max": 40000, "mileage_max": 90000, "query": "red suv with heated seats", "fuel": ["Gasoline"], "body": ["SUV"],
    });
    let lead = json!({
        "customer": { "first_name": "Anna", "last_name": "Lee", "email": "anna@example.com", "phone": "+16195550123", "preferred_contact": "email",
            "address": { "city": "San Diego", "zip": "92101", "state": "CA", "country": "US" } },
        "consent": { "granted_at": "2026-01-01T00:00:00Z", "expires_at": "2026-06-01T00:00:00Z", "allowed_channels": ["email", "phone"],
            "consent_text": "I agree.", "scope": ["lead_submission"] },
        "vehicle_of_interest": { "vin": vin }, "source_agent": { "name": "fuzz", "url": "https://agent.example.com" },
        "trade_in": { "make": "Saab", "model": "900", "year": 1990, "condition": "good", "mileage": 200000 },
        "appointment": { "appointment_type": "test_drive", "appointment_at": "2026-01-03T18:00:00Z", "duration_minutes": 45, "notes": "by bus" },
        "message": "Is it still there?", "submitted_at": "2026-01-01T12:00:00Z", "idempotency_key": "k-1",
    });
    let all = match skill {
        Skill::DealerInformation => vec![json!({})],
        Skill::InventoryFacets => vec![json!({}), json!({ "filters": filters })],
        Skill::InventorySearch => vec![
            json!({}),
            json!({ "filters": filters, "sort": { "field": "price", "order": "asc" }, "pagination": { "skip": 3, "limit": 20 } }),
            json!({ "filters": { "vin": vin }, "privacy": { "anonymous": true } }),
        ],
        Skill::InventoryVehicle => {
            vec![json!({ "vin": vin }), json!({ "stock": "S1" }), json!({ "vehicle_id": "v" })]
        }
        Skill::LeadSubmit => vec![lead],
    };
    all.into_iter().map(of_type).collect()
}

/// A skill's request, by A2A and by PAP: a lawful answer to both, and of the same kind.
fn skill_target(name: &'static str, skill: Skill) -> Target {
    let mut doors: Vec<Door> = Contract::ALL.iter().map(|contract| Door::new(*contract, false)).collect();
    let run = move |input: &[u8]| -> Said {
        let Ok(mut payload) = serde_json::from_slice::<Value>(input) else { return Ok("no JSON".to_owned()) };
        if payload.is_object() {
            payload["type"] = format!("{}.request", skill.id()).into();
        }
        let body = call(skill, &payload).to_string();
        let mut told = String::new();
        for door in &mut doors {
            let (_, out) = door.ask(Entrance::A2a, &HeaderMap::new(), body.as_bytes());
            let reply = parsed(&out)?;
            let expected = Expectation {
                binding: dealer_sim::protocol::Binding::A2a,
                id: b"1",
                message_id: b"m-1",
                context_id: None,
                skill,
                contract: door.contract,
            };
            let (outcome, _) = classify(200, Content::Json, &out, &expected);
            if matches!(outcome, Outcome::Protocol(_)) {
                return Err(format!("{} under {}: {reply}", outcome.label(), door.contract.name));
            }
            told = said(&reply)?;
            if door.contract.bindings.has(dealer_sim::protocol::Binding::Pap) {
                let (status, out) = door.ask(Entrance::Pap(skill), &HeaderMap::new(), input);
                let bare = parsed(&out)?;
                if (status == 200) != bare.get("data").is_some() {
                    return Err(format!("HTTP {status} with {bare}"));
                }
                told += &format!(" {status}");
            }
        }
        Ok(told)
    };
    let seeds = payloads(skill).iter().map(|payload| payload.to_string().into_bytes()).collect();
    Target { name, form: Form::Json, seeds, run: Box::new(run) }
}

/// Any body: the reply is JSON-RPC; and what our reader takes for JSON, another one does, too.
fn bodies() -> Target {
    let mut door = Door::new(Contract::V3_0, false);
    let redactor = Redactor::new(7);
    let run = move |input: &[u8]| -> Said {
        let ours = Doc::default().parse(input).is_ok();
        if ours && serde_json::from_slice::<serde::de::IgnoredAny>(input).is_err() {
            return Err("taken for JSON, which it is not".to_owned());
        }
        let (redacted, marks) = redactor.request(input);
        if ours && Doc::default().parse(&redacted).is_err() {
            return Err(format!("redaction makes no JSON of it: {}", String::from_utf8_lossy(&redacted)));
        }
        let (_, out) = door.ask(Entrance::A2a, &HeaderMap::new(), input);
        drop(redactor.reply(&out, &marks));
        said(&parsed(&out)?)
    };
    let mut seeds: Vec<Vec<u8>> = Skill::ALL
        .into_iter()
        .flat_map(|skill| payloads(skill).into_iter().map(move |payload| call(skill, &payload)))
        .map(|body| body.to_string().into_bytes())
        .collect();
    let batch: Vec<Value> = seeds.iter().take(3).map(|body| serde_json::from_slice(body).unwrap()).collect();
    seeds.push(Value::from(batch).to_string().into_bytes());
    Target { name: "json-rpc", form: Form::Json, seeds, run: Box::new(run) }
}

/// Header fields, one a line: versions, extensions, faults that are asked for, keys.
fn headers() -> Target {
    let mut doors =
        [Door::new(Contract::V3_0, true), Door::new(Contract::V2_0, true), Door::new(Contract::ALL[0], true)];
    let body = call(Skill::LeadSubmit, &payloads(Skill::LeadSubmit)[0]).to_string();
    let run = move |input: &[u8]| -> Said {
        let mut head = HeaderMap::new();
        for line in input.split(|byte| *byte == b'\n') {
            let Some(colon) = line.iter().position(|byte| *byte == b':') else { continue };
            let (name, value) = (
                HeaderName::from_bytes(&line[..colon]),
                HeaderValue::from_bytes(line[colon + 1..].trim_ascii()),
            );
            if let (Ok(name), Ok(value), true) = (name, value, head.len() < 100) {
                head.append(name, value);
            }
        }
        let mut told = String::new();
        for door in &mut doors {
            let (_, out) = door.ask(Entrance::A2a, &head, body.as_bytes());
            // A fault that was asked for may answer in any way; without one the answer is lawful.
            if !head.contains_key("x-sim-fault") {
                told += &said(&parsed(&out)?)?;
            }
        }
        Ok(told)
    };
    let faults = dealer_sim::faults::registry().iter().map(|effect| effect.name).collect::<Vec<_>>();
    let mut seeds: Vec<Vec<u8>> = vec![
        b"A2A-Version: 1.0\nA2A-Extensions: https://autoagentprotocol.org/extensions/aap/v3.0\nUser-Agent: fuzz\nAuthorization: Bearer x\n\
          X-Sim-Client: a\nX-Sim-Key: k\nIf-None-Match: \"x\"\ntraceparent: 00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
            .to_vec(),
        b"X-Sim-Fault: rate_limited(retry_after=2s)\nX-Sim-Fault: latency(lognormal, p50=80ms, p99=900ms), reset_after_commit".to_vec(),
    ];
    seeds.extend(
        faults.chunks(8).map(|names| format!("X-Sim-Fault: {}", names.join("\nX-Sim-Fault: ")).into_bytes()),
    );
    Target { name: "headers", form: Form::Text, seeds, run: Box::new(run) }
}

/// What a load generator takes from a dealer.
fn replies() -> Target {
    let run = |input: &[u8]| -> Said {
        let mut told = String::new();
        for contract in Contract::ALL {
            let expected = Expectation {
                binding: dealer_sim::protocol::Binding::A2a,
                id: b"1",
                message_id: b"m-1",
                context_id: None,
                skill: Skill::LeadSubmit,
                contract,
            };
            for (status, content) in [(200, Content::Json), (500, Content::Json), (200, Content::Other)] {
                let (outcome, _) = classify(status, content, input, &expected);
                // What is skipped is not validated; what is JSON has to be what it is counted as.
                let reply: Option<Value> = serde_json::from_slice(input).ok();
                let is_told = |reply: &Value| {
                    reply["result"]["message"]["parts"][0]["data"]["type"]
                        == Skill::LeadSubmit.response_type()
                };
                if matches!(outcome, Outcome::Ok) && !reply.as_ref().is_none_or(is_told) {
                    return Err("counted as ok, and of another type".to_owned());
                }
                told += &outcome.label();
            }
        }
        Ok(told)
    };
    let mut door = Door::new(Contract::V3_0, false);
    let mut seeds = Vec::new();
    for skill in Skill::ALL {
        for payload in payloads(skill) {
            seeds.push(
                door.ask(Entrance::A2a, &HeaderMap::new(), call(skill, &payload).to_string().as_bytes()).1,
            );
        }
    }
    seeds.push(door.ask(Entrance::A2a, &HeaderMap::new(), b"{}").1);
    Target { name: "replies", form: Form::Json, seeds, run: Box::new(run) }
}

pub(crate) fn targets() -> Vec<Target> {
    vec![
        bodies(),
        headers(),
        skill_target("dealer.information", Skill::DealerInformation),
        skill_target("inventory.facets", Skill::InventoryFacets),
        skill_target("inventory.search", Skill::InventorySearch),
        skill_target("inventory.vehicle", Skill::InventoryVehicle),
        skill_target("lead.submit", Skill::LeadSubmit),
        replies(),
    ]
}
