//! The doors beside A2A and the documents about them (BINDINGS a to d; their released texts were not at hand, so what is a
//! proposal is recommended at most).

use dealer_sim::protocol::json::Doc;
use dealer_sim::protocol::payload::response;
use dealer_sim::protocol::validate::validate;
use dealer_sim::protocol::{Skill, pap};
use serde_json::Value;

use super::super::doors::params;
use super::super::evidence::{Evidence, told};
use super::super::knock::{Came, Knock};
use super::super::rule::{Applies, Finding, Rule};
use super::{law, must, only, should};
use crate::transport::Address;

/// The knocks that ask for what there is.
const ORDINARY: [&str; 4] = ["pap.information", "pap.search", "pap.facets", "pap.vehicle"];

macro_rules! since_3_0 {
    ($($rule:expr),+ $(,)?) => { &[$(only(Applies::V3_0, $rule)),+] };
}

pub(super) const RULES: &[Rule] = since_3_0![
    must(
        "doc.poppy",
        "poppy.json is a JSON object with protocol_version, organization and apis, agent or web",
        "BINDINGS a.2",
        law(|seen| seen.judge_knock("doc.poppy", |_, came| poppy(came))),
    ),
    must(
        "doc.poppy-domain",
        "organization.domain is the host that was asked",
        "BINDINGS a.2, d P1",
        law(|seen| seen.judge_knock("doc.poppy", |_, came| domain(seen, came))),
    ),
    must(
        "doc.openapi",
        "the OpenAPI document is of version 3 and has a POST with operationId and description for each skill of the card",
        "BINDINGS a.4, c.3",
        law(|seen| seen.judge_knock("doc.openapi", |_, came| openapi(seen, came))),
    ),
    must(
        "doc.agree",
        "card and poppy.json spell the same URLs in the same way",
        "BINDINGS d P2",
        law(|seen| seen.judge_knock("doc.poppy", |_, came| agree(seen, came))),
    ),
    should(
        "doc.llms",
        "llms.txt begins with a heading",
        "BINDINGS c.5",
        law(|seen| {
            seen.judge_knock("doc.llms", |_, came| {
                (came.status != 200 || !came.body.starts_with(b"# ")).then(|| "no heading".to_owned())
            })
        }),
    ),
    should(
        "doc.no-oauth",
        "while nothing offers sign-in, nothing describes a protected resource",
        "BINDINGS d 7",
        law(no_oauth),
    ),
    must(
        "pap.served",
        "a skill's object is answered with its response, or with a typed error",
        "BINDINGS c.1, c.3",
        law(served),
    ),
    must("pap.payload", "a response has the shape that it has by A2A", "BINDINGS c.1; AAP d", law(payload),),
    must(
        "pap.invalid",
        "an object that breaks its schema is refused (4xx), by a typed error",
        "BINDINGS c.3",
        law(|seen| typed_refusal(seen, "pap.invalid")),
    ),
    must(
        "pap.other-type",
        "the object of another skill is not taken for the path's own",
        "BINDINGS c.1",
        law(|seen| typed_refusal(seen, "pap.other-type")),
    ),
    must(
        "pap.error-status",
        "a typed error never comes with a status of success",
        "BINDINGS c.3",
        law(|seen| {
            every(seen, |_, came| {
                (came.status < 400 && came.typed_code().is_some()).then(|| "an error as a success".to_owned())
            })
        }),
    ),
    must(
        "pap.no-401",
        "nothing challenges to sign in while no sign-in is offered",
        "BINDINGS a.4, c.3",
        law(|seen| {
            every(seen, |_, came| {
                (came.status == 401 || came.challenge.is_some()).then(|| "a challenge to sign in".to_owned())
            })
        }),
    ),
    must(
        "pap.session",
        "a Poppy-Session that the call does not need is no reason to refuse it",
        "BINDINGS a.3",
        law(|seen| seen.judge_knock("pap.session", |_, came| challenged(came))),
    ),
    must(
        "pap.accept-any",
        "Accept: */* is answered",
        "BINDINGS c.3; RFC 9110 12.5.1",
        law(|seen| of_other_status(seen, "pap.accept-any", 406)),
    ),
    must(
        "pap.consent",
        "a lead without consent is refused",
        "BINDINGS c.4; AAP f",
        law(|seen| typed_refusal(seen, "pap.consent")),
    ),
    must(
        "pap.one-store",
        "a lead with the key and payload of one by A2A is that lead",
        "BINDINGS c.4",
        law(one_store),
    ),
    should(
        "pap.status",
        "a typed error has the status of its code",
        "BINDINGS c.3",
        law(|seen| every(seen, |_, came| status(came))),
    ),
    should(
        "pap.retry-after",
        "HTTP 429 comes with Retry-After",
        "BINDINGS c.3; RFC 6585 4",
        law(|seen| {
            every(seen, |_, came| {
                let is_limit = came.status == 429 && came.typed_code() == Some("RATE_LIMITED");
                (is_limit && came.retry_after.is_none()).then(|| "no Retry-After".to_owned())
            })
        }),
    ),
    should(
        "pap.not-json",
        "a body that is no JSON is HTTP 400",
        "BINDINGS c.3",
        law(|seen| of_status(seen, "pap.not-json", 400)),
    ),
    should(
        "pap.content-type",
        "a body of another media type is HTTP 415",
        "BINDINGS c.3",
        law(|seen| of_status(seen, "pap.content-type", 415)),
    ),
    should(
        "pap.accept",
        "Accept: text/html is HTTP 406",
        "BINDINGS c.3",
        law(|seen| of_status(seen, "pap.accept", 406)),
    ),
    should(
        "pap.method",
        "GET is HTTP 405 with Allow: POST",
        "BINDINGS c.3; RFC 9110 15.5.6",
        law(|seen| {
            seen.judge_knock("pap.method", |_, came| {
                let allows = came.allow.as_deref().is_some_and(|allow| allow.contains("POST"));
                (came.status != 405 || !allows).then(|| format!("Allow: {}", told(came.allow.as_ref())))
            })
        }),
    ),
    should(
        "pap.unknown-vehicle",
        "identifiers that match nothing are HTTP 404 with VEHICLE_NOT_FOUND",
        "BINDINGS c.3",
        law(|seen| {
            seen.judge_knock("pap.unknown-vehicle", |_, came| {
                (came.typed_code() != Some("VEHICLE_NOT_FOUND") || came.status != 404)
                    .then(|| format!("HTTP {}, {}", came.status, told(came.typed_code())))
            })
        }),
    ),
];

