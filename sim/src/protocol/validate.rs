//! Holds a payload against its shape and lists every fault at once (seed 000: validation errors list every failing
//! field, so that a buyer agent can mend the whole payload in a single retry).

use std::collections::HashSet;
use std::fmt::Write as _;

use super::contract::Features;
use super::format::Format;
use super::json::{Kind, Value};
use super::shape::{Record, Shape};

/// Faults listed at most; a larger number is counted. A megabyte can hold half a million, whose list would be a hundred
/// times as long.
pub const MAX_FAULTS: usize = 65_536;
/// Characters of a name in a text; the pointer beside it has it whole.
const SHOWN_NAME: usize = 80;

/// One fault of a payload.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Fault {
    /// JSON Pointer (RFC 6901) into the payload. A missing member is reported at its parent, an unknown one at itself.
    pub at: String,
    /// The JSON Schema keyword that is broken.
    pub keyword: &'static str,
    /// What is wrong, in the words that JSON Schema validators use.
    pub error: String,
}

/// All faults of a payload.
#[derive(Debug, Default, Clone, PartialEq, Eq)]
pub struct Faults {
    /// The faults, in document order; at most [`MAX_FAULTS`].
    pub list: Vec<Fault>,
    /// How many more there were.
    pub unlisted: usize,
}

impl Faults {
    /// Whether the payload is valid.
    pub fn is_empty(&self) -> bool {
        self.list.is_empty()
    }

    /// How many faults were found.
    pub fn len(&self) -> usize {
        self.list.len() + self.unlisted
    }

    /// Notes a fault.
    pub fn push(&mut self, at: String, keyword: &'static str, error: String) {
        if self.list.len() < MAX_FAULTS {
            self.list.push(Fault { at, keyword, error });
        } else {
            self.unlisted += 1;
        }
    }
}

/// Where the validator stands; linked to its parents, and made into text only for a fault.
#[derive(Clone, Copy)]
enum Path<'p> {
    Top(&'p str),
    Member(&'p Path<'p>, &'p str),
    Item(&'p Path<'p>, usize),
}

impl Path<'_> {
    fn write(&self, out: &mut String) {
        match self {
            Path::Top(prefix) => out.push_str(prefix),
            Path::Member(parent, name) => {
                parent.write(out);
                out.push('/');
                out.push_str(&name.replace('~', "~0").replace('/', "~1"));
            }
            Path::Item(parent, index) => {
                parent.write(out);
                _ = write!(out, "/{index}");
            }
        }
    }

    fn pointer(&self) -> String {
        let mut out = String::new();
        self.write(&mut out);
        out
    }
}

/// Every fault of `value` against `shape`, under a contract with these features. Pointers start with `prefix`, which is
/// empty for a payload.
pub fn validate(value: Value<'_>, shape: &Shape, features: &Features, prefix: &str) -> Faults {
    let mut run = Run { features, faults: Faults::default() };
    run.check(value, shape, Path::Top(prefix));
    run.faults
}

struct Run<'f> {
    features: &'f Features,
    faults: Faults,
}

