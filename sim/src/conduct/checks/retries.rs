//! Limits, retries, and errors that are to be mended.

use super::super::facts::{Facts, Failure, print_of};
use super::super::judge::{Attempt, Case, Client, Refused, finding, quote};
use super::super::rules::R;
use crate::protocol::Skill;
use crate::protocol::error::AapCode;

/// The shortest wait before a retry without a hint.
const LEAST_WAIT_NS: u64 = 100_000_000;
/// A wait may be this much shorter than the one before, since back-offs are random: half.
const JITTER: u64 = 2;
/// Attempts that a request may have.
const BUDGET: u64 = 8;

/// A client that has several requests under way may have sent one before it had read the reply to another.
const READ_NS: u64 = 50_000_000;

fn ms(ns: u64) -> u64 {
    ns / 1_000_000
}

/// What stands for the conversation of calls that open one.
fn opening_of(dealer: &str) -> String {
    format!("{dealer} ")
}

/// Whose turn it is. A contextId that no reply has named before opens a conversation, as none does: a caller may make one up
/// for each attempt.
fn thread(facts: &Facts<'_>, client: &Client) -> String {
    let asked = facts.said("contextId").unwrap_or_default();
    let is_known = client.contexts.get(&asked.to_owned()).is_some_and(|known| known.seq < facts.seq());
    if is_known { facts.thread() } else { opening_of(&facts.entry.dealer) }
}

pub(super) fn judge(case: &mut Case<'_>, client: &mut Client) {
    let facts = case.facts;
    let (Some(payload), Some(skill)) = (facts.payload(), facts.skill()) else {
        return hint(case, client, None);
    };
    let dealer = &facts.entry.dealer;
    let exact = print_of(payload, &[]);
    // A lead is the same without what may rightly or wrongly change when it is sent again.
    let skipped: &[&str] =
        if skill == Skill::LeadSubmit { &["idempotency_key", "submitted_at"] } else { &[] };
    // A lead names its customer; other requests are told apart by their conversation.
    let thread = if skill == Skill::LeadSubmit { dealer.clone() } else { thread(facts, client) };
    let key_in = |thread: &str| {
        let same = format!("{thread} {} {:x}", skill.id(), print_of(payload, skipped));
        crate::stable::stable_hash(10, same.as_bytes())
    };
    let key = key_in(&thread);
    // One that failed as an opening call may be sent again in the conversation that another call has opened meanwhile. Whether
    // the same customer sends it is not known, so that this clears it and accuses nobody.
    let opening = key_in(&opening_of(dealer));
    if opening != key
        && let Some(first) = client.attempts.get(&opening).filter(|it| it.failure == Some(Failure::Retryable))
    {
        let first = Attempt { failure: None, ..first.clone() };
        client.attempts.put(opening, first);
        case.check(R::RetryMade, true, &[], String::new);
    }
    let lead_key = payload["idempotency_key"].as_str().map(str::to_owned);
    // One that came before the failure was told is no retry of it.
    let before = client.attempts.get(&key).filter(|before| before.ended <= facts.arrived).cloned();
    hint(case, client, before.as_ref().map(|before| before.seq));
    let mut waited = None;
    let mut failures = 0;
    let is_repeated_refusal = before.as_ref().is_some_and(|before| before.failure == Some(Failure::Final));
    if let Some(relation) = client.relations.get_mut(dealer) {
        if relation.was_refused && !is_repeated_refusal {
            case.check(R::RetryRefused, true, &[], String::new);
        }
        relation.was_refused |= facts.failure() == Some(Failure::Final);
    }
    if let Some((before, failure)) = before.and_then(|before| before.failure.map(|failure| (before, failure)))
    {
        waited = retry(case, &before, failure, exact);
        failures = before.failures;
        if skill == Skill::LeadSubmit && failure != Failure::Final {
            lead_retry(case, &before, lead_key.as_deref(), exact);
        }
    }
    let failure = facts.failure();
    let text =
        finding(facts, &[], "failed with an error that may pass, and was never tried again".to_owned());
    client.attempts.put(
        key,
        Attempt {
            seq: facts.seq(),
            ended: facts.ended,
            failure,
            had_hint: facts.wait().is_some(),
            failures: if failure.is_some() { failures + 1 } else { 0 },
            waited,
            exact,
            lead_key,
            text,
        },
    );
}

/// Nothing is sent before the hint has passed; what was under way when it was told could not know. `before` is the last
/// attempt at the same request.
fn hint(case: &mut Case<'_>, client: &mut Client, before: Option<u64>) {
    let facts = case.facts;
    // Other requests of the client that are under way, too: it has several hands.
    let is_busy = client.in_flight.len() > 1;
    let Some(relation) = client.relations.get_mut(&facts.entry.dealer) else { return };
    let may_know = |&(_, seq, from): &(u64, u64, u64)| {
        let is_late = facts.arrived >= from + READ_NS;
        facts.arrived >= from && (is_late || !is_busy || before == Some(seq))
    };
    if let Some((until, seq, from)) = relation.quiet.filter(may_know) {
        case.check(R::RetryHint, facts.arrived >= until, &[seq], || {
            format!(
                "the dealer had answered entry {seq} with the request to wait {} ms, and this call came after {} ms",
                ms(until - from),
                ms(facts.arrived - from)
            )
        });
    }
    if let Some(wait) = facts.wait() {
        let until = facts.ended.saturating_add(wait);
        if relation.quiet.is_none_or(|(known, _, _)| known < until) {
            relation.quiet = Some((until, facts.seq(), facts.ended));
        }
    }
}

