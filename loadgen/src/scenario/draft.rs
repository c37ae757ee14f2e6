//! The outline of a scenario file: its members, flows and names, before any expression is compiled. What the outline
//! holds is needed to compile: a name may be used before the line that extracts it has been read.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::fault::{Fault, Reporter, Source, quoted};
use super::feeder::Pick;
use super::members::{Members, integer_of, key_is_name, key_is_reference, list_of, map_of, name_of, text_of};
use super::yaml::{Key, Kind, Node};

/// Weights, so that their sums stay far from any limit.
const MAX_WEIGHT: u64 = 1_000_000;
/// Items of one flow after its includes are put in: flows that include each other twice would double without end.
const MAX_ITEMS: usize = 1_000;
/// Items of all flows together.
const MAX_ALL_ITEMS: usize = 10_000;
/// Flows, and variables, of one file.
const MAX_NAMED: usize = 1_000;

/// Loops within loops.
pub(crate) const MAX_LOOPS: usize = 2;

/// What may stand in a list of items, for messages.
const ITEMS: &str = "`step: name`, `think: 1s`, `pacing: 10s`, `loop: 3` with `do: […]`, `include: flow`";

/// One file's outline.
pub(crate) struct Draft<'n> {
    pub(crate) source: Arc<Source>,
    pub(crate) name: String,
    pub(crate) description: String,
    pub(crate) variables: Vec<DraftVariable<'n>>,
    pub(crate) flows: Vec<DraftFlow<'n>>,
    /// The file that says when each session starts, what it runs and with which values.
    pub(crate) trace: Option<&'n Node>,
    /// Whether every feeder was written soundly.
    pub(crate) complete: bool,
    /// Names that some step extracts.
    pub(crate) extracted: BTreeSet<String>,
    /// Flows that others include.
    pub(crate) included: BTreeSet<&'n str>,
}

pub(crate) struct DraftVariable<'n> {
    pub(crate) key: &'n Key,
    pub(crate) node: &'n Node,
    /// The file and the way to pick a row, if this is a feeder.
    pub(crate) feeder: Option<(&'n Node, Pick)>,
}

pub(crate) struct DraftFlow<'n> {
    pub(crate) name: &'n str,
    /// 0 for a flow that only others include.
    pub(crate) weight: u64,
    /// What sessions do, includes put in and loops laid out flat.
    pub(crate) items: Vec<DraftItem<'n>>,
}

/// One entry of a flow that is laid out flat.
#[derive(Debug, Clone, Copy)]
pub(crate) enum DraftItem<'n> {
    /// A step, a pause, or something that is no item.
    Plain(&'n Node),
    /// Where a loop begins.
    Loop(&'n Node),
    /// Where the innermost loop ends.
    End,
}

impl<'n> DraftItem<'n> {
    /// The node, for a place to point at.
    pub(crate) fn node(&self) -> Option<&'n Node> {
        match self {
            DraftItem::Plain(node) | DraftItem::Loop(node) => Some(node),
            DraftItem::End => None,
        }
    }
}

