//! The pieces of the dispatch path alone: parsing, validation, and writing a reply.

use std::hint::black_box;

use benches::{Bench, body, lead, search};
use criterion::Criterion;
use dealer_sim::inventory::{Inventory, Profile, Spec};
use dealer_sim::protocol::call::{close_reply, open_reply};
use dealer_sim::protocol::json::Doc;
use dealer_sim::protocol::payload;
use dealer_sim::protocol::validate::validate;
use dealer_sim::protocol::{Contract, Skill};

fn pieces(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("parse");
    for (name, skill, payload) in
        [("search", Skill::InventorySearch, search()), ("lead", Skill::LeadSubmit, lead(1))]
    {
        let body = body(skill, &payload);
        let mut doc = Doc::default();
        group.bench_function(format!("{name}, {} bytes", body.len()), |run| {
            run.iter(|| doc.parse(black_box(&body)).map(|root| root.len()));
        });
    }
    group.finish();

    let mut group = criterion.benchmark_group("validate");
    for (name, skill, payload) in
        [("search", Skill::InventorySearch, search()), ("lead", Skill::LeadSubmit, lead(1))]
    {
        let text = payload.to_string();
        let mut doc = Doc::default();
        let value = doc.parse(text.as_bytes()).expect("valid JSON");
        let shape = payload::request(skill);
        group.bench_function(name, |run| {
            run.iter(|| validate(black_box(value), shape, &Contract::V3_0.features, "").len());
        });
    }
    group.finish();

    let mut group = criterion.benchmark_group("reply");
    let profile = Profile::built_in().expect("built-in profile");
    let day = jiff::civil::date(2026, 1, 1);
    let stock = Inventory::generate(&Spec::new(42, day), &profile).expect("stock");
    let mut out = Vec::with_capacity(1 << 16);
    group.bench_function("20 vehicles", |run| {
        run.iter(|| {
            out.clear();
            open_reply(&mut out, "\"req-1\"", "01HZ9F4M7C0X3K5RN8B3WJTW2P", "ctx_example_001");
            for row in 0..20 {
                stock.listing(row, &mut out);
                out.push(b',');
            }
            close_reply(&mut out, Skill::InventorySearch);
            black_box(out.len())
        });
    });
    group.finish();

    // The least that a call can cost: an envelope that is refused.
    let mut group = criterion.benchmark_group("refuse");
    let mut bench = Bench::new(20).expect("stock");
    group.bench_function("invalid JSON", |run| run.iter(|| bench.call(black_box(b"{")).len()));
    group.finish();
}

criterion::criterion_group!(benches, pieces);
criterion::criterion_main!(benches);
