//! `report.html`: a result as one page that needs nothing else, online or off. Written by hand, drawn by pure functions.

mod charts;
mod plot;
mod tables;

use std::fmt::Write as _;

use charts::{Curve, Heat, Trace};

use super::{RunResult, Second, Stored, through};
use crate::record::Latency;

const STYLE: &str = include_str!("style.css");

/// What a page shows of a result.
#[derive(Debug)]
pub(crate) struct Page<'a> {
    result: &'a RunResult,
    seconds: &'a [Second],
    heat: Heat,
}

impl<'a> Page<'a> {
    /// Of a result that was read from its folder.
    pub(crate) fn of(stored: &'a Stored) -> Page<'a> {
        Page { result: &stored.result, seconds: &stored.seconds, heat: Heat::of(&stored.lines()) }
    }
}

/// Text as it may stand in HTML and XML, in an attribute too. Characters that XML cannot have are left out.
pub(crate) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\'' => out.push_str("&#39;"),
            // XML 1.0, section 2.2.
            '\t' | '\n' | '\r' => out.push(c),
            '\0'..' ' | '\u{fffe}' | '\u{ffff}' => {}
            _ => out.push(c),
        }
    }
    out
}

/// A whole document.
pub(crate) fn document(title: &str, body: &str) -> String {
    format!(
        "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
         <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
         <meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src 'unsafe-inline'\">\n\
         <title>{}</title>\n<style>\n{STYLE}</style>\n</head>\n<body>\n<main>\n{body}</main>\n</body>\n</html>\n",
        escape(title)
    )
}

/// A table for other documents of this form.
pub(crate) fn table(caption: &str, head: &str, rows: &str) -> String {
    tables::table(caption, head, rows)
}

/// The response times of two sides in one chart, with its legend.
pub(crate) fn overlay(base: &Latency, new: &Latency) -> String {
    let curves = [
        Curve { name: "new".to_owned(), class: "one", latency: new },
        Curve { name: "base".to_owned(), class: "two dash", latency: base },
    ];
    let legend = legend(curves.iter().map(|curve| (curve.class, curve.name.clone())));
    format!(
        "{legend}{}",
        figure(&charts::percentiles(&curves), "Response times; both scales are logarithmic.")
    )
}

/// The page of a result, beside a baseline if there is one.
pub(crate) fn page(new: &Page<'_>, baseline: Option<&Page<'_>>) -> String {
    let result = new.result;
    let base = baseline.map(|baseline| baseline.result);
    let mut body = String::new();
    // Writing to a string does not fail.
    let _ = writeln!(body, "<h1>{}</h1>", escape(&result.scenario));
    body += &header(result, "");
    if let Some(base) = base {
        body += &header(base, "Baseline: ");
    }
    body += &verdict(result);
    let _ = writeln!(body, "<h2>Figures</h2>\n{}", tables::figures(result, base));
    let _ = writeln!(body, "<h2>Thresholds and checks</h2>\n{}", tables::conditions(result));
    body += &curves(result, base);
    body += "<h2>Response time over time</h2>\n";
    body += &figure(
        &new.heat.draw("Response time over time"),
        "Each column is a slice of time, each row a range of response times; the stronger the shade, the more requests (by logarithm).",
    );
    if let Some(baseline) = baseline {
        body +=
            &figure(&baseline.heat.draw("Response time over time, baseline"), "The same of the baseline.");
    }
    body += "<h2>Rates</h2>\n";
    let traces = [
        Trace { name: "requests finished per second", class: "one", value: |second| second.finished as f64 },
        Trace {
            name: "of them with an outcome that is not expected",
            class: "bad dash",
            value: |second| second.errors as f64,
        },
    ];
    body += &legend(traces.iter().map(|trace| (trace.class, trace.name.to_owned())));
    body += &figure(
        &charts::over_time("Requests per second", new.seconds, &traces),
        "Requests by the second in which they ended.",
    );
    let traces =
        [Trace { name: "requests in flight", class: "two", value: |second| second.in_flight as f64 }];
    body += &legend(traces.iter().map(|trace| (trace.class, trace.name.to_owned())));
    body +=
        &figure(&charts::over_time("Requests in flight", new.seconds, &traces), "At the end of each second.");
    let _ = writeln!(body, "<h2>Outcomes</h2>\n{}", tables::outcomes(result, base));
    let _ = writeln!(body, "<h2>Steps</h2>\n{}", tables::steps(result));
    body += "<p class=\"soft\">response: from the time a request was meant to start, waiting included: what a buyer feels. queue: from the release \
             to the send. service: from the send to the last byte. lag: how late the generator itself was; it is part of response. A dash \
             stands for a percentile that so few requests cannot tell.</p>\n";
    document(&format!("{}: load test", result.scenario), &body)
}

