//! The business: the five skills, leads, idempotency, appointments, conversations and the clock. Knows nothing of A2A.

pub mod clock;
pub mod conversation;
pub mod counters;
pub mod diary;
pub mod fixtures;
pub mod ids;
pub mod leads;
pub mod limiter;
pub mod lot;
pub mod skills;

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use arc_swap::Guard;
use jiff::Timestamp;
use jiff::civil::Date;

use crate::auth::Scheme;
use crate::faults::counters::Occurrences;
use crate::inventory::{FacetKeys, GenerateError, Inventory, Profile, Rooftop};
use crate::ledger::{Entry, Ledger};
use crate::protocol::{Bindings, Contract, HeaderMode, Skill, mcp, payload};
use crate::share::Share;
use crate::stable::mix;
use clock::ClockMode;
use conversation::Conversations;
use counters::Counters;
use diary::{Diary, Place};
use ids::Ids;
use leads::Leads;
use limiter::{Buckets, LimitKey, RateLimit};
use lot::Lot;

use crate::faults::effect::Bucket;

/// What a dealer is, beside its stock and its profile.
#[derive(Debug, Clone)]
pub struct DealerSpec {
    /// The seed of everything that is drawn.
    pub seed: u64,
    /// The contract served.
    pub contract: Contract,
    /// What happens to requests without the A2A headers.
    pub headers: HeaderMode,
    /// The skills offered.
    pub skills: Vec<Skill>,
    /// The interfaces through which they are reached.
    pub doors: Bindings,
    /// How the business clock runs.
    pub clock: ClockMode,
    /// How often callers may call.
    pub rate_limit: Option<RateLimit>,
    /// Listings on a page at most.
    pub page_cap: u32,
    /// The schemes of credentials that it accepts, any one of them; none where everybody is served.
    pub auth: Vec<Scheme>,
    /// How much of what is bounded it may keep.
    pub share: Share,
    /// A bug, to show that tests find it.
    #[doc(hidden)]
    pub planted: Planted,
}

/// Bugs that tests plant, to show that they would be found.
#[doc(hidden)]
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Planted {
    /// None.
    #[default]
    Nothing,
    /// A lead is acknowledged before it is stored.
    AcknowledgesEarly,
    /// Idempotency keys are the same when a short hash of them is.
    ComparesKeysByHash,
}

impl Default for DealerSpec {
    fn default() -> DealerSpec {
        DealerSpec {
            seed: 42,
            contract: Contract::V3_0,
            headers: Contract::V3_0.default_headers,
            skills: Skill::ALL.to_vec(),
            doors: Contract::V3_0.bindings,
            clock: ClockMode::Real,
            rate_limit: None,
            page_cap: 100,
            auth: Vec::new(),
            share: Share::default(),
            planted: Planted::Nothing,
        }
    }
}

/// What must change together: leads and the diary they book in.
#[derive(Debug)]
pub struct Desk {
    /// The leads.
    pub leads: Leads,
    /// The appointments.
    pub diary: Diary,
}

/// What of its stock a dealer shows: what its contract has words for. Worked out once, since every listing asks.
#[derive(Debug)]
pub struct Shown {
    /// Members that later contracts brought; listings go without them.
    pub later_members: Vec<&'static str>,
    /// The keys of Facets.
    pub facet_keys: FacetKeys,
}

impl Shown {
    fn under(contract: Contract) -> Shown {
        let features = &contract.features;
        Shown {
            later_members: payload::later_members(features),
            facet_keys: FacetKeys::known(|name| payload::knows_facet(name, features)),
        }
    }
}

