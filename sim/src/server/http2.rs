//! HTTP/2 on a stream (RFC 9113), from its preface (section 3.4) on, with limits of its own.

use std::cell::Cell;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::{Buf as _, Bytes};
use hyper::header::{HOST, HeaderValue};
use hyper::server::conn::http2;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::watch;

use super::connection::{Caller, Worker};
use super::delivery::Delivery;
use super::lane::{Bundle, Lane};
use super::routes::Front;
use super::stream::{Patience, Stream};
use super::way::Way;
use super::{Phase, Shared};

/// How long a connection that is to end is waited for, once nothing is owed on it.
const LINGER: Duration = Duration::from_secs(1);
/// Bytes of frames that carry no request (pings, settings, empty frames) between two requests.
const MOST_CONTROL: u64 = 256 << 10;
/// Bytes of replies of one stream that wait for the peer.
const MOST_WAITING: usize = 64 << 10;

/// Runs the tasks of streams on their worker.
#[derive(Clone, Copy)]
struct Local;

impl<F: Future + 'static> hyper::rt::Executor<F> for Local {
    fn execute(&self, task: F) {
        tokio::task::spawn_local(async move {
            task.await;
        });
    }
}

fn protocol(shared: &Shared) -> http2::Builder<Local> {
    let limits = &shared.limits;
    let mut http = http2::Builder::new(Local);
    http.timer(TokioTimer::new())
        .max_concurrent_streams(limits.http2_streams)
        .max_header_list_size(u32::try_from(limits.header_bytes).unwrap_or(u32::MAX))
        .max_send_buf_size(MOST_WAITING)
        // More requests than this that were given up before anybody took them are an attack (CVE-2023-44487).
        .max_pending_accept_reset_streams(64)
        .max_local_error_reset_streams(256);
    http
}

/// Serves the connection until it ends, or until a stop. `begun` is what was read of it already.
pub(super) async fn serve(
    worker: &Rc<Worker>,
    stream: Stream,
    begun: Bytes,
    caller: Caller,
    mut phase: watch::Receiver<Phase>,
) {
    let shared = &worker.shared;
    let limits = &shared.limits;
    let traffic = &shared.world.traffic;
    let bundle = Bundle::new(worker.waits.clone(), limits.http2_resets);
    let flooded = Rc::new(Cell::new(false));
    let tap = Tap {
        stream,
        begun,
        bundle: bundle.clone(),
        read_since: (0, 0),
        request_bytes: (limits.body_bytes + limits.header_bytes) as u64,
        flooded: flooded.clone(),
        patience: Patience::new(limits.write_timeout()),
    };
    let service = service_fn(|mut request: hyper::Request<hyper::body::Incoming>| {
        // Where the authority stands makes no difference to those who look at it (RFC 9113, section 8.3.1).
        let authority = request.uri().authority().and_then(|host| HeaderValue::from_str(host.as_str()).ok());
        if let Some(authority) = authority {
            request.headers_mut().entry(HOST).or_insert(authority);
        }
        let delivery = Delivery::new(shared.clone(), worker.shard.clone(), caller.number);
        let lane = Lane::begin(&bundle, request.method(), delivery);
        let begun = bundle.begun.get();
        if begun >= limits.connection_requests {
            bundle.goaway.notify_one();
        }
        let front = Front::new(worker.clone(), Way::Lane(lane.clone()), caller, begun);
        async move { lane.deliver(front.answer(request).await).await }
    });
    let mut connection = pin!(protocol(shared).serve_connection(TokioIo::new(tap), service));
    let (idle, stalled) = (limits.header_timeout(), limits.body_timeout() + limits.write_timeout());
    let mut look = tokio::time::interval((idle.min(stalled) / 4).clamp(LINGER / 100, LINGER));
    look.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let mut closing = phase.clone();
    let mut ending = false;
    let ended = loop {
        tokio::select! {
            ended = connection.as_mut() => break Some(ended),
            () = bundle.goaway.notified(), if !ending => {
                if bundle.is_abused() {
                    flooded.set(true);
                    break None;
                }
                connection.as_mut().graceful_shutdown();
                ending = true;
            }
            _ = phase.wait_for(|phase| *phase >= Phase::Draining), if !ending => {
                connection.as_mut().graceful_shutdown();
                ending = true;
            }
            _ = closing.wait_for(|phase| *phase >= Phase::Closed) => break None,
            _ = look.tick() => {
                let (quiet, owes) = (bundle.quiet(), bundle.open.get() > 0);
                if owes && quiet > stalled {
                    traffic.http2_stalled.fetch_add(1, Ordering::Relaxed);
                    break None;
                }
                let is_idle = !owes && (ending || bundle.silent.get() == 0);
                if is_idle && ending && quiet > LINGER {
                    break None;
                }
                if is_idle && !ending && quiet > idle {
                    connection.as_mut().graceful_shutdown();
                    ending = true;
                }
            }
        }
    };
    let calmed = matches!(&ended, Some(Err(error)) if is_calmed(error));
    if flooded.get() || calmed {
        traffic.http2_floods.fetch_add(1, Ordering::Relaxed);
    }
    if let Some(Err(error)) = ended {
        tracing::debug!("HTTP/2 connection ended: {error}");
    }
}

