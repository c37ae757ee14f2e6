//! A plan is read whole or refused whole, every fault at its place; what was read can be written and read again.

#![allow(clippy::unwrap_used)]

#[path = "support/effects.rs"]
mod effects;

use std::fs;
use std::path::PathBuf;

use dealer_sim::document::Pos;
use dealer_sim::faults::call::{Action, parse_action, parse_effects};
use dealer_sim::faults::effect::Class;
use dealer_sim::faults::{Plan, Repro, explain};
use effects::registry;
use proptest::prelude::*;
use serde_json::Value;

fn action(text: &str) -> Result<Action, Vec<(usize, String)>> {
    let place = |offset, width| Pos { line: 1, column: offset + 1, width };
    parse_action(text, registry(), &place)
        .map_err(|faults| faults.iter().map(|fault| (fault.column().unwrap(), fault.to_string())).collect())
}

#[test]
fn effects_are_read_with_their_defaults_and_written_back() {
    for (written, read) in [
        ("vehicle_unavailable", "vehicle_unavailable"),
        ("vehicle_unavailable()", "vehicle_unavailable"),
        ("rate_limited", "rate_limited(retry_after=2s)"),
        ("rate_limited(1500ms)", "rate_limited(retry_after=1500ms)"),
        ("latency(lognormal, p99=0.9s)", "latency(kind=lognormal, p50=80ms, p99=900ms)"),
        (" latency ( kind = \"fixed\" ) ", "latency(kind=fixed, p50=80ms, p99=400ms)"),
        ("fin_in_body(64KiB)", "fin_in_body(at=64KiB)"),
        ("total_lies(by=-3, note=x)", "total_lies(by=-3, share=0.2, note=x)"),
        ("total_lies(share=5%)", "total_lies(by=7, share=0.05, note=\"a \\\"b\\\", c\")"),
        ("total_lies(note=\"é;\\n\")", "total_lies(by=7, share=0.2, note=\"\\u00e9;\\u000a\")"),
        (
            "sequence([ok*2, rate_limited, ok...])",
            "sequence(per=all, [ok*2, rate_limited(retry_after=2s), ok...])",
        ),
        (
            "sequence(per=conversation,[rate_limited(1s)*3...,])",
            "sequence(per=conversation, [rate_limited(retry_after=1s)*3...])",
        ),
    ] {
        let first = action(written).unwrap().to_string();
        assert_eq!(first, read, "{written}");
        assert_eq!(action(&first).unwrap().to_string(), read, "reads back");
    }
}

#[test]
fn every_slip_has_its_column_and_says_what_is_allowed() {
    let cases: &[(&str, &[(usize, &str)])] = &[
        ("", &[(1, "the name of an effect is expected at the end")]),
        ("rate_limted", &[(1, "did you mean `rate_limited`?")]),
        ("rate_limited(retry_aftr=2s)", &[(14, "did you mean `retry_after`?")]),
        ("rate_limited(2)", &[(14, "a number and a unit")]),
        ("rate_limited(2h)", &[(14, "at most 1h")]),
        ("rate_limited(1s, retry_after=2s)", &[(18, "given twice")]),
        ("rate_limited(1s", &[(16, "`,` is expected at the end")]),
        ("rate_limited(1s) x", &[(18, "the end of the effect is expected here, not 'x'")]),
        ("vehicle_unavailable(1)", &[(21, "takes no parameter")]),
        ("latency(lognormal, 80ms)", &[(20, "only the first parameter")]),
        ("latency(lognormel)", &[(9, "did you mean `lognormal`?")]),
        ("fin_in_body", &[(1, "needs the parameter `at`")]),
        ("fin_in_body(at=2MiB)", &[(16, "at most 1MiB")]),
        (
            "total_lies(by=1.5, share=2, note=\"0123456789012345678901\")",
            &[(15, "a whole number from -9 to 9"), (26, "from 0 to 1"), (34, "at most 20 bytes")],
        ),
        ("total_lies(note=\"open)", &[(17, "quotes are not closed")]),
        ("total_lies(note=\"\\q\")", &[(17, "no JSON string")]),
        ("sequence(ok)", &[(10, "`per=…`")]),
        ("sequence(per=key, ok)", &[(19, "`[` is expected")]),
        ("sequence(per=kee, [ok])", &[(14, "did you mean `key`?")]),
        ("sequence([])", &[(12, "an element")]),
        ("sequence([ok..., ok])", &[(18, "nothing can follow")]),
        ("sequence([ok*0])", &[(14, "from 1 to 1000000")]),
        ("sequence([ok.., ok])", &[(15, "`.` is expected")]),
        ("sequence([a, ok, b*2])", &[(11, "no effect `a`"), (18, "no effect `b`")]),
        ("sequence([sequence([ok])])", &[(20, "a value is expected here, not '['")]),
    ];
    for (text, expected) in cases {
        let faults = action(text).map(|action| action.to_string()).expect_err(text);
        assert_eq!(faults.len(), expected.len(), "{text}: {faults:?}");
        for ((column, fault), (place, what)) in faults.iter().zip(*expected) {
            assert_eq!(column, place, "{text}: {fault}");
            assert!(fault.contains(what), "{text}: {fault}");
        }
    }
}

