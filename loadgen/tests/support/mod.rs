//! A dealer for tests: speaks just enough of the protocol to be right, and is wrong on request.
#![allow(dead_code, reason = "each test file uses its own part")]
#![allow(clippy::disallowed_methods, reason = "a server of tests waits and reads the clock")]
#![allow(clippy::unwrap_used, clippy::panic, reason = "clippy lets only functions marked as tests do so")]

use std::io::Write as _;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Command, Output};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::{Duration, Instant};

use rand::{RngExt, SeedableRng};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// What the server does with a request.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(crate) enum Manner {
    /// Answers rightly.
    Right,
    /// Answers rightly, in chunks of this many bytes.
    Chunked(usize),
    /// Answers rightly and closes without having said so.
    CloseAfterReply,
    /// Answers rightly and says `Connection: close`.
    SayClose,
    /// Answers rightly, one byte after the other with this pause.
    Drip(Duration),
    /// Answers rightly after this long.
    Slow(Duration),
    /// Never answers.
    Silent,
    /// Sends half of the reply, then nothing.
    Half,
    /// Resets the connection instead of a reply.
    Reset,
    /// Closes the connection instead of a reply.
    Close,
    /// Sends something that is no HTTP.
    Garbage,
    /// Announces this many bytes.
    Oversized(u64),
    /// Answers with this status and a text.
    Status(u16),
    /// Answers rightly, after an interim reply.
    Interim,
    /// Sends interim replies only, without end.
    EndlessInterim,
    /// Answers with an AAP error.
    Aap(&'static str, i64),
    /// Leaves `contextId` out.
    NoContext,
    /// Makes up a new `contextId` each time.
    OtherContext,
    /// Answers with a number for an id.
    OtherId,
    /// Adds bytes after the reply.
    Trailing,
    /// Answers with RATE_LIMITED and a hint of so many milliseconds.
    Limited(u64),
    /// Answers with HTTP 503 and `Retry-After: 1`.
    Busy,
    /// Says that the reply is gzip, with that magic number.
    Gzip,
}

/// A request that a server has received.
#[derive(Debug, Clone)]
pub(crate) struct Heard {
    pub(crate) at: Instant,
    pub(crate) head: String,
    pub(crate) body: String,
}

impl Heard {
    /// The payload in the body.
    pub(crate) fn payload(&self) -> Value {
        let body: Value = serde_json::from_str(&self.body).unwrap();
        body["params"]["message"]["parts"][0]["data"].clone()
    }
}

/// The server's own count of what it did.
#[derive(Debug, Default)]
pub(crate) struct Counts {
    pub(crate) connections: AtomicU64,
    pub(crate) requests: AtomicU64,
    pub(crate) leads: AtomicU64,
    pub(crate) cards: AtomicU64,
    heard: std::sync::Mutex<Vec<Heard>>,
}

/// How long replies are held back.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Delay {
    /// Nine of ten by the first, the tenth by the second.
    NineAndOne(Duration, Duration),
    /// Log-normal, by its median and 99th percentile.
    Lognormal(Duration, Duration),
}

impl Delay {
    /// The delay of the nth reply: the same for all runs.
    fn of(self, nth: usize) -> Duration {
        match self {
            Delay::NineAndOne(short, long) => {
                if nth % 10 == 9 {
                    long
                } else {
                    short
                }
            }
            Delay::Lognormal(p50, p99) => {
                let mut rng = ChaCha8Rng::seed_from_u64(nth as u64);
                // Box and Muller.
                let (one, two): (f64, f64) = (1.0 - rng.random::<f64>(), rng.random());
                let normal = (-2.0 * one.ln()).sqrt() * (std::f64::consts::TAU * two).cos();
                let sigma = (p99.as_secs_f64() / p50.as_secs_f64()).ln() / 2.326_347_874;
                p50.mul_f64((sigma * normal).exp())
            }
        }
    }
}

/// How the server is set up.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    /// What is done with the nth request, over and over.
    pub(crate) manners: Vec<Manner>,
    /// Every T, first at T/2, the whole server sleeps for D.
    pub(crate) stall: Option<(Duration, Duration)>,
    /// How long each reply is held back; what that came to is logged.
    pub(crate) delay: Option<Delay>,
    /// Idle connections are closed after this.
    pub(crate) idle_limit: Option<Duration>,
    /// Whether it says that it is a simulator.
    pub(crate) is_simulator: bool,
    pub(crate) extension_uri: &'static str,
    /// The host that its card names instead of the address it listens on.
    pub(crate) card_host: Option<&'static str>,
    /// Bytes of filling in each payload.
    pub(crate) filling: usize,
    /// Whether each request is kept, for [`Server::heard`].
    pub(crate) keeps: bool,
}

