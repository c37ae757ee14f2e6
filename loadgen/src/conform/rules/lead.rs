//! Leads: consent, idempotency, appointments (AAP d.7, f).

use serde_json::Value;

use super::super::evidence::{Evidence, Exchange, told};
use super::super::rule::{Applies, Finding, Refusal, Rule};
use super::{INVALID, SERVED, VALIDATION, law, must, only, refused, served_or, should};
use dealer_sim::protocol::Skill;
use dealer_sim::protocol::error::AapCode;

const CONSENT: &[Refusal] = &[Refusal::Aap(&[AapCode::InvalidConsent])];
const CHANNEL: &[Refusal] = &[Refusal::Aap(&[AapCode::ContactConsentRequired])];
/// A consent that is wrong in form may come under either (AAP j 11).
const FORM: &[Refusal] = &[Refusal::Aap(&[AapCode::InvalidConsent, AapCode::SchemaValidationFailed])];
const WEAR: &[AapCode] = &[AapCode::InvalidCondition, AapCode::SchemaValidationFailed];

pub(super) const RULES: &[Rule] = &[
    must(
        "lead.received",
        "a lead gets a receipt: lead_id and received, or duplicate",
        "AAP d.7",
        law(received),
    ),
    must(
        "lead.not-rejected",
        "what cannot be fulfilled is an error, not a result",
        "AAP d.7, j 37 (seed 000)",
        law(|seen| receipts(seen, |_, data| data.get("status").and_then(Value::as_str) != Some("rejected"))),
    ),
    must(
        "lead.id",
        "a receipt's lead_id is not empty",
        "AAP d.7",
        law(|seen| {
            receipts(seen, |_, data| {
                data.get("lead_id").and_then(Value::as_str).is_some_and(|id| !id.is_empty())
            })
        }),
    ),
    must(
        "lead.appointment-when-asked",
        "an appointment is in the receipt if and only if the lead asks for one",
        "AAP d.7",
        law(|seen| {
            receipts(seen, |exchange, data| {
                data.get("appointment").is_some() == exchange.payload.get("appointment").is_some()
            })
        }),
    ),
    must(
        "lead.confirmed-at",
        "confirmed comes with confirmed_at, and nothing else does",
        "AAP d.7",
        law(|seen| receipts(seen, |_, data| only_with(data, "confirmed", "confirmed_at"))),
    ),
    must(
        "lead.proposed-times",
        "proposed comes with proposed_times, and nothing else does",
        "AAP d.7",
        law(|seen| receipts(seen, |_, data| only_with(data, "proposed", "proposed_times"))),
    ),
    should(
        "lead.appointment-phone",
        "a receipt with an appointment has the dealer's phone",
        "AAP f",
        law(|seen| {
            receipts(seen, |_, data| {
                data.get("appointment").is_none() || data.pointer("/dealer/phone").is_some()
            })
        }),
    ),
    must("lead.same-key", "the same key with the same lead gets the same lead_id", "AAP f", law(same_key)),
    must(
        "lead.key-conflict",
        "the same key with another lead is IDEMPOTENCY_CONFLICT",
        "AAP f, e",
        refused(&[Refusal::Aap(&[AapCode::IdempotencyConflict])]),
    ),
    must("lead.key-other", "another key makes another lead", "AAP f", law(other_key)),
    should(
        "lead.repeat",
        "the same lead without a key is a duplicate within the dealer's window",
        "AAP f",
        law(repeat),
    ),
    must(
        "lead.vehicle",
        "a lead may name a vehicle that was listed",
        "AAP d.7",
        served_or(&[Refusal::Aap(&[AapCode::VehicleUnavailable])]),
    ),
    must(
        "lead.vehicle-open",
        "a vehicle of interest may have members of any name",
        "AAP d.5, d.7",
        served_or(&[Refusal::Aap(&[AapCode::VehicleUnavailable])]),
    ),
    must("lead.trade-in", "a lead may have a trade-in in a condition of wear", "AAP d.7", SERVED),
    must("lead.appointment", "an appointment without a time is a request", "AAP f", law(no_time)),
    must("lead.preferred-any", "preferred_contact any asks for no channel of its own", "AAP f", SERVED),
    must(
        "lead.no-consent",
        "a lead without consent is CONTACT_CONSENT_REQUIRED",
        "AAP e, f",
        refused(CHANNEL),
    ),
    must("lead.consent-expired", "an expired consent is INVALID_CONSENT", "AAP f", refused(CONSENT)),
    must(
        "lead.consent-future",
        "a consent granted in the future is INVALID_CONSENT",
        "AAP f",
        refused(CONSENT),
    ),
    must("lead.consent-scope", "a consent of another scope is INVALID_CONSENT", "AAP f, j 10", refused(FORM)),
    must("lead.consent-text", "a consent without text is INVALID_CONSENT", "AAP d.7, e", refused(FORM)),
    must("lead.consent-channels", "a consent to no channel is INVALID_CONSENT", "AAP d.7, e", refused(FORM)),
    must("lead.consent-time", "a grant at no time is INVALID_CONSENT", "AAP d.7, e", refused(FORM)),
    must(
        "lead.channel-not-allowed",
        "a preferred channel that is not allowed is CONTACT_CONSENT_REQUIRED",
        "AAP f, j 12",
        refused(&[Refusal::Aap(&[AapCode::ContactConsentRequired, AapCode::InvalidConsent])]),
    ),
    must("lead.no-customer", "a lead without customer is refused", "AAP d.7", INVALID),
    must("lead.no-contact", "a customer without email and phone is refused", "AAP d.7", INVALID),
    must(
        "lead.no-last-name",
        "a customer without last name is refused",
        "AAP d.7",
        refused(&[Refusal::At(VALIDATION, &[&["/customer", "/customer/last_name"]])]),
    ),
    must(
        "lead.phone-form",
        "a phone number that is not E.164 is refused at its place",
        "AAP d.7",
        refused(&[Refusal::At(VALIDATION, &[&["/customer/phone"]])]),
    ),
    must(
        "lead.email-form",
        "an address that is no email is refused at its place",
        "AAP d.7",
        refused(&[Refusal::At(VALIDATION, &[&["/customer/email"]])]),
    ),
    must("lead.no-source-agent", "a lead without source_agent is refused", "AAP d.7", INVALID),
    only(
        Applies::FROM_1_1,
        must(
            "lead.source-agent-text",
            "a source_agent that is a string is refused at its place",
            "AAP d.7",
            refused(&[Refusal::At(VALIDATION, &[&["/source_agent"]])]),
        ),
    ),
    only(
        Applies::V1_0,
        must(
            "lead.source-agent-object",
            "a source_agent that is an object is refused",
            "AAP a; lead-submit-request.schema.json of 1.0",
            INVALID,
        ),
    ),
    only(
        Applies::V1_0,
        must(
            "lead.consent-agent",
            "a consent without source_agent is refused",
            "AAP a; consent-grant.schema.json of 1.0",
            refused(FORM),
        ),
    ),
    must(
        "lead.unknown-member",
        "a member that the lead does not know is refused at its place",
        "AAP d, d.7",
        refused(&[Refusal::At(VALIDATION, &[&["/offered_price", ""]])]),
    ),
    must(
        "lead.wear-of-interest",
        "a vehicle of interest in a condition of wear is refused at its place",
        "AAP d.7, e",
        refused(&[Refusal::At(WEAR, &[&["/vehicle_of_interest/condition"]])]),
    ),
    must(
        "lead.sale-of-trade-in",
        "a trade-in in a condition of sale is refused at its place",
        "AAP d.7, e",
        refused(&[Refusal::At(WEAR, &[&["/trade_in/condition"]])]),
    ),
    must(
        "lead.appointment-type",
        "an unknown type of appointment is refused at its place",
        "AAP d.7",
        refused(&[Refusal::At(VALIDATION, &[&["/appointment/appointment_type"]])]),
    ),
    must(
        "lead.appointment-short",
        "an appointment of 10 minutes is refused at its place",
        "AAP d.7",
        refused(&[Refusal::At(VALIDATION, &[&["/appointment/duration_minutes"]])]),
    ),
    must(
        "lead.key-long",
        "a key of 129 characters is refused at its place",
        "AAP d.7",
        refused(&[Refusal::At(VALIDATION, &[&["/idempotency_key"]])]),
    ),
    must(
        "lead.key-empty",
        "an empty key is refused at its place",
        "AAP d.7",
        refused(&[Refusal::At(VALIDATION, &[&["/idempotency_key"]])]),
    ),
    must(
        "lead.message-long",
        "a message of 4001 characters is refused at its place",
        "AAP d.7",
        refused(&[Refusal::At(VALIDATION, &[&["/message"]])]),
    ),
    must(
        "lead.test-drive-unknown",
        "a test drive of a vehicle that nobody knows is VEHICLE_NOT_FOUND",
        "AAP e, j 16",
        refused(&[Refusal::Aap(&[AapCode::VehicleNotFound])]),
    ),
    must(
        "lead.all-faults",
        "all faults of a lead are listed at once: three here",
        "AAP e (seed 000)",
        refused(&[Refusal::At(
            VALIDATION,
            &[
                &["/customer/email"],
                &["/appointment/appointment_type"],
                &["/source_agent/name", "/source_agent"],
            ],
        )]),
    ),
    must(
        "lead.refused-not-kept",
        "a lead that was refused leaves its key free",
        "AAP b, f",
        law(refused_not_kept),
    ),
];

