//! The OpenAPI 3.1 document of the PAP door, written from the shapes that validate the payloads, so that it can say nothing else
//! than they do. Everything it refers to stands in it.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::Facts;
use crate::protocol::card;
use crate::protocol::error::{AAP_ERROR_KIND, AAP_ERROR_TYPE, AapCode};
use crate::protocol::mcp;
use crate::protocol::pap::{self, JSON, PROBLEM};
use crate::protocol::schema::{Direction, payload_schema};
use crate::protocol::skill::Skill;

/// The document.
pub fn openapi(facts: &Facts<'_>) -> Value {
    let paths: Map<String, Value> = facts
        .skills
        .iter()
        .map(|skill| (pap::path(*skill).to_owned(), json!({ "post": operation(*skill) })))
        .collect();
    let mut schemas: Map<String, Value> = facts
        .skills
        .iter()
        .flat_map(|skill| Direction::ALL.map(|direction| (*skill, direction)))
        .map(|(skill, direction)| (schema_name(skill, direction), component(facts, skill, direction)))
        .collect();
    schemas.insert("AapError".into(), aap_error());
    schemas.insert("Problem".into(), problem());
    json!({
        "openapi": "3.1.0",
        "info": {
            "title": facts.name(),
            "version": facts.contract.version,
            "summary": "A car dealer that does not exist, for testing agents: its skills as plain JSON over HTTP.",
            "description": "Each operation takes the request object of one skill of the Auto Agent Protocol and answers \
                            with its response object, or with an aap.error. No sign-in. A lead needs the customer's \
                            consent in its `consent`; nothing else takes its place.",
        },
        "jsonSchemaDialect": "https://json-schema.org/draft/2020-12/schema",
        "servers": [{ "url": facts.base_url }],
        "externalDocs": { "description": "The agent card of the same dealer", "url": facts.url(card::PATH) },
        "security": [],
        "tags": [{ "name": "dealer" }, { "name": "inventory" }, { "name": "lead" }],
        "paths": paths,
        "components": { "schemas": schemas },
    })
}

fn reference(name: &str) -> Value {
    json!({ "$ref": format!("#/components/schemas/{name}") })
}

/// Such as `InventorySearchRequest`.
fn schema_name(skill: Skill, direction: Direction) -> String {
    let capital = |word: &str| word[..1].to_ascii_uppercase() + &word[1..];
    let words: String = skill.id().split('.').map(capital).collect();
    words + if direction == Direction::Request { "Request" } else { "Response" }
}

fn component(facts: &Facts<'_>, skill: Skill, direction: Direction) -> Value {
    let mut schema = payload_schema(facts.contract, skill, direction);
    if let Value::Object(members) = &mut schema {
        // Its place in the document names it; an `$id` of its own would move references away from there.
        members.remove("$schema");
        members.remove("$id");
    }
    schema
}

fn operation(skill: Skill) -> Value {
    let blurb = card::blurb(skill);
    let content = |direction, media_type: &str| {
        let schema = json!({ "schema": reference(&schema_name(skill, direction)) });
        Value::Object(Map::from_iter([(JSON.to_owned(), schema.clone()), (media_type.to_owned(), schema)]))
    };
    let mut responses: BTreeMap<String, Value> = errors(skill);
    responses.insert(
        "200".into(),
        json!({
            "description": "What the skill answers",
            "content": content(Direction::Response, skill.response_media_type()),
        }),
    );
    json!({
        "operationId": mcp::tool_name(skill),
        "summary": blurb.name,
        "description": format!("{} {}", blurb.description, usage(skill)),
        "tags": [skill.id().split('.').next().unwrap_or_default()],
        "x-aap-skill": skill.id(),
        "x-aap-safe": skill != Skill::LeadSubmit,
        "requestBody": { "required": true, "content": content(Direction::Request, skill.request_media_type()) },
        "responses": responses,
    })
}

/// What an agent has to know before it calls.
fn usage(skill: Skill) -> &'static str {
    match skill {
        Skill::DealerInformation => "Takes nothing but its type.",
        Skill::InventoryFacets => {
            "Use it to learn which makes, models and prices there are, before a search."
        }
        Skill::InventorySearch => {
            "Every filter narrows; a list is an or. Page with pagination.skip and limit, and order with sort."
        }
        Skill::InventoryVehicle => {
            "Give vin, stock or vehicle_id, as a search answered it. Ask again before you promise price or availability."
        }
        Skill::LeadSubmit => {
            "It reaches the dealer: send it only with the customer's own consent in consent, and with an \
             idempotency_key, so that sending it again makes no second lead."
        }
    }
}

/// The refusals that a skill has of its own, beyond those that any may meet.
fn own_codes(skill: Skill) -> &'static [AapCode] {
    match skill {
        Skill::DealerInformation | Skill::InventoryFacets | Skill::InventorySearch => &[],
        Skill::InventoryVehicle => &[AapCode::VehicleNotFound, AapCode::VehicleUnavailable],
        Skill::LeadSubmit => &[
            AapCode::InvalidConsent,
            AapCode::ContactConsentRequired,
            AapCode::VehicleNotFound,
            AapCode::VehicleUnavailable,
            AapCode::AppointmentTimeUnavailable,
            AapCode::IdempotencyConflict,
        ],
    }
}

