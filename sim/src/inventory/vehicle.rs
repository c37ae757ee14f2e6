//! What a vehicle from a file must look like, and what the columns take from it. One function, [`check`], decides; the
//! rules are those of the digest, section d.5, for a listing.

use std::borrow::Cow;
use std::fmt;

use jiff::Timestamp;
use jiff::civil::Date;
use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::Value;
use serde_json::value::RawValue;

use super::columns::{CONDITIONS, Cells, Column, MISSING, Number, Status, VEHICLE_TYPES};
use super::dictionary::Dictionaries;
use super::keys::Key;
use super::vin;

/// A JSON object with its members in their order, values as they were written.
pub(crate) struct Members<'a>(pub(crate) Vec<(Cow<'a, str>, &'a RawValue)>);

impl<'de: 'a, 'a> Deserialize<'de> for Members<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Members<'a>, D::Error> {
        struct Collect;

        impl<'de> Visitor<'de> for Collect {
            type Value = Members<'de>;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a JSON object with the members of one vehicle")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Members<'de>, A::Error> {
                let mut members = Vec::new();
                while let Some((Name(name), value)) = map.next_entry()? {
                    members.push((name, value));
                }
                Ok(Members(members))
            }
        }

        deserializer.deserialize_map(Collect)
    }
}

/// A member's name, borrowed unless it has escapes.
#[derive(serde::Deserialize)]
struct Name<'a>(#[serde(borrow)] Cow<'a, str>);

/// Where in a vehicle something is wrong, as a JSON Pointer, and what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Fault {
    pub(crate) pointer: String,
    pub(crate) reason: String,
}

/// What the inventory needs to know of a vehicle beside its text.
#[derive(Debug, Default)]
pub(crate) struct Checked {
    pub(crate) cells: Cells,
    /// VIN, stock number and `vehicle_id`.
    pub(crate) identifiers: [Option<String>; 3],
    pub(crate) has_dealer_id: bool,
    pub(crate) has_updated_at: bool,
}

/// Checks one vehicle. Texts of the columns are put into `dictionaries`; every fault is added to `faults`.
pub(crate) fn check(
    members: &Members<'_>,
    dictionaries: &mut Dictionaries,
    faults: &mut Vec<Fault>,
) -> Checked {
    let mut check = Check { checked: Checked::default(), dictionaries, faults };
    // A listing without the member is a car (digest, section d.5).
    check.checked.cells.set(Column::VehicleType, 1);
    let mut has_status = false;
    for (index, (name, raw)) in members.0.iter().enumerate() {
        if members.0[..index].iter().any(|(other, _)| other == name) {
            check.fault(name, "the member stands here twice");
            continue;
        }
        has_status |= name == "status";
        match serde_json::from_str::<Value>(raw.get()) {
            Ok(value) => check.member(name, &value),
            Err(error) => check.fault(name, &format!("{error}")),
        }
    }
    if !has_status {
        check.fault("status", "the member is missing: available, intransit, pending or sold");
    }
    if !members.0.iter().any(|(name, _)| Key::ALL.iter().any(|key| key.member() == name)) {
        let reason = "a vehicle needs a vin, a stock or a vehicle_id, or nobody can ask for it".to_owned();
        check.faults.push(Fault { pointer: String::new(), reason });
    }
    check.checked
}

struct Check<'a> {
    checked: Checked,
    dictionaries: &'a mut Dictionaries,
    faults: &'a mut Vec<Fault>,
}

