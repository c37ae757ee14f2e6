//! A request that differs on purpose from what the protocol asks for: the usual one, with what `raw` replaces.

use dealer_sim::protocol::merge::merge_patch;
use serde_json::Value;

use crate::scenario::Replaced;

/// A request as it is sent, and what its reply has to refer to.
#[derive(Debug)]
pub(crate) struct Deviant {
    /// Head and body.
    pub(crate) bytes: Vec<u8>,
    /// The JSON-RPC id sent, as its JSON text; `null` if there is none.
    pub(crate) id: Vec<u8>,
    /// The `messageId` sent; empty if there is none.
    pub(crate) message_id: Vec<u8>,
    /// The `contextId` sent, as the inside of its JSON string.
    pub(crate) context_id: Option<Vec<u8>>,
}

/// Replaces parts of a whole request.
pub(crate) fn deviate(request: &[u8], replaced: &Replaced) -> Deviant {
    let end = memchr::memmem::find(request, b"\r\n\r\n").unwrap_or(request.len());
    let body = request.get(end + 4..).unwrap_or_default();
    let body = match (&replaced.body, &replaced.envelope) {
        (Some(body), _) => body.clone(),
        (None, Some(patch)) => patched(body, patch),
        (None, None) => body.to_vec(),
    };
    let mut bytes = head(&String::from_utf8_lossy(&request[..end]), replaced, body.len()).into_bytes();
    let sent: Value = serde_json::from_slice(&body).unwrap_or_default();
    let text = |pointer: &str| sent.pointer(pointer).filter(|value| value.is_string());
    let inside = |value: &Value| {
        let quoted = value.to_string();
        quoted.as_bytes()[1..quoted.len() - 1].to_vec()
    };
    let id = sent.get("id").unwrap_or(&Value::Null).to_string().into_bytes();
    let message_id = text("/params/message/messageId").map(inside).unwrap_or_default();
    let context_id = text("/params/message/contextId").map(inside);
    bytes.extend_from_slice(&body);
    Deviant { bytes, id, message_id, context_id }
}

fn patched(body: &[u8], patch: &Value) -> Vec<u8> {
    let mut envelope: Value = serde_json::from_slice(body).unwrap_or_default();
    merge_patch(&mut envelope, patch);
    envelope.to_string().into_bytes()
}

/// The head with its end. The length is that of the body, unless the scenario says another or none.
fn head(usual: &str, replaced: &Replaced, length: usize) -> String {
    let (request_line, lines) = usual.split_once("\r\n").unwrap_or((usual, ""));
    let mut words = request_line.splitn(3, ' ');
    let (method, path) = (words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let method = replaced.method.as_deref().unwrap_or(method);
    let path = replaced.path.as_deref().unwrap_or(path);
    let mut out = format!("{method} {path} HTTP/1.1\r\n");
    let is_replaced = |name: &str| replaced.headers.iter().any(|(own, _)| own.eq_ignore_ascii_case(name));
    for line in lines.split("\r\n") {
        let name = line.split(':').next().unwrap_or_default();
        if is_replaced(name) || line.is_empty() {
            continue;
        }
        if name.eq_ignore_ascii_case("content-length") {
            out.push_str(&format!("Content-Length: {length}\r\n"));
        } else {
            out.push_str(line);
            out.push_str("\r\n");
        }
    }
    for (name, value) in &replaced.headers {
        if let Some(value) = value {
            out.push_str(&format!("{name}: {value}\r\n"));
        }
    }
    out.push_str("\r\n");
    out
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const USUAL: &[u8] = b"POST /a2a HTTP/1.1\r\nHost: h\r\nA2A-Version: 1.0\r\nContent-Length: 68\r\n\r\n\
        {\"id\":\"r\",\"params\":{\"message\":{\"messageId\":\"m\",\"contextId\":\"c\\\"d\"}}}";

    fn text(replaced: &Replaced) -> (String, Deviant) {
        let deviant = deviate(USUAL, replaced);
        (String::from_utf8(deviant.bytes.clone()).unwrap(), deviant)
    }

    #[test]
    fn nothing_replaced_is_the_usual_request_with_its_ids() {
        let (_, deviant) = text(&Replaced::default());
        assert_eq!((&deviant.id[..], &deviant.message_id[..]), (&b"\"r\""[..], &b"m"[..]));
        assert_eq!(deviant.context_id.as_deref(), Some(&b"c\\\"d"[..]));
    }

    #[test]
    fn headers_method_and_path_are_replaced_in_any_case() {
        let header = |name: &str, value: Option<&str>| (name.to_owned(), value.map(str::to_owned));
        let (text, _) = text(&Replaced {
            method: Some("PUT".to_owned()),
            path: Some("/x".to_owned()),
            headers: vec![header("a2a-version", Some("9")), header("HOST", None), header("X", Some("1"))],
            ..Replaced::default()
        });
        assert!(text.starts_with("PUT /x HTTP/1.1\r\nContent-Length: "), "{text}");
        assert!(text.contains("\r\na2a-version: 9\r\nX: 1\r\n\r\n{"), "{text}");
        assert!(!text.contains("Host") && !text.contains("1.0"), "{text}");
    }

    #[test]
    fn the_envelope_is_patched_and_the_body_replaced_with_its_length() {
        let patch = json!({"id": null, "params": {"message": {"contextId": 7}}});
        let (text_of_patch, deviant) = text(&Replaced { envelope: Some(patch), ..Replaced::default() });
        let (head, body) = text_of_patch.split_once("\r\n\r\n").unwrap();
        assert_eq!(body, r#"{"params":{"message":{"contextId":7,"messageId":"m"}}}"#);
        assert!(head.ends_with(&format!("Content-Length: {}", body.len())), "{head}");
        assert_eq!((&deviant.id[..], deviant.context_id.is_none()), (&b"null"[..], true));
        let (whole, deviant) = text(&Replaced { body: Some(b"{ no".to_vec()), ..Replaced::default() });
        assert!(whole.ends_with("Content-Length: 4\r\n\r\n{ no"), "{whole}");
        assert!(deviant.message_id.is_empty());
    }
}
