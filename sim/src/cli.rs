//! The command line: what a user types, and what it means.

mod misuse;

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::PathBuf;

use clap::{Args, CommandFactory, FromArgMatches, Parser, Subcommand, ValueEnum};

pub use misuse::Misuse;

use misuse::count;

use crate::auth::Named;
use crate::conduct;
use crate::dealer::clock::ClockMode;
use crate::dealer::limiter::RateLimit;
use crate::document::units;
use crate::flags_file::{self, ConfigError};
use crate::log::LogFormat;
use crate::protocol::discovery::Paper;
use crate::protocol::{Bindings, Contract, HeaderMode, Skill};
use crate::server::leads_file::SyncPolicy;
use crate::world::MOST_DEALERS;

/// A car dealer that does not exist, to test buyer agents against.
#[derive(Debug, Parser)]
#[command(
    name = "dealer-sim",
    version,
    about = "A car dealer that does not exist: serves synthetic inventory over the Auto Agent Protocol (A2A 1.0 JSON-RPC).",
    after_help = "Example:\n  dealer-sim serve --seed 7 --vehicles 2000\n  then point a buyer agent at the printed \"card\" URL.\n\n\
                  Every flag can also be set by an environment variable: --rate-limit is DEALER_SIM_RATE_LIMIT."
)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Command,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Serve the dealer until SIGINT or SIGTERM.
    #[command(
        after_help = "Examples:\n  dealer-sim serve\n  dealer-sim serve --contract 2.0 --headers strict --listen 127.0.0.1:0\n  \
                            dealer-sim serve --clock 2026-01-01T12:00:00Z --rate-limit 100/s,burst=20,key=client\n\n\
                            The first line on standard output is one JSON object with the URLs in use; the last one, after a stop, \
                            says what was served."
    )]
    Serve(Box<ServeArgs>),
    /// Print the stock that `serve` would hold with the same flags.
    #[command(
        after_help = "Example:\n  dealer-sim inventory --seed 42 --clock 2026-01-01T12:00:00Z | sha256sum"
    )]
    Inventory(InventoryArgs),
    /// Print the agent card, or another document, that `serve` would publish with the same flags.
    #[command(after_help = "Examples:\n  dealer-sim card --public-url https://dealer.example.test\n  \
                            dealer-sim card --document openapi > openapi.json")]
    Card(Box<CardArgs>),
    /// List every effect, explain a fault, or check a plan.
    #[command(
        subcommand,
        after_help = "Examples:\n  dealer-sim faults list\n  dealer-sim faults check scenarios/faults/*.yaml"
    )]
    Faults(FaultsCommand),
    /// Report whether the callers of a running dealer keep the protocol.
    #[command(after_help = "Examples:\n  dealer-sim conduct --admin http://127.0.0.1:8081\n  \
                            dealer-sim conduct --fail-on violation --format junit > conduct.xml\n\n\
                            With --fail-on the exit code is 3 when a rule of that severity or a graver one was broken.")]
    Conduct(ConductArgs),
    /// Exit with 0 when a dealer's admin endpoint says that it is ready.
    #[command(after_help = "Example:\n  dealer-sim health http://127.0.0.1:8081")]
    Health(HealthArgs),
}

/// The commands below `faults`.
#[derive(Debug, Subcommand)]
pub enum FaultsCommand {
    /// List every effect with its parameters and what a client sees.
    List {
        /// Form of the output.
        #[arg(long, default_value = "text", value_name = "text|json")]
        format: ListFormat,
    },
    /// Say what an effect does, or what the fault of a repro string was and why.
    Explain {
        /// An effect's name, or the repro string of X-Sim-Fault-Applied.
        what: String,
        /// The plan that the repro string speaks of.
        #[arg(long, value_name = "FILE")]
        faults: Vec<PathBuf>,
    },
    /// Check plans; every fault is told with its place.
    Check {
        /// The plans.
        #[arg(required = true, value_name = "FILE")]
        files: Vec<PathBuf>,
    },
}

