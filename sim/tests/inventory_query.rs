//! The laws of searching, held against a model that knows nothing of columns: a list of parsed vehicles and plain loops.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, HashSet};
use std::sync::LazyLock;

use dealer_sim::inventory::{
    Column, FacetKeys, ImportDefaults, ImportFormat, Inventory, Number, Profile, Query, Scratch, SortField,
    SortOrder, Spec,
};
use jiff::Timestamp;
use jiff::civil::Date;
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};

struct Model {
    inventory: Inventory,
    vehicles: Vec<Value>,
}

/// Generated stock, and an imported one of odd vehicles: values that differ in case alone, members that are missing, ties.
static STOCKS: LazyLock<Vec<Model>> = LazyLock::new(|| {
    let spec = Spec { vehicles: 9_000, ..Spec::new(11, Date::constant(2026, 1, 1)) };
    let generated = Inventory::generate(&spec, &Profile::built_in().unwrap()).unwrap();
    let small = Inventory::generate(&Spec { vehicles: 40, ..spec }, &Profile::built_in().unwrap()).unwrap();
    let lines: Vec<String> = (0..400u32).map(|i| odd_vehicle(i).to_string()).collect();
    let defaults = ImportDefaults { dealer_id: "odd".to_owned(), updated_at: Timestamp::UNIX_EPOCH };
    let odd = Inventory::import(lines.join("\n").as_bytes(), ImportFormat::Jsonl, &defaults).unwrap();
    [generated, small, odd]
        .into_iter()
        .map(|inventory| {
            let vehicles = (0..inventory.len())
                .map(|row| {
                    let mut text = Vec::new();
                    inventory.detail(row, &mut text);
                    serde_json::from_slice(&text).unwrap()
                })
                .collect();
            Model { inventory, vehicles }
        })
        .collect()
});

fn odd_vehicle(i: u32) -> Value {
    let pick = |values: &[&str], step: u32| values[((i / step) as usize) % values.len()].to_owned();
    let mut vehicle = json!({ "status": pick(&["available", "sold", "pending", "intransit", "available"], 1), "vehicle_id": format!("v{i}") });
    let mut set = |name: &str, every: u32, value: Value| {
        if !i.is_multiple_of(every) {
            vehicle[name] = value;
        }
    };
    set("make", 7, json!(pick(&["Kia", "KIA", "kia", "Škoda", "ŠKODA", "", "Über \"Q\""], 2)));
    set("model", 5, json!(pick(&["Z", "a", "A", "É", "é"], 3)));
    set("year", 6, json!(1900 + i % 201));
    set("price", 3, json!([0, 5, 5, 5, 4_294_967_294u64][i as usize % 5]));
    set("list_price", 4, json!(i % 10));
    set("mileage", 2, json!(f64::from(i % 4) * 10.0));
    set("electric_range_mi", 3, json!([100.0, 100.5, 99.9, 0.001][i as usize % 4]));
    set("displacement_cc", 4, json!(i % 3));
    set("stock", 4, json!(format!("{}{i}", pick(&["s", "S", "\\", "ß", "longer-than-eight-"], 1))));
    set("updated_at", 3, json!(format!("2026-01-0{}T00:00:00+0{}:00", i % 3 + 1, i % 9)));
    set("dc_fast_charge", 2, json!(i.is_multiple_of(3)));
    set("vehicle_type", 3, json!(pick(&["motorcycle", "car", "rv"], 1)));
    set("charge_port", 5, if i.is_multiple_of(2) { Value::Null } else { json!("nacs") });
    set("rooftop", 5, if i.is_multiple_of(4) { Value::Null } else { json!("North \u{1F697}") });
    set("exterior_color", 3, json!(pick(&["Red", "Dark Red"], 1)));
    set("condition", 4, json!(pick(&["new", "used", "cpo"], 1)));
    vehicle
}

const TEXTS: [(Column, &str); 15] = [
    (Column::Make, "make"),
    (Column::Model, "model"),
    (Column::Trim, "trim"),
    (Column::Body, "body"),
    (Column::Engine, "engine"),
    (Column::Transmission, "transmission"),
    (Column::Fuel, "fuel"),
    (Column::Driveline, "driveline"),
    (Column::ExteriorColor, "exterior_color"),
    (Column::InteriorColor, "interior_color"),
    (Column::ChargePort, "charge_port"),
    (Column::Rooftop, "rooftop"),
    (Column::Condition, "condition"),
    (Column::VehicleType, "vehicle_type"),
    (Column::Status, "status"),
];