#[test]
fn a_header_holds_several_effects_but_no_sequence() {
    let effects = parse_effects("X-Sim-Fault", "latency; rate_limited(1s)", registry()).unwrap();
    assert_eq!(
        effects.iter().map(|effect| effect.info.name).collect::<Vec<_>>(),
        ["latency", "rate_limited"]
    );
    let error = parse_effects("X-Sim-Fault", "sequence([ok])", registry()).unwrap_err().to_string();
    assert!(error.starts_with("X-Sim-Fault:1:1: a sequence needs a rule"), "{error}");
    let error = parse_effects("X-Sim-Fault", "latency; no_such", registry()).unwrap_err().to_string();
    assert!(error.starts_with("X-Sim-Fault:1:10: there is no effect `no_such`"), "{error}");
}

const STORY: &str = r#"
name: story
description: all members once
rules:
  - id: all
    when:
      dealer: a
      skill: [inventory.search, lead.submit]
      binding: a2a
      conversation: c-1
      client: [c1, c2]
      vin: 1HGCM82633A004352
      nth: 3
      first: 9
      per: conversation
      count: 5
      after: 1.5s
      for: 2m
    effect: rate_limited(1s)
    chance: 20%
    enabled: false
  - { id: plain, effect: stall }
  - { id: steps, when: { skill: lead.submit }, effect: "sequence(per=key, [ok*2, reset_after_commit, ok...])" }
  - { id: card, when: { skill: discovery }, effect: card_missing, chance: 0.25 }
"#;

#[test]
fn a_plan_is_written_back_as_json_and_its_hash_is_of_what_it_does() {
    let plan = Plan::parse("story.yaml", STORY, registry()).unwrap();
    let json = serde_json::to_string_pretty(&plan.to_json()).unwrap();
    let again = Plan::parse("story.json", &json, registry()).unwrap();
    assert_eq!(again.to_json(), plan.to_json());
    assert_eq!((again.name(), again.hash()), ("story", plan.hash()));
    let respaced = STORY.replace("rate_limited(1s)", "rate_limited( retry_after = 1000ms )   # the same");
    assert_eq!(Plan::parse("s", &respaced, registry()).unwrap().hash(), plan.hash());
    let other = STORY.replace("20%", "21%");
    assert_ne!(Plan::parse("s", &other, registry()).unwrap().hash(), plan.hash());
    assert_eq!(format!("{:016x}", plan.hash()), PINNED, "equal on every machine");
    let classes: Vec<Class> = plan.rules().iter().map(|rule| rule.class()).collect();
    assert_eq!(classes, [Class::Arrival, Class::Arrival, Class::PerKey, Class::Independent]);
}

