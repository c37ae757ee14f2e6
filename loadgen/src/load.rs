//! What is asked of a run: how sessions arrive, when it stops, what is measured. Independent values; every combination
//! is carried out by the same code.

use std::time::Duration;

use crate::arrival::Schedule;

/// How sessions come about.
#[derive(Debug, Clone, PartialEq)]
pub enum Arrivals {
    /// They arrive on a schedule, whether or not earlier ones have ended.
    Open(Schedule),
    /// A number of users each run one after another.
    Closed {
        /// How many.
        users: u32,
    },
}

/// What becomes of a session that arrives while too many are in flight.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OnFull {
    /// It waits; its wait is part of its response time.
    Queue,
    /// It is not begun, and counts as `not_sent`.
    Drop,
}

/// How much may be going on at a time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Sessions in flight.
    pub in_flight: usize,
    /// What happens beyond that.
    pub on_full: OnFull,
    /// Open connections.
    pub connections: usize,
}

/// The measured part of a run, in nanoseconds from its start: a request counts if its intended time is in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Window {
    /// Its begin: the end of the warm-up.
    pub from: u64,
    /// Its end; `None` if the run ends with its sessions.
    pub to: Option<u64>,
}

impl Window {
    /// Whether a time is in it.
    pub fn contains(&self, at: u64) -> bool {
        at >= self.from && self.to.is_none_or(|to| at < to)
    }

    /// Whether a time is after it.
    pub fn is_over(&self, at: u64) -> bool {
        self.to.is_some_and(|to| at >= to)
    }

    /// How much of a span of time is in it, in nanoseconds.
    pub fn overlap(&self, from: u64, to: u64) -> u64 {
        self.to.map_or(to, |end| end.min(to)).saturating_sub(from.max(self.from))
    }
}

/// The time in which sessions are to arrive, and by how much the last of them may be late.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ArrivalTime(Window, u64);

impl ArrivalTime {
    /// Whether a session that is let go, or begun, at this time is so in time.
    pub fn holds(&self, at: u64) -> bool {
        self.0.to.is_none_or(|to| at < to.saturating_add(self.1))
    }

    /// How long it is, in nanoseconds, for a run that has measured so long; `is_over` says whether all that were to come have.
    pub fn length(&self, measured: u64, is_over: bool) -> u64 {
        let Some(to) = self.0.to else { return measured };
        let whole = to.saturating_sub(self.0.from);
        if is_over { whole } else { whole.min(measured) }
    }
}

/// Requests per second that one worker carries out with a fifth of a core or so.
const REQUESTS_OF_A_WORKER: f64 = 10_000.0;

/// The most parts of a run.
pub(crate) const MAX_SHARDS: u32 = 10_000;

/// The part of a run that one process does: every process with the same other values does another part, and all of them
/// together the whole.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// From 0.
    pub index: u32,
    /// At least 1.
    pub count: u32,
}

impl Shard {
    /// All of it.
    pub const WHOLE: Shard = Shard { index: 0, count: 1 };

    /// A shard as a user types it, `I/N` with I from 1 to N.
    pub(crate) fn parse(text: &str) -> Option<Shard> {
        let (index, count) = text.split_once('/')?;
        let (index, count): (u32, u32) = (index.parse().ok()?, count.parse().ok()?);
        (1..=count).contains(&index).then_some(())?;
        (count <= MAX_SHARDS).then_some(Shard { index: index - 1, count })
    }

    /// What the words of a load say of it; nothing of the whole.
    pub(crate) fn words(self) -> String {
        if self == Shard::WHOLE {
            String::new()
        } else {
            format!(", part {} of {}", self.index + 1, self.count)
        }
    }

    /// The sessions, or users, of worker `lane` of `lanes`: the first one, and the distance between two. Over all workers
    /// of all shards each number belongs to exactly one.
    pub fn stride(self, lane: usize, lanes: usize) -> (u64, u64) {
        let count = u64::from(self.count);
        (u64::from(self.index) + count * lane as u64, count * lanes as u64)
    }

