//! Feeders: rows of a CSV or JSONL file, one for each session.
//!
//! A file is checked as a whole when it is read, but held as its text and the place of each row: a row becomes a value
//! for the session that gets it. As values, the rows of a file of many short lines would take a hundred times its size.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use serde_json::Value;

use super::draw::{Key, Purpose};
use super::fault::{Fault, Faults, Pos, Reporter, Source, quoted};

/// Bytes of a feeder file; it is held in memory.
pub(crate) const MAX_FEEDER_BYTES: u64 = 16 << 20;
/// Bytes of one row, the header line of a CSV file included; each session makes a value of its row.
const MAX_ROW_BYTES: usize = 64 << 10;

/// Which row a session gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pick {
    /// Row n for session n, from the start again after the last one.
    Sequential,
    /// Any row, drawn for each session.
    Random,
    /// Row n for session n, and no session after the last row: each row is used once at most, in all shards together.
    Unique,
    /// One row for all sessions of a run, drawn from its seed.
    Shared,
}

impl Pick {
    pub(crate) const ALL: [Pick; 4] = [Pick::Sequential, Pick::Random, Pick::Unique, Pick::Shared];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Pick::Sequential => "sequential",
            Pick::Random => "random",
            Pick::Unique => "unique",
            Pick::Shared => "shared",
        }
    }
}

/// The rows of one file and the way to pick one.
#[derive(Debug)]
pub(crate) struct Feeder {
    pub(crate) rows: Rows,
    pub(crate) pick: Pick,
}

impl Feeder {
    /// The row of one session, an object. `position` tells several feeders of a scenario apart.
    pub(crate) fn row(&self, key: Key, ordinal: u64, position: usize) -> Option<Value> {
        let length = self.rows.len();
        if length == 0 {
            return None;
        }
        self.rows.get(match self.pick {
            Pick::Sequential => (ordinal % length as u64) as usize,
            Pick::Random => key.draws(Purpose::Feeder, position).index(length),
            Pick::Unique => usize::try_from(ordinal).ok()?,
            Pick::Shared => key.of_run().draws(Purpose::Feeder, position).index(length),
        })
    }

    /// No more sessions than this have a row.
    pub(crate) fn session_limit(&self) -> Option<u64> {
        (self.pick == Pick::Unique).then_some(self.rows.len() as u64)
    }
}

/// The rows of one file, all of them sound.
#[derive(Debug)]
pub(crate) struct Rows {
    source: Arc<Source>,
    /// Those of the header of a CSV file, or of the first row of a JSONL file.
    pub(crate) columns: Vec<String>,
    form: Form,
    /// Where in the text each row begins; it ends where it says itself.
    starts: Vec<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Form {
    Csv,
    Jsonl,
}

impl Rows {
    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.starts.len()
    }

    /// A row, an object.
    pub(crate) fn get(&self, index: usize) -> Option<Value> {
        let text = self.source.text.get(*self.starts.get(index)? as usize..)?;
        match self.form {
            Form::Jsonl => serde_json::from_str(text.lines().next()?).ok(),
            Form::Csv => {
                let record = Records { text, at: 0, line: 1 }.next()?.ok()?;
                Some(self.columns.iter().cloned().zip(record.cells.into_iter().map(Value::String)).collect())
            }
        }
    }
}

/// The rows of a file; their columns are those of the first one. Faults are reported at their place in that file.
pub(crate) fn read(path: &Path, text: String, faults: &mut Faults) -> Option<Rows> {
    let source = Arc::new(Source { path: path.to_owned(), text });
    let mut reporter = Reporter { source: source.clone(), faults };
    let (form, read) = match path.extension().and_then(|extension| extension.to_str()) {
        Some("csv") => (Form::Csv, csv(&source.text, &mut reporter)),
        _ => (Form::Jsonl, jsonl(&source.text, &mut reporter)),
    };
    let (columns, starts) = read?;
    if starts.is_empty() {
        reporter.add(Fault::new(Pos::START, "the file has no rows"));
        return None;
    }
    Some(Rows { source, columns, form, starts })
}

impl Rows {
    /// A fault of one row, at its place in the file.
    pub(crate) fn complain(&self, index: usize, what: impl Into<String>, faults: &mut Faults) {
        let start = self.starts.get(index).map_or(0, |start| *start as usize);
        let line = 1 + self.source.text.get(..start).unwrap_or_default().matches('\n').count();
        let mut reporter = Reporter { source: self.source.clone(), faults };
        reporter.add(Fault::new(Pos { line, ..Pos::START }, what));
    }
}

fn too_long(at: Pos) -> Fault {
    Fault::new(at, format!("this row is longer than {MAX_ROW_BYTES} bytes"))
}

