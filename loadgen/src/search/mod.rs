//! Searches over loads: the highest rate that meets objectives, and throughput over users. What to try next and what it all
//! means is decided by pure functions; here the runs are carried out, one after the other, against one dealer.

mod find_max;
mod text;
mod usl;

use std::path::Path;

use serde::Serialize;

use crate::cli::{FindMaxArgs, LoadArgs, RunArgs, SweepArgs};
use crate::report::RunResult;
use crate::run::{Measured, Ready, RunError};
use crate::settings::Settings;
use crate::signals::{Signal, Signals};
use crate::threshold::Threshold;
use crate::units::{self, show_rate};
use find_max::{Ending, Next, Observation, Options, Search};

/// The version of the JSON forms.
const SCHEMA: u32 = 1;
/// How often a rate is measured again whose measurement was not valid: the machine may have been busy with something else,
/// which says nothing of the dealer.
const REPEATS: usize = 2;
/// Numbers of users in one sweep.
const MAX_SWEEP: usize = 100;

/// What a run of a search came to.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Step {
    /// Sessions per second asked for; null with users.
    target_per_s: Option<f64>,
    /// Users; null with a rate.
    users: Option<u32>,
    achieved_per_s: f64,
    requests_per_s: f64,
    errors: f64,
    p50_ms: Option<f64>,
    p99_ms: Option<f64>,
    mean_ms: Option<f64>,
    /// The objectives that did not hold, and why the measurement is not valid if it is not.
    failed: Vec<String>,
}

/// What `find-max` found.
#[derive(Debug, Serialize)]
pub(crate) struct Found {
    schema: u32,
    scenario: String,
    endpoint: String,
    slo: Vec<String>,
    ending: Ending,
    interrupted: bool,
    /// The highest rate that met the objectives, in sessions per second.
    rate_per_s: Option<f64>,
    /// The lowest rate that did not, and which objectives it failed.
    failed_at_per_s: Option<f64>,
    limited_by: Vec<String>,
    steps: Vec<Step>,
}

/// What `sweep` found.
#[derive(Debug, Serialize)]
pub(crate) struct Swept {
    schema: u32,
    scenario: String,
    endpoint: String,
    interrupted: bool,
    steps: Vec<Step>,
    /// The scalability fit; null if there is none.
    fit: Option<usl::Fit>,
    /// Why there is none.
    no_fit: Option<String>,
}

/// How a search ended, for the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SearchEnding {
    Ok,
    Interrupted(Signal),
    /// Nothing met the objectives.
    NothingHolds,
    /// A run's own measurement was not valid, and decided.
    NotValid,
}

/// Finds the highest rate that meets objectives.
pub(crate) async fn find_max(args: &FindMaxArgs) -> Result<(Found, SearchEnding), RunError> {
    let (search, first) = Search::begin(read_find_max(args)?);
    let mut signals = Signals::listen().map_err(RunError::failed)?;
    let settings = step_settings(args, first, 0)?;
    let ready = Ready::prepare(&settings, &mut signals).await?;
    let mut found = Found {
        schema: SCHEMA,
        scenario: String::new(),
        endpoint: String::new(),
        slo: args.slo.clone(),
        ending: Ending::OutOfSteps,
        interrupted: false,
        rate_per_s: None,
        failed_at_per_s: None,
        limited_by: Vec::new(),
        steps: Vec::new(),
    };
    let (mut search, mut rate) = (search, first);
    let mut not_valid = Vec::new();
    let mut repeats = 0;
    let (answer, signal) = loop {
        let index = found.steps.len();
        let settings = step_settings(args, rate, index)?;
        let Measured { result, signal, written } = ready.measure(&settings, &mut signals).await?;
        written.map_err(RunError::failed)?;
        (found.scenario, found.endpoint) = (result.scenario.clone(), result.endpoint.clone());
        if let Some(signal) = signal {
            break (search.so_far(Ending::OutOfSteps), Some(signal));
        }
        result.answered().map_err(RunError::failed)?;
        let step = step_of(&result, None);
        crate::progress::tell(&format!("{}: {}", show_rate(rate), text::short(&step)));
        let seen = Observation { rate, failed: step.failed.clone() };
        found.steps.push(step);
        if !result.verdict.valid && repeats < REPEATS {
            repeats += 1;
            continue;
        }
        repeats = 0;
        if !result.verdict.valid {
            not_valid.push(rate);
        }
        match search.observe(seen) {
            Next::Measure(next) => rate = next,
            Next::Done(answer) => break (answer, None),
        }
    };
    let is_not_valid = answer.failed_at.is_some_and(|rate| not_valid.contains(&rate));
    found.ending = answer.ending;
    found.rate_per_s = answer.rate;
    found.failed_at_per_s = answer.failed_at;
    found.limited_by = answer.limited_by;
    found.interrupted = signal.is_some();
    let ending = match signal {
        Some(signal) => SearchEnding::Interrupted(signal),
        None if is_not_valid => SearchEnding::NotValid,
        None if found.rate_per_s.is_none() => SearchEnding::NothingHolds,
        None => SearchEnding::Ok,
    };
    write_json(args.run.out.as_deref(), "find-max.json", &found)?;
    Ok((found, ending))
}

