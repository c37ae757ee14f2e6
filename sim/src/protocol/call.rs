//! A call: the JSON-RPC envelope and the A2A Message in it (AAP digest, section c).

use super::binding::Binding;
use super::contract::Features;
use super::error::{AapCode, AapError, Failure, ProtocolError, shorten};
use super::format::Format;
use super::json::{Kind, Value};
use super::shape::{Field, Record, Shape, TEXT, TEXTS, text};
use super::skill::Skill;
use super::validate::{Faults, validate};
use crate::stable::stable_hash;

/// The one method that AAP uses.
pub const METHOD: &str = "SendMessage";

/// What an envelope says, before its parameters are looked at.
#[derive(Debug, Clone, Copy)]
pub struct Envelope<'a> {
    /// The request's `id`, as raw JSON.
    pub id: &'a str,
    /// The method.
    pub method: &'a str,
    /// The parameters, if any.
    pub params: Option<Value<'a>>,
}

/// An envelope that is refused, and the raw `id` to answer with.
#[derive(Debug)]
pub struct BadEnvelope<'a> {
    /// The request's `id` if a valid one could be read, else `null`.
    pub id: &'a str,
    /// -32600.
    pub error: ProtocolError,
}

/// Reads one JSON-RPC request object.
///
/// # Errors
/// -32600 for what JSON-RPC 2.0 does not call a request. A request without `id` is refused too: it would be a
/// notification, and AAP has no call whose answer nobody needs.
pub fn read_envelope(value: Value<'_>) -> Result<Envelope<'_>, BadEnvelope<'_>> {
    let refuse = |id, why| Err(BadEnvelope { id, error: ProtocolError::invalid_request(why) });
    if value.kind() != Kind::Record {
        return refuse("null", "a request is a JSON object");
    }
    let [id, version, method, params] = value.gather(["id", "jsonrpc", "method", "params"]);
    let id = match id {
        None => return refuse("null", "\"id\" is missing (notifications are not served)"),
        Some(id) => match (id.kind(), id.as_raw()) {
            (Kind::Text | Kind::Number | Kind::Null, Some(raw)) if is_whole(raw) => raw,
            _ => return refuse("null", "\"id\" must be a string, a number or null"),
        },
    };
    if version.and_then(Value::as_str) != Some("2.0") {
        return refuse(id, "\"jsonrpc\" must be the string \"2.0\"");
    }
    match method.and_then(Value::as_str) {
        Some(method) => Ok(Envelope { id, method, params }),
        None => refuse(id, "\"method\" must be a string"),
    }
}

/// A raw `id` is skipped over, not decoded, by the parser; half of a surrogate pair would come back as text that no
/// client can read.
pub(super) fn is_whole(raw: &str) -> bool {
    !raw.contains("\\u") || serde_json::from_str::<String>(raw).is_ok()
}

/// Checks the method.
///
/// # Errors
/// -32004 and -32003 for operations of A2A that AAP leaves out, -32601 for anything else.
pub fn check_method(method: &str) -> Result<(), ProtocolError> {
    match method {
        METHOD => Ok(()),
        "SendStreamingMessage"
        | "SubscribeToTask"
        | "GetExtendedAgentCard"
        | "GetTask"
        | "ListTasks"
        | "CancelTask" => Err(ProtocolError::unsupported_operation(method)),
        "CreateTaskPushNotificationConfig"
        | "GetTaskPushNotificationConfig"
        | "ListTaskPushNotificationConfigs"
        | "DeleteTaskPushNotificationConfig" => Err(ProtocolError::push_not_supported(method)),
        _ => Err(ProtocolError::method_not_found(method)),
    }
}

/// The parts of a Message that matter to AAP.
#[derive(Debug, Clone, Copy)]
pub struct Message<'a> {
    /// The caller's `messageId`.
    pub message_id: &'a str,
    /// The caller's `contextId`; `None` when absent or empty, for a new conversation.
    pub context_id: Option<&'a str>,
    /// The AAP payload: `parts[0].data`.
    pub payload: Value<'a>,
    /// The media type of the first part.
    pub media_type: Option<&'a str>,
    /// `configuration.acceptedOutputModes`.
    accepted: Option<Value<'a>>,
}

