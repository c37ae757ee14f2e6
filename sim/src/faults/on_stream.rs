//! What a delivery script means on a stream of HTTP/2 (RFC 9113), where other requests share the connection: what would end
//! the connection ends the stream, and the framing of HTTP/1.1 does not exist.

use std::time::Duration;

use super::call::parse_effects;
use super::draw::Draw;
use super::effect::{Apply, Args, EffectInfo};
use super::registry::registry;
use super::script::{Script, Step};

/// A delivery on a stream.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct OnStream {
    /// How long nothing is sent.
    pub before: Duration,
    /// Whether the reply's head is sent; without it the end comes next.
    pub has_head: bool,
    /// A field to leave out of the head; empty leaves none out.
    pub without: &'static str,
    /// A field to add to the head: `name: value` and a line end; empty adds none.
    pub with: &'static str,
    /// What is done with the body: of the steps only `Write`, `Drip`, `WriteRaw`, `Skip` and `Wait`.
    pub body: Vec<Step>,
    /// How the stream ends.
    pub end: StreamEnd,
}

/// How a stream ends.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum StreamEnd {
    /// As HTTP/2 wants it, after what is left of the body.
    #[default]
    Whole,
    /// The same, and the connection says after this time that it takes no more (GOAWAY), and ends.
    GoAway(Duration),
    /// RST_STREAM with INTERNAL_ERROR, for what is RST on HTTP/1.1.
    Reset,
    /// RST_STREAM with CANCEL, for what is an early end of the connection there.
    Cancel,
    /// RST_STREAM with PROTOCOL_ERROR, for what is no HTTP there.
    Garbled,
    /// Nothing more comes.
    Silence,
}

/// Translates a script for a reply whose head would have `head` bytes on HTTP/1.1: pieces of the head come together, when the
/// last of them would have come.
pub fn on_stream(script: &Script, head: u64) -> OnStream {
    let mut made = OnStream::default();
    // Bytes of the head that are still to come.
    let mut left = head;
    let mut garbled = false;
    let mut is_chunked = false;
    // Whether all of the body is on its way, and how long after it the end comes.
    let mut is_whole = false;
    let mut after = Duration::ZERO;
    for step in &script.steps {
        let mut step = *step;
        if !made.has_head {
            match step {
                Step::Wait(time) => made.before = made.before.saturating_add(time),
                Step::Write(bytes) | Step::Skip(bytes) if bytes < left => left -= bytes,
                Step::WriteRaw(_) => garbled = true,
                Step::Drip { bytes, every } => {
                    // The piece in which the head ends carries on into the body.
                    let pieces = u32::try_from(left.saturating_sub(1) / bytes.max(1)).unwrap_or(u32::MAX);
                    made.before = made.before.saturating_add(every.saturating_mul(pieces));
                    made.has_head = true;
                }
                Step::Head { without, with } => {
                    is_chunked = with.starts_with("transfer-encoding");
                    (made.without, made.with) = (without, if is_chunked { "" } else { with });
                    made.has_head = true;
                    continue;
                }
                Step::Write(bytes) if bytes != u64::MAX => {
                    step = Step::Write(bytes - left);
                    made.has_head = true;
                }
                Step::Write(_) | Step::Skip(_) => made.has_head = true,
                Step::Silence | Step::Close | Step::HalfClose | Step::Reset => {}
            }
            if !made.has_head && !matches!(step, Step::Silence | Step::Close | Step::HalfClose | Step::Reset)
            {
                continue;
            }
        }
        match step {
            // What follows a whole body is of the connection, not of the stream.
            Step::Wait(time) if is_whole => after = after.saturating_add(time),
            Step::WriteRaw(_) if is_whole || is_chunked => garbled |= is_chunked,
            Step::Write(_) | Step::Drip { .. } | Step::WriteRaw(_) | Step::Skip(_) | Step::Wait(_) => {
                is_whole |= matches!(step, Step::Write(u64::MAX) | Step::Drip { .. });
                made.body.push(step);
            }
            Step::Head { .. } => {}
            Step::Silence => made.end = StreamEnd::Silence,
            Step::Close | Step::HalfClose | Step::Reset => {
                made.end = match step {
                    _ if garbled => StreamEnd::Garbled,
                    _ if is_whole => StreamEnd::GoAway(after),
                    Step::Reset => StreamEnd::Reset,
                    _ => StreamEnd::Cancel,
                };
            }
        }
        if made.end != StreamEnd::Whole {
            return made;
        }
    }
    made.has_head = true;
    made
}

