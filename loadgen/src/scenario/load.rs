//! Reads scenario files and the files they name, and puts a workload together or says everything that is wrong.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use dealer_sim::document::Limits;
use dealer_sim::document::source::{into_text, read_bounded};
use serde_json::Value;

use super::ast::is_reference;
use super::compile::{Compiler, Place, Scope};
use super::draft::{Draft, DraftVariable, outline};
use super::fault::{Fault, Faults, LoadError, Pos, Reporter, Source, quoted};
use super::feeder::{self, Feeder, MAX_FEEDER_BYTES};
use super::flows::{Names, compile_flow};
use super::members::is_name;
use super::trace::{self, Trace};
use super::workload::{Fed, Flow, Scenario, Variable, Workload};
use super::yaml::{self, Kind, Node, plain_value};

/// Bytes of a scenario file.
const MAX_SCENARIO_BYTES: u64 = 1 << 20;
/// Bytes of a trace; it is held in memory, as its text.
const MAX_TRACE_BYTES: u64 = 256 << 20;
/// What a scenario's text is held to.
const LIMITS: Limits = Limits {
    nodes: 100_000,
    depth: 64,
    shape: "a mapping with `name` and `flows`",
    instead_of_merge: "an alias for a whole value, or an `include` of a flow",
};

/// Reads and compiles scenarios, with the `name=value` pairs of `--set`.
///
/// A value of `--set` is read as in the file (`20` is a number), but stays text where the variable it replaces is text;
/// in double quotes it is text in any case.
///
/// # Errors
/// Everything wrong with the files and the pairs, each with its place.
pub fn load(paths: &[PathBuf], sets: &[(String, String)]) -> Result<Workload, LoadError> {
    let mut faults = Faults::default();
    if paths.is_empty() {
        faults.add(Fault::of_argument("SCENARIO", "no scenario file is given"));
    }
    let sources: Vec<Arc<Source>> = paths
        .iter()
        .filter_map(|path| Source::read(path, MAX_SCENARIO_BYTES, "the scenario", &mut faults))
        .collect();
    let trees: Vec<(Arc<Source>, Node)> = sources
        .into_iter()
        .filter_map(|source| {
            let tree = yaml::parse(&LIMITS, &mut Reporter { source: source.clone(), faults: &mut faults })?;
            Some((source, tree))
        })
        .collect();
    let drafts: Vec<Draft<'_>> = trees
        .iter()
        .filter_map(|(source, tree)| {
            outline(tree, &mut Reporter { source: source.clone(), faults: &mut faults })
        })
        .collect();
    let workload = Loader::new(&drafts, sets, &mut faults).workload();
    faults.finish(workload)
}

/// Puts the workload together from the outlines.
struct Loader<'l, 'n> {
    drafts: &'l [Draft<'n>],
    sets: BTreeMap<String, Value>,
    used_sets: BTreeSet<String>,
    faults: &'l mut Faults,
}

