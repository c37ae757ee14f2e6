//! Faults through MCP and PAP, each in the form that this interface gives it, and MCP's own.

use std::panic::{AssertUnwindSafe, catch_unwind};

use dealer_sim::faults::{Apply, registry};
use dealer_sim::protocol::Binding;
use dealer_sim::protocol::pap;
use serde_json::{Value, json};

use super::mcp::{headers, request, send, url};
use super::support::Sim;

const FROZEN: [&str; 4] = ["--clock", "2026-01-01T00:00:00Z", "--vehicles", "60"];

/// What came back.
#[derive(Debug)]
struct Heard {
    status: u16,
    head: String,
    text: String,
}

impl Heard {
    fn json(&self) -> Value {
        serde_json::from_str(&self.text).unwrap_or_default()
    }
}

/// Asks by MCP, with a fault or without one. Both have one stable key, so that they are given the same identifiers.
fn ask(sim: &Sim, body: &Value, fault: Option<&str>) -> Heard {
    let mut fields = headers(body);
    fields.push(("X-Sim-Key", "one"));
    fields.extend(fault.map(|fault| ("X-Sim-Fault", fault)));
    let (status, head, text) = send("POST", &url(sim), &fields, &body.to_string());
    Heard { status, head: head.to_lowercase(), text }
}

fn detail() -> Value {
    let arguments = json!({ "type": "inventory.vehicle.request", "vin": "GDS00000000000000" });
    request("tools/call", json!({ "name": "aap_inventory_vehicle", "arguments": arguments }))
}

fn search() -> Value {
    let arguments = json!({ "type": "inventory.search.request", "pagination": { "limit": 2 } });
    request("tools/call", json!({ "name": "aap_inventory_search", "arguments": arguments }))
}

fn list() -> Value {
    request("tools/list", json!({}))
}

fn tools(reply: &Value) -> usize {
    reply["result"]["tools"].as_array().map_or(0, Vec::len)
}

