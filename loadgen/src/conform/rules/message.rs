//! Messages and conversations (AAP c; A2A 4).

use std::collections::{HashMap, HashSet};

use serde_json::Value;

use super::super::evidence::{Evidence, Exchange};
use super::super::rule::{Applies, Finding, Refusal, Rule};
use super::{INVALID, SERVED, VALIDATION, law, must, only, refused, served_or, should, silent};
use dealer_sim::protocol::error::AapCode;

const PARAMS: &[Refusal] = &[Refusal::Code(-32602), Refusal::Aap(VALIDATION)];
const MEDIA: &[Refusal] = &[Refusal::Code(-32005)];
const UNSUPPORTED_SKILL: &[Refusal] = &[Refusal::Aap(&[AapCode::UnsupportedSkill])];

pub(super) const RULES: &[Rule] = &[
    must(
        "message.wrapped",
        "the result is {\"message\": …}: neither a bare message nor a task",
        "AAP c; A2A 9.4.1",
        law(wrapped),
    ),
    must(
        "message.role",
        "the role of a reply is ROLE_AGENT",
        "AAP c",
        law(|seen| over(seen, |_, message| text(message, "role") == Some("ROLE_AGENT"))),
    ),
    must(
        "message.no-kind",
        "neither Message nor Part has a kind",
        "AAP c (seed 003)",
        law(|seen| {
            over(seen, |_, message| {
                message.get("kind").is_none() && parts(message).iter().all(|part| part.get("kind").is_none())
            })
        }),
    ),
    must(
        "message.id",
        "a reply has a messageId of its own",
        "AAP c",
        law(|seen| {
            over(seen, |exchange, message| {
                text(message, "messageId")
                    .is_some_and(|id| !id.is_empty() && Some(id) != exchange.message_id.as_deref())
            })
        }),
    ),
    must("message.id-unique", "no two replies have the same messageId", "AAP c; A2A 4.1.4", law(unique_ids)),
    only(
        Applies::FROM_2_0,
        must(
            "message.context",
            "every reply has a non-empty contextId",
            "AAP c; A2A 3.4.1",
            law(|seen| over(seen, |_, message| text(message, "contextId").is_some_and(|id| !id.is_empty()))),
        ),
    ),
    // The 1.x pages show no contextId in replies; A2A 3.4.1 lets an agent make one, and then it comes with the reply.
    only(
        Applies::BEFORE_2_0,
        must(
            "message.context-form",
            "a contextId, where a reply has one, is a text",
            "A2A 4.1.4",
            law(|seen| over(seen, |_, message| message.get("contextId").is_none_or(Value::is_string))),
        ),
    ),
    must(
        "message.context-kept",
        "the client's contextId comes back unchanged",
        "AAP c; A2A 3.4.1",
        law(context_kept),
    ),
    must(
        "message.context-new",
        "each new interaction gets a context of its own",
        "AAP c (seed 003)",
        law(context_new),
    ),
    should(
        "message.context-own",
        "a contextId that the client made is kept, or refused",
        "A2A 3.4.1",
        law(context_own),
    ),
    must("message.context-empty", "an empty contextId is as good as none", "AAP c", served_or(PARAMS)),
    must(
        "message.no-task",
        "a reply names no task: AAP is message-only",
        "AAP c",
        law(|seen| {
            over(seen, |_, message| {
                message.get("taskId").is_none() && message.get("referenceTaskIds").is_none()
            })
        }),
    ),
    must(
        "message.parts",
        "the first part of a reply holds data, an object",
        "AAP c",
        law(|seen| {
            over(seen, |_, message| {
                parts(message).first().is_some_and(|part| {
                    part.get("data").is_some_and(Value::is_object) && part.get("text").is_none()
                })
            })
        }),
    ),
    must(
        "message.media-type",
        "the first part has the media type of the skill's replies",
        "AAP c",
        law(|seen| {
            over(seen, |exchange, message| {
                exchange.skill.is_none_or(|skill| {
                    parts(message).first().and_then(|part| text(part, "mediaType"))
                        == Some(skill.response_media_type())
                })
            })
        }),
    ),
    must(
        "message.type",
        "the payload's type is that of the skill's replies",
        "AAP c",
        law(|seen| {
            over(seen, |exchange, message| {
                let data = parts(message).first().and_then(|part| part.get("data"));
                exchange.skill.is_none_or(|skill| {
                    data.and_then(|data| text(data, "type")) == Some(skill.response_type())
                })
            })
        }),
    ),
    must(
        "message.data",
        "the payload has its data, an object",
        "AAP d",
        law(|seen| {
            over(seen, |_, message| {
                parts(message)
                    .first()
                    .and_then(|part| part.get("data")?.get("data"))
                    .is_some_and(Value::is_object)
            })
        }),
    ),
    must(
        "message.no-nulls",
        "members of the envelope and of the Message that are not set are left out, not null",
        "A2A 5.6",
        law(no_nulls),
    ),
    must("message.no-message", "params without message are refused with -32602", "AAP c", refused(PARAMS)),
    must(
        "message.no-id",
        "a message without messageId is refused with -32602",
        "AAP c; INTEROP 9",
        refused(PARAMS),
    ),
    must("message.empty-id", "an empty messageId is refused with -32602", "AAP c", refused(PARAMS)),
    must(
        "message.no-role",
        "a message without role is refused with -32602",
        "AAP c; INTEROP 9",
        refused(PARAMS),
    ),
    must(
        "message.role-agent",
        "a request in the role of the agent is refused with -32602",
        "AAP c",
        refused(PARAMS),
    ),
    must(
        "message.role-0.3",
        "the role of A2A 0.3, \"user\", is refused with -32602",
        "AAP c; INTEROP 13",
        refused(PARAMS),
    ),
    must("message.no-parts", "a message without parts is refused with -32602", "AAP c", refused(PARAMS)),
    must(
        "message.empty-parts",
        "a message with no part in parts is refused with -32602",
        "AAP c",
        refused(PARAMS),
    ),
    must(
        "message.text-first",
        "a text part first is refused",
        "AAP c",
        refused(&[
            Refusal::Code(-32602),
            Refusal::Code(-32005),
            Refusal::Aap(VALIDATION),
            Refusal::Aap(&[AapCode::UnsupportedSkill]),
        ]),
    ),
    must("message.text-later", "a text part behind the data is ignored", "AAP c", SERVED),
    must("message.data-later", "a data part behind the first is ignored", "AAP c", law(data_later)),
    must("message.data-text", "a payload that is a string is refused", "AAP c", refused(PARAMS)),
    must(
        "message.task-unknown",
        "a taskId that names no task is refused with -32001",
        "AAP c; A2A 3.4.2",
        refused(&[Refusal::Code(-32001)]),
    ),
    should(
        "message.media-type-wrong",
        "a media type of another skill is refused with -32005",
        "AAP c",
        refused(MEDIA),
    ),
    silent(
        "message.media-type-none",
        "a part without media type is refused",
        "AAP c",
        refused(&[Refusal::Code(-32005), Refusal::Code(-32602), Refusal::Aap(VALIDATION)]),
    ),
    should(
        "message.modes-foreign",
        "a client that accepts nothing which is made is refused with -32005",
        "AAP c",
        refused(MEDIA),
    ),
    must("message.modes-several", "one acceptable mode among several suffices", "AAP c", SERVED),
    silent("message.modes-none", "a request that names no modes is served", "AAP c", SERVED),
    silent("message.modes-any", "*/* accepts anything", "AAP c", SERVED),
    must("message.configuration", "returnImmediately and historyLength change nothing", "AAP c", SERVED),
    must("message.metadata", "metadata is ignored", "AAP c", SERVED),
    must(
        "message.skill-unknown",
        "an unknown skill is UNSUPPORTED_SKILL, typed",
        "AAP c, e",
        refused(UNSUPPORTED_SKILL),
    ),
    must("message.type-missing", "a payload without type is refused", "AAP c", INVALID),
    must("message.type-number", "a payload whose type is a number is refused", "AAP c", INVALID),
    must(
        "message.type-response",
        "a response as a request is refused",
        "AAP c",
        refused(&[Refusal::Aap(VALIDATION), Refusal::Aap(&[AapCode::UnsupportedSkill])]),
    ),
];

