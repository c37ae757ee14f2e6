//! Every plan that is shipped, in force on a real dealer while buyers shop: each of its rules fires, and the buyers see what
//! its story tells.

#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

#[path = "faults/behaviours.rs"]
#[allow(dead_code)]
mod behaviours;
#[path = "faults/samples.rs"]
#[allow(dead_code)]
mod samples;
mod support;
#[path = "faults/talk.rs"]
#[allow(dead_code)]
mod talk;

use std::collections::BTreeSet;
use std::path::Path;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Sim, call, http, lead};
use talk::{Asked, End, Heard};

const FROZEN: [&str; 4] = ["--clock", "2026-01-01T00:00:00Z", "--vehicles", "60"];
/// Conversations at least, and for how long at most until every rule has fired.
const CONVERSATIONS: usize = 10;
const PATIENCE: Duration = Duration::from_secs(60);
/// A plan takes force anew after so long, if not every rule has fired: on a busy machine the first buyer comes when a window
/// that began with the simulator is over.
const ANEW: Duration = Duration::from_secs(5);

/// What a buyer got, and for what.
struct Seen {
    step: &'static str,
    conversation: usize,
    heard: Heard,
    /// The vehicle that the step was about, as the list had it.
    listed: Value,
}

impl Seen {
    fn message(&self) -> Value {
        self.heard.json()["result"]["message"].clone()
    }
}

/// A plan with its times a hundredth as long: what begins after a minute is not waited for.
fn shortened(file: &Path) -> String {
    let text = std::fs::read_to_string(file).unwrap();
    let in_windows = |line: &str| {
        let mut line = line.to_owned();
        if line.trim_start().starts_with("when:") {
            for (long, short) in [("10s", "100ms"), ("30s", "300ms"), ("60s", "600ms"), ("2m", "1200ms")] {
                for member in ["after", "for"] {
                    line = line.replace(&format!("{member}: {long}"), &format!("{member}: {short}"));
                }
            }
        }
        line + "\n"
    };
    text.lines().map(in_windows).collect()
}

/// One buyer's conversation: card, dealer, facets, two pages, two details and a lead that is sent twice.
fn shop(sim: &Sim, conversation: usize, seen: &mut Vec<Seen>) {
    let url = sim.url();
    let card = sim.first["card"].as_str().unwrap();
    let (buyer, context) = (format!("Buyer {conversation}"), format!("c-{conversation}"));
    let mut note = |step, listed: &Value, heard: Heard| {
        let data = heard.data();
        seen.push(Seen { step, conversation, heard, listed: listed.clone() });
        data
    };
    let ask = |stem: &str, payload: &Value| {
        let mut body = call(stem, payload);
        body["params"]["message"]["contextId"] = json!(context);
        Asked { url: &url, body: Some(&body.to_string()), fields: &[], keep: false }.heard()
    };
    let nothing = Value::Null;
    note("card", &nothing, Asked { url: card, body: None, fields: &[], keep: false }.heard());
    note("dealer", &nothing, ask("dealer-information", &json!({ "type": "dealer.information.request" })));
    let filters = json!({ "price_max": 200_000 + conversation });
    note(
        "facets",
        &nothing,
        ask("inventory-facets", &json!({ "type": "inventory.facets.request", "filters": filters })),
    );
    let page = |skip: usize| {
        json!({ "type": "inventory.search.request", "filters": filters,
        "pagination": { "skip": skip, "limit": 12 }, "sort": { "field": "price", "order": "asc" } })
    };
    let first = note("search", &nothing, ask("inventory-search", &page(0)));
    note("page 2", &nothing, ask("inventory-search", &page(12)));
    let vehicles: Vec<&Value> =
        first["vehicles"].as_array().into_iter().flatten().filter(|v| v["vin"].is_string()).collect();
    for step in 0..2 {
        let Some(vehicle) = vehicles.get((2 * conversation + step) % vehicles.len().max(1)) else { break };
        let asked = json!({ "type": "inventory.vehicle.request", "vin": vehicle["vin"] });
        note("detail", vehicle, ask("vehicle-detail", &asked));
    }
    let mut lead = lead(&buyer);
    lead["idempotency_key"] = json!(format!("key-{conversation}"));
    lead["appointment"] = json!({ "appointment_type": "sales", "appointment_at": "2026-01-07T18:00:00Z" });
    for _ in 0..2 {
        note("lead", &nothing, ask("lead-submit", &lead));
    }
}

