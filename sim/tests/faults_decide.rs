//! What is decided: the same requests are faulted in any order and on any number of threads; counts, precedence, and the
//! admin layer.

#![allow(clippy::unwrap_used)]

#[path = "support/effects.rs"]
mod effects;

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use dealer_sim::faults::call::parse_effects;
use dealer_sim::faults::{Decision, EditError, Engine, Facts, MagicHit, Plan, Repro, explain};
use dealer_sim::protocol::{Binding, Skill};
use dealer_sim::stable::mix;
use effects::registry;

const SECOND: u64 = 1_000_000_000;

fn plan(rules: &str) -> Plan {
    Plan::parse("plan.yaml", &format!("rules:\n{rules}"), registry()).unwrap()
}

fn engine(rules: &str) -> Engine {
    Engine::new(plan(rules), registry(), 0)
}

fn facts() -> Facts<'static> {
    Facts {
        dealer: "d1",
        skill: Some(Skill::InventorySearch),
        path: None,
        binding: Binding::A2a,
        conversation: None,
        client: "agent",
        vin: None,
        key: 7,
        attempt: 0,
        request_effect: None,
        magic: None,
        accepting: false,
    }
}

/// The effects of a decision, answer first, with their triggers.
fn told(decision: &Decision) -> Vec<String> {
    decision.applied().map(|applied| format!("{}={}", applied.trigger, applied.effect.info.name)).collect()
}

fn answers(engine: &Engine, facts: Facts<'_>, count: usize) -> Vec<bool> {
    (0..count).map(|_| engine.decide(42, &facts, 0).answer.is_some()).collect()
}

#[test]
fn chance_0_never_fires_and_chance_p_lands_within_4_sigma() {
    let none = engine("  - { id: never, effect: internal_error, chance: 0 }\n");
    let some = engine("  - { id: some, effect: internal_error, chance: 20% }\n");
    let always = engine("  - { id: always, effect: internal_error, chance: 100% }\n");
    let total = 1_000_000_u64;
    let mut fired = 0_u64;
    for key in 0..total {
        let facts = Facts { key: mix(key), ..facts() };
        assert!(none.decide(42, &facts, 0).is_empty());
        fired += u64::from(some.decide(42, &facts, 0).answer.is_some());
    }
    let (mean, sigma) = (total as f64 * 0.2, (total as f64 * 0.2 * 0.8).sqrt());
    assert!((fired as f64 - mean).abs() < 4.0 * sigma, "{fired}");
    assert!((0..1000).all(|key| always.decide(42, &Facts { key, ..facts() }, 0).answer.is_some()));
    // Attempts of one key are draws of their own: a retry can get through.
    let retries =
        (0..1000).filter(|n| some.decide(42, &Facts { attempt: *n, ..facts() }, 0).answer.is_some());
    assert!((140..260).contains(&retries.count()));
}

/// Independent and per-key triggers of all kinds.
const REPEATABLE: &str = r#"
  - { id: chance, when: { skill: inventory.search }, effect: internal_error, chance: 10% }
  - { id: second, when: { nth: 2, per: key }, effect: rate_limited, chance: 50% }
  - { id: steps, effect: "sequence(per=key, [ok, reset_after_commit, ok...])", chance: 70% }
  - { id: talk, effect: "sequence(per=conversation, [ok*2, vehicle_unavailable, ok...])" }
  - { id: slow, effect: latency(lognormal), chance: 30% }
"#;

/// Each logical request: key, its attempts in order, and the conversation of its own.
fn faulted(order: &[u64], threads: usize) -> BTreeSet<(u64, Vec<String>)> {
    let engine = engine(REPEATABLE);
    let next = AtomicUsize::new(0);
    let found = Mutex::new(BTreeSet::new());
    std::thread::scope(|scope| {
        for _ in 0..threads {
            scope.spawn(|| {
                while let Some(key) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                    let conversation = format!("c-{key}");
                    let mut all = Vec::new();
                    for attempt in 0..4 {
                        let skill = Skill::ALL[*key as usize % 5];
                        let facts = Facts {
                            skill: Some(skill),
                            key: mix(*key),
                            attempt,
                            conversation: Some(&conversation),
                            ..facts()
                        };
                        let decision = engine.decide(42, &facts, 0);
                        // A delay is more than its name: its draw has to be the same too.
                        let drawn = decision.delays.iter().map(|delay| delay.draw.clone().word().to_string());
                        all.extend(told(&decision).into_iter().chain(drawn).chain(["|".to_owned()]));
                    }
                    found.lock().unwrap().insert((*key, all));
                }
            });
        }
    });
    found.into_inner().unwrap()
}