impl Check<'_> {
    /// `path` is a pointer without its first slash; a member's own name is escaped here.
    fn fault(&mut self, name: &str, reason: &str) {
        self.fault_at(format!("/{}", escape(name)), reason);
    }

    fn fault_at(&mut self, pointer: String, reason: &str) {
        self.faults.push(Fault { pointer, reason: reason.to_owned() });
    }

    fn member(&mut self, name: &str, value: &Value) {
        match name {
            "vin" => self.identifier(Key::Vin, value),
            "stock" => self.identifier(Key::Stock, value),
            "vehicle_id" => self.identifier(Key::VehicleId, value),
            "status" => self.word(name, value, Column::Status, &Status::ALL.map(Status::word)),
            "condition" => self.word(name, value, Column::Condition, &CONDITIONS),
            "vehicle_type" => self.word(name, value, Column::VehicleType, &VEHICLE_TYPES),
            "make" => self.text(name, value, Column::Make),
            "model" => self.text(name, value, Column::Model),
            "trim" => self.text(name, value, Column::Trim),
            "body" => self.text(name, value, Column::Body),
            "transmission" => self.text(name, value, Column::Transmission),
            "driveline" => self.text(name, value, Column::Driveline),
            "engine" => self.text(name, value, Column::Engine),
            "fuel" => self.text(name, value, Column::Fuel),
            "exterior_color" => self.text(name, value, Column::ExteriorColor),
            "interior_color" => self.text(name, value, Column::InteriorColor),
            "rooftop" if value.is_null() => {}
            "charge_port" if value.is_null() => {}
            "rooftop" => self.text(name, value, Column::Rooftop),
            "charge_port" => self.text(name, value, Column::ChargePort),
            "dc_fast_charge" => match value.as_bool() {
                Some(flag) => self.intern(name, Column::DcFastCharge, if flag { "true" } else { "false" }),
                None => self.fault(name, "expected true or false"),
            },
            "year" => self.integer(name, value, Number::Year, 1900, 2100),
            "price" => self.integer(name, value, Number::Price, 0, MISSING - 1),
            "list_price" => self.integer(name, value, Number::ListPrice, 0, MISSING - 1),
            "msrp" => self.integer(name, value, Number::Msrp, 0, MISSING - 1),
            "mileage" => self.integer(name, value, Number::Mileage, 0, MISSING - 1),
            "displacement_cc" => self.integer(name, value, Number::DisplacementCc, 0, MISSING - 1),
            "city_mpg" | "highway_mpg" if integer(value).is_none() => {
                self.fault(name, "expected a whole number from 0 on");
            }
            "electric_range_mi" => self.range(name, value),
            "battery_kwh" | "motor_power_hp" if value.as_f64().is_none_or(|number| number < 0.0) => {
                self.fault(name, "expected a number from 0 on");
            }
            "dealer_id" => {
                self.checked.has_dealer_id = true;
                self.expect_text(name, value);
            }
            "description" | "notes" => self.expect_text(name, value),
            "updated_at" => self.updated_at(name, value),
            "inventory_date" if !value.as_str().is_some_and(is_date) => {
                self.fault(name, "expected a date such as \"2026-04-21\"");
            }
            "vdp_url" => self.uri(format!("/{name}"), value),
            "photos" => self.items(name, value, |check, pointer, photo| check.uri(pointer, photo)),
            "features" => self.items(name, value, |check, pointer, feature| {
                if !feature.is_string() {
                    check.fault_at(pointer, "expected a text");
                }
            }),
            "fees" => self.fees(name, value),
            "other_attributes" => self.attributes(name, value),
            // What is right, and what AAP does not name: Vehicle is an open object.
            _ => {}
        }
    }

    fn expect_text(&mut self, name: &str, value: &Value) {
        if !value.is_string() {
            self.fault(name, "expected a text");
        }
    }

    fn identifier(&mut self, key: Key, value: &Value) {
        match value.as_str() {
            Some(text) if key != Key::Vin || vin::is_well_formed(text) => {
                self.checked.identifiers[key as usize] = Some(text.to_owned());
            }
            Some(_) => {
                self.fault(key.member(), "expected 17 digits and upper-case letters without I, O and Q");
            }
            None => self.fault(key.member(), "expected a text"),
        }
    }

    fn intern(&mut self, name: &str, column: Column, text: &str) {
        match self.dictionaries.intern(column, text) {
            Ok(code) => self.checked.cells.set(column, code),
            Err(error) => self.fault(name, &format!("{error} of this member in the file")),
        }
    }

    fn text(&mut self, name: &str, value: &Value, column: Column) {
        match value.as_str() {
            Some(text) => self.intern(name, column, text),
            None => self.fault(name, "expected a text"),
        }
    }

    fn word(&mut self, name: &str, value: &Value, column: Column, words: &[&str]) {
        match value.as_str().filter(|word| words.contains(word)) {
            Some(word) => self.intern(name, column, word),
            None => self.fault(name, &format!("expected one of {}", words.join(", "))),
        }
    }

    fn integer(&mut self, name: &str, value: &Value, number: Number, low: u32, high: u32) {
        match integer(value)
            .and_then(|value| u32::try_from(value).ok())
            .filter(|value| (low..=high).contains(value))
        {
            Some(value) => self.checked.cells.set_number(number, value),
            None => self.fault(name, &format!("expected a whole number from {low} to {high}")),
        }
    }

    fn range(&mut self, name: &str, value: &Value) {
        let scaled = value.as_f64().map(|miles| (miles * f64::from(Number::ElectricRange.scale())).round());
        match scaled.filter(|scaled| (0.0..f64::from(MISSING)).contains(scaled)) {
            Some(scaled) => self.checked.cells.set_number(Number::ElectricRange, scaled as u32),
            None => self.fault(name, "expected a number of miles from 0 to 4294967"),
        }
    }

    fn updated_at(&mut self, name: &str, value: &Value) {
        self.checked.has_updated_at = true;
        match value.as_str().and_then(instant) {
            Some(seconds) => self.checked.cells.set_number(Number::UpdatedAt, seconds),
            None => {
                self.fault(
                    name,
                    "expected a time with its offset, such as \"2026-04-30T08:42:00Z\", from 1970 to 2105",
                );
            }
        }
    }

    fn uri(&mut self, pointer: String, value: &Value) {
        if value.as_str().is_none_or(|text| fluent_uri::Uri::parse(text).is_err()) {
            self.fault_at(pointer, "expected an absolute URI such as \"https://dealer.example/1\"");
        }
    }

    fn items(&mut self, name: &str, value: &Value, mut item: impl FnMut(&mut Self, String, &Value)) {
        let Some(items) = value.as_array() else {
            self.fault(name, "expected a list");
            return;
        };
        for (index, value) in items.iter().enumerate() {
            item(self, format!("/{name}/{index}"), value);
        }
    }

    fn fees(&mut self, name: &str, value: &Value) {
        let mut names: Vec<String> = Vec::new();
        self.items(name, value, |check, pointer, fee| {
            let Some(fee) = fee.as_object() else {
                check.fault_at(pointer, "expected an object with name and amount");
                return;
            };
            for key in fee.keys().filter(|key| !matches!(key.as_str(), "name" | "amount")) {
                check.fault_at(
                    format!("{pointer}/{}", escape(key)),
                    "unknown member; a fee has name and amount",
                );
            }
            let text = fee.get("name").and_then(Value::as_str).unwrap_or_default();
            if text.trim().is_empty() || text.chars().count() > 120 {
                check.fault_at(
                    format!("{pointer}/name"),
                    "expected a text of 1 to 120 characters, not all blank",
                );
            } else if names.iter().any(|other| other == text) {
                check.fault_at(format!("{pointer}/name"), "a second fee of this name; names must differ");
            }
            names.push(text.to_owned());
            if fee.get("amount").and_then(integer).is_none() {
                check.fault_at(format!("{pointer}/amount"), "expected whole USD from 0 on");
            }
        });
    }

    fn attributes(&mut self, name: &str, value: &Value) {
        let Some(attributes) = value.as_object() else {
            self.fault(name, "expected an object");
            return;
        };
        for (key, value) in attributes {
            let fits = match value {
                Value::String(_) | Value::Number(_) | Value::Bool(_) => true,
                Value::Array(items) => {
                    items.iter().all(Value::is_string) || items.iter().all(Value::is_number)
                }
                Value::Null | Value::Object(_) => false,
            };
            if !fits {
                let pointer = format!("/{name}/{}", escape(key));
                self.fault_at(
                    pointer,
                    "expected a text, a number, true or false, or a list of texts or of numbers",
                );
            }
        }
    }
}

