//! What a dealer on the open network is sent sooner or later: it answers, and goes on answering (AAP c, j 28).

use super::super::evidence::Evidence;
use super::super::rule::{Finding, Rule};
use super::{SERVED, SURVIVED, law, must, should, silent};

pub(super) const RULES: &[Rule] = &[
    silent("robust.nested", "a nest of 5000 lists is answered", "AAP j 28", SURVIVED),
    should("robust.long-text", "a text part of 64 KiB is answered", "AAP j 28", SURVIVED),
    silent("robust.large", "a body of 2 MiB is answered, or refused", "AAP j 28", SURVIVED),
    must("robust.markup", "markup and quotes in a query are text", "AAP d.2", SERVED),
    must("robust.control", "control characters and surrogate pairs, escaped, are text", "RFC 8259 7", SERVED),
    must("robust.prose", "prose beside the data instructs nobody", "AAP c (seed 003)", law(prose)),
    must("robust.still-serves", "after all this the dealer still serves", "AAP j 28", SERVED),
];

/// A text part that asks for something else changes nothing of the search beside it.
fn prose(seen: &Evidence) -> Finding {
    let label = "robust.prose";
    let Some(exchange) = seen.of(label) else { return seen.unasked(label) };
    let totals = [Some(exchange), seen.of("search")].map(|exchange| exchange.and_then(|e| e.number("total")));
    match totals {
        [Some(with), Some(without)] if with == without => Finding::Pass,
        [Some(with), Some(without)] => {
            Finding::fail(format!("{with} vehicles with the prose, {without} without; {}", exchange.quote()))
        }
        _ => Finding::not_run(format!("the search was not served: {}", exchange.said())),
    }
}
