//! One vehicle in full (AAP d.4).

use serde_json::Value;

use super::super::evidence::{Evidence, told, whole};
use super::super::rule::{Finding, Refusal, Rule};
use super::{INVALID, VALIDATION, law, must, refused, should, silent};
use dealer_sim::protocol::error::AapCode;

const NOT_FOUND: &[Refusal] = &[Refusal::Aap(&[AapCode::VehicleNotFound])];

pub(super) const RULES: &[Rule] = &[
    must(
        "vehicle.by-vin",
        "by its VIN comes the vehicle of that VIN",
        "AAP d.4",
        law(|seen| same(seen, "vehicle.by-vin")),
    ),
    must(
        "vehicle.by-stock",
        "by its stock number comes the vehicle of that number",
        "AAP d.4",
        law(|seen| same(seen, "vehicle.by-stock")),
    ),
    must(
        "vehicle.by-id",
        "by its id comes the vehicle of that id",
        "AAP d.4",
        law(|seen| same(seen, "vehicle.by-id")),
    ),
    silent(
        "vehicle.vin-first",
        "of several identifiers that disagree the VIN counts",
        "AAP d.4",
        law(vin_first),
    ),
    should(
        "vehicle.as-listed",
        "the detail has make, model and year of the listing",
        "AAP d.4",
        law(as_listed),
    ),
    silent(
        "vehicle.price-as-listed",
        "the detail has the price of the listing",
        "AAP d.6",
        law(price_as_listed),
    ),
    must("vehicle.unknown-vin", "a VIN of no vehicle is VEHICLE_NOT_FOUND", "AAP d.4, e", refused(NOT_FOUND)),
    must(
        "vehicle.unknown-stock",
        "a stock number of no vehicle is VEHICLE_NOT_FOUND",
        "AAP d.4, e",
        refused(NOT_FOUND),
    ),
    must("vehicle.unknown-id", "an id of no vehicle is VEHICLE_NOT_FOUND", "AAP d.4, e", refused(NOT_FOUND)),
    must("vehicle.no-identifier", "a request without identifier is refused", "AAP d.4", INVALID),
    must(
        "vehicle.vin-form",
        "a VIN that is none is refused at its place",
        "AAP d.4",
        refused(&[Refusal::At(VALIDATION, &[&["/vin"]])]),
    ),
    must(
        "vehicle.stock-number",
        "a stock number that is no string is refused at its place",
        "AAP d.4",
        refused(&[Refusal::At(VALIDATION, &[&["/stock"]])]),
    ),
    must("vehicle.unknown-member", "a member that the request does not know is refused", "AAP d", INVALID),
];

fn same(seen: &Evidence, label: &str) -> Finding {
    let Some(exchange) = seen.of(label) else { return seen.unasked(label) };
    let Some(vehicle) = exchange.data() else {
        return match exchange.typed_code() {
            // It may have been sold in between.
            Some(code) if code != "VEHICLE_NOT_FOUND" => {
                Finding::not_run(format!("the dealer answered {code}"))
            }
            Some(_) => Finding::fail(format!("the vehicle was listed; {}", exchange.quote())),
            None => Finding::not_run(format!("the call was not served: {}", exchange.said())),
        };
    };
    let asked =
        ["vin", "stock", "vehicle_id"].iter().find_map(|name| Some((*name, exchange.payload.get(*name)?)));
    match asked {
        Some((name, wanted)) if vehicle.get(name) == Some(wanted) => Finding::Pass,
        Some((name, wanted)) => Finding::fail(format!("asked for {name} {wanted}; {}", exchange.quote())),
        None => seen.unasked(label),
    }
}

fn vin_first(seen: &Evidence) -> Finding {
    let label = "vehicle.vin-first";
    let Some(exchange) = seen.of(label) else { return seen.unasked(label) };
    match exchange.data() {
        None => Finding::not_run(format!("the call was not served: {}", exchange.said())),
        Some(vehicle) if vehicle.get("vin") == exchange.payload.get("vin") => Finding::Pass,
        Some(_) => Finding::fail(exchange.quote()),
    }
}

fn pair(seen: &Evidence) -> Option<(&Value, &Value)> {
    let detail = seen.of("vehicle.by-vin")?.data()?;
    let listed =
        seen.of("search")?.vehicles().iter().find(|vehicle| vehicle.get("vin") == detail.get("vin"))?;
    Some((listed, detail))
}

fn as_listed(seen: &Evidence) -> Finding {
    let Some((listed, detail)) = pair(seen) else { return Finding::not_run("no vehicle was seen both ways") };
    let differing: Vec<_> =
        ["make", "model", "year"].iter().filter(|name| listed.get(**name) != detail.get(**name)).collect();
    if differing.is_empty() {
        Finding::Pass
    } else {
        Finding::fail(format!("{differing:?} differ: {listed} and {detail}"))
    }
}

fn price_as_listed(seen: &Evidence) -> Finding {
    let Some((listed, detail)) = pair(seen) else { return Finding::not_run("no vehicle was seen both ways") };
    let price = |vehicle: &Value| vehicle.get("price").and_then(whole);
    let (listed, detail) = (price(listed), price(detail));
    if listed == detail {
        Finding::Pass
    } else {
        Finding::fail(format!("listed at {}, in detail {}", told(listed), told(detail)))
    }
}
