//! Runs over TLS: the phases of new connections, the token, and whom is believed. The certificates in `tests/tls` were made
//! for these tests, are valid for a hundred years and protect nothing.
#![allow(clippy::unwrap_used, reason = "clippy lets only functions marked as tests do so")]

mod support;

use std::sync::Arc;
use std::sync::mpsc;

use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig};
use serde_json::{Value, json};
use support::{Server, Setup, loadgen, repository, scenario};
use tokio::net::{TcpListener, TcpStream};
use tokio_rustls::TlsAcceptor;

fn file(name: &str) -> String {
    repository(&format!("loadgen/tests/tls/{name}")).display().to_string()
}

/// A door of TLS before a plain server; gives its port.
fn tls_before(server: &Server) -> u16 {
    door(server, false)
}

/// The same; with `asks`, only for clients with a certificate of `client-authority.pem`.
fn door(server: &Server, asks: bool) -> u16 {
    let certificates =
        CertificateDer::pem_file_iter(file("server.pem")).unwrap().collect::<Result<_, _>>().unwrap();
    let key = PrivateKeyDer::from_pem_file(file("server.key")).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder = ServerConfig::builder_with_provider(Arc::clone(&provider))
        .with_safe_default_protocol_versions()
        .unwrap();
    let builder = if asks {
        let mut roots = RootCertStore::empty();
        for root in CertificateDer::pem_file_iter(file("client-authority.pem")).unwrap() {
            roots.add(root.unwrap()).unwrap();
        }
        let verifier =
            WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider).build().unwrap();
        builder.with_client_cert_verifier(verifier)
    } else {
        builder.with_no_client_auth()
    };
    let config = builder.with_single_cert(certificates, key).unwrap();
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let (ready, port) = mpsc::channel();
    let behind = server.address;
    std::thread::spawn(move || {
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
        runtime.block_on(async move {
            let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
            ready.send(listener.local_addr().unwrap().port()).unwrap();
            loop {
                let Ok((stream, _)) = listener.accept().await else { continue };
                let acceptor = acceptor.clone();
                tokio::spawn(async move {
                    let Ok(mut stream) = acceptor.accept(stream).await else { return };
                    let mut plain = TcpStream::connect(behind).await.unwrap();
                    let _ = tokio::io::copy_bidirectional(&mut stream, &mut plain).await;
                });
            }
        });
    });
    port.recv().unwrap()
}

fn run(host: &str, port: u16, flags: &[&str]) -> (Option<i32>, Value) {
    let (path, url) = (scenario("smoke"), format!("https://{host}:{port}/a2a"));
    let base =
        ["run", &path, "--endpoint-raw", &url, "--contract", "3.0", "--users", "2", "--sessions", "40"];
    let output = loadgen(&[&base[..], &["--format", "json", "--quiet"], flags].concat());
    (output.status.code(), serde_json::from_slice(&output.stdout).unwrap_or_default())
}

#[test]
fn an_authority_of_ones_own_is_believed_and_the_phases_are_told() {
    let port = tls_before(&Server::start(Setup::default()));
    for host in ["localhost", "127.0.0.1"] {
        let (code, summary) = run(host, port, &["--ca", &file("authority.pem"), "--header", "X-Key: 1"]);
        assert_eq!(code, Some(0), "{summary:#}");
        assert_eq!(summary["outcomes"], json!({"ok": 40}));
        let opened = &summary["connections"]["opened"];
        assert_eq!(&summary["latency"]["connect"]["count"], opened);
        assert_eq!(&summary["latency"]["tls"]["count"], opened);
        assert!(summary["latency"]["tls"]["max_ms"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn a_stranger_is_not_believed_unless_told_so() {
    let port = tls_before(&Server::start(Setup::default()));
    // The machine's own list does not know the authority of these tests.
    let ours = [("SSL_CERT_FILE", file("stranger.pem"))];
    let (path, url) = (scenario("smoke"), format!("https://localhost:{port}/a2a"));
    let line = [
        "run",
        &path,
        "--endpoint-raw",
        &url,
        "--contract",
        "3.0",
        "--sessions",
        "3",
        "--format",
        "json",
        "--quiet",
    ];
    let output = support::command(&line).envs(ours).output().unwrap();
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["outcomes"], json!({"transport.tls": 3}));

    let (code, summary) = run("localhost", port, &["--insecure"]);
    assert_eq!(code, Some(0), "{summary:#}");
    assert_eq!(summary["outcomes"], json!({"ok": 40}));
}

#[test]
fn a_file_without_certificates_is_a_plain_fault() {
    let output = loadgen(&[
        "run",
        &scenario("smoke"),
        "--endpoint-raw",
        "https://localhost:1/a2a",
        "--contract",
        "3.0",
        "--ca",
        &file("server.key"),
    ]);
    assert_eq!(output.status.code(), Some(1));
    let text = String::from_utf8(output.stderr).unwrap();
    assert!(text.contains("server.key") && text.contains("no certificate"), "{text}");
}

#[test]
fn plain_http_behind_an_https_url_is_a_fault_of_tls() {
    let server = Server::start(Setup::default());
    let (_, summary) = run(
        "127.0.0.1",
        server.address.port(),
        &["--insecure", "--timeout", "1s", "--connect-timeout", "50ms"],
    );
    let outcomes = summary["outcomes"].as_object().unwrap();
    let only = outcomes.keys().next().unwrap();
    assert!(only == "transport.tls" || only == "timeout.tls", "{summary:#}");
}

#[test]
fn a_certificate_and_a_token_open_the_door() {
    let server = Server::start(Setup { keeps: true, ..Setup::default() });
    let port = door(&server, true);
    let (path, url) = (scenario("smoke"), format!("https://localhost:{port}/a2a"));
    let (ca, cert, key) = (file("authority.pem"), file("client.pem"), file("client.key"));
    let line = [
        "run",
        &path,
        "--endpoint-raw",
        &url,
        "--contract",
        "3.0",
        "--users",
        "2",
        "--sessions",
        "40",
        "--ca",
        &ca,
        "--bearer-env",
        "THE_TOKEN",
        "--header-env",
        "X-Api-Key: THE_KEY",
        "--format",
        "json",
        "--quiet",
    ];
    let secrets = [("THE_TOKEN", "t-1"), ("THE_KEY", "k-1")];
    let shown = [&line[..], &["--cert", &cert, "--key", &key]].concat();
    let output = support::command(&shown).envs(secrets).output().unwrap();
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["outcomes"], json!({"ok": 40}), "{summary:#}");
    assert_eq!(summary["latency"]["tls"]["count"], summary["connections"]["opened"]);
    let heard = server.heard();
    assert!(
        heard.len() == 40
            && heard.iter().all(|heard| {
                heard.head.contains("\r\nAuthorization: Bearer t-1\r\n")
                    && heard.head.contains("\r\nX-Api-Key: k-1\r\n")
            })
    );
    // Whoever shows no certificate is turned away, and told apart from other faults.
    let output = support::command(&line).envs(secrets).output().unwrap();
    let summary: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(summary["outcomes"]["ok"], Value::Null, "{summary:#}");
    assert_eq!(server.heard().len(), 40);
    // Files that do not belong together are the user's fault.
    for (cert, key) in [(&key, &cert), (&cert, &file("server.key"))] {
        let wrong = [&line[..], &["--cert", cert, "--key", key]].concat();
        let output = support::command(&wrong).envs(secrets).output().unwrap();
        let told = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.code() == Some(1) && told.contains("--cert"), "{told}");
    }
}
