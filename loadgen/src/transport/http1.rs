//! The replies of HTTP/1.1, without I/O: where the head ends, how long the body is, what a chunked body holds
//! (RFC 9112, sections 4, 6 and 7).

use std::mem::MaybeUninit;
use std::ops::Range;

use super::fault::Fault;

/// A head longer than this is too large.
pub(super) const MAX_HEAD: usize = 64 * 1024;
/// More header lines than this are too many.
const MAX_HEADERS: usize = 128;

/// How the end of the body is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Framing {
    /// This many bytes.
    Length(u64),
    /// Chunks.
    Chunked,
    /// Everything until the connection ends.
    UntilClose,
}

/// What the head of a reply says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Head {
    pub(super) status: u16,
    /// Bytes of the head, the empty line included.
    pub(super) length: usize,
    pub(super) framing: Framing,
    /// Whether the connection may carry another request.
    pub(super) keep_alive: bool,
    pub(super) content: Content,
}

/// What the head says of the body.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Content {
    /// The `Content-Type` is `application/json`, with any parameters.
    Json,
    /// Any other `Content-Type`, or none.
    Other,
    /// Compressed, whatever its type: a `Content-Encoding` that no request of ours asks for.
    Encoded,
}

/// The reply is not HTTP/1.1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct BadHttp;

impl From<BadHttp> for Fault {
    fn from(_: BadHttp) -> Fault {
        Fault::BadHttp
    }
}

/// Reads the head; `None` if it is not whole yet. One that is larger than is read here may be HTTP all the same.
pub(super) fn parse_head(bytes: &[u8]) -> Result<Option<Head>, Fault> {
    // Not initialised: clearing room for so many headers would cost more than parsing the few there are.
    let mut headers = [MaybeUninit::uninit(); MAX_HEADERS];
    let mut response = httparse::Response::new(&mut []);
    let parser = httparse::ParserConfig::default();
    let length = match parser.parse_response_with_uninit_headers(&mut response, bytes, &mut headers) {
        Ok(httparse::Status::Complete(length)) => length,
        Ok(httparse::Status::Partial) if bytes.len() > MAX_HEAD => return Err(Fault::TooLarge),
        Ok(httparse::Status::Partial) => return Ok(None),
        Err(httparse::Error::TooManyHeaders) => return Err(Fault::TooLarge),
        Err(_) => return Err(Fault::BadHttp),
    };
    let status = response.code.ok_or(Fault::BadHttp)?;
    // HTTP/1.1 keeps the connection unless it says so, HTTP/1.0 closes it unless it says so.
    let mut keep_alive = response.version == Some(1);
    let mut content_length = None;
    let mut chunked = false;
    let mut content = Content::Other;
    for header in response.headers.iter() {
        match header.name.len() {
            14 if header.name.eq_ignore_ascii_case("content-length") => {
                let value = decimal(header.value).ok_or(Fault::BadHttp)?;
                // Two different lengths are how a reply is smuggled into another.
                if content_length.is_some_and(|earlier| earlier != value) {
                    return Err(Fault::BadHttp);
                }
                content_length = Some(value);
            }
            12 if header.name.eq_ignore_ascii_case("content-type") => {
                let essence = header.value.split(|&byte| byte == b';').next().unwrap_or_default();
                if content != Content::Encoded
                    && essence.trim_ascii().eq_ignore_ascii_case(b"application/json")
                {
                    content = Content::Json;
                }
            }
            16 if header.name.eq_ignore_ascii_case("content-encoding")
                && !header.value.trim_ascii().eq_ignore_ascii_case(b"identity") =>
            {
                content = Content::Encoded;
            }
            17 if header.name.eq_ignore_ascii_case("transfer-encoding") => {
                if !header.value.trim_ascii().eq_ignore_ascii_case(b"chunked") {
                    return Err(Fault::BadHttp);
                }
                chunked = true;
            }
            10 if header.name.eq_ignore_ascii_case("connection") => {
                for option in header.value.split(|&byte| byte == b',') {
                    let option = option.trim_ascii();
                    if option.eq_ignore_ascii_case(b"close") {
                        keep_alive = false;
                    } else if option.eq_ignore_ascii_case(b"keep-alive") {
                        keep_alive = true;
                    }
                }
            }
            _ => {}
        }
    }
    let framing = match (status, chunked, content_length) {
        (100..=199 | 204 | 304, _, _) => Framing::Length(0),
        (_, true, None) => Framing::Chunked,
        // Both: chunked wins, and the connection is not used again (RFC 9112, section 6.3).
        (_, true, Some(_)) => {
            keep_alive = false;
            Framing::Chunked
        }
        (_, false, Some(length)) => Framing::Length(length),
        (_, false, None) => {
            keep_alive = false;
            Framing::UntilClose
        }
    };
    Ok(Some(Head { status, length, framing, keep_alive, content }))
}

