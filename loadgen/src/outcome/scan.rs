//! Finds the few members of a reply that say what happened, and skips the rest without parsing it.
//!
//! The scanner follows the structure: strings are skipped as strings and containers by their depth, so that text which
//! looks like a member (`"error":` inside a description) is never taken for one. What it skips it does not validate; a
//! reply that is no JSON deep inside a skipped value passes here and is found by who reads that value. As in every
//! common JSON parser, the last of several equal members counts.

use std::borrow::Cow;

use super::skip::end_of_container;

/// The bytes are not JSON, as far as they were looked at.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotJson;

/// What a value is, from its first byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    Object,
    Array,
    String,
    Null,
    /// A number or a boolean.
    Scalar,
}

/// A value that was skipped: its bytes, without the blanks around it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Raw<'a>(pub(crate) &'a [u8]);

impl<'a> Raw<'a> {
    /// What it is.
    pub(crate) fn kind(self) -> Kind {
        match self.0.first() {
            Some(b'{') => Kind::Object,
            Some(b'[') => Kind::Array,
            Some(b'"') => Kind::String,
            Some(b'n') => Kind::Null,
            _ => Kind::Scalar,
        }
    }

    /// The text of a string.
    pub(crate) fn text(self) -> Option<Cow<'a, str>> {
        let inner = self.0.strip_prefix(b"\"")?.strip_suffix(b"\"")?;
        decode(inner)
    }

    /// The string between its quotes, escapes and all: what may be written back as it is.
    pub(crate) fn quoted(self) -> Option<&'a [u8]> {
        self.0.strip_prefix(b"\"")?.strip_suffix(b"\"")
    }
}

/// The text of a string's inside. Only one with an escape costs a parse.
fn decode(inner: &[u8]) -> Option<Cow<'_, str>> {
    if memchr::memchr(b'\\', inner).is_none() {
        return std::str::from_utf8(inner).ok().map(Cow::Borrowed);
    }
    let mut quoted = Vec::with_capacity(inner.len() + 2);
    quoted.push(b'"');
    quoted.extend_from_slice(inner);
    quoted.push(b'"');
    serde_json::from_slice::<String>(&quoted).ok().map(Cow::Owned)
}

/// Reads through JSON from front to back.
#[derive(Debug, Clone)]
pub(crate) struct Scanner<'a> {
    bytes: &'a [u8],
    at: usize,
}

