//! What dealers know and have received: fixtures, leads, conversations, vehicles.

use serde::Serialize;
use serde_json::{Value, json};

use super::{AdminReply, JSON, Scope, json_reply, problem};
use crate::dealer::clock::Now;
use crate::inventory::Lookup;
use crate::world::Site;

/// A value with the dealer it belongs to.
fn of_dealer(site: &Site, what: &impl Serialize) -> Value {
    let mut value = serde_json::to_value(what).unwrap_or_default();
    value["dealer_id"] = site.id().into();
    value
}

/// Values to test with: the first dealer's; where it speaks for all, with where the others' are.
pub(super) fn fixtures(scope: &Scope<'_>, now: Now) -> AdminReply {
    let site = scope.first();
    let mut fixtures = of_dealer(site, &site.scene().dealer.fixtures(now));
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
        newest.extend(desk.leads.newest(limit).map(|lead| (lead.number, of_dealer(site, lead))));
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

/// What is known of a vehicle, by whichever dealer knows it.
pub(super) fn vehicle(sites: &[Site], vin: &str) -> AdminReply {
    for site in sites {
        let scene = site.scene();
        let inventory = scene.dealer.inventory();
        if let Lookup::Listed(row) | Lookup::Sold(row) = inventory.find(Some(vin), None, None) {
            let mut body = Vec::new();
            inventory.detail(row, &mut body);
            body.push(b'\n');
            return AdminReply { status: 200, content_type: JSON, allow: None, etag: None, body };
        }
    }
    problem(404, "no vehicle has this VIN")
}
