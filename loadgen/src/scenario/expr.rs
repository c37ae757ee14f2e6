//! Compiled expressions: names resolved to slots, arguments checked, ready to be evaluated without looking anything up.

use std::borrow::Cow;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::ast::{PathStep, duration};
use super::draw::{Draws, Key, Lognormal, Purpose, exponential};
use super::people;

static NULL: Value = Value::Null;

/// What an expression may look at. Everything random comes from `draws`, all time from `now`.
pub(crate) struct Env<'v> {
    pub(crate) values: &'v [Value],
    pub(crate) draws: Draws,
    pub(crate) now: Timestamp,
    pub(crate) key: KeySource,
}

/// Where the idempotency key of a request comes from, if its step says how to retry: a stream of its own, so that the
/// key moves no other draw.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct KeySource {
    /// The session, the step's position and the round of its loops.
    pub(crate) place: Option<(Key, usize, u32)>,
    /// The attempt, where each has a key of its own; else 0.
    pub(crate) attempt: u32,
}

impl KeySource {
    /// A key that is this run's own: the seed repeats the draw in every run, and a dealer remembers keys for a day.
    fn draw(self, now: Timestamp) -> Value {
        let Some((key, position, round)) = self.place else { return Value::Null };
        // Positions stay below 2^20, attempts below 2^7.
        let position = position | (self.attempt as usize) << 20;
        let uuid = people::uuid(&mut key.draws_in(Purpose::IdempotencyKey, position, round));
        Value::String(format!("{uuid} {}", people::timestamp(now)))
    }
}

/// An expression whose result is a JSON value.
#[derive(Debug, Clone)]
pub(crate) enum Expr {
    Const(Value),
    Slot {
        slot: usize,
        path: Box<[PathStep]>,
    },
    Uniform(Box<Expr>, Box<Expr>),
    Lognormal {
        law: Lognormal,
        integer: bool,
    },
    Pick(Box<[Expr]>),
    Int(Box<Expr>),
    Uuid,
    Now(Option<Offset>),
    Buyer {
        prefers: &'static str,
    },
    Consent {
        channels: Box<[&'static str]>,
    },
    Made(Made),
    /// The request's own idempotency key, or one that is drawn for it if it has none or each attempt has a fresh one.
    IdempotencyKey(Option<Box<Template>>),
}

/// A text made from nothing but draws.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Made {
    Vin,
    FirstName,
    LastName,
    Email,
    Phone,
}

/// A shift of `now()`.
#[derive(Debug, Clone)]
pub(crate) struct Offset {
    pub(crate) length: Pause,
    pub(crate) negative: bool,
}

/// An expression whose result is a length of time.
#[derive(Debug, Clone)]
pub(crate) enum Pause {
    Fixed(Duration),
    Uniform(Duration, Duration),
    /// Of nanoseconds.
    Lognormal(Lognormal),
    /// With this mean, in nanoseconds.
    Exponential(f64),
    /// What a name holds: a number of milliseconds or a text such as `1.5s`; nothing if it holds neither.
    Slot {
        slot: usize,
        path: Box<[PathStep]>,
    },
}

/// The longest time that a pause draws: the tail of a lognormal has no end, a run has.
const MAX_PAUSE: Duration = Duration::from_secs(24 * 3600);

impl Pause {
    pub(crate) fn draw(&self, values: &[Value], draws: &mut Draws) -> Duration {
        // The cast saturates. Whole microseconds: what the last bits of a float say is no part of a plan.
        let micros = |nanos: f64| Duration::from_micros((nanos / 1e3) as u64).min(MAX_PAUSE);
        match self {
            Pause::Fixed(length) => *length,
            Pause::Uniform(low, high) => draws.duration(*low, *high),
            Pause::Lognormal(law) => micros(law.draw(draws)),
            Pause::Exponential(mean) => micros(exponential(*mean, draws)),
            Pause::Slot { slot, path } => {
                let value = values.get(*slot).map_or(&NULL, |value| follow(value, path));
                pause_of_value(value).unwrap_or_default().min(MAX_PAUSE)
            }
        }
    }
}

/// The length of time that a value stands for: a number of milliseconds, or a text with its unit.
pub(crate) fn pause_of_value(value: &Value) -> Option<Duration> {
    match value {
        Value::Number(number) => {
            let millis = number.as_f64().filter(|millis| *millis >= 0.0)?;
            Some(Duration::from_micros((millis * 1e3) as u64))
        }
        Value::String(text) => duration(text),
        _ => None,
    }
}

