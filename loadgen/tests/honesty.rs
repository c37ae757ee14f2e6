//! Whether the numbers are true: against servers whose right answer is known. These take a while and want a machine that
//! does little else, so they run on request: `cargo test --release -p dealer-loadgen --test honesty -- --ignored`.
#![allow(
    clippy::disallowed_methods,
    reason = "these tests wait for a process to be in the middle of its run"
)]
#![allow(clippy::unwrap_used, clippy::panic, reason = "a test stops at the first surprise")]

mod support;

use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::Duration;

use serde_json::Value;
use support::{Delay, Server, Setup, command, scenario, smoke};

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

/// The value below which a share of all lies, in milliseconds.
fn quantile(sorted: &[Duration], q: f64) -> f64 {
    let rank = ((q * sorted.len() as f64).ceil() as usize).clamp(1, sorted.len());
    sorted[rank - 1].as_secs_f64() * 1e3
}

/// A server that writes down how long it held each reply back: the log is the truth.
fn against_the_log(delay: Delay) {
    let server = Server::start(Setup { delay: Some(delay), ..Setup::default() });
    let (code, summary) = smoke(&server, &["--rate", "500/s", "--duration", "24s"]);
    let mut log = server.delays();
    log.sort_unstable();
    assert_eq!(Some(log.len() as u64), summary["requests"]["finished"].as_u64());
    let mut off = Vec::new();
    for (name, q) in [("p50_ms", 0.5), ("p99_ms", 0.99), ("p999_ms", 0.999)] {
        let (truth, measured) = (quantile(&log, q), figure(&summary, "response", name));
        println!(
            "{name}: truth {truth:.3}, measured {measured:.3} ({:+.2} %)",
            (measured / truth - 1.0) * 100.0
        );
        off.push((measured - truth, measured / truth - 1.0));
    }
    assert_eq!(code, 0, "{:#}", summary["verdict"]);
    assert!(off[0].0.abs() <= 0.3, "p50 is off by {} ms", off[0].0);
    assert!(off[1].1.abs() <= 0.02 && off[2].1.abs() <= 0.02, "{off:?}");
}

#[test]
#[ignore = "takes half a minute and wants an idle machine"]
fn nine_quick_ones_and_a_slow_one() {
    against_the_log(Delay::NineAndOne(Duration::from_millis(1), Duration::from_secs(1)));
}

#[test]
#[ignore = "takes half a minute and wants an idle machine"]
fn a_lognormal_server() {
    against_the_log(Delay::Lognormal(Duration::from_millis(20), Duration::from_millis(200)));
}

