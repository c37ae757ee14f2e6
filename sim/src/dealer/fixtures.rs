//! Values to test with, for the seed in force (`GET /fixtures`).

use serde::Serialize;

use super::Dealer;
use super::clock::{Now, to_rfc3339};
use super::diary::Kind;
use super::skills::FAULT_INJECTION;
use crate::inventory::Fixtures as StockFixtures;

/// What `/fixtures` answers. A value that the stock has no example of is absent; a generated stock of 20 vehicles or more
/// has all of them that its contract can show.
#[derive(Debug, Serialize)]
pub struct Fixtures {
    #[serde(flatten)]
    stock: StockFixtures,
    busy_slot: Option<String>,
    blocked_slot: Option<String>,
    fault_injection: &'static str,
    lead_count: u64,
    seed: u64,
    contract: &'static str,
}

impl Dealer {
    /// Values to test with.
    pub fn fixtures(&self, now: Now) -> Fixtures {
        let desk = self.desk();
        let mut stock = self.inventory().fixtures();
        if !self.spec().contract.features.fees {
            stock.vin_with_fees = None;
        }
        let slot = |slot: Option<jiff::Timestamp>| slot.map(to_rfc3339);
        Fixtures {
            stock,
            busy_slot: slot(desk.diary.busy_slot(Kind::Service, now.business)),
            blocked_slot: slot(desk.diary.blocked_slot(Kind::Service, now.business)),
            fault_injection: FAULT_INJECTION,
            lead_count: desk.leads.received,
            seed: self.spec().seed,
            contract: self.spec().contract.name,
        }
    }
}
