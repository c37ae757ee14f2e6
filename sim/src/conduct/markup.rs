//! The report as text, HTML and JUnit XML.

use std::fmt::Write as _;

use super::judge::Finding;
use super::report::{Report, RuleReport, Status};
use super::rules::Severity;

/// Text in XML or HTML. Characters that XML 1.0 does not allow are shown as U+FFFD.
fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' | '\t' => out.push(c),
            c if (c as u32) < 0x20 || matches!(c, '\u{fffe}' | '\u{ffff}') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// A text from a client on a terminal: no control characters.
fn plain(text: &str) -> String {
    text.chars().map(|c| if c.is_control() { '\u{fffd}' } else { c }).collect()
}

fn verdict(report: &Report) -> String {
    let count =
        |number: u64, one: &str, many: &str| format!("{number} {}", if number == 1 { one } else { many });
    format!(
        "{}, {}, {}, {} unknown; {} of {}",
        count(report.broken.violation, "violation", "violations"),
        count(report.broken.warning, "warning", "warnings"),
        count(report.broken.advice, "piece of advice", "pieces of advice"),
        count(report.unknown, "rule", "rules"),
        count(report.calls, "call", "calls"),
        count(report.clients.len() as u64, "client", "clients"),
    )
}

/// What is not known, if anything is not.
fn gaps(report: &Report) -> Option<String> {
    let mut said = Vec::new();
    if report.missed > 0 {
        said.push(format!(
            "{} entries were dropped from the journal before they were judged (a larger --journal keeps more)",
            report.missed
        ));
    }
    if report.late > 0 {
        said.push(format!("{} entries came too late for their order to be known", report.late));
    }
    if report.unjudged > 0 {
        said.push(format!("{} requests of further clients were not judged", report.unjudged));
    }
    (!said.is_empty()).then(|| said.join("; "))
}

fn evidence(finding: &Finding) -> String {
    let numbers: Vec<_> = finding.entries.iter().map(u64::to_string).collect();
    let conversation = finding
        .conversation
        .as_deref()
        .map_or(String::new(), |name| format!(", conversation {}", plain(name)));
    let entries = if numbers.len() == 1 { "entry" } else { "entries" };
    format!(
        "journal {entries} {} ({}, dealer {}{conversation})",
        numbers.join(", "),
        finding.at,
        finding.dealer
    )
}

/// Broken rules, the gravest first.
fn broken(rules: &[RuleReport]) -> Vec<&RuleReport> {
    let mut broken: Vec<_> = rules.iter().filter(|rule| rule.status == Status::Broken).collect();
    broken.sort_by_key(|rule| std::cmp::Reverse(rule.rule.severity));
    broken
}

/// Findings of a rule that the text shows.
const SHOWN: usize = 3;
/// Columns of the text.
const WIDTH: usize = 110;

/// A paragraph whose first line begins with `first`, the others as far in as that is long.
fn paragraph(out: &mut String, first: &str, text: &str) {
    let mut column = first.chars().count();
    let margin = column;
    out.push_str(first);
    for (place, word) in text.split_whitespace().enumerate() {
        let long = word.chars().count();
        if place > 0 && column + 1 + long > WIDTH {
            _ = write!(out, "\n{:margin$}", "");
            column = margin;
        } else if place > 0 {
            out.push(' ');
            column += 1;
        }
        out.push_str(word);
        column += long;
    }
    out.push('\n');
}

pub(super) fn text(report: &Report) -> String {
    let mut out = String::new();
    let of = report.test.as_ref().map_or(String::new(), |name| format!(" of {}", plain(name)));
    // Writing to memory cannot fail.
    _ = writeln!(out, "Conduct{of}: {}", verdict(report));
    if let Some(gaps) = gaps(report) {
        _ = writeln!(out, "Not all is known: {gaps}.");
    }
    for client in &report.clients {
        let with = |status| client.rules.iter().filter(|rule| rule.status == status).collect::<Vec<_>>();
        _ = writeln!(out, "\nClient {} ({} calls)", plain(&client.client), client.calls);
        for rule in broken(&client.rules) {
            let rules = rule.rule;
            _ = writeln!(out, "\n  {} {}: {}", rules.severity.word().to_uppercase(), rules.id, rules.title);
            for finding in rule.findings.iter().take(SHOWN) {
                paragraph(&mut out, "    - ", &plain(&finding.text));
                _ = writeln!(out, "      {}", evidence(finding));
            }
            let more = rule.broken.saturating_sub(rule.findings.len().min(SHOWN) as u64);
            if more > 0 {
                _ = writeln!(out, "    - and {more} more");
            }
            paragraph(&mut out, "    Why: ", rules.why);
            paragraph(&mut out, "    Do:  ", rules.fix);
            paragraph(&mut out, "    See: ", rules.source);
        }
        for (status, label) in
            [(Status::Kept, "Kept"), (Status::Unknown, "Unknown"), (Status::NotSeen, "Did not apply")]
        {
            let ids: Vec<_> = with(status).iter().map(|rule| rule.rule.id).collect();
            if !ids.is_empty() {
                out.push('\n');
                paragraph(&mut out, &format!("  {label} ({}): ", ids.len()), &ids.join(", "));
            }
        }
    }
    let proof = report.clients.iter().flat_map(|client| &client.rules).find_map(|rule| rule.findings.first());
    if let Some(entry) = proof.and_then(|finding| finding.entries.first()) {
        _ = writeln!(
            out,
            "\nThe admin endpoint shows what was sent and answered: entry {entry} is GET /journal?after={}&limit=1.",
            entry.saturating_sub(1)
        );
    }
    out
}

