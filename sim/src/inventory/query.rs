//! A search as the inventory understands it: filters resolved to codes and numbers, an order and a page.

use super::Inventory;
use super::columns::{COLUMNS, Column, MISSING, NUMBERS, Number};
use super::dictionary::fold_into;
use super::keys::Key;

/// A filter of `inventory.search` and `inventory.facets` (AAP digest, section d.2) with its order and page. Made once and
/// filled anew for each request: after the first few it allocates nothing.
///
/// Text values are resolved when they are given, so a query belongs to the inventory that was passed in.
#[derive(Debug, Clone, Default)]
pub struct Query {
    pub(crate) sets: [CodeSet; COLUMNS],
    pub(crate) ranges: [Option<Bounds>; NUMBERS],
    /// The only row that may match, if a VIN or a stock number was asked for, or that there is none.
    pub(crate) only: Option<Option<u32>>,
    words: Vec<Word>,
    word_count: usize,
    folded: String,
    pub(crate) sort: Option<(SortField, SortOrder)>,
    pub(crate) skip: usize,
    pub(crate) limit: usize,
}

/// What to sort by (AAP digest, section d.2). Units that lack the member come last in both orders.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "each is the member of Vehicle of that name")]
pub enum SortField {
    Price,
    ListPrice,
    Msrp,
    Mileage,
    Year,
    Make,
    Model,
    Stock,
    UpdatedAt,
}

impl SortField {
    /// Every field, in the order of the digest.
    pub const ALL: [SortField; 9] = [
        SortField::Price,
        SortField::ListPrice,
        SortField::Msrp,
        SortField::Mileage,
        SortField::Year,
        SortField::Make,
        SortField::Model,
        SortField::Stock,
        SortField::UpdatedAt,
    ];

    /// The name of the field on the wire.
    pub fn member(self) -> &'static str {
        match self {
            SortField::Price => "price",
            SortField::ListPrice => "list_price",
            SortField::Msrp => "msrp",
            SortField::Mileage => "mileage",
            SortField::Year => "year",
            SortField::Make => "make",
            SortField::Model => "model",
            SortField::Stock => "stock",
            SortField::UpdatedAt => "updated_at",
        }
    }

    /// The field that a name on the wire stands for.
    pub fn from_member(name: &str) -> Option<SortField> {
        SortField::ALL.into_iter().find(|field| field.member() == name)
    }
}

/// Which end comes first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[allow(missing_docs, reason = "said by their names")]
pub enum SortOrder {
    Ascending,
    Descending,
}

/// Inclusive bounds of a numeric column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Bounds {
    pub(crate) low: u32,
    pub(crate) high: u32,
}

/// The greatest number that a vehicle can have.
const GREATEST: u32 = MISSING - 1;

/// Codes of one column, any of which matches.
#[derive(Debug, Clone, Default)]
pub(crate) struct CodeSet {
    /// Whether there is a constraint at all; one without codes matches nothing.
    active: bool,
    codes: Vec<u16>,
    /// 1 for each code in the set, by code. Kept beside the list, since a long list is slower to compare with than a table.
    table: Vec<u8>,
}

impl CodeSet {
    fn clear(&mut self) {
        self.active = false;
        for code in self.codes.drain(..) {
            self.table[usize::from(code)] = 0;
        }
    }

    fn add(&mut self, code: u16, codes: usize) {
        if self.table.len() < codes {
            self.table.resize(codes, 0);
        }
        if std::mem::replace(&mut self.table[usize::from(code)], 1) == 0 {
            self.codes.push(code);
        }
    }

    /// Whether vehicles are held to the set.
    pub(crate) fn is_active(&self) -> bool {
        self.active
    }

    /// The codes, each once.
    pub(crate) fn codes(&self) -> &[u16] {
        &self.codes
    }

    /// 1 for each code in the set. Shorter than the dictionary only if the set is empty.
    pub(crate) fn table(&self) -> &[u8] {
        &self.table
    }
}

