//! The journal as its readers and writers meet it: bounds, counts, order, verification, and the published schemas.

#![allow(clippy::unwrap_used, clippy::panic)]

use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::sync::Arc;

use dealer_sim::journal::{
    Body, Client, Delivery, DeliveryState, Exchange, FaultMark, Filter, Finding, Head, Journal, Limits,
    MAX_TEXT, Outcome, Query, Subscriber, Verdict, verify,
};
use dealer_sim::protocol::error::AapCode;
use dealer_sim::protocol::{Binding, Skill};
use jiff::Timestamp;
use proptest::prelude::*;
use serde_json::{Value, json};

fn exchange() -> Exchange<'static> {
    Exchange {
        at: "2026-01-01T12:00:00.1234567Z".parse::<Timestamp>().unwrap(),
        traffic_ns: 5,
        dealer: "metro",
        client: Client::Origin { address: Ipv4Addr::LOCALHOST.into(), program: b"agent/1" },
        connection: 2,
        ordinal: 1,
        head: Head::default(),
        binding: Some(Binding::A2a),
        skill: Some(Skill::InventorySearch),
        method: "SendMessage",
        conversation: "ctx_1",
        message_id: "m-1",
        key: Some(0xabc),
        attempt: 1,
        request: Body::whole(b"{}"),
        outcome: Outcome::Ok,
        http_status: 200,
        reply: Body::whole(b"{\"result\":{}}"),
        faults: &[],
        delivered: Delivery { bytes: 150, state: DeliveryState::Complete, took_ns: 1_234_567 },
    }
}

fn call(payload: &Value) -> Vec<u8> {
    json!({
        "jsonrpc": "2.0", "id": 1, "method": "SendMessage",
        "params": { "message": { "messageId": "m", "role": "ROLE_USER", "parts": [{ "data": payload }] } },
    })
    .to_string()
    .into_bytes()
}

fn limits(entries: u64, bytes: usize) -> Limits {
    Limits { entries, bytes, ..Limits::default() }
}

fn numbers(journal: &Journal) -> Vec<u64> {
    journal.all(0).entries.iter().map(|entry| entry.seq).collect()
}

fn schema(name: &str) -> jsonschema::Validator {
    let path = format!("{}/../data/schemas/{name}.schema.json", env!("CARGO_MANIFEST_DIR"));
    let schema: Value = serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    jsonschema::options().should_validate_formats(true).build(&schema).unwrap()
}

fn holds(name: &str, value: &Value) {
    let faults: Vec<_> = schema(name).iter_errors(value).map(|error| error.to_string()).collect();
    assert!(faults.is_empty(), "{name}: {faults:?} in {value}");
}

#[test]
fn an_entry_reads_as_it_was_recorded_and_in_a_fixed_order() {
    let journal = Journal::new(Limits::default(), 1);
    let mark = FaultMark { trigger: "throttle", effect: "rate_limited(retry_after=2s)", repro: "seed=42" };
    let seq = journal.shard(0).record(&Exchange { faults: &[mark], ..exchange() });
    assert_eq!(seq, 1);
    let page = journal.query(&Filter::default());
    assert_eq!(
        serde_json::to_string(&page).unwrap(),
        r#"{"entries":[{"seq":1,"at":"2026-01-01T12:00:00.123Z","traffic_ns":5,"dealer":"metro","client":"127.0.0.1 agent/1","connection":2,"ordinal":1,"binding":"a2a","skill":"inventory.search","method":"SendMessage","conversation":"ctx_1","message_id":"m-1","key":"0000000000000abc","attempt":1,"request":{"bytes":2,"body":"{}"},"outcome":"ok","http_status":200,"reply":{"bytes":13,"body":"{\"result\":{}}"},"faults":[{"trigger":"throttle","effect":"rate_limited(retry_after=2s)","repro":"seed=42"}],"delivered":{"bytes":150,"state":"complete","ms":1.234}}],"next":1,"dropped":0,"complete_after":0}"#
    );
}

