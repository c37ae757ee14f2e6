//! What is asked, in which order: ordinary calls first, since the probes need vehicles that they find.

use dealer_sim::protocol::Skill;
use serde_json::{Value, json};

use super::caller::Caller;
use super::evidence::whole;
use super::request::{Names, Probe};

/// Pages walked at most.
const PAGES: usize = 8;
/// Vehicles on a page of the walk.
const PAGE: usize = 3;
/// Values of a facet that are searched for.
const VALUES: usize = 4;
/// Skills of the card, beyond the five, that are called.
const OTHER_SKILLS: usize = 10;

/// Asks everything.
pub(super) async fn survey(
    caller: &mut Caller<'_>,
    probes: &[(&'static str, Probe)],
    skills: &[String],
    sends_leads: bool,
) {
    let offers = |skill: Skill| skills.is_empty() || skills.iter().any(|id| id == skill.id());
    if offers(Skill::DealerInformation) {
        caller.call("information", Skill::DealerInformation, json!({}), None).await;
        let context =
            caller.last().and_then(|last| Some(last.message()?.get("contextId")?.as_str()?.to_owned()));
        caller.call("information.again", Skill::DealerInformation, json!({}), context.as_deref()).await;
    }
    let mut vehicle = Value::Null;
    if offers(Skill::InventorySearch) {
        vehicle = searches(caller).await;
    }
    if offers(Skill::InventoryFacets) {
        facets(caller, &vehicle, offers(Skill::InventorySearch)).await;
    }
    if offers(Skill::InventoryVehicle) {
        details(caller, &vehicle).await;
    }
    let others = skills.iter().filter(|id| Skill::from_id(id).is_none()).take(OTHER_SKILLS);
    for id in others.filter(|id| id.bytes().all(|b| b.is_ascii_lowercase() || b == b'_' || b == b'.')) {
        caller.call_other(&format!("card.skill {id}"), id).await;
    }
    if offers(Skill::LeadSubmit) && sends_leads {
        leads(caller, &vehicle).await;
    }
    let names = names(caller, &vehicle);
    for (rule, probe) in probes {
        let skill = probe.skill();
        // Every request that names the skill of leads may make one, if the dealer does not refuse what it should.
        let is_possible = !probe.needs_vehicle() || vehicle.get("vin").is_some();
        if is_possible && offers(skill) && (skill != Skill::LeadSubmit || sends_leads) {
            caller.probe(rule, probe, &names).await;
        }
    }
}

fn names(caller: &Caller<'_>, vehicle: &Value) -> Names {
    let uri = caller.contract().extension_uri;
    // A version that is not served, and that nobody else serves at this place.
    let other = "https://autoagentprotocol.org/extensions/aap/v0.9".to_owned();
    let vin = vehicle.get("vin").and_then(Value::as_str).unwrap_or("0ABCDEFGH12345678");
    Names::from([
        ("uri", uri.to_owned()),
        ("upper_uri", uri.to_uppercase()),
        ("other_uri", other),
        ("vin", vin.to_owned()),
        ("tag", caller.tag().to_owned()),
        ("context", format!("ctx-of-the-client-{}", caller.tag())),
    ])
}

async fn search(caller: &mut Caller<'_>, label: &str, payload: Value) {
    caller.call(label, Skill::InventorySearch, payload, None).await;
}

/// The searches; gives a vehicle that was listed.
async fn searches(caller: &mut Caller<'_>) -> Value {
    search(caller, "search", json!({ "pagination": { "skip": 0, "limit": 20 } })).await;
    let (vehicles, total, context) = match caller.last() {
        Some(last) => (
            last.vehicles().to_vec(),
            last.number("total").unwrap_or(0),
            last.message().and_then(|message| Some(message.get("contextId")?.as_str()?.to_owned())),
        ),
        None => (Vec::new(), 0, None),
    };
    // The conversation goes on.
    let page = json!({ "pagination": { "skip": 0, "limit": 5 } });
    caller.call("search.again", Skill::InventorySearch, page, context.as_deref()).await;
    let beyond = total.saturating_add(10);
    search(caller, "paging.beyond", json!({ "pagination": { "skip": beyond, "limit": 5 } })).await;
    for field in ["year", "price", "mileage", "make"] {
        for order in ["asc", "desc"] {
            let payload =
                json!({ "sort": { "field": field, "order": order }, "pagination": { "limit": 40 } });
            search(caller, &format!("sort.{field}-{order}"), payload).await;
        }
    }
    let again = json!({ "sort": { "field": "year", "order": "asc" }, "pagination": { "limit": 40 } });
    search(caller, "sort.again", again).await;
    let whole_vehicle =
        |vehicle: &&Value| ["vin", "make", "model"].iter().all(|name| vehicle[*name].is_string());
    let Some(vehicle) = vehicles.iter().find(whole_vehicle).or(vehicles.first()) else { return Value::Null };
    caller.note_updates(&vehicles);
    filters(caller, vehicle, &vehicles).await;
    walk(caller).await;
    vehicle.clone()
}

/// Each filter by a value of a vehicle that has one.
async fn filters(caller: &mut Caller<'_>, vehicle: &Value, vehicles: &[Value]) {
    let text = |name: &str| {
        let all = std::iter::once(vehicle).chain(vehicles);
        all.filter_map(|vehicle| vehicle.get(name)?.as_str()).next().map(str::to_owned)
    };
    let number = |name: &str| vehicles.iter().filter_map(|vehicle| whole(vehicle.get(name)?)).next();
    let mut asked: Vec<(String, Value)> = Vec::new();
    for (name, member) in [
        ("make", "make"),
        ("model", "model"),
        ("trim", "trim"),
        ("condition", "condition"),
        ("vehicle_type", "vehicle_type"),
        ("fuel", "fuel"),
        ("transmission", "transmission"),
        ("driveline", "driveline"),
        ("body", "body"),
        ("exterior_color", "exterior_color"),
        ("rooftops", "rooftop"),
    ] {
        let is_known = name != "vehicle_type" || caller.contract().features.vehicle_classes;
        if let Some(value) = text(member).filter(|_| is_known) {
            asked.push((format!("filters.{name}"), json!({ name: [value] })));
        }
    }
    if caller.contract().features.status_filter
        && let Some(status) = text("status")
    {
        asked.push(("filters.status".to_owned(), json!({ "status": [status] })));
    }
    for name in ["vin", "stock"] {
        if let Some(value) = text(name) {
            asked.push((format!("filters.{name}"), json!({ name: value })));
        }
    }
    if let Some(year) = number("year") {
        asked.push(("filters.years".to_owned(), json!({ "year_min": year, "year_max": year })));
    }
    for (name, member) in [("mileage_max", "mileage"), ("price_max", "price"), ("price_min", "price")] {
        if let Some(value) = number(member) {
            asked.push((format!("filters.{name}"), json!({ name: value })));
        }
    }
    if let (Some(make), Some(year)) = (vehicle.get("make"), vehicle.get("year")) {
        asked.push(("filters.both".to_owned(), json!({ "make": [make], "year_max": year })));
    }
    let other =
        vehicles.iter().filter_map(|other| other.get("make")).find(|make| Some(*make) != vehicle.get("make"));
    if let (Some(make), Some(other)) = (vehicle.get("make"), other) {
        asked.push(("filters.make-other".to_owned(), json!({ "make": [other] })));
        asked.push(("filters.any-of".to_owned(), json!({ "make": [make, other] })));
    }
    for (label, filters) in asked {
        search(caller, &label, json!({ "filters": filters, "pagination": { "limit": 50 } })).await;
    }
}

/// Pages of one search, and the same search on one page.
async fn walk(caller: &mut Caller<'_>) {
    let sort = json!({ "field": "mileage", "order": "asc" });
    let span = PAGES * PAGE;
    let payload = json!({ "sort": sort, "pagination": { "skip": 0, "limit": span } });
    search(caller, "paging.whole", payload).await;
    let listed = caller.last().map_or(0, |last| last.vehicles().len());
    for page in 0..listed.div_ceil(PAGE) {
        let skip = page * PAGE;
        // The last page ends where the one page does.
        let limit = PAGE.min(listed - skip);
        let payload = json!({ "sort": sort, "pagination": { "skip": skip, "limit": limit } });
        search(caller, &format!("paging.walk {page}"), payload).await;
    }
}

async fn facets(caller: &mut Caller<'_>, vehicle: &Value, with_searches: bool) {
    caller.call("facets", Skill::InventoryFacets, json!({}), None).await;
    let data = caller.last().and_then(|last| last.data().cloned()).unwrap_or_default();
    if let Some(make) = vehicle.get("make") {
        let payload = json!({ "filters": { "make": [make] } });
        caller.call("facets.filtered", Skill::InventoryFacets, payload, None).await;
    }
    if !with_searches {
        return;
    }
    for name in ["makes", "conditions", "years"] {
        let terms = data.get(name).and_then(Value::as_array).into_iter().flatten();
        for value in terms.filter_map(|term| term.get("value")).take(VALUES) {
            let filters = match (name, whole(value).or_else(|| value.as_str()?.parse().ok())) {
                ("years", Some(year)) => json!({ "year_min": year, "year_max": year }),
                ("makes", _) => json!({ "make": [value] }),
                ("conditions", _) => json!({ "condition": [value] }),
                _ => continue,
            };
            let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
            let payload = json!({ "filters": filters, "pagination": { "limit": 1 } });
            search(caller, &format!("facets.{name} {text}"), payload).await;
        }
    }
}

async fn details(caller: &mut Caller<'_>, vehicle: &Value) {
    for (label, name) in [("by-vin", "vin"), ("by-stock", "stock"), ("by-id", "vehicle_id")] {
        if let Some(value) = vehicle.get(name).filter(|value| value.is_string()) {
            let payload = json!({ name: value });
            caller.call(&format!("vehicle.{label}"), Skill::InventoryVehicle, payload, None).await;
        }
    }
    if let Some(vin) = vehicle.get("vin") {
        let payload = json!({ "vin": vin, "stock": "no-such-stock" });
        caller.call("vehicle.vin-first", Skill::InventoryVehicle, payload, None).await;
    }
}

async fn leads(caller: &mut Caller<'_>, vehicle: &Value) {
    let key = format!("conform-{}", caller.tag());
    let with_key = |mut lead: Value, key: &str| {
        lead["idempotency_key"] = json!(key);
        lead
    };
    let first = with_key(caller.lead("first"), &key);
    let mut changed = first.clone();
    changed["message"] = json!("This is a test of conformance, in other words. Please ignore it.");
    let other = with_key(caller.lead("other"), &format!("{key}-other"));
    let repeated = caller.lead("repeat");
    let mut visit = caller.lead("visit");
    visit["appointment"] = json!({ "appointment_type": "test_drive" });
    if let Some(vin) = vehicle.get("vin") {
        visit["vehicle_of_interest"] = json!({ "vin": vin });
    }
    let mended = with_key(caller.lead("mended"), &format!("{key}-mended"));
    let mut faulty = mended.clone();
    faulty["consent"]["scope"] = json!([]);
    for (label, lead) in [
        ("lead.received", &first),
        ("lead.same-key", &first),
        ("lead.key-conflict", &changed),
        ("lead.key-other", &other),
        ("lead.repeat-first", &repeated),
        ("lead.repeat", &repeated),
        ("lead.visit", &visit),
        ("lead.refused-first", &faulty),
        ("lead.refused-not-kept", &mended),
    ] {
        let lead = lead.clone();
        caller.call(label, Skill::LeadSubmit, lead, None).await;
    }
}
