//! An entry as it is read: `data/schemas/journal-entry.schema.json` describes its JSON, and that of a page.

use serde::{Serialize, Serializer};

use super::exchange::{Body, DeliveryState, Head, Outcome};
use super::ring::View;
use crate::protocol::call::{payload_in, stable_key};
use crate::protocol::json::Doc;
use crate::protocol::{Binding, Skill};

/// A body as it was said.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize)]
pub struct Said {
    /// Bytes of the whole body.
    pub bytes: u64,
    /// Its text, or the beginning of it. What is no UTF-8 is shown as U+FFFD.
    pub body: String,
    /// Whether the body went on.
    #[serde(skip_serializing_if = "is_false")]
    pub truncated: bool,
    /// Whether some of it was no UTF-8.
    #[serde(skip_serializing_if = "is_false")]
    pub lossy: bool,
}

/// A fault that touched a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fault {
    /// What brought it.
    pub trigger: String,
    /// The effect, with its arguments.
    pub effect: String,
    /// What `faults explain` takes.
    pub repro: String,
}

/// What the client really got.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Delivered {
    /// Bytes handed to the network.
    pub bytes: u64,
    /// How it ended.
    pub state: DeliveryState,
    /// From the request's last byte to the reply's last, in milliseconds, to the microsecond.
    pub ms: f64,
}

/// One call.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Entry {
    /// Its number; they grow by one, in the order in which deliveries ended.
    pub seq: u64,
    /// The business clock when the request had come, RFC 3339 to the millisecond.
    pub at: String,
    /// The traffic clock then, in nanoseconds.
    pub traffic_ns: u64,
    /// The dealer's id.
    pub dealer: String,
    /// Who called: a name, `credential:` and a hash, or address and program.
    pub client: String,
    /// The connection's ordinal.
    pub connection: u64,
    /// The request's ordinal on its connection.
    pub ordinal: u64,
    /// The header fields that matter to judges; not in JSON.
    #[serde(skip)]
    pub head: Head,
    /// The interface that it came through; none where it was no call.
    pub binding: Option<Binding>,
    /// The skill, once it was chosen.
    #[serde(serialize_with = "skill_id")]
    pub skill: Option<Skill>,
    /// The JSON-RPC method; of a request that was no call the HTTP method and path.
    pub method: Option<String>,
    /// The conversation's `contextId`, if there was one.
    pub conversation: Option<String>,
    /// The request's `messageId`, if there was one.
    pub message_id: Option<String>,
    /// The stable key; in JSON 16 hexadecimal digits. None for what reached no skill, and where the request was cut.
    #[serde(serialize_with = "hexadecimal")]
    pub key: Option<u64>,
    /// Which occurrence of that key, from 1, where it was counted: with a frozen clock, or where faults may touch the call.
    pub attempt: Option<u64>,
    /// What was asked.
    pub request: Said,
    /// How it was answered.
    pub outcome: Outcome,
    /// The HTTP status, where one was sent.
    pub http_status: Option<u16>,
    /// What was answered, before a delivery fault touched it.
    pub reply: Said,
    /// The faults that touched it.
    pub faults: Vec<Fault>,
    /// What the client really got.
    pub delivered: Delivered,
}

/// Some entries, and what is known of those that are not among them.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Page {
    /// The entries, by number.
    pub entries: Vec<Entry>,
    /// The `after` of the next page.
    pub next: u64,
    /// Entries that no longer fit, since the journal was last cleared.
    pub dropped: u64,
    /// No entry with a greater number was dropped.
    pub complete_after: u64,
}

impl Entry {
    pub(super) fn of(view: View<'_>) -> Entry {
        let record = view.record;
        Entry {
            seq: record.seq,
            at: format!("{:.3}", record.at),
            traffic_ns: record.traffic_ns,
            dealer: text(view.dealer()),
            client: view.client(),
            connection: record.connection,
            ordinal: record.ordinal,
            head: record.head,
            binding: record.binding,
            skill: record.skill,
            method: named(view.method()),
            conversation: named(view.conversation()),
            message_id: named(view.message_id()),
            key: record.key.or_else(|| key_in(view)),
            attempt: (record.attempt != 0).then_some(record.attempt),
            request: Said::of(view.request()),
            outcome: record.outcome,
            http_status: (record.http_status != 0).then_some(record.http_status),
            reply: Said::of(view.reply()),
            faults: view
                .faults()
                .map(|[trigger, effect, repro]| Fault {
                    trigger: text(trigger),
                    effect: text(effect),
                    repro: text(repro),
                })
                .collect(),
            delivered: Delivered {
                bytes: record.delivered.bytes,
                state: record.delivered.state,
                // A whole number of microseconds over 1000: the division is exact to the last bit everywhere.
                ms: (record.delivered.took_ns / 1000) as f64 / 1000.0,
            },
        }
    }
}

impl Said {
    fn of(body: Body<'_>) -> Said {
        let truncated = body.bytes > body.body.len() as u64;
        let kept = match std::str::from_utf8(body.body) {
            // The cut went through a character.
            Err(error) if truncated && error.error_len().is_none() => &body.body[..error.valid_up_to()],
            _ => body.body,
        };
        let lossy = std::str::from_utf8(kept).is_err();
        Said { bytes: body.bytes, body: text(kept), truncated, lossy }
    }
}

/// The stable key of a call, worked out from what it asked: to do so for every call costs more than to record it.
fn key_in(view: View<'_>) -> Option<u64> {
    let (skill, request) = (view.record.skill?, view.request());
    if request.bytes > request.body.len() as u64 {
        return None;
    }
    key_of(view.record.binding?, std::str::from_utf8(view.dealer()).ok()?, skill, request.body)
}

/// The stable key of a call with this body.
pub(super) fn key_of(binding: Binding, dealer: &str, skill: Skill, body: &[u8]) -> Option<u64> {
    let mut doc = Doc::default();
    let payload = payload_in(binding, doc.parse(body).ok()?)?;
    Some(stable_key(dealer, skill.id(), Some(payload), &mut Vec::new()))
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn named(bytes: &[u8]) -> Option<String> {
    (!bytes.is_empty()).then(|| text(bytes))
}

fn is_false(value: &bool) -> bool {
    !*value
}

fn skill_id<S: Serializer>(skill: &Option<Skill>, serializer: S) -> Result<S::Ok, S::Error> {
    skill.map(Skill::id).serialize(serializer)
}

fn hexadecimal<S: Serializer>(value: &Option<u64>, serializer: S) -> Result<S::Ok, S::Error> {
    match value {
        Some(value) => serializer.collect_str(&format_args!("{value:016x}")),
        None => serializer.serialize_none(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_cut_between_characters_and_says_what_it_lost() {
        let cut = Said::of(Body { bytes: 4, body: "aé".as_bytes().split_at(2).0 });
        assert_eq!(cut, Said { bytes: 4, body: "a".to_owned(), truncated: true, lossy: false });
        let broken = Said::of(Body::whole(b"a\xffb"));
        assert_eq!(broken, Said { bytes: 3, body: "a\u{fffd}b".to_owned(), truncated: false, lossy: true });
        // A character that the sender itself left unfinished is the sender's.
        assert!(Said::of(Body::whole(b"a\xc3")).lossy);
    }
}
