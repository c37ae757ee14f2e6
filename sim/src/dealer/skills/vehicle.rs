//! `inventory.vehicle`.

use super::{open, trim};
use crate::dealer::Dealer;
use crate::faults::effect::Behaviour;
use crate::faults::magic;
use crate::inventory::{Inventory, Lookup};
use crate::protocol::Skill;
use crate::protocol::error::{AapCode, AapError, Detail};
use crate::protocol::json::Value;

pub(super) fn handle(
    dealer: &Dealer,
    stock: &Inventory,
    payload: Value<'_>,
    behaviour: Option<Behaviour>,
    out: &mut Vec<u8>,
) -> Result<(), AapError> {
    let row = listed(stock, payload, behaviour)?;
    open(out, Skill::InventoryVehicle);
    let from = out.len();
    stock.detail(row, out);
    trim(dealer, from, out);
    out.push(b'}');
    Ok(())
}

/// The row of the listing that an object's `vin`, `stock` and `vehicle_id` name, the most specific first.
pub(super) fn listed(
    stock: &Inventory,
    object: Value<'_>,
    behaviour: Option<Behaviour>,
) -> Result<u32, AapError> {
    let [vin, number, vehicle_id] =
        object.gather(["vin", "stock", "vehicle_id"]).map(|value| value.and_then(Value::as_str));
    let named = || {
        [("vin", vin), ("stock", number), ("vehicle_id", vehicle_id)]
            .into_iter()
            .find_map(|(name, value)| value.map(|value| (name, value.chars().take(64).collect::<String>())))
            .unwrap_or_default()
    };
    let is_sold = behaviour == Some(Behaviour::SoldUnderYou);
    // A sale may be asked for by a magic value in the very member that names the vehicle.
    let is_magic = || magic::find(Skill::InventoryVehicle, object, |_| Some("")).is_some();
    match stock.find(vin, number, vehicle_id) {
        Lookup::Listed(row) if !is_sold => Ok(row),
        found if found != Lookup::Unknown || (is_sold && is_magic()) => {
            let (name, value) = named();
            let text =
                format!("the vehicle with {name} {value:?} is no longer available; search for another");
            Err(AapError::new(AapCode::VehicleUnavailable, text).with(name, Detail::Text(value)))
        }
        _ => {
            let (name, value) = named();
            let text = format!("no vehicle has {name} {value:?}");
            Err(AapError::new(AapCode::VehicleNotFound, text).with(name, Detail::Text(value)))
        }
    }
}
