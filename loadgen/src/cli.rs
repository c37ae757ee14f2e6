//! What a user types. Each flag has a variable of the environment too; those that repeat take one value per line there.
//!
//! Values are kept as text here and read in `settings`, so that all that is wrong is said at once.

use std::path::PathBuf;

use clap::builder::BoolishValueParser;
use clap::{Args, Parser, Subcommand};

mod results;

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
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// What to do.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Run scenarios and report latencies and outcomes
    #[command(after_help = EXAMPLES)]
    Run(Box<RunArgs>),
    /// Check scenarios and explain what they would send, without sending anything
    Check(CheckArgs),
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
}

/// The flags of `check`.
#[derive(Debug, Args)]
pub struct CheckArgs {
    /// Scenario files; several mix with equal weight
    #[arg(required = true, value_name = "SCENARIO")]
    pub scenarios: Vec<PathBuf>,

    /// Set a variable of the scenarios
    #[arg(long = "set", value_name = "NAME=VALUE", env = "DEALER_LOADGEN_SET", value_delimiter = '\n')]
    pub sets: Vec<String>,

    /// The seed of everything random
    #[arg(
        long,
        value_name = "N",
        env = "DEALER_LOADGEN_SEED",
        allow_hyphen_values = true,
        default_value = "42"
    )]
    pub seed: String,
}

/// The flags of `run`.
#[derive(Debug, Clone, Args)]
pub struct RunArgs {
    /// Scenario files; several mix with equal weight
    #[arg(required = true, value_name = "SCENARIO")]
    pub scenarios: Vec<PathBuf>,

    /// The dealer: its base URL or the URL of its agent card. Without it, a simulator runs inside this process
    #[arg(long, value_name = "URL", env = "DEALER_LOADGEN_ENDPOINT", help_heading = "Dealer")]
    pub endpoint: Option<String>,

    /// The URL that requests go to; no agent card is read. Needs --contract
    #[arg(long, value_name = "URL", env = "DEALER_LOADGEN_ENDPOINT_RAW", help_heading = "Dealer")]
    pub endpoint_raw: Option<String>,

    /// The contract to speak, 3.0 or 2.0; taken from the card unless given
    #[arg(long, value_name = "VERSION", env = "DEALER_LOADGEN_CONTRACT", help_heading = "Dealer")]
    pub contract: Option<String>,

    /// Send leads to a dealer that does not prove itself a simulator; they are marked as tests
    #[arg(long, env = "DEALER_LOADGEN_ALLOW_REAL_LEADS", value_parser = BoolishValueParser::new(), help_heading = "Dealer")]
    pub allow_real_leads: bool,

    /// Speak the unreleased contract 2.0 to a host other than this one, which you know to be a test system
    #[arg(long, env = "DEALER_LOADGEN_ALLOW_DRAFT_CONTRACT", value_parser = BoolishValueParser::new(), help_heading = "Dealer")]
    pub allow_draft_contract: bool,

    /// Sessions that start per second, on a schedule that waits for nobody [default: 50/s]
    #[arg(
        long,
        value_name = "RATE",
        env = "DEALER_LOADGEN_RATE",
        allow_hyphen_values = true,
        help_heading = "Load"
    )]
    pub rate: Option<String>,

    /// Instead of a rate: this many users, who each run one session after another
    #[arg(
        long,
        value_name = "N",
        env = "DEALER_LOADGEN_USERS",
        allow_hyphen_values = true,
        help_heading = "Load"
    )]
    pub users: Option<String>,

    /// Instead of a rate: rates over time, linear in between, such as 0s:0/s,30s:500/s,2m:500/s
    #[arg(
        long,
        value_name = "STAGES",
        env = "DEALER_LOADGEN_STAGES",
        allow_hyphen_values = true,
        help_heading = "Load"
    )]
    pub stages: Option<String>,

    /// How sessions are spaced: constant or poisson [default: constant]
    #[arg(long, value_name = "SPACING", env = "DEALER_LOADGEN_ARRIVALS", help_heading = "Load")]
    pub arrivals: Option<String>,

    /// How long to measure, after the warm-up [default: 15s, or until --sessions have run]
    #[arg(
        long,
        value_name = "DURATION",
        env = "DEALER_LOADGEN_DURATION",
        allow_hyphen_values = true,
        help_heading = "Load"
    )]
    pub duration: Option<String>,

    /// Stop after this many sessions
    #[arg(
        long,
        value_name = "N",
        env = "DEALER_LOADGEN_SESSIONS",
        allow_hyphen_values = true,
        help_heading = "Load"
    )]
    pub sessions: Option<String>,

    /// The same load before the measurement, not counted
    #[arg(
        long,
        value_name = "DURATION",
        env = "DEALER_LOADGEN_WARMUP",
        allow_hyphen_values = true,
        default_value = "0s",
        help_heading = "Load"
    )]
    pub warmup: String,

    /// No more sessions at a time than this
    #[arg(
        long,
        value_name = "N",
        env = "DEALER_LOADGEN_MAX_IN_FLIGHT",
        allow_hyphen_values = true,
        default_value = "10000",
        help_heading = "Load"
    )]
    pub max_in_flight: String,

    /// What a session does that finds no place: queue (its wait counts as response time) or drop (counted as not_sent)
    #[arg(
        long,
        value_name = "WHAT",
        env = "DEALER_LOADGEN_ON_FULL",
        default_value = "queue",
        help_heading = "Load"
    )]
    pub on_full: String,

    /// Stretch the scenario's think times: 1x, 0.1x, 0x
    #[arg(
        long,
        value_name = "FACTOR",
        env = "DEALER_LOADGEN_THINK",
        allow_hyphen_values = true,
        default_value = "1x",
        help_heading = "Load"
    )]
    pub think: String,

    /// The seed of everything random
    #[arg(
        long,
        value_name = "N",
        env = "DEALER_LOADGEN_SEED",
        allow_hyphen_values = true,
        default_value = "42",
        help_heading = "Load"
    )]
    pub seed: String,

    /// Set a variable of the scenarios
    #[arg(
        long = "set",
        value_name = "NAME=VALUE",
        env = "DEALER_LOADGEN_SET",
        value_delimiter = '\n',
        help_heading = "Load"
    )]
    pub sets: Vec<String>,

    /// Worker threads [default: one per core]
    #[arg(
        long,
        value_name = "N",
        env = "DEALER_LOADGEN_THREADS",
        allow_hyphen_values = true,
        help_heading = "Load"
    )]
    pub threads: Option<String>,

    /// No more open connections than this [default: as many as needed, up to 10000]
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

    /// A header for every request
    #[arg(
        long = "header",
        value_name = "NAME: VALUE",
        env = "DEALER_LOADGEN_HEADER",
        hide_env_values = true,
        value_delimiter = '\n',
        help_heading = "Connections"
    )]
    pub headers: Vec<String>,

    /// Send the value of this environment variable as a bearer token
    #[arg(long, value_name = "NAME", env = "DEALER_LOADGEN_BEARER_ENV", help_heading = "Connections")]
    pub bearer_env: Option<String>,

    /// A PEM file of certificate authorities to believe, instead of this machine's
    #[arg(long, value_name = "FILE", env = "DEALER_LOADGEN_CA", help_heading = "Connections")]
    pub ca: Option<PathBuf>,

    /// Believe any certificate
    #[arg(long, env = "DEALER_LOADGEN_INSECURE", value_parser = BoolishValueParser::new(), help_heading = "Connections")]
    pub insecure: bool,

    /// The version of HTTP; only 1.1 so far
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