impl Default for Setup {
    fn default() -> Setup {
        Setup {
            manners: vec![Manner::Right],
            stall: None,
            delay: None,
            idle_limit: None,
            is_simulator: true,
            extension_uri: "https://autoagentprotocol.org/extensions/aap/v3.0",
            card_host: None,
            filling: 600,
            keeps: false,
        }
    }
}

/// A running server; it ends with the process.
#[derive(Debug, Clone)]
pub(crate) struct Server {
    pub(crate) address: SocketAddr,
    pub(crate) counts: Arc<Counts>,
    stalls: Arc<std::sync::Mutex<Vec<Duration>>>,
    delays: Arc<std::sync::Mutex<Vec<Duration>>>,
    cpu_nanos: Arc<AtomicU64>,
    started: Instant,
}

impl Server {
    pub(crate) fn start(setup: Setup) -> Server {
        let counts = Arc::new(Counts::default());
        let stalls = Arc::new(std::sync::Mutex::new(Vec::new()));
        let delays = Arc::new(std::sync::Mutex::new(Vec::new()));
        let log = Arc::clone(&delays);
        let cpu_nanos = Arc::new(AtomicU64::new(0));
        let (ready, address) = mpsc::channel();
        let shared = (Arc::clone(&counts), Arc::clone(&stalls), Arc::clone(&cpu_nanos));
        std::thread::spawn(move || {
            let (counts, stalls, cpu_nanos) = shared;
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
            runtime.block_on(async move {
                let socket = tokio::net::TcpSocket::new_v4().unwrap();
                socket.bind("127.0.0.1:0".parse().unwrap()).unwrap();
                let listener = socket.listen(4096).unwrap();
                let address = listener.local_addr().unwrap();
                ready.send(address).unwrap();
                if let Some((every, length)) = setup.stall {
                    tokio::spawn(async move {
                        let start = tokio::time::Instant::now();
                        for index in 0u32.. {
                            tokio::time::sleep_until(start + every / 2 + every * index).await;
                            let before = Instant::now();
                            // The whole thread: nothing is accepted, read or written.
                            std::thread::sleep(length);
                            stalls.lock().unwrap().push(before.elapsed());
                        }
                    });
                }
                tokio::spawn(async move {
                    loop {
                        tokio::time::sleep(Duration::from_millis(200)).await;
                        let cpu = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
                        cpu_nanos
                            .store(cpu.tv_sec as u64 * 1_000_000_000 + cpu.tv_nsec as u64, Ordering::Relaxed);
                    }
                });
                accept(listener, Arc::new(setup), counts, log).await;
            });
        });
        let address = address.recv().unwrap();
        Server { address, counts, stalls, delays, cpu_nanos, started: Instant::now() }
    }

    pub(crate) fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    pub(crate) fn raw_url(&self) -> String {
        format!("http://{}/a2a", self.address)
    }

    pub(crate) fn requests(&self) -> u64 {
        self.counts.requests.load(Ordering::Relaxed)
    }

    pub(crate) fn connections(&self) -> u64 {
        self.counts.connections.load(Ordering::Relaxed)
    }

    /// The requests so far, if they are kept.
    pub(crate) fn heard(&self) -> Vec<Heard> {
        self.counts.heard.lock().unwrap().clone()
    }

    /// How long each stall really was.
    pub(crate) fn stalls(&self) -> Vec<Duration> {
        self.stalls.lock().unwrap().clone()
    }

    /// How long each reply was really held back, from the request's last byte to the reply's.
    pub(crate) fn delays(&self) -> Vec<Duration> {
        self.delays.lock().unwrap().clone()
    }

    /// The share of the time since the start that the server's thread was busy.
    pub(crate) fn utilisation(&self) -> f64 {
        self.cpu_nanos.load(Ordering::Relaxed) as f64 / self.started.elapsed().as_nanos() as f64
    }
}

type Log = Arc<std::sync::Mutex<Vec<Duration>>>;

async fn accept(listener: TcpListener, setup: Arc<Setup>, counts: Arc<Counts>, log: Log) {
    let address = listener.local_addr().unwrap();
    loop {
        let Ok((stream, _)) = listener.accept().await else { continue };
        counts.connections.fetch_add(1, Ordering::Relaxed);
        let (setup, counts, log) = (Arc::clone(&setup), Arc::clone(&counts), Arc::clone(&log));
        tokio::spawn(async move {
            let _ = stream.set_nodelay(true);
            let _ = serve(stream, address, &setup, &counts, &log).await;
        });
    }
}