/// Shops under a plan until each of its rules has fired; what the buyers saw.
fn under(name: &str) -> (Sim, Vec<Seen>) {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios/faults").join(format!("{name}.yaml"));
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("plan.yaml");
    std::fs::write(&plan, shortened(&file)).unwrap();
    let sim = Sim::start(&[&FROZEN[..], &["--faults", plan.to_str().unwrap()]].concat());
    let (begun, mut all) = (Instant::now(), Vec::new());
    let (mut in_force, mut fired) = (Instant::now(), BTreeSet::new());
    let mut round = 0;
    loop {
        // Buyers come side by side: some rules depend on the load.
        let seen = std::thread::scope(|scope| {
            let buyers: Vec<_> = (0..CONVERSATIONS)
                .map(|buyer| {
                    let (sim, conversation) = (&sim, round * CONVERSATIONS + buyer);
                    scope.spawn(move || {
                        let mut seen = Vec::new();
                        shop(sim, conversation, &mut seen);
                        seen
                    })
                })
                .collect();
            buyers.into_iter().flat_map(|buyer| buyer.join().unwrap()).collect::<Vec<_>>()
        });
        all.extend(seen);
        round += 1;
        let state: Value = serde_json::from_str(&http("GET", &sim.admin("/faults"), &[], "").2).unwrap();
        let rules = state["state"].as_object().unwrap();
        fired.extend(rules.iter().filter(|(_, rule)| rule["fired"] != 0).map(|(id, _)| id.clone()));
        let quiet: Vec<&String> = rules.keys().filter(|id| !fired.contains(*id)).collect();
        if quiet.is_empty() {
            return (sim, all);
        }
        assert!(begun.elapsed() < PATIENCE, "{name}: rules that never fired: {quiet:?}");
        if in_force.elapsed() > ANEW {
            let (status, _, said) =
                http("PUT", &sim.admin("/faults"), &[], &std::fs::read_to_string(&plan).unwrap());
            assert_eq!(status, 200, "{said}");
            in_force = Instant::now();
        }
    }
}

/// What the buyers of a plan have to see, of all that they saw.
type Story = fn(&Sim, &[Seen]) -> bool;

fn any(seen: &[Seen], step: &str, is: impl Fn(&Seen) -> bool) -> bool {
    seen.iter().any(|one| one.step == step && is(one))
}

/// The two attempts of a lead, of each conversation.
fn leads(seen: &[Seen]) -> Vec<(&Seen, &Seen)> {
    let leads: Vec<&Seen> = seen.iter().filter(|one| one.step == "lead").collect();
    leads.chunks(2).map(|pair| (pair[0], pair[1])).collect()
}

fn stored(sim: &Sim, lead: &Seen) -> bool {
    behaviours::has_lead(sim, &format!("Buyer {}", lead.conversation))
}

