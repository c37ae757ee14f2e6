//! Credentials that the dealer asks for, and who may use the admin endpoint.

use std::io::{BufRead as _, BufReader};
use std::process::{Child, Command, Stdio};

use dealer_sim::auth::{Auth, Scheme, Secret};
use hyper::http::Method;
use serde_json::{Value, json};
use tokio::net::TcpStream;

use super::client::*;
use super::{frozen, run};

/// A server of the command line, and what it has written to its log.
struct Served {
    child: Child,
    first: Value,
    log: tempfile::NamedTempFile,
}

impl Served {
    fn start(flags: &[&str], variables: &[(&str, &str)]) -> Served {
        // A pipe that nobody reads would fill up, and the server wait for it.
        let log = tempfile::NamedTempFile::new().unwrap();
        let mut child = Command::new(env!("CARGO_BIN_EXE_dealer-sim"))
            .args(["serve", "--listen", "127.0.0.1:0", "--vehicles", "60"])
            .args(flags)
            .envs(variables.iter().copied())
            .env("RUST_LOG", "trace")
            .stdout(Stdio::piped())
            .stderr(log.reopen().unwrap())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let first = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no first line: {line:?}"));
        Served { child, first, log }
    }

    fn url(&self, name: &str) -> String {
        self.first[name].as_str().unwrap().to_owned()
    }

