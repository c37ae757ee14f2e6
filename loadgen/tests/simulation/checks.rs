//! What must hold, whatever happened: held against what the buyers heard and what the dealer knows in the end.

use std::collections::{BTreeMap, BTreeSet};

use dealer_sim::world::World;
use serde_json::Value;

/// What the buyers did and heard, and how often the dealer answered.
#[derive(Debug, Default, PartialEq)]
pub(crate) struct Log {
    /// Requests begun.
    pub(crate) attempts: u64,
    /// Whole replies heard.
    pub(crate) replies: u64,
    /// Requests that the dealer answered, in all its lives.
    pub(crate) answered: u64,
    /// Replies by what they came to.
    pub(crate) outcomes: BTreeMap<String, u64>,
    /// Keys under which a lead was sent.
    pub(crate) sent: BTreeSet<String>,
    /// Leads that were acknowledged, by key.
    pub(crate) acknowledged: BTreeMap<String, String>,
    /// Who talks in a conversation.
    contexts: BTreeMap<String, u32>,
    /// What went wrong on the way.
    pub(crate) wrong: Vec<String>,
}

impl Log {
    pub(crate) fn acknowledge(&mut self, key: &str, lead_id: &str) {
        if let Some(known) = self.acknowledged.insert(key.to_owned(), lead_id.to_owned())
            && known != lead_id
        {
            self.wrong.push(format!("two leads for one key: {key} is {known} and {lead_id}"));
        }
    }

    pub(crate) fn note_context(&mut self, context_id: &str, buyer: u32) {
        if let Some(other) = self.contexts.insert(context_id.to_owned(), buyer)
            && other != buyer
        {
            self.wrong.push(format!("conversations cross: {context_id} is of buyers {other} and {buyer}"));
        }
    }
}

/// Everything that does not hold. `world` is that of a dealer which started over what was left.
pub(crate) fn broken(log: &Log, world: &World) -> Vec<String> {
    let mut broken = log.wrong.clone();
    let scene = world.first().scene();
    let desk = scene.dealer.desk();
    let leads: Vec<Value> =
        desk.leads.newest(usize::MAX).map(|lead| serde_json::to_value(lead.view()).unwrap()).collect();
    let mut by_key: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for lead in &leads {
        let key = lead["request"]["idempotency_key"].as_str().unwrap();
        by_key.entry(key).or_default().push(lead["lead_id"].as_str().unwrap());
    }
    for (key, lead_id) in &log.acknowledged {
        if !by_key.get(key.as_str()).is_some_and(|known| known.contains(&&**lead_id)) {
            broken.push(format!("an acknowledged lead is lost: {lead_id} of {key}"));
        }
    }
    for (key, known) in &by_key {
        if known.len() > 1 {
            broken.push(format!("two leads for one key: {key} is {known:?}"));
        }
        if !log.sent.contains(*key) {
            broken.push(format!("a lead that nobody sent: {key}"));
        }
    }
    let mut owners: BTreeMap<&str, &str> = BTreeMap::new();
    for (key, lead_id) in &log.acknowledged {
        if let Some(other) = owners.insert(lead_id, key) {
            broken.push(format!("one lead for two keys: {lead_id} of {other} and {key}"));
        }
    }
    let ids: BTreeSet<&str> = leads.iter().filter_map(|lead| lead["lead_id"].as_str()).collect();
    if ids.len() != leads.len() {
        broken.push("two leads share an identifier".to_owned());
    }
    if !(log.replies <= log.answered && log.answered <= log.attempts) {
        let Log { attempts, replies, answered, .. } = log;
        broken.push(format!(
            "counts disagree: {attempts} attempts, {answered} answered, {replies} replies heard"
        ));
    }
    broken
}