/// A dealer: what it is and what it remembers.
#[derive(Debug)]
pub struct Dealer {
    spec: DealerSpec,
    profile: Profile,
    lot: Lot,
    information: Vec<u8>,
    /// Made when it is first asked for.
    tools: OnceLock<Vec<u8>>,
    shown: Shown,
    desk: Mutex<Desk>,
    conversations: Conversations,
    buckets: Option<Mutex<Buckets>>,
    attempts: Occurrences,
    counters: Counters,
    leads_in_all: Arc<AtomicU64>,
    /// Where leads are written down, if they are.
    ledger: Option<Arc<Ledger>>,
    /// Leads that it knew when it started.
    recovered: AtomicU64,
    /// By rule, limit and key.
    fault_buckets: Mutex<Buckets<(u64, Bucket, u64)>>,
}

impl Dealer {
    /// Opens a dealer. `day` is the clock's day at the start; `leads_in_all` counts leads beyond the life of this dealer, and `ledger`
    /// has them written down.
    pub fn open(
        spec: DealerSpec,
        profile: Profile,
        inventory: Arc<Inventory>,
        day: Date,
        leads_in_all: Arc<AtomicU64>,
        ledger: Option<Arc<Ledger>>,
    ) -> Dealer {
        let diary = Diary::new(spec.seed, day, places(&profile), spec.share);
        let lot = Lot::new(inventory, day, spec.seed, profile.dealer_id.clone());
        Dealer {
            information: information(&profile, spec.contract).into_bytes(),
            tools: OnceLock::new(),
            shown: Shown::under(spec.contract),
            desk: Mutex::new(Desk { leads: Leads::new(spec.share), diary }),
            conversations: Conversations::new(spec.share),
            buckets: spec.rate_limit.map(|_| Mutex::new(Buckets::new(spec.share))),
            attempts: Occurrences::new(spec.share),
            counters: Counters::default(),
            leads_in_all,
            ledger,
            recovered: AtomicU64::new(0),
            fault_buckets: Mutex::new(Buckets::new(spec.share)),
            spec,
            profile,
            lot,
        }
    }

    /// What it is.
    pub fn spec(&self) -> &DealerSpec {
        &self.spec
    }

    /// The group's name.
    pub fn name(&self) -> &str {
        &self.profile.name
    }

    /// Its identifier in listings.
    pub fn id(&self) -> &str {
        &self.profile.dealer_id
    }

    /// Its stock, as it was, is, and can be changed.
    pub fn lot(&self) -> &Lot {
        &self.lot
    }

    /// Its stock in force. A call that looks at it twice must take it once, or it may see two stocks.
    pub fn inventory(&self) -> Guard<Arc<Inventory>> {
        self.lot.stock()
    }

    /// Has the market move on to the business clock's day.
    ///
    /// # Errors
    /// When what comes in cannot be generated; the stock then stays.
    pub fn catch_up(&self, now: Timestamp) -> Result<(), GenerateError> {
        self.lot.catch_up(&self.profile, now)
    }

    /// The `data` of `dealer.information.response`, ready to send.
    pub fn information(&self) -> &[u8] {
        &self.information
    }

    /// Its skills as MCP's tools: the members of the result of `tools/list`.
    pub fn tools(&self) -> &[u8] {
        self.tools.get_or_init(|| mcp::tool_list(self.spec.contract, &self.spec.skills))
    }

    /// What of its stock it shows.
    pub fn shown(&self) -> &Shown {
        &self.shown
    }

    /// Listings on a page at most.
    pub fn page_cap(&self) -> u32 {
        self.spec.page_cap
    }

    /// Leads and diary, locked. A panic while they were held leaves them usable: every change is made last.
    pub fn desk(&self) -> MutexGuard<'_, Desk> {
        self.desk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Counts a lead that was received, and says how many came before it, to any dealer.
    pub(crate) fn count_lead(&self) -> u64 {
        self.leads_in_all.fetch_add(1, Ordering::Relaxed)
    }

    /// Where its leads are written down, if they are.
    pub(crate) fn ledger(&self) -> Option<&Ledger> {
        self.ledger.as_deref()
    }

