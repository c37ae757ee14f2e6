//! The flags of the load, read.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use dealer_sim::document::source::read_bounded;
use dealer_sim::protocol::Binding;
use jiff::Timestamp;

use super::Reader;
use crate::arrival::{Profile, Schedule, Spacing, Stage};
use crate::cli::LoadArgs;
use crate::load::{Arrivals, Limits, Load, MAX_SHARDS, OnFull, Shard, Window};
use crate::scenario::Workload;
use crate::units::{self, nanos, show_duration, show_rate};

const DEFAULT_RATE: f64 = 50.0;
const DEFAULT_DURATION: Duration = Duration::from_secs(15);
const DEFAULT_CONNECTIONS: usize = 10_000;
/// Bytes of a file of times.
const MAX_TRACE_BYTES: u64 = 64 << 20;
/// The most sessions of a burst.
const MAX_BURST: u32 = 1_000_000;
/// What is due within so long may go together at most: beyond it a lag is a reason against a run.
const MAX_SLOT: Duration = Duration::from_millis(10);
/// A start lies no further ahead.
const MAX_AHEAD: Duration = Duration::from_secs(7 * 24 * 3600);

/// The load that was asked for.
#[derive(Debug, Clone)]
pub(crate) struct Asked {
    pub(crate) load: Load,
    /// The binding to speak through.
    pub(crate) binding: Binding,
    /// In the words of its flags.
    pub(crate) text: String,
    /// When to start; at once unless given.
    pub(crate) start: Option<StartAt>,
    /// Whether no flag says when sessions arrive, so that a trace of the scenario does.
    is_free: bool,
    /// How much faster a trace is replayed.
    speed: f64,
    duration: Option<Duration>,
}

/// When a run starts.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum StartAt {
    /// At this time.
    At(Timestamp),
    /// After so long.
    In(Duration),
}

impl Asked {
    /// Fits the load to what the scenario has: its own arrivals, if no flag says others, and no more sessions than there
    /// are rows for.
    pub(crate) fn fit(&mut self, workload: &Workload) {
        if let Some(times) = workload.arrivals().filter(|_| self.is_free) {
            let window = &mut self.load.window;
            window.to = self.duration.map(|duration| window.from + nanos(duration));
            self.text = format!("the {} sessions of the scenario's trace", times.len());
            self.text.push_str(&speed_text(self.speed));
            if let Some(duration) = self.duration {
                self.text.push_str(&format!(" for {}", show_duration(duration)));
            }
            self.load.arrivals = Arrivals::Open(Schedule {
                profile: Profile::trace(at_speed(&times, self.speed)),
                spacing: Spacing::Even,
                seed: self.load.seed,
                end: window.to,
                sessions: self.load.sessions,
            });
            self.text.push_str(&self.load.shard.words());
        }
        let Some(limit) = workload.session_limit() else { return };
        let is_told =
            matches!(&self.load.arrivals, Arrivals::Open(schedule) if schedule.profile.listed().is_some());
        if self.load.sessions.is_none_or(|sessions| sessions > limit) && !is_told {
            self.text.push_str(&format!(", {limit} sessions (no more rows)"));
        }
        let sessions = self.load.sessions.map_or(limit, |sessions| sessions.min(limit));
        self.load.sessions = Some(sessions);
        if let Arrivals::Open(schedule) = &mut self.load.arrivals {
            schedule.sessions = Some(sessions);
        }
    }
}

/// When sessions arrive, as `--arrivals` says it.
enum Kind {
    Spaced(Spacing),
    Trace(Arc<[u64]>),
}

