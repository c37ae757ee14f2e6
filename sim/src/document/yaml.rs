//! A YAML text as a tree whose every key and value knows its place. Built from parser events rather than through serde,
//! so that keys have a place too, a double key is one fault among others, and what is quoted stays text.

use std::collections::HashMap;

use serde_json::{Number, Value};
use serde_saphyr::granit_parser::{Event, Parser, ScalarStyle, Span};

use super::fault::{Fault, Pos, Reporter, quoted};

/// Bytes of the names and values of one document, copies included: few copies of a long text are a bomb too.
const MAX_BYTES: usize = 16 << 20;

/// What a kind of document is held to.
#[derive(Debug, Clone, Copy)]
pub struct Limits {
    /// Nodes of one document, copies by aliases and anchors included: an alias bomb ends here.
    pub nodes: usize,
    /// Nesting of one document; everything after the parser may recurse to this depth.
    pub depth: usize,
    /// What the document is, for the message about an empty one: "a mapping with `name`".
    pub shape: &'static str,
    /// What to write instead of a merge key (`<<`).
    pub instead_of_merge: &'static str,
}

/// One value and its place.
#[derive(Debug, Clone)]
pub struct Node {
    /// Where it stands.
    pub at: Pos,
    /// What it is.
    pub kind: Kind,
}

/// What a value is.
#[derive(Debug, Clone)]
pub enum Kind {
    /// Text, a number, a boolean or nothing.
    Scalar(Scalar),
    /// A list.
    List(Vec<Node>),
    /// Members in the order written; no name stands twice.
    Map(Vec<(Key, Node)>),
}

/// A member's name and its place.
#[derive(Debug, Clone)]
pub struct Key {
    /// The name.
    pub text: String,
    /// Where it stands.
    pub at: Pos,
}

/// A scalar as written.
#[derive(Debug, Clone)]
pub struct Scalar {
    /// The text, quotes and escapes undone.
    pub text: String,
    /// Not quoted: may be a number, a boolean or null.
    plain: bool,
    /// Where character 0 of `text` stands, if it stands in the file as it is (one line, no escapes).
    first: Option<Pos>,
}

impl Node {
    /// The text of a scalar, quoted or not.
    pub fn text(&self) -> Option<&str> {
        match &self.kind {
            Kind::Scalar(scalar) => Some(&scalar.text),
            _ => None,
        }
    }

    /// Whether this is an unquoted null or nothing at all.
    pub fn is_null(&self) -> bool {
        matches!(&self.kind, Kind::Scalar(scalar) if scalar.value() == Ok(Value::Null))
    }

    /// What kind of thing this is, for messages.
    pub fn sort(&self) -> &'static str {
        match &self.kind {
            Kind::List(_) => "a list",
            Kind::Map(_) => "a mapping",
            Kind::Scalar(scalar) => match scalar.value() {
                Ok(Value::Null) => "nothing",
                Ok(Value::Bool(_)) => "true or false",
                Ok(Value::String(_)) => "text",
                _ => "a number",
            },
        }
    }

    /// The place of `width` characters from character `offset` of this scalar's text; the scalar itself where its text
    /// does not stand in the file as it is.
    pub fn within(&self, offset: usize, width: usize) -> Pos {
        match &self.kind {
            Kind::Scalar(Scalar { first: Some(first), .. }) => first.shifted(offset, width),
            _ => self.at,
        }
    }

    fn extent(&self) -> Extent {
        let mut sum = Extent { nodes: 1, bytes: 0, depth: 0 };
        let mut add = |child: &Node| {
            let Extent { nodes, bytes, depth } = child.extent();
            sum.nodes += nodes;
            sum.bytes += bytes;
            sum.depth = sum.depth.max(depth);
        };
        match &self.kind {
            Kind::Scalar(scalar) => sum.bytes += scalar.text.len(),
            Kind::List(items) => items.iter().for_each(add),
            Kind::Map(members) => {
                members.iter().for_each(|(_, node)| add(node));
                sum.bytes += members.iter().map(|(key, _)| key.text.len()).sum::<usize>();
            }
        }
        sum.depth += 1;
        sum
    }
}

/// How much a value takes, everything in it counted.
struct Extent {
    nodes: usize,
    bytes: usize,
    depth: usize,
}

/// A plain number that does not fit: an integer beyond 64 bits would not come out as it went in.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the number does not fit 64 bits")]
pub struct NumberTooLarge;

impl Scalar {
    /// The value, by JSON's rules: quoted is text; plain is null, a boolean or a number where JSON writes it so, else text.
    /// So `94105` is a number, and `"94105"`, `007` and `yes` are texts.
    ///
    /// # Errors
    /// An integer beyond 64 bits.
    pub fn value(&self) -> Result<Value, NumberTooLarge> {
        if self.plain { plain_value(&self.text) } else { Ok(Value::String(self.text.clone())) }
    }
}

