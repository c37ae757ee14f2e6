//! Attacks by connections and heads of HTTP/1.1.

use std::net::Ipv4Addr;
use std::time::{Duration, Instant};

use super::Attack;
use super::target::{Target, ask, information, post};

pub(crate) static ATTACKS: &[Attack] = &[
    Attack("slow head, a byte at a time", slow_head, "closed"),
    Attack("idle connections, a crowd of them", idle_crowd, "closed"),
    Attack("connections beyond a client's limit", beyond_the_limit, "closed at once"),
    Attack("connections reset as soon as they are open", reset_storm, "200"),
    Attack("a head that never ends", endless_head, "431"),
    Attack("10,000 header fields", |target| ask(target, many_fields()), "431"),
    Attack("one field of 1 MiB", large_field, "431"),
    Attack(
        "a path of 100 KiB",
        |target| ask(target, format!("GET /{} HTTP/1.1\r\nHost: x\r\n\r\n", "a".repeat(100 << 10))),
        "414",
    ),
    Attack(
        "a path out of the tree",
        |target| ask(target, "GET /../../etc/passwd HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"),
        "404",
    ),
    Attack("a NUL in the path", |target| ask(target, "GET /a\0b HTTP/1.1\r\nHost: x\r\n\r\n"), "400"),
    Attack(
        "a bare CR in a field",
        |target| ask(target, "GET / HTTP/1.1\r\nHost: x\r\nA: b\rc\r\n\r\n"),
        "400",
    ),
    Attack(
        "a blank before the colon",
        |target| ask(target, "GET / HTTP/1.1\r\nHost: x\r\nContent-Length : 5\r\n\r\nabcde"),
        "400",
    ),
    Attack("a folded field", |target| ask(target, "GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n"), "400"),
    Attack("no HTTP at all", |target| ask(target, vec![0xff; 100_000]), "400"),
    Attack(
        "a method of 60 KiB",
        |target| ask(target, format!("{} / HTTP/1.1\r\nHost: x\r\n\r\n", "M".repeat(60 << 10))),
        "405",
    ),
    Attack(
        "CONNECT, to be a proxy",
        |target| {
            ask(target, "CONNECT example.com:443 HTTP/1.1\r\nHost: example.com\r\nConnection: close\r\n\r\n")
        },
        "404",
    ),
    Attack("1,000 requests sent before a reply is read", pipelined, "1000 replies"),
    Attack("as many requests on a connection as it takes", keep_alive_hog, "closed in time"),
    Attack("a reply that nobody reads", unread, "reset"),
    Attack("40 replies of megabytes that nobody reads", unread_crowd, "503 for some"),
    Attack("half-open: the request, then FIN", half_closed, "200"),
    Attack("a request, then nothing, again and again", abandoned, "200"),
];

fn slow_head(target: &Target) -> String {
    let mut caller = target.connect();
    for byte in b"POST /a2a HTTP/1.1\r\nHost: slow.example\r\nX-Slow: and so on and so on" {
        if !caller.say([*byte]) {
            break;
        }
        std::thread::sleep(Duration::from_millis(20));
    }
    caller.statuses()
}

fn idle_crowd(target: &Target) -> String {
    let mut crowd: Vec<_> = (0..target.crowd()).map(|_| target.from(Ipv4Addr::new(127, 0, 9, 1))).collect();
    let (mut first, mut last) = (crowd.swap_remove(0), crowd.pop().unwrap());
    let seen = [first.statuses(), last.statuses()];
    assert_eq!(seen[0], seen[1]);
    drop(crowd);
    seen[0].clone()
}

fn beyond_the_limit(target: &Target) -> String {
    // More than any of the limits in force allows.
    let host = Ipv4Addr::new(127, 0, 9, 2);
    let most = if target.crowd() > 1000 { 12_000 } else { 300 };
    let held: Vec<_> = (0..most).map(|_| target.from(host)).collect();
    let begun = Instant::now();
    let seen = target.from(host).statuses();
    assert!(begun.elapsed() < Duration::from_millis(500), "it waited for a time limit");
    drop(held);
    format!("{seen} at once")
}

