//! Changes of a stock while it is served, one vehicle at a time. They are made on a copy, which [`Inventory::settle`] makes
//! ready to be searched; what they do not touch stays shared with the stock that the copy was made from.

use std::borrow::Cow;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::Serialize;
use serde_json::value::RawValue;

use super::columns::{Cells, Column, GONE, Number, Status};
use super::dictionary::Dictionaries;
use super::import::{ImportDefaults, compose};
use super::keys::Key;
use super::store::{NO_BUILD, Unit};
use super::vehicle::{self, Checked, Members};
use super::{Inventory, MOST_VEHICLES, json, rank_stock, stamp};
use crate::protocol::json::Doc;
use crate::protocol::payload::STOCK_SHAPE;
use crate::protocol::shape::Shape;

/// One thing that is wrong with a change.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct VehicleFault {
    /// The member, as a JSON Pointer; empty for the change as a whole.
    pub pointer: String,
    /// What is wrong, and what is allowed.
    pub reason: String,
}

/// Why a vehicle cannot be changed or added.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ChangeError {
    /// What was given is wrong.
    #[error("the change is not valid: {}", list(.0))]
    Invalid(Vec<VehicleFault>),
    /// Another vehicle has an identifier of the new one.
    #[error(
        "a vehicle with this {member} is known already; change it with PATCH, or give the new one another {member}"
    )]
    Taken {
        /// The identifier's member.
        member: &'static str,
    },
    /// The stock cannot hold more.
    #[error("the stock cannot hold more: {0}")]
    Full(String),
}

fn list(faults: &[VehicleFault]) -> String {
    let texts: Vec<String> =
        faults.iter().map(|fault| format!("{} {}", fault.pointer, fault.reason).trim().to_owned()).collect();
    texts.join("; ")
}

/// Members that say which vehicle it is, or that the dealer itself keeps.
const FIXED: [(&str, &str); 5] = [
    ("vin", "says which vehicle it is; add another vehicle instead"),
    ("stock", "says which vehicle it is; add another vehicle instead"),
    ("vehicle_id", "says which vehicle it is; add another vehicle instead"),
    ("dealer_id", "is the dealer's own"),
    ("updated_at", "is set by the business clock"),
];

/// Members that only a vehicle with a plug has, and the fuels that have none.
const PLUG: [&str; 4] = ["charge_port", "dc_fast_charge", "electric_range_mi", "battery_kwh"];
const WITHOUT_PLUG: [&str; 4] = ["gas", "gasoline", "diesel", "hybrid"];

impl Inventory {
    /// Changes a row's vehicle as JSON Merge Patch (RFC 7396) does: a member is replaced, or removed where it is null.
    /// `now` becomes its `updated_at`. Before the next search, [`Inventory::settle`] is due.
    ///
    /// # Errors
    /// Everything that is wrong with the patch; the vehicle is then as it was.
    pub(crate) fn patch(&mut self, row: u32, patch: &str, now: Timestamp) -> Result<(), ChangeError> {
        let changes = parse(patch)?;
        let mut faults = Vec::new();
        check_names(&changes, &mut faults);
        let mut before = Vec::new();
        self.detail(row, &mut before);
        let before = String::from_utf8_lossy(&before);
        let after = merged(&parse(&before)?, &changes, &["updated_at"]);
        let defaults = ImportDefaults { dealer_id: String::new(), updated_at: now };
        let today = now.to_zoned_datetime(TimeZone::UTC).date();
        self.write(Some(row), &after, &defaults, faults, |text, faults| {
            check_together(text, |name| names(&changes, name), today, faults);
        })?;
        Ok(())
    }

    /// Adds a vehicle in the form of a stock file; what it does not say itself is filled in. Answers its row, the last one.
    /// Before the next search, [`Inventory::settle`] is due.
    ///
    /// # Errors
    /// Everything that is wrong with it, or the identifier that is not its own.
    pub(crate) fn add(&mut self, text: &str, defaults: &ImportDefaults) -> Result<u32, ChangeError> {
        if self.store.len() >= MOST_VEHICLES as usize {
            return Err(ChangeError::Full(format!("{MOST_VEHICLES} vehicles")));
        }
        let today = defaults.updated_at.to_zoned_datetime(TimeZone::UTC).date();
        self.write(None, text, defaults, Vec::new(), |text, faults| {
            check_together(text, |_| true, today, faults);
        })
    }

