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
fn a_table_comes_back_as_it_was() {
    let csv = export(&stock(2_000), ExportFormat::Csv);
    let imported = import(&csv, ImportFormat::Csv).unwrap();
    assert!(export(&imported, ExportFormat::Csv) == csv);
    assert!(
        export(&import(&csv.replace('\n', "\r\n"), ImportFormat::Csv).unwrap(), ExportFormat::Csv) == csv
    );
    // What a table does not show is lost; all else is as it was.
    let generated = stock(2_000);
    for row in (0..2_000).step_by(7) {
        let (mut was, is) = (vehicle(&generated, row, false), vehicle(&imported, row, false));
        if was["fees"].as_array().is_some_and(|fees| fees.len() > 1) {
            was["fees"] = is["fees"].clone();
        }
        for (name, value) in was.as_object().unwrap() {
            if name != "fees" {
                assert_eq!(&is[name], value);
            }
        }
    }
    assert_eq!(imported.fixtures(), generated.fixtures());
}

#[test]
fn every_fault_of_a_table_has_its_line_and_column() {
    let text = "vin,stock,status,price,features,stock,\n\
        1HGCV1F30NA123456,A,available,1,\"[\"\"Heated Seats\"\"]\",,\n\
        \"1HGCV1F30NA123456\",\"two\nlines\",gone,x,1,,\n\
        short,row\n\
        1HGCV1F30NA123457,b\"ad,sold,1,,,\n";
    let faults = import(text, ImportFormat::Csv).unwrap_err();
    assert_eq!(
        faults,
        [
            "1:33: /stock: is named twice",
            "1:39: /: names no member",
            "4:8: /status: must be one of: available, intransit, pending, sold",
            "4:13: /price: must be integer",
            "4:15: /features: must be array",
            "3:1: /vin: 2:1 has the same vin",
            "5:1: 2 fields, where the header has 7",
            "6:19: has a quote inside, so it must stand in quotes, with each quote doubled",
        ]
    );
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
        "line 1: /year: must be >= 1900",
        "line 1: /price: must be >= 0",
        "line 3: /stock: line 1 has the same stock",
        "line 4: must have required property 'status'",
        "line 5: expected",
        "line 6: invalid type: sequence, expected a JSON object",
        "line 7: trailing characters",
        "line 8: /vin: must match pattern",
        "line 8: /status: must be one of: available, intransit, pending, sold",
        "line 9: must have at least one of: vin, stock, vehicle_id",
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
    assert!(faults[0].starts_with("vehicle 1: must have required property 'status'"), "{faults:?}");
}

proptest! {
    #[test]
    fn any_bytes_are_answered(bytes in prop::collection::vec(any::<u8>(), 0..200), format in 0..3usize) {
        let format = [ImportFormat::Json, ImportFormat::Jsonl, ImportFormat::Csv][format];
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
