//! What one worker records: its tally, and the requests that are on their way.

use crate::load::Window;
use crate::pacer::Nanos;
use crate::record::Tally;
use crate::worker::Done;

/// Records the requests and sessions of one worker.
#[derive(Debug)]
pub(crate) struct Recorder {
    pub(crate) tally: Box<Tally>,
    window: Window,
    on_the_way: Vec<Option<OnTheWay>>,
    free: Vec<usize>,
}

#[derive(Debug, Clone, Copy)]
struct OnTheWay {
    step: usize,
    intended: Nanos,
    release: Nanos,
}

/// A request on its way.
#[derive(Debug)]
pub(crate) struct Ticket(usize);

impl Recorder {
    pub(crate) fn new(steps: usize, window: Window) -> Recorder {
        Recorder { tally: Box::new(Tally::new(steps)), window, on_the_way: Vec::new(), free: Vec::new() }
    }

    /// A request is released.
    pub(crate) fn begin(&mut self, step: usize, intended: Nanos, release: Nanos) -> Ticket {
        if self.window.contains(intended)
            && let Some(step) = self.tally.steps.get_mut(step)
        {
            step.sent += 1;
        }
        self.tally.after_end.sent += u64::from(self.window.is_over(intended));
        let request = Some(OnTheWay { step, intended, release });
        match self.free.pop() {
            Some(index) => {
                self.on_the_way[index] = request;
                Ticket(index)
            }
            None => {
                self.on_the_way.push(request);
                Ticket(self.on_the_way.len() - 1)
            }
        }
    }

    /// It has an outcome. A request of the warm-up, or of after the measured time, leaves only its count.
    pub(crate) fn finish(&mut self, Ticket(index): Ticket, lag: Option<u64>, label: &str, done: &Done) {
        let Some(request) = self.on_the_way.get_mut(index).and_then(Option::take) else { return };
        self.free.push(index);
        let tally = &mut *self.tally;
        tally.busy_nanos += self.window.overlap(request.release, done.ended);
        if !self.window.contains(request.intended) {
            tally.warmup_requests += u64::from(request.intended < self.window.from);
            let is_error = self.window.is_over(request.intended) && !done.expected;
            tally.after_end.errors += u64::from(is_error);
            return;
        }
        let Some(step) = tally.steps.get_mut(request.step) else { return };
        // INTERFACES: response = lag + queue + service, which is the end minus the intended time.
        let response = done.ended.saturating_sub(request.intended);
        if label == "ok" {
            step.ok += 1;
        } else {
            step.count_other(label);
            step.record_other(label, response);
        }
        step.expected += u64::from(done.expected);
        step.response.record(response);
        // What was never sent has waited all of its time.
        step.queue.record(done.sent.unwrap_or(done.ended).saturating_sub(request.release));
        if let Some(sent) = done.sent {
            step.service.record(done.ended.saturating_sub(sent));
            if let Some(first_byte) = done.first_byte {
                tally.first_byte.record(first_byte.saturating_sub(sent));
            }
        }
        if let Some(lag) = lag {
            tally.lag.record(lag);
        }
        if let Some(times) = done.connect_times {
            tally.connect.record(times.connect);
            if let Some(tls) = times.tls {
                tally.tls.record(tls);
            }
        }
    }

    /// A step that may be tried again is over, after `retries` further attempts.
    pub(crate) fn finish_step(&mut self, step: usize, intended: Nanos, ended: Nanos, retries: u32) {
        if self.window.contains(intended)
            && let Some(step) = self.tally.steps.get_mut(step)
        {
            step.retries += u64::from(retries);
            step.total.get_or_insert_default().record(ended.saturating_sub(intended));
        }
    }

    /// The run gives up: what is still on its way is counted with its age.
    pub(crate) fn give_up(&mut self, now: Nanos) {
        for request in self.on_the_way.drain(..).flatten() {
            self.tally.busy_nanos += self.window.overlap(request.release, now);
            if self.window.contains(request.intended) {
                self.tally.unfinished_age.record(now.saturating_sub(request.intended));
            }
        }
        self.free.clear();
    }

    /// Requests on their way.
    pub(crate) fn in_flight(&self) -> u64 {
        (self.on_the_way.len() - self.free.len()) as u64
    }
}