    /// Forgets a row's vehicle.
    pub(crate) fn remove(&mut self, row: u32) {
        let mut cells = Cells::default();
        cells.set(Column::Status, GONE);
        // Nothing is appended to the texts, so they cannot be full.
        let _ = self.store.set(row, Unit { cells: &cells, build: NO_BUILD, listing: b"", detail: b"" });
        self.patterns.set(row, &cells);
        self.gone += 1;
    }

    /// Has the `updated_at` of a vehicle that is listed be `seconds` since 1970 at least. One that was given in a form of its
    /// own stays.
    pub(crate) fn look_through(&mut self, row: u32, seconds: u32) {
        let before = self.store.number(row, Number::UpdatedAt);
        if before < seconds && self.status(row) != Status::Sold && stamp::is_due(self.store.own_listing(row))
        {
            self.store.set_number(row, Number::UpdatedAt, seconds);
        }
    }

    /// Makes a changed stock ready to be searched. `has_grown` says whether vehicles were added.
    pub(crate) fn settle(&mut self, has_grown: bool) {
        Arc::make_mut(&mut self.dictionaries).seal();
        if has_grown {
            rank_stock(&mut self.store);
        }
    }

    /// Checks a whole vehicle and puts it into a row, or into a new one.
    fn write(
        &mut self,
        row: Option<u32>,
        text: &str,
        defaults: &ImportDefaults,
        mut faults: Vec<VehicleFault>,
        more: impl Fn(&serde_json::Value, &mut Vec<VehicleFault>),
    ) -> Result<u32, ChangeError> {
        let members = parse(text)?;
        let mut found = Vec::new();
        // Words of a vehicle that is refused must not stay behind.
        let mut dictionaries: Dictionaries = (*self.dictionaries).clone();
        let mut checked = vehicle::check(text, &members, &mut Doc::default(), &mut dictionaries, &mut found);
        faults.extend(
            found.into_iter().map(|fault| VehicleFault { pointer: fault.pointer, reason: fault.reason }),
        );
        if let Ok(value) = serde_json::from_str(text) {
            more(&value, &mut faults);
        }
        // A member that the patch may not name is told of once.
        let mut told = Vec::<VehicleFault>::new();
        for fault in faults {
            if !told.iter().any(|other| other.pointer == fault.pointer) {
                told.push(fault);
            }
        }
        if !told.is_empty() {
            return Err(ChangeError::Invalid(told));
        }
        if row.is_none() {
            self.check_identifiers(&checked)?;
        }
        let (mut listing, mut detail) = (Vec::new(), Vec::new());
        compose(&members, &mut checked, defaults, &mut listing, &mut detail);
        let cells = &mut checked.cells;
        if let Some(row) = row {
            // The identifiers are what they were, and so is the stock number's rank.
            let rank = Number::StockRank;
            cells.set_number(rank, self.store.number(row, rank));
        }
        let unit = Unit { cells, build: NO_BUILD, listing: &listing, detail: &detail };
        let place = row.unwrap_or(self.store.len() as u32);
        let stored = match row {
            Some(row) => self.store.set(row, unit),
            None => self.store.extend([unit]),
        };
        stored.map_err(|error| ChangeError::Full(error.to_string()))?;
        self.patterns.set(place, cells);
        self.dictionaries = Arc::new(dictionaries);
        if row.is_none() {
            self.keys.add(&self.store, place);
        }
        Ok(place)
    }

    fn check_identifiers(&self, checked: &Checked) -> Result<(), ChangeError> {
        for key in Key::ALL {
            let given = checked.identifiers[key as usize].as_deref();
            if given.is_some_and(|text| self.keys.find(&self.store, key, text).is_some()) {
                return Err(ChangeError::Taken { member: key.member() });
            }
        }
        Ok(())
    }
}

fn parse(text: &str) -> Result<Members<'_>, ChangeError> {
    serde_json::from_str(text).map_err(|error| {
        let reason = format!("expected a JSON object with members of one vehicle: {error}");
        ChangeError::Invalid(vec![VehicleFault { pointer: String::new(), reason }])
    })
}

