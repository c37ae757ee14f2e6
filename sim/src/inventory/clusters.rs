//! The columns of a large stock once more, in the order of make, model and price, so that a search for a make or a model reads the
//! few clusters that can hold it instead of the whole stock.
//!
//! A cluster knows the least and the greatest of each column, and is passed over where a filter lies outside. That is all that
//! the order is for: a vehicle that is changed stays in its cluster, whose bounds then widen, and a new one goes to the last
//! cluster, so an edit costs what it touches and no search is ever wrong. A day of market clusters anew.

use std::sync::Arc;

use super::columns::{COLUMNS, Cells, Column, MISSING, NUMBERS, Number};
use super::query::Query;
use super::table::{Table, TableDraft};

/// Vehicles in a cluster.
const CLUSTER_ROWS: usize = 2048;

/// Stocks of fewer vehicles are searched as fast without.
pub(super) const WORTH_IT: usize = 4 * CLUSTER_ROWS;

/// Every vehicle of a store, in clusters.
#[derive(Debug, Clone)]
pub(crate) struct Clusters {
    clusters: Vec<Arc<Cluster>>,
    /// By row, the vehicle's place among all clusters, each of which but the last is full.
    places: Arc<Vec<u32>>,
}

/// Vehicles that are much alike.
#[derive(Debug, Clone)]
pub(crate) struct Cluster {
    /// Their cells.
    pub(crate) table: Table,
    /// Their rows in the store.
    pub(crate) rows: Arc<[u32]>,
    zone: Zone,
}

/// The least and the greatest of each column, inclusive; of numbers without those that are missing.
#[derive(Debug, Clone)]
struct Zone {
    codes: [(u16, u16); COLUMNS],
    numbers: [(u32, u32); NUMBERS],
}

impl Zone {
    const EMPTY: Zone = Zone { codes: [(u16::MAX, 0); COLUMNS], numbers: [(MISSING, 0); NUMBERS] };

    fn take_in(&mut self, cells: &Cells) {
        for ((low, high), code) in self.codes.iter_mut().zip(cells.codes) {
            (*low, *high) = ((*low).min(code), (*high).max(code));
        }
        for ((low, high), number) in self.numbers.iter_mut().zip(cells.numbers) {
            if number != MISSING {
                (*low, *high) = ((*low).min(number), (*high).max(number));
            }
        }
    }

    /// Whether a vehicle between these bounds may match.
    fn may_hold(&self, query: &Query) -> bool {
        let mut sets = query.sets.iter().zip(&self.codes).filter(|(set, _)| set.is_active());
        let mut ranges = query.ranges.iter().zip(&self.numbers);
        sets.all(|(set, (low, high))| set.codes().iter().any(|code| (low..=high).contains(&code)))
            && ranges.all(|(bounds, (low, high))| bounds.is_none_or(|it| it.low <= *high && it.high >= *low))
    }
}

impl Cluster {
    /// Whether a vehicle of the cluster may match, and has to be looked at.
    pub(crate) fn may_hold(&self, query: &Query) -> bool {
        self.zone.may_hold(query)
    }
}

/// A cluster in the making.
struct Draft {
    table: TableDraft,
    rows: Vec<u32>,
    zone: Zone,
}

impl Draft {
    fn new() -> Draft {
        Draft {
            table: TableDraft::new(CLUSTER_ROWS),
            rows: Vec::with_capacity(CLUSTER_ROWS),
            zone: Zone::EMPTY,
        }
    }

    fn seal(self) -> Arc<Cluster> {
        Arc::new(Cluster { table: self.table.seal(), rows: self.rows.into(), zone: self.zone })
    }
}

impl Clusters {
    /// Clusters the vehicles whose cells are told, by row.
    pub(crate) fn of(rows: u32, cells: impl Fn(u32) -> Cells) -> Clusters {
        let key = |row| {
            let cells = cells(row);
            let code = |column: Column| u64::from(cells.codes[column as usize]);
            let price = u64::from(cells.numbers[Number::Price as usize]);
            (code(Column::Make) << 48 | code(Column::Model) << 32 | price, row)
        };
        let mut order: Vec<(u64, u32)> = (0..rows).map(key).collect();
        order.sort_unstable();
        let mut clusters = Clusters { clusters: Vec::new(), places: Arc::new(vec![0; rows as usize]) };
        clusters.append(order.into_iter().map(|(_, row)| (row, cells(row))));
        clusters
    }

    /// Adds vehicles that are in none.
    pub(crate) fn append(&mut self, vehicles: impl IntoIterator<Item = (u32, Cells)>) {
        let places = Arc::make_mut(&mut self.places);
        let mut draft = match self.clusters.pop_if(|last| last.rows.len() < CLUSTER_ROWS) {
            Some(last) => {
                Draft { table: last.table.reopen(), rows: last.rows.to_vec(), zone: last.zone.clone() }
            }
            None => Draft::new(),
        };
        for (row, cells) in vehicles {
            if draft.rows.len() == CLUSTER_ROWS {
                self.clusters.push(std::mem::replace(&mut draft, Draft::new()).seal());
            }
            let place = self.clusters.len() * CLUSTER_ROWS + draft.rows.len();
            if places.len() <= row as usize {
                places.resize(row as usize + 1, 0);
            }
            places[row as usize] = place as u32;
            draft.table.push(&cells);
            draft.zone.take_in(&cells);
            draft.rows.push(row);
        }
        if !draft.rows.is_empty() {
            self.clusters.push(draft.seal());
        }
    }

    /// Replaces the cells of a row.
    pub(crate) fn set(&mut self, row: u32, cells: &Cells) {
        let place = self.places[row as usize] as usize;
        let cluster = Arc::make_mut(&mut self.clusters[place / CLUSTER_ROWS]);
        cluster.table.set(place % CLUSTER_ROWS, cells);
        cluster.zone.take_in(cells);
    }

    /// The clusters.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Cluster> {
        self.clusters.iter().map(|cluster| &**cluster)
    }

    pub(crate) fn heap_bytes(&self) -> usize {
        let each = |cluster: &Cluster| {
            size_of::<Cluster>() + cluster.table.heap_bytes() + cluster.rows.len() * size_of::<u32>()
        };
        self.iter().map(each).sum::<usize>() + self.places.capacity() * size_of::<u32>()
    }
}
