//! How a reply's bytes may go, or fail to: resets, early ends, drips, silence.

use std::time::Duration;

use super::{breach, bytes, duration, integer, lawful, of_arrival};
use crate::faults::effect::{Apply, Args, EffectInfo, Param};
use crate::faults::script::{Script, Step};

const FAMILY: &str = "transport";
const MIB: u64 = 1 << 20;
const REST: Step = Step::Write(u64::MAX);
const WHOLE_HEAD: Step = Step::Head { without: "", with: "" };
const IN_BODY: Param = bytes("at", 64 * MIB, "64", "bytes of the body that are written before");
/// A bandwidth is kept by pieces this far apart.
const PIECE: Duration = Duration::from_millis(20);
/// Pieces of different sizes; what is left after them goes at once.
const SLICES: usize = 64;

pub(super) static EFFECTS: &[EffectInfo] = &[
    of_arrival(lawful(
        FAMILY,
        "connection_refused",
        &[],
        "the connection is reset as soon as it is accepted",
        Apply::Accept(|_, _| script(&[Step::Reset])),
    )),
    of_arrival(lawful(
        FAMILY,
        "connection_closed",
        &[],
        "the connection is closed (FIN) as soon as it is accepted",
        Apply::Accept(|_, _| script(&[Step::Close])),
    )),
    of_arrival(lawful(
        FAMILY,
        "accept_and_silence",
        &[],
        "the connection is accepted and nothing is ever read or said",
        Apply::Accept(|_, _| script(&[Step::Silence])),
    )),
    of_arrival(lawful(
        FAMILY,
        "accept_delay",
        &[duration("delay", "500ms", "the time before the first byte is read")],
        "the connection is accepted, and read only later",
        Apply::Accept(|args, _| script(&[Step::Wait(wait(args, "delay"))])),
    )),
    of_arrival(breach(
        FAMILY,
        "not_http",
        &[],
        "another protocol greets on the connection and hangs up",
        Apply::Accept(|_, _| script(&[Step::WriteRaw(b"SSH-2.0-OpenSSH_9.6\r\n"), Step::Close])),
    )),
    lawful(
        FAMILY,
        "reset_before_commit",
        &[],
        "RST instead of a reply (ECONNRESET), and the work was not done",
        Apply::Lose(|_, _| script(&[Step::Reset])),
    ),
    lawful(
        FAMILY,
        "silence_before_commit",
        &[],
        "no reply, ever, and the work was not done",
        Apply::Lose(|_, _| script(&[Step::Silence])),
    ),
    lawful(
        FAMILY,
        "reset_after_commit",
        &[],
        "RST instead of a reply (ECONNRESET), though the work is done: only an idempotency_key makes a repeat safe",
        Apply::Deliver(|_, _| script(&[Step::Reset])),
    ),
    lawful(
        FAMILY,
        "silence_after_commit",
        &[],
        "no reply, ever, though the work is done",
        Apply::Deliver(|_, _| script(&[Step::Silence])),
    ),
    lawful(
        FAMILY,
        "fin_after_commit",
        &[],
        "the connection ends (FIN) without a reply, though the work is done",
        Apply::Deliver(|_, _| script(&[Step::Close])),
    ),
    lawful(
        FAMILY,
        "reset_in_head",
        &[bytes("at", MIB, "12", "bytes of the head that are written before")],
        "RST in the middle of the head",
        Apply::Deliver(|args, _| script(&[Step::Write(args.bytes("at")), Step::Reset])),
    ),
    lawful(
        FAMILY,
        "reset_in_reply",
        &[IN_BODY],
        "RST in the middle of the body",
        Apply::Deliver(|args, _| script(&[WHOLE_HEAD, Step::Write(args.bytes("at")), Step::Reset])),
    ),
    lawful(
        FAMILY,
        "reset_after_reply",
        &[duration("after", "10ms", "the time between the reply's last byte and the RST")],
        "a whole reply, then RST: the next call on this connection fails",
        Apply::Deliver(|args, _| script(&[REST, Step::Wait(wait(args, "after")), Step::Reset])),
    ),
    lawful(
        FAMILY,
        "fin_in_head",
        &[bytes("at", MIB, "12", "bytes of the head that are written before")],
        "the connection ends (FIN) in the middle of the head",
        Apply::Deliver(|args, _| script(&[Step::Write(args.bytes("at")), Step::Close])),
    ),
    lawful(
        FAMILY,
        "fin_in_body",
        &[IN_BODY],
        "the connection ends (FIN) in the middle of the body, short of its Content-Length",
        Apply::Deliver(|args, _| script(&[WHOLE_HEAD, Step::Write(args.bytes("at")), Step::Close])),
    ),
    lawful(
        FAMILY,
        "fin_after_reply",
        &[],
        "a whole reply, then FIN without a Connection: close having said so",
        Apply::Deliver(|_, _| script(&[REST, Step::Close])),
    ),
    lawful(
        FAMILY,
        "silence_in_head",
        &[bytes("at", MIB, "12", "bytes of the head that are written before")],
        "the head stops in the middle and the connection stays open",
        Apply::Deliver(|args, _| script(&[Step::Write(args.bytes("at")), Step::Silence])),
    ),
    lawful(
        FAMILY,
        "silence_in_body",
        &[IN_BODY],
        "the body stops in the middle and the connection stays open",
        Apply::Deliver(|args, _| script(&[WHOLE_HEAD, Step::Write(args.bytes("at")), Step::Silence])),
    ),
    lawful(
        FAMILY,
        "half_close",
        &[],
        "the dealer's side of the connection ends after the reply while it goes on reading",
        Apply::Deliver(|_, _| script(&[REST, Step::HalfClose])),
    ),
    lawful(
        FAMILY,
        "half_close_in_body",
        &[IN_BODY],
        "the dealer's side of the connection ends in the middle of the body while it goes on reading",
        Apply::Deliver(|args, _| script(&[WHOLE_HEAD, Step::Write(args.bytes("at")), Step::HalfClose])),
    ),
    lawful(
        FAMILY,
        "slow_close",
        &[duration("delay", "2s", "the time between the reply's last byte and FIN")],
        "a whole reply; the connection serves nothing more and ends later",
        Apply::Deliver(|args, _| script(&[REST, Step::Wait(wait(args, "delay")), Step::Close])),
    ),
    lawful(
        FAMILY,
        "first_byte_delay",
        &[duration("delay", "500ms", "the time before the first byte")],
        "the reply is ready and its first byte comes later",
        Apply::Deliver(|args, _| script(&[Step::Wait(wait(args, "delay")), REST])),
    ),
    lawful(
        FAMILY,
        "pause_in_body",
        &[IN_BODY, duration("pause", "500ms", "how long the body pauses")],
        "the body pauses in the middle",
        Apply::Deliver(|args, _| {
            script(&[WHOLE_HEAD, Step::Write(args.bytes("at")), Step::Wait(wait(args, "pause")), REST])
        }),
    ),
    lawful(
        FAMILY,
        "drip",
        &[
            bytes("bytes", MIB, "16", "bytes of a piece; at least one"),
            duration("every", "20ms", "the time between pieces"),
        ],
        "the reply, head and all, drips in small pieces",
        Apply::Deliver(|args, _| {
            script(&[Step::Drip { bytes: args.bytes("bytes").max(1), every: wait(args, "every") }])
        }),
    ),
    lawful(
        FAMILY,
        "drip_body",
        &[
            bytes("bytes", MIB, "16", "bytes of a piece; at least one"),
            duration("every", "20ms", "the time between pieces"),
        ],
        "the head comes at once and the body drips in small pieces",
        Apply::Deliver(|args, _| {
            let drip = Step::Drip { bytes: args.bytes("bytes").max(1), every: wait(args, "every") };
            script(&[WHOLE_HEAD, drip])
        }),
    ),
    lawful(
        FAMILY,
        "bandwidth",
        &[bytes("per_second", 1 << 30, "16KiB", "bytes a second; at least one")],
        "the reply comes no faster than this",
        Apply::Deliver(|args, _| script(&[paced(args.bytes("per_second").max(1))])),
    ),
    lawful(
        FAMILY,
        "slices",
        &[
            bytes("min", MIB, "1", "bytes of the smallest piece; at least one"),
            bytes("max", MIB, "200", "bytes of the largest piece; less than min counts as min"),
            duration("every", "5ms", "the time between pieces"),
        ],
        "the reply comes in up to 64 pieces of drawn sizes, cut anywhere, and then whole",
        Apply::Deliver(|args, draw| {
            let least = args.bytes("min").max(1);
            let sizes = args.bytes("max").saturating_sub(least) + 1;
            let every = wait(args, "every");
            let pieces = (0..SLICES).flat_map(|_| {
                let size = least + draw.word() % sizes;
                [Step::Write(size), Step::Wait(every)]
            });
            Script { steps: pieces.chain([REST]).collect() }
        }),
    ),
    breach(
        FAMILY,
        "garbage_then_close",
        &[],
        "bytes that are no HTTP, then FIN",
        Apply::Deliver(|_, _| script(&[Step::WriteRaw(GARBAGE), Step::Close])),
    ),
    breach(
        FAMILY,
        "garbage_in_body",
        &[IN_BODY],
        "bytes that are no UTF-8 replace the body from the middle on, in its full length",
        Apply::Deliver(|args, _| {
            let skipped = Step::Skip(GARBAGE.len() as u64);
            script(&[WHOLE_HEAD, Step::Write(args.bytes("at")), Step::WriteRaw(GARBAGE), skipped, REST])
        }),
    ),
    breach(
        FAMILY,
        "stray_line_ends",
        &[integer("times", 1, 8, "1", "how many stray line ends precede the reply")],
        "stray line ends stand before the status line",
        Apply::Deliver(|args, _| {
            let times = args.integer("times").clamp(1, 8) as usize;
            let mut steps = vec![Step::WriteRaw(b"\r\n"); times];
            steps.push(REST);
            Script { steps }
        }),
    ),
];

