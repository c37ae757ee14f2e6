//! One question to an admin endpoint.

use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use super::Failed;

/// The most that is read of a whole reply.
pub(super) const WHOLE: u64 = 256 << 20;

/// The reply to a GET, with this token if there is one, or as much of it as is wanted: one read of `most` bytes, or, for [`WHOLE`], until its end.
pub(super) fn get(url: &str, path: &str, token: Option<&str>, most: u64) -> Result<String, Failed> {
    /// A report of a full journal takes a while.
    const PATIENCE: Duration = Duration::from_secs(5);
    const PATIENCE_FOR_WHOLE: Duration = Duration::from_secs(60);
    let authority = fluent_uri::Uri::parse(url)
        .ok()
        .filter(|uri| uri.scheme().as_str() == "http")
        .and_then(|uri| uri.authority().map(|authority| authority.as_str().to_owned()))
        .ok_or_else(|| {
            Failed::Input(format!("{url:?} is no admin URL; use one such as http://127.0.0.1:8081"))
        })?;
    let address = if authority.rsplit(']').next().is_some_and(|tail| tail.contains(':')) {
        authority.clone()
    } else {
        format!("{authority}:80")
    };
    let ask = || -> io::Result<String> {
        let mut stream = TcpStream::connect(&address)?;
        let patience = if most == WHOLE { PATIENCE_FOR_WHOLE } else { PATIENCE };
        stream.set_read_timeout(Some(patience))?;
        stream.set_write_timeout(Some(patience))?;
        let token = token.map_or_else(String::new, |token| format!("Authorization: Bearer {token}\r\n"));
        write!(stream, "GET {path} HTTP/1.1\r\nHost: {authority}\r\n{token}Connection: close\r\n\r\n")?;
        let mut reply = Vec::new();
        if most == WHOLE {
            stream.take(most).read_to_end(&mut reply)?;
        } else {
            reply.resize(most as usize, 0);
            let read = stream.read(&mut reply)?;
            reply.truncate(read);
        }
        Ok(String::from_utf8_lossy(&reply).into_owned())
    };
    ask().map_err(|error| Failed::Running(format!("{url} does not answer: {error}")))
}

/// A value in a query.
pub(super) fn encoded(value: &str) -> String {
    let mut out = String::new();
    for byte in value.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => out.push(char::from(byte)),
            _ => out += &format!("%{byte:02X}"),
        }
    }
    out
}
