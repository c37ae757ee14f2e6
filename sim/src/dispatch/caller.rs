//! Who calls: for limits, for rules and for the journal.

use std::net::IpAddr;

use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, HeaderName, USER_AGENT};

use super::Request;
use crate::journal::Client;
use crate::stable::{mix, stable_hash};

/// A caller may name itself.
const SIM_CLIENT: HeaderName = HeaderName::from_static("x-sim-client");

/// Who calls: the name it gives itself, else its credential, else its address and program.
pub fn caller(peer: IpAddr, head: &HeaderMap) -> Client<'_> {
    if let Some(name) = head.get(SIM_CLIENT) {
        return Client::Named(name.as_bytes());
    }
    if let Some(credential) = head.get(AUTHORIZATION) {
        return Client::Credential(stable_hash(4, credential.as_bytes()));
    }
    let program = head.get(USER_AGENT).map_or(&b""[..], |value| value.as_bytes());
    Client::Origin { address: peer, program }
}

/// The caller as a number.
pub(super) fn client(request: &Request<'_>) -> u64 {
    match caller(request.peer, request.head) {
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
