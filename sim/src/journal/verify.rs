//! Verification: was the dealer asked what it should have been asked? Pass, fail with the nearest misses, or unknown
//! where what is missing from the journal could have changed the answer. `data/schemas/verify.schema.json` describes
//! question and answer.

use serde::Serialize;
use serde_json::Value;

use super::matching::{Comparison, Difference, Match};
use super::{Entry, Page};

/// Steps of a sequence at most.
const MAX_STEPS: usize = 1000;
/// Near misses that are told.
const MAX_NEAREST: usize = 5;
/// Entries found that are told by their numbers.
const MAX_LISTED: usize = 100;

/// What is to be verified.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// Only entries numbered above this count.
    pub after: u64,
    /// What they must show.
    pub demand: Demand,
}

/// What the journal must show.
#[derive(Debug, Clone, PartialEq)]
pub enum Demand {
    /// Between `min` and `max` entries match.
    Count {
        /// What each of them says.
        of: Match,
        /// At least so many.
        min: u64,
        /// At most so many; `None` is any number.
        max: Option<u64>,
    },
    /// These were asked in this order of arrival, whatever came between.
    Sequence(Vec<Match>),
}

/// A question that cannot be asked.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", faults.join("; "))]
pub struct BadQuery {
    /// Every fault, each with the JSON pointer to it.
    pub faults: Vec<String>,
}

/// The answer's word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Finding {
    /// It was so.
    Pass,
    /// It was not so.
    Fail,
    /// Entries that could have mattered are gone, or cut.
    Unknown,
}

/// An entry that was nearly one of those wanted.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct NearMiss {
    /// Its number.
    pub seq: u64,
    /// Members that hold.
    pub matched: Vec<&'static str>,
    /// Those that do not.
    pub differs: Vec<Difference>,
}

/// The answer.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Verdict {
    /// Its word.
    pub verdict: Finding,
    /// Why, in a sentence.
    pub reason: String,
    /// Entries that match; of a sequence, the steps found one after the other.
    pub found: u64,
    /// Their numbers, up to a hundred.
    pub entries: Vec<u64>,
    /// Where something is missing, the entries that come nearest to it, nearest first.
    pub nearest: Vec<NearMiss>,
    /// Entries that no longer fit in the journal.
    pub dropped: u64,
}

impl Query {
    /// Reads a question: `{"match": {…}, "count": N | {"min": N, "max": N}}` (without `count`: at least one) or
    /// `{"sequence": [{…}, …]}`, either with `"after": N`.
    ///
    /// # Errors
    /// All faults at once, each with its JSON pointer.
    pub fn parse(body: &[u8]) -> Result<Query, BadQuery> {
        let value: Value = serde_json::from_slice(body)
            .map_err(|error| BadQuery { faults: vec![format!("the body is no JSON: {error}")] })?;
        let mut faults = Vec::new();
        let query = Query::read(&value, &mut faults);
        match query {
            Some(query) if faults.is_empty() => Ok(query),
            _ => Err(BadQuery { faults }),
        }
    }

    /// The same question of one dealer: only its entries can be those meant, whatever the question says.
    #[must_use]
    pub fn of_dealer(mut self, dealer: Option<&str>) -> Query {
        if let Some(dealer) = dealer {
            let all = match &mut self.demand {
                Demand::Count { of, .. } => std::slice::from_mut(of),
                Demand::Sequence(steps) => &mut steps[..],
            };
            all.iter_mut().for_each(|of| of.dealer = Some(dealer.to_owned()));
        }
        self
    }

