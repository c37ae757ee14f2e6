//! The conformance suite against dealers of which it is known what is wrong with them, if anything.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]
#![expect(clippy::disallowed_methods, reason = "how long the suite takes is what is tested")]

mod mutation;

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use dealer_loadgen::conform::{
    Certainty, ConformError, Finding, Headers, Report, Request, Verdict, catalogue, conform, html, json,
    junit, text,
};
use dealer_loadgen::transport::{Options, Reuse};
use dealer_sim::dealer::clock::ClockMode;
use dealer_sim::journal::Limits;
use dealer_sim::protocol::{Contract, HeaderMode};
use dealer_sim::{Dealer, DealerBuilder};

fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().join(path)
}

fn request(url: Option<String>) -> Request {
    Request {
        url,
        contract: None,
        headers: Headers::Usual,
        allow_real_leads: false,
        allow_draft_contract: false,
        options: Options {
            connect_timeout: Duration::from_secs(1),
            timeout: Duration::from_secs(5),
            max_reply: 8 << 20,
            reuse: Reuse::None,
            ca: None,
            insecure: false,
            http2: false,
            identity: None,
            headers: Vec::new(),
        },
        timeout: Duration::from_secs(60),
    }
}

fn on_runtime<T>(work: impl Future<Output = T>) -> T {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(work)
}

/// Judges a simulator that is made for it.
fn judged(dealer: DealerBuilder, change: impl FnOnce(&mut Request)) -> Result<Report, ConformError> {
    on_runtime(async {
        let dealer = dealer.journal(Limits::OFF).start().await.unwrap();
        let mut request = request(Some(dealer.card_url()));
        change(&mut request);
        conform(&request).await
    })
}

fn failed(report: &Report, certainty: Certainty) -> Vec<&'static str> {
    let of = report.results.iter().filter(|judged| judged.rule.certainty == certainty);
    of.filter(|judged| matches!(judged.finding, Finding::Fail(_))).map(|judged| judged.rule.id).collect()
}

/// The modes of an endpoint of a contract, and what the suite is told of each. The simulator of a contract before 2.0 keeps
/// every rule in its own mode; in another one it asks more of headers than that contract does.
fn modes(contract: Contract) -> &'static [(HeaderMode, Headers)] {
    match contract.name {
        "2.0" | "3.0" => &[(HeaderMode::Pinned, Headers::Pinned), (HeaderMode::Strict, Headers::Strict)],
        _ => &[(HeaderMode::Ignored, Headers::Usual)],
    }
}

#[test]
fn the_simulator_keeps_every_rule_under_every_contract_and_header_mode() {
    for contract in Contract::ALL {
        for &(mode, headers) in modes(contract) {
            let started = Instant::now();
            let dealer = Dealer::builder().seed(11).contract(contract).headers(mode);
            let report = judged(dealer, |request| request.headers = headers).unwrap();
            assert!(
                started.elapsed() < Duration::from_secs(20),
                "{contract} {mode}: {:?}",
                started.elapsed()
            );
            let told = text(&report);
            for certainty in Certainty::ALL {
                let [kept, broken, not_run] = report.counts(certainty);
                println!("{contract} {mode} {}: {kept} {broken} {not_run}", certainty.word());
                assert_eq!(broken, 0, "{contract} {mode}\n{told}");
            }
            assert_eq!(report.verdict, Verdict::Conforms, "{told}");
            let not_run: usize = Certainty::ALL.iter().map(|certainty| report.counts(*certainty)[2]).sum();
            assert!(not_run <= 4, "{told}");
            assert!(report.results.len() >= 120);
        }
    }
}

#[test]
fn a_dealer_whose_clock_stands_in_another_year_conforms() {
    for at in ["2024-06-01T12:00:00Z", "2031-01-01T00:00:00Z"] {
        let clock = ClockMode::Frozen(at.parse().unwrap());
        let report = judged(Dealer::builder().clock(clock), |_| {}).unwrap();
        assert_eq!(report.verdict, Verdict::Conforms, "{at}: {}", text(&report));
        assert_eq!(report.counts(Certainty::Must)[2], 0, "{at}: {}", text(&report));
    }
}

#[test]
fn a_strict_endpoint_of_an_old_contract_conforms_with_a_remark() {
    let dealer = Dealer::builder().seed(11).contract(Contract::V1_2).headers(HeaderMode::Strict);
    let report = judged(dealer, |request| request.headers = Headers::Strict).unwrap();
    assert_eq!(report.verdict, Verdict::Conforms, "{}", text(&report));
    assert_eq!(failed(&report, Certainty::Should), ["headers.none-needed"]);
}

