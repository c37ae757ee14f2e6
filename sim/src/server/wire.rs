//! The stream under hyper. It stays ours while hyper works on it, so that what hyper leaves can be dealt with: a
//! connection closed over unread bytes is reset by the kernel, and the refusal just written is lost with it.

use std::cell::{Cell, RefCell};
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::sync::watch;

use super::Phase;
use super::delivery::{Delivery, Held};
use super::playback::{Ended, Playback};
use super::stream::{Io, Patience, Stream};
use crate::faults::Script;
use crate::journal::{DeliveryState, Pending};
use crate::timer::Waits;

/// How long, and for how many bytes, a refused caller is heard out.
const LINGER: Duration = Duration::from_secs(1);
const MAX_DISCARDED: usize = 1 << 20;

/// One connection's stream, shared between hyper and the one who runs hyper, both on one thread.
#[derive(Clone)]
pub(super) struct Wire(Rc<Parts>);

struct Parts {
    stream: RefCell<Io>,
    /// Whether something was written since something was last read.
    answered: Cell<bool>,
    /// What scripts wait by.
    waits: Rc<Waits>,
    /// How the next reply is to be delivered, when not at once and whole.
    playback: RefCell<Option<Playback>>,
    delivery: RefCell<Delivery>,
    /// Whether the connection is to be reset.
    reset: Cell<bool>,
    /// How long the peer may take no bytes.
    patience: RefCell<Patience>,
}

/// What is said where hyper closes without a word: to a head that outgrows its buffer, or that is no HTTP.
fn refusal(error: &hyper::Error) -> Option<String> {
    let status = match (error.is_parse_too_large(), error.is_parse()) {
        (true, _) => "431 Request Header Fields Too Large",
        (false, true) => "400 Bad Request",
        (false, false) => return None,
    };
    let version = env!("CARGO_PKG_VERSION");
    Some(format!(
        "HTTP/1.1 {status}\r\nserver: dealer-sim/{version}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n"
    ))
}

/// Ends our side, and reads what the peer still sends, keeping nothing, until it ends or has been heard out.
pub(super) async fn hear_out(mut stream: Stream) {
    let hear_out = async {
        _ = stream.shutdown().await;
        let mut waste = [0; 4096];
        let mut heard = 0;
        while heard < MAX_DISCARDED {
            match stream.read(&mut waste).await {
                Ok(0) | Err(_) => return,
                Ok(read) => heard += read,
            }
        }
    };
    _ = tokio::time::timeout(LINGER, hear_out).await;
}

impl Wire {
    pub(super) fn new(stream: Stream, write_timeout: Duration, waits: Rc<Waits>, delivery: Delivery) -> Wire {
        Wire(Rc::new(Parts {
            stream: RefCell::new(TokioIo::new(stream)),
            answered: Cell::new(false),
            patience: RefCell::new(Patience::new(write_timeout)),
            waits,
            playback: RefCell::new(None),
            delivery: RefCell::new(delivery),
            reset: Cell::new(false),
        }))
    }

    /// Has the next reply delivered by a script, or lost and the script played over no bytes.
    pub(super) fn play(&self, script: Script, lost: bool) {
        *self.0.playback.borrow_mut() = Some(Playback::new(script, lost, self.0.waits.clone()));
    }

    /// Takes the next request, once the reply before it is delivered: a client may ask again before it has its answer.
    pub(super) async fn take_request(&self) {
        std::future::poll_fn(|cx| self.0.delivery.borrow_mut().poll_begin(cx)).await;
    }

    /// Lends what is to be recorded of the request under way, if anything is.
    pub(super) fn with_pending<T>(&self, work: impl FnOnce(Option<&mut Pending>) -> T) -> T {
        work(self.0.delivery.borrow_mut().pending())
    }

    /// Keeps the body of a call until it is recorded, if it is.
    pub(super) fn keep_request(&self, body: &Bytes) {
        self.0.delivery.borrow_mut().keep_request(body);
    }

