//! Scenarios from the outside: what a session sends, keeps and checks.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::time::Duration;

use dealer_loadgen::scenario::{Flow, Item, LoadError, ReplyParts, Session, Step, Think, Workload, load};
use jiff::Timestamp;
use serde_json::{Value, json};

fn shipped(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios").join(name)
}

fn now() -> Timestamp {
    "2026-01-01T12:00:00.5Z".parse().unwrap()
}

/// A folder with files in it that lives as long as the value.
struct Files(tempfile::TempDir);

impl Files {
    fn new(files: &[(&str, &str)]) -> Files {
        let dir = tempfile::tempdir().unwrap();
        for (name, text) in files {
            std::fs::write(dir.path().join(name), text).unwrap();
        }
        Files(dir)
    }

    fn load(&self, names: &[&str], sets: &[(&str, &str)]) -> Result<Workload, LoadError> {
        let paths: Vec<PathBuf> = names.iter().map(|name| self.0.path().join(name)).collect();
        let sets: Vec<_> = sets.iter().map(|(n, v)| ((*n).to_owned(), (*v).to_owned())).collect();
        load(&paths, &sets)
    }
}

fn workload(text: &str, sets: &[(&str, &str)]) -> Workload {
    Files::new(&[("s.yaml", text)]).load(&["s.yaml"], sets).unwrap()
}

/// A scenario of one step with these variables and this request.
fn one_step(variables: &str, request: &str) -> String {
    format!(
        "name: t\nvariables: {variables}\nflows:\n  f:\n    - step: s\n      skill: inventory.search\n      request: {request}\n"
    )
}

fn steps(workload: &Workload, flow: usize) -> Vec<&Step> {
    fn step(item: &Item) -> Option<&Step> {
        match item {
            Item::Step(step) => Some(step),
            _ => None,
        }
    }
    workload.flows()[flow].items().iter().filter_map(step).collect()
}

fn flow_called(workload: &Workload, name: &str) -> usize {
    workload.flows().iter().position(|flow| flow.name() == name).unwrap()
}

fn rendered(step: &Step, session: &mut Session) -> String {
    let mut out = Vec::new();
    step.render(session, now(), false, &mut out);
    String::from_utf8(out).unwrap()
}

/// What the one step of a scenario sends in session 0 of seed 42.
fn sent(variables: &str, request: &str, sets: &[(&str, &str)]) -> Value {
    let workload = workload(&one_step(variables, request), sets);
    let text = rendered(steps(&workload, 0)[0], &mut workload.begin(42, 0));
    let mut value: Value = serde_json::from_str(&text).unwrap();
    assert!(text.starts_with("{\"type\":\"inventory.search.request\""), "{text}");
    value.as_object_mut().unwrap().remove("type");
    value
}

fn reply(payload: &Value) -> Vec<u8> {
    let body = json!({"jsonrpc": "2.0", "id": 1, "result": {"message": {"parts": [{"data": payload}]}}});
    body.to_string().into_bytes()
}

fn read(step: &Step, session: &mut Session, payload: &Value) -> Result<(), String> {
    let body = reply(payload);
    let header = |name: &str| name.eq_ignore_ascii_case("x-request").then_some("r-7");
    step.read_reply(session, ReplyParts { body: &body, header: &header }).map_err(|failed| failed.to_string())
}

#[test]
fn a_lone_expression_keeps_its_type_and_inside_text_it_becomes_text() {
    let variables = r#"{ n: 20, f: 1.5, t: "94105", b: true, l: [1, "a"], m: { k: 7 } }"#;
    let request = r#"{ n: "${n}", nt: "n=${n}", f: "${f}", t: "${t}", b: "${b}", l: "${l}", l1: "${l[1]}", k: "${m.k}",
        lt: "${l}!", esc: "$${n} costs $5", q: "a\"${t}\"" }"#;
    let wanted = json!({"n": 20, "nt": "n=20", "f": 1.5, "t": "94105", "b": true, "l": [1, "a"], "l1": "a", "k": 7,
        "lt": "[1,\"a\"]!", "esc": "${n} costs $5", "q": "a\"94105\""});
    assert_eq!(sent(variables, request, &[]), wanted);
}