/// A header's value in a whole head; `None` if it is absent or not text. The first line of that name counts.
pub(super) fn header<'a>(head: &'a [u8], name: &str) -> Option<&'a str> {
    let mut headers = [MaybeUninit::uninit(); MAX_HEADERS];
    let mut response = httparse::Response::new(&mut []);
    httparse::ParserConfig::default()
        .parse_response_with_uninit_headers(&mut response, head, &mut headers)
        .ok()?;
    let found = response.headers.iter().find(|header| header.name.eq_ignore_ascii_case(name))?;
    std::str::from_utf8(found.value).ok().map(str::trim_ascii)
}

fn decimal(value: &[u8]) -> Option<u64> {
    let value = value.trim_ascii();
    if value.is_empty() || value.len() > 18 {
        return None;
    }
    value.iter().try_fold(0u64, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + u64::from(byte - b'0')))
}

/// Decodes a chunked body in place: the payload of the chunks is moved together, over their size lines.
#[derive(Debug, Clone)]
pub(super) struct Chunks {
    start: usize,
    /// The payload so far is `start..write`.
    write: usize,
    /// What is read next.
    read: usize,
    state: ChunkState,
}

#[derive(Debug, Clone, Copy)]
enum ChunkState {
    Size,
    Data(usize),
    DataEnd,
    Trailer,
    Done,
}

/// Longer than any sensible size line or trailer line.
const MAX_CHUNK_LINE: usize = 8 * 1024;

impl Chunks {
    /// A body that begins at `start`.
    pub(super) fn new(start: usize) -> Chunks {
        Chunks { start, write: start, read: start, state: ChunkState::Size }
    }

    /// Takes what has arrived; `true` when the body is whole.
    pub(super) fn advance(&mut self, bytes: &mut [u8]) -> Result<bool, BadHttp> {
        loop {
            match self.state {
                ChunkState::Size => {
                    let Some(line) = self.line(bytes)? else { return Ok(false) };
                    let size = chunk_size(&bytes[line.clone()]).ok_or(BadHttp)?;
                    self.read = line.end + 2;
                    self.state = if size == 0 { ChunkState::Trailer } else { ChunkState::Data(size) };
                }
                ChunkState::Data(left) => {
                    let here = left.min(bytes.len() - self.read);
                    bytes.copy_within(self.read..self.read + here, self.write);
                    self.write += here;
                    self.read += here;
                    if here < left {
                        self.state = ChunkState::Data(left - here);
                        return Ok(false);
                    }
                    self.state = ChunkState::DataEnd;
                }
                ChunkState::DataEnd => {
                    let Some(end) = bytes.get(self.read..self.read + 2) else { return Ok(false) };
                    if end != b"\r\n" {
                        return Err(BadHttp);
                    }
                    self.read += 2;
                    self.state = ChunkState::Size;
                }
                ChunkState::Trailer => {
                    let Some(line) = self.line(bytes)? else { return Ok(false) };
                    self.read = line.end + 2;
                    if line.is_empty() {
                        self.state = ChunkState::Done;
                    }
                }
                ChunkState::Done => return Ok(true),
            }
        }
    }

    /// Where the payload is.
    pub(super) fn body(&self) -> Range<usize> {
        self.start..self.write
    }

    /// Bytes of payload so far, and what the chunk in progress still announces.
    pub(super) fn announced(&self) -> usize {
        let left = if let ChunkState::Data(left) = self.state { left } else { 0 };
        (self.write - self.start).saturating_add(left)
    }

    /// Where the body ends in the bytes received.
    pub(super) fn end(&self) -> usize {
        self.read
    }

    /// The next line without its end, if it is whole.
    fn line(&self, bytes: &[u8]) -> Result<Option<Range<usize>>, BadHttp> {
        let rest = &bytes[self.read..];
        match memchr::memchr(b'\n', rest) {
            Some(at) if at > 0 && rest[at - 1] == b'\r' && at <= MAX_CHUNK_LINE => {
                Ok(Some(self.read..self.read + at - 1))
            }
            Some(_) => Err(BadHttp),
            None if rest.len() > MAX_CHUNK_LINE => Err(BadHttp),
            None => Ok(None),
        }
    }
}

