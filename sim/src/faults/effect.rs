//! What a fault does, as data: a name with arguments, and the entry of the registry that says how it is applied.

use std::time::Duration;

use jiff::Timestamp;

use super::draw::Draw;
use super::script::Script;
use crate::protocol::error::AapError;
use crate::protocol::{Bindings, Contract, Skill};

/// Which part of an exchange an effect takes. One answer and one delivery win by precedence; delays add up.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Slot {
    /// What is said.
    Answer,
    /// How the bytes go.
    Delivery,
    /// When.
    Delay,
}

impl Slot {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Slot::Answer => "answer",
            Slot::Delivery => "delivery",
            Slot::Delay => "delay",
        }
    }
}

/// The value of an argument.
#[derive(Debug, Clone, PartialEq)]
pub enum Arg {
    /// `250ms`, `2s`, in nanoseconds.
    Duration(u64),
    /// A whole number.
    Integer(i64),
    /// A ratio (`20%`, `0.2`) or any number.
    Number(f64),
    /// A bare word or a quoted text.
    Text(String),
    /// `64KiB`, in bytes.
    Bytes(u64),
}

/// What a parameter takes.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum ParamKind {
    /// A duration, up to this many nanoseconds.
    Duration {
        /// Greatest value.
        max_ns: u64,
    },
    /// A whole number in a range.
    Integer {
        /// Least value.
        min: i64,
        /// Greatest value.
        max: i64,
    },
    /// A number in a range.
    Number {
        /// Least value.
        min: f64,
        /// Greatest value.
        max: f64,
    },
    /// One of these words.
    Word(&'static [&'static str]),
    /// Any text up to this many bytes.
    Text {
        /// Greatest length.
        max: usize,
    },
    /// A size in bytes, up to this.
    Bytes {
        /// Greatest value.
        max: u64,
    },
}

/// A parameter of an effect.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Param {
    /// Its name in `effect(name=value)`; the first parameter may also be given without it.
    pub name: &'static str,
    /// What it takes.
    pub kind: ParamKind,
    /// What it is, with its unit.
    pub help: &'static str,
    /// Its value, as it would be written, when it is not given; `None` makes it required.
    pub default: Option<&'static str>,
}

/// Whether a dealer may lawfully do this.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Lawfulness {
    /// A conforming dealer may.
    Lawful,
    /// It breaks the contract or a protocol below it.
    Breach,
    /// It breaks these contracts; the others allow it.
    BreachOf(&'static [Contract]),
}

impl Lawfulness {
    /// Whether a dealer may do it under a contract.
    pub fn is_lawful(self, contract: Contract) -> bool {
        match self {
            Lawfulness::Lawful => true,
            Lawfulness::Breach => false,
            Lawfulness::BreachOf(contracts) => !contracts.contains(&contract),
        }
    }
}

/// How a trigger or an effect depends on the order in which requests arrive. The same seed gives the same faults at any
/// concurrency for the first two.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Class {
    /// Each request for itself: conditions and chance.
    Independent,
    /// Occurrences are counted within a stable key or a conversation.
    PerKey,
    /// Counts over more than that, time since the plan took force, load, buckets.
    Arrival,
}

impl Class {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Class::Independent => "independent",
            Class::PerKey => "per-key",
            Class::Arrival => "arrival",
        }
    }
}

/// What a refining effect may look at.
#[derive(Debug, Clone, Copy)]
pub struct AnswerContext<'a> {
    /// The contract in force.
    pub contract: Contract,
    /// The skill, once it was chosen.
    pub skill: Option<Skill>,
    /// The request's body.
    pub request: &'a [u8],
    /// The business clock, for the instants that an error has to tell.
    pub now: Timestamp,
}

