//! Counts and ranges over the matches of a query (AAP digest, section d.3).

use super::Inventory;
use super::columns::{COLUMNS, Column, MISSING, NO_TEXT, NUMBERS, Number};
use super::json;
use super::patterns::{self, FAMILIES, Patterns};
use super::query::Query;
use super::scan::{self, Block};
use super::search::Scratch;

/// The facets in the order of the digest.
const FACETS: [(&str, Facet); 21] = [
    ("makes", Facet::Terms(Column::Make)),
    ("models", Facet::Terms(Column::Model)),
    ("trims", Facet::Terms(Column::Trim)),
    ("years", Facet::Years),
    ("conditions", Facet::Terms(Column::Condition)),
    ("transmissions", Facet::Terms(Column::Transmission)),
    ("fuels", Facet::Terms(Column::Fuel)),
    ("dc_fast_charge", Facet::Terms(Column::DcFastCharge)),
    ("charge_ports", Facet::Terms(Column::ChargePort)),
    ("drivelines", Facet::Terms(Column::Driveline)),
    ("bodies", Facet::Terms(Column::Body)),
    ("vehicle_types", Facet::Terms(Column::VehicleType)),
    ("exterior_colors", Facet::Terms(Column::ExteriorColor)),
    ("interior_colors", Facet::Terms(Column::InteriorColor)),
    ("rooftops", Facet::Terms(Column::Rooftop)),
    ("statuses", Facet::Terms(Column::Status)),
    ("price_range", Facet::Range(Number::Price)),
    ("mileage_range", Facet::Range(Number::Mileage)),
    ("year_range", Facet::Range(Number::Year)),
    ("displacement_cc_range", Facet::Range(Number::DisplacementCc)),
    ("electric_range_mi_range", Facet::Range(Number::ElectricRange)),
];

/// Which keys the Facets of a dealer may have: those that its contract knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FacetKeys(u32);

impl FacetKeys {
    /// Every key.
    pub const ALL: FacetKeys = FacetKeys(u32::MAX);

    /// The keys of which this is true.
    pub fn known(is_known: impl Fn(&str) -> bool) -> FacetKeys {
        let bit = |(index, (name, _)): (usize, &(&str, Facet))| u32::from(is_known(name)) << index;
        FacetKeys(FACETS.iter().enumerate().map(bit).sum())
    }

    fn has(self, index: usize) -> bool {
        self.0 >> index & 1 == 1
    }
}

#[derive(Debug, Clone, Copy)]
enum Facet {
    Terms(Column),
    Years,
    Range(Number),
}

/// The first model year that AAP allows, and how many there are (digest, section d.5).
const FIRST_YEAR: u32 = 1900;
const YEARS: usize = 201;

/// The ranges that no family of patterns holds: nearly every vehicle has a value of its own.
const ALONE: [Number; 2] = [Number::Price, Number::Mileage];

/// Counts in the making.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    /// How many matches have each pattern, by family.
    patterns: [Vec<u32>; FAMILIES],
    counts: [Vec<u32>; COLUMNS],
    years: Vec<u32>,
    ranges: [Option<(u32, u32)>; NUMBERS],
    /// Places of the matches in the block at hand.
    places: Vec<u16>,
}

impl Tally {
    fn clear(&mut self, inventory: &Inventory) {
        for (family, counts) in self.patterns.iter_mut().enumerate() {
            counts.clear();
            counts.resize(inventory.patterns.cells(family).len(), 0);
        }
        for (column, counts) in Column::ALL.into_iter().zip(&mut self.counts) {
            counts.clear();
            counts.resize(inventory.dictionaries.of(column).codes(), 0);
        }
        self.years.clear();
        self.years.resize(YEARS, 0);
        self.ranges = [None; NUMBERS];
    }

    /// Counts the matches of a block by their patterns.
    fn add(&mut self, block: &Block<'_>, patterns: &Patterns) {
        self.places.clear();
        scan::each_match(block.mask, |place| self.places.push(place as u16));
        for (family, counts) in self.patterns.iter_mut().enumerate() {
            let rows = patterns.rows(family, block.row(), block.mask.len());
            for &place in &self.places {
                count(counts, rows[usize::from(place)], 1);
            }
        }
        for number in ALONE {
            let values = block.numbers(number);
            let values = self.places.iter().map(|&place| values[usize::from(place)]);
            widen(&mut self.ranges[number as usize], values);
        }
    }

    /// Hands the count of each pattern on to what it says.
    fn resolve(&mut self, patterns: &Patterns) {
        for (family, (members, counts)) in patterns::ALL.iter().zip(&self.patterns).enumerate() {
            let met = patterns.cells(family).iter().zip(counts).filter(|(_, times)| **times > 0);
            for (cells, &times) in met {
                for &column in members.columns {
                    count(&mut self.counts[column as usize], u32::from(cells.codes[column as usize]), times);
                }
                for &number in members.numbers {
                    let value = cells.numbers[number as usize];
                    widen(&mut self.ranges[number as usize], [value]);
                    if number == Number::Year {
                        count(&mut self.years, value.wrapping_sub(FIRST_YEAR), times);
                    }
                }
            }
        }
    }
}

