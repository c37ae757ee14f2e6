//! `check`: what a reply must hold for a step to be ok.

use std::cmp::Ordering;
use std::sync::Arc;

use serde_json::Value;

use super::expr::{Env, Template};

/// One entry of `check`: a value of the reply and the tests it must all pass.
#[derive(Debug)]
pub(crate) struct Check {
    pub(crate) name: Arc<str>,
    pub(crate) path: String,
    /// The place of the value among those read from the reply.
    pub(crate) place: usize,
    pub(crate) tests: Vec<(Test, Template)>,
}

/// How a value is compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Test {
    Equals,
    NotEquals,
    Gte,
    Lte,
    Gt,
    Lt,
    Exists,
    LengthGte,
    LengthLte,
    OneOf,
    Contains,
    StartsWith,
    Kind,
}

impl Test {
    pub(crate) const ALL: [Test; 13] = [
        Test::Equals,
        Test::NotEquals,
        Test::Gte,
        Test::Lte,
        Test::Gt,
        Test::Lt,
        Test::Exists,
        Test::LengthGte,
        Test::LengthLte,
        Test::OneOf,
        Test::Contains,
        Test::StartsWith,
        Test::Kind,
    ];

    pub(crate) fn name(self) -> &'static str {
        match self {
            Test::Equals => "equals",
            Test::NotEquals => "not_equals",
            Test::Gte => "gte",
            Test::Lte => "lte",
            Test::Gt => "gt",
            Test::Lt => "lt",
            Test::Exists => "exists",
            Test::LengthGte => "length_gte",
            Test::LengthLte => "length_lte",
            Test::OneOf => "one_of",
            Test::Contains => "contains",
            Test::StartsWith => "starts_with",
            Test::Kind => "type",
        }
    }

    /// Whether a constant makes sense behind this test; what does, if not.
    pub(crate) fn takes(self, constant: &Value) -> Result<(), &'static str> {
        match self {
            Test::Equals | Test::NotEquals | Test::Contains => Ok(()),
            Test::OneOf if constant.as_array().is_some_and(|list| !list.is_empty()) => Ok(()),
            Test::OneOf => Err("a list of values"),
            Test::StartsWith if constant.is_string() => Ok(()),
            Test::StartsWith => Err("a text"),
            Test::Kind if constant.as_str().is_some_and(|kind| KINDS.contains(&kind)) => Ok(()),
            Test::Kind => Err("null, boolean, integer, number, string, array, object"),
            Test::Exists if constant.is_boolean() => Ok(()),
            Test::Exists => Err("true or false"),
            Test::LengthGte | Test::LengthLte if constant.is_u64() => Ok(()),
            Test::LengthGte | Test::LengthLte => Err("a whole number"),
            _ if constant.is_number() || constant.is_string() => Ok(()),
            _ => Err("a number, or a text to compare by its characters"),
        }
    }

    fn holds(self, found: &Value, wanted: &Value) -> bool {
        let ordered =
            |allowed: &[Ordering]| compare(found, wanted).is_some_and(|order| allowed.contains(&order));
        let length = match found {
            Value::Array(list) => Some(list.len() as u64),
            Value::Object(map) => Some(map.len() as u64),
            Value::String(text) => Some(text.chars().count() as u64),
            _ => None,
        };
        match self {
            Test::Equals => same(found, wanted),
            Test::NotEquals => !same(found, wanted),
            Test::Gte => ordered(&[Ordering::Greater, Ordering::Equal]),
            Test::Lte => ordered(&[Ordering::Less, Ordering::Equal]),
            Test::Gt => ordered(&[Ordering::Greater]),
            Test::Lt => ordered(&[Ordering::Less]),
            Test::Exists => wanted.as_bool() == Some(!found.is_null()),
            Test::OneOf => wanted.as_array().is_some_and(|list| list.iter().any(|one| same(found, one))),
            Test::Contains => match (found, wanted) {
                (Value::String(text), Value::String(part)) => text.contains(part.as_str()),
                (Value::Array(list), one) => list.iter().any(|element| same(element, one)),
                (Value::Object(map), Value::String(name)) => map.contains_key(name),
                _ => false,
            },
            Test::StartsWith => {
                found.as_str().zip(wanted.as_str()).is_some_and(|(text, start)| text.starts_with(start))
            }
            Test::Kind => wanted.as_str().is_some_and(|kind| is_kind(found, kind)),
            Test::LengthGte => length.zip(wanted.as_u64()).is_some_and(|(length, wanted)| length >= wanted),
            Test::LengthLte => length.zip(wanted.as_u64()).is_some_and(|(length, wanted)| length <= wanted),
        }
    }
}