/// A simulator that stands still for 5 of 30 seconds, at 100 requests a second over 8 connections. Of 3,000 requests 500 are
/// meant to start meanwhile and wait for the rest of the 5 seconds: p90 is 5 s - 300/100, and p99 is 5 s - 30/100. Only 8 of
/// them were sent before, so that the service time shows nothing of it.
#[test]
#[cfg(unix)]
#[ignore = "takes half a minute; needs dealer-sim beside dealer-loadgen"]
fn a_simulator_that_is_stopped_for_five_seconds() {
    let binary = Path::new(env!("CARGO_BIN_EXE_dealer-loadgen")).with_file_name("dealer-sim");
    let mut simulator = Command::new(&binary)
        .args(["serve", "--listen", "127.0.0.1:0", "--admin", "off"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{}: {error}; build dealer-sim first", binary.display()));
    let mut line = String::new();
    BufReader::new(simulator.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let ready: Value = serde_json::from_str(&line).unwrap();
    let (path, url) = (scenario("smoke"), ready["card"].as_str().unwrap().to_owned());
    let flags =
        ["--rate", "100/s", "--connections", "8", "--warmup", "0s", "--duration", "30s", "--format", "json"];
    let line = [&["run", &path, "--endpoint", &url, "--quiet"], &flags[..]].concat();
    let run = command(&line).stdout(Stdio::piped()).spawn().unwrap();
    let signal =
        |name: &str| Command::new("kill").args([name, &simulator.id().to_string()]).status().unwrap();
    std::thread::sleep(Duration::from_secs(10));
    signal("-STOP");
    std::thread::sleep(Duration::from_secs(5));
    signal("-CONT");
    let output = run.wait_with_output().unwrap();
    simulator.kill().unwrap();
    simulator.wait().unwrap();
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    let (p90, p99) = (figure(&summary, "response", "p90_ms"), figure(&summary, "response", "p99_ms"));
    let service = figure(&summary, "service", "p90_ms");
    println!("response p90 {p90:.1} p99 {p99:.1} ms, service p90 {service:.3} ms, {}", summary["verdict"]);
    assert!(p90 >= 1900.0 && (p99 / 4700.0 - 1.0).abs() <= 0.03, "{p90} {p99}");
    assert!(service < 5.0, "{service}");
    assert_eq!((output.status.code(), &summary["verdict"]["valid"]), (Some(0), &Value::Bool(true)));
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

/// A search as `smoke` sends it, for programs that send one body again and again.
const BODY: &str = r#"{"jsonrpc":"2.0","id":"1","method":"SendMessage","params":{"message":{"messageId":"m-1","role":"ROLE_USER","parts":[{"data":{"type":"inventory.search.request","pagination":{"limit":20}},"mediaType":"application/vnd.autoagent.inventory-search-request+json"}]},"configuration":{"acceptedOutputModes":["application/vnd.autoagent.inventory-search-response+json"]}}}"#;

/// What a peer reports for so long a run at this rate: p50, p99 and p99.9 in milliseconds. Nothing when it is not installed.
fn peer(name: &str, url: &str, rate: u32, seconds: u32) -> Option<[f64; 3]> {
    let script = tempfile::Builder::new().suffix(".lua").tempfile().unwrap();
    let lua = format!(
        "wrk.method='POST'\nwrk.headers['Content-Type']='application/json'\nwrk.body=[[{BODY}]]\n\
         done=function(s,l,r) for _,p in pairs({{50,99,99.9}}) do io.write('is ',l:percentile(p)/1000,'\\n') end end\n"
    );
    std::fs::write(script.path(), lua).unwrap();
    let (script, rate, seconds) = (script.path().to_str().unwrap(), rate.to_string(), format!("{seconds}s"));
    let oha = ["--no-tui", "--output-format", "json", "-m", "POST", "-T", "application/json", "-d", BODY];
    let line: Vec<&str> = match name {
        "wrk" => vec!["wrk", "-t1", "-c64", "-d", &seconds, "-s", script, url],
        "wrk2" => vec!["wrk2", "-t1", "-c64", "-d", &seconds, "-R", &rate, "-s", script, url],
        "oha" => [&["oha", "-c", "64", "-z", &seconds, "-q", &rate], &oha[..], &[url]].concat(),
        _ => [&["oha", "-c", "64", "-z", &seconds, "-q", &rate, "--latency-correction"], &oha[..], &[url]]
            .concat(),
    };
    let output = Command::new(line[0]).args(&line[1..]).output().ok()?;
    let text = String::from_utf8_lossy(&output.stdout);
    let found: Vec<f64> = if line[0] == "oha" {
        let report: Value = serde_json::from_str(&text).unwrap();
        let at = |name| report["latencyPercentiles"][name].as_f64().unwrap_or(f64::NAN) * 1e3;
        ["p50", "p99", "p99.9"].map(at).to_vec()
    } else {
        text.lines().filter_map(|line| line.strip_prefix("is ")?.parse().ok()).collect()
    };
    Some(found.try_into().unwrap_or_else(|_| panic!("{name} said {text}")))
}

/// What the peers make of the same servers, beside the truth and what this program makes of them. Nothing is asserted of
/// the peers; one that is not installed is named.
#[test]
#[ignore = "takes five minutes and wants an idle machine"]
fn the_peers_on_the_same_servers() {
    let stall = Setup { stall: Some((STALL_EVERY, STALL)), ..Setup::default() };
    let nine = Delay::NineAndOne(Duration::from_millis(1), Duration::from_secs(1));
    let lognormal = Delay::Lognormal(Duration::from_millis(20), Duration::from_millis(200));
    let delayed = |delay| Setup { delay: Some(delay), ..Setup::default() };
    for (name, setup, rate) in [
        ("a stall of 500 ms every 5 s", stall, 1000),
        ("1 ms for nine, 1 s for one", delayed(nine), 300),
        ("a lognormal of p50 20 ms, p99 200 ms", delayed(lognormal), 500),
    ] {
        println!("{name}, {rate}/s for 20 s: p50, p99, p99.9 in ms");
        let server = Server::start(setup.clone());
        let (_, summary) = smoke(
            &server,
            &["--rate", &format!("{rate}/s"), "--warmup", "0s", "--duration", "20s", "--connections", "400"],
        );
        let mut log = server.delays();
        log.sort_unstable();
        if log.is_empty() {
            let (d, t, free) = (500.0, 5000.0, 1.0 - server.utilisation());
            println!("  {:<32} - {:.1} {:.1}", "truth", d - 0.01 * t * free, d - 0.001 * t * free);
        } else {
            let [p50, p99, p999] = [0.5, 0.99, 0.999].map(|q| quantile(&log, q));
            println!("  {:<32} {p50:.2} {p99:.1} {p999:.1}", "truth");
        }
        let ours = ["p50_ms", "p99_ms", "p999_ms"].map(|name| figure(&summary, "response", name));
        println!("  {:<32} {:.2} {:.1} {:.1}", "dealer-loadgen", ours[0], ours[1], ours[2]);
        for name in ["wrk", "wrk2", "oha", "oha --latency-correction"] {
            let server = Server::start(setup.clone());
            match peer(name, &server.raw_url(), rate, 20) {
                Some([p50, p99, p999]) => println!("  {name:<32} {p50:.2} {p99:.1} {p999:.1}"),
                None => println!("  {name:<32} not found"),
            }
        }
    }
}
