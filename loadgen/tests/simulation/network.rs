//! A network of one dealer: connections that take time, stop while it is partitioned, and break.

use std::cell::{Cell, RefCell};
use std::io;
use std::rc::Rc;
use std::time::Duration;

use jiff::Timestamp;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream, ReadHalf, WriteHalf, duplex, split};
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Bytes on their way in one direction.
const ROOM: usize = 64 << 10;

/// When a run begins.
const BEGINNING: Timestamp = Timestamp::constant(1_767_268_800, 0);

pub(crate) struct Network {
    opened: Instant,
    random: RefCell<ChaCha8Rng>,
    /// Where connections are accepted, while the dealer lives.
    dealer: RefCell<Option<mpsc::UnboundedSender<DuplexStream>>>,
    partitioned_until: Cell<Instant>,
    /// Wakes connections that are to break.
    breaking: Rc<Notify>,
    cables: RefCell<JoinSet<()>>,
}

impl Network {
    pub(crate) fn new(seed: u64) -> Network {
        Network {
            opened: Instant::now(),
            random: RefCell::new(ChaCha8Rng::seed_from_u64(seed)),
            dealer: RefCell::new(None),
            partitioned_until: Cell::new(Instant::now()),
            breaking: Rc::new(Notify::new()),
            cables: RefCell::new(JoinSet::new()),
        }
    }

    /// What time it is.
    pub(crate) fn time(&self) -> Timestamp {
        BEGINNING + self.opened.elapsed()
    }

    /// A dealer listens from now on.
    pub(crate) fn listen(&self) -> mpsc::UnboundedReceiver<DuplexStream> {
        let (sender, accepted) = mpsc::unbounded_channel();
        *self.dealer.borrow_mut() = Some(sender);
        accepted
    }

    /// Nobody listens any longer.
    pub(crate) fn close(&self) {
        *self.dealer.borrow_mut() = None;
    }

    /// Nothing arrives for a time.
    pub(crate) fn partition(&self, time: Duration) {
        self.partitioned_until.set(self.partitioned_until.get().max(Instant::now() + time));
    }

    /// Every connection breaks.
    pub(crate) fn break_all(&self) {
        self.breaking.notify_waiters();
    }

    /// What is on its way is lost: the machine had no power.
    pub(crate) fn forget(&self) {
        self.cables.borrow_mut().abort_all();
    }

    async fn delay(self: &Rc<Self>) {
        let millis = {
            let mut random = self.random.borrow_mut();
            // Now and then something takes long.
            if random.random_ratio(1, 20) { random.random_range(20..300) } else { random.random_range(0..5) }
        };
        tokio::time::sleep(Duration::from_millis(millis)).await;
        while self.partitioned_until.get() > Instant::now() {
            tokio::time::sleep_until(self.partitioned_until.get()).await;
        }
    }

    /// A connection to the dealer.
    pub(crate) async fn connect(self: &Rc<Self>) -> io::Result<DuplexStream> {
        self.delay().await;
        let Some(dealer) = self.dealer.borrow().clone() else {
            return Err(io::ErrorKind::ConnectionRefused.into());
        };
        let ((ours, near), (far, theirs)) = (duplex(ROOM), duplex(ROOM));
        dealer.send(theirs).map_err(|_| io::Error::from(io::ErrorKind::ConnectionRefused))?;
        let network = self.clone();
        self.cables.borrow_mut().spawn_local(async move { network.carry(near, far).await });
        Ok(ours)
    }

    /// Carries bytes both ways until the connection breaks or both sides have ended.
    async fn carry(self: Rc<Self>, near: DuplexStream, far: DuplexStream) {
        // Of a hundred connections some break after a few pieces.
        let pieces = {
            let mut random = self.random.borrow_mut();
            if random.random_ratio(1, 8) { random.random_range(0..6) } else { u32::MAX }
        };
        let (left, breaking) = (Cell::new(pieces), self.breaking.clone());
        let ((near_in, near_out), (far_in, far_out)) = (split(near), split(far));
        tokio::select! {
            biased;
            () = breaking.notified() => {}
            _ = async { tokio::join!(self.one_way(near_in, far_out, &left), self.one_way(far_in, near_out, &left)) } => {}
        }
    }

    async fn one_way(
        self: &Rc<Self>,
        mut from: ReadHalf<DuplexStream>,
        mut to: WriteHalf<DuplexStream>,
        left: &Cell<u32>,
    ) {
        let mut piece = [0; 1500];
        while let Ok(read) = from.read(&mut piece).await {
            self.delay().await;
            if left.get() == 0 {
                // Broken for both: this half never ends, so that the other one's pieces are lost, too.
                self.breaking.notified().await;
            }
            left.set(left.get().saturating_sub(1));
            if read == 0 || to.write_all(&piece[..read]).await.is_err() {
                break;
            }
        }
        _ = to.shutdown().await;
    }
}
