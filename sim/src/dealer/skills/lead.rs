//! `lead.submit`: consent, idempotency, vehicle, appointment, in this order; then the lead is stored, all under one lock,
//! so that the same lead sent ten times at once is one lead.

use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use super::{Call, Work, open, vehicle};
use crate::dealer::clock::{instant, to_rfc3339};
use crate::dealer::diary::{Answer, Diary, Kind, Wish};
use crate::dealer::ids::Id;
use crate::dealer::leads::{Digest, Lead, Receipt, Standing};
use crate::dealer::{Dealer, Desk, Planted};
use crate::faults::effect::Behaviour;
use crate::inventory::{Column, Inventory};
use crate::ledger::{Entry, LeadEntry, Ticket};
use crate::protocol::Skill;
use crate::protocol::error::{AapCode, AapError, Detail};
use crate::protocol::json::{Doc, Value};
use crate::protocol::validate::Faults;
use crate::protocol::write;
use crate::stable::stable_hash;

/// A grant this far in the future is taken for a clock that runs ahead (AAP digest, j 29).
const CLOCK_SKEW: SignedDuration = SignedDuration::from_secs(60);

pub(super) fn handle(
    dealer: &Dealer,
    stock: &Inventory,
    payload: Value<'_>,
    call: &mut Call<'_>,
    work: &mut Work,
    out: &mut Vec<u8>,
) -> Result<(), AapError> {
    let now = call.now.business;
    check_consent(payload, now)?;
    let key = payload.get("idempotency_key").and_then(Value::as_str);
    let hashed = (dealer.spec().planted == Planted::ComparesKeysByHash)
        .then(|| key.map(|key| (stable_hash(0, key.as_bytes()) % 16).to_string()))
        .flatten();
    let key = hashed.as_deref().or(key);
    let equivalence = equivalence(payload, &mut work.canonical);
    let canonical = &mut work.canonical;
    canonical.clear();
    payload.write_canonical(&[], canonical);
    let identity: Digest = Sha256::digest(&*canonical).into();

    let mut desk = dealer.desk();
    let standing = match call.behaviour {
        Some(Behaviour::ForgetIdempotency) => Standing::New,
        _ => desk.leads.standing(key, &identity, &equivalence, now),
    };
    match standing {
        Standing::New => {}
        Standing::Repeated(receipt) => {
            work.commit = work.commit.max(receipt.ticket);
            out.extend_from_slice(receipt.response.get().as_bytes());
            return Ok(());
        }
        Standing::Duplicate(receipt) => {
            work.commit = work.commit.max(receipt.ticket);
            write_duplicate(out, &receipt);
            return Ok(());
        }
        Standing::Conflict => {
            let text = "this idempotency_key came with another payload; a new lead needs a new key";
            return Err(AapError::new(AapCode::IdempotencyConflict, text));
        }
    }
    let ledger = dealer.ledger();
    if ledger.is_some_and(|ledger| !ledger.is_open()) {
        let text = "the dealer cannot write leads down at the moment";
        return Err(AapError::new(AapCode::InternalError, text));
    }
    let rooftop = check_interest(stock, payload, call.behaviour)?;
    let lead_id = call.ids.make("lead_");
    let from = out.len();
    book_and_write(&mut desk, dealer, payload, rooftop, lead_id.as_str(), call, out)?;
    let (request, response) = (raw(canonical), raw(&out[from..]));
    let ticket = ledger.map(|ledger| {
        let entry = LeadEntry {
            lead_id: lead_id.as_str().into(),
            received_at: now,
            context_id: call.context_id.into(),
            request: request.get(),
            receipt: response.get(),
        };
        ledger.enter(dealer.id(), &Entry::Lead(entry))
    });
    if dealer.spec().planted != Planted::AcknowledgesEarly {
        work.commit = work.commit.max(ticket);
    }
    let lead = Lead {
        number: dealer.count_lead(),
        received_at: now,
        context_id: call.context_id.into(),
        request,
        receipt: Arc::new(Receipt { lead_id, response, ticket }),
    };
    desk.leads.store(lead, key, identity, equivalence, now);
    Ok(())
}

