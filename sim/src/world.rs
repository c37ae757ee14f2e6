//! What a process serves: its dealers, each at a site of its own with the dealer in force, the card and the rules of
//! faults, and how to make them anew on a reset.

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use arc_swap::ArcSwap;
use jiff::Timestamp;
use jiff::civil::Date;
use sha2::{Digest as _, Sha256};

use crate::dealer::clock::Now;
use crate::dealer::{Dealer, DealerSpec};
use crate::faults::{FaultDesk, Plan};
use crate::inventory::{GenerateError, Inventory, Profile, Spec};
use crate::journal::{self, Journal};
use crate::protocol::card::{CardFacts, agent_card};

/// Where the stock comes from.
#[derive(Debug, Clone)]
pub enum Stock {
    /// Drawn from the seed: this many vehicles.
    Generated(u32),
    /// The caller's own, kept over resets.
    Given(Arc<Inventory>),
}

/// What the dealer in force is made of.
#[derive(Debug, Clone)]
pub struct Blueprint {
    /// The dealer.
    pub spec: DealerSpec,
    /// Its group and rooftops.
    pub profile: Profile,
    /// Its stock.
    pub stock: Stock,
    /// The clock's day at the start; dates in the stock are offsets from it.
    pub day: Date,
    /// Threads that generation may use.
    pub threads: usize,
    /// What may go wrong.
    pub faults: FaultSpec,
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

/// The agent card as it is served.
#[derive(Debug)]
pub struct Card {
    /// The JSON text.
    pub body: Vec<u8>,
    /// A strong entity tag, with its quotes.
    pub etag: String,
    /// When it took force.
    pub issued: Timestamp,
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

/// The dealer in force and its card.
#[derive(Debug)]
pub struct Scene {
    /// The dealer.
    pub dealer: Dealer,
    /// Its card.
    pub card: Card,
}

/// All that a process serves.
#[derive(Debug)]
pub struct World {
    /// At least one.
    sites: Vec<Site>,
    /// The places of `sites`, by the dealer's id.
    by_id: HashMap<String, usize>,
    /// Counters of the listener; a reset leaves them.
    pub traffic: Traffic,
    /// What was asked, answered and delivered, of all dealers. Off until a server feeds it.
    pub journal: Arc<Journal>,
    /// Leads received since the start, by all dealers, whichever was in force.
    leads_in_all: Arc<AtomicU64>,
}

impl World {
    /// Makes the dealers. `issued` is the business time at the start.
    ///
    /// # Errors
    /// When the stock cannot be generated.
    pub fn new(blueprint: Blueprint, base_url: String, issued: Timestamp) -> Result<World, GenerateError> {
        let leads_in_all = Arc::<AtomicU64>::default();
        let sites = vec![Site::new(blueprint, base_url, issued, leads_in_all.clone())?];
        let by_id = sites.iter().enumerate().map(|(place, site)| (site.id().to_owned(), place)).collect();
        let journal = Journal::new(journal::Limits::OFF, 1);
        Ok(World { sites, by_id, traffic: Traffic::default(), journal, leads_in_all })
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

    /// Leads received since the process started.
    pub fn leads_in_all(&self) -> u64 {
        self.leads_in_all.load(Ordering::Relaxed)
    }
}

/// One dealer's place: all that is its own.
#[derive(Debug)]
pub struct Site {
    blueprint: Blueprint,
    base_url: String,
    scene: ArcSwap<Scene>,
    /// What may go wrong.
    pub faults: FaultDesk,
    leads_in_all: Arc<AtomicU64>,
}

impl Site {
    fn new(
        blueprint: Blueprint,
        base_url: String,
        issued: Timestamp,
        leads_in_all: Arc<AtomicU64>,
    ) -> Result<Site, GenerateError> {
        let stock = blueprint.make_stock()?;
        let FaultSpec { plan, magic, headers } = blueprint.faults.clone();
        let faults = FaultDesk::new(plan, magic, headers, 0);
        let scene = set_scene(&blueprint, &base_url, stock, issued, leads_in_all.clone());
        let scene = ArcSwap::from_pointee(scene);
        Ok(Site { blueprint, base_url, scene, faults, leads_in_all })
    }

    /// The dealer's id.
    pub fn id(&self) -> &str {
        &self.blueprint.profile.dealer_id
    }

    /// The dealer in force and its card.
    pub fn scene(&self) -> arc_swap::Guard<Arc<Scene>> {
        self.scene.load()
    }

    /// The base URL under which the dealer is reached.
    pub fn base_url(&self) -> &str {
        &self.base_url
    }

    /// Goes back to the start: leads, conversations, diary and counters are empty again, the stock is that of the seed.
    ///
    /// # Errors
    /// When the stock of another seed cannot be generated; the dealer in force then stays.
    pub fn reset(&self, seed: Option<u64>, now: Now) -> Result<u64, GenerateError> {
        let before = self.scene.load_full();
        let mut blueprint = self.blueprint.clone();
        blueprint.spec.seed = seed.unwrap_or(before.dealer.spec().seed);
        let stock = if blueprint.spec.seed == before.dealer.spec().seed {
            before.dealer.stock().clone()
        } else {
            blueprint.make_stock()?
        };
        let scene = set_scene(&blueprint, &self.base_url, stock, now.business, self.leads_in_all.clone());
        self.faults.engine.reset(now.traffic_ns);
        self.scene.store(Arc::new(scene));
        Ok(blueprint.spec.seed)
    }
}

impl Blueprint {
    /// The stock: generated, or the caller's own.
    ///
    /// # Errors
    /// When it cannot be generated.
    pub fn make_stock(&self) -> Result<Arc<Inventory>, GenerateError> {
        match &self.stock {
            Stock::Given(inventory) => Ok(inventory.clone()),
            Stock::Generated(vehicles) => {
                let spec = Spec {
                    vehicles: *vehicles,
                    threads: self.threads,
                    ..Spec::new(self.spec.seed, self.day)
                };
                Inventory::generate(&spec, &self.profile).map(Arc::new)
            }
        }
    }
}

fn set_scene(
    blueprint: &Blueprint,
    base_url: &str,
    stock: Arc<Inventory>,
    issued: Timestamp,
    leads_in_all: Arc<AtomicU64>,
) -> Scene {
    let (spec, profile) = (blueprint.spec.clone(), blueprint.profile.clone());
    let dealer = Dealer::open(spec, profile, stock, blueprint.day, leads_in_all);
    let card = publish(&dealer, base_url, issued);
    Scene { dealer, card }
}

/// The card and its entity tag. Its version id is derived from what it says, so that it changes when the card does.
fn publish(dealer: &Dealer, base_url: &str, issued: Timestamp) -> Card {
    let spec = dealer.spec();
    let mut facts = CardFacts {
        contract: spec.contract,
        base_url,
        dealer_name: dealer.name(),
        skills: &spec.skills,
        page_cap: spec.page_cap,
        fingerprint: [0; 16],
        issued_at_ms: u64::try_from(issued.as_millisecond()).unwrap_or(0),
    };
    let digest = |facts: &CardFacts<'_>| Sha256::digest(agent_card(facts).to_string().as_bytes());
    let said = digest(&facts);
    facts.fingerprint.copy_from_slice(&said[..16]);
    let body = agent_card(&facts).to_string().into_bytes();
    let mut etag = String::from("\"");
    for byte in &Sha256::digest(&body)[..12] {
        etag.push_str(&format!("{byte:02x}"));
    }
    etag.push('"');
    Card { body, etag, issued }
}