const NUMBERS: [(Number, &str); 7] = [
    (Number::Year, "year"),
    (Number::Price, "price"),
    (Number::ListPrice, "list_price"),
    (Number::Msrp, "msrp"),
    (Number::Mileage, "mileage"),
    (Number::DisplacementCc, "displacement_cc"),
    (Number::ElectricRange, "electric_range_mi"),
];

/// A text member of a vehicle; one without a class is a car.
fn text<'v>(vehicle: &'v Value, name: &str) -> Option<&'v str> {
    vehicle[name].as_str().or((name == "vehicle_type").then_some("car"))
}

/// What a client may ask for, in a form that the model and the query can both read.
#[derive(Debug, Clone)]
struct Ask {
    any_of: Vec<(usize, Vec<String>)>,
    at_least: Vec<(usize, u64)>,
    at_most: Vec<(usize, u64)>,
    fast: Option<bool>,
    vin: Option<String>,
    stock: Option<String>,
    query: String,
    sort: Option<(SortField, SortOrder)>,
    skip: u64,
    limit: u32,
}

impl Ask {
    fn fill(&self, inventory: &Inventory, query: &mut Query) {
        query.clear();
        for (column, values) in &self.any_of {
            for value in values {
                query.any_of(inventory, TEXTS[*column].0, value);
            }
        }
        for &(number, bound) in &self.at_least {
            query.at_least(NUMBERS[number].0, bound);
        }
        for &(number, bound) in &self.at_most {
            query.at_most(NUMBERS[number].0, bound);
        }
        if let Some(fast) = self.fast {
            query.dc_fast_charge(inventory, fast);
        }
        if let Some(vin) = &self.vin {
            query.vin(inventory, vin);
        }
        if let Some(stock) = &self.stock {
            query.stock(inventory, stock);
        }
        query.text(inventory, &self.query);
        if let Some((field, order)) = self.sort {
            query.sort(field, order);
        }
        query.page(self.skip, self.limit);
    }

    fn matches(&self, vehicle: &Value) -> bool {
        let number = |index: usize| vehicle[NUMBERS[index].1].as_f64();
        vehicle["status"] != "sold"
            && self.any_of.iter().all(|(column, values)| {
                // Two filters of one member are one filter with the values of both.
                let all = self.any_of.iter().filter(|other| other.0 == *column).flat_map(|other| &other.1);
                let mut all = all.map(|value| value.to_lowercase());
                values.is_empty()
                    || text(vehicle, TEXTS[*column].1)
                        .is_some_and(|own| all.any(|value| value == own.to_lowercase()))
            })
            && self
                .at_least
                .iter()
                .all(|&(index, bound)| number(index).is_some_and(|own| own >= bound as f64))
            && self.at_most.iter().all(|&(index, bound)| number(index).is_some_and(|own| own <= bound as f64))
            && self.fast.is_none_or(|fast| vehicle["dc_fast_charge"].as_bool() == Some(fast))
            && self.vin.as_ref().is_none_or(|vin| vehicle["vin"] == **vin)
            && self.stock.as_ref().is_none_or(|stock| vehicle["stock"] == **stock)
            && self.query.split_whitespace().all(|word| occurs(vehicle, word))
    }
}

fn occurs(vehicle: &Value, word: &str) -> bool {
    let folded = word.to_lowercase();
    let inside = TEXTS.iter().filter(|(column, _)| *column != Column::Status);
    inside
        .into_iter()
        .any(|(_, name)| text(vehicle, name).is_some_and(|own| own.to_lowercase().contains(&folded)))
        || vehicle["year"].as_u64().is_some_and(|year| year.to_string().contains(word))
        || ["vin", "stock"]
            .iter()
            .any(|name| vehicle[*name].as_str().is_some_and(|own| own.eq_ignore_ascii_case(word)))
}

/// What a field sorts by, in a form that compares as the digest wants it.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
enum SortKey {
    Number(u64),
    Text(String),
    Instant(Timestamp),
}

fn sort_key(vehicle: &Value, field: SortField) -> Option<SortKey> {
    let member = &vehicle[field.member()];
    match field {
        SortField::Make | SortField::Model | SortField::Stock => {
            member.as_str().map(|text| SortKey::Text(text.to_owned()))
        }
        SortField::UpdatedAt => member.as_str().map(|text| SortKey::Instant(text.parse().unwrap())),
        _ => member.as_f64().map(|number| SortKey::Number(number as u64)),
    }
}