async fn serve(
    mut stream: TcpStream,
    address: SocketAddr,
    setup: &Setup,
    counts: &Counts,
    log: &Log,
) -> std::io::Result<()> {
    let mut buffer = Vec::with_capacity(8192);
    let filling = "x".repeat(setup.filling);
    loop {
        buffer.clear();
        let body_at = loop {
            if let Some(at) = find(&buffer, b"\r\n\r\n") {
                let length =
                    field(&buffer[..at], b"Content-Length: ").and_then(|text| text.parse().ok()).unwrap_or(0);
                if buffer.len() >= at + 4 + length {
                    break at + 4;
                }
            }
            let read = stream.read_buf(&mut buffer);
            let read = match setup.idle_limit {
                Some(limit) => tokio::time::timeout(limit, read).await.unwrap_or(Ok(0))?,
                None => read.await?,
            };
            if read == 0 {
                return Ok(());
            }
        };
        if buffer.starts_with(b"GET ") {
            counts.cards.fetch_add(1, Ordering::Relaxed);
            let card = card(address, setup).to_string();
            stream.write_all(&http(200, setup.is_simulator, card.as_bytes())).await?;
            continue;
        }
        let nth = counts.requests.fetch_add(1, Ordering::Relaxed) as usize;
        let body = &buffer[body_at..];
        if setup.keeps {
            let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
            let heard = Heard { at: Instant::now(), head: text(&buffer[..body_at]), body: text(body) };
            counts.heard.lock().unwrap().push(heard);
        }
        if find(body, b"lead.submit.request").is_some() {
            counts.leads.fetch_add(1, Ordering::Relaxed);
        }
        let manner = setup.manners[nth % setup.manners.len()];
        let asked = Instant::now();
        if let Some(delay) = setup.delay {
            tokio::time::sleep(delay.of(nth)).await;
        }
        let goes_on = answer(&mut stream, manner, body, nth, setup.is_simulator, &filling).await?;
        if setup.delay.is_some() {
            log.lock().unwrap().push(asked.elapsed());
        }
        if !goes_on {
            return Ok(());
        }
    }
}

