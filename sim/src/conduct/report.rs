//! The report: what became of each rule, for each client.

use serde::Serialize;

use super::judge::{Client, Finding, Judge, MAX_FINDINGS, Tally};
use super::rules::{R, RULES, Rule, Severity};
use super::{facts, markup};

/// What became of a rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Status {
    /// It was broken at least once.
    Broken,
    /// Some of what decides it was dropped before it was judged, or forgotten since.
    Unknown,
    /// It was kept each time that it applied.
    Kept,
    /// It never applied.
    NotSeen,
}

impl Status {
    /// The word, as in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Status::Broken => "broken",
            Status::Unknown => "unknown",
            Status::Kept => "kept",
            Status::NotSeen => "not_seen",
        }
    }
}

/// A rule and one client.
#[derive(Debug, Clone, Serialize)]
pub struct RuleReport {
    /// The rule.
    #[serde(flatten)]
    pub rule: &'static Rule,
    /// What became of it.
    pub status: Status,
    /// How often it was kept.
    pub kept: u64,
    /// How often it was broken.
    pub broken: u64,
    /// How often what decides it was not known.
    pub unknown: u64,
    /// The first proofs, at most [`MAX_FINDINGS`].
    pub findings: Vec<Finding>,
}

/// One client.
#[derive(Debug, Clone, Serialize)]
pub struct ClientReport {
    /// Its name, as in the journal.
    pub client: String,
    /// Its calls.
    pub calls: u64,
    /// Entries of the judge's memory of it that were forgotten.
    pub forgotten: u64,
    /// Entries that were judged after others that had arrived later.
    pub late: u64,
    /// Every rule.
    pub rules: Vec<RuleReport>,
}

/// How many rules were broken, each counted once for each client.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Serialize)]
pub struct Count {
    /// Of severity violation.
    pub violation: u64,
    /// Of severity warning.
    pub warning: u64,
    /// Of severity advice.
    pub advice: u64,
}

/// A conduct report; `data/schemas/conduct.schema.json` describes its JSON.
#[derive(Debug, Clone, Serialize)]
pub struct Report {
    /// The test that bounds it; none for all that was seen.
    pub test: Option<String>,
    /// Calls judged.
    pub calls: u64,
    /// Journal entries that were dropped before they were judged.
    pub missed: u64,
    /// Entries that were judged after others that had arrived later.
    pub late: u64,
    /// Requests of clients that were too many to be judged.
    pub unjudged: u64,
    /// Rules broken.
    pub broken: Count,
    /// Rules of which it is not known, each counted once for each client.
    pub unknown: u64,
    /// Each client, by name.
    pub clients: Vec<ClientReport>,
}

/// A form of the report.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Format {
    /// For people, in a terminal.
    Text,
    /// For programs.
    Json,
    /// For people, in a browser.
    Html,
    /// For CI systems.
    Junit,
}

impl Format {
    /// The word.
    pub fn word(self) -> &'static str {
        match self {
            Format::Text => "text",
            Format::Json => "json",
            Format::Html => "html",
            Format::Junit => "junit",
        }
    }

    /// The form that a word names.
    pub fn from_word(word: &str) -> Option<Format> {
        [Format::Text, Format::Json, Format::Html, Format::Junit].into_iter().find(|one| one.word() == word)
    }

    /// Its media type.
    pub fn media_type(self) -> &'static str {
        match self {
            Format::Text => "text/plain; charset=utf-8",
            Format::Json => "application/json",
            Format::Html => "text/html; charset=utf-8",
            Format::Junit => "application/xml; charset=utf-8",
        }
    }
}

impl Judge {
    /// The report, of one client if one is named.
    pub fn report(&self, client: Option<&str>) -> Report {
        let wanted = |name: &str| client.is_none_or(|wanted| wanted == name);
        let clients: Vec<_> = self
            .clients
            .iter()
            .filter(|(name, _)| wanted(name))
            .map(|(name, client)| self.of_client(name, client))
            .filter(|report| {
                report.calls > 0 || report.rules.iter().any(|rule| rule.status == Status::Broken)
            })
            .collect();
        let mut broken = Count::default();
        let mut unknown = 0;
        for rule in clients.iter().flat_map(|client| &client.rules) {
            match (rule.status, rule.rule.severity) {
                (Status::Broken, Severity::Violation) => broken.violation += 1,
                (Status::Broken, Severity::Warning) => broken.warning += 1,
                (Status::Broken, Severity::Advice) => broken.advice += 1,
                (Status::Unknown, _) => unknown += 1,
                (Status::Kept | Status::NotSeen, _) => {}
            }
        }
        Report {
            test: None,
            calls: clients.iter().map(|client| client.calls).sum(),
            missed: self.missed,
            late: clients.iter().map(|client| client.late).sum(),
            unjudged: self.unjudged,
            broken,
            unknown,
            clients,
        }
    }

    fn of_client(&self, name: &str, client: &Client) -> ClientReport {
        let forgotten = client.lost();
        let rules = RULES.iter().zip(&client.tallies).map(|(rule, tally)| {
            let mut tally = tally.clone();
            if rule.id == R::RetryMade.rule().id {
                never_retried(client, self.missed > 0, &mut tally);
            }
            let is_unsure = self.missed > 0
                || (rule.needs_past && (self.has_missed_past || client.late > 0 || forgotten > 0));
            let status = match &tally {
                tally if tally.broken > 0 => Status::Broken,
                tally if tally.unknown > 0 || is_unsure => Status::Unknown,
                tally if tally.kept > 0 => Status::Kept,
                _ => Status::NotSeen,
            };
            let Tally { kept, broken, unknown, findings } = tally;
            RuleReport { rule, status, kept, broken, unknown, findings }
        });
        ClientReport {
            client: name.to_owned(),
            calls: client.calls,
            forgotten,
            late: client.late,
            rules: rules.collect(),
        }
    }
}

/// What failed once, might have succeeded later, and did not come again until now.
fn never_retried(client: &Client, has_gap: bool, tally: &mut Tally) {
    for attempt in client.attempts.iter() {
        if attempt.failure != Some(facts::Failure::Retryable) || attempt.failures > 1 {
            continue;
        }
        if has_gap {
            tally.unknown += 1;
            continue;
        }
        tally.broken += 1;
        if tally.findings.len() < MAX_FINDINGS {
            tally.findings.push(attempt.text.clone());
        }
    }
}

/// The report as [`Format::Text`].
impl std::fmt::Display for Report {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&markup::text(self))
    }
}

impl Report {
    /// Whether a rule of this severity or a graver one was broken.
    pub fn breaks(&self, severity: Severity) -> bool {
        let Count { violation, warning, advice } = self.broken;
        match severity {
            Severity::Violation => violation > 0,
            Severity::Warning => violation + warning > 0,
            Severity::Advice => violation + warning + advice > 0,
        }
    }

    /// The report in one of its forms.
    pub fn write(&self, format: Format) -> String {
        match format {
            Format::Text => markup::text(self),
            // A report has no map with other keys than text: writing it cannot fail.
            Format::Json => serde_json::to_string_pretty(self).unwrap_or_default() + "\n",
            Format::Html => markup::html(self),
            Format::Junit => markup::junit(self),
        }
    }
}
