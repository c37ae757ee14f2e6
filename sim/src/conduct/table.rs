//! A map that forgets what it was told first, and counts what it forgot.

use std::collections::{HashMap, VecDeque};
use std::hash::Hash;

/// At most `most` entries; the oldest make room.
#[derive(Debug, Clone)]
pub(super) struct Table<K, V> {
    entries: HashMap<K, V>,
    order: VecDeque<K>,
    most: usize,
    /// Entries that were forgotten.
    pub(super) lost: u64,
}

impl<K: Hash + Eq + Clone, V> Table<K, V> {
    pub(super) fn new(most: usize) -> Table<K, V> {
        Table { entries: HashMap::new(), order: VecDeque::new(), most, lost: 0 }
    }

    pub(super) fn get(&self, key: &K) -> Option<&V> {
        self.entries.get(key)
    }

    pub(super) fn get_mut(&mut self, key: &K) -> Option<&mut V> {
        self.entries.get_mut(key)
    }

    /// Puts an entry in, in the place of one with the same key.
    pub(super) fn put(&mut self, key: K, value: V) {
        if self.entries.insert(key.clone(), value).is_some() {
            return;
        }
        self.order.push_back(key);
        if self.order.len() > self.most
            && let Some(oldest) = self.order.pop_front()
        {
            self.entries.remove(&oldest);
            self.lost += 1;
        }
    }

    /// The entries, oldest first.
    pub(super) fn iter(&self) -> impl Iterator<Item = &V> {
        self.order.iter().filter_map(|key| self.entries.get(key))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_oldest_are_forgotten_and_counted() {
        let mut table = Table::new(2);
        for key in [1, 2, 1, 3] {
            table.put(key, key);
        }
        assert_eq!(table.iter().copied().collect::<Vec<_>>(), [2, 3]);
        assert_eq!((table.get(&1), table.lost), (None, 1));
    }
}
