//! From a PAP reply to its outcome: the payload is the body, and a refusal is an HTTP status with the typed error as its body.

use dealer_sim::protocol::error::AAP_ERROR_KIND;

use super::classify::{Expectation, is_code, is_text};
use super::scan::{NotJson, Raw, Scanner};
use super::{Breach, Outcome};
use crate::transport::Content;

/// The members of a body that its outcome depends on.
#[derive(Debug, Default)]
pub(super) struct Payload<'a> {
    pub(super) is_object: bool,
    pub(super) kind: Option<Raw<'a>>,
    pub(super) code: Option<Raw<'a>>,
}

impl<'a> Payload<'a> {
    /// Reads the next value of a scanner.
    pub(super) fn read(scanner: &mut Scanner<'a>) -> Result<Payload<'a>, NotJson> {
        let mut payload = Payload::default();
        payload.is_object = scanner.object(|name, scanner| {
            let value = scanner.value()?;
            match name {
                b"type" => payload.kind = Some(value),
                b"code" => payload.code = Some(value),
                _ => {}
            }
            Ok(())
        })?;
        Ok(payload)
    }

    /// Whether it is the typed error.
    pub(super) fn is_error(&self) -> bool {
        is_text(self.kind, AAP_ERROR_KIND)
    }

    /// The outcome of a typed error.
    pub(super) fn error_outcome(&self) -> Outcome {
        match self.code.and_then(Raw::text) {
            Some(code) if is_code(&code) => Outcome::Aap(code.into()),
            _ => Outcome::Protocol(Breach::ErrorShape),
        }
    }
}

/// The outcome of a whole reply. A typed error counts as that under any status but a success, since it says more than the
/// status does.
pub(super) fn classify(status: u16, content: Content, body: &[u8], expected: &Expectation<'_>) -> Outcome {
    let success = (200..300).contains(&status);
    let mut scanner = Scanner::new(body);
    let payload = Payload::read(&mut scanner).and_then(|payload| scanner.end().map(|()| payload));
    let payload = match payload {
        Ok(payload) if success || payload.is_error() => payload,
        Err(_) if success => return Outcome::Protocol(Breach::NotJson),
        _ => return Outcome::Http(status),
    };
    if content != Content::Json {
        return Outcome::Protocol(Breach::ContentType);
    }
    if !success {
        return payload.error_outcome();
    }
    if payload.is_object && is_text(payload.kind, expected.skill.response_type()) {
        Outcome::Ok
    } else {
        Outcome::Protocol(Breach::PayloadType)
    }
}

#[cfg(test)]
mod tests {
    use dealer_sim::protocol::{Binding, Contract, Skill};

    use super::*;
    use crate::outcome::classify as any;

    fn label(status: u16, content: Content, body: &str) -> String {
        let expected = Expectation {
            id: b"\"r1\"",
            message_id: b"m",
            context_id: None,
            skill: Skill::InventorySearch,
            contract: Contract::V3_0,
            binding: Binding::Pap,
        };
        let (outcome, context_id) = any(status, content, body.as_bytes(), &expected);
        assert_eq!(context_id, None);
        outcome.to_string()
    }

    #[test]
    fn a_reply_is_its_payload_and_a_refusal_its_status_and_error() {
        let good = r#"{"type":"inventory.search.response","data":{"total":0,"vehicles":[]}}"#;
        let limited = r#"{"@type":"x","type":"aap.error","code":"RATE_LIMITED","retryable":true}"#;
        for (status, content, body, wanted) in [
            (200, Content::Json, good, "ok"),
            (200, Content::Other, good, "protocol.content_type"),
            (200, Content::Encoded, good, "protocol.content_encoding"),
            (200, Content::Json, limited, "protocol.payload_type"),
            (200, Content::Json, "[]", "protocol.payload_type"),
            (200, Content::Json, "{", "protocol.not_json"),
            (200, Content::Other, "<html>", "protocol.not_json"),
            (429, Content::Json, limited, "aap.RATE_LIMITED"),
            (503, Content::Json, limited, "aap.RATE_LIMITED"),
            (429, Content::Other, limited, "protocol.content_type"),
            (422, Content::Json, r#"{"type":"aap.error"}"#, "protocol.error_shape"),
            (422, Content::Json, r#"{"type":"aap.error","code":"no code\n"}"#, "protocol.error_shape"),
            (415, Content::Other, "send JSON", "http.415"),
            (415, Content::Json, r#"{"title":"Unsupported Media Type","status":415}"#, "http.415"),
            (401, Content::Encoded, "", "http.401"),
            (500, Content::Json, good, "http.500"),
        ] {
            assert_eq!(label(status, content, body), wanted, "{status} {content:?} {body}");
        }
    }
}
