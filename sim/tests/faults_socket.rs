//! Every effect of the registry over a real socket, and what a client sees of each. An effect without an assertion fails
//! the test.

#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

#[path = "faults/behaviours.rs"]
mod behaviours;
#[path = "faults/holds.rs"]
#[allow(dead_code)]
mod holds;
#[path = "faults/play.rs"]
mod play;
#[path = "faults/samples.rs"]
#[allow(dead_code)]
mod samples;
mod support;
#[path = "faults/talk.rs"]
mod talk;
#[path = "faults/transport.rs"]
mod transport;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use dealer_sim::faults::{Apply, EffectInfo, registry};
use dealer_sim::protocol::Binding;
use holds::{BUSINESS, BYTES, CARDS, CONVERSATION, ENVELOPE, ERRORS, HTTP, Said, Seen};
use support::Sim;
use talk::{Asked, End, Heard};

/// Two dealers that answer alike, byte for byte: one is asked for faults, its twin is not.
pub(crate) struct Twins {
    faulted: Sim,
    plain: Sim,
    requests: Vec<(&'static str, String)>,
}

const FROZEN: [&str; 4] = ["--clock", "2026-01-01T00:00:00Z", "--vehicles", "60"];

impl Twins {
    fn start() -> Twins {
        let [faulted, plain] = [0, 1].map(|_| Sim::start(&FROZEN));
        let url = plain.url();
        let asked = |body: &str| {
            Asked { url: &url, body: Some(body), fields: &[], keep: false }.heard().body().to_vec()
        };
        let requests = samples::requests(asked);
        Twins { faulted, plain, requests }
    }

    fn request(&self, on: &str) -> &str {
        &self.requests.iter().find(|(name, _)| *name == on).unwrap().1
    }