fn read_find_max(args: &FindMaxArgs) -> Result<Options, RunError> {
    let mut faults = Vec::new();
    let run = &args.run;
    for (flag, is_given) in [
        ("users", run.load.users.is_some()),
        ("stages", run.load.stages.is_some()),
        ("duration", run.load.duration.is_some()),
        ("sessions", run.load.sessions.is_some()),
        ("warmup", run.load.warmup != "0s"),
        ("threshold", !run.thresholds.is_empty()),
        ("start-at", run.load.start_at.is_some()),
        ("sine", run.load.sine.is_some()),
        ("shard", run.load.shard.is_some()),
    ] {
        if is_given {
            faults.push(format!(
                "--{flag} is not for find-max: it sets the load itself, by --rate (the first one), --step-duration and \
                 --settle, and judges by --slo"
            ));
        }
    }
    for text in &args.slo {
        if let Err(fault) = Threshold::parse(text) {
            faults.push(format!("--slo {fault}"));
        }
    }
    let mut positive_rate = |flag: &str, text: &str| {
        let rate = units::rate(text).filter(|rate| *rate > 0.0);
        if rate.is_none() {
            faults.push(format!("--{flag} {text:?}: give more than nothing, as {}", units::RATE_FORM));
        }
        rate.unwrap_or(1.0)
    };
    let mut options = Options::default();
    if let Some(text) = &run.load.rate {
        options.start = positive_rate("rate", text);
    }
    options.highest = positive_rate("max-rate", &args.max_rate);
    for (flag, text) in [("step-duration", &args.step_duration), ("settle", &args.settle)] {
        if units::duration(text).is_none_or(|length| flag == "step-duration" && length.is_zero()) {
            faults.push(format!("--{flag} {text:?}: give {}", units::DURATION_FORM));
        }
    }
    if faults.is_empty() { Ok(options) } else { Err(RunError::Usage(faults)) }
}

/// The settings of the run at one rate: those of `run` with the load filled in.
fn step_settings(args: &FindMaxArgs, rate: f64, index: usize) -> Result<Settings, RunError> {
    let load = LoadArgs {
        rate: Some(format!("{rate}/s")),
        duration: Some(args.step_duration.clone()),
        warmup: args.settle.clone(),
        ..args.run.load.clone()
    };
    let run = RunArgs { load, thresholds: args.slo.clone(), ..args.run.clone() };
    read_settings(run, index, &show_rate(rate).replace("/s", ""))
}

/// Each run has a seed of its own, so that no run repeats the leads of the one before, and a folder of its own.
fn read_settings(mut run: RunArgs, index: usize, name: &str) -> Result<Settings, RunError> {
    if let Ok(seed) = run.load.seed.parse::<u64>() {
        run.load.seed = seed.wrapping_add(index as u64).to_string();
    }
    run.out = run.out.map(|out| out.join(format!("{:02}-{name}", index + 1)));
    run.quiet = true;
    Settings::read(&run, |name| std::env::var(name).ok()).map_err(RunError::Usage)
}

