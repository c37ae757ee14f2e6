//! TLS: whom the dealer is believed by, whom it believes, and what faults do under it.

use std::io::Write as _;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use dealer_sim::RunningDealer;
use dealer_sim::auth::Auth;
use dealer_sim::server::limits::Limits;
use dealer_sim::server::tls::{Certificate, TlsOptions};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio_rustls::client::TlsStream;

use super::client::*;
use super::{frozen, run};

const SELF_SIGNED: TlsOptions =
    TlsOptions { certificate: Certificate::SelfSigned, client_ca: None, client_optional: false };

/// An authority, and what it signs: certificate and key as PEM.
struct Authority {
    pem: String,
    issuer: Issuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Authority {
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let pem = params.self_signed(&key).unwrap().pem();
        Authority { pem, issuer: Issuer::new(params, key) }
    }

    fn sign(&self, name: &str) -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec![name.to_owned()]).unwrap();
        (params.signed_by(&key, &self.issuer).unwrap().pem(), key.serialize_pem())
    }
}

/// A dealer with a certificate of an authority, which vouches for clients, too.
pub(crate) struct Mutual {
    pub(crate) dealer: RunningDealer,
    authority: Authority,
    friend: (String, String),
    _folder: tempfile::TempDir,
}

/// Such a dealer, that asks for these credentials; clients may come without a certificate if `client_optional`.
pub(crate) async fn with_clients(auth: Auth, client_optional: bool) -> Mutual {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let client_ca = Some(file(&folder, "clients.pem", &authority.pem));
    let (certificate, key) = authority.sign("127.0.0.1");
    let certificate = Certificate::Files {
        cert: file(&folder, "dealer.pem", &certificate),
        key: file(&folder, "dealer.key", &key),
    };
    let options = TlsOptions { certificate, client_ca, client_optional };
    let dealer = frozen().tls(options).auth(auth).start().await.unwrap();
    let friend = authority.sign("buyer.example.test");
    Mutual { dealer, authority, friend, _folder: folder }
}

impl Mutual {
    /// Connects for HTTP/1.1, with a certificate that the dealer believes or without one.
    pub(crate) async fn connect(&self, certified: bool) -> std::io::Result<TlsStream<TcpStream>> {
        let own = certified.then_some((self.friend.0.as_str(), self.friend.1.as_str()));
        tls(&self.dealer.url(), &self.authority.pem, own, &[b"http/1.1"]).await
    }
}

fn file(folder: &tempfile::TempDir, name: &str, text: &str) -> PathBuf {
    let path = folder.path().join(name);
    std::fs::File::create(&path).unwrap().write_all(text.as_bytes()).unwrap();
    path
}

#[test]
fn a_certificate_made_at_the_start_is_believed_by_those_who_have_it() {
    run(async {
        let dealer = frozen().tls(SELF_SIGNED).start().await.unwrap();
        let believed = dealer.certificate().unwrap().to_owned();
        assert_eq!(admin(&dealer, "/tls/certificate").await, believed);
        assert!(dealer.url().starts_with("https://127.0.0.1:"), "{}", dealer.url());

        let stream = tls(&dealer.url(), &believed, None, &[b"http/1.1"]).await.unwrap();
        let (status, _, card) = http1(stream, "GET", "/.well-known/agent-card.json", &[], "").await.unwrap();
        assert_eq!(status, 200);
        assert!(card.contains(&format!("\"url\":\"{}\"", dealer.url())), "{card}");
        // Without a word about protocols, HTTP/1.1 is spoken.
        let stream = tls(&dealer.url(), &believed, None, &[]).await.unwrap();
        let (status, _, reply) = http1(stream, "POST", "/a2a", &[], &envelope(&information())).await.unwrap();
        assert_eq!((status, reply.contains("dealer.information.response")), (200, true), "{reply}");

        // Another certificate of the same name is not the dealer's.
        let other = frozen().tls(SELF_SIGNED).start().await.unwrap();
        assert!(tls(&dealer.url(), other.certificate().unwrap(), None, &[]).await.is_err());
        counts_to(&dealer, "dealer_sim_tls_failures", 1).await;
    });
}

#[test]
fn what_is_no_handshake_is_closed_in_its_time_and_counted() {
    run(async {
        let limits = Limits { tls_handshake_timeout_ms: 200, ..Limits::default() };
        let dealer = frozen().tls(SELF_SIGNED).limits(limits).start().await.unwrap();
        let mut all = Vec::new();
        for bytes in [&b"GET / HTTP/1.1\r\nHost: x\r\n\r\n"[..], &[0; 300], b"\x16\x03\x01\x00\x05hello", b""]
        {
            let begun = Instant::now();
            let mut stream = TcpStream::connect(authority(&dealer.url())).await.unwrap();
            stream.write_all(bytes).await.unwrap();
            _ = stream.read_to_end(&mut all).await;
            assert!(begun.elapsed() < Duration::from_secs(2), "{bytes:?}");
        }
        assert!(!String::from_utf8_lossy(&all).contains("HTTP/1.1 200"), "{all:?}");
        counts_to(&dealer, "dealer_sim_tls_failures", 4).await;
        let stream = tls(&dealer.url(), dealer.certificate().unwrap(), None, &[]).await.unwrap();
        assert_eq!(http1(stream, "GET", "/", &[], "").await.unwrap().0, 200);
    });
}

