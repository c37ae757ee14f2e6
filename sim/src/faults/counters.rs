//! How often something was seen, for more things than fit: bounded, and what is forgotten is counted. Serves the counts
//! of rules and the attempts of stable keys.

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, PoisonError};

use crate::share::Share;

const SHARDS: usize = 16;
/// Things remembered in all, at most, for a dealer alone.
pub const MAX_COUNTED: usize = 1 << 18;

/// Counts by 64-bit name. A shard keeps two generations and forgets the older one when the younger is full, so what is
/// still in use survives.
#[derive(Debug)]
pub(crate) struct Occurrences {
    shards: [Mutex<Shard>; SHARDS],
    forgotten: AtomicU64,
    /// Of one generation of one shard; two generations are kept.
    generation: usize,
}

impl Default for Occurrences {
    fn default() -> Occurrences {
        Occurrences::new(Share::default())
    }
}

#[derive(Debug, Default)]
struct Shard {
    young: HashMap<u64, u64>,
    old: HashMap<u64, u64>,
}

impl Occurrences {
    /// None seen, with room for this share of them.
    pub(crate) fn new(share: Share) -> Occurrences {
        let generation = share.of(MAX_COUNTED).div_ceil(2 * SHARDS);
        Occurrences { shards: Default::default(), forgotten: AtomicU64::new(0), generation }
    }

    /// Counts one more and says how many came before.
    pub(crate) fn next(&self, name: u64) -> u64 {
        let shard = &self.shards[name as usize % SHARDS];
        let mut shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(count) = shard.young.get_mut(&name) {
            *count += 1;
            return *count - 1;
        }
        let before = shard.old.remove(&name).unwrap_or(0);
        if shard.young.len() >= self.generation {
            self.forgotten.fetch_add(shard.old.len() as u64, Ordering::Relaxed);
            shard.old = std::mem::take(&mut shard.young);
        }
        shard.young.insert(name, before + 1);
        before
    }

    /// Counts forgotten to stay bounded.
    pub(crate) fn forgotten(&self) -> u64 {
        self.forgotten.load(Ordering::Relaxed)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stable::mix;

    #[test]
    fn counts_are_kept_while_in_use_and_the_table_is_bounded() {
        let counts = Occurrences::default();
        for round in 0..(2 * MAX_COUNTED as u64) {
            counts.next(mix(round));
            if round % 1000 == 0 {
                assert_eq!(counts.next(7), round / 1000, "a count in use is not forgotten");
            }
        }
        assert!(counts.forgotten() > 0);
        let kept: usize = counts
            .shards
            .iter()
            .map(|shard| {
                let shard = shard.lock().unwrap();
                shard.young.len() + shard.old.len()
            })
            .sum();
        assert!(kept <= MAX_COUNTED, "{kept}");
    }
}
