//! Connections: HTTP/1.1 on a stream, from its first byte to its last.

use std::cell::RefCell;
use std::convert::Infallible;
use std::net::{IpAddr, TcpListener, TcpStream};
use std::pin::pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::{mpsc, watch};
use tokio::task::LocalSet;

use super::back::Admin;
use super::delivery::Delivery;
use super::routes::Front;
use super::wire::Wire;
use super::{Phase, Shared};
use crate::dispatch::{Scratch, accept_script};
use crate::faults::Script;
use crate::journal::{Client, Notes, Told};
use crate::timer::Waits;

/// How long an admin connection may be idle.
const ADMIN_PATIENCE: Duration = Duration::from_secs(2);

/// What streams of the journal have to end in, once everything closes.
const STREAMS_END: Duration = Duration::from_millis(200);

/// Delays of faults that end within this time share a wake-up of their worker.
const SLOT: Duration = Duration::from_micros(50);

/// A connection on its way to a worker.
pub(super) struct Accepted {
    pub(super) stream: TcpStream,
    pub(super) peer: IpAddr,
    /// Its ordinal among all connections.
    pub(super) number: u64,
}

/// Gives a gauge back its one when the thing counted ends, however it ends.
pub(super) struct Counted<'c>(pub(super) &'c AtomicU64);

impl Drop for Counted<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

pub(super) fn to_tokio(listener: TcpListener) -> std::io::Result<tokio::net::TcpListener> {
    listener.set_nonblocking(true)?;
    tokio::net::TcpListener::from_std(listener)
}

fn protocol(shared: &Shared) -> http1::Builder {
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new())
        .header_read_timeout(shared.limits.header_timeout())
        .max_headers(shared.limits.header_count)
        .max_buf_size(shared.limits.header_bytes)
        // A caller that has said all it will say (`nc`, some proxies) still wants its answer.
        .half_close(true);
    http
}

/// Runs one connection until it ends, or until a stop: then the request in flight is answered and the connection closed.
/// `None` when the time for that was over.
async fn drive<C>(connection: C, mut phase: watch::Receiver<Phase>) -> Option<hyper::Result<()>>
where
    C: std::future::Future<Output = hyper::Result<()>> + Graceful,
{
    let mut connection = pin!(connection);
    let ended = tokio::select! {
        ended = connection.as_mut() => Some(ended),
        _ = phase.wait_for(|phase| *phase >= Phase::Draining) => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            connection.as_mut().begin_shutdown();
            tokio::select! {
                ended = connection.as_mut() => ended,
                _ = phase.wait_for(|phase| *phase >= Phase::Closed) => return None,
            }
        }
    };
    if let Err(error) = &ended {
        tracing::debug!("connection ended: {error}");
    }
    Some(ended)
}

/// A connection that can be asked to end after the request in flight.
trait Graceful {
    fn begin_shutdown(self: std::pin::Pin<&mut Self>);
}

impl<I, S, B> Graceful for http1::Connection<I, S>
where
    I: hyper::rt::Read + hyper::rt::Write + Unpin,
    S: hyper::service::HttpService<hyper::body::Incoming, ResBody = B>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    B: hyper::body::Body + 'static,
    B::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
{
    fn begin_shutdown(self: std::pin::Pin<&mut Self>) {
        self.graceful_shutdown();
    }
}

