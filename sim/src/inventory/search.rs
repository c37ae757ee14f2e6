//! The page of a search: how many vehicles match, and which ones to show.

use super::Inventory;
use super::columns::{Column, MISSING, Number};
use super::query::{Query, SortField, SortOrder};
use super::scan::{self, Block};

/// Buffers of a search, to be kept from one to the next (one set per thread).
#[derive(Debug, Clone, Default)]
pub struct Scratch {
    pub(crate) mask: Vec<u8>,
    pub(crate) other: Vec<u8>,
    /// Sort key and row of candidates, as one number: the key above the row.
    candidates: Vec<u64>,
    rows: Vec<u32>,
    pub(crate) facets: super::facets::Tally,
}

/// One page of matches.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Page<'a> {
    /// How many vehicles match, over all pages.
    pub total: u32,
    /// The vehicles of this page, to be written with [`Inventory::listing`].
    pub rows: &'a [u32],
}

impl Inventory {
    /// The matches of a query: their exact number and one page of them. Nothing is allocated once the buffers have grown to
    /// the sizes in use.
    pub fn search<'a>(&self, query: &Query, scratch: &'a mut Scratch) -> Page<'a> {
        let Scratch { mask, other, candidates, rows, .. } = scratch;
        rows.clear();
        candidates.clear();
        let mut total = 0;
        match query.sort {
            None if self.store.clusters_for(query).is_some() => {
                let mut best = Best::new(candidates, query);
                scan::each_block_in_any_order(&self.store, query, mask, other, |block| {
                    total += block.count();
                    best.offer_rows(&block);
                });
                best.page(rows);
            }
            None => scan::each_block(&self.store, query, mask, other, |block| {
                let count = block.count();
                // The dealer's own order is that of the rows: only the blocks that the page touches are read out.
                let before = total;
                total += count;
                if total > query.skip && rows.len() < query.limit {
                    let mut skip = query.skip.saturating_sub(before);
                    let first = block.row();
                    scan::each_match(block.mask, |place| {
                        if skip > 0 {
                            skip -= 1;
                        } else if rows.len() < query.limit {
                            rows.push(first + place as u32);
                        }
                    });
                }
            }),
            Some((field, order)) => {
                let mut best = Best::new(candidates, query);
                scan::each_block_in_any_order(&self.store, query, mask, other, |mut block| {
                    total += block.count();
                    match key_of(field) {
                        SortKey::Number(number) => best.offer_numbers(&mut block, number, order),
                        SortKey::Text(column) => {
                            best.offer_ranks(&block, column, self.dictionaries.of(column).ranks(), order);
                        }
                    }
                });
                best.page(rows);
            }
        }
        Page { total: total as u32, rows }
    }
}

/// Where the key of a sort field comes from.
enum SortKey {
    Number(Number),
    /// A text sorts by its place among the values of its column, in plain code-point order.
    Text(Column),
}

fn key_of(field: SortField) -> SortKey {
    SortKey::Number(match field {
        SortField::Price => Number::Price,
        SortField::ListPrice => Number::ListPrice,
        SortField::Msrp => Number::Msrp,
        SortField::Mileage => Number::Mileage,
        SortField::Year => Number::Year,
        SortField::Stock => Number::StockRank,
        SortField::UpdatedAt => Number::UpdatedAt,
        SortField::Make => return SortKey::Text(Column::Make),
        SortField::Model => return SortKey::Text(Column::Model),
    })
}

/// The number by which a value sorts: ascending, whatever the order is, and the greatest one where there is no value.
#[inline]
fn sort_key(value: u32, order: SortOrder) -> u32 {
    match order {
        SortOrder::Ascending => value,
        // MISSING is u32::MAX: one less minus it wraps to u32::MAX again, so that it stays the greatest.
        SortOrder::Descending => (MISSING - 1).wrapping_sub(value),
    }
}

/// The best `skip + limit` of the candidates seen so far, kept without sorting all of them.
struct Best<'a> {
    candidates: &'a mut Vec<u64>,
    skip: usize,
    limit: usize,
    /// How many are needed.
    wanted: usize,
    /// No candidate whose key is above this one can be among the best.
    threshold: u32,
}

