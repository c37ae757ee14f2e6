//! `/vehicles`: the stock, changed while it is served.

use std::sync::Arc;

use super::{AdminReply, AdminRequest, JSON, Scope, invalid, json_reply, problem};
use crate::dealer::clock::Now;
use crate::dealer::lot::EditError;
use crate::inventory::{ChangeError, Inventory, Lookup};
use crate::world::Site;
use serde_json::json;

/// Answers a request for `/vehicles` or below it: of the dealer that knows the VIN; what comes in goes to the first one. `now` is
/// the time on clocks that were never moved.
pub(super) fn handle(scope: &Scope<'_>, request: AdminRequest<'_>, now: Now) -> AdminReply {
    let Scope { world, sites, .. } = *scope;
    let vin = request.path.strip_prefix("/vehicles").unwrap_or_default().trim_start_matches('/');
    let allow = match (request.method, vin) {
        ("POST", "") => None,
        (_, "") => Some("POST"),
        ("GET" | "HEAD" | "PATCH" | "DELETE", _) => None,
        _ => Some("GET, HEAD, PATCH, DELETE"),
    };
    if let Some(methods) = allow {
        return AdminReply { allow, ..problem(405, &format!("use {methods}")) };
    }
    let site = if vin.is_empty() { sites.first() } else { Site::that_knows(sites, vin) };
    let Some(site) = site else { return refused(&EditError::Unknown) };
    let now = site.now(now).business;
    let scene = site.scene();
    let lot = scene.dealer.lot();
    let text =
        || std::str::from_utf8(request.body).map_err(|error| format!("the body is not UTF-8: {error}"));
    match (request.method, vin) {
        ("POST", "") => {
            let vin = vin_of(request.body);
            match text().map(|vehicle| world.add_at(site, vin.as_deref(), || lot.add(vehicle, now))) {
                // What was added last is in the last row.
                Ok(Ok(Ok(stock))) => match stock.rows().last() {
                    Some(row) => shown(201, &stock, row),
                    None => problem(500, "the vehicle is gone"),
                },
                Ok(Ok(Err(error))) => refused(&error),
                Ok(Err(dealer_id)) => problem(
                    409,
                    &format!(
                        "the dealer {dealer_id} knows a vehicle with this vin, and vins are unique over all dealers"
                    ),
                ),
                Err(error) => problem(400, &error),
            }
        }
        ("GET" | "HEAD", vin) => found(&lot.stock(), vin),
        ("PATCH", vin) => match text().map(|patch| lot.patch(vin, patch, now)) {
            Ok(Ok(stock)) => found(&stock, vin),
            Ok(Err(error)) => refused(&error),
            Err(error) => problem(400, &error),
        },
        // What is left is DELETE.
        (_, vin) => match lot.remove(vin, now) {
            Ok(()) => json_reply(200, &json!({ "status": "ok" })),
            Err(error) => refused(&error),
        },
    }
}

/// The VIN that a body names, if it can be read.
fn vin_of(body: &[u8]) -> Option<String> {
    let vehicle: serde_json::Value = serde_json::from_slice(body).ok()?;
    Some(vehicle.get("vin")?.as_str()?.to_owned())
}

fn found(stock: &Arc<Inventory>, vin: &str) -> AdminReply {
    match stock.find(Some(vin), None, None) {
        Lookup::Unknown => problem(404, &EditError::Unknown.to_string()),
        Lookup::Listed(row) | Lookup::Sold(row) => shown(200, stock, row),
    }
}

fn shown(status: u16, stock: &Inventory, row: u32) -> AdminReply {
    let mut body = Vec::new();
    stock.detail(row, &mut body);
    body.push(b'\n');
    AdminReply { status, content_type: JSON, allow: None, etag: None, body }
}

fn refused(error: &EditError) -> AdminReply {
    match error {
        EditError::Unknown => problem(404, &error.to_string()),
        EditError::Change(ChangeError::Invalid(faults)) => invalid(&error.to_string(), faults),
        EditError::Change(ChangeError::Taken { .. }) => problem(409, &error.to_string()),
        EditError::Change(ChangeError::Full(_)) | EditError::TooMany => problem(507, &error.to_string()),
    }
}
