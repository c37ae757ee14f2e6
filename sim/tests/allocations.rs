//! What a call costs in allocations, once every bounded table is full: nothing for the read skills in a conversation that is
//! known, little for one that is new, a handful for a lead.
#![allow(
    unsafe_code,
    clippy::unwrap_used,
    reason = "an allocator that counts has to implement an unsafe trait"
)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

use dealer_sim::Dealer;
use dealer_sim::dealer::clock::Now;
use dealer_sim::dealer::conversation::MAX_CONVERSATIONS;
use dealer_sim::dealer::leads::MAX_LEADS;
use dealer_sim::dispatch::{Entrance, Fields, Request, Scratch};
use dealer_sim::protocol::{Contract, Skill, mcp};
use hyper::HeaderMap;
use hyper::header::HeaderValue;
use serde_json::{Value, json};

/// Counts what its thread asks for.
struct Counting;

thread_local! {
    static ASKED: Cell<u64> = const { Cell::new(0) };
}

fn count() {
    // A thread that ends has no cell any more; nobody counts for it.
    _ = ASKED.try_with(|asked| asked.set(asked.get() + 1));
}

// SAFETY: every call goes to the system's allocator unchanged; counting touches a cell without a destructor.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are passed on.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are passed on.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count();
        // SAFETY: the caller's promises are passed on.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static COUNTING: Counting = Counting;

/// A dealer, and what a worker of the server holds to serve it.
struct Worker {
    dealer: Dealer,
    entrance: Entrance,
    head: HeaderMap,
    scratch: Scratch,
    out: Vec<u8>,
    nonce: u64,
}

impl Worker {
    fn new() -> Worker {
        let mut head = HeaderMap::new();
        for (name, value) in [
            ("host", "127.0.0.1:8080"),
            ("user-agent", "agent/1.0"),
            ("content-type", "application/json"),
            ("a2a-version", "1.0"),
            ("a2a-extensions", Contract::V3_0.extension_uri),
        ] {
            head.insert(name, HeaderValue::from_static(value));
        }
        let dealer = Dealer::builder().vehicles(500).build().unwrap();
        Worker {
            dealer,
            entrance: Entrance::A2a,
            head,
            scratch: Scratch::noting(),
            out: Vec::with_capacity(1 << 16),
            nonce: 0,
        }
    }

    /// What comes from now on comes through this interface; of MCP, as calls of this skill.
    fn enter(&mut self, entrance: Entrance, skill: Skill) {
        self.entrance = entrance;
        for (name, value) in [
            ("accept", "application/json, text/event-stream"),
            ("mcp-protocol-version", mcp::MODERN),
            ("mcp-method", "tools/call"),
            ("mcp-name", mcp::tool_name(skill)),
        ] {
            self.head.insert(name, HeaderValue::from_static(value));
        }
    }

    /// Answers one call; the allocations that it took.
    fn call(&mut self, body: &[u8], expected: &str) -> u64 {
        self.nonce += 1;
        self.out.clear();
        let fields = Fields::read([127, 0, 0, 1].into(), &self.head, Some(Contract::V3_0));
        let faults = Some(&self.dealer.world().first().faults);
        let entrance = self.entrance;
        let request =
            Request { entrance, fields, head: &self.head, body, nonce: self.nonce, faults, in_flight: 1 };
        let now = Now { business: "2026-06-01T12:00:00Z".parse().unwrap(), traffic_ns: 0 };
        let before = ASKED.get();
        self.dealer.dispatch(&mut self.scratch, &request, now, &mut self.out);
        let asked = ASKED.get() - before;
        let reply = String::from_utf8_lossy(&self.out);
        assert!(reply.contains(expected), "expected {expected} in {reply}");
        asked
    }

    /// The most allocations of any of 200 calls, after as many that warm the buffers up.
    fn most(&mut self, expected: &str, body: impl Fn(u64) -> Vec<u8>) -> u64 {
        let bodies: Vec<_> = (0..400).map(body).collect();
        for body in &bodies[..200] {
            self.call(body, expected);
        }
        bodies[200..].iter().map(|body| self.call(body, expected)).max().unwrap()
    }
}

