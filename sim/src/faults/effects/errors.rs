//! What may be wrong with an error (INTEROP 3, 17, 18). Each of these turns a success into an error first, so that one
//! line shows the fault on any call; with `code=none` a success is left alone.

use serde_json::{Value, json};

use super::reply::{Members, edit, error, raw_id, set, take};
use super::{breach, breach_from_2_0, lawful, word};
use crate::faults::draw::Draw;
use crate::faults::effect::{AnswerContext, Apply, Args, EffectInfo, Param};
use crate::protocol::error::{
    AAP_ERROR_KIND, AAP_ERROR_TYPE, AapCode, AapError, Occurrence, write_aap_error,
};

const FAMILY: &str = "envelope";
const CODES: &[&str] = &[
    "schema_validation_failed",
    "missing_required_field",
    "invalid_condition",
    "unsupported_skill",
    "vehicle_not_found",
    "vehicle_unavailable",
    "contact_consent_required",
    "invalid_consent",
    "appointment_time_unavailable",
    "idempotency_conflict",
    "rate_limited",
    "internal_error",
    "none",
];

const fn code(default: &'static str) -> Param {
    word(
        "code",
        CODES,
        default,
        "the AAP code that a success is turned into first; none leaves a success alone",
    )
}

const CODE: &[Param] = &[code("internal_error")];

pub(super) static EFFECTS: &[EffectInfo] = &[
    breach_from_2_0(breach(
        FAMILY,
        "error_data_object",
        CODE,
        "error.data is the typed entry alone, as before contract 2.0, instead of an array",
        Apply::Refine(|args, context, draw, out| {
            spoil(args, context, draw, out, |error| {
                typed(error).is_some_and(|typed| set(error, "data", typed))
            });
        }),
    )),
    breach(
        FAMILY,
        "error_data_string",
        CODE,
        "error.data is a string",
        Apply::Refine(|args, context, draw, out| {
            spoil(args, context, draw, out, |error| set(error, "data", "something went wrong"));
        }),
    ),
    breach(
        FAMILY,
        "error_data_absent",
        CODE,
        "the error has no data: a number and a text are all there is",
        Apply::Refine(|args, context, draw, out| {
            spoil(args, context, draw, out, |error| take(error, "data"));
        }),
    ),
    breach(
        FAMILY,
        "error_data_empty",
        CODE,
        "error.data is an empty array",
        Apply::Refine(|args, context, draw, out| {
            spoil(args, context, draw, out, |error| set(error, "data", json!([])));
        }),
    ),
    breach_from_2_0(breach(
        FAMILY,
        "error_data_without_type",
        CODE,
        "the entries of error.data have no @type",
        Apply::Refine(|args, context, draw, out| {
            spoil(args, context, draw, out, |error| {
                entries(error).is_some_and(|entries| {
                    let objects = entries.iter_mut().filter_map(Value::as_object_mut);
                    objects.fold(false, |any, entry| take(entry, "@type") | any)
                })
            });
        }),
    )),
    lawful(
        FAMILY,
        "error_data_unknown_first",
        CODE,
        "entries of unknown types stand before those that a client looks for",
        Apply::Refine(|args, context, draw, out| {
            spoil(args, context, draw, out, |error| {
                entries(error).is_some_and(|entries| {
                    let unknown =
                        json!({ "@type": "type.example.test/vendor.Trace", "span": "00f067aa0ba902b7" });
                    let help = json!({ "@type": "type.googleapis.com/google.rpc.Help", "links": [] });
                    entries.splice(0..0, [unknown, help]);
                    true
                })
            });
        }),
    ),
    breach(
        FAMILY,
        "error_typed_missing",
        CODE,
        "error.data has no typed AAP entry",
        Apply::Refine(|args, context, draw, out| {
            spoil(args, context, draw, out, |error| {
                if error.get("data").is_some_and(Value::is_object) {
                    return set(error, "data", json!({}));
                }
                entries(error).is_some_and(|entries| {
                    let before = entries.len();
                    entries.retain(|entry| entry["@type"] != AAP_ERROR_TYPE);
                    entries.len() < before
                })
            });
        }),
    ),
    breach(
        FAMILY,
        "error_code_text",
        CODE,
        "error.code is a string",
        Apply::Refine(|args, context, draw, out| {
            spoil(args, context, draw, out, |error| {
                let text = error.get("code").map(ToString::to_string).unwrap_or_default();
                set(error, "code", text)
            });
        }),
    ),
    lawful(
        FAMILY,
        "error_code_vendor",
        CODE,
        "error.code is a number of the dealer's own; the typed code still says what happened",
        Apply::Refine(|args, context, draw, out| {
            spoil(args, context, draw, out, |error| set(error, "code", -32_050));
        }),
    ),
    breach(
        FAMILY,
        "error_message_missing",
        CODE,
        "the error has no message",
        Apply::Refine(|args, context, draw, out| {
            spoil(args, context, draw, out, |error| take(error, "message"));
        }),
    ),
    lawful(
        FAMILY,
        "retryable_flipped",
        CODE,
        "retryable says the opposite of what its code usually says; the value sent is what counts",
        Apply::Refine(|args, context, draw, out| {
            spoil(args, context, draw, out, |error| {
                let before = typed(error).and_then(|entry| entry["retryable"].as_bool());
                before.is_some_and(|before| on_typed(error, |typed| set(typed, "retryable", !before)))
            });
        }),
    ),
    breach(
        FAMILY,
        "typed_code_unknown",
        CODE,
        "the typed entry has a code that AAP does not define",
        Apply::Refine(|args, context, draw, out| {
            spoil(args, context, draw, out, |error| {
                on_typed(error, |typed| set(typed, "code", "DEALER_ON_HOLIDAY"))
            });
        }),
    ),
    breach_from_2_0(breach(
        FAMILY,
        "rate_limited_as_32002",
        &[code("rate_limited")],
        "RATE_LIMITED comes as -32002, which A2A clients read as a task that cannot be cancelled",
        Apply::Refine(|args, context, draw, out| renumber(args, context, draw, out, "RATE_LIMITED", -32_002)),
    )),
    breach_from_2_0(breach(
        FAMILY,
        "unsupported_skill_as_32601",
        &[code("unsupported_skill")],
        "UNSUPPORTED_SKILL comes as -32601, method not found",
        Apply::Refine(|args, context, draw, out| {
            renumber(args, context, draw, out, "UNSUPPORTED_SKILL", -32_601);
        }),
    )),
];

