//! `merge`: the results of several generators that shared one load, as one result.
//!
//! Histograms are added up, never percentiles: a percentile of the merge is that of the union of all requests. Seconds are
//! counted from each part's own start, which `--start-at` makes one moment.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::record::{Latency, Line, RESPONSE, ReadError};
use crate::report::{Folder, FolderError, RunResult, Second, Stored, StoredError, per_second};
use crate::threshold::{Figures, Judged, Threshold};
use crate::units::show_nanos;
use crate::verdict::Verdict;

/// Parts whose starts are further apart than this, in nanoseconds, did not load the dealer together.
const MAX_APART: i128 = 2_000_000_000;
/// What the note begins with that says which part a merge is of.
const PART_NOTE: &str = "this is shard ";
/// The condition that may differ: which part of the load it was.
const SHARD: &str = "shard";

/// Why results cannot be merged.
#[derive(Debug, thiserror::Error)]
pub(crate) enum MergeError {
    /// They are not parts of one load; one sentence each.
    #[error("{}", .0.join("\n"))]
    Unlike(Vec<String>),
    /// One cannot be read.
    #[error(transparent)]
    Read(#[from] StoredError),
    /// A histogram of one cannot be read.
    #[error("an interval log cannot be read: {0}")]
    Log(#[from] ReadError),
    /// The merged one cannot be written.
    #[error(transparent)]
    Write(#[from] FolderError),
}

/// Merges the results of these folders into a new one.
pub(crate) fn merge(out: &Path, inputs: &[PathBuf]) -> Result<RunResult, MergeError> {
    let mut faults = Vec::new();
    let mut seen = BTreeSet::new();
    let real = |path: &Path| path.canonicalize().unwrap_or_else(|_| path.to_owned());
    for input in inputs {
        if !seen.insert(real(input)) {
            faults.push(format!("{} is given twice: its requests would be counted twice", input.display()));
        }
    }
    if seen.contains(&real(out)) {
        faults.push(format!("{} is one of the results to merge: give another folder", out.display()));
    }
    // Whoever forgets OUT has named the first result there, which nobody could make again.
    let is_merge = || Stored::read(out).is_ok_and(|stored| !stored.result.parts.is_empty());
    if faults.is_empty() && out.join("summary.json").exists() && !is_merge() {
        let out = out.display();
        faults.push(format!(
            "{out} holds a result of its own, which would be lost: give another folder to merge into"
        ));
    }
    if !faults.is_empty() {
        return Err(MergeError::Unlike(faults));
    }
    let parts = inputs.iter().map(|path| Stored::read(path)).collect::<Result<Vec<_>, _>>()?;
    let faults = unlike(&parts);
    if !faults.is_empty() {
        return Err(MergeError::Unlike(faults));
    }
    let Some(result) = union(&parts) else { return Err(MergeError::Unlike(Vec::new())) };
    let comment = format!("dealer-loadgen {}, times in nanoseconds, merged", env!("CARGO_PKG_VERSION"));
    let mut folder = Folder::create(out, result.labels.clone(), result.started, &comment)?;
    write_seconds(&mut folder, &parts)?;
    folder.finish(&result)?;
    Ok(result)
}

/// What keeps results from being parts of one load, each with the names of the two that differ.
fn unlike(parts: &[Stored]) -> Vec<String> {
    let mut faults = Vec::new();
    let Some((first, others)) = parts.split_first() else { return faults };
    for other in others {
        let mut differ = |what: &str, one: &str, two: &str| {
            if one != two {
                faults.push(format!(
                    "{} and {} are not parts of one load: {what} {one} and {two}",
                    first.path.display(),
                    other.path.display()
                ));
            }
        };
        let (one, two) = (&first.result, &other.result);
        differ("scenario", &one.scenario, &two.scenario);
        differ("scenario file", &one.scenario_sha256, &two.scenario_sha256);
        differ("contract", &one.contract, &two.contract);
        differ("binding", &one.binding, &two.binding);
        differ("seed", &one.seed.to_string(), &two.seed.to_string());
        differ("steps", &one.labels.join(","), &two.labels.join(","));
        differ("warm-up", &show_nanos(one.warmup_nanos), &show_nanos(two.warmup_nanos));
        let names: BTreeSet<&String> = one.conditions.keys().chain(two.conditions.keys()).collect();
        for name in names.into_iter().filter(|name| *name != SHARD) {
            let value = |result: &RunResult| {
                result.conditions.get(name).map_or_else(|| "not given".to_owned(), Clone::clone)
            };
            differ(&format!("--{name}"), &value(one), &value(two));
        }
    }
    faults.extend(overlaps(parts));
    faults
}

/// The parts that have requests in common, a sentence each.
fn overlaps(parts: &[Stored]) -> Vec<String> {
    let mut faults = Vec::new();
    let mut seen: BTreeMap<u32, (&str, &Path)> = BTreeMap::new();
    let mut of: Option<(u32, &Path)> = None;
    for part in parts {
        let path = part.path.as_path();
        // A result without a shard is the whole load.
        let text = part.result.conditions.get(SHARD).map_or("1/1", String::as_str);
        let Some((indices, count)) = shards_of(text) else { continue };
        match of {
            None => of = Some((count, path)),
            Some((known, before)) if known != count => {
                faults.push(format!(
                    "{} is one of {known} shards and {} one of {count}: some requests would be counted twice",
                    before.display(),
                    path.display()
                ));
                continue;
            }
            Some(_) => {}
        }
        // Several whole runs of one seed are what several machines did, each on its own.
        for index in indices.into_iter().filter(|_| count > 1) {
            if let Some((twin, before)) = seen.insert(index, (text, path)) {
                let both = if twin == text {
                    format!("are both shard {text}")
                } else {
                    format!("are shards {twin} and {text}")
                };
                faults.push(format!(
                    "{} and {} {both}: the same requests would be counted twice",
                    before.display(),
                    path.display()
                ));
                break;
            }
        }
    }
    faults
}

/// The shards, from 1, that a result is of: `2/4`, or `1+2/4` of a merge that lacks some.
fn shards_of(text: &str) -> Option<(Vec<u32>, u32)> {
    let (indices, count) = text.split_once('/')?;
    let indices = indices.split('+').map(|index| index.parse().ok()).collect::<Option<Vec<u32>>>()?;
    Some((indices, count.parse().ok()?))
}

/// What of the load the parts are together: `None` if all of it, else as in [`shards_of`].
fn shards_together(parts: &[Stored]) -> Option<String> {
    let shards = parts.iter().filter_map(|part| shards_of(part.result.conditions.get(SHARD)?));
    let (indices, counts): (Vec<_>, Vec<u32>) = shards.unzip();
    let all: BTreeSet<u32> = indices.into_iter().flatten().collect();
    let count = counts.first().copied().filter(|count| all.len() < *count as usize)?;
    let words: Vec<String> = all.iter().map(u32::to_string).collect();
    Some(format!("{}/{count}", words.join("+")))
}

/// The words of a load without the part that they say it is.
fn without_shard(result: &RunResult) -> String {
    let words = result.conditions.get(SHARD).map(|text| shards_words(text)).unwrap_or_default();
    result.load.replacen(&words, "", 1)
}

/// What the words of a load say of shards; of one, as `Shard::words` has it.
fn shards_words(text: &str) -> String {
    let parts = if text.contains('+') { "parts" } else { "part" };
    text.split_once('/').map(|(indices, count)| format!(", {parts} {indices} of {count}")).unwrap_or_default()
}

/// The result of all parts together; `None` of none.
fn union(parts: &[Stored]) -> Option<RunResult> {
    let (first, others) = parts.split_first()?;
    let mut sum = first.result.clone();
    sum.parts = parts.iter().map(|part| part.path.display().to_string()).collect();
    sum.load = without_shard(&first.result);
    sum.conditions.remove(SHARD);
    if let Some(shards) = shards_together(parts) {
        sum.load.push_str(&shards_words(&shards));
        sum.conditions.insert(SHARD.to_owned(), shards);
    }
    for Stored { result, .. } in others {
        sum.tally.add(&result.tally);
        sum.started = sum.started.min(result.started);
        sum.is_interrupted |= result.is_interrupted;
        sum.aborted = sum.aborted.or_else(|| result.aborted.clone());
        sum.target_rate = sum.target_rate.zip(result.target_rate).map(|(one, two)| one + two);
        sum.achieved_rate += result.achieved_rate;
        sum.measured_nanos = sum.measured_nanos.max(result.measured_nanos);
        sum.workers = sum.workers.saturating_add(result.workers);
        sum.cores = sum.cores.saturating_add(result.cores);
        sum.cpu_nanos = sum.cpu_nanos.zip(result.cpu_nanos).map(|(one, two)| one.saturating_add(two));
        sum.busiest_worker = match (sum.busiest_worker, result.busiest_worker) {
            (Some(one), Some(two)) => Some(one.max(two)),
            (one, two) => one.or(two),
        };
        sum.checks_failed += result.checks_failed;
        for (mine, theirs) in sum.checks.iter_mut().zip(&result.checks) {
            mine.failed += theirs.failed;
        }
        sum.connections.add(&result.connections);
    }
    sum.verdict = verdict(parts);
    sum.thresholds = thresholds(&sum, parts);
    Some(sum)
}

/// Valid if every part is.
fn verdict(parts: &[Stored]) -> Verdict {
    let from = |pick: fn(&Verdict) -> &Vec<String>| -> Vec<String> {
        let all = parts.iter().flat_map(|part| {
            // Of shards the merge speaks itself.
            let own = pick(&part.result.verdict).iter().filter(|text| !text.starts_with(PART_NOTE));
            own.map(move |text| format!("{}: {text}", part.path.display()))
        });
        all.collect()
    };
    let reasons = from(|verdict| &verdict.reasons);
    let mut notes = from(|verdict| &verdict.notes);
    let starts = || parts.iter().map(|part| part.result.started.as_nanosecond());
    let apart = starts().max().unwrap_or(0) - starts().min().unwrap_or(0);
    if apart > MAX_APART {
        notes.push(format!(
            "the parts began up to {} apart: they did not load the dealer together all the time",
            show_nanos(u64::try_from(apart).unwrap_or(u64::MAX))
        ));
    }
    if let Some(shards) = shards_together(parts) {
        notes.push(format!("{PART_NOTE}{shards} of the load, not all of it: the others are not merged here"));
    }
    Verdict { valid: parts.iter().all(|part| part.result.verdict.valid), reasons, notes }
}

/// Conditions over the run are judged anew. One over windows holds if it holds in each part: a window of all of them is not
/// kept.
fn thresholds(sum: &RunResult, parts: &[Stored]) -> Vec<Judged> {
    let figures = Figures {
        tally: &sum.tally,
        labels: &sum.labels,
        rate: sum.achieved_rate,
        requests: per_second(sum.tally.finished(), sum.measured_nanos),
    };
    let mut judged: Vec<Judged> = Vec::new();
    for before in parts.iter().flat_map(|part| &part.result.thresholds) {
        let known = judged.iter_mut().find(|known| known.text == before.text);
        match (known, Threshold::parse(&before.text)) {
            (None, Ok(threshold)) if !threshold.is_windowed() => judged.push(threshold.judge(&figures)),
            (None, _) => judged.push(before.clone()),
            (Some(known), Ok(threshold)) if threshold.is_windowed() && known.pass && !before.pass => {
                *known = before.clone();
            }
            _ => {}
        }
    }
    judged
}

/// The second that a line belongs to. Times in the log have milliseconds.
fn second_of(line: &Line<'_>) -> u64 {
    (line.start + Duration::from_millis(1)).as_secs()
}

/// Writes the histograms and counts of all parts, second by second.
fn write_seconds(folder: &mut Folder, parts: &[Stored]) -> Result<(), MergeError> {
    let lines: Vec<Vec<Line<'_>>> = parts.iter().map(Stored::lines).collect();
    let mut by_second: BTreeMap<u64, BTreeMap<&str, Vec<&Line<'_>>>> = BTreeMap::new();
    for line in lines.iter().flatten() {
        by_second.entry(second_of(line)).or_default().entry(line.tag).or_default().push(line);
    }
    let mut series: BTreeMap<u64, Second> = BTreeMap::new();
    for second in parts.iter().flat_map(|part| &part.seconds) {
        let sum =
            series.entry(second.until).or_insert_with(|| Second { until: second.until, ..Second::default() });
        sum.add(second);
    }
    // What came after the last whole second has lines of its own, which belong to that second's line of the series.
    let mut last: Option<(u64, Latency)> = None;
    for (second, tags) in by_second {
        let mut sums: Vec<(&str, Latency)> = Vec::with_capacity(tags.len());
        let mut length = Duration::ZERO;
        for (tag, lines) in tags {
            let mut sum = Latency::new();
            for line in lines {
                line.add_to(&mut sum)?;
                length = length.max(line.length);
            }
            sums.push((tag, sum));
        }
        let start = Duration::from_secs(second);
        folder.add_merged(sums.iter().map(|(tag, latency)| ((*tag).to_owned(), latency)), start, length)?;
        let until = (start + length).as_secs_f64().round() as u64;
        let response = sums.iter().find(|(tag, _)| *tag == RESPONSE);
        if let (Some((_, response)), Some(sum)) = (response, series.get_mut(&until)) {
            let mut response = response.clone();
            if let Some((_, before)) = last.take().filter(|(of, _)| *of == until) {
                response.add(&before);
            }
            *sum = sum.clone().timed(&response);
            last = Some((until, response));
        }
    }
    // Each has its line and its percentiles already.
    let none = Latency::new();
    series.into_values().try_for_each(|second| folder.add_second(second, &none))?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::load::Shard;
    use crate::record::{HIGHEST, Tally};
    use crate::report::tests::folder_of;

    /// A folder of a run with these response times, a hundred in each second.
    fn folder(path: &Path, change: impl FnOnce(&mut RunResult), times: &[u64]) {
        folder_of(path, change, times.chunks(100));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(24))]
        #[test]
        fn a_percentile_of_the_merge_is_that_of_the_union(
            parts in proptest::collection::vec(proptest::collection::vec(0..HIGHEST, 0..300), 1..4),
        ) {
            let dir = tempfile::tempdir().unwrap();
            let paths: Vec<PathBuf> = (0..parts.len()).map(|index| dir.path().join(index.to_string())).collect();
            for (path, times) in paths.iter().zip(&parts) {
                folder(path, |_| (), times);
            }
            let out = dir.path().join("out");
            merge(&out, &paths).unwrap();
            let merged = Stored::read(&out).unwrap();
            let mut union = Latency::new();
            parts.iter().flatten().for_each(|&nanos| union.record(nanos));
            let response = merged.result.tally.response();
            prop_assert_eq!(response.count(), union.count());
            for q in [0.0, 0.5, 0.9, 0.99, 0.999] {
                prop_assert_eq!(response.quantile(q), union.quantile(q));
            }
            prop_assert_eq!(response.max(), union.max());
            let all = parts.iter().flatten().count() as u64;
            let failed = parts.iter().flatten().filter(|&nanos| nanos % 10 == 0).count() as u64;
            prop_assert_eq!(merged.result.tally.finished(), all);
            prop_assert_eq!(merged.result.tally.outcomes().get("http.503").copied().unwrap_or(0), failed);
            prop_assert_eq!(merged.seconds.iter().map(|second| second.finished).sum::<u64>(), all);
            let responses = merged.result.tally.steps[0].responses();
            let of_failed = responses.iter().find(|(label, _)| label == "http.503").map_or(0, |(_, latency)| latency.count());
            prop_assert_eq!(of_failed, failed);
        }
    }

    #[test]
    fn what_is_no_part_of_the_same_load_is_refused_with_its_reasons() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        folder(&path("a"), |_| (), &[1_000_000]);
        folder(
            &path("b"),
            |result| {
                result.seed = 43;
                result.scenario_sha256 = "11".to_owned();
                result.conditions.insert("rate".to_owned(), "200/s".to_owned());
            },
            &[1_000_000],
        );
        let out = path("out");
        let text = merge(&out, &[path("a"), path("b")]).unwrap_err().to_string();
        for words in ["seed 42 and 43", "scenario file 00 and 11", "--rate 100/s and 200/s"] {
            assert!(text.contains(words), "{text}");
        }
        assert!(!out.exists());
        let twice = merge(&out, &[path("a"), path("a")]).unwrap_err().to_string();
        assert!(twice.contains("given twice"), "{twice}");
        assert!(merge(&path("a"), &[path("a")]).unwrap_err().to_string().contains("another folder"));
        assert!(merge(&out, &[path("none")]).unwrap_err().to_string().contains("intervals.hlog"));
    }

