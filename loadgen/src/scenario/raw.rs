//! `raw`: what a step sends otherwise than the protocol asks for, for conformance and abuse.
//!
//! ```yaml
//! raw:
//!   method: PUT                              # of HTTP
//!   path: /elsewhere                         # path and query
//!   headers: { A2A-Version: "9.9", Accept: null }   # null takes one away
//!   envelope: { id: null, params: { message: { role: ROLE_AGENT } } }   # a JSON merge patch (RFC 7396)
//!   body: "{ no JSON"                        # or body_base64: the bytes as they are
//! ```

use dealer_sim::protocol::{Binding, Skill};
use serde_json::Value;

use super::compile::{Compiler, Place};
use super::expr::{Env, Template, append_text};
use super::fault::{Fault, quoted};
use super::members::{Members, map_of, text_of};
use super::yaml::Node;
use crate::base64;

/// Headers that one step replaces.
const MAX_HEADERS: usize = 100;
/// Members of `params` that only A2A's method has.
const A2A_PARAMS: [&str; 3] = ["message", "configuration", "tenant"];
/// What the names of headers begin with that one binding alone reads.
const OWNED: [(&str, Binding); 4] = [
    ("A2A-", Binding::A2a),
    ("MCP-", Binding::Mcp),
    ("Last-Event-ID", Binding::Mcp),
    ("Poppy-", Binding::Pap),
];
/// Methods whose replies are not read as others are.
const REFUSED_METHODS: [&str; 2] = ["HEAD", "CONNECT"];

/// What is replaced, compiled.
#[derive(Debug)]
pub(crate) struct Raw {
    method: Option<String>,
    path: Option<Template>,
    /// `None` takes the header away.
    headers: Vec<(String, Option<Template>)>,
    envelope: Option<Template>,
    body: Option<RawBody>,
    /// Whether what is sent may be a lead that no test mark can be put into.
    pub(crate) may_hide_lead: bool,
}

#[derive(Debug)]
enum RawBody {
    Text(Template),
    Bytes(Vec<u8>),
}

/// What one request sends otherwise.
#[derive(Debug, Default, PartialEq)]
pub struct Replaced {
    /// The method of HTTP.
    pub method: Option<String>,
    /// Path and query.
    pub path: Option<String>,
    /// Headers by name; `None` takes one away. Names are tokens and values hold no line ends.
    pub headers: Vec<(String, Option<String>)>,
    /// A merge patch for the JSON-RPC envelope.
    pub envelope: Option<Value>,
    /// The whole body.
    pub body: Option<Vec<u8>>,
}

impl Raw {
    pub(crate) fn replaced<'e>(&'e self, env: &mut Env<'e>) -> Replaced {
        let mut text = |template: &'e Template| {
            let mut text = String::new();
            append_text(&template.eval(env), &mut text);
            text
        };
        Replaced {
            method: self.method.clone(),
            path: self.path.as_ref().map(|path| target(&text(path))),
            headers: self
                .headers
                .iter()
                .map(|(name, value)| (name.clone(), value.as_ref().map(|value| line(&text(value)))))
                .collect(),
            body: self.body.as_ref().map(|body| match body {
                RawBody::Text(template) => text(template).into_bytes(),
                RawBody::Bytes(bytes) => bytes.clone(),
            }),
            envelope: self.envelope.as_ref().map(|envelope| envelope.eval(env).into_owned()),
        }
    }

    /// What of it makes no sense to a dealer that is reached through this binding, a clause each.
    pub(crate) fn unfit(&self, binding: Binding) -> Vec<String> {
        let mut faults = Vec::new();
        match (&self.envelope, binding) {
            (Some(_), Binding::Pap) => {
                let why = "`envelope`: PAP has none, the payload is the whole body; change it in `request` or give `body`";
                faults.push(why.to_owned());
            }
            (Some(Template::Map(members)), Binding::Mcp) => {
                let params = members.iter().find(|(name, _)| name == "params").map(|(_, params)| params);
                if let Some(Template::Map(params)) = params
                    && params.iter().any(|(name, _)| A2A_PARAMS.contains(&name.as_str()))
                {
                    let why = "`envelope`: its `params` are those of SendMessage; a tool's are `name`, `arguments`, `_meta`";
                    faults.push(why.to_owned());
                }
            }
            _ => {}
        }
        for (name, _) in &self.headers {
            let owner = OWNED.iter().find(|(start, _)| {
                name.get(..start.len()).is_some_and(|own| own.eq_ignore_ascii_case(start))
            });
            if let Some((_, owner)) = owner.filter(|(_, owner)| *owner != binding) {
                faults.push(format!("`headers`: {name} is read through {owner} alone", owner = owner.word()));
            }
        }
        faults
    }

    /// The members replaced, for people.
    pub(crate) fn names(&self) -> Vec<&'static str> {
        let given = [
            ("method", self.method.is_some()),
            ("path", self.path.is_some()),
            ("headers", !self.headers.is_empty()),
            ("envelope", self.envelope.is_some()),
            ("body", self.body.is_some()),
        ];
        given.into_iter().filter(|(_, given)| *given).map(|(name, _)| name).collect()
    }
}

