//! What scenarios do on the wire: retries, loops, pacing, raw requests, rows, shards and replays, through the real program.
#![allow(clippy::unwrap_used, clippy::panic, reason = "clippy lets only functions marked as tests do so")]

mod support;

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use serde_json::{Value, json};
use support::{Heard, Manner, Server, Setup, loadgen, scenario};

fn server(manners: &[Manner]) -> Server {
    Server::start(Setup { manners: manners.to_vec(), keeps: true, filling: 10, ..Setup::default() })
}

/// Runs a scenario of one flow; gives the exit code, the summary and standard error.
fn run_text(text: &str, flags: &[&str]) -> (i32, Value, String) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("t.yaml");
    std::fs::write(folder.path().join("rows.csv"), "word\none\ntwo\nthree\nfour\nfive\n").unwrap();
    std::fs::write(&path, format!("name: t\n{text}")).unwrap();
    run_file(&path, flags)
}

fn run_file(path: &Path, flags: &[&str]) -> (i32, Value, String) {
    let path = path.display().to_string();
    let output = loadgen(&[&["run", &path, "--format", "json"], flags].concat());
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    let summary = serde_json::from_slice(&output.stdout).unwrap_or(Value::Null);
    (output.status.code().unwrap_or(-1), summary, told)
}

fn run_on(server: &Server, text: &str, flags: &[&str]) -> Value {
    let url = server.url();
    let (_, summary, told) = run_text(text, &[&["--endpoint", &url], flags].concat());
    assert!(summary.is_object(), "{told}");
    summary
}

const SEARCH: &str = "step: s, skill: inventory.search";

fn gaps(heard: &[Heard]) -> Vec<u128> {
    heard.windows(2).map(|pair| pair[1].at.duration_since(pair[0].at).as_millis()).collect()
}

#[test]
fn a_retry_waits_for_the_hint_and_each_attempt_counts() {
    let server = server(&[Manner::Limited(150), Manner::Limited(80), Manner::Right]);
    let text = format!("flows: {{ f: [ {{ {SEARCH}, retry: {{ honour: server, max: 3, jitter: 0 }} }} ] }}");
    let summary = run_on(&server, &text, &["--users", "1", "--sessions", "3"]);
    assert_eq!(summary["outcomes"], json!({"aap.RATE_LIMITED": 6, "ok": 3}), "{summary:#}");
    assert_eq!(summary["sessions"]["finished"], 3);
    let step = &summary["steps"]["f/s"];
    assert_eq!((&step["sent"], &step["retries"], &step["total"]["count"]), (&json!(9), &json!(6), &json!(3)));
    // Both waits are in the step's total, and in no attempt's response.
    assert!(step["total"]["min_ms"].as_f64().unwrap() >= 229.0, "{step:#}");
    assert!(step["response"]["p50_ms"].as_f64().unwrap() < 75.0, "{step:#}");
    for (index, gap) in gaps(&server.heard()).into_iter().enumerate() {
        let hint = [150, 80, 0][index % 3];
        assert!(gap >= hint, "{index}: {gap} before {hint}");
    }
}

#[test]
fn retries_end_and_the_last_outcome_is_the_steps() {
    let server = server(&[Manner::Busy]);
    let text = format!(
        "flows: {{ f: [ {{ {SEARCH}, retry: {{ honour: fixed, max: 2, delays: [ 20ms, 40ms ] }} }} ] }}"
    );
    let summary = run_on(&server, &text, &["--users", "1", "--sessions", "2"]);
    assert_eq!(summary["outcomes"], json!({"http.503": 6}));
    assert_eq!(summary["sessions"]["failed"], 2);
    let gaps = gaps(&server.heard());
    assert!(gaps[0] >= 20 && gaps[1] >= 40 && gaps[0] < 900, "{gaps:?}");
}

