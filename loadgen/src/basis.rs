//! What is known of a run before it starts, and how a result comes of it and of what was recorded: at the end, and each
//! second for those who read while it goes on.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;

use crate::load::{ArrivalTime, Arrivals, Load, Shard, Window};
use crate::process;
use crate::record::Tally;
use crate::report::{CheckResult, RunResult, per_second};
use crate::scenario::{Item, Step, Workload};
use crate::threshold::{Figures, Watch};
use crate::transport::{ConnectionCounts, Fault};
use crate::units::nanos;
use crate::verdict::{Evidence, judge};

/// What is known of a run before it starts.
#[derive(Debug, Clone)]
pub(crate) struct Basis {
    pub(crate) scenario: String,
    pub(crate) endpoint: String,
    pub(crate) is_embedded: bool,
    pub(crate) contract: String,
    pub(crate) binding: String,
    pub(crate) load: Load,
    pub(crate) arrival_time: ArrivalTime,
    pub(crate) load_text: String,
    pub(crate) conditions: BTreeMap<String, String>,
    pub(crate) scenario_sha256: String,
    pub(crate) started: Timestamp,
    pub(crate) lanes: usize,
    /// By the step's id.
    pub(crate) labels: Vec<String>,
    pub(crate) checks: Vec<Check>,
    /// CPU time that this process had used before, in nanoseconds.
    pub(crate) cpu_before: Option<u64>,
}

/// A check of a step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Check {
    step: usize,
    name: String,
    is_expected: bool,
}

/// What a run has seen, beside its tally.
#[derive(Debug, Clone)]
pub(crate) struct Seen {
    /// The end of the measured time, in nanoseconds from the start.
    pub(crate) end: u64,
    /// Whether it ended before its time, or has not ended yet.
    pub(crate) is_interrupted: bool,
    /// Whether it goes on.
    pub(crate) is_running: bool,
    /// The threshold that ended it.
    pub(crate) aborted: Option<String>,
    pub(crate) busiest_worker: Option<f64>,
    pub(crate) connections: ConnectionCounts,
}

impl Basis {
    /// The measured time.
    pub(crate) fn window(&self) -> Window {
        self.load.window
    }

    /// When the measured time of a run ended that stopped at `ended`; `stopped` says when it was told to.
    pub(crate) fn end(&self, stopped: Option<u64>, ended: u64) -> u64 {
        // With a number of sessions the run may end before its time is over.
        let end = match (self.load.window.to, self.load.sessions) {
            (Some(to), None) => to,
            (to, _) => to.unwrap_or(u64::MAX).min(ended),
        };
        stopped.map_or(end, |at| at.min(end))
    }

    /// Sessions per second that were begun in time; with users, ended. A schedule that ends with its sessions has the time that
    /// it gives to them, whenever the last one is over.
    fn achieved_rate(&self, tally: &Tally, measured: u64, is_over: bool) -> f64 {
        let length = if self.is_open() { self.arrival_time.length(measured, is_over) } else { measured };
        per_second(tally.sessions.of_rate(self.is_open()), length)
    }

    fn is_open(&self) -> bool {
        self.load.is_open()
    }

    /// Whether this process is a shard that no measured session, or user, falls to.
    fn has_no_share(&self, tally: &Tally) -> bool {
        let Load { shard, window, .. } = self.load;
        if shard == Shard::WHOLE || tally.sessions.scheduled > 0 {
            return false;
        }
        match &self.load.arrivals {
            Arrivals::Open(schedule) => {
                let mut own = schedule.lane(u64::from(shard.index), u64::from(shard.count));
                !own.any(|arrival| window.contains(arrival.at))
            }
            Arrivals::Closed { users } => {
                let users = u64::from(*users);
                shard.of(self.load.sessions.map_or(users, |sessions| sessions.min(users))) == 0
            }
        }
    }

    /// The figures that conditions speak of, of a run that has measured so long; `is_over` says whether it came to its own end.
    pub(crate) fn figures<'a>(&'a self, tally: &'a Tally, measured: u64, is_over: bool) -> Figures<'a> {
        Figures {
            tally,
            labels: &self.labels,
            rate: self.achieved_rate(tally, measured, is_over),
            requests: per_second(tally.finished(), measured),
        }
    }