#[test]
fn the_same_requests_are_faulted_in_any_order_and_on_any_number_of_threads() {
    let forwards: Vec<u64> = (0..3000).collect();
    let mut shuffled = forwards.clone();
    shuffled.sort_by_key(|key| mix(*key ^ 99));
    let one = faulted(&forwards, 1);
    for (order, threads) in [(&shuffled, 1), (&forwards, 8), (&shuffled, 8)] {
        let other = faulted(order, threads);
        let differ: Vec<_> = one.symmetric_difference(&other).take(6).collect();
        assert!(differ.is_empty(), "on {threads} threads: {differ:#?}");
    }
    let all: String = one.iter().flat_map(|(_, all)| all).map(String::as_str).collect();
    for rule in ["chance=", "second=", "steps=", "talk=", "slow="] {
        assert!(all.contains(rule), "{rule} never fired");
    }
}

#[test]
fn equal_requests_at_once_are_faulted_as_often_as_one_after_another() {
    // Attempts are handed out and counted in two steps: between them another thread may come.
    let count = |threads: usize| {
        let engine =
            engine("  - { id: a, when: { nth: 2, per: key }, effect: internal_error, chance: 40% }\n");
        let total = AtomicUsize::new(0);
        let next = AtomicUsize::new(0);
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(|| {
                    while next.fetch_add(1, Ordering::Relaxed) < 10_000 {
                        let attempt = next.load(Ordering::Relaxed) as u64;
                        let decision = engine.decide(42, &Facts { attempt, ..facts() }, 0);
                        total.fetch_add(usize::from(decision.answer.is_some()), Ordering::Relaxed);
                    }
                });
            }
        });
        total.into_inner()
    };
    assert_eq!(count(1), count(8));
}

#[test]
fn nth_first_and_count_count() {
    let nth = engine("  - { id: a, when: { nth: 3 }, effect: internal_error }\n");
    assert_eq!(answers(&nth, facts(), 7), [false, false, true, false, false, true, false]);
    let first = engine("  - { id: a, when: { first: 2, per: key }, effect: internal_error }\n");
    assert_eq!(answers(&first, facts(), 4), [true, true, false, false]);
    assert_eq!(answers(&first, Facts { key: 8, ..facts() }, 3), [true, true, false]);
    let count = engine("  - { id: a, when: { count: 2, nth: 2 }, effect: internal_error }\n");
    assert_eq!(answers(&count, facts(), 8), [false, true, false, true, false, false, false, false]);
    let client = engine("  - { id: a, when: { first: 1, per: client }, effect: internal_error }\n");
    assert_eq!(answers(&client, facts(), 2), [true, false]);
    assert_eq!(answers(&client, Facts { client: "other", ..facts() }, 2), [true, false]);
    let vin = engine("  - { id: a, when: { first: 1, per: vin }, effect: internal_error }\n");
    assert_eq!(answers(&vin, Facts { vin: Some("abc"), ..facts() }, 1), [true]);
    assert_eq!(answers(&vin, Facts { vin: Some("ABC"), ..facts() }, 1), [false]);
}

#[test]
fn sequences_go_on_per_conversation_and_end() {
    let rules = "  - { id: a, effect: \"sequence(per=conversation, [ok*2, internal_error, ok...])\" }\n";
    let engine = engine(rules);
    let of = |name: &'static str| Facts { conversation: Some(name), ..facts() };
    assert_eq!(answers(&engine, of("x"), 5), [false, false, true, false, false]);
    assert_eq!(answers(&engine, of("y"), 3), [false, false, true]);
    assert_eq!(answers(&engine, facts(), 3), [false, false, true], "those without one count together");
    let last = super_engine("[ok, internal_error...]");
    assert_eq!(answers(&last, facts(), 4), [false, true, true, true]);
    let ends = super_engine("[internal_error*2]");
    assert_eq!(answers(&ends, facts(), 4), [true, true, false, false]);
}

fn super_engine(list: &str) -> Engine {
    engine(&format!("  - {{ id: a, effect: \"sequence({list})\" }}\n"))
}

#[test]
fn conditions_all_apply() {
    let rules = r#"
  - id: a
    when: { dealer: [d1, d2], skill: lead.submit, binding: a2a, conversation: c, client: agent, vin: abc, after: 10s, for: 5s }
    effect: internal_error
"#;
    let engine = engine(rules);
    let right =
        Facts { skill: Some(Skill::LeadSubmit), conversation: Some("c"), vin: Some("ABC"), ..facts() };
    let hit = |facts: Facts<'_>, now| engine.decide(1, &facts, now).answer.is_some();
    assert!(hit(right, 10 * SECOND) && hit(right, 15 * SECOND - 1));
    assert!(!hit(right, 10 * SECOND - 1) && !hit(right, 15 * SECOND));
    for wrong in [
        Facts { dealer: "d3", ..right },
        Facts { skill: Some(Skill::InventorySearch), ..right },
        Facts { skill: None, path: Some("/.well-known/agent-card.json"), ..right },
        Facts { binding: Binding::Mcp, ..right },
        Facts { conversation: None, ..right },
        Facts { client: "x", ..right },
        Facts { vin: None, ..right },
        Facts { accepting: true, ..right },
    ] {
        assert!(!hit(wrong, 12 * SECOND), "{wrong:?}");
    }
}

