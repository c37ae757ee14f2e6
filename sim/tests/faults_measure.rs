//! How exact an injected delay is. Measures the machine, so that it runs on demand and in release: `.ci/long`.

#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

#[path = "faults/samples.rs"]
#[allow(dead_code)]
mod samples;
mod support;

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use support::{Sim, connect, http};

const DELAY: Duration = Duration::from_millis(100);
const ROUNDS: u32 = 30;

/// How much later than asked each reply came, over so many connections that are asked without a pause.
fn lateness(sim: &Sim, connections: u32) -> Vec<Duration> {
    let body = samples::request(dealer_sim::protocol::Skill::DealerInformation, &serde_json::json!({}));
    let length = body.len();
    let request = format!(
        "POST /a2a HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}"
    );
    let mut all: Vec<Duration> = std::thread::scope(|scope| {
        let lanes: Vec<_> = (0..connections)
            .map(|lane| {
                let (request, url) = (&request, sim.url());
                scope.spawn(move || {
                    let (mut stream, _) = connect(&url);
                    stream.set_nodelay(true).unwrap();
                    // Spread over a delay's length: callers are not in step.
                    std::thread::sleep(DELAY * lane / connections);
                    let mut piece = vec![0; 1 << 16];
                    let once = |_| {
                        let begun = Instant::now();
                        stream.write_all(request.as_bytes()).unwrap();
                        // A small reply comes in one piece.
                        assert!(stream.read(&mut piece).unwrap() > 0);
                        begun.elapsed().checked_sub(DELAY).expect("never early")
                    };
                    (0..ROUNDS).map(once).collect::<Vec<_>>()
                })
            })
            .collect();
        lanes.into_iter().flat_map(|lane| lane.join().unwrap()).collect()
    });
    all.sort_unstable();
    all
}

#[test]
#[ignore = "measures the machine; .ci/long runs it"]
fn a_delay_of_100_ms_is_kept_at_8_and_200_connections() {
    let sim = Sim::start(&[]);
    let plan = "rules:\n  - { id: slow, effect: \"latency(fixed, value=100ms)\" }\n";
    assert_eq!(http("PUT", &sim.admin("/faults"), &[], plan).0, 200);
    for connections in [8, 200] {
        let all = lateness(&sim, connections);
        let at = |p: f64| all[((all.len() as f64 * p) as usize).min(all.len() - 1)];
        println!(
            "{connections} connections, {} replies: late by p50 {:?}, p90 {:?}, p99 {:?}, most {:?}",
            all.len(),
            at(0.5),
            at(0.9),
            at(0.99),
            all[all.len() - 1]
        );
        assert!(at(0.5) < Duration::from_micros(500), "p50 {:?}", at(0.5));
        assert!(at(0.99) < Duration::from_millis(3), "p99 {:?}", at(0.99));
    }
}
