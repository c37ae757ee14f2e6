//! Errors on the wire. Two kinds: those of JSON-RPC and A2A, raised before the AAP payload is read, and those of a
//! skill, which carry the typed `aap.error` entry (AAP digest, section e). The only place that knows their numbers, but
//! for the numbers of skill errors, which a contract holds.

use super::contract::{Contract, ErrorShape};
use super::validate::Faults;
use super::write;

const ERROR_INFO: &str = "type.googleapis.com/google.rpc.ErrorInfo";
const BAD_REQUEST: &str = "type.googleapis.com/google.rpc.BadRequest";
const A2A_DOMAIN: &str = "a2a-protocol.org";
const AAP_DOMAIN: &str = "autoagentprotocol.org";
/// The `@type` of the typed entry, free of any version.
pub const AAP_ERROR_TYPE: &str = "https://autoagentprotocol.org/extensions/aap/error";

/// The `type` of the typed entry; where `error.data` is that entry alone (1.x), it is told by this.
pub const AAP_ERROR_KIND: &str = "aap.error";

/// JSON-RPC and A2A error numbers.
pub mod code {
    /// Invalid JSON.
    pub const PARSE: i32 = -32700;
    /// Not a JSON-RPC request.
    pub const INVALID_REQUEST: i32 = -32600;
    /// No such method.
    pub const METHOD_NOT_FOUND: i32 = -32601;
    /// Invalid parameters.
    pub const INVALID_PARAMS: i32 = -32602;
    /// The dealer failed.
    pub const INTERNAL: i32 = -32603;
    /// A2A `TaskNotFoundError`.
    pub const TASK_NOT_FOUND: i32 = -32001;
    /// A2A `PushNotificationNotSupportedError`.
    pub const PUSH_NOT_SUPPORTED: i32 = -32003;
    /// A2A `UnsupportedOperationError`.
    pub const UNSUPPORTED_OPERATION: i32 = -32004;
    /// A2A `ContentTypeNotSupportedError`.
    pub const CONTENT_TYPE_NOT_SUPPORTED: i32 = -32005;
    /// A2A `ExtensionSupportRequiredError`.
    pub const EXTENSION_REQUIRED: i32 = -32008;
    /// A2A `VersionNotSupportedError`.
    pub const VERSION_NOT_SUPPORTED: i32 = -32009;
    /// Any application error.
    pub const APPLICATION: i32 = -32000;
    /// RATE_LIMITED of the 1.x contracts; A2A uses the number for a task that cannot be cancelled.
    pub const RATE_LIMITED_1_X: i32 = -32002;
}

/// The twelve codes of AAP.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum AapCode {
    /// The payload breaks its schema.
    SchemaValidationFailed,
    /// Needed members are absent and nothing else is wrong.
    MissingRequiredField,
    /// A condition word of the wrong vocabulary.
    InvalidCondition,
    /// The skill is unknown or not offered.
    UnsupportedSkill,
    /// The identifiers match nothing.
    VehicleNotFound,
    /// Known, but no longer listed.
    VehicleUnavailable,
    /// Consent is absent, or does not allow the needed channel.
    ContactConsentRequired,
    /// Consent is present but not valid.
    InvalidConsent,
    /// The time is impossible and there is no alternative.
    AppointmentTimeUnavailable,
    /// A key was used again with another payload.
    IdempotencyConflict,
    /// Over the dealer's quota.
    RateLimited,
    /// An unexpected fault of the dealer.
    InternalError,
}

impl AapCode {
    /// All codes, in the order of [`super::contract::Terms::numbers`].
    pub const ALL: [AapCode; 12] = [
        AapCode::SchemaValidationFailed,
        AapCode::MissingRequiredField,
        AapCode::InvalidCondition,
        AapCode::UnsupportedSkill,
        AapCode::VehicleNotFound,
        AapCode::VehicleUnavailable,
        AapCode::ContactConsentRequired,
        AapCode::InvalidConsent,
        AapCode::AppointmentTimeUnavailable,
        AapCode::IdempotencyConflict,
        AapCode::RateLimited,
        AapCode::InternalError,
    ];

