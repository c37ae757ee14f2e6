//! What public reports say that MCP servers get wrong, each asked over a socket. The names of the tests say what is right.

use serde_json::{Value, json};

use super::mcp::{VERSION, ask, ask_legacy, call, headers, request, send, url};
use super::support::Sim;

const JSON: (&str, &str) = ("Content-Type", "application/json");

fn sim() -> Sim {
    Sim::start(&["--vehicles", "60"])
}

fn read(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn list() -> Value {
    request("tools/list", json!({}))
}

fn legacy(method: &str, params: Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": "a", "method": method, "params": params })
}

/// git-mcp-server 40, typescript-sdk 654, repomix 833.
#[test]
fn an_error_is_as_valid_by_the_output_schema_as_a_response() {
    let sim = sim();
    let listed = ask(&url(&sim), &list()).1;
    let schema = |name: &str| {
        let tools = listed["result"]["tools"].as_array().unwrap();
        let tool = tools.iter().find(|tool| tool["name"] == name).unwrap();
        jsonschema::validator_for(&tool["outputSchema"]).unwrap()
    };
    let good = json!({ "type": "inventory.search.request", "pagination": { "limit": 2 } });
    for (payload, is_error) in [(json!({ "type": "bad" }), None), (json!({}), None), (good, Some(()))] {
        let is_error = is_error.is_none();
        let result = read(&call(&url(&sim), "inventory.search", &payload))["result"].clone();
        assert_eq!(result.get("isError").is_some_and(|said| *said == true), is_error, "{result}");
        assert_eq!(result["structuredContent"]["type"] == "aap.error", is_error);
        assert!(schema("aap_inventory_search").is_valid(&result["structuredContent"]), "{result}");
        assert_eq!(read(result["content"][0]["text"].as_str().unwrap()), result["structuredContent"]);
    }
}

/// claude-code 88049, mcpx 28.
#[test]
fn every_schema_is_an_object_at_its_root_without_composition_or_reference() {
    let sim = sim();
    let listed = ask(&url(&sim), &list()).1;
    let tools = listed["result"]["tools"].as_array().unwrap();
    assert_eq!(tools.len(), 5);
    for tool in tools {
        for name in ["inputSchema", "outputSchema"] {
            assert_eq!(tool[name]["type"], "object", "{tool}");
            assert!(
                ["anyOf", "oneOf", "allOf", "$ref"].iter().all(|keyword| tool[name].get(keyword).is_none())
            );
        }
        assert!(!tool.to_string().contains("\"$ref\""), "{tool}");
        jsonschema::validator_for(&tool["inputSchema"]).unwrap();
    }
    // What the schema leaves out is enforced all the same.
    let nothing = json!({ "type": "inventory.vehicle.request" });
    assert!(call(&url(&sim), "inventory.vehicle", &nothing).contains("MISSING_REQUIRED_FIELD"));
}

/// rust-sdk 822, modelcontextprotocol 1398, 1439 and 3370.
#[test]
fn pages_and_names_of_others_are_refused_and_no_one_else_is() {
    let flags = [
        "--vehicles",
        "60",
        "--origins",
        "https://chat.example",
        "--public-url",
        "https://dealer.example.test",
    ];
    let sim = Sim::start(&flags);
    let nameless = Sim::start(&["--vehicles", "60"]);
    let url = url(&nameless);
    let own = format!("http://{}/mcp", listening(&sim));
    let body = list();
    let with = |url: &str, name: &'static str, value: &str| {
        let mut fields = headers(&body);
        fields.push((name, value));
        send("POST", url, &fields, &body.to_string())
    };
    for (name, value, status) in [
        ("Origin", "https://evil.example", 403),
        ("Origin", "null", 403),
        ("Origin", "https://chat.example", 200),
        ("Origin", "http://localhost:6274", 200),
        ("Origin", "https://dealer.example.test", 200),
        ("Host", "evil.example", 403),
        ("Host", "localhost:80", 200),
        ("Host", "dealer.example.test", 200),
    ] {
        let (got, head, text) = with(&own, name, value);
        assert_eq!(got, status, "{name}: {value}: {text}");
        let shared = head.to_lowercase().contains(&format!("access-control-allow-origin: {value}"));
        assert_eq!(shared, name == "Origin" && status == 200, "{name}: {value}: {head}");
        if status == 403 {
            assert!(read(&text)["error"]["message"].as_str().unwrap().contains(value), "{text}");
        }
    }
    assert_eq!(with(&url, "Host", "dealer.example.test").0, 403, "nobody told this one its name");
    assert_eq!(ask(&url, &body).0, 200);
    // A browser asks first.
    let fields = [("Origin", "https://chat.example"), ("Access-Control-Request-Headers", "mcp-method")];
    let (status, head, _) = send("OPTIONS", &own, &fields, "");
    assert_eq!(status, 204);
    assert!(head.to_lowercase().contains("access-control-allow-headers: content-type"), "{head}");
    assert_eq!(send("OPTIONS", &own, &[("Origin", "https://evil.example")], "").0, 403);
}

