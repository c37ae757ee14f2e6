//! Leads and what keeps them single: idempotency keys for 24 hours of the business clock, and recognition of the same
//! lead sent without one (AAP digest, section f). Bounded by number and by bytes; the oldest go first, and are counted.

use std::borrow::Borrow;
use std::collections::{HashMap, VecDeque};
use std::hash::Hash;
use std::sync::Arc;

use jiff::{SignedDuration, Timestamp};
use serde::Serialize;
use serde_json::value::RawValue;

use super::clock::to_rfc3339;
use super::ids::Id;
use crate::ledger::Ticket;
use crate::share::Share;

/// Leads kept in full, and keys that bind, for a dealer alone.
pub const MAX_LEADS: usize = 100_000;
/// Bytes of payloads and receipts kept, for a dealer alone.
pub const MAX_LEAD_BYTES: usize = 64 << 20;
/// How long a key binds, and how long an equivalent lead counts as the same.
pub const WINDOW: SignedDuration = SignedDuration::from_hours(24);

/// SHA-256 of canonical bytes.
pub type Digest = [u8; 32];

/// A lead that was received.
#[derive(Debug)]
pub struct Lead {
    /// Its place among all leads of the process.
    pub number: u64,
    /// When it was received (business clock).
    pub received_at: Timestamp,
    /// The conversation it came in; empty where it came through an interface that has none.
    pub context_id: Box<str>,
    /// The request payload, canonical: the grant of consent is an audit record, kept whole.
    pub request: Box<RawValue>,
    /// What it was answered with.
    pub receipt: Arc<Receipt>,
}

/// What is remembered of a lead for its repetition.
#[derive(Debug)]
pub struct Receipt {
    /// The identifier it got.
    pub lead_id: Id,
    /// The response payload that was given.
    pub response: Box<RawValue>,
    /// Its record, where leads are written down during this run: whoever hears of the lead waits until it is safe.
    pub ticket: Option<Ticket>,
}

/// A lead as the admin endpoint shows it.
#[derive(Debug, Serialize)]
pub struct LeadView<'a> {
    lead_id: &'a str,
    /// RFC 3339.
    received_at: String,
    context_id: Option<&'a str>,
    request: &'a RawValue,
    receipt: &'a RawValue,
}

impl Lead {
    fn bytes(&self) -> usize {
        let Receipt { lead_id, response, .. } = &*self.receipt;
        lead_id.as_str().len() + self.context_id.len() + self.request.get().len() + response.get().len()
    }

    /// What is shown of it.
    pub fn view(&self) -> LeadView<'_> {
        LeadView {
            lead_id: self.receipt.lead_id.as_str(),
            received_at: to_rfc3339(self.received_at),
            context_id: Some(&*self.context_id).filter(|id| !id.is_empty()),
            request: &self.request,
            receipt: &self.receipt.response,
        }
    }
}

/// What binds for [`WINDOW`] from when it was put in; so much of it at most.
#[derive(Debug)]
struct Binding<K, V> {
    bound: HashMap<K, Bound<V>>,
    oldest_first: VecDeque<(K, u64)>,
    /// Values put in so far. Their numbers tell bindings apart that a frozen clock gives one time.
    count: u64,
    most: usize,
}

#[derive(Debug)]
struct Bound<V> {
    number: u64,
    since: Timestamp,
    value: V,
}

impl<K: Hash + Eq + Clone, V> Binding<K, V> {
    fn new(most: usize) -> Binding<K, V> {
        Binding { bound: HashMap::new(), oldest_first: VecDeque::new(), count: 0, most }
    }

    fn get<Q: Hash + Eq + ?Sized>(&self, key: &Q, now: Timestamp) -> Option<&V>
    where
        K: Borrow<Q>,
    {
        let bound = self.bound.get(key)?;
        (now.duration_since(bound.since) < WINDOW).then_some(&bound.value)
    }

    /// Puts in a value; lets go of what no longer binds, and of the oldest when there are too many. Says how many of those
    /// still bound.
    fn put(&mut self, key: K, value: V, now: Timestamp) -> u64 {
        let mut forgotten = 0;
        while let Some((oldest, number)) = self.oldest_first.front() {
            // A key may have been bound again since; then the newer binding stays.
            let current = self.bound.get(oldest).filter(|bound| bound.number == *number);
            let binds = current.is_some_and(|bound| now.duration_since(bound.since) < WINDOW);
            if binds && self.oldest_first.len() < self.most {
                break;
            }
            if current.is_some() {
                self.bound.remove(oldest);
                forgotten += u64::from(binds);
            }
            self.oldest_first.pop_front();
        }
        self.count += 1;
        self.oldest_first.push_back((key.clone(), self.count));
        self.bound.insert(key, Bound { number: self.count, since: now, value });
        forgotten
    }
}