/// Reads the outline. Faults are reported; what can be read in spite of them is kept, so that later passes find more.
pub(crate) fn outline<'n>(root: &'n Node, reporter: &mut Reporter<'_>) -> Option<Draft<'n>> {
    let known = ["name", "description", "variables", "mix", "trace", "flows"];
    let members = Members::of(root, "a scenario", &known, &[], reporter)?;
    let name = members.need("name", "a scenario", reporter);
    let name = name.and_then(|node| name_of(node, "the name of a scenario", reporter)).unwrap_or_default();
    let description = members.get("description").and_then(|node| text_of(node, "the description", reporter));
    let variables = members.get("variables").map(|node| variables(node, reporter)).unwrap_or_default();
    let flows = members.need("flows", "a scenario", reporter).and_then(|node| {
        let flows = map_of(node, "`flows`", reporter)?;
        if flows.is_empty() {
            reporter.add(Fault::new(node.at, "a scenario has at least one flow"));
        }
        if let Some((key, _)) = flows.get(MAX_NAMED) {
            reporter.add(Fault::new(key.at, format!("the scenario has more than {MAX_NAMED} flows")));
        }
        Some(&flows[..flows.len().min(MAX_NAMED)])
    });
    let listed: Vec<Listed<'n>> =
        flows.unwrap_or_default().iter().filter_map(|(k, v)| listed(k, v, reporter)).collect();
    let weights = members.get("mix").map(|node| mix(node, &listed, reporter));
    let trace = members.get("trace").and_then(|node| trace(node, reporter));
    if let (Some(_), Some(mix)) = (&trace, members.get("mix")) {
        reporter.add(Fault::new(mix.at, "the trace says which flow each session runs: leave `mix` out"));
    }
    let mut flows: Vec<DraftFlow<'n>> = Vec::new();
    let mut all_items = 0;
    for flow in &listed {
        let mut layout = Layout { flows: &listed, path: vec![flow.name], loops: 0, items: Vec::new() };
        layout.put_in(flow.items, reporter);
        let items = layout.items;
        all_items += items.len();
        if all_items > MAX_ALL_ITEMS {
            let what = format!("the flows have more than {MAX_ALL_ITEMS} items together, includes put in");
            reporter.add(Fault::new(root.at, what));
            break;
        }
        let weight = weights.as_ref().map_or(1, |weights| weights.get(flow.name).copied().unwrap_or(0));
        flows.push(DraftFlow { name: flow.name, weight, items });
    }
    Some(Draft {
        source: reporter.source.clone(),
        name,
        description: description.unwrap_or_default().to_owned(),
        complete: variables.iter().all(|variable| variable.feeder.is_some() || !is_feeder(variable.node)),
        variables,
        flows,
        trace,
        extracted: every_item(&listed).into_iter().flat_map(extracted_names).map(str::to_owned).collect(),
        included: every_item(&listed).into_iter().filter_map(|item| include_of(item)?.text()).collect(),
    })
}

/// The items of all flows, those inside of loops too.
fn every_item<'n>(flows: &[Listed<'n>]) -> Vec<&'n Node> {
    let mut found: Vec<&'n Node> = flows.iter().flat_map(|flow| flow.items).collect();
    let mut next = 0;
    while let Some(item) = found.get(next) {
        if let Some(Kind::List(inner)) = member(item, "do").map(|node| &node.kind) {
            found.extend(inner);
        }
        next += 1;
    }
    found
}

/// The file of `trace`.
fn trace<'n>(node: &'n Node, reporter: &mut Reporter<'_>) -> Option<&'n Node> {
    let members = Members::of(node, "a `trace`", &["file"], &[], reporter)?;
    let file = members.need("file", "a `trace`", reporter)?;
    if file.text().is_some_and(|text| text.ends_with(".jsonl")) {
        return Some(file);
    }
    reporter.add(Fault::new(file.at, "`file` names a JSONL file of sessions").allowed("x.jsonl"));
    None
}

fn variables<'n>(node: &'n Node, reporter: &mut Reporter<'_>) -> Vec<DraftVariable<'n>> {
    let mut variables = Vec::new();
    for (key, node) in map_of(node, "`variables`", reporter).unwrap_or_default() {
        if !key_is_reference(key, "the name of a variable", reporter) {
            continue;
        }
        if variables.len() >= MAX_NAMED {
            reporter.add(Fault::new(key.at, format!("the scenario has more than {MAX_NAMED} variables")));
            break;
        }
        let feeder = if is_feeder(node) { feeder(node, reporter) } else { None };
        variables.push(DraftVariable { key, node, feeder });
    }
    variables
}

/// Whether a variable's value is a mapping with a member `file`.
fn is_feeder(node: &Node) -> bool {
    member(node, "file").is_some()
}

