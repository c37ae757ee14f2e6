//! A parsed body that borrows from its bytes.
//!
//! A [`Doc`] is a flat list of nodes, in document order, whose strings are spans of the body: one pass, no tree, and
//! buffers that serve the next body again. The usual body is read by `quick`; any other by `serde_json`, so the grammar is
//! exactly RFC 8259, and the words about a mistake are its own; depth is bounded by its limit of [`MAX_DEPTH`]. A name that occurs twice in one object is refused: two readers of such a body
//! may see two different requests (RFC 7493, section 2.3).

mod careful;
pub(in crate::protocol) mod quick;

use std::fmt;

use smallvec::SmallVec;

/// Containers a body may nest (`serde_json`'s recursion limit, which counts the innermost value too).
pub const MAX_DEPTH: usize = 127;

/// Up to this many members duplicates are looked for pair by pair, beyond it with a hash set.
const PAIRWISE: usize = 16;

/// Where a string's text lies: in the body, or, when it had escapes, in the side buffer.
#[derive(Debug, Clone, Copy)]
struct Span {
    start: u32,
    len: u32,
    unescaped: bool,
}

#[derive(Debug, Clone, Copy)]
enum Node {
    Null,
    Bool(bool),
    Int(i64),
    Float(f64),
    Text(Span),
    /// The name of a member that is a slice of the body, with its [`quick::mark`].
    Name {
        len: u16,
        start: u32,
        mark: u64,
    },
    /// The `id` of an envelope: its own bytes, since they are echoed as they came.
    Raw(Span),
    /// `len` items follow; the list ends before node `end`.
    List {
        len: u32,
        end: u32,
    },
    /// `len` pairs of a name (`Name` or `Text`) and a value follow.
    Record {
        len: u32,
        end: u32,
    },
}

/// A node is two words.
const _: () = assert!(size_of::<Node>() == 16);

/// A reusable parsed document.
#[derive(Debug, Default)]
pub struct Doc {
    nodes: Vec<Node>,
    unescaped: String,
    /// Names of the objects that are being read: mark, start and length.
    names: Vec<(u64, u32, u16)>,
}

/// Why a body is not JSON.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Not UTF-8; the offset of the first bad byte.
    #[error("the body is not UTF-8 (byte {0})")]
    Utf8(usize),
    /// Not one JSON document; `serde_json`'s words, with line and column.
    #[error("{0}")]
    Syntax(String),
}

impl Doc {
    /// Parses one JSON document, replacing what was held before. The `id` of the top object, and of each object of a
    /// top array (a batch), is kept as raw bytes. A leading byte order mark is skipped (RFC 8259, section 8.1).
    ///
    /// # Errors
    /// [`ParseError`] for anything that is not exactly one JSON document in UTF-8 without repeated names.
    ///
    /// ```
    /// let mut doc = dealer_sim::protocol::json::Doc::default();
    /// let root = doc.parse(br#"{"limit": 2e1, "id": 18446744073709551616}"#).unwrap();
    /// assert_eq!(root.get("limit").unwrap().as_integer(), Some(20));
    /// assert_eq!(root.get("id").unwrap().as_raw(), Some("18446744073709551616"));
    /// ```
    pub fn parse<'a>(&'a mut self, body: &'a [u8]) -> Result<Value<'a>, ParseError> {
        let body = std::str::from_utf8(body).map_err(|error| ParseError::Utf8(error.valid_up_to()))?;
        let body = body.strip_prefix('\u{feff}').unwrap_or(body);
        self.nodes.clear();
        self.unescaped.clear();
        if quick::read(self, body).is_none() {
            self.nodes.clear();
            careful::read(self, body)?;
        }
        Ok(self.value(body))
    }

    fn value<'a>(&'a self, body: &'a str) -> Value<'a> {
        Value { doc: self, body, at: 0 }
    }
}

/// Which objects are envelopes, whose `id` stays raw.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Root,
    BatchMember,
    Inner,
}

