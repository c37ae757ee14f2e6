//! Attacks by bodies: their framing, their size, and what is in them.

use std::time::Duration;

use serde_json::{Value, json};

use super::Attack;
use super::target::{Target, ask, call, envelope, information, post};

pub(crate) static ATTACKS: &[Attack] = &[
    Attack("slow body, a byte at a time", slow_body, "408"),
    Attack("a body that never comes", |target| until_late(target, "Content-Length: 100\r\n\r\n{"), "408"),
    Attack("1 GiB by Content-Length", gibibyte, "413"),
    Attack("1 GiB in chunks", gibibyte_of_chunks, "413"),
    Attack("a chunk of 2^64 - 1 bytes", |target| chunked(target, "ffffffffffffffff\r\nabc"), "413 or 400"),
    Attack("a chunk size that overflows", |target| chunked(target, "10000000000000000\r\nabc"), "413 or 400"),
    Attack("chunks of one byte with long extensions", long_extensions, "400"),
    Attack(
        "a trailer of 1 MiB",
        |target| chunked(target, &format!("0\r\nX: {}\r\n\r\n", "y".repeat(1 << 20))),
        "413 or 400",
    ),
    Attack(
        "smuggling: Content-Length, then chunked",
        // The chunks count, and nothing behind them is heard (RFC 9112, section 6.1).
        |target| smuggle(target, "Content-Length: 60\r\nTransfer-Encoding: chunked\r\n"),
        "200",
    ),
    Attack(
        "smuggling: chunked, then Content-Length",
        |target| smuggle(target, "Transfer-Encoding: chunked\r\nContent-Length: 60\r\n"),
        "200",
    ),
    Attack(
        "smuggling: two lengths",
        |target| smuggle(target, "Content-Length: 5\r\nContent-Length: 60\r\n"),
        "400",
    ),
    Attack("smuggling: a length in a list", |target| smuggle(target, "Content-Length: 5, 60\r\n"), "400"),
    Attack("smuggling: a signed length", |target| smuggle(target, "Content-Length: +5\r\n"), "400"),
    Attack(
        "smuggling: chunked is not the last coding",
        |target| smuggle(target, "Transfer-Encoding: chunked, identity\r\n"),
        "400",
    ),
    Attack(
        "smuggling: a coding that is almost chunked",
        |target| smuggle(target, "Transfer-Encoding: xchunked\r\n"),
        "400",
    ),
    Attack("smuggling: chunked under HTTP/1.0", old_chunked, "400"),
    Attack("nesting, 100,000 deep", |target| call(target, &"[".repeat(100_000)), "200 -32700"),
    Attack(
        "nesting of objects, 100,000 deep",
        |target| call(target, &"{\"a\":".repeat(100_000)),
        "200 -32700",
    ),
    Attack(
        "a string of a million letters",
        |target| call(target, &search("query", &json!("a".repeat(1_000_000)))),
        "200 -32602",
    ),
    Attack("an object of 60,000 members", |target| call(target, &wide(60_000)), "200 -32602"),
    Attack(
        "60,000 equal members",
        |target| call(target, &format!("{{{}\"a\":1}}", "\"a\":1,".repeat(60_000))),
        "200 -32700",
    ),
    Attack(
        "a list of 400,000 numbers",
        |target| call(target, &search("make", &json!(vec![1; 400_000]))),
        "200 -32602",
    ),
    Attack(
        "a number of 900,000 digits",
        |target| {
            call(
                target,
                &search("price_min", &json!(0))
                    .replace("\"price_min\":0", &format!("\"price_min\":{}", "9".repeat(900_000))),
            )
        },
        "200 -32700",
    ),
    Attack(
        "a batch of 10,000 calls",
        |target| call(target, &format!("[{}{{}}]", "{},".repeat(10_000))),
        "200 -32600",
    ),
    Attack("bytes that are no UTF-8", no_text, "200"),
    Attack(
        "half of a surrogate pair",
        |target| call(target, &information().replace("m-1", "\\ud800")),
        "200 -32700",
    ),
    Attack("2,000 conversations and keys", made_up_names, "200"),
];

