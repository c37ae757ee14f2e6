//! Faults over a real socket: what a client sees of each.

#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

mod support;

use std::io::{ErrorKind, Read, Write};
use std::time::{Duration, Instant};

use dealer_sim::faults::effect::ParamKind;
use dealer_sim::faults::{Slot, registry};
use dealer_sim::protocol::Binding;
use serde_json::{Value, json};
use support::{Sim, call, connect, http};

fn search() -> Value {
    call("inventory-search", &json!({ "type": "inventory.search.request", "pagination": { "limit": 3 } }))
}

/// One call that asks for a fault: everything that came before the connection ended, and how it ended.
fn ask(url: &str, body: &Value, fault: &str) -> (Vec<u8>, Option<ErrorKind>) {
    let (mut stream, path) = connect(url);
    let body = body.to_string();
    let request = format!(
        "POST {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\nContent-Type: application/json\r\nX-Sim-Fault: {fault}\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).unwrap();
    let mut all = Vec::new();
    let mut piece = [0; 8192];
    loop {
        match stream.read(&mut piece) {
            Ok(0) => return (all, None),
            Ok(read) => all.extend_from_slice(&piece[..read]),
            Err(error) => return (all, Some(error.kind())),
        }
    }
}

fn json_of(bytes: &[u8]) -> Value {
    let at = bytes.windows(4).position(|window| window == b"\r\n\r\n").unwrap() + 4;
    serde_json::from_slice(&bytes[at..]).unwrap()
}

fn typed_code(reply: &Value) -> String {
    reply["error"]["data"]
        .as_array()
        .and_then(|data| data.iter().find_map(|entry| entry["code"].as_str()))
        .unwrap_or_default()
        .to_owned()
}

#[test]
fn every_effect_of_the_catalogue_can_be_had_and_tells_on_itself() {
    let sim = Sim::start(&[]);
    let mut tried = 0;
    for effect in registry() {
        // Left out here: what needs an argument, and deliveries that take their time or wait for the peer to give up.
        let needs = effect.params.iter().any(|param| param.default.is_none());
        let waits = ["silen", "half"].iter().any(|part| effect.name.contains(part));
        let takes_time = effect.params.iter().any(|param| matches!(param.kind, ParamKind::Duration { .. }));
        if needs || waits || (takes_time && effect.apply.slot() != Slot::Answer) {
            continue;
        }
        let (bytes, ended) = ask(&sim.url(), &search(), effect.name);
        let text = String::from_utf8_lossy(&bytes).to_lowercase();
        if effect.family == "discovery" {
            // What rewrites the card does not touch a call, and the call is told so.
            assert!(text.contains("touches discovery alone"), "{}: {text:.400}", effect.name);
        } else if !effect.bindings.has(Binding::A2a) {
            assert!(text.contains(" touches ") && text.contains(" alone"), "{}: {text:.400}", effect.name);
        } else {
            let told = text.contains(&format!("; {}", effect.name));
            // Where the head did not come whole there is no field to tell by.
            let broke = effect.apply.slot() == Slot::Delivery
                && (ended.is_some() || !text.starts_with("http/1.1 200") || !text.contains("\r\n\r\n"));
            assert!(told || broke, "{}: {text:.400}", effect.name);
        }
        tried += 1;
    }
    assert!(tried >= 60, "{tried} of {} effects tried", registry().len());
    assert!(registry().len() >= 80, "{} effects", registry().len());
    // The dealer is as it was.
    assert_eq!(http("POST", &sim.url(), &[], &search().to_string()).0, 200);
}

#[test]
fn all_twelve_codes_by_header() {
    let sim = Sim::start(&[]);
    for code in [
        "SCHEMA_VALIDATION_FAILED",
        "MISSING_REQUIRED_FIELD",
        "INVALID_CONDITION",
        "UNSUPPORTED_SKILL",
        "VEHICLE_NOT_FOUND",
        "VEHICLE_UNAVAILABLE",
        "CONTACT_CONSENT_REQUIRED",
        "INVALID_CONSENT",
        "APPOINTMENT_TIME_UNAVAILABLE",
        "IDEMPOTENCY_CONFLICT",
        "RATE_LIMITED",
        "INTERNAL_ERROR",
    ] {
        let (bytes, _) = ask(&sim.url(), &search(), &code.to_lowercase());
        assert_eq!(typed_code(&json_of(&bytes)), code);
    }
}

#[test]
fn a_magic_value_does_what_the_header_does() {
    let sim = Sim::start(&[]);
    let table: Value = serde_json::from_str(&http("GET", &sim.admin("/magic"), &[], "").2).unwrap();
    let row =
        table["vins"].as_array().unwrap().iter().find(|row| row["effect"] == "vehicle_unavailable").unwrap();
    for payload in [
        json!({ "type": "inventory.vehicle.request", "vin": row["vin"] }),
        json!({ "type": "inventory.vehicle.request", "stock": "SIM:vehicle_unavailable" }),
    ] {
        let (_, head, body) = http("POST", &sim.url(), &[], &call("vehicle-detail", &payload).to_string());
        assert_eq!(typed_code(&serde_json::from_str(&body).unwrap()), "VEHICLE_UNAVAILABLE", "{head}");
        assert!(head.contains("x-sim-fault-applied: magic:"), "{head}");
    }
    let off = Sim::start(&["--no-magic", "--no-fault-headers"]);
    let payload = json!({ "type": "inventory.vehicle.request", "stock": "SIM:vehicle_unavailable" });
    let (_, head, body) = http(
        "POST",
        &off.url(),
        &[("X-Sim-Fault", "internal_error")],
        &call("vehicle-detail", &payload).to_string(),
    );
    assert_eq!(typed_code(&serde_json::from_str(&body).unwrap()), "VEHICLE_NOT_FOUND");
    assert!(!head.contains("x-sim-fault"), "{head}");
}

#[test]
fn a_reset_is_a_reset_and_the_lead_it_hid_is_one_lead() {
    let sim = Sim::start(&[]);
    let mut lead = support::lead("Lee");
    lead["idempotency_key"] = json!("k-1");
    let body = call("lead-submit", &lead);
    let (bytes, ended) = ask(&sim.url(), &body, "reset_after_commit");
    assert_eq!((bytes.as_slice(), ended), (&b""[..], Some(ErrorKind::ConnectionReset)));
    let leads = || -> Value { serde_json::from_str(&http("GET", &sim.admin("/leads"), &[], "").2).unwrap() };
    assert_eq!(leads()["received"], 1);
    assert_eq!(http("POST", &sim.url(), &[], &body.to_string()).0, 200);
    assert_eq!(leads()["received"], 1);
    ask(&sim.url(), &body, "idempotency_forgotten");
    assert_eq!(leads()["received"], 2);
}

#[test]
fn time_is_kept() {
    let sim = Sim::start(&[]);
    let begun = Instant::now();
    ask(&sim.url(), &search(), "latency(fixed, value=200ms)");
    let took = begun.elapsed();
    if took < Duration::from_millis(150) {
        panic!(
            "{took:?}: {}",
            String::from_utf8_lossy(&ask(&sim.url(), &search(), "latency(fixed, value=200ms)").0)
        );
    }
    assert!(took < Duration::from_millis(900), "{took:?}");
}

#[test]
fn a_plan_rules_and_the_admin_layer_stands_above_it() {
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("plan.yaml");
    std::fs::write(
        &plan,
        "name: test\nrules:\n  - id: sold\n    when: { skill: inventory.search, nth: 2 }\n    effect: vehicle_unavailable\n",
    )
    .unwrap();
    let sim = Sim::start(&["--faults", plan.to_str().unwrap()]);
    let codes = || -> Vec<String> {
        (0..4)
            .map(|_| {
                typed_code(
                    &serde_json::from_str(&http("POST", &sim.url(), &[], &search().to_string()).2).unwrap(),
                )
            })
            .collect()
    };
    assert_eq!(codes(), ["", "VEHICLE_UNAVAILABLE", "", "VEHICLE_UNAVAILABLE"]);
    let (status, head, _) = http("GET", &sim.admin("/faults"), &[], "");
    assert_eq!(status, 200);
    let etag = head.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap().to_owned();
    let bad = "rules:\n  - id: x\n    effect: no_such_effect\n  - id: y\n    when: { skil: a }\n    effect: internal_error\n";
    let (status, _, body) = http("PUT", &sim.admin("/faults"), &[], bad);
    assert_eq!(status, 400);
    assert!(body.contains("no_such_effect") && body.contains("skil"), "{body}");
    assert_eq!(codes(), ["", "VEHICLE_UNAVAILABLE", "", "VEHICLE_UNAVAILABLE"]);
    let rule = "id: all\neffect: internal_error\n";
    assert_eq!(http("POST", &sim.admin("/faults/rules"), &[], rule).0, 200);
    assert_eq!(codes(), ["INTERNAL_ERROR"; 4]);
    assert_eq!(http("PUT", &sim.admin("/faults"), &[("If-Match", &etag)], "rules: []\n").0, 412);
    assert_eq!(http("PATCH", &sim.admin("/faults/rules/all"), &[], "{\"enabled\":false}").0, 200);
    assert_eq!(codes().iter().filter(|code| code.is_empty()).count(), 2);
    assert_eq!(http("DELETE", &sim.admin("/faults"), &[], "").0, 200);
    assert_eq!(codes(), [""; 4]);
    let metrics = http("GET", &sim.admin("/metrics"), &[], "").2;
    assert!(metrics.contains("# TYPE dealer_sim_faults counter"), "{metrics}");
}

#[test]
fn the_shipped_plans_load_with_the_whole_catalogue() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../scenarios/faults");
    let files: Vec<_> = std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    assert!(files.len() >= 10);
    for file in files {
        dealer_sim::faults::Plan::load(std::slice::from_ref(&file), registry()).unwrap();
    }
}

