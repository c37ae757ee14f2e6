//! What a run leaves behind: the summary and its schema, the interval log, the exit code, through the real program.
#![allow(
    clippy::disallowed_methods,
    reason = "these tests wait for a process to be in the middle of its run"
)]
#![allow(clippy::unwrap_used, reason = "clippy lets only functions marked as tests do so")]

mod support;

use std::fs;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use dealer_loadgen::record::read_totals;
use serde_json::Value;
use support::{
    Manner, Server, Setup, assert_ended, command, loadgen, repository, run, scenario, smoke, was_late,
};

fn server(manners: &[Manner]) -> Server {
    Server::start(Setup { manners: manners.to_vec(), ..Setup::default() })
}

fn assert_valid(summary: &Value) {
    let schema = fs::read_to_string(repository("data/schemas/summary.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    jsonschema::meta::validate(&schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let faults: Vec<String> =
        validator.iter_errors(summary).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(faults.is_empty(), "{faults:#?}");
}

fn exit_code(flags: &[&str]) -> (i32, String) {
    let output = loadgen(flags);
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

#[test]
fn a_run_leaves_a_whole_folder() {
    let server = server(&[Manner::Right]);
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("a/b");
    let out_text = out.display().to_string();
    let flags =
        ["--rate", "100/s", "--warmup", "1s", "--duration", "2s", "--think", "0.1x", "--out", &out_text];
    let (code, printed) = run(&server, "shopping", &flags);
    assert_ended(code, 0, &printed);
    assert_valid(&printed);
    let written: Value = serde_json::from_slice(&fs::read(out.join("summary.json")).unwrap()).unwrap();
    assert_eq!(written, printed);

    // 200 sessions are measured and 100 warm up; each does two requests, those that buy one more.
    assert_eq!(printed["sessions"]["scheduled"], 200);
    assert_eq!(printed["sessions"]["finished"], 200);
    let on_time = printed["sessions"]["on_time"].as_f64().unwrap();
    assert_eq!(printed["rate"]["achieved_per_s"], on_time / 2.0);
    let finished = printed["requests"]["finished"].as_u64().unwrap();
    assert!((380..=620).contains(&finished), "{printed:#}");
    assert_eq!(printed["outcomes"]["ok"], finished);
    let warmup = printed["requests"]["warmup"].as_u64().unwrap();
    assert!((150..=330).contains(&warmup), "{printed:#}");
    // Little's law: both ways to count requests in flight agree.
    let run = &printed["run"];
    let (mean, little) = (run["mean_in_flight"].as_f64().unwrap(), run["little_in_flight"].as_f64().unwrap());
    assert!((mean - little).abs() <= 0.1 * mean.max(0.01), "{mean} {little}");

    let totals = read_totals(&fs::read(out.join("intervals.hlog")).unwrap()).unwrap();
    let same = |tag: &str, latency: &Value| {
        let total = &totals[tag];
        assert_eq!(total.count(), latency["count"].as_u64().unwrap(), "{tag}");
        for (q, name) in [(0.5, "p50_ms"), (0.9, "p90_ms"), (0.95, "p95_ms"), (0.99, "p99_ms")] {
            let expected = latency[name].as_f64();
            assert_eq!(total.quantile(q).map(|nanos| nanos as f64 / 1e6), expected, "{tag} {name}");
        }
        assert_eq!(total.max().map(|nanos| nanos as f64 / 1e6), latency["max_ms"].as_f64(), "{tag}");
    };
    for kind in ["response", "service", "queue", "lag"] {
        same(kind, &printed["latency"][kind]);
    }
    for (label, step) in printed["steps"].as_object().unwrap() {
        if step["response"]["count"] != 0 {
            same(&format!("{label}.response"), &step["response"]);
            same(&format!("{label}.service"), &step["service"]);
            assert!(out.join(format!("{}.response.hgrm", label.replace('/', "."))).exists());
        }
    }
    let series = fs::read_to_string(out.join("series.csv")).unwrap();
    let sums: u64 =
        series.lines().skip(1).map(|line| line.split(',').nth(2).unwrap().parse::<u64>().unwrap()).sum();
    assert_eq!(sums, finished, "{series}");
    let seconds: Vec<&str> = series.lines().skip(1).map(|line| line.split(',').next().unwrap()).collect();
    let distinct: std::collections::BTreeSet<_> = seconds.iter().collect();
    assert_eq!(seconds.len(), distinct.len(), "{series}");
    assert!(fs::read_to_string(out.join("response.hgrm")).unwrap().contains("Total count"));
}

#[test]
fn every_kind_of_summary_fits_the_schema() {
    let server =
        server(&[Manner::Right, Manner::Reset, Manner::Status(503), Manner::Aap("RATE_LIMITED", -32000)]);
    let (_, summary) = smoke(
        &server,
        &[
            "--users",
            "2",
            "--sessions",
            "40",
            "--threshold",
            "p99.9<1s",
            "--threshold",
            "errors<100%",
            "--threads",
            "1",
        ],
    );
    assert_valid(&summary);
    assert_eq!(summary["rate"]["target_per_s"], Value::Null);
    assert_eq!(summary["latency"]["response"]["p999_ms"], Value::Null);
    assert_eq!(summary["thresholds"][0]["value"], Value::Null);
    assert_eq!(summary["thresholds"][0]["pass"], false);
    assert_eq!(summary["thresholds"][1]["pass"], true);
}

#[test]
fn the_same_seed_sends_the_same_requests() {
    // Whatever the number of workers: the server's own counts are all that can differ, and they do not.
    let count = |threads: &str| {
        let server = server(&[Manner::Right]);
        let flags = ["--users", "4", "--sessions", "60", "--think", "0x", "--threads", threads];
        let (_, summary) = run(&server, "shopping", &flags);
        let steps = summary["steps"].as_object().unwrap();
        steps.iter().map(|(label, step)| (label.clone(), step["sent"].as_u64().unwrap())).collect::<Vec<_>>()
    };
    let one = count("1");
    assert_eq!(one, count("2"));
    assert!(one.iter().any(|(label, sent)| label.contains("lead") && *sent > 0), "{one:?}");
}

#[test]
fn exit_codes_for_wrong_usage() {
    let missing = exit_code(&["run", "no-such-file.yaml"]);
    assert_eq!(missing.0, 1, "{}", missing.1);
    assert!(missing.1.contains("no-such-file.yaml"), "{}", missing.1);

    let (code, text) =
        exit_code(&["run", &scenario("smoke"), "--rate", "fast", "--duration", "5", "--users", "0"]);
    assert_eq!(code, 1);
    // The two loads at once, and each of the two wrong values.
    assert_eq!(text.lines().count(), 3, "{text}");

    assert_eq!(exit_code(&["run"]).0, 1);
    assert_eq!(exit_code(&["run", &scenario("smoke"), "--no-such-flag"]).0, 1);
    assert_eq!(exit_code(&["run", &scenario("smoke"), "--threshold", "nosuchstep.p99<1ms"]).0, 1);
    assert_eq!(exit_code(&["run", &scenario("smoke"), "--http", "3"]).0, 1);
    assert_eq!(exit_code(&["--help"]).0, 0);
    assert_eq!(exit_code(&["--version"]).0, 0);
}

#[test]
fn flags_can_come_from_the_environment() {
    let mut command = command(&["run", &scenario("smoke")]);
    let output = command.env("DEALER_LOADGEN_RATE", "quickly").output().unwrap();
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8(output.stderr).unwrap().contains("--rate \"quickly\""));

    // One value per line where a flag repeats; any usual word where it is a switch.
    let server = server(&[Manner::Right]);
    let mut command = support::command(&[
        "run",
        &scenario("smoke"),
        "--endpoint",
        &server.url(),
        "--users",
        "1",
        "--sessions",
        "5",
    ]);
    command.env("DEALER_LOADGEN_THRESHOLD", "errors<1%\nmax<1ns").env("DEALER_LOADGEN_QUIET", "1");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    command.env("DEALER_LOADGEN_THRESHOLD", "errors<1%\nmax<1us");
    let output = command.output().unwrap();
    assert_eq!(output.status.code(), Some(3), "{output:?}");
    let is_silent = output.stderr.is_empty();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("pass  errors<1%") && text.contains("FAIL  max<1us"), "{text}");
    assert!(is_silent, "something on standard error");
}

#[test]
fn a_dealer_that_cannot_be_reached_is_one_plain_sentence() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (code, text) =
        exit_code(&["run", &scenario("smoke"), "--endpoint", &format!("http://127.0.0.1:{port}")]);
    assert_eq!(code, 2);
    assert_eq!(text.lines().count(), 1, "{text}");
    assert!(text.contains("refused"), "{text}");
    let (code, text) = exit_code(&["run", &scenario("smoke"), "--endpoint", "http://no-such-host.invalid"]);
    assert_eq!(code, 2);
    assert!(text.contains("no-such-host.invalid"), "{text}");
}

