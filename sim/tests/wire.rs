//! The dealer's socket under bytes of every kind: a JSON-RPC answer or a clean HTTP refusal, never a hang.

#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

mod support;

use std::io::{Read, Write};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Sim, call, connect, http, read_reply, rpc};

/// Sends raw bytes and reads to the end of the connection.
fn raw(sim: &Sim, bytes: &[u8]) -> Option<(u16, String, String)> {
    let (mut stream, _) = connect(&sim.url());
    // A server that has heard enough may close before all is written.
    _ = stream.write_all(bytes);
    _ = stream.shutdown(std::net::Shutdown::Write);
    read_reply(&mut stream)
}

fn information() -> String {
    call("dealer-information", &json!({ "type": "dealer.information.request" })).to_string()
}

#[test]
fn garbage_is_refused_by_http() {
    let sim = Sim::start(&[]);
    for bytes in [
        &b"\x16\x03\x01\x02\x00\x01\x00"[..],
        b"hello\r\n\r\n",
        b"POST /a2a HTTP/1.1\r\nHost: x\r\nContent-Length: abc\r\n\r\n",
        b"POST /a2a HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n12345",
        b"POST /a2a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"PRI * HTTP/2.0\r\n\r\n",
        b"GET /\0 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET / HTTP/3.0\r\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nbad header\r\n\r\n",
    ] {
        let reply = raw(&sim, bytes);
        let status = reply.as_ref().map(|(status, ..)| *status);
        assert_eq!(status, Some(400), "{:?}: {reply:?}", String::from_utf8_lossy(bytes));
    }
    assert_eq!(rpc(&sim.url(), &information()).0, 200);
}

#[test]
fn a_reply_does_not_wait_for_what_comes_behind_the_request() {
    let sim = Sim::start(&[]);
    let body = information();
    let request = format!("POST /a2a HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}", body.len());
    for behind in ["\r\n", "\n", " ", "}", "POST /a2a HTTP/1.1\r\nHo", "GARBAGE\r\n\r\n"] {
        let (mut stream, _) = connect(&sim.url());
        stream.write_all(format!("{request}{behind}").as_bytes()).unwrap();
        let mut start = [0; 15];
        stream.read_exact(&mut start).unwrap();
        assert_eq!(&start, b"HTTP/1.1 200 OK", "with {behind:?} behind it");
    }
    // A length counted in characters cuts the body short; what is left is no request.
    let body = body.replace("m-1", "m-é");
    let request =
        format!("POST /a2a HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}", body.chars().count());
    assert!(raw(&sim, request.as_bytes()).unwrap().2.contains("-32700"));
}

#[test]
fn limits_answer_with_their_status() {
    let folder = tempfile::tempdir().unwrap();
    let limits = folder.path().join("limits.toml");
    std::fs::write(&limits, "body_bytes = 2000\nheader_timeout_ms = 300\nbody_timeout_ms = 300\n").unwrap();
    let sim = Sim::start(&["--limits", limits.to_str().unwrap()]);

    let big = format!("POST /a2a HTTP/1.1\r\nHost: x\r\nContent-Length: 2001\r\n\r\n{}", " ".repeat(2001));
    assert_eq!(raw(&sim, big.as_bytes()).unwrap().0, 413);
    let endless = format!(
        "POST /a2a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n{}",
        "ff\r\n".to_owned() + &" ".repeat(255) + "\r\n"
    );
    let chunk = "ff\r\n".to_owned() + &" ".repeat(255) + "\r\n";
    assert_eq!(raw(&sim, (endless + &chunk.repeat(20)).as_bytes()).unwrap().0, 413);
    let head = format!("POST /a2a HTTP/1.1\r\nHost: x\r\nX: {}\r\n\r\n", "y".repeat(200_000));
    assert_eq!(raw(&sim, head.as_bytes()).unwrap().0, 431);
    let many: String = (0..200).map(|n| format!("X-{n}: y\r\n")).collect();
    assert_eq!(raw(&sim, format!("GET / HTTP/1.1\r\nHost: x\r\n{many}\r\n").as_bytes()).unwrap().0, 431);

    // A body that never comes, and a head that drips.
    let begun = Instant::now();
    let (mut stream, _) = connect(&sim.url());
    stream.write_all(b"POST /a2a HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n12").unwrap();
    assert_eq!(read_reply(&mut stream).unwrap().0, 408);
    let (mut stream, _) = connect(&sim.url());
    stream.write_all(b"POST /a2a HT").unwrap();
    let mut rest = Vec::new();
    _ = stream.read_to_end(&mut rest);
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());

    let metrics = http("GET", &sim.admin("/metrics"), &[], "").2;
    assert!(metrics.contains("dealer_sim_http_bodies_too_large_total 2\n"), "{metrics}");
    assert!(metrics.contains("dealer_sim_http_bodies_too_slow_total 1\n"), "{metrics}");
    assert!(metrics.ends_with("# EOF\n"));
}

