//! The schema of scenario files, which editors use, says what `load` says wherever the shape alone decides.
#![expect(clippy::unwrap_used, reason = "a test stops at the first surprise")]

use std::fs;
use std::path::{Path, PathBuf};

use dealer_loadgen::scenario::load;
use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..")
}

fn validator() -> jsonschema::Validator {
    let text = fs::read_to_string(root().join("data/schemas/scenario.schema.json")).unwrap();
    let schema: Value = serde_json::from_str(&text).unwrap();
    jsonschema::draft202012::meta::validate(&schema).unwrap();
    jsonschema::validator_for(&schema).unwrap()
}

fn yaml(text: &str) -> Value {
    serde_saphyr::from_str(text).unwrap()
}

fn loads(text: &str) -> bool {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("s.yaml");
    fs::write(&path, text).unwrap();
    fs::write(dir.path().join("rows.csv"), "a,b\n1,2\n").unwrap();
    fs::write(dir.path().join("rows.jsonl"), "{\"at_ms\":0,\"flow\":\"f\",\"r\":{}}\n").unwrap();
    load(&[path], &[]).is_ok()
}

#[test]
fn the_shipped_scenarios_are_valid_and_load() {
    let validator = validator();
    let mut seen = 0;
    for entry in fs::read_dir(root().join("scenarios")).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "yaml") {
            let value = yaml(&fs::read_to_string(&path).unwrap());
            assert!(
                validator.is_valid(&value),
                "{}: {:?}",
                path.display(),
                validator.iter_errors(&value).next()
            );
            load(std::slice::from_ref(&path), &[]).unwrap();
            seen += 1;
        }
    }
    assert!(seen >= 2);
}

/// A step with more members, or items after one sound step.
fn with(members: &str) -> String {
    format!("name: t\nflows: {{ f: [ {{ step: s, skill: inventory.search{members} }} ] }}\n")
}

#[test]
fn what_is_right_is_right_for_both() {
    let validator = validator();
    for text in [
        with(""),
        with(", request: , check: , expect: , on_error: "),
        with(", request: { a: \"${uuid()}\", b: [1, { c: null }] }"),
        with(", extract: { a: /data/0/b, b: 'envelope:/id', c: 'header:X-A', d: \"\" }"),
        with(", check: [ { path: /a, equals: null, gte: 1, lt: \"b\", exists: false, length_gte: 0 } ]"),
        with(", expect: [ ok, aap.*, aap.RATE_LIMITED, rpc.-32602, http.503, check.* ], on_error: stop"),
        with(", when: \"${pick(true, false)}\""),
        with(", when: [ true, \"${pick(true, false)}\", 0 ]"),
        with(" }, { think: 1s }, { think: 'uniform(1s, 2s)' }, { think: 1.5h"),
        with(" }, { think: 'lognormal(p50=1s, p99=2s)'"),
        with(" }, { pacing: 10s }, { think: exponential(mean=2s)"),
        with(", extract: { page: /data/next } }, { loop: 3, do: [ { think: page } ] }, { think: 'page.a[0]'"),
        with(
            ", extract: { page: /data/next } }, { loop: { while: \"${page}\", max: 20 }, do: [ { think: 1s } ]",
        ),
        with(" }, { loop: { count: 2 }, do: [ { loop: 2, do: [ { step: b, skill: inventory.search } ] } ]"),
        with(", retry: {}"),
        with(
            ", retry: { honour: fixed, max: 5, delays: [ 100ms, 1.5s ], jitter: 0.5, on: [ http.503, aap.* ] }",
        ),
        with(", retry: { honour: exponential, delays: 100ms, jitter: 100% }"),
        with(", raw: {}"),
        with(
            ", raw: { method: GET, path: '/x?y', headers: { A: b, C: null, D: 1 }, envelope: { id: null } }",
        ),
        with(", raw: { body: \"{ no JSON\" }"),
        with(", raw: { body_base64: 'YQ==' }"),
        with(", check: [ { path: /a, one_of: [ 1, b ], contains: 1, starts_with: a, type: integer } ]"),
        format!("trace: {{ file: rows.jsonl }}\n{}", with(", request: \"${r}\"")),
        "name: t\nflows: { f: [ { step: s, skill: lead.submit, retry: { idempotency_key: fresh } } ] }\n"
            .to_owned(),
        format!(
            "variables: {{ a: {{ file: rows.csv, pick: unique }}, b: {{ file: rows.csv, pick: shared }} }}\n{}",
            with("")
        ),
        format!("variables: {{ a: 1, b: \"${{a}}\", c: {{ file: rows.csv, pick: random }} }}\n{}", with("")),
        format!("mix: [ {{ flow: f, weight: 8 }} ]\ndescription: x\n{}", with("")),
        "name: 7\nflows: { 1: [ { step: 2, skill: lead.submit } ], b: [ { include: 1 } ] }\n".to_owned(),
    ] {
        let value = yaml(&text);
        assert!(validator.is_valid(&value), "{text}: {:?}", validator.iter_errors(&value).next());
        assert!(loads(&text), "{text}");
    }
}