#[test]
fn pages_and_entries_are_as_their_schema_says() {
    let journal = Journal::new(Limits { reply_bytes: 8, ..Limits::default() }, 2);
    let bare = Exchange {
        client: Client::Credential(7),
        binding: None,
        skill: None,
        method: "",
        conversation: "",
        message_id: "",
        request: Body { bytes: 5_000_000, body: b"" },
        outcome: Outcome::Http(413),
        http_status: 0,
        reply: Body::whole(b"\xff\xfe and so on"),
        delivered: Delivery { bytes: 0, state: DeliveryState::ClientGone, took_ns: 0 },
        ..exchange()
    };
    journal.shard(0).record(&exchange());
    journal.shard(1).record(&bare);
    for (state, outcome) in [
        (DeliveryState::Cut, Outcome::Aap(AapCode::InternalError)),
        (DeliveryState::Reset, Outcome::Rpc(-32_602)),
        (DeliveryState::Silent, Outcome::Rpc(-32_009)),
    ] {
        let delivered = Delivery { bytes: 1, state, took_ns: u64::MAX };
        let mark = FaultMark { trigger: "header", effect: "reset", repro: "seed=1" };
        journal.shard(1).record(&Exchange {
            outcome,
            delivered,
            faults: &[mark],
            client: Client::Named(b"tester"),
            ..exchange()
        });
    }
    let page = serde_json::to_value(journal.query(&Filter::default())).unwrap();
    holds("journal-entry", &page);
    let entries = page["entries"].as_array().unwrap();
    assert_eq!(entries.len(), 5);
    assert_eq!(entries[1]["client"], "credential:0000000000000007");
    assert_eq!(
        entries[1]["reply"],
        json!({ "bytes": 12, "body": "\u{fffd}\u{fffd} and s", "truncated": true, "lossy": true })
    );
    entries.iter().for_each(|entry| holds("journal-entry", entry));
    let mut wrong = entries[0].clone();
    wrong["delivered"]["state"] = "lost".into();
    assert!(!schema("journal-entry").is_valid(&wrong));
}

#[test]
fn the_newest_entries_are_kept_and_the_others_counted() {
    let journal = Journal::new(limits(3, 1 << 20), 2);
    for n in 0..7 {
        journal.shard(n % 2).record(&exchange());
    }
    assert_eq!(numbers(&journal), [5, 6, 7]);
    let page = journal.all(0);
    assert_eq!((page.dropped, page.complete_after, page.next), (4, 4, 7));
    // A shard that has gone quiet keeps nothing that is outside of the window.
    (0..3).for_each(|_| _ = journal.shard(0).record(&exchange()));
    assert_eq!(numbers(&journal), [8, 9, 10]);
    assert_eq!(journal.totals().dropped, 7);
}

#[test]
fn a_journal_of_no_size_keeps_nothing_and_says_so() {
    for limits in [limits(0, 1 << 20), limits(10, 0), limits(10, 20)] {
        let journal = Journal::new(limits, 2);
        journal.shard(0).record(&exchange());
        journal.shard(1).record(&exchange());
        let page = journal.all(0);
        assert_eq!((page.entries.len(), page.dropped, page.complete_after), (0, 2, 2));
    }
}

#[test]
fn an_entry_too_large_goes_before_older_ones_and_is_not_forgotten() {
    let journal = Journal::new(limits(2, 400), 1);
    let shard = journal.shard(0);
    shard.record(&exchange());
    shard.record(&Exchange { reply: Body::whole(&[b'a'; 400]), ..exchange() });
    assert_eq!((numbers(&journal), journal.all(0).complete_after), (vec![1], 2));
    shard.record(&exchange());
    // Now the first has left the window; the second is still the newest that is missing.
    assert_eq!((numbers(&journal), journal.all(0).complete_after), (vec![3], 2));
}

#[test]
fn what_was_cleared_is_neither_kept_nor_dropped() {
    let journal = Journal::new(limits(2, 1 << 20), 2);
    (0..5).for_each(|n| _ = journal.shard(n).record(&exchange()));
    journal.clear();
    let page = journal.all(0);
    assert_eq!((page.entries.len(), page.dropped, page.complete_after, page.next), (0, 0, 0, 5));
    journal.shard(0).record(&exchange());
    assert_eq!(numbers(&journal), [6]);
    assert_eq!(journal.totals().recorded, 1);
}

