//! Text formats of AAP payloads. The rules are those that the AAP project's own validator asserts (JSON Schema formats
//! `date`, `date-time`, `email`, `uri`, and ECMA-262 patterns): AAP digest, section d.

/// A rule on the text of a string.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// Any text.
    Any,
    /// 17 characters of the VIN alphabet; the check digit is not asserted.
    Vin,
    /// An E.164 phone number with its plus sign.
    E164,
    /// A US ZIP code: five digits, or five and four with a hyphen between.
    Zip,
    /// `HH:MM`, 24 hours.
    HourMinute,
    /// At least one character that is not white space.
    NonBlank,
    /// RFC 3339 full-date.
    Date,
    /// RFC 3339 date-time with an offset.
    DateTime,
    /// An e-mail address.
    Email,
    /// An absolute URI (RFC 3986).
    Uri,
}

impl Format {
    /// Whether `text` keeps the rule.
    ///
    /// ```
    /// use dealer_sim::protocol::format::Format;
    /// assert!(Format::E164.holds("+14155550123"));
    /// assert!(!Format::E164.holds("+1415555012٣"));
    /// assert!(Format::DateTime.holds("2026-04-30T10:15:00-07:00"));
    /// assert!(!Format::DateTime.holds("2026-02-30T10:15:00Z"));
    /// ```
    pub fn holds(self, text: &str) -> bool {
        match self {
            Format::Any => true,
            Format::Vin => text.len() == 17 && text.bytes().all(is_vin_character),
            Format::E164 => is_e164(text),
            Format::Zip => is_zip(text.as_bytes()),
            Format::HourMinute => is_hour_minute(text.as_bytes()),
            Format::NonBlank => !text.chars().all(is_ecma_white_space),
            Format::Date => text.len() == 10 && date(text.as_bytes()).is_some(),
            Format::DateTime => date_time(text).is_some(),
            Format::Email => is_email(text),
            Format::Uri => is_uri(text),
        }
    }

    /// The ECMA-262 pattern that says the same, for the formats that JSON Schema has no name for.
    pub fn pattern(self) -> Option<&'static str> {
        match self {
            Format::Vin => Some("^[A-HJ-NPR-Z0-9]{17}$"),
            Format::E164 => Some(r"^\+[1-9][0-9]{1,14}$"),
            Format::Zip => Some("^[0-9]{5}(-[0-9]{4})?$"),
            Format::HourMinute => Some("^([01][0-9]|2[0-3]):[0-5][0-9]$"),
            Format::NonBlank => Some(r"\S"),
            _ => None,
        }
    }

    /// The JSON Schema name of the format, for those that have one.
    pub fn name(self) -> Option<&'static str> {
        match self {
            Format::Date => Some("date"),
            Format::DateTime => Some("date-time"),
            Format::Email => Some("email"),
            Format::Uri => Some("uri"),
            _ => None,
        }
    }
}

fn is_vin_character(byte: u8) -> bool {
    byte.is_ascii_digit() || (byte.is_ascii_uppercase() && !matches!(byte, b'I' | b'O' | b'Q'))
}

fn is_e164(text: &str) -> bool {
    let Some(digits) = text.strip_prefix('+') else { return false };
    (2..=15).contains(&digits.len())
        && digits.bytes().all(|byte| byte.is_ascii_digit())
        && !digits.starts_with('0')
}

fn is_zip(text: &[u8]) -> bool {
    let (five, rest) = text.split_at(text.len().min(5));
    let digits = |part: &[u8], count| part.len() == count && part.iter().all(u8::is_ascii_digit);
    digits(five, 5) && (rest.is_empty() || rest.strip_prefix(b"-").is_some_and(|four| digits(four, 4)))
}

fn is_hour_minute(text: &[u8]) -> bool {
    text.len() == 5
        && text[2] == b':'
        && two(&text[..2]).is_some_and(|hour| hour < 24)
        && two(&text[3..]).is_some_and(|minute| minute < 60)
}

/// White space as `\s` of ECMA-262 has it: Unicode's, less NEL, plus the byte order mark.
fn is_ecma_white_space(character: char) -> bool {
    (character.is_whitespace() && character != '\u{85}') || character == '\u{feff}'
}