/// All that may come instead of an answer, by status.
fn errors(skill: Skill) -> BTreeMap<String, Value> {
    let every = [
        AapCode::SchemaValidationFailed,
        AapCode::MissingRequiredField,
        AapCode::InvalidCondition,
        AapCode::RateLimited,
        AapCode::InternalError,
    ];
    let mut codes: BTreeMap<u16, Vec<&str>> = BTreeMap::new();
    for code in every.iter().chain(own_codes(skill)) {
        codes.entry(pap::status(*code)).or_default().push(code.name());
    }
    codes.entry(pap::NOT_JSON).or_default().push("SCHEMA_VALIDATION_FAILED (the body is no JSON)");
    let typed = codes.into_iter().map(|(status, codes)| {
        let mut said = json!({
            "description": codes.join(", "),
            "content": { JSON: { "schema": reference("AapError") } },
        });
        if status == pap::status(AapCode::RateLimited) {
            let wait = json!({ "description": "Seconds to wait", "required": true,
                               "schema": { "type": "integer", "minimum": 0 } });
            said["headers"] = json!({ "Retry-After": wait });
        }
        (status.to_string(), said)
    });
    let by_http = [
        (406, "Accept names nothing that this answers with"),
        (408, "The body did not come in time"),
        (413, "The body is too large"),
        (415, "The body is none of the media types above"),
    ];
    let untyped = by_http.into_iter().map(|(status, what): (u16, _)| {
        let content = json!({ PROBLEM: { "schema": reference("Problem") } });
        (status.to_string(), json!({ "description": what, "content": content }))
    });
    typed.chain(untyped).collect()
}

/// The typed error (AAP digest, section e): closed, `details` free but for what is known of it.
fn aap_error() -> Value {
    let text = json!({ "type": "string", "minLength": 1 });
    let fault = json!({
        "type": "object",
        "properties": {
            "instanceLocation": { "type": "string", "description": "JSON Pointer into the request object" },
            "keyword": { "type": "string" },
            "error": { "type": "string" },
        },
        "required": ["instanceLocation", "keyword", "error"],
        "additionalProperties": false,
    });
    json!({
        "title": "A skill's refusal",
        "type": "object",
        "properties": {
            "@type": { "const": AAP_ERROR_TYPE },
            "type": { "const": AAP_ERROR_KIND },
            "error_id": text,
            "code": { "type": "string", "enum": AapCode::ALL.map(AapCode::name) },
            "message": text,
            "retryable": { "type": "boolean", "description": "Whether the same request may succeed later" },
            "created_at": { "type": "string", "format": "date-time" },
            "details": {
                "type": "object",
                "properties": {
                    "errors": { "type": "array", "minItems": 1, "items": fault },
                    "retry_after_ms": { "type": "number", "minimum": 0 },
                    "retry_after_seconds": { "type": "number", "minimum": 0 },
                },
            },
        },
        "required": ["@type", "type", "error_id", "code", "message", "retryable", "created_at"],
        "additionalProperties": false,
    })
}

/// RFC 9457, as far as it is used.
fn problem() -> Value {
    json!({
        "title": "A refusal by HTTP itself",
        "type": "object",
        "properties": {
            "type": { "const": "about:blank" },
            "title": { "type": "string", "minLength": 1 },
            "status": { "type": "integer", "minimum": 400, "maximum": 599 },
            "detail": { "type": "string", "minLength": 1 },
        },
        "required": ["title", "status", "detail"],
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::facts;
    use super::*;

    /// Every `$ref` anywhere in a value.
    fn references<'v>(value: &'v Value, found: &mut Vec<&'v str>) {
        match value {
            Value::Array(items) => items.iter().for_each(|item| references(item, found)),
            Value::Object(members) => {
                found.extend(members.get("$ref").and_then(Value::as_str));
                members.values().for_each(|member| references(member, found));
            }
            _ => {}
        }
    }

    #[test]
    fn what_it_refers_to_stands_in_it() {
        let document = openapi(&facts("https://h.test"));
        let mut found = Vec::new();
        references(&document, &mut found);
        assert!(found.len() > 20);
        for reference in found {
            let pointer = reference.strip_prefix('#').unwrap();
            assert!(document.pointer(pointer).is_some(), "{reference}");
        }
    }

    #[test]
    fn an_operation_for_each_skill_that_is_offered() {
        let skills = [Skill::InventorySearch, Skill::LeadSubmit];
        let document = openapi(&Facts { skills: &skills, ..facts("https://h.test/x") });
        let paths = document["paths"].as_object().unwrap();
        assert!(paths.keys().eq(["/pap/v3/inventory/search", "/pap/v3/lead/submit"]));
        let lead = &paths["/pap/v3/lead/submit"]["post"];
        assert_eq!(lead["operationId"], "aap_lead_submit");
        assert_eq!(lead["x-aap-safe"], false);
        for status in ["200", "400", "403", "404", "409", "410", "415", "422", "429", "500"] {
            assert!(lead["responses"][status].is_object(), "{status}");
        }
        assert!(lead["responses"]["401"].is_null());
        assert_eq!(document["components"]["schemas"].as_object().unwrap().len(), 6);
        assert_eq!(document["servers"][0]["url"], "https://h.test/x");
    }
}
