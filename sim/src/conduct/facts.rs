//! What is known of one request when it is judged, read out of its journal entry.

use jiff::Timestamp;
use serde_json::Value;

use crate::faults::effect::Lawfulness;
use crate::faults::{Apply, EffectInfo};
use crate::journal::{DeliveryState, Entry, Head, Outcome};
use crate::protocol::card;
use crate::protocol::error::AapCode;
use crate::protocol::{Binding, Skill};
use crate::stable::stable_hash;

/// What kind of request it was.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The agent card was fetched.
    Card,
    /// A JSON-RPC call.
    Call,
    /// Another HTTP request to the endpoint.
    Other,
}

/// How a call failed, as far as its caller could know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Failure {
    /// The answer was lost, or was no JSON-RPC.
    Lost,
    /// It may succeed later.
    Retryable,
    /// It will fail again.
    Final,
}

/// One request.
#[derive(Debug)]
pub(super) struct Facts<'e> {
    pub(super) entry: &'e Entry,
    pub(super) kind: Kind,
    /// Business time of arrival.
    pub(super) at: Timestamp,
    /// Traffic time of arrival and of the end of the delivery, in nanoseconds.
    pub(super) arrived: u64,
    pub(super) ended: u64,
    /// The request, unless it was cut or is no JSON.
    pub(super) request: Option<Value>,
    /// The reply, unless it was cut.
    pub(super) reply: Option<Value>,
}

impl<'e> Facts<'e> {
    pub(super) fn of(entry: &'e Entry) -> Facts<'e> {
        let method = entry.method.as_deref().unwrap_or_default();
        let kind = match method.split_once(' ') {
            Some(("GET", path)) if path.ends_with(card::PATH) => Kind::Card,
            // JSON-RPC methods have no blank; what was no call is told by HTTP method and path.
            Some((_, path)) if path.starts_with('/') => Kind::Other,
            _ if entry.ordinal == 0 => Kind::Other,
            _ => Kind::Call,
        };
        let took = (entry.delivered.ms * 1e6) as u64;
        Facts {
            entry,
            kind,
            at: entry.at.parse().unwrap_or(Timestamp::UNIX_EPOCH),
            arrived: entry.traffic_ns,
            ended: entry.traffic_ns.saturating_add(took),
            request: serde_json::from_str(&entry.request.body).ok(),
            reply: serde_json::from_str(&entry.reply.body).ok(),
        }
    }

    pub(super) fn seq(&self) -> u64 {
        self.entry.seq
    }

    pub(super) fn method(&self) -> &'e str {
        self.entry.method.as_deref().unwrap_or_default()
    }

    pub(super) fn head(&self) -> Head {
        self.entry.head
    }

