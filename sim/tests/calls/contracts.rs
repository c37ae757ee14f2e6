//! What the contracts before 2.0 say, from their published schemas and pages, written down here a second time: nothing is
//! read off the code's own table.

use std::path::Path;

use super::*;

const OF_1_X: [&str; 4] = ["1.0", "1.1", "1.2", "1.3"];
const STEMS: [&str; 5] =
    ["dealer-information", "inventory-facets", "inventory-search", "vehicle-detail", "lead-submit"];

fn named(name: &str) -> Contract {
    name.parse().unwrap()
}

fn under(name: &str) -> Dealer {
    dealer().contract(named(name)).build().unwrap()
}

/// The reply to a call that carries no header at all.
fn told(dealer: &Dealer, stem: &str, payload: &Value) -> Value {
    let media_type = format!("application/vnd.autoagent.{stem}-request+json");
    ask(dealer, &[], &envelope(payload, &media_type).to_string()).0
}

fn payload(reply: &Value) -> &Value {
    let part = &reply["result"]["message"]["parts"][0]["data"];
    assert!(part.is_object(), "{reply}");
    part
}

/// The places that a refusal lists.
fn places(reply: &Value) -> Vec<&str> {
    let errors = reply["error"]["data"]["details"]["errors"].as_array();
    errors.into_iter().flatten().filter_map(|error| error["instanceLocation"].as_str()).collect()
}

fn lead(source_agent: Value, in_consent: Option<Value>) -> Value {
    let mut lead = json!({
        "type": "lead.submit.request",
        "customer": { "first_name": "Anna", "last_name": "Lee", "email": "anna@example.com" },
        "consent": { "granted_at": "2026-01-01T00:00:00Z", "allowed_channels": ["email"], "consent_text": "I agree.",
                     "scope": ["lead_submission"] },
        "source_agent": source_agent,
    });
    if let Some(agent) = in_consent {
        lead["consent"]["source_agent"] = agent;
    }
    lead
}

#[test]
fn the_card_names_its_contract() {
    let rows = [
        ("1.0", "https://autoagentprotocol.org/extensions/a2a-automotive-retail/v1.0", "v1.0", None),
        ("1.1", "https://autoagentprotocol.org/extensions/aap/v1.1", "v1.1", Some(true)),
        ("1.2", "https://autoagentprotocol.org/extensions/aap/v1.2", "v1.2", None),
        ("1.3", "https://autoagentprotocol.org/extensions/aap/v1.3", "v1.3", None),
    ];
    for (name, uri, version, required) in rows {
        let dealer = under(name);
        let card: Value = serde_json::from_slice(&dealer.world().first().scene().papers.card().body).unwrap();
        let extensions = card["capabilities"]["extensions"].as_array().unwrap();
        assert_eq!(extensions.len(), 1, "{card}");
        let entry = &extensions[0];
        assert_eq!(entry["uri"], uri);
        assert_eq!(entry.get("required").and_then(Value::as_bool), required, "{name}");
        assert_eq!(entry["params"]["version"], format!("{name}.0"));
        let urls = &entry["params"]["skills"]["inventory.vehicle"];
        let base = format!("https://autoagentprotocol.org/{version}/schemas/vehicle-detail");
        assert_eq!(urls["request_schema"], format!("{base}-request.schema.json"));
        assert_eq!(urls["response_schema"], format!("{base}-response.schema.json"));
        // Search capabilities and further links came with 3.0.
        assert_eq!(entry["params"].get("search"), None);
        let interface = &card["supportedInterfaces"][0];
        assert_eq!(
            (&interface["protocolBinding"], &interface["protocolVersion"]),
            (&json!("JSONRPC"), &json!("1.0"))
        );
    }
}

