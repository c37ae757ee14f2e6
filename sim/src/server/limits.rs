//! Limits of the listener, with their defaults; `--limits FILE` (TOML) changes them.

use std::time::Duration;

use serde::Deserialize;

/// What one peer can make the server hold, and for how long.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Bytes of a request body; more is answered with 413.
    pub body_bytes: usize,
    /// Bytes of a request head; more is answered with 431. A head that comes in one piece may be up to twice as long.
    pub header_bytes: usize,
    /// Header fields of a request; more is answered with 431.
    pub header_count: usize,
    /// Milliseconds for a request head, and for an idle connection; then it is closed.
    pub header_timeout_ms: u64,
    /// Milliseconds for a request body; then 408.
    pub body_timeout_ms: u64,
    /// Milliseconds in which a peer must take some bytes of a reply; then the connection is reset.
    pub write_timeout_ms: u64,
    /// Bytes of large replies (over 64 KiB) that may wait for peers who do not read them; a further one is answered with 503.
    pub waiting_reply_bytes: u64,
    /// Connections open at once; a further one is closed at once, and counted.
    pub connections: usize,
    /// Connections of one client address open at once; a further one is closed at once, and counted.
    pub connections_per_client: usize,
    /// Requests on one connection; the last one's reply closes it.
    pub connection_requests: u64,
    /// Milliseconds for a TLS handshake; then the connection is closed, and counted.
    pub tls_handshake_timeout_ms: u64,
    /// Streams of one HTTP/2 connection open at once; a further one is refused (REFUSED_STREAM).
    pub http2_streams: u32,
    /// Requests that a peer may give up on one HTTP/2 connection; if they are more, and half of all, it is closed and counted.
    pub http2_resets: u64,
    /// Milliseconds that a stop waits for requests in flight.
    pub drain_ms: u64,
    /// Listings on a page at most.
    pub page_cap: u32,
    /// Seconds that caches may keep the agent card: `max-age` in its `Cache-Control`.
    pub card_max_age_s: u32,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            body_bytes: 1 << 20,
            header_bytes: 64 << 10,
            header_count: 100,
            header_timeout_ms: 60_000,
            body_timeout_ms: 30_000,
            write_timeout_ms: 30_000,
            waiting_reply_bytes: 64 << 20,
            connections: 10_000,
            connections_per_client: 10_000,
            connection_requests: 10_000_000,
            tls_handshake_timeout_ms: 10_000,
            http2_streams: 128,
            http2_resets: 1_000,
            drain_ms: 4_000,
            page_cap: 100,
            card_max_age_s: 300,
        }
    }
}

/// A limits file that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum LimitsError {
    /// Not TOML, or a member of another name or type.
    #[error("{file}: {problem}")]
    Syntax {
        /// The file.
        file: String,
        /// The parser's words, with line and column.
        problem: String,
    },
    /// A limit outside its range.
    #[error("{file}: {}", .problems.join("; "))]
    Range {
        /// The file.
        file: String,
        /// Each limit with the values it may have.
        problems: Vec<String>,
    },
}

impl Limits {
    /// Reads a limits file.
    ///
    /// # Errors
    /// [`LimitsError`], with every limit that is out of range.
    pub fn parse(file: &str, text: &str) -> Result<Limits, LimitsError> {
        let limits: Limits = toml::from_str(text)
            .map_err(|error| LimitsError::Syntax { file: file.to_owned(), problem: error.to_string() })?;
        let problems = limits.problems();
        if problems.is_empty() {
            Ok(limits)
        } else {
            Err(LimitsError::Range { file: file.to_owned(), problems })
        }
    }

    fn problems(&self) -> Vec<String> {
        let checks: [(&str, u64, u64, u64); 16] = [
            ("body_bytes", self.body_bytes as u64, 1, 1 << 30),
            // hyper's least buffer.
            ("header_bytes", self.header_bytes as u64, 8 << 10, 1 << 24),
            ("header_count", self.header_count as u64, 1, 10_000),
            ("header_timeout_ms", self.header_timeout_ms, 1, 86_400_000),
            ("body_timeout_ms", self.body_timeout_ms, 1, 86_400_000),
            ("write_timeout_ms", self.write_timeout_ms, 1, 86_400_000),
            ("connections", self.connections as u64, 1, 1 << 20),
            ("waiting_reply_bytes", self.waiting_reply_bytes, 0, 1 << 40),
            ("connections_per_client", self.connections_per_client as u64, 1, 1 << 20),
            ("connection_requests", self.connection_requests, 1, u64::MAX),
            ("tls_handshake_timeout_ms", self.tls_handshake_timeout_ms, 1, 86_400_000),
            ("http2_streams", u64::from(self.http2_streams), 1, 10_000),
            ("http2_resets", self.http2_resets, 0, u64::MAX),
            ("drain_ms", self.drain_ms, 0, 600_000),
            ("page_cap", u64::from(self.page_cap), 1, 1000),
            ("card_max_age_s", u64::from(self.card_max_age_s), 0, 86_400),
        ];
        checks
            .into_iter()
            .filter(|(_, value, low, high)| !(low..=high).contains(&value))
            .map(|(name, value, low, high)| format!("{name} is {value}; it may be {low} to {high}"))
            .collect()
    }

    /// The time for a request head.
    pub fn header_timeout(&self) -> Duration {
        Duration::from_millis(self.header_timeout_ms)
    }

    /// The time for a request body.
    pub fn body_timeout(&self) -> Duration {
        Duration::from_millis(self.body_timeout_ms)
    }

    /// The time for a TLS handshake.
    pub fn tls_handshake(&self) -> Duration {
        Duration::from_millis(self.tls_handshake_timeout_ms)
    }

    /// The time in which a peer must take some bytes.
    pub fn write_timeout(&self) -> Duration {
        Duration::from_millis(self.write_timeout_ms)
    }

    /// The time for a stop.
    pub fn drain(&self) -> Duration {
        Duration::from_millis(self.drain_ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn limits_are_read_or_every_fault_is_told() {
        assert_eq!(Limits::parse("l.toml", "").unwrap(), Limits::default());
        assert_eq!(Limits::parse("l.toml", "body_bytes = 10").unwrap().body_bytes, 10);
        let error = Limits::parse("l.toml", "page_cap = 0\nheader_count = 0").unwrap_err().to_string();
        assert!(
            error.contains("page_cap") && error.contains("header_count") && error.contains("l.toml"),
            "{error}"
        );
        let error = Limits::parse("l.toml", "bodybytes = 10").unwrap_err().to_string();
        assert!(error.contains("bodybytes") && error.contains("line 1"), "{error}");
    }
}
