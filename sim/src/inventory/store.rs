//! Where the vehicles are: their JSON text in arenas, their columns beside it, in groups of rows that are made, scanned and
//! changed apart from each other.
//!
//! A vehicle's text has two halves. What the factory made the same for all units of one *build* (model year, trim, drive,
//! equipment) is kept once, in the arena of builds; what is the unit's own (VIN, prices, dates) stands in its group's arena.
//! Writing a vehicle is copying at most four slices. That is what keeps a million of them within 700 bytes each.
//!
//! A store is changed by changing a copy of it: copies share every column and text that neither has changed, so an edit costs
//! what it touches, and whoever reads the old store goes on undisturbed.

use std::sync::Arc;

use super::clusters::{Clusters, WORTH_IT};
use super::columns::{Cells, Column, MISSING, Number};
use super::query::Query;
use super::stamp;
use super::table::{Table, TableDraft};

/// Rows per group: its widest column (32 KiB) and a mask fit the first-level caches together.
pub(crate) const GROUP_ROWS: usize = 8192;

/// The build of a unit whose text is all its own, such as an imported one.
pub(crate) const NO_BUILD: u32 = 0;

/// Changed texts that nobody reads any more may take this much room, and as much as those that are read.
const SLACK: usize = 256 << 10;

/// Where a text is in its arena: the members that a listing shows, then the members that only the detail shows.
#[derive(Debug, Clone, Copy, Default)]
struct Place {
    start: u32,
    listing: u32,
    detail: u32,
}

/// Texts of two parts each. The first ones are shared by all copies of the arena; a changed text goes to the later ones, and
/// its place moves.
#[derive(Debug, Clone)]
struct Arena {
    first: Arc<[u8]>,
    /// They begin where the first ones end.
    later: Arc<Vec<u8>>,
    places: Arc<[Place]>,
    /// Bytes of the later ones that no place names any more.
    unused: usize,
}

/// An arena in the making.
#[derive(Debug, Clone, Default)]
struct Texts {
    bytes: Vec<u8>,
    places: Vec<Place>,
}

/// An arena's offsets are 32 bits wide.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("more than 4 GiB of text in {GROUP_ROWS} vehicles that follow one another")]
pub struct ArenaFull;

impl Texts {
    fn push(&mut self, listing: &[u8], detail: &[u8]) -> Result<(), ArenaFull> {
        self.places.push(append(&mut self.bytes, 0, listing, detail)?);
        Ok(())
    }

    fn seal(self) -> Arena {
        let Texts { bytes, places } = self;
        Arena { first: bytes.into(), later: Arc::default(), places: places.into(), unused: 0 }
    }
}

/// Appends a text to bytes that begin at `base`.
fn append(bytes: &mut Vec<u8>, base: usize, listing: &[u8], detail: &[u8]) -> Result<Place, ArenaFull> {
    let end = base + bytes.len() + listing.len() + detail.len();
    u32::try_from(end).map_err(|_| ArenaFull)?;
    let start = (base + bytes.len()) as u32;
    bytes.extend_from_slice(listing);
    bytes.extend_from_slice(detail);
    Ok(Place { start, listing: listing.len() as u32, detail: detail.len() as u32 })
}

impl Arena {
    /// Both parts of a text.
    fn text(&self, Place { start, listing, detail }: Place) -> &[u8] {
        let (start, length) = (start as usize, listing as usize + detail as usize);
        match start.checked_sub(self.first.len()) {
            // An empty text may stand at the very end of the first ones.
            Some(start) => &self.later[start..][..length],
            None => &self.first[start..][..length],
        }
    }

    fn listing(&self, index: usize) -> &[u8] {
        let place = self.places[index];
        &self.text(place)[..place.listing as usize]
    }

    fn detail(&self, index: usize) -> &[u8] {
        let place = self.places[index];
        &self.text(place)[place.listing as usize..]
    }

