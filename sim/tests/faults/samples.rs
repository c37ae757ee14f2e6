//! Replies of a real dealer, and arguments for effects.

use std::sync::LazyLock;

use dealer_sim::Dealer;
use dealer_sim::faults::EffectInfo;
use dealer_sim::faults::effect::{AnswerContext, Arg, Args, ParamKind};
use dealer_sim::protocol::{Contract, Skill};
use serde_json::{Value, json};

static SAMPLES: LazyLock<Vec<(&'static str, Vec<u8>)>> = LazyLock::new(make);

/// The samples: a reply of every skill, an error, a card.
pub(crate) fn all() -> Vec<(&'static str, Vec<u8>)> {
    SAMPLES.clone()
}

/// The sample of this name.
pub(crate) fn sample(name: &str) -> Vec<u8> {
    SAMPLES.iter().find(|(known, _)| *known == name).unwrap().1.clone()
}

/// The id of every request: more than 64 bits, so that an id that was parsed shows.
pub(crate) const ID: &str = "123456789012345678901234567890";

pub(crate) fn request(skill: Skill, members: &Value) -> String {
    let mut payload = members.clone();
    payload["type"] = json!(skill.request_type());
    let message = json!({ "messageId": "m-of-request", "role": "ROLE_USER", "contextId": "ctx_mine",
        "parts": [{ "data": payload, "mediaType": skill.request_media_type() }] });
    format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":{ID},\"method\":\"SendMessage\",\"params\":{{\"message\":{message}}}}}"
    )
}

/// The requests whose replies are the samples. `ask` gives the dealer's reply to a body: the vehicles they name are its own.
pub(crate) fn requests(ask: impl Fn(&str) -> Vec<u8>) -> Vec<(&'static str, String)> {
    // The sample listings come with fees, so that effects on fees have something to bend.
    let search = request(Skill::InventorySearch, &json!({ "pagination": { "limit": 60 } }));
    let seen: Value = serde_json::from_slice(&ask(&search)).unwrap();
    let listed = seen["result"]["message"]["parts"][0]["data"]["data"]["vehicles"].as_array().unwrap();
    let vehicle = listed.iter().find(|v| v["fees"].is_array() && v["price"].is_u64()).unwrap();
    let vin = vehicle["vin"].clone();
    let lead = json!({
        "customer": { "first_name": "Ada", "last_name": "Example", "email": "ada@example.test" },
        "consent": { "granted_at": "2025-12-31T00:00:00Z", "allowed_channels": ["email"],
            "consent_text": "Yes.", "scope": ["lead_submission"] },
        "source_agent": { "name": "test" },
        "vehicle_of_interest": { "vin": vin },
        "appointment": { "appointment_type": "sales", "appointment_at": "2026-01-07T18:00:00Z" },
    });
    vec![
        ("search", search),
        ("detail", request(Skill::InventoryVehicle, &json!({ "vin": vin }))),
        ("facets", request(Skill::InventoryFacets, &json!({}))),
        ("information", request(Skill::DealerInformation, &json!({}))),
        ("lead", request(Skill::LeadSubmit, &lead)),
        ("error", request(Skill::InventoryVehicle, &json!({ "vin": "GDS00000000000000" }))),
    ]
}

fn make() -> Vec<(&'static str, Vec<u8>)> {
    let dealer = Dealer::builder().vehicles(60).build().unwrap();
    let ask = |body: &str| dealer.dispatch_body(body.as_bytes());
    let card =
        serde_json::to_vec(&dealer_sim::protocol::card::agent_card(&dealer_sim::protocol::card::CardFacts {
            contract: Contract::V3_0,
            base_url: "http://127.0.0.1:8080",
            dealer_name: "Harbor",
            skills: &Skill::ALL,
            page_cap: 100,
            auth: &[],
            fingerprint: [7; 16],
            issued_at_ms: 1_767_225_600_000,
        }))
        .unwrap();
    let replies = requests(ask).into_iter().map(|(name, body)| (name, ask(&body)));
    replies.chain([("card", card)]).collect()
}

pub(crate) fn context(request: &[u8]) -> AnswerContext<'_> {
    AnswerContext {
        contract: Contract::V3_0,
        skill: None,
        request,
        now: "2026-01-05T12:00:00.5Z".parse().unwrap(),
    }
}

/// The default arguments of an effect, or the greatest that it takes.
pub(crate) fn args(effect: &EffectInfo, extreme: bool) -> Args {
    let value = |kind, default: Option<&str>| match kind {
        ParamKind::Duration { max_ns } if extreme => Some(Arg::Duration(max_ns)),
        ParamKind::Integer { max, .. } if extreme => Some(Arg::Integer(max)),
        ParamKind::Number { max, .. } if extreme => Some(Arg::Number(max)),
        ParamKind::Text { max } if extreme => Some(Arg::Text("é\r\n\"".repeat(max / 5))),
        ParamKind::Bytes { max } if extreme => Some(Arg::Bytes(max)),
        kind => default.map(|default| literal(kind, default).unwrap()),
    };
    Args::new(effect.params.iter().map(|param| (param.name, value(param.kind, param.default))).collect())
}

/// The default arguments with one of them changed.
pub(crate) fn with(effect: &EffectInfo, name: &'static str, literal_of: &str) -> Args {
    let values = effect.params.iter().map(|param| {
        let text = if param.name == name { Some(literal_of) } else { param.default };
        (param.name, text.map(|text| literal(param.kind, text).unwrap()))
    });
    Args::new(values.collect())
}

/// Reads a value as a plan writes it; the least reader that takes every default.
pub(crate) fn literal(kind: ParamKind, text: &str) -> Option<Arg> {
    let unit = |units: &[(&str, u64)]| {
        let split = text.find(|letter: char| !letter.is_ascii_digit()).unwrap_or(text.len());
        let factor = units.iter().find(|(unit, _)| *unit == &text[split..])?.1;
        text[..split].parse::<u64>().ok()?.checked_mul(factor)
    };
    Some(match kind {
        ParamKind::Duration { .. } => Arg::Duration(unit(&[
            ("ns", 1),
            ("us", 1_000),
            ("ms", 1_000_000),
            ("s", 1_000_000_000),
            ("m", 60_000_000_000),
            ("h", 3_600_000_000_000),
        ])?),
        ParamKind::Bytes { .. } => Arg::Bytes(unit(&[("", 1), ("KiB", 1 << 10), ("MiB", 1 << 20)])?),
        ParamKind::Integer { .. } => Arg::Integer(text.parse().ok()?),
        ParamKind::Number { .. } => Arg::Number(match text.strip_suffix('%') {
            Some(percent) => percent.parse::<f64>().ok()? / 100.0,
            None => text.parse().ok()?,
        }),
        ParamKind::Word(_) => Arg::Text(text.to_owned()),
        ParamKind::Text { .. } => Arg::Text(serde_json::from_str(text).ok()?),
    })
}
