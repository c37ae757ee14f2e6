//! The published schemas are those of the code, and the validator says what they say.

#![allow(clippy::unwrap_used)]

use std::collections::BTreeSet;
use std::path::PathBuf;

use dealer_sim::protocol::json::Doc;
use dealer_sim::protocol::payload;
use dealer_sim::protocol::schema::{Direction, file_name, payload_schema};
use dealer_sim::protocol::validate::validate;
use dealer_sim::protocol::{Contract, Skill};
use proptest::prelude::*;
use serde_json::{Value, json};

fn folder(contract: Contract) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../data/schemas/aap").join(contract.name)
}

/// Run with `UPDATE_SCHEMAS=1` to write the files again after a change of the shapes.
#[test]
fn the_published_schemas_are_current() {
    for contract in Contract::ALL {
        for skill in Skill::ALL {
            for direction in Direction::ALL {
                let path = folder(contract).join(file_name(skill, direction));
                let schema = payload_schema(contract, skill, direction);
                let text = format!("{}\n", serde_json::to_string_pretty(&schema).unwrap());
                if std::env::var_os("UPDATE_SCHEMAS").is_some() {
                    std::fs::create_dir_all(folder(contract)).unwrap();
                    std::fs::write(&path, &text).unwrap();
                }
                let published = std::fs::read_to_string(&path).unwrap_or_default();
                assert_eq!(published, text, "{} is stale: run with UPDATE_SCHEMAS=1", path.display());
            }
        }
    }
}

type Found = BTreeSet<(String, String)>;

fn ours(contract: Contract, skill: Skill, payload: &Value) -> Found {
    let text = payload.to_string();
    let mut doc = Doc::default();
    let value = doc.parse(text.as_bytes()).unwrap();
    let faults = validate(value, payload::request(skill), &contract.features, "");
    faults.list.into_iter().map(|fault| (fault.at, fault.keyword.to_owned())).collect()
}

fn theirs(validator: &jsonschema::Validator, payload: &Value) -> Found {
    let mut found = Found::new();
    for error in validator.iter_errors(payload) {
        let at = error.instance_path().to_string();
        match error.kind() {
            // One error for all unknown members at their parent; ours is one each, at the member.
            jsonschema::error::ValidationErrorKind::AdditionalProperties { unexpected } => {
                for name in unexpected {
                    let name = name.replace('~', "~0").replace('/', "~1");
                    found.insert((format!("{at}/{name}"), "additionalProperties".to_owned()));
                }
            }
            kind => _ = found.insert((at, kind.keyword().to_owned())),
        }
    }
    found
}

fn validator(contract: Contract, skill: Skill) -> jsonschema::Validator {
    let schema = payload_schema(contract, skill, Direction::Request);
    jsonschema::options().should_validate_formats(true).build(&schema).unwrap()
}

/// A payload that a contract accepts, with much of what it knows.
fn valid_payload(contract: Contract, skill: Skill) -> Value {
    let mut payload = newest_payload(skill);
    if ["1.0", "1.1"].contains(&contract.name)
        && let Some(filters) = payload.get_mut("filters").and_then(Value::as_object_mut)
    {
        for name in ["vehicle_type", "electric_range_mi_min", "dc_fast_charge"] {
            filters.remove(name);
        }
    }
    if contract.name == "1.0" && skill == Skill::LeadSubmit {
        payload["source_agent"] = json!("shopper");
        payload["consent"]["source_agent"] = json!("shopper");
        payload["vehicle_of_interest"]["zip"] = json!("94103-1234");
        payload["vehicle_of_interest"]["offered_price"] = json!(36975);
    }
    if contract.name == "1.0" && skill == Skill::InventorySearch {
        payload["sort"]["field"] = json!("offered_price");
    }
    payload
}

