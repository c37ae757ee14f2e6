//! Shapes: what a payload may look like, as values. One table of shapes drives the validator ([`super::validate`]) and
//! the published JSON Schemas ([`super::schema`]), so the two cannot say different things about a member.

use super::contract::Features;
use super::format::Format;
use super::json::Value;
use super::json::quick::mark;

/// What one value may be.
#[derive(Debug)]
pub enum Shape {
    /// Exactly this string.
    Const(&'static str),
    /// One of these strings.
    Enum(&'static [&'static str]),
    /// A string of `min..=max` code points that keeps a format.
    Text {
        /// Least length in code points.
        min: usize,
        /// Greatest length in code points.
        max: usize,
        /// Rule on the text.
        format: Format,
    },
    /// A number without fraction, `min..=max`.
    Integer {
        /// Least value.
        min: i64,
        /// Greatest value; `i64::MAX` stands for none.
        max: i64,
    },
    /// Any number, `min..=max`.
    Number {
        /// Least value; `f64::NEG_INFINITY` stands for none.
        min: f64,
        /// Greatest value; `f64::INFINITY` stands for none.
        max: f64,
    },
    /// `true` or `false`.
    Boolean,
    /// The shape, or `null`.
    OrNull(&'static Shape),
    /// An array.
    List {
        /// What each item is.
        items: &'static Shape,
        /// Least number of items.
        min: usize,
        /// Greatest number of items; `usize::MAX` stands for none.
        max: usize,
        /// Whether no two items may be the same JSON value.
        unique: bool,
    },
    /// An object with known members.
    Record(&'static Record),
    /// An object with any members, each of this shape.
    Map(&'static Shape),
    /// A value of `other_attributes`: a string, number or boolean, or an array of strings or of numbers.
    Attribute,
    /// Anything.
    Any,
}

/// An object with known members.
#[derive(Debug)]
pub struct Record {
    /// The members, in the order of the specification.
    pub fields: &'static [Field],
    /// Whether other members are allowed.
    pub open: bool,
    /// Of these members at least one must be present; empty for no such rule.
    pub any_of: &'static [&'static str],
}

/// One member of a [`Record`].
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// The member's name.
    pub name: &'static str,
    /// The name's mark, by which it is told from others.
    mark: u64,
    /// What it may be.
    pub shape: &'static Shape,
    /// Whether it must be present.
    pub required: bool,
    /// Whether a contract knows it; where it does not, the member is as any unknown one.
    pub known: fn(&Features) -> bool,
}

fn always(_: &Features) -> bool {
    true
}

impl Field {
    /// A member that must be present.
    pub const fn required(name: &'static str, shape: &'static Shape) -> Field {
        Field { name, mark: mark(name), shape, required: true, known: always }
    }

    /// A member that may be absent.
    pub const fn optional(name: &'static str, shape: &'static Shape) -> Field {
        Field { name, mark: mark(name), shape, required: false, known: always }
    }

    /// The same member, known only to contracts that have the feature.
    pub const fn only_with(self, known: fn(&Features) -> bool) -> Field {
        Field { known, ..self }
    }
}

impl Record {
    /// The member of this name (as a document has it) that a contract with these features knows.
    pub(super) fn field(&self, name: Value<'_>, features: &Features) -> Option<(usize, &'static Field)> {
        // Contracts may know one name in different shapes; each of them knows at most one of these.
        let index =
            name.position_in(self.fields, |field| (field.name, field.mark), |field| (field.known)(features))?;
        Some((index, &self.fields[index]))
    }
}

/// Any string.
pub const TEXT: Shape = text(0, usize::MAX, Format::Any);
/// An array of any strings.
pub const TEXTS: Shape = list(&TEXT);
/// A whole number from zero.
pub const COUNT: Shape = Shape::Integer { min: 0, max: i64::MAX };
/// A number from zero.
pub const AMOUNT: Shape = Shape::Number { min: 0.0, max: f64::INFINITY };

/// A string of `min..=max` code points that keeps `format`.
pub const fn text(min: usize, max: usize, format: Format) -> Shape {
    Shape::Text { min, max, format }
}

/// A string of any length that keeps `format`.
pub const fn formatted(format: Format) -> Shape {
    text(0, usize::MAX, format)
}

/// An array of any length.
pub const fn list(items: &'static Shape) -> Shape {
    Shape::List { items, min: 0, max: usize::MAX, unique: false }
}