/// The columns, and where each row begins.
fn jsonl(text: &str, reporter: &mut Reporter<'_>) -> Option<(Vec<String>, Vec<u32>)> {
    let mut columns: Vec<String> = Vec::new();
    let mut starts = Vec::new();
    let mut sound = true;
    let mut next = 0;
    for (number, line) in text.split_inclusive('\n').enumerate() {
        let start = next;
        next += line.len();
        if line.trim().is_empty() {
            continue;
        }
        let at = |column: usize| Pos { line: number + 1, column: column.max(1), width: 1 };
        let fault = match serde_json::from_str(line.trim_end()) {
            _ if line.len() > MAX_ROW_BYTES => too_long(at(1)),
            Ok(Value::Object(row)) => {
                if starts.is_empty() {
                    columns = row.keys().cloned().collect();
                }
                // MAX_FEEDER_BYTES fits.
                starts.push(start as u32);
                continue;
            }
            Ok(_) => Fault::new(at(1), "a row is a JSON object"),
            Err(error) => Fault::new(at(error.column()), format!("this row is no JSON: {error}")),
        };
        reporter.add(fault);
        sound = false;
    }
    sound.then_some((columns, starts))
}

/// CSV with a header line (RFC 4180): every cell is text. The columns, and where each row begins.
fn csv(text: &str, reporter: &mut Reporter<'_>) -> Option<(Vec<String>, Vec<u32>)> {
    let mut records = Records { text, at: 0, line: 1 };
    let columns = match records.next() {
        Some(Ok(header)) => header.cells,
        Some(Err(fault)) => {
            reporter.add(fault);
            return None;
        }
        None => Vec::new(),
    };
    let mut sound = true;
    let mut seen = BTreeSet::new();
    for column in &columns {
        if !seen.insert(column) {
            reporter.add(Fault::new(Pos::START, format!("two columns are called {}", quoted(column))));
            sound = false;
        }
    }
    let mut starts = Vec::new();
    for record in records {
        match record {
            // MAX_FEEDER_BYTES fits.
            Ok(Record { start, cells, .. }) if cells.len() == columns.len() => starts.push(start as u32),
            Ok(Record { line, cells, .. }) => {
                let what = format!("this row has {} cells, the header has {}", cells.len(), columns.len());
                reporter.add(Fault::new(Pos { line, ..Pos::START }, what));
                sound = false;
            }
            Err(fault) => {
                reporter.add(fault);
                return None;
            }
        }
    }
    sound.then_some((columns, starts))
}

/// One record of a CSV text.
struct Record {
    /// Where it begins, in bytes.
    start: usize,
    /// The line it begins in.
    line: usize,
    cells: Vec<String>,
}

/// Records of a CSV text. Empty lines are skipped.
struct Records<'t> {
    text: &'t str,
    at: usize,
    line: usize,
}

impl Iterator for Records<'_> {
    type Item = Result<Record, Fault>;

    fn next(&mut self) -> Option<Self::Item> {
        while let Some(rest) =
            self.text[self.at..].strip_prefix('\n').or_else(|| self.text[self.at..].strip_prefix("\r\n"))
        {
            self.at = self.text.len() - rest.len();
            self.line += 1;
        }
        if self.at >= self.text.len() {
            return None;
        }
        let (start, line) = (self.at, self.line);
        let mut cells = Vec::new();
        loop {
            match self.cell() {
                Ok(_) if self.at - start > MAX_ROW_BYTES => {
                    self.at = self.text.len();
                    return Some(Err(too_long(Pos { line, ..Pos::START })));
                }
                Ok((cell, more)) => {
                    cells.push(cell);
                    if !more {
                        return Some(Ok(Record { start, line, cells }));
                    }
                }
                Err(what) => {
                    self.at = self.text.len();
                    return Some(Err(Fault::new(Pos { line, ..Pos::START }, what)));
                }
            }
        }
    }
}

