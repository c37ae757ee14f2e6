//! A request as bytes: the HTTP head and the envelope, written around the payload that a step renders.

use std::sync::{Arc, PoisonError, RwLock};

use dealer_sim::protocol::Skill;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::endpoint::Endpoint;
use crate::form::Form;

const USER_AGENT: &str = concat!("dealer-loadgen/", env!("CARGO_PKG_VERSION"));
/// The headers that say something of this program, unless the user says something else.
const DEFAULTS: [&str; 2] = ["User-Agent", "Accept"];

/// The header lines of the user's own headers, and of the defaults that none of them replaces.
pub(crate) fn own_lines(headers: &[(String, String)]) -> String {
    own_lines_accepting("application/json", headers)
}

fn own_lines_accepting(accept: &str, headers: &[(String, String)]) -> String {
    let is_replaced = |name: &str| headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
    let defaults = DEFAULTS.into_iter().zip([USER_AGENT, accept]).filter(|(name, _)| !is_replaced(name));
    let own = headers.iter().map(|(name, value)| (name.as_str(), value.as_str()));
    defaults.chain(own).map(|(name, value)| format!("{name}: {value}\r\n")).collect()
}

/// Whether the user's headers may hold a secret, which is meant for one dealer only: all but those that never do.
pub(crate) fn may_hold_secrets(headers: &[(String, String)]) -> bool {
    headers.iter().any(|(own, _)| !DEFAULTS.iter().any(|name| own.eq_ignore_ascii_case(name)))
}

/// A bearer token that is renewed while a run goes on; all who hold it see the latest.
#[derive(Clone, Default)]
pub(crate) struct Token(Arc<RwLock<Arc<[u8]>>>);

impl Token {
    /// Replaces the token.
    pub(crate) fn set(&self, token: &str) {
        let line = format!("Authorization: Bearer {token}\r\n").into_bytes();
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = line.into();
    }

    /// The header line with the token; empty before there is one.
    fn line(&self) -> Arc<[u8]> {
        Arc::clone(&self.0.read().unwrap_or_else(PoisonError::into_inner))
    }

    /// The header, for requests of another make.
    pub(crate) fn header(&self) -> Option<(String, String)> {
        let line = self.line();
        let (name, value) = std::str::from_utf8(&line).ok()?.trim_end().split_once(": ")?;
        Some((name.to_owned(), value.to_owned()))
    }
}

impl std::fmt::Debug for Token {
    // A token in a log is everyone's.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Token(…)")
    }
}

/// What all requests of a run have in common.
#[derive(Debug, Clone)]
pub(crate) struct Template {
    /// The heads by skill, without `Content-Length`, which is the last header.
    heads: [Vec<u8>; Skill::ALL.len()],
    /// The header of a token that changes while the run goes on.
    token: Option<Token>,
    form: Form,
}

impl Template {
    /// The template of requests to this dealer. `own_headers` are the user's own, checked already.
    pub(crate) fn new(endpoint: &Endpoint, own_headers: &[(String, String)], close: bool) -> Template {
        let form = Form::of(endpoint);
        let head = |skill| {
            let own = own_lines_accepting(form.accept(), own_headers);
            let close = if close { "Connection: close\r\n" } else { "" };
            let head = format!(
                "POST {} HTTP/1.1\r\nHost: {}\r\nContent-Type: application/json\r\n{}{own}{close}",
                endpoint.target(skill),
                endpoint.address.authority,
                form.lines(endpoint, skill),
            );
            head.into_bytes()
        };
        Template { heads: Skill::ALL.map(head), token: None, form }
    }
}

impl Template {
    /// The same with a token that is renewed.
    pub(crate) fn with_token(self, token: Option<Token>) -> Template {
        Template { token, ..self }
    }
}

/// The ids of one session's requests, drawn from the seed's stream of the session.
#[derive(Debug)]
pub(crate) struct Ids {
    rng: ChaCha8Rng,
}

/// Keeps the ids' generators apart from those of the scenario, which use the seed itself.
const ID_SEED: u64 = 0x6964_735f_6f66_5f72;

impl Ids {
    /// The generator of all sessions' ids; each takes its own stream of it.
    pub(crate) fn base(seed: u64) -> ChaCha8Rng {
        ChaCha8Rng::seed_from_u64(seed ^ ID_SEED)
    }

    /// The ids of this session.
    pub(crate) fn of_session(base: &ChaCha8Rng, ordinal: u64) -> Ids {
        let mut rng = base.clone();
        rng.set_stream(ordinal);
        Ids { rng }
    }

