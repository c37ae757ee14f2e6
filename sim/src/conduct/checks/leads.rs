//! Privacy, consent, and leads.

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::super::facts::{Failure, print_of};
use super::super::judge::{Case, Client, quote};
use super::super::rules::R;
use super::listings::identities;
use crate::protocol::Skill;
use crate::protocol::error::AapCode;

/// A second lead within this time is the same interest (section f: commonly 24 h).
const SAME_INTENT: SignedDuration = SignedDuration::from_hours(24);
/// A granted_at this far in the future is clock skew (j 29).
const SKEW: SignedDuration = SignedDuration::from_secs(5);
/// Unavailable vehicles that are remembered of one dealer.
const MOST_UNAVAILABLE: usize = 64;

pub(super) fn judge(case: &mut Case<'_>, client: &mut Client) {
    let facts = case.facts;
    no_personal_data(case);
    unavailable(case, client);
    let Some(payload) = facts.payload().filter(|_| facts.skill() == Some(Skill::LeadSubmit)) else { return };
    case.check(R::LeadKey, payload["idempotency_key"].is_string(), &[], || {
        "the lead has no idempotency_key".to_owned()
    });
    consent(case, payload);
    lead_key(case, client, payload);
    one_lead(case, client, payload);
}

fn consent(case: &mut Case<'_>, payload: &Value) {
    let (consent, customer) = (&payload["consent"], &payload["customer"]);
    case.check(R::ConsentPresent, consent.is_object(), &[], || "the lead has no consent".to_owned());
    if !consent.is_object() {
        return;
    }
    let now = case.facts.at;
    let time = |name: &str| consent[name].as_str().and_then(|text| text.parse::<Timestamp>().ok());
    let granted = time("granted_at");
    case.check(
        R::ConsentGranted,
        granted.is_some_and(|granted| granted <= now + SKEW),
        &[],
        || match granted {
            Some(granted) => format!("granted_at is {granted}, and it was {now} when the lead came"),
            None => "granted_at is no time".to_owned(),
        },
    );
    let expires = time("expires_at");
    case.check(R::ConsentUnexpired, expires.is_none_or(|expires| expires > now), &[], || {
        format!(
            "consent had expired at {}, and it was {now} when the lead came",
            quote(consent["expires_at"].as_str().unwrap_or("?"))
        )
    });
    let has_text = consent["consent_text"].as_str().is_some_and(|text| !text.trim().is_empty());
    case.check(R::ConsentText, has_text, &[], || "consent_text is empty".to_owned());
    let is_kept =
        consent["scope"].as_array().is_some_and(|scope| scope.len() == 1 && scope[0] == "lead_submission");
    case.check(R::ConsentScope, is_kept, &[], || {
        format!("scope is {}", quote(&consent["scope"].to_string()))
    });
    let allows = |channel: &str| {
        consent["allowed_channels"].as_array().is_some_and(|allowed| allowed.iter().any(|one| one == channel))
    };
    let preferred = customer["preferred_contact"].as_str().unwrap_or("any");
    case.check(R::ConsentChannel, preferred == "any" || allows(preferred), &[], || {
        format!("preferred_contact is {}, which allowed_channels does not have", quote(preferred))
    });
    let (email, phone) = (customer.get("email").is_some(), customer.get("phone").is_some());
    let is_kept = (!email || allows("email")) && (!phone || allows("phone") || allows("sms"));
    case.check(R::ContactAllowed, is_kept, &[], || {
        let given = if email && !allows("email") { "an e-mail address" } else { "a phone number" };
        format!("the lead gives {given}, and allowed_channels does not have its channel")
    });
}

