//! Counts and ranges over the matches of a query (AAP digest, section d.3).

use super::Inventory;
use super::columns::{COLUMNS, Column, MISSING, NO_TEXT, NUMBERS, Number};
use super::json;
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

#[derive(Debug, Clone, Copy)]
enum Facet {
    Terms(Column),
    Years,
    Range(Number),
}

/// The first model year that AAP allows, and how many there are (digest, section d.5).
const FIRST_YEAR: u32 = 1900;
const YEARS: usize = 201;

/// Counts in the making.
#[derive(Debug, Clone, Default)]
pub(crate) struct Tally {
    counts: [Vec<u32>; COLUMNS],
    years: Vec<u32>,
    ranges: [Option<(u32, u32)>; NUMBERS],
    /// Places of the matches in the block at hand.
    places: Vec<u16>,
}

impl Tally {
    fn clear(&mut self, inventory: &Inventory) {
        for (column, counts) in Column::ALL.into_iter().zip(&mut self.counts) {
            counts.clear();
            counts.resize(inventory.dictionaries.of(column).codes(), 0);
        }
        self.years.clear();
        self.years.resize(YEARS, 0);
        self.ranges = [None; NUMBERS];
    }

    fn add(&mut self, block: &Block<'_>) {
        self.places.clear();
        scan::each_match(block.mask, |place| self.places.push(place as u16));
        for (_, facet) in FACETS {
            match facet {
                Facet::Terms(column) => {
                    let (codes, counts) = (block.codes(column), &mut self.counts[column as usize]);
                    for &place in &self.places {
                        if let Some(count) = counts.get_mut(usize::from(codes[usize::from(place)])) {
                            *count += 1;
                        }
                    }
                }
                Facet::Years => {
                    let years = block.numbers(Number::Year);
                    for &place in &self.places {
                        let index = years[usize::from(place)].wrapping_sub(FIRST_YEAR);
                        if let Some(count) = self.years.get_mut(index as usize) {
                            *count += 1;
                        }
                    }
                }
                Facet::Range(number) => {
                    let values = block.numbers(number);
                    let (mut low, mut high) = self.ranges[number as usize].unwrap_or((MISSING, 0));
                    for &place in &self.places {
                        let value = values[usize::from(place)];
                        low = low.min(value);
                        // A missing value is the greatest number: keep it out of the maximum.
                        high = high.max(if value == MISSING { 0 } else { value });
                    }
                    self.ranges[number as usize] = (low != MISSING).then_some((low, high));
                }
            }
        }
    }
}

impl Inventory {
    /// Appends the Facets object of a query's matches: its keys in the order of the digest, without those that have nothing to
    /// show; texts in code-point order, years ascending. Order and page of the query do not count.
    pub fn facets(&self, query: &Query, scratch: &mut Scratch, out: &mut Vec<u8>) {
        let Scratch { mask, other, facets: tally, .. } = scratch;
        tally.clear(self);
        scan::each_block(&self.store, query, mask, other, |block| tally.add(&block));
        out.push(b'{');
        let start = out.len();
        for (name, facet) in FACETS {
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
    fn scaled_numbers_are_exact() {
        for (value, text) in [(300_000, "300"), (238_500, "238.5"), (7, "0.007"), (1_050, "1.05"), (0, "0")] {
            let mut out = Vec::new();
            write_scaled(&mut out, value, 1000);
            assert_eq!(String::from_utf8(out).unwrap(), text);
        }
    }
}
