//! The agent card (AAP digest, section g; A2A 1.0, section 4.4).

use serde_json::{Map, Value, json};

use super::discovery::{self, Facts, Paper};
use super::payload::{MAX_REQUEST_LIMIT, SORT_FIELDS};
use super::schema::{Direction, file_name};
use super::shape::Shape;
use super::skill::Skill;
use crate::auth::declare;

/// The provider that the card of a simulator names. With the `Server` header it proves to a load generator that leads
/// sent here reach nobody.
pub const SIMULATOR_PROVIDER: &str = "dealer-sim";
/// Where a card lives.
pub const PATH: &str = "/.well-known/agent-card.json";

/// What makes one issue of a card.
#[derive(Debug, Clone, Copy, Default)]
pub struct Issue {
    /// What the card's version id is derived from: 16 bytes that change when the card does.
    pub fingerprint: [u8; 16],
    /// Milliseconds since 1970 at which the card took force.
    pub issued_at_ms: u64,
}

/// Builds the card.
pub fn agent_card(facts: &Facts<'_>, issue: Issue) -> Value {
    let modes = |media_type: fn(Skill) -> &'static str| -> Vec<&'static str> {
        facts.skills.iter().map(|skill| media_type(*skill)).collect()
    };
    let mut card = json!({
        "name": facts.name(),
        "description": "A car dealer that does not exist: synthetic inventory and leads that reach nobody, for testing \
                        buyer agents over the Auto Agent Protocol.",
        "supportedInterfaces": [{
            "url": format!("{}{}", facts.base_url, discovery::A2A_PATH),
            "protocolBinding": "JSONRPC",
            "protocolVersion": super::headers::SERVED_VERSION,
        }],
        "provider": { "organization": SIMULATOR_PROVIDER, "url": facts.base_url },
        "version": env!("CARGO_PKG_VERSION"),
        "capabilities": {
            "streaming": false,
            "pushNotifications": false,
            "extendedAgentCard": false,
            "extensions": [extension(facts, issue)],
        },
        "defaultInputModes": modes(Skill::request_media_type),
        "defaultOutputModes": modes(Skill::response_media_type),
        "skills": facts.skills.iter().map(|skill| skill_entry(*skill)).collect::<Vec<_>>(),
    });
    declare(facts.auth, &mut card);
    card
}

fn extension(facts: &Facts<'_>, issue: Issue) -> Value {
    let mut entry = json!({
        "uri": facts.contract.extension_uri,
        "description": "Automotive retail over A2A: typed requests and responses in the first part of each message.",
        "params": params(facts, issue),
    });
    if facts.contract.card_says_required {
        entry["required"] = json!(true);
    }
    entry
}

fn params(facts: &Facts<'_>, issue: Issue) -> Value {
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
        "id": uuid_v7(issue.issued_at_ms, issue.fingerprint),
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
        members.extend(discovery::card_links(facts).into_iter().map(|(name, link)| (name.to_owned(), link)));
    }
    facts.amendments.apply(Paper::AgentCard.name(), facts.base_url, &mut params);
    params
}

/// What a search may ask, read off the shape that validates it.
fn search_capabilities(facts: &Facts<'_>) -> Value {
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

/// How a skill is told of.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Blurb {
    /// A name for people.
    pub(crate) name: &'static str,
    /// What it does, in a sentence.
    pub(crate) description: &'static str,
    tags: &'static [&'static str],
}

/// How a skill is told of, on the card and wherever else it is offered.
pub(crate) fn blurb(skill: Skill) -> Blurb {
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
    Blurb { name, description, tags }
}

fn skill_entry(skill: Skill) -> Value {
    let Blurb { name, description, tags } = blurb(skill);
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
    use super::super::contract::Contract;
    use super::super::discovery::tests::facts as newest;
    use super::super::discovery::{Amendments, Paper};
    use super::*;

    const ISSUE: Issue = Issue { fingerprint: [0xff; 16], issued_at_ms: 1_767_225_600_000 };

    fn facts(contract: Contract) -> Facts<'static> {
        Facts { contract, doors: contract.bindings, ..newest("http://127.0.0.1:8080") }
    }

    #[test]
    fn a_card_has_the_required_members_and_one_aap_entry() {
        for contract in Contract::ALL {
            let card = agent_card(&facts(contract), ISSUE);
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
            let millis = format!("{:012x}", ISSUE.issued_at_ms);
            let id = format!("{}-{}-7fff-bfff-ffffffffffff", &millis[..8], &millis[8..]);
            assert_eq!(entry["params"]["id"], id);
            for link in ["search", "mcp", "pap", "llms"] {
                assert_eq!(entry["params"][link].is_object(), contract.card_has_links, "{link}");
            }
        }
    }

    #[test]
    fn a_link_of_another_name_is_corrected_by_the_user() {
        let patch =
            r#"{"card": {"pap": null, "personal_agent": {"openapi": "{base_url}/pap/openapi.json"}}}"#;
        let amendments = Amendments::parse(patch).unwrap();
        let facts = Facts { amendments: &amendments, ..facts(Contract::V3_0) };
        let params = &agent_card(&facts, ISSUE)["capabilities"]["extensions"][0]["params"];
        let url = format!("http://127.0.0.1:8080{}", Paper::Openapi.path());
        assert!(params["pap"].is_null() && params["personal_agent"]["openapi"] == url, "{params}");
    }

    #[test]
    fn search_capabilities_follow_the_contract() {
        let filters = search_capabilities(&facts(Contract::V3_0))["filters"].clone();
        assert!(filters.as_array().unwrap().iter().any(|name| name == "status"));
        let filters = search_capabilities(&facts(Contract::V2_0))["filters"].clone();
        assert!(!filters.as_array().unwrap().iter().any(|name| name == "status"));
    }
}
