//! Durations, rates and ratios as a user types them.

use std::time::Duration;

/// What a duration may look like; part of the messages about a wrong one.
pub(crate) const DURATION_FORM: &str = "a number and a unit, such as 250ms, 30s, 2m or 24h";
/// What a rate may look like.
pub(crate) const RATE_FORM: &str = "a number per second, minute or hour, such as 500/s or 30/m";

/// Splits `2.5ms` into its number and its unit. Only plain decimal digits: `1e3` or `inf` are no durations.
fn number_and_unit(text: &str) -> Option<(f64, &str)> {
    let text = text.trim();
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (number, unit) = text.split_at(end);
    if !number.starts_with(|c: char| c.is_ascii_digit()) {
        return None;
    }
    Some((number.parse().ok()?, unit.trim()))
}

/// A duration such as `250ms`, `30s`, `2m`, `24h` or `0s`. Longer than 1,000 days is no duration of a load test.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let (number, unit) = number_and_unit(text)?;
    let nanos_per_unit = match unit {
        "us" | "µs" => 1e3,
        "ms" => 1e6,
        "s" => 1e9,
        "m" => 60e9,
        "h" => 3600e9,
        "" if number == 0.0 => 0.0,
        _ => return None,
    };
    let nanos = number * nanos_per_unit;
    (nanos <= 1000.0 * 24.0 * 3600e9).then(|| Duration::from_nanos(nanos as u64))
}

/// A rate such as `500/s`, `30/m` or `7200/h`, per second.
pub(crate) fn rate(text: &str) -> Option<f64> {
    let (number, unit) = number_and_unit(text)?;
    let seconds = match unit.replace(' ', "").as_str() {
        "/s" => 1.0,
        "/m" => 60.0,
        "/h" => 3600.0,
        _ => return None,
    };
    let per_second = number / seconds;
    (per_second <= 10_000_000.0).then_some(per_second)
}

/// A ratio such as `0.1%` or `0.001`, as a fraction of one.
pub(crate) fn ratio(text: &str) -> Option<f64> {
    let (number, unit) = number_and_unit(text)?;
    match unit {
        "%" => Some(number / 100.0),
        "" => Some(number),
        _ => None,
    }
}

/// A factor such as `1x` or `0.1x`; `2` alone is accepted too.
pub(crate) fn factor(text: &str) -> Option<f64> {
    let (number, unit) = number_and_unit(text)?;
    (matches!(unit, "x" | "") && number <= 1000.0).then_some(number)
}

/// A span of time in the unit a person would choose.
pub(crate) fn show_nanos(nanos: u64) -> String {
    let value = nanos as f64;
    let (value, unit) = match nanos {
        0..1_000 => return format!("{nanos}ns"),
        1_000..1_000_000 => (value / 1e3, "us"),
        1_000_000..1_000_000_000 => (value / 1e6, "ms"),
        1_000_000_000..60_000_000_000 => (value / 1e9, "s"),
        _ => (value / 60e9, "m"),
    };
    if value < 10.0 {
        format!("{value:.2}{unit}")
    } else if value < 100.0 {
        format!("{value:.1}{unit}")
    } else {
        format!("{value:.0}{unit}")
    }
}

/// The duration of a flag back as text: whole units only, so that what a user typed reads the same.
pub(crate) fn show_duration(duration: Duration) -> String {
    let nanos = duration.as_nanos();
    for (unit, size) in
        [("h", 3_600_000_000_000), ("m", 60_000_000_000), ("s", 1_000_000_000), ("ms", 1_000_000)]
    {
        if nanos >= size && nanos.is_multiple_of(size) {
            return format!("{}{unit}", nanos / size);
        }
    }
    if nanos == 0 { "0s".to_owned() } else { show_nanos(u64::try_from(nanos).unwrap_or(u64::MAX)) }
}

/// A rate as text: `50/s`, `0.5/s`.
pub(crate) fn show_rate(per_second: f64) -> String {
    let text = format!("{per_second:.3}");
    format!("{}/s", text.trim_end_matches('0').trim_end_matches('.'))
}

/// Nanoseconds of a duration; 584 years are the end of it.
pub(crate) fn nanos(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations() {
        assert_eq!(duration("250ms"), Some(Duration::from_millis(250)));
        assert_eq!(duration("2m"), Some(Duration::from_secs(120)));
        assert_eq!(duration("24h"), Some(Duration::from_secs(86_400)));
        assert_eq!(duration("1.5s"), Some(Duration::from_millis(1500)));
        assert_eq!(duration("0"), Some(Duration::ZERO));
        for wrong in ["", "s", "5", "-1s", "1d", "1e3s", "inf", "1.2.3s", "5 parsecs"] {
            assert_eq!(duration(wrong), None, "{wrong:?}");
        }
    }

    #[test]
    fn rates_ratios_factors() {
        assert_eq!(rate("500/s"), Some(500.0));
        assert_eq!(rate("30/m"), Some(0.5));
        assert_eq!(rate("500"), None);
        assert_eq!(ratio("0.1%"), Some(0.001));
        assert_eq!(ratio("0.001"), Some(0.001));
        assert_eq!(factor("0.1x"), Some(0.1));
        assert_eq!(factor("fast"), None);
    }

    #[test]
    fn shown_as_typed() {
        assert_eq!(show_duration(Duration::from_secs(15)), "15s");
        assert_eq!(show_duration(Duration::from_secs(120)), "2m");
        assert_eq!(show_duration(Duration::ZERO), "0s");
        assert_eq!(show_rate(50.0), "50/s");
        assert_eq!(show_rate(0.5), "0.5/s");
        assert_eq!(show_nanos(1_234_567), "1.23ms");
    }
}
