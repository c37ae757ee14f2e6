//! A client that means no harm, and what becomes of it.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use super::target::{Target, information, pin};

/// Requests after which it opens another connection.
const KEPT_FOR: usize = 25;

pub(crate) struct Honest {
    stop: Arc<AtomicBool>,
    thread: JoinHandle<Seen>,
}

/// What it saw.
#[derive(Default)]
pub(crate) struct Seen {
    pub(crate) times: Vec<Duration>,
    pub(crate) failures: Vec<String>,
}

impl Seen {
    pub(crate) fn quantile(&self, part: f64) -> Duration {
        let mut sorted = self.times.clone();
        sorted.sort_unstable();
        sorted.get((sorted.len() as f64 * part) as usize).copied().unwrap_or_default()
    }
}

impl Honest {
    /// Asks one question after the other, with a pause between them, on a core if one is named.
    pub(crate) fn start(target: &Target, pause: Duration, core: Option<usize>) -> Honest {
        let stop = Arc::new(AtomicBool::new(false));
        let (address, stopping) = (target.http(), stop.clone());
        let thread = std::thread::spawn(move || {
            if let Some(core) = core {
                pin(&[core]);
            }
            let mut seen = Seen::default();
            let mut kept = None;
            for number in 0.. {
                if stopping.load(Ordering::Relaxed) {
                    break;
                }
                if number % KEPT_FOR == 0 {
                    kept = None;
                }
                let begun = Instant::now();
                match ask(&mut kept, address) {
                    Ok(()) => seen.times.push(begun.elapsed()),
                    Err(problem) => {
                        seen.failures.push(problem);
                        kept = None;
                    }
                }
                std::thread::sleep(pause);
            }
            seen
        });
        Honest { stop, thread }
    }

    pub(crate) fn stop(self) -> Seen {
        self.stop.store(true, Ordering::Relaxed);
        self.thread.join().unwrap()
    }
}

fn ask(kept: &mut Option<TcpStream>, address: SocketAddr) -> Result<(), String> {
    let stream = match kept {
        Some(stream) => stream,
        None => {
            let stream = TcpStream::connect(address).map_err(|error| format!("connect: {error}"))?;
            stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            stream.set_nodelay(true).unwrap();
            kept.insert(stream)
        }
    };
    let body = information();
    let request = format!(
        "POST /a2a HTTP/1.1\r\nHost: dealer\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).map_err(|error| format!("write: {error}"))?;
    let mut reply = Vec::new();
    let mut piece = [0; 16_384];
    loop {
        let read = stream.read(&mut piece).map_err(|error| format!("read: {error}"))?;
        if read == 0 {
            return Err("the connection ended".to_owned());
        }
        reply.extend_from_slice(&piece[..read]);
        let text = String::from_utf8_lossy(&reply);
        if let Some((head, body)) = text.split_once("\r\n\r\n") {
            let length = head.lines().find_map(|line| line.strip_prefix("content-length: "));
            if length.and_then(|length| length.parse().ok()) == Some(body.len()) {
                let good = head.starts_with("HTTP/1.1 200") && body.contains("dealer.information.response");
                return if good { Ok(()) } else { Err(format!("{head} {body:.200}")) };
            }
        }
    }
}
