//! What a buyer agent sends and what it makes of the answer: raw HTTP/1.1, since a client library would hide how an agent
//! behaves.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

use crate::support::connect;

/// An agent does not wait for ever, neither for the next bytes nor for all of them.
const PATIENCE: Duration = Duration::from_millis(700);
const TYPED: &str = "https://autoagentprotocol.org/extensions/aap/error";

/// A request as it goes out.
#[derive(Debug, Clone)]
pub struct Outgoing {
    pub method: &'static str,
    pub url: String,
    pub headers: Vec<(&'static str, String)>,
    pub body: Value,
}

/// An HTTP reply.
pub struct Http {
    pub status: u16,
    pub head: String,
    pub body: String,
}

/// Why there is no answer.
#[derive(Debug, Clone)]
pub enum Refusal {
    /// It was lost, or nobody can read it.
    Lost,
    /// It may come later, after the hint if there is one.
    Later(Option<Duration>),
    /// It will not come: the AAP code, or what else was said.
    Never(String),
}

/// What a skill answered.
#[derive(Debug)]
pub struct Answer {
    pub context: Option<String>,
    pub data: Value,
}

impl Outgoing {
    /// A call with everything that A2A and AAP ask for.
    pub fn call(
        url: &str,
        uri: &str,
        id: u64,
        message_id: &str,
        context: Option<&str>,
        payload: &Value,
    ) -> Outgoing {
        let skill = payload["type"].as_str().unwrap_or_default().trim_end_matches(".request");
        let stem =
            if skill == "inventory.vehicle" { "vehicle-detail".to_owned() } else { skill.replace('.', "-") };
        let mut message = json!({
            "messageId": message_id, "role": "ROLE_USER",
            "parts": [{ "data": payload, "mediaType": format!("application/vnd.autoagent.{stem}-request+json") }],
        });
        if let Some(context) = context {
            message["contextId"] = context.into();
        }
        let modes = [format!("application/vnd.autoagent.{stem}-response+json")];
        let body = json!({
            "jsonrpc": "2.0", "id": id, "method": "SendMessage",
            "params": { "message": message, "configuration": { "acceptedOutputModes": modes } },
        });
        let headers = vec![
            ("Content-Type", "application/json".to_owned()),
            ("A2A-Version", "1.0".to_owned()),
            ("A2A-Extensions", uri.to_owned()),
        ];
        Outgoing { method: "POST", url: url.to_owned(), headers, body }
    }

    pub fn message(&mut self) -> &mut Value {
        &mut self.body["params"]["message"]
    }

    /// Sends it on a connection of its own. Nothing comes of a reply that does not end, or is no HTTP.
    pub fn send(&self, client: &str) -> Option<Http> {
        let (mut stream, path) = connect(&self.url);
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        let body = if self.body.is_null() { String::new() } else { self.body.to_string() };
        let mut head = format!("{} {path} HTTP/1.1\r\nHost: dealer\r\nConnection: close\r\n", self.method);
        for (name, value) in self.headers.iter().chain([&("X-Sim-Client", client.to_owned())]) {
            head += &format!("{name}: {value}\r\n");
        }
        head += &format!("Content-Length: {}\r\n\r\n{body}", body.len());
        stream.write_all(head.as_bytes()).ok()?;
        reply(&mut stream)
    }
}

/// Reads a reply by its own framing; interim replies are skipped.
fn reply(stream: &mut TcpStream) -> Option<Http> {
    let began = Instant::now();
    let (mut bytes, mut piece) = (Vec::new(), [0; 16 << 10]);
    let ended = loop {
        match stream.read(&mut piece) {
            Ok(0) => break true,
            Ok(read) if began.elapsed() < PATIENCE => bytes.extend_from_slice(&piece[..read]),
            _ => break false,
        }
    };
    let mut rest = bytes.as_slice();
    loop {
        let end = rest.windows(4).position(|window| window == b"\r\n\r\n")?;
        let head = std::str::from_utf8(&rest[..end]).ok()?;
        rest = &rest[end + 4..];
        let status: u16 = head.strip_prefix("HTTP/1.1 ")?.get(..3)?.parse().ok()?;
        if status < 200 {
            continue;
        }
        let body = if status == 304 || status == 204 {
            Vec::new()
        } else if header(head, "transfer-encoding").is_some() {
            unchunked(rest)?
        } else if let Some(length) = header(head, "content-length") {
            rest.get(..length.parse().ok()?)?.to_vec()
        } else if ended {
            rest.to_vec()
        } else {
            return None;
        };
        return Some(Http { status, head: head.to_owned(), body: String::from_utf8(body).ok()? });
    }
}

fn unchunked(mut rest: &[u8]) -> Option<Vec<u8>> {
    let mut body = Vec::new();
    loop {
        let line = rest.windows(2).position(|window| window == b"\r\n")?;
        let size =
            usize::from_str_radix(std::str::from_utf8(&rest[..line]).ok()?.split(';').next()?, 16).ok()?;
        rest = &rest[line + 2..];
        if size == 0 {
            return Some(body);
        }
        body.extend_from_slice(rest.get(..size)?);
        rest = rest.get(size + 2..)?;
    }
}

/// A header field, by its name in small letters.
pub fn header<'h>(head: &'h str, name: &str) -> Option<&'h str> {
    let fields = head.lines().filter_map(|line| line.split_once(':'));
    fields.filter(|(field, _)| field.eq_ignore_ascii_case(name)).map(|(_, value)| value.trim()).next()
}