#[test]
fn a_connection_too_many_is_turned_away_and_counted() {
    let folder = tempfile::tempdir().unwrap();
    let limits = folder.path().join("limits.toml");
    std::fs::write(&limits, "connections = 3\n").unwrap();
    let sim = Sim::start(&["--limits", limits.to_str().unwrap()]);
    let held: Vec<_> = (0..3)
        .map(|_| {
            let (mut stream, _) = connect(&sim.url());
            stream.write_all(b"GET").unwrap();
            stream
        })
        .collect();
    std::thread::sleep(Duration::from_millis(50));
    let (mut stream, _) = connect(&sim.url());
    _ = stream.write_all(b"GET / HTTP/1.1\r\nHost: x\r\n\r\n");
    assert!(read_reply(&mut stream).is_none());
    drop(held);
    let metrics = http("GET", &sim.admin("/metrics"), &[], "").2;
    assert!(metrics.contains("dealer_sim_http_connections_turned_away_total 1\n"), "{metrics}");
}

#[test]
fn routes_and_methods() {
    let sim = Sim::start(&[]);
    let base = sim.url().replace("/a2a", "");
    let (status, head, body) = http("GET", &format!("{base}/a2a"), &[], "");
    assert_eq!(status, 405);
    assert!(head.to_lowercase().contains("allow: post"), "{head}");
    assert!(body.contains("POST"));
    assert_eq!(http("POST", &format!("{base}/elsewhere"), &[], "{}").0, 404);
    assert_eq!(http("POST", &format!("{base}/.well-known/agent-card.json"), &[], "{}").0, 405);
    assert_eq!(rpc(&format!("{base}/a2a/"), &information()).0, 200);
    assert_eq!(http("POST", &sim.url(), &[("Content-Type", "text/plain")], &information()).0, 415);
    let llms = http("GET", &format!("{base}/llms.txt"), &[], "").2;
    assert!(llms.contains(&sim.url()) && llms.contains("lead.submit"), "{llms}");

    let traced = [("Content-Type", "application/json"), ("traceparent", "00-1-2-01")];
    let (_, head, _) = http("POST", &sim.url(), &traced, &information());
    assert!(head.contains("traceparent: 00-1-2-01"), "{head}");
    assert!(head.contains(concat!("server: dealer-sim/", env!("CARGO_PKG_VERSION"))), "{head}");
    assert!(head.contains("a2a-extensions: https://autoagentprotocol.org/extensions/aap/v3.0"), "{head}");
}

