//! What a large stock costs: time to make it, memory, and the time of a few searches. Run by hand, since the figures mean
//! nothing in a debug build:
//!
//! `cargo test --release -p dealer-sim --test inventory_measure -- --ignored --nocapture`

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use dealer_sim::dealer::lot::Lot;
use dealer_sim::inventory::{
    Column, FacetKeys, Inventory, Number, Profile, Query, Scratch, SortField, SortOrder, Spec,
};
use jiff::civil::Date;

const DAY: Date = Date::constant(2026, 1, 1);

#[expect(clippy::disallowed_methods, reason = "a measurement reads the clock")]
fn now() -> Instant {
    Instant::now()
}

/// The median time of a call.
fn median(runs: usize, mut call: impl FnMut()) -> Duration {
    let mut times: Vec<Duration> = (0..runs)
        .map(|_| {
            let start = now();
            call();
            start.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[runs / 2]
}

/// A figure of this process in kB, as Linux tells it.
fn memory(field: &str) -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap_or("0");
    line.trim().trim_end_matches(" kB").parse().unwrap_or(0)
}

type Fill = fn(&Inventory, &mut Query);

const QUERIES: [(&str, Fill); 13] = [
    ("no filter", |_, _| {}),
    ("make", |inventory, query| query.any_of(inventory, Column::Make, "toyota")),
    ("make, years, price<=, by price", |inventory, query| {
        query.any_of(inventory, Column::Make, "Toyota");
        query.at_least(Number::Year, 2020);
        query.at_most(Number::Year, 2023);
        query.at_most(Number::Price, 35_000);
        query.sort(SortField::Price, SortOrder::Ascending);
    }),
    ("model, body, years, price<=, by price", |inventory, query| {
        query.any_of(inventory, Column::Model, "CR-V");
        query.any_of(inventory, Column::Body, "suv");
        query.at_least(Number::Year, 2020);
        query.at_most(Number::Price, 35_000);
        query.sort(SortField::Price, SortOrder::Ascending);
    }),
    ("used, price<=, by price", |inventory, query| {
        query.any_of(inventory, Column::Condition, "used");
        query.at_most(Number::Price, 30_000);
        query.sort(SortField::Price, SortOrder::Ascending);
    }),
    ("no filter, by price desc", |_, query| query.sort(SortField::Price, SortOrder::Descending)),
    ("no filter, by stock", |_, query| query.sort(SortField::Stock, SortOrder::Ascending)),
    ("no filter, by make", |_, query| query.sort(SortField::Make, SortOrder::Ascending)),
    ("no filter, by updated_at desc", |_, query| query.sort(SortField::UpdatedAt, SortOrder::Descending)),
    ("text: toyota hybrid suv", |inventory, query| query.text(inventory, "toyota hybrid suv")),
    ("text: a e", |inventory, query| query.text(inventory, "a e")),
    ("seven makes, electric range", |inventory, query| {
        for make in ["Ford", "Kia", "Nissan", "Tesla", "Toyota", "Volvo", "Hyundai"] {
            query.any_of(inventory, Column::Make, make);
        }
        query.at_least(Number::ElectricRange, 200);
        query.sort(SortField::Mileage, SortOrder::Ascending);
    }),
    ("no filter, by price, skip half", |inventory, query| {
        query.sort(SortField::Price, SortOrder::Ascending);
        query.page(u64::from(inventory.len()) / 2, 20);
    }),
];

#[test]
#[ignore = "a measurement, not a test"]
fn measure() {
    let profile = Profile::built_in().unwrap();
    for vehicles in [500, 100_000, 1_000_000] {
        let before = memory("VmRSS:");
        let start = now();
        let inventory = Inventory::generate(&Spec { vehicles, ..Spec::new(42, DAY) }, &profile).unwrap();
        let ready = start.elapsed();
        println!(
            "\n{vehicles} vehicles: ready in {ready:.1?}, {:.1} bytes each, RSS +{} MB, peak {} MB",
            inventory.heap_bytes() as f64 / f64::from(vehicles),
            memory("VmRSS:").saturating_sub(before) / 1024,
            memory("VmHWM:") / 1024,
        );
        let (mut query, mut scratch, mut out) = (Query::new(), Scratch::default(), Vec::new());
        for (name, fill) in QUERIES {
            let mut total = 0;
            let search = median(51, || {
                query.clear();
                fill(&inventory, &mut query);
                let page = inventory.search(&query, &mut scratch);
                total = page.total;
                out.clear();
                page.rows.iter().for_each(|&row| inventory.listing(row, &mut out));
            });
            let bytes = out.len();
            let facets = median(11, || {
                out.clear();
                inventory.facets(&query, FacetKeys::ALL, &mut scratch, &mut out);
            });
            println!(
                "{name:40} {total:8} matches  search {search:10.1?} ({bytes} bytes)  facets {facets:10.1?}"
            );
        }
        let vins: Vec<String> = (0..1000u32)
            .filter_map(|i| {
                inventory.vin((u64::from(i) * 7919 % u64::from(vehicles)) as u32).map(|vin| vin.into_owned())
            })
            .collect();
        let find = median(11, || {
            for vin in &vins {
                std::hint::black_box(inventory.find(Some(vin), None, None));
            }
        });
        println!("find by VIN: {:.1?} each", find / vins.len() as u32);
    }
}

/// What a change of a large stock costs, and what a buyer who searches meanwhile feels of it.
#[test]
#[ignore = "a measurement, not a test"]
fn measure_changes() {
    let profile = Profile::built_in().unwrap();
    let noon = |days: i64| {
        let start: jiff::Timestamp = "2026-01-01T12:00:00Z".parse().unwrap();
        start + jiff::SignedDuration::from_hours(24 * days)
    };
    for vehicles in [500, 1_000_000] {
        let stock = Inventory::generate(&Spec { vehicles, ..Spec::new(42, DAY) }, &profile).unwrap();
        let vins: Vec<String> = (100..150u32).filter_map(|row| Some(stock.vin(row)?.into_owned())).collect();
        let lot = Lot::new(Arc::new(stock), DAY, 42, "own".to_owned());
        println!("\n{vehicles} vehicles, RSS {} MB", memory("VmRSS:") / 1024);
        let mut turn = 0;
        let patch = median(51, || {
            turn += 1;
            lot.patch(&vins[turn % vins.len()], &format!("{{\"price\":{turn}}}"), noon(0)).unwrap();
        });
        println!("patch {patch:.1?}");
        let add = median(7, || {
            turn += 1;
            lot.add(&format!("{{\"stock\":\"own-{turn}\",\"status\":\"available\"}}"), noon(0)).unwrap();
        });
        println!("add {add:.1?}");
        for days in [1, 2, 60] {
            let start = now();
            lot.catch_up(&profile, noon(days)).unwrap();
            println!("to day {days}: {:.1?}, RSS {} MB", start.elapsed(), memory("VmRSS:") / 1024);
        }
        // A buyer looks up one vehicle after the other while prices change and days pass.
        let done = AtomicBool::new(false);
        let waits = std::thread::scope(|scope| {
            let buyer = scope.spawn(|| {
                let mut waits = Vec::new();
                let mut out = Vec::new();
                while !done.load(Ordering::Relaxed) {
                    let start = now();
                    let stock = lot.stock();
                    for vin in vins.iter().take(20) {
                        std::hint::black_box(stock.find(Some(vin), None, None));
                    }
                    out.clear();
                    stock.detail(7, &mut out);
                    waits.push(start.elapsed());
                }
                waits.sort_unstable();
                waits
            });
            for round in 0..200 {
                lot.patch(&vins[round % vins.len()], "{\"price\":1}", noon(60)).unwrap();
            }
            for days in [61, 62] {
                lot.catch_up(&profile, noon(days)).unwrap();
            }
            done.store(true, Ordering::Relaxed);
            buyer.join().unwrap()
        });
        let at = |share: usize| waits[(waits.len() * share / 10_000).min(waits.len() - 1)];
        println!(
            "20 look-ups and a detail meanwhile: {} of them, p50 {:.1?}, p99.99 {:.1?}, max {:.1?}",
            waits.len(),
            at(5_000),
            at(9_999),
            at(10_000)
        );
    }
}