fn feeder<'n>(node: &'n Node, reporter: &mut Reporter<'_>) -> Option<(&'n Node, Pick)> {
    let members = Members::of(node, "a feeder", &["file", "pick"], &[], reporter)?;
    let file = members.need("file", "a feeder", reporter)?;
    let extension = file.text().and_then(|text| text.rsplit_once('.')).map(|(_, extension)| extension);
    if !matches!(extension, Some("csv" | "jsonl")) {
        reporter.add(Fault::new(file.at, "`file` names a CSV or JSONL file").allowed("x.csv, x.jsonl"));
        return None;
    }
    let pick = match members.get("pick").map(|node| (node, node.text().unwrap_or_default())) {
        None => Pick::Sequential,
        Some((node, word)) => {
            let Some(pick) = Pick::ALL.into_iter().find(|pick| pick.name() == word) else {
                let fault = Fault::new(node.at, format!("{} is no way to pick a row", quoted(word)));
                reporter.add(fault.one_of(word, Pick::ALL.map(Pick::name)));
                return None;
            };
            pick
        }
    };
    Some((file, pick))
}

/// A flow as listed in its file.
struct Listed<'n> {
    name: &'n str,
    items: &'n [Node],
}

fn listed<'n>(key: &'n Key, node: &'n Node, reporter: &mut Reporter<'_>) -> Option<Listed<'n>> {
    let named = key_is_name(key, "the name of a flow", reporter);
    let items = list_of(node, "a flow", reporter)?;
    if items.is_empty() {
        reporter.add(Fault::new(node.at, "a flow has at least one item").allowed(ITEMS));
    }
    named.then_some(Listed { name: &key.text, items })
}

/// The weights of `mix` by flow.
fn mix<'n>(node: &'n Node, flows: &[Listed<'n>], reporter: &mut Reporter<'_>) -> BTreeMap<&'n str, u64> {
    let mut weights = BTreeMap::new();
    let Some(entries) = list_of(node, "`mix`", reporter) else { return weights };
    for entry in entries {
        let Some(members) = Members::of(entry, "an entry of `mix`", &["flow", "weight"], &[], reporter)
        else {
            continue;
        };
        let flow = members.need("flow", "an entry of `mix`", reporter);
        let weight = members
            .get("weight")
            .map_or(Some(1), |node| integer_of(node, "a weight", 0, MAX_WEIGHT, reporter));
        let Some((node, name)) = flow.and_then(|node| Some((node, known_flow(node, flows, reporter)?.name)))
        else {
            continue;
        };
        if weights.insert(name, weight.unwrap_or(1)).is_some() {
            reporter.add(Fault::new(node.at, format!("{} stands twice in the mix", quoted(name))));
        }
    }
    if !entries.is_empty() && !weights.is_empty() && weights.values().all(|weight| *weight == 0) {
        reporter.add(Fault::new(node.at, "every weight is 0: no flow would ever run"));
    }
    if entries.is_empty() {
        reporter.add(
            Fault::new(node.at, "`mix` names at least one flow").allowed("[ { flow: browse, weight: 8 } ]"),
        );
    }
    weights
}

fn known_flow<'l, 'n>(
    node: &Node,
    flows: &'l [Listed<'n>],
    reporter: &mut Reporter<'_>,
) -> Option<&'l Listed<'n>> {
    let name = text_of(node, "the name of a flow", reporter)?;
    let found = flows.iter().find(|flow| flow.name == name);
    if found.is_none() {
        let fault = Fault::new(node.at, format!("there is no flow {}", quoted(name)));
        reporter.add(fault.one_of(name, flows.iter().map(|flow| flow.name)));
    }
    found
}

/// Lays one flow out flat: the items of included flows in their place, loops with their ends.
struct Layout<'l, 'n> {
    flows: &'l [Listed<'n>],
    /// The flows that are being put in, outermost first.
    path: Vec<&'n str>,
    /// Loops that are open.
    loops: usize,
    items: Vec<DraftItem<'n>>,
}

