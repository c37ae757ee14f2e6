//! What each rewriting effect does to a reply: for every one a sample and what must hold of it afterwards.

use dealer_sim::faults::effect::{Lawfulness, ParamKind};
use dealer_sim::faults::registry::find;
use dealer_sim::faults::{Apply, Draw, registry};
use dealer_sim::protocol::error::AAP_ERROR_TYPE;
use serde_json::{Value, json};

use super::samples::{ID, all, args, context, request, sample, with};
use dealer_sim::protocol::schema::{Direction, payload_schema};
use dealer_sim::protocol::{Contract, Skill};

/// The reply after an effect with its default arguments.
fn refine(name: &str, text: &[u8]) -> Vec<u8> {
    let effect = find(name).unwrap();
    let asked = request(Skill::InventorySearch, &json!({}));
    let mut out = text.to_vec();
    match effect.apply {
        Apply::Refine(refine) => {
            refine(&args(effect, false), &context(asked.as_bytes()), &mut Draw::new(1, "r", 2, 3), &mut out);
        }
        _ => panic!("{name} does not refine"),
    }
    out
}

/// A reply after an effect, as a value, with what it was before; its id must have kept its letters.
struct Seen {
    before: Value,
    after: Value,
}

impl Seen {
    fn of(name: &str, on: &str) -> Seen {
        let before = sample(on);
        let after = refine(name, &before);
        assert!(String::from_utf8_lossy(&after).contains(&format!("\"id\":{ID}")), "{name}: the id changed");
        Seen {
            before: serde_json::from_slice(&before).unwrap(),
            after: serde_json::from_slice(&after).unwrap_or_else(|error| panic!("{name}: {error}")),
        }
    }

    fn message(&self) -> &Value {
        &self.after["result"]["message"]
    }

    fn part(&self) -> &Value {
        &self.message()["parts"][0]
    }

    fn data(&self) -> &Value {
        &self.part()["data"]["data"]
    }

    fn data_before(&self) -> &Value {
        &self.before["result"]["message"]["parts"][0]["data"]["data"]
    }

    fn error(&self) -> &Value {
        &self.after["error"]
    }

    fn typed(&self) -> Option<&Value> {
        self.error()["data"].as_array()?.iter().find(|entry| entry["@type"] == AAP_ERROR_TYPE)
    }
}

fn absent(value: &Value, name: &str) -> bool {
    value.is_object() && value.get(name).is_none()
}

fn every(data: &Value, holds: impl Fn(&Value) -> bool) -> bool {
    let listed = data["vehicles"].as_array().unwrap();
    !listed.is_empty() && listed.iter().all(holds)
}