impl<'a> Best<'a> {
    fn new(candidates: &'a mut Vec<u64>, query: &Query) -> Best<'a> {
        let wanted = query.skip.saturating_add(query.limit);
        Best { candidates, skip: query.skip, limit: query.limit, wanted, threshold: u32::MAX }
    }

    fn offer_numbers(&mut self, block: &mut Block<'_>, number: Number, order: SortOrder) {
        let values = block.numbers(number);
        if self.threshold != u32::MAX {
            // Most blocks have few candidates left that could still make it: clear the others without a branch.
            let threshold = self.threshold;
            for (mask, &value) in block.mask.iter_mut().zip(values) {
                *mask &= u8::from(sort_key(value, order) <= threshold);
            }
        }
        let rows = block.rows();
        scan::each_match(block.mask, |place| {
            self.offer(sort_key(values[place], order), rows.at(place));
        });
    }

    /// Offers matches in the dealer's own order, which is that of the rows.
    fn offer_rows(&mut self, block: &Block<'_>) {
        let rows = block.rows();
        scan::each_match(block.mask, |place| self.offer(rows.at(place), rows.at(place)));
    }

    fn offer_ranks(&mut self, block: &Block<'_>, column: Column, ranks: &[u32], order: SortOrder) {
        let codes = block.codes(column);
        let rows = block.rows();
        scan::each_match(block.mask, |place| {
            let rank = ranks.get(usize::from(codes[place])).copied().unwrap_or(MISSING);
            self.offer(sort_key(rank, order), rows.at(place));
        });
    }

    fn offer(&mut self, key: u32, row: u32) {
        if key > self.threshold {
            return;
        }
        self.candidates.push(u64::from(key) << 32 | u64::from(row));
        if self.candidates.len() >= self.wanted.saturating_mul(2).max(128) {
            self.cut();
        }
    }

    /// Drops what is surely not among the best.
    fn cut(&mut self) {
        if self.wanted == 0 {
            self.candidates.clear();
            return;
        }
        if self.candidates.len() > self.wanted {
            let (_, worst, _) = self.candidates.select_nth_unstable(self.wanted - 1);
            self.threshold = (*worst >> 32) as u32;
            self.candidates.truncate(self.wanted);
        }
    }

    /// The rows of the page, in order.
    fn page(mut self, rows: &mut Vec<u32>) {
        self.cut();
        if self.skip >= self.candidates.len() || self.limit == 0 {
            return;
        }
        // Only the page itself is sorted, not what it skips.
        if self.skip > 0 {
            self.candidates.select_nth_unstable(self.skip);
        }
        let page = &mut self.candidates[self.skip..];
        page.sort_unstable();
        rows.extend(page.iter().take(self.limit).map(|candidate| *candidate as u32));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_value_is_last_in_both_orders() {
        for order in [SortOrder::Ascending, SortOrder::Descending] {
            assert!(sort_key(MISSING, order) > sort_key(0, order));
            assert!(sort_key(MISSING, order) > sort_key(MISSING - 1, order));
        }
        assert!(sort_key(1, SortOrder::Descending) > sort_key(2, SortOrder::Descending));
    }

    #[test]
    fn the_best_are_what_a_full_sort_gives() {
        let keys: Vec<u32> = (0..2_000u32).map(|row| row.wrapping_mul(2_654_435_761) % 97).collect();
        let mut sorted: Vec<(u32, u32)> = keys.iter().copied().zip(0..).collect();
        sorted.sort_unstable();
        for (skip, limit) in
            [(0, 20), (0, 1), (5, 7), (1_990, 20), (2_000, 5), (5_000, 5), (0, 3_000), (70, 0)]
        {
            let mut query = Query::new();
            query.page(skip, limit);
            let (mut candidates, mut rows) = (Vec::new(), Vec::new());
            let mut best = Best::new(&mut candidates, &query);
            for (row, &key) in keys.iter().enumerate() {
                best.offer(key, row as u32);
            }
            best.page(&mut rows);
            let expected: Vec<u32> =
                sorted.iter().skip(skip as usize).take(limit as usize).map(|&(_, row)| row).collect();
            assert_eq!(rows, expected, "skip {skip} limit {limit}");
        }
    }
}
