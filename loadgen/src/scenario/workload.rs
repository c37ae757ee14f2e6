//! What a run does: the flows of all its scenarios, and how a session comes by one.

use std::collections::BTreeMap;
use std::sync::Arc;

use dealer_sim::protocol::{Binding, Skill};
use jiff::Timestamp;
use serde_json::Value;

use super::cursor::Cursor;
use super::draw::{Key, Purpose};
use super::expr::{Env, KeySource, Template};
use super::feeder::Feeder;
use super::step::{Item, Session, Step};
use super::trace::Trace;

/// The scenarios of one run, checked and compiled. Several mix with equal weight for each file.
#[derive(Debug)]
pub struct Workload {
    pub(crate) name: String,
    pub(crate) scenarios: Vec<Scenario>,
    pub(crate) flows: Vec<Flow>,
    pub(crate) submits_leads: bool,
}

/// One file.
#[derive(Debug)]
pub(crate) struct Scenario {
    pub(crate) name: String,
    pub(crate) description: String,
    /// Every name and its slot among a session's values.
    pub(crate) slots: Arc<BTreeMap<String, usize>>,
    pub(crate) feeders: Vec<Fed>,
    pub(crate) variables: Vec<Variable>,
    /// The flows played, as indices into [`Workload::flows`]. Their weights are not all 0.
    pub(crate) flows: Vec<usize>,
    /// What says when each session starts and what it runs; with its columns and their slots.
    pub(crate) trace: Option<(Trace, Vec<(String, usize)>)>,
}

/// A feeder and the slots it fills: the whole row, and its columns.
#[derive(Debug)]
pub(crate) struct Fed {
    pub(crate) name: String,
    pub(crate) feeder: Feeder,
    pub(crate) slot: usize,
    pub(crate) columns: Vec<(String, usize)>,
}

/// A variable that is evaluated when a session begins.
#[derive(Debug)]
pub(crate) struct Variable {
    pub(crate) name: String,
    pub(crate) template: Template,
    pub(crate) slot: usize,
    /// The index among the variables as written: the number of its stream of draws.
    pub(crate) position: usize,
}

/// A way through the shop: items in their order.
#[derive(Debug)]
pub struct Flow {
    pub(crate) name: String,
    pub(crate) weight: u64,
    pub(crate) scenario: usize,
    pub(crate) items: Vec<Item>,
}

impl Flow {
    /// The flow's name, unique over the workload: where two scenarios have a flow of one name, `<scenario>-<flow>`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The flow's weight among those of its scenario, at least 1.
    pub fn weight(&self) -> u64 {
        self.weight
    }

    /// What a session of this flow does, in order. Never empty of steps.
    pub fn items(&self) -> &[Item] {
        &self.items
    }

    /// The most requests that a session of this flow makes, retries aside.
    fn requests(&self) -> u64 {
        // How often what stands within all the loops begun is done.
        let mut times: Vec<u64> = vec![1];
        let mut requests = 0u64;
        for item in &self.items {
            let inner = times.last().copied().unwrap_or(1);
            match item {
                Item::Step(_) => requests = requests.saturating_add(inner),
                Item::Loop(repeated) => times.push(inner.saturating_mul(u64::from(repeated.max))),
                Item::EndLoop(_) => drop(times.pop()),
                Item::Think(_) | Item::Pacing(_) => {}
            }
        }
        requests
    }
}

impl Workload {
    /// The names of the scenarios, joined by `+`.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The flows that are played. A session's [`flow`](Session::flow) is an index into them.
    pub fn flows(&self) -> &[Flow] {
        &self.flows
    }

    /// Whether any step may submit a lead, going by its skill or by a `type` in its request.
    pub fn submits_leads(&self) -> bool {
        self.submits_leads
    }

    /// The number of steps: ids of steps run from 0 to below it.
    pub fn step_count(&self) -> usize {
        let steps = |flow: &Flow| flow.items.iter().filter(|item| matches!(item, Item::Step(_))).count();
        self.flows.iter().map(steps).sum()
    }

    /// The most requests that a session makes, retries aside.
    pub fn requests_per_session(&self) -> u64 {
        self.flows.iter().map(Flow::requests).max().unwrap_or(0)
    }

    /// When each session starts, in nanoseconds, if the scenario has a trace.
    pub fn arrivals(&self) -> Option<Arc<[u64]>> {
        self.scenarios.iter().find_map(|scenario| Some(scenario.trace.as_ref()?.0.times()))
    }

    /// No more sessions than this can be begun: a trace, or a feeder whose rows are used once, has no more.
    pub fn session_limit(&self) -> Option<u64> {
        let feeders = self.scenarios.iter().flat_map(|scenario| &scenario.feeders);
        let unique = feeders.filter_map(|fed| fed.feeder.session_limit());
        unique.chain(self.arrivals().map(|times| times.len() as u64)).min()
    }

