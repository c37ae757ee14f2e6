//! The table of rules as a page for people.

use std::fmt::Write as _;

use super::rule::Certainty;
use super::rules::rules;

const HEAD: &str = "\
# What `dealer-loadgen conform` checks

Written from the table of rules in `loadgen/src/conform/rules/`; a test keeps the two together (`UPDATE_GOLDEN=1` writes it anew).

*must*: a dealer that breaks it does not conform (exit code 3). *should*: recommended; told, and no failure. *silent*: no source
settles it; told. Sources: sections of the Auto Agent Protocol by letter (a contracts, b headers, c envelope and messages,
d skills, e errors, f behaviour, g agent card, j open points), A2A 1.0, JSON-RPC 2.0, RFCs, and known problems of real clients
(INTEROP), and what is known of the interfaces beside A2A (BINDINGS).
";

/// The page.
pub fn catalogue() -> String {
    let mut out = HEAD.to_owned();
    let count = |certainty: Certainty| rules().filter(|rule| rule.certainty == certainty).count();
    // Writing to a String cannot fail.
    let _ = writeln!(
        out,
        "\n{} rules: {} must, {} should, {} silent.",
        rules().count(),
        count(Certainty::Must),
        count(Certainty::Should),
        count(Certainty::Silent)
    );
    let mut group = "";
    for rule in rules() {
        let of = rule.id.split('.').next().unwrap_or_default();
        if of != group {
            group = of;
            let _ = writeln!(
                out,
                "\n## {of}\n\n| Rule | Certainty | Contracts | What a dealer does | Source |\n|---|---|---|---|---|"
            );
        }
        let _ = writeln!(
            out,
            "| `{}` | {} | {} | {} | {} |",
            rule.id,
            rule.certainty.word(),
            rule.applies.word(),
            rule.title.replace('|', "\\|"),
            rule.source
        );
    }
    out
}
