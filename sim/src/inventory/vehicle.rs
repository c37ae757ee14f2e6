//! What a vehicle from a file must look like, and what the columns take from it. The rules of Vehicle are those of the
//! protocol ([`payload::STOCK_SHAPE`]); [`check`] adds what only the inventory asks: what its columns can hold.

use std::borrow::Cow;
use std::collections::{BTreeMap, HashSet};
use std::fmt;

use serde::de::{Deserialize, Deserializer, MapAccess, Visitor};
use serde_json::value::RawValue;

use super::columns::{Cells, Column, MISSING, Number};
use super::dictionary::Dictionaries;
use super::keys::Key;
use crate::protocol::contract::Contract;
use crate::protocol::format;
use crate::protocol::json::{Doc, Value};
use crate::protocol::payload;
use crate::protocol::validate::validate;

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
    /// How many faults there are beyond those listed.
    pub(crate) unlisted: usize,
}

/// Checks one vehicle, `text`, whose members are `members`. Texts of the columns are put into `dictionaries`; every fault
/// is added to `faults`. `doc` is scratch.
pub(crate) fn check(
    text: &str,
    members: &Members<'_>,
    doc: &mut Doc,
    dictionaries: &mut Dictionaries,
    faults: &mut Vec<Fault>,
) -> Checked {
    let mut check = Check { checked: Checked::default(), dictionaries, faults };
    // A listing without the member is a car (digest, section d.5).
    check.checked.cells.set(Column::VehicleType, 1);
    match doc.parse(text.as_bytes()) {
        Ok(vehicle) => check.vehicle(vehicle),
        Err(error) => match check.without_twins(members) {
            None => check.fault(String::new(), error.to_string()),
            Some(text) => match doc.parse(text.as_bytes()) {
                Ok(vehicle) => check.vehicle(vehicle),
                Err(error) => check.fault(String::new(), error.to_string()),
            },
        },
    }
    check.checked
}

struct Check<'a> {
    checked: Checked,
    dictionaries: &'a mut Dictionaries,
    faults: &'a mut Vec<Fault>,
}

