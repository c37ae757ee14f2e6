//! What is noted of a call for the journal while it is answered.

use std::ops::Range;

use serde_json::value::RawValue;

use super::Run;
use crate::dealer::ids::Id;
use crate::faults::Decision;
use crate::journal::{Fault, Notes, Outcome, Told};
use crate::protocol::Skill;

/// What is known of a call under way, for the journal.
#[derive(Default)]
pub(super) struct Heard<'a> {
    pub(super) skill: Option<Skill>,
    pub(super) method: &'a str,
    pub(super) message_id: &'a str,
    /// As the caller gave it.
    pub(super) context_id: Option<&'a str>,
    /// As the dealer made it.
    pub(super) made: Option<Id>,
}

impl Run<'_> {
    /// Notes a call for the journal.
    pub(super) fn note(
        &mut self,
        heard: &Heard<'_>,
        outcome: Outcome,
        request: Range<usize>,
        reply: Range<usize>,
    ) {
        let Some(notes) = &mut self.notes else { return };
        let made = || heard.made.as_ref().map_or("", Id::as_str);
        notes.add(Told {
            skill: heard.skill,
            method: heard.method,
            conversation: heard.context_id.unwrap_or_else(made),
            message_id: heard.message_id,
            key: self.counted.map(|(key, _)| key),
            attempt: self.counted.map_or(0, |(_, attempt)| attempt + 1),
            outcome,
            request,
            reply,
        });
    }
}

/// Notes the faults of the call that is noted next.
pub(super) fn note_faults(notes: &mut Notes, decision: &Decision) {
    for applied in decision.applied() {
        notes.add_fault(Fault {
            trigger: applied.trigger.to_string(),
            effect: applied.effect.to_string(),
            repro: applied.repro().to_string(),
        });
    }
}

/// Where the items of a body that is one array lie in it.
pub(super) fn item_ranges(body: &[u8]) -> Vec<Range<usize>> {
    let array = body.strip_prefix("\u{feff}".as_bytes()).unwrap_or(body);
    let items: Vec<&RawValue> = serde_json::from_slice(array).unwrap_or_default();
    let origin = body.as_ptr() as usize;
    let range = |item: &&RawValue| {
        let start = (item.get().as_ptr() as usize).wrapping_sub(origin);
        start..start + item.get().len()
    };
    items.iter().map(range).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_items_of_a_batch_are_found_in_its_body() {
        let body = "\u{feff} [ {\"a\":[1,\"]\"]} , 2,\"x\" ]".as_bytes();
        let items: Vec<_> = item_ranges(body).into_iter().map(|range| &body[range]).collect();
        assert_eq!(items, [&b"{\"a\":[1,\"]\"]}"[..], b"2", b"\"x\""]);
        assert!(item_ranges(b"[1,").is_empty());
    }
}
