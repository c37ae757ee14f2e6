//! A simulator process and the least HTTP client that can talk to it.

#![allow(dead_code, unreachable_pub, clippy::unwrap_used, clippy::panic)]

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Seek, Write};
use std::net::TcpStream;
use std::process::{Child, ChildStdout, Command, Stdio};
use std::time::Duration;

use serde_json::{Value, json};

/// A `dealer-sim serve` on free ports, killed when dropped. A test whose simulator said that something panicked fails.
pub struct Sim {
    child: Child,
    /// What it says on standard error.
    told: File,
    out: BufReader<ChildStdout>,
    pub first: Value,
}

impl Sim {
    pub fn start(flags: &[&str]) -> Sim {
        let told = tempfile::tempfile().unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_dealer-sim"))
            .args(["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0"])
            .args(flags)
            .stdout(Stdio::piped())
            .stderr(told.try_clone().unwrap())
            .spawn()
            .unwrap();
        let mut out = BufReader::new(child.stdout.take().unwrap());
        let mut line = String::new();
        out.read_line(&mut line).unwrap();
        let first =
            serde_json::from_str(&line).unwrap_or_else(|_| panic!("no first line with {flags:?}: {line:?}"));
        Sim { child, told, out, first }
    }

    pub fn pid(&self) -> u32 {
        self.child.id()
    }

    pub fn url(&self) -> String {
        self.first["url"].as_str().unwrap().to_owned()
    }

    pub fn admin(&self, path: &str) -> String {
        format!("{}{path}", self.first["admin"].as_str().unwrap())
    }

    /// Sends SIGKILL and waits.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Sends SIGTERM and waits; the exit code and the last line.
    pub fn stop(&mut self) -> (i32, Value) {
        let pid = self.child.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &pid]).status().unwrap().success());
        let code = self.child.wait().unwrap().code().unwrap();
        let mut rest = String::new();
        self.out.read_to_string(&mut rest).unwrap();
        (code, serde_json::from_str(rest.lines().last().unwrap()).unwrap())
    }
}

impl Drop for Sim {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
        let mut told = String::new();
        _ = self.told.rewind().and_then(|()| self.told.read_to_string(&mut told));
        eprint!("{told}");
        assert!(std::thread::panicking() || !told.contains("panicked"), "the simulator panicked: {told}");
    }
}

pub fn connect(url: &str) -> (TcpStream, String) {
    let rest = url.strip_prefix("http://").unwrap();
    let (authority, path) = rest.split_once('/').unwrap_or((rest, ""));
    let stream = TcpStream::connect(authority).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    (stream, format!("/{path}"))
}

/// Status, head and body of one exchange on a connection of its own.
pub fn http(method: &str, url: &str, headers: &[(&str, &str)], body: &str) -> (u16, String, String) {
    let (mut stream, path) = connect(url);
    let host = stream.peer_addr().unwrap();
    let mut request = format!("{method} {path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n");
    for (name, value) in headers {
        request += &format!("{name}: {value}\r\n");
    }
    request += &format!("Content-Length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).unwrap();
    read_reply(&mut stream).unwrap_or_else(|| panic!("no reply to {method} {url}"))
}

/// Everything up to the end of the connection, split into status, head and body.
pub fn read_reply(stream: &mut TcpStream) -> Option<(u16, String, String)> {
    let mut bytes = Vec::new();
    _ = stream.read_to_end(&mut bytes);
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let (head, body) = text.split_once("\r\n\r\n")?;
    let status = head.split_whitespace().nth(1)?.parse().ok()?;
    Some((status, head.to_owned(), body.to_owned()))
}

/// POSTs a body to a dealer with the three headers of contract 3.0.
pub fn rpc(url: &str, body: &str) -> (u16, String, String) {
    let headers = [
        ("Content-Type", "application/json"),
        ("A2A-Version", "1.0"),
        ("A2A-Extensions", "https://autoagentprotocol.org/extensions/aap/v3.0"),
    ];
    http("POST", url, &headers, body)
}

/// The body of a call.
pub fn call(stem: &str, payload: &Value) -> Value {
    json!({
        "jsonrpc": "2.0", "id": 1, "method": "SendMessage",
        "params": {
            "message": {
                "messageId": "m-1", "role": "ROLE_USER",
                "parts": [{
                    "data": payload,
                    "mediaType": format!("application/vnd.autoagent.{stem}-request+json"),
                }],
            },
            "configuration": {
                "acceptedOutputModes": [format!("application/vnd.autoagent.{stem}-response+json")],
            },
        },
    })
}

/// A valid lead of a customer of this name.
pub fn lead(name: &str) -> Value {
    json!({
        "type": "lead.submit.request",
        "customer": { "first_name": "Anna", "last_name": name, "email": "anna@example.com" },
        "consent": {
            "granted_at": "2026-01-01T00:00:00Z", "allowed_channels": ["email"], "consent_text": "I agree.",
            "scope": ["lead_submission"],
        },
        "source_agent": { "name": "test" },
    })
}

/// Sends a lead; its identifier, or nothing when the dealer no longer answers.
pub fn send_lead(url: &str, name: &str) -> Option<String> {
    let (status, _, body) = answer_to_lead(url, &lead(name))?;
    // An answer that came must be a good one, stop or no stop.
    assert_eq!(status, 200, "{body}");
    let reply: Value = serde_json::from_str(&body).unwrap();
    Some(receipt(&reply)["data"]["lead_id"].as_str().unwrap().to_owned())
}

/// The payload of a reply.
pub fn receipt(reply: &Value) -> &Value {
    &reply["result"]["message"]["parts"][0]["data"]
}

/// Status, head and body of what a lead is answered with, as far as it came; nothing when the dealer no longer answers.
pub fn answer_to_lead(url: &str, payload: &Value) -> Option<(u16, String, String)> {
    let (authority, path) = url.strip_prefix("http://")?.split_once('/')?;
    let mut stream = TcpStream::connect(authority).ok()?;
    stream.set_read_timeout(Some(Duration::from_secs(10))).ok()?;
    let body = call("lead-submit", payload).to_string();
    let request = format!(
        "POST /{path} HTTP/1.1\r\nHost: test\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).ok()?;
    read_reply(&mut stream)
}