#[test]
fn the_card_can_be_touched() {
    let sim = Sim::start(&[]);
    let card = sim.first["card"].as_str().unwrap().to_owned();
    let (status, head, _) = http("GET", &card, &[("X-Sim-Fault", "card_missing")], "");
    assert_eq!(status, 404);
    assert!(head.contains("x-sim-fault-applied: header; card_missing"), "{head}");
    assert_eq!(http("GET", &card, &[], "").0, 200);
}

/// The calls of a batch share one HTTP reply.
#[test]
fn what_loses_the_reply_to_a_batch_wins_over_what_bends_it() {
    let sim = Sim::start(&[]);
    let information = call("dealer-information", &json!({ "type": "dealer.information.request" }));
    let asked = |plan: &str, batch: [&Value; 2]| {
        assert_eq!(http("PUT", &sim.admin("/faults"), &[], plan).0, 200);
        let (mut stream, path) = connect(&sim.url());
        stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
        let body = json!(batch).to_string();
        let length = body.len();
        let head =
            format!("POST {path} HTTP/1.1\r\nHost: test\r\nConnection: close\r\nContent-Length: {length}");
        stream.write_all(format!("{head}\r\n\r\n{body}").as_bytes()).unwrap();
        let mut all = Vec::new();
        let end = stream.read_to_end(&mut all).map_err(|error| error.kind());
        (String::from_utf8(all).unwrap(), end.err())
    };
    let orders = [[&search(), &information], [&information, &search()]];
    let plan = "rules:\n\
        - { id: lost, when: { skill: inventory.search }, effect: reset_before_commit }\n\
        - { id: slow, when: { skill: dealer.information }, effect: 'drip(bytes=4KiB, every=1ms)' }\n";
    for batch in orders {
        assert_eq!(asked(plan, batch), (String::new(), Some(ErrorKind::ConnectionReset)));
    }
    let plan = "rules:\n\
        - { id: gateway, when: { skill: inventory.search }, effect: http_500 }\n\
        - { id: type, when: { skill: dealer.information }, effect: http_wrong_content_type }\n";
    for batch in orders {
        let (reply, _) = asked(plan, batch);
        assert!(reply.starts_with("HTTP/1.1 500 ") && reply.contains("<title>500 "), "{reply}");
    }
    // Of two that bend it, the first.
    let plan = "rules:\n\
        - { id: status, when: { skill: inventory.search }, effect: http_status_with_reply }\n\
        - { id: type, when: { skill: dealer.information }, effect: http_wrong_content_type }\n";
    let statuses = orders.map(|batch| asked(plan, batch).0[9..12].to_owned());
    assert_eq!(statuses, ["429", "200"]);
}

