//! What a process serves: its dealers, each at a site of its own with the dealer in force, the card and the rules of
//! faults, and how to make them anew on a reset.

mod papers;

use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::ArcSwap;
use jiff::Timestamp;
use jiff::civil::Date;

use papers::Place;
pub(crate) use papers::entity_tag;
pub use papers::{Document, Papers};

use crate::conduct::ConductDesk;
use crate::dealer::clock::{Clock, Move, MoveError, Now};
use crate::dealer::{Dealer, DealerSpec};
use crate::faults::{FaultDesk, Plan};
use crate::inventory::{GenerateError, Inventory, Lookup, Profile, Spec};
use crate::journal::{self, Journal};
use crate::ledger::{Entry, Ledger, Record};
use crate::protocol::discovery::{Amendments, Paper};
use crate::protocol::{Bindings, Contract};
use crate::share::Share;
use crate::spread::spread;

/// Dealers of one process at most. Each has VINs of its own, see [`crate::inventory::vin::DEALERS`].
pub const MOST_DEALERS: u16 = 1000;

/// Where the stock comes from.
#[derive(Debug, Clone)]
pub enum Stock {
    /// Drawn from the seed: this many vehicles for each dealer.
    Generated(u32),
    /// The caller's own, kept over resets; for one dealer only, since VINs are unique.
    Given(Arc<Inventory>),
}

/// What the dealers in force are made of.
#[derive(Debug, Clone)]
pub struct Blueprint {
    /// What each dealer is.
    pub spec: DealerSpec,
    /// How many dealers: 1 to [`MOST_DEALERS`].
    pub dealers: u16,
    /// The first one's group and rooftops; the others' are made from it ([`Profile::sibling`]).
    pub profile: Profile,
    /// Each one's stock.
    pub stock: Stock,
    /// The clock's day at the start; dates in the stock are offsets from it.
    pub day: Date,
    /// Threads that generation may use.
    pub threads: usize,
    /// What may go wrong.
    pub faults: FaultSpec,
    /// What the published documents say otherwise than they would.
    pub amendments: Arc<Amendments>,
    /// Where leads are written down, if they are.
    pub ledger: Option<Arc<Ledger>>,
}

/// What may go wrong, and how it may be asked for.
#[derive(Debug, Clone)]
pub struct FaultSpec {
    /// The plan in force at the start.
    pub plan: Plan,
    /// Whether magic values ask for faults.
    pub magic: bool,
    /// Whether header fields ask for faults and tell of them.
    pub headers: bool,
}

impl Default for FaultSpec {
    fn default() -> FaultSpec {
        FaultSpec { plan: Plan::default(), magic: true, headers: true }
    }
}

/// Counters of the listener.
#[derive(Debug, Default)]
pub struct Traffic {
    /// Connections accepted.
    pub connections: AtomicU64,
    /// Connections open now.
    pub open: AtomicU64,
    /// Connections closed at once because too many were open.
    pub turned_away: AtomicU64,
    /// Connections closed at once because too many of their client address were open.
    pub turned_away_client: AtomicU64,
    /// TLS handshakes that failed or took too long.
    pub tls_failures: AtomicU64,
    /// HTTP/2 connections ended since they flooded: frames that carry no request, or requests given up.
    pub http2_floods: AtomicU64,
    /// HTTP/2 connections ended since nobody took the replies.
    pub http2_stalled: AtomicU64,
    /// Bytes of large replies that are not delivered yet.
    pub reply_bytes_waiting: AtomicU64,
    /// Large replies refused since too many of their kind waited.
    pub replies_refused: AtomicU64,
    /// Requests refused for want of credentials.
    pub unauthorized: AtomicU64,
    /// Requests to the admin endpoint refused: another origin, an unknown host name, no token.
    pub admin_refused: AtomicU64,
    /// Requests being answered now.
    pub in_flight: AtomicU64,
    /// HTTP requests answered by the dealer's listener.
    pub requests: AtomicU64,
    /// HTTP requests refused for the size of their body.
    pub too_large: AtomicU64,
    /// HTTP requests given up for the slowness of their body.
    pub too_slow: AtomicU64,
    /// Handlers that panicked.
    pub panics: AtomicU64,
}

