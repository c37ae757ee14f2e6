//! What faults do beyond a reply's body, for the rim to carry out.

use std::time::Duration;

use super::decide::Decision;
use super::effect::{Apply, DelayFacts, HttpOverride};
use super::script::Script;

/// What is left to do once the body is written.
#[derive(Debug, Default)]
pub struct Carried {
    /// Another HTTP reply than the usual one.
    pub http: Option<HttpOverride>,
    /// How the bytes go.
    pub script: Option<Script>,
    /// Whether the script is played over no bytes: the reply is lost.
    pub lost: bool,
    /// How long to wait first.
    pub delay: Duration,
    /// The values of `X-Sim-Fault-Applied`, one for each effect.
    pub told: Vec<String>,
}

impl Carried {
    /// Takes the HTTP reply that a fault wants. The calls of a batch share one: the first that stands in place of all their
    /// replies, since a call that was kept from the dealer has left half a reply behind; else the first.
    pub fn take_http(&mut self, http: HttpOverride) {
        if self.http.as_ref().is_none_or(|held| held.body.is_none() && http.body.is_some()) {
            self.http = Some(http);
        }
    }

    /// Takes a delivery, by the same rule: the first that loses the reply, else the first.
    fn take_script(&mut self, script: Script, lost: bool) {
        if self.script.is_none() || (lost && !self.lost) {
            self.script = Some(script);
            self.lost = lost;
        }
    }

    /// Adds the delivery and the delays of a decision, and what is told of all its effects.
    pub fn add_delivery(&mut self, decision: &Decision, in_flight: u64) {
        if let Some(delivery) = &decision.delivery {
            let (args, mut draw) = (&delivery.effect.args, delivery.draw.clone());
            match delivery.effect.info.apply {
                Apply::Deliver(deliver) => self.take_script(deliver(args, &mut draw), false),
                Apply::Lose(lose) | Apply::Accept(lose) => {
                    let script = lose(args, &mut draw);
                    let lost = script.ends();
                    self.take_script(script, lost);
                }
                _ => {}
            }
        }
        for delay in &decision.delays {
            if let Apply::Delay(wait) = delay.effect.info.apply {
                let facts = DelayFacts { in_flight, age_ns: delay.age_ns };
                self.delay =
                    self.delay.saturating_add(wait(&delay.effect.args, &mut delay.draw.clone(), facts));
            }
        }
        self.told.extend(decision.applied().map(super::decide::Applied::header_value));
    }

    /// Whether the skill must not run, since the request never reached the dealer: it was lost on its way, or a gateway
    /// answered in the dealer's place.
    pub fn keeps_from_dealer(decision: &Decision) -> bool {
        if let Some(delivery) = &decision.delivery
            && let Apply::Lose(lose) | Apply::Accept(lose) = delivery.effect.info.apply
            && lose(&delivery.effect.args, &mut delivery.draw.clone()).ends()
        {
            return true;
        }
        let Some(answer) = &decision.answer else { return false };
        match answer.effect.info.apply {
            Apply::Http(http) => {
                let http = http(&answer.effect.args);
                http.body.is_some() && !http.commit
            }
            _ => false,
        }
    }
}
