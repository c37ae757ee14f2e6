//! The commands of `dealer-sim`, from arguments to exit code: 0 ok; 1 wrong usage or input file; 2 failed while running; 3 a
//! rule of conduct was broken.

mod ask;

use std::ffi::OsString;
use std::io::{self, Write};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use jiff::tz::TimeZone;
use serde::Serialize;

use crate::auth::{Auth, Named, Secret};
use crate::cli::{
    self, AdminAddress, CardArgs, Cli, Command, ConductArgs, ExportFormat, FaultsCommand, HealthArgs,
    InventoryArgs, ListFormat, ServeArgs, StockArgs,
};
use crate::dealer::DealerSpec;
use crate::document::Fault;
use crate::faults::{Plan, Repro, Trigger, catalogue, explain, registry};
use crate::flags_file::ConfigError;
use crate::inventory::{self, ImportDefaults, ImportFormat, Inventory, Profile};
use crate::journal;
use crate::log;
use crate::protocol::HeaderMode;
use crate::protocol::discovery::{AmendError, Amendments};
use crate::server::leads_file::{LeadsFile, LeadsFileError};
use crate::server::limits::Limits;
use crate::server::tls::{Certificate, TlsOptions};
use crate::server::{Server, ServerOptions, StartError, business_time, url_of};
use crate::world::{Blueprint, Door, FaultSpec, Site, Stock};

/// Why a command failed.
#[derive(Debug, thiserror::Error)]
enum Failed {
    /// Exit code 1.
    #[error("{0}")]
    Input(String),
    /// Exit code 2.
    #[error("{0}")]
    Running(String),
    /// Exit code 3.
    #[error("{0}")]
    Broken(String),
}

impl Failed {
    fn input(error: impl ToString) -> Failed {
        Failed::Input(error.to_string())
    }

    fn running(error: impl ToString) -> Failed {
        Failed::Running(error.to_string())
    }
}

/// Runs the command that the arguments name.
pub fn main(arguments: impl IntoIterator<Item = OsString>) -> ExitCode {
    let cli = match cli::parse(arguments) {
        Ok(Ok(cli)) => cli,
        Ok(Err(misuse)) => {
            misuse.print();
            return ExitCode::from(u8::from(!misuse.asked_for_help()));
        }
        Err(error @ ConfigError::Read { .. }) => return report(&Failed::running(error)),
        Err(error) => return report(&Failed::input(error)),
    };
    match run(cli) {
        Ok(()) => ExitCode::SUCCESS,
        Err(failed) => report(&failed),
    }
}

fn report(failed: &Failed) -> ExitCode {
    // A reader that is gone changes nothing of the exit code.
    _ = writeln!(io::stderr(), "dealer-sim: {failed}");
    match failed {
        Failed::Input(_) => ExitCode::from(1),
        Failed::Running(_) => ExitCode::from(2),
        Failed::Broken(_) => ExitCode::from(3),
    }
}

fn run(cli: Cli) -> Result<(), Failed> {
    match cli.command {
        Command::Serve(serve) => self::serve(*serve),
        Command::Inventory(inventory) => export(&inventory),
        Command::Card(arguments) => card(*arguments),
        Command::Faults(command) => faults(&command),
        Command::Conduct(arguments) => conduct(&arguments),
        Command::Health(health) => self::health(&health),
    }
}

fn read_file(path: &Path) -> Result<Vec<u8>, Failed> {
    std::fs::read(path).map_err(|error| Failed::Running(format!("{}: {error}", path.display())))
}

fn read_text(path: &Path) -> Result<String, Failed> {
    let text = String::from_utf8(read_file(path)?);
    text.map_err(|error| Failed::Input(format!("{}: not UTF-8: {error}", path.display())))
}

fn read_profile(stock: &StockArgs) -> Result<Profile, Failed> {
    match &stock.profile {
        None => Profile::built_in().map_err(Failed::running),
        Some(path) => Profile::parse(&path.display().to_string(), &read_text(path)?).map_err(Failed::input),
    }
}

fn threads(given: Option<u16>) -> usize {
    given.map_or_else(|| std::thread::available_parallelism().map_or(1, usize::from), usize::from)
}

