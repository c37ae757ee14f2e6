//! One run of a scenario: its steps, the pauses between them, and the conversation that holds them together.

use std::time::Duration;

use crate::envelope::{Ids, RequestBuffer};
use crate::outcome::{Expectation, Outcome, classify};
use crate::pacer::Nanos;
use crate::scenario::{Item, ReplyParts, Session, Step};
use crate::transport::{Connection, Reuse};
use crate::units::nanos;
use crate::worker::{Done, Worker};

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

/// The memory of a session, used again by later ones.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    request: RequestBuffer,
    /// The conversation's id as the inside of a JSON string; empty before the first reply.
    context_id: Vec<u8>,
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

/// Runs one session to its end.
pub(crate) async fn run(worker: &Worker, start: Start) -> Over {
    let mut run = Run {
        worker,
        session: worker.plan.workload.begin(worker.plan.load.seed, start.ordinal),
        ids: Ids::of_session(&worker.ids, start.ordinal),
        scratch: worker.take_scratch(),
        kept: None,
        is_unconnected: false,
    };
    run.scratch.context_id.clear();
    let measured = worker.plan.load.window.contains(start.intended);
    let (end, last, next) = run.steps(start).await;
    let Run { scratch, kept, is_unconnected, .. } = run;
    let over = Over { next, is_unconnected };
    if let Some(connection) = kept {
        worker.client.retire(connection);
    }
    worker.give_scratch(scratch);
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
    ids: Ids,
    scratch: Scratch,
    /// The session's own connection, if each has one.
    kept: Option<Connection>,
    /// Whether the last request got no connection.
    is_unconnected: bool,
}

impl Run<'_> {
    /// The steps in order. Gives how it ended, the end of the last step, and that plus the last pause.
    async fn steps(&mut self, start: Start) -> (End, Nanos, Nanos) {
        let workload = &self.worker.plan.workload;
        let Some(flow) = workload.flows().get(self.session.flow()) else {
            return (End::Failed, start.release, start.release);
        };
        let mut is_first = true;
        let mut last = start.intended;
        let mut pause = 0;
        let mut release = start.release;
        let mut paced = start.paced;
        for item in flow.items() {
            let step = match item {
                Item::Think(think) => {
                    let drawn = think.draw(&mut self.session);
                    pause += self.scaled(drawn);
                    continue;
                }
                Item::Step(step) if step.is_due(&self.session) => step,
                Item::Step(_) => continue,
            };
            // INTERFACES: the first step's intended time is the session's, a later one's the previous end plus think time.
            let intended = last + pause;
            if pause > 0 {
                match self.worker.pacer.release_at(intended).await {
                    Some(at) => (release, paced) = (at, true),
                    None => return (End::CutShort, last, last),
                }
            } else if !is_first {
                (release, paced) = (intended, false);
            }
            if self.worker.is_stopped() {
                return (End::CutShort, last, last);
            }
            let (outcome, ended) = self.step(step, intended, release, paced).await;
            last = ended;
            pause = 0;
            is_first = false;
            if !outcome && !step.on_error_continue() {
                return (End::Failed, last, last);
            }
        }
        (End::Finished, last, last + pause)
    }

    fn scaled(&self, pause: Duration) -> u64 {
        (nanos(pause) as f64 * self.worker.plan.load.think) as u64
    }

    /// One request and what becomes of it. Gives whether the scenario expects that, and when it ended.
    async fn step(&mut self, step: &Step, intended: Nanos, release: Nanos, paced: bool) -> (bool, Nanos) {
        let worker = self.worker;
        let ticket = worker.recorder.borrow_mut().begin(step.id(), intended, release);
        let mut done = self.exchange(step, release).await;
        let label = done.outcome.label();
        done.expected = step.expects(&label);
        let ended = done.ended;
        let lag = paced.then(|| release.saturating_sub(intended));
        worker.recorder.borrow_mut().finish(ticket, lag, &label, &done);
        (done.expected, ended)
    }

    async fn exchange(&mut self, step: &Step, release: Nanos) -> Done {
        let worker = self.worker;
        let plan = &worker.plan;
        let context_id = Some(self.scratch.context_id.as_slice()).filter(|id| !id.is_empty());
        let session = &mut self.session;
        let now = worker.clock.wall(release);
        let sent_ids =
            self.scratch.request.write(&plan.template, step.skill(), context_id, &mut self.ids, |out| {
                step.render(session, now, plan.mark_test, out);
            });
        let connection = match self.kept.take() {
            Some(connection) => Ok(connection),
            None => worker.client.acquire().await,
        };
        self.is_unconnected = connection.is_err();
        let mut connection = match connection {
            Ok(connection) => connection,
            Err(fault) => {
                return Done {
                    outcome: Outcome::Transport(fault),
                    expected: false,
                    sent: None,
                    first_byte: None,
                    ended: worker.clock.now(),
                    connect_times: None,
                };
            }
        };
        let connect_times = connection.take_connect_times();
        let exchange = worker.client.exchange(&mut connection, self.scratch.request.bytes()).await;
        let outcome = match &exchange.reply {
            Err(fault) => Outcome::Transport(*fault),
            Ok(span) => {
                let reply = connection.reply(span);
                let expected = Expectation {
                    id: &sent_ids.id,
                    message_id: &sent_ids.message_id,
                    context_id: Some(self.scratch.context_id.as_slice()).filter(|id| !id.is_empty()),
                    skill: step.skill(),
                };
                let (outcome, found) = classify(span.status, span.is_json, reply.body, &expected);
                if let Some(found) = found
                    && self.scratch.context_id.is_empty()
                {
                    self.scratch.context_id.extend_from_slice(found);
                }
                if outcome == Outcome::Ok && step.reads_reply() {
                    let parts = ReplyParts { body: reply.body, header: &|name| reply.header(name) };
                    match step.read_reply(&mut self.session, parts) {
                        Ok(()) => Outcome::Ok,
                        Err(failed) => Outcome::Check((*failed.name).into()),
                    }
                } else {
                    outcome
                }
            }
        };
        match worker.client.reuse() {
            Reuse::None => worker.client.retire(connection),
            Reuse::Session if connection.is_reusable() => self.kept = Some(connection),
            _ => worker.client.release(connection),
        }
        Done {
            outcome,
            expected: false,
            sent: Some(exchange.sent),
            first_byte: exchange.first_byte,
            ended: exchange.ended,
            connect_times,
        }
    }
}
