//! Where a request goes.

use std::net::IpAddr;

use fluent_uri::component::Scheme;

/// An `http` or `https` URL, taken apart.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// Whether TLS is spoken.
    pub tls: bool,
    /// The host without brackets.
    pub host: String,
    /// The port, the scheme's own one if the URL has none.
    pub port: u16,
    /// The value of the `Host` header.
    pub authority: String,
    /// Path and query, never empty.
    pub target: String,
}

/// Why a text is no address of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AddressError {
    /// Not a URL at all.
    #[error("{0:?} is no URL; give one such as http://127.0.0.1:8080")]
    NotUrl(String),
    /// Another scheme.
    #[error("{0:?} is neither http nor https")]
    Scheme(String),
    /// No host.
    #[error("{0:?} has no host")]
    NoHost(String),
    /// A name and a password in the URL, where they end up in every log.
    #[error("{0:?} has credentials in it; give them with --bearer-env or --header")]
    Credentials(String),
    /// A port that is none.
    #[error("{0:?} has no valid port")]
    Port(String),
}

impl Address {
    /// Takes a URL apart.
    ///
    /// # Errors
    /// If it is no `http` or `https` URL with a host and without credentials.
    pub fn parse(url: &str) -> Result<Address, AddressError> {
        let uri = fluent_uri::Uri::parse(url).map_err(|_| AddressError::NotUrl(url.to_owned()))?;
        const HTTP: &Scheme = Scheme::new_or_panic("http");
        const HTTPS: &Scheme = Scheme::new_or_panic("https");
        let tls = match uri.scheme() {
            scheme if scheme == HTTPS => true,
            scheme if scheme == HTTP => false,
            _ => return Err(AddressError::Scheme(url.to_owned())),
        };
        let authority = uri.authority().ok_or_else(|| AddressError::NoHost(url.to_owned()))?;
        if authority.has_userinfo() {
            return Err(AddressError::Credentials(redacted(url)));
        }
        let host = authority.host().trim_start_matches('[').trim_end_matches(']').to_owned();
        if host.is_empty() {
            return Err(AddressError::NoHost(url.to_owned()));
        }
        let port = match authority.port_to_u16() {
            Ok(Some(0)) | Err(_) => return Err(AddressError::Port(url.to_owned())),
            Ok(Some(port)) => port,
            Ok(None) if tls => 443,
            Ok(None) => 80,
        };
        let mut target = uri.path().as_str().to_owned();
        if target.is_empty() {
            target.push('/');
        }
        if let Some(query) = uri.query() {
            target.push('?');
            target.push_str(query.as_str());
        }
        Ok(Address { tls, host, port, authority: authority.as_str().to_owned(), target })
    }

    /// The same place with another path.
    pub fn with_target(&self, target: &str) -> Address {
        Address { target: target.to_owned(), ..self.clone() }
    }

    /// Scheme, host and port as a URL: what credentials given for one place may be sent to.
    pub fn origin(&self) -> String {
        let scheme = if self.tls { "https" } else { "http" };
        let host = self.host.to_ascii_lowercase();
        let host = if host.contains(':') { format!("[{host}]") } else { host };
        format!("{scheme}://{host}:{}", self.port)
    }

    /// Whether the host is this machine, by its name or address alone.
    pub fn is_loopback(&self) -> bool {
        self.host.eq_ignore_ascii_case("localhost")
            || self.host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

impl std::fmt::Display for Address {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let scheme = if self.tls { "https" } else { "http" };
        write!(f, "{scheme}://{}{}", self.authority, self.target)
    }
}

fn redacted(url: &str) -> String {
    match (url.find("://"), url.rfind('@')) {
        (Some(scheme), Some(at)) if scheme < at => format!("{}://…{}", &url[..scheme], &url[at..]),
        _ => "…".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn urls_are_taken_apart() {
        let address = Address::parse("http://127.0.0.1:8080/a2a?x=1").unwrap();
        assert_eq!(
            (address.tls, address.host.as_str(), address.port, address.target.as_str()),
            (false, "127.0.0.1", 8080, "/a2a?x=1")
        );
        assert_eq!(address.to_string(), "http://127.0.0.1:8080/a2a?x=1");
        let address = Address::parse("https://dealer.example").unwrap();
        assert_eq!((address.tls, address.port, address.target.as_str()), (true, 443, "/"));
        let address = Address::parse("http://[::1]:9/x").unwrap();
        assert_eq!((address.host.as_str(), address.authority.as_str()), ("::1", "[::1]:9"));
        assert!(address.is_loopback());
        assert_eq!(address.origin(), "http://[::1]:9");
        assert_eq!(
            Address::parse("https://Dealer.Example/x").unwrap().origin(),
            "https://dealer.example:443"
        );
        assert!(!Address::parse("https://dealer.example").unwrap().is_loopback());
    }

    #[test]
    fn anything_else_is_refused() {
        assert!(matches!(Address::parse("nonsense"), Err(AddressError::NotUrl(_))));
        assert!(matches!(Address::parse("ftp://x/"), Err(AddressError::Scheme(_))));
        assert!(matches!(Address::parse("http://x:99999/"), Err(AddressError::Port(_))));
        let error = Address::parse("http://user:secret@host/").unwrap_err();
        assert!(matches!(error, AddressError::Credentials(_)));
        assert!(!error.to_string().contains("secret"));
    }
}