fn chunk_size(line: &[u8]) -> Option<usize> {
    let digits = line.split(|&byte| byte == b';').next()?.trim_ascii();
    if digits.is_empty() || digits.len() > 8 {
        return None;
    }
    usize::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok().filter(|_| digits[0] != b'+')
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn head(text: &str) -> Result<Option<Head>, Fault> {
        parse_head(text.as_bytes())
    }

    #[test]
    fn framing_follows_the_rules() {
        let framing = |text: &str| head(text).unwrap().unwrap().framing;
        assert_eq!(framing("HTTP/1.1 200 OK\r\nContent-Length: 12\r\n\r\n"), Framing::Length(12));
        assert_eq!(framing("HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\n\r\n"), Framing::Chunked);
        assert_eq!(framing("HTTP/1.1 200 OK\r\n\r\n"), Framing::UntilClose);
        assert_eq!(framing("HTTP/1.1 204 No Content\r\n\r\n"), Framing::Length(0));
        assert_eq!(head("HTTP/1.1 200 OK\r\nContent-Le").unwrap(), None);
    }

    #[test]
    fn keep_alive_follows_the_rules() {
        let keep_alive = |text: &str| head(text).unwrap().unwrap().keep_alive;
        assert!(keep_alive("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n"));
        assert!(!keep_alive("HTTP/1.1 200 OK\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"));
        assert!(!keep_alive("HTTP/1.0 200 OK\r\nContent-Length: 0\r\n\r\n"));
        assert!(keep_alive("HTTP/1.0 200 OK\r\nContent-Length: 0\r\nConnection: keep-alive\r\n\r\n"));
        assert!(!keep_alive("HTTP/1.1 200 OK\r\n\r\n"));
        let both = "HTTP/1.1 200 OK\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n";
        assert!(!keep_alive(both));
    }

    #[test]
    fn json_is_told_by_its_media_type() {
        let content = |value: &str| {
            head(&format!("HTTP/1.1 200 OK\r\ncontent-type: {value}\r\nContent-Length: 0\r\n\r\n"))
                .unwrap()
                .unwrap()
                .content
        };
        let is_json = |value: &str| content(value) == Content::Json;
        assert!(is_json("application/json") && is_json("Application/JSON ; charset=utf-8"));
        assert!(!is_json("text/event-stream") && !is_json("application/jsonl"));
        assert_eq!(content("application/json\r\nContent-Encoding: gzip"), Content::Encoded);
        assert_eq!(
            content("text/html\r\ncontent-encoding:br\r\nContent-Type: application/json"),
            Content::Encoded
        );
        assert_eq!(content("application/json\r\nContent-Encoding: identity"), Content::Json);
    }

    #[test]
    fn nonsense_is_refused() {
        for text in [
            "SSH-2.0-OpenSSH\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
            "HTTP/1.1 200 OK\r\nContent-Length: 99999999999999999999\r\n\r\n",
            "HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip\r\n\r\n",
        ] {
            assert_eq!(head(text), Err(Fault::BadHttp), "{text:?}");
        }
        let endless = format!("HTTP/1.1 200 OK\r\nX: {}", "y".repeat(MAX_HEAD));
        assert_eq!(head(&endless), Err(Fault::TooLarge));
    }

    #[test]
    fn a_header_is_found_by_any_case() {
        let text = b"HTTP/1.1 200 OK\r\nServer: dealer-sim/0.1.0\r\nContent-Length: 0\r\n\r\nbody";
        assert_eq!(header(text, "server"), Some("dealer-sim/0.1.0"));
        assert_eq!(header(text, "etag"), None);
    }

    #[test]
    fn bad_chunks_are_refused() {
        for text in ["zz\r\n", "5\n", "5\r\nabcdeXX", "\r\n", "+5\r\nabcde\r\n", "ffffffffff\r\n"] {
            let mut bytes = text.as_bytes().to_vec();
            assert_eq!(Chunks::new(0).advance(&mut bytes), Err(BadHttp), "{text:?}");
        }
    }

    proptest! {
        /// However a chunked body is cut into chunks and into reads, the payload comes out.
        #[test]
        fn chunks_in_any_pieces(
            payload in proptest::collection::vec(any::<u8>(), 0..400),
            chunk in 1usize..50,
            piece in 1usize..30,
            extension: bool,
        ) {
            let mut wire = Vec::new();
            for part in payload.chunks(chunk) {
                let extra = if extension { ";name=value" } else { "" };
                wire.extend_from_slice(format!("{:X}{extra}\r\n", part.len()).as_bytes());
                wire.extend_from_slice(part);
                wire.extend_from_slice(b"\r\n");
            }
            wire.extend_from_slice(b"0\r\nTrailer: x\r\n\r\n");
            let mut buffer = b"HEAD".to_vec();
            let mut chunks = Chunks::new(4);
            let mut done = false;
            for part in wire.chunks(piece) {
                prop_assert!(!done);
                buffer.extend_from_slice(part);
                done = chunks.advance(&mut buffer).unwrap();
            }
            prop_assert!(done);
            prop_assert_eq!(&buffer[chunks.body()], &payload[..]);
            prop_assert_eq!(chunks.end(), buffer.len());
        }

        #[test]
        fn no_bytes_panic(mut bytes in proptest::collection::vec(any::<u8>(), 0..300)) {
            let _ = parse_head(&bytes);
            let _ = header(&bytes, "server");
            let _ = Chunks::new(0).advance(&mut bytes);
        }
    }
}
