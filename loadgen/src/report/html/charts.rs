//! The charts of the page: percentile curve, latency over time as a heat map, rates over time.

use std::collections::BTreeMap;

use super::plot::{Plot, Scale, label_nanos, nanos_scale, round_up};
use crate::record::{Latency, Line, RESPONSE};
use crate::report::Second;

/// Columns of a heat map at most; a longer run has several seconds in each.
const COLUMNS: u64 = 150;
/// Rows in each power of ten of latency.
const ROWS: f64 = 10.0;
/// Shades of a heat map.
const SHADES: usize = 7;
/// Points of a curve in each power of ten of 1/(1-q).
const POINTS: u32 = 24;

/// A curve: what it is called, how it is drawn, and its times.
pub(super) struct Curve<'a> {
    pub(super) name: String,
    pub(super) class: &'static str,
    pub(super) latency: &'a Latency,
}

/// The latency at each percentile; the percentiles on a scale on which 99 is as far from 90 as 90 is from 0.
pub(super) fn percentiles(curves: &[Curve<'_>]) -> String {
    let curves: Vec<&Curve<'_>> = curves.iter().filter(|curve| curve.latency.count() > 0).collect();
    let Some(most) = curves.iter().map(|curve| curve.latency.count()).max() else {
        return "<p>No request finished: there is nothing to draw.</p>".to_owned();
    };
    let low = curves.iter().filter_map(|curve| curve.latency.quantile(0.0)).min().unwrap_or(1);
    let high = curves.iter().filter_map(|curve| curve.latency.max()).max().unwrap_or(1);
    let end = (most as f64).max(10.0);
    let words = curves.iter().map(|curve| {
        let at = |q| {
            curve.latency.quantile(q).map_or_else(|| "unknown".to_owned(), |nanos| label_nanos(nanos as f64))
        };
        format!("{}: p50 {}, p90 {}, p99 {}, p99.9 {}", curve.name, at(0.5), at(0.9), at(0.99), at(0.999))
    });
    let words = words.collect::<Vec<_>>().join("; ");
    let mut plot =
        Plot::new("Latency by percentile", &words, 300.0, Scale::Log(1.0, end), nanos_scale(low, high));
    plot.y_axis(label_nanos);
    let names = [
        (1.0, "0"),
        (2.0, "50"),
        (10.0, "90"),
        (100.0, "99"),
        (1e3, "99.9"),
        (1e4, "99.99"),
        (1e5, "99.999"),
        (1e6, "99.9999"),
    ];
    plot.x_axis(
        names.iter().filter(|(at, _)| *at <= end).map(|&(at, name)| (at, name.to_owned())),
        "percentile",
    );
    for curve in &curves {
        let count = curve.latency.count() as f64;
        let last = (libm::log10(count) * f64::from(POINTS)).floor() as u32;
        let points = (0..=last).filter_map(|index| {
            // 1/(1-q)
            let inverse = libm::pow(10.0, f64::from(index) / f64::from(POINTS));
            let nanos = curve.latency.quantile(1.0 - 1.0 / inverse)?;
            Some((inverse, nanos as f64))
        });
        let maximum = curve.latency.max().map(|nanos| (count, nanos as f64));
        plot.line(curve.class, points.chain(maximum).map(Some));
    }
    plot.finish()
}

/// How many requests of each column of time took how long.
#[derive(Debug, Default)]
pub(super) struct Heat {
    /// Seconds in a column.
    width: u64,
    seconds: u64,
    /// By column and row.
    cells: BTreeMap<(u64, i64), u64>,
}

impl Heat {
    /// From the lines of an interval log.
    pub(super) fn of(lines: &[Line<'_>]) -> Heat {
        let seconds = lines.iter().map(|line| (line.start + line.length).as_secs_f64().ceil() as u64).max();
        let seconds = seconds.unwrap_or(0).max(1);
        let width = seconds.div_ceil(COLUMNS).max(1);
        let mut cells = BTreeMap::new();
        for line in lines.iter().filter(|line| line.tag == RESPONSE) {
            let mut latency = Latency::new();
            // A line that cannot be decoded was told when the totals were read.
            if line.add_to(&mut latency).is_err() {
                continue;
            }
            let column = line.start.as_secs_f64().round() as u64 / width;
            for value in latency.histogram().iter_recorded() {
                *cells.entry((column, row_of(value.value_iterated_to()))).or_default() +=
                    value.count_at_value();
            }
        }
        Heat { width, seconds, cells }
    }

    /// The map. Shades go by the logarithm of the count: one slow request in a thousand must be seen.
    pub(super) fn draw(&self, title: &str) -> String {
        let Some(&most) = self.cells.values().max() else {
            return "<p>No request finished: there is nothing to draw.</p>".to_owned();
        };
        let rows = || self.cells.keys().map(|&(_, row)| row);
        let (low, high) = (rows().min().unwrap_or(0), rows().max().unwrap_or(0) + 1);
        let y = Scale::Log(edge_of(low), edge_of(high.max(low + 5)));
        let words = format!(
            "Response times from {} to {} over {} seconds; darker is more requests, up to {most} in one cell.",
            label_nanos(edge_of(low)),
            label_nanos(edge_of(high)),
            self.seconds
        );
        let mut plot = Plot::new(title, &words, 260.0, Scale::Linear(0.0, self.seconds as f64), y);
        plot.y_axis(label_nanos);
        let ticks = Scale::Linear(0.0, self.seconds as f64).ticks();
        plot.x_axis(ticks.into_iter().map(|at| (at, format!("{at}"))), "seconds from the start of the run");
        let shade = |count: u64| {
            let share = libm::log(count as f64 + 1.0) / libm::log(most as f64 + 1.0);
            ((share * SHADES as f64).ceil() as usize).clamp(1, SHADES)
        };
        for wanted in 1..=SHADES {
            let cells = self.cells.iter().filter(|(_, count)| shade(**count) == wanted);
            let boxes = cells.map(|(&(column, row), _)| {
                let left = (column * self.width) as f64;
                [left, left + self.width as f64, edge_of(row + 1), edge_of(row)]
            });
            plot.boxes(&format!("h{wanted}"), boxes);
        }
        plot.finish()
    }
}

fn row_of(nanos: u64) -> i64 {
    (libm::log10(nanos.max(1_000) as f64) * ROWS).floor() as i64
}

fn edge_of(row: i64) -> f64 {
    libm::pow(10.0, row as f64 / ROWS)
}

/// A line of a chart over time.
pub(super) struct Trace {
    pub(super) name: &'static str,
    pub(super) class: &'static str,
    pub(super) value: fn(&Second) -> f64,
}

/// Counts per second over time.
pub(super) fn over_time(title: &str, seconds: &[Second], traces: &[Trace]) -> String {
    let Some(last) = seconds.last() else {
        return "<p>The folder has no series.csv: there is nothing to draw.</p>".to_owned();
    };
    let first = seconds.first().map_or(0, |second| second.until.saturating_sub(1));
    let all = || seconds.iter().flat_map(|second| traces.iter().map(move |trace| (trace.value)(second)));
    let high = all().fold(1.0, f64::max);
    let step = round_up(high / 5.0);
    let x = Scale::Linear(0.0, (last.until as f64).max(1.0));
    let y = Scale::Linear(0.0, (high / step).ceil() * step);
    let words = traces.iter().map(|trace| {
        let most = seconds.iter().map(trace.value).fold(0.0, f64::max);
        format!("{}: at most {most}", trace.name)
    });
    let mut plot = Plot::new(title, &words.collect::<Vec<_>>().join("; "), 200.0, x, y);
    plot.y_axis(|value| format!("{value}"));
    plot.x_axis(x.ticks().into_iter().map(|at| (at, format!("{at}"))), "seconds from the start of the run");
    // A long run has more seconds than the page has dots: each dot shows the most of its seconds.
    let group = seconds.len().div_ceil(600).max(1);
    for trace in traces {
        let points = seconds.chunks(group).map(|chunk| {
            let at = chunk.iter().map(|second| second.until).max().unwrap_or(first);
            Some((at as f64, chunk.iter().map(trace.value).fold(0.0, f64::max)))
        });
        plot.line(trace.class, points);
    }
    plot.finish()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_curve_ends_at_the_maximum_and_says_its_figures() {
        let mut latency = Latency::new();
        (1..=1000u64).for_each(|millis| latency.record(millis * 1_000_000));
        let curve = Curve { name: "response".to_owned(), class: "one", latency: &latency };
        let svg = percentiles(&[curve]);
        assert!(svg.starts_with("<svg") && svg.ends_with("</svg>"));
        assert!(svg.contains("response: p50 500ms, p90 900ms, p99 990ms"), "{svg}");
        assert!(!svg.contains("NaN") && !svg.contains("inf"), "{svg}");
        assert!(percentiles(&[]).contains("nothing to draw"));
        let one = {
            let mut latency = Latency::new();
            latency.record(5);
            latency
        };
        let svg = percentiles(&[Curve { name: "x".to_owned(), class: "one", latency: &one }]);
        assert!(!svg.contains("NaN"), "{svg}");
    }

    #[test]
    fn rows_and_edges_agree() {
        for nanos in [1_000u64, 999_999, 1_000_000, 123_456_789, 3_600_000_000_000] {
            let row = row_of(nanos);
            assert!(
                edge_of(row) <= nanos as f64 * 1.0001 && (nanos as f64) < edge_of(row + 1) * 1.0001,
                "{nanos}"
            );
        }
    }

    #[test]
    fn rates_are_drawn_for_any_number_of_seconds() {
        let second = |until| Second { until, finished: 100, ..Second::default() };
        let trace = || Trace { name: "finished", class: "one", value: |second| second.finished as f64 };
        for count in [1, 60, 86_400] {
            let seconds: Vec<Second> = (1..=count).map(second).collect();
            let svg = over_time("Rates", &seconds, &[trace()]);
            assert!(svg.len() < 40_000 && !svg.contains("NaN"), "{count}: {}", svg.len());
        }
    }
}
