//! Who calls: for limits, for rules and for the journal.

use std::net::IpAddr;

use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, HeaderName, HeaderValue, IF_MODIFIED_SINCE, IF_NONE_MATCH, USER_AGENT};

use super::{Request, SIM_KEY};
use crate::journal::{Client, Head, Sent};
use crate::protocol::call::named_key;
use crate::protocol::headers::{check_extensions, check_version};
use crate::protocol::{Contract, HeaderMode};
use crate::stable::{mix, stable_hash};

/// A caller may name itself.
const SIM_CLIENT: HeaderName = HeaderName::from_static("x-sim-client");

/// Where their lines are found: header names in the form in which they are looked up.
const VERSION: HeaderName = HeaderName::from_static("a2a-version");
const EXTENSIONS: HeaderName = HeaderName::from_static("a2a-extensions");

/// Who calls: the name it gives itself, else its credential, else its address and program; and the stable key that it gives
/// its request, if it does. One pass over the few fields that there are takes a fraction of four look-ups.
pub fn caller(peer: IpAddr, head: &HeaderMap) -> (Client<'_>, Option<u64>) {
    let (mut named, mut credential, mut program, mut key) = (None, None, None, None);
    for (name, value) in head {
        let place = match name {
            name if name == USER_AGENT => &mut program,
            name if name == AUTHORIZATION => &mut credential,
            name if name == SIM_CLIENT => &mut named,
            name if name == SIM_KEY => &mut key,
            _ => continue,
        };
        // Of several fields of one name the first counts.
        place.get_or_insert(value.as_bytes());
    }
    let client = match (named, credential) {
        (Some(name), _) => Client::Named(name),
        (None, Some(credential)) => Client::Credential(stable_hash(4, credential)),
        (None, None) => Client::Origin { address: peer, program: program.unwrap_or_default() },
    };
    (client, key.map(named_key))
}

/// What the header fields say by which a caller's conduct is judged; of a request that is no call there is no contract.
pub fn head_facts(fields: &HeaderMap, contract: Option<Contract>) -> Head {
    let conditional = fields.contains_key(IF_NONE_MATCH) || fields.contains_key(IF_MODIFIED_SINCE);
    let Some(contract) = contract else { return Head { conditional, ..Head::default() } };
    let lines = |name| fields.get_all(name).iter().map(HeaderValue::as_bytes);
    let judged = |name, is_right: bool| match (fields.contains_key(name), is_right) {
        (false, _) => Sent::Absent,
        (true, true) => Sent::Right,
        (true, false) => Sent::Wrong,
    };
    // Judged strictly, whatever the dealer puts up with: the next one may not.
    let version = judged(VERSION, check_version(HeaderMode::Strict, lines(VERSION)).is_ok());
    let is_exact = check_extensions(contract, HeaderMode::Strict, lines(EXTENSIONS)).is_ok();
    Head { version, extension: judged(EXTENSIONS, is_exact), conditional }
}

/// The caller as a number.
pub(super) fn client(request: &Request<'_>) -> u64 {
    match caller(request.peer, request.head).0 {
        Client::Named(name) => stable_hash(3, name),
        Client::Credential(hash) => hash,
        Client::Origin { address, program } => {
            let address = match address {
                IpAddr::V4(address) => stable_hash(5, &address.octets()),
                IpAddr::V6(address) => stable_hash(5, &address.octets()),
            };
            mix(address ^ stable_hash(6, program))
        }
    }
}

/// The caller's name, for rules and reports.
pub(super) fn client_name(request: &Request<'_>) -> String {
    match request.head.get(SIM_CLIENT).and_then(|name| name.to_str().ok()) {
        Some(name) => name.to_owned(),
        None => format!("{:016x}", client(request)),
    }
}
