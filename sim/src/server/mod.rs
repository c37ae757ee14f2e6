//! The rim: sockets, clocks and threads. One thread accepts; each worker thread has a current-thread runtime of its own,
//! so that a request never moves between cores; the admin endpoint has a thread to itself, so that it answers while the
//! workers are busy, and until a stop has finished.
#![expect(clippy::disallowed_methods, reason = "the rim reads the clocks and waits")]

mod connection;
mod control;
mod crowd;
mod delivery;
mod directory;
mod documents;
mod events;
pub mod hosted;
mod http2;
mod lane;
pub mod leads_file;
pub mod limits;
mod mcp;
mod playback;
mod routes;
mod stream;
pub mod tls;
mod way;
mod wire;

use std::io;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Instant, SystemTime};

use jiff::Timestamp;
use socket2::{Domain, Protocol, Socket, Type};
use tokio::sync::{mpsc, watch};

use crate::admin::guard::Guard;
use crate::auth::{Auth, Secret};
use crate::conduct::ConductDesk;
use crate::dealer::clock::{ClockMode, Now};
use crate::journal::{self, Journal, Redactor};
use crate::protocol::mcp::Guests;
use crate::stable::mix;
use crate::world::{Blueprint, World, WorldError};
use crowd::Crowd;
use leads_file::{LeadsFile, LeadsFileError};
use limits::Limits;
use tls::{Tls, TlsError, TlsOptions};

/// How long threads are waited for when everything closes.
const PATIENCE: std::time::Duration = std::time::Duration::from_millis(500);
/// How often it is looked whether a day has ended.
const LOOK_AT_DAY_EVERY: std::time::Duration = std::time::Duration::from_secs(1);
/// At most one warning about failed accepts in this time.
const WARN_EVERY: std::time::Duration = std::time::Duration::from_secs(1);
/// Connections the kernel holds until they are accepted.
const BACKLOG: i32 = 1024;

/// What to listen on, and how.
#[derive(Debug, Clone)]
pub struct ServerOptions {
    /// The dealer's address; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The admin endpoint's address, if there is to be one.
    pub admin: Option<SocketAddr>,
    /// How TLS is spoken on the dealer's address, if it is.
    pub tls: Option<TlsOptions>,
    /// The credentials that the dealer accepts.
    pub auth: Auth,
    /// The token that the admin endpoint asks for; one that is reached from other machines has to.
    pub admin_token: Option<Secret>,
    /// The URL that the card gives, when it is not the address listened on.
    pub public_url: Option<String>,
    /// Origins of web pages that may use the MCP endpoint, beside those of this machine and of the server itself.
    pub origins: Vec<String>,
    /// Worker threads.
    pub threads: usize,
    /// Limits of the listener.
    pub limits: Limits,
    /// What the journal keeps.
    pub journal: journal::Limits,
    /// Where leads are written down, if they are.
    pub leads: Option<LeadsFile>,
    /// Whether the people in what is asked are taken out of the journal and of what the admin endpoint shows of leads.
    pub redact: bool,
}