    #[test]
    fn shards_add_up_and_none_counts_twice() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        let shard = |result: &mut RunResult, of: &str| {
            result.conditions.insert(SHARD.to_owned(), of.to_owned());
            result.load.push_str(&Shard::parse(of).unwrap().words());
            let judged = |text: &str| {
                let unit = Threshold::parse(text).unwrap().unit();
                Judged { text: text.to_owned(), value: Some(1.0), pass: of == "1/2", unit }
            };
            result.thresholds = vec![judged("p50<2ms"), judged("p50[1s]<2ms")];
        };
        folder(&path("1"), |result| shard(result, "1/2"), &[1_000_001; 50]);
        folder(&path("2"), |result| shard(result, "2/2"), &[3_000_001; 20]);
        folder(&path("3"), |result| shard(result, "2/2"), &[3_000_001; 20]);
        let merged = merge(&path("out"), &[path("1"), path("2")]).unwrap();
        assert_eq!((merged.target_rate, merged.achieved_rate), (Some(200.0), 200.0));
        assert_eq!(merged.load, "100/s constant for 10s");
        assert!(!merged.conditions.contains_key(SHARD) && merged.verdict.notes.is_empty());
        assert_eq!(merged.parts.len(), 2);
        // Over the run it is judged anew, and holds for most requests; over windows it must hold in each part.
        assert_eq!(merged.thresholds.iter().map(|judged| judged.pass).collect::<Vec<_>>(), [true, false]);
        let text = merge(&path("out"), &[path("2"), path("3")]).unwrap_err().to_string();
        assert!(text.contains("both shard 2/2"), "{text}");
        folder(&path("4"), |result| shard(result, "1/3"), &[1_000_001; 20]);
        let text = merge(&path("out"), &[path("2"), path("4")]).unwrap_err().to_string();
        assert!(text.contains("one of 2 shards") && text.contains("one of 3"), "{text}");
        folder(&path("5"), |_| (), &[1_000_001; 20]);
        let text = merge(&path("out"), &[path("5"), path("1")]).unwrap_err().to_string();
        assert!(text.contains("counted twice"), "{text}");
    }

    #[test]
    fn a_merge_of_some_shards_says_which() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        for index in 1..=3 {
            let of = format!("{index}/3");
            let change = |result: &mut RunResult| {
                result.load.push_str(&Shard::parse(&of).unwrap().words());
                result.conditions.insert(SHARD.to_owned(), of.clone());
            };
            folder(&path(&index.to_string()), change, &[1_000_001; 10]);
        }
        let some = merge(&path("some"), &[path("1"), path("3")]).unwrap();
        assert_eq!(some.load, "100/s constant for 10s, parts 1+3 of 3");
        assert_eq!(some.verdict.notes.len(), 1, "{:?}", some.verdict);
        let text = merge(&path("out"), &[path("some"), path("3")]).unwrap_err().to_string();
        assert!(text.contains("counted twice"), "{text}");
        let all = merge(&path("out"), &[path("some"), path("2")]).unwrap();
        assert_eq!((all.load.as_str(), all.tally.finished()), ("100/s constant for 10s", 30));
        assert!(!all.conditions.contains_key(SHARD));
        assert!(all.verdict.notes.is_empty(), "{:?}", all.verdict);
    }

    #[test]
    fn damaged_counts_are_refused_instead_of_added() {
        let dir = tempfile::tempdir().unwrap();
        let paths = ["1", "2"].map(|name| dir.path().join(name));
        for path in &paths {
            folder(path, |_| (), &[1_000_001; 10]);
        }
        let summary = paths[0].join("summary.json");
        let text = std::fs::read_to_string(&summary).unwrap();
        for count in ["\"scheduled\": 0", "\"sent\": 10", "\"ok\": 10", "\"opened\": 0"] {
            let name = count.split(' ').next().unwrap();
            assert!(text.contains(count), "{count}");
            std::fs::write(&summary, text.replace(count, &format!("{name} {}", u64::MAX))).unwrap();
            let said = merge(&dir.path().join("out"), &paths).unwrap_err().to_string();
            assert!(said.contains("damaged") && said.contains("summary.json"), "{said}");
        }
    }

    #[test]
    fn a_result_is_not_replaced_by_a_merge_of_others() {
        let dir = tempfile::tempdir().unwrap();
        let path = |name: &str| dir.path().join(name);
        for name in ["1", "2", "3"] {
            folder(&path(name), |_| (), &[1_000_001; 10]);
        }
        // Whoever forgets the folder to write names the first result in its place.
        let text = merge(&path("1"), &[path("2"), path("3")]).unwrap_err().to_string();
        assert!(text.contains("a result of its own"), "{text}");
        assert_eq!(Stored::read(&path("1")).unwrap().result.tally.finished(), 10);
        std::fs::write(path("1").join("summary.json"), "{").unwrap();
        assert!(merge(&path("1"), &[path("2"), path("3")]).is_err());
        // A merge may be made again.
        merge(&path("out"), &[path("2")]).unwrap();
        merge(&path("out"), &[path("2"), path("3")]).unwrap();
    }

    #[test]
    fn retries_and_the_times_of_whole_steps_are_merged_too() {
        let dir = tempfile::tempdir().unwrap();
        let paths = ["1", "2"].map(|name| dir.path().join(name));
        for path in &paths {
            let mut result = crate::report::tests::result();
            let mut tally = Tally::new(1);
            let step = &mut tally.steps[0];
            (step.sent, step.ok, step.expected, step.retries) = (3, 3, 3, 2);
            step.response.record(5_000_000);
            step.total.get_or_insert_default().record(9_000_000);
            let mut folder = Folder::create(path, result.labels.clone(), result.started, "test").unwrap();
            folder.add(&tally, Duration::ZERO, Duration::from_secs(1), 0).unwrap();
            result.tally = tally;
            folder.finish(&result).unwrap();
        }
        let out = dir.path().join("out");
        merge(&out, &paths).unwrap();
        let merged = Stored::read(&out).unwrap();
        let step = &merged.result.tally.steps[0];
        assert_eq!(step.retries, 4);
        let total = step.total.as_deref().unwrap();
        assert_eq!((total.count(), total.max().unwrap() / 100_000), (2, 90));
    }
}
