//! `trace`: a file that lists the sessions of a run, a JSON object in each line: when it starts (`at_ms`, milliseconds
//! from the start, ascending), which flow it runs (`flow`), and values, whose names the flow uses.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use super::ast::is_reference;
use super::fault::{Faults, quoted};
use super::feeder::{self, Rows};
use super::members::is_name;

/// Names that all rows together set.
const MAX_COLUMNS: usize = 1_000;
/// A trace ends within a year.
const MAX_MILLIS: f64 = 366.0 * 24.0 * 3_600_000.0;

/// The sessions that a file lists, in their order.
#[derive(Debug)]
pub(crate) struct Trace {
    rows: Rows,
    times: Arc<[u64]>,
    /// Indices among the flows of the scenario.
    flows: Vec<u32>,
    /// The names that rows set.
    pub(crate) columns: Vec<String>,
}

impl Trace {
    /// When each session starts, in nanoseconds.
    pub(crate) fn times(&self) -> Arc<[u64]> {
        self.times.clone()
    }

    /// The flow of a session, as an index among those of its scenario.
    pub(crate) fn flow(&self, ordinal: u64) -> usize {
        usize::try_from(ordinal).ok().and_then(|index| self.flows.get(index)).map_or(0, |flow| *flow as usize)
    }

    /// The values of a session.
    pub(crate) fn row(&self, ordinal: u64) -> Option<Value> {
        self.rows.get(usize::try_from(ordinal).ok()?)
    }
}

/// Reads a trace whose flows have these names. Faults are reported at their place in that file.
pub(crate) fn read(path: &Path, text: String, flows: &[&str], faults: &mut Faults) -> Option<Trace> {
    let rows = feeder::read(path, text, faults)?;
    let mut times = Vec::with_capacity(rows.len());
    let mut indices = Vec::with_capacity(rows.len());
    let mut columns = BTreeSet::new();
    let mut sound = true;
    let mut last = 0;
    for index in 0..rows.len() {
        let row = rows.get(index).unwrap_or_default();
        let mut complain = |what: String| {
            rows.complain(index, what, faults);
            sound = false;
        };
        let millis = row.get("at_ms").and_then(Value::as_f64).filter(|at| (0.0..=MAX_MILLIS).contains(at));
        match millis.map(|millis| (millis * 1e6) as u64) {
            Some(at) if at >= last => {
                last = at;
                times.push(at);
            }
            Some(_) => {
                complain("this session starts before the one above it: sort the lines by `at_ms`".to_owned());
            }
            None => complain("`at_ms` is missing, or no number of milliseconds from the start".to_owned()),
        }
        let flow = row.get("flow").and_then(Value::as_str).unwrap_or_default();
        match flows.iter().position(|known| *known == flow) {
            Some(index) => indices.push(index as u32),
            None => complain(format!("`flow` is {}, which the scenario does not have", quoted(flow))),
        }
        let names = row.as_object().into_iter().flat_map(|row| row.keys());
        columns.extend(names.filter(|name| is_name(name) && is_reference(name)).cloned());
        if columns.len() > MAX_COLUMNS {
            complain(format!("the rows set more than {MAX_COLUMNS} names"));
            break;
        }
    }
    columns.remove("at_ms");
    columns.remove("flow");
    sound.then(|| Trace { rows, times: times.into(), flows: indices, columns: columns.into_iter().collect() })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn trace(text: &str) -> Result<Trace, String> {
        let mut faults = Faults::default();
        let trace = read(Path::new("t.jsonl"), text.to_owned(), &["a", "b"], &mut faults);
        faults.finish(trace).map_err(|error| error.to_string())
    }

    #[test]
    fn each_line_is_a_session() {
        let trace =
            trace("{\"at_ms\":0,\"flow\":\"b\",\"x\":1}\n{\"at_ms\":1.5,\"flow\":\"a\",\"y\":2}\n").unwrap();
        assert_eq!(&*trace.times(), [0, 1_500_000]);
        assert_eq!((trace.flow(0), trace.flow(1)), (1, 0));
        assert_eq!(trace.columns, ["x", "y"]);
        assert_eq!(trace.row(1).unwrap()["y"], 2);
        assert!(trace.row(2).is_none());
    }

    #[test]
    fn every_wrong_line_is_told() {
        let error = trace("{\"at_ms\":5,\"flow\":\"a\"}\n{\"at_ms\":4,\"flow\":\"c\"}\n\n{\"flow\":\"a\"}\n")
            .unwrap_err();
        for part in
            ["t.jsonl:2:1: this session starts before", "`flow` is `c`", "t.jsonl:4:1: `at_ms` is missing"]
        {
            assert!(error.contains(part), "{part} in {error}");
        }
        assert!(trace("").is_err());
    }
}