    /// The name on the wire.
    pub fn name(self) -> &'static str {
        match self {
            AapCode::SchemaValidationFailed => "SCHEMA_VALIDATION_FAILED",
            AapCode::MissingRequiredField => "MISSING_REQUIRED_FIELD",
            AapCode::InvalidCondition => "INVALID_CONDITION",
            AapCode::UnsupportedSkill => "UNSUPPORTED_SKILL",
            AapCode::VehicleNotFound => "VEHICLE_NOT_FOUND",
            AapCode::VehicleUnavailable => "VEHICLE_UNAVAILABLE",
            AapCode::ContactConsentRequired => "CONTACT_CONSENT_REQUIRED",
            AapCode::InvalidConsent => "INVALID_CONSENT",
            AapCode::AppointmentTimeUnavailable => "APPOINTMENT_TIME_UNAVAILABLE",
            AapCode::IdempotencyConflict => "IDEMPOTENCY_CONFLICT",
            AapCode::RateLimited => "RATE_LIMITED",
            AapCode::InternalError => "INTERNAL_ERROR",
        }
    }

    /// The code with this name on the wire.
    pub fn from_name(name: &str) -> Option<AapCode> {
        AapCode::ALL.into_iter().find(|code| code.name() == name)
    }

    /// Whether the same request may succeed later; what a dealer says unless it has a reason.
    pub fn retryable(self) -> bool {
        matches!(self, AapCode::RateLimited | AapCode::InternalError)
    }
}

/// A value of `details`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Detail {
    /// A string.
    Text(String),
    /// An integer.
    Integer(i64),
    /// An array of strings.
    Texts(Vec<String>),
}

/// An error of a skill.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AapError {
    /// What went wrong.
    pub code: AapCode,
    /// A sentence for people.
    pub message: String,
    /// The faults of a payload; they become `details.errors` and BadRequest.
    pub faults: Faults,
    /// Further members of `details`. Integers also go into ErrorInfo's metadata, where the Python SDK can see them.
    pub details: Vec<(&'static str, Detail)>,
}

impl AapError {
    /// An error without details.
    pub fn new(code: AapCode, message: impl Into<String>) -> AapError {
        AapError { code, message: message.into(), faults: Faults::default(), details: Vec::new() }
    }

    /// An error of a payload that breaks its schema.
    pub fn faulty(code: AapCode, message: impl Into<String>, faults: Faults) -> AapError {
        AapError { faults, ..AapError::new(code, message) }
    }

    /// Adds a member of `details`.
    #[must_use]
    pub fn with(mut self, name: &'static str, detail: Detail) -> AapError {
        self.details.push((name, detail));
        self
    }
}

/// An error of JSON-RPC or A2A.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProtocolError {
    /// The JSON-RPC number.
    pub code: i32,
    /// A sentence for people.
    pub message: String,
    /// The reason of ErrorInfo; without one there is no `error.data`.
    pub reason: Option<&'static str>,
    /// The metadata of ErrorInfo.
    pub metadata: Vec<(&'static str, String)>,
    /// Faults of the parameters; they become BadRequest.
    pub faults: Faults,
}

impl ProtocolError {
    fn plain(code: i32, message: impl Into<String>) -> ProtocolError {
        ProtocolError {
            code,
            message: message.into(),
            reason: None,
            metadata: Vec::new(),
            faults: Faults::default(),
        }
    }

    fn a2a(code: i32, reason: &'static str, message: impl Into<String>) -> ProtocolError {
        ProtocolError { reason: Some(reason), ..ProtocolError::plain(code, message) }
    }

    fn with(mut self, name: &'static str, value: impl Into<String>) -> ProtocolError {
        self.metadata.push((name, value.into()));
        self
    }

    /// -32700: the body is not JSON.
    pub fn parse(why: &impl std::fmt::Display) -> ProtocolError {
        ProtocolError::plain(code::PARSE, format!("Invalid JSON payload: {why}"))
    }

