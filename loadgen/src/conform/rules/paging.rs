//! Pages and order of searches (AAP d.2).

use std::collections::HashSet;

use dealer_sim::protocol::Skill;
use serde_json::Value;

use super::super::evidence::{Evidence, Exchange, told, whole};
use super::super::rule::{Finding, Refusal, Rule};
use super::{INVALID, SERVED, VALIDATION, law, must, refused, should};

pub(super) const RULES: &[Rule] = &[
    must("paging.limit", "a page has no more vehicles than its limit", "AAP d.2", law(limit)),
    must("paging.not-empty", "a page within the total is not empty", "AAP d.2", law(not_empty)),
    must("paging.total", "what fits one page is all of the total", "AAP d.2", law(fits)),
    must("paging.once-on-page", "no vehicle stands twice on a page", "AAP d.2", law(once_on_page)),
    should("paging.no-duplicates", "no vehicle stands on two pages", "AAP d.2", law(no_duplicates)),
    should(
        "paging.no-gaps",
        "the pages together are the one page of the same search",
        "AAP d.2",
        law(no_gaps),
    ),
    should("paging.same-total", "every page has the same total", "AAP d.2", law(same_total)),
    should("paging.echo", "skip and limit are echoed as they took effect", "AAP d.2", law(echo)),
    must(
        "paging.beyond",
        "beyond the total there are no vehicles, and the true total",
        "AAP d.2",
        law(beyond),
    ),
    should(
        "paging.recommended-limit",
        "without a limit a page has at most 50 vehicles",
        "AAP d.2",
        law(default_limit),
    ),
    must(
        "paging.limit-1000",
        "a limit of 1000 is valid, though fewer may be served",
        "AAP d.2, j 18",
        SERVED,
    ),
    must("paging.limit-1", "a limit of 1 is served", "AAP d.2", SERVED),
    must(
        "paging.limit-1001",
        "a limit of 1001 is refused at its place",
        "AAP d.2",
        refused(&[Refusal::At(VALIDATION, &[&["/pagination/limit"]])]),
    ),
    must(
        "paging.limit-0",
        "a limit of 0 is refused at its place",
        "AAP d.2",
        refused(&[Refusal::At(VALIDATION, &[&["/pagination/limit"]])]),
    ),
    must(
        "paging.limit-fraction",
        "a limit of 1.5 is refused at its place",
        "AAP d.2; INTEROP 10",
        refused(&[Refusal::At(VALIDATION, &[&["/pagination/limit"]])]),
    ),
    must(
        "paging.skip-negative",
        "a negative skip is refused at its place",
        "AAP d.2",
        refused(&[Refusal::At(VALIDATION, &[&["/pagination/skip"]])]),
    ),
    must("paging.unknown-member", "an unknown member of pagination is refused", "AAP d.2", INVALID),
    must(
        "sort.year-asc",
        "sorted by year, oldest first",
        "AAP d.2",
        law(|seen| sorted(seen, "sort.year-asc")),
    ),
    must(
        "sort.year-desc",
        "sorted by year, newest first",
        "AAP d.2",
        law(|seen| sorted(seen, "sort.year-desc")),
    ),
    should(
        "sort.price-asc",
        "sorted by price, cheapest first, unpriced last",
        "AAP d.2",
        law(|seen| sorted(seen, "sort.price-asc")),
    ),
    should(
        "sort.price-desc",
        "sorted by price, dearest first, unpriced last",
        "AAP d.2",
        law(|seen| sorted(seen, "sort.price-desc")),
    ),
    must(
        "sort.mileage-asc",
        "sorted by mileage, least first",
        "AAP d.2",
        law(|seen| sorted(seen, "sort.mileage-asc")),
    ),
    must(
        "sort.mileage-desc",
        "sorted by mileage, most first",
        "AAP d.2",
        law(|seen| sorted(seen, "sort.mileage-desc")),
    ),
    must("sort.make-asc", "sorted by make, up", "AAP d.2", law(|seen| sorted(seen, "sort.make-asc"))),
    must("sort.make-desc", "sorted by make, down", "AAP d.2", law(|seen| sorted(seen, "sort.make-desc"))),
    must(
        "sort.keeps-all",
        "an order leaves no vehicle out: the total is that of no order",
        "AAP d.2",
        law(keeps_all),
    ),
    should(
        "sort.total-order",
        "the order is total: asked again, the page is the same",
        "AAP d.2",
        law(total_order),
    ),
    must(
        "sort.unknown-field",
        "an unknown field is refused at its place",
        "AAP d.2",
        refused(&[Refusal::At(VALIDATION, &[&["/sort/field"]])]),
    ),
    must(
        "sort.unknown-order",
        "an unknown order is refused at its place",
        "AAP d.2",
        refused(&[Refusal::At(VALIDATION, &[&["/sort/order"]])]),
    ),
    must(
        "sort.no-order",
        "a sort without order is refused",
        "AAP d.2",
        refused(&[Refusal::At(VALIDATION, &[&["/sort", "/sort/order"]])]),
    ),
    must(
        "sort.no-field",
        "a sort without field is refused",
        "AAP d.2",
        refused(&[Refusal::At(VALIDATION, &[&["/sort", "/sort/field"]])]),
    ),
];

