//! A TCP connection, plain or under TLS, opened within its time limits.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::fault::{Fault, Phase};
use super::{Config, ConnectTimes};
use crate::pacer::Clock;

/// A connection to the target.
#[derive(Debug)]
pub(super) enum Stream {
    Plain(TcpStream),
    // Boxed: the state of TLS is twenty times the size of a plain stream.
    Tls(Box<TlsStream<TcpStream>>),
}

/// Connects, trying each address in turn.
pub(super) async fn connect(config: &Config, clock: &Clock) -> Result<(Stream, ConnectTimes), Fault> {
    let began = clock.now();
    let tcp = tokio::time::timeout(config.connect_timeout, connect_tcp(&config.addresses))
        .await
        .map_err(|_| Fault::Timeout(Phase::Connect))??;
    // On loopback it makes no difference; elsewhere a delayed acknowledgement would be measured as service time.
    let _ = tcp.set_nodelay(true);
    let connected = clock.now();
    let mut times = ConnectTimes { connect: connected.saturating_sub(began), tls: None };
    let Some(tls) = &config.tls else { return Ok((Stream::Plain(tcp), times)) };
    let handshake = TlsConnector::from(Arc::clone(&tls.client)).connect(tls.name.clone(), tcp);
    let stream = tokio::time::timeout(config.connect_timeout, handshake)
        .await
        .map_err(|_| Fault::Timeout(Phase::Tls))?
        .map_err(|error| match Fault::of(&error) {
            Fault::Reset => Fault::Reset,
            _ => Fault::Tls,
        })?;
    times.tls = Some(clock.now().saturating_sub(connected));
    Ok((Stream::Tls(Box::new(stream)), times))
}

#[cfg(unix)]
fn peek(tcp: &TcpStream) -> io::Result<usize> {
    use rustix::net::{RecvFlags, recv};
    tcp.try_io(tokio::io::Interest::READABLE, || {
        let (length, _) = recv(tcp, &mut [0; 1], RecvFlags::PEEK | RecvFlags::DONTWAIT)?;
        Ok(length)
    })
}

#[cfg(not(unix))]
fn peek(_tcp: &TcpStream) -> io::Result<usize> {
    Err(io::ErrorKind::WouldBlock.into())
}

async fn connect_tcp(addresses: &[SocketAddr]) -> Result<TcpStream, Fault> {
    let mut last = Fault::Dns;
    for address in addresses {
        match TcpStream::connect(address).await {
            Ok(stream) => return Ok(stream),
            Err(error) => last = Fault::of(&error),
        }
    }
    Err(last)
}

impl Stream {
    /// The protocol that was agreed upon in the TLS handshake; empty if none was, nothing without TLS.
    pub(super) fn negotiated(&self) -> Option<&[u8]> {
        match self {
            Stream::Plain(_) => None,
            Stream::Tls(tls) => Some(tls.get_ref().1.alpn_protocol().unwrap_or_default()),
        }
    }

    /// Whether an idle connection is still usable: nothing must have arrived on it, not even its end.
    pub(super) fn is_quiet(&self) -> bool {
        // Neither costs a system call unless the reactor has seen something arrive.
        let arrived = match self {
            Stream::Plain(tcp) => tcp.try_read(&mut [0; 1]),
            // Under TLS the byte belongs to a record: looked at, not taken. It is the end of the session, as a rule.
            Stream::Tls(tls) => peek(tls.get_ref().0),
        };
        matches!(arrived, Err(error) if error.kind() == io::ErrorKind::WouldBlock)
    }
}

impl AsyncRead for Stream {
    fn poll_read(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_read(context, buffer),
            Stream::Tls(stream) => Pin::new(stream).poll_read(context, buffer),
        }
    }
}

impl AsyncWrite for Stream {
    fn poll_write(self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_write(context, bytes),
            Stream::Tls(stream) => Pin::new(stream).poll_write(context, bytes),
        }
    }

    fn poll_flush(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_flush(context),
            Stream::Tls(stream) => Pin::new(stream).poll_flush(context),
        }
    }

    fn poll_shutdown(self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        match self.get_mut() {
            Stream::Plain(stream) => Pin::new(stream).poll_shutdown(context),
            Stream::Tls(stream) => Pin::new(stream).poll_shutdown(context),
        }
    }
}