    fn draw(&mut self) -> RequestIds {
        let (id, high, low) = (self.rng.next_u64(), self.rng.next_u64(), self.rng.next_u64());
        let mut ids = RequestIds { id: *b"\"                \"", message_id: [b'-'; 36] };
        hex(&mut ids.id[1..17], id);
        // The shape of a random UUID (RFC 9562, section 5.4): version 4, variant 10.
        let high = high & 0xffff_ffff_ffff_0fff | 0x4000;
        let low = low & 0x3fff_ffff_ffff_ffff | 0x8000_0000_0000_0000;
        let text = &mut ids.message_id;
        hex(&mut text[0..8], high >> 32);
        hex(&mut text[9..13], high >> 16);
        hex(&mut text[14..18], high);
        hex(&mut text[19..23], low >> 48);
        hex(&mut text[24..36], low);
        ids
    }
}

/// The ids of one request.
#[derive(Debug, Clone)]
pub(crate) struct RequestIds {
    /// The JSON-RPC id, as its JSON text.
    pub(crate) id: [u8; 18],
    /// The `messageId`.
    pub(crate) message_id: [u8; 36],
}

/// Writes the low digits of `value` that fit.
fn hex(out: &mut [u8], mut value: u64) {
    for byte in out.iter_mut().rev() {
        *byte = b"0123456789abcdef"[(value & 15) as usize];
        value >>= 4;
    }
}

/// The memory of one request, used again and again.
#[derive(Debug, Default)]
pub(crate) struct RequestBuffer {
    bytes: Vec<u8>,
    start: usize,
}

impl RequestBuffer {
    /// Writes a whole request. The head is written last, right before the body, once the body's length is known.
    pub(crate) fn write(
        &mut self,
        template: &Template,
        skill: Skill,
        context_id: Option<&[u8]>,
        ids: &mut Ids,
        payload: impl FnOnce(&mut Vec<u8>),
    ) -> RequestIds {
        let ids = ids.draw();
        let token = template.token.as_ref().map(Token::line);
        let token = token.as_deref().unwrap_or_default();
        let head = [template.heads[skill as usize].as_slice(), token, LENGTH];
        let head_length: usize = head.iter().map(|part| part.len()).sum();
        let body_start = head_length + MAX_LENGTH_DIGITS + END_OF_HEAD.len();
        let out = &mut self.bytes;
        out.clear();
        out.resize(body_start, 0);
        template.form.open(skill, &ids, context_id, out);
        payload(out);
        template.form.close(skill, out);

        let mut at = body_start - END_OF_HEAD.len();
        out[at..body_start].copy_from_slice(END_OF_HEAD);
        let mut length = out.len() - body_start;
        loop {
            at -= 1;
            out[at] = b'0' + (length % 10) as u8;
            length /= 10;
            if length == 0 {
                break;
            }
        }
        self.start = at - head_length;
        let mut at = self.start;
        for part in head {
            out[at..at + part.len()].copy_from_slice(part);
            at += part.len();
        }
        ids
    }

    /// The request last written.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..]
    }
}

/// As many as a 64-bit length can have.
const MAX_LENGTH_DIGITS: usize = 20;
const LENGTH: &[u8] = b"Content-Length: ";
const END_OF_HEAD: &[u8] = b"\r\n\r\n";

#[cfg(test)]
mod tests {
    use dealer_sim::protocol::{Binding, Contract};
    use serde_json::{Value, json};

    use super::*;
    use crate::endpoint;

    fn template(tenant: Option<&str>) -> Template {
        template_of("http://127.0.0.1:8080/a2a", Binding::A2a, tenant)
    }

    fn template_of(url: &str, binding: Binding, tenant: Option<&str>) -> Template {
        let endpoint = endpoint::raw(url, Contract::V3_0, binding).unwrap();
        let endpoint = Endpoint { tenant: tenant.map(str::to_owned), ..endpoint };
        Template::new(&endpoint, &[("X-Key".to_owned(), "k".to_owned())], false)
    }

    fn request(ordinal: u64, context_id: Option<&[u8]>, tenant: Option<&str>) -> (String, Value) {
        written(&template(tenant), ordinal, context_id)
    }

    fn written(template: &Template, ordinal: u64, context_id: Option<&[u8]>) -> (String, Value) {
        let mut buffer = RequestBuffer::default();
        let mut ids = Ids::of_session(&Ids::base(42), ordinal);
        buffer.write(template, Skill::InventorySearch, context_id, &mut ids, |out| {
            out.extend_from_slice(b"{\"type\":\"inventory.search.request\"}");
        });
        let text = String::from_utf8(buffer.bytes().to_vec()).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        assert!(head.ends_with(&format!("Content-Length: {}", body.len())), "{head}");
        (head.to_owned(), serde_json::from_str(body).unwrap())
    }