    /// The result.
    pub(crate) fn result(&self, tally: Tally, seen: Seen, watch: &Watch) -> RunResult {
        let window = self.load.window;
        let measured_nanos = seen.end.saturating_sub(window.from);
        let outcomes = tally.outcomes();
        let of_fault = |fault: Fault| outcomes.get(fault.label()).copied().unwrap_or(0);
        let mut verdict = judge(&Evidence {
            is_open: self.is_open(),
            scheduled: tally.sessions.scheduled,
            on_time: tally.sessions.on_time,
            not_sent: tally.sessions.not_sent,
            finished: tally.finished(),
            has_no_share: self.has_no_share(&tally),
            is_unanswered: is_unanswered(&tally),
            lag_p99: tally.lag.quantile(0.99),
            response_p99: tally.response().quantile(0.99),
            busiest_worker: seen.busiest_worker,
            no_ports: of_fault(Fault::NoPorts),
            no_descriptors: of_fault(Fault::NoDescriptors),
            saturated: tally.saturated(),
            unfinished: if seen.is_running { 0 } else { tally.sent().saturating_sub(tally.finished()) },
            errors_after_end: tally.after_end.errors,
        });
        if seen.is_running {
            verdict.notes.push("the run had not ended when this was written".to_owned());
        }
        let thresholds = watch.judged(&self.figures(&tally, measured_nanos, !seen.is_interrupted));
        let checks: Vec<CheckResult> = self.checks.iter().map(|check| self.checked(check, &tally)).collect();
        RunResult {
            scenario: self.scenario.clone(),
            endpoint: self.endpoint.clone(),
            is_embedded: self.is_embedded,
            contract: self.contract.clone(),
            binding: self.binding.clone(),
            seed: self.load.seed,
            started: self.started,
            load: self.load_text.clone(),
            is_interrupted: seen.is_interrupted,
            aborted: seen.aborted,
            conditions: self.conditions.clone(),
            scenario_sha256: self.scenario_sha256.clone(),
            parts: Vec::new(),
            verdict,
            target_rate: self.load.target_rate(),
            achieved_rate: self.achieved_rate(&tally, measured_nanos, !seen.is_interrupted),
            warmup_nanos: window.from.min(seen.end),
            measured_nanos,
            workers: self.lanes,
            cores: process::cores(),
            cpu_nanos: process::process_cpu()
                .zip(self.cpu_before)
                .map(|(now, before)| nanos(now).saturating_sub(before)),
            busiest_worker: seen.busiest_worker,
            labels: self.labels.clone(),
            checks_failed: checks.iter().filter(|check| !check.is_expected).map(|check| check.failed).sum(),
            checks,
            tally,
            connections: seen.connections,
            thresholds,
        }
    }

    fn checked(&self, check: &Check, tally: &Tally) -> CheckResult {
        let label = format!("check.{}", check.name);
        let others = tally.steps.get(check.step).map(|step| &step.others);
        CheckResult {
            step: self.labels.get(check.step).cloned().unwrap_or_default(),
            failed: others.and_then(|others| others.get(label.as_str())).copied().unwrap_or(0),
            name: check.name.clone(),
            is_expected: check.is_expected,
        }
    }
}

fn steps(workload: &Workload) -> impl Iterator<Item = &Step> {
    workload.flows().iter().flat_map(|flow| flow.items()).filter_map(|item| match item {
        Item::Step(step) => Some(step),
        _ => None,
    })
}

/// The label of each step, by its id.
pub(crate) fn step_labels(workload: &Workload) -> Vec<String> {
    let mut labels = Vec::new();
    for step in steps(workload) {
        if labels.len() <= step.id() {
            labels.resize(step.id() + 1, String::new());
        }
        labels[step.id()] = step.label();
    }
    labels
}

/// The names of all checks.
pub(crate) fn check_names(workload: &Workload) -> Vec<String> {
    let names: BTreeSet<String> = checks_of(workload).into_iter().map(|check| check.name).collect();
    names.into_iter().collect()
}

/// The checks of all steps.
pub(crate) fn checks_of(workload: &Workload) -> Vec<Check> {
    let mut checks: Vec<Check> = Vec::new();
    for step in steps(workload) {
        for name in step.check_names() {
            let is_expected = step.expects(&format!("check.{name}"));
            let check = Check { step: step.id(), name: name.to_owned(), is_expected };
            // Several conditions may have one name: they are one outcome.
            if !checks.contains(&check) {
                checks.push(check);
            }
        }
    }
    checks
}

/// Whether no request got an HTTP reply, though the scenario expects one of them at least.
pub(crate) fn is_unanswered(tally: &Tally) -> bool {
    let expected: u64 = tally.steps.iter().map(|step| step.expected).sum();
    tally.finished() > 0 && expected == 0 && tally.outcomes().keys().all(|label| Fault::is_unanswered(label))
}