    /// The texts of the files that the scenarios name, feeders and traces, in a fixed order: with them, another run does
    /// the same.
    pub(crate) fn data(&self) -> impl Iterator<Item = &str> {
        self.scenarios.iter().flat_map(|scenario| {
            let feeders = scenario.feeders.iter().map(|fed| fed.feeder.rows.text());
            feeders.chain(scenario.trace.iter().map(|(trace, _)| trace.text()))
        })
    }

    /// The steps whose `raw` may send a lead that no test mark can be put into.
    pub fn hidden_leads(&self) -> Vec<String> {
        let steps = self.flows.iter().flat_map(Flow::items).filter_map(|item| match item {
            Item::Step(step) => Some(step),
            _ => None,
        });
        let hidden = steps.filter(|step| step.raw.as_ref().is_some_and(|raw| raw.may_hide_lead));
        hidden.map(Step::label).collect()
    }

    /// Has replies read as they come through this binding; the scenario stays what it is.
    ///
    /// # Errors
    /// A sentence for each thing that a step's `raw` replaces and a dealer behind that door would never see.
    pub fn turn_to(&mut self, binding: Binding) -> Result<(), Vec<String>> {
        let mut faults = Vec::new();
        for item in self.flows.iter_mut().flat_map(|flow| &mut flow.items) {
            let Item::Step(step) = item else { continue };
            step.reader.turn_to(binding);
            let unfit = step.raw.iter().flat_map(|raw| raw.unfit(binding));
            faults.extend(unfit.map(|why| {
                format!(
                    "step {}: its `raw` makes no sense with --binding {}: {why}",
                    step.label,
                    binding.word()
                )
            }));
        }
        if faults.is_empty() { Ok(()) } else { Err(faults) }
    }

    /// Begins session `ordinal` (from 0) of a run with this seed: picks its file with equal chance and its flow by weight,
    /// and evaluates its variables. Equal arguments give an equal session, whatever else runs.
    pub fn begin(&self, seed: u64, ordinal: u64) -> Session {
        let key = Key::new(seed, ordinal);
        // Where there is nothing to choose, nothing is drawn: the choice has a stream of its own.
        if let ([Scenario { flows, trace: None, .. }], 1) = (&self.scenarios[..], self.flows.len()) {
            return self.session(flows.first().copied().unwrap_or_default(), key, ordinal);
        }
        let mut draws = key.draws(Purpose::Flow, 0);
        let scenario = &self.scenarios[draws.index(self.scenarios.len())];
        if let Some((trace, _)) = &scenario.trace {
            let flow = scenario.flows.get(trace.flow(ordinal)).copied().unwrap_or_default();
            return self.session(flow, key, ordinal);
        }
        let weight = |flow: &usize| self.flows[*flow].weight;
        let mut left = draws.below(scenario.flows.iter().map(weight).sum());
        let chosen = scenario.flows.iter().find(|flow| {
            let hit = left < weight(flow);
            left = left.saturating_sub(weight(flow));
            hit
        });
        self.session(chosen.copied().unwrap_or_default(), key, ordinal)
    }

    /// A session of a certain flow.
    pub(crate) fn session(&self, flow: usize, key: Key, ordinal: u64) -> Session {
        let scenario = &self.scenarios[self.flows[flow].scenario];
        let mut values = vec![Value::Null; scenario.slots.len()];
        for (position, fed) in scenario.feeders.iter().enumerate() {
            if let Some(row) = fed.feeder.row(key, ordinal, position) {
                for (column, slot) in &fed.columns {
                    values[*slot] = row.get(column).cloned().unwrap_or_default();
                }
                values[fed.slot] = row;
            }
        }
        if let Some((trace, columns)) = &scenario.trace
            && let Some(row) = trace.row(ordinal)
        {
            for (column, slot) in columns {
                values[*slot] = row.get(column).cloned().unwrap_or_default();
            }
        }
        for variable in &scenario.variables {
            let draws = key.draws(Purpose::Variable, variable.position);
            let now = Timestamp::UNIX_EPOCH;
            let mut env = Env { values: &values, draws, now, key: KeySource::default() };
            let value = variable.template.eval(&mut env).into_owned();
            values[variable.slot] = value;
        }
        Session { flow, key, values, slots: scenario.slots.clone(), cursor: Cursor::default() }
    }
}

/// Whether a request with these members may be a lead, given the skill it is written for.
pub(crate) fn may_be_lead(skill: Skill, members: &[(String, Template)]) -> bool {
    let own_type = members.iter().find(|(name, _)| name == "type").map(|(_, template)| template);
    skill == Skill::LeadSubmit
        || match own_type {
            None => false,
            Some(Template::Const(value)) => value.as_str() == Some(Skill::LeadSubmit.request_type()),
            Some(_) => true,
        }
}
