//! The clock and the stock of a server that runs: `/clock`, `/vehicles`, and what a buyer sees of them.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

mod support;

use std::path::PathBuf;

use dealer_sim::protocol::schema::stock_vehicle_schema;
use serde_json::{Value, json};
use support::{Sim, call, http, lead, rpc};

/// Frozen on a Thursday, a business day.
const CLOCK: &[&str] = &["--clock", "2026-01-01T12:00:00Z"];

fn schema(name: &str) -> Value {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../data/schemas").join(name);
    serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap()
}

/// The status and the value of an admin reply, which is held to the schema that its kind has.
fn admin(sim: &Sim, method: &str, path: &str, body: &str) -> (u16, Value) {
    let (status, _, reply) = http(method, &sim.admin(path), &[], body);
    let value: Value = serde_json::from_str(&reply).unwrap_or_else(|_| panic!("{method} {path}: {reply}"));
    let schema = match path {
        _ if status >= 400 => Some(schema("admin-problem.schema.json")),
        "/clock" => Some(schema("clock.schema.json")),
        "/fixtures" => Some(schema("fixtures.schema.json")),
        path if path.starts_with("/vehicles") && method != "DELETE" => {
            Some(schema("stock-vehicle.schema.json"))
        }
        _ => None,
    };
    if let Some(schema) = schema {
        let validator = jsonschema::options().should_validate_formats(true).build(&schema).unwrap();
        let faults: Vec<String> = validator.iter_errors(&value).map(|fault| fault.to_string()).collect();
        assert!(faults.is_empty(), "{method} {path}: {faults:?} in {value}");
    }
    (status, value)
}

/// The payload of a reply, or the AAP code of its error.
fn ask(sim: &Sim, stem: &str, payload: &Value) -> Result<Value, String> {
    let (_, _, reply) = rpc(&sim.url(), &call(stem, payload).to_string());
    let reply: Value = serde_json::from_str(&reply).unwrap();
    match reply["result"]["message"]["parts"][0]["data"]["data"].clone() {
        Value::Null => {
            Err(reply["error"]["message"].as_str().unwrap().split([':', ' ']).next().unwrap().to_owned())
        }
        data => Ok(data),
    }
}

fn search(sim: &Sim, filters: Value) -> Value {
    let payload =
        json!({ "type": "inventory.search.request", "filters": filters, "pagination": { "limit": 100 } });
    ask(sim, "inventory-search", &payload).unwrap()
}

fn detail(sim: &Sim, vin: &str) -> Result<Value, String> {
    ask(sim, "vehicle-detail", &json!({ "type": "inventory.vehicle.request", "vin": vin }))
}

fn lead_for(sim: &Sim, name: &str, vin: &str) -> Result<Value, String> {
    let mut lead = lead(name);
    lead["vehicle_of_interest"] = json!({ "vin": vin });
    ask(sim, "lead-submit", &lead)
}

/// The count of a term of a facet.
fn count(sim: &Sim, facet: &str, value: &str) -> u64 {
    let facets = ask(sim, "inventory-facets", &json!({ "type": "inventory.facets.request" })).unwrap();
    let terms = facets[facet].as_array().unwrap();
    terms.iter().find(|term| term["value"] == value).map_or(0, |term| term["count"].as_u64().unwrap())
}

fn fixture(sim: &Sim, name: &str) -> String {
    admin(sim, "GET", "/fixtures", "").1[name].as_str().unwrap().to_owned()
}

/// Run with `UPDATE_SCHEMAS=1` to write the file again after a change of the shape.
#[test]
fn the_published_schema_of_a_vehicle_is_current() {
    let path = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../data/schemas/stock-vehicle.schema.json");
    let text = format!("{}\n", serde_json::to_string_pretty(&stock_vehicle_schema()).unwrap());
    if std::env::var_os("UPDATE_SCHEMAS").is_some() {
        std::fs::write(&path, &text).unwrap();
    }
    assert_eq!(std::fs::read_to_string(&path).unwrap_or_default(), text, "run with UPDATE_SCHEMAS=1");
}

