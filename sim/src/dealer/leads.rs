//! Leads and what keeps them single: idempotency keys for 24 hours of the business clock, and recognition of the same
//! lead sent without one (AAP digest, section f). Bounded by number and by bytes; the oldest go first, and are counted.

use std::collections::{HashMap, VecDeque};

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde_json::value::RawValue;

/// Leads kept in full.
pub const MAX_LEADS: usize = 100_000;
/// Bytes of payloads and receipts kept.
pub const MAX_LEAD_BYTES: usize = 64 << 20;
/// How long a key binds, and how long an equivalent lead counts as the same.
pub const WINDOW: SignedDuration = SignedDuration::from_hours(24);

/// SHA-256 of canonical bytes.
pub type Digest = [u8; 32];

/// A lead that was received.
#[derive(Debug, Clone, Serialize)]
pub struct Lead {
    /// Its identifier.
    pub lead_id: String,
    /// When it was received (business clock), RFC 3339.
    pub received_at: String,
    /// The conversation it came in.
    pub context_id: String,
    /// The request payload, canonical: the grant of consent is an audit record, kept whole.
    pub request: Box<RawValue>,
    /// The response payload that was given.
    pub receipt: Box<RawValue>,
}

impl Lead {
    fn bytes(&self) -> usize {
        self.lead_id.len() + self.context_id.len() + self.request.get().len() + self.receipt.get().len()
    }
}

#[derive(Debug)]
struct Bound<T> {
    value: T,
    since: Timestamp,
}

/// What is remembered of a lead for its repetition.
#[derive(Debug, Clone)]
pub struct Receipt {
    /// The identifier it got.
    pub lead_id: String,
    /// The response payload that was given.
    pub response: Box<RawValue>,
}

#[derive(Debug)]
struct Keyed {
    payload: Digest,
    receipt: Receipt,
}

/// How a lead relates to those before it.
#[derive(Debug)]
pub enum Standing {
    /// It is new.
    New,
    /// The same key and the same payload: the same answer.
    Repeated(Receipt),
    /// The same key, but another payload.
    Conflict,
    /// No key, but equivalent to an earlier one.
    Duplicate(Receipt),
}

/// All leads of a dealer.
#[derive(Debug, Default)]
pub struct Leads {
    kept: VecDeque<Lead>,
    bytes: usize,
    by_key: HashMap<String, Bound<Keyed>>,
    keys_oldest_first: VecDeque<(String, Timestamp)>,
    by_equivalence: HashMap<Digest, Bound<Receipt>>,
    equivalents_oldest_first: VecDeque<(Digest, Timestamp)>,
    /// Leads received since the start or the last reset.
    pub received: u64,
    /// Leads no longer kept in full.
    pub dropped: u64,
    /// Keys and equivalences let go before their time, to make room.
    pub forgotten: u64,
}

impl Leads {
    /// How a lead relates to those before it. `payload` identifies the whole payload, `equivalence` what makes two leads
    /// the same without a key.
    pub fn standing(
        &self,
        key: Option<&str>,
        payload: &Digest,
        equivalence: &Digest,
        now: Timestamp,
    ) -> Standing {
        let binds = |since: Timestamp| now.duration_since(since) < WINDOW;
        if let Some(key) = key {
            return match self.by_key.get(key) {
                Some(bound) if binds(bound.since) => {
                    if bound.value.payload == *payload {
                        Standing::Repeated(bound.value.receipt.clone())
                    } else {
                        Standing::Conflict
                    }
                }
                _ => Standing::New,
            };
        }
        match self.by_equivalence.get(equivalence) {
            Some(bound) if binds(bound.since) => Standing::Duplicate(bound.value.clone()),
            _ => Standing::New,
        }
    }

    /// Stores a new lead.
    pub fn store(
        &mut self,
        lead: Lead,
        key: Option<&str>,
        payload: Digest,
        equivalence: Digest,
        now: Timestamp,
    ) {
        let receipt = Receipt { lead_id: lead.lead_id.clone(), response: lead.receipt.clone() };
        self.received += 1;
        self.forget_old(now);
        if let Some(key) = key {
            self.keys_oldest_first.push_back((key.to_owned(), now));
            let keyed = Keyed { payload, receipt: receipt.clone() };
            self.by_key.insert(key.to_owned(), Bound { value: keyed, since: now });
        }
        self.equivalents_oldest_first.push_back((equivalence, now));
        self.by_equivalence.insert(equivalence, Bound { value: receipt, since: now });
        self.bytes += lead.bytes();
        self.kept.push_back(lead);
        while self.kept.len() > MAX_LEADS || (self.bytes > MAX_LEAD_BYTES && self.kept.len() > 1) {
            if let Some(oldest) = self.kept.pop_front() {
                self.bytes -= oldest.bytes();
                self.dropped += 1;
            }
        }
    }

