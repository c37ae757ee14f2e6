//! What a dealer publishes about itself, and its PAP door, over real sockets.

#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

mod support;

use std::collections::BTreeSet;
use std::io::Write as _;
use std::process::Command;

use serde_json::{Value, json};
use support::{Sim, connect, http, lead, read_reply};

fn base(sim: &Sim) -> String {
    sim.url().strip_suffix("/a2a").unwrap().to_owned()
}

fn get(url: &str) -> (u16, String, String) {
    http("GET", url, &[], "")
}

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn field<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    head.lines().find_map(|line| {
        let (given, value) = line.split_once(':')?;
        given.eq_ignore_ascii_case(name).then(|| value.trim())
    })
}

/// Every document, by path.
const DOCUMENTS: [(&str, &str); 9] = [
    ("/.well-known/agent-card.json", "application/json"),
    ("/.well-known/poppy.json", "application/json"),
    ("/.well-known/ai-catalog.json", "application/ai-catalog+json"),
    ("/.well-known/api-catalog", "application/linkset+json"),
    ("/mcp/server-card", "application/mcp-server-card+json"),
    ("/.well-known/mcp/server-card.json", "application/mcp-server-card+json"),
    ("/pap/openapi.json", "application/json"),
    ("/openapi.json", "application/json"),
    ("/llms.txt", "text/plain"),
];

/// Every absolute URL in a text, whatever the text is.
fn urls(text: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for scheme in ["http://", "https://"] {
        for (at, _) in text.match_indices(scheme) {
            let end = text[at..].find(|c: char| " \"<>()\n".contains(c)).map_or(text.len(), |end| at + end);
            found.insert(text[at..end].to_owned());
        }
    }
    found
}

/// Who publishes what is not the dealer's own: the contract, its schemas, and what they are written in.
const OTHERS: [&str; 3] =
    ["https://autoagentprotocol.org/", "https://json-schema.org/", "https://static.modelcontextprotocol.io/"];

fn is_own(url: &str) -> bool {
    !OTHERS.iter().any(|other| url.starts_with(other))
}

/// A request under the host that the URL names: the MCP door asks for that.
fn asked(method: &str, url: &str, body: &str) -> (u16, String) {
    let (mut stream, path) = connect(url);
    let host = url.split('/').nth(2).unwrap();
    let head = "Content-Type: application/json\r\nConnection: close\r\n";
    let length = body.len();
    let request =
        format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\n{head}Content-Length: {length}\r\n\r\n{body}");
    stream.write_all(request.as_bytes()).unwrap();
    let (status, head, _) = read_reply(&mut stream).unwrap();
    (status, head)
}

/// Whether something that knows what it is asked stands at a URL: a document, or an endpoint that takes a POST.
fn answers(url: &str) -> bool {
    match asked("GET", url, "") {
        (200, _) => true,
        (405, head) => {
            let (status, _) = asked("POST", url, "{}");
            let allows = field(&head, "allow").is_some_and(|allow| allow.contains("POST"));
            allows && !matches!(status, 300..=399 | 401 | 403..=405 | 500..)
        }
        _ => false,
    }
}

#[test]
fn every_link_of_every_document_answers() {
    let sim = Sim::start(&["--dealers", "2", "--vehicles", "20"]);
    let root = base(&sim);
    let ids = json_of(&http("GET", &root, &[("Accept", "application/json")], "").2);
    let below = ids["dealers"]
        .as_array()
        .unwrap()
        .iter()
        .map(|line| format!("{root}/d/{}", line["dealer_id"].as_str().unwrap()));
    for base in below.chain([root.clone()]) {
        let mut named = BTreeSet::new();
        for (path, media_type) in DOCUMENTS {
            let (status, head, body) = get(&format!("{base}{path}"));
            assert_eq!(status, 200, "{base}{path}");
            assert!(field(&head, "content-type").unwrap().starts_with(media_type), "{head}");
            assert_eq!(field(&head, "access-control-allow-origin"), Some("*"), "{path}");
            let etag = field(&head, "etag").unwrap();
            assert_eq!(
                http("GET", &format!("{base}{path}"), &[("If-None-Match", etag)], "").0,
                304,
                "{path}"
            );
            assert_eq!(http("POST", &format!("{base}{path}"), &[], "{}").0, 405, "{path}");
            named.extend(urls(&body).into_iter().filter(|url| is_own(url)));
        }
        assert!(named.len() >= 9, "{named:?}");
        for url in &named {
            // A dealer speaks for itself; only the list of all stands at the root.
            assert!(
                url.starts_with(&format!("{base}/")) || url == &base || *url == format!("{root}/"),
                "{url}"
            );
            assert!(answers(url), "{url}, which a document of {base} names, does not answer");
        }
    }
}