/// What a reply to a call says.
pub fn read(outgoing: &Outgoing, reply: Option<Http>) -> Result<Answer, Refusal> {
    let reply = reply.ok_or(Refusal::Lost)?;
    match reply.status {
        200 => {}
        408 | 425 | 429 | 500.. => {
            let seconds = header(&reply.head, "retry-after").and_then(|seconds| seconds.parse().ok());
            let hint = serde_json::from_str(&reply.body).ok().and_then(|body| hint(&body));
            return Err(Refusal::Later(hint.or(seconds.map(Duration::from_secs))));
        }
        0..400 => return Err(Refusal::Lost),
        status => return Err(Refusal::Never(format!("HTTP {status}"))),
    }
    let body: Value = serde_json::from_str(&reply.body).map_err(|_| Refusal::Lost)?;
    if body["jsonrpc"] != "2.0" || body["id"] != outgoing.body["id"] {
        return Err(Refusal::Lost);
    }
    match (body.get("result"), body.get("error")) {
        (Some(result), None) => answer(outgoing, &result["message"]),
        (None, Some(_)) => Err(refusal(&body)),
        _ => Err(Refusal::Lost),
    }
}

fn answer(outgoing: &Outgoing, message: &Value) -> Result<Answer, Refusal> {
    let asked = outgoing.body["params"]["message"]["parts"][0]["data"]["type"].as_str().unwrap_or_default();
    let payload = &message["parts"][0]["data"];
    let is_ours = payload["type"].as_str() == Some(&asked.replace(".request", ".response"));
    if !is_ours || message["role"] != "ROLE_AGENT" || !payload["data"].is_object() {
        return Err(Refusal::Lost);
    }
    let context = message["contextId"].as_str().filter(|context| !context.is_empty());
    Ok(Answer { context: context.map(str::to_owned), data: payload["data"].clone() })
}

fn typed(body: &Value) -> Option<&Value> {
    body["error"]["data"].as_array()?.iter().find(|entry| entry["@type"] == TYPED)
}

/// How long to wait, as the error says it.
fn hint(body: &Value) -> Option<Duration> {
    let details = &typed(body)?["details"];
    let milliseconds = details["retry_after_ms"].as_u64();
    milliseconds
        .or(details["retry_after_seconds"].as_u64().map(|seconds| seconds * 1000))
        .map(Duration::from_millis)
}

fn refusal(body: &Value) -> Refusal {
    match typed(body) {
        Some(typed) if typed["retryable"] == true => Refusal::Later(hint(body)),
        Some(typed) => Refusal::Never(typed["code"].as_str().unwrap_or_default().to_owned()),
        None if body["error"]["code"] == -32_603 => Refusal::Later(None),
        None => Refusal::Never(body["error"]["code"].to_string()),
    }
}
