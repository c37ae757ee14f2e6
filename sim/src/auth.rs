//! Credentials that a dealer asks for: what the card declares, and what a request has to bring. Secrets are kept as hashes and
//! compared in a time that tells nothing of them.

use std::str::FromStr;

use hyper::header::{AUTHORIZATION, HeaderMap, HeaderName};
use serde_json::{Map, Value, json};
use sha2::{Digest as _, Sha256};
use subtle::ConstantTimeEq as _;

/// A way to show who one is (A2A 1.0, section 4.5).
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scheme {
    /// `Authorization: Bearer` (RFC 6750).
    Bearer,
    /// A header field that holds a key.
    ApiKey {
        /// The field's name.
        header: HeaderName,
    },
    /// A certificate that the dealer believes, shown in the TLS handshake.
    MutualTls,
}

impl Scheme {
    /// Its name in the card.
    pub fn name(&self) -> &'static str {
        match self {
            Scheme::Bearer => "bearer",
            Scheme::ApiKey { .. } => "apiKey",
            Scheme::MutualTls => "mtls",
        }
    }

    fn declared(&self) -> Value {
        match self {
            Scheme::Bearer => json!({ "httpAuthSecurityScheme": { "scheme": "Bearer" } }),
            Scheme::ApiKey { header } => {
                json!({ "apiKeySecurityScheme": { "location": "header", "name": header.as_str() } })
            }
            Scheme::MutualTls => json!({ "mtlsSecurityScheme": {} }),
        }
    }
}

/// Adds `securitySchemes` and `securityRequirements` to a card: any one of the schemes is enough. Without any the card stays
/// as it is.
pub fn declare(schemes: &[Scheme], card: &mut Value) {
    if schemes.is_empty() {
        return;
    }
    let named: Map<String, Value> =
        schemes.iter().map(|scheme| (scheme.name().to_owned(), scheme.declared())).collect();
    let any: Vec<Value> =
        named.keys().map(|name| json!({ "schemes": { name.as_str(): { "list": [] } } })).collect();
    card["securitySchemes"] = named.into();
    card["securityRequirements"] = any.into();
}

/// A secret, of which nothing but a hash is kept.
#[derive(Clone, PartialEq, Eq)]
pub struct Secret([u8; 32]);

impl Secret {
    /// Of these bytes.
    pub fn new(secret: &[u8]) -> Secret {
        Secret(Sha256::digest(secret).into())
    }

    /// Whether it is the same, found out in a time that does not depend on where it differs.
    pub fn is(&self, given: &[u8]) -> bool {
        Secret::new(given).0.ct_eq(&self.0).into()
    }
}

impl std::fmt::Debug for Secret {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Secret(…)")
    }
}

/// The token of `Authorization: Bearer`, if there is one.
pub fn bearer(head: &HeaderMap) -> Option<&[u8]> {
    let value = head.get(AUTHORIZATION)?.as_bytes();
    let (scheme, token) = value.split_at_checked(7)?;
    scheme.eq_ignore_ascii_case(b"bearer ").then(|| token.trim_ascii())
}

/// What a dealer accepts: any one of these. Without any, everybody is served.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Auth {
    accepted: Vec<(Scheme, Option<Secret>)>,
}

/// Why a request is not served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// 401 where credentials could be sent, 403 where only another connection can show them.
    pub status: u16,
    /// The values of `WWW-Authenticate` (RFC 9110, section 11.6.1); at least one with 401, none with 403.
    pub challenges: Vec<String>,
    /// What would help, for people.
    pub text: &'static str,
}

impl Auth {
    /// Accepts this scheme, too; all but mutual TLS with this secret.
    #[must_use]
    pub fn accept(mut self, scheme: Scheme, secret: Option<Secret>) -> Auth {
        self.accepted.push((scheme, secret));
        self
    }

    /// Whether everybody is served.
    pub fn is_open(&self) -> bool {
        self.accepted.is_empty()
    }

