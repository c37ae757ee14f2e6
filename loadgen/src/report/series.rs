//! `series.csv`: one line per second.

use std::fs::File;
use std::io::{self, Seek, SeekFrom, Write};

use super::stored::MAX_COUNT;
use crate::record::{Latency, Tally};

/// The classes that outcomes other than `ok` fall into: what stands before the point.
pub(crate) const CLASSES: [&str; 8] =
    ["aap", "a2a", "rpc", "http", "transport", "timeout", "check", "protocol"];

/// What happened in one second.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Second {
    /// Its end, in seconds from the start of the run.
    pub(crate) until: u64,
    /// Requests released.
    pub(crate) sent: u64,
    /// Requests with an outcome.
    pub(crate) finished: u64,
    /// Those with the outcome `ok`.
    pub(crate) ok: u64,
    /// The others by [`CLASSES`].
    pub(crate) classes: [u64; 8],
    /// The median and the 99th percentile of the response time, in milliseconds; `None` if there are too few to tell.
    pub(crate) p50_ms: Option<f64>,
    pub(crate) p99_ms: Option<f64>,
    /// Requests on their way at its end.
    pub(crate) in_flight: u64,
    /// Requests with an outcome that the scenario does not expect.
    pub(crate) errors: u64,
    /// Sessions started.
    pub(crate) sessions: u64,
}

impl Second {
    /// What was recorded in the second that ended at `until` seconds from the start of the run.
    pub(crate) fn of(tally: &Tally, until: f64, in_flight: u64) -> Second {
        let outcomes = tally.outcomes();
        let class = |class: &str| {
            outcomes
                .iter()
                .filter(|(label, _)| label.split('.').next() == Some(class))
                .map(|(_, count)| count)
                .sum()
        };
        Second {
            until: until.round() as u64,
            sent: tally.sent(),
            finished: tally.finished(),
            ok: tally.ok(),
            classes: CLASSES.map(class),
            in_flight,
            errors: tally.errors(),
            sessions: tally.sessions.started,
            ..Second::default()
        }
        .timed(&tally.response())
    }

    /// The same with the percentiles of these response times.
    pub(crate) fn timed(self, response: &Latency) -> Second {
        let millis = |q| response.quantile(q).map(|nanos| nanos as f64 / 1e6);
        Second { p50_ms: millis(0.5), p99_ms: millis(0.99), ..self }
    }

    /// Adds the counts of another generator's second. The percentiles do not add up: see [`Second::timed`].
    pub(crate) fn add(&mut self, other: &Second) {
        self.sent += other.sent;
        self.finished += other.finished;
        self.ok += other.ok;
        self.classes.iter_mut().zip(other.classes).for_each(|(mine, theirs)| *mine += theirs);
        self.in_flight += other.in_flight;
        self.errors += other.errors;
        self.sessions += other.sessions;
    }
}

/// The file in the making: one line for each second, written as it comes.
pub(super) struct Series {
    file: File,
    /// The last line: where it begins, what it says, and the response times that its percentiles are of.
    last: Option<(u64, Second, Latency)>,
}

impl Series {
    /// Begins the file with its head line.
    pub(super) fn begin(mut file: File) -> io::Result<Series> {
        let mut head = Vec::new();
        write_head(&mut head)?;
        file.write_all(&head)?;
        Ok(Series { file, last: None })
    }

    /// Adds what happened up to `second.until`, with these response times. A run ends within a second: what comes then is
    /// added to the line that this second has already.
    pub(super) fn add(&mut self, second: Second, response: &Latency) -> io::Result<()> {
        let end = self.file.seek(SeekFrom::End(0))?;
        let (from, second, response) = match self.last.take() {
            Some((from, mut last, mut before)) if last.until == second.until => {
                last.add(&second);
                before.add(response);
                (from, Second { in_flight: second.in_flight, ..last }.timed(&before), before)
            }
            _ => (end, second, response.clone()),
        };
        let mut line = Vec::new();
        write_line(&mut line, &second)?;
        self.file.seek(SeekFrom::Start(from))?;
        self.file.write_all(&line)?;
        self.file.set_len(from + line.len() as u64)?;
        self.last = Some((from, second, response));
        Ok(())
    }
}

/// Writes the head line.
fn write_head(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "second,sent,finished,ok,{},p50_ms,p99_ms,in_flight,errors,sessions", CLASSES.join(","))
}

