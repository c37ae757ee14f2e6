//! The bytes of one connection, whatever carries them: a TCP stream, TLS over one, or anything that a test puts there.

use std::io;
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use hyper_util::rt::TokioIo;
use socket2::SockRef;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::server::TlsStream;

/// What a connection can be made of.
pub trait Link: AsyncRead + AsyncWrite + Unpin {
    /// Has the close that follows reset the connection.
    ///
    /// # Errors
    /// As the system says.
    fn reset_on_close(&self) -> io::Result<()>;
}

impl Link for TcpStream {
    fn reset_on_close(&self) -> io::Result<()> {
        // With no time to linger, closing sends RST.
        SockRef::from(self).set_linger(Some(Duration::ZERO))
    }
}

/// A stream within a process; a reset is a close like any other.
impl Link for tokio::io::DuplexStream {
    fn reset_on_close(&self) -> io::Result<()> {
        Ok(())
    }
}

impl Link for TlsStream<TcpStream> {
    fn reset_on_close(&self) -> io::Result<()> {
        self.get_ref().0.reset_on_close()
    }
}

/// A connection's stream. The plain one stands by itself, so that the usual call pays for no indirection.
pub(super) enum Stream {
    /// TCP.
    Plain(TcpStream),
    /// Anything else.
    Other(Box<dyn Link>),
}

impl Stream {
    /// Has the close that follows reset the connection.
    pub(super) fn reset_on_close(&self) -> io::Result<()> {
        match self {
            Stream::Plain(stream) => stream.reset_on_close(),
            Stream::Other(stream) => stream.reset_on_close(),
        }
    }

    /// Waits until the peer closes its side, passing over what it still sends.
    pub(super) fn poll_peer_gone(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        let mut waste = [0; 4096];
        loop {
            let mut waste = ReadBuf::new(&mut waste);
            let read = ready!(Pin::new(&mut *self).poll_read(cx, &mut waste));
            if read.is_err() || waste.filled().is_empty() {
                return Poll::Ready(());
            }
        }
    }
}

impl AsyncRead for Stream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_read(cx, buf),
            Stream::Other(stream) => Pin::new(stream).poll_read(cx, buf),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_write(cx, buf),
            Stream::Other(stream) => Pin::new(stream).poll_write(cx, buf),
        }
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bufs: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
            Stream::Other(stream) => Pin::new(stream).poll_write_vectored(cx, bufs),
        }
    }

    fn is_write_vectored(&self) -> bool {
        match self {
            Stream::Plain(stream) => stream.is_write_vectored(),
            Stream::Other(stream) => stream.is_write_vectored(),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(cx),
            Stream::Other(stream) => Pin::new(stream).poll_flush(cx),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(cx),
            Stream::Other(stream) => Pin::new(stream).poll_shutdown(cx),
        }
    }
}

/// A peer that takes nothing is given up after a time, and so does not hold its reply for ever.
pub(super) struct Patience {
    time: Duration,
    deadline: Option<Pin<Box<tokio::time::Sleep>>>,
}

impl Patience {
    pub(super) fn new(time: Duration) -> Patience {
        Patience { time, deadline: None }
    }

    /// Passes on what an attempt to send came to; an attempt that waits fails once there was no progress for too long.
    pub(super) fn limit<T>(
        &mut self,
        cx: &mut Context<'_>,
        tried: Poll<io::Result<T>>,
    ) -> Poll<io::Result<T>> {
        if tried.is_ready() {
            self.deadline = None;
            return tried;
        }
        let sleep = self.deadline.get_or_insert_with(|| Box::pin(tokio::time::sleep(self.time)));
        ready!(std::future::Future::poll(sleep.as_mut(), cx));
        Poll::Ready(Err(io::ErrorKind::TimedOut.into()))
    }
}

/// hyper's view of a stream.
pub(super) type Io = TokioIo<Stream>;
