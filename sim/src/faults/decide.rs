//! The decision: which effects touch a request. Facts and a seed in, effects out; what it changes is counters alone.
//!
//! Precedence: request header, magic value, admin layer, plan; within a layer the order written. The first that fires takes
//! the answer, the first the delivery; all delays add up. Every rule that matches counts the request, whether or not
//! another took the slot before it: so what a rule counts never depends on the luck of the others.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::call::{Action, Registry, parse_effects};
use super::counters::Occurrences;
use super::draw::Draw;
use super::effect::{Effect, Slot};
use super::plan::Rule;
use super::repro::Repro;
use super::sequence::Per;
use super::when::Reach;
use crate::protocol::{Binding, Skill};
use crate::stable::{mix, stable_hash};

/// The name of the header by which a request asks for a fault itself.
pub const REQUEST_HEADER: &str = "X-Sim-Fault";

/// What is known of a request when its faults are decided.
#[derive(Debug, Clone, Copy)]
pub struct Facts<'a> {
    /// The dealer's id.
    pub dealer: &'a str,
    /// The skill called.
    pub skill: Option<Skill>,
    /// The path of a discovery request; `None` for a call.
    pub path: Option<&'a str>,
    /// The interface that it came through; of discovery and of connections, which belong to none, A2A.
    pub binding: Binding,
    /// The conversation that the call belongs to or begins.
    pub conversation: Option<&'a str>,
    /// The client, as INTERFACES.md ("Client") finds it.
    pub client: &'a str,
    /// The vehicle asked for.
    pub vin: Option<&'a str>,
    /// The stable key.
    pub key: u64,
    /// How often the key was seen before.
    pub attempt: u64,
    /// The text of `X-Sim-Fault`, where it is honoured.
    pub request_effect: Option<&'a str>,
    /// A magic value in the payload.
    pub magic: Option<&'a MagicHit>,
    /// A connection was just accepted and no request is known: `key` is a hash of its ordinal, the rest is empty.
    pub accepting: bool,
}

/// A magic value that a payload holds.
#[derive(Debug, Clone)]
pub struct MagicHit {
    /// The value.
    pub value: Arc<str>,
    /// What it does.
    pub effect: Arc<Effect>,
}

/// What made an effect happen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Trigger {
    /// The request's own header.
    Header,
    /// A magic value.
    Magic(Arc<str>),
    /// A rule of the plan or of the admin layer, by its id.
    Rule(Arc<str>),
}

/// The id of the rule, `header` or `magic:<value>`.
impl std::fmt::Display for Trigger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Trigger::Header => f.write_str("header"),
            Trigger::Magic(value) => write!(f, "magic:{value}"),
            Trigger::Rule(id) => f.write_str(id),
        }
    }
}

/// An effect that a request gets.
#[derive(Debug, Clone)]
pub struct Applied {
    /// What made it happen.
    pub trigger: Trigger,
    /// What happens.
    pub effect: Arc<Effect>,
    /// The draws that the effect may make; those of no other effect.
    pub draw: Draw,
    /// Traffic time since the rule took force, in nanoseconds; for a header or magic value, since the plan did.
    pub age_ns: u64,
    /// The number of the rule in force that did it, which no other has or had; 0 where the request asked itself. What a rule
    /// keeps between requests is kept by it, so that a rule that takes force anew begins anew.
    pub owner: u64,
    origin: Origin,
}

/// What an effect was drawn from.
#[derive(Debug, Clone, Copy)]
struct Origin {
    seed: u64,
    plan: u64,
    key: u64,
    attempt: u64,
    nth: Option<u64>,
}

impl Applied {
    /// What makes it happen again.
    pub fn repro(&self) -> Repro {
        let Origin { seed, plan, key, attempt, nth } = self.origin;
        Repro { seed, plan, trigger: self.trigger.clone(), key, attempt, nth }
    }

    /// The value of `X-Sim-Fault-Applied`: trigger, effect and repro string, in visible ASCII.
    pub fn header_value(&self) -> String {
        let repro = self.repro();
        format!("{}; {}; {repro}", repro.escaped_trigger(), self.effect)
    }
}

