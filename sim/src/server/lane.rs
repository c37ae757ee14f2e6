//! One stream of HTTP/2 and the delivery of its reply, with what scripts of faults do to it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::future::Future as _;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};
use std::time::{Duration, Instant};

use bytes::{Buf as _, Bytes};
use h2::Reason;
use hyper::body::{Body, Frame, SizeHint};
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Method, Response};
use tokio::sync::Notify;

use super::delivery::{Delivery, Held};
use crate::faults::on_stream::{OnStream, StreamEnd, on_stream};
use crate::faults::{Script, Step};
use crate::journal::{DeliveryState, Pending};
use crate::timer::{Until, Waits};

/// How long what was said has to go out before its stream is reset.
const TO_GO_OUT: Duration = Duration::from_millis(5);

/// Bytes that HTTP/2 is handed at once: it keeps them until the peer's window has room.
const PIECE: u64 = 16 << 10;

/// What the streams of a connection share.
pub(super) struct Bundle {
    /// What scripts wait by.
    pub(super) waits: Rc<Waits>,
    /// Requests whose reply is not all with HTTP/2, and those to which nothing more is said on purpose.
    pub(super) open: Cell<usize>,
    pub(super) silent: Cell<usize>,
    /// Requests begun.
    pub(super) begun: Cell<u64>,
    /// Those of them that the peer gave up before it had its reply, and how many these may be.
    given_up: Cell<u64>,
    most_given_up: u64,
    /// When a reply last moved on, or is to move on by a fault's own time.
    moved: Cell<Instant>,
    /// Wakes who ends the connection.
    pub(super) goaway: Notify,
}

impl Bundle {
    /// Of a connection on which so many requests may be given up, if they are half of all.
    pub(super) fn new(waits: Rc<Waits>, most_given_up: u64) -> Rc<Bundle> {
        Rc::new(Bundle {
            waits,
            open: Cell::new(0),
            silent: Cell::new(0),
            begun: Cell::new(0),
            given_up: Cell::new(0),
            most_given_up,
            moved: Cell::new(Instant::now()),
            goaway: Notify::new(),
        })
    }

    /// For how long no reply has moved on.
    pub(super) fn quiet(&self) -> Duration {
        self.moved.get().elapsed()
    }

    /// Whether the peer gives up too many of its requests (rapid reset, CVE-2023-44487).
    pub(super) fn is_abused(&self) -> bool {
        let given_up = self.given_up.get();
        given_up > self.most_given_up && given_up > self.begun.get() / 2
    }

    fn moves(&self) {
        self.moves_at(Instant::now());
    }

    fn moves_at(&self, at: Instant) {
        self.moved.set(self.moved.get().max(at));
    }
}

/// A stream, shared between the request's handler and the reply's body.
#[derive(Clone)]
pub(super) struct Lane(Rc<Parts>);

struct Parts {
    bundle: Rc<Bundle>,
    delivery: RefCell<Delivery>,
    script: RefCell<Option<(Script, bool)>>,
    is_head: bool,
    is_silent: Cell<bool>,
}

impl Lane {
    /// The stream of a request of this method.
    pub(super) fn begin(bundle: &Rc<Bundle>, method: &Method, mut delivery: Delivery) -> Lane {
        bundle.open.set(bundle.open.get() + 1);
        bundle.begun.set(bundle.begun.get() + 1);
        bundle.moves();
        delivery.begin_as(bundle.begun.get());
        Lane(Rc::new(Parts {
            bundle: bundle.clone(),
            delivery: RefCell::new(delivery),
            script: RefCell::new(None),
            is_head: method == Method::HEAD,
            is_silent: Cell::new(false),
        }))
    }

    pub(super) fn with_pending<T>(&self, work: impl FnOnce(Option<&mut Pending>) -> T) -> T {
        work(self.0.delivery.borrow_mut().pending())
    }

    pub(super) fn keep_request(&self, body: &Bytes) {
        self.0.delivery.borrow_mut().keep_request(body);
    }

    pub(super) fn hold(&self, held: Held) {
        self.0.delivery.borrow_mut().hold(held);
    }

    pub(super) fn play(&self, script: Script, lost: bool) {
        *self.0.script.borrow_mut() = Some((script, lost));
    }

    pub(super) async fn wait(&self, delay: Duration) {
        let due = Instant::now() + delay;
        self.0.bundle.moves_at(due);
        self.0.bundle.waits.until(due).await;
    }

