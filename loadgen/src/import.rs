//! `import`: a simulator's journal as a scenario that sends the same requests again, with their timing.
//!
//! The requests of one conversation become a session; sessions that call the same skills in the same order share a flow.
//! When each session starts, how long its buyer thought between a reply and the next request, and what was asked stand in a
//! file beside the scenario, a line for each session (`trace`).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use dealer_sim::document::source::read_bounded;
use dealer_sim::protocol::Skill;
use dealer_sim::protocol::call::METHOD;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::cli::ImportArgs;
use crate::units::show_nanos;

/// Bytes of a journal.
const MAX_JOURNAL_BYTES: u64 = 256 << 20;
/// Requests of one session; a longer conversation goes on in another one.
const MAX_STEPS: usize = 200;
/// Flows, and steps of all flows together, so that the scenario stays within what `run` reads.
const MAX_FLOWS: usize = 1_000;
const MAX_ALL_STEPS: usize = 3_000;
/// Bytes of a session's line.
const MAX_LINE: usize = 64 << 10;
/// Bytes of all lines.
const MAX_LINES: usize = 128 << 20;

/// Why a journal could not be made a scenario.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ImportError {
    /// The journal cannot be read.
    #[error("{path}: the journal cannot be read: {source}")]
    Unreadable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// It is no journal.
    #[error("{path}: {reason}; give the entries as JSON Lines, or a page of the simulator's GET /journal")]
    NoJournal {
        /// The file.
        path: PathBuf,
        /// What is wrong.
        reason: String,
    },
    /// Nothing in it can be sent again.
    #[error("{path}: nothing in this journal can be sent again{left_out}")]
    Nothing {
        /// The file.
        path: PathBuf,
        /// What was left out.
        left_out: String,
    },
    /// The scenario's name is none.
    #[error("--out {0}: give a file that ends in .yaml, named with letters, digits, `_` and `-`")]
    Name(PathBuf),
    /// A file is there already.
    #[error("{0} is there already; give another --out, or replace it with --force")]
    Exists(PathBuf),
    /// A file cannot be written.
    #[error("{path} cannot be written: {source}")]
    Unwritable {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

impl ImportError {
    /// Whether what the user gave is at fault. A file that is missing is not: it may come.
    pub(crate) fn is_usage(&self) -> bool {
        !matches!(self, ImportError::Unreadable { .. } | ImportError::Unwritable { .. })
    }
}

/// An entry of the journal, as far as it matters here.
#[derive(Debug, Deserialize)]
struct Entry {
    traffic_ns: u64,
    #[serde(default)]
    dealer: String,
    #[serde(default)]
    conversation: Option<String>,
    #[serde(default)]
    method: Option<String>,
    request: Said,
    #[serde(default)]
    outcome: String,
    #[serde(default)]
    delivered: Delivered,
}

#[derive(Debug, Deserialize)]
struct Said {
    body: String,
    #[serde(default)]
    truncated: bool,
    #[serde(default)]
    lossy: bool,
}

#[derive(Debug, Default, Deserialize)]
struct Delivered {
    #[serde(default)]
    ms: f64,
}

#[derive(Deserialize)]
struct Page {
    entries: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Document {
    Page(Page),
    Entry(Box<Entry>),
}

/// A request that can be sent again.
#[derive(Debug)]
struct Call {
    conversation: (String, Option<String>),
    from: u64,
    until: u64,
    skill: Skill,
    payload: Map<String, Value>,
    outcome: String,
}

/// What could not be taken over, by its reason.
type LeftOut = BTreeMap<&'static str, u64>;

/// A scenario and its sessions, as text.
#[derive(Debug)]
struct Written {
    scenario: String,
    lines: String,
    summary: String,
}

/// Reads the journal and writes the scenario; gives what to tell the user.
pub(crate) fn import(args: &ImportArgs) -> Result<String, ImportError> {
    let stem = args.out.file_stem().and_then(|stem| stem.to_str()).unwrap_or_default();
    let is_yaml = args.out.extension().is_some_and(|extension| extension == "yaml" || extension == "yml");
    if !is_yaml || !dealer_sim::document::members::is_name(stem) {
        return Err(ImportError::Name(args.out.clone()));
    }
    let lines_path = args.out.with_extension("jsonl");
    let text = read_bounded(&args.journal, MAX_JOURNAL_BYTES)
        .map_err(|source| ImportError::Unreadable { path: args.journal.clone(), source })?;
    let entries =
        entries(&text).map_err(|reason| ImportError::NoJournal { path: args.journal.clone(), reason })?;
    let lines_name = lines_path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let written = scenario(entries, stem, lines_name)
        .map_err(|left_out| ImportError::Nothing { path: args.journal.clone(), left_out: told(&left_out) })?;
    if !args.force
        && let Some(there) = [&lines_path, &args.out].into_iter().find(|path| path.exists())
    {
        return Err(ImportError::Exists(there.clone()));
    }
    write(&lines_path, &written.lines, args.force)?;
    write(&args.out, &written.scenario, args.force)?;
    Ok(format!(
        "{} and {}: {}\nSend it again with: dealer-loadgen run {} --endpoint URL\n",
        args.out.display(),
        lines_path.display(),
        written.summary,
        args.out.display()
    ))
}

fn write(path: &Path, text: &str, force: bool) -> Result<(), ImportError> {
    let mut options = OpenOptions::new();
    options.write(true);
    // Without --force a file that has come meanwhile stays as it is.
    let opened = if force { options.create(true).truncate(true) } else { options.create_new(true) };
    opened
        .open(path)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .map_err(|source| ImportError::Unwritable { path: path.to_owned(), source })
}

fn entries(text: &[u8]) -> Result<Vec<Entry>, String> {
    let mut entries = Vec::new();
    for document in serde_json::Deserializer::from_slice(text).into_iter::<Document>() {
        match document {
            Ok(Document::Page(page)) => entries.extend(page.entries),
            Ok(Document::Entry(entry)) => entries.push(*entry),
            Err(error) => {
                return Err(format!("line {}: {error}", error.line()));
            }
        }
    }
    Ok(entries)
}

/// The call of an entry, or why there is none.
fn call(entry: Entry) -> Result<Call, &'static str> {
    if entry.method.as_deref() != Some(METHOD) {
        return Err("calls that are no messages");
    }
    if entry.request.truncated || entry.request.lossy {
        return Err("requests that the journal has not kept whole");
    }
    let mut body: Value =
        serde_json::from_str(&entry.request.body).map_err(|_| "requests that are no JSON")?;
    let payload = body.pointer_mut("/params/message/parts/0/data").map(Value::take);
    let Some(Value::Object(mut payload)) = payload else { return Err("messages without a payload") };
    let request_type = payload.remove("type");
    let skill = Skill::ALL
        .into_iter()
        .find(|skill| request_type.as_ref().and_then(Value::as_str) == Some(skill.request_type()))
        .ok_or("payloads of no skill")?;
    Ok(Call {
        conversation: (entry.dealer, entry.conversation),
        from: entry.traffic_ns,
        // The cast saturates.
        until: entry.traffic_ns.saturating_add((entry.delivered.ms.max(0.0) * 1e6) as u64),
        skill,
        payload,
        outcome: entry.outcome,
    })
}

/// The sessions: the calls of each conversation in the order in which they came.
fn sessions(mut calls: Vec<Call>) -> Vec<Vec<Call>> {
    // The journal is in the order in which replies ended.
    calls.sort_by_key(|call| call.from);
    let mut sessions: Vec<Vec<Call>> = Vec::new();
    let mut open: BTreeMap<(String, Option<String>), usize> = BTreeMap::new();
    for call in calls {
        let known = call.conversation.1.as_ref().and_then(|_| open.get(&call.conversation)).copied();
        match known.filter(|index| sessions[*index].len() < MAX_STEPS) {
            Some(index) => sessions[index].push(call),
            None => {
                open.insert(call.conversation.clone(), sessions.len());
                sessions.push(vec![call]);
            }
        }
    }
    sessions
}

/// A flow: the skills called in order, and the outcomes that each call had.
struct Flow {
    skills: Vec<Skill>,
    outcomes: Vec<Vec<String>>,
}

fn scenario(entries: Vec<Entry>, name: &str, lines_name: &str) -> Result<Written, LeftOut> {
    let mut left_out = LeftOut::new();
    let mut calls = Vec::new();
    for entry in entries {
        match call(entry) {
            Ok(call) => calls.push(call),
            Err(reason) => *left_out.entry(reason).or_default() += 1,
        }
    }
    let start = calls.iter().map(|call| call.from).min().unwrap_or(0);
    let mut flows: Vec<Flow> = Vec::new();
    let mut by_skills: BTreeMap<Vec<usize>, usize> = BTreeMap::new();
    let (mut all_steps, mut requests, mut count, mut last) = (0, 0, 0, 0);
    let mut lines = String::new();
    for session in sessions(calls) {
        let skills: Vec<usize> = session.iter().map(|call| call.skill as usize).collect();
        let known = by_skills.get(&skills).copied();
        if known.is_none() && (flows.len() >= MAX_FLOWS || all_steps + session.len() > MAX_ALL_STEPS) {
            *left_out.entry("requests of rarer courses than a scenario has room for").or_default() +=
                session.len() as u64;
            continue;
        }
        let index = known.unwrap_or(flows.len());
        let line = line(&session, start, index);
        if line.len() > MAX_LINE || lines.len() + line.len() > MAX_LINES {
            *left_out.entry("requests of sessions that are too large").or_default() += session.len() as u64;
            continue;
        }
        if known.is_none() {
            all_steps += session.len();
            by_skills.insert(skills, index);
            flows.push(Flow {
                skills: session.iter().map(|call| call.skill).collect(),
                outcomes: vec![Vec::new(); session.len()],
            });
        }
        for (seen, call) in flows[index].outcomes.iter_mut().zip(&session) {
            if is_expectable(&call.outcome) && !seen.contains(&call.outcome) {
                seen.push(call.outcome.clone());
            }
        }
        lines.push_str(&line);
        lines.push('\n');
        requests += session.len();
        count += 1;
        last = last.max(session[0].from - start);
    }
    if count == 0 {
        return Err(left_out);
    }
    let summary = format!(
        "{count} sessions of {} flows, {requests} requests; the last session starts after {}{}",
        flows.len(),
        show_nanos(last),
        told(&left_out)
    );
    Ok(Written { scenario: yaml(name, lines_name, &flows), lines, summary })
}

/// An outcome that `expect` takes: one that a client saw as well. The journal says how a call was answered; `http.0` is an
/// answer that was never given.
fn is_expectable(outcome: &str) -> bool {
    match outcome.split_once('.') {
        Some(("http", status)) => status.parse().is_ok_and(|status: u16| (100..=599).contains(&status)),
        Some((class, _)) => ["aap", "a2a", "rpc"].contains(&class),
        None => false,
    }
}

fn told(left_out: &LeftOut) -> String {
    let reasons: Vec<String> = left_out.iter().map(|(reason, count)| format!("{count} {reason}")).collect();
    if reasons.is_empty() { String::new() } else { format!("; left out: {}", reasons.join(", ")) }
}

/// A session's line: when it starts, its flow, the payloads and the pauses before them.
fn line(session: &[Call], start: u64, flow: usize) -> String {
    let millis = |nanos: u64| json!(nanos as f64 / 1e6);
    let mut row = Map::new();
    row.insert("at_ms".to_owned(), millis(session.first().map_or(0, |call| call.from - start)));
    row.insert("flow".to_owned(), Value::from(flow_name(flow)));
    let mut before: Option<u64> = None;
    for (index, call) in session.iter().enumerate() {
        row.insert(format!("request_{}", index + 1), Value::Object(call.payload.clone()));
        if let Some(before) = before {
            row.insert(format!("pause_{}", index + 1), millis(call.from.saturating_sub(before)));
        }
        before = Some(call.until);
    }
    Value::Object(row).to_string()
}

fn flow_name(index: usize) -> String {
    format!("course-{}", index + 1)
}

fn yaml(name: &str, lines_name: &str, flows: &[Flow]) -> String {
    let mut out = String::new();
    // Writing to a String cannot fail.
    let _ = writeln!(out, "name: {name}");
    let _ = writeln!(out, "description: what a simulator's journal has recorded, with its timing");
    let _ = writeln!(out, "trace: {{ file: {lines_name} }}\nflows:");
    for (index, flow) in flows.iter().enumerate() {
        let _ = writeln!(out, "  {}:", flow_name(index));
        for (step, (skill, outcomes)) in flow.skills.iter().zip(&flow.outcomes).enumerate() {
            let number = step + 1;
            if step > 0 {
                let _ = writeln!(out, "    - think: pause_{number}");
            }
            let word = skill.id().replace('.', "-");
            let _ = writeln!(out, "    - step: {number}-{word}");
            let _ = writeln!(out, "      skill: {}", skill.id());
            let _ = writeln!(out, "      request: \"${{request_{number}}}\"");
            let expected: Vec<&str> =
                std::iter::once("ok").chain(outcomes.iter().map(String::as_str)).collect();
            let _ = writeln!(out, "      expect: [{}]", expected.join(", "));
            // Whoever was recorded went on, whatever came.
            let _ = writeln!(out, "      on_error: continue");
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn entry(at_ms: u64, conversation: &str, skill: &str, outcome: &str, extra: &Value) -> Value {
        let mut payload = json!({"type": format!("{skill}.request")});
        payload.as_object_mut().unwrap().extend(extra.as_object().unwrap().clone());
        let body = json!({"params": {"message": {"parts": [{"data": payload}]}}}).to_string();
        json!({"traffic_ns": at_ms * 1_000_000, "dealer": "d", "conversation": conversation, "method": "SendMessage",
            "request": {"bytes": body.len(), "body": body}, "outcome": outcome, "delivered": {"bytes": 1, "state": "complete", "ms": 2.0}})
    }

    fn made(entries: &[Value]) -> Written {
        let text: String = entries.iter().map(|entry| format!("{entry}\n")).collect();
        scenario(super::entries(text.as_bytes()).unwrap(), "replay", "replay.jsonl").unwrap()
    }

    #[test]
    fn conversations_become_sessions_and_alike_ones_share_a_flow() {
        let none = json!({});
        let written = made(&[
            // As the journal has them: in the order in which replies ended.
            entry(130, "b", "inventory.search", "ok", &json!({"filters": {"make": ["Ford"]}})),
            entry(100, "a", "inventory.search", "ok", &none),
            entry(150, "a", "inventory.vehicle", "aap.VEHICLE_UNAVAILABLE", &json!({"vin": "X"})),
            entry(190, "b", "inventory.vehicle", "ok", &none),
            entry(200, "c", "lead.submit", "ok", &none),
        ]);
        let rows: Vec<Value> =
            written.lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(
            rows[0],
            json!({"at_ms": 0.0, "flow": "course-1", "request_1": {}, "pause_2": 48.0, "request_2": {"vin": "X"}})
        );
        assert_eq!(rows[1]["at_ms"], 30.0);
        assert_eq!((&rows[1]["flow"], &rows[2]["flow"]), (&json!("course-1"), &json!("course-2")));
        assert!(written.scenario.contains("expect: [ok, aap.VEHICLE_UNAVAILABLE]"), "{}", written.scenario);
        assert!(written.summary.starts_with("3 sessions of 2 flows, 5 requests"), "{}", written.summary);
    }

    #[test]
    fn what_cannot_be_sent_again_is_counted() {
        let mut cut = entry(1, "a", "inventory.search", "ok", &json!({}));
        cut["request"]["truncated"] = json!(true);
        let mut other = entry(2, "a", "inventory.search", "ok", &json!({}));
        other["method"] = json!("GetTask");
        let strange = entry(3, "a", "inventory.magic", "ok", &json!({}));
        let good = entry(4, "a", "inventory.search", "ok", &json!({}));
        let written = made(&[cut.clone(), other, strange, good]);
        for part in ["1 calls that are no messages", "1 payloads of no skill", "1 requests that the journal"]
        {
            assert!(written.summary.contains(part), "{}", written.summary);
        }
        let entries = entries(cut.to_string().as_bytes()).unwrap();
        assert!(scenario(entries, "x", "x.jsonl").is_err());
    }

    #[test]
    fn a_page_and_lines_are_the_same_and_anything_else_is_refused() {
        let entry = entry(1, "a", "inventory.search", "ok", &json!({}));
        let page = json!({"entries": [entry], "next": 1, "dropped": 0, "complete_after": 0}).to_string();
        assert_eq!(entries(page.as_bytes()).unwrap().len(), 1);
        assert_eq!(entries(format!("{entry}\n{entry}\n").as_bytes()).unwrap().len(), 2);
        assert_eq!(entries(b"").unwrap().len(), 0);
        for wrong in ["[]", "{}", "no", "{\"entries\": 1}"] {
            assert!(entries(wrong.as_bytes()).is_err(), "{wrong}");
        }
    }

    #[test]
    fn an_answer_that_was_never_given_is_nothing_to_expect() {
        for (outcome, is) in [("ok", false), ("http.0", false), ("http.503", true), ("rpc.-32602", true)] {
            assert_eq!(is_expectable(outcome), is, "{outcome}");
        }
    }

    #[test]
    fn a_conversation_without_a_name_is_a_session_for_each_call() {
        let mut nameless = entry(1, "a", "inventory.search", "ok", &json!({}));
        nameless["conversation"] = Value::Null;
        assert!(made(&[nameless.clone(), nameless]).summary.starts_with("2 sessions of 1 flows"));
    }
}
