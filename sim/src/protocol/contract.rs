//! Contracts: one value per version of AAP. They differ in data, never in code (AAP digest, section a): no other
//! module asks which version it serves.

use std::fmt;
use std::str::FromStr;

use super::binding::{Binding, Bindings};
use super::error::{AapCode, code};

/// What an endpoint does with a request that lacks the two A2A headers (AAP digest, section b). A mode of the endpoint,
/// not of the contract; the contract only says which one is usual.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum HeaderMode {
    /// An absent header is refused.
    Strict,
    /// An absent header selects the one A2A version and contract that the endpoint is configured for.
    Pinned,
    /// Both headers are overlooked, whatever they say: contracts before 2.0 have no rule about them, and the dealers that
    /// serve those read neither. Nothing is echoed, since nothing was activated.
    Ignored,
}

impl fmt::Display for HeaderMode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HeaderMode::Strict => "strict",
            HeaderMode::Pinned => "pinned",
            HeaderMode::Ignored => "ignored",
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
    /// Whether each reply must name its conversation. The 1.x pages show no `contextId` in replies, and A2A 1.0 (3.4.1) leaves
    /// it to an agent to make one, which must then come with the reply: ours does, under every contract.
    pub replies_name_context: bool,
    /// How `error.data` of a skill error is built.
    pub error_shape: ErrorShape,
    /// Whether each fault of a payload must be listed in `details.errors[]` (from 1.1 on; before, `details` is free). Ours are
    /// listed under every contract.
    pub lists_faults: bool,
    /// The JSON-RPC number of each [`AapCode`], in the order of [`AapCode::ALL`].
    pub numbers: [i32; 12],
    /// Whether the card's extension entry says `"required": true`. It must from 2.0 on, and the pages of 1.1 do; the other
    /// 1.x contracts leave it to the dealer (AAP digest, section a), and ours leaves it out, so that clients meet both.
    pub card_says_required: bool,
    /// Whether the card's extension entry must carry search capabilities and links to the other bindings.
    pub card_has_links: bool,
    /// The interfaces through which a dealer of this contract is reached. MCP and PAP are first-class from 3.0 on.
    pub bindings: Bindings,
}

/// Members of payloads that only some contracts know (AAP digest, section a; the schemas of each release).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Features {
    /// A price for the buyer's region: Vehicle's `offered_price` and `zip`, and the sort by it (1.0). No request can name a
    /// ZIP code, so no listing of ours has them.
    pub regional_price: bool,
    /// `source_agent` is a text, and stands in the consent too (1.0); from 1.1 on it is an object, at the top alone.
    pub agent_as_text: bool,
    /// Classes of unit and what comes with them: `vehicle_type`, `displacement_cc`, `other_attributes` and the electric
    /// members but `electric_range_mi`, with their filters and facets (from 1.2 on).
    pub vehicle_classes: bool,
    /// `fees` of a vehicle and of a rooftop (from 1.3 on). Before, `price` was to be the out-the-door price; from 1.3 on it
    /// leaves out what the government takes. The number of a listing of ours is the same under every contract.
    pub fees: bool,
    /// `filters.status` (3.0).
    pub status_filter: bool,
}

/// How `error.data` of a skill error is built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ErrorShape {
    /// The typed entry alone, as one object, which is closed and has no `@type` (1.x: `error.schema.json`).
    Object,
    /// An array of entries with `@type`: ErrorInfo, BadRequest, the typed entry (from 2.0 on).
    Array,
}

/// The numbers of the 1.x error pages: a skill that is not offered is a method not found, and a limit has a number of its
/// own.
const NUMBERS_1_0: [i32; 12] = [
    code::INVALID_PARAMS,
    code::INVALID_PARAMS,
    code::INVALID_PARAMS,
    code::METHOD_NOT_FOUND,
    code::APPLICATION,
    code::APPLICATION,
    code::APPLICATION,
    code::APPLICATION,
    code::APPLICATION,
    code::APPLICATION,
    code::RATE_LIMITED_1_X,
    code::INTERNAL,
];

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

static V1_0: Terms = Terms {
    name: "1.0",
    version: "1.0.0",
    extension_uri: "https://autoagentprotocol.org/extensions/a2a-automotive-retail/v1.0",
    schema_base_url: "https://autoagentprotocol.org/v1.0/schemas/",
    default_headers: HeaderMode::Ignored,
    features: Features {
        regional_price: true,
        agent_as_text: true,
        vehicle_classes: false,
        fees: false,
        status_filter: false,
    },
    replies_name_context: false,
    error_shape: ErrorShape::Object,
    lists_faults: false,
    numbers: NUMBERS_1_0,
    card_says_required: false,
    card_has_links: false,
    bindings: Bindings::of(&[Binding::A2a]),
};

