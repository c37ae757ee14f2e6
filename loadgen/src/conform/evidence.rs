//! What was asked and what came back: all that rules are judged by.

use dealer_sim::protocol::contract::ErrorShape;
use dealer_sim::protocol::error::AAP_ERROR_KIND;
use dealer_sim::protocol::json::Doc;
use dealer_sim::protocol::{Contract, Skill};
use jiff::Timestamp;
use serde_json::Value;

use super::knock::Knock;
use super::rule::Finding;
use crate::transport::Fault;

/// The `@type` of the typed entry of an AAP error (AAP e), the same under every contract that has a list of entries.
pub(super) const AAP_ENTRY: &str = "https://autoagentprotocol.org/extensions/aap/error";
/// The `@type` of Google's ErrorInfo.
pub(super) const ERROR_INFO: &str = "type.googleapis.com/google.rpc.ErrorInfo";
/// Characters of a request or a reply that a proof quotes.
const QUOTED: usize = 400;

/// What a dealer does with requests that lack the two A2A headers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Headers {
    /// What the contract usually does: 2.0 refuses them, 3.0 may do either, 1.x overlooks the headers.
    Usual,
    /// It refuses them.
    Strict,
    /// It takes them to be of its one contract.
    Pinned,
}

/// One request and its reply.
#[derive(Debug)]
pub(super) struct Exchange {
    /// The rule that it probes, or the name of a step of the survey.
    pub(super) label: String,
    /// The contract that is spoken.
    pub(super) contract: Contract,
    /// The skill that it calls.
    pub(super) skill: Option<Skill>,
    /// Whether it is an ordinary call, which a dealer serves or refuses for a reason of its own.
    pub(super) is_ordinary: bool,
    /// The request's JSON-RPC id, if it can be told.
    pub(super) id: Option<Value>,
    pub(super) message_id: Option<String>,
    pub(super) context_id: Option<String>,
    /// The payload that was sent.
    pub(super) payload: Value,
    /// The request as a proof shows it.
    pub(super) sent: String,
    pub(super) answer: Result<Answer, Unanswered>,
}

/// No whole reply.
#[derive(Debug, Clone, Copy)]
pub(super) struct Unanswered {
    /// Why.
    pub(super) fault: Fault,
    /// Whether a whole JSON document came all the same: what is told of its length, or its end, is wrong then.
    pub(super) document: bool,
}

impl From<Fault> for Unanswered {
    fn from(fault: Fault) -> Unanswered {
        Unanswered { fault, document: false }
    }
}

/// Whether a document stands behind the head, whatever the head says of its length.
pub(super) fn holds_document(received: &[u8]) -> bool {
    let Some(head) = memchr::memmem::find(received, b"\r\n\r\n") else { return false };
    let body = &received[head + 4..];
    // Behind the size of a chunk, perhaps.
    let Some(start) = memchr::memchr(b'{', body) else { return false };
    let mut documents =
        serde_json::Deserializer::from_slice(&body[start..]).into_iter::<serde::de::IgnoredAny>();
    matches!(documents.next(), Some(Ok(_)))
}

/// A reply.
#[derive(Debug)]
pub(super) struct Answer {
    pub(super) status: u16,
    pub(super) content_type: Option<String>,
    pub(super) content_encoding: Option<String>,
    /// Whether the status line stands first.
    pub(super) begins_well: bool,
    /// What came behind the reply on its connection.
    pub(super) behind: Vec<u8>,
    /// `A2A-Extensions` of the reply.
    pub(super) echo: Option<String>,
    pub(super) body: Vec<u8>,
    /// The body read, or what is wrong with it.
    pub(super) json: Result<Value, Unread>,
}

/// Why a body was not read.
#[derive(Debug, Clone)]
pub(super) enum Unread {
    /// It is not JSON.
    NotJson(String),
    /// It may be JSON, and is more than this program reads.
    TooMuch(String),
}

/// Reads a body strictly: exactly one JSON document in UTF-8, no byte order mark, no name twice in an object.
pub(super) fn read(body: &[u8]) -> Result<Value, Unread> {
    let told = |error: serde_json::Error| {
        let text = error.to_string();
        // JSON allows both (RFC 8259, sections 8.2 and 9); a reader need not take them.
        if text.contains("recursion limit") || text.contains("surrogate") || text.contains("hex escape") {
            Unread::TooMuch(text)
        } else {
            Unread::NotJson(text)
        }
    };
    let value = serde_json::from_slice(body).map_err(told)?;
    match Doc::default().parse(body) {
        Ok(_) => Ok(value),
        Err(error) => Err(Unread::NotJson(error.to_string())),
    }
}

