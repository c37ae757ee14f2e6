//! The journal of a running dealer: what it says that a client got is what the client got.

#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

mod support;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Sim, call, connect, http, lead, read_reply};

fn holds(name: &str, value: &Value) {
    let path = format!("{}/../data/schemas/{name}.schema.json", env!("CARGO_MANIFEST_DIR"));
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let schema = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
    let faults: Vec<_> = schema.iter_errors(value).map(|error| error.to_string()).collect();
    assert!(faults.is_empty(), "{name}: {faults:?} in {value}");
}

/// A page of the journal, held against its schema.
fn page(sim: &Sim, query: &str) -> Value {
    let (status, _, body) = http("GET", &sim.admin(&format!("/journal?{query}")), &[], "");
    assert_eq!(status, 200, "{body}");
    let page: Value = serde_json::from_str(&body).unwrap();
    holds("journal-entry", &page);
    page
}

fn entries(sim: &Sim, query: &str) -> Vec<Value> {
    page(sim, query)["entries"].as_array().unwrap().clone()
}

/// The only entry there is once there is one: what ends only when its client has left is recorded a little later.
fn the_entry(sim: &Sim) -> Value {
    let begun = Instant::now();
    loop {
        let found = entries(sim, "");
        assert!(found.len() < 2, "{found:?}");
        match found.into_iter().next() {
            Some(entry) => return entry,
            None if begun.elapsed() < Duration::from_secs(10) => std::thread::sleep(Duration::from_millis(5)),
            None => panic!("no entry"),
        }
    }
}

fn verify(sim: &Sim, question: &Value) -> Value {
    holds("verify", question);
    let (status, _, body) = http("POST", &sim.admin("/verify"), &[], &question.to_string());
    assert_eq!(status, 200, "{body}");
    let verdict = serde_json::from_str(&body).unwrap();
    holds("verify", &verdict);
    verdict
}

fn search(limit: u32) -> Value {
    call("inventory-search", &json!({ "type": "inventory.search.request", "pagination": { "limit": limit } }))
}

/// Sends a request and leaves the connection to its caller.
fn send(sim: &Sim, body: &str, headers: &str) -> TcpStream {
    let (mut stream, path) = connect(&sim.url());
    let length = body.len();
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: test\r\nUser-Agent: agent/1\r\nContent-Type: application/json\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).unwrap();
    stream
}

/// Everything until the connection ends, however it does.
fn drain(mut stream: TcpStream) -> Vec<u8> {
    let mut all = Vec::new();
    let mut piece = [0; 4096];
    while let Ok(read @ 1..) = stream.read(&mut piece) {
        all.extend_from_slice(&piece[..read]);
    }
    all
}

#[test]
fn a_complete_reply() {
    let sim = Sim::start(&["--seed", "7"]);
    let body = search(3).to_string();
    let got = drain(send(&sim, &body, "Connection: close\r\n"));
    let text = String::from_utf8(got.clone()).unwrap();
    let reply = text.split_once("\r\n\r\n").unwrap().1;
    let entry = the_entry(&sim);
    assert_eq!(entry["seq"], 1);
    assert_eq!(entry["client"], "127.0.0.1 agent/1");
    assert_eq!((&entry["connection"], &entry["ordinal"]), (&json!(0), &json!(1)));
    assert_eq!(
        (entry["skill"].as_str(), entry["method"].as_str()),
        (Some("inventory.search"), Some("SendMessage"))
    );
    assert_eq!(entry["message_id"], "m-1");
    let said: Value = serde_json::from_str(reply).unwrap();
    assert_eq!(entry["conversation"], said["result"]["message"]["contextId"]);
    assert_eq!(entry["request"], json!({ "bytes": body.len(), "body": body }));
    assert_eq!(entry["reply"]["bytes"], reply.len());
    assert_eq!(entry["reply"]["body"].as_str().unwrap(), &reply[..reply.len().min(1024)]);
    assert_eq!((entry["outcome"].as_str(), &entry["http_status"]), (Some("ok"), &json!(200)));
    assert_eq!(entry["delivered"]["state"], "complete");
    assert_eq!(entry["delivered"]["bytes"], got.len());
    assert_eq!((&entry["attempt"], entry["faults"].as_array().unwrap().len()), (&Value::Null, 0));
    // The key is that of the same request anywhere, whatever its messageId.
    http("POST", &sim.url(), &[("X-Sim-Client", "tester")], &body.replace("m-1", "m-2"));
    let second = entries(&sim, "after=1").remove(0);
    assert_eq!((&second["key"], second["client"].as_str()), (&entry["key"], Some("tester")));
    for body in [&body, &search(2).to_string()] {
        let headers = [("X-Sim-Key", "mine"), ("Authorization", "Bearer secret")];
        http("POST", &sim.url(), &headers, body);
    }
    let named = entries(&sim, "after=2");
    assert_eq!(named[0]["key"], named[1]["key"]);
    assert_ne!(named[0]["key"], entry["key"]);
    let client = named[0]["client"].as_str().unwrap();
    assert!(client.starts_with("credential:") && client.len() == 27, "{client}");
}