#[test]
fn headers_are_overlooked_unless_the_endpoint_is_told_otherwise() {
    let body = search(&json!({ "type": "inventory.search.request" })).to_string();
    let of_3_0 = "https://autoagentprotocol.org/extensions/aap/v3.0";
    let requests: [&[(&str, &str)]; 5] = [
        &[],
        &[("a2a-version", "0.3")],
        &[("a2a-version", ""), ("a2a-extensions", "")],
        &[("a2a-version", "1.0"), ("a2a-extensions", of_3_0)],
        &[("a2a-version", "1.0"), ("a2a-version", "9"), ("a2a-extensions", "urn:x")],
    ];
    for name in OF_1_X {
        let dealer = under(name);
        for headers in requests {
            let (reply, activated) = ask(&dealer, headers, &body);
            assert!(reply.get("result").is_some() && !activated, "{name} {headers:?}: {reply}");
        }
        let own = named(name).extension_uri;
        let (reply, activated) = ask(&dealer, &[("a2a-version", "1.0"), ("a2a-extensions", own)], &body);
        assert!(reply.get("result").is_some() && !activated, "{name}: {reply}");
    }
    let strict = dealer().contract(named("1.2")).headers(HeaderMode::Strict).build().unwrap();
    assert_eq!(code(&ask(&strict, &[], &body).0), -32009);
    assert_eq!(code(&ask(&strict, &[("a2a-version", "1.0"), ("a2a-extensions", of_3_0)], &body).0), -32008);
    let of_1_2 = "https://autoagentprotocol.org/extensions/aap/v1.2";
    let (reply, activated) = ask(&strict, &[("a2a-version", "1.0"), ("a2a-extensions", of_1_2)], &body);
    assert!(reply.get("result").is_some() && activated, "{reply}");
    let pinned = dealer().contract(named("1.2")).headers(HeaderMode::Pinned).build().unwrap();
    assert_eq!(code(&ask(&pinned, &[], &body).0), 0);
    assert_eq!(code(&ask(&pinned, &[("a2a-version", "0.3")], &body).0), -32009);
}

/// What a2a-sdk for Python sends: every number of the payload as a double, its own header for the version, none for
/// extensions, a configuration of its own.
#[test]
fn requests_of_the_official_clients_are_served_without_extension_headers() {
    for name in OF_1_X {
        let dealer = under(name);
        let body = json!({
            "jsonrpc": "2.0", "id": "5b5ef2b6-6b9b-4f0e-9c52-6b8f3c1f6a01", "method": "SendMessage",
            "params": {
                "message": {
                    "messageId": "0d7c2f0e5d8c4b1c8d2a", "role": "ROLE_USER", "contextId": "",
                    "parts": [{
                        "data": {
                            "type": "inventory.search.request", "filters": { "year_min": 1999.0 },
                            "pagination": { "skip": 0.0, "limit": 2.0 },
                            "sort": { "field": "price", "order": "asc" },
                        },
                        "mediaType": "application/vnd.autoagent.inventory-search-request+json",
                    }],
                },
                "configuration": {
                    "acceptedOutputModes": ["application/vnd.autoagent.inventory-search-response+json"],
                    "returnImmediately": true,
                },
            },
        });
        for headers in [&[("a2a-version", "1.0")][..], &[]] {
            let (reply, _) = ask(&dealer, headers, &body.to_string());
            let data = &payload(&reply)["data"];
            assert_eq!(
                (&data["limit"], data["vehicles"].as_array().unwrap().len()),
                (&json!(2), 2),
                "{reply}"
            );
        }
    }
}

