//! One run of a scenario: its steps, the pauses between them, and the conversation that holds them together.

use std::time::Duration;

use crate::attempt::Conversation;
use crate::pacer::Nanos;
use crate::scenario::{Item, MAX_LOOPS, Session, Step};
use crate::units::nanos;
use crate::worker::Worker;

/// A session to run.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Start {
    /// Its number in the whole run.
    pub(crate) ordinal: u64,
    /// When it was to start.
    pub(crate) intended: Nanos,
    /// When it was let go.
    pub(crate) release: Nanos,
    /// Whether the pacer let it go, so that the difference is the pacer's lag.
    pub(crate) paced: bool,
}

/// How a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum End {
    Finished,
    Failed,
    /// The run was stopped.
    CutShort,
}

/// What a user needs to know of a session that is over.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Over {
    /// When the same user would start the next one.
    pub(crate) next: Nanos,
    /// Whether its last request could not even get a connection.
    pub(crate) is_unconnected: bool,
}

/// How a step ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum StepEnd {
    /// With an outcome, which the scenario expects or not, at this time.
    Ended { expected: bool, at: Nanos },
    /// The run was stopped between two attempts.
    CutShort,
}

/// Runs one session to its end.
pub(crate) async fn run(worker: &Worker, start: Start) -> Over {
    let mut run = Run {
        worker,
        session: worker.plan.workload.begin(worker.plan.load.seed, start.ordinal),
        conversation: Conversation::begin(worker, start.ordinal),
    };
    let measured = worker.plan.load.window.contains(start.intended);
    let (end, last, next) = run.steps(start).await;
    let over = Over { next, is_unconnected: run.conversation.is_unconnected() };
    run.conversation.end();
    if measured {
        let mut recorder = worker.recorder.borrow_mut();
        let sessions = &mut recorder.tally.sessions;
        match end {
            End::Finished => sessions.finished += 1,
            End::Failed => sessions.failed += 1,
            // Counted by what is missing: started, and neither finished nor failed.
            End::CutShort => return over,
        }
        sessions.response.record(last.saturating_sub(start.intended));
    }
    over
}

struct Run<'a> {
    worker: &'a Worker,
    session: Session,
    conversation: Conversation<'a>,
}

impl Run<'_> {
    /// The steps in order. Gives how it ended, the end of the last step, and that plus the last pause.
    async fn steps(&mut self, start: Start) -> (End, Nanos, Nanos) {
        let worker = self.worker;
        let Some(flow) = worker.plan.workload.flows().get(self.session.flow()) else {
            return (End::Failed, start.release, start.release);
        };
        let mut is_first = true;
        let mut last = start.intended;
        let mut pause = 0;
        let mut release = start.release;
        let mut paced = start.paced;
        // When the session began, and the round that each loop around is in.
        let mut begun = [start.intended; MAX_LOOPS + 1];
        while let Some(item) = self.session.next(flow) {
            let step = match item {
                // A pause that is scaled away is not drawn: it has a stream of its own.
                Item::Think(_) if worker.plan.load.think == 0.0 => continue,
                Item::Think(think) => {
                    let drawn = think.draw(&mut self.session);
                    pause += self.scaled(drawn);
                    continue;
                }
                Item::Pacing(pacing) => {
                    let length = nanos(pacing.draw(&mut self.session));
                    let since = begun.get(self.session.depth()).copied().unwrap_or(start.intended);
                    pause = pause.max(since.saturating_add(length).saturating_sub(last));
                    continue;
                }
                Item::Loop(_) => {
                    if let Some(begun) = begun.get_mut(self.session.depth()) {
                        *begun = last + pause;
                    }
                    continue;
                }
                Item::EndLoop(_) => continue,
                Item::Step(step) if step.is_due(&self.session) => step,
                Item::Step(_) => continue,
            };
            // INTERFACES: the first step's intended time is the session's, a later one's the previous end plus think time.
            let intended = last + pause;
            if pause > 0 {
                match worker.pacer.release_at(intended).await {
                    Some(at) => (release, paced) = (at, true),
                    None => return (End::CutShort, last, last),
                }
            } else if !is_first {
                (release, paced) = (intended, false);
            }
            if worker.is_stopped() {
                return (End::CutShort, last, last);
            }
            let expected = match self.step(step, intended, release, paced).await {
                StepEnd::Ended { expected, at } => {
                    last = at;
                    expected
                }
                StepEnd::CutShort => return (End::CutShort, last, last),
            };
            pause = 0;
            is_first = false;
            if !expected && !step.on_error_continue() {
                return (End::Failed, last, last);
            }
        }
        (End::Finished, last, last + pause)
    }

    fn scaled(&self, pause: Duration) -> u64 {
        (nanos(pause) as f64 * self.worker.plan.load.think) as u64
    }

    /// One step: a request, and further attempts at it as far as `retry` goes. Each attempt is a request of its own, whose
    /// intended time is the end of the one before plus the wait; what becomes of the last one is what becomes of the step.
    async fn step(
        &mut self,
        step: &Step,
        mut intended: Nanos,
        mut release: Nanos,
        mut paced: bool,
    ) -> StepEnd {
        let worker = self.worker;
        let began = intended;
        let mut moment = worker.clock.wall(release);
        for attempt in 0.. {
            if step.renews_attempts() {
                moment = worker.clock.wall(release);
            }
            let ticket = worker.recorder.borrow_mut().begin(step.id(), intended, release);
            let (mut done, word) = self.conversation.attempt(&mut self.session, step, attempt, moment).await;
            let label = done.outcome.label();
            done.expected = step.expects(&label);
            let at = done.ended;
            let lag = paced.then(|| release.saturating_sub(intended));
            worker.recorder.borrow_mut().finish(ticket, lag, &label, &done);
            let wait = word.and_then(|word| step.retry_after(&self.session, attempt, &label, word));
            let Some(wait) = wait else {
                if step.retries() {
                    worker.recorder.borrow_mut().finish_step(step.id(), began, at, attempt);
                }
                return StepEnd::Ended { expected: done.expected, at };
            };
            intended = at.saturating_add(nanos(wait));
            match worker.pacer.release_at(intended).await {
                Some(at) => (release, paced) = (at, true),
                None => break,
            }
            if worker.is_stopped() {
                break;
            }
        }
        StepEnd::CutShort
    }
}