/// A whole number from 0 on, in any of the forms that JSON Schema counts as one: `20`, `20.0`, `2e1`.
fn integer(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| {
        // Up to 2^53 every whole number has a float of its own.
        let number = value.as_f64()?;
        (number.fract() == 0.0 && (0.0..=9_007_199_254_740_992.0).contains(&number)).then_some(number as u64)
    })
}

fn is_date(text: &str) -> bool {
    text.len() == 10 && text.parse::<Date>().is_ok()
}

/// Seconds since 1970 of an RFC 3339 time; none if it is not one, or does not fit the column.
fn instant(text: &str) -> Option<u32> {
    // The parser knows more forms than RFC 3339 has, such as a blank for the T or a zone in brackets.
    let strict = text.len() >= 20 && matches!(text.as_bytes()[10], b'T' | b't') && !text.contains(['[', ' ']);
    let seconds = strict.then(|| text.parse::<Timestamp>().ok()).flatten()?.as_second();
    u32::try_from(seconds).ok().filter(|&seconds| seconds != MISSING)
}

/// A name as a part of a JSON Pointer (RFC 6901).
fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(text: &str) -> Vec<String> {
        let members: Members<'_> = serde_json::from_str(text).unwrap();
        let mut faults = Vec::new();
        check(&members, &mut Dictionaries::new(), &mut faults);
        faults.into_iter().map(|fault| format!("{} {}", fault.pointer, fault.reason)).collect()
    }

    #[test]
    fn what_is_right_passes() {
        let vehicle = r#"{"stock":"1","status":"sold","year":2e3,"price":20.0,"rooftop":null,"charge_port":null,"fees":[],
            "electric_range_mi":238.5,"other_attributes":{"a":[1,2],"b":["x"],"c":true,"d":1.5,"e":"f","g":[]},"x-y":{"z":null},
            "updated_at":"2026-04-30T08:42:00+02:00","inventory_date":"2026-04-30","photos":["https://a.example/1"],"features":["x"],
            "dc_fast_charge":false}"#;
        assert_eq!(faults(vehicle), Vec::<String>::new());
    }

    #[test]
    fn every_fault_has_its_pointer() {
        let cases = [
            (r#""vin":"1HGCV1F30NA12345O""#, "/vin"),
            (r#""vin":17"#, "/vin"),
            (r#""stock":null"#, "/stock"),
            (r#""condition":"excellent""#, "/condition"),
            (r#""condition":"New""#, "/condition"),
            (r#""vehicle_type":"boat""#, "/vehicle_type"),
            (r#""make":1"#, "/make"),
            (r#""year":1899"#, "/year"),
            (r#""year":2020.5"#, "/year"),
            (r#""price":-1"#, "/price"),
            (r#""price":4294967295"#, "/price"),
            (r#""msrp":"1""#, "/msrp"),
            (r#""city_mpg":1.5"#, "/city_mpg"),
            (r#""electric_range_mi":-0.5"#, "/electric_range_mi"),
            (r#""battery_kwh":"a""#, "/battery_kwh"),
            (r#""dc_fast_charge":"true""#, "/dc_fast_charge"),
            (r#""updated_at":"2026-04-30 08:42:00Z""#, "/updated_at"),
            (r#""updated_at":"2026-04-30T08:42:00""#, "/updated_at"),
            (r#""inventory_date":"2026-02-30""#, "/inventory_date"),
            (r#""photos":["https://a.example","no uri"]"#, "/photos/1"),
            (r#""features":[1]"#, "/features/0"),
            (r#""features":{}"#, "/features"),
            (r#""fees":[{"name":"A","amount":1},{"name":"A","amount":1}]"#, "/fees/1/name"),
            (r#""fees":[{"name":" ","amount":1}]"#, "/fees/0/name"),
            (r#""fees":[{"name":"A"}]"#, "/fees/0/amount"),
            (r#""fees":[{"name":"A","amount":1,"x/y":1}]"#, "/fees/0/x~1y"),
            (r#""other_attributes":{"a~b":{}}"#, "/other_attributes/a~0b"),
            (r#""other_attributes":{"a":[1,"b"]}"#, "/other_attributes/a"),
            (r#""vdp_url":"/relative""#, "/vdp_url"),
            (r#""trim":"a","trim":"b""#, "/trim"),
        ];
        for (member, pointer) in cases {
            let vehicle = format!(r#"{{"vehicle_id":"1","status":"available",{member}}}"#);
            let faults = faults(&vehicle);
            assert_eq!(faults.len(), 1, "{member}: {faults:?}");
            assert!(faults[0].starts_with(&format!("{pointer} ")), "{member}: {faults:?}");
        }
        assert_eq!(faults("{}").len(), 2, "status and an identifier");
        assert_eq!(faults(r#"{"status":"gone","year":"x","stock":""}"#).len(), 2, "all at once");
    }
}
