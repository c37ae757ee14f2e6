//! A plan: the rules by which things go wrong, read from YAML or JSON, held to its grammar whole, and written back.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::call::{Action, Registry, parse_action};
use super::effect::{Class, Slot};
use super::sequence::Per;
use super::when::{BINDINGS, Reach, Target, When};
use crate::document::members::{Members, integer_of, is_name, list_of, text_of};
use crate::document::units::{self, DURATION_FORM, RATIO_FORM};
use crate::document::yaml::parse;
use crate::document::{Fault, Faults, Limits, LoadError, Node, Reporter, Source, quoted};
use crate::protocol::Binding;
use crate::stable::stable_hash;

/// Bytes of a plan's file.
pub const MAX_PLAN_BYTES: u64 = 256 << 10;
/// Rules of a plan, its files together; also of the layer above it.
pub const MAX_RULES: usize = 1000;
/// Members of a list in `when`.
const MAX_ANY: usize = 100;
/// Greatest `nth`, `first` and `count`.
const MAX_COUNT: u64 = 1_000_000_000;
/// Bytes of a text in `when`, of a plan's name.
const MAX_TEXT: usize = 256;

const PLAN_LIMITS: Limits = Limits {
    nodes: 50_000,
    depth: 32,
    shape: "a mapping with `name` and `rules`",
    instead_of_merge: "an alias for a whole value",
};
const RULE_LIMITS: Limits = Limits { nodes: 1_000, shape: "a mapping with `id` and `effect`", ..PLAN_LIMITS };

const WHEN: [&str; 12] = [
    "dealer",
    "skill",
    "binding",
    "conversation",
    "client",
    "vin",
    "nth",
    "first",
    "per",
    "count",
    "after",
    "for",
];

/// One rule.
#[derive(Debug, Clone)]
pub struct Rule {
    /// Its name, `[A-Za-z0-9_-]+`.
    pub id: Arc<str>,
    /// When it applies.
    pub when: When,
    /// What it does then.
    pub action: Action,
    /// How often it does it then, from 0 to 1.
    pub chance: f64,
    /// Whether it is in force from the start.
    pub enabled: bool,
}

impl Rule {
    /// How the rule depends on the order of arrival: by its conditions, its sequence and its effects.
    pub fn class(&self) -> Class {
        let counting = match &self.action {
            Action::Always(_) => Class::Independent,
            Action::Sequence(sequence) => Class::of_counting(sequence.per()),
        };
        let effects = self.action.effects().map(|effect| effect.info.class);
        effects.fold(self.when.class().max(counting), Class::max)
    }

    /// The slots that it may take, in the order answer, delivery, delay.
    pub fn slots(&self) -> Vec<Slot> {
        let takes = |slot: &Slot| self.action.effects().any(|effect| effect.info.apply.slot() == *slot);
        [Slot::Answer, Slot::Delivery, Slot::Delay].into_iter().filter(takes).collect()
    }

    /// What it can touch.
    pub fn reach(&self) -> Reach {
        let reaches = self.action.effects().map(|effect| Reach::of(effect.info));
        reaches.fold(Reach::default(), Reach::or)
    }

    /// Why the rule can never do all that it says.
    fn contradiction(&self) -> Option<String> {
        let reach = self.reach();
        let when = &self.when;
        let of_request = [&when.conversation, &when.vin, &when.binding].iter().any(|list| !list.is_empty());
        let touches_calls = !reach.calls.is_empty();
        let touches_discovery = !reach.discovery.is_empty();
        if reach.connections && (touches_calls || touches_discovery) {
            return Some("one sequence cannot touch connections and requests: write two rules".to_owned());
        }
        if reach.connections && (of_request || !when.skill.is_empty()) {
            let what =
                "this happens when a connection is accepted: no skill, binding, conversation or vin is known";
            return Some(what.to_owned());
        }
        let met = |target: &Target| match target {
            Target::Skill(_) => touches_calls,
            Target::Discovery => touches_discovery,
        };
        let idle = self.action.effects().next().is_some() && !when.skill.iter().all(met);
        if idle {
            let only = if touches_calls { "calls of a skill" } else { "discovery" };
            return Some(format!("this touches {only} alone, and `skill` asks for more than that"));
        }
        let all = reach.calls.or(reach.discovery);
        let is_met = |word: &String| all.iter().any(|met| met.word() == word);
        let idle = self.action.effects().next().is_some() && !when.binding.iter().all(is_met);
        idle.then(|| {
            let only: Vec<_> = all.iter().map(Binding::word).collect();
            format!("this touches {} alone, and `binding` asks for more than that", only.join(" and "))
        })
    }