/// Why a dealer's clock was not moved.
#[derive(Debug, thiserror::Error)]
pub enum MoveClockError {
    /// The move is none that a clock makes.
    #[error(transparent)]
    Move(#[from] MoveError),
    /// What comes in with the days cannot be generated.
    #[error(transparent)]
    Stock(#[from] GenerateError),
}

/// The dealer in force and its card.
#[derive(Debug)]
pub struct Scene {
    /// The dealer.
    pub dealer: Dealer,
    /// What it publishes, with the URLs below `/d/<dealer_id>`.
    pub papers: Papers,
    /// Where the dealer answers at the root, too, what it publishes there.
    pub root_papers: Option<Papers>,
}

/// Why there are no dealers.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WorldError {
    /// Too many of them, or none.
    #[error("{0} dealers cannot be served: 1 to {MOST_DEALERS}")]
    Dealers(u16),
    /// A stock of the caller's own, and several dealers.
    #[error(
        "a stock of your own is one dealer's, and its VINs cannot be sold twice; leave it out or serve one dealer"
    )]
    SharedStock,
    /// A contract that knows nothing of some of the doors.
    #[error("contract {0} is reached through {1} alone; leave the other doors out")]
    Doors(Contract, Bindings),
    /// The stock cannot be made.
    #[error(transparent)]
    Stock(#[from] GenerateError),
}

/// All that a process serves.
#[derive(Debug)]
pub struct World {
    /// At least one.
    sites: Vec<Site>,
    /// The places of `sites`, by the dealer's id.
    by_id: HashMap<String, usize>,
    base_url: String,
    /// Counters of the listener; a reset leaves them.
    pub traffic: Traffic,
    /// What was asked, answered and delivered, of all dealers. Off until a server feeds it.
    pub journal: Arc<Journal>,
    /// The conduct of those who call.
    pub conduct: ConductDesk,
    /// Leads received since the start, by all dealers, whichever was in force.
    leads_in_all: Arc<AtomicU64>,
    /// Where leads are written down, if they are.
    pub ledger: Option<Arc<Ledger>>,
    /// Leads known from before the start, of all dealers.
    recovered: AtomicU64,
    /// Held while a vehicle is added: VINs are unique over all dealers.
    adding: Mutex<()>,
}

/// Where a request came in.
#[derive(Debug, Clone, Copy)]
pub struct Door<'w> {
    /// Whom it is for.
    pub site: &'w Site,
    /// Whether it came to the root, rather than to `/d/<dealer_id>`.
    pub at_root: bool,
}

impl World {
    /// Makes the dealers. `issued` is the business time at the start.
    ///
    /// # Errors
    /// [`WorldError`].
    pub fn new(mut blueprint: Blueprint, base_url: String, issued: Timestamp) -> Result<World, WorldError> {
        let dealers = blueprint.dealers;
        if !(1..=MOST_DEALERS).contains(&dealers) {
            return Err(WorldError::Dealers(dealers));
        }
        if dealers > 1 && matches!(blueprint.stock, Stock::Given(_)) {
            return Err(WorldError::SharedStock);
        }
        let contract = blueprint.spec.contract;
        if blueprint.spec.doors.or(contract.bindings) != contract.bindings {
            return Err(WorldError::Doors(contract, contract.bindings));
        }
        let leads_in_all = Arc::<AtomicU64>::default();
        blueprint.spec.share = Share::among(dealers);
        let ledger = blueprint.ledger.clone();
        let blueprint = Arc::new(blueprint);
        let sites = spread(usize::from(dealers), blueprint.threads, |number| {
            Site::new(blueprint.clone(), number as u16, &base_url, issued, leads_in_all.clone())
        })?;
        let by_id = sites.iter().enumerate().map(|(place, site)| (site.id().to_owned(), place)).collect();
        let journal = Journal::new(journal::Limits::OFF, 1);
        let traffic = Traffic::default();
        let (conduct, adding) = (ConductDesk::default(), Mutex::default());
        let recovered = AtomicU64::new(0);
        Ok(World {
            sites,
            by_id,
            base_url,
            traffic,
            journal,
            conduct,
            leads_in_all,
            ledger,
            recovered,
            adding,
        })
    }

