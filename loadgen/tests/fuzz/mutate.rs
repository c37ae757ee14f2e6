//! How inputs are changed.

use rand::RngExt as _;
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};

use super::engine::MOST_BYTES;

/// What an input is, beyond bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Form {
    /// A JSON value: members are moved, doubled, taken away and replaced.
    Json,
    /// Lines of text, such as YAML, TOML or CSV: lines and words are moved, doubled and replaced.
    Text,
}

/// Texts that readers have tripped over before.
const WORDS: [&str; 44] = [
    "",
    "0",
    "-0",
    "-1",
    "1e309",
    "1e-400",
    "18446744073709551616",
    "9223372036854775807",
    "0.1",
    "NaN",
    "true",
    "null",
    "[]",
    "{}",
    "\"\"",
    "\u{feff}",
    "\u{0}",
    "\u{202e}",
    "\u{1F697}",
    "\\u0000",
    "\\ud800",
    "\r\n",
    "\n\n",
    "\t",
    "'",
    "\"",
    "${",
    "${x}",
    "${uniform(0, 1)}",
    "&a",
    "*a",
    "<<: *a",
    "!!binary",
    "---",
    "# ",
    "= ",
    "[[",
    "]]",
    "100%",
    "99999999999999999999s",
    "1970-01-01T00:00:00Z",
    "9999-12-31T23:59:60.999999999+23:59",
    "-9999-01-01T00:00:00Z",
    ",,,",
];

/// Another input, made from one and now and then a second.
pub(crate) fn mutate(one: &[u8], other: &[u8], form: Form, random: &mut ChaCha8Rng) -> Vec<u8> {
    let mut input = one.to_vec();
    for _ in 0..random.random_range(1..=4) {
        let structured = random.random_ratio(3, 4);
        input = match form {
            Form::Json if structured => json_changed(&input, other, random).unwrap_or(input),
            Form::Text if structured => text_changed(&input, other, random),
            _ => bytes_changed(input, other, random),
        };
        // What is doubled often must not outgrow the machine.
        input.truncate(MOST_BYTES);
    }
    input
}

fn range(length: usize, random: &mut ChaCha8Rng) -> std::ops::Range<usize> {
    let from = random.random_range(0..=length);
    let most = if random.random_ratio(7, 8) { 16 } else { length };
    from..(from + random.random_range(0..=most)).min(length)
}

fn bytes_changed(mut input: Vec<u8>, other: &[u8], random: &mut ChaCha8Rng) -> Vec<u8> {
    let at = range(input.len(), random);
    match random.random_range(0..8) {
        0 if !input.is_empty() => {
            let place = random.random_range(0..input.len());
            input[place] ^= 1 << random.random_range(0..8);
        }
        1 if !input.is_empty() => {
            let place = random.random_range(0..input.len());
            input[place] = random.random();
        }
        2 => drop(input.drain(at)),
        3 => {
            let piece = input[at.clone()].to_vec();
            let times = if random.random_ratio(1, 8) { 200 } else { 1 };
            drop(input.splice(at.end..at.end, piece.repeat(times)));
        }
        4 => {
            let piece = other[range(other.len(), random)].to_vec();
            drop(input.splice(at, piece));
        }
        5 => {
            let word = WORDS[random.random_range(0..WORDS.len())];
            drop(input.splice(at.start..at.start, word.bytes()));
        }
        6 => input.truncate(at.start),
        _ => {
            let byte =
                *[b'[', b'{', b'"', b'\\', b',', b' ', b'\n', 0xff].get(random.random_range(0..8)).unwrap();
            let many = if random.random_ratio(1, 8) { 5000 } else { 1 };
            drop(input.splice(at.start..at.start, std::iter::repeat_n(byte, many)));
        }
    }
    input
}

