//! The agent card (AAP g).

use dealer_sim::protocol::{Contract, Skill};
use serde_json::Value;

use super::super::evidence::{CardSeen, Evidence};
use super::super::rule::{Applies, Finding, Rule};
use super::{law, must, only, should, silent};
use crate::transport::Address;

pub(super) const RULES: &[Rule] = &[
    must(
        "card.json",
        "the card is a JSON object",
        "AAP g; A2A 8.2",
        law(|seen| {
            with_card(seen, |card, _| {
                if card.card().is_some_and(Value::is_object) {
                    None
                } else {
                    let text = String::from_utf8_lossy(&card.body);
                    Some(format!("HTTP {}: {}", card.status, text.chars().take(200).collect::<String>()))
                }
            })
        }),
    ),
    should(
        "card.content-type",
        "the card comes as application/json",
        "A2A 8.2",
        law(|seen| {
            with_card(seen, |card, _| {
                let essence = card
                    .content_type
                    .as_deref()
                    .and_then(|value| value.split(';').next())
                    .unwrap_or_default()
                    .trim();
                let is_json = essence.eq_ignore_ascii_case("application/json")
                    || essence.eq_ignore_ascii_case("application/a2a+json");
                (!is_json).then(|| format!("Content-Type is {essence:?}"))
            })
        }),
    ),
    should(
        "card.etag",
        "the card has an ETag",
        "AAP g; A2A 8.6",
        law(|seen| with_card(seen, |card, _| card.etag.is_none().then(|| "no ETag".to_owned()))),
    ),
    should(
        "card.cache-control",
        "the card has Cache-Control with max-age",
        "AAP g; A2A 8.6",
        law(|seen| {
            with_card(seen, |card, _| {
                let has = card.cache_control.as_deref().is_some_and(|value| value.contains("max-age"));
                (!has).then(|| "no max-age".to_owned())
            })
        }),
    ),
    should(
        "card.not-modified",
        "a card that is known by its ETag is not sent again",
        "RFC 9110 13.1.2",
        law(not_modified),
    ),
    must("card.name", "name is a non-empty string", "AAP g", law(|seen| member(seen, "name", is_text))),
    must(
        "card.description",
        "description is a string",
        "AAP g",
        law(|seen| member(seen, "description", Value::is_string)),
    ),
    must(
        "card.version",
        "version is a non-empty string",
        "AAP g",
        law(|seen| member(seen, "version", is_text)),
    ),
    must(
        "card.capabilities",
        "capabilities is an object with a list of extensions",
        "AAP g",
        law(|seen| {
            member(seen, "capabilities", |value| value.get("extensions").is_some_and(Value::is_array))
        }),
    ),
    must(
        "card.flags",
        "streaming, pushNotifications and extendedAgentCard are booleans",
        "A2A 4.4.3",
        law(|seen| {
            member(seen, "capabilities", |value| {
                ["streaming", "pushNotifications", "extendedAgentCard"]
                    .iter()
                    .all(|name| value.get(name).is_none_or(Value::is_boolean))
            })
        }),
    ),
    must(
        "card.input-modes",
        "defaultInputModes is a non-empty list of strings",
        "AAP g",
        law(|seen| member(seen, "defaultInputModes", is_texts)),
    ),
    must(
        "card.output-modes",
        "defaultOutputModes is a non-empty list of strings",
        "AAP g",
        law(|seen| member(seen, "defaultOutputModes", is_texts)),
    ),
    only(
        Applies::FROM_2_0,
        should(
            "card.vendor-modes",
            "mode lists name AAP's media types, not bare application/json",
            "AAP g",
            law(vendor_modes),
        ),
    ),
    must(
        "card.interfaces",
        "supportedInterfaces is a non-empty list",
        "AAP g",
        law(|seen| {
            member(seen, "supportedInterfaces", |value| value.as_array().is_some_and(|list| !list.is_empty()))
        }),
    ),
    must(
        "card.jsonrpc",
        "one interface is JSONRPC of A2A 1.0",
        "AAP g",
        law(|seen| {
            member(seen, "supportedInterfaces", |value| {
                value.as_array().is_some_and(|list| list.iter().any(is_ours))
            })
        }),
    ),
    should(
        "card.jsonrpc-first",
        "the JSONRPC interface stands first",
        "AAP g",
        law(|seen| {
            member(seen, "supportedInterfaces", |value| {
                value.get(0).is_some_and(|first| {
                    first.get("protocolBinding").and_then(Value::as_str) == Some("JSONRPC")
                })
            })
        }),
    ),
    must(
        "card.url",
        "the interface's url is absolute, with a host that can be reached",
        "AAP g; INTEROP 15",
        law(|seen| interface(seen, |address| !matches!(address.host.as_str(), "::" | "0.0.0.0"))),
    ),
    must(
        "card.https",
        "the url is https, or http on this machine alone",
        "AAP f, g",
        law(|seen| interface(seen, |address| address.tls || address.is_loopback())),
    ),
    must(
        "card.no-mcp-binding",
        "MCP is no protocolBinding",
        "AAP h (seed 003)",
        law(|seen| {
            member(seen, "supportedInterfaces", |value| {
                value.as_array().is_none_or(|list| {
                    list.iter().all(|i| i.get("protocolBinding").and_then(Value::as_str) != Some("MCP"))
                })
            })
        }),
    ),
    must(
        "card.protocol-version",
        "protocolVersion is Major.Minor",
        "AAP g",
        law(|seen| {
            member(seen, "supportedInterfaces", |value| {
                value.as_array().is_none_or(|list| {
                    list.iter().all(|i| {
                        let version = i.get("protocolVersion").and_then(Value::as_str).unwrap_or_default();
                        version.split('.').count() == 2
                            && version
                                .split('.')
                                .all(|part| !part.is_empty() && part.bytes().all(|b| b.is_ascii_digit()))
                    })
                })
            })
        }),
    ),
    only(
        Applies::FROM_2_0,
        must(
            "card.one-contract",
            "exactly one entry of AAP stands among the extensions",
            "AAP g",
            law(one_contract),
        ),
    ),
    only(
        Applies::FROM_2_0,
        must(
            "card.required",
            "the AAP entry has required: true",
            "AAP g",
            law(|seen| entry(seen, |entry| entry.get("required") == Some(&Value::Bool(true)))),
        ),
    ),
    only(
        Applies::BEFORE_2_0,
        must(
            "card.contract-entry",
            "an entry of AAP stands among the extensions",
            "AAP a, g; agent-card.schema.json of 1.0 to 1.3",
            law(|seen| entry(seen, |_| true)),
        ),
    ),
    only(
        Applies::BEFORE_2_0,
        must(
            "card.required-form",
            "required, where the AAP entry has it, is true or false",
            "A2A 4.4.4; agent-card.schema.json of 1.0 to 1.3",
            law(|seen| entry(seen, |entry| entry.get("required").is_none_or(Value::is_boolean))),
        ),
    ),
    only(
        Applies::V1_1,
        silent(
            "card.required-of-1.1",
            "the AAP entry has required: true, as the pages of 1.1 show and its example file does not",
            "AAP a",
            law(|seen| entry(seen, |entry| entry.get("required") == Some(&Value::Bool(true)))),
        ),
    ),
    should(
        "card.entry-description",
        "the AAP entry has a description",
        "AAP g",
        law(|seen| entry(seen, |entry| entry.get("description").is_some_and(is_text))),
    ),
    only(
        Applies::V3_0,
        must(
            "card.params",
            "the AAP entry has params",
            "AAP g (seed 003)",
            law(|seen| entry(seen, has_params)),
        ),
    ),
    only(
        Applies::V2_0,
        should(
            "card.params-of-draft",
            "the AAP entry has params",
            "AAP g",
            law(|seen| entry(seen, has_params)),
        ),
    ),
    only(
        Applies::V3_0,
        silent(
            "card.params-search",
            "params tell filters and sort fields of the search",
            "AAP g",
            law(|seen| entry(seen, |entry| entry.pointer("/params/search").is_some_and(Value::is_object))),
        ),
    ),
    must(
        "card.skills",
        "skills is a non-empty list",
        "AAP g",
        law(|seen| member(seen, "skills", |value| value.as_array().is_some_and(|list| !list.is_empty()))),
    ),
    must(
        "card.skill-members",
        "each skill has id, name, description and at least one tag",
        "AAP g",
        law(|seen| {
            each_skill(seen, |skill| {
                ["id", "name", "description"].iter().all(|name| skill.get(name).is_some_and(is_text))
                    && skill.get("tags").is_some_and(is_texts)
            })
        }),
    ),
    only(
        Applies::FROM_2_0,
        should(
            "card.skill-modes",
            "each skill pins its pair of media types",
            "AAP g",
            law(|seen| {
                each_skill(seen, |skill| {
                    let known = skill.get("id").and_then(Value::as_str).and_then(Skill::from_id);
                    let lists = |name: &str, wanted: &str| {
                        skill
                            .get(name)
                            .and_then(Value::as_array)
                            .is_some_and(|list| list.iter().any(|mode| mode == wanted))
                    };
                    known.is_none_or(|known| {
                        lists("inputModes", known.request_media_type())
                            && lists("outputModes", known.response_media_type())
                    })
                })
            }),
        ),
    ),
    should(
        "card.search-and-lead",
        "search and leads are offered",
        "AAP g",
        law(|seen| {
            member(seen, "skills", |value| {
                let has = |id: &str| {
                    value.as_array().is_some_and(|list| {
                        list.iter().any(|skill| skill.get("id").and_then(Value::as_str) == Some(id))
                    })
                };
                has("inventory.search") && has("lead.submit")
            })
        }),
    ),
    must("card.skills-served", "each skill on the card is served", "AAP g (seed 003)", law(skills_served)),
    must(
        "card.contract-served",
        "the contract on the card is the one that the interface serves",
        "AAP a, g",
        law(contract_served),
    ),
    must(
        "card.security-form",
        "securityRequirements is a list of objects with schemes",
        "AAP g",
        law(|seen| {
            optional(seen, "securityRequirements", |value| {
                value.as_array().is_some_and(|list| {
                    list.iter().all(|r| {
                        r.as_object()
                            .is_some_and(|r| r.is_empty() || r.get("schemes").is_some_and(Value::is_object))
                    })
                })
            })
        }),
    ),
    only(
        Applies::FROM_2_0,
        should(
            "card.no-retired-security",
            "security, the name of old, is not on the card",
            "AAP g, j 35",
            law(|seen| absent(seen, "security")),
        ),
    ),
    should(
        "card.no-0.3-members",
        "url and preferredTransport of A2A 0.3 are not at the card's root",
        "INTEROP 14",
        law(|seen| absent(seen, "preferredTransport")),
    ),
];