impl Run<'_> {
    fn fault(&mut self, at: Path<'_>, keyword: &'static str, error: impl Into<String>) {
        self.faults.push(at.pointer(), keyword, error.into());
    }

    fn wrong_type(&mut self, at: Path<'_>, expected: &str) {
        self.fault(at, "type", format!("must be {expected}"));
    }

    fn check(&mut self, value: Value<'_>, shape: &Shape, at: Path<'_>) {
        match shape {
            Shape::Any => {}
            Shape::OrNull(inner) => {
                if !value.is_null() {
                    let before = self.faults.list.len();
                    self.check(value, inner, at);
                    for fault in &mut self.faults.list[before..] {
                        if fault.keyword == "type" {
                            fault.error.push_str(" or null");
                        }
                    }
                }
            }
            Shape::Const(expected) => {
                if value.as_str() != Some(expected) {
                    self.fault(at, "const", format!("must be equal to {expected:?}"));
                }
            }
            Shape::Enum(words) => match value.as_str() {
                None => self.wrong_type(at, "string"),
                Some(text) if words.contains(&text) => {}
                Some(_) => self.fault(at, "enum", format!("must be one of: {}", words.join(", "))),
            },
            Shape::Text { min, max, format } => match value.as_str() {
                None => self.wrong_type(at, "string"),
                Some(text) => self.check_text(text, *min, *max, *format, at),
            },
            Shape::Integer { min, max } => match value.as_integer() {
                None => self.wrong_type(at, "integer"),
                Some(number) if number < *min => self.fault(at, "minimum", format!("must be >= {min}")),
                Some(number) if number > *max => self.fault(at, "maximum", format!("must be <= {max}")),
                Some(_) => {}
            },
            Shape::Number { min, max } => match value.as_f64() {
                None => self.wrong_type(at, "number"),
                Some(number) if number < *min => self.fault(at, "minimum", format!("must be >= {min}")),
                Some(number) if number > *max => self.fault(at, "maximum", format!("must be <= {max}")),
                Some(_) => {}
            },
            Shape::Boolean => {
                if value.kind() != Kind::Bool {
                    self.wrong_type(at, "boolean");
                }
            }
            Shape::List { items, min, max, unique } => {
                if value.kind() != Kind::List {
                    return self.wrong_type(at, "array");
                }
                let len = value.len();
                if len < *min {
                    self.fault(at, "minItems", format!("must NOT have fewer than {min} items"));
                }
                if len > *max {
                    self.fault(at, "maxItems", format!("must NOT have more than {max} items"));
                }
                if *unique && has_twins(value) {
                    self.fault(at, "uniqueItems", "must NOT have duplicate items");
                }
                for (index, item) in value.items().enumerate() {
                    self.check(item, items, Path::Item(&at, index));
                }
            }
            Shape::Map(members) => {
                if value.kind() != Kind::Record {
                    return self.wrong_type(at, "object");
                }
                for (name, member) in value.members() {
                    self.check(member, members, Path::Member(&at, name));
                }
            }
            Shape::Attribute => {
                if !is_attribute(value) {
                    self.fault(
                        at,
                        "anyOf",
                        "must be a string, a number, a boolean, an array of strings or an array of numbers",
                    );
                }
            }
            Shape::Record(record) => self.check_record(value, record, at),
        }
    }

    fn check_text(&mut self, text: &str, min: usize, max: usize, format: Format, at: Path<'_>) {
        // A text has at least a quarter as many code points as bytes, and at most as many.
        if text.len() < min.saturating_mul(4) && text.chars().count() < min {
            self.fault(at, "minLength", format!("must NOT have fewer than {min} characters"));
        }
        if text.len() > max && text.chars().count() > max {
            self.fault(at, "maxLength", format!("must NOT have more than {max} characters"));
        }
        if !format.holds(text) {
            if let Some(pattern) = format.pattern() {
                self.fault(at, "pattern", format!("must match pattern \"{pattern}\""));
            } else if let Some(name) = format.name() {
                self.fault(at, "format", format!("must match format \"{name}\""));
            }
        }
    }

    fn check_record(&mut self, value: Value<'_>, record: &Record, at: Path<'_>) {
        if value.kind() != Kind::Record {
            return self.wrong_type(at, "object");
        }
        // A record has at most 64 known members (the widest, Vehicle, has 37), so one word marks those present.
        let mut present = 0u64;
        for (named, member) in value.pairs() {
            match record.field(named, self.features) {
                Some((index, field)) => {
                    present |= 1 << index;
                    self.check(member, field.shape, Path::Member(&at, field.name));
                }
                None if record.open => {}
                None => {
                    let name = named.as_str().unwrap_or_default();
                    self.fault(
                        Path::Member(&at, name),
                        "additionalProperties",
                        format!("unknown member \"{}\"", name.chars().take(SHOWN_NAME).collect::<String>()),
                    );
                }
            }
        }
        for (index, field) in record.fields.iter().enumerate() {
            if field.required && present & (1 << index) == 0 && (field.known)(self.features) {
                self.fault(at, "required", format!("must have required property '{}'", field.name));
            }
        }
        if !record.any_of.is_empty() && !record.any_of.iter().any(|name| value.get(name).is_some()) {
            self.fault(at, "anyOf", format!("must have at least one of: {}", record.any_of.join(", ")));
        }
    }
}

fn is_attribute(value: Value<'_>) -> bool {
    match value.kind() {
        Kind::Text | Kind::Number | Kind::Bool => true,
        Kind::List => {
            value.items().all(|item| item.kind() == Kind::Text)
                || value.items().all(|item| item.kind() == Kind::Number)
        }
        Kind::Null | Kind::Record => false,
    }
}

/// Whether two items of an array are the same JSON value.
fn has_twins(array: Value<'_>) -> bool {
    if array.len() < 2 {
        return false;
    }
    let mut seen = HashSet::with_capacity(array.len());
    array.items().any(|item| {
        let mut bytes = Vec::new();
        item.write_canonical(&[], &mut bytes);
        !seen.insert(bytes)
    })
}
