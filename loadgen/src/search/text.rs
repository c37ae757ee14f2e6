//! Searches on a terminal.

use std::io::{self, Write};

use super::find_max::Ending;
use super::{Found, Step, Swept};
use crate::units::{show_nanos, show_rate};

fn millis(value: Option<f64>) -> String {
    value.map_or_else(|| "-".to_owned(), |millis| show_nanos((millis * 1e6) as u64))
}

/// A step in a few words.
pub(super) fn short(step: &Step) -> String {
    let held =
        if step.failed.is_empty() { "holds".to_owned() } else { format!("fails {}", step.failed.join(", ")) };
    format!("{} requests, p99 {}, {held}", show_rate(step.requests_per_s), millis(step.p99_ms))
}

fn table(out: &mut impl Write, steps: &[Step]) -> io::Result<()> {
    writeln!(
        out,
        "{:>10} {:>11} {:>12} {:>9} {:>9} {:>9} {:>8}",
        "load", "sessions", "requests", "p50", "p99", "mean", "errors"
    )?;
    for step in steps {
        let load = match (step.users, step.target_per_s) {
            (Some(users), _) => format!("{users} users"),
            (None, Some(rate)) => show_rate(rate),
            (None, None) => "-".to_owned(),
        };
        writeln!(
            out,
            "{load:>10} {:>11} {:>12} {:>9} {:>9} {:>9} {:>6.2} %  {}",
            show_rate(step.achieved_per_s),
            show_rate(step.requests_per_s),
            millis(step.p50_ms),
            millis(step.p99_ms),
            millis(step.mean_ms),
            step.errors * 100.0,
            step.failed.join("; ")
        )?;
    }
    Ok(())
}

/// Writes what `find-max` found.
pub(crate) fn write_found(out: &mut impl Write, found: &Found) -> io::Result<()> {
    let slo = found.slo.join(" and ");
    match (found.rate_per_s, found.ending) {
        (Some(rate), Ending::Converged) => {
            writeln!(out, "{} is the highest rate of sessions with {slo}.", show_rate(rate))?;
        }
        (Some(rate), Ending::NoLimit) => {
            writeln!(out, "{slo} holds up to {}, the highest rate allowed (--max-rate).", show_rate(rate))?;
        }
        (Some(rate), _) => writeln!(out, "{} is the highest rate found so far with {slo}.", show_rate(rate))?,
        (None, _) => writeln!(out, "No rate with {slo} was found.")?,
    }
    if let Some(failed) = found.failed_at_per_s {
        writeln!(out, "At {} it is limited by {}.", show_rate(failed), found.limited_by.join("; "))?;
    }
    if found.interrupted {
        writeln!(out, "The search was interrupted.")?;
    }
    writeln!(out)?;
    table(out, &found.steps)
}

/// Writes what `sweep` found.
pub(crate) fn write_swept(out: &mut impl Write, swept: &Swept) -> io::Result<()> {
    table(out, &swept.steps)?;
    writeln!(out)?;
    match (&swept.fit, &swept.no_fit) {
        (Some(fit), _) => {
            writeln!(
                out,
                "Scalability: one user alone gets {}; contention {:.4}, coherency {:.6} (R2 {:.4}).",
                show_rate(fit.lambda),
                fit.alpha,
                fit.beta,
                fit.r_squared
            )?;
            match (fit.peak_users, fit.peak_per_s) {
                (Some(users), Some(rate)) => {
                    writeln!(
                        out,
                        "By this fit throughput is highest with {users:.0} users, at {}.",
                        show_rate(rate)
                    )?;
                    let most = swept.steps.iter().filter_map(|step| step.users).max().unwrap_or(0);
                    if users > 2.0 * f64::from(most) {
                        writeln!(out, "That is far beyond what was measured: try it before you believe it.")?;
                    }
                }
                _ => writeln!(out, "By this fit throughput only grows with the users.")?,
            }
        }
        (None, Some(why)) => writeln!(out, "No scalability fit: {why}.")?,
        (None, None) => {}
    }
    if swept.interrupted {
        writeln!(out, "The sweep was interrupted.")?;
    }
    Ok(())
}
