//! What a session does, item by item, and the session's own values.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use dealer_sim::protocol::Skill;
use jiff::Timestamp;
use serde_json::Value;

use super::body::Body;
use super::check::{Check, CheckFailed};
use super::cursor::{Cursor, Loop};
use super::draw::{Draws, Key, Purpose};
use super::expect::Pattern;
use super::expr::{Env, KeySource, Pause, Template, is_true};
use super::pointer::Reader;
use super::raw::{Raw, Replaced};
use super::retry::{Retry, Word};

/// One run of a flow: its variables, what it extracted, and the key of its draws. All of it follows from the run's seed,
/// the session's ordinal and the replies.
#[derive(Debug)]
pub struct Session {
    pub(crate) flow: usize,
    pub(crate) key: Key,
    pub(crate) values: Vec<Value>,
    pub(crate) slots: Arc<BTreeMap<String, usize>>,
    pub(crate) cursor: Cursor,
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

    pub(crate) fn env(&self, draws: Draws, now: Timestamp) -> Env<'_> {
        Env { values: &self.values, draws, now, key: KeySource::default() }
    }
}

/// One thing that a session does. `include` is resolved at load.
#[derive(Debug)]
#[expect(
    clippy::large_enum_variant,
    reason = "a flow is a short list that is made once, and most of it are steps"
)]
pub enum Item {
    /// A request and what becomes of its reply.
    Step(Step),
    /// A pause before the next item.
    Think(Think),
    /// A pause that ends a certain time after the session, or the round of the innermost loop, began.
    Pacing(Think),
    /// The begin of a loop, and of each of its rounds.
    Loop(Loop),
    /// The end of a loop that began at this index; never handed out by [`Session::next`].
    EndLoop(usize),
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
        let mut draws = session.draws(Purpose::Item, self.position);
        self.pause.draw(&session.values, &mut draws)
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
    pub(crate) retry: Option<Retry>,
    pub(crate) raw: Option<Raw>,
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
        let draws = session.draws(Purpose::When, self.position);
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
        self.render_attempt(session, 0, now, mark_test, out);
    }

    /// As [`render`](Step::render), for attempt number `attempt` (from 0) of a step with `retry`: where each attempt has a
    /// fresh idempotency key, it differs in that.
    pub fn render_attempt(
        &self,
        session: &mut Session,
        attempt: u32,
        now: Timestamp,
        mark_test: bool,
        out: &mut Vec<u8>,
    ) {
        let mut env = session.env(session.draws(Purpose::Item, self.position), now);
        let fresh = self.retry.as_ref().is_some_and(|retry| retry.fresh_key);
        env.key = KeySource {
            place: Some((session.key, self.position, session.round())),
            attempt: if fresh { attempt } else { 0 },
        };
        let body = self.marked.as_ref().filter(|_| mark_test).unwrap_or(&self.body);
        body.render(&mut env, out);
    }

    /// Whether the step may be tried again.
    pub fn retries(&self) -> bool {
        self.retry.is_some()
    }

    /// Whether each attempt is a request of its own, with its own moment and idempotency key; else an attempt repeats the
    /// payload of the first, byte for byte.
    pub fn renews_attempts(&self) -> bool {
        self.retry.as_ref().is_some_and(|retry| retry.fresh_key)
    }

    /// How long to wait before the next attempt, after attempt number `attempt` (from 0) had this outcome and the dealer
    /// said that of it; `None` if there is none. The same each time it is asked.
    pub fn retry_after(
        &self,
        session: &Session,
        attempt: u32,
        outcome: &str,
        word: Word,
    ) -> Option<Duration> {
        // Positions stay below 2^20, attempts below 2^7.
        let mut draws = session.draws(Purpose::Retry, self.position | (attempt as usize) << 20);
        self.retry.as_ref()?.wait(attempt, outcome, word, &mut draws)
    }

    /// What `raw` replaces of this request; `None` for a step that has none.
    pub fn replaced(&self, session: &Session, now: Timestamp) -> Option<Replaced> {
        let mut env = session.env(session.draws(Purpose::Item, self.position), now);
        Some(self.raw.as_ref()?.replaced(&mut env))
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
        let mut found = self.reader.read(reply.body, reply.header);
        for extract in &self.extracts {
            if let Some(slot) = extract.slot {
                // Each has a place of its own.
                session.set(slot, std::mem::take(&mut found[extract.place]));
            }
        }
        // A check draws nothing and has no time: refused at load.
        let mut env = session.env(session.draws(Purpose::When, self.position), Timestamp::UNIX_EPOCH);
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
