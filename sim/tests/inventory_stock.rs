//! Stock from a seed: the same bytes everywhere, and vehicles that make sense.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::collections::HashSet;

use dealer_sim::inventory::{ExportFormat, Inventory, Lookup, Profile, Query, Scratch, Spec, Status, vin};
use jiff::civil::Date;
use proptest::prelude::*;
use serde_json::Value;
use sha2::{Digest, Sha256};

const DAY: Date = Date::constant(2026, 1, 1);

fn generate(spec: &Spec) -> Inventory {
    Inventory::generate(spec, &Profile::built_in().unwrap()).unwrap()
}

fn jsonl(inventory: &Inventory) -> Vec<u8> {
    let mut out = Vec::new();
    inventory.export(ExportFormat::Jsonl, &mut out).unwrap();
    out
}

fn vehicles(inventory: &Inventory) -> Vec<Value> {
    jsonl(inventory)
        .split(|&byte| byte == b'\n')
        .filter(|line| !line.is_empty())
        .map(|line| serde_json::from_slice(line).unwrap())
        .collect()
}

fn hash(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// No generated text leads to somebody: VINs of a maker that cannot exist (ISO 3780 leaves GA to G0 without a country), hosts reserved for
/// examples (RFC 2606), and no address or telephone number at all.
#[test]
fn nothing_generated_reaches_a_person_or_a_car() {
    for seed in [1, 42, 7_777] {
        let all = vehicles(&generate(&Spec { vehicles: 2_000, ..Spec::new(seed, DAY) }));
        // A unit on its way may have no VIN yet.
        let mut vins = all.iter().filter_map(|vehicle| vehicle["vin"].as_str());
        assert!(vins.clone().count() > 1_500 && vins.all(|vin| vin.starts_with("GDS")));
        for vehicle in all {
            let text = vehicle.to_string();
            for host in text.split("://").skip(1).map(|rest| rest.split(['/', '"']).next().unwrap()) {
                assert!(host.ends_with(".example"), "{host}");
            }
            assert!(!text.contains('@') && !text.contains("+1"), "{text}");
        }
    }
}

/// The stock of a seed may change with a major version only.
#[test]
fn the_stock_of_seed_42_is_what_it_was() {
    let stock = jsonl(&generate(&Spec::new(42, DAY)));
    assert_eq!(hash(&stock), "bd767071e5dcd3d3a50ac3298dc453fd59161b13b31b5a284c4f89c842c4ab69");
}

#[test]
fn another_seed_day_or_dealer_is_another_stock() {
    let spec = Spec { vehicles: 100, ..Spec::new(42, DAY) };
    let stock = jsonl(&generate(&spec));
    assert_eq!(stock, jsonl(&generate(&spec)));
    assert_ne!(stock, jsonl(&generate(&Spec { seed: 43, ..spec })));
    assert_ne!(stock, jsonl(&generate(&Spec { day: Date::constant(2026, 1, 2), ..spec })));
    assert_ne!(stock, jsonl(&generate(&Spec { dealer: 1, ..spec })));
}

#[test]
fn threads_and_size_leave_no_trace() {
    let spec = Spec { vehicles: 20_000, threads: 1, ..Spec::new(7, DAY) };
    let stock = jsonl(&generate(&spec));
    for threads in [0, 2, 3] {
        assert!(stock == jsonl(&generate(&Spec { threads, ..spec })), "{threads} threads");
    }
    for vehicles in [1, 8_192, 8_193] {
        let smaller = jsonl(&generate(&Spec { vehicles, ..spec }));
        assert!(stock.starts_with(&smaller), "the first {vehicles} of a larger stock are the smaller stock");
    }
}

#[test]
fn identifiers_are_unique_over_dealers() {
    let mut vins = HashSet::new();
    for dealer in [0, 1, 500] {
        let stock = vehicles(&generate(&Spec { vehicles: 10_000, dealer, ..Spec::new(1, DAY) }));
        let (mut stocks, mut ids) = (HashSet::new(), HashSet::new());
        for vehicle in &stock {
            if let Some(vin) = vehicle["vin"].as_str() {
                assert!(vin::has_valid_check_digit(vin), "{vin}");
                assert!(vins.insert(vin.to_owned()), "{vin}");
            }
            assert!(vehicle["stock"].as_str().is_none_or(|stock| stocks.insert(stock.to_owned())));
            assert!(vehicle["vehicle_id"].as_str().is_none_or(|id| ids.insert(id.to_owned())));
        }
    }
}

/// Every member that a vehicle has goes with the others.
fn makes_sense(vehicle: &Value, day: Date) {
    let text = |name: &str| vehicle[name].as_str();
    let number = |name: &str| vehicle[name].as_u64();
    let has = |name: &str| vehicle.get(name).is_some();
    let kind = text("vehicle_type").unwrap_or("car");
    let year = number("year").unwrap();
    let this_year = day.year() as u64;
    let condition = text("condition").unwrap();
    let fuel = text("fuel");

    assert!(["available", "intransit", "pending", "sold"].contains(&text("status").unwrap()));
    for name in ["make", "model", "trim", "body", "dealer_id", "rooftop", "updated_at"] {
        assert!(text(name).is_some_and(|text| !text.is_empty()), "{name}");
    }
    assert!(has("vin") || has("stock") || has("vehicle_id") && has("notes"));
    if let Some(vin) = text("vin") {
        assert_eq!(vin.as_bytes()[9], b"ABCDEFGHJKLMNPRSTVWXY123456789"[(year as usize - 1980) % 30]);
    }
    // Age.
    match condition {
        "new" => {
            assert!((this_year - 1..=this_year + 1).contains(&year), "{year}");
            assert!(number("mileage").is_none_or(|miles| miles < 150));
        }
        "cpo" => assert!(kind == "car" && (this_year - 6..this_year).contains(&year)),
        _ => assert!(year <= this_year),
    }
    if condition != "new"
        && let Some(miles) = number("mileage")
    {
        let age = this_year - year + 1;
        assert!(
            miles <= 15_500 * (age + 1) + 300 && (kind != "car" || miles >= 1_000),
            "{miles} miles in {age} years"
        );
    }
    if text("status") == Some("intransit") {
        assert_eq!(condition, "new");
    }
    // Drive.
    assert_eq!(has("displacement_cc"), fuel.is_some_and(|fuel| fuel != "bev"));
    assert_eq!(has("electric_range_mi"), matches!(fuel, Some("bev" | "phev")));
    assert!(has("electric_range_mi") || !has("charge_port") && !has("battery_kwh") && !has("dc_fast_charge"));
    assert_eq!(has("city_mpg"), has("highway_mpg"));
    assert!(!has("city_mpg") || kind == "car" && fuel != Some("bev"));
    assert_eq!(has("driveline"), kind == "car");
    assert!(!has("interior_color") || matches!(kind, "car" | "rv"));
    if kind == "motorcycle" {
        let segments = ["cruiser", "sport", "touring", "sport_touring", "adventure", "standard", "scooter"];
        assert!(
            segments.contains(&text("body").unwrap())
                && vehicle["other_attributes"]["final_drive"].is_string()
        );
    }
    if kind == "trailer" {
        assert!(!has("engine") && !has("fuel") && !has("mileage"));
    }
    match text("model").unwrap() {
        "F-150" => assert_eq!(text("body"), Some("truck")),
        "Leaf" => assert_eq!((fuel, has("city_mpg"), has("displacement_cc")), (Some("bev"), false, false)),
        _ => {}
    }
    // Prices.
    let fees = vehicle["fees"].as_array();
    let sum: u64 = fees.into_iter().flatten().map(|fee| fee["amount"].as_u64().unwrap()).sum();
    let names: HashSet<&str> = fees.into_iter().flatten().map(|fee| fee["name"].as_str().unwrap()).collect();
    assert_eq!(names.len(), fees.map_or(0, Vec::len), "names of fees differ");
    match (number("price"), number("list_price")) {
        (Some(price), Some(list_price)) => {
            assert!(
                price <= list_price + sum && price >= (list_price + sum) * 90 / 100,
                "{price} of {list_price}"
            );
        }
        (Some(price), None) => assert!(price > 400),
        (None, _) => assert!(fees.is_none(), "no price, no breakdown of it"),
    }
    if let Some(msrp) = number("msrp") {
        assert!(number("list_price").is_none_or(|list_price| list_price <= msrp * 110 / 100 + 100));
    }
    // Dates.
    let inventory_date: Date = text("inventory_date").unwrap().parse().unwrap();
    assert!(inventory_date < day);
    let updated_at = text("updated_at").unwrap();
    let changed: Date = updated_at[..10].parse().unwrap();
    assert!(updated_at.ends_with('Z') && changed < day && (day - changed).get_days() <= 7, "{updated_at}");
}

#[test]
fn vehicles_make_sense() {
    for (seed, day) in [
        (42, DAY),
        (1, Date::constant(2020, 1, 1)),
        (2, Date::constant(2027, 8, 30)),
        (3, Date::constant(2099, 12, 31)),
    ] {
        let inventory = generate(&Spec { vehicles: 6_000, ..Spec::new(seed, day) });
        for vehicle in vehicles(&inventory) {
            makes_sense(&vehicle, day);
        }
    }
}

#[test]
fn optional_members_are_sometimes_absent() {
    let stock = vehicles(&generate(&Spec { vehicles: 5_000, ..Spec::new(42, DAY) }));
    let count = |fits: &dyn Fn(&Value) -> bool| stock.iter().filter(|vehicle| fits(vehicle)).count();
    let lacks = |name: &'static str| move |vehicle: &Value| vehicle.get(name).is_none();
    for name in [
        "vin",
        "stock",
        "vehicle_id",
        "vehicle_type",
        "price",
        "list_price",
        "msrp",
        "fees",
        "notes",
        "description",
        "exterior_color",
        "interior_color",
    ] {
        let absent = count(&lacks(name));
        assert!(absent > 20 && absent < stock.len(), "{name} is absent {absent} times");
    }
    assert!(count(&|vehicle| vehicle["fees"] == serde_json::json!([])) > 100);
    assert!(
        count(&|vehicle| vehicle["list_price"].as_u64() < vehicle["price"].as_u64()
            && vehicle["list_price"].is_u64())
            > 100
    );
    for (name, values) in [
        ("status", &["available", "intransit", "pending", "sold"][..]),
        ("condition", &["new", "used", "cpo"]),
        ("vehicle_type", &["car", "motorcycle", "trailer", "rv", "other"]),
        ("fuel", &["gas", "diesel", "hybrid", "phev", "bev"]),
        ("body", &["sedan", "suv", "truck", "coupe", "hatchback", "wagon", "minivan", "convertible"]),
        ("charge_port", &["nacs", "ccs", "j1772", "chademo", "tesla"]),
    ] {
        for value in values {
            assert!(count(&|vehicle| vehicle[name] == *value) > 0, "{name} {value}");
        }
    }
}

#[test]
fn a_further_vehicle_costs_less_than_700_bytes() {
    // What builds share is paid once, so the figure falls with the size: here, what each further vehicle of a large stock adds.
    let small = generate(&Spec { vehicles: 150_000, ..Spec::new(42, DAY) }).heap_bytes();
    let large = generate(&Spec { vehicles: 250_000, ..Spec::new(42, DAY) }).heap_bytes();
    let each = (large - small) / 100_000;
    assert!(each < 700, "{each} bytes");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn fixtures_exist_for_every_seed_and_size(seed: u64, size in 20u32..200, days in 0i32..20_000) {
        let day = Date::constant(2020, 1, 1).checked_add(jiff::Span::new().days(days)).unwrap();
        let inventory = generate(&Spec { vehicles: size, ..Spec::new(seed, day) });
        let fixtures = inventory.fixtures();
        let listed = |lookup: Lookup| match lookup { Lookup::Listed(row) => Some(row), _ => None };
        let by_vin = |vin: &Option<String>| inventory.find(vin.as_deref(), None, None);
        let by_stock = |stock: &Option<String>| inventory.find(None, stock.as_deref(), None);

        let available = listed(by_vin(&fixtures.available_vin)).unwrap();
        prop_assert_eq!(inventory.status(available), Status::Available);
        prop_assert_eq!(by_stock(&fixtures.available_stock), Lookup::Listed(available));
        prop_assert_eq!(inventory.find(None, None, fixtures.available_vehicle_id.as_deref()), Lookup::Listed(available));
        prop_assert_ne!(listed(by_stock(&fixtures.other_stock)).unwrap(), available);
        prop_assert_eq!(inventory.status(listed(by_vin(&fixtures.pending_vin)).unwrap()), Status::Pending);
        prop_assert_eq!(inventory.status(listed(by_stock(&fixtures.intransit_stock)).unwrap()), Status::Intransit);
        prop_assert!(matches!(by_vin(&fixtures.sold_vin), Lookup::Sold(_)));
        prop_assert_eq!(by_vin(&fixtures.unknown_vin), Lookup::Unknown);
        prop_assert!(vin::has_valid_check_digit(fixtures.unknown_vin.as_deref().unwrap()));

        let mut detail = Vec::new();
        inventory.detail(listed(by_vin(&fixtures.vin_with_fees)).unwrap(), &mut detail);
        let vehicle: Value = serde_json::from_slice(&detail).unwrap();
        prop_assert!(vehicle["fees"].as_array().is_some_and(|fees| !fees.is_empty()));
        prop_assert!(vehicle["list_price"].as_u64().unwrap() < vehicle["price"].as_u64().unwrap());

        let total = |make: &Option<String>| {
            let mut query = Query::new();
            query.any_of(&inventory, dealer_sim::inventory::Column::Make, make.as_deref().unwrap());
            inventory.search(&query, &mut Scratch::default()).total
        };
        prop_assert!(total(&fixtures.some_make) > 0);
        prop_assert!(fixtures.some_make.as_deref().unwrap().chars().any(char::is_uppercase));
        prop_assert_eq!(total(&fixtures.unknown_make), 0);
        for vehicle in vehicles(&inventory) {
            makes_sense(&vehicle, day);
        }
    }

    #[test]
    fn each_vehicle_is_found_by_what_it_says(seed: u64) {
        let inventory = generate(&Spec { vehicles: 300, ..Spec::new(seed, DAY) });
        for (row, vehicle) in vehicles(&inventory).iter().enumerate() {
            let known = if vehicle["status"] == "sold" { Lookup::Sold(row as u32) } else { Lookup::Listed(row as u32) };
            let (vin, stock, id) = (vehicle["vin"].as_str(), vehicle["stock"].as_str(), vehicle["vehicle_id"].as_str());
            if vin.is_some() { prop_assert_eq!(inventory.find(vin, None, None), known); }
            if stock.is_some() { prop_assert_eq!(inventory.find(None, stock, None), known); }
            if id.is_some() { prop_assert_eq!(inventory.find(None, None, id), known); }
            prop_assert_eq!(inventory.find(vin, Some("no such stock"), id), if vin.or(id).is_some() { known } else { Lookup::Unknown });
            let own = inventory.vin(row as u32);
            prop_assert_eq!(own.as_deref(), vin);
        }
    }
}

#[test]
fn the_most_specific_identifier_decides() {
    let inventory = generate(&Spec::new(42, DAY));
    let fixtures = inventory.fixtures();
    let (vin, other) = (fixtures.available_vin.as_deref(), fixtures.other_stock.as_deref());
    assert_eq!(inventory.find(vin, other, None), inventory.find(vin, None, None));
    assert_eq!(
        inventory.find(fixtures.unknown_vin.as_deref(), other, None),
        inventory.find(None, other, None)
    );
    assert_eq!(inventory.find(None, None, None), Lookup::Unknown);
}

#[test]
fn the_listing_is_the_beginning_of_the_detail() {
    let inventory = generate(&Spec::new(42, DAY));
    for row in 0..inventory.len() {
        let (mut listing, mut detail) = (Vec::new(), Vec::new());
        inventory.listing(row, &mut listing);
        inventory.detail(row, &mut detail);
        assert!(detail.starts_with(&listing[..listing.len() - 1]));
        let vehicle: Value = serde_json::from_slice(&listing).unwrap();
        for name in ["status", "dealer_id", "updated_at", "condition", "inventory_date"] {
            assert!(vehicle[name].is_string(), "{name}");
        }
        assert!(vehicle.get("features").is_none() && vehicle.get("photos").is_none());
    }
}