#[test]
fn a_lost_reply_is_asked_for_again_with_the_same_key_or_a_fresh_one() {
    for (word, keys) in [("keep", 1), ("fresh", 3)] {
        let server = server(&[Manner::Close, Manner::Reset, Manner::Right]);
        let request = "customer: \"${buyer()}\", consent: \"${consent(email)}\"";
        let text = format!(
            "flows: {{ f: [ {{ step: l, skill: lead.submit, request: {{ {request} }}, retry: {{ honour: exponential, \
             delays: 30ms, idempotency_key: {word} }} }} ] }}"
        );
        let summary = run_on(&server, &text, &["--users", "1", "--sessions", "1"]);
        assert_eq!(summary["outcomes"], json!({"ok": 1, "transport.eof": 1, "transport.reset": 1}));
        let heard = server.heard();
        let payloads: Vec<Value> = heard.iter().map(Heard::payload).collect();
        let different: std::collections::BTreeSet<_> =
            payloads.iter().map(|payload| payload["idempotency_key"].as_str().unwrap().to_owned()).collect();
        assert_eq!(different.len(), keys, "{word}");
        assert!(different.iter().all(|key| key.len() > 36));
        let same_bytes = payloads.iter().all(|payload| *payload == payloads[0]);
        assert_eq!(same_bytes, word == "keep");
        // A message is a message of its own all the same.
        let ids: std::collections::BTreeSet<_> = heard
            .iter()
            .map(|heard| {
                serde_json::from_str::<Value>(&heard.body).unwrap()["params"]["message"]["messageId"]
                    .to_string()
            })
            .collect();
        assert_eq!(ids.len(), 3);
    }
}