/// A worker: serves the connections it is handed until a stop, and then those it still has.
pub(super) fn serve_dealer(
    runtime: &tokio::runtime::Runtime,
    shared: Arc<Shared>,
    worker: usize,
    mut streams: mpsc::UnboundedReceiver<Accepted>,
    phase: watch::Receiver<Phase>,
) {
    let tasks = LocalSet::new();
    let journal = &shared.world.journal;
    let shard = journal.is_on().then(|| journal.shard(worker));
    let scratch = if shard.is_some() { Scratch::noting() } else { Scratch::default() };
    let scratch = Rc::new(RefCell::new(scratch));
    let http = protocol(&shared);
    tasks.block_on(runtime, async {
        let waits = match Waits::new(SLOT) {
            Ok(waits) => Rc::new(waits),
            Err(error) => return tracing::error!("a worker cannot have a timer: {error}"),
        };
        let releasing = waits.clone();
        let releasing = tokio::task::spawn_local(async move { releasing.run().await });
        let mut running = tokio::task::JoinSet::new();
        let mut accepting = phase.clone();
        loop {
            let accepted = tokio::select! {
                accepted = streams.recv() => accepted,
                _ = running.join_next(), if !running.is_empty() => continue,
                _ = accepting.wait_for(|phase| *phase >= Phase::Closed) => None,
            };
            let Some(accepted) = accepted else { break };
            let (shared, phase) = (shared.clone(), phase.clone());
            let (scratch, waits, shard) = (scratch.clone(), waits.clone(), shard.clone());
            let http = http.clone();
            running.spawn_local(async move {
                let _open = Counted(&shared.world.traffic.open);
                // Replies are whole; waiting for more to send would only add delay.
                _ = accepted.stream.set_nodelay(true);
                let Ok(stream) = tokio::net::TcpStream::from_std(accepted.stream) else { return };
                let Accepted { peer, number, .. } = accepted;
                let delivery = Delivery::new(shared.clone(), shard, number);
                let wire = Wire::new(stream, shared.limits.write_timeout(), waits, delivery);
                if let Some(script) = accept(&shared, &wire, peer, number)
                    && !wire.play_alone(script, phase.clone()).await
                {
                    return;
                }
                let front = Front::new(shared.clone(), scratch, wire.clone(), peer, number);
                let service = service_fn(move |request| {
                    let front = front.clone();
                    async move { Ok::<_, Infallible>(front.answer(request).await) }
                });
                let ended = drive(http.serve_connection(wire.clone(), service), phase).await;
                wire.ended(ended.is_none());
                if let Some(Err(error)) = ended {
                    wire.end_after(&error).await;
                }
            });
        }
        while running.join_next().await.is_some() {}
        releasing.abort();
    });
}

/// What a fault does to a connection before it speaks HTTP; noted for the journal.
fn accept(shared: &Shared, wire: &Wire, peer: IpAddr, number: u64) -> Option<Script> {
    // No path is known yet: the first dealer's rules speak for the listener.
    let site = shared.world.first();
    let (scene, now) = (site.scene(), site.now(shared.clocks.now()));
    let mut notes = Notes::default();
    let script = accept_script(&scene.dealer, &site.faults, peer, number, now, &mut notes)?;
    wire.with_pending(|pending| {
        let Some(pending) = pending else { return };
        notes.add(Told::other(""));
        pending.notes = notes;
        let client = Client::Origin { address: peer, program: b"" };
        pending.set_facts((now.business, now.traffic_ns), (client, None), site.id());
    });
    Some(script)
}

/// The admin endpoint, until everything closes.
pub(super) fn serve_admin(
    runtime: &tokio::runtime::Runtime,
    shared: Arc<Shared>,
    listener: TcpListener,
    mut phase: watch::Receiver<Phase>,
) {
    /// Admin connections open at once.
    const MAX_OPEN: usize = 256;
    let tasks = LocalSet::new();
    let mut http = protocol(&shared);
    // Idle callers must not keep a health check out for long.
    http.header_read_timeout(ADMIN_PATIENCE.min(shared.limits.header_timeout()));
    tasks.block_on(runtime, async {
        let listener = match to_tokio(listener) {
            Ok(listener) => listener,
            Err(error) => return tracing::error!("the admin endpoint cannot accept: {error}"),
        };
        let mut running = tokio::task::JoinSet::new();
        loop {
            let accepted = tokio::select! {
                accepted = listener.accept(), if running.len() < MAX_OPEN => accepted,
                _ = running.join_next(), if !running.is_empty() => continue,
                _ = phase.wait_for(|phase| *phase == Phase::Over) => break,
            };
            let Ok((stream, _)) = accepted else {
                // Out of descriptors: trying again at once would find no more of them.
                tokio::time::sleep(Duration::from_millis(5)).await;
                continue;
            };
            let admin = Admin { shared: shared.clone(), phase: phase.clone() };
            let connection = http.serve_connection(
                TokioIo::new(stream),
                service_fn(move |request| {
                    let admin = admin.clone();
                    async move { Ok::<_, Infallible>(admin.answer(request).await) }
                }),
            );
            running.spawn_local(async move {
                if let Err(error) = connection.await {
                    tracing::debug!("admin connection ended: {error}");
                }
            });
        }
        // Streams look for a last time and end as HTTP wants it.
        let streams_end = async {
            while shared.streams.load(Ordering::Relaxed) > 0 && running.join_next().await.is_some() {}
        };
        _ = tokio::time::timeout(STREAMS_END, streams_end).await;
    });
}
