//! Holds the payload of a reply against the shape that the protocol gives it: the simulator's own shapes, which its
//! published JSON Schemas come from.

use dealer_sim::protocol::contract::Features;
use dealer_sim::protocol::json::Doc;
use dealer_sim::protocol::payload::response;
use dealer_sim::protocol::validate::validate;
use dealer_sim::protocol::{Binding, Contract, Skill};

/// Which replies are held against their shape.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Validate {
    Off,
    /// One of twenty.
    Sample,
    Full,
}

/// One of so many replies is looked at.
const SAMPLE: u64 = 20;

impl Validate {
    /// Whether the reply to a step of a session is one to look at: the same ones in any run of that seed.
    pub(crate) fn looks_at(self, ordinal: u64, position: usize) -> bool {
        match self {
            Validate::Off => false,
            Validate::Sample => ordinal.wrapping_add(position as u64).is_multiple_of(SAMPLE),
            Validate::Full => true,
        }
    }
}

/// A validator with memory of its own.
#[derive(Debug)]
pub(crate) struct Schema {
    doc: Doc,
    features: Features,
    binding: Binding,
}

impl Schema {
    pub(crate) fn of(contract: Contract, binding: Binding) -> Schema {
        Schema { doc: Doc::default(), features: contract.features, binding }
    }

    /// Whether the payload of a reply to this skill has its shape. The envelope is taken to be sound.
    pub(crate) fn holds(&mut self, body: &[u8], skill: Skill) -> bool {
        let Ok(root) = self.doc.parse(body) else { return false };
        let payload = match self.binding {
            Binding::A2a => root
                .get("result")
                .and_then(|result| result.get("message")?.get("parts")?.items().next()?.get("data")),
            Binding::Mcp => root.get("result").and_then(|result| result.get("structuredContent")),
            Binding::Pap => Some(root),
        };
        payload.is_some_and(|payload| validate(payload, response(skill), &self.features, "").is_empty())
    }
}

#[cfg(test)]
mod tests {
    use dealer_sim::Dealer;

    use super::*;

    #[test]
    fn the_simulator_keeps_to_its_shapes_and_others_are_told_apart() {
        let dealer = Dealer::builder().seed(5).vehicles(30).build().unwrap();
        let body = br#"{"jsonrpc":"2.0","id":1,"method":"SendMessage","params":{"message":{"messageId":"m","role":"ROLE_USER","parts":[
            {"data":{"type":"inventory.search.request","filters":{}},"mediaType":"application/vnd.autoagent.inventory-search-request+json"}]},
            "configuration":{"acceptedOutputModes":["application/vnd.autoagent.inventory-search-response+json"]}}}"#;
        let reply = String::from_utf8(dealer.dispatch_body(body)).unwrap();
        let mut schema = Schema::of(Contract::V3_0, Binding::A2a);
        assert!(schema.holds(reply.as_bytes(), Skill::InventorySearch), "{reply}");
        assert!(!schema.holds(reply.as_bytes(), Skill::LeadSubmit));
        let broken = reply.replacen("\"vin\":\"", "\"vin\":7,\"x\":\"", 1);
        assert_ne!(broken, reply);
        assert!(!schema.holds(broken.as_bytes(), Skill::InventorySearch));
        assert!(!schema.holds(b"{}", Skill::InventorySearch) && !schema.holds(b"", Skill::InventorySearch));
    }

    #[test]
    fn a_sample_is_one_in_twenty() {
        let looked_at = (0..2000).filter(|ordinal| Validate::Sample.looks_at(*ordinal, 3)).count();
        assert_eq!(looked_at, 100);
        assert!(Validate::Full.looks_at(1, 1) && !Validate::Off.looks_at(0, 0));
    }
}
