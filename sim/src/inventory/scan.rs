//! Which rows match: one pass over the columns that a query names, a byte of mask per row, no branch per row, so that the
//! compiler turns each loop into vector instructions.

use super::columns::{Column, Number, Status};
use super::query::{CodeSet, Query, Word};
use super::store::{GROUP_ROWS, Store};
use super::table::Table;

/// A set of this many codes is compared code by code; beyond it a table look-up per row is cheaper.
const FEW_CODES: usize = 4;

/// Vehicles of one table and which of them match.
pub(crate) struct Block<'a> {
    table: &'a Table,
    rows: Rows<'a>,
    /// The place in the table of the vehicle that the first byte of the mask speaks of.
    start: usize,
    /// 1 for a vehicle that matches, else 0.
    pub(crate) mask: &'a mut [u8],
}

/// Which rows of the store the vehicles of a table have.
#[derive(Clone, Copy)]
pub(crate) enum Rows<'a> {
    /// They follow one another from this one on.
    From(u32),
    /// These.
    Listed(&'a [u32]),
}

impl Rows<'_> {
    /// The row of the vehicle at a place.
    #[inline]
    pub(crate) fn at(self, place: usize) -> u32 {
        match self {
            Rows::From(first) => first + place as u32,
            Rows::Listed(rows) => rows[place],
        }
    }
}

impl<'a> Block<'a> {
    /// A text column, as long as the mask.
    pub(crate) fn codes(&self, column: Column) -> &'a [u16] {
        &self.table.codes(column)[self.start..][..self.mask.len()]
    }

    /// A numeric column, as long as the mask.
    pub(crate) fn numbers(&self, number: Number) -> &'a [u32] {
        &self.table.numbers(number)[self.start..][..self.mask.len()]
    }

    /// The row of the vehicle that the first byte of the mask speaks of.
    pub(crate) fn row(&self) -> u32 {
        self.rows.at(self.start)
    }

    /// The rows of the vehicles that the mask speaks of, by their place in it.
    pub(crate) fn rows(&self) -> Rows<'a> {
        match self.rows {
            Rows::From(first) => Rows::From(first + self.start as u32),
            Rows::Listed(rows) => Rows::Listed(&rows[self.start..]),
        }
    }

    /// How many vehicles match.
    pub(crate) fn count(&self) -> usize {
        // Sums of 255 ones fit a byte, which the compiler adds up 16 at a time.
        self.mask.chunks(255).map(|chunk| usize::from(chunk.iter().sum::<u8>())).sum()
    }
}

