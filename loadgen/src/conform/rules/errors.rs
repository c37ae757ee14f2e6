//! Errors (AAP e).

use dealer_sim::protocol::error::AapCode;
use serde_json::Value;

use super::super::evidence::{AAP_ENTRY, ERROR_INFO, Evidence, Exchange};
use super::super::rule::{Applies, Finding, Rule};
use super::{law, must, only, should, silent};

pub(super) const RULES: &[Rule] = &[
    must(
        "error.code-and-message",
        "an error has a whole number as code and a text as message",
        "JSON-RPC 2.0, 5.1",
        law(|seen| {
            over(seen, |exchange| {
                let message = exchange.error().and_then(|error| error.get("message")).and_then(Value::as_str);
                exchange.error_number().is_some() && message.is_some()
            })
        }),
    ),
    only(
        Applies::FROM_2_0,
        must(
            "error.data-array",
            "the data of AAP's and A2A's errors is an array of objects that have an @type",
            "AAP b, e",
            law(data_array),
        ),
    ),
    only(
        Applies::FROM_2_0,
        must(
            "error.not-empty",
            "the data of such an error is not empty",
            "AAP e; INTEROP 3",
            law(|seen| of_protocol(seen, |exchange| !exchange.entries().is_empty())),
        ),
    ),
    only(
        Applies::FROM_2_0,
        must(
            "error.typed",
            "an error whose ErrorInfo is of AAP's domain has AAP's own entry",
            "AAP e (seed 000)",
            law(has_typed),
        ),
    ),
    only(
        Applies::BEFORE_2_0,
        must(
            "error.data-object",
            "the data of an AAP error is the typed error alone, as one object without an @type",
            "AAP a, e; error.schema.json and errors page of 1.0 to 1.3",
            law(data_object),
        ),
    ),
    must(
        "error.typed-whole",
        "the AAP entry has type, error_id, code, message, retryable and created_at",
        "AAP e",
        law(|seen| typed(seen, is_whole)),
    ),
    must(
        "error.typed-code",
        "its code is one of the twelve",
        "AAP e",
        law(|seen| {
            typed(seen, |_, entry| {
                entry
                    .get("code")
                    .and_then(Value::as_str)
                    .is_some_and(|code| AapCode::from_name(code).is_some())
            })
        }),
    ),
    only(
        Applies::FROM_2_0,
        must(
            "error.one-typed",
            "an error has one AAP entry at most",
            "AAP e",
            law(|seen| {
                typed(seen, |exchange, _| {
                    exchange
                        .entries()
                        .iter()
                        .filter(|entry| entry.get("@type").and_then(Value::as_str) == Some(AAP_ENTRY))
                        .count()
                        == 1
                })
            }),
        ),
    ),
    only(
        Applies::FROM_2_0,
        must(
            "error.info",
            "an ErrorInfo stands beside the AAP entry, with its code as reason",
            "AAP e",
            law(|seen| {
                typed(seen, |exchange, entry| {
                    let info = exchange
                        .entries()
                        .iter()
                        .filter(|entry| entry.get("@type").and_then(Value::as_str) == Some(ERROR_INFO));
                    info.filter_map(|info| info.get("reason")).any(|reason| Some(reason) == entry.get("code"))
                })
            }),
        ),
    ),
    only(
        Applies::FROM_2_0,
        should(
            "error.info-first",
            "the ErrorInfo stands first",
            "AAP e, j 38",
            law(|seen| {
                typed(seen, |exchange, _| {
                    exchange.entries().first().and_then(|entry| entry.get("@type")?.as_str())
                        == Some(ERROR_INFO)
                })
            }),
        ),
    ),
    must(
        "error.metadata",
        "metadata of an ErrorInfo holds strings alone",
        "AAP b; google.rpc.ErrorInfo",
        law(|seen| {
            over(seen, |exchange| {
                let info = exchange.entry(ERROR_INFO).and_then(|info| info.get("metadata")?.as_object());
                info.is_none_or(|metadata| metadata.values().all(Value::is_string))
            })
        }),
    ),
    only(
        Applies::FROM_1_1,
        must(
            "error.faults-listed",
            "each validation error lists its faults, with place, keyword and text",
            "AAP e (seed 000)",
            law(|seen| {
                typed(seen, |_, entry| {
                    let code = entry.get("code").and_then(Value::as_str).unwrap_or_default();
                    let is_validation = super::VALIDATION.iter().any(|known| known.name() == code);
                    !is_validation
                        || entry.pointer("/details/errors").and_then(Value::as_array).is_some_and(|list| {
                            !list.is_empty()
                                && list.iter().all(|fault| {
                                    ["instanceLocation", "keyword", "error"]
                                        .iter()
                                        .all(|name| fault.get(name).is_some_and(Value::is_string))
                                })
                        })
                })
            }),
        ),
    ),
    must(
        "error.faults-point",
        "places are JSON Pointers into the payload, not into the envelope",
        "AAP e",
        law(|seen| {
            typed(seen, |exchange, _| {
                exchange.fault_places().iter().all(|place| {
                    (place.is_empty() || place.starts_with('/'))
                        && !place.starts_with("/params")
                        && !place.starts_with("/message/parts")
                })
            })
        }),
    ),
    should(
        "error.numbers",
        "each AAP code comes under its recommended number",
        "AAP e (seed 000)",
        law(numbers),
    ),
    only(
        Applies::FROM_2_0,
        must(
            "error.not-32601",
            "UNSUPPORTED_SKILL never comes as -32601",
            "AAP e (seed 000)",
            law(|seen| never(seen, "UNSUPPORTED_SKILL", -32601)),
        ),
    ),
    only(
        Applies::FROM_2_0,
        must(
            "error.not-32002",
            "RATE_LIMITED never comes as -32002",
            "AAP e (seed 000)",
            law(|seen| never(seen, "RATE_LIMITED", -32002)),
        ),
    ),
    should(
        "error.retry-hint",
        "RATE_LIMITED says how long to wait",
        "AAP e, f",
        law(|seen| {
            typed(seen, |_, entry| {
                let has = |name: &str| {
                    entry.get("details").and_then(|details| details.get(name)).is_some_and(Value::is_number)
                };
                entry.get("code").and_then(Value::as_str) != Some("RATE_LIMITED")
                    || has("retry_after_ms")
                    || has("retry_after_seconds")
            })
        }),
    ),
    silent(
        "error.retryable",
        "retryable is what the code usually says",
        "AAP e",
        law(|seen| {
            typed(seen, |_, entry| {
                let code = entry.get("code").and_then(Value::as_str).and_then(AapCode::from_name);
                code.is_none_or(|code| {
                    entry.get("retryable").and_then(Value::as_bool) == Some(code.retryable())
                })
            })
        }),
    ),
    should(
        "error.no-secrets",
        "no stack trace is told",
        "AAP e",
        law(|seen| {
            over(seen, |exchange| {
                let text = exchange.error().map(Value::to_string).unwrap_or_default();
                !["Traceback (most recent", "panicked at", "\\n    at ", "Exception in thread"]
                    .iter()
                    .any(|sign| text.contains(sign))
            })
        }),
    ),
];

