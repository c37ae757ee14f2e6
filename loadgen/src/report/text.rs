//! The report on a terminal: first whether the numbers can be believed, then the numbers.

use std::io::{self, Write};

use super::{RunResult, through};
use crate::record::Latency;
use crate::units::{show_nanos, show_rate};

/// Outcomes shown; the rest is in `summary.json`.
const SHOWN_OUTCOMES: usize = 20;

/// Writes the report.
pub(crate) fn write_text(out: &mut impl Write, result: &RunResult) -> io::Result<()> {
    let tally = &result.tally;
    writeln!(out)?;
    if result.verdict.valid {
        writeln!(out, "Verdict: valid. The generator kept its schedule; the numbers are about the dealer.")?;
    } else {
        writeln!(out, "Verdict: NOT VALID. Do not use these numbers:")?;
        for reason in &result.verdict.reasons {
            writeln!(out, "  - {reason}")?;
        }
    }
    for note in &result.verdict.notes {
        writeln!(out, "  note: {note}")?;
    }
    match &result.aborted {
        Some(threshold) => writeln!(out, "  note: the run was ended by its threshold {threshold}")?,
        None if result.is_interrupted => {
            writeln!(out, "  note: the run was interrupted; this is what there was until then")?;
        }
        None => {}
    }
    writeln!(out)?;

    let place = if result.is_embedded {
        format!(
            "{} (a simulator inside this process: it shares the machine with the generator)",
            result.endpoint
        )
    } else {
        result.endpoint.clone()
    };
    writeln!(out, "Scenario  {}", result.scenario)?;
    writeln!(out, "Dealer    {place}, contract {}{}", result.contract, through(&result.binding))?;
    writeln!(out, "Load      {}, seed {}", result.load, result.seed)?;
    let measured = show_nanos(result.measured_nanos);
    match result.target_rate {
        Some(target) => writeln!(
            out,
            "Rate      {} of {} sessions started, {} requests, over {measured}",
            show_rate(result.achieved_rate),
            show_rate(target),
            show_rate(result.requests_rate())
        )?,
        None => writeln!(
            out,
            "Rate      {} sessions, {} requests, over {measured}",
            show_rate(result.achieved_rate),
            show_rate(result.requests_rate())
        )?,
    }
    let sessions = &tally.sessions;
    write!(
        out,
        "Sessions  {} started, {} finished, {} failed",
        sessions.started, sessions.finished, sessions.failed
    )?;
    if tally.unfinished_sessions() > 0 {
        write!(out, ", {} unfinished", tally.unfinished_sessions())?;
    }
    if sessions.not_sent > 0 {
        write!(out, ", {} not started", sessions.not_sent)?;
    }
    writeln!(out)?;
    let (finished, errors) = (tally.finished(), tally.errors());
    let share = if finished == 0 { 0.0 } else { errors as f64 * 100.0 / finished as f64 };
    writeln!(
        out,
        "Requests  {finished} finished, {errors} with an outcome the scenario does not expect ({share:.2} %)"
    )?;
    let after_end = tally.after_end;
    if after_end.sent > 0 {
        writeln!(
            out,
            "          {} more were sent after the measured time, {} with an outcome the scenario does not expect; no other figure has them",
            after_end.sent, after_end.errors
        )?;
    }
    writeln!(out)?;

    writeln!(out, "Outcomes")?;
    let mut outcomes: Vec<_> = tally.outcomes().into_iter().collect();
    outcomes.sort_by(|one, other| other.1.cmp(&one.1).then_with(|| one.0.cmp(&other.0)));
    for (label, count) in outcomes.iter().take(SHOWN_OUTCOMES) {
        writeln!(out, "  {count:>10}  {label}")?;
    }
    if outcomes.len() > SHOWN_OUTCOMES {
        writeln!(out, "  and {} more kinds, in summary.json", outcomes.len() - SHOWN_OUTCOMES)?;
    }
    writeln!(out)?;

    table(out, result)?;
    writeln!(out)?;
    writeln!(
        out,
        "response: from the time a request was meant to start, waiting included: what a buyer feels. service: from the send."
    )?;
    let (mean, little) = (result.mean_in_flight(), result.little_in_flight());
    // Rounded first: a hundredth of nothing has no sign, and -0.0 + 0.0 is 0.0.
    let difference = ((mean - little) * 100.0).round() / 100.0 + 0.0;
    writeln!(
        out,
        "Little's law: {mean:.2} requests in flight on average; rate x (queue + service) gives {little:.2}; difference {difference:+.2}."
    )?;
    if result.checks_failed > 0 {
        writeln!(out)?;
        writeln!(out, "Checks: {} replies failed a check of the scenario.", result.checks_failed)?;
    }
    if !result.thresholds.is_empty() {
        writeln!(out)?;
        writeln!(out, "Thresholds")?;
        for judged in &result.thresholds {
            let mark = if judged.pass { "pass" } else { "FAIL" };
            let value =
                judged.value.map_or("too few requests to tell".to_owned(), |value| judged.unit.show(value));
            writeln!(out, "  {mark}  {}  ({value})", judged.text)?;
        }
    }
    Ok(())
}

fn table(out: &mut impl Write, result: &RunResult) -> io::Result<()> {
    let tally = &result.tally;
    let (response, queue, service) = (tally.response(), tally.queue(), tally.service());
    let mut rows: Vec<(String, &Latency)> = Vec::new();
    for (label, step) in result.labels.iter().zip(&tally.steps) {
        rows.push((format!("{label} response"), &step.response));
        rows.push((format!("{label} service"), &step.service));
        for (outcome, latency) in &step.other_responses {
            rows.push((format!("{label} {outcome}"), latency));
        }
    }
    if result.labels.len() > 1 {
        rows.push(("all response".to_owned(), &response));
        rows.push(("all service".to_owned(), &service));
    }
    rows.push(("queue".to_owned(), &queue));
    rows.push(("lag".to_owned(), &tally.lag));
    rows.push(("connect".to_owned(), &tally.connect));
    rows.push(("tls".to_owned(), &tally.tls));
    rows.push(("whole sessions".to_owned(), &tally.sessions.response));
    rows.push(("age of unfinished".to_owned(), &tally.unfinished_age));
    let width = rows.iter().map(|(name, _)| name.len()).max().unwrap_or(0).max(10);
    writeln!(
        out,
        "{:<width$} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
        "Latency", "count", "p50", "p90", "p99", "p99.9", "max"
    )?;
    for (name, latency) in rows.iter().filter(|(_, latency)| latency.count() > 0) {
        // A percentile that so few requests cannot tell.
        let quantile = |q| latency.quantile(q).map_or_else(|| "-".to_owned(), show_nanos);
        writeln!(
            out,
            "{name:<width$} {:>9} {:>9} {:>9} {:>9} {:>9} {:>9}",
            latency.count(),
            quantile(0.5),
            quantile(0.9),
            quantile(0.99),
            quantile(0.999),
            latency.max().map_or_else(|| "-".to_owned(), show_nanos),
        )?;
    }
    Ok(())
}
