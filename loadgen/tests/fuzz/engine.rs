//! Runs a target over inputs: which are tried, what is kept, what is a finding.

use std::collections::HashSet;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::time::{Duration, Instant};

use dealer_sim::stable::stable_hash;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use rustix::time::{ClockId, clock_gettime};

use super::mutate::{Form, mutate};

/// CPU time that no input may take; the inputs have 64 KiB at most.
const LONGEST: Duration = Duration::from_secs(2);
/// Bytes of an input.
pub(crate) const MOST_BYTES: usize = 64 << 10;
/// Inputs kept; then the oldest one that was no seed goes.
const MOST_KEPT: usize = 4096;
/// Findings of a target, after which it is left alone.
const ENOUGH: usize = 3;

/// What an input came to: what a target says of it, or what law it breaks.
pub(crate) type Said = Result<String, String>;
/// Takes an input.
type Run = Box<dyn FnMut(&[u8]) -> Said>;

/// Something that takes bytes from outside.
pub(crate) struct Target {
    pub(crate) name: &'static str,
    pub(crate) form: Form,
    pub(crate) seeds: Vec<Vec<u8>>,
    pub(crate) run: Run,
}

pub(crate) struct Report {
    name: &'static str,
    pub(crate) executions: u64,
    pub(crate) cpu: Duration,
    kept: usize,
    longest: Duration,
    pub(crate) findings: Vec<String>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { name, executions, cpu, kept, longest, findings } = self;
        let (cpu, longest) = (cpu.as_secs_f64(), longest.as_secs_f64() * 1e3);
        write!(f, "| {name} | {executions} | {cpu:.1} | {kept} | {longest:.1} | {} |", findings.len())
    }
}

fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::new(time.tv_sec as u64, time.tv_nsec as u32)
}

/// What is new is known by its words: numbers and what stands in quotes differ without meaning much.
fn shape(said: &str) -> u64 {
    let mut words = String::new();
    let mut is_quoted = false;
    for c in said.chars().take(4000) {
        if matches!(c, '"' | '`') {
            is_quoted = !is_quoted;
        } else if !is_quoted && !c.is_ascii_digit() {
            words.push(c);
        }
    }
    stable_hash(1, words.as_bytes())
}

/// Inputs that were findings once.
fn found_before(name: &str) -> Vec<Vec<u8>> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fuzz/found").join(name);
    let Ok(files) = std::fs::read_dir(folder) else { return Vec::new() };
    let mut files: Vec<_> = files.map(|file| file.unwrap().path()).collect();
    files.sort();
    files.into_iter().map(|file| std::fs::read(file).unwrap()).collect()
}

fn write_down(name: &str, input: &[u8]) -> PathBuf {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../target/fuzz").join(name);
    std::fs::create_dir_all(&folder).unwrap();
    let file = folder.join(format!("{:016x}", stable_hash(2, input)));
    std::fs::write(&file, input).unwrap();
    file
}

/// Runs a target for a time.
pub(crate) fn run(mut target: Target, seed: u64, time: Duration) -> Report {
    let mut random = ChaCha8Rng::seed_from_u64(stable_hash(seed, target.name.as_bytes()));
    let begun = Instant::now();
    let mut seen = HashSet::new();
    let mut report = Report {
        name: target.name,
        executions: 0,
        cpu: Duration::ZERO,
        kept: 0,
        longest: Duration::ZERO,
        findings: Vec::new(),
    };
    let mut kept: Vec<Vec<u8>> = Vec::new();
    let mut first: Vec<Vec<u8>> = found_before(target.name);
    first.append(&mut target.seeds);
    let seeds = first.len();
    assert!(seeds > 0, "{}: nothing to begin with", target.name);
    first.reverse();
    loop {
        let input = match first.pop() {
            Some(input) => input,
            None if begun.elapsed() >= time || report.findings.len() >= ENOUGH => break,
            None => {
                // New ones are looked at more often than old ones.
                let newest = random.random_ratio(1, 2) && kept.len() > seeds;
                let from = if newest { kept.len() - (kept.len() - seeds).min(32) } else { 0 };
                let one = random.random_range(from..kept.len());
                let other = random.random_range(0..kept.len());
                mutate(&kept[one], &kept[other], target.form, &mut random)
            }
        };
        let before = cpu_time();
        let said = catch_unwind(AssertUnwindSafe(|| (target.run)(&input)));
        let took = cpu_time().saturating_sub(before);
        report.executions += 1;
        report.cpu += took;
        report.longest = report.longest.max(took);
        let finding = match &said {
            Err(panic) => {
                let text = panic.downcast_ref::<String>().map(String::as_str);
                Some(format!("panicked: {}", text.or(panic.downcast_ref().copied()).unwrap_or("?")))
            }
            Ok(Err(law)) => Some(law.clone()),
            Ok(Ok(_)) if took > LONGEST => Some(format!("took {took:?} of CPU time")),
            Ok(Ok(_)) => None,
        };
        if let Some(finding) = finding {
            let file = write_down(target.name, &input);
            let quoted: String = String::from_utf8_lossy(&input).chars().take(300).collect();
            report.findings.push(format!(
                "{} (seed {seed}, input in {}): {finding}\n  {quoted:?}",
                target.name,
                file.display()
            ));
            continue;
        }
        let is_new = seen.insert(shape(said.as_ref().unwrap().as_ref().unwrap()));
        if is_new || report.executions <= seeds as u64 {
            if kept.len() >= MOST_KEPT {
                kept.remove(seeds);
            }
            kept.push(input);
        }
    }
    report.kept = kept.len();
    report
}
