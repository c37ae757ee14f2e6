//! What a dealer says about trying again: in an AAP error, or in HTTP's `Retry-After`.

use std::time::Duration;

use dealer_sim::protocol::error::{AAP_ERROR_KIND, AAP_ERROR_TYPE};
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use serde_json::Value;

use crate::scenario::Word;

/// The longest hint that is believed; a longer one is cut off, since a run has an end.
const LONGEST: Duration = Duration::from_secs(24 * 3600);

/// The word about a reply that is no success. `now` is the moment of its arrival, for a `Retry-After` that is a date.
pub(crate) fn word(body: &[u8], retry_after: Option<&str>, now: Timestamp) -> Word {
    let of_http = retry_after.and_then(|text| seconds_or_date(text.trim(), now));
    let body: Value = serde_json::from_slice(body).unwrap_or_default();
    // In 1.x the typed entry is all of data, and has no @type.
    let typed = |alone: &&Value| alone["type"] == AAP_ERROR_KIND;
    let entry = body.pointer("/error/data").and_then(|data| match data {
        Value::Array(entries) => entries.iter().find(|entry| entry["@type"] == AAP_ERROR_TYPE),
        alone => Some(alone).filter(typed),
    });
    // Through MCP the entry is a tool's result, through PAP it is the body.
    let entry = entry.or_else(|| body.pointer("/result/structuredContent").filter(typed));
    let entry = entry.or_else(|| Some(&body).filter(typed));
    let Some(entry) = entry else { return Word { retryable: None, after: of_http } };
    // AAP digest, section d: retry_after_ms is preferred.
    let details = &entry["details"];
    let number = |name: &str| details[name].as_f64().filter(|number| *number >= 0.0);
    let millis =
        number("retry_after_ms").or_else(|| number("retry_after_seconds").map(|seconds| seconds * 1e3));
    let after = millis.map(|millis| Duration::from_micros((millis * 1e3) as u64).min(LONGEST));
    Word { retryable: entry["retryable"].as_bool(), after: after.or(of_http) }
}

/// RFC 9110, section 10.2.3: seconds, or a date.
fn seconds_or_date(text: &str, now: Timestamp) -> Option<Duration> {
    if let Ok(seconds) = text.parse::<u64>() {
        return Some(Duration::from_secs(seconds).min(LONGEST));
    }
    let date = rfc2822::DateTimeParser::new().parse_timestamp(text).ok()?;
    let wait = Duration::try_from(date.duration_since(now)).unwrap_or_default();
    Some(wait.min(LONGEST))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn of(entry: &Value, header: Option<&str>) -> Word {
        let body = json!({"error": {"data": [{"@type": "x"}, entry]}}).to_string();
        word(body.as_bytes(), header, "2026-01-01T00:00:00Z".parse().unwrap())
    }

    #[test]
    fn the_typed_entry_comes_first_and_then_the_header() {
        let entry = |details: Value| json!({"@type": AAP_ERROR_TYPE, "retryable": true, "details": details});
        let seconds = |seconds| Some(Duration::from_secs(seconds));
        let both = json!({"retry_after_ms": 1500, "retry_after_seconds": 9});
        assert_eq!(of(&entry(both), Some("7")).after, Some(Duration::from_millis(1500)));
        assert_eq!(of(&entry(json!({"retry_after_seconds": 9})), None).after, seconds(9));
        assert_eq!(of(&entry(json!({})), Some("7")), Word { retryable: Some(true), after: seconds(7) });
        assert_eq!(of(&json!({}), Some("Thu, 01 Jan 2026 00:00:05 GMT")).after, seconds(5));
        assert_eq!(of(&json!({}), Some("Wed, 31 Dec 2025 00:00:00 GMT")).after, seconds(0));
        assert_eq!(of(&json!({}), Some("99999999")).after, seconds(24 * 3600));
        for nothing in ["", "soon", "-1", "1.5"] {
            assert_eq!(of(&json!({}), Some(nothing)), Word::default(), "{nothing}");
        }
        let alone = json!({"error": {"data": {"type": "aap.error", "retryable": true, "details": {"retry_after_ms": 30000}}}});
        let told = word(alone.to_string().as_bytes(), None, Timestamp::UNIX_EPOCH);
        assert_eq!(told, Word { retryable: Some(true), after: seconds(30) });
        let bare = &alone["error"]["data"];
        for body in [bare.clone(), json!({"result": {"isError": true, "structuredContent": bare}})] {
            assert_eq!(word(body.to_string().as_bytes(), Some("7"), Timestamp::UNIX_EPOCH), told, "{body}");
        }
        assert_eq!(word(b"<html>", None, Timestamp::UNIX_EPOCH), Word::default());
    }
}