/// The address listened on, which `url` does not show with `--public-url`.
fn listening(sim: &Sim) -> String {
    sim.first["listen"].as_str().unwrap().to_owned()
}

/// Citadel 45, open-liberty 35727, docs-mcp-server 349.
#[test]
fn any_accept_that_takes_json_gets_json() {
    let sim = sim();
    let body = list();
    let mut fields: Vec<_> = headers(&body).into_iter().filter(|(name, _)| *name != "Accept").collect();
    let (status, head, _) = send("POST", &url(&sim), &fields, &body.to_string());
    assert!(status == 200 && head.to_lowercase().contains("content-type: application/json"), "{head}");
    for (accept, status) in [
        ("application/json", 200),
        ("*/*", 200),
        ("application/*;q=0.1", 200),
        ("text/event-stream, application/json", 200),
        ("text/html", 406),
        ("application/json;q=0, */*;q=0", 406),
    ] {
        fields.push(("Accept", accept));
        assert_eq!(send("POST", &url(&sim), &fields, &body.to_string()).0, status, "{accept}");
        fields.pop();
    }
    let plain = [("Content-Type", "text/plain")];
    assert_eq!(send("POST", &url(&sim), &plain, &body.to_string()).0, 415);
}

/// python-sdk 732, litellm 23688, cua 883.
#[test]
fn a_slash_at_the_end_is_answered_and_not_redirected() {
    let sim = sim();
    let dealer =
        read(&send("GET", &sim.admin("/fixtures"), &[], "").2)["dealer_id"].as_str().map(str::to_owned);
    let mut places = vec![url(&sim), format!("{}/", url(&sim))];
    places.extend(dealer.map(|id| url(&sim).replace("/mcp", &format!("/d/{id}/mcp"))));
    for place in places {
        assert_eq!(ask(&place, &list()).0, 200, "{place}");
    }
}

/// mcp-ts-core 293, relaticle 451, obsidian-web-mcp 18.
#[test]
fn a_server_without_sign_in_says_nothing_of_it() {
    let sim = sim();
    for path in [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-authorization-server",
    ] {
        assert_eq!(send("GET", &url(&sim).replace("/mcp", path), &[], "").0, 404, "{path}");
    }
    for method in ["GET", "DELETE", "PUT"] {
        let (status, head, _) = send(method, &url(&sim), &[("Accept", "text/event-stream")], "");
        assert!(status == 405 && head.to_lowercase().contains("allow: post"), "{method}: {head}");
    }
}

/// Wazuh-MCP-Server 121.
#[test]
fn a_version_in_the_header_alone_does_not_make_a_request_an_old_one() {
    let sim = sim();
    let bare = legacy("tools/list", json!({}));
    for (body, code) in [(bare, -32602), (list(), 0)] {
        let fields = [JSON, ("MCP-Protocol-Version", VERSION), ("Mcp-Method", "tools/list")];
        let (status, _, text) = send("POST", &url(&sim), &fields, &body.to_string());
        assert_eq!(
            (status, read(&text)["error"]["code"].as_i64().unwrap_or(0)),
            (if code == 0 { 200 } else { 400 }, code)
        );
    }
    // Nor one in the body alone.
    let (status, _, text) =
        send("POST", &url(&sim), &[JSON, ("Mcp-Method", "tools/list")], &list().to_string());
    assert_eq!((status, &read(&text)["error"]["code"]), (400, &json!(-32020)));
}

