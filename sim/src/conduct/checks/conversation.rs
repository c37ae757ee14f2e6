//! Conversations: whose contextId is carried to whom.

use serde_json::Value;

use super::super::facts::Facts;
use super::super::judge::{Case, Client, Context, quote};
use super::super::rules::R;
use super::listings::identities;
use crate::protocol::Skill;

/// A follow-up without a contextId belongs to the conversation before it if that is no older than this.
const SAME_CONVERSATION_NS: u64 = 600 * 1_000_000_000;

pub(super) fn judge(case: &mut Case<'_>, client: &mut Client) {
    let facts = case.facts;
    if facts.is_cut() || facts.message().is_none() {
        return;
    }
    let dealer = &facts.entry.dealer;
    let Some(relation) = client.relations.get(dealer) else { return };
    let before = relation
        .context
        .clone()
        .filter(|(_, _, told)| facts.arrived >= *told && facts.arrived - told < SAME_CONVERSATION_NS);
    let asked = facts.said("contextId");
    let known = asked.and_then(|asked| client.contexts.get(&asked.to_owned()));
    if let Some(asked) = asked {
        let other =
            known.filter(|known| known.dealer != *dealer).map(|known| (known.seq, known.dealer.clone()));
        let earlier = other.as_ref().map(|(seq, _)| *seq);
        case.check(R::ContextOwn, other.is_none(), earlier.as_slice(), || {
            let whose = other.as_ref().map_or("", |(_, dealer)| dealer.as_str());
            format!("contextId {} is the dealer {}'s", quote(asked), whose)
        });
        if earlier.is_some() {
            return;
        }
    }
    let follows_up = follows_up(facts, client);
    if let Some((context, seq, _)) = before.filter(|_| follows_up) {
        case.check_absent(R::ContextCarried, asked.is_some(), &[seq], || {
            format!(
                "came without contextId, though the dealer had answered entry {seq} with {}",
                quote(&context)
            )
        });
        if let Some(asked) = asked {
            case.check_absent(R::ContextKnown, known.is_some(), &[seq], || {
                format!(
                    "contextId {} is not the dealer's, which had answered entry {seq} with {}",
                    quote(asked),
                    quote(&context)
                )
            });
        }
    }
    if facts.has_strange_context() {
        // What the caller was told of its conversation is not what the dealer meant.
        if let Some(relation) = client.relations.get_mut(dealer) {
            relation.context = None;
        }
        return;
    }
    // What the dealer answered with is its own from then on, also when the client had proposed it.
    let Some(context) = facts.conversation().filter(|_| facts.is_answered()) else { return };
    let made = Context { dealer: dealer.clone(), seq: facts.seq() };
    if client.contexts.get(&context.to_owned()).is_none() {
        client.contexts.put(context.to_owned(), made);
    }
    if let Some(relation) = client.relations.get_mut(dealer) {
        relation.context = Some((context.to_owned(), facts.seq(), facts.ended));
    }
}

/// Whether a call by its nature goes on with something: a search from the start may begin a new conversation, and so may a
/// vehicle that the dealer did not show.
fn follows_up(facts: &Facts<'_>, client: &Client) -> bool {
    let dealer = &facts.entry.dealer;
    let was_shown = |vehicle: &Value| {
        // Of what the journal did not keep of a reply any vehicle may have been shown.
        client.relations.get(dealer).is_some_and(|relation| relation.unseen)
            || identities(vehicle)
                .iter()
                .any(|name| client.listings.get(&format!("{dealer} {name}")).is_some())
    };
    match facts.skill() {
        Some(Skill::InventoryVehicle) => facts.payload().is_some_and(was_shown),
        Some(Skill::LeadSubmit) => {
            facts.payload().is_some_and(|payload| was_shown(&payload["vehicle_of_interest"]))
        }
        Some(Skill::InventorySearch) => facts
            .payload()
            .and_then(|payload| payload["pagination"]["skip"].as_f64())
            .is_some_and(|skip| skip > 0.0),
        _ => false,
    }
}