/// A header's value without what would begin another header: a reply may have put it there.
fn line(value: &str) -> String {
    value.chars().map(|c| if c.is_control() && c != '\t' { ' ' } else { c }).collect()
}

/// A request's target without what would end its line.
fn target(path: &str) -> String {
    path.chars().map(|c| if c.is_control() || c == ' ' { '_' } else { c }).collect()
}

impl Compiler<'_, '_> {
    /// The value of `raw`.
    pub(super) fn raw(&mut self, node: &Node) -> Option<Raw> {
        let known = ["method", "path", "headers", "envelope", "body", "body_base64"];
        let members = Members::of(node, "`raw`", &known, &[], self.reporter)?;
        let method = members.get("method").map(|node| self.method(node));
        let path = members.get("path").map(|node| self.path_of(node));
        let headers = members.get("headers").map(|node| self.headers(node));
        let envelope = members.get("envelope").map(|node| {
            map_of(node, "`envelope`", self.reporter)?;
            self.template(node, Place::Request)
        });
        let text = members.get("body").map(|node| {
            text_of(node, "`body`", self.reporter)?;
            self.template(node, Place::Request).map(RawBody::Text)
        });
        let bytes = members.get("body_base64").map(|node| {
            let text = text_of(node, "`body_base64`", self.reporter)?;
            let bytes = base64::decode(text);
            if bytes.is_none() {
                self.reporter.add(Fault::new(node.at, "this is no base64 (RFC 4648, section 4)"));
            }
            bytes.map(RawBody::Bytes)
        });
        if let (Some(_), Some(second)) = (&text, members.get("body_base64")) {
            self.reporter.add(Fault::new(second.at, "`body` and `body_base64` are two bodies: give one"));
        }
        let body = text.or(bytes);
        if let (Some(_), Some(envelope)) = (&body, members.get("envelope")) {
            let what = "a whole body leaves no envelope to change: give one of `body` and `envelope`";
            self.reporter.add(Fault::new(envelope.at, what));
        }
        // Whatever is missing from here on was reported.
        let mut raw = Raw {
            method: method.map_or(Some(None), |method| method.map(Some))?,
            path: path.map_or(Some(None), |path| path.map(Some))?,
            headers: headers.unwrap_or(Some(Vec::new()))?,
            envelope: envelope.map_or(Some(None), |envelope| envelope.map(Some))?,
            body: body.map_or(Some(None), |body| body.map(Some))?,
            may_hide_lead: false,
        };
        raw.may_hide_lead = match (&raw.body, &raw.envelope) {
            (Some(RawBody::Bytes(bytes)), _) => names_lead(&String::from_utf8_lossy(bytes)),
            (Some(RawBody::Text(template)), _) => may_name_lead(template),
            (None, Some(Template::Map(members))) => {
                members.iter().any(|(name, member)| name == "params" && may_replace_payload(member))
            }
            _ => false,
        };
        Some(raw)
    }