/// Makes the reply an error if it is none, and changes that error.
fn spoil(
    args: &Args,
    context: &AnswerContext<'_>,
    draw: &mut Draw,
    out: &mut Vec<u8>,
    mut change: impl FnMut(&mut Members) -> bool,
) {
    force(args, context, draw, out);
    edit(out, |root| error(root).is_some_and(&mut change));
}

fn renumber(
    args: &Args,
    context: &AnswerContext<'_>,
    draw: &mut Draw,
    out: &mut Vec<u8>,
    name: &str,
    number: i32,
) {
    spoil(args, context, draw, out, |error| {
        let is_it = typed(error).is_some_and(|entry| entry["code"] == name);
        is_it && set(error, "code", number)
    });
}

/// Replaces a success, which has an id and a result, by the error of `code`.
fn force(args: &Args, context: &AnswerContext<'_>, draw: &mut Draw, out: &mut Vec<u8>) {
    let Some(code) = AapCode::from_name(&args.text("code").to_uppercase()) else { return };
    let is_success = serde_json::from_slice::<Members>(out).is_ok_and(|root| root.contains_key("result"));
    let Some(id) = raw_id(out).filter(|_| is_success).map(str::to_owned) else { return };
    let aap = match code {
        AapCode::RateLimited => {
            super::business::rate_limited(2_000_000_000, crate::faults::effect::RetryHint::Ms)
        }
        code => AapError::new(code, "the dealer was told to refuse this call"),
    };
    let error_id = format!("err_{:016x}{:016x}", draw.word(), draw.word());
    let created_at = context.now.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let occurrence = Occurrence { error_id: &error_id, created_at: &created_at };
    out.clear();
    write_aap_error(out, &id, &aap, context.contract, occurrence);
}

fn entries(error: &mut Members) -> Option<&mut Vec<Value>> {
    error.get_mut("data")?.as_array_mut()
}

/// A copy of the typed entry, found by `@type` and never by position; before contract 2.0 it is all of `data`.
fn typed(error: &Members) -> Option<Value> {
    let data = error.get("data")?;
    let mut all = data.as_array().map_or(std::slice::from_ref(data), Vec::as_slice).iter();
    all.find(|entry| is_typed(entry)).cloned()
}

fn is_typed(entry: &Value) -> bool {
    entry["@type"] == AAP_ERROR_TYPE || (entry["type"] == AAP_ERROR_KIND && entry.get("@type").is_none())
}

fn on_typed(error: &mut Members, change: impl FnOnce(&mut Members) -> bool) -> bool {
    let Some(data) = error.get_mut("data") else { return false };
    let entry = match data {
        Value::Array(all) => all.iter_mut().find(|entry| is_typed(entry)),
        alone => Some(alone).filter(|entry| is_typed(entry)),
    };
    entry.and_then(Value::as_object_mut).is_some_and(change)
}
