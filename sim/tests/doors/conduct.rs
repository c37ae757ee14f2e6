//! The conduct of those who call through MCP and PAP: judged by what is asked of a call in any envelope, and by nothing that
//! only A2A has.

use std::collections::BTreeSet;

use dealer_sim::Dealer;
use dealer_sim::conduct::Status;
use dealer_sim::journal::Limits;
use serde_json::{Value, json};

use super::mcp::{headers, request, send, tool};
use super::support::lead;

/// Calls a skill under a client's name; the `data` of what came.
type Ask = fn(&str, &str, &str, &Value) -> Value;

fn by_mcp(base: &str, client: &str, skill: &str, payload: &Value) -> Value {
    let body = request("tools/call", json!({ "name": tool(skill), "arguments": payload }));
    let mut fields = headers(&body);
    fields.push(("X-Sim-Client", client));
    let (_, _, text) = send("POST", &format!("{base}/mcp"), &fields, &body.to_string());
    serde_json::from_str::<Value>(&text).unwrap()["result"]["structuredContent"]["data"].clone()
}

fn by_pap(base: &str, client: &str, skill: &str, payload: &Value) -> Value {
    let url = format!("{base}/pap/v3/{}", skill.replace('.', "/"));
    let fields = [("Content-Type", "application/json"), ("X-Sim-Client", client)];
    let (_, _, text) = send("POST", &url, &fields, &payload.to_string());
    serde_json::from_str::<Value>(&text).unwrap()["data"].clone()
}

/// Finds a vehicle, looks it up and sends a lead.
fn shop(base: &str, client: &str, ask: Ask) {
    let search = json!({
        "type": "inventory.search.request", "pagination": { "limit": 2 }, "privacy": { "anonymous": true },
    });
    let found = ask(base, client, "inventory.search", &search);
    let vin = found["vehicles"][0]["vin"].clone();
    assert!(vin.is_string(), "{found}");
    ask(base, client, "inventory.vehicle", &json!({ "type": "inventory.vehicle.request", "vin": vin }));
    let mut wish = lead(client);
    wish["idempotency_key"] = client.into();
    wish["vehicle_of_interest"] = json!({ "vin": vin });
    assert!(ask(base, client, "lead.submit", &wish)["lead_id"].is_string());
}

/// The same without what is asked of it.
fn shop_badly(base: &str, client: &str, ask: Ask) {
    let search =
        json!({ "type": "inventory.search.request", "filters": { "query": "for anna@example.com" } });
    ask(base, client, "inventory.search", &search);
    ask(base, client, "lead.submit", &lead(client));
}

#[tokio::test]
async fn callers_of_each_interface_are_judged_by_what_they_ask_for() {
    // Listings are judged by what was replied.
    let whole = Limits { reply_bytes: 64 << 10, ..Limits::default() };
    let dealer = Dealer::builder().vehicles(60).journal(whole).start().await.unwrap();
    let base = dealer.url().strip_suffix("/a2a").unwrap().to_owned();
    for (name, ask) in [("mcp", by_mcp as Ask), ("pap", by_pap as Ask)] {
        shop(&base, &format!("good-{name}"), ask);
        shop_badly(&base, &format!("bad-{name}"), ask);
    }
    let report = dealer.conduct();
    let told = |client: &str, status: Status| -> BTreeSet<&str> {
        let client = report.clients.iter().find(|one| one.client == client).unwrap();
        client.rules.iter().filter(|rule| rule.status == status).map(|rule| rule.rule.id).collect()
    };
    for name in ["mcp", "pap"] {
        assert_eq!(told(&format!("good-{name}"), Status::Broken), BTreeSet::new(), "{report}");
        let kept = told(&format!("good-{name}"), Status::Kept);
        for rule in ["retry.lead_has_key", "privacy.anonymous_search", "privacy.no_personal_data"] {
            assert!(kept.contains(rule), "{name}: {rule} in {kept:?}");
        }
        // What only A2A has was not seen.
        assert!(
            kept.iter().all(|rule| !rule.starts_with("discovery.") && !rule.starts_with("conversation."))
        );
        let broken = told(&format!("bad-{name}"), Status::Broken);
        let expected = ["privacy.anonymous_search", "retry.lead_has_key", "privacy.no_personal_data"];
        assert_eq!(broken, BTreeSet::from(expected), "{report}");
    }
}
