//! The load generator's outcome counts against the simulator's own counters, fault by fault: not one more, not one less.
#![allow(clippy::unwrap_used, clippy::panic, reason = "clippy lets only functions marked as tests do so")]

mod support;

use std::collections::BTreeMap;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use dealer_sim::faults::{Plan, registry};
use dealer_sim::server::tls::{Certificate, TlsOptions};
use dealer_sim::{Dealer, RunningDealer};
use serde_json::{Value, json};
use support::{loadgen, scenario};

/// A dealer with these rules, and whatever lives as long as it.
fn dealer(rules: &str) -> (tokio::runtime::Runtime, RunningDealer) {
    dealer_of(rules, false)
}

/// The same; under TLS with a certificate of its own if `is_secure`.
fn dealer_of(rules: &str, is_secure: bool) -> (tokio::runtime::Runtime, RunningDealer) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let plan = Plan::parse("plan.yaml", &format!("name: t\nrules:\n{rules}"), registry()).unwrap();
    let mut builder = Dealer::builder().seed(11).faults(plan);
    if is_secure {
        let certificate = Certificate::SelfSigned;
        builder = builder.tls(TlsOptions { certificate, client_ca: None, client_optional: false });
    }
    let dealer = runtime.block_on(builder.start()).unwrap();
    (runtime, dealer)
}

/// The body of a reply of the simulator's admin endpoint.
fn admin(dealer: &RunningDealer, path: &str) -> String {
    let admin = dealer.admin_url().unwrap();
    let host = admin.trim_start_matches("http://").trim_end_matches('/').to_owned();
    let mut stream = TcpStream::connect(&host).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n").unwrap();
    let mut text = String::new();
    stream.read_to_string(&mut text).unwrap();
    text.split_once("\r\n\r\n").unwrap().1.to_owned()
}

/// A counter of the simulator's metrics.
fn counter(dealer: &RunningDealer, line: &str) -> u64 {
    let text = admin(dealer, "/metrics");
    let found = text.lines().find_map(|found| found.strip_prefix(line)?.trim().parse().ok());
    found.unwrap_or_else(|| panic!("{line} in {text}"))
}

fn run(dealer: &RunningDealer) -> Value {
    run_scenario(dealer, "smoke", &["--users", "4", "--sessions", "400"])
}

fn run_scenario(dealer: &RunningDealer, name: &str, flags: &[&str]) -> Value {
    let (path, url) = (scenario(name), dealer.card_url());
    let output =
        loadgen(&[&["run", &path, "--endpoint", &url, "--format", "json", "--quiet"], flags].concat());
    serde_json::from_slice(&output.stdout)
        .unwrap_or_else(|error| panic!("{error}: {}", String::from_utf8_lossy(&output.stderr)))
}

/// A bit of everything that can go wrong: refusals, other HTTP, bent replies, and deliveries that fail before and after the
/// work was done.
const EVERYTHING: &str =
    "  - { id: limited, when: { skill: inventory.search }, effect: rate_limited(retry_after=2s), chance: 5% }
  - { id: busy, when: { skill: inventory.search }, effect: http_503, chance: 5% }
  - { id: forgetful, when: { skill: inventory.search }, effect: context_id_missing, chance: 5% }
  - { id: packed, when: { skill: inventory.search }, effect: http_gzip_claimed, chance: 5% }
  - { id: cut, when: { skill: inventory.search }, effect: fin_in_body, chance: 5% }
  - { id: sold, when: { skill: inventory.vehicle }, effect: vehicle_unavailable, chance: 5% }
  - { id: flat, when: { skill: inventory.vehicle }, effect: result_flat, chance: 5% }
  - { id: truncated, when: { skill: inventory.vehicle }, effect: truncated_json, chance: 5% }
  - { id: swapped, when: { skill: inventory.vehicle }, effect: other_vehicle_in_detail, chance: 5% }
  - { id: mute, when: { skill: inventory.vehicle }, effect: silence_before_commit, chance: 3% }
  - { id: halted, when: { skill: inventory.vehicle }, effect: silence_in_body, chance: 3% }
  - { id: undone, when: { skill: lead.submit }, effect: reset_before_commit, chance: 20% }
  - { id: lost, when: { skill: lead.submit }, effect: reset_after_commit, chance: 20% }
  - { id: broken, when: { skill: lead.submit }, effect: internal_error, chance: 20% }
";

/// The calls of the journal, which has dropped nothing.
fn calls_of_journal(dealer: &RunningDealer, binding: &str) -> Vec<Value> {
    let (mut calls, mut after) = (Vec::new(), 0);
    loop {
        let page: Value =
            serde_json::from_str(&admin(dealer, &format!("/journal?limit=1000&after={after}"))).unwrap();
        assert_eq!(page["dropped"], 0);
        let entries = page["entries"].as_array().unwrap();
        if entries.is_empty() {
            return calls;
        }
        calls.extend(entries.iter().filter(|entry| entry["binding"] == binding).cloned());
        after = page["next"].as_u64().unwrap();
    }
}

