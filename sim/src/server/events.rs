//! `GET /journal/stream`: the journal as server-sent events, for as long as somebody listens.

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use bytes::Bytes;
use hyper::body::{Body, Frame};
use tokio::sync::watch;
use tokio::time::{Instant, Sleep};

use super::{Phase, Shared};
use crate::journal::Subscriber;

/// Streams open at once.
const MAX_OPEN: u64 = 16;
/// How often the journal is looked at: what an event is late by at most.
const PAUSE: Duration = Duration::from_millis(50);
/// After so long without an event a comment says that the stream is alive.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Looks at the journal that find nothing before others get their turn.
const MOST_LOOKS: usize = 64;

/// The body of a stream.
pub(super) struct Events {
    shared: Arc<Shared>,
    subscriber: Subscriber,
    phase: watch::Receiver<Phase>,
    pause: Pin<Box<Sleep>>,
    /// When something was last said; `None` before the first comment.
    said: Option<Instant>,
}

impl Events {
    /// Opens a stream, unless too many are open.
    pub(super) fn open(
        shared: &Arc<Shared>,
        subscriber: Subscriber,
        phase: watch::Receiver<Phase>,
    ) -> Result<Events, String> {
        if shared.streams.fetch_add(1, Ordering::Relaxed) >= MAX_OPEN {
            shared.streams.fetch_sub(1, Ordering::Relaxed);
            return Err(format!("{MAX_OPEN} streams of the journal are open, which is the most; close one"));
        }
        let pause = Box::pin(tokio::time::sleep(PAUSE));
        Ok(Events { shared: shared.clone(), subscriber, phase, pause, said: None })
    }

    fn say(&mut self, text: Vec<u8>) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        self.said = Some(Instant::now());
        Poll::Ready(Some(Ok(Frame::data(text.into()))))
    }
}

impl Body for Events {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        let this = &mut *self;
        let Some(said) = this.said else {
            // A client sees at once that it is heard.
            return this.say(b": the journal of dealer-sim\n\n".to_vec());
        };
        loop {
            // Looked at first: what was recorded before everything closed is still told.
            let is_over = *this.phase.borrow() == Phase::Over;
            let mut out = Vec::new();
            for _ in 0..MOST_LOOKS {
                this.subscriber.poll_events(&this.shared.world.journal, &mut out);
                if !out.is_empty() {
                    return this.say(out);
                }
                if !this.subscriber.is_behind(&this.shared.world.journal) {
                    break;
                }
            }
            if is_over {
                return Poll::Ready(None);
            }
            if said.elapsed() >= KEEP_ALIVE {
                return this.say(b":\n\n".to_vec());
            }
            ready!(this.pause.as_mut().poll(cx));
            this.pause.as_mut().reset(Instant::now() + PAUSE);
        }
    }
}

impl Drop for Events {
    fn drop(&mut self) {
        self.shared.streams.fetch_sub(1, Ordering::Relaxed);
    }
}
