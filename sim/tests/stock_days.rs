//! What days and edits make of a stock.

#![allow(clippy::unwrap_used, clippy::panic, reason = "a test fails by panicking")]

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use dealer_sim::dealer::lot::{EditError, Lot};
use dealer_sim::inventory::{
    ChangeError, Column, ExportFormat, FacetKeys, ImportDefaults, ImportFormat, Inventory, Lookup, Number,
    Profile, Query, Scratch, SortField, SortOrder, Spec, Status, vin,
};
use jiff::civil::Date;
use jiff::{SignedDuration, Timestamp};
use proptest::prelude::*;
use serde_json::{Value, json};

/// A Thursday.
const START: Date = Date::constant(2026, 1, 1);

fn profile() -> Profile {
    Profile::built_in().unwrap()
}

fn lot(vehicles: u32, start: Date) -> Lot {
    let spec = Spec { vehicles, ..Spec::new(42, start) };
    Lot::new(Arc::new(Inventory::generate(&spec, &profile()).unwrap()), start, 42, "own".to_owned())
}

/// Noon of a day after the start.
fn day(start: Date, days: i64) -> Timestamp {
    let midnight: Timestamp = format!("{start}T12:00:00Z").parse().unwrap();
    midnight + SignedDuration::from_hours(24 * days)
}

fn after(lot: &Lot, days: i64) {
    lot.catch_up(&profile(), day(START, days)).unwrap();
}

