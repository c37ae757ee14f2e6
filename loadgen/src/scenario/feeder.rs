//! Feeders: rows of a CSV or JSONL file, one for each session.

use std::collections::BTreeSet;
use std::path::Path;
use std::sync::Arc;

use serde_json::{Map, Value};

use super::draw::{Key, Purpose};
use super::fault::{Fault, Faults, Pos, Reporter, Source, quoted};

/// Bytes of a feeder file; it is held in memory.
pub(crate) const MAX_FEEDER_BYTES: u64 = 16 << 20;

/// Which row a session gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Pick {
    /// Row n for session n, from the start again after the last one.
    Sequential,
    /// Any row, drawn for each session.
    Random,
}

/// The rows of one file.
#[derive(Debug)]
pub(crate) struct Feeder {
    pub(crate) rows: Vec<Value>,
    pub(crate) pick: Pick,
}

impl Feeder {
    /// The row of one session. `position` tells several feeders of a scenario apart.
    pub(crate) fn row(&self, key: Key, ordinal: u64, position: usize) -> Option<&Value> {
        let length = self.rows.len();
        if length == 0 {
            return None;
        }
        self.rows.get(match self.pick {
            Pick::Sequential => (ordinal % length as u64) as usize,
            Pick::Random => key.draws(Purpose::Feeder, position).index(length),
        })
    }
}

/// The columns of a file and its rows, each an object. Faults are reported at their place in that file.
pub(crate) fn read(path: &Path, text: String, faults: &mut Faults) -> Option<(Vec<String>, Vec<Value>)> {
    let source = Arc::new(Source { path: path.to_owned(), text });
    let mut reporter = Reporter { source: source.clone(), faults };
    let read = match path.extension().and_then(|extension| extension.to_str()) {
        Some("csv") => csv(&source.text, &mut reporter),
        _ => jsonl(&source.text, &mut reporter),
    };
    let (columns, rows) = read?;
    if rows.is_empty() {
        reporter.add(Fault::new(Pos::START, "the file has no rows"));
        return None;
    }
    Some((columns, rows))
}

fn jsonl(text: &str, reporter: &mut Reporter<'_>) -> Option<(Vec<String>, Vec<Value>)> {
    let mut columns: Vec<String> = Vec::new();
    let mut rows = Vec::new();
    let mut sound = true;
    for (number, line) in text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty()) {
        let at = |column: usize| Pos { line: number + 1, column: column.max(1), width: 1 };
        let fault = match serde_json::from_str(line) {
            Ok(Value::Object(row)) => {
                if rows.is_empty() {
                    columns = row.keys().cloned().collect();
                }
                rows.push(Value::Object(row));
                continue;
            }
            Ok(_) => Fault::new(at(1), "a row is a JSON object"),
            Err(error) => Fault::new(at(error.column()), format!("this row is no JSON: {error}")),
        };
        reporter.add(fault);
        sound = false;
    }
    sound.then_some((columns, rows))
}

/// CSV with a header line (RFC 4180): every cell is text.
fn csv(text: &str, reporter: &mut Reporter<'_>) -> Option<(Vec<String>, Vec<Value>)> {
    let mut records = Records { text, at: 0, line: 1 };
    let columns = match records.next() {
        Some(Ok((_, header))) => header,
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
    let mut rows = Vec::new();
    for record in records {
        match record {
            Ok((_, cells)) if cells.len() == columns.len() => {
                let cells = cells.into_iter().map(Value::String);
                rows.push(Value::Object(columns.iter().cloned().zip(cells).collect::<Map<_, _>>()));
            }
            Ok((line, cells)) => {
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
    sound.then_some((columns, rows))
}

/// Records of a CSV text: the line each begins in, and its cells. Empty lines are skipped.
struct Records<'t> {
    text: &'t str,
    at: usize,
    line: usize,
}

impl Iterator for Records<'_> {
    type Item = Result<(usize, Vec<String>), Fault>;

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
        let line = self.line;
        let mut cells = Vec::new();
        loop {
            match self.cell() {
                Ok((cell, more)) => {
                    cells.push(cell);
                    if !more {
                        return Some(Ok((line, cells)));
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
        let read = read(Path::new(name), text.to_owned(), &mut faults).map(|(_, rows)| rows);
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
    fn sequential_rows_follow_the_ordinal_and_random_rows_the_seed() {
        let rows: Vec<Value> = (0..3).map(Value::from).collect();
        let sequential = Feeder { rows: rows.clone(), pick: Pick::Sequential };
        let drawn: Vec<_> = (0..5).filter_map(|n| sequential.row(Key::new(1, n), n, 0)?.as_i64()).collect();
        assert_eq!(drawn, [0, 1, 2, 0, 1]);
        let random = Feeder { rows, pick: Pick::Random };
        let draw =
            |seed| (0..20).filter_map(|n| random.row(Key::new(seed, n), n, 0)?.as_i64()).collect::<Vec<_>>();
        assert_eq!(draw(1), draw(1));
        assert_ne!(draw(1), draw(2));
    }
}