#[test]
fn thresholds_decide_about_exit_code_3() {
    let server = server(&[Manner::Slow(Duration::from_millis(20))]);
    // A user waits for the dealer alone: there is no schedule to be late for.
    let base = ["--users", "1", "--sessions", "20", "--threshold"];
    let code = |threshold| smoke(&server, &[&base[..], &[threshold]].concat()).0;
    assert_eq!(code("p50<1s"), 0);
    assert_eq!(code("p50<10ms"), 3);
    assert_eq!(code("search.errors<=0%"), 0);
}

#[test]
fn a_failed_check_is_exit_code_3_too() {
    let server = server(&[Manner::Right]);
    let folder = tempfile::tempdir().unwrap();
    let code = |name: &str, expect: &str| {
        let path = folder.path().join(name);
        let step = "step: search, skill: inventory.search, request: {}, check: [ { name: many, path: /data/total, gte: 2 } ]";
        fs::write(&path, format!("name: x\nflows:\n  f: [ {{ {step}{expect} }} ]\n")).unwrap();
        let (path, url) = (path.display().to_string(), server.url());
        let output = loadgen(&[
            "run",
            &path,
            "--endpoint",
            &url,
            "--users",
            "1",
            "--sessions",
            "5",
            "--format",
            "json",
            "--quiet",
        ]);
        let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(summary["outcomes"]["check.many"], 5, "{summary:#}");
        assert_valid(&summary);
        (output.status.code().unwrap(), summary["requests"]["checks_failed"].as_u64().unwrap())
    };
    assert_eq!(code("failed.yaml", ""), (3, 5));
    assert_eq!(code("expected.yaml", ", expect: [ check.many ]"), (0, 0));
}