#[test]
fn an_answer_that_was_lost_though_the_lead_is_stored() {
    let sim = Sim::start(&[]);
    let body = call("lead-submit", &lead("Lee")).to_string();
    let got = drain(send(&sim, &body, "X-Sim-Fault: reset_after_commit\r\n"));
    assert!(got.is_empty());
    let entry = the_entry(&sim);
    assert_eq!(entry["delivered"]["state"], "reset");
    assert_eq!((&entry["delivered"]["bytes"], &entry["http_status"]), (&json!(0), &Value::Null));
    assert_eq!(entry["outcome"], "ok");
    assert!(entry["reply"]["body"].as_str().unwrap().contains("lead_id"), "{entry}");
    assert_eq!((entry["faults"][0]["trigger"].as_str(), &entry["attempt"]), (Some("header"), &json!(1)));
    assert_eq!(entry["faults"][0]["effect"], "reset_after_commit");
    assert!(entry["faults"][0]["repro"].as_str().unwrap().starts_with("seed=42;"), "{entry}");
    let leads: Value = serde_json::from_str(&http("GET", &sim.admin("/leads"), &[], "").2).unwrap();
    assert_eq!(leads["received"], 1);
    // What never reached the dealer was not answered.
    drain(send(&sim, &body, "X-Sim-Fault: reset_before_commit\r\n"));
    let entry = entries(&sim, "after=1").remove(0);
    assert_eq!(
        (entry["outcome"].as_str(), entry["delivered"]["state"].as_str()),
        (Some("http.0"), Some("reset"))
    );
    assert_eq!(entry["reply"]["bytes"], 0);
}

#[test]
fn deliveries_that_end_early_are_counted_to_the_byte() {
    let cases = [
        ("fin_in_body(at=64)", "cut"),
        ("fin_in_head(at=12)", "cut"),
        ("reset_in_reply(at=64)", "reset"),
        ("fin_after_commit", "cut"),
        ("fin_after_reply", "complete"),
        ("reset_after_reply", "reset"),
        ("http_503", "complete"),
        ("drip(bytes=200, every=1ms)", "complete"),
    ];
    for (fault, state) in cases {
        let sim = Sim::start(&[]);
        let got = drain(send(
            &sim,
            &search(1).to_string(),
            &format!("X-Sim-Fault: {fault}\r\nConnection: close\r\n"),
        ));
        let entry = the_entry(&sim);
        assert_eq!(entry["delivered"]["state"], state, "{fault}: {entry}");
        // A reset may overtake bytes that were sent.
        let bytes = entry["delivered"]["bytes"].as_u64().unwrap() as usize;
        assert!(
            bytes == got.len() || (state == "reset" && bytes > got.len()),
            "{fault}: {} {entry}",
            got.len()
        );
        let outcome = if fault == "http_503" { "http.503" } else { "ok" };
        assert_eq!(entry["outcome"], outcome, "{fault}");
    }
}

