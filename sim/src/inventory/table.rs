//! Columns of some vehicles that stand together, shared between copies until one of them is changed.

use std::sync::Arc;

use super::columns::{COLUMNS, Cells, Column, NUMBERS, Number};

/// The cells of some vehicles, column by column.
#[derive(Debug, Clone)]
pub(crate) struct Table {
    codes: [Arc<[u16]>; COLUMNS],
    numbers: [Arc<[u32]>; NUMBERS],
}

/// A table in the making.
#[derive(Debug, Clone)]
pub(crate) struct TableDraft {
    codes: [Vec<u16>; COLUMNS],
    numbers: [Vec<u32>; NUMBERS],
}

impl TableDraft {
    /// Room for `rows` vehicles.
    pub(crate) fn new(rows: usize) -> TableDraft {
        TableDraft {
            codes: std::array::from_fn(|_| Vec::with_capacity(rows)),
            numbers: std::array::from_fn(|_| Vec::with_capacity(rows)),
        }
    }

    pub(crate) fn push(&mut self, cells: &Cells) {
        for (column, code) in self.codes.iter_mut().zip(cells.codes) {
            column.push(code);
        }
        for (column, number) in self.numbers.iter_mut().zip(cells.numbers) {
            column.push(number);
        }
    }

    /// The table, without the room that it does not need.
    pub(crate) fn seal(self) -> Table {
        Table { codes: self.codes.map(Arc::from), numbers: self.numbers.map(Arc::from) }
    }
}

impl Table {
    /// How many vehicles there are.
    pub(crate) fn len(&self) -> usize {
        self.codes[0].len()
    }

    /// One text column.
    pub(crate) fn codes(&self, column: Column) -> &[u16] {
        &self.codes[column as usize]
    }

    /// One numeric column.
    pub(crate) fn numbers(&self, number: Number) -> &[u32] {
        &self.numbers[number as usize]
    }

    /// The cells of one vehicle.
    pub(crate) fn cells(&self, index: usize) -> Cells {
        Cells {
            codes: std::array::from_fn(|column| self.codes[column][index]),
            numbers: std::array::from_fn(|number| self.numbers[number][index]),
        }
    }

    /// Replaces the cells of one vehicle. Columns in which it does not differ stay shared.
    pub(crate) fn set(&mut self, index: usize, cells: &Cells) {
        for (column, code) in self.codes.iter_mut().zip(cells.codes) {
            if column[index] != code {
                Arc::make_mut(column)[index] = code;
            }
        }
        for (column, number) in self.numbers.iter_mut().zip(cells.numbers) {
            if column[index] != number {
                Arc::make_mut(column)[index] = number;
            }
        }
    }

    /// Replaces one number of one vehicle.
    pub(crate) fn set_number(&mut self, index: usize, number: Number, value: u32) {
        let column = &mut self.numbers[number as usize];
        if column[index] != value {
            Arc::make_mut(column)[index] = value;
        }
    }

    /// The same vehicles, to be added to.
    pub(crate) fn reopen(&self) -> TableDraft {
        TableDraft {
            codes: self.codes.each_ref().map(|column| column.to_vec()),
            numbers: self.numbers.each_ref().map(|column| column.to_vec()),
        }
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        self.len() * (COLUMNS * size_of::<u16>() + NUMBERS * size_of::<u32>())
    }
}