impl Records<'_> {
    /// One cell, and whether another follows in this record.
    fn cell(&mut self) -> Result<(String, bool), &'static str> {
        let rest = &self.text[self.at..];
        let (cell, after) = match rest.strip_prefix('"') {
            None => {
                let end = rest.find([',', '\n']).unwrap_or(rest.len());
                (rest[..end].trim_end_matches('\r').to_owned(), end)
            }
            Some(quoted) => {
                let mut cell = String::new();
                let mut at = 0;
                loop {
                    let quote = quoted[at..].find('"').ok_or("a quoted cell of this row is never closed")?;
                    cell.push_str(&quoted[at..at + quote]);
                    at += quote + 1;
                    // Two quotes stand for one.
                    if !quoted[at..].starts_with('"') {
                        break;
                    }
                    cell.push('"');
                    at += 1;
                }
                let tail = &quoted[at..];
                let tail = tail.strip_prefix('\r').unwrap_or(tail);
                if !(tail.is_empty() || tail.starts_with([',', '\n'])) {
                    return Err("a quoted cell of this row goes on behind its quote");
                }
                self.line += cell.matches('\n').count();
                (cell, rest.len() - tail.len())
            }
        };
        self.at += after;
        match self.text[self.at..].chars().next() {
            Some(',') => {
                self.at += 1;
                Ok((cell, true))
            }
            Some(_) => {
                self.at += 1;
                self.line += 1;
                Ok((cell, false))
            }
            None => Ok((cell, false)),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn rows(name: &str, text: &str) -> Result<Vec<Value>, String> {
        let mut faults = Faults::default();
        let read = read(Path::new(name), text.to_owned(), &mut faults);
        let read = read.map(|rows| (0..rows.len()).filter_map(|index| rows.get(index)).collect());
        faults.finish(read).map_err(|error| error.to_string())
    }

    #[test]
    fn csv_cells_may_hold_commas_quotes_and_lines() {
        let text = "name,note\r\nAda,\"a, \"\"b\"\"\nc\"\r\n\r\nBob,\n";
        let wanted = [json!({"name": "Ada", "note": "a, \"b\"\nc"}), json!({"name": "Bob", "note": ""})];
        assert_eq!(rows("a.csv", text).unwrap(), wanted);
        assert_eq!(
            rows("a.csv", "a\n1,").unwrap_err().lines().next(),
            Some("a.csv:2:1: this row has 2 cells, the header has 1")
        );
        assert_eq!(rows("a.csv", "a,b\n1,").unwrap(), [json!({"a": "1", "b": ""})]);
    }

    #[test]
    fn every_bad_row_is_reported_with_its_line() {
        let error = rows("a.csv", "a,b\n1,2\n3\n\n4,5,6\n").unwrap_err();
        assert!(error.contains("a.csv:3:1:") && error.contains("a.csv:5:1:"), "{error}");
        let error = rows("a.jsonl", "{\"a\":1}\n[]\n{\"a\":}\n").unwrap_err();
        assert!(error.contains("a.jsonl:2:1:") && error.contains("a.jsonl:3:6:"), "{error}");
        for broken in ["a\n\"x", "a\n\"x\"y\n", "a,a\n1,2\n", "", "a\n"] {
            assert!(rows("a.csv", broken).is_err(), "{broken:?}");
        }
    }

    #[test]
    fn a_row_is_bounded() {
        let long = "x".repeat(MAX_ROW_BYTES);
        for (name, text) in [
            ("a.csv", format!("a,b\n1,2\n3,{long}\n")),
            ("a.csv", format!("a,b\n1,2\n\"{long}\",3\n")),
            ("a.jsonl", format!("{{}}\n{{}}\n{{\"a\":\"{long}\"}}\n")),
        ] {
            let error = rows(name, &text).unwrap_err();
            assert!(error.contains(":3:1: this row is longer than 65536 bytes"), "{error}");
        }
    }

    #[test]
    fn sequential_rows_follow_the_ordinal_and_random_rows_the_seed() {
        let feeder = |pick| {
            let text = "{\"n\":0}\n\n{\"n\":1}\r\n{\"n\":2}".to_owned();
            Feeder { rows: read(Path::new("a.jsonl"), text, &mut Faults::default()).unwrap(), pick }
        };
        let sequential = feeder(Pick::Sequential);
        let drawn: Vec<_> =
            (0..5).filter_map(|n| sequential.row(Key::new(1, n), n, 0)?["n"].as_i64()).collect();
        assert_eq!(drawn, [0, 1, 2, 0, 1]);
        let random = feeder(Pick::Random);
        let draw = |seed| {
            (0..20).filter_map(|n| random.row(Key::new(seed, n), n, 0)?["n"].as_i64()).collect::<Vec<_>>()
        };
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
        let unique = feeder(Pick::Unique);
        let drawn: Vec<_> = (0..5).map(|n| unique.row(Key::new(1, n), n, 0).is_some()).collect();
        assert_eq!((drawn, unique.session_limit()), (vec![true, true, true, false, false], Some(3)));
        let shared = feeder(Pick::Shared);
        let rows = |seed| (0..20).map(|n| shared.row(Key::new(seed, n), n, 0)).collect::<Vec<_>>();
        assert!((0..20).all(|seed| rows(seed).windows(2).all(|pair| pair[0] == pair[1])));
        assert!((0..20).any(|seed| rows(seed)[0] != rows(0)[0]));
    }
}
