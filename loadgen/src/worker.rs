//! One worker: a thread with a runtime of its own, its share of the sessions, its connections and its histograms.
//! Nothing in the way of a request is shared with another worker.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread::JoinHandle;

use dealer_sim::protocol::{Binding, Contract};
use rand_chacha::ChaCha8Rng;
use tokio::runtime::{Builder, LocalOptions};
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::{Notify, watch};
use tokio::task::spawn_local;

use crate::attempt::Scratch;
use crate::envelope::{Ids, Template};
use crate::load::{ArrivalTime, Arrivals, Load, OnFull, share};
use crate::outcome::{Outcome, Schema, Validate};
use crate::pacer::{Clock, Nanos, Pacer};
use crate::process;
use crate::record::Tally;
use crate::recorder::Recorder;
use crate::scenario::Workload;
use crate::session::{self, Start};
use crate::transport::{Client, Config, ConnectTimes, ConnectionCounts};

/// What all workers of a run carry out.
#[derive(Debug)]
pub(crate) struct Plan {
    pub(crate) workload: Arc<Workload>,
    pub(crate) load: Load,
    pub(crate) template: Template,
    pub(crate) config: Config,
    /// Whether leads are marked as tests.
    pub(crate) mark_test: bool,
    /// Which replies are held against their schema.
    pub(crate) validate: Validate,
    /// The contract spoken.
    pub(crate) contract: Contract,
    /// The binding spoken through.
    pub(crate) binding: Binding,
    /// Steps over all flows.
    pub(crate) steps: usize,
    /// When sessions are to arrive.
    pub(crate) arrival_time: ArrivalTime,
}

/// What became of a request.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) outcome: Outcome,
    /// Whether the scenario expects that.
    pub(crate) expected: bool,
    /// `None` if it never had a connection.
    pub(crate) sent: Option<Nanos>,
    pub(crate) first_byte: Option<Nanos>,
    pub(crate) ended: Nanos,
    /// If a connection was opened for it.
    pub(crate) connect_times: Option<ConnectTimes>,
}

/// How far a run has come, as its workers need to know it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Command {
    /// Go on.
    Run,
    /// Begin nothing more; finish the requests that are on their way.
    Drain,
    /// Give up.
    Quit,
}

/// What a worker reports each second, and once more at its end.
#[derive(Debug)]
pub(crate) struct Report {
    pub(crate) lane: usize,
    /// Everything up to this time is in this report or an earlier one.
    pub(crate) until: Nanos,
    pub(crate) tally: Box<Tally>,
    pub(crate) in_flight: u64,
    /// CPU time of the worker's thread so far, in nanoseconds.
    pub(crate) cpu_nanos: Option<u64>,
    pub(crate) connections: ConnectionCounts,
    /// Whether it is the last one.
    pub(crate) is_last: bool,
}

/// A worker's ways to the rest of the run.
pub(crate) struct Links {
    pub(crate) reports: UnboundedSender<Report>,
    /// Tallies that have been read and emptied come back.
    pub(crate) emptied: mpsc::Receiver<Box<Tally>>,
    pub(crate) command: watch::Receiver<Command>,
}

/// Everything that the sessions of one worker share.
#[derive(Debug)]
pub(crate) struct Worker {
    pub(crate) plan: Arc<Plan>,
    pub(crate) clock: Clock,
    pub(crate) pacer: Pacer,
    pub(crate) client: Client,
    pub(crate) recorder: RefCell<Recorder>,
    /// Holds replies against their schema.
    pub(crate) schema: RefCell<Schema>,
    /// The generator that the sessions' ids are streams of.
    pub(crate) ids: ChaCha8Rng,
    lane: usize,
    lanes: usize,
    scratch: RefCell<Vec<Scratch>>,
    /// Sessions that have been let go while too many were in flight.
    waiting: RefCell<VecDeque<Start>>,
    /// Sessions in flight, and whatever brings them about.
    live: Cell<usize>,
    all_done: Notify,
    stopped: Cell<bool>,
}

/// Sessions that wait for a place beyond this many are not begun.
const MAX_WAITING: usize = 1_000_000;
/// Sessions that were due and not reached are counted up to this many, which takes about a second.
const MAX_OVERDUE: usize = 20_000_000;
/// After this many sessions begun at once, those begun get their turn.
const BURST: usize = 32;
/// Scratch memory kept for later sessions.
const MAX_SCRATCH: usize = 4096;
const SECOND: Nanos = 1_000_000_000;

