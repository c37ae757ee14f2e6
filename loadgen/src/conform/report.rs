//! What was found, as text, JSON, HTML and JUnit.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;
use std::{fs, io};

use jiff::Timestamp;
use serde_json::{Value, json as value};

use super::evidence::Evidence;
use super::rule::{Certainty, Finding, Rule};
use crate::endpoint::Endpoint;
use crate::report::html::{document, escape, table};

/// Rules named where many were not run for one reason.
const NAMED: usize = 8;

/// One rule and what came of it.
#[derive(Debug)]
pub struct Judged {
    /// The rule.
    pub rule: &'static Rule,
    /// What came of it.
    pub finding: Finding,
}

/// The verdict in a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// No must is broken.
    Conforms,
    /// A must is broken.
    Breaks,
    /// No call was answered: the dealer was not reached.
    NotReached,
    /// It was reached, and served too little to be judged.
    NotJudged,
}

impl Verdict {
    /// The word in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Conforms => "conforms",
            Verdict::Breaks => "breaks",
            Verdict::NotReached => "not_reached",
            Verdict::NotJudged => "not_judged",
        }
    }
}

/// What was found about a dealer.
#[derive(Debug)]
pub struct Report {
    /// The verdict.
    pub verdict: Verdict,
    /// The rules of the dealer's contract, in the order of the table.
    pub results: Vec<Judged>,
    endpoint: String,
    name: Option<String>,
    is_simulator: bool,
    contract: &'static str,
    leads: bool,
    requests: usize,
    stopped: Option<String>,
    started: Timestamp,
    elapsed: Duration,
}

impl Report {
    pub(super) fn new(
        endpoint: Option<Endpoint>,
        seen: Evidence,
        results: Vec<Judged>,
        started: Timestamp,
        elapsed: Duration,
    ) -> Report {
        let breaks = results.iter().any(|judged| {
            judged.rule.certainty == Certainty::Must && matches!(judged.finding, Finding::Fail(_))
        });
        let called = !seen.exchanges.is_empty();
        let answered = seen.exchanges.iter().any(|exchange| exchange.answer.is_ok());
        let served = seen.exchanges.iter().any(|exchange| exchange.is_served());
        let verdict = if breaks {
            Verdict::Breaks
        } else if called && !answered {
            Verdict::NotReached
        } else if !served {
            Verdict::NotJudged
        } else {
            Verdict::Conforms
        };
        let card_url = seen.card.as_ref().map(|card| card.url.clone()).unwrap_or_default();
        Report {
            verdict,
            results,
            endpoint: endpoint.as_ref().map_or(card_url, |endpoint| endpoint.address.to_string()),
            is_simulator: endpoint.as_ref().is_some_and(|endpoint| endpoint.is_simulator),
            name: endpoint.and_then(|endpoint| endpoint.name),
            contract: seen.contract.name,
            leads: seen.leads,
            requests: seen.exchanges.len(),
            stopped: seen.stopped,
            started,
            elapsed,
        }
    }

    /// How many rules of this certainty were kept, broken and not run.
    pub fn counts(&self, certainty: Certainty) -> [usize; 3] {
        let mut counts = [0; 3];
        for judged in self.results.iter().filter(|judged| judged.rule.certainty == certainty) {
            counts[match judged.finding {
                Finding::Pass => 0,
                Finding::Fail(_) => 1,
                Finding::NotRun(_) => 2,
            }] += 1;
        }
        counts
    }

    /// The verdict in one line.
    pub fn line(&self) -> String {
        let [kept, broken, not_run] = self.counts(Certainty::Must);
        let [_, advised, _] = self.counts(Certainty::Should);
        let contract = self.contract;
        match self.verdict {
            Verdict::Conforms => format!(
                "AAP {contract}: conforms ({kept} musts kept, {not_run} not run; {advised} shoulds not kept)"
            ),
            Verdict::Breaks => format!(
                "AAP {contract}: does not conform ({broken} musts broken, {kept} kept, {not_run} not run)"
            ),
            Verdict::NotReached => format!("AAP {contract}: not reached (no call was answered)"),
            Verdict::NotJudged => format!("AAP {contract}: not judged (no call was served)"),
        }
    }

