//! The library's face: a dealer in two lines, for tests of buyer agents.

use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use hyper::HeaderMap;
use jiff::tz::TimeZone;

use crate::auth::Auth;
use crate::conduct;
use crate::dealer::DealerSpec;
use crate::dealer::clock::{ClockMode, Move, Now};
use crate::dealer::limiter::RateLimit;
use crate::dealer::lot::EditError;
use crate::dispatch::{Entrance, Fields, Reply, Request, Scratch, dispatch};
use crate::faults::Plan;
use crate::inventory::{Inventory, Profile};
use crate::journal::{self, Journal};
use crate::protocol::discovery::Amendments;
use crate::protocol::{Bindings, Contract, HeaderMode, Skill, card};
use crate::server::leads_file::LeadsFile;
use crate::server::limits::Limits;
use crate::server::tls::TlsOptions;
use crate::server::{Server, ServerOptions, StartError, Stopped, business_time};
use crate::world::{Blueprint, FaultSpec, MoveClockError, Site, Stock, World};

/// A dealer without sockets: [`Dealer::dispatch`] does no I/O.
///
/// ```
/// use dealer_sim::{Dealer, protocol::Contract};
/// let dealer = Dealer::builder().seed(7).vehicles(40).contract(Contract::V3_0).build()?;
/// let body = br#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER",
///   "parts":[{"data":{"type":"dealer.information.request"},
///             "mediaType":"application/vnd.autoagent.dealer-information-request+json"}]}}}"#;
/// let reply = dealer.dispatch_body(body);
/// assert!(String::from_utf8(reply)?.contains("dealer.information.response"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Dealer {
    world: World,
}

/// Settings of a [`Dealer`]; the defaults are those of `dealer-sim serve`.
#[derive(Debug, Clone)]
pub struct DealerBuilder {
    spec: DealerSpec,
    headers: Option<HeaderMode>,
    doors: Option<Bindings>,
    amendments: Arc<Amendments>,
    dealers: u16,
    profile: Option<Profile>,
    stock: Stock,
    threads: usize,
    limits: Limits,
    faults: FaultSpec,
    journal: journal::Limits,
    tls: Option<TlsOptions>,
    auth: Auth,
    leads: Option<LeadsFile>,
    redact: bool,
}

impl Dealer {
    /// A dealer with 500 vehicles of seed 42 under contract 3.0, unless told otherwise.
    pub fn builder() -> DealerBuilder {
        DealerBuilder {
            spec: DealerSpec::default(),
            headers: None,
            doors: None,
            amendments: Arc::default(),
            dealers: 1,
            profile: None,
            stock: Stock::Generated(500),
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            limits: Limits::default(),
            faults: FaultSpec::default(),
            journal: journal::Limits::default(),
            tls: None,
            auth: Auth::default(),
            leads: None,
            redact: false,
        }
    }

    /// Answers one HTTP request, appending the reply's body to `out`.
    pub fn dispatch(
        &self,
        scratch: &mut Scratch,
        request: &Request<'_>,
        now: Now,
        out: &mut Vec<u8>,
    ) -> Reply {
        dispatch(&self.world.first().scene().dealer, scratch, request, now, out)
    }

    /// Answers one body of A2A that came without header fields, at the start of 2026; the short form of [`Dealer::dispatch`].
    pub fn dispatch_body(&self, body: &[u8]) -> Vec<u8> {
        let site = self.world.first();
        let business = site.scene().dealer.spec().clock.business(START_OF_2026);
        let mut out = Vec::new();
        let head = HeaderMap::new();
        let contract = site.scene().dealer.spec().contract;
        let fields = Fields::read(Ipv4Addr::LOCALHOST.into(), &head, Some(contract));
        let request = Request {
            entrance: Entrance::A2a,
            fields,
            head: &head,
            body,
            nonce: 0,
            faults: Some(&site.faults),
            in_flight: 1,
        };
        let now = site.now(Now { business, traffic_ns: 0 });
        self.dispatch(&mut Scratch::default(), &request, now, &mut out);
        out
    }

