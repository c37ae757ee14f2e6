//! The stream under hyper. It stays ours while hyper works on it, so that what hyper leaves can be dealt with: a
//! connection closed over unread bytes is reset by the kernel, and the refusal just written is lost with it.

use std::cell::{Cell, RefCell};
use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper::rt::{Read, ReadBufCursor, Write};
use hyper_util::rt::TokioIo;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use tokio::sync::watch;

use super::Phase;
use super::playback::{Ended, Playback};
use crate::faults::Script;
use crate::timer::Waits;

/// How long, and for how many bytes, a refused caller is heard out.
const LINGER: Duration = Duration::from_secs(1);
const MAX_DISCARDED: usize = 1 << 20;

/// One connection's stream, shared between hyper and the one who runs hyper, both on one thread.
#[derive(Clone)]
pub(super) struct Wire(Rc<Parts>);

struct Parts {
    stream: RefCell<TokioIo<TcpStream>>,
    /// Whether something was written since something was last read.
    answered: Cell<bool>,
    /// What scripts wait by.
    waits: Rc<Waits>,
    /// How the next reply is to be delivered, when not at once and whole.
    playback: RefCell<Option<Playback>>,
    /// Whether the connection is to be reset.
    reset: Cell<bool>,
    /// How long the peer may take no bytes, and when that is over.
    write_timeout: Duration,
    write_deadline: RefCell<Option<Pin<Box<tokio::time::Sleep>>>>,
}

/// What is said where hyper closes without a word: to a head that outgrows its buffer, or that is HTTP/2's.
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

impl Wire {
    pub(super) fn new(stream: TcpStream, write_timeout: Duration, waits: Rc<Waits>) -> Wire {
        Wire(Rc::new(Parts {
            stream: RefCell::new(TokioIo::new(stream)),
            answered: Cell::new(false),
            write_timeout,
            write_deadline: RefCell::new(None),
            waits,
            playback: RefCell::new(None),
            reset: Cell::new(false),
        }))
    }

    /// Has the next reply delivered by a script, or lost and the script played over no bytes.
    pub(super) fn play(&self, script: Script, lost: bool) {
        *self.0.playback.borrow_mut() = Some(Playback::new(script, lost, self.0.waits.clone()));
    }

    /// Waits for a delay of a fault.
    pub(super) async fn wait(&self, delay: Duration) {
        self.0.waits.until(std::time::Instant::now() + delay).await;
    }

    /// Plays a script on a connection that speaks no HTTP yet, until it ends or everything closes. Whether HTTP follows.
    pub(super) async fn play_alone(&self, script: Script, mut phase: watch::Receiver<Phase>) -> bool {
        let mut playback = Playback::new(script, true, self.0.waits.clone());
        let played = std::future::poll_fn(|cx| playback.poll(&mut self.0.stream.borrow_mut(), cx));
        tokio::select! {
            played = played => played.is_ok_and(|ended| ended == Ended::Open),
            _ = phase.wait_for(|phase| *phase >= Phase::Draining) => false,
        }
    }

    /// Goes on with the script, if there is one; an error ends the connection.
    fn poll_playback(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut playback = self.0.playback.borrow_mut();
        let Some(script) = playback.as_mut().filter(|script| script.has_reply()) else {
            return Poll::Ready(Ok(()));
        };
        let ended = ready!(script.poll(&mut self.0.stream.borrow_mut(), cx))?;
        *playback = None;
        match ended {
            Ended::Open => Poll::Ready(Ok(())),
            Ended::Closed => Poll::Ready(Err(io::ErrorKind::ConnectionAborted.into())),
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

    /// Passes a write's progress on; without any for too long it fails, so that a peer that never reads does not hold its
    /// reply for ever.
    fn watch(&self, written: Poll<io::Result<usize>>, cx: &mut Context<'_>) -> Poll<io::Result<usize>> {
        let mut deadline = self.0.write_deadline.borrow_mut();
        if written.is_ready() {
            *deadline = None;
            return written;
        }
        let sleep = deadline.get_or_insert_with(|| Box::pin(tokio::time::sleep(self.0.write_timeout)));
        match sleep.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(io::ErrorKind::TimedOut.into())),
            Poll::Pending => Poll::Pending,
        }
    }

    /// Once hyper has given up: says why, if nobody has, and reads what the peer still sends, keeping nothing, until it
    /// ends or has been heard out.
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
        _ = stream.shutdown().await;
        let mut waste = [0; 4096];
        let mut heard = 0;
        let hear_out = async {
            while heard < MAX_DISCARDED {
                match stream.read(&mut waste).await {
                    Ok(0) | Err(_) => return,
                    Ok(read) => heard += read,
                }
            }
        };
        _ = tokio::time::timeout(LINGER, hear_out).await;
    }

    fn inner<T>(&self, poll: impl FnOnce(Pin<&mut TokioIo<TcpStream>>) -> T) -> T {
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
        let written = self.inner(|stream| stream.poll_write(cx, buf));
        self.watch(written, cx)
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
        let written = self.inner(|stream| stream.poll_write_vectored(cx, bufs));
        self.watch(written, cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.inner(|stream| stream.is_write_vectored())
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        ready!(self.poll_playback(cx))?;
        self.inner(|stream| stream.poll_flush(cx))
    }

    /// Left to the one who runs hyper: a stream shut down could no longer say why.
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
