//! What the dealer has: stock from a seed or from a file, kept so that a million vehicles fit and a search over them is
//! fast. Knows vehicles, nothing of A2A, JSON-RPC or leads.
//!
//! - [`Profile`] is who the dealer is, [`Spec`] what stock to make, [`Inventory`] the stock.
//! - [`Query`] is a search, filled anew for each request; [`Inventory::search`], [`Inventory::facets`] and
//!   [`Inventory::find`] answer.
//! - [`Inventory::listing`] and [`Inventory::detail`] write a vehicle as JSON.

mod build;
mod catalogue;
mod clusters;
mod columns;
mod csv;
mod dictionary;
mod draw;
mod edit;
mod export;
mod facets;
mod fixtures;
pub(crate) mod generate;
mod import;
mod json;
mod keys;
mod market;
mod members;
mod patterns;
mod profile;
mod profile_toml;
mod query;
mod scan;
mod search;
mod siblings;
mod stamp;
mod store;
mod table;
mod turnover;
mod unit;
mod vehicle;
pub mod vin;
mod vocabulary;

pub use columns::{Column, Number, Status};
pub use dictionary::TooManyValues;
pub(crate) use edit::merge_patches;
pub use edit::{ChangeError, VehicleFault};
pub use export::{CSV_COLUMNS, ExportFormat, UnknownFormat};
pub use facets::FacetKeys;
pub use fixtures::Fixtures;
pub use generate::{GenerateError, MOST_VEHICLES, Spec};
pub use import::{ImportDefaults, ImportError, ImportFormat, MOST_FAULTS, RowFault, RowPlace};
pub use profile::{
    Address, Contact, Fee, Geo, Hours, Profile, ProfileError, ProfileFault, Rooftop, Schedule, WeeklyHours,
};
pub use query::{Query, SortField, SortOrder};
pub use search::{Page, Scratch};
pub use store::ArenaFull;
pub use vocabulary::VocabularyError;

use std::sync::Arc;

use columns::{GONE, MISSING};
use dictionary::Dictionaries;
use keys::{Key, Keys};
use patterns::Patterns;
use store::Store;

/// All vehicles that a dealer knows. A vehicle is named by its *row*, a number from 0 on.
///
/// A stock does not change. An edit gives a new one that shares with the old one what it did not touch, so whoever reads goes
/// on with the stock it began with.
#[derive(Debug, Clone)]
pub struct Inventory {
    store: Store,
    dictionaries: Arc<Dictionaries>,
    keys: Keys,
    patterns: Patterns,
    /// Rows whose vehicle was removed.
    gone: u32,
    /// What it was made from, unless it came from a file.
    spec: Option<Spec>,
}

/// What is known of a vehicle that somebody asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lookup {
    /// It is in stock, in this row.
    Listed(u32),
    /// It was sold: known, in this row, and not to be shown.
    Sold(u32),
    /// Nothing is known of it.
    Unknown,
}

impl Inventory {
    /// Indexes what is complete but for that.
    fn finish(mut store: Store, mut dictionaries: Dictionaries, spec: Option<Spec>) -> Inventory {
        dictionaries.seal();
        rank_stock(&mut store);
        store.note_usual_day();
        store.cluster();
        let keys = Keys::of(&store);
        let patterns = Patterns::of(&store);
        Inventory { store, dictionaries: Arc::new(dictionaries), keys, patterns, gone: 0, spec }
    }

    /// How many vehicles are known, sold ones among them.
    pub fn len(&self) -> u32 {
        self.store.len() as u32 - self.gone
    }

    /// The rows of all vehicles that are known.
    pub fn rows(&self) -> impl Iterator<Item = u32> {
        (0..self.store.len() as u32).filter(|&row| self.store.code(row, Column::Status) != GONE)
    }

    /// Whether no vehicle is known.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The state of life of a vehicle.
    pub fn status(&self, row: u32) -> Status {
        let code = self.store.code(row, Column::Status);
        // A row without a known state cannot come in; were there one, it would be shown to nobody.
        Status::ALL.into_iter().find(|status| status.code() == code).unwrap_or(Status::Sold)
    }