/// The dealer's blueprint, the clock read once.
fn blueprint(stock: &StockArgs, spec: DealerSpec, threads: usize) -> Result<Blueprint, Failed> {
    let profile = read_profile(stock)?;
    let day = business_time(stock.clock).to_zoned_datetime(TimeZone::UTC).date();
    let stock = match &stock.inventory {
        None => Stock::Generated(stock.vehicles),
        Some(path) => {
            let bytes = read_file(path)?;
            let first =
                bytes.iter().find(|byte| !byte.is_ascii_whitespace() && !matches!(byte, 0xef | 0xbb | 0xbf));
            let is_table = path.extension().is_some_and(|end| end.eq_ignore_ascii_case("csv"));
            let format = match first {
                _ if is_table => ImportFormat::Csv,
                Some(b'[') => ImportFormat::Json,
                _ => ImportFormat::Jsonl,
            };
            let midnight = day.to_zoned_datetime(TimeZone::UTC).map_err(Failed::running)?.timestamp();
            let defaults = ImportDefaults { dealer_id: profile.dealer_id.clone(), updated_at: midnight };
            let imported = Inventory::import(&bytes, format, &defaults)
                .map_err(|error| Failed::Input(error.in_file(&path.display().to_string())))?;
            Stock::Given(Arc::new(imported))
        }
    };
    let (faults, amendments) = (FaultSpec::default(), Arc::default());
    Ok(Blueprint { spec, dealers: 1, profile, stock, day, threads, faults, amendments, ledger: None })
}

fn export(arguments: &InventoryArgs) -> Result<(), Failed> {
    let spec =
        DealerSpec { seed: arguments.stock.seed, clock: arguments.stock.clock, ..DealerSpec::default() };
    let blueprint = blueprint(&arguments.stock, spec, threads(None))?;
    let number = number_of(&blueprint, arguments.dealer.as_deref())?;
    let stock = blueprint.make_stock(number, arguments.stock.seed).map_err(Failed::input)?;
    let format = match arguments.format {
        ExportFormat::Jsonl => inventory::ExportFormat::Jsonl,
        ExportFormat::Json => inventory::ExportFormat::Json,
        ExportFormat::Csv => inventory::ExportFormat::Csv,
    };
    let mut out = io::BufWriter::with_capacity(1 << 16, io::stdout().lock());
    until_reader_is_gone(stock.export(format, &mut out).and_then(|()| out.flush()))
}

/// The number of the dealer that `--dealer` names.
fn number_of(blueprint: &Blueprint, dealer_id: Option<&str>) -> Result<u16, Failed> {
    let Some(dealer_id) = dealer_id else { return Ok(0) };
    blueprint.number_of(dealer_id).ok_or_else(|| {
        let first: Vec<_> = (0..3).map(|number| blueprint.profile.sibling_id(number)).collect();
        Failed::Input(format!(
            "--dealer: no dealer has the id {dealer_id:?}; the first ones are {}, and / of a running dealer-sim lists all",
            first.join(", ")
        ))
    })
}

/// A reader that has seen enough (`| head`) is no failure.
fn until_reader_is_gone(written: io::Result<()>) -> Result<(), Failed> {
    match written {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(Failed::running(error)),
        _ => Ok(()),
    }
}

