//! HTTP/2: calls, faults on streams, and peers that abuse it.

use std::time::{Duration, Instant};

use bytes::Bytes;
use dealer_sim::faults::call::parse_effects;
use dealer_sim::faults::on_stream::{StreamEnd, on_stream};
use dealer_sim::faults::{Apply, Draw, registry};
use dealer_sim::server::limits::Limits;
use dealer_sim::server::tls::{Certificate, TlsOptions};
use h2::Reason;
use hyper::http::Method;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

use super::client::*;
use super::{frozen, run};

const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
const SETTINGS: u8 = 4;
const PING: u8 = 6;
const GOAWAY: u8 = 7;

/// A frame (RFC 9113, section 4.1).
fn frame(kind: u8, flags: u8, stream: u32, payload: &[u8]) -> Vec<u8> {
    let length = u32::try_from(payload.len()).unwrap().to_be_bytes();
    [&length[1..], &[kind, flags], &stream.to_be_bytes(), payload].concat()
}

/// Header fields of a GET of `/`, from the static table (RFC 7541, appendix A).
const GET_ROOT: &[u8] = b"\x82\x84\x86\x41\x01x";

#[test]
fn both_versions_say_the_same() {
    run(async {
        let options =
            TlsOptions { certificate: Certificate::SelfSigned, client_ca: None, client_optional: false };
        let (plain, secure) = (frozen().start().await.unwrap(), frozen().tls(options).start().await.unwrap());
        let stream = TcpStream::connect(authority(&plain.url())).await.unwrap();
        let (_, _, on_http1) =
            http1(stream, "POST", "/a2a", &[("X-Sim-Key", "k")], &envelope(&search())).await.unwrap();
        let known = h2c(&plain.url()).await;
        let stream = tls(&secure.url(), secure.certificate().unwrap(), None, &[b"h2", b"http/1.1"]).await;
        let stream = stream.unwrap();
        assert_eq!(stream.get_ref().1.alpn_protocol(), Some(&b"h2"[..]));
        let negotiated = http2(stream).await;
        for (send, url, expected) in
            [(&known, plain.url(), None), (&negotiated, secure.url(), Some(&on_http1))]
        {
            let seen = call(send, &url, &[("x-sim-key", "k"), ("traceparent", "00-1-2-01")], &search()).await;
            let (status, fields) = seen.head.as_ref().unwrap();
            assert_eq!((*status, &fields["content-type"]), (200, &"application/json".parse().unwrap()));
            assert!(fields["server"].to_str().unwrap().starts_with("dealer-sim/"));
            assert_eq!(fields["traceparent"], "00-1-2-01");
            let said = String::from_utf8(seen.body.clone()).unwrap();
            assert!(expected.is_none_or(|expected| *expected == said), "{said:.300}");
            assert_eq!(
                seen.json()["result"]["message"]["parts"][0]["data"]["data"]["vehicles"]
                    .as_array()
                    .unwrap()
                    .len(),
                20
            );

            let card = format!("{}/.well-known/agent-card.json", url.trim_end_matches("/a2a"));
            let got = ask(send, Method::GET, &card, &[], "").await;
            let head = ask(send, Method::HEAD, &card, &[], "").await;
            assert_eq!((head.status(), head.body.len(), head.error.is_none()), (200, 0, true), "{head:?}");
            assert_eq!(head.head.unwrap().1["content-length"], got.body.len().to_string());
            assert_eq!(ask(send, Method::GET, &url, &[], "").await.status(), 405);
            assert_eq!(ask(send, Method::PUT, &card.replace("agent", "no"), &[], "x").await.status(), 404);
        }
    });
}

