//! `/journal` and `/verify`.

use super::{AdminReply, AdminRequest, Scope, problem};
use crate::journal::{Filter, Query, Subscriber};
use crate::world::{World, split_path};

/// Whether a path is one of these.
pub(super) fn is_ours(path: &str) -> bool {
    path == "/verify" || path == "/journal" || path.starts_with("/journal/")
}

/// Answers a request for the journal, or, of one of several dealers, for its part of it. `/journal/stream` is answered here
/// only where it cannot be had.
pub(super) fn handle(scope: &Scope<'_>, request: AdminRequest<'_>) -> AdminReply {
    let (journal, dealer) = (&scope.world.journal, scope.dealer());
    if !journal.is_on() {
        return switched_off();
    }
    match (request.method, request.path) {
        ("GET" | "HEAD", "/journal") => match filter(request.query, dealer) {
            Ok(filter) => to_reply(&journal.query(&filter)),
            Err(refusal) => refusal,
        },
        ("DELETE", "/journal") if dealer.is_none() => {
            // What is cleared was seen all the same.
            scope.world.conduct.keep_up(journal, u64::MAX);
            journal.clear();
            AdminReply { body: Vec::new(), ..problem(204, "") }
        }
        (_, "/journal") if dealer.is_some() => AdminReply {
            allow: Some("GET, HEAD"),
            ..problem(405, "use GET; the journal is one for all dealers, and DELETE /journal clears it")
        },
        (_, "/journal") => {
            AdminReply { allow: Some("GET, HEAD, DELETE"), ..problem(405, "use GET or DELETE") }
        }
        ("POST", "/verify") => match Query::parse(request.body) {
            Ok(query) => to_reply(&journal.verify(&query.of_dealer(dealer))),
            Err(error) => problem(400, &error.to_string()),
        },
        (_, "/verify") => AdminReply { allow: Some("POST"), ..problem(405, "use POST") },
        (_, "/journal/stream") => AdminReply { allow: Some("GET"), ..problem(405, "use GET") },
        _ => problem(404, "no such resource; there are /journal, /journal/stream and /verify"),
    }
}

fn switched_off() -> AdminReply {
    problem(404, "the journal is switched off (--journal 0)")
}

/// Who asks for a stream, and from where it goes on; `None` when the path is no `/journal/stream`.
///
/// # Errors
/// The refusal, if the stream cannot be had.
pub fn subscriber(
    world: &World,
    path: &str,
    query: &str,
    last_event_id: Option<&str>,
) -> Option<Result<Subscriber, AdminReply>> {
    let (sites, path) = match split_path(path) {
        None => (world.sites(), path),
        // The usual handler knows what to say of a dealer that there is not.
        Some((dealer_id, path)) => (std::slice::from_ref(world.site(dealer_id)?), path),
    };
    if path != "/journal/stream" {
        return None;
    }
    if !world.journal.is_on() {
        return Some(Err(switched_off()));
    }
    let scope = Scope { world, sites, is_all: false };
    Some(filter(query, scope.dealer()).map(|filter| {
        let subscriber = Subscriber::new(filter);
        match last_event_id {
            Some(id) => subscriber.resume(id),
            None => subscriber,
        }
    }))
}

fn filter(query: &str, dealer: Option<&str>) -> Result<Filter, AdminReply> {
    match Filter::parse(query) {
        Ok(filter) => Ok(Filter { dealer: dealer.map(str::to_owned), ..filter }),
        Err(error) => Err(problem(400, &error.to_string())),
    }
}

fn to_reply(value: &impl serde::Serialize) -> AdminReply {
    match serde_json::to_vec(value) {
        Ok(mut body) => {
            body.push(b'\n');
            AdminReply { body, ..problem(200, "") }
        }
        Err(error) => problem(500, &error.to_string()),
    }
}