#[test]
fn a_filter_admits_what_it_names_and_pages_go_on_where_they_ended() {
    let journal = Journal::new(Limits::default(), 3);
    let mark = FaultMark { trigger: "throttle", effect: "rate_limited(retry_after=2s)", repro: "r" };
    for n in 0..300u64 {
        let conversation = if n % 2 == 0 { "even" } else { "odd" };
        let faults: &[_] = if n % 10 == 0 { &[mark] } else { &[] };
        let skill = Some(Skill::ALL[n as usize % 5]);
        journal.shard(n as usize).record(&Exchange { conversation, faults, skill, ..exchange() });
    }
    let count = |query: &str| journal.query(&Filter::parse(query).unwrap()).entries.len();
    assert_eq!(count("limit=1000"), 300);
    assert_eq!(count(""), 100);
    assert_eq!(count("limit=1000&conversation=odd"), 150);
    assert_eq!(count("limit=1000&fault=throttle"), 30);
    assert_eq!(count("limit=1000&fault=rate_limited&conversation=odd"), 0);
    assert_eq!(count("limit=1000&skill=lead.submit"), 60);
    assert_eq!(count("limit=1000&client=127.0.0.1+agent%2F1&after=290"), 10);
    assert_eq!(count("client=127.0.0.1"), 0);
    for (query, step) in [("conversation=even&limit=7", 2), ("limit=7", 1)] {
        let mut filter = Filter::parse(query).unwrap();
        let mut seen = Vec::new();
        loop {
            let page = journal.query(&filter);
            if page.entries.is_empty() {
                assert_eq!(page.next, 300);
                break;
            }
            seen.extend(page.entries.iter().map(|entry| entry.seq));
            filter.after = page.next;
        }
        assert_eq!(seen, (1..=300).step_by(step).collect::<Vec<_>>());
    }
    // A number from before a restart heals.
    let page = journal.query(&Filter { after: 5000, ..Filter::default() });
    assert_eq!((page.entries.len(), page.next), (0, 300));
}

#[test]
fn long_texts_are_cut_and_still_found() {
    let journal = Journal::new(Limits::default(), 1);
    let long = "é".repeat(2000);
    journal.shard(0).record(&Exchange { conversation: &long, message_id: &long, ..exchange() });
    let entry = &journal.all(0).entries[0];
    assert!(entry.conversation.as_ref().unwrap().len() <= MAX_TEXT + 3);
    let filter = Filter { conversation: Some(long.clone()), ..Filter::default() };
    assert_eq!(journal.query(&filter).entries.len(), 1);
    let verdict = ask(&journal, &json!({ "match": { "conversation": long, "message_id": long } }));
    assert_eq!(verdict.verdict, Finding::Pass, "{verdict:?}");
}

fn ask(journal: &Journal, question: &Value) -> Verdict {
    holds("verify", question);
    let query = Query::parse(question.to_string().as_bytes()).unwrap();
    let verdict = verify(&journal.all(query.after), &query);
    holds("verify", &serde_json::to_value(&verdict).unwrap());
    verdict
}

/// Three searches and a refused lead; entry 3 was asked before entry 2.
fn story(limits: Limits) -> Arc<Journal> {
    let journal = Journal::new(limits, 2);
    let search =
        |make: &str| call(&json!({ "type": "inventory.search.request", "filters": { "make": [make] } }));
    let lead = call(&json!({ "type": "lead.submit.request", "customer": { "first_name": "Anna" } }));
    let (honda, ford) = (search("Honda"), search("Ford"));
    for (traffic_ns, message_id, body) in [(10, "a", &honda), (30, "b", &ford), (20, "c", &honda)] {
        let request = Body::whole(body);
        journal.shard(traffic_ns as usize / 10).record(&Exchange {
            traffic_ns,
            message_id,
            request,
            ..exchange()
        });
    }
    let mark = FaultMark { trigger: "throttle", effect: "rate_limited(retry_after=2s)", repro: "r" };
    journal.shard(0).record(&Exchange {
        traffic_ns: 40,
        message_id: "d",
        skill: Some(Skill::LeadSubmit),
        outcome: Outcome::Aap(AapCode::RateLimited),
        faults: &[mark],
        request: Body::whole(&lead),
        ..exchange()
    });
    journal
}

#[test]
fn counts_are_verified() {
    let journal = story(Limits::default());
    let of = |question: Value| ask(&journal, &question).verdict;
    let honda = json!({ "payload": { "filters": { "make": ["Honda"] } } });
    assert_eq!(of(json!({ "match": honda, "count": 2 })), Finding::Pass);
    assert_eq!(of(json!({ "match": honda, "count": { "max": 1 } })), Finding::Fail);
    assert_eq!(of(json!({ "match": honda, "count": 1, "after": 1 })), Finding::Pass);
    assert_eq!(
        of(json!({ "match": { "fault": "rate_limited", "outcome": "aap.RATE_LIMITED" } })),
        Finding::Pass
    );
    assert_eq!(of(json!({ "match": {}, "count": 4 })), Finding::Pass);
    assert_eq!(of(json!({ "match": { "dealer": "other" }, "count": 0 })), Finding::Pass);
    let verdict = ask(&journal, &json!({ "match": honda, "count": 2 }));
    assert_eq!(verdict.entries, [1, 3]);
}