#[test]
fn the_card_can_be_cached() {
    let sim = Sim::start(&[]);
    let url = sim.first["card"].as_str().unwrap().to_owned();
    let (status, head, body) = http("GET", &url, &[], "");
    assert_eq!(status, 200);
    let field = |name: &str| {
        head.lines()
            .find_map(|line| line.strip_prefix(&format!("{name}: ")).map(str::to_owned))
            .unwrap_or_else(|| panic!("no {name} in {head}"))
    };
    assert!(field("cache-control").contains("max-age="));
    let (etag, modified) = (field("etag"), field("last-modified"));
    let (status, _, empty) = http("HEAD", &url, &[], "");
    assert_eq!((status, empty.as_str()), (200, ""));
    assert_eq!(http("GET", &url, &[("If-None-Match", &etag)], "").0, 304);
    assert_eq!(http("GET", &url, &[("If-None-Match", &format!("\"x\", W/{etag}"))], "").0, 304);
    assert_eq!(http("GET", &url, &[("If-None-Match", "\"x\"")], "").0, 200);
    assert_eq!(http("GET", &url, &[("If-Modified-Since", &modified)], "").0, 304);
    assert_eq!(http("GET", &url, &[("If-Modified-Since", "Thu, 01 Jan 1970 00:00:00 GMT")], "").0, 200);
    let card: Value = serde_json::from_str(&body).unwrap();
    assert_eq!(card["supportedInterfaces"][0]["url"], sim.first["url"]);
}

#[test]
fn a_card_that_a_fault_has_touched_is_known_by_what_it_says() {
    let sim = Sim::start(&[]);
    let url = sim.first["card"].as_str().unwrap().to_owned();
    let fetch = |fault: &str, etag: &str| {
        let (status, head, _) = http("GET", &url, &[("X-Sim-Fault", fault), ("If-None-Match", etag)], "");
        (status, head.lines().find_map(|line| line.strip_prefix("etag: ").map(str::to_owned)))
    };
    let true_one = fetch("card_slow(delay=1ms)", "\"none\"").1.unwrap();
    assert_eq!(fetch("card_slow(delay=1ms)", &true_one), (304, Some(true_one.clone())));
    let (status, spoilt) = fetch("card_without_skills", &true_one);
    let spoilt = spoilt.unwrap();
    assert_eq!((status, spoilt != true_one), (200, true), "a cache hides what the fault says");
    assert_eq!(fetch("card_without_skills", &spoilt), (304, Some(spoilt.clone())));
    assert_eq!(fetch("card_slow(delay=1ms)", &spoilt).0, 200);
    assert_eq!(fetch("card_missing", &true_one).0, 404);
    assert_eq!(fetch("card_without_caching", &true_one), (200, None));
    assert_eq!(fetch("card_stale", "\"stale\"").0, 304);
}

#[test]
fn pipelined_calls_are_answered_in_order() {
    let sim = Sim::start(&[]);
    let (mut stream, _) = connect(&sim.url());
    let mut bytes = String::new();
    for id in 0..20 {
        let body = information().replace("\"id\":1", &format!("\"id\":{id}"));
        let close = if id == 19 { "Connection: close\r\n" } else { "" };
        bytes +=
            &format!("POST /a2a HTTP/1.1\r\nHost: x\r\n{close}Content-Length: {}\r\n\r\n{body}", body.len());
    }
    stream.write_all(bytes.as_bytes()).unwrap();
    let mut all = String::new();
    stream.read_to_string(&mut all).unwrap();
    let ids: Vec<usize> = all
        .split("{\"jsonrpc\":\"2.0\",\"id\":")
        .skip(1)
        .map(|rest| rest.split(',').next().unwrap().parse().unwrap())
        .collect();
    assert_eq!(ids, (0..20).collect::<Vec<_>>());
}