#[test]
fn every_line_of_the_fault_header_counts() {
    let sim = Sim::start(&[]);
    let body = search().to_string();
    let (status, head, _) = http(
        "POST",
        &sim.url(),
        &[("X-Sim-Fault", "id_wrong"), ("X-Sim-Fault", "http_close; latency(value=1ms)")],
        &body,
    );
    assert_eq!(status, 200);
    let told =
        |head: &str| head.lines().filter(|line| line.starts_with("x-sim-fault-applied: header; ")).count();
    // Both answers cannot be given: the first is.
    assert_eq!(told(&head), 2, "{head}");
    assert!(head.contains("id_wrong") && head.contains("latency"), "{head}");
    let (_, head, _) = http("POST", &sim.url(), &[("X-Sim-Fault", "id_wrong(id=\"é\")")], &body);
    assert_eq!(told(&head), 1, "{head}");
    let card = sim.first["card"].as_str().unwrap().to_owned();
    let (status, head, _) =
        http("GET", &card, &[("X-Sim-Fault", "latency(value=1ms)"), ("X-Sim-Fault", "card_missing")], "");
    assert_eq!((status, told(&head)), (404, 2), "{head}");
}

#[test]
fn an_if_match_that_cannot_be_read_matches_nothing() {
    let sim = Sim::start(&[]);
    let put = |fields: &[(&str, &str)]| http("PUT", &sim.admin("/faults"), fields, "rules: []\n").0;
    assert_eq!(put(&[("If-Match", "\"é\"")]), 412);
    assert_eq!(put(&[("If-Match", "\"one\"")]), 412);
    let head = http("GET", &sim.admin("/faults"), &[], "").1;
    let etag = head.lines().find_map(|line| line.strip_prefix("etag: ")).unwrap();
    // Two lines are one list (RFC 9110, section 5.3).
    assert_eq!(put(&[("If-Match", "\"one\""), ("If-Match", etag)]), 200);
}

