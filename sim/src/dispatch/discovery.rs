//! Faults of what is no call: the discovery documents, and connections as they are accepted.

use std::net::IpAddr;

use super::Request;
use super::fields::client_name;
use super::noting::note_faults;
use crate::dealer::Dealer;
use crate::dealer::clock::Now;
use crate::faults::effect::AnswerContext;
use crate::faults::{Apply, Carried, Decision, Facts, FaultDesk, Script};
use crate::journal::Notes;
use crate::protocol::Binding;
use crate::protocol::discovery::Paper;
use crate::stable::stable_hash;

/// What faults touch a request that is no call: to a path, through an interface; `key` is its stable key.
pub(super) fn decide(
    dealer: &Dealer,
    request: &Request<'_>,
    (path, binding): (&str, Binding),
    key: u64,
    now: Now,
) -> Option<Decision> {
    let desk = request.faults?;
    let asked = request.asked();
    if !desk.may_touch(asked.is_some()) {
        return None;
    }
    let client = client_name(request);
    let facts = Facts {
        dealer: dealer.id(),
        skill: None,
        path: Some(path),
        binding,
        conversation: None,
        client: &client,
        vin: None,
        key,
        attempt: desk.engine.attempt(key),
        request_effect: asked.as_deref(),
        magic: None,
        accepting: false,
    };
    let decision = desk.decide(dealer.spec().seed, facts, None, now.traffic_ns);
    (!decision.is_empty()).then_some(decision)
}

/// Lets faults touch a document: its bytes are rewritten in place, and what is left for the rim is given back. `place` says
/// which one it is and under which path it was asked for.
pub fn touch_document(
    dealer: &Dealer,
    request: &Request<'_>,
    place: (Paper, &str),
    now: Now,
    document: &mut Vec<u8>,
    notes: Option<&mut Notes>,
) -> Option<Box<Carried>> {
    let spec = dealer.spec();
    let (paper, path) = place;
    let decision = decide(dealer, request, (path, Binding::A2a), stable_hash(7, path.as_bytes()), now)?;
    let mut carried = Carried::default();
    if let Some(answer) = &decision.answer {
        let args = &answer.effect.args;
        match answer.effect.info.apply {
            Apply::RefineCard(refine) if paper == Paper::AgentCard => {
                let context =
                    AnswerContext { contract: spec.contract, skill: None, request: b"", now: now.business };
                carried.http = Some(refine(args, &context, &mut answer.draw.clone(), document));
            }
            Apply::Http(http) => carried.http = Some(http(args)),
            _ => {}
        }
    }
    carried.add_delivery(&decision, request.in_flight);
    if let Some(notes) = notes {
        note_faults(notes, &decision);
    }
    Some(Box::new(carried))
}

/// What faults do to a connection as it is accepted: a script to play on it instead of speaking HTTP, and what is told of
/// it. `number` is the connection's ordinal, from which its draws are made.
pub fn accept_script(
    dealer: &Dealer,
    desk: &FaultDesk,
    peer: IpAddr,
    number: u64,
    now: Now,
    notes: &mut Notes,
) -> Option<Script> {
    if !desk.may_touch(false) {
        return None;
    }
    let client = peer.to_string();
    let facts = Facts {
        dealer: dealer.id(),
        skill: None,
        path: None,
        binding: Binding::A2a,
        conversation: None,
        client: &client,
        vin: None,
        key: number,
        attempt: 0,
        request_effect: None,
        magic: None,
        accepting: true,
    };
    let decision = desk.decide(dealer.spec().seed, facts, None, now.traffic_ns);
    let delivery = decision.delivery.as_ref()?;
    note_faults(notes, &decision);
    match delivery.effect.info.apply {
        Apply::Accept(accept) => Some(accept(&delivery.effect.args, &mut delivery.draw.clone())),
        _ => None,
    }
}
