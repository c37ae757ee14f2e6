//! A token by OAuth 2 client credentials (RFC 6749, section 4.4): asked for before the run, and again before it expires.

use std::fmt;
use std::time::Duration;

use serde::Deserialize;

use crate::base64;
use crate::envelope::Token;
use crate::pacer::Clock;
use crate::transport::{Address, Client, Config, Fault, Options, PrepareError};

/// How long a token is taken to live that does not say so.
const DEFAULT_LIFE: Duration = Duration::from_secs(3600);
/// A life beyond this is none to wait for.
const LONGEST_LIFE: Duration = Duration::from_secs(30 * 24 * 3600);
/// A token is renewed after this part of its life, in tenths.
const RENEWED_AFTER: u32 = 8;
/// Largest reply of a token endpoint, in bytes.
const MAX_REPLY: usize = 64 * 1024;
/// Longest token.
const MAX_TOKEN: usize = 16 * 1024;

/// What is needed to ask for a token.
#[derive(Clone, PartialEq)]
pub(crate) struct Grant {
    pub(crate) address: Address,
    pub(crate) client: String,
    pub(crate) secret: String,
    pub(crate) scope: Option<String>,
}

impl fmt::Debug for Grant {
    // A secret in a log is none.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Grant")
            .field("address", &self.address)
            .field("client", &self.client)
            .finish_non_exhaustive()
    }
}

/// Why there is no token.
#[derive(Debug, thiserror::Error)]
pub(crate) enum OauthError {
    /// The token endpoint cannot be prepared for.
    #[error("the token endpoint {url} cannot be reached: {source}")]
    Prepare {
        /// Its URL.
        url: String,
        /// Why.
        source: PrepareError,
    },
    /// It did not answer.
    #[error("the token endpoint {url} cannot be reached: {fault}")]
    Unreached {
        /// Its URL.
        url: String,
        /// Why.
        fault: Fault,
    },
    /// It gave no token.
    #[error("the token endpoint {url} gave no token: {reason}")]
    Refused {
        /// Its URL.
        url: String,
        /// What it said.
        reason: String,
    },
}

/// A token and how long it lives.
#[derive(Debug, PartialEq)]
struct Granted {
    token: String,
    life: Duration,
}

#[derive(Deserialize)]
struct TokenReply {
    #[serde(default)]
    access_token: String,
    #[serde(default)]
    token_type: Option<String>,
    #[serde(default)]
    expires_in: Option<f64>,
}

#[derive(Deserialize)]
struct ErrorReply {
    error: String,
}

/// Asks for tokens.
#[derive(Debug)]
pub(crate) struct Authority {
    grant: Grant,
    client: Client,
}

impl Authority {
    /// Prepares for the token endpoint: with the user's certificates, without the user's headers and HTTP, which are the dealer's.
    pub(crate) async fn prepare(grant: Grant, options: &Options) -> Result<Authority, OauthError> {
        let options = Options { headers: Vec::new(), max_reply: MAX_REPLY, http2: false, ..options.clone() };
        let config = Config::prepare(&grant.address, &options)
            .await
            .map_err(|source| OauthError::Prepare { url: grant.address.to_string(), source })?;
        Ok(Authority { grant, client: Client::new(config, Clock::starting_in(Duration::ZERO), 1, 0) })
    }

    /// Asks for a token and puts it into `token`; gives how long to wait before it is to be renewed.
    pub(crate) async fn renew(&self, token: &Token) -> Result<Duration, OauthError> {
        let url = || self.grant.address.to_string();
        let unreached = |fault| OauthError::Unreached { url: url(), fault };
        let mut connection = self.client.acquire().await.map_err(unreached)?;
        let exchange = self.client.exchange(&mut connection, request(&self.grant).as_bytes()).await;
        let span = exchange.reply.map_err(unreached)?;
        let reply = connection.reply(&span);
        let granted =
            read(reply.status, reply.body).map_err(|reason| OauthError::Refused { url: url(), reason })?;
        token.set(&granted.token);
        Ok(granted.life * RENEWED_AFTER / 10)
    }
}

