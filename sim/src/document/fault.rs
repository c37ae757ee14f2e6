//! Faults of an input file: where, what, what is allowed, and the nearest right word. All of a file are collected before
//! the user sees any.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Faults kept; the rest are only counted, since nobody reads more.
const MAX_FAULTS: usize = 100;
/// Words that a message lists.
const MAX_LISTED: usize = 20;
/// Characters of a source line that a snippet shows before its mark, and in all.
const SNIPPET_BEFORE: usize = 60;
const SNIPPET_WIDTH: usize = 100;

/// A place in a source text. Lines and columns count from 1, columns and widths in characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Pos {
    /// Line.
    pub line: usize,
    /// Column.
    pub column: usize,
    /// Characters that a snippet marks.
    pub width: usize,
}

impl Pos {
    /// The first character of a text: where a fault of the whole file points.
    pub const START: Pos = Pos { line: 1, column: 1, width: 1 };

    /// The place `offset` characters further on the same line.
    pub fn shifted(self, offset: usize, width: usize) -> Pos {
        Pos { line: self.line, column: self.column + offset, width: width.max(1) }
    }
}

/// A file as read, kept for the snippets of its faults.
#[derive(Debug)]
pub struct Source {
    /// Its path, or what else names it in messages.
    pub path: PathBuf,
    /// Its text.
    pub text: String,
}

/// One thing wrong with an input.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    file: Box<str>,
    at: Option<Pos>,
    what: String,
    snippet: Option<Box<Snippet>>,
    allowed: Option<Box<str>>,
    meant: Option<Box<str>>,
    unreadable: bool,
}

/// A piece of the line with the fault, and what of it to mark.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Snippet {
    line: String,
    /// Characters before the mark.
    before: usize,
    /// Characters marked.
    width: usize,
}

impl Fault {
    /// A fault that points into a text.
    pub fn new(at: Pos, what: impl Into<String>) -> Fault {
        Fault {
            file: Box::default(),
            at: Some(at),
            what: what.into(),
            snippet: None,
            allowed: None,
            meant: None,
            unreadable: false,
        }
    }

    /// A fault of a command-line argument, which has no line.
    pub fn of_argument(argument: &str, what: impl Into<String>) -> Fault {
        Fault { file: clean(argument).into(), at: None, ..Fault::new(Pos::START, what) }
    }

    /// A file that cannot be read at all.
    pub fn unreadable(path: &Path, what: impl Into<String>) -> Fault {
        Fault { unreadable: true, ..Fault::of_argument(&path.display().to_string(), what) }
    }

    /// Adds what would have been right.
    pub fn allowed(mut self, allowed: impl Into<Box<str>>) -> Fault {
        self.allowed = Some(allowed.into());
        self
    }

    /// Adds the allowed words, and the one that was probably meant by `word`.
    pub fn one_of<'a>(self, word: &str, allowed: impl IntoIterator<Item = &'a str>) -> Fault {
        let words: Vec<&str> = allowed.into_iter().collect();
        self.near(word, words.iter().copied()).allowed(listed(&words))
    }

    /// Adds the word that was probably meant, without listing the others.
    pub fn near<'a>(mut self, word: &str, known: impl IntoIterator<Item = &'a str>) -> Fault {
        self.meant = nearest(word, known).map(Box::from);
        self
    }

    /// The line, from 1; `None` for a fault of a file as a whole or of an argument.
    pub fn line(&self) -> Option<usize> {
        self.at.map(|at| at.line)
    }

    /// The column in characters, from 1; `None` as for [`line`](Fault::line).
    pub fn column(&self) -> Option<usize> {
        self.at.map(|at| at.column)
    }

    /// What is wrong, in one sentence.
    pub fn what(&self) -> &str {
        &self.what
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.at {
            Some(at) => write!(f, "{}:{}:{}: {}", self.file, at.line, at.column, self.what)?,
            None => write!(f, "{}: {}", self.file, self.what)?,
        }
        if let (Some(at), Some(snippet)) = (self.at, &self.snippet) {
            let Snippet { line, before, width } = &**snippet;
            let number = at.line.to_string();
            let margin = " ".repeat(number.len());
            write!(f, "\n  {number} | {line}\n  {margin} | {}{}", " ".repeat(*before), "^".repeat(*width))?;
        }
        if let Some(allowed) = &self.allowed {
            write!(f, "\n  allowed: {allowed}")?;
        }
        if let Some(meant) = &self.meant {
            write!(f, "\n  did you mean `{meant}`?")?;
        }
        Ok(())
    }
}

/// Words for a message: as many as a person reads.
pub fn listed(words: &[&str]) -> String {
    match words {
        [] => "(none)".to_owned(),
        words if words.len() <= MAX_LISTED => words.join(", "),
        words => format!("{}, … ({} in all)", words[..MAX_LISTED].join(", "), words.len()),
    }
}

/// Everything wrong with the input files of one command. Its text lists every fault as `file:line:column: what`, with the
/// source line, what is allowed and the nearest right word.
#[derive(Debug, thiserror::Error)]
#[error("{}", self.listing())]
pub struct LoadError {
    faults: Vec<Fault>,
    dropped: usize,
}

impl LoadError {
    /// The faults, by file and place. At most 100; the text says how many more there were.
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// Whether every fault is a file that could not be read: a failure of the run (exit 2) and not of its input (exit 1).
    pub fn unreadable(&self) -> bool {
        self.faults.iter().all(|fault| fault.unreadable)
    }