pub(super) fn read(args: &LoadArgs, connections: Option<&str>, seed: u64, reader: &mut Reader) -> Asked {
    let kinds = [("rate", &args.rate), ("users", &args.users), ("stages", &args.stages)];
    let given: Vec<String> =
        kinds.iter().filter(|(_, value)| value.is_some()).map(|(flag, _)| format!("--{flag}")).collect();
    if given.len() > 1 {
        reader.fault(format!("{} are different kinds of load: give one of them", given.join(" and ")));
    }
    let warmup = reader.duration("warmup", &args.warmup);
    let sessions = args.sessions.as_deref().map(|text| reader.count("sessions", text));
    let duration = args.duration.as_deref().map(|text| reader.positive_duration("duration", text));
    let kind = args.arrivals.as_deref().map(|text| read_arrivals(text, reader));
    if args.users.is_some() && args.arrivals.is_some() {
        reader.fault("--arrivals is about sessions that arrive on a schedule; --users has none");
    }
    let is_trace = matches!(kind, Some(Kind::Trace(_)));
    if is_trace && !given.is_empty() {
        reader.fault(format!("a trace says when each session arrives: leave {} out", given.join(" and ")));
    }
    if args.stages.is_some() && duration.is_some() {
        reader.fault("--duration and --stages both say how long: leave --duration out");
    }
    let timed = match (&args.stages, duration, sessions) {
        (Some(_), _, _) | (None, None, Some(_)) => None,
        (None, None, None) if is_trace => None,
        (None, duration, _) => Some(duration.unwrap_or(DEFAULT_DURATION)),
    };
    let speed = reader
        .value("trace-speed", &args.trace_speed, "a factor above 0 such as 2x or 0.5x", units::factor)
        .filter(|speed| *speed > 0.0)
        .unwrap_or_else(|| {
            if units::factor(&args.trace_speed) == Some(0.0) {
                reader.fault("--trace-speed 0x would never start a session: give a factor above 0");
            }
            1.0
        });
    let mut to = timed.map(|duration| nanos(warmup) + nanos(duration));
    let (arrivals, mut words) = match (&args.users, kind) {
        (Some(users), _) => {
            if args.sine.is_some() {
                reader.fault("--sine is about the rate of a schedule; --users has none");
            }
            let users = u32::try_from(reader.count("users", users)).unwrap_or(u32::MAX);
            (Arrivals::Closed { users }, format!("{users} users"))
        }
        (None, kind) => {
            let (profile, spacing, words) = match kind {
                Some(Kind::Trace(times)) => {
                    if args.sine.is_some() {
                        reader.fault("--sine and a trace both say when sessions arrive: give one of them");
                    }
                    let words = format!("a trace of {} sessions{}", times.len(), speed_text(speed));
                    (Profile::trace(at_speed(&times, speed)), Spacing::Even, words)
                }
                other => {
                    let spacing = match other {
                        Some(Kind::Spaced(spacing)) => spacing,
                        _ => Spacing::Even,
                    };
                    let (profile, words) = read_profile(args, to, reader);
                    let kind = match spacing {
                        Spacing::Even => "constant".to_owned(),
                        Spacing::Poisson => "poisson".to_owned(),
                        Spacing::Burst(size) => format!("in bursts of {size}"),
                    };
                    (profile, spacing, format!("{words} {kind}"))
                }
            };
            to = to.or(profile.end());
            if profile.end().is_some_and(|end| nanos(warmup) >= end) {
                reader.fault("--warmup is not shorter than the --stages: nothing would be measured");
            }
            (Arrivals::Open(Schedule { profile, spacing, seed, end: to, sessions }), words)
        }
    };
    if let Some(duration) = timed {
        words.push_str(&format!(" for {}", show_duration(duration)));
    }
    if let Some(sessions) = sessions {
        words.push_str(&format!(", {sessions} sessions"));
    }
    if !warmup.is_zero() {
        words.push_str(&format!(" after {} of warm-up", show_duration(warmup)));
    }
    let on_full = reader.value("on-full", &args.on_full, "queue or drop", |text| match text {
        "queue" => Some(OnFull::Queue),
        "drop" => Some(OnFull::Drop),
        _ => None,
    });
    let think =
        reader.value("think", &args.think, "a factor such as 1x, 0.1x or 0x", units::factor).unwrap_or(1.0);
    if think != 1.0 {
        words.push_str(&format!(", think times {think}x"));
    }
    let read = |text: &str| units::duration(text).filter(|slot| *slot <= MAX_SLOT);
    let slot =
        reader.value("slot", &args.slot, "a length such as 100us, 10ms at most", read).unwrap_or(MAX_SLOT);
    let connections = connections.map(|text| reader.count("connections", text) as usize);
    if let Some(connections) = connections {
        words.push_str(&format!(", {connections} connections"));
    }
    let limits = Limits {
        in_flight: reader.count("max-in-flight", &args.max_in_flight) as usize,
        on_full: on_full.unwrap_or(OnFull::Queue),
        connections: connections.unwrap_or(DEFAULT_CONNECTIONS),
    };
    let shard = args.shard.as_deref().map_or(Shard::WHOLE, |text| {
        let form = format!("I/N with I from 1 to N, such as 2/4; N is at most {MAX_SHARDS}");
        reader.value("shard", text, &form, Shard::parse).unwrap_or(Shard::WHOLE)
    });
    words.push_str(&shard.words());
    let form = "a2a, mcp or pap";
    let binding = reader.value("binding", &args.binding, form, Binding::from_word).unwrap_or(Binding::A2a);
    let start = args.start_at.as_deref().and_then(|text| {
        let form = "a time such as 2026-01-31T12:00:00Z, or how long from now, such as +5s, a week at most";
        reader.value("start-at", text, form, read_start)
    });
    Asked {
        load: Load {
            arrivals,
            window: Window { from: nanos(warmup), to },
            sessions,
            limits,
            think,
            slot,
            seed,
            shard,
        },
        binding,
        text: words,
        start,
        is_free: given.is_empty() && args.arrivals.is_none() && args.sine.is_none(),
        speed,
        duration,
    }
}