fn poppy(came: &Came) -> Option<String> {
    let object = came.json.as_ref().filter(|json| came.status == 200 && json.is_object());
    let Some(object) = object else { return Some("no JSON object".to_owned()) };
    let text =
        |pointer: &str| object.pointer(pointer).and_then(Value::as_str).is_some_and(|text| !text.is_empty());
    let missing: Vec<_> = ["/protocol_version", "/organization/name", "/organization/domain"]
        .into_iter()
        .filter(|pointer| !text(pointer))
        .collect();
    if !missing.is_empty() {
        return Some(format!("no text at {}", missing.join(", ")));
    }
    let has_door = ["apis", "agent", "web"].iter().any(|name| object.get(name).is_some());
    (!has_door).then(|| "neither apis nor agent nor web".to_owned())
}

fn domain(seen: &Evidence, came: &Came) -> Option<String> {
    let said = came.json.as_ref()?.pointer("/organization/domain")?.as_str()?;
    let asked = Address::parse(&seen.card.as_ref()?.url).ok()?.host.to_ascii_lowercase();
    let bare = said.trim_start_matches('[').trim_end_matches(']');
    let same = bare == asked || asked.strip_prefix("www.") == Some(bare);
    (!same).then(|| format!("{said:?} at {asked:?}"))
}

