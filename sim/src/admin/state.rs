//! What dealers know and have received: fixtures, leads, conversations.

use serde::Serialize;
use serde_json::{Value, json};

use super::{AdminReply, Scope, json_reply};
use crate::dealer::clock::Now;
use crate::journal::Redactor;
use crate::world::Site;

/// A value with the dealer it belongs to.
fn of_dealer(site: &Site, what: &impl Serialize) -> Value {
    let mut value = serde_json::to_value(what).unwrap_or_default();
    value["dealer_id"] = site.id().into();
    value
}

/// Values to test with, at `now` on clocks that were never moved: the first dealer's; where it speaks for all, with where the others' are.
pub(super) fn fixtures(scope: &Scope<'_>, now: Now) -> AdminReply {
    let site = scope.first();
    let mut fixtures = of_dealer(site, &site.scene().dealer.fixtures(site.now(now)));
    if scope.is_all {
        fixtures["dealers"] = scope.paths().into();
    }
    json_reply(200, &fixtures)
}

/// The newest leads, oldest of them first; without the people in them, if there is a redactor.
pub(super) fn leads(sites: &[Site], limit: usize, redactor: Option<&Redactor>) -> AdminReply {
    let (mut received, mut dropped) = (0, 0);
    // Never more than twice the limit, however many dealers there are.
    let mut newest: Vec<(u64, Value)> = Vec::new();
    for site in sites {
        let scene = site.scene();
        let desk = scene.dealer.desk();
        received += desk.leads.received;
        dropped += desk.leads.dropped;
        newest.extend(desk.leads.newest(limit).map(|lead| {
            let mut shown = of_dealer(site, &lead.view());
            if let Some(redactor) = redactor {
                redact(&mut shown, redactor);
            }
            (lead.number, shown)
        }));
        newest.sort_by_key(|&(number, _)| number);
        newest.drain(..newest.len().saturating_sub(limit));
    }
    let leads: Vec<Value> = newest.into_iter().map(|(_, lead)| lead).collect();
    json_reply(200, &json!({ "received": received, "dropped": dropped, "leads": leads }))
}

/// Takes the people out of a lead.
fn redact(lead: &mut Value, redactor: &Redactor) {
    let (request, marks) = redactor.request(lead["request"].to_string().as_bytes());
    let receipt = lead["receipt"].to_string();
    let receipt = redactor.reply(receipt.as_bytes(), &marks);
    let context_id = marks.applied(lead["context_id"].as_str().unwrap_or_default()).into_owned();
    let context_id = redactor.text(&context_id).into_owned();
    lead["request"] = serde_json::from_slice(&request).unwrap_or_default();
    lead["receipt"] = serde_json::from_slice(&receipt).unwrap_or_default();
    lead["context_id"] = context_id.into();
}

/// The conversations, by first call.
pub(super) fn conversations(sites: &[Site], limit: usize, redactor: Option<&Redactor>) -> AdminReply {
    let (mut count, mut dropped) = (0, 0);
    let mut first: Vec<Value> = Vec::new();
    for site in sites {
        let scene = site.scene();
        let own = scene.dealer.conversations();
        count += own.count();
        dropped += own.dropped();
        first.extend(own.list(limit).iter().map(|view| of_dealer(site, view)));
        if sites.len() > 1 {
            let time = |view: &Value| view["first_at"].as_str().unwrap_or_default().to_owned();
            first.sort_by_cached_key(time);
            first.truncate(limit);
        }
    }
    if let Some(redactor) = redactor {
        for view in &mut first {
            let context_id = redactor.text(view["context_id"].as_str().unwrap_or_default()).into_owned();
            view["context_id"] = context_id.into();
        }
    }
    json_reply(200, &json!({ "count": count, "dropped": dropped, "conversations": first }))
}
