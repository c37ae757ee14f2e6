//! Members in a run of them, as the store keeps it: JSON without blanks, members parted by commas, no braces around them.

use std::ops::Range;

/// Where a member stands.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Found {
    /// Name, colon and value.
    member: Range<usize>,
    value: Range<usize>,
}

/// The text of a member's value.
pub(crate) fn get<'t>(text: &'t [u8], name: &str) -> Option<&'t [u8]> {
    find(text, name).map(|found| &text[found.value])
}

/// Replaces the value of a member. A text without the member stays as it is.
pub(crate) fn set(text: &mut Vec<u8>, name: &str, value: &[u8]) {
    if let Some(found) = find(text, name) {
        text.splice(found.value, value.iter().copied());
    }
}

/// Takes a member out, with the comma that parts it from its neighbour.
pub(crate) fn remove(text: &mut Vec<u8>, name: &str) {
    if let Some(Found { member, .. }) = find(text, name) {
        let range = match text.get(member.end) {
            Some(_) => member.start..member.end + 1,
            None => member.start.saturating_sub(1)..member.end,
        };
        text.drain(range);
    }
}

/// Takes the members of these names out of the run that lies behind `from`, in one pass over it.
pub(crate) fn remove_all(text: &mut Vec<u8>, from: usize, names: &[&str]) {
    let (mut read, mut kept) = (from, from);
    while let Some(begun) = text.get(read..).filter(|rest| !rest.is_empty()) {
        let name = end_of_string(begun);
        let end = name + 1 + end_of_value(begun.get(name + 1..).unwrap_or_default());
        let end = (read + end).min(text.len());
        let is_out = text
            .get(read + 1..(read + name).saturating_sub(1))
            .is_some_and(|given| names.iter().any(|name| given == name.as_bytes()));
        if !is_out {
            if kept > from {
                text[kept] = b',';
                kept += 1;
            }
            text.copy_within(read..end, kept);
            kept += end - read;
        }
        read = end + 1;
    }
    text.truncate(kept);
}

fn find(text: &[u8], name: &str) -> Option<Found> {
    let mut start = 0;
    while start < text.len() {
        let colon = start + end_of_string(&text[start..]);
        let value = colon + 1;
        let end = value + end_of_value(text.get(value..)?);
        // Names of members of ours have no escapes, and a name with one is none of them.
        if text.get(start + 1..colon - 1) == Some(name.as_bytes()) {
            return Some(Found { member: start..end, value: value..end });
        }
        start = end + 1;
    }
    None
}

/// The length of the string that begins a text, its quotes among it.
fn end_of_string(text: &[u8]) -> usize {
    let mut escaped = false;
    let inside = text.get(1..).unwrap_or_default();
    let length = inside.iter().position(|&byte| {
        let ends = byte == b'"' && !escaped;
        escaped = byte == b'\\' && !escaped;
        ends
    });
    length.map_or(text.len(), |length| length + 2)
}

/// The length of the value that begins a text.
fn end_of_value(text: &[u8]) -> usize {
    let (mut at, mut depth) = (0, 0u32);
    while let Some(byte) = text.get(at) {
        match byte {
            b'"' => {
                at += end_of_string(&text[at..]);
                continue;
            }
            b'{' | b'[' => depth += 1,
            b'}' | b']' => depth = depth.saturating_sub(1),
            b',' if depth == 0 => return at,
            _ => {}
        }
        at += 1;
    }
    at
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        r#""vin":"A,\"price\":1","fees":[{"name":"x","price":2}],"price":30,"a\"b":{},"updated_at":"#;

    #[test]
    fn members_are_found_at_their_own_level() {
        let get = |name| get(TEXT.as_bytes(), name).map(|value| std::str::from_utf8(value).unwrap());
        assert_eq!(get("vin"), Some(r#""A,\"price\":1""#));
        assert_eq!(get("price"), Some("30"));
        assert_eq!(get("updated_at"), Some(""));
        assert_eq!(get("name"), None);
        assert_eq!((super::get(b"", "vin"), super::get(br#""vin"#, "x")), (None, None));
    }

    #[test]
    fn several_members_are_taken_out_in_one_pass() {
        let without = |names: &[&str]| {
            let mut text = format!("{{{TEXT}").into_bytes();
            remove_all(&mut text, 1, names);
            String::from_utf8(text).unwrap()
        };
        assert_eq!(without(&["none"]), format!("{{{TEXT}"));
        assert_eq!(without(&["vin", "price"]), r#"{"fees":[{"name":"x","price":2}],"a\"b":{},"updated_at":"#);
        assert_eq!(without(&["updated_at", "fees"]), r#"{"vin":"A,\"price\":1","price":30,"a\"b":{}"#);
        assert_eq!(without(&["vin", "fees", "price", "updated_at", r#"a\"b"#]), "{");
        let mut torn = br#""vin"#.to_vec();
        remove_all(&mut torn, 0, &["vin"]);
        remove_all(&mut torn, 9, &["vin"]);
        assert_eq!(torn, br#""vin"#);
    }

    #[test]
    fn members_are_replaced_and_taken_out() {
        let mut text = TEXT.as_bytes().to_vec();
        set(&mut text, "price", b"7");
        set(&mut text, "none", b"7");
        remove(&mut text, "updated_at");
        remove(&mut text, "vin");
        remove(&mut text, "none");
        assert_eq!(
            String::from_utf8(text.clone()).unwrap(),
            r#""fees":[{"name":"x","price":2}],"price":7,"a\"b":{}"#
        );
        for name in ["price", "fees"] {
            remove(&mut text, name);
        }
        assert_eq!(text, br#""a\"b":{}"#);
    }
}
