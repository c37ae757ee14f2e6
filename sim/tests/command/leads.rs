//! `--leads`: what a dealer acknowledged it knows again, whatever ended it.

use std::collections::HashMap;
use std::path::Path;
use std::time::Duration;

use dealer_sim::Dealer;
use dealer_sim::server::leads_file::{LeadsFile, SyncPolicy};
use dealer_sim::stable::mix;
use serde_json::{Value, json};

use super::support::{Sim, answer_to_lead, http, lead, receipt};
use super::{holds, run};

const CLOCK: &str = "2026-01-01T12:00:00Z";

fn serve(file: &Path, more: &[&str]) -> Sim {
    Sim::start(&[&["--vehicles", "40", "--leads", file.to_str().unwrap()], more].concat())
}

/// The line that a dealer ends with which cannot start, and its exit code.
fn refused(file: &Path) -> (i32, String) {
    let flags = ["--listen", "127.0.0.1:0", "--admin", "off", "--vehicles", "40"];
    let (code, out, error) = run(&[&["serve", "--leads", file.to_str().unwrap()][..], &flags].concat());
    assert_eq!(out, "");
    (code, error)
}

fn keyed(name: &str, key: &str) -> Value {
    let mut payload = lead(name);
    payload["idempotency_key"] = key.into();
    payload
}

/// The receipt of a lead.
fn submit(sim: &Sim, payload: &Value) -> Value {
    let (status, _, body) = answer_to_lead(&sim.url(), payload).unwrap();
    assert_eq!(status, 200, "{body}");
    receipt(&serde_json::from_str(&body).unwrap()).clone()
}

fn leads(sim: &Sim) -> Vec<Value> {
    let (_, _, body) = http("GET", &sim.admin("/leads?limit=1000000"), &[], "");
    let told: Value = serde_json::from_str(&body).unwrap();
    told["leads"].as_array().unwrap().clone()
}

fn metric(sim: &Sim, name: &str) -> u64 {
    let (_, _, text) = http("GET", &sim.admin("/metrics"), &[], "");
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(' '));
    line.unwrap_or_else(|| panic!("no {name} in {text}")).parse().unwrap()
}

#[test]
fn a_killed_dealer_knows_leads_keys_and_bookings_again() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("leads.jsonl");
    let sim = serve(&file, &["--clock", CLOCK]);
    let fixtures: Value = serde_json::from_str(&http("GET", &sim.admin("/fixtures"), &[], "").2).unwrap();
    let first = submit(&sim, &keyed("Lee", "k-1"));
    let unkeyed = submit(&sim, &lead("Ray"));
    // Booked until there is no more room.
    let mut wish = keyed("Kim", "");
    wish["vehicle_of_interest"] = json!({ "vin": fixtures["available_vin"] });
    let open = |sim: &Sim, wish: &mut Value, at: &Value, key: &str| {
        wish["appointment"] = json!({ "appointment_type": "test_drive", "appointment_at": at });
        wish["idempotency_key"] = key.into();
        submit(sim, wish)["data"]["appointment"].clone()
    };
    let proposed =
        open(&sim, &mut wish, &json!("2026-01-02T03:04:05Z"), "k-ask")["proposed_times"][0].clone();
    let booked = (0..)
        .take_while(|n| open(&sim, &mut wish, &proposed, &format!("k-drive-{n}"))["status"] == "confirmed");
    let booked = booked.count();
    assert!((1..=2).contains(&booked), "{booked}");
    let before = leads(&sim);
    assert_eq!(before.len(), 4 + booked);
    sim.kill();

    let sim = serve(&file, &["--clock", CLOCK]);
    assert_eq!(leads(&sim), before);
    assert_eq!(metric(&sim, "dealer_sim_leads_recovered"), before.len() as u64);
    assert_eq!(submit(&sim, &keyed("Lee", "k-1")), first, "the same key is the same lead");
    let again = submit(&sim, &lead("Ray"));
    assert_eq!(
        (&again["data"]["lead_id"], &again["data"]["status"]),
        (&unkeyed["data"]["lead_id"], &json!("duplicate"))
    );
    let (_, _, conflict) = answer_to_lead(&sim.url(), &keyed("Ray", "k-1")).unwrap();
    assert!(conflict.contains("IDEMPOTENCY_CONFLICT"), "{conflict}");
    assert_eq!(open(&sim, &mut wish, &proposed, "k-late")["status"], "proposed", "the time is taken");
    // With a frozen clock identifiers come from the request and the seed: those of before must not come again.
    let new = submit(&sim, &keyed("Ray", "k-new"))["data"]["lead_id"].clone();
    let ids: Vec<_> = leads(&sim).iter().map(|lead| lead["lead_id"].clone()).collect();
    assert_eq!(ids.iter().filter(|id| **id == new).count(), 1, "{ids:?}");
    assert_eq!(ids.len(), before.len() + 2);
}

