//! Requests of the suite: the ordinary ones, and the probes of `scenarios/conformance/requests.json`, which say in what they
//! differ from an ordinary one.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use dealer_sim::protocol::merge::merge_patch;
use dealer_sim::protocol::{Skill, headers};
use serde::Deserialize;
use serde_json::{Value, json};

use super::evidence::cut;

/// The probes, by the rule that each belongs to.
const PROBES: &str = include_str!("../../../scenarios/conformance/requests.json");

/// In what a probe differs from an ordinary request.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub(super) struct Probe {
    /// The skill called; `dealer.information` unless given.
    skill: Option<String>,
    /// Merged over the ordinary payload (RFC 7396: null takes a member away).
    request: Option<Value>,
    /// Header fields in place of the ordinary ones: null takes one away, a list sends several lines.
    headers: BTreeMap<String, Value>,
    /// Values at JSON Pointers of the envelope.
    set: BTreeMap<String, Value>,
    /// Members taken away, by JSON Pointer of the envelope.
    remove: Vec<String>,
    /// The whole body, as text.
    body: Option<String>,
    /// The whole body, as bytes in hexadecimal.
    body_hex: Option<String>,
    /// Put behind the endpoint's URL.
    query: Option<String>,
    /// A text that is repeated in place of `{{long}}`.
    long: usize,
    /// Makes the first part's payload a nest of so many arrays.
    nested: usize,
}

/// The probes.
pub(super) fn probes() -> Result<BTreeMap<String, Probe>, serde_json::Error> {
    serde_json::from_str(PROBES)
}

impl Probe {
    /// Whether it speaks of a vehicle that was listed.
    pub(super) fn needs_vehicle(&self) -> bool {
        self.request.as_ref().is_some_and(|request| request.to_string().contains("{{vin}}"))
    }

    pub(super) fn skill(&self) -> Skill {
        self.skill.as_deref().and_then(Skill::from_id).unwrap_or(Skill::DealerInformation)
    }
}

/// Values that stand for `{{name}}` in a probe.
pub(super) type Names = BTreeMap<&'static str, String>;

/// A request that is ready to be sent.
#[derive(Debug, Clone)]
pub(super) struct Draft {
    pub(super) skill: Skill,
    pub(super) envelope: Value,
    pub(super) headers: Vec<(String, String)>,
    /// In place of the envelope.
    pub(super) body: Option<Vec<u8>>,
    pub(super) query: Option<String>,
}

/// An ordinary request.
pub(super) fn ordinary(
    skill: Skill,
    payload: Value,
    id: &str,
    message_id: &str,
    uri: &str,
    tenant: Option<&str>,
) -> Draft {
    let mut payload = payload;
    if let Value::Object(members) = &mut payload {
        members.insert("type".to_owned(), json!(skill.request_type()));
    }
    let mut envelope = json!({
        "jsonrpc": "2.0", "id": id, "method": "SendMessage",
        "params": {
            "message": { "messageId": message_id, "role": "ROLE_USER",
                "parts": [{ "data": payload, "mediaType": skill.request_media_type() }] },
            "configuration": { "acceptedOutputModes": [skill.response_media_type()] },
        },
    });
    if let Some(tenant) = tenant {
        envelope["params"]["tenant"] = json!(tenant);
    }
    Draft {
        skill,
        envelope,
        headers: usual_headers(uri).map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec(),
        body: None,
        query: None,
    }
}

fn usual_headers(uri: &str) -> [(&str, &str); 3] {
    [
        ("Content-Type", "application/json"),
        (headers::VERSION, headers::SERVED_VERSION),
        (headers::EXTENSIONS, uri),
    ]
}

/// A lead that a dealer takes: a person who does not exist (RFC 2606, and a number reserved for fiction).
pub(super) fn lead(granted_at: &str, tag: &str) -> Value {
    json!({
        "customer": { "first_name": "Conformance", "last_name": "Test", "email": format!("conform-{tag}@example.test"),
            "preferred_contact": "email" },
        "consent": { "granted_at": granted_at, "allowed_channels": ["email"],
            "consent_text": "This is a test of conformance. Please do not contact anyone.", "scope": ["lead_submission"] },
        "source_agent": { "name": "dealer-loadgen conform (test)" },
        "message": "This is a test of conformance. Please ignore it.",
    })
}

