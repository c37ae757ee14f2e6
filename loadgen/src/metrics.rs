//! `--metrics ADDR`: the run's counters as OpenMetrics text, while it goes on.
#![expect(
    clippy::disallowed_methods,
    reason = "a listener is part of the rim: it waits when it cannot accept"
)]

use std::fmt::Write as _;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::sync::Arc;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinHandle;

use crate::record::{Latency, Tally};

/// Readers at a time; more wait.
const MAX_READERS: usize = 8;
/// A request longer than this is none of a reader of metrics.
const MAX_REQUEST: usize = 8192;
/// How long a reader may take.
const TIME_LIMIT: Duration = Duration::from_secs(5);
/// After an accept that failed.
const PAUSE: Duration = Duration::from_millis(100);

/// An address as a user types it: `9464` and `:9464` are ports of the loopback address.
pub(crate) fn address(text: &str) -> Option<SocketAddr> {
    let loopback = |port: &str| Some(SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), port.parse().ok()?));
    text.parse().ok().or_else(|| loopback(text.strip_prefix(':').unwrap_or(text)))
}

/// Serves metrics until it is dropped.
#[derive(Debug)]
pub(crate) struct Exporter {
    text: watch::Sender<Arc<str>>,
    task: JoinHandle<()>,
    /// Where it listens.
    pub(crate) address: SocketAddr,
}

impl Exporter {
    /// Begins to listen.
    ///
    /// # Errors
    /// If the address is not free.
    pub(crate) async fn bind(address: SocketAddr) -> io::Result<Exporter> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        let (text, reader) = watch::channel(Arc::from("# EOF\n"));
        let task = tokio::spawn(async move {
            let places = Arc::new(Semaphore::new(MAX_READERS));
            loop {
                let Ok(place) = Arc::clone(&places).acquire_owned().await else { return };
                // An accept that fails, for lack of descriptors say, must not become a busy loop.
                let Ok((stream, _)) = listener.accept().await else {
                    tokio::time::sleep(PAUSE).await;
                    continue;
                };
                let text = Arc::clone(&reader.borrow());
                tokio::spawn(async move {
                    let _ = tokio::time::timeout(TIME_LIMIT, answer(stream, &text)).await;
                    drop(place);
                });
            }
        });
        Ok(Exporter { text, task, address })
    }

    /// What readers get from now on.
    pub(crate) fn publish(&self, text: String) {
        let _ = self.text.send(Arc::from(text));
    }
}