    /// Keeps the share of a large reply until its delivery has ended.
    pub(super) fn hold(&self, held: Held) {
        self.0.delivery.borrow_mut().hold(held);
    }

    /// The reply is handed to hyper.
    pub(super) fn reply_begins(&self) {
        self.0.delivery.borrow_mut().reply_begins();
    }

    /// hyper has taken all of the reply.
    pub(super) fn reply_is_written(&self) {
        self.0.delivery.borrow_mut().set_written();
    }

    /// The connection has ended: what was still to be delivered is not. `by_stop`: since everything closes.
    pub(super) fn ended(&self, by_stop: bool) {
        let mut delivery = self.0.delivery.borrow_mut();
        let mut state = if by_stop { DeliveryState::Cut } else { DeliveryState::ClientGone };
        if let Some(playback) = &*self.0.playback.borrow() {
            delivery.set_bytes(playback.handed());
            if playback.is_silent() {
                state = DeliveryState::Silent;
            }
        }
        delivery.finish(state);
    }

    /// Waits for a delay of a fault.
    pub(super) async fn wait(&self, delay: Duration) {
        self.0.waits.until(std::time::Instant::now() + delay).await;
    }

    /// Plays a script on a connection that speaks no HTTP yet, until it ends or everything closes. Whether HTTP follows.
    pub(super) async fn play_alone(&self, script: Script, mut phase: watch::Receiver<Phase>) -> bool {
        self.0.delivery.borrow_mut().begin_unasked();
        let mut playback = Playback::new(script, true, self.0.waits.clone());
        let ended = {
            let played = std::future::poll_fn(|cx| self.play_on(&mut playback, cx));
            tokio::select! {
                ended = played => Some(ended),
                _ = phase.wait_for(|phase| *phase >= Phase::Draining) => None,
            }
        };
        if ended.is_none() {
            let state = if playback.is_silent() { DeliveryState::Silent } else { DeliveryState::Cut };
            self.0.delivery.borrow_mut().finish(state);
        }
        matches!(ended, Some(Ok(Ended::Open)))
    }

    /// Goes on with a script; its end is the end of the delivery, unless it leaves the connection to HTTP.
    fn play_on(&self, script: &mut Playback, cx: &mut Context<'_>) -> Poll<io::Result<Ended>> {
        let mut delivery = self.0.delivery.borrow_mut();
        delivery.begin_writing();
        let played = script.poll(&mut self.0.stream.borrow_mut(), cx);
        delivery.set_bytes(script.handed());
        match &played {
            Poll::Pending => delivery.pause_writing(),
            Poll::Ready(Ok(ended)) => delivery.finish(script.state(*ended)),
            Poll::Ready(Err(_)) => delivery.finish(DeliveryState::ClientGone),
        }
        played
    }

