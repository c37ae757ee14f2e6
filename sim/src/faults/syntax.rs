//! The grammar of effects, without their meaning:
//!
//! ```text
//! action   = call | "sequence" "(" [ "per" "=" word "," ] "[" element { "," element } [ "," ] "]" ")"
//! element  = ( "ok" | call ) [ "*" count ] [ "..." ]          "..." at the last element alone: it repeats for ever
//! call     = name [ "(" [ argument { "," argument } ] ")" ]
//! argument = [ name "=" ] value
//! value    = JSON string | characters other than white space and , ( ) [ ] = " ;
//! ```

use crate::document::{Fault, Pos};

/// Characters of a text.
const MAX_TEXT: usize = 4096;
/// Elements of a sequence.
const MAX_ELEMENTS: usize = 1000;
/// Repetitions of an element.
const MAX_TIMES: u64 = 1_000_000;

/// Why a text is not in the grammar, at which character.
#[derive(Debug)]
pub(super) struct Slip {
    at: usize,
    what: String,
}

impl Slip {
    pub(super) fn fault(self, place: &dyn Fn(usize, usize) -> Pos) -> Fault {
        Fault::new(place(self.at, 1), self.what)
            .allowed("effect, effect(name=value, …) or sequence(per=…, [ok*2, effect, ok...])")
    }
}

/// A word or value, and where it stands.
#[derive(Debug)]
pub(super) struct Value {
    pub(super) text: String,
    pub(super) at: usize,
}

#[derive(Debug)]
pub(super) struct Argument {
    pub(super) name: Option<Value>,
    pub(super) value: Value,
}

impl Argument {
    /// Where it begins.
    pub(super) fn at(&self) -> usize {
        self.name.as_ref().map_or(self.value.at, |name| name.at)
    }

    /// What it begins with.
    pub(super) fn first(&self) -> &str {
        self.name.as_ref().map_or(&self.value.text, |name| &name.text)
    }
}

#[derive(Debug)]
pub(super) struct CallText {
    pub(super) name: String,
    pub(super) at: usize,
    pub(super) arguments: Vec<Argument>,
}

#[derive(Debug)]
pub(super) struct ElementText {
    /// `None` is `ok`.
    pub(super) call: Option<CallText>,
    pub(super) times: u64,
    pub(super) repeats: bool,
}

#[derive(Debug)]
pub(super) enum ActionText {
    Call(CallText),
    Sequence { per: Option<Value>, elements: Vec<ElementText> },
}

/// Reads what a rule does.
pub(super) fn action(text: &str) -> Result<ActionText, Slip> {
    let mut reader = Reader::new(text)?;
    let name = reader.name()?;
    let action =
        if name.text == "sequence" { reader.sequence()? } else { ActionText::Call(reader.call(name)?) };
    reader.end()?;
    Ok(action)
}

/// Reads one call or more, with `;` between them.
pub(super) fn calls(text: &str) -> Result<Vec<CallText>, Slip> {
    let mut reader = Reader::new(text)?;
    let mut calls = Vec::new();
    loop {
        let name = reader.name()?;
        if name.text == "sequence" {
            let what = "a sequence needs a rule that counts: it stands in a plan alone";
            return Err(Slip { at: name.at, what: what.to_owned() });
        }
        calls.push(reader.call(name)?);
        if !reader.take(';') {
            reader.end()?;
            return Ok(calls);
        }
    }
}

/// The value that a text is, quotes undone.
pub(super) fn written(text: &str) -> Option<String> {
    let mut reader = Reader::new(text).ok()?;
    let value = reader.value().ok()?;
    reader.end().ok()?;
    Some(value.text)
}

/// A text as a value is written: bare where it can be, else as a JSON string in ASCII.
pub(super) fn spelled(text: &str) -> String {
    if !text.is_empty() && text.chars().all(|c| c.is_ascii_graphic() && is_bare(c)) {
        return text.to_owned();
    }
    let mut out = String::from("\"");
    for unit in text.encode_utf16() {
        match u8::try_from(unit).ok().map(char::from) {
            Some(c @ ('"' | '\\')) => out.extend(['\\', c]),
            Some(c) if c.is_ascii_graphic() || c == ' ' => out.push(c),
            _ => out.push_str(&format!("\\u{unit:04x}")),
        }
    }
    out.push('"');
    out
}

fn is_bare(c: char) -> bool {
    !c.is_whitespace() && !matches!(c, ',' | '(' | ')' | '[' | ']' | '=' | '"' | ';')
}

struct Reader {
    chars: Vec<char>,
    at: usize,
}

impl Reader {
    fn new(text: &str) -> Result<Reader, Slip> {
        let chars: Vec<char> = text.chars().take(MAX_TEXT + 1).collect();
        if chars.len() > MAX_TEXT {
            return Err(Slip {
                at: MAX_TEXT,
                what: format!("an effect is longer than {MAX_TEXT} characters"),
            });
        }
        Ok(Reader { chars, at: 0 })
    }