impl Drop for Exporter {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn answer(mut stream: TcpStream, text: &str) -> io::Result<()> {
    let mut request = Vec::with_capacity(1024);
    while !request.windows(4).any(|end| end == b"\r\n\r\n") {
        if stream.read_buf(&mut request).await? == 0 || request.len() > MAX_REQUEST {
            return Ok(());
        }
    }
    let line = request.split(|&byte| byte == b'\r').next().unwrap_or_default();
    let target = line.split(|&byte| byte == b' ').nth(1).unwrap_or_default();
    let is_get = line.starts_with(b"GET ");
    let (status, body) = match target {
        b"/metrics" | b"/" if is_get => ("200 OK", text),
        _ => ("404 Not Found", "metrics are at /metrics\n"),
    };
    let kind = if status.starts_with("200") {
        "application/openmetrics-text; version=1.0.0; charset=utf-8"
    } else {
        "text/plain; charset=utf-8"
    };
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    stream.shutdown().await
}

/// The counters of a run as OpenMetrics text.
pub(crate) fn render(tally: &Tally, labels: &[String], in_flight: u64, target_rate: Option<f64>) -> String {
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = write(&mut out, tally, labels, in_flight, target_rate);
    out
}

fn write(
    out: &mut String,
    tally: &Tally,
    labels: &[String],
    in_flight: u64,
    target_rate: Option<f64>,
) -> std::fmt::Result {
    writeln!(out, "# TYPE loadgen_requests counter")?;
    writeln!(out, "# HELP loadgen_requests Requests with an outcome, in the measured time.")?;
    for (label, step) in labels.iter().zip(&tally.steps) {
        let others = step.others.iter().map(|(outcome, &count)| (&**outcome, count));
        for (outcome, count) in std::iter::once(("ok", step.ok)).chain(others) {
            writeln!(
                out,
                "loadgen_requests_total{{step={},outcome={}}} {count}",
                quoted(label),
                quoted(outcome)
            )?;
        }
    }
    let sessions = &tally.sessions;
    writeln!(out, "# TYPE loadgen_sessions counter")?;
    writeln!(out, "# HELP loadgen_sessions Sessions, by what became of them.")?;
    for (state, count) in [
        ("scheduled", sessions.scheduled),
        ("started", sessions.started),
        ("finished", sessions.finished),
        ("failed", sessions.failed),
        ("not_sent", sessions.not_sent),
    ] {
        writeln!(out, "loadgen_sessions_total{{state=\"{state}\"}} {count}")?;
    }
    writeln!(out, "# TYPE loadgen_requests_in_flight gauge")?;
    writeln!(out, "loadgen_requests_in_flight {in_flight}")?;
    if let Some(target) = target_rate {
        writeln!(out, "# TYPE loadgen_target_sessions_per_second gauge")?;
        writeln!(out, "loadgen_target_sessions_per_second {target}")?;
    }
    for (name, help, pick) in [
        ("response", "From the intended time to the last byte.", (|step| &step.response) as Pick),
        ("service", "From the send to the last byte.", |step| &step.service),
        ("queue", "From the release to the send.", |step| &step.queue),
    ] {
        writeln!(out, "# TYPE loadgen_{name}_seconds summary")?;
        writeln!(out, "# UNIT loadgen_{name}_seconds seconds")?;
        writeln!(out, "# HELP loadgen_{name}_seconds {help}")?;
        for (label, step) in labels.iter().zip(&tally.steps) {
            summary(out, &format!("loadgen_{name}_seconds"), &format!("step={}", quoted(label)), pick(step))?;
        }
    }
    writeln!(out, "# TYPE loadgen_lag_seconds summary")?;
    writeln!(out, "# UNIT loadgen_lag_seconds seconds")?;
    writeln!(out, "# HELP loadgen_lag_seconds The generator's own lateness.")?;
    summary(out, "loadgen_lag_seconds", "", &tally.lag)?;
    writeln!(out, "# EOF")
}

type Pick = fn(&crate::record::StepTally) -> &Latency;

fn summary(out: &mut String, name: &str, label: &str, latency: &Latency) -> std::fmt::Result {
    let comma = if label.is_empty() { "" } else { "," };
    for q in [0.5, 0.9, 0.99, 0.999] {
        if let Some(nanos) = latency.quantile(q) {
            writeln!(out, "{name}{{{label}{comma}quantile=\"{q}\"}} {}", nanos as f64 / 1e9)?;
        }
    }
    let braced = if label.is_empty() { String::new() } else { format!("{{{label}}}") };
    let sum = latency.mean().unwrap_or(0.0) * latency.count() as f64 / 1e9;
    writeln!(out, "{name}_count{braced} {}", latency.count())?;
    writeln!(out, "{name}_sum{braced} {sum}")
}

/// A label's value (OpenMetrics: backslash, quote and line feed are escaped).
fn quoted(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    format!("\"{escaped}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_port_alone_is_of_the_loopback_address() {
        for text in ["9464", ":9464", "127.0.0.1:9464"] {
            assert_eq!(address(text), Some("127.0.0.1:9464".parse().unwrap()), "{text}");
        }
        assert_eq!(address("0.0.0.0:1"), Some("0.0.0.0:1".parse().unwrap()));
        for wrong in ["", "host", "99999", "1.2.3.4"] {
            assert_eq!(address(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn every_sample_has_its_type_and_the_text_its_end() {
        let mut tally = Tally::new(1);
        tally.steps[0].ok = 3;
        tally.steps[0].count_other("aap.RATE\"D");
        (0..100).for_each(|_| tally.steps[0].response.record(2_000_000));
        let text = render(&tally, &["a/b".to_owned()], 7, Some(50.0));
        assert!(text.contains("loadgen_requests_total{step=\"a/b\",outcome=\"ok\"} 3\n"), "{text}");
        assert!(text.contains("outcome=\"aap.RATE\\\"D\"} 1\n"), "{text}");
        assert!(text.contains("loadgen_response_seconds{step=\"a/b\",quantile=\"0.99\"} 0.00"), "{text}");
        assert!(text.ends_with("# EOF\n"));
        let types: Vec<&str> =
            text.lines().filter_map(|line| line.strip_prefix("# TYPE ")?.split(' ').next()).collect();
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            assert!(types.iter().any(|kind| line.starts_with(kind)), "{line}");
        }
    }
}
