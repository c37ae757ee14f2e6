//! The tables of the page.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use super::escape;
use crate::record::Latency;
use crate::report::RunResult;
use crate::units::{show_nanos, show_rate};

/// A time for people; a percentile that so few requests cannot tell is a dash.
fn shown(nanos: Option<u64>) -> String {
    nanos.map_or_else(|| "–".to_owned(), show_nanos)
}

/// How far `new` is from `base`, in percent.
fn difference(base: Option<f64>, new: Option<f64>) -> String {
    match (base, new) {
        (Some(base), Some(new)) if base > 0.0 && new / base >= 10.0 => format!("{:.0} times", new / base),
        (Some(base), Some(new)) if base > 0.0 => format!("{:+.1} %", (new / base - 1.0) * 100.0),
        (Some(base), Some(new)) if base == new => "0".to_owned(),
        _ => "–".to_owned(),
    }
}

/// The main figures, beside those of a baseline if there is one.
pub(super) fn figures(result: &RunResult, baseline: Option<&RunResult>) -> String {
    let row = |name: &str, value: &dyn Fn(&RunResult) -> (Option<f64>, String)| {
        let (new, text) = value(result);
        let other = baseline.map(|baseline| {
            let (base, text) = value(baseline);
            format!("<td>{}</td><td>{}</td>", escape(&text), difference(base, new))
        });
        format!(
            "<tr><th scope=\"row\">{name}</th><td>{}</td>{}</tr>",
            escape(&text),
            other.unwrap_or_default()
        )
    };
    let rate = |value: f64| (Some(value), show_rate(value));
    let count = |value: u64| (Some(value as f64), value.to_string());
    let time = |nanos: Option<u64>| (nanos.map(|nanos| nanos as f64), shown(nanos));
    let mut rows = String::new();
    let response = |result: &RunResult| result.tally.response();
    rows += &row("sessions started per second", &|result| rate(result.achieved_rate));
    rows += &row("requests per second", &|result| rate(result.requests_rate()));
    rows += &row("requests finished", &|result| count(result.tally.finished()));
    rows += &row("errors", &|result| {
        let finished = result.tally.finished().max(1) as f64;
        let share = result.tally.errors() as f64 / finished;
        (Some(share), format!("{:.3} %", share * 100.0))
    });
    for (name, q) in [("p50", 0.5), ("p90", 0.9), ("p99", 0.99), ("p99.9", 0.999)] {
        rows += &row(&format!("response {name}"), &|result| time(response(result).quantile(q)));
    }
    rows += &row("response max", &|result| time(response(result).max()));
    rows += &row("service p99", &|result| time(result.tally.service().quantile(0.99)));
    rows += &row("whole sessions p99", &|result| time(result.tally.sessions.response.quantile(0.99)));
    rows += &row("lag of the generator p99", &|result| time(result.tally.lag.quantile(0.99)));
    rows += &row("mean in flight", &|result| {
        let mean = result.mean_in_flight();
        (Some(mean), format!("{mean:.2}"))
    });
    rows += &row("rate x (queue + service), Little's law", &|result| {
        let mean = result.little_in_flight();
        (Some(mean), format!("{mean:.2}"))
    });
    let head = match baseline {
        Some(_) => {
            "<th scope=\"col\">this run</th><th scope=\"col\">baseline</th><th scope=\"col\">difference</th>"
        }
        None => "<th scope=\"col\">value</th>",
    };
    table("Main figures", &format!("<th scope=\"col\">figure</th>{head}"), &rows)
}

/// Thresholds and checks.
pub(super) fn conditions(result: &RunResult) -> String {
    let mark = |pass: bool| {
        if pass { "<span class=\"good\">pass</span>" } else { "<span class=\"bad\">FAIL</span>" }
    };
    let mut rows = String::new();
    for judged in &result.thresholds {
        let _ = write!(
            rows,
            "<tr><td class=\"text\">{}</td><td>{}</td><td>{}</td></tr>",
            escape(&judged.text),
            escape(&judged.shown()),
            mark(judged.pass)
        );
    }
    for check in &result.checks {
        let _ = write!(
            rows,
            "<tr><td class=\"text\">check {} of {}</td><td>{} failed</td><td>{}</td></tr>",
            escape(&check.name),
            escape(&check.step),
            check.failed,
            mark(check.failed == 0 || check.is_expected)
        );
    }
    if rows.is_empty() {
        return "<p>No thresholds were set, and the scenario has no checks.</p>".to_owned();
    }
    let head = "<th scope=\"col\">condition</th><th scope=\"col\">value</th><th scope=\"col\">holds</th>";
    table("Thresholds and checks", head, &rows)
}

