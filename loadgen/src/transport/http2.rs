//! HTTP/2: few connections, each shared by many requests as streams (RFC 9113). A request is written as HTTP/1.1 has it and
//! translated here; a reply is kept in that form, so that nothing else needs to know of it.

use std::cell::{Cell, RefCell};
use std::fmt::Write as _;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;
use h2::client::SendRequest;
use http::{HeaderName, HeaderValue, Method, Request, Uri, Version};
use tokio::sync::Notify;

use super::exchange::{Exchange, Reply, ReplySpan};
use super::fault::{Fault, Phase};
use super::pool::ConnectionCounts;
use super::{Config, ConnectTimes, http1, stream};
use crate::pacer::{Clock, Nanos};

/// Bytes of a stream, and of all streams of a connection, that the dealer may send ahead.
const STREAM_WINDOW: u32 = 1 << 20;
const CONNECTION_WINDOW: u32 = 16 << 20;
/// Buffers of replies that wait for their next use.
const MOST_SPARE: usize = 1000;
/// Fields that HTTP/2 has no place for (RFC 9113, section 8.2.2), and the one that it writes otherwise.
const LEFT_OUT: [&str; 6] =
    ["host", "connection", "keep-alive", "proxy-connection", "transfer-encoding", "upgrade"];

/// The connections of one worker.
#[derive(Debug)]
pub(super) struct Trunks {
    places: RefCell<Vec<Place>>,
    counts: Cell<ConnectionCounts>,
    spare: RefCell<Vec<Vec<u8>>>,
    /// Tells those who wait that there may be room.
    room: Arc<Notify>,
}

#[derive(Debug)]
enum Place {
    Empty,
    Opening,
    Open(Rc<Trunk>),
}

/// One connection.
#[derive(Debug)]
struct Trunk {
    send: SendRequest<Bytes>,
    /// Streams that are in use.
    users: Cell<usize>,
    /// Whether it has ended, or the dealer takes no more on it.
    is_gone: Arc<AtomicBool>,
}

/// What is to be done for someone who needs a stream.
enum Choice {
    Use(Rc<Trunk>),
    /// Open the connection of this place.
    Open(usize),
    Wait,
}

/// A stream's place on a connection.
#[derive(Debug)]
pub(super) struct Lane {
    trunk: Rc<Trunk>,
    trunks: Rc<Trunks>,
    buffer: Vec<u8>,
    /// Set until the first request has taken it into its record.
    pub(super) connect_times: Option<ConnectTimes>,
}

impl Trunk {
    fn is_gone(&self) -> bool {
        self.is_gone.load(Ordering::Relaxed)
    }

    fn has_room(&self) -> bool {
        self.users.get() < self.send.current_max_send_streams()
    }
}

impl Trunks {
    /// At most so many connections.
    pub(super) fn new(limit: usize) -> Rc<Trunks> {
        let places = std::iter::repeat_with(|| Place::Empty).take(limit.max(1)).collect();
        Rc::new(Trunks {
            places: RefCell::new(places),
            counts: Cell::default(),
            spare: RefCell::default(),
            room: Arc::new(Notify::new()),
        })
    }

    pub(super) fn counts(&self) -> ConnectionCounts {
        self.counts.get()
    }

    fn count(&self, change: impl FnOnce(&mut ConnectionCounts)) {
        let mut counts = self.counts.get();
        change(&mut counts);
        self.counts.set(counts);
    }

    /// A stream on the connection with the fewest; all connections that there may be are opened before any is shared.
    pub(super) async fn acquire(self: &Rc<Self>, config: &Config, clock: &Clock) -> Result<Lane, Fault> {
        loop {
            let room = self.room.notified();
            match self.choose() {
                Choice::Use(trunk) => return Ok(self.lane(trunk, None)),
                Choice::Wait => room.await,
                Choice::Open(place) => {
                    let opened = self.open(config, clock).await;
                    let mut places = self.places.borrow_mut();
                    match opened {
                        Ok((trunk, times)) => {
                            let trunk = Rc::new(trunk);
                            places[place] = Place::Open(Rc::clone(&trunk));
                            let open = places.iter().filter(|place| !matches!(place, Place::Empty)).count();
                            drop(places);
                            self.count(|counts| {
                                counts.opened += 1;
                                counts.peak = counts.peak.max(open as u64);
                            });
                            let lane = self.lane(trunk, Some(times));
                            self.room.notify_waiters();
                            return Ok(lane);
                        }
                        Err(fault) => {
                            places[place] = Place::Empty;
                            drop(places);
                            self.count(|counts| counts.failed += 1);
                            self.room.notify_one();
                            return Err(fault);
                        }
                    }
                }
            }
        }
    }