fn newest_payload(skill: Skill) -> Value {
    match skill {
        Skill::DealerInformation => json!({ "type": "dealer.information.request" }),
        Skill::InventoryFacets => json!({
            "type": "inventory.facets.request",
            "filters": { "make": ["Honda"], "year_min": 2020, "dc_fast_charge": true },
        }),
        Skill::InventorySearch => json!({
            "type": "inventory.search.request",
            "filters": {
                "make": ["Honda", "Ford"], "condition": ["used"], "vehicle_type": ["car"], "price_max": 30000,
                "electric_range_mi_min": 0, "vin": "1HGCY2F57RA000001", "stock": "T1", "query": "red",
            },
            "pagination": { "skip": 0, "limit": 20 },
            "sort": { "field": "price", "order": "asc" },
            "privacy": { "anonymous": true },
        }),
        Skill::InventoryVehicle => json!({ "type": "inventory.vehicle.request", "vin": "1HGCY2F57RA000001" }),
        Skill::LeadSubmit => json!({
            "type": "lead.submit.request",
            "customer": {
                "first_name": "Anna", "last_name": "Lee", "email": "anna@example.com", "phone": "+14155550123",
                "preferred_contact": "phone", "address": { "city": "San Francisco", "zip": "94105" },
            },
            "consent": {
                "granted_at": "2026-04-30T10:16:00Z", "allowed_channels": ["email", "phone"],
                "consent_text": "I agree.", "scope": ["lead_submission"], "expires_at": "2027-04-30T10:16:00Z",
            },
            "vehicle_of_interest": {
                "vin": "1HGCY2F57RA000001", "year": 2022, "condition": "cpo", "rooftop": null, "extra": { "a": 1 },
                "fees": [{ "name": "Doc", "amount": 500 }], "other_attributes": { "abs": true, "keys": ["a"] },
                "photos": ["https://cdn.example.com/1.jpg"], "battery_kwh": 1.5, "features": ["Heated seats"],
            },
            "trade_in": { "year": 2014, "condition": "good", "mileage": 96000, "inventory_date": "2026-01-31" },
            "appointment": {
                "appointment_type": "test_drive", "appointment_at": "2026-05-02T17:00:00Z", "duration_minutes": 60,
                "notes": "two keys",
            },
            "message": "Still there?",
            "source_agent": { "name": "shopper", "url": "https://shopper.example.com" },
            "submitted_at": "2026-04-30T10:16:05Z",
            "idempotency_key": "k-1",
        }),
    }
}

/// Every place in a value, as pointers.
fn places(value: &Value, at: &str, out: &mut Vec<String>) {
    out.push(at.to_owned());
    match value {
        Value::Array(items) => {
            items.iter().enumerate().for_each(|(i, item)| places(item, &format!("{at}/{i}"), out));
        }
        Value::Object(members) => {
            members.iter().for_each(|(name, member)| places(member, &format!("{at}/{name}"), out));
        }
        _ => {}
    }
}

#[derive(Debug, Clone)]
enum Change {
    Replace(Value),
    Remove,
    Add(String, Value),
}

fn value() -> impl Strategy<Value = Value> {
    prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        prop_oneof![
            Just(-1i64),
            Just(0),
            Just(14),
            Just(15),
            Just(1899),
            Just(1900),
            Just(2100),
            Just(2101),
            Just(1001)
        ]
        .prop_map(Value::from),
        prop_oneof![Just(20.0f64), Just(1.5), Just(-0.5), Just(1e300)].prop_map(Value::from),
        prop_oneof![
            Just(""),
            Just(" "),
            Just("new"),
            Just("good"),
            Just("available"),
            Just("sold"),
            Just("NEW"),
            Just("asc"),
            Just("1HGCY2F57RA00000O"),
            Just("1HGCY2F57RA000001\n"),
            Just("+1415555"),
            Just("+0415555"),
            Just("a@b.co"),
            Just("not a uri"),
            Just("https://x.example/"),
            Just("2026-02-30"),
            Just("2026-02-28"),
            Just("email"),
            Just("2026-01-01T00:00:00Z"),
            Just("2026-01-01T00:00:00"),
            Just("lead_submission"),
            Just("٣"),
            Just("price"),
            Just("offered_price"),
            Just("94103"),
            Just("94103-12"),
            Just("car"),
        ]
        .prop_map(Value::from),
        "\\PC{0,3}".prop_map(Value::from),
        (1999usize..2002).prop_map(|n| Value::from("é".repeat(n))),
        (127usize..130).prop_map(|n| Value::from("k".repeat(n))),
        (199usize..202).prop_map(|n| Value::from("\u{1f697}".repeat(n))),
        Just(json!([])),
        Just(json!({})),
        Just(json!(["email", "email"])),
        Just(json!([1, 1.0, "1"])),
        Just(json!([1, 2])),
        Just(json!({ "name": "Doc", "amount": 500 })),
        Just(json!([{ "name": "a", "amount": 1 }, { "amount": 1.0, "name": "a" }])),
        Just(json!({ "a": [1, "b"], "b": null, "c": {} })),
    ]
}

