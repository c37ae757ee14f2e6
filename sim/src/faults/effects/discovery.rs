//! What may be wrong with the agent card (INTEROP 12, 14, 15).

use serde_json::{Value, json};

use super::http::{gateway, unset};
use super::reply::{Members, edit, set, take};
use super::{breach, breach_from_2_0, duration, lawful, text};
use crate::faults::draw::Draw;
use crate::faults::effect::{AnswerContext, Apply, Args, EffectInfo, HttpOverride};
use crate::protocol::Contract;

const FAMILY: &str = "discovery";

pub(super) static EFFECTS: &[EffectInfo] = &[
    lawful(
        FAMILY,
        "card_missing",
        &[],
        "the card is a 404 with a page of HTML",
        Apply::RefineCard(|args, _, _, _| gateway(404, "Not Found", args)),
    ),
    lawful(
        FAMILY,
        "card_server_error",
        &[],
        "the card is a 500 with a page of HTML",
        Apply::RefineCard(|args, _, _, _| gateway(500, "Internal Server Error", args)),
    ),
    lawful(
        FAMILY,
        "card_redirect",
        &[text("location", "\"/card.json\"", "the value of Location")],
        "the card is a 301 to another place",
        Apply::RefineCard(|args, _, _, _| HttpOverride {
            status: Some(301),
            headers: vec![("location", args.text("location").chars().filter(|c| !c.is_control()).collect())],
            body: Some(Vec::new()),
            ..HttpOverride::default()
        }),
    ),
    lawful(
        FAMILY,
        "card_slow",
        &[duration("delay", "3s", "the delay")],
        "the card comes late; only discovery waits",
        Apply::Delay(|args, _, _| std::time::Duration::from_nanos(args.duration_ns("delay"))),
    ),
    lawful(
        FAMILY,
        "card_stale",
        &[text("url", "\"http://127.0.0.1:9/a2a\"", "where the dealer was when the card was made")],
        "the card is an old one: version 0.0.1, Last-Modified and Age of long ago, the interface where it was then",
        Apply::RefineCard(|args, _, _, out| {
            edit(out, |card| set(card, "version", "0.0.1") | set_url(card, args.text("url")));
            HttpOverride {
                headers: vec![
                    ("last-modified", "Thu, 02 Jan 2025 00:00:00 GMT".to_owned()),
                    ("age", "31536000".to_owned()),
                    ("etag", "\"stale\"".to_owned()),
                ],
                ..HttpOverride::default()
            }
        }),
    ),
    breach(
        FAMILY,
        "card_other_contract",
        &[],
        "the card's AAP entry is that of another contract than the endpoint serves",
        Apply::RefineCard(|_, context, _, out| {
            let other = neighbour(context.contract);
            in_entry(out, |entry| {
                if let Some(params) = entry.get_mut("params").and_then(Value::as_object_mut) {
                    set(params, "version", other.version);
                    set(params, "schema_base_url", other.schema_base_url);
                }
                set(entry, "uri", other.extension_uri)
            })
        }),
    ),
    breach_from_2_0(breach(
        FAMILY,
        "card_two_contracts",
        &[],
        "the card has two AAP entries, of two contracts",
        Apply::RefineCard(|_, context, _, out| {
            let other = neighbour(context.contract);
            in_extensions(out, |extensions| {
                let Some(mut second) = extensions.first().cloned() else { return false };
                second["uri"] = json!(other.extension_uri);
                extensions.push(second);
                true
            })
        }),
    )),
    breach(
        FAMILY,
        "card_claims_streaming",
        &[],
        "the card claims streaming, which the endpoint refuses; some SDKs then stream every call",
        Apply::RefineCard(|_, _, _, out| in_capabilities(out, |c| set(c, "streaming", true))),
    ),
    breach(
        FAMILY,
        "card_claims_push",
        &[],
        "the card claims push notifications, which the endpoint refuses",
        Apply::RefineCard(|_, _, _, out| in_capabilities(out, |c| set(c, "pushNotifications", true))),
    ),
    breach(
        FAMILY,
        "card_claims_extended_card",
        &[],
        "the card claims an extended card, which the endpoint refuses",
        Apply::RefineCard(|_, _, _, out| in_capabilities(out, |c| set(c, "extendedAgentCard", true))),
    ),
    breach(
        FAMILY,
        "card_unreachable_url",
        &[text("url", "\"http://[::]:9/a2a\"", "the interface's URL")],
        "the card names an interface that nobody reaches",
        Apply::RefineCard(|args, _, _, out| in_card(out, |card| set_url(card, args.text("url")))),
    ),
    breach(
        FAMILY,
        "card_relative_url",
        &[],
        "the card's interface is a path without scheme and host",
        Apply::RefineCard(|_, _, _, out| in_card(out, |card| set_url(card, "/a2a"))),
    ),
    breach(
        FAMILY,
        "card_version_unserved",
        &[text("version", "\"0.3\"", "the protocolVersion of every interface")],
        "the card offers no interface of A2A 1.0",
        Apply::RefineCard(|args, _, _, out| {
            in_card(out, |card| in_interfaces(card, |i| set(i, "protocolVersion", args.text("version"))))
        }),
    ),
    lawful(
        FAMILY,
        "card_other_interface_first",
        &[],
        "an interface of another binding stands before the JSONRPC one",
        Apply::RefineCard(|_, _, _, out| {
            in_card(out, |card| {
                let Some(list) = card.get_mut("supportedInterfaces").and_then(Value::as_array_mut) else {
                    return false;
                };
                let url = "http://127.0.0.1:9/grpc";
                list.insert(0, json!({ "url": url, "protocolBinding": "GRPC", "protocolVersion": "1.0" }));
                true
            })
        }),
    ),
    breach(
        FAMILY,
        "card_wrong_type",
        &[],
        "\"required\" of the AAP entry is the string \"yes\"; the Python SDK refuses the card",
        Apply::RefineCard(|_, _, _, out| in_entry(out, |entry| set(entry, "required", "yes"))),
    ),
    breach_from_2_0(breach(
        FAMILY,
        "card_extension_optional",
        &[],
        "\"required\" of the AAP entry is false",
        Apply::RefineCard(|_, _, _, out| in_entry(out, |entry| set(entry, "required", false))),
    )),
    breach(
        FAMILY,
        "card_without_extension",
        &[],
        "the card has no AAP entry",
        Apply::RefineCard(|_, _, _, out| {
            in_extensions(out, |extensions| !std::mem::take(extensions).is_empty())
        }),
    ),
    breach(
        FAMILY,
        "card_without_params",
        &[],
        "the AAP entry has no params",
        Apply::RefineCard(|_, _, _, out| in_entry(out, |entry| take(entry, "params"))),
    ),
    lawful(
        FAMILY,
        "card_requires_unknown_extension",
        &[],
        "the card demands a further extension that no buyer knows",
        Apply::RefineCard(|_, _, _, out| {
            in_extensions(out, |extensions| {
                let uri = "https://vendor.example.test/extensions/loyalty/v1";
                extensions.push(json!({ "uri": uri, "description": "Loyalty points.", "required": true }));
                true
            })
        }),
    ),
    breach(
        FAMILY,
        "card_without_skills",
        &[],
        "the card's list of skills is empty",
        Apply::RefineCard(|_, _, _, out| in_card(out, |card| set(card, "skills", json!([])))),
    ),
    breach(
        FAMILY,
        "card_skill_unserved",
        &[],
        "the card offers a skill that the endpoint refuses",
        Apply::RefineCard(|_, _, _, out| {
            in_card(out, |card| {
                let Some(skills) = card.get_mut("skills").and_then(Value::as_array_mut) else { return false };
                let tags = json!(["automotive"]);
                skills.push(json!({ "id": "finance.quote", "name": "Finance quote", "description": "Rates.", "tags": tags }));
                true
            })
        }),
    ),
    lawful(
        FAMILY,
        "card_security_required",
        &[],
        "the card asks for a bearer token that the endpoint never checks",
        Apply::RefineCard(|_, _, _, out| {
            in_card(out, |card| {
                let scheme = json!({ "bearer": { "httpAuthSecurityScheme": { "scheme": "Bearer" } } });
                set(card, "securityRequirements", json!([{ "schemes": { "bearer": { "list": [] } } }]))
                    | set(card, "securitySchemes", scheme)
            })
        }),
    ),
    breach(
        FAMILY,
        "card_03_shape",
        &[],
        "the card has the shape of A2A 0.3: url, preferredTransport and protocolVersion at its root",
        Apply::RefineCard(|_, _, _, out| in_card(out, as_03)),
    ),
    breach(
        FAMILY,
        "card_empty_object",
        &[],
        "the card is {}",
        Apply::RefineCard(|_, _, _, out| replace(out, b"{}")),
    ),
    breach(
        FAMILY,
        "card_empty_body",
        &[],
        "the card is an empty body",
        Apply::RefineCard(|_, _, _, out| replace(out, b"")),
    ),
    breach(
        FAMILY,
        "card_not_json",
        &[],
        "HTTP 200 with a page of HTML, as single-page sites answer any path",
        Apply::RefineCard(|_, _, _, out| {
            replace(out, b"<!DOCTYPE html>\n<html><body><div id=\"app\"></div></body></html>\n");
            HttpOverride {
                headers: vec![("content-type", "text/html".to_owned())],
                ..HttpOverride::default()
            }
        }),
    ),
    breach(
        FAMILY,
        "card_truncated",
        &[],
        "the card ends in the middle",
        Apply::RefineCard(|_, _, _, out| {
            out.truncate(out.len() / 2);
            HttpOverride::default()
        }),
    ),
    lawful(
        FAMILY,
        "card_wrong_content_type",
        &[],
        "the card comes as text/plain",
        Apply::RefineCard(|_, _, _, _| HttpOverride {
            headers: vec![("content-type", "text/plain".to_owned())],
            ..HttpOverride::default()
        }),
    ),
    lawful(
        FAMILY,
        "card_without_caching",
        &[],
        "the card has neither ETag nor Cache-Control nor Last-Modified",
        Apply::RefineCard(|_, _, _, _| unset(&["etag", "cache-control", "last-modified"])),
    ),
    lawful(
        FAMILY,
        "card_changes",
        &[],
        "every fetch gives a card of another version and ETag",
        Apply::RefineCard(changing),
    ),
];

