//! One run from its settings to its result: finds the dealer, starts the workers, adds up what they report, judges.

use std::error::Error;
use std::io::{self, Write};
use std::sync::Arc;
use std::sync::mpsc;
use std::time::Duration;

use tokio::sync::mpsc::unbounded_channel;
use tokio::sync::watch;

use crate::authorize::{Authorized, authorize};
use crate::collect::Collector;
use crate::embedded::Embedded;
use crate::endpoint::{self, Endpoint, EndpointError};
use crate::envelope::Template;
use crate::load::{Arrivals, Load};
use crate::pacer::Clock;
use crate::process;
use crate::progress::Progress;
use crate::record::Tally;
use crate::report::{Folder, RunResult, Summary, per_second, write_text};
use crate::scenario::{self, Item, Workload};
use crate::settings::{Settings, StartAt, Target};
use crate::signals::{Signal, Signals};
use crate::threshold::Figures;
use crate::transport::{Config, Fault, PrepareError, Reuse};
use crate::units::{nanos, show_duration};
use crate::verdict::{Evidence, judge};
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
    let workload = scenario::load(&settings.scenarios, &settings.sets).map_err(RunError::usage)?;
    let mut settings = settings;
    settings.asked.fit(&workload);
    let labels = step_labels(&workload);
    let faults: Vec<String> = settings
        .thresholds
        .iter()
        .filter_map(|threshold| threshold.fits(&labels).err())
        .map(|fault| format!("--threshold {fault}"))
        .collect();
    if !faults.is_empty() {
        return Err(RunError::Usage(faults));
    }
    let progress_notes = Progress::new(settings.is_quiet, None);
    let limits = adjust_limits(&settings, &progress_notes);
    let load = Load { limits, ..settings.asked.load.clone() };
    let authority = authorize(&mut settings, &mut signals).await?;

    let token = authority.as_ref().and_then(|authorized| authorized.token.header());
    // The simulator, if there is one, lives as long as this variable.
    let (endpoint, _embedded) = reach(&settings, token, &mut signals).await?;
    let hidden_leads = workload.hidden_leads();
    let mark_test = endpoint::guard(&endpoint, workload.submits_leads(), &hidden_leads, settings.consent)
        .map_err(|harms| RunError::Usage(harms.iter().map(ToString::to_string).collect()))?;
    let config = Config::prepare(&endpoint.address, &settings.options).await.map_err(prepare_error)?;
    announce(&settings, &endpoint, &workload, mark_test, &progress_notes);
    drop(progress_notes);

    let lanes = settings.threads.unwrap_or_else(process::cores).min(load.parallelism());
    let length = load.window.to.map(Duration::from_nanos);
    let plan = Arc::new(Plan {
        template: Template::new(
            &endpoint.address,
            endpoint.contract.extension_uri,
            endpoint.tenant.as_deref(),
            &settings.options.headers,
            settings.options.reuse == Reuse::None,
        )
        .with_token(authority.as_ref().map(|authorized| authorized.token.clone())),
        workload,
        load,
        config,
        mark_test,
        validate: settings.validate,
        contract: endpoint.contract,
        steps: labels.len(),
    });
    let clock = start(&settings)?;
    let folder = match &settings.out {
        Some(path) => {
            let comment = format!("dealer-loadgen {}, times in nanoseconds", env!("CARGO_PKG_VERSION"));
            Some(Folder::create(path, labels.clone(), clock.started(), &comment).map_err(RunError::failed)?)
        }
        None => None,
    };
    let mut collector = Collector::new(
        labels.len(),
        lanes,
        plan.load.window,
        folder,
        Progress::new(settings.is_quiet, length),
    );
    let cpu_before = process::process_cpu();
    let driven = drive(&plan, clock, lanes, &settings, &mut collector, &mut signals);
    let signal = match authority.map(Authorized::keep_renewed) {
        None => driven.await?,
        Some(renewal) => tokio::select! {
            signal = driven => signal?,
            never = renewal => match never {},
        },
    };
    let ended = clock.now();
    let cpu =
        process::process_cpu().zip(cpu_before).map(|(after, before)| nanos(after.saturating_sub(before)));

    let interrupted_at = signal.as_ref().map(|(_, at)| *at);
    let result = result_of(
        &settings,
        &plan,
        &endpoint,
        labels,
        lanes,
        clock,
        &mut collector,
        cpu,
        interrupted_at,
        ended,
    );
    let written = collector.finish(&result);
    print(&settings, &result).map_err(RunError::failed)?;
    written.map_err(RunError::failed)?;
    if signal.is_none() && is_unanswered(&result.tally) {
        return Err(RunError::failed(format!(
            "not one request got an HTTP reply from {}: {}",
            result.endpoint,
            counted(&result.tally)
        )));
    }
    Ok(match signal {
        Some((signal, _)) => Ending::Interrupted(signal),
        None if !result.verdict.valid => Ending::NotValid,
        None if result.checks_failed > 0 || result.thresholds.iter().any(|judged| !judged.pass) => {
            Ending::ConditionFailed
        }
        None => Ending::Ok,
    })
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

