//! Reads any body, as `serde_json` does, which also has the words for what is wrong with it.

use std::collections::HashSet;
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::value::RawValue;

use super::{Doc, Node, PAIRWISE, ParseError, Place, Span};

/// Reads the body into the document's nodes, which are empty.
pub(super) fn read(doc: &mut Doc, body: &str) -> Result<(), ParseError> {
    let mut builder = Builder { doc, origin: body.as_ptr() as usize, body_len: body.len() };
    let mut deserializer = serde_json::Deserializer::from_str(body);
    Seed { builder: &mut builder, place: Place::Root }
        .deserialize(&mut deserializer)
        .and_then(|()| deserializer.end())
        .map_err(|error| ParseError::Syntax(error.to_string()))
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
