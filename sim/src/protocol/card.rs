//! The agent card (AAP digest, section g; A2A 1.0, section 4.4).

use serde_json::{Map, Value, json};

use super::contract::Contract;
use super::payload::{MAX_REQUEST_LIMIT, SORT_FIELDS};
use super::schema::{Direction, file_name};
use super::shape::Shape;
use super::skill::Skill;
use crate::auth::{Scheme, declare};

/// The provider that the card of a simulator names. With the `Server` header it proves to a load generator that leads
/// sent here reach nobody.
pub const SIMULATOR_PROVIDER: &str = "dealer-sim";
/// Where a card lives.
pub const PATH: &str = "/.well-known/agent-card.json";

/// What a card is made of.
#[derive(Debug, Clone)]
pub struct CardFacts<'a> {
    /// The contract served.
    pub contract: Contract,
    /// The base URL under which the dealer is reached, without a slash at its end.
    pub base_url: &'a str,
    /// The dealer group's name.
    pub dealer_name: &'a str,
    /// The skills offered.
    pub skills: &'a [Skill],
    /// The credentials that are accepted, any one of them; none where everybody is served.
    pub auth: &'a [Scheme],
    /// How many listings a page holds at most.
    pub page_cap: u32,
    /// What the card's version id is derived from: 16 bytes that change when the card does.
    pub fingerprint: [u8; 16],
    /// Milliseconds since 1970 at which the card took force.
    pub issued_at_ms: u64,
}

/// Builds the card.
pub fn agent_card(facts: &CardFacts<'_>) -> Value {
    let modes = |media_type: fn(Skill) -> &'static str| -> Vec<&'static str> {
        facts.skills.iter().map(|skill| media_type(*skill)).collect()
    };
    let mut card = json!({
        "name": format!("{} (simulated)", facts.dealer_name),
        "description": "A car dealer that does not exist: synthetic inventory and leads that reach nobody, for testing \
                        buyer agents over the Auto Agent Protocol.",
        "supportedInterfaces": [{
            "url": format!("{}/a2a", facts.base_url),
            "protocolBinding": "JSONRPC",
            "protocolVersion": super::headers::SERVED_VERSION,
        }],
        "provider": { "organization": SIMULATOR_PROVIDER, "url": facts.base_url },
        "version": env!("CARGO_PKG_VERSION"),
        "capabilities": {
            "streaming": false,
            "pushNotifications": false,
            "extendedAgentCard": false,
            "extensions": [extension(facts)],
        },
        "defaultInputModes": modes(Skill::request_media_type),
        "defaultOutputModes": modes(Skill::response_media_type),
        "skills": facts.skills.iter().map(|skill| skill_entry(*skill)).collect::<Vec<_>>(),
    });
    declare(facts.auth, &mut card);
    card
}

fn extension(facts: &CardFacts<'_>) -> Value {
    let mut entry = json!({
        "uri": facts.contract.extension_uri,
        "description": "Automotive retail over A2A: typed requests and responses in the first part of each message.",
        "params": params(facts),
    });
    if facts.contract.card_says_required {
        entry["required"] = json!(true);
    }
    entry
}

fn params(facts: &CardFacts<'_>) -> Value {
    let base = facts.contract.schema_base_url;
    let skills: Map<String, Value> = facts
        .skills
        .iter()
        .map(|skill| {
            let url = |direction| format!("{base}{}", file_name(*skill, direction));
            let urls = json!({
                "request_schema": url(Direction::Request),
                "response_schema": url(Direction::Response),
            });
            (skill.id().to_owned(), urls)
        })
        .collect();
    let mut params = json!({
        "id": uuid_v7(facts.issued_at_ms, facts.fingerprint),
        "version": facts.contract.version,
        "schema_base_url": base,
        "skills": skills,
    });
    if facts.contract.card_has_links
        && let Value::Object(members) = &mut params
    {
        if facts.skills.contains(&Skill::InventorySearch) {
            members.insert("search".into(), search_capabilities(facts));
        }
        members.insert("llms".into(), json!({ "url": format!("{}/llms.txt", facts.base_url) }));
    }
    params
}