/// One word of free text: where it occurs.
#[derive(Debug, Clone, Default)]
pub(crate) struct Word {
    pub(crate) sets: [CodeSet; Column::SEARCHED.len()],
    pub(crate) years: Vec<u32>,
    pub(crate) rows: Vec<u32>,
}

impl Word {
    fn clear(&mut self) {
        self.sets.iter_mut().for_each(CodeSet::clear);
        self.years.clear();
        self.rows.clear();
    }

    fn occurs(&self) -> bool {
        !self.years.is_empty() || !self.rows.is_empty() || self.sets.iter().any(|set| !set.codes.is_empty())
    }
}

/// Different words of free text that narrow a search; each costs a look at every vehicle.
const MAX_WORDS: usize = 16;

impl Query {
    /// A query without a filter, for the first 20 vehicles in the dealer's own order.
    pub fn new() -> Query {
        let mut query = Query::default();
        query.clear();
        query
    }

    /// Back to what [`Query::new`] gives, keeping the buffers.
    pub fn clear(&mut self) {
        self.sets.iter_mut().for_each(CodeSet::clear);
        self.ranges = [None; NUMBERS];
        self.only = None;
        self.word_count = 0;
        self.sort = None;
        self.skip = 0;
        self.limit = 20;
    }

    /// Adds a value that a text member may have. Several values of one column are alternatives, different columns all
    /// apply. Case does not count (AAP digest, j 27). A value that the inventory does not know matches nothing by itself.
    pub fn any_of(&mut self, inventory: &Inventory, column: Column, value: &str) {
        fold_into(value, &mut self.folded);
        let dictionary = inventory.dictionaries.of(column);
        let set = &mut self.sets[column as usize];
        set.active = true;
        for code in dictionary.equal(&self.folded) {
            set.add(code, dictionary.codes());
        }
    }

    /// Demands that a number be `bound` or more (inclusive). A vehicle without the number never matches.
    pub fn at_least(&mut self, number: Number, bound: u64) {
        let bound = scaled(number, bound);
        let bounds = self.ranges[number as usize].get_or_insert(Bounds { low: 0, high: GREATEST });
        // A bound beyond every number that can be held leaves no number to match.
        bounds.low = bounds.low.max(u32::try_from(bound).unwrap_or(MISSING));
    }

    /// Demands that a number be `bound` or less (inclusive). A vehicle without the number never matches.
    pub fn at_most(&mut self, number: Number, bound: u64) {
        let bound = scaled(number, bound);
        let bounds = self.ranges[number as usize].get_or_insert(Bounds { low: 0, high: GREATEST });
        bounds.high = bounds.high.min(u32::try_from(bound).unwrap_or(GREATEST));
    }

    /// Demands that `dc_fast_charge` be present and equal to `value`. AAP defines `true` only; for `false` its reading leaves
    /// a choice (digest, j 27), and ours is the exact one, so that the facet's two values can both be asked for.
    pub fn dc_fast_charge(&mut self, inventory: &Inventory, value: bool) {
        self.any_of(inventory, Column::DcFastCharge, if value { "true" } else { "false" });
    }

    /// Demands one VIN, exactly.
    pub fn vin(&mut self, inventory: &Inventory, vin: &str) {
        self.restrict(inventory, Key::Vin, vin);
    }

    /// Demands one stock number, exactly.
    pub fn stock(&mut self, inventory: &Inventory, stock: &str) {
        self.restrict(inventory, Key::Stock, stock);
    }

    fn restrict(&mut self, inventory: &Inventory, key: Key, text: &str) {
        let row = inventory.keys.find(&inventory.store, key, text);
        // Two identifiers that name different vehicles name none.
        self.only = Some(if self.only.is_none_or(|only| only == row) { row } else { None });
    }

