//! A result folder read back: the counts from its summary, the times from its interval log.
//!
//! A run that was killed leaves both as they were at its last whole second. What it had not written is lost, and its
//! summary says that it was interrupted.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};

use jiff::Timestamp;

use super::series::{self, Second};
use super::summary::{SCHEMA, Summary};
use super::{CheckResult, RunResult};
use crate::record::{AfterEnd, Latency, Line, RESPONSE, ReadError, StepTally, Tally, read_lines};
use crate::threshold::{Judged, Threshold, Unit};
use crate::transport::ConnectionCounts;
use crate::verdict::Verdict;

/// Bytes of an interval log that are read: about a day of a scenario with ten steps.
const MAX_LOG: u64 = 1 << 30;
/// Bytes of the other files.
const MAX_FILE: u64 = 64 << 20;

/// The highest count of anything that is believed: sums of many stay far below what a number holds.
pub(super) const MAX_COUNT: u64 = 1 << 48;

/// A result as its folder has it.
#[derive(Debug)]
pub(crate) struct Stored {
    /// Where it was read from, as it was given.
    pub(crate) path: PathBuf,
    pub(crate) result: RunResult,
    pub(crate) seconds: Vec<Second>,
    log: Vec<u8>,
}

/// Why a result folder cannot be read.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StoredError {
    /// A file is missing or cannot be read.
    #[error("{path} cannot be read: {reason}; a result folder is what run --out DIR has written")]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The interval log is broken.
    #[error("{path}: {source}")]
    Log {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        source: ReadError,
    },
    /// The interval log has more or fewer times than were counted.
    #[error(
        "{path}: {difference}; of a run that came to its end they are equal: one of the two files is damaged"
    )]
    Counts {
        /// The log.
        path: PathBuf,
        /// What it has, and what the summary says.
        difference: String,
    },
}

impl Stored {
    /// Reads a folder.
    pub(crate) fn read(path: &Path) -> Result<Stored, StoredError> {
        let log_path = path.join("intervals.hlog");
        let log = read_file(&log_path, MAX_LOG)?;
        let summary_path = path.join("summary.json");
        let fault = |reason: String| StoredError::File { path: summary_path.clone(), reason };
        let text = read_file(&summary_path, MAX_FILE)?;
        let summary: Summary = serde_json::from_slice(&text).map_err(|error| fault(error.to_string()))?;
        if summary.schema != SCHEMA {
            return Err(fault(format!(
                "it is of schema {}, and this program reads {SCHEMA}",
                summary.schema
            )));
        }
        if let Some(count) = summary.counts().find(|&count| count > MAX_COUNT) {
            return Err(fault(format!("the count {count} in it is more than any run makes: it is damaged")));
        }
        let started = summary.run.started.parse().map_err(|error: jiff::Error| fault(error.to_string()))?;
        // The series is for pictures: without it they show less.
        let seconds = read_file(&path.join("series.csv"), MAX_FILE)
            .map_or_else(|_| Vec::new(), |text| series::read(&String::from_utf8_lossy(&text)));
        let lines = read_lines(&log).map_err(|source| StoredError::Log { path: log_path.clone(), source })?;
        let counts = logged(&summary);
        let restored = restore(summary, started, &lines);
        let difference =
            restored.and_then(|mut result| Ok((difference(&mut result, &lines, &counts)?, result)));
        let (difference, mut result) =
            difference.map_err(|source| StoredError::Log { path: log_path.clone(), source })?;
        drop(lines);
        match difference {
            // A run that is killed between the two writes leaves a log that is ahead.
            Some(difference) if result.is_interrupted => result.verdict.notes.push(format!(
                "of intervals.hlog: {difference}; the run was killed while it wrote, or one of the two files is damaged"
            )),
            Some(difference) => return Err(StoredError::Counts { path: log_path, difference }),
            None => {}
        }
        Ok(Stored { path: path.to_owned(), result, seconds, log })
    }

