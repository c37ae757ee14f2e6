//! hyper and nothing else, for comparing servers built on it: every request is read to its end and answered with the same
//! 1 KB. `bare [ADDRESS]` says where it listens.
#![expect(clippy::disallowed_methods, reason = "a server waits when it has no room for a connection")]

use std::convert::Infallible;
use std::time::Duration;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::TokioIo;
use tokio::net::TcpListener;

/// Bytes of each reply.
const REPLY: &[u8] = &[b'x'; 1024];

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:0".to_owned());
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let listener = TcpListener::bind(address).await?;
        println!("http://{}/", listener.local_addr()?);
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    let _ = stream.set_nodelay(true);
                    let connection =
                        http1::Builder::new().serve_connection(TokioIo::new(stream), service_fn(answer));
                    tokio::spawn(connection);
                }
                // No descriptor is free: those that end make room.
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    })
}

async fn answer(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let _ = request.into_body().collect().await;
    let mut reply = Response::new(Full::new(Bytes::from_static(REPLY)));
    reply.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    Ok(reply)
}
