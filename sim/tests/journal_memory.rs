//! The journal's memory: flat, however much is asked. Takes a minute or two: `.ci/long` runs it.

#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

mod support;

use std::io::{Read, Write};
use std::net::TcpStream;

use serde_json::json;
use support::{Sim, call, connect, http};

const REQUESTS: usize = 2_000_000;
const CONNECTIONS: usize = 8;
/// One request in so many has a body of 1 MiB.
const LARGE_EVERY: usize = 1000;
/// Resident memory may grow by this much between the first quarter and the last.
const MOST_GROWTH_KIB: u64 = 8 << 10;

fn request(body: &str) -> Vec<u8> {
    let length = body.len();
    format!("POST /a2a HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n{body}")
        .into_bytes()
}

/// Reads one reply off a connection that stays open.
fn read_reply(stream: &mut TcpStream, buffer: &mut Vec<u8>) {
    buffer.clear();
    let mut piece = [0; 32 << 10];
    loop {
        let read = stream.read(&mut piece).unwrap();
        assert!(read > 0, "the connection ended");
        buffer.extend_from_slice(&piece[..read]);
        let Some(head) = buffer.windows(4).position(|window| window == b"\r\n\r\n") else { continue };
        let text = std::str::from_utf8(&buffer[..head]).unwrap();
        let length = text.lines().find_map(|line| line.strip_prefix("content-length: ")).unwrap();
        if buffer.len() >= head + 4 + length.parse::<usize>().unwrap() {
            return;
        }
    }
}

fn resident_kib(sim: &Sim) -> u64 {
    let status = std::fs::read_to_string(format!("/proc/{}/status", sim.pid())).unwrap();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).unwrap();
    line.trim().trim_end_matches(" kB").parse().unwrap()
}

#[test]
#[ignore = "two million requests"]
fn resident_memory_is_flat() {
    let sim = Sim::start(&[]);
    let url = sim.url();
    let small = request(
        &call("vehicle-detail", &json!({ "type": "inventory.vehicle.request", "stock": "none" })).to_string(),
    );
    // What is left of 1 MiB beside the text of the search is its text.
    let search = |query: &str| {
        call(
            "inventory-search",
            &json!({ "type": "inventory.search.request", "filters": { "query": query } }),
        )
        .to_string()
    };
    let large = request(&search(&"x".repeat((1 << 20) - search("").len())));
    let mut resident = Vec::new();
    for quarter in 1..=4 {
        std::thread::scope(|scope| {
            for _ in 0..CONNECTIONS {
                scope.spawn(|| {
                    let (mut stream, _) = connect(&url);
                    stream.set_nodelay(true).unwrap();
                    let mut buffer = Vec::new();
                    for n in 0..REQUESTS / 4 / CONNECTIONS {
                        stream.write_all(if n % LARGE_EVERY == 0 { &large } else { &small }).unwrap();
                        read_reply(&mut stream, &mut buffer);
                    }
                });
            }
        });
        resident.push(resident_kib(&sim));
        println!("{} requests: {} KiB resident", quarter * REQUESTS / 4, resident[quarter - 1]);
    }
    let metrics = http("GET", &sim.admin("/metrics"), &[], "").2;
    assert!(metrics.contains(&format!("dealer_sim_journal_recorded_total {REQUESTS}\n")), "{metrics}");
    assert!(metrics.contains("dealer_sim_http_bodies_too_large_total 0\n"), "{metrics}");
    assert!(resident[3] <= resident[0] + MOST_GROWTH_KIB, "{resident:?}");
}
