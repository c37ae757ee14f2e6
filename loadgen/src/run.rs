//! One run from its settings to its result: finds the dealer, starts the workers, adds up what they report, judges.

use std::error::Error;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use tokio::sync::mpsc::unbounded_channel;
use tokio::sync::watch;

use crate::authorize::{Authorized, authorize};
use crate::basis::{self, Basis};
use crate::collect::Collector;
use crate::conditions;
use crate::embedded::Embedded;
use crate::endpoint::{self, Endpoint, EndpointError};
use crate::envelope::Template;
use crate::load::{Arrivals, Load};
use crate::metrics::Exporter;
use crate::pacer::Clock;
use crate::process;
use crate::progress::Progress;
use crate::record::Tally;
use crate::report::{self, Folder, FolderError, RunResult, Summary, write_text};
use crate::results::{self, ResultsError};
use crate::scenario::{self, Workload};
use crate::settings::{Settings, StartAt, Target};
use crate::signals::{Signal, Signals};
use crate::threshold::Watch;
use crate::transport::{Config, PrepareError, Reuse};
use crate::units::{nanos, show_duration};
use crate::worker::{self, Command, Links, Plan};

/// How a run ended, for the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ending {
    Ok,
    Interrupted(Signal),
    NotValid,
    /// A threshold does not hold, or a check of the scenario failed.
    ConditionFailed,
}

/// Why a run gave nothing that could be judged.
#[derive(Debug)]
pub(crate) enum RunError {
    /// The user must change something; one sentence or more.
    Usage(Vec<String>),
    /// Something failed on the way, or the dealer never answered.
    Failed(Box<dyn Error>),
    /// A second signal came.
    Aborted(Signal),
}

impl RunError {
    pub(crate) fn usage(fault: impl Into<Box<dyn Error>>) -> RunError {
        RunError::Usage(vec![fault.into().to_string()])
    }

    pub(crate) fn failed(fault: impl Into<Box<dyn Error>>) -> RunError {
        RunError::Failed(fault.into())
    }
}

/// The time that workers get to be ready before the run starts.
const LEAD_TIME: Duration = Duration::from_millis(50);
/// Tallies per worker that are on their way at a time.
const TALLIES: usize = 2;
/// Descriptors for other things than connections.
const OTHER_DESCRIPTORS: u64 = 128;

/// Carries a run out.
pub(crate) async fn run(settings: Settings) -> Result<Ending, RunError> {
    // From here on a signal is ours; before, it simply ends the process.
    let mut signals = Signals::listen().map_err(RunError::failed)?;
    let ready = Ready::prepare(&settings, &mut signals).await?;
    let Measured { result, signal, written } = ready.measure(&settings, &mut signals).await?;
    print(&settings, &result).map_err(RunError::failed)?;
    written.map_err(RunError::failed)?;
    // Before the signal: a dealer that was never reached is what ended nothing, and what matters (INTERFACES, exit codes).
    result.answered().map_err(RunError::failed)?;
    Ok(match signal {
        Some(signal) => Ending::Interrupted(signal),
        None if !result.verdict.valid => Ending::NotValid,
        None if result.checks_failed > 0 || result.thresholds.iter().any(|judged| !judged.pass) => {
            Ending::ConditionFailed
        }
        None => Ending::Ok,
    })
}

/// A scenario that is read and a dealer that is found: what one run or several against it need.
pub(crate) struct Ready {
    workload: Arc<Workload>,
    labels: Vec<String>,
    scenario_sha256: String,
    endpoint: Endpoint,
    config: Config,
    mark_test: bool,
    /// The token, if one was asked for.
    authorized: Option<Authorized>,
    /// The simulator, if there is one, lives as long as this.
    _embedded: Option<Embedded>,
}

/// A run that is over.
pub(crate) struct Measured {
    pub(crate) result: RunResult,
    /// The signal that ended it.
    pub(crate) signal: Option<Signal>,
    /// Whether its folder could be written.
    pub(crate) written: Result<(), FolderError>,
}

