//! The flags that say which dealer is meant, and what may be sent to it.

use clap::Args;
use clap::builder::BoolishValueParser;

/// The dealer.
#[derive(Debug, Clone, Default, Args)]
pub struct DealerArgs {
    /// The dealer: its base URL or the URL of its agent card. Without it, a simulator runs inside this process
    #[arg(long, value_name = "URL", env = "DEALER_LOADGEN_ENDPOINT", help_heading = "Dealer")]
    pub endpoint: Option<String>,

    /// The contract to speak and to judge by: 3.0, 2.0, 1.3, 1.2, 1.1 or 1.0; taken from the card unless given
    #[arg(long, value_name = "VERSION", env = "DEALER_LOADGEN_CONTRACT", help_heading = "Dealer")]
    pub contract: Option<String>,

    /// Send leads to a dealer that does not prove itself a simulator; they are marked as tests
    #[arg(long, env = "DEALER_LOADGEN_ALLOW_REAL_LEADS", value_parser = BoolishValueParser::new(), help_heading = "Dealer")]
    pub allow_real_leads: bool,

    /// Speak the unreleased contract 2.0 to a host other than this one, which you know to be a test system
    #[arg(long, env = "DEALER_LOADGEN_ALLOW_DRAFT_CONTRACT", value_parser = BoolishValueParser::new(), help_heading = "Dealer")]
    pub allow_draft_contract: bool,
}