/// Dot-separated words before the `@`, host labels with at least one dot behind it (the rule of `ajv-formats`).
fn is_email(text: &str) -> bool {
    let Some((local, host)) = text.split_once('@') else { return false };
    let is_word = |word: &str| {
        !word.is_empty()
            && word.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+/=?^_`{|}~-".contains(&byte))
    };
    let is_label = |label: &str| {
        !label.is_empty()
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    local.split('.').all(is_word) && host.contains('.') && host.split('.').all(is_label)
}

/// RFC 3986 with a scheme and something behind it: a bare `http:` is a URI by the grammar, and leads nowhere.
fn is_uri(text: &str) -> bool {
    fluent_uri::Uri::parse(text).is_ok_and(|uri| uri.has_authority() || !uri.path().as_str().is_empty())
}

fn two(digits: &[u8]) -> Option<u32> {
    match digits {
        [tens @ b'0'..=b'9', ones @ b'0'..=b'9'] => {
            Some(u32::from(tens - b'0') * 10 + u32::from(ones - b'0'))
        }
        _ => None,
    }
}

fn is_leap(year: u32) -> bool {
    year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400))
}

/// Days since 1970-01-01 of a `YYYY-MM-DD` at the start of `text`, when the day exists.
fn date(text: &[u8]) -> Option<i64> {
    let text = text.get(..10)?;
    if text[4] != b'-' || text[7] != b'-' {
        return None;
    }
    let year = two(&text[..2])? * 100 + two(&text[2..4])?;
    let (month, day) = (two(&text[5..7])?, two(&text[8..10])?);
    let length = match month {
        4 | 6 | 9 | 11 => 30,
        2 => 28 + u32::from(is_leap(year)),
        1..=12 => 31,
        _ => return None,
    };
    if day == 0 || day > length {
        return None;
    }
    // Howard Hinnant, "chrono-compatible low-level date algorithms": years start in March, so the leap day is last.
    let (year, month, day) = (i64::from(year), i64::from(month), i64::from(day));
    let year = if month <= 2 { year - 1 } else { year };
    let era = year.div_euclid(400);
    let year_of_era = year.rem_euclid(400);
    let day_of_year = (153 * (month + if month > 2 { -3 } else { 9 }) + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    Some(era * 146_097 + day_of_era - 719_468)
}

/// The instant of an RFC 3339 `date-time`, in seconds and nanoseconds since 1970, or `None` when the text is not one.
/// Fractions finer than a nanosecond are cut. A leap second is accepted where it can occur, at 23:59:60 UTC.
pub fn date_time(text: &str) -> Option<(i64, u32)> {
    let text = text.as_bytes();
    let days = date(text)?;
    if !matches!(text.get(10)?, b'T' | b't') || text.get(13)? != &b':' || text.get(16)? != &b':' {
        return None;
    }
    let (hour, minute) = (two(text.get(11..13)?)?, two(text.get(14..16)?)?);
    let second = two(text.get(17..19)?)?;
    if hour > 23 || minute > 59 || second > 60 {
        return None;
    }
    let mut rest = &text[19..];
    let mut nanos = 0;
    if let Some(fraction) = rest.strip_prefix(b".") {
        let digits = fraction.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if digits == 0 {
            return None;
        }
        let value = |at: usize| fraction[..digits].get(at).map_or(0, |byte| u32::from(byte - b'0'));
        nanos = (0..9).fold(0, |sum, at| sum * 10 + value(at));
        rest = &fraction[digits..];
    }
    let offset = match rest {
        b"Z" | b"z" => 0,
        [sign @ (b'+' | b'-'), hours @ .., b':', m1, m2] => {
            let (hours, minutes) = (two(hours)?, two(&[*m1, *m2])?);
            if hours > 23 || minutes > 59 {
                return None;
            }
            let minutes = i64::from(hours * 60 + minutes);
            if *sign == b'+' { minutes } else { -minutes }
        }
        _ => return None,
    };
    let minutes = days * 1440 + i64::from(hour * 60 + minute) - offset;
    if second == 60 && minutes.rem_euclid(1440) != 1439 {
        return None;
    }
    Some((minutes * 60 + i64::from(second), nanos))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn date_times_are_rfc_3339_and_exist() {
        assert_eq!(date_time("1970-01-01T00:00:00Z"), Some((0, 0)));
        assert_eq!(date_time("2026-04-30T10:15:00.25-07:00"), Some((1_777_569_300, 250_000_000)));
        assert_eq!(date_time("2000-02-29t12:00:00z"), Some((951_825_600, 0)));
        assert_eq!(date_time("2016-12-31T15:59:60-08:00"), Some((1_483_228_800, 0)));
        for bad in [
            "2026-01-01",
            "2026-01-01T10:00:00",
            "2026-01-01 10:00:00Z",
            "2026-01-01T10:00Z",
            "2026-01-01T24:00:00Z",
            "2026-01-01T10:00:00+0100",
            "2026-01-01T10:00:00+24:00",
            "2026-01-01T10:00:60Z",
            "2026-01-01T10:00:00.Z",
            "2026-13-01T10:00:00Z",
            "2025-02-29T10:00:00Z",
            "2026-1-01T10:00:00Z",
            "٢٠٢٦-01-01T10:00:00Z",
            "2026-01-01T10:00:00Z ",
        ] {
            assert_eq!(date_time(bad), None, "{bad}");
        }
    }

    #[test]
    fn every_day_of_four_centuries_agrees_with_the_calendar_crate() {
        let mut day = jiff::civil::date(1899, 12, 30);
        while day.year() < 2301 {
            let days = date(day.to_string().as_bytes()).unwrap();
            assert_eq!(days, day.duration_since(jiff::civil::date(1970, 1, 1)).as_secs() / 86_400, "{day}");
            day = day.tomorrow().unwrap();
        }
    }

    #[test]
    fn addresses_and_locators() {
        for good in ["a@b.co", "x+y.z@mail.example.com"] {
            assert!(Format::Email.holds(good), "{good}");
        }
        for bad in ["y", "@b.co", "a@b", "a@b..co", ".a@b.co", "a b@c.de", "a@-b.co", "a@b.co\n"] {
            assert!(!Format::Email.holds(bad), "{bad}");
        }
        assert!(Format::Uri.holds("https://shopper.example.com/.well-known/agent-card.json"));
        for bad in ["", "http:", "shopper", "/a/b", "http://a b", "https://exa\u{e9}mple.com/"] {
            assert!(!Format::Uri.holds(bad), "{bad}");
        }
        assert!(!Format::NonBlank.holds(" \u{feff}\u{2003}"));
        assert!(Format::NonBlank.holds("\u{85}"));
    }
}
