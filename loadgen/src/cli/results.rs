//! The flags of the commands that read results, and of those that search.

use std::path::PathBuf;

use clap::Args;

use super::RunArgs;

/// The flags of `find-max`.
#[derive(Debug, Args)]
pub struct FindMaxArgs {
    /// The flags of `run`; `--rate` is the first rate tried.
    #[command(flatten)]
    pub run: RunArgs,

    /// A condition that the rate must meet, in the form of --threshold; repeatable
    #[arg(
        long,
        required = true,
        value_name = "EXPR",
        env = "DEALER_LOADGEN_SLO",
        value_delimiter = '\n',
        help_heading = "Search"
    )]
    pub slo: Vec<String>,

    /// How long each rate is measured
    #[arg(
        long,
        value_name = "DURATION",
        env = "DEALER_LOADGEN_STEP_DURATION",
        default_value = "10s",
        help_heading = "Search"
    )]
    pub step_duration: String,

    /// How long each rate runs before it is measured
    #[arg(
        long,
        value_name = "DURATION",
        env = "DEALER_LOADGEN_SETTLE",
        default_value = "2s",
        help_heading = "Search"
    )]
    pub settle: String,

    /// No rate above this
    #[arg(
        long,
        value_name = "RATE",
        env = "DEALER_LOADGEN_MAX_RATE",
        default_value = "100000/s",
        help_heading = "Search"
    )]
    pub max_rate: String,
}

/// The flags of `sweep`.
#[derive(Debug, Args)]
pub struct SweepArgs {
    /// The flags of `run`; `--users` takes several numbers here, such as 1,2,4,8, each of which runs for `--duration`.
    #[command(flatten)]
    pub run: RunArgs,
}

/// The flags of `compare`.
#[derive(Debug, Args)]
pub struct CompareArgs {
    /// The result folder to compare with; several of equal runs with commas between them
    #[arg(required = true, value_name = "BASE", value_delimiter = ',')]
    pub base: Vec<PathBuf>,

    /// The result folder, or folders, of what is new
    #[arg(required = true, value_name = "NEW")]
    pub new: String,

    /// A difference below this share is none, such as 2%. [default: 1%; with one run a side 3%, and 5% for p99]
    #[arg(long, value_name = "RATIO", env = "DEALER_LOADGEN_ALLOWANCE")]
    pub allowance: Option<String>,

    /// The seed of the resampling
    #[arg(long, value_name = "N", env = "DEALER_LOADGEN_SEED", default_value = "42")]
    pub seed: String,

    /// Write a page with the comparison
    #[arg(long, value_name = "FILE")]
    pub html: Option<PathBuf>,

    /// What to print on standard output: text or json
    #[arg(long, value_name = "FORMAT", env = "DEALER_LOADGEN_FORMAT", default_value = "text")]
    pub format: String,
}

/// The flags of `merge`.
#[derive(Debug, Args)]
pub struct MergeArgs {
    /// The folder to write
    #[arg(required = true, value_name = "OUT")]
    pub out: PathBuf,

    /// The result folders to merge: parts of one load, from several machines
    #[arg(required = true, value_name = "IN")]
    pub inputs: Vec<PathBuf>,
}

/// The flags of `report`.
#[derive(Debug, Args)]
pub struct ReportArgs {
    /// A result folder: its report.html is written again
    #[arg(required = true, value_name = "DIR")]
    pub folder: PathBuf,

    /// Another result folder to show beside it
    #[arg(long, value_name = "DIR")]
    pub baseline: Option<PathBuf>,
}
