//! One request and its reply on one connection.

use std::ops::Range;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};

use super::fault::{Fault, Phase};
use super::http1::{self, Chunks, Content, Framing, Head};
use super::stream::Stream;
use super::{Config, ConnectTimes};
use crate::pacer::{Clock, Nanos};

/// The first read asks for this much; a connection keeps what its replies have needed since.
const FIRST_READ: usize = 4 * 1024;
/// A connection does not keep a buffer larger than this after a large reply.
pub(super) const KEPT_BUFFER: usize = 256 * 1024;

/// More interim replies to one request than this are a server that never comes to the point.
const MAX_INTERIM: usize = 8;

/// One connection and what it has received.
#[derive(Debug)]
pub(super) struct Wire {
    stream: Stream,
    buffer: Vec<u8>,
    /// Set until the first request has taken it into its record.
    pub(super) connect_times: Option<ConnectTimes>,
    /// Requests sent.
    pub(super) requests: u64,
    /// Requests after which it is not used again.
    pub(super) request_limit: u64,
    /// Whether the last reply allows another request.
    pub(super) reusable: bool,
}

/// What came of a request.
#[derive(Debug, Clone)]
pub(crate) struct Exchange {
    /// When its first byte was sent.
    pub(crate) sent: Nanos,
    /// When the first byte of the reply was there.
    pub(crate) first_byte: Option<Nanos>,
    /// When the last byte was there, or the fault was.
    pub(crate) ended: Nanos,
    /// Where the reply is, or why there is none.
    pub(crate) reply: Result<ReplySpan, Fault>,
}

/// Where a reply is in its connection's buffer.
#[derive(Debug, Clone)]
pub(crate) struct ReplySpan {
    pub(crate) status: u16,
    pub(crate) content: Content,
    head: Range<usize>,
    body: Range<usize>,
    /// Where the reply ends in what was received.
    end: usize,
}

/// A whole reply.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reply<'a> {
    pub(crate) status: u16,
    head: &'a [u8],
    pub(crate) body: &'a [u8],
}

impl ReplySpan {
    /// A reply whose head ends at `start` and whose body is the rest up to `end`.
    pub(super) fn whole(status: u16, content: Content, start: usize, end: usize) -> ReplySpan {
        ReplySpan { status, content, head: 0..start, body: start..end, end }
    }

    /// The reply in what its connection received.
    pub(super) fn of<'a>(&self, received: &'a [u8]) -> Reply<'a> {
        Reply {
            status: self.status,
            head: received.get(self.head.clone()).unwrap_or_default(),
            body: received.get(self.body.clone()).unwrap_or_default(),
        }
    }

    /// Where the reply ends in what its connection received.
    pub(crate) fn end(&self) -> usize {
        self.end
    }
}

impl<'a> Reply<'a> {
    /// Whether it begins with its status line; line ends before that are overlooked otherwise.
    pub(crate) fn begins_well(&self) -> bool {
        self.head.starts_with(b"HTTP/")
    }

    /// A header by its name, in any case.
    pub(crate) fn header(&self, name: &str) -> Option<&'a str> {
        http1::header(self.head, name)
    }
}

/// How far an exchange has come; what a time-out is blamed on.
struct Progress {
    first_byte: Option<Nanos>,
}

impl Wire {
    pub(super) fn new(stream: Stream, connect_times: ConnectTimes, request_limit: u64) -> Wire {
        Wire {
            stream,
            buffer: Vec::new(),
            connect_times: Some(connect_times),
            requests: 0,
            request_limit,
            reusable: true,
        }
    }

    /// Whether an idle connection is still usable.
    pub(super) fn is_quiet(&self) -> bool {
        self.stream.is_quiet()
    }

    /// Sends the request and receives the reply.
    pub(super) async fn exchange(&mut self, config: &Config, clock: &Clock, request: &[u8]) -> Exchange {
        self.requests += 1;
        self.reusable = false;
        self.buffer.clear();
        let mut progress = Progress { first_byte: None };
        let sent = clock.now();
        let reply = tokio::time::timeout(
            config.timeout,
            self.send_and_receive(config, clock, request, &mut progress),
        )
        .await;
        let ended = clock.now();
        let reply = reply.unwrap_or_else(|_| {
            Err(Fault::Timeout(if progress.first_byte.is_some() { Phase::Body } else { Phase::FirstByte }))
        });
        Exchange { sent, first_byte: progress.first_byte, ended, reply }
    }