    /// Identifiers for the `attempt`-th request of this key. A dealer that knows leads from before it started makes others than it
    /// made then: with a frozen clock they would come again.
    pub(crate) fn ids(&self, key: u64, attempt: u64) -> Ids {
        let seed = match self.recovered.load(Ordering::Relaxed) {
            0 => self.spec.seed,
            recovered => mix(self.spec.seed ^ mix(recovered)),
        };
        Ids::new(seed, key, attempt)
    }

    /// Knows again what was recorded of it before the start.
    pub(crate) fn recover(&self, entry: &Entry<'_>) {
        match entry {
            Entry::Lead(lead) => {
                skills::recover_lead(self, lead);
                self.recovered.fetch_add(1, Ordering::Relaxed);
            }
            Entry::Reset => {
                let mut desk = self.desk();
                desk.leads = Leads::new(self.spec.share);
                desk.diary.reset();
                self.recovered.store(0, Ordering::Relaxed);
            }
        }
    }

    /// Leads that it knew when it started.
    pub(crate) fn recovered(&self) -> u64 {
        self.recovered.load(Ordering::Relaxed)
    }

    /// Takes a token from the bucket that a fault describes, of the rule `owner` (0: of the requests that ask themselves).
    ///
    /// # Errors
    /// The nanoseconds after which a token will be there.
    pub(crate) fn take_fault_token(
        &self,
        owner: u64,
        bucket: Bucket,
        key: u64,
        now_ns: u64,
    ) -> Result<(), u64> {
        let limit = RateLimit::new(bucket.interval_ns, bucket.burst, LimitKey::Client);
        let mut all = self.fault_buckets.lock().unwrap_or_else(PoisonError::into_inner);
        all.take(limit, (owner, bucket, key), now_ns)
    }

    /// Buckets forgotten while they were not full, of the rate limit and of faults.
    pub(crate) fn buckets_forgotten(&self) -> u64 {
        let of_faults = self.fault_buckets.lock().unwrap_or_else(PoisonError::into_inner).forgotten;
        of_faults + self.buckets().map_or(0, |buckets| buckets.forgotten)
    }

    /// Its conversations.
    pub fn conversations(&self) -> &Conversations {
        &self.conversations
    }

    /// How often each request was seen.
    pub(crate) fn attempts(&self) -> &Occurrences {
        &self.attempts
    }

    /// What was answered so far.
    pub fn counters(&self) -> &Counters {
        &self.counters
    }

    /// The rate limit's buckets, locked.
    pub fn buckets(&self) -> Option<MutexGuard<'_, Buckets>> {
        Some(self.buckets.as_ref()?.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// The object is closed: what a contract does not know of it must not be there.
fn information(profile: &Profile, contract: Contract) -> String {
    if contract.features.fees {
        return profile.information();
    }
    let mut profile = profile.clone();
    profile.rooftops.iter_mut().for_each(|rooftop| rooftop.fees = None);
    profile.information()
}

fn places(profile: &Profile) -> Vec<Place> {
    profile
        .rooftops
        .iter()
        .map(|rooftop| Place {
            name: rooftop.name.clone(),
            phone: rooftop.phone("sales").map(str::to_owned),
            timezone: rooftop.zone(),
            sales: week(rooftop, "sales").or_else(|| week(rooftop, "service")).unwrap_or(USUAL_HOURS),
            service: week(rooftop, "service").filter(|_| rooftop.can("service")),
        })
        .collect()
}

/// The hours of a department, in minutes after midnight.
fn week(rooftop: &Rooftop, department: &str) -> Option<diary::Week> {
    let minutes = |time: jiff::civil::Time| time.hour() as u16 * 60 + time.minute() as u16;
    let hours = rooftop.schedule(department)?.hours.0;
    Some(hours.map(|hours| hours.map(|hours| (minutes(hours.open), minutes(hours.close)))))
}

/// Hours of a rooftop that states none: nine to six, closed on Sundays.
const USUAL_HOURS: diary::Week = {
    let mut week = [Some((9 * 60, 18 * 60)); 7];
    week[6] = None;
    week
};
