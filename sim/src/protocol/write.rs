//! Writing JSON into a byte buffer: the few primitives that replies are made of.

use std::io::Write as _;

/// Writes a JSON string, with quotes.
///
/// ```
/// let mut out = Vec::new();
/// dealer_sim::protocol::write::string(&mut out, "a\"\n\u{1}é");
/// assert_eq!(out, "\"a\\\"\\n\\u0001é\"".as_bytes());
/// ```
pub fn string(out: &mut Vec<u8>, text: &str) {
    out.push(b'"');
    escaped(out, text);
    out.push(b'"');
}

/// Whether one of eight bytes is a control character, a quotation mark or a backslash: the least byte of a word for which
/// "borrows from above" says less than n, or zero, is told right (Warren, Hacker's Delight, section 6-1).
fn any_to_escape(piece: [u8; 8]) -> bool {
    const EACH: u64 = 0x0101_0101_0101_0101;
    let word = u64::from_le_bytes(piece);
    let below = |word: u64, bound: u8| word.wrapping_sub(EACH * u64::from(bound)) & !word;
    let is = |byte: u8| below(word ^ (EACH * u64::from(byte)), 1);
    (below(word, 0x20) | is(b'"') | is(b'\\')) & (EACH << 7) != 0
}

/// Writes the inside of a JSON string.
pub fn escaped(out: &mut Vec<u8>, text: &str) {
    escaped_bytes(out, text.as_bytes());
}

/// The same of UTF-8 that was written here, and so need not be looked at again.
pub(super) fn escaped_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    // Most texts are plain from end to end.
    let (pieces, _) = bytes.as_chunks::<8>();
    let plain = 8 * pieces.iter().take_while(|piece| !any_to_escape(**piece)).count();
    let (plain, bytes) = bytes.split_at(plain);
    out.extend_from_slice(plain);
    let mut from = 0;
    for (at, byte) in bytes.iter().enumerate() {
        if *byte >= 0x20 && *byte != b'"' && *byte != b'\\' {
            continue;
        }
        out.extend_from_slice(&bytes[from..at]);
        from = at + 1;
        match byte {
            b'"' => out.extend_from_slice(b"\\\""),
            b'\\' => out.extend_from_slice(b"\\\\"),
            b'\n' => out.extend_from_slice(b"\\n"),
            b'\r' => out.extend_from_slice(b"\\r"),
            b'\t' => out.extend_from_slice(b"\\t"),
            other => _ = write!(out, "\\u{other:04x}"),
        }
    }
    out.extend_from_slice(&bytes[from..]);
}

/// Writes `,"name":"text"`, the common member; `first` leaves the comma out.
pub fn member(out: &mut Vec<u8>, first: bool, name: &str, text: &str) {
    if !first {
        out.push(b',');
    }
    string(out, name);
    out.push(b':');
    string(out, text);
}

/// Writes a decimal integer.
pub fn integer(out: &mut Vec<u8>, value: i64) {
    if value < 0 {
        out.push(b'-');
    }
    unsigned(out, value.unsigned_abs());
}

/// Writes a decimal integer from zero.
pub fn unsigned(out: &mut Vec<u8>, value: u64) {
    let mut digits = [0u8; 20];
    let mut at = digits.len();
    let mut rest = value;
    loop {
        at -= 1;
        digits[at] = b'0' + (rest % 10) as u8;
        rest /= 10;
        if rest == 0 {
            break;
        }
    }
    out.extend_from_slice(&digits[at..]);
}

/// Writes a finite number; one without fraction, in the range in which doubles hold every integer, as an integer.
pub fn number(out: &mut Vec<u8>, value: f64) {
    const EXACT: f64 = 9_007_199_254_740_992.0;
    if value.fract() == 0.0 && value.abs() <= EXACT {
        integer(out, value as i64);
    } else {
        _ = write!(out, "{value:?}");
    }
}

/// Writes a `String`'s worth of JSON string; for the places that build text.
pub fn quoted(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len() + 2);
    string(&mut out, text);
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every byte at every place of texts of every short length is written as `serde_json` writes it.
    #[test]
    fn texts_are_escaped_as_serde_json_escapes_them() {
        for letter in (0..=0x7f_u8).map(char::from).chain(['é', '\u{7ff}', '€', '😀']) {
            for place in 0..18 {
                for length in place..18 {
                    let mut text: String = "abcdefghijklmnopqrs".chars().take(length).collect();
                    text.insert(place, letter);
                    let mut out = Vec::new();
                    string(&mut out, &text);
                    let back: String = serde_json::from_slice(&out).unwrap();
                    assert_eq!(back, text);
                    assert_eq!(
                        out.contains(&b'\\'),
                        matches!(letter, '\0'..='\x1f' | '"' | '\\'),
                        "{text:?}"
                    );
                }
            }
        }
    }
}