/// trac-mcp 49.
#[test]
fn each_era_is_answered_in_its_own_form() {
    let sim = sim();
    let members = |result: &Value| {
        let of_modern = ["resultType", "ttlMs", "cacheScope", "_meta"];
        of_modern.map(|name| result.get(name).is_some())
    };
    let modern = ask(&url(&sim), &list()).1["result"].clone();
    assert_eq!(members(&modern), [true; 4], "{modern}");
    assert_eq!((&modern["resultType"], &modern["cacheScope"]), (&json!("complete"), &json!("public")));
    let old = ask_legacy(&url(&sim), &legacy("tools/list", json!({}))).1["result"].clone();
    assert_eq!(members(&old), [false; 4], "{old}");
    assert_eq!(old["tools"], modern["tools"]);
    let payload =
        json!({ "name": "aap_dealer_information", "arguments": { "type": "dealer.information.request" } });
    let modern = ask(&url(&sim), &request("tools/call", payload.clone())).1["result"].clone();
    assert_eq!(members(&modern), [true, false, false, true]);
    let old = ask_legacy(&url(&sim), &legacy("tools/call", payload)).1["result"].clone();
    assert_eq!(members(&old), [false; 4]);
    assert_eq!(old["structuredContent"], modern["structuredContent"]);
    let discovered = ask(&url(&sim), &request("server/discover", json!({}))).1["result"].clone();
    assert_eq!(members(&discovered), [true; 4], "{discovered}");
    assert_eq!(discovered["supportedVersions"], json!([VERSION, "2025-11-25"]));
    let opened = ask_legacy(&url(&sim), &legacy("initialize", json!({ "protocolVersion": "2025-06-18" }))).1;
    assert_eq!(opened["result"]["protocolVersion"], "2025-06-18");
    assert_eq!(ask_legacy(&url(&sim), &legacy("ping", json!({}))).1["result"], json!({}));
    let told = json!({ "jsonrpc": "2.0", "method": "notifications/initialized" }).to_string();
    let (status, head, body) = send("POST", &url(&sim), &[JSON], &told);
    assert_eq!((status, body.as_str()), (202, ""));
    assert!(!head.to_lowercase().contains("content-type"), "{head}");
    // What belongs to one era is no method of the other.
    for method in ["initialize", "ping", "logging/setLevel", "resources/list"] {
        let (status, reply) = ask(&url(&sim), &request(method, json!({})));
        assert_eq!((status, &reply["error"]["code"]), (404, &json!(-32601)), "{method}");
    }
}