/// What a vehicle is known by: the VIN, else the stock number, else the id.
pub(super) fn key(vehicle: &Value) -> Option<&str> {
    ["vin", "stock", "vehicle_id"].iter().find_map(|name| vehicle.get(name)?.as_str())
}

fn asked(exchange: &Exchange, name: &str) -> Option<i64> {
    whole(exchange.payload.get("pagination")?.get(name)?)
}

fn searches(seen: &Evidence, broken: impl Fn(&Exchange) -> Option<String>) -> Finding {
    let (mut breaches, mut count) = (Vec::new(), 0);
    for exchange in seen.served(Skill::InventorySearch) {
        count += 1;
        if let Some(why) = broken(exchange).filter(|_| breaches.len() < 3) {
            breaches.push(format!("[{}] {why}", exchange.label));
        }
    }
    Finding::of(breaches, count, "no search was served")
}

fn limit(seen: &Evidence) -> Finding {
    searches(seen, |exchange| {
        let count = exchange.vehicles().len() as i64;
        let limits = [asked(exchange, "limit"), exchange.number("limit")];
        let least = limits.into_iter().flatten().min()?;
        (count > least).then(|| format!("{count} vehicles on a page whose limit is {least}"))
    })
}

fn not_empty(seen: &Evidence) -> Finding {
    searches(seen, |exchange| {
        let (total, skip) = (exchange.number("total")?, asked(exchange, "skip").unwrap_or(0));
        (exchange.vehicles().is_empty() && skip < total)
            .then(|| format!("no vehicles at skip {skip} of {total}"))
    })
}

fn fits(seen: &Evidence) -> Finding {
    searches(seen, |exchange| {
        let (total, count) = (exchange.number("total")?, exchange.vehicles().len() as i64);
        let skip = asked(exchange, "skip").unwrap_or(0);
        let effective = exchange.number("limit").or_else(|| asked(exchange, "limit"))?;
        // A page that is not full is the last one.
        let is_wrong =
            if skip == 0 && count < effective { count != total } else { count > 0 && skip + count > total };
        is_wrong.then(|| {
            format!("{count} vehicles at skip {skip} with limit {effective}, and a total of {total}")
        })
    })
}

fn once_on_page(seen: &Evidence) -> Finding {
    searches(seen, |exchange| {
        let mut keys = HashSet::new();
        let double = exchange.vehicles().iter().filter_map(key).find(|key| !keys.insert(*key));
        double.map(|key| format!("{key} stands twice on the page"))
    })
}

fn walk(seen: &Evidence) -> Vec<&Exchange> {
    seen.all("paging.walk ").filter(|exchange| exchange.is_served()).collect()
}

fn no_duplicates(seen: &Evidence) -> Finding {
    let mut keys = HashSet::new();
    let mut breaches = Vec::new();
    let pages = walk(seen);
    for page in &pages {
        // What stands twice on one page has a rule of its own.
        let on_page: HashSet<_> = page.vehicles().iter().filter_map(key).collect();
        breaches.extend(
            on_page
                .into_iter()
                .filter(|key| !keys.insert(*key))
                .map(|key| format!("[{}] {key} stood on an earlier page", page.label)),
        );
    }
    breaches.sort();
    breaches.truncate(3);
    Finding::of(breaches, pages.len().saturating_sub(1), "the stock has no two pages")
}

fn no_gaps(seen: &Evidence) -> Finding {
    let Some(whole) = seen.of("paging.whole").filter(|exchange| exchange.is_served()) else {
        return seen.unasked("paging.whole");
    };
    let pages = walk(seen);
    if pages.len() < 2 || pages.len() != seen.all("paging.walk ").count() {
        return Finding::not_run("not every page was served");
    }
    let walked: Vec<_> = pages.iter().flat_map(|page| page.vehicles().iter().filter_map(key)).collect();
    let listed: Vec<_> = whole.vehicles().iter().filter_map(key).collect();
    let missing: Vec<_> = listed.iter().filter(|key| !walked.contains(key)).take(5).collect();
    if !missing.is_empty() {
        return Finding::fail(format!("no page has {missing:?}, which one page of the same search lists"));
    }
    if walked == listed {
        Finding::Pass
    } else {
        Finding::fail(format!("the pages list {walked:?}, one page lists {listed:?}"))
    }
}

fn same_total(seen: &Evidence) -> Finding {
    let totals: HashSet<_> = walk(seen).iter().filter_map(|page| page.number("total")).collect();
    match totals.len() {
        0 => Finding::not_run("no page was served"),
        1 => Finding::Pass,
        _ => Finding::fail(format!("the pages of one search have the totals {totals:?}")),
    }
}