fn in_card(out: &mut Vec<u8>, change: impl FnMut(&mut Members) -> bool) -> HttpOverride {
    edit(out, change);
    HttpOverride::default()
}

fn in_capabilities(out: &mut Vec<u8>, mut change: impl FnMut(&mut Members) -> bool) -> HttpOverride {
    in_card(out, |card| card.get_mut("capabilities").and_then(Value::as_object_mut).is_some_and(&mut change))
}

fn in_extensions(out: &mut Vec<u8>, mut change: impl FnMut(&mut Vec<Value>) -> bool) -> HttpOverride {
    in_capabilities(out, |capabilities| {
        capabilities.get_mut("extensions").and_then(Value::as_array_mut).is_some_and(&mut change)
    })
}

/// The newest contract that is not served.
fn neighbour(served: Contract) -> Contract {
    Contract::ALL.into_iter().rev().find(|contract| *contract != served).unwrap_or(served)
}

/// Changes the AAP entry, the first of the card's extensions.
fn in_entry(out: &mut Vec<u8>, mut change: impl FnMut(&mut Members) -> bool) -> HttpOverride {
    in_extensions(out, |extensions| {
        extensions.first_mut().and_then(Value::as_object_mut).is_some_and(&mut change)
    })
}

fn in_interfaces(card: &mut Members, mut change: impl FnMut(&mut Members) -> bool) -> bool {
    let Some(list) = card.get_mut("supportedInterfaces").and_then(Value::as_array_mut) else { return false };
    list.iter_mut().filter_map(Value::as_object_mut).fold(false, |any, interface| change(interface) | any)
}

fn set_url(card: &mut Members, url: &str) -> bool {
    in_interfaces(card, |interface| set(interface, "url", url))
}

fn as_03(card: &mut Members) -> bool {
    let Some(interfaces) = card.remove("supportedInterfaces") else { return false };
    set(card, "url", interfaces[0]["url"].clone());
    set(card, "preferredTransport", "JSONRPC");
    set(card, "protocolVersion", "0.3.0")
}

fn replace(out: &mut Vec<u8>, body: &[u8]) -> HttpOverride {
    out.clear();
    out.extend_from_slice(body);
    HttpOverride::default()
}

fn changing(_: &Args, _: &AnswerContext<'_>, draw: &mut Draw, out: &mut Vec<u8>) -> HttpOverride {
    let patch = draw.word() % 1_000_000;
    in_card(out, |card| set(card, "version", format!("0.1.{patch}")));
    HttpOverride { headers: vec![("etag", format!("\"changing-{patch}\""))], ..HttpOverride::default() }
}
