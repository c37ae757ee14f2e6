//! Compiles the steps of a flow.

use std::collections::{BTreeMap, BTreeSet};

use dealer_sim::protocol::{Binding, Skill};
use serde_json::Value;

use super::body::Body;
use super::check::{Check, Test};
use super::compile::{Compiler, Place, Scope};
use super::cursor::{Loop, MAX_ROUNDS};
use super::draft::{DraftFlow, DraftItem, extracted_names, kind_of};
use super::expect::Pattern;
use super::expr::{Expr, Template};
use super::fault::{Fault, Reporter, quoted};
use super::mark::marked;
use super::members::{Members, integer_of, is_name, key_is_reference, list_of, map_of, name_of, text_of};
use super::pointer::{Path, Reader};
use super::step::{Extract, Item, Step, Think, When};
use super::workload::may_be_lead;
use super::yaml::{Kind, Node};

const STEP: [&str; 10] =
    ["step", "skill", "request", "extract", "check", "when", "expect", "on_error", "retry", "raw"];
/// Values that one step reads from its reply.
const MAX_READ: usize = 100;
const PATHS: &str = "/data/… (from the payload), envelope:/… (the whole body), header:Name";

/// What the steps of one file have in common.
pub(crate) struct Names<'s> {
    pub(crate) sets: &'s BTreeMap<String, Value>,
    pub(crate) slots: &'s BTreeMap<String, usize>,
    /// What is set when a session begins: variables and columns.
    pub(crate) at_begin: &'s BTreeSet<String>,
    /// Whether all names are known, see [`Scope`].
    pub(crate) complete: bool,
}

/// The items of a flow and whether any may submit a lead. `next_id` counts the steps of the workload.
pub(crate) fn compile_flow(
    flow: &DraftFlow<'_>,
    final_name: &str,
    names: &Names<'_>,
    next_id: &mut usize,
    used_sets: &mut BTreeSet<String>,
    reporter: &mut Reporter<'_>,
) -> (Vec<Item>, bool) {
    let mut walk = Walk {
        flow: final_name,
        names,
        visible: names.at_begin.clone(),
        steps: BTreeMap::new(),
        next_id,
        submits_leads: false,
        used_sets,
        reporter,
    };
    let mut items = Vec::new();
    // The loops that are open, as indices into `items`; `None` for one that has a fault.
    let mut loops = Vec::new();
    for (position, item) in flow.items.iter().enumerate() {
        match item {
            DraftItem::Plain(node) => match kind_of(node, walk.reporter) {
                Some(("step", name)) => items.extend(walk.step(node, name, position).map(Item::Step)),
                Some(("think", pause)) => {
                    items.extend(walk.pause(node, pause, "think", position).map(Item::Think));
                }
                Some(("pacing", pause)) => {
                    items.extend(walk.pause(node, pause, "pacing", position).map(Item::Pacing));
                }
                _ => {}
            },
            DraftItem::Loop(node) => {
                let begun = walk.begin_loop(node, position, flow.items.get(position + 1..));
                loops.push(begun.map(|begun| {
                    items.push(Item::Loop(begun));
                    items.len() - 1
                }));
            }
            DraftItem::End => {
                if let Some(Some(start)) = loops.pop() {
                    items.push(Item::EndLoop(start));
                    let end = items.len();
                    if let Some(Item::Loop(begun)) = items.get_mut(start) {
                        begun.end = end;
                    }
                }
            }
        }
    }
    if walk.steps.is_empty() && walk.reporter.faults.is_empty() {
        let at = flow.items.iter().find_map(DraftItem::node).map_or(super::fault::Pos::START, |item| item.at);
        walk.reporter.add(Fault::new(at, format!("the flow {} has no step", quoted(flow.name))));
    }
    (items, walk.submits_leads)
}

/// The way along one flow's items.
struct Walk<'w, 'f> {
    flow: &'w str,
    names: &'w Names<'w>,
    /// The names that have been set up to here.
    visible: BTreeSet<String>,
    /// Names of steps so far and their lines.
    steps: BTreeMap<String, usize>,
    next_id: &'w mut usize,
    submits_leads: bool,
    used_sets: &'w mut BTreeSet<String>,
    reporter: &'w mut Reporter<'f>,
}

