//! Conformance: asks a dealer all there is to ask, and judges what came back by one table of rules.
//!
//! `caller` and `survey` act; the rules are pure functions over the `evidence` that they gather, so that a rule on all
//! replies (an id, a `contextId`) is held against every reply there is.

mod caller;
mod catalogue;
mod doors;
mod evidence;
mod knock;
mod report;
mod request;
mod rule;
mod rules;
mod survey;

use std::time::Duration;

use dealer_sim::protocol::{Binding, Contract};

use caller::{Caller, CardError, fetch_card};
use evidence::{CardSeen, Evidence};
use rule::{Judge, judge_probe};

use crate::embedded::{Embedded, EmbeddedError};
use crate::endpoint::{self, Consent, Endpoint, EndpointError, Harm};
use crate::envelope::may_hold_secrets;
use crate::pacer::Clock;
use crate::transport::{Address, AddressError, Options, PrepareError};
use crate::units;

pub use catalogue::catalogue;
pub use evidence::Headers;
pub use report::{Judged, Report, Verdict, html, json, junit, text};
pub(crate) use report::{shown, write};
pub use rule::{Applies, Certainty, Finding, Rule};
pub use rules::rules;

/// What is to be judged, and how.
#[derive(Debug, Clone)]
pub struct Request {
    /// The dealer's base URL or its card's; without it the simulator inside this process is judged.
    pub url: Option<String>,
    /// The contract, if the card offers several.
    pub contract: Option<Contract>,
    /// What the dealer does without the A2A headers.
    pub headers: Headers,
    /// Whether leads may go to a dealer that does not prove itself a simulator.
    pub allow_real_leads: bool,
    /// Whether draft identifiers may go to another host that is no simulator.
    pub allow_draft_contract: bool,
    /// Connections; `timeout` is that of one request.
    pub options: Options,
    /// Time limit of the whole.
    pub timeout: Duration,
}