fn slow_body(target: &Target) -> String {
    let mut caller = target.connect();
    caller.say(
        "POST /a2a HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: 1000\r\n\r\n",
    );
    for _ in 0..60 {
        if !caller.say(" ") {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    caller.statuses()
}

fn until_late(target: &Target, rest: &str) -> String {
    let mut caller = target.connect();
    caller.say(format!("POST /a2a HTTP/1.1\r\nHost: x\r\n{rest}"));
    caller.statuses()
}

fn gibibyte(target: &Target) -> String {
    let mut caller = target.connect();
    caller.say("POST /a2a HTTP/1.1\r\nHost: x\r\nContent-Length: 1073741824\r\n\r\n");
    let mut sent = 0;
    while sent < 1 << 30 && caller.say([b' '; 65_536]) {
        sent += 65_536;
    }
    assert!(sent < 64 << 20, "{sent} bytes were taken");
    caller.statuses()
}

fn gibibyte_of_chunks(target: &Target) -> String {
    let mut caller = target.connect();
    caller.say("POST /a2a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    let chunk = format!("10000\r\n{}\r\n", " ".repeat(65_536));
    let mut sent = 0;
    while sent < 1 << 30 && caller.say(&chunk) {
        sent += chunk.len();
    }
    assert!(sent < 64 << 20, "{sent} bytes were taken");
    caller.statuses()
}

/// Refused by the size or by the framing, whichever is seen first.
fn chunked(target: &Target, chunks: &str) -> String {
    let mut caller = target.connect();
    caller.say(format!("POST /a2a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n{chunks}"));
    match caller.end().statuses().as_str() {
        "413" | "400" => "413 or 400".to_owned(),
        other => other.to_owned(),
    }
}

fn long_extensions(target: &Target) -> String {
    let mut caller = target.connect();
    caller.say("POST /a2a HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n");
    let chunk = format!("1;{}\r\nx\r\n", "e".repeat(4000));
    for _ in 0..200 {
        if !caller.say(&chunk) {
            break;
        }
    }
    caller.end().statuses()
}

/// A request behind one whose length two readers may see differently.
fn smuggle(target: &Target, framing: &str) -> String {
    let mut caller = target.connect();
    caller.say(format!(
        "POST /a2a HTTP/1.1\r\nHost: x\r\n{framing}\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n"
    ));
    caller.end().statuses()
}

fn old_chunked(target: &Target) -> String {
    ask(
        target,
        "POST /a2a HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: x\r\n\r\n",
    )
}

fn search(filter: &str, value: &Value) -> String {
    envelope("inventory-search", &json!({ "type": "inventory.search.request", "filters": { filter: value } }))
        .to_string()
}

fn wide(members: usize) -> String {
    let filters: serde_json::Map<String, Value> =
        (0..members).map(|number| (format!("m{number}"), json!(1))).collect();
    envelope("inventory-search", &json!({ "type": "inventory.search.request", "filters": filters }))
        .to_string()
}

fn no_text(target: &Target) -> String {
    let mut bytes = post(&" ".repeat(1000)).into_bytes();
    let start = bytes.len() - 1000;
    bytes[start..].fill(0xff);
    ask(target, bytes)
}

fn made_up_names(target: &Target) -> String {
    let mut caller = target.connect();
    let mut writing = super::target::Caller(caller.0.try_clone().unwrap());
    let sender = std::thread::spawn(move || {
        for number in 0..2000 {
            let body = information()
                .replace("\"messageId\"", &format!("\"contextId\":\"c-{number}\",\"messageId\""));
            let close = if number == 1999 { "close" } else { "keep-alive" };
            let request = post(&body)
                .replace("Connection: close", &format!("Connection: {close}\r\nX-Sim-Key: {number}"));
            writing.say(request);
        }
    });
    let seen = caller.statuses();
    sender.join().unwrap();
    assert_eq!(seen.split(' ').count(), 2000);
    seen.split(' ').next().unwrap().to_owned()
}