impl<'f> Walk<'_, 'f> {
    fn compiler(&mut self) -> Compiler<'_, 'f> {
        let Names { sets, slots, complete, .. } = *self.names;
        Compiler {
            scope: Scope { sets, slots, visible: &self.visible, complete },
            used_sets: self.used_sets,
            reporter: self.reporter,
        }
    }

    fn pause(&mut self, node: &Node, pause: &Node, what: &str, position: usize) -> Option<Think> {
        Members::of(node, &format!("a `{what}`"), &[what], &[], self.reporter)?;
        let text = pause.text().unwrap_or_default().to_owned();
        self.compiler().pause(pause, what).map(|pause| Think { pause, position, text })
    }

    /// The head of a loop. `rest` are the items from its first one on.
    fn begin_loop(&mut self, node: &Node, position: usize, rest: Option<&[DraftItem<'_>]>) -> Option<Loop> {
        const ALLOWED: &str = "3, { count: 3 }, { while: \"${name}\", max: 20 }";
        let most = u64::from(MAX_ROUNDS);
        let members = Members::of(node, "a `loop`", &["loop", "do"], &[], self.reporter)?;
        let head = members.need("loop", "a `loop`", self.reporter)?;
        let begun = if matches!(head.kind, Kind::Map(_)) {
            let members = Members::of(head, "a `loop`", &["count", "while", "max"], &[], self.reporter)?;
            let mut number = |name: &str, what: &str| {
                members.get(name).map(|node| integer_of(node, what, 1, most, self.reporter))
            };
            let (count, max) = (number("count", "`count`"), number("max", "`max`"));
            let condition = members.get("while").map(|node| self.condition(node));
            let fault = match (&count, &condition, &max) {
                (Some(_), None, None) | (None, Some(_), _) => None,
                (Some(_), Some(_), _) => Some("a loop has `count` or `while`, not both"),
                (Some(_), None, Some(_)) => Some("`max` is for `while`: a `count` is its own end"),
                (None, None, _) => Some("a loop says how often it repeats"),
            };
            if let Some(fault) = fault {
                self.reporter.add(Fault::new(head.at, fault).allowed(ALLOWED));
            }
            let max = count.or(max).unwrap_or(Some(100));
            condition.map_or(Some(None), |condition| condition.map(Some)).zip(max).filter(|_| fault.is_none())
        } else {
            integer_of(head, "`loop`", 1, most, self.reporter).map(|max| (None, max))
        };
        // From the second round on, what any item of the loop extracts has a value.
        let mut depth = 1;
        for item in rest.unwrap_or_default() {
            match item {
                DraftItem::Plain(node) => self.visible.extend(extracted_names(node).map(str::to_owned)),
                DraftItem::Loop(_) => depth += 1,
                DraftItem::End => depth -= 1,
            }
            if depth == 0 {
                break;
            }
        }
        let (when, max) = begun?;
        let text = match &when {
            Some(when) => format!("while {}, at most {max} times", when.text),
            None => format!("{max} times"),
        };
        let max = u32::try_from(max).unwrap_or(u32::MAX);
        Some(Loop { end: 0, position, max, condition: when.map(|when| when.condition), text })
    }

    fn step(&mut self, node: &Node, name: &Node, position: usize) -> Option<Step> {
        let members = Members::of(node, "a step", &STEP, &[], self.reporter)?;
        let name =
            name_of(name, "the name of a step", self.reporter).filter(|text| self.first_of_name(text, name));
        let skill = self.skill(&members);
        let when = members.get("when").map(|node| self.when(node));
        let request = members.get("request").map(|node| self.request(node));
        let mut reader = Reader::of(Binding::A2a);
        let extracts =
            members.get("extract").map(|node| self.extracts(node, &mut reader)).unwrap_or_default();
        // Also those that were refused: their users are not to be blamed.
        self.visible.extend(extracted_names(node).map(str::to_owned));
        let checks = members.get("check").map(|node| self.checks(node, &mut reader)).unwrap_or_default();
        let expect =
            members.get("expect").map_or(Some(vec![Pattern::ok()]), |node| self.expect(node, &checks));
        let on_error_continue = members.get("on_error").map_or(Some(false), |node| self.on_error(node));
        let names: Vec<&str> = checks.iter().map(|check| &*check.name).collect();
        let is_lead = skill.is_none_or(|skill| skill == Skill::LeadSubmit);
        let retry = members.get("retry").map(|node| self.compiler().retry(node, is_lead, &names));
        let raw = members.get("raw").map(|node| self.compiler().raw(node));
        // Whatever is missing from here on was reported.
        let (name, skill) = (name?, skill?);
        let retry = retry.map_or(Some(None), |retry| retry.map(Some))?;
        let raw = raw.map_or(Some(None), |raw| raw.map(Some))?;
        let request = request.unwrap_or(Some(Request::Members(Vec::new())))?;
        let (body, marked) = request.compile(skill, retry.is_some());
        self.submits_leads |= marked.is_some() || raw.as_ref().is_some_and(|raw| raw.may_hide_lead);
        let id = *self.next_id;
        *self.next_id += 1;
        Some(Step {
            label: format!("{}/{name}", self.flow),
            name,
            skill,
            id,
            position,
            when: when.unwrap_or(Some(Vec::new()))?,
            marked,
            body,
            reader,
            extracts,
            checks,
            expect: expect?,
            on_error_continue: on_error_continue?,
            retry,
            raw,
        })
    }

    /// Whether this is the first step of its name; the label `flow/step` would stand for two otherwise.
    fn first_of_name(&mut self, text: &str, node: &Node) -> bool {
        let Some(line) = self.steps.insert(text.to_owned(), node.at.line) else { return true };
        let what = format!(
            "the flow {} has two steps {}, the first in line {line} (includes put in)",
            quoted(self.flow),
            quoted(text)
        );
        self.reporter.add(Fault::new(node.at, what));
        false
    }

    fn skill(&mut self, members: &Members<'_>) -> Option<Skill> {
        let node = members.need("skill", "a step", self.reporter)?;
        let id = text_of(node, "a skill", self.reporter)?;
        let skill = Skill::from_id(id);
        if skill.is_none() {
            let fault = Fault::new(node.at, format!("there is no skill {}", quoted(id)));
            self.reporter.add(fault.one_of(id, Skill::ALL.map(Skill::id)));
        }
        skill
    }

    /// One condition or a list of them.
    fn when(&mut self, node: &Node) -> Option<Vec<When>> {
        let conditions = match &node.kind {
            Kind::List(items) => items.as_slice(),
            _ => std::slice::from_ref(node),
        };
        let compiled: Vec<_> = conditions.iter().map(|node| self.condition(node)).collect();
        compiled.into_iter().collect()
    }

    fn condition(&mut self, node: &Node) -> Option<When> {
        const ALLOWED: &str = "\"${name}\", or a list of them";
        let Some(text) = node.text() else {
            let fault =
                Fault::new(node.at, format!("a condition of `when` is a value, this is {}", node.sort()));
            self.reporter.add(fault.allowed(ALLOWED));
            return None;
        };
        let condition = self.compiler().template(node, Place::When)?;
        if let Template::Const(Value::String(_)) = &condition {
            let fault = Fault::new(node.at, format!("{} is a text and no value to test", quoted(text)));
            self.reporter.add(fault.allowed(ALLOWED));
            return None;
        }
        Some(When { condition, text: text.to_owned() })
    }

    fn request(&mut self, node: &Node) -> Option<Request> {
        let is_expression = node.text().is_some_and(|text| text.starts_with("${") && text.ends_with('}'));
        if !is_expression {
            map_of(node, "`request`", self.reporter)?;
        }
        match self.compiler().template(node, Place::Request)? {
            Template::Map(members) => Some(Request::Members(members)),
            Template::Expr(expr @ (Expr::Slot { .. } | Expr::Const(Value::Object(_)))) => {
                Some(Request::Object(expr))
            }
            _ => {
                let fault = Fault::new(node.at, "`request` is a mapping, or the name of a value that is one");
                self.reporter.add(fault.allowed("{ filters: { make: [Ford] } }, \"${name}\""));
                None
            }
        }
    }

    fn extracts(&mut self, node: &Node, reader: &mut Reader) -> Vec<Extract> {
        let mut extracts = Vec::new();
        let written = map_of(node, "`extract`", self.reporter).unwrap_or_default();
        if let Some((key, _)) = written.get(MAX_READ) {
            self.reporter.add(Fault::new(key.at, format!("a step extracts at most {MAX_READ} values")));
        }
        for (key, path) in written.iter().take(MAX_READ) {
            let named = key_is_reference(key, "the name of a value", self.reporter);
            if let (true, Some((text, path))) = (named, self.path(path)) {
                let slot = self.names.slots.get(&key.text).copied();
                let slot = slot.filter(|_| !self.names.sets.contains_key(&key.text));
                extracts.push(Extract { name: key.text.clone(), path: text, place: reader.add(path), slot });
            }
        }
        extracts
    }

    fn path(&mut self, node: &Node) -> Option<(String, Path)> {
        let text = text_of(node, "a path", self.reporter)?;
        match Path::parse(text) {
            Ok(path) => Some((text.to_owned(), path)),
            Err(what) => {
                self.reporter.add(Fault::new(node.at, what).allowed(PATHS));
                None
            }
        }
    }

    fn checks(&mut self, node: &Node, reader: &mut Reader) -> Vec<Check> {
        let entries = list_of(node, "`check`", self.reporter).unwrap_or_default();
        if let Some(entry) = entries.get(MAX_READ) {
            self.reporter.add(Fault::new(entry.at, format!("a step has at most {MAX_READ} checks")));
        }
        entries.iter().take(MAX_READ).filter_map(|entry| self.check(entry, reader)).collect()
    }

    fn check(&mut self, node: &Node, reader: &mut Reader) -> Option<Check> {
        let tests = Test::ALL.map(Test::name);
        let known: Vec<&str> = ["path", "name"].into_iter().chain(tests).collect();
        let members = Members::of(node, "a check", &known, &[], self.reporter)?;
        let path = members.need("path", "a check", self.reporter).and_then(|node| self.path(node));
        let name = members.get("name").map(|node| name_of(node, "the name of a check", self.reporter));
        let mut compiled = Vec::new();
        let Kind::Map(written) = &node.kind else { return None };
        for (key, wanted) in written {
            let Some(test) = Test::ALL.into_iter().find(|test| test.name() == key.text) else { continue };
            let template = self.compiler().template(wanted, Place::Check);
            if let Some(constant) = template.as_ref().and_then(Template::constant)
                && let Err(allowed) = test.takes(&constant)
            {
                let what = format!("`{}` does not take {}", key.text, wanted.sort());
                self.reporter.add(Fault::new(wanted.at, what).allowed(allowed));
            }
            compiled.push(template.map(|template| (test, template)));
        }
        if compiled.is_empty() {
            self.reporter.add(Fault::new(node.at, "this check tests nothing").allowed(tests.join(", ")));
        }
        let (text, path) = path?;
        let name = name.unwrap_or_else(|| Some(default_name(&text)))?;
        let tests = compiled.into_iter().collect::<Option<Vec<_>>>()?;
        Some(Check { name: name.into(), path: text, place: reader.add(path), tests })
    }

    fn expect(&mut self, node: &Node, checks: &[Check]) -> Option<Vec<Pattern>> {
        let names: Vec<&str> = checks.iter().map(|check| &*check.name).collect();
        self.compiler().patterns(node, "`expect`", &names)
    }

    fn on_error(&mut self, node: &Node) -> Option<bool> {
        match text_of(node, "`on_error`", self.reporter)? {
            "continue" => Some(true),
            "stop" => Some(false),
            text => {
                let fault =
                    Fault::new(node.at, format!("{} is no way to go on after an error", quoted(text)));
                self.reporter.add(fault.one_of(text, ["stop", "continue"]));
                None
            }
        }
    }
}