    /// The reply that the last exchange received.
    pub(super) fn reply(&self, span: &ReplySpan) -> Reply<'_> {
        span.of(&self.buffer)
    }

    /// All that the last exchange received: more than the reply, or less than a whole one. Of a chunked body the payload
    /// stands where the chunks were.
    pub(super) fn received(&self) -> &[u8] {
        &self.buffer
    }

    /// Receives what still comes, for so long, up to so many bytes or to the end of the connection.
    pub(super) async fn receive_rest(&mut self, wait: Duration, most: usize) {
        let end = self.buffer.len().saturating_add(most);
        let receive =
            async { while self.buffer.len() < end && matches!(self.receive(FIRST_READ).await, Ok(1..)) {} };
        // It matters what came, not why no more did.
        let _ = tokio::time::timeout(wait, receive).await;
    }

    /// Gives back the memory of an exceptionally large reply.
    pub(super) fn trim(&mut self) {
        if self.buffer.capacity() > KEPT_BUFFER {
            self.buffer = Vec::new();
        }
    }

    async fn send_and_receive(
        &mut self,
        config: &Config,
        clock: &Clock,
        request: &[u8],
        progress: &mut Progress,
    ) -> Result<ReplySpan, Fault> {
        let written = match self.stream.write_all(request).await {
            Ok(()) => self.stream.flush().await,
            Err(error) => Err(error),
        };
        if let Err(error) = written {
            return Err(Fault::of(&error));
        }
        let mut interim = 0;
        loop {
            let head = self.receive_head(clock, progress).await?;
            let body_start = head.length;
            // An interim reply (100, 103) precedes the real one; 101 would change the protocol, which nobody asked for.
            if (100..200).contains(&head.status) {
                interim += 1;
                if head.status == 101 || interim > MAX_INTERIM {
                    return Err(Fault::BadHttp);
                }
                self.buffer.drain(..body_start);
                continue;
            }
            let (body, end) = self.receive_body(config, &head, body_start).await?;
            // Bytes after the reply belong to no request: the connection cannot be trusted with another.
            self.reusable = head.keep_alive && end == self.buffer.len();
            return Ok(ReplySpan {
                status: head.status,
                content: head.content,
                head: 0..body_start,
                body,
                end,
            });
        }
    }

    async fn receive_head(&mut self, clock: &Clock, progress: &mut Progress) -> Result<Head, Fault> {
        loop {
            if !self.buffer.is_empty()
                && let Some(head) = http1::parse_head(&self.buffer)?
            {
                return Ok(head);
            }
            if self.buffer.len() > http1::MAX_HEAD {
                return Err(Fault::TooLarge);
            }
            if self.receive(FIRST_READ).await? == 0 {
                return Err(Fault::Eof);
            }
            progress.first_byte.get_or_insert_with(|| clock.now());
        }
    }

    /// Where the body is, and where the reply ends.
    async fn receive_body(
        &mut self,
        config: &Config,
        head: &Head,
        start: usize,
    ) -> Result<(Range<usize>, usize), Fault> {
        let limit = config.max_reply;
        match head.framing {
            Framing::Length(length) => {
                let length = usize::try_from(length).ok().filter(|&length| length <= limit);
                let end = start + length.ok_or(Fault::TooLarge)?;
                while self.buffer.len() < end {
                    if self.receive(end - self.buffer.len()).await? == 0 {
                        return Err(Fault::Eof);
                    }
                }
                Ok((start..end, end))
            }
            Framing::Chunked => {
                let mut chunks = Chunks::new(start);
                loop {
                    let whole = chunks.advance(&mut self.buffer)?;
                    if chunks.announced() > limit {
                        // What comes yet belongs to this chunk: it joins the payload so far.
                        self.buffer.truncate(chunks.body().end);
                        return Err(Fault::TooLarge);
                    }
                    if whole {
                        return Ok((chunks.body(), chunks.end()));
                    }
                    // The raw bytes of tiny chunks are a small multiple of their payload; far more is no body.
                    if self.buffer.len() > start + 8 * limit.max(FIRST_READ) {
                        return Err(Fault::TooLarge);
                    }
                    if self.receive(FIRST_READ).await? == 0 {
                        return Err(Fault::Eof);
                    }
                }
            }
            Framing::UntilClose => {
                while self.receive(FIRST_READ).await? > 0 {
                    if self.buffer.len() - start > limit {
                        return Err(Fault::TooLarge);
                    }
                }
                Ok((start..self.buffer.len(), self.buffer.len()))
            }
        }
    }

    /// Reads once, with room for at least `room` bytes; 0 is the end of the connection.
    async fn receive(&mut self, room: usize) -> Result<usize, Fault> {
        self.buffer.reserve(room);
        self.stream.read_buf(&mut self.buffer).await.map_err(|error| Fault::of(&error))
    }
}