/// Why nothing could be judged.
#[derive(Debug, thiserror::Error)]
pub enum ConformError {
    /// The URL is none.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// No card could be fetched.
    #[error("the dealer was not reached: {url}: {reason}")]
    Unreached {
        /// What was fetched.
        url: String,
        /// Why it did not come.
        reason: String,
    },
    /// A certificate or key that was given cannot be used.
    #[error(transparent)]
    Prepare(PrepareError),
    /// It cannot be called without harm.
    #[error("{0}")]
    Harm(String),
    /// The simulator inside this process.
    #[error("{0}")]
    Embedded(String),
    /// The suite's own data is broken.
    #[error("the suite's requests cannot be read: {0}")]
    Data(#[from] serde_json::Error),
}

impl ConformError {
    /// Whether the user is to change something.
    pub fn is_usage(&self) -> bool {
        matches!(self, ConformError::Address(_) | ConformError::Harm(_) | ConformError::Prepare(_))
    }
}

impl From<EmbeddedError> for ConformError {
    fn from(error: EmbeddedError) -> ConformError {
        ConformError::Embedded(error.to_string())
    }
}

/// Judges a dealer.
///
/// # Errors
/// If it is not reached, or cannot be called without harm.
pub async fn conform(request: &Request) -> Result<Report, ConformError> {
    let clock = Clock::starting_in(Duration::ZERO);
    let contract = request.contract.unwrap_or(Contract::V3_0);
    let embedded = match request.url {
        None => Some(Embedded::start(42, contract, &request.options, Binding::A2a).await?),
        Some(_) => None,
    };
    let (card, server) = match (&request.url, &embedded) {
        (Some(url), _) => fetch_first(url, &request.options).await?,
        (None, Some(embedded)) => fetch_first(&embedded.card_url(), &request.options).await?,
        (None, None) => return Err(ConformError::Embedded("it was not started".to_owned())),
    };
    let found = Address::parse(&card.url)
        .map_err(EndpointError::from)
        .and_then(|address| endpoint::read_card(&address, server.as_deref(), &card.body, request.contract))
        .map(|endpoint| Endpoint { is_embedded: embedded.is_some(), ..endpoint });
    let mut seen = Evidence {
        contract: found.as_ref().map_or(contract, |endpoint| endpoint.contract),
        card: Some(card),
        headers: request.headers,
        leads: false,
        now: clock.started(),
        exchanges: Vec::new(),
        knocks: Vec::new(),
        stopped: None,
    };
    match &found {
        Ok(endpoint) => ask(endpoint, request, clock, &mut seen).await?,
        Err(error) => seen.stopped = Some(format!("no call was made: {error}")),
    }
    let results = judge(&seen);
    let elapsed = Duration::from_nanos(clock.now());
    Ok(Report::new(found.ok(), seen, results, clock.started(), elapsed))
}

/// The first of the places where a card may be that has one; with none of them, what the first one answered.
async fn fetch_first(url: &str, options: &Options) -> Result<(CardSeen, Option<String>), ConformError> {
    let mut reason = String::new();
    for address in endpoint::card_addresses(&Address::parse(url)?) {
        match fetch_card(&address, options).await {
            Ok(fetched) if fetched.0.status == 200 => return Ok(fetched),
            Ok((card, _)) => reason = format!("HTTP {} instead of an agent card", card.status),
            Err(CardError::Prepare(error)) if error.is_usage() => return Err(ConformError::Prepare(error)),
            Err(CardError::Prepare(error)) => reason = error.to_string(),
            Err(CardError::Unreached(fault)) => reason = fault.to_string(),
        }
    }
    Err(ConformError::Unreached { url: url.to_owned(), reason })
}

/// Asks everything, within the bounds of what is allowed.
async fn ask(
    endpoint: &Endpoint,
    request: &Request,
    clock: Clock,
    seen: &mut Evidence,
) -> Result<(), ConformError> {
    let card_origin = seen.card.as_ref().and_then(|card| Some(Address::parse(&card.url).ok()?.origin()));
    if card_origin != Some(endpoint.address.origin()) && may_hold_secrets(&request.options.headers) {
        seen.stopped = Some(
            "no call was made: the card sends requests to another origin, to which credentials are not sent"
                .to_owned(),
        );
        return Ok(());
    }
    let consent =
        Consent { real_leads: request.allow_real_leads, draft_contract: request.allow_draft_contract };
    endpoint::guard(endpoint, false, &[], consent).map_err(|harms| {
        ConformError::Harm(harms.iter().map(Harm::to_string).collect::<Vec<_>>().join("\n"))
    })?;
    seen.leads = endpoint.is_simulator || endpoint.is_embedded || request.allow_real_leads;
    let deadline = units::nanos(request.timeout);
    let mut caller = match Caller::prepare(endpoint, &request.options, clock, deadline).await {
        Ok(caller) => caller,
        Err(error @ (PrepareError::Resolve { .. } | PrepareError::Tls(_))) => {
            seen.stopped = Some(format!("no call was made: {error}"));
            return Ok(());
        }
    };
    let mut probes = request::probes()?;
    let in_order: Vec<_> = rules()
        .filter(|rule| rule.applies.to(endpoint.contract))
        .filter_map(|rule| Some((rule.id, probes.remove(rule.id)?)))
        .collect();
    let skills: Vec<String> = seen
        .card
        .as_ref()
        .and_then(|card| card.card()?.get("skills")?.as_array())
        .into_iter()
        .flatten()
        .filter_map(|skill| Some(skill.get("id")?.as_str()?.to_owned()))
        .collect();
    survey::survey(&mut caller, &in_order, &skills, seen.leads).await;
    seen.exchanges = std::mem::take(&mut caller.exchanges);
    seen.stopped = caller.stopped.take();
    doors::visit(&request.options, clock, deadline, seen).await;
    Ok(())
}

/// Holds the evidence against every rule of its contract.
fn judge(seen: &Evidence) -> Vec<Judged> {
    let apply = |rule: &'static Rule| {
        let finding = match rule.judge {
            Judge::Probe(expect) => judge_probe(rule.id, expect, seen),
            Judge::Law(law) => law(seen),
        };
        Judged { rule, finding }
    };
    rules().filter(|rule| rule.applies.to(seen.contract)).map(apply).collect()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn the_table_and_the_requests_belong_together() {
        let probes = request::probes().unwrap();
        let ids: HashSet<_> = rules().map(|rule| rule.id).collect();
        assert_eq!(ids.len(), rules().count(), "an id stands twice in the table");
        assert!(ids.len() >= 120, "{}", ids.len());
        for id in probes.keys() {
            assert!(ids.contains(id.as_str()), "the request {id} belongs to no rule");
        }
        for rule in rules() {
            let has_request = probes.contains_key(rule.id);
            // This one takes what another request left behind: the survey asks it.
            let is_surveyed = rule.id == "lead.key-conflict";
            assert!(
                has_request || is_surveyed || matches!(rule.judge, Judge::Law(_)),
                "{} has no request",
                rule.id
            );
            assert!(!rule.source.is_empty() && !rule.title.is_empty());
        }
    }
}