const PINNED: &str = "b4464ee47d8c5473";

#[test]
fn a_bad_plan_is_told_whole() {
    let text = r#"name: bad
rule: []
rules:
  - id: one
    when: { skil: inventory.search, skill: [inventory.serch, lead.submit, lead.submit], nth: 0, per: key }
    effect: rate_limted
    chance: 120%
    enabled: maybe
  - id: two words
    effect: { rate_limited: 2s }
  - effect: "sequence(per=kay, [ok, latency(p50=x)])"
  - id: late
    when: { after: soon, binding: smtp, count: -1, vin: [] }
    effect: stall
  - { id: twice, effect: stall }
  - { id: twice, effect: stall }
  - { id: header, effect: stall }
  - { id: odd, when: { skill: lead.submit }, effect: card_missing }
  - { id: early, when: { vin: X }, effect: connection_refused }
  - { id: mixed, effect: "sequence([connection_refused, stall])" }
  - { id: alone, when: { per: key }, effect: stall }
  - text
  - { id: one, effect: stall }
"#;
    let error = Plan::parse("bad.yaml", text, registry()).unwrap_err();
    let told: Vec<_> = error
        .faults()
        .iter()
        .map(|fault| (fault.line().unwrap(), fault.column().unwrap(), fault.what().to_owned()))
        .collect();
    let expected: &[(usize, usize, &str)] = &[
        (2, 1, "a plan has no member `rule`"),
        (5, 13, "`when` has no member `skil`"),
        (5, 45, "`skill` cannot be `inventory.serch`"),
        (5, 75, "`lead.submit` stands twice"),
        (5, 94, "`nth` is a whole number"),
        (5, 102, "`per` is one word"),
        (6, 13, "there is no effect `rate_limted`"),
        (7, 13, "`chance` is a ratio"),
        (8, 14, "`enabled` is true or false"),
        (9, 9, "`two words` cannot be the id"),
        (10, 13, "an effect is text, this is a mapping"),
        (11, 5, "a rule needs a member `id`"),
        (11, 27, "no `kay`"),
        (11, 49, "`p50` of latency cannot be `x`"),
        (13, 20, "`after` is a duration"),
        (13, 35, "`binding` cannot be `smtp`"),
        (13, 48, "`count` is a whole number"),
        (13, 57, "`vin` is one text or a list"),
        (16, 5, "two rules are called `twice`, the first at `bad.yaml:15`"),
        (17, 11, "`header` cannot be the id"),
        (18, 54, "this touches discovery alone"),
        (19, 44, "no skill, binding, conversation or vin is known"),
        (20, 26, "one sequence cannot touch connections and requests"),
        (21, 31, "`per` is one word"),
        (22, 5, "a rule is a mapping, this is text"),
        (23, 5, "two rules are called `one`, the first at `bad.yaml:4`"),
    ];
    for ((line, column, what), (want_line, want_column, want)) in told.iter().zip(expected) {
        assert!(what.contains(want), "{line}:{column}: {what}, not {want_line}:{want_column}: {want}");
        assert_eq!((line, column), (want_line, want_column), "{what}");
    }
    assert_eq!(told.len(), expected.len(), "{told:#?}");
    let shown = error.to_string();
    assert!(shown.contains("did you mean `inventory.search`?") && shown.contains("did you mean `rules`?"));
}

#[test]
fn several_files_append_and_share_their_ids() {
    let dir = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = dir.path().join(name);
        fs::write(&path, text).unwrap();
        path
    };
    let one = file("one.yaml", "name: one\nrules: [ { id: a, effect: stall } ]\n");
    let two = file("two.json", r#"{"name":"two","rules":[{"id":"b","effect":"stall"}]}"#);
    let plan = Plan::load(&[one.clone(), two.clone()], registry()).unwrap();
    assert_eq!((plan.name(), plan.rules().len()), ("one+two", 2));
    let error = Plan::load(&[one.clone(), two, one], registry()).unwrap_err().to_string();
    assert!(error.contains("one.yaml:2:10: two rules are called `a`"), "{error}");
    assert!(Plan::load(&[dir.path().join("none.yaml")], registry()).unwrap_err().unreadable());
}

