//! `--redact`: nobody who was named in a call is named by the admin endpoint.

use serde_json::{Value, json};

use super::support::{Sim, call, http, lead, rpc};

/// What no admin output may hold, in whatever member it was sent.
const SECRETS: [&str; 9] = [
    "Anastasia",
    "Fernsby",
    "fernsby",
    "ana@fernsby",
    "6195551234",
    "92199",
    "Quiet Lane",
    "s3cr3t-t0ken",
    "wheelchair",
];

fn personal_lead() -> Value {
    let mut payload = lead("Fernsby");
    payload["customer"]["first_name"] = "Anastasia".into();
    payload["customer"]["email"] = "ana@fernsby.test".into();
    payload["customer"]["phone"] = "+16195551234".into();
    payload["customer"]["address"] = json!({ "address_line_1": "7 Quiet Lane", "zip": "92199" });
    payload["consent"]["consent_text"] = "I, Anastasia Fernsby, agree.".into();
    payload["message"] = "Call Anastasia on +16195551234, I use a wheelchair".into();
    payload["idempotency_key"] = "ana@fernsby.test/1".into();
    payload
}

/// Everything that the admin endpoint shows to those who read.
fn shown(sim: &Sim) -> String {
    let paths = [
        "/",
        "/fixtures",
        "/leads",
        "/conversations",
        "/journal",
        "/journal?skill=lead.submit",
        "/conduct",
        "/conduct?format=json",
        "/conduct?format=html",
        "/conduct?format=junit",
        "/metrics",
        "/faults",
        "/clock",
    ];
    let mut all: Vec<String> = paths.iter().map(|path| http("GET", &sim.admin(path), &[], "").2).collect();
    let question = json!({ "match": { "skill": "lead.submit", "outcome": "http.500" }, "count": 3 });
    all.push(http("POST", &sim.admin("/verify"), &[], &question.to_string()).2);
    all.join("\n")
}

fn shop(sim: &Sim) {
    let good = call("lead-submit", &personal_lead());
    let mut wrong = personal_lead();
    wrong["customer"]["email"] = "Anastasia Fernsby".into();
    wrong["customer"]["phone"] = 16195551234_i64.into();
    wrong["customer"]["nickname"] = "Anastasia".into();
    let mut named = call("lead-submit", &personal_lead());
    named["params"]["message"]["contextId"] = "ana@fernsby.test".into();
    named["params"]["message"]["metadata"] = json!({ "token": "s3cr3t-t0ken" });
    let bodies = [
        good.to_string(),
        good.to_string(),
        json!([good, call("lead-submit", &wrong), named]).to_string(),
        "{\"customer\":\"Anastasia Fernsby\"".to_owned(),
        call(
            "inventory-search",
            &json!({ "type": "inventory.search.request", "filters": { "query": "car for a wheelchair" } }),
        )
        .to_string(),
    ];
    for body in &bodies {
        assert_eq!(rpc(&sim.url(), body).0, 200);
    }
    let headers = [("Content-Type", "application/json"), ("Authorization", "Bearer s3cr3t-t0ken")];
    assert_eq!(http("POST", &sim.url(), &headers, &bodies[0]).0, 200);
    let pap = sim.url().replace("/a2a", "/pap/v3/lead/submit");
    let (status, _, body) = http("POST", &pap, &headers, &personal_lead().to_string());
    assert!(matches!(status, 200 | 404 | 409), "{status} {body}");
}

#[test]
fn nobody_is_named_by_the_admin_endpoint() {
    let sim = Sim::start(&["--vehicles", "40", "--redact", "--journal-reply-bytes", "64KiB"]);
    shop(&sim);
    let shown = shown(&sim);
    for secret in SECRETS {
        assert!(!shown.contains(secret), "{secret} in {shown}");
    }
    // What happened is there all the same, and one person is one mark.
    let journal: Value = serde_json::from_str(&http("GET", &sim.admin("/journal"), &[], "").2).unwrap();
    let entries = journal["entries"].as_array().unwrap();
    assert!(entries.len() >= 8, "{journal:#}");
    assert_eq!(entries[0]["request"], entries[1]["request"]);
    assert!(entries[0]["request"]["body"].as_str().unwrap().contains("@example.com"));
    assert!(entries[0]["key"].is_string() && entries[0]["key"] == entries[1]["key"]);
    assert!(entries[0]["reply"]["body"].as_str().unwrap().contains("\"status\":\"received\""));
    let leads: Value = serde_json::from_str(&http("GET", &sim.admin("/leads"), &[], "").2).unwrap();
    assert!(!leads["leads"].as_array().unwrap().is_empty());
}

#[test]
fn without_it_they_are_named_and_a_credential_never_is() {
    let sim = Sim::start(&["--vehicles", "40"]);
    shop(&sim);
    let shown = shown(&sim);
    for secret in ["Anastasia", "ana@", "wheelchair", "Quiet Lane"] {
        assert!(shown.contains(secret), "{secret} is not there, so its absence would prove nothing");
    }
    assert!(!shown.contains("Bearer"));
}
