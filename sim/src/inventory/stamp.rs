//! `updated_at`, which moves more often than anything else of a vehicle: the text of most vehicles ends where its value would
//! stand, and the value is written from the column.

/// How a listing's text ends that leaves the value to the column. No whole member ends in a colon.
pub(crate) const OPEN: &[u8] = b"\"updated_at\":";

/// The length of a value, with its quotes.
const LENGTH: usize = 22;

/// Whether a text leaves the value to the column.
#[inline]
pub(crate) fn is_due(listing: &[u8]) -> bool {
    listing.last() == Some(&b':')
}

/// Leaves the value to the column, where it ends the listing and is written as the column would be.
pub(crate) fn take_off(listing: &mut Vec<u8>, seconds: u32) {
    let text = text(seconds);
    if listing.strip_suffix(&text).is_some_and(|head| head.ends_with(OPEN)) {
        listing.truncate(listing.len() - text.len());
    }
}

/// Appends `"YYYY-MM-DDThh:mm:ssZ"` for seconds since 1970.
#[inline]
pub(crate) fn write(out: &mut Vec<u8>, seconds: u32) {
    out.extend_from_slice(&text(seconds));
}

/// The value for seconds since 1970, with its quotes.
pub(crate) fn text(seconds: u32) -> [u8; LENGTH] {
    let (year, month, day) = date(seconds / 86_400);
    let mut out = *b"\"0000-00-00T00:00:00Z\"";
    let mut two = |at: usize, number: u32| {
        out[at] = b'0' + (number / 10) as u8;
        out[at + 1] = b'0' + (number % 10) as u8;
    };
    two(1, year / 100);
    two(3, year % 100);
    two(6, month);
    two(9, day);
    two(12, seconds / 3600 % 24);
    two(15, seconds / 60 % 60);
    two(18, seconds % 60);
    out
}

/// Year, month and day of a day since 1970, for days that seconds of 32 bits reach (until 2106). Years are counted from
/// March on, so that the leap day is the last one (H. Hinnant, "chrono-compatible low-level date algorithms").
fn date(day: u32) -> (u32, u32, u32) {
    // Days since 1 March 1600, a multiple of 400 years, the period of the calendar.
    let day = day + 135_080;
    let (era, of_era) = (day / 146_097, day % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let of_month = of_year - (153 * month + 2) / 5 + 1;
    let (month, next) = if month < 10 { (month + 3, 0) } else { (month - 9, 1) };
    (1600 + era * 400 + year + next, month, of_month)
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;

    #[test]
    fn every_day_is_written_as_the_calendar_has_it() {
        for day in 0..u32::MAX / 86_400 {
            let seconds = day * 86_400 + day % 86_400;
            let expected = format!("\"{}\"", Timestamp::from_second(i64::from(seconds)).unwrap());
            assert_eq!(std::str::from_utf8(&text(seconds)), Ok(expected.as_str()));
        }
    }
}
