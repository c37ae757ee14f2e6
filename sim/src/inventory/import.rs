//! Stock from a file: AAP Vehicle objects, one per line or in one array, or a table of them. Every bad row is reported.

use std::collections::HashMap;
use std::fmt;
use std::str::FromStr;

use jiff::Timestamp;
use serde_json::value::RawValue;

use super::Inventory;
use super::columns::{MISSING, Number};
use super::csv::{Field, Header, MOST_COLUMNS, Records};
use super::dictionary::Dictionaries;
use super::export::UnknownFormat;
use super::generate::MOST_VEHICLES;
use super::json;
use super::keys::{self, Key};
use super::stamp;
use super::store::{Draft, GROUP_ROWS, Group, NO_BUILD, Store};
use super::vehicle::{self, Checked, Members};
use crate::protocol::json::Doc;

/// The form of a stock file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ImportFormat {
    /// One JSON object per line; blank lines are passed over.
    Jsonl,
    /// One JSON array of objects.
    Json,
    /// RFC 4180: a line with the names of members, then a vehicle per record. An empty field is a member that the vehicle does
    /// not have; lists and objects are written as JSON, and `fees` may be their sum, as an export has it.
    Csv,
}

impl FromStr for ImportFormat {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<ImportFormat, UnknownFormat> {
        match name {
            "jsonl" => Ok(ImportFormat::Jsonl),
            "json" => Ok(ImportFormat::Json),
            "csv" => Ok(ImportFormat::Csv),
            _ => Err(UnknownFormat { name: name.to_owned() }),
        }
    }
}

/// What is filled in where a vehicle does not say it itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportDefaults {
    /// `dealer_id`.
    pub dealer_id: String,
    /// `updated_at`, which a dealer must state for any claim (AAP digest, section f).
    pub updated_at: Timestamp,
}

/// A file that cannot be taken: every row that is wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ImportError {
    /// The first [`MOST_FAULTS`] faults, in the order of the file; at least one.
    pub faults: Vec<RowFault>,
    /// How many more there are.
    pub more: usize,
}

/// How many faults of a file are told one by one.
pub const MOST_FAULTS: usize = 100;

/// One thing that is wrong in a stock file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{place}: {}{reason}", if .pointer.is_empty() { String::new() } else { format!("{}: ", .pointer) })]
pub struct RowFault {
    /// Which vehicle.
    pub place: RowPlace,
    /// The member, as a JSON Pointer into the vehicle; empty for the vehicle itself.
    pub pointer: String,
    /// What is wrong, and what is allowed.
    pub reason: String,
}

/// Where a vehicle is in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RowPlace {
    /// The line, from 1 on.
    Line(usize),
    /// The place in the array, from 0 on.
    Index(usize),
    /// The line and the character in it, both from 1 on, at which a field of a table begins.
    Field(usize, usize),
    /// The file as a whole.
    File,
}

impl fmt::Display for RowPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            RowPlace::Line(line) => write!(f, "line {line}"),
            RowPlace::Index(index) => write!(f, "vehicle {index}"),
            RowPlace::Field(line, column) => write!(f, "{line}:{column}"),
            RowPlace::File => f.write_str("file"),
        }
    }
}

impl ImportError {
    /// The faults, one a line, each with the name of its file.
    pub fn in_file(&self, file: &str) -> String {
        let mut lines: Vec<String> = self
            .faults
            .iter()
            .map(|fault| match fault.place {
                RowPlace::Field(..) => format!("{file}:{fault}"),
                _ => format!("{file}: {fault}"),
            })
            .collect();
        if self.more > 0 {
            lines.push(format!("{file}: and {} more", self.more));
        }
        lines.join("\n")
    }
}

impl fmt::Display for ImportError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, fault) in self.faults.iter().enumerate() {
            let before = if index > 0 { "\n" } else { "" };
            write!(f, "{before}{fault}")?;
        }
        if self.more > 0 {
            write!(f, "\nand {} more", self.more)?;
        }
        Ok(())
    }
}

impl std::error::Error for ImportError {}

/// The members that a listing shows; the others are for the detail alone. The same split as generated stock has.
const LISTED: [&str; 27] = [
    "vehicle_type",
    "year",
    "make",
    "model",
    "trim",
    "body",
    "engine",
    "displacement_cc",
    "fuel",
    "transmission",
    "driveline",
    "electric_range_mi",
    "dc_fast_charge",
    "charge_port",
    "condition",
    "status",
    "dealer_id",
    "rooftop",
    "mileage",
    "exterior_color",
    "interior_color",
    "list_price",
    "msrp",
    "fees",
    "price",
    "inventory_date",
    "updated_at",
];