fn names(members: &Members<'_>, name: &str) -> bool {
    members.0.iter().any(|(own, _)| own == name)
}

/// A patch on top of an earlier one: what the later one says holds.
pub(crate) fn merge_patches(earlier: &str, later: &str) -> Result<String, ChangeError> {
    let (earlier, later) = (parse(earlier)?, parse(later)?);
    let kept = earlier.0.into_iter().filter(|(name, _)| !names(&later, name));
    let all: Vec<_> = kept.chain(later.0.iter().map(|(name, value)| (name.clone(), *value))).collect();
    Ok(object(&all))
}

/// The text of a vehicle after a patch, without the members `left_out`.
fn merged(before: &Members<'_>, changes: &Members<'_>, left_out: &[&str]) -> String {
    // Of a member that a patch names twice the first counts; it is refused anyway.
    let new = |name: &str| changes.0.iter().find(|(own, _)| own == name).map(|(_, value)| *value);
    let kept = before.0.iter().map(|(name, value)| (name.clone(), new(name).unwrap_or(value)));
    let added = changes.0.iter().filter(|(name, _)| !names(before, name));
    let all: Vec<_> = kept
        .chain(added.map(|(name, value)| (name.clone(), *value)))
        .filter(|(name, value)| value.get() != "null" && !left_out.contains(&name.as_ref()))
        .collect();
    object(&all)
}

fn object(members: &[(Cow<'_, str>, &RawValue)]) -> String {
    let mut out = vec![b'{'];
    for (index, (name, value)) in members.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        json::string(&mut out, name);
        out.push(b':');
        out.extend_from_slice(value.get().as_bytes());
    }
    out.push(b'}');
    // Made of texts that were UTF-8.
    String::from_utf8(out).unwrap_or_default()
}

/// What a patch may name: the members of Vehicle, but for those that are not for others to set.
fn check_names(changes: &Members<'_>, faults: &mut Vec<VehicleFault>) {
    let mut fault = |name: &str, reason: String| {
        faults.push(VehicleFault { pointer: format!("/{}", vehicle::escape(name)), reason });
    };
    if changes.0.is_empty() {
        fault("", "the patch changes nothing; name a member, such as {\"price\": 24990}".to_owned());
    }
    for (index, (name, _)) in changes.0.iter().enumerate() {
        let fixed = FIXED.iter().find(|(fixed, _)| fixed == name);
        if let Some((_, why)) = fixed {
            fault(name, (*why).to_owned());
        } else if changes.0[..index].iter().any(|(earlier, _)| earlier == name) {
            fault(name, "the member stands here twice".to_owned());
        } else if !is_member(name) {
            fault(name, "no vehicle has such a member".to_owned());
        }
    }
}

fn is_member(name: &str) -> bool {
    matches!(&STOCK_SHAPE, Shape::Record(record) if record.fields.iter().any(|field| field.name == name))
}

/// What no vehicle can be, as far as it is `touched`: what a stock came with is not held against a change.
fn check_together(
    vehicle: &serde_json::Value,
    touched: impl Fn(&str) -> bool,
    today: Date,
    faults: &mut Vec<VehicleFault>,
) {
    let mut fault = |name: &str, reason: String| {
        faults.push(VehicleFault { pointer: format!("/{name}"), reason });
    };
    let fuel = vehicle["fuel"].as_str().unwrap_or_default();
    if WITHOUT_PLUG.contains(&fuel) {
        for name in PLUG.into_iter().filter(|name| vehicle.get(name).is_some()) {
            if touched(name) || touched("fuel") {
                fault(name, format!("a vehicle whose fuel is {fuel} has none"));
            }
        }
    }
    if fuel == "bev"
        && vehicle.get("displacement_cc").is_some()
        && (touched("displacement_cc") || touched("fuel"))
    {
        fault("displacement_cc", "a vehicle whose fuel is bev has none".to_owned());
    }
    let came = vehicle["inventory_date"].as_str().and_then(|date| date.parse::<Date>().ok());
    if touched("inventory_date") && came.is_some_and(|date| date > today) {
        fault("inventory_date", format!("is after today, {today}"));
    }
}