const MESSAGE_FIELDS: &[Field] = &[
    Field::required("messageId", &text(1, usize::MAX, Format::Any)),
    Field::required("role", &Shape::Enum(&["ROLE_USER"])),
    Field::required("parts", &PARTS),
    Field::optional("contextId", &Shape::OrNull(&TEXT)),
    Field::optional("taskId", &Shape::OrNull(&TEXT)),
    Field::optional("metadata", &ANY_OBJECT),
    Field::optional("extensions", &Shape::OrNull(&TEXTS)),
    Field::optional("referenceTaskIds", &Shape::OrNull(&TEXTS)),
];
const ANY_OBJECT: Shape = Shape::OrNull(&Shape::Map(&Shape::Any));
const PARTS: Shape = Shape::List { items: &Shape::Any, min: 1, max: usize::MAX, unique: false };
const MESSAGE: Record = Record { fields: MESSAGE_FIELDS, open: true, any_of: &[] };
const CONFIGURATION: Record = Record {
    fields: &[Field::optional("acceptedOutputModes", &Shape::OrNull(&TEXTS))],
    open: true,
    any_of: &[],
};
/// Unknown members are ignored (A2A 5.7), and ProtoJSON reads a null member as an absent one.
static PARAMS: Shape = Shape::Record(&Record {
    fields: &[
        Field::required("message", &Shape::Record(&MESSAGE)),
        Field::optional("configuration", &Shape::OrNull(&Shape::Record(&CONFIGURATION))),
        Field::optional("metadata", &ANY_OBJECT),
        Field::optional("tenant", &Shape::OrNull(&TEXT)),
    ],
    open: true,
    any_of: &[],
});

/// Reads the parameters of `SendMessage`.
///
/// # Errors
/// -32602 with every broken rule of A2A's Message; -32001 for a `taskId`, since no tasks are kept.
pub fn read_message<'a>(
    params: Option<Value<'a>>,
    features: &Features,
) -> Result<Message<'a>, ProtocolError> {
    let Some(params) = params else {
        let mut faults = Faults::default();
        faults.push(String::new(), "required", "must have required property 'params'".to_owned());
        return Err(ProtocolError::invalid_params(faults));
    };
    let mut faults = validate(params, &PARAMS, features, "/params");
    let [message, configuration] = params.gather(["message", "configuration"]);
    let [parts, message_id, context_id, task_id] =
        message.map_or([None; 4], |message| message.gather(["parts", "messageId", "contextId", "taskId"]));
    let [payload, media_type] = parts
        .and_then(|parts| parts.items().next())
        .map_or([None; 2], |part| check_first_part(part, &mut faults));
    let (Some(payload), true) = (payload, faults.is_empty()) else {
        return Err(ProtocolError::invalid_params(faults));
    };
    let text = |member: Option<Value<'a>>| member.and_then(Value::as_str).filter(|text| !text.is_empty());
    if let Some(task_id) = text(task_id) {
        return Err(ProtocolError::task_not_found(task_id));
    }
    Ok(Message {
        message_id: text(message_id).unwrap_or_default(),
        context_id: text(context_id),
        payload,
        media_type: media_type.and_then(Value::as_str),
        accepted: configuration
            .and_then(|configuration| configuration.get("acceptedOutputModes"))
            .filter(|modes| !modes.is_empty()),
    })
}

/// The first part must be the typed DataPart; later ones are ignored, whatever they hold (seeds 000 and 003). Its `data` and
/// `mediaType`.
fn check_first_part<'a>(part: Value<'a>, faults: &mut Faults) -> [Option<Value<'a>>; 2] {
    const AT: &str = "/params/message/parts/0";
    if part.kind() != Kind::Record {
        faults.push(AT.to_owned(), "type", "must be object".to_owned());
        return [None; 2];
    }
    let [data, media_type, text, raw, url] = part.gather(["data", "mediaType", "text", "raw", "url"]);
    let others = [("text", text), ("raw", raw), ("url", url)];
    let is_given = |value: &Option<Value<'_>>| value.is_some_and(|value| !value.is_null());
    if data.is_none() || others.iter().any(|(_, value)| is_given(value)) {
        let given = others.iter().filter(|(_, value)| is_given(value)).map(|(name, _)| *name);
        let given: Vec<_> = given.chain(data.map(|_| "data")).collect();
        let error = if given.is_empty() {
            "must have \"data\"; the first part is the typed AAP DataPart".to_owned()
        } else {
            format!(
                "must have exactly one of text, raw, url and data, and that is data; got {}",
                given.join(", ")
            )
        };
        faults.push(AT.to_owned(), "oneOf", error);
    }
    match data {
        Some(data) if data.kind() != Kind::Record => {
            faults.push(format!("{AT}/data"), "type", "must be object".to_owned());
        }
        _ => {}
    }
    match media_type {
        Some(media_type) if !matches!(media_type.kind(), Kind::Text | Kind::Null) => {
            faults.push(format!("{AT}/mediaType"), "type", "must be string".to_owned());
        }
        _ => {}
    }
    [data, media_type]
}