    fn read(value: &Value, faults: &mut Vec<String>) -> Option<Query> {
        let Value::Object(members) = value else {
            faults.push("the body must be an object with \"match\" or \"sequence\"".to_owned());
            return None;
        };
        for name in
            members.keys().filter(|name| !["match", "count", "sequence", "after"].contains(&name.as_str()))
        {
            faults.push(format!("/{name}: no such member; there are match, count, sequence, after"));
        }
        let after = members.get("after").map_or(Some(0), Value::as_u64).unwrap_or_else(|| {
            faults.push("/after: must be an entry's number".to_owned());
            0
        });
        let demand = match (members.get("match"), members.get("sequence")) {
            (Some(of), None) => {
                let of = Match::read(of, "/match", faults);
                let (min, max) = members.get("count").map_or((1, None), |count| read_count(count, faults));
                Demand::Count { of, min, max }
            }
            (None, Some(steps)) => {
                if members.contains_key("count") {
                    faults.push("/count: goes with \"match\", not with \"sequence\"".to_owned());
                }
                Demand::Sequence(read_steps(steps, faults))
            }
            _ => {
                faults.push("give either \"match\" or \"sequence\"".to_owned());
                return None;
            }
        };
        Some(Query { after, demand })
    }
}

fn read_steps(value: &Value, faults: &mut Vec<String>) -> Vec<Match> {
    match value.as_array() {
        Some(steps) if (1..=MAX_STEPS).contains(&steps.len()) => steps
            .iter()
            .enumerate()
            .map(|(index, step)| Match::read(step, &format!("/sequence/{index}"), faults))
            .collect(),
        _ => {
            faults.push(format!("/sequence: must be a list of 1 to {MAX_STEPS} matches"));
            Vec::new()
        }
    }
}

fn read_count(value: &Value, faults: &mut Vec<String>) -> (u64, Option<u64>) {
    if let Some(exact) = value.as_u64() {
        return (exact, Some(exact));
    }
    let Value::Object(members) = value else {
        faults.push("/count: must be a whole number, or an object with \"min\", \"max\" or both".to_owned());
        return (0, None);
    };
    let (mut min, mut max) = (0, None);
    for (name, value) in members {
        match (name.as_str(), value.as_u64()) {
            ("min", Some(value)) => min = value,
            ("max", Some(value)) => max = Some(value),
            ("min" | "max", None) => faults.push(format!("/count/{name}: must be a whole number, 0 or more")),
            _ => faults.push(format!("/count/{name}: no such member; there are min, max")),
        }
    }
    if members.is_empty() {
        faults.push("/count: give \"min\", \"max\" or both".to_owned());
    }
    if max.is_some_and(|max| max < min) {
        faults.push("/count: \"max\" is less than \"min\"".to_owned());
    }
    (min, max)
}

/// Answers a question from the entries of a page, which should hold all that there are ([`super::Journal::all`]).
pub fn verify(page: &Page, query: &Query) -> Verdict {
    let entries: Vec<_> = page.entries.iter().filter(|entry| entry.seq > query.after).collect();
    let is_lossy = page.complete_after > query.after;
    let mut verdict = match &query.demand {
        Demand::Count { of, min, max } => verify_count(&entries, is_lossy, of, (*min, *max)),
        Demand::Sequence(steps) => verify_sequence(entries, is_lossy, steps),
    };
    verdict.dropped = page.dropped;
    verdict
}

/// What is known is a range: at least the entries that match, at most those, those whose payload was cut, and, where
/// entries were dropped, any number. It passes when the whole range is wanted and fails when none of it is.
fn verify_count(entries: &[&Entry], is_lossy: bool, of: &Match, (min, max): (u64, Option<u64>)) -> Verdict {
    let compared: Vec<_> = entries.iter().map(|entry| (entry.seq, of.compare(entry))).collect();
    let matching: Vec<_> = compared.iter().filter(|(_, found)| found.holds()).map(|(seq, _)| *seq).collect();
    let unsure = compared.iter().filter(|(_, found)| found.may_hold() && !found.holds()).count() as u64;
    let found = matching.len() as u64;
    let most = if is_lossy { u64::MAX } else { found + unsure };
    let top = max.unwrap_or(u64::MAX);
    let verdict = if found > top || most < min {
        Finding::Fail
    } else if found >= min && most <= top {
        Finding::Pass
    } else {
        Finding::Unknown
    };
    let wanted = match max {
        Some(max) if max == min => format!("{min} wanted"),
        Some(max) => format!("{min} to {max} wanted"),
        None => format!("{min} or more wanted"),
    };
    let mut reason = format!("{found} found, {wanted}");
    if verdict == Finding::Unknown {
        reason.push_str(&doubt(is_lossy, unsure));
    }
    let is_short = verdict != Finding::Pass && found < min;
    Verdict {
        verdict,
        reason,
        found,
        entries: matching.into_iter().take(MAX_LISTED).collect(),
        nearest: if is_short { nearest(compared) } else { Vec::new() },
        dropped: 0,
    }
}

