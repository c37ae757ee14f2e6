//! What a dealer publishes about itself beside the agent card, each a pure function of the same facts, so that no two of them
//! can differ by a character (agents that compare the files drop a dealer whose files do, and say nothing). No released text
//! fixes all names; [`Amendments`] correct what later ones say otherwise.

mod amend;
mod llms;
mod openapi;

use serde_json::{Value, json};

pub use amend::{AmendError, Amendments};
pub use llms::llms;
pub use openapi::openapi;

use super::binding::{Binding, Bindings};
use super::card;
use super::contract::Contract;
use super::mcp;
use super::skill::Skill;
use crate::auth::Scheme;

/// The path of the JSON-RPC endpoint.
pub const A2A_PATH: &str = "/a2a";
/// Where the OpenAPI document lives.
const OPENAPI_PATH: &str = "/pap/openapi.json";
/// Where some look for it.
const OPENAPI_ALIAS: &str = "/openapi.json";
/// Where an older proposal has the server card.
const SERVER_CARD_ALIAS: &str = "/.well-known/mcp/server-card.json";

/// What all documents are made of.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The contract served.
    pub contract: Contract,
    /// The base URL under which the dealer is reached, without a slash at its end.
    pub base_url: &'a str,
    /// The dealer group's name.
    pub dealer_name: &'a str,
    /// The dealer's id.
    pub dealer_id: &'a str,
    /// The skills offered.
    pub skills: &'a [Skill],
    /// The bindings through which they are reached.
    pub doors: Bindings,
    /// The credentials that are accepted, any one of them; none where everybody is served.
    pub auth: &'a [Scheme],
    /// How many listings a page holds at most.
    pub page_cap: u32,
    /// How many dealers the process serves.
    pub dealers: usize,
    /// The base URL of the process, where all of them are listed.
    pub root_url: &'a str,
    /// What is said otherwise than here.
    pub amendments: &'a Amendments,
}

impl Facts<'_> {
    /// The name that every document gives the dealer.
    pub fn name(&self) -> String {
        format!("{} (simulated)", self.dealer_name)
    }

    /// The host of the base URL, without a port: the domain that documents speak for.
    pub fn domain(&self) -> &str {
        let rest = self.base_url.split_once("://").map_or(self.base_url, |(_, rest)| rest);
        let authority = rest.split('/').next().unwrap_or_default();
        match authority.rsplit_once(':') {
            // What is behind the last colon of an IPv6 address in brackets is no port.
            Some((host, port)) if port.bytes().all(|byte| byte.is_ascii_digit()) => host,
            _ => authority,
        }
    }

    fn url(&self, path: &str) -> String {
        format!("{}{path}", self.base_url)
    }
}

/// A document that a dealer publishes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Paper {
    /// The agent card of A2A.
    AgentCard,
    /// What the Personal Agent Protocol is discovered by.
    Poppy,
    /// The OpenAPI document of the PAP door.
    Openapi,
    /// The catalogue of what an AI may use.
    AiCatalog,
    /// The catalogue of interfaces (RFC 9727).
    ApiCatalog,
    /// The server card of the MCP door.
    ServerCard,
    /// An introduction for language models.
    Llms,
}

impl Paper {
    /// All of them; the agent card is the first.
    pub const ALL: [Paper; 7] = [
        Paper::AgentCard,
        Paper::Poppy,
        Paper::Openapi,
        Paper::AiCatalog,
        Paper::ApiCatalog,
        Paper::ServerCard,
        Paper::Llms,
    ];

