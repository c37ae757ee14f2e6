//! Filters of searches and the counts of facets (AAP d.2, d.3).

use serde_json::Value;

use super::super::evidence::{Evidence, Exchange, told, whole};
use super::super::rule::{Applies, Finding, Refusal, Rule};
use super::{INVALID, SERVED, VALIDATION, law, must, only, refused, should, silent};
use dealer_sim::protocol::error::AapCode;

/// Wrong words of a vocabulary may come under either code (AAP j 14).
const CONDITION: &[AapCode] = &[AapCode::InvalidCondition, AapCode::SchemaValidationFailed];

pub(super) const RULES: &[Rule] = &[
    must(
        "filters.make",
        "the filter make holds on every vehicle",
        "AAP d.2",
        law(|seen| holds(seen, "filters.make")),
    ),
    must(
        "filters.model",
        "the filter model holds on every vehicle",
        "AAP d.2",
        law(|seen| holds(seen, "filters.model")),
    ),
    must(
        "filters.trim",
        "the filter trim holds on every vehicle",
        "AAP d.2",
        law(|seen| holds(seen, "filters.trim")),
    ),
    must(
        "filters.condition",
        "the filter condition holds on every vehicle",
        "AAP d.2",
        law(|seen| holds(seen, "filters.condition")),
    ),
    only(
        Applies::FROM_1_2,
        must(
            "filters.vehicle_type",
            "the filter vehicle_type holds on every vehicle; one without is a car",
            "AAP d.2",
            law(|seen| holds(seen, "filters.vehicle_type")),
        ),
    ),
    must(
        "filters.fuel",
        "the filter fuel holds on every vehicle",
        "AAP d.2",
        law(|seen| holds(seen, "filters.fuel")),
    ),
    must(
        "filters.transmission",
        "the filter transmission holds on every vehicle",
        "AAP d.2",
        law(|seen| holds(seen, "filters.transmission")),
    ),
    must(
        "filters.driveline",
        "the filter driveline holds on every vehicle",
        "AAP d.2",
        law(|seen| holds(seen, "filters.driveline")),
    ),
    must(
        "filters.body",
        "the filter body holds on every vehicle",
        "AAP d.2",
        law(|seen| holds(seen, "filters.body")),
    ),
    should(
        "filters.exterior_color",
        "the filter exterior_color holds on every vehicle, by equality",
        "AAP d.2, j 27",
        law(|seen| holds(seen, "filters.exterior_color")),
    ),
    must(
        "filters.rooftops",
        "the filter rooftops holds on every vehicle",
        "AAP d.2",
        law(|seen| holds(seen, "filters.rooftops")),
    ),
    must(
        "filters.vin",
        "the filter vin finds that vehicle alone",
        "AAP d.2",
        law(|seen| holds(seen, "filters.vin")),
    ),
    must(
        "filters.stock",
        "the filter stock finds vehicles of that number alone",
        "AAP d.2",
        law(|seen| holds(seen, "filters.stock")),
    ),
    must(
        "filters.years",
        "year_min and year_max are inclusive and hold on every vehicle",
        "AAP d.2",
        law(|seen| holds(seen, "filters.years")),
    ),
    must(
        "filters.mileage_max",
        "mileage_max holds on every vehicle",
        "AAP d.2",
        law(|seen| holds(seen, "filters.mileage_max")),
    ),
    should(
        "filters.price_max",
        "price_max holds on price, and no unpriced vehicle matches",
        "AAP d.2, d.6",
        law(|seen| holds(seen, "filters.price_max")),
    ),
    should(
        "filters.price_min",
        "price_min holds on price, and no unpriced vehicle matches",
        "AAP d.2, d.6",
        law(|seen| holds(seen, "filters.price_min")),
    ),
    only(
        Applies::V3_0,
        must(
            "filters.status",
            "the filter status holds on every vehicle",
            "AAP d.2 (seed 003)",
            law(|seen| holds(seen, "filters.status")),
        ),
    ),
    only(
        Applies::BEFORE_3_0,
        must(
            "filters.status-unknown",
            "status is no filter before contract 3.0",
            "AAP d.2, j 2",
            refused(&[Refusal::At(VALIDATION, &[&["/filters/status", "/filters"]])]),
        ),
    ),
    must("filters.both", "different filters all apply", "AAP d.2", law(|seen| holds(seen, "filters.both"))),
    must(
        "filters.any-of",
        "values of one filter are alternatives: two makes have the vehicles of both",
        "AAP d.2",
        law(any_of),
    ),
    must(
        "filters.found",
        "a vehicle that was listed is found by its own make, and by its vin",
        "AAP d.2",
        law(found),
    ),
    must("filters.none", "contradicting bounds match nothing", "AAP d.2", law(none)),
    must("filters.query", "a query of 200 characters is a search", "AAP d.2", SERVED),
    must(
        "filters.query-long",
        "a query of 201 characters is refused",
        "AAP d.2",
        refused(&[Refusal::At(VALIDATION, &[&["/filters/query"]])]),
    ),
    must("filters.unicode", "a query in any script is a search", "AAP d.2", SERVED),
    silent("filters.empty-list", "an empty list is no constraint", "AAP j 27", SERVED),
    must("filters.empty", "empty filters are none", "AAP d.2", SERVED),
    must(
        "filters.unknown-year",
        "an unknown filter (year) is refused at its place",
        "AAP d.2",
        refused(&[Refusal::At(VALIDATION, &[&["/filters/year", "/filters"]])]),
    ),
    must(
        "filters.unknown-features",
        "an unknown filter (features) is refused at its place",
        "AAP d.2, j 24",
        refused(&[Refusal::At(VALIDATION, &[&["/filters/features", "/filters"]])]),
    ),
    must(
        "filters.year-text",
        "a text as year_min is refused at its place",
        "AAP d.2, e",
        refused(&[Refusal::At(VALIDATION, &[&["/filters/year_min"]])]),
    ),
    must(
        "filters.year-range",
        "a year out of range is refused at its place",
        "AAP d.2",
        refused(&[Refusal::At(VALIDATION, &[&["/filters/year_min"]])]),
    ),
    must(
        "filters.price-negative",
        "a negative price is refused at its place",
        "AAP d.2",
        refused(&[Refusal::At(VALIDATION, &[&["/filters/price_max"]])]),
    ),
    must(
        "filters.make-text",
        "a text in place of a list is refused at its place",
        "AAP d.2",
        refused(&[Refusal::At(VALIDATION, &[&["/filters/make"]])]),
    ),
    must(
        "filters.null",
        "null is a value, and no way to leave a filter out",
        "AAP d",
        refused(&[Refusal::At(VALIDATION, &[&["/filters/make"]])]),
    ),
    must(
        "filters.condition-word",
        "a condition of wear is refused at its place",
        "AAP d.2, e",
        refused(&[Refusal::At(CONDITION, &[&["/filters/condition/0"]])]),
    ),
    must(
        "filters.vin-form",
        "a VIN that is none is refused at its place",
        "AAP d.2",
        refused(&[Refusal::At(VALIDATION, &[&["/filters/vin", "/filters/vin/0"]])]),
    ),
    must(
        "filters.all-faults",
        "all faults are listed at once: three here",
        "AAP e (seed 000)",
        refused(&[Refusal::At(
            VALIDATION,
            &[&["/filters/year_min"], &["/filters/price_max"], &["/pagination/limit"]],
        )]),
    ),
    must("filters.double", "20.0 is the whole number 20", "AAP d; INTEROP 10", SERVED),
    must(
        "search.unknown-member",
        "a member that the request does not know is refused",
        "AAP d, j 36",
        INVALID,
    ),
    must("search.anonymous", "an anonymous search is served", "AAP d.2", SERVED),
    must(
        "facets.total",
        "the conditions' counts are no more than the search's total",
        "AAP d.3",
        law(facet_total),
    ),
    must(
        "facets.makes",
        "each make looked at counts what a search for it finds",
        "AAP d.3",
        law(|seen| counted(seen, "facets.makes")),
    ),
    must(
        "facets.conditions",
        "each condition counts what a search for it finds",
        "AAP d.3",
        law(|seen| counted(seen, "facets.conditions")),
    ),
    must(
        "facets.years",
        "each year looked at counts what a search for it finds",
        "AAP d.3",
        law(|seen| counted(seen, "facets.years")),
    ),
    must("facets.filtered", "facets under a filter count what matches it alone", "AAP d.3", law(filtered)),
    must("facets.year-range", "year_range holds every vehicle that was listed", "AAP d.3", law(year_range)),
];

