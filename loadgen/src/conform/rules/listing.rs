//! What the skills answer: shapes of the payloads, and what holds of every listing (AAP d, f).

use std::collections::HashSet;

use dealer_sim::protocol::Skill;
use dealer_sim::protocol::json::Doc;
use dealer_sim::protocol::payload::response;
use dealer_sim::protocol::validate::validate;
use serde_json::Value;

use super::super::evidence::{Evidence, Exchange, whole};
use super::super::rule::{Applies, Finding, Rule};
use super::{INVALID, law, must, only, should, silent};

pub(super) const RULES: &[Rule] = &[
    must(
        "information.served",
        "dealer.information answers",
        "AAP d.1",
        law(|seen| serves(seen, Skill::DealerInformation)),
    ),
    must(
        "information.shape",
        "its payload has the shape of the schema: a name, at least one rooftop",
        "AAP d.1",
        law(|seen| shape(seen, Skill::DealerInformation)),
    ),
    must("information.closed-request", "a member that no schema knows is refused", "AAP d", INVALID),
    should("information.rooftop-names", "no two rooftops have the same name", "AAP d.1", law(rooftop_names)),
    must(
        "facets.served",
        "inventory.facets answers",
        "AAP d.3",
        law(|seen| serves(seen, Skill::InventoryFacets)),
    ),
    must(
        "facets.shape",
        "its payload has the shape of the schema",
        "AAP d.3",
        law(|seen| shape(seen, Skill::InventoryFacets)),
    ),
    must("facets.values", "facet values are strings or whole numbers", "AAP d.3", law(facet_values)),
    must("facets.ranges", "no range has a min above its max", "AAP d.3", law(facet_ranges)),
    must("facets.once", "no value stands twice in a facet", "AAP d.3", law(facet_once)),
    must("facets.unknown-filter", "an unknown filter is refused by facets too", "AAP d.2, d.3", INVALID),
    must(
        "search.served",
        "inventory.search answers",
        "AAP d.2",
        law(|seen| serves(seen, Skill::InventorySearch)),
    ),
    must(
        "search.shape",
        "its payload has the shape of the schema: total, vehicles, each with status and an updated_at in form",
        "AAP d.2, d.5",
        law(|seen| shape(seen, Skill::InventorySearch)),
    ),
    must(
        "vehicle.served",
        "inventory.vehicle answers",
        "AAP d.4",
        law(|seen| serves(seen, Skill::InventoryVehicle)),
    ),
    must(
        "vehicle.shape",
        "its payload has the shape of the schema",
        "AAP d.4, d.5",
        law(|seen| shape(seen, Skill::InventoryVehicle)),
    ),
    must("lead.served", "lead.submit answers", "AAP d.7", law(|seen| serves(seen, Skill::LeadSubmit))),
    must(
        "lead.shape",
        "its payload has the shape of the schema",
        "AAP d.7",
        law(|seen| shape(seen, Skill::LeadSubmit)),
    ),
    silent(
        "replies.closed",
        "no member that the schemas do not know stands in a payload that they close",
        "AAP d, j 36",
        law(closed),
    ),
    must(
        "listing.status",
        "only available, intransit and pending vehicles are listed",
        "AAP f",
        law(|seen| {
            each(seen, |vehicle| {
                matches!(
                    vehicle.get("status").and_then(Value::as_str),
                    Some("available" | "intransit" | "pending")
                )
            })
        }),
    ),
    must(
        "listing.updated-at",
        "each listing has updated_at",
        "AAP f",
        law(|seen| each(seen, |vehicle| vehicle.get("updated_at").is_some_and(Value::is_string))),
    ),
    must(
        "listing.updated-at-offset",
        "updated_at is a time with an offset",
        "AAP d.5",
        law(|seen| {
            each(seen, |vehicle| {
                vehicle
                    .get("updated_at")
                    .and_then(Value::as_str)
                    .is_none_or(|text| dealer_sim::protocol::format::date_time(text).is_some())
            })
        }),
    ),
    should(
        "listing.updated-lately",
        "updated_at moves at least each business day (a week is allowed here)",
        "AAP f",
        law(updated_lately),
    ),
    must(
        "listing.condition",
        "a listing's condition is new, used or cpo",
        "AAP d.2",
        law(|seen| {
            each(seen, |vehicle| {
                vehicle
                    .get("condition")
                    .is_none_or(|condition| matches!(condition.as_str(), Some("new" | "used" | "cpo")))
            })
        }),
    ),
    must(
        "listing.identifier",
        "each listing has a vin, a stock number or a vehicle_id",
        "AAP f",
        law(|seen| {
            each(seen, |vehicle| {
                ["vin", "stock", "vehicle_id"].iter().any(|name| {
                    vehicle.get(name).and_then(Value::as_str).is_some_and(|text| !text.is_empty())
                })
            })
        }),
    ),
    must(
        "listing.vin",
        "a VIN has 17 capitals and digits without I, O and Q",
        "AAP d.5",
        law(|seen| {
            each(seen, |vehicle| {
                vehicle.get("vin").is_none_or(|vin| {
                    vin.as_str().is_some_and(|vin| {
                        vin.len() == 17
                            && vin.bytes().all(|b| {
                                (b.is_ascii_digit() || b.is_ascii_uppercase()) && !b"IOQ".contains(&b)
                            })
                    })
                })
            })
        }),
    ),
    must(
        "listing.prices",
        "prices are whole dollars, as numbers",
        "AAP d.5",
        law(|seen| {
            each(seen, |vehicle| {
                ["price", "list_price", "msrp"].iter().all(|name| {
                    vehicle.get(name).is_none_or(|price| whole(price).is_some_and(|price| price >= 0))
                })
            })
        }),
    ),
    only(
        Applies::FROM_1_3,
        must(
            "listing.fees",
            "fees have names, no two the same, and whole amounts",
            "AAP d.6",
            law(|seen| {
                each(seen, |vehicle| {
                    let Some(fees) = vehicle.get("fees").and_then(Value::as_array) else { return true };
                    let mut names = HashSet::new();
                    fees.iter().all(|fee| {
                        let name = fee.get("name").and_then(Value::as_str).unwrap_or_default();
                        !name.trim().is_empty()
                            && names.insert(name)
                            && fee.get("amount").and_then(whole).is_some_and(|amount| amount >= 0)
                    })
                })
            }),
        ),
    ),
    silent(
        "listing.priced",
        "a price, where there is one, is above 0",
        "AAP d.6",
        law(|seen| each(seen, |vehicle| vehicle.get("price").and_then(whole).is_none_or(|price| price > 0))),
    ),
    only(
        Applies::FROM_1_3,
        silent(
            "listing.fees-inside",
            "the fees are no more than the price that holds them",
            "AAP d.6",
            law(|seen| {
                each(seen, |vehicle| {
                    let fees = vehicle.get("fees").and_then(Value::as_array).into_iter().flatten();
                    let sum: i64 = fees.filter_map(|fee| whole(fee.get("amount")?)).sum();
                    vehicle.get("price").and_then(whole).is_none_or(|price| sum <= price)
                })
            }),
        ),
    ),
];