/// What a client sees of an effect on HTTP/2, in a sentence, where that is not what it sees on HTTP/1.1.
pub fn sees_on_http2(effect: &EffectInfo) -> Option<&'static str> {
    let args = usual_args(effect);
    let mut draw = Draw::new(0, "", 0, 0);
    let (script, is_lost) = match effect.apply {
        Apply::Accept(_) => return Some("the same, for the connection as a whole"),
        Apply::Deliver(deliver) => (deliver(&args, &mut draw), false),
        Apply::Lose(lose) => (lose(&args, &mut draw), true),
        Apply::Http(http) if http(&args).close => {
            return Some("the reply; then GOAWAY, and the connection ends");
        }
        _ => return None,
    };
    let made = on_stream(&script, USUAL_HEAD);
    Some(match (made.end, made.has_head && !is_lost) {
        (StreamEnd::Whole, _) if made.body.iter().all(|step| matches!(step, Step::Write(_))) => {
            if made.before.is_zero() {
                "nothing of it: HTTP/2 has no place for it"
            } else {
                return None;
            }
        }
        (StreamEnd::Whole, _) => return None,
        (StreamEnd::GoAway(_), _) => "the whole reply; then GOAWAY, and the connection ends",
        (StreamEnd::Silence, true) => "the head and a part of the body; the stream stays open",
        (StreamEnd::Silence, false) => "nothing on its stream, which stays open",
        (StreamEnd::Reset, true) => "a part of the body, then RST_STREAM (INTERNAL_ERROR)",
        (StreamEnd::Reset, false) => "RST_STREAM (INTERNAL_ERROR) instead of a reply",
        (StreamEnd::Cancel, true) => "a part of the body, then RST_STREAM (CANCEL)",
        (StreamEnd::Cancel, false) => "RST_STREAM (CANCEL) instead of a reply",
        (StreamEnd::Garbled, true) => "the body, then RST_STREAM (PROTOCOL_ERROR)",
        (StreamEnd::Garbled, false) => "RST_STREAM (PROTOCOL_ERROR) instead of a reply",
    })
}

/// What a client sees of an effect under TLS, in a sentence, where that is not what it sees without.
pub fn sees_under_tls(effect: &EffectInfo) -> Option<&'static str> {
    match effect.apply {
        Apply::Accept(_) => Some("before the handshake, which fails or waits"),
        Apply::Deliver(_) | Apply::Lose(_) => {
            Some("the same inside of TLS: FIN comes with close_notify, RST without")
        }
        _ => None,
    }
}

/// The arguments that an effect has when none are given.
fn usual_args(effect: &EffectInfo) -> Args {
    let read = parse_effects("", effect.name, registry());
    read.ok().and_then(|effects| Some(effects.first()?.args.clone())).unwrap_or_default()
}

/// Bytes of a reply's head as they are as a rule.
const USUAL_HEAD: u64 = 200;

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::registry::find;

    fn made(name: &str) -> OnStream {
        let effect = find(name).unwrap();
        let args = usual_args(effect);
        let mut draw = Draw::new(0, "", 0, 0);
        match effect.apply {
            Apply::Deliver(make) | Apply::Lose(make) | Apply::Accept(make) => {
                on_stream(&make(&args, &mut draw), 200)
            }
            _ => panic!("{name} is no delivery"),
        }
    }

    #[test]
    fn what_ends_a_connection_ends_the_stream() {
        for (name, has_head, end) in [
            ("reset_before_commit", false, StreamEnd::Reset),
            ("reset_in_head", false, StreamEnd::Reset),
            ("reset_in_reply", true, StreamEnd::Reset),
            ("fin_after_commit", false, StreamEnd::Cancel),
            ("fin_in_body", true, StreamEnd::Cancel),
            ("silence_after_commit", false, StreamEnd::Silence),
            ("silence_in_body", true, StreamEnd::Silence),
            ("reset_after_reply", true, StreamEnd::GoAway(Duration::from_millis(10))),
            ("slow_close", true, StreamEnd::GoAway(Duration::from_secs(2))),
            ("half_close", true, StreamEnd::GoAway(Duration::ZERO)),
            ("half_close_in_body", true, StreamEnd::Cancel),
            ("garbage_then_close", false, StreamEnd::Garbled),
            ("http_status_line_broken", false, StreamEnd::Garbled),
            ("http_chunk_cut", true, StreamEnd::Garbled),
            ("http_chunks_unfinished", true, StreamEnd::Silence),
            ("stray_line_ends", true, StreamEnd::Whole),
            ("http_early_hints", true, StreamEnd::Whole),
            ("http_extra_reply", true, StreamEnd::Whole),
        ] {
            let made = made(name);
            assert_eq!((made.has_head, made.end), (has_head, end), "{name}");
        }
    }

    #[test]
    fn the_head_comes_when_the_last_of_it_would() {
        let every = Duration::from_millis(20);
        let drip = made("drip");
        // 200 bytes in pieces of 16: the thirteenth piece ends the head.
        assert_eq!((drip.before, drip.body), (every * 12, vec![Step::Drip { bytes: 16, every }]));
        assert_eq!(made("first_byte_delay").before, Duration::from_millis(500));
        let script =
            Script { steps: vec![Step::Write(150), Step::Wait(every), Step::Write(70), Step::Close] };
        let cut = on_stream(&script, 200);
        assert_eq!((cut.before, cut.body, cut.end), (every, vec![Step::Write(20)], StreamEnd::Cancel));
    }

    #[test]
    fn lengths_go_with_the_head_and_chunks_do_not() {
        assert_eq!(made("http_content_length_long").with, "content-length: 1073741824\r\n");
        let chunked = made("http_chunk_size_broken");
        assert_eq!((chunked.without, chunked.with), ("content-length", ""));
        assert_eq!(chunked.body, [Step::Write(u64::MAX)]);
    }
}
