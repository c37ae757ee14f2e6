//! A parsed body that borrows from its bytes.
//!
//! A [`Doc`] is a flat list of nodes, in document order, whose strings are spans of the body: one pass, no tree, and
//! buffers that serve the next body again. Reading is `serde_json`'s, so the grammar is exactly RFC 8259; depth is
//! bounded by its limit of [`MAX_DEPTH`]. A name that occurs twice in one object is refused: two readers of such a body
//! may see two different requests (RFC 7493, section 2.3).

use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;
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
    /// The `id` of an envelope: its own bytes, since they are echoed as they came.
    Raw(Span),
    /// `len` items follow; the list ends before node `end`.
    List {
        len: u32,
        end: u32,
    },
    /// `len` pairs of a `Text` and a value follow.
    Record {
        len: u32,
        end: u32,
    },
}

/// A reusable parsed document.
#[derive(Debug, Default)]
pub struct Doc {
    nodes: Vec<Node>,
    unescaped: String,
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
        let mut builder = Builder { doc: self, origin: body.as_ptr() as usize, body_len: body.len() };
        let mut deserializer = serde_json::Deserializer::from_str(body);
        Seed { builder: &mut builder, place: Place::Root }
            .deserialize(&mut deserializer)
            .and_then(|()| deserializer.end())
            .map_err(|error| ParseError::Syntax(error.to_string()))?;
        Ok(Value { doc: self, body, at: 0 })
    }
}

/// Which objects are envelopes, whose `id` stays raw.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Root,
    BatchMember,
    Inner,
}

struct Builder<'d> {
    doc: &'d mut Doc,
    origin: usize,
    body_len: usize,
}

impl Builder<'_> {
    fn push(&mut self, node: Node) -> usize {
        self.doc.nodes.push(node);
        self.doc.nodes.len() - 1
    }

    /// The span of a slice that borrows from the body.
    fn span(&self, text: &str) -> Span {
        let start = (text.as_ptr() as usize).wrapping_sub(self.origin);
        debug_assert!(start + text.len() <= self.body_len);
        Span { start: start as u32, len: text.len() as u32, unescaped: false }
    }

    fn keep(&mut self, text: &str) -> Span {
        let start = self.doc.unescaped.len() as u32;
        self.doc.unescaped.push_str(text);
        Span { start, len: text.len() as u32, unescaped: true }
    }
}

fn resolve<'a>(unescaped: &'a str, body: &'a str, span: Span) -> &'a str {
    let whole = if span.unescaped { unescaped } else { body };
    // The spans were made from slices of these very strings, so they always lie on character boundaries.
    whole.get(span.start as usize..(span.start + span.len) as usize).unwrap_or_default()
}

struct Seed<'b, 'd> {
    builder: &'b mut Builder<'d>,
    place: Place,
}

impl<'de> DeserializeSeed<'de> for Seed<'_, '_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Seed<'_, '_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        self.builder.push(Node::Null);
        Ok(())
    }

    fn visit_bool<E>(self, value: bool) -> Result<(), E> {
        self.builder.push(Node::Bool(value));
        Ok(())
    }

    fn visit_i64<E>(self, value: i64) -> Result<(), E> {
        self.builder.push(Node::Int(value));
        Ok(())
    }

    fn visit_u64<E>(self, value: u64) -> Result<(), E> {
        let node = i64::try_from(value).map_or(Node::Float(value as f64), Node::Int);
        self.builder.push(node);
        Ok(())
    }

    fn visit_f64<E>(self, value: f64) -> Result<(), E> {
        self.builder.push(Node::Float(value));
        Ok(())
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<(), E> {
        let span = self.builder.span(text);
        self.builder.push(Node::Text(span));
        Ok(())
    }

    fn visit_str<E>(self, text: &str) -> Result<(), E> {
        let span = self.builder.keep(text);
        self.builder.push(Node::Text(span));
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<(), A::Error> {
        let head = self.builder.push(Node::List { len: 0, end: 0 });
        let place = if self.place == Place::Root { Place::BatchMember } else { Place::Inner };
        let mut len = 0;
        while items.next_element_seed(Seed { builder: self.builder, place })?.is_some() {
            len += 1;
        }
        self.builder.doc.nodes[head] = Node::List { len, end: self.builder.doc.nodes.len() as u32 };
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<(), A::Error> {
        let Seed { builder, place } = self;
        let head = builder.push(Node::Record { len: 0, end: 0 });
        let mut names = Names::default();
        while let Some(name) = members.next_key_seed(Name { builder, names: &mut names })? {
            if name.is_id && place != Place::Inner {
                let raw: &'de RawValue = members.next_value()?;
                let span = builder.span(raw.get());
                builder.push(Node::Raw(span));
            } else {
                members.next_value_seed(Seed { builder, place: Place::Inner })?;
            }
        }
        builder.doc.nodes[head] =
            Node::Record { len: names.count as u32, end: builder.doc.nodes.len() as u32 };
        Ok(())
    }
}

/// The names of one object seen so far: hashes of the first few in place, all of them in a set once there are more.
#[derive(Default)]
struct Names {
    count: usize,
    first: [Option<(u64, u32)>; PAIRWISE],
    many: HashSet<String>,
}

/// Eight bytes at a time: only sorts out the pairs of names that are surely different.
fn quick_hash(text: &str) -> u64 {
    let step = |hash: u64, piece: u64| {
        let mixed = (hash ^ piece).wrapping_mul(0x9e37_79b9_7f4a_7c15);
        mixed ^ (mixed >> 32)
    };
    let (pieces, rest) = text.as_bytes().as_chunks::<8>();
    let last = rest.iter().fold(0, |piece, byte| (piece << 8) | u64::from(*byte));
    step(pieces.iter().fold(0, |hash, piece| step(hash, u64::from_le_bytes(*piece))), last)
}

struct Name<'b, 'd, 'n> {
    builder: &'b mut Builder<'d>,
    names: &'n mut Names,
}

struct NameRead {
    is_id: bool,
}

impl<'de> DeserializeSeed<'de> for Name<'_, '_, '_> {
    type Value = NameRead;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<NameRead, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Name<'_, '_, '_> {
    fn take<E: serde::de::Error>(self, text: &str, span: Span) -> Result<NameRead, E> {
        let Name { builder, names } = self;
        if names.is_repeated(text) {
            return Err(E::custom(format_args!("repeated member name {text:?}")));
        }
        builder.push(Node::Text(span));
        Ok(NameRead { is_id: text == "id" })
    }
}

