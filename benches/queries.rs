//! The fixed set of searches and facets of `queries.json`, through the whole dispatch path.

use benches::{Bench, SIZES, body, queries};
use criterion::Criterion;

fn run_queries(criterion: &mut Criterion) {
    let queries = queries().expect("queries.json");
    for size in SIZES {
        let mut group = criterion.benchmark_group(format!("queries/{size}"));
        let mut bench = Bench::new(size).expect("stock");
        for query in &queries {
            let body = body(query.skill().expect("a known type"), &query.payload);
            let reply = String::from_utf8_lossy(bench.call(&body)).into_owned();
            assert!(reply.contains("\"result\""), "{}: {reply}", query.name);
            group.bench_function(&query.name, |run| run.iter(|| bench.call(&body).len()));
        }
        group.finish();
    }
}

criterion::criterion_group!(benches, run_queries);
criterion::criterion_main!(benches);
