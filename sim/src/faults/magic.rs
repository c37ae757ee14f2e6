//! Magic values: ordinary fields whose value asks for a fault, so that any SDK can have one without a header.
//!
//! | field | value | example |
//! |---|---|---|
//! | `filters.query` | `sim:` and an effect | `sim:rate_limited(retry_after=2s)` |
//! | `stock` (detail, filter, vehicle of interest) | `SIM:` and an effect | `SIM:vehicle_unavailable` |
//! | `vehicle_id` | `sim:` and an effect | `sim:reset` |
//! | `customer.email` | `sim+` and an effect's name before the `@` | `sim+lead_duplicate@example.com` |
//! | `idempotency_key` | `sim:`, an effect, `:` and any text | `sim:reset_after_commit:7f3a` |
//! | `vin` | `G0FAULT` and the effect's number in `GET /magic` | `G0FAULT0000000012` |

use std::borrow::Cow;

use crate::protocol::Skill;
use crate::protocol::json::Value;

/// What every magic VIN begins with; ten digits follow.
pub const VIN_PREFIX: &str = "G0FAULT";

/// A magic value that was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MagicText<'a> {
    /// The value, as it stood in the payload.
    pub value: &'a str,
    /// The effect it asks for, as it would be written in a plan.
    pub effect: Cow<'a, str>,
}

/// The first magic value of a payload. `by_number` gives the effect of a magic VIN's number.
pub fn find<'a>(
    skill: Skill,
    payload: Value<'a>,
    by_number: impl Fn(usize) -> Option<&'static str>,
) -> Option<MagicText<'a>> {
    let text = |object: Option<Value<'a>>, name: &str| object?.get(name)?.as_str();
    let vehicle = |object: Option<Value<'a>>| -> Option<MagicText<'a>> {
        let [vin, stock, id] = object?.gather(["vin", "stock", "vehicle_id"]).map(|value| value?.as_str());
        let of_vin = vin.and_then(|vin| of_vin(vin, &by_number));
        let of_stock = || stock.and_then(|stock| after_prefix(stock, "SIM:"));
        let of_id = || id.and_then(|id| after_prefix(id, "sim:"));
        of_vin.or_else(of_stock).or_else(of_id)
    };
    match skill {
        Skill::DealerInformation => None,
        Skill::InventoryFacets | Skill::InventorySearch => {
            let filters = payload.get("filters");
            text(filters, "query").and_then(|query| after_prefix(query, "sim:")).or_else(|| vehicle(filters))
        }
        Skill::InventoryVehicle => vehicle(Some(payload)),
        Skill::LeadSubmit => {
            let key = text(Some(payload), "idempotency_key").and_then(of_key);
            let email = || text(payload.get("customer"), "email").and_then(of_email);
            key.or_else(email).or_else(|| vehicle(payload.get("vehicle_of_interest")))
        }
    }
}

fn after_prefix<'a>(value: &'a str, prefix: &str) -> Option<MagicText<'a>> {
    let effect = value.strip_prefix(prefix)?;
    Some(MagicText { value, effect: Cow::Borrowed(effect) })
}

/// The text behind the second colon only keeps keys apart.
fn of_key(value: &str) -> Option<MagicText<'_>> {
    let effect = value.strip_prefix("sim:")?;
    let effect = effect.rsplit_once(':').map_or(effect, |(effect, _)| effect);
    Some(MagicText { value, effect: Cow::Borrowed(effect) })
}

fn of_email(value: &str) -> Option<MagicText<'_>> {
    let (effect, _) = value.strip_prefix("sim+")?.split_once('@')?;
    Some(MagicText { value, effect: Cow::Borrowed(effect) })
}

fn of_vin<'a>(value: &'a str, by_number: &impl Fn(usize) -> Option<&'static str>) -> Option<MagicText<'a>> {
    let number = value.strip_prefix(VIN_PREFIX)?.parse().ok()?;
    Some(MagicText { value, effect: Cow::Borrowed(by_number(number)?) })
}

/// The magic VIN of an effect's number.
pub fn vin(number: usize) -> String {
    format!("{VIN_PREFIX}{number:010}")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::protocol::format::Format;
    use crate::protocol::json::Doc;

    fn effect(skill: Skill, payload: &str) -> Option<String> {
        let mut doc = Doc::default();
        let payload = doc.parse(payload.as_bytes()).unwrap();
        find(skill, payload, |number| (number == 12).then_some("vehicle_unavailable"))
            .map(|hit| hit.effect.into_owned())
    }

    #[test]
    fn every_field_can_ask() {
        let rows = [
            (
                Skill::InventorySearch,
                r#"{"filters":{"query":"sim:rate_limited(retry_after=2s)"}}"#,
                "rate_limited(retry_after=2s)",
            ),
            (Skill::InventoryFacets, r#"{"filters":{"stock":"SIM:total_lies"}}"#, "total_lies"),
            (Skill::InventoryVehicle, r#"{"stock":"SIM:vehicle_unavailable"}"#, "vehicle_unavailable"),
            (Skill::InventoryVehicle, r#"{"vehicle_id":"sim:reset"}"#, "reset"),
            (Skill::InventoryVehicle, r#"{"vin":"G0FAULT0000000012"}"#, "vehicle_unavailable"),
            (
                Skill::LeadSubmit,
                r#"{"customer":{"email":"sim+lead_duplicate@example.com"}}"#,
                "lead_duplicate",
            ),
            (Skill::LeadSubmit, r#"{"idempotency_key":"sim:reset_after_commit:7f3a"}"#, "reset_after_commit"),
            (Skill::LeadSubmit, r#"{"idempotency_key":"sim:reset_after_commit"}"#, "reset_after_commit"),
            (
                Skill::LeadSubmit,
                r#"{"vehicle_of_interest":{"stock":"SIM:vehicle_not_found"}}"#,
                "vehicle_not_found",
            ),
        ];
        for (skill, payload, expected) in rows {
            assert_eq!(effect(skill, payload).as_deref(), Some(expected), "{payload}");
        }
        for (skill, payload) in [
            (Skill::InventorySearch, r#"{"filters":{"query":"simple"}}"#),
            (Skill::InventoryVehicle, r#"{"vin":"G0FAULT0000000013"}"#),
            (Skill::LeadSubmit, r#"{"customer":{"email":"sim@example.com"}}"#),
            (Skill::DealerInformation, r#"{"query":"sim:reset"}"#),
        ] {
            assert_eq!(effect(skill, payload), None, "{payload}");
        }
    }

    #[test]
    fn magic_vins_are_vins_by_their_form() {
        assert!(Format::Vin.holds(&vin(0)) && Format::Vin.holds(&vin(9_999_999_999)));
    }
}