    /// How many of so many numbers belong to this shard.
    pub fn of(self, total: u64) -> u64 {
        let (index, count) = (u64::from(self.index), u64::from(self.count));
        total / count + u64::from(index < total % count)
    }
}

/// All of it.
#[derive(Debug, Clone, PartialEq)]
pub struct Load {
    /// How sessions come about.
    pub arrivals: Arrivals,
    /// What is measured. Nothing begins after its end.
    pub window: Window,
    /// No more sessions than this.
    pub sessions: Option<u64>,
    /// How much may be going on at a time.
    pub limits: Limits,
    /// Think times are multiplied by this.
    pub think: f64,
    /// What is due within so long is let go together.
    pub slot: Duration,
    /// The seed of everything random.
    pub seed: u64,
    /// The part that this process does.
    pub shard: Shard,
}

impl Load {
    /// Whether sessions arrive on a schedule.
    pub fn is_open(&self) -> bool {
        matches!(self.arrivals, Arrivals::Open(_))
    }

    /// Sessions per second that the schedule asks of this process in the measured time; `None` for users, who ask for none.
    pub fn target_rate(&self) -> Option<f64> {
        let Arrivals::Open(schedule) = &self.arrivals else { return None };
        let last = || schedule.profile.last().map(|last| last + 1);
        let to = self.window.to.or_else(|| schedule.last_gap_end()).or_else(last);
        let to = to.unwrap_or(self.window.from + 1_000_000_000);
        Some(schedule.profile.mean_rate(self.window.from, to) / f64::from(self.shard.count))
    }

    /// The time in which sessions are to arrive, in nanoseconds from the start; open-ended if nothing says when the last gap ends,
    /// and of users.
    pub fn arrival_time(&self) -> ArrivalTime {
        let Arrivals::Open(schedule) = &self.arrivals else { return ArrivalTime(self.window, 0) };
        match schedule.last_gap_end() {
            // The gap after the last session may be shorter than any pacer's lag, and the rate is right to that share.
            Some(end) if self.window.to.is_none_or(|to| end < to) => {
                let slack = end.saturating_sub(self.window.from) / 100;
                ArrivalTime(Window { from: self.window.from, to: Some(end) }, slack)
            }
            _ => ArrivalTime(self.window, 0),
        }
    }

    /// Sessions that all shards together will start, if that is known beforehand.
    pub fn total_sessions(&self) -> Option<u64> {
        match &self.arrivals {
            Arrivals::Open(schedule) => {
                let listed = schedule.profile.listed();
                let known = [self.sessions, listed].into_iter().flatten().min();
                let timed = schedule.end.map(|end| schedule.profile.arrived_by(end).ceil() as u64);
                known.into_iter().chain(timed).min()
            }
            Arrivals::Closed { .. } => self.sessions,
        }
    }

    /// As many connections as the run may well need, if a session takes no longer than a second.
    pub fn likely_connections(&self) -> usize {
        let sessions = match &self.arrivals {
            Arrivals::Open(schedule) => {
                (schedule.profile.peak_rate() / f64::from(self.shard.count)).ceil() as usize
            }
            Arrivals::Closed { users } => self.shard.of(u64::from(*users)) as usize,
        };
        sessions.min(self.limits.in_flight.max(1)).min(self.limits.connections)
    }

    /// How many workers carry it out well on a machine of so many cores, in a scenario whose sessions make so many requests at most:
    /// a worker with little to do sleeps between two requests, and to wake up for each costs more than the request itself.
    pub fn workers(&self, requests_per_session: u64, cores: usize) -> usize {
        let most = cores.min(self.parallelism());
        let Arrivals::Open(schedule) = &self.arrivals else { return most };
        let sessions = schedule.profile.peak_rate() / f64::from(self.shard.count);
        // The cast saturates.
        let needed = (sessions * requests_per_session as f64 / REQUESTS_OF_A_WORKER).ceil() as usize;
        needed.clamp(1, most)
    }

    /// The most that can usefully be done at a time: no more workers than that.
    pub fn parallelism(&self) -> usize {
        let sessions = match self.arrivals {
            Arrivals::Open(_) => self.limits.in_flight,
            Arrivals::Closed { users } => self.shard.of(u64::from(users)) as usize,
        };
        sessions.min(self.limits.connections).max(1)
    }
}