/// What touches a request.
#[derive(Debug, Clone, Default)]
pub struct Decision {
    /// What is said.
    pub answer: Option<Applied>,
    /// How the bytes go.
    pub delivery: Option<Applied>,
    /// What adds to the time, in order of precedence.
    pub delays: Vec<Applied>,
    /// Why the request's own header does nothing. The request is to be refused with it: a slip of the hand would otherwise
    /// pass for a dealer that bears the fault.
    pub unread: Option<Box<str>>,
}

impl Decision {
    /// Whether nothing touches the request.
    pub fn is_empty(&self) -> bool {
        self.answer.is_none() && self.delivery.is_none() && self.delays.is_empty() && self.unread.is_none()
    }

    /// All effects, answer first, then delivery, then delays.
    pub fn applied(&self) -> impl Iterator<Item = &Applied> {
        self.answer.iter().chain(&self.delivery).chain(&self.delays)
    }

    fn has_room(&self, slot: Slot) -> bool {
        match slot {
            Slot::Answer => self.answer.is_none(),
            Slot::Delivery => self.delivery.is_none(),
            Slot::Delay => true,
        }
    }

    fn take(&mut self, applied: Applied) {
        match applied.effect.info.apply.slot() {
            Slot::Answer => self.answer = Some(applied),
            Slot::Delivery => self.delivery = Some(applied),
            Slot::Delay => self.delays.push(applied),
        }
    }
}

/// Rules that are in force, and since when.
#[derive(Debug)]
pub(super) struct Layers<'l> {
    pub(super) plan: u64,
    pub(super) since_ns: u64,
    pub(super) rules: &'l [Live],
    pub(super) occurrences: &'l Occurrences,
}

/// A rule in force.
#[derive(Debug, Clone)]
pub(super) struct Live {
    pub(super) rule: Arc<Rule>,
    pub(super) enabled: bool,
    pub(super) is_admin: bool,
    pub(super) since_ns: u64,
    pub(super) reach: Reach,
    pub(super) tally: Arc<Tally>,
}

/// What a rule counted over all. Its names in the table of occurrences begin with its serial number, never used twice.
#[derive(Debug, Default)]
pub(super) struct Tally {
    pub(super) serial: u64,
    seen: AtomicU64,
    stepped: AtomicU64,
    pub(super) fired: AtomicU64,
}

impl Tally {
    pub(super) fn new(serial: u64) -> Tally {
        Tally { serial, ..Tally::default() }
    }

    /// Counts one more firing, unless there were `limit` already.
    fn claim(&self, limit: Option<u64>) -> bool {
        let next = |fired: u64| limit.is_none_or(|limit| fired < limit).then_some(fired + 1);
        self.fired.fetch_update(Ordering::Relaxed, Ordering::Relaxed, next).is_ok()
    }
}

/// What a rule would do to a request.
struct Hit<'l> {
    effect: &'l Arc<Effect>,
    draw: Draw,
    attempt: u64,
    nth: Option<u64>,
}

/// Decides by what the request asks for and by the rules in force.
pub(super) fn decide(
    layers: &Layers<'_>,
    registry: Registry<'_>,
    seed: u64,
    facts: &Facts<'_>,
    now_ns: u64,
) -> Decision {
    let mut decision = Decision::default();
    let applied = |trigger, owner, effect: &Arc<Effect>, draw, since_ns, attempt, nth| Applied {
        trigger,
        effect: effect.clone(),
        draw,
        age_ns: now_ns.saturating_sub(since_ns),
        owner,
        origin: Origin { seed, plan: layers.plan, key: facts.key, attempt, nth },
    };
    let own = |trigger: Trigger, effect: &Arc<Effect>, decision: &mut Decision| {
        let draw = Draw::new(seed, &trigger.to_string(), facts.key, facts.attempt);
        if decision.has_room(effect.info.apply.slot()) {
            decision.take(applied(trigger, 0, effect, draw, layers.since_ns, facts.attempt, None));
        }
    };
    if let Some(text) = facts.request_effect {
        match header_effects(text, registry, facts) {
            Ok(effects) => effects.iter().for_each(|effect| own(Trigger::Header, effect, &mut decision)),
            Err(why) => decision.unread = Some(why),
        }
    }
    if let Some(magic) = facts.magic
        && Reach::of_own(magic.effect.info).covers(facts)
    {
        own(Trigger::Magic(magic.value.clone()), &magic.effect, &mut decision);
    }
    for live in layers.rules {
        let Some(hit) = live.hit(layers.occurrences, seed, facts, now_ns) else { continue };
        if decision.has_room(hit.effect.info.apply.slot()) && live.tally.claim(live.rule.when.count) {
            let (trigger, owner) = (Trigger::Rule(live.rule.id.clone()), live.tally.serial);
            decision.take(applied(trigger, owner, hit.effect, hit.draw, live.since_ns, hit.attempt, hit.nth));
        }
    }
    decision
}

