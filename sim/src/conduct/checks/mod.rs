//! The checks: each looks at one request and at what is remembered of its client.

mod conversation;
mod envelope;
mod leads;
mod listings;
mod retries;

use super::facts::Kind;
use super::judge::{Case, Client};

/// Judges one request by every rule.
pub(super) fn judge(case: &mut Case<'_>, client: &mut Client) {
    if !case.facts.is_a2a() {
        return judge_payload(case, client);
    }
    envelope::discovery(case, client);
    if case.facts.kind != Kind::Call {
        return;
    }
    envelope::envelope(case, client);
    conversation::judge(case, client);
    retries::judge(case, client);
    retries::faults(case, client);
    leads::judge(case, client);
    listings::judge(case, client);
    envelope::remember(case, client);
}

/// Judges a call through MCP or PAP by what is asked of it in any envelope: leads, consent, retries, listings. Neither has
/// messages or conversations, and neither begins with the agent card.
fn judge_payload(case: &mut Case<'_>, client: &mut Client) {
    if case.facts.kind != Kind::Call || case.facts.skill().is_none() {
        return;
    }
    envelope::under_way(case, client);
    retries::judge(case, client);
    retries::faults(case, client);
    leads::judge(case, client);
    listings::judge(case, client);
}
