//! The A2A envelope: JSON-RPC 2.0, the headers of A2A and its Message.

use std::ops::Range;

use super::noting::{Heard, item_ranges};
use super::{Asked, Envelope, Reply, Run, fields};
use crate::dealer::Dealer;
use crate::journal::Outcome;
use crate::protocol::Skill;
use crate::protocol::call::{self, Message};
use crate::protocol::error::{
    AapError, Failure, Occurrence, ProtocolError, write_aap_error, write_protocol_error,
};
use crate::protocol::json::{Doc, Kind, Value};

/// Calls that one batch may hold.
const MAX_BATCH: usize = 100;
/// Bytes of replies after which the rest of a batch is refused.
const MAX_BATCH_REPLY: usize = 8 << 20;

/// Answers one body.
pub(super) fn answer(run: &mut Run<'_>, doc: &mut Doc, out: &mut Vec<u8>) {
    match doc.parse(run.request.body) {
        Err(error) => refuse_all(run, &ProtocolError::parse(&error), out),
        Ok(root) if root.kind() == Kind::List => batch(run, root, out),
        Ok(root) => single(run, root, 0, run.whole(), out),
    }
}

/// Refuses a body as a whole.
fn refuse_all(run: &mut Run<'_>, error: &ProtocolError, out: &mut Vec<u8>) {
    let outcome = Wrap { id: "null" }.refuse(run, error, out);
    run.note_whole(outcome, out);
}

/// A batch (JSON-RPC 2.0, section 6): an array of the replies, in the order of the calls.
fn batch(run: &mut Run<'_>, root: Value<'_>, out: &mut Vec<u8>) {
    if root.is_empty() || root.len() > MAX_BATCH {
        let text = format!("a batch holds 1 to {MAX_BATCH} calls");
        return refuse_all(run, &ProtocolError::invalid_request(&text), out);
    }
    let texts = if run.notes.is_some() { item_ranges(run.request.body) } else { Vec::new() };
    for (index, member) in root.items().enumerate() {
        out.push(if index == 0 { b'[' } else { b',' });
        let text = texts.get(index).cloned().unwrap_or_default();
        if out.len() < MAX_BATCH_REPLY {
            single(run, member, index as u64, text, out);
        } else {
            let id = call::read_envelope(member).map_or("null", |envelope| envelope.id);
            let why = "the replies to this batch are too long; send the rest of it again";
            let from = out.len();
            let outcome = Wrap { id }.refuse(run, &ProtocolError::invalid_request(why), out);
            run.note(&Heard::default(), outcome, text, from..out.len());
        }
    }
    out.push(b']');
}

/// One call, whose text lies at `text` in the body.
fn single(run: &mut Run<'_>, value: Value<'_>, index: u64, text: Range<usize>, out: &mut Vec<u8>) {
    let from = out.len();
    run.counted = None;
    let mut heard = Heard::default();
    let outcome = call(run, value, index, &mut heard, out);
    run.note(&heard, outcome, text, from..out.len());
}

fn call<'a>(
    run: &mut Run<'_>,
    value: Value<'a>,
    index: u64,
    heard: &mut Heard<'a>,
    out: &mut Vec<u8>,
) -> Outcome {
    let envelope = match call::read_envelope(value) {
        Ok(envelope) => envelope,
        Err(bad) => return Wrap { id: bad.id }.refuse(run, &bad.error, out),
    };
    heard.method = envelope.method;
    let wrap = Wrap { id: envelope.id };
    match admit(run, envelope.method, envelope.params) {
        Ok((message, skill)) => {
            let Message { payload, context_id, message_id, .. } = message;
            run.perform(&wrap, &Asked { skill, payload, context_id, message_id }, index, heard, out)
        }
        Err(failure) => {
            let named = |name| envelope.params?.get("message")?.get(name)?.as_str();
            heard.message_id = named("messageId").unwrap_or_default();
            heard.context_id = named("contextId");
            match failure {
                Failure::Protocol(error) => wrap.refuse(run, &error, out),
                Failure::Skill(error) => {
                    run.dealer.counters().refused(run.dealer.spec().contract.number(error.code));
                    let mut ids = run.ids("", call::payload_of(envelope.params), index);
                    run.fail(&wrap, &error, &mut ids, out)
                }
            }
        }
    }
}

/// Everything before the payload is looked at.
fn admit<'a>(
    run: &mut Run<'_>,
    method: &str,
    params: Option<Value<'a>>,
) -> Result<(Message<'a>, Skill), Failure> {
    let spec = run.dealer.spec();
    fields::check_version(run.request, spec.headers)?;
    call::check_method(method)?;
    let activated = fields::check_extensions(run.request, spec.contract, spec.headers)?;
    run.reply.activated = activated.then_some(spec.contract.extension_uri);
    let message = call::read_message(params, &spec.contract.features)?;
    let skill = call::choose_skill(&message, &spec.skills)?;
    Ok((message, skill))
}

/// What is wrapped around the reply to one call.
pub(super) struct Wrap<'a> {
    /// The request's id, as raw JSON.
    pub(super) id: &'a str,
}

impl Envelope for Wrap<'_> {
    const CONVERSES: bool = true;

    fn open(&self, out: &mut Vec<u8>, message_id: &str, context_id: &str) {
        call::open_reply(out, self.id, message_id, context_id);
    }

    fn close(&self, _: usize, skill: Skill, _: &mut Vec<u8>, out: &mut Vec<u8>) {
        call::close_reply(out, skill);
    }

    fn fail(
        &self,
        dealer: &Dealer,
        error: &AapError,
        occurrence: Occurrence<'_>,
        _: &mut Reply,
        out: &mut Vec<u8>,
    ) {
        write_aap_error(out, self.id, error, dealer.spec().contract, occurrence);
    }

    fn refuse(&self, run: &mut Run<'_>, error: &ProtocolError, out: &mut Vec<u8>) -> Outcome {
        run.dealer.counters().refused(error.code);
        write_protocol_error(out, self.id, error);
        Outcome::Rpc(error.code.into())
    }
}
