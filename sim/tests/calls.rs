//! Calls without sockets: which check comes first, what is echoed, what no input can break.

#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "calls/contracts.rs"]
mod contracts;

use dealer_sim::dealer::clock::Now;
use dealer_sim::dispatch::{Entrance, Fields, Request, Scratch};
use dealer_sim::protocol::{Contract, HeaderMode, Skill};
use dealer_sim::{Dealer, DealerBuilder};
use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};
use proptest::prelude::*;
use serde_json::{Value, json};

const URI: &str = "https://autoagentprotocol.org/extensions/aap/v3.0";

fn dealer() -> DealerBuilder {
    Dealer::builder().vehicles(60)
}

/// The reply to a body with these header fields, and whether the extension was activated.
fn ask(dealer: &Dealer, headers: &[(&str, &str)], body: &str) -> (Value, bool) {
    let mut head = HeaderMap::new();
    for (name, value) in headers {
        head.append(HeaderName::try_from(*name).unwrap(), HeaderValue::from_bytes(value.as_bytes()).unwrap());
    }
    let mut out = Vec::new();
    let contract = dealer.world().first().scene().dealer.spec().contract;
    let fields = Fields::read(std::net::Ipv4Addr::LOCALHOST.into(), &head, Some(contract));
    let faults = Some(&dealer.world().first().faults);
    let request = Request {
        entrance: Entrance::A2a,
        fields,
        head: &head,
        body: body.as_bytes(),
        nonce: 1,
        faults,
        in_flight: 1,
    };
    let now = Now { business: "2026-01-05T12:00:00Z".parse().unwrap(), traffic_ns: 0 };
    let said = dealer.dispatch(&mut Scratch::default(), &request, now, &mut out);
    (serde_json::from_slice(&out).unwrap(), said.activated.is_some())
}

fn code(reply: &Value) -> i64 {
    reply["error"]["code"].as_i64().unwrap_or(0)
}

fn typed(reply: &Value) -> &Value {
    let data = reply["error"]["data"].as_array().unwrap();
    data.iter().find(|entry| entry["@type"] == "https://autoagentprotocol.org/extensions/aap/error").unwrap()
}

fn envelope(payload: &Value, media_type: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": "a", "method": "SendMessage", "params": { "message": {
        "messageId": "m", "role": "ROLE_USER", "parts": [{ "data": payload, "mediaType": media_type }] } } })
}

fn search(payload: &Value) -> Value {
    envelope(payload, "application/vnd.autoagent.inventory-search-request+json")
}

#[test]
fn checks_come_in_their_order() {
    let dealer = dealer().headers(HeaderMode::Strict).skills(&[Skill::InventorySearch]).build().unwrap();
    // Everything is wrong; each step mends the fault that was told.
    let mut body =
        json!({ "jsonrpc": "1.0", "id": "a", "method": "message/send", "params": { "message": {} } });
    let mut headers = vec![("a2a-version", "0.3"), ("a2a-extensions", "urn:x")];
    assert_eq!(code(&ask(&dealer, &headers, "{").0), -32700);
    assert_eq!(code(&ask(&dealer, &headers, &body.to_string()).0), -32600);
    body["jsonrpc"] = json!("2.0");
    assert_eq!(code(&ask(&dealer, &headers, &body.to_string()).0), -32009);
    headers[0].1 = "1.0";
    assert_eq!(code(&ask(&dealer, &headers, &body.to_string()).0), -32601);
    body["method"] = json!("GetTask");
    assert_eq!(code(&ask(&dealer, &headers, &body.to_string()).0), -32004);
    body["method"] = json!("SendMessage");
    assert_eq!(code(&ask(&dealer, &headers, &body.to_string()).0), -32008);
    headers[1].1 = URI;
    let (reply, _) = ask(&dealer, &headers, &body.to_string());
    assert_eq!(code(&reply), -32602);
    // messageId, role and parts, all at once.
    assert_eq!(reply["error"]["data"][1]["fieldViolations"].as_array().unwrap().len(), 3, "{reply}");
    body = envelope(&json!({ "type": "lead.submit.request" }), "application/json");
    assert_eq!(code(&ask(&dealer, &headers, &body.to_string()).0), -32005);
    body = envelope(
        &json!({ "type": "lead.submit.request" }),
        "application/vnd.autoagent.lead-submit-request+json",
    );
    let (reply, activated) = ask(&dealer, &headers, &body.to_string());
    assert_eq!(
        (code(&reply), &typed(&reply)["code"], activated),
        (-32004, &json!("UNSUPPORTED_SKILL"), true)
    );
    body = search(&json!({ "type": "inventory.search.request", "filters": { "zip": 1, "year_min": "x" } }));
    let (reply, _) = ask(&dealer, &headers, &body.to_string());
    assert_eq!(typed(&reply)["details"]["errors"].as_array().unwrap().len(), 2);
    body = search(&json!({ "type": "inventory.search.request" }));
    assert_eq!(ask(&dealer, &headers, &body.to_string()).0["result"]["message"]["role"], "ROLE_AGENT");
}

