//! The same seed gives the same faults, over real connections: one or 64, in order or shuffled, with identifiers minted
//! anew each time; and the delays that it draws are those that a client measures.

#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

mod support;

use std::collections::BTreeSet;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use dealer_sim::faults::effect::DelayFacts;
use dealer_sim::faults::{Apply, Engine, Facts, Plan, registry};
use dealer_sim::stable::{mix, stable_hash};
use serde_json::{Value, json};
use support::{Sim, call, connect, http};

/// A connection that is kept, and made again when the dealer ends it.
struct Kept {
    url: String,
    stream: Option<TcpStream>,
}

impl Kept {
    fn new(url: &str) -> Kept {
        Kept { url: url.to_owned(), stream: None }
    }

    /// The head and body of a reply; nothing when the connection was reset instead.
    fn post(&mut self, fields: &str, body: &str) -> Option<(String, String)> {
        let stream = self.stream.get_or_insert_with(|| connect(&self.url).0);
        let length = body.len();
        let request = format!(
            "POST /a2a HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\n{fields}Content-Length: {length}\r\n\r\n{body}"
        );
        stream.write_all(request.as_bytes()).unwrap();
        let (mut text, mut piece) = (Vec::new(), [0; 1 << 14]);
        loop {
            match stream.read(&mut piece) {
                Ok(0) => panic!("the connection ended"),
                Ok(read) => text.extend_from_slice(&piece[..read]),
                Err(error) => {
                    assert_eq!(error.kind(), std::io::ErrorKind::ConnectionReset);
                    self.stream = None;
                    return None;
                }
            }
            let so_far = String::from_utf8_lossy(&text);
            let Some((head, body)) = so_far.split_once("\r\n\r\n") else { continue };
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
            if body.len() == length.parse::<usize>().unwrap() {
                return Some((head.to_owned(), body.to_owned()));
            }
        }
    }
}

/// Independent and per-key triggers of all kinds.
const PLAN: &str = r#"
rules:
  - { id: chance, when: { skill: inventory.search }, effect: internal_error, chance: 10% }
  - { id: second, when: { skill: inventory.vehicle, nth: 2, per: key }, effect: rate_limited, chance: 50% }
  - { id: first, when: { skill: inventory.facets, first: 2, per: key }, effect: total_lies, chance: 70% }
  - { id: steps, when: { skill: inventory.vehicle }, effect: "sequence(per=key, [ok*2, reset_after_commit, ok...])", chance: 70% }
  - { id: talk, when: { skill: lead.submit }, effect: "sequence(per=conversation, [ok, vehicle_unavailable, ok...])", chance: 60% }
  - { id: slow, effect: "latency(lognormal, p50=1ms, p99=4ms)", chance: 30% }
"#;

/// Logical requests, told apart by their payload.
fn requests() -> Vec<(&'static str, Value)> {
    (0..600)
        .map(|number: u64| {
            let filters = json!({ "price_max": 10_000 + number });
            match number % 4 {
                0 => ("inventory-search", json!({ "type": "inventory.search.request", "filters": filters })),
                1 => (
                    "vehicle-detail",
                    json!({ "type": "inventory.vehicle.request", "stock": format!("S-{number}") }),
                ),
                2 => ("inventory-facets", json!({ "type": "inventory.facets.request", "filters": filters })),
                _ => ("lead-submit", support::lead(&format!("Buyer {number}"))),
            }
        })
        .collect()
}

/// What happened to every attempt of every logical request: what the dealer told of faults, or that it reset.
type Faulted = BTreeSet<(usize, u32, Vec<String>)>;

fn run(seed: &str, connections: usize, order: &[usize]) -> Faulted {
    run_on(&Sim::start(&["--seed", seed, "--vehicles", "60"]), connections, order)
}

fn run_on(sim: &Sim, connections: usize, order: &[usize]) -> Faulted {
    assert_eq!(http("PUT", &sim.admin("/faults"), &[], PLAN).0, 200);
    let (all, minted) = (requests(), AtomicUsize::new(connections * 1_000_000));
    let (next, faulted) = (AtomicUsize::new(0), Mutex::new(Faulted::new()));
    std::thread::scope(|scope| {
        for _ in 0..connections {
            scope.spawn(|| {
                let mut connection = Kept::new(&sim.url());
                while let Some(number) = order.get(next.fetch_add(1, Ordering::Relaxed)) {
                    for attempt in 0..4 {
                        let (stem, mut payload) = all[*number].clone();
                        // An agent mints these anew whenever it likes.
                        let mint = || format!("{:016x}", mix(minted.fetch_add(1, Ordering::Relaxed) as u64));
                        if stem == "lead-submit" {
                            payload["idempotency_key"] = json!(mint());
                        }
                        let mut body = call(stem, &payload);
                        body["params"]["message"]["messageId"] = json!(mint());
                        body["params"]["message"]["contextId"] = json!(format!("c-{number}"));
                        let told = match connection.post("", &body.to_string()) {
                            None => vec!["reset".to_owned()],
                            Some((head, _)) => {
                                let told = head
                                    .lines()
                                    .filter_map(|line| line.strip_prefix("x-sim-fault-applied: "));
                                told.map(str::to_owned).collect()
                            }
                        };
                        if !told.is_empty() {
                            faulted.lock().unwrap().insert((*number, attempt, told));
                        }
                    }
                }
            });
        }
    });
    faulted.into_inner().unwrap()
}