impl<'a> Scanner<'a> {
    /// A scanner at the start of the bytes.
    pub(crate) fn new(bytes: &'a [u8]) -> Scanner<'a> {
        Scanner { bytes, at: 0 }
    }

    /// Walks an object: calls `member` with each name, without its quotes and escapes, which must take the value, for instance
    /// with [`Scanner::value`].
    /// Any other kind of value is taken and gives `false`.
    pub(crate) fn object(
        &mut self,
        mut member: impl FnMut(&[u8], &mut Scanner<'a>) -> Result<(), NotJson>,
    ) -> Result<bool, NotJson> {
        if self.peek()? != b'{' {
            self.value()?;
            return Ok(false);
        }
        self.at += 1;
        if self.peek()? == b'}' {
            self.at += 1;
            return Ok(true);
        }
        loop {
            if self.peek()? != b'"' {
                return Err(NotJson);
            }
            let name = self.string()?;
            let name = &name[1..name.len() - 1];
            self.expect(b':')?;
            if memchr::memchr(b'\\', name).is_none() {
                member(name, self)?;
            } else {
                member(decode(name).ok_or(NotJson)?.as_bytes(), self)?;
            }
            match self.next()? {
                b',' => {}
                b'}' => return Ok(true),
                _ => return Err(NotJson),
            }
        }
    }

    /// Whether the next value is an array.
    pub(crate) fn is_at_array(&mut self) -> Result<bool, NotJson> {
        Ok(self.peek()? == b'[')
    }

    /// Walks the first elements of an array, up to the one with the index `last`, and leaves the rest: calls `element` with each
    /// index, which must take the value. Any other kind has none.
    pub(crate) fn elements(
        &mut self,
        last: usize,
        mut element: impl FnMut(usize, &mut Scanner<'a>) -> Result<(), NotJson>,
    ) -> Result<(), NotJson> {
        if !self.is_at_array()? {
            return Ok(());
        }
        self.at += 1;
        if self.peek()? == b']' {
            return Ok(());
        }
        for index in 0..=last {
            element(index, self)?;
            if self.next()? != b',' {
                break;
            }
        }
        Ok(())
    }

    /// Walks an array: calls `element` with each index, which must take the value. Any other kind gives `false`.
    pub(crate) fn array(
        &mut self,
        mut element: impl FnMut(usize, &mut Scanner<'a>) -> Result<(), NotJson>,
    ) -> Result<bool, NotJson> {
        if self.peek()? != b'[' {
            self.value()?;
            return Ok(false);
        }
        self.at += 1;
        if self.peek()? == b']' {
            self.at += 1;
            return Ok(true);
        }
        for index in 0.. {
            element(index, self)?;
            match self.next()? {
                b',' => {}
                b']' => return Ok(true),
                _ => return Err(NotJson),
            }
        }
        Err(NotJson)
    }

    /// Takes one value of any kind.
    pub(crate) fn value(&mut self) -> Result<Raw<'a>, NotJson> {
        let raw = match self.peek()? {
            b'"' => self.string()?,
            b'{' | b'[' => self.container()?,
            _ => self.scalar()?,
        };
        Ok(Raw(raw))
    }

    /// Makes sure that only blanks are left.
    pub(crate) fn end(&mut self) -> Result<(), NotJson> {
        self.blanks();
        if self.at == self.bytes.len() { Ok(()) } else { Err(NotJson) }
    }

    fn blanks(&mut self) {
        while let Some(b' ' | b'\n' | b'\r' | b'\t') = self.bytes.get(self.at) {
            self.at += 1;
        }
    }

    fn peek(&mut self) -> Result<u8, NotJson> {
        self.blanks();
        self.bytes.get(self.at).copied().ok_or(NotJson)
    }

    fn next(&mut self) -> Result<u8, NotJson> {
        let byte = self.peek()?;
        self.at += 1;
        Ok(byte)
    }

    fn expect(&mut self, wanted: u8) -> Result<(), NotJson> {
        if self.next()? == wanted { Ok(()) } else { Err(NotJson) }
    }

    /// A string with its quotes; `at` is on the first one.
    fn string(&mut self) -> Result<&'a [u8], NotJson> {
        let start = self.at;
        self.at = end_of_string(self.bytes, start + 1)?;
        Ok(&self.bytes[start..self.at])
    }

    /// An object or array, to its matching end.
    fn container(&mut self) -> Result<&'a [u8], NotJson> {
        let start = self.at;
        self.at = end_of_container(self.bytes, start).ok_or(NotJson)?;
        Ok(&self.bytes[start..self.at])
    }

    fn scalar(&mut self) -> Result<&'a [u8], NotJson> {
        let start = self.at;
        let rest = &self.bytes[start..];
        let length = rest
            .iter()
            .position(|byte| !byte.is_ascii_alphanumeric() && !matches!(byte, b'-' | b'+' | b'.'))
            .unwrap_or(rest.len());
        let scalar = &rest[..length];
        let known = matches!(scalar, b"null" | b"true" | b"false")
            || (matches!(scalar.first(), Some(b'-' | b'0'..=b'9')) && scalar.len() < 1000);
        if !known {
            return Err(NotJson);
        }
        self.at += length;
        Ok(scalar)
    }
}