impl Ready {
    /// Reads the scenarios and finds the dealer.
    pub(crate) async fn prepare(settings: &Settings, signals: &mut Signals) -> Result<Ready, RunError> {
        let mut workload = scenario::load(&settings.scenarios, &settings.sets).map_err(RunError::usage)?;
        workload.turn_to(settings.asked.binding).map_err(RunError::Usage)?;
        let labels = basis::step_labels(&workload);
        let checks = basis::check_names(&workload);
        let faults: Vec<String> = settings
            .thresholds
            .iter()
            .filter_map(|threshold| threshold.fits(&labels, &checks).err())
            .map(|fault| format!("--threshold {fault}"))
            .collect();
        if !faults.is_empty() {
            return Err(RunError::Usage(faults));
        }
        let scenario_sha256 =
            conditions::scenario_sha256(&settings.scenarios, workload.data(), &settings.sets);
        let authorized = authorize(settings, signals).await?;
        let token = authorized.as_ref().and_then(|authorized| authorized.token.header());
        let (endpoint, embedded) = reach(settings, token, signals).await?;
        let hidden_leads = workload.hidden_leads();
        let mark_test = endpoint::guard(&endpoint, workload.submits_leads(), &hidden_leads, settings.consent)
            .map_err(|harms| RunError::Usage(harms.iter().map(ToString::to_string).collect()))?;
        let config = Config::prepare(&endpoint.address, &settings.options).await.map_err(prepare_error)?;
        let progress_notes = Progress::new(settings.is_quiet, None);
        announce(settings, &endpoint, &workload, mark_test, &progress_notes);
        let workload = Arc::new(workload);
        Ok(Ready {
            workload,
            labels,
            scenario_sha256,
            endpoint,
            config,
            mark_test,
            authorized,
            _embedded: embedded,
        })
    }

    /// Carries one run out, with the load, the thresholds and the folder of these settings.
    pub(crate) async fn measure(
        &self,
        settings: &Settings,
        signals: &mut Signals,
    ) -> Result<Measured, RunError> {
        let notes = Progress::new(settings.is_quiet, None);
        let mut asked = settings.asked.clone();
        asked.fit(&self.workload);
        let load = Load { limits: adjust_limits(settings, &asked.load, &notes), ..asked.load };
        let exporter = match settings.metrics {
            Some(address) => {
                let exporter = Exporter::bind(address).await.map_err(|error| {
                    RunError::failed(format!("--metrics {address} cannot be listened on: {error}"))
                })?;
                notes.say(&format!("Metrics are at http://{}/metrics.", exporter.address));
                Some(exporter)
            }
            None => None,
        };
        drop(notes);
        let fitting = || load.workers(self.workload.requests_per_session(), process::cores());
        let lanes = settings.threads.map_or_else(fitting, |threads| threads.min(load.parallelism()));
        let length = load.window.to.map(Duration::from_nanos);
        let arrival_time = load.arrival_time();
        let plan = Arc::new(Plan {
            template: Template::new(
                &self.endpoint,
                &settings.options.headers,
                settings.options.reuse == Reuse::None,
            )
            .with_token(self.authorized.as_ref().map(|authorized| authorized.token.clone())),
            workload: Arc::clone(&self.workload),
            load,
            config: self.config.clone(),
            mark_test: self.mark_test,
            validate: settings.validate,
            contract: self.endpoint.contract,
            binding: self.endpoint.binding,
            steps: self.labels.len(),
            arrival_time,
        });
        let clock = start(settings)?;
        let folder = match &settings.out {
            Some(path) => {
                let comment = format!("dealer-loadgen {}, times in nanoseconds", env!("CARGO_PKG_VERSION"));
                let folder = Folder::create(path, self.labels.clone(), clock.started(), &comment);
                Some(folder.map_err(RunError::failed)?)
            }
            None => None,
        };
        let basis = Basis {
            scenario: self.workload.name().to_owned(),
            endpoint: self.endpoint.address.to_string(),
            is_embedded: self.endpoint.is_embedded,
            contract: self.endpoint.contract.to_string(),
            binding: self.endpoint.binding.word().to_owned(),
            load: plan.load.clone(),
            arrival_time,
            load_text: asked.text,
            conditions: settings.conditions.clone(),
            scenario_sha256: self.scenario_sha256.clone(),
            started: clock.started(),
            lanes,
            labels: self.labels.clone(),
            checks: basis::checks_of(&self.workload),
            cpu_before: process::process_cpu().map(nanos),
        };
        let watch = Watch::new(settings.thresholds.clone(), &plan.load, self.labels.len());
        let aborts = settings.aborts && !watch.is_empty();
        let progress = Progress::new(settings.is_quiet, length);
        let mut collector = Collector::new(basis, watch, aborts, exporter, folder, progress);
        let driven = drive(&plan, clock, lanes, settings, &mut collector, signals);
        let stop = match &self.authorized {
            None => driven.await?,
            Some(authorized) => tokio::select! {
                stop = driven => stop?,
                never = authorized.keep_renewed() => match never {},
            },
        };
        let result = collector.result(stop.as_ref().map(|stop| stop.at), clock.now());
        let written = collector.finish(&result);
        Ok(Measured { result, signal: stop.and_then(|stop| stop.signal), written })
    }
}

