//! What recording a call costs: alone, without bodies and with bodies of usual sizes, and as part of a whole dispatch; always
//! in a journal that is full.

use std::hint::black_box;

use benches::{Bench, body, calls};
use bytes::Bytes;
use criterion::Criterion;
use dealer_sim::journal::{
    Body, Client, Delivery, DeliveryState, Exchange, FaultMark, Head, Journal, Limits, Outcome,
};
use dealer_sim::protocol::{Binding, Skill};
use jiff::Timestamp;

fn exchange<'a>(request: &'a [u8], reply: &'a [u8], faults: &'a [FaultMark<'a>]) -> Exchange<'a> {
    Exchange {
        at: Timestamp::UNIX_EPOCH,
        traffic_ns: 1,
        dealer: "metro-auto-group",
        client: Client::Origin {
            address: std::net::Ipv4Addr::LOCALHOST.into(),
            program: b"python-httpx/0.27.2",
        },
        connection: 7,
        ordinal: 3,
        head: Head::default(),
        binding: Some(Binding::A2a),
        skill: Some(Skill::InventorySearch),
        method: "SendMessage",
        conversation: "ctx_01HZ9F4M7C0X3K5RN8B3WJTW2P",
        message_id: "0f6c9d0e-6f0b-4a55-9a53-6f5c3f0b9b11",
        key: Some(0x0123_4567_89ab_cdef),
        attempt: 1,
        request: Body::whole(request),
        outcome: Outcome::Ok,
        http_status: 200,
        reply: Body::whole(reply),
        faults,
        delivered: Delivery { bytes: reply.len() as u64, state: DeliveryState::Complete, took_ns: 40_000 },
    }
}

fn record(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("journal/record");
    let small = vec![b'a'; 700];
    let large = vec![b'b'; 8 << 10];
    let mark = FaultMark {
        trigger: "throttle",
        effect: "rate_limited(retry_after=2s)",
        repro: "seed=42;plan=0123456789abcdef;rule=throttle;key=0123456789abcdef;attempt=1",
    };
    let usual = Limits::default();
    let whole = Limits { reply_bytes: large.len(), ..usual };
    let (none, small, large) = (&b""[..], &small[..], &large[..]);
    let (unharmed, faulted) = (&[][..], &[mark][..]);
    let cases = [
        ("no bodies", usual, none, none, unharmed),
        ("no bodies, one fault", usual, none, none, faulted),
        ("700 B asked", usual, small, none, unharmed),
        ("700 B asked, 700 B said", usual, small, small, unharmed),
        ("700 B asked, 8 KiB said", usual, small, large, unharmed),
        ("700 B asked, 8 KiB said and kept whole", whole, small, large, unharmed),
    ];
    for (name, limits, request, reply, faults) in cases {
        let journal = Journal::new(limits, 2);
        let shard = journal.shard(0);
        let exchange = exchange(request, reply, faults);
        // Full before it is measured: every record then drops one.
        for _ in 0..50_000 {
            shard.record(&exchange);
        }
        group.bench_function(name, |run| run.iter(|| shard.record(black_box(&exchange))));
    }
    group.finish();
}

fn dispatched(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("journal/dispatch");
    let vin = Bench::new(500).expect("stock").vin();
    for (skill, payload) in calls(&vin) {
        let body = Bytes::from(body(skill, &payload));
        for (name, with_journal) in [("without", false), ("with", true)] {
            let bench = Bench::new(500).expect("stock");
            let mut bench = if with_journal { bench.with_journal() } else { bench };
            for _ in 0..20_000 {
                bench.serve(&body);
            }
            group.bench_function(format!("{}/{name}", skill.id()), |run| {
                run.iter(|| bench.serve(&body).len());
            });
        }
    }
    group.finish();
}

criterion::criterion_group!(benches, record, dispatched);
criterion::criterion_main!(benches);