fn speed_text(speed: f64) -> String {
    if speed == 1.0 { String::new() } else { format!(" at {speed}x") }
}

fn at_speed(times: &[u64], speed: f64) -> Arc<[u64]> {
    // Divided alike, so that the order stays.
    if speed == 1.0 { times.into() } else { times.iter().map(|at| (*at as f64 / speed) as u64).collect() }
}

fn read_start(text: &str) -> Option<StartAt> {
    match text.strip_prefix('+') {
        Some(length) => units::duration(length).filter(|length| *length <= MAX_AHEAD).map(StartAt::In),
        None => text.parse().ok().map(StartAt::At),
    }
}

/// A rate over time: `--stages`, or `--rate` with its ramp, or that with `--sine`. `to` is the end of the run.
fn read_profile(args: &LoadArgs, to: Option<u64>, reader: &mut Reader) -> (Profile, String) {
    if let Some(text) = &args.stages {
        if args.sine.is_some() {
            reader
                .fault("--sine swings around --rate, and --stages have rates of their own: give one of them");
        }
        return (read_stages(text, reader), format!("stages {text}"));
    }
    if let Some((from, until)) = args.rate.as_deref().and_then(|text| text.split_once("..")) {
        return (read_ramp(from, until, to, reader), format!("{from} to {until}"));
    }
    let form = format!("more than nothing, as {}; or a ramp such as 10/s..500/s", units::RATE_FORM);
    let read = |text: &str| units::rate(text).filter(|&rate| rate > 0.0);
    let rate =
        args.rate.as_deref().map_or(Some(DEFAULT_RATE), |text| reader.value("rate", text, &form, read));
    let rate = rate.unwrap_or(DEFAULT_RATE);
    let Some(text) = args.sine.as_deref() else { return (Profile::constant(rate), show_rate(rate)) };
    let read = |text: &str| {
        let (period, share) = text.split_once(':')?;
        let period = units::duration(period).filter(|period| !period.is_zero())?;
        Some((nanos(period), units::ratio(share).filter(|share| (0.0..=1.0).contains(share))?))
    };
    let form = "PERIOD:SHARE, the share from 0% to 100%, such as 60s:50%";
    let (period, share) = reader.value("sine", text, form, read).unwrap_or((1, 0.0));
    (Profile::sine(rate, share, period), format!("{} swinging {text}", show_rate(rate)))
}

