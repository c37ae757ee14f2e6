//! A request: which era it is of, what it asks, and why it is refused (BINDINGS b.2 and b.3; MCP 2026-07-28, Streamable HTTP
//! and Versioning). Pure.

use super::headers::{Headers, Told};
use super::{Era, LEGACY, MODERN, VERSIONS, code, skill_of, tool_name};
use crate::protocol::call::is_whole;
use crate::protocol::error::{code as rpc, shorten};
use crate::protocol::json::{Kind, Value};
use crate::protocol::skill::Skill;

const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";
const META_CAPABILITIES: &str = "io.modelcontextprotocol/clientCapabilities";

/// What is asked.
#[derive(Debug, Clone, Copy)]
pub enum Ask<'a> {
    /// `server/discover`.
    Discover,
    /// `tools/list`.
    Tools,
    /// `tools/call`; without arguments they are an empty object.
    Call(Skill, Option<Value<'a>>),
    /// `initialize`, with the revision asked for.
    Initialize(Option<&'a str>),
    /// `ping`.
    Ping,
    /// Something is told, and nothing asked.
    Notification,
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The HTTP status.
    pub status: u16,
    /// The JSON-RPC number.
    pub code: i32,
    /// A sentence for people.
    pub message: String,
    /// The revision asked for, where it is not served; `error.data` then tells those that are.
    pub requested: Option<String>,
}

impl Refusal {
    /// A refusal with this status.
    pub fn new(status: u16, code: i32, message: impl Into<String>) -> Refusal {
        Refusal { status, code, message: message.into(), requested: None }
    }

    fn header(what: &str) -> Refusal {
        Refusal::new(400, code::HEADER_MISMATCH, format!("Header mismatch: {what}"))
    }

    fn version(requested: &str) -> Refusal {
        let message = format!("Unsupported protocol version; this server speaks {}", VERSIONS.join(" and "));
        Refusal {
            requested: Some(shorten(requested)),
            ..Refusal::new(400, code::UNSUPPORTED_VERSION, message)
        }
    }

    /// -32700.
    pub fn not_json(why: &impl std::fmt::Display) -> Refusal {
        Refusal::new(400, rpc::PARSE, format!("Parse error: {why}"))
    }

    fn not_a_request(why: &str) -> Refusal {
        Refusal::new(400, rpc::INVALID_REQUEST, format!("Invalid Request: {why}"))
    }

    fn params(status: u16, why: &str) -> Refusal {
        Refusal::new(status, rpc::INVALID_PARAMS, format!("Invalid params: {why}"))
    }
}

/// What a request says.
#[derive(Debug, Clone)]
pub struct Reading<'a> {
    /// Its id as raw JSON; `null` where there is none that can be answered.
    pub id: &'a str,
    /// Its era, as far as that is known.
    pub era: Era,
    /// Its method; empty when there is none.
    pub method: &'a str,
    /// What it asks, or why that is not answered.
    pub ask: Result<Ask<'a>, Refusal>,
}

/// Reads one request, for a dealer that offers these skills.
pub fn read<'a>(root: Value<'a>, headers: Headers<'_>, offered: &[Skill]) -> Reading<'a> {
    let broken = |id, method, why: &str| Reading {
        id,
        era: Era::Legacy,
        method,
        ask: Err(Refusal::not_a_request(why)),
    };
    if root.kind() == Kind::List {
        return broken("null", "", "one request a POST; a batch is none");
    } else if root.kind() != Kind::Record {
        return broken("null", "", "a request is a JSON object");
    }
    let given = root.get("id");
    let id = match given.map(Value::as_raw) {
        None => "null",
        Some(Some(raw)) if is_id(raw) => raw,
        Some(_) => return broken("null", "", "\"id\" must be a string or an integer"),
    };
    if root.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
        return broken(id, "", "\"jsonrpc\" must be the string \"2.0\"");
    }
    let Some(method) = root.get("method").and_then(Value::as_str) else {
        return broken(id, "", "\"method\" must be a string");
    };
    if given.is_none() {
        return match method.starts_with("notifications/") {
            true => Reading { id, era: Era::Legacy, method, ask: Ok(Ask::Notification) },
            false => broken(id, method, "\"id\" is missing"),
        };
    }
    let params = root.get("params");
    let meta = params.and_then(|params| params.get("_meta"));
    let in_meta = |name| meta.and_then(|meta| meta.get(name));
    let is_modern = in_meta(META_VERSION).is_some() || headers.version().is_some_and(is_modern_version);
    let era = if is_modern { Era::Modern } else { Era::Legacy };
    let request = Request { headers, offered, method, params };
    let ask = match era {
        Era::Modern => request.modern(in_meta(META_VERSION), in_meta(META_CAPABILITIES)),
        Era::Legacy => request.legacy(),
    };
    Reading { id, era, method, ask }
}