    /// All that the rule says, in one line, one way. The order of a JSON object's members would hang on a feature of
    /// serde_json that any crate of a build can switch on.
    fn canonical(&self) -> String {
        let when: BTreeMap<String, Value> = when_json(&self.when).into_iter().collect();
        let when: Vec<String> = when.iter().map(|(name, value)| format!("{name}={value}")).collect();
        format!("{} {} {} {} {}", self.id, self.chance, self.enabled, self.action, when.join(" "))
    }

    /// The rule as JSON, as a plan could hold it.
    pub fn to_json(&self) -> Value {
        let mut rule = Map::new();
        rule.insert("id".to_owned(), json!(&*self.id));
        let when = when_json(&self.when);
        if !when.is_empty() {
            rule.insert("when".to_owned(), Value::Object(when));
        }
        rule.insert("effect".to_owned(), json!(self.action.to_string()));
        if self.chance < 1.0 {
            rule.insert("chance".to_owned(), json!(self.chance));
        }
        if !self.enabled {
            rule.insert("enabled".to_owned(), json!(false));
        }
        Value::Object(rule)
    }
}

fn when_json(when: &When) -> Map<String, Value> {
    let mut members = Map::new();
    let mut any = |name: &str, words: Vec<&str>| match words.as_slice() {
        [] => {}
        [word] => drop(members.insert(name.to_owned(), json!(word))),
        words => drop(members.insert(name.to_owned(), json!(words))),
    };
    any("dealer", when.dealer.iter().map(String::as_str).collect());
    any("skill", when.skill.iter().map(|target| target.word()).collect());
    any("binding", when.binding.iter().map(String::as_str).collect());
    any("conversation", when.conversation.iter().map(String::as_str).collect());
    any("client", when.client.iter().map(String::as_str).collect());
    any("vin", when.vin.iter().map(String::as_str).collect());
    for (name, count) in [("nth", when.nth), ("first", when.first), ("count", when.count)] {
        if let Some(count) = count {
            members.insert(name.to_owned(), json!(count));
        }
    }
    if when.per != Per::All {
        members.insert("per".to_owned(), json!(when.per.word()));
    }
    let after = Some(when.after_ns).filter(|after| *after > 0);
    for (name, nanos) in [("after", after), ("for", when.for_ns)] {
        if let Some(nanos) = nanos {
            members.insert(name.to_owned(), json!(units::show_duration_ns(nanos)));
        }
    }
    members
}

/// The rules in force, in order, and what they are called together.
#[derive(Debug, Clone, Default)]
pub struct Plan {
    name: String,
    rules: Vec<Arc<Rule>>,
    hash: u64,
}

/// Reads a plan from YAML or JSON, with all effects of the [registry](super::registry()).
///
/// ```
/// let plan: dealer_sim::faults::Plan = "rules: [{ id: slow, effect: stall }]".parse()?;
/// assert_eq!(plan.rules().len(), 1);
/// # Ok::<(), dealer_sim::document::LoadError>(())
/// ```
impl std::str::FromStr for Plan {
    type Err = LoadError;

    fn from_str(text: &str) -> Result<Plan, LoadError> {
        Plan::parse("the plan", text, super::registry())
    }
}

impl Plan {
    /// Reads plan files; several append.
    ///
    /// # Errors
    /// Everything wrong with them, as `file:line:column`.
    pub fn load(paths: &[PathBuf], registry: Registry<'_>) -> Result<Plan, LoadError> {
        let mut faults = Faults::default();
        let sources: Vec<_> = paths
            .iter()
            .filter_map(|path| Source::read(path, MAX_PLAN_BYTES, "the plan", &mut faults))
            .collect();
        Plan::of_sources(&sources, registry, faults)
    }

