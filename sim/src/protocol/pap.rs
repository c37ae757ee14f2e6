//! PAP: one POST a skill, whose body is the payload and whose answer is the bare response or the typed error. Paths and
//! statuses are a proposal, since the protocol's text is not at hand; this is the only place that knows them.

use super::error::AapCode;
use super::skill::Skill;

/// Where the skills are found.
pub const BASE_PATH: &str = "/pap/v3/";

/// The path of a skill, such as `/pap/v3/inventory/search`.
pub fn path(skill: Skill) -> &'static str {
    match skill {
        Skill::DealerInformation => "/pap/v3/dealer/information",
        Skill::InventoryFacets => "/pap/v3/inventory/facets",
        Skill::InventorySearch => "/pap/v3/inventory/search",
        Skill::InventoryVehicle => "/pap/v3/inventory/vehicle",
        Skill::LeadSubmit => "/pap/v3/lead/submit",
    }
}

/// The skill that a path names.
pub fn skill_at(given: &str) -> Option<Skill> {
    Skill::ALL.into_iter().find(|skill| path(*skill) == given)
}

/// The HTTP status that a code is said with.
pub fn status(code: AapCode) -> u16 {
    match code {
        AapCode::SchemaValidationFailed
        | AapCode::MissingRequiredField
        | AapCode::InvalidCondition
        | AapCode::InvalidConsent => 422,
        AapCode::ContactConsentRequired => 403,
        AapCode::UnsupportedSkill | AapCode::VehicleNotFound => 404,
        AapCode::VehicleUnavailable => 410,
        AapCode::AppointmentTimeUnavailable | AapCode::IdempotencyConflict => 409,
        AapCode::RateLimited => 429,
        AapCode::InternalError => 500,
    }
}

/// The status of a body that is no JSON.
pub const NOT_JSON: u16 = 400;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_is_the_skill_id_with_slashes() {
        for skill in Skill::ALL {
            assert_eq!(path(skill), format!("{BASE_PATH}{}", skill.id().replace('.', "/")));
            assert_eq!(skill_at(path(skill)), Some(skill));
        }
        assert_eq!(skill_at("/pap/v3/lead"), None);
    }
}
