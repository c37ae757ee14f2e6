//! Listings, and the load of searches.

use std::collections::VecDeque;

use jiff::SignedDuration;
use serde_json::Value;

use super::super::facts::{Facts, print_of};
use super::super::judge::{Case, Client, Listing, quote};
use super::super::rules::R;
use crate::protocol::Skill;
use crate::stable::stable_hash;

/// A listing is to move once a business day (section f).
const FRESH: SignedDuration = SignedDuration::from_hours(24);
/// The same search this often in this time is a stampede.
const STAMPEDE: usize = 5;
const STAMPEDE_NS: u64 = 10 * 1_000_000_000;
/// What a page holds at most, as the cards of the contract say.
const CAP: u64 = 100;

/// The ways in which a vehicle is named.
pub(super) fn identities(vehicle: &Value) -> Vec<String> {
    let named = |name: &str| vehicle[name].as_str().map(|value| format!("{name} {value}"));
    ["vin", "stock", "vehicle_id"].into_iter().filter_map(named).collect()
}

pub(super) fn judge(case: &mut Case<'_>, client: &mut Client) {
    let facts = case.facts;
    let Some(payload) = facts.payload() else { return };
    match facts.skill() {
        Some(Skill::InventorySearch) => {
            search(case, client, payload);
            remember(facts, client);
        }
        Some(Skill::InventoryVehicle) => remember(facts, client),
        Some(Skill::LeadSubmit) => lead(case, client, payload),
        _ => {}
    }
}

fn remember(facts: &Facts<'_>, client: &mut Client) {
    if !facts.is_answered() {
        return;
    }
    let (listed, is_whole) = facts.listed();
    if !is_whole && let Some(relation) = client.relations.get_mut(&facts.entry.dealer) {
        relation.unseen = true;
    }
    for vehicle in &listed {
        let number = |name: &str| vehicle[name].as_u64();
        let others = ["list_price", "msrp"].into_iter().filter_map(|name| Some((name, number(name)?)));
        let listing = Listing {
            seq: facts.seq(),
            status: vehicle["status"].as_str().unwrap_or_default().to_owned(),
            updated_at: vehicle["updated_at"].as_str().and_then(|text| text.parse().ok()),
            price: number("price"),
            others: others.filter(|(_, value)| Some(*value) != number("price")).collect(),
            looked_up: facts.skill() == Some(Skill::InventoryVehicle),
        };
        for name in identities(vehicle) {
            client.listings.put(format!("{} {name}", facts.entry.dealer), listing.clone());
        }
    }
}

fn lead(case: &mut Case<'_>, client: &Client, payload: &Value) {
    let facts = case.facts;
    let vehicle = &payload["vehicle_of_interest"];
    if !vehicle.is_object() {
        return;
    }
    let names = identities(vehicle);
    case.check(R::Identified, !names.is_empty(), &[], || {
        "vehicle_of_interest has no vin, stock or vehicle_id".to_owned()
    });
    let dealer = &facts.entry.dealer;
    let Some(listing) = names.iter().find_map(|name| client.listings.get(&format!("{dealer} {name}"))) else {
        // It may have been in what the journal did not keep of a reply.
        if client.relations.get(dealer).is_some_and(|relation| relation.unseen) {
            [R::UnknownStatus, R::StaleRechecked, R::PriceUsed]
                .into_iter()
                .for_each(|rule| case.unknown(rule));
        }
        return;
    };
    let is_known = matches!(listing.status.as_str(), "available" | "intransit" | "pending");
    case.check(R::UnknownStatus, is_known, &[listing.seq], || {
        format!("the vehicle had been listed with the status {}", quote(&listing.status))
    });
    if let Some(updated_at) = listing.updated_at {
        let is_kept = listing.looked_up || facts.at.duration_since(updated_at) <= FRESH;
        case.check_absent(R::StaleRechecked, is_kept, &[listing.seq], || {
            format!(
                "the listing was of {updated_at}, the lead came at {}, and nothing was looked up between",
                facts.at
            )
        });
    }
    let Some(price) = listing.price else { return };
    let said = numbers(payload["message"].as_str().unwrap_or_default());
    let other = listing.others.iter().find(|(_, value)| said.contains(value));
    if said.contains(&price) || other.is_some() {
        case.check(R::PriceUsed, said.contains(&price), &[listing.seq], || {
            let (name, value) = other.copied().unwrap_or_default();
            format!("the lead's message speaks of {value}, which is {name}; price is {price}")
        });
    }
}

/// The whole numbers in a text, with or without commas between thousands.
fn numbers(text: &str) -> Vec<u64> {
    let plain = text.replace(',', "");
    plain.split(|c: char| !c.is_ascii_digit()).filter_map(|digits| digits.parse().ok()).collect()
}

fn search(case: &mut Case<'_>, client: &mut Client, payload: &Value) {
    let facts = case.facts;
    case.check(R::Anonymous, payload["privacy"]["anonymous"] == true, &[], || {
        "the search does not say privacy.anonymous: true".to_owned()
    });
    // SDKs that know numbers as doubles send 20.0.
    let number = |name: &str| payload["pagination"][name].as_f64().map(|number| number as u64);
    let limit = number("limit");
    case.check(R::PageLimit, limit.is_none_or(|limit| limit <= CAP), &[], || {
        format!("{} vehicles were asked for at once", limit.unwrap_or_default())
    });
    let dealer = stable_hash(12, facts.entry.dealer.as_bytes());
    let (skip, key) = (number("skip").unwrap_or(0), dealer ^ print_of(payload, &["pagination"]));
    // (entry, its skip, where the next page begins)
    if let Some((seq, before, next)) = client.pages.get(&key).copied().filter(|(_, before, _)| skip > *before)
    {
        case.check(R::Paging, skip == next, &[seq], || {
            let what = if skip > next { "leaves a gap" } else { "overlaps" };
            format!("the page at {skip} {what}: the one before it began at {before} and ended at {next}")
        });
    }
    if !facts.is_answered() {
        return;
    }
    match facts.replied_number("limit").or(limit.map(|limit| limit.min(CAP))) {
        Some(limit) => client.pages.put(key, (facts.seq(), skip, skip + limit)),
        None => case.unknown(R::Paging),
    }
    let key = dealer ^ print_of(payload, &[]);
    let mut times: VecDeque<(u64, u64)> = client.searches.get(&key).cloned().unwrap_or_default();
    times.retain(|(at, _)| facts.arrived.saturating_sub(*at) < STAMPEDE_NS);
    times.push_back((facts.arrived, facts.seq()));
    let is_kept = times.len() < STAMPEDE;
    let earlier: Vec<_> = times.iter().take(times.len() - 1).map(|(_, seq)| *seq).collect();
    case.check(R::Stampede, is_kept, &earlier, || {
        format!("the same search was made {STAMPEDE} times within {} s", STAMPEDE_NS / 1_000_000_000)
    });
    if !is_kept {
        times.clear();
    }
    client.searches.put(key, times);
}

#[cfg(test)]
mod tests {
    #[test]
    fn numbers_are_read_out_of_prose() {
        assert_eq!(super::numbers("$24,990 or 23000.50"), [24_990, 23_000, 50]);
    }
}