    fn set(&mut self, index: usize, listing: &[u8], detail: &[u8]) -> Result<(), ArenaFull> {
        let base = self.first.len();
        let place = append(Arc::make_mut(&mut self.later), base, listing, detail)?;
        let old = std::mem::replace(&mut Arc::make_mut(&mut self.places)[index], place);
        if old.start as usize >= base {
            self.unused += old.listing as usize + old.detail as usize;
        }
        if self.unused > SLACK && self.unused > self.later.len() / 2 { self.tidy() } else { Ok(()) }
    }

    /// Drops the changed texts that no place names.
    fn tidy(&mut self) -> Result<(), ArenaFull> {
        let base = self.first.len();
        let mut later = Vec::with_capacity(self.later.len() - self.unused);
        let mut places = self.places.to_vec();
        for place in places.iter_mut().filter(|place| place.start as usize >= base) {
            let (listing, detail) = self.text(*place).split_at(place.listing as usize);
            *place = append(&mut later, base, listing, detail)?;
        }
        (self.later, self.places, self.unused) = (Arc::new(later), places.into(), 0);
        Ok(())
    }

    /// The same texts, to be added to.
    fn reopen(&self) -> Result<Texts, ArenaFull> {
        let mut texts = Texts::default();
        for index in 0..self.places.len() {
            texts.push(self.listing(index), self.detail(index))?;
        }
        Ok(texts)
    }

    fn heap_bytes(&self) -> usize {
        self.first.len() + self.later.capacity() + self.places.len() * size_of::<Place>()
    }
}

/// Vehicles of a group in the making.
#[derive(Debug, Clone)]
pub(crate) struct Draft {
    texts: Texts,
    builds: Vec<u32>,
    table: TableDraft,
}

impl Draft {
    /// Room for `rows` vehicles.
    pub(crate) fn new(rows: usize) -> Draft {
        Draft {
            texts: Texts { bytes: Vec::new(), places: Vec::with_capacity(rows) },
            builds: Vec::with_capacity(rows),
            table: TableDraft::new(rows),
        }
    }

    /// Appends a vehicle. `listing` and `detail` are members without the braces around them, each part without a comma at
    /// either end; `listing` begins with the vehicle's identifiers (see `keys`) and may end with the name of `updated_at`,
    /// whose value is then that of its column (see `stamp`).
    pub(crate) fn push(
        &mut self,
        cells: &Cells,
        build: u32,
        listing: &[u8],
        detail: &[u8],
    ) -> Result<(), ArenaFull> {
        self.texts.push(listing, detail)?;
        self.builds.push(build);
        self.table.push(cells);
        Ok(())
    }

    /// How many vehicles there are.
    pub(crate) fn len(&self) -> usize {
        self.builds.len()
    }

    /// The group of these vehicles, without the room that they do not need.
    pub(crate) fn seal(self) -> Group {
        Group { arena: self.texts.seal(), builds: self.builds.into(), table: self.table.seal() }
    }
}

/// Up to [`GROUP_ROWS`] vehicles that follow one another.
#[derive(Debug, Clone)]
pub(crate) struct Group {
    arena: Arena,
    builds: Arc<[u32]>,
    table: Table,
}

impl Group {
    /// How many vehicles the group has.
    pub(crate) fn len(&self) -> usize {
        self.builds.len()
    }

    /// The vehicles' cells.
    pub(crate) fn table(&self) -> &Table {
        &self.table
    }

    /// The builds of the vehicles, to be renumbered while the stock is made.
    pub(crate) fn builds_mut(&mut self) -> &mut [u32] {
        Arc::make_mut(&mut self.builds)
    }

    /// The same vehicles, to be added to.
    fn reopen(&self) -> Result<Draft, ArenaFull> {
        Ok(Draft { texts: self.arena.reopen()?, builds: self.builds.to_vec(), table: self.table.reopen() })
    }

    fn heap_bytes(&self) -> usize {
        self.arena.heap_bytes() + self.len() * size_of::<u32>() + self.table.heap_bytes()
    }
}

/// All vehicles that the dealer knows. A *row* is a vehicle's number from 0 on; within one store it never changes.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    groups: Vec<Arc<Group>>,
    builds: Arc<Texts>,
    /// The day on which most listings were touched last.
    usual_day: stamp::Day,
    /// A large stock's columns once more.
    clusters: Option<Clusters>,
}

