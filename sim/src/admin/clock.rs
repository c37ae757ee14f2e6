//! `/clock`: the business clock, read and moved forward.

use jiff::SignedDuration;
use serde_json::{Value, json};

use super::{AdminReply, AdminRequest, invalid, json_reply, problem};
use crate::dealer::clock::{Move, MoveError, Now, instant, to_rfc3339};
use crate::document::units::{DURATION_FORM, duration_ns};
use crate::inventory::VehicleFault as Fault;
use crate::world::{MoveClockError, Site};

/// What a body may look like.
const FORM: &str = "the body is {\"advance\": \"25h\"} or {\"set\": \"2026-01-02T12:00:00Z\"}";

/// Answers a request for `/clock`: what the first of these dealers' shows, after a move of all of them. `now` is the time on
/// clocks that were never moved.
pub(super) fn handle(sites: &[Site], request: AdminRequest<'_>, now: Now) -> AdminReply {
    match request.method {
        "GET" | "HEAD" => shown(&sites[0], now),
        "POST" => match read(request.body) {
            Err(faults) => invalid(FORM, &faults),
            Ok(to) => match Site::move_clocks(sites, now, to) {
                Ok(()) => shown(&sites[0], now),
                Err(MoveClockError::Move(error @ MoveError::Backwards { .. })) => {
                    problem(409, &error.to_string())
                }
                Err(MoveClockError::Move(error @ MoveError::TooFar)) => {
                    let member = if matches!(to, Move::Set(_)) { "/set" } else { "/advance" };
                    invalid(FORM, &[fault(member, &error.to_string())])
                }
                Err(error) => problem(500, &error.to_string()),
            },
        },
        _ => AdminReply { allow: Some("GET, HEAD, POST"), ..problem(405, "use GET or POST") },
    }
}

fn shown(site: &Site, now: Now) -> AdminReply {
    json_reply(200, &json!({ "mode": site.clock().word(), "now": to_rfc3339(site.now(now).business) }))
}

fn fault(pointer: &str, reason: &str) -> Fault {
    Fault { pointer: pointer.to_owned(), reason: reason.to_owned() }
}

/// Reads a body; every fault of it is told.
fn read(body: &[u8]) -> Result<Move, Vec<Fault>> {
    let value: Value = serde_json::from_slice(body).map_err(|error| vec![fault("", &error.to_string())])?;
    let Value::Object(members) = value else { return Err(vec![fault("", "must be an object")]) };
    let mut faults = Vec::new();
    let mut moves = Vec::new();
    for (name, value) in &members {
        let read = match name.as_str() {
            "advance" => value
                .as_str()
                .and_then(duration_ns)
                .and_then(|nanos| i64::try_from(nanos).ok())
                .map(|nanos| Move::Advance(SignedDuration::from_nanos(nanos)))
                .ok_or_else(|| format!("must be {DURATION_FORM}")),
            "set" => value
                .as_str()
                .and_then(instant)
                .map(Move::Set)
                .ok_or_else(|| "must be an instant with offset, such as 2026-01-02T12:00:00Z".to_owned()),
            _ => Err("is no member; there are advance and set".to_owned()),
        };
        match read {
            Ok(to) => moves.push(to),
            Err(reason) => {
                let name = name.replace('~', "~0").replace('/', "~1");
                faults.push(fault(&format!("/{name}"), &reason));
            }
        }
    }
    match moves[..] {
        [to] if faults.is_empty() => return Ok(to),
        [_, _] => faults.push(fault("", "advance and set exclude each other")),
        [] if faults.is_empty() => faults.push(fault("", "says neither advance nor set")),
        _ => {}
    }
    Err(faults)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_body_is_read_or_all_that_is_wrong_with_it_is_told() {
        assert_eq!(read(br#"{"advance":"25h"}"#), Ok(Move::Advance(SignedDuration::from_hours(25))));
        let set = Move::Set("2026-01-02T12:00:00Z".parse().unwrap());
        assert_eq!(read(br#"{"set":"2026-01-02T13:00:00+01:00"}"#), Ok(set));
        let told = |body: &str| {
            let faults = read(body.as_bytes()).unwrap_err();
            faults.into_iter().map(|fault| fault.pointer).collect::<Vec<_>>().join(" ")
        };
        assert_eq!(told(r#"{"advance":"-1h","set":"today","a/b":1}"#), "/a~1b /advance /set");
        assert_eq!(told(r#"{"advance":25,"sets":1}"#), "/advance /sets");
        for whole in ["", "{}", "[]", "{", r#"{"advance":"1h","set":"2026-01-02T13:00:00Z"}"#] {
            assert_eq!(told(whole), "", "{whole}");
        }
    }
}