    /// What is served.
    pub fn world(&self) -> &World {
        &self.world
    }
}

/// 2026-01-01T00:00:00Z.
const START_OF_2026: jiff::Timestamp = jiff::Timestamp::constant(1_767_225_600, 0);

impl DealerBuilder {
    /// The seed of everything that is drawn.
    #[must_use]
    pub fn seed(mut self, seed: u64) -> Self {
        self.spec.seed = seed;
        self
    }

    /// How many dealers there are (1 to [`MOST_DEALERS`](crate::world::MOST_DEALERS)), each with a card, stock, limits and faults of its own.
    #[must_use]
    pub fn dealers(mut self, dealers: u16) -> Self {
        self.dealers = dealers;
        self
    }

    /// How many vehicles each dealer knows.
    #[must_use]
    pub fn vehicles(mut self, vehicles: u32) -> Self {
        self.stock = Stock::Generated(vehicles);
        self
    }

    /// A stock of the caller's own.
    #[must_use]
    pub fn inventory(mut self, inventory: Inventory) -> Self {
        self.stock = Stock::Given(Arc::new(inventory));
        self
    }

    /// The contract served.
    #[must_use]
    pub fn contract(mut self, contract: Contract) -> Self {
        self.spec.contract = contract;
        self
    }

    /// What happens to requests without the A2A headers; the contract's usual mode unless set.
    #[must_use]
    pub fn headers(mut self, headers: HeaderMode) -> Self {
        self.headers = Some(headers);
        self
    }

    /// The interfaces served; those that the contract has unless set.
    #[must_use]
    pub fn doors(mut self, doors: Bindings) -> Self {
        self.doors = Some(doors);
        self
    }

    /// What the published documents say otherwise than they would.
    #[must_use]
    pub fn amendments(mut self, amendments: Amendments) -> Self {
        self.amendments = Arc::new(amendments);
        self
    }

    /// The skills offered.
    #[must_use]
    pub fn skills(mut self, skills: &[Skill]) -> Self {
        self.spec.skills = skills.to_vec();
        self
    }

    /// How the business clock runs.
    #[must_use]
    pub fn clock(mut self, clock: ClockMode) -> Self {
        self.spec.clock = clock;
        self
    }

    /// How often callers may call.
    #[must_use]
    pub fn rate_limit(mut self, limit: RateLimit) -> Self {
        self.spec.rate_limit = Some(limit);
        self
    }

    /// The group and its rooftops; the built-in one unless set.
    #[must_use]
    pub fn profile(mut self, profile: Profile) -> Self {
        self.profile = Some(profile);
        self
    }

    /// Worker threads of a server.
    #[must_use]
    pub fn threads(mut self, threads: usize) -> Self {
        self.threads = threads.max(1);
        self
    }

    /// A plan of faults, in force from the start.
    #[must_use]
    pub fn faults(mut self, plan: Plan) -> Self {
        self.faults.plan = plan;
        self
    }

    /// Limits of a server.
    #[must_use]
    pub fn limits(mut self, limits: Limits) -> Self {
        self.limits = limits;
        self
    }

    /// What the journal of a server keeps; [`journal::Limits::OFF`] switches it off.
    #[must_use]
    pub fn journal(mut self, journal: journal::Limits) -> Self {
        self.journal = journal;
        self
    }

    /// Has a server speak TLS; [`RunningDealer::certificate`] is the certificate if it is made at the start.
    #[must_use]
    pub fn tls(mut self, tls: TlsOptions) -> Self {
        self.tls = Some(tls);
        self
    }

    /// Has a server ask for credentials; the card declares which.
    #[must_use]
    pub fn auth(mut self, auth: Auth) -> Self {
        self.spec.auth = auth.schemes();
        self.auth = auth;
        self
    }