    /// The schemes, for the card.
    pub fn schemes(&self) -> Vec<Scheme> {
        let mut schemes: Vec<Scheme> = Vec::new();
        for (scheme, _) in &self.accepted {
            if !schemes.iter().any(|known| known.name() == scheme.name()) {
                schemes.push(scheme.clone());
            }
        }
        schemes
    }

    /// Whether a certificate is one of the schemes, and whether it is the only one.
    pub fn wants_certificate(&self) -> (bool, bool) {
        let wants = |(scheme, _): &(Scheme, _)| *scheme == Scheme::MutualTls;
        (self.accepted.iter().any(wants), self.accepted.iter().all(wants))
    }

    /// The key that a request brings, if keys are asked for: it says who calls.
    pub fn key<'h>(&self, head: &'h HeaderMap) -> Option<&'h [u8]> {
        self.accepted.iter().find_map(|(scheme, _)| match scheme {
            Scheme::ApiKey { header } => head.get(header).map(|value| value.as_bytes()),
            _ => None,
        })
    }

    /// Whether a request is served. `certified`: its connection has shown a certificate that is believed.
    ///
    /// # Errors
    /// What is said to it otherwise.
    pub fn judge(&self, head: &HeaderMap, certified: bool) -> Result<(), Refusal> {
        if self.is_open() {
            return Ok(());
        }
        let token = bearer(head);
        let mut passes = false;
        for (scheme, secret) in &self.accepted {
            let given = match scheme {
                Scheme::MutualTls => {
                    passes |= certified;
                    continue;
                }
                Scheme::Bearer => token,
                Scheme::ApiKey { header } => head.get(header).map(|value| value.as_bytes()),
            };
            // All are looked at: which of them fits shows in no time.
            passes |= given.zip(secret.as_ref()).is_some_and(|(given, secret)| secret.is(given));
        }
        if passes {
            return Ok(());
        }
        let challenges: Vec<String> = self
            .schemes()
            .iter()
            .filter_map(|scheme| match scheme {
                Scheme::Bearer if token.is_some() => {
                    Some("Bearer realm=\"dealer-sim\", error=\"invalid_token\"".to_owned())
                }
                Scheme::Bearer => Some("Bearer realm=\"dealer-sim\"".to_owned()),
                Scheme::ApiKey { header } => {
                    Some(format!("ApiKey realm=\"dealer-sim\", in=\"header\", name=\"{header}\""))
                }
                Scheme::MutualTls => None,
            })
            .collect();
        let (status, text) = if challenges.is_empty() {
            (403, "show a certificate that the dealer believes; the agent card says what is accepted")
        } else {
            (401, "send credentials that the dealer accepts; the agent card says which")
        };
        Err(Refusal { status, challenges, text })
    }
}

/// What `--auth` names: a scheme, and the environment variable that holds its secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// The scheme.
    pub scheme: Scheme,
    /// The variable; none for mutual TLS.
    pub variable: Option<String>,
}

impl FromStr for Named {
    type Err = String;

