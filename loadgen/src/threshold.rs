//! What a run must hold: `p99<250ms`, `search.p95<80ms`, `errors<0.1%`, `rate>=495/s`. Parsed before the run, judged
//! after it; both pure.

use crate::record::{Latency, StepTally, Tally};
use crate::units;

/// One condition on a run's result.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Threshold {
    text: String,
    /// A step by its name, or by flow and name; `None` for all.
    step: Option<String>,
    metric: Metric,
    comparison: Comparison,
    limit: f64,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Metric {
    /// In milliseconds.
    Time(Kind, Statistic),
    /// The share of requests with an outcome that the scenario does not expect.
    Errors,
    /// Sessions started per second.
    Rate,
    /// Requests finished per second.
    Requests,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Kind {
    Response,
    Service,
    Queue,
    Lag,
    FirstByte,
    Session,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Statistic {
    Quantile(f64),
    Mean,
    Min,
    Max,
}

#[derive(Debug, Clone, Copy, PartialEq)]
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

/// What a figure is measured in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unit {
    Milliseconds,
    Ratio,
    PerSecond,
}

impl Unit {
    /// A figure for people.
    pub(crate) fn show(self, value: f64) -> String {
        match self {
            Unit::Milliseconds => units::show_nanos((value * 1e6) as u64),
            Unit::Ratio => format!("{:.3} %", value * 100.0),
            Unit::PerSecond => units::show_rate(value),
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

const FORM: &str = "write it like p99<250ms, search.p95<80ms, service.p50<=5ms, errors<0.1% or rate>=495/s";

impl Threshold {
    /// Reads a condition. The message of a fault says what is wrong with it and what is allowed.
    pub(crate) fn parse(text: &str) -> Result<Threshold, String> {
        let bare: String = text.chars().filter(|c| !c.is_whitespace()).collect();
        let fault = |what: &str| format!("{text:?} {what}; {FORM}");
        let at = bare.find(['<', '>']).ok_or_else(|| fault("has no comparison"))?;
        let (left, rest) = bare.split_at(at);
        let (comparison, right) = match rest.strip_prefix("<=").map(|right| (Comparison::LessOrEqual, right))
        {
            Some(found) => found,
            None => match rest.strip_prefix(">=") {
                Some(right) => (Comparison::GreaterOrEqual, right),
                None if rest.starts_with('<') => (Comparison::Less, &rest[1..]),
                None => (Comparison::Greater, &rest[1..]),
            },
        };
        let (step, metric) = parse_metric(left).ok_or_else(|| fault("names no figure"))?;
        let limit = match metric {
            Metric::Time(..) => units::duration(right).map(|limit| limit.as_secs_f64() * 1e3),
            Metric::Errors => units::ratio(right),
            Metric::Rate | Metric::Requests => units::rate(right),
        };
        let limit = limit.ok_or_else(|| fault("compares with something of another kind"))?;
        Ok(Threshold { text: text.to_owned(), step, metric, comparison, limit })
    }

    /// Whether it speaks of a step that there is.
    pub(crate) fn fits(&self, labels: &[String]) -> Result<(), String> {
        let Some(step) = &self.step else { return Ok(()) };
        if labels.iter().any(|label| names(step, label)) {
            return Ok(());
        }
        Err(format!("{:?} speaks of a step {step:?}; the steps are {}", self.text, labels.join(", ")))
    }

    /// What came out.
    pub(crate) fn judge(&self, figures: &Figures<'_>) -> Judged {
        let value = self.value(figures);
        let pass = value.is_some_and(|value| match self.comparison {
            Comparison::Less => value < self.limit,
            Comparison::LessOrEqual => value <= self.limit,
            Comparison::Greater => value > self.limit,
            Comparison::GreaterOrEqual => value >= self.limit,
        });
        let unit = match self.metric {
            Metric::Time(..) => Unit::Milliseconds,
            Metric::Errors => Unit::Ratio,
            Metric::Rate | Metric::Requests => Unit::PerSecond,
        };
        Judged { text: self.text.clone(), value, pass, unit }
    }

    fn value(&self, figures: &Figures<'_>) -> Option<f64> {
        let steps: Vec<&StepTally> = figures
            .tally
            .steps
            .iter()
            .zip(figures.labels)
            .filter(|(_, label)| self.step.as_ref().is_none_or(|step| names(step, label)))
            .map(|(step, _)| step)
            .collect();
        match self.metric {
            Metric::Rate => Some(figures.rate),
            Metric::Requests => Some(figures.requests),
            Metric::Errors => {
                let finished: u64 = steps.iter().map(|step| step.finished()).sum();
                let expected: u64 = steps.iter().map(|step| step.expected).sum();
                (finished > 0).then(|| (finished - expected) as f64 / finished as f64)
            }
            Metric::Time(kind, statistic) => {
                let mut sum = Latency::new();
                match kind {
                    Kind::Response => steps.iter().for_each(|step| sum.add(&step.response)),
                    Kind::Service => steps.iter().for_each(|step| sum.add(&step.service)),
                    Kind::Queue => sum.add(&figures.tally.queue),
                    Kind::Lag => sum.add(&figures.tally.lag),
                    Kind::FirstByte => sum.add(&figures.tally.first_byte),
                    Kind::Session => sum.add(&figures.tally.sessions.response),
                }
                match statistic {
                    Statistic::Quantile(q) => sum.quantile(q).map(|nanos| nanos as f64 / 1e6),
                    Statistic::Mean => sum.mean().map(|nanos| nanos / 1e6),
                    Statistic::Min => sum.min().map(|nanos| nanos as f64 / 1e6),
                    Statistic::Max => sum.max().map(|nanos| nanos as f64 / 1e6),
                }
            }
        }
    }
}

/// Whether `step`, a name or flow and name, means the step of this label.
fn names(step: &str, label: &str) -> bool {
    step == label || label.rsplit('/').next() == Some(step)
}

fn parse_metric(text: &str) -> Option<(Option<String>, Metric)> {
    let mut parts: Vec<&str> = text.split('.').collect();
    let mut last = parts.pop()?.to_owned();
    // p99.9 has a point of its own.
    if last.bytes().all(|byte| byte.is_ascii_digit())
        && let Some(before) = parts.last()
        && percentile(before).is_some()
    {
        last = format!("{before}.{last}");
        parts.pop();
    }
    match (last.as_str(), parts.as_slice()) {
        ("rate", []) => return Some((None, Metric::Rate)),
        ("requests", []) => return Some((None, Metric::Requests)),
        ("errors", []) => return Some((None, Metric::Errors)),
        ("errors", [step]) => return step_name(step).map(|step| (Some(step), Metric::Errors)),
        _ => {}
    }
    let statistic = match last.as_str() {
        "mean" => Statistic::Mean,
        "min" => Statistic::Min,
        "max" => Statistic::Max,
        other => Statistic::Quantile(percentile(other)?),
    };
    let of_step = |kind| matches!(kind, Kind::Response | Kind::Service);
    match parts.as_slice() {
        [] => Some((None, Metric::Time(Kind::Response, statistic))),
        [one] => match kind_of(one) {
            Some(kind) => Some((None, Metric::Time(kind, statistic))),
            None => Some((Some(step_name(one)?), Metric::Time(Kind::Response, statistic))),
        },
        [step, kind] => {
            let kind = kind_of(kind).filter(|&kind| of_step(kind))?;
            Some((Some(step_name(step)?), Metric::Time(kind, statistic)))
        }
        _ => None,
    }
}

fn kind_of(text: &str) -> Option<Kind> {
    Some(match text {
        "response" => Kind::Response,
        "service" => Kind::Service,
        "queue" => Kind::Queue,
        "lag" => Kind::Lag,
        "first_byte" => Kind::FirstByte,
        "session" => Kind::Session,
        _ => return None,
    })
}

fn step_name(text: &str) -> Option<String> {
    let valid = |name: &str| {
        !name.is_empty()
            && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'))
    };
    let parts: Vec<&str> = text.split('/').collect();
    (parts.len() <= 2 && parts.iter().all(|part| valid(part))).then(|| text.to_owned())
}

/// `p95`, `p99.9`, and `p999` for the same.
fn percentile(text: &str) -> Option<f64> {
    let digits = text.strip_prefix('p')?;
    if digits.is_empty() || !digits.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.') {
        return None;
    }
    let percent: f64 = match digits.len() {
        3.. if !digits.starts_with('9') && !digits.contains('.') => return None,
        3.. if !digits.contains('.') => format!("{}.{}", &digits[..2], &digits[2..]).parse().ok()?,
        _ => digits.parse().ok()?,
    };
    (percent > 0.0 && percent < 100.0).then_some(percent / 100.0)
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
        threshold.fits(&labels).unwrap();
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
    fn percentiles_by_their_usual_names() {
        let near = |text: &str, q: f64| (percentile(text).unwrap() - q).abs() < 1e-12;
        assert!(near("p50", 0.5) && near("p99.9", 0.999) && near("p999", 0.999) && near("p9999", 0.9999));
        assert_eq!(percentile("p100"), None);
        assert_eq!(percentile("p"), None);
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
            "p99=1ms",
            "<1ms",
            "errors<5ms",
            "rate>5%",
            "a.b.c.p99<1s",
            "se arch/.p9<1",
            "x.queue.p9<1s",
        ] {
            let message = Threshold::parse(wrong).unwrap_err();
            assert!(message.contains("p99<250ms"), "{message}");
        }
        let message =
            Threshold::parse("serch.p95<80ms").unwrap().fits(&["browse/search".to_owned()]).unwrap_err();
        assert!(message.contains("browse/search"), "{message}");
    }
}
