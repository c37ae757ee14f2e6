//! `compare`: is one side of runs slower or worse than the other, beyond what chance and the machine explain?
//!
//! Percentiles of two runs always differ. How much of a difference is chance is estimated from the runs themselves: each
//! side is put together again many times from pieces of a few seconds that are drawn with a seeded generator (a moving-block
//! bootstrap, since neighbouring seconds resemble each other), and, where a side has several runs, from runs that are drawn
//! first. A difference counts when its interval is beyond an allowance: what two runs of the same thing differ by anyway.

mod bootstrap;
mod html;
mod normal;
mod sample;
mod text;

use std::collections::BTreeSet;

use serde::Serialize;

use crate::report::Stored;
use bootstrap::{Drawn, draw};
pub(crate) use html::page;
use sample::{MEAN, Sample, Side};
pub(crate) use text::write_text;

/// The version of the JSON form.
const SCHEMA: u32 = 1;
/// The chance that any of all the figures of equal runs is called a difference, if the estimate is right.
const ALPHA: f64 = 0.05;
/// Times that each side is put together.
const RESAMPLES: usize = 500;
/// A run of fewer seconds says nothing about its own variation.
const MIN_SECONDS: usize = 5;
/// Shares of errors closer than this are not worth an alarm.
const ERRORS_ALLOWANCE: f64 = 0.001;

/// How a comparison is made.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Options {
    pub(crate) seed: u64,
    /// A difference below this share of the base is none; `None` for what the number of runs suggests.
    pub(crate) allowance: Option<f64>,
}

/// What a figure is measured in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Unit {
    Ms,
    Ratio,
    PerS,
}

/// What a difference means.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub(crate) enum Finding {
    /// Worse, beyond chance and allowance.
    Regression,
    /// Better, beyond chance and allowance.
    Improvement,
    /// Neither.
    Same,
}

/// One figure of both sides.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Row {
    /// `all`, or a step.
    pub(crate) of: String,
    /// `p50`, `p90`, `p99`, `mean`, `errors` or `requests`.
    pub(crate) figure: &'static str,
    pub(crate) unit: Unit,
    pub(crate) base: f64,
    pub(crate) new: f64,
    /// New minus base.
    pub(crate) difference: f64,
    /// The interval that the difference lies in.
    pub(crate) low: f64,
    pub(crate) high: f64,
    /// What two runs of the same thing differ by anyway.
    pub(crate) allowance: f64,
    pub(crate) finding: Finding,
}

/// A whole comparison.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Comparison {
    schema: u32,
    pub(crate) base: Vec<String>,
    pub(crate) new: Vec<String>,
    seed: u64,
    resamples: usize,
    alpha: f64,
    pub(crate) regression: bool,
    pub(crate) rows: Vec<Row>,
    pub(crate) notes: Vec<String>,
}

/// Why results cannot be compared: all reasons, a sentence each.
#[derive(Debug, thiserror::Error)]
#[error("{}", .0.join("\n"))]
pub(crate) struct Unlike(pub(crate) Vec<String>);

/// Compares two sides of one run or more each.
pub(crate) fn compare(base: &[Stored], new: &[Stored], options: Options) -> Result<Comparison, Unlike> {
    let faults = unlike(base, new);
    if !faults.is_empty() {
        return Err(Unlike(faults));
    }
    let labels = base.first().map(|run| run.result.labels.clone()).unwrap_or_default();
    // A scenario of one step has nothing beside `all`.
    let steps: &[String] = if labels.len() > 1 { &labels } else { &[] };
    let series: Vec<Option<&String>> = std::iter::once(None).chain(steps.iter().map(Some)).collect();
    let is_closed = base.iter().any(|run| run.result.conditions.contains_key("users"));
    let mut judge =
        Judge { options, runs: base.len().min(new.len()), figures: 5 * series.len(), rows: Vec::new() };
    for (index, step) in series.iter().enumerate() {
        let tag = step.map_or_else(|| "response".to_owned(), |label| format!("{label}.response"));
        let sides = Sample::of([base, new], &tag);
        let of = step.map_or("all", |label| label);
        judge.times(of, &sides, index as u64);
        if step.is_none() {
            judge.errors(&sides);
            if is_closed {
                judge.requests(&sides);
            }
        }
    }
    let rows = judge.rows;
    let names = |side: &[Stored]| side.iter().map(|run| run.path.display().to_string()).collect();
    Ok(Comparison {
        schema: SCHEMA,
        base: names(base),
        new: names(new),
        seed: options.seed,
        resamples: RESAMPLES,
        alpha: ALPHA,
        regression: rows.iter().any(|row| row.finding == Finding::Regression),
        rows,
        notes: notes(base, new),
    })
}