#[test]
fn a_client_that_leaves_and_one_that_is_kept_waiting() {
    let sim = Sim::start(&[]);
    let mut stream = send(&sim, &search(20).to_string(), "X-Sim-Fault: drip(bytes=100, every=20ms)\r\n");
    let mut start = [0; 50];
    stream.read_exact(&mut start).unwrap();
    drop(stream);
    let entry = the_entry(&sim);
    assert_eq!(entry["delivered"]["state"], "client_gone");
    let bytes = entry["delivered"]["bytes"].as_u64().unwrap();
    assert!((50..entry["reply"]["bytes"].as_u64().unwrap()).contains(&bytes), "{entry}");

    let sim = Sim::start(&[]);
    let stream = send(&sim, &search(1).to_string(), "X-Sim-Fault: silence_in_head(at=12)\r\n");
    std::thread::sleep(Duration::from_millis(100));
    assert!(entries(&sim, "").is_empty());
    drop(stream);
    let entry = the_entry(&sim);
    assert_eq!(
        (entry["delivered"]["state"].as_str(), &entry["delivered"]["bytes"]),
        (Some("silent"), &json!(12))
    );
}

#[test]
fn a_connection_that_a_fault_takes_before_it_asks() {
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("plan.yaml");
    std::fs::write(&plan, "name: refuse\nrules:\n  - id: shut\n    effect: connection_refused\n").unwrap();
    let sim = Sim::start(&["--faults", plan.to_str().unwrap()]);
    let (stream, _) = connect(&sim.url());
    drain(stream);
    let entry = the_entry(&sim);
    assert_eq!((&entry["ordinal"], &entry["method"], &entry["key"]), (&json!(0), &Value::Null, &Value::Null));
    assert_eq!(
        (entry["outcome"].as_str(), entry["delivered"]["state"].as_str()),
        (Some("http.0"), Some("reset"))
    );
    assert_eq!(entry["faults"][0]["trigger"], "shut");
}

#[test]
fn a_connection_that_is_read_late_is_served() {
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("plan.yaml");
    std::fs::write(&plan, "name: late\nrules:\n  - id: late\n    effect: accept_delay(delay=100ms)\n")
        .unwrap();
    let sim = Sim::start(&["--faults", plan.to_str().unwrap()]);
    let begun = Instant::now();
    assert_eq!(http("POST", &sim.url(), &[], &search(1).to_string()).0, 200);
    assert!(begun.elapsed() >= Duration::from_millis(95), "{:?}", begun.elapsed());
    let said: Vec<_> = entries(&sim, "").iter().map(|entry| entry["outcome"].clone()).collect();
    assert_eq!(said, ["http.0", "ok"]);
}

#[test]
fn each_call_of_a_batch_has_an_entry_with_its_own_text() {
    let sim = Sim::start(&[]);
    let (first, second) =
        (search(1), call("dealer-information", &json!({ "type": "dealer.information.request" })));
    let batch = format!("[ {first} ,{second}, 7]");
    let (_, _, reply) = http("POST", &sim.url(), &[], &batch);
    let found = entries(&sim, "");
    assert_eq!(found.len(), 3);
    assert_eq!(found[0]["request"]["body"], first.to_string());
    assert_eq!(found[1]["request"]["body"], second.to_string());
    assert_eq!(
        (found[2]["request"]["body"].as_str(), found[2]["outcome"].as_str()),
        (Some("7"), Some("rpc.-32600"))
    );
    let replies: Vec<Value> = serde_json::from_str(&reply).unwrap();
    for (entry, reply) in found.iter().zip(&replies) {
        let said = entry["reply"]["body"].as_str().unwrap();
        assert!(said.starts_with("{\"jsonrpc\":\"2.0\",\"id\":"), "{said}");
        assert_eq!(entry["ordinal"], 1);
        if entry["reply"]["truncated"] != true {
            assert_eq!(serde_json::from_str::<Value>(said).unwrap(), *reply);
        }
    }
    assert_eq!(found[1]["skill"], "dealer.information");
    // One delivery for all.
    assert_eq!(found[0]["delivered"], found[2]["delivered"]);
}

