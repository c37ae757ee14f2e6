//! The repro string: what names one fault of one run, and what would happen again by it, and why.

use std::fmt::Write as _;
use std::str::FromStr;
use std::sync::Arc;

use super::call::Action;
use super::decide::Trigger;
use super::draw::Draw;
use super::effect::{Apply, Class, DelayFacts, Effect, Lawfulness};
use super::plan::{Plan, Rule};
use super::when::When;
use crate::document::units::show_duration_ns;

/// What one fault was drawn from: `seed=…;plan=<hash>;rule=…;key=…;attempt=…`, and `;nth=…` where the rule counts
/// occurrences.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Repro {
    /// The seed.
    pub seed: u64,
    /// The hash of the plan in force.
    pub plan: u64,
    /// What made it happen.
    pub trigger: Trigger,
    /// The stable key.
    pub key: u64,
    /// Which occurrence of the key it was, from 0.
    pub attempt: u64,
    /// Which occurrence the rule counted, from 0.
    pub nth: Option<u64>,
}

/// A text that is no repro string.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error(
    "{given:?} is no repro string: {}; it is seed=…;plan=…;rule=…;key=…;attempt=…, as X-Sim-Fault-Applied ends",
    .wrong.join(", ")
)]
pub struct BadRepro {
    given: String,
    wrong: Vec<String>,
}

impl Repro {
    /// The trigger without characters that end a member or that a header cannot hold.
    pub(super) fn escaped_trigger(&self) -> String {
        let mut out = String::new();
        for byte in self.trigger.to_string().bytes() {
            match byte {
                b';' | b'%' => _ = write!(out, "%{byte:02X}"),
                0x21..=0x7e => out.push(char::from(byte)),
                _ => _ = write!(out, "%{byte:02X}"),
            }
        }
        out
    }
}

impl std::fmt::Display for Repro {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Repro { seed, plan, key, attempt, .. } = self;
        let rule = self.escaped_trigger();
        write!(f, "seed={seed};plan={plan:016x};rule={rule};key={key:016x};attempt={attempt}")?;
        self.nth.map_or(Ok(()), |nth| write!(f, ";nth={nth}"))
    }
}

impl FromStr for Repro {
    type Err = BadRepro;

    fn from_str(given: &str) -> Result<Repro, BadRepro> {
        let mut wrong = Vec::new();
        let mut found: Vec<(&str, &str)> = Vec::new();
        for member in given.trim().split(';').map(str::trim).take(16) {
            match member.split_once('=') {
                Some((name @ ("seed" | "plan" | "rule" | "key" | "attempt" | "nth"), value)) => {
                    if found.iter().any(|(known, _)| *known == name) {
                        wrong.push(format!("{name} stands twice"));
                    }
                    found.push((name, value));
                }
                _ => wrong.push(format!("{member:?} is no member of it")),
            }
        }
        let get = |name: &str| found.iter().find(|(known, _)| *known == name).map(|(_, value)| *value);
        let mut number = |name: &str, radix: u32| match get(name) {
            None => {
                wrong.push(format!("{name} is missing"));
                0
            }
            Some(value) => u64::from_str_radix(value, radix).unwrap_or_else(|_| {
                wrong.push(format!("{name} is no number"));
                0
            }),
        };
        let (seed, plan) = (number("seed", 10), number("plan", 16));
        let (key, attempt) = (number("key", 16), number("attempt", 10));
        let nth = get("nth").map(|_| number("nth", 10));
        let trigger = get("rule").and_then(unescaped).map(|rule| match rule.strip_prefix("magic:") {
            Some(value) => Trigger::Magic(value.into()),
            None if rule == "header" => Trigger::Header,
            None => Trigger::Rule(rule.into()),
        });
        match trigger {
            Some(trigger) if wrong.is_empty() => Ok(Repro { seed, plan, trigger, key, attempt, nth }),
            Some(_) => Err(BadRepro { given: given.to_owned(), wrong }),
            None => {
                wrong.push("rule is missing or broken".to_owned());
                Err(BadRepro { given: given.to_owned(), wrong })
            }
        }
    }
}

fn unescaped(text: &str) -> Option<String> {
    let mut pieces = text.split('%');
    let mut bytes = pieces.next()?.as_bytes().to_vec();
    for piece in pieces {
        let (code, rest) = (piece.get(..2)?, piece.get(2..)?);
        bytes.push(u8::from_str_radix(code, 16).ok()?);
        bytes.extend_from_slice(rest.as_bytes());
    }
    String::from_utf8(bytes).ok().filter(|text| !text.is_empty())
}

/// Says what would happen by a repro string under a plan, and why.
pub fn explain(plan: &Plan, repro: &Repro) -> String {
    let mut out = String::new();
    let mut say = |line: &str| {
        out.push_str(line);
        out.push('\n');
    };
    let id = match &repro.trigger {
        Trigger::Header => {
            say("The request asked for this fault by X-Sim-Fault: send the same header again.");
            say("No plan, seed or count has a part in whether it happens.");
            return out;
        }
        Trigger::Magic(value) => {
            say(&format!("The payload held the magic value {value:?}: send the same value again."));
            say("No plan, seed or count has a part in whether it happens.");
            return out;
        }
        Trigger::Rule(id) => id,
    };
    let differs = repro.plan != plan.hash();
    if differs {
        let (theirs, ours) = (repro.plan, plan.hash());
        say(&format!("The plan of the repro string is {theirs:016x}, the one given is {ours:016x}."));
        say("What follows is told by the plan given.");
    }
    match plan.rules().iter().find(|rule| rule.id == *id) {
        Some(rule) => rule_lines(rule, repro).iter().for_each(|line| say(line)),
        None => {
            let known: Vec<&str> = plan.rules().iter().map(|rule| &*rule.id).collect();
            say(&format!("This plan has no rule {id}; it has: {}.", known.join(", ")));
            say("The rule came from the admin layer (POST /faults/rules), or from another plan.");
        }
    }
    out
}