    /// Has the connection say after a time that it takes no more, and end.
    pub(super) fn end_connection(&self, after: Duration) {
        let bundle = self.0.bundle.clone();
        tokio::task::spawn_local(async move {
            bundle.waits.until(Instant::now() + after).await;
            bundle.goaway.notify_one();
        });
    }

    /// The reply as hyper is to send it, or the error with which the stream is reset.
    pub(super) async fn deliver(self, reply: Response<Bytes>) -> Result<Response<Sending>, h2::Error> {
        let played = self.0.script.borrow_mut().take();
        let (mut head, mut body) = reply.into_parts();
        let length = head_bytes(&head.headers);
        let Some((script, lost)) = played else {
            self.take_body_off(&mut head.headers, &mut body);
            return Ok(Response::from_parts(head, Sending::new(self, body, length)));
        };
        let OnStream { before, has_head, without, with, body: steps, end } = on_stream(&script, length);
        if !before.is_zero() {
            self.wait(before).await;
        }
        if lost || !has_head {
            if end == StreamEnd::Silence {
                self.fall_silent();
                std::future::pending::<()>().await;
            }
            self.finish(match end {
                StreamEnd::Reset => DeliveryState::Reset,
                _ => DeliveryState::Cut,
            });
            return Err(reason(end).into());
        }
        // hyper tells the length of a body that it knows to be whole.
        head.headers.entry(header::CONTENT_LENGTH).or_insert_with(|| HeaderValue::from(body.len()));
        edit(&mut head.headers, without, with);
        self.take_body_off(&mut head.headers, &mut body);
        let mut sending = Sending::new(self, body, length);
        (sending.steps, sending.end) = (steps.into(), end);
        if !sending.ends_well() {
            // A reset takes back what has not gone out yet.
            sending.steps.push_back(Step::Wait(TO_GO_OUT));
        }
        Ok(Response::from_parts(head, sending))
    }

    /// A reply to HEAD says how long the body would be, and has none.
    fn take_body_off(&self, headers: &mut HeaderMap, body: &mut Bytes) {
        if self.0.is_head {
            headers.entry(header::CONTENT_LENGTH).or_insert_with(|| HeaderValue::from(body.len()));
            *body = Bytes::new();
        }
    }

    /// Says nothing more, until the peer gives the stream up.
    fn fall_silent(&self) {
        let Parts { bundle, delivery, is_silent, .. } = &*self.0;
        if !is_silent.replace(true) {
            delivery.borrow_mut().expect(DeliveryState::Silent);
            bundle.open.set(bundle.open.get() - 1);
            bundle.silent.set(bundle.silent.get() + 1);
        }
    }

    fn finish(&self, state: DeliveryState) {
        self.0.delivery.borrow_mut().finish(state);
    }
}

impl Drop for Parts {
    fn drop(&mut self) {
        let bundle = &self.bundle;
        bundle.moves();
        if self.is_silent.get() {
            bundle.silent.set(bundle.silent.get() - 1);
            return;
        }
        bundle.open.set(bundle.open.get() - 1);
        if self.delivery.get_mut().is_owed() {
            bundle.given_up.set(bundle.given_up.get() + 1);
            if bundle.is_abused() {
                bundle.goaway.notify_one();
            }
        }
    }
}

fn reason(end: StreamEnd) -> Reason {
    match end {
        StreamEnd::Garbled => Reason::PROTOCOL_ERROR,
        StreamEnd::Cancel => Reason::CANCEL,
        _ => Reason::INTERNAL_ERROR,
    }
}

/// About how long the head would be on HTTP/1.1: where a script cuts it, it is cut here, too.
fn head_bytes(headers: &HeaderMap) -> u64 {
    /// The status line, the date, the length and the blank line, which hyper writes.
    const OTHERS: usize = 17 + 37 + 21 + 2;
    let fields = headers.iter().map(|(name, value)| name.as_str().len() + value.len() + 4);
    (OTHERS + fields.sum::<usize>()) as u64
}

fn edit(headers: &mut HeaderMap, without: &'static str, with: &'static str) {
    if !without.is_empty() {
        headers.remove(without);
    }
    if let Some((name, value)) = with.trim_end().split_once(": ") {
        headers.append(HeaderName::from_static(name), HeaderValue::from_static(value));
    }
}

/// The body of a reply on its way.
pub(super) struct Sending {
    lane: Lane,
    rest: Bytes,
    steps: VecDeque<Step>,
    end: StreamEnd,
    waiting: Option<Until>,
    /// When the last wait was due; the next one counts from there.
    due: Option<Instant>,
    /// Bytes sent, with those that the head would have on HTTP/1.1.
    bytes: u64,
}

