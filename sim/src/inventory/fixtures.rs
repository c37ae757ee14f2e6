//! Values to test with, for the stock in force.

use serde::Serialize;

use super::Inventory;
use super::columns::{Column, MISSING, Number, Status};
use super::dictionary::fold;
use super::keys::{self, Key};
use super::vin::{SERIALS, Vin};

/// The members of the simulator's `/fixtures` that concern stock. Generated stock of 20 vehicles or more has all of them;
/// imported stock may lack some.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(default)]
pub struct Fixtures {
    /// The VIN of an available unit, one with a stock number and a price where there is one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available_vin: Option<String>,
    /// The stock number of an available unit, the same one as of `available_vin` if that has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available_stock: Option<String>,
    /// The `vehicle_id` of an available unit, the same one as of `available_vin` if that has one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub available_vehicle_id: Option<String>,
    /// The stock number of a listed unit that is not the one of `available_vin`, `available_stock` or
    /// `available_vehicle_id`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub other_stock: Option<String>,
    /// The VIN of a pending unit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pending_vin: Option<String>,
    /// The stock number of a unit in transit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub intransit_stock: Option<String>,
    /// The VIN of a unit that is known and no longer listed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sold_vin: Option<String>,
    /// A VIN with a right check digit that no unit has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown_vin: Option<String>,
    /// The VIN of a listed unit with charges in `fees` and a list price below its price.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub vin_with_fees: Option<String>,
    /// A make of the listed stock, not all in lower case.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub some_make: Option<String>,
    /// A make that no unit has.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unknown_make: Option<String>,
}

impl Inventory {
    /// Looks the stock through for values to test with.
    pub fn fixtures(&self) -> Fixtures {
        let identifier =
            |row: u32, key| keys::identifier(&self.store, row, key).map(std::borrow::Cow::into_owned);
        let first = |status: Option<Status>, key: Option<Key>, fits: &dyn Fn(u32) -> bool| {
            self.rows().find(|&row| {
                let own = self.status(row);
                status.map_or(own != Status::Sold, |status| own == status)
                    && key.is_none_or(|key| identifier(row, key).is_some())
                    && fits(row)
            })
        };
        let available = Some(Status::Available);
        let priced = |row| self.store.number(row, Number::Price) != MISSING;
        let complete = |row| priced(row) && Key::ALL.into_iter().all(|key| identifier(row, key).is_some());
        let best = first(available, None, &complete);
        let of = |key| best.or_else(|| first(available, Some(key), &|_| true));
        let shown = [of(Key::Vin), of(Key::Stock), of(Key::VehicleId)];
        let text = |row: Option<u32>, key| row.and_then(|row| identifier(row, key));

        let other = first(available, Some(Key::Stock), &|row| !shown.contains(&Some(row)))
            .or_else(|| first(None, Some(Key::Stock), &|row| !shown.contains(&Some(row))));
        let pending = first(Some(Status::Pending), Some(Key::Vin), &|_| true);
        let intransit = first(Some(Status::Intransit), Some(Key::Stock), &|_| true);
        let sold = first(Some(Status::Sold), Some(Key::Vin), &|_| true);
        let charged = |row| {
            let list_price = self.store.number(row, Number::ListPrice);
            priced(row) && list_price < self.store.number(row, Number::Price) && self.has_fees(row)
        };
        let with_fees =
            first(available, Some(Key::Vin), &charged).or_else(|| first(None, Some(Key::Vin), &charged));
        let some_make =
            first(None, None, &|row| self.text(row, Column::Make).chars().any(char::is_uppercase))
                .map(|row| self.text(row, Column::Make).to_owned());
        Fixtures {
            available_vin: text(shown[0], Key::Vin),
            available_stock: text(shown[1], Key::Stock),
            available_vehicle_id: text(shown[2], Key::VehicleId),
            other_stock: text(other, Key::Stock),
            pending_vin: text(pending, Key::Vin),
            intransit_stock: text(intransit, Key::Stock),
            sold_vin: text(sold, Key::Vin),
            unknown_vin: (0..SERIALS)
                .map(Vin::unused)
                .find(|vin| self.keys.find(&self.store, Key::Vin, vin.as_str()).is_none())
                .map(|vin| vin.to_string()),
            vin_with_fees: text(with_fees, Key::Vin),
            some_make,
            unknown_make: Some(self.unknown_make()),
        }
    }

    /// A make that is not in the dictionary, whatever its case.
    fn unknown_make(&self) -> String {
        let makes = self.dictionaries.of(Column::Make);
        let mut name = "Nonesuch".to_owned();
        while makes.equal(&fold(&name)).next().is_some() {
            name.push('x');
        }
        name
    }

    /// Whether the vehicle's own text has a charge in `fees`.
    fn has_fees(&self, row: u32) -> bool {
        let mut text = Vec::new();
        self.listing(row, &mut text);
        serde_json::from_slice::<serde_json::Value>(&text)
            .is_ok_and(|vehicle| vehicle["fees"].as_array().is_some_and(|fees| !fees.is_empty()))
    }
}
