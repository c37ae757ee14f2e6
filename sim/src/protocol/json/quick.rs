//! Reads the usual body in one pass over its bytes.
//!
//! It knows plain strings, whole numbers of up to 18 digits, and objects of few members, which is what agents send. At anything
//! else (an escape, a fraction, a repeated name, a mistake) it gives up, and `serde_json` reads the body from its
//! start and has the last word. So it may refuse what is right, and that costs time alone; it must never read what is wrong, or
//! read it differently: a property test holds the two to each other.

use super::{Doc, Node, Place, Span};

/// Containers within containers; deeper bodies are read by `serde_json`, which has a limit of its own.
const MAX_DEPTH: u32 = 64;
/// Members of an object; more of them are looked through for repeated names with a set.
const MAX_MEMBERS: usize = 64;
/// Digits of a number that surely fits 64 bits.
const MAX_DIGITS: usize = 18;

/// The name of a member as a number: its first eight bytes, filled up with zeros. Among names without NUL, those of up to eight
/// bytes are equal when marks and lengths are.
pub(in crate::protocol) const fn mark(name: &str) -> u64 {
    let bytes = name.as_bytes();
    if let Some(first) = bytes.first_chunk::<8>() {
        return u64::from_le_bytes(*first);
    }
    let (mut word, mut at) = (0, 0);
    while at < bytes.len() {
        word |= (bytes[at] as u64) << (8 * at);
        at += 1;
    }
    word
}

/// Whether each of eight bytes ends the plain part of a string, as the highest bit of each byte, of which the lowest that is set
/// is told right: control characters, the quotation mark and the backslash (Warren, Hacker's Delight, section 6-1).
fn stops(piece: [u8; 8]) -> u64 {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let word = u64::from_le_bytes(piece);
    let below = |word: u64, bound: u8| word.wrapping_sub(EACH * u64::from(bound)) & !word;
    let is = |byte: u8| below(word ^ (EACH * u64::from(byte)), 1);
    (below(word, 0x20) | is(b'"') | is(b'\\')) & (EACH << 7)
}

/// Reads the body into the document's nodes, which are empty.
///
/// None where it has to be read by `serde_json`; the nodes then hold what was read so far.
pub(super) fn read(doc: &mut Doc, body: &str) -> Option<()> {
    // Spans are of 32 bits.
    u32::try_from(body.len()).ok()?;
    doc.names.clear();
    let mut reader = Reader { bytes: body.as_bytes(), at: 0, doc };
    reader.value(Place::Root, 0)?;
    (reader.peek().is_none()).then_some(())
}

struct Reader<'a> {
    bytes: &'a [u8],
    at: usize,
    doc: &'a mut Doc,
}

