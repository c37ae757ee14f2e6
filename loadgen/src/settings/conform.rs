//! The flags of `conform`, read.

use super::{Reader, connections};
use crate::cli::ConformArgs;
use crate::conform::{Headers, Request};
use crate::transport::{MAX_REPLY, Options, Reuse};

/// What is to be judged.
///
/// # Errors
/// With all that is wrong.
pub(crate) fn read(
    args: &ConformArgs,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<Request, Vec<String>> {
    let mut reader = Reader { faults: Vec::new() };
    let contract = args.contract.as_deref().and_then(|text| match text.parse() {
        Ok(contract) => Some(contract),
        Err(error) => {
            reader.fault(format!("--contract: {error}"));
            None
        }
    });
    let headers = reader.value("headers", &args.headers, "usual, strict or pinned", |text| match text {
        "usual" => Some(Headers::Usual),
        "strict" => Some(Headers::Strict),
        "pinned" => Some(Headers::Pinned),
        _ => None,
    });
    let is_form = |text: &str| ["text", "json", "html", "junit", "line"].contains(&text).then_some(());
    reader.value("format", &args.format, "text, json, html, junit or line", is_form);
    let own = (args.header.as_slice(), &args.bearer_env, args.header_env.as_slice());
    let own = connections::read_headers(own, &variable, &mut reader);
    let request_timeout = reader.positive_duration("request-timeout", &args.request_timeout);
    let request = Request {
        url: args.endpoint.clone(),
        contract,
        headers: headers.unwrap_or(Headers::Usual),
        allow_real_leads: args.allow_real_leads,
        allow_draft_contract: args.allow_draft_contract,
        options: Options {
            connect_timeout: request_timeout.min(std::time::Duration::from_secs(2)),
            timeout: request_timeout,
            max_reply: MAX_REPLY,
            reuse: Reuse::None,
            ca: args.ca.clone(),
            insecure: args.insecure,
            identity: None,
            headers: own,
        },
        timeout: reader.positive_duration("timeout", &args.timeout),
    };
    if reader.faults.is_empty() { Ok(request) } else { Err(reader.faults) }
}
