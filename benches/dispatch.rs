//! One call through the whole dispatch path: each skill, a validation failure, a header refusal.

use benches::{Bench, SIZES, body, lead, search};
use criterion::{Criterion, Throughput};
use dealer_sim::protocol::Skill;
use serde_json::json;

/// Fails loudly when a bench would measure the wrong thing.
fn expect(reply: &[u8], part: &str) {
    let reply = String::from_utf8_lossy(reply);
    assert!(reply.contains(part), "expected {part} in {reply}");
}

fn dispatch(criterion: &mut Criterion) {
    for size in SIZES {
        let mut group = criterion.benchmark_group(format!("dispatch/{size}"));
        group.throughput(Throughput::Elements(1));
        let mut bench = Bench::new(size).expect("stock");
        let vin = bench.vin();
        let calls = [
            (
                "dealer.information",
                Skill::DealerInformation,
                json!({ "type": "dealer.information.request" }),
                "rooftops",
            ),
            (
                "inventory.facets",
                Skill::InventoryFacets,
                json!({ "type": "inventory.facets.request" }),
                "price_range",
            ),
            ("inventory.search", Skill::InventorySearch, search(), "\"vehicles\":["),
            (
                "inventory.vehicle",
                Skill::InventoryVehicle,
                json!({ "type": "inventory.vehicle.request", "vin": vin }),
                &vin,
            ),
            (
                "validation failure",
                Skill::InventorySearch,
                json!({ "type": "inventory.search.request", "filters": { "year_min": "2020", "condition": ["good"] } }),
                "SCHEMA_VALIDATION_FAILED",
            ),
        ];
        for (name, skill, payload, part) in calls {
            let body = body(skill, &payload);
            expect(bench.call(&body), part);
            group.bench_function(name, |run| run.iter(|| bench.call(&body).len()));
        }
        // Each lead is new: its body is made outside of the time measured.
        let mut n = 0;
        group.bench_function("lead.submit", |run| {
            run.iter_batched_ref(
                || {
                    n += 1;
                    body(Skill::LeadSubmit, &lead(n))
                },
                |body| bench.call(body).len(),
                criterion::BatchSize::SmallInput,
            );
        });
        let mut bench = Bench::new(20).expect("stock").with_conflicting_headers();
        let body = body(Skill::InventorySearch, &search());
        expect(bench.call(&body), "-32008");
        group.bench_function("header refusal", |run| run.iter(|| bench.call(&body).len()));
        group.finish();
    }
}

criterion::criterion_group!(benches, dispatch);
criterion::criterion_main!(benches);
