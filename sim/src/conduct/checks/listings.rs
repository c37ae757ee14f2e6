//! Listings, and the load of searches.

use std::collections::VecDeque;

use jiff::tz::TimeZone;
use jiff::{Timestamp, ToSpan as _};
use serde_json::Value;

use super::super::facts::{Facts, print_of};
use super::super::judge::{Case, Client, Listing, quote};
use super::super::rules::R;
use crate::inventory::generate::is_business_day;
use crate::protocol::Skill;
use crate::stable::stable_hash;

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
    if !facts.is_told() {
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
        let is_kept = listing.looked_up || !is_stale(updated_at, facts.at);
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

/// Whether a whole business day has gone by since a listing was updated: it is to move at least once in each (section f).
fn is_stale(updated_at: Timestamp, now: Timestamp) -> bool {
    let day = |instant: Timestamp| instant.to_zoned_datetime(TimeZone::UTC).date();
    let (from, to) = (day(updated_at), day(now));
    // Of three days in a row one is a business day.
    let between = from.series(1.day()).skip(1).take(3).take_while(|day| *day < to);
    between.into_iter().any(is_business_day)
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
    // Several customers of a client may page through the same list.
    let thread = stable_hash(14, facts.conversation().unwrap_or_default().as_bytes());
    let (skip, key) = (number("skip").unwrap_or(0), dealer ^ thread ^ print_of(payload, &["pagination"]));
    // (entry, its skip, where the next page begins)
    let last = client.pages.get(&key).copied();
    // Of pages that are fetched at a time any may come first.
    let is_busy = client.in_flight.len() > 1;
    if let Some((seq, before, next)) = last.filter(|(_, before, _)| skip > *before && !is_busy) {
        case.check(R::Paging, skip == next, &[seq], || {
            let what = if skip > next { "leaves a gap" } else { "overlaps" };
            format!("the page at {skip} {what}: the one before it began at {before} and ended at {next}")
        });
    }
    // A page that failed was asked for, and is no gap; one that is fetched again is not the last one.
    let served = facts.replied_number("limit").or(limit.map(|limit| limit.min(CAP)));
    let is_later = skip == 0 || last.is_none_or(|(_, before, _)| skip >= before);
    match served {
        Some(served) if is_later => client.pages.put(key, (facts.seq(), skip, skip + served)),
        None if facts.is_answered() => case.unknown(R::Paging),
        _ => {}
    }
    if !facts.is_answered() {
        return;
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
    fn a_listing_is_stale_once_a_whole_business_day_has_gone_by() {
        let is_stale = |from: &str, to: &str| super::is_stale(from.parse().unwrap(), to.parse().unwrap());
        // The 2nd of January 2026 is a Friday.
        assert!(!is_stale("2026-01-02T15:00:00Z", "2026-01-02T23:00:00Z"));
        assert!(!is_stale("2026-01-02T15:00:00Z", "2026-01-05T23:00:00Z"));
        assert!(is_stale("2026-01-02T15:00:00Z", "2026-01-06T00:00:00Z"));
        assert!(!is_stale("2026-01-06T15:00:00Z", "2026-01-07T23:59:00Z"));
        assert!(is_stale("2026-01-06T15:00:00Z", "2026-01-08T00:00:00Z"));
        assert!(is_stale("2020-01-01T00:00:00Z", "2026-01-01T00:00:00Z"));
        assert!(!is_stale("2026-01-08T00:00:00Z", "2026-01-01T00:00:00Z"));
    }

    #[test]
    fn numbers_are_read_out_of_prose() {
        assert_eq!(super::numbers("$24,990 or 23000.50"), [24_990, 23_000, 50]);
    }
}