#[test]
fn ids_come_back_byte_for_byte() {
    let dealer = dealer().build().unwrap();
    let body =
        search(&json!({ "type": "inventory.search.request", "pagination": { "limit": 1 } })).to_string();
    for id in ["\"a\\u0062\\/\"", "0", "-7", "1.50", "1e2", "123456789012345678901234567890", "null", "\"\""]
    {
        let body = body.replace("\"id\":\"a\"", &format!("\"id\":{id}"));
        let reply = String::from_utf8(dealer.dispatch_body(body.as_bytes())).unwrap();
        assert!(reply.starts_with(&format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\"")), "{reply}");
    }
    for id in ["true", "[1]", "{}", "\"\\ud800\""] {
        let body = body.replace("\"id\":\"a\"", &format!("\"id\":{id}"));
        let reply: Value = serde_json::from_slice(&dealer.dispatch_body(body.as_bytes())).unwrap();
        assert!(code(&reply) == -32600 && reply["id"].is_null(), "{reply}");
    }
}

#[test]
fn a_batch_is_answered_call_by_call() {
    let dealer = dealer().build().unwrap();
    let one = search(&json!({ "type": "inventory.search.request" }));
    let reply: Value =
        serde_json::from_slice(&dealer.dispatch_body(json!([one, 1, one]).to_string().as_bytes())).unwrap();
    let replies = reply.as_array().unwrap();
    assert_eq!(replies.iter().map(code).collect::<Vec<_>>(), [0, -32600, 0]);
    let message_id = |n: usize| &replies[n]["result"]["message"]["messageId"];
    assert_ne!(message_id(0), message_id(2));
    for body in ["[]".to_owned(), format!("[{}]", vec!["1"; 101].join(","))] {
        let reply: Value = serde_json::from_slice(&dealer.dispatch_body(body.as_bytes())).unwrap();
        assert_eq!((code(&reply), &reply["id"]), (-32600, &Value::Null));
    }
}

#[test]
fn a_conversation_keeps_its_name() {
    let dealer = dealer().build().unwrap();
    let mut body = search(&json!({ "type": "inventory.search.request" }));
    let context = |reply: Value| reply["result"]["message"]["contextId"].as_str().unwrap().to_owned();
    let made = context(ask(&dealer, &[], &body.to_string()).0);
    assert!(made.starts_with("ctx_"));
    for name in [made.as_str(), "mine \"quoted\" \u{1F697}", &"long".repeat(1000)] {
        body["params"]["message"]["contextId"] = json!(name);
        assert_eq!(context(ask(&dealer, &[], &body.to_string()).0), name);
    }
    assert_eq!(dealer.world().first().scene().dealer.conversations().get(&made).unwrap().calls, 2);
}