fn lead_key(case: &mut Case<'_>, client: &mut Client, payload: &Value) {
    let facts = case.facts;
    let Some(key) = payload["idempotency_key"].as_str() else { return };
    let key = format!("{} {key}", facts.entry.dealer);
    // submitted_at is judged as part of a retry.
    let print = print_of(payload, &["submitted_at"]);
    let before = client.lead_keys.get(&key).copied();
    let other = before.filter(|(_, known)| *known != print).map(|(seq, _)| seq);
    case.check(R::LeadKeyFresh, other.is_none(), other.as_slice(), || {
        "the idempotency_key had been used for another lead".to_owned()
    });
    // A key is bound by a lead that was stored, or may have been.
    let is_refused = facts.failure() == Some(Failure::Final) || facts.aap() == Some(AapCode::RateLimited);
    if before.is_none() && !is_refused {
        client.lead_keys.put(key, (facts.seq(), print));
    }
}

fn one_lead(case: &mut Case<'_>, client: &mut Client, payload: &Value) {
    let facts = case.facts;
    let customer = &payload["customer"];
    let Some(vehicle) = identities(&payload["vehicle_of_interest"]).into_iter().next() else { return };
    let who = customer.get("email").or_else(|| customer.get("phone")).unwrap_or(&Value::Null);
    let intent = format!("{} {} {vehicle}", facts.entry.dealer, print_of(who, &[]));
    let intent = crate::stable::stable_hash(11, intent.as_bytes());
    let key = payload["idempotency_key"].as_str().map(str::to_owned);
    if let Some((seq, at, known)) = client.leads.get(&intent) {
        let is_retry = key.is_some() && key == *known;
        let is_late = facts.at.duration_since(*at) >= SAME_INTENT;
        let is_kept = is_retry || is_late || payload.get("appointment").is_some();
        case.check(R::OneLead, is_kept, &[*seq], || {
            format!("the dealer had received a lead of this customer for {} before", quote(&vehicle))
        });
    } else {
        case.check(R::OneLead, true, &[], String::new);
    }
    if facts.is_answered() {
        client.leads.put(intent, (facts.seq(), facts.at, key));
    }
}

fn unavailable(case: &mut Case<'_>, client: &mut Client) {
    let facts = case.facts;
    let Some(relation) = client.relations.get_mut(&facts.entry.dealer) else { return };
    let Some(payload) = facts.payload() else { return };
    let vehicles = match facts.skill() {
        Some(Skill::InventorySearch) => {
            relation.unavailable.clear();
            return;
        }
        Some(Skill::LeadSubmit) => identities(&payload["vehicle_of_interest"]),
        Some(Skill::InventoryVehicle) => identities(payload),
        _ => return,
    };
    if facts.skill() == Some(Skill::LeadSubmit) {
        let is_told = |(vehicle, _, thread): &&(String, u64, String)| {
            vehicles.contains(vehicle) && *thread == facts.thread()
        };
        let before = relation.unavailable.iter().find(is_told).map(|(_, seq, _)| *seq);
        case.check(R::UnavailableSearched, before.is_none(), before.as_slice(), || {
            "a lead was sent for a vehicle that the dealer had said is not available".to_owned()
        });
    }
    if matches!(facts.aap(), Some(AapCode::VehicleUnavailable | AapCode::VehicleNotFound)) {
        for vehicle in vehicles {
            if relation.unavailable.len() == MOST_UNAVAILABLE {
                relation.unavailable.remove(0);
            }
            relation.unavailable.push((vehicle, facts.seq(), facts.thread()));
        }
    }
}

/// Texts outside a lead's customer name nobody.
fn no_personal_data(case: &mut Case<'_>) {
    let facts = case.facts;
    if facts.is_cut() {
        return case.unknown(R::NoPersonalData);
    }
    let Some(request) = &facts.request else { return };
    let mut found = None;
    let is_lead = facts.skill() == Some(Skill::LeadSubmit);
    if !facts.is_a2a() {
        // Around the payload there is nothing that a caller writes freely.
        let Some(payload) = facts.payload().filter(|_| !is_lead) else { return };
        look(payload, &mut Vec::new(), &mut |path, text| {
            if found.is_none() && names_somebody(text) {
                found = Some(path.join("/"));
            }
        });
        return case.check(R::NoPersonalData, found.is_none(), &[], || {
            let place = found.unwrap_or_default();
            format!("there is an e-mail address or phone number in a request that is anonymous, at {place}")
        });
    }
    look(&request["params"], &mut Vec::new(), &mut |path, text| {
        let in_lead = is_lead && path.starts_with(&["message", "parts", "0", "data"]);
        // Names of messages may look like addresses.
        let is_name = matches!(path, ["message", "messageId" | "contextId"]);
        if !in_lead && !is_name && found.is_none() && names_somebody(text) {
            found = Some(path.join("/"));
        }
    });
    case.check(R::NoPersonalData, found.is_none(), &[], || {
        let what = if is_lead { "outside the lead's customer" } else { "in a request that is anonymous" };
        format!("there is an e-mail address or phone number {what}, at params/{}", found.unwrap_or_default())
    });
}