/// What `serve` and `card` share.
fn prepare(arguments: &ServeArgs) -> Result<(Blueprint, ServerOptions), Failed> {
    let limits = match &arguments.limits {
        None => Limits::default(),
        Some(path) => Limits::parse(&path.display().to_string(), &read_text(path)?).map_err(Failed::input)?,
    };
    let mut auth = Auth::default();
    for Named { scheme, variable } in &arguments.auth {
        let secret = variable.as_deref().map(|name| secret("--auth", name)).transpose()?;
        auth = auth.accept(scheme.clone(), secret);
    }
    let mut skills = arguments.skills.clone();
    skills.sort_unstable();
    skills.dedup();
    let spec = DealerSpec {
        seed: arguments.stock.seed,
        contract: arguments.contract,
        headers: arguments.headers.map_or(arguments.contract.default_headers, HeaderMode::from),
        skills,
        clock: arguments.stock.clock,
        rate_limit: arguments.rate_limit,
        page_cap: limits.page_cap,
        doors: arguments.doors.unwrap_or(arguments.contract.bindings),
        auth: auth.schemes(),
        ..DealerSpec::default()
    };
    let threads = threads(arguments.threads);
    let options = ServerOptions {
        listen: arguments.listen,
        admin: match arguments.admin {
            AdminAddress::Off => None,
            AdminAddress::At(address) => Some(address),
        },
        tls: tls_options(arguments, &auth)?,
        auth,
        admin_token: arguments
            .admin_token_env
            .as_deref()
            .map(|name| secret("--admin-token-env", name))
            .transpose()?,
        public_url: arguments.public_url.clone(),
        origins: arguments.origins.clone(),
        threads,
        limits,
        journal: match arguments.journal {
            0 => journal::Limits::OFF,
            entries => journal::Limits {
                entries,
                bytes: usize::try_from(arguments.journal_bytes).unwrap_or(usize::MAX),
                reply_bytes: usize::try_from(arguments.journal_reply_bytes).unwrap_or(usize::MAX),
                ..journal::Limits::default()
            },
        },
        redact: arguments.redact,
        leads: arguments.leads.clone().map(|path| LeadsFile { path, sync: arguments.leads_sync }),
    };
    let mut blueprint = blueprint(&arguments.stock, spec, threads)?;
    blueprint.dealers = arguments.dealers;
    blueprint.faults = FaultSpec {
        plan: read_plan(&arguments.faults)?,
        magic: !arguments.no_magic,
        headers: !arguments.no_fault_headers,
    };
    blueprint.amendments = Arc::new(read_amendments(arguments)?);
    Ok((blueprint, options))
}

/// What the user's files say of the published documents.
fn read_amendments(arguments: &ServeArgs) -> Result<Amendments, Failed> {
    let in_file = |path: &Path, error: AmendError| Failed::Input(format!("{}: {error}", path.display()));
    let mut amendments = match &arguments.documents {
        None => Amendments::default(),
        Some(path) => Amendments::parse(&read_text(path)?).map_err(|error| in_file(path, error))?,
    };
    if let Some(path) = &arguments.poppy {
        amendments.replace_poppy(read_text(path)?).map_err(|error| in_file(path, error))?;
    }
    Ok(amendments)
}

/// The secret in an environment variable.
fn secret(flag: &str, name: &str) -> Result<Secret, Failed> {
    match std::env::var(name) {
        Ok(secret) if !secret.trim().is_empty() => Ok(Secret::new(secret.trim().as_bytes())),
        Ok(_) => Err(Failed::Input(format!("{flag} {name}: the environment variable is empty"))),
        Err(_) => Err(Failed::Input(format!("{flag} {name}: there is no such environment variable"))),
    }
}

/// What the flags say of TLS.
fn tls_options(arguments: &ServeArgs, auth: &Auth) -> Result<Option<TlsOptions>, Failed> {
    let certificate = match (&arguments.tls_cert, &arguments.tls_key) {
        (Some(cert), Some(key)) => Some(Certificate::Files { cert: cert.clone(), key: key.clone() }),
        (None, None) => arguments.tls_self_signed.then_some(Certificate::SelfSigned),
        _ => return Err(Failed::Input("--tls-cert and --tls-key go together: give both".to_owned())),
    };
    let client_ca = arguments.client_ca.clone();
    let (wants_certificate, wants_nothing_else) = auth.wants_certificate();
    if wants_certificate && client_ca.is_none() {
        return Err(Failed::Input(
            "--auth mtls needs --client-ca, the authorities that vouch for clients".to_owned(),
        ));
    }
    // Who has other credentials may come without a certificate.
    let client_optional = wants_certificate && !wants_nothing_else;
    match certificate {
        Some(certificate) => Ok(Some(TlsOptions { certificate, client_ca, client_optional })),
        None if client_ca.is_some() => Err(Failed::Input(
            "--client-ca needs TLS: give --tls-cert and --tls-key, or --tls-self-signed".to_owned(),
        )),
        None => Ok(None),
    }
}

fn read_plan(files: &[PathBuf]) -> Result<Plan, Failed> {
    Plan::load(files, registry()).map_err(|error| match error.unreadable() {
        true => Failed::running(error),
        false => Failed::input(error),
    })
}

