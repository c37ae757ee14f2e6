//! What is recorded of one call, borrowed from those who have it: facts in, no allocation.

use std::borrow::Cow;
use std::net::IpAddr;

use jiff::Timestamp;
use serde::{Serialize, Serializer};

use crate::protocol::error::AapCode;
use crate::protocol::{Binding, HeaderMode, Skill};

/// Who called, as a limit or a report would name it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Client<'a> {
    /// It named itself (`X-Sim-Client`): shown as that name.
    Named(&'a [u8]),
    /// The stable hash of its credential: shown as `credential:` and 16 hexadecimal digits, never the credential.
    Credential(u64),
    /// Neither: shown as address, a space, and `User-Agent` (which may be empty).
    Origin {
        /// The peer's address.
        address: IpAddr,
        /// The value of `User-Agent`.
        program: &'a [u8],
    },
}

/// How a call was answered. The words are those of the load generator's outcomes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Outcome {
    /// The skill's response.
    Ok,
    /// An AAP error.
    Aap(AapCode),
    /// Another JSON-RPC error, by its number; those that A2A reserves are shown as `a2a.N`, the rest as `rpc.N`.
    Rpc(i64),
    /// No JSON-RPC reply: the HTTP status; 0 where the dealer never saw the request and said nothing.
    Http(u16),
}

impl Outcome {
    /// The word: `ok`, `aap.RATE_LIMITED`, `a2a.-32009`, `rpc.-32602`, `http.413`.
    pub fn word(self) -> Cow<'static, str> {
        match self {
            Outcome::Ok => Cow::Borrowed("ok"),
            Outcome::Aap(code) => Cow::Owned(format!("aap.{}", code.name())),
            // A2A's own range (A2A 1.0, section 5.4).
            Outcome::Rpc(code @ -32_009..=-32_001) => Cow::Owned(format!("a2a.{code}")),
            Outcome::Rpc(code) => Cow::Owned(format!("rpc.{code}")),
            Outcome::Http(status) => Cow::Owned(format!("http.{status}")),
        }
    }

    /// The outcome that a word names.
    pub fn from_word(word: &str) -> Option<Outcome> {
        let outcome = match word.split_once('.') {
            None => (word == "ok").then_some(Outcome::Ok),
            Some(("aap", name)) => AapCode::from_name(name).map(Outcome::Aap),
            Some(("a2a" | "rpc", code)) => code.parse().ok().map(Outcome::Rpc),
            Some(("http", status)) => status.parse().ok().map(Outcome::Http),
            Some(_) => None,
        };
        // One spelling for each: no `rpc.-32009`, no `http.0413`.
        outcome.filter(|outcome| outcome.word() == word)
    }
}

impl Serialize for Outcome {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&self.word())
    }
}

/// A fault that touched the call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FaultMark<'a> {
    /// What brought it: a rule's id, or the kind of trigger.
    pub trigger: &'a str,
    /// The effect with its arguments, such as `rate_limited(retry_after=2s)`.
    pub effect: &'a str,
    /// What `faults explain` takes.
    pub repro: &'a str,
}

/// How the delivery of a reply ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum DeliveryState {
    /// Every byte was handed to the network.
    Complete,
    /// The connection was closed before the last byte.
    Cut,
    /// The connection was reset by us.
    Reset,
    /// Nothing, or nothing more, was ever sent.
    Silent,
    /// The client went away first.
    ClientGone,
}

/// What the client really got.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Delivery {
    /// Bytes handed to the network, HTTP head included.
    pub bytes: u64,
    /// How it ended.
    pub state: DeliveryState,
    /// From the request's last byte to the reply's last, in nanoseconds of traffic time.
    pub took_ns: u64,
}

/// What became of a header that a call should carry.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Sent {
    /// It was not sent, or nobody looked.
    #[default]
    Absent,
    /// As it should be.
    Right,
    /// Otherwise.
    Wrong,
    /// The dealer overlooks it: its contract has no rule about it.
    Free,
}

