//! What a session does, item by item, and the session's own values.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use dealer_sim::protocol::Skill;
use jiff::Timestamp;
use serde_json::Value;

use super::body::Body;
use super::check::{Check, CheckFailed};
use super::draw::{Draws, Key, Purpose};
use super::expect::Pattern;
use super::expr::{Env, Pause, Template, is_true};
use super::pointer::Reader;

/// One run of a flow: its variables, what it extracted, and the key of its draws. All of it follows from the run's seed,
/// the session's ordinal and the replies.
#[derive(Debug)]
pub struct Session {
    pub(crate) flow: usize,
    pub(crate) key: Key,
    pub(crate) values: Vec<Value>,
    pub(crate) slots: Arc<BTreeMap<String, usize>>,
}

impl Session {
    /// The index of this session's flow in [`Workload::flows`](super::Workload::flows).
    pub fn flow(&self) -> usize {
        self.flow
    }

    /// What a name stands for at this moment: its variable until a step extracts it. `None` while it has no value, or if
    /// the scenario has no such name (one of `--set` is a constant by then).
    pub fn extracted(&self, name: &str) -> Option<&Value> {
        self.values.get(*self.slots.get(name)?).filter(|value| !value.is_null())
    }

    fn env(&self, draws: Draws, now: Timestamp) -> Env<'_> {
        Env { values: &self.values, draws, now }
    }
}

/// One thing that a session does. `include` is resolved at load.
#[derive(Debug)]
pub enum Item {
    /// A request and what becomes of its reply.
    Step(Step),
    /// A pause before the next item.
    Think(Think),
}

/// A pause.
#[derive(Debug)]
pub struct Think {
    pub(crate) pause: Pause,
    pub(crate) position: usize,
    pub(crate) text: String,
}

impl Think {
    /// The length of this pause in this session, at most 24 hours: the same each time it is asked for.
    pub fn draw(&self, session: &mut Session) -> Duration {
        self.pause.draw(&mut session.key.draws(Purpose::Item, self.position))
    }
}

/// One request of a flow.
#[derive(Debug)]
pub struct Step {
    pub(crate) name: String,
    pub(crate) label: String,
    pub(crate) skill: Skill,
    pub(crate) id: usize,
    /// The index among the flow's items: the number of this step's stream of draws.
    pub(crate) position: usize,
    /// Conditions that must all hold.
    pub(crate) when: Vec<When>,
    pub(crate) body: Body,
    /// The body with the test mark, for a lead.
    pub(crate) marked: Option<Body>,
    pub(crate) reader: Reader,
    pub(crate) extracts: Vec<Extract>,
    pub(crate) checks: Vec<Check>,
    pub(crate) expect: Vec<Pattern>,
    pub(crate) on_error_continue: bool,
}

/// A condition of a step.
#[derive(Debug)]
pub(crate) struct When {
    pub(crate) condition: Template,
    pub(crate) text: String,
}

/// A value kept from a reply.
#[derive(Debug)]
pub(crate) struct Extract {
    pub(crate) name: String,
    pub(crate) path: String,
    /// The place among the values read from the reply.
    pub(crate) place: usize,
    /// Where the session keeps it; `None` if `--set` holds the name.
    pub(crate) slot: Option<usize>,
}

/// A reply as a step reads it.
#[derive(Clone, Copy)]
pub struct ReplyParts<'a> {
    /// The body, all of it.
    pub body: &'a [u8],
    /// Looks a header up; the name comes as the scenario spells it, so compare without regard to letter case.
    pub header: &'a dyn Fn(&str) -> Option<&'a str>,
}

impl Step {
    /// The names of this step's checks, in their order; several conditions may share one.
    pub fn check_names(&self) -> impl Iterator<Item = &str> {
        self.checks.iter().map(|check| &*check.name)
    }

    /// The step's name in its scenario.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The skill that is called.
    pub fn skill(&self) -> Skill {
        self.skill
    }

    /// The step's number, dense over all steps of the workload: an included step has one per flow it stands in.
    pub fn id(&self) -> usize {
        self.id
    }

    /// `flow/step`, unique over the workload.
    pub fn label(&self) -> String {
        self.label.clone()
    }

    /// Whether `when` lets the step run in this session. It may draw: the same each time it is asked.
    pub fn is_due(&self, session: &Session) -> bool {
        let draws = session.key.draws(Purpose::When, self.position);
        let mut env = session.env(draws, Timestamp::UNIX_EPOCH);
        self.when.iter().all(|when| is_true(&when.condition.eval(&mut env)))
    }

    /// Appends the AAP payload to `out`: compact JSON, `type` first, then the members of `request` in their order.
    ///
    /// A member or element that is exactly one `${…}` whose value is null is left out: what an earlier reply did not hold
    /// is not sent. A null that is to be sent is written `null`.
    ///
    /// `now` is the moment of sending, for `now()` and `consent()`. `mark_test` puts the test mark into a lead's `message`
    /// and `source_agent.name`. The same session renders the same bytes each time, but for `now` and what it extracted
    /// since: a repeated request is the same request, its idempotency key included.
    pub fn render(&self, session: &mut Session, now: Timestamp, mark_test: bool, out: &mut Vec<u8>) {
        let mut env = session.env(session.key.draws(Purpose::Item, self.position), now);
        let body = self.marked.as_ref().filter(|_| mark_test).unwrap_or(&self.body);
        body.render(&mut env, out);
    }

    /// Whether the reply has to be read at all: the step extracts or checks something.
    pub fn reads_reply(&self) -> bool {
        !self.extracts.is_empty() || !self.checks.is_empty()
    }

    /// Keeps what the step extracts and applies its checks, in their order.
    ///
    /// Pointers start at the reply's payload. A value that is not there (or not in a body that is no JSON) is null, both
    /// kept and checked.
    ///
    /// # Errors
    /// The first check that does not hold.
    pub fn read_reply(&self, session: &mut Session, reply: ReplyParts<'_>) -> Result<(), CheckFailed> {
        let found = self.reader.read(reply.body, reply.header);
        for extract in &self.extracts {
            if let Some(value) = extract.slot.and_then(|slot| session.values.get_mut(slot)) {
                *value = found[extract.place].clone();
            }
        }
        // A check draws nothing and has no time: refused at load.
        let mut env = session.env(session.key.draws(Purpose::When, self.position), Timestamp::UNIX_EPOCH);
        self.checks.iter().try_for_each(|check| check.apply(&found[check.place], &mut env))
    }

    /// Whether an outcome, such as `ok` or `aap.RATE_LIMITED`, is one of those in `expect`.
    pub fn expects(&self, outcome: &str) -> bool {
        self.expect.iter().any(|pattern| pattern.matches(outcome))
    }

    /// Whether the session goes on after an outcome that was not expected (`on_error: continue`).
    pub fn on_error_continue(&self) -> bool {
        self.on_error_continue
    }
}