fn faults(command: &FaultsCommand) -> Result<(), Failed> {
    let text = match command {
        FaultsCommand::List { format: ListFormat::Text } => catalogue::text(),
        FaultsCommand::List { format: ListFormat::Json } => format!("{:#}", catalogue::json()),
        FaultsCommand::Check { files } => {
            let plan = read_plan(files)?;
            format!("{} rules, nothing wrong with them", plan.rules().len())
        }
        FaultsCommand::Explain { what, faults } => match registry::find(what) {
            Some(effect) => catalogue::entry(effect),
            None => {
                if !what.contains('=') {
                    let names = registry().iter().map(|effect| effect.name);
                    let text = "there is no such effect; `dealer-sim faults list` has all of them";
                    return Err(Failed::input(Fault::of_argument(what, text).near(what, names)));
                }
                let repro: Repro = what.parse().map_err(Failed::input)?;
                if let Trigger::Rule(id) = &repro.trigger
                    && faults.is_empty()
                {
                    let text = format!(
                        "rule {id} stands in a plan: give it with --faults FILE (GET /faults shows the plan in force and the \
                         rules above it)"
                    );
                    return Err(Failed::Input(text));
                }
                explain(&read_plan(faults)?, &repro)
            }
        },
    };
    until_reader_is_gone(writeln!(io::stdout(), "{text}"))
}

fn card(arguments: CardArgs) -> Result<(), Failed> {
    let (mut blueprint, options) = prepare(&arguments.serve)?;
    let number = number_of(&blueprint, arguments.dealer.as_deref())?;
    // The card says nothing of the stock.
    if let Stock::Generated(vehicles) = &mut blueprint.stock {
        *vehicles = 1;
    }
    let scheme = if options.tls.is_some() { "https" } else { "http" };
    let base_url = options.public_url.unwrap_or_else(|| url_of(scheme, options.listen));
    let issued = business_time(blueprint.spec.clock);
    let leads = Arc::default();
    let site = Site::new(Arc::new(blueprint), number, &base_url, issued, leads).map_err(Failed::input)?;
    let door = Door { site: &site, at_root: arguments.dealer.is_none() };
    let scene = site.scene();
    let paper = arguments.document;
    let document = door.document(&scene, paper).ok_or_else(|| {
        Failed::Input(format!(
            "--document: this dealer has no {paper}, since it lacks the door that it is for"
        ))
    })?;
    let said = String::from_utf8_lossy(&document.body);
    let text = match serde_json::from_str::<serde_json::Value>(&said) {
        Ok(value) => serde_json::to_string_pretty(&value).map_err(Failed::running)?,
        Err(_) => said.trim_end().to_owned(),
    };
    until_reader_is_gone(writeln!(io::stdout(), "{text}"))
}

/// Whether a card may give this URL: plain http is for loopback only (AAP digest, section g). A test lab may want it all
/// the same, so it is told, not refused.
fn is_lawful(base_url: &str) -> bool {
    let host = base_url.strip_prefix("http://").and_then(|rest| rest.split('/').next());
    let Some(host) = host else { return true };
    let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
    matches!(host, "localhost" | "127.0.0.1" | "[::1]")
}

/// A line that `serve` prints for scripts; `data/schemas/event.schema.json` describes it.
#[derive(Debug, Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum Event {
    /// The sockets accept.
    Listening {
        url: String,
        card: String,
        admin: Option<String>,
        /// The address listened on, which `url` does not show when `--public-url` is given.
        listen: SocketAddr,
        contract: &'static str,
        seed: u64,
        /// Of each dealer.
        vehicles: u32,
        dealers: usize,
        version: &'static str,
    },
    /// The stop is complete.
    Stopped { requests: u64, leads: u64, unfinished: u64 },
}

fn to_line(event: &Event) -> Result<String, Failed> {
    serde_json::to_string(event).map_err(Failed::running)
}

