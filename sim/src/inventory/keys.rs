//! From a VIN, a stock number or a `vehicle_id` to the vehicle's row.

use std::borrow::Cow;
use std::sync::Arc;

use super::json;
use super::store::Store;

/// The identifiers of a vehicle, from the most specific one (AAP digest, section d.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(usize)]
pub(crate) enum Key {
    Vin,
    Stock,
    VehicleId,
}

impl Key {
    pub(crate) const ALL: [Key; 3] = [Key::Vin, Key::Stock, Key::VehicleId];

    /// The member of Vehicle.
    pub(crate) fn member(self) -> &'static str {
        match self {
            Key::Vin => "vin",
            Key::Stock => "stock",
            Key::VehicleId => "vehicle_id",
        }
    }

    /// How the member begins in the text of a unit.
    fn opening(self) -> &'static [u8] {
        match self {
            Key::Vin => b"\"vin\":\"",
            Key::Stock => b"\"stock\":\"",
            Key::VehicleId => b"\"vehicle_id\":\"",
        }
    }
}

/// Writes the identifiers that a vehicle has, in the one order and form in which [`identifiers`] reads them.
pub(crate) fn write_identifiers(out: &mut Vec<u8>, values: [Option<&str>; 3]) {
    for (key, value) in Key::ALL.into_iter().zip(values) {
        if let Some(value) = value {
            json::text_member(out, key.member(), value);
        }
    }
}

/// The identifiers with which the text of a unit begins, as they are escaped in JSON, quotes left out.
///
/// They are read where they stand, since a second copy of them would cost some 50 bytes a vehicle.
fn identifiers(mut text: &[u8]) -> [Option<&[u8]>; 3] {
    let mut found = [None; 3];
    for key in Key::ALL {
        let Some(value) = text.strip_prefix(key.opening()) else { continue };
        let end = closing_quote(value);
        found[key as usize] = Some(&value[..end]);
        text = value.get(end + 1..).unwrap_or_default();
        text = text.strip_prefix(b",").unwrap_or(text);
    }
    found
}

/// Where the string whose inside begins `text` ends.
fn closing_quote(text: &[u8]) -> usize {
    let mut escaped = false;
    text.iter()
        .position(|&byte| {
            let ends = byte == b'"' && !escaped;
            escaped = byte == b'\\' && !escaped;
            ends
        })
        .unwrap_or(text.len())
}

/// One identifier of a row, without JSON escapes.
pub(crate) fn identifier(store: &Store, row: u32, key: Key) -> Option<Cow<'_, str>> {
    let text = std::str::from_utf8(identifiers(store.own_listing(row))[key as usize]?).ok()?;
    if !text.contains('\\') {
        return Some(Cow::Borrowed(text));
    }
    serde_json::from_str(&format!("\"{text}\"")).ok().map(Cow::Owned)
}

/// A hash table of rows, by one identifier of theirs: four bytes a slot, the text stays in the arena.
#[derive(Debug, Clone)]
struct Table {
    key: Key,
    /// Rows, or [`EMPTY`]; as many as a power of two, at most two thirds of them used.
    slots: Vec<u32>,
    used: usize,
}

const EMPTY: u32 = u32::MAX;

impl Table {
    fn new(key: Key, count: usize) -> Table {
        Table { key, slots: vec![EMPTY; (count * 3 / 2 + 1).next_power_of_two()], used: 0 }
    }

    /// The slots that a text may be in, from the first one to look at.
    fn probe(&self, text: &[u8]) -> impl Iterator<Item = usize> + use<> {
        let mask = self.slots.len() - 1;
        let start = hash(text) as usize;
        (0..=mask).map(move |step| (start + step) & mask)
    }

    fn insert(&mut self, text: &[u8], row: u32) {
        if let Some(slot) = self.probe(text).find(|&slot| self.slots[slot] == EMPTY) {
            self.slots[slot] = row;
            self.used += 1;
        }
    }

    /// Adds a row of the store, making the table larger if need be. Rows that lost the identifier stay behind.
    fn add(&mut self, store: &Store, text: &[u8], row: u32) {
        if (self.used + 1) * 3 / 2 + 1 > self.slots.len() {
            let mut larger = Table::new(self.key, (self.used + 1) * 2);
            for row in self.slots.iter().copied().filter(|&row| row != EMPTY) {
                if let Some(text) = identifiers(store.own_listing(row))[self.key as usize] {
                    larger.insert(text, row);
                }
            }
            *self = larger;
        }
        self.insert(text, row);
    }

    /// The rows whose identifier equals `text` (escaped as in JSON) but for the case of ASCII letters.
    fn rows<'a>(&'a self, store: &'a Store, text: &'a [u8]) -> impl Iterator<Item = (u32, &'a [u8])> {
        self.probe(text).map(|slot| self.slots[slot]).take_while(|&row| row != EMPTY).filter_map(move |row| {
            let own = identifiers(store.own_listing(row))[self.key as usize]?;
            own.eq_ignore_ascii_case(text).then_some((row, own))
        })
    }
}

/// FNV-1a over the lower-case form, so that both exact look-ups and those of free text find the same slots.
fn hash(text: &[u8]) -> u64 {
    let hash = text.iter().fold(0xcbf2_9ce4_8422_2325_u64, |hash, byte| {
        (hash ^ u64::from(byte.to_ascii_lowercase())).wrapping_mul(0x0100_0000_01b3)
    });
    // The low bits select the slot; the high ones of FNV are the better mixed ones.
    hash ^ (hash >> 32)
}