/// An agent that compares the files drops a dealer whose files differ by a character, and says nothing.
#[test]
fn documents_agree_to_the_character_and_no_host_field_changes_them() {
    let public = "https://dealer.example.test:8443/sim";
    let sim = Sim::start(&["--vehicles", "20", "--public-url", &format!("{public}/")]);
    let local = format!("http://{}", sim.first["listen"].as_str().unwrap());
    let read = |path: &str| {
        let usual = get(&format!("{local}{path}")).2;
        let evil = [("X-Forwarded-Host", "evil.example"), ("Forwarded", "host=evil.example")];
        assert_eq!(http("GET", &format!("{local}{path}"), &evil, "").2, usual, "{path}");
        usual
    };
    let mut spelled = BTreeSet::new();
    for (path, _) in DOCUMENTS {
        let text = read(path);
        for url in urls(&text).into_iter().filter(|url| is_own(url)) {
            assert!(url == public || url.starts_with(&format!("{public}/")), "{path}: {url}");
            spelled.insert(url);
        }
    }
    // No two spellings of one URL.
    for url in &spelled {
        let twin = format!("{url}/");
        assert!(!spelled.contains(&twin) || url == public, "{url} and {twin}");
    }
    let poppy = json_of(&read("/.well-known/poppy.json"));
    let domain = poppy["organization"]["domain"].as_str().unwrap();
    assert_eq!(domain, "dealer.example.test");
    let card = json_of(&read("/.well-known/agent-card.json"));
    let catalog = json_of(&read("/.well-known/ai-catalog.json"));
    let openapi = json_of(&read("/pap/openapi.json"));
    assert_eq!(poppy["organization"]["name"], card["name"]);
    assert_eq!(catalog["host"]["displayName"], card["name"]);
    assert_eq!(openapi["info"]["title"], card["name"]);
    for entry in catalog["entries"].as_array().unwrap() {
        assert_eq!(entry["identifier"].as_str().unwrap().split(':').nth(2), Some(domain));
    }
    let interface = &card["supportedInterfaces"][0]["url"];
    assert_eq!(poppy["agent"]["protocols"][0]["endpoint"], *interface);
    let params = &card["capabilities"]["extensions"][0]["params"];
    let api = |kind: &str| {
        poppy["apis"].as_array().unwrap().iter().find(|api| api["type"] == kind).unwrap()["url"].clone()
    };
    assert_eq!(params["pap"]["openapi_url"], api("openapi"));
    assert_eq!(params["mcp"]["url"], api("mcp"));
    assert_eq!(openapi["servers"][0]["url"], public);
    // Nothing offers sign-in, so nothing says who issues tokens.
    assert!(poppy.get("auth").is_none());
}