    fn from_str(given: &str) -> Result<Named, String> {
        const FORMS: &str = "use bearer:VARIABLE, api-key:HEADER:VARIABLE or mtls";
        let parts: Vec<&str> = given.split(':').collect();
        let (scheme, variable) = match parts.as_slice() {
            ["mtls"] => (Scheme::MutualTls, None),
            ["bearer", variable] => (Scheme::Bearer, Some(*variable)),
            ["api-key", header, variable] => {
                let header = header
                    .parse::<HeaderName>()
                    .map_err(|_| format!("{header:?} is no header name; {FORMS}"))?;
                (Scheme::ApiKey { header }, Some(*variable))
            }
            _ => return Err(FORMS.to_owned()),
        };
        if variable == Some("") {
            return Err(FORMS.to_owned());
        }
        Ok(Named { scheme, variable: variable.map(str::to_owned) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn head(fields: &[(&'static str, &str)]) -> HeaderMap {
        fields.iter().map(|(name, value)| (HeaderName::from_static(name), value.parse().unwrap())).collect()
    }

    #[test]
    fn any_one_of_the_schemes_is_enough() {
        let key = Scheme::ApiKey { header: HeaderName::from_static("x-api-key") };
        let auth = Auth::default()
            .accept(Scheme::Bearer, Some(Secret::new(b"t-1")))
            .accept(Scheme::Bearer, Some(Secret::new(b"t-2")))
            .accept(key, Some(Secret::new(b"k")))
            .accept(Scheme::MutualTls, None);
        let judge = |fields: &[(&'static str, &str)], certified| auth.judge(&head(fields), certified);
        for (fields, certified) in [
            (&[("authorization", "Bearer t-1")][..], false),
            (&[("authorization", "bearer  t-2 ")], false),
            (&[("x-api-key", "k")], false),
            (&[], true),
            (&[("x-api-key", "wrong"), ("authorization", "Bearer t-1")], false),
        ] {
            assert_eq!(judge(fields, certified), Ok(()), "{fields:?}");
        }
        for fields in [
            &[][..],
            &[("authorization", "Bearer")],
            &[("authorization", "Basic t-1")],
            &[("authorization", "Bearer t-11")],
            &[("authorization", "Bearer é")],
            &[("x-api-key", "")],
        ] {
            let refusal = judge(fields, false).unwrap_err();
            assert_eq!((refusal.status, refusal.challenges.len()), (401, 2), "{fields:?}");
            assert!(refusal.challenges[0].starts_with("Bearer realm="), "{refusal:?}");
        }
        assert!(
            judge(&[("authorization", "Bearer no")], false).unwrap_err().challenges[0]
                .contains("invalid_token")
        );
    }

    #[test]
    fn without_schemes_everybody_passes_and_with_certificates_alone_it_is_403() {
        assert_eq!(Auth::default().judge(&HeaderMap::new(), false), Ok(()));
        let auth = Auth::default().accept(Scheme::MutualTls, None);
        assert_eq!(auth.judge(&HeaderMap::new(), true), Ok(()));
        let refusal = auth.judge(&HeaderMap::new(), false).unwrap_err();
        assert_eq!((refusal.status, refusal.challenges.len()), (403, 0));
    }

    #[test]
    fn names_are_read_and_secrets_are_not_shown() {
        let named: Named = "api-key:X-Api-Key:KEY".parse().unwrap();
        assert_eq!(named.variable.as_deref(), Some("KEY"));
        assert_eq!(named.scheme.name(), "apiKey");
        assert!("mtls".parse::<Named>().unwrap().variable.is_none());
        for wrong in ["", "bearer", "bearer:", "api-key:KEY", "api-key:a b:KEY", "mtls:x", "basic:X"] {
            assert!(wrong.parse::<Named>().is_err(), "{wrong:?}");
        }
        assert_eq!(format!("{:?}", Secret::new(b"secret")), "Secret(…)");
    }

    #[test]
    fn a_card_declares_each_scheme_once() {
        let auth = Auth::default()
            .accept(Scheme::Bearer, Some(Secret::new(b"a")))
            .accept(Scheme::Bearer, Some(Secret::new(b"b")))
            .accept(Scheme::MutualTls, None);
        let mut card = json!({});
        declare(&auth.schemes(), &mut card);
        assert_eq!(
            card["securitySchemes"]["bearer"],
            json!({ "httpAuthSecurityScheme": { "scheme": "Bearer" } })
        );
        let any =
            json!([{ "schemes": { "bearer": { "list": [] } } }, { "schemes": { "mtls": { "list": [] } } }]);
        assert_eq!(card["securityRequirements"], any);
        assert_eq!(auth.wants_certificate(), (true, false));
    }
}