#[test]
fn refusals_and_the_card_have_entries() {
    let folder = tempfile::tempdir().unwrap();
    let limits = folder.path().join("limits.toml");
    std::fs::write(&limits, "body_bytes = 2000\nbody_timeout_ms = 200\n").unwrap();
    let sim = Sim::start(&["--limits", limits.to_str().unwrap(), "--headers", "strict"]);
    let card = sim.first["card"].as_str().unwrap().to_owned();
    http("POST", &sim.url(), &[], "{");
    http("POST", &sim.url(), &[], &search(1).to_string());
    http("GET", &sim.url(), &[], "");
    http("POST", &sim.url(), &[("Content-Type", "text/plain")], "{}");
    http("POST", &sim.url(), &[], &" ".repeat(2001));
    let mut stream = connect(&sim.url()).0;
    stream.write_all(b"POST /a2a HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n12").unwrap();
    read_reply(&mut stream).unwrap();
    http("GET", &card, &[], "");
    http("HEAD", &card, &[], "");
    let etag = http("GET", &card, &[], "").1;
    let etag = etag.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap().to_owned();
    http("GET", &card, &[("If-None-Match", &etag)], "");
    let found = entries(&sim, "");
    let said: Vec<_> = found
        .iter()
        .map(|entry| {
            assert_eq!(entry["delivered"]["state"], "complete", "{entry}");
            assert!(entry["delivered"]["bytes"].as_u64().unwrap() > 50, "{entry}");
            (entry["outcome"].as_str().unwrap(), entry["method"].as_str().unwrap_or("-"))
        })
        .collect();
    let path = "/.well-known/agent-card.json";
    let (get, head) = (format!("GET {path}"), format!("HEAD {path}"));
    assert_eq!(
        said,
        [
            ("rpc.-32700", "-"),
            ("a2a.-32009", "SendMessage"),
            ("http.405", "GET /a2a"),
            ("http.415", "POST /a2a"),
            ("http.413", "POST /a2a"),
            ("http.408", "POST /a2a"),
            ("http.200", &get),
            ("http.200", &head),
            ("http.200", &get),
            ("http.304", &get),
        ]
    );
    assert_eq!(found[4]["request"]["bytes"], 2001);
    assert_eq!(found[1]["message_id"], "m-1");
    assert!(found[6]["reply"]["body"].as_str().unwrap().contains("extendedAgentCard"), "{}", found[6]);
    assert_eq!(verify(&sim, &json!({ "match": { "method": get }, "count": 3 }))["verdict"], "pass");
}

#[test]
fn a_request_sent_before_the_answer_to_the_one_before() {
    let sim = Sim::start(&[]);
    let body = search(2).to_string();
    let length = body.len();
    let request = |more: &str| {
        format!(
            "POST /a2a HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n{more}Content-Length: {length}\r\n\r\n{body}"
        )
    };
    let (mut stream, _) = connect(&sim.url());
    let slow = request("X-Sim-Fault: drip(bytes=1KiB, every=5ms)\r\n");
    stream
        .write_all(format!("{slow}{}{}", request(""), request("Connection: close\r\n")).as_bytes())
        .unwrap();
    let got = drain(stream);
    let found = entries(&sim, "");
    let ordinals: Vec<_> = found.iter().map(|entry| entry["ordinal"].as_u64().unwrap()).collect();
    assert_eq!(ordinals, [1, 2, 3]);
    let bytes: u64 = found.iter().map(|entry| entry["delivered"]["bytes"].as_u64().unwrap()).sum();
    assert_eq!(bytes, got.len() as u64);
    assert!(found.iter().all(|entry| entry["delivered"]["state"] == "complete"));
}

#[test]
fn filters_pages_and_clearing() {
    let sim = Sim::start(&[]);
    let information =
        call("dealer-information", &json!({ "type": "dealer.information.request" })).to_string();
    for client in ["a", "b c"] {
        http("POST", &sim.url(), &[("X-Sim-Client", client)], &information);
        http(
            "POST",
            &sim.url(),
            &[("X-Sim-Client", client), ("X-Sim-Fault", "rate_limited")],
            &search(1).to_string(),
        );
    }
    let seqs = |query: &str| -> Vec<u64> {
        entries(&sim, query).iter().map(|entry| entry["seq"].as_u64().unwrap()).collect()
    };
    assert_eq!(seqs(""), [1, 2, 3, 4]);
    assert_eq!(seqs("client=b+c"), [3, 4]);
    assert_eq!(seqs("skill=inventory.search"), [2, 4]);
    assert_eq!(seqs("fault=rate_limited&client=a"), [2]);
    assert_eq!(seqs("after=1&limit=2"), [2, 3]);
    assert_eq!(page(&sim, "after=1&limit=2")["next"], 3);
    let conversation = entries(&sim, "limit=1")[0]["conversation"].as_str().unwrap().to_owned();
    assert_eq!(seqs(&format!("conversation={conversation}")), [1]);
    let (status, _, body) = http("GET", &sim.admin("/journal?limit=0&colour=red"), &[], "");
    assert!(status == 400 && body.contains("limit") && body.contains("colour"), "{status} {body}");
    let metrics = http("GET", &sim.admin("/metrics"), &[], "").2;
    assert!(metrics.contains("dealer_sim_journal_recorded_total 4\n"), "{metrics}");

    assert_eq!(http("DELETE", &sim.admin("/journal"), &[], "").0, 204);
    assert!(seqs("").is_empty());
    http("POST", &sim.url(), &[], &information);
    assert_eq!(seqs(""), [5]);
    assert_eq!(page(&sim, "")["dropped"], 0);
    http("POST", &sim.admin("/reset"), &[], "");
    assert!(seqs("").is_empty());
    for (method, path, status) in [
        ("POST", "/journal", 405),
        ("GET", "/verify", 405),
        ("POST", "/journal/stream", 405),
        ("GET", "/journal/x", 404),
    ] {
        assert_eq!(http(method, &sim.admin(path), &[], "").0, status, "{method} {path}");
    }
}