impl Inventory {
    /// Takes stock from a file. Vehicles keep their members, known to AAP or not, and their order.
    ///
    /// Each one needs a `status` (one of AAP's three, or `sold`) and one of `vin`, `stock`, `vehicle_id`, which no other
    /// vehicle may have. A missing `dealer_id` or `updated_at` is filled in.
    ///
    /// # Errors
    ///
    /// If any row is wrong: all of the faults, so that one pass mends the file.
    pub fn import(
        bytes: &[u8],
        format: ImportFormat,
        defaults: &ImportDefaults,
    ) -> Result<Inventory, ImportError> {
        let mut import = Import::new(defaults);
        match std::str::from_utf8(bytes) {
            Ok(text) => {
                // Some editors put a byte order mark before UTF-8; RFC 8259 lets a reader pass over it.
                let text = text.strip_prefix('\u{feff}').unwrap_or(text);
                match format {
                    ImportFormat::Jsonl => import.lines(text),
                    ImportFormat::Json => import.array(text),
                    ImportFormat::Csv => import.table(text),
                }
            }
            Err(error) => {
                let line = bytes[..error.valid_up_to()].iter().filter(|&&byte| byte == b'\n').count() + 1;
                import.fault(RowPlace::File, String::new(), format!("line {line} is not UTF-8"));
            }
        }
        import.finish()
    }
}

struct Import<'a> {
    defaults: &'a ImportDefaults,
    dictionaries: Dictionaries,
    groups: Vec<Group>,
    /// The vehicles after those groups.
    draft: Draft,
    rows: u32,
    /// Which vehicle has an identifier.
    taken: [HashMap<String, RowPlace>; 3],
    faults: Vec<RowFault>,
    more: usize,
    doc: Doc,
    listing: Vec<u8>,
    detail: Vec<u8>,
}

impl<'a> Import<'a> {
    fn new(defaults: &'a ImportDefaults) -> Import<'a> {
        Import {
            defaults,
            dictionaries: Dictionaries::new(),
            groups: Vec::new(),
            draft: Draft::new(0),
            rows: 0,
            taken: Default::default(),
            faults: Vec::new(),
            more: 0,
            doc: Doc::default(),
            listing: Vec::new(),
            detail: Vec::new(),
        }
    }

    fn fault(&mut self, place: RowPlace, pointer: String, reason: String) {
        if self.faults.len() < MOST_FAULTS {
            self.faults.push(RowFault { place, pointer, reason });
        } else {
            self.more += 1;
        }
    }

    fn lines(&mut self, text: &str) {
        for (index, line) in text.lines().enumerate() {
            if !line.trim().is_empty() {
                self.vehicle(&|_| RowPlace::Line(index + 1), line);
            }
        }
    }

    fn array(&mut self, text: &str) {
        match serde_json::from_str::<Vec<&RawValue>>(text) {
            Ok(vehicles) => {
                for (index, vehicle) in vehicles.into_iter().enumerate() {
                    self.vehicle(&|_| RowPlace::Index(index), vehicle.get());
                }
            }
            Err(error) => {
                self.fault(RowPlace::File, String::new(), format!("no JSON array of vehicles: {error}"));
            }
        }
    }

    fn table(&mut self, text: &str) {
        let place = |field: &Field| RowPlace::Field(field.line, field.column(text));
        let mut records = Records::of(text);
        let Some(names) = records.next() else {
            return self.fault(
                RowPlace::File,
                String::new(),
                "has no header, a line with names of members".to_owned(),
            );
        };
        if names.len() > MOST_COLUMNS {
            let reason = format!("{} columns; {MOST_COLUMNS} at most", names.len());
            return self.fault(RowPlace::Field(1, 1), String::new(), reason);
        }
        for (index, field) in names.iter().enumerate() {
            let reason = match field.fault {
                Some(fault) => fault,
                None if field.text.is_empty() => "names no member",
                None if names[..index].iter().any(|other| other.text == field.text) => "is named twice",
                None => continue,
            };
            self.fault(place(field), format!("/{}", vehicle::escape(&field.text)), reason.to_owned());
        }
        let header = Header::of(names);
        let mut json = Vec::new();
        for record in records {
            let is_written_well = record.iter().all(|field| field.fault.is_none());
            for field in record.iter().filter(|field| field.fault.is_some()) {
                self.fault(place(field), String::new(), field.fault.unwrap_or_default().to_owned());
            }
            if !is_written_well {
                continue;
            }
            if record.len() != header.len() {
                let reason = format!("{} fields, where the header has {}", record.len(), header.len());
                self.fault(place(&record[0]), String::new(), reason);
            } else {
                header.write(&record, &mut json);
                let at = |pointer: &str| {
                    let name =
                        pointer.split('/').nth(1).map(|name| name.replace("~1", "/").replace("~0", "~"));
                    place(&record[name.and_then(|name| header.position(&name)).unwrap_or(0)])
                };
                // Made of texts that were UTF-8.
                self.vehicle(&at, std::str::from_utf8(&json).unwrap_or_default());
            }
        }
    }

    /// Takes in one vehicle. `at` says where in the file what a pointer names is written.
    fn vehicle(&mut self, at: &dyn Fn(&str) -> RowPlace, text: &str) {
        let place = at("");
        let members = match serde_json::from_str::<Members<'_>>(text) {
            Ok(members) => members,
            Err(error) => return self.fault(place, String::new(), error.to_string()),
        };
        let mut faults = Vec::new();
        let checked = vehicle::check(text, &members, &mut self.doc, &mut self.dictionaries, &mut faults);
        let mut right = faults.is_empty();
        self.more += checked.unlisted;
        for fault in faults {
            self.fault(at(&fault.pointer), fault.pointer, fault.reason);
        }
        for key in Key::ALL {
            let Some(identifier) = &checked.identifiers[key as usize] else { continue };
            if let Some(other) = self.taken[key as usize].get(identifier).copied() {
                right = false;
                let pointer = format!("/{}", key.member());
                self.fault(at(&pointer), pointer, format!("{other} has the same {}", key.member()));
            } else {
                self.taken[key as usize].insert(identifier.clone(), place);
            }
        }
        if right {
            self.store(place, &members, checked);
        }
    }

