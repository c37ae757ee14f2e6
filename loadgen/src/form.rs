//! What stands around a payload, by binding: the header fields of a request and the envelope of its body.

use dealer_sim::protocol::call::METHOD;
use dealer_sim::protocol::mcp::{MODERN, tool_name};
use dealer_sim::protocol::{Binding, Skill, headers};

use crate::endpoint::Endpoint;
use crate::envelope::RequestIds;

/// The name and the version that a dealer is told.
const CLIENT: &str = concat!("{\"name\":\"dealer-loadgen\",\"version\":\"", env!("CARGO_PKG_VERSION"), "\"}");

/// The envelope of one run's requests.
#[derive(Debug, Clone)]
pub(crate) enum Form {
    /// A2A's `SendMessage`.
    A2a {
        /// `params.tenant`, as a JSON string, if the card's interface has one.
        tenant: Option<String>,
    },
    /// MCP's `tools/call`, without a session (revision 2026-07-28).
    Mcp,
    /// The payload is the body.
    Pap,
}

impl Form {
    /// The envelope that a dealer is spoken to in.
    pub(crate) fn of(endpoint: &Endpoint) -> Form {
        match endpoint.binding {
            Binding::A2a => {
                let tenant = endpoint.tenant.as_deref();
                Form::A2a { tenant: tenant.map(|tenant| serde_json::Value::from(tenant).to_string()) }
            }
            Binding::Mcp => Form::Mcp,
            Binding::Pap => Form::Pap,
        }
    }

    /// The header fields of a request of a skill that say which protocol it is of; each line with its end.
    pub(crate) fn lines(&self, endpoint: &Endpoint, skill: Skill) -> String {
        match self {
            Form::A2a { .. } => {
                let uri = endpoint.contract.extension_uri;
                format!(
                    "{}: {}\r\n{}: {uri}\r\n",
                    headers::VERSION,
                    headers::SERVED_VERSION,
                    headers::EXTENSIONS
                )
            }
            Form::Mcp => format!(
                "MCP-Protocol-Version: {}\r\nMcp-Method: tools/call\r\nMcp-Name: {}\r\n",
                MODERN,
                tool_name(skill)
            ),
            Form::Pap => String::new(),
        }
    }

    /// What is accepted in reply, unless the user says otherwise.
    pub(crate) fn accept(&self) -> &'static str {
        match self {
            Form::A2a { .. } | Form::Pap => "application/json",
            // Whoever leaves one out is refused by strict servers (BINDINGS, section b.2).
            Form::Mcp => "application/json, text/event-stream",
        }
    }

    /// Writes what stands before the payload.
    pub(crate) fn open(&self, skill: Skill, ids: &RequestIds, context_id: Option<&[u8]>, out: &mut Vec<u8>) {
        match self {
            Form::A2a { tenant } => {
                out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
                out.extend_from_slice(&ids.id);
                out.extend_from_slice(b",\"method\":\"");
                out.extend_from_slice(METHOD.as_bytes());
                out.extend_from_slice(b"\",\"params\":{");
                if let Some(tenant) = tenant {
                    out.extend_from_slice(b"\"tenant\":");
                    out.extend_from_slice(tenant.as_bytes());
                    out.push(b',');
                }
                out.extend_from_slice(b"\"message\":{\"messageId\":\"");
                out.extend_from_slice(&ids.message_id);
                if let Some(context_id) = context_id {
                    out.extend_from_slice(b"\",\"contextId\":\"");
                    out.extend_from_slice(context_id);
                }
                out.extend_from_slice(b"\",\"role\":\"ROLE_USER\",\"parts\":[{\"data\":");
            }
            Form::Mcp => {
                out.extend_from_slice(b"{\"jsonrpc\":\"2.0\",\"id\":");
                out.extend_from_slice(&ids.id);
                out.extend_from_slice(b",\"method\":\"tools/call\",\"params\":{\"name\":\"");
                out.extend_from_slice(tool_name(skill).as_bytes());
                out.extend_from_slice(b"\",\"arguments\":");
            }
            Form::Pap => {}
        }
    }

    /// Writes what stands behind the payload.
    pub(crate) fn close(&self, skill: Skill, out: &mut Vec<u8>) {
        match self {
            Form::A2a { .. } => {
                out.extend_from_slice(b",\"mediaType\":\"");
                out.extend_from_slice(skill.request_media_type().as_bytes());
                out.extend_from_slice(b"\"}]},\"configuration\":{\"acceptedOutputModes\":[\"");
                out.extend_from_slice(skill.response_media_type().as_bytes());
                out.extend_from_slice(b"\"]}}}");
            }
            Form::Mcp => {
                out.extend_from_slice(b",\"_meta\":{\"io.modelcontextprotocol/protocolVersion\":\"");
                out.extend_from_slice(MODERN.as_bytes());
                out.extend_from_slice(
                    b"\",\"io.modelcontextprotocol/clientCapabilities\":{},\"io.modelcontextprotocol/clientInfo\":",
                );
                out.extend_from_slice(CLIENT.as_bytes());
                out.extend_from_slice(b"}}}");
            }
            Form::Pap => {}
        }
    }
}
