//! What the server says of itself and of its tools (BINDINGS b.2, c.2).

use serde_json::{Map, Value, json};

use super::{LEGACY, SERVER_NAME, VERSIONS, tool_name};
use crate::protocol::contract::Contract;
use crate::protocol::schema::{Direction, file_name, payload_schema};
use crate::protocol::skill::Skill;

/// How a language model is to use the tools.
const INSTRUCTIONS: &str = "The tools of one car dealer (Auto Agent Protocol). Every argument object names its type. Search the \
    stock before you speak of it, take prices and status from the answer as they stand, and look a vehicle up again before a \
    lead. Send a lead only with the consent of the person whom it is about, given for this dealer, and with an \
    idempotency_key, so that sending it again makes no second one. After RATE_LIMITED wait for details.retry_after_ms.";

/// The members of the result of `server/discover`, but for those that every result has.
pub fn discovered() -> Vec<u8> {
    members(&json!({
        "supportedVersions": VERSIONS,
        "capabilities": { "tools": {} },
        "instructions": INSTRUCTIONS,
    }))
}

/// The members of the result of `initialize` for a dealer of this name: the revision asked for if it is one with a handshake,
/// else the newest of those.
pub fn initialize(requested: Option<&str>, dealer_name: &str) -> Vec<u8> {
    let known = LEGACY.iter().find(|known| requested == Some(**known));
    members(&json!({
        "protocolVersion": known.unwrap_or(&LEGACY[0]),
        "capabilities": { "tools": {} },
        "serverInfo": {
            "name": SERVER_NAME,
            "title": format!("{dealer_name} (simulated)"),
            "version": env!("CARGO_PKG_VERSION"),
        },
        "instructions": INSTRUCTIONS,
    }))
}

/// The members of the result of `tools/list`: all tools on one page, always in the same order.
pub fn tool_list(contract: Contract, offered: &[Skill]) -> Vec<u8> {
    members(&json!({ "tools": tools(contract, offered) }))
}

/// The text of an object without its braces.
fn members(object: &Value) -> Vec<u8> {
    let text = object.to_string();
    text.as_bytes()[1..text.len() - 1].to_vec()
}

/// The tools, one for each skill offered, in the order in which a card lists them.
pub fn tools(contract: Contract, offered: &[Skill]) -> Vec<Value> {
    let offered = Skill::ALL.into_iter().filter(|skill| offered.contains(skill));
    offered.map(|skill| tool(contract, skill)).collect()
}

fn tool(contract: Contract, skill: Skill) -> Value {
    let is_read = skill != Skill::LeadSubmit;
    let (title, description) = words(skill);
    let schema_url = |direction| format!("{}{}", contract.schema_base_url, file_name(skill, direction));
    json!({
        "name": tool_name(skill),
        "title": title,
        "description": description,
        "inputSchema": input_schema(contract, skill),
        // What a client validates: an error must be as valid as a response, or it is hidden from whoever asked.
        "outputSchema": {
            "type": "object",
            "required": ["type"],
            "properties": { "type": { "type": "string", "enum": [skill.response_type(), "aap.error"] } },
        },
        "annotations": {
            "title": title,
            "readOnlyHint": is_read,
            "destructiveHint": false,
            // A lead is, with an idempotency_key alone.
            "idempotentHint": is_read,
            "openWorldHint": false,
            "aap_skill_id": skill.id(),
            "aap_request_type": skill.request_type(),
            "aap_response_type": skill.response_type(),
            "aap_response_schema": schema_url(Direction::Response),
        },
        // The same where typed SDKs keep it.
        "_meta": {
            "org.autoagentprotocol/skill_id": skill.id(),
            "org.autoagentprotocol/request_type": skill.request_type(),
            "org.autoagentprotocol/response_type": skill.response_type(),
            "org.autoagentprotocol/request_schema": schema_url(Direction::Request),
            "org.autoagentprotocol/response_schema": schema_url(Direction::Response),
        },
    })
}

/// The request's schema, as hosts can bear it: an object at its root, with nothing there that composes schemas (some hosts drop
/// such a tool, others all of them), no reference, and no `$id`, by which validators would keep it over a change. What is left
/// out here is still enforced.
fn input_schema(contract: Contract, skill: Skill) -> Value {
    let mut schema = payload_schema(contract, skill, Direction::Request);
    if let Value::Object(members) = &mut schema {
        for keyword in ["$id", "anyOf", "allOf", "oneOf"] {
            members.remove(keyword);
        }
    }
    split_types(&mut schema);
    schema
}

