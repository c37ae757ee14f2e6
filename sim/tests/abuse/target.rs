//! The server under attack, and the connections of attackers.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpStream};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicU8, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use socket2::{Domain, Socket, Type};

/// How long an attacker waits for a word.
const PATIENCE: Duration = Duration::from_secs(8);

/// Limits that an attack reaches soon.
const LIMITS: &str = "header_timeout_ms = 600\nbody_timeout_ms = 600\nwrite_timeout_ms = 600\ntls_handshake_timeout_ms = 600\n\
    connection_requests = 5000\nhttp2_resets = 100\nwaiting_reply_bytes = 4194304\n";

/// A plain server and one under TLS, with short limits.
pub(crate) struct Target {
    plain: Served,
    secure: Served,
    _folder: tempfile::TempDir,
}

struct Served {
    child: Child,
    log: std::path::PathBuf,
    http: SocketAddr,
    admin: SocketAddr,
}

/// Has this thread, and what it starts, run on these cores alone.
pub(crate) fn pin(cores: &[usize]) {
    let mut set = rustix::thread::CpuSet::new();
    cores.iter().for_each(|core| set.set(*core));
    rustix::thread::sched_setaffinity(None, &set).unwrap();
}

fn address(url: &Value) -> SocketAddr {
    let url = url.as_str().unwrap();
    url.split_once("://").unwrap().1.split('/').next().unwrap().parse().unwrap()
}

impl Served {
    fn start(folder: &std::path::Path, name: &str, flags: &[&str], vehicles: u32) -> Served {
        let log = folder.join(name);
        let limits = folder.join("limits.toml");
        let mut child = Command::new(env!("CARGO_BIN_EXE_dealer-sim"))
            .args(["serve", "--listen", "127.0.0.1:0", "--admin", "127.0.0.1:0", "--vehicles"])
            .arg(vehicles.to_string())
            .arg("--limits")
            .arg(&limits)
            .args(flags)
            .stdout(Stdio::piped())
            .stderr(std::fs::File::create(&log).unwrap())
            .spawn()
            .unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let first: Value = serde_json::from_str(&line).unwrap_or_else(|_| panic!("no first line: {line:?}"));
        Served { child, log, http: address(&first["url"]), admin: address(&first["admin"]) }
    }

    fn peak_memory(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        line.split_whitespace().next().unwrap().parse::<u64>().unwrap() * 1024
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        _ = self.child.kill();
        _ = self.child.wait();
    }
}

impl Target {
    pub(crate) fn start(flags: &[&str], vehicles: u32) -> Target {
        let folder = tempfile::tempdir().unwrap();
        let clients = if vehicles > 100 { 12_000 } else { 300 };
        let limits = format!("{LIMITS}connections = 20000\nconnections_per_client = {clients}\n");
        std::fs::write(folder.path().join("limits.toml"), limits).unwrap();
        let plain = Served::start(folder.path(), "plain.log", flags, vehicles);
        let secure =
            Served::start(folder.path(), "secure.log", &[flags, &["--tls-self-signed"]].concat(), vehicles);
        Target { plain, secure, _folder: folder }
    }

    pub(crate) fn http(&self) -> SocketAddr {
        self.plain.http
    }

    /// How many connections a client may have, and a few more.
    pub(crate) fn crowd(&self) -> usize {
        if self.is_long() { 10_000 } else { 250 }
    }

    fn is_long(&self) -> bool {
        std::fs::read_to_string(self._folder.path().join("limits.toml")).unwrap().contains("= 12000")
    }

    /// The greater of the two servers' peaks.
    pub(crate) fn peak_memory(&self) -> u64 {
        self.plain.peak_memory().max(self.secure.peak_memory())
    }

    /// What both have written to their logs.
    pub(crate) fn log(&self) -> String {
        let read = |served: &Served| std::fs::read_to_string(&served.log).unwrap();
        read(&self.plain) + &read(&self.secure)
    }

    /// A connection of an attacker, who comes from an address of its own.
    pub(crate) fn connect(&self) -> Caller {
        static NEXT: AtomicU8 = AtomicU8::new(0);
        let host = 2 + NEXT.fetch_add(1, Ordering::Relaxed) % 200;
        self.connect_from(Ipv4Addr::new(127, 0, 7, host), self.plain.http)
    }

    /// A connection from this address of loopback.
    pub(crate) fn from(&self, host: Ipv4Addr) -> Caller {
        self.connect_from(host, self.plain.http)
    }

    /// A connection to the port where TLS is spoken.
    pub(crate) fn connect_tls(&self) -> Caller {
        self.connect_from(Ipv4Addr::new(127, 0, 8, 1), self.secure.http)
    }