#[test]
fn a_rate_limit_hints_when_to_come_back() {
    let dealer = dealer().rate_limit("1/m".parse().unwrap()).build().unwrap();
    let body = search(&json!({ "type": "inventory.search.request" })).to_string();
    let from = |client: &str| ask(&dealer, &[("x-sim-client", client)], &body).0;
    assert_eq!(code(&from("a")), 0);
    let limited = from("a");
    assert_eq!(typed(&limited)["code"], "RATE_LIMITED");
    assert_eq!(typed(&limited)["details"]["retry_after_ms"], 60_000);
    assert_eq!(limited["error"]["data"][0]["metadata"]["retry_after_ms"], "60000");
    assert_eq!(code(&from("b")), 0);
}

#[test]
fn contracts_differ_where_they_should() {
    let body = search(&json!({ "type": "inventory.search.request", "filters": { "status": ["available"] } }))
        .to_string();
    let new = dealer().build().unwrap();
    assert_eq!(code(&ask(&new, &[], &body).0), 0);
    let old = dealer().contract(Contract::V2_0).build().unwrap();
    assert_eq!(code(&ask(&old, &[], &body).0), -32009);
    let draft = Contract::V2_0.extension_uri;
    let headers = [("a2a-version", "1.0"), ("a2a-extensions", draft)];
    assert_eq!(
        typed(&ask(&old, &headers, &body).0)["details"]["errors"][0]["instanceLocation"],
        "/filters/status"
    );
    let headers = [("a2a-version", "1.0"), ("a2a-extensions", URI)];
    assert_eq!(code(&ask(&old, &headers, &body).0), -32008);
}

#[test]
fn a_thousand_faults_are_told_at_once() {
    let dealer = dealer().build().unwrap();
    let filters: serde_json::Map<String, Value> = (0..1000).map(|n| (format!("k{n}"), json!(1))).collect();
    let body = search(&json!({ "type": "inventory.search.request", "filters": filters })).to_string();
    let reply = ask(&dealer, &[], &body).0;
    assert_eq!(typed(&reply)["details"]["errors"].as_array().unwrap().len(), 1000);
}

/// Every reply is one JSON-RPC reply, whatever came.
fn is_a_reply(bytes: &[u8]) {
    let reply: Value = serde_json::from_slice(bytes).unwrap_or_else(|error| {
        panic!("{error} in {}", String::from_utf8_lossy(bytes));
    });
    for reply in reply.as_array().unwrap_or(&vec![reply.clone()]) {
        assert_eq!(reply["jsonrpc"], "2.0");
        assert!(reply.get("id").is_some());
        assert_ne!(reply.get("result").is_some(), reply.get("error").is_some(), "{reply}");
    }
}

thread_local! {
    static DEALER: Dealer = dealer().build().unwrap();
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2000, ..ProptestConfig::default() })]

    #[test]
    fn no_bytes_break_it(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        DEALER.with(|dealer| is_a_reply(&dealer.dispatch_body(&bytes)));
    }

    #[test]
    fn no_damage_to_a_lead_breaks_it(at in 0usize..900, byte in any::<u8>(), cut in 0usize..900) {
        let lead = json!({
            "type": "lead.submit.request", "customer": { "first_name": "A", "last_name": "L", "email": "a@example.com" },
            "consent": { "granted_at": "2026-01-01T00:00:00Z", "allowed_channels": ["email"], "consent_text": "ok",
                         "scope": ["lead_submission"] },
            "appointment": { "appointment_type": "sales", "appointment_at": "2026-02-03T18:00:00Z", "duration_minutes": 30 },
            "trade_in": { "year": 2014, "other_attributes": { "a": [1, 2] } }, "source_agent": { "name": "t" },
        });
        let mut body = envelope(&lead, "application/vnd.autoagent.lead-submit-request+json").to_string().into_bytes();
        let at = at % body.len();
        body[at] = byte;
        DEALER.with(|dealer| {
            is_a_reply(&dealer.dispatch_body(&body));
            is_a_reply(&dealer.dispatch_body(&body[..cut % body.len()]));
        });
    }
}