    /// Lets go of keys and equivalences that no longer bind, and of the oldest when there are too many.
    fn forget_old(&mut self, now: Timestamp) {
        let is_over = |since: Timestamp, len: usize| now.duration_since(since) >= WINDOW || len > MAX_LEADS;
        while let Some((key, since)) = self.keys_oldest_first.front() {
            if !is_over(*since, self.keys_oldest_first.len()) {
                break;
            }
            if self.by_key.get(key).is_some_and(|bound| bound.since == *since) {
                self.forgotten += u64::from(now.duration_since(*since) < WINDOW);
                self.by_key.remove(key);
            }
            self.keys_oldest_first.pop_front();
        }
        while let Some((digest, since)) = self.equivalents_oldest_first.front() {
            if !is_over(*since, self.equivalents_oldest_first.len()) {
                break;
            }
            if self.by_equivalence.get(digest).is_some_and(|bound| bound.since == *since) {
                self.forgotten += u64::from(now.duration_since(*since) < WINDOW);
                self.by_equivalence.remove(digest);
            }
            self.equivalents_oldest_first.pop_front();
        }
    }

    /// The newest `limit` leads kept, oldest of them first.
    pub fn newest(&self, limit: usize) -> impl Iterator<Item = &Lead> {
        self.kept.iter().skip(self.kept.len().saturating_sub(limit))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lead(n: u64) -> Lead {
        let raw = |text: String| RawValue::from_string(text).unwrap();
        Lead {
            lead_id: format!("lead_{n}"),
            received_at: String::new(),
            context_id: String::new(),
            request: raw(format!("{{\"n\":{n}}}")),
            receipt: raw("{}".to_owned()),
        }
    }

    #[test]
    fn a_key_binds_for_a_day_of_the_business_clock() {
        let mut leads = Leads::default();
        let start = Timestamp::UNIX_EPOCH;
        leads.store(lead(1), Some("k"), [1; 32], [9; 32], start);
        let at = |hours| start + SignedDuration::from_hours(hours);
        let standing = |hours, payload| leads.standing(Some("k"), &[payload; 32], &[9; 32], at(hours));
        assert!(matches!(standing(23, 1), Standing::Repeated(receipt) if receipt.lead_id == "lead_1"));
        assert!(matches!(standing(23, 2), Standing::Conflict));
        assert!(matches!(standing(24, 1), Standing::New));
        assert!(matches!(leads.standing(Some("K"), &[1; 32], &[9; 32], at(1)), Standing::New));
        assert!(matches!(leads.standing(None, &[2; 32], &[9; 32], at(1)), Standing::Duplicate(_)));
        assert!(matches!(leads.standing(None, &[2; 32], &[8; 32], at(1)), Standing::New));
    }

    #[test]
    fn a_key_bound_again_after_its_day_is_not_swept_with_the_old_binding() {
        let mut leads = Leads::default();
        let at = |hours| Timestamp::UNIX_EPOCH + SignedDuration::from_hours(hours);
        leads.store(lead(1), Some("k"), [1; 32], [1; 32], at(0));
        leads.store(lead(2), Some("k"), [2; 32], [2; 32], at(25));
        leads.store(lead(3), Some("x"), [3; 32], [3; 32], at(26));
        assert!(matches!(leads.standing(Some("k"), &[2; 32], &[0; 32], at(27)), Standing::Repeated(_)));
    }

    #[test]
    fn the_oldest_leads_are_dropped_and_counted() {
        let mut leads = Leads::default();
        for n in 0..(MAX_LEADS as u64 + 10) {
            leads.store(lead(n), None, [0; 32], [0; 32], Timestamp::UNIX_EPOCH);
        }
        assert_eq!((leads.kept.len(), leads.dropped, leads.received), (MAX_LEADS, 10, MAX_LEADS as u64 + 10));
        assert_eq!(leads.newest(1).next().unwrap().lead_id, format!("lead_{}", MAX_LEADS + 9));
        assert!(leads.equivalents_oldest_first.len() <= MAX_LEADS + 1);
    }
}