/// Stores a lead that was recorded before the start, with its key and what it booked.
pub(in super::super) fn recover(dealer: &Dealer, entry: &LeadEntry<'_>) {
    let (mut doc, mut receipt) = (Doc::default(), Doc::default());
    let parsed = (doc.parse(entry.request.as_bytes()), receipt.parse(entry.receipt.as_bytes()));
    // The checksum of the record holds, so that both are what a dealer wrote.
    let (Ok(payload), Ok(response)) = parsed else { return };
    let Some(lead_id) = Id::from_text(&entry.lead_id) else { return };
    let key = payload.get("idempotency_key").and_then(Value::as_str);
    let equivalence = equivalence(payload, &mut Vec::new());
    let identity: Digest = Sha256::digest(entry.request).into();
    let mut desk = dealer.desk();
    book_again(&mut desk.diary, payload, response, entry.received_at);
    let lead = Lead {
        number: dealer.count_lead(),
        received_at: entry.received_at,
        context_id: (*entry.context_id).into(),
        request: raw(entry.request.as_bytes()),
        receipt: Arc::new(Receipt {
            lead_id,
            response: raw(entry.receipt.as_bytes()),
            ticket: Some(Ticket::KNOWN),
        }),
    };
    desk.leads.store(lead, key, identity, equivalence, entry.received_at);
}

/// Books what was confirmed, if there still is such a rooftop.
fn book_again(diary: &mut Diary, payload: Value<'_>, response: Value<'_>, now: Timestamp) {
    let told = || {
        let data = response.get("data")?;
        let at = data.get("appointment")?.get("confirmed_at")?.as_str().and_then(instant)?;
        Some((payload.get("appointment")?, at, data.get("dealer")?.get("name")?.as_str()?))
    };
    let Some((appointment, at, name)) = told() else { return };
    let Some(place) = diary.places().iter().position(|place| place.name == name) else { return };
    let wish = Wish { place, ..read_wish(diary, appointment, Some(place)) };
    diary.book(wish, at, now);
}

