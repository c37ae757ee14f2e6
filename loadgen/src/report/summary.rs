//! `summary.json`: the whole result, for scripts. Its schema is `data/schemas/summary.schema.json`.

use std::collections::BTreeMap;

use dealer_sim::protocol::Binding;
use serde::{Deserialize, Serialize};

use super::RunResult;
use crate::record::Latency;
use crate::transport::ConnectionCounts;

/// The version of the file's form.
pub(super) const SCHEMA: u32 = 1;

#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct Summary {
    pub(super) schema: u32,
    pub(super) tool: Tool,
    pub(super) scenario: String,
    pub(super) endpoint: String,
    pub(super) embedded: bool,
    pub(super) contract: String,
    #[serde(default = "a2a")]
    pub(super) binding: String,
    pub(super) seed: u64,
    pub(super) interrupted: bool,
    #[serde(default)]
    pub(super) aborted: Option<String>,
    pub(super) verdict: VerdictPart,
    pub(super) rate: RatePart,
    pub(super) sessions: SessionsPart,
    pub(super) requests: RequestsPart,
    pub(super) outcomes: BTreeMap<String, u64>,
    pub(super) latency: LatencyPart,
    pub(super) steps: BTreeMap<String, StepPart>,
    pub(super) thresholds: Vec<ThresholdPart>,
    #[serde(default)]
    pub(super) checks: Vec<CheckPart>,
    pub(super) run: RunPart,
    pub(super) connections: ConnectionsPart,
}

