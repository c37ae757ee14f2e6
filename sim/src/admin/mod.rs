//! Run-time control, as handlers that the server mounts on a listener of its own. They read and change values; the
//! sockets are the server's. A path below `/d/<dealer_id>` speaks of one dealer, any other of all.

mod clock;
mod conduct;
mod faults;
pub mod guard;
pub mod journal;
mod metrics;
mod state;
mod vehicles;

use serde_json::{Value, json};

use crate::dealer::clock::Now;
use crate::inventory::VehicleFault;
use crate::world::{Site, World, split_path};

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

/// The answer where a handler did not come to an end.
pub fn failed(text: &str) -> AdminReply {
    problem(500, text)
}

/// The answer to a request that is not carried out.
pub fn refused(status: u16, text: &str) -> AdminReply {
    problem(status, text)
}

/// A body that is not as it should be, with all that is wrong with it.
fn invalid(text: &str, faults: &[VehicleFault]) -> AdminReply {
    json_reply(400, &json!({ "error": text, "faults": faults }))
}

/// Whether the request may take long, so that a thread which must answer others should not carry it out itself.
pub fn is_long(request: &AdminRequest<'_>) -> bool {
    let path = request.path;
    // A report reads what the journal has gained.
    if conduct::is_ours(path) {
        return true;
    }
    !matches!(request.method, "GET" | "HEAD")
        && (path.ends_with("/clock")
            || path.ends_with("/reset")
            || path.ends_with("/verify")
            || path.contains("/vehicles"))
}

/// Answers an admin request. `ready` is false before the dealer's sockets accept and once a stop has begun. `now` is
/// the time on clocks that were never moved.
pub fn handle(world: &World, request: AdminRequest<'_>, ready: bool, now: Now) -> AdminReply {
    let (sites, is_all, path) = match split_path(request.path) {
        None => (world.sites(), true, request.path),
        Some((dealer_id, path)) => match world.site(dealer_id) {
            Some(site) => (std::slice::from_ref(site), false, path),
            None => return problem(404, "no dealer has this id; GET / lists the dealers"),
        },
    };
    let scope = Scope { world, sites, is_all };
    handle_in(&scope, AdminRequest { path, ..request }, ready, now)
}

/// The dealers that a request speaks of.
pub(super) struct Scope<'w> {
    world: &'w World,
    /// At least one.
    sites: &'w [Site],
    /// Whether it speaks of all, having come without `/d/<dealer_id>`.
    is_all: bool,
}

impl Scope<'_> {
    /// The dealer that stands for all where only one can.
    fn first(&self) -> &Site {
        &self.sites[0]
    }

    /// The dealer, if there are others that it does not speak of.
    fn dealer(&self) -> Option<&str> {
        (self.sites.len() < self.world.sites().len()).then(|| self.first().id())
    }

    /// Where each dealer's resources are.
    fn paths(&self) -> Vec<String> {
        self.sites.iter().map(|site| format!("/d/{}", site.id())).collect()
    }
}

fn handle_in(scope: &Scope<'_>, request: AdminRequest<'_>, ready: bool, now: Now) -> AdminReply {
    if request.path == "/magic" || request.path == "/faults" || request.path.starts_with("/faults/") {
        return faults::handle(scope.sites, request, now);
    }
    if conduct::is_ours(request.path) {
        return conduct::handle(scope, request);
    }
    if journal::is_ours(request.path) {
        return journal::handle(scope, request);
    }
    if request.path == "/clock" {
        return clock::handle(scope.sites, request, now);
    }
    if request.path == "/vehicles" || request.path.starts_with("/vehicles/") {
        return vehicles::handle(scope, request, now);
    }
    let is_read = matches!(request.method, "GET" | "HEAD");
    let is_reset = request.path == "/reset";
    if is_reset && request.method != "POST" {
        return AdminReply { allow: Some("POST"), ..problem(405, "use POST") };
    }
    if !is_reset && !is_read {
        return AdminReply { allow: Some("GET, HEAD"), ..problem(405, "use GET") };
    }
    let limit = limit(request.query);
    match request.path {
        "/livez" => json_reply(200, &json!({ "status": "ok" })),
        "/readyz" if ready => json_reply(200, &json!({ "status": "ok" })),
        "/readyz" => json_reply(503, &json!({ "status": "stopping" })),
        "/reset" => reset(scope, request.body, now),
        "/fixtures" => state::fixtures(scope, now),
        "/leads" => state::leads(scope.sites, limit, scope.world.journal.redactor()),
        "/conversations" => state::conversations(scope.sites, limit, scope.world.journal.redactor()),
        "/metrics" => AdminReply {
            status: 200,
            content_type: "application/openmetrics-text; version=1.0.0; charset=utf-8",
            allow: None,
            etag: None,
            body: metrics::write(scope).into_bytes(),
        },
        "/" => {
            let mut about = json!({ "resources": RESOURCES, "dealer": scope.first().base_url() });
            if scope.is_all {
                about["dealer"] = scope.world.base_url().into();
                about["dealers"] = scope.paths().into();
            }
            json_reply(200, &about)
        }
        _ => problem(404, &format!("no such resource; there are {}", RESOURCES.join(", "))),
    }
}

const RESOURCES: [&str; 21] = [
    "/livez",
    "/readyz",
    "/fixtures",
    "/leads",
    "/conversations",
    "/vehicles (POST)",
    "/vehicles/<vin> (GET, PATCH, DELETE)",
    "/clock (GET, POST)",
    "/reset (POST)",
    "/metrics",
    "/faults (GET, PUT, DELETE)",
    "/faults/rules (POST; PATCH and DELETE below it)",
    "/faults/catalogue",
    "/magic",
    "/journal (GET, DELETE)",
    "/journal/stream",
    "/verify (POST)",
    "/conduct",
    "/conduct/rules",
    "/conduct/begin, /conduct/end (POST)",
    "/tls/certificate",
];

fn limit(query: &str) -> usize {
    query
        .split('&')
        .filter_map(|pair| pair.strip_prefix("limit="))
        .find_map(|value| value.parse().ok())
        .unwrap_or(DEFAULT_LIMIT)
}

fn reset(scope: &Scope<'_>, body: &[u8], now: Now) -> AdminReply {
    let sites = scope.sites;
    let seed = if body.iter().all(u8::is_ascii_whitespace) {
        None
    } else {
        match serde_json::from_slice::<ResetBody>(body) {
            Ok(body) => body.seed,
            Err(error) => return problem(400, &format!("{error}; the body is empty or {{\"seed\": N}}")),
        }
    };
    match Site::reset(sites, seed, now) {
        Ok(()) => {
            // One of several dealers leaves the journal, which is everybody's.
            if scope.dealer().is_none() {
                scope.world.journal.clear();
                scope.world.conduct.clear(&scope.world.journal);
            }
            json_reply(200, &json!({ "status": "ok", "seed": sites[0].scene().dealer.spec().seed }))
        }
        Err(error) => problem(500, &error.to_string()),
    }
}

#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct ResetBody {
    seed: Option<u64>,
}
