//! What happened to a request, from the bytes of its reply: cheap, and right about what it looks at.

mod classify;
mod mcp;
mod pap;
mod reply;
mod scan;
mod schema;
mod skip;
mod word;

use std::borrow::Cow;
use std::fmt;

pub use classify::{Expectation, classify};
pub(crate) use scan::{NotJson, Scanner};
pub(crate) use schema::{Schema, Validate};
pub(crate) use word::word;

use crate::transport::Fault;

/// What happened to a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// A reply of the skill that was asked.
    Ok,
    /// An AAP error: an entry with AAP's `@type` in `error.data`, a tool's result that is one, or a PAP reply that is one. The
    /// number or status beside it does not matter.
    Aap(Box<str>),
    /// An error of A2A, without such an entry.
    A2a(i64),
    /// An error of JSON-RPC, without such an entry.
    Rpc(i64),
    /// An HTTP status other than 2xx, with a body that says nothing better.
    Http(u16),
    /// No whole reply came, or not in time.
    Transport(Fault),
    /// The reply came, but a check of the scenario failed.
    Check(Box<str>),
    /// The reply breaks a rule of HTTP, JSON-RPC, A2A or AAP.
    Protocol(Breach),
}

/// A rule that a reply broke.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Breach {
    /// The body is no JSON.
    NotJson,
    /// The `Content-Type` of the reply is not JSON.
    ContentType,
    /// The body is compressed, which no request asked for.
    ContentEncoding,
    /// No JSON-RPC reply: no `"jsonrpc":"2.0"`, or not exactly one of `result` and `error`.
    Envelope,
    /// `result` or `error` beside the other as a null member.
    NullMember,
    /// The id is not the one that was sent, in value and type.
    Id,
    /// `error` lacks a code or text, or its `data` is no array of typed objects, or the AAP entry has no code.
    ErrorShape,
    /// `result` is the message itself and not `{"message": …}`.
    FlatResult,
    /// `result` holds a task: AAP has none.
    Task,
    /// `result` holds no message.
    ResultShape,
    /// The message has no id, or the one of the request.
    MessageId,
    /// The message has no `contextId`, or another than the request's.
    ContextId,
    /// The role is not `ROLE_AGENT`.
    Role,
    /// The first part is no data.
    Parts,
    /// The first part has another media type than the skill's replies.
    MediaType,
    /// The payload's `type` is not that of the skill's replies.
    PayloadType,
    /// A tool's result does not say that it is complete.
    ResultType,
    /// A tool's result has no list of content.
    Content,
    /// A tool's result has no structured content, or none that is an object.
    StructuredContent,
    /// The payload does not have the shape of the skill's replies; looked at with `--validate` only.
    Schema,
}

impl Breach {
    /// The breach's name in outcomes: `protocol.<name>`.
    pub fn label(self) -> &'static str {
        match self {
            Breach::NotJson => "protocol.not_json",
            Breach::ContentType => "protocol.content_type",
            Breach::ContentEncoding => "protocol.content_encoding",
            Breach::Envelope => "protocol.envelope",
            Breach::NullMember => "protocol.null_member",
            Breach::Id => "protocol.id",
            Breach::ErrorShape => "protocol.error_shape",
            Breach::FlatResult => "protocol.flat_result",
            Breach::Task => "protocol.task",
            Breach::ResultShape => "protocol.result_shape",
            Breach::MessageId => "protocol.message_id",
            Breach::ContextId => "protocol.context_id",
            Breach::Role => "protocol.role",
            Breach::Parts => "protocol.parts",
            Breach::MediaType => "protocol.media_type",
            Breach::PayloadType => "protocol.payload_type",
            Breach::ResultType => "protocol.result_type",
            Breach::Content => "protocol.content",
            Breach::StructuredContent => "protocol.structured_content",
            Breach::Schema => "protocol.schema",
        }
    }
}

impl Outcome {
    /// The outcome's name in scenarios, results and thresholds.
    pub fn label(&self) -> Cow<'static, str> {
        match self {
            Outcome::Ok => Cow::Borrowed("ok"),
            Outcome::Aap(code) => Cow::Owned(format!("aap.{code}")),
            Outcome::A2a(code) => Cow::Owned(format!("a2a.{code}")),
            Outcome::Rpc(code) => Cow::Owned(format!("rpc.{code}")),
            Outcome::Http(status) => Cow::Owned(format!("http.{status}")),
            Outcome::Transport(fault) => Cow::Borrowed(fault.label()),
            Outcome::Check(name) => Cow::Owned(format!("check.{name}")),
            Outcome::Protocol(breach) => Cow::Borrowed(breach.label()),
        }
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.label())
    }
}
