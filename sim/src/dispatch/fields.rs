//! What a request's header fields say of it: who calls, how it names itself, and what it activates.

use std::net::IpAddr;

use hyper::HeaderMap;
use hyper::header::{AUTHORIZATION, HeaderName, IF_MODIFIED_SINCE, IF_NONE_MATCH, USER_AGENT};

use super::Request;
use crate::journal::{Client, Head, Sent};
use crate::protocol::Contract;
use crate::protocol::call::named_key;
use crate::protocol::headers::{is_served, names_exactly, trim};
use crate::stable::{mix, stable_hash};

// The names in the form in which they are compared.
/// A caller may name itself.
const SIM_CLIENT: HeaderName = HeaderName::from_static("x-sim-client");
/// A caller may name the stable key of its request.
const SIM_KEY: HeaderName = HeaderName::from_static("x-sim-key");
/// A caller may ask for a fault.
const SIM_FAULT: HeaderName = HeaderName::from_static("x-sim-fault");
const VERSION: HeaderName = HeaderName::from_static("a2a-version");
const EXTENSIONS: HeaderName = HeaderName::from_static("a2a-extensions");

/// The header fields that matter, read in one pass: over the few fields that there are it takes a fraction of as many
/// look-ups, and dispatch, faults and the journal share what it finds.
#[derive(Debug, Clone, Copy)]
pub struct Fields<'h> {
    /// Who calls: the name it gives itself, else its credential, else its address and program.
    pub client: Client<'h>,
    /// The stable key that the caller gives its request, if it does.
    pub key: Option<u64>,
    /// What a caller's conduct is judged by. Judged strictly, whatever the dealer puts up with: the next one may not.
    pub head: Head,
    /// Whether a fault is asked for.
    pub asks_fault: bool,
}

impl<'h> Fields<'h> {
    /// Reads the fields of a call under this contract, or of a request that is no call.
    pub fn read(peer: IpAddr, fields: &'h HeaderMap, contract: Option<Contract>) -> Fields<'h> {
        let (mut named, mut credential, mut program, mut key) = (None, None, None, None);
        let mut head = Head::default();
        let mut asks_fault = false;
        let mut first_version: Option<&[u8]> = None;
        for (name, value) in fields {
            let value = value.as_bytes();
            // Of several fields of one name the first counts.
            if name == USER_AGENT {
                program.get_or_insert(value);
            } else if name == AUTHORIZATION {
                credential.get_or_insert(value);
            } else if name == IF_NONE_MATCH || name == IF_MODIFIED_SINCE {
                head.conditional = true;
            } else if name == VERSION {
                // Of several of these all count.
                let version = trim(value);
                let is_right = is_served(version) && *first_version.get_or_insert(version) == version;
                head.version =
                    if is_right && head.version != Sent::Wrong { Sent::Right } else { Sent::Wrong };
            } else if name == EXTENSIONS {
                let is_right = contract.is_some_and(|contract| names_exactly(value, contract));
                head.extension =
                    if is_right || head.extension == Sent::Right { Sent::Right } else { Sent::Wrong };
            } else if name == SIM_CLIENT {
                named.get_or_insert(value);
            } else if name == SIM_KEY {
                key.get_or_insert(value);
            } else if name == SIM_FAULT {
                asks_fault = true;
            }
        }
        if contract.is_none() {
            // A request that is no call activates nothing.
            head = Head { conditional: head.conditional, ..Head::default() };
        }
        let client = match (named, credential) {
            (Some(name), _) => Client::Named(name),
            (None, Some(credential)) => Client::Credential(stable_hash(4, credential)),
            (None, None) => Client::Origin { address: peer, program: program.unwrap_or_default() },
        };
        Fields { client, key: key.map(named_key), head, asks_fault }
    }
}

/// The caller as a number.
pub(super) fn client(request: &Request<'_>) -> u64 {
    match request.fields.client {
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
    match request.fields.client {
        Client::Named(name) => std::str::from_utf8(name).map(str::to_owned).ok(),
        _ => None,
    }
    .unwrap_or_else(|| format!("{:016x}", client(request)))
}

#[cfg(test)]
mod tests {
    use hyper::header::HeaderValue;

    use super::*;
    use crate::protocol::HeaderMode;
    use crate::protocol::headers::{check_extensions, check_version};

    /// Every list of up to three of these lines is read as the checks of dispatch read it.
    #[test]
    fn one_pass_finds_what_the_strict_checks_find() {
        let contract = Contract::V3_0;
        let exact = contract.extension_uri;
        let lists = format!("x://a, {exact} ,x://b");
        let near = format!("{exact}/");
        let versions = ["1.0", " 1.0\t", "1.0.7", "0.3", "", "1.0,0.3"];
        let extensions = [exact, &lists, &near, "", "x://a", Contract::V2_0.extension_uri];
        let mut met = [0; 3];
        for (name, lines) in [("a2a-version", versions), ("a2a-extensions", extensions)] {
            for pick in 0..7_usize.pow(3) {
                let mut head = HeaderMap::new();
                for place in [1, 7, 49] {
                    if let Some(line) = lines.get(pick / place % 7) {
                        head.append(name, HeaderValue::from_str(line).unwrap());
                    }
                }
                let given = || head.get_all(name).iter().map(HeaderValue::as_bytes);
                let found = Fields::read(IpAddr::from([127, 0, 0, 1]), &head, Some(contract)).head;
                let (found, passes) = match name {
                    "a2a-version" => (found.version, check_version(HeaderMode::Strict, given()).is_ok()),
                    _ => (found.extension, check_extensions(contract, HeaderMode::Strict, given()).is_ok()),
                };
                let expected = match (given().next(), passes) {
                    (None, _) => Sent::Absent,
                    (Some(_), true) => Sent::Right,
                    (Some(_), false) => Sent::Wrong,
                };
                assert_eq!(found, expected, "{head:?}");
                met[expected as usize] += 1;
            }
        }
        assert!(met.iter().all(|times| *times > 1), "{met:?}");
    }
}
