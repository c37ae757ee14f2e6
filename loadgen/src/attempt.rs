//! One request of a session and what becomes of it, and the conversation that holds a session's requests together.

use dealer_sim::protocol::Skill;
use jiff::Timestamp;

use crate::deviation::{Deviant, deviate};
use crate::envelope::{Ids, RequestBuffer};
use crate::outcome::{Breach, Expectation, Outcome, classify, word};
use crate::scenario::{ReplyParts, Session, Step, Word, agent};
use crate::transport::{Connection, Exchange, Fault, Reuse};
use crate::worker::{Done, Worker};

/// The memory of a session, used again by later ones.
#[derive(Debug, Default)]
pub(crate) struct Scratch {
    request: RequestBuffer,
    /// The conversation's id as the inside of a JSON string; empty before the first reply.
    context_id: Vec<u8>,
}

/// What the requests of one session share.
pub(crate) struct Conversation<'a> {
    worker: &'a Worker,
    ordinal: u64,
    ids: Ids,
    scratch: Scratch,
    /// The session's own connection, if each has one.
    kept: Option<Connection>,
    is_unconnected: bool,
}

impl<'a> Conversation<'a> {
    /// The conversation of session `ordinal`; it has no id yet.
    pub(crate) fn begin(worker: &'a Worker, ordinal: u64) -> Conversation<'a> {
        let mut scratch = worker.take_scratch();
        scratch.context_id.clear();
        let ids = Ids::of_session(&worker.ids, ordinal);
        Conversation { worker, ordinal, ids, scratch, kept: None, is_unconnected: false }
    }

    /// Whether the last request got no connection.
    pub(crate) fn is_unconnected(&self) -> bool {
        self.is_unconnected
    }

    /// Gives back what it has used.
    pub(crate) fn end(self) {
        if let Some(connection) = self.kept {
            self.worker.client.retire(connection);
        }
        self.worker.give_scratch(self.scratch);
    }

    /// Sends a step's request, as attempt number `attempt` (from 0), and reads its reply. The dealer's word about trying
    /// again comes with it if the step may do so and did not go well.
    pub(crate) async fn attempt(
        &mut self,
        session: &mut Session,
        step: &Step,
        attempt: u32,
        now: Timestamp,
    ) -> (Done, Option<Word>) {
        let worker = self.worker;
        let plan = &worker.plan;
        let context_id = Some(self.scratch.context_id.as_slice()).filter(|id| !id.is_empty());
        let sent_ids =
            self.scratch.request.write(&plan.template, step.skill(), context_id, &mut self.ids, |out| {
                let from = out.len();
                step.render_attempt(session, attempt, now, plan.mark_test, out);
                if plan.contract.features.agent_as_text && step.skill() == Skill::LeadSubmit {
                    agent::write_as_text(out, from, plan.mark_test);
                }
            });
        let deviant =
            step.replaced(session, now).map(|replaced| deviate(self.scratch.request.bytes(), &replaced));
        let mut connection = match self.connection().await {
            Ok(connection) => connection,
            Err(fault) => {
                let done = Done {
                    outcome: Outcome::Transport(fault),
                    expected: false,
                    sent: None,
                    first_byte: None,
                    ended: worker.clock.now(),
                    connect_times: None,
                };
                return (done, step.retries().then(Word::default));
            }
        };
        let connect_times = connection.take_connect_times();
        let bytes = deviant.as_ref().map_or(self.scratch.request.bytes(), |deviant| &deviant.bytes);
        let exchange = worker.client.exchange(&mut connection, bytes).await;
        let expected = match &deviant {
            None => Expectation {
                id: &sent_ids.id,
                message_id: &sent_ids.message_id,
                context_id: Some(self.scratch.context_id.as_slice()).filter(|id| !id.is_empty()),
                skill: step.skill(),
                contract: plan.contract,
                binding: plan.binding,
            },
            Some(Deviant { id, message_id, context_id, .. }) => Expectation {
                id,
                message_id,
                context_id: context_id.as_deref(),
                skill: step.skill(),
                contract: plan.contract,
                binding: plan.binding,
            },
        };
        let (outcome, found) = self.judge(session, step, &connection, &exchange, &expected);
        if let Some(found) = found {
            self.scratch.context_id = found;
        }
        let word = (step.retries() && outcome != Outcome::Ok).then(|| match &exchange.reply {
            Err(_) => Word::default(),
            Ok(span) => {
                let reply = connection.reply(span);
                word(reply.body, reply.header("retry-after"), worker.clock.wall(exchange.ended))
            }
        });
        self.put_back(connection, deviant.is_some());
        let done = Done {
            outcome,
            expected: false,
            sent: Some(exchange.sent),
            first_byte: exchange.first_byte,
            ended: exchange.ended,
            connect_times,
        };
        (done, word)
    }

    async fn connection(&mut self) -> Result<Connection, Fault> {
        let connection = match self.kept.take() {
            Some(connection) => Ok(connection),
            None => self.worker.client.acquire().await,
        };
        self.is_unconnected = connection.is_err();
        connection
    }

    fn put_back(&mut self, connection: Connection, is_deviant: bool) {
        let client = &self.worker.client;
        match client.reuse() {
            Reuse::None => client.retire(connection),
            // A request with a wrong length leaves bytes behind that the next one would be read with.
            _ if is_deviant => client.retire(connection),
            Reuse::Session if connection.is_reusable() => self.kept = Some(connection),
            _ => client.release(connection),
        }
    }

    /// The outcome, and the conversation's id if this reply is the first to tell it.
    fn judge(
        &self,
        session: &mut Session,
        step: &Step,
        connection: &Connection,
        exchange: &Exchange,
        expected: &Expectation<'_>,
    ) -> (Outcome, Option<Vec<u8>>) {
        let span = match &exchange.reply {
            Err(fault) => return (Outcome::Transport(*fault), None),
            Ok(span) => span,
        };
        let worker = self.worker;
        let reply = connection.reply(span);
        let (outcome, found) = classify(span.status, span.content, reply.body, expected);
        let found = found.filter(|_| self.scratch.context_id.is_empty()).map(<[u8]>::to_vec);
        if outcome != Outcome::Ok {
            return (outcome, found);
        }
        if worker.plan.validate.looks_at(self.ordinal, step.id())
            && !worker.schema.borrow_mut().holds(reply.body, step.skill())
        {
            return (Outcome::Protocol(Breach::Schema), found);
        }
        if !step.reads_reply() {
            return (outcome, found);
        }
        let parts = ReplyParts { body: reply.body, header: &|name| reply.header(name) };
        match step.read_reply(session, parts) {
            Ok(()) => (Outcome::Ok, found),
            Err(failed) => (Outcome::Check((*failed.name).into()), found),
        }
    }
}
