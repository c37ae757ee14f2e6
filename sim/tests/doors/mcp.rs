//! What it takes to talk MCP over a socket of one's own, so that every byte can be wrong.

use serde_json::{Value, json};

use super::support::{Sim, connect, read_reply};

pub(super) const VERSION: &str = "2026-07-28";
const META_VERSION: &str = "io.modelcontextprotocol/protocolVersion";

pub(super) fn url(sim: &Sim) -> String {
    sim.url().replace("/a2a", "/mcp")
}

/// Status, head and body; header fields and body are all that is sent, with `Host` as a client would send it.
pub(super) fn send(method: &str, url: &str, headers: &[(&str, &str)], body: &str) -> (u16, String, String) {
    use std::io::Write as _;
    let (mut stream, path) = connect(url);
    let host = stream.peer_addr().unwrap().to_string();
    let mut request = format!("{method} {path} HTTP/1.1\r\nConnection: close\r\n");
    if !headers.iter().any(|(name, _)| *name == "Host") {
        request += &format!("Host: {host}\r\n");
    }
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    request += &format!("Content-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).unwrap();
    read_reply(&mut stream).unwrap_or_else(|| panic!("no reply to {method} {url}"))
}

/// The body of a modern request.
pub(super) fn request(method: &str, mut params: Value) -> Value {
    params["_meta"] = json!({
        META_VERSION: VERSION,
        "io.modelcontextprotocol/clientInfo": { "name": "test", "version": "1" },
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    json!({ "jsonrpc": "2.0", "id": 7, "method": method, "params": params })
}

/// The header fields that a modern request must have.
pub(super) fn headers(body: &Value) -> Vec<(&'static str, &str)> {
    let mut all = vec![
        ("Content-Type", "application/json"),
        ("Accept", "application/json, text/event-stream"),
        ("MCP-Protocol-Version", VERSION),
        ("Mcp-Method", body["method"].as_str().unwrap()),
    ];
    all.extend(body["params"]["name"].as_str().map(|name| ("Mcp-Name", name)));
    all
}

/// Sends a modern request as it should be.
pub(super) fn ask(url: &str, body: &Value) -> (u16, Value) {
    let (status, _, text) = send("POST", url, &headers(body), &body.to_string());
    (status, serde_json::from_str(&text).unwrap_or_else(|error| panic!("{error}: {text}")))
}

/// Sends a request of a revision with a handshake.
pub(super) fn ask_legacy(url: &str, body: &Value) -> (u16, Value) {
    let fields = [("Content-Type", "application/json"), ("MCP-Protocol-Version", "2025-11-25")];
    let (status, _, text) = send("POST", url, &fields, &body.to_string());
    (status, serde_json::from_str(&text).unwrap_or(Value::Null))
}

pub(super) fn tool(skill: &str) -> String {
    format!("aap_{}", skill.replace('.', "_"))
}

/// Calls a tool; the text of the reply.
pub(super) fn call(url: &str, skill: &str, payload: &Value) -> String {
    let body = request("tools/call", json!({ "name": tool(skill), "arguments": payload }));
    let (status, _, text) = send("POST", url, &headers(&body), &body.to_string());
    assert_eq!(status, 200, "{text}");
    text
}