/// What ended a run before its time.
struct Stop {
    /// `None` if it was a threshold.
    signal: Option<Signal>,
    at: u64,
}

/// The clock of the run: it starts when all workers are ready, or when the user wants it to.
fn start(settings: &Settings) -> Result<Clock, RunError> {
    match settings.asked.start {
        None => Ok(Clock::starting_in(LEAD_TIME)),
        Some(StartAt::In(wait)) => Ok(Clock::starting_in(wait.max(LEAD_TIME))),
        Some(StartAt::At(at)) => Clock::starting_at(at).ok_or_else(|| {
            RunError::usage(format!("--start-at {at}: that time is over; give one a few seconds ahead"))
        }),
    }
}

/// Raises the limit of open files, and lowers that of connections to what it allows.
fn adjust_limits(settings: &Settings, load: &Load, progress: &Progress) -> crate::load::Limits {
    let mut limits = load.limits;
    let wanted = limits.connections.min(match load.arrivals {
        Arrivals::Open(_) => limits.in_flight,
        Arrivals::Closed { users } => users as usize,
    });
    // A simulator inside this process holds the other end of each connection.
    let ends = if matches!(settings.target, Target::Embedded(_)) { 2 } else { 1 };
    let allowed = process::raise_descriptor_limit(ends * wanted as u64 + OTHER_DESCRIPTORS);
    if let Some(allowed) = allowed {
        let room = allowed.saturating_sub(OTHER_DESCRIPTORS) / ends;
        let room = usize::try_from(room).unwrap_or(usize::MAX).max(1);
        // Nobody has asked for the default's many connections: what will not be missed is not worth a warning.
        if room < load.likely_connections().max(settings.connections.unwrap_or(0)) {
            progress.say(&format!(
                "Only {room} connections fit into the limit of {allowed} open files (ulimit -n); what needs more waits."
            ));
        }
        limits.connections = limits.connections.min(room);
    }
    if let Some(warning) = ports_warning(settings, load) {
        progress.say(&warning);
    }
    limits
}

/// What to say if the run may use up this machine's ports: a port stays taken for a minute after its connection (TIME_WAIT),
/// so that no more new connections a second can last than a sixtieth of the range.
fn ports_warning(settings: &Settings, load: &Load) -> Option<String> {
    // Connections a session opens at least; where they are kept, none of them are new.
    let per_session = match settings.options.reuse {
        Reuse::None | Reuse::Session => 1.0,
        Reuse::Requests(_, most) => 1.0 / most as f64,
        Reuse::Forever => return None,
    };
    let sessions = load.target_rate()?;
    let ports = process::local_ports()?;
    let lasting = ports as f64 / process::TIME_WAIT.as_secs_f64();
    (sessions * per_session > lasting).then(|| {
        format!(
            "At least {:.0} new connections a second need more than the {ports} ports of this machine, which last for {lasting:.0} \
             a second (net.ipv4.ip_local_port_range): expect transport.no_ports, or keep connections with --reuse forever.",
            sessions * per_session
        )
    })
}

/// Finds or starts the dealer. A signal ends the waiting for it. `token` is the header of a token that the dealer may want to
/// see.
async fn reach(
    settings: &Settings,
    token: Option<(String, String)>,
    signals: &mut Signals,
) -> Result<(Endpoint, Option<Embedded>), RunError> {
    let binding = settings.asked.binding;
    let reached = async {
        match &settings.target {
            Target::Embedded(contract) => {
                let embedded =
                    Embedded::start(settings.asked.load.seed, *contract, &settings.options, binding)
                        .await
                        .map_err(|error| match error.is_usage() {
                            true => RunError::usage(error),
                            false => RunError::failed(error),
                        })?;
                Ok((embedded.endpoint.clone(), Some(embedded)))
            }
            Target::Discover(url, contract) => {
                let mut options = settings.options.clone();
                options.headers.extend(token);
                let found = endpoint::discover(url, &options, *contract, binding).await;
                found.map(|endpoint| (endpoint, None)).map_err(|error| match error {
                    EndpointError::Prepare { source, .. } if source.is_usage() => prepare_error(source),
                    error @ (EndpointError::OtherOrigin { .. } | EndpointError::NoDoor { .. }) => {
                        RunError::usage(error)
                    }
                    other => RunError::failed(other),
                })
            }
            Target::Raw(url, contract) => endpoint::raw(url, *contract, binding)
                .map(|endpoint| (endpoint, None))
                .map_err(RunError::usage),
        }
    };
    tokio::select! {
        reached = reached => reached,
        signal = signals.next() => Err(RunError::Aborted(signal)),
    }
}

