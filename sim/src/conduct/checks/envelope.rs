//! Discovery and the envelope.

use serde_json::Value;

use super::super::facts::{Kind, print_of};
use super::super::judge::{CardSeen, Case, Client, quote};
use super::super::rules::R;
use crate::journal::{Outcome, Sent};
use crate::protocol::Binding;
use crate::protocol::error::AapCode;

/// Requests of one client that may be under way and are remembered.
const MOST_IN_FLIGHT: usize = 256;

/// Methods of A2A 1.0 that AAP cards do not declare (section c).
const OPTIONAL: [&str; 10] = [
    "SendStreamingMessage",
    "SubscribeToTask",
    "GetExtendedAgentCard",
    "CreateTaskPushNotificationConfig",
    "GetTaskPushNotificationConfig",
    "ListTaskPushNotificationConfigs",
    "DeleteTaskPushNotificationConfig",
    "GetTask",
    "ListTasks",
    "CancelTask",
];

pub(super) fn discovery(case: &mut Case<'_>, client: &mut Client) {
    let facts = case.facts;
    let Some(relation) = client.relations.get_mut(&facts.entry.dealer) else { return };
    match facts.kind {
        Kind::Card => {
            if !matches!(facts.outcome(), Outcome::Http(200 | 304)) {
                return;
            }
            // What the client has of a card that did not come as it should is not known.
            let is_altered = facts.is_made_up() || facts.is_garbled() || !facts.is_delivered();
            // Of a card that a fault altered, the caching too may have been.
            if let Some(CardSeen { seq, ended, .. }) = relation.card.filter(|card| !card.is_altered) {
                let age = facts.arrived.saturating_sub(ended);
                let is_old = age >= case.card_fresh_ns;
                let good_for = case.card_fresh_ns / 1_000_000_000;
                case.check(R::CardFresh, is_old, &[seq], || {
                    format!(
                        "the card was fetched again after {:.1} s; it said that it is good for {good_for} s",
                        age as f64 / 1e9
                    )
                });
                if is_old {
                    case.check(R::CardRevalidated, facts.head().conditional, &[seq], || {
                        "the card was fetched again without If-None-Match".to_owned()
                    });
                }
            }
            relation.card = Some(CardSeen { seq: facts.seq(), ended: facts.ended, is_altered });
        }
        Kind::Other => {
            let method = facts.method();
            if facts.is_made_up() {
                return;
            }
            if facts.outcome() == Outcome::Http(415) {
                case.check(R::HttpType, false, &[], || {
                    "the body was sent with another Content-Type".to_owned()
                });
            } else if facts.outcome() == Outcome::Http(405) {
                case.check(R::HttpMethod, false, &[], || {
                    format!("{} was sent to the endpoint", quote(method))
                });
            }
        }
        Kind::Call => {
            if relation.calls == 0 {
                let is_kept = relation.card.is_some();
                case.check_absent(R::CardFirst, is_kept, &[], || {
                    "this is the first call to the dealer, and its card was never fetched".to_owned()
                });
            }
            // A call on a card that is still fresh did without fetching it.
            if let Some(card) = relation.card.filter(|card| !card.is_altered && relation.calls > 0)
                && facts.arrived.saturating_sub(card.ended) < case.card_fresh_ns
            {
                case.check(R::CardFresh, true, &[], String::new);
            }
            relation.calls += 1;
            let is_altered = relation.card.is_some_and(|card| card.is_altered);
            case.check(R::HttpType, true, &[], String::new);
            case.check(R::HttpMethod, true, &[], String::new);
            let method = facts.method();
            let asks_for_more = OPTIONAL.contains(&method);
            if !(asks_for_more && is_altered) {
                case.check(R::CardCapabilities, !asks_for_more, &[], || {
                    format!("{method} was called; the card does not declare it")
                });
            }
            let is_unsupported = facts.aap() == Some(AapCode::UnsupportedSkill);
            let may_be_advertised = is_altered || facts.is_made_up();
            if (facts.skill().is_some() || is_unsupported) && !(is_unsupported && may_be_advertised) {
                case.check(R::CardSkills, !is_unsupported, &[], || {
                    let skill = facts.payload().and_then(|payload| payload["type"].as_str()).unwrap_or("?");
                    format!("{} was called; the card does not list it", quote(skill))
                });
            }
        }
    }
}