#[test]
fn questions_are_answered_and_what_is_gone_is_unknown() {
    let sim = Sim::start(&["--journal", "2"]);
    let ask = |make: &str| {
        let payload = json!({ "type": "inventory.search.request", "filters": { "make": [make] } });
        http("POST", &sim.url(), &[], &call("inventory-search", &payload).to_string());
    };
    let honda = json!({ "match": { "payload": { "filters": { "make": ["Honda"] } } }, "count": 1 });
    ask("Honda");
    assert_eq!(verify(&sim, &honda)["verdict"], "pass");
    let verdict = verify(&sim, &json!({ "match": { "payload": { "filters": { "make": ["Kia"] } } } }));
    assert_eq!(verdict["verdict"], "fail");
    assert_eq!(verdict["nearest"][0]["differs"][0]["member"], "payload/filters/make/0");
    (0..2).for_each(|_| ask("Ford"));
    let verdict = verify(&sim, &honda);
    assert_eq!((verdict["verdict"].as_str(), &verdict["dropped"]), (Some("unknown"), &json!(1)));
    let page = page(&sim, "");
    assert_eq!((page["entries"].as_array().unwrap().len(), &page["dropped"]), (2, &json!(1)));
    let (status, _, body) = http("POST", &sim.admin("/verify"), &[], "{\"match\":{\"skil\":1},\"count\":-1}");
    assert!(status == 400 && body.contains("/match/skil") && body.contains("/count"), "{status} {body}");
}

/// The lines of a stream up to so many events.
fn events(stream: TcpStream, count: usize) -> Vec<String> {
    let mut lines = Vec::new();
    for line in BufReader::new(stream).lines() {
        let line = line.unwrap_or_default();
        if line.starts_with("id: ") || line.starts_with("data: ") || line.starts_with("content-type") {
            lines.push(line);
        }
        if lines.iter().filter(|line| line.starts_with("data: ")).count() == count {
            break;
        }
    }
    lines
}

#[test]
fn a_stream_brings_what_is_recorded_and_ends_with_the_server() {
    let mut sim = Sim::start(&[]);
    let open = |query: &str, more: &str| {
        let (mut stream, path) = connect(&sim.admin(&format!("/journal/stream{query}")));
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n{more}\r\n").as_bytes()).unwrap();
        stream
    };
    let all = open("", "");
    let searches = open("?skill=inventory.search", "");
    let information =
        call("dealer-information", &json!({ "type": "dealer.information.request" })).to_string();
    http("POST", &sim.url(), &[], &information);
    let later = open("", "Last-Event-ID: 1\r\n");
    http("POST", &sim.url(), &[], &search(1).to_string());
    let lines = events(all.try_clone().unwrap(), 2);
    assert_eq!(lines[0], "content-type: text/event-stream");
    assert_eq!((lines[1].as_str(), lines[3].as_str()), ("id: 1", "id: 2"));
    for line in lines.iter().filter_map(|line| line.strip_prefix("data: ")) {
        holds("journal-entry", &serde_json::from_str(line).unwrap());
    }
    assert_eq!(events(searches, 1)[1], "id: 2");
    assert_eq!(events(later, 1)[1], "id: 2");
    assert_eq!(http("GET", &sim.admin("/journal/stream?limit=x"), &[], "").0, 400);
    // A stream more than there may be; the others end when their clients have gone.
    let held: Vec<_> = (0..16).map(|_| open("", "")).collect();
    let refused = (0..100).any(|_| {
        std::thread::sleep(Duration::from_millis(10));
        let mut stream = open("", "Connection: close\r\n");
        let mut start = [0; 12];
        stream.read_exact(&mut start).unwrap();
        start == *b"HTTP/1.1 503"
    });
    assert!(refused);
    drop(held);
    assert_eq!(sim.stop().0, 0);
    let rest = drain(all);
    assert!(rest.ends_with(b"0\r\n\r\n"), "{:?}", String::from_utf8_lossy(&rest));
}