/// Whether the connection goes on.
async fn answer(
    stream: &mut TcpStream,
    manner: Manner,
    body: &[u8],
    nth: usize,
    is_simulator: bool,
    filling: &str,
) -> std::io::Result<bool> {
    let right = |context: Option<&str>, id: Option<&str>| {
        http(200, is_simulator, &reply(body, nth, context, id, filling))
    };
    match manner {
        Manner::Right => stream.write_all(&right(None, None)).await?,
        Manner::NoContext => stream.write_all(&right(Some(""), None)).await?,
        Manner::OtherContext => {
            let context = format!("\"contextId\":\"new-{nth}\",");
            stream.write_all(&right(Some(&context), None)).await?;
        }
        Manner::OtherId => stream.write_all(&right(None, Some("7"))).await?,
        Manner::Chunked(size) => {
            let body = reply(body, nth, None, None, filling);
            let mut out =
                b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"
                    .to_vec();
            for chunk in body.chunks(size) {
                write!(out, "{:x}\r\n", chunk.len())?;
                out.extend_from_slice(chunk);
                out.extend_from_slice(b"\r\n");
            }
            out.extend_from_slice(b"0\r\n\r\n");
            stream.write_all(&out).await?;
        }
        Manner::CloseAfterReply => {
            stream.write_all(&right(None, None)).await?;
            return Ok(false);
        }
        Manner::SayClose => {
            let text = String::from_utf8(right(None, None)).unwrap();
            let text = text.replacen("\r\n", "\r\nConnection: close\r\n", 1);
            stream.write_all(text.as_bytes()).await?;
            return Ok(false);
        }
        Manner::Drip(pause) => {
            for byte in right(None, None) {
                stream.write_all(&[byte]).await?;
                tokio::time::sleep(pause).await;
            }
        }
        Manner::Slow(pause) => {
            tokio::time::sleep(pause).await;
            stream.write_all(&right(None, None)).await?;
        }
        Manner::Silent => tokio::time::sleep(Duration::from_secs(3600)).await,
        Manner::Half => {
            let whole = right(None, None);
            stream.write_all(&whole[..whole.len() / 2]).await?;
            tokio::time::sleep(Duration::from_secs(3600)).await;
        }
        Manner::Reset => {
            // Closing with a linger time of zero sends a reset.
            socket2::SockRef::from(&*stream).set_linger(Some(Duration::ZERO))?;
            return Ok(false);
        }
        Manner::Close => return Ok(false),
        Manner::Garbage => stream.write_all(b"\x00\x01 this is not HTTP\r\n\r\n").await?,
        Manner::Oversized(length) => {
            let head = format!(
                "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {length}\r\n\r\n"
            );
            stream.write_all(head.as_bytes()).await?;
        }
        Manner::Status(status) => stream.write_all(&http(status, is_simulator, b"busy")).await?,
        Manner::EndlessInterim => loop {
            stream.write_all(b"HTTP/1.1 100 Continue\r\n\r\n").await?;
        },
        Manner::Interim => {
            stream.write_all(b"HTTP/1.1 103 Early Hints\r\nLink: <x>\r\n\r\n").await?;
            stream.write_all(&right(None, None)).await?;
        }
        Manner::Aap(code, number) => {
            let error = json!({"code": number, "message": code, "data": [
                {"@type": "type.googleapis.com/google.rpc.ErrorInfo", "reason": code, "domain": "autoagentprotocol.org"},
                {"@type": "https://autoagentprotocol.org/extensions/aap/error", "type": "aap.error", "code": code}
            ]});
            let id = between(body, b"\"id\":\"", b'"').unwrap_or_default();
            let text = json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string();
            stream.write_all(&http(200, is_simulator, text.as_bytes())).await?;
        }
        Manner::Limited(millis) => {
            let entry = json!({"@type": "https://autoagentprotocol.org/extensions/aap/error", "type": "aap.error",
                "code": "RATE_LIMITED", "retryable": true, "details": {"retry_after_ms": millis}});
            let error = json!({"code": -32000, "message": "RATE_LIMITED", "data": [entry]});
            let id = between(body, b"\"id\":\"", b'"').unwrap_or_default();
            let text = json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string();
            stream.write_all(&http(200, is_simulator, text.as_bytes())).await?;
        }
        Manner::Busy => {
            let text = String::from_utf8(http(503, is_simulator, b"busy")).unwrap();
            stream.write_all(text.replacen("\r\n", "\r\nRetry-After: 1\r\n", 1).as_bytes()).await?;
        }
        Manner::Gzip => {
            let text = String::from_utf8(http(200, is_simulator, b"    ")).unwrap();
            let text = text.replacen("\r\n", "\r\nContent-Encoding: gzip\r\n", 1);
            stream.write_all(text.trim_end_matches(' ').as_bytes()).await?;
            stream.write_all(b"\x1f\x8b\x08\x00").await?;
        }
        Manner::Trailing => {
            let mut out = right(None, None);
            out.extend_from_slice(b"HTTP/1.1 200 OK\r\n");
            stream.write_all(&out).await?;
        }
    }
    Ok(true)
}