pub(super) fn envelope(case: &mut Case<'_>, client: &mut Client) {
    let facts = case.facts;
    if facts.is_cut() {
        for rule in
            [R::JsonRpc, R::RequestId, R::MessageId, R::OutputModes, R::MediaType, R::Role, R::FirstPart]
        {
            case.unknown(rule);
        }
        return;
    }
    let is_refused = matches!(facts.outcome(), Outcome::Rpc(-32_700 | -32_600)) && !facts.is_made_up();
    // What lacks an id is a rule of its own.
    let has_id = |request: &Value| request["id"].is_string() || request["id"].is_number();
    let lacks_id = |request: &Value| request["jsonrpc"] == "2.0" && !has_id(request);
    let is_rpc = facts
        .request
        .as_ref()
        .is_some_and(|request| request["method"].is_string() && (!is_refused || lacks_id(request)));
    case.check(R::JsonRpc, is_rpc, &[], || "the body is no JSON-RPC 2.0 request".to_owned());
    let head = facts.head();
    if head.version != Sent::Free {
        case.check(R::VersionHeader, head.version == Sent::Right, &[], || match head.version {
            Sent::Absent => "A2A-Version was not sent".to_owned(),
            _ => "A2A-Version was sent with a value other than 1.0".to_owned(),
        });
    }
    let is_optional = OPTIONAL.contains(&facts.method());
    // Whether an operation outside AAP needs the extension is not said (section b).
    let relation = client.relations.get(&facts.entry.dealer);
    let is_altered = relation.and_then(|relation| relation.card).is_some_and(|card| card.is_altered);
    if !is_optional && !is_altered && head.extension != Sent::Free {
        case.check(R::ExtensionHeader, head.extension == Sent::Right, &[], || match head.extension {
            Sent::Absent => "A2A-Extensions was not sent".to_owned(),
            _ => "A2A-Extensions does not have the exact URI of the card's AAP extension".to_owned(),
        });
    }
    let Some(request) = facts.request.as_ref().filter(|_| is_rpc) else { return };
    let id = &request["id"];
    case.check(R::RequestId, id.is_string() || id.is_number(), &[], || match id {
        Value::Null => "there is no id".to_owned(),
        _ => "the id is neither a string nor a number".to_owned(),
    });
    in_flight(case, client, id);
    let is_old = speaks_0_3(request, facts.method());
    case.check(R::Dialect, !is_old, &[], || {
        format!(
            "the request is one of A2A 0.3 (method {}, kind members, or a role in small letters)",
            quote(facts.method())
        )
    });
    if is_old || is_optional {
        return;
    }
    let is_known = facts.method() == "SendMessage";
    case.check(R::KnownMethod, is_known, &[], || format!("the method is {}", quote(facts.method())));
    if is_known {
        message(case, request);
    }
}

/// Notes a call of another interface as under way; where that has ids, they are told apart as JSON-RPC's.
pub(super) fn under_way(case: &mut Case<'_>, client: &mut Client) {
    match case.facts.request.as_ref().map(|request| &request["id"]) {
        Some(id) if case.facts.entry.binding == Some(Binding::Mcp) => in_flight(case, client, id),
        _ => put_in_flight(case, client, format!("entry {}", case.facts.seq())),
    }
}

