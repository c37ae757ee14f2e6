//! What each way of going wrong is called, and what becomes of its connection: through the real program, against a
//! server that goes wrong in that way.

mod support;

use std::time::Duration;

use serde_json::{Value, json};
use support::{Manner, Server, Setup, smoke};

fn server(manners: &[Manner]) -> Server {
    Server::start(Setup { manners: manners.to_vec(), ..Setup::default() })
}

/// Ten sessions of one request, one after the other, over one connection at a time.
fn ten(server: &Server, flags: &[&str]) -> Value {
    let base = ["--users", "1", "--sessions", "10", "--timeout", "300ms", "--grace", "2s"];
    smoke(server, &[&base, flags].concat()).1
}

fn outcomes(manner: Manner) -> (Value, Value) {
    let server = server(&[manner]);
    let summary = ten(&server, &[]);
    assert_eq!(summary["requests"]["finished"], 10, "{summary:#}");
    // One that meets a closing connection is lost; none is ever sent twice.
    let lost = if manner == Manner::CloseAfterReply {
        10 - summary["outcomes"]["ok"].as_u64().unwrap_or(0)
    } else {
        0
    };
    assert_eq!(server.requests() + lost, 10, "{summary:#}");
    (summary["outcomes"].clone(), summary["connections"].clone())
}

#[test]
fn right_replies_share_one_connection() {
    for manner in [Manner::Right, Manner::Chunked(7), Manner::Interim] {
        let (outcomes, connections) = outcomes(manner);
        assert_eq!(outcomes, json!({"ok": 10}), "{manner:?}");
        assert_eq!(connections["opened"], 1, "{manner:?}");
    }
}

#[test]
fn a_connection_that_the_server_ends_is_not_used_again() {
    for manner in [Manner::CloseAfterReply, Manner::SayClose, Manner::Trailing] {
        let (outcomes, connections) = outcomes(manner);
        // Without a word of warning, the end of the connection can be seen late: then the request is lost, and is not
        // sent again.
        let ok = outcomes["ok"].as_u64().unwrap();
        if manner != Manner::CloseAfterReply {
            assert_eq!(ok, 10, "{manner:?}: {outcomes}");
            assert_eq!(connections["closed_by_server"], 10, "{manner:?}");
        }
        assert!(ok >= 5, "{manner:?}: {outcomes}");
    }
}

#[test]
fn transport_faults_have_their_names() {
    for (manner, label) in [
        (Manner::Reset, "transport.reset"),
        (Manner::Close, "transport.eof"),
        (Manner::Garbage, "transport.bad_http"),
        (Manner::EndlessInterim, "transport.bad_http"),
        (Manner::Oversized(9 * 1024 * 1024), "transport.too_large"),
        (Manner::Silent, "timeout.first_byte"),
        (Manner::Half, "timeout.body"),
        (Manner::Drip(Duration::from_millis(5)), "timeout.body"),
        (Manner::Status(503), "http.503"),
    ] {
        assert_eq!(outcomes(manner).0, json!({ label: 10 }), "{manner:?}");
    }
}

#[test]
fn protocol_faults_have_their_names() {
    for (manner, label) in [
        (Manner::Aap("RATE_LIMITED", -32000), "aap.RATE_LIMITED"),
        (Manner::Aap("UNSUPPORTED_SKILL", -32004), "aap.UNSUPPORTED_SKILL"),
        (Manner::NoContext, "protocol.context_id"),
        (Manner::OtherId, "protocol.id"),
        (Manner::Gzip, "protocol.content_encoding"),
    ] {
        assert_eq!(outcomes(manner).0, json!({ label: 10 }), "{manner:?}");
    }
}

#[test]
fn time_outs_keep_their_latency() {
    let server = server(&[Manner::Silent]);
    let summary = ten(&server, &[]);
    for kind in ["response", "service"] {
        let p50 = summary["latency"][kind]["p50_ms"].as_f64().unwrap();
        assert!((299.0..400.0).contains(&p50), "{kind}: {p50}");
    }
}

#[test]
fn a_refused_connection_is_an_outcome_with_a_latency() {
    // A port that was just free: nothing listens there.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}/a2a");
    let output = support::loadgen(&[
        "run",
        &support::scenario("smoke"),
        "--endpoint-raw",
        &url,
        "--contract",
        "3.0",
        "--sessions",
        "5",
        "--format",
        "json",
        "--quiet",
    ]);
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["outcomes"], json!({"transport.refused": 5}));
    assert_eq!(summary["latency"]["response"]["count"], 5);
    assert_eq!(summary["latency"]["service"]["count"], 0);
    // Nothing was reached, so nothing was measured: no success, and said in words.
    assert_eq!(summary["verdict"]["valid"], false);
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        said.contains("not one request got an HTTP reply") && said.contains("transport.refused 5"),
        "{said}"
    );
}

#[test]
fn users_do_not_knock_without_a_pause() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let url = format!("http://127.0.0.1:{port}/a2a");
    let smoke = support::scenario("smoke");
    let flags = ["run", &smoke, "--endpoint-raw", &url, "--contract", "3.0", "--format", "json", "--quiet"];
    let output = support::loadgen(&[&flags[..], &["--users", "1", "--duration", "1s"]].concat());
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    // At 0, 10, 30, 70, 150, 310 and 630 ms.
    let refused = summary["outcomes"]["transport.refused"].as_u64().unwrap();
    assert!((1..=7).contains(&refused), "{summary:#}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_standard_error_costs_no_results() {
    let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
    let server = server(&[Manner::Right]);
    let smoke = support::scenario("smoke");
    let flags = ["run", &smoke, "--endpoint", &server.url(), "--sessions", "3", "--format", "json"];
    let output = support::command(&flags).stderr(full).output().unwrap();
    assert_eq!(output.status.code(), Some(0));
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["outcomes"], json!({"ok": 3}));
}

