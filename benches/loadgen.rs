//! What the load generator does beside its sockets: outcomes of replies, requests of scenarios, times, arrivals.

use std::hint::black_box;
use std::path::Path;

use benches::{Bench, body, search};
use criterion::{Criterion, Throughput};
use dealer_loadgen::arrival::{Profile, Schedule, Spacing};
use dealer_loadgen::outcome::{Expectation, classify};
use dealer_loadgen::record::Latency;
use dealer_loadgen::scenario::{Item, Step, Workload, load};
use dealer_loadgen::transport::Content;
use dealer_sim::protocol::{Binding, Contract, Skill};
use jiff::Timestamp;
use serde_json::json;

/// Arrivals of one run of the scheduler.
const ARRIVALS: u64 = 1000;

fn outcomes(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("outcome");
    let mut bench = Bench::new(500).expect("stock");
    let refused = json!({ "type": "inventory.search.request", "filters": { "year_min": "soon" } });
    let vehicle = json!({ "type": "inventory.vehicle.request", "vin": bench.vin() });
    for (name, skill, payload, wanted) in [
        ("20 vehicles", Skill::InventorySearch, search(), "ok"),
        ("one vehicle", Skill::InventoryVehicle, vehicle, "ok"),
        ("a refusal", Skill::InventorySearch, refused, "aap.SCHEMA_VALIDATION_FAILED"),
    ] {
        let reply = bench.call(&body(skill, &payload)).to_vec();
        let expected = Expectation {
            id: b"\"req-1\"",
            message_id: b"m-1",
            context_id: None,
            skill,
            contract: Contract::V3_0,
            binding: Binding::A2a,
        };
        let (outcome, _) = classify(200, Content::Json, &reply, &expected);
        assert_eq!(outcome.label(), wanted, "{}", String::from_utf8_lossy(&reply));
        group.throughput(Throughput::Bytes(reply.len() as u64));
        group.bench_function(name, |run| {
            run.iter(|| classify(200, Content::Json, black_box(&reply), &expected).0);
        });
    }
    group.finish();
}

/// The shopping scenario, and its steps of the flow that buys.
fn shopping() -> Workload {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../scenarios/shopping.yaml");
    load(&[path], &[]).expect("a shipped scenario")
}

fn requests(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("request");
    let workload = shopping();
    group.bench_function("a session begins", |run| {
        let mut ordinal = 0;
        run.iter(|| {
            ordinal += 1;
            workload.begin(42, black_box(ordinal)).flow()
        });
    });
    let now = Timestamp::constant(1_780_315_200, 0);
    let steps = workload.flows().iter().enumerate().flat_map(|(index, flow)| {
        let steps = flow.items().iter().filter_map(|item| match item {
            Item::Step(step) => Some(step),
            _ => None,
        });
        steps.map(move |step| (index, step))
    });
    let named = |name: &str| -> (usize, &Step) {
        steps.clone().find(|(_, step)| step.label() == name).expect("a step of the scenario")
    };
    for name in ["browse/search", "buy/lead"] {
        let (flow, step) = named(name);
        let mut session = (0..)
            .map(|ordinal| workload.begin(42, ordinal))
            .find(|session| session.flow() == flow)
            .expect("one");
        let mut out = Vec::with_capacity(4096);
        group.bench_function(name, |run| {
            run.iter(|| {
                out.clear();
                step.render(&mut session, black_box(now), false, &mut out);
                out.len()
            });
        });
    }
    group.finish();
}

fn times(criterion: &mut Criterion) {
    let mut latency = Latency::new();
    let mut nanos = 1;
    criterion.bench_function("histogram/record", |run| {
        run.iter(|| {
            // A walk through all magnitudes up to a minute.
            nanos = (nanos * 7 + 3) % 60_000_000_000;
            latency.record(black_box(nanos));
        });
    });
    let other = latency.clone();
    criterion.bench_function("histogram/add", |run| run.iter(|| latency.add(black_box(&other))));
}

fn arrivals(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("schedule");
    group.throughput(Throughput::Elements(ARRIVALS));
    for (name, profile, spacing) in [
        ("constant", Profile::constant(5000.0), Spacing::Even),
        ("poisson", Profile::constant(5000.0), Spacing::Poisson),
        ("sine", Profile::sine(5000.0, 0.5, 60_000_000_000), Spacing::Even),
    ] {
        let schedule = Schedule { profile, spacing, seed: 42, end: None, sessions: Some(ARRIVALS) };
        group.bench_function(name, |run| run.iter(|| schedule.iter().map(|arrival| arrival.at).max()));
    }
    group.finish();
}

criterion::criterion_group!(benches, outcomes, requests, times, arrivals);
criterion::criterion_main!(benches);