/// The value of an unquoted text, see [`Scalar::value`]. Also what `--set name=text` means.
///
/// # Errors
/// An integer beyond 64 bits.
pub fn plain_value(text: &str) -> Result<Value, NumberTooLarge> {
    match text {
        "" | "~" | "null" => return Ok(Value::Null),
        "true" => return Ok(Value::Bool(true)),
        "false" => return Ok(Value::Bool(false)),
        _ => {}
    }
    if !text.starts_with(|c: char| c == '-' || c.is_ascii_digit()) {
        return Ok(Value::String(text.to_owned()));
    }
    match serde_json::from_str::<Number>(text) {
        Ok(number) if number.is_f64() && is_integer(text) => {
            // serde_json reads `-0` as a float, since an integer has no negative zero.
            if text == "-0" { Ok(Value::from(0)) } else { Err(NumberTooLarge) }
        }
        Ok(number) => Ok(Value::Number(number)),
        Err(error) if error.to_string().starts_with("number out of range") => Err(NumberTooLarge),
        Err(_) => Ok(Value::String(text.to_owned())),
    }
}

fn is_integer(text: &str) -> bool {
    text.bytes().all(|b| b.is_ascii_digit() || b == b'-')
}

/// A collection that is still open.
struct Frame {
    at: Pos,
    anchor: usize,
    kind: Open,
}

enum Open {
    List(Vec<Node>),
    /// Members, a key that waits for its value (with whether it is taken: one that was refused takes its value along), and
    /// the line of each key.
    Map {
        members: Vec<(Key, Node)>,
        waiting: Option<(Key, bool)>,
        lines: HashMap<String, usize>,
    },
}

impl Open {
    fn map() -> Open {
        Open::Map { members: Vec::new(), waiting: None, lines: HashMap::new() }
    }
}

/// The tree of `reporter`'s text; `None` when its syntax is broken (reported). Double keys and tags are reported too and
/// leave a tree, so that the faults behind them are found in the same pass.
pub fn parse(limits: &Limits, reporter: &mut Reporter<'_>) -> Option<Node> {
    let source = reporter.source.clone();
    let mut builder = Builder {
        limits: *limits,
        stack: Vec::new(),
        anchors: HashMap::new(),
        nodes: 0,
        bytes: 0,
        root: None,
    };
    for event in Parser::new_from_str(&source.text) {
        let (event, span) = match event {
            Ok(event) => event,
            Err(error) => {
                let mark = error.marker();
                let at = Pos { line: mark.line().max(1), column: mark.col() + 1, width: 1 };
                reporter.add(Fault::new(at, format!("this is not YAML: {}", error.info())));
                return None;
            }
        };
        if let Err(fault) = builder.event(event, span, &source.text, reporter) {
            reporter.add(fault);
            return None;
        }
    }
    if builder.root.is_none() {
        reporter.add(Fault::new(Pos::START, "the file is empty").allowed(limits.shape));
    }
    builder.root
}

struct Builder {
    limits: Limits,
    stack: Vec<Frame>,
    anchors: HashMap<usize, Node>,
    nodes: usize,
    bytes: usize,
    root: Option<Node>,
}

impl Builder {
    /// Takes one event in. An error ends the parse.
    fn event(
        &mut self,
        event: Event<'_>,
        span: Span,
        text: &str,
        reporter: &mut Reporter<'_>,
    ) -> Result<(), Fault> {
        let at = place(&span);
        match event {
            Event::Scalar(value, style, anchor, tag) => {
                refuse_tag(tag.is_some(), at, reporter);
                let first = first_character(&span, text, &value, style);
                let scalar = Scalar { text: value.into_owned(), plain: style == ScalarStyle::Plain, first };
                self.put(Node { at, kind: Kind::Scalar(scalar) }, anchor, reporter)
            }
            Event::SequenceStart(_, anchor, tag) => {
                refuse_tag(tag.is_some(), at, reporter);
                self.open(Frame { at, anchor, kind: Open::List(Vec::new()) })
            }
            Event::MappingStart(_, anchor, tag) => {
                refuse_tag(tag.is_some(), at, reporter);
                self.open(Frame { at, anchor, kind: Open::map() })
            }
            Event::SequenceEnd | Event::MappingEnd => {
                let Some(frame) = self.stack.pop() else { return Ok(()) };
                let kind = match frame.kind {
                    Open::List(items) => Kind::List(items),
                    Open::Map { members, .. } => Kind::Map(members),
                };
                self.put(Node { at: frame.at, kind }, frame.anchor, reporter)
            }
            Event::Alias(id) => {
                let Some(node) = self.anchors.get(&id) else {
                    return Err(Fault::new(at, "this alias stands inside the value that it names"));
                };
                // Counted before it is copied.
                let Extent { nodes, bytes, depth } = node.extent();
                self.count(nodes, bytes, at)?;
                if self.stack.len() + depth > self.limits.depth {
                    return Err(self.too_deep(at));
                }
                let copy = self.anchors.get(&id).map(|node| Node { at, kind: node.kind.clone() });
                copy.map_or(Ok(()), |copy| self.put(copy, 0, reporter))
            }
            Event::DocumentStart(..) if self.root.is_some() => {
                Err(Fault::new(at, "a second document begins here").allowed("one document per file"))
            }
            _ => Ok(()),
        }
    }

