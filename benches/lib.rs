//! What the benches share: dealers of two sizes, and calls as their bodies come off the wire.

use dealer_sim::dealer::clock::Now;
use dealer_sim::dispatch::{Request, Scratch};
use dealer_sim::protocol::{Contract, Skill};
use dealer_sim::{BuildError, Dealer};
use hyper::HeaderMap;
use hyper::header::HeaderValue;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

/// The sizes of stock that every bench is run at.
pub const SIZES: [u32; 2] = [500, 100_000];

/// A dealer, and what it takes to call it again and again.
pub struct Bench {
    dealer: Dealer,
    head: HeaderMap,
    scratch: Scratch,
    out: Vec<u8>,
    nonce: u64,
}

impl Bench {
    /// A dealer with a stock of this size.
    ///
    /// # Errors
    /// When the stock cannot be generated.
    pub fn new(vehicles: u32) -> Result<Bench, BuildError> {
        let mut head = HeaderMap::new();
        head.insert("content-type", HeaderValue::from_static("application/json"));
        head.insert("a2a-version", HeaderValue::from_static("1.0"));
        head.insert("a2a-extensions", HeaderValue::from_static(Contract::V3_0.extension_uri));
        Ok(Bench {
            dealer: Dealer::builder().vehicles(vehicles).build()?,
            head,
            scratch: Scratch::default(),
            out: Vec::with_capacity(1 << 16),
            nonce: 0,
        })
    }

    /// The same calls from a caller whose header fields conflict with the contract.
    #[must_use]
    pub fn with_conflicting_headers(mut self) -> Bench {
        self.head.insert("a2a-extensions", HeaderValue::from_static(Contract::V2_0.extension_uri));
        self
    }

    /// One call; the reply's body.
    pub fn call(&mut self, body: &[u8]) -> &[u8] {
        self.nonce += 1;
        self.out.clear();
        let peer = std::net::Ipv4Addr::LOCALHOST.into();
        let faults = Some(&self.dealer.world().first().faults);
        let request = Request { peer, head: &self.head, body, nonce: self.nonce, faults, in_flight: 1 };
        let now = Now { business: MID_2026, traffic_ns: 0 };
        self.dealer.dispatch(&mut self.scratch, &request, now, &mut self.out);
        &self.out
    }

    /// The VIN of a listed vehicle with a price.
    pub fn vin(&self) -> String {
        self.dealer.world().first().scene().dealer.inventory().fixtures().available_vin.unwrap_or_default()
    }
}

/// 2026-06-01T12:00:00Z, frozen: a bench measures the same work on every day.
const MID_2026: Timestamp = Timestamp::constant(1_780_315_200, 0);

/// The body of a call.
pub fn body(skill: Skill, payload: &Value) -> Vec<u8> {
    let call = json!({
        "jsonrpc": "2.0",
        "id": "req-1",
        "method": "SendMessage",
        "params": {
            "message": {
                "messageId": "01HZ9F4M7C0X3K5RN8B3WJTW2P",
                "contextId": "ctx_example_001",
                "role": "ROLE_USER",
                "parts": [{ "data": payload, "mediaType": skill.request_media_type() }],
            },
            "configuration": { "acceptedOutputModes": [skill.response_media_type()] },
        },
    });
    call.to_string().into_bytes()
}

/// A search as an agent sends it.
pub fn search() -> Value {
    json!({
        "type": "inventory.search.request",
        "filters": { "make": ["Honda"], "condition": ["used", "cpo"], "year_min": 2020, "price_max": 30000 },
        "pagination": { "skip": 0, "limit": 20 },
        "sort": { "field": "price", "order": "asc" },
        "privacy": { "anonymous": true },
    })
}

/// A lead; `n` makes it one of its own.
pub fn lead(n: u64) -> Value {
    json!({
        "type": "lead.submit.request",
        "customer": { "first_name": "Anna", "last_name": format!("Lee {n}"), "email": "anna@example.com" },
        "consent": {
            "granted_at": "2026-05-30T10:16:00Z", "allowed_channels": ["email", "phone"],
            "consent_text": "I agree to share my contact info.", "scope": ["lead_submission"],
        },
        "source_agent": { "name": "bench" },
        "idempotency_key": format!("key-{n}"),
    })
}

/// A query of the fixed set in `queries.json`.
#[derive(Debug, Deserialize)]
pub struct NamedQuery {
    /// What it stands for.
    pub name: String,
    /// The request payload.
    pub payload: Value,
}

impl NamedQuery {
    /// The skill it asks.
    pub fn skill(&self) -> Option<Skill> {
        Skill::from_request_type(self.payload.get("type")?.as_str()?)
    }
}

/// The fixed set of queries.
///
/// # Errors
/// When the file is not what it should be.
pub fn queries() -> Result<Vec<NamedQuery>, serde_json::Error> {
    serde_json::from_str(include_str!("queries.json"))
}