fn openapi(seen: &Evidence, came: &Came) -> Option<String> {
    let document = came.json.as_ref().filter(|json| came.status == 200 && json.is_object());
    let Some(document) = document else { return Some("no JSON object".to_owned()) };
    if !document["openapi"].as_str().is_some_and(|version| version.starts_with("3.")) {
        return Some(format!("openapi is {}", document["openapi"]));
    }
    let operations: Vec<&Value> = document["paths"]
        .as_object()
        .into_iter()
        .flatten()
        .filter_map(|(_, item)| item.get("post"))
        .filter(|post| post["operationId"].is_string() && post["description"].is_string())
        .collect();
    let has = |skill: &Skill| {
        let tool = dealer_sim::protocol::mcp::tool_name(*skill);
        operations.iter().any(|post| post["x-aap-skill"] == skill.id() || post["operationId"] == tool)
    };
    let card = seen.card.as_ref()?.card()?;
    let offered = card["skills"].as_array().into_iter().flatten();
    let offered = offered.filter_map(|skill| Skill::from_id(skill["id"].as_str()?));
    let missing: Vec<_> = offered.filter(|skill| !has(skill)).map(Skill::id).collect();
    (!missing.is_empty()).then(|| format!("no operation for {}", missing.join(", ")))
}

fn agree(seen: &Evidence, came: &Came) -> Option<String> {
    let (poppy, params) = (came.json.as_ref()?, params(seen)?);
    let listed = |kind: &str| {
        let apis = poppy["apis"].as_array().into_iter().flatten();
        apis.filter(|api| api["type"] == kind).find_map(|api| api["url"].as_str())
    };
    let agents = poppy.pointer("/agent/protocols").and_then(Value::as_array).into_iter().flatten();
    let a2a = agents.filter(|agent| agent["type"] == "a2a").find_map(|agent| agent["endpoint"].as_str());
    let interfaces = seen.card.as_ref()?.card()?["supportedInterfaces"].as_array();
    let on_card: Vec<&str> =
        interfaces.into_iter().flatten().filter_map(|interface| interface["url"].as_str()).collect();
    let link = |pointer: &str| params.pointer(pointer).and_then(Value::as_str);
    for (what, here, there) in [
        ("OpenAPI document", listed("openapi"), link("/pap/openapi_url")),
        ("MCP endpoint", listed("mcp"), link("/mcp/url")),
    ] {
        if let (Some(here), Some(there)) = (here, there)
            && here != there
        {
            return Some(format!("{what}: {here:?} in poppy.json, {there:?} on the card"));
        }
    }
    let a2a = a2a.filter(|url| !on_card.contains(url))?;
    Some(format!("A2A endpoint: {a2a:?} in poppy.json, {on_card:?} on the card"))
}

fn no_oauth(seen: &Evidence) -> Finding {
    let offers =
        seen.knock("doc.poppy").and_then(|knock| knock.answer.as_ref().ok()?.json.as_ref()?.get("auth"));
    if offers.is_some() {
        return Finding::not_run("poppy.json offers sign-in");
    }
    seen.judge_knock("doc.oauth", |_, came| {
        (came.status == 200).then(|| "a protected resource without an issuer".to_owned())
    })
}

/// Holds every reply of the PAP door against something.
fn every(seen: &Evidence, breach: impl Fn(&Knock, &Came) -> Option<String>) -> Finding {
    let replies = seen.knocks.iter().filter(|knock| knock.label.starts_with("pap."));
    let replies: Vec<_> = replies.filter_map(|knock| Some((knock, knock.answer.as_ref().ok()?))).collect();
    let breaches = replies
        .iter()
        .filter_map(|(knock, came)| Some(format!("{}\n{}", breach(knock, came)?, knock.quote())))
        .collect();
    Finding::of(breaches, replies.len(), "the dealer has no PAP door, or it did not answer")
}

fn ordinary(seen: &Evidence) -> impl Iterator<Item = (&Knock, &Came)> {
    let knocks = ORDINARY.iter().filter_map(|label| seen.knock(label));
    knocks.filter_map(|knock| Some((knock, knock.answer.as_ref().ok()?)))
}