/// Judges a call whose like has failed before. Returns how long it waited.
fn retry(case: &mut Case<'_>, before: &Attempt, failure: Failure, exact: u64) -> Option<u64> {
    let facts = case.facts;
    let waited = facts.arrived - before.ended;
    if failure == Failure::Final {
        case.check(R::RetryRefused, before.exact != exact, &[before.seq], || {
            format!(
                "sent again unchanged, though the answer to entry {} says that it will fail again",
                before.seq
            )
        });
        return None;
    }
    case.check(R::RetryMade, true, &[], String::new);
    case.check(R::RetryBudget, before.failures < BUDGET, &[before.seq], || {
        format!("attempt {} at the same request, after so many failures", before.failures + 1)
    });
    if before.had_hint || failure == Failure::Lost {
        return None;
    }
    case.check(R::RetryBackoff, waited >= LEAST_WAIT_NS, &[before.seq], || {
        format!("sent again {} ms after entry {} had failed", ms(waited), before.seq)
    });
    if let Some(last) = before.waited.filter(|_| waited >= LEAST_WAIT_NS) {
        case.check(R::RetryGrowth, waited >= last / JITTER, &[before.seq], || {
            format!("the wait before the failure was {} ms, the one after it {} ms", ms(last), ms(waited))
        });
    }
    Some(waited)
}

fn lead_retry(case: &mut Case<'_>, before: &Attempt, lead_key: Option<&str>, exact: u64) {
    let is_kept = lead_key.is_some() && lead_key == before.lead_key.as_deref();
    case.check(R::LeadKeyKept, is_kept, &[before.seq], || {
        match (&before.lead_key, lead_key) {
            (None, _) => "the lead was sent again, and the first attempt had no idempotency_key",
            (_, None) => "the lead was sent again without its idempotency_key",
            _ => "the lead was sent again with another idempotency_key",
        }
        .to_owned()
    });
    if is_kept {
        case.check(R::LeadUnchanged, before.exact == exact, &[before.seq], || {
            "the lead was sent again with the same idempotency_key and another submitted_at".to_owned()
        });
    }
}

fn is_refused_payload(facts: &Facts<'_>) -> bool {
    use AapCode::{InvalidCondition, MissingRequiredField, SchemaValidationFailed};
    matches!(facts.aap(), Some(SchemaValidationFailed | MissingRequiredField | InvalidCondition))
}

/// Faults of payloads, and whether all of them are mended at once.
pub(super) fn faults(case: &mut Case<'_>, client: &mut Client) {
    let facts = case.facts;
    let Some(skill) = facts.skill() else { return };
    let is_refused = is_refused_payload(facts);
    let places = if is_refused || facts.aap() == Some(AapCode::InvalidConsent) {
        facts.faulty_places()
    } else {
        vec![]
    };
    // What is wrong in consent alone is told by the rules about consent.
    let is_made_up = is_refused && facts.is_made_up();
    if !is_made_up {
        case.check(R::Valid, !is_refused, &[], || {
            let shown: Vec<_> = places.iter().take(6).map(|place| quote(place)).collect();
            let more = if places.len() > shown.len() { ", …" } else { "" };
            let faults = if places.len() == 1 { "1 fault" } else { &format!("{} faults", places.len()) };
            format!("the dealer found {faults} in the payload, at {}{more}", shown.join(", "))
        });
    }
    let exact = facts.payload().map_or(0, |payload| print_of(payload, &[]));
    if facts.aap() == Some(AapCode::RateLimited) || facts.failure() == Some(Failure::Lost) {
        return;
    }
    let key = crate::stable::stable_hash(13, format!("{} {}", thread(facts, client), skill.id()).as_bytes());
    let before = client.refused.get(&key).filter(|before| !before.places.is_empty()).cloned();
    // An unchanged request mends nothing; that is a rule of its own.
    let was_mended = |before: &Refused| facts.arrived >= before.told && before.exact != exact && !is_made_up;
    if let Some(before) = before.as_ref().filter(|before| was_mended(before)) {
        let listed = before.places.len();
        let left: Vec<_> = before.places.iter().filter(|place| places.contains(place)).cloned().collect();
        // Where nothing was mended it is another request with the same faults: they break rules of their own.
        if left.len() < listed {
            case.check(R::MendedAtOnce, left.is_empty(), &[before.seq], || {
                format!(
                    "the answer to entry {} had listed {listed} faults; this call mended {} of them and left {}: {}",
                    before.seq,
                    listed - left.len(),
                    left.len(),
                    left.join(", ")
                )
            });
        }
    }
    if before.is_some() || !places.is_empty() {
        client.refused.put(key, Refused { places, seq: facts.seq(), told: facts.ended, exact });
    }
}