#[test]
fn effects_touch_only_what_they_can() {
    let rules = "  - { id: c, effect: card_missing }\n  - { id: r, effect: internal_error }\n  - { id: d, effect: connection_refused }\n  - { id: s, effect: stall }\n";
    let engine = engine(rules);
    let card = Facts { skill: None, path: Some("/card"), ..facts() };
    let connection = Facts { skill: None, accepting: true, ..facts() };
    assert_eq!(told(&engine.decide(1, &facts(), 0)), ["r=internal_error", "s=stall"]);
    assert_eq!(told(&engine.decide(1, &card, 0)), ["c=card_missing", "s=stall"]);
    assert_eq!(told(&engine.decide(1, &connection, 0)), ["d=connection_refused"]);
    // A request that asks for it gets it in place of its reply.
    let asked = Facts { request_effect: Some("connection_refused"), ..facts() };
    assert_eq!(told(&engine.decide(1, &asked, 0))[1], "header=connection_refused");
}

fn magic(effect: &str) -> MagicHit {
    let effects = parse_effects("magic", effect, registry()).unwrap();
    MagicHit { value: "SIM-1".into(), effect: effects[0].clone() }
}

#[test]
fn header_before_magic_before_admin_before_plan_and_delays_add_up() {
    let rules = "  - { id: p1, effect: internal_error }\n  - { id: p2, effect: vehicle_unavailable }\n  - { id: p3, effect: reset_after_commit }\n  - { id: p4, effect: stall }\n";
    let engine = engine(rules);
    let rule = Plan::parse_rule("rule", "{ id: a1, effect: rate_limited }", registry()).unwrap();
    assert_eq!(
        told(&engine.decide(1, &facts(), 0)),
        ["p1=internal_error", "p3=reset_after_commit", "p4=stall"]
    );
    engine.add_rule(rule, None, 0).unwrap();
    let slow = Plan::parse_rule("rule", "{ id: a2, effect: latency }", registry()).unwrap();
    engine.add_rule(slow, None, 0).unwrap();
    let expected = ["a1=rate_limited", "p3=reset_after_commit", "a2=latency", "p4=stall"];
    assert_eq!(told(&engine.decide(1, &facts(), 0)), expected);
    let hit = magic("total_lies(by=3)");
    let with_magic = Facts { magic: Some(&hit), ..facts() };
    assert_eq!(told(&engine.decide(1, &with_magic, 0))[0], "magic:SIM-1=total_lies");
    let both = Facts { request_effect: Some("http_status(503); fin_in_body(9); latency"), ..with_magic };
    let expected = ["header=http_status", "header=fin_in_body", "header=latency", "a2=latency", "p4=stall"];
    let decision = engine.decide(1, &both, 0);
    assert_eq!(told(&decision), expected);
    let draws: BTreeSet<u64> = decision.delays.iter().map(|delay| delay.draw.clone().word()).collect();
    assert_eq!(draws.len(), 3, "each delay has its own draw");
    let said = decision.answer.unwrap().header_value();
    assert!(said.starts_with("header; http_status(status=503, retry_after=0s); seed=1;plan="), "{said}");
}

#[test]
fn a_header_that_cannot_be_read_is_told() {
    let engine = Engine::new(Plan::default(), registry(), 0);
    let asked = |text| Facts { request_effect: Some(text), ..facts() };
    let decision = engine.decide(1, &asked("rate_limted"), 0);
    assert!(decision.unread.as_deref().unwrap().contains("did you mean `rate_limited`?"));
    assert!(!decision.is_empty() && decision.answer.is_none());
    let decision = engine.decide(1, &asked("card_missing"), 0);
    assert!(decision.unread.unwrap().contains("touches discovery alone"));
    assert!(engine.decide(1, &facts(), 0).is_empty());
}

#[test]
fn a_rule_counts_whether_or_not_another_takes_the_slot() {
    let rules = "  - { id: a, when: { first: 2 }, effect: internal_error }\n  - { id: b, effect: \"sequence([rate_limited*3, ok...])\" }\n";
    let engine = engine(rules);
    let seen: Vec<_> = (0..5).map(|_| told(&engine.decide(1, &facts(), 0)).join(" ")).collect();
    assert_eq!(seen, ["a=internal_error", "a=internal_error", "b=rate_limited", "", ""]);
    let fired: Vec<_> = engine.fired().into_iter().map(|(_, fired)| fired).collect();
    assert_eq!(fired, [2, 1]);
}