    /// Reads a plan from a text, which is called `source` in messages.
    ///
    /// # Errors
    /// Everything wrong with it, as `source:line:column`.
    pub fn parse(source: &str, text: &str, registry: Registry<'_>) -> Result<Plan, LoadError> {
        let mut faults = Faults::default();
        let sources: Vec<_> = source_of(source, text, &mut faults).into_iter().collect();
        Plan::of_sources(&sources, registry, faults)
    }

    /// Reads one rule, as `POST /faults/rules` takes it.
    ///
    /// # Errors
    /// Everything wrong with it.
    pub fn parse_rule(source: &str, text: &str, registry: Registry<'_>) -> Result<Rule, LoadError> {
        let mut faults = Faults::default();
        let rule = source_of(source, text, &mut faults).and_then(|source| {
            let reporter = &mut Reporter { source, faults: &mut faults };
            let tree = parse(&RULE_LIMITS, reporter)?;
            RuleReader { registry, reporter }.rule(&tree).1
        });
        faults.finish(rule)
    }

    fn of_sources(
        sources: &[Arc<Source>],
        registry: Registry<'_>,
        mut faults: Faults,
    ) -> Result<Plan, LoadError> {
        let mut names = Vec::new();
        let mut rules = Vec::new();
        let mut known: BTreeMap<Arc<str>, (PathBuf, usize)> = BTreeMap::new();
        for source in sources {
            let reporter = &mut Reporter { source: source.clone(), faults: &mut faults };
            let Some(tree) = parse(&PLAN_LIMITS, reporter) else { continue };
            let Some(draft) = PlanDraft::of(&tree, reporter) else { continue };
            names.extend(draft.name);
            for node in draft.rules {
                if rules.len() == MAX_RULES {
                    let what = format!("the plan has more than {MAX_RULES} rules");
                    reporter.add(Fault::new(node.at, what));
                    break;
                }
                let (id, rule) = RuleReader { registry, reporter }.rule(node);
                // A rule with other faults has its id all the same.
                if let Some(id) = id {
                    if let Some((path, line)) = known.get(&id) {
                        let first = quoted(&format!("{}:{line}", path.display()));
                        let what = format!("two rules are called {}, the first at {first}", quoted(&id));
                        let fault = Fault::new(node.at, what);
                        reporter.add(fault.allowed("an id for each rule, over all files"));
                        continue;
                    }
                    known.insert(id, (source.path.clone(), node.at.line));
                }
                rules.extend(rule.map(Arc::new));
            }
        }
        faults.finish(Some(Plan::of_rules(names.join("+"), rules)))
    }

    fn of_rules(name: String, rules: Vec<Arc<Rule>>) -> Plan {
        let mut plan = Plan { name, rules, hash: 0 };
        // What it does, and not how it was written: comments, spaces and defaults written out change nothing.
        let lines: Vec<String> = plan.rules.iter().map(|rule| rule.canonical()).collect();
        plan.hash = stable_hash(0, lines.join("\n").as_bytes());
        plan
    }

    /// Its name; of several files, with `+` between.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The rules, in order of precedence.
    pub fn rules(&self) -> &[Arc<Rule>] {
        &self.rules
    }

    /// A hash of what the rules do: equal plans have equal ones on any machine. The empty default plan has 0.
    pub fn hash(&self) -> u64 {
        self.hash
    }

    /// The plan as JSON that reads back as the same plan.
    pub fn to_json(&self) -> Value {
        match self.name.as_str() {
            "" => json!({ "rules": self.rules_json() }),
            name => json!({ "name": name, "rules": self.rules_json() }),
        }
    }

    fn rules_json(&self) -> Value {
        self.rules.iter().map(|rule| rule.to_json()).collect()
    }
}

/// A text that did not come from a file, held to the limit of one.
fn source_of(source: &str, text: &str, faults: &mut Faults) -> Option<Arc<Source>> {
    if text.len() as u64 > MAX_PLAN_BYTES {
        let what = format!("it is larger than {MAX_PLAN_BYTES} bytes");
        faults.add(Fault::of_argument(source, what));
        return None;
    }
    let text = text.strip_prefix('\u{feff}').unwrap_or(text).to_owned();
    Some(Arc::new(Source { path: Path::new(source).to_owned(), text }))
}

