//! The flags of connections and credentials, read.

use std::time::Duration;

use super::Reader;
use crate::cli::{IdentityArgs, OauthArgs, RunArgs};
use crate::oauth::Grant;
use crate::transport::{Address, MAX_REPLY, Options, Reuse};

pub(super) fn read(
    args: &RunArgs,
    variable: &impl Fn(&str) -> Option<String>,
    reader: &mut Reader,
) -> Options {
    let reuse =
        reader.value("reuse", &args.reuse, "forever, session, none or a range such as 10..30", read_reuse);
    let times = Times {
        connect: reader.positive_duration("connect-timeout", &args.connect_timeout),
        request: reader.positive_duration("timeout", &args.timeout),
    };
    let http2 = reader.value("http", &args.http, "1.1 or 2", |text| match text {
        "1.1" => Some(false),
        "2" => Some(true),
        _ => None,
    });
    let (http2, reuse) = (http2.unwrap_or(false), reuse.unwrap_or(Reuse::Forever));
    if http2 && reuse != Reuse::Forever {
        reader.fault("--reuse belongs to HTTP/1.1: with --http 2 requests share connections, which are kept");
    }
    Options { http2, ..options(&args.identity, times, reuse, variable, reader) }
}

/// Time limits.
pub(super) struct Times {
    /// Of a connection's handshake.
    pub(super) connect: Duration,
    /// Of a request.
    pub(super) request: Duration,
}

/// Connections in this identity.
pub(super) fn options(
    identity: &IdentityArgs,
    times: Times,
    reuse: Reuse,
    variable: &impl Fn(&str) -> Option<String>,
    reader: &mut Reader,
) -> Options {
    let certificate = match (&identity.cert, &identity.key) {
        (Some(cert), Some(key)) => Some((cert.clone(), key.clone())),
        (None, None) => None,
        _ => {
            reader.fault("--cert and --key belong together: give both");
            None
        }
    };
    Options {
        connect_timeout: times.connect,
        timeout: times.request,
        max_reply: MAX_REPLY,
        reuse,
        ca: identity.ca.clone(),
        insecure: identity.insecure,
        identity: certificate,
        http2: false,
        headers: read_headers(identity, variable, reader),
    }
}

/// The headers of `--header`, `--bearer-env` and `--header-env`.
fn read_headers(
    identity: &IdentityArgs,
    variable: &impl Fn(&str) -> Option<String>,
    reader: &mut Reader,
) -> Vec<(String, String)> {
    let mut headers = Vec::new();
    for text in &identity.headers {
        match text.split_once(':').map(|(name, value)| (name.trim(), value.trim())) {
            Some((name, _)) if is_ours(name) => {
                reader.fault(format!("--header {text:?}: {name} is set by this program"));
            }
            Some((name, value)) if is_token(name) && is_field_value(value) => {
                headers.push((name.to_owned(), value.to_owned()));
            }
            _ => reader.fault(format!("--header {text:?}: give NAME: VALUE")),
        }
    }
    if let Some(name) = &identity.bearer_env {
        match variable(name) {
            Some(token) if !token.is_empty() && is_field_value(&token) => {
                headers.push(("Authorization".to_owned(), format!("Bearer {token}")));
            }
            Some(_) => reader.fault(format!("--bearer-env {name}: the variable holds no token")),
            None => reader.fault(format!("--bearer-env {name}: there is no such environment variable")),
        }
    }
    for text in &identity.header_env {
        match text.split_once(':').map(|(name, variable)| (name.trim(), variable.trim())) {
            Some((name, _)) if is_ours(name) => {
                reader.fault(format!("--header-env {text:?}: {name} is set by this program"));
            }
            Some((name, from)) if is_token(name) && !from.is_empty() => match variable(from) {
                Some(value) if !value.is_empty() && is_field_value(&value) => {
                    headers.push((name.to_owned(), value));
                }
                Some(_) => {
                    reader.fault(format!("--header-env {text:?}: the variable {from} holds no header"));
                }
                None => {
                    reader.fault(format!("--header-env {text:?}: there is no environment variable {from}"));
                }
            },
            _ => reader.fault(format!("--header-env {text:?}: give NAME: VARIABLE")),
        }
    }
    headers
}

/// How to come by a token, if `--oauth-url` asks for one.
pub(super) fn read_grant(
    args: &OauthArgs,
    variable: &impl Fn(&str) -> Option<String>,
    reader: &mut Reader,
) -> Option<Grant> {
    let others = [
        ("oauth-client", &args.oauth_client),
        ("oauth-secret-env", &args.oauth_secret_env),
        ("oauth-scope", &args.oauth_scope),
    ];
    let Some(url) = &args.oauth_url else {
        for (flag, _) in others.iter().filter(|(_, value)| value.is_some()) {
            reader.fault(format!("--{flag} belongs to --oauth-url, which is missing"));
        }
        return None;
    };
    let address = match Address::parse(url) {
        // The secret goes there: it stays on this machine, or under TLS.
        Ok(address) if !address.tls && !address.is_loopback() => {
            reader.fault(format!("--oauth-url {url:?}: a secret goes there, give an https URL"));
            None
        }
        Ok(address) => Some(address),
        Err(error) => {
            reader.fault(format!("--oauth-url: {error}"));
            None
        }
    };
    for (flag, _) in others[..2].iter().filter(|(_, value)| value.is_none()) {
        reader.fault(format!("--{flag} is missing: --oauth-url needs it"));
    }
    let secret = args.oauth_secret_env.as_deref().and_then(|name| {
        let secret = variable(name).filter(|secret| !secret.is_empty());
        if secret.is_none() {
            reader.fault(format!("--oauth-secret-env {name}: the environment variable is missing or empty"));
        }
        secret
    });
    Some(Grant {
        address: address?,
        client: args.oauth_client.clone()?,
        secret: secret?,
        scope: args.oauth_scope.clone(),
    })
}

fn read_reuse(text: &str) -> Option<Reuse> {
    match text {
        "forever" => Some(Reuse::Forever),
        "session" => Some(Reuse::Session),
        "none" => Some(Reuse::None),
        range => {
            let (low, high) = range.split_once("..")?;
            let (low, high) = (low.parse().ok()?, high.trim_start_matches('=').parse().ok()?);
            (1 <= low && low <= high).then_some(Reuse::Requests(low, high))
        }
    }
}

/// Headers that the transport and the protocol own; a second one would contradict them.
fn is_ours(name: &str) -> bool {
    [
        "host",
        "content-length",
        "transfer-encoding",
        "connection",
        "content-type",
        "a2a-version",
        "a2a-extensions",
    ]
    .iter()
    .any(|own| name.eq_ignore_ascii_case(own))
}

/// A header's name (RFC 9110, section 5.6.2).
fn is_token(name: &str) -> bool {
    !name.is_empty()
        && name.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte))
}

/// A header's value, without what would begin another header.
fn is_field_value(value: &str) -> bool {
    value.bytes().all(|byte| byte == b'\t' || (byte >= b' ' && byte != 0x7f))
}