fn read_ramp(from: &str, until: &str, to: Option<u64>, reader: &mut Reader) -> Profile {
    let (Some(first), Some(last)) = (units::rate(from), units::rate(until)) else {
        reader.fault(format!("--rate {:?}: give two rates, such as 10/s..500/s", format!("{from}..{until}")));
        return Profile::constant(DEFAULT_RATE);
    };
    let Some(to) = to else {
        reader.fault("a ramp of --rate goes over the whole time: give --duration beside --sessions");
        return Profile::constant(DEFAULT_RATE);
    };
    let stages = vec![Stage { at: 0, rate: first }, Stage { at: to, rate: last }];
    Profile::stages(stages).unwrap_or_else(|error| {
        reader.fault(format!("--rate {:?}: {error}", format!("{from}..{until}")));
        Profile::constant(DEFAULT_RATE)
    })
}

fn read_stages(text: &str, reader: &mut Reader) -> Profile {
    let mut stages = Vec::new();
    for part in text.split(',') {
        let stage = part
            .split_once(':')
            .and_then(|(at, rate)| Some(Stage { at: nanos(units::duration(at)?), rate: units::rate(rate)? }));
        match stage {
            Some(stage) => stages.push(stage),
            None => reader.fault(format!("--stages {part:?}: give TIME:RATE, such as 30s:500/s")),
        }
    }
    if stages.len() < text.split(',').count() {
        return Profile::constant(DEFAULT_RATE);
    }
    Profile::stages(stages).unwrap_or_else(|error| {
        reader.fault(format!("--stages {text:?}: {error}"));
        Profile::constant(DEFAULT_RATE)
    })
}

fn read_arrivals(text: &str, reader: &mut Reader) -> Kind {
    if let Some(path) = text.strip_prefix("trace:") {
        return Kind::Trace(read_times(Path::new(path), reader));
    }
    let read = |text: &str| match text {
        "constant" => Some(Spacing::Even),
        "poisson" => Some(Spacing::Poisson),
        _ => {
            let size = text.strip_prefix("burst:")?.parse().ok()?;
            (1..=MAX_BURST).contains(&size).then_some(Spacing::Burst(size))
        }
    };
    let form = "constant, poisson, burst:N such as burst:20, or trace:FILE";
    Kind::Spaced(reader.value("arrivals", text, form, read).unwrap_or(Spacing::Even))
}

/// The times of a file: one a line, from the start, ascending; empty lines and those that begin with `#` are skipped.
fn read_times(path: &Path, reader: &mut Reader) -> Arc<[u64]> {
    const LISTED: usize = 10;
    let name = format!("--arrivals trace:{}", path.display());
    let text = match read_bounded(path, MAX_TRACE_BYTES).map(String::from_utf8) {
        Ok(Ok(text)) => text,
        Ok(Err(_)) => {
            reader.fault(format!("{name}: the file is not UTF-8"));
            return Arc::new([]);
        }
        Err(error) => {
            reader.fault(format!("{name}: the file cannot be read: {error}"));
            return Arc::new([]);
        }
    };
    let mut times: Vec<u64> = Vec::new();
    let mut wrong = 0;
    for (index, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let fault = match units::duration(line).map(nanos) {
            Some(at) if times.last().is_none_or(|last| *last <= at) => {
                times.push(at);
                continue;
            }
            Some(_) => "is earlier than the line above: sort the file",
            None => "is no time from the start, such as 1.5s or 250ms",
        };
        wrong += 1;
        if wrong <= LISTED {
            reader.fault(format!("{name}, line {}: {line:?} {fault}", index + 1));
        }
    }
    if wrong > LISTED {
        reader.fault(format!("{name}: {} more lines are wrong", wrong - LISTED));
    } else if wrong == 0 && times.is_empty() {
        reader.fault(format!("{name}: the file has no times"));
    }
    times.into()
}