struct PlanDraft<'n> {
    name: Option<String>,
    rules: &'n [Node],
}

impl<'n> PlanDraft<'n> {
    fn of(tree: &'n Node, reporter: &mut Reporter<'_>) -> Option<PlanDraft<'n>> {
        let members = Members::of(tree, "a plan", &["name", "description", "rules"], &[], reporter)?;
        let name = members.get("name").and_then(|node| short_text(node, "the name of a plan", reporter));
        if let Some(node) = members.get("description") {
            text_of(node, "a description", reporter);
        }
        // `rules:` with nothing behind it is a plan without rules; a missing member is a slip.
        let rules = match members.get("rules") {
            Some(node) => list_of(node, "`rules`", reporter)?,
            None => members.need("rules", "a plan", reporter).map(|_| &[][..])?,
        };
        Some(PlanDraft { name: name.map(str::to_owned), rules })
    }
}

fn short_text<'n>(node: &'n Node, what: &str, reporter: &mut Reporter<'_>) -> Option<&'n str> {
    let text = text_of(node, what, reporter)?;
    if text.is_empty() || text.len() > MAX_TEXT {
        reporter.add(Fault::new(node.at, format!("{what} is text of 1 to {MAX_TEXT} bytes")));
        return None;
    }
    Some(text)
}

struct RuleReader<'r, 'f, 'a> {
    registry: Registry<'r>,
    reporter: &'a mut Reporter<'f>,
}

