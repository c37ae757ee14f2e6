//! The PAP envelope: none. The body is the payload, the path names the skill, and the reply is the response or the typed
//! error with an HTTP status.

use super::noting::Heard;
use super::{Asked, Envelope, Reply, Run};
use crate::dealer::Dealer;
use crate::journal::Outcome;
use crate::protocol::Skill;
use crate::protocol::error::{AapCode, AapError, Detail, Occurrence, ProtocolError, code, write_typed_error};
use crate::protocol::json::Doc;
use crate::protocol::pap;

/// Answers one body sent to the path of a skill.
pub(super) fn answer(run: &mut Run<'_>, doc: &mut Doc, skill: Skill, out: &mut Vec<u8>) {
    let mut heard = Heard { method: pap::path(skill), ..Heard::default() };
    let outcome = match doc.parse(run.request.body) {
        Err(error) => Wrap.refuse(run, &ProtocolError::parse(&error), out),
        Ok(_) if !run.dealer.spec().skills.contains(&skill) => {
            let error =
                AapError::new(AapCode::UnsupportedSkill, format!("this dealer does not offer {skill}"));
            run.dealer.counters().refused(run.dealer.spec().contract.number(error.code));
            let mut ids = run.ids("", None, 0);
            run.fail(&Wrap, &error, &mut ids, out)
        }
        Ok(payload) => {
            let asked = Asked { skill, payload, context_id: None, message_id: "" };
            run.perform(&Wrap, &asked, 0, &mut heard, out)
        }
    };
    let (request, reply) = (run.whole(), 0..out.len());
    run.note(&heard, outcome, request, reply);
}

/// What is wrapped around a reply: nothing.
pub(super) struct Wrap;

impl Envelope for Wrap {
    const CONVERSES: bool = false;

    fn open(&self, _: &mut Vec<u8>, _: &str, _: &str) {}

    fn close(&self, _: usize, _: Skill, _: &mut Vec<u8>, _: &mut Vec<u8>) {}

    fn fail(
        &self,
        dealer: &Dealer,
        error: &AapError,
        occurrence: Occurrence<'_>,
        reply: &mut Reply,
        out: &mut Vec<u8>,
    ) {
        reply.status = pap::status(error.code);
        reply.retry_after_s = error.details.iter().find_map(|(name, detail)| match (*name, detail) {
            ("retry_after_ms", Detail::Integer(ms)) => Some((*ms).max(0).unsigned_abs().div_ceil(1000)),
            ("retry_after_seconds", Detail::Integer(seconds)) => Some((*seconds).max(0).unsigned_abs()),
            _ => None,
        });
        write_typed_error(out, error, dealer.spec().contract, occurrence);
    }

    /// There are no errors of a protocol around the payload: what cannot be read breaks the payload's schema.
    fn refuse(&self, run: &mut Run<'_>, error: &ProtocolError, out: &mut Vec<u8>) -> Outcome {
        run.dealer.counters().refused(code::PARSE);
        let mut ids = run.ids("", None, 0);
        let outcome =
            run.fail(self, &AapError::new(AapCode::SchemaValidationFailed, &*error.message), &mut ids, out);
        run.reply.status = pap::NOT_JSON;
        outcome
    }
}