/// What a contract before 2.0 allows, and what it forbids as all do, from the pages of those contracts.
#[test]
fn old_contracts_are_judged_by_their_own_rules() {
    let play = |effect: &str| {
        let plan = format!("rules: [{{ id: x, effect: \"{effect}\" }}]").parse().unwrap();
        let dealer = Dealer::builder().seed(3).vehicles(120).contract(Contract::V1_2).threads(1).faults(plan);
        judged(dealer, |_| ()).unwrap()
    };
    for effect in [
        "context_id_missing",
        "context_id_empty",
        "error_data_object(code=none)",
        "error_data_without_type(code=none)",
        "rate_limited_as_32002(code=none)",
        "unsupported_skill_as_32601(code=none)",
        "card_without_params",
        "card_two_contracts",
        "card_extension_optional",
    ] {
        let report = play(effect);
        assert_eq!(failed(&report, Certainty::Must), [""; 0], "{effect}: {}", text(&report));
    }
    for (effect, rule) in [
        ("error_data_string(code=none)", "error.data-object"),
        ("error_data_absent(code=none)", "error.data-object"),
        ("error_data_empty(code=none)", "error.data-object"),
        ("error_typed_missing(code=none)", "error.data-object"),
        ("typed_code_unknown(code=none)", "error.typed-code"),
        ("context_id_null", "message.context-form"),
        ("context_id_retyped", "message.context-form"),
        ("context_id_new", "message.context-kept"),
        ("card_wrong_type", "card.required-form"),
        ("http_echo_wrong", "headers.echo-true"),
        ("price_as_text", "listing.prices"),
    ] {
        let report = play(effect);
        assert!(failed(&report, Certainty::Must).contains(&rule), "{effect}: {}", text(&report));
    }
}

#[test]
fn the_forms_of_a_report_are_sound() {
    let plan = "rules: [{ id: x, effect: role_user }]".parse().unwrap();
    let report = judged(Dealer::builder().faults(plan).vehicles(60), |_| ()).unwrap();
    let schema = std::fs::read_to_string(repository("data/schemas/conformance.schema.json")).unwrap();
    let schema = jsonschema::validator_for(&serde_json::from_str(&schema).unwrap()).unwrap();
    let document = json(&report);
    let faults: Vec<String> = schema.iter_errors(&document).map(|error| error.to_string()).collect();
    assert!(faults.is_empty(), "{faults:#?}");
    let junit = junit(&report);
    assert!(junit.contains("<failure message=") && junit.contains("conform.message"), "{junit}");
    assert_eq!(junit.matches("<testcase").count(), report.results.len());
    assert!(html(&report).contains("does not conform"));
    assert!(text(&report).starts_with("AAP 3.0: does not conform"), "{}", text(&report));
    assert_eq!(report.exit_code(), 3);
}

#[test]
fn the_page_of_the_rules_is_that_of_the_table() {
    let path = repository("loadgen/CONFORMANCE.md");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(&path, catalogue()).unwrap();
    }
    let page = std::fs::read_to_string(&path).unwrap().replace("\r\n", "\n");
    assert_eq!(page, catalogue(), "UPDATE_GOLDEN=1 writes {} anew", path.display());
}

/// Answers every request in one way, with a head and a body.
fn answering(status: &'static str, kind: &'static str, body: fn(&str) -> Option<String>) -> String {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}", listener.local_addr().unwrap());
    let base = url.clone();
    std::thread::spawn(move || {
        let mut held = Vec::new();
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut head = [0; 4096];
            let length = stream.read(&mut head).unwrap_or(0);
            let is_card = head[..length].starts_with(b"GET");
            match body(if is_card { &base } else { "" }) {
                Some(body) => {
                    let status = if is_card && kind == "text/plain" { "200 OK" } else { status };
                    let text = format!(
                        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                        body.len()
                    );
                    let _ = stream.write_all(text.as_bytes());
                }
                // Nothing is ever said.
                None => held.push(stream),
            }
        }
    });
    url
}