impl Reader<'_> {
    /// The next byte that is no white space.
    fn peek(&mut self) -> Option<u8> {
        loop {
            match self.bytes.get(self.at)? {
                b' ' | b'\n' | b'\t' | b'\r' => self.at += 1,
                other => return Some(*other),
            }
        }
    }

    fn take(&mut self, byte: u8) -> Option<()> {
        (self.peek()? == byte).then(|| self.at += 1)
    }

    fn push(&mut self, node: Node) -> usize {
        self.doc.nodes.push(node);
        self.doc.nodes.len() - 1
    }

    fn value(&mut self, place: Place, depth: u32) -> Option<()> {
        let node = match self.peek()? {
            b'"' => Node::Text(self.text()?),
            b'{' => return self.record(place, depth),
            b'[' => return self.list(place, depth),
            b't' => self.literal(b"true", Node::Bool(true))?,
            b'f' => self.literal(b"false", Node::Bool(false))?,
            b'n' => self.literal(b"null", Node::Null)?,
            _ => Node::Int(self.integer()?),
        };
        self.push(node);
        Some(())
    }

    fn literal(&mut self, word: &[u8], node: Node) -> Option<Node> {
        self.bytes.get(self.at..)?.starts_with(word).then(|| {
            self.at += word.len();
            node
        })
    }

    /// A string without escapes; its opening quotation mark is next.
    fn text(&mut self) -> Option<Span> {
        let start = self.at + 1;
        let mut end = start;
        while let Some(piece) = self.bytes.get(end..).and_then(<[u8]>::first_chunk) {
            let found = stops(*piece);
            if found != 0 {
                end += found.trailing_zeros() as usize / 8;
                break;
            }
            end += 8;
        }
        // The last few bytes of the body are looked at one by one.
        while *self.bytes.get(end)? >= 0x20 && !matches!(self.bytes[end], b'"' | b'\\') {
            end += 1;
        }
        self.at = end + 1;
        (self.bytes[end] == b'"').then(|| Span {
            start: start as u32,
            len: (end - start) as u32,
            unescaped: false,
        })
    }

    /// A number without fraction or exponent. -0 is none: it is the double -0.0.
    fn integer(&mut self) -> Option<i64> {
        let negative = self.bytes[self.at] == b'-';
        let start = self.at + usize::from(negative);
        let mut number = 0i64;
        let mut end = start;
        while let Some(digit @ b'0'..=b'9') = self.bytes.get(end) {
            if end - start == MAX_DIGITS {
                return None;
            }
            number = number * 10 + i64::from(digit - b'0');
            end += 1;
        }
        let zero_first = self.bytes.get(start) == Some(&b'0');
        let is_odd = matches!(self.bytes.get(end), Some(b'.' | b'e' | b'E'));
        if end == start || is_odd || (zero_first && (end - start > 1 || negative)) {
            return None;
        }
        self.at = end;
        Some(if negative { -number } else { number })
    }

    /// Whether another element follows, behind a comma; else the closing byte is taken.
    fn goes_on(&mut self, close: u8) -> Option<bool> {
        let next = self.peek()?;
        self.at += 1;
        match next {
            b',' => Some(true),
            other if other == close => Some(false),
            _ => None,
        }
    }

    fn list(&mut self, place: Place, depth: u32) -> Option<()> {
        let head = self.push(Node::List { len: 0, end: 0 });
        let place = if place == Place::Root { Place::BatchMember } else { Place::Inner };
        let depth = (depth < MAX_DEPTH).then_some(depth + 1)?;
        self.at += 1;
        let mut len = 0;
        if self.peek()? == b']' {
            self.at += 1;
        } else {
            loop {
                self.value(place, depth)?;
                len += 1;
                if !self.goes_on(b']')? {
                    break;
                }
            }
        }
        self.doc.nodes[head] = Node::List { len, end: self.doc.nodes.len() as u32 };
        Some(())
    }

    fn record(&mut self, place: Place, depth: u32) -> Option<()> {
        let head = self.push(Node::Record { len: 0, end: 0 });
        let depth = (depth < MAX_DEPTH).then_some(depth + 1)?;
        let before = self.doc.names.len();
        self.at += 1;
        let mut len = 0;
        if self.peek()? == b'}' {
            self.at += 1;
        } else {
            loop {
                let is_id = self.name(before)?;
                self.take(b':')?;
                if is_id && place != Place::Inner {
                    self.raw(depth)?;
                } else {
                    self.value(Place::Inner, depth)?;
                }
                len += 1;
                if !self.goes_on(b'}')? {
                    break;
                }
            }
        }
        self.doc.names.truncate(before);
        self.doc.nodes[head] = Node::Record { len, end: self.doc.nodes.len() as u32 };
        Some(())
    }

    /// The name of a member, which none has of those since `before`; whether it is `id`.
    fn name(&mut self, before: usize) -> Option<bool> {
        if self.peek()? != b'"' {
            return None;
        }
        let start = self.at + 1;
        // Eight bytes from the start of the name on, of which those behind its end are cleared.
        let ahead = self.bytes.get(start..)?.first_chunk().map(|piece| u64::from_le_bytes(*piece));
        let Span { len, .. } = self.text()?;
        let word = ahead?;
        let mark = if len < 8 { word & !(u64::MAX << (8 * len)) } else { word };
        let (start, len) = (start as u32, u16::try_from(len).ok()?);
        let seen = &self.doc.names[before..];
        let is_repeated = seen.iter().any(|(other, at, length)| {
            *other == mark && *length == len && (len <= 8 || self.same(*at, start, len))
        });
        if is_repeated || seen.len() == MAX_MEMBERS {
            return None;
        }
        self.doc.names.push((mark, start, len));
        self.push(Node::Name { start, len, mark });
        Some(len == 2 && mark == const { mark_of_id() })
    }

    fn same(&self, one: u32, other: u32, len: u16) -> bool {
        let of = |at: u32| self.bytes.get(at as usize..at as usize + usize::from(len));
        of(one) == of(other)
    }

    /// The `id` of an envelope, which is kept as its own bytes.
    fn raw(&mut self, depth: u32) -> Option<()> {
        self.peek()?;
        let (start, held) = (self.at, self.doc.nodes.len());
        self.value(Place::Inner, depth)?;
        self.doc.nodes.truncate(held);
        let len = (self.at - start) as u32;
        self.push(Node::Raw(Span { start: start as u32, len, unescaped: false }));
        Some(())
    }
}