fn echo(seen: &Evidence) -> Finding {
    searches(seen, |exchange| {
        let (skip, limit) = (exchange.number("skip"), exchange.number("limit"));
        let skip_is_wrong = asked(exchange, "skip").is_some_and(|asked| skip != Some(asked));
        let limit_is_wrong = match (asked(exchange, "limit"), limit) {
            (Some(asked), Some(limit)) => limit > asked,
            (_, limit) => limit.is_none(),
        };
        (skip_is_wrong || limit_is_wrong).then(|| {
            let (skip, limit) = (told(skip), told(limit));
            format!("asked {}, echoed skip {skip} and limit {limit}", exchange.payload["pagination"])
        })
    })
}

fn beyond(seen: &Evidence) -> Finding {
    let Some(exchange) = seen.of("paging.beyond").filter(|exchange| exchange.is_served()) else {
        return seen.unasked("paging.beyond");
    };
    let Some(total) = seen.of("search").and_then(|search| search.number("total")) else {
        return Finding::not_run("how many there are was not told");
    };
    if exchange.vehicles().is_empty() && exchange.number("total") == Some(total) {
        Finding::Pass
    } else {
        Finding::fail(format!("the total was {total}; {}", exchange.quote()))
    }
}

fn default_limit(seen: &Evidence) -> Finding {
    let label = "filters.empty";
    let Some(exchange) = seen.of(label).filter(|exchange| exchange.is_served()) else {
        return seen.unasked(label);
    };
    let count = exchange.vehicles().len();
    if count <= 50 {
        Finding::Pass
    } else {
        Finding::fail(format!("{count} vehicles on a page that was not bounded"))
    }
}

/// What vehicles are ordered by. Whether capitals stand apart from small letters is the dealer's (AAP d.2 is silent).
fn sort_key(vehicle: &Value, field: &str, folds: bool) -> Option<(i64, String)> {
    match vehicle.get(field)? {
        Value::String(text) if folds => Some((0, text.to_lowercase())),
        Value::String(text) => Some((0, text.clone())),
        other => Some((whole(other)?, String::new())),
    }
}

fn key_text(key: &Option<(i64, String)>) -> String {
    match key {
        None => "a vehicle without it".to_owned(),
        Some((number, text)) if text.is_empty() => number.to_string(),
        Some((_, text)) => format!("{text:?}"),
    }
}

fn sorted(seen: &Evidence, label: &str) -> Finding {
    let Some(exchange) = seen.of(label) else { return seen.unasked(label) };
    if !exchange.is_served() {
        return Finding::not_run(format!("the search was not served: {}", exchange.said()));
    }
    let field = exchange.payload.pointer("/sort/field").and_then(Value::as_str).unwrap_or_default();
    let is_up = exchange.payload.pointer("/sort/order").and_then(Value::as_str) == Some("asc");
    let mut wrong = None;
    for folds in [true, false] {
        let keys = exchange.vehicles().iter().map(|vehicle| sort_key(vehicle, field, folds));
        let keys: Vec<_> = keys.collect();
        let pair = keys.windows(2).find(|pair| match (&pair[0], &pair[1]) {
            (Some(one), Some(next)) if is_up => one > next,
            (Some(one), Some(next)) => one < next,
            // Only of prices it is said where those without stand.
            (None, Some(_)) => field == "price",
            _ => false,
        });
        match pair {
            Some(pair) => {
                wrong =
                    Some(format!("[{label}] {} stands before {}", key_text(&pair[0]), key_text(&pair[1])));
            }
            None if keys.len() < 2 => return Finding::not_run("the page has fewer than two vehicles"),
            None => return Finding::Pass,
        }
    }
    wrong.map_or(Finding::Pass, Finding::fail)
}

fn keeps_all(seen: &Evidence) -> Finding {
    let Some(total) = seen.of("search").and_then(|search| search.number("total")) else {
        return Finding::not_run("the search was not served");
    };
    let sorts: Vec<_> = seen.all("sort.").filter(|exchange| exchange.is_served()).collect();
    let wrong = sorts.iter().filter(|exchange| exchange.number("total") != Some(total));
    let told = wrong.take(3).map(|exchange| {
        format!("[{}] has a total of {}, not {total}", exchange.label, told(exchange.number("total")))
    });
    Finding::of(told.collect(), sorts.len(), "no sorted search was served")
}

fn total_order(seen: &Evidence) -> Finding {
    let pages =
        ["sort.year-asc", "sort.again"].map(|label| seen.of(label).filter(|exchange| exchange.is_served()));
    let [Some(one), Some(again)] = pages else { return seen.unasked("sort.again") };
    let [one, again] =
        [one, again].map(|exchange| exchange.vehicles().iter().filter_map(key).collect::<Vec<_>>());
    if one == again { Finding::Pass } else { Finding::fail(format!("first {one:?}, then {again:?}")) }
}