/// An HTTP reply said instead of, or around, the JSON-RPC reply.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct HttpOverride {
    /// The status, when it is not 200.
    pub status: Option<u16>,
    /// Header fields to set; an empty value removes a field.
    pub headers: Vec<(&'static str, String)>,
    /// The body, when it is not the JSON-RPC reply.
    pub body: Option<Vec<u8>>,
    /// Whether the connection is closed after the reply.
    pub close: bool,
    /// Whether the skill runs although `body` takes the place of its reply; without a `body` it always runs.
    pub commit: bool,
}

/// How the dealer itself is to behave for one call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behaviour {
    /// The vehicle asked for has just been sold.
    SoldUnderYou,
    /// The idempotency key is not recognised: a second lead is made.
    ForgetIdempotency,
    /// An equivalent lead exists, whether it does or not.
    LeadIsDuplicate,
    /// The appointment is answered with this status.
    Appointment(&'static str),
    /// A `contextId` that the dealer did not make is refused.
    RefuseUnknownContext,
    /// Any `contextId` that a caller brings is refused: its conversation has expired.
    ConversationExpired,
    /// The stock moved by this many listings since the page before: a search that skips any starts that much further on,
    /// never before 0, and echoes the `skip` it was asked for.
    ShiftPages(i64),
    /// A token is taken from a bucket, or the call is refused with
    /// [`rate_limited`](super::effects::business::rate_limited).
    TokenBucket(Bucket),
}

/// A token bucket, as data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Bucket {
    /// Nanoseconds in which one token grows.
    pub interval_ns: u64,
    /// Tokens that a full bucket holds.
    pub burst: u64,
    /// What shares one bucket.
    pub key: BucketKey,
    /// How a refusal tells when to come back.
    pub hint: RetryHint,
    /// Whether a refusal is an HTTP 429 with `Retry-After` around the JSON-RPC reply.
    pub http: bool,
}

/// What shares one bucket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BucketKey {
    /// Each client has its own.
    Client,
    /// Each conversation has its own.
    Conversation,
    /// All calls share one.
    Global,
}

/// How a refusal tells when to come back (AAP digest, section e: `retry_after_ms` is preferred).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum RetryHint {
    /// `retry_after_ms`.
    Ms,
    /// `retry_after_seconds`, rounded up.
    Seconds,
    /// Both of them.
    Both,
    /// Neither of them.
    None,
}

