//! The flags of connections and credentials, read.

use super::Reader;
use crate::cli::{CredentialArgs, RunArgs};
use crate::oauth::Grant;
use crate::transport::{Address, MAX_REPLY, Options, Reuse};

pub(super) fn read(
    args: &RunArgs,
    variable: &impl Fn(&str) -> Option<String>,
    reader: &mut Reader,
) -> Options {
    let own = (args.headers.as_slice(), &args.bearer_env, args.credentials.header_env.as_slice());
    let headers = read_headers(own, variable, reader);
    let identity = match (&args.credentials.cert, &args.credentials.key) {
        (Some(cert), Some(key)) => Some((cert.clone(), key.clone())),
        (None, None) => None,
        _ => {
            reader.fault("--cert and --key belong together: give both");
            None
        }
    };
    let reuse =
        reader.value("reuse", &args.reuse, "forever, session, none or a range such as 10..30", read_reuse);
    Options {
        connect_timeout: reader.positive_duration("connect-timeout", &args.connect_timeout),
        timeout: reader.positive_duration("timeout", &args.timeout),
        max_reply: MAX_REPLY,
        reuse: reuse.unwrap_or(Reuse::Forever),
        ca: args.ca.clone(),
        insecure: args.insecure,
        identity,
        headers,
    }
}

/// The headers of `--header`, `--bearer-env` and `--header-env`.
pub(super) fn read_headers(
    (given, bearer_env, header_env): (&[String], &Option<String>, &[String]),
    variable: &impl Fn(&str) -> Option<String>,
    reader: &mut Reader,
) -> Vec<(String, String)> {
    let mut headers = Vec::new();
    for text in given {
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
    if let Some(name) = bearer_env {
        match variable(name) {
            Some(token) if !token.is_empty() && is_field_value(&token) => {
                headers.push(("Authorization".to_owned(), format!("Bearer {token}")));
            }
            Some(_) => reader.fault(format!("--bearer-env {name}: the variable holds no token")),
            None => reader.fault(format!("--bearer-env {name}: there is no such environment variable")),
        }
    }
    for text in header_env {
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
    args: &CredentialArgs,
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