impl Names {
    /// Whether `text` was seen before; a 64-bit hash beside the length stands for the name among the first few, since a
    /// clash there would need two crafted names in one small object and only refuses a body nobody sends.
    fn is_repeated(&mut self, text: &str) -> bool {
        let index = self.count;
        self.count += 1;
        let mark = (quick_hash(text), text.len() as u32);
        if index < PAIRWISE {
            if self.first[..index].contains(&Some(mark)) {
                return true;
            }
            self.first[index] = Some(mark);
            return false;
        }
        self.first.contains(&Some(mark)) || !self.many.insert(text.to_owned())
    }
}

impl<'de> Visitor<'de> for Name<'_, '_, '_> {
    type Value = NameRead;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a member name")
    }

    fn visit_borrowed_str<E: serde::de::Error>(self, text: &'de str) -> Result<NameRead, E> {
        let span = self.builder.span(text);
        self.take(text, span)
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<NameRead, E> {
        let span = self.builder.keep(text);
        self.take(text, span)
    }
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

impl<'a> Value<'a> {
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
    pub fn kind(self) -> Kind {
        match self.node() {
            Node::Null => Kind::Null,
            Node::Bool(_) => Kind::Bool,
            Node::Int(_) | Node::Float(_) => Kind::Number,
            Node::Text(_) => Kind::Text,
            Node::List { .. } => Kind::List,
            Node::Record { .. } => Kind::Record,
            Node::Raw(span) => match self.text_of(span).as_bytes().first() {
                Some(b'"') => Kind::Text,
                Some(b'{') => Kind::Record,
                Some(b'[') => Kind::List,
                Some(b't' | b'f') => Kind::Bool,
                Some(b'n') => Kind::Null,
                _ => Kind::Number,
            },
        }
    }

    /// Whether this is `null`.
    pub fn is_null(self) -> bool {
        self.kind() == Kind::Null
    }

    /// The string's text, escapes resolved.
    pub fn as_str(self) -> Option<&'a str> {
        match self.node() {
            Node::Text(span) => Some(self.text_of(span)),
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
        let len = if let Node::Record { len, .. } = self.node() { len } else { 0 };
        let mut next = self.at + 1;
        (0..len).map(move |_| {
            let name = self.sibling(next).as_str().unwrap_or_default();
            let value = self.sibling(next + 1);
            next = value.end();
            (name, value)
        })
    }

    /// The member with this name.
    pub fn get(self, name: &str) -> Option<Value<'a>> {
        let Node::Record { len, .. } = self.node() else { return None };
        let mut at = self.at + 1;
        for _ in 0..len {
            let value = self.sibling(at + 1);
            // Most names differ in length, which is seen without a look at the body.
            match self.doc.nodes.get(at as usize) {
                Some(Node::Text(span)) if span.len as usize == name.len() && self.text_of(*span) == name => {
                    return Some(value);
                }
                _ => at = value.end(),
            }
        }
        None
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
            Node::Text(span) => super::write::string(out, self.text_of(span)),
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