/// `--format` of `faults list`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum ListFormat {
    Text,
    Json,
}

/// What the stock is made of.
#[derive(Debug, Clone, Args)]
pub struct StockArgs {
    /// Seed of everything that is drawn; the same seed gives the same stock, byte for byte.
    #[arg(long, env = "DEALER_SIM_SEED", default_value_t = 42, value_name = "N", value_parser = count::<u64>("a whole number", 0, u64::MAX))]
    pub seed: u64,
    /// How many vehicles each dealer knows, sold ones among them (1 to 10,000,000).
    #[arg(long, env = "DEALER_SIM_VEHICLES", default_value_t = 500, value_name = "N", value_parser = count::<u32>("a number of vehicles", 1, 10_000_000))]
    pub vehicles: u32,
    /// The business clock: "real", or frozen at an instant such as 2026-01-01T12:00:00Z; replies then repeat for a seed.
    #[arg(long, env = "DEALER_SIM_CLOCK", default_value = "real", value_name = "real|RFC3339")]
    pub clock: ClockMode,
    /// The dealer's name, rooftops and opening hours, from a TOML file.
    #[arg(long, env = "DEALER_SIM_PROFILE", value_name = "FILE")]
    pub profile: Option<PathBuf>,
    /// Your own stock instead of --vehicles, from a file of AAP vehicles: a JSON array, one object a line, or a table whose
    /// name ends in .csv.
    #[arg(long, env = "DEALER_SIM_INVENTORY", value_name = "FILE")]
    pub inventory: Option<PathBuf>,
}