/// A media type without its parameters.
fn essence(media_type: &str) -> &str {
    media_type.split(';').next().unwrap_or_default().trim()
}

fn is_media_type(given: &str, expected: &str) -> bool {
    given == expected || essence(given).eq_ignore_ascii_case(expected)
}

/// Chooses the skill by `data.type`, holding both media types to it.
///
/// # Errors
/// -32005 for a media type that does not fit, `UNSUPPORTED_SKILL` for a type that names no offered skill,
/// `SCHEMA_VALIDATION_FAILED` for a payload without a type.
pub fn choose_skill(message: &Message<'_>, offered: &[Skill]) -> Result<Skill, Failure> {
    let given = message.media_type.unwrap_or_default();
    let Some(request_type) = message.payload.get("type").and_then(Value::as_str) else {
        if !Skill::ALL.iter().any(|skill| is_media_type(given, skill.request_media_type())) {
            return Err(not_an_aap_request(given).into());
        }
        return Err(untyped(message.payload).into());
    };
    let Some(skill) = Skill::from_request_type(request_type) else {
        return Err(unsupported(request_type, offered).into());
    };
    if !is_media_type(given, skill.request_media_type()) {
        let expected = skill.request_media_type();
        let text =
            format!("A part of type {request_type} has the mediaType {expected}; got {:?}", shorten(given));
        return Err(ProtocolError::content_type(text, given, expected).into());
    }
    if let Some(modes) = message.accepted {
        let produced = skill.response_media_type();
        let accepts = |mode: &str| {
            is_media_type(mode, produced) || matches!(essence(mode), "*/*" | "application/*" | "*")
        };
        if !modes.items().filter_map(Value::as_str).any(accepts) {
            let wanted: Vec<_> = modes.items().filter_map(Value::as_str).take(8).collect();
            let wanted = wanted.join(", ");
            let text = format!("acceptedOutputModes must include {produced}; got {:?}", shorten(&wanted));
            return Err(ProtocolError::content_type(text, &wanted, produced).into());
        }
    }
    if !offered.contains(&skill) {
        return Err(unsupported(request_type, offered).into());
    }
    Ok(skill)
}

fn not_an_aap_request(given: &str) -> ProtocolError {
    let text = format!("The first part must be a typed AAP request; its mediaType is {:?}", shorten(given));
    let all: Vec<_> = Skill::ALL.iter().map(|skill| skill.request_media_type()).collect();
    ProtocolError::content_type(text, given, &all.join(", "))
}

fn untyped(payload: Value<'_>) -> AapError {
    let mut faults = Faults::default();
    match payload.get("type") {
        None => faults.push(String::new(), "required", "must have required property 'type'".to_owned()),
        Some(_) => faults.push("/type".to_owned(), "type", "must be string".to_owned()),
    }
    let text = "the payload's \"type\" selects the skill, such as inventory.search.request";
    AapError::faulty(AapCode::SchemaValidationFailed, text, faults)
}

fn unsupported(request_type: &str, offered: &[Skill]) -> AapError {
    let offered: Vec<_> = offered.iter().map(|skill| skill.request_type()).collect();
    let given: String = request_type.chars().take(80).collect();
    AapError::new(
        AapCode::UnsupportedSkill,
        format!("{given:?} is no skill of this dealer; it offers {}", offered.join(", ")),
    )
}

