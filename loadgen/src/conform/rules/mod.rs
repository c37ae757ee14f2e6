//! The one table of rules, group by group. A rule is either held against the reply to the probe of its name
//! (`scenarios/conformance/requests.json`), or against all that was seen.

mod card;
mod doors;
mod errors;
mod filters;
mod headers;
mod lead;
mod listing;
mod message;
mod paging;
mod robust;
mod rpc;
mod vehicle;

use dealer_sim::protocol::error::AapCode;

use super::evidence::Evidence;
use super::rule::{Applies, Certainty, Expect, Finding, Judge, Refusal, Rule};

/// The groups, in the order of the report.
const GROUPS: [&[Rule]; 12] = [
    card::RULES,
    headers::RULES,
    rpc::RULES,
    message::RULES,
    errors::RULES,
    listing::RULES,
    filters::RULES,
    paging::RULES,
    vehicle::RULES,
    lead::RULES,
    robust::RULES,
    doors::RULES,
];

/// Every rule.
pub fn rules() -> impl Iterator<Item = &'static Rule> {
    GROUPS.into_iter().flatten()
}

const fn rule(
    certainty: Certainty,
    id: &'static str,
    title: &'static str,
    source: &'static str,
    judge: Judge,
) -> Rule {
    Rule { id, title, source, certainty, applies: Applies::ALL, judge }
}

const fn must(id: &'static str, title: &'static str, source: &'static str, judge: Judge) -> Rule {
    rule(Certainty::Must, id, title, source, judge)
}

const fn should(id: &'static str, title: &'static str, source: &'static str, judge: Judge) -> Rule {
    rule(Certainty::Should, id, title, source, judge)
}

const fn silent(id: &'static str, title: &'static str, source: &'static str, judge: Judge) -> Rule {
    rule(Certainty::Silent, id, title, source, judge)
}

/// The same rule for these contracts only.
const fn only(applies: Applies, rule: Rule) -> Rule {
    Rule { applies, ..rule }
}

const fn law(judge: fn(&Evidence) -> Finding) -> Judge {
    Judge::Law(judge)
}

const fn refused(any: &'static [Refusal]) -> Judge {
    Judge::Probe(Expect::Refused(any))
}

const fn served_or(any: &'static [Refusal]) -> Judge {
    Judge::Probe(Expect::ServedOr(any))
}

const SERVED: Judge = Judge::Probe(Expect::Served);
const SURVIVED: Judge = Judge::Probe(Expect::Survived);

/// The codes under which faults of a payload are listed.
const VALIDATION: &[AapCode] =
    &[AapCode::SchemaValidationFailed, AapCode::MissingRequiredField, AapCode::InvalidCondition];
/// The fault of a payload, in any place.
const INVALID: Judge = refused(&[Refusal::Aap(VALIDATION)]);
