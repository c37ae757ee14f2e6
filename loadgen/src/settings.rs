//! The flags of `run`, read: from text to values, with everything that is wrong said at once.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use dealer_sim::protocol::Contract;

use crate::arrival::{Profile, Schedule, Spacing, Stage};
use crate::cli::RunArgs;
use crate::conditions;
use crate::endpoint::Consent;
use crate::load::{Arrivals, Limits, Load, OnFull, Window};
use crate::metrics;
use crate::threshold::Threshold;
use crate::transport::{MAX_REPLY, Options, Reuse};
use crate::units::{self, nanos, show_duration, show_rate};

/// What a run is asked to do.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) scenarios: Vec<PathBuf>,
    pub(crate) sets: Vec<(String, String)>,
    pub(crate) target: Target,
    pub(crate) consent: Consent,
    pub(crate) load: Load,
    /// The load in the words of its flags.
    pub(crate) load_text: String,
    /// The limit of connections, if the user has given one.
    pub(crate) connections: Option<usize>,
    pub(crate) threads: Option<usize>,
    pub(crate) options: Options,
    pub(crate) thresholds: Vec<Threshold>,
    /// Whether a threshold that does not hold ends the run.
    pub(crate) aborts: bool,
    /// Where the run's counters are shown while it goes on.
    pub(crate) metrics: Option<SocketAddr>,
    /// What must be equal for two results to be comparable.
    pub(crate) conditions: BTreeMap<String, String>,
    pub(crate) grace: Duration,
    pub(crate) out: Option<PathBuf>,
    pub(crate) is_json: bool,
    pub(crate) is_quiet: bool,
}

/// Whom requests go to.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Target {
    /// A simulator inside this process.
    Embedded(Contract),
    /// The dealer of this card or base URL.
    Discover(String, Option<Contract>),
    /// Exactly this URL.
    Raw(String, Contract),
}

const DEFAULT_RATE: f64 = 50.0;
const DEFAULT_DURATION: Duration = Duration::from_secs(15);
const DEFAULT_CONNECTIONS: usize = 10_000;
/// More than any machine can have, and little enough that sums of them do not overflow.
const MAX_COUNT: u64 = 1_000_000_000;
/// More worker threads than any machine has cores to run them on.
const MAX_THREADS: usize = 1024;

/// Reads text into values and collects what is wrong.
#[derive(Debug, Default)]
struct Reader {
    faults: Vec<String>,
}

impl Reader {
    fn value<T>(
        &mut self,
        flag: &str,
        text: &str,
        form: &str,
        read: impl Fn(&str) -> Option<T>,
    ) -> Option<T> {
        let value = read(text);
        if value.is_none() {
            self.faults.push(format!("--{flag} {text:?}: give {form}"));
        }
        value
    }

    fn duration(&mut self, flag: &str, text: &str) -> Duration {
        self.value(flag, text, units::DURATION_FORM, units::duration).unwrap_or_default()
    }

    fn positive_duration(&mut self, flag: &str, text: &str) -> Duration {
        let read = |text: &str| units::duration(text).filter(|duration| !duration.is_zero());
        let form = format!("more than nothing, as {}", units::DURATION_FORM);
        self.value(flag, text, &form, read).unwrap_or_default()
    }

    fn count(&mut self, flag: &str, text: &str) -> u64 {
        let read = |text: &str| text.parse().ok().filter(|count| (1..=MAX_COUNT).contains(count));
        self.value(flag, text, "a whole number from 1 to 1000000000", read).unwrap_or(1)
    }

    fn threads(&mut self, text: &str) -> usize {
        let read = |text: &str| text.parse().ok().filter(|threads| (1..=MAX_THREADS).contains(threads));
        self.value("threads", text, &format!("a whole number from 1 to {MAX_THREADS}"), read).unwrap_or(1)
    }

    fn fault(&mut self, fault: impl Into<String>) {
        self.faults.push(fault.into());
    }
}

/// The seed of `--seed`.
pub(crate) fn read_seed(text: &str) -> Result<u64, String> {
    text.parse().map_err(|_| format!("--seed {text:?}: give a whole number from 0 to {}", u64::MAX))
}

/// The pairs of `--set`.
pub(crate) fn read_sets(sets: &[String]) -> Result<Vec<(String, String)>, Vec<String>> {
    let mut pairs = Vec::new();
    let mut faults = Vec::new();
    for text in sets {
        match text.split_once('=') {
            Some((name, value)) if !name.is_empty() => pairs.push((name.to_owned(), value.to_owned())),
            _ => faults.push(format!("--set {text:?}: give NAME=VALUE")),
        }
    }
    if faults.is_empty() { Ok(pairs) } else { Err(faults) }
}

