//! Whether an entry is the one meant: the `match` of a verification, and what differs where it is not.

use serde::Serialize;
use serde_json::{Map, Value};

use super::exchange::Outcome;
use super::filter::{binding, names_fault, skill};
use super::{Entry, bounded};
use crate::protocol::call::payload_in;
use crate::protocol::json::Doc;
use crate::protocol::{Binding, Skill};

/// Differences of one entry that are told.
const MAX_DIFFERENCES: usize = 8;

/// What an entry must say; every member that is set must hold. One without members means every entry.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Match {
    /// The dealer's id.
    pub dealer: Option<String>,
    /// The interface that it came through.
    pub binding: Option<Binding>,
    /// The skill.
    pub skill: Option<Skill>,
    /// The JSON-RPC method.
    pub method: Option<String>,
    /// How it was answered.
    pub outcome: Option<Outcome>,
    /// The conversation's `contextId`.
    pub conversation: Option<String>,
    /// The client, written as entries show it.
    pub client: Option<String>,
    /// The request's `messageId`.
    pub message_id: Option<String>,
    /// A trigger or effect of a fault that touched it.
    pub fault: Option<String>,
    /// What the request's payload must contain: objects may have further members, lists must be as long, numbers are
    /// equal by value.
    pub payload: Option<Value>,
}

/// Where an entry says something else.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Difference {
    /// The member; within the payload, the pointer to the value, such as `payload/filters/make`.
    pub member: String,
    /// What was wanted.
    pub wanted: Value,
    /// What stands there; null where nothing does.
    pub got: Value,
}

/// How an entry compares with a match.
#[derive(Debug, Clone, PartialEq, Default)]
pub(super) struct Comparison {
    /// Members that hold.
    pub(super) matched: Vec<&'static str>,
    /// Those that do not.
    pub(super) differs: Vec<Difference>,
    /// Whether the payload was cut, so that what it said is not known.
    pub(super) is_unsure: bool,
}

impl Comparison {
    pub(super) fn holds(&self) -> bool {
        self.differs.is_empty() && !self.is_unsure
    }

    /// Whether nothing that is known speaks against it.
    pub(super) fn may_hold(&self) -> bool {
        self.differs.is_empty()
    }

    fn check(&mut self, member: &'static str, holds: bool, wanted: &str, got: Value) {
        if holds {
            self.matched.push(member);
        } else {
            self.differs.push(Difference { member: member.to_owned(), wanted: wanted.into(), got });
        }
    }
}

const MEMBERS: &str =
    "dealer, binding, skill, method, outcome, conversation, client, message_id, fault, payload";

impl Match {
    /// Reads a match; faults go to `faults`, each with its pointer.
    pub(super) fn read(value: &Value, at: &str, faults: &mut Vec<String>) -> Match {
        let mut wanted = Match::default();
        let Value::Object(members) = value else {
            faults.push(format!("{at}: must be an object with any of {MEMBERS}"));
            return wanted;
        };
        for (name, value) in members {
            if let Err(fault) = wanted.set(name, value) {
                faults.push(format!("{at}/{}: {fault}", escaped(name)));
            }
        }
        wanted
    }

    fn set(&mut self, name: &str, value: &Value) -> Result<(), String> {
        let text = || {
            value
                .as_str()
                .filter(|text| !text.is_empty())
                .ok_or_else(|| "must be a text that is not empty".to_owned())
        };
        let place = match name {
            "payload" => {
                if !value.is_object() {
                    return Err("must be an object: what the request's payload must contain".to_owned());
                }
                self.payload = Some(value.clone());
                return Ok(());
            }
            "binding" => {
                self.binding = Some(binding(text()?)?);
                return Ok(());
            }
            "skill" => {
                self.skill = Some(skill(text()?)?);
                return Ok(());
            }
            "outcome" => {
                self.outcome = Some(Outcome::from_word(text()?).ok_or_else(|| {
                    format!("{value} is no outcome; such are ok, aap.RATE_LIMITED, a2a.-32009, rpc.-32602, http.413")
                })?);
                return Ok(());
            }
            "dealer" => &mut self.dealer,
            "method" => &mut self.method,
            "conversation" => &mut self.conversation,
            "client" => &mut self.client,
            "message_id" => &mut self.message_id,
            "fault" => &mut self.fault,
            _ => return Err(format!("no such member; there are {MEMBERS}")),
        };
        *place = Some(text()?.to_owned());
        Ok(())
    }