impl Check<'_> {
    fn fault(&mut self, pointer: String, reason: String) {
        self.faults.push(Fault { pointer, reason });
    }

    /// A member that no column can hold; one that the shape has refused is not refused again.
    fn unfit(&mut self, name: &str, reason: String) {
        let pointer = format!("/{name}");
        if self.faults.iter().all(|fault| fault.pointer != pointer) {
            self.fault(pointer, reason);
        }
    }

    /// Reports names that stand here twice. If there are any, answers the vehicle with the first of each, so that its other
    /// faults are found in the same pass.
    fn without_twins(&mut self, members: &Members<'_>) -> Option<String> {
        let mut unique = BTreeMap::new();
        for (name, value) in &members.0 {
            if unique.contains_key(name) {
                self.fault(format!("/{}", escape(name)), "the member stands here twice".to_owned());
            } else {
                unique.insert(name, value);
            }
        }
        if unique.len() == members.0.len() { None } else { serde_json::to_string(&unique).ok() }
    }

    fn vehicle(&mut self, vehicle: Value<'_>) {
        // Vehicle is the same in every contract.
        let told = validate(vehicle, &payload::STOCK_SHAPE, &Contract::V3_0.features, "");
        self.checked.unlisted = told.unlisted;
        self.faults
            .extend(told.list.into_iter().map(|fault| Fault { pointer: fault.at, reason: fault.error }));
        for (name, value) in vehicle.members() {
            self.member(name, value);
        }
    }

    /// Takes what the columns hold of a member. Where the type is not that of the column, the shape has said so.
    fn member(&mut self, name: &str, value: Value<'_>) {
        if let Some(key) = Key::ALL.into_iter().find(|key| key.member() == name) {
            self.checked.identifiers[key as usize] = value.as_str().map(str::to_owned);
            return;
        }
        if let Some(column) = Column::ALL.into_iter().find(|column| column.member() == name) {
            let flag = value.as_bool().map(|flag| if flag { "true" } else { "false" });
            if let Some(text) = flag.or(value.as_str()) {
                self.intern(name, column, text);
            }
            return;
        }
        match name {
            "year" => self.number(name, Number::Year, value),
            "price" => self.number(name, Number::Price, value),
            "list_price" => self.number(name, Number::ListPrice, value),
            "msrp" => self.number(name, Number::Msrp, value),
            "mileage" => self.number(name, Number::Mileage, value),
            "displacement_cc" => self.number(name, Number::DisplacementCc, value),
            "electric_range_mi" => self.number(name, Number::ElectricRange, value),
            "updated_at" => self.instant(name, value),
            "dealer_id" => self.checked.has_dealer_id = true,
            "fees" => self.fee_names(value),
            _ => {}
        }
    }

    fn intern(&mut self, name: &str, column: Column, text: &str) {
        match self.dictionaries.intern(column, text) {
            Ok(code) => self.checked.cells.set(column, code),
            Err(error) => self.unfit(name, format!("{error} of this member in the file")),
        }
    }

    fn number(&mut self, name: &str, number: Number, value: Value<'_>) {
        let most = MISSING - 1;
        // Whole numbers of 32 bits are exact as doubles.
        let scaled = value.as_f64().map(|value| (value * f64::from(number.scale())).round());
        match scaled.filter(|scaled| (0.0..=f64::from(most)).contains(scaled)) {
            Some(scaled) => self.checked.cells.set_number(number, scaled as u32),
            None => self.unfit(name, format!("must be <= {}", most / number.scale())),
        }
    }

    fn instant(&mut self, name: &str, value: Value<'_>) {
        let seconds = value.as_str().and_then(format::date_time).map(|(seconds, _)| seconds);
        match seconds.and_then(|seconds| u32::try_from(seconds).ok()).filter(|&seconds| seconds != MISSING) {
            Some(seconds) => self.checked.cells.set_number(Number::UpdatedAt, seconds),
            None => self.unfit(name, "must be a time from 1970 to 2105".to_owned()),
        }
    }

    /// Names of fees differ (AAP digest, section d.6), which the shape cannot say.
    fn fee_names(&mut self, fees: Value<'_>) {
        let mut names = HashSet::new();
        for (index, fee) in fees.items().enumerate() {
            if fee.get("name").and_then(Value::as_str).is_some_and(|name| !names.insert(name)) {
                let reason = "a second fee of this name; names must differ".to_owned();
                self.fault(format!("/fees/{index}/name"), reason);
            }
        }
    }
}

/// A name as a part of a JSON Pointer (RFC 6901).
pub(crate) fn escape(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(text: &str) -> Vec<String> {
        let members: Members<'_> = serde_json::from_str(text).unwrap();
        let mut faults = Vec::new();
        check(text, &members, &mut Doc::default(), &mut Dictionaries::new(), &mut faults);
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
            (r#""price":1e300"#, "/price"),
            (r#""electric_range_mi":4294967.3"#, "/electric_range_mi"),
            (r#""updated_at":"1969-12-31T23:59:59Z""#, "/updated_at"),
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
            (r#""fees":[{"name":"A","amount":1},{"name":"A","amount":2}]"#, "/fees/1/name"),
            (r#""fees":[{"name":" ","amount":1}]"#, "/fees/0/name"),
            (r#""fees":[{"name":"A"}]"#, "/fees/0"),
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

    #[test]
    fn a_repeated_name_hides_no_other_fault() {
        assert_eq!(
            faults(r#"{"stock":"1","a/b":1,"status":"gone","a/b":2,"price":-1,"a/b":3}"#),
            [
                "/a~1b the member stands here twice",
                "/a~1b the member stands here twice",
                "/price must be >= 0",
                "/status must be one of: available, intransit, pending, sold",
            ]
        );
        let inside = faults(r#"{"stock":"1","status":"sold","x":{"a":1,"a":2}}"#);
        assert!(inside.len() == 1 && inside[0].contains("repeated member name \"a\""), "{inside:?}");
    }
}