#[test]
fn a_stop_says_what_was_cut_short() {
    let folder = tempfile::tempdir().unwrap();
    let limits = folder.path().join("limits.toml");
    std::fs::write(&limits, "drain_ms = 100\n").unwrap();
    let mut sim = Sim::start(&["--limits", limits.to_str().unwrap()]);
    let (mut stream, path) = connect(&sim.admin("/journal/stream"));
    stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n").as_bytes()).unwrap();
    let asked = send(&sim, &search(20).to_string(), "X-Sim-Fault: drip(bytes=100, every=500ms)\r\n");
    std::thread::sleep(Duration::from_millis(100));
    sim.stop();
    let lines = events(stream, 1);
    let entry: Value = serde_json::from_str(lines.last().unwrap().strip_prefix("data: ").unwrap()).unwrap();
    assert_eq!(entry["delivered"]["state"], "cut", "{entry}");
    _ = asked.shutdown(Shutdown::Both);
}

#[test]
fn each_of_many_dealers_has_its_part() {
    let sim = Sim::start(&["--dealers", "2", "--vehicles", "40"]);
    let listed = http("GET", &sim.admin("/journal"), &[], "").2;
    assert!(listed.contains("\"entries\":[]"), "{listed}");
    let root = sim.url().replace("/a2a", "");
    let directory = http("GET", &format!("{root}/"), &[("Accept", "application/json")], "").2;
    let directory: Value = serde_json::from_str(&directory).unwrap();
    let ids: Vec<_> = directory["dealers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|dealer| dealer["dealer_id"].as_str().unwrap())
        .collect();
    let (first, second) = (ids[0], ids[1]);
    http("POST", &sim.url(), &[], &search(1).to_string());
    http("POST", &format!("{root}/d/{second}/a2a"), &[], &search(1).to_string());
    http("GET", &format!("{root}/d/{second}/.well-known/agent-card.json"), &[], "");
    let dealers: Vec<_> = entries(&sim, "").iter().map(|entry| entry["dealer"].clone()).collect();
    assert_eq!(dealers, [first, second, second]);
    let (status, _, body) = http("GET", &sim.admin(&format!("/d/{second}/journal?limit=1")), &[], "");
    let part: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((status, &part["entries"][0]["seq"]), (200, &json!(2)));
    let question = json!({ "match": { "skill": "inventory.search" }, "count": 1 }).to_string();
    let (_, _, body) = http("POST", &sim.admin(&format!("/d/{second}/verify")), &[], &question);
    assert!(body.contains("\"pass\""), "{body}");
    assert_eq!(http("DELETE", &sim.admin(&format!("/d/{second}/journal")), &[], "").0, 405);
    // The reset of one leaves what the others were asked.
    http("POST", &sim.admin(&format!("/d/{second}/reset")), &[], "");
    assert_eq!(entries(&sim, "").len(), 3);
}

#[test]
fn without_a_journal_there_is_none() {
    let sim = Sim::start(&["--journal", "0"]);
    assert_eq!(http("POST", &sim.url(), &[], &search(1).to_string()).0, 200);
    for (method, path) in
        [("GET", "/journal"), ("GET", "/journal/stream"), ("POST", "/verify"), ("DELETE", "/journal")]
    {
        let (status, _, body) = http(method, &sim.admin(path), &[], "{}");
        assert!(status == 404 && body.contains("--journal 0"), "{method} {path}: {status} {body}");
    }
}
