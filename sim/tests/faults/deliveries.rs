//! What each effect that does not rewrite a reply asks for: an error, a behaviour, an HTTP reply, a card, a script.

use std::time::Duration;

use dealer_sim::faults::effect::{Behaviour, BucketKey, DelayFacts, HttpOverride, RetryHint};
use dealer_sim::faults::registry::find;
use dealer_sim::faults::{Apply, Draw, Step, registry};
use dealer_sim::protocol::Binding;
use dealer_sim::protocol::error::{AapCode, Detail};
use serde_json::Value;

use super::holds::{CARDS, HTTP, Said};
use super::play::{Played, play};
use super::samples::{args, context, sample, with};

#[test]
fn all_twelve_codes_are_forced_at_will() {
    for code in AapCode::ALL {
        let effect = find(&code.name().to_lowercase()).unwrap();
        let Apply::Refuse(refuse) = effect.apply else { panic!("{}", effect.name) };
        let error = refuse(&args(effect, false));
        assert_eq!(error.code, code);
        let name = code.name();
        let lists = name.contains("VALIDATION") || name.contains("MISSING") || name.starts_with("INVALID");
        assert_eq!(!error.faults.is_empty(), lists, "{name}");
    }
}

#[test]
fn a_refusal_hints_as_it_is_told() {
    let effect = find("rate_limited").unwrap();
    let Apply::Refuse(refuse) = effect.apply else { panic!() };
    let (ms, seconds) =
        (("retry_after_ms", Detail::Integer(1_500)), ("retry_after_seconds", Detail::Integer(2)));
    for (hint, expected) in [
        ("ms", vec![ms.clone()]),
        ("seconds", vec![seconds.clone()]),
        ("both", vec![ms, seconds]),
        ("none", vec![]),
    ] {
        let mut values =
            vec![("retry_after", Some(dealer_sim::faults::effect::Arg::Duration(1_499_000_001)))];
        values.push(("hint", Some(dealer_sim::faults::effect::Arg::Text(hint.to_owned()))));
        let error = refuse(&dealer_sim::faults::Args::new(values));
        assert_eq!(error.details, expected);
        assert_eq!(error.message.contains("1500 ms"), hint != "none");
    }
}

#[test]
fn an_error_may_come_under_an_http_status() {
    for (name, code, status, retry_after) in [
        ("rate_limited_http", AapCode::RateLimited, 429, Some("2")),
        ("internal_error_http", AapCode::InternalError, 500, None),
    ] {
        let effect = find(name).unwrap();
        let Apply::RefuseHttp(refuse) = effect.apply else { panic!("{name}") };
        let (error, http) = refuse(&args(effect, false));
        assert_eq!((error.code, http.status, http.body.as_ref()), (code, Some(status), None));
        assert_eq!(field(&http, "retry-after"), retry_after);
    }
}

#[test]
fn behaviours_are_what_their_names_say() {
    let behave = |name: &str| {
        let effect = find(name).unwrap();
        let Apply::Behave(behave) = effect.apply else { panic!("{name}") };
        behave(&args(effect, false))
    };
    let table = [
        ("sold_under_you", Behaviour::SoldUnderYou),
        ("idempotency_forgotten", Behaviour::ForgetIdempotency),
        ("lead_duplicate", Behaviour::LeadIsDuplicate),
        ("appointment_requested", Behaviour::Appointment("requested")),
        ("appointment_proposed", Behaviour::Appointment("proposed")),
        ("appointment_confirmed", Behaviour::Appointment("confirmed")),
        ("appointment_rejected", Behaviour::Appointment("rejected")),
        ("unknown_context_refused", Behaviour::RefuseUnknownContext),
        ("conversation_expired", Behaviour::ConversationExpired),
        ("duplicate_across_pages", Behaviour::ShiftPages(-1)),
        ("stock_moves_between_pages", Behaviour::ShiftPages(1)),
    ];
    for (name, expected) in table {
        assert_eq!(behave(name), expected, "{name}");
    }
    let Behaviour::TokenBucket(bucket) = behave("token_bucket") else { panic!() };
    assert_eq!((bucket.interval_ns, bucket.burst, bucket.http), (100_000_000, 10, false));
    assert_eq!((bucket.key, bucket.hint), (BucketKey::Client, RetryHint::Ms));
    for effect in registry().iter().filter(|effect| matches!(effect.apply, Apply::Behave(_))) {
        let known = effect.name == "token_bucket" || table.iter().any(|(name, _)| *name == effect.name);
        assert!(known, "{} has no test", effect.name);
    }
}

fn http(name: &str) -> HttpOverride {
    let effect = find(name).unwrap();
    let Apply::Http(http) = effect.apply else { panic!("{name}") };
    http(&args(effect, false))
}

fn field<'a>(reply: &'a HttpOverride, name: &str) -> Option<&'a str> {
    reply.headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
}