    /// The exit code: 0, 3 when a must is broken, 2 when there was nothing to judge.
    pub fn exit_code(&self) -> u8 {
        match self.verdict {
            Verdict::Conforms => 0,
            Verdict::Breaks => 3,
            Verdict::NotReached | Verdict::NotJudged => 2,
        }
    }

    /// What is broken, with its proofs: musts first, and of them what is about every reply, since others may follow from it.
    fn broken(&self) -> Vec<(&Judged, &[String])> {
        let mut broken: Vec<_> = self
            .results
            .iter()
            .filter_map(|judged| match &judged.finding {
                Finding::Fail(breaches) => Some((judged, breaches.as_slice())),
                _ => None,
            })
            .collect();
        broken.sort_by_key(|(judged, _)| (judged.rule.certainty, !judged.rule.is_of_every_reply()));
        broken
    }

    /// Where to begin, when rules on every reply are broken and others with them.
    fn advice(&self) -> Option<String> {
        let broken = self.broken();
        let musts = broken.iter().filter(|(judged, _)| judged.rule.certainty == Certainty::Must);
        let first: Vec<_> = musts
            .clone()
            .filter(|(judged, _)| judged.rule.is_of_every_reply())
            .map(|(judged, _)| judged.rule.id)
            .collect();
        (!first.is_empty() && musts.count() > first.len()).then(|| {
            format!(
                "Begin with {}: every reply is held to that, and what else is not kept may follow from it.",
                first.join(", ")
            )
        })
    }

    /// What was not run, by the reason, in the order in which the reasons came.
    fn not_run(&self) -> Vec<(&str, Vec<&'static str>)> {
        let mut reasons: Vec<(&str, Vec<&'static str>)> = Vec::new();
        for judged in &self.results {
            let Finding::NotRun(why) = &judged.finding else { continue };
            match reasons.iter_mut().find(|(known, _)| known == why) {
                Some((_, ids)) => ids.push(judged.rule.id),
                None => reasons.push((why, vec![judged.rule.id])),
            }
        }
        reasons
    }

    fn head(&self) -> String {
        let name = self.name.as_deref().unwrap_or("a dealer");
        let leads = if self.leads { "leads were sent" } else { "no lead was sent" };
        let simulator = if self.is_simulator { ", a simulator" } else { "" };
        format!(
            "{name}{simulator} at {}; contract {}; {} requests in {}.{:03} s, {leads}",
            self.endpoint,
            self.contract,
            self.requests,
            self.elapsed.as_secs(),
            self.elapsed.subsec_millis()
        )
    }
}

fn word(finding: &Finding) -> &'static str {
    match finding {
        Finding::Pass => "pass",
        Finding::Fail(_) => "fail",
        Finding::NotRun(_) => "not_run",
    }
}

/// As text: the verdict, and what was not kept or not run.
pub fn text(report: &Report) -> String {
    let mut out = format!("{}\n{}\n", report.line(), report.head());
    // Writing to a String cannot fail.
    if let Some(stopped) = &report.stopped {
        let _ = writeln!(out, "The checks ended early: {stopped}.");
    }
    if let Some(advice) = report.advice() {
        let _ = writeln!(out, "{advice}");
    }
    for (judged, breaches) in report.broken() {
        let rule = judged.rule;
        let _ = writeln!(
            out,
            "\n{} not kept: {}\n  {} ({})",
            rule.certainty.word(),
            rule.id,
            rule.title,
            rule.source
        );
        for breach in breaches {
            let _ = writeln!(out, "  - {}", breach.replace('\n', "\n    "));
        }
    }
    let not_run = report.not_run();
    if !not_run.is_empty() {
        let _ = writeln!(out, "\nnot run:");
        for (why, ids) in not_run {
            let more = ids.len().saturating_sub(NAMED);
            let more = if more == 0 { String::new() } else { format!(" and {more} more") };
            let named: Vec<_> = ids.iter().take(NAMED).copied().collect();
            let _ = writeln!(out, "  {}{more}: {why}", named.join(", "));
        }
    }
    let _ = writeln!(out);
    for certainty in Certainty::ALL {
        let [kept, broken, not_run] = report.counts(certainty);
        let _ =
            writeln!(out, "{:<7} {kept:>4} kept {broken:>4} not kept {not_run:>4} not run", certainty.word());
    }
    out
}