    fn count(&mut self, nodes: usize, bytes: usize, at: Pos) -> Result<(), Fault> {
        self.nodes += nodes;
        self.bytes += bytes;
        if self.bytes > MAX_BYTES {
            return Err(Fault::new(
                at,
                format!("the file holds more than {MAX_BYTES} bytes of text, aliases counted"),
            ));
        }
        if self.nodes > self.limits.nodes {
            return Err(Fault::new(
                at,
                format!("the file holds more than {} values, aliases counted", self.limits.nodes),
            ));
        }
        Ok(())
    }

    fn open(&mut self, frame: Frame) -> Result<(), Fault> {
        self.count(1, 0, frame.at)?;
        if self.stack.len() >= self.limits.depth {
            return Err(self.too_deep(frame.at));
        }
        self.stack.push(frame);
        Ok(())
    }

    fn too_deep(&self, at: Pos) -> Fault {
        Fault::new(at, format!("values nest deeper than {} levels", self.limits.depth))
    }

    /// Adds a finished value to the collection that is open.
    fn put(&mut self, node: Node, anchor: usize, reporter: &mut Reporter<'_>) -> Result<(), Fault> {
        self.count(1, 0, node.at)?;
        if anchor != 0 {
            // The copy counts: nested anchors would otherwise grow with the square of the file.
            let Extent { nodes, bytes, .. } = node.extent();
            self.count(nodes, bytes, node.at)?;
            self.anchors.insert(anchor, node.clone());
        }
        match self.stack.last_mut().map(|frame| &mut frame.kind) {
            None => self.root = Some(node),
            Some(Open::List(items)) => items.push(node),
            Some(Open::Map { members, waiting, lines }) => match waiting.take() {
                None => {
                    let accepted = check_key(&node, self.limits.instead_of_merge, lines, reporter);
                    let text = node.text().unwrap_or_default().to_owned();
                    *waiting = Some((Key { text, at: node.at }, accepted));
                }
                Some((key, true)) => members.push((key, node)),
                Some((_, false)) => {}
            },
        }
        Ok(())
    }
}

/// Whether a key can be taken; reports why not.
fn check_key(
    node: &Node,
    instead_of_merge: &'static str,
    lines: &mut HashMap<String, usize>,
    reporter: &mut Reporter<'_>,
) -> bool {
    let Some(text) = node.text() else {
        reporter.add(Fault::new(node.at, format!("a member's name is text, this is {}", node.sort())));
        return false;
    };
    if text == "<<" {
        let what = "merge keys (`<<`) are not read";
        reporter.add(Fault::new(node.at, what).allowed(instead_of_merge));
        return false;
    }
    if let Some(first) = lines.get(text) {
        let what = format!("{} stands twice in this mapping, first in line {first}", quoted(text));
        reporter.add(Fault::new(node.at, what));
        return false;
    }
    lines.insert(text.to_owned(), node.at.line);
    true
}

fn refuse_tag(tagged: bool, at: Pos, reporter: &mut Reporter<'_>) {
    if tagged {
        reporter
            .add(Fault::new(at, "tags (`!…`) are not read").allowed("quotes, where a number is to be text"));
    }
}

fn place(span: &Span) -> Pos {
    let (start, end) = (span.start, span.end);
    let width = if start.line() == end.line() { end.col().saturating_sub(start.col()) } else { 1 };
    // A collection is marked at its first character: its whole width says nothing.
    Pos { line: start.line().max(1), column: start.col() + 1, width: width.max(1) }
}

/// Where a scalar's text starts in the file, if it stands there character for character.
fn first_character(span: &Span, text: &str, value: &str, style: ScalarStyle) -> Option<Pos> {
    let quotes = match style {
        ScalarStyle::Plain => 0,
        ScalarStyle::SingleQuoted | ScalarStyle::DoubleQuoted => 1,
        _ => return None,
    };
    let written = span.slice(text)?.get(quotes..)?;
    let same = written.starts_with(value) && written.len() <= value.len() + quotes && !value.contains('\n');
    same.then(|| place(span).shifted(quotes, 1))
}
