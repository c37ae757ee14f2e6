//! Who calls: for limits, for rules and for the journal.

use std::net::IpAddr;

use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, HeaderName, USER_AGENT};

use super::{Request, SIM_KEY};
use crate::journal::Client;
use crate::protocol::call::named_key;
use crate::stable::{mix, stable_hash};

/// A caller may name itself.
const SIM_CLIENT: HeaderName = HeaderName::from_static("x-sim-client");

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
