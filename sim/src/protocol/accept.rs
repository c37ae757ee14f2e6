//! What a caller likes to be answered with (RFC 9110, section 12.5.1).

/// How much the lines of `Accept` like a media type, in thousandths, and how exactly they name it: 2 by its name, 1 by its kind,
/// 0 by `*/*`. The most specific range that fits decides; nothing where none does.
///
/// ```
/// use dealer_sim::protocol::accept::liking;
/// assert_eq!(liking(["text/*;q=0.5, text/html"], ["text", "html"]), Some((2, 1000)));
/// assert_eq!(liking(["text/*;q=0.5"], ["text", "plain"]), Some((1, 500)));
/// assert_eq!(liking(["text/html"], ["text", "plain"]), None);
/// ```
pub fn liking<'l>(lines: impl IntoIterator<Item = &'l str>, own: [&str; 2]) -> Option<(usize, u32)> {
    let ranges = lines.into_iter().flat_map(|line| line.split(','));
    let fitting = ranges.filter_map(|range| {
        let mut parts = range.split(';').map(str::trim);
        let (kind, subtype) = parts.next()?.split_once('/')?;
        let named = [(kind, own[0]), (subtype, own[1])].map(|(range, own)| match range {
            "*" => Some(0),
            _ => range.eq_ignore_ascii_case(own).then_some(1),
        });
        let specific = named[0]? + named[1]?;
        let weight = parts.find_map(|part| part.strip_prefix("q=").or(part.strip_prefix("Q=")));
        Some((specific, weight.map_or(1000, thousandths)))
    });
    fitting.max_by_key(|&(specific, _)| specific)
}

/// A weight from `0` to `1` with up to three decimals; what is none weighs nothing.
fn thousandths(weight: &str) -> u32 {
    let (whole, rest) = weight.split_once('.').unwrap_or((weight, ""));
    let digits = format!("{whole}{rest:0<3}");
    if rest.len() > 3 { 0 } else { digits.parse().map_or(0, |weight: u32| weight.min(1000)) }
}
