//! The header fields of the modern revisions, which repeat what the body says so that proxies need not read it.

use hyper::HeaderMap;
use hyper::header::{HeaderName, HeaderValue};

use crate::protocol::headers::trim;

const VERSION: HeaderName = HeaderName::from_static("mcp-protocol-version");
const METHOD: HeaderName = HeaderName::from_static("mcp-method");
const NAME: HeaderName = HeaderName::from_static("mcp-name");

/// The header fields that matter, of one request.
#[derive(Debug, Clone, Copy)]
pub struct Headers<'h>(&'h HeaderMap);

/// What a field says, held against what it should.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Told {
    /// It is not there.
    Absent,
    /// The same as the body.
    Same,
    /// Something else, or nothing that can be read.
    Other,
}

impl<'h> Headers<'h> {
    /// Those of a head.
    pub fn of(head: &'h HeaderMap) -> Headers<'h> {
        Headers(head)
    }

    /// `MCP-Protocol-Version`, if it is one text; of several lines the first, which must then be that of all
    /// ([`Headers::version_is`]).
    pub(super) fn version(self) -> Option<&'h str> {
        std::str::from_utf8(trim(self.0.get(VERSION)?.as_bytes())).ok()
    }

    pub(super) fn has_version(self) -> bool {
        self.0.contains_key(VERSION)
    }

    pub(super) fn version_is(self, version: &str) -> Told {
        self.told(&VERSION, |value| value == version.as_bytes())
    }

    pub(super) fn method_is(self, method: &str) -> Told {
        self.told(&METHOD, |value| value == method.as_bytes())
    }

    /// `Mcp-Name` may be encoded (2026-07-28, Streamable HTTP, "Value Encoding").
    pub(super) fn name_is(self, name: &str) -> Told {
        self.told(&NAME, |value| {
            value == name.as_bytes() || encoded(value).is_some_and(|decoded| decoded == name.as_bytes())
        })
    }

    /// Every line must say it: two that differ would be read by different proxies differently.
    fn told(self, name: &HeaderName, says: impl Fn(&[u8]) -> bool) -> Told {
        let mut told = Told::Absent;
        for line in self.0.get_all(name).iter().map(HeaderValue::as_bytes) {
            if !says(trim(line)) {
                return Told::Other;
            }
            told = Told::Same;
        }
        told
    }
}

/// The text of `=?base64?…?=`, whose marks are in lower case.
fn encoded(value: &[u8]) -> Option<Vec<u8>> {
    from_base64(value.strip_prefix(b"=?base64?")?.strip_suffix(b"?=")?)
}

/// Base 64 of RFC 4648, section 4, with its padding.
fn from_base64(text: &[u8]) -> Option<Vec<u8>> {
    let digits = match text {
        [digits @ .., b'=', b'='] | [digits @ .., b'='] => digits,
        digits => digits,
    };
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let mut out = Vec::with_capacity(digits.len() * 3 / 4);
    for group in digits.chunks(4) {
        let mut bits: u32 = 0;
        for digit in group {
            let value = match digit {
                b'A'..=b'Z' => digit - b'A',
                b'a'..=b'z' => digit - b'a' + 26,
                b'0'..=b'9' => digit - b'0' + 52,
                b'+' => 62,
                b'/' => 63,
                _ => return None,
            };
            bits = bits << 6 | u32::from(value);
        }
        bits <<= 6 * (4 - group.len());
        out.extend_from_slice(&bits.to_be_bytes()[1..group.len()]);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn name(lines: &[&str], name: &str) -> Told {
        let mut head = HeaderMap::new();
        for line in lines {
            head.append(NAME, HeaderValue::from_str(line).unwrap());
        }
        Headers::of(&head).name_is(name)
    }

    #[test]
    fn a_name_may_be_encoded() {
        for (line, of) in [
            ("aap_lead_submit", "aap_lead_submit"),
            (" aap_lead_submit\t", "aap_lead_submit"),
            ("=?base64?YWFwX2xlYWRfc3VibWl0?=", "aap_lead_submit"),
            ("=?base64?Zg==?=", "f"),
            ("=?base64?Zm8=?=", "fo"),
            ("=?base64?w6kvPz4=?=", "é/?>"),
            ("=?base64??=", ""),
        ] {
            assert_eq!(name(&[line], of), Told::Same, "{line}");
        }
        for line in
            ["=?BASE64?Zg==?=", "=?base64?Zg?=", "=?base64?Z===?=", "=?base64?Z*==?=", "Zg==", "F", ""]
        {
            assert_eq!(name(&[line], "f"), Told::Other, "{line}");
        }
        assert_eq!(name(&[], "f"), Told::Absent);
        assert_eq!(name(&["f", "g"], "f"), Told::Other);
    }
}