    /// The lines of the interval log; they were read before.
    pub(crate) fn lines(&self) -> Vec<Line<'_>> {
        read_lines(&self.log).unwrap_or_default()
    }
}

fn read_file(path: &Path, limit: u64) -> Result<Vec<u8>, StoredError> {
    let fault = |reason: String| StoredError::File { path: path.to_owned(), reason };
    let mut bytes = Vec::new();
    let file = fs::File::open(path).map_err(|error| fault(error.to_string()))?;
    file.take(limit + 1).read_to_end(&mut bytes).map_err(|error| fault(error.to_string()))?;
    if bytes.len() as u64 > limit {
        return Err(fault(format!("it is larger than {limit} bytes")));
    }
    Ok(bytes)
}

/// The place of a tag's times.
pub(crate) fn latency_of<'t>(tally: &'t mut Tally, labels: &[String], tag: &str) -> Option<&'t mut Latency> {
    match tag {
        "lag" => return Some(&mut tally.lag),
        "first_byte" => return Some(&mut tally.first_byte),
        "connect" => return Some(&mut tally.connect),
        "tls" => return Some(&mut tally.tls),
        "session" => return Some(&mut tally.sessions.response),
        "unfinished_age" => return Some(&mut tally.unfinished_age),
        _ => {}
    }
    // A label has one slash, and no point behind it: the first point there begins the kind.
    let slash = tag.find('/')?;
    let point = slash + tag[slash..].find('.')?;
    let (label, kind) = (&tag[..point], &tag[point + 1..]);
    let step: &mut StepTally = tally.steps.get_mut(labels.iter().position(|known| known == label)?)?;
    match kind {
        "response" => Some(&mut step.response),
        "queue" => Some(&mut step.queue),
        "service" => Some(&mut step.service),
        "total" => Some(step.total.get_or_insert_default()),
        other => other.strip_prefix("outcome.").map(|outcome| step.timed_as(outcome)),
    }
}

/// The tags of an interval log, and how many times the summary says that each has. Members that came later are left out where
/// a summary has none.
fn logged(summary: &Summary) -> Vec<(String, u64)> {
    let Summary { latency, sessions, requests, .. } = summary;
    let whole = [
        (RESPONSE, latency.response.count),
        ("lag", latency.lag.count),
        ("first_byte", latency.first_byte.count),
        ("connect", latency.connect.count),
        ("tls", latency.tls.count),
        ("session", sessions.response.count),
        ("unfinished_age", requests.unfinished_age.count),
    ];
    let steps = summary.steps.iter().flat_map(|(label, step)| {
        let always = [("response", step.response.count), ("service", step.service.count)];
        let later =
            [("queue", step.queue.count), ("total", step.total.as_ref().map_or(0, |view| view.count))];
        let times = always.into_iter().chain(later.into_iter().filter(|(_, count)| *count > 0));
        let times = times.map(move |(kind, count)| (format!("{label}.{kind}"), count));
        // What is left of the response times is `ok`, which has no line of its own.
        let others = step.outcome_response.iter().filter(|(outcome, _)| *outcome != "ok");
        times.chain(others.map(move |(outcome, view)| (format!("{label}.outcome.{outcome}"), view.count)))
    });
    whole.into_iter().map(|(tag, count)| (tag.to_owned(), count)).chain(steps).collect()
}

