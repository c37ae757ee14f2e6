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

/// Writes the inside of a JSON string.
pub fn escaped(out: &mut Vec<u8>, text: &str) {
    let bytes = text.as_bytes();
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