#[test]
fn a_generator_that_cannot_keep_up_says_so_with_exit_code_4() {
    let server = server(&[Manner::Slow(Duration::from_millis(200))]);
    // One session at a time takes 200 ms: of 50 a second, 45 find no place.
    let flags = ["--rate", "50/s", "--duration", "1s", "--max-in-flight", "1", "--on-full", "drop"];
    let (code, summary) = smoke(&server, &flags);
    assert_eq!(code, 4);
    assert_eq!(summary["verdict"]["valid"], false);
    let not_sent = summary["sessions"]["not_sent"].as_u64().unwrap();
    assert!((40..50).contains(&not_sent), "{summary:#}");
    assert_eq!(summary["sessions"]["scheduled"], 50);
    assert_eq!(summary["sessions"]["started"].as_u64().unwrap() + not_sent, 50);

    // The same load, queued: everything is sent, and the wait is in the response time.
    let flags = [
        "--rate",
        "20/s",
        "--duration",
        "1s",
        "--max-in-flight",
        "1",
        "--on-full",
        "queue",
        "--grace",
        "20s",
    ];
    let (code, summary) = smoke(&server, &flags);
    assert_ended(code, 0, &summary);
    assert_eq!(summary["outcomes"]["ok"], 20);
    assert!(summary["latency"]["queue"]["max_ms"].as_f64().unwrap() > 2000.0, "{summary:#}");
}

#[test]
fn a_session_that_waited_in_vain_was_not_started() {
    let server = server(&[Manner::Slow(Duration::from_millis(200))]);
    let flags = ["--rate", "50/s", "--duration", "1s", "--max-in-flight", "1", "--grace", "0s"];
    let (_, summary) = smoke(&server, &flags);
    let sessions = &summary["sessions"];
    let [scheduled, started, not_sent] =
        ["scheduled", "started", "not_sent"].map(|member| sessions[member].as_u64().unwrap());
    assert!(scheduled == 50 && not_sent >= 40 && started + not_sent == 50, "{summary:#}");
    let achieved = summary["rate"]["achieved_per_s"].as_f64().unwrap();
    assert!(achieved <= started as f64 + 1e-6, "{summary:#}");
}

#[test]
fn what_has_no_reply_at_the_end_is_counted_with_its_age() {
    let server = server(&[Manner::Silent]);
    let flags = ["--rate", "10/s", "--duration", "1s", "--timeout", "60s", "--grace", "500ms"];
    let (_, summary) = smoke(&server, &flags);
    assert_valid(&summary);
    assert_eq!(summary["requests"]["unfinished"], 10);
    assert_eq!(summary["requests"]["finished"], 0);
    assert_eq!(summary["sessions"]["unfinished"], 10);
    let age = &summary["requests"]["unfinished_age"];
    assert_eq!(age["count"], 10);
    assert!((1400.0..2500.0).contains(&age["max_ms"].as_f64().unwrap()), "{age}");
}