/// How an effect is applied.
#[derive(Clone, Copy)]
pub enum Apply {
    /// Refuse the call with an AAP error instead of running the skill.
    Refuse(fn(&Args) -> AapError),
    /// The same, with something else said in HTTP around the JSON-RPC error.
    RefuseHttp(fn(&Args) -> (AapError, HttpOverride)),
    /// Change how the dealer behaves for this call.
    Behave(fn(&Args) -> Behaviour),
    /// Rewrite the finished JSON-RPC reply.
    Refine(fn(&Args, &AnswerContext<'_>, &mut Draw, &mut Vec<u8>)),
    /// The same, of its payload, whatever envelope that is in.
    RefinePayload(fn(&Args, &AnswerContext<'_>, &mut Draw, &mut Vec<u8>)),
    /// The same, with what HTTP says around it.
    RefineHttp(fn(&Args, &AnswerContext<'_>, &mut Draw, &mut Vec<u8>) -> HttpOverride),
    /// Rewrite the reply that lists MCP's tools.
    RefineTools(fn(&Args, &AnswerContext<'_>, &mut Draw, &mut Vec<u8>)),
    /// Rewrite the agent card.
    RefineCard(fn(&Args, &AnswerContext<'_>, &mut Draw, &mut Vec<u8>) -> HttpOverride),
    /// Say something else in HTTP.
    Http(fn(&Args) -> HttpOverride),
    /// Do not run the skill at all, and play this script over no bytes: the request never reached the dealer.
    Lose(fn(&Args, &mut Draw) -> Script),
    /// Play this script over no bytes as soon as a connection is accepted. Asked for by a request, whose connection was
    /// accepted long ago, it is played in place of the reply.
    Accept(fn(&Args, &mut Draw) -> Script),
    /// Deliver the reply's bytes (head and body, as they would go out) in another way.
    Deliver(fn(&Args, &mut Draw) -> Script),
    /// Wait. `in_flight` is the number of requests being answered, `age` the time since the plan took force.
    Delay(fn(&Args, &mut Draw, DelayFacts) -> Duration),
}

/// What a delay may depend on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DelayFacts {
    /// Requests being answered, this one included.
    pub in_flight: u64,
    /// Traffic time since the plan took force, in nanoseconds.
    pub age_ns: u64,
}

impl Apply {
    /// The slot that this way of applying takes.
    pub fn slot(self) -> Slot {
        match self {
            Apply::Deliver(_) | Apply::Lose(_) | Apply::Accept(_) => Slot::Delivery,
            Apply::Delay(_) => Slot::Delay,
            _ => Slot::Answer,
        }
    }
}

/// An entry of the registry.
#[derive(Clone, Copy)]
pub struct EffectInfo {
    /// The name, such as `rate_limited`.
    pub name: &'static str,
    /// The family: business, conversation, envelope, discovery, http, transport, time, mcp.
    pub family: &'static str,
    /// Its parameters.
    pub params: &'static [Param],
    /// Whether a dealer may do this.
    pub lawfulness: Lawfulness,
    /// What a client sees, in a sentence.
    pub sees: &'static str,
    /// The class that it has by itself, whatever triggers it.
    pub class: Class,
    /// The interfaces whose calls it can touch.
    pub bindings: Bindings,
    /// How it is applied.
    pub apply: Apply,
}

impl std::fmt::Debug for EffectInfo {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("EffectInfo").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The arguments of an effect: one value for each parameter, defaults filled in.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Args {
    values: Vec<(&'static str, Option<Arg>)>,
}

impl Args {
    /// The arguments with these values, in the order of the parameters.
    pub fn new(values: Vec<(&'static str, Option<Arg>)>) -> Args {
        Args { values }
    }

    /// The values that were given or have a default, in the order of the parameters.
    pub fn iter(&self) -> impl Iterator<Item = (&'static str, &Arg)> {
        self.values.iter().filter_map(|(name, value)| Some((*name, value.as_ref()?)))
    }

    fn get(&self, name: &str) -> Option<&Arg> {
        self.values.iter().find(|(known, _)| *known == name)?.1.as_ref()
    }

    /// Whether a value was given or has a default.
    pub fn has(&self, name: &str) -> bool {
        self.get(name).is_some()
    }

    /// A duration in nanoseconds; 0 when there is none.
    pub fn duration_ns(&self, name: &str) -> u64 {
        match self.get(name) {
            Some(Arg::Duration(value)) => *value,
            _ => 0,
        }
    }

    /// A whole number; 0 when there is none.
    pub fn integer(&self, name: &str) -> i64 {
        match self.get(name) {
            Some(Arg::Integer(value)) => *value,
            _ => 0,
        }
    }

    /// A number; 0 when there is none.
    pub fn number(&self, name: &str) -> f64 {
        match self.get(name) {
            Some(Arg::Number(value)) => *value,
            Some(Arg::Integer(value)) => *value as f64,
            _ => 0.0,
        }
    }

    /// A word or text; empty when there is none.
    pub fn text(&self, name: &str) -> &str {
        match self.get(name) {
            Some(Arg::Text(value)) => value,
            _ => "",
        }
    }

    /// A size in bytes; 0 when there is none.
    pub fn bytes(&self, name: &str) -> u64 {
        match self.get(name) {
            Some(Arg::Bytes(value)) => *value,
            Some(Arg::Integer(value)) => u64::try_from(*value).unwrap_or(0),
            _ => 0,
        }
    }
}

/// An effect with its arguments.
#[derive(Debug, Clone)]
pub struct Effect {
    /// What it is.
    pub info: &'static EffectInfo,
    /// Its arguments.
    pub args: Args,
}