#[test]
fn mutual_tls_refuses_a_stranger() {
    run(async {
        let Mutual { dealer, authority: ours, friend, .. } = &with_clients(Auth::default(), false).await;
        let stranger = &Authority::new().sign("buyer.example.test");
        // The user's own certificate is the user's to give away.
        assert_eq!(dealer.certificate(), None);
        assert!(admin(dealer, "/tls/certificate").await.contains("error"));

        for (own, is_served) in [(Some(friend), true), (Some(stranger), false), (None, false)] {
            let own = own.map(|(certificate, key)| (certificate.as_str(), key.as_str()));
            for alpn in [&b"http/1.1"[..], b"h2"] {
                // Under TLS 1.3 a client learns of the refusal when it reads.
                let served = match tls(&dealer.url(), &ours.pem, own, &[alpn]).await {
                    Err(_) => false,
                    Ok(stream) if alpn == b"h2" => match h2::client::handshake(stream).await {
                        Err(_) => false,
                        Ok((send, connection)) => {
                            tokio::spawn(connection);
                            call(&send, &dealer.url(), &[], &information()).await.status() == 200
                        }
                    },
                    Ok(stream) => {
                        http1(stream, "GET", "/", &[], "").await.is_ok_and(|(status, ..)| status == 200)
                    }
                };
                assert_eq!(served, is_served, "{own:?}");
            }
        }
        counts_to(dealer, "dealer_sim_tls_failures", 4).await;
    });
}

#[test]
fn what_is_wrong_with_the_files_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let authority = Authority::new();
    let (certificate, key) = authority.sign("localhost");
    let (_, other_key) = authority.sign("localhost");
    let path = |name: &str, text: &str| file(&folder, name, text).display().to_string();
    let (certificate, key) = (path("a.pem", &certificate), path("a.key", &key));
    let (other_key, empty) = (path("b.key", &other_key), path("empty.pem", ""));
    for (flags, told) in [
        (vec!["--tls-cert", &certificate], "give both"),
        (vec!["--tls-cert", &certificate, "--tls-key", &other_key], "--tls-key"),
        (vec!["--tls-cert", &empty, "--tls-key", &key], "holds no certificate"),
        (vec!["--tls-cert", "/nowhere.pem", "--tls-key", &key], "/nowhere.pem"),
        (vec!["--client-ca", &certificate], "needs TLS"),
        (vec!["--tls-self-signed", "--client-ca", &empty], "--client-ca"),
        (vec!["--tls-self-signed", "--tls-cert", &certificate], "--tls-self-signed"),
    ] {
        let output = std::process::Command::new(env!("CARGO_BIN_EXE_dealer-sim"))
            .args(["serve", "--listen", "127.0.0.1:0", "--admin", "off", "--vehicles", "20"])
            .args(&flags)
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{flags:?}: {error}");
        assert!(error.contains(told), "{flags:?}: {error}");
    }
}

#[test]
fn faults_are_played_inside_of_tls_and_those_at_accept_before_it() {
    run(async {
        let dealer = frozen().tls(SELF_SIGNED).start().await.unwrap();
        let believed = dealer.certificate().unwrap();
        let body = envelope(&search());
        let mut seen = Vec::new();
        for fault in ["", "reset_after_commit", "fin_in_body", "drip_body(bytes=4KiB, every=20ms)"] {
            let stream = tls(&dealer.url(), believed, None, &[b"http/1.1"]).await.unwrap();
            let fields = [("X-Sim-Fault", fault), ("X-Sim-Key", "k")];
            let fields = if fault.is_empty() { &fields[1..] } else { &fields };
            seen.push(http1(stream, "POST", "/a2a", fields, &body).await);
        }
        let [whole, reset, cut, drip] = seen.try_into().unwrap();
        let (status, _, whole) = whole.unwrap();
        assert_eq!((status, whole.len() > 10_000), (200, true));
        assert_eq!(reset.unwrap_err().kind(), std::io::ErrorKind::ConnectionReset);
        // An end with close_notify is no error of TLS: the length tells that the body is short.
        assert_eq!(cut.unwrap().2.len(), 64);
        assert_eq!(drip.unwrap().2.len(), whole.len());
        let entries = journal(&dealer);
        let state = |fault: &str| {
            let entry = entries.iter().find(|entry| entry["faults"].to_string().contains(fault)).unwrap();
            entry["delivered"]["state"].as_str().unwrap()
        };
        assert_eq!((state("reset_after_commit"), state("fin_in_body")), ("reset", "cut"));

        let plan = "rules: [{ id: rude, effect: not_http }]".parse().unwrap();
        let dealer = frozen().tls(SELF_SIGNED).faults(plan).start().await.unwrap();
        assert!(tls(&dealer.url(), dealer.certificate().unwrap(), None, &[]).await.is_err());
    });
}