impl RuleReader<'_, '_, '_> {
    /// A rule, or `None` with everything wrong with it reported; and its id, if that could be read.
    fn rule(&mut self, node: &Node) -> (Option<Arc<str>>, Option<Rule>) {
        let allowed = ["id", "when", "effect", "chance", "enabled"];
        let Some(members) = Members::of(node, "a rule", &allowed, &[], self.reporter) else {
            return (None, None);
        };
        let id = members.need("id", "a rule", self.reporter).and_then(|node| self.id(node));
        (id.clone(), self.rule_called(id, node, &members))
    }

    fn rule_called(&mut self, id: Option<Arc<str>>, node: &Node, members: &Members<'_>) -> Option<Rule> {
        let when = members.get("when").map_or_else(|| Some(When::default()), |node| self.when(node));
        let effect = members.need("effect", "a rule", self.reporter);
        let action = effect.and_then(|node| self.action(node));
        let chance = members.get("chance").map_or(Some(1.0), |node| self.chance(node));
        let enabled = members.get("enabled").map_or(Some(true), |node| self.boolean(node));
        let (id, when, action) = (id?, when?, action?);
        let rule = Rule { id, when, action, chance: chance?, enabled: enabled? };
        if let Some(what) = rule.contradiction() {
            let fault = Fault::new(effect.map_or(node.at, |effect| effect.at), what);
            self.reporter.add(fault.allowed("effects and conditions that can meet"));
            return None;
        }
        Some(rule)
    }

    fn id(&mut self, node: &Node) -> Option<Arc<str>> {
        let text = text_of(node, "the id of a rule", self.reporter)?;
        // The two other triggers would be mistaken for such a rule in a repro string.
        if !is_name(text) || matches!(text, "header" | "magic") {
            let what = format!("{} cannot be the id of a rule", quoted(text));
            let allowed = "1 to 64 letters, digits, `_` and `-`, but not `header` or `magic`";
            self.reporter.add(Fault::new(node.at, what).allowed(allowed));
            return None;
        }
        Some(text.into())
    }

    fn action(&mut self, node: &Node) -> Option<Action> {
        let text = text_of(node, "an effect", self.reporter)?;
        match parse_action(text, self.registry, &|offset, width| node.within(offset, width)) {
            Ok(action) => Some(action),
            Err(faults) => {
                faults.into_iter().for_each(|fault| self.reporter.add(fault));
                None
            }
        }
    }

    fn chance(&mut self, node: &Node) -> Option<f64> {
        let found = node.text().and_then(units::number).filter(|chance| (0.0..=1.0).contains(chance));
        if found.is_none() {
            let fault = Fault::new(node.at, "`chance` is a ratio from 0 to 1");
            self.reporter.add(fault.allowed(RATIO_FORM));
        }
        found
    }

    fn boolean(&mut self, node: &Node) -> Option<bool> {
        let found = node.text().and_then(|text| text.parse().ok());
        if found.is_none() {
            self.reporter.add(Fault::new(node.at, "`enabled` is true or false").allowed("true, false"));
        }
        found
    }

    fn when(&mut self, node: &Node) -> Option<When> {
        let members = Members::of(node, "`when`", &WHEN, &[], self.reporter)?;
        let before = self.reporter.faults.count();
        let mut when = When {
            dealer: self.texts(&members, "dealer"),
            conversation: self.texts(&members, "conversation"),
            client: self.texts(&members, "client"),
            vin: self.texts(&members, "vin"),
            nth: self.count(&members, "nth"),
            first: self.count(&members, "first"),
            count: self.count(&members, "count"),
            after_ns: self.duration(&members, "after").unwrap_or(0),
            for_ns: self.duration(&members, "for"),
            ..When::default()
        };
        for (text, node) in self.words(&members, "skill", &Target::WORDS) {
            let target = Target::from_word(text);
            when.skill.extend(target.filter(|target| !self.twice(when.skill.contains(target), node)));
        }
        for (text, node) in self.words(&members, "binding", &BINDINGS) {
            if !self.twice(when.binding.iter().any(|own| own == text), node) {
                when.binding.push(text.to_owned());
            }
        }
        if let Some(per) = members.get("per") {
            let word = self.words(&members, "per", &Per::WORDS);
            when.per = word.first().and_then(|(text, _)| Per::from_word(text)).unwrap_or(when.per);
            if word.len() > 1 || !when.counts() {
                let what = "`per` is one word and says what `nth` and `first` count over";
                self.reporter.add(Fault::new(per.at, what).allowed("`per` beside `nth` or `first`"));
            }
        }
        (self.reporter.faults.count() == before).then_some(when)
    }

    fn twice(&mut self, twice: bool, node: &Node) -> bool {
        if twice {
            let what = format!("{} stands twice in this list", quoted(node.text().unwrap_or_default()));
            self.reporter.add(Fault::new(node.at, what));
        }
        twice
    }

    /// The texts of a member that is one or a list.
    fn each<'n>(&mut self, members: &Members<'n>, name: &str) -> Vec<(&'n str, &'n Node)> {
        let Some(node) = members.get(name) else { return Vec::new() };
        let nodes = match &node.kind {
            crate::document::Kind::List(nodes) => nodes.as_slice(),
            _ => std::slice::from_ref(node),
        };
        if nodes.is_empty() || nodes.len() > MAX_ANY {
            let what = format!("`{name}` is one text or a list of 1 to {MAX_ANY}");
            self.reporter.add(Fault::new(node.at, what));
            return Vec::new();
        }
        let what = format!("`{name}`");
        nodes.iter().filter_map(|node| Some((short_text(node, &what, self.reporter)?, node))).collect()
    }

    fn texts(&mut self, members: &Members<'_>, name: &str) -> Vec<String> {
        self.each(members, name).into_iter().map(|(text, _)| text.to_owned()).collect()
    }

    fn words<'n>(
        &mut self,
        members: &Members<'n>,
        name: &str,
        allowed: &[&'static str],
    ) -> Vec<(&'n str, &'n Node)> {
        let mut words = self.each(members, name);
        words.retain(|(text, node)| {
            let known = allowed.contains(text);
            if !known {
                let fault = Fault::new(node.at, format!("`{name}` cannot be {}", quoted(text)));
                self.reporter.add(fault.one_of(text, allowed.iter().copied()));
            }
            known
        });
        words
    }

    fn count(&mut self, members: &Members<'_>, name: &str) -> Option<u64> {
        integer_of(members.get(name)?, &format!("`{name}`"), 1, MAX_COUNT, self.reporter)
    }

    fn duration(&mut self, members: &Members<'_>, name: &str) -> Option<u64> {
        let node = members.get(name)?;
        let found = node.text().and_then(units::duration_ns);
        if found.is_none() {
            let fault = Fault::new(node.at, format!("`{name}` is a duration"));
            self.reporter.add(fault.allowed(DURATION_FORM));
        }
        found
    }
}