#[test]
fn plain_scalars_are_read_by_the_rules_of_json() {
    let request = r#"{ a: 20, b: 20.5, c: "20", d: 007, e: yes, f: null, g: [ ~ ], h: {}, i: -0, j: 18446744073709551615,
        k: , l: 0x1F, m: 1e3 }"#;
    let wanted = json!({"a": 20, "b": 20.5, "c": "20", "d": "007", "e": "yes", "f": null, "g": [null], "h": {}, "i": 0,
        "j": 18_446_744_073_709_551_615_u64, "k": null, "l": "0x1F", "m": 1000.0});
    assert_eq!(sent("{}", request, &[]), wanted);
}

#[test]
fn a_member_that_is_one_expression_with_nothing_in_it_is_left_out() {
    let request =
        r#"{ a: "${x}", b: { c: "${x}" }, d: [ "${x}", 1, "${x}" ], e: "<${x}>", f: null, g: "${y.z[3]}" }"#;
    let wanted = json!({"b": {}, "d": [1], "e": "<>", "f": null});
    assert_eq!(sent("{ x: null, y: { z: [] } }", request, &[]), wanted);
}

#[test]
fn members_are_sent_in_the_order_written_and_a_type_of_ones_own_comes_first() {
    let text = one_step("{ x: 1 }", r#"{ z: 1, a: "${x}", m: { y: 2, b: 3 }, type: my.own.request }"#);
    let workload = workload(&text, &[]);
    let sent = rendered(steps(&workload, 0)[0], &mut workload.begin(1, 1));
    assert_eq!(sent, r#"{"type":"my.own.request","z":1,"a":1,"m":{"y":2,"b":3}}"#);
}

#[test]
fn set_wins_over_extracted_wins_over_feeder_wins_over_variables() {
    let text = "
name: t
variables:
  a: variable
  b: variable
  c: variable
  d: variable
  rows: { file: rows.csv }
flows:
  f:
    - step: first
      skill: inventory.search
      request: { a: '${a}', b: '${b}', c: '${c}', d: '${d}' }
      extract: { c: /c, d: /d }
    - step: second
      skill: inventory.search
      request: { a: '${a}', b: '${b}', c: '${c}', d: '${d}', row: '${rows.b}' }
";
    let files = Files::new(&[("s.yaml", text), ("rows.csv", "b,c,d\nfeeder,feeder,feeder\n")]);
    let workload = files.load(&["s.yaml"], &[("d", "set")]).unwrap();
    let (steps, mut session) = (steps(&workload, 0), workload.begin(42, 0));
    let names = |text: String| {
        let value: Value = serde_json::from_str(&text).unwrap();
        ["a", "b", "c", "d"].map(|name| value[name].as_str().unwrap_or("-").to_owned())
    };
    assert_eq!(names(rendered(steps[0], &mut session)), ["variable", "feeder", "feeder", "set"]);
    read(steps[0], &mut session, &json!({"c": "extracted", "d": "extracted"})).unwrap();
    assert_eq!(names(rendered(steps[1], &mut session)), ["variable", "feeder", "extracted", "set"]);
    assert_eq!(session.extracted("c"), Some(&json!("extracted")));
    assert_eq!((session.extracted("none"), session.flow()), (None, 0));
    // An extraction that finds nothing is null, whatever the name stood for before.
    read(steps[0], &mut session, &json!({})).unwrap();
    assert_eq!(names(rendered(steps[1], &mut session)), ["variable", "feeder", "-", "set"]);
}

#[test]
fn set_keeps_the_type_of_the_text_it_replaces() {
    let request = r#"{ zip: "${zip}", n: "${n}", new: "${new}", q: "${q}" }"#;
    let sets = [("zip", "10001"), ("n", "7"), ("new", "8"), ("q", "\"9\"")];
    let wanted = json!({"zip": "10001", "n": 7, "new": 8, "q": "9"});
    assert_eq!(sent(r#"{ zip: "94105", n: 5 }"#, request, &sets), wanted);
}

#[test]
fn the_functions_draw_what_they_say() {
    let request = r#"{ u: "${uniform(5, 6)}", f: "${uniform(0.5, 1)}", l: "${lognormal(p50=100, p99=900)}",
        p: "${pick('a', \"b\", 3)}", i: "${int('12')}", id: "${uuid()}", at: "${now()}", later: "${now(+48h)}",
        before: "${now(-5m)}", vin: "${vin()}", who: "${first_name()} ${last_name()}", e: "${email()}", t: "${phone()}",
        buyer: "${buyer(prefers=sms)}", consent: "${consent(email, sms)}" }"#;
    let sent = sent("{}", request, &[]);
    assert!(matches!(sent["u"].as_i64(), Some(5 | 6)) && sent["l"].is_i64() && sent["i"] == 12);
    assert!((0.5..=1.0).contains(&sent["f"].as_f64().unwrap()));
    assert_eq!(
        (&sent["at"], &sent["later"], &sent["before"]),
        (&json!("2026-01-01T12:00:00Z"), &json!("2026-01-03T12:00:00Z"), &json!("2026-01-01T11:55:00Z"))
    );
    assert_eq!(sent["buyer"]["preferred_contact"], "sms");
    assert_eq!(sent["consent"]["allowed_channels"], json!(["email", "sms"]));
    assert_eq!(sent["consent"]["scope"], json!(["lead_submission"]));
}

/// The requests of a `buy` session, one a line.
fn transcript(workload: &Workload, seed: u64, ordinal: u64) -> String {
    let mut session = workload.begin(seed, ordinal);
    let found = json!({"data": {"total": 1, "vehicles": [{"vin": "V"}], "vin": "V", "lead_id": "L"}});
    let mut all = String::new();
    for step in steps(workload, flow_called(workload, "buy")) {
        all.push_str(&rendered(step, &mut session));
        all.push('\n');
        read(step, &mut session, &found).unwrap();
    }
    all
}

fn first_buyer(workload: &Workload) -> u64 {
    let buy = flow_called(workload, "buy");
    (0..100).find(|ordinal| workload.begin(42, *ordinal).flow() == buy).unwrap()
}

#[test]
fn the_same_seed_renders_the_same_bytes() {
    let workload = load(&[shipped("shopping.yaml")], &[]).unwrap();
    let ordinal = first_buyer(&workload);
    let sent = transcript(&workload, 42, ordinal);
    assert_eq!(sent, transcript(&load(&[shipped("shopping.yaml")], &[]).unwrap(), 42, ordinal));
    assert_ne!(sent, transcript(&workload, 42, ordinal + 1));
    assert_ne!(sent, transcript(&workload, 43, ordinal));
    // Golden: these bytes are what a recorded run with this seed sent. UPDATE_GOLDEN=1 writes them anew.
    let golden = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/golden/shopping-buy.jsonl");
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(golden, &sent).unwrap();
    }
    assert_eq!(sent, std::fs::read_to_string(golden).unwrap());
}

#[test]
fn what_one_item_draws_does_not_move_the_others() {
    let workload = load(&[shipped("shopping.yaml")], &[]).unwrap();
    let (ordinal, flow) = (first_buyer(&workload), flow_called(&workload, "buy"));
    let lead = steps(&workload, flow)[2];
    let (mut plain, mut busy) = (workload.begin(42, ordinal), workload.begin(42, ordinal));
    for item in workload.flows()[flow].items() {
        match item {
            Item::Think(think) => assert_eq!(think.draw(&mut busy), think.draw(&mut busy)),
            Item::Step(step) => drop(rendered(step, &mut busy)),
            _ => {}
        }
    }
    assert_eq!(rendered(lead, &mut plain), rendered(lead, &mut busy));
}

#[test]
fn flows_come_by_weight_and_files_by_equal_share() {
    let workload = load(&[shipped("shopping.yaml"), shipped("smoke.yaml")], &[]).unwrap();
    assert_eq!(workload.name(), "shopping+smoke");
    let names: Vec<(&str, u64)> = workload.flows().iter().map(|flow| (flow.name(), flow.weight())).collect();
    assert_eq!(names, [("browse", 8), ("buy", 2), ("search", 1)]);
    let mut counts = [0_u32; 3];
    for ordinal in 0..10_000 {
        counts[workload.begin(7, ordinal).flow()] += 1;
    }
    // 40, 10 and 50 in a hundred; four standard deviations of 10,000 draws are 200.
    for (count, wanted) in counts.into_iter().zip([4000, 1000, 5000]) {
        assert!(count.abs_diff(wanted) < 200, "{counts:?}");
    }
    let ids: Vec<usize> = (0..3).flat_map(|flow| steps(&workload, flow)).map(Step::id).collect();
    assert_eq!(ids, (0..workload.step_count()).collect::<Vec<_>>());
    let labels: BTreeSet<String> = (0..3).flat_map(|flow| steps(&workload, flow)).map(Step::label).collect();
    assert_eq!(labels.len(), workload.step_count());
    assert!(labels.contains("buy/search") && labels.contains("search/search"));
}

#[test]
fn flows_of_one_name_in_two_files_keep_apart() {
    let smoke = std::fs::read_to_string(shipped("smoke.yaml")).unwrap();
    let files = Files::new(&[("a.yaml", &smoke), ("b.yaml", &smoke.replace("name: smoke", "name: other"))]);
    let workload = files.load(&["a.yaml", "b.yaml"], &[]).unwrap();
    let names: Vec<&str> = workload.flows().iter().map(Flow::name).collect();
    assert_eq!(names, ["smoke-search", "other-search"]);
}

#[test]
fn a_flow_outside_the_mix_only_serves_others() {
    let text = "
name: t
mix: [ { flow: all } ]
flows:
  tail: [ { step: b, skill: inventory.vehicle, request: { vin: '${vin}' } } ]
  all: [ { step: a, skill: inventory.search, extract: { vin: /vin } }, { include: tail } ]
";
    let workload = workload(text, &[]);
    assert_eq!(workload.flows().len(), 1);
    assert_eq!(steps(&workload, 0).iter().map(|step| step.label()).collect::<Vec<_>>(), ["all/a", "all/b"]);
}

#[test]
fn when_extract_and_check_work_together() {
    let workload = load(&[shipped("shopping.yaml")], &[]).unwrap();
    let (steps, mut session) = (steps(&workload, 0), workload.begin(42, 0));
    assert!(steps[0].is_due(&session) && !steps[1].is_due(&session));
    assert!(steps[0].reads_reply());
    read(steps[0], &mut session, &json!({"data": {"total": 1, "vehicles": [{"vin": "A"}]}})).unwrap();
    assert!(steps[1].is_due(&session));
    assert_eq!(session.extracted("vin"), Some(&json!("A")));
    let failed = read(steps[1], &mut session, &json!({"data": {"vin": "B"}})).unwrap_err();
    assert_eq!(failed, r#"check same-vin failed: /data/vin is "B", wanted equals "A""#);
    // Nothing found: the value of an earlier reply does not live on.
    read(steps[0], &mut session, &json!({"data": {"total": 0, "vehicles": []}})).unwrap();
    assert!(!steps[1].is_due(&session));
    assert_eq!(session.extracted("vin"), None);
}

#[test]
fn a_buyer_leaves_one_kind_of_lead() {
    let workload = load(&[shipped("shopping.yaml")], &[]).unwrap();
    let buy = flow_called(&workload, "buy");
    let mut kinds = BTreeSet::new();
    for ordinal in (0..200).filter(|ordinal| workload.begin(42, *ordinal).flow() == buy) {
        let (steps, mut session) = (steps(&workload, buy), workload.begin(42, ordinal));
        read(steps[0], &mut session, &json!({"data": {"total": 1, "vehicles": [{"vin": "A"}]}})).unwrap();
        let due: Vec<&str> =
            steps[2..].iter().filter(|step| step.is_due(&session)).map(|step| step.name()).collect();
        assert_eq!(due.len(), 1, "{due:?}");
        kinds.insert(due[0].to_owned());
    }
    assert_eq!(kinds.into_iter().collect::<Vec<_>>(), ["lead", "test-drive"]);
}

#[test]
fn the_first_check_that_fails_gives_its_name() {
    let text = "
name: t
flows:
  f:
    - step: s
      skill: inventory.search
      extract: { id: 'envelope:/id', request: 'header:X-Request' }
      check:
        - { path: /data/total, gte: 1, lte: 5 }
        - { name: second, path: /data/total, equals: 9 }
        - { path: 'header:X-Request', equals: '${request}' }
";
    let workload = workload(text, &[]);
    let (step, mut session) = (steps(&workload, 0)[0], workload.begin(1, 1));
    let mut name = |total: Value| {
        let body = reply(&json!({"data": {"total": total}}));
        let header = |name: &str| (name == "X-Request").then_some("r-7");
        let failed = step.read_reply(&mut session, ReplyParts { body: &body, header: &header });
        (failed.unwrap_err().name.to_string(), session.extracted("request").cloned())
    };
    assert_eq!(name(json!(6)).0, "data_total");
    assert_eq!(name(json!("x")).0, "data_total");
    assert_eq!(name(json!(3)), ("second".to_owned(), Some(json!("r-7"))));
}

#[test]
fn expected_outcomes_are_no_errors() {
    let text = "
name: t
flows:
  f:
    - { step: a, skill: inventory.search }
    - { step: b, skill: inventory.search, expect: [ ok, aap.RATE_LIMITED, transport.* ], on_error: continue }
    - { step: c, skill: inventory.search, expect: rpc.-32602 }
";
    let workload = workload(text, &[]);
    let steps = steps(&workload, 0);
    assert!(steps[0].expects("ok") && !steps[0].expects("aap.RATE_LIMITED") && !steps[0].on_error_continue());
    assert!(!steps[0].reads_reply());
    assert!(
        steps[1].expects("ok") && steps[1].expects("aap.RATE_LIMITED") && steps[1].expects("transport.reset")
    );
    assert!(steps[1].on_error_continue());
    assert!(!steps[2].expects("ok") && steps[2].expects("rpc.-32602"));
}

#[test]
fn thinking_takes_its_time() {
    let text = "
name: t
flows:
  f:
    - { step: a, skill: inventory.search }
    - think: 1.5s
    - think: uniform(100ms, 500ms)
    - think: lognormal(p50=200ms, p99=1500ms)
";
    let workload = workload(text, &[]);
    fn think(item: &Item) -> Option<&Think> {
        match item {
            Item::Think(think) => Some(think),
            _ => None,
        }
    }
    let thinks: Vec<&Think> = workload.flows()[0].items().iter().filter_map(think).collect();
    let draws = |think: &Think| -> Vec<Duration> {
        let mut drawn: Vec<_> =
            (0..2001).map(|ordinal| think.draw(&mut workload.begin(1, ordinal))).collect();
        drawn.sort();
        drawn
    };
    assert_eq!(draws(thinks[0]), vec![Duration::from_millis(1500); 2001]);
    let uniform = draws(thinks[1]);
    assert!(uniform[0] >= Duration::from_millis(100) && uniform[2000] <= Duration::from_millis(500));
    let median = draws(thinks[2])[1000];
    assert!((180..220).contains(&median.as_millis()), "{median:?}");
}

#[test]
fn leads_are_told_and_marked() {
    assert!(!load(&[shipped("smoke.yaml")], &[]).unwrap().submits_leads());
    assert!(load(&[shipped("shopping.yaml")], &[]).unwrap().submits_leads());
    let disguised = one_step("{ t: lead.submit.request }", "{ type: \"${t}\" }");
    assert!(workload(&disguised, &[]).submits_leads());

    let marked = |request: &str| -> Value {
        let text =
            one_step("{ m: Hello, agent: { name: me } }", request).replace("inventory.search", "lead.submit");
        let workload = workload(&text, &[]);
        let (mut session, mut out) = (workload.begin(1, 1), Vec::new());
        steps(&workload, 0)[0].render(&mut session, now(), true, &mut out);
        serde_json::from_slice(&out).unwrap()
    };
    let mark = "[TEST LEAD, please disregard]";
    for (request, message, agent) in [
        ("{}", mark.to_owned(), "dealer-loadgen (test)"),
        ("{ message: Hi, source_agent: { name: me } }", format!("{mark} Hi"), "me (test)"),
        ("{ message: '${m}', source_agent: '${agent}' }", format!("{mark} Hello"), "me (test)"),
        (
            "{ message: 'a ${m}', source_agent: { name: 'x ${m}' } }",
            format!("{mark} a Hello"),
            "x Hello (test)",
        ),
    ] {
        let sent = marked(request);
        assert_eq!(
            (&sent["message"], &sent["source_agent"]["name"]),
            (&json!(message), &json!(agent)),
            "{request}"
        );
    }
}

#[test]
fn feeders_give_each_session_a_row() {
    let text = "
name: t
variables: { cars: { file: cars.jsonl, pick: sequential }, buyers: { file: buyers.csv, pick: random } }
flows:
  f:
    - step: s
      skill: inventory.search
      request: { filters: { price_max: '${cars.max}', make: ['${make}'] }, who: '${first}', year: '${int(year)}' }
";
    let cars = "{\"make\":\"Ford\",\"max\":20000}\n\n{\"make\":\"Kia\",\"max\":30000}\n";
    let files = Files::new(&[
        ("s.yaml", text),
        ("cars.jsonl", cars),
        ("buyers.csv", "first,year\nAda,2020\nBob,2021\n"),
    ]);
    let workload = files.load(&["s.yaml"], &[]).unwrap();
    let sent = |ordinal| -> Value {
        serde_json::from_str(&rendered(steps(&workload, 0)[0], &mut workload.begin(1, ordinal))).unwrap()
    };
    assert_eq!(sent(0)["filters"], json!({"price_max": 20000, "make": ["Ford"]}));
    assert_eq!(sent(3)["filters"], json!({"price_max": 30000, "make": ["Kia"]}));
    let both: BTreeSet<String> = (0..50).map(|ordinal| sent(ordinal)["who"].to_string()).collect();
    assert_eq!(both.len(), 2);
    assert!(sent(0)["year"].is_i64());
}

#[test]
fn check_explains_what_will_be_sent() {
    let explained = |sets: &[(String, String)]| {
        let mut text = String::new();
        load(&[shipped("shopping.yaml")], sets).unwrap().explain(42, &mut text).unwrap();
        text
    };
    let text = explained(&[]);
    for part in [
        "scenario shopping",
        "flow browse: weight 8 of 10 (80.0 %)",
        "think lognormal(p50=200ms, p99=1500ms)",
        "step detail: inventory.vehicle, when ${vin}",
        r#"sends {"type":"inventory.vehicle.request","vin":"<vin from the reply>"}"#,
        "keeps vin = /data/vehicles/0/vin",
        "expects ok, aap.VEHICLE_UNAVAILABLE, aap.VEHICLE_NOT_FOUND",
        "submits leads",
        "seed 42",
    ] {
        assert!(text.contains(part), "{part} is missing in\n{text}");
    }
    assert!(explained(&[("vin".to_owned(), "X".to_owned())]).contains("--set holds it"));
}

/// The example of the interface contract, word for word but for the path of its feeder.
const CONTRACT: &str = r#"
name: shopping
description: find a used car, look at it, ask for a test drive
variables: { zip: "94105", buyers: { file: buyers.csv, pick: random } }
mix: [ { flow: browse, weight: 8 }, { flow: buy, weight: 2 } ]        # without it every flow has weight 1
flows:
  browse:
    - step: search
      skill: inventory.search
      request: { filters: { condition: [used], price_max: "${uniform(15000, 40000)}" }, pagination: { limit: 20 } }
      extract: { vin: /data/vehicles/0/vin }
      check: [ { path: /data/total, gte: 1 } ]
    - think: lognormal(p50=200ms, p99=1500ms)
    - step: detail
      skill: inventory.vehicle
      when: "${vin}"
      request: { vin: "${vin}" }
  buy:
    - include: browse
    - step: lead
      skill: lead.submit
      retry: { honour: server, max: 3, idempotency_key: keep }
      request: { customer: "${buyer(prefers=email)}", consent: "${consent(email)}", vehicle_of_interest: { vin: "${vin}" }, source_agent: { name: dealer-loadgen } }
      expect: [ ok, aap.VEHICLE_UNAVAILABLE ]
"#;

#[test]
fn the_example_of_the_contract_loads() {
    let files = Files::new(&[("a.yaml", CONTRACT), ("buyers.csv", "name\nAda\n")]);
    let workload = files.load(&["a.yaml"], &[]).unwrap();
    let labels: Vec<String> = steps(&workload, 1).iter().map(|step| step.label()).collect();
    assert_eq!(labels, ["buy/search", "buy/detail", "buy/lead"]);
}

#[test]
fn a_request_that_is_a_value_is_sent_as_it_is_and_marked_as_a_lead() {
    let text = r#"
name: t
variables: { r: { type: other, message: hi, source_agent: { name: me, x: 1 } }, empty: {}, none: 7 }
flows:
  f:
    - { step: a, skill: lead.submit, request: "${r}" }
    - { step: b, skill: lead.submit, request: "${empty}" }
    - { step: c, skill: inventory.search, request: "${none}" }
"#;
    let workload = workload(text, &[]);
    assert!(workload.submits_leads());
    let mut session = workload.begin(1, 1);
    let mut sent = |step: usize, mark: bool| -> Value {
        let mut out = Vec::new();
        steps(&workload, 0)[step].render(&mut session, now(), mark, &mut out);
        serde_json::from_slice(&out).unwrap()
    };
    let agent = json!({"name": "me", "x": 1});
    assert_eq!(
        sent(0, false),
        json!({"type": "lead.submit.request", "message": "hi", "source_agent": agent})
    );
    let marked = sent(0, true);
    assert_eq!(marked["message"], "[TEST LEAD, please disregard] hi");
    assert_eq!(marked["source_agent"], json!({"name": "me (test)", "x": 1}));
    assert_eq!(sent(1, true)["source_agent"]["name"], "dealer-loadgen (test)");
    assert_eq!(sent(2, false), json!({"type": "inventory.search.request"}));
}