/// Flags of `serve` and `card`.
#[derive(Debug, Clone, Args)]
pub struct ServeArgs {
    /// Address of the dealer's endpoint; port 0 takes a free one.
    #[arg(
        long,
        short,
        env = "DEALER_SIM_LISTEN",
        default_value = "127.0.0.1:8080",
        value_name = "ADDR:PORT",
        value_parser = parse_listen
    )]
    pub listen: SocketAddr,
    /// Address of the admin endpoint, or "off".
    #[arg(long, env = "DEALER_SIM_ADMIN", default_value = "127.0.0.1:8081", value_name = "ADDR:PORT|off", value_parser = parse_admin)]
    pub admin: AdminAddress,
    /// Write the first output line to this file, too, once the sockets accept.
    #[arg(long, env = "DEALER_SIM_READY_FILE", value_name = "PATH")]
    pub ready_file: Option<PathBuf>,
    /// Base URL that the agent card gives, when clients reach the dealer under another address.
    #[arg(long, env = "DEALER_SIM_PUBLIC_URL", value_name = "URL", value_parser = parse_public_url)]
    pub public_url: Option<String>,
    /// Speak TLS (and HTTP/2 to those who want it) with the certificate in this PEM file.
    #[arg(long, env = "DEALER_SIM_TLS_CERT", value_name = "FILE", conflicts_with = "tls_self_signed")]
    pub tls_cert: Option<PathBuf>,
    /// The key of --tls-cert, from a PEM file.
    #[arg(long, env = "DEALER_SIM_TLS_KEY", value_name = "FILE")]
    pub tls_key: Option<PathBuf>,
    /// Speak TLS with a certificate made at the start, for localhost and the host of the dealer's URL. The admin endpoint
    /// shows it at /tls/certificate, for clients to believe; its key is written nowhere.
    #[arg(long, env = "DEALER_SIM_TLS_SELF_SIGNED")]
    pub tls_self_signed: bool,
    /// Refuse TLS clients without a certificate of the authorities in this PEM file.
    #[arg(long, env = "DEALER_SIM_CLIENT_CA", value_name = "FILE")]
    pub client_ca: Option<PathBuf>,
    /// Ask callers for credentials: bearer:VARIABLE (the environment variable that holds the token), api-key:HEADER:VARIABLE, or
    /// mtls (a certificate of --client-ca); of several any one will do. The agent card, which stays public, declares them.
    #[arg(long, env = "DEALER_SIM_AUTH", value_name = "HOW", value_delimiter = ',')]
    pub auth: Vec<Named>,
    /// The environment variable that holds the token which the admin endpoint asks for (Authorization: Bearer); needed
    /// where --admin is no loopback address.
    #[arg(long, env = "DEALER_SIM_ADMIN_TOKEN_ENV", value_name = "NAME")]
    pub admin_token_env: Option<String>,
    /// Web pages that may use the MCP endpoint, by their origins such as `https://chat.example`, separated by commas; "*" for any.
    /// Pages of this machine and of --public-url always may; requests that come from no page are not asked.
    #[arg(long, env = "DEALER_SIM_ORIGINS", value_name = "LIST", value_delimiter = ',', value_parser = parse_origin)]
    pub origins: Vec<String>,
    /// AAP contract to speak: 3.0, 2.0 (the draft), 1.3, 1.2, 1.1 or 1.0.
    #[arg(long, env = "DEALER_SIM_CONTRACT", default_value = Contract::NEWEST.name, value_name = "VERSION")]
    pub contract: Contract,
    /// What to do with the A2A headers: accept requests that lack them ("pinned"), refuse those ("strict"), or overlook the
    /// headers whatever they say ("ignored") [default: pinned for 3.0, strict for 2.0, ignored for 1.x]
    #[arg(long, env = "DEALER_SIM_HEADERS", value_name = "pinned|strict|ignored")]
    pub headers: Option<HeaderChoice>,
    /// Interfaces to serve, separated by commas: a2a, mcp, pap; what the contract has [default: all for 3.0, a2a before]
    #[arg(long, env = "DEALER_SIM_DOORS", value_name = "LIST")]
    pub doors: Option<Bindings>,
    /// Serve this JSON file as /.well-known/poppy.json, as it is, instead of one that is made.
    #[arg(long, env = "DEALER_SIM_POPPY", value_name = "FILE")]
    pub poppy: Option<PathBuf>,
    /// Correct what published documents say, from a JSON file of merge patches: {"card": {…}, "poppy": {…}, "openapi": {…},
    /// "ai-catalog": {…}, "api-catalog": {…}, "server-card": {…}}; "card" patches the params of the card's AAP entry, and {base_url} in a text
    /// stands for the dealer's base URL.
    #[arg(long, env = "DEALER_SIM_DOCUMENTS", value_name = "FILE")]
    pub documents: Option<PathBuf>,
    #[command(flatten)]
    #[allow(missing_docs)]
    pub stock: StockArgs,
    /// How many dealers to serve (1 to 1000), each below /d/<dealer_id> with a card, stock, limits and faults of its own;
    /// the first one answers at the root, too, and / lists them.
    #[arg(long, env = "DEALER_SIM_DEALERS", default_value_t = 1, value_name = "N", value_parser = count::<u16>("a number of dealers", 1, u64::from(MOST_DEALERS)))]
    pub dealers: u16,
    /// Skills to offer, separated by commas.
    #[arg(long, env = "DEALER_SIM_SKILLS", value_name = "LIST", value_delimiter = ',', default_values = ["dealer.information", "inventory.facets", "inventory.search", "inventory.vehicle", "lead.submit"])]
    pub skills: Vec<Skill>,
    /// Refuse calls over a rate with RATE_LIMITED, such as 100/s,burst=20,key=client (or conversation, global).
    #[arg(long, env = "DEALER_SIM_RATE_LIMIT", value_name = "RATE")]
    pub rate_limit: Option<RateLimit>,
    /// Plan of faults, from a YAML or JSON file; several files append.
    #[arg(long, env = "DEALER_SIM_FAULTS", value_name = "FILE", value_delimiter = ',')]
    pub faults: Vec<PathBuf>,
    /// Take magic values, which ask for faults, for ordinary ones.
    #[arg(long, env = "DEALER_SIM_NO_MAGIC")]
    pub no_magic: bool,
    /// Neither take faults from X-Sim-Fault nor tell of them in X-Sim-Fault-Applied.
    #[arg(long, env = "DEALER_SIM_NO_FAULT_HEADERS")]
    pub no_fault_headers: bool,
    /// How many entries the journal keeps (0 to 10,000,000); 0 switches it off.
    #[arg(long, env = "DEALER_SIM_JOURNAL", default_value_t = 10_000, value_name = "N", value_parser = count::<u64>("a number of entries", 0, 10_000_000))]
    pub journal: u64,
    /// How many bytes of texts and bodies the journal keeps, such as 64MiB (up to 64GiB).
    #[arg(long, env = "DEALER_SIM_JOURNAL_BYTES", default_value = "64MiB", value_name = "SIZE", value_parser = parse_size)]
    pub journal_bytes: u64,
    /// How many bytes of a reply the journal keeps, such as 64KiB; rules of conduct about listings need whole replies.
    #[arg(long, env = "DEALER_SIM_JOURNAL_REPLY_BYTES", default_value = "1KiB", value_name = "SIZE", value_parser = parse_size)]
    pub journal_reply_bytes: u64,
    /// Take names, addresses, free texts and the like out of the journal, before they are stored, and out of what /leads shows. Marks stand for
    /// them, so that a repetition is still known for one.
    #[arg(long, env = "DEALER_SIM_REDACT")]
    pub redact: bool,
    /// Append every lead to this file before it is acknowledged, and know the leads in it at the start: those of a dealer that
    /// was killed, with their idempotency keys and bookings.
    #[arg(long, env = "DEALER_SIM_LEADS", value_name = "FILE")]
    pub leads: Option<PathBuf>,
    /// When the file of --leads is made to reach the disk: before each reply ("always"), every so often ("interval=1s"), or
    /// when the system likes ("never"). Whatever is chosen, a killed process loses nothing; this is about power cuts.
    #[arg(
        long,
        env = "DEALER_SIM_LEADS_SYNC",
        default_value = "always",
        value_name = "always|interval=TIME|never"
    )]
    pub leads_sync: SyncPolicy,
    /// Worker threads [default: one per core]
    #[arg(long, env = "DEALER_SIM_THREADS", value_name = "N", value_parser = count::<u16>("a number of threads", 1, 1024))]
    pub threads: Option<u16>,
    /// Limits of the listener, from a TOML file: body_bytes, header_bytes, header_count, connections, page_cap, ...
    #[arg(long, env = "DEALER_SIM_LIMITS", value_name = "FILE")]
    pub limits: Option<PathBuf>,
    /// Flags from a TOML file, named as they are here (rate-limit = "100/s"); a flag or variable given wins.
    #[arg(long, env = "DEALER_SIM_CONFIG", value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Format of the log on standard error; RUST_LOG sets how much (default: warn).
    #[arg(long, env = "DEALER_SIM_LOG", default_value = "text", value_name = "text|json")]
    pub log: LogFormat,
}