    /// The word for it, in flags.
    pub fn name(self) -> &'static str {
        match self {
            Paper::AgentCard => "card",
            Paper::Poppy => "poppy",
            Paper::Openapi => "openapi",
            Paper::AiCatalog => "ai-catalog",
            Paper::ApiCatalog => "api-catalog",
            Paper::ServerCard => "server-card",
            Paper::Llms => "llms",
        }
    }

    /// Where it lives.
    pub fn path(self) -> &'static str {
        match self {
            Paper::AgentCard => card::PATH,
            Paper::Poppy => "/.well-known/poppy.json",
            Paper::Openapi => OPENAPI_PATH,
            Paper::AiCatalog => "/.well-known/ai-catalog.json",
            Paper::ApiCatalog => "/.well-known/api-catalog",
            Paper::ServerCard => "/mcp/server-card",
            Paper::Llms => "/llms.txt",
        }
    }

    /// The document at a path.
    pub fn at(path: &str) -> Option<Paper> {
        match path {
            OPENAPI_ALIAS => return Some(Paper::Openapi),
            SERVER_CARD_ALIAS => return Some(Paper::ServerCard),
            _ => {}
        }
        Paper::ALL.into_iter().find(|paper| paper.path() == path)
    }

    /// What it is sent as.
    pub fn media_type(self) -> &'static str {
        match self {
            Paper::AgentCard | Paper::Poppy | Paper::Openapi => "application/json",
            Paper::AiCatalog => "application/ai-catalog+json",
            Paper::ApiCatalog => {
                "application/linkset+json; profile=\"https://www.rfc-editor.org/info/rfc9727\""
            }
            Paper::ServerCard => "application/mcp-server-card+json",
            Paper::Llms => "text/plain; charset=utf-8",
        }
    }

    /// Whether a dealer with these doors has it: the files of PAP stand for a door that is there, and catalogues came with
    /// the contract that has several.
    pub fn is_published(self, facts: &Facts<'_>) -> bool {
        match self {
            Paper::AgentCard | Paper::Llms => true,
            Paper::Poppy | Paper::Openapi => facts.doors.has(Binding::Pap),
            Paper::ServerCard => facts.doors.has(Binding::Mcp),
            Paper::AiCatalog | Paper::ApiCatalog => facts.contract.card_has_links,
        }
    }

    /// The document, but for the agent card, which also wants to know when it took force.
    pub fn write(self, facts: &Facts<'_>) -> Vec<u8> {
        match self {
            Paper::AgentCard => Vec::new(),
            Paper::Poppy => facts
                .amendments
                .whole_poppy()
                .map_or_else(|| self.amended(facts, poppy(facts)), <[u8]>::to_vec),
            Paper::Openapi => self.amended(facts, openapi(facts)),
            Paper::AiCatalog => self.amended(facts, ai_catalog(facts)),
            Paper::ApiCatalog => self.amended(facts, api_catalog(facts)),
            Paper::ServerCard => self.amended(facts, server_card(facts)),
            Paper::Llms => llms(facts).into_bytes(),
        }
    }

    fn amended(self, facts: &Facts<'_>, mut document: Value) -> Vec<u8> {
        facts.amendments.apply(self.name(), facts.base_url, &mut document);
        document.to_string().into_bytes()
    }
}

impl std::fmt::Display for Paper {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

impl std::str::FromStr for Paper {
    type Err = UnknownPaper;

    fn from_str(name: &str) -> Result<Paper, UnknownPaper> {
        let found = Paper::ALL.into_iter().find(|paper| paper.name() == name);
        found.ok_or_else(|| UnknownPaper { name: name.to_owned() })
    }
}

/// No document goes by this name.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown document {name:?}; the documents are card, poppy, openapi, ai-catalog, api-catalog, server-card and llms"
)]
pub struct UnknownPaper {
    /// What was given.
    pub name: String,
}

/// `/.well-known/poppy.json` (BINDINGS, a.2 and a.5): member names of draft 0.1, number of 1.0. Nothing offers sign-in, so
/// there is no `auth`.
pub fn poppy(facts: &Facts<'_>) -> Value {
    let mut apis = vec![json!({
        "type": "openapi",
        "url": facts.url(Paper::Openapi.path()),
        "description": "Store facts, stock search and consented leads as plain JSON. No sign-in.",
    })];
    if facts.doors.has(Binding::Mcp) {
        apis.push(json!({
            "type": "mcp",
            "url": facts.url(mcp::PATH),
            "description": "The same skills as MCP tools. No sign-in.",
        }));
    }
    json!({
        "protocol_version": "1.0",
        "organization": { "name": facts.name(), "domain": facts.domain() },
        "apis": apis,
        "agent": { "protocols": [{ "type": "a2a", "endpoint": facts.url(A2A_PATH) }] },
        "extensions": {
            "autoagentprotocol.org/aap": { "version": facts.contract.name, "uri": facts.contract.extension_uri },
        },
    })
}

/// `/.well-known/ai-catalog.json` (BINDINGS, b.4): what its artefact says of itself is not said again.
pub fn ai_catalog(facts: &Facts<'_>) -> Value {
    let entry = |kind: &str, media_type: &str, path: &str| {
        json!({
            "identifier": format!("urn:air:{}:{kind}:{}", facts.domain(), facts.dealer_id),
            "type": media_type,
            "url": facts.url(path),
        })
    };
    let mut entries = vec![entry("a2a", "application/a2a-agent-card+json", card::PATH)];
    if facts.doors.has(Binding::Mcp) {
        entries.push(entry("mcp", "application/mcp-server-card+json", Paper::ServerCard.path()));
    }
    json!({ "specVersion": "0.9", "host": { "displayName": facts.name() }, "entries": entries })
}

/// `/.well-known/api-catalog` (RFC 9727, a linkset of RFC 9264): each interface with what describes it (RFC 8631).
pub fn api_catalog(facts: &Facts<'_>) -> Value {
    let link = |path: &str, media_type: &str| json!([{ "href": facts.url(path), "type": media_type }]);
    let mut set = vec![json!({
        "anchor": facts.url(A2A_PATH),
        "service-desc": link(card::PATH, Paper::AgentCard.media_type()),
        "service-doc": link(Paper::Llms.path(), "text/plain"),
    })];
    if facts.doors.has(Binding::Mcp) {
        set.push(json!({
            "anchor": facts.url(mcp::PATH),
            "service-desc": link(Paper::ServerCard.path(), "application/mcp-server-card+json"),
            "service-doc": link(Paper::Llms.path(), "text/plain"),
        }));
    }
    if facts.doors.has(Binding::Pap) {
        set.push(json!({
            "anchor": facts.url("/"),
            "service-desc": link(Paper::Openapi.path(), "application/vnd.oai.openapi+json;version=3.1"),
            "service-doc": link(Paper::Llms.path(), "text/plain"),
            "service-meta": link(Paper::Poppy.path(), "application/json"),
        }));
    }
    json!({ "linkset": set })
}

