//! A dealer in somebody else's runtime, over streams that its host accepts: no sockets and no threads of its own. For a simulated network.

use std::cell::Cell;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64};

use jiff::Timestamp;
use tokio::sync::watch;

use super::connection::{Caller, Worker};
use super::crowd::Crowd;
use super::delivery::Delivery;
use super::limits::Limits;
pub use super::stream::Link;
use super::stream::Stream;
use super::{Clocks, Phase, Shared};
use crate::admin::guard::Guard;
use crate::auth::Auth;
use crate::protocol::mcp::Guests;
use crate::timer::Waits;
use crate::world::{Blueprint, World, WorldError};

/// A dealer that is hosted. It serves HTTP, writes no journal, and has no admin endpoint: the host has its [`World`].
pub struct Hosted {
    worker: Rc<Worker>,
    stop: watch::Sender<Phase>,
    connections: Cell<u64>,
}

impl Hosted {
    /// Makes the dealer. `process` is a number that no other one has: identifiers are drawn from it. `now` is the time, from which it goes on by
    /// the runtime's clock. Where leads are to be written down, the host runs [`keep`](super::leads_file::keep) beside it.
    ///
    /// # Errors
    /// [`WorldError`]
    pub fn open(blueprint: Blueprint, process: u64, now: Timestamp) -> Result<Hosted, WorldError> {
        let base_url = "http://dealer.test".to_owned();
        let clocks = Clocks::simulated(blueprint.spec.clock, now);
        let world = World::new(blueprint, base_url.clone(), clocks.now().business)?;
        let shared = Arc::new(Shared {
            world,
            clocks,
            limits: Limits::default(),
            auth: Auth::default(),
            crowd: Crowd::default(),
            guard: Guard { token: None, host: String::new() },
            tls: None,
            guests: Guests::new(&base_url, &[], true),
            process,
            ready: AtomicBool::new(true),
            streams: AtomicU64::new(0),
        });
        let (stop, _) = watch::channel(Phase::Serving);
        // Only faults wait by it.
        let waits = Rc::new(Waits::coarse());
        Ok(Hosted { worker: Rc::new(Worker::new(shared, 0, waits)), stop, connections: Cell::new(0) })
    }

    /// What is served.
    pub fn world(&self) -> &World {
        &self.worker.shared.world
    }

    /// Serves a connection until it ends. To drop the future ends it, too.
    pub async fn serve(&self, stream: impl Link + 'static) {
        let number = self.connections.replace(self.connections.get() + 1);
        let shared = self.worker.shared.clone();
        let delivery = Delivery::new(shared, None, number);
        let wire = self.worker.wire(Stream::Other(Box::new(stream)), delivery);
        let caller = Caller { peer: Ipv4Addr::LOCALHOST.into(), number, certified: false };
        self.worker.clone().speak(wire, caller, self.stop.subscribe()).await;
    }
}