/// Why a server did not start.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// The address cannot be listened on.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// What the system said.
        error: io::Error,
    },
    /// Everybody could use the admin endpoint.
    #[error(
        "--admin {address} can be reached from other machines: set --admin-token-env NAME, the variable that holds the token \
         which it asks for, or listen on a loopback address"
    )]
    Unguarded {
        /// The admin endpoint's address.
        address: SocketAddr,
    },
    /// TLS cannot be spoken.
    #[error(transparent)]
    Tls(#[from] TlsError),
    /// A thread or runtime could not be made.
    #[error("cannot start: {0}")]
    Runtime(#[from] io::Error),
    /// The dealers could not be made.
    #[error(transparent)]
    World(#[from] WorldError),
    /// The file of leads cannot be used.
    #[error(transparent)]
    Leads(#[from] LeadsFileError),
}

/// The clocks, read at the rim and handed down as values.
#[derive(Debug)]
pub(crate) struct Clocks {
    mode: ClockMode,
    source: Source,
}

/// Where time comes from.
#[derive(Debug)]
enum Source {
    /// The machine.
    Machine(Instant),
    /// The runtime's clock, which a simulation moves, and what time it was when that was looked at first.
    Runtime(tokio::time::Instant, Timestamp),
}

impl Clocks {
    pub(crate) fn start(mode: ClockMode) -> Clocks {
        Clocks { mode, source: Source::Machine(Instant::now()) }
    }

    /// Clocks of a simulation, in which it is this time.
    pub(crate) fn simulated(mode: ClockMode, now: Timestamp) -> Clocks {
        Clocks { mode, source: Source::Runtime(tokio::time::Instant::now(), now) }
    }

    pub(crate) fn now(&self) -> Now {
        let business = match self.source {
            Source::Machine(_) => business_time(self.mode),
            Source::Runtime(opened, then) => self.mode.business(then + opened.elapsed()),
        };
        Now { business, traffic_ns: self.traffic_ns() }
    }

    /// The traffic clock alone.
    pub(crate) fn traffic_ns(&self) -> u64 {
        let open = match self.source {
            Source::Machine(opened) => opened.elapsed(),
            Source::Runtime(opened, _) => opened.elapsed(),
        };
        u64::try_from(open.as_nanos()).unwrap_or(u64::MAX)
    }
}

/// The business time of a clock setting.
pub fn business_time(mode: ClockMode) -> Timestamp {
    mode.business(Timestamp::now())
}

/// What the threads share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) world: World,
    pub(crate) clocks: Clocks,
    pub(crate) limits: Limits,
    /// The credentials that the dealer accepts.
    pub(crate) auth: Auth,
    /// The open connections of each client address.
    pub(crate) crowd: Crowd,
    /// Who may use the admin endpoint.
    pub(crate) guard: Guard,
    /// TLS, if it is spoken.
    pub(crate) tls: Option<Tls>,
    /// Whom the MCP endpoint lets in.
    pub(crate) guests: Guests,
    /// A number that no other process has, so that identifiers of a running clock never repeat over restarts.
    pub(crate) process: u64,
    /// Whether requests are taken.
    pub(crate) ready: AtomicBool,
    /// Streams of the journal open now.
    pub(crate) streams: AtomicU64,
}

/// A running server. Dropping it stops it at once; [`Server::stop`] lets requests in flight finish.
#[derive(Debug)]
pub struct Server {
    shared: Arc<Shared>,
    address: SocketAddr,
    admin: Option<SocketAddr>,
    stop: watch::Sender<Phase>,
    workers: Vec<JoinHandle<()>>,
    admin_thread: Option<JoinHandle<()>>,
    /// Writes leads down.
    writer: Option<JoinHandle<()>>,
}

/// How far a stop has come.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub(crate) enum Phase {
    /// Requests are taken.
    Serving,
    /// Requests in flight finish; no new connection is taken.
    Draining,
    /// The dealer's connections close.
    Closed,
    /// The admin endpoint closes, which has told till then how they ended.
    Over,
}

/// How a stop went.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Stopped {
    /// HTTP requests answered.
    pub requests: u64,
    /// Leads received.
    pub leads: u64,
    /// Requests that were still being answered when the time for the stop was over.
    pub unfinished: u64,
}

fn listen(address: SocketAddr) -> Result<(TcpListener, SocketAddr), StartError> {
    let bind = || -> io::Result<(TcpListener, SocketAddr)> {
        let socket = Socket::new(Domain::for_address(address), Type::STREAM, Some(Protocol::TCP))?;
        // A restart must not wait for the old connections' TIME_WAIT; two servers on one port still clash.
        #[cfg(unix)]
        socket.set_reuse_address(true)?;
        socket.bind(&address.into())?;
        socket.listen(BACKLOG)?;
        let listener = TcpListener::from(socket);
        let address = listener.local_addr()?;
        Ok((listener, address))
    };
    bind().map_err(|error| StartError::Listen { address, error })
}

/// The base URL of a listener: what a client on this machine can reach.
pub fn url_of(scheme: &str, address: SocketAddr) -> String {
    let host = match address {
        SocketAddr::V4(address) if address.ip().is_unspecified() => "127.0.0.1".to_owned(),
        SocketAddr::V6(address) if address.ip().is_unspecified() => "[::1]".to_owned(),
        SocketAddr::V4(address) => address.ip().to_string(),
        SocketAddr::V6(address) => format!("[{}]", address.ip()),
    };
    format!("{scheme}://{host}:{}", address.port())
}

/// The name or address in a URL, without brackets.
fn host_of(url: &str) -> &str {
    let authority = url.split_once("://").map_or(url, |(_, rest)| rest);
    let authority = authority.split('/').next().unwrap_or_default();
    match authority.strip_prefix('[') {
        Some(address) => address.split(']').next().unwrap_or_default(),
        None => authority.rsplit_once(':').map_or(authority, |(host, _)| host),
    }
}