#[test]
fn sessions_that_were_never_reached_are_counted() {
    let server = server(&[Manner::Silent]);
    let flags = ["--rate", "100/s", "--duration", "1s", "--max-in-flight", "1", "--grace", "100ms"];
    let (_, summary) = smoke(&server, &flags);
    let sessions = &summary["sessions"];
    let count = |name: &str| sessions[name].as_u64().unwrap();
    assert_eq!(count("scheduled"), 100, "{summary:#}");
    assert_eq!(count("started") + count("not_sent"), 100, "{summary:#}");
}

#[test]
fn a_few_sessions_have_the_rate_that_they_were_to_have() {
    let server = server(&[Manner::Right]);
    for (arrivals, target) in [("constant", 20.0), ("burst:2", 20.0)] {
        let (_, summary) = smoke(&server, &["--rate", "20/s", "--sessions", "5", "--arrivals", arrivals]);
        assert_eq!(summary["sessions"]["started_in_time"], 5, "{summary:#}");
        assert_eq!(summary["rate"]["target_per_s"], target, "{arrivals}");
        assert_eq!(summary["rate"]["achieved_per_s"], target, "{arrivals}");
    }
}

#[test]
fn a_session_that_waits_for_a_place_beyond_the_end_has_no_part_in_the_rate() {
    // Of 40 in a second one place does about five, and the rest while the run waits for what is on its way.
    let server = server(&[Manner::Slow(Duration::from_millis(200))]);
    let flags = ["--rate", "40/s", "--duration", "1s", "--max-in-flight", "1", "--threshold", "rate>=10/s"];
    let (_, summary) =
        smoke(&server, &[&flags[..], &["--threshold", "rate[1s]>=10/s", "--grace", "2s"]].concat());
    let started = summary["sessions"]["started"].as_u64().unwrap();
    let achieved = summary["rate"]["achieved_per_s"].as_f64().unwrap();
    assert!(started > 6 && (1.0..=6.0).contains(&achieved), "{summary:#}");
    assert!(
        summary["thresholds"].as_array().unwrap().iter().all(|threshold| threshold["pass"] == false),
        "{summary:#}"
    );
}

#[test]
fn mixed_faults_are_counted_exactly() {
    let server = server(&[
        Manner::Right,
        Manner::Reset,
        Manner::Aap("RATE_LIMITED", -32000),
        Manner::Right,
        Manner::NoContext,
    ]);
    let (_, summary) = smoke(&server, &["--users", "1", "--sessions", "50"]);
    assert_eq!(
        summary["outcomes"],
        json!({"ok": 20, "transport.reset": 10, "aap.RATE_LIMITED": 10, "protocol.context_id": 10})
    );
    assert_eq!(summary["sessions"]["finished"], 20);
    assert_eq!(summary["sessions"]["failed"], 30);
    assert_eq!(summary["requests"]["errors"], 30);
}

#[test]
fn reuse_decides_how_long_a_connection_lives() {
    for (reuse, connections) in [("forever", 1), ("none", 10), ("session", 10), ("5..5", 2)] {
        let server = server(&[Manner::Right]);
        let summary = ten(&server, &["--reuse", reuse]);
        assert_eq!(summary["outcomes"], json!({"ok": 10}), "{reuse}");
        // One more for the card.
        assert_eq!(server.connections(), connections + 1, "{reuse}");
        assert_eq!(summary["connections"]["opened"], connections, "{reuse}");
    }
}

#[test]
fn an_idle_connection_that_was_closed_is_replaced_before_the_send() {
    let server = Server::start(Setup { idle_limit: Some(Duration::from_millis(30)), ..Setup::default() });
    // A session every 100 ms: each finds the connection of the last one closed.
    let (code, summary) = smoke(&server, &["--rate", "10/s", "--duration", "1s", "--threads", "1"]);
    support::assert_ended(code, 0, &summary);
    assert_eq!(summary["outcomes"], json!({"ok": 10}));
    if !support::was_late(&summary) {
        assert_eq!(summary["connections"]["closed_idle"], 9);
    }
}

#[test]
fn a_cap_on_connections_makes_requests_wait_and_the_wait_counts() {
    let server = server(&[Manner::Slow(Duration::from_millis(50))]);
    let (_, summary) = smoke(&server, &["--rate", "40/s", "--duration", "1s", "--connections", "1"]);
    assert_eq!(summary["connections"]["opened"], 1);
    assert_eq!(summary["outcomes"], json!({"ok": 40}));
    // One connection does 20 a second: the last of 40 waits for about one second.
    let max = |kind: &str| summary["latency"][kind]["max_ms"].as_f64().unwrap();
    if !support::was_late(&summary) {
        assert!((700.0..3000.0).contains(&max("queue")), "{summary:#}");
    }
    assert!(max("service") < max("queue"), "{summary:#}");
    assert!(max("response") >= max("queue"), "{summary:#}");
    assert!(summary["verdict"]["valid"] == true || support::was_late(&summary), "{summary:#}");
}