pub(super) fn junit(report: &Report) -> String {
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let name = report.test.as_deref().unwrap_or("conduct");
    let tests: usize = report.clients.iter().map(|client| client.rules.len()).sum();
    let is_failure =
        |rule: &&RuleReport| rule.status == Status::Broken && rule.rule.severity != Severity::Advice;
    let all = || report.clients.iter().flat_map(|client| &client.rules);
    _ = writeln!(
        out,
        "<testsuites name=\"{}\" tests=\"{tests}\" failures=\"{}\">",
        escape(name),
        all().filter(is_failure).count()
    );
    for client in &report.clients {
        let count = |status| client.rules.iter().filter(|rule| rule.status == status).count();
        _ = writeln!(
            out,
            "  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\">",
            escape(&client.client),
            client.rules.len(),
            client.rules.iter().filter(is_failure).count(),
            count(Status::Unknown) + count(Status::NotSeen),
        );
        for rule in &client.rules {
            let open = format!("<testcase classname=\"conduct\" name=\"{}\"", rule.rule.id);
            let told: Vec<_> =
                rule.findings.iter().map(|one| format!("{}\n{}", one.text, evidence(one))).collect();
            let told = escape(&format!("{}\n{}\n{}", told.join("\n"), rule.rule.why, rule.rule.fix));
            let title = escape(rule.rule.title);
            _ = match (rule.status, is_failure(&rule)) {
                (Status::Kept, _) => writeln!(out, "    {open}/>"),
                (Status::NotSeen, _) => {
                    writeln!(out, "    {open}><skipped message=\"did not apply\"/></testcase>")
                }
                (Status::Unknown, _) => writeln!(
                    out,
                    "    {open}><skipped message=\"unknown: not all of what decides it was kept\"/></testcase>"
                ),
                (Status::Broken, true) => writeln!(
                    out,
                    "    {open}><failure type=\"{}\" message=\"{title}\">{told}</failure></testcase>",
                    rule.rule.severity.word()
                ),
                (Status::Broken, false) => {
                    writeln!(out, "    {open}><system-out>{title}\n{told}</system-out></testcase>")
                }
            };
        }
        out.push_str("  </testsuite>\n");
    }
    out.push_str("</testsuites>\n");
    out
}

const STYLE: &str = "body{font:15px/1.5 system-ui,sans-serif;max-width:60em;margin:2em auto;padding:0 1em;color:#222}\
    h3{margin:1.5em 0 .3em}.violation{color:#a00}.warning{color:#850}.advice{color:#06c}\
    code{background:#f3f3f3;padding:0 .2em}table{border-collapse:collapse}td,th{padding:.2em .8em .2em 0;text-align:left}";

pub(super) fn html(report: &Report) -> String {
    let title =
        report.test.as_ref().map_or("Conduct".to_owned(), |name| format!("Conduct of {}", escape(name)));
    let mut out = format!(
        "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"><title>{title}</title><style>{STYLE}</style></head><body>\n\
         <h1>{title}</h1>\n<p>{}</p>\n",
        verdict(report)
    );
    if let Some(gaps) = gaps(report) {
        _ = writeln!(out, "<p><strong>Not all is known:</strong> {gaps}.</p>");
    }
    for client in &report.clients {
        _ = writeln!(out, "<h2>{} <small>({} calls)</small></h2>", escape(&client.client), client.calls);
        for rule in broken(&client.rules) {
            let known = rule.rule;
            let severity = known.severity.word();
            _ = writeln!(
                out,
                "<h3 class=\"{severity}\">{}</h3>\n<p><code>{}</code> · {severity} · {} times</p>\n<ul>",
                escape(known.title),
                known.id,
                rule.broken
            );
            for finding in &rule.findings {
                _ = writeln!(
                    out,
                    "<li>{}<br><small>{}</small></li>",
                    escape(&finding.text),
                    escape(&evidence(finding))
                );
            }
            _ = writeln!(
                out,
                "</ul>\n<p>{}</p>\n<p><strong>What to do:</strong> {}</p>\n<p><small>{}</small></p>",
                escape(known.why),
                escape(known.fix),
                escape(known.source)
            );
        }
        out.push_str(
            "<h3>All rules</h3>\n<table><tr><th>rule</th><th>status</th><th>kept</th><th>broken</th></tr>\n",
        );
        for rule in &client.rules {
            _ = writeln!(
                out,
                "<tr><td title=\"{}\"><code>{}</code></td><td>{}</td><td>{}</td><td>{}</td></tr>",
                escape(rule.rule.title),
                rule.rule.id,
                rule.status.word(),
                rule.kept,
                rule.broken
            );
        }
        out.push_str("</table>\n");
    }
    out.push_str("</body></html>\n");
    out
}
