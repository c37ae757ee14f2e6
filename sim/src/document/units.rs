//! Durations, sizes and ratios as people write them, read exactly: no float stands between the text and the number.

/// What a duration may look like; part of the messages about a wrong one.
pub const DURATION_FORM: &str = "a number and a unit, such as 250ms, 30s, 2m or 24h";
/// What a size may look like.
pub const SIZE_FORM: &str = "a number of bytes, such as 512, 64KiB or 2MiB";
/// What a ratio may look like.
pub const RATIO_FORM: &str = "a ratio, such as 20% or 0.2";

const DURATIONS: [(&str, u64); 7] = [
    ("h", 3_600_000_000_000),
    ("m", 60_000_000_000),
    ("s", 1_000_000_000),
    ("ms", 1_000_000),
    ("us", 1_000),
    ("µs", 1_000),
    ("ns", 1),
];
const SIZES: [(&str, u64); 5] = [("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10), ("B", 1), ("", 1)];

/// A duration such as `250ms`, `1.5s` or `0s`, in nanoseconds; what is finer is cut off.
pub fn duration_ns(text: &str) -> Option<u64> {
    if text == "0" { Some(0) } else { scaled(text, &DURATIONS) }
}

/// A size such as `64KiB`, `2MiB` or `512`, in bytes.
pub fn bytes(text: &str) -> Option<u64> {
    scaled(text, &SIZES)
}

/// A number such as `0.2`, `-3` or `20%`; a percentage is a fraction of one.
pub fn number(text: &str) -> Option<f64> {
    let (digits, divisor) = text.strip_suffix('%').map_or((text, 1.0), |digits| (digits, 100.0));
    let unsigned = digits.strip_prefix('-').unwrap_or(digits);
    // Rust reads `inf`, `nan` and `1e999` too; a person who writes them errs.
    let plain = unsigned.len() <= 40
        && unsigned.starts_with(|c: char| c.is_ascii_digit())
        && unsigned.chars().all(|c| c.is_ascii_digit() || c == '.');
    digits.parse::<f64>().ok().filter(|_| plain).map(|value| value / divisor)
}

/// `number × unit`, for the unit that stands behind the digits.
fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let end = text.find(|c: char| !c.is_ascii_digit() && c != '.').unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let (_, scale) = units.iter().find(|(name, _)| *name == unit)?;
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, "0"));
    if whole.is_empty() || fraction.is_empty() || whole.len() > 20 || fraction.len() > 15 {
        return None;
    }
    let scale = u128::from(*scale);
    let ten = 10_u128.pow(u32::try_from(fraction.len()).ok()?);
    let value = whole.parse::<u128>().ok()? * scale + fraction.parse::<u128>().ok()? * scale / ten;
    u64::try_from(value).ok()
}

/// A duration in the largest unit that gives a whole number: reads back as the same.
pub fn show_duration_ns(nanos: u64) -> String {
    if nanos == 0 { "0s".to_owned() } else { shown(nanos, &DURATIONS) }
}

/// A size in the largest unit that gives a whole number: reads back as the same.
pub fn show_bytes(bytes: u64) -> String {
    if bytes == 0 { "0B".to_owned() } else { shown(bytes, &SIZES) }
}

fn shown(value: u64, units: &[(&str, u64)]) -> String {
    units
        .iter()
        .find(|(_, scale)| value.is_multiple_of(*scale))
        .map_or_else(|| value.to_string(), |(unit, scale)| format!("{}{unit}", value / scale))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_are_exact_and_bounded() {
        assert_eq!(duration_ns("250ms"), Some(250_000_000));
        assert_eq!(duration_ns("1.5s"), Some(1_500_000_000));
        assert_eq!(duration_ns("0.1us"), Some(100));
        assert_eq!(duration_ns("0"), Some(0));
        for bad in ["", "5", "s", ".5s", "5.s", "-1s", "1d", "1e3s", "99999999999999h", "1..2s"] {
            assert_eq!(duration_ns(bad), None, "{bad}");
        }
        assert_eq!((bytes("64KiB"), bytes("512"), bytes("1.5KiB")), (Some(65536), Some(512), Some(1536)));
        assert_eq!((number("20%"), number("-0.5"), number("7")), (Some(0.2), Some(-0.5), Some(7.0)));
        for bad in ["inf", "nan", "1e3", "%", "", "--1", "1.2.3", "0x1"] {
            assert_eq!(number(bad), None, "{bad}");
        }
    }

    #[test]
    fn what_is_shown_reads_back() {
        for nanos in [0, 1, 1_000, 1_500_000, 90_000_000_000, 3_600_000_000_000, u64::MAX] {
            assert_eq!(duration_ns(&show_duration_ns(nanos)), Some(nanos));
            assert_eq!(bytes(&show_bytes(nanos)), Some(nanos));
        }
    }
}