#[test]
fn one_connection_and_64_in_another_order_have_the_same_faults() {
    let forwards: Vec<usize> = (0..requests().len()).collect();
    let mut shuffled = forwards.clone();
    shuffled.sort_by_key(|number| mix(*number as u64 ^ 99));
    let one = run("7", 1, &forwards);
    let many = run("7", 64, &shuffled);
    let differ: Vec<_> = one.symmetric_difference(&many).take(6).collect();
    assert!(differ.is_empty(), "{differ:#?}");
    let all: String = one.iter().flat_map(|(_, _, told)| told).map(|told| format!("\n{told}")).collect();
    for rule in ["\nchance; ", "\nsecond; ", "\nfirst; ", "\nreset", "\ntalk; ", "\nslow; "] {
        assert!(all.contains(rule), "{rule} never fired");
    }
    let other = run("8", 64, &shuffled);
    assert!(one.symmetric_difference(&other).count() > 100, "another seed has faults of its own");
}

#[test]
fn a_plan_that_is_put_again_begins_anew() {
    let order: Vec<usize> = (0..200).collect();
    let sim = Sim::start(&["--seed", "7", "--vehicles", "60"]);
    let first = run_on(&sim, 4, &order);
    assert!(!first.is_empty());
    assert_eq!(first, run_on(&sim, 1, &order));
}

#[test]
fn a_seed_has_its_own_list_of_delays_and_a_client_measures_it() {
    let plan = "rules:\n  - { id: slow, effect: \"latency(lognormal, p50=40ms, p99=300ms)\" }\n";
    let predict = |seed: u64| -> Vec<Duration> {
        let engine = Engine::new(Plan::parse("plan", plan, registry()).unwrap(), registry(), 0);
        let of = |number: usize| {
            let facts = Facts {
                dealer: "",
                skill: Some(dealer_sim::protocol::Skill::DealerInformation),
                path: None,
                binding: dealer_sim::protocol::Binding::A2a,
                conversation: None,
                client: "",
                vin: None,
                key: stable_hash(2, format!("k-{number}").as_bytes()),
                attempt: 0,
                request_effect: None,
                magic: None,
                accepting: false,
            };
            let delay = engine.decide(seed, &facts, 0).delays.remove(0);
            let Apply::Delay(draw) = delay.effect.info.apply else { panic!("no delay") };
            draw(&delay.effect.args, &mut delay.draw.clone(), DelayFacts { in_flight: 1, age_ns: 0 })
        };
        (0..48).map(of).collect()
    };
    let measure = |seed: &str| -> Vec<Duration> {
        let sim = Sim::start(&["--seed", seed, "--vehicles", "60"]);
        assert_eq!(http("PUT", &sim.admin("/faults"), &[], plan).0, 200);
        let body = call("dealer-information", &json!({ "type": "dealer.information.request" })).to_string();
        let measured = Mutex::new(vec![Duration::ZERO; 48]);
        std::thread::scope(|scope| {
            for lane in 0..4 {
                let (sim, body, measured) = (&sim, &body, &measured);
                scope.spawn(move || {
                    let mut connection = Kept::new(&sim.url());
                    for number in (lane..48).step_by(4) {
                        let begun = Instant::now();
                        connection.post(&format!("X-Sim-Key: k-{number}\r\n"), body).unwrap();
                        measured.lock().unwrap()[number] = begun.elapsed();
                    }
                });
            }
        });
        measured.into_inner().unwrap()
    };
    let lists = [7, 8].map(predict);
    assert_ne!(lists[0], lists[1]);
    for (seed, predicted) in ["7", "8"].iter().zip(lists) {
        let measured = measure(seed);
        let mut over: Vec<Duration> = predicted
            .iter()
            .zip(&measured)
            .map(|(predicted, measured)| measured.checked_sub(*predicted).expect("never early"))
            .collect();
        over.sort_unstable();
        // The median is of the dealer; the greatest may be of a busy machine.
        assert!(over[24] < Duration::from_millis(3) && over[47] < Duration::from_millis(150), "{over:?}");
    }
}
