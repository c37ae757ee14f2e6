//! The load generator's outcome counts against the simulator's own counters, fault by fault: not one more, not one less.
#![allow(clippy::unwrap_used, clippy::panic, reason = "clippy lets only functions marked as tests do so")]

mod support;

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use dealer_sim::faults::{Plan, registry};
use dealer_sim::{Dealer, RunningDealer};
use serde_json::{Value, json};
use support::{loadgen, scenario};

/// A dealer with these rules, and whatever lives as long as it.
fn dealer(rules: &str) -> (tokio::runtime::Runtime, RunningDealer) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let plan = Plan::parse("plan.yaml", &format!("name: t\nrules:\n{rules}"), registry()).unwrap();
    let dealer = runtime.block_on(Dealer::builder().seed(11).faults(plan).start()).unwrap();
    (runtime, dealer)
}

/// A counter of the simulator's metrics.
fn counter(dealer: &RunningDealer, line: &str) -> u64 {
    let admin = dealer.admin_url().unwrap();
    let host = admin.trim_start_matches("http://").trim_end_matches('/').to_owned();
    let mut stream = TcpStream::connect(&host).unwrap();
    write!(stream, "GET /metrics HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    let found = text.lines().find_map(|found| found.strip_prefix(line)?.trim().parse().ok());
    found.unwrap_or_else(|| panic!("{line} in {text}"))
}

fn run(dealer: &RunningDealer) -> Value {
    let output = loadgen(&[
        "run",
        &scenario("smoke"),
        "--endpoint",
        &dealer.card_url(),
        "--users",
        "4",
        "--sessions",
        "400",
        "--format",
        "json",
        "--quiet",
    ]);
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

#[test]
fn rate_limits_in_http_200_are_counted_as_what_they_are() {
    let (_runtime, dealer) = dealer(
        "  - { id: limit, when: { skill: inventory.search }, effect: rate_limited(retry_after=2s), chance: 30% }\n",
    );
    let summary = run(&dealer);
    let fired = counter(&dealer, "dealer_sim_faults_total{rule=\"limit\"}");
    assert!((60..180).contains(&fired), "{fired}");
    assert_eq!(summary["outcomes"], json!({"aap.RATE_LIMITED": fired, "ok": 400 - fired}));
    assert_eq!(summary["requests"]["errors"], fired);
}

#[test]
fn a_dropped_context_id_is_a_breach() {
    let (_runtime, dealer) = dealer(
        "  - { id: dropped, when: { skill: inventory.search }, effect: context_id_missing, chance: 25% }\n",
    );
    let summary = run(&dealer);
    let fired = counter(&dealer, "dealer_sim_faults_total{rule=\"dropped\"}");
    assert!((50..150).contains(&fired), "{fired}");
    assert_eq!(summary["outcomes"], json!({"protocol.context_id": fired, "ok": 400 - fired}));
}

#[test]
fn half_the_connections_reset_before_the_reply_are_half_the_requests_lost() {
    let (_runtime, dealer) = dealer(
        "  - { id: reset, when: { skill: inventory.search }, effect: reset_before_commit, chance: 50% }\n",
    );
    let summary = run(&dealer);
    let fired = counter(&dealer, "dealer_sim_faults_total{rule=\"reset\"}");
    assert!((150..250).contains(&fired), "{fired}");
    assert_eq!(summary["outcomes"], json!({"transport.reset": fired, "ok": 400 - fired}));
    // Each is a latency too, and a connection that is not used again.
    assert_eq!(summary["latency"]["response"]["count"], 400);
    assert_eq!(summary["connections"]["closed_by_server"], fired);
}