impl Exchange {
    pub(super) fn answered(&self) -> Option<&Answer> {
        self.answer.as_ref().ok()
    }

    pub(super) fn status(&self) -> Option<u16> {
        self.answered().map(|answer| answer.status)
    }

    pub(super) fn json(&self) -> Option<&Value> {
        self.answered()?.json.as_ref().ok()
    }

    /// Why its reply says nothing about the dealer's AAP: none came, or not a JSON-RPC reply at all. That is judged by rules
    /// of its own.
    pub(super) fn unjudgeable(&self) -> Option<String> {
        match &self.answer {
            Err(none) => Some(format!("no reply: {}", none.fault)),
            Ok(answer) if answer.json.is_err() => {
                let why = match &answer.json {
                    Err(Unread::NotJson(why) | Unread::TooMuch(why)) => why.as_str(),
                    Ok(_) => "",
                };
                Some(format!("HTTP {} without a readable JSON-RPC reply ({why})", answer.status))
            }
            Ok(_) => None,
        }
    }

    pub(super) fn result(&self) -> Option<&Value> {
        self.json()?.get("result")
    }

    pub(super) fn message(&self) -> Option<&Value> {
        self.result()?.get("message")
    }

    /// The first part's payload.
    pub(super) fn reply_payload(&self) -> Option<&Value> {
        self.message()?.get("parts")?.get(0)?.get("data")
    }

    /// The payload's `data`, if it is that of the skill asked.
    pub(super) fn data(&self) -> Option<&Value> {
        let payload = self.reply_payload()?;
        let wanted = self.skill?.response_type();
        (payload.get("type")?.as_str()? == wanted).then(|| payload.get("data")).flatten()
    }

    /// Whether the skill answered.
    pub(super) fn is_served(&self) -> bool {
        self.data().is_some_and(Value::is_object)
    }

    pub(super) fn error(&self) -> Option<&Value> {
        self.json()?.get("error").filter(|error| !error.is_null())
    }

    pub(super) fn error_number(&self) -> Option<i64> {
        self.error()?.get("code")?.as_i64()
    }

    /// The entries of `error.data`.
    pub(super) fn entries(&self) -> &[Value] {
        self.error().and_then(|error| error.get("data")?.as_array()).map(Vec::as_slice).unwrap_or_default()
    }

    pub(super) fn entry(&self, kind: &str) -> Option<&Value> {
        self.entries().iter().find(|entry| entry.get("@type").and_then(Value::as_str) == Some(kind))
    }

    /// The typed AAP entry: one of the list, or, before 2.0, all of `error.data`.
    pub(super) fn typed(&self) -> Option<&Value> {
        match self.contract.error_shape {
            ErrorShape::Array => self.entry(AAP_ENTRY),
            ErrorShape::Object => {
                let data = self.error()?.get("data")?;
                (data.get("type").and_then(Value::as_str) == Some(AAP_ERROR_KIND)).then_some(data)
            }
        }
    }

    /// The typed AAP entry's code.
    pub(super) fn typed_code(&self) -> Option<&str> {
        self.typed()?.get("code")?.as_str()
    }

    /// The places of `details.errors[]`.
    pub(super) fn fault_places(&self) -> Vec<&str> {
        let list = self.typed().and_then(|entry| entry.pointer("/details/errors")?.as_array());
        list.into_iter().flatten().filter_map(|fault| fault.get("instanceLocation")?.as_str()).collect()
    }

    /// The listings of a search's reply.
    pub(super) fn vehicles(&self) -> &[Value] {
        self.data().and_then(|data| data.get("vehicles")?.as_array()).map(Vec::as_slice).unwrap_or_default()
    }

    /// A number of a reply's data; SDKs over protobuf write integers with a zero fraction.
    pub(super) fn number(&self, name: &str) -> Option<i64> {
        whole(self.data()?.get(name)?)
    }

    /// In a few words what the dealer said.
    pub(super) fn said(&self) -> String {
        match (&self.answer, self.typed_code(), self.error_number()) {
            (Err(none), ..) => none.fault.to_string(),
            (_, Some(code), _) => code.to_owned(),
            (_, None, Some(number)) => format!("error {number}"),
            (Ok(answer), ..) if self.json().is_none() => format!("HTTP {} without JSON", answer.status),
            _ => "a result".to_owned(),
        }
    }

    /// The request's name, what was sent and the start of the reply, a line each.
    pub(super) fn quote(&self) -> String {
        let came = match &self.answer {
            Err(none) => format!("no reply: {}", none.fault),
            Ok(answer) => format!("HTTP {}: {}", answer.status, cut(&String::from_utf8_lossy(&answer.body))),
        };
        format!("[{}]\nsent: {}\ncame: {came}", self.label, self.sent)
    }
}

