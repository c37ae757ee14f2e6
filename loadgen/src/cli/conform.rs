//! The flags of `conform`.

use std::path::PathBuf;

use clap::Args;
use clap::builder::BoolishValueParser;

/// The flags of `conform`.
#[derive(Debug, Clone, Args)]
pub struct ConformArgs {
    /// The dealer: its base URL or the URL of its agent card. Without it, the simulator inside this process is checked
    #[arg(long, value_name = "URL", env = "DEALER_LOADGEN_ENDPOINT", help_heading = "Dealer")]
    pub endpoint: Option<String>,

    /// The contract to judge by, such as 3.0, 2.0 or 1.2; taken from the card unless given
    #[arg(long, value_name = "VERSION", env = "DEALER_LOADGEN_CONTRACT", help_heading = "Dealer")]
    pub contract: Option<String>,

    /// What the dealer does without the A2A headers: usual (2.0 refuses, 3.0 does either), strict or pinned
    #[arg(
        long,
        value_name = "MODE",
        env = "DEALER_LOADGEN_HEADERS",
        default_value = "usual",
        help_heading = "Dealer"
    )]
    pub headers: String,

    /// Send leads to a dealer that does not prove itself a simulator; they are marked as tests
    #[arg(long, env = "DEALER_LOADGEN_ALLOW_REAL_LEADS", value_parser = BoolishValueParser::new(), help_heading = "Dealer")]
    pub allow_real_leads: bool,

    /// Speak the unreleased contract 2.0 to a host other than this one, which you know to be a test system
    #[arg(long, env = "DEALER_LOADGEN_ALLOW_DRAFT_CONTRACT", value_parser = BoolishValueParser::new(), help_heading = "Dealer")]
    pub allow_draft_contract: bool,

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

    /// A header for every request
    #[arg(
        long = "header",
        value_name = "NAME: VALUE",
        env = "DEALER_LOADGEN_HEADER",
        hide_env_values = true,
        value_delimiter = '\n',
        help_heading = "Connections"
    )]
    pub header: Vec<String>,

    /// Send the value of this environment variable as a bearer token
    #[arg(long, value_name = "NAME", env = "DEALER_LOADGEN_BEARER_ENV", help_heading = "Connections")]
    pub bearer_env: Option<String>,

    /// Send the value of an environment variable as a header, such as an API key: 'X-Api-Key: VARIABLE'; repeatable
    #[arg(
        long = "header-env",
        value_name = "NAME: VARIABLE",
        env = "DEALER_LOADGEN_HEADER_ENV",
        value_delimiter = '\n',
        help_heading = "Connections"
    )]
    pub header_env: Vec<String>,

    /// A PEM file of certificate authorities to believe, instead of this machine's
    #[arg(long, value_name = "FILE", env = "DEALER_LOADGEN_CA", help_heading = "Connections")]
    pub ca: Option<PathBuf>,

    /// Believe any certificate
    #[arg(long, env = "DEALER_LOADGEN_INSECURE", value_parser = BoolishValueParser::new(), help_heading = "Connections")]
    pub insecure: bool,

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
