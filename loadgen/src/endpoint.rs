//! Finds out how to speak to a dealer: reads its agent card and what that links, or takes the user's word.

mod doors;

pub(crate) use doors::skills_of;

use std::time::Duration;

use dealer_sim::protocol::card::{PATH as CARD_PATH, SIMULATOR_PROVIDER};
use dealer_sim::protocol::{Binding, Contract, Skill};
use serde::Deserialize;

use crate::envelope::{may_hold_secrets, own_lines};
use crate::pacer::Clock;
use crate::transport::{Address, AddressError, Client, Config, Fault, Options, PrepareError};

/// What `Server` begins with on every reply of the simulator.
const SIMULATOR_SERVER: &str = "dealer-sim/";

/// A dealer, as far as requests to it need it.
#[derive(Debug, Clone)]
pub(crate) struct Endpoint {
    /// Where requests go; of PAP, where the paths of its skills begin.
    pub(crate) address: Address,
    /// The contract spoken.
    pub(crate) contract: Contract,
    /// The binding spoken through.
    pub(crate) binding: Binding,
    /// The paths of the skills, if each has its own.
    pub(crate) paths: Option<[String; Skill::ALL.len()]>,
    /// The tenant that the card's interface asks to be echoed.
    pub(crate) tenant: Option<String>,
    /// The card's name.
    pub(crate) name: Option<String>,
    /// Whether it has proved itself a simulator: by its `Server` header and by its card's provider.
    pub(crate) is_simulator: bool,
    /// Whether it runs inside this process.
    pub(crate) is_embedded: bool,
}

impl Endpoint {
    /// Path and query of a request of a skill.
    pub(crate) fn target(&self, skill: Skill) -> &str {
        self.paths.as_ref().map_or(&self.address.target, |paths| &paths[skill as usize])
    }
}

/// Why a dealer cannot be spoken to.
#[derive(Debug, thiserror::Error)]
pub(crate) enum EndpointError {
    /// The URL is none.
    #[error(transparent)]
    Address(#[from] AddressError),
    /// The target cannot be prepared for.
    #[error("{url} cannot be reached: {source}")]
    Prepare {
        /// The card's URL.
        url: String,
        /// Why.
        source: PrepareError,
    },
    /// The card did not come.
    #[error("{url} cannot be reached: {fault}")]
    Unreached {
        /// The card's URL.
        url: String,
        /// Why.
        fault: Fault,
    },
    /// Something else than a card came.
    #[error(
        "{url} answered with HTTP {status} instead of an agent card; give the dealer's base URL or the URL of its card, \
         or skip the card with --endpoint-raw"
    )]
    NoCard {
        /// The card's URL.
        url: String,
        /// The status.
        status: u16,
    },
    /// The card is not readable.
    #[error("the agent card at {url} is not valid: {reason}")]
    BadCard {
        /// The card's URL.
        url: String,
        /// What is wrong.
        reason: String,
    },
    /// Credentials were given, and the card sends them elsewhere.
    #[error(
        "the agent card of {card} sends requests to {target}, and the credentials of --bearer-env and --header are not sent \
         to another origin; if that is where they belong, name the URL with --endpoint-raw"
    )]
    OtherOrigin {
        /// The card's origin.
        card: String,
        /// Where it sends requests.
        target: String,
    },
    /// The card links no such interface.
    #[error(
        "the agent card at {url} links no {} interface (params.{0} of its AAP extension); leave --binding out, or name the URL \
         with --endpoint-raw", binding.word()
    )]
    NoDoor {
        /// The card's URL.
        url: String,
        /// What was asked for.
        binding: Binding,
    },
    /// A document that the card links is not what it should be.
    #[error("{url}, which the agent card links, is of no use: {reason}")]
    BadDocument {
        /// The document's URL.
        url: String,
        /// What is wrong.
        reason: String,
    },
    /// The card offers nothing that is spoken here.
    #[error("the agent card at {url} offers {found}; this program speaks {wanted}")]
    NoMatch {
        /// The card's URL.
        url: String,
        /// What the card offers.
        found: String,
        /// What would do.
        wanted: String,
    },
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Card {
    #[serde(default)]
    name: Option<String>,
    #[serde(default)]
    supported_interfaces: Vec<Interface>,
    #[serde(default)]
    capabilities: Capabilities,
    #[serde(default)]
    provider: Option<Provider>,
}

