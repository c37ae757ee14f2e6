//! Adds up what the workers report, second by second, and writes it down as it comes.

use std::time::Duration;

use crate::basis::{Basis, Seen};
use crate::metrics::{self, Exporter};
use crate::progress::Progress;
use crate::record::Tally;
use crate::report::{Folder, FolderError, RunResult};
use crate::threshold::Watch;
use crate::transport::ConnectionCounts;
use crate::worker::Report;

/// What all workers have reported.
pub(crate) struct Collector {
    total: Tally,
    /// Reported since the last line was written.
    pending: Tally,
    /// Up to here everything is written, in nanoseconds from the start.
    written: u64,
    lanes: Vec<Lane>,
    basis: Basis,
    watch: Watch,
    /// Whether a condition that fails ends the run, and the one that did.
    aborts: bool,
    aborted: Option<String>,
    exporter: Option<Exporter>,
    folder: Option<Folder>,
    /// The first thing that went wrong with the folder; nothing more is written then.
    fault: Option<FolderError>,
    progress: Progress,
}

#[derive(Debug, Clone, Default)]
struct Lane {
    until: u64,
    in_flight: u64,
    is_done: bool,
    connections: ConnectionCounts,
    /// Time and CPU time at the first report within the measured time, and at the last.
    cpu: Option<((u64, u64), (u64, u64))>,
}

impl Collector {
    pub(crate) fn new(
        basis: Basis,
        watch: Watch,
        aborts: bool,
        exporter: Option<Exporter>,
        folder: Option<Folder>,
        progress: Progress,
    ) -> Collector {
        let (steps, lanes) = (basis.labels.len(), basis.lanes);
        let mut collector = Collector {
            total: Tally::new(steps),
            pending: Tally::new(steps),
            written: 0,
            lanes: vec![Lane::default(); lanes],
            basis,
            watch,
            aborts,
            aborted: None,
            exporter,
            folder,
            fault: None,
            progress,
        };
        // A run that is killed in its first second has a summary too.
        collector.write_partial(0);
        collector
    }

    /// Takes a report; gives its tally back, emptied.
    pub(crate) fn take(&mut self, report: Report) -> Box<Tally> {
        let Report { lane, until, mut tally, in_flight, cpu_nanos, connections, is_last } = report;
        self.pending.add(&tally);
        tally.clear();
        if let Some(lane) = self.lanes.get_mut(lane) {
            lane.until = lane.until.max(until);
            lane.in_flight = in_flight;
            lane.is_done = is_last;
            lane.connections = connections;
            if let Some(cpu) = cpu_nanos
                && !is_last
                && until >= self.basis.window().from
                && self.basis.window().to.is_none_or(|to| until <= to)
            {
                let first = lane.cpu.map_or((until, cpu), |(first, _)| first);
                lane.cpu = Some((first, (until, cpu)));
            }
        }
        // Workers that have ended have said everything.
        let running = self.lanes.iter().filter(|lane| !lane.is_done).map(|lane| lane.until).min();
        let latest = self.lanes.iter().map(|lane| lane.until).max().unwrap_or(0);
        let until = running.unwrap_or(latest);
        if until > self.written {
            self.write(until);
        }
        tally
    }

    fn write(&mut self, until: u64) {
        let in_flight = self.lanes.iter().map(|lane| lane.in_flight).sum();
        let is_warmup = until <= self.basis.window().from;
        let second = until / 1_000_000_000;
        self.progress.tick(second, &self.pending, in_flight, is_warmup);
        // A report comes a moment after its second: the last one of the warm-up may hold the first measured requests.
        let has_nothing = is_warmup && self.pending.sent() + self.pending.finished() == 0;
        if let (Some(folder), None, false) = (&mut self.folder, &self.fault, has_nothing) {
            let start = Duration::from_nanos(self.written);
            let length = Duration::from_nanos(until - self.written);
            if let Err(error) = folder.add(&self.pending, start, length, in_flight) {
                self.progress.say(&format!("{error}; the run goes on without it"));
                self.fault = Some(error);
            }
        }
        self.total.add(&self.pending);
        self.watch.add(&self.pending, self.written, until, &self.basis.labels);
        self.pending.clear();
        self.written = until;
        self.write_partial(until);
        if let Some(exporter) = &self.exporter {
            let target = self.basis.load.target_rate();
            exporter.publish(metrics::render(&self.total, &self.basis.labels, in_flight, target));
        }
        if self.aborts && self.aborted.is_none() {
            let measured = self.basis.window().overlap(0, until);
            self.aborted = self.watch.failed(&self.basis.figures(&self.total, measured, false), measured);
        }
    }

    /// The summary of what there is up to now, for a run that will be killed.
    fn write_partial(&mut self, until: u64) {
        if self.folder.is_none() || self.fault.is_some() {
            return;
        }
        let seen = Seen {
            end: self.basis.end(Some(until), until),
            is_interrupted: true,
            is_running: true,
            aborted: None,
            busiest_worker: self.busiest_worker(),
            connections: self.connections(),
        };
        // Taken and put back: a copy of all histograms each second would be much.
        let result = self.basis.result(std::mem::take(&mut self.total), seen, &self.watch);
        if let Some(folder) = &self.folder
            && let Err(error) = folder.write_partial(&result)
        {
            self.progress.say(&format!("{error}; the run goes on without it"));
            self.fault = Some(error);
        }
        self.total = result.tally;
    }

    /// The condition that is to end the run.
    pub(crate) fn aborted(&self) -> Option<&str> {
        self.aborted.as_deref()
    }

    /// Says something on standard error, beside the progress.
    pub(crate) fn say(&self, text: &str) {
        self.progress.say(text);
    }

    /// The share of a core that the busiest worker used within the measured time; `None` if that was too short to tell.
    fn busiest_worker(&self) -> Option<f64> {
        let shares = self.lanes.iter().filter_map(|lane| {
            let ((from, cpu_before), (to, cpu_after)) = lane.cpu?;
            (to > from).then(|| cpu_after.saturating_sub(cpu_before) as f64 / (to - from) as f64)
        });
        shares.fold(None, |most: Option<f64>, share| Some(most.map_or(share, |most| most.max(share))))
    }

    /// What all connections have been through.
    fn connections(&self) -> ConnectionCounts {
        let mut sum = ConnectionCounts::default();
        self.lanes.iter().for_each(|lane| sum.add(&lane.connections));
        sum
    }

    /// What the run came to: it ended at `ended`, and if it was told to stop, at `stopped`.
    pub(crate) fn result(&mut self, stopped: Option<u64>, ended: u64) -> RunResult {
        self.progress.finish();
        if self.pending.sent() + self.pending.finished() + self.pending.sessions.scheduled > 0 {
            self.write(self.written + 1);
        }
        self.watch.finish(&self.basis.labels);
        let seen = Seen {
            end: self.basis.end(stopped, ended),
            is_interrupted: stopped.is_some(),
            is_running: false,
            aborted: self.aborted.clone(),
            busiest_worker: self.busiest_worker(),
            connections: self.connections(),
        };
        let mut result = self.basis.result(std::mem::take(&mut self.total), seen, &self.watch);
        // It did not hold when it ended the run, whatever came after it.
        for judged in &mut result.thresholds {
            judged.pass &= self.aborted.as_ref() != Some(&judged.text);
        }
        result
    }

    /// Writes the rest of the folder.
    pub(crate) fn finish(self, result: &RunResult) -> Result<(), FolderError> {
        match (self.fault, self.folder) {
            (Some(fault), _) => Err(fault),
            (None, Some(folder)) => folder.finish(result),
            (None, None) => Ok(()),
        }
    }
}
