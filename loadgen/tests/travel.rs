//! Results that travel: what a run leaves that is killed, what merge, compare, report and the searches make of folders, and
//! what other programs read, through the real program.
#![allow(
    clippy::disallowed_methods,
    reason = "these tests wait for a process to be in the middle of its run"
)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "clippy lets only functions marked as tests do so")]

mod support;

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Stdio};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use dealer_loadgen::record::read_totals;
use dealer_sim::Dealer;
use serde_json::Value;
use support::{Manner, Server, Setup, command, loadgen, repository, scenario, smoke};

fn server(manners: &[Manner]) -> Server {
    Server::start(Setup { manners: manners.to_vec(), ..Setup::default() })
}

fn assert_valid(value: &Value, schema: &str) {
    let schema = fs::read_to_string(repository(&format!("data/schemas/{schema}.schema.json"))).unwrap();
    let schema: Value = serde_json::from_str(&schema).unwrap();
    jsonschema::meta::validate(&schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let faults: Vec<String> =
        validator.iter_errors(value).map(|error| format!("{}: {error}", error.instance_path())).collect();
    assert!(faults.is_empty(), "{faults:#?} in {value:#}");
}

fn summary_of(folder: &Path) -> Value {
    serde_json::from_slice(&fs::read(folder.join("summary.json")).unwrap()).unwrap()
}

/// Runs a command of these words and gives its exit code and both its outputs.
fn done(words: &[&str]) -> (i32, String, String) {
    let output = loadgen(words);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

/// Those of the tests that measure take turns: together they would keep each other from being in time.
fn alone() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Begins a long run into a folder, to be ended from outside.
fn begin(server: &Server, out: &Path, flags: &[&str]) -> Child {
    let (url, path, out) = (server.url(), scenario("smoke"), out.display().to_string());
    let line =
        ["run", &path, "--endpoint", &url, "--duration", "60s", "--rate", "200/s", "--quiet", "--out", &out];
    command(&[&line[..], flags].concat()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

#[test]
fn a_killed_run_leaves_a_result_that_every_command_reads() {
    let _alone = alone();
    let server = server(&[Manner::Right, Manner::Right, Manner::Status(503)]);
    let dir = tempfile::tempdir().unwrap();
    let (killed, other) = (dir.path().join("killed"), dir.path().join("other"));
    let mut children = [begin(&server, &killed, &[]), begin(&server, &other, &[])];
    // A folder is whole before the first request, too.
    let begun = Instant::now();
    while !killed.join("summary.json").exists() && begun.elapsed() < Duration::from_secs(30) {
        std::thread::sleep(Duration::from_millis(100));
    }
    assert_valid(&summary_of(&killed), "summary");
    std::thread::sleep(Duration::from_millis(7200));
    for child in &mut children {
        child.kill().unwrap();
        child.wait().unwrap();
    }
    let summary = summary_of(&killed);
    assert_valid(&summary, "summary");
    assert_eq!(summary["interrupted"], true);
    let finished = summary["requests"]["finished"].as_u64().unwrap();
    assert!((100..=1600).contains(&finished), "{finished}");
    // The log may be a second ahead of the summary, never behind.
    let totals = read_totals(&fs::read(killed.join("intervals.hlog")).unwrap()).unwrap();
    assert!((finished..=finished + 220).contains(&totals["response"].count()));
    assert!(totals["search/search.outcome.http.503"].count() >= finished / 3 - 70);

    let (killed, other) = (killed.display().to_string(), other.display().to_string());
    let (code, text, error) = done(&["report", &killed, "--baseline", &other]);
    assert_eq!(code, 0, "{error}");
    assert!(text.contains("note: the run was interrupted") && text.contains("report.html"), "{text}");
    let html = fs::read_to_string(Path::new(&killed).join("report.html")).unwrap();
    assert!(
        html.contains("interrupted") && html.contains("baseline response") && html.ends_with("</html>\n")
    );

    let out = dir.path().join("merged").display().to_string();
    let (code, _, error) = done(&["merge", &out, &killed, &other]);
    assert_eq!(code, 0, "{error}");
    let merged = summary_of(Path::new(&out));
    assert_valid(&merged, "summary");
    assert_eq!(merged["interrupted"], true);
    assert_eq!(merged["run"]["parts"].as_array().unwrap().len(), 2);
    let both = finished + summary_of(Path::new(&other))["requests"]["finished"].as_u64().unwrap();
    assert_eq!(merged["requests"]["finished"], both);

    let (code, text, error) = done(&["compare", &killed, &other, "--format", "json", "--allowance", "99%"]);
    if code == 1 {
        // On a machine that is busy with other tests a run may be late, and then says so.
        assert!(error.contains("no valid measurement"), "{error}");
    } else {
        assert_valid(&serde_json::from_str(&text).unwrap(), "compare");
    }
}

#[test]
#[cfg(unix)]
#[ignore = "takes half a minute: the same with the times of a real run"]
fn ten_seconds_of_sixty_are_complete_after_a_signal_and_readable_after_a_kill() {
    for (signal, code) in [("-INT", Some(130)), ("-TERM", Some(143)), ("-KILL", None)] {
        let server = server(&[Manner::Right]);
        let dir = tempfile::tempdir().unwrap();
        let mut child = begin(&server, dir.path(), &[]);
        std::thread::sleep(Duration::from_secs(10));
        std::process::Command::new("kill").arg(signal).arg(child.id().to_string()).status().unwrap();
        assert_eq!(child.wait().unwrap().code(), code);
        let summary = summary_of(dir.path());
        assert_valid(&summary, "summary");
        assert_eq!(summary["interrupted"], true);
        let finished = summary["requests"]["finished"].as_u64().unwrap();
        assert!(finished >= 1700, "{signal}: {finished}");
        for name in ["report.html", "junit.xml", "response.hgrm"] {
            assert_eq!(dir.path().join(name).exists(), code.is_some(), "{signal} {name}");
        }
        assert_eq!(done(&["report", &dir.path().display().to_string()]).0, 0);
    }
}

#[test]
fn compare_finds_a_slower_dealer_and_nothing_between_equal_ones() {
    let _alone = alone();
    let dir = tempfile::tempdir().unwrap();
    let run = |name: &str, millis: u64, rate: &str| {
        let server = server(&[Manner::Slow(Duration::from_millis(millis))]);
        let out = dir.path().join(name).display().to_string();
        let flags = ["--rate", rate, "--duration", "8s", "--out", &out];
        // On a machine that is busy with other tests a run may be late, and then says so.
        let code = (0..5).map(|_| smoke(&server, &flags).0).find(|code| *code != 4);
        assert_eq!(code, Some(0));
        out
    };
    let (base, same, slow) = (run("base", 20, "100/s"), run("same", 20, "100/s"), run("slow", 30, "100/s"));
    let html = dir.path().join("compare.html").display().to_string();
    let (code, text, _) = done(&["compare", &base, &slow, "--html", &html]);
    assert_eq!(code, 3, "{text}");
    assert!(text.starts_with("Regression") && text.contains("REGRESSION"), "{text}");
    assert!(fs::read_to_string(&html).unwrap().contains("REGRESSION"));
    // The other way round it is none.
    let (code, text, _) = done(&["compare", &slow, &base]);
    assert!(code == 0 && text.contains("improvement"), "{text}");
    // A machine that is busy with other tests may slow a run down; nine milliseconds of ten it does not.
    let (code, text, error) =
        done(&["compare", &base, &format!("{same},{base}"), "--format", "json", "--allowance", "45%"]);
    assert_eq!(code, 0, "{text} {error}");
    assert_valid(&serde_json::from_str(&text).unwrap(), "compare");
    let other = run("other", 20, "50/s");
    let (code, _, error) = done(&["compare", &base, &other]);
    assert_eq!(code, 1);
    assert!(error.contains("--rate 100/s and 50/s"), "{error}");
    let (code, _, error) = done(&["compare", &base, &dir.path().join("none").display().to_string()]);
    assert!(code == 2 && error.contains("none/intervals.hlog"), "{error}");
}

#[test]
fn a_threshold_that_fails_ends_the_run_when_asked_to() {
    let server = server(&[Manner::Slow(Duration::from_millis(30))]);
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().display().to_string();
    let flags = [
        "--rate",
        "100/s",
        "--duration",
        "60s",
        "--threshold",
        "p50[2s]<10ms",
        "--abort-on-fail",
        "--out",
        &out,
    ];
    let start = Instant::now();
    let (code, summary) = smoke(&server, &flags);
    support::assert_ended(code, 3, &summary);
    assert!(start.elapsed() < Duration::from_secs(30), "{:?}", start.elapsed());
    assert_valid(&summary, "summary");
    assert_eq!(summary["aborted"], "p50[2s]<10ms");
    assert_eq!(summary["thresholds"][0]["pass"], false);
    assert!(summary["thresholds"][0]["value"].as_f64().unwrap() > 29.0);
    let junit = fs::read_to_string(dir.path().join("junit.xml")).unwrap();
    assert!(junit.contains("failures=\"1\"") && junit.contains("p50[2s]&lt;10ms"), "{junit}");
    // Without the flag the run goes on to its end.
    let flags =
        ["--rate", "100/s", "--duration", "3s", "--threshold", "p50[2s]<10ms", "--threshold", "http<1%"];
    let (code, summary) = smoke(&server, &flags);
    assert_eq!((code, &summary["aborted"]), (3, &Value::Null));
    assert_eq!(summary["requests"]["finished"], 300);
    assert_eq!(summary["thresholds"][1]["pass"], true);
}

#[test]
fn a_run_that_keeps_its_rate_is_not_ended_in_its_first_seconds() {
    let _alone = alone();
    let server = server(&[Manner::Right]);
    // After one second a rate over the whole duration would be a sixth of what was asked for.
    let flags = ["--rate", "50/s", "--duration", "6s", "--abort-on-fail", "--threshold", "rate>=25/s"];
    let (code, summary) = smoke(&server, &flags);
    support::assert_ended(code, 0, &summary);
    assert_eq!((&summary["aborted"], &summary["interrupted"]), (&Value::Null, &Value::from(false)));
    assert_eq!(summary["sessions"]["scheduled"], 300);
}

#[test]
fn requests_of_after_the_measured_time_are_told() {
    let server = server(&[Manner::Right]);
    let dir = tempfile::tempdir().unwrap();
    let (path, out) = (dir.path().join("x.yaml"), dir.path().join("out"));
    let fails = "check: [ { name: never, path: /data/total, lt: 0 } ]";
    let step = |name: &str, more: &str| {
        format!("    - {{ step: {name}, skill: inventory.search, request: {{}}{more} }}\n")
    };
    let flow =
        [step("one", ""), "    - think: 600ms\n".to_owned(), step("two", &format!(", {fails}"))].concat();
    fs::write(&path, format!("name: x\nflows:\n  f:\n{flow}")).unwrap();
    let (path, text) = (path.display().to_string(), out.display().to_string());
    let url = server.url();
    let line = ["run", &path, "--endpoint", &url, "--rate", "20/s", "--duration", "1s", "--out", &text];
    let (_, printed, error) = done(&[&line[..], &["--arrivals", "constant"]].concat());
    let summary = summary_of(&out);
    assert_valid(&summary, "summary");
    let count = |pointer: &str| summary.pointer(pointer).unwrap().as_u64().unwrap();
    // Each of the 20 sessions fails at its second request, and most do so after the end.
    assert_eq!(count("/sessions/failed"), 20, "{printed} {error}");
    assert_eq!(count("/requests/sent") + count("/requests/after_end/sent"), 40, "{summary:#}");
    assert_eq!(count("/requests/errors") + count("/requests/after_end/errors"), 20, "{summary:#}");
    assert!(count("/requests/after_end/errors") >= 10, "{summary:#}");
    assert!(printed.contains("more were sent after the measured time"), "{printed}");
    assert!(printed.contains("note:") && printed.contains("only the sessions count them"), "{printed}");
    // What is read back has them too.
    let (code, again, error) = done(&["report", &text]);
    assert_eq!(code, 0, "{error}");
    assert!(again.contains("more were sent after the measured time"), "{again}");
}

#[test]
fn a_log_that_lost_measurements_is_no_result() {
    let server = server(&[Manner::Right]);
    let dir = tempfile::tempdir().unwrap();
    let (run, merged) = (dir.path().join("run"), dir.path().join("merged").display().to_string());
    let (out, log) = (run.display().to_string(), run.join("intervals.hlog"));
    smoke(&server, &["--rate", "50/s", "--duration", "2s", "--out", &out]);
    assert_eq!(done(&["report", &out]).0, 0);
    let whole = fs::read_to_string(&log).unwrap();
    let without = |words: &str| {
        let lines = whole.split_inclusive('\n').filter(|line| !line.contains(words));
        lines.collect::<String>()
    };
    let damaged = [
        whole[..whole.len() / 2].to_owned(),
        without("Tag=response,"),
        without("Tag=search/search.response,"),
        without("Tag=lag,0"),
    ];
    for text in &damaged {
        fs::write(&log, text).unwrap();
        for words in [&["report", out.as_str()][..], &["merge", &merged, &out]] {
            let (code, _, error) = done(words);
            assert_eq!(code, 2, "{words:?}: {error}");
            for part in ["intervals.hlog", "summary.json counts 100", "it has "] {
                assert!(error.contains(part), "{part}: {error}");
            }
        }
    }
    // Of a run that was killed the two may differ by what was written in between.
    let summary = fs::read_to_string(run.join("summary.json")).unwrap();
    let interrupted = summary.replacen("\"interrupted\": false", "\"interrupted\": true", 1);
    assert_ne!(summary, interrupted);
    fs::write(run.join("summary.json"), interrupted).unwrap();
    let (code, text, error) = done(&["report", &out]);
    assert_eq!(code, 0, "{error}");
    assert!(text.contains("summary.json counts 100"), "{text}");
}

#[test]
fn time_outs_and_failures_keep_their_latency() {
    let server = server(&[Manner::Right, Manner::Right, Manner::Right, Manner::Silent]);
    let flags = ["--rate", "40/s", "--duration", "2s", "--timeout", "300ms"];
    let (_, summary) = smoke(&server, &flags);
    assert_valid(&summary, "summary");
    let by_outcome = &summary["steps"]["search/search"]["outcome_response"];
    assert_eq!(by_outcome["timeout.first_byte"]["count"], summary["outcomes"]["timeout.first_byte"]);
    assert!(by_outcome["timeout.first_byte"]["min_ms"].as_f64().unwrap() >= 299.0, "{by_outcome:#}");
    assert!(by_outcome["ok"]["max_ms"].as_f64().unwrap() < 299.0, "{by_outcome:#}");
    assert_eq!(by_outcome["ok"]["count"], summary["outcomes"]["ok"]);
}

#[test]
fn metrics_are_there_while_the_run_goes_on() {
    let server = server(&[Manner::Right]);
    let dir = tempfile::tempdir().unwrap();
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let mut child = begin(&server, dir.path(), &["--metrics", &port]);
    let get = |path: &str| {
        let mut stream = TcpStream::connect(format!("127.0.0.1:{port}")).ok()?;
        stream.write_all(format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").as_bytes()).ok()?;
        let mut text = String::new();
        stream.read_to_string(&mut text).ok()?;
        Some(text)
    };
    let mut text = String::new();
    for _ in 0..100 {
        std::thread::sleep(Duration::from_millis(100));
        text = get("/metrics").unwrap_or_default();
        if text.contains("loadgen_requests_total") {
            break;
        }
    }
    let not_found = get("/other").unwrap_or_default();
    child.kill().unwrap();
    child.wait().unwrap();
    assert!(text.starts_with("HTTP/1.1 200 OK\r\nContent-Type: application/openmetrics-text"), "{text}");
    assert!(text.contains("loadgen_requests_total{step=\"search/search\",outcome=\"ok\"} "), "{text}");
    assert!(text.ends_with("# EOF\n"), "{text}");
    assert!(not_found.starts_with("HTTP/1.1 404"), "{not_found}");
    let (code, _, error) = done(&["run", &scenario("smoke"), "--metrics", "nowhere"]);
    assert!(code == 1 && error.contains("--metrics \"nowhere\""), "{error}");
}

/// A dealer that lets 300 requests a second through, and 20 more at once.
fn limited() -> (tokio::runtime::Runtime, dealer_sim::RunningDealer) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let limit = "300/s,burst=20".parse().unwrap();
    let dealer = runtime.block_on(Dealer::builder().rate_limit(limit).start()).unwrap();
    (runtime, dealer)
}

#[test]
#[ignore = "takes most of a minute: nine rates, each for six seconds"]
fn find_max_finds_a_rate_limit() {
    let _alone = alone();
    let (_runtime, dealer) = limited();
    let dir = tempfile::tempdir().unwrap();
    let out = dir.path().join("search").display().to_string();
    let (code, text, error) = done(&[
        "find-max",
        &scenario("smoke"),
        "--endpoint",
        dealer.base_url(),
        "--arrivals",
        "constant",
        "--slo",
        "errors<0.5%",
        "--rate",
        "280/s",
        "--settle",
        "1s",
        "--step-duration",
        "5s",
        "--format",
        "json",
        "--out",
        &out,
    ]);
    assert_eq!(code, 0, "{text} {error}");
    let found: Value = serde_json::from_str(&text).unwrap();
    assert_valid(&found, "find-max");
    let rate = found["rate_per_s"].as_f64().unwrap();
    assert!((285.0..=300.0).contains(&rate), "{found:#}");
    assert_eq!(found["ending"], "converged");
    assert!(found["limited_by"][0].as_str().unwrap().starts_with("errors<0.5% ("), "{found:#}");
    let written: Value =
        serde_json::from_slice(&fs::read(Path::new(&out).join("find-max.json")).unwrap()).unwrap();
    assert_eq!(written, found);
    assert!(Path::new(&out).join("01-280/summary.json").exists());
}

#[test]
fn find_max_says_what_is_not_for_it() {
    let (code, _, error) = done(&[
        "find-max",
        &scenario("smoke"),
        "--users",
        "3",
        "--duration",
        "5s",
        "--slo",
        "p99",
        "--step-duration",
        "0s",
        "--threshold",
        "p99<1s",
    ]);
    assert_eq!(code, 1);
    for words in [
        "--users is not for",
        "--duration is not for",
        "--threshold is not for",
        "--slo \"p99\"",
        "--step-duration",
    ] {
        assert!(error.contains(words), "{words}: {error}");
    }
}

#[test]
fn a_sweep_shows_how_throughput_scales() {
    let server = server(&[Manner::Slow(Duration::from_millis(10))]);
    let (code, text, error) = done(&[
        "sweep",
        &scenario("smoke"),
        "--endpoint",
        &server.url(),
        "--users",
        "1,2,4",
        "--duration",
        "1s",
        "--format",
        "json",
    ]);
    assert_eq!(code, 0, "{text} {error}");
    let swept: Value = serde_json::from_str(&text).unwrap();
    assert_valid(&swept, "sweep");
    let rates: Vec<f64> = swept["steps"]
        .as_array()
        .unwrap()
        .iter()
        .map(|step| step["requests_per_s"].as_f64().unwrap())
        .collect();
    // A dealer that only waits has room for all: twice the users do twice as much.
    assert!(rates[1] > rates[0] * 1.2 && rates[2] > rates[1] * 1.2, "{rates:?}");
    assert!(swept["fit"]["lambda"].as_f64().unwrap() > 0.0, "{swept:#}");
    let (code, _, error) = done(&["sweep", &scenario("smoke"), "--users", "1,x"]);
    assert!(code == 1 && error.contains("1,2,4,8,16"), "{error}");
}