#[test]
fn business_effects_bend_what_they_name() {
    type Holds = fn(&Value, &Value) -> bool;
    let table: &[(&str, &str, Holds)] = &[
        ("price_higher_in_detail", "detail", |a, b| b["price"].as_i64() > a["price"].as_i64()),
        ("price_lower_in_search", "search", |a, b| {
            a["vehicles"].as_array().unwrap().iter().zip(b["vehicles"].as_array().unwrap()).all(|(a, b)| {
                b["price"].as_i64() < a["price"].as_i64() || a["price"].is_null() && b["price"].is_null()
            })
        }),
        ("price_missing", "search", |_, b| every(b, |v| absent(v, "price"))),
        ("price_zero", "search", |_, b| every(b, |v| v["price"] == 0)),
        ("price_as_text", "detail", |a, b| b["price"] == format!("${}", a["price"])),
        ("price_with_cents", "detail", |a, b| b["price"].as_f64() == a["price"].as_f64().map(|p| p + 0.75)),
        ("fees_doubled", "detail", |a, b| {
            b["fees"].as_array().unwrap().len() == 2 * a["fees"].as_array().unwrap().len()
        }),
        ("fees_added", "detail", |a, b| {
            b["fees"].as_array().unwrap().len() == a["fees"].as_array().unwrap().len() + 1
                && b["price"].as_i64().unwrap() == a["price"].as_i64().unwrap() + 995
        }),
        ("total_lies", "search", |a, b| b["total"].as_i64().unwrap() == a["total"].as_i64().unwrap() + 7),
        ("total_missing", "search", |_, b| absent(b, "total")),
        ("facets_disagree", "facets", |a, b| {
            b["makes"][0]["count"].as_i64().unwrap() == a["makes"][0]["count"].as_i64().unwrap() + 3
                && a["price_range"] == b["price_range"]
        }),
        ("status_sold_in_listing", "search", |a, b| {
            b["vehicles"][0]["status"] == "sold" && b["vehicles"][1] == a["vehicles"][1]
        }),
        ("status_unknown_in_listing", "detail", |_, b| b["status"] == "reserved"),
        ("status_missing", "search", |_, b| every(b, |v| absent(v, "status"))),
        ("updated_at_stale", "detail", |a, b| {
            let at = |v: &Value| v["updated_at"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
            at(a).as_second() - at(b).as_second() == 30 * 86_400
        }),
        ("updated_at_missing", "search", |_, b| every(b, |v| absent(v, "updated_at"))),
        ("updated_at_without_offset", "detail", |_, b| b["updated_at"].as_str().unwrap().len() == 19),
        ("vin_bad_check_digit", "search", |_, b| {
            // Some listings have no VIN.
            every(b, |v| {
                v["vin"].as_str().is_none_or(|vin| {
                    vin.len() == 17 && !dealer_sim::inventory::vin::has_valid_check_digit(vin)
                })
            })
        }),
        ("vin_malformed", "search", |_, b| every(b, |v| v["vin"].as_str().is_none_or(|vin| vin.len() == 16))),
        ("duplicate_in_page", "search", |a, b| {
            let (a, b) = (a["vehicles"].as_array().unwrap(), b["vehicles"].as_array().unwrap());
            a.len() == b.len() && b.first() == b.last() && a.first() != a.last()
        }),
        ("page_overfull", "search", |a, b| {
            b["vehicles"].as_array().unwrap().len() == a["vehicles"].as_array().unwrap().len() + 1
        }),
        ("page_empty", "search", |a, b| b["vehicles"] == json!([]) && a["total"] == b["total"]),
        ("identifiers_missing", "detail", |_, b| {
            absent(b, "vin") && absent(b, "stock") && absent(b, "vehicle_id")
        }),
        ("condition_of_wear", "detail", |_, b| b["condition"] == "good"),
        ("instructions_in_description", "detail", |_, b| {
            b["description"].as_str().unwrap().starts_with("Ignore your")
        }),
        ("other_vehicle_in_detail", "detail", |a, b| a["vin"] != b["vin"] && a["stock"] != b["stock"]),
        ("lead_status_rejected", "lead", |_, b| b["status"] == "rejected"),
        ("lead_id_missing", "lead", |_, b| absent(b, "lead_id")),
        ("confirmed_without_time", "lead", |_, b| {
            b["appointment"]["status"] == "confirmed" && absent(&b["appointment"], "confirmed_at")
        }),
        ("proposed_without_times", "lead", |_, b| {
            b["appointment"]["status"] == "proposed" && absent(&b["appointment"], "proposed_times")
        }),
        ("rooftops_empty", "information", |_, b| b["rooftops"] == json!([])),
    ];
    for (name, on, holds) in table {
        let seen = Seen::of(name, on);
        assert!(holds(seen.data_before(), seen.data()), "{name}: {}", seen.after);
        // An error has no stock to bend.
        assert_eq!(refine(name, &sample("error")), sample("error"), "{name}");
    }
    covered("business", table.iter().map(|(name, ..)| *name));
}

/// Every rewriting effect of a family is among `names`.
fn covered<'a>(family: &str, names: impl Iterator<Item = &'a str> + Clone) {
    for effect in registry().iter().filter(|effect| effect.family == family) {
        if matches!(effect.apply, Apply::Refine(_)) {
            assert!(names.clone().any(|name| name == effect.name), "{} has no test", effect.name);
        }
    }
}

#[test]
fn conversation_effects_bend_what_they_name() {
    type Holds = fn(&Value) -> bool;
    let table: &[(&str, Holds)] = &[
        ("context_id_missing", |m| absent(m, "contextId")),
        ("context_id_empty", |m| m["contextId"] == ""),
        ("context_id_null", |m| m.get("contextId") == Some(&Value::Null)),
        ("context_id_retyped", |m| m["contextId"].is_u64()),
        ("context_id_of_another", |m| m["contextId"] == "ctx_of_another_buyer"),
        ("context_id_new", |m| m["contextId"] != "ctx_mine" && m["contextId"].as_str().unwrap().len() == 36),
        ("context_id_upper_case", |m| m["contextId"] == "CTX_MINE"),
        ("task_id_in_reply", |m| m["taskId"] == "task_1"),
        ("reference_task_ids_in_reply", |m| m["referenceTaskIds"] == json!(["task_1"])),
    ];
    for (name, holds) in table {
        let seen = Seen::of(name, "detail");
        assert!(holds(seen.message()), "{name}: {}", seen.message());
        assert_eq!(refine(name, &sample("error")), sample("error"), "{name}");
    }
    covered("conversation", table.iter().map(|(name, _)| *name));
}

