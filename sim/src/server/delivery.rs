//! What a client really gets of a reply: how many bytes went out, how it ended, and the record of it.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::{Body, Frame, SizeHint};

use super::Shared;
use super::wire::Wire;
use crate::journal::{Delivery as Delivered, DeliveryState, Pending, Shard};

/// The delivery under way on a connection; there is one at a time, so that every byte belongs to one reply.
pub(super) struct Delivery {
    /// Whether a request was taken whose reply is not all with the network.
    is_owed: bool,
    /// Whether hyper has taken all of the reply.
    is_written: bool,
    bytes: u64,
    /// What it was when it is dropped before its end.
    otherwise: DeliveryState,
    /// The share of a large reply in what may wait for readers.
    held: Option<Held>,
    /// Who waits to take the next request.
    waiting: Option<Waker>,
    record: Option<Box<Record>>,
}

/// A share in the bytes of large replies that may wait for those who do not read them.
pub(super) struct Held {
    shared: Arc<Shared>,
    bytes: u64,
}

/// Replies up to this size are not counted: the kernel takes them.
const LARGE: usize = 64 << 10;

impl Held {
    /// Takes a share for a reply, if it needs one.
    ///
    /// # Errors
    /// Where too much waits already.
    pub(super) fn take(shared: &Arc<Shared>, reply: &Bytes) -> Result<Option<Held>, ()> {
        if reply.len() <= LARGE {
            return Ok(None);
        }
        let bytes = reply.len() as u64;
        let traffic = &shared.world.traffic;
        let held = Held { shared: shared.clone(), bytes };
        let before = traffic.reply_bytes_waiting.fetch_add(bytes, Ordering::Relaxed);
        // One is always let through, however large.
        if before > 0 && before + bytes > shared.limits.waiting_reply_bytes {
            traffic.replies_refused.fetch_add(1, Ordering::Relaxed);
            return Err(());
        }
        Ok(Some(held))
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.shared.world.traffic.reply_bytes_waiting.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

struct Record {
    shared: Arc<Shared>,
    shard: Shard,
    pending: Pending,
}

impl Delivery {
    /// Of a connection with this ordinal. Without a shard nothing is recorded.
    pub(super) fn new(shared: Arc<Shared>, shard: Option<Shard>, connection: u64) -> Delivery {
        let record = shard.map(|shard| Box::new(Record { shared, shard, pending: Pending::new(connection) }));
        let otherwise = DeliveryState::ClientGone;
        Delivery { is_owed: false, is_written: false, bytes: 0, otherwise, held: None, waiting: None, record }
    }

    /// Takes the next request, once the reply before it is delivered.
    pub(super) fn poll_begin(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        if self.is_owed {
            self.waiting = Some(cx.waker().clone());
            return Poll::Pending;
        }
        self.begin();
        Poll::Ready(())
    }

    fn begin(&mut self) {
        self.is_owed = true;
        self.is_written = false;
        self.bytes = 0;
        if let Some(record) = &mut self.record {
            record.pending.ordinal += 1;
        }
    }

    /// Begins a delivery that no request asked for.
    pub(super) fn begin_unasked(&mut self) {
        self.begin();
        if let Some(record) = &mut self.record {
            record.pending.ordinal = 0;
        }
    }

    /// Begins the delivery of the request with this ordinal on its connection, which shares it with others.
    pub(super) fn begin_as(&mut self, ordinal: u64) {
        self.begin();
        if let Some(record) = &mut self.record {
            record.pending.ordinal = ordinal;
        }
    }

    /// Whether a request was taken whose delivery has not ended.
    pub(super) fn is_owed(&self) -> bool {
        self.is_owed
    }

    /// Says what it was if it is dropped as it is now.
    pub(super) fn expect(&mut self, state: DeliveryState) {
        self.otherwise = state;
    }

    /// Keeps the body of a call until it is recorded, if it is.
    pub(super) fn keep_request(&mut self, body: &Bytes) {
        if let Some(record) = &mut self.record {
            record.pending.keep_request(body, &record.shard);
        }
    }

    /// What is to be recorded, if anything is.
    pub(super) fn pending(&mut self) -> Option<&mut Pending> {
        self.record.as_mut().map(|record| &mut record.pending)
    }

    /// Begins to count: what went out so far was no reply (`100 Continue`).
    pub(super) fn reply_begins(&mut self) {
        self.bytes = 0;
    }

    /// Keeps the reply's share until the delivery has ended.
    pub(super) fn hold(&mut self, held: Held) {
        self.held = Some(held);
    }

    pub(super) fn set_written(&mut self) {
        self.is_written = true;
    }

    pub(super) fn is_written(&self) -> bool {
        self.is_written
    }

    /// Bytes are about to go out, and what becomes of them is recorded before this thread does anything else.
    pub(super) fn begin_writing(&self) {
        if let Some(record) = self.record.as_ref().filter(|_| self.is_owed) {
            record.shard.begin_writing();
        }
    }

    /// The rest goes out later.
    pub(super) fn pause_writing(&self) {
        if let Some(record) = &self.record {
            record.shard.end_writing();
        }
    }

    pub(super) fn add_bytes(&mut self, bytes: u64) {
        self.bytes += bytes;
    }

    pub(super) fn set_bytes(&mut self, bytes: u64) {
        self.bytes = bytes;
    }

    /// Everything that hyper had is with the network: if that was the whole reply, it is complete.
    pub(super) fn flushed(&mut self) {
        if self.is_owed && self.is_written {
            self.finish(DeliveryState::Complete);
        } else {
            self.pause_writing();
        }
    }

    /// Ends the delivery, if one is under way, and records it.
    pub(super) fn finish(&mut self, state: DeliveryState) {
        if !std::mem::take(&mut self.is_owed) {
            return;
        }
        self.held = None;
        if let Some(record) = &mut self.record {
            let Record { shared, shard, pending } = &mut **record;
            if !pending.notes.is_empty() {
                let took_ns = shared.clocks.traffic_ns().saturating_sub(pending.traffic_ns);
                pending.record(shard, Delivered { bytes: self.bytes, state, took_ns });
            }
            shard.end_writing();
        }
        if let Some(waiting) = self.waiting.take() {
            waiting.wake();
        }
    }
}

impl Drop for Delivery {
    /// Whoever drops a connection without having said why did so because it was of no more use.
    fn drop(&mut self) {
        self.finish(self.otherwise);
    }
}

/// A reply's body, which tells its wire when hyper has taken all of it: what hyper flushes from then on ends the reply.
pub(super) struct Outgoing {
    body: Full<Bytes>,
    wire: Wire,
}

impl Outgoing {
    pub(super) fn new(body: Bytes, wire: Wire) -> Outgoing {
        Outgoing { body: Full::new(body), wire }
    }
}

impl Body for Outgoing {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

impl Drop for Outgoing {
    /// hyper drops a body once its last piece is in the buffer, or when there is none to send (HEAD, 304).
    fn drop(&mut self) {
        self.wire.reply_is_written();
    }
}
