//! The flags of `run`, read: from text to values, with everything that is wrong said at once.

mod conform;
mod connections;
mod load;

pub(crate) use conform::read as read_conform;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use dealer_sim::protocol::Contract;

use crate::cli::{LoadArgs, RunArgs};
use crate::conditions;
use crate::endpoint::Consent;
use crate::metrics;
use crate::oauth::Grant;
use crate::outcome::Validate;
use crate::threshold::Threshold;
use crate::transport::Options;
use crate::units;

pub(crate) use load::{Asked, StartAt};

/// What a run is asked to do.
#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub(crate) scenarios: Vec<PathBuf>,
    pub(crate) sets: Vec<(String, String)>,
    pub(crate) target: Target,
    pub(crate) consent: Consent,
    pub(crate) asked: Asked,
    /// The limit of connections, if the user has given one.
    pub(crate) connections: Option<usize>,
    pub(crate) threads: Option<usize>,
    pub(crate) options: Options,
    /// How to come by a token, if one is to be asked for.
    pub(crate) grant: Option<Grant>,
    pub(crate) validate: Validate,
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

/// The pairs of `--set`, name and value.
pub(crate) type Sets = Vec<(String, String)>;

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

/// The load of `check`: that of `run` with the same flags. The seed and what `--set` says come with it.
///
/// # Errors
/// All that is wrong, a sentence each.
pub(crate) fn read_load(args: &LoadArgs) -> Result<(Asked, Sets), Vec<String>> {
    let mut reader = Reader::default();
    let sets = read_sets(&args.sets).unwrap_or_else(|faults| {
        reader.faults.extend(faults);
        Vec::new()
    });
    let seed = read_seed(&args.seed).unwrap_or_else(|fault| {
        reader.fault(fault);
        0
    });
    let asked = load::read(args, None, seed, &mut reader);
    if reader.faults.is_empty() { Ok((asked, sets)) } else { Err(reader.faults) }
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
        let sets = read_sets(&args.load.sets).unwrap_or_else(|faults| {
            reader.faults.extend(faults);
            Vec::new()
        });
        let seed = read_seed(&args.load.seed).unwrap_or_else(|fault| {
            reader.fault(fault);
            0
        });
        let target = read_target(args, &mut reader);
        let mut asked = load::read(&args.load, args.connections.as_deref(), seed, &mut reader);
        let options = connections::read(args, &variable, &mut reader);
        if options.http2 && args.connections.is_none() {
            // Every worker has one at least, and many requests share it.
            asked.load.limits.connections = 1;
        }
        let grant = connections::read_grant(&args.oauth, &variable, &mut reader);
        let has_authorization =
            options.headers.iter().any(|(name, _)| name.eq_ignore_ascii_case("authorization"));
        if grant.is_some() && has_authorization {
            reader
                .fault("--oauth-url and another Authorization header are two credentials: give one of them");
        }
        let validate = reader
            .value("validate", &args.validate, "off, sample or full", |text| match text {
                "off" => Some(Validate::Off),
                "sample" => Some(Validate::Sample),
                "full" => Some(Validate::Full),
                _ => None,
            })
            .unwrap_or(Validate::Off);
        let mut thresholds = Vec::new();
        for text in &args.thresholds {
            match Threshold::parse(text) {
                Ok(threshold) => thresholds.push(threshold),
                Err(fault) => reader.fault(format!("--threshold {fault}")),
            }
        }
        let threads = args.load.threads.as_deref().map(|text| reader.threads(text));
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
        if !reader.faults.is_empty() {
            return Err(reader.faults);
        }
        Ok(Settings {
            scenarios: args.scenarios.clone(),
            sets,
            target,
            consent: Consent {
                real_leads: args.dealer.allow_real_leads,
                draft_contract: args.dealer.allow_draft_contract,
            },
            connections: args.connections.as_ref().map(|_| asked.load.limits.connections),
            conditions: conditions::of(args, &asked),
            asked,
            threads,
            options,
            grant,
            validate,
            thresholds,
            aborts: args.abort_on_fail,
            metrics,
            grace,
            out: args.out.clone(),
            is_json,
            is_quiet: args.quiet,
        })
    }
}

