//! How often each logical request was seen: the `attempt` of a stable key. Bounded; when a shard is full it starts anew,
//! and that is counted.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

const SHARDS: usize = 16;
/// Keys remembered in all.
pub const MAX_KEYS: usize = 1 << 18;

/// The table.
#[derive(Debug, Default)]
pub struct Attempts {
    shards: [Mutex<HashMap<u64, u32>>; SHARDS],
    forgotten: AtomicU64,
}

impl Attempts {
    /// Counts one more occurrence of a key and says how many came before.
    pub fn next(&self, key: u64) -> u32 {
        let mut shard = self.shards[key as usize % SHARDS].lock().unwrap_or_else(PoisonError::into_inner);
        if shard.len() >= MAX_KEYS / SHARDS && !shard.contains_key(&key) {
            self.forgotten.fetch_add(shard.len() as u64, Ordering::Relaxed);
            shard.clear();
        }
        let count = shard.entry(key).or_insert(0);
        let attempt = *count;
        *count = count.wrapping_add(1);
        attempt
    }

    /// Keys forgotten to keep the table bounded.
    pub fn forgotten(&self) -> u64 {
        self.forgotten.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn occurrences_are_counted_and_the_table_is_bounded() {
        let attempts = Attempts::default();
        assert_eq!([attempts.next(7), attempts.next(7), attempts.next(8)], [0, 1, 0]);
        for key in 0..(2 * MAX_KEYS as u64) {
            attempts.next(key);
        }
        assert!(attempts.forgotten() > 0);
    }
}
