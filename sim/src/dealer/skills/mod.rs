//! The five skills: `handle(skill, payload) -> response payload or AAP error`. They know nothing of A2A, so that every
//! binding can stand in front of them. Payloads are valid by their shape when they come here.

mod information;
mod lead;
mod search;
mod vehicle;

pub(super) use lead::recover as recover_lead;
pub use search::FAULT_INJECTION;

use super::Dealer;
use super::clock::Now;
use super::ids::Ids;
use crate::faults::effect::Behaviour;
use crate::inventory::{Inventory, Query, Scratch};
use crate::ledger::Ticket;
use crate::protocol::Skill;
use crate::protocol::error::AapError;
use crate::protocol::json::Value;

/// What a skill is told beside its payload.
#[derive(Debug)]
pub struct Call<'a> {
    /// The time.
    pub now: Now,
    /// The conversation.
    pub context_id: &'a str,
    /// Identifiers for what the skill makes.
    pub ids: &'a mut Ids,
    /// How a fault has the dealer behave.
    pub behaviour: Option<Behaviour>,
}

/// Buffers that serve one call after the other.
#[derive(Debug, Default)]
pub struct Work {
    pub(crate) query: Query,
    pub(crate) scratch: Scratch,
    /// Where canonical payloads are put together.
    pub(crate) canonical: Vec<u8>,
    /// The last record that the replies made so far have to wait for.
    pub(crate) commit: Option<Ticket>,
}

impl Dealer {
    /// Runs a skill and writes its response payload.
    ///
    /// # Errors
    /// The skill's error; what was written so far is then to be discarded.
    pub fn handle(
        &self,
        skill: Skill,
        payload: Value<'_>,
        call: &mut Call<'_>,
        work: &mut Work,
        out: &mut Vec<u8>,
    ) -> Result<(), AapError> {
        // Taken once, so that a call sees one stock whatever changes meanwhile.
        let stock = self.inventory();
        match skill {
            Skill::DealerInformation => information::handle(self, out),
            Skill::InventoryFacets => search::facets(self, &stock, payload, work, out),
            Skill::InventorySearch => search::search(self, &stock, payload, call.behaviour, work, out),
            Skill::InventoryVehicle => vehicle::handle(self, &stock, payload, call.behaviour, out),
            Skill::LeadSubmit => lead::handle(self, &stock, payload, call, work, out),
        }
    }
}

/// Takes out of the vehicle that was written from `from` on what its contract has never heard of.
#[inline]
fn trim(dealer: &Dealer, from: usize, out: &mut Vec<u8>) {
    let later = &dealer.shown().later_members;
    if !later.is_empty() {
        Inventory::leave_out(later, from, out);
    }
}

/// Writes a response payload up to its `data`.
fn open(out: &mut Vec<u8>, skill: Skill) {
    out.extend_from_slice(b"{\"type\":\"");
    out.extend_from_slice(skill.response_type().as_bytes());
    out.extend_from_slice(b"\",\"data\":");
}