/// Flags of `card`.
#[derive(Debug, Clone, Args)]
pub struct CardArgs {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub serve: ServeArgs,
    /// The id of one of several dealers; the first one's card at the root unless given.
    #[arg(long, value_name = "ID")]
    pub dealer: Option<String>,
    /// The document to print: card, poppy, openapi, ai-catalog, api-catalog, server-card or llms.
    #[arg(long, default_value = "card", value_name = "NAME")]
    pub document: Paper,
}

/// Flags of `inventory`.
#[derive(Debug, Clone, Args)]
pub struct InventoryArgs {
    #[command(flatten)]
    #[allow(missing_docs)]
    pub stock: StockArgs,
    /// The id of one of several dealers; the first one unless given.
    #[arg(long, env = "DEALER_SIM_DEALER", value_name = "ID", conflicts_with = "inventory")]
    pub dealer: Option<String>,
    /// Form of the output.
    #[arg(long, env = "DEALER_SIM_FORMAT", default_value = "jsonl", value_name = "jsonl|json|csv")]
    pub format: ExportFormat,
}

/// Flags of `conduct`.
#[derive(Debug, Clone, Args)]
pub struct ConductArgs {
    /// The admin endpoint.
    #[arg(
        long,
        env = "DEALER_SIM_CONDUCT_ADMIN",
        default_value = "http://127.0.0.1:8081",
        value_name = "URL"
    )]
    pub admin: String,
    /// The environment variable that holds the admin endpoint's token, if it asks for one.
    #[arg(long, env = "DEALER_SIM_CONDUCT_ADMIN_TOKEN_ENV", value_name = "NAME")]
    pub admin_token_env: Option<String>,
    /// Form of the output.
    #[arg(long, default_value = "text", value_name = "text|json|html|junit")]
    pub format: conduct::Format,
    /// The one client to report on, as the journal names it.
    #[arg(long, value_name = "NAME")]
    pub client: Option<String>,
    /// The test to report on, as POST /conduct/begin named it.
    #[arg(long, value_name = "NAME")]
    pub test: Option<String>,
    /// Exit with 3 when a rule of this severity or a graver one was broken.
    #[arg(long, value_name = "violation|warning|advice", value_parser = parse_severity)]
    pub fail_on: Option<conduct::Severity>,
}