/// The three identifiers of all rows. A row is found by the text that it has now: where a vehicle has gone or another has
/// taken its place, the old entry finds nothing.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    /// Those of the stock as it was made, shared by all copies.
    first: Arc<[Table; 3]>,
    /// Those of rows that were given another vehicle since.
    later: Arc<[Table; 3]>,
}

impl Keys {
    /// Indexes a whole store.
    pub(crate) fn of(store: &Store) -> Keys {
        let rows = store.len() as u32;
        let mut counts = [0usize; 3];
        for row in 0..rows {
            for (count, text) in counts.iter_mut().zip(identifiers(store.own_listing(row))) {
                *count += usize::from(text.is_some());
            }
        }
        let mut tables = Key::ALL.map(|key| Table::new(key, counts[key as usize]));
        for row in 0..rows {
            for (table, text) in tables.iter_mut().zip(identifiers(store.own_listing(row))) {
                if let Some(text) = text {
                    table.insert(text, row);
                }
            }
        }
        Keys { first: Arc::new(tables), later: Arc::new(Key::ALL.map(|key| Table::new(key, 0))) }
    }

    /// Takes note of the vehicle that a row, an old one or a new one, has come to hold.
    pub(crate) fn add(&mut self, store: &Store, row: u32) {
        for (table, text) in
            Arc::make_mut(&mut self.later).iter_mut().zip(identifiers(store.own_listing(row)))
        {
            if let Some(text) = text {
                table.add(store, text, row);
            }
        }
    }

    /// The tables of one identifier.
    fn tables(&self, key: Key) -> impl Iterator<Item = &Table> {
        [&self.first[key as usize], &self.later[key as usize]].into_iter()
    }

    /// The row whose identifier is exactly `text`.
    pub(crate) fn find(&self, store: &Store, key: Key, text: &str) -> Option<u32> {
        let text = escape(text);
        self.tables(key).find_map(|table| {
            table.rows(store, &text).find(|(_, own)| *own == text.as_ref()).map(|(row, _)| row)
        })
    }

    /// Appends the rows whose identifier is `text` but for the case of ASCII letters.
    pub(crate) fn find_any_case(&self, store: &Store, key: Key, text: &str, rows: &mut Vec<u32>) {
        for table in self.tables(key) {
            rows.extend(table.rows(store, &escape(text)).map(|(row, _)| row));
        }
    }

    /// Bytes of heap that the tables hold.
    pub(crate) fn heap_bytes(&self) -> usize {
        let tables = self.first.iter().chain(self.later.iter());
        tables.map(|table| table.slots.capacity() * size_of::<u32>()).sum()
    }
}

/// The inside of the JSON string of `text`. Only a text with a quote, a backslash or a control character is copied.
fn escape(text: &str) -> Cow<'_, [u8]> {
    if !text.bytes().any(|byte| matches!(byte, b'"' | b'\\' | 0..0x20)) {
        return Cow::Borrowed(text.as_bytes());
    }
    let mut escaped = Vec::new();
    json::escaped(&mut escaped, text);
    Cow::Owned(escaped)
}

#[cfg(test)]
mod tests {
    use super::super::columns::Cells;
    use super::super::store::{Draft, NO_BUILD};
    use super::*;

    fn store(units: &[[Option<&str>; 3]]) -> Store {
        let mut group = Draft::new(units.len());
        for unit in units {
            let mut listing = Vec::new();
            write_identifiers(&mut listing, *unit);
            json::text_member(&mut listing, "status", "available");
            group.push(&Cells::default(), NO_BUILD, &listing, b"").unwrap();
        }
        Store::new(vec![group.seal()])
    }

    #[test]
    fn each_identifier_finds_its_row() {
        let store = store(&[
            [Some("VIN1"), Some("S-1"), Some("v1")],
            [None, Some("a\"b\\"), None],
            [Some("VIN3"), None, Some("S-1")],
            [None, None, None],
            [None, Some("s-1"), None],
        ]);
        let keys = Keys::of(&store);
        assert_eq!(keys.find(&store, Key::Vin, "VIN1"), Some(0));
        assert_eq!(keys.find(&store, Key::Vin, "vin1"), None, "identifiers are exact");
        assert_eq!(keys.find(&store, Key::Stock, "S-1"), Some(0));
        assert_eq!(keys.find(&store, Key::VehicleId, "S-1"), Some(2));
        assert_eq!(keys.find(&store, Key::Stock, "a\"b\\"), Some(1));
        assert_eq!(keys.find(&store, Key::Stock, ""), None);
        assert_eq!(identifier(&store, 1, Key::Stock).as_deref(), Some("a\"b\\"));
        assert_eq!(identifier(&store, 1, Key::Vin), None);
        let mut rows = Vec::new();
        keys.find_any_case(&store, Key::Stock, "S-1", &mut rows);
        rows.sort_unstable();
        assert_eq!(rows, [0, 4]);
    }

    #[test]
    fn many_rows_share_a_table() {
        let names: Vec<String> = (0..500).map(|i| format!("N{i:04}")).collect();
        let units: Vec<[Option<&str>; 3]> =
            names.iter().map(|name| [None, Some(name.as_str()), None]).collect();
        let store = store(&units);
        let keys = Keys::of(&store);
        for (row, name) in names.iter().enumerate() {
            assert_eq!(keys.find(&store, Key::Stock, name), Some(row as u32));
        }
        assert_eq!(keys.find(&store, Key::Stock, "N0500"), None);
    }
}