impl<'l, 'n> Loader<'l, 'n> {
    fn new(drafts: &'l [Draft<'n>], sets: &[(String, String)], faults: &'l mut Faults) -> Loader<'l, 'n> {
        let mut values = BTreeMap::new();
        for (name, text) in sets {
            let argument = format!("--set {name}={text}");
            if !is_name(name) {
                faults.add(Fault::of_argument(&argument, format!("{} is no name", quoted(name))));
                continue;
            }
            match set_value(name, text, drafts) {
                Some(value) => drop(values.insert(name.clone(), value)),
                None => faults.add(Fault::of_argument(&argument, "the number does not fit 64 bits")),
            }
        }
        Loader { drafts, sets: values, used_sets: BTreeSet::new(), faults }
    }

    fn workload(mut self) -> Option<Workload> {
        let drafts = self.drafts;
        for (index, draft) in drafts.iter().enumerate() {
            if drafts[..index].iter().any(|other| other.name == draft.name) && !draft.name.is_empty() {
                let what = format!("two scenarios are called {}", quoted(&draft.name));
                self.reporter(draft).add(Fault::new(Pos::START, what));
            }
        }
        let mut workload = Workload {
            name: drafts.iter().map(|draft| draft.name.as_str()).collect::<Vec<_>>().join("+"),
            scenarios: Vec::new(),
            flows: Vec::new(),
            submits_leads: false,
        };
        let mut next_id = 0;
        for draft in drafts {
            self.scenario(draft, &mut workload, &mut next_id);
        }
        self.refuse_unused_sets();
        (!workload.scenarios.is_empty()).then_some(workload)
    }

    fn reporter(&mut self, draft: &Draft<'_>) -> Reporter<'_> {
        Reporter { source: draft.source.clone(), faults: self.faults }
    }

    fn scenario(&mut self, draft: &Draft<'_>, workload: &mut Workload, next_id: &mut usize) {
        let mut slots = BTreeMap::new();
        let mut visible = BTreeSet::new();
        let (feeders, all_read) = self.feeders(draft, &mut slots);
        let trace = draft.trace.and_then(|file| self.trace(draft, file));
        let complete = all_read && draft.complete && draft.trace.is_some() == trace.is_some();
        let mut traced = Vec::new();
        for column in trace.iter().flat_map(|trace| &trace.columns) {
            let next = slots.len();
            let slot = *slots.entry(column.clone()).or_insert(next);
            visible.insert(column.clone());
            traced.push((column.clone(), slot));
        }
        for fed in &feeders {
            visible.insert(fed.name.clone());
            visible.extend(fed.columns.iter().map(|(name, _)| name.clone()));
        }
        for name in draft.variables.iter().map(|variable| &variable.key.text).chain(&draft.extracted) {
            let next = slots.len();
            slots.entry(name.clone()).or_insert(next);
        }
        let variables = self.variables(draft, &slots, &mut visible, complete);
        let index = workload.scenarios.len();
        let mut flows = Vec::new();
        let names = Names { sets: &self.sets, slots: &slots, at_begin: &visible, complete };
        for flow in &draft.flows {
            let reporter = &mut Reporter { source: draft.source.clone(), faults: self.faults };
            let name = unique_name(flow.name, draft, self.drafts);
            // A flow of weight 0 is checked too, where it does not live off the names of those that include it.
            let played = flow.weight > 0;
            if !played && draft.included.contains(flow.name) {
                continue;
            }
            let mut throw_away = 0;
            let ids = if played { &mut *next_id } else { &mut throw_away };
            let (items, leads) = compile_flow(flow, &name, &names, ids, &mut self.used_sets, reporter);
            if played {
                flows.push(workload.flows.len());
                workload.flows.push(Flow { name, weight: flow.weight, scenario: index, items });
                workload.submits_leads |= leads;
            }
        }
        workload.scenarios.push(Scenario {
            name: draft.name.clone(),
            description: draft.description.clone(),
            slots: Arc::new(slots),
            feeders,
            variables,
            flows,
            trace: trace.map(|trace| (trace, traced)),
        });
    }

    /// The sessions that a trace lists.
    fn trace(&mut self, draft: &Draft<'_>, file: &Node) -> Option<Trace> {
        if self.drafts.len() > 1 {
            let what = "a scenario with a `trace` runs alone: the trace says when each session starts";
            self.reporter(draft).add(Fault::new(file.at, what));
        }
        let path = draft.source.path.parent().unwrap_or(Path::new("")).join(file.text().unwrap_or_default());
        let text = self.feeder_text(draft, file, &path, MAX_TRACE_BYTES)?;
        let flows: Vec<&str> = draft.flows.iter().map(|flow| flow.name).collect();
        trace::read(&path, text, &flows, self.faults)
    }

    /// Reads the feeders of a scenario, but for those that `--set` replaces, and tells whether all could be read. Their
    /// columns are names too.
    fn feeders(&mut self, draft: &Draft<'_>, slots: &mut BTreeMap<String, usize>) -> (Vec<Fed>, bool) {
        let mut feeders = Vec::new();
        let mut all_read = true;
        for variable in &draft.variables {
            let name = &variable.key.text;
            let Some((file, pick)) = variable.feeder.filter(|_| !self.sets.contains_key(name)) else {
                continue;
            };
            let relative = file.text().unwrap_or_default();
            let path = draft.source.path.parent().unwrap_or(Path::new("")).join(relative);
            let read = self.feeder_text(draft, file, &path, MAX_FEEDER_BYTES);
            let Some(rows) = read.and_then(|text| feeder::read(&path, text, self.faults)) else {
                all_read = false;
                continue;
            };
            let mut slot = |name: &str| {
                let next = slots.len();
                *slots.entry(name.to_owned()).or_insert(next)
            };
            let own = slot(name);
            let columns = rows
                .columns
                .iter()
                .filter(|column| is_name(column) && is_reference(column) && *column != name);
            let columns = columns.map(|column| (column.clone(), slot(column))).collect();
            feeders.push(Fed { name: name.clone(), feeder: Feeder { rows, pick }, slot: own, columns });
        }
        (feeders, all_read)
    }

    /// The text of a feeder's file, which the scenario names at `file`.
    fn feeder_text(&mut self, draft: &Draft<'_>, file: &Node, path: &Path, limit: u64) -> Option<String> {
        match read_bounded(path, limit).map(into_text) {
            Ok(Ok(text)) => Some(text),
            Ok(Err((text, at))) => {
                let source = Arc::new(Source { path: path.to_owned(), text });
                Reporter { source, faults: self.faults }.add(Fault::new(at, "this byte is not UTF-8"));
                None
            }
            Err(error) => {
                let what =
                    format!("the feeder {} cannot be read: {error}", quoted(&path.display().to_string()));
                self.reporter(draft)
                    .add(Fault::new(file.at, what).allowed("a path relative to this scenario"));
                None
            }
        }
    }

    /// The variables to evaluate when a session begins: those that neither `--set` nor a feeder holds. `visible` are the
    /// names that feeders set, and in the end all that are set then.
    fn variables(
        &mut self,
        draft: &Draft<'_>,
        slots: &BTreeMap<String, usize>,
        visible: &mut BTreeSet<String>,
        complete: bool,
    ) -> Vec<Variable> {
        let fed = visible.clone();
        let mut variables = Vec::new();
        for (position, variable) in draft.variables.iter().enumerate() {
            let name = &variable.key.text;
            let template = variable.feeder.is_none().then(|| {
                let compiler = &mut Compiler {
                    scope: Scope { sets: &self.sets, slots, visible, complete },
                    used_sets: &mut self.used_sets,
                    reporter: &mut Reporter { source: draft.source.clone(), faults: self.faults },
                };
                compiler.template(variable.node, Place::Variable)
            });
            visible.insert(name.clone());
            let held = self.sets.contains_key(name) || fed.contains(name);
            if let (Some(Some(template)), Some(slot), false) = (template, slots.get(name), held) {
                variables.push(Variable { name: name.clone(), template, slot: *slot, position });
            }
        }
        variables
    }

    /// A `--set` that no scenario has a use for is a slip of the hand.
    fn refuse_unused_sets(&mut self) {
        // A broken file may have been about to use it.
        if !self.faults.is_empty() {
            return;
        }
        let known: BTreeSet<&str> = self.drafts.iter().flat_map(|draft| known_names(draft)).collect();
        for (name, value) in &self.sets {
            if !self.used_sets.contains(name) && !known.contains(name.as_str()) {
                let fault = Fault::of_argument(
                    &format!("--set {name}={value}"),
                    format!("no scenario uses the name {}", quoted(name)),
                );
                self.faults.add(fault.one_of(name, known.iter().copied()));
            }
        }
    }
}

