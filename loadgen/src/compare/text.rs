//! A comparison on a terminal.

use std::io::{self, Write};

use super::{Comparison, Finding, Row, Unit};
use crate::units::{show_nanos, show_rate};

/// A figure for people; differences have a sign.
pub(super) fn show(unit: Unit, value: f64, is_signed: bool) -> String {
    let sign = if value < 0.0 {
        "-"
    } else if is_signed {
        "+"
    } else {
        ""
    };
    let value = value.abs();
    let text = match unit {
        Unit::Ms => show_nanos((value * 1e6).round() as u64),
        Unit::Ratio => format!("{:.3} %", value * 100.0),
        Unit::PerS => show_rate(value),
    };
    format!("{sign}{text}")
}

/// The difference in percent of the base.
pub(super) fn percent(row: &Row) -> String {
    if row.base > 0.0 { format!("{:+.1} %", row.difference / row.base * 100.0) } else { "-".to_owned() }
}

/// The finding in words.
pub(super) fn word(finding: Finding) -> &'static str {
    match finding {
        Finding::Regression => "REGRESSION",
        Finding::Improvement => "improvement",
        Finding::Same => "same",
    }
}

/// One sentence about all of it.
pub(super) fn sentence(comparison: &Comparison) -> String {
    let count = |finding| comparison.rows.iter().filter(|row| row.finding == finding).count();
    let (worse, better) = (count(Finding::Regression), count(Finding::Improvement));
    let all = comparison.rows.len();
    if worse > 0 {
        format!("Regression: {worse} of {all} figures are worse beyond chance, {better} better.")
    } else if better > 0 {
        format!("No regression: {better} of {all} figures are better beyond chance, none worse.")
    } else {
        format!("No difference beyond chance in any of {all} figures.")
    }
}

/// Writes the table.
pub(crate) fn write_text(out: &mut impl Write, comparison: &Comparison) -> io::Result<()> {
    writeln!(out, "{}\n", sentence(comparison))?;
    writeln!(out, "base: {}", comparison.base.join(", "))?;
    writeln!(out, "new:  {}\n", comparison.new.join(", "))?;
    let name = |row: &Row| format!("{} {}", row.of, row.figure);
    let width = comparison.rows.iter().map(|row| name(row).len()).max().unwrap_or(0).max(8);
    writeln!(
        out,
        "{:<width$} {:>10} {:>10} {:>10} {:>8}  {:<23} {:>9}  finding",
        "figure", "base", "new", "change", "", "interval", "allowed"
    )?;
    for row in &comparison.rows {
        let interval = format!("{} to {}", show(row.unit, row.low, true), show(row.unit, row.high, true));
        writeln!(
            out,
            "{:<width$} {:>10} {:>10} {:>10} {:>8}  {:<23} {:>9}  {}",
            name(row),
            show(row.unit, row.base, false),
            show(row.unit, row.new, false),
            show(row.unit, row.difference, true),
            percent(row),
            interval,
            show(row.unit, row.allowance, false),
            word(row.finding)
        )?;
    }
    writeln!(out, "\nA finding needs the whole interval to lie beyond what is allowed for noise.")?;
    for note in &comparison.notes {
        writeln!(out, "note: {note}")?;
    }
    Ok(())
}
