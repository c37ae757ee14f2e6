//! Everything that a run counts, in one value that can be added up: over workers and over seconds.

use std::collections::BTreeMap;

use super::Latency;

/// No step counts more kinds of outcomes than this; the rest counts as [`OTHER`].
const MAX_OUTCOMES: usize = 200;
/// No step has latencies of its own for more kinds of outcomes than this: a histogram takes 230 KB. The rest share one.
const MAX_TIMED: usize = 12;
/// Where the outcomes beyond [`MAX_OUTCOMES`], and the latencies of those beyond [`MAX_TIMED`], go.
const OTHER: &str = "other";

/// What happened, in one worker or all, in one second or the whole measured time.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// By the step's id.
    pub steps: Vec<StepTally>,
    /// Whole sessions.
    pub sessions: SessionTally,
    /// Release minus intended, where the pacer did the releasing.
    pub lag: Latency,
    /// First byte of the reply minus send.
    pub first_byte: Latency,
    /// TCP handshakes.
    pub connect: Latency,
    /// TLS handshakes.
    pub tls: Latency,
    /// How old the requests were that had no reply when the run gave up waiting.
    pub unfinished_age: Latency,
    /// Requests of the warm-up, which nothing else here counts.
    pub warmup_requests: u64,
    /// Requests that measured sessions, and users, sent after the measured time; nothing else here counts them.
    pub after_end: AfterEnd,
    /// Nanoseconds that requests have spent between release and end, all added up, within the measured time.
    pub busy_nanos: u64,
}

/// Requests whose intended time is after the measured time.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct AfterEnd {
    /// Released.
    pub sent: u64,
    /// Those with an outcome that the scenario does not expect.
    pub errors: u64,
}

/// One step of one flow.
#[derive(Debug, Clone, Default)]
pub struct StepTally {
    /// Requests released.
    pub sent: u64,
    /// Those with an outcome that the scenario expects.
    pub expected: u64,
    /// Those with the outcome `ok`, which nearly all have.
    pub ok: u64,
    /// All other outcomes.
    pub others: BTreeMap<Box<str>, u64>,
    /// Lag, queue and service together.
    pub response: Latency,
    /// Send minus release.
    pub queue: Latency,
    /// Last byte minus send.
    pub service: Latency,
    /// Attempts after the first, of steps that are over.
    pub retries: u64,
    /// From the intended time of the first attempt to the end of the last, of a step that may be tried again. Absent for
    /// others: a histogram takes room.
    pub total: Option<Box<Latency>>,
    /// The response times again of the outcomes other than `ok`, each kind by itself.
    pub other_responses: BTreeMap<Box<str>, Latency>,
}

/// Sessions.
#[derive(Debug, Clone, Default)]
pub struct SessionTally {
    /// Those that the schedule asked for.
    pub scheduled: u64,
    /// Those of them let go within the measured time: what the generator itself managed.
    pub on_time: u64,
    /// Begun.
    pub started: u64,
    /// Those of them begun within the measured time, and not after a wait for a place that went beyond it: what the load has come
    /// to.
    pub started_in_time: u64,
    /// Ended, each step with an outcome that the scenario expects.
    pub finished: u64,
    /// Ended by an outcome that the scenario does not expect.
    pub failed: u64,
    /// Never begun: too many were in flight, or the run ended before they could be.
    pub not_sent: u64,
    /// From the intended time to the end of the last step, of those that ended.
    pub response: Latency,
}

impl SessionTally {
    /// The sessions that a rate is made of: those begun in time where they arrive, those ended where users run them.
    pub fn of_rate(&self, is_open: bool) -> u64 {
        if is_open { self.started_in_time } else { self.finished + self.failed }
    }
}

impl StepTally {
    /// Requests with an outcome.
    pub fn finished(&self) -> u64 {
        self.ok + self.others.values().sum::<u64>()
    }

    /// Counts one outcome other than `ok`.
    pub fn count_other(&mut self, label: &str) {
        self.count_others(label, 1);
    }

    /// Counts an outcome other than `ok` this many times.
    pub(crate) fn count_others(&mut self, label: &str, times: u64) {
        if let Some(count) = self.others.get_mut(label) {
            *count += times;
        } else {
            let label = if self.others.len() < MAX_OUTCOMES { label } else { OTHER };
            *self.others.entry(label.into()).or_default() += times;
        }
    }

    /// Records the response time of an outcome other than `ok`, in the histogram of its kind and not in that of all.
    pub fn record_other(&mut self, label: &str, nanos: u64) {
        self.timed_as(label).record(nanos);
    }

