//! The rules in force: a plan and the admin layer above it. Changed whole behind the readers' back: a decision takes the
//! rules as they were at its beginning, takes no lock for it, and where there are no rules reads one flag.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use arc_swap::ArcSwap;
use serde_json::{Value, json};

use super::call::Registry;
use super::counters::Occurrences;
use super::decide::{Decision, Facts, Layers, Live, Tally, decide};
use super::effect::Slot;
use super::plan::{MAX_RULES, Plan, Rule};
use crate::share::Share;
use crate::stable::{mix, stable_hash};

/// Why a change of the rules in force is refused. The rules stay as they were.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// Another editor was faster.
    #[error(
        "the rules have changed since: they are {is} now; read GET /faults and send its ETag as If-Match"
    )]
    Stale {
        /// The ETag now.
        is: String,
    },
    /// No such rule.
    #[error("there is no rule {id:?}; the rules are: {}", .known.join(", "))]
    Unknown {
        /// What was asked for.
        id: String,
        /// The ids in force.
        known: Vec<String>,
    },
    /// Rules would share an id.
    #[error(
        "a rule {id:?} exists already, in the plan or in the admin layer; take another id or remove that rule"
    )]
    Double {
        /// The id.
        id: String,
    },
    /// A rule of the plan cannot be removed by itself.
    #[error("{id:?} is a rule of the plan: disable it ({{\"enabled\": false}}), or PUT a plan without it")]
    OfPlan {
        /// The id.
        id: String,
    },
    /// Too many rules.
    #[error("the admin layer holds {MAX_RULES} rules, which is the most; remove some")]
    Full,
}

