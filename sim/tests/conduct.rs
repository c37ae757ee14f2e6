//! Conduct as a user meets it: over the admin endpoint and by the command, of agents that call a running dealer.

#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

mod support;

use std::process::Command;

use serde_json::{Value, json};
use support::{Sim, call, http};

const URI: &str = "https://autoagentprotocol.org/extensions/aap/v3.0";

/// A small buyer agent. Its calls go out as it is told, so that a test spoils one thing at a time.
struct Agent<'s> {
    sim: &'s Sim,
    name: &'static str,
    sent: u64,
    context: Option<String>,
}

impl<'s> Agent<'s> {
    fn new(sim: &'s Sim, name: &'static str) -> Agent<'s> {
        Agent { sim, name, sent: 0, context: None }
    }

    fn fetch_card(&self) {
        let url = self.sim.url().replace("/a2a", "/.well-known/agent-card.json");
        assert_eq!(http("GET", &url, &[("X-Sim-Client", self.name)], "").0, 200);
    }

    fn send(&self, body: &Value) -> Value {
        let headers = [
            ("Content-Type", "application/json"),
            ("A2A-Version", "1.0"),
            ("A2A-Extensions", URI),
            ("X-Sim-Client", self.name),
        ];
        serde_json::from_str(&http("POST", &self.sim.url(), &headers, &body.to_string()).2).unwrap()
    }

    fn call(&mut self, stem: &str, payload: &Value) -> Value {
        self.sent += 1;
        let mut body = call(stem, payload);
        body["id"] = self.sent.into();
        let message = &mut body["params"]["message"];
        message["messageId"] = format!("{}-{}", self.name, self.sent).into();
        if let Some(context) = &self.context {
            message["contextId"] = context.as_str().into();
        }
        let reply = self.send(&body);
        let context = reply["result"]["message"]["contextId"].as_str();
        self.context = context.map(str::to_owned).or(self.context.take());
        reply
    }

    fn search(&mut self, skip: u64) -> Value {
        let payload = json!({
            "type": "inventory.search.request", "pagination": { "skip": skip, "limit": 5 }, "privacy": { "anonymous": true },
        });
        self.call("inventory-search", &payload)
    }

    /// Looks around, looks at one vehicle, and sends a lead for it.
    fn shop(&mut self) {
        self.fetch_card();
        let page = self.search(0);
        self.search(5);
        let vin = page["result"]["message"]["parts"][0]["data"]["data"]["vehicles"][0]["vin"].clone();
        self.call("vehicle-detail", &json!({ "type": "inventory.vehicle.request", "vin": vin }));
        let mut lead = support::lead(self.name);
        lead["idempotency_key"] = "key-1".into();
        lead["vehicle_of_interest"] = json!({ "vin": vin });
        assert!(self.call("lead-submit", &lead)["result"].is_object());
    }
}

fn report(sim: &Sim, query: &str) -> Value {
    let (status, _, body) = http("GET", &sim.admin(&format!("/conduct{query}")), &[], "");
    assert_eq!(status, 200, "{body}");
    let report: Value = serde_json::from_str(&body).unwrap();
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/schemas/conduct.schema.json");
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let validator = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
    let faults: Vec<_> = validator.iter_errors(&report).map(|error| error.to_string()).collect();
    assert!(faults.is_empty(), "{faults:?}");
    report
}

fn with(report: &Value, status: &str) -> Vec<String> {
    let rules =
        report["clients"].as_array().unwrap().iter().flat_map(|client| client["rules"].as_array().unwrap());
    rules
        .filter(|rule| rule["status"] == status)
        .map(|rule| rule["id"].as_str().unwrap().to_owned())
        .collect()
}

