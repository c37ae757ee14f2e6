//! The flags of `conform`.

use std::path::PathBuf;

use clap::Args;

use super::{DealerArgs, IdentityArgs};

/// The flags of `conform`.
#[derive(Debug, Clone, Args)]
pub struct ConformArgs {
    /// Whom to judge.
    #[command(flatten)]
    pub dealer: DealerArgs,

    /// What the dealer does without the A2A headers: usual (2.0 refuses, 3.0 does either), strict or pinned
    #[arg(
        long = "headers",
        value_name = "MODE",
        env = "DEALER_LOADGEN_HEADERS",
        default_value = "usual",
        help_heading = "Dealer"
    )]
    pub header_mode: String,

    /// Time limit of the whole
    #[arg(
        long,
        value_name = "DURATION",
        env = "DEALER_LOADGEN_CONFORM_TIMEOUT",
        allow_hyphen_values = true,
        default_value = "60s",
        help_heading = "Connections"
    )]
    pub timeout: String,

    /// Time limit of one request, from the send to the last byte
    #[arg(
        long,
        value_name = "DURATION",
        env = "DEALER_LOADGEN_REQUEST_TIMEOUT",
        allow_hyphen_values = true,
        default_value = "5s",
        help_heading = "Connections"
    )]
    pub request_timeout: String,

    /// Who is asking, and whom to believe.
    #[command(flatten)]
    pub identity: IdentityArgs,

    /// Write conformance.json, conformance.html, conformance.txt and junit.xml into this folder
    #[arg(long, value_name = "DIR", env = "DEALER_LOADGEN_OUT", help_heading = "Output")]
    pub out: Option<PathBuf>,

    /// What to print on standard output: text, json, html, junit, or line (the verdict alone)
    #[arg(
        long,
        value_name = "FORMAT",
        env = "DEALER_LOADGEN_FORMAT",
        default_value = "text",
        help_heading = "Output"
    )]
    pub format: String,
}