fn served(seen: &Evidence) -> Finding {
    let said: Vec<_> = ordinary(seen).filter(|(_, came)| !came.is_of_the_moment()).collect();
    let is_answer = |knock: &Knock, came: &Came| knock.is_served() || came.typed_code().is_some();
    // What stands before a dealer may refuse a call in its own words now and then, but not each of them.
    let any = said.iter().any(|(knock, came)| is_answer(knock, came));
    let breaches = said
        .iter()
        .filter(|(knock, came)| !is_answer(knock, came) && (came.status == 200 || !any))
        .map(|(knock, _)| knock.quote())
        .collect();
    Finding::of(breaches, said.len(), "the dealer has no PAP door, or it did not answer")
}

fn payload(seen: &Evidence) -> Finding {
    let mut breaches = Vec::new();
    let mut looked_at = 0;
    for (knock, came) in ordinary(seen).filter(|(knock, _)| knock.is_served()) {
        let (Some(skill), mut doc) = (knock.skill, Doc::default()) else { continue };
        looked_at += 1;
        let Ok(value) = doc.parse(&came.body) else {
            breaches.push(format!("a name stands twice\n{}", knock.quote()));
            continue;
        };
        let faults = validate(value, response(skill), &seen.contract.features, "");
        if let Some(first) = faults.list.first() {
            breaches.push(format!("{} {}\n{}", first.at, first.error, knock.quote()));
        }
    }
    Finding::of(breaches, looked_at, "no skill was served")
}

/// A typed error with a status of the client's fault.
fn typed_refusal(seen: &Evidence, label: &str) -> Finding {
    let came = seen.knock(label).and_then(|knock| knock.answer.as_ref().ok());
    // Whoever answers with a page stands before the dealer.
    if let Some(came) = came.filter(|came| came.status >= 300 && came.json.is_none()) {
        return Finding::not_run(format!("HTTP {} without JSON", came.status));
    }
    seen.judge_knock(label, |_, came| {
        let is_refused = (400..500).contains(&came.status) && came.typed_code().is_some();
        (!is_refused).then(|| "no typed refusal".to_owned())
    })
}

/// Refused for want of a credential.
fn challenged(came: &Came) -> Option<String> {
    let is_refused = came.status == 401 || came.status == 403 && came.json.is_some();
    is_refused.then(|| "refused".to_owned())
}

fn of_other_status(seen: &Evidence, label: &str, unwanted: u16) -> Finding {
    seen.judge_knock(label, |_, came| (came.status == unwanted).then(|| format!("HTTP {unwanted}")))
}

fn status(came: &Came) -> Option<String> {
    // A gateway may put a status of its own around a reply.
    if came.is_of_the_moment() {
        return None;
    }
    let code = dealer_sim::protocol::error::AapCode::from_name(came.typed_code()?)?;
    let wanted = pap::status(code);
    // What is no JSON breaks its schema, and has a status of its own; a refused contact may be either (BINDINGS c.3).
    let tolerable = [(422, 400), (403, 422)].contains(&(wanted, came.status));
    (came.status != wanted && !tolerable)
        .then(|| format!("{} with HTTP {}, not {wanted}", code.name(), came.status))
}

fn of_status(seen: &Evidence, label: &str, wanted: u16) -> Finding {
    seen.judge_knock(label, |_, came| (came.status != wanted).then(|| format!("HTTP {}", came.status)))
}

fn one_store(seen: &Evidence) -> Finding {
    let by_a2a = seen.of("lead.received").and_then(|exchange| exchange.data()?.get("lead_id")?.as_str());
    let Some(by_a2a) = by_a2a else { return seen.unasked("lead.received") };
    seen.judge_knock("pap.lead", |knock, _| {
        let by_pap = knock.payload().and_then(|payload| payload.pointer("/data/lead_id")?.as_str())?;
        (by_pap != by_a2a).then(|| format!("{by_pap} by PAP, {by_a2a} by A2A"))
    })
}