impl Model {
    /// The rows that match, in the order that was asked for.
    fn rows(&self, ask: &Ask) -> Vec<u32> {
        let mut rows: Vec<u32> = (0..)
            .zip(&self.vehicles)
            .filter(|(_, vehicle)| ask.matches(vehicle))
            .map(|(row, _)| row)
            .collect();
        if let Some((field, order)) = ask.sort {
            // Sorting keeps the order of equal ones, which is that of the rows.
            rows.sort_by(|&a, &b| {
                let key = |row: u32| sort_key(&self.vehicles[row as usize], field);
                match (key(a), key(b)) {
                    (None, None) => std::cmp::Ordering::Equal,
                    (None, _) => std::cmp::Ordering::Greater,
                    (_, None) => std::cmp::Ordering::Less,
                    (a, b) if order == SortOrder::Ascending => a.cmp(&b),
                    (a, b) => b.cmp(&a),
                }
            });
        }
        rows
    }

    fn facets(&self, rows: &[u32]) -> Value {
        let mut facets = Map::new();
        let vehicles = || rows.iter().map(|&row| &self.vehicles[row as usize]);
        let terms = [
            ("makes", "make"),
            ("models", "model"),
            ("trims", "trim"),
            ("years", "year"),
            ("conditions", "condition"),
            ("transmissions", "transmission"),
            ("fuels", "fuel"),
            ("dc_fast_charge", "dc_fast_charge"),
            ("charge_ports", "charge_port"),
            ("drivelines", "driveline"),
            ("bodies", "body"),
            ("vehicle_types", "vehicle_type"),
            ("exterior_colors", "exterior_color"),
            ("interior_colors", "interior_color"),
            ("rooftops", "rooftop"),
            ("statuses", "status"),
        ];
        for (facet, member) in terms {
            let mut counts: BTreeMap<String, u32> = BTreeMap::new();
            for vehicle in vehicles() {
                let value = match &vehicle[member] {
                    Value::Null if member == "vehicle_type" => "car".to_owned(),
                    Value::Null => continue,
                    Value::String(text) => text.clone(),
                    other => other.to_string(),
                };
                *counts.entry(value).or_default() += 1;
            }
            let list: Vec<Value> = counts
                .into_iter()
                .map(|(value, count)| {
                    let value =
                        if facet == "years" { json!(value.parse::<u32>().unwrap()) } else { json!(value) };
                    json!({ "value": value, "count": count })
                })
                .collect();
            if !list.is_empty() {
                facets.insert(facet.to_owned(), json!(list));
            }
        }
        for member in ["price", "mileage", "year", "displacement_cc", "electric_range_mi"] {
            let values: Vec<f64> = vehicles().filter_map(|vehicle| vehicle[member].as_f64()).collect();
            if let Some(min) = values.iter().copied().reduce(f64::min) {
                let max = values.iter().copied().fold(min, f64::max);
                facets.insert(format!("{member}_range"), json!({ "min": min, "max": max }));
            }
        }
        Value::Object(facets)
    }
}

/// A vehicle's number as JSON reads it, so that 5 and 5.0 are equal.
fn normal(value: Value) -> Value {
    match value {
        Value::Number(number) => json!(number.as_f64()),
        Value::Array(items) => items.into_iter().map(normal).collect(),
        Value::Object(members) => {
            Value::Object(members.into_iter().map(|(name, value)| (name, normal(value))).collect())
        }
        other => other,
    }
}