const STORIES: &[(&str, Story)] = &[
    ("amnesiac-dealer", |_, seen| {
        let renamed = any(seen, "search", |one| {
            let context = one.message()["contextId"].clone();
            context.is_string() && context != format!("c-{}", one.conversation)
        });
        let refused = any(seen, "detail", |one| one.heard.json()["error"]["code"] == -32_602);
        let twice = |(a, b): &(&Seen, &Seen)| {
            let [a, b] = [a, b].map(|lead| lead.heard.data()["lead_id"].clone());
            a.is_string() && b.is_string() && a != b
        };
        renamed && refused && leads(seen).iter().any(twice)
    }),
    ("bad-gateway", |_, seen| {
        let down = |one: &Seen| one.heard.status() == 502 && one.heard.text().contains("<html>");
        any(seen, "search", down)
            && any(seen, "search", |one| one.heard.field("content-type").starts_with("text/html"))
    }),
    ("bait-and-switch", |_, seen| {
        let dearer =
            |one: &Seen| one.heard.data()["price"].as_i64() > one.listed["price"].as_i64().map(|p| p + 1_495);
        let whispered =
            any(seen, "detail", |one| one.heard.text().contains("already reserved for your customer"));
        let moved = any(seen, "lead", |one| one.heard.data()["appointment"]["status"] == "proposed");
        any(seen, "detail", dearer) && whispered && moved
    }),
    ("black-monday", |_, seen| {
        let throttled = any(seen, "search", |one| one.heard.code() == "RATE_LIMITED");
        throttled && seen.iter().any(|one| one.heard.end == End::Reset && one.heard.bytes.is_empty())
    }),
    ("card-chaos", |_, seen| {
        let cards: Vec<u16> =
            seen.iter().filter(|one| one.step == "card").map(|one| one.heard.status()).collect();
        let gone = cards.iter().filter(|status| **status == 404).count();
        // The endpoint itself is whole.
        gone == 2
            && cards.contains(&200)
            && seen.iter().all(|one| one.step == "card" || one.heard.status() == 200)
    }),
    ("dialect-zoo", |_, seen| {
        let old = any(seen, "search", |one| one.heard.json()["result"]["kind"] == "message");
        let flat = any(seen, "search", |one| {
            let result = one.heard.json()["result"].clone();
            result["role"] == "ROLE_AGENT" && result.get("message").is_none()
        });
        old && flat && any(seen, "lead", |one| one.heard.json()["error"]["code"] == -32_002)
    }),
    ("flaky-friday", |sim, seen| {
        // Lost and stored; the same key then gives the receipt that was lost.
        let all = leads(seen);
        all.iter().all(|(lost, again)| {
            lost.heard.end == End::Reset && stored(sim, lost) && again.heard.data()["lead_id"].is_string()
        })
    }),
    ("gc-pauses", |_, seen| {
        let slow = seen.iter().filter(|one| one.heard.ended > Duration::from_millis(400)).count();
        let quick = seen.iter().filter(|one| one.heard.ended < Duration::from_millis(100)).count();
        slow >= 3 && quick > 0 && seen.iter().all(|one| one.heard.code().is_empty())
    }),
    ("half-broken-crm", |_, seen| {
        let told = |one: &Seen| ["INTERNAL_ERROR", ""].contains(&one.heard.code().as_str());
        let searching = seen.iter().all(|one| one.step == "lead" || (one.heard.status() == 200 && told(one)));
        // Most leads are slower than a buyer waits.
        searching && any(seen, "lead", |one| one.heard.bytes.is_empty())
    }),
    ("lost-answers", |sim, seen| {
        let lost = leads(seen).iter().all(|(lost, again)| {
            lost.heard.end == End::Reset && stored(sim, lost) && again.heard.data()["lead_id"].is_string()
        });
        let cut = |one: &Seen| one.heard.end == End::Fin && one.heard.body().len() == 200;
        lost && any(seen, "search", cut)
    }),
    ("slow-network", |_, seen| {
        let pieces = |one: &Seen| one.heard.times.len() > 10 && one.heard.json()["result"].is_object();
        any(seen, "detail", pieces) && seen.iter().all(|one| one.heard.code().is_empty())
    }),
    ("sold-out-lot", |_, seen| {
        let gone = any(seen, "detail", |one| one.heard.code() == "VEHICLE_UNAVAILABLE");
        gone && any(seen, "detail", |one| one.heard.data()["price"].as_i64() > one.listed["price"].as_i64())
    }),
];

#[test]
fn every_plan_tells_its_story() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios/faults");
    let mut files: Vec<String> = std::fs::read_dir(folder)
        .unwrap()
        .map(|file| file.unwrap().path().file_stem().unwrap().to_str().unwrap().to_owned())
        .collect();
    files.sort();
    assert!(files.len() >= 10);
    assert_eq!(files, STORIES.iter().map(|(name, _)| *name).collect::<Vec<_>>(), "a plan without a story");
    std::thread::scope(|scope| {
        let tellings: Vec<_> = STORIES
            .iter()
            .map(|(name, story)| {
                scope.spawn(move || {
                    let (sim, seen) = under(name);
                    let told: Vec<String> = seen.iter().map(tell).collect();
                    assert!(story(&sim, &seen), "{name}:\n{}", told.join("\n"));
                })
            })
            .collect();
        let failed = tellings.into_iter().filter_map(|telling| telling.join().err()).count();
        assert_eq!(failed, 0, "plans failed, each as told above");
    });
}

/// A line on what was seen, for a story that does not hold.
fn tell(one: &Seen) -> String {
    let Seen { step, conversation, heard, .. } = one;
    let (status, code, bytes) = (heard.status(), heard.code(), heard.bytes.len());
    format!("{conversation} {step}: {status} {code} {bytes} bytes, {:?} after {:?}", heard.end, heard.ended)
}