#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Interface {
    url: String,
    protocol_binding: String,
    protocol_version: String,
    #[serde(default)]
    tenant: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
struct Capabilities {
    #[serde(default)]
    extensions: Vec<Extension>,
}

#[derive(Debug, Deserialize)]
struct Extension {
    uri: String,
    #[serde(default)]
    params: serde_json::Value,
}

#[derive(Debug, Deserialize)]
struct Provider {
    #[serde(default)]
    organization: String,
}

/// The dealer of `--endpoint-raw`: nothing is asked, so nothing is proved. The paths of PAP's skills stand below the URL.
pub(crate) fn raw(url: &str, contract: Contract, binding: Binding) -> Result<Endpoint, AddressError> {
    let address = Address::parse(url)?;
    let paths = (binding == Binding::Pap).then(|| doors::usual_paths(&address));
    Ok(Endpoint {
        address,
        contract,
        binding,
        paths,
        tenant: None,
        name: None,
        is_simulator: false,
        is_embedded: false,
    })
}

/// The dealer whose base URL or card URL this is. `wanted` narrows the contracts.
pub(crate) async fn discover(
    url: &str,
    options: &Options,
    wanted: Option<Contract>,
    binding: Binding,
) -> Result<Endpoint, EndpointError> {
    let base = Address::parse(url)?;
    let mut last = None;
    for address in card_addresses(&base) {
        let (status, server, body) = get(&address, options).await?;
        let url = address.to_string();
        if status == 200 {
            let card = read(&address, server.as_deref(), &body, wanted)?;
            let endpoint = match binding {
                Binding::A2a => card.a2a()?,
                Binding::Mcp => card.mcp()?,
                Binding::Pap => card.pap(options).await?,
            };
            stay_with(&address, &endpoint.address, options)?;
            return Ok(endpoint);
        }
        last = Some(EndpointError::NoCard { url, status });
    }
    Err(last.unwrap_or(EndpointError::NoCard { url: url.to_owned(), status: 0 }))
}

/// Where the card may be: at the URL itself if it names a file, below it, or, since an origin has one default card, at
/// its root.
pub(crate) fn card_addresses(base: &Address) -> Vec<Address> {
    let path = base.target.split('?').next().unwrap_or_default();
    if path.ends_with(".json") {
        return vec![base.clone()];
    }
    let below = format!("{}{CARD_PATH}", path.trim_end_matches('/'));
    let mut addresses = vec![base.with_target(&below)];
    if below != CARD_PATH {
        addresses.push(base.with_target(CARD_PATH));
    }
    addresses
}

/// Whoever writes a card could have the credentials sent anywhere, if they were sent to other origins than its own.
fn stay_with(card: &Address, target: &Address, options: &Options) -> Result<(), EndpointError> {
    let (card, target) = (card.origin(), target.origin());
    if card != target && may_hold_secrets(&options.headers) {
        return Err(EndpointError::OtherOrigin { card, target });
    }
    Ok(())
}

async fn get(address: &Address, options: &Options) -> Result<(u16, Option<String>, Vec<u8>), EndpointError> {
    let url = address.to_string();
    let prepared = Config::prepare(address, options).await;
    let config = prepared.map_err(|source| EndpointError::Prepare { url: url.clone(), source })?;
    let client = Client::new(config, Clock::starting_in(Duration::ZERO), 1, 0);
    let request = format!(
        "GET {} HTTP/1.1\r\nHost: {}\r\n{}Connection: close\r\n\r\n",
        address.target,
        address.authority,
        own_lines(&options.headers),
    );
    let unreached = |fault| EndpointError::Unreached { url: url.clone(), fault };
    let mut connection = client.acquire().await.map_err(unreached)?;
    let exchange = client.exchange(&mut connection, request.as_bytes()).await;
    let span = exchange.reply.map_err(unreached)?;
    let reply = connection.reply(&span);
    Ok((reply.status, reply.header("server").map(str::to_owned), reply.body.to_vec()))
}