    fn log(mut self) -> String {
        _ = self.child.kill();
        _ = self.child.wait();
        std::fs::read_to_string(self.log.path()).unwrap()
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

/// One request under a host name of the caller's choice; its status, head and body.
async fn under(
    url: &str,
    method: &str,
    path: &str,
    host: &str,
    fields: &[(&str, &str)],
) -> (u16, String, String) {
    use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
    let mut stream = TcpStream::connect(authority(url)).await.unwrap();
    let fields: String = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let head = format!(
        "{method} {path} HTTP/1.1\r\nHost: {host}\r\n{fields}Connection: close\r\nContent-Length: 0\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await.unwrap();
    let mut all = String::new();
    stream.read_to_string(&mut all).await.unwrap();
    let (head, body) = all.split_once("\r\n\r\n").unwrap();
    (head[9..12].parse().unwrap(), head.to_ascii_lowercase(), body.to_owned())
}

#[test]
fn credentials_are_asked_for_declared_and_never_told() {
    const TOKEN: &str = "tok-5f1c0b7e9d";
    const KEY: &str = "key-88a2c4d1f0";
    run(async {
        let flags =
            ["--admin", "127.0.0.1:0", "--auth", "bearer:SIM_TOKEN", "--auth", "api-key:X-Api-Key:SIM_KEY"];
        let served = Served::start(&flags, &[("SIM_TOKEN", TOKEN), ("SIM_KEY", KEY)]);
        let (url, admin_url) = (served.url("url"), served.url("admin"));
        let bearer = format!("Bearer {TOKEN}");
        let send = h2c(&url).await;
        let mut statuses = Vec::new();
        for fields in [
            &[("authorization", bearer.as_str())][..],
            &[("x-api-key", KEY)],
            &[("authorization", "Bearer tok-5f1c0b7e9"), ("x-api-key", KEY)],
            &[],
            &[("authorization", "Bearer tok-5f1c0b7e9")],
            &[("authorization", "Basic dG9rOg==")],
            &[("x-api-key", "key-88a2c4d1f")],
        ] {
            let stream = TcpStream::connect(authority(&url)).await.unwrap();
            let (status, head, body) =
                http1(stream, "POST", "/a2a", fields, &envelope(&information())).await.unwrap();
            let seen = call(&send, &url, fields, &information()).await;
            assert_eq!(seen.status(), status, "{fields:?}");
            if status == 401 {
                assert!(head.to_ascii_lowercase().contains("www-authenticate: bearer realm="), "{head}");
                assert!(head.contains("in=\"header\", name=\"x-api-key\""), "{head}");
                assert!(!body.contains("jsonrpc") && body.contains("agent card"), "{body}");
                assert_eq!(seen.head.unwrap().1.get_all("www-authenticate").iter().count(), 2);
            }
            statuses.push(status);
        }
        assert_eq!(statuses, [200, 200, 200, 401, 401, 401, 401]);

        // What tells the way in is public, and tells it.
        let card = served.url("card");
        let card = ask(&send, Method::GET, &card, &[], "").await.json();
        assert_eq!(card["securitySchemes"]["bearer"]["httpAuthSecurityScheme"]["scheme"], "Bearer");
        let key = json!({ "apiKeySecurityScheme": { "location": "header", "name": "x-api-key" } });
        assert_eq!(card["securitySchemes"]["apiKey"], key);
        assert_eq!(card["securityRequirements"].as_array().unwrap().len(), 2);
        let base = url.trim_end_matches("/a2a");
        for (path, status) in [("/llms.txt", 200), ("/", 200), ("/elsewhere", 401), ("/a2a", 401)] {
            assert_eq!(
                ask(&send, Method::GET, &format!("{base}{path}"), &[], "").await.status(),
                status,
                "{path}"
            );
        }

        // Callers are told apart by what they have shown, of which nothing is kept that could be used.
        let mut told = String::new();
        for path in ["/journal?limit=100", "/conduct", "/metrics", "/conversations", "/leads"] {
            told += &under(&admin_url, "GET", path, "localhost", &[]).await.2;
        }
        assert!(told.contains("dealer_sim_http_unauthorized_total 10\n"), "{told}");
        let journal = under(&admin_url, "GET", "/journal?limit=100", "localhost", &[]).await.2;
        let journal: Value = serde_json::from_str(&journal).unwrap();
        let clients: std::collections::BTreeSet<_> =
            journal["entries"].as_array().unwrap().iter().map(|entry| entry["client"].to_string()).collect();
        assert!(clients.len() >= 4, "{clients:?}");
        told += &served.log();
        assert!(told.len() > 10_000, "nothing was logged");
        for secret in [TOKEN, KEY, "tok-5f1c0b7e9", "key-88a2c4d1f", "dG9rOg"] {
            assert!(!told.contains(secret), "{secret} is told");
        }
        assert!(!told.contains("panicked"), "{told}");
    });
}

#[test]
fn flags_without_their_secrets_are_refused() {
    for (flags, told) in [
        (&["--auth", "bearer:NO_SUCH_VARIABLE"][..], "NO_SUCH_VARIABLE"),
        (&["--auth", "bearer:EMPTY_VARIABLE"], "is empty"),
        (&["--auth", "password"], "bearer:VARIABLE"),
        (&["--auth", "mtls"], "--client-ca"),
        (&["--admin", "0.0.0.0:0"], "--admin-token-env"),
        (&["--admin", "0.0.0.0:0", "--admin-token-env", "NO_SUCH_VARIABLE"], "NO_SUCH_VARIABLE"),
    ] {
        let output = Command::new(env!("CARGO_BIN_EXE_dealer-sim"))
            .args(["serve", "--listen", "127.0.0.1:0", "--vehicles", "20"])
            .args(if flags[0] == "--admin" { &[][..] } else { &["--admin", "off"] })
            .args(flags)
            .env("EMPTY_VARIABLE", " ")
            .output()
            .unwrap();
        let error = String::from_utf8_lossy(&output.stderr);
        assert_eq!((output.status.code(), error.contains(told)), (Some(1), true), "{flags:?}: {error}");
    }
}

#[test]
fn a_certificate_is_one_of_the_credentials() {
    run(async {
        let auth =
            Auth::default().accept(Scheme::Bearer, Some(Secret::new(b"t"))).accept(Scheme::MutualTls, None);
        let dealer = super::tls::with_clients(auth, true).await;
        for (own, fields, status) in
            [(true, &[][..], 200), (false, &[("authorization", "Bearer t")], 200), (false, &[], 401)]
        {
            let stream = dealer.connect(own).await.unwrap();
            let (seen, ..) = http1(stream, "POST", "/a2a", fields, &envelope(&information())).await.unwrap();
            assert_eq!(seen, status, "{own}, {fields:?}");
        }
        let alone = super::tls::with_clients(Auth::default().accept(Scheme::MutualTls, None), true).await;
        let stream = alone.connect(false).await.unwrap();
        let (status, head, _) = http1(stream, "POST", "/a2a", &[], &envelope(&information())).await.unwrap();
        assert_eq!((status, head.to_ascii_lowercase().contains("www-authenticate")), (403, false), "{head}");
    });
}

#[test]
fn a_web_page_reaches_the_admin_endpoint_neither_across_origins_nor_by_a_rebound_name() {
    run(async {
        let dealer = frozen().start().await.unwrap();
        let url = dealer.admin_url().unwrap();
        let own = authority(&url).to_owned();
        let port = own.rsplit(':').next().unwrap();
        let origin = format!("http://{own}");
        let rebound = format!("evil.example:{port}");
        let rebound_origin = format!("http://{rebound}");
        for (host, fields, status) in [
            (own.as_str(), &[][..], 200),
            ("localhost", &[], 200),
            (&own, &[("Origin", origin.as_str())], 200),
            (&own, &[("Sec-Fetch-Site", "none")], 200),
            (&own, &[("Origin", "https://evil.example")], 403),
            (&own, &[("Origin", "http://localhost:3000")], 403),
            (&own, &[("Origin", "null")], 403),
            (&own, &[("Sec-Fetch-Site", "cross-site")], 403),
            (&rebound, &[], 403),
            (&rebound, &[("Origin", rebound_origin.as_str())], 403),
            (&rebound, &[("Sec-Fetch-Site", "same-origin")], 403),
            ("127.0.0.1.evil.example", &[], 403),
        ] {
            for (method, path) in
                [("POST", "/reset"), ("GET", "/leads"), ("DELETE", "/journal"), ("GET", "/livez")]
            {
                let (seen, head, body) = under(&url, method, path, host, fields).await;
                assert_eq!(seen == 403, status == 403, "{method} {path} {host} {fields:?}: {seen} {body}");
                assert!(!head.contains("access-control-"), "{head}");
            }
        }
        // What a browser asks before it sends what a form cannot send.
        let asked = [("Origin", "https://evil.example"), ("Access-Control-Request-Method", "PUT")];
        let (status, head, _) = under(&url, "OPTIONS", "/faults", &own, &asked).await;
        assert_eq!((status, head.contains("access-control-")), (403, false));
        assert_eq!(counter(&dealer, "dealer_sim_admin_refused").await, 8 * 4 + 1);
    });
}

#[test]
fn an_admin_endpoint_for_other_machines_asks_for_its_token() {
    run(async {
        let flags = ["--admin", "0.0.0.0:0", "--admin-token-env", "SIM_ADMIN"];
        let served = Served::start(&flags, &[("SIM_ADMIN", "adm-4411")]);
        let url = served.url("admin");
        let good = [("Authorization", "Bearer adm-4411")];
        for (path, host, fields, status) in [
            ("/leads", "localhost", &[][..], 401),
            ("/leads", "localhost", &[("Authorization", "Bearer adm-441")], 401),
            ("/leads", "localhost", &good, 200),
            ("/leads", "dealer-sim:8081", &good, 200),
            ("/readyz", "localhost", &[], 200),
            ("/leads", "dealer-sim:8081", &[], 403),
        ] {
            let (seen, head, _) = under(&url, "GET", path, host, fields).await;
            assert_eq!(seen, status, "{path} {host} {fields:?}");
            assert_eq!(seen == 401, head.contains("www-authenticate: bearer"), "{head}");
        }
        let conduct = |variables: &[(&str, &str)]| {
            let output = Command::new(env!("CARGO_BIN_EXE_dealer-sim"))
                .args(["conduct", "--admin", &url, "--format", "json", "--admin-token-env", "SIM_ADMIN"])
                .envs(variables.iter().copied())
                .output()
                .unwrap();
            output.status.code()
        };
        assert_eq!(conduct(&[("SIM_ADMIN", "adm-4411")]), Some(0));
        assert_eq!((conduct(&[("SIM_ADMIN", "wrong")]), conduct(&[])), (Some(1), Some(1)));
        let health = Command::new(env!("CARGO_BIN_EXE_dealer-sim")).args(["health", &url]).output().unwrap();
        assert_eq!(health.status.code(), Some(0));
        assert!(!served.log().contains("adm-4411"));
    });
}
