//! What the inventory keeps beside the JSON text of a vehicle: one code per text member and one number per numeric member,
//! in columns, so that a search reads only what it asks about.

use crate::protocol::payload;

/// The classes of vehicle, in the order of their codes in [`Column::VehicleType`] (from 1 on).
pub(crate) const VEHICLE_TYPES: &[&str] = payload::VEHICLE_TYPES;

/// The conditions of a vehicle for sale, in the order of their codes in [`Column::Condition`] (from 1 on).
pub(crate) const CONDITIONS: &[&str] = payload::SALE_CONDITIONS;

/// A text member with a dictionary of its own.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(usize)]
#[allow(missing_docs, reason = "each is the member of Vehicle of that name (AAP digest, section d.5)")]
pub enum Column {
    // The order is the order in which filters are applied: what tells most vehicles apart comes first.
    Model,
    Make,
    Trim,
    Body,
    Rooftop,
    ExteriorColor,
    InteriorColor,
    Engine,
    ChargePort,
    Fuel,
    Driveline,
    Transmission,
    Condition,
    /// `vehicle_type`; a unit without the member is a `car`.
    VehicleType,
    Status,
    /// `dc_fast_charge`, whose values are the texts `true` and `false` (AAP digest, j 33).
    DcFastCharge,
}

impl Column {
    /// Every column, in the order of [`Column`]'s definition.
    pub const ALL: [Column; COLUMNS] = [
        Column::Model,
        Column::Make,
        Column::Trim,
        Column::Body,
        Column::Rooftop,
        Column::ExteriorColor,
        Column::InteriorColor,
        Column::Engine,
        Column::ChargePort,
        Column::Fuel,
        Column::Driveline,
        Column::Transmission,
        Column::Condition,
        Column::VehicleType,
        Column::Status,
        Column::DcFastCharge,
    ];

    /// The columns that free text looks into. Not the status, since nobody types it, nor the fast-charge flag, whose words are
    /// `true` and `false`.
    pub(crate) const SEARCHED: [Column; 14] = [
        Column::Model,
        Column::Make,
        Column::Trim,
        Column::Body,
        Column::Rooftop,
        Column::ExteriorColor,
        Column::InteriorColor,
        Column::Engine,
        Column::ChargePort,
        Column::Fuel,
        Column::Driveline,
        Column::Transmission,
        Column::Condition,
        Column::VehicleType,
    ];

    /// The member of Vehicle that the column holds.
    pub fn member(self) -> &'static str {
        match self {
            Column::Model => "model",
            Column::Make => "make",
            Column::Trim => "trim",
            Column::Body => "body",
            Column::Rooftop => "rooftop",
            Column::ExteriorColor => "exterior_color",
            Column::InteriorColor => "interior_color",
            Column::Engine => "engine",
            Column::ChargePort => "charge_port",
            Column::Fuel => "fuel",
            Column::Driveline => "driveline",
            Column::Transmission => "transmission",
            Column::Condition => "condition",
            Column::VehicleType => "vehicle_type",
            Column::Status => "status",
            Column::DcFastCharge => "dc_fast_charge",
        }
    }
}

/// The code in [`Column::Status`] of a row whose vehicle was removed: no status at all, and above those that are listed.
pub(crate) const GONE: u16 = u16::MAX;

/// How many text columns there are.
pub(crate) const COLUMNS: usize = 16;

/// A numeric member.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(usize)]
#[allow(missing_docs, reason = "each is the member of Vehicle of that name (AAP digest, section d.5)")]
pub enum Number {
    Year,
    /// Whole USD.
    Price,
    /// Whole USD.
    ListPrice,
    /// Whole USD.
    Msrp,
    /// Miles.
    Mileage,
    DisplacementCc,
    /// Thousandths of a mile, since the member may have a fraction.
    ElectricRange,
    /// Seconds since 1970.
    UpdatedAt,
    /// The place of `stock` among all stock numbers in code-point order.
    StockRank,
}

impl Number {
    /// Every numeric column, in the order of [`Number`]'s definition.
    pub(crate) const ALL: [Number; NUMBERS] = [
        Number::Year,
        Number::Price,
        Number::ListPrice,
        Number::Msrp,
        Number::Mileage,
        Number::DisplacementCc,
        Number::ElectricRange,
        Number::UpdatedAt,
        Number::StockRank,
    ];

    /// What one unit of the member counts in the column.
    pub(crate) fn scale(self) -> u32 {
        if self == Number::ElectricRange { RANGE_SCALE } else { 1 }
    }
}

/// How many numeric columns there are.
pub(crate) const NUMBERS: usize = 9;

/// [`Number::ElectricRange`] is kept in this fraction of a mile.
pub(crate) const RANGE_SCALE: u32 = 1000;

/// A number that the vehicle does not have. It is the greatest one, so that an upper bound excludes it by itself and an
/// ascending sort puts it last.
pub(crate) const MISSING: u32 = u32::MAX;

/// The code of a text that the vehicle does not have.
pub(crate) const NO_TEXT: u16 = 0;

/// What one vehicle has in all columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Cells {
    /// A code of the column's dictionary, or [`NO_TEXT`].
    pub(crate) codes: [u16; COLUMNS],
    /// A number, or [`MISSING`].
    pub(crate) numbers: [u32; NUMBERS],
}

impl Default for Cells {
    fn default() -> Cells {
        Cells { codes: [NO_TEXT; COLUMNS], numbers: [MISSING; NUMBERS] }
    }
}

impl Cells {
    /// Sets one text.
    pub(crate) fn set(&mut self, column: Column, code: u16) {
        self.codes[column as usize] = code;
    }

    /// Sets one number.
    pub(crate) fn set_number(&mut self, number: Number, value: u32) {
        self.numbers[number as usize] = value;
    }
}

/// The states of life of a vehicle; each one's number is its code in [`Column::Status`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u16)]
pub enum Status {
    /// On the lot.
    Available = 1,
    /// On its way to the dealer.
    Intransit = 2,
    /// A deal is in progress.
    Pending = 3,
    /// Known to the dealer, never listed again (AAP digest, section f).
    Sold = 4,
}

impl Status {
    /// Every state, in the order of their codes.
    pub const ALL: [Status; 4] = [Status::Available, Status::Intransit, Status::Pending, Status::Sold];

    /// The word in `Vehicle.status`; `sold` never leaves the dealer through a skill.
    pub fn word(self) -> &'static str {
        match self {
            Status::Available => "available",
            Status::Intransit => "intransit",
            Status::Pending => "pending",
            Status::Sold => "sold",
        }
    }

    /// The state that `word` names.
    pub fn from_word(word: &str) -> Option<Status> {
        Status::ALL.into_iter().find(|status| status.word() == word)
    }

    /// The code in [`Column::Status`].
    pub(crate) fn code(self) -> u16 {
        self as u16
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_follow_the_definitions() {
        for (index, column) in Column::ALL.into_iter().enumerate() {
            assert_eq!(column as usize, index);
        }
        for (index, number) in Number::ALL.into_iter().enumerate() {
            assert_eq!(number as usize, index);
        }
        for status in Status::ALL {
            assert_eq!(Status::from_word(status.word()), Some(status));
        }
        assert_eq!(Status::from_word("Sold"), None);
        assert_eq!(Status::ALL.map(Status::word), payload::STOCK_STATUSES);
    }
}
