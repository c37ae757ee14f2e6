//! JSON Schemas (draft 2020-12) of the payloads, written from the shapes that validate them.

use serde_json::{Map, Value, json};

use super::contract::Contract;
use super::payload;
use super::shape::{Record, Shape};
use super::skill::Skill;

/// Which payload of a skill.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    /// What a buyer sends.
    Request,
    /// What a dealer answers.
    Response,
}

impl Direction {
    /// Both.
    pub const ALL: [Direction; 2] = [Direction::Request, Direction::Response];

    fn word(self) -> &'static str {
        match self {
            Direction::Request => "request",
            Direction::Response => "response",
        }
    }
}

/// The file name of a payload's schema, such as `vehicle-detail-request.schema.json`.
pub fn file_name(skill: Skill, direction: Direction) -> String {
    format!("{}-{}.schema.json", skill.stem(), direction.word())
}

/// The schema of one payload under one contract, without references, so that it stands alone.
pub fn payload_schema(contract: Contract, skill: Skill, direction: Direction) -> Value {
    let shape = match direction {
        Direction::Request => payload::request(skill),
        Direction::Response => payload::response(skill),
    };
    let mut schema = of(shape, contract);
    if let Value::Object(members) = &mut schema {
        members.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
        members.insert(
            "$id".into(),
            json!(format!("{}{}", contract.schema_base_url, file_name(skill, direction))),
        );
        members.insert("title".into(), json!(format!("{} {}", skill.id(), direction.word())));
    }
    schema
}

/// The schema of a Vehicle as a stock file and the admin endpoint have it: one that may be sold, too. It is the same in every
/// contract.
pub fn stock_vehicle_schema() -> Value {
    let mut schema = of(&payload::STOCK_SHAPE, Contract::V3_0);
    if let Value::Object(members) = &mut schema {
        members.insert("$schema".into(), json!("https://json-schema.org/draft/2020-12/schema"));
        members.insert(
            "title".into(),
            json!("A vehicle of the stock: /vehicles of the admin endpoint, and stock files"),
        );
    }
    schema
}

fn of(shape: &Shape, contract: Contract) -> Value {
    match shape {
        Shape::Const(text) => json!({ "const": text }),
        Shape::Enum(words) => json!({ "type": "string", "enum": words }),
        Shape::Text { min, max, format } => {
            let mut schema = object("string");
            bound(&mut schema, "minLength", *min, 0);
            bound(&mut schema, "maxLength", *max, usize::MAX);
            if let Some(pattern) = format.pattern() {
                schema.insert("pattern".into(), json!(pattern));
            }
            if let Some(name) = format.name() {
                schema.insert("format".into(), json!(name));
            }
            Value::Object(schema)
        }
        Shape::Integer { min, max } => {
            let mut schema = object("integer");
            bound(&mut schema, "minimum", *min, i64::MIN);
            bound(&mut schema, "maximum", *max, i64::MAX);
            Value::Object(schema)
        }
        Shape::Number { min, max } => {
            let mut schema = object("number");
            bound(&mut schema, "minimum", *min, f64::NEG_INFINITY);
            bound(&mut schema, "maximum", *max, f64::INFINITY);
            Value::Object(schema)
        }
        Shape::Boolean => json!({ "type": "boolean" }),
        Shape::OrNull(inner) => or_null(of(inner, contract)),
        Shape::List { items, min, max, unique } => {
            let mut schema = object("array");
            schema.insert("items".into(), of(items, contract));
            bound(&mut schema, "minItems", *min, 0);
            bound(&mut schema, "maxItems", *max, usize::MAX);
            if *unique {
                schema.insert("uniqueItems".into(), json!(true));
            }
            Value::Object(schema)
        }
        Shape::Map(members) => json!({ "type": "object", "additionalProperties": of(members, contract) }),
        Shape::Attribute => json!({ "anyOf": [
            { "type": ["string", "number", "boolean"] },
            { "type": "array", "items": { "type": "string" } },
            { "type": "array", "items": { "type": "number" } },
        ]}),
        Shape::Any => json!({}),
        Shape::Record(record) => of_record(record, contract),
    }
}

fn of_record(record: &Record, contract: Contract) -> Value {
    let known = || record.fields.iter().filter(|field| (field.known)(&contract.features));
    let properties: Map<String, Value> =
        known().map(|field| (field.name.to_owned(), of(field.shape, contract))).collect();
    let required: Vec<_> = known().filter(|field| field.required).map(|field| field.name).collect();
    let mut schema = object("object");
    schema.insert("properties".into(), Value::Object(properties));
    if !required.is_empty() {
        schema.insert("required".into(), json!(required));
    }
    if !record.any_of.is_empty() {
        let alternatives: Vec<_> = record.any_of.iter().map(|name| json!({ "required": [name] })).collect();
        schema.insert("anyOf".into(), json!(alternatives));
    }
    if !record.open {
        schema.insert("additionalProperties".into(), json!(false));
    }
    Value::Object(schema)
}

fn or_null(mut schema: Value) -> Value {
    if let Some(kind) = schema.get("type").cloned()
        && let Value::Object(members) = &mut schema
    {
        members.insert("type".into(), json!([kind, "null"]));
    }
    schema
}

fn object(kind: &str) -> Map<String, Value> {
    Map::from_iter([("type".to_owned(), json!(kind))])
}

/// Inserts a bound, unless it is the one that stands for none.
fn bound<T: PartialEq + Copy + serde::Serialize>(
    schema: &mut Map<String, Value>,
    keyword: &str,
    value: T,
    none: T,
) {
    if value != none {
        schema.insert(keyword.to_owned(), json!(value));
    }
}