fn asks(stock: usize) -> impl Strategy<Value = Ask> {
    // Values mostly from the stock itself, in any case, so that most filters match something.
    let vehicles = &STOCKS[stock].vehicles;
    let values = |column: usize| {
        let own: Vec<String> = vehicles
            .iter()
            .take(800)
            .filter_map(|vehicle| text(vehicle, TEXTS[column].1).map(str::to_owned))
            .collect();
        let own = if own.is_empty() { vec!["none".to_owned()] } else { own };
        (select(own), 0..6u8).prop_map(|(value, case)| match case {
            0 => value.to_lowercase(),
            1 => value.to_uppercase(),
            2 => "no such value".to_owned(),
            _ => value,
        })
    };
    let any_of = (0..TEXTS.len())
        .prop_flat_map(move |column| (Just(column), prop::collection::vec(values(column), 0..8)));
    let bounds = || {
        (0..NUMBERS.len()).prop_flat_map(move |index| {
            let own: Vec<u64> = vehicles
                .iter()
                .take(800)
                .filter_map(|vehicle| vehicle[NUMBERS[index].1].as_f64().map(|number| number as u64))
                .collect();
            let own = if own.is_empty() { vec![1] } else { own };
            (Just(index), prop_oneof![9 => select(own), 1 => select(vec![0, u64::from(u32::MAX), u64::MAX])])
        })
    };
    let identifiers = |name: &'static str| {
        let own: Vec<String> = vehicles
            .iter()
            .take(50)
            .filter_map(|vehicle| vehicle[name].as_str().map(str::to_owned))
            .collect();
        let own = if own.is_empty() { vec!["none".to_owned()] } else { own };
        prop::option::weighted(0.05, select(own))
    };
    let words: Vec<String> = [
        "suv",
        "2.5L",
        "toyota",
        "202",
        "2024",
        "HYBRID",
        "a",
        "red",
        "nothing-has-this",
        "é",
        "šk",
        "\"q\"",
        "🚗",
        "20",
        "s401",
    ]
    .into_iter()
    .map(str::to_owned)
    .chain(vehicles.iter().take(5).flat_map(|vehicle| {
        ["vin", "stock"].map(|name| vehicle[name].as_str().unwrap_or("x").to_lowercase())
    }))
    .collect();
    let query = prop_oneof![
        3 => Just(String::new()),
        2 => prop::collection::vec(select(words), 1..4).prop_map(|words| words.join("  ")),
    ];
    let order = prop_oneof![Just(SortOrder::Ascending), Just(SortOrder::Descending)];
    (
        (
            prop::collection::vec(any_of, 0..3),
            prop::collection::vec(bounds(), 0..2),
            prop::collection::vec(bounds(), 0..2),
        ),
        (prop::option::weighted(0.1, any::<bool>()), identifiers("vin"), identifiers("stock"), query),
        prop::option::of((select(&SortField::ALL[..]), order)),
        (prop_oneof![Just(0), 0..60u64, 0..12_000u64, Just(u64::MAX)], prop_oneof![1..40u32, Just(1000)]),
    )
        .prop_map(|((any_of, at_least, at_most), (fast, vin, stock, query), sort, (skip, limit))| Ask {
            any_of,
            at_least,
            at_most,
            fast,
            vin,
            stock,
            query,
            sort,
            skip,
            limit,
        })
}