#[test]
fn leads_go_to_simulators_only() {
    let real = Server::start(Setup { is_simulator: false, ..Setup::default() });
    let url = real.url();
    let path = scenario("shopping");
    let base =
        ["run", &path, "--endpoint", &url, "--quiet", "--users", "1", "--sessions", "20", "--think", "0x"];
    let (code, text) = exit_code(&base);
    assert_eq!(code, 1);
    assert!(text.contains("--allow-real-leads"), "{text}");
    assert_eq!(real.requests(), 0);
    // A scenario without leads may go anywhere.
    assert_eq!(smoke(&real, &["--users", "1", "--sessions", "5"]).0, 0);
    assert_eq!(exit_code(&[&base[..], &["--allow-real-leads"]].concat()).0, 0);
    assert!(real.counts.leads.load(std::sync::atomic::Ordering::Relaxed) > 0);
}

#[test]
fn without_an_endpoint_a_simulator_runs_inside() {
    for contract in ["3.0", "2.0"] {
        let path = scenario("shopping");
        let flags =
            ["run", &path, "--duration", "2s", "--think", "0.1x", "--contract", contract, "--format", "json"];
        let output = loadgen(&flags);
        let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_valid(&summary);
        assert_ended(output.status.code().unwrap(), 0, &summary);
        assert_eq!(
            (&summary["embedded"], &summary["contract"]),
            (&Value::from(true), &Value::from(contract))
        );
        assert_eq!(summary["sessions"]["failed"], 0, "{summary:#}");
        assert_eq!(summary["sessions"]["finished"], 100, "{summary:#}");
    }
}

#[test]
fn check_explains_and_sends_nothing() {
    let output = loadgen(&["check", &scenario("shopping")]);
    assert_eq!(output.status.code(), Some(0));
    assert!(String::from_utf8(output.stdout).unwrap().contains("lead.submit"));
    assert_eq!(loadgen(&["check", "no-such-file.yaml"]).status.code(), Some(1));
}

#[test]
fn the_report_is_for_people() {
    let server = server(&[Manner::Right]);
    let output = loadgen(&[
        "run",
        &scenario("smoke"),
        "--endpoint",
        &server.url(),
        "--duration",
        "1s",
        "--rate",
        "200/s",
    ]);
    let text = String::from_utf8(output.stdout).unwrap();
    // Before all numbers; whether valid, depends on what else this machine does.
    assert!(text.trim_start().starts_with("Verdict: "), "{text}");
    for words in ["seed 42", "200/s", "search/search response", "p99", "Little's law", "Outcomes"] {
        assert!(text.contains(words), "{words}: {text}");
    }
    let progress = String::from_utf8(output.stderr).unwrap();
    assert!(
        progress.contains("Running smoke (no leads) against the simulator \"Test dealer\""),
        "{progress}"
    );
}

/// Starts a run of a minute, sends it signals after a while, gives its exit code and how long it took.
#[cfg(unix)]
fn interrupted(signals: &[&str], server: &Server, flags: &[&str]) -> (i32, Duration, Value) {
    let url = server.url();
    let path = scenario("smoke");
    let line = [
        "run",
        &path,
        "--endpoint",
        &url,
        "--duration",
        "60s",
        "--rate",
        "50/s",
        "--format",
        "json",
        "--quiet",
    ];
    let mut child =
        command(&[&line[..], flags].concat()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    std::thread::sleep(Duration::from_millis(2500));
    // Loading the program takes a while on a machine that is busy.
    let begun = Instant::now();
    while server.requests() < 5 && begun.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(100));
    }
    let start = Instant::now();
    for signal in signals {
        Command::new("kill").arg(signal).arg(child.id().to_string()).status().unwrap();
        std::thread::sleep(Duration::from_millis(200));
    }
    child.wait().unwrap();
    let took = start.elapsed();
    let output = child.wait_with_output().unwrap();
    let summary = serde_json::from_slice(&output.stdout).unwrap_or_default();
    (output.status.code().unwrap(), took, summary)
}