    /// The conversation that the reply named, or that was asked for.
    pub(super) fn conversation(&self) -> Option<&'e str> {
        self.entry.conversation.as_deref()
    }

    pub(super) fn outcome(&self) -> Outcome {
        self.entry.outcome
    }

    pub(super) fn aap(&self) -> Option<AapCode> {
        match self.entry.outcome {
            Outcome::Aap(code) => Some(code),
            _ => None,
        }
    }

    pub(super) fn skill(&self) -> Option<Skill> {
        self.entry.skill
    }

    /// The skill that the payload names, also of a call that was refused before one was chosen.
    pub(super) fn named_skill(&self) -> Option<Skill> {
        let named = || Skill::from_request_type(self.payload()?["type"].as_str()?);
        self.skill().or_else(named)
    }

    /// Whether some of the request is not known.
    pub(super) fn is_cut(&self) -> bool {
        self.entry.request.truncated
    }

    pub(super) fn message(&self) -> Option<&Value> {
        self.request.as_ref()?.get("params")?.get("message")
    }

    /// A text member of the message; an empty one is none.
    pub(super) fn said(&self, member: &str) -> Option<&str> {
        self.message()?.get(member)?.as_str().filter(|text| !text.is_empty())
    }

    /// Whose turn it is, as far as the caller knew: a client may serve several customers at once.
    pub(super) fn thread(&self) -> String {
        format!("{} {}", self.entry.dealer, self.said("contextId").unwrap_or_default())
    }

    /// Whether it came through A2A, or before any interface, as the card does.
    pub(super) fn is_a2a(&self) -> bool {
        self.entry.binding.is_none_or(|binding| binding == Binding::A2a)
    }

    pub(super) fn payload(&self) -> Option<&Value> {
        match self.entry.binding {
            Some(Binding::Mcp) => self.request.as_ref()?.get("params")?.get("arguments"),
            Some(Binding::Pap) => self.request.as_ref(),
            _ => self.message()?.get("parts")?.get(0)?.get("data"),
        }
    }

    /// The `data` of the payload that it was answered with; null where there is none.
    fn replied<'v>(&self, reply: &'v Value) -> &'v Value {
        match self.entry.binding {
            Some(Binding::Mcp) => &reply["result"]["structuredContent"]["data"],
            Some(Binding::Pap) => &reply["data"],
            _ => &reply["result"]["message"]["parts"][0]["data"]["data"],
        }
    }

    /// What the caller got: the skill's answer, whole, and without what a client may stumble over.
    pub(super) fn is_answered(&self) -> bool {
        let is_odd = || self.effects().any(|effect| matches!(effect.family, "envelope" | "http"));
        self.is_told() && !self.is_garbled() && !is_odd()
    }

    /// What the caller got: the skill's answer, in an envelope that a fault may have broken.
    pub(super) fn is_told(&self) -> bool {
        self.outcome() == Outcome::Ok && self.is_delivered()
    }

    /// The effects of faults that touched it.
    fn effects(&self) -> impl Iterator<Item = &'static EffectInfo> {
        self.entry.faults.iter().filter_map(|fault| {
            let name = fault.effect.split('(').next()?;
            crate::faults::registry::find(name)
        })
    }

    /// Whether a fault gave the answer: a refusal then says nothing about the request, nor a card about the dealer.
    pub(super) fn is_made_up(&self) -> bool {
        self.effects().any(|effect| {
            matches!(
                effect.apply,
                Apply::Refuse(_)
                    | Apply::RefuseHttp(_)
                    | Apply::Http(_)
                    | Apply::RefineCard(_)
                    | Apply::RefineTools(_)
            )
        })
    }

    /// Whether a fault broke the envelope around the answer or the HTTP around that: nobody can rely on such a reply.
    pub(super) fn is_garbled(&self) -> bool {
        self.effects().any(|effect| effect.lawfulness == Lawfulness::Breach && effect.family != "business")
    }

    /// Whether a fault changed what the caller could know of its conversation.
    pub(super) fn has_strange_context(&self) -> bool {
        self.is_garbled() || self.effects().any(|effect| effect.family == "conversation")
    }

    pub(super) fn is_delivered(&self) -> bool {
        self.entry.delivered.state == DeliveryState::Complete
    }

    /// How it failed; what was answered did not.
    pub(super) fn failure(&self) -> Option<Failure> {
        if !self.is_delivered() || self.is_garbled() {
            return Some(Failure::Lost);
        }
        let default = match self.outcome() {
            Outcome::Ok => return None,
            // What a client may send again by RFC 9110, 15.5.9, RFC 8470, 5.2, and RFC 6585, 4.
            Outcome::Http(408 | 425 | 429 | 500..=599) => return Some(Failure::Retryable),
            // A redirection is followed with the same request, and no other status says whether it would fail again.
            Outcome::Http(_) => return Some(Failure::Lost),
            Outcome::Rpc(-32_603) => true,
            Outcome::Rpc(_) => false,
            Outcome::Aap(code) => matches!(code, AapCode::RateLimited | AapCode::InternalError),
        };
        // The value sent is what counts (section e).
        let is_retryable = match self.hint("\"retryable\":") {
            Some(rest) if rest.starts_with("true") => true,
            Some(rest) if rest.starts_with("false") => false,
            _ => default,
        };
        Some(if is_retryable { Failure::Retryable } else { Failure::Final })
    }

    /// How long it was told to wait, in nanoseconds.
    pub(super) fn wait(&self) -> Option<u64> {
        if self.outcome() == Outcome::Ok || !self.is_delivered() {
            return None;
        }
        let number = |name| {
            let rest = self.hint(name)?;
            let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            rest[..end].parse::<u64>().ok()
        };
        let milliseconds = number("\"retry_after_ms\":")
            .or_else(|| number("\"retry_after_seconds\":").map(|seconds| seconds.saturating_mul(1000)));
        milliseconds.map(|milliseconds| milliseconds.saturating_mul(1_000_000))
    }

    /// What follows a member's name in the reply, which may be cut behind it.
    fn hint(&self, name: &str) -> Option<&str> {
        let body = &self.entry.reply.body;
        // The metadata of an ErrorInfo says the same in a string.
        body.find(name).map(|at| body[at + name.len()..].trim_start_matches([' ', '"']))
    }

    /// The payload's places that were told to be wrong; those that a cut reply no longer shows are not among them. What is
    /// missing in a place comes as a member of it.
    pub(super) fn faulty_places(&self) -> Vec<String> {
        // The typed entry says instanceLocation; the BadRequest before it says field, and is less often cut.
        let body = &self.entry.reply.body;
        let told = ["\"instanceLocation\":\"", "\"field\":\""]
            .into_iter()
            .flat_map(|name| body.match_indices(name).map(move |(at, _)| (at, at + name.len())));
        let mut places: Vec<_> = told
            .filter_map(|(at, from)| {
                let place = body[from..].split_once('"')?.0;
                let around = &body[body[..at].rfind('{').unwrap_or_default()..];
                let of_this = around.split('}').next().unwrap_or_default();
                let missing =
                    of_this.split_once("required property '").and_then(|(_, name)| name.split_once('\''));
                Some(missing.map_or_else(|| place.to_owned(), |(name, _)| format!("{place}/{name}")))
            })
            .collect();
        places.sort();
        places.dedup();
        places
    }

    /// The vehicles that the reply lists, and whether it is known whole.
    pub(super) fn listed(&self) -> (Vec<Value>, bool) {
        let Some(reply) = &self.reply else { return (listed_before_cut(&self.entry.reply.body), false) };
        let data = self.replied(reply);
        match (self.skill(), &data["vehicles"]) {
            (Some(Skill::InventoryVehicle), _) => (vec![data.clone()], true),
            (_, Value::Array(vehicles)) => (vehicles.clone(), true),
            _ => (Vec::new(), true),
        }
    }

    /// A number of the reply's `data`, looked for in what there is of it.
    pub(super) fn replied_number(&self, name: &str) -> Option<u64> {
        if let Some(reply) = &self.reply {
            return self.replied(reply)[name].as_u64();
        }
        None
    }
}