fn stock_and_ask() -> impl Strategy<Value = (usize, Ask)> {
    (0..STOCKS.len()).prop_flat_map(|stock| (Just(stock), asks(stock)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn a_search_is_what_the_model_says((stock, ask) in stock_and_ask()) {
        let model = &STOCKS[stock];
        let mut query = Query::new();
        ask.fill(&model.inventory, &mut query);
        let mut scratch = Scratch::default();
        let page = model.inventory.search(&query, &mut scratch);
        let rows = model.rows(&ask);
        prop_assert_eq!(page.total as usize, rows.len());
        let expected: Vec<u32> = rows.iter().copied().skip(ask.skip.min(1 << 40) as usize).take(ask.limit as usize).collect();
        prop_assert_eq!(page.rows, &expected[..]);
        // The buffers of one search leave nothing behind for the next.
        let mut facets = Vec::new();
        model.inventory.facets(&query, FacetKeys::ALL, &mut scratch, &mut facets);
        let again = model.inventory.search(&query, &mut scratch);
        prop_assert_eq!((again.total as usize, again.rows), (rows.len(), &expected[..]));
    }

    #[test]
    fn facets_count_the_matches_of_a_full_search((stock, ask) in stock_and_ask()) {
        let model = &STOCKS[stock];
        let mut query = Query::new();
        ask.fill(&model.inventory, &mut query);
        let mut facets = Vec::new();
        model.inventory.facets(&query, FacetKeys::ALL, &mut Scratch::default(), &mut facets);
        let facets: Value = serde_json::from_slice(&facets).unwrap();
        prop_assert_eq!(normal(facets), normal(model.facets(&model.rows(&ask))));
    }

    #[test]
    fn pages_partition_the_matches((stock, mut ask) in stock_and_ask(), limit in 1..30u32) {
        let model = &STOCKS[stock];
        let (mut query, mut scratch) = (Query::new(), Scratch::default());
        let mut seen = Vec::new();
        ask.limit = limit;
        // Enough pages to pass over several blocks, not all of a large stock.
        for page in 0..12 {
            ask.skip = page * u64::from(limit);
            ask.fill(&model.inventory, &mut query);
            seen.extend_from_slice(model.inventory.search(&query, &mut scratch).rows);
        }
        let distinct: HashSet<u32> = seen.iter().copied().collect();
        prop_assert_eq!(distinct.len(), seen.len());
        ask.skip = 0;
        ask.limit = 12 * limit;
        ask.fill(&model.inventory, &mut query);
        prop_assert_eq!(model.inventory.search(&query, &mut scratch).rows, &seen[..]);
    }
}

#[test]
fn facets_have_the_keys_of_the_digest_in_order() {
    let model = &STOCKS[0];
    let mut facets = Vec::new();
    model.inventory.facets(&Query::new(), FacetKeys::ALL, &mut Scratch::default(), &mut facets);
    let text = String::from_utf8(facets).unwrap();
    let keys = [
        "makes",
        "models",
        "trims",
        "years",
        "conditions",
        "transmissions",
        "fuels",
        "dc_fast_charge",
        "charge_ports",
        "drivelines",
        "bodies",
        "vehicle_types",
        "exterior_colors",
        "interior_colors",
        "rooftops",
        "statuses",
        "price_range",
        "mileage_range",
        "year_range",
        "displacement_cc_range",
        "electric_range_mi_range",
    ];
    let places: Vec<usize> = keys.iter().map(|key| text.find(&format!("\"{key}\":")).unwrap()).collect();
    assert!(places.is_sorted());
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value.as_object().unwrap().len(), keys.len());
    let terms: Vec<&Value> =
        value["dc_fast_charge"].as_array().unwrap().iter().map(|term| &term["value"]).collect();
    assert_eq!(terms, ["false", "true"]);
    let mut query = Query::new();
    query.vin(&model.inventory, "nothing has this");
    let mut empty = Vec::new();
    model.inventory.facets(&query, FacetKeys::ALL, &mut Scratch::default(), &mut empty);
    assert_eq!(empty, b"{}");
}

#[test]
fn a_query_is_as_good_as_new_after_clear() {
    let model = &STOCKS[0];
    let (mut query, mut scratch) = (Query::new(), Scratch::default());
    let all = model.inventory.search(&query, &mut scratch).total;
    query.any_of(&model.inventory, Column::Make, "Toyota");
    query.any_of(&model.inventory, Column::Make, "Nonesuch");
    query.text(&model.inventory, "suv");
    query.at_most(Number::Price, 1);
    query.stock(&model.inventory, "x");
    query.sort(SortField::Price, SortOrder::Descending);
    query.page(5, 1);
    assert_eq!(model.inventory.search(&query, &mut scratch).total, 0);
    query.clear();
    let page = model.inventory.search(&query, &mut scratch);
    assert_eq!((page.total, page.rows.len()), (all, 20));
}

#[test]
fn a_filter_of_unknown_values_matches_nothing() {
    let model = &STOCKS[0];
    let mut query = Query::new();
    query.any_of(&model.inventory, Column::Make, "Nonesuch");
    assert_eq!(model.inventory.search(&query, &mut Scratch::default()).total, 0);
    query.any_of(&model.inventory, Column::Make, "tOYOTA");
    assert!(
        model.inventory.search(&query, &mut Scratch::default()).total > 0,
        "values of a filter are alternatives"
    );
}

#[test]
fn every_sort_is_what_the_model_says() {
    let (mut query, mut scratch) = (Query::new(), Scratch::default());
    for model in STOCKS.iter() {
        for field in SortField::ALL {
            for order in [SortOrder::Ascending, SortOrder::Descending] {
                let ask = Ask {
                    any_of: Vec::new(),
                    at_least: Vec::new(),
                    at_most: Vec::new(),
                    fast: None,
                    vin: None,
                    stock: None,
                    query: String::new(),
                    sort: Some((field, order)),
                    skip: 0,
                    limit: model.inventory.len(),
                };
                ask.fill(&model.inventory, &mut query);
                let page = model.inventory.search(&query, &mut scratch);
                assert_eq!(page.rows, model.rows(&ask), "{field:?} {order:?}");
            }
        }
    }
}

#[test]
fn two_identifiers_must_name_the_same_vehicle() {
    let inventory = &STOCKS[0].inventory;
    let fixtures = inventory.fixtures();
    let (vin, stock) = (fixtures.available_vin.unwrap(), fixtures.available_stock.unwrap());
    let mut scratch = Scratch::default();
    let mut total = |vins: &[&str], stocks: &[&str]| {
        let mut query = Query::new();
        vins.iter().for_each(|vin| query.vin(inventory, vin));
        stocks.iter().for_each(|stock| query.stock(inventory, stock));
        inventory.search(&query, &mut scratch).total
    };
    assert_eq!(total(&[&vin], &[&stock]), 1);
    assert_eq!(total(&[&vin], &[&fixtures.other_stock.unwrap()]), 0);
    assert_eq!(total(&[&vin, &fixtures.unknown_vin.unwrap()], &[&stock]), 0);
    assert_eq!(total(&[&fixtures.sold_vin.unwrap()], &[]), 0, "sold ones are not listed");
}
