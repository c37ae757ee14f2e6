//! What a dealer publishes about itself, and its PAP door, over real sockets.

#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

mod support;

use std::collections::BTreeSet;
use std::process::Command;

use serde_json::Value;
use support::{Sim, http};

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
const DOCUMENTS: [(&str, &str); 7] = [
    ("/.well-known/agent-card.json", "application/json"),
    ("/.well-known/poppy.json", "application/json"),
    ("/.well-known/ai-catalog.json", "application/ai-catalog+json"),
    ("/.well-known/api-catalog", "application/linkset+json"),
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

/// Whether something that knows what it is asked stands at a URL: a document, or an endpoint that takes a POST.
fn answers(url: &str) -> bool {
    match get(url) {
        (200, ..) => true,
        (405, head, _) => {
            let (status, ..) = http("POST", url, &[("Content-Type", "application/json")], "{}");
            field(&head, "allow") == Some("POST") && !matches!(status, 300..400 | 404 | 405 | 500..)
        }
        _ => false,
    }
}

#[test]
fn every_link_of_every_document_answers() {
    let sim = Sim::start(&["--dealers", "2", "--vehicles", "20"]);
    let root = base(&sim);
    let ids = json_of(&http("GET", &root, &[("Accept", "application/json")], "").2);
    let below = ids["dealers"].as_array().unwrap().iter().map(|line| {
        format!("{root}/d/{}", line["dealer_id"].as_str().unwrap())
    });
    for base in below.chain([root.clone()]) {
        let mut named = BTreeSet::new();
        for (path, media_type) in DOCUMENTS {
            let (status, head, body) = get(&format!("{base}{path}"));
            assert_eq!(status, 200, "{base}{path}");
            assert!(field(&head, "content-type").unwrap().starts_with(media_type), "{head}");
            assert_eq!(field(&head, "access-control-allow-origin"), Some("*"), "{path}");
            let etag = field(&head, "etag").unwrap();
            assert_eq!(http("GET", &format!("{base}{path}"), &[("If-None-Match", etag)], "").0, 304, "{path}");
            assert_eq!(http("POST", &format!("{base}{path}"), &[], "{}").0, 405, "{path}");
            named.extend(urls(&body).into_iter().filter(|url| is_own(url)));
        }
        assert!(named.len() >= 9, "{named:?}");
        for url in &named {
            // A dealer speaks for itself; only the list of all stands at the root.
            assert!(url.starts_with(&format!("{base}/")) || url == &base || *url == format!("{root}/"), "{url}");
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
    for path in ["/.well-known/poppy.json", "/pap/openapi.json", "/openapi.json", "/pap/v3/lead/submit", "/mcp"] {
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
    assert_eq!(get(&format!("{}/.well-known/poppy.json", base(&sim))).2, "{ \"protocol_version\": \"0.1\" }\n");
    let card = json_of(&get(sim.first["card"].as_str().unwrap()).2);
    assert!(card["capabilities"]["extensions"][0]["params"].get("mcp").is_none(), "{card}");
    let catalog = json_of(&get(&format!("{}/.well-known/ai-catalog.json", base(&sim))).2);
    assert_eq!(catalog["specVersion"], "1.0");

    let refused = |flags: &[&str]| {
        let output = Command::new(env!("CARGO_BIN_EXE_dealer-sim")).arg("serve").args(flags).output().unwrap();
        assert_eq!(output.status.code(), Some(1), "{flags:?}");
        String::from_utf8(output.stderr).unwrap()
    };
    let wrong = file("wrong.json", r#"{"cart": {}, "poppy": 7}"#);
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
    for (name, path) in [("openapi", "/pap/openapi.json"), ("poppy", "/.well-known/poppy.json"), ("llms", "/llms.txt")] {
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
