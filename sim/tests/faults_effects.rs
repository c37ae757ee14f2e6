//! Every effect of the registry: its parameters hold together, it survives any reply, and it changes what it says it
//! changes. What a client sees over a socket is tested where the effects are carried out.

#![allow(clippy::unwrap_used, clippy::panic)]

#[path = "faults/answers.rs"]
mod answers;
#[path = "faults/deliveries.rs"]
mod deliveries;
#[path = "faults/holds.rs"]
mod holds;
#[path = "faults/play.rs"]
mod play;
#[path = "faults/samples.rs"]
mod samples;

use std::collections::BTreeSet;

use dealer_sim::faults::effect::{Arg, Class, DelayFacts, Lawfulness, ParamKind};
use dealer_sim::faults::registry::find;
use dealer_sim::faults::{Apply, Draw, EffectInfo, Slot, catalogue, registry};
use samples::{args, context, literal};

#[test]
fn the_catalogue_is_whole() {
    let names: BTreeSet<_> = registry().iter().map(|effect| effect.name).collect();
    assert_eq!(names.len(), registry().len(), "names are unique");
    assert!(names.len() >= 80, "{} effects", names.len());
    let families: BTreeSet<_> = registry().iter().map(|effect| effect.family).collect();
    let expected = ["business", "conversation", "discovery", "envelope", "http", "mcp", "time", "transport"];
    assert_eq!(families, BTreeSet::from(expected));
    for effect in registry() {
        let is_word = |name: &str| {
            name.starts_with(|letter: char| letter.is_ascii_lowercase())
                && name.bytes().all(|byte| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_')
        };
        assert!(is_word(effect.name), "{}", effect.name);
        assert!(!effect.sees.is_empty() && !effect.sees.ends_with('.'), "{}", effect.name);
        let params: BTreeSet<_> = effect.params.iter().map(|param| param.name).collect();
        assert_eq!(params.len(), effect.params.len(), "{}", effect.name);
        assert!(params.iter().all(|name| is_word(name)), "{}", effect.name);
        assert!(effect.params.iter().all(|param| !param.help.is_empty()), "{}", effect.name);
        assert_eq!(find(effect.name).unwrap().sees, effect.sees);
    }
    assert!(find("no_such_effect").is_none());
}

#[test]
fn defaults_are_of_their_kind_and_range() {
    for effect in registry() {
        for param in effect.params {
            let at = format!("{}({})", effect.name, param.name);
            let Some(default) = param.default else { continue };
            let value = literal(param.kind, default).unwrap_or_else(|| panic!("{at}: {default}"));
            let fits = match (param.kind, &value) {
                (ParamKind::Duration { max_ns }, Arg::Duration(ns)) => *ns <= max_ns,
                (ParamKind::Integer { min, max }, Arg::Integer(number)) => (min..=max).contains(number),
                (ParamKind::Number { min, max }, Arg::Number(number)) => (min..=max).contains(number),
                (ParamKind::Word(words), Arg::Text(word)) => words.contains(&word.as_str()),
                (ParamKind::Text { max }, Arg::Text(text)) => text.len() <= max,
                (ParamKind::Bytes { max }, Arg::Bytes(bytes)) => *bytes <= max,
                _ => false,
            };
            assert!(fits, "{at}: {default}");
        }
    }
}

/// Runs a way of applying on some bytes and gives back what became of them.
fn run(effect: &EffectInfo, text: &[u8], extreme: bool) -> Vec<u8> {
    let (args, mut draw) = (args(effect, extreme), Draw::new(42, "rule", 7, 1));
    let mut out = text.to_vec();
    match effect.apply {
        Apply::Refine(refine) | Apply::RefinePayload(refine) | Apply::RefineTools(refine) => {
            refine(&args, &context(text), &mut draw, &mut out);
        }
        Apply::RefineCard(refine) | Apply::RefineHttp(refine) => {
            _ = refine(&args, &context(text), &mut draw, &mut out);
        }
        Apply::Refuse(refuse) => assert!(!refuse(&args).message.is_empty(), "{}", effect.name),
        Apply::RefuseHttp(refuse) => assert!(refuse(&args).1.status.is_some(), "{}", effect.name),
        Apply::Behave(behave) => _ = behave(&args),
        Apply::Http(http) => _ = http(&args),
        Apply::Deliver(script) | Apply::Lose(script) | Apply::Accept(script) => {
            assert!(!script(&args, &mut draw).steps.is_empty(), "{}", effect.name);
        }
        Apply::Delay(delay) => {
            for (in_flight, age_ns) in [(0, 0), (1, 1), (u64::MAX, u64::MAX)] {
                _ = delay(&args, &mut draw, DelayFacts { in_flight, age_ns });
            }
        }
    }
    out
}

#[test]
fn no_reply_and_no_argument_breaks_an_effect() {
    let mut texts: Vec<Vec<u8>> = samples::all().into_iter().map(|(_, text)| text).collect();
    texts.extend(
        [
            "",
            " ",
            "{",
            "{}",
            "[]",
            "[{}]",
            "null",
            "7",
            "\"a\"",
            "{\"id\":1}",
            "{\"result\":null}",
            "{\"id\":1,\"result\":{\"tools\":[]}}",
            "{\"id\":1,\"result\":{\"tools\":[7],\"isError\":7,\"structuredContent\":null}}",
            "{\"id\":1,\"result\":{\"message\":{\"parts\":[]}}}",
            "{\"id\":1,\"error\":{}}",
            "{\"id\":1,\"error\":{\"data\":[1,null]}}",
            "{\"id\":1,\"result\":{\"message\":{\"parts\":[{\"data\":{\"type\":7}}]}}}",
        ]
        .map(|text| text.as_bytes().to_vec()),
    );
    texts.push(b"\xff\xfe\x00\"\\".to_vec());
    texts.push(vec![b'['; 5_000]);
    for effect in registry() {
        for text in &texts {
            _ = run(effect, text, false);
        }
        _ = run(effect, &texts[0], true);
        _ = run(effect, &texts[0][..texts[0].len() / 2], true);
    }
}

#[test]
fn an_effect_repeats() {
    for effect in registry() {
        for (_, text) in samples::all() {
            assert!(run(effect, &text, false) == run(effect, &text, false), "{}", effect.name);
        }
    }
}

#[test]
fn slots_follow_from_the_way_of_applying() {
    for (name, slot) in [
        ("rate_limited", Slot::Answer),
        ("http_503", Slot::Answer),
        ("card_stale", Slot::Answer),
        ("reset_after_commit", Slot::Delivery),
        ("reset_before_commit", Slot::Delivery),
        ("connection_refused", Slot::Delivery),
        ("latency", Slot::Delay),
        ("card_slow", Slot::Delay),
    ] {
        assert_eq!(find(name).unwrap().apply.slot(), slot, "{name}");
    }
    for effect in registry() {
        let by_ordinal = matches!(effect.apply, Apply::Accept(_));
        let by_load =
            ["token_bucket", "latency_per_load", "degrade", "warm_up", "stall"].contains(&effect.name);
        assert_eq!(effect.class == Class::Arrival, by_ordinal || by_load, "{}", effect.name);
    }
    assert_eq!(find("vehicle_unavailable").unwrap().lawfulness, Lawfulness::Lawful);
    assert_eq!(find("duplicate_members").unwrap().lawfulness, Lawfulness::Breach);
    for (name, breaks) in [
        ("vehicle_unavailable", &[][..]),
        ("duplicate_members", &["1.0", "1.1", "1.2", "1.3", "2.0", "3.0"]),
        ("rate_limited_as_32002", &["2.0", "3.0"]),
        ("error_data_object", &["2.0", "3.0"]),
    ] {
        let catalogue = catalogue::json();
        let mut entries = catalogue["effects"].as_array().unwrap().iter();
        let entry = entries.find(|entry| entry["name"] == name).unwrap();
        assert_eq!(entry["breaks"], serde_json::json!(breaks), "{name}");
    }
}
