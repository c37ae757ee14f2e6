//! The flags that say what is sent when.

use clap::Args;

/// The load.
#[derive(Debug, Clone, Args)]
pub struct LoadArgs {
    /// Sessions that start per second, on a schedule that waits for nobody; 10/s..500/s is a ramp over the whole time
    /// [default: 50/s]
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

    /// How sessions are spaced: constant, poisson, burst:N (N at once) or trace:FILE (a time from the start in each line,
    /// such as 1.5s) [default: constant]
    #[arg(long, value_name = "SPACING", env = "DEALER_LOADGEN_ARRIVALS", help_heading = "Load")]
    pub arrivals: Option<String>,

    /// Let the rate swing around --rate: a period and the share of the rate, such as 60s:50%
    #[arg(long, value_name = "PERIOD:SHARE", env = "DEALER_LOADGEN_SINE", help_heading = "Load")]
    pub sine: Option<String>,

    /// Replay a trace faster or slower: 2x, 0.5x
    #[arg(
        long,
        value_name = "FACTOR",
        env = "DEALER_LOADGEN_TRACE_SPEED",
        allow_hyphen_values = true,
        default_value = "1x",
        help_heading = "Load"
    )]
    pub trace_speed: String,

    /// Do part I of N of the whole: N processes with the same other flags do together what one would do
    #[arg(long, value_name = "I/N", env = "DEALER_LOADGEN_SHARD", help_heading = "Load")]
    pub shard: Option<String>,

    /// Start at this time, so that shards start together: RFC 3339, or +5s from now
    #[arg(long, value_name = "TIME", env = "DEALER_LOADGEN_START_AT", help_heading = "Load")]
    pub start_at: Option<String>,

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

    /// Let sessions and steps that are due within so long go together, at its end: a wake-up for each costs more CPU than a
    /// request. Their lag is measured as ever; 10ms at most
    #[arg(
        long,
        value_name = "DURATION",
        env = "DEALER_LOADGEN_SLOT",
        allow_hyphen_values = true,
        default_value = "100us",
        help_heading = "Load"
    )]
    pub slot: String,

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

    /// The interface of the dealer to speak through: a2a, mcp (2026-07-28, without sessions) or pap. The scenario is the same;
    /// with --endpoint-raw, give the URL of the MCP endpoint, or the one below which the paths of PAP's skills stand
    #[arg(
        long,
        value_name = "a2a|mcp|pap",
        env = "DEALER_LOADGEN_BINDING",
        default_value = "a2a",
        help_heading = "Load"
    )]
    pub binding: String,

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

    /// Worker threads [default: one per core with --users, and no more than the rate needs without]
    #[arg(
        long,
        value_name = "N",
        env = "DEALER_LOADGEN_THREADS",
        allow_hyphen_values = true,
        help_heading = "Load"
    )]
    pub threads: Option<String>,
}
