//! The `dealer-sim` binary as its users meet it: lines, exit codes, signals, files.

#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

#[path = "command/leads.rs"]
mod leads;
#[path = "command/redact.rs"]
mod redact;
mod support;

use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use support::{Sim, call, http, rpc};

fn run(arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_dealer-sim")).args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

fn schema(name: &str) -> jsonschema::Validator {
    let path = format!("{}/../data/schemas/{name}.schema.json", env!("CARGO_MANIFEST_DIR"));
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    jsonschema::options().should_validate_formats(true).build(&schema).unwrap()
}

fn holds(name: &str, value: &Value) {
    let faults: Vec<_> = schema(name).iter_errors(value).map(|error| error.to_string()).collect();
    assert!(faults.is_empty(), "{name}: {faults:?} in {value}");
}

#[test]
fn the_first_and_the_last_line_are_as_their_schema_says_and_a_stop_ends_with_0() {
    let folder = tempfile::tempdir().unwrap();
    let ready = folder.path().join("ready.json");
    let mut sim = Sim::start(&["--seed", "7", "--vehicles", "60", "--ready-file", ready.to_str().unwrap()]);
    holds("event", &sim.first);
    assert_eq!(sim.first["event"], "listening");
    assert_eq!(sim.first["seed"], 7);
    assert_eq!(sim.first["vehicles"], 60);
    let written: Value = serde_json::from_slice(&std::fs::read(ready).unwrap()).unwrap();
    assert_eq!(written, sim.first);
    assert_eq!(rpc(&sim.url(), "{}").0, 200);
    let (code, last) = sim.stop();
    holds("event", &last);
    assert_eq!((code, &last["event"], &last["requests"]), (0, &Value::from("stopped"), &Value::from(1)));
}

#[test]
fn fixtures_exist_for_every_seed_and_small_stock() {
    for seed in ["1", "2", "3", "99"] {
        let sim = Sim::start(&["--seed", seed, "--vehicles", "20"]);
        let fixtures: Value = serde_json::from_str(&http("GET", &sim.admin("/fixtures"), &[], "").2).unwrap();
        holds("fixtures", &fixtures);
        for name in schema_properties("fixtures") {
            assert!(!fixtures[&name].is_null(), "seed {seed}: {name} is missing");
        }
    }
}

fn schema_properties(name: &str) -> Vec<String> {
    let path = format!("{}/../data/schemas/{name}.schema.json", env!("CARGO_MANIFEST_DIR"));
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    schema["properties"].as_object().unwrap().keys().cloned().collect()
}

#[test]
fn health_tells_by_its_exit_code() {
    let sim = Sim::start(&[]);
    assert_eq!(run(&["health", &sim.admin("")]).0, 0);
    let (code, _, error) = run(&["health", "http://127.0.0.1:1"]);
    assert_eq!(code, 2);
    assert!(error.contains("does not answer"), "{error}");
    assert_eq!(run(&["health", "nonsense"]).0, 1);
}

#[test]
fn wrong_usage_is_1_and_says_what_is_allowed() {
    for (arguments, part) in [
        (&["serve", "--contract", "9.9"][..], "the contracts are 1.0, 1.1, 1.2, 1.3, 2.0 and 3.0"),
        (&["serve", "--skills", "lead.retract"], "lead.submit"),
        (&["serve", "--rate-limit", "fast"], "100/s,burst=20"),
        (&["serve", "--clock", "noon"], "2026-01-01T12:00:00Z"),
        (&["serve", "--vehicles", "0"], "give a number of vehicles, 1 to 10000000"),
        (&["serve", "--journal", "x"], "'--journal <N>': give a number of entries, 0 to 10000000"),
        (&["serve", "--listen", "8080"], "127.0.0.1:8080"),
        (&["faults", "explain", "drp"], "did you mean `drip`?"),
        (&["serve", "--admin", "here"], "off"),
        (&["serve", "--public-url", "dealer"], "https://dealer.example.test"),
        (&["inventory", "--clock", "1999-01-01T00:00:00Z"], "2020"),
        (&["inventory", "--format", "xml"], "jsonl"),
        (&["frobnicate"], "frobnicate"),
    ] {
        let (code, _, error) = run(arguments);
        assert_eq!(code, 1, "{arguments:?}: {error}");
        assert!(error.contains(part), "{arguments:?}: {error}");
    }
}

#[test]
fn all_that_is_wrong_with_the_flags_is_told_at_once() {
    let flags = ["--journal", "x", "--vehicles=0", "--log", "xml", "--contract", "9.9", "--threads", "0"];
    let output = Command::new(env!("CARGO_BIN_EXE_dealer-sim"))
        .arg("serve")
        .args(flags)
        .env("DEALER_SIM_RATE_LIMIT", "fast")
        .output()
        .unwrap();
    let error = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(1), "{error}");
    let wrong = ["--journal", "--vehicles", "--log", "--contract", "--threads", "--rate-limit"];
    for flag in wrong {
        assert_eq!(error.matches(&format!("for '{flag} <")).count(), 1, "{flag}: {error}");
    }
    assert!(error.contains("possible values: text, json"), "{error}");
    assert_eq!(error.matches("error: ").count(), wrong.len(), "{error}");
    assert_eq!(error.matches("--help").count(), 1, "{error}");
}

