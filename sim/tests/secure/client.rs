//! A client of TLS, HTTP/1.1 and HTTP/2 that does as it is told.

use std::io;
use std::sync::Arc;

use bytes::Bytes;
use h2::client::SendRequest;
use hyper::http::{HeaderMap, Method, Request};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

/// `127.0.0.1:port` of a URL.
pub(crate) fn authority(url: &str) -> &str {
    url.split_once("://").unwrap().1.split('/').next().unwrap()
}

/// Connects under TLS, believing one certificate, with one of its own if it has one.
pub(crate) async fn tls(
    url: &str,
    believed: &str,
    own: Option<(&str, &str)>,
    alpn: &[&[u8]],
) -> io::Result<TlsStream<TcpStream>> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(believed.as_bytes()).unwrap()).unwrap();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let builder =
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let builder = builder.with_root_certificates(roots);
    let mut config = match own {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => builder
            .with_client_auth_cert(
                vec![CertificateDer::from_pem_slice(certificate.as_bytes()).unwrap()],
                PrivateKeyDer::from_pem_slice(key.as_bytes()).unwrap(),
            )
            .unwrap(),
    };
    config.alpn_protocols = alpn.iter().map(|name| name.to_vec()).collect();
    let tcp = TcpStream::connect(authority(url)).await?;
    let name = ServerName::try_from("127.0.0.1").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, tcp).await
}

/// HTTP/2 on a stream; the connection runs beside the test.
pub(crate) async fn http2<S>(stream: S) -> SendRequest<Bytes>
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let (send, connection) = h2::client::handshake(stream).await.unwrap();
    tokio::spawn(connection);
    send
}

/// HTTP/2 with prior knowledge.
pub(crate) async fn h2c(url: &str) -> SendRequest<Bytes> {
    http2(TcpStream::connect(authority(url)).await.unwrap()).await
}

/// What came of a request on HTTP/2.
#[derive(Debug)]
pub(crate) struct Seen {
    /// Status and fields, if there was a head.
    pub(crate) head: Option<(u16, HeaderMap)>,
    pub(crate) body: Vec<u8>,
    /// How the stream ended, if not well.
    pub(crate) error: Option<h2::Error>,
}

impl Seen {
    pub(crate) fn status(&self) -> u16 {
        self.head.as_ref().map_or(0, |(status, _)| *status)
    }

    pub(crate) fn reason(&self) -> Option<h2::Reason> {
        self.error.as_ref().and_then(h2::Error::reason)
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or_else(|_| panic!("no JSON: {self:?}"))
    }
}

/// One request on HTTP/2.
pub(crate) async fn ask(
    send: &SendRequest<Bytes>,
    method: Method,
    url: &str,
    fields: &[(&str, &str)],
    body: &str,
) -> Seen {
    let mut request = Request::builder().method(method).uri(url);
    for (name, value) in fields {
        request = request.header(*name, *value);
    }
    let mut seen = Seen { head: None, body: Vec::new(), error: None };
    let asked = async {
        let mut send = send.clone().ready().await?;
        let (reply, mut stream) = send.send_request(request.body(()).unwrap(), body.is_empty())?;
        if !body.is_empty() {
            stream.send_data(Bytes::copy_from_slice(body.as_bytes()), true)?;
        }
        let (head, mut body) = reply.await?.into_parts();
        seen.head = Some((head.status.as_u16(), head.headers));
        while let Some(piece) = body.data().await {
            let piece = piece?;
            _ = body.flow_control().release_capacity(piece.len());
            seen.body.extend_from_slice(&piece);
        }
        Ok(())
    };
    if let Err(error) = asked.await {
        seen.error = Some(error);
    }
    seen
}

/// A call on HTTP/2.
pub(crate) async fn call(
    send: &SendRequest<Bytes>,
    url: &str,
    fields: &[(&str, &str)],
    payload: &Value,
) -> Seen {
    let fields = [fields, &[("content-type", "application/json"), ("a2a-version", "1.0")]].concat();
    ask(send, Method::POST, url, &fields, &envelope(payload)).await
}

/// One request on HTTP/1.1 and everything up to the end of the connection, which has to come without an error.
pub(crate) async fn http1<S: AsyncRead + AsyncWrite + Unpin>(
    mut stream: S,
    method: &str,
    path: &str,
    fields: &[(&str, &str)],
    body: &str,
) -> io::Result<(u16, String, String)> {
    let fields: String = fields.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let request = format!(
        "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Type: application/json\r\n{fields}\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await?;
    stream.flush().await?;
    let mut all = String::new();
    stream.read_to_string(&mut all).await?;
    let (head, body) = all.split_once("\r\n\r\n").ok_or(io::ErrorKind::UnexpectedEof)?;
    let status = head.split(' ').nth(1).and_then(|status| status.parse().ok());
    Ok((status.ok_or(io::ErrorKind::InvalidData)?, head.to_owned(), body.to_owned()))
}

/// A body of a call with this payload.
pub(crate) fn envelope(payload: &Value) -> String {
    let kind = payload["type"].as_str().unwrap();
    let stem = match kind {
        "dealer.information.request" => "dealer-information",
        "inventory.search.request" => "inventory-search",
        "lead.submit.request" => "lead-submit",
        _ => panic!("{kind}"),
    };
    let media_type = format!("application/vnd.autoagent.{stem}-request+json");
    json!({
        "jsonrpc": "2.0", "id": 1, "method": "SendMessage",
        "params": { "message": {
            "messageId": "m-1", "role": "ROLE_USER", "parts": [{ "data": payload, "mediaType": media_type }],
        } },
    })
    .to_string()
}

/// The simplest call's payload.
pub(crate) fn information() -> Value {
    json!({ "type": "dealer.information.request" })
}

/// A search's payload, whose reply has some length.
pub(crate) fn search() -> Value {
    json!({ "type": "inventory.search.request", "pagination": { "limit": 20 } })
}

/// A GET to the admin endpoint.
pub(crate) async fn admin(dealer: &dealer_sim::RunningDealer, path: &str) -> String {
    let stream = TcpStream::connect(authority(&dealer.admin_url().unwrap())).await.unwrap();
    http1(stream, "GET", path, &[], "").await.unwrap().2
}

/// A counter of the admin endpoint.
pub(crate) async fn counter(dealer: &dealer_sim::RunningDealer, name: &str) -> u64 {
    let metrics = admin(dealer, "/metrics").await;
    let line = metrics.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix("_total "));
    line.unwrap_or_else(|| panic!("no {name} in {metrics}")).parse().unwrap()
}

/// Waits for a counter to say this: what ends a connection may be counted a moment after its peer has seen the end.
pub(crate) async fn counts_to(dealer: &dealer_sim::RunningDealer, name: &str, wanted: u64) {
    for _ in 0..60 {
        if counter(dealer, name).await >= wanted {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(50)).await;
    }
    assert_eq!(counter(dealer, name).await, wanted, "{name}");
}

/// The journal, oldest first.
pub(crate) fn journal(dealer: &dealer_sim::RunningDealer) -> Vec<Value> {
    let entries = dealer.journal().all(0).entries;
    entries.iter().map(|entry| serde_json::to_value(entry).unwrap()).collect()
}