fn is_text(value: &Value) -> bool {
    value.as_str().is_some_and(|text| !text.is_empty())
}

fn is_texts(value: &Value) -> bool {
    value.as_array().is_some_and(|list| !list.is_empty() && list.iter().all(Value::is_string))
}

fn has_params(entry: &Value) -> bool {
    entry.get("params").and_then(Value::as_object).is_some_and(|params| !params.is_empty())
}

/// The interface that AAP goes through.
fn is_ours(interface: &Value) -> bool {
    let is = |name: &str, wanted: &str| interface.get(name).and_then(Value::as_str) == Some(wanted);
    is("protocolBinding", "JSONRPC") && is("protocolVersion", "1.0")
}

fn with_card(seen: &Evidence, broken: impl Fn(&CardSeen, &Evidence) -> Option<String>) -> Finding {
    match &seen.card {
        None => Finding::not_run("no card was read"),
        Some(card) => {
            broken(card, seen).map_or(Finding::Pass, |why| Finding::fail(format!("{}: {why}", card.url)))
        }
    }
}

fn with_json(seen: &Evidence, broken: impl Fn(&Value, &CardSeen) -> Option<String>) -> Finding {
    match seen.card.as_ref().and_then(|card| Some((card, card.card()?))) {
        None => Finding::not_run("no card was read"),
        Some((card, json)) => {
            broken(json, card).map_or(Finding::Pass, |why| Finding::fail(format!("{}: {why}", card.url)))
        }
    }
}