fn texts(value: &Value) -> Vec<String> {
    match value {
        Value::String(text) => vec![text.to_lowercase()],
        Value::Array(items) => items.iter().filter_map(|item| Some(item.as_str()?.to_lowercase())).collect(),
        _ => Vec::new(),
    }
}

/// Whether a vehicle matches one filter (AAP d.2). A filter whose meaning is the dealer's own holds on anything.
fn matches(vehicle: &Value, name: &str, wanted: &Value) -> bool {
    let number = |member: &str| vehicle.get(member).and_then(whole);
    let limit = whole(wanted);
    let at_least = |member: &str| number(member).zip(limit).is_some_and(|(number, limit)| number >= limit);
    let at_most = |member: &str| number(member).zip(limit).is_some_and(|(number, limit)| number <= limit);
    match name {
        "year_min" => at_least("year"),
        "year_max" => at_most("year"),
        "price_min" => at_least("price"),
        "price_max" => at_most("price"),
        "mileage_max" => at_most("mileage"),
        "query" => true,
        _ => {
            let member = if name == "rooftops" { "rooftop" } else { name };
            let absent = if name == "vehicle_type" { "car" } else { "" };
            let has = vehicle.get(member).and_then(Value::as_str).unwrap_or(absent).to_lowercase();
            texts(wanted).contains(&has)
        }
    }
}

