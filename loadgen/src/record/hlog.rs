//! The interval log: one histogram per second and tag, in the format of HdrHistogram's own tools (V2, deflate).

use std::collections::BTreeMap;
use std::io::{self, Write};
use std::time::{Duration, UNIX_EPOCH};

use hdrhistogram::Histogram;
use hdrhistogram::serialization::interval_log::{
    IntervalLogIterator, IntervalLogWriterBuilder, IntervalLogWriterError, LogEntry, Tag,
};
use hdrhistogram::serialization::{Deserializer, V2DeflateSerializer};
use jiff::Timestamp;

use super::{Latency, Tally};

/// The tag of the response times of all steps.
pub(crate) const RESPONSE: &str = "response";

/// Writes an interval log, flushed with each interval so that a killed run leaves what it had.
pub struct IntervalLog<W> {
    out: W,
    serializer: V2DeflateSerializer,
    /// The tag of each step, without the kind.
    labels: Vec<String>,
}

impl<W: Write> IntervalLog<W> {
    /// Begins a log of a run that started at `started`.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn begin(
        mut out: W,
        labels: Vec<String>,
        started: Timestamp,
        comment: &str,
    ) -> io::Result<IntervalLog<W>> {
        let mut serializer = V2DeflateSerializer::new();
        let since_epoch = Duration::from_millis(u64::try_from(started.as_millisecond()).unwrap_or(0));
        IntervalLogWriterBuilder::new()
            .add_comment(comment)
            .with_start_time(UNIX_EPOCH + since_epoch)
            .with_base_time(UNIX_EPOCH + since_epoch)
            .with_max_value_divisor(1e6)
            .begin_log_with(&mut out, &mut serializer)?;
        out.flush()?;
        Ok(IntervalLog { out, serializer, labels })
    }

    /// Writes what was recorded from `start` on, for `length`; times count from the start of the run. Empty histograms
    /// are left out.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn write(&mut self, tally: &Tally, start: Duration, length: Duration) -> io::Result<()> {
        let (response, queue, service) = (tally.response(), tally.queue(), tally.service());
        let whole = [
            (RESPONSE, &response),
            ("service", &service),
            ("queue", &queue),
            ("lag", &tally.lag),
            ("first_byte", &tally.first_byte),
            ("connect", &tally.connect),
            ("tls", &tally.tls),
            ("session", &tally.sessions.response),
            ("unfinished_age", &tally.unfinished_age),
        ];
        let steps = self.labels.iter().zip(&tally.steps).flat_map(|(label, step)| {
            let times = [("response", &step.response), ("queue", &step.queue), ("service", &step.service)];
            let times = times.into_iter().map(move |(kind, latency)| (format!("{label}.{kind}"), latency));
            let times = times.chain(step.total.as_deref().map(|total| (format!("{label}.total"), total)));
            let others = step.other_responses.iter();
            times.chain(others.map(move |(outcome, latency)| (format!("{label}.outcome.{outcome}"), latency)))
        });
        let tagged = whole.into_iter().map(|(tag, latency)| (tag.to_owned(), latency)).chain(steps);
        write_tagged(&mut self.out, &mut self.serializer, tagged, start, length)
    }

    /// Writes one interval of histograms by their tags. Empty ones are left out.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub(crate) fn write_tagged<'t>(
        &mut self,
        tagged: impl Iterator<Item = (String, &'t Latency)>,
        start: Duration,
        length: Duration,
    ) -> io::Result<()> {
        write_tagged(&mut self.out, &mut self.serializer, tagged, start, length)
    }
}