/// Writes a second's line.
fn write_line(out: &mut impl Write, second: &Second) -> io::Result<()> {
    write!(out, "{},{},{},{}", second.until, second.sent, second.finished, second.ok)?;
    for count in second.classes {
        write!(out, ",{count}")?;
    }
    for millis in [second.p50_ms, second.p99_ms] {
        match millis {
            Some(millis) => write!(out, ",{millis:.3}")?,
            // Too few to tell.
            None => write!(out, ",")?,
        }
    }
    writeln!(out, ",{},{},{}", second.in_flight, second.errors, second.sessions)
}

/// Reads the lines back. One that is cut off or is none ends the series: a killed run may leave such a line.
pub(super) fn read(text: &str) -> Vec<Second> {
    let whole = text.rfind('\n').map_or("", |end| &text[..end]);
    whole.lines().skip(1).map_while(read_line).collect()
}

fn read_line(line: &str) -> Option<Second> {
    // A larger count is damage, and sums of such would not hold.
    let count = |text: &str| text.parse().ok().filter(|&count: &u64| count <= MAX_COUNT);
    let mut fields = line.split(',');
    let mut next = || fields.next();
    let mut second = Second {
        until: count(next()?)?,
        sent: count(next()?)?,
        finished: count(next()?)?,
        ok: count(next()?)?,
        ..Second::default()
    };
    for class in &mut second.classes {
        *class = count(next()?)?;
    }
    second.p50_ms = next()?.parse().ok();
    second.p99_ms = next()?.parse().ok();
    second.in_flight = count(next()?)?;
    // The last two came later: a series of before has none.
    second.errors = next().map_or(Some(0), count)?;
    second.sessions = next().map_or(Some(0), count)?;
    Some(second)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_field_for_each_head_and_reads_back() {
        let mut tally = Tally::new(1);
        let step = &mut tally.steps[0];
        step.sent = 4;
        step.ok = 1;
        step.expected = 1;
        step.count_other("http.503");
        step.count_other("aap.RATE_LIMITED");
        step.count_other("aap.INTERNAL_ERROR");
        step.response.record(1_500_000);
        tally.sessions.started = 2;
        let mut out = Vec::new();
        let second = Second::of(&tally, 3.0, 7);
        write_head(&mut out).unwrap();
        write_line(&mut out, &second).unwrap();
        let text = String::from_utf8(out).unwrap();
        let (head, line) = text.trim_end().split_once('\n').unwrap();
        assert_eq!(
            head,
            "second,sent,finished,ok,aap,a2a,rpc,http,transport,timeout,check,protocol,p50_ms,p99_ms,in_flight,errors,sessions"
        );
        assert_eq!(line, "3,4,4,1,2,0,0,1,0,0,0,0,,,7,3,2");
        assert_eq!(head.split(',').count(), line.split(',').count());
        assert_eq!(read(&text), [second]);
        assert_eq!(read(&text[..text.len() - 3]), []);
        assert_eq!(read(&text.replace(",7,3,2", ",7,3,18446744073709551615")), []);
    }

    #[test]
    fn a_second_that_is_told_twice_has_one_line() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("series.csv");
        let mut series = Series::begin(File::create(&path).unwrap()).unwrap();
        let second = |until: f64, times: &[u64], in_flight| {
            let mut tally = Tally::new(1);
            for &nanos in times {
                tally.steps[0].response.record(nanos);
                (tally.steps[0].sent, tally.steps[0].ok) = (tally.steps[0].sent + 1, tally.steps[0].ok + 1);
            }
            (Second::of(&tally, until, in_flight), tally.response())
        };
        let all =
            [second(1.0, &[1_000_000; 9], 5), second(2.0, &[1_000_000], 4), second(2.02, &[3_000_000; 2], 0)];
        for (second, response) in all {
            series.add(second, &response).unwrap();
        }
        let seconds = read(&std::fs::read_to_string(&path).unwrap());
        let told: Vec<_> =
            seconds.iter().map(|second| (second.until, second.finished, second.in_flight)).collect();
        assert_eq!(told, [(1, 9, 5), (2, 3, 0)]);
        assert!(seconds[1].p50_ms.unwrap() > 2.9, "{seconds:?}");
    }
}