    /// A file that a server appends every lead to before it is acknowledged, and whose leads it knows at its start.
    #[must_use]
    pub fn leads(mut self, file: LeadsFile) -> Self {
        self.leads = Some(file);
        self
    }

    /// Takes the people in what is asked out of a server's journal and out of what its admin endpoint shows of leads.
    #[must_use]
    pub fn redact(mut self, redact: bool) -> Self {
        self.redact = redact;
        self
    }

    fn blueprint(self) -> Result<(Blueprint, jiff::Timestamp), BuildError> {
        let mut spec = self.spec;
        spec.headers = self.headers.unwrap_or(spec.contract.default_headers);
        spec.doors = self.doors.unwrap_or(spec.contract.bindings);
        spec.page_cap = self.limits.page_cap;
        let profile = match self.profile {
            Some(profile) => profile,
            None => Profile::built_in()?,
        };
        let issued = business_time(spec.clock);
        let day = issued.to_zoned_datetime(TimeZone::UTC).date();
        Ok((
            Blueprint {
                spec,
                dealers: self.dealers,
                profile,
                stock: self.stock,
                day,
                threads: self.threads,
                faults: self.faults,
                amendments: self.amendments,
                ledger: None,
            },
            issued,
        ))
    }

    /// Makes the dealer, without sockets.
    ///
    /// # Errors
    /// When the stock cannot be generated.
    pub fn build(self) -> Result<Dealer, BuildError> {
        let (blueprint, issued) = self.blueprint()?;
        Ok(Dealer { world: World::new(blueprint, "http://127.0.0.1".to_owned(), issued)? })
    }

    /// Makes the dealer and serves it on free loopback ports.
    ///
    /// # Errors
    /// When the stock cannot be generated or a port cannot be had.
    pub async fn start(self) -> Result<RunningDealer, BuildError> {
        let loopback = SocketAddr::from((Ipv4Addr::LOCALHOST, 0));
        let options = ServerOptions {
            listen: loopback,
            admin: Some(loopback),
            public_url: None,
            tls: self.tls.clone(),
            auth: self.auth.clone(),
            admin_token: None,
            origins: Vec::new(),
            threads: self.threads,
            limits: self.limits.clone(),
            journal: self.journal,
            leads: self.leads.clone(),
            redact: self.redact,
        };
        self.serve(options)
    }

    /// Makes the dealer and serves it as told.
    ///
    /// # Errors
    /// When the stock cannot be generated or a port cannot be had.
    pub fn serve(self, options: ServerOptions) -> Result<RunningDealer, BuildError> {
        let (blueprint, _) = self.blueprint()?;
        Ok(RunningDealer { server: Server::start(blueprint, options)? })
    }
}