fn in_flight(case: &mut Case<'_>, client: &mut Client, id: &Value) {
    let facts = case.facts;
    if id.is_null() {
        return;
    }
    client.in_flight.retain(|(_, ended, _)| *ended > facts.arrived);
    // The ids of two dealers' calls need not differ, nor those of two interfaces.
    let id = match facts.entry.binding {
        Some(Binding::Mcp) => format!("{} mcp {id}", facts.entry.dealer),
        _ => format!("{} {id}", facts.entry.dealer),
    };
    let other = client.in_flight.iter().find(|(known, _, _)| *known == id).map(|(_, _, seq)| *seq);
    case.check(R::IdInFlight, other.is_none(), other.as_slice(), || {
        "a request with this id was still under way".to_owned()
    });
    put_in_flight(case, client, id);
}

fn put_in_flight(case: &Case<'_>, client: &mut Client, id: String) {
    let facts = case.facts;
    client.in_flight.retain(|(_, ended, _)| *ended > facts.arrived);
    if client.in_flight.len() == MOST_IN_FLIGHT {
        client.in_flight.pop_front();
    }
    client.in_flight.push_back((id, facts.ended, facts.seq()));
}

fn speaks_0_3(request: &Value, method: &str) -> bool {
    let message = &request["params"]["message"];
    let has_kind = |value: &Value| value.get("kind").is_some();
    method.contains('/')
        || has_kind(message)
        || message["parts"].as_array().is_some_and(|parts| parts.iter().any(has_kind))
        || matches!(message["role"].as_str(), Some("user" | "agent"))
}

fn message(case: &mut Case<'_>, request: &Value) {
    let facts = case.facts;
    let message = &request["params"]["message"];
    let part = &message["parts"][0];
    case.check(R::MessageId, facts.said("messageId").is_some(), &[], || "there is no messageId".to_owned());
    case.check(R::Role, message["role"] == "ROLE_USER", &[], || {
        format!("the role is {}", shown(&message["role"]))
    });
    case.check(R::FirstPart, part["data"].is_object(), &[], || {
        "the first part has no data object".to_owned()
    });
    let is_kept = message.get("taskId").is_none_or(|id| id == "");
    case.check(R::NoTask, is_kept, &[], || format!("taskId {} was sent", shown(&message["taskId"])));
    let Some(skill) = facts.named_skill() else { return };
    let wanted = skill.request_media_type();
    case.check(R::MediaType, part["mediaType"] == wanted, &[], || {
        format!("mediaType is {}; {} has {wanted:?}", shown(&part["mediaType"]), skill.id())
    });
    let wanted = skill.response_media_type();
    let modes = &request["params"]["configuration"]["acceptedOutputModes"];
    let is_kept = modes.as_array().is_some_and(|modes| modes.iter().any(|mode| mode == wanted));
    case.check(R::OutputModes, is_kept, &[], || {
        format!("acceptedOutputModes is {}; {} is answered as {wanted:?}", shown(modes), skill.id())
    });
}

fn shown(value: &Value) -> String {
    if value.is_null() { "absent".to_owned() } else { quote(&value.to_string()) }
}

/// The messageId, judged last: whether it is a retry was seen before.
pub(super) fn remember(case: &mut Case<'_>, client: &mut Client) {
    let facts = case.facts;
    let (Some(id), Some(payload)) = (facts.said("messageId"), facts.payload()) else { return };
    let name = format!("{} {id}", facts.entry.dealer);
    let key = crate::stable::stable_hash(9, name.as_bytes());
    let print = print_of(payload, &[]);
    if let Some((seq, before, answered)) = client.messages.get(&key).copied() {
        let is_kept = before == print && !answered;
        case.check(R::MessageIdFresh, is_kept, &[seq], || match before == print {
            false => format!("messageId {} was used before, for another message", quote(id)),
            true => format!("messageId {} was sent again though it had been answered", quote(id)),
        });
    } else {
        case.check(R::MessageIdFresh, true, &[], String::new);
    }
    client.messages.put(key, (facts.seq(), print, facts.is_answered()));
}