fn header(result: &RunResult, before: &str) -> String {
    let place = if result.is_embedded {
        format!("{}, a simulator inside the generator's process", result.endpoint)
    } else {
        result.endpoint.clone()
    };
    let parts = if result.parts.is_empty() {
        String::new()
    } else {
        format!(" Merged from {} results.", result.parts.len())
    };
    format!(
        "<p class=\"soft\">{before}{}. Dealer {}, contract {}{}, seed {}, started {:.0}.{parts}</p>\n",
        escape(&result.load),
        escape(&place),
        escape(&result.contract),
        escape(&through(&result.binding)),
        result.seed,
        result.started
    )
}

fn verdict(result: &RunResult) -> String {
    let verdict = &result.verdict;
    let (class, words) = if verdict.valid {
        (
            "verdict",
            "<strong class=\"good\">Valid.</strong> The generator kept its schedule: the numbers are about the dealer.",
        )
    } else {
        ("verdict not", "<strong class=\"bad\">Not valid.</strong> Do not use these numbers:")
    };
    let mut items: String =
        verdict.reasons.iter().map(|reason| format!("<li>{}</li>", escape(reason))).collect();
    items.extend(verdict.notes.iter().map(|note| format!("<li>Note: {}</li>", escape(note))));
    match &result.aborted {
        Some(threshold) => {
            items += &format!("<li>Note: the run was ended by its threshold {}</li>", escape(threshold));
        }
        None if result.is_interrupted => {
            items.push_str("<li>Note: the run was interrupted; this is what there was until then</li>");
        }
        None => {}
    }
    let list = if items.is_empty() { String::new() } else { format!("<ul>{items}</ul>") };
    format!(
        "<section class=\"{class}\" aria-label=\"Verdict on the measurement\"><p>{words}</p>{list}</section>\n"
    )
}

fn curves(result: &RunResult, base: Option<&RunResult>) -> String {
    let (response, service) = (result.tally.response(), result.tally.service());
    let others = base.map(|base| (base.tally.response(), base.tally.service()));
    let mut curves = vec![
        Curve { name: "response".to_owned(), class: "one", latency: &response },
        Curve { name: "service".to_owned(), class: "one dash", latency: &service },
    ];
    if let Some((response, service)) = &others {
        curves.push(Curve { name: "baseline response".to_owned(), class: "two", latency: response });
        curves.push(Curve { name: "baseline service".to_owned(), class: "two dash", latency: service });
    }
    let legend = legend(curves.iter().map(|curve| (curve.class, curve.name.clone())));
    let figure = figure(
        &charts::percentiles(&curves),
        "Both scales are logarithmic. Where response leaves service, requests waited before they could be sent.",
    );
    format!("<h2>Percentiles</h2>\n{legend}{figure}")
}

fn legend(entries: impl Iterator<Item = (&'static str, String)>) -> String {
    let items = entries.map(|(class, name)| {
        format!(
            "<li><svg viewBox=\"0 0 36 10\" aria-hidden=\"true\"><path class=\"line {class}\" d=\"M0 5H36\"/></svg>{}</li>",
            escape(&name)
        )
    });
    format!("<ul class=\"legend\">{}</ul>\n", items.collect::<String>())
}

fn figure(picture: &str, caption: &str) -> String {
    format!("<figure>{picture}<figcaption>{}</figcaption></figure>\n", escape(caption))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::tests::result;

    fn new_page(result: &RunResult) -> Page<'_> {
        Page { result, seconds: &[], heat: Heat::default() }
    }

    #[test]
    fn a_page_needs_nothing_else() {
        let result = result();
        let html = page(&new_page(&result), None);
        for outside in ["http://www.w3.org/2000/svg", "http://127.0.0.1:1/a2a"] {
            assert!(html.contains(outside), "{outside}");
        }
        let rest = html.replace("http://www.w3.org/2000/svg", "").replace("http://127.0.0.1:1/a2a", "");
        for forbidden in ["http", "src=", "href", "<script", "url(", "@import"] {
            // The policy that forbids everything from outside names its own rules.
            let found = rest.replace("default-src", "").replace("style-src", "").replace("http-equiv", "");
            assert!(!found.contains(forbidden), "{forbidden}");
        }
        assert!(html.contains("Valid.") && html.contains("<html lang=\"en\">"));
        assert!(!html.contains("baseline"));
    }

    #[test]
    fn a_baseline_stands_beside() {
        let (new, base) = (result(), result());
        let html = page(&new_page(&new), Some(&new_page(&base)));
        assert!(html.contains("baseline response") && html.contains("<th scope=\"col\">baseline</th>"));
        assert!(html.contains("+0.0 %"));
    }

    #[test]
    fn names_cannot_break_out() {
        let mut result = result();
        result.scenario = "<script>alert(1)</script>".to_owned();
        result.labels = vec!["a\"><b/c".to_owned()];
        let html = page(&new_page(&result), None);
        assert!(!html.contains("<script") && !html.contains("a\"><b"));
    }
}