#[test]
fn http_effects_say_what_they_name() {
    for (name, status, holds) in HTTP {
        let reply = Said::of(http(name));
        assert_eq!(reply.status, *status, "{name}");
        assert!(holds(&reply), "{name}: {reply:?}");
    }
    // `doors/faults.rs` has those that do not touch A2A.
    let of_a2a = registry().iter().filter(|effect| effect.bindings.has(Binding::A2a));
    for effect in of_a2a.filter(|effect| matches!(effect.apply, Apply::Http(_))) {
        assert!(HTTP.iter().any(|(name, ..)| *name == effect.name), "{} has no test", effect.name);
    }
    let effect = find("http_503").unwrap();
    let Apply::Http(http) = effect.apply else { panic!() };
    assert_eq!(field(&http(&with(effect, "retry_after", "1500ms")), "retry-after"), Some("2"));
    let effect = find("http_redirect").unwrap();
    let Apply::Http(http) = effect.apply else { panic!() };
    let reply = http(&with(effect, "location", "\"/x\\r\\nset-cookie: a=b\""));
    assert_eq!(field(&reply, "location"), Some("/xset-cookie: a=b"));
}

#[test]
fn card_effects_bend_what_they_name() {
    let entry = |card: &Value| card["capabilities"]["extensions"][0].clone();
    assert_eq!(entry(&serde_json::from_slice(&sample("card")).unwrap())["required"], true);
    for (name, holds) in CARDS {
        let effect = find(name).unwrap();
        let Apply::RefineCard(refine) = effect.apply else { panic!("{name}") };
        let mut out = sample("card");
        let http = refine(&args(effect, false), &context(b""), &mut Draw::new(1, "r", 2, 3), &mut out);
        let card = serde_json::from_slice(&out).unwrap_or_default();
        let http = Said::of(http);
        assert!(holds(&card, &http), "{name}: {http:?} {card}");
    }
    for effect in registry().iter().filter(|effect| matches!(effect.apply, Apply::RefineCard(_))) {
        assert!(CARDS.iter().any(|(name, _)| *name == effect.name), "{} has no test", effect.name);
    }
}