#[test]
fn requests_share_a_connection_and_each_is_in_the_journal() {
    run(async {
        let dealer = frozen().start().await.unwrap();
        let send = h2c(&dealer.url()).await;
        let url = dealer.url();
        let calls: Vec<_> = (0..100)
            .map(|number| {
                let (send, url) = (send.clone(), url.clone());
                tokio::spawn(async move {
                    let name = number.to_string();
                    let fault = if number % 2 == 0 { "latency(value=300ms)" } else { "latency(value=1ms)" };
                    let fields = [("x-sim-client", name.as_str()), ("x-sim-fault", fault)];
                    call(&send, &url, &fields, &information()).await.status()
                })
            })
            .collect();
        let begun = Instant::now();
        for call in calls {
            assert_eq!(call.await.unwrap(), 200);
        }
        // One after the other they would take 15 seconds.
        assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
        let entries = journal(&dealer);
        assert_eq!(entries.len(), 100);
        for entry in &entries {
            assert_eq!((&entry["delivered"]["state"], &entry["connection"]), (&"complete".into(), &0.into()));
        }
        let mut ordinals: Vec<u64> = entries.iter().map(|entry| entry["ordinal"].as_u64().unwrap()).collect();
        ordinals.sort_unstable();
        assert_eq!(ordinals, (1..=100).collect::<Vec<_>>());
    });
}

/// Every delivery of the catalogue, on one connection where it can be: what a stream shows is what the translation says, and
/// other streams have nothing of it.
#[test]
fn every_delivery_is_seen_on_its_stream_alone() {
    run(async {
        let dealer = frozen().start().await.unwrap();
        let url = dealer.url();
        let plain = call(&h2c(&url).await, &url, &[("x-sim-key", "k")], &search()).await;
        let mut met = 0;
        for effect in registry() {
            let mut draw = Draw::new(0, "", 0, 0);
            let text = match effect.name {
                // Long ones, made short.
                "drip" | "drip_body" => format!("{}(bytes=2KiB, every=2ms)", effect.name),
                "bandwidth" => "bandwidth(per_second=1MiB)".to_owned(),
                "slow_close" => "slow_close(delay=50ms)".to_owned(),
                _ => effect.name.to_owned(),
            };
            let args = parse_effects("", &text, registry()).unwrap()[0].args.clone();
            let (script, is_lost) = match effect.apply {
                Apply::Deliver(make) => (make(&args, &mut draw), false),
                Apply::Lose(make) => (make(&args, &mut draw), true),
                _ => continue,
            };
            met += 1;
            let wanted = on_stream(&script, 200);
            let send = h2c(&url).await;
            let fields = [("x-sim-fault", text.as_str()), ("x-sim-key", "k")];
            let (search, information) = (search(), information());
            let asked = call(&send, &url, &fields, &search);
            let seen = tokio::time::timeout(
                Duration::from_millis(if wanted.end == StreamEnd::Silence { 400 } else { 9000 }),
                asked,
            )
            .await;
            let other = call(&send, &url, &[], &information);
            match (wanted.end, &seen) {
                (StreamEnd::Silence, Err(_)) => assert_eq!(other.await.status(), 200, "{text}"),
                (StreamEnd::Whole, Ok(seen)) => {
                    assert_eq!(
                        (seen.status(), seen.body.len()),
                        (200, plain.body.len()),
                        "{text}: {:?}",
                        seen.error
                    );
                    assert_eq!(other.await.status(), 200, "{text}");
                }
                (StreamEnd::GoAway(after), Ok(seen)) => {
                    let keeps_length = wanted.without.is_empty() && wanted.with.is_empty();
                    if keeps_length {
                        assert_eq!(
                            (seen.status(), seen.body.len() == plain.body.len()),
                            (200, true),
                            "{text}"
                        );
                    } else {
                        // A length that is not kept is an error of the stream (RFC 9113, section 8.1.1).
                        assert_eq!(seen.reason(), Some(Reason::PROTOCOL_ERROR), "{text}: {seen:?}");
                    }
                    tokio::time::sleep(after + Duration::from_millis(150)).await;
                    let late = call(&send, &url, &[], &information).await;
                    assert_eq!(
                        (late.status(), late.error.is_some()),
                        (0, true),
                        "{text}: GOAWAY has not come"
                    );
                }
                (StreamEnd::Reset | StreamEnd::Cancel | StreamEnd::Garbled, Ok(seen)) => {
                    let reason = match wanted.end {
                        StreamEnd::Reset => Reason::INTERNAL_ERROR,
                        StreamEnd::Cancel => Reason::CANCEL,
                        _ => Reason::PROTOCOL_ERROR,
                    };
                    assert_eq!(seen.reason(), Some(reason), "{text}: {seen:?}");
                    assert_eq!(seen.head.is_some(), wanted.has_head && !is_lost, "{text}: {seen:?}");
                    if let Some((_, fields)) = &seen.head {
                        let applied = fields["x-sim-fault-applied"].to_str().unwrap();
                        assert!(applied.contains(effect.name), "{applied}");
                    }
                    assert!(seen.body.len() <= plain.body.len(), "{text}: {}", seen.body.len());
                    assert_eq!(other.await.status(), 200, "{text}");
                }
                (end, seen) => panic!("{text}: {end:?} was wanted: {seen:?}"),
            }
        }
        assert!(met > 35, "{met}");
        let journal = journal(&dealer);
        let with = |state: &str| journal.iter().filter(|entry| entry["delivered"]["state"] == state).count();
        assert!(with("reset") >= 3 && with("cut") >= 5 && with("silent") >= 4, "{}", journal.len());
    });
}