/// The kinds of JSON values, as JSON Schema calls them.
const KINDS: [&str; 7] = ["null", "boolean", "integer", "number", "string", "array", "object"];

fn is_kind(value: &Value, kind: &str) -> bool {
    match kind {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => {
            value.is_i64() || value.is_u64() || value.as_f64().is_some_and(|number| number.fract() == 0.0)
        }
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        _ => false,
    }
}

/// A check that a reply did not pass.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("check {name} failed: {what}")]
pub struct CheckFailed {
    /// The check's name: the outcome is `check.<name>`.
    pub name: Arc<str>,
    /// What was found and what was wanted.
    pub what: String,
}

impl Check {
    /// Applies the tests to the value found.
    pub(crate) fn apply<'e>(&'e self, found: &Value, env: &mut Env<'e>) -> Result<(), CheckFailed> {
        for (test, template) in &self.tests {
            let wanted = template.eval(env);
            if !test.holds(found, &wanted) {
                let what =
                    format!("{} is {}, wanted {} {}", self.path, short(found), test.name(), short(&wanted));
                return Err(CheckFailed { name: self.name.clone(), what });
            }
        }
        Ok(())
    }
}

/// JSON in a message: a reply may be large.
fn short(value: &Value) -> String {
    let text = value.to_string();
    if text.chars().count() <= 80 { text } else { text.chars().take(79).chain(['…']).collect() }
}

/// Equality of JSON values in which 20 and 20.0 are one number.
fn same(a: &Value, b: &Value) -> bool {
    match (a, b) {
        (Value::Number(_), Value::Number(_)) => compare(a, b) == Some(Ordering::Equal),
        (Value::Array(a), Value::Array(b)) => a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b)),
        (Value::Object(a), Value::Object(b)) => {
            a.len() == b.len() && a.iter().all(|(name, a)| b.get(name).is_some_and(|b| same(a, b)))
        }
        _ => a == b,
    }
}

/// The order of two numbers, or of two texts by their characters (which for times in UTC is the order in time).
fn compare(a: &Value, b: &Value) -> Option<Ordering> {
    let integer = |value: &Value| value.as_i64().map(i128::from).or_else(|| value.as_u64().map(i128::from));
    match (a, b) {
        (Value::String(a), Value::String(b)) => Some(a.cmp(b)),
        _ => match (integer(a), integer(b)) {
            (Some(a), Some(b)) => Some(a.cmp(&b)),
            _ => a.as_f64()?.partial_cmp(&b.as_f64()?),
        },
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn each_test_holds_where_it_says() {
        let cases = [
            (Test::Equals, json!(20.0), json!(20), true),
            (Test::Equals, json!({"a": [1]}), json!({"a": [1.0]}), true),
            (Test::Equals, json!("20"), json!(20), false),
            (Test::NotEquals, json!(null), json!(1), true),
            (Test::Gte, json!(1), json!(1), true),
            (Test::Gte, json!(null), json!(0), false),
            (Test::Gt, json!(u64::MAX), json!(i64::MAX), true),
            (Test::Lt, json!("2026-01-01T00:00:00Z"), json!("2026-01-02T00:00:00Z"), true),
            (Test::Lte, json!("1"), json!(1), false),
            (Test::Exists, json!(0), json!(true), true),
            (Test::Exists, json!(null), json!(true), false),
            (Test::Exists, json!(null), json!(false), true),
            (Test::LengthGte, json!([1, 2]), json!(2), true),
            (Test::LengthLte, json!("äöü"), json!(3), true),
            (Test::LengthGte, json!(5), json!(0), false),
            (Test::OneOf, json!(2.0), json!([1, 2]), true),
            (Test::OneOf, json!(null), json!([1, 2]), false),
            (Test::Contains, json!("abc"), json!("bc"), true),
            (Test::Contains, json!([1, "a"]), json!(1.0), true),
            (Test::Contains, json!({"a": null}), json!("a"), true),
            (Test::Contains, json!(12), json!(1), false),
            (Test::StartsWith, json!("abc"), json!("ab"), true),
            (Test::StartsWith, json!(["ab"]), json!("ab"), false),
            (Test::Kind, json!(2.0), json!("integer"), true),
            (Test::Kind, json!(2.5), json!("integer"), false),
            (Test::Kind, json!(null), json!("null"), true),
            (Test::Kind, json!([]), json!("object"), false),
        ];
        for (test, found, wanted, holds) in cases {
            assert_eq!(test.holds(&found, &wanted), holds, "{found} {} {wanted}", test.name());
        }
    }
}