#[test]
fn what_is_not_there_is_a_404() {
    let sim = Sim::start(&["--vehicles", "20"]);
    for path in [
        "/.well-known/oauth-protected-resource",
        "/.well-known/oauth-protected-resource/mcp",
        "/.well-known/oauth-authorization-server",
        "/.well-known/openid-configuration",
        "/.well-known/poppy.json/",
        "/.well-known/",
        "/pap/",
        "/pap/v3/lead",
        "/pap/v2/lead/submit",
        "/elsewhere",
    ] {
        let (status, _, body) = get(&format!("{}{path}", base(&sim)));
        assert!(status == 404 && body.len() < 200, "{path}: {status} {body}");
    }
    let shut = Sim::start(&["--vehicles", "20", "--doors", "a2a"]);
    for path in
        ["/.well-known/poppy.json", "/pap/openapi.json", "/openapi.json", "/pap/v3/lead/submit", "/mcp"]
    {
        assert_eq!(http("POST", &format!("{}{path}", base(&shut)), &[], "{}").0, 404, "{path}");
        assert_eq!(get(&format!("{}{path}", base(&shut))).0, 404, "{path}");
    }
    let old = Sim::start(&["--vehicles", "20", "--contract", "2.0"]);
    assert_eq!(get(&format!("{}/.well-known/poppy.json", base(&old))).0, 404);
    assert_eq!(get(&format!("{}/llms.txt", base(&old))).0, 200);
}