    /// The first dealer's site, which answers at the root.
    pub fn first(&self) -> &Site {
        &self.sites[0]
    }

    /// All sites.
    pub fn sites(&self) -> &[Site] {
        &self.sites
    }

    /// The site of a dealer.
    pub fn site(&self, dealer_id: &str) -> Option<&Site> {
        self.by_id.get(dealer_id).map(|&place| &self.sites[place])
    }

    /// The base URL under which the process is reached.
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// Adds a vehicle at a site by `add`, unless another dealer knows its VIN: then the other's id is given back.
    pub(crate) fn add_at<T>(
        &self,
        site: &Site,
        vin: Option<&str>,
        add: impl FnOnce() -> T,
    ) -> Result<T, &str> {
        let _adding = self.adding.lock().unwrap_or_else(PoisonError::into_inner);
        let known_at = vin.and_then(|vin| Site::that_knows(&self.sites, vin));
        match known_at.filter(|other| other.id() != site.id()) {
            Some(other) => Err(other.id()),
            None => Ok(add()),
        }
    }

    /// Whom a path is for, and what it is for them; nothing where it names a dealer that does not exist.
    pub fn enter<'p>(&self, path: &'p str) -> Option<(Door<'_>, &'p str)> {
        match split_path(path) {
            None => Some((Door { site: self.first(), at_root: true }, path)),
            Some((dealer_id, rest)) => Some((Door { site: self.site(dealer_id)?, at_root: false }, rest)),
        }
    }

    /// Leads received since the process started.
    pub fn leads_in_all(&self) -> u64 {
        self.leads_in_all.load(Ordering::Relaxed).saturating_sub(self.recovered.load(Ordering::Relaxed))
    }

    /// Has a dealer know again what was recorded before the start; whether there is such a dealer.
    pub fn recover(&self, record: &Record<'_>) -> bool {
        let Some(site) = self.site(&record.dealer) else { return false };
        site.scene().dealer.recover(&record.entry);
        // All were counted when they were stored, those of before a reset, too.
        self.recovered.store(self.leads_in_all.load(Ordering::Relaxed), Ordering::Relaxed);
        true
    }

    /// Leads known from before the start and not forgotten by a reset since.
    pub fn recovered(&self) -> u64 {
        self.sites.iter().map(|site| site.scene().dealer.recovered()).sum()
    }
}

/// Splits `/d/<dealer_id>/rest` into the id and `/rest`; nothing where a path is not below `/d/`.
pub(crate) fn split_path(path: &str) -> Option<(&str, &str)> {
    let below = path.strip_prefix("/d/")?;
    let end = below.find('/').unwrap_or(below.len());
    let (dealer_id, rest) = below.split_at(end);
    Some((dealer_id, if rest.is_empty() { "/" } else { rest }))
}

impl<'w> Door<'w> {
    /// The base URL under which the dealer is reached here.
    pub fn base_url(self) -> &'w str {
        let Plot { base_url, root_url, .. } = &self.site.plot;
        root_url.as_ref().filter(|_| self.at_root).unwrap_or(base_url)
    }

    /// The path below which the dealer is reached here, without the host.
    pub fn path(self) -> String {
        if self.at_root { String::new() } else { format!("/d/{}", self.site.id()) }
    }

    /// What is published here.
    pub fn papers(self, scene: &Scene) -> &Papers {
        scene.root_papers.as_ref().filter(|_| self.at_root).unwrap_or(&scene.papers)
    }

    /// A document that is published here, if it is one of this dealer's.
    pub fn document(self, scene: &Scene, paper: Paper) -> Option<&Document> {
        self.papers(scene).get(paper, &scene.dealer)
    }
}

/// One dealer's place: all that is its own.
#[derive(Debug)]
pub struct Site {
    plot: Plot,
    scene: ArcSwap<Scene>,
    clock: Clock,
    /// Held while the clock is moved or the dealer begins anew.
    turning: Mutex<()>,
    /// What may go wrong.
    pub faults: FaultDesk,
}