#[test]
fn a_failure_names_the_nearest_misses() {
    let journal = story(Limits::default());
    let question = json!({ "match": {
        "skill": "lead.submit", "outcome": "ok", "method": "SendMessage",
        "payload": { "customer": { "first_name": "Anna", "phone": "+1" } },
    } });
    let verdict = ask(&journal, &question);
    assert_eq!((verdict.verdict, verdict.found), (Finding::Fail, 0));
    assert_eq!(verdict.reason, "0 found, 1 or more wanted");
    let nearest = serde_json::to_value(&verdict.nearest[0]).unwrap();
    assert_eq!(
        nearest,
        json!({ "seq": 4, "matched": ["method", "skill"], "differs": [
            { "member": "outcome", "wanted": "ok", "got": "aap.RATE_LIMITED" },
            { "member": "payload/customer/phone", "wanted": "+1", "got": null },
        ] })
    );
    // The searches come after it: they match in as many members, but differ in more places.
    assert_eq!(verdict.nearest.len(), 4);
    // Too many is no near miss.
    let verdict = ask(&journal, &json!({ "match": {}, "count": 1 }));
    assert_eq!((verdict.verdict, verdict.found, verdict.nearest.len()), (Finding::Fail, 4, 0));
}

#[test]
fn sequences_are_verified_in_the_order_of_arrival() {
    let journal = story(Limits::default());
    let ids = |ids: &[&str]| {
        let steps: Vec<_> = ids.iter().map(|id| json!({ "message_id": id })).collect();
        ask(&journal, &json!({ "sequence": steps }))
    };
    assert_eq!(ids(&["a", "c", "b", "d"]).verdict, Finding::Pass);
    assert_eq!(ids(&["a", "d"]).entries, [1, 4]);
    let verdict = ids(&["a", "b", "c"]);
    assert_eq!((verdict.verdict, verdict.found), (Finding::Fail, 2));
    assert_eq!(verdict.reason, "/sequence/2 was not found after entry 2");
    assert_eq!(verdict.nearest[0].seq, 4);
    assert_eq!(ids(&["a", "a"]).verdict, Finding::Fail);
}

#[test]
fn what_is_missing_makes_the_answer_unknown_unless_it_cannot_matter() {
    let journal = story(limits(2, 1 << 20));
    let of = |question: Value| ask(&journal, &question).verdict;
    // Entries 1 and 2 are gone.
    assert_eq!(of(json!({ "match": { "message_id": "a" } })), Finding::Unknown);
    assert_eq!(of(json!({ "match": { "message_id": "a" }, "count": 0 })), Finding::Unknown);
    assert_eq!(of(json!({ "match": { "message_id": "d" } })), Finding::Pass);
    assert_eq!(of(json!({ "match": { "message_id": "d" }, "count": 1 })), Finding::Unknown);
    assert_eq!(of(json!({ "match": {}, "count": { "max": 1 } })), Finding::Fail);
    assert_eq!(of(json!({ "match": { "message_id": "a" }, "count": 0, "after": 1 })), Finding::Unknown);
    assert_eq!(of(json!({ "match": { "message_id": "a" }, "count": 0, "after": 2 })), Finding::Pass);
    assert_eq!(of(json!({ "sequence": [{ "message_id": "a" }, { "message_id": "d" }] })), Finding::Unknown);
    assert_eq!(of(json!({ "sequence": [{ "message_id": "c" }, { "message_id": "d" }] })), Finding::Pass);
    assert_eq!(ask(&journal, &json!({ "match": {} })).dropped, 2);
    // A payload that was cut may have said anything; another member still tells.
    let journal = story(Limits { request_bytes: 40, ..Limits::default() });
    let of = |question: Value| ask(&journal, &question).verdict;
    let honda = json!({ "filters": { "make": ["Honda"] } });
    assert_eq!(of(json!({ "match": { "payload": honda } })), Finding::Unknown);
    assert_eq!(of(json!({ "match": { "payload": honda, "message_id": "z" } })), Finding::Fail);
    assert_eq!(of(json!({ "match": { "payload": honda }, "count": { "max": 4 } })), Finding::Pass);
    assert_eq!(of(json!({ "sequence": [{ "payload": honda }] })), Finding::Unknown);
}

