//! What may be wrong with the reply's bytes, where a parsed value would not survive (INTEROP 8).

use super::{all_on, breach, bytes, integer, lawful, number};
use crate::faults::effect::{Apply, EffectInfo};
use crate::protocol::Bindings;

const FAMILY: &str = "envelope";
const HUGEST: u64 = 64 << 20;

/// Bytes are bytes, whatever interface they come through.
pub(super) static EFFECTS: &[EffectInfo] = &all_on(
    Bindings::ALL,
    [
        breach(
            FAMILY,
            "truncated_json",
            &[number("keep", 0.0, 0.999, "60%", "the part of the body that is kept")],
            "the body ends in the middle, with a Content-Length that fits",
            Apply::Refine(|args, _, _, out| {
                let keep = (out.len() as f64 * args.number("keep")) as usize;
                out.truncate(keep.min(out.len().saturating_sub(1)));
            }),
        ),
        breach(
            FAMILY,
            "empty_body",
            &[],
            "HTTP 200 with an empty body",
            Apply::Refine(|_, _, _, out| out.clear()),
        ),
        breach(
            FAMILY,
            "html_body",
            &[],
            "HTTP 200 with a page of HTML under the JSON content type",
            Apply::Refine(|_, _, _, out| {
                *out = b"<!DOCTYPE html>\n<html><head><title>Welcome</title></head><body><h1>We will be right back</h1>\
                     </body></html>\n"
                .to_vec();
            }),
        ),
        breach(
            FAMILY,
            "byte_order_mark",
            &[],
            "the body begins with a UTF-8 byte order mark",
            Apply::Refine(|_, _, _, out| _ = out.splice(0..0, *b"\xef\xbb\xbf")),
        ),
        breach(
            FAMILY,
            "invalid_utf8",
            &[],
            "the reply has a member whose string is no UTF-8",
            Apply::Refine(|_, _, _, out| insert_first(out, b"\"x_bytes\":\"caf\xe9 \xff\xfe \xed\xa0\x80\"")),
        ),
        lawful(
            FAMILY,
            "lone_surrogate",
            &[],
            "the reply has a member whose string escapes half a surrogate pair",
            Apply::Refine(|_, _, _, out| insert_first(out, b"\"x_text\":\"\\ud83d\"")),
        ),
        breach(
            FAMILY,
            "duplicate_members",
            &[],
            "the envelope names its members twice: a decoy first, the true ones after it",
            Apply::Refine(|_, _, _, out| {
                insert_first(
                out,
                b"\"jsonrpc\":\"1.0\",\"id\":\"decoy\",\"result\":{\"message\":{\"messageId\":\"decoy\",\"parts\":[]}}",
            );
            }),
        ),
        breach(
            FAMILY,
            "trailing_data",
            &[],
            "a second JSON value follows the reply",
            Apply::Refine(|_, _, _, out| out.extend_from_slice(b"\n{\"jsonrpc\":\"2.0\",\"id\":null}")),
        ),
        breach(
            FAMILY,
            "nan_number",
            &[],
            "the reply has a member whose value is NaN, which is no JSON",
            Apply::Refine(|_, _, _, out| insert_first(out, b"\"x_number\":NaN")),
        ),
        breach(
            FAMILY,
            "single_quotes",
            &[],
            "strings stand in single quotes, as a printed Python dictionary has them",
            Apply::Refine(|_, _, _, out| {
                for byte in out.iter_mut().filter(|byte| **byte == b'"') {
                    *byte = b'\'';
                }
            }),
        ),
        breach(
            FAMILY,
            "batch_reply",
            &[],
            "a single call is answered with an array of one",
            Apply::Refine(|_, _, _, out| {
                out.insert(0, b'[');
                out.push(b']');
            }),
        ),
        breach(
            FAMILY,
            "event_stream_body",
            &[],
            "the reply comes as one server-sent event under the JSON content type",
            Apply::Refine(|_, _, _, out| {
                out.splice(0..0, *b"data: ");
                out.extend_from_slice(b"\n\n");
            }),
        ),
        lawful(
            FAMILY,
            "huge_reply",
            &[bytes("size", HUGEST, "8MiB", "the size of the body, at most 64 MiB")],
            "the reply has an unknown member whose text brings the body to a size",
            Apply::Refine(|args, _, _, out| {
                let wanted = args.bytes("size").min(HUGEST) as usize;
                // Beside the text the member costs its name, quotes, colon and comma: 15 bytes.
                let text = wanted.saturating_sub(out.len() + 15);
                let mut member = b"\"x_padding\":\"".to_vec();
                member.resize(member.len() + text, b'x');
                member.push(b'"');
                insert_first(out, &member);
            }),
        ),
        lawful(
            FAMILY,
            "deep_nesting",
            &[integer("depth", 1, 100_000, "10000", "how many arrays are nested")],
            "the reply has a member of arrays nested deep, which is JSON and more than most parsers take",
            Apply::Refine(|args, _, _, out| {
                let depth = args.integer("depth").clamp(0, 100_000) as usize;
                let mut nested = b"\"x_nested\":".to_vec();
                nested.resize(nested.len() + depth, b'[');
                nested.resize(nested.len() + depth, b']');
                insert_first(out, &nested);
            }),
        ),
        lawful(
            FAMILY,
            "leading_whitespace",
            &[bytes("size", 1 << 20, "4KiB", "bytes of white space before the reply")],
            "white space stands before the reply",
            Apply::Refine(|args, _, _, out| {
                let size = args.bytes("size").min(1 << 20) as usize;
                out.splice(0..0, std::iter::repeat_n(*b"\r\n\t ", size.div_ceil(4)).flatten().take(size));
            }),
        ),
        lawful(
            FAMILY,
            "escaped_text",
            &[],
            "every letter of every string and member name is escaped as \\uXXXX",
            Apply::Refine(|_, _, _, out| escape(out)),
        ),
    ],
);

/// Puts a member before the first one of the reply; a reply that is no object is left alone.
fn insert_first(out: &mut Vec<u8>, member: &[u8]) {
    let Some(at) = out.iter().position(|byte| !byte.is_ascii_whitespace()).filter(|at| out[*at] == b'{')
    else {
        return;
    };
    let empty = out[at + 1..].iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'}');
    let comma: &[u8] = if empty { b"" } else { b"," };
    out.splice(at + 1..at + 1, member.iter().chain(comma).copied());
}

/// Escapes the ASCII letters inside strings; what is escaped already, or is beyond ASCII, stays.
fn escape(out: &mut Vec<u8>) {
    let mut escaped = Vec::with_capacity(out.len() * 4);
    let (mut inside, mut skip) = (false, 0_u8);
    for byte in out.iter().copied() {
        if skip > 0 {
            skip -= 1;
            // `\u` is followed by four digits, which are letters of the escape and not of the text.
            skip += if byte == b'u' && skip == 0 && escaped.last() == Some(&b'\\') { 4 } else { 0 };
            escaped.push(byte);
        } else if inside && byte.is_ascii_alphabetic() {
            escaped.extend_from_slice(format!("\\u{byte:04x}").as_bytes());
        } else {
            inside ^= byte == b'"';
            skip = u8::from(inside && byte == b'\\');
            escaped.push(byte);
        }
    }
    *out = escaped;
}