impl Draft {
    /// The probe over this ordinary request.
    pub(super) fn with(mut self, probe: &Probe, names: &Names) -> Draft {
        let fill = |value: &Value| filled(value, names, probe.long);
        if let Some(request) = &probe.request
            && let Some(payload) = self.envelope.pointer_mut("/params/message/parts/0/data")
        {
            merge_patch(payload, &fill(request));
        }
        for (pointer, value) in &probe.set {
            put(&mut self.envelope, pointer, fill(value));
        }
        for pointer in &probe.remove {
            take(&mut self.envelope, pointer);
        }
        if probe.nested > 0 {
            let nest = format!("{}{}", "[".repeat(probe.nested), "]".repeat(probe.nested));
            let text = self.envelope.to_string();
            self.body =
                Some(text.replacen("\"params\":{", &format!("\"params\":{{\"x\":{nest},"), 1).into_bytes());
        }
        for (name, value) in &probe.headers {
            self.headers.retain(|(own, _)| !own.eq_ignore_ascii_case(name));
            let lines = match fill(value) {
                Value::String(line) => vec![Value::String(line)],
                Value::Array(lines) => lines,
                _ => Vec::new(),
            };
            let lines = lines.iter().filter_map(Value::as_str);
            self.headers.extend(lines.map(|line| (name.clone(), line.to_owned())));
        }
        if let Some(body) = &probe.body {
            self.body = fill(&json!(body)).as_str().map(|text| text.as_bytes().to_vec());
        }
        if let Some(hex) = &probe.body_hex {
            self.body = Some(bytes(hex));
        }
        self.query.clone_from(&probe.query);
        self
    }

    /// The request as a proof shows it: the header lines in which it is no ordinary one, and the start of its body. Headers
    /// of the user's own, which may be secrets, are not among them.
    pub(super) fn told(&self, uri: &str) -> String {
        let usual = usual_headers(uri);
        let mut parts: Vec<String> = self.query.iter().map(|query| format!("query {query}")).collect();
        for (name, _) in usual {
            if !self.headers.iter().any(|(own, _)| own == name) {
                parts.push(format!("no {name}"));
            }
        }
        let unusual = self.headers.iter().filter(|(name, value)| !usual.contains(&(name, value)));
        parts.extend(unusual.map(|(name, value)| format!("{name}: {value}")));
        parts.push(cut(&String::from_utf8_lossy(&self.body())));
        parts.join(" | ")
    }

    /// The body's bytes.
    pub(super) fn body(&self) -> Vec<u8> {
        self.body.clone().unwrap_or_else(|| self.envelope.to_string().into_bytes())
    }

    /// The whole request, on a connection of its own.
    pub(super) fn bytes(&self, target: &str, authority: &str, own_lines: &str) -> Vec<u8> {
        let body = self.body();
        let mut head = String::new();
        let target = match &self.query {
            Some(query) => format!("{target}{}{query}", if target.contains('?') { '&' } else { '?' }),
            None => target.to_owned(),
        };
        // Writing to a String cannot fail.
        let _ = write!(head, "POST {target} HTTP/1.1\r\nHost: {authority}\r\n");
        for (name, value) in &self.headers {
            let _ = write!(head, "{name}: {value}\r\n");
        }
        let _ = write!(
            head,
            "{own_lines}Accept-Encoding: identity\r\nConnection: close\r\nContent-Length: {}\r\n\r\n",
            body.len()
        );
        [head.as_bytes(), &body].concat()
    }
}

fn bytes(hex: &str) -> Vec<u8> {
    let digits: Vec<u8> = hex.chars().filter_map(|c| c.to_digit(16)).map(|digit| digit as u8).collect();
    digits.chunks(2).map(|pair| pair.iter().fold(0, |byte, digit| byte << 4 | digit)).collect()
}

/// The value with names filled in. A string that is one name of a number becomes that number.
fn filled(value: &Value, names: &Names, long: usize) -> Value {
    match value {
        Value::String(text) => {
            let mut text = text.replace("{{long}}", &"x".repeat(long));
            for (name, value) in names {
                text = text.replace(&format!("{{{{{name}}}}}"), value);
            }
            Value::String(text)
        }
        Value::Array(items) => items.iter().map(|item| filled(item, names, long)).collect(),
        Value::Object(members) => {
            let filled = members.iter().map(|(name, value)| (name.clone(), filled(value, names, long)));
            Value::Object(filled.collect())
        }
        other => other.clone(),
    }
}

fn split(pointer: &str) -> (&str, &str) {
    pointer.rsplit_once('/').unwrap_or(("", pointer))
}

fn put(envelope: &mut Value, pointer: &str, value: Value) {
    let (parent, name) = split(pointer);
    match envelope.pointer_mut(parent) {
        Some(Value::Object(members)) => {
            members.insert(name.to_owned(), value);
        }
        Some(Value::Array(items)) => match name.parse::<usize>() {
            Ok(index) if index < items.len() => items[index] = value,
            _ => items.push(value),
        },
        _ => {}
    }
}

fn take(envelope: &mut Value, pointer: &str) {
    let (parent, name) = split(pointer);
    match envelope.pointer_mut(parent) {
        Some(Value::Object(members)) => {
            members.remove(name);
        }
        Some(Value::Array(items)) => {
            if let Ok(index) = name.parse::<usize>()
                && index < items.len()
            {
                items.remove(index);
            }
        }
        _ => {}
    }
}