/// What the caller of a call of the journal must have seen, by what the journal says of it: how its delivery ended first, then
/// what bent its reply, then its answer.
fn seen(entry: &Value, is_http2: bool) -> String {
    let effects: Vec<&str> = entry["faults"]
        .as_array()
        .unwrap()
        .iter()
        .map(|fault| fault["effect"].as_str().unwrap().split('(').next().unwrap())
        .collect();
    let is_of = |wanted: &str| effects.contains(&wanted);
    match entry["delivered"]["state"].as_str().unwrap() {
        // On HTTP/2 both end the stream.
        "reset" | "cut" if is_http2 => return "transport.stream_reset".to_owned(),
        "reset" => return "transport.reset".to_owned(),
        "cut" => return "transport.eof".to_owned(),
        "silent" if entry["delivered"]["bytes"] == 0 => return "timeout.first_byte".to_owned(),
        "silent" => return "timeout.body".to_owned(),
        state => assert_eq!(state, "complete", "{entry:#}"),
    }
    // What bends A2A's envelope finds nothing to bend behind another door.
    let of_a2a = [("context_id_missing", "protocol.context_id"), ("result_flat", "protocol.flat_result")];
    let of_all = [
        ("http_gzip_claimed", "protocol.content_encoding"),
        ("truncated_json", "protocol.not_json"),
        ("other_vehicle_in_detail", "check.same-vin"),
    ];
    let of_a2a = of_a2a.iter().filter(|_| entry["binding"] == "a2a");
    let mut bent = of_a2a.chain(&of_all);
    match bent.find(|(effect, _)| is_of(effect)) {
        Some((_, word)) => (*word).to_owned(),
        None => entry["outcome"].as_str().unwrap().to_owned(),
    }
}

#[test]
fn every_outcome_and_lead_of_a_faulty_conversation_is_in_the_journal() {
    let (_runtime, dealer) = dealer(EVERYTHING);
    let summary = holds_everything(&dealer, &["--binding", "a2a"], 600, 12);
    assert!(summary["connections"]["opened"].as_u64().unwrap() > 8);
}

#[test]
fn the_same_scenario_counts_as_well_through_the_pap_door() {
    let (_runtime, dealer) = dealer(EVERYTHING);
    holds_everything(&dealer, &["--binding", "pap"], 600, 10);
}

#[test]
fn the_same_scenario_counts_as_well_through_the_mcp_door() {
    let (_runtime, dealer) = dealer(EVERYTHING);
    holds_everything(&dealer, &["--binding", "mcp"], 600, 10);
}

#[test]
fn the_same_holds_over_http2_and_tls() {
    let folder = tempfile::tempdir().unwrap();
    let believed = folder.path().join("dealer.pem");
    for (is_secure, flags) in
        [(false, &["--http", "2"][..]), (true, &["--http", "2"]), (true, &["--http", "1.1"])]
    {
        let (_runtime, dealer) = dealer_of(EVERYTHING, is_secure);
        let mut flags = flags.to_vec();
        if let Some(certificate) = dealer.certificate() {
            std::fs::write(&believed, certificate).unwrap();
            flags.extend(["--ca", believed.to_str().unwrap()]);
        }
        let is_http2 = flags[1] == "2";
        let summary = holds_everything(&dealer, &flags, 250, if is_http2 { 11 } else { 12 });
        let connections = &summary["connections"];
        let threads = std::thread::available_parallelism().unwrap().get() as u64;
        // Eight users share one connection a thread, and no fault has ended it.
        assert_eq!(connections["opened"].as_u64().unwrap() <= threads, is_http2, "{connections:#}");
        assert!(!is_http2 || connections["closed_by_server"] == 0, "{connections:#}");
    }
}