#[test]
fn a_rule_is_explained_by_its_plan_which_is_asked_for() {
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("plan.yaml");
    std::fs::write(&plan, "rules: [{ id: half, effect: id_wrong, chance: 50% }]\n").unwrap();
    let sim = Sim::start(&["--faults", plan.to_str().unwrap()]);
    let call = call("dealer-information", &json!({ "type": "dealer.information.request" })).to_string();
    let told =
        |head: &str| Some(head.split_once("x-sim-fault-applied: half; ")?.1.split_once("; ")?.1.to_owned());
    let repro = (0..40).find_map(|_| told(&http("POST", &sim.url(), &[], &call).1)).unwrap();
    let repro = repro.lines().next().unwrap();
    let (code, _, error) = run(&["faults", "explain", repro]);
    assert_eq!(code, 1);
    assert!(error.contains("--faults FILE"), "{error}");
    let (code, said, _) = run(&["faults", "explain", repro, "--faults", plan.to_str().unwrap()]);
    assert_eq!(code, 0);
    assert!(said.contains("it fires"), "{said}");
}

#[test]
fn a_missing_file_is_2_in_one_plain_sentence() {
    for flag in ["--profile", "--limits", "--config", "--inventory"] {
        let (code, _, error) = run(&["serve", flag, "/no/such/file"]);
        assert_eq!((code, error.lines().count()), (2, 1), "{error}");
        assert!(error.contains("/no/such/file"), "{error}");
    }
}

#[test]
fn a_taken_port_is_2_in_one_plain_sentence() {
    let sim = Sim::start(&[]);
    let address = sim.url().replace("http://", "").replace("/a2a", "");
    let (code, out, error) = run(&["serve", "--listen", &address, "--admin", "off"]);
    assert_eq!((code, out.as_str()), (2, ""));
    assert_eq!(error.lines().count(), 1, "{error}");
    assert!(error.contains(&address), "{error}");
}

#[test]
fn a_configuration_file_gives_defaults_and_flags_win() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("sim.toml");
    std::fs::write(&config, "seed = 5\nvehicles = 40\ncontract = \"2.0\"\n").unwrap();
    let sim = Sim::start(&["--config", config.to_str().unwrap(), "--seed", "6"]);
    assert_eq!(
        (&sim.first["seed"], &sim.first["vehicles"], &sim.first["contract"]),
        (&Value::from(6), &Value::from(40), &Value::from("2.0"))
    );
}

#[test]
fn card_prints_what_serve_publishes() {
    let flags = ["--clock", "2026-01-01T12:00:00Z", "--public-url", "https://dealer.example.test"];
    let (code, printed, _) = run(&[&["card"][..], &flags].concat());
    assert_eq!(code, 0);
    let sim = Sim::start(&flags);
    let local = format!("http://{}/.well-known/agent-card.json", sim.first["listen"].as_str().unwrap());
    let (_, _, served) = http("GET", &local, &[], "");
    let parse = |text: &str| serde_json::from_str::<Value>(text).unwrap();
    assert_eq!(sim.first["url"], "https://dealer.example.test/a2a");
    assert_eq!(parse(&printed), parse(&served));
}

#[test]
fn a_closed_pipe_is_no_failure() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_dealer-sim"))
        .args(["inventory", "--vehicles", "20000"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn a_stop_under_load_loses_no_answered_lead() {
    let sim = Sim::start(&[]);
    let url = sim.url();
    let clients: Vec<_> = (0..4)
        .map(|client| {
            let url = url.clone();
            std::thread::spawn(move || {
                let mut leads = Vec::new();
                for n in 0.. {
                    let Some(lead_id) = support::send_lead(&url, &format!("c{client}n{n}")) else { break };
                    leads.push(lead_id);
                }
                leads
            })
        })
        .collect();
    std::thread::sleep(Duration::from_millis(400));
    let begun = Instant::now();
    let mut sim = sim;
    let (code, last) = sim.stop();
    let took = begun.elapsed();
    let mut received: Vec<String> = clients.into_iter().flat_map(|client| client.join().unwrap()).collect();
    received.sort();
    received.dedup();
    assert_eq!(code, 0);
    assert!(took < Duration::from_secs(5), "{took:?}");
    assert!(!received.is_empty());
    assert!(last["leads"].as_u64().unwrap() >= received.len() as u64, "{last} against {}", received.len());
    assert_eq!(last["unfinished"], 0);
}