/// So many calls without one that is served are no outage of a moment any more.
const LASTING: usize = 4;

/// No whole reply, or the status of a server or gateway that cannot answer now (RFC 9110, sections 15.5.9 and 15.6; RFC 6585,
/// section 4).
fn is_outage(exchange: &&Exchange) -> bool {
    exchange.answer.is_err() || matches!(exchange.status(), Some(408 | 429 | 500..=599))
}

/// Calls of a skill are answered; one that is refused for a reason of the dealer's own is no breach, a skill of which no call
/// is answered is.
fn serves(seen: &Evidence, skill: Skill) -> Finding {
    let calls: Vec<_> = seen.exchanges.iter().filter(|e| e.is_ordinary && e.skill == Some(skill)).collect();
    if calls.iter().any(|exchange| exchange.is_served()) {
        return Finding::Pass;
    }
    match calls.first() {
        None => seen.unasked(skill.id()),
        Some(first) if calls.iter().all(|exchange| exchange.answer.is_err()) => {
            Finding::not_run(format!("no call got a reply: {}", first.said()))
        }
        Some(first) if calls.iter().any(|exchange| exchange.typed_code().is_some()) => {
            Finding::not_run(format!("every call was refused: {}", first.said()))
        }
        // A dealer may be out of order for a moment; one that is so for every call serves nothing.
        Some(first) if calls.len() < LASTING && calls.iter().all(is_outage) => {
            Finding::not_run(format!("every call met an outage: {}", first.said()))
        }
        Some(first) => Finding::fail(format!("none of {} calls was served; {}", calls.len(), first.quote())),
    }
}