/// The payload of parameters that may not even be a Message; what a stable key is made of.
pub fn payload_of(params: Option<Value<'_>>) -> Option<Value<'_>> {
    params?.get("message")?.get("parts")?.items().next()?.get("data")
}

/// The payload of a body that came through a binding, which may be none of that binding's.
pub fn payload_in(binding: Binding, root: Value<'_>) -> Option<Value<'_>> {
    match binding {
        Binding::A2a => payload_of(root.get("params")),
        Binding::Mcp => root.get("params")?.get("arguments"),
        Binding::Pap => Some(root),
    }
}

/// The vehicle that a payload asks for.
pub fn vin_of(payload: Value<'_>) -> Option<&str> {
    let objects = [Some(payload), payload.get("filters"), payload.get("vehicle_of_interest")];
    objects.into_iter().flatten().find_map(|object| object.get("vin")?.as_str())
}

/// Members of a payload that change when a request is sent again; they take no part in its stable key.
const UNSTABLE: [&str; 4] = ["idempotency_key", "submitted_at", "granted_at", "expires_at"];

/// The stable key of a request that names none itself: a hash of dealer, skill and canonical payload without what changes
/// when it is sent again. `canonical` is a buffer.
pub fn stable_key(dealer: &str, skill: &str, payload: Option<Value<'_>>, canonical: &mut Vec<u8>) -> u64 {
    canonical.clear();
    canonical.extend_from_slice(dealer.as_bytes());
    canonical.extend_from_slice(skill.as_bytes());
    if let Some(payload) = payload {
        payload.write_canonical(&UNSTABLE, canonical);
    }
    named_key(canonical)
}

/// The stable key of a request that names it (`X-Sim-Key`).
pub fn named_key(name: &[u8]) -> u64 {
    stable_hash(2, name)
}

/// Checks a payload against its skill's shape.
///
/// # Errors
/// The code that fits the faults best (AAP digest, section e), with all of them.
pub fn check_payload(skill: Skill, payload: Value<'_>, features: &Features) -> Result<(), AapError> {
    let faults = validate(payload, super::payload::request(skill), features, "");
    if faults.is_empty() { Ok(()) } else { Err(classify(skill, faults)) }
}

/// Chooses the code for a payload's faults: consent first, since its codes tell a buyer what to ask the person for.
fn classify(skill: Skill, faults: Faults) -> AapError {
    let count = faults.len();
    let all = |test: fn(&super::validate::Fault) -> bool| faults.list.iter().all(test);
    let lacks_consent = |fault: &super::validate::Fault| {
        fault.at.is_empty() && fault.keyword == "required" && fault.error.ends_with("'consent'")
    };
    let of_lead = skill == Skill::LeadSubmit;
    let (code, text) = if of_lead && all(lacks_consent) {
        (
            AapCode::ContactConsentRequired,
            "a lead needs the person's consent; \"consent\" is missing".to_owned(),
        )
    } else if of_lead && all(|fault| fault.at == "/consent" || fault.at.starts_with("/consent/")) {
        (AapCode::InvalidConsent, format!("the consent is not valid: {}", summary(&faults)))
    } else if all(|fault| fault.keyword == "enum" && is_condition(&fault.at)) {
        (AapCode::InvalidCondition, format!("a condition is of the wrong vocabulary: {}", summary(&faults)))
    } else if all(|fault| {
        fault.keyword == "required" || (fault.keyword == "anyOf" && !is_attribute(&fault.at))
    }) {
        (AapCode::MissingRequiredField, format!("{count} required member(s) missing: {}", summary(&faults)))
    } else {
        let text = format!("{count} validation error(s); see details.errors[]: {}", summary(&faults));
        (AapCode::SchemaValidationFailed, text)
    };
    let error = AapError::faulty(code, text, faults);
    match code {
        AapCode::ContactConsentRequired => error
            .with("missing", super::error::Detail::Text("consent".into()))
            .with("expected_scope", super::error::Detail::Texts(vec!["lead_submission".into()])),
        _ => error,
    }
}

fn is_condition(pointer: &str) -> bool {
    pointer.starts_with("/filters/condition/") || pointer.ends_with("/condition")
}

fn is_attribute(pointer: &str) -> bool {
    pointer.contains("/other_attributes/")
}

/// The first few faults in a sentence; the list itself is beside it.
fn summary(faults: &Faults) -> String {
    const SHOWN: usize = 3;
    let shown: Vec<_> = faults
        .list
        .iter()
        .take(SHOWN)
        .map(|fault| {
            let at: String = fault.at.chars().take(80).collect();
            let at = if at.is_empty() { "the payload" } else { at.as_str() };
            format!("{at} {}", fault.error)
        })
        .collect();
    let more = faults.len() - shown.len();
    let tail = if more > 0 { format!("; and {more} more") } else { String::new() };
    let unlisted = match faults.unlisted {
        0 => String::new(),
        count => format!(" (the last {count} are not listed)"),
    };
    format!("{}{tail}{unlisted}", shown.join("; "))
}

/// Writes the reply of a successful call up to its payload.
pub fn open_reply(out: &mut Vec<u8>, id: &str, message_id: &str, context_id: &str) {
    out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
    out.extend_from_slice(id.as_bytes());
    out.extend_from_slice(b",\"result\":{\"message\":{");
    super::write::member(out, true, "messageId", message_id);
    super::write::member(out, false, "contextId", context_id);
    out.extend_from_slice(b",\"role\":\"ROLE_AGENT\",\"parts\":[{\"data\":");
}

/// Writes the reply of a successful call from behind its payload.
pub fn close_reply(out: &mut Vec<u8>, skill: Skill) {
    out.extend_from_slice(b",\"mediaType\":\"");
    out.extend_from_slice(skill.response_media_type().as_bytes());
    out.extend_from_slice(b"\"}]}}}");
}