/// Measures throughput over users.
pub(crate) async fn sweep(args: &SweepArgs) -> Result<(Swept, SearchEnding), RunError> {
    let users = read_sweep(&args.run)?;
    let mut signals = Signals::listen().map_err(RunError::failed)?;
    let settings = |index: usize| {
        let users = users.get(index).copied().unwrap_or(1).to_string();
        let load = LoadArgs { users: Some(users.clone()), ..args.run.load.clone() };
        read_settings(RunArgs { load, ..args.run.clone() }, index, &users)
    };
    let ready = Ready::prepare(&settings(0)?, &mut signals).await?;
    let mut swept = Swept {
        schema: SCHEMA,
        scenario: String::new(),
        endpoint: String::new(),
        interrupted: false,
        steps: Vec::new(),
        fit: None,
        no_fit: None,
    };
    let mut ending = SearchEnding::Ok;
    for (index, &count) in users.iter().enumerate() {
        let Measured { result, signal, written } = ready.measure(&settings(index)?, &mut signals).await?;
        written.map_err(RunError::failed)?;
        (swept.scenario, swept.endpoint) = (result.scenario.clone(), result.endpoint.clone());
        if let Some(signal) = signal {
            (swept.interrupted, ending) = (true, SearchEnding::Interrupted(signal));
            break;
        }
        result.answered().map_err(RunError::failed)?;
        if !result.verdict.valid {
            ending = SearchEnding::NotValid;
        }
        let step = step_of(&result, Some(count));
        crate::progress::tell(&format!("{count} users: {}", text::short(&step)));
        swept.steps.push(step);
    }
    let points: Vec<(f64, f64)> =
        swept.steps.iter().filter_map(|step| Some((f64::from(step.users?), step.requests_per_s))).collect();
    match usl::fit(&points) {
        Ok(fit) => swept.fit = Some(fit),
        Err(error) => swept.no_fit = Some(error.to_string()),
    }
    write_json(args.run.out.as_deref(), "sweep.json", &swept)?;
    Ok((swept, ending))
}

fn read_sweep(run: &RunArgs) -> Result<Vec<u32>, RunError> {
    let mut faults = Vec::new();
    if run.load.start_at.is_some() {
        faults.push("--start-at is not for sweep: it makes several runs".to_owned());
    }
    for (flag, is_given) in [("rate", run.load.rate.is_some()), ("stages", run.load.stages.is_some())] {
        if is_given {
            faults.push(format!("--{flag} is not for sweep: it has users, who do as much as they can"));
        }
    }
    let text = run.load.users.as_deref().unwrap_or("");
    let users: Option<Vec<u32>> =
        text.split(',').map(|count| count.trim().parse().ok().filter(|count| *count > 0)).collect();
    match users {
        Some(users) if users.len() <= MAX_SWEEP && faults.is_empty() => return Ok(users),
        Some(users) if users.len() > MAX_SWEEP => {
            faults.push(format!("--users: give at most {MAX_SWEEP} numbers"));
        }
        Some(_) => {}
        None => faults.push(format!("--users {text:?}: give numbers of users such as 1,2,4,8,16")),
    }
    Err(RunError::Usage(faults))
}

fn step_of(result: &RunResult, users: Option<u32>) -> Step {
    let tally = &result.tally;
    let response = tally.response();
    let millis = |q| response.quantile(q).map(|nanos| nanos as f64 / 1e6);
    let finished = tally.finished();
    let rounded = |value: f64| (value * 1e6).round() / 1e6;
    let failed = result.thresholds.iter().filter(|judged| !judged.pass);
    let mut failed: Vec<String> =
        failed.map(|judged| format!("{} ({})", judged.text, judged.shown())).collect();
    if !result.verdict.valid {
        failed.push(format!("no valid measurement: {}", result.verdict.reasons.join("; ")));
    }
    Step {
        target_per_s: result.target_rate.map(rounded),
        users,
        achieved_per_s: rounded(result.achieved_rate),
        requests_per_s: rounded(result.requests_rate()),
        errors: rounded(if finished == 0 { 0.0 } else { tally.errors() as f64 / finished as f64 }),
        p50_ms: millis(0.5),
        p99_ms: millis(0.99),
        mean_ms: response.mean().map(|nanos| rounded(nanos / 1e6)),
        failed,
    }
}

fn write_json(out: Option<&Path>, name: &str, value: &impl Serialize) -> Result<(), RunError> {
    let Some(out) = out else { return Ok(()) };
    let path = out.join(name);
    let fault = |error: &dyn std::fmt::Display| {
        RunError::failed(format!("{} cannot be written: {error}", path.display()))
    };
    let mut text = serde_json::to_vec_pretty(value).map_err(|error| fault(&error))?;
    text.push(b'\n');
    std::fs::create_dir_all(out).and_then(|()| std::fs::write(&path, text)).map_err(|error| fault(&error))
}

pub(crate) use text::{write_found, write_swept};
