//! What the benches share: dealers of two sizes, and calls as their bodies come off the wire.

pub mod borrowed;

use bytes::Bytes;
use dealer_sim::dealer::clock::Now;
use dealer_sim::dispatch::{Entrance, Fields, Request, Scratch};
use dealer_sim::journal::{Delivery, DeliveryState, Journal, Limits, Pending, Shard};
use dealer_sim::protocol::{Contract, Skill};
use dealer_sim::{BuildError, Dealer};
use hyper::HeaderMap;
use hyper::header::HeaderValue;
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};
use std::time::Instant;

/// The sizes of stock that every bench is run at.
pub const SIZES: [u32; 2] = [500, 100_000];

/// A dealer, and what it takes to call it again and again.
pub struct Bench {
    dealer: Dealer,
    head: HeaderMap,
    scratch: Scratch,
    out: Vec<u8>,
    nonce: u64,
    record: Option<(Shard, Pending)>,
    opened: Instant,
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
            record: None,
            opened: now(),
        })
    }

    /// The same calls, each recorded as the server records them, in a journal of the usual size.
    #[must_use]
    pub fn with_journal(mut self) -> Bench {
        self.record = Some((Journal::new(Limits::default(), 2).shard(0), Pending::new(1)));
        self.scratch = Scratch::noting();
        self
    }

    /// One call as the server makes it, which keeps body and reply by reference until the delivery has ended.
    pub fn serve(&mut self, body: &Bytes) -> Bytes {
        self.nonce += 1;
        let fields = fields(&self.head);
        let faults = Some(&self.dealer.world().first().faults);
        let entrance = Entrance::A2a;
        let request =
            Request { entrance, fields, head: &self.head, body, nonce: self.nonce, faults, in_flight: 1 };
        let mut out = Vec::with_capacity(8 << 10);
        let at = Now { business: MID_2026, traffic_ns: 0 };
        self.dealer.dispatch(&mut self.scratch, &request, at, &mut out);
        let reply = Bytes::from(out);
        if let Some((shard, pending)) = &mut self.record {
            self.scratch.take_notes(&mut pending.notes);
            let caller = (fields.client, fields.key);
            pending.set_facts((at.business, at.traffic_ns), caller, self.dealer.world().first().id());
            pending.head = fields.head;
            pending.ordinal += 1;
            pending.keep_request(body, shard);
            pending.http_status = 200;
            pending.reply = reply.clone();
            shard.begin_writing();
            let took_ns = self.opened.elapsed().as_nanos() as u64;
            let bytes = reply.len() as u64;
            pending.record(shard, Delivery { bytes, state: DeliveryState::Complete, took_ns });
            shard.end_writing();
        }
        reply
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
        let fields = fields(&self.head);
        let faults = Some(&self.dealer.world().first().faults);
        let request = Request {
            entrance: Entrance::A2a,
            fields,
            head: &self.head,
            body,
            nonce: self.nonce,
            faults,
            in_flight: 1,
        };
        let now = Now { business: MID_2026, traffic_ns: 0 };
        self.dealer.dispatch(&mut self.scratch, &request, now, &mut self.out);
        &self.out
    }

    /// The VIN of a listed vehicle with a price.
    pub fn vin(&self) -> String {
        self.dealer.world().first().scene().dealer.inventory().fixtures().available_vin.unwrap_or_default()
    }
}

/// What the fields say, read as the server reads them for each request.
fn fields(head: &HeaderMap) -> Fields<'_> {
    Fields::read(std::net::Ipv4Addr::LOCALHOST.into(), head, Some(Contract::V3_0))
}

#[expect(clippy::disallowed_methods, reason = "the end of a delivery is timed, and so is its bench")]
fn now() -> Instant {
    Instant::now()
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

/// A call of each skill, as it is sent again and again; `vin` is a listed vehicle's.
pub fn calls(vin: &str) -> [(Skill, Value); 5] {
    [
        (Skill::DealerInformation, json!({ "type": "dealer.information.request" })),
        (Skill::InventoryFacets, json!({ "type": "inventory.facets.request" })),
        (Skill::InventorySearch, search()),
        (Skill::InventoryVehicle, json!({ "type": "inventory.vehicle.request", "vin": vin })),
        (Skill::LeadSubmit, lead(1)),
    ]
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
