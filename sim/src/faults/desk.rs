//! What a dealer's calls are held against: the rules in force, and which ways of asking for a fault are open.

use std::borrow::Cow;
use std::sync::Arc;

use hyper::HeaderMap;

use super::call::parse_effects;
use super::decide::{Decision, Facts, MagicHit, REQUEST_HEADER};
use super::engine::Engine;
use super::magic::{self, MagicText};
use super::plan::Plan;
use super::registry::registry;
use crate::protocol::Skill;
use crate::protocol::json::Value;
use crate::share::Share;

/// The rules in force, and the ways of asking that are open.
#[derive(Debug)]
pub struct FaultDesk {
    /// The rules.
    pub engine: Engine,
    /// Whether magic values ask for faults.
    pub magic: bool,
    /// Whether `X-Sim-Fault` asks for faults, and `X-Sim-Fault-Applied` tells of them.
    pub headers: bool,
}

impl FaultDesk {
    /// A desk with this plan in force from `now_ns` of the traffic clock on, which may keep this share of counts.
    pub fn new(plan: Plan, magic: bool, headers: bool, share: Share, now_ns: u64) -> FaultDesk {
        FaultDesk { engine: Engine::sharing(plan, registry(), share, now_ns), magic, headers }
    }

    /// Whether a payload, or a request's own header, or a rule may touch a call; where not, nothing need be worked out.
    pub fn may_touch(&self, asked: bool) -> bool {
        asked || self.engine.has_rules()
    }

    /// What a request asks for by its own header, where that is honoured: all lines of it together, since one left out would
    /// pass for a fault that the caller bears.
    pub fn asked<'h>(&self, head: &'h HeaderMap) -> Option<Cow<'h, str>> {
        let mut lines =
            head.get_all(REQUEST_HEADER).iter().map(|line| String::from_utf8_lossy(line.as_bytes()));
        let first = lines.next().filter(|_| self.headers)?;
        Some(lines.fold(first, |all, line| format!("{all}; {line}").into()))
    }

    /// The magic value of a payload, if magic is on and there is one.
    pub fn magic_in<'a>(&self, skill: Skill, payload: Value<'a>) -> Option<MagicText<'a>> {
        if !self.magic {
            return None;
        }
        magic::find(skill, payload, |number| registry().get(number).map(|effect| effect.name))
    }

    /// What touches a request. A magic value that names no effect is an ordinary value.
    pub fn decide(
        &self,
        seed: u64,
        facts: Facts<'_>,
        magic: Option<&MagicText<'_>>,
        now_ns: u64,
    ) -> Decision {
        let hit = magic.and_then(|text| {
            // Magic values were written with hyphens before there were effects.
            let effect: Cow<'_, str> = match text.effect.contains('-') && !text.effect.contains('(') {
                true => text.effect.replace('-', "_").into(),
                false => Cow::Borrowed(&text.effect),
            };
            let effects = parse_effects("a magic value", &effect, registry()).ok()?;
            Some(MagicHit { value: Arc::from(text.value), effect: effects.into_iter().next()? })
        });
        self.engine.decide(seed, &Facts { magic: hit.as_ref(), ..facts }, now_ns)
    }
}