    fn peek(&mut self) -> Option<char> {
        while self.chars.get(self.at).is_some_and(|c| c.is_whitespace()) {
            self.at += 1;
        }
        self.chars.get(self.at).copied()
    }

    fn take(&mut self, wanted: char) -> bool {
        let found = self.peek() == Some(wanted);
        self.at += usize::from(found);
        found
    }

    fn slip(&mut self, wanted: &str) -> Slip {
        let what = match self.peek() {
            Some(c) => format!("{wanted} is expected here, not {c:?}"),
            None => format!("{wanted} is expected at the end"),
        };
        Slip { at: self.at, what }
    }

    fn need(&mut self, wanted: char) -> Result<(), Slip> {
        if self.take(wanted) { Ok(()) } else { Err(self.slip(&format!("`{wanted}`"))) }
    }

    fn end(&mut self) -> Result<(), Slip> {
        if self.peek().is_none() { Ok(()) } else { Err(self.slip("the end of the effect")) }
    }

    fn name(&mut self) -> Result<Value, Slip> {
        self.peek();
        let word = self.run(|c| c.is_ascii_alphanumeric() || c == '_' || c == '-');
        if word.text.is_empty() { Err(self.slip("the name of an effect")) } else { Ok(word) }
    }

    fn run(&mut self, part: impl Fn(char) -> bool) -> Value {
        let at = self.at;
        while self.chars.get(self.at).is_some_and(|c| part(*c)) {
            self.at += 1;
        }
        Value { text: self.chars[at..self.at].iter().collect(), at }
    }

    fn call(&mut self, name: Value) -> Result<CallText, Slip> {
        let mut arguments = Vec::new();
        if self.take('(') {
            while !self.take(')') {
                if !arguments.is_empty() {
                    self.need(',')?;
                }
                arguments.push(self.argument()?);
            }
        }
        Ok(CallText { name: name.text, at: name.at, arguments })
    }

    fn argument(&mut self) -> Result<Argument, Slip> {
        let first = self.value()?;
        if !self.take('=') {
            return Ok(Argument { name: None, value: first });
        }
        Ok(Argument { name: Some(first), value: self.value()? })
    }

    fn value(&mut self) -> Result<Value, Slip> {
        if self.peek() == Some('"') {
            return self.quoted();
        }
        let value = self.run(is_bare);
        if value.text.is_empty() { Err(self.slip("a value")) } else { Ok(value) }
    }

    fn quoted(&mut self) -> Result<Value, Slip> {
        let at = self.at;
        self.at += 1;
        loop {
            match self.chars.get(self.at) {
                None => return Err(Slip { at, what: "the quotes are not closed".to_owned() }),
                Some('"') => break,
                Some('\\') => self.at += 2,
                Some(_) => self.at += 1,
            }
        }
        self.at += 1;
        let written: String = self.chars[at..self.at].iter().collect();
        match serde_json::from_str(&written) {
            Ok(text) => Ok(Value { text, at }),
            Err(_) => Err(Slip { at, what: "this is no JSON string".to_owned() }),
        }
    }

    fn sequence(&mut self) -> Result<ActionText, Slip> {
        self.need('(')?;
        let mut per = None;
        if self.peek() != Some('[') {
            let name = self.name()?;
            if name.text != "per" {
                return Err(Slip {
                    at: name.at,
                    what: "a sequence has `per=…` and a list in [ ]".to_owned(),
                });
            }
            self.need('=')?;
            per = Some(self.value()?);
            self.need(',')?;
        }
        self.need('[')?;
        let mut elements: Vec<ElementText> = Vec::new();
        while !self.take(']') {
            if !elements.is_empty() {
                self.need(',')?;
                if self.take(']') {
                    break;
                }
            }
            self.peek();
            let at = self.at;
            if elements.last().is_some_and(|element| element.repeats) {
                return Err(Slip { at, what: "nothing can follow what repeats for ever".to_owned() });
            }
            if elements.len() == MAX_ELEMENTS {
                return Err(Slip { at, what: format!("a sequence has more than {MAX_ELEMENTS} elements") });
            }
            elements.push(self.element()?);
        }
        if elements.is_empty() {
            return Err(self.slip("an element before the end of the list"));
        }
        self.need(')')?;
        Ok(ActionText::Sequence { per, elements })
    }

    fn element(&mut self) -> Result<ElementText, Slip> {
        let name = self.name()?;
        let call = if name.text == "ok" { None } else { Some(self.call(name)?) };
        let mut times = 1;
        if self.take('*') {
            self.peek();
            let count = self.run(|c| c.is_ascii_digit());
            times = match count.text.parse() {
                Ok(times) if (1..=MAX_TIMES).contains(&times) => times,
                _ => {
                    let what = format!("`*` takes a whole number from 1 to {MAX_TIMES}");
                    return Err(Slip { at: count.at, what });
                }
            };
        }
        let repeats = self.take('.') && {
            self.need('.')?;
            self.need('.')?;
            true
        };
        Ok(ElementText { call, times, repeats })
    }
}
