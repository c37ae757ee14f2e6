//! The shipped scenarios against the simulated dealer, without a socket between them: whatever the stock, every outcome is
//! one that the scenario expects.

#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::collections::BTreeMap;
use std::path::Path;

use dealer_loadgen::scenario::{Item, ReplyParts, Step, Workload, load};
use dealer_sim::Dealer;
use dealer_sim::dealer::clock::ClockMode;
use jiff::Timestamp;
use serde_json::{Value, json};

fn now() -> Timestamp {
    "2026-01-01T12:00:00Z".parse().unwrap()
}

fn shipped(name: &str) -> Workload {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios").join(name);
    load(&[path], &[]).unwrap()
}

/// A payload in its envelope.
fn envelope(step: &Step, payload: &[u8]) -> Vec<u8> {
    let data: Value = serde_json::from_slice(payload).unwrap();
    let part = json!({"data": data, "mediaType": step.skill().request_media_type()});
    let message = json!({"messageId": "m-1", "role": "ROLE_USER", "parts": [part]});
    let modes = json!({"acceptedOutputModes": [step.skill().response_media_type()]});
    let params = json!({"message": message, "configuration": modes});
    json!({"jsonrpc": "2.0", "id": 1, "method": "SendMessage", "params": params}).to_string().into_bytes()
}

/// The AAP code of an error reply; an A2A or JSON-RPC error by its number.
fn outcome(reply: &[u8]) -> String {
    let reply: Value = serde_json::from_slice(reply).unwrap();
    let Some(error) = reply.get("error") else { return "ok".to_owned() };
    let entries = error["data"].as_array().into_iter().flatten();
    let code = entries.filter(|entry| entry["type"] == "aap.error").find_map(|entry| entry["code"].as_str());
    code.map_or_else(|| format!("rpc.{} {error}", error["code"]), |code| format!("aap.{code}"))
}

/// How often each step had each outcome in `sessions` sessions.
fn play(workload: &Workload, dealer: &Dealer, sessions: u64) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    let mut payload = Vec::new();
    for ordinal in 0..sessions {
        let mut session = workload.begin(42, ordinal);
        let flow = &workload.flows()[session.flow()];
        while let Some(item) = session.next(flow) {
            let Item::Step(step) = item else { continue };
            if !step.is_due(&session) {
                *counts.entry(format!("{} skipped", step.label())).or_default() += 1;
                continue;
            }
            payload.clear();
            step.render(&mut session, now(), ordinal % 2 == 0, &mut payload);
            let reply = dealer.dispatch_body(&envelope(step, &payload));
            let outcome = outcome(&reply);
            let sent = String::from_utf8_lossy(&payload);
            assert!(step.expects(&outcome), "{}: {outcome} for {sent}", step.label());
            if outcome == "ok" {
                step.read_reply(&mut session, ReplyParts { body: &reply, header: &|_| None }).unwrap();
            }
            *counts.entry(format!("{} {outcome}", step.label())).or_default() += 1;
        }
    }
    counts
}

#[test]
fn shopping_goes_well_with_any_stock() {
    let workload = shipped("shopping.yaml");
    for (seed, vehicles) in [(42, 500), (7, 20), (1, 1), (99, 0)] {
        let dealer =
            Dealer::builder().seed(seed).vehicles(vehicles).clock(ClockMode::Frozen(now())).build().unwrap();
        let counts = play(&workload, &dealer, 400);
        assert!(counts["browse/search ok"] > 250, "{counts:?}");
        if vehicles == 500 {
            for step in ["browse/detail ok", "buy/lead ok", "buy/test-drive ok"] {
                assert!(counts.get(step).is_some_and(|count| *count > 20), "{step} in {counts:?}");
            }
        }
    }
}

#[test]
fn smoke_is_one_search_a_session() {
    let dealer = Dealer::builder().seed(3).vehicles(50).clock(ClockMode::Frozen(now())).build().unwrap();
    assert_eq!(
        play(&shipped("smoke.yaml"), &dealer, 10),
        BTreeMap::from([("search/search ok".to_owned(), 10)])
    );
}

#[test]
fn a_patient_buyer_pages_on_and_leaves_a_lead() {
    let dealer = Dealer::builder().seed(4).vehicles(100).clock(ClockMode::Frozen(now())).build().unwrap();
    let counts = play(&shipped("patient.yaml"), &dealer, 20);
    assert_eq!(counts["patient/next-page ok"], 60, "{counts:?}");
    assert_eq!(counts["patient/first-page ok"], 20);
    assert!(counts["patient/lead ok"] > 10, "{counts:?}");
}
