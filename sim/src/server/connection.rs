//! Connections: what is spoken on a stream (TLS, HTTP/1.1 or HTTP/2), from its first byte to its last.

use std::cell::RefCell;
use std::convert::Infallible;
use std::net::{IpAddr, TcpListener, TcpStream};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use bytes::Bytes;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::sync::{mpsc, watch};
use tokio::task::LocalSet;

use super::control::Admin;
use super::crowd::Guest;
use super::delivery::{Delivery, Outgoing};
use super::http2;
use super::routes::Front;
use super::stream::Stream;
use super::tls::Tls;
use super::way::Way;
use super::wire::{Wire, hear_out};
use super::{Phase, Shared};
use crate::dispatch::{Scratch, accept_script};
use crate::faults::Script;
use crate::journal::{Client, Notes, Shard, Told};
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

/// Who has connected.
#[derive(Clone, Copy)]
pub(super) struct Caller {
    pub(super) peer: IpAddr,
    /// The connection's ordinal among all.
    pub(super) number: u64,
    /// Whether it has shown a certificate that the dealer believes.
    pub(super) certified: bool,
}

/// What the connections of one worker share.
pub(super) struct Worker {
    pub(super) shared: Arc<Shared>,
    pub(super) scratch: RefCell<Scratch>,
    pub(super) waits: Rc<Waits>,
    pub(super) shard: Option<Shard>,
    http: http1::Builder,
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

/// Runs one connection of HTTP/1.1 until it ends, or until a stop: then the request in flight is answered and the connection
/// closed. `None` when the time for that was over.
async fn drive<S>(
    connection: &mut http1::Connection<Wire, S>,
    mut phase: watch::Receiver<Phase>,
) -> Option<hyper::Result<()>>
where
    S: hyper::service::HttpService<hyper::body::Incoming, ResBody = Outgoing>,
    S::Error: Into<Box<dyn std::error::Error + Send + Sync>>,
    http1::Connection<Wire, S>: Future<Output = hyper::Result<()>> + Unpin,
{
    let ended = tokio::select! {
        // In this order, so that a simulated run repeats.
        biased;
        ended = &mut *connection => Some(ended),
        _ = phase.wait_for(|phase| *phase >= Phase::Draining) => None,
    };
    let ended = match ended {
        Some(ended) => ended,
        None => {
            Pin::new(&mut *connection).graceful_shutdown();
            tokio::select! {
                ended = connection => ended,
                _ = phase.wait_for(|phase| *phase >= Phase::Closed) => return None,
            }
        }
    };
    if let Err(error) = &ended {
        tracing::debug!("connection ended: {error}");
    }
    Some(ended)
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
    tasks.block_on(runtime, async {
        let waits = match Waits::new(SLOT) {
            Ok(waits) => Rc::new(waits),
            Err(error) => return tracing::error!("a worker cannot have a timer: {error}"),
        };
        let worker = Rc::new(Worker::new(shared, worker, waits.clone()));
        let releasing = tokio::task::spawn_local(async move { waits.run().await });
        let mut running = tokio::task::JoinSet::new();
        let mut accepting = phase.clone();
        loop {
            let accepted = tokio::select! {
                accepted = streams.recv() => accepted,
                _ = running.join_next(), if !running.is_empty() => continue,
                _ = accepting.wait_for(|phase| *phase >= Phase::Closed) => None,
            };
            let Some(accepted) = accepted else { break };
            let (worker, phase) = (worker.clone(), phase.clone());
            running.spawn_local(async move {
                let _open = Counted(&worker.shared.world.traffic.open);
                let _guest = Guest(&worker.shared.crowd, accepted.peer);
                // Replies are whole; waiting for more to send would only add delay.
                _ = accepted.stream.set_nodelay(true);
                let Ok(stream) = tokio::net::TcpStream::from_std(accepted.stream) else { return };
                let Accepted { peer, number, .. } = accepted;
                worker.clone().serve(stream, Caller { peer, number, certified: false }, phase).await;
            });
        }
        while running.join_next().await.is_some() {}
        releasing.abort();
    });
}

impl Worker {
    pub(super) fn new(shared: Arc<Shared>, number: usize, waits: Rc<Waits>) -> Worker {
        let journal = &shared.world.journal;
        let shard = journal.is_on().then(|| journal.shard(number));
        let scratch = if shard.is_some() { Scratch::noting() } else { Scratch::default() };
        Worker { http: protocol(&shared), shard, scratch: RefCell::new(scratch), waits, shared }
    }