impl Settings {
    /// Reads the flags; `variable` looks up the environment.
    ///
    /// # Errors
    /// All that is wrong, a sentence each.
    pub(crate) fn read(
        args: &RunArgs,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<Settings, Vec<String>> {
        let mut reader = Reader::default();
        let sets = read_sets(&args.sets).unwrap_or_else(|faults| {
            reader.faults.extend(faults);
            Vec::new()
        });
        let seed = read_seed(&args.seed).unwrap_or_else(|fault| {
            reader.fault(fault);
            0
        });
        let target = read_target(args, &mut reader);
        let (load, load_text) = read_load(args, seed, &mut reader);
        let options = read_options(args, variable, &mut reader);
        let mut thresholds = Vec::new();
        for text in &args.thresholds {
            match Threshold::parse(text) {
                Ok(threshold) => thresholds.push(threshold),
                Err(fault) => reader.fault(format!("--threshold {fault}")),
            }
        }
        let threads = args.threads.as_deref().map(|text| reader.threads(text));
        let grace = reader.duration("grace", &args.grace);
        let form = "an address and port such as 127.0.0.1:9464, or a port";
        let metrics = args.metrics.as_deref();
        let metrics = metrics.and_then(|text| reader.value("metrics", text, form, metrics::address));
        let is_json = reader
            .value("format", &args.format, "text or json", |text| match text {
                "text" => Some(false),
                "json" => Some(true),
                _ => None,
            })
            .unwrap_or(false);
        match args.http.as_str() {
            "1.1" => {}
            "2" => {
                reader.fault("--http 2 is not available yet: HTTP/1.1 is what is spoken; leave the flag out");
            }
            other => reader.fault(format!("--http {other:?}: give 1.1")),
        }
        if !reader.faults.is_empty() {
            return Err(reader.faults);
        }
        Ok(Settings {
            scenarios: args.scenarios.clone(),
            sets,
            target,
            consent: Consent { real_leads: args.allow_real_leads, draft_contract: args.allow_draft_contract },
            connections: args.connections.as_ref().map(|_| load.limits.connections),
            load,
            load_text,
            threads,
            options,
            thresholds,
            aborts: args.abort_on_fail,
            metrics,
            conditions: conditions::of(args),
            grace,
            out: args.out.clone(),
            is_json,
            is_quiet: args.quiet,
        })
    }
}

fn read_target(args: &RunArgs, reader: &mut Reader) -> Target {
    let contract = args.contract.as_deref().and_then(|text| {
        text.parse::<Contract>().map_err(|error| reader.fault(format!("--contract: {error}"))).ok()
    });
    match (&args.endpoint, &args.endpoint_raw) {
        (Some(_), Some(_)) => {
            reader.fault("--endpoint and --endpoint-raw name two dealers: give one of them");
            Target::Embedded(Contract::V3_0)
        }
        (Some(url), None) => {
            if let Err(error) = crate::transport::Address::parse(url) {
                reader.fault(format!("--endpoint: {error}"));
            }
            Target::Discover(url.clone(), contract)
        }
        (None, Some(url)) => {
            if let Err(error) = crate::transport::Address::parse(url) {
                reader.fault(format!("--endpoint-raw: {error}"));
            }
            if args.contract.is_none() {
                reader.fault("--endpoint-raw reads no card, so it needs --contract (3.0 or 2.0)");
            }
            Target::Raw(url.clone(), contract.unwrap_or(Contract::V3_0))
        }
        (None, None) => Target::Embedded(contract.unwrap_or(Contract::V3_0)),
    }
}

fn read_load(args: &RunArgs, seed: u64, reader: &mut Reader) -> (Load, String) {
    let given = [("rate", &args.rate), ("users", &args.users), ("stages", &args.stages)];
    let given: Vec<String> =
        given.iter().filter(|(_, value)| value.is_some()).map(|(flag, _)| format!("--{flag}")).collect();
    if given.len() > 1 {
        reader.fault(format!("{} are different kinds of load: give one of them", given.join(" and ")));
    }
    let warmup = reader.duration("warmup", &args.warmup);
    let sessions = args.sessions.as_deref().map(|text| reader.count("sessions", text));
    let duration = args.duration.as_deref().map(|text| reader.positive_duration("duration", text));
    let spacing = args.arrivals.as_deref().map_or(Some(Spacing::Even), |text| {
        reader.value("arrivals", text, "constant or poisson", |text| match text {
            "constant" => Some(Spacing::Even),
            "poisson" => Some(Spacing::Poisson),
            _ => None,
        })
    });
    if args.users.is_some() && args.arrivals.is_some() {
        reader.fault("--arrivals is about sessions that arrive on a schedule; --users has none");
    }
    let duration = match (&args.stages, duration, sessions) {
        (Some(_), Some(_), _) => {
            reader.fault("--duration and --stages both say how long: leave --duration out");
            None
        }
        (Some(_), None, _) => None,
        (None, None, Some(_)) => None,
        (None, duration, _) => Some(duration.unwrap_or(DEFAULT_DURATION)),
    };
    let mut to = duration.map(|duration| nanos(warmup) + nanos(duration));
    let (arrivals, mut words) = match (&args.users, &args.stages) {
        (Some(users), _) => {
            let users = u32::try_from(reader.count("users", users)).unwrap_or(u32::MAX);
            (Arrivals::Closed { users }, format!("{users} users"))
        }
        (None, stages) => {
            let (profile, words) = match stages {
                Some(text) => (read_stages(text, reader), format!("stages {text}")),
                None => {
                    let form = format!("more than nothing, as {}", units::RATE_FORM);
                    let read = |text: &str| units::rate(text).filter(|&rate| rate > 0.0);
                    let rate = args
                        .rate
                        .as_deref()
                        .map_or(Some(DEFAULT_RATE), |text| reader.value("rate", text, &form, read));
                    let rate = rate.unwrap_or(DEFAULT_RATE);
                    (Profile::constant(rate), show_rate(rate))
                }
            };
            to = to.or(profile.end());
            if profile.end().is_some_and(|end| nanos(warmup) >= end) {
                reader.fault("--warmup is not shorter than the --stages: nothing would be measured");
            }
            let spacing = spacing.unwrap_or(Spacing::Even);
            let kind = match spacing {
                Spacing::Even => "constant",
                Spacing::Poisson => "poisson",
            };
            let schedule = Schedule { profile, spacing, seed, end: to, sessions };
            (Arrivals::Open(schedule), format!("{words} {kind}"))
        }
    };
    if let Some(duration) = duration {
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
    let connections = args.connections.as_deref().map(|text| reader.count("connections", text) as usize);
    if let Some(connections) = connections {
        words.push_str(&format!(", {connections} connections"));
    }
    let limits = Limits {
        in_flight: reader.count("max-in-flight", &args.max_in_flight) as usize,
        on_full: on_full.unwrap_or(OnFull::Queue),
        connections: connections.unwrap_or(DEFAULT_CONNECTIONS),
    };
    (Load { arrivals, window: Window { from: nanos(warmup), to }, sessions, limits, think, seed }, words)
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

fn read_options(args: &RunArgs, variable: impl Fn(&str) -> Option<String>, reader: &mut Reader) -> Options {
    let mut headers = Vec::new();
    for text in &args.headers {
        match text.split_once(':').map(|(name, value)| (name.trim(), value.trim())) {
            Some((name, _)) if is_ours(name) => {
                reader.fault(format!("--header {text:?}: {name} is set by this program"));
            }
            Some((name, value)) if is_token(name) && is_field_value(value) => {
                headers.push((name.to_owned(), value.to_owned()));
            }
            _ => reader.fault(format!("--header {text:?}: give NAME: VALUE")),
        }
    }
    if let Some(name) = &args.bearer_env {
        match variable(name) {
            Some(token) if !token.is_empty() && is_field_value(&token) => {
                headers.push(("Authorization".to_owned(), format!("Bearer {token}")));
            }
            Some(_) => reader.fault(format!("--bearer-env {name}: the variable holds no token")),
            None => reader.fault(format!("--bearer-env {name}: there is no such environment variable")),
        }
    }
    let reuse =
        reader.value("reuse", &args.reuse, "forever, session, none or a range such as 10..30", read_reuse);
    Options {
        connect_timeout: reader.positive_duration("connect-timeout", &args.connect_timeout),
        timeout: reader.positive_duration("timeout", &args.timeout),
        max_reply: MAX_REPLY,
        reuse: reuse.unwrap_or(Reuse::Forever),
        ca: args.ca.clone(),
        insecure: args.insecure,
        headers,
    }
}

fn read_reuse(text: &str) -> Option<Reuse> {
    match text {
        "forever" => Some(Reuse::Forever),
        "session" => Some(Reuse::Session),
        "none" => Some(Reuse::None),
        range => {
            let (low, high) = range.split_once("..")?;
            let (low, high) = (low.parse().ok()?, high.trim_start_matches('=').parse().ok()?);
            (1 <= low && low <= high).then_some(Reuse::Requests(low, high))
        }
    }
}

/// Headers that the transport and the protocol own; a second one would contradict them.
fn is_ours(name: &str) -> bool {
    [
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "content-type",
        "a2a-version",
        "a2a-extensions",
    ]
    .iter()
    .any(|own| name.eq_ignore_ascii_case(own))
}

/// A header's name (RFC 9110, section 5.6.2).
fn is_token(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// A header's value, without what would begin another header.
fn is_field_value(value: &str) -> bool {
    value.bytes().all(|byte| byte == b'\t' || (byte >= b' ' && byte != 0x7f))
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    fn read(flags: &[&str]) -> Result<Settings, Vec<String>> {
        let line = ["dealer-loadgen", "run", "x.yaml"].iter().chain(flags);
        let Command::Run(args) = Cli::try_parse_from(line).unwrap().command else { panic!() };
        Settings::read(&args, |name| (name == "TOKEN").then(|| "secret".to_owned()))
    }

    #[test]
    fn the_defaults() {
        let settings = read(&[]).unwrap();
        assert_eq!(settings.load.target_rate(), Some(50.0));
        assert_eq!(settings.load.window, Window { from: 0, to: Some(15_000_000_000) });
        assert_eq!(settings.load.seed, 42);
        assert_eq!(settings.target, Target::Embedded(Contract::V3_0));
        assert_eq!(settings.load_text, "50/s constant for 15s");
    }

    #[test]
    fn the_warm_up_comes_before_the_measurement() {
        let settings = read(&["--warmup", "5s", "--duration", "2m"]).unwrap();
        assert_eq!(settings.load.window, Window { from: 5_000_000_000, to: Some(125_000_000_000) });
    }

    #[test]
    fn sessions_alone_have_no_end_in_time() {
        assert_eq!(read(&["--sessions", "10"]).unwrap().load.window.to, None);
        assert!(read(&["--sessions", "10", "--duration", "1s"]).unwrap().load.window.to.is_some());
    }

    #[test]
    fn stages_say_how_long() {
        let settings = read(&["--stages", "0s:0/s,10s:100/s", "--warmup", "5s"]).unwrap();
        assert_eq!(settings.load.window, Window { from: 5_000_000_000, to: Some(10_000_000_000) });
        assert_eq!(settings.load.target_rate(), Some(75.0));
    }

    #[test]
    fn a_bearer_token_comes_from_the_environment() {
        let settings = read(&["--bearer-env", "TOKEN", "--header", "X-Key: 1"]).unwrap();
        assert_eq!(
            settings.options.headers,
            [("X-Key".to_owned(), "1".to_owned()), ("Authorization".to_owned(), "Bearer secret".to_owned())]
        );
    }

    #[test]
    fn everything_wrong_is_said_at_once() {
        let faults = read(&[
            "--rate",
            "fast",
            "--users",
            "0",
            "--duration",
            "0s",
            "--arrivals",
            "sine",
            "--warmup",
            "soon",
            "--on-full",
            "panic",
            "--think",
            "a lot",
            "--reuse",
            "3..2",
            "--header",
            "nonsense",
            "--header",
            "Host: elsewhere",
            "--bearer-env",
            "MISSING",
            "--threshold",
            "p99",
            "--format",
            "xml",
            "--http",
            "2",
            "--endpoint",
            "ftp://x",
            "--contract",
            "9.9",
            "--seed",
            "x",
            "--set",
            "novalue",
            "--threads",
            "1025",
        ])
        .unwrap_err();
        for flag in [
            "--rate and --users",
            "--users \"0\"",
            "--duration \"0s\"",
            "--arrivals \"sine\"",
            "--arrivals is about",
            "--warmup \"soon\"",
            "--on-full",
            "--think",
            "--reuse",
            "--header \"nonsense\"",
            "Host is set",
            "MISSING",
            "--threshold",
            "--format",
            "--http 2 is not available yet",
            "--endpoint: ",
            "--contract: ",
            "--seed",
            "--set",
            "--threads \"1025\"",
        ] {
            assert_eq!(faults.iter().filter(|fault| fault.contains(flag)).count(), 1, "{flag}: {faults:#?}");
        }
    }

    #[test]
    fn a_negative_number_gets_the_flag_s_own_message() {
        for (flag, value) in [("--rate", "-1/s"), ("--users", "-1"), ("--duration", "-5s"), ("--seed", "-1")]
        {
            let faults = read(&[flag, value]).unwrap_err();
            assert!(
                faults.len() == 1 && faults[0].starts_with(&format!("{flag} {value:?}: give ")),
                "{faults:?}"
            );
        }
    }

    #[test]
    fn a_raw_endpoint_needs_a_contract() {
        assert!(read(&["--endpoint-raw", "http://127.0.0.1:1/a2a"]).is_err());
        assert!(read(&["--endpoint-raw", "http://127.0.0.1:1/a2a", "--contract", "3.0"]).is_ok());
        assert!(
            read(&["--endpoint-raw", "http://x/", "--endpoint", "http://x/", "--contract", "3.0"]).is_err()
        );
    }
}
