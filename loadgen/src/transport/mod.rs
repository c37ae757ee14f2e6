//! Connections to the target and their phases: HTTP/1.1 on a TCP stream, kept alive in a pool per worker, or HTTP/2 on a few
//! that many requests share.
//!
//! A request is sent once. When a kept connection turns out to be closed after the request was written, nobody can know
//! whether the dealer has carried it out, so it is not sent again: it counts as what happened to it.

mod address;
mod exchange;
mod fault;
mod http1;
mod http2;
mod pool;
mod stream;
mod tls;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::rc::Rc;
use std::time::Duration;

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;

pub use address::{Address, AddressError};
pub(crate) use exchange::{Exchange, Reply, ReplySpan};
pub use fault::{Fault, Phase};
pub use http1::Content;
pub use pool::ConnectionCounts;
pub use tls::TlsError;

use crate::pacer::Clock;
use exchange::Wire;
use http2::{Lane, Trunks};
use pool::{Pool, Slot, Ticket};
use tls::Tls;

/// A reply larger than this is `transport.too_large`.
pub const MAX_REPLY: usize = 8 * 1024 * 1024;

/// How long a connection is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Reuse {
    /// As long as the server allows.
    Forever,
    /// For one session.
    Session,
    /// For one request.
    None,
    /// For a number of requests between these two, drawn for each connection.
    Requests(u64, u64),
}

/// What a user says about connections.
#[derive(Debug, Clone)]
pub struct Options {
    /// Time limit of the TCP handshake, and again of the TLS handshake.
    pub connect_timeout: Duration,
    /// Time limit from the send to the last byte of the reply.
    pub timeout: Duration,
    /// Largest reply body, in bytes.
    pub max_reply: usize,
    /// How long a connection is used.
    pub reuse: Reuse,
    /// A PEM file of authorities to believe instead of the machine's.
    pub ca: Option<PathBuf>,
    /// Whether any certificate is believed.
    pub insecure: bool,
    /// The PEM files of the certificate to show to the server and of its key.
    pub identity: Option<(PathBuf, PathBuf)>,
    /// Whether HTTP/2 is spoken.
    pub http2: bool,
    /// Headers that every request carries, checked already.
    pub headers: Vec<(String, String)>,
}

/// A target whose name is resolved and whose TLS is set up: all that a worker needs to know about connections.
#[derive(Debug, Clone)]
pub(crate) struct Config {
    addresses: Vec<SocketAddr>,
    tls: Option<Tls>,
    connect_timeout: Duration,
    timeout: Duration,
    max_reply: usize,
    reuse: Reuse,
    http2: bool,
}

/// Why a target cannot be prepared for.
#[derive(Debug, thiserror::Error)]
pub enum PrepareError {
    /// The name has no address.
    #[error("the name {host:?} cannot be resolved: {reason}")]
    Resolve {
        /// The name.
        host: String,
        /// What the resolver said.
        reason: String,
    },
    /// TLS cannot be set up.
    #[error(transparent)]
    Tls(#[from] TlsError),
}

impl PrepareError {
    /// Whether what the user gave is at fault, and not what was found.
    pub(crate) fn is_usage(&self) -> bool {
        matches!(
            self,
            PrepareError::Tls(TlsError::Authority { .. } | TlsError::Identity { .. } | TlsError::Name(_))
        )
    }
}

impl Config {
    /// Resolves the target's name, once for the whole run: a look-up within a request would be measured with it.
    pub(crate) async fn prepare(address: &Address, options: &Options) -> Result<Config, PrepareError> {
        let resolve = |reason: String| PrepareError::Resolve { host: address.host.clone(), reason };
        let found = tokio::net::lookup_host((address.host.as_str(), address.port)).await;
        let addresses: Vec<SocketAddr> = found.map_err(|error| resolve(error.to_string()))?.collect();
        if addresses.is_empty() {
            return Err(resolve("it has no address".to_owned()));
        }
        let protocol: &[u8] = if options.http2 { b"h2" } else { b"http/1.1" };
        let (ca, identity) = (options.ca.as_deref(), options.identity.as_ref());
        let tls = if address.tls {
            Some(Tls::to(&address.host, ca, options.insecure, identity, protocol)?)
        } else {
            None
        };
        Ok(Config {
            addresses,
            tls,
            connect_timeout: options.connect_timeout,
            timeout: options.timeout,
            max_reply: options.max_reply,
            reuse: options.reuse,
            http2: options.http2,
        })
    }
}

/// How long the phases of opening a connection took, in nanoseconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ConnectTimes {
    /// The TCP handshake.
    pub(crate) connect: u64,
    /// The TLS handshake, if there was one.
    pub(crate) tls: Option<u64>,
}

/// The connections of one worker.
#[derive(Debug)]
pub(crate) struct Client {
    config: Config,
    clock: Clock,
    pool: Pool,
    /// The connections where HTTP/2 is spoken; those of the pool are of HTTP/1.1.
    trunks: Option<Rc<Trunks>>,
    /// Draws how long each connection is used.
    rng: std::cell::RefCell<ChaCha8Rng>,
}

