//! The catalogue of effects, for people and for scripts.

use std::fmt::Write as _;

use serde_json::{Value, json};

use super::effect::{EffectInfo, Lawfulness, Param, ParamKind};
use super::magic;
use super::on_stream::{sees_on_http2, sees_under_tls};
use super::registry::registry;
use super::when::Reach;
use crate::protocol::Binding;
use crate::protocol::Contract;

/// What is said where nothing differs.
const SAME: &str = "the same";

fn kind(param: &Param) -> String {
    match param.kind {
        ParamKind::Duration { max_ns } => format!("a duration up to {} s", max_ns / 1_000_000_000),
        ParamKind::Integer { min, max } => format!("a whole number from {min} to {max}"),
        ParamKind::Number { min, max } => format!("a number from {min} to {max}"),
        ParamKind::Word(words) => format!("one of {}", words.join(", ")),
        ParamKind::Text { max } => format!("a text of up to {max} bytes"),
        ParamKind::Bytes { max } => format!("a size up to {max} bytes"),
    }
}

fn lawfulness(effect: &EffectInfo) -> String {
    match effect.lawfulness {
        Lawfulness::Lawful => "lawful".to_owned(),
        Lawfulness::Breach => "breach".to_owned(),
        Lawfulness::BreachOf(_) => format!("breach of {}", breached(effect).join(" and ")),
    }
}

/// The contracts that an effect breaks.
fn breached(effect: &EffectInfo) -> Vec<&'static str> {
    let broken = |contract: &Contract| !effect.lawfulness.is_lawful(*contract);
    Contract::ALL.into_iter().filter(broken).map(|contract| contract.name).collect()
}

/// One effect, in a paragraph.
pub fn entry(effect: &EffectInfo) -> String {
    let mut out = format!(
        "{} ({}, {}, {})\n    {}",
        effect.name,
        effect.family,
        effect.apply.slot().word(),
        lawfulness(effect),
        effect.sees
    );
    for (where_, sees) in [("on HTTP/2", sees_on_http2(effect)), ("under TLS", sees_under_tls(effect))] {
        if let Some(sees) = sees {
            _ = write!(out, "\n    {where_}: {sees}");
        }
    }
    for param in effect.params {
        let default =
            param.default.map_or_else(|| "required".to_owned(), |default| format!("default {default}"));
        _ = write!(out, "\n    {}: {}; {} ({default})", param.name, param.help, kind(param));
    }
    out
}

/// All effects, family by family.
pub fn text() -> String {
    let entries: Vec<String> = registry().iter().map(|effect| entry(effect)).collect();
    format!("{}\n\n{} effects", entries.join("\n"), entries.len())
}

/// All effects, as `/faults/catalogue` and `faults list --format json` give them.
pub fn json() -> Value {
    let entries: Vec<Value> = registry()
        .iter()
        .enumerate()
        .map(|(number, effect)| {
            let reach = Reach::of(effect);
            let params: Vec<Value> = effect
                .params
                .iter()
                .map(|param| json!({ "name": param.name, "takes": kind(param), "help": param.help, "default": param.default }))
                .collect();
            json!({
                "name": effect.name,
                "family": effect.family,
                "slot": effect.apply.slot().word(),
                "class": effect.class.word(),
                "lawfulness": lawfulness(effect),
                "breaks": breached(effect),
                "touches_calls": !reach.calls.is_empty(),
                "bindings": reach.calls.or(reach.discovery).iter().map(Binding::word).collect::<Vec<_>>(),
                "touches_discovery": !reach.discovery.is_empty(),
                "sees": effect.sees,
                "sees_on_http2": sees_on_http2(effect).unwrap_or(SAME),
                "sees_under_tls": sees_under_tls(effect).unwrap_or(SAME),
                "magic_vin": magic::vin(number),
                "params": params,
            })
        })
        .collect();
    json!({ "effects": entries })
}

/// The table of magic values: where each goes, and what it does.
pub fn magic_table() -> Value {
    let rows = [
        ("filters.query", "sim:<effect>", "sim:rate_limited(retry_after=2s)"),
        ("stock (detail, filter, vehicle_of_interest)", "SIM:<effect>", "SIM:vehicle_unavailable"),
        ("vehicle_id", "sim:<effect>", "sim:vehicle_not_found"),
        ("customer.email", "sim+<effect's name>@<anything>", "sim+lead_duplicate@example.com"),
        ("idempotency_key", "sim:<effect>:<any text>", "sim:reset_after_commit:7f3a"),
    ];
    let fields: Vec<Value> = rows
        .iter()
        .map(|(field, form, example)| json!({ "field": field, "value": form, "example": example }))
        .collect();
    let vins: Vec<Value> = registry()
        .iter()
        .enumerate()
        .map(|(number, effect)| json!({ "vin": magic::vin(number), "effect": effect.name, "does": effect.sees }))
        .collect();
    json!({ "fields": fields, "vins": vins })
}