impl Server {
    /// Takes the ports, makes the stock, and serves.
    ///
    /// # Errors
    /// [`StartError`]; nothing is left running then.
    pub fn start(mut blueprint: Blueprint, options: ServerOptions) -> Result<Server, StartError> {
        if let Some(address) = options.admin.filter(|address| !address.ip().is_loopback())
            && options.admin_token.is_none()
        {
            return Err(StartError::Unguarded { address });
        }
        let (listener, address) = listen(options.listen)?;
        let admin = options.admin.map(listen).transpose()?;
        let scheme = if options.tls.is_some() { "https" } else { "http" };
        let base_url = options.public_url.unwrap_or_else(|| url_of(scheme, address));
        let host = host_of(&base_url).to_owned();
        let tls = options.tls.map(|tls| Tls::new(&tls, &host)).transpose()?;
        let guard = Guard { token: options.admin_token, host };
        let guests = Guests::new(&base_url, &options.origins, address.ip().is_loopback());
        let clocks = Clocks::start(blueprint.spec.clock);
        blueprint.ledger = options.leads.as_ref().map(|_| Arc::default());
        let mut world = World::new(blueprint, base_url, clocks.now().business)?;
        let writer = match (&options.leads, &world.ledger) {
            (Some(file), Some(ledger)) => Some(leads_file::start(file, &world, ledger)?),
            _ => None,
        };
        let since_1970 = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        let process = mix(u64::try_from(since_1970.as_nanos()).unwrap_or(0) ^ u64::from(std::process::id()));
        let redactor = options.redact.then(|| Redactor::new(mix(process)));
        world.journal = Journal::redacting(options.journal, options.threads, redactor);
        world.conduct =
            ConductDesk::new(std::time::Duration::from_secs(options.limits.card_max_age_s.into()));
        let shared = Arc::new(Shared {
            world,
            clocks,
            guests,
            limits: options.limits,
            auth: options.auth,
            crowd: Crowd::default(),
            guard,
            tls,
            process,
            ready: AtomicBool::new(true),
            streams: AtomicU64::new(0),
        });
        let (stop, phase) = watch::channel(Phase::Serving);
        let mut queues = Vec::new();
        let mut workers = Vec::new();
        for index in 0..options.threads.max(1) {
            let (queue, streams) = mpsc::unbounded_channel();
            queues.push(queue);
            let runtime = runtime()?;
            let (shared, phase) = (shared.clone(), phase.clone());
            let worker = std::thread::Builder::new()
                .name(format!("worker-{index}"))
                .spawn(move || connection::serve_dealer(&runtime, shared, index, streams, phase))?;
            workers.push(worker);
        }
        let runtime_of_acceptor = runtime()?;
        let acceptor = {
            let (shared, phase) = (shared.clone(), phase.clone());
            std::thread::Builder::new()
                .name("acceptor".to_owned())
                .spawn(move || accept(&runtime_of_acceptor, &shared, listener, &queues, phase))?
        };
        workers.push(acceptor);
        let mut server = Server { shared, address, admin: None, stop, workers, admin_thread: None, writer };
        if let Some((listener, address)) = admin {
            let runtime = runtime()?;
            let shared = server.shared.clone();
            server.admin = Some(address);
            server.admin_thread = Some(
                std::thread::Builder::new()
                    .name("admin".to_owned())
                    .spawn(move || connection::serve_admin(&runtime, shared, listener, phase))?,
            );
        }
        Ok(server)
    }

    /// The dealer's base URL.
    pub fn base_url(&self) -> &str {
        self.shared.world.base_url()
    }

    /// The JSON-RPC endpoint.
    pub fn url(&self) -> String {
        format!("{}/a2a", self.base_url())
    }

    /// The agent card.
    pub fn card_url(&self) -> String {
        format!("{}{}", self.base_url(), crate::protocol::card::PATH)
    }

    /// The admin endpoint's base URL.
    pub fn admin_url(&self) -> Option<String> {
        self.admin.map(|address| url_of("http", address))
    }

    /// The certificate that was made at the start, as PEM, if one was.
    pub fn certificate(&self) -> Option<&str> {
        self.shared.tls.as_ref()?.made.as_deref()
    }

    /// The dealer's address.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// What is served.
    pub fn world(&self) -> &World {
        &self.shared.world
    }

    /// The time on the server's clocks, as if no dealer's had been moved.
    pub fn now(&self) -> Now {
        self.shared.clocks.now()
    }

    /// Takes no more requests, lets those in flight finish for as long as [`Limits::drain_ms`] says, and closes. The
    /// admin endpoint answers until the end.
    pub fn stop(mut self) -> Stopped {
        self.shared.ready.store(false, Ordering::Relaxed);
        _ = self.stop.send(Phase::Draining);
        let deadline = Instant::now() + self.shared.limits.drain();
        while Instant::now() < deadline && self.workers.iter().any(|worker| !worker.is_finished()) {
            std::thread::sleep(std::time::Duration::from_millis(2));
        }
        let unfinished = self.shared.world.traffic.in_flight.load(Ordering::Relaxed);
        self.close();
        Stopped {
            requests: self.shared.world.traffic.requests.load(Ordering::Relaxed),
            leads: self.shared.world.leads_in_all(),
            unfinished,
        }
    }

