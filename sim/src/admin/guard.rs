//! Who may use the admin endpoint: a page of another origin may not, nor one that had its name rebound to this address, nor,
//! where a token is asked for, anybody without it.

use std::net::IpAddr;

use hyper::header::{AUTHORIZATION, HOST, HeaderMap, HeaderName, ORIGIN};

use crate::auth::{Secret, bearer};

const FETCH_SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// What is asked of those who come.
#[derive(Debug, Clone, Default)]
pub struct Guard {
    /// The token, if one is asked for.
    pub token: Option<Secret>,
    /// A host name under which the endpoint is reached, beside the loopback names and any address.
    pub host: String,
}

/// Why a request is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Stranger {
    /// It comes from a page of another origin.
    Origin,
    /// It names a host that may be anybody's.
    Host,
    /// It has no token, or a wrong one.
    Token,
}

impl Stranger {
    /// The status, and what to do about it.
    pub fn told(self) -> (u16, &'static str) {
        match self {
            Stranger::Origin => (403, "the admin endpoint takes no requests from pages of another origin"),
            Stranger::Host => (
                403,
                "the admin endpoint is asked under localhost, an address or the host of --public-url; any other name needs \
                 --admin-token-env and the token",
            ),
            Stranger::Token => (401, "send Authorization: Bearer with the token of --admin-token-env"),
        }
    }
}

impl Guard {
    /// Whether a request may pass.
    ///
    /// # Errors
    /// Why not.
    pub fn check(&self, path: &str, head: &HeaderMap) -> Result<(), Stranger> {
        let mut hosts = head.get_all(HOST).iter();
        let (host, is_single) = (hosts.next(), hosts.next().is_none());
        let host = host.map(|host| host.to_str().unwrap_or("?"));
        // A browser names the page's origin on every request that can change something or whose reply can be read by it.
        let is_same = |origin: &str| {
            origin
                .split_once("://")
                .is_some_and(|(_, named)| host.is_some_and(|host| named.eq_ignore_ascii_case(host)))
        };
        if head.get_all(ORIGIN).iter().any(|origin| !origin.to_str().is_ok_and(is_same)) {
            return Err(Stranger::Origin);
        }
        let is_ours = |site: &[u8]| matches!(site, b"same-origin" | b"none");
        if head.get(FETCH_SITE).is_some_and(|site| !is_ours(site.as_bytes())) {
            return Err(Stranger::Origin);
        }
        // Who knows the token is no page that was lured here, whatever name it has for this address.
        let knows = self.token.as_ref().zip(bearer(head)).is_some_and(|(token, given)| token.is(given));
        if knows && head.get_all(AUTHORIZATION).iter().count() == 1 {
            return Ok(());
        }
        if !is_single || host.is_some_and(|host| !self.is_known(host)) {
            return Err(Stranger::Host);
        }
        // Those who look after containers have no token, and learn nothing that a closed port would not say.
        if self.token.is_some() && !matches!(path, "/livez" | "/readyz") {
            return Err(Stranger::Token);
        }
        Ok(())
    }

    /// Whether a host is this machine or this dealer, and not a name that somebody may have bound to its address.
    fn is_known(&self, host: &str) -> bool {
        let name = match host.strip_prefix('[') {
            Some(rest) => rest.split(']').next().unwrap_or_default(),
            None => host.rsplit_once(':').map_or(host, |(name, _)| name),
        };
        name.parse::<IpAddr>().is_ok()
            || name.eq_ignore_ascii_case("localhost")
            || (!self.host.is_empty() && name.eq_ignore_ascii_case(&self.host))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(guard: &Guard, path: &str, fields: &[(&'static str, &str)]) -> Result<(), Stranger> {
        let mut head = HeaderMap::new();
        for (name, value) in fields {
            head.append(HeaderName::from_static(name), value.parse().unwrap());
        }
        guard.check(path, &head)
    }

    #[test]
    fn a_page_of_another_origin_and_a_rebound_name_are_refused() {
        let guard = Guard { token: None, host: "dealer.example.test".to_owned() };
        let at = |fields: &[(&'static str, &str)]| check(&guard, "/reset", fields);
        for host in [
            "127.0.0.1:8081",
            "localhost:8081",
            "LOCALHOST",
            "[::1]:8081",
            "10.0.0.7:1",
            "Dealer.Example.Test:8081",
        ] {
            assert_eq!(at(&[("host", host)]), Ok(()), "{host}");
        }
        assert_eq!(at(&[]), Ok(()));
        for host in [
            "evil.example",
            "evil.example:8081",
            "localhost.evil.example",
            "127.0.0.1.evil.example",
            "",
            "::1",
        ] {
            let expected = if host == "::1" { Ok(()) } else { Err(Stranger::Host) };
            // An address without brackets is cut at its last colon and is no address then.
            let seen = at(&[("host", host)]);
            assert!(seen == expected || host == "::1", "{host}: {seen:?}");
        }
        assert_eq!(at(&[("host", "127.0.0.1"), ("host", "evil.example")]), Err(Stranger::Host));
        for (origin, expected) in [
            ("http://127.0.0.1:8081", Ok(())),
            ("http://localhost:3000", Err(Stranger::Origin)),
            ("https://evil.example", Err(Stranger::Origin)),
            ("null", Err(Stranger::Origin)),
        ] {
            assert_eq!(at(&[("host", "127.0.0.1:8081"), ("origin", origin)]), expected, "{origin}");
        }
        for (site, expected) in [
            ("same-origin", Ok(())),
            ("none", Ok(())),
            ("cross-site", Err(Stranger::Origin)),
            ("same-site", Err(Stranger::Origin)),
        ] {
            assert_eq!(at(&[("host", "localhost"), ("sec-fetch-site", site)]), expected, "{site}");
        }
        // A page under a rebound name is of that name's origin.
        let rebound = [("host", "evil.example:8081"), ("origin", "http://evil.example:8081")];
        assert_eq!(at(&rebound), Err(Stranger::Host));
    }

    #[test]
    fn a_token_opens_under_any_name_and_only_health_needs_none() {
        let guard = Guard { token: Some(Secret::new(b"t")), host: String::new() };
        let at = |path: &str, fields: &[(&'static str, &str)]| check(&guard, path, fields);
        let good = ("authorization", "Bearer t");
        assert_eq!(at("/reset", &[("host", "dealer-sim:8081"), good]), Ok(()));
        assert_eq!(at("/reset", &[("host", "localhost:8081")]), Err(Stranger::Token));
        assert_eq!(
            at("/reset", &[("host", "localhost"), ("authorization", "Bearer x")]),
            Err(Stranger::Token)
        );
        assert_eq!(
            at("/reset", &[("host", "localhost"), ("origin", "http://evil"), good]),
            Err(Stranger::Origin)
        );
        assert_eq!(at("/readyz", &[("host", "localhost:8081")]), Ok(()));
        assert_eq!(at("/readyz", &[("host", "evil.example")]), Err(Stranger::Host));
    }
}
