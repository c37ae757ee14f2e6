//! Every rule: kept by a good conversation, and broken, alone or with what it is said to imply, by a spoilt one.

mod talk;

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{ConductDesk, Format, Judge, MAX_CLIENTS, RULES, Severity, Status};
use crate::journal::{DeliveryState, Outcome, Sent};
use crate::protocol::Skill;
use crate::protocol::error::AapCode::{
    InternalError, RateLimited, SchemaValidationFailed, UnsupportedSkill, VehicleUnavailable,
};
use talk::{Talk, vehicle};

fn good() -> Talk {
    let mut talk = Talk::default();
    talk.opened().page(20).fails(RateLimited, true, &json!({ "retry_after_ms": 500 })).again(600, true);
    talk.replies(&json!({ "total": 90, "limit": 20, "vehicles": [vehicle("V")] }));
    talk.call(Skill::InventoryVehicle, json!({ "vin": "V" })).fails(InternalError, true, &json!({}));
    talk.again(200, true).fails(InternalError, true, &json!({})).again(400, true).replies(&vehicle("V"));
    talk.call(
        Skill::InventorySearch,
        json!({ "filters": { "price_max": -1, "year": 1 }, "privacy": { "anonymous": true } }),
    );
    talk.invalid(&["/filters/price_max", "/filters/year"]);
    talk.call(
        Skill::InventorySearch,
        json!({ "filters": { "make": ["Kia"] }, "privacy": { "anonymous": true } }),
    );
    talk.lead("V").edit_payload(|lead| lead["message"] = "Is 20,000 the last word?".into());
    talk.last().delivered.state = DeliveryState::Reset;
    talk.again(100, true);
    talk
}

#[test]
fn a_good_conversation_keeps_every_rule() {
    let talk = good();
    // Its one fault is there to be mended.
    assert_eq!(talk.with(Status::Broken), BTreeSet::from(["errors.valid_payload"]));
    let not_seen = talk.with(Status::NotSeen);
    // A card is fetched once.
    assert_eq!(not_seen, BTreeSet::from(["discovery.card_revalidated"]));
    // The page whose reply named no limit is not known.
    assert_eq!(talk.with(Status::Unknown), BTreeSet::from(["load.paging"]));
}