fn doubt(is_lossy: bool, unsure: u64) -> String {
    let mut text = String::new();
    if is_lossy {
        text.push_str("; entries that may matter no longer fit in the journal: make it larger (--journal, --journal-bytes), clear it before the test, or give \"after\"");
    }
    if unsure > 0 {
        text.push_str(&format!(
            "; {unsure} more may match, but the payload was longer than the journal keeps"
        ));
    }
    text
}

fn verify_sequence(mut entries: Vec<&Entry>, is_lossy: bool, steps: &[Match]) -> Verdict {
    // Entries are numbered when their delivery ends; what was asked first is told by the traffic clock.
    entries.sort_by_key(|entry| (entry.traffic_ns, entry.seq));
    let sure = walk(&entries, steps, Comparison::holds);
    let found = sure.len();
    let mut verdict = Verdict {
        verdict: Finding::Pass,
        reason: format!("all {} steps were found, in order", steps.len()),
        found: found as u64,
        entries: sure.iter().take(MAX_LISTED).map(|at| entries[*at].seq).collect(),
        nearest: Vec::new(),
        dropped: 0,
    };
    let Some(missing) = steps.get(found) else { return verdict };
    let from = sure.last().map_or(0, |at| at + 1);
    verdict.reason = match sure.last() {
        Some(at) => format!("/sequence/{found} was not found after entry {}", entries[*at].seq),
        None => format!("/sequence/{found} was not found"),
    };
    let may_be_cut = walk(&entries, steps, Comparison::may_hold).len() == steps.len();
    verdict.verdict = if is_lossy || may_be_cut { Finding::Unknown } else { Finding::Fail };
    if verdict.verdict == Finding::Unknown {
        verdict.reason.push_str(&doubt(is_lossy, u64::from(may_be_cut)));
    }
    verdict.nearest =
        nearest(entries[from..].iter().map(|entry| (entry.seq, missing.compare(entry))).collect());
    verdict
}

/// The places of the steps found, each the first after the one before: if there is a way to find them all, this finds
/// one.
fn walk(entries: &[&Entry], steps: &[Match], holds: impl Fn(&Comparison) -> bool) -> Vec<usize> {
    let mut places = Vec::new();
    for (at, entry) in entries.iter().enumerate() {
        match steps.get(places.len()) {
            Some(step) if holds(&step.compare(entry)) => places.push(at),
            Some(_) => {}
            None => break,
        }
    }
    places
}

/// The entries that match in most members, then those that differ in the fewest places, then the newest.
fn nearest(compared: Vec<(u64, Comparison)>) -> Vec<NearMiss> {
    let mut missed: Vec<_> = compared.into_iter().filter(|(_, found)| !found.holds()).collect();
    missed.sort_by_key(|(seq, found)| {
        (std::cmp::Reverse(found.matched.len()), found.differs.len(), std::cmp::Reverse(*seq))
    });
    missed.truncate(MAX_NEAREST);
    missed
        .into_iter()
        .map(|(seq, found)| NearMiss { seq, matched: found.matched, differs: found.differs })
        .collect()
}