fn judged<'a>(errors: impl Iterator<Item = &'a Exchange>, keeps: impl Fn(&Exchange) -> bool) -> Finding {
    let mut count = 0;
    let mut breaches = Vec::new();
    for exchange in errors {
        count += 1;
        if !keeps(exchange) && breaches.len() < 3 {
            breaches.push(exchange.quote());
        }
    }
    Finding::of(breaches, count, "no such error was seen")
}

fn over(seen: &Evidence, keeps: impl Fn(&Exchange) -> bool) -> Finding {
    judged(seen.errors(), keeps)
}

/// Errors that A2A or AAP define, and not JSON-RPC alone; a -32602 is AAP's when it is about a payload.
fn of_protocol(seen: &Evidence, keeps: impl Fn(&Exchange) -> bool) -> Finding {
    let defined = |exchange: &&Exchange| {
        matches!(exchange.error_number(), Some(-32009..=-32000)) || exchange.typed_code().is_some()
    };
    judged(seen.errors().filter(defined), keeps)
}

fn data_array(seen: &Evidence) -> Finding {
    of_protocol(seen, |exchange| {
        let data = exchange.error().and_then(|error| error.get("data")).and_then(Value::as_array);
        data.is_some_and(|entries| {
            entries.iter().all(|entry| entry.get("@type").is_some_and(Value::is_string))
        })
    })
}

/// Under -32000 there are skill errors alone, so such an error has the typed entry, too.
fn data_object(seen: &Evidence) -> Finding {
    let of_skill =
        |exchange: &&Exchange| exchange.typed_code().is_some() || exchange.error_number() == Some(-32000);
    judged(seen.errors().filter(of_skill), |exchange| {
        exchange.typed().and_then(Value::as_object).is_some_and(|entry| !entry.contains_key("@type"))
    })
}

fn has_typed(seen: &Evidence) -> Finding {
    let of_aap = |exchange: &&Exchange| {
        exchange.entries().iter().any(|entry| {
            let is = |name: &str, wanted: &str| entry.get(name).and_then(Value::as_str) == Some(wanted);
            is("@type", ERROR_INFO) && is("domain", "autoagentprotocol.org")
        })
    };
    judged(seen.errors().filter(of_aap), |exchange| exchange.entry(AAP_ENTRY).is_some())
}

fn typed(seen: &Evidence, keeps: impl Fn(&Exchange, &Value) -> bool) -> Finding {
    let with_entry = seen.errors().filter(|exchange| exchange.typed().is_some());
    judged(with_entry, |exchange| exchange.typed().is_some_and(|entry| keeps(exchange, entry)))
}

fn is_whole(_: &Exchange, entry: &Value) -> bool {
    let has_text = |name: &str| entry.get(name).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
    let created = entry.get("created_at").and_then(Value::as_str).unwrap_or_default();
    entry.get("type").and_then(Value::as_str) == Some("aap.error")
        && ["error_id", "code", "message"].into_iter().all(has_text)
        && entry.get("retryable").is_some_and(Value::is_boolean)
        && dealer_sim::protocol::format::date_time(created).is_some()
}

fn numbers(seen: &Evidence) -> Finding {
    typed(seen, |exchange, entry| {
        let code = entry.get("code").and_then(Value::as_str).and_then(AapCode::from_name);
        code.is_none_or(|code| exchange.error_number() == Some(i64::from(seen.contract.number(code))))
    })
}

fn never(seen: &Evidence, code: &str, number: i64) -> Finding {
    judged(seen.errors(), |exchange| {
        exchange.typed_code() != Some(code) || exchange.error_number() != Some(number)
    })
}
