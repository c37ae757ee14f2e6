//! Stock from and to files.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use dealer_sim::inventory::{
    CSV_COLUMNS, ExportFormat, ImportDefaults, ImportFormat, Inventory, Lookup, MOST_FAULTS, Profile,
    RowPlace, Spec, Status,
};
use jiff::civil::Date;
use proptest::prelude::*;
use serde_json::{Value, json};

fn stock(vehicles: u32) -> Inventory {
    let spec = Spec { vehicles, ..Spec::new(42, Date::constant(2026, 1, 1)) };
    Inventory::generate(&spec, &Profile::built_in().unwrap()).unwrap()
}

fn export(inventory: &Inventory, format: ExportFormat) -> String {
    let mut out = Vec::new();
    inventory.export(format, &mut out).unwrap();
    String::from_utf8(out).unwrap()
}

fn defaults() -> ImportDefaults {
    ImportDefaults { dealer_id: "own".to_owned(), updated_at: "2026-01-01T12:00:00Z".parse().unwrap() }
}

fn import(text: &str, format: ImportFormat) -> Result<Inventory, Vec<String>> {
    Inventory::import(text.as_bytes(), format, &defaults())
        .map_err(|error| error.to_string().lines().map(str::to_owned).collect())
}

fn vehicle(inventory: &Inventory, row: u32, detail: bool) -> Value {
    let mut text = Vec::new();
    if detail {
        inventory.detail(row, &mut text);
    } else {
        inventory.listing(row, &mut text);
    }
    serde_json::from_slice(&text).unwrap()
}

#[test]
fn an_export_comes_back_by_both_doors() {
    let generated = stock(9_000);
    let jsonl = export(&generated, ExportFormat::Jsonl);
    let json = export(&generated, ExportFormat::Json);
    assert_eq!(serde_json::from_str::<Vec<Value>>(&json).unwrap().len(), 9_000);
    assert_eq!(jsonl.lines().count(), 9_000);
    for (text, format) in [(&jsonl, ImportFormat::Jsonl), (&json, ImportFormat::Json)] {
        let imported = import(text, format).unwrap();
        assert_eq!(imported.len(), 9_000);
        for row in (0..9_000).step_by(7) {
            assert_eq!(vehicle(&imported, row, true), vehicle(&generated, row, true));
            assert_eq!(vehicle(&imported, row, false), vehicle(&generated, row, false));
            assert_eq!(imported.status(row), generated.status(row));
        }
        assert_eq!(imported.fixtures(), generated.fixtures());
        let again = export(&imported, ExportFormat::Jsonl);
        assert_eq!(export(&import(&again, ImportFormat::Jsonl).unwrap(), ExportFormat::Jsonl), again);
    }
}

#[test]
fn csv_has_a_line_per_vehicle() {
    let inventory = stock(50);
    let csv = export(&inventory, ExportFormat::Csv);
    let mut lines = csv.lines();
    assert_eq!(lines.next(), Some(CSV_COLUMNS.join(",").as_str()));
    assert_eq!(lines.clone().count(), 50);
    let first: Vec<&str> = lines.next().unwrap().split(',').collect();
    let vehicle = vehicle(&inventory, 0, true);
    assert_eq!(first[0], vehicle["vin"]);
    assert_eq!(first[6], vehicle["year"].to_string());
    assert!(csv.lines().nth(5).unwrap().contains(",sold,"));
}

#[test]
fn an_empty_stock_is_written_and_read() {
    assert_eq!(export(&stock(0), ExportFormat::Json), "[\n]\n");
    for (text, format) in
        [("", ImportFormat::Jsonl), ("\n \n", ImportFormat::Jsonl), (" [ ] ", ImportFormat::Json)]
    {
        let inventory = import(text, format).unwrap();
        assert!(inventory.is_empty());
        assert_eq!(inventory.fixtures().available_vin, None);
        assert!(inventory.fixtures().unknown_vin.is_some());
    }
}