#[derive(Debug)]
struct Keyed {
    payload: Digest,
    receipt: Arc<Receipt>,
}

/// How a lead relates to those before it.
#[derive(Debug)]
pub enum Standing {
    /// It is new.
    New,
    /// The same key and the same payload: the same answer.
    Repeated(Arc<Receipt>),
    /// The same key, but another payload.
    Conflict,
    /// No key, but equivalent to an earlier one.
    Duplicate(Arc<Receipt>),
}

/// All leads of a dealer.
#[derive(Debug)]
pub struct Leads {
    kept: VecDeque<Lead>,
    bytes: usize,
    most: usize,
    most_bytes: usize,
    by_key: Binding<Arc<str>, Keyed>,
    by_equivalence: Binding<Digest, Arc<Receipt>>,
    /// Leads received since the start or the last reset.
    pub received: u64,
    /// Leads no longer kept in full.
    pub dropped: u64,
    /// Keys and equivalences let go before their time, to make room.
    pub forgotten: u64,
}

impl Default for Leads {
    fn default() -> Leads {
        Leads::new(Share::default())
    }
}

impl Leads {
    /// None, with room for this share of them.
    pub fn new(share: Share) -> Leads {
        let most = share.of(MAX_LEADS);
        Leads {
            kept: VecDeque::new(),
            bytes: 0,
            most,
            most_bytes: share.of(MAX_LEAD_BYTES),
            by_key: Binding::new(most),
            by_equivalence: Binding::new(most),
            received: 0,
            dropped: 0,
            forgotten: 0,
        }
    }

    /// How a lead relates to those before it. `payload` identifies the whole payload, `equivalence` what makes two leads
    /// the same without a key.
    pub fn standing(
        &self,
        key: Option<&str>,
        payload: &Digest,
        equivalence: &Digest,
        now: Timestamp,
    ) -> Standing {
        match key {
            Some(key) => match self.by_key.get(key, now) {
                Some(keyed) if keyed.payload == *payload => Standing::Repeated(keyed.receipt.clone()),
                Some(_) => Standing::Conflict,
                None => Standing::New,
            },
            None => match self.by_equivalence.get(equivalence, now) {
                Some(receipt) => Standing::Duplicate(receipt.clone()),
                None => Standing::New,
            },
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
        let receipt = &lead.receipt;
        self.received += 1;
        if let Some(key) = key {
            let keyed = Keyed { payload, receipt: receipt.clone() };
            self.forgotten += self.by_key.put(key.into(), keyed, now);
        }
        self.forgotten += self.by_equivalence.put(equivalence, receipt.clone(), now);
        self.bytes += lead.bytes();
        self.kept.push_back(lead);
        while self.kept.len() > self.most || (self.bytes > self.most_bytes && self.kept.len() > 1) {
            if let Some(oldest) = self.kept.pop_front() {
                self.bytes -= oldest.bytes();
                self.dropped += 1;
            }
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
    use crate::dealer::ids::Ids;

    fn lead_id(n: u64) -> Id {
        Ids::new(0, n, 0).make("lead_")
    }

    fn lead(n: u64) -> Lead {
        let raw = |text: String| RawValue::from_string(text).unwrap();
        Lead {
            number: n,
            received_at: Timestamp::UNIX_EPOCH,
            context_id: "".into(),
            request: raw(format!("{{\"n\":{n}}}")),
            receipt: Arc::new(Receipt { lead_id: lead_id(n), response: raw("{}".to_owned()), ticket: None }),
        }
    }

    #[test]
    fn a_key_binds_for_a_day_of_the_business_clock() {
        let mut leads = Leads::default();
        let start = Timestamp::UNIX_EPOCH;
        leads.store(lead(1), Some("k"), [1; 32], [9; 32], start);
        let at = |hours| start + SignedDuration::from_hours(hours);
        let standing = |hours, payload| leads.standing(Some("k"), &[payload; 32], &[9; 32], at(hours));
        assert!(matches!(standing(23, 1), Standing::Repeated(receipt) if receipt.lead_id == lead_id(1)));
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
        let newest = leads.newest(1).next().unwrap();
        assert_eq!(newest.receipt.lead_id, lead_id(MAX_LEADS as u64 + 9));
        assert!(leads.by_equivalence.oldest_first.len() <= MAX_LEADS);
        // All of these shared one equivalence, so none was let go before its time.
        assert_eq!(leads.forgotten, 0);
        for n in 0..(MAX_LEADS as u64 + 10) {
            leads.store(lead(n), Some(&n.to_string()), [0; 32], [0; 32], Timestamp::UNIX_EPOCH);
        }
        assert_eq!((leads.by_key.bound.len(), leads.forgotten), (MAX_LEADS, 10));
    }
}
