//! `summary.json`: the whole result, for scripts. Its schema is `data/schemas/summary.schema.json`.

use std::collections::BTreeMap;

use serde::Serialize;

use super::RunResult;
use crate::record::Latency;
use crate::transport::ConnectionCounts;

/// The version of the file's form.
const SCHEMA: u32 = 1;

#[derive(Debug, Serialize)]
pub(crate) struct Summary {
    schema: u32,
    tool: Tool,
    scenario: String,
    endpoint: String,
    embedded: bool,
    contract: String,
    seed: u64,
    interrupted: bool,
    verdict: VerdictPart,
    rate: RatePart,
    sessions: SessionsPart,
    requests: RequestsPart,
    outcomes: BTreeMap<String, u64>,
    latency: LatencyPart,
    steps: BTreeMap<String, StepPart>,
    thresholds: Vec<ThresholdPart>,
    run: RunPart,
    connections: ConnectionsPart,
}

#[derive(Debug, Serialize)]
struct Tool {
    name: &'static str,
    version: &'static str,
}

#[derive(Debug, Serialize)]
struct VerdictPart {
    valid: bool,
    reasons: Vec<String>,
    notes: Vec<String>,
}

#[derive(Debug, Serialize)]
struct RatePart {
    target_per_s: Option<f64>,
    achieved_per_s: f64,
    requests_per_s: f64,
}

#[derive(Debug, Serialize)]
struct SessionsPart {
    scheduled: u64,
    started: u64,
    finished: u64,
    failed: u64,
    unfinished: u64,
    not_sent: u64,
    response: LatencyView,
}

#[derive(Debug, Serialize)]
struct RequestsPart {
    sent: u64,
    finished: u64,
    ok: u64,
    errors: u64,
    checks_failed: u64,
    unfinished: u64,
    unfinished_age: LatencyView,
    warmup: u64,
}

#[derive(Debug, Serialize)]
struct LatencyPart {
    response: LatencyView,
    queue: LatencyView,
    service: LatencyView,
    lag: LatencyView,
    first_byte: LatencyView,
    connect: LatencyView,
    tls: LatencyView,
}

#[derive(Debug, Serialize)]
struct StepPart {
    sent: u64,
    errors: u64,
    outcomes: BTreeMap<String, u64>,
    response: LatencyView,
    service: LatencyView,
    /// For steps with `retry`: attempts after the first, and the time of all attempts together.
    #[serde(skip_serializing_if = "Option::is_none")]
    retries: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    total: Option<LatencyView>,
}

#[derive(Debug, Serialize)]
struct ThresholdPart {
    expr: String,
    value: Option<f64>,
    pass: bool,
}

/// How the run was made.
#[derive(Debug, Serialize)]
struct RunPart {
    started: String,
    load: String,
    warmup_ms: f64,
    measured_ms: f64,
    workers: usize,
    cores: usize,
    cpu_ms: Option<f64>,
    busiest_worker: Option<f64>,
    mean_in_flight: f64,
    little_in_flight: f64,
}

#[derive(Debug, Serialize)]
struct ConnectionsPart {
    opened: u64,
    failed: u64,
    closed_idle: u64,
    closed_by_server: u64,
    retired: u64,
    peak: u64,
}

/// A histogram as a script reads it; a percentile with too few samples is null.
#[derive(Debug, Serialize)]
struct LatencyView {
    count: u64,
    min_ms: Option<f64>,
    mean_ms: Option<f64>,
    p50_ms: Option<f64>,
    p90_ms: Option<f64>,
    p95_ms: Option<f64>,
    p99_ms: Option<f64>,
    p999_ms: Option<f64>,
    max_ms: Option<f64>,
    saturated: u64,
}

impl From<&Latency> for LatencyView {
    fn from(latency: &Latency) -> LatencyView {
        let quantile = |q| latency.quantile(q).map(millis);
        LatencyView {
            count: latency.count(),
            min_ms: latency.min().map(millis),
            mean_ms: latency.mean().map(|nanos| rounded(nanos / 1e6)),
            p50_ms: quantile(0.5),
            p90_ms: quantile(0.9),
            p95_ms: quantile(0.95),
            p99_ms: quantile(0.99),
            p999_ms: quantile(0.999),
            max_ms: latency.max().map(millis),
            saturated: latency.saturated(),
        }
    }
}