#[test]
fn what_is_missing_is_filled_in_and_what_is_strange_is_kept() {
    let text = "\u{feff}[\n { \"x-first\" : {\"a\": [1, 2.50, 1e2],\n \"b\":\"\\u00e9 \\\" \"}, \"stock\":\"S\\\"1\\\"\", \"status\":\"sold\", \"make\":\"M\" } ]";
    let inventory = import(text, ImportFormat::Json).unwrap();
    assert_eq!(
        export(&inventory, ExportFormat::Jsonl),
        "{\"stock\":\"S\\\"1\\\"\",\"status\":\"sold\",\"make\":\"M\",\"dealer_id\":\"own\",\"updated_at\":\"2026-01-01T12:00:00Z\",\
         \"x-first\":{\"a\":[1,2.50,1e2],\"b\":\"\\u00e9 \\\" \"}}\n"
    );
    assert_eq!(inventory.find(None, Some("S\"1\""), None), Lookup::Sold(0));
    assert_eq!(inventory.status(0), Status::Sold);
    assert_eq!(vehicle(&inventory, 0, false).get("x-first"), None);
}

#[test]
fn every_bad_row_is_reported() {
    let text = r#"{"stock":"1","status":"available","year":1,"price":-1}

{"stock":"1","status":"available"}
{"stock":"3"}
not json
[1]
{"stock":"6","status":"available"} trailing
{"vin":"1HGCV1F30NA12345I","status":"gone"}
{"status":"pending"}
"#;
    let faults = import(text, ImportFormat::Jsonl).unwrap_err();
    let expected = [
        "line 1: /year: expected a whole number from 1900 to 2100",
        "line 1: /price: expected a whole number",
        "line 3: /stock: line 1 has the same stock",
        "line 4: /status: the member is missing",
        "line 5: expected",
        "line 6: invalid type: sequence, expected a JSON object",
        "line 7: trailing characters",
        "line 8: /vin: expected 17",
        "line 8: /status: expected one of available, intransit, pending, sold",
        "line 9: a vehicle needs a vin",
    ];
    assert_eq!(faults.len(), expected.len(), "{faults:#?}");
    for (fault, expected) in faults.iter().zip(expected) {
        assert!(fault.starts_with(expected), "{fault} should start with {expected}");
    }
}

#[test]
fn faults_are_bounded_and_counted() {
    let text: String = (0..MOST_FAULTS + 50).map(|_| "{}\n").collect();
    let error = Inventory::import(text.as_bytes(), ImportFormat::Jsonl, &defaults()).unwrap_err();
    assert_eq!((error.faults.len(), error.more), (MOST_FAULTS, 2 * (MOST_FAULTS + 50) - MOST_FAULTS));
    assert_eq!(error.faults[2].place, RowPlace::Line(2));
    assert!(error.to_string().ends_with("and 200 more"));
}

#[test]
fn a_file_that_is_no_text_or_no_list_says_so() {
    let error = Inventory::import(b"{}\n\xff", ImportFormat::Jsonl, &defaults()).unwrap_err();
    assert_eq!(error.to_string(), "file: line 2 is not UTF-8");
    let faults = import("{\"a\":1}", ImportFormat::Json).unwrap_err();
    assert!(faults[0].starts_with("file: no JSON array of vehicles:"), "{faults:?}");
    let faults = import("[{\"status\":\"sold\",\"stock\":\"1\"},\n{\"stock\":\"2\"}]", ImportFormat::Json)
        .unwrap_err();
    assert!(faults[0].starts_with("vehicle 1: /status"), "{faults:?}");
}

proptest! {
    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..200), json: bool) {
        let format = if json { ImportFormat::Json } else { ImportFormat::Jsonl };
        let _ = Inventory::import(&bytes, format, &defaults());
    }

    #[test]
    fn texts_of_any_kind_survive(make: String, stock: String, name: String, id: String) {
        prop_assume!(!["vin", "stock", "vehicle_id", "make", "status", "dealer_id", "updated_at"].contains(&name.as_str()));
        let given = json!({ "status": "available", "make": make, "stock": stock, "vehicle_id": id, format!("x{name}"): [name] });
        let inventory = import(&given.to_string(), ImportFormat::Jsonl).unwrap();
        let mut kept = vehicle(&inventory, 0, true);
        prop_assert_eq!(kept["dealer_id"].take(), json!("own"));
        for (name, value) in given.as_object().unwrap() {
            prop_assert_eq!(&kept[name], value);
        }
        prop_assert_eq!(inventory.find(None, Some(&stock), None), Lookup::Listed(0));
        prop_assert_eq!(inventory.find(None, None, Some(&id)), Lookup::Listed(0));
        let own = inventory.stock(0);
        prop_assert_eq!(own.as_deref(), Some(stock.as_str()));
    }
}
