//! What each rewriting effect does to a reply: for every one a sample and what must hold of it afterwards.

use dealer_sim::faults::effect::ParamKind;
use dealer_sim::faults::registry::find;
use dealer_sim::faults::{Apply, Draw, registry};
use serde_json::{Value, json};

use super::holds::{BUSINESS, BYTES, CONVERSATION, ENVELOPE, ERRORS, Seen};
use super::samples::{all, args, context, request, sample, with};
use dealer_sim::protocol::schema::{Direction, payload_schema};
use dealer_sim::protocol::{Contract, Skill};

/// The reply after an effect with its default arguments.
fn refine(name: &str, text: &[u8]) -> Vec<u8> {
    let effect = find(name).unwrap();
    let asked = request(Skill::InventorySearch, &json!({}));
    let mut out = text.to_vec();
    match effect.apply {
        Apply::Refine(refine) | Apply::RefinePayload(refine) => {
            refine(&args(effect, false), &context(asked.as_bytes()), &mut Draw::new(1, "r", 2, 3), &mut out);
        }
        _ => panic!("{name} does not refine"),
    }
    out
}

/// A sample before and after an effect.
fn seen(name: &str, on: &str) -> Seen {
    let before = sample(on);
    Seen::of(name, &before, &refine(name, &before))
}

#[test]
fn business_effects_bend_what_they_name() {
    for (name, on, holds) in BUSINESS {
        let seen = seen(name, on);
        assert!(holds(seen.data_before(), seen.data()), "{name}: {}", seen.after);
        // An error has no stock to bend.
        assert_eq!(refine(name, &sample("error")), sample("error"), "{name}");
        // Without an envelope, as PAP has it, the same becomes of it.
        let bare: Value = serde_json::from_slice(&sample(on)).unwrap();
        let bare = &bare["result"]["message"]["parts"][0]["data"];
        let after: Value = serde_json::from_slice(&refine(name, bare.to_string().as_bytes())).unwrap();
        assert_eq!(after["type"], bare["type"], "{name}");
        assert!(holds(&bare["data"], &after["data"]), "{name}: {after}");
        // And so it does as the structured content of a tool.
        let result = json!({ "jsonrpc": "2.0", "id": 1, "result": { "structuredContent": bare } });
        let after: Value = serde_json::from_slice(&refine(name, result.to_string().as_bytes())).unwrap();
        assert!(holds(&bare["data"], &after["result"]["structuredContent"]["data"]), "{name}: {after}");
    }
    covered("business", BUSINESS.iter().map(|(name, ..)| *name));
}

/// Every rewriting effect of a family is among `names`.
fn covered<'a>(family: &str, names: impl Iterator<Item = &'a str> + Clone) {
    for effect in registry().iter().filter(|effect| effect.family == family) {
        if matches!(effect.apply, Apply::Refine(_) | Apply::RefinePayload(_)) {
            assert!(names.clone().any(|name| name == effect.name), "{} has no test", effect.name);
        }
    }
}

#[test]
fn conversation_effects_bend_what_they_name() {
    for (name, holds) in CONVERSATION {
        let seen = seen(name, "detail");
        assert!(holds(seen.message()), "{name}: {}", seen.message());
        assert_eq!(refine(name, &sample("error")), sample("error"), "{name}");
    }
    covered("conversation", CONVERSATION.iter().map(|(name, _)| *name));
}

#[test]
fn envelope_effects_bend_what_they_name() {
    for (name, holds) in ENVELOPE {
        let seen = seen(name, "detail");
        assert!(holds(&seen), "{name}: {}", seen.after);
    }
    for (name, holds) in ERRORS {
        for on in ["error", "detail"] {
            let seen = seen(name, on);
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
    let rewrites = |apply| matches!(apply, Apply::Refine(_) | Apply::RefinePayload(_));
    for effect in registry().iter().filter(|effect| rewrites(effect.apply)) {
        let is_error = ERRORS.iter().any(|(name, _)| *name == effect.name);
        for on in successes {
            let after = refine(effect.name, &sample(on));
            // Deep nesting is more than this reader takes.
            let Ok(reply) = serde_json::from_slice(&after) else { continue };
            if effect.lawfulness.is_lawful(Contract::V3_0) && !is_error {
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
        assert!(!find(name).unwrap().lawfulness.is_lawful(Contract::V3_0), "{name}");
        let reply = serde_json::from_slice(&refine(name, &sample(on))).unwrap();
        assert_ne!(wrong(&reply), Vec::<String>::new(), "{name}");
    }
}