/// As JSON (`data/schemas/conformance.schema.json`).
pub fn json(report: &Report) -> Value {
    let counts = |certainty| {
        let [pass, fail, not_run] = report.counts(certainty);
        value!({ "pass": pass, "fail": fail, "not_run": not_run })
    };
    let rules: Vec<Value> = report
        .results
        .iter()
        .map(|judged| {
            let (proof, why) = match &judged.finding {
                Finding::Pass => (value!([]), Value::Null),
                Finding::Fail(breaches) => (value!(breaches), Value::Null),
                Finding::NotRun(why) => (value!([]), value!(why)),
            };
            let rule = judged.rule;
            value!({ "id": rule.id, "title": rule.title, "source": rule.source, "certainty": rule.certainty.word(),
                "outcome": word(&judged.finding), "proof": proof, "why_not_run": why })
        })
        .collect();
    value!({
        "schema": 1,
        "tool": { "name": "dealer-loadgen", "version": env!("CARGO_PKG_VERSION") },
        "endpoint": report.endpoint,
        "name": report.name,
        "is_simulator": report.is_simulator,
        "contract": report.contract,
        "started": report.started.to_string(),
        "elapsed_ms": report.elapsed.as_millis() as u64,
        "requests": report.requests,
        "leads_sent": report.leads,
        "stopped": report.stopped,
        "verdict": report.verdict.word(),
        "line": report.line(),
        "counts": { "must": counts(Certainty::Must), "should": counts(Certainty::Should), "silent": counts(Certainty::Silent) },
        "rules": rules,
    })
}

/// As one page that needs nothing else.
pub fn html(report: &Report) -> String {
    let mut body = format!("<h1>Conformance</h1>\n<p>{}</p>\n", escape(&report.head()));
    let class = if report.verdict == Verdict::Conforms { "verdict" } else { "verdict not" };
    let stopped =
        report.stopped.as_ref().map(|why| format!("<p>The checks ended early: {}.</p>", escape(why)));
    let _ = writeln!(
        body,
        "<div class=\"{class}\"><p>{}</p>{}</div>",
        escape(&report.line()),
        stopped.unwrap_or_default()
    );
    let broken = report.broken();
    if !broken.is_empty() {
        let advice =
            report.advice().map(|advice| format!("<p>{}</p>\n", escape(&advice))).unwrap_or_default();
        let _ = writeln!(body, "<h2>Not kept</h2>\n{advice}{LEGEND}");
    }
    for (judged, breaches) in broken {
        let rule = judged.rule;
        let _ = writeln!(
            body,
            "<h3>{} <small>{}</small></h3>\n<p>A dealer that keeps it: {} ({}).</p>",
            rule.id,
            rule.certainty.word(),
            escape(rule.title),
            escape(rule.source)
        );
        for breach in breaches {
            let _ = writeln!(
                body,
                "<pre style=\"white-space:pre-wrap;overflow-wrap:anywhere\">{}</pre>",
                escape(breach)
            );
        }
    }
    let rows = report.results.iter().filter(|judged| !matches!(judged.finding, Finding::Fail(_)));
    for (title, is_run) in [("Not run", false), ("Kept", true)] {
        let cells: String =
            rows.clone().filter(|judged| (judged.finding == Finding::Pass) == is_run).map(row).collect();
        if !cells.is_empty() {
            let _ = writeln!(body, "<h2>{title}</h2>\n{}", table(title, HEAD, &cells));
        }
    }
    document("Conformance", &body)
}