#[test]
fn the_typed_error_is_all_of_the_data() {
    for name in OF_1_X {
        let dealer = dealer().contract(named(name)).skills(&[Skill::InventorySearch]).build().unwrap();
        let filters = json!({ "year_min": "2020", "zip": "94103" });
        let request = json!({ "type": "inventory.search.request", "filters": filters });
        let reply = told(&dealer, "inventory-search", &request);
        let data = reply["error"]["data"].as_object().unwrap();
        // error.schema.json: closed, and without an @type.
        let members: Vec<&str> = data.keys().map(String::as_str).collect();
        let mut expected = vec!["code", "created_at", "details", "error_id", "message", "retryable", "type"];
        expected.sort_unstable();
        let mut members = members;
        members.sort_unstable();
        assert_eq!(members, expected);
        assert_eq!(data["type"], "aap.error");
        assert_eq!((code(&reply), &data["code"]), (-32602, &json!("SCHEMA_VALIDATION_FAILED")));
        assert_eq!(data["retryable"], false);
        assert_eq!(places(&reply), ["/filters/year_min", "/filters/zip"]);
        let reply = told(&dealer, "lead-submit", &json!({ "type": "lead.submit.request" }));
        assert_eq!((code(&reply), &reply["error"]["data"]["code"]), (-32601, &json!("UNSUPPORTED_SKILL")));
        // What A2A itself refuses is as A2A has it: an array, and no entry of AAP's.
        let body = json!({ "jsonrpc": "2.0", "id": 1, "method": "GetTask", "params": {} }).to_string();
        let reply = ask(&dealer, &[], &body).0;
        assert_eq!(
            (code(&reply), &reply["error"]["data"][0]["domain"]),
            (-32004, &json!("a2a-protocol.org"))
        );
    }
}

#[test]
fn errors_have_the_numbers_of_the_1_x_pages() {
    for name in OF_1_X {
        let limited = dealer().contract(named(name)).rate_limit("1/m".parse().unwrap()).build().unwrap();
        let request = json!({ "type": "dealer.information.request" });
        assert_eq!(code(&told(&limited, "dealer-information", &request)), 0);
        let reply = told(&limited, "dealer-information", &request);
        let data = &reply["error"]["data"];
        assert_eq!(
            (code(&reply), &data["code"], &data["retryable"]),
            (-32002, &json!("RATE_LIMITED"), &json!(true))
        );
        assert_eq!(data["details"]["retry_after_ms"], 60_000);
        let dealer = under(name);
        let request = json!({ "type": "inventory.vehicle.request", "stock": "nobody's" });
        let reply = told(&dealer, "vehicle-detail", &request);
        assert_eq!((code(&reply), &reply["error"]["data"]["code"]), (-32000, &json!("VEHICLE_NOT_FOUND")));
    }
}

#[test]
fn each_release_knows_its_filters_and_sorts() {
    let all: &[&str] = &["1.0", "1.1", "1.2", "1.3", "2.0", "3.0"];
    let from_1_2: &[&str] = &["1.2", "1.3", "2.0", "3.0"];
    let rows = [
        ("/filters/rooftops", json!({ "filters": { "rooftops": ["x"] } }), all),
        ("/filters/price_max", json!({ "filters": { "price_max": 1.0 } }), all),
        ("/filters/vehicle_type", json!({ "filters": { "vehicle_type": ["car"] } }), from_1_2),
        ("/filters/displacement_cc_min", json!({ "filters": { "displacement_cc_min": 1 } }), from_1_2),
        ("/filters/displacement_cc_max", json!({ "filters": { "displacement_cc_max": 1 } }), from_1_2),
        ("/filters/electric_range_mi_min", json!({ "filters": { "electric_range_mi_min": 1 } }), from_1_2),
        ("/filters/electric_range_mi_max", json!({ "filters": { "electric_range_mi_max": 1 } }), from_1_2),
        ("/filters/dc_fast_charge", json!({ "filters": { "dc_fast_charge": true } }), from_1_2),
        ("/filters/charge_port", json!({ "filters": { "charge_port": ["ccs"] } }), from_1_2),
        ("/filters/status", json!({ "filters": { "status": ["pending"] } }), &["3.0"]),
        ("/filters/zip", json!({ "filters": { "zip": "94103" } }), &[]),
        ("/sort/field", json!({ "sort": { "field": "offered_price", "order": "asc" } }), &["1.0"]),
        ("/sort/field", json!({ "sort": { "field": "updated_at", "order": "asc" } }), all),
    ];
    for name in all {
        let dealer = dealer().contract(named(name)).headers(HeaderMode::Pinned).build().unwrap();
        for (place, part, known) in &rows {
            let mut request = json!({ "type": "inventory.search.request" });
            request.as_object_mut().unwrap().extend(part.as_object().unwrap().clone());
            let reply = told(&dealer, "inventory-search", &request);
            assert_eq!(reply.get("result").is_some(), known.contains(name), "{name} {part}: {reply}");
            if !known.contains(name) {
                assert!(reply.to_string().contains(&format!("\"instanceLocation\":\"{place}\"")), "{reply}");
            }
        }
    }
}