#[test]
fn scripts_deliver_what_their_names_say() {
    let body = "x".repeat(1_000);
    let reply = format!("HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\n{body}").into_bytes();
    let head = reply.len() - body.len();
    let text = |seen: &[u8]| String::from_utf8_lossy(seen).into_owned();
    let millis = Duration::from_millis;
    // (name, bytes seen or none to compare apart, end, time)
    let table: &[(&str, Option<usize>, Option<Step>, Duration)] = &[
        ("connection_refused", Some(0), Some(Step::Reset), millis(0)),
        ("connection_closed", Some(0), Some(Step::Close), millis(0)),
        ("accept_and_silence", Some(0), Some(Step::Silence), millis(0)),
        ("accept_delay", Some(0), None, millis(500)),
        ("not_http", None, Some(Step::Close), millis(0)),
        ("reset_before_commit", Some(0), Some(Step::Reset), millis(0)),
        ("silence_before_commit", Some(0), Some(Step::Silence), millis(0)),
        ("reset_after_commit", Some(0), Some(Step::Reset), millis(0)),
        ("silence_after_commit", Some(0), Some(Step::Silence), millis(0)),
        ("fin_after_commit", Some(0), Some(Step::Close), millis(0)),
        ("reset_in_head", Some(12), Some(Step::Reset), millis(0)),
        ("reset_in_reply", Some(head + 64), Some(Step::Reset), millis(0)),
        ("reset_after_reply", Some(reply.len()), Some(Step::Reset), millis(10)),
        ("fin_in_head", Some(12), Some(Step::Close), millis(0)),
        ("fin_in_body", Some(head + 64), Some(Step::Close), millis(0)),
        ("fin_after_reply", Some(reply.len()), Some(Step::Close), millis(0)),
        ("silence_in_head", Some(12), Some(Step::Silence), millis(0)),
        ("silence_in_body", Some(head + 64), Some(Step::Silence), millis(0)),
        ("half_close", Some(reply.len()), Some(Step::HalfClose), millis(0)),
        ("half_close_in_body", Some(head + 64), Some(Step::HalfClose), millis(0)),
        ("slow_close", Some(reply.len()), Some(Step::Close), millis(2_000)),
        ("first_byte_delay", Some(reply.len()), None, millis(500)),
        ("pause_in_body", Some(reply.len()), None, millis(500)),
        ("drip", Some(reply.len()), None, millis(20 * (reply.len() as u64 / 16))),
        ("drip_body", Some(reply.len()), None, millis(20 * 62)),
        ("bandwidth", Some(reply.len()), None, Duration::from_nanos(19_958_496 * 3)),
        ("slices", Some(reply.len()), None, millis(5 * 64)),
        ("garbage_then_close", None, Some(Step::Close), millis(0)),
        ("garbage_in_body", None, None, millis(0)),
        ("stray_line_ends", None, None, millis(0)),
        ("http_content_length_long", None, Some(Step::Close), millis(0)),
        ("http_content_length_short", None, Some(Step::Close), millis(0)),
        ("http_content_length_twice", None, Some(Step::Close), millis(0)),
        ("http_content_length_text", None, Some(Step::Close), millis(0)),
        ("http_chunk_size_broken", None, Some(Step::Close), millis(0)),
        ("http_chunk_cut", None, Some(Step::Close), millis(0)),
        ("http_chunks_unfinished", None, Some(Step::Silence), millis(0)),
        ("http_status_line_broken", None, Some(Step::Close), millis(0)),
        ("http_early_hints", None, None, millis(0)),
        ("http_extra_reply", None, None, millis(0)),
        ("http_head_then_body", Some(reply.len()), None, millis(500)),
    ];
    let played = |name: &str| {
        let effect = find(name).unwrap();
        let (args, mut draw) = (args(effect, false), Draw::new(1, "r", 2, 3));
        match effect.apply {
            Apply::Deliver(script) => play(&script(&args, &mut draw), &reply),
            Apply::Lose(script) | Apply::Accept(script) => play(&script(&args, &mut draw), b""),
            _ => panic!("{name} is no delivery"),
        }
    };
    for (name, length, end, time) in table {
        let Played { seen, ended, took, .. } = played(name);
        assert_eq!((ended, took), (*end, *time), "{name}");
        if let Some(length) = length {
            assert_eq!(seen, reply[..*length], "{name}");
        } else {
            assert_ne!(seen, reply, "{name}");
        }
    }
    let raw: &[(&str, &str)] = &[
        ("not_http", "SSH-2.0"),
        ("stray_line_ends", "\r\nHTTP/1.1 200"),
        ("http_content_length_long", "HTTP/1.1 200 OK\r\ncontent-length: 1073741824\r\n\r\nxxx"),
        ("http_content_length_short", "HTTP/1.1 200 OK\r\ncontent-length: 10\r\n\r\nxxx"),
        (
            "http_content_length_twice",
            "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\ncontent-length: 10\r\n\r\nx",
        ),
        ("http_content_length_text", "HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\nxxx"),
        ("http_chunk_size_broken", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\nzz\r\nxxx"),
        ("http_chunk_cut", "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n40000000\r\nxxx"),
        (
            "http_chunks_unfinished",
            "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n12\r\n{\"jsonrpc\":\"2.0\",\"\r\n",
        ),
        ("http_status_line_broken", "HTTP/1.1 fine\r\n"),
        ("http_early_hints", "HTTP/1.1 103 Early Hints\r\n"),
        ("http_extra_reply", "HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nxxx"),
    ];
    for (name, begins) in raw {
        assert!(text(&played(name).seen).starts_with(begins), "{name}: {}", text(&played(name).seen));
    }
    let extra = played("http_extra_reply").seen;
    let (extra_head, extra_body) =
        std::str::from_utf8(&extra[reply.len()..]).unwrap().split_once("\r\n\r\n").unwrap();
    assert!(extra_head.ends_with(&format!("content-length: {}", extra_body.len())));
    let garbage = played("garbage_in_body").seen;
    assert_eq!(garbage.len(), reply.len());
    assert!(std::str::from_utf8(&garbage).is_err());
    assert!(std::str::from_utf8(&played("garbage_then_close").seen).is_err());
    for effect in registry() {
        if matches!(effect.apply, Apply::Deliver(_) | Apply::Lose(_) | Apply::Accept(_)) {
            assert!(table.iter().any(|(name, ..)| *name == effect.name), "{} has no test", effect.name);
        }
    }
}

#[test]
fn delays_depend_on_what_they_name() {
    let delay = |name: &str, in_flight: u64, age_s: u64, key: u64| {
        let effect = find(name).unwrap();
        let Apply::Delay(delay) = effect.apply else { panic!("{name} is no delay") };
        let facts = DelayFacts { in_flight, age_ns: age_s * 1_000_000_000 };
        let delay = delay(&args(effect, false), &mut Draw::new(1, "r", key, 1), facts);
        u64::try_from(delay.as_millis()).unwrap()
    };
    assert_eq!(delay("latency", 9, 9, 1), 100);
    assert_eq!(delay("card_slow", 9, 9, 1), 3_000);
    assert_eq!([0, 1, 2, 11, 100_000].map(|n| delay("latency_per_load", n, 0, 1)), [0, 0, 10, 100, 60_000]);
    assert_eq!([0, 30, 60, 600, 90_000].map(|s| delay("degrade", 1, s, 1)), [0, 25, 50, 500, 60_000]);
    assert_eq!([0, 15, 29, 30, 90].map(|s| delay("warm_up", 1, s, 1)), [2_000, 1_000, 66, 0, 0]);
    assert_eq!([0, 4, 5].map(|s| delay("stall", 1, s, 1)), [0, 0, 0]);
    let rare = (0..10_000).filter(|key| delay("latency_two_point", 1, 0, *key) == 1_000).count();
    // Four standard deviations of a chance of a tenth in 10,000 draws are 120.
    assert!(rare.abs_diff(1_000) <= 120, "{rare}");
    let known =
        ["latency", "card_slow", "latency_per_load", "degrade", "warm_up", "stall", "latency_two_point"];
    for effect in registry().iter().filter(|effect| matches!(effect.apply, Apply::Delay(_))) {
        assert!(known.contains(&effect.name), "{} has no test", effect.name);
    }
}