fn write_tagged<'t>(
    out: &mut impl Write,
    serializer: &mut V2DeflateSerializer,
    tagged: impl Iterator<Item = (String, &'t Latency)>,
    start: Duration,
    length: Duration,
) -> io::Result<()> {
    let mut builder = IntervalLogWriterBuilder::new();
    // The header is written already; this one writes nothing, its divisor is that of the header.
    let mut body = Vec::new();
    builder.with_max_value_divisor(1e6);
    {
        let mut writer = builder.begin_log_with(&mut body, serializer)?;
        for (tag, latency) in tagged {
            if latency.count() > 0 {
                writer
                    .write_histogram(latency.histogram(), start, length, Tag::new(&tag))
                    .map_err(to_io_error)?;
            }
        }
    }
    for line in body.split_inclusive(|&byte| byte == b'\n') {
        if !line.starts_with(b"#") {
            out.write_all(line)?;
        }
    }
    out.flush()
}

fn to_io_error<E: std::fmt::Debug>(error: IntervalLogWriterError<E>) -> io::Error {
    match error {
        IntervalLogWriterError::IoError(error) => error,
        IntervalLogWriterError::SerializeError(error) => io::Error::other(format!("{error:?}")),
    }
}

/// Why an interval log cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// A line is none of an interval log.
    #[error("line {line}: no line of an interval log")]
    Line {
        /// From 1.
        line: usize,
    },
    /// A histogram cannot be decoded.
    #[error("interval {index}: the histogram cannot be decoded: {reason}")]
    Histogram {
        /// From 1.
        index: usize,
        /// What the decoder said.
        reason: String,
    },
}

/// One line of an interval log, its histogram not decoded yet.
pub(crate) struct Line<'l> {
    /// From the start of the run.
    pub(crate) start: Duration,
    pub(crate) length: Duration,
    pub(crate) tag: &'l str,
    encoded: &'l str,
    index: usize,
}

impl Line<'_> {
    /// Adds the line's times.
    ///
    /// # Errors
    /// If the histogram cannot be decoded, or holds times beyond an hour.
    pub(crate) fn add_to(&self, sum: &mut Latency) -> Result<(), ReadError> {
        let fault = |reason: String| ReadError::Histogram { index: self.index, reason };
        let histogram = decode(self.encoded, &mut Deserializer::new()).map_err(fault)?;
        sum.add_histogram(&histogram).map_err(|error| fault(format!("{error:?}")))
    }
}

/// The lines of an interval log. One that was cut off by the end of the file is left out: a killed run may end with one.
///
/// # Errors
/// If a line is none of an interval log.
pub(crate) fn read_lines(log: &[u8]) -> Result<Vec<Line<'_>>, ReadError> {
    let whole = log.iter().rposition(|&byte| byte == b'\n').map_or(0, |end| end + 1);
    let mut lines = Vec::new();
    for entry in IntervalLogIterator::new(&log[..whole]) {
        let entry = entry.map_err(|_| ReadError::Line { line: lines.len() + 1 })?;
        let LogEntry::Interval(interval) = entry else { continue };
        lines.push(Line {
            start: interval.start_timestamp(),
            length: interval.duration(),
            tag: interval.tag().map_or("", |tag| tag.as_str()),
            encoded: interval.encoded_histogram(),
            index: lines.len() + 1,
        });
    }
    Ok(lines)
}

/// Reads an interval log and adds up its intervals by their tag. A line that was cut off by the end of the file is
/// left out: a killed run may end with one.
///
/// # Errors
/// If a line or a histogram cannot be read.
pub fn read_totals(log: &[u8]) -> Result<BTreeMap<String, Latency>, ReadError> {
    let mut totals: BTreeMap<String, Latency> = BTreeMap::new();
    for line in read_lines(log)? {
        match totals.get_mut(line.tag) {
            Some(total) => line.add_to(total)?,
            None => line.add_to(totals.entry(line.tag.to_owned()).or_default())?,
        }
    }
    Ok(totals)
}

fn decode(encoded: &str, deserializer: &mut Deserializer) -> Result<Histogram<u64>, String> {
    let bytes = base64_decode(encoded).ok_or("not base64")?;
    deserializer.deserialize(&mut bytes.as_slice()).map_err(|error| format!("{error:?}"))
}

