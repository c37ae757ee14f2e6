//! The least that a dealer can be, for comparing those who call it: any POST is answered with 1 KB that holds the request's id,
//! as a reply of the skill that was asked, so that who looks finds nothing wrong. `constant [ADDRESS]` says where it listens.
#![expect(clippy::disallowed_methods, reason = "a server waits when it has no room for a connection")]

use std::io::Write as _;
use std::time::Duration;

use memchr::memmem::Finder;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// Fills a reply up to about 1 KB.
const FILLING: usize = 560;
/// No request is larger.
const MAX_REQUEST: usize = 64 * 1024;

/// What is looked for in each request, made once.
struct Parts {
    end_of_head: Finder<'static>,
    length: Finder<'static>,
    id: Finder<'static>,
    kind: Finder<'static>,
    media: Finder<'static>,
    context: Finder<'static>,
    filling: String,
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:0".to_owned());
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
        let listener = TcpListener::bind(address).await?;
        println!("http://{}/a2a", listener.local_addr()?);
        let parts: &'static Parts = Box::leak(Box::new(Parts {
            end_of_head: Finder::new("\r\n\r\n"),
            length: Finder::new("ontent-Length: "),
            id: Finder::new("\"id\":\""),
            kind: Finder::new("\"type\":\""),
            media: Finder::new("\"acceptedOutputModes\":[\""),
            context: Finder::new("\"contextId\":\""),
            filling: "x".repeat(FILLING),
        }));
        loop {
            match listener.accept().await {
                Ok((stream, _)) => {
                    // On loopback it changes nothing, and elsewhere it is what a server does.
                    let _ = stream.set_nodelay(true);
                    tokio::spawn(serve(stream, parts));
                }
                // No descriptor is free: those that end make room.
                Err(_) => tokio::time::sleep(Duration::from_millis(10)).await,
            }
        }
    })
}

async fn serve(mut stream: TcpStream, parts: &Parts) -> Option<()> {
    let (mut request, mut reply) = (Vec::with_capacity(4096), Vec::with_capacity(4096));
    loop {
        while !is_whole(&request, parts) {
            if request.len() > MAX_REQUEST || stream.read_buf(&mut request).await.ok()? == 0 {
                return None;
            }
        }
        write_reply(&request, parts, &mut reply);
        stream.write_all(&reply).await.ok()?;
        // Nobody here sends the next request before the reply.
        request.clear();
    }
}

fn is_whole(request: &[u8], parts: &Parts) -> bool {
    let Some(end) = parts.end_of_head.find(request) else { return false };
    let length = parts.length.find(&request[..end]).map_or(0, |at| {
        let digits = request[at + 15..].iter().take_while(|byte| byte.is_ascii_digit());
        digits.fold(0, |sum: usize, byte| sum * 10 + usize::from(byte - b'0'))
    });
    request.len() >= end + 4 + length
}

fn write_reply(request: &[u8], parts: &Parts, reply: &mut Vec<u8>) {
    let text = |after: &Finder<'_>| {
        let rest = &request[after.find(request)? + after.needle().len()..];
        std::str::from_utf8(&rest[..memchr::memchr(b'"', rest)?]).ok()
    };
    let kind = text(&parts.kind).unwrap_or_default().trim_end_matches(".request");
    let (id, media) = (text(&parts.id).unwrap_or_default(), text(&parts.media).unwrap_or_default());
    let (context, filling) = (text(&parts.context).unwrap_or("ctx-1"), &parts.filling);
    let body = format!(
        "{{\"jsonrpc\":\"2.0\",\"id\":\"{id}\",\"result\":{{\"message\":{{\"messageId\":\"reply-1\",\"contextId\":\"{context}\",\
         \"role\":\"ROLE_AGENT\",\"parts\":[{{\"data\":{{\"type\":\"{kind}.response\",\"data\":{{\"total\":1,\"vehicles\":[\
         {{\"vin\":\"1ZZ00000000000001\",\"notes\":\"{filling}\"}}]}}}},\"mediaType\":\"{media}\"}}]}}}}}}"
    );
    reply.clear();
    // Writing into a Vec cannot fail.
    let _ = write!(
        reply,
        "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
}