    /// -32600: JSON, but not a JSON-RPC request.
    pub fn invalid_request(why: &str) -> ProtocolError {
        ProtocolError::plain(code::INVALID_REQUEST, format!("Request payload validation error: {why}"))
    }

    /// -32601.
    pub fn method_not_found(method: &str) -> ProtocolError {
        let method = shorten(method);
        ProtocolError::plain(
            code::METHOD_NOT_FOUND,
            format!("Method not found: {method:?}; an AAP call is SendMessage"),
        )
    }

    /// -32602: the parameters break a rule of A2A's Message.
    pub fn invalid_params(faults: Faults) -> ProtocolError {
        let first =
            faults.list.first().map(|fault| format!(": {} {}", fault.at, fault.error)).unwrap_or_default();
        let more = match faults.len() {
            0 | 1 => String::new(),
            count => format!(" (and {} more)", count - 1),
        };
        // Of an error that it knows, the Python SDK keeps the metadata and nothing else.
        let fields: Vec<_> =
            faults.list.iter().take(MAX_METADATA_FIELDS).map(|fault| fault.at.as_str()).collect();
        let error = ProtocolError::a2a(
            code::INVALID_PARAMS,
            "INVALID_PARAMS",
            format!("Invalid parameters{first}{more}"),
        )
        .with("fields", fields.join(" "));
        ProtocolError { faults, ..error }
    }

    /// -32602: the request asks for a fault that there is none of.
    pub fn bad_fault_header(why: &str) -> ProtocolError {
        ProtocolError::plain(code::INVALID_PARAMS, format!("Invalid parameters: {why}"))
    }

    /// -32602: a conversation that the dealer does not know, or no longer. A contextId that is not accepted is refused, never
    /// replaced (A2A 1.0, section 3.4.1).
    pub fn unknown_context() -> ProtocolError {
        let mut faults = Faults::default();
        let text = "names no conversation of this dealer; begin another without it";
        faults.push("/params/message/contextId".to_owned(), "contextId", text.to_owned());
        ProtocolError::invalid_params(faults)
    }

    /// -32001: with no tasks, no `taskId` names one.
    pub fn task_not_found(task_id: &str) -> ProtocolError {
        ProtocolError::a2a(
            code::TASK_NOT_FOUND,
            "TASK_NOT_FOUND",
            "Task not found: this agent answers with messages and keeps no tasks",
        )
        .with("taskId", shorten(task_id))
    }

    /// -32003.
    pub fn push_not_supported(method: &str) -> ProtocolError {
        ProtocolError::a2a(
            code::PUSH_NOT_SUPPORTED,
            "PUSH_NOTIFICATION_NOT_SUPPORTED",
            "Push notifications are not supported: the agent card declares none",
        )
        .with("operation", method)
    }

    /// -32004 for an A2A operation; a skill that is not offered is [`AapCode::UnsupportedSkill`].
    pub fn unsupported_operation(method: &str) -> ProtocolError {
        ProtocolError::a2a(
            code::UNSUPPORTED_OPERATION,
            "UNSUPPORTED_OPERATION",
            format!("{method} is not supported: this agent serves SendMessage only"),
        )
        .with("operation", method)
    }

    /// -32005; `given` is what was sent or asked for, `supported` what would do.
    pub fn content_type(message: String, given: &str, supported: &str) -> ProtocolError {
        ProtocolError::a2a(code::CONTENT_TYPE_NOT_SUPPORTED, "CONTENT_TYPE_NOT_SUPPORTED", message)
            .with("mediaType", shorten(given))
            .with("supported", supported)
    }

    /// -32008: neither bare nor guessing, the error says what to send (AAP digest, section b).
    pub fn extension_required(contract: Contract) -> ProtocolError {
        let uri = contract.extension_uri;
        ProtocolError::a2a(
            code::EXTENSION_REQUIRED,
            "EXTENSION_SUPPORT_REQUIRED",
            format!("Send {} with {uri} and retry.", super::headers::EXTENSIONS),
        )
        .with("extensionUri", uri)
        .with("requiredHeader", super::headers::EXTENSIONS)
    }