    fn choose(&self) -> Choice {
        let mut places = self.places.borrow_mut();
        let (mut best, mut empty): (Option<&Rc<Trunk>>, _) = (None, None);
        for (number, place) in places.iter_mut().enumerate() {
            if let Place::Open(trunk) = place
                && trunk.is_gone()
            {
                let is_idle = trunk.users.get() == 0;
                self.count(|counts| {
                    *(if is_idle { &mut counts.closed_idle } else { &mut counts.closed_by_server }) += 1;
                });
                *place = Place::Empty;
            }
            match place {
                Place::Empty => _ = empty.get_or_insert(number),
                Place::Open(trunk) if trunk.has_room() => {
                    if best.is_none_or(|best| trunk.users.get() < best.users.get()) {
                        best = Some(trunk);
                    }
                }
                Place::Open(_) | Place::Opening => {}
            }
        }
        match (best, empty) {
            (Some(best), None) => Choice::Use(Rc::clone(best)),
            (Some(best), Some(_)) if best.users.get() == 0 => Choice::Use(Rc::clone(best)),
            (_, Some(number)) => {
                places[number] = Place::Opening;
                Choice::Open(number)
            }
            (None, None) => Choice::Wait,
        }
    }

    fn lane(self: &Rc<Self>, trunk: Rc<Trunk>, connect_times: Option<ConnectTimes>) -> Lane {
        trunk.users.set(trunk.users.get() + 1);
        let buffer = self.spare.borrow_mut().pop().unwrap_or_default();
        Lane { trunk, trunks: Rc::clone(self), buffer, connect_times }
    }

    async fn open(&self, config: &Config, clock: &Clock) -> Result<(Trunk, ConnectTimes), Fault> {
        let (stream, times) = stream::connect(config, clock).await?;
        if stream.negotiated().is_some_and(|protocol| protocol != b"h2") {
            return Err(Fault::NoHttp2);
        }
        let mut builder = h2::client::Builder::new();
        builder
            .enable_push(false)
            .initial_window_size(STREAM_WINDOW)
            .initial_connection_window_size(CONNECTION_WINDOW)
            .max_header_list_size(http1::MAX_HEAD as u32);
        let handshake = builder.handshake::<_, Bytes>(stream);
        let (send, connection) = tokio::time::timeout(config.connect_timeout, handshake)
            .await
            .map_err(|_| Fault::Timeout(Phase::Connect))?
            .map_err(|error| fault_of(&error))?;
        let is_gone = Arc::new(AtomicBool::new(false));
        let (gone, room) = (Arc::clone(&is_gone), Arc::clone(&self.room));
        tokio::spawn(async move {
            // What ends it is told to the streams.
            let _ = connection.await;
            gone.store(true, Ordering::Relaxed);
            room.notify_waiters();
        });
        Ok((Trunk { send, users: Cell::new(0), is_gone }, times))
    }
}

impl Drop for Lane {
    fn drop(&mut self) {
        self.trunk.users.set(self.trunk.users.get() - 1);
        let mut spare = self.trunks.spare.borrow_mut();
        if spare.len() < MOST_SPARE && self.buffer.capacity() <= super::exchange::KEPT_BUFFER {
            spare.push(std::mem::take(&mut self.buffer));
        }
        self.trunks.room.notify_one();
    }
}

impl Lane {
    /// Whether its connection carries further requests.
    pub(super) fn is_reusable(&self) -> bool {
        !self.trunk.is_gone()
    }

    /// All that the last exchange received.
    pub(super) fn received(&self) -> &[u8] {
        &self.buffer
    }