fn look<'v>(value: &'v Value, path: &mut Vec<&'v str>, each: &mut impl FnMut(&[&str], &str)) {
    match value {
        Value::String(text) => each(path, text),
        Value::Object(members) => {
            for (name, value) in members {
                path.push(name);
                look(value, path, each);
                path.pop();
            }
        }
        Value::Array(items) => {
            for (place, value) in items.iter().enumerate() {
                path.push(if place == 0 { "0" } else { "n" });
                look(value, path, each);
                path.pop();
            }
        }
        _ => {}
    }
}

/// Whether a text holds what looks like an e-mail address or an international phone number.
fn names_somebody(text: &str) -> bool {
    let is_email = text.split(|c: char| c.is_whitespace() || "<>,;()\"".contains(c)).any(|word| {
        // The user part of a URL is no address.
        let Some((user, host)) = word.split_once('@').filter(|_| !word.contains("://")) else { return false };
        // A version (`agent@1.2.3`) ends in a number, a top-level domain in letters (RFC 3696, section 2); what follows a colon
        // is a path (`git@host:path`).
        let is_host = host.rsplit_once('.').is_some_and(|(name, top)| {
            !name.is_empty() && top.len() >= 2 && top.chars().all(char::is_alphabetic)
        });
        !user.is_empty() && is_host && !host.contains(':')
    });
    is_email
        || names_us_number(text)
        || text.match_indices('+').any(|(at, _)| {
            let number = text[at + 1..].chars().take_while(|c| c.is_ascii_digit() || " -().".contains(*c));
            number.filter(char::is_ascii_digit).count() >= 9
        })
}

/// Whether a text holds a number as it is written in North America: three, three and four digits, parted by `-`, `.` or a
/// blank, the first three perhaps in parentheses. Ten digits in a row may be anything.
fn names_us_number(text: &str) -> bool {
    let shape: String = text.chars().map(|c| if c.is_ascii_digit() { 'd' } else { c }).collect();
    ["ddd-ddd-dddd", "ddd.ddd.dddd", "ddd ddd dddd", "(ddd) ddd-dddd", "(ddd)ddd-dddd"].iter().any(
        |pattern| {
            shape.match_indices(pattern).any(|(at, _)| {
                let is_open = |letter: Option<char>| letter != Some('d');
                is_open(shape[..at].chars().next_back())
                    && is_open(shape[at + pattern.len()..].chars().next())
            })
        },
    )
}

#[cfg(test)]
mod tests {
    use super::names_somebody;

    #[test]
    fn addresses_and_numbers_are_seen_and_others_are_not() {
        for text in ["write to anna@example.com", "<a.b@c.de>", "call +1 (555) 010-0199", "+15550100199"]
            .into_iter()
            .chain(["415-555-0134", "tel 1-415-555-0134.", "(415) 555-0134", "415.555.0134", "415 555 0134"])
        {
            assert!(names_somebody(text), "{text}");
        }
        for text in [
            "red suv @ 20000",
            "langchain@0.3.1",
            "buyer@2026.12.01",
            "git@github.com:org/repo.git",
            "1415-555-01345",
            "2026-01-01T12:00:00+00:00",
            "https://a@b.example.com/x",
            "+ 2",
            "5550100199",
            "@a.de",
        ] {
            assert!(!names_somebody(text), "{text}");
        }
    }
}