/// Adds to a count; a number that has none, such as the year of a vehicle without one, is passed over.
fn count(counts: &mut [u32], index: u32, times: u32) {
    if let Some(count) = counts.get_mut(index as usize) {
        *count += times;
    }
}

/// Widens a range by values, any of which may be missing.
fn widen(range: &mut Option<(u32, u32)>, values: impl IntoIterator<Item = u32>) {
    let (mut low, mut high) = range.unwrap_or((MISSING, 0));
    for value in values {
        low = low.min(value);
        // A missing value is the greatest number: keep it out of the maximum.
        high = high.max(if value == MISSING { 0 } else { value });
    }
    *range = (low != MISSING).then_some((low, high));
}

impl Inventory {
    /// Appends the Facets object of a query's matches: those of `keys` in the order of the digest, without those that have
    /// nothing to show; texts in code-point order, years ascending. Order and page of the query do not count.
    pub fn facets(&self, query: &Query, keys: FacetKeys, scratch: &mut Scratch, out: &mut Vec<u8>) {
        let Scratch { mask, other, facets: tally, .. } = scratch;
        tally.clear(self);
        scan::each_block(&self.store, query, mask, other, |block| tally.add(&block, &self.patterns));
        tally.resolve(&self.patterns);
        out.push(b'{');
        let start = out.len();
        for (_, (name, facet)) in FACETS.into_iter().enumerate().filter(|(index, _)| keys.has(*index)) {
            match facet {
                Facet::Terms(column) => {
                    let dictionary = self.dictionaries.of(column);
                    let counts = &tally.counts[column as usize];
                    let terms =
                        dictionary.sorted().iter().filter(|&&code| code != NO_TEXT).filter_map(|&code| {
                            let count = counts.get(usize::from(code)).copied().unwrap_or(0);
                            (count > 0).then(|| (dictionary.value(code), count))
                        });
                    write_terms(out, start, name, terms, json::string);
                }
                Facet::Years => {
                    let years =
                        (FIRST_YEAR..).zip(tally.years.iter().copied()).filter(|&(_, count)| count > 0);
                    write_terms(out, start, name, years, |out, year| json::number(out, u64::from(year)));
                }
                Facet::Range(number) => {
                    if let Some((low, high)) = tally.ranges[number as usize] {
                        separate(out, start, name);
                        out.extend_from_slice(b"{\"min\":");
                        write_scaled(out, low, number.scale());
                        out.extend_from_slice(b",\"max\":");
                        write_scaled(out, high, number.scale());
                        out.push(b'}');
                    }
                }
            }
        }
        out.push(b'}');
    }
}

/// Appends `"name":`, with a comma before it unless it is the first member since `start`.
fn separate(out: &mut Vec<u8>, start: usize, name: &str) {
    if out.len() > start {
        out.push(b',');
    }
    json::string(out, name);
    out.push(b':');
}

/// Appends a term facet, unless it has no term.
fn write_terms<T>(
    out: &mut Vec<u8>,
    start: usize,
    name: &str,
    terms: impl Iterator<Item = (T, u32)>,
    write: impl Fn(&mut Vec<u8>, T),
) {
    let mut open = false;
    for (value, count) in terms {
        if open {
            out.push(b',');
        } else {
            separate(out, start, name);
            out.push(b'[');
            open = true;
        }
        out.extend_from_slice(b"{\"value\":");
        write(out, value);
        out.extend_from_slice(b",\"count\":");
        json::number(out, u64::from(count));
        out.push(b'}');
    }
    if open {
        out.push(b']');
    }
}

/// Appends `value / scale` in plain decimal digits, exactly. `scale` is a power of ten.
fn write_scaled(out: &mut Vec<u8>, value: u32, scale: u32) {
    json::number(out, u64::from(value / scale));
    let (mut rest, mut place) = (value % scale, scale / 10);
    if rest > 0 {
        out.push(b'.');
    }
    while rest > 0 {
        out.push(b'0' + (rest / place) as u8);
        rest %= place;
        place /= 10;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_facet_is_counted_once() {
        for (name, facet) in FACETS {
            let times = |fits: &dyn Fn(&patterns::Family) -> bool| {
                patterns::ALL.iter().filter(|family| fits(family)).count()
            };
            let times = match facet {
                Facet::Terms(column) => times(&|family| family.columns.contains(&column)),
                Facet::Years => times(&|family| family.numbers.contains(&Number::Year)),
                Facet::Range(number) => {
                    times(&|family| family.numbers.contains(&number))
                        + ALONE.iter().filter(|alone| **alone == number).count()
                }
            };
            assert_eq!(times, 1, "{name}");
        }
    }

    #[test]
    fn keys_are_chosen_by_name() {
        assert_eq!(FacetKeys::known(|_| true).0, (1 << FACETS.len()) - 1);
        let keys = FacetKeys::known(|name| name == "trims");
        assert!((0..FACETS.len()).all(|index| keys.has(index) == (FACETS[index].0 == "trims")));
    }

    #[test]
    fn scaled_numbers_are_exact() {
        for (value, text) in [(300_000, "300"), (238_500, "238.5"), (7, "0.007"), (1_050, "1.05"), (0, "0")] {
            let mut out = Vec::new();
            write_scaled(&mut out, value, 1000);
            assert_eq!(String::from_utf8(out).unwrap(), text);
        }
    }
}