/// What was written as JSON, as a value; the writers here make no other.
fn raw(bytes: &[u8]) -> Box<RawValue> {
    let text = std::str::from_utf8(bytes).unwrap_or_default().to_owned();
    RawValue::from_string(text).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

/// Two leads without a key are the same when customer, vehicles and appointment are (AAP digest, section f: an equivalent
/// lead of the same customer). Wording, consent and times of sending do not count.
fn equivalence(payload: Value<'_>, bytes: &mut Vec<u8>) -> Digest {
    bytes.clear();
    let customer =
        |name| payload.get("customer").and_then(|customer| customer.get(name)).and_then(Value::as_str);
    for name in ["email", "phone", "first_name", "last_name"] {
        for letter in customer(name).unwrap_or_default().chars().flat_map(char::to_lowercase) {
            bytes.extend_from_slice(letter.encode_utf8(&mut [0; 4]).as_bytes());
        }
        // A byte that no text holds.
        bytes.push(0xff);
    }
    for name in ["vehicle_of_interest", "trade_in", "appointment"] {
        match payload.get(name) {
            Some(value) => value.write_canonical(&[], bytes),
            None => bytes.push(b'-'),
        }
    }
    Sha256::digest(&*bytes).into()
}

/// The meaning of a consent that is valid by its shape.
fn check_consent(payload: Value<'_>, now: Timestamp) -> Result<(), AapError> {
    let Some(consent) = payload.get("consent") else { return Ok(()) };
    let at = |name| consent.get(name).and_then(Value::as_str).and_then(instant);
    let granted_at = at("granted_at");
    let expires_at = at("expires_at");
    let mut faults = Faults::default();
    let mut fault =
        |name: &str, error: &str| faults.push(format!("/consent/{name}"), "consent", error.to_owned());
    if granted_at.is_some_and(|granted_at| granted_at > now.checked_add(CLOCK_SKEW).unwrap_or(now)) {
        fault("granted_at", "is in the future");
    }
    if expires_at.is_some_and(|expires_at| expires_at <= now) {
        fault("expires_at", "has passed");
    }
    if matches!((granted_at, expires_at), (Some(granted_at), Some(expires_at)) if expires_at <= granted_at) {
        fault("expires_at", "is not after granted_at");
    }
    if let Some(first) = faults.list.first() {
        let text = format!("the consent is not valid: {} {}", first.at, first.error);
        return Err(AapError::faulty(AapCode::InvalidConsent, text, faults));
    }
    check_channels(payload.get("customer"), consent)
}

/// The preferred channel must be allowed, and of those allowed one must lead to the customer at all.
fn check_channels(customer: Option<Value<'_>>, consent: Value<'_>) -> Result<(), AapError> {
    let of_customer = |name| customer.and_then(|customer| customer.get(name)).and_then(Value::as_str);
    let channels = consent.get("allowed_channels");
    let allowed = || channels.into_iter().flat_map(Value::items).filter_map(Value::as_str);
    // A text message goes to the phone number, but is a channel of its own.
    let reaches = |channel: &str| of_customer(if channel == "email" { "email" } else { "phone" }).is_some();
    let (missing, text) = match of_customer("preferred_contact").filter(|channel| *channel != "any") {
        Some(preferred) if allowed().all(|channel| channel != preferred) => {
            let text =
                format!("preferred_contact is {preferred}, which consent.allowed_channels does not allow");
            (preferred, text)
        }
        _ if allowed().any(reaches) => return Ok(()),
        _ => {
            let needed = if of_customer("email").is_some() { "email" } else { "phone" };
            (
                needed,
                format!(
                    "the customer can be reached by {needed}, which consent.allowed_channels does not allow"
                ),
            )
        }
    };
    Err(AapError::new(AapCode::ContactConsentRequired, text)
        .with("missing", Detail::Text(missing.to_owned()))
        .with("allowed_channels", Detail::Texts(allowed().map(str::to_owned).collect())))
}

/// Looks up the vehicle of interest, when it is identified; its rooftop will hold the appointment.
fn check_interest<'s>(
    stock: &'s Inventory,
    payload: Value<'_>,
    behaviour: Option<Behaviour>,
) -> Result<Option<&'s str>, AapError> {
    let interest = payload.get("vehicle_of_interest");
    let wants_test_drive = payload
        .get("appointment")
        .and_then(|appointment| appointment.get("appointment_type"))
        .and_then(Value::as_str)
        == Some("test_drive");
    let Some(interest) = interest else {
        if wants_test_drive {
            let mut faults = Faults::default();
            faults.push(
                String::new(),
                "required",
                "must have required property 'vehicle_of_interest'".to_owned(),
            );
            let text = "a test drive needs a vehicle_of_interest";
            return Err(AapError::faulty(AapCode::MissingRequiredField, text, faults));
        }
        return Ok(None);
    };
    let identified = ["vin", "stock", "vehicle_id"].iter().any(|name| interest.get(name).is_some());
    if !identified {
        return Ok(None);
    }
    let row = vehicle::listed(stock, interest, behaviour)?;
    Ok(Some(stock.text(row, Column::Rooftop)).filter(|name| !name.is_empty()))
}

/// Answers the wish for an appointment, books it if it is confirmed, and writes the response payload.
fn book_and_write(
    desk: &mut Desk,
    dealer: &Dealer,
    payload: Value<'_>,
    rooftop: Option<&str>,
    lead_id: &str,
    call: &mut Call<'_>,
    out: &mut Vec<u8>,
) -> Result<(), AapError> {
    let now = call.now.business;
    let by_name = rooftop.and_then(|name| desk.diary.places().iter().position(|place| place.name == name));
    let wish = payload.get("appointment").map(|appointment| read_wish(&desk.diary, appointment, by_name));
    let answer = wish.map(|wish| match call.behaviour {
        Some(Behaviour::Appointment(status)) => forced(status, &desk.diary, wish, now),
        _ => desk.diary.answer(wish, now),
    });
    if answer == Some(Answer::Unavailable) {
        let text = "the time cannot be had, and there is no other in the week after it";
        return Err(AapError::new(AapCode::AppointmentTimeUnavailable, text));
    }
    open(out, Skill::LeadSubmit);
    out.push(b'{');
    write::member(out, true, "lead_id", lead_id);
    let duplicate = call.behaviour == Some(Behaviour::LeadIsDuplicate);
    write::member(out, false, "status", if duplicate { "duplicate" } else { "received" });
    if let (Some(wish), Some(answer)) = (wish, &answer) {
        if let Answer::Confirmed(at) = answer {
            desk.diary.book(wish, *at, now);
        }
        write_appointment(out, answer, call.ids.make("appt_").as_str());
    }
    let place = &desk.diary.places().get(wish.map(|wish| wish.place).or(by_name).unwrap_or(0));
    let name = place.map_or(dealer.name(), |place| place.name.as_str());
    out.extend_from_slice(b",\"dealer\":{");
    write::member(out, true, "name", name);
    if let Some(phone) = place.and_then(|place| place.phone.as_deref()) {
        write::member(out, false, "phone", phone);
    }
    out.extend_from_slice(b"}}");
    write::member(out, false, "message", note(answer.as_ref(), name).as_str());
    out.push(b'}');
    Ok(())
}

