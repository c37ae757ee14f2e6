//! A mutational fuzzer on the stable toolchain. It changes good inputs at random, byte by byte and by their structure, and keeps
//! what makes a target say something that it has not said before. What it looks for: a panic, an answer that breaks the
//! target's own law, and an input that takes long.
//!
//! `cargo test -p dealer-loadgen --test fuzz` runs for twenty seconds in all; `FUZZ_SECONDS=3600` as long as is wanted, `FUZZ_TARGET=name` one
//! target alone, `FUZZ_SEED=7` with other draws. What it finds is written to `target/fuzz/`; mended, it goes to
//! `loadgen/tests/fuzz/found/<target>/`, whose files are tried first of all.

#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

mod dealer;
mod engine;
mod files;
mod mutate;

use std::time::Duration;

use engine::Target;

/// Every target, with the share of the time that it gets.
fn targets() -> Vec<Target> {
    let mut targets = dealer::targets();
    targets.extend(files::targets());
    targets
}

#[test]
fn nothing_panics_breaks_its_law_or_takes_long() {
    let number = |name: &str, usual: u64| {
        std::env::var(name).map_or(usual, |given| given.parse().unwrap_or_else(|_| panic!("{name}: {given}")))
    };
    let (seconds, seed) = (number("FUZZ_SECONDS", 20), number("FUZZ_SEED", 42));
    let wanted = std::env::var("FUZZ_TARGET").ok();
    let mut targets = targets();
    targets.retain(|target| wanted.as_ref().is_none_or(|wanted| wanted == target.name));
    assert!(!targets.is_empty(), "there is no target {wanted:?}");
    let share = Duration::from_secs(seconds) / targets.len() as u32;
    // A panic of a target is a finding, and told once.
    let usual = std::panic::take_hook();
    std::panic::set_hook(Box::new(|_| ()));
    let reports: Vec<_> = targets.into_iter().map(|target| engine::run(target, seed, share)).collect();
    std::panic::set_hook(usual);
    println!(
        "seed {seed}\n| Target | Executions | CPU seconds | Inputs kept | Longest ms | Findings |\n|---|---|---|---|---|---|"
    );
    for report in &reports {
        println!("{report}");
    }
    let (executions, cpu) = reports
        .iter()
        .fold((0, 0.0), |(n, cpu), report| (n + report.executions, cpu + report.cpu.as_secs_f64()));
    println!(
        "| all | {executions} | {cpu:.1} | | | {} |",
        reports.iter().map(|r| r.findings.len()).sum::<usize>()
    );
    let process = rustix::time::clock_gettime(rustix::time::ClockId::ProcessCPUTime).tv_sec;
    println!("the process used {process} s of CPU time, with what it takes to make inputs");
    let findings: Vec<_> = reports.into_iter().flat_map(|report| report.findings).collect();
    assert!(findings.is_empty(), "{}", findings.join("\n"));
    assert!(executions > 100, "{executions}");
}
