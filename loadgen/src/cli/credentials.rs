//! The flags that say who is asking, and whom to believe: secrets come from the environment or from files, never from the
//! command line, which every user of a machine can read.

use std::path::PathBuf;

use clap::Args;
use clap::builder::BoolishValueParser;

/// What requests carry, and whose certificates are believed.
#[derive(Debug, Clone, Default, Args)]
pub struct IdentityArgs {
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

    /// Send the value of an environment variable as a header, such as an API key: 'X-Api-Key: VARIABLE'; repeatable
    #[arg(
        long = "header-env",
        value_name = "NAME: VARIABLE",
        env = "DEALER_LOADGEN_HEADER_ENV",
        value_delimiter = '\n',
        help_heading = "Connections"
    )]
    pub header_env: Vec<String>,

    /// A PEM file with the certificate to show to the server, and those that vouch for it; needs --key
    #[arg(long, value_name = "FILE", env = "DEALER_LOADGEN_CERT", help_heading = "Connections")]
    pub cert: Option<PathBuf>,

    /// The PEM file of the certificate's private key
    #[arg(long, value_name = "FILE", env = "DEALER_LOADGEN_KEY", help_heading = "Connections")]
    pub key: Option<PathBuf>,

    /// A PEM file of certificate authorities to believe, instead of this machine's
    #[arg(long, value_name = "FILE", env = "DEALER_LOADGEN_CA", help_heading = "Connections")]
    pub ca: Option<PathBuf>,

    /// Believe any certificate
    #[arg(long, env = "DEALER_LOADGEN_INSECURE", value_parser = BoolishValueParser::new(), help_heading = "Connections")]
    pub insecure: bool,
}

/// A token of OAuth 2.
#[derive(Debug, Clone, Default, Args)]
pub struct OauthArgs {
    /// Ask for a token here (OAuth 2 client credentials) and send it; renewed before it expires
    #[arg(long, value_name = "URL", env = "DEALER_LOADGEN_OAUTH_URL", help_heading = "Connections")]
    pub oauth_url: Option<String>,

    /// The client's id for --oauth-url
    #[arg(long, value_name = "ID", env = "DEALER_LOADGEN_OAUTH_CLIENT", help_heading = "Connections")]
    pub oauth_client: Option<String>,

    /// The environment variable that holds the client's secret
    #[arg(long, value_name = "NAME", env = "DEALER_LOADGEN_OAUTH_SECRET_ENV", help_heading = "Connections")]
    pub oauth_secret_env: Option<String>,

    /// The scope to ask for, if any
    #[arg(long, value_name = "SCOPE", env = "DEALER_LOADGEN_OAUTH_SCOPE", help_heading = "Connections")]
    pub oauth_scope: Option<String>,
}
