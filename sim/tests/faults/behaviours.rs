//! How a dealer behaves under a fault, and when it answers, over a socket. Each check has a dealer of its own.

use std::time::{Duration, Instant};

use dealer_sim::protocol::Skill;
use serde_json::{Value, json};

use super::samples::request;
use super::support::{Sim, http, lead};
use super::talk::{Asked, Heard};
use super::{FROZEN, support};

/// Whether a lead of a customer of this name is stored.
pub(crate) fn has_lead(sim: &Sim, name: &str) -> bool {
    let leads: Value = serde_json::from_str(&http("GET", &sim.admin("/leads"), &[], "").2).unwrap();
    let wanted = format!("\"last_name\":\"{name}\"");
    leads["leads"].as_array().unwrap().iter().any(|lead| lead["request"].to_string().contains(&wanted))
}

/// One call, with a fault or without.
fn ask(sim: &Sim, skill: Skill, members: &Value, fault: Option<&str>) -> Heard {
    post(sim, &request(skill, members), fault)
}

fn post(sim: &Sim, body: &str, fault: Option<&str>) -> Heard {
    let fields: Vec<(&str, &str)> = fault.map(|fault| ("X-Sim-Fault", fault)).into_iter().collect();
    let heard = Asked { url: &sim.url(), body: Some(body), fields: &fields, keep: false }.heard();
    let told = heard.field("x-sim-fault-applied");
    assert_eq!(!told.is_empty(), fault.is_some(), "{told}: {:.400}", heard.text());
    heard
}

fn page(sim: &Sim, skip: u64, fault: Option<&str>) -> Vec<Value> {
    let members = json!({ "pagination": { "skip": skip, "limit": 5 } });
    ask(sim, Skill::InventorySearch, &members, fault).data()["vehicles"].as_array().unwrap().clone()
}

fn keyed(name: &str) -> Value {
    let mut lead = lead(name);
    lead["idempotency_key"] = json!("k-1");
    lead
}

/// A lead that asks for an appointment at a time that is free, or at one that the dealer's fixtures call busy.
fn visit(sim: &Sim, who: &str, busy: bool) -> Value {
    let fixtures: Value = serde_json::from_str(&http("GET", &sim.admin("/fixtures"), &[], "").2).unwrap();
    let mut lead = lead(who);
    lead["appointment"] = match busy {
        true => json!({ "appointment_type": "service", "appointment_at": fixtures["busy_slot"] }),
        false => json!({ "appointment_type": "sales", "appointment_at": "2026-01-07T18:00:00Z" }),
    };
    lead
}

/// Asserts how the dealer behaves under an effect of [`dealer_sim::faults::Apply::Behave`].
pub(crate) fn check(name: &str) {
    let sim = Sim::start(&FROZEN);
    match name {
        "sold_under_you" => {
            let vehicle = page(&sim, 0, None).into_iter().find(|vehicle| vehicle["vin"].is_string()).unwrap();
            let asked = json!({ "vin": vehicle["vin"] });
            let detail = |fault| ask(&sim, Skill::InventoryVehicle, &asked, fault).code();
            assert_eq!([detail(None), detail(Some(name))], ["", "VEHICLE_UNAVAILABLE"]);
        }
        "idempotency_forgotten" => {
            let submit =
                |fault| ask(&sim, Skill::LeadSubmit, &keyed("Twice"), fault).data()["lead_id"].clone();
            let ids = [submit(None), submit(None), submit(Some(name))];
            assert!(ids[0] == ids[1] && ids[0] != ids[2] && ids[2].is_string(), "{ids:?}");
            let leads: Value = serde_json::from_str(&http("GET", &sim.admin("/leads"), &[], "").2).unwrap();
            assert_eq!(leads["received"], 2);
        }
        "lead_duplicate" => {
            let submit =
                |who, fault| ask(&sim, Skill::LeadSubmit, &lead(who), fault).data()["status"].clone();
            assert_eq!(
                (submit("One", None), submit("Two", Some(name))),
                (json!("received"), json!("duplicate"))
            );
        }
        "appointment_requested"
        | "appointment_proposed"
        | "appointment_confirmed"
        | "appointment_rejected" => {
            let status = |who, fault| {
                let wish = visit(&sim, who, name == "appointment_confirmed");
                ask(&sim, Skill::LeadSubmit, &wish, fault).data()["appointment"]["status"].clone()
            };
            let expected = json!(name.strip_prefix("appointment_"));
            assert_ne!(status("One", None), expected, "it is so without the fault");
            assert_eq!(status("Two", Some(name)), expected);
        }
        "duplicate_across_pages" => {
            let (first, second) = (page(&sim, 0, None), page(&sim, 5, Some(name)));
            assert_eq!(first.last(), second.first());
            assert_eq!(second[1..], page(&sim, 5, None)[..4]);
        }
        "stock_moves_between_pages" => {
            let (second, moved) = (page(&sim, 5, None), page(&sim, 5, Some(name)));
            assert_eq!(second[1..], moved[..4]);
            assert_ne!(second[0], moved[0]);
        }
        "token_bucket" => {
            let call = |fault| ask(&sim, Skill::DealerInformation, &json!({}), Some(fault));
            let bucket = "token_bucket(rate=2, per=1m, hint=both)";
            let calls = [call(bucket), call(bucket), call(bucket)];
            assert_eq!(calls.each_ref().map(Heard::code), ["", "", "RATE_LIMITED"]);
            let reply = calls[2].json();
            let typed = reply["error"]["data"].as_array().unwrap().last().unwrap();
            let (ms, seconds) =
                (&typed["details"]["retry_after_ms"], &typed["details"]["retry_after_seconds"]);
            assert!((20_000..=30_000).contains(&ms.as_u64().unwrap()) && *seconds == 30, "{typed}");
            let over_http = "token_bucket(rate=1, per=1m, as=http)";
            let calls = [call(over_http), call(over_http)];
            assert_eq!(calls.each_ref().map(Heard::status), [200, 429]);
            assert_eq!(calls[1].field("retry-after"), "60");
        }
        "unknown_context_refused" | "conversation_expired" => {
            // The conversation is the caller's own, and the next one the dealer's.
            let body = request(Skill::DealerInformation, &json!({}));
            let unnamed = body.replace("\"contextId\":\"ctx_mine\",", "");
            let opened = post(&sim, &unnamed, Some(name)).json()["result"]["message"]["contextId"].clone();
            let named = body.replace("ctx_mine", opened.as_str().unwrap());
            let error = |body: &str, fault| post(&sim, body, fault).json()["error"]["code"].clone();
            assert_eq!((error(&body, None), error(&body, Some(name))), (Value::Null, json!(-32_602)));
            let expected = if name == "conversation_expired" { json!(-32_602) } else { Value::Null };
            assert_eq!(error(&named, Some(name)), expected);
        }
        _ => panic!("no assertion"),
    }
}

