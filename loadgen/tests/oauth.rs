//! Tokens by OAuth 2 client credentials: asked for first, sent with every request, renewed before they expire.
#![allow(clippy::unwrap_used, clippy::panic, reason = "clippy lets only functions marked as tests do so")]

mod support;

use std::io::{Read as _, Write as _};
use std::net::TcpListener;
use std::sync::{Arc, Mutex};

use serde_json::Value;
use support::{Server, Setup, command, scenario};

/// A token endpoint that gives a new token each time; and what it was asked.
fn token_endpoint(status: u16, seconds: u32) -> (String, Arc<Mutex<Vec<String>>>) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/token", listener.local_addr().unwrap());
    let asked = Arc::new(Mutex::new(Vec::new()));
    let log = Arc::clone(&asked);
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let mut stream = stream.unwrap();
            let mut text = String::new();
            let mut buffer = [0; 4096];
            while !text.contains("grant_type=client_credentials&scope=leads") {
                let read = stream.read(&mut buffer).unwrap();
                if read == 0 {
                    break;
                }
                text.push_str(&String::from_utf8_lossy(&buffer[..read]));
            }
            let mut log = log.lock().unwrap();
            log.push(text);
            let body = match status {
                200 => format!("{{\"access_token\":\"token-{}\",\"expires_in\":{seconds}}}", log.len()),
                _ => "{\"error\":\"invalid_client\"}".to_owned(),
            };
            let _ = write!(
                stream,
                "HTTP/1.1 {status} X\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
        }
    });
    (url, asked)
}

fn run(server: &Server, token_url: &str) -> std::process::Output {
    let (path, url) = (scenario("smoke"), server.url());
    let line = [
        "run",
        &path,
        "--endpoint",
        &url,
        "--rate",
        "20/s",
        "--duration",
        "4s",
        "--oauth-url",
        token_url,
        "--oauth-client",
        "agent",
        "--oauth-secret-env",
        "THE_SECRET",
        "--oauth-scope",
        "leads",
        "--format",
        "json",
    ];
    command(&line).env("THE_SECRET", "s3cret").output().unwrap()
}

#[test]
fn a_token_is_sent_and_renewed_before_it_expires() {
    let server = Server::start(Setup { keeps: true, ..Setup::default() });
    let (token_url, asked) = token_endpoint(200, 2);
    let output = run(&server, &token_url);
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["outcomes"]["ok"], 80, "{summary:#} {}", String::from_utf8_lossy(&output.stderr));
    let asked = asked.lock().unwrap();
    // agent:s3cret
    assert!(asked.iter().all(|text| text.contains("Authorization: Basic YWdlbnQ6czNjcmV0\r\n")), "{asked:?}");
    // Every 1.6 s of a token's 2 s.
    assert!((2..=4).contains(&asked.len()), "{}", asked.len());
    let tokens: std::collections::BTreeSet<String> = server
        .heard()
        .iter()
        .map(|heard| {
            heard.head.split("Authorization: Bearer ").nth(1).unwrap().lines().next().unwrap().to_owned()
        })
        .collect();
    assert!(tokens.len() >= 2 && tokens.contains("token-1"), "{tokens:?}");
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(!told.contains("s3cret") && !told.contains("token-1"), "{told}");
}

#[test]
fn a_refusal_ends_the_run_before_it_begins() {
    let server = Server::start(Setup::default());
    let (token_url, _) = token_endpoint(401, 2);
    let output = run(&server, &token_url);
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(
        output.status.code() == Some(2) && told.contains("gave no token: HTTP 401, invalid_client"),
        "{told}"
    );
    assert_eq!(server.requests(), 0);
}