/// The answer that a fault wants, as far as the wish lets it: without a time there is none to confirm.
fn forced(status: &str, diary: &Diary, wish: Wish, now: Timestamp) -> Answer {
    let a_day_after = |at: Timestamp| at.checked_add(SignedDuration::from_hours(24)).unwrap_or(at);
    let at = wish.at.unwrap_or_else(|| a_day_after(now));
    match status {
        "confirmed" => Answer::Confirmed(at),
        "proposed" => match diary.answer(Wish { at: Some(at), ..wish }, now) {
            proposed @ Answer::Proposed(_) => proposed,
            _ => Answer::Proposed(vec![a_day_after(at)]),
        },
        "rejected" => Answer::Rejected,
        _ => Answer::Requested,
    }
}

fn read_wish(diary: &Diary, appointment: Value<'_>, rooftop: Option<usize>) -> Wish {
    let text = |name| appointment.get(name).and_then(Value::as_str);
    let kind = text("appointment_type").and_then(Kind::from_name).unwrap_or(Kind::Sales);
    let place = match kind {
        Kind::Service => diary.place_for(kind),
        _ => rooftop.or_else(|| diary.place_for(kind)),
    };
    Wish {
        place: place.unwrap_or(usize::MAX),
        kind,
        at: text("appointment_at").and_then(instant),
        minutes: appointment.get("duration_minutes").and_then(Value::as_integer),
    }
}

fn write_appointment(out: &mut Vec<u8>, answer: &Answer, appointment_id: &str) {
    let status = match answer {
        Answer::Requested => "requested",
        Answer::Confirmed(_) => "confirmed",
        Answer::Proposed(_) => "proposed",
        Answer::Rejected | Answer::Unavailable => "rejected",
    };
    out.extend_from_slice(b",\"appointment\":{");
    write::member(out, true, "appointment_id", appointment_id);
    write::member(out, false, "status", status);
    match answer {
        Answer::Confirmed(at) => write::member(out, false, "confirmed_at", &to_rfc3339(*at)),
        Answer::Proposed(times) => {
            out.extend_from_slice(b",\"proposed_times\":[");
            for (index, time) in times.iter().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write::string(out, &to_rfc3339(*time));
            }
            out.push(b']');
        }
        Answer::Requested | Answer::Rejected | Answer::Unavailable => {}
    }
    out.push(b'}');
}

/// A sentence for the person behind the agent.
fn note(answer: Option<&Answer>, place: &str) -> String {
    match answer {
        None => format!("Thank you. {place} will be in touch."),
        Some(Answer::Requested) => format!("Thank you. {place} will call to find a time."),
        Some(Answer::Confirmed(_)) => format!("Confirmed at {place}. Please bring a valid driver's license."),
        Some(Answer::Proposed(_)) => {
            format!("{place} cannot hold that time. Please send a new lead with one of proposed_times.")
        }
        Some(Answer::Rejected | Answer::Unavailable) => format!("{place} does not hold such appointments."),
    }
}

/// The earlier answer, marked as a duplicate.
fn write_duplicate(out: &mut Vec<u8>, receipt: &Receipt) {
    // The earlier receipt was written by `book_and_write`, where the status follows the lead's own identifier.
    const RECEIVED: &str = "\"status\":\"received\"";
    let text = receipt.response.get();
    match text.split_once(RECEIVED) {
        Some((head, tail)) => {
            out.extend_from_slice(head.as_bytes());
            out.extend_from_slice(b"\"status\":\"duplicate\"");
            out.extend_from_slice(tail.as_bytes());
        }
        None => out.extend_from_slice(text.as_bytes()),
    }
}