/// The command against a dealer: exit code, what it says, how long it took.
fn command(url: &str, flags: &[&str]) -> (i32, String, Duration) {
    let started = Instant::now();
    let done = Command::new(env!("CARGO_BIN_EXE_dealer-loadgen"))
        .args(["conform", "--endpoint", url, "--request-timeout", "300ms", "--timeout", "10s"])
        .args(flags)
        .output()
        .unwrap();
    let told = format!("{}{}", String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
    (done.status.code().unwrap(), told, started.elapsed())
}

fn card_of(base: &str) -> String {
    serde_json::json!({
        "name": "Broken Motors", "description": "A test.", "version": "1",
        "supportedInterfaces": [{ "url": format!("{base}/a2a"), "protocolBinding": "JSONRPC", "protocolVersion": "1.0" }],
        "capabilities": { "extensions": [{ "uri": Contract::V3_0.extension_uri, "required": true, "params": { "a": 1 } }] },
        "defaultInputModes": ["x"], "defaultOutputModes": ["x"],
        "skills": [{ "id": "inventory.search", "name": "s", "description": "d", "tags": ["t"] }],
    })
    .to_string()
}

#[test]
fn dealers_that_are_none_get_a_clear_report_and_hold_nothing_up() {
    // Always 500, card and all.
    let url = answering("500 Internal Server Error", "text/html", |_| Some("<html>".to_owned()));
    let (code, told, took) = command(&url, &[]);
    assert_eq!(code, 2, "{told}");
    assert!(told.contains("not reached") && told.contains("500"), "{told}");
    assert!(took < Duration::from_secs(5), "{took:?}");

    // A card, and 500 to each call.
    let url = answering("500 Internal Server Error", "text/plain", |base| {
        Some(if base.is_empty() { "oops".to_owned() } else { card_of(base) })
    });
    let (code, told, took) = command(&url, &[]);
    assert_eq!(code, 3, "{told}");
    assert!(told.contains("search.served") && told.contains("HTTP 500"), "{told}");
    assert!(took < Duration::from_secs(10), "{took:?}");

    // Never an answer.
    let url = answering("200 OK", "text/html", |_| None);
    let (code, told, took) = command(&url, &[]);
    assert_eq!(code, 2, "{told}");
    assert!(told.contains("no reply came in time"), "{told}");
    assert!(took < Duration::from_secs(5), "{took:?}");

    // A card, and never an answer to a call.
    let url = answering("200 OK", "text/plain", |base| (!base.is_empty()).then(|| card_of(base)));
    let (code, told, took) = command(&url, &["--format", "text"]);
    assert_eq!(code, 2, "{told}");
    assert!(told.contains("not reached") && told.contains("in a row got no reply"), "{told}");
    assert!(took < Duration::from_secs(6), "{took:?}");

    // A web site.
    let url = answering("200 OK", "text/html", |_| Some("<!DOCTYPE html><h1>Cars!</h1>".to_owned()));
    let (code, told, _) = command(&url, &[]);
    assert_eq!(code, 3, "{told}");
    assert!(told.contains("card.json") && told.contains("<h1>Cars!"), "{told}");

    // An A2A agent that sells no cars.
    let url = answering("200 OK", "text/plain", |base| {
        Some(card_of(base).replace("autoagentprotocol.org", "hotels.example"))
    });
    let (code, told, took) = command(&url, &[]);
    assert_eq!(code, 3, "{told}");
    assert!(told.contains("card.one-contract") && told.contains("no call was made"), "{told}");
    assert!(took < Duration::from_secs(5), "{took:?}");

    // A service that knows no such page.
    let url =
        answering("404 Not Found", "application/json", |_| Some("{\"error\":\"not found\"}".to_owned()));
    let (code, told, _) = command(&url, &[]);
    assert_eq!(code, 2, "{told}");
    assert!(told.contains("HTTP 404 instead of an agent card"), "{told}");

    // A certificate that is not there is the user's to mend.
    let (code, told, _) =
        command(&url.replace("http:", "https:"), &["--cert", "/no/such.pem", "--key", "/no/such.pem"]);
    assert_eq!(code, 1, "{told}");
    assert!(told.contains("/no/such.pem"), "{told}");

    // Nobody.
    let (code, told, _) = command("http://127.0.0.1:9", &[]);
    assert_eq!(code, 2, "{told}");
    assert!(told.contains("refused"), "{told}");
}

#[test]
fn a_dealer_that_may_be_real_gets_no_lead() {
    // A simulator behind a card of other making is a dealer like any other.
    let report = on_runtime(async {
        let dealer = Dealer::builder().vehicles(60).journal(Limits::OFF).start().await.unwrap();
        let target = dealer.url().trim_end_matches("/a2a").to_owned();
        // Its card comes from elsewhere, without the simulator's Server header.
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/agent-card.json", listener.local_addr().unwrap());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let mut stream = stream.unwrap();
                let _ = stream.read(&mut [0; 4096]);
                let body = card_of(&target).replace("inventory.search", "lead.submit");
                let text = format!(
                    "HTTP/1.1 200 OK\r\nContent-Length: {}\r\nConnection: close\r\n\r\n{body}",
                    body.len()
                );
                let _ = stream.write_all(text.as_bytes());
            }
        });
        let report = conform(&request(Some(url))).await.unwrap();
        assert_eq!(dealer.world().leads_in_all(), 0);
        report
    });
    let leads: Vec<_> = report.results.iter().filter(|judged| judged.rule.id.starts_with("lead.")).collect();
    assert!(leads.len() > 30);
    for judged in leads {
        let Finding::NotRun(why) = &judged.finding else { panic!("{} was judged", judged.rule.id) };
        assert!(why.contains("--allow-real-leads"), "{}: {why}", judged.rule.id);
    }
}