fn known_names<'d>(draft: &'d Draft<'_>) -> impl Iterator<Item = &'d str> {
    let variables = draft.variables.iter().map(|variable| variable.key.text.as_str());
    variables.chain(draft.extracted.iter().map(String::as_str))
}

/// The value of `--set name=text`: as in a file, but text where the variable it replaces is text.
fn set_value(name: &str, text: &str, drafts: &[Draft<'_>]) -> Option<Value> {
    let is_text = |variable: &DraftVariable<'_>| match &variable.node.kind {
        Kind::Scalar(scalar) => {
            !scalar.text.contains("${") && scalar.value().is_ok_and(|value| value.is_string())
        }
        _ => false,
    };
    let replaces_text = drafts
        .iter()
        .flat_map(|draft| &draft.variables)
        .any(|variable| variable.key.text == name && is_text(variable));
    let in_quotes =
        Some(text).filter(|text| text.starts_with('"')).and_then(|text| serde_json::from_str(text).ok());
    match in_quotes {
        Some(text) => Some(Value::String(text)),
        None if replaces_text => Some(Value::String(text.to_owned())),
        None => plain_value(text).ok(),
    }
}

/// A flow's name, with the scenario's before it where another file has a flow of that name.
fn unique_name(flow: &str, draft: &Draft<'_>, drafts: &[Draft<'_>]) -> String {
    let count = drafts.iter().filter(|draft| draft.flows.iter().any(|other| other.name == flow)).count();
    if count > 1 { format!("{}-{flow}", draft.name) } else { flow.to_owned() }
}