impl Expr {
    pub(crate) fn eval<'e>(&'e self, env: &mut Env<'e>) -> Cow<'e, Value> {
        match self {
            Expr::Const(value) => Cow::Borrowed(value),
            Expr::Slot { slot, path } => {
                Cow::Borrowed(env.values.get(*slot).map_or(&NULL, |value| follow(value, path)))
            }
            Expr::Uniform(low, high) => {
                let (low, high) = (low.eval(env), high.eval(env));
                Cow::Owned(uniform(&low, &high, &mut env.draws))
            }
            Expr::Lognormal { law, integer } => {
                let drawn = law.draw(&mut env.draws);
                Cow::Owned(if *integer { Value::from(drawn.round() as i64) } else { Value::from(drawn) })
            }
            Expr::Pick(choices) => pick(choices, env),
            Expr::Int(inner) => Cow::Owned(to_integer(&inner.eval(env))),
            Expr::Uuid => text(people::uuid(&mut env.draws)),
            Expr::Now(offset) => text(people::timestamp(shifted(env, offset.as_ref()))),
            Expr::Buyer { prefers } => Cow::Owned(people::buyer(prefers, &mut env.draws)),
            Expr::Consent { channels } => Cow::Owned(people::consent(channels, env.now, &mut env.draws)),
            Expr::Made(made) => text(match made {
                Made::Vin => people::vin(&mut env.draws),
                Made::FirstName => people::first_name(&mut env.draws),
                Made::LastName => people::last_name(&mut env.draws),
                Made::Email => people::email(&mut env.draws),
                Made::Phone => people::phone(&mut env.draws),
            }),
            Expr::IdempotencyKey(Some(own)) if env.key.attempt == 0 => own.eval(env),
            Expr::IdempotencyKey(_) => Cow::Owned(env.key.draw(env.now)),
        }
    }
}

fn text(text: String) -> Cow<'static, Value> {
    Cow::Owned(Value::String(text))
}

/// The value at the end of a path; null where the path leads nowhere.
pub(crate) fn follow<'v>(value: &'v Value, path: &[PathStep]) -> &'v Value {
    path.iter().fold(value, |value, step| {
        match step {
            PathStep::Member(name) => value.get(name),
            PathStep::Index(index) => value.get(index),
        }
        .unwrap_or(&NULL)
    })
}

/// Both bounds integers: an integer, both included. Both numbers: a fraction between them. Else null.
fn uniform(low: &Value, high: &Value, draws: &mut Draws) -> Value {
    match (low.as_i64(), high.as_i64(), low.as_f64(), high.as_f64()) {
        (Some(low), Some(high), ..) => Value::from(draws.integer(low, high)),
        (.., Some(low), Some(high)) => Value::from(low + (high - low) * draws.fraction()),
        _ => Value::Null,
    }
}

/// One of several choices, or an element of the one choice if that is a list.
fn pick<'e>(choices: &'e [Expr], env: &mut Env<'e>) -> Cow<'e, Value> {
    let [only] = choices else {
        let index = env.draws.index(choices.len());
        return choices.get(index).map_or(Cow::Borrowed(&NULL), |choice| choice.eval(env));
    };
    match only.eval(env) {
        Cow::Borrowed(Value::Array(list)) => {
            let index = env.draws.index(list.len());
            Cow::Borrowed(list.get(index).unwrap_or(&NULL))
        }
        Cow::Owned(Value::Array(mut list)) => {
            let index = env.draws.index(list.len());
            Cow::Owned(if index < list.len() { list.swap_remove(index) } else { Value::Null })
        }
        other => other,
    }
}

/// An integer from a number (fraction cut off) or from text that is one; else null.
fn to_integer(value: &Value) -> Value {
    let cut = |float: f64| {
        // Beyond 2^53 a float no longer names one integer.
        (float.abs() < 9_007_199_254_740_992.0).then_some(float as i64)
    };
    match value {
        Value::Number(number) if number.is_f64() => number.as_f64().and_then(cut).into(),
        Value::Number(_) => value.clone(),
        Value::String(text) => {
            let text = text.trim();
            text.parse::<i64>().ok().or_else(|| text.parse::<f64>().ok().and_then(cut)).into()
        }
        _ => Value::Null,
    }
}

fn shifted(env: &mut Env<'_>, offset: Option<&Offset>) -> Timestamp {
    let now = env.now;
    let Some(Offset { length, negative }) = offset else { return now };
    let length = length.draw(env.values, &mut env.draws);
    if *negative { now.saturating_sub(length) } else { now.saturating_add(length) }.unwrap_or(now)
}

/// Whether a `when` lets its step run: not on null, false, "" and 0.
pub(crate) fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(value) => *value,
        Value::String(text) => !text.is_empty(),
        Value::Number(number) => number.as_f64() != Some(0.0),
        Value::Array(_) | Value::Object(_) => true,
    }
}

/// Appends a value inside other text: text as it is, null as nothing, the rest as JSON.
pub(crate) fn append_text(value: &Value, out: &mut String) {
    match value {
        Value::Null => {}
        Value::String(text) => out.push_str(text),
        other => out.push_str(&other.to_string()),
    }
}