/// Words and lines of a text.
fn text_changed(input: &[u8], other: &[u8], random: &mut ChaCha8Rng) -> Vec<u8> {
    let text = String::from_utf8_lossy(input).into_owned();
    let mut lines: Vec<&str> = text.split_inclusive('\n').collect();
    let other = String::from_utf8_lossy(other).into_owned();
    let others: Vec<&str> = other.split_inclusive('\n').collect();
    let place = random.random_range(0..=lines.len());
    match random.random_range(0..6) {
        0 if !lines.is_empty() => drop(lines.remove(place.min(lines.len() - 1))),
        1 if !lines.is_empty() => {
            let line = lines[random.random_range(0..lines.len())];
            let times = if random.random_ratio(1, 10) { 300 } else { 1 };
            drop(lines.splice(place..place, std::iter::repeat_n(line, times)));
        }
        2 if !others.is_empty() => lines.insert(place, others[random.random_range(0..others.len())]),
        3 if lines.len() > 1 => {
            let (other, last) = (random.random_range(0..lines.len()), lines.len() - 1);
            lines.swap(place.min(last), other);
        }
        _ => {
            // A word becomes one of the other's, or one that has made trouble before.
            let words: Vec<&str> = text.split_inclusive(is_between).collect();
            let others: Vec<&str> = other.split(is_between).filter(|word| !word.is_empty()).collect();
            let Some(at) = (!words.is_empty()).then(|| random.random_range(0..words.len())) else {
                return b"x".to_vec();
            };
            let new = match others.is_empty() || random.random_ratio(1, 2) {
                true => WORDS[random.random_range(0..WORDS.len())],
                false => others[random.random_range(0..others.len())],
            };
            let end: String = words[at].chars().rev().take(1).filter(|c| is_between(*c)).collect();
            let changed: Vec<String> = words
                .iter()
                .enumerate()
                .map(|(n, word)| if n == at { format!("{new}{end}") } else { (*word).to_owned() })
                .collect();
            return changed.concat().into_bytes();
        }
    }
    lines.concat().into_bytes()
}

fn is_between(c: char) -> bool {
    c.is_whitespace() || matches!(c, ',' | ':' | '=' | '[' | ']' | '{' | '}' | '(' | ')' | '"')
}

/// How many values there are in a value, itself among them.
fn count(value: &Value) -> usize {
    1 + match value {
        Value::Array(items) => items.iter().map(count).sum(),
        Value::Object(members) => members.values().map(count).sum(),
        _ => 0,
    }
}

/// The n-th of them.
fn nth(value: &mut Value, n: usize) -> Option<&mut Value> {
    if n == 0 {
        return Some(value);
    }
    let mut left = n - 1;
    let inner: Vec<&mut Value> = match value {
        Value::Array(items) => items.iter_mut().collect(),
        Value::Object(members) => members.values_mut().collect(),
        _ => return None,
    };
    for value in inner {
        let own = count(value);
        if left < own {
            return nth(value, left);
        }
        left -= own;
    }
    None
}

fn some_value(random: &mut ChaCha8Rng) -> Value {
    match random.random_range(0..12) {
        0 => Value::Null,
        1 => json!(random.random::<bool>()),
        2 => json!(random.random_range(-3..3)),
        3 => json!(i64::MAX),
        4 => json!(random.random::<f64>() * 1e6),
        5 => json!(1e300),
        6 => json!([]),
        7 => json!({}),
        8 => json!("x".repeat(random.random_range(0..5000))),
        9 => (0..random.random_range(1..120)).fold(json!(1), |inner, _| json!([inner])),
        10 => json!((0..random.random_range(0..300)).collect::<Vec<_>>()),
        _ => json!(WORDS[random.random_range(0..WORDS.len())]),
    }
}

fn json_changed(input: &[u8], other: &[u8], random: &mut ChaCha8Rng) -> Option<Vec<u8>> {
    let mut value: Value = serde_json::from_slice(input).ok()?;
    let all = count(&value);
    let at = random.random_range(0..all);
    let elsewhere = {
        let mut from = serde_json::from_slice(other).unwrap_or_else(|_| value.clone());
        let all = count(&from);
        nth(&mut from, random.random_range(0..all))?.clone()
    };
    let doubled = nth(&mut value, at)?;
    match (random.random_range(0..6), &mut *doubled) {
        (0, Value::Object(members)) if !members.is_empty() => {
            let name = members.keys().nth(random.random_range(0..members.len()))?.clone();
            members.remove(&name);
        }
        (1, Value::Object(members)) if !members.is_empty() => {
            let name = members.keys().nth(random.random_range(0..members.len()))?.clone();
            let value = members.remove(&name)?;
            let renamed = match random.random_range(0..3) {
                0 => name.to_uppercase(),
                1 => format!("{name}~/"),
                _ => WORDS[random.random_range(0..WORDS.len())].to_owned(),
            };
            members.insert(renamed, value);
        }
        (2, Value::Array(items)) if !items.is_empty() => {
            let one = items[random.random_range(0..items.len())].clone();
            let times = if random.random_ratio(1, 10) { 300 } else { 1 };
            items.extend(std::iter::repeat_n(one, times));
        }
        (3, Value::String(text)) => {
            let changed = bytes_changed(text.clone().into_bytes(), other, random);
            *text = String::from_utf8_lossy(&changed).into_owned();
        }
        (4, place) => *place = elsewhere,
        (_, place) => *place = some_value(random),
    }
    serde_json::to_vec(&value).ok()
}