const fn mark_of_id() -> u64 {
    mark("id")
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// What was read, as far as anybody can see it: the canonical text, and each `id` as it came.
    fn seen(doc: &Doc, body: &str) -> (String, Vec<String>) {
        let root = doc.value(body);
        let mut text = Vec::new();
        root.write_canonical(&[], &mut text);
        let of = |value: super::super::Value<'_>| value.get("id")?.as_raw().map(str::to_owned);
        let ids = std::iter::once(root).chain(root.items()).filter_map(of).collect();
        (String::from_utf8(text).unwrap(), ids)
    }

    /// Whether it was read quickly; if so, `serde_json` has read the same.
    fn agrees(body: &str) -> bool {
        let (mut quick, mut slow) = (Doc::default(), Doc::default());
        if read(&mut quick, body).is_none() {
            return false;
        }
        super::super::careful::read(&mut slow, body)
            .unwrap_or_else(|error| panic!("{body} was read, but {error}"));
        assert_eq!(seen(&quick, body), seen(&slow, body), "{body}");
        assert_eq!(quick.nodes.len(), slow.nodes.len(), "{body}");
        true
    }

    #[test]
    fn the_usual_is_read_quickly_and_the_unusual_left_to_others() {
        for usual in [
            "{}",
            "[]",
            " [ ] ",
            "0",
            "-1",
            "true",
            "null",
            "\"\"",
            "\"naïve\"",
            r#"{"jsonrpc":"2.0","id":"a","params":{"id":[1],"year_min":2020,"year_max":2021}}"#,
            r#"[{"id":1},{"id":{"x":"y"}}]"#,
            r#"{"electric_range_mi_min":1,"electric_range_mi_max":2}"#,
            "[123456789012345678]",
        ] {
            assert!(agrees(usual), "{usual}");
        }
        let deep = format!("{}{}", "[".repeat(90), "]".repeat(90));
        for other in [
            "",
            " ",
            "{",
            "[1,]",
            "{\"a\":1,}",
            "01",
            "-",
            "-0",
            "1.0",
            "1e2",
            "1234567890123456789",
            "tru",
            "nulL",
            "{} {}",
            "\"\\n\"",
            "\"\u{1}\"",
            "{\"a\":1,\"a\":2}",
            "{\"abcdefghij\":1,\"abcdefghij\":2}",
            "{\"a\" 1}",
            "[1 2]",
            "{1:2}",
            "[1}",
            "{\"a\":1]",
            "\"abc",
            "\"abcdefghijk",
            "NaN",
            deep.as_str(),
        ] {
            assert!(!agrees(other), "{other}");
        }
    }

    fn json() -> impl Strategy<Value = String> {
        let leaf = prop_oneof![
            "-?[0-9]{1,19}",
            "-?[0-9]{1,3}\\.[0-9]{1,3}",
            "true|false|null|nul",
            "\"[ -~é€]{0,20}\"",
            "\"[a-c\\\\\"n]{0,4}\"",
        ];
        leaf.prop_recursive(5, 60, 8, |inner| {
            let member = ("(id|a|abcdefgh|abcdefghi|abcdefghij)", "[ \n\t]{0,2}", inner.clone())
                .prop_map(|(name, space, value)| format!("{space}\"{name}\"{space}:{space}{value}"));
            prop_oneof![
                prop::collection::vec(inner, 0..6).prop_map(|items| format!("[{}]", items.join(","))),
                prop::collection::vec(member, 0..6).prop_map(|items| format!("{{{}}}", items.join(","))),
            ]
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2_000))]

        #[test]
        fn both_readers_read_the_same(body in json(), at in any::<prop::sample::Index>(), byte in "[ -~]") {
            agrees(&body);
            // One character more, or another one: most of it is no JSON any more.
            let chars: Vec<char> = body.chars().collect();
            let at = at.index(chars.len());
            for skip in [0, 1] {
                let spoilt: String =
                    chars[..at].iter().copied().chain(byte.chars()).chain(chars[at + skip..].iter().copied()).collect();
                agrees(&spoilt);
            }
        }
    }
}