fn text(stock: &Inventory) -> String {
    let mut out = Vec::new();
    stock.export(ExportFormat::Jsonl, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn vehicles(stock: &Inventory) -> Vec<Value> {
    text(stock).lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

fn by_id(stock: &Inventory) -> HashMap<String, Value> {
    let id = |vehicle: &Value| {
        ["vin", "stock", "vehicle_id"]
            .map(|name| vehicle[name].as_str().unwrap_or_default().to_owned())
            .join("/")
    };
    vehicles(stock).into_iter().map(|vehicle| (id(&vehicle), vehicle)).collect()
}

/// The order of stock numbers, the counts of all facets, and all listings: what a change must not leave half done.
fn seen(stock: &Inventory) -> String {
    let (mut query, mut scratch, mut out) = (Query::new(), Scratch::default(), Vec::new());
    stock.facets(&query, FacetKeys::ALL, &mut scratch, &mut out);
    query.sort(SortField::Stock, SortOrder::Ascending);
    query.page(0, u32::MAX);
    for row in stock.search(&query, &mut scratch).rows {
        stock.listing(*row, &mut out);
    }
    String::from_utf8(out).unwrap()
}

#[test]
fn ten_days_are_ten_times_one_day() {
    let (steps, leap) = (lot(700, START), lot(700, START));
    let first = text(&steps.stock());
    for days in 1..=10 {
        after(&steps, days);
    }
    after(&leap, 10);
    assert_eq!(text(&steps.stock()), text(&leap.stock()));
    assert_eq!(seen(&steps.stock()), seen(&leap.stock()));
    assert_ne!(text(&leap.stock()), first);
    assert_eq!(text(leap.start()), first, "the stock of the start stays");
    // A clock that stands changes nothing, and a weekend neither.
    let friday = lot(700, START);
    after(&friday, 2);
    let friday_evening = text(&friday.stock());
    after(&friday, 3);
    assert_eq!(text(&friday.stock()), friday_evening);
}

#[test]
fn a_day_sells_some_and_two_months_most() {
    let lot = lot(5_000, START);
    let before = by_id(&lot.stock());
    let sold = |stock: &Inventory| {
        let now = by_id(stock);
        before.iter().filter(|(id, was)| was["status"] != "sold" && now[*id]["status"] == "sold").count()
    };
    after(&lot, 1);
    let (one_day, changed) = (sold(&lot.stock()), by_id(&lot.stock()));
    assert!((50..=200).contains(&one_day), "{one_day} sold on one day");
    let pending = before
        .iter()
        .filter(|(id, was)| was["status"] == "available" && changed[*id]["status"] == "pending")
        .count();
    assert!((30..=120).contains(&pending), "{pending} of some 4,000 found a buyer");

    after(&lot, 60);
    let stock = lot.stock();
    let many = sold(&stock);
    assert!((1_500..=3_500).contains(&many), "{many} sold in 60 days");
    let now = by_id(&stock);
    let cheaper =
        before.iter().filter(|(id, was)| was["price"].as_u64() > now[*id]["price"].as_u64()).count();
    assert!(cheaper > 500, "{cheaper} became cheaper");
    let arrived = now.iter().filter(|(id, _)| !before.contains_key(*id)).count();
    assert!((1_800..=3_200).contains(&arrived), "{arrived} came in");
    let listed = (0..stock.len()).filter(|&row| stock.status(row) != Status::Sold).count();
    assert!((4_000..=5_500).contains(&listed), "{listed} are listed");
}

/// What holds for a vehicle on any day.
fn makes_sense(vehicle: &Value, today: Date) {
    let text = |name: &str| vehicle[name].as_str();
    let updated: Timestamp = text("updated_at").unwrap().parse().unwrap();
    let updated = updated.to_zoned_datetime(jiff::tz::TimeZone::UTC).date();
    assert!(updated < today, "nothing is said before its day is over");
    if text("status") != Some("sold") {
        assert!((today - updated).get_days() <= 3, "a listing moves each business day");
    }
    assert!(text("inventory_date").unwrap().parse::<Date>().unwrap() <= updated.max(START));
    if let Some(price) = vehicle["price"].as_u64() {
        assert!(price > 0);
    }
    if text("status") == Some("intransit") {
        assert_eq!(text("condition"), Some("new"));
    } else if let Some(notes) = text("notes").filter(|_| vehicle.get("vin").is_some()) {
        assert!(!notes.contains("transit"), "{notes}");
    }
    if text("condition") == Some("new") {
        assert!(vehicle["year"].as_i64().unwrap() >= i64::from(today.year()) - 3);
    }
}

#[test]
fn vehicles_make_sense_on_every_day() {
    for (start, days) in [(START, 1), (START, 60), (Date::constant(2026, 6, 20), 45), (START, 700)] {
        let lot = lot(400, start);
        let now = day(start, days);
        lot.catch_up(&profile(), now).unwrap();
        let stock = lot.stock();
        let today = now.to_zoned_datetime(jiff::tz::TimeZone::UTC).date();
        assert!(stock.len() <= 800, "{} known", stock.len());
        let (mut vins, mut stocks, mut ids) = (HashSet::new(), HashSet::new(), HashSet::new());
        for (row, vehicle) in (0..).zip(vehicles(&stock)) {
            if row >= 14 {
                makes_sense(&vehicle, today);
            }
            for (name, all) in [("vin", &mut vins), ("stock", &mut stocks), ("vehicle_id", &mut ids)] {
                if let Some(id) = vehicle[name].as_str() {
                    assert!(all.insert(id.to_owned()), "{name} {id} twice");
                    let found = match name {
                        "vin" => stock.find(Some(id), None, None),
                        "stock" => stock.find(None, Some(id), None),
                        _ => stock.find(None, None, Some(id)),
                    };
                    let sold = vehicle["status"] == "sold";
                    assert_eq!(found, if sold { Lookup::Sold(row) } else { Lookup::Listed(row) });
                }
            }
            assert!(vehicle["vin"].as_str().is_none_or(vin::has_valid_check_digit));
        }
        let listed = (0..stock.len()).filter(|&row| stock.status(row) != Status::Sold).count();
        assert!((250..=480).contains(&listed), "{listed} are listed after {days} days");
        let newest = vehicles(&stock).iter().filter_map(|vehicle| vehicle["year"].as_i64()).max().unwrap();
        assert!(newest >= i64::from(today.year()), "new models come");
    }
}

#[test]
fn the_values_to_test_with_stay() {
    for size in [20, 500] {
        let lot = lot(size, START);
        let before = lot.stock().fixtures();
        assert!(
            before.sold_vin.is_some() && before.pending_vin.is_some() && before.intransit_stock.is_some()
        );
        for days in [1, 30, 400] {
            after(&lot, days);
            assert_eq!(lot.stock().fixtures(), before, "{size} vehicles, {days} days");
        }
    }
}

#[test]
fn a_stock_of_the_callers_own_sells_and_nothing_comes_in() {
    let given =
        text(lot(300, START).start()).replace("\"updated_at\":\"2025-12-31T", "\"updated_at\":\"2025-12-31t");
    let defaults = ImportDefaults { dealer_id: "own".to_owned(), updated_at: day(START, 0) };
    let imported = Arc::new(Inventory::import(given.as_bytes(), ImportFormat::Jsonl, &defaults).unwrap());
    let lot = Lot::new(imported, START, 42, "own".to_owned());
    let read = |line: &str| serde_json::from_str::<Value>(line).unwrap();
    assert_eq!(vehicles(&lot.stock()), given.lines().map(read).collect::<Vec<_>>());
    after(&lot, 60);
    let stock = lot.stock();
    assert_eq!(stock.len(), 300);
    let sold = (0..300).filter(|&row| stock.status(row) == Status::Sold).count();
    assert!((90..250).contains(&sold), "{sold} sold");
    vehicles(&stock).iter().for_each(|vehicle| {
        assert!(vehicle["status"] == "sold" || vehicle["updated_at"].as_str().unwrap() > "2026-02-26");
    });
}

/// An edit that a test makes.
#[derive(Debug, Clone)]
enum Act {
    Patch(usize, Value),
    Add(u32),
    Remove(usize),
    Wait(i64),
}

fn acts() -> impl Strategy<Value = Vec<Act>> {
    let patch = prop_oneof![
        Just(json!({ "status": "sold" })),
        Just(json!({ "status": "available" })),
        (100u32..90_000).prop_map(|price| json!({ "price": price })),
        Just(json!({ "price": null, "trim": "One of a Kind", "exterior_color": "Plaid" })),
        Just(json!({ "year": 2019, "mileage": 31_000, "condition": "used" })),
        Just(json!({ "rooftop": null, "fees": [], "features": ["Tow bar"] })),
    ];
    let act = prop_oneof![
        6 => (0usize..400, patch).prop_map(|(at, patch)| Act::Patch(at, patch)),
        2 => (0u32..20).prop_map(Act::Add),
        2 => (0usize..400).prop_map(Act::Remove),
        1 => (1i64..4).prop_map(Act::Wait),
    ];
    prop::collection::vec(act, 1..25)
}

fn added(number: u32) -> String {
    json!({
        "vin": format!("WDBAA0000000{number:05}"), "stock": format!("A-{number}"), "status": "available", "make": "Own Make",
        "model": "Roadster", "year": 2020 + number % 3, "price": 30_000 + number,
    })
    .to_string()
}

/// Every facet of a query against a count of the listings that a full search gives, and against a search for each value.
fn facets_are_counts(stock: &Inventory, fill: impl Fn(&mut Query)) {
    const TERMS: [(&str, &str, Column); 8] = [
        ("makes", "make", Column::Make),
        ("models", "model", Column::Model),
        ("trims", "trim", Column::Trim),
        ("conditions", "condition", Column::Condition),
        ("statuses", "status", Column::Status),
        ("bodies", "body", Column::Body),
        ("rooftops", "rooftop", Column::Rooftop),
        ("exterior_colors", "exterior_color", Column::ExteriorColor),
    ];
    let (mut query, mut scratch, mut out) = (Query::new(), Scratch::default(), Vec::new());
    fill(&mut query);
    query.page(0, u32::MAX);
    stock.facets(&query, FacetKeys::ALL, &mut scratch, &mut out);
    let facets: Value = serde_json::from_slice(&out).unwrap();
    let page = stock.search(&query, &mut scratch);
    let listings: Vec<Value> = page
        .rows
        .iter()
        .map(|&row| {
            let mut out = Vec::new();
            stock.listing(row, &mut out);
            serde_json::from_slice(&out).unwrap()
        })
        .collect();
    assert_eq!(listings.len(), page.total as usize);
    assert!(listings.iter().all(|vehicle| vehicle["status"] != "sold"));
    for (facet, member, column) in TERMS {
        let mut counts: BTreeMap<String, u64> = BTreeMap::new();
        for value in listings.iter().filter_map(|vehicle| vehicle[member].as_str()) {
            *counts.entry(value.to_owned()).or_default() += 1;
        }
        let told: BTreeMap<String, u64> = facets[facet]
            .as_array()
            .into_iter()
            .flatten()
            .map(|term| (term["value"].as_str().unwrap().to_owned(), term["count"].as_u64().unwrap()))
            .collect();
        assert_eq!(told, counts, "{facet}");
        for (value, count) in told.iter().take(3) {
            let mut one = Query::new();
            fill(&mut one);
            one.any_of(stock, column, value);
            let alike = told.iter().filter(|(other, _)| other.to_lowercase() == value.to_lowercase());
            let all: u64 = alike.map(|(_, count)| count).sum();
            // A second filter of the same column widens the first.
            let total = u64::from(stock.search(&one, &mut scratch).total);
            assert!(total >= *count.min(&all), "{facet} {value}: {total}");
        }
    }
    let prices: Vec<u64> = listings.iter().filter_map(|vehicle| vehicle["price"].as_u64()).collect();
    assert_eq!(facets["price_range"]["min"].as_u64(), prices.iter().min().copied());
    assert_eq!(facets["price_range"]["max"].as_u64(), prices.iter().max().copied());
}

fn vin_at(stock: &Inventory, at: usize) -> Option<String> {
    vehicles(stock).get(at).and_then(|vehicle| vehicle["vin"].as_str().map(str::to_owned))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn facets_equal_searches_whatever_was_done(acts in acts(), price in 10_000u64..60_000, late: bool) {
        let lot = lot(400, START);
        let mut days = 0;
        for act in acts {
            let now = day(START, days);
            let stock = lot.stock().clone();
            let kept = text(&stock);
            let done = match &act {
                Act::Patch(at, patch) => vin_at(&stock, *at).map(|vin| lot.patch(&vin, &patch.to_string(), now).map(drop)),
                Act::Remove(at) => vin_at(&stock, *at).map(|vin| lot.remove(&vin, now)),
                Act::Add(number) => Some(lot.add(&added(*number), now).map(drop)),
                Act::Wait(more) => {
                    days += more;
                    after(&lot, days);
                    None
                }
            };
            match (done, &act) {
                (Some(Err(EditError::Change(ChangeError::Taken { .. }))), Act::Add(_)) | (None | Some(Ok(())), _) => {}
                (Some(Err(error)), _) => panic!("{act:?}: {error}"),
            }
            prop_assert_eq!(text(&stock), kept, "who reads a stock goes on with it");
        }
        if late {
            after(&lot, 60);
        }
        let stock = lot.stock();
        facets_are_counts(&stock, |_| {});
        facets_are_counts(&stock, |query| query.at_most(Number::Price, price));
        facets_are_counts(&stock, |query| query.any_of(&stock, Column::Condition, "used"));
        facets_are_counts(&stock, |query| query.text(&stock, "a"));
        // What was changed step by step is what a file of it would be.
        let defaults = ImportDefaults { dealer_id: "own".to_owned(), updated_at: day(START, 0) };
        let again = Inventory::import(text(&stock).as_bytes(), ImportFormat::Jsonl, &defaults).unwrap();
        prop_assert_eq!(seen(&again).len(), seen(&stock).len());
        prop_assert_eq!(by_id(&again), by_id(&stock));
        prop_assert_eq!(again.len(), stock.len());
    }
}

#[test]
fn edits_stay_on_top_of_the_market() {
    let (edited, plain) = (lot(500, START), lot(500, START));
    let stock = edited.stock().clone();
    let vins: Vec<String> = (20..60).filter_map(|row| stock.vin(row).map(|vin| vin.into_owned())).collect();
    let [relisted, sold, cheap, gone] = [&vins[0], &vins[1], &vins[2], &vins[3]];
    edited.patch(relisted, r#"{"status":"available"}"#, day(START, 0)).unwrap();
    edited.patch(sold, r#"{"status":"sold"}"#, day(START, 0)).unwrap();
    edited.patch(cheap, r#"{"price":1}"#, day(START, 0)).unwrap();
    edited.patch(cheap, r#"{"trim":"S"}"#, day(START, 0)).unwrap();
    edited.remove(gone, day(START, 0)).unwrap();
    edited.add(&added(1), day(START, 0)).unwrap();
    after(&edited, 120);
    after(&plain, 120);
    let stock = edited.stock();
    let detail = |vin: &str| {
        vehicles(&stock)
            .into_iter()
            .find(|vehicle| vehicle["vin"] == vin)
            .unwrap_or_else(|| panic!("no {vin}"))
    };
    assert!(matches!(stock.find(Some(relisted), None, None), Lookup::Listed(_)));
    assert!(matches!(stock.find(Some(sold), None, None), Lookup::Sold(_)));
    assert!(detail(sold)["updated_at"].as_str().unwrap().starts_with("2026-01-01T12:00:00"));
    assert_eq!((&detail(cheap)["price"], &detail(cheap)["trim"]), (&json!(1), &json!("S")));
    assert_eq!(stock.find(Some(gone), None, None), Lookup::Unknown);
    assert!(detail("WDBAA000000000001")["updated_at"].as_str().unwrap() > "2026-04-27");
    // What was not edited is as if nothing had been.
    let (mut edited, mut plain) = (by_id(&stock), by_id(&plain.stock()));
    for vin in vins.iter().take(4).map(String::as_str).chain(["WDBAA000000000001"]) {
        edited.retain(|_, vehicle| vehicle["vin"] != vin);
        plain.retain(|_, vehicle| vehicle["vin"] != vin);
    }
    assert_eq!(edited, plain);
}

#[test]
fn a_bad_edit_tells_all_its_faults_and_changes_nothing() {
    let lot = lot(100, START);
    let now = day(START, 0);
    let stock = lot.stock().clone();
    let (vin, other) = (stock.vin(0).unwrap(), stock.stock(1).unwrap());
    let told = |result: Result<Arc<Inventory>, EditError>| match result {
        Err(error) => error.faults().iter().map(|fault| fault.pointer.clone()).collect::<Vec<_>>().join(" "),
        Ok(_) => "nothing".to_owned(),
    };
    let bad = r#"{"vin":"X","prize":1,"price":-5,"status":"gone","updated_at":null,"inventory_date":"2030-01-01","a/b":1}"#;
    assert_eq!(
        told(lot.patch(&vin, bad, now)),
        "/vin /prize /updated_at /a~1b /status /price /inventory_date"
    );
    assert_eq!(told(lot.patch(&vin, r#"{"price":1,"price":2}"#, now)), "/price");
    assert_eq!(told(lot.patch(&vin, r#"{"status":null}"#, now)), "");
    for whole in ["{}", "[]", "", "1"] {
        assert!(
            matches!(lot.patch(&vin, whole, now), Err(EditError::Change(ChangeError::Invalid(_)))),
            "{whole}"
        );
    }
    let electric = by_id(&stock).into_values().find(|vehicle| vehicle["fuel"] == "bev").unwrap();
    let electric = electric["vin"].as_str().unwrap();
    assert_eq!(told(lot.patch(electric, r#"{"displacement_cc":2000}"#, now)), "/displacement_cc");
    assert!(told(lot.patch(electric, r#"{"fuel":"gas"}"#, now)).contains("/electric_range_mi"));
    assert!(matches!(lot.patch("NOSUCHVEHICLE0000", r#"{"price":1}"#, now), Err(EditError::Unknown)));
    let taken = json!({ "stock": other, "status": "available" }).to_string();
    assert!(matches!(lot.add(&taken, now), Err(EditError::Change(ChangeError::Taken { member: "stock" }))));
    assert_eq!(told(lot.add(r#"{"vin":"short","price":"x"}"#, now)), "/vin /price ");
    assert_eq!(seen(&lot.stock()), seen(&stock));
    assert_eq!(lot.counts(), [0, 0]);
}

#[test]
fn edits_are_bounded_and_counted() {
    let lot = lot(20, START);
    let vin = lot.stock().vin(0).unwrap().into_owned();
    // One vehicle's patches are one edit, however many they are.
    for price in 0..300 {
        lot.patch(&vin, &json!({ "price": price }).to_string(), day(START, 0)).unwrap();
    }
    let long = "n".repeat(4 << 20);
    let mut refused = 0;
    for row in 1..8 {
        let vin = lot.stock().vin(row).unwrap().into_owned();
        let result = lot.patch(&vin, &json!({ "description": long }).to_string(), day(START, 0));
        refused += u64::from(matches!(result, Err(EditError::TooMany)));
    }
    assert_eq!((lot.counts(), refused), ([303, 4], 4));
}

/// Large stocks are searched by make in clusters, which know of every change.
#[test]
fn a_search_for_a_make_finds_what_was_changed_in_a_large_stock() {
    let lot = lot(9_000, START);
    let patches = [
        "{\"make\":\"Kia\",\"model\":\"Roadster\"}",
        "{\"price\":1}",
        "{\"status\":\"sold\"}",
        "{\"price\":null}",
    ];
    for (step, patch) in (0..240u32).zip(patches.iter().cycle()) {
        let stock = lot.stock().clone();
        // One that was removed has no VIN any more.
        let vin = |row: u32| stock.vin(row % 9_000).unwrap_or_default().into_owned();
        match step % 24 {
            22 => drop(lot.remove(&vin(step * 131), day(START, 0))),
            23 => drop(lot.add(&added(step), day(START, 0)).unwrap()),
            _ => drop(lot.patch(&vin(step * 37), patch, day(START, 0))),
        }
    }
    for days in [0, 20] {
        after(&lot, days);
        let stock = lot.stock();
        let rows: Vec<u32> = stock.rows().collect();
        let makes: std::collections::BTreeSet<&str> =
            rows.iter().map(|&row| stock.text(row, Column::Make)).collect();
        assert!(makes.len() > 10 && makes.contains("Own Make"), "{makes:?}");
        let (mut query, mut scratch) = (Query::new(), Scratch::default());
        for make in makes {
            for sorted in [false, true] {
                query.clear();
                query.any_of(&stock, Column::Make, make);
                query.at_most(Number::Price, 40_000);
                query.page(0, u32::MAX);
                if sorted {
                    query.sort(SortField::Price, SortOrder::Descending);
                }
                let mut expected: Vec<u32> = rows
                    .iter()
                    .copied()
                    .filter(|&row| stock.text(row, Column::Make) == make && stock.status(row) != Status::Sold)
                    .filter(|&row| stock.number(row, Number::Price).is_some_and(|price| price <= 40_000))
                    .collect();
                if sorted {
                    expected.sort_by_key(|&row| std::cmp::Reverse(stock.number(row, Number::Price)));
                }
                let page = stock.search(&query, &mut scratch);
                assert_eq!(page.total as usize, expected.len(), "{make}");
                assert_eq!(page.rows, expected, "{make}");
            }
        }
    }
}