/// What spoils a conversation, and the rules that it breaks: the first is the one meant, the others are implied.
fn spoilt() -> Vec<(Vec<&'static str>, Talk)> {
    let mut cases: Vec<(Vec<&'static str>, Talk)> = Vec::new();
    let mut case = |broken: &[&'static str], spoil: &dyn Fn(&mut Talk)| {
        let mut talk = Talk::default();
        spoil(&mut talk);
        cases.push((broken.to_vec(), talk));
    };
    case(&["discovery.card_first"], &|t| _ = t.search());
    case(&["discovery.card_fresh"], &|t| _ = t.card().search().card());
    case(&["discovery.card_revalidated"], &|t| {
        t.card().search().card().last().traffic_ns += 301_000_000_000;
    });
    case(&["discovery.advertised_skills"], &|t| {
        _ = t.opened().search().fails(UnsupportedSkill, false, &json!({}));
    });
    case(&["discovery.advertised_capabilities"], &|t| {
        t.opened().search().edit(|request| request["method"] = "SendStreamingMessage".into());
        t.last().method = Some("SendStreamingMessage".to_owned());
        t.last().skill = None;
    });
    case(&["discovery.http_post"], &|t| _ = t.opened().http("GET /a2a", 405));
    case(&["envelope.content_type"], &|t| _ = t.opened().http("POST /a2a", 415));
    case(&["envelope.json_rpc"], &|t| {
        t.opened().search().last().outcome = Outcome::Rpc(-32_700);
        t.last().request.body = "{".to_owned();
    });
    case(&["envelope.a2a_version"], &|t| t.opened().last().head.version = Sent::Absent);
    case(&["envelope.a2a_extensions"], &|t| t.opened().last().head.extension = Sent::Wrong);
    case(&["envelope.method"], &|t| {
        t.opened().search().edit(|request| request["method"] = "sendMessage".into());
        t.last().method = Some("sendMessage".to_owned());
        t.last().skill = None;
    });
    case(&["envelope.no_0_3_dialect"], &|t| {
        _ = t.opened().edit_message(|message| message["role"] = "user".into());
    });
    case(&["envelope.no_0_3_dialect"], &|t| {
        _ = t.opened().edit_message(|m| m["parts"][0]["kind"] = "data".into());
    });
    case(&["envelope.request_id"], &|t| _ = t.opened().edit(|request| request["id"] = Value::Null));
    case(&["envelope.id_in_flight"], &|t| {
        t.opened().last().delivered.ms = 1500.0;
        t.page(20).edit(|request| request["id"] = 1.into());
    });
    case(&["envelope.message_id"], &|t| {
        _ = t.opened().edit_message(|message| message["messageId"] = "".into());
    });
    case(&["envelope.message_id_fresh"], &|t| {
        t.opened().page(20).edit_message(|message| message["messageId"] = "m-1".into());
    });
    case(&["envelope.accepted_output_modes"], &|t| {
        t.opened().edit(|request| {
            request["params"]["configuration"] = json!({ "acceptedOutputModes": ["text/plain"] });
        });
    });
    case(&["envelope.media_type"], &|t| {
        t.opened().edit_message(|message| message["parts"][0]["mediaType"] = "application/json".into());
    });
    case(&["envelope.role"], &|t| {
        _ = t.opened().edit_message(|message| message["role"] = "ROLE_AGENT".into());
    });
    case(&["envelope.first_part"], &|t| {
        t.opened().edit_message(|message| message["parts"] = json!([{ "text": "a red car" }]));
        t.last().skill = None;
    });
    case(&["envelope.no_task"], &|t| _ = t.opened().edit_message(|message| message["taskId"] = "t-1".into()));
    case(&["conversation.context_carried"], &|t| {
        t.opened().page(20).edit_message(|message| message["contextId"] = "".into());
    });
    case(&["conversation.context_of_other_dealer"], &|t| {
        t.opened().card().last().dealer = "lakeside".to_owned();
        t.search().last().dealer = "lakeside".to_owned();
    });
    case(&["conversation.context_made_up"], &|t| {
        t.opened().page(20).edit_message(|message| message["contextId"] = "mine".into());
        t.last().conversation = Some("mine".to_owned());
    });
    case(&["retry.wait_for_hint"], &|t| {
        t.opened().fails(RateLimited, true, &json!({ "retry_after_ms": 5000 })).again(4000, true);
    });
    case(&["retry.back_off"], &|t| _ = t.opened().fails(InternalError, true, &json!({})).again(20, true));
    case(&["retry.back_off_grows"], &|t| {
        t.opened().fails(InternalError, true, &json!({})).again(900, true).fails(
            InternalError,
            true,
            &json!({}),
        );
        t.again(300, true);
    });
    case(&["retry.not_retryable"], &|t| {
        t.opened().lead("V").fails(VehicleUnavailable, false, &json!({})).search().lead("V");
        let first = t.entries[2].request.clone();
        t.last().request = first;
        t.edit_message(|message| message["messageId"] = "m-x".into());
    });
    case(&["retry.retryable_is_retried"], &|t| {
        _ = t.opened().fails(InternalError, true, &json!({})).page(20);
    });
    case(&["retry.retry_budget"], &|t| {
        t.opened();
        for _ in 0..8 {
            t.fails(InternalError, true, &json!({})).again(300, true);
        }
    });
    case(&["retry.lead_keeps_key"], &|t| {
        t.opened().lead("V").last().delivered.state = DeliveryState::Cut;
        t.again(300, false).edit_payload(|lead| lead["idempotency_key"] = "other".into());
    });
    case(&["retry.lead_retry_unchanged"], &|t| {
        t.opened().lead("V").last().delivered.state = DeliveryState::Cut;
        t.again(300, false).edit_payload(|lead| lead["submitted_at"] = "2026-01-01T12:00:01Z".into());
    });
    case(&["retry.lead_key_fresh"], &|t| {
        t.opened().lead("V").lead("W").edit_payload(|lead| lead["idempotency_key"] = "k-2".into());
    });
    case(&["retry.lead_has_key"], &|t| {
        t.opened().lead("V").edit_payload(|lead| _ = lead.as_object_mut().unwrap().remove("idempotency_key"));
    });
    case(&["errors.valid_payload"], &|t| _ = t.opened().page(20).invalid(&["/filters/year"]));
    case(&["errors.mended_at_once", "errors.valid_payload"], &|t| {
        t.opened()
            .page(20)
            .invalid(&["/a", "/b", "/c"])
            .page(20)
            .edit_payload(|p| p["b"] = 1.into())
            .invalid(&["/b", "/c"]);
    });
    case(&["errors.unavailable_then_search"], &|t| {
        t.opened().lead("V").fails(VehicleUnavailable, false, &json!({}));
        t.lead("V").edit_payload(|lead| lead["message"] = "Please!".into());
    });
    case(&["privacy.anonymous_search"], &|t| {
        t.opened().edit_payload(|search| search["privacy"]["anonymous"] = false.into());
    });
    case(&["privacy.no_personal_data"], &|t| {
        t.opened()
            .edit_payload(|search| search["filters"] = json!({ "query": "a car for anna@example.com" }));
    });
    case(&["privacy.no_personal_data"], &|t| {
        t.opened()
            .lead("V")
            .edit_message(|message| message["metadata"] = json!({ "phone": "+1 555 010 0199" }));
    });
    let lead = |change: &'static dyn Fn(&mut Value)| {
        move |t: &mut Talk| _ = t.opened().lead("V").edit_payload(change)
    };
    case(&["privacy.consent_present"], &lead(&|lead| _ = lead.as_object_mut().unwrap().remove("consent")));
    case(
        &["privacy.consent_granted"],
        &lead(&|lead| lead["consent"]["granted_at"] = "2026-01-01T13:00:00Z".into()),
    );
    case(
        &["privacy.consent_unexpired"],
        &lead(&|lead| lead["consent"]["expires_at"] = "2026-01-01T11:59:30Z".into()),
    );
    case(&["privacy.consent_text"], &lead(&|lead| lead["consent"]["consent_text"] = " ".into()));
    case(&["privacy.consent_scope"], &lead(&|lead| lead["consent"]["scope"] = json!(["marketing"])));
    case(&["privacy.preferred_channel"], &lead(&|lead| lead["customer"]["preferred_contact"] = "sms".into()));
    case(&["privacy.contact_data_allowed"], &lead(&|lead| lead["customer"]["phone"] = "+15550100199".into()));
    case(&["privacy.one_lead_per_intent"], &|t| _ = t.opened().lead("V").lead("V"));
    case(&["listings.unknown_status"], &|t| {
        let mut sold = vehicle("V");
        sold["status"] = "sold".into();
        t.opened().replies(&json!({ "limit": 20, "vehicles": [sold] })).lead("V");
    });
    case(&["listings.stale_rechecked"], &|t| {
        let mut old = vehicle("V");
        old["updated_at"] = "2025-12-30T06:00:00Z".into();
        t.opened().replies(&json!({ "limit": 20, "vehicles": [old] })).lead("V");
    });
    case(&["listings.price_used"], &|t| {
        t.opened().replies(&json!({ "limit": 20, "vehicles": [vehicle("V")] })).lead("V");
        t.edit_payload(|lead| lead["message"] = "I pay the $19,000 that you ask for.".into());
    });
    case(
        &["listings.lead_names_vehicle"],
        &lead(&|lead| lead["vehicle_of_interest"] = json!({ "make": "Kia" })),
    );
    case(&["load.paging"], &|t| _ = t.opened().page(30));
    case(&["load.paging"], &|t| _ = t.opened().page(19));
    case(&["load.page_limit"], &|t| {
        t.opened().edit_payload(|search| search["pagination"]["limit"] = 500.into());
    });
    case(&["load.no_stampede"], &|t| _ = t.card().search().search().search().search().search());
    cases
}

