//! What a run must hold: `p99<250ms`, `search.p95<80ms`, `errors<0.1%`, `rate>=495/s`, `p99[10s]<250ms`. Parsed before the
//! run, judged in it and after it; all pure.
//!
//! | Figure | What it is |
//! |---|---|
//! | `p50`, `p99.9`, `mean`, `min`, `max` | of the response times of all requests; `service.p99`, `queue.p99` of other times |
//! | `search.p95`, `browse/search.service.p95` | of a step, by its name or its flow and name |
//! | `lag.p99`, `first_byte.p99`, `connect.p99`, `tls.p99`, `session.p99` | of all, never of a step |
//! | `errors`, `search.errors` | the share of requests with an outcome that the scenario does not expect |
//! | `aap`, `timeout.first_byte`, `search.aap.RATE_LIMITED` | the share of requests with this outcome, or with one of this class |
//! | `failed`, `not_sent` | the share of ended sessions that failed; of scheduled sessions that never began |
//! | `unfinished` | the share of requests that had no reply when the run gave up |
//! | `rate`, `requests` | sessions started in time, and requests finished, per second |
//!
//! With `[10s]` behind the figure the condition must hold in each ten seconds of the measured time, one after the other;
//! its value is that of the worst. A request belongs to the second in which it ended.

mod parse;
mod watch;

pub(crate) use watch::Watch;

use crate::record::{Latency, StepTally, Tally};
use crate::units;

/// One condition on a run's result.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Threshold {
    text: String,
    /// A step by its name, or by flow and name; `None` for all.
    step: Option<String>,
    metric: Metric,
    /// Each so many seconds by themselves; `None` for the whole run.
    window: Option<u64>,
    comparison: Comparison,
    limit: f64,
}

#[derive(Debug, Clone, PartialEq)]
enum Metric {
    /// In milliseconds.
    Time(Kind, Statistic),
    /// The share of requests with an outcome that the scenario does not expect.
    Errors,
    /// The share of requests with this outcome, or one of this class.
    Outcome(String),
    /// The share of ended sessions that failed.
    Failed,
    /// The share of scheduled sessions that never began.
    NotSent,
    /// The share of requests without a reply.
    Unfinished,
    /// Sessions started per second.
    Rate,
    /// Requests finished per second.
    Requests,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Response,
    Service,
    Queue,
    Lag,
    FirstByte,
    Connect,
    Tls,
    Session,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Statistic {
    Quantile(f64),
    Mean,
    Min,
    Max,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Comparison {
    Less,
    LessOrEqual,
    Greater,
    GreaterOrEqual,
}

/// A condition with what came out.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Judged {
    /// The condition as it was typed.
    pub(crate) text: String,
    /// In milliseconds, as a fraction of one, or per second; `None` if there are too few requests to tell.
    pub(crate) value: Option<f64>,
    /// Whether it holds. What cannot be told does not.
    pub(crate) pass: bool,
    /// What the value is in.
    pub(crate) unit: Unit,
}

impl Judged {
    /// The value for people.
    pub(crate) fn shown(&self) -> String {
        self.value.map_or_else(|| "too few requests to tell".to_owned(), |value| self.unit.show(value))
    }
}

/// What a figure is measured in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Milliseconds,
    Ratio,
    PerSecond,
    /// Not known: of a condition that this version cannot read.
    Plain,
}

impl Unit {
    /// A figure for people.
    pub(crate) fn show(self, value: f64) -> String {
        match self {
            Unit::Milliseconds => units::show_nanos((value * 1e6) as u64),
            Unit::Ratio => format!("{:.3} %", value * 100.0),
            Unit::PerSecond => units::show_rate(value),
            Unit::Plain => format!("{value}"),
        }
    }
}

/// What a run came to, as far as conditions speak of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Figures<'a> {
    pub(crate) tally: &'a Tally,
    /// The label of each step, `flow/step`.
    pub(crate) labels: &'a [String],
    /// Sessions started per second.
    pub(crate) rate: f64,
    /// Requests finished per second.
    pub(crate) requests: f64,
}

impl Threshold {
    /// Whether it speaks of a step and of a check that there are: one of others could never fail.
    pub(crate) fn fits(&self, labels: &[String], checks: &[String]) -> Result<(), String> {
        if let Metric::Outcome(outcome) = &self.metric
            && let Some(name) = outcome.strip_prefix("check.")
            && !checks.iter().any(|check| check == name)
        {
            let known = if checks.is_empty() { "there are none".to_owned() } else { checks.join(", ") };
            return Err(format!("{:?} speaks of a check {name:?}; the checks: {known}", self.text));
        }
        let Some(step) = &self.step else { return Ok(()) };
        if labels.iter().any(|label| names(step, label)) {
            return Ok(());
        }
        Err(format!("{:?} speaks of a step {step:?}; the steps are {}", self.text, labels.join(", ")))
    }