/// What must hold of a reply, and of its bytes before and after.
type OfReply = fn(&Seen) -> bool;
type OfBytes = fn(&[u8], &[u8]) -> bool;

/// Envelope effects whose reply is still JSON and keeps its id.
const ENVELOPE: &[(&str, OfReply)] = &[
    ("jsonrpc_missing", |s| absent(&s.after, "jsonrpc")),
    ("jsonrpc_wrong", |s| s.after["jsonrpc"] == "1.0"),
    ("result_and_error", |s| s.after["result"].is_object() && s.error()["code"] == -32603),
    ("result_missing", |s| absent(&s.after, "result") && absent(&s.after, "error")),
    ("result_null", |s| s.after.get("result") == Some(&Value::Null)),
    ("error_null", |s| s.after.get("error") == Some(&Value::Null) && s.after["result"].is_object()),
    ("result_flat", |s| s.after["result"] == s.before["result"]["message"]),
    ("task_instead_of_message", |s| {
        let task = &s.after["result"]["task"];
        task["contextId"] == "ctx_mine"
            && task["artifacts"][0]["parts"] == s.before["result"]["message"]["parts"]
            && absent(&s.after["result"], "message")
    }),
    ("dialect_03", |s| {
        let message = &s.after["result"];
        message["kind"] == "message" && message["role"] == "agent" && message["parts"][0]["kind"] == "data"
    }),
    ("role_user", |s| s.message()["role"] == "ROLE_USER"),
    ("role_agent_lower_case", |s| s.message()["role"] == "agent"),
    ("message_id_of_request", |s| s.message()["messageId"] == "m-of-request"),
    ("message_id_repeated", |s| s.message()["messageId"] == "msg_always_the_same"),
    ("message_id_missing", |s| absent(s.message(), "messageId")),
    ("parts_missing", |s| absent(s.message(), "parts")),
    ("parts_empty", |s| s.message()["parts"] == json!([])),
    ("text_part_first", |s| s.part()["text"].is_string() && s.message()["parts"][1]["data"].is_object()),
    ("text_part_last", |s| s.part()["data"].is_object() && s.message()["parts"][1]["text"].is_string()),
    ("payload_as_text", |s| {
        let inner: Value = serde_json::from_str(s.part()["text"].as_str().unwrap()).unwrap();
        inner["data"] == *s.data_before() && absent(s.part(), "data")
    }),
    ("media_type_missing", |s| absent(s.part(), "mediaType")),
    ("media_type_wrong", |s| s.part()["mediaType"] == "application/json"),
    ("response_of_another_skill", |s| {
        s.part()["data"]["type"] == "dealer.information.response"
            && s.part()["mediaType"] == Skill::DealerInformation.response_media_type()
    }),
    ("type_missing", |s| absent(&s.part()["data"], "type")),
    ("payload_missing", |s| absent(&s.part()["data"], "data")),
    ("integers_as_doubles", |s| s.data()["year"].is_f64() && s.data()["price"].is_f64()),
    ("unknown_members", |s| {
        let all = [&s.after, &s.after["result"], s.message(), s.part(), s.data()];
        all.iter().all(|value| value["x_unknown"].is_object())
    }),
    ("null_members", |s| s.message().get("metadata") == Some(&Value::Null)),
];

/// Effects on errors; all of them on a reply that is an error, and on a success.
const ERRORS: &[(&str, OfReply)] = &[
    ("error_data_object", |s| s.error()["data"]["@type"] == AAP_ERROR_TYPE),
    ("error_data_string", |s| s.error()["data"].is_string()),
    ("error_data_absent", |s| absent(s.error(), "data")),
    ("error_data_empty", |s| s.error()["data"] == json!([])),
    ("error_data_without_type", |s| {
        let entries = s.error()["data"].as_array().unwrap();
        entries.len() >= 2 && entries.iter().all(|entry| absent(entry, "@type"))
    }),
    ("error_data_unknown_first", |s| {
        s.error()["data"][0]["@type"] == "type.example.test/vendor.Trace" && s.typed().is_some()
    }),
    ("error_typed_missing", |s| s.typed().is_none() && s.error()["data"][0]["reason"].is_string()),
    ("error_code_text", |s| s.error()["code"].as_str().unwrap().starts_with("-32")),
    ("error_code_vendor", |s| s.error()["code"] == -32_050 && s.typed().is_some()),
    ("error_message_missing", |s| absent(s.error(), "message")),
    ("retryable_flipped", |s| {
        let typed = s.typed().unwrap();
        typed["retryable"] == (typed["code"] != "INTERNAL_ERROR" && typed["code"] != "RATE_LIMITED")
    }),
    ("typed_code_unknown", |s| s.typed().unwrap()["code"] == "DEALER_ON_HOLIDAY"),
    ("rate_limited_as_32002", |s| {
        (s.error()["code"] == -32_002) == (s.typed().unwrap()["code"] == "RATE_LIMITED")
    }),
    ("unsupported_skill_as_32601", |s| {
        (s.error()["code"] == -32_601) == (s.typed().unwrap()["code"] == "UNSUPPORTED_SKILL")
    }),
];