#[test]
fn every_fault_of_a_question_is_named() {
    let faults = |question: &str| Query::parse(question.as_bytes()).unwrap_err().faults;
    let found = faults(
        r#"{"match":{"skil":1,"skill":"leads","outcome":"bad","payload":3,"client":""},"count":{"min":3,"max":1,"x":0},"after":-1,"z":0}"#,
    );
    let pointers: BTreeSet<_> = found.iter().map(|fault| fault.split(':').next().unwrap()).collect();
    let wanted = [
        "/after",
        "/count",
        "/count/x",
        "/match/client",
        "/match/outcome",
        "/match/payload",
        "/match/skil",
        "/match/skill",
        "/z",
    ];
    assert_eq!(pointers, BTreeSet::from(wanted));
    assert_eq!(faults(r#"{"sequence":[{},{"color":"red"}],"count":1}"#).len(), 2);
    for bad in [
        "",
        "[]",
        "{}",
        r#"{"match":{},"sequence":[]}"#,
        r#"{"sequence":[]}"#,
        r#"{"match":{},"count":-1}"#,
        r#"{"match":[]}"#,
    ] {
        assert_eq!(faults(bad).len(), 1, "{bad}: {:?}", faults(bad));
        if let Ok(question) = serde_json::from_str::<Value>(bad) {
            assert!(!schema("verify").is_valid(&question), "{bad}");
        }
    }
}

#[test]
fn a_subscriber_sees_every_entry_or_is_told_how_many_it_missed() {
    let journal = Journal::new(limits(100, 1 << 20), 2);
    let mut subscriber = Subscriber::new(Filter::default());
    assert!(!subscriber.is_behind(&journal));
    assert!(subscriber.poll(&journal).is_empty());
    (0..40).for_each(|n| _ = journal.shard(n).record(&exchange()));
    assert!(subscriber.is_behind(&journal));
    assert_eq!(subscriber.poll(&journal).len(), 40);
    // Faster than it reads: 100 are kept of 250.
    (0..250).for_each(|n| _ = journal.shard(n).record(&exchange()));
    let mut seen = 0;
    while subscriber.is_behind(&journal) {
        seen += subscriber.poll(&journal).len();
    }
    assert_eq!((seen, subscriber.missed()), (100, 150));
    (0..10).for_each(|n| _ = journal.shard(n).record(&exchange()));
    journal.clear();
    assert!(subscriber.poll(&journal).is_empty());
    assert_eq!(subscriber.missed(), 150);
}

#[test]
fn events_carry_number_and_entry_and_the_count_of_the_missed() {
    let journal = Journal::new(limits(1, 1 << 20), 1);
    journal.shard(0).record(&exchange());
    journal.shard(0).record(&Exchange { reply: Body::whole(b"two\nlines"), ..exchange() });
    let mut out = Vec::new();
    let mut subscriber = Subscriber::new(Filter::default());
    subscriber.poll_events(&journal, &mut out);
    let text = String::from_utf8(out).unwrap();
    let lines: Vec<_> = text.lines().collect();
    assert_eq!(lines[..4], ["event: missed", "data: {\"missed\":1}", "", "id: 2"]);
    holds("journal-entry", &serde_json::from_str(lines[4].strip_prefix("data: ").unwrap()).unwrap());
    assert_eq!(lines[5..], [""]);
    let mut out = Vec::new();
    subscriber.clone().resume("2").poll_events(&journal, &mut out);
    assert!(out.is_empty());
    subscriber.resume(" 1 ").poll_events(&journal, &mut out);
    assert!(out.starts_with(b"id: 2\n"));
}

#[test]
fn writers_at_once_lose_nothing_but_what_is_counted() {
    const WRITERS: u64 = 4;
    const EACH: u64 = 2_000;
    for (limits, shards) in
        [(limits(100_000, 64 << 20), 4), (limits(500, 64 << 20), 3), (limits(100_000, 100_000), 4)]
    {
        let journal = Journal::new(limits, shards);
        let mut subscriber = Subscriber::new(Filter::default());
        let seen = std::thread::scope(|scope| {
            let writers: Vec<_> = (0..WRITERS)
                .map(|writer| {
                    let shard = journal.shard(writer as usize);
                    scope.spawn(move || {
                        for n in 0..EACH {
                            shard.record(&Exchange { connection: writer, ordinal: n, ..exchange() });
                        }
                    })
                })
                .collect();
            let mut seen = Vec::new();
            while !writers.iter().all(std::thread::ScopedJoinHandle::is_finished)
                || subscriber.is_behind(&journal)
            {
                seen.extend(subscriber.poll(&journal).iter().map(|entry| entry.seq));
            }
            seen
        });
        let totals = journal.totals();
        assert_eq!(totals.recorded, WRITERS * EACH);
        let page = journal.all(0);
        assert_eq!((page.entries.len() as u64, page.dropped), (totals.kept, totals.dropped));
        let calls: BTreeSet<_> = page.entries.iter().map(|entry| (entry.connection, entry.ordinal)).collect();
        assert_eq!(calls.len() as u64, totals.kept);
        if limits.bytes > 1 << 20 {
            assert_eq!(totals.kept, limits.entries.min(WRITERS * EACH));
        }
        assert!(seen.is_sorted_by(|a, b| a < b));
        assert_eq!(seen.len() as u64 + subscriber.missed(), WRITERS * EACH);
    }
}

#[derive(Debug, Clone)]
enum Step {
    Record { shard: usize, request: usize, reply: usize, faults: usize },
    Clear,
}

fn step() -> impl Strategy<Value = Step> {
    let record = (0usize..4, 0usize..600, 0usize..600, 0usize..3)
        .prop_map(|(shard, request, reply, faults)| Step::Record { shard, request, reply, faults });
    prop_oneof![30 => record, 1 => Just(Step::Clear)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn bounds_hold_and_what_is_not_kept_is_counted(
        entries in 0u64..40,
        bytes in 0usize..6000,
        (request_bytes, reply_bytes) in (0usize..500, 0usize..500),
        shards in 1usize..4,
        steps in prop::collection::vec(step(), 0..120),
    ) {
        let limits = Limits { entries, bytes, request_bytes, reply_bytes };
        let journal = Journal::new(limits, shards);
        let mark = FaultMark { trigger: "t", effect: "e", repro: "r" };
        // What each entry should say, by its number.
        let mut said: Vec<(u64, Vec<u8>, Vec<u8>, usize)> = Vec::new();
        for step in steps {
            match step {
                Step::Record { shard, request, reply, faults } => {
                    let asked = vec![b'a' + (said.len() % 26) as u8; request];
                    let told = vec![b'A' + (said.len() % 26) as u8; reply];
                    let marks = vec![mark; faults];
                    let seq = journal.shard(shard).record(&Exchange {
                        request: Body::whole(&asked),
                        reply: Body::whole(&told),
                        faults: &marks,
                        ..exchange()
                    });
                    said.push((seq, asked, told, faults));
                }
                Step::Clear => {
                    journal.clear();
                    said.clear();
                }
            }
            let totals = journal.totals();
            prop_assert_eq!(totals.recorded, said.len() as u64);
            prop_assert_eq!(totals.kept + totals.dropped, totals.recorded);
            prop_assert!(totals.kept <= entries);
            prop_assert!(totals.bytes <= bytes as u64);
        }
        let page = journal.all(0);
        prop_assert_eq!(page.dropped, journal.totals().dropped);
        prop_assert_eq!(page.entries.len() as u64, journal.totals().kept);
        prop_assert!(page.entries.is_sorted_by(|a, b| a.seq < b.seq));
        for entry in &page.entries {
            let (_, asked, told, faults) = said.iter().find(|(seq, ..)| *seq == entry.seq).unwrap();
            for (body, whole, most) in [(&entry.request, asked, request_bytes), (&entry.reply, told, reply_bytes)] {
                prop_assert_eq!(body.bytes, whole.len() as u64);
                prop_assert_eq!(body.body.as_bytes(), &whole[..whole.len().min(most)]);
                prop_assert_eq!(body.truncated, whole.len() > most);
            }
            prop_assert_eq!(entry.faults.len(), *faults);
        }
        // Everything above this number that was recorded is there.
        let (complete, kept) = (page.complete_after, page.entries.iter().map(|entry| entry.seq));
        let expected: Vec<_> = said.iter().map(|(seq, ..)| *seq).filter(|seq| *seq > complete).collect();
        prop_assert_eq!(kept.filter(|seq| *seq > complete).collect::<Vec<_>>(), expected);
    }
}