/// What a search may ask, read off the shape that validates it.
fn search_capabilities(facts: &CardFacts<'_>) -> Value {
    let filters: Vec<_> = match super::payload::request(Skill::InventorySearch) {
        Shape::Record(request) => {
            match request.fields.iter().find(|field| field.name == "filters").map(|f| f.shape) {
                Some(Shape::Record(filters)) => filters
                    .fields
                    .iter()
                    .filter(|field| (field.known)(&facts.contract.features))
                    .map(|field| field.name)
                    .collect(),
                _ => Vec::new(),
            }
        }
        _ => Vec::new(),
    };
    json!({
        "filters": filters,
        "sort_fields": SORT_FIELDS,
        "max_limit": i64::from(facts.page_cap).min(MAX_REQUEST_LIMIT),
    })
}

fn skill_entry(skill: Skill) -> Value {
    let (name, description, tags): (_, _, &[&str]) = match skill {
        Skill::DealerInformation => (
            "Store profile",
            "The dealer group and its rooftops: addresses, hours, contacts and default fees.",
            &["dealer", "hours", "locations", "automotive"],
        ),
        Skill::InventoryFacets => (
            "Inventory facets",
            "Counts and ranges over the stock, for any filter.",
            &["inventory", "facets", "automotive"],
        ),
        Skill::InventorySearch => (
            "Inventory search",
            "Filtered, sorted and paged listings.",
            &["inventory", "search", "cars", "motorcycles"],
        ),
        Skill::InventoryVehicle => (
            "Vehicle detail",
            "One listing by VIN, stock number or vehicle_id.",
            &["inventory", "vehicle", "vin"],
        ),
        Skill::LeadSubmit => (
            "Submit lead",
            "A consented lead with an optional vehicle, trade-in and appointment.",
            &["lead", "consent", "appointment"],
        ),
    };
    json!({
        "id": skill.id(),
        "name": name,
        "description": description,
        "tags": tags,
        "inputModes": [skill.request_media_type()],
        "outputModes": [skill.response_media_type()],
    })
}

/// UUID version 7 (RFC 9562, section 5.7) of a time and 16 bytes of which 74 bits are used.
fn uuid_v7(ms: u64, random: [u8; 16]) -> String {
    let mut bytes = random;
    bytes[..6].copy_from_slice(&ms.to_be_bytes()[2..]);
    bytes[6] = 0x70 | (bytes[6] & 0x0f);
    bytes[8] = 0x80 | (bytes[8] & 0x3f);
    let mut text = String::with_capacity(36);
    for (index, byte) in bytes.iter().enumerate() {
        if matches!(index, 4 | 6 | 8 | 10) {
            text.push('-');
        }
        text.push_str(&format!("{byte:02x}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    fn facts(contract: Contract) -> CardFacts<'static> {
        CardFacts {
            contract,
            base_url: "http://127.0.0.1:8080",
            dealer_name: "Harbor",
            skills: &Skill::ALL,
            auth: &[],
            page_cap: 100,
            fingerprint: [0xff; 16],
            issued_at_ms: 1_767_225_600_000,
        }
    }

    #[test]
    fn a_card_has_the_required_members_and_one_aap_entry() {
        for contract in Contract::ALL {
            let card = agent_card(&facts(contract));
            for name in [
                "name",
                "description",
                "supportedInterfaces",
                "version",
                "capabilities",
                "defaultInputModes",
                "defaultOutputModes",
                "skills",
            ] {
                assert!(card.get(name).is_some(), "{name}");
            }
            let entry = &card["capabilities"]["extensions"][0];
            assert_eq!(entry["uri"], contract.extension_uri);
            assert_eq!(entry.get("required").is_some(), !["1.0", "1.2", "1.3"].contains(&contract.name));
            let millis = format!("{:012x}", facts(contract).issued_at_ms);
            let id = format!("{}-{}-7fff-bfff-ffffffffffff", &millis[..8], &millis[8..]);
            assert_eq!(entry["params"]["id"], id);
            assert_eq!(entry["params"]["search"].is_object(), contract.card_has_links);
        }
    }

    #[test]
    fn search_capabilities_follow_the_contract() {
        let filters = search_capabilities(&facts(Contract::V3_0))["filters"].clone();
        assert!(filters.as_array().unwrap().iter().any(|name| name == "status"));
        let filters = search_capabilities(&facts(Contract::V2_0))["filters"].clone();
        assert!(!filters.as_array().unwrap().iter().any(|name| name == "status"));
    }
}
