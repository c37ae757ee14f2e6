//! The MCP envelope: JSON-RPC 2.0 with one request a POST, and the payload as the arguments of a tool.

use super::noting::Heard;
use super::{Asked, Envelope, Reply, Request, Run, discovery};
use crate::dealer::Dealer;
use crate::journal::Outcome;
use crate::protocol::error::{AapError, Occurrence, ProtocolError, write_typed_error};
use crate::protocol::json::Doc;
use crate::protocol::mcp::{self, Ask, Era, Headers, Reading, Refusal};
use crate::protocol::{Binding, Skill};
use crate::stable::stable_hash;

/// Answers one body.
pub(super) fn answer(run: &mut Run<'_>, doc: &mut Doc, out: &mut Vec<u8>) {
    let root = match doc.parse(run.request.body) {
        Ok(root) => root,
        Err(error) => {
            let outcome = Wrap::UNKNOWN.turn_away(run, &Refusal::not_json(&error), out);
            return run.note_whole(outcome, out);
        }
    };
    let Reading { id, era, method, ask } =
        mcp::read(root, Headers::of(run.request.head), &run.dealer.spec().skills);
    let wrap = Wrap { id, era };
    let mut empty = Doc::default();
    let mut heard = Heard { method, ..Heard::default() };
    let outcome = match ask {
        Err(refusal) => wrap.turn_away(run, &refusal, out),
        Ok(Ask::Call(skill, arguments)) => match arguments.map_or_else(|| empty.parse(b"{}"), Ok) {
            Ok(payload) => {
                let asked = Asked { skill, payload, context_id: None, message_id: "" };
                run.perform(&wrap, &asked, 0, &mut heard, out)
            }
            Err(error) => wrap.turn_away(run, &Refusal::not_json(&error), out),
        },
        Ok(ask) => wrap.tell(run, method, ask, out),
    };
    let (request, reply) = (run.whole(), 0..out.len());
    run.note(&heard, outcome, request, reply);
}

/// What is wrapped around the reply to one request.
#[derive(Clone, Copy)]
pub(super) struct Wrap<'a> {
    /// The request's id, as raw JSON.
    id: &'a str,
    era: Era,
}

impl<'a> Wrap<'a> {
    /// Around the reply to what nobody can read.
    const UNKNOWN: Wrap<'static> = Wrap { id: "null", era: Era::Legacy };

    /// Around the reply to a request whose id this is.
    pub(super) fn of_request(id: &'a str, request: &Request<'_>) -> Wrap<'a> {
        let mut doc = Doc::default();
        let era = match doc.parse(request.body) {
            Ok(root) => mcp::read(root, Headers::of(request.head), &Skill::ALL).era,
            Err(_) => Era::Legacy,
        };
        Wrap { id, era }
    }

    fn turn_away(self, run: &mut Run<'_>, refusal: &Refusal, out: &mut Vec<u8>) -> Outcome {
        run.dealer.counters().refused(refusal.code);
        run.reply.status = refusal.status;
        mcp::write_refusal(out, self.id, refusal);
        Outcome::Rpc(refusal.code.into())
    }

    /// Answers what is no call.
    fn tell(self, run: &mut Run<'_>, method: &str, ask: Ask<'_>, out: &mut Vec<u8>) -> Outcome {
        let key = run.request.fields.key.unwrap_or_else(|| stable_hash(7, method.as_bytes()));
        let fault = match ask {
            Ask::Discover | Ask::Tools | Ask::Initialize(_) => {
                discovery::decide(run.dealer, run.request, (mcp::PATH, Binding::Mcp), key, run.now)
            }
            _ => None,
        };
        if let Some(why) = fault.as_ref().and_then(|fault| fault.unread.as_deref()) {
            return self.refuse(run, &ProtocolError::bad_fault_header(why), out);
        }
        run.dealer.counters().told();
        match ask {
            Ask::Notification => {
                run.reply.status = 202;
                return Outcome::Http(202);
            }
            Ask::Discover => mcp::write_with(out, self.id, self.era, &mcp::discovered(), true),
            Ask::Tools => mcp::write_with(out, self.id, self.era, run.dealer.tools(), true),
            Ask::Initialize(version) => {
                mcp::write_with(out, self.id, self.era, &mcp::initialize(version, run.dealer.name()), false);
            }
            Ask::Ping | Ask::Call(..) => mcp::write_empty(out, self.id),
        }
        if let Some(fault) = fault {
            run.carry(&fault, None, 0, out);
        }
        Outcome::Ok
    }
}

impl Envelope for Wrap<'_> {
    const CONVERSES: bool = false;

    fn open(&self, out: &mut Vec<u8>, _: &str, _: &str) {
        mcp::open_result(out, self.id);
    }

    fn close(&self, payload: usize, _: Skill, spare: &mut Vec<u8>, out: &mut Vec<u8>) {
        let end = out.len();
        mcp::close_result(out, payload..end, self.era, false, spare);
    }

    /// A skill's error is a result that says so, not an error of JSON-RPC.
    fn fail(
        &self,
        dealer: &Dealer,
        error: &AapError,
        occurrence: Occurrence<'_>,
        _: &mut Reply,
        out: &mut Vec<u8>,
    ) {
        mcp::open_result(out, self.id);
        let from = out.len();
        write_typed_error(out, error, dealer.spec().contract, occurrence);
        let end = out.len();
        mcp::close_result(out, from..end, self.era, true, &mut Vec::new());
    }

    fn refuse(&self, run: &mut Run<'_>, error: &ProtocolError, out: &mut Vec<u8>) -> Outcome {
        self.turn_away(run, &Refusal::new(400, error.code, &*error.message), out)
    }
}