impl Sending {
    /// A whole body, at once.
    fn new(lane: Lane, body: Bytes, head_bytes: u64) -> Sending {
        Sending {
            lane,
            rest: body,
            steps: VecDeque::new(),
            end: StreamEnd::Whole,
            waiting: None,
            due: None,
            bytes: head_bytes,
        }
    }

    fn ends_well(&self) -> bool {
        matches!(self.end, StreamEnd::Whole | StreamEnd::GoAway(_))
    }

    fn frame(&mut self, piece: Bytes) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        self.bytes += piece.len() as u64;
        self.lane.0.bundle.moves();
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn take(&mut self, bytes: u64) -> Bytes {
        let bytes = usize::try_from(bytes).unwrap_or(usize::MAX).min(self.rest.len());
        self.rest.split_to(bytes)
    }

    fn wait(&mut self, time: Duration) {
        let now = Instant::now();
        let due = self.due.map_or(now + time, |before| (before + time).max(now));
        self.due = Some(due);
        let bundle = &self.lane.0.bundle;
        bundle.moves_at(due);
        self.waiting = Some(bundle.waits.until(due));
    }
}

impl Body for Sending {
    type Data = Bytes;
    type Error = h2::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, h2::Error>>> {
        let this = &mut *self;
        loop {
            if let Some(waiting) = &mut this.waiting {
                ready!(Pin::new(waiting).poll(cx));
                this.waiting = None;
            }
            let piece = match this.steps.pop_front() {
                Some(Step::Write(bytes)) => {
                    let piece = this.take(bytes.min(PIECE));
                    let left = if bytes == u64::MAX { bytes } else { bytes.saturating_sub(PIECE) };
                    if left > 0 && !this.rest.is_empty() {
                        this.steps.push_front(Step::Write(left));
                    }
                    piece
                }
                Some(step @ Step::Drip { bytes, every }) => {
                    let piece = this.take(bytes.max(1));
                    if !this.rest.is_empty() {
                        this.steps.push_front(step);
                        this.steps.push_front(Step::Wait(every));
                    }
                    piece
                }
                Some(Step::WriteRaw(bytes)) => Bytes::from_static(bytes),
                Some(Step::Skip(bytes)) => {
                    let bytes = usize::try_from(bytes).unwrap_or(usize::MAX).min(this.rest.len());
                    this.rest.advance(bytes);
                    continue;
                }
                Some(Step::Wait(time)) => {
                    this.wait(time);
                    continue;
                }
                Some(_) => continue,
                None if this.ends_well() => {
                    if this.rest.is_empty() {
                        return Poll::Ready(None);
                    }
                    this.take(PIECE)
                }
                None if this.end == StreamEnd::Silence => {
                    this.lane.fall_silent();
                    return Poll::Pending;
                }
                None => return Poll::Ready(Some(Err(reason(this.end).into()))),
            };
            if !piece.is_empty() {
                return this.frame(piece);
            }
        }
    }

    fn is_end_stream(&self) -> bool {
        self.ends_well()
            && self.rest.is_empty()
            && !self.steps.iter().any(|step| matches!(step, Step::WriteRaw(_)))
    }

    fn size_hint(&self) -> SizeHint {
        let is_whole = self.ends_well() && self.steps.is_empty();
        if is_whole { SizeHint::with_exact(self.rest.len() as u64) } else { SizeHint::default() }
    }
}

impl Drop for Sending {
    /// hyper drops a body once all of it is with HTTP/2, or when its stream is reset.
    fn drop(&mut self) {
        let mut delivery = self.lane.0.delivery.borrow_mut();
        delivery.set_bytes(self.bytes);
        match self.end {
            StreamEnd::Whole | StreamEnd::GoAway(_) if self.rest.is_empty() => {
                delivery.finish(DeliveryState::Complete);
            }
            StreamEnd::Reset if self.steps.is_empty() => delivery.finish(DeliveryState::Reset),
            StreamEnd::Cancel | StreamEnd::Garbled if self.steps.is_empty() => {
                delivery.finish(DeliveryState::Cut);
            }
            // The peer has given it up, or silence was meant: the delivery says so when it ends.
            _ => {}
        }
        drop(delivery);
        if let StreamEnd::GoAway(after) = self.end {
            self.lane.end_connection(after);
        }
    }
}