impl Site {
    /// Makes dealer `number` of a blueprint, counted from 0. `root` is the process's base URL.
    pub(crate) fn new(
        blueprint: Arc<Blueprint>,
        number: u16,
        root: &str,
        issued: Timestamp,
        leads_in_all: Arc<AtomicU64>,
    ) -> Result<Site, GenerateError> {
        let DealerSpec { seed, share, .. } = blueprint.spec;
        let FaultSpec { plan, magic, headers } = blueprint.faults.clone();
        let plot = Plot::new(blueprint, number, root, leads_in_all);
        let scene = plot.open(seed, plot.make_stock(seed)?, issued);
        let faults = FaultDesk::new(plan, magic, headers, share, 0);
        let clock = Clock::new(plot.blueprint.spec.clock);
        Ok(Site { plot, scene: ArcSwap::from_pointee(scene), clock, turning: Mutex::new(()), faults })
    }

    /// The dealer's business clock.
    pub fn clock(&self) -> &Clock {
        &self.clock
    }

    /// The dealer's time, when `now` is that of clocks that were never moved.
    pub fn now(&self, now: Now) -> Now {
        self.clock.read(now)
    }

    /// Moves the business clocks of dealers forward, and the market with them. `now` is that of clocks that were never moved.
    /// Takes some time where the stock is large: not for a thread that serves.
    ///
    /// # Errors
    /// [`MoveClockError`]; the clocks then stay, all of them.
    pub fn move_clocks(sites: &[Site], now: Now, to: Move) -> Result<(), MoveClockError> {
        let _turning = turning(sites);
        let targets: Vec<Timestamp> =
            sites.iter().map(|site| site.clock.target(now, to)).collect::<Result<_, _>>()?;
        let threads = sites.first().map_or(1, |site| site.plot.blueprint.threads);
        spread(sites.len(), threads, |place| sites[place].scene.load().dealer.catch_up(targets[place]))?;
        for (site, target) in sites.iter().zip(targets) {
            site.clock.put(now, target);
        }
        Ok(())
    }

    /// Whether a business day has ended that the stock does not know of. `now` is that of clocks that were never moved.
    pub fn is_due(&self, now: Now) -> bool {
        self.scene.load().dealer.lot().is_due(self.now(now).business)
    }

    /// The dealer that knows a VIN; VINs made from a seed are unique over all.
    pub fn that_knows<'s>(sites: &'s [Site], vin: &str) -> Option<&'s Site> {
        let knows = |site: &&Site| {
            site.scene.load().dealer.inventory().find(Some(vin), None, None) != Lookup::Unknown
        };
        sites.iter().find(knows)
    }

    /// Has the market move on to the clock's day.
    ///
    /// # Errors
    /// When what comes in cannot be generated; the stock then stays.
    pub fn catch_up(&self, now: Now) -> Result<(), GenerateError> {
        let _turning = self.turning.lock().unwrap_or_else(PoisonError::into_inner);
        self.scene.load().dealer.catch_up(self.now(now).business)
    }

    /// The dealer's id.
    pub fn id(&self) -> &str {
        &self.plot.id
    }

    /// The dealer in force and its card.
    pub fn scene(&self) -> arc_swap::Guard<Arc<Scene>> {
        self.scene.load()
    }

    /// The base URL below `/d/<dealer_id>`, under which every dealer is reached.
    pub fn base_url(&self) -> &str {
        &self.plot.base_url
    }

    /// Has dealers go back to the start: leads, conversations, diary and counters are empty again, the stock is that of the
    /// seed, of the one in force unless another is given, and their clocks were never moved. `now` is that of such a clock. Where leads
    /// are written down, the reset is, too: what was recorded before it is not known again after a restart.
    ///
    /// # Errors
    /// When the stock of another seed cannot be generated; the dealers in force then stay, all of them.
    pub fn reset(sites: &[Site], seed: Option<u64>, now: Now) -> Result<(), GenerateError> {
        let _turning = turning(sites);
        let threads = sites.first().map_or(1, |site| site.plot.blueprint.threads);
        let made = spread(sites.len(), threads, |place| {
            let Site { plot, scene, .. } = &sites[place];
            let before = &scene.load().dealer;
            let seed = seed.unwrap_or(before.spec().seed);
            let stock = match seed == before.spec().seed {
                true => before.lot().start().clone(),
                false => plot.make_stock(seed)?,
            };
            let scene = plot.open(seed, stock, now.business);
            // A real clock may have seen days pass since the start.
            scene.dealer.catch_up(now.business)?;
            Ok::<_, GenerateError>(scene)
        })?;
        for (site, scene) in sites.iter().zip(made) {
            site.faults.engine.reset(now.traffic_ns);
            // Before anybody can leave a lead that belongs to the time after it.
            if let Some(ledger) = &site.plot.blueprint.ledger {
                ledger.enter(&site.plot.id, &Entry::Reset);
            }
            site.scene.store(Arc::new(scene));
            site.clock.put(now, now.business);
        }
        Ok(())
    }
}