/// Why a dealer could not be made.
#[derive(Debug, thiserror::Error)]
pub enum BuildError {
    /// The built-in profile or stock is at fault.
    #[error(transparent)]
    Profile(#[from] crate::inventory::ProfileError),
    /// The dealers cannot be made.
    #[error(transparent)]
    World(#[from] crate::world::WorldError),
    /// The server did not start.
    #[error(transparent)]
    Start(#[from] StartError),
}

/// A dealer that is served until it is dropped.
#[derive(Debug)]
pub struct RunningDealer {
    server: Server,
}

impl RunningDealer {
    /// The JSON-RPC endpoint.
    pub fn url(&self) -> String {
        self.server.url()
    }

    /// The ids of the dealers, the first one's first.
    pub fn dealers(&self) -> impl Iterator<Item = &str> {
        self.world().sites().iter().map(Site::id)
    }

    /// The JSON-RPC endpoint of a dealer, if there is one of this id.
    pub fn url_of(&self, dealer_id: &str) -> Option<String> {
        Some(format!("{}/a2a", self.world().site(dealer_id)?.base_url()))
    }

    /// The agent card's URL of a dealer, if there is one of this id.
    pub fn card_url_of(&self, dealer_id: &str) -> Option<String> {
        Some(format!("{}{}", self.world().site(dealer_id)?.base_url(), card::PATH))
    }

    /// The dealer's base URL, under which the agent card is found.
    pub fn base_url(&self) -> &str {
        self.server.base_url()
    }

    /// The agent card's URL.
    pub fn card_url(&self) -> String {
        self.server.card_url()
    }

    /// The admin endpoint's base URL.
    pub fn admin_url(&self) -> Option<String> {
        self.server.admin_url()
    }

    /// The certificate that was made at the start, as PEM, if one was: what clients are to believe.
    pub fn certificate(&self) -> Option<&str> {
        self.server.certificate()
    }

    /// What was asked, answered and delivered. A client that has its whole answer finds its entry here.
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use dealer_sim::Dealer;
    /// use dealer_sim::journal::{Filter, Finding, Query};
    /// let dealer = Dealer::builder().vehicles(40).start().await?;
    /// // ... let the agent shop at dealer.url() ...
    /// let no_lead = Query::parse(br#"{"match": {"skill": "lead.submit"}, "count": 0}"#)?;
    /// let verdict = dealer.journal().verify(&no_lead);
    /// assert_eq!(verdict.verdict, Finding::Pass, "{}", verdict.reason);
    /// assert!(dealer.journal().query(&Filter::default()).entries.is_empty());
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn journal(&self) -> &Journal {
        &self.server.world().journal
    }

    /// Whether those who called kept the protocol, rule by rule and with evidence from the journal. Of what the journal
    /// dropped nothing is claimed: such rules are unknown; those about listings want whole replies
    /// ([`journal::Limits::reply_bytes`]). A test of several stages names them with [`World::conduct`].
    ///
    /// ```
    /// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
    /// use dealer_sim::{Dealer, conduct::Severity, journal::Limits};
    /// let journal = Limits { reply_bytes: 64 << 10, ..Limits::default() };
    /// let dealer = Dealer::builder().vehicles(40).journal(journal).start().await?;
    /// // ... let the agent shop at dealer.url() ...
    /// let report = dealer.conduct();
    /// assert!(!report.breaks(Severity::Warning), "{report}");
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// # })?;
    /// # Ok::<(), Box<dyn std::error::Error>>(())
    /// ```
    pub fn conduct(&self) -> conduct::Report {
        let world = self.world();
        world.conduct.report_on_all(&world.journal)
    }

    /// What is served.
    pub fn world(&self) -> &World {
        self.server.world()
    }

    /// Moves the business clocks of all dealers forward by so much, and the market with it: keys of idempotency and consents end, appointments
    /// pass, vehicles are sold. Answers the first dealer's new time.
    ///
    /// # Errors
    /// When the clock would leave the years in which there are vehicles.
    pub fn advance_clock(&self, by: std::time::Duration) -> Result<jiff::Timestamp, MoveClockError> {
        let by = jiff::SignedDuration::try_from(by).unwrap_or(jiff::SignedDuration::MAX);
        let now = self.server.now();
        Site::move_clocks(self.world().sites(), now, Move::Advance(by))?;
        Ok(self.world().first().now(now).business)
    }

    /// Changes the vehicle of a VIN, such as `{"status":"sold"}` or `{"price":24990}`; a member that is null is removed.
    ///
    /// # Errors
    /// When there is no such vehicle, or with everything that is wrong with the change.
    pub fn edit_vehicle(&self, vin: &str, patch: &serde_json::Value) -> Result<(), EditError> {
        let site = Site::that_knows(self.world().sites(), vin).ok_or(EditError::Unknown)?;
        let now = site.now(self.server.now()).business;
        site.scene().dealer.lot().patch(vin, &patch.to_string(), now).map(drop)
    }

    /// Lets requests in flight finish, and stops.
    pub fn stop(self) -> Stopped {
        self.server.stop()
    }
}