/// What a card says about how to speak to its dealer by A2A.
pub(crate) fn read_card(
    address: &Address,
    server: Option<&str>,
    body: &[u8],
    wanted: Option<Contract>,
) -> Result<Endpoint, EndpointError> {
    read(address, server, body, wanted)?.a2a()
}

/// A card that was read: whose it is, and where its doors are.
struct Seen {
    address: Address,
    card: Card,
    contract: Contract,
    /// The params of the card's AAP entry.
    params: serde_json::Value,
    /// Whether the card's sender says that it is a simulator.
    is_simulator: bool,
}

impl Seen {
    /// The dealer behind one of the doors.
    fn endpoint(&self, target: Address, binding: Binding, tenant: Option<String>) -> Endpoint {
        // The proof is of who sent the card; it does not reach to another host that the card names.
        let is_simulator = self.is_simulator && target.origin() == self.address.origin();
        Endpoint {
            address: target,
            contract: self.contract,
            binding,
            paths: None,
            tenant,
            name: self.card.name.clone(),
            is_simulator,
            is_embedded: false,
        }
    }

    /// The dealer by A2A.
    fn a2a(&self) -> Result<Endpoint, EndpointError> {
        let url = self.address.to_string();
        // By version, not by place in the list (AAP digest, section g).
        let interfaces = &self.card.supported_interfaces;
        let interface = interfaces
            .iter()
            .find(|interface| interface.protocol_binding == "JSONRPC" && interface.protocol_version == "1.0")
            .ok_or_else(|| EndpointError::NoMatch {
                url: url.clone(),
                found: listed(
                    "the interfaces",
                    interfaces.iter().map(|i| format!("{} {}", i.protocol_binding, i.protocol_version)),
                ),
                wanted: "JSONRPC 1.0".to_owned(),
            })?;
        let target = Address::parse(&interface.url)
            .map_err(|error| EndpointError::BadCard { url, reason: error.to_string() })?;
        Ok(self.endpoint(target, Binding::A2a, interface.tenant.clone()))
    }
}

fn read(
    address: &Address,
    server: Option<&str>,
    body: &[u8],
    wanted: Option<Contract>,
) -> Result<Seen, EndpointError> {
    let url = address.to_string();
    let card: Card = serde_json::from_slice(body)
        .map_err(|error| EndpointError::BadCard { url: url.clone(), reason: error.to_string() })?;
    let known = |extension: &Extension| {
        let contract = Contract::from_extension_uri(&extension.uri)?;
        wanted.is_none_or(|wanted| wanted == contract).then(|| (contract, extension.params.clone()))
    };
    let (contract, params) = card.capabilities.extensions.iter().find_map(known).ok_or_else(|| {
        let contracts: Vec<Contract> = wanted.map_or(Contract::ALL.to_vec(), |wanted| vec![wanted]);
        let wanted: Vec<_> = contracts.iter().map(|contract| contract.extension_uri).collect();
        EndpointError::NoMatch {
            url: url.clone(),
            found: listed("the extensions", card.capabilities.extensions.iter().map(|e| e.uri.clone())),
            wanted: wanted.join(" or "),
        }
    })?;
    let is_simulator = server.is_some_and(|server| server.starts_with(SIMULATOR_SERVER))
        && card.provider.as_ref().is_some_and(|provider| provider.organization == SIMULATOR_PROVIDER);
    Ok(Seen { address: address.clone(), card, contract, params, is_simulator })
}