fn receipts(seen: &Evidence, keeps: impl Fn(&Exchange, &Value) -> bool) -> Finding {
    let (mut breaches, mut count) = (Vec::new(), 0);
    for exchange in seen.served(Skill::LeadSubmit) {
        let Some(data) = exchange.data() else { continue };
        count += 1;
        if !keeps(exchange, data) && breaches.len() < 3 {
            breaches.push(exchange.quote());
        }
    }
    if count == 0 { seen.unasked("lead") } else { Finding::of(breaches, count, "") }
}

fn only_with(data: &Value, status: &str, member: &str) -> bool {
    let Some(appointment) = data.get("appointment") else { return true };
    (appointment.get("status").and_then(Value::as_str) == Some(status)) == appointment.get(member).is_some()
}

fn text<'a>(seen: &'a Evidence, label: &str, member: &str) -> Option<&'a str> {
    seen.of(label)?.data()?.get(member)?.as_str()
}

fn received(seen: &Evidence) -> Finding {
    let label = "lead.received";
    let Some(exchange) = seen.of(label) else { return seen.unasked(label) };
    match text(seen, label, "status") {
        Some("received" | "duplicate") => Finding::Pass,
        Some(_) => Finding::fail(exchange.quote()),
        None => Finding::not_run(format!("the lead was not taken: {}", exchange.said())),
    }
}