#[test]
fn what_a_review_found_stays_mended() {
    let dealer = dealer().build().unwrap();
    // A member named like one of a lead's is any unknown member elsewhere.
    for skill in [Skill::InventorySearch, Skill::InventoryFacets, Skill::DealerInformation] {
        let payload = json!({ "type": skill.request_type(), "consent": {} });
        let reply = ask(&dealer, &[], &envelope(&payload, skill.request_media_type()).to_string()).0;
        assert_eq!(typed(&reply)["code"], "SCHEMA_VALIDATION_FAILED");
    }
    // ProtoJSON reads null as absent, so that this part holds data alone.
    let mut body = search(&json!({ "type": "inventory.search.request" }));
    for name in ["text", "raw", "url"] {
        body["params"]["message"]["parts"][0][name] = Value::Null;
    }
    assert_eq!(code(&ask(&dealer, &[], &body.to_string()).0), 0);
    // A grant in the last hours of the year 9999 is in the future, too.
    let lead = |change: &dyn Fn(&mut Value)| {
        let mut lead = json!({
            "type": "lead.submit.request", "source_agent": { "name": "t" },
            "customer": { "first_name": "A", "last_name": "L", "email": "a@example.com" },
            "consent": { "granted_at": "2026-01-01T00:00:00Z", "allowed_channels": ["email"], "consent_text": "ok",
                         "scope": ["lead_submission"] },
        });
        change(&mut lead);
        ask(&dealer, &[], &envelope(&lead, Skill::LeadSubmit.request_media_type()).to_string()).0
    };
    assert_eq!(code(&lead(&|_| ())), 0);
    let far = lead(&|lead| lead["consent"]["granted_at"] = json!("9999-12-31T23:59:59Z"));
    assert_eq!(typed(&far)["code"], "INVALID_CONSENT");
    // The only channel allowed does not lead to this customer.
    let unreachable = lead(&|lead| {
        lead["customer"] = json!({ "first_name": "A", "last_name": "L", "phone": "+14155550123" });
    });
    assert_eq!(typed(&unreachable)["code"], "CONTACT_CONSENT_REQUIRED");
    // A visit longer than any day is open is for a person to find, not an error.
    let long = lead(&|lead| {
        lead["appointment"] = json!({ "appointment_type": "trade_in", "appointment_at": "2026-01-07T18:00:00Z",
                                      "duration_minutes": 1440 });
    });
    assert_eq!(
        long["result"]["message"]["parts"][0]["data"]["data"]["appointment"]["status"], "requested",
        "{long}"
    );
}

#[test]
fn what_one_body_can_ask_for_is_bounded() {
    let dealer = dealer().build().unwrap();
    // A list of seventy thousand faults is told in part, and the rest is counted.
    let payload = json!({ "type": "inventory.search.request", "filters": { "condition": vec![""; 70_000] } });
    let reply = ask(&dealer, &[], &search(&payload).to_string()).0;
    assert_eq!(typed(&reply)["details"]["errors"].as_array().unwrap().len(), 65_536);
    assert!(typed(&reply)["message"].as_str().unwrap().contains("the last 4464 are not listed"));
    // A batch of such calls ends when its replies have grown long enough.
    let reply = dealer.dispatch_body(Value::Array(vec![search(&payload); 4]).to_string().as_bytes());
    assert!(reply.len() < 32 << 20, "{} bytes", reply.len());
    is_a_reply(&reply);
    // A name is told whole where it is, and short where it is spoken of.
    let payload = json!({ "type": "inventory.search.request", "\u{200b}".repeat(50_000): 1 });
    let reply = dealer.dispatch_body(search(&payload).to_string().as_bytes());
    assert!(reply.len() < 4 * 150_000, "{} bytes", reply.len());
    // A word said again narrows nothing, and costs nothing.
    let total = |query: &str| {
        let payload = json!({ "type": "inventory.search.request", "filters": { "query": query } });
        ask(&dealer, &[], &search(&payload).to_string()).0["result"]["message"]["parts"][0]["data"]["data"]["total"].clone()
    };
    assert_eq!(total("suv"), total(&"suv ".repeat(50)));
}