fn listed(what: &str, items: impl Iterator<Item = String>) -> String {
    let items: Vec<_> = items.take(20).collect();
    if items.is_empty() { format!("none of {what} at all") } else { format!("{what} {}", items.join(", ")) }
}

/// What a user has allowed.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Consent {
    /// Leads may go to a real dealer.
    pub(crate) real_leads: bool,
    /// The identifiers of an unreleased contract may go to a host other than this one.
    pub(crate) draft_contract: bool,
}

/// Why a run would harm someone.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum Harm {
    /// Leads to a dealer that may be real.
    #[error(
        "the scenario submits leads, and {0} has not proved itself a simulator; to send leads to a real dealer, marked \
         as tests, say --allow-real-leads"
    )]
    RealLeads(String),
    /// Leads that no test mark can be put into.
    #[error(
        "the `raw` of {steps} may send a lead that no test mark can be put into, and {address} has not proved itself a \
         simulator; write what is to be sent into `request`"
    )]
    HiddenLeads {
        /// The steps.
        steps: String,
        /// The endpoint.
        address: String,
    },
    /// Draft identifiers to a dealer that may be in production.
    #[error(
        "contract {contract} is a draft, whose identifiers must not reach a dealer in production, and {address} is \
         neither on this machine nor a simulator; if it is a test system, say --allow-draft-contract"
    )]
    Draft {
        /// The contract.
        contract: String,
        /// The endpoint.
        address: String,
    },
}