    /// -32009; `requested` is `None` when the header is absent.
    pub fn version_not_supported(requested: Option<&str>) -> ProtocolError {
        let message = match requested {
            None => "Send A2A-Version: 1.0 and retry; the header is absent.".to_owned(),
            Some("") => "Send A2A-Version: 1.0 and retry; an empty value means 0.3.".to_owned(),
            Some(version) => format!("Send A2A-Version: 1.0 and retry; got {:?}.", shorten(version)),
        };
        let error = ProtocolError::a2a(code::VERSION_NOT_SUPPORTED, "VERSION_NOT_SUPPORTED", message)
            .with("supportedVersions", "1.0");
        match requested {
            Some(version) => error.with("requestedVersion", shorten(version)),
            None => error,
        }
    }
}

/// Pointers that ErrorInfo's metadata names; the whole list is in BadRequest.
const MAX_METADATA_FIELDS: usize = 16;

/// What a caller sent, short enough to send back.
pub(crate) fn shorten(text: &str) -> String {
    const LONGEST: usize = 120;
    match text.char_indices().nth(LONGEST) {
        Some((at, _)) => format!("{}…", &text[..at]),
        None => text.to_owned(),
    }
}

/// Why a call is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Failure {
    /// By JSON-RPC or A2A.
    Protocol(ProtocolError),
    /// By a skill.
    Skill(AapError),
}

impl From<ProtocolError> for Failure {
    fn from(error: ProtocolError) -> Failure {
        Failure::Protocol(error)
    }
}

impl From<AapError> for Failure {
    fn from(error: AapError) -> Failure {
        Failure::Skill(error)
    }
}

/// Writes the JSON-RPC reply of a protocol error. `id` is raw JSON.
pub fn write_protocol_error(out: &mut Vec<u8>, id: &str, error: &ProtocolError) {
    open(out, id, error.code, &error.message);
    if let Some(reason) = error.reason {
        out.extend_from_slice(b",\"data\":[");
        write_error_info(out, reason, A2A_DOMAIN, error.metadata.iter().map(|(n, v)| (*n, v.as_str())));
        write_bad_request(out, &error.faults);
        out.push(b']');
    }
    out.extend_from_slice(b"}}");
}

/// What makes one occurrence of an error unique.
#[derive(Debug, Clone, Copy)]
pub struct Occurrence<'a> {
    /// A new identifier, such as `err_01…`.
    pub error_id: &'a str,
    /// RFC 3339, with offset.
    pub created_at: &'a str,
}

/// Writes the JSON-RPC reply of a skill error under a contract. `id` is raw JSON.
pub fn write_aap_error(
    out: &mut Vec<u8>,
    id: &str,
    error: &AapError,
    contract: Contract,
    occurrence: Occurrence<'_>,
) {
    // The Python SDK keeps nothing of an unknown number but this text, so the code leads it.
    let message = format!("{}: {}", error.code.name(), error.message);
    open(out, id, contract.number(error.code), &message);
    out.extend_from_slice(b",\"data\":");
    match contract.error_shape {
        ErrorShape::Object => write_typed_error(out, error, contract, occurrence),
        ErrorShape::Array => {
            out.push(b'[');
            write_skill_info(out, error, occurrence);
            write_bad_request(out, &error.faults);
            out.push(b',');
            write_typed_error(out, error, contract, occurrence);
            out.push(b']');
        }
    }
    out.extend_from_slice(b"}}");
}

/// Writes the typed entry of a skill error alone, for protocols that have no error of their own around it.
pub fn write_typed_error(
    out: &mut Vec<u8>,
    error: &AapError,
    contract: Contract,
    occurrence: Occurrence<'_>,
) {
    out.push(b'{');
    let is_array = contract.error_shape == ErrorShape::Array;
    if is_array {
        write::member(out, true, "@type", AAP_ERROR_TYPE);
    }
    write_typed(out, !is_array, error, occurrence);
}

fn open(out: &mut Vec<u8>, id: &str, code: i32, message: &str) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id.as_bytes());
    out.extend_from_slice(b",\"error\":{\"code\":");
    write::integer(out, i64::from(code));
    out.extend_from_slice(b",\"message\":");
    write::string(out, message);
}

