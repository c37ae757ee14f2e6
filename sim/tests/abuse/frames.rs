//! Attacks by HTTP/2 and TLS.

use std::time::Duration;

use super::Attack;
use super::target::{Caller, Target};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const DATA: u8 = 0;
const HEADERS: u8 = 1;
const RST_STREAM: u8 = 3;
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;
const WINDOW_UPDATE: u8 = 8;
const CONTINUATION: u8 = 9;
const END_STREAM: u8 = 1;
const END_HEADERS: u8 = 4;
/// Header fields of a GET and of a POST of `/`, from the static table (RFC 7541, appendix A).
const GET_ROOT: &[u8] = b"\x82\x84\x86\x41\x01x";
const POST_ROOT: &[u8] = b"\x83\x84\x86\x41\x01x";

pub(crate) static ATTACKS: &[Attack] = &[
    Attack("HTTP/2: rapid reset", rapid_reset, "ended"),
    Attack("HTTP/2: a flood of PING", |target| flood(target, &frame(PING, 0, 0, &[0; 8])), "ended"),
    Attack(
        "HTTP/2: a flood of SETTINGS",
        |target| flood(target, &frame(SETTINGS, 0, 0, &[0, 3, 0, 0, 0, 9])),
        "ended",
    ),
    Attack(
        "HTTP/2: a flood of WINDOW_UPDATE",
        |target| flood(target, &frame(WINDOW_UPDATE, 0, 0, &[0, 0, 0, 0])),
        "ended",
    ),
    Attack(
        "HTTP/2: a flood of unknown frames",
        |target| flood(target, &frame(0xbe, 0, 0, &[0; 100])),
        "ended",
    ),
    Attack("HTTP/2: a flood of CONTINUATION", continuation, "ended"),
    Attack("HTTP/2: a flood of empty DATA", empty_data, "ended"),
    Attack("HTTP/2: fields that unpack to 100 MiB", packed_fields, "refused"),
    Attack("HTTP/2: more streams than are allowed", many_streams, "refused"),
    Attack("HTTP/2: a reply without a window", no_window, "ended"),
    Attack("HTTP/2: the preface, then nothing", |target| ended(&mut begin(target)), "ended"),
    Attack(
        "HTTP/2: a frame of 16 MiB",
        |target| after(target, &[0xff, 0xff, 0xff, DATA, 0, 0, 0, 0, 1]),
        "ended",
    ),
    Attack("HTTP/2: DATA on stream 0", |target| after(target, &frame(DATA, 0, 0, b"x")), "ended"),
    Attack(
        "HTTP/2: an even stream",
        |target| after(target, &frame(HEADERS, END_HEADERS | END_STREAM, 2, GET_ROOT)),
        "ended",
    ),
    Attack(
        "HTTP/2: a broken index in the fields",
        |target| after(target, &frame(HEADERS, END_HEADERS | END_STREAM, 1, b"\xff\xff\xff\xff\xff\xff")),
        "ended",
    ),
    Attack(
        "HTTP/2: a window that overflows",
        |target| after(target, &frame(WINDOW_UPDATE, 0, 0, &[0x7f, 0xff, 0xff, 0xff])),
        "ended",
    ),
    Attack("TLS: garbage", |target| tls(target, &[0xaa; 5000]), "closed"),
    Attack("TLS: plain HTTP", |target| tls(target, b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"), "closed"),
    Attack(
        "TLS: half of a ClientHello",
        |target| tls(target, b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"),
        "closed",
    ),
    Attack(
        "TLS: records of no length",
        |target| tls(target, &b"\x16\x03\x01\x00\x00".repeat(5000)),
        "closed",
    ),
    Attack(
        "TLS: a record longer than records are",
        |target| tls(target, &[&b"\x16\x03\x03\xff\xff"[..], &[0; 65_535]].concat()),
        "closed",
    ),
    Attack("TLS: an alert first", |target| tls(target, b"\x15\x03\x03\x00\x02\x02\x28"), "closed"),
    Attack("TLS: a handshake that stops", |target| tls(target, b""), "closed"),
];

/// A frame (RFC 9113, section 4.1).
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

fn begin(target: &Target) -> Caller {
    let mut caller = target.connect();
    caller.say([PREFACE, &frame(SETTINGS, 0, 0, &[])].concat());
    caller
}

/// Says it, and waits for the end of the connection.
fn after(target: &Target, bytes: &[u8]) -> String {
    let mut caller = begin(target);
    caller.say(bytes);
    ended(&mut caller)
}

fn ended(caller: &mut Caller) -> String {
    caller.hear_bytes();
    "ended".to_owned()
}

/// Says it until the other side has had enough, and reads meanwhile what is said to it.
fn flood(target: &Target, bytes: &[u8]) -> String {
    flood_after(begin(target), bytes)
}

fn flood_after(mut caller: Caller, bytes: &[u8]) -> String {
    let mut writing = Caller(caller.0.try_clone().unwrap());
    let many = bytes.repeat(1 + 60_000 / bytes.len());
    let sender = std::thread::spawn(move || {
        let mut sent = 0usize;
        while sent < 256 << 20 && writing.say(&many) {
            sent += many.len();
        }
        sent
    });
    let seen = ended(&mut caller);
    drop(caller);
    let sent = sender.join().unwrap();
    assert!(sent < 64 << 20, "{sent} bytes were taken");
    seen
}

fn rapid_reset(target: &Target) -> String {
    let mut caller = begin(target);
    let mut writing = Caller(caller.0.try_clone().unwrap());
    let sender = std::thread::spawn(move || {
        for stream in (1..60_001).step_by(2) {
            let request = frame(HEADERS, END_HEADERS | END_STREAM, stream, GET_ROOT);
            if !writing.say([request, frame(RST_STREAM, 0, stream, &8u32.to_be_bytes())].concat()) {
                return stream;
            }
        }
        u32::MAX
    });
    let seen = ended(&mut caller);
    drop(caller);
    assert!(sender.join().unwrap() < u32::MAX, "all of them were taken");
    seen
}

fn continuation(target: &Target) -> String {
    let mut caller = begin(target);
    caller.say(frame(HEADERS, END_STREAM, 1, GET_ROOT));
    flood_after(caller, &frame(CONTINUATION, 0, 1, b""))
}

fn empty_data(target: &Target) -> String {
    let mut caller = begin(target);
    caller.say(frame(HEADERS, END_HEADERS, 1, POST_ROOT));
    flood_after(caller, &frame(DATA, 0, 1, b""))
}

/// A field of 4,000 bytes is put into the table once and named 25,000 times.
fn packed_fields(target: &Target) -> String {
    let mut caller = begin(target);
    let mut block = GET_ROOT.to_vec();
    block.extend_from_slice(b"\x40\x01a\x7f\xa1\x1e");
    block.extend_from_slice(&[b'v'; 4000]);
    block.extend_from_slice(&[0xbe; 12_000]);
    caller.say(frame(HEADERS, END_STREAM | END_HEADERS, 1, &block[..16_000]));
    let heard = kinds(&caller.hear_bytes());
    // The stream's refusal, or the connection's, and no page.
    assert!(!heard.iter().any(|(kind, _)| *kind == DATA), "{heard:?}");
    let is_refused = heard.iter().any(|(kind, _)| matches!(*kind, HEADERS | RST_STREAM | GOAWAY));
    if is_refused { "refused".to_owned() } else { format!("{heard:?}") }
}

fn many_streams(target: &Target) -> String {
    let mut caller = begin(target);
    for stream in (1..801).step_by(2) {
        caller.say(frame(HEADERS, END_HEADERS, stream, POST_ROOT));
    }
    let heard = caller.hear_bytes();
    let refused = kinds(&heard).iter().filter(|(kind, code)| *kind == RST_STREAM && *code == 7).count();
    // 128 of the 400 are taken, and the rest refused with REFUSED_STREAM, or with the connection.
    if refused > 100 || kinds(&heard).iter().any(|(kind, _)| *kind == GOAWAY) {
        "refused".to_owned()
    } else {
        format!("{refused}")
    }
}

/// The kinds of the frames in what came, with the first four bytes of their payload as a number.
fn kinds(mut bytes: &[u8]) -> Vec<(u8, u32)> {
    let mut kinds = Vec::new();
    while bytes.len() >= 9 {
        let length = u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]) as usize;
        let payload = bytes.get(9..9 + length).unwrap_or_default();
        let first = payload.first_chunk::<4>().map_or(0, |first| u32::from_be_bytes(*first));
        kinds.push((bytes[3], first));
        bytes = bytes.get(9 + length..).unwrap_or_default();
    }
    kinds
}

fn no_window(target: &Target) -> String {
    let mut caller = target.connect();
    caller.say([PREFACE, &frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0])].concat());
    for stream in [1, 3, 5] {
        caller.say(frame(HEADERS, END_HEADERS | END_STREAM, stream, GET_ROOT));
    }
    ended(&mut caller)
}

fn tls(target: &Target, bytes: &[u8]) -> String {
    let mut caller = target.connect_tls();
    caller.say(bytes);
    std::thread::sleep(Duration::from_millis(20));
    let heard = caller.hear_bytes();
    // An alert at most (RFC 8446, section 6), and no HTTP.
    assert!(heard.len() <= 32, "{} bytes", heard.len());
    "closed".to_owned()
}
