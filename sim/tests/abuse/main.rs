//! Attacks on the dealer: what the attacker sees, what an honest client sees meanwhile, and how much memory it costs. The table is
//! printed (`-- --nocapture`); `measured` (ignored, in `.ci/long`) adds times, which want an idle machine.

#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

mod bodies;
mod control;
mod frames;
mod heads;
mod honest;
mod target;

use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use honest::Honest;
use target::Target;

/// One attack: its name, what it does and returns of what it saw, and what it is to see.
pub(crate) struct Attack(&'static str, fn(&Target) -> String, &'static str);

/// No attack, repeated or not, may take longer than this.
const BOUND: Duration = Duration::from_secs(12);
/// Peak of the server's resident memory.
const MOST_MEMORY: u64 = 256 << 20;

fn all() -> Vec<&'static Attack> {
    [heads::ATTACKS, bodies::ATTACKS, frames::ATTACKS, control::ATTACKS].into_iter().flatten().collect()
}

/// Carries an attack out and holds it to what it is to see.
fn carry_out(attack: &Attack, target: &Target) -> String {
    let begun = Instant::now();
    let mut seen = (attack.1)(target);
    // Large replies to other attackers may be waiting to be read: then a dealer says so, and takes the request a second later.
    while seen == "503" && attack.2 != "503" && begun.elapsed() < BOUND {
        std::thread::sleep(Duration::from_secs(1));
        seen = (attack.1)(target);
    }
    let took = begun.elapsed();
    assert!(took < BOUND, "{}: {took:?}", attack.0);
    assert_eq!(seen, attack.2, "{}", attack.0);
    seen
}

#[test]
fn attackers_see_a_refusal_and_honest_clients_nothing() {
    let target = Target::start(&[], 60);
    let honest = Honest::start(&target, Duration::from_millis(5), None);
    let attacks = all();
    assert!(attacks.len() >= 40, "{}", attacks.len());
    let next = AtomicUsize::new(0);
    let begun = Instant::now();
    let failed: Vec<String> = std::thread::scope(|scope| {
        let attackers: Vec<_> = (0..4)
            .map(|_| {
                scope.spawn(|| {
                    let mut failed = Vec::new();
                    while let Some(attack) = attacks.get(next.fetch_add(1, Ordering::Relaxed)) {
                        let tried = std::panic::catch_unwind(|| carry_out(attack, &target));
                        failed.extend(tried.is_err().then(|| attack.0.to_owned()));
                    }
                    failed
                })
            })
            .collect();
        attackers.into_iter().flat_map(|attacker| attacker.join().unwrap()).collect()
    });
    let seen = honest.stop();
    let memory = target.peak_memory();
    println!("{:<44} the attacker sees", "attack");
    for Attack(name, _, sees) in &attacks {
        println!("{name:<44} {sees}");
    }
    println!(
        "{} attacks in {:?}; honest: {} requests, {} failed, p99 {:?}; peak memory {} MiB",
        attacks.len(),
        begun.elapsed(),
        seen.times.len(),
        seen.failures.len(),
        seen.quantile(0.99),
        memory >> 20
    );
    assert!(failed.is_empty(), "not as the table says, each as told above: {failed:?}");
    assert!(seen.times.len() > 100, "an honest client got through {} times", seen.times.len());
    assert!(seen.failures.is_empty(), "honest clients failed: {:?}", seen.failures);
    assert!(memory < MOST_MEMORY, "{} MiB", memory >> 20);
    let log = target.log();
    assert!(!log.contains("panicked"), "{log}");
}

/// Each attack over and over for some seconds on the other core, 500 vehicles, ten thousand idle connections among them.
#[test]
#[ignore = "wants an idle machine of two cores: .ci/long"]
fn measured() {
    const TIME: Duration = Duration::from_secs(4);
    rlimit::increase_nofile_limit(1 << 20).unwrap();
    target::pin(&[0]);
    let target = Target::start(&["--threads", "1"], 500);
    let pause = Duration::from_millis(4);
    let quiet_of = || {
        let honest = Honest::start(&target, pause, Some(0));
        std::thread::sleep(TIME);
        honest.stop()
    };
    let quiet = quiet_of();
    let base = quiet.quantile(0.99);
    println!("quiet: {} requests, p50 {:?}, p99 {base:?}", quiet.times.len(), quiet.quantile(0.5));
    println!(
        "{:<44} {:>9} {:>7} {:>9} {:>7} {:>5}  sees",
        "attack", "a second", "failed", "p99", "x quiet", "MiB"
    );
    let mut wrong = Vec::new();
    for attack in all() {
        let honest = Honest::start(&target, pause, Some(0));
        let (times, took) = std::thread::scope(|scope| {
            let attacker = scope.spawn(|| {
                target::pin(&[1]);
                let begun = Instant::now();
                let mut times = 0;
                while begun.elapsed() < TIME {
                    carry_out(attack, &target);
                    times += 1;
                    // A stated rate: at most a hundred a second.
                    std::thread::sleep(Duration::from_millis(10));
                }
                (times, begun.elapsed())
            });
            attacker.join().unwrap()
        });
        let seen = honest.stop();
        let (p99, memory) = (seen.quantile(0.99), target.peak_memory());
        let ratio = p99.as_secs_f64() / base.as_secs_f64();
        println!(
            "{:<44} {:>9.1} {:>7} {:>9.1?} {ratio:>7.2} {:>5}  {}",
            attack.0,
            f64::from(times) / took.as_secs_f64(),
            seen.failures.len(),
            p99,
            memory >> 20,
            attack.2
        );
        if !seen.failures.is_empty() || ratio > 2.0 || memory >= MOST_MEMORY {
            wrong.push(attack.0);
        }
    }
    assert!(!target.log().contains("panicked"));
    assert!(wrong.is_empty(), "honest clients were hurt, or memory grew: {wrong:?}");
}