fn body(skill: Skill, context_id: Option<&str>, payload: &Value) -> Vec<u8> {
    let mut message = json!({
        "messageId": "01HZ9F4M7C0X3K5RN8B3WJTW2P",
        "role": "ROLE_USER",
        "parts": [{ "data": payload, "mediaType": skill.request_media_type() }],
    });
    if let Some(context_id) = context_id {
        message["contextId"] = context_id.into();
    }
    let configuration = json!({ "acceptedOutputModes": [skill.response_media_type()] });
    let params = json!({ "message": message, "configuration": configuration });
    json!({ "jsonrpc": "2.0", "id": "req-1", "method": "SendMessage", "params": params })
        .to_string()
        .into_bytes()
}

/// The same by MCP.
fn tool_call(skill: Skill, payload: &Value) -> Vec<u8> {
    let meta = json!({
        "io.modelcontextprotocol/protocolVersion": mcp::MODERN,
        "io.modelcontextprotocol/clientCapabilities": {},
    });
    let params = json!({ "name": mcp::tool_name(skill), "arguments": payload, "_meta": meta });
    json!({ "jsonrpc": "2.0", "id": "req-1", "method": "tools/call", "params": params })
        .to_string()
        .into_bytes()
}

fn lead(n: &str) -> Value {
    json!({
        "type": "lead.submit.request",
        "customer": { "first_name": "Anna", "last_name": format!("Lee {n}"), "email": "anna@example.com" },
        "consent": {
            "granted_at": "2026-05-30T10:16:00Z", "allowed_channels": ["email", "phone"],
            "consent_text": "I agree to share my contact info.", "scope": ["lead_submission"],
        },
        "source_agent": { "name": "agent" },
        "idempotency_key": format!("key-{n}"),
    })
}

#[test]
fn a_call_in_the_steady_state_asks_for_little_memory() {
    let mut worker = Worker::new();
    let information = json!({ "type": "dealer.information.request" });
    let opening = body(Skill::DealerInformation, None, &information);
    // Hashes spread the ids over shards, so that the last one fills up some time after the first.
    for _ in 0..MAX_CONVERSATIONS * 5 / 4 {
        worker.call(&opening, "rooftops");
    }
    let conversations = worker.dealer.world().first().scene().dealer.conversations().count();
    assert_eq!(conversations, MAX_CONVERSATIONS, "the table is full");

    let vin = worker.dealer.world().first().scene().dealer.inventory().fixtures().available_vin.unwrap();
    let search = json!({
        "type": "inventory.search.request",
        "filters": { "make": ["Honda", "Toyota"], "condition": ["used", "cpo"], "year_min": 2015 },
        "pagination": { "skip": 0, "limit": 20 },
        "sort": { "field": "price", "order": "asc" },
        "privacy": { "anonymous": true },
    });
    let reads = [
        (Skill::DealerInformation, information, "rooftops"),
        (Skill::InventoryFacets, json!({ "type": "inventory.facets.request" }), "price_range"),
        (Skill::InventorySearch, search, "\"vehicles\":[{"),
        (Skill::InventoryVehicle, json!({ "type": "inventory.vehicle.request", "vin": vin }), &vin[..]),
    ];
    let mut found = Vec::new();
    for (skill, payload, expected) in &reads {
        let (known, new) = (body(*skill, Some("ctx-known"), payload), body(*skill, None, payload));
        let most = worker.most(expected, |_| known.clone());
        found.push((format!("{} in a known conversation", skill.id()), most, 0));
        let most = worker.most(expected, |_| new.clone());
        found.push((format!("{} in a new conversation", skill.id()), most, 2));
    }

    for (skill, payload, expected) in &reads {
        worker.enter(Entrance::Mcp, *skill);
        let call = tool_call(*skill, payload);
        found.push((format!("{} by MCP", skill.id()), worker.most(expected, |_| call.clone()), 0));
        worker.enter(Entrance::Pap(*skill), *skill);
        let call = payload.to_string().into_bytes();
        found.push((format!("{} by PAP", skill.id()), worker.most(expected, |_| call.clone()), 0));
    }
    worker.enter(Entrance::A2a, Skill::LeadSubmit);

    let template = body(Skill::LeadSubmit, Some("ctx-known"), &lead("7777777"));
    let template = String::from_utf8(template).unwrap();
    let nth = |n: u64| template.replace("7777777", &n.to_string()).into_bytes();
    for n in 0..MAX_LEADS as u64 + 1_000 {
        worker.call(&nth(n), "lead_id");
    }
    let most = worker.most("lead_id", |n| nth(1_000_000 + n));
    found.push(("lead.submit".to_owned(), most, 12));
    for (what, most, limit) in &found {
        println!("{what}: {most} allocations, at most {limit} allowed");
    }
    assert!(found.iter().all(|(_, most, limit)| most <= limit));
}