/// Faults of the payloads of a skill, and how many payloads there were.
fn faults(seen: &Evidence, skill: Skill, wanted: impl Fn(&str) -> bool) -> (Vec<String>, usize) {
    let mut doc = Doc::default();
    let (mut breaches, mut count) = (Vec::new(), 0);
    for exchange in seen.exchanges.iter().filter(|exchange| exchange.skill == Some(skill)) {
        let is_ours = exchange.reply_payload().and_then(|payload| payload.get("type")?.as_str())
            == Some(skill.response_type());
        let Some(answer) = exchange.answered().filter(|_| is_ours) else { continue };
        let Ok(root) = doc.parse(&answer.body) else { continue };
        let payload = root
            .get("result")
            .and_then(|result| result.get("message")?.get("parts")?.items().next()?.get("data"));
        let Some(payload) = payload else { continue };
        count += 1;
        for fault in validate(payload, response(skill), &seen.contract.features, "").list {
            if wanted(fault.keyword) && breaches.len() < 5 {
                breaches
                    .push(format!("[{}] {}: {} ({})", exchange.label, fault.at, fault.error, fault.keyword));
            }
        }
    }
    (breaches, count)
}

const CLOSED: &str = "additionalProperties";

fn shape(seen: &Evidence, skill: Skill) -> Finding {
    if !seen.exchanges.iter().any(|exchange| exchange.skill == Some(skill)) {
        return seen.unasked(skill.id());
    }
    let (breaches, count) = faults(seen, skill, |keyword| keyword != CLOSED);
    Finding::of(breaches, count, "no such reply was seen")
}

fn closed(seen: &Evidence) -> Finding {
    let all = Skill::ALL.map(|skill| faults(seen, skill, |keyword| keyword == CLOSED));
    let count = all.iter().map(|(_, count)| count).sum();
    Finding::of(all.into_iter().flat_map(|(breaches, _)| breaches).collect(), count, "no reply was seen")
}

fn each(seen: &Evidence, keeps: impl Fn(&Value) -> bool) -> Finding {
    let (mut breaches, mut count) = (Vec::new(), 0);
    for (exchange, vehicle) in seen.listings() {
        count += 1;
        if !keeps(vehicle) && breaches.len() < 3 {
            let text: String = vehicle.to_string().chars().take(300).collect();
            breaches.push(format!("[{}] {text}", exchange.label));
        }
    }
    Finding::of(breaches, count, "no listing was seen")
}

const WEEK_S: i64 = 7 * 24 * 3600;

fn updated_lately(seen: &Evidence) -> Finding {
    each(seen, |vehicle| {
        let text = vehicle.get("updated_at").and_then(Value::as_str).unwrap_or_default();
        dealer_sim::protocol::format::date_time(text).is_none_or(|(at, _)| seen.now.as_second() - at < WEEK_S)
    })
}

fn rooftop_names(seen: &Evidence) -> Finding {
    let Some(data) = seen.served(Skill::DealerInformation).find_map(|exchange| exchange.data()) else {
        return Finding::not_run("dealer.information was not served");
    };
    let rooftops = data.get("rooftops").and_then(Value::as_array);
    let mut names = HashSet::new();
    let double = rooftops
        .into_iter()
        .flatten()
        .filter_map(|rooftop| rooftop.get("name")?.as_str())
        .find(|name| !names.insert(*name));
    double.map_or(Finding::Pass, |name| Finding::fail(format!("two rooftops are named {name:?}")))
}

fn facets(seen: &Evidence, broken: impl Fn(&str, &Value) -> bool) -> Finding {
    let (mut breaches, mut count) = (Vec::new(), 0);
    for exchange in seen.served(Skill::InventoryFacets) {
        count += 1;
        for (name, value) in exchange.data().and_then(Value::as_object).into_iter().flatten() {
            if broken(name, value) {
                let text: String = value.to_string().chars().take(200).collect();
                breaches.push(format!("[{}] {name}: {text}", exchange.label));
            }
        }
    }
    breaches.truncate(3);
    Finding::of(breaches, count, "inventory.facets was not served")
}

fn facet_values(seen: &Evidence) -> Finding {
    facets(seen, |_, facet| {
        facet.as_array().is_some_and(|terms| {
            terms.iter().any(|term| {
                !term.get("value").is_some_and(|value| value.is_string() || whole(value).is_some())
            })
        })
    })
}

fn facet_ranges(seen: &Evidence) -> Finding {
    facets(seen, |_, facet| {
        let bound = |name: &str| facet.get(name).and_then(Value::as_f64);
        matches!((bound("min"), bound("max")), (Some(min), Some(max)) if min > max)
    })
}

fn facet_once(seen: &Evidence) -> Finding {
    facets(seen, |_, facet| {
        let mut values = HashSet::new();
        facet.as_array().is_some_and(|terms| {
            terms.iter().any(|term| !values.insert(term.get("value").map(Value::to_string)))
        })
    })
}