    /// A text member of a vehicle; empty where it has none. A unit without `vehicle_type` is a `car`.
    pub fn text(&self, row: u32, column: Column) -> &str {
        self.dictionaries.of(column).value(self.store.code(row, column))
    }

    /// A numeric member of a vehicle, in the unit of [`Number`].
    pub fn number(&self, row: u32, number: Number) -> Option<u32> {
        Some(self.store.number(row, number)).filter(|&value| value != MISSING)
    }

    /// The VIN of a vehicle.
    pub fn vin(&self, row: u32) -> Option<std::borrow::Cow<'_, str>> {
        keys::identifier(&self.store, row, Key::Vin)
    }

    /// The stock number of a vehicle.
    pub fn stock(&self, row: u32) -> Option<std::borrow::Cow<'_, str>> {
        keys::identifier(&self.store, row, Key::Stock)
    }

    /// Appends what a search shows of a vehicle: a Vehicle object (AAP digest, section d.5) with `status`, `dealer_id` and
    /// `updated_at`.
    pub fn listing(&self, row: u32, out: &mut Vec<u8>) {
        self.store.write_listing(row, out);
    }

    /// Takes members out of the vehicle whose object begins at `from` and ends `out`.
    pub fn leave_out(names: &[&str], from: usize, out: &mut Vec<u8>) {
        if out.pop() == Some(b'}') {
            members::remove_all(out, from + 1, names);
        }
        out.push(b'}');
    }

    /// Appends all that is known of a vehicle: a Vehicle object that begins as the listing does. That of a sold one has the
    /// status `sold`, which AAP does not know: it is for exports only.
    pub fn detail(&self, row: u32, out: &mut Vec<u8>) {
        self.store.write_detail(row, out);
    }

    /// Looks a vehicle up by its identifiers, exactly. The most specific one that is known decides: VIN, then stock number,
    /// then `vehicle_id` (AAP digest, section d.4).
    pub fn find(&self, vin: Option<&str>, stock: Option<&str>, vehicle_id: Option<&str>) -> Lookup {
        let given = [(Key::Vin, vin), (Key::Stock, stock), (Key::VehicleId, vehicle_id)];
        let row = given.into_iter().find_map(|(key, text)| self.keys.find(&self.store, key, text?));
        match row {
            Some(row) if self.status(row) == Status::Sold => Lookup::Sold(row),
            Some(row) => Lookup::Listed(row),
            None => Lookup::Unknown,
        }
    }

    /// Bytes of heap that texts, columns and indices take: what a large stock costs.
    pub fn heap_bytes(&self) -> usize {
        self.store.heap_bytes() + self.keys.heap_bytes() + self.patterns.heap_bytes()
    }
}

/// Sets [`Number::StockRank`]: stock numbers sort as texts do, in plain code-point order.
fn rank_stock(store: &mut Store) {
    let mut numbers: Vec<(u64, u32)> = Vec::with_capacity(store.len());
    for row in 0..store.len() as u32 {
        if let Some(stock) = keys::identifier(store, row, Key::Stock) {
            // The first eight bytes decide nearly always; big-endian, so that they compare as the text does.
            let mut prefix = [0; 8];
            let length = stock.len().min(8);
            prefix[..length].copy_from_slice(&stock.as_bytes()[..length]);
            numbers.push((u64::from_be_bytes(prefix), row));
        }
    }
    numbers.sort_unstable_by(|a, b| {
        a.0.cmp(&b.0).then_with(|| {
            let stock = |row| keys::identifier(store, row, Key::Stock);
            stock(a.1).cmp(&stock(b.1)).then(a.1.cmp(&b.1))
        })
    });
    for (rank, (_, row)) in numbers.into_iter().enumerate() {
        store.set_number(row, Number::StockRank, rank as u32);
    }
}