fn header_effects(
    text: &str,
    registry: Registry<'_>,
    facts: &Facts<'_>,
) -> Result<Vec<Arc<Effect>>, Box<str>> {
    let effects = parse_effects(REQUEST_HEADER, text, registry).map_err(|error| error.to_string())?;
    match effects.iter().find(|effect| !Reach::of_own(effect.info).covers(facts)) {
        None => Ok(effects),
        Some(effect) => {
            let name = effect.info.name;
            let reach = Reach::of_own(effect.info);
            let only = match facts.path {
                Some(_) if reach.discovery.is_empty() => "calls alone, and this request is none".to_owned(),
                Some(_) => {
                    let words: Vec<_> = reach.discovery.iter().map(Binding::word).collect();
                    format!("discovery by {} alone", words.join(" and "))
                }
                None if reach.calls.is_empty() => "discovery alone, and this request is none".to_owned(),
                None => {
                    let words: Vec<_> = reach.calls.iter().map(Binding::word).collect();
                    format!("calls by {} alone", words.join(" and "))
                }
            };
            Err(format!("{REQUEST_HEADER}: {name} touches {only}").into())
        }
    }
}

impl Live {
    /// What the rule would do to a request. Counts the request where the rule counts.
    fn hit<'l>(
        &'l self,
        occurrences: &Occurrences,
        seed: u64,
        facts: &Facts<'_>,
        now_ns: u64,
    ) -> Option<Hit<'l>> {
        let rule = &*self.rule;
        let age_ns = now_ns.checked_sub(self.since_ns)?;
        if !self.enabled || !self.reach.covers(facts) || !rule.when.matches(facts, age_ns) {
            return None;
        }
        let mut attempt = facts.attempt;
        let mut nth = None;
        if rule.when.counts() {
            let seen = self.count(rule.when.per, &self.tally.seen, 0, occurrences, facts);
            nth = Some(seen);
            if rule.when.per == Per::Key {
                attempt = seen;
            }
            if !rule.when.meets_count(seen) {
                return None;
            }
        }
        let effect = match &rule.action {
            Action::Always(effect) => Some(effect),
            Action::Sequence(sequence) => {
                let step = self.count(sequence.per(), &self.tally.stepped, 1, occurrences, facts);
                nth = Some(step);
                // Of two equal requests at once, either may be counted first: drawn from the count and not from the
                // attempt, the same number of them is faulted in any case.
                if sequence.per() == Per::Key && !rule.when.counts() {
                    attempt = step;
                }
                sequence.at(step)
            }
        }?;
        let mut draw = Draw::new(seed, &rule.id, facts.key, attempt);
        let fires = draw.hits(rule.chance) && Reach::of(effect.info).covers(facts);
        fires.then_some(Hit { effect, draw, attempt, nth })
    }

    /// Counts an occurrence and says how many came before.
    fn count(
        &self,
        per: Per,
        all: &AtomicU64,
        purpose: u64,
        occurrences: &Occurrences,
        facts: &Facts<'_>,
    ) -> u64 {
        let text = |text: &str| stable_hash(2, text.as_bytes());
        let name = match per {
            Per::All => return all.fetch_add(1, Ordering::Relaxed),
            Per::Key => facts.key,
            Per::Conversation => match facts.conversation {
                Some(conversation) => text(conversation),
                None => mix(text(facts.client)),
            },
            Per::Client => text(facts.client),
            Per::Dealer => text(facts.dealer),
            Per::Vin => facts.vin.map_or(0, |vin| text(&vin.to_ascii_uppercase())),
        };
        // The constant keeps small serial numbers apart from names that are themselves mixed from small numbers.
        let counter = mix((self.tally.serial << 1 | purpose) ^ 0xbb67_ae85_84ca_a73b);
        occurrences.next(mix(mix(name).wrapping_add(counter)))
    }
}