/// The index after the closing quote of a string whose inside begins at `at`.
fn end_of_string(bytes: &[u8], mut at: usize) -> Result<usize, NotJson> {
    loop {
        let found = memchr::memchr2(b'"', b'\\', bytes.get(at..).ok_or(NotJson)?).ok_or(NotJson)?;
        at += found + 1;
        if bytes[at - 1] == b'"' {
            return Ok(at);
        }
        // The escaped byte is no quote, whatever it is.
        at += 1;
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::{Map, Value};

    use super::*;

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            ".*".prop_map(Value::from),
            Just(Value::from(r#"a string with "error": {"code": 1} inside \ and a brace }"#)),
        ];
        leaf.prop_recursive(5, 60, 6, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..6).prop_map(Value::from),
                proptest::collection::vec((name(), inner), 0..6)
                    .prop_map(|members| Value::Object(members.into_iter().collect::<Map<_, _>>())),
            ]
        })
    }

    fn name() -> impl Strategy<Value = String> {
        prop_oneof![Just("error".to_owned()), Just("result".to_owned()), Just("id".to_owned()), ".{0,12}"]
    }

    proptest! {
        /// The members found by scanning are those found by parsing, whatever the values are.
        #[test]
        fn scanning_equals_parsing(value in any_json(), pretty: bool) {
            let text = if pretty { serde_json::to_string_pretty(&value) } else { serde_json::to_string(&value) }.unwrap();
            let mut scanner = Scanner::new(text.as_bytes());
            let mut found = Map::new();
            let is_object = scanner.object(|name, scanner| {
                let raw = scanner.value()?;
                found.insert(String::from_utf8(name.to_vec()).unwrap(), serde_json::from_slice(raw.0).unwrap());
                Ok(())
            }).unwrap();
            prop_assert_eq!(scanner.end(), Ok(()));
            prop_assert_eq!(is_object, value.is_object());
            if let Value::Object(members) = value {
                prop_assert_eq!(found, members);
            }
        }

        #[test]
        fn elements_equal_parsing(value in proptest::collection::vec(any_json(), 0..5)) {
            let text = serde_json::to_string(&value).unwrap();
            let mut found: Vec<Value> = Vec::new();
            let mut scanner = Scanner::new(text.as_bytes());
            scanner.array(|_, scanner| {
                found.push(serde_json::from_slice(scanner.value()?.0).unwrap());
                Ok(())
            }).unwrap();
            prop_assert_eq!(found, value);
        }

        #[test]
        fn no_bytes_panic(bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let _ = Scanner::new(&bytes).object(|_, scanner| scanner.value().map(drop));
        }

        #[test]
        fn no_jsonish_text_panics(text in r#"[\{\}\[\]",:\\a0 ]{0,60}"#) {
            let _ = Scanner::new(text.as_bytes()).object(|_, scanner| scanner.value().map(drop));
            let _ = Scanner::new(text.as_bytes()).array(|_, scanner| scanner.value().map(drop));
        }

        /// A reply that is cut off anywhere is noticed.
        #[test]
        fn a_truncated_object_is_no_json(value in any_json(), cut in 0.0f64..1.0) {
            let text = serde_json::to_string(&serde_json::json!({ "a": value })).unwrap();
            let mut end = (text.len() as f64 * cut) as usize;
            while !text.is_char_boundary(end) { end -= 1; }
            let mut scanner = Scanner::new(&text.as_bytes()[..end]);
            prop_assert_eq!(scanner.object(|_, scanner| scanner.value().map(drop)), Err(NotJson));
        }
    }

    #[test]
    fn names_are_compared_decoded() {
        let mut seen = Vec::new();
        let text = br#"{"\u0069d": 1, "id": 2, "a\"b": 3}"#;
        Scanner::new(text)
            .object(|name, scanner| {
                seen.push(String::from_utf8(name.to_vec()).unwrap());
                scanner.value().map(drop)
            })
            .unwrap();
        assert_eq!(seen, ["id", "id", "a\"b"]);
    }

    #[test]
    fn what_is_no_json_is_said_so() {
        for text in ["", "<html>", "{", r#"{"a"}"#, r#"{"a":}"#, r#"{"a":1,}"#, r#"{"a":"x}"#, r#"{"a":[1}"#]
        {
            let mut scanner = Scanner::new(text.as_bytes());
            let result = scanner.object(|_, scanner| scanner.value().map(drop)).and_then(|_| scanner.end());
            // Brackets of the wrong kind are only told apart where the scanner looks.
            if text != r#"{"a":[1}"# {
                assert_eq!(result, Err(NotJson), "{text:?}");
            }
        }
    }
}