/// Standard base64 with padding. (The histogram crate encodes but leaves decoding to its user.)
fn base64_decode(text: &str) -> Option<Vec<u8>> {
    let text = text.as_bytes();
    if !text.len().is_multiple_of(4) {
        return None;
    }
    let mut bytes = Vec::with_capacity(text.len() / 4 * 3);
    for (index, group) in text.chunks_exact(4).enumerate() {
        let last = (index + 1) * 4 == text.len();
        let padding = group.iter().rev().take_while(|&&byte| byte == b'=').count();
        if padding > 2 || (padding > 0 && !last) {
            return None;
        }
        let mut bits = 0u32;
        for &byte in &group[..4 - padding] {
            bits = bits << 6 | u32::from(sextet(byte)?);
        }
        bits <<= 6 * padding;
        bytes.extend_from_slice(&bits.to_be_bytes()[1..4 - padding]);
    }
    Some(bytes)
}

fn sextet(byte: u8) -> Option<u8> {
    Some(match byte {
        b'A'..=b'Z' => byte - b'A',
        b'a'..=b'z' => byte - b'a' + 26,
        b'0'..=b'9' => byte - b'0' + 52,
        b'+' => 62,
        b'/' => 63,
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;

    #[test]
    fn reading_back_gives_the_same_percentiles() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let mut bytes = Vec::new();
        let labels = vec!["browse/search".to_owned(), "buy/lead".to_owned()];
        let mut log = IntervalLog::begin(&mut bytes, labels, Timestamp::UNIX_EPOCH, "a run").unwrap();
        let mut total = Tally::new(2);
        for second in 0..5 {
            let mut tally = Tally::new(2);
            for _ in 0..1000 {
                let service = rng.random_range(50_000..5_000_000_000);
                let step = &mut tally.steps[rng.random_range(0..2)];
                step.service.record(service);
                step.response.record(service + 1_000_000);
                tally.lag.record(rng.random_range(0..400_000));
            }
            log.write(&tally, Duration::from_secs(second), Duration::from_secs(1)).unwrap();
            total.add(&tally);
        }
        let totals = read_totals(&bytes).unwrap();
        assert_eq!(
            totals.keys().collect::<Vec<_>>(),
            [
                "browse/search.response",
                "browse/search.service",
                "buy/lead.response",
                "buy/lead.service",
                "lag",
                "response",
                "service"
            ]
        );
        let same = |tag: &str, latency: &Latency| {
            for q in [0.0, 0.5, 0.9, 0.95, 0.99, 0.999] {
                assert_eq!(totals[tag].quantile(q), latency.quantile(q), "{tag} {q}");
            }
            assert_eq!(totals[tag].max(), latency.max());
        };
        same("response", &total.response());
        same("service", &total.service());
        same("lag", &total.lag);
        same("buy/lead.service", &total.steps[1].service);

        // A run that was killed in the middle of a line still reads, up to that line.
        let cut = &bytes[..bytes.len() - 20];
        assert!(read_totals(cut).unwrap()["response"].count() >= 4000);
        let text = String::from_utf8(bytes).unwrap();
        assert!(text.starts_with("#a run\n"), "{text:.40}");
        assert!(text.contains("Tag=browse/search.response,0.000,1.000,"), "{text:.400}");
        assert_eq!(text.matches("MaxValueDivisor").count(), 1);
    }

    #[test]
    fn base64_is_the_standard_one() {
        assert_eq!(base64_decode("aGVsbG8=").unwrap(), b"hello");
        assert_eq!(base64_decode("aGVsbG8h").unwrap(), b"hello!");
        assert_eq!(base64_decode("aA==").unwrap(), b"h");
        assert_eq!(base64_decode(""), Some(Vec::new()));
        for wrong in ["a", "a===", "aA==aA==", "a*=="] {
            assert_eq!(base64_decode(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn garbage_is_refused() {
        assert!(matches!(read_totals(b"not a log\n"), Err(ReadError::Line { .. })));
        assert!(matches!(read_totals(b"Tag=a,0.1,1.0,2.0,AAAA\n"), Err(ReadError::Histogram { .. })));
    }
}