/// The label of each step, by its id.
fn step_labels(workload: &Workload) -> Vec<String> {
    let mut labels = Vec::new();
    for item in workload.flows().iter().flat_map(|flow| flow.items()) {
        if let Item::Step(step) = item {
            if labels.len() <= step.id() {
                labels.resize(step.id() + 1, String::new());
            }
            labels[step.id()] = step.label();
        }
    }
    labels
}

/// Failed checks that no step expects.
fn checks_failed(workload: &Workload, tally: &Tally) -> u64 {
    let mut failed = 0;
    for item in workload.flows().iter().flat_map(|flow| flow.items()) {
        if let Item::Step(step) = item
            && let Some(tally) = tally.steps.get(step.id())
        {
            let unexpected =
                tally.others.iter().filter(|(label, _)| label.starts_with("check.") && !step.expects(label));
            failed += unexpected.map(|(_, count)| count).sum::<u64>();
        }
    }
    failed
}

/// Whether no request got an HTTP reply, though the scenario expects one of them at least.
fn is_unanswered(tally: &Tally) -> bool {
    let expected: u64 = tally.steps.iter().map(|step| step.expected).sum();
    tally.finished() > 0 && expected == 0 && tally.outcomes().keys().all(|label| Fault::is_unanswered(label))
}

/// The outcomes in words, such as `transport.refused 5`.
fn counted(tally: &Tally) -> String {
    let outcomes = tally.outcomes();
    let words: Vec<String> = outcomes.iter().map(|(label, count)| format!("{label} {count}")).collect();
    words.join(", ")
}