#[test]
fn every_line_is_as_its_schema_says_and_names_its_dealer() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("leads.jsonl");
    let sim = serve(&file, &["--dealers", "3", "--leads-sync", "interval=10ms"]);
    let dealers: Value = serde_json::from_str(&http("GET", &sim.admin("/"), &[], "").2).unwrap();
    let paths: Vec<&str> = dealers["dealers"].as_array().unwrap().iter().filter_map(Value::as_str).collect();
    let root = sim.url().strip_suffix("/a2a").unwrap().to_owned();
    for path in &paths {
        let (status, _, body) = answer_to_lead(&format!("{root}{path}/a2a"), &keyed("Lee", "k")).unwrap();
        assert_eq!(status, 200, "{body}");
    }
    let reset = sim.admin(&format!("{}/reset", paths[1]));
    assert_eq!(http("POST", &reset, &[], "").0, 200);
    sim.kill();
    let text = std::fs::read_to_string(&file).unwrap();
    let lines: Vec<Value> = text.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    lines.iter().for_each(|line| holds("lead-record", line));
    let ids = lines.iter().map(|line| format!("/d/{}", line["dealer"].as_str().unwrap()));
    assert_eq!(ids.collect::<Vec<_>>(), [paths[0], paths[1], paths[2], paths[1]]);
    assert_eq!(lines[3]["reset"], true);

    // The second one's lead was forgotten by its reset; and of the third nobody knows where it is not served.
    let sim = serve(&file, &["--dealers", "3"]);
    let known: Vec<_> = leads(&sim).iter().map(|lead| lead["dealer_id"].clone()).collect();
    assert_eq!(known, [lines[0]["dealer"].clone(), lines[2]["dealer"].clone()]);
    sim.kill();
    let sim = serve(&file, &["--dealers", "2"]);
    assert_eq!((leads(&sim).len(), metric(&sim, "dealer_sim_leads_passed_over")), (1, 1));
}

#[test]
fn a_torn_end_is_cut_off_and_damage_is_told_with_its_byte() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("leads.jsonl");
    let sim = serve(&file, &[]);
    for n in 0..5 {
        submit(&sim, &keyed("Lee", &format!("k-{n}")));
    }
    assert_eq!(
        refused(&file),
        (
            2,
            format!(
                "dealer-sim: --leads {}: another process writes this file; each dealer-sim needs its own\n",
                file.display()
            )
        )
    );
    sim.kill();
    let whole = std::fs::read(&file).unwrap();
    let ends: Vec<usize> =
        whole.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1).collect();
    assert_eq!(ends.len(), 5);
    for cut in [ends[3] + 1, ends[3] + 100, whole.len() - 1] {
        std::fs::write(&file, &whole[..cut]).unwrap();
        let sim = serve(&file, &[]);
        assert_eq!(leads(&sim).len(), 4);
        assert_eq!(metric(&sim, "dealer_sim_leads_torn_bytes"), (cut - ends[3]) as u64);
        submit(&sim, &keyed("Lee", "k-more"));
        sim.kill();
        let sim = serve(&file, &[]);
        assert_eq!((leads(&sim).len(), metric(&sim, "dealer_sim_leads_torn_bytes")), (5, 0));
    }
    let mut bad = whole;
    bad[ends[1] + 30] ^= 0x20;
    std::fs::write(&file, &bad).unwrap();
    let (code, error) = refused(&file);
    assert_eq!(code, 1);
    let told = format!(
        "dealer-sim: --leads {}: damaged at byte {}, in line 3: its checksum is ",
        file.display(),
        ends[1]
    );
    assert!(error.starts_with(&told), "{error}");
    assert_eq!(std::fs::read(&file).unwrap(), bad, "what is damaged is left as it is");
}

