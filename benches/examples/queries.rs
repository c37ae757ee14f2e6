//! The fixed set of searches and facets of `queries.json` over a large stock, through the whole dispatch path:
//! `queries VEHICLES [LIMITS]`.
//!
//! Prints what the stock costs and the median time of each query, also in units of a plain pass over one column of the
//! stock's length, which is measured in between: such a ratio stays where it is when the machine is slower. With a file of limits
//! (`RATIO NAME` in each line) it fails when a ratio is above its limit; `LIMITS --set` writes the file: two and a half times
//! what was measured, since caches differ between machines.

use std::fmt::Write as _;
use std::hint::black_box;
use std::time::{Duration, Instant};

use benches::{Bench, body, queries};

const RUNS: usize = 31;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let (vehicles, limits, set) = match arguments[..] {
        [vehicles] => (vehicles, None, false),
        [vehicles, limits] => (vehicles, Some(limits), false),
        [vehicles, limits, "--set"] => (vehicles, Some(limits), true),
        _ => return Err("usage: queries VEHICLES [LIMITS [--set]]".into()),
    };
    let vehicles: u32 = vehicles.parse()?;
    let known = match limits {
        Some(file) if !set => std::fs::read_to_string(file)?,
        _ => String::new(),
    };
    let begun = now();
    let mut bench = Bench::new(vehicles)?;
    let ready = begun.elapsed();
    let bytes = resident_bytes()? as f64 / f64::from(vehicles);
    println!(
        "{vehicles} vehicles: ready in {:.2} s, {bytes:.0} bytes of the process each",
        ready.as_secs_f64()
    );
    // As many numbers as a column has.
    let column: Vec<u32> = (0..vehicles).collect();
    let (mut found, mut above) = (String::new(), 0);
    for query in queries()? {
        let body = body(query.skill().ok_or("a query of an unknown type")?, &query.payload);
        let reply = String::from_utf8_lossy(bench.call(&body)).into_owned();
        if !reply.contains("\"result\"") {
            return Err(format!("{}: {reply}", query.name).into());
        }
        let pairs = (0..RUNS).map(|_| {
            let one = timed(|| _ = black_box(bench.call(black_box(&body)).len()));
            (one, timed(|| _ = black_box(black_box(&column).iter().fold(0u32, |sum, it| sum ^ it))))
        });
        let (mut times, mut passes): (Vec<_>, Vec<_>) = pairs.unzip();
        times.sort_unstable();
        passes.sort_unstable();
        let (time, pass) = (times[RUNS / 2], passes[RUNS / 2]);
        let ratio = time.as_secs_f64() / pass.as_secs_f64();
        let limit = known.lines().find_map(|line| {
            let (limit, name) = line.split_once(' ')?;
            (name == query.name).then(|| limit.parse::<f64>().ok())?
        });
        let mark = match limit {
            Some(limit) if ratio > limit => format!("  ABOVE its limit of {limit}"),
            None if limits.is_some() && !set => "  has NO LIMIT".to_owned(),
            _ => String::new(),
        };
        above += usize::from(!mark.is_empty());
        println!("{:>10.1} us {ratio:>8.2} passes  {}{mark}", time.as_secs_f64() * 1e6, query.name);
        writeln!(found, "{:.2} {}", (ratio * 2.5).max(0.5), query.name)?;
    }
    if set && let Some(file) = limits {
        std::fs::write(file, found)?;
    }
    match above {
        0 => Ok(()),
        _ => Err("a query takes longer than its limit: find out why, or set the limits anew".into()),
    }
}

/// What the process has in memory (Linux).
fn resident_bytes() -> Result<u64, Box<dyn std::error::Error>> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<u64>()? * 1024)
}

fn timed(call: impl FnOnce()) -> Duration {
    let begun = now();
    call();
    begun.elapsed()
}

#[expect(clippy::disallowed_methods, reason = "a measurement")]
fn now() -> Instant {
    Instant::now()
}