#[test]
fn the_limits_hold() {
    let rule = |id: usize| format!("{{\"id\":\"r{id}\",\"effect\":\"stall\"}}");
    let plan = |count: usize| {
        let rules: Vec<String> = (0..count).map(rule).collect();
        Plan::parse("p", &format!("{{\"rules\":[{}]}}", rules.join(",")), registry())
    };
    assert_eq!(plan(1000).unwrap().rules().len(), 1000);
    assert!(plan(1001).unwrap_err().to_string().contains("more than 1000 rules"));
    let deep = format!("rules: {}{}", "[".repeat(40), "]".repeat(40));
    let error = Plan::parse("p", &deep, registry()).unwrap_err().to_string();
    assert!(error.contains("nest deeper than 32 levels"), "{error}");
    let large = format!("rules: []\n#{}", "x".repeat(256 << 10));
    assert!(
        Plan::parse("p", &large, registry()).unwrap_err().to_string().contains("larger than 262144 bytes")
    );
    assert!(Plan::parse("p", "", registry()).unwrap_err().to_string().contains("the file is empty"));
    assert!(action(&"x".repeat(5000)).unwrap_err()[0].1.contains("longer than 4096"));
}

fn root() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn validator() -> jsonschema::Validator {
    let text = fs::read_to_string(root().join("data/schemas/plan.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&text).unwrap();
    jsonschema::draft202012::meta::validate(&schema).unwrap();
    jsonschema::validator_for(&schema).unwrap()
}

#[test]
fn the_schema_says_what_the_reader_says() {
    let validator = validator();
    let story: Value = serde_saphyr::from_str(STORY).unwrap();
    assert!(validator.is_valid(&story), "{:?}", validator.iter_errors(&story).next());
    let written = Plan::parse("p", STORY, registry()).unwrap().to_json();
    assert!(validator.is_valid(&written), "{:?}", validator.iter_errors(&written).next());
    let rule = |members: &str| format!("rules:\n  - {{ id: a, effect: stall{members} }}\n");
    for (text, right) in [
        (rule(""), true),
        (rule(", chance: 0.5%"), true),
        (rule(", chance: 1"), true),
        (rule(", chance: 100%"), true),
        (rule(", chance: 101%"), false),
        (rule(", chance: often"), false),
        (rule(", when: { skill: [discovery] }"), true),
        (rule(", when: { skill: none }"), false),
        (rule(", when: { skill: [lead.submit, lead.submit] }"), false),
        (rule(", when: { nth: 2, per: vin }"), true),
        (rule(", when: { per: vin }"), false),
        (rule(", when: { nth: 0 }"), false),
        (rule(", when: { after: 0, for: 1.5h }"), true),
        (rule(", when: { after: 5 }"), false),
        (rule(", when: { client: [] }"), false),
        (rule(", wen: {}"), false),
        (rule(", enabled: 1"), false),
        ("rules: []\n".to_owned(), true),
        ("name: x\n".to_owned(), false),
        ("rules: [ { id: header, effect: stall } ]\n".to_owned(), false),
        ("rules: [ { id: a } ]\n".to_owned(), false),
    ] {
        let value: Value = serde_saphyr::from_str(&text).unwrap();
        assert_eq!(validator.is_valid(&value), right, "schema: {text}");
        assert_eq!(Plan::parse("p", &text, registry()).is_ok(), right, "reader: {text}");
    }
}

#[test]
fn the_shipped_plans_fit_the_schema() {
    let validator = validator();
    let mut seen = 0;
    for entry in fs::read_dir(root().join("scenarios/faults")).unwrap() {
        let path = entry.unwrap().path();
        let value: Value = serde_saphyr::from_str(&fs::read_to_string(&path).unwrap()).unwrap();
        let fault = validator.iter_errors(&value).next();
        assert!(fault.is_none(), "{}: {fault:?}", path.display());
        seen += 1;
    }
    assert!(seen >= 4);
}

#[test]
fn a_repro_string_reads_back_and_is_explained() {
    let plan = Plan::parse("story.yaml", STORY, registry()).unwrap();
    let text = format!("seed=42;plan={:016x};rule=steps;key=00000000000000ff;attempt=2;nth=2", plan.hash());
    let repro: Repro = text.parse().unwrap();
    assert_eq!(repro.to_string(), text);
    let told = explain(&plan, &repro);
    assert!(told.contains("Step 3 of the sequence, counted per key, is reset_after_commit."), "{told}");
    assert!(told.contains("Class: per-key"), "{told}");
    let ok = text.replace("nth=2", "nth=0");
    assert!(explain(&plan, &ok.parse().unwrap()).ends_with("Nothing happens.\n"));
    let card = text.replace("steps", "card").replace(";nth=2", "");
    assert!(explain(&plan, &card.parse().unwrap()).contains("chance 0.25"));
    let other = text.replace("steps", "gone").replace("plan=", "plan=1");
    let other = other.replacen("plan=1", "plan=", 1).replace("key=00", "key=01");
    assert!(explain(&plan, &other.parse().unwrap()).contains("This plan has no rule gone"));
    for odd in ["magic:a;b%c d", "header", "magic:é"] {
        let escaped: String = odd
            .bytes()
            .map(|b| {
                if b.is_ascii_alphanumeric() || b == b':' {
                    char::from(b).to_string()
                } else {
                    format!("%{b:02X}")
                }
            })
            .collect();
        let repro: Repro = format!("seed=1;plan=0;rule={escaped};key=1;attempt=0").parse().unwrap();
        assert_eq!(repro.trigger.to_string(), odd);
        assert_eq!(repro.to_string().parse::<Repro>().unwrap(), repro);
    }
    let wrong = "seed=x;plan=1;rule=%zz;seed=2;foo".parse::<Repro>().unwrap_err().to_string();
    for part in
        ["seed stands twice", "seed is no number", "key is missing", "rule is missing or broken", "foo"]
    {
        assert!(wrong.contains(part), "{wrong}");
    }
}

proptest! {
    #[test]
    fn no_text_makes_the_grammar_panic(text in "[a-z_(),=\\[\\]*.;\"\\\\ 0-9%é]{0,60}") {
        drop(action(&text));
        drop(parse_effects("h", &text, registry()));
        drop(text.parse::<Repro>());
    }

    #[test]
    fn no_text_makes_the_reader_panic(text in "(?s).{0,200}") {
        drop(Plan::parse("p", &text, registry()));
        drop(Plan::parse_rule("p", &text, registry()));
        drop(text.parse::<Repro>());
    }

    #[test]
    fn a_bent_plan_makes_no_panic(at in 0..STORY.len(), with in "[:,{}\\[\\]\"'&*!|>%@`#\n a-z0-9-]{0,4}") {
        let bent = format!("{}{with}{}", &STORY[..at], &STORY[(at + 1).min(STORY.len())..]);
        if let Ok(plan) = Plan::parse("p", &bent, registry()) {
            let json = plan.to_json().to_string();
            prop_assert_eq!(Plan::parse("j", &json, registry()).unwrap().to_json(), plan.to_json());
        }
    }

    #[test]
    fn what_is_spelled_reads_back(note in any::<String>().prop_filter("bytes", |text| text.len() <= 20), by in -9_i64..=9) {
        let quoted = serde_json::to_string(&note).unwrap();
        let first = action(&format!("total_lies(by={by}, note={quoted})")).unwrap().to_string();
        prop_assert!(first.bytes().all(|b| (0x20..0x7f).contains(&b)), "{}", first);
        prop_assert_eq!(action(&first).unwrap().to_string(), first);
    }
}