fn resolve<'a>(unescaped: &'a str, body: &'a str, span: Span) -> &'a str {
    let whole = if span.unescaped { unescaped } else { body };
    // The spans were made from slices of these very strings, so they always lie on character boundaries.
    whole.get(span.start as usize..(span.start + span.len) as usize).unwrap_or_default()
}

/// One value of a [`Doc`].
#[derive(Clone, Copy)]
pub struct Value<'a> {
    doc: &'a Doc,
    body: &'a str,
    at: u32,
}

/// The JSON type of a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// `null`
    Null,
    /// `true` or `false`
    Bool,
    /// Any number.
    Number,
    /// A string.
    Text,
    /// An array.
    List,
    /// An object.
    Record,
}

fn kind_of_raw(text: &str) -> Kind {
    match text.as_bytes().first() {
        Some(b'"') => Kind::Text,
        Some(b'{') => Kind::Record,
        Some(b'[') => Kind::List,
        Some(b't' | b'f') => Kind::Bool,
        Some(b'n') => Kind::Null,
        _ => Kind::Number,
    }
}

impl<'a> Value<'a> {
    #[inline]
    fn node(self) -> Node {
        self.doc.nodes.get(self.at as usize).copied().unwrap_or(Node::Null)
    }

    fn text_of(self, span: Span) -> &'a str {
        resolve(&self.doc.unescaped, self.body, span)
    }

    fn sibling(self, at: u32) -> Value<'a> {
        Value { at, ..self }
    }

    /// The node after this value and all it holds.
    fn end(self) -> u32 {
        match self.node() {
            Node::List { end, .. } | Node::Record { end, .. } => end,
            _ => self.at + 1,
        }
    }

    /// The JSON type. An `id` kept raw is told by its first byte.
    #[inline]
    pub fn kind(self) -> Kind {
        match self.node() {
            Node::Null => Kind::Null,
            Node::Bool(_) => Kind::Bool,
            Node::Int(_) | Node::Float(_) => Kind::Number,
            Node::Text(_) | Node::Name { .. } => Kind::Text,
            Node::List { .. } => Kind::List,
            Node::Record { .. } => Kind::Record,
            Node::Raw(span) => kind_of_raw(self.text_of(span)),
        }
    }

    /// Whether this is `null`.
    pub fn is_null(self) -> bool {
        self.kind() == Kind::Null
    }

    /// The string's text, escapes resolved.
    #[inline]
    pub fn as_str(self) -> Option<&'a str> {
        match self.node() {
            Node::Text(span) => Some(self.text_of(span)),
            Node::Name { start, len, .. } => {
                Some(self.text_of(Span { start, len: len.into(), unescaped: false }))
            }
            _ => None,
        }
    }

    /// The bytes of an envelope's `id`, as they came.
    pub fn as_raw(self) -> Option<&'a str> {
        match self.node() {
            Node::Raw(span) => Some(self.text_of(span)),
            _ => None,
        }
    }

    /// The boolean.
    pub fn as_bool(self) -> Option<bool> {
        match self.node() {
            Node::Bool(value) => Some(value),
            _ => None,
        }
    }

    /// The number, when its fraction is zero (`20`, `20.0` and `2e1` are one integer: JSON Schema 2020-12, core 6.3;
    /// some client libraries send every number as a double). Beyond 64 bits it saturates, which no bound admits.
    pub fn as_integer(self) -> Option<i64> {
        match self.node() {
            Node::Int(value) => Some(value),
            Node::Float(value) if value.fract() == 0.0 => Some(value as i64),
            _ => None,
        }
    }

    /// The number as a double.
    pub fn as_f64(self) -> Option<f64> {
        match self.node() {
            Node::Int(value) => Some(value as f64),
            Node::Float(value) => Some(value),
            _ => None,
        }
    }

    /// Items of an array or members of an object; 0 for a scalar.
    pub fn len(self) -> usize {
        match self.node() {
            Node::List { len, .. } | Node::Record { len, .. } => len as usize,
            _ => 0,
        }
    }

    /// Whether there are no items or members.
    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    /// The items of an array; nothing for any other value.
    pub fn items(self) -> impl Iterator<Item = Value<'a>> {
        let len = if let Node::List { len, .. } = self.node() { len } else { 0 };
        let mut next = self.at + 1;
        (0..len).map(move |_| {
            let item = self.sibling(next);
            next = item.end();
            item
        })
    }

    /// The members of an object, in their order; nothing for any other value.
    pub fn members(self) -> impl Iterator<Item = (&'a str, Value<'a>)> {
        self.pairs().map(|(name, value)| (name.as_str().unwrap_or_default(), value))
    }

    /// The same, with each name as it was read, which [`Value::is_named`] tells from others by its mark.
    pub(super) fn pairs(self) -> impl Iterator<Item = (Value<'a>, Value<'a>)> {
        let len = if let Node::Record { len, .. } = self.node() { len } else { 0 };
        let mut next = self.at + 1;
        (0..len).map(move |_| {
            let (name, value) = (self.sibling(next), self.sibling(next + 1));
            next = value.end();
            (name, value)
        })
    }

    /// The member with this name.
    #[inline]
    pub fn get(self, name: &str) -> Option<Value<'a>> {
        // The mark of a name that stands in the code is worked out by the compiler.
        self.find(name, quick::mark(name))
    }

    fn find(self, name: &str, mark: u64) -> Option<Value<'a>> {
        self.pairs().find(|(named, _)| named.is_named(name, mark)).map(|(_, value)| value)
    }

    /// The members with these names, found in one pass.
    #[inline]
    pub fn gather<const N: usize>(self, names: [&str; N]) -> [Option<Value<'a>>; N] {
        let marks = names.map(quick::mark);
        let mut found = [None; N];
        for (named, value) in self.pairs() {
            let which = (0..N).find(|&index| named.is_named(names[index], marks[index]));
            if let Some(index) = which {
                found[index] = Some(value);
            }
        }
        found
    }

    /// Whether this is the name of a member, and this one; `mark` is the name's.
    #[inline]
    fn is_named(self, name: &str, mark: u64) -> bool {
        match self.node() {
            Node::Name { mark: own, len, .. } if own != mark || usize::from(len) != name.len() => false,
            Node::Name { len: ..=8, .. } => true,
            _ => self.as_str() == Some(name),
        }
    }

    /// Which of these this is the name of, given what names each of them, its mark, and whether it counts.
    #[inline]
    pub(super) fn position_in<T>(
        self,
        list: &[T],
        name: impl Fn(&T) -> (&'static str, u64),
        counts: impl Fn(&T) -> bool,
    ) -> Option<usize> {
        let Node::Name { mark, len, .. } = self.node() else {
            let text = self.as_str()?;
            return list.iter().position(|entry| name(entry).0 == text && counts(entry));
        };
        list.iter().position(|entry| {
            let (text, own) = name(entry);
            own == mark
                && text.len() == usize::from(len)
                && (len <= 8 || self.as_str() == Some(text))
                && counts(entry)
        })
    }

    /// Writes the value as canonical JSON: members sorted by name, integers without fraction or exponent, no white
    /// space. Two values are the same JSON value exactly when these bytes are equal. Members that `skip` names
    /// are left out, at any depth.
    pub fn write_canonical(self, skip: &[&str], out: &mut Vec<u8>) {
        match self.node() {
            Node::Null => out.extend_from_slice(b"null"),
            Node::Bool(value) => out.extend_from_slice(if value { b"true" } else { b"false" }),
            Node::Int(value) => super::write::integer(out, value),
            Node::Float(value) => super::write::number(out, value),
            Node::Text(_) | Node::Name { .. } => super::write::string(out, self.as_str().unwrap_or_default()),
            Node::Raw(span) => out.extend_from_slice(self.text_of(span).as_bytes()),
            Node::List { .. } => {
                out.push(b'[');
                for (index, item) in self.items().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    item.write_canonical(skip, out);
                }
                out.push(b']');
            }
            Node::Record { .. } => {
                // Few objects have more members; those that do pay for one allocation.
                let mut members: SmallVec<[(&str, Value<'_>); PAIRWISE]> =
                    self.members().filter(|(name, _)| !skip.contains(name)).collect();
                members.sort_unstable_by_key(|(name, _)| *name);
                out.push(b'{');
                for (index, (name, value)) in members.into_iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    super::write::string(out, name);
                    out.push(b':');
                    value.write_canonical(skip, out);
                }
                out.push(b'}');
            }
        }
    }
}