const MS: Duration = Duration::from_millis(1);

fn put(sim: &Sim, effect: &str) -> Instant {
    let plan = format!("rules:\n  - {{ id: slow, effect: \"{effect}\" }}\n");
    assert_eq!(http("PUT", &sim.admin("/faults"), &[], &plan).0, 200);
    Instant::now()
}

/// How long a call takes.
fn time(sim: &Sim, fault: Option<&str>) -> Duration {
    let body =
        support::call("dealer-information", &json!({ "type": "dealer.information.request" })).to_string();
    let fields: Vec<(&str, &str)> = fault.map(|fault| ("X-Sim-Fault", fault)).into_iter().collect();
    let begun = Instant::now();
    let heard = Asked { url: &sim.url(), body: Some(&body), fields: &fields, keep: false }.heard();
    assert_eq!(heard.status(), 200);
    begun.elapsed()
}

fn near(took: Duration, due: Duration) {
    assert!(took >= due && took < due + 150 * MS, "{took:?} instead of {due:?}");
}

/// Asserts when a dealer answers under an effect of [`dealer_sim::faults::Apply::Delay`].
pub(crate) fn check_delay(name: &str) {
    let sim = Sim::start(&FROZEN);
    match name {
        "latency" => {
            near(time(&sim, None), Duration::ZERO);
            near(time(&sim, Some("latency(fixed, value=300ms)")), 300 * MS);
            near(time(&sim, Some("latency(uniform, min=400ms, max=401ms)")), 400 * MS);
        }
        "latency_two_point" => {
            near(time(&sim, Some("latency_two_point(low=200ms, high=500ms, share=0)")), 200 * MS);
            near(time(&sim, Some("latency_two_point(low=200ms, high=500ms, share=100%)")), 500 * MS);
        }
        "latency_per_load" => {
            let fault = Some("latency_per_load(each=100ms)");
            near(time(&sim, fault), Duration::ZERO);
            std::thread::scope(|scope| {
                for _ in 0..3 {
                    scope.spawn(|| time(&sim, Some("latency(fixed, value=700ms)")));
                }
                std::thread::sleep(200 * MS);
                near(time(&sim, fault), 300 * MS);
            });
        }
        "degrade" => {
            // Twenty seconds more for each minute: a delay is a third of the age of the plan.
            let since = put(&sim, "degrade(per_minute=20s)");
            for _ in 0..2 {
                std::thread::sleep(300 * MS);
                let age = since.elapsed();
                near(time(&sim, None), age / 3);
            }
        }
        "warm_up" => {
            put(&sim, "warm_up(from=600ms, over=900ms)");
            let cold = time(&sim, None);
            assert!(cold > 400 * MS && cold < 700 * MS, "{cold:?}");
            std::thread::sleep(400 * MS);
            near(time(&sim, None), Duration::ZERO);
        }
        "stall" => {
            let since = put(&sim, "stall(every=600ms, for=300ms)");
            let calls: Vec<(Duration, Duration)> = std::thread::scope(|scope| {
                let calls: Vec<_> = (0..24)
                    .map(|_| {
                        std::thread::sleep(50 * MS);
                        scope.spawn(|| (time(&sim, None), since.elapsed()))
                    })
                    .collect();
                calls.into_iter().map(|call| call.join().unwrap()).collect()
            });
            let (stalled, free): (Vec<_>, Vec<_>) = calls.iter().partition(|(took, _)| *took > 100 * MS);
            assert!(stalled.len() >= 5 && free.len() >= 8, "{calls:?}");
            for (_, ended) in stalled {
                // All of them go on together, when the stall ends; the plan took force a little before `since`.
                assert!((ended.as_millis() + 50) % 600 < 200, "{ended:?}");
            }
        }
        "card_slow" => {
            put(&sim, "card_slow(300ms)");
            let begun = Instant::now();
            assert_eq!(http("GET", sim.first["card"].as_str().unwrap(), &[], "").0, 200);
            near(begun.elapsed(), 300 * MS);
            near(time(&sim, None), Duration::ZERO);
        }
        _ => panic!("no assertion"),
    }
}