/// csharp-sdk 1799, ggcode 2557.
#[test]
fn an_unserved_version_is_refused_in_the_form_of_json_rpc() {
    let sim = sim();
    let mut body = list();
    body["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = "1900-01-01".into();
    let fields = [JSON, ("MCP-Protocol-Version", "1900-01-01"), ("Mcp-Method", "tools/list")];
    for body in [body, legacy("tools/list", json!({}))] {
        let (status, _, text) = send("POST", &url(&sim), &fields, &body.to_string());
        let reply = read(&text);
        assert_eq!((status, &reply["id"]), (400, &body["id"]), "{text}");
        assert_eq!(reply["error"]["code"], -32022);
        let data = json!({ "supported": [VERSION, "2025-11-25"], "requested": "1900-01-01" });
        assert_eq!(reply["error"]["data"], data);
    }
    // What a header says must be what the body says.
    for (name, value) in
        [("MCP-Protocol-Version", "2025-11-25"), ("Mcp-Method", "tools/call"), ("Mcp-Method", "Tools/List")]
    {
        let body = list();
        let mut fields = headers(&body);
        fields.retain(|(known, _)| *known != name);
        fields.push((name, value));
        let (status, _, text) = send("POST", &url(&sim), &fields, &body.to_string());
        assert_eq!((status, &read(&text)["error"]["code"]), (400, &json!(-32020)), "{name}: {value}");
    }
}

/// python-sdk 3557 and 1561, LEANN 384.
#[test]
fn what_is_no_request_is_told_so_by_its_own_number() {
    let sim = sim();
    let deep = format!("{}1{}", "[".repeat(200), "]".repeat(200));
    let repeated = r#"{"jsonrpc":"2.0","id":1,"id":2,"method":"ping"}"#;
    for (body, status, code) in [
        (r#"{"hello":"world"}"#, 400, -32600),
        (r#"{"jsonrpc":"#, 400, -32700),
        ("", 400, -32700),
        (&deep, 400, -32700),
        (repeated, 400, -32700),
        (r#"[{"jsonrpc":"2.0","id":1,"method":"ping"}]"#, 400, -32600),
        (r#"{"jsonrpc":"2.0","id":null,"method":"ping"}"#, 400, -32600),
        (r#"{"jsonrpc":"2.0","id":1.5,"method":"ping"}"#, 400, -32600),
        (r#"{"jsonrpc":"2.0","method":"tools/list"}"#, 400, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"result":{}}"#, 400, -32600),
        (r#"{"jsonrpc":"2.0","id":1,"method":"totally/bogus"}"#, 200, -32601),
        (r#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":[]}"#, 200, -32602),
    ] {
        let (got, _, text) = send("POST", &url(&sim), &[JSON], body);
        let reply = read(&text);
        assert_eq!((got, &reply["error"]["code"]), (status, &json!(code)), "{body}: {text}");
        assert_eq!(reply["jsonrpc"], "2.0");
    }
    let (status, reply) = ask(&url(&sim), &request("totally/bogus", json!({})));
    assert_eq!((status, &reply["error"]["code"], &reply["id"]), (404, &json!(-32601), &json!(7)));
}

/// java-sdk 628, csharp-sdk 1072, logic-pro-mcp 218.
#[test]
fn the_only_page_has_no_next_one_and_a_made_up_cursor_is_refused() {
    let sim = sim();
    let listed = ask(&url(&sim), &list()).1;
    assert!(listed["result"].get("nextCursor").is_none(), "{listed}");
    assert_eq!(ask(&url(&sim), &list()).1, listed, "the same order every time");
    for cursor in ["bogus", ""] {
        let (status, reply) = ask(&url(&sim), &request("tools/list", json!({ "cursor": cursor })));
        assert_eq!((status, &reply["error"]["code"]), (200, &json!(-32602)), "{cursor:?}");
    }
}

/// rmcp's own deviations (arguments that are no object), and tools that are not there.
#[test]
fn a_tool_is_called_by_its_name_with_an_object() {
    let sim = Sim::start(&["--vehicles", "60", "--skills", "inventory.search,inventory.vehicle"]);
    let names: Vec<Value> = ask(&url(&sim), &list()).1["result"]["tools"]
        .as_array()
        .unwrap()
        .iter()
        .map(|tool| tool["name"].clone())
        .collect();
    assert_eq!(names, ["aap_inventory_search", "aap_inventory_vehicle"]);
    for params in [
        json!({ "name": "aap_lead_submit", "arguments": {} }),
        json!({ "name": "nothing" }),
        json!({ "name": "aap_inventory_search", "arguments": [] }),
        json!({ "name": "aap_inventory_search", "arguments": "{}" }),
        json!({}),
    ] {
        let (status, reply) = ask(&url(&sim), &request("tools/call", params.clone()));
        assert_eq!((status, &reply["error"]["code"]), (200, &json!(-32602)), "{params}");
    }
    // Tool and type name one skill.
    let wrong = json!({ "type": "inventory.vehicle.request", "vin": "1FT8W3BN1PEC00001" });
    let reply = read(&call(&url(&sim), "inventory.search", &wrong));
    assert_eq!(reply["result"]["structuredContent"]["code"], "SCHEMA_VALIDATION_FAILED", "{reply}");
    // A name may come encoded, and must then say the same.
    let body = request(
        "tools/call",
        json!({ "name": "aap_inventory_search", "arguments": { "type": "inventory.search.request" } }),
    );
    for (name, status) in [
        ("=?base64?YWFwX2ludmVudG9yeV9zZWFyY2g=?=", 200),
        ("=?base64?YWFwX2xlYWRfc3VibWl0?=", 400),
        ("aap_lead_submit", 400),
    ] {
        let mut fields = headers(&body);
        fields.pop();
        fields.push(("Mcp-Name", name));
        assert_eq!(send("POST", &url(&sim), &fields, &body.to_string()).0, status, "{name}");
    }
}

/// The card must agree with what the server itself says (SEP-2127), and name it by its public URL, whatever `Host` says.
#[test]
fn the_server_card_agrees_with_discovery() {
    let sim = Sim::start(&["--vehicles", "60", "--public-url", "https://dealer.example.test"]);
    let place = format!("http://{}", listening(&sim));
    let discovered = ask(&format!("{place}/mcp"), &request("server/discover", json!({}))).1["result"].clone();
    for path in ["/mcp/server-card", "/.well-known/mcp/server-card.json"] {
        let (status, head, text) = send("GET", &format!("{place}{path}"), &[("Host", "localhost")], "");
        let head = head.to_lowercase();
        assert!(status == 200 && head.contains("content-type: application/mcp-server-card+json"), "{head}");
        assert!(head.contains("access-control-allow-origin: *"), "{head}");
        let card = read(&text);
        let remote = &card["remotes"][0];
        assert_eq!(remote["url"], "https://dealer.example.test/mcp");
        assert_eq!(remote["supportedProtocolVersions"], discovered["supportedVersions"]);
        let server = &discovered["_meta"]["io.modelcontextprotocol/serverInfo"];
        assert_eq!(card["version"], server["version"]);
        assert!(card["name"].as_str().unwrap().starts_with("test.example.dealer/"), "{card}");
    }
    assert_eq!(send("POST", &format!("{place}/mcp/server-card"), &[], "").0, 405);
}
