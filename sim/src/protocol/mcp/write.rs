//! Replies.

use std::ops::Range;

use super::{Era, Refusal, VERSIONS};
use crate::protocol::write;

/// What stands at the end of every result of the modern revisions.
const MODERN_END: &str = concat!(
    ",\"resultType\":\"complete\",\"_meta\":{\"io.modelcontextprotocol/serverInfo\":{\"name\":\"dealer-sim\",\"version\":\"",
    env!("CARGO_PKG_VERSION"),
    "\"}}}}"
);

fn open(out: &mut Vec<u8>, id: &str) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id.as_bytes());
}

/// Writes the reply of a tool up to its structured content.
pub fn open_result(out: &mut Vec<u8>, id: &str) {
    open(out, id);
    out.extend_from_slice(b",\"result\":{\"structuredContent\":");
}

/// Writes the reply of a tool from behind its structured content, which lies at `content` and which a text block repeats, for
/// hosts that know nothing else. `spare` is a buffer.
pub fn close_result(out: &mut Vec<u8>, content: Range<usize>, era: Era, is_error: bool, spare: &mut Vec<u8>) {
    spare.clear();
    spare.extend_from_slice(out.get(content).unwrap_or_default());
    out.reserve(spare.len() * 3 / 2 + 256);
    out.extend_from_slice(b",\"content\":[{\"type\":\"text\",\"text\":\"");
    write::escaped_bytes(out, spare);
    out.extend_from_slice(b"\"}]");
    if is_error {
        out.extend_from_slice(b",\"isError\":true");
    }
    end(out, era);
}

fn end(out: &mut Vec<u8>, era: Era) {
    out.extend_from_slice(match era {
        Era::Modern => MODERN_END.as_bytes(),
        Era::Legacy => b"}}",
    });
}

/// Writes a result without members of its own.
pub fn write_empty(out: &mut Vec<u8>, id: &str) {
    open(out, id);
    out.extend_from_slice(b",\"result\":{}}");
}

/// Writes a result with these members, at least one, which may be kept for a while where the era knows that.
pub fn write_with(out: &mut Vec<u8>, id: &str, era: Era, members: &[u8], may_be_kept: bool) {
    open(out, id);
    out.extend_from_slice(b",\"result\":{");
    out.extend_from_slice(members);
    if may_be_kept && era == Era::Modern {
        out.extend_from_slice(b",\"ttlMs\":300000,\"cacheScope\":\"public\"");
    }
    end(out, era);
}

/// Writes an error.
pub fn write_refusal(out: &mut Vec<u8>, id: &str, refusal: &Refusal) {
    open(out, id);
    out.extend_from_slice(b",\"error\":{\"code\":");
    write::integer(out, i64::from(refusal.code));
    write::member(out, false, "message", &refusal.message);
    if let Some(requested) = &refusal.requested {
        out.extend_from_slice(b",\"data\":{\"supported\":[");
        for (index, version) in VERSIONS.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            write::string(out, version);
        }
        out.push(b']');
        write::member(out, false, "requested", requested);
        out.push(b'}');
    }
    out.extend_from_slice(b"}}");
}

#[cfg(test)]
mod tests {
    use super::super::SERVER_NAME;
    use super::*;

    #[test]
    fn the_end_names_the_server() {
        assert!(MODERN_END.contains(&format!("{{\"name\":\"{SERVER_NAME}\",")));
    }
}