/// Whether HTTP/2 itself has found the peer to be flooding.
fn is_calmed(error: &hyper::Error) -> bool {
    let cause = std::error::Error::source(error).and_then(|cause| cause.downcast_ref::<h2::Error>());
    cause.is_some_and(|cause| !cause.is_remote() && cause.reason() == Some(h2::Reason::ENHANCE_YOUR_CALM))
}

/// The stream below HTTP/2: it gives back what was read before, and watches what goes over it.
struct Tap {
    stream: Stream,
    /// What is still to be read of what was read before.
    begun: Bytes,
    bundle: Rc<Bundle>,
    /// How many requests had begun, and what was read since.
    read_since: (u64, u64),
    /// What one request may bring.
    request_bytes: u64,
    flooded: Rc<Cell<bool>>,
    patience: Patience,
}

impl Tap {
    /// Notes that so many bytes came; an error when they bring no requests.
    fn watch(&mut self, bytes: usize) -> io::Result<()> {
        let begun = self.bundle.begun.get();
        if self.read_since.0 != begun {
            self.read_since = (begun, 0);
        }
        self.read_since.1 += bytes as u64;
        let open = (self.bundle.open.get() + self.bundle.silent.get()) as u64;
        if self.read_since.1 > MOST_CONTROL.saturating_add((1 + open).saturating_mul(self.request_bytes)) {
            self.flooded.set(true);
            return Err(io::Error::other("too much came that is no request"));
        }
        Ok(())
    }
}

impl AsyncRead for Tap {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        if !this.begun.is_empty() {
            let bytes = this.begun.len().min(buf.remaining());
            buf.put_slice(&this.begun[..bytes]);
            this.begun.advance(bytes);
            return Poll::Ready(Ok(()));
        }
        let before = buf.filled().len();
        ready!(Pin::new(&mut this.stream).poll_read(cx, buf))?;
        Poll::Ready(this.watch(buf.filled().len() - before))
    }
}

impl AsyncWrite for Tap {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let tried = Pin::new(&mut this.stream).poll_write(cx, buf);
        this.patience.limit(cx, tried)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let this = self.get_mut();
        let tried = Pin::new(&mut this.stream).poll_write_vectored(cx, bufs);
        this.patience.limit(cx, tried)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let this = self.get_mut();
        let flushed = Pin::new(&mut this.stream).poll_flush(cx);
        if flushed.is_ready() { flushed } else { this.patience.limit(cx, flushed) }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.get_mut().stream).poll_shutdown(cx)
    }
}