/// The vehicles that stand whole in the beginning of a reply.
fn listed_before_cut(body: &str) -> Vec<Value> {
    let Some(at) = body.find("\"vehicles\":[") else { return Vec::new() };
    let rest = &body[at + "\"vehicles\":[".len()..];
    let mut stream = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(Ok(vehicle)) = stream.next() {
        found.push(vehicle);
        from += stream.byte_offset();
        let Some(next) = rest[from..].strip_prefix(',') else { break };
        from = rest.len() - next.len();
        stream = serde_json::Deserializer::from_str(next).into_iter();
    }
    found
}

/// A hash of a value that does not depend on the order of its members, nor on whether a whole number has a fraction.
pub(super) fn print_of(value: &Value, skip: &[&str]) -> u64 {
    let mut out = Vec::new();
    write(value, skip, &mut out);
    stable_hash(8, &out)
}

fn write(value: &Value, skip: &[&str], out: &mut Vec<u8>) {
    match value {
        Value::Object(members) => {
            let mut members: Vec<_> =
                members.iter().filter(|(name, _)| !skip.contains(&name.as_str())).collect();
            members.sort_by_key(|(name, _)| name.as_str());
            out.push(b'{');
            for (name, value) in members {
                out.extend_from_slice(Value::from(name.as_str()).to_string().as_bytes());
                write(value, &[], out);
            }
            out.push(b'}');
        }
        Value::Array(items) => {
            out.push(b'[');
            items.iter().for_each(|item| {
                write(item, &[], out);
                out.push(b',');
            });
            out.push(b']');
        }
        Value::Number(number) => match number.as_f64().filter(|number| number.fract() == 0.0) {
            Some(whole) if number.is_f64() => out.extend_from_slice((whole as i64).to_string().as_bytes()),
            _ => out.extend_from_slice(number.to_string().as_bytes()),
        },
        other => out.extend_from_slice(other.to_string().as_bytes()),
    }
    out.push(b' ');
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn prints_depend_on_what_is_said_alone() {
        let (a, b) = (json!({ "a": 1, "b": [20, "x"] }), json!({ "b": [20.0, "x"], "a": 1 }));
        assert_eq!(print_of(&a, &[]), print_of(&b, &[]));
        assert_ne!(print_of(&a, &[]), print_of(&a, &["a"]));
        assert_ne!(print_of(&json!(["a", "b"]), &[]), print_of(&json!(["a b"]), &[]));
    }

    #[test]
    fn of_a_cut_page_the_whole_vehicles_are_known() {
        let found = listed_before_cut(r#"{"total":3,"vehicles":[{"vin":"A"},{"vin":"B"},{"vi"#);
        assert_eq!(found, [json!({ "vin": "A" }), json!({ "vin": "B" })]);
        assert!(listed_before_cut("{\"total\":1").is_empty());
    }
}
