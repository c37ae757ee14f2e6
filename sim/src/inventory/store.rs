//! Where the vehicles are: their JSON text in arenas, their columns beside it, in groups of rows that are made, scanned and
//! later changed apart from each other.
//!
//! A vehicle's text has two halves. What the factory made the same for all units of one *build* (model year, trim, drive,
//! equipment) is kept once, in the arena of builds; what is the unit's own (VIN, prices, dates) stands in its group's arena.
//! Writing a vehicle is copying at most four slices. That is what keeps a million of them within 700 bytes each.

use super::columns::{COLUMNS, Cells, Column, NUMBERS, Number};

/// Rows per group: its widest column (32 KiB) and a mask fit the first-level caches together.
pub(crate) const GROUP_ROWS: usize = 8192;

/// The build of a unit whose text is all its own, such as an imported one.
pub(crate) const NO_BUILD: u32 = 0;

/// Where a text is in its arena: the members that a listing shows, then the members that only the detail shows.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    start: u32,
    listing: u32,
    detail: u32,
}

/// Texts of two parts each. A changed text is appended, and its place moved: what it was before stays behind, unused.
#[derive(Debug, Clone, Default)]
struct Arena {
    bytes: Vec<u8>,
    places: Vec<Place>,
}

/// An arena's offsets are 32 bits wide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("more than 4 GiB of text in {GROUP_ROWS} vehicles that follow one another")]
pub struct ArenaFull;

impl Arena {
    fn push(&mut self, listing: &[u8], detail: &[u8]) -> Result<(), ArenaFull> {
        let end = self.bytes.len() + listing.len() + detail.len();
        u32::try_from(end).map_err(|_| ArenaFull)?;
        let place = Place {
            start: self.bytes.len() as u32,
            listing: listing.len() as u32,
            detail: detail.len() as u32,
        };
        self.bytes.extend_from_slice(listing);
        self.bytes.extend_from_slice(detail);
        self.places.push(place);
        Ok(())
    }

    fn listing(&self, index: usize) -> &[u8] {
        let Place { start, listing, .. } = self.places[index];
        &self.bytes[start as usize..][..listing as usize]
    }

    fn detail(&self, index: usize) -> &[u8] {
        let Place { start, listing, detail } = self.places[index];
        &self.bytes[start as usize + listing as usize..][..detail as usize]
    }

    fn heap_bytes(&self) -> usize {
        self.bytes.capacity() + self.places.capacity() * size_of::<Place>()
    }
}

/// Up to [`GROUP_ROWS`] vehicles that follow one another.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    arena: Arena,
    builds: Vec<u32>,
    codes: [Vec<u16>; COLUMNS],
    numbers: [Vec<u32>; NUMBERS],
}

impl Group {
    /// Room for `rows` vehicles.
    pub(crate) fn new(rows: usize) -> Group {
        Group {
            arena: Arena { bytes: Vec::new(), places: Vec::with_capacity(rows) },
            builds: Vec::with_capacity(rows),
            codes: std::array::from_fn(|_| Vec::with_capacity(rows)),
            numbers: std::array::from_fn(|_| Vec::with_capacity(rows)),
        }
    }

    /// Appends a vehicle. `listing` and `detail` are members without the braces around them, each part without a comma at
    /// either end; `listing` begins with the vehicle's identifiers (see `keys`).
    pub(crate) fn push(
        &mut self,
        cells: &Cells,
        build: u32,
        listing: &[u8],
        detail: &[u8],
    ) -> Result<(), ArenaFull> {
        self.arena.push(listing, detail)?;
        self.builds.push(build);
        for (column, code) in self.codes.iter_mut().zip(cells.codes) {
            column.push(code);
        }
        for (column, number) in self.numbers.iter_mut().zip(cells.numbers) {
            column.push(number);
        }
        Ok(())
    }

    /// Gives back the room that the last vehicle did not need.
    pub(crate) fn seal(&mut self) {
        self.arena.bytes.shrink_to_fit();
        self.arena.places.shrink_to_fit();
        self.builds.shrink_to_fit();
        self.codes.iter_mut().for_each(Vec::shrink_to_fit);
        self.numbers.iter_mut().for_each(Vec::shrink_to_fit);
    }

    /// How many vehicles the group has.
    pub(crate) fn len(&self) -> usize {
        self.builds.len()
    }

    /// One text column.
    pub(crate) fn codes(&self, column: Column) -> &[u16] {
        &self.codes[column as usize]
    }

    /// One numeric column.
    pub(crate) fn numbers(&self, number: Number) -> &[u32] {
        &self.numbers[number as usize]
    }

    /// The builds of the vehicles, to be renumbered while the stock is made.
    pub(crate) fn builds_mut(&mut self) -> &mut [u32] {
        &mut self.builds
    }

    fn heap_bytes(&self) -> usize {
        let rows = self.builds.capacity();
        self.arena.heap_bytes()
            + rows * (size_of::<u32>() + COLUMNS * size_of::<u16>() + NUMBERS * size_of::<u32>())
    }
}

