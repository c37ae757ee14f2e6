//! The flags of `conform`, read.

use std::time::Duration;

use super::Reader;
use super::connections::{self, Times};
use crate::cli::ConformArgs;
use crate::conform::{Headers, Request};
use crate::transport::Reuse;

/// A handshake that takes longer than `run` waits for is none, whatever a request may take.
const LONGEST_HANDSHAKE: Duration = Duration::from_secs(2);

/// What is to be judged.
///
/// # Errors
/// With all that is wrong.
pub(crate) fn read(
    args: &ConformArgs,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Request, Vec<String>> {
    let mut reader = Reader { faults: Vec::new() };
    let contract = args.dealer.contract.as_deref().and_then(|text| match text.parse() {
        Ok(contract) => Some(contract),
        Err(error) => {
            reader.fault(format!("--contract: {error}"));
            None
        }
    });
    let headers = reader.value("headers", &args.header_mode, "usual, strict or pinned", |text| match text {
        "usual" => Some(Headers::Usual),
        "strict" => Some(Headers::Strict),
        "pinned" => Some(Headers::Pinned),
        _ => None,
    });
    let is_form = |text: &str| ["text", "json", "html", "junit", "line"].contains(&text).then_some(());
    reader.value("format", &args.format, "text, json, html, junit or line", is_form);
    let request = reader.positive_duration("request-timeout", &args.request_timeout);
    let times = Times { connect: request.min(LONGEST_HANDSHAKE), request };
    let options = connections::options(&args.identity, times, Reuse::None, &variable, &mut reader);
    let request = Request {
        url: args.dealer.endpoint.clone(),
        contract,
        headers: headers.unwrap_or(Headers::Usual),
        allow_real_leads: args.dealer.allow_real_leads,
        allow_draft_contract: args.dealer.allow_draft_contract,
        options,
        timeout: reader.positive_duration("timeout", &args.timeout),
    };
    if reader.faults.is_empty() { Ok(request) } else { Err(reader.faults) }
}