fn rule_lines(rule: &Rule, repro: &Repro) -> Vec<String> {
    let mut lines = vec![format!("Rule {}: {}", rule.id, rule.action)];
    if !rule.enabled {
        lines.push("It is disabled in the plan: nothing happens until it is enabled.".to_owned());
    }
    lines.push(format!("When: {}", conditions(&rule.when)));
    lines.push(format!("Class: {}, {}", rule.class().word(), class_meaning(rule.class())));
    if let Some(nth) = repro.nth.filter(|_| rule.when.counts() && matches!(rule.action, Action::Always(_))) {
        let met =
            if rule.when.meets_count(nth) { "one of those asked for" } else { "none of those asked for" };
        lines.push(format!("This was occurrence {} per {}: {met}.", nth + 1, rule.when.per.word()));
    }
    let mut draw = Draw::new(repro.seed, &rule.id, repro.key, repro.attempt);
    let drawn = draw.clone().unit();
    let fires = draw.hits(rule.chance);
    if rule.chance < 1.0 {
        let (chance, sign) = (rule.chance, if fires { "below" } else { "not below" });
        let then = if fires { "it fires" } else { "it does not fire" };
        lines.push(format!(
            "The draw of seed {}, rule {}, key {:016x}, attempt {} is {drawn:.6}, {sign} the chance {chance}: {then}.",
            repro.seed, rule.id, repro.key, repro.attempt
        ));
    }
    let effect = match (&rule.action, repro.nth) {
        (Action::Always(effect), _) => Some(effect),
        (Action::Sequence(sequence), Some(nth)) => {
            let (step, per) = (nth + 1, sequence.per().word());
            let found = sequence.at(nth);
            let what = found.map_or_else(|| "ok".to_owned(), |effect| effect.to_string());
            lines.push(format!("Step {step} of the sequence, counted per {per}, is {what}."));
            found
        }
        (Action::Sequence(_), None) => {
            lines.push(
                "The repro string has no nth: which step of the sequence it was is unknown.".to_owned(),
            );
            return lines;
        }
    };
    match effect.filter(|_| fires && rule.enabled) {
        Some(effect) => lines.extend(effect_lines(effect, &mut draw)),
        None => lines.push("Nothing happens.".to_owned()),
    }
    lines
}

fn effect_lines(effect: &Arc<Effect>, draw: &mut Draw) -> Vec<String> {
    let info = effect.info;
    let slot = info.apply.slot().word();
    let lawful = match info.lawfulness {
        Lawfulness::Lawful => "a conforming dealer may do this",
        Lawfulness::Breach => "a breach of the contract or of a protocol below it",
        Lawfulness::BreachOf(_) => "a breach of contracts from 2.0 on; those before allow it",
    };
    let mut lines = vec![
        format!("Then: {effect}, in the slot {slot}, unless a rule before it takes the slot; {lawful}."),
        format!("A client sees: {}", info.sees),
    ];
    if let Apply::Delay(wait) = info.apply {
        let facts = DelayFacts { in_flight: 1, age_ns: 0 };
        let nanos = u64::try_from(wait(&effect.args, draw, facts).as_nanos()).unwrap_or(u64::MAX);
        let told = show_duration_ns(nanos);
        lines.push(format!("The delay drawn is {told} (one request in flight, the plan just in force)."));
    }
    lines
}

fn class_meaning(class: Class) -> &'static str {
    match class {
        Class::Independent => "the same for this request in any order of arrival",
        Class::PerKey => "the same in any order of arrival of other keys and conversations",
        Class::Arrival => "it depends on what arrived before and when, so another run may differ",
    }
}

fn conditions(when: &When) -> String {
    let mut parts = Vec::new();
    let skills: Vec<&str> = when.skill.iter().map(|target| target.word()).collect();
    let mut any = |name: &str, words: &[&str]| {
        if !words.is_empty() {
            parts.push(format!("{name} is {}", words.join(" or ")));
        }
    };
    any("skill", &skills);
    for (name, words) in [
        ("dealer", &when.dealer),
        ("binding", &when.binding),
        ("conversation", &when.conversation),
        ("client", &when.client),
        ("vin", &when.vin),
    ] {
        any(name, &words.iter().map(String::as_str).collect::<Vec<_>>());
    }
    let per = when.per.word();
    parts.extend(when.nth.map(|nth| format!("every occurrence number {nth} per {per}")));
    parts.extend(when.first.map(|first| format!("the first {first} per {per}")));
    parts.extend(when.count.map(|count| format!("at most {count} times")));
    if when.after_ns > 0 {
        parts.push(format!("from {} after the plan took force", show_duration_ns(when.after_ns)));
    }
    parts.extend(when.for_ns.map(|length| format!("for {}", show_duration_ns(length))));
    if parts.is_empty() { "always".to_owned() } else { parts.join("; ") }
}