    /// Puts a vehicle that is right into the store.
    fn store(&mut self, place: RowPlace, members: &Members<'_>, mut checked: Checked) {
        if self.rows == MOST_VEHICLES {
            return self.fault(place, String::new(), format!("more than {MOST_VEHICLES} vehicles"));
        }
        compose(members, &mut checked, self.defaults, &mut self.listing, &mut self.detail);
        if self.draft.len() == GROUP_ROWS {
            self.groups.push(std::mem::replace(&mut self.draft, Draft::new(0)).seal());
        }
        match self.draft.push(&checked.cells, NO_BUILD, &self.listing, &self.detail) {
            Ok(()) => self.rows += 1,
            Err(error) => self.fault(place, String::new(), error.to_string()),
        }
    }

    fn finish(mut self) -> Result<Inventory, ImportError> {
        if !self.faults.is_empty() {
            return Err(ImportError { faults: self.faults, more: self.more });
        }
        if self.draft.len() > 0 {
            self.groups.push(self.draft.seal());
        }
        Ok(Inventory::finish(Store::new(self.groups), self.dictionaries, None))
    }
}

/// Replaces both halves of a vehicle's text, and fills in what it does not say itself.
pub(crate) fn compose(
    members: &Members<'_>,
    checked: &mut Checked,
    defaults: &ImportDefaults,
    listing: &mut Vec<u8>,
    detail: &mut Vec<u8>,
) {
    listing.clear();
    detail.clear();
    keys::write_identifiers(listing, checked.identifiers.each_ref().map(Option::as_deref));
    for (name, value) in &members.0 {
        if Key::ALL.iter().any(|key| key.member() == name) {
            continue;
        }
        let part = if LISTED.contains(&name.as_ref()) { &mut *listing } else { &mut *detail };
        if !part.is_empty() {
            part.push(b',');
        }
        json::string(part, name);
        part.push(b':');
        minify(value.get(), part);
    }
    if !checked.has_dealer_id {
        json::text_member(listing, "dealer_id", &defaults.dealer_id);
    }
    match checked.cells.numbers[Number::UpdatedAt as usize] {
        MISSING => {
            // To the second, as generated stock has it.
            let seconds = defaults.updated_at.as_second().clamp(0, i64::from(MISSING - 1));
            checked.cells.set_number(Number::UpdatedAt, seconds as u32);
            listing.push(b',');
            listing.extend_from_slice(stamp::OPEN);
        }
        seconds => stamp::take_off(listing, seconds),
    }
}

/// Appends JSON without the blanks between its tokens, so that a vehicle stays on one line.
fn minify(text: &str, out: &mut Vec<u8>) {
    let (mut quoted, mut escaped) = (false, false);
    for byte in text.bytes() {
        if quoted || !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') {
            out.push(byte);
        }
        if byte == b'"' && !escaped {
            quoted = !quoted;
        }
        escaped = quoted && byte == b'\\' && !escaped;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn blanks_between_tokens_go() {
        let mut out = Vec::new();
        minify("{ \"a b\\\" \" : [ 1 ,\n\t2 ] }", &mut out);
        assert_eq!(String::from_utf8(out).unwrap(), "{\"a b\\\" \":[1,2]}");
    }
}
