//! Plays a delivery script: takes a reply's bytes from hyper, which owns framing, and sends them as the script says.

use std::collections::VecDeque;
use std::future::Future as _;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use hyper::rt::Write as _;

use super::stream::Io;
use crate::faults::script::edit_head;
use crate::faults::{Script, Step};
use crate::journal::DeliveryState;
use crate::timer::{Until, Waits};

/// A script under way.
pub(super) struct Playback {
    steps: VecDeque<Step>,
    /// The reply as hyper wrote it, and how much of it is sent.
    reply: Vec<u8>,
    sent: usize,
    /// Where the step under way stops sending.
    until: Option<usize>,
    /// Bytes beside the reply that the step under way sends, and how many of them are sent.
    beside: Option<(Vec<u8>, usize)>,
    /// Whether the reply is lost: the script is played over no bytes.
    lost: bool,
    taken: bool,
    /// Bytes that went out, of the reply and beside it.
    handed: u64,
    /// Whether some of the reply was left out.
    skipped: bool,
    /// Whether the sending side was closed before the rest.
    half_closed: bool,
    waits: Rc<Waits>,
    waiting: Option<Until>,
    /// When the last wait was due: the next one counts from there, so that a drip keeps its rate however late a wake-up is.
    due: Option<Instant>,
}

/// How a script leaves its connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Ended {
    /// As HTTP wants it.
    Open,
    /// Closed by FIN.
    Closed,
    /// Left open until the peer went.
    Silent,
    /// To be closed by RST.
    Reset,
}

impl Playback {
    pub(super) fn new(script: Script, lost: bool, waits: Rc<Waits>) -> Playback {
        Playback {
            steps: script.steps.into(),
            reply: Vec::new(),
            sent: 0,
            until: None,
            beside: None,
            lost,
            taken: false,
            handed: 0,
            skipped: false,
            half_closed: false,
            waits,
            waiting: None,
            due: None,
        }
    }

    /// Takes bytes from hyper.
    pub(super) fn take(&mut self, bytes: &[u8]) {
        self.taken = true;
        if !self.lost {
            self.reply.extend_from_slice(bytes);
        }
    }

    /// Whether hyper has written anything yet.
    pub(super) fn has_reply(&self) -> bool {
        self.taken
    }

    /// Bytes that went out so far.
    pub(super) fn handed(&self) -> u64 {
        self.handed
    }

    /// What the client got, by how the script ended.
    pub(super) fn state(&self, ended: Ended) -> DeliveryState {
        let is_whole = !self.lost && !self.skipped && self.sent >= self.reply.len();
        match ended {
            Ended::Open => DeliveryState::Complete,
            Ended::Reset => DeliveryState::Reset,
            Ended::Closed | Ended::Silent if is_whole => DeliveryState::Complete,
            Ended::Silent if !self.half_closed => DeliveryState::Silent,
            Ended::Closed | Ended::Silent => DeliveryState::Cut,
        }
    }

    /// Whether nothing more is to be said until the peer goes.
    pub(super) fn is_silent(&self) -> bool {
        self.steps.front() == Some(&Step::Silence)
    }

    /// A wait from the end of the one before. Time that a slow peer took meanwhile is not made up for: the next piece goes
    /// at once, and the schedule moves.
    fn wait(&mut self, time: Duration) -> Until {
        let now = Instant::now();
        let due = self.due.map_or(now + time, |before| (before + time).max(now));
        self.due = Some(due);
        self.waits.until(due)
    }

    /// Goes on with the script.
    pub(super) fn poll(&mut self, stream: &mut Io, cx: &mut Context<'_>) -> Poll<io::Result<Ended>> {
        loop {
            if let Some(waiting) = &mut self.waiting {
                ready!(Pin::new(waiting).poll(cx));
                self.waiting = None;
            }
            if let Some(until) = self.until {
                ready!(poll_send(&self.reply[..until], &mut self.sent, &mut self.handed, stream, cx))?;
                self.until = None;
            }
            if let Some((bytes, sent)) = &mut self.beside {
                ready!(poll_send(bytes, sent, &mut self.handed, stream, cx))?;
                self.beside = None;
            }
            // A script that says nothing of the rest leaves it to HTTP.
            let Some(step) = self.steps.pop_front() else {
                if self.sent < self.reply.len() {
                    self.until = Some(self.reply.len());
                    continue;
                }
                return Poll::Ready(Ok(Ended::Open));
            };
            match step {
                Step::Write(bytes) => {
                    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
                    self.until = Some(self.sent.saturating_add(bytes).min(self.reply.len()));
                }
                Step::Drip { bytes, every } => {
                    let piece = usize::try_from(bytes.max(1)).unwrap_or(usize::MAX);
                    self.until = Some(self.sent.saturating_add(piece).min(self.reply.len()));
                    if self.until < Some(self.reply.len()) {
                        self.steps.push_front(step);
                        self.steps.push_front(Step::Wait(every));
                    }
                }
                Step::Head { without, with } => {
                    let rest = &self.reply[self.sent..];
                    let length = memchr::memmem::find(rest, b"\r\n\r\n").map_or(0, |at| at + 4);
                    self.beside = Some((edit_head(&rest[..length], without, with), 0));
                    self.sent += length;
                }
                Step::WriteRaw(bytes) => self.beside = Some((bytes.to_vec(), 0)),
                Step::Skip(bytes) => {
                    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX);
                    self.skipped = true;
                    self.sent = self.sent.saturating_add(bytes).min(self.reply.len());
                }
                Step::Wait(time) => self.waiting = Some(self.wait(time)),
                Step::Silence => {
                    if stream.inner_mut().poll_peer_gone(cx).is_pending() {
                        self.steps.push_front(Step::Silence);
                        return Poll::Pending;
                    }
                    return Poll::Ready(Ok(Ended::Silent));
                }
                Step::HalfClose => {
                    self.half_closed = true;
                    // To shut a stream down does not wait, unless the peer has stopped reading under TLS.
                    _ = Pin::new(&mut *stream).poll_shutdown(cx)?;
                    self.steps.clear();
                    self.steps.push_back(Step::Silence);
                }
                Step::Close => return Poll::Ready(Ok(Ended::Closed)),
                Step::Reset => {
                    stream.inner().reset_on_close()?;
                    return Poll::Ready(Ok(Ended::Reset));
                }
            }
        }
    }
}

/// Sends the bytes behind the first `sent`.
fn poll_send(
    bytes: &[u8],
    sent: &mut usize,
    handed: &mut u64,
    stream: &mut Io,
    cx: &mut Context<'_>,
) -> Poll<io::Result<()>> {
    while *sent < bytes.len() {
        match ready!(Pin::new(&mut *stream).poll_write(cx, &bytes[*sent..]))? {
            0 => return Poll::Ready(Err(io::ErrorKind::WriteZero.into())),
            more => {
                *sent += more;
                *handed += more as u64;
            }
        }
    }
    // TLS keeps what the network does not take at once.
    Pin::new(&mut *stream).poll_flush(cx)
}