#[test]
fn the_agent_is_a_text_in_1_0_and_an_object_after() {
    let object = json!({ "name": "shopper", "agent_card_url": "https://shopper.example/card.json" });
    let text = json!("shopper");
    let dealer = under("1.0");
    let reply = told(&dealer, "lead-submit", &lead(text.clone(), Some(text.clone())));
    assert_eq!(payload(&reply)["data"]["status"], "received");
    let refused = |lead: &Value| told(&dealer, "lead-submit", lead);
    let reply = refused(&lead(text.clone(), None));
    assert_eq!(reply["error"]["data"]["code"], "INVALID_CONSENT");
    assert_eq!(places(&reply), ["/consent"]);
    let reply = refused(&lead(object.clone(), Some(text.clone())));
    assert_eq!((code(&reply), places(&reply)), (-32602, vec!["/source_agent"]));
    assert_eq!(code(&refused(&lead(json!(""), Some(json!(""))))), -32602);
    for name in ["1.1", "1.2", "1.3"] {
        let dealer = under(name);
        let refused = |lead: &Value| told(&dealer, "lead-submit", lead);
        let reply = told(&dealer, "lead-submit", &lead(object.clone(), None));
        assert_eq!(payload(&reply)["data"]["status"], "received", "{name}");
        let reply = refused(&lead(text.clone(), None));
        assert_eq!((code(&reply), places(&reply)), (-32602, vec!["/source_agent"]), "{name}");
        let reply = refused(&lead(object.clone(), Some(text.clone())));
        assert_eq!(places(&reply), ["/consent/source_agent"], "{name}");
    }
}

#[test]
fn vehicles_of_a_lead_are_open_and_known_members_are_checked() {
    let interest = |name: &str, vehicle: Value| {
        let agent = if name == "1.0" { json!("shopper") } else { json!({ "name": "shopper" }) };
        let mut lead = lead(agent, (name == "1.0").then(|| json!("shopper")));
        lead["vehicle_of_interest"] = vehicle;
        let dealer = under(name);
        let reply = told(&dealer, "lead-submit", &lead);
        reply.get("result").is_some()
    };
    // Each member with a value that breaks its rule: refused where it is known, overlooked where it is not.
    let rows: [(Value, &[&str]); 6] = [
        (json!({ "zip": "9410" }), &["1.0"]),
        (json!({ "offered_price": -1 }), &["1.0"]),
        (json!({ "vehicle_type": "boat" }), &["1.2", "1.3"]),
        (json!({ "other_attributes": { "x": null } }), &["1.2", "1.3"]),
        (json!({ "fees": [{ "name": " ", "amount": 1 }] }), &["1.3"]),
        (json!({ "electric_range_mi": "far" }), &["1.0", "1.1", "1.2", "1.3"]),
    ];
    for name in OF_1_X {
        for (vehicle, known) in &rows {
            assert_eq!(interest(name, vehicle.clone()), !known.contains(&name), "{name} {vehicle}");
        }
        assert!(interest(name, json!({ "zip": "94103-1234", "offered_price": 1, "vehicle_type": "car" })));
    }
}

/// Every member name of a listing of this dealer.
fn members_shown(dealer: &Dealer) -> std::collections::BTreeSet<String> {
    let request = json!({ "type": "inventory.search.request", "pagination": { "limit": 100 } });
    let reply = told(dealer, "inventory-search", &request);
    let vehicles = payload(&reply)["data"]["vehicles"].as_array().unwrap();
    assert!(vehicles.len() >= 50, "{}", vehicles.len());
    let mut names = std::collections::BTreeSet::new();
    for vehicle in vehicles {
        let vin = &vehicle["vin"];
        names.extend(vehicle.as_object().unwrap().keys().cloned());
        if vin.is_string() {
            let reply =
                told(dealer, "vehicle-detail", &json!({ "type": "inventory.vehicle.request", "vin": vin }));
            names.extend(payload(&reply)["data"].as_object().unwrap().keys().cloned());
        }
    }
    names
}