    /// Demands that every word of `text` occur, whatever its case, in the vehicle: inside its year or one of its text members
    /// (status and flags aside), or as its whole stock number or VIN. A text without words is no constraint.
    pub fn text(&mut self, inventory: &Inventory, text: &str) {
        for (at, word) in text.split_whitespace().enumerate() {
            let is_said = text.split_whitespace().take(at).any(|earlier| earlier == word);
            if is_said || self.word_count == MAX_WORDS {
                continue;
            }
            if self.words.len() == self.word_count {
                self.words.push(Word::default());
            }
            let entry = &mut self.words[self.word_count];
            self.word_count += 1;
            entry.clear();
            fold_into(word, &mut self.folded);
            for (column, set) in Column::SEARCHED.into_iter().zip(&mut entry.sets) {
                let dictionary = inventory.dictionaries.of(column);
                for code in dictionary.containing(&self.folded) {
                    set.add(code, dictionary.codes());
                }
            }
            entry.years.extend(years_containing(word));
            for key in [Key::Vin, Key::Stock] {
                inventory.keys.find_any_case(&inventory.store, key, word, &mut entry.rows);
            }
        }
    }

    /// Sorts by a member; ties go by row, so that pages never overlap.
    pub fn sort(&mut self, field: SortField, order: SortOrder) {
        self.sort = Some((field, order));
    }

    /// Leaves out the first `skip` of the matches and shows `limit` of the others.
    pub fn page(&mut self, skip: u64, limit: u32) {
        self.skip = usize::try_from(skip).unwrap_or(usize::MAX);
        self.limit = limit as usize;
    }

    /// The words of free text.
    pub(crate) fn words(&self) -> &[Word] {
        &self.words[..self.word_count]
    }

    /// Whether it is known without a look at any vehicle that none matches.
    pub(crate) fn matches_nothing(&self) -> bool {
        self.only == Some(None)
            || self.sets.iter().any(|set| set.active && set.codes.is_empty())
            || self.ranges.iter().flatten().any(|bounds| bounds.low > bounds.high)
            || self.words().iter().any(|word| !word.occurs())
    }
}

/// A bound in the column's unit.
fn scaled(number: Number, bound: u64) -> u64 {
    bound.saturating_mul(u64::from(number.scale()))
}

/// The model years, of those that AAP allows (digest, section d.5), in whose digits `word` occurs.
fn years_containing(word: &str) -> impl Iterator<Item = u32> {
    let digits = word.len() <= 4 && word.bytes().all(|byte| byte.is_ascii_digit());
    (1900..=if digits { 2100 } else { 0 }).filter(move |year| {
        let year = [1000, 100, 10, 1].map(|place| b'0' + (year / place % 10) as u8);
        year.windows(word.len()).any(|window| window == word.as_bytes())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn years_are_matched_by_their_digits() {
        assert_eq!(years_containing("2024").collect::<Vec<_>>(), [2024]);
        assert_eq!(
            years_containing("202").collect::<Vec<_>>(),
            [2020, 2021, 2022, 2023, 2024, 2025, 2026, 2027, 2028, 2029]
        );
        assert_eq!(years_containing("20245").count(), 0);
        assert_eq!(years_containing("40k").count(), 0);
        assert_eq!(years_containing("3000").count(), 0);
    }

    #[test]
    fn bounds_close_in() {
        let mut query = Query::new();
        query.at_least(Number::Price, 10);
        query.at_least(Number::Price, 5);
        query.at_most(Number::Price, u64::MAX);
        assert_eq!(query.ranges[Number::Price as usize], Some(Bounds { low: 10, high: GREATEST }));
        assert!(!query.matches_nothing());
        query.at_least(Number::ElectricRange, 5_000_000);
        assert!(query.matches_nothing(), "no vehicle can go that far");
        query.clear();
        query.at_most(Number::ElectricRange, 300);
        assert_eq!(query.ranges[Number::ElectricRange as usize], Some(Bounds { low: 0, high: 300_000 }));
    }

    #[test]
    fn sort_fields_have_their_names() {
        for field in SortField::ALL {
            assert_eq!(SortField::from_member(field.member()), Some(field));
        }
        assert_eq!(SortField::from_member("color"), None);
    }
}