    fn listing(&self) -> String {
        let mut text = self.faults.iter().map(Fault::to_string).collect::<Vec<_>>().join("\n");
        if self.dropped > 0 {
            text.push_str(&format!("\nand {} more", self.dropped));
        }
        text
    }
}

/// Collects faults. The same step can be read several times (by `include`), so an equal fault counts once.
#[derive(Debug, Default)]
pub struct Faults {
    list: Vec<Fault>,
    dropped: usize,
}

impl Faults {
    /// Adds a fault; past 100 they are only counted.
    pub fn add(&mut self, fault: Fault) {
        if self.list.contains(&fault) {
            return;
        }
        if self.list.len() < MAX_FAULTS {
            self.list.push(fault);
        } else {
            self.dropped += 1;
        }
    }

    /// Whether further faults are only counted: no need to explain them well.
    pub fn is_full(&self) -> bool {
        self.list.len() >= MAX_FAULTS
    }

    /// Faults so far, those only counted included.
    pub fn count(&self) -> usize {
        self.list.len() + self.dropped
    }

    /// Whether nothing was wrong so far.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// `value` if nothing was wrong.
    ///
    /// # Errors
    /// Everything that was.
    pub fn finish<T>(mut self, value: Option<T>) -> Result<T, LoadError> {
        match value {
            Some(value) if self.list.is_empty() => Ok(value),
            _ => {
                self.list.sort_by(|a, b| (&a.file, a.at).cmp(&(&b.file, b.at)));
                Err(LoadError { faults: self.list, dropped: self.dropped })
            }
        }
    }
}

/// Where the faults of one source go: adds the file's name and the snippet.
pub struct Reporter<'f> {
    /// The text that places point into.
    pub source: Arc<Source>,
    /// All faults so far.
    pub faults: &'f mut Faults,
}

impl Reporter<'_> {
    /// Adds a fault of this source.
    pub fn add(&mut self, fault: Fault) {
        // Looking a line up reads the file from its start: not for each of a hundred thousand faults.
        let at = fault.at.filter(|_| !self.faults.is_full());
        let snippet = at.and_then(|at| snippet(&self.source.text, at));
        let file = clean(&self.source.path.display().to_string());
        self.faults.add(Fault { file: file.into(), snippet: snippet.map(Box::new), ..fault });
    }
}

/// The line of `at`, cut to a readable piece.
fn snippet(text: &str, at: Pos) -> Option<Snippet> {
    let line = text.lines().nth(at.line.checked_sub(1)?)?;
    let column = at.column.saturating_sub(1);
    let skipped = column.saturating_sub(SNIPPET_BEFORE);
    let shown: String = line.chars().skip(skipped).take(SNIPPET_WIDTH).collect();
    let length = shown.chars().count();
    let before = (column - skipped).min(length);
    let width = at.width.clamp(1, (length - before).max(1));
    Some(Snippet { line: clean(&shown), before, width })
}

/// `text` without characters that would steer a terminal, one for one so that columns stay true.
fn clean(text: &str) -> String {
    text.chars()
        .map(|c| {
            if c == '\t' {
                ' '
            } else if c.is_control() {
                '\u{fffd}'
            } else {
                c
            }
        })
        .collect()
}

/// `text` between backticks, cut short and without control characters: for quoting input in a message.
pub fn quoted(text: &str) -> String {
    let mut shown: String = clean(&text.replace('\n', " ")).chars().take(60).collect();
    if text.chars().count() > 60 {
        shown.push('…');
    }
    format!("`{shown}`")
}

/// The known word nearest to `word`, if near enough to be a slip of the hand.
fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    if word.len() > 100 {
        return None;
    }
    let lower = word.to_lowercase();
    let limit = (word.chars().count() / 3).max(1);
    known
        .into_iter()
        .filter(|candidate| *candidate != word && candidate.len().abs_diff(word.len()) <= 2 * limit)
        .map(|candidate| (distance(&lower, &candidate.to_lowercase()), candidate))
        .filter(|(distance, _)| *distance <= limit)
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// The number of edits between two words; a swap of neighbours is one (optimal string alignment).
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let change = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = change.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_near_word_is_suggested_and_a_far_one_is_not() {
        assert_eq!(nearest("skil", ["step", "skill"]), Some("skill"));
        assert_eq!(
            nearest("inventory.serach", ["inventory.search", "lead.submit"]),
            Some("inventory.search")
        );
        assert_eq!(nearest("colour", ["step", "think"]), None);
        assert_eq!(distance("ab", "ba"), 1);
    }

    fn shown(text: &str, at: Pos) -> Option<(String, usize, usize)> {
        snippet(text, at).map(|Snippet { line, before, width }| (line, before, width))
    }

    #[test]
    fn a_snippet_marks_the_place_and_cuts_long_lines() {
        let at = Pos { line: 2, column: 3, width: 4 };
        assert_eq!(shown("a\n\tbcdef\u{7}", at), Some((" bcdef\u{fffd}".to_owned(), 2, 4)));
        let long = "x".repeat(5000);
        let (line, before, _) = shown(&long, Pos { line: 1, column: 4000, width: 1 }).unwrap();
        assert_eq!((line.len(), before), (SNIPPET_WIDTH, SNIPPET_BEFORE));
    }

    #[test]
    fn a_fault_past_the_end_of_a_line_still_prints() {
        assert_eq!(shown("ab", Pos { line: 1, column: 9, width: 3 }), Some(("ab".to_owned(), 2, 1)));
        assert_eq!(shown("ab", Pos { line: 9, column: 1, width: 1 }), None);
    }
}