/// Runs a conversation in which everything can go wrong, and holds what the load generator counts to what the dealer has done.
fn holds_everything(dealer: &RunningDealer, flags: &[&str], sessions: usize, kinds: usize) -> Value {
    let is_http2 = flags.contains(&"2");
    let binding = flags.iter().find(|flag| ["pap", "mcp"].contains(flag)).unwrap_or(&"a2a");
    let sessions = sessions.to_string();
    let usual = ["--users", "8", "--sessions", &sessions, "--think", "0x", "--timeout", "300ms"];
    let summary = run_scenario(dealer, "shopping", &[&usual, flags].concat());
    assert_eq!(summary["binding"], *binding);
    // What is silent is entered when its caller has gone, which may be a moment later.
    let finished = summary["requests"]["finished"].as_u64().unwrap() as usize;
    let calls = || calls_of_journal(dealer, binding);
    let entries = (0..1000).map(|_| calls()).find(|calls| calls.len() >= finished).unwrap();
    assert_eq!(entries.len(), finished);
    let count = |of: &dyn Fn(&Value) -> bool| entries.iter().filter(|entry| of(entry)).count() as u64;

    let mut by_word: BTreeMap<String, u64> = BTreeMap::new();
    entries.iter().for_each(|entry| *by_word.entry(seen(entry, is_http2)).or_default() += 1);
    assert_eq!(summary["outcomes"], json!(by_word));
    // All kinds took part, and so did the lawful refusals of a dealer without faults.
    assert!(by_word.len() >= kinds && by_word["ok"] > 200, "{by_word:?}");

    let metrics = admin(dealer, "/metrics");
    let mut fired = 0;
    for line in metrics.lines().filter_map(|line| line.strip_prefix("dealer_sim_faults_total{rule=\"")) {
        let (rule, times) = line.split_once("\"} ").unwrap();
        let is_its = |entry: &Value| {
            let faults = entry["faults"].as_array().unwrap();
            faults.iter().any(|fault| fault["trigger"].as_str().unwrap().ends_with(rule))
        };
        assert_eq!(times.parse::<u64>().unwrap(), count(&is_its), "{rule}");
        fired += 1;
    }
    assert_eq!(fired, EVERYTHING.lines().count());
    for line in metrics.lines().filter_map(|line| line.strip_prefix("dealer_sim_calls_total{skill=\"")) {
        let (skill, rest) = line.split_once("\",outcome=\"").unwrap();
        let (outcome, times) = rest.split_once("\"} ").unwrap();
        let of_journal = count(&|entry| entry["skill"] == skill && entry["outcome"] == outcome);
        assert_eq!(times.parse::<u64>().unwrap(), of_journal, "{skill} {outcome}");
    }

    // A lead is stored for each reply that came, and for those that were lost after the work was done.
    let of_leads = |name: &str| -> u64 {
        let steps = summary["steps"].as_object().unwrap();
        let leads = ["buy/lead", "buy/test-drive"].map(|step| steps[step]["outcomes"][name].as_u64());
        leads.into_iter().flatten().sum()
    };
    let lost = count(&|entry| {
        entry["skill"] == "lead.submit" && entry["outcome"] == "ok" && entry["delivered"]["state"] == "reset"
    });
    let stored = counter(dealer, "dealer_sim_leads_total");
    assert!(lost > 0 && of_leads("ok") > 0, "{lost} {summary:#}");
    assert_eq!(stored, of_leads("ok") + lost);
    summary
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

#[test]
fn a_door_is_found_by_its_url_alone_or_said_to_be_missing() {
    let (_runtime, dealer) =
        dealer("  - { id: none, when: { skill: lead.submit, first: 1 }, effect: latency }\n");
    let base = dealer.base_url().to_owned();
    for (binding, url) in [("pap", format!("{base}/pap/v3")), ("mcp", format!("{base}/mcp"))] {
        let flags = ["--endpoint-raw", &url, "--contract", "3.0", "--binding", binding];
        let usual = ["--users", "1", "--sessions", "5", "--format", "json", "--quiet"];
        let output = loadgen(&[&["run", &scenario("smoke")], &flags[..], &usual].concat());
        let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(summary["outcomes"], json!({"ok": 5}), "{binding}");
        assert_eq!(summary["binding"], binding);
        let calls = calls_of_journal(&dealer, binding);
        assert_eq!(calls.len(), 5, "{binding}");
    }
    let output = loadgen(&["run", &scenario("smoke"), "--contract", "2.0", "--binding", "pap", "--quiet"]);
    let told = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.code() == Some(1) && told.contains("links no pap interface"), "{told}");
}

#[test]
fn what_a_door_would_never_see_is_told_at_check() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("raw.yaml");
    let text = "name: raw\nflows:\n  f:\n    - step: s\n      skill: inventory.search\n      request: {}\n      raw:\n        \
                envelope: { params: { message: { role: ROLE_AGENT } } }\n        headers: { A2A-Version: \"9\" }\n";
    std::fs::write(&path, text).unwrap();
    let path = path.display().to_string();
    let check = |binding: &str| {
        let output = loadgen(&["check", &path, "--binding", binding]);
        (output.status.code(), String::from_utf8(output.stderr).unwrap())
    };
    assert_eq!(check("a2a").0, Some(0));
    for (binding, why) in [("pap", "PAP has none"), ("mcp", "those of SendMessage")] {
        let (code, told) = check(binding);
        let is_told =
            [why, "A2A-Version is read through a2a alone", "step f/s"].iter().all(|part| told.contains(part));
        assert!(code == Some(1) && is_told, "{told}");
    }
    let (code, told) = check("grpc");
    assert!(code == Some(1) && told.contains("give a2a, mcp or pap"), "{told}");
}