/// MCP wants a string or an integer (schema 2026-07-28, `RequestId`).
fn is_id(raw: &str) -> bool {
    if raw.starts_with('"') {
        return is_whole(raw);
    }
    let digits = raw.strip_prefix('-').unwrap_or(raw);
    !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// Revisions are dates; those from the first modern one on are modern.
fn is_modern_version(version: &str) -> bool {
    let is_date = version.len() == MODERN.len()
        && version
            .bytes()
            .zip(MODERN.bytes())
            .all(|(given, known)| if known == b'-' { given == b'-' } else { given.is_ascii_digit() });
    is_date && version >= MODERN
}

/// A request whose envelope is whole.
struct Request<'a, 'h> {
    headers: Headers<'h>,
    offered: &'h [Skill],
    method: &'a str,
    params: Option<Value<'a>>,
}

impl<'a> Request<'a, '_> {
    fn modern(
        &self,
        version: Option<Value<'a>>,
        capabilities: Option<Value<'a>>,
    ) -> Result<Ask<'a>, Refusal> {
        let Some(version) = version.and_then(Value::as_str) else {
            // What the header asks for may not be served either, but that is not yet what was asked.
            return Err(Refusal::params(400, &format!("params._meta[\"{META_VERSION}\"] must be a string")));
        };
        match self.headers.version_is(version) {
            Told::Same => {}
            Told::Absent => return Err(Refusal::header("MCP-Protocol-Version is missing")),
            Told::Other => {
                let what =
                    "MCP-Protocol-Version differs from the body's io.modelcontextprotocol/protocolVersion";
                return Err(Refusal::header(what));
            }
        }
        if version != MODERN {
            return Err(Refusal::version(version));
        }
        if capabilities.is_none_or(|capabilities| capabilities.kind() != Kind::Record) {
            let why = format!("params._meta[\"{META_CAPABILITIES}\"] must be an object");
            return Err(Refusal::params(400, &why));
        }
        match self.headers.method_is(self.method) {
            Told::Same => {}
            Told::Absent => return Err(Refusal::header("Mcp-Method is missing")),
            Told::Other => return Err(Refusal::header("Mcp-Method differs from the body's method")),
        }
        match self.method {
            "server/discover" => Ok(Ask::Discover),
            "tools/list" => self.tools(),
            "tools/call" => {
                let name = self.tool()?;
                match self.headers.name_is(name) {
                    Told::Same => self.call(name),
                    Told::Absent => Err(Refusal::header("Mcp-Name is missing")),
                    Told::Other => Err(Refusal::header("Mcp-Name differs from the body's params.name")),
                }
            }
            _ => Err(self.unknown_method(404)),
        }
    }

    fn legacy(&self) -> Result<Ask<'a>, Refusal> {
        if self.params.is_some_and(|params| params.kind() != Kind::Record) {
            return Err(Refusal::params(200, "must be an object"));
        }
        if self.method == "initialize" {
            let version =
                self.params.and_then(|params| params.get("protocolVersion")).and_then(Value::as_str);
            return Ok(Ask::Initialize(version));
        }
        // Absent, it means 2025-03-26 (2025-11-25, Transports).
        if self.headers.has_version() {
            let told = LEGACY.iter().find(|version| self.headers.version_is(version) == Told::Same);
            if told.is_none() {
                return Err(Refusal::version(self.headers.version().unwrap_or_default()));
            }
        }
        match self.method {
            "ping" => Ok(Ask::Ping),
            "tools/list" => self.tools(),
            "tools/call" => self.call(self.tool()?),
            _ => Err(self.unknown_method(200)),
        }
    }

    fn unknown_method(&self, status: u16) -> Refusal {
        let message = format!("Method not found: {:?}", shorten(self.method));
        Refusal::new(status, rpc::METHOD_NOT_FOUND, message)
    }

    /// There is one page, so no cursor was ever given out.
    fn tools(&self) -> Result<Ask<'a>, Refusal> {
        match self.params.and_then(|params| params.get("cursor")).filter(|cursor| !cursor.is_null()) {
            None => Ok(Ask::Tools),
            Some(_) => Err(Refusal::params(200, "\"cursor\" is none of this server's")),
        }
    }

    fn tool(&self) -> Result<&'a str, Refusal> {
        let name = self.params.and_then(|params| params.get("name")).and_then(Value::as_str);
        name.ok_or_else(|| Refusal::params(200, "\"name\" must be a string: the tool's"))
    }

    fn call(&self, name: &str) -> Result<Ask<'a>, Refusal> {
        let Some(skill) = skill_of(name).filter(|skill| self.offered.contains(skill)) else {
            let offered: Vec<_> = self.offered.iter().map(|skill| tool_name(*skill)).collect();
            let why = format!("Unknown tool: {:?}; there are {}", shorten(name), offered.join(", "));
            return Err(Refusal::new(200, rpc::INVALID_PARAMS, why));
        };
        match self.params.and_then(|params| params.get("arguments")).filter(|given| !given.is_null()) {
            Some(arguments) if arguments.kind() != Kind::Record => {
                Err(Refusal::params(200, "\"arguments\" must be an object"))
            }
            arguments => Ok(Ask::Call(skill, arguments)),
        }
    }
}
