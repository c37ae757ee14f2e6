//! PAP: one POST a skill, whose body is the payload and whose answer is the bare response or the typed error. Paths and
//! statuses are a proposal, since the protocol's text is not at hand; this is the only place that knows them.

use serde_json::json;

use super::accept::liking;
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
/// The media type that payloads go by, beside their own.
pub const JSON: &str = "application/json";
/// The media type of what is said of a request that no skill saw (RFC 9457).
pub const PROBLEM: &str = "application/problem+json";

/// Why a call is refused for its media types.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum Unacceptable {
    /// The body is of another type; HTTP 415.
    #[error("send Content-Type: application/json or {}", .0.request_media_type())]
    Content(Skill),
    /// Nothing that could be answered is liked; HTTP 406.
    #[error("accept application/json or {}", .0.response_media_type())]
    Accept(Skill),
}

impl Unacceptable {
    /// The HTTP status.
    pub fn status(self) -> u16 {
        match self {
            Unacceptable::Content(_) => 415,
            Unacceptable::Accept(_) => 406,
        }
    }
}

/// The media type to answer a call with: the skill's own where `Accept` names it and likes it no less than JSON, else JSON.
/// Whoever says nothing of a body's type or of what is accepted means JSON.
///
/// # Errors
/// [`Unacceptable`].
pub fn negotiate<'l>(
    skill: Skill,
    content_types: impl IntoIterator<Item = &'l [u8]>,
    accept: &[&str],
) -> Result<&'static str, Unacceptable> {
    let is_known = |given: &[u8]| {
        let essence = given.split(|byte| *byte == b';').next().unwrap_or_default().trim_ascii();
        [JSON, skill.request_media_type()].iter().any(|known| essence.eq_ignore_ascii_case(known.as_bytes()))
    };
    if !content_types.into_iter().all(is_known) {
        return Err(Unacceptable::Content(skill));
    }
    if accept.iter().all(|line| line.trim().is_empty()) {
        return Ok(JSON);
    }
    let likes = |media_type: &'static str| {
        let (kind, subtype) = media_type.split_once('/').unwrap_or_default();
        liking(accept.iter().copied(), [kind, subtype]).unwrap_or_default()
    };
    let ((_, json), (named, own)) = (likes(JSON), likes(skill.response_media_type()));
    match (json, own) {
        (0, 0) => Err(Unacceptable::Accept(skill)),
        (json, own) if named == 2 && own >= json => Ok(skill.response_media_type()),
        (0, _) => Ok(skill.response_media_type()),
        _ => Ok(JSON),
    }
}

/// What is said of a request that no skill saw (RFC 9457); `title` is the status in words.
pub fn problem(status: u16, title: &str, detail: &str) -> Vec<u8> {
    let problem = json!({ "type": "about:blank", "title": title, "status": status, "detail": detail });
    problem.to_string().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn media_types_are_settled_before_the_body_is_read() {
        let skill = Skill::InventorySearch;
        let (request, own) = (skill.request_media_type(), skill.response_media_type());
        let settle = |content: &[&'static str], accept: &[&'static str]| {
            negotiate(skill, content.iter().map(|line| line.as_bytes()), accept)
        };
        let wrong = Err(Unacceptable::Content(skill));
        for (content, wanted) in [
            (&[][..], Ok(JSON)),
            (&["application/json"], Ok(JSON)),
            (&["Application/JSON; charset=utf-8"], Ok(JSON)),
            (&[request], Ok(JSON)),
            (&[Skill::LeadSubmit.request_media_type()], wrong),
            (&["text/plain"], wrong),
            (&["application/json", "text/plain"], wrong),
            (&[""], wrong),
        ] {
            assert_eq!(settle(content, &[]), wanted, "{content:?}");
        }
        let none = Err(Unacceptable::Accept(skill));
        for (accept, wanted) in [
            (&[""][..], Ok(JSON)),
            (&["*/*"], Ok(JSON)),
            (&["application/*"], Ok(JSON)),
            (&["text/html, */*;q=0.1"], Ok(JSON)),
            (&[own], Ok(own)),
            (&["application/json", own], Ok(own)),
            (&["application/vnd.autoagent.inventory-search-response+json;q=0.5, application/json"], Ok(JSON)),
            (&["application/json;q=0, */*"], Ok(own)),
            (&["text/html"], none),
            (&["application/json;q=0"], none),
            (&["*/*;q=0"], none),
            (&["nonsense"], none),
        ] {
            assert_eq!(settle(&[], accept), wanted, "{accept:?}");
        }
    }

    #[test]
    fn a_path_is_the_skill_id_with_slashes() {
        for skill in Skill::ALL {
            assert_eq!(path(skill), format!("{BASE_PATH}{}", skill.id().replace('.', "/")));
            assert_eq!(skill_at(path(skill)), Some(skill));
        }
        assert_eq!(skill_at("/pap/v3/lead"), None);
    }
}