/// Raises the limit of open files, and lowers that of connections to what it allows.
fn adjust_limits(settings: &Settings, progress: &Progress) -> crate::load::Limits {
    let mut limits = settings.asked.load.limits;
    let wanted = limits.connections.min(match settings.asked.load.arrivals {
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
        if room < settings.asked.load.likely_connections().max(settings.connections.unwrap_or(0)) {
            progress.say(&format!(
                "Only {room} connections fit into the limit of {allowed} open files (ulimit -n); what needs more waits."
            ));
        }
        limits.connections = limits.connections.min(room);
    }
    if let Some(warning) = ports_warning(settings) {
        progress.say(&warning);
    }
    limits
}

/// What to say if the run may use up this machine's ports: a port stays taken for a minute after its connection (TIME_WAIT),
/// so that no more new connections a second can last than a sixtieth of the range.
fn ports_warning(settings: &Settings) -> Option<String> {
    let load = &settings.asked.load;
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

/// Finds or starts the dealer. A signal ends the waiting for it.
/// `token` is the header of a token that the dealer may want to see.
async fn reach(
    settings: &Settings,
    token: Option<(String, String)>,
    signals: &mut Signals,
) -> Result<(Endpoint, Option<Embedded>), RunError> {
    let reached = async {
        match &settings.target {
            Target::Embedded(contract) => {
                let embedded = Embedded::start(settings.asked.load.seed, *contract, &settings.options)
                    .await
                    .map_err(RunError::failed)?;
                Ok((embedded.endpoint.clone(), Some(embedded)))
            }
            Target::Discover(url, contract) => {
                let mut options = settings.options.clone();
                options.headers.extend(token);
                let found = endpoint::discover(url, &options, *contract).await;
                found.map(|endpoint| (endpoint, None)).map_err(|error| match error {
                    EndpointError::Prepare { source, .. } if source.is_usage() => prepare_error(source),
                    error @ EndpointError::OtherOrigin { .. } => RunError::usage(error),
                    other => RunError::failed(other),
                })
            }
            Target::Raw(url, contract) => {
                endpoint::raw(url, *contract).map(|endpoint| (endpoint, None)).map_err(RunError::usage)
            }
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
    progress.say(&format!(
        "Running {} ({leads}) against {dealer} at {}, contract {}: {}; seed {}{start}.",
        workload.name(),
        endpoint.address,
        endpoint.contract,
        settings.asked.text,
        settings.asked.load.seed
    ));
}

/// Starts the workers and listens to them until the last one has ended. Gives the signal that ended the run, and when.
async fn drive(
    plan: &Arc<Plan>,
    clock: Clock,
    lanes: usize,
    settings: &Settings,
    collector: &mut Collector,
    signals: &mut Signals,
) -> Result<Option<(Signal, u64)>, RunError> {
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
    let mut interrupted: Option<(Signal, u64)> = None;
    loop {
        tokio::select! {
            report = incoming.recv() => {
                let Some(report) = report else { break };
                let lane = report.lane;
                let tally = collector.take(report);
                if let Some(give) = emptied.get(lane) {
                    let _ = give.send(tally);
                }
            }
            () = clock.sleep_until(deadline.unwrap_or(0)), if deadline.is_some() => {
                deadline = None;
                let _ = command.send(Command::Quit);
            }
            signal = signals.next() => {
                if interrupted.is_some() {
                    return Err(RunError::Aborted(signal));
                }
                let now = clock.now();
                interrupted = Some((signal, now));
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
    Ok(interrupted)
}

#[expect(clippy::too_many_arguments, reason = "everything that a run consists of comes together here, once")]
fn result_of(
    settings: &Settings,
    plan: &Plan,
    endpoint: &Endpoint,
    labels: Vec<String>,
    lanes: usize,
    clock: Clock,
    collector: &mut Collector,
    cpu_nanos: Option<u64>,
    interrupted_at: Option<u64>,
    ended: u64,
) -> RunResult {
    let window = plan.load.window;
    // With a number of sessions the run may end before its time is over.
    let end = match (window.to, plan.load.sessions) {
        (Some(to), None) => to,
        (to, _) => to.unwrap_or(u64::MAX).min(ended),
    };
    let end = interrupted_at.map_or(end, |at| at.min(end));
    let measured_nanos = end.saturating_sub(window.from);
    let busiest_worker = collector.busiest_worker();
    let connections = collector.connections();
    let tally = collector.take_total();
    let is_open = matches!(plan.load.arrivals, Arrivals::Open(_));
    let outcomes = tally.outcomes();
    let of_fault = |fault: Fault| outcomes.get(fault.label()).copied().unwrap_or(0);
    let verdict = judge(&Evidence {
        is_open,
        scheduled: tally.sessions.scheduled,
        on_time: tally.sessions.on_time,
        not_sent: tally.sessions.not_sent,
        finished: tally.finished(),
        is_unanswered: is_unanswered(&tally),
        lag_p99: tally.lag.quantile(0.99),
        response_p99: tally.response().quantile(0.99),
        busiest_worker,
        no_ports: of_fault(Fault::NoPorts),
        no_descriptors: of_fault(Fault::NoDescriptors),
        saturated: tally.saturated(),
        unfinished: tally.sent().saturating_sub(tally.finished()),
    });
    let begun =
        if is_open { tally.sessions.on_time } else { tally.sessions.finished + tally.sessions.failed };
    let achieved_rate = per_second(begun, measured_nanos);
    let figures = Figures {
        tally: &tally,
        labels: &labels,
        rate: achieved_rate,
        requests: per_second(tally.finished(), measured_nanos),
    };
    let thresholds = settings.thresholds.iter().map(|threshold| threshold.judge(&figures)).collect();
    RunResult {
        scenario: plan.workload.name().to_owned(),
        endpoint: endpoint.address.to_string(),
        is_embedded: endpoint.is_embedded,
        contract: endpoint.contract.to_string(),
        seed: plan.load.seed,
        started: clock.started(),
        load: settings.asked.text.clone(),
        is_interrupted: interrupted_at.is_some(),
        verdict,
        target_rate: plan.load.target_rate(),
        achieved_rate,
        warmup_nanos: window.from.min(end),
        measured_nanos,
        workers: lanes,
        cores: process::cores(),
        cpu_nanos,
        busiest_worker,
        labels,
        checks_failed: checks_failed(&plan.workload, &tally),
        tally,
        connections,
        thresholds,
    }
}

fn print(settings: &Settings, result: &RunResult) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let printed = if settings.is_json {
        serde_json::to_writer_pretty(&mut out, &Summary::from(result))
            .map_err(io::Error::from)
            .and_then(|()| writeln!(out))
    } else {
        write_text(&mut out, result)
    };
    match printed.and_then(|()| out.flush()) {
        // Whoever read the output has seen enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        other => other,
    }
}