    pub(super) fn compare(&self, entry: &Entry) -> Comparison {
        let mut found = Comparison::default();
        let texts = [
            ("dealer", &self.dealer, Some(&entry.dealer)),
            ("method", &self.method, entry.method.as_ref()),
            ("conversation", &self.conversation, entry.conversation.as_ref()),
            ("client", &self.client, Some(&entry.client)),
            ("message_id", &self.message_id, entry.message_id.as_ref()),
        ];
        for (member, wanted, got) in texts {
            if let Some(wanted) = wanted {
                let holds = got.is_some_and(|got| got == wanted || is_cut(wanted, got));
                found.check(member, holds, wanted, got.cloned().into());
            }
        }
        if let Some(binding) = self.binding {
            let got = entry.binding.map(Binding::word).into();
            found.check("binding", entry.binding == Some(binding), binding.word(), got);
        }
        if let Some(skill) = self.skill {
            found.check("skill", entry.skill == Some(skill), skill.id(), entry.skill.map(Skill::id).into());
        }
        if let Some(outcome) = self.outcome {
            found.check("outcome", entry.outcome == outcome, &outcome.word(), entry.outcome.word().into());
        }
        if let Some(fault) = &self.fault {
            let names = |one: &super::Fault| {
                names_fault(fault.as_bytes(), one.trigger.as_bytes(), one.effect.as_bytes())
            };
            let got: Vec<_> = entry.faults.iter().map(|one| Value::from(one.effect.as_str())).collect();
            found.check("fault", entry.faults.iter().any(names), fault, got.into());
        }
        if let Some(wanted) = &self.payload {
            compare_payload(wanted, entry, &mut found);
        }
        found
    }
}

/// Whether a text is the beginning of a longer one, cut where the journal cuts texts.
fn is_cut(wanted: &str, got: &str) -> bool {
    wanted.len() > super::MAX_TEXT && String::from_utf8_lossy(bounded(wanted.as_bytes())) == got
}

fn compare_payload(wanted: &Value, entry: &Entry, found: &mut Comparison) {
    match payload(entry) {
        None if entry.request.truncated => found.is_unsure = true,
        got => {
            let before = found.differs.len();
            differences(wanted, got.as_ref(), "payload", &mut found.differs);
            if found.differs.len() == before {
                found.matched.push("payload");
            }
        }
    }
}

/// The payload of a request, if its body is one.
fn payload(entry: &Entry) -> Option<Value> {
    let mut doc = Doc::default();
    let root = doc.parse(entry.request.body.as_bytes()).ok()?;
    let mut canonical = Vec::new();
    payload_in(entry.binding?, root)?.write_canonical(&[], &mut canonical);
    serde_json::from_slice(&canonical).ok()
}

fn differences(wanted: &Value, got: Option<&Value>, at: &str, out: &mut Vec<Difference>) {
    if out.len() >= MAX_DIFFERENCES {
        return;
    }
    match (wanted, got) {
        (Value::Object(wanted), Some(Value::Object(got))) => object_differences(wanted, got, at, out),
        (Value::Array(wanted), Some(Value::Array(got))) if wanted.len() == got.len() => {
            for (index, (wanted, got)) in wanted.iter().zip(got).enumerate() {
                differences(wanted, Some(got), &format!("{at}/{index}"), out);
            }
        }
        (wanted, Some(got)) if is_same(wanted, got) => {}
        (wanted, got) => out.push(Difference {
            member: at.to_owned(),
            wanted: wanted.clone(),
            got: got.cloned().unwrap_or(Value::Null),
        }),
    }
}

fn object_differences(
    wanted: &Map<String, Value>,
    got: &Map<String, Value>,
    at: &str,
    out: &mut Vec<Difference>,
) {
    for (name, wanted) in wanted {
        differences(wanted, got.get(name), &format!("{at}/{}", escaped(name)), out);
    }
}

/// Whether two scalars are equal; 20 and 20.0 are one number (JSON Schema 2020-12, core 4.2.2).
fn is_same(wanted: &Value, got: &Value) -> bool {
    match (wanted, got) {
        (Value::Number(a), Value::Number(b)) => a == b || a.as_f64() == b.as_f64(),
        _ => wanted == got,
    }
}

/// A name within a pointer (RFC 6901, section 3).
fn escaped(name: &str) -> String {
    name.replace('~', "~0").replace('/', "~1")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn differing(wanted: &Value, got: &Value) -> Vec<String> {
        let mut out = Vec::new();
        differences(wanted, Some(got), "payload", &mut out);
        out.into_iter().map(|difference| difference.member).collect()
    }

    #[test]
    fn a_payload_contains_what_is_wanted_or_the_places_are_named() {
        let got =
            json!({ "filters": { "make": ["Honda", "Ford"], "price_max": 20000, "a/b": 1 }, "sort": null });
        assert_eq!(differing(&json!({}), &got), [""; 0]);
        assert_eq!(differing(&json!({ "filters": { "price_max": 20000.0 } }), &got), [""; 0]);
        assert_eq!(differing(&json!({ "filters": { "make": ["Honda", "Ford"] } }), &got), [""; 0]);
        assert_eq!(
            differing(
                &json!({ "filters": { "make": ["Honda"], "price_max": 1, "a/b": 2 }, "sort": {} }),
                &got
            ),
            ["payload/filters/a~1b", "payload/filters/make", "payload/filters/price_max", "payload/sort"]
        );
        assert_eq!(
            differing(&json!({ "filters": { "make": ["Honda", "Kia"] } }), &got),
            ["payload/filters/make/1"]
        );
    }

    #[test]
    fn differences_are_bounded() {
        let wanted: Map<String, Value> = (0..100).map(|n| (format!("m{n}"), Value::from(n))).collect();
        assert_eq!(differing(&wanted.into(), &json!({})).len(), MAX_DIFFERENCES);
    }
}
