//! A token bucket per key on the traffic clock, in the form of the generic cell rate algorithm (ITU-T I.371): one
//! number a key, the time at which its bucket is full again.

use std::collections::HashMap;
use std::hash::Hash;
use std::str::FromStr;

use crate::share::Share;

/// Keys tracked at once, by a dealer alone; beyond it those whose bucket is full again are let go, then any.
const MAX_KEYS: usize = 10_000;

/// What shares one bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LimitKey {
    /// Each client has its own.
    Client,
    /// Each conversation has its own.
    Conversation,
    /// All calls share one.
    Global,
}

/// A rate limit, as `--rate-limit` has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RateLimit {
    /// Nanoseconds in which one token grows.
    interval_ns: u64,
    /// Tokens that a full bucket holds.
    burst: u64,
    /// What shares one bucket.
    pub key: LimitKey,
}

/// A rate limit that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{given:?} is no rate limit ({why}); write RATE[,burst=N][,key=client|conversation|global], such as 100/s,burst=20"
)]
pub struct BadRateLimit {
    given: String,
    why: &'static str,
}

impl FromStr for RateLimit {
    type Err = BadRateLimit;

    /// The burst is the number before the slash unless given: `5/s` lets five calls through at once.
    fn from_str(given: &str) -> Result<RateLimit, BadRateLimit> {
        let bad = |why| BadRateLimit { given: given.to_owned(), why };
        let mut parts = given.split(',').map(str::trim);
        let (count, unit) =
            parts.next().and_then(|rate| rate.split_once('/')).ok_or_else(|| bad("the rate has no unit"))?;
        let count: u64 = count.parse().map_err(|_| bad("the rate is no whole number"))?;
        let unit_ns: u64 = match unit {
            "s" => 1_000_000_000,
            "m" => 60_000_000_000,
            "h" => 3_600_000_000_000,
            _ => return Err(bad("the unit is none of s, m and h")),
        };
        if !(1..=1_000_000_000).contains(&count) {
            return Err(bad("the rate is not between 1 and 1000000000"));
        }
        let mut limit = RateLimit { interval_ns: unit_ns / count, burst: count, key: LimitKey::Client };
        for part in parts {
            match part.split_once('=') {
                Some(("burst", burst)) => {
                    limit.burst = burst
                        .parse()
                        .ok()
                        .filter(|n| *n > 0)
                        .ok_or_else(|| bad("burst is no positive number"))?;
                }
                Some(("key", "client")) => limit.key = LimitKey::Client,
                Some(("key", "conversation")) => limit.key = LimitKey::Conversation,
                Some(("key", "global")) => limit.key = LimitKey::Global,
                _ => return Err(bad("only burst= and key= may follow the rate")),
            }
        }
        Ok(limit)
    }
}

impl RateLimit {
    /// A limit of one token per `interval_ns`, `burst` of them at once.
    pub fn new(interval_ns: u64, burst: u64, key: LimitKey) -> RateLimit {
        RateLimit { interval_ns: interval_ns.max(1), burst: burst.max(1), key }
    }
}

/// A bucket for each key. Keys of several limits may share one table, if they say which limit is theirs.
#[derive(Debug)]
pub struct Buckets<K = u64> {
    /// Keys tracked at once.
    most: usize,
    /// Per key, when its bucket is full again (the theoretical arrival time less one interval).
    full_at: HashMap<K, u64>,
    /// Keys let go while their bucket was not full.
    pub forgotten: u64,
}

impl<K: Eq + Hash> Buckets<K> {
    /// Full buckets for every key; this share of them is tracked at once.
    pub fn new(share: Share) -> Buckets<K> {
        Buckets { most: share.of(MAX_KEYS), full_at: HashMap::new(), forgotten: 0 }
    }

    /// Takes a token from a key's bucket, whose limit is always the same.
    ///
    /// # Errors
    /// The nanoseconds after which a token will be there.
    pub fn take(&mut self, limit: RateLimit, key: K, now_ns: u64) -> Result<(), u64> {
        if self.full_at.len() >= self.most && !self.full_at.contains_key(&key) {
            self.make_room(now_ns);
        }
        let RateLimit { interval_ns, burst, .. } = limit;
        let full_at = self.full_at.entry(key).or_insert(0);
        let base = (*full_at).max(now_ns);
        // With `burst` tokens taken at once, the bucket is full again after burst intervals.
        let latest = now_ns.saturating_add(interval_ns.saturating_mul(burst));
        let next = base.saturating_add(interval_ns);
        if next > latest {
            return Err(next - latest);
        }
        *full_at = next;
        Ok(())
    }

    fn make_room(&mut self, now_ns: u64) {
        self.full_at.retain(|_, full_at| *full_at > now_ns);
        if self.full_at.len() >= self.most {
            self.forgotten += self.full_at.len() as u64;
            self.full_at.clear();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SECOND: u64 = 1_000_000_000;

    #[test]
    fn a_burst_passes_then_the_rate_and_the_hint_is_exact() {
        let (mut buckets, limit) = (Buckets::new(Share::default()), "10/s,burst=3".parse().unwrap());
        for _ in 0..3 {
            assert_eq!(buckets.take(limit, 1, SECOND), Ok(()));
        }
        assert_eq!(buckets.take(limit, 1, SECOND), Err(SECOND / 10));
        assert_eq!(buckets.take(limit, 2, SECOND), Ok(()));
        assert_eq!(buckets.take(limit, 1, SECOND + SECOND / 10 - 1), Err(1));
        assert_eq!(buckets.take(limit, 1, SECOND + SECOND / 10), Ok(()));
        for _ in 0..3 {
            assert_eq!(buckets.take(limit, 1, 100 * SECOND), Ok(()));
        }
        assert!(buckets.take(limit, 1, 100 * SECOND).is_err());
    }

    #[test]
    fn one_a_minute_means_one() {
        let (mut buckets, limit) = (Buckets::new(Share::default()), "1/m".parse().unwrap());
        assert_eq!(buckets.take(limit, 1, 0), Ok(()));
        assert_eq!(buckets.take(limit, 1, 0), Err(60 * SECOND));
    }

    #[test]
    fn limits_are_read_or_explained() {
        assert_eq!("5/m,key=global".parse::<RateLimit>().unwrap().key, LimitKey::Global);
        for bad in ["", "5", "5/d", "x/s", "0/s", "5/s,burst=0", "5/s,key=ip", "5/s,foo"] {
            let error = bad.parse::<RateLimit>().unwrap_err().to_string();
            assert!(error.contains("100/s,burst=20"), "{error}");
        }
    }

    #[test]
    fn the_table_is_bounded() {
        let (mut buckets, limit) = (Buckets::new(Share::default()), "1/h".parse().unwrap());
        for key in 0..(3 * MAX_KEYS as u64) {
            assert_eq!(buckets.take(limit, key, 0), Ok(()));
        }
        assert!(buckets.full_at.len() <= MAX_KEYS);
        assert!(buckets.forgotten > 0);
    }
}