static V1_1: Terms = Terms {
    name: "1.1",
    version: "1.1.0",
    extension_uri: "https://autoagentprotocol.org/extensions/aap/v1.1",
    schema_base_url: "https://autoagentprotocol.org/v1.1/schemas/",
    features: Features { regional_price: false, agent_as_text: false, ..V1_0.features },
    lists_faults: true,
    card_says_required: true,
    ..V1_0
};

static V1_2: Terms = Terms {
    name: "1.2",
    version: "1.2.0",
    extension_uri: "https://autoagentprotocol.org/extensions/aap/v1.2",
    schema_base_url: "https://autoagentprotocol.org/v1.2/schemas/",
    features: Features { vehicle_classes: true, ..V1_1.features },
    card_says_required: false,
    ..V1_1
};

static V1_3: Terms = Terms {
    name: "1.3",
    version: "1.3.0",
    extension_uri: "https://autoagentprotocol.org/extensions/aap/v1.3",
    schema_base_url: "https://autoagentprotocol.org/v1.3/schemas/",
    features: Features { fees: true, ..V1_2.features },
    ..V1_2
};

static V2_0: Terms = Terms {
    name: "2.0",
    version: "2.0.0",
    extension_uri: "https://draft.autoagentprotocol.invalid/extensions/aap/latest",
    schema_base_url: "https://draft.autoagentprotocol.invalid/latest/schemas/",
    default_headers: HeaderMode::Strict,
    replies_name_context: true,
    error_shape: ErrorShape::Array,
    numbers: NUMBERS_2_0,
    card_says_required: true,
    ..V1_3
};

static V3_0: Terms = Terms {
    name: "3.0",
    version: "3.0.0",
    extension_uri: "https://autoagentprotocol.org/extensions/aap/v3.0",
    schema_base_url: "https://autoagentprotocol.org/v3.0/schemas/",
    default_headers: HeaderMode::Pinned,
    features: Features { status_filter: true, ..V2_0.features },
    card_has_links: true,
    bindings: Bindings::ALL,
    ..V2_0
};

/// One version of AAP.
#[derive(Clone, Copy)]
pub struct Contract(&'static Terms);

impl Contract {
    /// Contract 1.0: no header rules, object-shaped errors, `source_agent` as a text.
    pub const V1_0: Contract = Contract(&V1_0);
    /// Contract 1.1: `source_agent` as an object.
    pub const V1_1: Contract = Contract(&V1_1);
    /// Contract 1.2: classes of unit, electric members.
    pub const V1_2: Contract = Contract(&V1_2);
    /// Contract 1.3: `fees`.
    pub const V1_3: Contract = Contract(&V1_3);
    /// The 2.0 draft: strict headers, array-shaped errors.
    pub const V2_0: Contract = Contract(&V2_0);
    /// Contract 3.0: 2.0 plus the `status` filter, pinned endpoints and links to the other bindings.
    pub const V3_0: Contract = Contract(&V3_0);
    /// Every contract served, oldest first.
    pub const ALL: [Contract; 6] =
        [Contract::V1_0, Contract::V1_1, Contract::V1_2, Contract::V1_3, Contract::V2_0, Contract::V3_0];
    /// The one served unless another is asked for.
    pub const NEWEST: Contract = Contract::V3_0;

    /// Those before 2.0: released, and in the field.
    pub const BEFORE_2_0: &[Contract] = &[Contract::V1_0, Contract::V1_1, Contract::V1_2, Contract::V1_3];
    /// Those that know `fees`.
    pub const FROM_1_3: &[Contract] = &[Contract::V1_3, Contract::V2_0, Contract::V3_0];
    /// Those from 2.0 on.
    pub const FROM_2_0: &[Contract] = &[Contract::V2_0, Contract::V3_0];

    /// The names of all contracts in a sentence, such as `1.0, 1.1 and 2.0`.
    pub fn names() -> String {
        let [first @ .., last] = Contract::ALL.map(|contract| contract.name);
        format!("{} and {last}", first.join(", "))
    }

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
#[error("unknown contract {name:?}; the contracts are {}", Contract::names())]
pub struct UnknownContract {
    /// What was given.
    pub name: String,
}
