//! What can go wrong between the request and the whole reply.

use std::fmt;
use std::io;

/// A phase of a request that has a time limit of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Phase {
    /// The TCP handshake.
    Connect,
    /// The TLS handshake.
    Tls,
    /// From the send to the first byte of the reply.
    FirstByte,
    /// From the first byte to the last.
    Body,
}

impl Phase {
    /// The phase's name in outcomes: `timeout.<name>`.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Connect => "connect",
            Phase::Tls => "tls",
            Phase::FirstByte => "first_byte",
            Phase::Body => "body",
        }
    }
}

/// Why there is no whole reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Fault {
    /// The connection was refused.
    Refused,
    /// The connection was reset.
    Reset,
    /// The connection ended before the reply did.
    Eof,
    /// The host name has no address.
    Dns,
    /// The TLS handshake failed.
    Tls,
    /// This machine has no free port for another connection.
    NoPorts,
    /// This process may open no more files.
    NoDescriptors,
    /// There is no way to the host.
    Unreachable,
    /// The reply is larger than allowed.
    TooLarge,
    /// The reply is no HTTP of the version spoken.
    BadHttp,
    /// The server does not speak HTTP/2, or the request has no form in it.
    NoHttp2,
    /// The server has reset the stream of HTTP/2.
    StreamReset,
    /// The server takes no more on its connection of HTTP/2.
    GoAway,
    /// Any other error of the operating system.
    Io,
    /// The phase took longer than its limit.
    Timeout(Phase),
}

impl Fault {
    /// What an error of a socket means.
    pub(super) fn of(error: &io::Error) -> Fault {
        // A broken pipe is how a write learns of the reset that a read would have been told of.
        match error.kind() {
            io::ErrorKind::ConnectionRefused => Fault::Refused,
            io::ErrorKind::ConnectionReset | io::ErrorKind::ConnectionAborted | io::ErrorKind::BrokenPipe => {
                Fault::Reset
            }
            io::ErrorKind::UnexpectedEof => Fault::Eof,
            io::ErrorKind::AddrNotAvailable => Fault::NoPorts,
            io::ErrorKind::TimedOut => Fault::Timeout(Phase::Connect),
            io::ErrorKind::HostUnreachable | io::ErrorKind::NetworkUnreachable => Fault::Unreachable,
            io::ErrorKind::InvalidData => Fault::Tls,
            _ => match error.raw_os_error() {
                Some(code) if code == EMFILE || code == ENFILE => Fault::NoDescriptors,
                _ => Fault::Io,
            },
        }
    }

    /// Whether the fault lies with this machine and not with the target, so that the run says nothing about it.
    pub fn is_ours(self) -> bool {
        matches!(self, Fault::NoPorts | Fault::NoDescriptors)
    }

    /// Whether the outcome of this name shows that the target gave no HTTP reply at all. A fault of this machine shows
    /// nothing, and a dealer that took the request and is slow has been reached.
    pub(crate) fn is_unanswered(label: &str) -> bool {
        let unanswered = [
            Fault::Refused,
            Fault::Reset,
            Fault::Eof,
            Fault::Dns,
            Fault::Tls,
            Fault::Unreachable,
            Fault::BadHttp,
            Fault::NoHttp2,
            Fault::StreamReset,
            Fault::GoAway,
            Fault::Io,
            Fault::Timeout(Phase::Connect),
            Fault::Timeout(Phase::Tls),
        ];
        unanswered.iter().any(|fault| fault.label() == label)
    }

    /// The outcome's name, such as `transport.reset` or `timeout.connect`.
    pub fn label(self) -> &'static str {
        match self {
            Fault::Refused => "transport.refused",
            Fault::Reset => "transport.reset",
            Fault::Eof => "transport.eof",
            Fault::Dns => "transport.dns",
            Fault::Tls => "transport.tls",
            Fault::NoPorts => "transport.no_ports",
            Fault::NoDescriptors => "transport.no_descriptors",
            Fault::Unreachable => "transport.unreachable",
            Fault::TooLarge => "transport.too_large",
            Fault::BadHttp => "transport.bad_http",
            Fault::NoHttp2 => "transport.no_http2",
            Fault::StreamReset => "transport.stream_reset",
            Fault::GoAway => "transport.goaway",
            Fault::Io => "transport.io",
            Fault::Timeout(Phase::Connect) => "timeout.connect",
            Fault::Timeout(Phase::Tls) => "timeout.tls",
            Fault::Timeout(Phase::FirstByte) => "timeout.first_byte",
            Fault::Timeout(Phase::Body) => "timeout.body",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Fault::Refused => "the connection was refused (nothing listens there)",
            Fault::Reset => "the connection was reset",
            Fault::Eof => "the connection was closed before the reply was complete",
            Fault::Dns => "the host name has no address",
            Fault::Tls => "the TLS handshake failed (wrong certificate, or no TLS there)",
            Fault::NoPorts => "this machine has no free port left",
            Fault::NoDescriptors => "this process may open no more files",
            Fault::Unreachable => "there is no way to the host",
            Fault::TooLarge => "the reply is larger than allowed",
            Fault::BadHttp => "the reply is no HTTP of the version spoken",
            Fault::NoHttp2 => "the server does not speak HTTP/2, or the request has no form in it",
            Fault::StreamReset => "the server reset the stream (RST_STREAM)",
            Fault::GoAway => "the server takes no more on this connection (GOAWAY)",
            Fault::Io => "the operating system reported an error",
            Fault::Timeout(Phase::Connect) => "the connection was not accepted in time",
            Fault::Timeout(Phase::Tls) => "the TLS handshake took too long",
            Fault::Timeout(Phase::FirstByte) => "no reply came in time",
            Fault::Timeout(Phase::Body) => "the reply did not end in time",
        })
    }
}

// The same numbers on Linux, macOS and the BSDs; std has no kind for them.
const ENFILE: i32 = 23;
const EMFILE: i32 = 24;
