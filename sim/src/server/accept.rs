//! `Accept` (RFC 9110, section 12.5.1). Pure.

/// How much a list of media ranges likes a type, in thousandths. The most specific range that fits decides.
pub(super) fn liking(accept: &str, [kind, subtype]: [&str; 2]) -> u32 {
    let fitting = accept.split(',').filter_map(|range| {
        let mut parts = range.split(';').map(str::trim);
        let (named_kind, named_subtype) = parts.next()?.split_once('/')?;
        let named = [(named_kind, kind), (named_subtype, subtype)].map(|(range, own)| match range {
            "*" => Some(0),
            _ => range.eq_ignore_ascii_case(own).then_some(1),
        });
        let specific = named[0]? + named[1]?;
        let weight = parts.find_map(|part| part.strip_prefix("q=").or(part.strip_prefix("Q=")));
        Some((specific, weight.map_or(1000, thousandths)))
    });
    fitting.max_by_key(|&(specific, _)| specific).map_or(0, |(_, weight)| weight)
}

/// A weight from `0` to `1` with up to three decimals; what is none weighs nothing.
fn thousandths(weight: &str) -> u32 {
    let (whole, rest) = weight.split_once('.').unwrap_or((weight, ""));
    let digits = format!("{whole}{rest:0<3}");
    if rest.len() > 3 { 0 } else { digits.parse().map_or(0, |weight: u32| weight.min(1000)) }
}