/// Starts worker `lane` of `lanes`.
///
/// # Errors
/// If the thread cannot be started.
pub(crate) fn spawn(
    plan: Arc<Plan>,
    clock: Clock,
    lane: usize,
    lanes: usize,
    links: Links,
) -> io::Result<JoinHandle<io::Result<()>>> {
    std::thread::Builder::new().name(format!("worker-{lane}")).spawn(move || {
        let runtime = Builder::new_current_thread().enable_all().build_local(LocalOptions::default())?;
        runtime.block_on(async {
            let limit = share(plan.load.limits.connections, lane, lanes).max(1);
            let worker = Rc::new(Worker {
                clock,
                pacer: Pacer::new(clock, plan.load.slot)?,
                client: Client::new(plan.config.clone(), clock, limit, plan.load.seed ^ lane as u64),
                recorder: RefCell::new(Recorder::new(plan.steps, plan.load.window)),
                ids: Ids::base(plan.load.seed),
                schema: RefCell::new(Schema::of(plan.contract, plan.binding)),
                lane,
                lanes,
                scratch: RefCell::default(),
                waiting: RefCell::default(),
                live: Cell::new(0),
                all_done: Notify::new(),
                stopped: Cell::new(false),
                plan,
            });
            worker.run(links).await;
            Ok(())
        })
    })
}

/// How long a user waits after so many sessions in a row that found no connection: 10 ms, doubled each time, up to 1 s.
/// A refusal is quicker than any reply, so that without a pause users would do nothing but knock.
fn pause_after(failures: u32) -> Nanos {
    if failures == 0 { 0 } else { (10_000_000 << (failures - 1).min(7)).min(SECOND) }
}