#[test]
fn loops_repeat_with_draws_of_their_own_and_stop_when_told() {
    let server = server(&[Manner::Right]);
    let text = "
flows:
  f:
    - loop: 3
      do:
        - { step: s, skill: inventory.search, request: { query: \"${uuid()}\" }, extract: { more: /data/total } }
    - loop: { while: \"${more}\", max: 4 }
      do:
        - { step: t, skill: inventory.search, request: { query: \"again ${more}\" } }
    - loop: { while: \"${nothing}\" }
      do:
        - { step: u, skill: inventory.search }
variables: { nothing: null }
";
    let summary = run_on(&server, text, &["--users", "1", "--sessions", "2"]);
    let sent = |step: &str| summary["steps"][step]["sent"].clone();
    assert_eq!((sent("f/s"), sent("f/t"), sent("f/u")), (json!(6), json!(8), json!(0)));
    let queries: std::collections::BTreeSet<String> =
        server.heard().iter().map(|heard| heard.payload()["query"].to_string()).collect();
    assert_eq!(queries.len(), 7, "{queries:?}");
}

#[test]
fn pacing_is_a_period_and_not_a_pause() {
    let server = server(&[Manner::Slow(Duration::from_millis(60))]);
    let text = format!(
        "flows: {{ f: [ {{ loop: 3, do: [ {{ {SEARCH} }}, {{ pacing: 100ms }} ] }}, {{ pacing: 400ms }} ] }}"
    );
    let summary = run_on(&server, &text, &["--users", "1", "--sessions", "2"]);
    assert_eq!(summary["outcomes"], json!({"ok": 6}));
    let gaps = gaps(&server.heard());
    // Three rounds of 100 ms each, then the session's own 400 ms.
    for (gap, wanted) in gaps.iter().zip([100, 100, 200, 100, 100]) {
        assert!((wanted - 5..wanted + 60).contains(gap), "{gaps:?}");
    }
}

#[test]
fn raw_requests_break_the_rules_they_are_meant_to() {
    let text = format!(
        "
flows:
  f:
    - {{ step: parse, skill: inventory.search, raw: {{ body: \"{{ no JSON\" }}, expect: rpc.-32700 }}
    - {{ step: bytes, skill: inventory.search, raw: {{ body_base64: /w== }}, expect: rpc.-32700 }}
    - {{ step: version, skill: inventory.search, raw: {{ headers: {{ A2A-Version: \"9.9\" }} }}, expect: a2a.-32009 }}
    - {{ step: method, skill: inventory.search, raw: {{ envelope: {{ method: Nope }} }}, expect: rpc.-32601 }}
    - {{ step: role, skill: inventory.search, raw: {{ envelope: {{ params: {{ message: {{ role: ROLE_AGENT }} }} }} }}, expect: rpc.-32602 }}
    - {{ step: put, skill: inventory.search, raw: {{ method: PUT }}, expect: http.405 }}
    - {{ step: elsewhere, skill: inventory.search, raw: {{ path: /nowhere }}, expect: http.404 }}
    - {{ step: id, skill: inventory.search, raw: {{ envelope: {{ id: 7 }} }} }}
    - {{ {SEARCH} }}
"
    );
    let (code, summary, told) = run_text(&text, &["--users", "1", "--sessions", "3"]);
    assert_eq!(code, 0, "{summary:#} {told}");
    assert_eq!(summary["sessions"]["finished"], 3, "{summary:#}");
    assert_eq!(summary["requests"]["errors"], 0);
}

#[test]
fn a_raw_lead_does_not_get_past_the_guard() {
    let server = Server::start(Setup { is_simulator: false, ..Setup::default() });
    let url = server.url();
    for raw in [
        "body: '{\"type\":\"lead.submit.request\"}'",
        "body: \"${word}\"",
        "body_base64: bGVhZC5zdWJtaXQucmVxdWVzdA==",
    ] {
        let text = format!("variables: {{ word: x }}\nflows: {{ f: [ {{ {SEARCH}, raw: {{ {raw} }} }} ] }}");
        let (code, _, told) = run_text(&text, &["--endpoint", &url, "--allow-real-leads", "--sessions", "1"]);
        assert!(code == 1 && told.contains("f/s may send a lead that no test mark"), "{raw}: {code} {told}");
    }
    // What cannot be a lead is none of the guard's business.
    let text = format!("flows: {{ f: [ {{ {SEARCH}, raw: {{ body: 'x' }}, expect: ok }} ] }}");
    let (code, ..) = run_text(&text, &["--endpoint", &url, "--sessions", "1", "--users", "1"]);
    assert_ne!(code, 1);
    assert_eq!(server.requests(), 1);
}

#[test]
fn rows_that_are_used_once_end_the_run() {
    let server = server(&[Manner::Right]);
    let text = "
variables: { rows: { file: rows.csv, pick: unique }, one: { file: rows.csv, pick: shared } }
flows: { f: [ { step: s, skill: inventory.search, request: { query: \"${rows.word}\", make: \"${one.word}\" } } ] }
";
    let url = server.url();
    let (_, summary, told) = run_text(text, &["--endpoint", &url, "--rate", "100/s", "--duration", "30s"]);
    assert!(told.contains("5 sessions (no more rows)"), "{told}");
    assert_eq!(summary["sessions"]["finished"], 5);
    let mut words: Vec<String> =
        server.heard().iter().map(|heard| heard.payload()["query"].as_str().unwrap().to_owned()).collect();
    words.sort();
    assert_eq!(words, ["five", "four", "one", "three", "two"]);
    let makes: std::collections::BTreeSet<String> =
        server.heard().iter().map(|heard| heard.payload()["make"].to_string()).collect();
    assert_eq!(makes.len(), 1, "{makes:?}");
}

/// Each request without what the moment or the dealer put into it: times and conversations.
fn bag<'h>(heard: impl IntoIterator<Item = &'h Heard>) -> BTreeMap<String, usize> {
    fn still(value: &mut Value) {
        match value {
            Value::String(text) => {
                let still = |word: &str| match word.parse::<jiff::Timestamp>() {
                    Ok(_) => "<time>".to_owned(),
                    Err(_) => word.to_owned(),
                };
                *text = text.split(' ').map(still).collect::<Vec<_>>().join(" ");
            }
            Value::Array(items) => items.iter_mut().for_each(still),
            Value::Object(members) => members.values_mut().for_each(still),
            _ => {}
        }
    }
    let mut bag = BTreeMap::new();
    for heard in heard {
        let mut body: Value = serde_json::from_str(&heard.body).unwrap();
        if let Some(message) = body["params"]["message"].as_object_mut() {
            message.remove("contextId");
        }
        still(&mut body);
        *bag.entry(body.to_string()).or_default() += 1;
    }
    bag
}

#[test]
fn four_shards_send_what_one_process_sends() {
    for load in [
        &["--rate", "100/s", "--arrivals", "poisson", "--duration", "2s"][..],
        &["--users", "6", "--sessions", "120"],
    ] {
        let whole = server(&[Manner::Right]);
        let path = scenario("shopping");
        let flags = |url: &str| {
            [&["--endpoint", url, "--think", "0x"], load]
                .concat()
                .iter()
                .map(|f| (*f).to_owned())
                .collect::<Vec<_>>()
        };
        let own = flags(&whole.url());
        let own: Vec<&str> = own.iter().map(String::as_str).collect();
        let (code, summary, told) = run_file(Path::new(&path), &own);
        assert!(matches!(code, 0 | 4), "{summary:#} {told}");
        let parts = server(&[Manner::Right]);
        let own = flags(&parts.url());
        let processes: Vec<_> = (1..=4)
            .map(|index| {
                let shard = format!("{index}/4");
                let line: Vec<&str> = ["run", &path, "--quiet", "--shard", &shard, "--start-at", "+500ms"]
                    .into_iter()
                    .chain(own.iter().map(String::as_str))
                    .collect();
                support::command(&line).stdout(std::process::Stdio::null()).spawn().unwrap()
            })
            .collect();
        for mut process in processes {
            // A busy machine may make a measurement invalid (4); what is sent is the same.
            let code = process.wait().unwrap().code();
            assert!(matches!(code, Some(0 | 4)), "{code:?}");
        }
        let (whole, parts) = (whole.heard(), parts.heard());
        assert!(whole.len() > 200, "{}", whole.len());
        // The whole of each request: ids, draws of the seed, rows.
        assert_eq!(bag(&whole), bag(&parts));
    }
}

#[test]
#[expect(clippy::disallowed_methods, reason = "a test of a start at a certain time reads the clock")]
fn a_start_that_is_over_is_refused_and_one_to_come_is_waited_for() {
    let text = format!("flows: {{ f: [ {{ {SEARCH} }} ] }}");
    let (code, _, told) = run_text(&text, &["--start-at", "2020-01-01T00:00:00Z", "--sessions", "1"]);
    assert!(code == 1 && told.contains("that time is over"), "{told}");
    let at = jiff::Timestamp::now() + Duration::from_secs(3);
    let server = server(&[Manner::Right]);
    let (url, start) = (server.url(), at.to_string());
    let (_, summary, told) = run_text(&text, &["--endpoint", &url, "--start-at", &start, "--sessions", "1"]);
    assert!(told.contains("to start at"), "{told}");
    assert_eq!(summary["sessions"]["finished"], 1);
    assert_eq!(summary["run"]["started"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap(), at);
    assert!(jiff::Timestamp::now() >= at);
}

#[test]
fn replies_are_held_against_their_schema_if_asked_for() {
    let shopping = scenario("shopping");
    let flags = ["--validate", "full", "--users", "2", "--sessions", "60", "--think", "0x"];
    let (code, summary, told) = run_file(Path::new(&shopping), &flags);
    assert_eq!(code, 0, "{summary:#} {told}");
    assert_eq!(summary["requests"]["errors"], 0);
    // The server of these tests answers with vehicles that lack nearly everything.
    let server = server(&[Manner::Right]);
    let text = format!("flows: {{ f: [ {{ {SEARCH} }} ] }}");
    let outcomes = |validate: &str| {
        run_on(&server, &text, &["--users", "1", "--sessions", "100", "--validate", validate])["outcomes"]
            .clone()
    };
    assert_eq!(outcomes("off"), json!({"ok": 100}));
    assert_eq!(outcomes("sample"), json!({"ok": 95, "protocol.schema": 5}));
    assert_eq!(outcomes("full"), json!({"protocol.schema": 100}));
}

#[test]
fn the_contracts_in_the_field_are_spoken_as_their_cards_say() {
    let shopping = scenario("shopping");
    for contract in ["1.0", "1.1", "1.2", "1.3"] {
        let flags = [
            "--contract",
            contract,
            "--validate",
            "full",
            "--users",
            "2",
            "--sessions",
            "60",
            "--think",
            "0x",
        ];
        let (code, summary, told) = run_file(Path::new(&shopping), &flags);
        assert_eq!(code, 0, "{contract}: {summary:#} {told}");
        assert_eq!(summary["requests"]["errors"], 0, "{contract}: {summary:#}");
        assert_eq!(summary["contract"], contract, "{summary:#}");
        let leads =
            ["buy/lead", "buy/test-drive"].map(|step| summary["steps"][step]["outcomes"]["ok"].as_u64());
        assert!(leads.iter().all(|ok| ok.is_some_and(|ok| ok > 0)), "{contract}: {summary:#}");
    }
    // Found on the card, the errors and their hints read as that contract has them.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let dealer = dealer_sim::Dealer::builder().vehicles(40).contract("1.1".parse().unwrap());
    let dealer = dealer
        .skills(&[dealer_sim::protocol::Skill::InventorySearch])
        .rate_limit("5/s,burst=1".parse().unwrap());
    let dealer = runtime.block_on(dealer.start()).unwrap();
    let text = format!(
        "flows: {{ f: [ {{ {SEARCH}, expect: [ok, aap.RATE_LIMITED], retry: {{ honour: server, max: 3, jitter: 0 }} }} ] }}"
    );
    let flags = ["--endpoint", &dealer.card_url(), "--users", "1", "--sessions", "4"];
    let (code, summary, told) = run_text(&text, &flags);
    assert!(matches!(code, 0 | 4), "{summary:#} {told}");
    assert_eq!(summary["contract"], "1.1");
    // One that did not wait as long as it was told would be refused again and again.
    assert_eq!(summary["outcomes"], json!({"ok": 4, "aap.RATE_LIMITED": 3}), "{summary:#}");
}

#[test]
fn a_journal_is_sent_again_with_its_timing() {
    let folder = tempfile::tempdir().unwrap();
    let (journal, out) = (folder.path().join("journal.jsonl"), folder.path().join("again.yaml"));
    let first = server(&[Manner::Right]);
    let url = first.url();
    let shopping = scenario("shopping");
    let (code, ..) = run_file(
        Path::new(&shopping),
        &["--endpoint", &url, "--rate", "30/s", "--duration", "1s", "--think", "0.1x"],
    );
    assert!(matches!(code, 0 | 4), "{code}");
    // The journal of a dealer that has seen this, in the order in which its replies ended.
    let heard = first.heard();
    let start = heard[0].at;
    let mut conversations: BTreeMap<String, String> = BTreeMap::new();
    let entries: Vec<String> = heard
        .iter()
        .enumerate()
        .map(|(index, heard)| {
            let body: Value = serde_json::from_str(&heard.body).unwrap();
            let context = &body["params"]["message"]["contextId"];
            // The server calls a new conversation after the number of its first request.
            let conversation = context.as_str().map_or_else(|| format!("ctx-{index}"), str::to_owned);
            conversations.insert(conversation.clone(), String::new());
            json!({"seq": index + 1, "traffic_ns": heard.at.duration_since(start).as_nanos() as u64, "dealer": "d",
                "conversation": conversation, "method": "SendMessage", "outcome": "ok",
                "request": {"bytes": heard.body.len(), "body": heard.body}, "delivered": {"bytes": 1, "state": "complete", "ms": 0.1}})
            .to_string()
        })
        .collect();
    std::fs::write(&journal, entries.join("\n")).unwrap();
    let (journal, out_text) = (journal.display().to_string(), out.display().to_string());
    let output = loadgen(&["import", &journal, "--out", &out_text]);
    let told = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(told.contains(&format!("{} sessions", conversations.len())), "{told}");
    // What is there is not replaced unless told so.
    assert_eq!(loadgen(&["import", &journal, "--out", &out_text]).status.code(), Some(1));
    assert!(loadgen(&["import", &journal, "--out", &out_text, "--force"]).status.success());

    let second = server(&[Manner::Right]);
    let url = second.url();
    let (code, summary, told) = run_file(&out, &["--endpoint", &url]);
    assert!(matches!(code, 0 | 4), "{summary:#} {told}");
    assert_eq!(summary["sessions"]["finished"], conversations.len());
    let payloads = |heard: &[Heard]| {
        let mut payloads: Vec<String> = heard.iter().map(|heard| heard.payload().to_string()).collect();
        payloads.sort();
        payloads
    };
    let again = second.heard();
    assert_eq!(payloads(&heard), payloads(&again));
    let length = |heard: &[Heard]| heard[heard.len() - 1].at.duration_since(heard[0].at).as_millis() as i64;
    assert!((length(&heard) - length(&again)).abs() < 250, "{} {}", length(&heard), length(&again));
    // Twice as fast takes half the time but for the pauses within sessions.
    let output = loadgen(&["check", &out_text, "--trace-speed", "2x"]);
    let explained = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(explained.contains("trace at 2x") && explained.contains("sessions in all"), "{explained}");
}

#[test]
fn check_tells_the_load_and_its_totals() {
    let output = loadgen(&[
        "check",
        &scenario("smoke"),
        "--rate",
        "0/s..100/s",
        "--duration",
        "10s",
        "--shard",
        "1/2",
    ]);
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    for part in [
        "load: 0/s to 100/s constant for 10s, part 1 of 2",
        "25/s on average, 50/s at most",
        "250 sessions in all, the warm-up included; all 2 parts together 500",
    ] {
        assert!(text.contains(part), "{part} in {text}");
    }
}