fn conduct(sim: &Sim, flags: &[&str]) -> (i32, String, String) {
    let admin = sim.admin("");
    let output = Command::new(env!("CARGO_BIN_EXE_dealer-sim"))
        .args(["conduct", "--admin", &admin])
        .args(flags)
        .output()
        .unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_good_agent_passes_and_its_command_ends_with_0() {
    let sim = Sim::start(&["--seed", "7", "--vehicles", "60", "--journal-reply-bytes", "64KiB"]);
    Agent::new(&sim, "good").shop();
    let report = report(&sim, "?client=good");
    assert_eq!((with(&report, "broken"), with(&report, "unknown")), (vec![], vec![]), "{report:#}");
    assert!(with(&report, "kept").len() > 30, "{report:#}");
    assert_eq!(report["calls"], 4);
    let (code, text, _) = conduct(&sim, &["--fail-on", "advice"]);
    assert_eq!(code, 0, "{text}");
    assert!(text.contains("Conduct: 0 violations"), "{text}");
}

#[test]
fn of_listings_that_the_journal_did_not_keep_nothing_is_claimed() {
    let sim = Sim::start(&["--seed", "7", "--vehicles", "60"]);
    let mut agent = Agent::new(&sim, "agent");
    agent.fetch_card();
    // The vehicle is not among those that the journal keeps of this page.
    agent.search(20);
    let mut lead = support::lead("Lee");
    lead["idempotency_key"] = "key-1".into();
    let fixtures: Value = serde_json::from_str(&http("GET", &sim.admin("/fixtures"), &[], "").2).unwrap();
    lead["vehicle_of_interest"] = json!({ "vin": fixtures["available_vin"] });
    agent.call("lead-submit", &lead);
    let report = report(&sim, "");
    assert!(with(&report, "unknown").contains(&"listings.stale_rechecked".to_owned()), "{report:#}");
    assert_eq!(with(&report, "broken"), Vec::<String>::new(), "{report:#}");
}

/// Whether a text says all of this, however it breaks its lines.
fn says(text: &str, wanted: &[&str]) {
    let joined = text.split_whitespace().collect::<Vec<_>>().join(" ");
    for part in wanted {
        let part = part.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(joined.contains(&part), "{part:?} is not in\n{text}");
    }
    // A line that a terminal breaks is hard to read.
    assert!(text.lines().all(|line| line.chars().count() <= 140), "{text}");
}

#[test]
fn agents_that_hammer_mend_one_by_one_or_forget_are_named_with_evidence() {
    let sim = Sim::start(&["--seed", "7", "--vehicles", "60", "--rate-limit", "1/s,burst=2,key=client"]);
    let mut hammer = Agent::new(&sim, "hammer");
    hammer.fetch_card();
    (0..4).for_each(|page| _ = hammer.search(page * 5));
    let (code, text, error) = conduct(&sim, &["--client", "hammer", "--fail-on", "violation"]);
    assert_eq!(code, 3, "{text}{error}");
    says(
        &text,
        &[
            "Client hammer (4 calls)",
            "VIOLATION retry.wait_for_hint: No call is made before a retry hint has passed",
            "- inventory.search: the dealer had answered entry 4 with the request to wait ",
            " ms, and this call came after ",
            "journal entries 4, 5 (",
            "Why: The dealer said how long to wait. Calls before that are refused, too",
            "Do: Read retry_after_ms of the error's details and send nothing to this dealer until then.",
            "entry 4 is GET /journal?after=3&limit=1",
        ],
    );

    let sim = Sim::start(&["--seed", "7", "--vehicles", "60"]);
    let mut mender = Agent::new(&sim, "mender");
    mender.fetch_card();
    let ask = |filters: Value| json!({ "type": "inventory.search.request", "privacy": { "anonymous": true }, "filters": filters });
    mender.call("inventory-search", &ask(json!({ "price_max": -1, "year_min": 1, "mileage_max": -1 })));
    mender.call("inventory-search", &ask(json!({ "price_max": 9000, "year_min": 1, "mileage_max": -1 })));
    mender.call("inventory-search", &ask(json!({ "price_max": 9000, "year_min": 2000, "mileage_max": -1 })));
    let mended = report(&sim, "?client=mender");
    assert_eq!(with(&mended, "broken"), ["errors.valid_payload", "errors.mended_at_once"], "{mended:#}");
    says(
        &conduct(&sim, &["--client", "mender"]).1,
        &[
            "VIOLATION errors.mended_at_once: All faults that were listed are mended in one round trip",
            "- inventory.search: the answer to entry 2 had listed 3 faults; this call mended 1 of them and left 2: \
             /filters/mileage_max, /filters/year_min",
            "journal entries 2, 3 (",
            "- inventory.search: the dealer found 3 faults in the payload, at \"/filters/mileage_max\", \"/filters/price_max\"",
            "Why: The dealer lists every fault of a payload at once, so that one more attempt is enough.",
            "Do: Go through all of details.errors before you send the request again.",
        ],
    );

    let mut forgetful = Agent::new(&sim, "forgetful");
    forgetful.fetch_card();
    forgetful.search(0);
    forgetful.context = None;
    forgetful.search(5);
    let forgot = report(&sim, "?client=forgetful");
    assert_eq!(with(&forgot, "broken"), ["conversation.context_carried"], "{forgot:#}");
    says(
        &conduct(&sim, &["--client", "forgetful"]).1,
        &[
            "Conduct: 0 violations, 1 warning, 0 pieces of advice, 0 rules unknown; 2 calls of 1 client",
            "WARNING conversation.context_carried: The dealer's contextId is carried on",
            "- inventory.search: came without contextId, though the dealer had answered entry 6 with \"ctx_",
            "Why: Each reply names its conversation. A follow-up without that name starts a new one",
            "Do: Keep contextId of the first reply and send it with every later message of the same conversation.",
        ],
    );
    let rules = forgot["clients"][0]["rules"].as_array().unwrap();
    let rule = rules.iter().find(|rule| rule["status"] == "broken").unwrap();
    let entries = rule["findings"][0]["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 2, "{rule}");
    // The evidence is in the journal.
    let after = entries[1].as_u64().unwrap() - 1;
    let page: Value =
        serde_json::from_str(&http("GET", &sim.admin(&format!("/journal?after={after}&limit=1")), &[], "").2)
            .unwrap();
    assert_eq!(page["entries"][0]["client"], "forgetful");
}

#[test]
fn headers_are_judged_strictly_though_the_endpoint_is_lenient() {
    let sim = Sim::start(&["--seed", "7", "--vehicles", "60"]);
    let body = call("dealer-information", &json!({ "type": "dealer.information.request" })).to_string();
    http("POST", &sim.url(), &[("Content-Type", "application/json")], &body);
    http("POST", &sim.url(), &[("Content-Type", "text/plain")], &body);
    http("GET", &sim.url(), &[], "");
    let broken = with(&report(&sim, ""), "broken");
    let expected = [
        "discovery.card_first",
        "discovery.http_post",
        "envelope.content_type",
        "envelope.a2a_version",
        "envelope.a2a_extensions",
    ];
    assert_eq!(broken, expected);
}

#[test]
fn contracts_before_2_0_have_no_header_rules_and_all_others() {
    let flags =
        ["--seed", "7", "--vehicles", "60", "--contract", "1.2", "--rate-limit", "1/s,burst=2,key=client"];
    let sim = Sim::start(&flags);
    // Its headers are those of contract 3.0, which a 1.2 dealer does not even read.
    let mut hammer = Agent::new(&sim, "hammer");
    hammer.fetch_card();
    (0..4).for_each(|page| _ = hammer.search(page * 5));
    let judged = report(&sim, "?client=hammer");
    let broken = with(&judged, "broken");
    assert_eq!(broken, ["retry.wait_for_hint", "retry.retryable_is_retried"], "{judged:#}");
    let silent = with(&judged, "not_seen");
    for rule in ["envelope.a2a_version", "envelope.a2a_extensions"] {
        assert!(silent.iter().any(|id| id == rule), "{silent:?}");
    }
}

#[test]
fn what_was_cleared_or_dropped_before_anybody_asked_was_judged_all_the_same() {
    let begun = || {
        let sim = Sim::start(&["--seed", "7", "--vehicles", "60", "--journal", "50"]);
        assert_eq!(http("GET", &sim.url(), &[], "").0, 405);
        sim
    };
    let sim = begun();
    assert_eq!(http("DELETE", &sim.admin("/journal"), &[], "").0, 204);
    assert_eq!(with(&report(&sim, ""), "broken"), ["discovery.http_post"]);
    // The judge looks every second, whether or not anybody asks; what comes then drops the call from the journal.
    let sim = begun();
    std::thread::sleep(std::time::Duration::from_secs(3));
    let mut agent = Agent::new(&sim, "agent");
    for skip in 0..60 {
        agent.search(skip);
    }
    let found = report(&sim, "");
    assert!(with(&found, "broken").contains(&"discovery.http_post".to_owned()), "{found:#}");
}

#[test]
fn a_test_is_bounded_by_begin_and_end() {
    let sim = Sim::start(&["--seed", "7", "--vehicles", "60"]);
    let mut agent = Agent::new(&sim, "agent");
    agent.search(0);
    let post = |path: &str, body: &str| http("POST", &sim.admin(path), &[], body);
    assert_eq!(post("/conduct/begin", "{\"name\":\"t\"}").0, 200);
    assert_eq!(post("/conduct/begin", "{\"name\":\"t\"}").0, 409);
    assert_eq!(post("/conduct/begin", "{}").0, 400);
    agent.search(5);
    let (status, _, body) = post("/conduct/end?fail_on=advice", "{\"name\":\"t\"}");
    assert_eq!(status, 200, "{body}");
    let ended: Value = serde_json::from_str(&body).unwrap();
    assert_eq!((&ended["test"], &ended["calls"]), (&"t".into(), &1.into()));
    agent.context = None;
    agent.search(10);
    assert_eq!(with(&report(&sim, "?test=t"), "broken"), Vec::<String>::new());
    assert_eq!(with(&report(&sim, ""), "broken"), ["discovery.card_first", "conversation.context_carried"]);
    assert_eq!(http("GET", &sim.admin("/conduct?fail_on=warning&format=junit"), &[], "").0, 409);
    for (path, status) in [
        ("/conduct?format=pdf", 400),
        ("/conduct?test=no", 404),
        ("/conduct/nothing", 404),
        ("/conduct/end", 405),
    ] {
        assert_eq!(http("GET", &sim.admin(path), &[], "").0, status, "{path}");
    }
    let rules: Value = serde_json::from_str(&http("GET", &sim.admin("/conduct/rules"), &[], "").2).unwrap();
    assert!(rules["rules"].as_array().unwrap().len() >= 35);
    assert_eq!(conduct(&sim, &["--test", "no"]).0, 1);
    // A reset begins anew.
    assert_eq!(post("/reset", "").0, 200);
    assert_eq!(report(&sim, "")["calls"], 0);
}

#[test]
fn the_page_of_the_rules_is_that_of_the_table() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/CONDUCT.md");
    let page = dealer_sim::conduct::catalogue();
    if std::env::var_os("UPDATE_GOLDEN").is_some() {
        std::fs::write(path, &page).unwrap();
    }
    let written = std::fs::read_to_string(path).unwrap().replace("\r\n", "\n");
    assert_eq!(written, page, "UPDATE_GOLDEN=1 writes {path} anew");
    for rule in dealer_sim::conduct::RULES {
        assert!(page.contains(&format!("`{}`", rule.id)), "{}", rule.id);
    }
}