impl Worker {
    /// Whether nothing more may begin.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.get()
    }

    pub(crate) fn take_scratch(&self) -> Scratch {
        self.scratch.borrow_mut().pop().unwrap_or_default()
    }

    pub(crate) fn give_scratch(&self, scratch: Scratch) {
        let mut kept = self.scratch.borrow_mut();
        if kept.len() < MAX_SCRATCH {
            kept.push(scratch);
        }
    }

    async fn run(self: Rc<Worker>, mut links: Links) {
        let driver = spawn_local({
            let worker = Rc::clone(&self);
            async move { worker.pacer.run().await }
        });
        let mut arriving = None;
        match self.plan.load.arrivals.clone() {
            Arrivals::Open(_) => {
                self.enter();
                let worker = Rc::clone(&self);
                arriving = Some(spawn_local(async move {
                    worker.arrive().await;
                    worker.leave();
                }));
            }
            Arrivals::Closed { users } => {
                // A lane of a shard that is left without users waits for nobody.
                self.enter();
                let (first, step) = self.plan.load.shard.stride(self.lane, self.lanes);
                let mut user = first;
                while user < u64::from(users) {
                    self.enter();
                    let worker = Rc::clone(&self);
                    spawn_local(async move {
                        worker.be_user(user, u64::from(users)).await;
                        worker.leave();
                    });
                    user += step;
                }
                self.leave();
            }
        }
        let mut next_report = SECOND;
        loop {
            tokio::select! {
                () = self.all_done.notified() => break,
                () = self.clock.sleep_until(next_report) => {
                    self.report(&links, next_report);
                    next_report += SECOND;
                }
                changed = links.command.changed() => {
                    // A run that is gone cannot be reported to.
                    let command = if changed.is_ok() { *links.command.borrow_and_update() } else { Command::Quit };
                    match command {
                        Command::Run => {}
                        Command::Drain => self.stop(),
                        Command::Quit => {
                            self.stop();
                            break;
                        }
                    }
                }
            }
        }
        // Once stopped it waits for nothing more: it counts what is due and was not reached.
        if let Some(arriving) = arriving {
            let _ = arriving.await;
        }
        driver.abort();
        let now = self.clock.now();
        let tally = {
            let mut recorder = self.recorder.borrow_mut();
            recorder.give_up(now);
            std::mem::take(&mut recorder.tally)
        };
        let report = self.report_of(tally, now, true);
        let _ = links.reports.send(report);
    }

    fn stop(&self) {
        self.stopped.set(true);
        let waiting = std::mem::take(&mut *self.waiting.borrow_mut());
        for start in waiting {
            self.count_not_sent(start.intended);
        }
        self.pacer.stop();
    }

    fn enter(&self) {
        self.live.set(self.live.get() + 1);
    }

    fn leave(&self) {
        self.live.set(self.live.get() - 1);
        if self.live.get() == 0 {
            self.all_done.notify_one();
        }
    }

    /// Reports what was recorded, if a tally is free to record on in; else the next report has it too.
    fn report(&self, links: &Links, until: Nanos) {
        let Ok(empty) = links.emptied.try_recv() else { return };
        let full = std::mem::replace(&mut self.recorder.borrow_mut().tally, empty);
        let report = self.report_of(full, until, false);
        let _ = links.reports.send(report);
    }

    fn report_of(&self, tally: Box<Tally>, until: Nanos, is_last: bool) -> Report {
        Report {
            lane: self.lane,
            until,
            tally,
            in_flight: self.recorder.borrow().in_flight(),
            cpu_nanos: process::thread_cpu().map(|cpu| cpu.as_nanos() as u64),
            connections: self.client.counts(),
            is_last,
        }
    }

    /// Lets this worker's share of the scheduled sessions go, each at its intended time.
    async fn arrive(self: &Rc<Worker>) {
        let Arrivals::Open(schedule) = &self.plan.load.arrivals else { return };
        let limits = self.plan.load.limits;
        let places = share(limits.in_flight, self.lane, self.lanes).max(1);
        let (lane, lanes) = self.plan.load.shard.stride(self.lane, self.lanes);
        let mut arrivals = schedule.lane(lane, lanes);
        let in_flight = Rc::new(Cell::new(0));
        let mut burst = 0;
        for arrival in arrivals.by_ref() {
            let Some(release) = self.pacer.release_at(arrival.at).await else {
                // Due, but the run was stopped before it could be let go.
                if arrival.at < self.clock.now() {
                    self.count_scheduled(arrival.at);
                    self.count_not_sent(arrival.at);
                }
                break;
            };
            self.count_scheduled(arrival.at);
            let start = Start { ordinal: arrival.ordinal, intended: arrival.at, release, paced: true };
            if in_flight.get() < places {
                self.launch(start, &in_flight);
            } else if limits.on_full == OnFull::Queue && self.waiting.borrow().len() < MAX_WAITING {
                self.waiting.borrow_mut().push_back(start);
            } else {
                self.count_not_sent(arrival.at);
                continue;
            }
            self.count_on_time(&start);
            burst += 1;
            if burst % BURST == 0 {
                tokio::task::yield_now().await;
            }
        }
        let now = self.clock.now();
        for overdue in arrivals.take_while(|arrival| arrival.at < now).take(MAX_OVERDUE) {
            self.count_scheduled(overdue.at);
            self.count_not_sent(overdue.at);
        }
    }

    /// Runs a session, and after it, on the same place, those that have waited for one.
    fn launch(self: &Rc<Worker>, start: Start, in_flight: &Rc<Cell<usize>>) {
        in_flight.set(in_flight.get() + 1);
        self.enter();
        // Counted here and not in the task, which a run that gives up may never let begin.
        self.count_started(start.intended, start.release);
        let worker = Rc::clone(self);
        let in_flight = Rc::clone(in_flight);
        spawn_local(async move {
            session::run(&worker, start).await;
            while let Some(start) = worker.next_waiting() {
                worker.count_started(start.intended, worker.clock.now());
                session::run(&worker, start).await;
            }
            in_flight.set(in_flight.get() - 1);
            worker.leave();
        });
    }

    fn next_waiting(&self) -> Option<Start> {
        self.waiting.borrow_mut().pop_front()
    }

    /// One user, who runs session after session.
    async fn be_user(&self, user: u64, users: u64) {
        let load = &self.plan.load;
        // Not before the start of the run.
        let Some(mut intended) = self.pacer.release_at(0).await else { return };
        let mut ordinal = user;
        let mut failures = 0;
        while load.window.to.is_none_or(|to| intended < to)
            && load.sessions.is_none_or(|sessions| ordinal < sessions)
        {
            // The pause after the last step of a session is waited for before the next one.
            let now = self.clock.now();
            let (release, paced) = if intended > now {
                match self.pacer.release_at(intended).await {
                    Some(release) => (release, true),
                    None => return,
                }
            } else {
                (intended, false)
            };
            if self.is_stopped() {
                return;
            }
            self.count_scheduled(intended);
            self.count_started(intended, release);
            let before = intended;
            let over = session::run(self, Start { ordinal, intended, release, paced }).await;
            failures = if over.is_unconnected { u32::saturating_add(failures, 1) } else { 0 };
            intended = over.next + pause_after(failures);
            if intended == before {
                // A session without a single due step takes no time: do not spin in it.
                let Some(later) = self.pacer.release_at(intended + 1_000_000).await else { return };
                intended = later;
            }
            ordinal += users;
        }
    }

    fn count_scheduled(&self, intended: Nanos) {
        self.count(intended, |tally| tally.sessions.scheduled += 1);
    }

    fn count_started(&self, intended: Nanos, at: Nanos) {
        let in_time = u64::from(self.plan.arrival_time.holds(at));
        self.count(intended, |tally| {
            tally.sessions.started += 1;
            tally.sessions.started_in_time += in_time;
        });
    }

    fn count_not_sent(&self, intended: Nanos) {
        self.count(intended, |tally| tally.sessions.not_sent += 1);
    }

    fn count_on_time(&self, start: &Start) {
        if self.plan.arrival_time.holds(start.release) {
            self.count(start.intended, |tally| tally.sessions.on_time += 1);
        }
    }

    fn count(&self, intended: Nanos, change: impl FnOnce(&mut Tally)) {
        if self.plan.load.window.contains(intended) {
            change(&mut self.recorder.borrow_mut().tally);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_pause_after_failures_doubles_up_to_a_second() {
        let millis: Vec<u64> = (0..10).map(|failures| pause_after(failures) / 1_000_000).collect();
        assert_eq!(millis, [0, 10, 20, 40, 80, 160, 320, 640, 1000, 1000]);
        assert_eq!(pause_after(u32::MAX), SECOND);
    }
}
