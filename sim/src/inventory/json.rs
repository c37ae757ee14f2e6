//! Writing JSON by hand: the few forms that vehicles need, straight into a buffer.

pub(crate) use crate::protocol::write::{escaped, string, unsigned as number};

/// Appends `,` unless the buffer is empty, then `"name":`. Names are ours and need no escapes.
pub(crate) fn key(out: &mut Vec<u8>, name: &str) {
    if !out.is_empty() {
        out.push(b',');
    }
    out.push(b'"');
    out.extend_from_slice(name.as_bytes());
    out.extend_from_slice(b"\":");
}

/// Appends a member with a text.
pub(crate) fn text_member(out: &mut Vec<u8>, name: &str, text: &str) {
    key(out, name);
    string(out, text);
}

/// Appends a member with a whole number.
pub(crate) fn number_member(out: &mut Vec<u8>, name: &str, value: u64) {
    key(out, name);
    number(out, value);
}

/// Appends an array of texts.
pub(crate) fn text_array<'a>(out: &mut Vec<u8>, items: impl IntoIterator<Item = &'a str>) {
    out.push(b'[');
    for (index, item) in items.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        string(out, item);
    }
    out.push(b']');
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn strings_read_back(text in any::<String>()) {
            let mut out = Vec::new();
            string(&mut out, &text);
            prop_assert_eq!(serde_json::from_slice::<String>(&out).unwrap(), text);
        }

        #[test]
        fn numbers_read_back(value: u64) {
            let mut out = Vec::new();
            number(&mut out, value);
            prop_assert_eq!(String::from_utf8(out).unwrap(), value.to_string());
        }
    }

    #[test]
    fn members_are_separated() {
        let mut out = Vec::new();
        text_member(&mut out, "a", "x");
        number_member(&mut out, "b", 0);
        key(&mut out, "c");
        text_array(&mut out, ["1", "2"]);
        assert_eq!(out, br#""a":"x","b":0,"c":["1","2"]"#);
    }
}