fn http(status: u16, is_simulator: bool, body: &[u8]) -> Vec<u8> {
    let server = if is_simulator { "dealer-sim/0.0.0" } else { "a-dealer" };
    let mut out = format!(
        "HTTP/1.1 {status} Whatever\r\nServer: {server}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    )
    .into_bytes();
    out.extend_from_slice(body);
    out
}

/// A right reply, put together from pieces: it must cost the server little.
fn reply(body: &[u8], nth: usize, context: Option<&str>, id: Option<&str>, filling: &str) -> Vec<u8> {
    let sent_id = between(body, b"\"id\":\"", b'"').unwrap_or_default();
    let skill =
        between(body, b"\"type\":\"", b'"').unwrap_or_default().trim_end_matches(".request").to_owned();
    let media = between(body, b"\"acceptedOutputModes\":[\"", b'"').unwrap_or_default();
    let kept = between(body, b"\"contextId\":\"", b'"');
    let mut out = Vec::with_capacity(filling.len() + 512);
    let _ = match id {
        Some(id) => write!(out, "{{\"jsonrpc\":\"2.0\",\"id\":{id},"),
        None => write!(out, "{{\"jsonrpc\":\"2.0\",\"id\":\"{sent_id}\","),
    };
    let _ = write!(out, "\"result\":{{\"message\":{{\"messageId\":\"reply-{nth}\",");
    let _ = match (context, kept) {
        (Some(context), _) => write!(out, "{context}"),
        (None, Some(kept)) => write!(out, "\"contextId\":\"{kept}\","),
        (None, None) => write!(out, "\"contextId\":\"ctx-{nth}\","),
    };
    let data = match skill.as_str() {
        "lead.submit" => format!("{{\"lead_id\":\"lead-{nth}\",\"status\":\"received\"}}"),
        "inventory.vehicle" => {
            let vin = between(body, b"\"vin\":\"", b'"').unwrap_or_default();
            format!("{{\"vin\":\"{vin}\",\"notes\":\"{filling}\"}}")
        }
        _ => format!(
            "{{\"total\":1,\"vehicles\":[{{\"vin\":\"1ZZ00000000000001\",\"notes\":\"{filling}\"}}]}}"
        ),
    };
    let _ = write!(
        out,
        "\"role\":\"ROLE_AGENT\",\"parts\":[{{\"data\":{{\"type\":\"{skill}.response\",\"data\":{data}}},\
         \"mediaType\":\"{media}\"}}]}}}}}}"
    );
    out
}

fn card(address: SocketAddr, setup: &Setup) -> Value {
    let organization = if setup.is_simulator { "dealer-sim" } else { "Harbor Motors Inc." };
    let host = setup.card_host.map_or(address.ip().to_string(), str::to_owned);
    json!({
        "name": "Test dealer",
        "provider": {"organization": organization, "url": "https://example.test"},
        "supportedInterfaces": [
            {"url": format!("http://{host}:{}/a2a", address.port()), "protocolBinding": "JSONRPC", "protocolVersion": "1.0"}
        ],
        "capabilities": {"extensions": [{"uri": setup.extension_uri, "required": true}]}
    })
}

fn find(bytes: &[u8], wanted: &[u8]) -> Option<usize> {
    memchr::memmem::find(bytes, wanted)
}

fn between<'a>(bytes: &'a [u8], before: &[u8], end: u8) -> Option<&'a str> {
    let rest = &bytes[find(bytes, before)? + before.len()..];
    std::str::from_utf8(&rest[..memchr::memchr(end, rest)?]).ok()
}

fn field<'a>(head: &'a [u8], name: &[u8]) -> Option<&'a str> {
    between(head, name, b'\r').or_else(|| {
        let rest = &head[find(head, name)? + name.len()..];
        std::str::from_utf8(rest).ok()
    })
}

/// A file of the repository.
pub(crate) fn repository(path: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// A shipped scenario.
pub(crate) fn scenario(name: &str) -> String {
    repository(&format!("scenarios/{name}.yaml")).display().to_string()
}

/// The command, with no variables of the environment that would change it.
pub(crate) fn command(flags: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dealer-loadgen"));
    command.args(flags);
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("DEALER_LOADGEN_")) {
        command.env_remove(name);
    }
    command
}

/// Runs the command to its end.
pub(crate) fn loadgen(flags: &[&str]) -> Output {
    let output = command(flags).output().unwrap();
    let told = String::from_utf8_lossy(&output.stderr);
    assert!(!told.contains("panicked"), "the load generator panicked: {told}");
    output
}

/// Runs scenario `smoke` against a server and gives the exit code and the summary.
pub(crate) fn smoke(server: &Server, flags: &[&str]) -> (i32, Value) {
    run(server, "smoke", flags)
}

/// Runs a shipped scenario against a server and gives the exit code and the summary.
pub(crate) fn run(server: &Server, name: &str, flags: &[&str]) -> (i32, Value) {
    let (url, path) = (server.url(), scenario(name));
    let line = [&["run", &path, "--endpoint", &url, "--format", "json", "--quiet"], flags].concat();
    let output = loadgen(&line);
    let summary = serde_json::from_slice(&output.stdout).unwrap_or_else(|error| {
        panic!(
            "{error}: {} {}",
            String::from_utf8_lossy(&output.stdout),
            String::from_utf8_lossy(&output.stderr)
        )
    });
    (output.status.code().unwrap_or(-1), summary)
}

/// Whether a summary says that its generator was late, and nothing else against the run: so it is on a machine that is busy
/// with other things, whatever the program does.
pub(crate) fn was_late(summary: &Value) -> bool {
    let reasons: Vec<&str> =
        summary["verdict"]["reasons"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let of_time = ["started in time", "itself was late", "of a core"];
    !reasons.is_empty() && reasons.iter().all(|reason| of_time.iter().any(|words| reason.contains(words)))
}

/// That a run ended with this code, or, if it was late and says so, with 4.
pub(crate) fn assert_ended(code: i32, expected: i32, summary: &Value) {
    let is_late = was_late(summary);
    assert_eq!(code, if is_late { 4 } else { expected }, "{summary:#}");
    assert_eq!(summary["verdict"]["valid"], !is_late && expected != 4, "{summary:#}");
}