fn filters(exchange: &Exchange) -> impl Iterator<Item = (&String, &Value)> {
    exchange.payload.get("filters").and_then(Value::as_object).into_iter().flatten()
}

/// Every vehicle of the reply matches every filter of its request.
fn holds(seen: &Evidence, label: &str) -> Finding {
    let Some(exchange) = seen.of(label) else { return seen.unasked(label) };
    if !exchange.is_served() {
        return Finding::not_run(format!("the search was not served: {}", exchange.said()));
    }
    let mut breaches = Vec::new();
    for vehicle in exchange.vehicles() {
        for (name, wanted) in filters(exchange).filter(|(name, wanted)| !matches(vehicle, name, wanted)) {
            let text: String = vehicle.to_string().chars().take(300).collect();
            breaches.push(format!("[{label}] {name} {wanted} does not hold on {text}"));
        }
    }
    breaches.truncate(3);
    if breaches.is_empty() && exchange.vehicles().is_empty() {
        // The value was taken from a vehicle that was listed.
        return Finding::fail(format!("nothing is found by what was listed; {}", exchange.quote()));
    }
    Finding::of(breaches, 1, "")
}

fn total(seen: &Evidence, label: &str) -> Option<i64> {
    seen.of(label)?.number("total")
}

fn any_of(seen: &Evidence) -> Finding {
    let labels = ["filters.make", "filters.make-other", "filters.any-of"];
    let [Some(one), Some(other), Some(both)] = labels.map(|label| total(seen, label)) else {
        return Finding::not_run("the stock has no two makes, or a search was not served");
    };
    if one + other == both {
        Finding::Pass
    } else {
        Finding::fail(format!("one make has {one} vehicles, another {other}, and both together {both}"))
    }
}