    /// One request without and with a fault. It has a stable key of its own, so that both give it the same identifiers.
    fn both(&self, fault: &str, on: &str) -> (Heard, Heard) {
        // Each asks for a time of its own: an appointment can be had once.
        let key = format!("{fault}-{on}");
        let hour = 17 + key.len() % 7;
        let body = self.request(on).replace("T18:00", &format!("T{hour}:00"));
        let (key, body) = (("X-Sim-Key", key.as_str()), Some(body.as_str()));
        let before = Asked { url: &self.plain.url(), body, fields: &[key], keep: false }.heard();
        let fields = [key, ("X-Sim-Fault", fault)];
        let after = Asked { url: &self.faulted.url(), body, fields: &fields, keep: false }.heard();
        (before, after)
    }
}

/// Asserts what a client sees of an effect, by its own assertion or by that of its family.
fn check(effect: &'static EffectInfo, twins: &Twins) {
    let name = effect.name;
    match effect.apply {
        Apply::Refuse(_) => {
            let (before, after) = twins.both(name, "information");
            assert_eq!(before.code(), "");
            assert_eq!((after.code(), after.status()), (name.to_uppercase(), 200));
        }
        Apply::RefuseHttp(_) => {
            let (_, after) = twins.both(name, "information");
            let expected = match name {
                "rate_limited_http" => ("RATE_LIMITED", 429, "2"),
                "internal_error_http" => ("INTERNAL_ERROR", 500, ""),
                _ => panic!("no assertion"),
            };
            assert_eq!(
                (after.code().as_str(), after.status(), after.field("retry-after").as_str()),
                expected
            );
        }
        Apply::Refine(_) | Apply::RefinePayload(_) => refined(name, twins),
        // None of these touches A2A; `doors/faults.rs` has them.
        Apply::RefineHttp(_) | Apply::RefineTools(_) => panic!("no assertion"),
        Apply::RefineCard(_) => {
            let url = twins.faulted.first["card"].as_str().unwrap();
            let ask = |fields| Asked { url, body: None, fields, keep: false }.heard();
            let (before, after) = (ask(&[]), ask(&[("X-Sim-Fault", name)]));
            let holds = CARDS.iter().find(|(known, _)| *known == name).expect("no assertion").1;
            assert!(!sure(|| holds(&before.json(), &said(&before))), "it holds of a card without the fault");
            assert!(holds(&after.json(), &said(&after)), "{:.600}", after.text());
            assert!(after.field("x-sim-fault-applied").contains(name));
        }
        Apply::Http(_) => over_http(name, twins),
        Apply::Behave(_) => behaviours::check(name),
        Apply::Deliver(_) | Apply::Lose(_) | Apply::Accept(_) => {}
        Apply::Delay(_) => behaviours::check_delay(name),
    }
}

/// Whether something holds; what it looks for need not be there at all.
fn sure(holds: impl Fn() -> bool) -> bool {
    catch_unwind(AssertUnwindSafe(holds)).unwrap_or(false)
}

fn refined(name: &str, twins: &Twins) {
    let see = |on: &str| {
        let (before, after) = twins.both(name, on);
        assert_eq!((before.status(), after.status(), after.end), (200, 200, End::Fin));
        assert!(after.field("x-sim-fault-applied").contains(name));
        (before.body().to_vec(), after.body().to_vec())
    };
    let seen = |on: &str| {
        let (before, after) = see(on);
        (Seen::of(name, &before, &before), Seen::of(name, &before, &after))
    };
    if let Some((_, on, holds)) = BUSINESS.iter().find(|(known, ..)| *known == name) {
        let (without, with) = seen(on);
        assert!(!sure(|| holds(without.data_before(), without.data())), "it holds without the fault");
        assert!(holds(with.data_before(), with.data()), "{}", with.after);
    } else if let Some((_, holds)) = CONVERSATION.iter().find(|(known, _)| *known == name) {
        let (without, with) = seen("detail");
        assert!(!sure(|| holds(without.message())) && holds(with.message()), "{}", with.after);
    } else if let Some((_, holds)) = ENVELOPE.iter().find(|(known, _)| *known == name) {
        let (without, with) = seen("detail");
        assert!(!sure(|| holds(&without)) && holds(&with), "{}", with.after);
    } else if let Some((_, holds)) = ERRORS.iter().find(|(known, _)| *known == name) {
        for on in ["error", "detail"] {
            let (_, with) = seen(on);
            assert!(with.error().is_object() && holds(&with), "on {on}: {}", with.after);
        }
    } else {
        let (_, holds) = BYTES.iter().find(|(known, _)| *known == name).expect("no assertion");
        let (before, after) = see("detail");
        assert!(before != after && holds(&before, &after), "{:.600}", String::from_utf8_lossy(&after));
    }
}

/// What a socket heard, in the form of the table.
fn said(heard: &Heard) -> Said {
    let is_reply = heard.body().starts_with(b"{\"jsonrpc\"");
    Said {
        status: heard.status(),
        fields: heard.fields(),
        page: (!is_reply).then(|| heard.body().to_vec()),
        close: heard.field("connection") == "close" && heard.end == End::Fin,
        commit: false,
    }
}

fn over_http(name: &str, twins: &Twins) {
    let (_, status, holds) = HTTP.iter().find(|(known, ..)| *known == name).expect("no assertion");
    let url = twins.faulted.url();
    let mut lead: serde_json::Value = serde_json::from_str(twins.request("lead")).unwrap();
    let payload = &mut lead["params"]["message"]["parts"][0]["data"];
    payload["customer"]["last_name"] = name.into();
    payload.as_object_mut().unwrap().remove("appointment");
    let body = lead.to_string();
    let fields = [("X-Sim-Fault", name)];
    // The connection would stay open: whoever closes it is the dealer.
    let heard = Asked { url: &url, body: Some(&body), fields: &fields, keep: true }.heard();
    let stored = behaviours::has_lead(&twins.faulted, name);
    let said = Said { commit: stored && heard.status() >= 400, ..said(&heard) };
    assert_eq!(said.status, *status, "{:.600}", heard.text());
    assert!(holds(&said), "{said:?}");
    assert_eq!(
        stored,
        said.page.is_none() || name == "http_504",
        "the work is done where the reply is the dealer's"
    );
    assert_eq!(heard.end == End::Fin, said.field("connection") == "close");
    assert!(heard.field("x-sim-fault-applied").contains(name));
}

/// Runs a check of every effect chosen, many at once since most of them wait, and tells of all that fail.
fn walk(
    at_once: usize,
    chosen: impl Fn(&EffectInfo) -> bool,
    check: impl Fn(&'static EffectInfo) + Sync,
) -> usize {
    let all: Vec<_> = registry().iter().copied().filter(|effect| chosen(effect)).collect();
    let (next, failed) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
    std::thread::scope(|scope| {
        for _ in 0..at_once {
            scope.spawn(|| {
                while let Some(effect) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                    if catch_unwind(AssertUnwindSafe(|| check(effect))).is_err() {
                        failed.lock().unwrap().push(effect.name);
                    }
                }
            });
        }
    });
    let failed = failed.into_inner().unwrap();
    assert!(failed.is_empty(), "of {} effects these failed, each as told above: {failed:?}", all.len());
    all.len()
}

fn is_delivery(effect: &EffectInfo) -> bool {
    matches!(effect.apply, Apply::Deliver(_) | Apply::Lose(_) | Apply::Accept(_))
}

#[test]
fn what_is_said_is_seen_as_the_effect_says() {
    let twins = Twins::start();
    let is_said = |effect: &EffectInfo| !is_delivery(effect) && effect.bindings.has(Binding::A2a);
    let checked = walk(12, is_said, |effect| check(effect, &twins));
    assert!(checked > 150, "{checked}");
}

#[test]
fn how_it_is_delivered_is_seen_as_the_script_says() {
    let twins = transport::Twins::start();
    let checked = walk(24, is_delivery, |effect| transport::check(effect, &twins));
    assert!(checked > 35, "{checked}");
}

#[test]
fn connections_are_touched_as_they_are_accepted() {
    let accepted = |effect: &EffectInfo| matches!(effect.apply, Apply::Accept(_));
    assert!(walk(8, accepted, transport::check_accepted) >= 5);
}

#[test]
fn the_catalogue_names_at_least_80_effects() {
    let run = |arguments: &[&str]| {
        let output =
            std::process::Command::new(env!("CARGO_BIN_EXE_dealer-sim")).args(arguments).output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    };
    let listed = run(&["faults", "list"]);
    let named = registry().iter().filter(|effect| {
        listed.lines().any(|line| line.split_once(" (").is_some_and(|(name, _)| name == effect.name))
    });
    assert_eq!(named.count(), registry().len());
    assert!(registry().len() >= 80, "{}", registry().len());
    let catalogue: serde_json::Value =
        serde_json::from_str(&run(&["faults", "list", "--format", "json"])).unwrap();
    assert_eq!(catalogue["effects"].as_array().unwrap().len(), registry().len());
}