fn shown(value: Option<&Value>) -> String {
    let text = value.map_or_else(|| "absent".to_owned(), Value::to_string);
    text.chars().take(200).collect()
}

fn member(seen: &Evidence, name: &str, keeps: impl Fn(&Value) -> bool) -> Finding {
    with_json(seen, |card, _| {
        let value = card.get(name);
        (!value.is_some_and(&keeps)).then(|| format!("{name} is {}", shown(value)))
    })
}

fn optional(seen: &Evidence, name: &str, keeps: impl Fn(&Value) -> bool) -> Finding {
    with_json(seen, |card, _| {
        let value = card.get(name)?;
        (!keeps(value)).then(|| format!("{name} is {}", shown(Some(value))))
    })
}

fn absent(seen: &Evidence, name: &str) -> Finding {
    with_json(seen, |card, _| card.get(name).map(|value| format!("{name} is {}", shown(Some(value)))))
}

fn interface(seen: &Evidence, keeps: impl Fn(&Address) -> bool) -> Finding {
    with_json(seen, |card, _| {
        let list = card.get("supportedInterfaces").and_then(Value::as_array)?;
        let url = list.iter().find(|interface| is_ours(interface))?.get("url");
        let address = url.and_then(Value::as_str).and_then(|url| Address::parse(url).ok());
        (!address.is_some_and(|address| keeps(&address))).then(|| format!("url is {}", shown(url)))
    })
}

