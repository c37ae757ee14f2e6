//! The server card (SEP-2127; format of experimental-ext-server-card, 2026-07-24): where the server is and what it speaks.
//! It never lists tools, and must agree with `server/discover`.

use serde_json::{Value, json};

use super::guest::{host_of, origin_of};
use super::{PATH, VERSIONS};
use crate::protocol::contract::Contract;

/// Where the card is: the place that is reserved for it, and where an older proposal has it.
pub const CARD_PATHS: [&str; 2] = ["/mcp/server-card", "/.well-known/mcp/server-card.json"];
/// What it is sent as.
pub const CARD_TYPE: &str = "application/mcp-server-card+json";

/// The card of a dealer that is reached under `base_url`.
pub fn server_card(contract: Contract, base_url: &str, dealer_id: &str, dealer_name: &str) -> Value {
    json!({
        "$schema": "https://static.modelcontextprotocol.io/schemas/v1/server-card.schema.json",
        "name": format!("{}/{dealer_id}", reversed_host(base_url)),
        "title": format!("{dealer_name} (simulated)"),
        "version": env!("CARGO_PKG_VERSION"),
        "description": "A car dealer that does not exist: its stock, and consented leads, as tools.",
        "remotes": [{
            "type": "streamable-http",
            "url": format!("{base_url}{PATH}"),
            "supportedProtocolVersions": VERSIONS,
        }],
        "_meta": { "org.autoagentprotocol/extension_uri": contract.extension_uri },
    })
}

/// The host with its labels in reverse, as names in reverse DNS form have it. An address has no labels.
fn reversed_host(url: &str) -> String {
    let origin = origin_of(url);
    let host = host_of(origin.split_once("://").map_or("", |(_, authority)| authority));
    if host.starts_with('[') {
        return "localhost".to_owned();
    }
    match host.parse::<std::net::Ipv4Addr>() {
        Ok(_) => host.to_owned(),
        Err(_) => host.split('.').rev().collect::<Vec<_>>().join("."),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_card_is_named_after_host_and_dealer() {
        for (url, name) in [
            ("https://dealer.example.test/d/harbor", "test.example.dealer/harbor"),
            ("http://127.0.0.1:8080", "127.0.0.1/harbor"),
            ("http://[::1]:8080", "localhost/harbor"),
            ("http://localhost:1", "localhost/harbor"),
        ] {
            let card = server_card(Contract::V3_0, url, "harbor", "Harbor");
            assert_eq!(card["name"], name);
            assert_eq!(card["remotes"][0]["url"], format!("{url}/mcp"));
            assert!(card.get("tools").is_none());
        }
    }
}