    /// Ends the threads. One in the middle of a long call is not waited for: it ends after it, and nobody sees its reply.
    fn close(&mut self) {
        self.join(Phase::Closed);
        self.workers.extend(self.admin_thread.take());
        self.join(Phase::Over);
        if let Some(ledger) = &self.shared.world.ledger {
            ledger.close();
        }
        self.workers.extend(self.writer.take());
        self.join(Phase::Over);
    }

    fn join(&mut self, phase: Phase) {
        _ = self.stop.send(phase);
        let deadline = Instant::now() + PATIENCE;
        for thread in self.workers.drain(..) {
            while !thread.is_finished() && Instant::now() < deadline {
                std::thread::sleep(std::time::Duration::from_millis(1));
            }
            if thread.is_finished() {
                _ = thread.join();
            }
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.close();
    }
}

/// Says that the dealer is no longer ready, however its acceptor ends.
struct Ready<'r>(&'r AtomicBool);

impl Drop for Ready<'_> {
    fn drop(&mut self) {
        self.0.store(false, Ordering::Relaxed);
    }
}

fn runtime() -> io::Result<tokio::runtime::Runtime> {
    tokio::runtime::Builder::new_current_thread().enable_all().build()
}

/// Has the market move on where a business day has ended, and conduct judged, if anybody wants it, on a thread that serves nobody.
/// On a busy machine this may take longer than until the next time: it is not begun twice, or threads would pile up.
fn look_after(shared: &Arc<Shared>, under_way: &mut Option<tokio::task::JoinHandle<()>>) {
    if under_way.as_ref().is_some_and(|task| !task.is_finished()) {
        return;
    }
    let shared = shared.clone();
    *under_way = Some(tokio::task::spawn_blocking(move || {
        let now = shared.clocks.now();
        for site in shared.world.sites().iter().filter(|site| site.is_due(now)) {
            if let Err(error) = site.catch_up(now) {
                tracing::error!("the stock stays as it is: {error}");
            }
        }
        shared.world.conduct.keep_up(&shared.world.journal, shared.clocks.traffic_ns());
    }));
}

/// Accepts connections and deals them out to the workers in turn.
fn accept(
    runtime: &tokio::runtime::Runtime,
    shared: &Arc<Shared>,
    listener: TcpListener,
    queues: &[mpsc::UnboundedSender<connection::Accepted>],
    mut phase: watch::Receiver<Phase>,
) {
    // Whatever ends the acceptor, the dealer is not ready without it.
    let _ready = Ready(&shared.ready);
    runtime.block_on(async {
        let listener = match connection::to_tokio(listener) {
            Ok(listener) => listener,
            Err(error) => return tracing::error!("cannot accept: {error}"),
        };
        let traffic = &shared.world.traffic;
        let mut warned: Option<Instant> = None;
        let mut under_way = None;
        let mut days = tokio::time::interval(LOOK_AT_DAY_EVERY);
        days.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept() => accepted,
                _ = days.tick() => {
                    look_after(shared, &mut under_way);
                    continue;
                }
                _ = phase.changed() => return,
            };
            let (stream, peer) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => {
                    // Out of descriptors, or the peer was gone at once: neither ends the server.
                    if warned.is_none_or(|warned| warned.elapsed() > WARN_EVERY) {
                        tracing::warn!("accept failed: {error}");
                        warned = Some(Instant::now());
                    }
                    tokio::time::sleep(std::time::Duration::from_millis(5)).await;
                    continue;
                }
            };
            if traffic.open.load(Ordering::Relaxed) >= shared.limits.connections as u64 {
                traffic.turned_away.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            if !shared.crowd.enter(peer.ip(), shared.limits.connections_per_client) {
                traffic.turned_away_client.fetch_add(1, Ordering::Relaxed);
                continue;
            }
            let number = traffic.connections.fetch_add(1, Ordering::Relaxed);
            traffic.open.fetch_add(1, Ordering::Relaxed);
            let stream: io::Result<TcpStream> = stream.into_std();
            let queue = &queues[number as usize % queues.len()];
            if let Ok(stream) = stream
                && queue.send(connection::Accepted { stream, peer: peer.ip(), number }).is_ok()
            {
                continue;
            }
            traffic.open.fetch_sub(1, Ordering::Relaxed);
            shared.crowd.leave(peer.ip());
        }
    });
}