    /// The reply that the last exchange received.
    pub(super) fn reply(&self, span: &ReplySpan) -> Reply<'_> {
        span.of(&self.buffer)
    }

    /// Sends the request and receives the reply.
    pub(super) async fn exchange(&mut self, config: &Config, clock: &Clock, request: &[u8]) -> Exchange {
        self.buffer.clear();
        let mut first_byte = None;
        let sent = clock.now();
        let reply = self.send_and_receive(config, clock, request, &mut first_byte);
        let reply = tokio::time::timeout(config.timeout, reply).await;
        let ended = clock.now();
        let reply = reply.unwrap_or_else(|_| {
            Err(Fault::Timeout(if first_byte.is_some() { Phase::Body } else { Phase::FirstByte }))
        });
        Exchange { sent, first_byte, ended, reply }
    }

    async fn send_and_receive(
        &mut self,
        config: &Config,
        clock: &Clock,
        request: &[u8],
        first_byte: &mut Option<Nanos>,
    ) -> Result<ReplySpan, Fault> {
        let (head, body) = translate(request, config.tls.is_some()).ok_or(Fault::NoHttp2)?;
        let trunk = &self.trunk;
        let gone = |error: h2::Error| {
            // A connection on which the dealer takes no more is not chosen again, though it has not ended yet.
            if error.is_go_away() {
                trunk.is_gone.store(true, Ordering::Relaxed);
            }
            fault_of(&error)
        };
        let mut send = trunk.send.clone().ready().await.map_err(gone)?;
        let (reply, mut stream) = send.send_request(head, body.is_empty()).map_err(gone)?;
        if !body.is_empty() {
            stream.send_data(body, true).map_err(gone)?;
        }
        let (head, mut body) = reply.await.map_err(gone)?.into_parts();
        *first_byte = Some(clock.now());
        let mut text = format!("HTTP/1.1 {} \r\n", head.status.as_str());
        for (name, value) in &head.headers {
            let _ = write!(text, "{name}: {}\r\n", String::from_utf8_lossy(value.as_bytes()));
        }
        text.push_str("\r\n");
        self.buffer.extend_from_slice(text.as_bytes());
        let start = self.buffer.len();
        let parsed = http1::parse_head(&self.buffer)?.ok_or(Fault::BadHttp)?;
        while let Some(piece) = body.data().await {
            let piece = piece.map_err(gone)?;
            if self.buffer.len() - start + piece.len() > config.max_reply {
                return Err(Fault::TooLarge);
            }
            self.buffer.extend_from_slice(&piece);
            body.flow_control().release_capacity(piece.len()).map_err(gone)?;
        }
        Ok(ReplySpan::whole(parsed.status, parsed.content, start, self.buffer.len()))
    }
}

/// A request of HTTP/1.1 as HTTP/2 says it: head and body. `None` where it has no form there.
fn translate(request: &[u8], is_tls: bool) -> Option<(Request<()>, Bytes)> {
    let mut headers = [httparse::EMPTY_HEADER; 100];
    let mut parsed = httparse::Request::new(&mut headers);
    let httparse::Status::Complete(length) = parsed.parse(request).ok()? else { return None };
    let host = parsed.headers.iter().find(|header| header.name.eq_ignore_ascii_case("host"))?;
    let uri = Uri::builder()
        .scheme(if is_tls { "https" } else { "http" })
        .authority(host.value)
        .path_and_query(parsed.path?)
        .build()
        .ok()?;
    let mut made = Request::new(());
    *made.method_mut() = Method::from_bytes(parsed.method?.as_bytes()).ok()?;
    *made.uri_mut() = uri;
    *made.version_mut() = Version::HTTP_2;
    for header in parsed.headers.iter() {
        if LEFT_OUT.iter().any(|name| header.name.eq_ignore_ascii_case(name)) {
            continue;
        }
        let name = HeaderName::from_bytes(header.name.as_bytes()).ok()?;
        made.headers_mut().append(name, HeaderValue::from_bytes(header.value).ok()?);
    }
    Some((made, Bytes::copy_from_slice(&request[length..])))
}

/// What an error of HTTP/2 means.
fn fault_of(error: &h2::Error) -> Fault {
    if let Some(io) = error.get_io() {
        return Fault::of(io);
    }
    if error.is_go_away() {
        return Fault::GoAway;
    }
    if error.is_reset() && error.is_remote() {
        return Fault::StreamReset;
    }
    // Found here: what came breaks the protocol.
    Fault::BadHttp
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_translated_with_all_that_has_a_place() {
        let text = b"POST /a2a?x=1 HTTP/1.1\r\nHost: dealer.example:8080\r\nConnection: close\r\nA2A-Version: 1.0\r\n\
            X-Two: a\r\nX-Two: b\r\nContent-Length: 2\r\n\r\n{}";
        let (made, body) = translate(text, true).unwrap();
        assert_eq!(made.uri(), "https://dealer.example:8080/a2a?x=1");
        assert_eq!((made.method(), &body[..]), (&Method::POST, &b"{}"[..]));
        assert_eq!(made.headers().len(), 4);
        assert_eq!(made.headers().get_all("x-two").iter().count(), 2);
        assert!(made.headers().get("host").is_none() && made.headers().get("connection").is_none());
        assert!(translate(b"POST /a2a HTTP/1.1\r\n\r\n", false).is_none());
        assert!(translate(b"nonsense", false).is_none());
    }
}