/// The library's face; a clean stop writes all that it acknowledged, whatever the policy.
#[test]
fn a_dealer_in_a_test_keeps_its_leads_too() {
    let folder = tempfile::tempdir().unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    for (sync, known) in [(SyncPolicy::Never, 0), (SyncPolicy::Always, 1), (SyncPolicy::Always, 2)] {
        let file = LeadsFile { path: folder.path().join("leads.jsonl"), sync };
        let dealer = runtime.block_on(Dealer::builder().vehicles(20).leads(file).start()).unwrap();
        assert_eq!(dealer.world().recovered(), known);
        let (status, _, body) = answer_to_lead(&dealer.url(), &keyed("Lee", &format!("k-{known}"))).unwrap();
        assert!(status == 200 && body.contains("\"received\""), "{body}");
        assert_eq!(dealer.world().leads_in_all(), 1, "those of before do not count");
        dealer.stop();
    }
}

/// A client that sends leads until the dealer is gone: what was acknowledged, by key, and what was only sent.
fn client(url: &str, round: usize, number: usize) -> (HashMap<String, String>, Vec<String>) {
    let (mut acknowledged, mut sent) = (HashMap::new(), Vec::new());
    for n in 0.. {
        // Every fourth lead is an earlier one sent again.
        let n = if n % 4 == 3 { n / 2 } else { n };
        let key = format!("r{round}c{number}n{n}");
        sent.push(key.clone());
        let Some((_, head, body)) = answer_to_lead(url, &keyed("Lee", &key)) else { break };
        let length = head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse().ok());
        if length != Some(body.len()) {
            break;
        }
        let reply: Value = serde_json::from_str(&body).unwrap();
        let lead_id =
            receipt(&reply)["data"]["lead_id"].as_str().unwrap_or_else(|| panic!("{body}")).to_owned();
        let known = acknowledged.insert(key, lead_id.clone());
        assert!(known.is_none_or(|known| known == lead_id), "a key, and two leads");
    }
    (acknowledged, sent)
}

/// `KILLS=200 cargo test -p dealer-sim --test command killed` kills as often; `.ci/long` does.
#[test]
fn no_acknowledged_lead_is_lost_when_the_dealer_is_killed_at_any_moment() {
    const SEED: u64 = 42;
    let kills: u64 = std::env::var("KILLS").map_or(10, |kills| kills.parse().unwrap());
    let folder = tempfile::tempdir().unwrap();
    let (mut acknowledged_in_all, mut torn) = (0, 0);
    for round in 0..kills as usize {
        // A file serves twenty times: what was recovered once is recovered again.
        let file = folder.path().join(format!("leads-{}.jsonl", round / 20));
        let policy = ["always", "interval=5ms", "never"][round % 3];
        let sim = serve(&file, &["--leads-sync", policy]);
        let before = leads(&sim).len();
        let url = sim.url();
        let clients: Vec<_> = (0..4)
            .map(|number| {
                let url = url.clone();
                std::thread::spawn(move || client(&url, round, number))
            })
            .collect();
        std::thread::sleep(Duration::from_micros(mix(SEED ^ round as u64) % 120_000));
        sim.kill();
        let told: Vec<_> = clients.into_iter().map(|client| client.join().unwrap()).collect();
        let sim = serve(&file, &["--leads-sync", policy]);
        torn += u64::from(metric(&sim, "dealer_sim_leads_torn_bytes") > 0);
        let known = leads(&sim);
        let mut by_key: HashMap<&str, Vec<&str>> = HashMap::new();
        for lead in &known {
            let key = lead["request"]["idempotency_key"].as_str().unwrap();
            by_key.entry(key).or_default().push(lead["lead_id"].as_str().unwrap());
        }
        for (acknowledged, sent) in &told {
            acknowledged_in_all += acknowledged.len();
            for (key, lead_id) in acknowledged {
                let known = by_key.get(key.as_str());
                assert_eq!(
                    known,
                    Some(&vec![&**lead_id]),
                    "round {round} of seed {SEED}, {policy}: key {key}"
                );
            }
            // What was sent last may be there or not; sent again it is one lead.
            let key = sent.last().unwrap();
            let lead_id = submit(&sim, &keyed("Lee", key))["data"]["lead_id"].as_str().unwrap().to_owned();
            assert!(by_key.get(key.as_str()).is_none_or(|known| *known == [&*lead_id]), "{key}");
        }
        assert!(by_key.values().all(|ids| ids.len() == 1), "a key, and two leads");
        assert!(known.len() >= before);
        sim.kill();
    }
    println!(
        "{kills} kills of seed {SEED}: {acknowledged_in_all} acknowledged leads, none lost; {torn} torn records"
    );
    assert!(acknowledged_in_all > 10 * kills as usize, "{acknowledged_in_all}");
}
