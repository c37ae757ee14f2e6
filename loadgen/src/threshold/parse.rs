//! From the text of a condition to its value.

use super::{Comparison, Kind, Metric, Statistic, Threshold};
use crate::report::CLASSES;
use crate::units;

const FORM: &str = "write it like p99<250ms, search.p95<80ms, service.p50<=5ms, errors<0.1%, aap.RATE_LIMITED<1%, rate>=495/s or p99[10s]<250ms";

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
        let (left, window) = match left.split_once('[') {
            None => (left, None),
            Some((left, length)) => {
                let length = length.strip_suffix(']').and_then(units::duration);
                let seconds = length.filter(|length| length.subsec_nanos() == 0 && length.as_secs() > 0);
                let seconds =
                    seconds.ok_or_else(|| fault("has a window of no whole seconds, as in p99[10s]"))?;
                (left, Some(seconds.as_secs()))
            }
        };
        let (step, metric) = parse_metric(left).ok_or_else(|| fault("names no figure"))?;
        let limit = match metric {
            Metric::Time(..) => units::duration(right).map(|limit| limit.as_secs_f64() * 1e3),
            Metric::Rate | Metric::Requests => units::rate(right),
            _ => units::ratio(right),
        };
        let limit = limit.ok_or_else(|| fault("compares with something of another kind"))?;
        Ok(Threshold { text: text.to_owned(), step, metric, window, comparison, limit })
    }
}

fn parse_metric(text: &str) -> Option<(Option<String>, Metric)> {
    let mut parts: Vec<&str> = text.split('.').collect();
    let mut last = parts.pop()?.to_owned();
    // p99.9 has a point of its own.
    if !last.is_empty()
        && last.bytes().all(|byte| byte.is_ascii_digit())
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
        ("failed", []) => return Some((None, Metric::Failed)),
        ("not_sent", []) => return Some((None, Metric::NotSent)),
        ("unfinished", []) => return Some((None, Metric::Unfinished)),
        _ => {}
    }
    if let Some(found) = parse_outcome(text) {
        return Some(found);
    }
    let statistic = match last.as_str() {
        "mean" => Statistic::Mean,
        "min" => Statistic::Min,
        "max" => Statistic::Max,
        other => Statistic::Quantile(percentile(other)?),
    };
    let of_step = |kind| matches!(kind, Kind::Response | Kind::Service | Kind::Queue);
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

/// `aap`, `aap.RATE_LIMITED`, `search.timeout.first_byte`, `ok`: an outcome or a class of them, perhaps of a step.
fn parse_outcome(text: &str) -> Option<(Option<String>, Metric)> {
    let parts: Vec<&str> = text.split('.').collect();
    let is_class = |part: &&str| CLASSES.contains(part) || *part == "ok";
    let at = parts.iter().position(is_class)?;
    let (step, outcome) = parts.split_at(at);
    let step = match step {
        [] => None,
        [step] => Some(step_name(step)?),
        _ => return None,
    };
    // `http.p99` would be the share of an outcome that there never is.
    let is_name = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
    };
    let named = match outcome {
        [_] => true,
        [class, name] => *class != "ok" && is_name(name) && percentile(name).is_none(),
        _ => false,
    };
    named.then(|| (step, Metric::Outcome(outcome.join("."))))
}

fn kind_of(text: &str) -> Option<Kind> {
    Some(match text {
        "response" => Kind::Response,
        "service" => Kind::Service,
        "queue" => Kind::Queue,
        "lag" => Kind::Lag,
        "first_byte" => Kind::FirstByte,
        "connect" => Kind::Connect,
        "tls" => Kind::Tls,
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

    #[test]
    fn percentiles_by_their_usual_names() {
        let near = |text: &str, q: f64| (percentile(text).unwrap() - q).abs() < 1e-12;
        assert!(near("p50", 0.5) && near("p99.9", 0.999) && near("p999", 0.999) && near("p9999", 0.9999));
        assert_eq!(percentile("p100"), None);
        assert_eq!(percentile("p"), None);
    }
}