/// A raw connection that has said its preface.
async fn raw(url: &str) -> TcpStream {
    let mut stream = TcpStream::connect(authority(url)).await.unwrap();
    stream.write_all(PREFACE).await.unwrap();
    stream.write_all(&frame(SETTINGS, 0, 0, &[])).await.unwrap();
    stream
}

/// Everything up to the end of the connection, and the time that it took.
async fn end_of(mut stream: TcpStream) -> (Vec<u8>, Duration) {
    let begun = Instant::now();
    let mut all = Vec::new();
    _ = tokio::time::timeout(Duration::from_secs(8), stream.read_to_end(&mut all))
        .await
        .expect("it stays open");
    (all, begun.elapsed())
}

/// The kinds of the frames in what came.
fn kinds(mut bytes: &[u8]) -> Vec<u8> {
    let mut kinds = Vec::new();
    while bytes.len() >= 9 {
        kinds.push(bytes[3]);
        let length = u32::from_be_bytes([0, bytes[0], bytes[1], bytes[2]]) as usize;
        bytes = bytes.get(9 + length..).unwrap_or_default();
    }
    kinds
}

#[test]
fn rapid_resets_and_floods_end_their_connection_and_are_counted() {
    run(async {
        let limits = Limits { http2_resets: 50, ..Limits::default() };
        let dealer = frozen().limits(limits).start().await.unwrap();
        let url = dealer.url();
        let honest = h2c(&url).await;

        // Requests and their resets, as fast as they can be sent (CVE-2023-44487).
        let mut stream = raw(&url).await;
        let mut attack = Vec::new();
        for number in 0..5_000 {
            attack.extend(frame(1, 0x5, number * 2 + 1, GET_ROOT));
            attack.extend(frame(3, 0, number * 2 + 1, &8u32.to_be_bytes()));
        }
        _ = stream.write_all(&attack).await;
        end_of(stream).await;
        counts_to(&dealer, "dealer_sim_http2_floods", 1).await;

        // The same, slowly enough that each request is taken: given up while it waits for a fault.
        let send = h2c(&url).await;
        for _ in 0..60 {
            let Ok(mut ready) = send.clone().ready().await else { break };
            let request = hyper::http::Request::post(&url)
                .header("content-type", "application/json")
                .header("x-sim-fault", "latency(value=5s)");
            let Ok((reply, mut body)) = ready.send_request(request.body(()).unwrap(), false) else { break };
            _ = body.send_data(Bytes::from(envelope(&information())), true);
            tokio::time::sleep(Duration::from_millis(5)).await;
            body.send_reset(Reason::CANCEL);
            drop(reply);
        }
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(call(&send, &url, &[], &information()).await.error.is_some());
        counts_to(&dealer, "dealer_sim_http2_floods", 2).await;

        // Pings, and settings, which are answered each (CVE-2019-9512, -9515).
        for (kind, payload) in [(PING, &[0; 8][..]), (SETTINGS, &[0, 3, 0, 0, 0, 9])] {
            let mut stream = raw(&url).await;
            let flood = frame(kind, 0, 0, payload).repeat(1000);
            let (mut read, mut write) = stream.split();
            let mut waste = [0; 65_536];
            let reading = async { while read.read(&mut waste).await.is_ok_and(|bytes| bytes > 0) {} };
            let writing = async { while write.write_all(&flood).await.is_ok() {} };
            tokio::time::timeout(Duration::from_secs(10), async { tokio::join!(reading, writing) })
                .await
                .unwrap();
        }
        counts_to(&dealer, "dealer_sim_http2_floods", 4).await;
        assert_eq!(call(&honest, &url, &[], &information()).await.status(), 200);
    });
}

