//! Percentile distributions in the text form that the usual plotters of HdrHistogram read.

use std::io::{self, Write};

use crate::record::Latency;

/// Steps per halving of the distance to the maximum, as the usual tools write.
const TICKS: u32 = 5;

/// Writes the distribution, in milliseconds.
pub(super) fn write(out: &mut impl Write, latency: &Latency) -> io::Result<()> {
    let histogram = latency.histogram();
    writeln!(out, "{:>12} {:>14} {:>10} {:>14}\n", "Value", "Percentile", "TotalCount", "1/(1-Percentile)")?;
    for value in histogram.iter_quantiles(TICKS) {
        let quantile = value.quantile_iterated_to();
        let millis = value.value_iterated_to() as f64 / 1e6;
        let below = histogram.count_between(0, value.value_iterated_to());
        if quantile < 1.0 {
            writeln!(out, "{millis:>12.3} {quantile:>14.12} {below:>10} {:>14.2}", 1.0 / (1.0 - quantile))?;
        } else {
            writeln!(out, "{millis:>12.3} {quantile:>14.12} {below:>10}")?;
        }
    }
    writeln!(
        out,
        "#[Mean    = {:12.3}, StdDeviation   = {:12.3}]",
        histogram.mean() / 1e6,
        histogram.stdev() / 1e6
    )?;
    writeln!(
        out,
        "#[Max     = {:12.3}, Total count    = {:12}]",
        histogram.max() as f64 / 1e6,
        histogram.len()
    )?;
    writeln!(
        out,
        "#[Buckets = {:12}, SubBuckets     = {:12}]",
        histogram.buckets(),
        histogram.distinct_values() / usize::from(histogram.buckets()).max(1)
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_distribution_ends_with_the_maximum() {
        let mut latency = Latency::new();
        (1..=1000).for_each(|millis| latency.record(millis * 1_000_000));
        let mut out = Vec::new();
        write(&mut out, &latency).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.trim_start().starts_with("Value"));
        let last = text.lines().rfind(|line| !line.starts_with('#')).unwrap();
        let fields: Vec<_> = last.split_whitespace().collect();
        assert_eq!(fields[1..], ["1.000000000000", "1000"], "{last}");
        assert!(text.contains("Total count    =         1000"), "{text}");
    }
}