/// The header fields by which a caller's conduct is judged (AAP digest, section b).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Head {
    /// `A2A-Version`: 1.0.
    pub version: Sent,
    /// `A2A-Extensions`: names the extension of the dealer's contract exactly.
    pub extension: Sent,
    /// Whether there was an `If-None-Match` or an `If-Modified-Since`.
    pub conditional: bool,
}

impl Head {
    /// What is judged at an endpoint of this mode: one that overlooks the headers has no rule about them.
    #[must_use]
    pub fn under(self, mode: HeaderMode) -> Head {
        match mode {
            HeaderMode::Strict | HeaderMode::Pinned => self,
            HeaderMode::Ignored => Head { version: Sent::Free, extension: Sent::Free, ..self },
        }
    }
}

/// A body, and how long it was before anybody cut it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Body<'a> {
    /// Bytes of the whole body.
    pub bytes: u64,
    /// The body, or as much of it as the caller has; the journal keeps the beginning ([`super::Limits`]).
    pub body: &'a [u8],
}

impl<'a> Body<'a> {
    /// A body that is all there.
    pub fn whole(body: &'a [u8]) -> Body<'a> {
        Body { bytes: body.len() as u64, body }
    }

    /// What stands for it: whole, if it was.
    pub(super) fn replaced_by<'b>(&self, body: &'b [u8]) -> Body<'b> {
        match self.bytes == self.body.len() as u64 {
            true => Body::whole(body),
            false => Body { bytes: self.bytes.max(body.len() as u64 + 1), body },
        }
    }
}

/// All that is recorded of one call. Texts longer than [`super::MAX_TEXT`] bytes are cut there.
#[derive(Debug, Clone, Copy)]
pub struct Exchange<'a> {
    /// The business clock when the request had come.
    pub at: Timestamp,
    /// The traffic clock when the request had come, in nanoseconds; the order of arrival.
    pub traffic_ns: u64,
    /// The dealer's id.
    pub dealer: &'a str,
    /// Who called.
    pub client: Client<'a>,
    /// The connection's ordinal among all.
    pub connection: u64,
    /// The request's ordinal on its connection, from 1; 0 where the connection took none.
    pub ordinal: u64,
    /// The header fields that matter.
    pub head: Head,
    /// The interface that it came through; none where it was no call.
    pub binding: Option<Binding>,
    /// The skill, once it was chosen.
    pub skill: Option<Skill>,
    /// The JSON-RPC method; of a request that was no JSON-RPC call the HTTP method and path, such as `GET /a2a`; empty when
    /// there was neither.
    pub method: &'a str,
    /// The conversation's `contextId`: the dealer's, else the one asked for; empty when there was none.
    pub conversation: &'a str,
    /// The request's `messageId`; empty when there was none.
    pub message_id: &'a str,
    /// The stable key, where it was worked out; else a reader works it out from the request.
    pub key: Option<u64>,
    /// Which occurrence of that key, from 1; 0 where nobody counted, since neither a frozen clock nor a fault needs it.
    pub attempt: u64,
    /// What was asked. For a call in a batch, that call's own text.
    pub request: Body<'a>,
    /// How it was answered.
    pub outcome: Outcome,
    /// The HTTP status; 0 where none was sent.
    pub http_status: u16,
    /// What was answered, before a delivery fault touched it.
    pub reply: Body<'a>,
    /// The faults that touched it.
    pub faults: &'a [FaultMark<'a>],
    /// What the client really got.
    pub delivered: Delivery,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_is_told_by_its_one_word() {
        let outcomes = [
            (Outcome::Ok, "ok"),
            (Outcome::Aap(AapCode::RateLimited), "aap.RATE_LIMITED"),
            (Outcome::Rpc(-32_009), "a2a.-32009"),
            (Outcome::Rpc(-32_602), "rpc.-32602"),
            (Outcome::Http(413), "http.413"),
        ];
        for (outcome, word) in outcomes {
            assert_eq!(outcome.word(), word);
            assert_eq!(Outcome::from_word(word), Some(outcome));
        }
        for word in
            ["", "OK", "ok.", "aap.rate_limited", "rpc.-32009", "a2a.-32602", "http.0413", "rpc.+1", "tcp.1"]
        {
            assert_eq!(Outcome::from_word(word), None, "{word}");
        }
    }
}