/// A value as a proof tells it.
pub(super) fn told(value: Option<impl std::fmt::Display>) -> String {
    value.map_or_else(|| "none".to_owned(), |value| value.to_string())
}

/// The start of a text.
pub(super) fn cut(text: &str) -> String {
    let start: String = text.chars().take(QUOTED).collect();
    let more = if start.len() < text.len() { "…" } else { "" };
    start + more
}

/// A whole number, perhaps written with a zero fraction.
pub(super) fn whole(value: &Value) -> Option<i64> {
    value.as_i64().or_else(|| {
        let number = value.as_f64()?;
        (number.fract() == 0.0 && number.abs() < 9e15).then_some(number as i64)
    })
}

/// The card, as it came.
#[derive(Debug)]
pub(super) struct CardSeen {
    pub(super) url: String,
    pub(super) status: u16,
    pub(super) content_type: Option<String>,
    pub(super) etag: Option<String>,
    pub(super) cache_control: Option<String>,
    pub(super) body: Vec<u8>,
    pub(super) json: Result<Value, Unread>,
    /// What a second fetch with `If-None-Match` came to: its status, and the entity tag.
    pub(super) again: Option<(u16, Option<String>)>,
}

impl CardSeen {
    pub(super) fn card(&self) -> Option<&Value> {
        self.json.as_ref().ok()
    }
}

/// All that was seen.
#[derive(Debug)]
pub(super) struct Evidence {
    /// `None` when no card was read.
    pub(super) card: Option<CardSeen>,
    pub(super) contract: Contract,
    pub(super) headers: Headers,
    /// Whether leads were sent.
    pub(super) leads: bool,
    pub(super) now: Timestamp,
    pub(super) exchanges: Vec<Exchange>,
    /// What was asked beside A2A.
    pub(super) knocks: Vec<Knock>,
    /// Why no more was asked, if the survey ended early.
    pub(super) stopped: Option<String>,
}

impl Evidence {
    pub(super) fn of(&self, label: &str) -> Option<&Exchange> {
        self.exchanges.iter().find(|exchange| exchange.label == label)
    }

    /// The exchanges whose labels begin so.
    pub(super) fn all<'a>(&'a self, prefix: &'a str) -> impl Iterator<Item = &'a Exchange> {
        self.exchanges.iter().filter(move |exchange| exchange.label.starts_with(prefix))
    }

    /// Why a request was never sent.
    pub(super) fn unasked(&self, label: &str) -> Finding {
        if let Some(why) = &self.stopped {
            return Finding::NotRun(why.clone());
        }
        if label.starts_with("lead") && !self.leads {
            return Finding::not_run(
                "it needs a lead, which is sent to a real dealer only with --allow-real-leads",
            );
        }
        Finding::not_run("what it needs was not found with this dealer")
    }

    /// The calls that were served.
    pub(super) fn served(&self, skill: Skill) -> impl Iterator<Item = &Exchange> {
        self.exchanges.iter().filter(move |exchange| exchange.skill == Some(skill) && exchange.is_served())
    }

    /// The replies that hold a result.
    pub(super) fn results(&self) -> impl Iterator<Item = &Exchange> {
        self.exchanges.iter().filter(|exchange| exchange.result().is_some_and(|result| !result.is_null()))
    }

    /// The replies that hold an error.
    pub(super) fn errors(&self) -> impl Iterator<Item = &Exchange> {
        self.exchanges.iter().filter(|exchange| exchange.error().is_some())
    }

    /// All listings, and the vehicles of details, each with where it was seen.
    pub(super) fn listings(&self) -> impl Iterator<Item = (&Exchange, &Value)> {
        let searched = self
            .served(Skill::InventorySearch)
            .flat_map(|exchange| exchange.vehicles().iter().map(move |vehicle| (exchange, vehicle)));
        let details =
            self.served(Skill::InventoryVehicle).filter_map(|exchange| Some((exchange, exchange.data()?)));
        searched.chain(details)
    }
}

#[cfg(test)]
mod tests {
    use super::holds_document;

    #[test]
    fn a_document_is_whole_whatever_its_length_is_said_to_be() {
        let reply = |body: &str| holds_document(format!("HTTP/1.1 200 OK\r\nA: b\r\n\r\n{body}").as_bytes());
        assert!(reply("{\"id\":1}") && reply("40000000\r\n{\"id\":1}") && reply("{\"id\":1}\r\nrest"));
        assert!(!reply("{\"id\":1") && !reply("") && !reply("12"));
        assert!(!holds_document(b"HTTP/1.1 200 OK\r\nA: {}\r\n") && !holds_document(b""));
    }
}