fn millis(nanos: u64) -> f64 {
    nanos as f64 / 1e6
}

/// Six decimals: a nanosecond where the unit is a millisecond.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

impl From<&RunResult> for Summary {
    fn from(result: &RunResult) -> Summary {
        let tally = &result.tally;
        let view = LatencyView::from;
        let steps = result.labels.iter().zip(&tally.steps).map(|(label, step)| {
            let mut outcomes = BTreeMap::new();
            step.add_outcomes(&mut outcomes);
            let part = StepPart {
                sent: step.sent,
                errors: step.finished() - step.expected,
                outcomes,
                response: view(&step.response),
                service: view(&step.service),
                retries: step.total.as_ref().map(|_| step.retries),
                total: step.total.as_deref().map(view),
            };
            (label.clone(), part)
        });
        Summary {
            schema: SCHEMA,
            tool: Tool { name: env!("CARGO_PKG_NAME"), version: env!("CARGO_PKG_VERSION") },
            scenario: result.scenario.clone(),
            endpoint: result.endpoint.clone(),
            embedded: result.is_embedded,
            contract: result.contract.clone(),
            seed: result.seed,
            interrupted: result.is_interrupted,
            verdict: VerdictPart {
                valid: result.verdict.valid,
                reasons: result.verdict.reasons.clone(),
                notes: result.verdict.notes.clone(),
            },
            rate: RatePart {
                target_per_s: result.target_rate.map(rounded),
                achieved_per_s: rounded(result.achieved_rate),
                requests_per_s: rounded(result.requests_rate()),
            },
            sessions: SessionsPart {
                scheduled: tally.sessions.scheduled,
                started: tally.sessions.started,
                finished: tally.sessions.finished,
                failed: tally.sessions.failed,
                unfinished: tally.unfinished_sessions(),
                not_sent: tally.sessions.not_sent,
                response: view(&tally.sessions.response),
            },
            requests: RequestsPart {
                sent: tally.sent(),
                finished: tally.finished(),
                ok: tally.ok(),
                errors: tally.errors(),
                checks_failed: result.checks_failed,
                unfinished: tally.sent().saturating_sub(tally.finished()),
                unfinished_age: view(&tally.unfinished_age),
                warmup: tally.warmup_requests,
            },
            outcomes: tally.outcomes(),
            latency: LatencyPart {
                response: view(&tally.response()),
                queue: view(&tally.queue),
                service: view(&tally.service()),
                lag: view(&tally.lag),
                first_byte: view(&tally.first_byte),
                connect: view(&tally.connect),
                tls: view(&tally.tls),
            },
            steps: steps.collect(),
            thresholds: result
                .thresholds
                .iter()
                .map(|judged| ThresholdPart {
                    expr: judged.text.clone(),
                    value: judged.value.map(rounded),
                    pass: judged.pass,
                })
                .collect(),
            run: RunPart {
                started: result.started.to_string(),
                load: result.load.clone(),
                warmup_ms: millis(result.warmup_nanos),
                measured_ms: millis(result.measured_nanos),
                workers: result.workers,
                cores: result.cores,
                cpu_ms: result.cpu_nanos.map(millis),
                busiest_worker: result.busiest_worker.map(rounded),
                mean_in_flight: rounded(result.mean_in_flight()),
                little_in_flight: rounded(result.little_in_flight()),
            },
            connections: connections(&result.connections),
        }
    }
}

fn connections(counts: &ConnectionCounts) -> ConnectionsPart {
    ConnectionsPart {
        opened: counts.opened,
        failed: counts.failed,
        closed_idle: counts.closed_idle,
        closed_by_server: counts.closed_by_server,
        retired: counts.retired,
        peak: counts.peak,
    }
}