/// `/mcp/server-card` (SEP-2127): what a host reads before it connects. It never lists tools.
pub fn server_card(facts: &Facts<'_>) -> Value {
    // Reverse DNS of the domain, and one slash; an address has no order to reverse.
    let domain = facts.domain().trim_start_matches('[').trim_end_matches(']');
    let is_address = domain.parse::<std::net::IpAddr>().is_ok();
    let labels: Vec<&str> = if is_address { vec!["localhost"] } else { domain.rsplit('.').collect() };
    json!({
        "$schema": "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
        "name": format!("{}/{}", labels.join("."), facts.dealer_id),
        "title": facts.name(),
        "version": env!("CARGO_PKG_VERSION"),
        "description": "The skills of one simulated car dealer as tools: store facts, stock and consented leads. No sign-in.",
        "websiteUrl": facts.url("/"),
        "remotes": [{
            "type": "streamable-http",
            "url": facts.url(mcp::PATH),
            "supportedProtocolVersions": mcp::VERSIONS,
        }],
        "_meta": { "org.autoagentprotocol/extension": facts.contract.extension_uri },
    })
}

/// What the card's extension entry links beside the search capabilities (BINDINGS, c.5).
pub fn card_links(facts: &Facts<'_>) -> Vec<(&'static str, Value)> {
    let mut links = Vec::new();
    if facts.doors.has(Binding::Mcp) {
        let mcp = json!({
            "url": facts.url(mcp::PATH),
            "protocol_versions": mcp::VERSIONS,
            "server_card_url": facts.url(Paper::ServerCard.path()),
        });
        links.push(("mcp", mcp));
    }
    if facts.doors.has(Binding::Pap) {
        let pap = json!({
            "discovery_url": facts.url(Paper::Poppy.path()),
            "openapi_url": facts.url(Paper::Openapi.path()),
        });
        links.push(("pap", pap));
    }
    links.push(("llms", json!({ "url": facts.url(Paper::Llms.path()) })));
    links
}

#[cfg(test)]
pub(crate) mod tests {
    use std::sync::LazyLock;

    use super::*;

    static NONE: LazyLock<Amendments> = LazyLock::new(Amendments::default);

    pub(crate) fn facts(base_url: &str) -> Facts<'_> {
        Facts {
            contract: Contract::V3_0,
            base_url,
            dealer_name: "Harbor",
            dealer_id: "harbor",
            skills: &Skill::ALL,
            doors: Bindings::ALL,
            auth: &[],
            page_cap: 100,
            dealers: 1,
            root_url: base_url,
            amendments: &NONE,
        }
    }

    #[test]
    fn the_domain_is_the_host_without_port() {
        for (url, domain) in [
            ("https://dealer.example.test", "dealer.example.test"),
            ("http://127.0.0.1:8080/d/north", "127.0.0.1"),
            ("http://[::1]:8080", "[::1]"),
            ("http://[::1]", "[::1]"),
        ] {
            assert_eq!(facts(url).domain(), domain);
        }
    }

    #[test]
    fn a_door_that_is_shut_is_named_nowhere() {
        let open = facts("https://h.test");
        for (doors, shut) in [
            (Bindings::of(&[Binding::A2a]), vec!["/mcp", "/pap", "poppy"]),
            (Bindings::of(&[Binding::A2a, Binding::Pap]), vec!["/mcp"]),
        ] {
            let facts = Facts { doors, ..open };
            let mut said: Vec<String> = [
                Paper::Poppy,
                Paper::Openapi,
                Paper::AiCatalog,
                Paper::ApiCatalog,
                Paper::ServerCard,
                Paper::Llms,
            ]
            .into_iter()
            .filter(|paper| paper.is_published(&facts))
            .map(|paper| String::from_utf8(paper.write(&facts)).unwrap())
            .collect();
            said.push(json!(card_links(&facts)).to_string());
            for word in shut {
                assert!(said.iter().all(|text| !text.contains(word)), "{word} with {doors:?}");
            }
        }
    }

    #[test]
    fn documents_are_found_by_path_and_by_name() {
        for paper in Paper::ALL {
            assert_eq!(Paper::at(paper.path()), Some(paper));
            assert_eq!(paper.name().parse(), Ok(paper));
        }
        assert_eq!(Paper::at("/openapi.json"), Some(Paper::Openapi));
        assert_eq!(Paper::at("/.well-known/oauth-protected-resource"), None);
    }
}