fn prepare_error(error: PrepareError) -> RunError {
    if error.is_usage() { RunError::usage(error) } else { RunError::failed(error) }
}

/// Says, before the first request, what will be sent where.
fn announce(
    settings: &Settings,
    endpoint: &Endpoint,
    workload: &Workload,
    mark_test: bool,
    progress: &Progress,
) {
    let dealer = match (&endpoint.name, endpoint.is_embedded, endpoint.is_simulator) {
        (_, true, _) => "a simulator inside this process".to_owned(),
        (Some(name), false, true) => format!("the simulator {name:?}"),
        (Some(name), false, false) => format!("{name:?}"),
        (None, false, _) => "the dealer".to_owned(),
    };
    let leads = match (workload.submits_leads(), mark_test) {
        (false, _) => "no leads",
        (true, false) => "leads",
        (true, true) => "leads, marked as tests",
    };
    let start = match settings.asked.start {
        Some(StartAt::At(at)) => format!(", to start at {at}"),
        Some(StartAt::In(wait)) => format!(", to start in {}", show_duration(wait)),
        None => String::new(),
    };
    let mut asked = settings.asked.clone();
    asked.fit(workload);
    progress.say(&format!(
        "Running {} ({leads}) against {dealer} at {}, contract {}{}: {}; seed {}{start}.",
        workload.name(),
        endpoint.address,
        endpoint.contract,
        report::through(endpoint.binding.word()),
        asked.text,
        asked.load.seed
    ));
}

/// Starts the workers and listens to them until the last one has ended. Gives what ended the run before its time.
async fn drive(
    plan: &Arc<Plan>,
    clock: Clock,
    lanes: usize,
    settings: &Settings,
    collector: &mut Collector,
    signals: &mut Signals,
) -> Result<Option<Stop>, RunError> {
    let (reports, mut incoming) = unbounded_channel();
    let (command, commands) = watch::channel(Command::Run);
    let mut emptied = Vec::new();
    let mut threads = Vec::new();
    for lane in 0..lanes {
        let (give, take) = mpsc::channel();
        for _ in 0..TALLIES {
            // The receiver is right here.
            let _ = give.send(Box::new(Tally::new(plan.steps)));
        }
        emptied.push(give);
        let links = Links { reports: reports.clone(), emptied: take, command: commands.clone() };
        threads.push(worker::spawn(Arc::clone(plan), clock, lane, lanes, links).map_err(RunError::failed)?);
    }
    drop(reports);
    drop(commands);
    let grace = nanos(settings.grace);
    let mut deadline = plan.load.window.to.map(|to| to.saturating_add(grace));
    let mut stop: Option<Stop> = None;
    let mut is_signalled = false;
    loop {
        tokio::select! {
            report = incoming.recv() => {
                let Some(report) = report else { break };
                let lane = report.lane;
                let tally = collector.take(report);
                if let Some(give) = emptied.get(lane) {
                    let _ = give.send(tally);
                }
                if stop.is_none() && let Some(threshold) = collector.aborted() {
                    collector.say(&format!("Stopping: {threshold} does not hold."));
                    let now = clock.now();
                    stop = Some(Stop { signal: None, at: now });
                    deadline = Some(deadline.unwrap_or(u64::MAX).min(now.saturating_add(grace)));
                    let _ = command.send(Command::Drain);
                }
            }
            () = clock.sleep_until(deadline.unwrap_or(0)), if deadline.is_some() => {
                deadline = None;
                let _ = command.send(Command::Quit);
            }
            signal = signals.next() => {
                if is_signalled {
                    return Err(RunError::Aborted(signal));
                }
                is_signalled = true;
                let now = clock.now();
                let at = stop.as_ref().map_or(now, |stop| stop.at);
                stop = Some(Stop { signal: Some(signal), at });
                deadline = Some(deadline.unwrap_or(u64::MAX).min(now.saturating_add(grace)));
                let _ = command.send(Command::Drain);
                collector.say("Stopping: waiting for what is on its way. Once more ends at once.");
            }
        }
    }
    for thread in threads {
        match thread.join() {
            Ok(Ok(())) => {}
            Ok(Err(error)) => return Err(RunError::failed(format!("a worker could not start: {error}"))),
            Err(_) => {
                return Err(RunError::failed("a worker ended in a panic; please report this"));
            }
        }
    }
    Ok(stop)
}

fn print(settings: &Settings, result: &RunResult) -> Result<(), ResultsError> {
    results::print(|out| {
        if settings.is_json {
            serde_json::to_writer_pretty(&mut *out, &Summary::from(result)).map_err(io::Error::from)?;
            writeln!(out)
        } else {
            write_text(out, result)
        }
    })
}