#[test]
fn listings_show_what_the_release_has_words_for() {
    let of_classes = [
        "vehicle_type",
        "displacement_cc",
        "battery_kwh",
        "motor_power_hp",
        "dc_fast_charge",
        "charge_port",
        "other_attributes",
    ];
    for name in OF_1_X {
        let shown = members_shown(&under(name));
        for member in ["vin", "price", "electric_range_mi", "status", "updated_at", "dealer_id", "features"] {
            assert!(shown.contains(member), "{name} lacks {member}");
        }
        for member in of_classes {
            assert_eq!(shown.contains(member), ["1.2", "1.3"].contains(&name), "{name} {member}");
        }
        assert_eq!(shown.contains("fees"), name == "1.3", "{name}");
        assert!(!shown.contains("offered_price") && !shown.contains("zip"), "no request names a ZIP code");
    }
    assert_eq!(members_shown(&under("1.3")), members_shown(&under("3.0")));
}

#[test]
fn facets_and_the_profile_are_closed() {
    let later = [
        "dc_fast_charge",
        "charge_ports",
        "vehicle_types",
        "displacement_cc_range",
        "electric_range_mi_range",
    ];
    for name in OF_1_X {
        let dealer = under(name);
        let reply = told(&dealer, "inventory-facets", &json!({ "type": "inventory.facets.request" }));
        let facets = payload(&reply)["data"].as_object().unwrap();
        for key in ["makes", "years", "fuels", "statuses", "price_range", "year_range"] {
            assert!(facets.contains_key(key), "{name} lacks {key}");
        }
        for key in later {
            assert_eq!(facets.contains_key(key), ["1.2", "1.3"].contains(&name), "{name} {key}");
        }
        let reply = told(&dealer, "dealer-information", &json!({ "type": "dealer.information.request" }));
        let rooftops = payload(&reply)["data"]["rooftops"].as_array().unwrap();
        assert_eq!(rooftops.iter().any(|rooftop| rooftop.get("fees").is_some()), name == "1.3", "{name}");
    }
}

#[test]
fn every_reply_keeps_the_published_schema_of_its_contract_and_names_the_conversation() {
    for name in OF_1_X {
        let dealer = under(name);
        let agent = if name == "1.0" { json!("shopper") } else { json!({ "name": "shopper" }) };
        let requests = [
            json!({ "type": "dealer.information.request" }),
            json!({ "type": "inventory.facets.request" }),
            json!({ "type": "inventory.search.request", "pagination": { "limit": 60 } }),
            json!({ "type": "inventory.vehicle.request" }),
            lead(agent, (name == "1.0").then(|| json!("shopper"))),
        ];
        let mut stock = Value::Null;
        for (stem, mut request) in STEMS.into_iter().zip(requests) {
            if stem == "vehicle-detail" {
                request["stock"] = stock.clone();
            }
            let reply = told(&dealer, stem, &request);
            let path = format!("../data/schemas/aap/{name}/{stem}-response.schema.json");
            let schema = std::fs::read(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap();
            let schema = serde_json::from_slice(&schema).unwrap();
            let validator = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
            let said = payload(&reply);
            let faults: Vec<_> = validator.iter_errors(said).map(|error| error.to_string()).collect();
            assert!(faults.is_empty(), "{name} {stem}: {faults:?}");
            if stem == "inventory-search" {
                stock = said["data"]["vehicles"][0]["stock"].clone();
            }
            // A2A 1.0, 3.4.1: a contextId that a dealer makes must come with the reply.
            assert!(reply["result"]["message"]["contextId"].as_str().is_some_and(|id| !id.is_empty()));
        }
    }
}

#[test]
fn an_unknown_contract_is_told_the_known_ones() {
    let error = "1.4".parse::<Contract>().unwrap_err().to_string();
    assert_eq!(error, "unknown contract \"1.4\"; the contracts are 1.0, 1.1, 1.2, 1.3, 2.0 and 3.0");
}