#[test]
fn files_of_the_user_correct_what_is_guessed() {
    let folder = tempfile::tempdir().unwrap();
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, text).unwrap();
        path.display().to_string()
    };
    let poppy = file("poppy.json", "{ \"protocol_version\": \"0.1\" }\n");
    let patches = file("documents.json", r#"{"card": {"mcp": null}, "ai-catalog": {"specVersion": "1.0"}}"#);
    let sim = Sim::start(&["--vehicles", "20", "--poppy", &poppy, "--documents", &patches]);
    assert_eq!(
        get(&format!("{}/.well-known/poppy.json", base(&sim))).2,
        "{ \"protocol_version\": \"0.1\" }\n"
    );
    let card = json_of(&get(sim.first["card"].as_str().unwrap()).2);
    assert!(card["capabilities"]["extensions"][0]["params"].get("mcp").is_none(), "{card}");
    let catalog = json_of(&get(&format!("{}/.well-known/ai-catalog.json", base(&sim))).2);
    assert_eq!(catalog["specVersion"], "1.0");

    let schema = concat!(env!("CARGO_MANIFEST_DIR"), "/../data/schemas/documents.schema.json");
    let schema = jsonschema::validator_for(&json_of(&std::fs::read_to_string(schema).unwrap())).unwrap();
    assert!(schema.is_valid(&json_of(&std::fs::read_to_string(&patches).unwrap())));

    let refused = |flags: &[&str]| {
        let output =
            Command::new(env!("CARGO_BIN_EXE_dealer-sim")).arg("serve").args(flags).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{flags:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let wrong = file("wrong.json", r#"{"cart": {}, "poppy": 7}"#);
    assert_eq!(schema.iter_errors(&json_of(&std::fs::read_to_string(&wrong).unwrap())).count(), 2);
    let told = refused(&["--documents", &wrong]);
    assert!(told.contains("\"cart\"") && told.contains("\"poppy\"") && told.contains("wrong.json"), "{told}");
    assert!(refused(&["--poppy", &file("list.json", "[]")]).contains("list.json"));
    assert!(refused(&["--doors", "mcp"]).contains("a2a cannot be left out"));
    assert!(refused(&["--doors", "a2a,mcp", "--contract", "2.0"]).contains("contract 2.0"));
}

#[test]
fn a_document_is_printed_as_it_would_be_served() {
    let sim = Sim::start(&["--vehicles", "20", "--public-url", "https://h.test"]);
    let local = format!("http://{}", sim.first["listen"].as_str().unwrap());
    for (name, path) in
        [("openapi", "/pap/openapi.json"), ("poppy", "/.well-known/poppy.json"), ("llms", "/llms.txt")]
    {
        let output = Command::new(env!("CARGO_BIN_EXE_dealer-sim"))
            .args(["card", "--document", name, "--public-url", "https://h.test"])
            .output()
            .unwrap();
        let printed = String::from_utf8(output.stdout).unwrap();
        let served = get(&format!("{local}{path}")).2;
        match serde_json::from_str::<Value>(&served) {
            Ok(served) => assert_eq!(json_of(&printed), served),
            Err(_) => assert_eq!(printed.trim_end(), served.trim_end()),
        }
    }
}

fn pap(sim: &Sim, path: &str) -> String {
    format!("{}/pap/v3/{path}", base(sim))
}

const JSON: (&str, &str) = ("Content-Type", "application/json");

fn post(url: &str, payload: &Value) -> (u16, String, Value) {
    let (status, head, body) = http("POST", url, &[JSON], &payload.to_string());
    (status, head, json_of(&body))
}

#[test]
fn a_payload_is_answered_by_a_payload() {
    let sim = Sim::start(&["--vehicles", "40"]);
    let ask = json!({ "type": "dealer.information.request" });
    for path in ["dealer/information", "dealer/information?x=1"] {
        let (status, head, reply) = post(&pap(&sim, path), &ask);
        assert_eq!((status, field(&head, "content-type")), (200, Some("application/json")));
        assert_eq!(reply["type"], "dealer.information.response");
        assert!(field(&head, "a2a-extensions").is_none(), "{head}");
    }
    // The headers of A2A play no part, right or wrong.
    let odd = [JSON, ("A2A-Version", "9.9"), ("A2A-Extensions", "x"), ("Idempotency-Key", "k")];
    assert_eq!(http("POST", &pap(&sim, "dealer/information"), &odd, &ask.to_string()).0, 200);
    // The type that a caller names is what it gets, for a success.
    let own = "application/vnd.autoagent.vehicle-detail-response+json";
    let fixtures = json_of(&get(&sim.admin("/fixtures")).2);
    for (vin, wanted) in [(&fixtures["available_vin"], own), (&fixtures["unknown_vin"], "application/json")] {
        let body = json!({ "type": "inventory.vehicle.request", "vin": vin }).to_string();
        let types =
            [("Content-Type", "application/vnd.autoagent.vehicle-detail-request+json"), ("Accept", own)];
        let (_, head, body) = http("POST", &pap(&sim, "inventory/vehicle"), &types, &body);
        assert_eq!(field(&head, "content-type"), Some(wanted), "{body}");
    }
}

#[test]
fn a_refusal_has_its_status_and_its_typed_body() {
    let sim = Sim::start(&["--vehicles", "60", "--clock", "2026-03-02T10:00:00Z"]);
    let fixtures = json_of(&get(&sim.admin("/fixtures")).2);
    let of = |change: &dyn Fn(&mut Value)| {
        let mut lead = lead("Lee");
        change(&mut lead);
        lead
    };
    let keyed = of(&|lead| lead["idempotency_key"] = json!("k"));
    assert_eq!(post(&pap(&sim, "lead/submit"), &keyed).0, 200);
    let test_drive = |vin: &Value| {
        of(&|lead| {
            lead["vehicle_of_interest"] = json!({ "vin": vin });
            lead["appointment"] = json!({ "appointment_type": "test_drive" });
        })
    };
    let blocked = of(&|lead| {
        let at = &fixtures["blocked_slot"];
        lead["appointment"] = json!({ "appointment_type": "service", "appointment_at": at });
    });
    for (path, payload, status, code) in [
        (
            "inventory/search",
            json!({ "type": "inventory.search.request", "filters": 7 }),
            422,
            "SCHEMA_VALIDATION_FAILED",
        ),
        // The path says which skill it is, and the payload has to agree.
        ("inventory/search", json!({ "type": "inventory.facets.request" }), 422, "SCHEMA_VALIDATION_FAILED"),
        (
            "lead/submit",
            of(&|lead| drop(lead["customer"].as_object_mut().unwrap().remove("last_name"))),
            422,
            "MISSING_REQUIRED_FIELD",
        ),
        ("lead/submit", of(&|lead| lead["consent"]["scope"] = json!(["all"])), 422, "INVALID_CONSENT"),
        (
            "lead/submit",
            of(&|lead| drop(lead.as_object_mut().unwrap().remove("consent"))),
            403,
            "CONTACT_CONSENT_REQUIRED",
        ),
        (
            "lead/submit",
            of(&|lead| {
                lead["idempotency_key"] = json!("k");
                lead["message"] = json!("another");
            }),
            409,
            "IDEMPOTENCY_CONFLICT",
        ),
        ("lead/submit", blocked, 409, "APPOINTMENT_TIME_UNAVAILABLE"),
        ("lead/submit", test_drive(&fixtures["sold_vin"]), 410, "VEHICLE_UNAVAILABLE"),
        (
            "inventory/vehicle",
            json!({ "type": "inventory.vehicle.request", "vin": fixtures["unknown_vin"] }),
            404,
            "VEHICLE_NOT_FOUND",
        ),
        (
            "inventory/vehicle",
            json!({ "type": "inventory.vehicle.request", "vin": fixtures["sold_vin"] }),
            410,
            "VEHICLE_UNAVAILABLE",
        ),
        (
            "inventory/search",
            json!({ "type": "inventory.search.request", "filters": { "query": fixtures["fault_injection"] } }),
            500,
            "INTERNAL_ERROR",
        ),
    ] {
        let (answered, head, error) = post(&pap(&sim, path), &payload);
        assert_eq!((answered, error["code"].as_str()), (status, Some(code)), "{path} {payload}: {error}");
        assert_eq!(error["type"], "aap.error");
        assert_eq!(field(&head, "content-type"), Some("application/json"));
    }
    for body in ["", "{", "nonsense", "{} {}"] {
        let (status, _, error) = {
            let (status, head, body) = http("POST", &pap(&sim, "inventory/search"), &[JSON], body);
            (status, head, json_of(&body))
        };
        assert_eq!((status, &error["code"]), (400, &json!("SCHEMA_VALIDATION_FAILED")), "{body:?}");
    }
    let wrong_type = post(&pap(&sim, "inventory/search"), &json!({ "type": "inventory.facets.request" })).2;
    assert_eq!(wrong_type["details"]["errors"][0]["instanceLocation"], "/type");
    assert_eq!(wrong_type["details"]["errors"][0]["keyword"], "const");
}

#[test]
fn a_limit_says_when_to_come_back_and_a_skill_not_offered_is_not_found() {
    let sim =
        Sim::start(&["--vehicles", "20", "--rate-limit", "1/m,key=client", "--skills", "dealer.information"]);
    let ask = json!({ "type": "dealer.information.request" });
    assert_eq!(post(&pap(&sim, "dealer/information"), &ask).0, 200);
    let (status, head, error) = post(&pap(&sim, "dealer/information"), &ask);
    assert_eq!((status, &error["code"]), (429, &json!("RATE_LIMITED")));
    let millis = error["details"]["retry_after_ms"].as_u64().unwrap();
    let seconds: u64 = field(&head, "retry-after").unwrap().parse().unwrap();
    assert!((1..=60).contains(&seconds) && seconds == millis.div_ceil(1000), "{seconds} s for {millis} ms");
    let (status, _, error) = post(&pap(&sim, "lead/submit"), &lead("Lee"));
    assert_eq!((status, &error["code"]), (404, &json!("UNSUPPORTED_SKILL")));
}

#[test]
fn what_no_skill_sees_is_refused_by_http() {
    let folder = tempfile::tempdir().unwrap();
    let limits = folder.path().join("limits.toml");
    std::fs::write(&limits, "body_bytes = 2000\nbody_timeout_ms = 300\n").unwrap();
    let sim = Sim::start(&["--vehicles", "20", "--limits", limits.to_str().unwrap()]);
    let url = pap(&sim, "inventory/search");
    let body = json!({ "type": "inventory.search.request" }).to_string();
    let long = " ".repeat(2001);
    for (method, headers, body, status) in [
        ("POST", &[("Content-Type", "text/plain")][..], &body, 415),
        ("POST", &[("Content-Type", "application/vnd.autoagent.lead-submit-request+json")], &body, 415),
        ("POST", &[JSON, ("Accept", "text/html")], &body, 406),
        ("POST", &[JSON], &long, 413),
        ("GET", &[], &String::new(), 405),
        ("DELETE", &[JSON], &body, 405),
        ("PUT", &[JSON], &body, 405),
    ] {
        let (answered, head, said) = http(method, &url, headers, body);
        assert_eq!(answered, status, "{method} {headers:?}: {said}");
        assert_eq!(field(&head, "content-type"), Some("application/problem+json"));
        assert_eq!(json_of(&said)["status"], status);
        assert_eq!(field(&head, "allow"), (status == 405).then_some("POST"), "{head}");
        assert!(field(&head, "www-authenticate").is_none());
    }
    let (mut stream, path) = connect(&url);
    let begun = format!(
        "POST {path} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 10\r\n\r\n12"
    );
    stream.write_all(begun.as_bytes()).unwrap();
    let (status, _, said) = read_reply(&mut stream).unwrap();
    assert_eq!((status, &json_of(&said)["status"]), (408, &json!(408)));
    let (status, head, said) = http("OPTIONS", &url, &[], "");
    assert!(status == 204 && field(&head, "allow") == Some("POST") && said.is_empty(), "{head}");
    let (status, head, _) = http("HEAD", &url, &[], "");
    assert!(status == 405 && field(&head, "allow") == Some("POST"), "{head}");
}

/// It is a credential, and 1.0's text is not at hand: a public operation reads past it.
#[test]
fn a_session_is_accepted_and_kept_nowhere() {
    let sim = Sim::start(&["--vehicles", "20"]);
    let secret = "eyJhbGciOiJFUzI1NiJ9.c2VjcmV0LXNlc3Npb24.c2ln";
    let ask = json!({ "type": "dealer.information.request" }).to_string();
    for session in [secret, "", "nonsense"] {
        let headers = [JSON, ("Poppy-Session", session)];
        assert_eq!(http("POST", &pap(&sim, "dealer/information"), &headers, &ask).0, 200, "{session:?}");
    }
    // Not even a refusal challenges to sign in, or tells of it.
    let headers = [("Content-Type", "text/plain"), ("Poppy-Session", secret), ("Authorization", "Bearer x")];
    assert_eq!(http("POST", &pap(&sim, "dealer/information"), &headers, &ask).0, 415);
    let journal = get(&sim.admin("/journal")).2;
    assert_eq!(json_of(&journal)["entries"].as_array().unwrap().len(), 4, "{journal}");
    assert!(!journal.contains(secret) && !journal.contains("c2Vjc"), "{journal}");
    assert!(!get(&sim.admin("/conduct?format=json")).2.contains("c2Vjc"));
}

/// The document says what the door does: each reply is of a status and a shape that it has.
#[test]
fn the_openapi_document_describes_what_is_answered() {
    let sim = Sim::start(&["--vehicles", "60"]);
    let document = json_of(&get(&format!("{}/pap/openapi.json", base(&sim))).2);
    let fixtures = json_of(&get(&sim.admin("/fixtures")).2);
    let holds = |path: &str, payload: &Value, wanted: u16| {
        let (status, _, reply) = post(&pap(&sim, path), payload);
        assert_eq!(status, wanted, "{reply}");
        let responses = &document["paths"][format!("/pap/v3/{path}")]["post"]["responses"];
        let schema = &responses[status.to_string()]["content"]["application/json"]["schema"];
        let mut schema = schema.clone();
        schema["components"] = document["components"].clone();
        let validator = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
        let faults: Vec<_> = validator.iter_errors(&reply).map(|error| error.to_string()).collect();
        assert!(faults.is_empty(), "{path} {status}: {faults:?} in {reply}");
    };
    holds("dealer/information", &json!({ "type": "dealer.information.request" }), 200);
    holds("inventory/facets", &json!({ "type": "inventory.facets.request" }), 200);
    holds("inventory/search", &json!({ "type": "inventory.search.request" }), 200);
    holds("inventory/search", &json!({ "type": "inventory.search.request", "sort": {} }), 422);
    holds(
        "inventory/vehicle",
        &json!({ "type": "inventory.vehicle.request", "vin": fixtures["vin_with_fees"] }),
        200,
    );
    holds(
        "inventory/vehicle",
        &json!({ "type": "inventory.vehicle.request", "vin": fixtures["sold_vin"] }),
        410,
    );
    holds("lead/submit", &lead("Lee"), 200);
    let mut without = lead("Lee");
    without.as_object_mut().unwrap().remove("consent");
    holds("lead/submit", &without, 403);
}
