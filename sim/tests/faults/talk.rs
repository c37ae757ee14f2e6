//! A client on a raw socket, which notes every byte that comes, when, and how it ends.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use super::support::connect;

/// A connection on which nothing came for this long is taken for silent. No pause that a test asks for is longer.
pub(crate) const QUIET: Duration = Duration::from_millis(900);
/// The server hears a peer out for a second after it has said its last.
const HEARD_OUT: Duration = Duration::from_millis(1_400);

/// How a connection stands after a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum End {
    /// Open: nothing came for [`QUIET`].
    Open,
    /// FIN.
    Fin,
    /// RST: the system says ECONNRESET.
    Reset,
}

/// What came.
pub(crate) struct Heard {
    pub(crate) bytes: Vec<u8>,
    /// When how many bytes had come in all.
    pub(crate) times: Vec<(Duration, usize)>,
    pub(crate) end: End,
    /// When the connection ended, if it did.
    pub(crate) ended: Duration,
}

impl Heard {
    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    /// The status, 0 where there is none.
    pub(crate) fn status(&self) -> u16 {
        self.text().split(' ').nth(1).and_then(|status| status.parse().ok()).unwrap_or(0)
    }

    /// The fields of the head, names in lower case.
    pub(crate) fn fields(&self) -> Vec<(String, String)> {
        let text = self.text();
        let (head, _) = text.split_once("\r\n\r\n").unwrap_or_default();
        let lines = head.lines().skip(1).filter_map(|line| line.split_once(": "));
        lines.map(|(name, value)| (name.to_lowercase(), value.to_owned())).collect()
    }

    pub(crate) fn field(&self, name: &str) -> String {
        self.fields().into_iter().find(|(known, _)| known == name).unwrap_or_default().1
    }

    /// What follows the head.
    pub(crate) fn body(&self) -> &[u8] {
        let at = self.bytes.windows(4).position(|window| window == b"\r\n\r\n");
        at.map_or(&[], |at| &self.bytes[at + 4..])
    }

    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_slice(self.body()).unwrap_or_default()
    }

    /// The AAP code of an error reply, found by its typed entry; empty when there is none.
    pub(crate) fn code(&self) -> String {
        let reply = self.json();
        let data = reply["error"]["data"].as_array();
        data.and_then(|data| data.iter().find_map(|entry| entry["code"].as_str()))
            .unwrap_or_default()
            .to_owned()
    }

    /// The payload of a success.
    pub(crate) fn data(&self) -> serde_json::Value {
        self.json().pointer("/result/message/parts/0/data/data").cloned().unwrap_or_default()
    }
}

/// One request.
pub(crate) struct Asked<'a> {
    pub(crate) url: &'a str,
    /// The body; none is a GET.
    pub(crate) body: Option<&'a str>,
    pub(crate) fields: &'a [(&'a str, &'a str)],
    /// Whether the connection is to stay.
    pub(crate) keep: bool,
}

impl Asked<'_> {
    fn text(&self, path: &str) -> String {
        let method = if self.body.is_some() { "POST" } else { "GET" };
        let mut text = format!("{method} {path} HTTP/1.1\r\nHost: test\r\n");
        for (name, value) in self.fields {
            text += &format!("{name}: {value}\r\n");
        }
        if !self.keep {
            text += "Connection: close\r\n";
        }
        match self.body {
            Some(body) => {
                text + &format!(
                    "Content-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                    body.len()
                )
            }
            None => text + "\r\n",
        }
    }

    /// Sends it on a connection of its own and hears until the end, or until nothing more comes.
    pub(crate) fn send(&self) -> (TcpStream, Heard) {
        let (mut stream, path) = connect(self.url);
        let heard = self.send_on(&mut stream, &path);
        (stream, heard)
    }

    /// The same on a connection that there is.
    pub(crate) fn send_on(&self, stream: &mut TcpStream, path: &str) -> Heard {
        let begun = Instant::now();
        // A connection that was reset at once may refuse the request already.
        _ = stream.write_all(self.text(path).as_bytes());
        hear(stream, begun)
    }

    pub(crate) fn heard(&self) -> Heard {
        self.send().1
    }
}

/// Hears what comes until the end, or until nothing more comes.
pub(crate) fn hear(stream: &mut TcpStream, begun: Instant) -> Heard {
    stream.set_read_timeout(Some(QUIET)).unwrap();
    let mut heard = Heard { bytes: Vec::new(), times: Vec::new(), end: End::Open, ended: Duration::ZERO };
    let mut piece = vec![0; 1 << 16];
    loop {
        let read = stream.read(&mut piece);
        heard.ended = begun.elapsed();
        match read {
            Ok(0) => heard.end = End::Fin,
            Ok(read) => {
                heard.bytes.extend_from_slice(&piece[..read]);
                heard.times.push((heard.ended, heard.bytes.len()));
                continue;
            }
            Err(error) if error.kind() == ErrorKind::ConnectionReset => heard.end = End::Reset,
            Err(error) if matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut) => {}
            Err(error) => panic!("{error}"),
        }
        return heard;
    }
}

/// Whether the peer, whose sending side has ended, still takes what it is sent long after.
pub(crate) fn still_reads(stream: &mut TcpStream) -> bool {
    std::thread::sleep(HEARD_OUT);
    // The first one is answered with RST by a peer that is gone; the second one then fails.
    let first = stream.write_all(b"still here?\r\n");
    std::thread::sleep(Duration::from_millis(100));
    first.and_then(|()| stream.write_all(b"hello?\r\n")).is_ok()
}