/// All vehicles that the dealer knows. A *row* is a vehicle's number from 0 on; it never changes.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    groups: Vec<Group>,
    builds: Arena,
}

impl Store {
    /// A store with no build but [`NO_BUILD`], over groups that are all full but the last.
    pub(crate) fn new(groups: Vec<Group>) -> Store {
        let mut builds = Arena::default();
        builds.places.push(Place::default());
        Store { groups, builds }
    }

    /// Adds a build, to be named by the number that is returned.
    pub(crate) fn push_build(&mut self, listing: &[u8], detail: &[u8]) -> Result<u32, ArenaFull> {
        self.builds.push(listing, detail)?;
        Ok(self.builds.places.len() as u32 - 1)
    }

    /// The groups, in the order of their rows.
    pub(crate) fn groups(&self) -> &[Group] {
        &self.groups
    }

    /// The groups, to finish what takes the whole stock to know.
    pub(crate) fn groups_mut(&mut self) -> &mut [Group] {
        &mut self.groups
    }

    /// How many vehicles there are.
    pub(crate) fn len(&self) -> usize {
        self.groups.len().saturating_sub(1) * GROUP_ROWS + self.groups.last().map_or(0, Group::len)
    }

    /// The group of a row, and the row's place in it.
    fn at(&self, row: u32) -> (&Group, usize) {
        (&self.groups[row as usize / GROUP_ROWS], row as usize % GROUP_ROWS)
    }

    /// The code of a row in a text column.
    pub(crate) fn code(&self, row: u32, column: Column) -> u16 {
        let (group, index) = self.at(row);
        group.codes[column as usize][index]
    }

    /// The number of a row in a numeric column.
    pub(crate) fn number(&self, row: u32, number: Number) -> u32 {
        let (group, index) = self.at(row);
        group.numbers[number as usize][index]
    }

    /// Replaces the number of a row in a numeric column.
    pub(crate) fn set_number(&mut self, row: u32, number: Number, value: u32) {
        self.groups[row as usize / GROUP_ROWS].numbers[number as usize][row as usize % GROUP_ROWS] = value;
    }

    /// The unit's own members of a listing, without braces.
    pub(crate) fn own_listing(&self, row: u32) -> &[u8] {
        let (group, index) = self.at(row);
        group.arena.listing(index)
    }

    /// Appends what search shows of a vehicle: one JSON object.
    pub(crate) fn write_listing(&self, row: u32, out: &mut Vec<u8>) {
        let (group, index) = self.at(row);
        let build = group.builds[index] as usize;
        write_object(out, &[self.builds.listing(build), group.arena.listing(index)]);
    }

    /// Appends all of a vehicle: one JSON object that begins as the listing does.
    pub(crate) fn write_detail(&self, row: u32, out: &mut Vec<u8>) {
        let (group, index) = self.at(row);
        let build = group.builds[index] as usize;
        write_object(
            out,
            &[
                self.builds.listing(build),
                group.arena.listing(index),
                self.builds.detail(build),
                group.arena.detail(index),
            ],
        );
    }

    /// Bytes of heap that the store holds.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.builds.heap_bytes() + self.groups.iter().map(Group::heap_bytes).sum::<usize>()
    }
}

/// Appends an object made of runs of members, any of which may be empty.
fn write_object(out: &mut Vec<u8>, parts: &[&[u8]]) {
    out.push(b'{');
    let mut first = true;
    for part in parts.iter().filter(|part| !part.is_empty()) {
        if !first {
            out.push(b',');
        }
        first = false;
        out.extend_from_slice(part);
    }
    out.push(b'}');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vehicle_is_put_together_from_its_parts() {
        let mut group = Group::new(3);
        let mut cells = Cells::default();
        cells.set(Column::Make, 7);
        cells.set_number(Number::Price, 100);
        group.push(&cells, NO_BUILD, br#""vin":"A""#, br#""notes":"n""#).unwrap();
        group.push(&Cells::default(), 1, br#""vin":"B""#, b"").unwrap();
        group.push(&Cells::default(), 1, b"", b"").unwrap();
        let mut store = Store::new(vec![group]);
        assert_eq!(store.push_build(br#""make":"M""#, br#""mpg":1"#), Ok(1));
        let text = |row, detail: bool| {
            let mut out = Vec::new();
            if detail {
                store.write_detail(row, &mut out);
            } else {
                store.write_listing(row, &mut out);
            }
            String::from_utf8(out).unwrap()
        };
        assert_eq!(text(0, false), r#"{"vin":"A"}"#);
        assert_eq!(text(0, true), r#"{"vin":"A","notes":"n"}"#);
        assert_eq!(text(1, false), r#"{"make":"M","vin":"B"}"#);
        assert_eq!(text(1, true), r#"{"make":"M","vin":"B","mpg":1}"#);
        assert_eq!(text(2, false), r#"{"make":"M"}"#);
        assert_eq!((store.len(), store.code(0, Column::Make), store.number(0, Number::Price)), (3, 7, 100));
        assert_eq!((store.code(1, Column::Make), store.number(1, Number::Price)), (0, u32::MAX));
    }
}