const LEGEND: &str = "<p>Each proof names the request in brackets, shows what was <b>sent</b> (header lines only where they are not \
    the ordinary ones), what <b>came</b> back and, where one reply alone is right, what was <b>wanted</b>. A <i>must</i> makes the \
    dealer fail; a <i>should</i> is advice; of what is <i>silent</i> no source says anything, but clients may stumble over it.</p>";
const HEAD: &str = "<th class=\"text\">Rule</th><th class=\"text\">Certainty</th><th class=\"text\">What a dealer does</th>\
    <th class=\"text\">Source</th>";

fn row(judged: &Judged) -> String {
    let why = match &judged.finding {
        Finding::NotRun(why) => format!("<br><i>{}</i>", escape(why)),
        _ => String::new(),
    };
    let rule = judged.rule;
    format!(
        "<tr><td class=\"text\">{}</td><td class=\"text\">{}</td><td class=\"text\">{}{why}</td><td class=\"text\">{}</td></tr>\n",
        rule.id,
        rule.certainty.word(),
        escape(rule.title),
        escape(rule.source)
    )
}

/// As JUnit: a must that is broken is a failure; what is broken otherwise, and what was not run, is skipped with a reason.
pub fn junit(report: &Report) -> String {
    let mut cases = String::new();
    let (mut failures, mut skipped) = (0, 0);
    for judged in &report.results {
        let rule = judged.rule;
        let group = rule.id.split('.').next().unwrap_or_default();
        let head = format!(
            "    <testcase classname=\"conform.{group}\" name=\"{} {}\"",
            escape(rule.id),
            escape(rule.title)
        );
        let (tag, message, proof) = match &judged.finding {
            Finding::Pass => {
                let _ = writeln!(cases, "{head}/>");
                continue;
            }
            Finding::Fail(breaches) if rule.certainty == Certainty::Must => {
                failures += 1;
                ("failure", format!("{} ({})", rule.title, rule.source), breaches.join("\n\n"))
            }
            Finding::Fail(breaches) => {
                skipped += 1;
                let text = format!("{}, not kept: {} ({})", rule.certainty.word(), rule.title, rule.source);
                ("skipped", text, breaches.join("\n\n"))
            }
            Finding::NotRun(why) => {
                skipped += 1;
                ("skipped", why.clone(), String::new())
            }
        };
        let (message, proof) = (escape(&message), escape(&proof));
        let _ =
            writeln!(cases, "{head}>\n      <{tag} message=\"{message}\">{proof}</{tag}>\n    </testcase>");
    }
    let counts = format!(
        "tests=\"{}\" failures=\"{failures}\" errors=\"0\" skipped=\"{skipped}\"",
        report.results.len()
    );
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"dealer-loadgen conform\" {counts}>\n  \
         <testsuite name=\"{}\" {counts} time=\"{}.{:03}\" timestamp=\"{}\">\n{cases}  </testsuite>\n</testsuites>\n",
        escape(&report.endpoint),
        report.elapsed.as_secs(),
        report.elapsed.subsec_millis(),
        report.started
    )
}

/// In the form of this name; text for any other.
pub(crate) fn shown(form: &str, report: &Report) -> String {
    match form {
        "json" => format!("{:#}\n", json(report)),
        "html" => html(report),
        "junit" => junit(report),
        "line" => format!("{}\n", report.line()),
        _ => text(report),
    }
}

/// A report that could not be written.
#[derive(Debug, thiserror::Error)]
#[error("{} cannot be written: {error}", path.display())]
pub(crate) struct WriteError {
    path: PathBuf,
    error: io::Error,
}

/// Writes all forms into a folder, which is made if it is not there.
pub(crate) fn write(folder: &Path, report: &Report) -> Result<(), WriteError> {
    let told = |path: &Path| {
        let path = path.to_owned();
        move |error| WriteError { path, error }
    };
    fs::create_dir_all(folder).map_err(told(folder))?;
    let files = [
        ("conformance.json", "json"),
        ("conformance.html", "html"),
        ("conformance.txt", "text"),
        ("junit.xml", "junit"),
    ];
    for (name, form) in files {
        let path = folder.join(name);
        fs::write(&path, shown(form, report)).map_err(told(&path))?;
    }
    Ok(())
}