#[test]
fn what_spoils_a_conversation_breaks_its_rule_and_no_other() {
    let mut seen = BTreeSet::new();
    let mut wrong = Vec::new();
    for (expected, talk) in spoilt() {
        seen.insert(expected[0]);
        let (broken, expected) = (talk.with(Status::Broken), expected.into_iter().collect::<BTreeSet<_>>());
        if broken != expected {
            wrong.push(format!("expected {expected:?}, got {broken:?}"));
        }
        for client in talk.judge().report(None).clients {
            for rule in client.rules.iter().filter(|rule| rule.status == Status::Broken) {
                assert!(
                    !rule.findings.is_empty() && !rule.findings[0].entries.is_empty(),
                    "{}",
                    rule.rule.id
                );
            }
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    let all: BTreeSet<_> = RULES.iter().map(|rule| rule.id).collect();
    assert_eq!(seen, all, "a rule without a test");
}

#[test]
fn what_a_fault_made_up_is_not_held_against_anybody() {
    let touched = |talk: &mut Talk, effect: &str| {
        talk.last().faults.push(crate::journal::Fault {
            trigger: "rule".to_owned(),
            effect: effect.to_owned(),
            repro: String::new(),
        });
    };
    let mut talk = Talk::default();
    talk.opened().filtered(1).invalid(&["/filters/year"]);
    touched(&mut talk, "schema_validation_failed(at=\"/filters/year\")");
    talk.filtered(2).fails(UnsupportedSkill, false, &json!({}));
    touched(&mut talk, "unsupported_skill");
    // A lead whose answer nobody can read is sent again, with what names it.
    talk.lead("V");
    touched(&mut talk, "truncated_json");
    talk.again(300, true);
    talk.http("POST /a2a", 415);
    touched(&mut talk, "http_status(status=415)");
    // The contextId that came is not the one that the dealer meant.
    talk.page(20);
    touched(&mut talk, "context_id_missing");
    talk.page(40).edit_message(|message| message["contextId"] = "".into());
    assert_eq!(talk.with(Status::Broken), BTreeSet::new(), "{}", talk.judge().report(None));

    // What a card said that a fault had altered is not the caller's doing.
    let mut talk = Talk::default();
    talk.card();
    touched(&mut talk, "card_claims_streaming");
    talk.search().edit(|request| request["method"] = "SendStreamingMessage".into());
    talk.last().method = Some("SendStreamingMessage".to_owned());
    talk.last().skill = None;
    talk.search().card();
    assert_eq!(talk.with(Status::Broken), BTreeSet::new(), "{}", talk.judge().report(None));
}

#[test]
fn what_several_hands_do_at_once_is_not_taken_for_haste() {
    // One call is refused; another was on its way, and a third is still under way.
    let mut talk = Talk::default();
    talk.opened().filtered(1).last().delivered.ms = 4000.0;
    talk.filtered(2).fails(RateLimited, true, &json!({ "retry_after_ms": 900 }));
    talk.filtered(3).last().traffic_ns -= 980_000_000;
    assert_eq!(talk.with(Status::Broken), BTreeSet::from(["retry.retryable_is_retried"]));
    // By then its reply was read.
    talk.last().traffic_ns += 100_000_000;
    assert!(talk.with(Status::Broken).contains("retry.wait_for_hint"));
}

#[test]
fn pages_that_fail_or_come_at_a_time_leave_no_gap() {
    let mut talk = Talk::default();
    talk.opened().page(20).fails(RateLimited, true, &json!({}));
    let failed = talk.last().clone();
    talk.page(40);
    // The one that failed is fetched again, and then the next one.
    talk.entries.push(crate::journal::Entry {
        seq: 5,
        traffic_ns: failed.traffic_ns + 1_500_000_000,
        ..failed
    });
    talk.replies(&json!({ "limit": 20, "vehicles": [] })).last().outcome = Outcome::Ok;
    talk.page(60);
    assert_eq!(talk.with(Status::Broken), BTreeSet::new(), "{}", talk.judge().report(None));
    // Two at a time.
    let mut talk = Talk::default();
    talk.opened().last().delivered.ms = 5000.0;
    talk.page(40).page(20);
    assert_eq!(talk.with(Status::Broken), BTreeSet::new(), "{}", talk.judge().report(None));
}

#[test]
fn several_customers_of_a_client_are_told_apart_by_their_conversations() {
    let of = |talk: &mut Talk, customer: &str| {
        talk.last().conversation = Some(customer.to_owned());
        talk.edit_message(|message| message["contextId"] = customer.into());
    };
    let mut talk = Talk::default();
    talk.opened();
    for (place, customer) in ["anna", "ben", "cleo"].into_iter().enumerate() {
        // Each opens a conversation of its own.
        talk.search().edit_message(|message| message["contextId"] = "".into());
        talk.last().conversation = Some(customer.to_owned());
        // Each at another place of the same list, after the same refusal, with faults of their own.
        of(talk.page(20), customer);
        of(
            talk.call(Skill::InventoryVehicle, json!({ "vin": "V" })).fails(
                VehicleUnavailable,
                false,
                &json!({}),
            ),
            customer,
        );
        let faults = [&["/a", "/b"][..], &["/b"], &["/b", "/c"]][place];
        talk.filtered(place as u64).invalid(faults);
        of(&mut talk, customer);
    }
    assert_eq!(
        talk.with(Status::Broken),
        BTreeSet::from(["errors.valid_payload"]),
        "{}",
        talk.judge().report(None)
    );
}

#[test]
fn a_contextid_made_up_for_each_attempt_hides_no_retry() {
    let mut talk = Talk::default();
    talk.card();
    for attempt in 0..10 {
        if attempt == 0 {
            talk.call(Skill::InventoryVehicle, json!({ "vin": "V" }));
        } else {
            talk.again(20, false);
        }
        let own = format!("c-{attempt}");
        talk.edit_message(|message| message["contextId"] = own.clone().into());
        talk.last().conversation = Some(own);
        talk.fails(InternalError, true, &json!({}));
    }
    let broken = talk.with(Status::Broken);
    assert!(broken.contains("retry.back_off") && broken.contains("retry.retry_budget"), "{broken:?}");
    // What failed before there was a conversation, and is sent again in the one that another call has opened meanwhile.
    let mut talk = Talk::default();
    talk.card().filtered(1).fails(InternalError, true, &json!({})).last().conversation = None;
    talk.search().filtered(1);
    assert_eq!(talk.with(Status::Broken), BTreeSet::new(), "{}", talk.judge().report(None));
}

#[test]
fn a_call_without_an_id_breaks_the_rule_of_ids() {
    let mut talk = Talk::default();
    talk.opened().filtered(1).edit(|request| _ = request.as_object_mut().unwrap().remove("id"));
    talk.last().outcome = Outcome::Rpc(-32_600);
    let broken = talk.with(Status::Broken);
    assert!(broken.contains("envelope.request_id") && !broken.contains("envelope.json_rpc"), "{broken:?}");
}

#[test]
fn a_gateway_that_answers_404_has_not_said_that_it_is_final() {
    let mut talk = Talk::default();
    talk.opened().filtered(1).last().outcome = Outcome::Http(404);
    talk.again(1_000, false);
    assert!(!talk.with(Status::Broken).contains("retry.not_retryable"));
}

#[test]
fn a_payload_that_was_refused_with_a_wrong_media_type_is_known_by_its_type() {
    let mut talk = Talk::default();
    talk.opened().page(20).edit_message(|message| message["parts"][0]["mediaType"] = "text/plain".into());
    talk.last().skill = None;
    talk.last().outcome = Outcome::Rpc(-32_005);
    assert_eq!(talk.with(Status::Broken), BTreeSet::from(["envelope.media_type"]));
}

#[test]
fn what_is_missing_is_told_apart_by_its_name() {
    let missing = |names: &[&str]| {
        let errors = names.iter().map(|name| {
            json!({ "instanceLocation": "", "keyword": "required",
                "error": format!("must have required property '{name}'") })
        });
        json!({ "errors": errors.collect::<Vec<_>>() })
    };
    let mut talk = Talk::default();
    talk.opened().filtered(1).fails(SchemaValidationFailed, false, &missing(&["a", "b"]));
    talk.filtered(2).fails(SchemaValidationFailed, false, &missing(&["b"]));
    let broken = talk.with(Status::Broken);
    assert_eq!(broken, BTreeSet::from(["errors.mended_at_once", "errors.valid_payload"]));
}

#[test]
fn what_was_dropped_makes_rules_unknown_never_kept() {
    let talk = good();
    let mut judge = Judge::default();
    judge.miss(3);
    talk.entries.iter().skip(1).for_each(|entry| judge.hear(entry));
    let report = judge.report(None);
    assert_eq!(report.missed, 3);
    for rule in &report.clients[0].rules {
        assert!(!matches!(rule.status, Status::Kept | Status::NotSeen), "{}", rule.rule.id);
    }
    // The card may have been fetched in what was dropped.
    assert!(
        report.clients[0].rules.iter().all(|rule| rule.rule.id != "discovery.card_first" || rule.broken == 0)
    );

    // In a test that begins later what is decided by one request is known again.
    judge.acquit();
    let mut entry = talk.entries[1].clone();
    entry.traffic_ns += 1 << 50;
    judge.hear(&entry);
    let report = judge.report(None);
    let status = |id| report.clients[0].rules.iter().find(|rule| rule.rule.id == id).unwrap().status;
    assert_eq!((status("envelope.role"), status("retry.wait_for_hint")), (Status::Kept, Status::Unknown));
}

#[test]
fn memory_is_bounded_and_says_so() {
    let mut judge = Judge::default();
    let mut talk = Talk::default();
    talk.search();
    for n in 0..MAX_CLIENTS + 3 {
        let mut entry = talk.entries[0].clone();
        entry.client = format!("agent-{n:04}");
        judge.hear(&entry);
    }
    let report = judge.report(None);
    assert_eq!((report.clients.len(), report.unjudged), (MAX_CLIENTS, 3));
    assert_eq!(judge.report(Some("agent-0001")).clients.len(), 1);

    let mut talk = Talk::default();
    talk.card();
    (0..1100).for_each(|n| _ = talk.page(n * 20));
    let report = talk.judge().report(None);
    assert!(report.clients[0].forgotten > 0);
    let fresh =
        report.clients[0].rules.iter().find(|rule| rule.rule.id == "envelope.message_id_fresh").unwrap();
    assert_eq!((fresh.status, fresh.findings.len()), (Status::Unknown, 0));
}

#[test]
fn reports_have_four_forms_and_are_safe_in_each() {
    let mut talk = Talk::default();
    talk.search().last().client = "<b>&\u{1b}[31m".to_owned();
    let report = talk.judge().report(None);
    assert!(
        report.breaks(Severity::Warning)
            && report.breaks(Severity::Advice)
            && !report.breaks(Severity::Violation)
    );
    let text = report.write(Format::Text);
    assert!(
        text.contains("WARNING discovery.card_first")
            && text.contains("Do:  Fetch")
            && text.contains("journal entry 1 (")
    );
    assert!(!text.contains('\u{1b}'), "{text}");
    for format in [Format::Html, Format::Junit] {
        let text = report.write(format);
        assert!(text.contains("&lt;b&gt;&amp;\u{fffd}") && text.contains("card_first"), "{text}");
    }
    let junit = report.write(Format::Junit);
    assert!(junit.contains("<failure type=\"warning\"") && junit.contains("failures=\"1\""), "{junit}");
    let schema = include_str!("../../../../data/schemas/conduct.schema.json");
    let schema: Value = serde_json::from_str(schema).unwrap();
    let validator = jsonschema::validator_for(&schema).unwrap();
    for report in [report, good().judge().report(None)] {
        let value: Value = serde_json::from_str(&report.write(Format::Json)).unwrap();
        let faults: Vec<_> = validator.iter_errors(&value).map(|error| error.to_string()).collect();
        assert!(faults.is_empty(), "{faults:?}");
    }
    assert!(!validator.is_valid(&json!({ "calls": 1 })));
}

#[test]
fn a_test_has_its_own_verdicts_and_knows_the_past() {
    use crate::journal::{Journal, Limits};
    let journal = Journal::new(Limits::default(), 1);
    let desk = ConductDesk::default();
    assert!(desk.end(&journal, "t").is_err() && desk.begin(&journal, "", None).is_err());
    desk.begin(&journal, "t", Some("agent")).unwrap();
    assert!(desk.begin(&journal, "t", None).is_err());
    let report = desk.end(&journal, "t").unwrap();
    assert_eq!((report.test.as_deref(), report.calls), (Some("t"), 0));
    desk.begin(&journal, "t", None).unwrap();
    assert!(
        desk.report(&journal, Some("t"), None).is_ok() && desk.report(&journal, Some("u"), None).is_err()
    );
}