/// The share of `total` that worker `lane` of `lanes` gets: all shares are nearly equal and add up to the total.
pub(crate) fn share(total: usize, lane: usize, lanes: usize) -> usize {
    total / lanes + usize::from(lane < total % lanes)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shares_add_up() {
        for (total, lanes) in [(1, 1), (10, 3), (3, 4), (64, 2)] {
            let shares: Vec<_> = (0..lanes).map(|lane| share(total, lane, lanes)).collect();
            assert_eq!(shares.iter().sum::<usize>(), total, "{shares:?}");
        }
    }

    #[test]
    fn each_number_belongs_to_one_worker_of_one_shard() {
        for (count, lanes) in [(1, 1), (4, 1), (3, 2)] {
            let mut all: Vec<u64> = Vec::new();
            for index in 0..count {
                let shard = Shard { index, count };
                let own: Vec<u64> = (0..lanes)
                    .flat_map(|lane| {
                        let (first, step) = shard.stride(lane, lanes);
                        (first..50).step_by(step as usize)
                    })
                    .collect();
                assert_eq!(own.len() as u64, shard.of(50));
                all.extend(own);
            }
            all.sort_unstable();
            assert_eq!(all, (0..50).collect::<Vec<_>>());
        }
    }

    #[test]
    fn the_time_of_arrivals_is_that_of_their_gaps() {
        use crate::arrival::{Profile, Spacing};
        let schedule = |end, sessions| Schedule {
            profile: Profile::constant(10.0),
            spacing: Spacing::Even,
            seed: 1,
            end,
            sessions,
        };
        let load = |to: Option<u64>, sessions| Load {
            arrivals: Arrivals::Open(schedule(to, sessions)),
            window: Window { from: 0, to },
            sessions,
            limits: Limits { in_flight: 1, on_full: OnFull::Queue, connections: 1 },
            think: 1.0,
            slot: Duration::ZERO,
            seed: 1,
            shard: Shard::WHOLE,
        };
        const SECOND: u64 = 1_000_000_000;
        let five = load(None, Some(5)).arrival_time();
        // Five sessions take half a second, wherever the run ends.
        assert_eq!([five.length(410_000_000, true), five.length(9 * SECOND, true)], [SECOND / 2; 2]);
        assert_eq!(
            [five.length(SECOND / 4, false), five.length(9 * SECOND, false)],
            [SECOND / 4, SECOND / 2]
        );
        assert!(five.holds(504_000_000) && !five.holds(506_000_000));
        let timed = load(Some(SECOND), None).arrival_time();
        assert!(timed.holds(SECOND - 1) && !timed.holds(SECOND));
        assert_eq!(timed.length(SECOND, true), SECOND);
        assert_eq!(load(Some(SECOND), Some(50)).arrival_time(), timed);
        let users = Load { arrivals: Arrivals::Closed { users: 3 }, ..load(None, Some(5)) };
        // One worker does ten sessions a second, unless each of them makes thousands of requests.
        let many = Load {
            limits: Limits { in_flight: 9, on_full: OnFull::Queue, connections: 9 },
            ..load(None, None)
        };
        assert_eq!([1, 2000, 1_000_000].map(|requests| many.workers(requests, 4)), [1, 2, 4]);
        assert_eq!(
            (many.workers(0, 4), Load { arrivals: users.arrivals.clone(), ..many }.workers(1, 4)),
            (1, 3)
        );
        assert_eq!(users.arrival_time().length(7, true), 7);
    }

    #[test]
    fn a_window_counts_what_is_in_it() {
        let window = Window { from: 10, to: Some(20) };
        assert!(!window.contains(9) && window.contains(10) && window.contains(19) && !window.contains(20));
        assert_eq!(window.overlap(0, 5), 0);
        assert_eq!(window.overlap(5, 15), 5);
        assert_eq!(window.overlap(12, 30), 8);
        assert_eq!(Window { from: 10, to: None }.overlap(5, 100), 90);
    }
}