    /// A connection to the admin endpoint.
    pub(crate) fn connect_admin(&self) -> Caller {
        self.connect_from(Ipv4Addr::LOCALHOST, self.plain.admin)
    }

    fn connect_from(&self, host: Ipv4Addr, to: SocketAddr) -> Caller {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        socket.bind(&SocketAddr::from((host, 0)).into()).unwrap();
        socket.connect(&to.into()).unwrap();
        let stream = TcpStream::from(socket);
        stream.set_read_timeout(Some(PATIENCE)).unwrap();
        stream.set_write_timeout(Some(PATIENCE)).unwrap();
        Caller(stream)
    }

    /// What the admin endpoint answers to this, status and body.
    pub(crate) fn admin(&self, method: &str, path: &str, body: &str) -> (u16, String) {
        let mut caller = self.connect_admin();
        let length = body.len();
        caller.say(format!(
            "{method} {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\nContent-Length: {length}\r\n\r\n{body}"
        ));
        let all = caller.hear();
        let status = all.get(9..12).and_then(|status| status.parse().ok()).unwrap_or(0);
        (status, all.split_once("\r\n\r\n").map(|(_, body)| body.to_owned()).unwrap_or_default())
    }
}

/// An attacker's end of a connection.
pub(crate) struct Caller(pub(crate) TcpStream);

impl Caller {
    /// Says something; that the other side has had enough is no failure of the attacker's.
    pub(crate) fn say(&mut self, bytes: impl AsRef<[u8]>) -> bool {
        self.0.write_all(bytes.as_ref()).is_ok()
    }

    /// Ends its side.
    pub(crate) fn end(&mut self) -> &mut Caller {
        _ = self.0.shutdown(Shutdown::Write);
        self
    }

    /// Everything up to the end of the connection, as text.
    pub(crate) fn hear(&mut self) -> String {
        String::from_utf8_lossy(&self.hear_bytes()).into_owned()
    }

    /// Everything up to the end of the connection; panics where none comes.
    pub(crate) fn hear_bytes(&mut self) -> Vec<u8> {
        let mut all = Vec::new();
        let mut piece = [0; 65_536];
        loop {
            match self.0.read(&mut piece) {
                Ok(0) => return all,
                Ok(read) => all.extend_from_slice(&piece[..read]),
                Err(error) => {
                    let kind = error.kind();
                    let waits = matches!(kind, std::io::ErrorKind::WouldBlock | std::io::ErrorKind::TimedOut);
                    assert!(
                        !waits,
                        "the connection neither answers nor ends; so far: {:.300}",
                        String::from_utf8_lossy(&all)
                    );
                    return all;
                }
            }
        }
    }

    /// The statuses of all replies up to the end of the connection; "closed" if there are none.
    pub(crate) fn statuses(&mut self) -> String {
        let all = self.hear();
        let found: Vec<&str> =
            all.match_indices("HTTP/1.1 ").filter_map(|(at, _)| all.get(at + 9..at + 12)).collect();
        if found.is_empty() { "closed".to_owned() } else { found.join(" ") }
    }
}

/// Says one request and hears the statuses.
pub(crate) fn ask(target: &Target, bytes: impl AsRef<[u8]>) -> String {
    let mut caller = target.connect();
    caller.say(bytes);
    caller.end().statuses()
}

/// The head of a call with a body of this length, and the body.
pub(crate) fn post(body: &str) -> String {
    format!(
        "POST /a2a HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// What a call with this body comes to: the status, with the number of the JSON-RPC error if there is one.
pub(crate) fn call(target: &Target, body: &str) -> String {
    let mut caller = target.connect();
    caller.say(post(body));
    let all = caller.hear();
    let (head, body) = all.split_once("\r\n\r\n").unwrap_or_else(|| panic!("no reply: {all:?}"));
    let reply: Value = serde_json::from_str(body).unwrap_or(Value::Null);
    let number = reply["error"]["code"].as_i64().map(|number| format!(" {number}")).unwrap_or_default();
    format!("{}{number}", &head[9..12])
}

/// A call of this skill.
pub(crate) fn envelope(stem: &str, payload: &Value) -> Value {
    json!({
        "jsonrpc": "2.0", "id": 1, "method": "SendMessage",
        "params": { "message": { "messageId": "m-1", "role": "ROLE_USER", "parts": [{
            "data": payload, "mediaType": format!("application/vnd.autoagent.{stem}-request+json"),
        }] } },
    })
}

/// The simplest call.
pub(crate) fn information() -> String {
    envelope("dealer-information", &json!({ "type": "dealer.information.request" })).to_string()
}