fn ids<'a>(seen: &'a Evidence, other: &str) -> Result<(&'a str, &'a str), Finding> {
    let pair = text(seen, "lead.received", "lead_id").zip(text(seen, other, "lead_id"));
    pair.ok_or_else(|| {
        seen.of(other).map_or_else(
            || seen.unasked(other),
            |exchange| Finding::not_run(format!("the leads were not both taken: {}", exchange.said())),
        )
    })
}

fn same_key(seen: &Evidence) -> Finding {
    match ids(seen, "lead.same-key") {
        Ok((one, again)) if one == again => Finding::Pass,
        Ok((one, again)) => {
            Finding::fail(format!("one lead, sent twice under one key, became {one:?} and {again:?}"))
        }
        Err(finding) => finding,
    }
}

fn other_key(seen: &Evidence) -> Finding {
    match ids(seen, "lead.key-other") {
        Ok((one, other)) if one != other => Finding::Pass,
        Ok((one, _)) => Finding::fail(format!("two leads of two customers became {one:?}")),
        Err(finding) => finding,
    }
}

fn repeat(seen: &Evidence) -> Finding {
    let (one, again) = ("lead.repeat-first", "lead.repeat");
    let Some((first, second)) = text(seen, one, "lead_id").zip(text(seen, again, "lead_id")) else {
        return seen.unasked(again);
    };
    let status = text(seen, again, "status");
    if status == Some("duplicate") {
        Finding::Pass
    } else {
        Finding::fail(format!(
            "one lead, sent twice without a key, became {first:?} and {second:?} with status {}",
            told(status)
        ))
    }
}

fn no_time(seen: &Evidence) -> Finding {
    let label = "lead.appointment";
    let Some(exchange) = seen.of(label) else { return seen.unasked(label) };
    let Some(data) = exchange.data() else {
        return Finding::not_run(format!("the lead was not taken: {}", exchange.said()));
    };
    match data.pointer("/appointment/status").and_then(Value::as_str) {
        Some("requested" | "proposed" | "rejected") => Finding::Pass,
        // A dealer may choose a time itself; then it says which.
        Some("confirmed") if data.pointer("/appointment/confirmed_at").is_some() => Finding::Pass,
        _ => Finding::fail(exchange.quote()),
    }
}

fn refused_not_kept(seen: &Evidence) -> Finding {
    let (refused, mended) = ("lead.refused-first", "lead.refused-not-kept");
    let (Some(refused), Some(exchange)) = (seen.of(refused), seen.of(mended)) else {
        return seen.unasked(mended);
    };
    if refused.error().is_none() {
        return Finding::not_run("the faulty lead was not refused");
    }
    match exchange.typed_code() {
        None if exchange.is_served() => Finding::Pass,
        Some("IDEMPOTENCY_CONFLICT") => Finding::fail(exchange.quote()),
        _ => Finding::not_run(format!("the mended lead was not taken: {}", exchange.said())),
    }
}