/// Effects that change the id, or after which the reply is no JSON; the test is on the bytes.
const BYTES: &[(&str, OfBytes)] = &[
    ("id_wrong", |_, after| id(after) == json!("another-request")),
    ("id_missing", |_, after| serde_json::from_slice::<Value>(after).unwrap().get("id").is_none()),
    ("id_null", |_, after| id(after).is_null()),
    ("id_retyped", |_, after| id(after).is_string()),
    ("truncated_json", |before, after| before.starts_with(after) && !json_text(after)),
    ("empty_body", |_, after| after.is_empty()),
    ("html_body", |_, after| after.starts_with(b"<!DOCTYPE html>")),
    ("byte_order_mark", |before, after| after.strip_prefix(b"\xef\xbb\xbf") == Some(before)),
    ("invalid_utf8", |_, after| std::str::from_utf8(after).is_err() && after.starts_with(b"{\"x_bytes\"")),
    ("lone_surrogate", |_, after| after.starts_with(b"{\"x_text\":\"\\ud83d\",\"jsonrpc\"")),
    ("duplicate_members", |_, after| {
        let text = std::str::from_utf8(after).unwrap();
        // The last one wins in most parsers: the reply is then as it was.
        text.matches("\"jsonrpc\":").count() == 2 && id(after) != json!("decoy")
    }),
    ("trailing_data", |before, after| after.starts_with(before) && !json_text(after)),
    ("nan_number", |_, after| after.starts_with(b"{\"x_number\":NaN,") && !json_text(after)),
    ("single_quotes", |_, after| after.starts_with(b"{'jsonrpc':'2.0'")),
    ("batch_reply", |_, after| serde_json::from_slice::<Vec<Value>>(after).unwrap().len() == 1),
    ("event_stream_body", |_, after| after.starts_with(b"data: {") && after.ends_with(b"}\n\n")),
    ("huge_reply", |_, after| after.len() == 8 << 20 && json_text(after)),
    ("deep_nesting", |before, after| {
        after.len() == before.len() + 20_012 && after.iter().filter(|byte| **byte == b'[').count() > 10_000
    }),
    ("leading_whitespace", |before, after| {
        after.len() == before.len() + 4096 && after.trim_ascii_start() == before
    }),
    ("escaped_text", |before, after| {
        let value = |text| serde_json::from_slice::<Value>(text).unwrap();
        value(before) == value(after) && !after.windows(4).any(|window| window == b"json")
    }),
];

fn json_text(text: &[u8]) -> bool {
    serde_json::from_slice::<Value>(text).is_ok()
}

fn id(text: &[u8]) -> Value {
    serde_json::from_slice::<Value>(text).unwrap()["id"].clone()
}

#[test]
fn envelope_effects_bend_what_they_name() {
    for (name, holds) in ENVELOPE {
        let seen = Seen::of(name, "detail");
        assert!(holds(&seen), "{name}: {}", seen.after);
    }
    for (name, holds) in ERRORS {
        for on in ["error", "detail"] {
            let seen = Seen::of(name, on);
            assert!(seen.error().is_object() && holds(&seen), "{name} on {on}: {}", seen.after);
        }
        let effect = find(name).unwrap();
        let Apply::Refine(refine) = effect.apply else { panic!("{name}") };
        let mut out = sample("detail");
        refine(&with(effect, "code", "none"), &context(b""), &mut Draw::new(1, "r", 2, 3), &mut out);
        assert_eq!(out, sample("detail"), "{name}: code=none leaves a success alone");
    }
    for (name, holds) in BYTES {
        for (on, before) in all() {
            if on != "card" {
                assert!(holds(&before, &refine(name, &before)), "{name} on {on}");
            }
        }
    }
    let names = ENVELOPE.iter().chain(ERRORS).map(|(name, _)| *name);
    covered("envelope", names.chain(BYTES.iter().map(|(name, _)| *name)));
}