fn not_modified(seen: &Evidence) -> Finding {
    let Some(card) = &seen.card else { return Finding::not_run("no card was read") };
    match &card.again {
        None => Finding::not_run("the card has no ETag"),
        Some((304, _)) => Finding::Pass,
        Some((_, etag)) if etag.is_some() && *etag != card.etag => {
            Finding::not_run("the card changed between two fetches")
        }
        Some((status, _)) => {
            Finding::fail(format!("{}: a fetch with If-None-Match was answered with HTTP {status}", card.url))
        }
    }
}

fn vendor_modes(seen: &Evidence) -> Finding {
    with_json(seen, |card, _| {
        let modes =
            ["defaultInputModes", "defaultOutputModes"].iter().filter_map(|name| card.get(name)?.as_array());
        let bare = modes.flatten().filter_map(Value::as_str).find(|mode| !mode.contains("vnd.autoagent."));
        bare.map(|mode| format!("a mode is {mode:?}"))
    })
}

fn extensions(card: &Value) -> &[Value] {
    card.pointer("/capabilities/extensions").and_then(Value::as_array).map(Vec::as_slice).unwrap_or_default()
}

fn uri(extension: &Value) -> &str {
    extension.get("uri").and_then(Value::as_str).unwrap_or_default()
}

fn one_contract(seen: &Evidence) -> Finding {
    with_json(seen, |card, _| {
        let known = extensions(card).iter().map(uri).filter(|uri| uri.contains("autoagentprotocol."));
        let uris: Vec<_> = known.collect();
        (uris.len() != 1).then(|| format!("the URIs of AAP are {uris:?}"))
    })
}

fn entry(seen: &Evidence, keeps: impl Fn(&Value) -> bool) -> Finding {
    with_json(seen, |card, _| {
        let entry =
            extensions(card).iter().find(|extension| Contract::from_extension_uri(uri(extension)).is_some());
        (!entry.is_some_and(&keeps)).then(|| format!("the entry is {}", shown(entry)))
    })
}

fn each_skill(seen: &Evidence, keeps: impl Fn(&Value) -> bool) -> Finding {
    with_json(seen, |card, _| {
        let skills = card.get("skills").and_then(Value::as_array)?;
        let wrong = skills.iter().find(|skill| !keeps(skill));
        wrong.map(|skill| format!("the skill {}", shown(Some(skill))))
    })
}

/// Refusals with UNSUPPORTED_SKILL, on all calls of a skill that the card lists.
fn skills_served(seen: &Evidence) -> Finding {
    let unsupported =
        |exchange: &&super::super::evidence::Exchange| exchange.typed_code() == Some("UNSUPPORTED_SKILL");
    let mut breaches = Vec::new();
    let mut count = 0;
    for skill in Skill::ALL {
        let calls: Vec<_> =
            seen.exchanges.iter().filter(|e| e.is_ordinary && e.skill == Some(skill)).collect();
        count += calls.iter().filter(|exchange| exchange.unjudgeable().is_none()).count();
        if !calls.is_empty() && calls.iter().all(unsupported) {
            breaches.push(format!("the card offers {skill}; {}", calls[0].quote()));
        }
    }
    for exchange in seen.all("card.skill ").filter(unsupported) {
        breaches.push(format!("the card offers it; {}", exchange.quote()));
    }
    Finding::of(breaches, count, "no call of a skill was answered")
}

fn contract_served(seen: &Evidence) -> Finding {
    let calls: Vec<_> = seen.exchanges.iter().filter(|exchange| exchange.is_ordinary).collect();
    let judged = calls.iter().filter(|exchange| exchange.unjudgeable().is_none());
    let refused: Vec<_> =
        calls.iter().filter(|exchange| matches!(exchange.error_number(), Some(-32008 | -32009))).collect();
    let count = judged.count();
    if count > 0 && refused.len() == count {
        return Finding::fail(format!("every ordinary call is refused; {}", refused[0].quote()));
    }
    Finding::of(Vec::new(), count, "no call was answered")
}