/// What earlier versions spoke through, without saying so.
fn a2a() -> String {
    Binding::A2a.word().to_owned()
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Tool {
    pub(super) name: String,
    pub(super) version: String,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct VerdictPart {
    pub(super) valid: bool,
    pub(super) reasons: Vec<String>,
    pub(super) notes: Vec<String>,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RatePart {
    pub(super) target_per_s: Option<f64>,
    pub(super) achieved_per_s: f64,
    pub(super) requests_per_s: f64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct SessionsPart {
    pub(super) scheduled: u64,
    #[serde(default)]
    pub(super) on_time: u64,
    pub(super) started: u64,
    #[serde(default)]
    pub(super) started_in_time: u64,
    pub(super) finished: u64,
    pub(super) failed: u64,
    pub(super) unfinished: u64,
    pub(super) not_sent: u64,
    pub(super) response: LatencyView,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RequestsPart {
    pub(super) sent: u64,
    pub(super) finished: u64,
    pub(super) ok: u64,
    pub(super) errors: u64,
    pub(super) checks_failed: u64,
    pub(super) unfinished: u64,
    pub(super) unfinished_age: LatencyView,
    pub(super) warmup: u64,
    #[serde(default)]
    pub(super) after_end: AfterEndPart,
}

/// Requests of after the measured time.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct AfterEndPart {
    pub(super) sent: u64,
    pub(super) errors: u64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct LatencyPart {
    pub(super) response: LatencyView,
    pub(super) queue: LatencyView,
    pub(super) service: LatencyView,
    pub(super) lag: LatencyView,
    pub(super) first_byte: LatencyView,
    pub(super) connect: LatencyView,
    pub(super) tls: LatencyView,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct StepPart {
    pub(super) sent: u64,
    pub(super) errors: u64,
    pub(super) outcomes: BTreeMap<String, u64>,
    pub(super) response: LatencyView,
    #[serde(default)]
    pub(super) queue: LatencyView,
    pub(super) service: LatencyView,
    /// Response times by outcome.
    #[serde(default)]
    pub(super) outcome_response: BTreeMap<String, LatencyView>,
    /// For steps with `retry`: attempts after the first, and the time of all attempts together.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) retries: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) total: Option<LatencyView>,
}

/// A check of the scenario.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct CheckPart {
    pub(super) step: String,
    pub(super) name: String,
    pub(super) failed: u64,
    pub(super) expected: bool,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ThresholdPart {
    pub(super) expr: String,
    pub(super) value: Option<f64>,
    pub(super) pass: bool,
}

/// How the run was made.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct RunPart {
    pub(super) started: String,
    pub(super) load: String,
    #[serde(default)]
    pub(super) conditions: BTreeMap<String, String>,
    #[serde(default)]
    pub(super) scenario_sha256: String,
    #[serde(default)]
    pub(super) parts: Vec<String>,
    pub(super) warmup_ms: f64,
    pub(super) measured_ms: f64,
    pub(super) workers: usize,
    pub(super) cores: usize,
    pub(super) cpu_ms: Option<f64>,
    pub(super) busiest_worker: Option<f64>,
    pub(super) mean_in_flight: f64,
    pub(super) little_in_flight: f64,
    #[serde(default)]
    pub(super) little_difference: f64,
}

#[derive(Debug, Serialize, Deserialize)]
pub(super) struct ConnectionsPart {
    pub(super) opened: u64,
    pub(super) failed: u64,
    pub(super) closed_idle: u64,
    pub(super) closed_by_server: u64,
    pub(super) retired: u64,
    pub(super) peak: u64,
}

/// A histogram as a script reads it; a percentile with too few samples is null.
#[derive(Debug, Default, Serialize, Deserialize)]
pub(super) struct LatencyView {
    pub(super) count: u64,
    pub(super) min_ms: Option<f64>,
    pub(super) mean_ms: Option<f64>,
    pub(super) p50_ms: Option<f64>,
    pub(super) p90_ms: Option<f64>,
    pub(super) p95_ms: Option<f64>,
    pub(super) p99_ms: Option<f64>,
    pub(super) p999_ms: Option<f64>,
    pub(super) max_ms: Option<f64>,
    pub(super) saturated: u64,
}

impl Summary {
    /// All counts that are added up when results are merged.
    pub(super) fn counts(&self) -> impl Iterator<Item = u64> {
        let Summary { sessions, requests, connections, .. } = self;
        let whole = [
            sessions.scheduled,
            sessions.on_time,
            sessions.started,
            sessions.started_in_time,
            sessions.finished,
            sessions.failed,
            sessions.not_sent,
            requests.checks_failed,
            requests.warmup,
            requests.after_end.sent,
            requests.after_end.errors,
            connections.opened,
            connections.failed,
            connections.closed_idle,
            connections.closed_by_server,
            connections.retired,
            connections.peak,
        ];
        let steps = self.steps.values().flat_map(|step| {
            let saturated = [&step.response, &step.queue, &step.service].map(|view| view.saturated);
            let total = step.total.iter().map(|view| view.saturated);
            let own = [step.sent, step.errors, step.retries.unwrap_or(0)];
            own.into_iter().chain(step.outcomes.values().copied()).chain(saturated).chain(total)
        });
        whole.into_iter().chain(steps).chain(self.checks.iter().map(|check| check.failed))
    }
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
                queue: view(&step.queue),
                service: view(&step.service),
                retries: step.total.as_ref().map(|_| step.retries),
                total: step.total.as_deref().map(view),
                outcome_response: step
                    .responses()
                    .iter()
                    .map(|(label, latency)| (label.clone(), LatencyView::from(latency)))
                    .collect(),
            };
            (label.clone(), part)
        });
        Summary {
            schema: SCHEMA,
            tool: Tool {
                name: env!("CARGO_PKG_NAME").to_owned(),
                version: env!("CARGO_PKG_VERSION").to_owned(),
            },
            scenario: result.scenario.clone(),
            endpoint: result.endpoint.clone(),
            embedded: result.is_embedded,
            contract: result.contract.clone(),
            binding: result.binding.clone(),
            seed: result.seed,
            interrupted: result.is_interrupted,
            aborted: result.aborted.clone(),
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
                on_time: tally.sessions.on_time,
                started: tally.sessions.started,
                started_in_time: tally.sessions.started_in_time,
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
                after_end: AfterEndPart { sent: tally.after_end.sent, errors: tally.after_end.errors },
            },
            outcomes: tally.outcomes(),
            latency: LatencyPart {
                response: view(&tally.response()),
                queue: view(&tally.queue()),
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
            checks: result
                .checks
                .iter()
                .map(|check| CheckPart {
                    step: check.step.clone(),
                    name: check.name.clone(),
                    failed: check.failed,
                    expected: check.is_expected,
                })
                .collect(),
            run: RunPart {
                started: result.started.to_string(),
                load: result.load.clone(),
                conditions: result.conditions.clone(),
                scenario_sha256: result.scenario_sha256.clone(),
                parts: result.parts.clone(),
                warmup_ms: millis(result.warmup_nanos),
                measured_ms: millis(result.measured_nanos),
                workers: result.workers,
                cores: result.cores,
                cpu_ms: result.cpu_nanos.map(millis),
                busiest_worker: result.busiest_worker.map(rounded),
                mean_in_flight: rounded(result.mean_in_flight()),
                little_in_flight: rounded(result.little_in_flight()),
                little_difference: rounded(result.mean_in_flight() - result.little_in_flight()),
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
