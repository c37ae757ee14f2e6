//! Members that are counted together. A model settles nearly all that the factory decides, and there are only so many
//! colours: of the combinations that a *family* of members could have, a stock of any size has some hundreds or thousands,
//! its *patterns*. So facets look once per family and vehicle, at the number of its pattern, and only then at what each
//! pattern says.

use std::collections::HashMap;
use std::sync::Arc;

use super::columns::{Cells, Column, Number};
use super::store::{GROUP_ROWS, Store};

/// Members that are counted together.
pub(crate) struct Family {
    pub(crate) columns: &'static [Column],
    pub(crate) numbers: &'static [Number],
}

/// How many families there are.
pub(crate) const FAMILIES: usize = 3;

/// What the model settles, what the dealer settles, and the colours: put together, they would have more patterns than a
/// small stock has vehicles.
pub(crate) const ALL: [Family; FAMILIES] = [
    Family {
        columns: &[
            Column::Model,
            Column::Make,
            Column::Trim,
            Column::Body,
            Column::ChargePort,
            Column::Fuel,
            Column::Driveline,
            Column::Transmission,
            Column::VehicleType,
            Column::DcFastCharge,
        ],
        numbers: &[Number::DisplacementCc, Number::ElectricRange],
    },
    Family { columns: &[Column::Rooftop, Column::Condition, Column::Status], numbers: &[Number::Year] },
    Family { columns: &[Column::ExteriorColor, Column::InteriorColor], numbers: &[] },
];

impl Family {
    /// The cells of a vehicle that belong to the family.
    fn of(&self, vehicle: &Cells) -> Cells {
        let mut cells = Cells::default();
        for &column in self.columns {
            cells.set(column, vehicle.codes[column as usize]);
        }
        for &number in self.numbers {
            cells.set_number(number, vehicle.numbers[number as usize]);
        }
        cells
    }
}

/// The patterns of one family.
#[derive(Debug, Clone, Default)]
struct Found {
    /// By number of the pattern, in the order in which they first occur.
    cells: Arc<Vec<Cells>>,
    /// The number of each pattern.
    numbers: Arc<HashMap<Cells, u32>>,
    /// The number of each row's pattern, by group.
    rows: Vec<Arc<Vec<u32>>>,
}

impl Found {
    /// The number of a pattern, a new one if need be.
    fn number(&mut self, cells: Cells) -> u32 {
        if let Some(&number) = self.numbers.get(&cells) {
            return number;
        }
        let number = self.cells.len() as u32;
        Arc::make_mut(&mut self.cells).push(cells);
        Arc::make_mut(&mut self.numbers).insert(cells, number);
        number
    }
}

/// The patterns of a stock.
#[derive(Debug, Clone)]
pub(crate) struct Patterns([Found; FAMILIES]);

impl Patterns {
    /// Finds the patterns of all vehicles.
    pub(crate) fn of(store: &Store) -> Patterns {
        Patterns(ALL.each_ref().map(|family| {
            let mut found = Found::default();
            for group in store.groups() {
                let rows = (0..group.len()).map(|index| found.number(family.of(&group.table().cells(index))));
                let rows = Arc::new(rows.collect());
                found.rows.push(rows);
            }
            found
        }))
    }

    /// Takes note of what a row, an old one or the next new one, has come to be.
    pub(crate) fn set(&mut self, row: u32, vehicle: &Cells) {
        let (group, index) = (row as usize / GROUP_ROWS, row as usize % GROUP_ROWS);
        for (found, family) in self.0.iter_mut().zip(&ALL) {
            let number = found.number(family.of(vehicle));
            if found.rows.len() == group {
                found.rows.push(Arc::default());
            }
            match found.rows[group].get(index) {
                Some(old) if *old == number => {}
                Some(_) => Arc::make_mut(&mut found.rows[group])[index] = number,
                None => Arc::make_mut(&mut found.rows[group]).push(number),
            }
        }
    }

    /// The patterns of a family, by number.
    pub(crate) fn cells(&self, family: usize) -> &[Cells] {
        &self.0[family].cells
    }

    /// The numbers of the patterns of a family that `rows` vehicles of one group have, from row `first` on.
    pub(crate) fn rows(&self, family: usize, first: u32, rows: usize) -> &[u32] {
        &self.0[family].rows[first as usize / GROUP_ROWS][first as usize % GROUP_ROWS..][..rows]
    }

    /// Bytes of heap that the patterns hold.
    pub(crate) fn heap_bytes(&self) -> usize {
        let bytes = |found: &Found| {
            // The table has an entry for each pattern, and at least an eighth of it is empty.
            let table = found.numbers.capacity() * (size_of::<(Cells, u32)>() + 1) * 8 / 7;
            found.cells.capacity() * size_of::<Cells>()
                + table
                + found.rows.iter().map(|rows| rows.capacity() * size_of::<u32>()).sum::<usize>()
        };
        self.0.iter().map(bytes).sum()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use jiff::civil::Date;

    use super::super::{Inventory, Profile, Spec};
    use super::*;

    #[test]
    fn a_pattern_says_what_its_vehicles_have() {
        let spec = Spec { vehicles: 9_000, ..Spec::new(42, Date::constant(2026, 1, 1)) };
        let Inventory { store, patterns, .. } =
            Inventory::generate(&spec, &Profile::built_in().unwrap()).unwrap();
        for (family, members) in ALL.iter().enumerate() {
            let cells = patterns.cells(family);
            assert!(cells.len() < 3_000, "{} patterns", cells.len());
            assert_eq!(cells.iter().collect::<HashSet<_>>().len(), cells.len(), "no pattern has two numbers");
            for row in [0, 1, 8_191, 8_192, 8_999] {
                let cells = cells[patterns.rows(family, row, 1)[0] as usize];
                for &column in members.columns {
                    assert_eq!(cells.codes[column as usize], store.code(row, column));
                }
                for &number in members.numbers {
                    assert_eq!(cells.numbers[number as usize], store.number(row, number));
                }
            }
        }
    }
}