fn serve(arguments: ServeArgs) -> Result<(), Failed> {
    log::start(arguments.log);
    let (blueprint, options) = prepare(&arguments)?;
    let (contract, seed) = (blueprint.spec.contract, blueprint.spec.seed);
    // Signals are caught before the sockets accept, so that none can end the process without its last line.
    let runtime =
        tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(Failed::running)?;
    let signals = runtime.block_on(async { Signals::catch() }).map_err(Failed::running)?;
    let server = Server::start(blueprint, options).map_err(|error| match error {
        // Such as a clock in a year for which there are no cars.
        StartError::World(_)
        | StartError::Tls(_)
        | StartError::Unguarded { .. }
        | StartError::Leads(LeadsFileError::Damaged { .. }) => Failed::input(error),
        _ => Failed::running(error),
    })?;
    if !is_lawful(server.base_url()) {
        _ = writeln!(
            io::stderr(),
            "dealer-sim: the card says {}; AAP wants https there, or http on localhost, 127.0.0.1 or [::1] (--public-url)",
            server.base_url()
        );
    }
    let line = to_line(&Event::Listening {
        url: server.url(),
        card: server.card_url(),
        admin: server.admin_url(),
        listen: server.address(),
        contract: contract.name,
        seed,
        vehicles: server.world().first().scene().dealer.inventory().len(),
        dealers: server.world().sites().len(),
        version: env!("CARGO_PKG_VERSION"),
    })?;
    if let Some(path) = &arguments.ready_file {
        std::fs::write(path, format!("{line}\n"))
            .map_err(|error| Failed::Running(format!("--ready-file {}: {error}", path.display())))?;
    }
    // A reader that is gone must not end the server.
    _ = writeln!(io::stdout(), "{line}");
    runtime.block_on(signals.first());
    let stopped = server.stop();
    let line = to_line(&Event::Stopped {
        requests: stopped.requests,
        leads: stopped.leads,
        unfinished: stopped.unfinished,
    })?;
    _ = writeln!(io::stdout(), "{line}");
    Ok(())
}

/// The signals that ask for a stop.
struct Signals {
    #[cfg(unix)]
    terminate: tokio::signal::unix::Signal,
    #[cfg(unix)]
    interrupt: tokio::signal::unix::Signal,
}

impl Signals {
    #[cfg(unix)]
    fn catch() -> io::Result<Signals> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Signals {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
        })
    }

    #[cfg(unix)]
    async fn first(mut self) {
        tokio::select! {
            _ = self.terminate.recv() => {}
            _ = self.interrupt.recv() => {}
        }
    }

    #[cfg(not(unix))]
    fn catch() -> io::Result<Signals> {
        Ok(Signals {})
    }

    #[cfg(not(unix))]
    async fn first(self) {
        _ = tokio::signal::ctrl_c().await;
    }
}

/// Asks an admin endpoint whether it is ready.
fn health(arguments: &HealthArgs) -> Result<(), Failed> {
    let url = &arguments.url;
    // The status line is all that matters, and a server that drips must not hold up a health check.
    let reply = ask::get(url, "/readyz", None, 512)?;
    if reply.split_whitespace().nth(1) == Some("200") {
        Ok(())
    } else {
        let first = reply.lines().next().unwrap_or("no reply");
        Err(Failed::Running(format!("{url} is not ready: {first}")))
    }
}

/// Prints a conduct report.
fn conduct(arguments: &ConductArgs) -> Result<(), Failed> {
    let mut path = format!("/conduct?format={}", arguments.format.word());
    let given = [("client", &arguments.client), ("test", &arguments.test)];
    for (name, value) in given.into_iter().filter_map(|(name, value)| Some((name, value.as_ref()?))) {
        path += &format!("&{name}={}", ask::encoded(value));
    }
    if let Some(severity) = arguments.fail_on {
        path += &format!("&fail_on={}", severity.word());
    }
    let url = &arguments.admin;
    let token = arguments.admin_token_env.as_deref().map(|name| match std::env::var(name) {
        Ok(token) if !token.trim().is_empty() => Ok(token),
        _ => Err(Failed::Input(format!(
            "--admin-token-env {name}: the environment variable is missing or empty"
        ))),
    });
    let token = token.transpose()?;
    let reply = ask::get(url, &path, token.as_deref().map(str::trim), ask::WHOLE)?;
    let (head, body) = reply.split_once("\r\n\r\n").unwrap_or((&reply, ""));
    let status = head.split_whitespace().nth(1).unwrap_or_default();
    match status {
        "200" | "409" => {
            until_reader_is_gone(io::stdout().write_all(body.as_bytes()))?;
            let severity = arguments.fail_on.filter(|_| status == "409");
            severity.map_or(Ok(()), |severity| {
                let text = format!("rules of conduct of severity {} or graver were broken", severity.word());
                Err(Failed::Broken(text))
            })
        }
        // Nothing was found under the names given, or the journal is off.
        "404" | "400" | "401" | "403" => Err(Failed::Input(format!("{url}: {}", body.trim()))),
        _ => Err(Failed::Running(format!(
            "{url} gives no report: {}",
            head.lines().next().unwrap_or("no reply")
        ))),
    }
}