#[test]
fn the_admin_endpoint_shows_and_resets() {
    let sim = Sim::start(&["--vehicles", "60"]);
    let admin = |method: &str, path: &str, body: &str| {
        let (status, _, body) = http(method, &sim.admin(path), &[], body);
        (status, serde_json::from_str::<Value>(&body).unwrap_or(Value::Null))
    };
    assert_eq!(admin("GET", "/livez", ""), (200, json!({ "status": "ok" })));
    assert_eq!(admin("GET", "/readyz", ""), (200, json!({ "status": "ok" })));
    let fixtures = admin("GET", "/fixtures", "").1;

    let lead_id = support::send_lead(&sim.url(), "Lee").unwrap();
    let leads = admin("GET", "/leads", "").1;
    assert_eq!((&leads["received"], &leads["leads"][0]["lead_id"]), (&json!(1), &json!(lead_id)));
    assert_eq!(leads["leads"][0]["request"]["consent"]["consent_text"], "I agree.");
    let conversations = admin("GET", "/conversations?limit=5", "").1;
    assert_eq!(conversations["conversations"][0]["context_id"], leads["leads"][0]["context_id"]);
    assert_eq!(conversations["conversations"][0]["issued_by"], "dealer");

    let vin = |name: &str| fixtures[name].as_str().unwrap().to_owned();
    let (status, sold) = admin("GET", &format!("/vehicles/{}", vin("sold_vin")), "");
    assert_eq!((status, &sold["status"]), (200, &json!("sold")));
    assert_eq!(admin("GET", &format!("/vehicles/{}", vin("unknown_vin")), "").0, 404);

    assert_eq!(admin("GET", "/reset", "").0, 405);
    assert_eq!(admin("POST", "/reset", "{\"sede\":1}").0, 400);
    assert_eq!(admin("POST", "/reset", "").1["seed"], 42);
    assert_eq!(admin("GET", "/leads", "").1["received"], 0);
    assert_eq!(admin("GET", "/fixtures", "").1["available_vin"], fixtures["available_vin"]);
    assert_eq!(admin("POST", "/reset", "{\"seed\":43}").1["seed"], 43);
    assert_ne!(admin("GET", "/fixtures", "").1["available_vin"], fixtures["available_vin"]);
    assert_eq!(admin("GET", "/nowhere", "").0, 404);
    assert_eq!(admin("DELETE", "/leads", "").0, 405);
}

#[test]
fn a_frozen_clock_repeats_every_reply() {
    let flags = ["--clock", "2026-01-05T12:00:00Z", "--vehicles", "60", "--seed", "9"];
    let talk = |flags: &[&str]| -> Vec<String> {
        let sim = Sim::start(flags);
        let fixtures: Value = serde_json::from_str(&http("GET", &sim.admin("/fixtures"), &[], "").2).unwrap();
        let mut bodies = vec![
            information(),
            information(),
            call("inventory-search", &json!({ "type": "inventory.search.request" })).to_string(),
            call("inventory-search", &json!({ "type": "inventory.search.request", "zip": 1 })).to_string(),
            call(
                "vehicle-detail",
                &json!({ "type": "inventory.vehicle.request", "vin": fixtures["sold_vin"] }),
            )
            .to_string(),
        ];
        let mut lead = support::lead("Lee");
        lead["appointment"] =
            json!({ "appointment_type": "service", "appointment_at": fixtures["busy_slot"] });
        bodies.push(call("lead-submit", &lead).to_string());
        bodies.iter().map(|body| rpc(&sim.url(), body).2).collect()
    };
    let first = talk(&flags);
    assert_eq!(first, talk(&flags));
    // The same request twice is two messages.
    assert_ne!(first[0], first[1]);
    assert_ne!(first, talk(&[&flags[..5], &["10"]].concat()));
}

#[test]
fn a_reply_that_nobody_reads_is_given_up() {
    let folder = tempfile::tempdir().unwrap();
    let limits = folder.path().join("limits.toml");
    std::fs::write(&limits, "write_timeout_ms = 200\n").unwrap();
    let sim = Sim::start(&["--limits", limits.to_str().unwrap()]);
    let search = call(
        "inventory-search",
        &json!({ "type": "inventory.search.request", "pagination": { "limit": 100 } }),
    );
    let body = Value::Array(vec![search; 100]).to_string();
    let (mut stream, _) = connect(&sim.url());
    stream
        .write_all(
            format!("POST /a2a HTTP/1.1\r\nHost: x\r\nContent-Length: {}\r\n\r\n{body}", body.len())
                .as_bytes(),
        )
        .unwrap();
    let open =
        || http("GET", &sim.admin("/metrics"), &[], "").2.contains("dealer_sim_http_connections_open 1\n");
    let begun = Instant::now();
    while !open() {
        assert!(begun.elapsed() < Duration::from_secs(5));
    }
    while open() {
        assert!(begun.elapsed() < Duration::from_secs(5), "the connection is still held");
        std::thread::sleep(Duration::from_millis(20));
    }
}
