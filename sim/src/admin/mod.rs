//! Run-time control, as handlers that the server mounts on a listener of its own. They read and change values; the
//! sockets are the server's.

mod faults;
pub mod journal;
mod metrics;

use serde_json::{Value, json};

use crate::dealer::clock::Now;
use crate::inventory::Lookup;
use crate::world::{Site, World};

/// Leads or conversations listed unless the request says.
const DEFAULT_LIMIT: usize = 1000;

/// A request to the admin endpoint.
#[derive(Debug, Clone, Copy)]
pub struct AdminRequest<'a> {
    /// The HTTP method.
    pub method: &'a str,
    /// The path.
    pub path: &'a str,
    /// The query, without its question mark.
    pub query: &'a str,
    /// `If-Match`, for those that edit.
    pub if_match: Option<&'a str>,
    /// The body.
    pub body: &'a [u8],
}

/// Its answer.
#[derive(Debug)]
pub struct AdminReply {
    /// The HTTP status.
    pub status: u16,
    /// The media type of the body.
    pub content_type: &'static str,
    /// The methods that would have been allowed, for a 405.
    pub allow: Option<&'static str>,
    /// The entity tag of what is in force now.
    pub etag: Option<String>,
    /// The body.
    pub body: Vec<u8>,
}

const JSON: &str = "application/json";

fn json_reply(status: u16, value: &Value) -> AdminReply {
    let mut body = value.to_string().into_bytes();
    body.push(b'\n');
    AdminReply { status, content_type: JSON, allow: None, etag: None, body }
}

fn problem(status: u16, text: &str) -> AdminReply {
    json_reply(status, &json!({ "error": text }))
}

/// Answers an admin request. `ready` is false before the dealer's sockets accept and once a stop has begun.
pub fn handle(world: &World, request: AdminRequest<'_>, ready: bool, now: Now) -> AdminReply {
    let site = world.first();
    if request.path == "/magic" || request.path == "/faults" || request.path.starts_with("/faults/") {
        return faults::handle(&site.faults, request, now);
    }
    if journal::is_ours(request.path) {
        return journal::handle(&world.journal, None, request);
    }
    let is_read = matches!(request.method, "GET" | "HEAD");
    let is_reset = request.path == "/reset";
    if is_reset && request.method != "POST" {
        return AdminReply { allow: Some("POST"), ..problem(405, "use POST") };
    }
    if !is_reset && !is_read {
        return AdminReply { allow: Some("GET, HEAD"), ..problem(405, "use GET") };
    }
    let scene = site.scene();
    let dealer = &scene.dealer;
    let limit = limit(request.query);
    match request.path {
        "/livez" => json_reply(200, &json!({ "status": "ok" })),
        "/readyz" if ready => json_reply(200, &json!({ "status": "ok" })),
        "/readyz" => json_reply(503, &json!({ "status": "stopping" })),
        "/reset" => reset(world, site, request.body, now),
        "/fixtures" => match serde_json::to_value(dealer.fixtures(now)) {
            Ok(value) => json_reply(200, &value),
            Err(error) => problem(500, &error.to_string()),
        },
        "/leads" => {
            let desk = dealer.desk();
            let leads: Vec<_> = desk.leads.newest(limit).collect();
            let counts = (desk.leads.received, desk.leads.dropped);
            json_reply(200, &json!({ "received": counts.0, "dropped": counts.1, "leads": leads }))
        }
        "/conversations" => {
            let all = dealer.conversations();
            json_reply(
                200,
                &json!({ "count": all.count(), "dropped": all.dropped(), "conversations": all.list(limit) }),
            )
        }
        "/metrics" => AdminReply {
            status: 200,
            content_type: "application/openmetrics-text; version=1.0.0; charset=utf-8",
            allow: None,
            etag: None,
            body: metrics::write(world).into_bytes(),
        },
        "/" => json_reply(200, &json!({ "resources": RESOURCES, "dealer": site.base_url() })),
        path => match path.strip_prefix("/vehicles/") {
            Some(vin) => vehicle(site, vin),
            None => problem(404, &format!("no such resource; there are {}", RESOURCES.join(", "))),
        },
    }
}

const RESOURCES: [&str; 15] = [
    "/livez",
    "/readyz",
    "/fixtures",
    "/leads",
    "/conversations",
    "/vehicles/<vin>",
    "/reset (POST)",
    "/metrics",
    "/faults (GET, PUT, DELETE)",
    "/faults/rules (POST; PATCH and DELETE below it)",
    "/faults/catalogue",
    "/magic",
    "/journal (GET, DELETE)",
    "/journal/stream",
    "/verify (POST)",
];

fn limit(query: &str) -> usize {
    query
        .split('&')
        .filter_map(|pair| pair.strip_prefix("limit="))
        .find_map(|value| value.parse().ok())
        .unwrap_or(DEFAULT_LIMIT)
}

fn vehicle(site: &Site, vin: &str) -> AdminReply {
    let scene = site.scene();
    let inventory = scene.dealer.inventory();
    match inventory.find(Some(vin), None, None) {
        Lookup::Unknown => problem(404, "no vehicle has this VIN"),
        Lookup::Listed(row) | Lookup::Sold(row) => {
            let mut body = Vec::new();
            inventory.detail(row, &mut body);
            body.push(b'\n');
            AdminReply { status: 200, content_type: JSON, allow: None, etag: None, body }
        }
    }
}

fn reset(world: &World, site: &Site, body: &[u8], now: Now) -> AdminReply {
    let seed = if body.iter().all(u8::is_ascii_whitespace) {
        None
    } else {
        match serde_json::from_slice::<ResetBody>(body) {
            Ok(body) => body.seed,
            Err(error) => return problem(400, &format!("{error}; the body is empty or {{\"seed\": N}}")),
        }
    };
    match site.reset(seed, now) {
        Ok(seed) => {
            world.journal.clear();
            json_reply(200, &json!({ "status": "ok", "seed": seed }))
        }
        Err(error) => problem(500, &error.to_string()),
    }
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct ResetBody {
    seed: Option<u64>,
}