/// A change of the rules in force.
#[derive(Debug)]
pub(crate) enum Edit<'a> {
    /// See [`Engine::put`].
    Put(Arc<Plan>),
    /// See [`Engine::clear`].
    Clear,
    /// See [`Engine::reset`].
    Reset,
    /// See [`Engine::add_rule`].
    AddRule(Arc<Rule>),
    /// See [`Engine::set_enabled`].
    SetEnabled(&'a str, bool),
    /// See [`Engine::remove_rule`].
    RemoveRule(&'a str),
}

/// Sets the counts of stable keys apart from the rules' own in one table.
const ATTEMPTS: u64 = 0x6174_7465_6d70_7473;

/// Decides faults by rules that can change while it does.
#[derive(Debug)]
pub struct Engine {
    registry: Registry<'static>,
    share: Share,
    /// What a reset goes back to.
    start: Arc<Plan>,
    has_rules: AtomicBool,
    force: ArcSwap<Force>,
    /// Held by editors alone.
    editing: Mutex<()>,
    serials: AtomicU64,
}

/// One state of the rules.
#[derive(Debug)]
struct Force {
    plan: Arc<Plan>,
    /// The admin layer, then the plan: the order of precedence.
    rules: Vec<Live>,
    since_ns: u64,
    edits: u64,
    occurrences: Arc<Occurrences>,
}

impl Force {
    fn etag(&self) -> String {
        format!("\"{:016x}-{}\"", self.plan.hash(), self.edits)
    }

    fn admin(&self) -> impl Iterator<Item = &Live> {
        self.rules.iter().filter(|live| live.is_admin)
    }

    fn with_rules(&self, rules: Vec<Live>) -> Force {
        let (plan, occurrences) = (self.plan.clone(), self.occurrences.clone());
        Force { plan, rules, since_ns: self.since_ns, edits: self.edits, occurrences }
    }

    fn unknown(&self, id: &str) -> EditError {
        let known = self.rules.iter().map(|live| live.rule.id.to_string()).collect();
        EditError::Unknown { id: id.to_owned(), known }
    }
}

impl Engine {
    /// The plan in force from `now_ns` of the traffic clock on, with nothing above it.
    pub fn new(plan: Plan, registry: Registry<'static>, now_ns: u64) -> Engine {
        Engine::sharing(plan, registry, Share::default(), now_ns)
    }

    /// The same for one of several dealers, which may keep this share of counts.
    pub(crate) fn sharing(plan: Plan, registry: Registry<'static>, share: Share, now_ns: u64) -> Engine {
        let engine = Engine {
            registry,
            share,
            start: Arc::new(Plan::default()),
            has_rules: AtomicBool::new(false),
            force: ArcSwap::from_pointee(Force {
                plan: Arc::default(),
                rules: Vec::new(),
                since_ns: now_ns,
                edits: 0,
                occurrences: Arc::default(),
            }),
            editing: Mutex::new(()),
            serials: AtomicU64::new(1),
        };
        let start = Arc::new(plan);
        engine.force.store(Arc::new(engine.in_force(start.clone(), Vec::new(), 0, now_ns)));
        engine.has_rules.store(!start.rules().is_empty(), Ordering::Release);
        Engine { start, ..engine }
    }

    /// Whether any rule is in force.
    pub fn has_rules(&self) -> bool {
        self.has_rules.load(Ordering::Acquire)
    }

    /// What touches a request. The same for the same facts, as far as the rules do not count.
    pub fn decide(&self, seed: u64, facts: &Facts<'_>, now_ns: u64) -> Decision {
        let asked = facts.request_effect.is_some() || facts.magic.is_some();
        if !asked && !self.has_rules.load(Ordering::Acquire) {
            return Decision::default();
        }
        let force = self.force.load();
        let layers = Layers {
            plan: force.plan.hash(),
            since_ns: force.since_ns,
            rules: &force.rules,
            occurrences: &force.occurrences,
        };
        decide(&layers, self.registry, seed, facts, now_ns)
    }

    /// Replaces the plan; the admin layer stays above it. Counters start anew. Gives the new ETag.
    ///
    /// # Errors
    /// `if_match` is given and none of its ETags is that of the rules in force; a rule of the admin layer has an id of the
    /// plan.
    pub fn put(&self, plan: Plan, if_match: Option<&str>, now_ns: u64) -> Result<String, EditError> {
        Engine::edit(&[self], &Edit::Put(Arc::new(plan)), if_match, now_ns)
    }

    /// Removes the plan and the admin layer. Gives the new ETag.
    ///
    /// # Errors
    /// As [`put`](Engine::put).
    pub fn clear(&self, if_match: Option<&str>, now_ns: u64) -> Result<String, EditError> {
        Engine::edit(&[self], &Edit::Clear, if_match, now_ns)
    }

    /// Goes back to the plan of the start, without an admin layer; counters start anew.
    pub fn reset(&self, now_ns: u64) {
        // Without If-Match nothing can refuse it.
        drop(Engine::edit(&[self], &Edit::Reset, None, now_ns));
    }

    /// Adds a rule to the admin layer, behind those that are there; its time and counts begin now. Gives the new ETag.
    ///
    /// # Errors
    /// The id is taken, the layer is full, or as [`put`](Engine::put).
    pub fn add_rule(&self, rule: Rule, if_match: Option<&str>, now_ns: u64) -> Result<String, EditError> {
        Engine::edit(&[self], &Edit::AddRule(Arc::new(rule)), if_match, now_ns)
    }

    /// Enables or disables a rule of either layer; what it counted stays. Gives the new ETag.
    ///
    /// # Errors
    /// There is no such rule, or as [`put`](Engine::put).
    pub fn set_enabled(&self, id: &str, enabled: bool, if_match: Option<&str>) -> Result<String, EditError> {
        Engine::edit(&[self], &Edit::SetEnabled(id, enabled), if_match, 0)
    }

    /// Removes a rule of the admin layer. Gives the new ETag.
    ///
    /// # Errors
    /// There is no such rule, it is the plan's, or as [`put`](Engine::put).
    pub fn remove_rule(&self, id: &str, if_match: Option<&str>) -> Result<String, EditError> {
        Engine::edit(&[self], &Edit::RemoveRule(id), if_match, 0)
    }

    /// Changes the rules of several dealers alike: all of them, or none where one refuses. Gives the new ETag of all.
    /// Whoever edits several at once must name them in one order.
    ///
    /// # Errors
    /// As those of the edit itself.
    pub(crate) fn edit(
        engines: &[&Engine],
        edit: &Edit<'_>,
        if_match: Option<&str>,
        now_ns: u64,
    ) -> Result<String, EditError> {
        let editing = engines.iter().map(|engine| &engine.editing);
        let _editors: Vec<_> =
            editing.map(|editing| editing.lock().unwrap_or_else(PoisonError::into_inner)).collect();
        let is = Engine::etag_of(engines);
        if if_match.is_some_and(|wanted| !wanted.split(',').any(|tag| [&is, "*"].contains(&tag.trim()))) {
            return Err(EditError::Stale { is });
        }
        let change = |engine: &&Engine| {
            let force = engine.force.load_full();
            Ok(Force { edits: force.edits + 1, ..engine.changed(&force, edit, now_ns)? })
        };
        let changed = engines.iter().map(change).collect::<Result<Vec<Force>, EditError>>()?;
        for (engine, force) in engines.iter().zip(changed) {
            let has_rules = !force.rules.is_empty();
            engine.force.store(Arc::new(force));
            // Behind the rules: a reader that sees the flag finds them.
            engine.has_rules.store(has_rules, Ordering::Release);
        }
        Ok(Engine::etag_of(engines))
    }

    /// What an edit makes of the rules in force.
    fn changed(&self, force: &Force, edit: &Edit<'_>, now_ns: u64) -> Result<Force, EditError> {
        match edit {
            Edit::Put(plan) => {
                let admin: Vec<Live> = force.admin().cloned().collect();
                for live in &admin {
                    if plan.rules().iter().any(|rule| rule.id == live.rule.id) {
                        return Err(EditError::Double { id: live.rule.id.to_string() });
                    }
                }
                Ok(self.in_force(plan.clone(), admin, force.edits, now_ns))
            }
            Edit::Clear => Ok(self.in_force(Arc::default(), Vec::new(), force.edits, now_ns)),
            Edit::Reset => Ok(self.in_force(self.start.clone(), Vec::new(), force.edits, now_ns)),
            Edit::AddRule(rule) => {
                if force.rules.iter().any(|live| live.rule.id == rule.id) {
                    return Err(EditError::Double { id: rule.id.to_string() });
                }
                let admin = force.admin().count();
                if admin >= MAX_RULES {
                    return Err(EditError::Full);
                }
                let mut rules = force.rules.clone();
                rules.insert(admin, self.live(rule.clone(), true, now_ns));
                Ok(force.with_rules(rules))
            }
            Edit::SetEnabled(id, enabled) => {
                let mut rules = force.rules.clone();
                let found = rules.iter_mut().find(|live| &*live.rule.id == *id);
                found.ok_or_else(|| force.unknown(id))?.enabled = *enabled;
                Ok(force.with_rules(rules))
            }
            Edit::RemoveRule(id) => match force.rules.iter().find(|live| &*live.rule.id == *id) {
                None => Err(force.unknown(id)),
                Some(live) if !live.is_admin => Err(EditError::OfPlan { id: (*id).to_owned() }),
                Some(_) => {
                    let others = force.rules.iter().filter(|live| &*live.rule.id != *id);
                    Ok(force.with_rules(others.cloned().collect()))
                }
            },
        }
    }

    /// The ETag of the rules of several dealers, in its quotes: that of the only one's, or one of its own.
    pub(crate) fn etag_of(engines: &[&Engine]) -> String {
        match engines {
            [only] => only.etag(),
            all => {
                let tags: String = all.iter().map(|engine| engine.etag()).collect();
                format!("\"{:016x}-all\"", stable_hash(8, tags.as_bytes()))
            }
        }
    }

    /// Whether the same rules are in force as at another dealer.
    pub(crate) fn agrees_with(&self, other: &Engine) -> bool {
        let (own, other) = (self.force.load(), other.force.load());
        let same = |(own, other): (&Live, &Live)| {
            own.enabled == other.enabled
                && own.is_admin == other.is_admin
                && (Arc::ptr_eq(&own.rule, &other.rule) || own.rule.to_json() == other.rule.to_json())
        };
        own.plan.hash() == other.plan.hash()
            && own.rules.len() == other.rules.len()
            && own.rules.iter().zip(&other.rules).all(same)
    }

    /// The ETag of the rules in force, in its quotes.
    pub fn etag(&self) -> String {
        self.force.load().etag()
    }

    /// The plan in force.
    pub fn plan(&self) -> Arc<Plan> {
        self.force.load().plan.clone()
    }

    /// The effects that can be named.
    pub fn registry(&self) -> Registry<'static> {
        self.registry
    }

    /// Which occurrence of a stable key this is, from 0, since the plan took force; counts one more.
    pub(crate) fn attempt(&self, key: u64) -> u64 {
        // Names of the rules' own counts are mixed otherwise.
        self.force.load().occurrences.next(mix(key ^ ATTEMPTS))
    }

    /// Counts forgotten to stay bounded, since the plan took force: above 0, `per` counts of rarely seen keys are too low.
    pub fn forgotten(&self) -> u64 {
        self.force.load().occurrences.forgotten()
    }

    /// How often each rule fired, by its id, in order of precedence.
    pub fn fired(&self) -> Vec<(Arc<str>, u64)> {
        let force = self.force.load();
        let fired = |live: &Live| (live.rule.id.clone(), live.tally.fired.load(Ordering::Relaxed));
        force.rules.iter().map(fired).collect()
    }

    /// The rules in force, for `GET /faults`: `plan` as it could be PUT again, `admin` the rules above it, `state` what
    /// each rule is and did.
    pub fn to_json(&self) -> Value {
        let force = self.force.load();
        let admin: Vec<Value> = force.admin().map(|live| live.rule.to_json()).collect();
        let state: BTreeMap<&str, Value> =
            force.rules.iter().map(|live| (&*live.rule.id, state_json(live))).collect();
        json!({
            "plan": force.plan.to_json(),
            "plan_hash": format!("{:016x}", force.plan.hash()),
            "admin": admin,
            "state": state,
            "counts_forgotten": force.occurrences.forgotten(),
        })
    }

    /// A plan below an admin layer, all counters new.
    fn in_force(&self, plan: Arc<Plan>, admin: Vec<Live>, edits: u64, now_ns: u64) -> Force {
        let above =
            admin.into_iter().map(|old| Live { enabled: old.enabled, ..self.live(old.rule, true, now_ns) });
        let below = plan.rules().iter().map(|rule| self.live(rule.clone(), false, now_ns));
        let rules = above.chain(below).collect();
        Force { plan, rules, since_ns: now_ns, edits, occurrences: Arc::new(Occurrences::new(self.share)) }
    }

    fn live(&self, rule: Arc<Rule>, is_admin: bool, now_ns: u64) -> Live {
        let tally = Arc::new(Tally::new(self.serials.fetch_add(1, Ordering::Relaxed)));
        Live { enabled: rule.enabled, is_admin, since_ns: now_ns, reach: rule.reach(), tally, rule }
    }
}

fn state_json(live: &Live) -> Value {
    let slots: Vec<&str> = live.rule.slots().into_iter().map(Slot::word).collect();
    json!({
        "layer": if live.is_admin { "admin" } else { "plan" },
        "enabled": live.enabled,
        "class": live.rule.class().word(),
        "slots": slots,
        "fired": live.tally.fired.load(Ordering::Relaxed),
    })
}