/// What `request` says.
enum Request {
    Members(Vec<(String, Template)>),
    /// An object that only exists when the session runs. Its `type` is that of the skill, whatever it says itself.
    Object(Expr),
}

impl Request {
    /// The body, and that with the test mark if it may be a lead.
    fn compile(self, skill: Skill, retries: bool) -> (Body, Option<Body>) {
        match self {
            Request::Object(expr) => {
                let marked = (skill == Skill::LeadSubmit)
                    .then(|| Body::of_object(skill.request_type(), expr.clone(), true));
                (Body::of_object(skill.request_type(), expr, false), marked)
            }
            Request::Members(mut members) => {
                if retries && skill == Skill::LeadSubmit {
                    give_key(&mut members);
                }
                let marked =
                    may_be_lead(skill, &members).then(|| Body::new(skill.request_type(), marked(&members)));
                (Body::new(skill.request_type(), members), marked)
            }
        }
    }
}

/// Lets the idempotency key of a lead come from the step's retries: its own, or one that is drawn for it.
fn give_key(request: &mut Vec<(String, Template)>) {
    const NAME: &str = "idempotency_key";
    match request.iter_mut().find(|(name, _)| name == NAME) {
        Some((_, own)) => {
            let template = std::mem::replace(own, Template::Const(Value::Null));
            *own = Template::Expr(Expr::IdempotencyKey(Some(Box::new(template))));
        }
        None => request.push((NAME.to_owned(), Template::Expr(Expr::IdempotencyKey(None)))),
    }
}

/// The name of a check that has none: its path with `_` for what a name cannot hold, `/data/total` as `data_total`.
fn default_name(path: &str) -> String {
    let name: String = path.chars().map(|c| if super::members::is_word(c) { c } else { '_' }).collect();
    let name: String = name.trim_matches('_').chars().take(64).collect();
    if is_name(&name) { name } else { "payload".to_owned() }
}