fn write_error_info<'a>(
    out: &mut Vec<u8>,
    reason: &str,
    domain: &str,
    metadata: impl Iterator<Item = (&'a str, &'a str)>,
) {
    out.push(b'{');
    write::member(out, true, "@type", ERROR_INFO);
    write::member(out, false, "reason", reason);
    write::member(out, false, "domain", domain);
    out.extend_from_slice(b",\"metadata\":{");
    for (index, (name, value)) in metadata.enumerate() {
        write::member(out, index == 0, name, value);
    }
    out.extend_from_slice(b"}}");
}

/// ErrorInfo of a skill error. Every metadata value is a string, whatever it is in the typed entry.
fn write_skill_info(out: &mut Vec<u8>, error: &AapError, occurrence: Occurrence<'_>) {
    let numbers: Vec<(&str, String)> = error
        .details
        .iter()
        .filter_map(|(name, detail)| match detail {
            Detail::Integer(value) => Some((*name, value.to_string())),
            _ => None,
        })
        .collect();
    let fixed = [
        ("code", error.code.name()),
        ("error_id", occurrence.error_id),
        ("retryable", if error.code.retryable() { "true" } else { "false" }),
        ("created_at", occurrence.created_at),
    ];
    let all = fixed.into_iter().chain(numbers.iter().map(|(name, value)| (*name, value.as_str())));
    write_error_info(out, error.code.name(), AAP_DOMAIN, all);
}

fn write_bad_request(out: &mut Vec<u8>, faults: &Faults) {
    if faults.is_empty() {
        return;
    }
    out.extend_from_slice(b",{");
    write::member(out, true, "@type", BAD_REQUEST);
    out.extend_from_slice(b",\"fieldViolations\":[");
    for (index, fault) in faults.list.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        out.push(b'{');
        write::member(out, true, "field", &fault.at);
        write::member(out, false, "description", &format!("{}: {}", fault.keyword, fault.error));
        out.push(b'}');
    }
    out.extend_from_slice(b"]}");
}

/// The typed entry from its `type` on; what comes first, if anything, is its `@type`. Its objects are closed, so `details` is
/// the only place for anything further.
fn write_typed(out: &mut Vec<u8>, first: bool, error: &AapError, occurrence: Occurrence<'_>) {
    write::member(out, first, "type", AAP_ERROR_KIND);
    write::member(out, false, "error_id", occurrence.error_id);
    write::member(out, false, "code", error.code.name());
    write::member(out, false, "message", &error.message);
    out.extend_from_slice(b",\"retryable\":");
    out.extend_from_slice(if error.code.retryable() { b"true" } else { b"false" });
    write::member(out, false, "created_at", occurrence.created_at);
    if !error.faults.is_empty() || !error.details.is_empty() {
        out.extend_from_slice(b",\"details\":{");
        write_details(out, error);
        out.push(b'}');
    }
    out.push(b'}');
}

fn write_details(out: &mut Vec<u8>, error: &AapError) {
    if !error.faults.is_empty() {
        out.extend_from_slice(b"\"errors\":[");
        for (index, fault) in error.faults.list.iter().enumerate() {
            if index > 0 {
                out.push(b',');
            }
            out.push(b'{');
            write::member(out, true, "instanceLocation", &fault.at);
            write::member(out, false, "keyword", fault.keyword);
            write::member(out, false, "error", &fault.error);
            out.push(b'}');
        }
        out.push(b']');
    }
    for (index, (name, detail)) in error.details.iter().enumerate() {
        if index > 0 || !error.faults.is_empty() {
            out.push(b',');
        }
        write::string(out, name);
        out.push(b':');
        match detail {
            Detail::Text(text) => write::string(out, text),
            Detail::Integer(value) => write::integer(out, *value),
            Detail::Texts(texts) => {
                out.push(b'[');
                for (index, text) in texts.iter().enumerate() {
                    if index > 0 {
                        out.push(b',');
                    }
                    write::string(out, text);
                }
                out.push(b']');
            }
        }
    }
}