fn text<'a>(value: &'a Value, name: &str) -> Option<&'a str> {
    value.get(name)?.as_str()
}

fn parts(message: &Value) -> &[Value] {
    message.get("parts").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn wrapped(seen: &Evidence) -> Finding {
    let results: Vec<_> = seen.results().collect();
    let wrong = results.iter().filter(|exchange| {
        let members = exchange.result().and_then(Value::as_object);
        !members.is_some_and(|members| {
            members.get("message").is_some_and(Value::is_object) && !members.contains_key("task")
        })
    });
    Finding::of(wrong.take(3).map(|exchange| exchange.quote()).collect(), results.len(), "no result was seen")
}

fn over(seen: &Evidence, keeps: impl Fn(&Exchange, &Value) -> bool) -> Finding {
    let messages: Vec<_> =
        seen.exchanges.iter().filter_map(|exchange| Some((exchange, exchange.message()?))).collect();
    let wrong = messages.iter().filter(|(exchange, message)| !keeps(exchange, message));
    Finding::of(
        wrong.take(3).map(|(exchange, _)| exchange.quote()).collect(),
        messages.len(),
        "no message was seen",
    )
}

fn unique_ids(seen: &Evidence) -> Finding {
    let mut first = HashMap::new();
    let mut breaches = Vec::new();
    for exchange in &seen.exchanges {
        let Some(id) = exchange.message().and_then(|message| text(message, "messageId")) else { continue };
        if let Some(earlier) = first.insert(id, &exchange.label) {
            breaches.push(format!("[{}] and [{earlier}] both have the messageId {id:?}", exchange.label));
        }
    }
    breaches.truncate(3);
    Finding::of(breaches, first.len().saturating_sub(1), "fewer than two messages were seen")
}

fn context_kept(seen: &Evidence) -> Finding {
    // One that the client made up may be refused, but not replaced; that has a rule of its own.
    let sent = |exchange: &&Exchange| exchange.context_id.as_deref().is_some_and(|id| !id.is_empty());
    let carried: Vec<_> =
        seen.exchanges.iter().filter(sent).filter(|exchange| exchange.message().is_some()).collect();
    let wrong = carried.iter().filter(|exchange| !keeps_context(seen, exchange));
    let told = wrong.take(3).map(|exchange| {
        format!(
            "sent contextId {:?}; {}",
            exchange.context_id.as_deref().unwrap_or_default(),
            exchange.quote()
        )
    });
    Finding::of(told.collect(), carried.len(), "no call with a contextId was served")
}

/// Whether a reply bears the contextId of its request, or, where a contract lets it name none, none at all.
fn keeps_context(seen: &Evidence, exchange: &Exchange) -> bool {
    let got = exchange.message().and_then(|message| text(message, "contextId")).filter(|id| !id.is_empty());
    match got {
        Some(_) => got == exchange.context_id.as_deref(),
        None => !seen.contract.replies_name_context,
    }
}

fn context_new(seen: &Evidence) -> Finding {
    let fresh =
        seen.exchanges.iter().filter(|exchange| exchange.context_id.is_none() && exchange.is_ordinary);
    let ids: Vec<&str> = fresh
        .filter_map(|exchange| text(exchange.message()?, "contextId"))
        .filter(|id| !id.is_empty())
        .collect();
    let different: HashSet<_> = ids.iter().collect();
    if ids.len() < 2 {
        return Finding::not_run("fewer than two interactions were begun");
    }
    if different.len() == ids.len() {
        return Finding::Pass;
    }
    Finding::fail(format!(
        "{} new interactions got {} contexts, such as {:?}",
        ids.len(),
        different.len(),
        ids[0]
    ))
}

fn context_own(seen: &Evidence) -> Finding {
    let label = "message.context-own";
    let Some(exchange) = seen.of(label) else { return seen.unasked(label) };
    if let Some(why) = exchange.unjudgeable() {
        return Finding::NotRun(why);
    }
    if exchange.error().is_some() || keeps_context(seen, exchange) {
        Finding::Pass
    } else {
        Finding::fail(exchange.quote())
    }
}

/// A second data part asks for another skill; the reply must be to the first.
fn data_later(seen: &Evidence) -> Finding {
    super::super::rule::judge_probe("message.data-later", super::Expect::Served, seen)
}

fn no_nulls(seen: &Evidence) -> Finding {
    let is_set = |value: &Value| {
        value.as_object().is_none_or(|members| members.values().all(|member| !member.is_null()))
    };
    over(seen, |exchange, message| {
        let vehicles = exchange.vehicles().iter().all(|vehicle| {
            // AAP d.5: only these two members may be null.
            vehicle.as_object().is_none_or(|members| {
                members
                    .iter()
                    .all(|(name, value)| !value.is_null() || name == "rooftop" || name == "charge_port")
            })
        });
        is_set(message) && parts(message).iter().all(is_set) && exchange.data().is_none_or(is_set) && vehicles
    })
}