    pub(super) fn wire(&self, stream: Stream, delivery: Delivery) -> Wire {
        Wire::new(stream, self.shared.limits.write_timeout(), self.waits.clone(), delivery)
    }

    /// Serves a connection until it ends or a stop ends it: faults at accept come first, then TLS, then HTTP.
    async fn serve(
        self: Rc<Worker>,
        stream: tokio::net::TcpStream,
        caller: Caller,
        phase: watch::Receiver<Phase>,
    ) {
        let shared = &self.shared;
        let delivery = Delivery::new(shared.clone(), self.shard.clone(), caller.number);
        let mut wire = self.wire(Stream::Plain(stream), delivery);
        if let Some(script) = accept(shared, &wire, caller.peer, caller.number)
            && !wire.play_alone(script, phase.clone()).await
        {
            return;
        }
        let Some(tls) = &shared.tls else { return self.speak(wire, caller, phase).await };
        let Some((Stream::Plain(stream), delivery)) = wire.into_parts() else { return };
        let Some((stream, certified, is_http2)) = shake_hands(shared, tls, stream, phase.clone()).await
        else {
            return;
        };
        let caller = Caller { certified, ..caller };
        if is_http2 {
            return http2::serve(&self, stream, Bytes::new(), caller, phase).await;
        }
        wire = self.wire(stream, delivery);
        self.speak(wire, caller, phase).await;
    }

    /// HTTP/1.1, or HTTP/2 if it begins with the preface: hyper stops there and gives back what it has read.
    pub(super) async fn speak(self: Rc<Worker>, wire: Wire, caller: Caller, phase: watch::Receiver<Phase>) {
        let front = Front::new(self.clone(), Way::Wire(wire.clone()), caller, 0);
        let outgoing = wire.clone();
        let service = service_fn(move |request| {
            let (front, outgoing) = (front.clone(), outgoing.clone());
            async move {
                let reply = front.answer(request).await;
                outgoing.reply_begins();
                Ok::<_, Infallible>(reply.map(|body| Outgoing::new(body, outgoing)))
            }
        });
        let mut connection = self.http.serve_connection(wire.clone(), service);
        let ended = drive(&mut connection, phase.clone()).await;
        let parts = connection.into_parts();
        // hyper's half and the handler's hold the stream, too.
        let begun = parts.read_buf;
        drop((parts.io, parts.service));
        if let Some(Err(error)) = &ended
            && error.is_parse_version_h2()
        {
            if let Some((stream, _)) = wire.into_parts() {
                http2::serve(&self, stream, begun, caller, phase).await;
            }
            return;
        }
        wire.ended(ended.is_none());
        match ended {
            Some(Err(error)) => wire.end_after(&error).await,
            Some(Ok(())) => wire.close().await,
            None => {}
        }
    }
}

/// The handshake of TLS, in its time: the stream, whether the client has shown a good certificate, and whether it wants HTTP/2.
async fn shake_hands(
    shared: &Shared,
    tls: &Tls,
    stream: tokio::net::TcpStream,
    mut phase: watch::Receiver<Phase>,
) -> Option<(Stream, bool, bool)> {
    let handshake =
        tokio::time::timeout(shared.limits.tls_handshake(), tls.acceptor.accept(stream).into_fallible());
    let shaken = tokio::select! {
        shaken = handshake => shaken,
        _ = phase.wait_for(|phase| *phase >= Phase::Draining) => return None,
    };
    match shaken {
        Ok(Ok(stream)) => {
            let (_, session) = stream.get_ref();
            let certified = session.peer_certificates().is_some();
            let is_http2 = session.alpn_protocol() == Some(b"h2");
            Some((Stream::Other(Box::new(stream)), certified, is_http2))
        }
        failed => {
            shared.world.traffic.tls_failures.fetch_add(1, Ordering::Relaxed);
            match failed {
                Ok(Err((error, stream))) => {
                    tracing::debug!("the TLS handshake failed: {error}");
                    // Closed over unread bytes it would be reset, and the alert lost with it.
                    hear_out(Stream::Plain(stream)).await;
                }
                _ => tracing::debug!("the TLS handshake took too long"),
            }
            None
        }
    }
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