/// A vehicle as it is put into a store.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Unit<'a> {
    pub(crate) cells: &'a Cells,
    /// A build of the store, or [`NO_BUILD`].
    pub(crate) build: u32,
    /// See [`Draft::push`].
    pub(crate) listing: &'a [u8],
    pub(crate) detail: &'a [u8],
}

impl Store {
    /// A store with no build but [`NO_BUILD`], over groups that are all full but the last.
    pub(crate) fn new(groups: Vec<Group>) -> Store {
        let builds = Texts { bytes: Vec::new(), places: vec![Place::default()] };
        let groups = groups.into_iter().map(Arc::new).collect();
        Store { groups, builds: Arc::new(builds), usual_day: stamp::Day::of(0), clusters: None }
    }

    /// Takes note of the day on which most listings were touched last: that of the latest of the first ones.
    pub(crate) fn note_usual_day(&mut self) {
        let first = self.groups.first().map_or(&[][..], |group| group.table.numbers(Number::UpdatedAt));
        let latest = first.iter().copied().filter(|&seconds| seconds != MISSING).max();
        self.usual_day = stamp::Day::of(latest.unwrap_or(0));
    }

    /// Adds a build, to be named by the number that is returned.
    pub(crate) fn push_build(&mut self, listing: &[u8], detail: &[u8]) -> Result<u32, ArenaFull> {
        let builds = Arc::make_mut(&mut self.builds);
        builds.push(listing, detail)?;
        Ok(builds.places.len() as u32 - 1)
    }

    /// The builds' two texts, by number.
    pub(crate) fn builds(&self) -> impl Iterator<Item = (&[u8], &[u8])> {
        (0..self.builds.places.len()).map(|build| self.build(build as u32))
    }

    /// The two texts of a build.
    pub(crate) fn build(&self, build: u32) -> (&[u8], &[u8]) {
        let Place { start, listing, detail } = self.builds.places[build as usize];
        self.builds.bytes[start as usize..][..listing as usize + detail as usize].split_at(listing as usize)
    }

    /// The groups, in the order of their rows.
    pub(crate) fn groups(&self) -> &[Arc<Group>] {
        &self.groups
    }

    /// One group, to finish what takes the whole stock to know.
    pub(crate) fn group_mut(&mut self, group: usize) -> &mut Group {
        Arc::make_mut(&mut self.groups[group])
    }

    /// How many rows there are.
    pub(crate) fn len(&self) -> usize {
        self.groups.len().saturating_sub(1) * GROUP_ROWS + self.groups.last().map_or(0, |group| group.len())
    }

    /// The group of a row, and the row's place in it.
    fn at(&self, row: u32) -> (&Group, usize) {
        (&self.groups[row as usize / GROUP_ROWS], row as usize % GROUP_ROWS)
    }

    fn at_mut(&mut self, row: u32) -> (&mut Group, usize) {
        (self.group_mut(row as usize / GROUP_ROWS), row as usize % GROUP_ROWS)
    }

    /// The code of a row in a text column.
    pub(crate) fn code(&self, row: u32, column: Column) -> u16 {
        let (group, index) = self.at(row);
        group.table.codes(column)[index]
    }

    /// The number of a row in a numeric column.
    pub(crate) fn number(&self, row: u32, number: Number) -> u32 {
        let (group, index) = self.at(row);
        group.table.numbers(number)[index]
    }

    /// All cells of a row.
    pub(crate) fn cells(&self, row: u32) -> Cells {
        let (group, index) = self.at(row);
        group.table.cells(index)
    }

    /// Replaces the number of a row in a numeric column.
    pub(crate) fn set_number(&mut self, row: u32, number: Number, value: u32) {
        // A column that stays as it is stays shared.
        if self.number(row, number) != value {
            let (group, index) = self.at_mut(row);
            group.table.set_number(index, number, value);
            self.cluster_again(row);
        }
    }