#[test]
#[cfg(unix)]
fn a_signal_ends_the_run_with_its_results() {
    for (signal, code) in [("-INT", 130), ("-TERM", 143)] {
        let server = server(&[Manner::Right]);
        let folder = tempfile::tempdir().unwrap();
        let out = folder.path().display().to_string();
        let (ended, took, summary) = interrupted(&[signal], &server, &["--out", &out]);
        assert_eq!(ended, code);
        assert!(took < Duration::from_secs(15), "{took:?}");
        assert_valid(&summary);
        assert_eq!(summary["interrupted"], true);
        assert!(summary["requests"]["finished"].as_u64().unwrap() >= 5, "{summary:#}");
        assert_eq!(summary["requests"]["unfinished"], 0);
        // What was not begun any more is not held against it, and its rate is that of the time until then.
        assert!(summary["verdict"]["valid"] == true || was_late(&summary), "{summary:#}");
        let scheduled = summary["sessions"]["scheduled"].as_f64().unwrap();
        let measured = summary["run"]["measured_ms"].as_f64().unwrap() / 1e3;
        assert!((scheduled / measured - 50.0).abs() <= 1.0 / measured, "{summary:#}");
        assert!(summary["rate"]["achieved_per_s"].as_f64().unwrap() > 20.0, "{summary:#}");
        let totals = read_totals(&fs::read(folder.path().join("intervals.hlog")).unwrap()).unwrap();
        assert_eq!(totals["response"].count(), summary["requests"]["finished"].as_u64().unwrap());
    }
}

#[test]
#[cfg(unix)]
fn a_dealer_that_never_answered_comes_before_the_signal() {
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let (url, path) = (format!("http://127.0.0.1:{port}/a2a"), scenario("smoke"));
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().display().to_string();
    let line = [
        "run",
        &path,
        "--endpoint-raw",
        &url,
        "--contract",
        "3.0",
        "--duration",
        "60s",
        "--quiet",
        "--out",
        &out,
    ];
    let child = command(&line).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let begun = Instant::now();
    let seconds = || fs::read_to_string(folder.path().join("series.csv")).unwrap_or_default().lines().count();
    while seconds() < 2 && begun.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(100));
    }
    Command::new("kill").arg("-INT").arg(child.id().to_string()).status().unwrap();
    let output = child.wait_with_output().unwrap();
    assert_eq!(output.status.code(), Some(2), "{output:?}");
    assert!(String::from_utf8(output.stderr).unwrap().contains("transport.refused"));
    assert!(folder.path().join("report.html").exists());
}

#[test]
#[cfg(unix)]
fn a_second_signal_ends_at_once() {
    let server = server(&[Manner::Silent]);
    let (code, took, summary) =
        interrupted(&["-INT", "-INT"], &server, &["--timeout", "60s", "--grace", "60s"]);
    assert_eq!(code, 130);
    // The run would go on for a minute, and wait another one.
    assert!(took < Duration::from_secs(30), "{took:?}");
    assert_eq!(summary, Value::Null);
}

#[test]
#[cfg(unix)]
fn a_killed_run_leaves_its_intervals() {
    let server = server(&[Manner::Right]);
    let folder = tempfile::tempdir().unwrap();
    let path = scenario("smoke");
    let out = folder.path().display().to_string();
    let url = server.url();
    let line =
        ["run", &path, "--endpoint", &url, "--duration", "60s", "--rate", "50/s", "--quiet", "--out", &out];
    let mut child = command(&line).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
    let series = || fs::read_to_string(folder.path().join("series.csv")).unwrap_or_default().lines().count();
    let begun = Instant::now();
    while series() < 4 && begun.elapsed() < Duration::from_secs(40) {
        std::thread::sleep(Duration::from_millis(100));
    }
    child.kill().unwrap();
    child.wait().unwrap();
    let totals = read_totals(&fs::read(folder.path().join("intervals.hlog")).unwrap()).unwrap();
    assert!(totals["response"].count() >= 100, "{}", totals["response"].count());
    assert!(series() >= 4);
}

#[test]
fn credentials_do_not_follow_a_card_to_another_origin() {
    let server = Server::start(Setup { card_host: Some("localhost"), ..Setup::default() });
    let (url, smoke) = (server.url(), scenario("smoke"));
    let flags = ["run", &smoke, "--endpoint", &url, "--sessions", "1", "--quiet", "--header"];
    let (code, said) = exit_code(&[&flags[..], &["X-Key: secret"]].concat());
    assert_eq!(code, 1, "{said}");
    assert!(said.contains(&url) && said.contains("http://localhost:") && !said.contains("secret"), "{said}");
    assert_eq!(server.requests(), 0);
}

#[test]
fn a_boolean_variable_takes_no_other_words() {
    let smoke = scenario("smoke");
    let flags = ["run", &smoke, "--sessions", "1", "--quiet"];
    for (value, code) in [("never", 1), ("false", 0), ("true", 0)] {
        let output = command(&flags).env("DEALER_LOADGEN_ALLOW_REAL_LEADS", value).output().unwrap();
        assert_eq!(output.status.code(), Some(code), "{value}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