impl fmt::Debug for Value<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut bytes = Vec::new();
        self.write_canonical(&[], &mut bytes);
        f.write_str(&String::from_utf8_lossy(&bytes))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(text: &str) -> String {
        let mut doc = Doc::default();
        let mut out = Vec::new();
        doc.parse(text.as_bytes()).unwrap().write_canonical(&[], &mut out);
        String::from_utf8(out).unwrap()
    }

    fn refused(text: &[u8]) -> String {
        Doc::default().parse(text).unwrap_err().to_string()
    }

    #[test]
    fn equal_values_have_equal_canonical_bytes() {
        assert_eq!(canonical(r#"{"b":20.0,"a":[1e0,"\u0041"]}"#), r#"{"a":[1,"A"],"b":20}"#);
        assert_eq!(canonical("-0.0"), canonical("0"));
        assert_eq!(canonical("1.5"), "1.5");
        assert_ne!(canonical("1"), canonical("\"1\""));
    }

    #[test]
    fn what_is_not_one_document_is_refused() {
        for bad in
            ["", " ", "{", "[1,]", "{\"a\":1,}", "01", "NaN", "{} {}", "1 // c", "\"\\ud800\"", "\"\u{1}\""]
        {
            assert!(Doc::default().parse(bad.as_bytes()).is_err(), "{bad:?}");
        }
        assert!(refused(b"\"\xff\"").contains("UTF-8"));
        let deep = "[".repeat(100_000);
        assert!(refused(deep.as_bytes()).contains("recursion limit"));
    }

    #[test]
    fn repeated_names_are_refused_in_small_and_large_objects() {
        assert!(refused(br#"{"a":1,"\u0061":2}"#).contains("repeated member name \"a\""));
        let mut many: String = (0..500).map(|i| format!("\"k{i}\":0,")).collect();
        assert!(Doc::default().parse(format!("{{{many}\"z\":0}}").as_bytes()).is_ok());
        many.push_str("\"k499\":1");
        assert!(refused(format!("{{{many}}}").as_bytes()).contains("k499"));
        assert!(refused(format!("{{{}\"k3\":1}}", &many[..many.len() - 8]).as_bytes()).contains("k3"));
    }

    #[test]
    fn ids_stay_as_they_came_in_single_calls_and_batches() {
        let mut doc = Doc::default();
        let root = doc.parse(br#"[{"id":"\u0061", "x":{"id":1}},{"id":1.50}]"#).unwrap();
        let ids: Vec<_> = root.items().map(|item| item.get("id").unwrap().as_raw().unwrap()).collect();
        assert_eq!(ids, [r#""\u0061""#, "1.50"]);
        assert_eq!(root.items().next().unwrap().get("x").unwrap().get("id").unwrap().as_integer(), Some(1));
    }

    #[test]
    fn a_byte_order_mark_is_skipped_and_spans_still_fit() {
        let mut doc = Doc::default();
        let root = doc.parse("\u{feff}{\"a\":\"xy\"}".as_bytes()).unwrap();
        assert_eq!(root.get("a").unwrap().as_str(), Some("xy"));
    }

    #[test]
    fn integers_are_numbers_without_fraction() {
        let mut doc = Doc::default();
        let root = doc.parse(b"[20, 20.0, 2e1, 1.5, 18446744073709551615, \"20\"]").unwrap();
        let read: Vec<_> = root.items().map(Value::as_integer).collect();
        assert_eq!(read, [Some(20), Some(20), Some(20), None, Some(i64::MAX), None]);
    }
}