    /// Brings a row's cells to its cluster.
    fn cluster_again(&mut self, row: u32) {
        let cells = self.cells(row);
        if let Some(clusters) = &mut self.clusters {
            clusters.set(row, &cells);
        }
    }

    /// Replaces a vehicle. Columns in which it does not differ stay shared with the stores that this one was copied from.
    pub(crate) fn set(&mut self, row: u32, unit: Unit<'_>) -> Result<(), ArenaFull> {
        let (group, index) = self.at_mut(row);
        group.arena.set(index, unit.listing, unit.detail)?;
        if group.builds[index] != unit.build {
            group.builds_mut()[index] = unit.build;
        }
        group.table.set(index, unit.cells);
        if let Some(clusters) = &mut self.clusters {
            clusters.set(row, unit.cells);
        }
        Ok(())
    }

    /// Appends vehicles; the first one's row is the number of rows before.
    pub(crate) fn extend<'a>(&mut self, units: impl IntoIterator<Item = Unit<'a>>) -> Result<(), ArenaFull> {
        let before = self.len() as u32;
        let mut draft = match self.groups.pop_if(|last| last.len() < GROUP_ROWS) {
            Some(last) => last.reopen()?,
            None => Draft::new(0),
        };
        for unit in units {
            if draft.len() == GROUP_ROWS {
                self.groups.push(Arc::new(std::mem::replace(&mut draft, Draft::new(0)).seal()));
            }
            draft.push(unit.cells, unit.build, unit.listing, unit.detail)?;
        }
        if draft.len() > 0 {
            self.groups.push(Arc::new(draft.seal()));
        }
        if let Some(mut clusters) = self.clusters.take() {
            clusters.append((before..self.len() as u32).map(|row| (row, self.cells(row))));
            self.clusters = Some(clusters);
        }
        Ok(())
    }

    /// Clusters the vehicles, if there are so many that it is worth it.
    pub(crate) fn cluster(&mut self) {
        let rows = self.len();
        self.clusters = (rows >= WORTH_IT).then(|| Clusters::of(rows as u32, |row| self.cells(row)));
    }

    /// Forgets the clusters, before most of what is in them changes.
    pub(crate) fn uncluster(&mut self) {
        self.clusters = None;
    }

    /// The clusters, where they help with a query: one that asks for makes or models, and not for words, which are found by row.
    pub(crate) fn clusters_for(&self, query: &Query) -> Option<&Clusters> {
        let asks =
            [Column::Make, Column::Model].iter().any(|column| query.sets[*column as usize].is_active());
        self.clusters.as_ref().filter(|_| asks && query.only.is_none() && query.words().is_empty())
    }

    /// The number of a unit's build.
    pub(crate) fn build_of(&self, row: u32) -> u32 {
        let (group, index) = self.at(row);
        group.builds[index]
    }

    /// The unit's own members of a listing, without braces.
    pub(crate) fn own_listing(&self, row: u32) -> &[u8] {
        let (group, index) = self.at(row);
        group.arena.listing(index)
    }

    /// The unit's own members that only the detail shows, without braces.
    pub(crate) fn own_detail(&self, row: u32) -> &[u8] {
        let (group, index) = self.at(row);
        group.arena.detail(index)
    }

    /// Appends what search shows of a vehicle: one JSON object.
    pub(crate) fn write_listing(&self, row: u32, out: &mut Vec<u8>) {
        let (group, index) = self.at(row);
        let build = self.build(group.builds[index]);
        out.push(b'{');
        write_listing(out, build.0, group, index, &self.usual_day);
        out.push(b'}');
    }

    /// Appends all of a vehicle: one JSON object that begins as the listing does.
    pub(crate) fn write_detail(&self, row: u32, out: &mut Vec<u8>) {
        let (group, index) = self.at(row);
        let build = self.build(group.builds[index]);
        out.push(b'{');
        write_listing(out, build.0, group, index, &self.usual_day);
        for part in [build.1, group.arena.detail(index)].into_iter().filter(|part| !part.is_empty()) {
            if !out.ends_with(b"{") {
                out.push(b',');
            }
            out.extend_from_slice(part);
        }
        out.push(b'}');
    }

    /// Bytes of heap that the store holds.
    pub(crate) fn heap_bytes(&self) -> usize {
        self.builds.bytes.capacity()
            + self.builds.places.capacity() * size_of::<Place>()
            + self.groups.iter().map(|group| group.heap_bytes()).sum::<usize>()
            + self.clusters.as_ref().map_or(0, Clusters::heap_bytes)
    }
}