/// A template: a value with expressions in it, as written in a scenario.
#[derive(Debug, Clone)]
pub(crate) enum Template {
    Const(Value),
    Expr(Expr),
    Text(Box<[TextPiece]>),
    List(Vec<Template>),
    /// Members in the order written: that is the order in which they are sent.
    Map(Vec<(String, Template)>),
}

#[derive(Debug, Clone)]
pub(crate) enum TextPiece {
    Literal(String),
    Expr(Expr),
}

impl Template {
    /// The value, if nothing in it changes.
    pub(crate) fn constant(&self) -> Option<Value> {
        match self {
            Template::Const(value) => Some(value.clone()),
            Template::List(items) => items.iter().map(Template::constant).collect(),
            Template::Map(members) => {
                members.iter().map(|(name, member)| Some((name.clone(), member.constant()?))).collect()
            }
            Template::Expr(_) | Template::Text(_) => None,
        }
    }

    /// The value. A member or element that is exactly one `${…}` with nothing in it is left out, see
    /// [`Step::render`](super::Step::render).
    pub(crate) fn eval<'e>(&'e self, env: &mut Env<'e>) -> Cow<'e, Value> {
        match self {
            Template::Const(value) => Cow::Borrowed(value),
            Template::Expr(expr) => expr.eval(env),
            Template::Text(pieces) => text(join(pieces, env)),
            Template::List(items) => {
                let kept = items.iter().filter_map(|item| item.eval_present(env)).collect();
                Cow::Owned(Value::Array(kept))
            }
            Template::Map(members) => {
                let mut map = Map::new();
                for (name, member) in members {
                    if let Some(value) = member.eval_present(env) {
                        map.insert(name.clone(), value);
                    }
                }
                Cow::Owned(Value::Object(map))
            }
        }
    }

    fn eval_present<'e>(&'e self, env: &mut Env<'e>) -> Option<Value> {
        let value = self.eval(env);
        let absent = matches!(self, Template::Expr(_)) && value.is_null();
        (!absent).then(|| value.into_owned())
    }
}

/// The text of a template that mixes literals and expressions.
pub(crate) fn join<'e>(pieces: &'e [TextPiece], env: &mut Env<'e>) -> String {
    let mut text = String::new();
    for piece in pieces {
        match piece {
            TextPiece::Literal(literal) => text.push_str(literal),
            TextPiece::Expr(expr) => append_text(&expr.eval(env), &mut text),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn integers_come_from_texts_and_floats_and_from_nothing_else() {
        for (from, to) in [
            (json!("20000"), json!(20000)),
            (json!(" 12.9 "), json!(12)),
            (json!(7.5), json!(7)),
            (json!(18_446_744_073_709_551_615_u64), json!(18_446_744_073_709_551_615_u64)),
            (json!("x"), json!(null)),
            (json!(1e300), json!(null)),
            (json!(true), json!(null)),
        ] {
            assert_eq!(to_integer(&from), to, "{from}");
        }
    }

    #[test]
    fn when_is_false_on_four_values_only() {
        for value in [json!(null), json!(false), json!(""), json!(0), json!(0.0)] {
            assert!(!is_true(&value), "{value}");
        }
        for value in [json!(true), json!("0"), json!(-1), json!([]), json!({})] {
            assert!(is_true(&value), "{value}");
        }
    }

    #[test]
    fn a_uniform_draw_keeps_the_kind_of_its_bounds() {
        let mut draws = Key::new(1, 1).draws(Purpose::Item, 0);
        assert!(uniform(&json!(1), &json!(3), &mut draws).is_i64());
        let fraction = uniform(&json!(1), &json!(1.5), &mut draws).as_f64().unwrap();
        assert!((1.0..=1.5).contains(&fraction));
        assert!(uniform(&json!("a"), &json!(1), &mut draws).is_null());
    }

    #[test]
    fn a_pause_may_come_from_a_name() {
        let values = [json!({"a": 12.5, "b": "1.5s", "c": true, "d": -1})];
        let mut draws = Key::new(1, 1).draws(Purpose::Item, 0);
        for (member, millis) in [("a", 12.5), ("b", 1500.0), ("c", 0.0), ("d", 0.0), ("e", 0.0)] {
            let pause = Pause::Slot { slot: 0, path: Box::new([PathStep::Member(member.to_owned())]) };
            assert_eq!(
                pause.draw(&values, &mut draws),
                Duration::from_micros((millis * 1e3) as u64),
                "{member}"
            );
        }
    }

    #[test]
    fn a_pause_never_exceeds_a_day() {
        let law = Lognormal::new(1e9, 1e30).unwrap();
        let longest = (0..1000)
            .map(|ordinal| Pause::Lognormal(law).draw(&[], &mut Key::new(1, ordinal).draws(Purpose::Item, 0)))
            .max();
        assert_eq!(longest, Some(MAX_PAUSE));
    }
}
