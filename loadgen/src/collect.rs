//! Adds up what the workers report, second by second, and writes it down as it comes.

use std::time::Duration;

use crate::load::Window;
use crate::progress::Progress;
use crate::record::Tally;
use crate::report::{Folder, FolderError, RunResult};
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
    window: Window,
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
        steps: usize,
        lanes: usize,
        window: Window,
        folder: Option<Folder>,
        progress: Progress,
    ) -> Collector {
        Collector {
            total: Tally::new(steps),
            pending: Tally::new(steps),
            written: 0,
            lanes: vec![Lane::default(); lanes],
            window,
            folder,
            fault: None,
            progress,
        }
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
                && until >= self.window.from
                && self.window.to.is_none_or(|to| until <= to)
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
        let is_warmup = until <= self.window.from;
        let second = until / 1_000_000_000;
        self.progress.tick(second, &self.pending, in_flight, is_warmup);
        // A report comes a moment after its second: the last one of the warm-up may hold the first measured requests.
        let has_nothing = is_warmup && self.pending.finished() == 0;
        if let (Some(folder), None, false) = (&mut self.folder, &self.fault, has_nothing) {
            let start = Duration::from_nanos(self.written);
            let length = Duration::from_nanos(until - self.written);
            if let Err(error) = folder.add(&self.pending, start, length, in_flight) {
                self.progress.say(&format!("{error}; the run goes on without it"));
                self.fault = Some(error);
            }
        }
        self.total.add(&self.pending);
        self.pending.clear();
        self.written = until;
    }

    /// Says something on standard error, beside the progress.
    pub(crate) fn say(&self, text: &str) {
        self.progress.say(text);
    }

    /// The share of a core that the busiest worker used within the measured time; `None` if that was too short to tell.
    pub(crate) fn busiest_worker(&self) -> Option<f64> {
        let shares = self.lanes.iter().filter_map(|lane| {
            let ((from, cpu_before), (to, cpu_after)) = lane.cpu?;
            (to > from).then(|| cpu_after.saturating_sub(cpu_before) as f64 / (to - from) as f64)
        });
        shares.fold(None, |most: Option<f64>, share| Some(most.map_or(share, |most| most.max(share))))
    }

    /// What all connections have been through.
    pub(crate) fn connections(&self) -> ConnectionCounts {
        let mut sum = ConnectionCounts::default();
        self.lanes.iter().for_each(|lane| sum.add(&lane.connections));
        sum
    }

    /// Everything that was recorded.
    pub(crate) fn take_total(&mut self) -> Tally {
        self.progress.finish();
        if self.pending.sent() + self.pending.finished() + self.pending.sessions.scheduled > 0 {
            self.write(self.written + 1);
        }
        std::mem::take(&mut self.total)
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