fn notes(base: &[Stored], new: &[Stored]) -> Vec<String> {
    let mut notes = Vec::new();
    if base.len().min(new.len()) < 2 {
        notes.push(
            "a side has one run only: how much runs differ among themselves is a rule of thumb then, and only larger \
             differences count; give several, as in compare base1,base2,base3 new1,new2,new3"
                .to_owned(),
        );
    }
    for run in base.iter().chain(new).filter(|run| run.result.is_interrupted) {
        notes.push(format!("{} ended before its time", run.path.display()));
    }
    notes
}

/// What keeps results from being comparable.
fn unlike(base: &[Stored], new: &[Stored]) -> Vec<String> {
    let mut faults = Vec::new();
    for run in base.iter().chain(new) {
        let path = run.path.display();
        if !run.result.verdict.valid {
            let why = run.result.verdict.reasons.join("; ");
            faults.push(format!("{path} is no valid measurement: {why}"));
        } else if run.seconds.iter().filter(|second| second.finished > 0).count() < MIN_SECONDS {
            faults.push(format!(
                "{path} has fewer than {MIN_SECONDS} seconds: too few to tell chance from change"
            ));
        }
    }
    let Some((first, others)) = base.split_first() else { return faults };
    for other in others.iter().chain(new) {
        let mut differ = |what: &str, one: &str, two: &str| {
            if one != two {
                faults.push(format!(
                    "{} and {} are not comparable: {what} {one} and {two}",
                    first.path.display(),
                    other.path.display()
                ));
            }
        };
        let (one, two) = (&first.result, &other.result);
        differ("scenario", &one.scenario, &two.scenario);
        differ("scenario file (SHA-256)", &one.scenario_sha256, &two.scenario_sha256);
        differ("contract", &one.contract, &two.contract);
        differ("binding", &one.binding, &two.binding);
        differ("steps", &one.labels.join(","), &two.labels.join(","));
        let names: BTreeSet<&String> = one.conditions.keys().chain(two.conditions.keys()).collect();
        for name in names {
            let value = |conditions: &std::collections::BTreeMap<String, String>| {
                conditions.get(name).map_or_else(|| "not given".to_owned(), Clone::clone)
            };
            differ(&format!("--{name}"), &value(&one.conditions), &value(&two.conditions));
        }
    }
    faults
}

/// Collects rows.
struct Judge {
    options: Options,
    /// Runs of the side that has fewer.
    runs: usize,
    /// Figures that may raise an alarm: the more there are, the surer each must be.
    figures: usize,
    rows: Vec<Row>,
}

impl Judge {
    /// The share of the base that a difference must exceed. Of one run a side nobody knows how much runs differ among
    /// themselves, and the last percent differs most.
    fn allowance(&self, figure: &str) -> f64 {
        self.options.allowance.unwrap_or(match (self.runs, figure) {
            (..2, "p99") => 0.05,
            (..2, _) => 0.03,
            _ => 0.01,
        })
    }

    fn times(&mut self, of: &str, sides: &[Side; 2], stream: u64) {
        let drawn: [Drawn; 2] =
            [0, 1].map(|side| draw(&sides[side], RESAMPLES, self.options.seed, stream * 2 + side as u64));
        for (index, figure) in sample::FIGURES.iter().enumerate() {
            let (Some(base), Some(new)) = (sides[0].times()[index], sides[1].times()[index]) else {
                continue;
            };
            let spread = drawn[0].spread_of_time(index).hypot(drawn[1].spread_of_time(index));
            // The response time contains the generator's own lateness: what is smaller than that says nothing of the dealer.
            let lag = if index == MEAN { 0 } else { index };
            let lag = sides[0].lag[lag].max(sides[1].lag[lag]);
            let allowance = (self.allowance(figure) * base).max(lag);
            self.row(of, figure, Unit::Ms, [base, new], spread, allowance, 1.0);
        }
    }