#[test]
fn editors_change_the_rules_whole_and_do_not_overwrite_each_other() {
    let engine = engine("  - { id: a, when: { first: 1 }, effect: internal_error }\n");
    let rule = |text: &str| Plan::parse_rule("rule", text, registry()).unwrap();
    assert_eq!(answers(&engine, facts(), 2), [true, false]);
    let first = engine.etag();
    let second =
        engine.put(plan("  - { id: a, when: { first: 1 }, effect: rate_limited }\n"), Some(&first), 5);
    let second = second.unwrap();
    assert_eq!(answers(&engine, facts(), 1), [false], "a request of before the plan is not of the plan");
    let hit = |now| engine.decide(1, &facts(), now).answer;
    assert!(hit(5).is_some() && hit(5).is_none(), "counters start anew");
    let stale = engine.put(Plan::default(), Some(&first), 6).unwrap_err();
    assert_eq!(stale, EditError::Stale { is: second });
    assert!(matches!(
        engine.add_rule(rule("{ id: a, effect: stall }"), None, 6),
        Err(EditError::Double { .. })
    ));
    engine
        .add_rule(rule("{ id: b, when: { after: 1s }, effect: vehicle_unavailable }"), Some("*"), SECOND)
        .unwrap();
    assert!(hit(2 * SECOND - 1).is_none(), "the time of an added rule begins when it is added");
    assert!(hit(2 * SECOND).is_some());
    engine.set_enabled("b", false, None).unwrap();
    assert!(hit(3 * SECOND).is_none());
    engine.set_enabled("b", true, None).unwrap();
    assert!(matches!(engine.set_enabled("x", true, None), Err(EditError::Unknown { .. })));
    assert!(matches!(engine.remove_rule("a", None), Err(EditError::OfPlan { .. })));
    let clash = engine.put(plan("  - { id: b, effect: stall }\n"), None, 7).unwrap_err();
    assert_eq!(clash, EditError::Double { id: "b".to_owned() });
    let shown = engine.to_json();
    assert_eq!(shown["admin"][0]["id"], "b");
    assert_eq!(shown["state"]["a"]["class"], "arrival");
    assert_eq!(shown["state"]["b"]["fired"], 1);
    assert_eq!(shown["state"]["b"]["slots"][0], "answer");
    let text = shown["plan"].to_string();
    assert_eq!(Plan::parse("again", &text, registry()).unwrap().hash(), engine.plan().hash());
    engine.remove_rule("b", None).unwrap();
    engine.clear(None, 8).unwrap();
    assert!(engine.decide(1, &facts(), 9).is_empty() && engine.plan().rules().is_empty());
    engine.reset(9);
    assert_eq!(told(&engine.decide(1, &facts(), 9)), ["a=internal_error"], "back to the plan of the start");
    assert_ne!(engine.etag(), first);
}

#[test]
fn a_fault_is_had_again_by_its_repro_string() {
    let engine =
        engine("  - { id: slow, effect: \"latency(lognormal, p50=80ms, p99=900ms)\", chance: 30% }\n");
    let mut seen = 0;
    for key in 0..50 {
        let decision = engine.decide(42, &Facts { key, attempt: 3, ..facts() }, 0);
        let Some(delay) = decision.delays.first() else { continue };
        let header = delay.header_value();
        let repro: Repro = header.rsplit("; ").next().unwrap().parse().unwrap();
        assert_eq!(repro, delay.repro());
        let told = explain(&engine.plan(), &repro);
        assert!(told.contains("it fires.") && told.contains("The delay drawn is "), "{told}");
        seen += 1;
    }
    assert!(seen > 5);
}

#[test]
fn a_decision_is_of_one_plan_whole_while_editors_change_it() {
    let of = |effect: &str| {
        plan(&format!(
            "  - {{ id: {effect}-1, effect: {effect} }}\n  - {{ id: {effect}-2, effect: reset_after_commit }}\n"
        ))
    };
    let (one, two) = (of("internal_error"), of("rate_limited"));
    let engine = Engine::new(one.clone(), registry(), 0);
    let deciding = AtomicUsize::new(4);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                for key in 0..5_000 {
                    let all = told(&engine.decide(1, &Facts { key, ..facts() }, 1));
                    let names: Vec<_> = all.iter().filter_map(|one| one.split(['-', '=']).next()).collect();
                    assert!(names.len() == 2 && names[0] == names[1], "{all:?}");
                }
                deciding.fetch_sub(1, Ordering::Relaxed);
            });
        }
        while deciding.load(Ordering::Relaxed) > 0 {
            engine.put(two.clone(), None, 0).unwrap();
            engine.put(one.clone(), None, 0).unwrap();
        }
    });
}