    /// Goes on with the script, if there is one and it has its reply; an error ends the connection.
    fn poll_playback(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut playback = self.0.playback.borrow_mut();
        let has_reply = |script: &&mut Playback| script.has_reply() && self.0.delivery.borrow().is_written();
        let Some(script) = playback.as_mut().filter(has_reply) else {
            return Poll::Ready(Ok(()));
        };
        let ended = ready!(self.play_on(script, cx));
        *playback = None;
        match ended? {
            Ended::Open => Poll::Ready(Ok(())),
            Ended::Closed | Ended::Silent => Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into())),
            Ended::Reset => {
                self.0.reset.set(true);
                Poll::Ready(Err(io::ErrorKind::ConnectionReset.into()))
            }
        }
    }

    /// Takes bytes for the script, if there is one.
    fn take_for_playback(&self, bytes: &[u8]) -> bool {
        match self.0.playback.borrow_mut().as_mut() {
            Some(script) => {
                script.take(bytes);
                true
            }
            None => false,
        }
    }

    /// Writes, and passes the progress on; without any for too long it fails.
    fn write(
        &self,
        cx: &mut Context<'_>,
        write: impl FnOnce(Pin<&mut Io>, &mut Context<'_>) -> Poll<io::Result<usize>>,
    ) -> Poll<io::Result<usize>> {
        let mut delivery = self.0.delivery.borrow_mut();
        delivery.begin_writing();
        let written = write(Pin::new(&mut *self.0.stream.borrow_mut()), cx);
        match &written {
            Poll::Ready(Ok(bytes)) => delivery.add_bytes(*bytes as u64),
            Poll::Ready(Err(_)) => delivery.finish(DeliveryState::ClientGone),
            Poll::Pending => delivery.pause_writing(),
        }
        let was_pending = written.is_pending();
        let written = self.0.patience.borrow_mut().limit(cx, written);
        if was_pending && written.is_ready() {
            delivery.finish(DeliveryState::Cut);
        }
        written
    }

    /// Flushes what TLS has kept, in the same time.
    fn flush(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = self.inner(|stream| stream.poll_flush(cx));
        if flushed.is_ready() {
            return flushed;
        }
        let mut delivery = self.0.delivery.borrow_mut();
        delivery.pause_writing();
        let flushed = self.0.patience.borrow_mut().limit(cx, flushed);
        if flushed.is_ready() {
            delivery.finish(DeliveryState::Cut);
        }
        flushed
    }

    /// The stream and what is to be recorded, once nobody else holds them.
    pub(super) fn into_parts(self) -> Option<(Stream, Delivery)> {
        let Parts { stream, delivery, .. } = Rc::try_unwrap(self.0).ok()?;
        Some((stream.into_inner().into_inner(), delivery.into_inner()))
    }

    /// Says goodbye as TLS wants it; a plain stream needs none.
    pub(super) async fn close(self) {
        if let Some((mut stream @ Stream::Other(_), _)) = self.into_parts() {
            _ = tokio::time::timeout(LINGER, stream.shutdown()).await;
        }
    }

    /// Once hyper has given up: says why, if nobody has, and hears the peer out.
    pub(super) async fn end_after(self, error: &hyper::Error) {
        // hyper has dropped its half, so that the stream is ours alone again.
        let Ok(parts) = Rc::try_unwrap(self.0) else { return };
        if parts.reset.get() {
            return;
        }
        let mut stream = parts.stream.into_inner().into_inner();
        if let Some(refusal) = refusal(error).filter(|_| !parts.answered.get())
            && stream.write_all(refusal.as_bytes()).await.is_err()
        {
            return;
        }
        hear_out(stream).await;
    }

    fn inner<T>(&self, poll: impl FnOnce(Pin<&mut Io>) -> T) -> T {
        poll(Pin::new(&mut *self.0.stream.borrow_mut()))
    }
}

impl Read for Wire {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: ReadBufCursor<'_>) -> Poll<io::Result<()>> {
        self.0.answered.set(false);
        self.inner(|stream| stream.poll_read(cx, buf))
    }
}

impl Write for Wire {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        self.0.answered.set(true);
        if self.take_for_playback(buf) {
            return Poll::Ready(Ok(buf.len()));
        }
        self.write(cx, |stream, cx| stream.poll_write(cx, buf))
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.0.answered.set(true);
        if self.0.playback.borrow().is_some() {
            let taken = bufs.iter().map(|buf| {
                self.take_for_playback(buf);
                buf.len()
            });
            return Poll::Ready(Ok(taken.sum()));
        }
        self.write(cx, |stream, cx| stream.poll_write_vectored(cx, bufs))
    }

    fn is_write_vectored(&self) -> bool {
        self.inner(|stream| stream.is_write_vectored())
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_playback(cx))?;
        // A TCP stream has nothing to flush: what was written is with the network.
        ready!(self.flush(cx))?;
        self.0.delivery.borrow_mut().flushed();
        Poll::Ready(Ok(()))
    }

    /// Left to the one who runs hyper: a stream shut down could no longer say why.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