fn request(grant: &Grant) -> String {
    let mut body = "grant_type=client_credentials".to_owned();
    if let Some(scope) = &grant.scope {
        body.push_str("&scope=");
        body.push_str(&form_encoded(scope));
    }
    // RFC 6749, section 2.3.1: HTTP Basic with both parts form-encoded is what every server must take.
    let pair = format!("{}:{}", form_encoded(&grant.client), form_encoded(&grant.secret));
    format!(
        "POST {} HTTP/1.1\r\nHost: {}\r\nAccept: application/json\r\nAuthorization: Basic {}\r\n\
         Content-Type: application/x-www-form-urlencoded\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
        grant.address.target,
        grant.address.authority,
        base64::encode(pair.as_bytes()),
        body.len(),
    )
}

/// `application/x-www-form-urlencoded`: blanks become `+`, everything but letters, digits and `-._*` its bytes in hex.
fn form_encoded(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b' ' => out.push('+'),
            b if b.is_ascii_alphanumeric() || b"-._*".contains(&b) => out.push(char::from(b)),
            b => out.push_str(&format!("%{b:02X}")),
        }
    }
    out
}

fn read(status: u16, body: &[u8]) -> Result<Granted, String> {
    if status != 200 {
        // RFC 6749, section 5.2: the error is one of a few words; anything else is not repeated into a log.
        let error = serde_json::from_slice::<ErrorReply>(body).map(|reply| reply.error);
        let is_word =
            |word: &String| word.len() <= 64 && word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_');
        let word = error.ok().filter(is_word).map_or(String::new(), |word| format!(", {word}"));
        return Err(format!("HTTP {status}{word}"));
    }
    let reply: TokenReply =
        serde_json::from_slice(body).map_err(|_| "the reply is no JSON with an access_token".to_owned())?;
    if let Some(other) = reply.token_type.filter(|kind| !kind.eq_ignore_ascii_case("bearer")) {
        return Err(format!("its type is {:?} and not Bearer", other.chars().take(40).collect::<String>()));
    }
    // RFC 6750, section 2.1: what a bearer token may consist of.
    let is_token = (1..=MAX_TOKEN).contains(&reply.access_token.len())
        && reply.access_token.bytes().all(|b| b.is_ascii_alphanumeric() || b"-._~+/=".contains(&b));
    if !is_token {
        return Err("its access_token is missing or no token".to_owned());
    }
    let life = reply.expires_in.filter(|seconds| *seconds > 0.0);
    let life = life.and_then(|seconds| Duration::try_from_secs_f64(seconds).ok()).unwrap_or(DEFAULT_LIFE);
    Ok(Granted { token: reply.access_token, life: life.min(LONGEST_LIFE) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_what_the_rfc_says() {
        let grant = Grant {
            address: Address::parse("http://127.0.0.1:9/token").unwrap(),
            client: "a b".to_owned(),
            secret: "s:c%".to_owned(),
            scope: Some("leads read".to_owned()),
        };
        let text = request(&grant);
        assert!(text.starts_with("POST /token HTTP/1.1\r\nHost: 127.0.0.1:9\r\n"), "{text}");
        // a+b:s%3Ac%25
        assert!(text.contains("\r\nAuthorization: Basic YStiOnMlM0FjJTI1\r\n"), "{text}");
        assert!(text.ends_with("\r\n\r\ngrant_type=client_credentials&scope=leads+read"), "{text}");
        assert!(!format!("{grant:?}").contains("s:c"));
    }

    #[test]
    fn replies_are_read_and_nothing_strange_is_taken() {
        let life = |body: &str| read(200, body.as_bytes()).map(|granted| granted.life.as_secs());
        assert_eq!(life(r#"{"access_token":"t","token_type":"bearer","expires_in":60}"#), Ok(60));
        assert_eq!(life(r#"{"access_token":"t"}"#), Ok(3600));
        assert_eq!(life(r#"{"access_token":"t","expires_in":1e300}"#), Ok(3600));
        for wrong in [
            "",
            "{}",
            r#"{"access_token":""}"#,
            r#"{"access_token":"a\r\nX: 1"}"#,
            r#"{"access_token":"t","token_type":"mac"}"#,
        ] {
            assert!(life(wrong).is_err(), "{wrong}");
        }
        assert_eq!(read(401, br#"{"error":"invalid_client"}"#), Err("HTTP 401, invalid_client".to_owned()));
        assert_eq!(read(500, b"<html>"), Err("HTTP 500".to_owned()));
    }
}