/// How often each outcome came.
pub(super) fn outcomes(result: &RunResult, baseline: Option<&RunResult>) -> String {
    let (new, base) = (result.tally.outcomes(), baseline.map(|baseline| baseline.tally.outcomes()));
    let mut names: BTreeSet<&String> = new.keys().collect();
    names.extend(base.iter().flat_map(|base| base.keys()));
    let mut names: Vec<&String> = names.into_iter().collect();
    names.sort_by_key(|name| std::cmp::Reverse(new.get(*name).copied().unwrap_or(0)));
    let share = |count: u64, all: u64| format!("{:.3} %", count as f64 * 100.0 / all.max(1) as f64);
    let mut rows = String::new();
    for name in names {
        let count = new.get(name).copied().unwrap_or(0);
        let _ = write!(
            rows,
            "<tr><th scope=\"row\">{}</th><td>{count}</td><td>{}</td>",
            escape(name),
            share(count, result.tally.finished())
        );
        if let (Some(base), Some(baseline)) = (&base, baseline) {
            let count = base.get(name).copied().unwrap_or(0);
            let _ = write!(rows, "<td>{count}</td><td>{}</td>", share(count, baseline.tally.finished()));
        }
        rows.push_str("</tr>");
    }
    let other =
        if base.is_some() { "<th scope=\"col\">baseline</th><th scope=\"col\">share</th>" } else { "" };
    let head = format!(
        "<th scope=\"col\">outcome</th><th scope=\"col\">count</th><th scope=\"col\">share</th>{other}"
    );
    table("What became of the requests", &head, &rows)
}

/// Times by step, kind and outcome.
pub(super) fn steps(result: &RunResult) -> String {
    let tally = &result.tally;
    let (response, queue, service) = (tally.response(), tally.queue(), tally.service());
    let mut rows = String::new();
    for (label, step) in result.labels.iter().zip(&tally.steps) {
        row(&mut rows, &format!("{label} response"), &step.response);
        for (outcome, latency) in step.responses() {
            if !step.other_responses.is_empty() {
                row(&mut rows, &format!("{label} response, {outcome}"), &latency);
            }
        }
        row(&mut rows, &format!("{label} queue"), &step.queue);
        row(&mut rows, &format!("{label} service"), &step.service);
    }
    for (name, latency) in [
        ("all response", &response),
        ("all queue", &queue),
        ("all service", &service),
        ("first byte", &tally.first_byte),
        ("connect, new connections", &tally.connect),
        ("TLS, new connections", &tally.tls),
        ("whole sessions", &tally.sessions.response),
        ("age of unfinished requests", &tally.unfinished_age),
        ("lag of the generator", &tally.lag),
    ] {
        row(&mut rows, name, latency);
    }
    let columns = ["count", "min", "mean", "p50", "p90", "p95", "p99", "p99.9", "max"];
    let head: String = columns.iter().map(|name| format!("<th scope=\"col\">{name}</th>")).collect();
    table("Latency by step", &format!("<th scope=\"col\">what</th>{head}"), &rows)
}

fn row(rows: &mut String, name: &str, latency: &Latency) {
    if latency.count() == 0 {
        return;
    }
    let _ = write!(rows, "<tr><th scope=\"row\">{}</th><td>{}</td>", escape(name), latency.count());
    let mean = latency.mean().map(|nanos| nanos as u64);
    let figures = [latency.min(), mean].into_iter();
    let quantiles = [0.5, 0.9, 0.95, 0.99, 0.999].into_iter().map(|q| latency.quantile(q));
    for nanos in figures.chain(quantiles).chain([latency.max()]) {
        let _ = write!(rows, "<td>{}</td>", shown(nanos));
    }
    rows.push_str("</tr>");
}

/// A table with its caption, its head and its rows.
pub(in crate::report) fn table(caption: &str, head: &str, rows: &str) -> String {
    format!(
        "<div class=\"wide\" tabindex=\"0\" role=\"region\" aria-label=\"{caption}\"><table><caption>{caption}</caption><thead><tr>{head}</tr></thead><tbody>{rows}</tbody></table></div>"
    )
}