/// The first tag of which the log has another number of times than were counted.
fn difference(
    result: &mut RunResult,
    lines: &[Line<'_>],
    counts: &[(String, u64)],
) -> Result<Option<String>, ReadError> {
    let mut response = Latency::new();
    for line in lines.iter().filter(|line| line.tag == RESPONSE) {
        line.add_to(&mut response)?;
    }
    let RunResult { tally, labels, .. } = result;
    let found = counts.iter().find_map(|(tag, counted)| {
        let read = match tag.as_str() {
            RESPONSE => response.count(),
            tag => latency_of(tally, labels, tag).map_or(0, |latency| latency.count()),
        };
        (read != *counted)
            .then(|| format!("it has {read} times of {tag:?}, and summary.json counts {counted}"))
    });
    Ok(found)
}

fn restore(summary: Summary, started: Timestamp, lines: &[Line<'_>]) -> Result<RunResult, ReadError> {
    let labels: Vec<String> = summary.steps.keys().cloned().collect();
    let mut tally = Tally::new(labels.len());
    for line in lines {
        if let Some(latency) = latency_of(&mut tally, &labels, line.tag) {
            line.add_to(latency)?;
        }
    }
    for (step, part) in tally.steps.iter_mut().zip(summary.steps.values()) {
        step.sent = part.sent;
        for (label, &count) in &part.outcomes {
            if label == "ok" { step.ok = count } else { step.count_others(label, count) }
        }
        step.retries = part.retries.unwrap_or(0);
        if let Some(total) = &part.total {
            step.total.get_or_insert_default().count_saturated(total.saturated);
        }
        step.expected = step.finished().saturating_sub(part.errors);
        step.response.count_saturated(part.response.saturated);
        step.queue.count_saturated(part.queue.saturated);
        step.service.count_saturated(part.service.saturated);
    }
    let (sessions, part) = (&mut tally.sessions, &summary.sessions);
    sessions.scheduled = part.scheduled;
    sessions.on_time = part.on_time;
    sessions.started = part.started;
    sessions.started_in_time = part.started_in_time;
    sessions.finished = part.finished;
    sessions.failed = part.failed;
    sessions.not_sent = part.not_sent;
    tally.warmup_requests = summary.requests.warmup;
    let after_end = &summary.requests.after_end;
    tally.after_end = AfterEnd { sent: after_end.sent, errors: after_end.errors };
    let run = summary.run;
    let nanos = |millis: f64| (millis * 1e6) as u64;
    tally.busy_nanos = nanos(run.mean_in_flight * run.measured_ms);
    let connections = &summary.connections;
    Ok(RunResult {
        scenario: summary.scenario,
        endpoint: summary.endpoint,
        is_embedded: summary.embedded,
        contract: summary.contract,
        binding: summary.binding,
        seed: summary.seed,
        started,
        load: run.load,
        is_interrupted: summary.interrupted,
        aborted: summary.aborted,
        conditions: run.conditions,
        scenario_sha256: run.scenario_sha256,
        parts: run.parts,
        verdict: Verdict {
            valid: summary.verdict.valid,
            reasons: summary.verdict.reasons,
            notes: summary.verdict.notes,
        },
        target_rate: summary.rate.target_per_s,
        achieved_rate: summary.rate.achieved_per_s,
        warmup_nanos: nanos(run.warmup_ms),
        measured_nanos: nanos(run.measured_ms),
        workers: run.workers,
        cores: run.cores,
        cpu_nanos: run.cpu_ms.map(nanos),
        busiest_worker: run.busiest_worker,
        labels,
        tally,
        checks_failed: summary.requests.checks_failed,
        checks: summary
            .checks
            .into_iter()
            .map(|check| CheckResult {
                step: check.step,
                name: check.name,
                failed: check.failed,
                is_expected: check.expected,
            })
            .collect(),
        connections: ConnectionCounts {
            opened: connections.opened,
            failed: connections.failed,
            closed_idle: connections.closed_idle,
            closed_by_server: connections.closed_by_server,
            retired: connections.retired,
            peak: connections.peak,
        },
        thresholds: summary
            .thresholds
            .into_iter()
            .map(|part| Judged {
                // One that a later version wrote is shown as a bare number.
                unit: Threshold::parse(&part.expr).map_or(Unit::Plain, |threshold| threshold.unit()),
                text: part.expr,
                value: part.value,
                pass: part.pass,
            })
            .collect(),
    })
}