/// 32 bytes that begin no HTTP message and hold no valid UTF-8.
const GARBAGE: &[u8] =
    b"\xff\xfe\x00\x9d\xc3\x28\x80\xf5\xee\x01\xfb\x7f\xc0\xaf\x90\xff\xfe\x00\x9d\xc3\x28\x80\xf5\xee\x01\xfb\x7f\xc0\xaf\x90\xe2\x82";

fn script(steps: &[Step]) -> Script {
    Script { steps: steps.to_vec() }
}

fn wait(args: &Args, name: &str) -> Duration {
    Duration::from_nanos(args.duration_ns(name))
}

/// Pieces that keep a rate: every 20 ms, or one byte at a time when the rate is below 50 bytes a second.
fn paced(per_second: u64) -> Step {
    let pieces = 1_000_000_000 / PIECE.as_nanos() as u64;
    if per_second < pieces {
        return Step::Drip { bytes: 1, every: Duration::from_nanos(1_000_000_000 / per_second) };
    }
    let bytes = per_second / pieces;
    // The time of a piece makes up for the rounding of its size: bytes / every is the rate itself.
    Step::Drip { bytes, every: Duration::from_nanos(bytes.saturating_mul(1_000_000_000) / per_second) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bandwidth_is_kept_whatever_it_is() {
        for rate in [1, 7, 49, 50, 99, 1_000, 16_384, 1_000_003, 1 << 30] {
            let Step::Drip { bytes, every } = paced(rate) else { panic!("no drip") };
            let kept = bytes as f64 / every.as_secs_f64();
            assert!((kept / rate as f64 - 1.0).abs() < 1e-6, "{rate}: {kept}");
        }
    }
}