/// Whether a run may go ahead, and, if so, whether its leads are marked as tests. `hidden_leads` are the steps whose leads
/// cannot be.
pub(crate) fn guard(
    endpoint: &Endpoint,
    submits_leads: bool,
    hidden_leads: &[String],
    consent: Consent,
) -> Result<bool, Vec<Harm>> {
    let is_safe = endpoint.is_embedded || endpoint.is_simulator;
    let mut harms = Vec::new();
    if submits_leads && !is_safe && !consent.real_leads {
        harms.push(Harm::RealLeads(endpoint.address.to_string()));
    }
    if !is_safe && !hidden_leads.is_empty() {
        let (steps, address) = (hidden_leads.join(", "), endpoint.address.to_string());
        harms.push(Harm::HiddenLeads { steps, address });
    }
    // AAP digest, section a: the draft's placeholder domain is what must not be sent.
    let is_draft = endpoint.contract.extension_uri.contains(".invalid/");
    if is_draft && !is_safe && !endpoint.address.is_loopback() && !consent.draft_contract {
        harms.push(Harm::Draft {
            contract: endpoint.contract.to_string(),
            address: endpoint.address.to_string(),
        });
    }
    if harms.is_empty() { Ok(submits_leads && !is_safe) } else { Err(harms) }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    fn card() -> Value {
        json!({
            "name": "Harbor Motors",
            "supportedInterfaces": [
                {"url": "http://127.0.0.1:1/old", "protocolBinding": "JSONRPC", "protocolVersion": "0.3"},
                {"url": "http://127.0.0.1:8080/a2a", "protocolBinding": "JSONRPC", "protocolVersion": "1.0", "tenant": "t"}
            ],
            "provider": {"organization": SIMULATOR_PROVIDER, "url": "https://example.test"},
            "capabilities": {"extensions": [
                {"uri": "https://example.org/other"},
                {"uri": "https://autoagentprotocol.org/extensions/aap/v3.0", "required": true}
            ]}
        })
    }

    fn read(card: &Value, server: &str, wanted: Option<Contract>) -> Result<Endpoint, EndpointError> {
        let address = Address::parse("http://127.0.0.1:8080/.well-known/agent-card.json").unwrap();
        read_card(&address, Some(server), card.to_string().as_bytes(), wanted)
    }

    #[test]
    fn the_card_says_where_and_how() {
        let endpoint = read(&card(), "dealer-sim/0.1.0", None).unwrap();
        assert_eq!(endpoint.address.to_string(), "http://127.0.0.1:8080/a2a");
        assert_eq!(endpoint.contract, Contract::V3_0);
        assert_eq!(endpoint.tenant.as_deref(), Some("t"));
        assert!(endpoint.is_simulator);
    }

    #[test]
    fn a_simulator_proves_itself_twice_and_only_for_itself() {
        assert!(!read(&card(), "nginx", None).unwrap().is_simulator);
        let mut other_provider = card();
        other_provider["provider"]["organization"] = json!("Harbor Motors Inc.");
        assert!(!read(&other_provider, "dealer-sim/0.1.0", None).unwrap().is_simulator);
        let mut elsewhere = card();
        elsewhere["supportedInterfaces"][1]["url"] = json!("https://dealer.example/a2a");
        assert!(!read(&elsewhere, "dealer-sim/0.1.0", None).unwrap().is_simulator);
    }

    #[test]
    fn what_is_missing_is_said() {
        let mut no_interface = card();
        no_interface["supportedInterfaces"] =
            json!([{"url": "x", "protocolBinding": "GRPC", "protocolVersion": "1.0"}]);
        let error = read(&no_interface, "", None).unwrap_err().to_string();
        assert!(error.contains("GRPC 1.0") && error.contains("JSONRPC 1.0"), "{error}");
        let error = read(&card(), "", Some(Contract::V2_0)).unwrap_err().to_string();
        assert!(error.contains("extensions/aap/v3.0") && error.contains("draft"), "{error}");
        assert!(matches!(read(&json!("no card"), "", None), Err(EndpointError::BadCard { .. })));
    }

    #[test]
    fn the_card_is_looked_for_below_the_url_and_at_the_root() {
        let targets = |url: &str| -> Vec<String> {
            card_addresses(&Address::parse(url).unwrap()).into_iter().map(|address| address.target).collect()
        };
        assert_eq!(targets("http://h"), [CARD_PATH]);
        assert_eq!(targets("http://h/"), [CARD_PATH]);
        assert_eq!(targets("http://h/d/7/"), [&format!("/d/7{CARD_PATH}"), CARD_PATH]);
        assert_eq!(targets("http://h/x/agent-card.json"), ["/x/agent-card.json"]);
    }

    #[test]
    fn the_guard_protects_real_dealers() {
        let endpoint = |url: &str, contract, is_simulator| Endpoint {
            is_simulator,
            ..raw(url, contract, Binding::A2a).unwrap()
        };
        let none = Consent::default();
        let real = endpoint("https://dealer.example/a2a", Contract::V3_0, false);
        assert_eq!(guard(&real, false, &[], none), Ok(false));
        assert!(guard(&real, true, &[], none).is_err());
        assert_eq!(guard(&real, true, &[], Consent { real_leads: true, ..none }), Ok(true));
        let hidden = ["f/s".to_owned()];
        assert!(guard(&real, true, &hidden, Consent { real_leads: true, ..none }).is_err());
        assert_eq!(guard(&endpoint("http://sim:1/", Contract::V3_0, true), true, &hidden, none), Ok(false));
        // Loopback proves nothing about who takes the leads.
        assert!(guard(&endpoint("http://127.0.0.1:1/", Contract::V3_0, false), true, &[], none).is_err());
        assert_eq!(guard(&endpoint("http://sim:1/", Contract::V3_0, true), true, &[], none), Ok(false));

        let draft = endpoint("https://dealer.example/a2a", Contract::V2_0, false);
        assert_eq!(guard(&draft, true, &[], none).unwrap_err().len(), 2);
        assert_eq!(guard(&draft, false, &[], Consent { draft_contract: true, ..none }), Ok(false));
        assert_eq!(guard(&endpoint("http://[::1]:1/", Contract::V2_0, false), false, &[], none), Ok(false));
        assert_eq!(guard(&endpoint("http://sim:1/", Contract::V2_0, true), false, &[], none), Ok(false));
    }
}
