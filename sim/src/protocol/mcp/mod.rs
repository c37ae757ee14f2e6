//! MCP (Model Context Protocol) for a server that has tools and nothing else: revision 2026-07-28, in which every request says
//! all there is to know, and the older ones that begin with `initialize`, on one endpoint. The only place that knows MCP's
//! names, numbers and headers.

mod guest;
mod headers;
mod read;
mod tools;
mod write;

pub use guest::{Guests, Unwelcome};
pub use headers::Headers;
pub use read::{Ask, Reading, Refusal, read};
pub use tools::{discovered, initialize, tool_list, tools};
pub use write::{close_result, open_result, write_empty, write_refusal, write_with};

use super::skill::Skill;

/// Where the endpoint is.
pub const PATH: &str = "/mcp";
/// The revision without handshake or session.
pub const MODERN: &str = "2026-07-28";
/// The revisions with a handshake, newest first.
pub const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// The revisions that are told of, newest first: of those with a handshake the newest stands for all.
pub const VERSIONS: [&str; 2] = [MODERN, LEGACY[0]];
/// How the server names itself.
pub const SERVER_NAME: &str = "dealer-sim";

/// Numbers of errors beside those of JSON-RPC. -32000 to -32019 are taken by older uses; A2A's must not be sent here.
pub mod code {
    /// A header is missing, or says something else than the body.
    pub const HEADER_MISMATCH: i32 = -32020;
    /// The revision is not served.
    pub const UNSUPPORTED_VERSION: i32 = -32022;
}

/// Which kind of revision a request is of.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Era {
    /// 2026-07-28 and later: each request says version and capabilities.
    Modern,
    /// Before: a handshake says them.
    Legacy,
}

/// The tool that is a skill: its id behind `aap_`, with underscores.
pub fn tool_name(skill: Skill) -> &'static str {
    match skill {
        Skill::DealerInformation => "aap_dealer_information",
        Skill::InventoryFacets => "aap_inventory_facets",
        Skill::InventorySearch => "aap_inventory_search",
        Skill::InventoryVehicle => "aap_inventory_vehicle",
        Skill::LeadSubmit => "aap_lead_submit",
    }
}

/// The skill that a tool is.
pub fn skill_of(tool: &str) -> Option<Skill> {
    Skill::ALL.into_iter().find(|skill| tool_name(*skill) == tool)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_tool_is_named_after_its_skill() {
        for skill in Skill::ALL {
            assert_eq!(tool_name(skill), format!("aap_{}", skill.id().replace('.', "_")));
            assert_eq!(skill_of(tool_name(skill)), Some(skill));
        }
        assert_eq!(skill_of("aap_lead"), None);
    }
}
