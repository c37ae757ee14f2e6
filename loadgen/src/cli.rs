//! What a user types. Each flag has a variable of the environment too; those that repeat take one value per line there.
//!
//! Values are kept as text here and read in `settings`, so that all that is wrong is said at once.

mod conform;
mod credentials;
mod dealer;
mod load;
mod results;

use std::path::PathBuf;

use clap::builder::BoolishValueParser;
use clap::{Args, Parser, Subcommand};
use dealer_sim::log::LogFormat;

pub use conform::ConformArgs;
pub use credentials::{IdentityArgs, OauthArgs};
pub use dealer::DealerArgs;
pub use load::LoadArgs;
pub use results::{CompareArgs, FindMaxArgs, MergeArgs, ReportArgs, SweepArgs};

const EXAMPLES: &str = "\
Examples:
  dealer-loadgen run scenarios/shopping.yaml
      50 sessions a second for 15 seconds against a simulator inside this process
  dealer-loadgen run scenarios/shopping.yaml --endpoint http://127.0.0.1:8080 --rate 500/s --duration 2m \\
      --warmup 10s --threshold 'p99<250ms' --threshold 'errors<0.1%' --out results/
      against a dealer of yours; exit code 3 if a threshold does not hold
  dealer-loadgen check scenarios/shopping.yaml
      what would be sent, without sending it
  dealer-loadgen find-max scenarios/smoke.yaml --endpoint http://127.0.0.1:8080 --slo 'p99<50ms' --slo 'errors<0.5%'
      the highest rate of sessions that meets both
  dealer-loadgen compare results/monday results/today
      exit code 3 if today is slower or fails more, beyond what chance explains

Exit codes: 0 ok; 1 wrong usage or scenario; 2 failed while running; 3 a threshold does not hold, a check failed, or a comparison
found a regression; 4 the measurement itself is not valid; 130 and 143 after SIGINT and SIGTERM, with the results written.";

/// The command line.
#[derive(Debug, Parser)]
#[command(
    name = "dealer-loadgen",
    version,
    about = "Replays shopping scenarios against a dealer that speaks the Auto Agent Protocol, and measures honestly.",
    after_help = EXAMPLES,
    max_term_width = 100
)]
pub struct Cli {
    /// Format of the log on standard error; RUST_LOG sets how much (default: warn)
    #[arg(long, global = true, env = "DEALER_LOADGEN_LOG", default_value = "text", value_name = "text|json")]
    pub log: LogFormat,

    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands that take flags from a file (`--config`).
pub(crate) const WITH_FILE: [&str; 4] = ["run", "check", "find-max", "sweep"];

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run scenarios and report latencies and outcomes
    #[command(after_help = EXAMPLES)]
    Run(Box<RunArgs>),
    /// Check scenarios and explain what they would send, without sending anything
    Check(Box<CheckArgs>),
    /// Make a scenario of a simulator's journal, with its timing
    Import(ImportArgs),
    /// Find the highest rate of sessions that meets objectives; exit code 3 if none does
    FindMax(Box<FindMaxArgs>),
    /// Measure throughput over users, and fit how it scales
    Sweep(Box<SweepArgs>),
    /// Compare results with those of a baseline; exit code 3 on a regression
    Compare(CompareArgs),
    /// Merge the results of several machines into one
    Merge(MergeArgs),
    /// Write the page of a result again, perhaps beside a baseline
    Report(ReportArgs),
    /// Check a dealer against the protocol; exit code 3 if it breaks what it must keep, 2 if it is not reached
    Conform(Box<ConformArgs>),
}

/// The flags of `check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Scenario files; several mix with equal weight
    #[arg(required = true, value_name = "SCENARIO")]
    pub scenarios: Vec<PathBuf>,

    /// Flags of the load from a TOML file, named as they are here (rate = "100/s"); a flag or variable given wins
    #[arg(long, value_name = "FILE", env = "DEALER_LOADGEN_CONFIG")]
    pub config: Option<PathBuf>,

    /// The load to explain.
    #[command(flatten)]
    pub load: LoadArgs,
}

/// The flags of `import`.
#[derive(Debug, Args)]
pub struct ImportArgs {
    /// The journal: entries as JSON Lines, or a page of the simulator's `GET /journal`
    #[arg(value_name = "JOURNAL")]
    pub journal: PathBuf,

    /// The scenario to write; its sessions go into a file of the same name that ends in .jsonl
    #[arg(long, value_name = "FILE", env = "DEALER_LOADGEN_OUT", default_value = "replay.yaml")]
    pub out: PathBuf,

    /// Replace the files if they are there
    #[arg(long, value_parser = BoolishValueParser::new())]
    pub force: bool,
}