    /// The histogram for outcomes of this kind.
    pub fn timed_as(&mut self, label: &str) -> &mut Latency {
        let is_room = self.other_responses.len() < MAX_TIMED || self.other_responses.contains_key(label);
        self.other_responses.entry(if is_room { label } else { OTHER }.into()).or_default()
    }

    /// The response times of each kind of outcome, `ok` first.
    pub fn responses(&self) -> Vec<(String, Latency)> {
        let mut ok = self.response.clone();
        self.other_responses.values().for_each(|other| ok.subtract(other));
        let others = self.other_responses.iter().map(|(label, other)| (label.to_string(), other.clone()));
        let all = std::iter::once(("ok".to_owned(), ok)).chain(others);
        all.filter(|(_, latency)| latency.count() > 0).collect()
    }

    fn add(&mut self, other: &StepTally) {
        self.sent += other.sent;
        self.expected += other.expected;
        self.ok += other.ok;
        for (label, &count) in &other.others {
            self.count_others(label, count);
        }
        self.response.add(&other.response);
        self.queue.add(&other.queue);
        self.service.add(&other.service);
        self.retries += other.retries;
        if let Some(total) = &other.total {
            self.total.get_or_insert_default().add(total);
        }
        for (label, latency) in &other.other_responses {
            self.timed_as(label).add(latency);
        }
    }

    fn clear(&mut self) {
        self.sent = 0;
        self.expected = 0;
        self.ok = 0;
        self.others.clear();
        self.response.clear();
        self.queue.clear();
        self.service.clear();
        self.retries = 0;
        if let Some(total) = &mut self.total {
            total.clear();
        }
        // Kept: a kind of outcome that came once comes again.
        self.other_responses.values_mut().for_each(Latency::clear);
    }
}

impl Tally {
    /// An empty tally for this many steps.
    pub fn new(steps: usize) -> Tally {
        Tally { steps: vec![StepTally::default(); steps], ..Tally::default() }
    }

    /// Adds everything of another.
    pub fn add(&mut self, other: &Tally) {
        for (mine, theirs) in self.steps.iter_mut().zip(&other.steps) {
            mine.add(theirs);
        }
        let (mine, theirs) = (&mut self.sessions, &other.sessions);
        mine.scheduled += theirs.scheduled;
        mine.on_time += theirs.on_time;
        mine.started += theirs.started;
        mine.started_in_time += theirs.started_in_time;
        mine.finished += theirs.finished;
        mine.failed += theirs.failed;
        mine.not_sent += theirs.not_sent;
        mine.response.add(&theirs.response);
        self.warmup_requests += other.warmup_requests;
        self.after_end.sent += other.after_end.sent;
        self.after_end.errors += other.after_end.errors;
        // Of a damaged folder it may be anything.
        self.busy_nanos = self.busy_nanos.saturating_add(other.busy_nanos);
        for (mine, theirs) in self.latencies_mut().into_iter().zip(other.latencies()) {
            mine.add(theirs);
        }
    }

    /// Forgets everything, keeps the memory.
    pub fn clear(&mut self) {
        self.steps.iter_mut().for_each(StepTally::clear);
        let sessions = &mut self.sessions;
        sessions.scheduled = 0;
        sessions.on_time = 0;
        sessions.started = 0;
        sessions.started_in_time = 0;
        sessions.finished = 0;
        sessions.failed = 0;
        sessions.not_sent = 0;
        sessions.response.clear();
        self.warmup_requests = 0;
        self.after_end = AfterEnd::default();
        self.busy_nanos = 0;
        self.latencies_mut().into_iter().for_each(Latency::clear);
    }

    /// The response times of all steps.
    pub fn response(&self) -> Latency {
        self.sum_of(|step| &step.response)
    }

    /// The waiting times of all steps.
    pub fn queue(&self) -> Latency {
        self.sum_of(|step| &step.queue)
    }

    /// The service times of all steps.
    pub fn service(&self) -> Latency {
        self.sum_of(|step| &step.service)
    }

    /// Requests released.
    pub fn sent(&self) -> u64 {
        self.steps.iter().map(|step| step.sent).sum()
    }

    /// Requests with an outcome.
    pub fn finished(&self) -> u64 {
        self.steps.iter().map(StepTally::finished).sum()
    }

    /// Requests with the outcome `ok`.
    pub fn ok(&self) -> u64 {
        self.steps.iter().map(|step| step.ok).sum()
    }

    /// Requests with an outcome that the scenario does not expect.
    pub fn errors(&self) -> u64 {
        self.steps.iter().map(|step| step.finished() - step.expected).sum()
    }

