//! The way of a reply: all of a connection under HTTP/1.1, one stream of it under HTTP/2.

use std::time::Duration;

use bytes::Bytes;

use super::delivery::Held;
use super::lane::Lane;
use super::wire::Wire;
use crate::faults::Script;
use crate::journal::Pending;

/// What the routes tell of a request to whoever delivers its reply.
#[derive(Clone)]
pub(super) enum Way {
    /// A connection.
    Wire(Wire),
    /// A stream.
    Lane(Lane),
}

impl Way {
    /// Takes the next request, once the reply before it is delivered: a client may ask again before it has its answer.
    pub(super) async fn take_request(&self) {
        // A stream has one request, and was begun with it.
        if let Way::Wire(wire) = self {
            wire.take_request().await;
        }
    }

    /// Lends what is to be recorded of the request under way, if anything is.
    pub(super) fn with_pending<T>(&self, work: impl FnOnce(Option<&mut Pending>) -> T) -> T {
        match self {
            Way::Wire(wire) => wire.with_pending(work),
            Way::Lane(lane) => lane.with_pending(work),
        }
    }

    /// Keeps the body of a call until it is recorded, if it is.
    pub(super) fn keep_request(&self, body: &Bytes) {
        match self {
            Way::Wire(wire) => wire.keep_request(body),
            Way::Lane(lane) => lane.keep_request(body),
        }
    }

    /// Keeps the share of a large reply until its delivery has ended.
    pub(super) fn hold(&self, held: Held) {
        match self {
            Way::Wire(wire) => wire.hold(held),
            Way::Lane(lane) => lane.hold(held),
        }
    }

    /// Has the reply delivered by a script, or lost and the script played over no bytes.
    pub(super) fn play(&self, script: Script, lost: bool) {
        match self {
            Way::Wire(wire) => wire.play(script, lost),
            Way::Lane(lane) => lane.play(script, lost),
        }
    }

    /// Waits for a delay of a fault.
    pub(super) async fn wait(&self, delay: Duration) {
        match self {
            Way::Wire(wire) => wire.wait(delay).await,
            Way::Lane(lane) => lane.wait(delay).await,
        }
    }

    /// The connection shall end after the reply. HTTP/1.1 says so in the reply's head.
    pub(super) fn end_connection(&self) {
        if let Way::Lane(lane) = self {
            lane.end_connection(Duration::ZERO);
        }
    }
}