/// A connection in use.
#[derive(Debug)]
pub(crate) struct Connection(Carrier);

#[derive(Debug)]
enum Carrier {
    /// All of a connection.
    Whole { wire: Wire, slot: Slot },
    /// A stream of one.
    Stream(Lane),
}

/// The stream of the seed's generator that belongs to connections.
const CONNECTIONS: u64 = u64::MAX - 1;

impl Client {
    /// Connections to the target, at most `limit` of them at a time.
    pub(crate) fn new(config: Config, clock: Clock, limit: usize, seed: u64) -> Client {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        rng.set_stream(CONNECTIONS);
        let trunks = config.http2.then(|| Trunks::new(limit));
        Client { config, clock, pool: Pool::new(limit), trunks, rng: std::cell::RefCell::new(rng) }
    }

    /// A connection: an idle one, or a new one, or, when there may be no more, the next that becomes free.
    pub(crate) async fn acquire(&self) -> Result<Connection, Fault> {
        if let Some(trunks) = &self.trunks {
            let lane = trunks.acquire(&self.config, &self.clock).await?;
            return Ok(Connection(Carrier::Stream(lane)));
        }
        let Ticket { wire, slot } = self.pool.take().await;
        if let Some(wire) = wire {
            return Ok(Connection(Carrier::Whole { wire, slot }));
        }
        match stream::connect(&self.config, &self.clock).await {
            Ok((stream, times)) => {
                self.pool.count(|counts| counts.opened += 1);
                let limit = match self.config.reuse {
                    Reuse::None => 1,
                    Reuse::Requests(low, high) => self.rng.borrow_mut().random_range(low..=high),
                    Reuse::Forever | Reuse::Session => u64::MAX,
                };
                Ok(Connection(Carrier::Whole { wire: Wire::new(stream, times, limit), slot }))
            }
            Err(fault) => {
                self.pool.count(|counts| counts.failed += 1);
                Err(fault)
            }
        }
    }

    /// Sends a whole request, head and body, and receives its reply.
    pub(crate) async fn exchange(&self, connection: &mut Connection, request: &[u8]) -> Exchange {
        match &mut connection.0 {
            Carrier::Whole { wire, .. } => wire.exchange(&self.config, &self.clock, request).await,
            Carrier::Stream(lane) => lane.exchange(&self.config, &self.clock, request).await,
        }
    }

    /// Takes a connection back, or ends it if it can or shall not be used again.
    pub(crate) fn release(&self, connection: Connection) {
        // A stream is over with its reply.
        let Carrier::Whole { mut wire, slot } = connection.0 else { return };
        if !wire.reusable {
            self.pool.count(|counts| counts.closed_by_server += 1);
        } else if wire.requests >= wire.request_limit {
            self.pool.count(|counts| counts.retired += 1);
        } else {
            wire.trim();
            self.pool.put(wire, slot);
        }
    }

    /// Ends a connection on purpose.
    pub(crate) fn retire(&self, connection: Connection) {
        if let Carrier::Whole { .. } = connection.0 {
            self.pool.count(|counts| counts.retired += 1);
        }
        drop(connection);
    }

    /// How long a connection is used.
    pub(crate) fn reuse(&self) -> Reuse {
        self.config.reuse
    }

    /// What the connections have been through.
    pub(crate) fn counts(&self) -> ConnectionCounts {
        self.trunks.as_ref().map_or_else(|| self.pool.counts(), |trunks| trunks.counts())
    }
}

impl Connection {
    /// The reply that the last exchange received.
    pub(crate) fn reply(&self, span: &ReplySpan) -> Reply<'_> {
        match &self.0 {
            Carrier::Whole { wire, .. } => wire.reply(span),
            Carrier::Stream(lane) => lane.reply(span),
        }
    }

    /// All that the last exchange received: more than the reply, or less than a whole one.
    pub(crate) fn received(&self) -> &[u8] {
        match &self.0 {
            Carrier::Whole { wire, .. } => wire.received(),
            Carrier::Stream(lane) => lane.received(),
        }
    }

    /// Receives what still comes, for so long, up to so many bytes or to the end of the connection.
    pub(crate) async fn receive_rest(&mut self, wait: Duration, most: usize) {
        // What came on a stream is all there is.
        if let Carrier::Whole { wire, .. } = &mut self.0 {
            wire.receive_rest(wait, most).await;
        }
    }

    /// Whether it may carry another request.
    pub(crate) fn is_reusable(&self) -> bool {
        match &self.0 {
            Carrier::Whole { wire, .. } => wire.reusable && wire.requests < wire.request_limit,
            Carrier::Stream(lane) => lane.is_reusable(),
        }
    }

    /// How long opening it took; `None` when that was for an earlier request.
    pub(crate) fn take_connect_times(&mut self) -> Option<ConnectTimes> {
        match &mut self.0 {
            Carrier::Whole { wire, .. } => wire.connect_times.take(),
            Carrier::Stream(lane) => lane.connect_times.take(),
        }
    }
}
