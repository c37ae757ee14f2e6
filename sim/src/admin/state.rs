//! What dealers know and have received: fixtures, leads, conversations.

use serde::Serialize;
use serde_json::{Value, json};

use super::{AdminReply, Scope, json_reply};
use crate::dealer::clock::Now;
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

/// The newest leads, oldest of them first.
pub(super) fn leads(sites: &[Site], limit: usize) -> AdminReply {
    let (mut received, mut dropped) = (0, 0);
    // Never more than twice the limit, however many dealers there are.
    let mut newest: Vec<(u64, Value)> = Vec::new();
    for site in sites {
        let scene = site.scene();
        let desk = scene.dealer.desk();
        received += desk.leads.received;
        dropped += desk.leads.dropped;
        newest.extend(desk.leads.newest(limit).map(|lead| (lead.number, of_dealer(site, &lead.view()))));
        newest.sort_by_key(|&(number, _)| number);
        newest.drain(..newest.len().saturating_sub(limit));
    }
    let leads: Vec<Value> = newest.into_iter().map(|(_, lead)| lead).collect();
    json_reply(200, &json!({ "received": received, "dropped": dropped, "leads": leads }))
}

/// The conversations, by first call.
pub(super) fn conversations(sites: &[Site], limit: usize) -> AdminReply {
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
    json_reply(200, &json!({ "count": count, "dropped": dropped, "conversations": first }))
}