fn found(seen: &Evidence) -> Finding {
    let mut count = 0;
    let mut breaches = Vec::new();
    for label in ["filters.vin"] {
        let Some(exchange) = seen.of(label).filter(|exchange| exchange.is_served()) else { continue };
        count += 1;
        if exchange.number("total") != Some(1) || exchange.vehicles().len() != 1 {
            breaches.push(format!("one VIN has one vehicle; {}", exchange.quote()));
        }
    }
    Finding::of(breaches, count, "the search was not served")
}

fn none(seen: &Evidence) -> Finding {
    let Some(exchange) = seen.of("filters.none") else { return seen.unasked("filters.none") };
    if !exchange.is_served() {
        return Finding::not_run(format!("the search was not served: {}", exchange.said()));
    }
    if exchange.vehicles().is_empty() && exchange.number("total") == Some(0) {
        Finding::Pass
    } else {
        Finding::fail(exchange.quote())
    }
}

fn facet<'a>(seen: &'a Evidence, label: &str, name: &str) -> Option<&'a Vec<Value>> {
    seen.of(label)?.data()?.get(name)?.as_array()
}

fn counts(terms: &[Value]) -> i64 {
    terms.iter().filter_map(|term| whole(term.get("count")?)).sum()
}

fn facet_total(seen: &Evidence) -> Finding {
    let Some((terms, total)) = facet(seen, "facets", "conditions").zip(total(seen, "search")) else {
        return Finding::not_run("facets or search were not served");
    };
    let sum = counts(terms);
    if sum <= total {
        Finding::Pass
    } else {
        Finding::fail(format!("the conditions count {sum}, a search finds {total}"))
    }
}

/// Searches labelled `<rule> <value>` against the facet's counts.
fn counted(seen: &Evidence, rule: &'static str) -> Finding {
    let (mut breaches, mut looked_at) = (Vec::new(), 0);
    let name = rule.trim_start_matches("facets.");
    let Some(terms) = facet(seen, "facets", name) else { return Finding::not_run("there is no such facet") };
    for term in terms {
        let Some(value) = term.get("value") else { continue };
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let Some(total) = total(seen, &format!("{rule} {text}")) else { continue };
        looked_at += 1;
        let count = term.get("count").and_then(whole);
        if count != Some(total) {
            breaches.push(format!("{name} {text:?} counts {}, a search for it finds {total}", told(count)));
        }
    }
    Finding::of(breaches, looked_at, "no search for a value of the facet was served")
}

fn filtered(seen: &Evidence) -> Finding {
    let Some((terms, total)) = facet(seen, "facets.filtered", "makes").zip(total(seen, "filters.make"))
    else {
        return Finding::not_run("facets under a filter were not served");
    };
    let sum = counts(terms);
    if terms.len() == 1 && sum == total {
        Finding::Pass
    } else {
        Finding::fail(format!(
            "under one make the facet has {} makes that count {sum}; a search finds {total}",
            terms.len()
        ))
    }
}

fn year_range(seen: &Evidence) -> Finding {
    let range = seen.of("facets").and_then(|exchange| exchange.data()?.get("year_range"));
    let bound = |name: &str| range.and_then(|range| whole(range.get(name)?));
    let Some((min, max)) = bound("min").zip(bound("max")) else {
        return Finding::not_run("there is no year_range");
    };
    let years =
        seen.listings().filter_map(|(exchange, vehicle)| Some((exchange, whole(vehicle.get("year")?)?)));
    let mut outside = years.filter(|(_, year)| !(min..=max).contains(year));
    outside.next().map_or(Finding::Pass, |(exchange, year)| {
        Finding::fail(format!("[{}] lists a vehicle of {year}; year_range is {min} to {max}", exchange.label))
    })
}