/// Calls `visit` with each block that has a match, in the order of the rows. `mask` and `other` are scratch.
pub(crate) fn each_block(
    store: &Store,
    query: &Query,
    mask: &mut Vec<u8>,
    other: &mut Vec<u8>,
    mut visit: impl FnMut(Block<'_>),
) {
    if query.matches_nothing() {
        return;
    }
    mask.resize(GROUP_ROWS, 0);
    other.resize(GROUP_ROWS, 0);
    let mut block = |index: usize, start: usize, rows: usize| {
        let table = store.groups()[index].table();
        let first = Rows::From((index * GROUP_ROWS) as u32);
        let mut block = Block { table, rows: first, start, mask: &mut mask[..rows] };
        if filter(&mut block, query, &mut other[..rows]) {
            visit(block);
        }
    };
    if let Some(Some(row)) = query.only {
        return block(row as usize / GROUP_ROWS, row as usize % GROUP_ROWS, 1);
    }
    for (index, group) in store.groups().iter().enumerate() {
        block(index, 0, group.len());
    }
}

/// Calls `visit` with each block that has a match, in any order of the rows: clusters serve where there are any for the query.
pub(crate) fn each_block_in_any_order(
    store: &Store,
    query: &Query,
    mask: &mut Vec<u8>,
    other: &mut Vec<u8>,
    mut visit: impl FnMut(Block<'_>),
) {
    let Some(clusters) = store.clusters_for(query) else {
        return each_block(store, query, mask, other, visit);
    };
    if query.matches_nothing() {
        return;
    }
    mask.resize(GROUP_ROWS, 0);
    other.resize(GROUP_ROWS, 0);
    for cluster in clusters.iter().filter(|cluster| cluster.may_hold(query)) {
        let count = cluster.rows.len();
        let rows = Rows::Listed(&cluster.rows);
        let mut block = Block { table: &cluster.table, rows, start: 0, mask: &mut mask[..count] };
        if filter(&mut block, query, &mut other[..count]) {
            visit(block);
        }
    }
}

/// Sets the mask to the matches of the query and says whether there are any.
fn filter(block: &mut Block<'_>, query: &Query, other: &mut [u8]) -> bool {
    // Only available, in-transit and pending units are ever listed (AAP digest, section f): the codes up to pending's.
    let statuses = &block.table.codes(Column::Status)[block.start..];
    for (mask, &status) in block.mask.iter_mut().zip(statuses) {
        *mask = u8::from(status <= Status::Pending.code());
    }
    for column in Column::ALL {
        let set = &query.sets[column as usize];
        if set.is_active() {
            let codes = &block.table.codes(column)[block.start..];
            keep(block.mask, codes, set, other);
            if is_empty(block.mask) {
                return false;
            }
        }
    }
    for number in Number::ALL {
        if let Some(bounds) = query.ranges[number as usize] {
            let values = &block.table.numbers(number)[block.start..];
            for (mask, &value) in block.mask.iter_mut().zip(values) {
                *mask &= u8::from(value >= bounds.low) & u8::from(value <= bounds.high);
            }
            if is_empty(block.mask) {
                return false;
            }
        }
    }
    for word in query.words() {
        keep_word(block, word, other);
        if is_empty(block.mask) {
            return false;
        }
    }
    !is_empty(block.mask)
}

/// Clears the mask where the code is not in the set.
fn keep(mask: &mut [u8], codes: &[u16], set: &CodeSet, other: &mut [u8]) {
    if let &[only] = set.codes() {
        for (mask, &code) in mask.iter_mut().zip(codes) {
            *mask &= u8::from(code == only);
        }
        return;
    }
    other.fill(0);
    add(other, codes, set);
    for (mask, &other) in mask.iter_mut().zip(&*other) {
        *mask &= other;
    }
}

/// Sets the mask where the code is in the set.
fn add(mask: &mut [u8], codes: &[u16], set: &CodeSet) {
    if set.codes().len() <= FEW_CODES {
        for &wanted in set.codes() {
            for (mask, &code) in mask.iter_mut().zip(codes) {
                *mask |= u8::from(code == wanted);
            }
        }
    } else {
        let table = set.table();
        for (mask, &code) in mask.iter_mut().zip(codes) {
            *mask |= table.get(usize::from(code)).copied().unwrap_or(0);
        }
    }
}

/// Clears the mask where the word does not occur.
fn keep_word(block: &mut Block<'_>, word: &Word, other: &mut [u8]) {
    other.fill(0);
    for (column, set) in Column::SEARCHED.into_iter().zip(&word.sets) {
        if !set.codes().is_empty() {
            add(other, block.codes(column), set);
        }
    }
    for &year in &word.years {
        for (other, &value) in other.iter_mut().zip(block.numbers(Number::Year)) {
            *other |= u8::from(value == year);
        }
    }
    let first = block.row();
    for place in word.rows.iter().filter_map(|row| row.checked_sub(first)) {
        if let Some(other) = other.get_mut(place as usize) {
            *other = 1;
        }
    }
    for (mask, &other) in block.mask.iter_mut().zip(&*other) {
        *mask &= other;
    }
}

/// Whether no row matches.
fn is_empty(mask: &[u8]) -> bool {
    mask.iter().fold(0, |any, &mask| any | mask) == 0
}

/// Calls `visit` with the place of each 1 in the mask, in order. Eight zeros at a time are passed over.
pub(crate) fn each_match(mask: &[u8], mut visit: impl FnMut(usize)) {
    let (chunks, rest) = mask.as_chunks::<8>();
    for (index, chunk) in chunks.iter().enumerate() {
        let mut bits = u64::from_le_bytes(*chunk);
        while bits != 0 {
            visit(index * 8 + bits.trailing_zeros() as usize / 8);
            bits &= bits - 1;
        }
    }
    for (index, _) in rest.iter().enumerate().filter(|(_, byte)| **byte != 0) {
        visit(chunks.len() * 8 + index);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_match_visits_the_ones_in_order() {
        for mask in [vec![1u8; 19], vec![0; 9], vec![0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 1], Vec::new()] {
            let mut places = Vec::new();
            each_match(&mask, |place| places.push(place));
            let expected: Vec<usize> = (0..mask.len()).filter(|&place| mask[place] == 1).collect();
            assert_eq!(places, expected);
        }
    }
}