    /// Whether it is about parts of the run by themselves.
    pub(crate) fn is_windowed(&self) -> bool {
        self.window.is_some()
    }

    /// What its value is in.
    pub(crate) fn unit(&self) -> Unit {
        match self.metric {
            Metric::Time(..) => Unit::Milliseconds,
            Metric::Rate | Metric::Requests => Unit::PerSecond,
            Metric::Errors | Metric::Outcome(_) | Metric::Failed | Metric::NotSent | Metric::Unfinished => {
                Unit::Ratio
            }
        }
    }

    /// Whether it is about how much is done per second, which a part of a second cannot tell.
    fn is_rate(&self) -> bool {
        matches!(self.metric, Metric::Rate | Metric::Requests)
    }

    /// What came out, whatever the window.
    pub(crate) fn judge(&self, figures: &Figures<'_>) -> Judged {
        let value = self.value(figures);
        let pass = value.is_some_and(|value| match self.comparison {
            Comparison::Less => value < self.limit,
            Comparison::LessOrEqual => value <= self.limit,
            Comparison::Greater => value > self.limit,
            Comparison::GreaterOrEqual => value >= self.limit,
        });
        Judged { text: self.text.clone(), value, pass, unit: self.unit() }
    }

    /// Whether `one` is further from what is wanted than `other`.
    fn is_worse(&self, one: f64, other: f64) -> bool {
        match self.comparison {
            Comparison::Less | Comparison::LessOrEqual => one > other,
            Comparison::Greater | Comparison::GreaterOrEqual => one < other,
        }
    }

    fn value(&self, figures: &Figures<'_>) -> Option<f64> {
        let tally = figures.tally;
        let steps: Vec<&StepTally> = tally
            .steps
            .iter()
            .zip(figures.labels)
            .filter(|(_, label)| self.step.as_ref().is_none_or(|step| names(step, label)))
            .map(|(step, _)| step)
            .collect();
        let finished: u64 = steps.iter().map(|step| step.finished()).sum();
        match &self.metric {
            Metric::Rate => Some(figures.rate),
            Metric::Requests => Some(figures.requests),
            Metric::Errors => {
                let expected: u64 = steps.iter().map(|step| step.expected).sum();
                share(finished - expected, finished)
            }
            Metric::Outcome(outcome) => {
                share(steps.iter().map(|step| count_of(step, outcome)).sum(), finished)
            }
            Metric::Failed => share(tally.sessions.failed, tally.sessions.failed + tally.sessions.finished),
            Metric::NotSent => share(tally.sessions.not_sent, tally.sessions.scheduled),
            Metric::Unfinished => share(tally.sent().saturating_sub(tally.finished()), tally.sent()),
            Metric::Time(kind, statistic) => statistic.of(&time_of(*kind, tally, &steps)),
        }
    }
}

impl Statistic {
    /// In milliseconds.
    fn of(self, latency: &Latency) -> Option<f64> {
        let nanos = match self {
            Statistic::Quantile(q) => latency.quantile(q).map(|nanos| nanos as f64),
            Statistic::Mean => latency.mean(),
            Statistic::Min => latency.min().map(|nanos| nanos as f64),
            Statistic::Max => latency.max().map(|nanos| nanos as f64),
        };
        nanos.map(|nanos| nanos / 1e6)
    }
}

fn time_of(kind: Kind, tally: &Tally, steps: &[&StepTally]) -> Latency {
    let mut sum = Latency::new();
    match kind {
        Kind::Response => steps.iter().for_each(|step| sum.add(&step.response)),
        Kind::Service => steps.iter().for_each(|step| sum.add(&step.service)),
        Kind::Queue => steps.iter().for_each(|step| sum.add(&step.queue)),
        Kind::Lag => sum.add(&tally.lag),
        Kind::FirstByte => sum.add(&tally.first_byte),
        Kind::Connect => sum.add(&tally.connect),
        Kind::Tls => sum.add(&tally.tls),
        Kind::Session => sum.add(&tally.sessions.response),
    }
    sum
}