fn parse_severity(given: &str) -> Result<conduct::Severity, String> {
    conduct::Severity::from_word(given).ok_or_else(|| "use violation, warning or advice".to_owned())
}

/// Flags of `health`.
#[derive(Debug, Clone, Args)]
pub struct HealthArgs {
    /// The admin endpoint.
    #[arg(default_value = "http://127.0.0.1:8081", env = "DEALER_SIM_HEALTH_URL")]
    pub url: String,
}

/// The admin endpoint's address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AdminAddress {
    /// There is none.
    Off,
    /// It listens here.
    At(SocketAddr),
}

/// `--headers`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum HeaderChoice {
    Pinned,
    Strict,
    Ignored,
}

impl From<HeaderChoice> for HeaderMode {
    fn from(choice: HeaderChoice) -> HeaderMode {
        match choice {
            HeaderChoice::Pinned => HeaderMode::Pinned,
            HeaderChoice::Strict => HeaderMode::Strict,
            HeaderChoice::Ignored => HeaderMode::Ignored,
        }
    }
}

/// `--format` of `inventory`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
#[allow(missing_docs)]
pub enum ExportFormat {
    Jsonl,
    Json,
    Csv,
}

fn parse_listen(given: &str) -> Result<SocketAddr, String> {
    given.parse().map_err(|_| {
        format!("give an address and a port, such as {}", SocketAddr::from((Ipv4Addr::LOCALHOST, 8080)))
    })
}

fn parse_admin(given: &str) -> Result<AdminAddress, String> {
    if given == "off" {
        return Ok(AdminAddress::Off);
    }
    given.parse().map(AdminAddress::At).map_err(|_| {
        let example = SocketAddr::from((Ipv4Addr::LOCALHOST, 8081));
        format!("use \"off\" or an address such as {example}")
    })
}

fn parse_size(given: &str) -> Result<u64, String> {
    const MOST: u64 = 64 << 30;
    units::bytes(given)
        .filter(|bytes| *bytes <= MOST)
        .ok_or_else(|| format!("use {}, at most {}", units::SIZE_FORM, units::show_bytes(MOST)))
}