/// Appends the members of a listing, after the object's opening brace.
fn write_listing(out: &mut Vec<u8>, build: &[u8], group: &Group, index: usize, usual: &stamp::Day) {
    let own = group.arena.listing(index);
    out.extend_from_slice(build);
    if !build.is_empty() && !own.is_empty() {
        out.push(b',');
    }
    out.extend_from_slice(own);
    if stamp::is_due(own) {
        stamp::write(out, group.table.numbers(Number::UpdatedAt)[index], usual);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_vehicle_is_put_together_from_its_parts() {
        let mut group = Draft::new(3);
        let mut cells = Cells::default();
        cells.set(Column::Make, 7);
        cells.set_number(Number::Price, 100);
        group.push(&cells, NO_BUILD, br#""vin":"A""#, br#""notes":"n""#).unwrap();
        let mut stamped = Cells::default();
        stamped.set_number(Number::UpdatedAt, 1_767_225_600);
        group.push(&stamped, 1, br#""vin":"B","updated_at":"#, b"").unwrap();
        group.push(&Cells::default(), 1, b"", b"").unwrap();
        let mut store = Store::new(vec![group.seal()]);
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
        assert_eq!(text(1, false), r#"{"make":"M","vin":"B","updated_at":"2026-01-01T00:00:00Z"}"#);
        assert_eq!(text(1, true), r#"{"make":"M","vin":"B","updated_at":"2026-01-01T00:00:00Z","mpg":1}"#);
        assert_eq!(text(2, false), r#"{"make":"M"}"#);
        assert_eq!((store.len(), store.code(0, Column::Make), store.number(0, Number::Price)), (3, 7, 100));
        assert_eq!((store.code(1, Column::Make), store.number(1, Number::Price)), (0, u32::MAX));
    }

    #[test]
    fn a_copy_changes_alone_and_its_unused_texts_go() {
        let mut group = Draft::new(2);
        group.push(&Cells::default(), NO_BUILD, br#""vin":"A""#, b"").unwrap();
        group.push(&Cells::default(), NO_BUILD, br#""vin":"B""#, br#""notes":"n""#).unwrap();
        let before = Store::new(vec![group.seal()]);
        let mut after = before.clone();
        let mut cells = Cells::default();
        let text = |store: &Store, row| {
            let mut out = Vec::new();
            store.write_detail(row, &mut out);
            String::from_utf8(out).unwrap()
        };
        for round in 0..100_000u32 {
            cells.set_number(Number::Price, round);
            let listing = format!(r#""vin":"A","price":{round}"#);
            let unit = Unit { cells: &cells, build: NO_BUILD, listing: listing.as_bytes(), detail: b"" };
            after.set(0, unit).unwrap();
        }
        assert_eq!((text(&before, 0), text(&before, 1)), (r#"{"vin":"A"}"#.into(), text(&after, 1)));
        assert_eq!(text(&after, 0), r#"{"vin":"A","price":99999}"#);
        assert_eq!((before.number(0, Number::Price), after.number(0, Number::Price)), (u32::MAX, 99_999));
        assert!(after.heap_bytes() < 4 * SLACK, "{}", after.heap_bytes());
        let unit = Unit { cells: &cells, build: NO_BUILD, listing: br#""vin":"C""#, detail: b"" };
        after.extend(std::iter::repeat_n(unit, GROUP_ROWS)).unwrap();
        assert_eq!((after.len(), before.len(), after.groups().len()), (GROUP_ROWS + 2, 2, 2));
        assert_eq!(text(&after, GROUP_ROWS as u32 + 1), r#"{"vin":"C"}"#);
        assert_eq!(text(&after, 1), r#"{"vin":"B","notes":"n"}"#);
    }
}