#[test]
fn a_rule_has_a_bucket_of_its_own_and_a_full_one_when_it_takes_force() {
    let sim = Sim::start(&[]);
    let bucket = "effect: 'token_bucket(rate=1, per=1h, burst=1)'";
    let plan = format!(
        "rules:\n- {{ id: a, when: {{ skill: inventory.search }}, {bucket} }}\n\
         - {{ id: b, when: {{ skill: dealer.information }}, {bucket} }}\n"
    );
    let information = call("dealer-information", &json!({ "type": "dealer.information.request" }));
    let code = |body: &Value| {
        let reply = http("POST", &sim.url(), &[], &body.to_string()).2;
        typed_code(&serde_json::from_str(&reply).unwrap())
    };
    for _ in 0..2 {
        assert_eq!(http("PUT", &sim.admin("/faults"), &[], &plan).0, 200);
        let codes = [&search(), &information, &search(), &information].map(code);
        assert_eq!(codes, ["", "", "RATE_LIMITED", "RATE_LIMITED"]);
    }
    // To disable a rule and enable it again empties and fills nothing.
    for enabled in ["false", "true"] {
        let body = format!("{{\"enabled\":{enabled}}}");
        assert_eq!(http("PATCH", &sim.admin("/faults/rules/a"), &[], &body).0, 200);
    }
    assert_eq!(code(&search()), "RATE_LIMITED");
}

#[test]
fn buckets_of_faults_are_bounded_and_what_is_dropped_is_counted() {
    let sim = Sim::start(&[]);
    let plan = "rules: [{ id: a, effect: 'token_bucket(rate=1, per=1h, key=conversation)' }]\n";
    assert_eq!(http("PUT", &sim.admin("/faults"), &[], plan).0, 200);
    let dropped = || {
        let metrics = http("GET", &sim.admin("/metrics"), &[], "").2;
        let line = metrics.lines().find_map(|line| line.strip_prefix("dealer_sim_buckets_dropped_total "));
        line.unwrap().parse::<u64>().unwrap()
    };
    let mut one = call("dealer-information", &json!({ "type": "dealer.information.request" }));
    for batch in 0..101 {
        assert!(batch < 100 || dropped() == 0);
        let conversations = (0..100).map(|number| {
            one["params"]["message"]["contextId"] = json!(format!("ctx_{batch}_{number}"));
            one.clone()
        });
        let body = Value::from_iter(conversations).to_string();
        assert_eq!(http("POST", &sim.url(), &[], &body).0, 200);
    }
    assert_eq!(dropped(), 10_000);
}
