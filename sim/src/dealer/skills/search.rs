//! `inventory.search` and `inventory.facets`: one set of filters for both.

use super::{Work, open, trim};
use crate::dealer::Dealer;
use crate::faults::effect::Behaviour;
use crate::inventory::{Column, Inventory, Number, Query, SortField, SortOrder};
use crate::protocol::Skill;
use crate::protocol::error::AapError;
use crate::protocol::json::Value;
use crate::protocol::write;

/// Listings on a page unless the request says.
const DEFAULT_LIMIT: u32 = 20;
/// A search for this text makes the handler fail, as a magic value.
pub const FAULT_INJECTION: &str = "sim:internal_error";

/// A filter whose values are alternatives of one text member.
const TEXT_FILTERS: [(&str, Column); 13] = [
    ("make", Column::Make),
    ("model", Column::Model),
    ("trim", Column::Trim),
    ("condition", Column::Condition),
    ("vehicle_type", Column::VehicleType),
    ("status", Column::Status),
    ("transmission", Column::Transmission),
    ("fuel", Column::Fuel),
    ("charge_port", Column::ChargePort),
    ("driveline", Column::Driveline),
    ("body", Column::Body),
    ("exterior_color", Column::ExteriorColor),
    ("interior_color", Column::InteriorColor),
];

/// A filter that bounds a number, and whether from below.
const BOUNDS: [(&str, Number, bool); 9] = [
    ("year_min", Number::Year, true),
    ("year_max", Number::Year, false),
    ("price_min", Number::Price, true),
    ("price_max", Number::Price, false),
    ("mileage_max", Number::Mileage, false),
    ("displacement_cc_min", Number::DisplacementCc, true),
    ("displacement_cc_max", Number::DisplacementCc, false),
    ("electric_range_mi_min", Number::ElectricRange, true),
    ("electric_range_mi_max", Number::ElectricRange, false),
];

/// Adds one filter to a query.
fn add_filter(inventory: &Inventory, query: &mut Query, name: &str, value: Value<'_>) {
    let column = match name {
        "rooftops" => Some(Column::Rooftop),
        _ => TEXT_FILTERS.iter().find(|(filter, _)| *filter == name).map(|(_, column)| *column),
    };
    if let Some(column) = column {
        for item in value.items().filter_map(Value::as_str) {
            query.any_of(inventory, column, item);
        }
    } else if let Some((_, number, from_below)) = BOUNDS.iter().find(|(filter, ..)| *filter == name) {
        let bound = value.as_integer().and_then(|bound| u64::try_from(bound).ok()).unwrap_or(0);
        if *from_below {
            query.at_least(*number, bound);
        } else {
            query.at_most(*number, bound);
        }
    } else {
        match (name, value.as_str(), value.as_bool()) {
            ("vin", Some(vin), _) => query.vin(inventory, vin),
            ("stock", Some(stock), _) => query.stock(inventory, stock),
            ("query", Some(text), _) => query.text(inventory, text),
            ("dc_fast_charge", _, Some(wanted)) => query.dc_fast_charge(inventory, wanted),
            _ => {}
        }
    }
}

/// Fills the query with a request's filters.
fn read_filters(inventory: &Inventory, payload: Value<'_>, query: &mut Query) {
    query.clear();
    let filters = payload.get("filters");
    for (name, value) in filters.into_iter().flat_map(Value::members) {
        add_filter(inventory, query, name, value);
    }
}

pub(super) fn search(
    dealer: &Dealer,
    inventory: &Inventory,
    payload: Value<'_>,
    behaviour: Option<Behaviour>,
    work: &mut Work,
    out: &mut Vec<u8>,
) -> Result<(), AapError> {
    let Work { query, scratch, .. } = work;
    read_filters(inventory, payload, query);
    let paging = |name| {
        payload
            .get("pagination")
            .and_then(|p| p.get(name))
            .and_then(Value::as_integer)
            .and_then(|n| u64::try_from(n).ok())
    };
    let skip = paging("skip").unwrap_or(0);
    // A request for more than a page holds is valid; the page holds what it can, and says so.
    let limit = paging("limit").map_or(DEFAULT_LIMIT, |limit| limit.min(u64::from(u32::MAX)) as u32);
    let limit = limit.min(dealer.page_cap());
    // A fault may have the stock move between two pages; the first page is where it was.
    let from = match behaviour {
        Some(Behaviour::ShiftPages(by)) if skip > 0 => skip.saturating_add_signed(by),
        _ => skip,
    };
    query.page(from, limit);
    if let Some(sort) = payload.get("sort") {
        let field = sort.get("field").and_then(Value::as_str).and_then(SortField::from_member);
        let descending = sort.get("order").and_then(Value::as_str) == Some("desc");
        if let Some(field) = field {
            query.sort(field, if descending { SortOrder::Descending } else { SortOrder::Ascending });
        }
    }
    let page = inventory.search(query, scratch);
    open(out, Skill::InventorySearch);
    out.extend_from_slice(b"{\"total\":");
    write::integer(out, i64::from(page.total));
    out.extend_from_slice(b",\"skip\":");
    write::integer(out, i64::try_from(skip).unwrap_or(i64::MAX));
    out.extend_from_slice(b",\"limit\":");
    write::integer(out, i64::from(limit));
    out.extend_from_slice(b",\"vehicles\":[");
    for (index, row) in page.rows.iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        let from = out.len();
        inventory.listing(*row, out);
        trim(dealer, from, out);
    }
    out.extend_from_slice(b"]}}");
    Ok(())
}

pub(super) fn facets(
    dealer: &Dealer,
    inventory: &Inventory,
    payload: Value<'_>,
    work: &mut Work,
    out: &mut Vec<u8>,
) -> Result<(), AapError> {
    let Work { query, scratch, .. } = work;
    read_filters(inventory, payload, query);
    open(out, Skill::InventoryFacets);
    inventory.facets(query, dealer.shown().facet_keys, scratch, out);
    out.push(b'}');
    Ok(())
}