    fn method(&mut self, node: &Node) -> Option<String> {
        let text = text_of(node, "`method`", self.reporter)?;
        let is_token = !text.is_empty() && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
        if is_token && !REFUSED_METHODS.contains(&text.to_ascii_uppercase().as_str()) {
            return Some(text.to_owned());
        }
        let what = format!("{} is no method of HTTP that can be sent here", quoted(text));
        let fault = Fault::new(node.at, what);
        self.reporter.add(fault.allowed("GET, PUT, DELETE, …; the method of JSON-RPC stands in `envelope`"));
        None
    }

    fn path_of(&mut self, node: &Node) -> Option<Template> {
        let text = text_of(node, "`path`", self.reporter)?;
        if !text.starts_with('/') && !text.starts_with("${") {
            let fault = Fault::new(node.at, format!("{} does not begin with `/`", quoted(text)));
            self.reporter.add(fault.allowed("/a2a, /a2a?x=1"));
            return None;
        }
        self.template(node, Place::Request)
    }

    fn headers(&mut self, node: &Node) -> Option<Vec<(String, Option<Template>)>> {
        let written = map_of(node, "`headers`", self.reporter)?;
        if let Some((key, _)) = written.get(MAX_HEADERS) {
            let what = format!("a step replaces at most {MAX_HEADERS} headers");
            self.reporter.add(Fault::new(key.at, what));
            return None;
        }
        let headers: Vec<_> = written
            .iter()
            .map(|(key, value)| {
                // RFC 9110, section 5.6.2: a token.
                let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
                if key.text.is_empty() || !key.text.bytes().all(token) {
                    self.reporter
                        .add(Fault::new(key.at, format!("{} is no name of a header", quoted(&key.text))));
                    return None;
                }
                if value.is_null() {
                    return Some((key.text.clone(), None));
                }
                let template = self.template(value, Place::Request)?;
                if matches!(template, Template::List(_) | Template::Map(_)) {
                    let what = format!("a header's value is text, this is {}", value.sort());
                    self.reporter.add(Fault::new(value.at, what).allowed("null takes the header away"));
                    return None;
                }
                Some((key.text.clone(), Some(template)))
            })
            .collect();
        headers.into_iter().collect()
    }
}

fn names_lead(text: &str) -> bool {
    // An escape could spell the name so that only the dealer reads it.
    text.contains(Skill::LeadSubmit.request_type()) || text.contains('\\')
}

fn may_name_lead(template: &Template) -> bool {
    match template {
        Template::Const(Value::String(text)) => names_lead(text),
        Template::Const(value) => names_lead(&value.to_string()),
        _ => true,
    }
}

/// Whether a patch of `params` touches the message's parts, or which tool is called with what.
fn may_replace_payload(params: &Template) -> bool {
    let Template::Map(params) = params else { return true };
    params.iter().any(|(name, member)| match (name.as_str(), member) {
        ("message", Template::Map(message)) => {
            message.iter().any(|(name, parts)| name == "parts" && may_name_lead_within(parts))
        }
        ("message" | "name" | "arguments", _) => true,
        _ => false,
    })
}

fn may_name_lead_within(template: &Template) -> bool {
    match template {
        Template::Map(members) => members.iter().any(|(_, member)| may_name_lead_within(member)),
        Template::List(items) => items.iter().any(may_name_lead_within),
        Template::Const(_) => may_name_lead(template),
        _ => true,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_gets_out_of_its_line() {
        assert_eq!(line("a\r\nX: 1"), "a  X: 1");
        assert_eq!(target("/a b\r\nX"), "/a_b__X");
    }
}