/// Keeps clocks from being moved and dealers from beginning anew, in one order for all who want several.
fn turning(sites: &[Site]) -> Vec<MutexGuard<'_, ()>> {
    sites.iter().map(|site| site.turning.lock().unwrap_or_else(PoisonError::into_inner)).collect()
}

/// What of a site stays over resets.
#[derive(Debug)]
struct Plot {
    blueprint: Arc<Blueprint>,
    /// Among all dealers, from 0 on.
    number: u16,
    id: String,
    /// Below `/d/<dealer_id>`.
    base_url: String,
    /// Where it answers at the root, too.
    root_url: Option<String>,
    /// The process's base URL.
    root: String,
    leads_in_all: Arc<AtomicU64>,
}

impl Plot {
    fn new(blueprint: Arc<Blueprint>, number: u16, root: &str, leads_in_all: Arc<AtomicU64>) -> Plot {
        let id = blueprint.profile.sibling_id(number);
        let root_url = (number == 0).then(|| root.to_owned());
        let (base_url, root) = (format!("{root}/d/{id}"), root.to_owned());
        Plot { base_url, root_url, root, blueprint, number, id, leads_in_all }
    }

    fn make_stock(&self, seed: u64) -> Result<Arc<Inventory>, GenerateError> {
        self.blueprint.make_stock(self.number, seed)
    }

    fn open(&self, seed: u64, stock: Arc<Inventory>, issued: Timestamp) -> Scene {
        let Blueprint { spec, profile, day, .. } = &*self.blueprint;
        let spec = DealerSpec { seed, ..spec.clone() };
        let profile = profile.sibling(self.number);
        let (leads_in_all, ledger) = (self.leads_in_all.clone(), self.blueprint.ledger.clone());
        let dealer = Dealer::open(spec, profile, stock, *day, leads_in_all, ledger);
        let publish = |base_url: &str| {
            let Blueprint { dealers, amendments, .. } = &*self.blueprint;
            let place = Place { base_url: base_url.to_owned(), root: self.root.clone(), dealers: *dealers };
            Papers::publish(place, amendments.clone(), &dealer, issued)
        };
        let papers = publish(&self.base_url);
        let root_papers = self.root_url.as_deref().map(publish);
        Scene { dealer, papers, root_papers }
    }
}

impl Blueprint {
    /// The stock of dealer `number` under a seed: generated, or the caller's own.
    ///
    /// # Errors
    /// When it cannot be generated.
    pub fn make_stock(&self, number: u16, seed: u64) -> Result<Arc<Inventory>, GenerateError> {
        match &self.stock {
            Stock::Given(inventory) => Ok(inventory.clone()),
            Stock::Generated(vehicles) => {
                // Where there are several dealers, each thread makes whole ones.
                let threads = if self.dealers > 1 { 1 } else { self.threads };
                let spec = Spec { vehicles: *vehicles, dealer: number, threads, ..Spec::new(seed, self.day) };
                Inventory::generate(&spec, &self.profile.sibling(number)).map(Arc::new)
            }
        }
    }

    /// The number of a dealer, of all those that a process may have.
    pub fn number_of(&self, dealer_id: &str) -> Option<u16> {
        (0..MOST_DEALERS).find(|&number| self.profile.sibling_id(number) == dealer_id)
    }
}