    fn errors(&mut self, sides: &[Side; 2]) {
        let drawn =
            [0, 1].map(|side| draw(&sides[side], RESAMPLES, self.options.seed, 1_000_000 + side as u64));
        let (Some(base), Some(new)) = (sides[0].errors(), sides[1].errors()) else { return };
        let spread = drawn[0].spread_of_errors().hypot(drawn[1].spread_of_errors());
        self.row("all", "errors", Unit::Ratio, [base, new], spread, ERRORS_ALLOWANCE, 1.0);
    }

    fn requests(&mut self, sides: &[Side; 2]) {
        let drawn =
            [0, 1].map(|side| draw(&sides[side], RESAMPLES, self.options.seed, 2_000_000 + side as u64));
        let (base, new) = (sides[0].requests(), sides[1].requests());
        let spread = drawn[0].spread_of_requests().hypot(drawn[1].spread_of_requests());
        let allowance = self.allowance("requests") * base;
        self.row("all", "requests", Unit::PerS, [base, new], spread, allowance, -1.0);
    }

    /// `worse` is 1 where more is worse, and -1 where less is.
    #[expect(clippy::too_many_arguments, reason = "a row of a table has so many fields")]
    fn row(
        &mut self,
        of: &str,
        figure: &'static str,
        unit: Unit,
        [base, new]: [f64; 2],
        spread: f64,
        allowance: f64,
        worse: f64,
    ) {
        // Few runs vary less among themselves than many would: n / (n - 1), as for any sample's variance.
        let few = if self.runs > 1 { (self.runs as f64 / (self.runs as f64 - 1.0)).sqrt() } else { 1.0 };
        let half = normal::quantile(1.0 - ALPHA / 2.0 / self.figures as f64) * spread * few;
        let difference = new - base;
        let (low, high) = (difference - half, difference + half);
        let finding = if (difference * worse) - half > allowance {
            Finding::Regression
        } else if (difference * worse) + half < -allowance {
            Finding::Improvement
        } else {
            Finding::Same
        };
        let rounded = |value: f64| (value * 1e6).round() / 1e6;
        self.rows.push(Row {
            of: of.to_owned(),
            figure,
            unit,
            base: rounded(base),
            new: rounded(new),
            difference: rounded(difference),
            low: rounded(low),
            high: rounded(high),
            allowance: rounded(allowance),
            finding,
        });
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use rand::{RngExt, SeedableRng};
    use rand_chacha::ChaCha8Rng;

    use super::*;
    use crate::report::RunResult;
    use crate::report::tests::folder_of;

    /// A run of 30 seconds of 100 requests of about so many milliseconds. All of a run is slower or faster by up to one percent,
    /// a second now and then is slow, and one request in a hundred takes a fifth longer.
    fn run(path: &Path, millis: f64, failing: f64, seed: u64) -> Stored {
        run_with(path, millis, failing, seed, |_| ())
    }

    fn run_with(
        path: &Path,
        millis: f64,
        failing: f64,
        seed: u64,
        change: impl FnOnce(&mut RunResult),
    ) -> Stored {
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let of_run = rng.random_range(0.99..1.01);
        let seconds: Vec<Vec<u64>> = (0..30)
            .map(|_| {
                let of_second = if rng.random_range(0..15) == 0 { rng.random_range(1.0..1.1) } else { 1.0 };
                (0..100)
                    .map(|_| {
                        let slow = if rng.random_range(0..100) == 0 { 1.2 } else { 1.0 };
                        let factor: f64 = of_run * of_second * slow * rng.random_range(1.0..1.02);
                        let nanos = (millis * 1e6 * factor) as u64 / 10 * 10;
                        nanos + u64::from(rng.random::<f64>() >= failing)
                    })
                    .collect()
            })
            .collect();
        folder_of(path, change, seconds.iter().map(Vec::as_slice));
        Stored::read(path).unwrap()
    }

    const OPTIONS: Options = Options { seed: 42, allowance: None };

    #[test]
    fn equal_runs_raise_no_alarm_and_ten_percent_always_do() {
        let dir = tempfile::tempdir().unwrap();
        let mut alarms = 0;
        for pair in 0..20 {
            let path = |name: &str| dir.path().join(format!("{name}{pair}"));
            let base = run(&path("a"), 20.0, 0.0, pair * 3);
            let same = run(&path("b"), 20.0, 0.0, pair * 3 + 1);
            let slow = run(&path("c"), 22.0, 0.0, pair * 3 + 2);
            alarms += u32::from(compare(std::slice::from_ref(&base), &[same], OPTIONS).unwrap().regression);
            let found = compare(&[base], &[slow], OPTIONS).unwrap();
            assert!(found.regression, "{pair}: {:#?}", found.rows);
        }
        assert!(alarms <= 1, "{alarms}");
    }

    #[test]
    fn several_runs_a_side_find_less() {
        let dir = tempfile::tempdir().unwrap();
        let side = |name: &str, millis: f64, seed: u64| -> Vec<Stored> {
            (0..6)
                .map(|index| run(&dir.path().join(format!("{name}{index}")), millis, 0.0, seed + index))
                .collect()
        };
        let (base, same, slow) = (side("a", 20.0, 100), side("b", 20.0, 200), side("c", 20.9, 300));
        assert!(!compare(&base, &same, OPTIONS).unwrap().regression);
        let found = compare(&base, &slow, OPTIONS).unwrap();
        assert!(found.regression && found.notes.is_empty(), "{:#?}", found.rows);
        // The other way round it is an improvement.
        let found = compare(&slow, &base, OPTIONS).unwrap();
        assert!(!found.regression && found.rows.iter().any(|row| row.finding == Finding::Improvement));
    }

    #[test]
    fn more_errors_are_a_regression_of_their_own() {
        let dir = tempfile::tempdir().unwrap();
        let base = run(&dir.path().join("a"), 20.0, 0.0, 1);
        let new = run(&dir.path().join("b"), 20.0, 0.02, 2);
        let found = compare(&[base], &[new], OPTIONS).unwrap();
        let worse: Vec<&str> = found
            .rows
            .iter()
            .filter(|row| row.finding == Finding::Regression)
            .map(|row| row.figure)
            .collect();
        assert_eq!(worse, ["errors"]);
        let mut out = Vec::new();
        write_text(&mut out, &found).unwrap();
        let text = String::from_utf8(out).unwrap();
        assert!(text.starts_with("Regression: 1 of 5") && text.contains("all errors"), "{text}");
    }

    #[test]
    fn what_differs_otherwise_is_refused_with_all_reasons() {
        let dir = tempfile::tempdir().unwrap();
        let base = run(&dir.path().join("a"), 20.0, 0.0, 1);
        let new = run_with(&dir.path().join("b"), 20.0, 0.0, 2, |result| {
            result.scenario_sha256 = "other".to_owned();
            result.contract = "2.0".to_owned();
            result.conditions.insert("rate".to_owned(), "200/s".to_owned());
        });
        let text = compare(std::slice::from_ref(&base), &[new], OPTIONS).unwrap_err().to_string();
        for words in ["SHA-256", "contract 3.0 and 2.0", "--rate 100/s and 200/s"] {
            assert!(text.contains(words), "{text}");
        }
        let bad = run_with(&dir.path().join("c"), 20.0, 0.0, 2, |result| {
            result.verdict.valid = false;
            result.verdict.reasons = vec!["it was late".to_owned()];
        });
        assert!(compare(&[base], &[bad], OPTIONS).unwrap_err().to_string().contains("it was late"));
    }

    #[test]
    fn a_page_has_every_row() {
        let dir = tempfile::tempdir().unwrap();
        let base = [run(&dir.path().join("a"), 20.0, 0.0, 1)];
        let new = [run(&dir.path().join("b"), 25.0, 0.0, 2)];
        let found = compare(&base, &new, OPTIONS).unwrap();
        let html = page(&found, &base, &new);
        assert!(html.contains("REGRESSION") && html.contains("all p99") && html.ends_with("</html>\n"));
        let again = compare(&base, &new, OPTIONS).unwrap();
        assert_eq!(serde_json::to_string(&found).unwrap(), serde_json::to_string(&again).unwrap());
    }
}
