//! A comparison as a page that needs nothing else.

use std::fmt::Write as _;

use super::text::{percent, sentence, show, word};
use super::{Comparison, Finding};
use crate::record::Latency;
use crate::report::Stored;
use crate::report::html::{document, escape, overlay, table};

/// The page.
pub(crate) fn page(comparison: &Comparison, base: &[Stored], new: &[Stored]) -> String {
    let class = if comparison.regression { "verdict not" } else { "verdict" };
    let mut body = String::from("<h1>Comparison</h1>\n");
    // Writing to a string does not fail.
    let _ = writeln!(
        body,
        "<section class=\"{class}\"><p><strong>{}</strong></p></section>",
        escape(&sentence(comparison))
    );
    for (name, side) in [("Base", &comparison.base), ("New", &comparison.new)] {
        let _ = writeln!(body, "<p class=\"soft\">{name}: {}</p>", escape(&side.join(", ")));
    }
    for note in &comparison.notes {
        let _ = writeln!(body, "<p class=\"soft\">Note: {}</p>", escape(note));
    }
    let mut rows = String::new();
    for row in &comparison.rows {
        let class = match row.finding {
            Finding::Regression => "bad",
            Finding::Improvement => "good",
            Finding::Same => "soft",
        };
        let _ = write!(
            rows,
            "<tr><th scope=\"row\">{} {}</th><td>{}</td><td>{}</td><td>{}</td><td>{}</td><td>{} to {}</td><td>{}</td><td><span class=\"{class}\">{}</span></td></tr>",
            escape(&row.of),
            row.figure,
            show(row.unit, row.base, false),
            show(row.unit, row.new, false),
            show(row.unit, row.difference, true),
            percent(row),
            show(row.unit, row.low, true),
            show(row.unit, row.high, true),
            show(row.unit, row.allowance, false),
            word(row.finding)
        );
    }
    let columns =
        ["figure", "base", "new", "change", "in percent", "interval", "allowed for noise", "finding"];
    let head: String = columns.iter().map(|name| format!("<th scope=\"col\">{name}</th>")).collect();
    let _ = writeln!(body, "<h2>Figures</h2>\n{}", table("Differences of the figures", &head, &rows));
    body +=
        "<p class=\"soft\">A finding needs the whole interval to lie beyond what is allowed for noise.</p>\n";
    let sum = |side: &[Stored]| {
        let mut sum = Latency::new();
        side.iter().for_each(|run| sum.add(&run.result.tally.response()));
        sum
    };
    let _ = writeln!(body, "<h2>Percentiles</h2>\n{}", overlay(&sum(base), &sum(new)));
    document("Comparison of load tests", &body)
}