impl<'n> Layout<'_, 'n> {
    fn put_in(&mut self, items: &'n [Node], reporter: &mut Reporter<'_>) {
        for item in items {
            if self.items.len() >= MAX_ITEMS {
                let what = format!("the flow has more than {MAX_ITEMS} items, includes put in");
                reporter.add(Fault::new(item.at, what));
                return;
            }
            if let Some(target) = include_of(item) {
                let _ = Members::of(item, "an `include`", &["include"], &[], reporter);
                self.include(target, reporter);
            } else if let Some(inner) = loop_of(item) {
                self.open(item, inner, reporter);
            } else {
                self.items.push(DraftItem::Plain(item));
            }
        }
    }

    fn include(&mut self, target: &Node, reporter: &mut Reporter<'_>) {
        let flows = self.flows;
        let Some(included) = known_flow(target, flows, reporter) else { return };
        if self.path.contains(&included.name) {
            let round = self.path.iter().copied().chain([included.name]).collect::<Vec<_>>().join(" > ");
            reporter.add(Fault::new(target.at, format!("this flow includes itself: {round}")));
            return;
        }
        self.path.push(included.name);
        self.put_in(included.items, reporter);
        self.path.pop();
    }

    fn open(&mut self, item: &'n Node, inner: Option<&'n Node>, reporter: &mut Reporter<'_>) {
        let Some(inner) = inner else {
            let fault = Fault::new(item.at, "a `loop` needs a member `do`, the items it repeats");
            reporter.add(fault.allowed("`- loop: 3` with `do: [ … ]` below it"));
            return;
        };
        if self.loops >= MAX_LOOPS {
            reporter.add(Fault::new(item.at, format!("loops stand at most {MAX_LOOPS} deep")));
            return;
        }
        let Some(items) = list_of(inner, "`do`", reporter) else { return };
        if items.is_empty() {
            reporter.add(Fault::new(inner.at, "a loop repeats at least one item").allowed(ITEMS));
        }
        self.loops += 1;
        self.items.push(DraftItem::Loop(item));
        self.put_in(items, reporter);
        self.items.push(DraftItem::End);
        self.loops -= 1;
    }
}

fn member<'n>(item: &'n Node, name: &str) -> Option<&'n Node> {
    match &item.kind {
        Kind::Map(members) => members.iter().find(|(key, _)| key.text == name).map(|(_, node)| node),
        _ => None,
    }
}

fn include_of(item: &Node) -> Option<&Node> {
    member(item, "include").filter(|_| member(item, "step").is_none() && member(item, "think").is_none())
}

/// The `do` of a loop, if the item is one; `Some(None)` for one without.
fn loop_of(item: &Node) -> Option<Option<&Node>> {
    let is_loop =
        member(item, "loop").is_some() && member(item, "step").is_none() && member(item, "think").is_none();
    is_loop.then(|| member(item, "do"))
}

/// The names that an item extracts, sound or not.
pub(crate) fn extracted_names(item: &Node) -> impl Iterator<Item = &str> {
    let members = match member(item, "extract").map(|node| &node.kind) {
        Some(Kind::Map(members)) => members.as_slice(),
        _ => &[],
    };
    members.iter().map(|(key, _)| key.text.as_str())
}

/// Which kind of item a node is; reported if it is none or two.
pub(crate) fn kind_of<'n>(item: &'n Node, reporter: &mut Reporter<'_>) -> Option<(&'static str, &'n Node)> {
    let kinds = ["step", "think", "pacing", "include", "loop"]
        .map(|kind| member(item, kind).map(|node| (kind, node)));
    let mut found = kinds.into_iter().flatten();
    match (found.next(), found.next()) {
        (Some(one), None) => Some(one),
        (Some((first, _)), Some((second, node))) => {
            let what = format!("an item is either a `{first}` or a `{second}`, not both");
            reporter.add(Fault::new(node.at, what).allowed(ITEMS));
            None
        }
        _ => {
            let first = match &item.kind {
                Kind::Map(members) => members.first().map_or("", |(key, _)| &key.text),
                _ => "",
            };
            let fault = Fault::new(item.at, "this is no item of a flow");
            reporter.add(fault.near(first, ["step", "think", "pacing", "loop", "include"]).allowed(ITEMS));
            None
        }
    }
}