fn change() -> impl Strategy<Value = (prop::sample::Index, Change)> {
    let name = prop_oneof![
        Just("foo".to_owned()),
        Just("status".to_owned()),
        Just("__proto__".to_owned()),
        Just("a/b~c".to_owned()),
        Just("zip".to_owned()),
        Just("offered_price".to_owned()),
        Just("vehicle_type".to_owned()),
        Just("source_agent".to_owned()),
        Just("condition".to_owned()),
        Just("fees".to_owned()),
        Just("vehicle_id".to_owned()),
        Just("consent".to_owned()),
        Just("charge_port".to_owned()),
        Just("limit".to_owned()),
    ];
    let what = prop_oneof![
        4 => value().prop_map(Change::Replace),
        2 => Just(Change::Remove),
        3 => (name, value()).prop_map(|(name, value)| Change::Add(name, value)),
    ];
    (any::<prop::sample::Index>(), what)
}

fn apply(payload: &mut Value, at: &str, change: Change) {
    match change {
        Change::Replace(value) => {
            if let Some(target) = payload.pointer_mut(at) {
                *target = value;
            }
        }
        Change::Remove => {
            let Some((parent, name)) = at.rsplit_once('/') else { return };
            if let Some(Value::Object(members)) = payload.pointer_mut(parent) {
                members.remove(name);
            }
        }
        Change::Add(name, value) => {
            if let Some(Value::Object(members)) = payload.pointer_mut(at) {
                members.insert(name, value);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1500, ..ProptestConfig::default() })]

    #[test]
    fn the_validator_agrees_with_the_schemas(
        skill in prop::sample::select(Skill::ALL.to_vec()),
        contract in prop::sample::select(Contract::ALL.to_vec()),
        changes in prop::collection::vec(change(), 0..5),
    ) {
        let mut payload = valid_payload(contract, skill);
        for (index, change) in changes {
            let mut all = Vec::new();
            places(&payload, "", &mut all);
            apply(&mut payload, index.get::<String>(&all), change);
        }
        let (ours, theirs) = (ours(contract, skill, &payload), theirs(&validator(contract, skill), &payload));
        let at = |found: &Found| found.iter().map(|(at, _)| at.clone()).collect::<BTreeSet<_>>();
        prop_assert_eq!(at(&ours), at(&theirs), "locations differ for {}\n ours {:?}\n theirs {:?}", payload, ours, theirs);
        // Where a string is one of several words, JSON Schema names the wrong type and the wrong word; we name the type.
        prop_assert!(ours.is_subset(&theirs), "keywords differ for {}: {:?} {:?}", payload, ours, theirs);
    }
}

#[test]
fn the_valid_payloads_are_valid() {
    for contract in Contract::ALL {
        for skill in Skill::ALL {
            assert_eq!(ours(contract, skill, &valid_payload(contract, skill)), Found::new());
            assert_eq!(theirs(&validator(contract, skill), &valid_payload(contract, skill)), Found::new());
        }
    }
}
