//! `/journal` and `/verify`.

use super::{AdminReply, AdminRequest, problem};
use crate::journal::{Filter, Journal, Query, Subscriber};

/// Whether a path is one of these.
pub(super) fn is_ours(path: &str) -> bool {
    path == "/verify" || path == "/journal" || path.starts_with("/journal/")
}

/// Answers a request for the journal, or, where a dealer is named, for its part of it. `/journal/stream` is answered
/// here only where it cannot be had.
pub(super) fn handle(journal: &Journal, dealer: Option<&str>, request: AdminRequest<'_>) -> AdminReply {
    if !journal.is_on() {
        return problem(404, "the journal is switched off (--journal 0)");
    }
    match (request.method, request.path) {
        ("GET" | "HEAD", "/journal") => match filter(request.query, dealer) {
            Ok(filter) => to_reply(&journal.query(&filter)),
            Err(refusal) => refusal,
        },
        ("DELETE", "/journal") => {
            journal.clear();
            AdminReply { body: Vec::new(), ..problem(204, "") }
        }
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

/// Who asks for `GET /journal/stream`, and from where it goes on.
///
/// # Errors
/// The refusal, if there is no such stream.
pub fn subscriber(
    journal: &Journal,
    dealer: Option<&str>,
    query: &str,
    last_event_id: Option<&str>,
) -> Result<Subscriber, AdminReply> {
    if !journal.is_on() {
        return Err(problem(404, "the journal is switched off (--journal 0)"));
    }
    let subscriber = Subscriber::new(filter(query, dealer)?);
    Ok(match last_event_id {
        Some(id) => subscriber.resume(id),
        None => subscriber,
    })
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
