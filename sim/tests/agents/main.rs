//! The judge of conduct against agents that call over sockets: a model buyer agent keeps every rule through all kinds of
//! trouble, and a copy of it for each rule, broken in one way, is caught by that rule and by no other.

#![allow(unreachable_pub, clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

mod agent;
mod flaws;
#[path = "../support/mod.rs"]
mod support;
mod wire;

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;
use std::time::Duration;

use dealer_sim::conduct::{RULES, Report, Status};
use dealer_sim::faults::{Apply, Plan, Slot, registry};
use dealer_sim::protocol::Binding;
use dealer_sim::server::limits::Limits;
use dealer_sim::{Dealer, RunningDealer, journal};

use agent::Agent;
use flaws::FLAWS;

const CARD_MAX_AGE: Duration = Duration::from_secs(2);
/// Agents that are on their way at a time.
const HANDS: usize = 64;

/// What goes wrong for each agent, so that it has something to do right.
const TROUBLE: &str = "
rules:
  - { id: searches, when: { dealer: [FIRST], skill: inventory.search }, effect: \"sequence(per=client, [rate_limited(retry_after=600ms), \
status_unknown_in_listing, ok, schema_validation_failed(at=/filters/mileage_max), status_unknown_in_listing...])\" }
  - { id: vehicles, when: { dealer: [FIRST], skill: inventory.vehicle }, effect: \"sequence(per=client, [vehicle_unavailable, \
internal_error*2, ok...])\" }
  - { id: leads, when: { dealer: [FIRST], skill: lead.submit }, effect: \"sequence(per=client, [reset_after_commit, ok...])\" }
  - { id: slow, when: { dealer: [FIRST], skill: dealer.information }, effect: \"latency(fixed, value=400ms)\" }
  - { id: broken, when: { dealer: [SECOND], skill: inventory.facets }, effect: internal_error }
  - { id: old, when: { dealer: [SECOND], skill: inventory.search }, effect: updated_at_stale }
";

/// Two dealers under a plan, in which FIRST and SECOND stand for their ids, and their base URLs.
fn dealers(plan: &str, journal: journal::Limits, redact: bool) -> (RunningDealer, Vec<String>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let limits = Limits { card_max_age_s: CARD_MAX_AGE.as_secs() as u32, ..Limits::default() };
    let builder = || {
        Dealer::builder()
            .seed(7)
            .vehicles(60)
            .dealers(2)
            .limits(limits.clone())
            .journal(journal)
            .redact(redact)
    };
    let ids: Vec<String> =
        builder().build().unwrap().world().sites().iter().map(|site| site.id().to_owned()).collect();
    let plan: Plan = plan.replace("FIRST", &ids[0]).replace("SECOND", &ids[1]).parse().unwrap();
    let dealer = runtime.block_on(builder().faults(plan).start()).unwrap();
    let base = |id: &String| dealer.url_of(id).unwrap().trim_end_matches("/a2a").to_owned();
    let bases = ids.iter().map(base).collect();
    (dealer, bases)
}

fn whole() -> journal::Limits {
    journal::Limits { reply_bytes: 64 << 10, ..journal::Limits::default() }
}

/// Sends agents on their way, a few at a time.
fn send_out(agents: Vec<Agent>, go: impl Fn(&mut Agent) + Sync) {
    let waiting = Mutex::new(agents);
    std::thread::scope(|scope| {
        for _ in 0..HANDS {
            scope.spawn(|| {
                loop {
                    let Some(mut agent) = waiting.lock().unwrap().pop() else { return };
                    go(&mut agent);
                }
            });
        }
    });
}

/// The rules with this status, by client.
fn with(report: &Report, status: Status) -> BTreeMap<&str, BTreeSet<&'static str>> {
    let of = |rules: &[dealer_sim::conduct::RuleReport]| {
        rules.iter().filter(|rule| rule.status == status).map(|rule| rule.rule.id).collect()
    };
    report.clients.iter().map(|client| (client.client.as_str(), of(&client.rules))).collect()
}

/// What a report says of one client.
fn told(report: &Report, client: &str) -> String {
    let mut report = report.clone();
    report.clients.retain(|one| one.client == client);
    report.to_string()
}

#[test]
fn the_model_agent_keeps_every_rule_and_each_broken_one_is_caught_by_its_own() {
    convict(false, &[]);
}

/// The one rule that reads what a lead says in words finds nothing to judge.
#[test]
fn a_journal_without_people_convicts_the_same_agents() {
    convict(true, &["listings.price_used"]);
}

/// Sends the model agent and all broken ones to dealers, of whose conduct all rules but these are to know everything.
fn convict(redact: bool, unseen: &[&str]) {
    let (dealer, bases) = dealers(TROUBLE, whole(), redact);
    let names: BTreeSet<_> = FLAWS.iter().map(|flaw| flaw.rule).collect();
    let rules: BTreeSet<_> = RULES.iter().map(|rule| rule.id).collect();
    assert_eq!(names, rules, "each rule has an agent that breaks it");
    let mut agents = vec![Agent::new("model", None, &bases, CARD_MAX_AGE)];
    agents.extend(FLAWS.iter().map(|flaw| Agent::new(flaw.rule, Some(flaw.rule), &bases, CARD_MAX_AGE)));
    send_out(agents, Agent::shop);

    let report = dealer.conduct();
    let (broken, kept) = (with(&report, Status::Broken), with(&report, Status::Kept));
    let seen: BTreeSet<_> = rules.iter().copied().filter(|rule| !unseen.contains(rule)).collect();
    assert_eq!(kept["model"], seen, "{}", told(&report, "model"));

    let mut wrong = Vec::new();
    println!("| Agent | Rules that catch it |\n|---|---|");
    for flaw in FLAWS.iter().filter(|flaw| !unseen.contains(&flaw.rule)) {
        let expected: BTreeSet<_> = flaw.implies.iter().map(|(rule, _)| *rule).chain([flaw.rule]).collect();
        let caught = &broken[flaw.rule];
        println!("| {} | {} |", flaw.does, caught.iter().copied().collect::<Vec<_>>().join(", "));
        if *caught != expected {
            wrong.push(format!("{} expected {expected:?}\n{}", flaw.does, told(&report, flaw.rule)));
        }
    }
    println!("agents caught: {} / {}", FLAWS.len() - wrong.len(), FLAWS.len());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

/// Every effect of the catalogue but those at accept, where no client is known yet, and those that only take time.
fn effects() -> Vec<&'static str> {
    let touches = |apply: &Apply| apply.slot() != Slot::Delay && !matches!(apply, Apply::Accept(_));
    // The agents speak A2A.
    let of_a2a = registry().iter().filter(|effect| effect.bindings.has(Binding::A2a));
    of_a2a.filter(|effect| touches(&effect.apply)).map(|effect| effect.name).collect()
}

#[test]
fn no_fault_of_a_dealer_is_held_against_the_model_agent() {
    let effects = effects();
    assert!(effects.len() > 100, "{effects:?}");
    // Each agent meets one effect, at the first attempt of every request.
    let rules = effects.iter().map(|name| {
        format!("  - {{ id: {name}, when: {{ client: [{name}] }}, effect: \"sequence(per=key, [{name}, ok...])\" }}\n")
    });
    let plan = format!("rules:\n{}", rules.collect::<String>());
    let (dealer, bases) = dealers(&plan, whole(), false);
    send_out(effects.iter().map(|name| Agent::new(name, None, &bases, CARD_MAX_AGE)).collect(), Agent::visit);
    let report = dealer.conduct();
    let broken = with(&report, Status::Broken);
    let wrong: Vec<_> = broken.iter().filter(|(_, rules)| !rules.is_empty()).collect();
    println!("agents that met a fault and were found to be at fault: {} / {}", wrong.len(), effects.len());
    let texts: Vec<_> = wrong.iter().map(|(client, _)| told(&report, client)).collect();
    assert!(wrong.is_empty(), "{wrong:#?}\n{}", texts.join("\n"));
    // They did call.
    let touched = dealer.journal().all(0).entries;
    let met: BTreeSet<_> =
        touched.iter().filter(|entry| !entry.faults.is_empty()).map(|entry| &entry.client).collect();
    let unmet: Vec<_> = effects.iter().filter(|name| !met.contains(&(**name).to_owned())).collect();
    assert!(unmet.is_empty(), "{unmet:?}");
}

#[test]
fn what_the_journal_could_not_keep_is_unknown_and_never_kept() {
    let small = journal::Limits { entries: 12, ..whole() };
    let (dealer, bases) = dealers("rules: []", small, false);
    let agents = (0..8).map(|n| Agent::new(&format!("agent-{n}"), None, &bases, CARD_MAX_AGE)).collect();
    send_out(agents, Agent::visit);
    let report = dealer.conduct();
    assert!(report.missed > 0 && report.unknown > 0, "{report}");
    for status in [Status::Kept, Status::NotSeen, Status::Broken] {
        let claimed = with(&report, status);
        assert!(claimed.values().all(BTreeSet::is_empty), "{status:?} {claimed:?}\n{report}");
    }
    assert!(report.to_string().contains("Not all is known"), "{report}");
}
