//! Contracts: one value per version of AAP. They differ in data, never in code (AAP digest, section a): no other
//! module asks which version it serves.

use std::fmt;
use std::str::FromStr;

use super::error::{AapCode, code};

/// What an endpoint does with a request that lacks the two A2A headers (AAP digest, section b). A mode of the endpoint,
/// not of the contract; the contract only says which one is usual.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HeaderMode {
    /// An absent header is refused.
    Strict,
    /// An absent header selects the one A2A version and contract that the endpoint is configured for.
    Pinned,
}

impl fmt::Display for HeaderMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HeaderMode::Strict => "strict",
            HeaderMode::Pinned => "pinned",
        })
    }
}

/// What one contract says. Reached through [`Contract`], which derefs to it.
#[derive(Debug)]
pub struct Terms {
    /// The short name on the command line and in results, such as `3.0`.
    pub name: &'static str,
    /// The full version that the card's extension entry carries.
    pub version: &'static str,
    /// The URI that a client activates with `A2A-Extensions`, byte for byte.
    pub extension_uri: &'static str,
    /// Where the published schemas of the payloads live; ends in a slash.
    pub schema_base_url: &'static str,
    /// The header mode of an endpoint that is not told otherwise.
    pub default_headers: HeaderMode,
    /// Members of payloads that only some contracts know.
    pub features: Features,
    /// How `error.data` of a skill error is built.
    pub error_shape: ErrorShape,
    /// The JSON-RPC number of each [`AapCode`], in the order of [`AapCode::ALL`].
    pub numbers: [i32; 12],
    /// Whether the card's extension entry must carry search capabilities and links to the other bindings.
    pub card_has_links: bool,
}

/// Members of payloads that only some contracts know.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Features {
    /// `filters.status` (3.0).
    pub status_filter: bool,
}

/// How `error.data` of a skill error is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorShape {
    /// The typed entry alone, as one object (1.x).
    Object,
    /// An array of entries with `@type`: ErrorInfo, BadRequest, the typed entry (from 2.0 on).
    Array,
}

/// The recommended numbers of seed 000.
const NUMBERS_2_0: [i32; 12] = [
    code::INVALID_PARAMS,
    code::INVALID_PARAMS,
    code::INVALID_PARAMS,
    code::UNSUPPORTED_OPERATION,
    code::APPLICATION,
    code::APPLICATION,
    code::APPLICATION,
    code::APPLICATION,
    code::APPLICATION,
    code::APPLICATION,
    code::APPLICATION,
    code::INTERNAL,
];

static V2_0: Terms = Terms {
    name: "2.0",
    version: "2.0.0",
    extension_uri: "https://draft.autoagentprotocol.invalid/extensions/aap/latest",
    schema_base_url: "https://draft.autoagentprotocol.invalid/latest/schemas/",
    default_headers: HeaderMode::Strict,
    features: Features { status_filter: false },
    error_shape: ErrorShape::Array,
    numbers: NUMBERS_2_0,
    card_has_links: false,
};

static V3_0: Terms = Terms {
    name: "3.0",
    version: "3.0.0",
    extension_uri: "https://autoagentprotocol.org/extensions/aap/v3.0",
    schema_base_url: "https://autoagentprotocol.org/v3.0/schemas/",
    default_headers: HeaderMode::Pinned,
    features: Features { status_filter: true },
    error_shape: ErrorShape::Array,
    numbers: NUMBERS_2_0,
    card_has_links: true,
};

/// One version of AAP.
#[derive(Clone, Copy)]
pub struct Contract(&'static Terms);

impl Contract {
    /// The 2.0 draft: strict headers, array-shaped errors.
    pub const V2_0: Contract = Contract(&V2_0);
    /// Contract 3.0: 2.0 plus the `status` filter, pinned endpoints and links to the other bindings.
    pub const V3_0: Contract = Contract(&V3_0);
    /// Every contract served, oldest first.
    pub const ALL: [Contract; 2] = [Contract::V2_0, Contract::V3_0];

    /// The JSON-RPC number under which this contract sends a code.
    pub fn number(self, code: AapCode) -> i32 {
        self.numbers[code as usize]
    }

    /// The contract that a card's extension URI names.
    pub fn from_extension_uri(uri: &str) -> Option<Contract> {
        Contract::ALL.into_iter().find(|contract| contract.extension_uri == uri)
    }
}

impl std::ops::Deref for Contract {
    type Target = Terms;

    fn deref(&self) -> &Terms {
        self.0
    }
}

impl PartialEq for Contract {
    fn eq(&self, other: &Contract) -> bool {
        self.name == other.name
    }
}

impl Eq for Contract {}

impl fmt::Debug for Contract {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Contract({})", self.name)
    }
}

impl fmt::Display for Contract {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name)
    }
}

impl FromStr for Contract {
    type Err = UnknownContract;

    fn from_str(name: &str) -> Result<Contract, UnknownContract> {
        Contract::ALL
            .into_iter()
            .find(|contract| contract.name == name)
            .ok_or_else(|| UnknownContract { name: name.to_owned() })
    }
}

/// A contract name that is not served.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown contract {name:?}; the contracts are 2.0 and 3.0")]
pub struct UnknownContract {
    /// What was given.
    pub name: String,
}