/// An effect, what is asked, and what must hold of what comes, and of nothing that comes without it.
type Row = (&'static str, fn() -> Value, fn(&Value, &Heard) -> bool);

const OWN: &[Row] = &[
    ("mcp_event_stream", search, |r, heard| {
        let data = heard.text.strip_prefix("event: message\ndata: ").unwrap_or_default();
        r.is_null()
            && heard.head.contains("content-type: text/event-stream")
            && serde_json::from_str::<Value>(data).unwrap()["id"] == 7
    }),
    ("mcp_session_id", search, |_, heard| heard.head.contains("mcp-session-id: session-1")),
    ("mcp_version_refused", search, |r, heard| {
        heard.status == 400
            && r["error"]["code"] == -32022
            && r["error"]["data"]["supported"] == json!(["2025-11-25"])
    }),
    ("mcp_structured_missing", search, |r, _| {
        r["result"].get("structuredContent").is_none() && r["result"]["content"][0]["text"].is_string()
    }),
    ("mcp_structured_wrong", search, |r, _| {
        r["result"]["structuredContent"] == json!({ "result": "see the text" })
    }),
    ("mcp_structured_list", search, |r, _| {
        r["result"]["structuredContent"][0]["type"] == "inventory.search.response"
    }),
    ("mcp_text_differs", search, |r, _| {
        r["result"]["content"][0]["text"] == "Done. Is there anything else?"
            && r["result"]["structuredContent"]["type"] == "inventory.search.response"
    }),
    ("mcp_content_empty", search, |r, _| r["result"]["content"] == json!([])),
    ("mcp_content_missing", search, |r, _| {
        r["result"]["structuredContent"].is_object() && r["result"].get("content").is_none()
    }),
    ("mcp_is_error_flipped", search, |r, _| r["result"]["isError"] == true),
    ("mcp_is_error_flipped", detail, |r, _| {
        r["result"]["isError"] == false && r["result"]["structuredContent"]["code"] == "VEHICLE_NOT_FOUND"
    }),
    ("mcp_error_as_rpc", detail, |r, heard| {
        heard.status == 200
            && r["error"]["code"] == -32000
            && r["error"]["data"]["code"] == "VEHICLE_NOT_FOUND"
    }),
    ("mcp_result_type_missing", search, |r, _| {
        r["result"]["content"].is_array() && r["result"].get("resultType").is_none()
    }),
    ("mcp_result_type_unknown", search, |r, _| r["result"]["resultType"] == "partial"),
    ("mcp_server_info_missing", search, |r, _| {
        r["result"]["content"].is_array() && r["result"].get("_meta").is_none()
    }),
    ("mcp_tools_change", list, |r, _| tools(r) == 4),
    ("mcp_tools_shuffled", list, |r, _| r["result"]["tools"][0]["name"] == "aap_lead_submit"),
    ("mcp_tools_without_end", list, |r, _| r["result"]["nextCursor"] == ""),
    ("mcp_input_schema_by_reference", list, |r, _| {
        r["result"]["tools"][0]["inputSchema"]["$ref"].is_string() && tools(r) == 5
    }),
    ("mcp_output_schema_missing", list, |r, _| {
        tools(r) == 5
            && r["result"]["tools"].as_array().unwrap().iter().all(|tool| tool.get("outputSchema").is_none())
    }),
    ("mcp_instructions_in_description", list, |r, _| {
        r["result"]["tools"][0]["description"].as_str().unwrap().contains("address book")
    }),
];

#[test]
fn mcps_own_effects_are_seen_as_they_say() {
    let sim = Sim::start(&FROZEN);
    for (name, body, holds) in OWN {
        let before = ask(&sim, &body(), None);
        let without = catch_unwind(AssertUnwindSafe(|| holds(&before.json(), &before))).unwrap_or(false);
        assert!(!without, "{name}: it holds without the fault: {}", before.text);
        let after = ask(&sim, &body(), Some(name));
        assert!(holds(&after.json(), &after), "{name}: {after:.900?}");
        assert!(after.head.contains(&format!("; {name}")), "{name}: {}", after.head);
    }
    for effect in registry().iter().filter(|effect| effect.family == "mcp") {
        assert!(OWN.iter().any(|(name, ..)| *name == effect.name), "{} has no row", effect.name);
    }
    // A list that changes is not always the same one.
    let lists: Vec<_> = (0..20).map(|_| ask(&sim, &list(), Some("mcp_tools_change")).text).collect();
    assert!(lists.iter().any(|text| *text != lists[0]));
}

/// What rewrites a reply, through an interface: it is another one than without the fault, and says so.
#[test]
fn what_rewrites_a_reply_rewrites_that_of_each_interface_it_is_for() {
    let sim = Sim::start(&FROZEN);
    let mut tried = [0; 2];
    for effect in
        registry().iter().filter(|effect| matches!(effect.apply, Apply::Refine(_)) && effect.family != "mcp")
    {
        let (before, after) = (ask(&sim, &search(), None), ask(&sim, &search(), Some(effect.name)));
        if effect.bindings.has(Binding::Mcp) {
            assert!(
                before.text != after.text && after.head.contains(&format!("; {}", effect.name)),
                "{}: {after:.600?}",
                effect.name
            );
            tried[0] += 1;
        } else {
            // Asked for where it means nothing, it is refused: it would pass for one that was borne.
            assert_eq!(
                (after.status, &after.json()["error"]["code"]),
                (400, &json!(-32602)),
                "{}",
                effect.name
            );
            assert!(after.text.contains("alone"), "{}", after.text);
            tried[1] += 1;
        }
    }
    assert!(tried[0] >= 25 && tried[1] >= 20, "{tried:?}");
}

/// What bends a payload bends it alike through every interface, and a tool's text block still repeats it.
#[test]
fn a_bent_payload_is_the_same_through_each_interface() {
    let [by_mcp, by_pap] = [0, 1].map(|_| Sim::start(&FROZEN));
    let pap_url = url(&by_pap).replace("/mcp", "/pap/v3/inventory/search");
    let arguments = search()["params"]["arguments"].to_string();
    let (mut tried, mut bent) = (0, 0);
    let plain = ask(&by_mcp, &search(), None).json()["result"]["structuredContent"].clone();
    for effect in registry() {
        let Apply::RefinePayload(_) = effect.apply else { continue };
        let result = ask(&by_mcp, &search(), Some(effect.name)).json()["result"].clone();
        let fields =
            [("Content-Type", "application/json"), ("X-Sim-Key", "one"), ("X-Sim-Fault", effect.name)];
        let (status, _, text) = send("POST", &pap_url, &fields, &arguments);
        let body: Value = serde_json::from_str(&text).unwrap();
        assert_eq!((status, &result["structuredContent"]), (200, &body), "{}", effect.name);
        let repeated: Value = serde_json::from_str(result["content"][0]["text"].as_str().unwrap()).unwrap();
        assert_eq!(repeated, body, "{}", effect.name);
        tried += 1;
        bent += usize::from(body != plain);
    }
    assert!(tried >= 25 && bent >= 12, "{tried} tried, {bent} of them bent a search");
}

#[test]
fn a_refusal_has_the_form_of_its_interface() {
    let sim = Sim::start(&FROZEN);
    let body = json!({ "type": "dealer.information.request" }).to_string();
    let pap_url = url(&sim).replace("/mcp", "/pap/v3/dealer/information");
    let mut tried = 0;
    for effect in registry() {
        let Apply::Refuse(refuse) = effect.apply else { continue };
        let by_mcp = ask(&sim, &search(), Some(effect.name));
        let code = effect.name.to_uppercase();
        let result = &by_mcp.json()["result"];
        assert_eq!((by_mcp.status, &result["isError"]), (200, &json!(true)), "{by_mcp:.600?}");
        assert_eq!(result["structuredContent"]["code"], code);
        let fields = [("Content-Type", "application/json"), ("X-Sim-Fault", effect.name)];
        let (status, head, text) = send("POST", &pap_url, &fields, &body);
        let args = dealer_sim::faults::parse_effects("a test", effect.name, registry()).unwrap();
        let error = refuse(&args[0].args);
        assert_eq!(status, pap::status(error.code), "{}: {text}", effect.name);
        let typed: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(typed["code"], code);
        let waits = head.to_lowercase().contains("retry-after: 2");
        assert_eq!(waits, code == "RATE_LIMITED", "{head}");
        tried += 1;
    }
    assert_eq!(tried, 12);
}