#[test]
fn idle_and_stalled_connections_end_in_their_time() {
    run(async {
        let limits = Limits {
            header_timeout_ms: 300,
            body_timeout_ms: 300,
            write_timeout_ms: 300,
            ..Limits::default()
        };
        let dealer = frozen().limits(limits).start().await.unwrap();
        let url = dealer.url();
        // One that says nothing, and one whose head never ends.
        let silent = end_of(raw(&url).await).await;
        let mut slow = raw(&url).await;
        slow.write_all(&frame(1, 0x1, 1, GET_ROOT)).await.unwrap();
        for (bytes, took) in [silent, end_of(slow).await] {
            assert!(kinds(&bytes).contains(&GOAWAY), "{bytes:?}");
            assert!(took < Duration::from_secs(4), "{took:?}");
        }
        // One that takes nothing of what it has asked for: its window has no room.
        let mut starving = TcpStream::connect(authority(&url)).await.unwrap();
        starving.write_all(PREFACE).await.unwrap();
        starving.write_all(&frame(SETTINGS, 0, 0, &[0, 4, 0, 0, 0, 0])).await.unwrap();
        starving.write_all(&frame(1, 0x5, 1, GET_ROOT)).await.unwrap();
        let (_, took) = end_of(starving).await;
        assert!(took < Duration::from_secs(5), "{took:?}");
        assert_eq!(counter(&dealer, "dealer_sim_http2_stalled").await, 1);
        // A body that does not come is told to be late, and the connection goes on.
        let send = h2c(&url).await;
        let mut ready = send.clone().ready().await.unwrap();
        let request = hyper::http::Request::post(&url).header("content-type", "application/json");
        let (reply, mut body) = ready.send_request(request.body(()).unwrap(), false).unwrap();
        body.send_data(Bytes::from_static(b"{"), false).unwrap();
        assert_eq!(reply.await.unwrap().status(), 408);
        assert_eq!(call(&send, &url, &[], &information()).await.status(), 200);
    });
}

#[test]
fn limits_hold_on_streams() {
    run(async {
        let limits = Limits {
            body_bytes: 4000,
            header_bytes: 8192,
            http2_streams: 4,
            connection_requests: 10,
            ..Limits::default()
        };
        let dealer = frozen().limits(limits).start().await.unwrap();
        let url = dealer.url();
        let send = h2c(&url).await;
        let long =
            ask(&send, Method::POST, &url, &[("content-type", "application/json")], &" ".repeat(4001)).await;
        assert_eq!(long.status(), 413);
        let field = "y".repeat(9000);
        let large = ask(&send, Method::GET, &url, &[("x-large", &field)], "").await;
        assert!(large.status() == 431 || large.error.is_some(), "{large:?}");
        assert_eq!(send.clone().ready().await.unwrap().current_max_send_streams(), 4);
        let mut served = 0;
        while served < 20 && call(&send, &url, &[], &information()).await.status() == 200 {
            served += 1;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        assert!((7..=9).contains(&served), "{served} after three others");
    });
}

#[test]
fn a_stop_lets_streams_finish() {
    run(async {
        let dealer = frozen().start().await.unwrap();
        let url = dealer.url();
        let send = h2c(&url).await;
        let late = {
            let (send, url) = (send.clone(), url.clone());
            tokio::spawn(async move {
                call(&send, &url, &[("x-sim-fault", "latency(value=400ms)")], &information()).await.status()
            })
        };
        tokio::time::sleep(Duration::from_millis(100)).await;
        let stopped = tokio::task::spawn_blocking(|| dealer.stop()).await.unwrap();
        assert_eq!((stopped.unfinished, late.await.unwrap()), (0, 200));
    });
}