fn read_target(args: &RunArgs, reader: &mut Reader) -> Target {
    let contract = args.dealer.contract.as_deref().and_then(|text| {
        text.parse::<Contract>().map_err(|error| reader.fault(format!("--contract: {error}"))).ok()
    });
    match (&args.dealer.endpoint, &args.endpoint_raw) {
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
            if args.dealer.contract.is_none() {
                reader.fault(format!(
                    "--endpoint-raw reads no card, so it needs --contract ({})",
                    Contract::names()
                ));
            }
            Target::Raw(url.clone(), contract.unwrap_or(Contract::V3_0))
        }
        (None, None) => Target::Embedded(contract.unwrap_or(Contract::V3_0)),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};
    use crate::load::{Arrivals, Shard, Window};

    fn read(flags: &[&str]) -> Result<Settings, Vec<String>> {
        let line = ["dealer-loadgen", "run", "x.yaml"].iter().chain(flags);
        let Command::Run(args) = Cli::try_parse_from(line).unwrap().command else { panic!() };
        Settings::read(&args, |name| (name == "TOKEN").then(|| "secret".to_owned()))
    }

    #[test]
    fn the_defaults() {
        let settings = read(&[]).unwrap();
        assert_eq!(settings.asked.load.target_rate(), Some(50.0));
        assert_eq!(settings.asked.load.window, Window { from: 0, to: Some(15_000_000_000) });
        assert_eq!(settings.asked.load.seed, 42);
        assert_eq!(settings.target, Target::Embedded(Contract::V3_0));
        assert_eq!(settings.asked.text, "50/s constant for 15s");
    }

    #[test]
    fn the_warm_up_comes_before_the_measurement() {
        let settings = read(&["--warmup", "5s", "--duration", "2m"]).unwrap();
        assert_eq!(settings.asked.load.window, Window { from: 5_000_000_000, to: Some(125_000_000_000) });
    }

    #[test]
    fn sessions_alone_have_no_end_in_time() {
        assert_eq!(read(&["--sessions", "10"]).unwrap().asked.load.window.to, None);
        assert!(read(&["--sessions", "10", "--duration", "1s"]).unwrap().asked.load.window.to.is_some());
    }

    #[test]
    fn stages_say_how_long() {
        let settings = read(&["--stages", "0s:0/s,10s:100/s", "--warmup", "5s"]).unwrap();
        assert_eq!(settings.asked.load.window, Window { from: 5_000_000_000, to: Some(10_000_000_000) });
        assert_eq!(settings.asked.load.target_rate(), Some(75.0));
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
            "3",
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
            "--slot",
            "1s",
            "--shard",
            "5/4",
            "--start-at",
            "tomorrow",
            "--trace-speed",
            "0x",
            "--validate",
            "some",
            "--header-env",
            "nonsense",
            "--header-env",
            "X-Key: ABSENT",
            "--cert",
            "x.pem",
            "--oauth-url",
            "http://elsewhere.example/token",
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
            "--http \"3\"",
            "--endpoint: ",
            "--contract: ",
            "--seed",
            "--set",
            "--threads \"1025\"",
            "--slot \"1s\"",
            "--shard \"5/4\"",
            "--start-at \"tomorrow\"",
            "--trace-speed 0x",
            "--validate \"some\"",
            "--header-env \"nonsense\"",
            "ABSENT",
            "--cert and --key",
            "--oauth-url \"http://elsewhere.example/token\"",
            "--oauth-client is missing",
            "--oauth-secret-env is missing",
        ] {
            assert_eq!(faults.iter().filter(|fault| fault.contains(flag)).count(), 1, "{flag}: {faults:#?}");
        }
    }

    #[test]
    fn http2_shares_one_connection_a_thread_unless_told_otherwise() {
        let settings = read(&["--http", "2"]).unwrap();
        assert!(settings.options.http2);
        assert_eq!(settings.asked.load.limits.connections, 1);
        assert_eq!(read(&["--http", "2", "--connections", "7"]).unwrap().asked.load.limits.connections, 7);
        assert!(read(&["--http", "2", "--reuse", "session"]).unwrap_err()[0].contains("--reuse"));
    }

    #[test]
    fn arrivals_are_independent_values() {
        let text = |flags: &[&str]| read(flags).unwrap().asked.text;
        assert_eq!(text(&["--arrivals", "burst:20", "--rate", "100/s"]), "100/s in bursts of 20 for 15s");
        assert_eq!(
            text(&["--sine", "60s:50%", "--arrivals", "poisson"]),
            "50/s swinging 60s:50% poisson for 15s"
        );
        let ramp = read(&["--rate", "0/s..100/s", "--duration", "8s", "--warmup", "2s"]).unwrap().asked;
        assert_eq!(ramp.text, "0/s to 100/s constant for 8s after 2s of warm-up");
        // The measured part of a ramp of 10 s from its second on: 20/s to 100/s.
        assert!((ramp.load.target_rate().unwrap() - 60.0).abs() < 1e-9);
        assert_eq!(ramp.load.total_sessions(), Some(500));
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("times.txt");
        std::fs::write(&path, "# a trace\n0s\n\n250ms\n1.5s\n").unwrap();
        let trace = format!("trace:{}", path.display());
        let asked = read(&["--arrivals", &trace, "--trace-speed", "2x"]).unwrap().asked;
        assert_eq!((asked.text.as_str(), asked.load.window.to), ("a trace of 3 sessions at 2x", None));
        let Arrivals::Open(schedule) = &asked.load.arrivals else { panic!() };
        let times: Vec<u64> = schedule.iter().map(|arrival| arrival.at / 1_000_000).collect();
        assert_eq!(times, [0, 125, 750]);
        std::fs::write(&path, "5s\n1s\nsoon\n").unwrap();
        let faults = read(&["--arrivals", &trace]).unwrap_err();
        assert!(
            faults.len() == 2 && faults[0].contains("line 2") && faults[1].contains("line 3"),
            "{faults:?}"
        );
        for flags in [
            ["--arrivals", &trace, "--rate", "1/s"],
            ["--sine", "60s:50%", "--users", "3"],
            ["--sine", "60s:50%", "--stages", "0s:1/s,1s:1/s"],
            ["--rate", "1/s..2/s", "--sessions", "5"],
            ["--sine", "60s:150%", "--think", "1x"],
        ] {
            assert!(read(&flags).is_err(), "{flags:?}");
        }
    }

    #[test]
    fn a_shard_is_a_part_of_the_whole() {
        let load = read(&["--shard", "2/4", "--rate", "100/s"]).unwrap().asked.load;
        assert_eq!(load.shard, Shard { index: 1, count: 4 });
        assert_eq!(load.target_rate(), Some(25.0));
        for wrong in ["0/4", "5/4", "1/0", "x", "1/10001"] {
            assert!(read(&["--shard", wrong]).is_err(), "{wrong}");
        }
        assert!(read(&["--start-at", "+5s"]).unwrap().asked.start.is_some());
        assert!(read(&["--start-at", "2026-01-31T12:00:00+01:00"]).is_ok());
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