fn share(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

/// How often a step had an outcome, or one of a class.
fn count_of(step: &StepTally, outcome: &str) -> u64 {
    if outcome == "ok" {
        return step.ok;
    }
    let is_of = |label: &str| {
        label.strip_prefix(outcome).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
    };
    step.others.iter().filter(|(label, _)| is_of(label)).map(|(_, count)| count).sum()
}

/// Whether `step`, a name or flow and name, means the step of this label.
fn names(step: &str, label: &str) -> bool {
    step == label || label.rsplit('/').next() == Some(step)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tally() -> Tally {
        let mut tally = Tally::new(2);
        for (index, step) in tally.steps.iter_mut().enumerate() {
            for millis in 1..=100u64 {
                step.response.record(millis * 1_000_000 * (index as u64 + 1));
                step.service.record(1_000_000);
            }
            step.ok = 99;
            step.expected = 99;
            step.count_other("http.503");
        }
        tally
    }

    fn judge(text: &str) -> Judged {
        let labels = ["browse/search".to_owned(), "buy/lead".to_owned()];
        let threshold = Threshold::parse(text).unwrap();
        threshold.fits(&labels, &[]).unwrap();
        threshold.judge(&Figures { tally: &tally(), labels: &labels, rate: 499.0, requests: 1500.0 })
    }

    #[test]
    fn conditions_hold_or_do_not() {
        assert!(judge("p50<200ms").pass);
        assert!(!judge("p99 < 100ms").pass);
        assert!(judge("search.p95<=96ms").pass);
        assert!(!judge("buy/lead.p95<100ms").pass);
        assert!(judge("lead.service.max<2ms").pass);
        assert!(judge("errors<=1%").pass);
        assert!(!judge("search.errors<0.001").pass);
        assert!(judge("rate>=495/s").pass);
        assert!(!judge("requests>1500/s").pass);
        let value = judge("search.p50<1s").value.unwrap();
        assert!((49.0..52.0).contains(&value), "{value}");
    }

    #[test]
    fn what_cannot_be_told_does_not_hold() {
        let judged = judge("p99.99<10s");
        assert_eq!((judged.value, judged.pass), (None, false));
        assert!(!judge("queue.p50<1s").pass);
    }

    #[test]
    fn shares_of_outcomes_and_classes() {
        let value = |text: &str| judge(text).value.unwrap();
        assert!((value("http<5%") - 0.01).abs() < 1e-9);
        assert!((value("http.503<5%") - 0.01).abs() < 1e-9);
        assert!((value("search.http.503<5%") - 0.01).abs() < 1e-9);
        assert!(value("http.50<5%").abs() < 1e-9);
        assert!(value("aap<=0%").abs() < 1e-9 && value("search.timeout.first_byte<1%").abs() < 1e-9);
        assert!((value("ok>=99%") - 0.99).abs() < 1e-9 && judge("ok>=99%").pass);
        assert!(!judge("failed<1%").pass, "no session has ended");
        assert!(judge("unfinished<=0%").value.is_none());
    }

    #[test]
    fn parts_are_put_together() {
        assert!(matches!(
            Threshold::parse("service.p99.9<1s").unwrap().metric,
            Metric::Time(Kind::Service, Statistic::Quantile(q)) if (q - 0.999).abs() < 1e-12
        ));
    }

    #[test]
    fn faults_say_what_is_allowed() {
        for wrong in [
            "p99",
            "p99<250",
            "p99.<1s",
            "p99=1ms",
            "<1ms",
            "errors<5ms",
            "rate>5%",
            "a.b.c.p99<1s",
            "se arch/.p9<1",
            "x.lag.p9<1s",
            "p99[0s]<1s",
            "p99[1500ms]<1s",
            "p99[10s<1s",
            "search.rate>5/s",
            "aap<5ms",
            "http.<5%",
        ] {
            let message = Threshold::parse(wrong).unwrap_err();
            assert!(message.contains("p99<250ms"), "{message}");
        }
        let message =
            Threshold::parse("serch.p95<80ms").unwrap().fits(&["browse/search".to_owned()], &[]).unwrap_err();
        assert!(message.contains("browse/search"), "{message}");
        let of_check = Threshold::parse("check.totl<1%").unwrap();
        let message = of_check.fits(&[], &["total".to_owned()]).unwrap_err();
        assert!(message.contains("totl") && message.ends_with("the checks: total"), "{message}");
        assert!(of_check.fits(&[], &["totl".to_owned()]).is_ok());
        assert_eq!(Threshold::parse("search.p99[2m]<1s").unwrap().window, Some(120));
    }
}