/// Writes each list of types as alternatives of one type each: what maps schemas onto a dialect with single types (some models'
/// functions) can then keep them.
fn split_types(schema: &mut Value) {
    match schema {
        Value::Object(members) => {
            members.values_mut().for_each(split_types);
            if let Some(Value::Array(types)) = members.get("type") {
                let alternative = |kind: &Value| match kind.as_str() {
                    Some("null") => json!({ "type": kind }),
                    _ => Value::Object(Map::from_iter(members.clone().into_iter().map(|(name, value)| {
                        let value = if name == "type" { kind.clone() } else { value };
                        (name, value)
                    }))),
                };
                let alternatives: Vec<Value> = types.iter().map(alternative).collect();
                *schema = json!({ "anyOf": alternatives });
            }
        }
        Value::Array(items) => items.iter_mut().for_each(split_types),
        _ => {}
    }
}

fn words(skill: Skill) -> (&'static str, &'static str) {
    match skill {
        Skill::DealerInformation => (
            "Store profile",
            "The dealer group and its rooftops: addresses, opening hours, contacts and usual fees. Needs nothing but its type.",
        ),
        Skill::InventoryFacets => (
            "Inventory facets",
            "How many vehicles there are of each make, model, year, condition and so on, and the ranges of prices and \
             mileage, for any filter. Ask it to learn which values a search can use.",
        ),
        Skill::InventorySearch => (
            "Inventory search",
            "Vehicles on offer: filtered, sorted and paged, each with price, status and the time when that was last true. \
             Every filter may be left out.",
        ),
        Skill::InventoryVehicle => {
            ("Vehicle detail", "One vehicle with all that is known of it. Give vin, stock or vehicle_id.")
        }
        Skill::LeadSubmit => (
            "Submit lead",
            "Sends the dealer a person's wish: to be contacted, to drive a vehicle, to trade one in. Needs the customer's \
             names with email or phone, the source_agent, and the consent of that person: its wording, when it was given, \
             and the channels it allows. Give an idempotency_key; with the same one the same lead is never made twice.",
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls `look` with every object below a value and the keyword that it stands under.
    fn walk(value: &Value, look: &mut dyn FnMut(&serde_json::Map<String, Value>)) {
        match value {
            Value::Object(members) => {
                look(members);
                members.values().for_each(|value| walk(value, look));
            }
            Value::Array(items) => items.iter().for_each(|item| walk(item, look)),
            _ => {}
        }
    }

    #[test]
    fn every_schema_has_an_object_at_its_root_and_stands_alone() {
        for contract in Contract::ALL {
            for tool in tools(contract, &Skill::ALL) {
                for name in ["inputSchema", "outputSchema"] {
                    let schema = &tool[name];
                    assert_eq!(schema["type"], "object", "{schema}");
                    for keyword in ["anyOf", "allOf", "oneOf", "$id"] {
                        assert!(schema.get(keyword).is_none(), "{keyword} in {schema}");
                    }
                    walk(schema, &mut |members| {
                        assert!(!members.contains_key("$ref") && !members.contains_key("x-mcp-header"));
                        assert!(!members.get("type").is_some_and(Value::is_array), "{members:?}");
                    });
                }
            }
        }
    }

    #[test]
    fn tools_are_those_offered_in_one_order() {
        let offered = [Skill::LeadSubmit, Skill::InventorySearch];
        let names: Vec<_> = tools(Contract::V3_0, &offered).iter().map(|tool| tool["name"].clone()).collect();
        assert_eq!(names, ["aap_inventory_search", "aap_lead_submit"]);
    }

    #[test]
    fn a_handshake_settles_on_a_revision_that_has_one() {
        let said = |asked: Option<&str>| {
            let text = [b"{", &initialize(asked, "Harbor")[..], b"}"].concat();
            serde_json::from_slice::<Value>(&text).unwrap()["protocolVersion"].clone()
        };
        assert_eq!(said(Some("2025-06-18")), "2025-06-18");
        for other in [Some("2026-07-28"), Some("1999-01-01"), None] {
            assert_eq!(said(other), "2025-11-25");
        }
    }
}