#[test]
fn a_frozen_clock_stands_where_it_is_put() {
    let sim = Sim::start(CLOCK);
    let shown = |now: &str| (200, json!({ "mode": "frozen", "now": now }));
    assert_eq!(admin(&sim, "GET", "/clock", ""), shown("2026-01-01T12:00:00Z"));
    assert_eq!(admin(&sim, "POST", "/clock", r#"{"advance":"25h"}"#), shown("2026-01-02T13:00:00Z"));
    assert_eq!(
        admin(&sim, "POST", "/clock", r#"{"set":"2026-01-05T00:00:00+01:00"}"#),
        shown("2026-01-04T23:00:00Z")
    );
    assert_eq!(admin(&sim, "POST", "/clock", r#"{"advance":"0s"}"#), shown("2026-01-04T23:00:00Z"));
    let (status, back) = admin(&sim, "POST", "/clock", r#"{"set":"2026-01-04T22:59:59Z"}"#);
    assert!(status == 409 && back["error"].as_str().unwrap().contains("2026-01-04T23:00:00Z"), "{back}");
    for (bad, faults) in [
        (r#"{"advance":"soon","set":5,"x":1}"#, 3),
        (r#"{"advance":"1h","set":"2026-02-01T00:00:00Z"}"#, 1),
        (r#"{"set":"2100-01-01T00:00:00Z"}"#, 1),
        (r#"{"advance":"2000000h"}"#, 1),
        ("", 1),
    ] {
        let (status, told) = admin(&sim, "POST", "/clock", bad);
        assert_eq!((status, told["faults"].as_array().unwrap().len()), (400, faults), "{bad}: {told}");
    }
    assert_eq!(admin(&sim, "DELETE", "/clock", "").0, 405);
    assert_eq!(admin(&sim, "GET", "/clock", ""), shown("2026-01-04T23:00:00Z"));
    assert_eq!(admin(&sim, "POST", "/reset", "").0, 200);
    assert_eq!(admin(&sim, "GET", "/clock", ""), shown("2026-01-01T12:00:00Z"));
}

#[test]
fn a_real_clock_goes_on_running_from_where_it_was_put() {
    let sim = Sim::start(&["--vehicles", "50"]);
    let now = || {
        let (_, clock) = admin(&sim, "GET", "/clock", "");
        assert_eq!(clock["mode"], "real");
        clock["now"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap()
    };
    let start = now();
    admin(&sim, "POST", "/clock", r#"{"advance":"48h"}"#);
    let ahead = now().duration_since(start).as_secs();
    assert!((48 * 3600..48 * 3600 + 60).contains(&ahead), "{ahead} s");
    let moved = now();
    let later = (0..40).any(|_| {
        std::thread::yield_now();
        // Each look takes a connection; the clock shows whole seconds.
        (0..200).any(|_| now() > moved)
    });
    assert!(later, "the clock stands");
    admin(&sim, "POST", "/reset", "");
    assert!(now().duration_since(start).as_secs() < 3600);
}

#[test]
fn a_day_ends_keys_consents_and_appointments() {
    let sim = Sim::start(CLOCK);
    let mut keyed = lead("Keyed");
    keyed["idempotency_key"] = json!("key-of-the-day");
    let send = |lead: &Value| ask(&sim, "lead-submit", lead);
    let first = send(&keyed).unwrap()["lead_id"].clone();
    assert_eq!(send(&keyed).unwrap()["lead_id"], first);
    let mut brief = lead("Brief");
    brief["consent"]["expires_at"] = json!("2026-01-02T12:00:00Z");
    assert!(send(&brief).is_ok());
    let busy = fixture(&sim, "busy_slot");

    admin(&sim, "POST", "/clock", r#"{"advance":"25h"}"#);
    assert_ne!(send(&keyed).unwrap()["lead_id"], first, "the key is gone");
    brief["idempotency_key"] = json!("another");
    assert_eq!(send(&brief).unwrap_err(), "INVALID_CONSENT");
    let (_, leads) = admin(&sim, "GET", "/leads", "");
    assert_eq!(leads["received"], 3);
    assert_eq!(leads["leads"][2]["received_at"], "2026-01-02T13:00:00Z");
    assert!(fixture(&sim, "busy_slot") > busy, "appointments move on");
}

#[test]
fn a_sold_vehicle_is_gone_for_search_facets_detail_and_lead_at_once() {
    let sim = Sim::start(CLOCK);
    let vin = fixture(&sim, "available_vin");
    let make = detail(&sim, &vin).unwrap()["make"].as_str().unwrap().to_owned();
    let (all, of_make) = (search(&sim, json!({}))["total"].as_u64().unwrap(), count(&sim, "makes", &make));
    let available = count(&sim, "statuses", "available");
    let (status, sold) = admin(&sim, "PATCH", &format!("/vehicles/{vin}"), r#"{"status":"sold"}"#);
    assert_eq!(
        (status, &sold["status"], &sold["updated_at"]),
        (200, &json!("sold"), &json!("2026-01-01T12:00:00Z"))
    );
    assert_eq!(search(&sim, json!({ "vin": vin }))["total"], 0);
    assert_eq!(search(&sim, json!({}))["total"], all - 1);
    assert_eq!(
        (count(&sim, "makes", &make), count(&sim, "statuses", "available")),
        (of_make - 1, available - 1)
    );
    assert_eq!(detail(&sim, &vin).unwrap_err(), "VEHICLE_UNAVAILABLE");
    assert_eq!(lead_for(&sim, "Late", &vin).unwrap_err(), "VEHICLE_UNAVAILABLE");
    // And back, with another price.
    let (_, back) =
        admin(&sim, "PATCH", &format!("/vehicles/{vin}"), r#"{"status":"pending","price":24990}"#);
    assert_eq!((&back["price"], &detail(&sim, &vin).unwrap()["price"]), (&json!(24990), &json!(24990)));
    assert_eq!(search(&sim, json!({ "vin": vin }))["vehicles"][0]["price"], 24990);
    assert!(lead_for(&sim, "Early", &vin).is_ok());
    assert_eq!(admin(&sim, "GET", &format!("/vehicles/{vin}"), ""), (200, back));
    assert_ne!(fixture(&sim, "available_vin"), vin, "the fixtures know of it");
    // A reset takes it all back.
    admin(&sim, "POST", "/reset", "");
    assert_eq!((fixture(&sim, "available_vin"), count(&sim, "statuses", "available")), (vin, available));
}

#[test]
fn vehicles_come_and_go() {
    let sim = Sim::start(&[CLOCK, &["--vehicles", "40"]].concat());
    let vehicle = json!({
        "vin": "WDBAA000000000001", "stock": "A-1", "status": "available", "make": "Amphicar", "model": "770", "year": 1965,
        "condition": "used", "price": 51_000,
    });
    let (status, added) = admin(&sim, "POST", "/vehicles", &vehicle.to_string());
    assert_eq!(
        (status, &added["updated_at"], &added["make"]),
        (201, &json!("2026-01-01T12:00:00Z"), &json!("Amphicar"))
    );
    assert!(added["dealer_id"].is_string());
    let found = search(&sim, json!({ "make": ["amphicar"] }));
    assert_eq!((&found["total"], &found["vehicles"][0]), (&json!(1), &added));
    assert_eq!(count(&sim, "makes", "Amphicar"), 1);
    assert_eq!(search(&sim, json!({ "query": "a-1 770" }))["total"], 1);
    assert!(lead_for(&sim, "Amphibian", "WDBAA000000000001").is_ok());

    let (status, taken) = admin(&sim, "POST", "/vehicles", &vehicle.to_string());
    assert!(status == 409 && taken["error"].as_str().unwrap().contains("vin"), "{taken}");
    let (status, taken) = admin(&sim, "POST", "/vehicles", r#"{"stock":"A-1","status":"available"}"#);
    assert!(status == 409 && taken["error"].as_str().unwrap().contains("stock"), "{taken}");
    let (status, bad) = admin(&sim, "POST", "/vehicles", r#"{"stock":"A-2","price":"much","year":1}"#);
    assert_eq!((status, bad["faults"].as_array().unwrap().len()), (400, 3), "{bad}");
    let (status, bad) =
        admin(&sim, "PATCH", "/vehicles/WDBAA000000000001", r#"{"prize":1,"price":-1,"vin":"x"}"#);
    assert_eq!((status, bad["faults"].as_array().unwrap().len()), (400, 3), "{bad}");

    assert_eq!(admin(&sim, "DELETE", "/vehicles/WDBAA000000000001", "").0, 200);
    assert_eq!(admin(&sim, "DELETE", "/vehicles/WDBAA000000000001", "").0, 404);
    assert_eq!(admin(&sim, "PATCH", "/vehicles/WDBAA000000000001", r#"{"price":1}"#).0, 404);
    assert_eq!(admin(&sim, "GET", "/vehicles/WDBAA000000000001", "").0, 404);
    assert_eq!(detail(&sim, "WDBAA000000000001").unwrap_err(), "VEHICLE_NOT_FOUND");
    assert_eq!(
        (search(&sim, json!({ "make": ["Amphicar"] }))["total"].clone(), count(&sim, "makes", "Amphicar")),
        (json!(0), 0)
    );
    assert_eq!(admin(&sim, "PUT", "/vehicles/X", "").0, 405);
    assert_eq!(admin(&sim, "GET", "/vehicles", "").0, 405);
    let (_, _, metrics) = http("GET", &sim.admin("/metrics"), &[], "");
    assert!(metrics.contains("dealer_sim_vehicle_edits_total 2\n"), "{metrics}");
    assert!(metrics.contains("dealer_sim_vehicles 40\n"));
}

#[test]
fn what_sold_through_answers_as_unavailable() {
    let sim = Sim::start(CLOCK);
    let listed = |sim: &Sim| {
        let mut vins = Vec::new();
        for skip in (0..600).step_by(100) {
            let payload =
                json!({ "type": "inventory.search.request", "pagination": { "limit": 100, "skip": skip } });
            let page = ask(sim, "inventory-search", &payload).unwrap();
            let all = page["vehicles"].as_array().unwrap().clone();
            vins.extend(all.iter().filter_map(|vehicle| vehicle["vin"].as_str().map(str::to_owned)));
        }
        vins
    };
    let before = listed(&sim);
    admin(&sim, "POST", "/clock", r#"{"advance":"480h"}"#);
    let after = listed(&sim);
    let gone: Vec<&String> = before.iter().filter(|vin| !after.contains(vin)).collect();
    assert!((40..250).contains(&gone.len()), "{} sold in 20 days", gone.len());
    for vin in gone.iter().take(3) {
        assert_eq!(lead_for(&sim, "Too late", vin).unwrap_err(), "VEHICLE_UNAVAILABLE");
        assert_eq!(detail(&sim, vin).unwrap_err(), "VEHICLE_UNAVAILABLE");
        let (_, known) = admin(&sim, "GET", &format!("/vehicles/{vin}"), "");
        assert_eq!(known["status"], "sold");
    }
    assert!(after.iter().any(|vin| !before.contains(vin)), "others have come in");
    assert!(
        detail(&sim, &fixture(&sim, "available_vin")).unwrap()["updated_at"].as_str().unwrap() > "2026-01-19"
    );
    assert_eq!(detail(&sim, &fixture(&sim, "sold_vin")).unwrap_err(), "VEHICLE_UNAVAILABLE");
}

#[test]
fn a_table_is_served_and_comes_back_as_it_was() {
    let export = |flags: &[&str]| {
        let out = std::process::Command::new(env!("CARGO_BIN_EXE_dealer-sim"))
            .args([&["inventory", "--clock", "2026-01-01T12:00:00Z"], flags].concat())
            .output()
            .unwrap();
        (out.status.code(), String::from_utf8(out.stdout).unwrap(), String::from_utf8(out.stderr).unwrap())
    };
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("stock.csv");
    let path = file.to_str().unwrap();
    let (_, csv, _) = export(&["--format", "csv"]);
    std::fs::write(&file, &csv).unwrap();
    assert_eq!(export(&["--inventory", path, "--format", "csv"]).1, csv);
    let sim = Sim::start(&["--inventory", path]);
    assert_eq!(sim.first["vehicles"], 500);

    std::fs::write(
        &file,
        "vin,price,status\n1HGCV1F30NA123456,cheap,available\n1HGCV1F30NA123456,5,gone,x\n\"a,1,sold\n",
    )
    .unwrap();
    let (code, _, error) = export(&["--inventory", path]);
    assert_eq!(code, Some(1));
    let lines: Vec<&str> = error.lines().collect();
    assert_eq!(lines.len(), 3, "{error}");
    assert!(lines[0].ends_with("stock.csv:2:19: /price: must be integer"), "{error}");
    assert!(lines[1].contains("stock.csv:3:1: 4 fields"), "{error}");
    assert!(lines[2].contains("stock.csv:4:1: opens a quote"), "{error}");
}

#[tokio::test]
async fn a_test_moves_the_clock_and_sells_a_car() {
    let dealer = dealer_sim::Dealer::builder()
        .vehicles(40)
        .clock("2026-01-01T12:00:00Z".parse().unwrap())
        .start()
        .await
        .unwrap();
    let vin = dealer.world().first().scene().dealer.inventory().fixtures().available_vin.unwrap();
    dealer.edit_vehicle(&vin, &json!({ "status": "sold" })).unwrap();
    let now = dealer.advance_clock(std::time::Duration::from_secs(25 * 3600)).unwrap();
    assert_eq!(now.to_string(), "2026-01-02T13:00:00Z");
    let (_, _, reply) = rpc(
        &dealer.url(),
        &call("vehicle-detail", &json!({ "type": "inventory.vehicle.request", "vin": vin })).to_string(),
    );
    assert!(reply.contains("VEHICLE_UNAVAILABLE"), "{reply}");
    assert!(dealer.edit_vehicle("NOSUCHVEHICLE0000", &json!({ "price": 1 })).is_err());
}

/// While one thread sells and relists, no reply of another may be of two stocks: the total of a page, its listings and the
/// facets' counts go together.
#[test]
fn a_reply_is_of_one_stock() {
    let sim = Sim::start(&[CLOCK, &["--vehicles", "60"]].concat());
    let vins: Vec<String> = search(&sim, json!({}))["vehicles"]
        .as_array()
        .unwrap()
        .iter()
        .filter_map(|vehicle| vehicle["vin"].as_str().map(str::to_owned))
        .take(20)
        .collect();
    std::thread::scope(|scope| {
        let editor = scope.spawn(|| {
            for round in 0..6 {
                let status = ["sold", "available"][round % 2];
                for vin in &vins {
                    let body = json!({ "status": status, "price": round }).to_string();
                    assert_eq!(admin(&sim, "PATCH", &format!("/vehicles/{vin}"), &body).0, 200);
                }
            }
        });
        while !editor.is_finished() {
            let page = search(&sim, json!({}));
            let all = page["vehicles"].as_array().unwrap();
            assert_eq!(page["total"].as_u64().unwrap() as usize, all.len());
            assert!(all.iter().all(|vehicle| vehicle["status"] != "sold"));
        }
    });
}

#[test]
fn each_dealer_has_a_clock_and_a_stock_of_its_own() {
    let sim = Sim::start(&[CLOCK, &["--vehicles", "40", "--dealers", "3"]].concat());
    let (_, about) = admin(&sim, "GET", "/", "");
    let paths: Vec<String> =
        about["dealers"].as_array().unwrap().iter().map(|path| path.as_str().unwrap().to_owned()).collect();
    let now = |prefix: &str| {
        let (_, clock) = admin(&sim, "GET", &format!("{prefix}/clock"), "");
        clock["now"].as_str().unwrap().to_owned()
    };
    admin(&sim, "POST", &format!("{}/clock", paths[1]), r#"{"advance":"25h"}"#);
    assert_eq!(
        paths.iter().map(|path| now(path)[8..13].to_owned()).collect::<Vec<_>>(),
        ["01T12", "02T13", "01T12"]
    );
    // Without a prefix it is for all, and where one of them cannot, none does.
    let set = r#"{"set":"2026-01-02T00:00:00Z"}"#;
    assert_eq!(admin(&sim, "POST", "/clock", set).0, 409);
    assert_eq!(now(&paths[0]), "2026-01-01T12:00:00Z");
    admin(&sim, "POST", "/clock", r#"{"advance":"24h"}"#);
    assert_eq!(
        paths.iter().map(|path| now(path)[8..13].to_owned()).collect::<Vec<_>>(),
        ["02T12", "03T13", "02T12"]
    );

    // A VIN is known to one dealer.
    let (_, _, fixtures) = http("GET", &sim.admin(&format!("{}/fixtures", paths[2])), &[], "");
    let fixtures: Value = serde_json::from_str(&fixtures).unwrap();
    let path = format!("/vehicles/{}", fixtures["available_vin"].as_str().unwrap());
    assert_eq!(admin(&sim, "PATCH", &path, r#"{"price":4711}"#).1["price"], 4711);
    assert_eq!(admin(&sim, "GET", &format!("{}{path}", paths[2]), "").1["price"], 4711);
    assert_eq!(admin(&sim, "PATCH", &format!("{}{path}", paths[0]), r#"{"price":1}"#).0, 404);
    assert_eq!(admin(&sim, "POST", &format!("{}/reset", paths[2]), "").0, 200);
    assert_ne!(admin(&sim, "GET", &path, "").1["price"], 4711);
    assert_eq!(now(&paths[2])[8..13].to_owned(), "01T12");
    assert_eq!(now(&paths[1])[8..13].to_owned(), "03T13");
}