#[test]
fn an_error_that_is_forced_is_a_whole_one() {
    let effect = find("error_data_unknown_first").unwrap();
    let Apply::Refine(refine) = effect.apply else { panic!() };
    let ParamKind::Word(words) = effect.params[0].kind else { panic!() };
    assert_eq!(words.len(), 13);
    for code in words.iter().filter(|code| **code != "none") {
        let mut out = sample("detail");
        refine(&with(effect, "code", code), &context(b""), &mut Draw::new(1, "r", 2, 3), &mut out);
        let reply: Value = serde_json::from_slice(&out).unwrap();
        let typed = reply["error"]["data"].as_array().unwrap().last().unwrap();
        assert_eq!(typed["code"], code.to_uppercase());
        assert_eq!(typed["created_at"], "2026-01-05T12:00:00Z");
        assert_eq!(typed["error_id"].as_str().unwrap().len(), 36);
    }
}

#[test]
fn a_batch_is_bent_reply_by_reply() {
    let one = String::from_utf8(sample("detail")).unwrap();
    let error = String::from_utf8(sample("error")).unwrap();
    let after = refine("context_id_empty", format!("[{one},{error},{one}]").as_bytes());
    let replies: Vec<Value> = serde_json::from_slice(&after).unwrap();
    assert_eq!(replies.len(), 3);
    assert_eq!(replies[0]["result"]["message"]["contextId"], "");
    assert_eq!(replies[2]["result"]["message"]["contextId"], "");
    assert!(String::from_utf8(after).unwrap().contains(&error), "the error kept its bytes");
}

/// What is wrong with a reply that a success became, by the schemas of the contract and A2A's rules for a Message.
fn wrong(reply: &Value) -> Vec<String> {
    let mut wrong = Vec::new();
    if reply["jsonrpc"] != "2.0" || reply.get("error").is_some() {
        wrong.push("envelope".to_owned());
    }
    let message = &reply["result"]["message"];
    let has_text = |name: &str| message[name].as_str().is_some_and(|text| !text.is_empty());
    if !has_text("contextId") || !has_text("messageId") || message["role"] != "ROLE_AGENT" {
        wrong.push("message".to_owned());
    }
    let (payload, media_type) = (&message["parts"][0]["data"], &message["parts"][0]["mediaType"]);
    let of_type = |skill: &Skill| payload["type"] == skill.response_type();
    match Skill::ALL.into_iter().find(of_type).filter(|skill| *media_type == skill.response_media_type()) {
        None => wrong.push("type".to_owned()),
        Some(skill) => {
            let schema = payload_schema(Contract::V3_0, skill, Direction::Response);
            let validator = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
            wrong.extend(validator.iter_errors(payload).map(|error| error.to_string()));
        }
    }
    wrong
}

#[test]
fn lawful_rewriting_keeps_the_contract_and_a_breach_of_its_schemas_shows() {
    let successes = ["search", "detail", "facets", "information", "lead"];
    for effect in registry().iter().filter(|effect| matches!(effect.apply, Apply::Refine(_))) {
        let is_error = ERRORS.iter().any(|(name, _)| *name == effect.name);
        for on in successes {
            let after = refine(effect.name, &sample(on));
            // Deep nesting is more than this reader takes.
            let Ok(reply) = serde_json::from_slice(&after) else { continue };
            if effect.lawfulness == Lawfulness::Lawful && !is_error {
                assert_eq!(wrong(&reply), Vec::<String>::new(), "{} on {on}", effect.name);
            }
        }
    }
    for (name, on) in [
        ("price_as_text", "detail"),
        ("price_with_cents", "search"),
        ("fees_doubled", "detail"),
        ("total_missing", "search"),
        ("status_sold_in_listing", "search"),
        ("status_unknown_in_listing", "detail"),
        ("status_missing", "search"),
        ("updated_at_without_offset", "detail"),
        ("vin_malformed", "detail"),
        ("condition_of_wear", "detail"),
        ("lead_id_missing", "lead"),
        ("rooftops_empty", "information"),
        ("context_id_missing", "search"),
        ("response_of_another_skill", "search"),
        ("payload_missing", "search"),
    ] {
        assert_eq!(find(name).unwrap().lawfulness, Lawfulness::Breach, "{name}");
        let reply = serde_json::from_slice(&refine(name, &sample(on))).unwrap();
        assert_ne!(wrong(&reply), Vec::<String>::new(), "{name}");
    }
}
