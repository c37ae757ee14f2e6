//! `/llms.txt`: what a dealer is, for a language model or a person that happens upon it (llmstxt.org: a heading, a quoted
//! summary, sections of links).

use super::{A2A_PATH, Binding, Facts, Paper};
use crate::protocol::{card, mcp};

/// The text.
pub fn llms(facts: &Facts<'_>) -> String {
    let skills: Vec<_> = facts.skills.iter().map(|skill| skill.id()).collect();
    let mut text = format!(
        "# {}\n\n> A simulated car dealer for testing buyer agents over the Auto Agent Protocol {}. No vehicle here exists, \
         and leads reach nobody.\n\nSkills: {}.\n\n## Machine interfaces\n\n",
        facts.dealer_name,
        facts.contract,
        skills.join(", "),
    );
    let mut link = |title: &str, path: &str, what: &str| {
        text.push_str(&format!("- [{title}]({}): {what}\n", facts.url(path)));
    };
    link("Agent card", card::PATH, "what A2A agents read first");
    link("A2A endpoint", A2A_PATH, "A2A 1.0 over JSON-RPC: POST SendMessage");
    if facts.doors.has(Binding::Mcp) {
        link(
            "MCP endpoint",
            mcp::PATH,
            "the skills as MCP tools: POST, streamable HTTP, no session, no sign-in",
        );
        link("MCP server card", Paper::ServerCard.path(), "what MCP hosts read first");
    }
    if facts.doors.has(Binding::Pap) {
        link(
            "OpenAPI document",
            Paper::Openapi.path(),
            "the skills as plain JSON over HTTP, one POST each, no sign-in",
        );
        link("poppy.json", Paper::Poppy.path(), "what personal agents read first");
    }
    for paper in [Paper::AiCatalog, Paper::ApiCatalog].into_iter().filter(|paper| paper.is_published(facts)) {
        link(
            if paper == Paper::AiCatalog { "AI catalog" } else { "API catalog" },
            paper.path(),
            "all of the above, for machines",
        );
    }
    text.push_str(
        "\n## Rules for agents\n\n\
         - A lead needs the customer's own consent, in the payload's `consent`: what they agreed to, when, and by which \
         channels they may be contacted. No sign-in, session or confirmation takes its place.\n\
         - `price` is what the dealer asks, without what the government takes; `fees` are in it, `list_price` is before them. \
         `updated_at` says when a listing last changed: ask again before you promise anything.\n\
         - Send a lead with an `idempotency_key`, and the same key and payload again when no answer came: it stays one lead, \
         through whichever interface.\n\
         - A call over the limit is refused with RATE_LIMITED; wait as long as `retry_after_ms` says.\n",
    );
    text.push_str(&format!("\n## Human pages\n\n- [This page]({}): as text\n", facts.url("/")));
    if facts.dealers > 1 {
        let (count, root) = (facts.dealers, facts.root_url);
        text.push_str(&format!("- [All {count} dealers here]({root}/): as JSON or HTML\n"));
    }
    text
}