fn reset_storm(target: &Target) -> String {
    for _ in 0..300 {
        let mut caller = target.connect();
        caller.say("POST /a2a HTTP/1.1\r\n");
        socket2::SockRef::from(&caller.0).set_linger(Some(Duration::ZERO)).unwrap();
    }
    ask(target, post(&information()))
}

fn endless_head(target: &Target) -> String {
    let mut caller = target.connect();
    caller.say("GET / HTTP/1.1\r\nHost: x\r\nX-Endless: ");
    for _ in 0..64 {
        if !caller.say([b'y'; 4096]) {
            break;
        }
    }
    caller.statuses()
}

fn many_fields() -> String {
    let fields: String = (0..10_000).map(|number| format!("X-{number}: y\r\n")).collect();
    format!("GET / HTTP/1.1\r\nHost: x\r\n{fields}\r\n")
}

fn large_field(target: &Target) -> String {
    let mut caller = target.connect();
    caller.say(format!("GET / HTTP/1.1\r\nHost: x\r\nX-Large: {}\r\n\r\n", "y".repeat(1 << 20)));
    caller.statuses()
}

fn pipelined(target: &Target) -> String {
    let mut caller = target.connect();
    let mut writing = super::target::Caller(caller.0.try_clone().unwrap());
    let sender = std::thread::spawn(move || {
        let body = information();
        for number in 0..1000 {
            let request = post(&body);
            writing.say(if number < 999 { request.replace("Connection: close\r\n", "") } else { request });
        }
    });
    let seen = caller.statuses();
    sender.join().unwrap();
    assert!(seen.split(' ').all(|status| status == "200"), "{seen}");
    format!("{} replies", seen.split(' ').count())
}

fn keep_alive_hog(target: &Target) -> String {
    let mut caller = target.connect();
    let mut writing = super::target::Caller(caller.0.try_clone().unwrap());
    let sender = std::thread::spawn(move || {
        let requests = "GET /elsewhere HTTP/1.1\r\nHost: x\r\n\r\n".repeat(100);
        while writing.say(&requests) {}
    });
    let seen = caller.statuses();
    drop(caller);
    sender.join().unwrap();
    // What is still on its way to one who writes on is lost with the reset.
    let replies = seen.split(' ').count();
    assert!(replies <= 5000, "{replies}");
    "closed in time".to_owned()
}

fn unread(target: &Target) -> String {
    let search = super::target::envelope(
        "inventory-search",
        &serde_json::json!({ "type": "inventory.search.request", "pagination": { "limit": 100 } }),
    );
    let body = serde_json::Value::Array(vec![search; 100]).to_string();
    let mut caller = target.connect();
    caller.say(post(&body));
    // The reply is larger than what the kernel keeps for both sides.
    std::thread::sleep(Duration::from_millis(1600));
    let heard = caller.hear_bytes().len();
    if heard < 6_000_000 { "reset".to_owned() } else { format!("{heard} bytes") }
}

fn unread_crowd(target: &Target) -> String {
    let search = super::target::envelope(
        "inventory-search",
        &serde_json::json!({ "type": "inventory.search.request", "pagination": { "limit": 100 } }),
    );
    let body = serde_json::Value::Array(vec![search; 100]).to_string();
    let mut crowd: Vec<_> = (0..40).map(|_| target.connect()).collect();
    crowd.iter_mut().for_each(|caller| assert!(caller.say(post(&body))));
    std::thread::sleep(Duration::from_millis(1200));
    let heard: Vec<String> = crowd.iter_mut().map(super::target::Caller::statuses).collect();
    if heard.iter().any(|heard| heard == "503") { "503 for some".to_owned() } else { format!("{heard:?}") }
}

fn half_closed(target: &Target) -> String {
    ask(target, post(&information()))
}

fn abandoned(target: &Target) -> String {
    for _ in 0..200 {
        target.connect().say(post(&information()));
    }
    ask(target, post(&information()))
}