fn parse_public_url(given: &str) -> Result<String, String> {
    let usable = fluent_uri::Uri::parse(given).is_ok_and(|uri| {
        matches!(uri.scheme().as_str(), "http" | "https")
            && uri.authority().is_some_and(|authority| {
                !authority.host().is_empty() && !authority.has_userinfo() && authority.port_to_u16().is_ok()
            })
            && uri.query().is_none()
            && uri.fragment().is_none()
    });
    if usable {
        Ok(given.trim_end_matches('/').to_owned())
    } else {
        Err("use an absolute URL such as https://dealer.example.test, without user, query or fragment"
            .to_owned())
    }
}

fn parse_origin(given: &str) -> Result<String, String> {
    let usable = given == "*"
        || fluent_uri::Uri::parse(given).is_ok_and(|uri| {
            uri.authority().is_some_and(|authority| {
                !authority.host().is_empty() && !authority.has_userinfo() && authority.port_to_u16().is_ok()
            }) && matches!(uri.path().as_str(), "" | "/")
                && uri.query().is_none()
                && uri.fragment().is_none()
        });
    usable.then(|| given.to_owned()).ok_or_else(|| {
        "use scheme, host and, if it is not the usual one, port of a page, such as https://chat.example, or *".to_owned()
    })
}

/// Reads the command line, with the flags of a `--config` file.
///
/// # Errors
/// The outer error is the file's, the inner one is all that clap finds wrong (or a request for help).
pub fn parse(arguments: impl IntoIterator<Item = OsString>) -> Result<Result<Cli, Misuse>, ConfigError> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    let command = flags_file::applied(Cli::command(), &SUBCOMMANDS, &arguments, "DEALER_SIM_CONFIG")?;
    let cli = misuse::matches(command, &arguments)
        .and_then(|matches| Cli::from_arg_matches(&matches).map_err(Misuse::of));
    Ok(cli)
}

/// The commands that a `--config` file speaks to.
const SUBCOMMANDS: [&str; 2] = ["serve", "card"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_is_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn a_file_sets_defaults_and_a_flag_wins() {
        let table: toml::Table =
            "seed = 7\nrate-limit = \"5/s\"\nskills = [\"inventory.search\"]".parse().unwrap();
        let command = flags_file::apply(Cli::command(), &SUBCOMMANDS, "c.toml", &table).unwrap();
        let read = |arguments: &[&str]| {
            let matches = command.clone().try_get_matches_from(arguments).unwrap();
            match Cli::from_arg_matches(&matches).unwrap().command {
                Command::Serve(serve) => serve,
                _ => panic!("not serve"),
            }
        };
        let serve = read(&["dealer-sim", "serve"]);
        assert_eq!((serve.stock.seed, serve.skills.as_slice()), (7, &[Skill::InventorySearch][..]));
        assert!(serve.rate_limit.is_some());
        assert_eq!(read(&["dealer-sim", "serve", "--seed", "9"]).stock.seed, 9);
    }

    #[test]
    fn every_fault_of_a_file_is_told() {
        let table: toml::Table = "sede = 7\nlisten = true\nport = 1".parse().unwrap();
        let applied = flags_file::apply(Cli::command(), &SUBCOMMANDS, "c.toml", &table);
        let error = applied.unwrap_err().to_string();
        for part in ["c.toml", "\"sede\"", "\"listen\"", "\"port\"", "rate-limit"] {
            assert!(error.contains(part), "{error}");
        }
    }

    #[test]
    fn addresses_and_urls() {
        assert_eq!(parse_admin("off"), Ok(AdminAddress::Off));
        assert!(parse_admin("8081").unwrap_err().contains("127.0.0.1:8081"));
        assert_eq!(parse_public_url("https://d.example/x/"), Ok("https://d.example/x".to_owned()));
        for bad in [
            "d.example",
            "ftp://d.example",
            "https://",
            "https://d.example/?a",
            "https://d:99999",
            "https://u@d.example",
        ] {
            assert!(parse_public_url(bad).is_err(), "{bad}");
        }
    }
}
