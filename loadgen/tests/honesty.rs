//! Whether the numbers are true: against servers whose right answer is known. These take a while and want a machine that
//! does little else, so they run on request: `cargo test --release -p dealer-loadgen --test honesty -- --ignored`.

mod support;

use std::time::Duration;

use serde_json::Value;
use support::{Server, Setup, smoke};

const STALL_EVERY: Duration = Duration::from_secs(5);
const STALL: Duration = Duration::from_millis(500);

fn figure(summary: &Value, kind: &str, name: &str) -> f64 {
    summary["latency"][kind][name].as_f64().unwrap_or(f64::NAN)
}

/// A server that sleeps D of every T seconds. A request that is meant to start `s` after the begin of a stall waits for
/// the rest of it and for those before it, D - s (1 - rho), where rho is the share of the time that the server is busy
/// with requests. So the share of all that wait longer than x is (D - x) / ((1 - rho) T), and the quantile
/// x_q = D - (1 - q) T (1 - rho).
#[test]
#[ignore = "takes half a minute and wants an idle machine"]
fn a_stalled_server_shows_in_full() {
    let server = Server::start(Setup { stall: Some((STALL_EVERY, STALL)), ..Setup::default() });
    let (code, summary) = smoke(&server, &["--rate", "1000/s", "--duration", "30s"]);
    let mut stalls = server.stalls();
    stalls.sort_unstable();
    let d = stalls[stalls.len() / 2].as_secs_f64() * 1e3;
    let longest = stalls[stalls.len() - 1].as_secs_f64() * 1e3;
    let rho = server.utilisation();
    let t = STALL_EVERY.as_secs_f64() * 1e3;
    println!("D {d:.2} ms (longest {longest:.2}), rho {rho:.3}, {} stalls", stalls.len());
    let mut worst: f64 = 0.0;
    for (name, expected) in [
        ("p99_ms", d - 0.01 * t * (1.0 - rho)),
        ("p999_ms", d - 0.001 * t * (1.0 - rho)),
        ("max_ms", longest),
    ] {
        let measured = figure(&summary, "response", name);
        let off = (measured - expected) / expected;
        println!("{name}: expected {expected:.1}, measured {measured:.1} ({:+.2} %)", off * 100.0);
        worst = worst.max(off.abs());
    }
    println!(
        "lag p50 {:.3} p99 {:.3} ms; service p50 {:.3} ms; busiest worker {}",
        figure(&summary, "lag", "p50_ms"),
        figure(&summary, "lag", "p99_ms"),
        figure(&summary, "service", "p50_ms"),
        summary["run"]["busiest_worker"]
    );
    assert_eq!(code, 0, "{:#}", summary["verdict"]);
    assert!(worst <= 0.03, "{worst}");
}

/// The pacer's own lateness at a rate at which each release has a wake-up of its own.
#[test]
#[ignore = "wants an idle machine"]
fn the_pacer_is_late_by_less_than_a_sixth_of_a_millisecond() {
    let server = Server::start(Setup::default());
    let (_, summary) = smoke(&server, &["--rate", "1000/s", "--duration", "10s"]);
    let (p50, p99) = (figure(&summary, "lag", "p50_ms"), figure(&summary, "lag", "p99_ms"));
    println!("lag at 1,000/s: p50 {p50:.3} ms, p99 {p99:.3} ms");
    assert!(p50 <= 0.15, "{p50}");
}

/// CPU per request in a closed loop over 64 connections, user and system time of the generator alone.
#[test]
#[ignore = "a measurement, of a release build"]
fn cpu_per_request() {
    let server = Server::start(Setup::default());
    for threads in ["1", "2"] {
        let (_, summary) = smoke(&server, &["--users", "64", "--duration", "5s", "--threads", threads]);
        let requests = summary["requests"]["sent"].as_f64().unwrap();
        let cpu = summary["run"]["cpu_ms"].as_f64().unwrap();
        println!(
            "{threads} workers: {:.2} us per request, {:.0} requests/s, p50 {:.3} ms, outcomes {}",
            cpu * 1e3 / requests,
            requests / 5.0,
            figure(&summary, "service", "p50_ms"),
            summary["outcomes"]
        );
    }
    let (_, summary) = smoke(&server, &["--rate", "5000/s", "--duration", "5s"]);
    println!(
        "open at 5,000/s: {:.1} us per request, lag p50 {:.3} ms",
        summary["run"]["cpu_ms"].as_f64().unwrap() * 1e3 / summary["requests"]["sent"].as_f64().unwrap(),
        figure(&summary, "lag", "p50_ms")
    );
}