#[test]
fn what_is_wrong_is_wrong_for_both() {
    let validator = validator();
    for text in [
        "name: t\n".to_owned(),
        "flows: { f: [ { step: s, skill: inventory.search } ] }\n".to_owned(),
        "name: t\nflows: {}\n".to_owned(),
        "name: t\nflows: { f: [] }\n".to_owned(),
        "name: t\nflows: [ f ]\n".to_owned(),
        "name: a b\nflows: { f: [ { step: s, skill: inventory.search } ] }\n".to_owned(),
        format!("unknown: 1\n{}", with("")),
        format!("variables: [ a ]\n{}", with("")),
        format!("variables: {{ a b: 1 }}\n{}", with("")),
        format!("variables: {{ 30s: 1 }}\n{}", with("")),
        with(", extract: { true: /a }"),
        format!("variables: {{ a: {{ file: rows.txt }} }}\n{}", with("")),
        format!("variables: {{ a: {{ file: rows.csv, pick: any }} }}\n{}", with("")),
        format!("variables: {{ a: {{ file: rows.csv, rows: 3 }} }}\n{}", with("")),
        format!("trace: {{ file: rows.csv }}\n{}", with("")),
        format!("trace: rows.jsonl\n{}", with("")),
        format!("mix: []\n{}", with("")),
        format!("mix: [ {{ weight: 1 }} ]\n{}", with("")),
        format!("mix: [ {{ flow: f, weight: -1 }} ]\n{}", with("")),
        format!("mix: [ {{ flow: f, weight: 1.5 }} ]\n{}", with("")),
        with(", retry: { max: 0 }"),
        with(", retry: { max: 101 }"),
        with(", retry: { honour: dealer }"),
        with(", retry: { delays: [] }"),
        with(", retry: { delays: soon }"),
        with(", retry: { delays: [ 1 ] }"),
        with(", retry: { jitter: 101% }"),
        with(", retry: { jitter: 2 }"),
        with(", retry: { idempotency_key: new }"),
        with(", retry: { on: [ nok ] }"),
        with(", retry: { times: 3 }"),
        with(", retry: 3"),
        with(", raw: { method: HEAD }"),
        with(", raw: { method: 'GET /' }"),
        with(", raw: { path: a2a }"),
        with(", raw: { headers: [ a ] }"),
        with(", raw: { headers: { 'a b': c } }"),
        with(", raw: { headers: { a: [ b ] } }"),
        with(", raw: { envelope: x }"),
        with(", raw: { body: {} }"),
        with(", raw: { body_base64: '???' }"),
        with(", raw: { body: a, body_base64: YQ== }"),
        with(", raw: { body: a, envelope: { id: 1 } }"),
        with(", raw: { jsonrpc: 1 }"),
        with(", pacing: 1s"),
        with(" }, { pacing: 1s, note: x"),
        with(" }, { pacing: 5"),
        with(" }, { loop: 0, do: [ { think: 1s } ]"),
        with(" }, { loop: 1001, do: [ { think: 1s } ]"),
        with(" }, { loop: 3, do: []"),
        with(" }, { loop: 3, do: { think: 1s }"),
        with(" }, { loop: 3, do: [ { think: 1s } ], note: x"),
        with(" }, { loop: { count: 3, max: 5 }, do: [ { think: 1s } ]"),
        with(" }, { loop: { max: 5 }, do: [ { think: 1s } ]"),
        with(" }, { loop: { count: 3, while: true }, do: [ { think: 1s } ]"),
        with(" }, { loop: often, do: [ { think: 1s } ]"),
        with(" }, { do: [ { think: 1s } ]"),
        with(", skil: x"),
        with(", think: 1s"),
        with(" }, { loop: 3"),
        with(" }, { step: b"),
        with(" }, { think: 5"),
        with(" }, { think: 1s, note: x"),
        with(", request: [ 1 ]"),
        with(", extract: [ a ]"),
        with(", extract: { a: data }"),
        with(", extract: { a: /a~2 }"),
        with(", extract: { a: 'header:' }"),
        with(", check: { path: /a }"),
        with(", check: [ { path: /a } ]"),
        with(", check: [ { equals: 1 } ]"),
        with(", check: [ { path: /a, at_least: 1, gt: 0 } ]"),
        with(", check: [ { path: /a, gte: true } ]"),
        with(", check: [ { path: /a, exists: 1 } ]"),
        with(", check: [ { path: /a, length_gte: -1 } ]"),
        with(", check: [ { path: /a, one_of: 3 } ]"),
        with(", check: [ { path: /a, one_of: [] } ]"),
        with(", check: [ { path: /a, starts_with: 3 } ]"),
        with(", check: [ { path: /a, type: text } ]"),
        with(", check: [ { path: /a, equals: 1, name: 'a b' } ]"),
        with(", expect: []"),
        with(", expect: [ nok ]"),
        with(", expect: aap"),
        with(", when: vin"),
        with(", when: { a: 1 }"),
        with(", on_error: ignore"),
        with(" }, { step: s2, skill: inventory.serach"),
    ] {
        assert!(!validator.is_valid(&yaml(&text)), "the schema takes {text}");
        assert!(!loads(&text), "load takes {text}");
    }
}
