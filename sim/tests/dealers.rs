//! Many dealers under one process, over real sockets: what is one dealer's own is nobody else's.

#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

mod support;

use std::collections::HashSet;
use std::process::Command;

use dealer_sim::Dealer;
use serde_json::{Value, json};
use support::{Sim, call, http, lead, rpc};

fn get(url: &str, accept: &str) -> (u16, String, String) {
    http("GET", url, &[("Accept", accept)], "")
}

fn json_of(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

fn base(sim: &Sim) -> String {
    sim.url().strip_suffix("/a2a").unwrap().to_owned()
}

/// The lines of `/`.
fn directory(sim: &Sim) -> Vec<Value> {
    json_of(&get(&base(sim), "application/json").2)["dealers"].as_array().unwrap().clone()
}

fn ids(sim: &Sim) -> Vec<String> {
    directory(sim).iter().map(|line| line["dealer_id"].as_str().unwrap().to_owned()).collect()
}

fn a2a(sim: &Sim, dealer_id: &str) -> String {
    format!("{}/d/{dealer_id}/a2a", base(sim))
}

fn admin(sim: &Sim, method: &str, path: &str, body: &str) -> (u16, Value) {
    let (status, _, body) = http(method, &sim.admin(path), &[], body);
    (status, serde_json::from_str(&body).unwrap_or(Value::Null))
}

fn search() -> String {
    let payload = json!({ "type": "inventory.search.request", "pagination": { "limit": 100 } });
    call("inventory-search", &payload).to_string()
}

fn information() -> String {
    call("dealer-information", &json!({ "type": "dealer.information.request" })).to_string()
}

fn data(reply: &str) -> Value {
    json_of(reply)["result"]["message"]["parts"][0]["data"]["data"].clone()
}

/// The AAP code of an error, or nothing of a result.
fn refusal(reply: &str) -> Option<String> {
    let message = json_of(reply)["error"]["message"].as_str()?.to_owned();
    Some(message.split(':').next().unwrap().to_owned())
}

#[test]
fn no_vehicle_is_at_two_dealers() {
    let sim = Sim::start(&["--dealers", "50", "--vehicles", "60"]);
    assert_eq!((&sim.first["dealers"], &sim.first["vehicles"]), (&json!(50), &json!(60)));
    let (mut vins, mut names) = (HashSet::new(), HashSet::new());
    for dealer_id in ids(&sim) {
        let url = a2a(&sim, &dealer_id);
        let found = data(&rpc(&url, &search()).2);
        let vehicles = found["vehicles"].as_array().unwrap();
        assert!(vehicles.len() > 20, "{found}");
        for vehicle in vehicles {
            assert_eq!(vehicle["dealer_id"], dealer_id.as_str());
            if let Some(vin) = vehicle["vin"].as_str() {
                assert!(vins.insert(vin.to_owned()), "{vin} is at {dealer_id} and at another");
            }
        }
        assert!(names.insert(data(&rpc(&url, &information()).2)["name"].as_str().unwrap().to_owned()));
    }
    assert_eq!(names.len(), 50);
    assert!(vins.len() > 1000, "{}", vins.len());
}

#[test]
fn a_vehicle_that_another_dealer_has_is_not_added() {
    let sim = Sim::start(&["--dealers", "3", "--vehicles", "40"]);
    let ids = ids(&sim);
    let vehicle = |vin: &Value| json!({ "vin": vin, "make": "Amphicar", "status": "available" }).to_string();
    let add = |id: &str, vin: &Value| admin(&sim, "POST", &format!("/d/{id}/vehicles"), &vehicle(vin));
    let theirs = admin(&sim, "GET", &format!("/d/{}/fixtures", ids[1]), "").1["available_vin"].clone();
    let (status, reply) = add(&ids[2], &theirs);
    assert_eq!(status, 409);
    assert!(reply["error"].as_str().unwrap().contains(&ids[1]), "{reply}");
    let new = json!("WDBAA000000000001");
    assert_eq!(add(&ids[1], &new).0, 201);
    assert_eq!(admin(&sim, "POST", "/vehicles", &vehicle(&new)).0, 409);
    assert_eq!(admin(&sim, "DELETE", &format!("/vehicles/{}", new.as_str().unwrap()), "").0, 200);
    assert_eq!(add(&ids[0], &new).0, 201);
}

#[test]
fn every_card_is_found_and_names_an_endpoint_that_answers() {
    let sim = Sim::start(&["--dealers", "12", "--vehicles", "20"]);
    let mut etags = HashSet::new();
    for line in directory(&sim) {
        let (status, head, body) = get(line["card"].as_str().unwrap(), "application/json");
        assert_eq!(status, 200);
        let card = json_of(&body);
        assert_eq!(card["supportedInterfaces"][0]["url"], line["url"]);
        assert_eq!(card["name"], format!("{} (simulated)", line["name"].as_str().unwrap()));
        let etag = head.lines().find_map(|field| field.strip_prefix("etag: ")).unwrap().to_owned();
        let again = http("GET", line["card"].as_str().unwrap(), &[("If-None-Match", &etag)], "");
        assert_eq!(again.0, 304);
        assert!(etags.insert(etag), "two cards share an entity tag");
        let reply = data(&rpc(line["url"].as_str().unwrap(), &information()).2);
        assert_eq!(reply["name"], line["name"]);
        // What else a card links is there, too.
        let llms = line["url"].as_str().unwrap().replace("/a2a", "/llms.txt");
        let text = get(&llms, "*/*").2;
        assert!(text.contains(line["url"].as_str().unwrap()), "{text}");
        let welcome = get(&llms.replace("/llms.txt", ""), "*/*").2;
        assert_eq!(welcome, text);
    }
    // The first one answers at the root, too, as it does alone.
    let card = json_of(&get(sim.first["card"].as_str().unwrap(), "*/*").2);
    assert_eq!(card["supportedInterfaces"][0]["url"], sim.first["url"]);
    assert_eq!(data(&rpc(&sim.url(), &information()).2)["name"], "Harbor Motor Group");
    assert_eq!(data(&rpc(&a2a(&sim, "harbor"), &information()).2)["name"], "Harbor Motor Group");
}

#[test]
fn a_public_url_is_where_cards_lead() {
    let sim =
        Sim::start(&["--dealers", "2", "--vehicles", "20", "--public-url", "https://lab.example.test/sim/"]);
    let local = format!("http://{}", sim.first["listen"].as_str().unwrap());
    for line in json_of(&get(&local, "application/json").2)["dealers"].as_array().unwrap() {
        let id = line["dealer_id"].as_str().unwrap();
        assert_eq!(line["url"], format!("https://lab.example.test/sim/d/{id}/a2a"));
        let card = json_of(&get(&format!("{local}/d/{id}/.well-known/agent-card.json"), "*/*").2);
        assert_eq!(card["supportedInterfaces"][0]["url"], line["url"]);
    }
}

#[test]
fn the_dealers_are_listed_as_the_caller_likes_it() {
    let sim = Sim::start(&["--dealers", "3", "--vehicles", "20"]);
    let (status, head, body) = get(&base(&sim), "*/*");
    assert!(
        status == 200 && head.contains("content-type: application/json") && head.contains("vary: Accept")
    );
    let path = format!("{}/../data/schemas/dealers.schema.json", env!("CARGO_MANIFEST_DIR"));
    let schema = json_of(&std::fs::read_to_string(path).unwrap());
    let schema = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
    let faults: Vec<_> = schema.iter_errors(&json_of(&body)).map(|error| error.to_string()).collect();
    assert!(faults.is_empty(), "{faults:?} in {body}");
    assert_eq!(json_of(&body)["count"], 3);

    let (status, head, page) = get(&base(&sim), "text/html,application/xhtml+xml,*/*;q=0.8");
    assert!(status == 200 && head.contains("content-type: text/html"), "{head}");
    for line in directory(&sim) {
        for member in ["dealer_id", "name", "url", "card"] {
            assert!(page.contains(line[member].as_str().unwrap()), "{member} in {page}");
        }
    }
    let text = get(&base(&sim), "text/plain").2;
    assert!(text.starts_with("# Harbor Motor Group") && text.contains("All 3 dealers"), "{text}");
    assert_eq!(http("POST", &base(&sim), &[], "").0, 405);

    // One dealer alone introduces itself, unless asked for a list.
    let alone = Sim::start(&["--vehicles", "20"]);
    assert!(get(&base(&alone), "*/*").2.starts_with("# Harbor Motor Group"));
    assert_eq!(json_of(&get(&base(&alone), "application/json").2)["count"], 1);
}

#[test]
fn an_unknown_dealer_is_told_where_the_known_ones_are() {
    let sim = Sim::start(&["--dealers", "2", "--vehicles", "20"]);
    for path in ["/d/nobody/a2a", "/d/nobody/.well-known/agent-card.json", "/d/nobody", "/d/", "/d//a2a"] {
        let (status, _, body) = http("POST", &format!("{}{path}", base(&sim)), &[], &information());
        assert_eq!(status, 404, "{path}");
        assert!(body.contains("GET / lists"), "{body}");
        assert_eq!(admin(&sim, "GET", path, "").0, 404);
    }
    let elsewhere = http("GET", &format!("{}/d/harbor/elsewhere", base(&sim)), &[], "");
    assert!(elsewhere.0 == 404 && elsewhere.2.contains("/d/harbor/a2a"), "{}", elsewhere.2);
    assert_eq!(http("GET", &a2a(&sim, "harbor"), &[], "").0, 405);
}

#[test]
fn a_lead_is_one_dealers_and_the_root_shows_all() {
    let sim = Sim::start(&["--dealers", "3", "--vehicles", "20"]);
    let ids = ids(&sim);
    // The same key at each of them: a dealer's keys are its own.
    for (n, place) in [1, 2, 1, 0].into_iter().enumerate() {
        let mut lead = lead(&format!("Lee {n}"));
        lead["idempotency_key"] = format!("key-{}", n / 2).into();
        let body = call("lead-submit", &lead).to_string();
        assert_eq!(refusal(&rpc(&a2a(&sim, &ids[place]), &body).2), None);
    }
    for (id, count) in ids.iter().zip([1, 2, 1]) {
        let leads = admin(&sim, "GET", &format!("/d/{id}/leads"), "").1;
        assert_eq!((&leads["received"], leads["leads"].as_array().unwrap().len()), (&json!(count), count));
        assert!(leads["leads"].as_array().unwrap().iter().all(|lead| lead["dealer_id"] == id.as_str()));
        assert_eq!(admin(&sim, "GET", &format!("/d/{id}/fixtures"), "").1["lead_count"], count);
    }
    let all = admin(&sim, "GET", "/leads", "").1;
    assert_eq!(all["received"], 4);
    let whose: Vec<&str> =
        all["leads"].as_array().unwrap().iter().map(|lead| lead["dealer_id"].as_str().unwrap()).collect();
    assert_eq!(
        whose,
        [1, 2, 1, 0].map(|place: usize| ids[place].as_str()),
        "in the order in which they came"
    );
    let newest = admin(&sim, "GET", "/leads?limit=1", "").1;
    assert_eq!(newest["leads"][0]["dealer_id"], ids[0].as_str());
    assert_eq!(newest["leads"][0]["request"]["customer"]["last_name"], "Lee 3");

    let metrics = |path: &str| http("GET", &sim.admin(path), &[], "").2;
    assert!(metrics("/metrics").contains("dealer_sim_leads_total 4\n"), "{}", metrics("/metrics"));
    let own = metrics(&format!("/d/{}/metrics", ids[1]));
    assert!(own.contains("dealer_sim_leads_total 2\n") && own.contains("dealer_sim_vehicles 20\n"), "{own}");
    assert!(own.contains("dealer_sim_calls_total{skill=\"lead.submit\",outcome=\"ok\"} 2\n"), "{own}");
    assert!(
        own.ends_with("# EOF\n") && !own.contains("dealer_sim_http"),
        "the listener is nobody's own: {own}"
    );
}

#[test]
fn a_conversation_is_unknown_elsewhere() {
    let sim = Sim::start(&["--dealers", "2", "--vehicles", "20"]);
    let ids = ids(&sim);
    let begun = json_of(&rpc(&a2a(&sim, &ids[0]), &information()).2);
    let context_id = begun["result"]["message"]["contextId"].as_str().unwrap();
    let mut on = json_of(&information());
    on["params"]["message"]["contextId"] = context_id.into();
    let headers = [("Content-Type", "application/json"), ("X-Sim-Fault", "unknown_context_refused")];
    let ask = |id: &str| json_of(&http("POST", &a2a(&sim, id), &headers, &on.to_string()).2);
    assert!(ask(&ids[0])["error"].is_null());
    assert_eq!(ask(&ids[1])["error"]["code"], -32602);
    let known = |path: &str| admin(&sim, "GET", path, "").1["conversations"].as_array().unwrap().clone();
    let own = known(&format!("/d/{}/conversations", ids[0]));
    assert_eq!((own.len(), &own[0]["context_id"]), (1, &json!(context_id)));
    assert!(known(&format!("/d/{}/conversations", ids[1])).is_empty());
    assert_eq!(known("/conversations")[0]["dealer_id"], ids[0].as_str());
}

#[test]
fn a_rule_that_names_a_dealer_touches_no_other() {
    let folder = tempfile::tempdir().unwrap();
    let plan = folder.path().join("plan.yaml");
    let other = "red-hollow-motor-group-2";
    let text = format!(
        "name: one of three\nrules:\n  - {{ id: down, when: {{ dealer: {other} }}, effect: internal_error }}\n  \
         - {{ id: second, when: {{ skill: dealer.information, nth: 2, dealer: harbor }}, effect: rate_limited }}\n"
    );
    std::fs::write(&plan, text).unwrap();
    let sim = Sim::start(&["--dealers", "3", "--vehicles", "20", "--faults", plan.to_str().unwrap()]);
    let ids = ids(&sim);
    assert_eq!(ids[1], other);
    let ask = |id: &str| refusal(&rpc(&a2a(&sim, id), &information()).2);
    for round in 0..4 {
        assert_eq!(ask(other).as_deref(), Some("INTERNAL_ERROR"));
        assert_eq!(ask(&ids[2]), None);
        assert_eq!(ask("harbor"), (round % 2 == 1).then(|| "RATE_LIMITED".to_owned()), "round {round}");
    }
    let fired = |path: &str, rule: &str| admin(&sim, "GET", path, "").1["state"][rule]["fired"].clone();
    assert_eq!((fired("/faults", "down"), fired("/faults", "second")), (json!(4), json!(2)));
    assert_eq!(fired(&format!("/d/{other}/faults"), "down"), 4);
    assert_eq!(fired("/d/harbor/faults", "down"), 0);
}

#[test]
fn occurrences_are_counted_at_each_dealer() {
    let sim = Sim::start(&["--dealers", "2", "--vehicles", "20"]);
    let ids = ids(&sim);
    let rule = "{ id: second, when: { nth: 2 }, effect: internal_error }";
    let (status, _, body) = http("POST", &sim.admin("/faults/rules"), &[], rule);
    assert_eq!(status, 200, "{body}");
    for round in 0..4 {
        for id in &ids {
            let failed = refusal(&rpc(&a2a(&sim, id), &information()).2).is_some();
            assert_eq!(failed, round % 2 == 1, "round {round} at {id}");
        }
    }
}

#[test]
fn faults_are_set_everywhere_or_at_one() {
    let sim = Sim::start(&["--dealers", "3", "--vehicles", "20"]);
    let ids = ids(&sim);
    let plan = r#"{"name":"all","rules":[{"id":"busy","effect":"rate_limited"}]}"#;
    let put = |path: &str, if_match: &str, body: &str| {
        let (status, head, body) = http("PUT", &sim.admin(path), &[("If-Match", if_match)], body);
        let etag = head.lines().find_map(|field| field.strip_prefix("etag: ")).map(str::to_owned);
        (status, etag, json_of(&body))
    };
    let ask = |id: &str| refusal(&rpc(&a2a(&sim, id), &information()).2);
    let (status, all, shown) = put("/faults", "*", plan);
    assert_eq!(status, 200, "{shown}");
    assert_eq!(shown["dealers_with_other_rules"], json!([]));
    assert!(ids.iter().all(|id| ask(id).as_deref() == Some("RATE_LIMITED")));

    // One dealer's rules change: the others keep theirs, and an editor of all who has not seen it is refused.
    let one = format!("/d/{}/faults", ids[1]);
    let (_, _, own) = put(&one, "*", r#"{"name":"none","rules":[]}"#);
    assert_eq!(own["plan"]["name"], "none");
    assert_eq!([ask(&ids[0]).is_some(), ask(&ids[1]).is_some(), ask(&ids[2]).is_some()], [true, false, true]);
    assert_eq!(admin(&sim, "GET", "/faults", "").1["dealers_with_other_rules"], json!([ids[1]]));
    assert_eq!(put("/faults", &all.unwrap(), plan).0, 412);
    assert_eq!(ask(&ids[1]), None, "a refused edit changes no dealer");

    // What one of them refuses is done at none.
    let rule = r#"{"id":"down","effect":"internal_error"}"#;
    assert_eq!(http("POST", &sim.admin(&format!("{one}/rules")), &[], rule).0, 200);
    assert_eq!(http("POST", &sim.admin("/faults/rules"), &[], rule).0, 409);
    assert_eq!(ask(&ids[0]).as_deref(), Some("RATE_LIMITED"));
    assert_eq!(put("/faults", "*", r#"{"name":"bad","rules":[{"id":"x","effect":"no_such"}]}"#).0, 400);
    assert_eq!(http("DELETE", &sim.admin("/faults"), &[], "").0, 200);
    assert!(ids.iter().all(|id| ask(id).is_none()));
    assert_eq!(admin(&sim, "GET", &format!("/d/{}/magic", ids[2]), "").0, 200);
}

#[test]
fn a_request_may_ask_any_dealer_for_a_fault() {
    let sim = Sim::start(&["--dealers", "2", "--vehicles", "20"]);
    let url = a2a(&sim, &ids(&sim)[1]);
    let headers = [("Content-Type", "application/json"), ("X-Sim-Fault", "http_503")];
    let (status, head, _) = http("POST", &url, &headers, &information());
    assert!(status == 503 && head.contains("x-sim-fault-applied"), "{head}");
    let detail = json!({ "type": "inventory.vehicle.request", "stock": "SIM:vehicle_not_found" });
    let reply = rpc(&url, &call("vehicle-detail", &detail).to_string()).2;
    assert_eq!(refusal(&reply).as_deref(), Some("VEHICLE_NOT_FOUND"));
    let card = url.replace("/a2a", "/.well-known/agent-card.json");
    let missing = http("GET", &card, &[("X-Sim-Fault", "card_missing")], "");
    assert_eq!(missing.0, 404);
}

#[test]
fn a_limit_is_used_up_at_one_dealer_only() {
    let sim = Sim::start(&["--dealers", "2", "--vehicles", "20", "--rate-limit", "2/h,key=global"]);
    let ids = ids(&sim);
    let ask = |id: &str| refusal(&rpc(&a2a(&sim, id), &information()).2);
    assert_eq!([ask(&ids[0]), ask(&ids[0])], [None, None]);
    assert_eq!(ask(&ids[0]).as_deref(), Some("RATE_LIMITED"));
    assert_eq!([ask(&ids[1]), ask(&ids[1])], [None, None]);
    assert_eq!(ask(&ids[1]).as_deref(), Some("RATE_LIMITED"));
}

#[test]
fn a_reset_is_of_one_or_of_all() {
    let sim = Sim::start(&["--dealers", "3", "--vehicles", "20", "--clock", "2026-01-05T12:00:00Z"]);
    let ids = ids(&sim);
    let submit = |id: &str| rpc(&a2a(&sim, id), &call("lead-submit", &lead("Lee")).to_string());
    let received = || {
        let of =
            |id: &String| admin(&sim, "GET", &format!("/d/{id}/leads"), "").1["received"].as_u64().unwrap();
        ids.iter().map(of).collect::<Vec<_>>()
    };
    let stock = |id: &str| data(&rpc(&a2a(&sim, id), &search()).2)["vehicles"].clone();
    ids.iter().for_each(|id| assert_eq!(refusal(&submit(id).2), None));
    assert_eq!(received(), [1, 1, 1]);
    let before: Vec<Value> = ids.iter().map(|id| stock(id)).collect();

    let one = admin(&sim, "POST", &format!("/d/{}/reset", ids[1]), r#"{"seed":7}"#);
    assert_eq!(one, (200, json!({ "status": "ok", "seed": 7 })));
    assert_eq!(received(), [1, 0, 1]);
    assert_eq!([&stock(&ids[0]), &stock(&ids[2])], [&before[0], &before[2]]);
    assert_ne!(stock(&ids[1]), before[1]);
    // Its path and its name stay, and its stock is still its own.
    assert_eq!(crate::ids(&sim), ids);
    let vins = |stock: &Value| -> HashSet<String> {
        stock.as_array().unwrap().iter().filter_map(|v| Some(v["vin"].as_str()?.to_owned())).collect()
    };
    assert!(vins(&stock(&ids[1])).is_disjoint(&vins(&before[0])));

    assert_eq!(admin(&sim, "POST", "/reset", r#"{"seed":42}"#).0, 200);
    assert_eq!(received(), [0, 0, 0]);
    assert_eq!(stock(&ids[1]), before[1]);
    assert_eq!(admin(&sim, "POST", &format!("/d/{}/reset", ids[0]), "{").0, 400);
}

#[test]
fn the_admin_endpoint_speaks_of_one_or_of_all() {
    let sim = Sim::start(&["--dealers", "3", "--vehicles", "20"]);
    let ids = ids(&sim);
    let fixtures = admin(&sim, "GET", "/fixtures", "").1;
    assert_eq!(fixtures["dealer_id"], "harbor");
    let paths: Vec<String> = ids.iter().map(|id| format!("/d/{id}")).collect();
    assert_eq!(fixtures["dealers"], json!(paths));
    assert_eq!(admin(&sim, "GET", "/", "").1["dealers"], json!(paths));
    let mut seen = HashSet::new();
    for path in &paths {
        let own = admin(&sim, "GET", &format!("{path}/fixtures"), "").1;
        let vin = own["available_vin"].as_str().unwrap().to_owned();
        // A vehicle is found at its dealer and at the root, and nowhere else.
        let holders: Vec<&String> = paths
            .iter()
            .filter(|path| admin(&sim, "GET", &format!("{path}/vehicles/{vin}"), "").0 == 200)
            .collect();
        assert_eq!(holders, [path]);
        assert_eq!(admin(&sim, "GET", &format!("/vehicles/{vin}"), "").1["vin"], vin.as_str());
        assert!(seen.insert(vin) && own["dealers"].is_null() && own["busy_slot"].is_string());
        for resource in
            ["/livez", "/readyz", "/leads", "/conversations", "/metrics", "/faults", "/faults/catalogue", "/"]
        {
            assert_eq!(admin(&sim, "GET", &format!("{path}{resource}"), "").0, 200, "{path}{resource}");
        }
    }
    let metrics = http("GET", &sim.admin("/metrics"), &[], "").2;
    for line in ["dealer_sim_dealers 3\n", "dealer_sim_vehicles 60\n", "# EOF\n"] {
        assert!(metrics.contains(line), "{metrics}");
    }
}

fn run(arguments: &[&str]) -> (i32, String, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_dealer-sim")).args(arguments).output().unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code().unwrap(), text(output.stdout), text(output.stderr))
}

#[test]
fn the_commands_speak_of_any_dealer() {
    let clock = ["--clock", "2026-01-05T12:00:00Z", "--vehicles", "20"];
    let with = |rest: &[&'static str]| [rest, &clock].concat();
    let (code, alone, _) = run(&with(&["inventory"]));
    assert_eq!(code, 0);
    assert_eq!(
        run(&with(&["inventory", "--dealer", "harbor"])).1,
        alone,
        "the first dealer's stock is the only one's"
    );
    let other = "red-hollow-motor-group-2";
    let own = run(&with(&["inventory", "--dealer", other])).1;
    let sim = Sim::start(&with(&["--dealers", "2"]));
    let served = data(&rpc(&a2a(&sim, other), &search()).2);
    for vehicle in served["vehicles"].as_array().unwrap() {
        let stock = vehicle["stock"].as_str().unwrap_or("\"dealer_id\"");
        assert!(own.contains(stock) && vehicle["dealer_id"] == other, "{vehicle}");
    }
    let card = run(&["card", "--dealer", other, "--public-url", "https://lab.example.test"]).1;
    let url = format!("https://lab.example.test/d/{other}/a2a");
    assert_eq!(json_of(&card)["supportedInterfaces"][0]["url"], url.as_str());
    let (code, _, told) = run(&["card", "--dealer", "nobody"]);
    assert!(code == 1 && told.contains("harbor, red-hollow-motor-group-2"), "{told}");
    for bad in ["0", "1001", "x"] {
        assert_eq!(run(&["serve", "--dealers", bad]).0, 1);
    }
}

#[test]
fn a_stock_of_ones_own_is_one_dealers() {
    let folder = tempfile::tempdir().unwrap();
    let stock = folder.path().join("stock.jsonl");
    std::fs::write(&stock, run(&["inventory", "--vehicles", "20"]).1).unwrap();
    let flags = ["serve", "--listen", "127.0.0.1:0", "--admin", "off", "--dealers", "2", "--inventory"];
    let (code, _, told) = run(&[&flags[..], &[stock.to_str().unwrap()]].concat());
    assert!(code == 1 && told.contains("one dealer's"), "{told}");
}

#[test]
fn a_test_embeds_many_dealers() {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let running = runtime.block_on(Dealer::builder().dealers(3).vehicles(20).start()).unwrap();
    let ids: Vec<&str> = running.dealers().collect();
    assert_eq!(ids, ["harbor", "red-hollow-motor-group-2", "linden-bridge-motor-group-3"]);
    for id in ids {
        let url = running.url_of(id).unwrap();
        assert_eq!(rpc(&url, &information()).0, 200);
        assert_eq!(get(&running.card_url_of(id).unwrap(), "*/*").0, 200);
    }
    assert_eq!(running.url_of("nobody"), None);
    assert!(Dealer::builder().dealers(0).build().is_err());
    assert!(Dealer::builder().dealers(1001).build().is_err());
}

#[test]
fn a_clock_is_moved_for_one_or_for_all_and_what_comes_in_is_nobody_elses() {
    let sim = Sim::start(&["--dealers", "3", "--vehicles", "60", "--clock", "2026-01-05T12:00:00Z"]);
    let ids = ids(&sim);
    let now = |id: &str| admin(&sim, "GET", &format!("/d/{id}/clock"), "").1["now"].clone();
    let advance = |path: &str, by: &str| admin(&sim, "POST", path, &format!("{{\"advance\":\"{by}\"}}")).0;
    assert_eq!(advance(&format!("/d/{}/clock", ids[1]), "25h"), 200);
    assert_eq!([now(&ids[0]), now(&ids[1])], ["2026-01-05T12:00:00Z", "2026-01-06T13:00:00Z"]);
    assert_eq!(advance("/clock", "720h"), 200);
    assert_eq!([now(&ids[0]), now(&ids[1])], ["2026-02-04T12:00:00Z", "2026-02-05T13:00:00Z"]);
    let mut vins = HashSet::new();
    for id in &ids {
        for vehicle in data(&rpc(&a2a(&sim, id), &search()).2)["vehicles"].as_array().unwrap() {
            assert_eq!(vehicle["dealer_id"], id.as_str());
            assert!(vehicle["vin"].as_str().is_none_or(|vin| vins.insert(vin.to_owned())), "{vehicle}");
        }
    }
    assert!(vins.len() > 60, "{}", vins.len());
}