    #[test]
    fn a_token_is_the_latest_one() {
        let token = Token::default();
        let template = template(None).with_token(Some(token.clone()));
        let mut buffer = RequestBuffer::default();
        for (given, wanted) in [("", ""), ("abc", "\r\nAuthorization: Bearer abc\r\nContent-Length: ")] {
            if !given.is_empty() {
                token.set(given);
            }
            let mut ids = Ids::of_session(&Ids::base(42), 0);
            buffer
                .write(&template, Skill::InventorySearch, None, &mut ids, |out| out.extend_from_slice(b"{}"));
            let text = String::from_utf8(buffer.bytes().to_vec()).unwrap();
            assert!(text.starts_with("POST /a2a HTTP/1.1\r\n") && text.contains(wanted), "{text}");
        }
        assert_eq!(token.header().unwrap().1, "Bearer abc");
        assert!(!format!("{token:?}").contains("abc"));
    }

    #[test]
    fn the_user_s_headers_replace_the_defaults() {
        let own = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        let lines = own_lines(&[own("user-agent", "z"), own("X-Key", "1")]);
        assert_eq!(lines, "Accept: application/json\r\nuser-agent: z\r\nX-Key: 1\r\n");
        assert!(own_lines(&[]).starts_with("User-Agent: dealer-loadgen/"));
        assert!(may_hold_secrets(&[own("X-Key", "1")]) && !may_hold_secrets(&[own("ACCEPT", "*/*")]));
    }

    #[test]
    fn a_request_is_what_the_protocol_asks_for() {
        let (head, body) = request(0, Some(b"ctx-1"), Some("north"));
        for line in [
            "POST /a2a HTTP/1.1",
            "Host: 127.0.0.1:8080",
            "Content-Type: application/json",
            "A2A-Version: 1.0",
            "A2A-Extensions: https://autoagentprotocol.org/extensions/aap/v3.0",
            "X-Key: k",
        ] {
            assert!(head.lines().any(|found| found == line), "{line} in {head}");
        }
        let message = &body["params"]["message"];
        assert_eq!(body["method"], "SendMessage");
        assert_eq!(body["params"]["tenant"], "north");
        assert_eq!(message["role"], "ROLE_USER");
        assert_eq!(message["contextId"], "ctx-1");
        assert_eq!(message["messageId"].as_str().unwrap().len(), 36);
        assert_eq!(message["parts"][0]["data"], json!({"type": "inventory.search.request"}));
        assert_eq!(
            body["params"]["configuration"]["acceptedOutputModes"],
            json!(["application/vnd.autoagent.inventory-search-response+json"])
        );
    }

    #[test]
    fn a_tool_call_names_tool_and_version_twice() {
        let template = template_of("http://127.0.0.1:8080/mcp", Binding::Mcp, None);
        let (head, body) = written(&template, 0, None);
        for line in [
            "POST /mcp HTTP/1.1",
            "Accept: application/json, text/event-stream",
            "MCP-Protocol-Version: 2026-07-28",
            "Mcp-Method: tools/call",
            "Mcp-Name: aap_inventory_search",
            "X-Key: k",
        ] {
            assert!(head.lines().any(|found| found == line), "{line} in {head}");
        }
        assert!(!head.contains("A2A-"), "{head}");
        assert_eq!(body["method"], "tools/call");
        assert_eq!(body["params"]["name"], "aap_inventory_search");
        assert_eq!(body["params"]["arguments"], json!({"type": "inventory.search.request"}));
        let meta = &body["params"]["_meta"];
        assert_eq!(meta["io.modelcontextprotocol/protocolVersion"], "2026-07-28");
        assert_eq!(meta["io.modelcontextprotocol/clientCapabilities"], json!({}));
        assert_eq!(meta["io.modelcontextprotocol/clientInfo"]["name"], "dealer-loadgen");
    }

    #[test]
    fn a_call_of_pap_is_its_payload() {
        let template = template_of("http://127.0.0.1:8080/pap/v3", Binding::Pap, None);
        let (head, body) = written(&template, 0, None);
        assert!(head.starts_with("POST /pap/v3/inventory/search HTTP/1.1\r\n"), "{head}");
        assert!(!head.contains("A2A-") && head.contains("\r\nAccept: application/json\r\n"), "{head}");
        assert_eq!(body, json!({"type": "inventory.search.request"}));
    }

    #[test]
    fn ids_depend_on_the_seed_and_the_session_alone() {
        assert_eq!(request(7, None, None), request(7, None, None));
        let (_, first) = request(7, None, None);
        let (_, second) = request(8, None, None);
        assert_ne!(first["id"], second["id"]);
        assert_ne!(first["params"]["message"]["messageId"], second["params"]["message"]["messageId"]);
        assert!(first["params"]["message"].get("contextId").is_none());
    }
}
