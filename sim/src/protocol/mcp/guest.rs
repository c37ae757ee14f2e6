//! Who may ask at all: a page in a browser must not reach a server that listens for this machine alone (MCP 2026-07-28,
//! Streamable HTTP, "Security & Endpoint": DNS rebinding). Pure.

/// Whom a server lets in.
#[derive(Debug, Clone, Default)]
pub struct Guests {
    /// The origins of pages that may ask, beside those of this machine and of the server itself: scheme, host and port.
    origins: Vec<String>,
    /// Whether any page may.
    any: bool,
    /// The hosts by which the server is known, in lower case, without a port; empty where any name will do.
    hosts: Vec<String>,
}

/// Why a request is not let in.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Unwelcome {
    /// A page of a foreign origin.
    #[error("the origin {0:?} may not use this server; --origins lists those that may")]
    Origin(String),
    /// Under a name that is not the server's.
    #[error(
        "the host {0:?} is not this server's; it listens for this machine alone, and --public-url names it"
    )]
    Host(String),
}

impl Guests {
    /// Those of a server that is reached under `public_url`, with the origins of further pages (`*`: of any). One that listens
    /// on an address of this machine alone is known by that machine's names and by its public URL's.
    pub fn new(public_url: &str, origins: &[String], is_local: bool) -> Guests {
        let own = origin_of(public_url);
        let host = host_of(own.split_once("://").map_or("", |(_, authority)| authority)).to_owned();
        let hosts = if is_local { vec![host] } else { Vec::new() };
        let any = origins.iter().any(|origin| origin == "*");
        let origins = origins.iter().map(|origin| origin_of(origin)).chain([own]).collect();
        Guests { origins, any, hosts }
    }

    /// Lets a request in, by its `Origin` and its `Host`.
    ///
    /// # Errors
    /// [`Unwelcome`].
    pub fn admit(&self, origin: Option<&[u8]>, host: Option<&[u8]>) -> Result<(), Unwelcome> {
        if let Some(origin) = origin {
            let origin = String::from_utf8_lossy(origin);
            if !self.any && !self.is_known(&origin) {
                return Err(Unwelcome::Origin(origin.chars().take(200).collect()));
            }
        }
        if let Some(host) = host.filter(|_| !self.hosts.is_empty()) {
            let host = String::from_utf8_lossy(host);
            let name = host_of(&host);
            if !is_loopback(name) && !self.hosts.iter().any(|own| own.eq_ignore_ascii_case(name)) {
                return Err(Unwelcome::Host(host.chars().take(200).collect()));
            }
        }
        Ok(())
    }

    fn is_known(&self, origin: &str) -> bool {
        let given = origin_of(origin);
        let is_local = given.split_once("://").is_some_and(|(scheme, authority)| {
            matches!(scheme, "http" | "https") && is_loopback(host_of(authority))
        });
        is_local || self.origins.contains(&given)
    }
}

/// The origin of a URL, in lower case: what stands before its path.
fn origin_of(url: &str) -> String {
    let end = url.find("://").map_or(url.len(), |at| {
        let authority = at + "://".len();
        url[authority..].find('/').map_or(url.len(), |length| authority + length)
    });
    url[..end].to_ascii_lowercase()
}

/// A host without its port.
fn host_of(authority: &str) -> &str {
    match authority.rsplit_once(':') {
        // What is behind the last colon of an IPv6 address in brackets is no port.
        Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
        _ => authority,
    }
}

fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost")
        || host == "[::1]"
        || host.parse::<std::net::Ipv4Addr>().is_ok_and(|address| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn admit(guests: &Guests, origin: Option<&str>, host: Option<&str>) -> bool {
        guests.admit(origin.map(str::as_bytes), host.map(str::as_bytes)).is_ok()
    }

    #[test]
    fn a_local_server_is_known_by_local_names_and_its_own() {
        let guests = Guests::new("https://Dealer.example.test/x", &["https://chat.example".to_owned()], true);
        for host in
            ["localhost", "LocalHost:80", "127.0.0.1:8080", "127.9.9.9", "[::1]:1", "dealer.example.test"]
        {
            assert!(admit(&guests, None, Some(host)), "{host}");
        }
        for host in ["evil.example", "localhost.evil.example", "127.0.0.1.evil.example:80", "", "[::2]"] {
            assert!(!admit(&guests, None, Some(host)), "{host}");
        }
        assert!(admit(&guests, None, None));
        for origin in [
            "http://localhost:6274",
            "https://127.0.0.1",
            "https://dealer.example.test",
            "https://chat.example",
        ] {
            assert!(admit(&guests, Some(origin), Some("localhost")), "{origin}");
        }
        for origin in [
            "https://evil.example",
            "null",
            "",
            "http://chat.example",
            "https://chat.example:444",
            "https://chat.example.evil.example",
            "file://localhost",
            "http://localhost.evil.example",
        ] {
            assert!(!admit(&guests, Some(origin), Some("localhost")), "{origin}");
        }
    }

    #[test]
    fn a_server_on_the_network_goes_by_any_name_but_not_for_any_page() {
        let guests = Guests::new("http://0.0.0.0:8080", &[], false);
        assert!(admit(&guests, None, Some("dealer")) && !admit(&guests, Some("https://evil.example"), None));
        let open = Guests::new("http://0.0.0.0:8080", &["*".to_owned()], false);
        assert!(admit(&open, Some("https://evil.example"), None));
    }
}
