//! The table of rules as a page for people.

use std::fmt::Write as _;

use super::rules::{RULES, Severity};

const HEAD: &str = "\
# How a buyer agent behaves

What `dealer-sim conduct` holds those who call against: each rule with its reason and its cure, for people who build
agents and have not read the specifications. Written from the table of rules in `sim/src/conduct/rules.rs`; a test keeps
the two together (`UPDATE_GOLDEN=1` writes it anew).

A *violation* breaks a MUST or harms a person, a *warning* goes against a SHOULD or harms dealers, *advice* makes things
work better. `--fail-on violation` ends with exit code 3 if there was any. Of each rule and client a report says *kept* (it
applied, and was kept each time), *broken* with the entries of the journal that prove it, *did not apply*, or *unknown*:
something that decides it was dropped from the journal. A refusal that a fault made up is not held against anybody.

Sources: *AAP* sections by letter (a contracts, b headers, c envelope and messages, d skills, e errors, f behaviour,
g agent card), *A2A 1.0* and *JSON-RPC 2.0* sections, RFCs.
";

/// What the rules of a group have in common.
const GROUPS: [(&str, &str, &str); 8] = [
    ("discovery", "Finding the dealer", "Everything begins with the agent card."),
    (
        "envelope",
        "The request around the payload",
        "HTTP, JSON-RPC and the A2A message, as every dealer expects them.",
    ),
    ("conversation", "Conversations", "One customer's turns with one dealer belong together."),
    ("retry", "Limits and retries", "What to do when an answer is a refusal, or never comes."),
    ("errors", "Errors that can be mended", "What the dealer says is wrong, mended in one go."),
    ("privacy", "Privacy, consent and leads", "Who is known to whom, and who agreed to it."),
    ("listings", "Reading listings", "What a listing promises, and what it does not."),
    ("load", "Sharing the dealer", "Everybody's calls meet in one place."),
];

/// The page.
pub fn catalogue() -> String {
    let mut out = HEAD.to_owned();
    let count = |severity: Severity| RULES.iter().filter(|rule| rule.severity == severity).count();
    // Writing to a String cannot fail.
    _ = writeln!(
        out,
        "\n{} rules: {} violations, {} warnings, {} pieces of advice.",
        RULES.len(),
        count(Severity::Violation),
        count(Severity::Warning),
        count(Severity::Advice)
    );
    let mut group = "";
    for rule in RULES {
        let of = rule.id.split('.').next().unwrap_or_default();
        if of != group {
            group = of;
            let (title, about) = GROUPS
                .iter()
                .find(|(name, ..)| *name == of)
                .map_or((of, ""), |(_, title, about)| (*title, *about));
            _ = writeln!(out, "\n## {title}\n\n{about}");
        }
        _ = writeln!(
            out,
            "\n### {}\n\n`{}` · {} · {}\n\n{}\n\n**Do:** {}",
            rule.title,
            rule.id,
            rule.severity.word(),
            rule.source,
            rule.why,
            // A placeholder such as <skill> is no HTML.
            rule.fix.replace('<', "\\<")
        );
    }
    out
}