/// The flags of `run`.
#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    /// Scenario files; several mix with equal weight
    #[arg(required = true, value_name = "SCENARIO")]
    pub scenarios: Vec<PathBuf>,

    /// Whom requests go to.
    #[command(flatten)]
    pub dealer: DealerArgs,

    /// The URL that requests go to; no agent card is read. Needs --contract
    #[arg(long, value_name = "URL", env = "DEALER_LOADGEN_ENDPOINT_RAW", help_heading = "Dealer")]
    pub endpoint_raw: Option<String>,

    /// Flags from a TOML file, named as they are here (rate = "100/s"); a flag or variable given wins, but one that excludes
    /// another of the file is refused beside it
    #[arg(long, value_name = "FILE", env = "DEALER_LOADGEN_CONFIG")]
    pub config: Option<PathBuf>,

    /// What is sent when.
    #[command(flatten)]
    pub load: LoadArgs,

    /// No more open connections than this [default: as many as needed, up to 10000; with --http 2 one a thread]
    #[arg(
        long,
        value_name = "N",
        env = "DEALER_LOADGEN_CONNECTIONS",
        allow_hyphen_values = true,
        help_heading = "Connections"
    )]
    pub connections: Option<String>,

    /// How long a connection is used: forever, session, none, or for a number of requests such as 10..30
    #[arg(
        long,
        value_name = "HOW",
        env = "DEALER_LOADGEN_REUSE",
        default_value = "forever",
        help_heading = "Connections"
    )]
    pub reuse: String,

    /// Time limit of a request, from the send to the last byte
    #[arg(
        long,
        value_name = "DURATION",
        env = "DEALER_LOADGEN_TIMEOUT",
        allow_hyphen_values = true,
        default_value = "10s",
        help_heading = "Connections"
    )]
    pub timeout: String,

    /// Time limit of a connection's TCP handshake, and again of its TLS handshake
    #[arg(
        long,
        value_name = "DURATION",
        env = "DEALER_LOADGEN_CONNECT_TIMEOUT",
        allow_hyphen_values = true,
        default_value = "2s",
        help_heading = "Connections"
    )]
    pub connect_timeout: String,

    /// Who is asking, and whom to believe.
    #[command(flatten)]
    pub identity: IdentityArgs,

    /// How to come by a token.
    #[command(flatten)]
    pub oauth: OauthArgs,

    /// The version of HTTP: 1.1, or 2, where requests share connections as streams (with https by agreement, with http by prior
    /// knowledge)
    #[arg(
        long,
        value_name = "VERSION",
        env = "DEALER_LOADGEN_HTTP",
        default_value = "1.1",
        help_heading = "Connections"
    )]
    pub http: String,

    /// A condition that must hold, such as 'p99<250ms', 'search.p95<80ms', 'errors<0.1%', 'aap.RATE_LIMITED<1%' or
    /// 'rate>=495/s'; with a window behind the figure in each ten seconds, as in
    /// `p99[10s]<250ms`; repeatable
    #[arg(
        long = "threshold",
        value_name = "EXPR",
        env = "DEALER_LOADGEN_THRESHOLD",
        value_delimiter = '\n',
        help_heading = "Measurement"
    )]
    pub thresholds: Vec<String>,

    /// Hold replies against the schema of their skill: off, sample (one of twenty) or full; a breach is protocol.schema
    #[arg(
        long,
        value_name = "WHICH",
        env = "DEALER_LOADGEN_VALIDATE",
        default_value = "off",
        help_heading = "Measurement"
    )]
    pub validate: String,
    /// End the run when a threshold does not hold: over a window at once, over the run from its fifth second on
    #[arg(long, env = "DEALER_LOADGEN_ABORT_ON_FAIL", value_parser = BoolishValueParser::new(), help_heading = "Measurement")]
    pub abort_on_fail: bool,

    /// How long to wait, after the end, for what is on its way
    #[arg(
        long,
        value_name = "DURATION",
        env = "DEALER_LOADGEN_GRACE",
        allow_hyphen_values = true,
        default_value = "10s",
        help_heading = "Measurement"
    )]
    pub grace: String,

    /// Write the results into this folder: summary.json, report.html, junit.xml, intervals.hlog, series.csv, *.hgrm
    #[arg(long, value_name = "DIR", env = "DEALER_LOADGEN_OUT", help_heading = "Output")]
    pub out: Option<PathBuf>,

    /// What to print on standard output: text or json (the summary)
    #[arg(
        long,
        value_name = "FORMAT",
        env = "DEALER_LOADGEN_FORMAT",
        default_value = "text",
        help_heading = "Output"
    )]
    pub format: String,

    /// Show the run's counters as OpenMetrics text at this address while it goes on; a port alone is on 127.0.0.1
    #[arg(long, value_name = "ADDR", env = "DEALER_LOADGEN_METRICS", help_heading = "Output")]
    pub metrics: Option<String>,

    /// Show no progress
    #[arg(long, short, env = "DEALER_LOADGEN_QUIET", value_parser = BoolishValueParser::new(), help_heading = "Output")]
    pub quiet: bool,
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory, FromArgMatches};
    use dealer_sim::flags_file;

    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_file_sets_flags_and_a_flag_wins() {
        let table =
            "rate = \"7/s\"\nquiet = true\nthreshold = [\"p99<1s\", \"errors<1%\"]\nmax-in-flight = 5";
        let table = table.parse().unwrap();
        let command = flags_file::apply(Cli::command(), &WITH_FILE, "c.toml", &table).unwrap();
        command.clone().debug_assert();
        let read = |flags: &[&str]| {
            let line = [&["dealer-loadgen", "run", "s.yaml"], flags].concat();
            let matches = command.clone().try_get_matches_from(line).unwrap();
            match Cli::from_arg_matches(&matches).unwrap().command {
                Command::Run(run) => run,
                _ => panic!("not run"),
            }
        };
        let run = read(&[]);
        assert_eq!((run.load.rate.as_deref(), run.quiet, run.thresholds.len()), (Some("7/s"), true, 2));
        assert_eq!(run.load.max_in_flight, "5");
        assert_eq!(read(&["--rate", "9/s"]).load.rate.as_deref(), Some("9/s"));
        let wrong = "rat = \"7/s\"\nquiet = \"yes\"".parse().unwrap();
        let error = flags_file::apply(Cli::command(), &WITH_FILE, "c.toml", &wrong).unwrap_err().to_string();
        assert!(error.contains("\"rat\" is no flag") && error.contains("\"quiet\" must be true"), "{error}");
    }
}
