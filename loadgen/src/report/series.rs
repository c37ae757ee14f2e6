//! `series.csv`: one line per second.

use std::io::{self, Write};

use crate::record::Tally;

/// The classes that outcomes other than `ok` fall into: what stands before the point.
const CLASSES: [&str; 8] = ["aap", "a2a", "rpc", "http", "transport", "timeout", "check", "protocol"];

/// Writes the head line.
pub(super) fn write_head(out: &mut impl Write) -> io::Result<()> {
    writeln!(out, "second,sent,finished,ok,{},p50_ms,p99_ms,in_flight", CLASSES.join(","))
}

/// Writes what happened in the second that ended at `until` seconds from the start of the run.
pub(super) fn write_line(out: &mut impl Write, until: f64, tally: &Tally, in_flight: u64) -> io::Result<()> {
    write!(out, "{until:.0},{},{},{}", tally.sent(), tally.finished(), tally.ok())?;
    let outcomes = tally.outcomes();
    for class in CLASSES {
        let count: u64 = outcomes
            .iter()
            .filter(|(label, _)| label.split('.').next() == Some(class))
            .map(|(_, count)| count)
            .sum();
        write!(out, ",{count}")?;
    }
    let response = tally.response();
    for q in [0.5, 0.99] {
        match response.quantile(q) {
            Some(nanos) => write!(out, ",{:.3}", nanos as f64 / 1e6)?,
            // Too few to tell.
            None => write!(out, ",")?,
        }
    }
    writeln!(out, ",{in_flight}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_has_a_field_for_each_head() {
        let mut tally = Tally::new(1);
        let step = &mut tally.steps[0];
        step.sent = 4;
        step.ok = 1;
        step.count_other("http.503");
        step.count_other("aap.RATE_LIMITED");
        step.count_other("aap.INTERNAL_ERROR");
        step.response.record(1_500_000);
        let mut out = Vec::new();
        write_head(&mut out).unwrap();
        write_line(&mut out, 3.0, &tally, 7).unwrap();
        let text = String::from_utf8(out).unwrap();
        let (head, line) = text.trim_end().split_once('\n').unwrap();
        assert_eq!(
            head,
            "second,sent,finished,ok,aap,a2a,rpc,http,transport,timeout,check,protocol,p50_ms,p99_ms,in_flight"
        );
        assert_eq!(line, "3,4,4,1,2,0,0,1,0,0,0,0,,,7");
        assert_eq!(head.split(',').count(), line.split(',').count());
    }
}