    /// Sessions begun that neither finished nor failed.
    pub fn unfinished_sessions(&self) -> u64 {
        self.sessions.started.saturating_sub(self.sessions.finished + self.sessions.failed)
    }

    /// All outcomes of all steps by their names.
    pub fn outcomes(&self) -> BTreeMap<String, u64> {
        let mut outcomes = BTreeMap::new();
        for step in &self.steps {
            step.add_outcomes(&mut outcomes);
        }
        outcomes
    }

    /// How many times were longer than the histograms hold.
    pub fn saturated(&self) -> u64 {
        let steps = self.steps.iter().map(|step| {
            let total = step.total.as_deref().map_or(0, Latency::saturated);
            step.response.saturated() + step.queue.saturated() + step.service.saturated() + total
        });
        steps.sum::<u64>() + self.latencies().iter().map(|latency| latency.saturated()).sum::<u64>()
    }

    fn sum_of(&self, which: impl Fn(&StepTally) -> &Latency) -> Latency {
        let mut sum = Latency::new();
        self.steps.iter().for_each(|step| sum.add(which(step)));
        sum
    }

    fn latencies(&self) -> [&Latency; 5] {
        [&self.lag, &self.first_byte, &self.connect, &self.tls, &self.unfinished_age]
    }

    fn latencies_mut(&mut self) -> [&mut Latency; 5] {
        [&mut self.lag, &mut self.first_byte, &mut self.connect, &mut self.tls, &mut self.unfinished_age]
    }
}

impl StepTally {
    /// Adds this step's outcomes by their names.
    pub fn add_outcomes(&self, outcomes: &mut BTreeMap<String, u64>) {
        if self.ok > 0 {
            *outcomes.entry("ok".to_owned()).or_default() += self.ok;
        }
        for (label, &count) in &self.others {
            *outcomes.entry(label.to_string()).or_default() += count;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn filled(step: usize, millis: u64) -> Tally {
        let mut tally = Tally::new(2);
        tally.steps[step].sent = 3;
        tally.steps[step].ok = 1;
        tally.steps[step].expected = 1;
        tally.steps[step].count_other("http.503");
        tally.steps[step].response.record(millis * 1_000_000);
        tally.sessions.started = 3;
        tally.sessions.finished = 1;
        tally.sessions.failed = 1;
        tally.lag.record(1000);
        tally
    }

    #[test]
    fn adding_adds_everything() {
        let mut sum = filled(0, 5);
        sum.add(&filled(1, 9));
        assert_eq!((sum.sent(), sum.finished(), sum.ok(), sum.errors()), (6, 4, 2, 2));
        assert_eq!(sum.unfinished_sessions(), 2);
        assert_eq!(sum.outcomes(), BTreeMap::from([("ok".to_owned(), 2), ("http.503".to_owned(), 2)]));
        assert_eq!((sum.response().count(), sum.lag.count()), (2, 2));
        sum.clear();
        assert_eq!((sum.sent(), sum.finished(), sum.response().count(), sum.lag.count()), (0, 0, 0, 0));
    }

    #[test]
    fn failures_keep_their_latency_and_ok_is_the_rest() {
        let mut step = StepTally::default();
        for millis in 1..=10u64 {
            step.response.record(millis * 1_000_000);
        }
        step.record_other("timeout.first_byte", 10_000_000);
        let mut sum = StepTally::default();
        sum.add(&step);
        sum.add(&step);
        let responses = sum.responses();
        assert_eq!(
            responses.iter().map(|(label, _)| label.as_str()).collect::<Vec<_>>(),
            ["ok", "timeout.first_byte"]
        );
        assert_eq!((responses[0].1.count(), responses[1].1.count()), (18, 2));
        assert_eq!(responses[0].1.max().map(|nanos| nanos / 1_000_000), Some(9));
        for kind in 0..100 {
            step.record_other(&format!("http.{kind}"), 1);
        }
        assert_eq!(step.other_responses.len(), MAX_TIMED + 1);
        assert_eq!(step.other_responses[OTHER].count(), 101 - MAX_TIMED as u64);
        step.clear();
        assert!(step.responses().is_empty());
    }

    #[test]
    fn the_kinds_of_outcomes_are_bounded() {
        let mut step = StepTally::default();
        for kind in 0..1000 {
            step.count_other(&format!("aap.X{kind}"));
        }
        assert!(step.others.len() <= MAX_OUTCOMES + 1);
        assert_eq!(step.others[OTHER], 1000 - MAX_OUTCOMES as u64);
        assert_eq!(step.finished(), 1000);
    }
}
