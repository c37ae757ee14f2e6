//! Where conduct is asked for: one judge of all that was seen, and one for each named test. They read the journal at intervals
//! and when they are asked. Where it has dropped entries before the first time that anybody asked, they wait until somebody
//! does: what is unknown by then does not get better, and a load test need not pay for it.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::judge::Judge;
use super::report::Report;
use crate::journal::{Entry, Filter, Journal, Subscriber};

/// Named tests that are kept; the oldest that have ended make room.
pub const MAX_TESTS: usize = 64;
/// Characters of a test's name.
const MAX_NAME: usize = 128;
/// A call that is under way when others after it have ended is waited for this long, in nanoseconds of traffic time.
const HOLD_NS: u64 = 10_000_000_000;
/// Entries that wait to be put in order.
const MAX_HELD: usize = 20_000;

/// Why a test could not begin or end.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadTest {
    /// No name, or one too long.
    #[error("a test's name has 1 to {MAX_NAME} characters")]
    Name,
    /// It runs already.
    #[error("the test {0:?} has begun already; end it first, or choose another name")]
    Running(String),
    /// Too many run.
    #[error("{MAX_TESTS} tests are running; end one first")]
    TooMany,
    /// There is none.
    #[error("no test {0:?} was begun; POST /conduct/begin with {{\"name\": ...}} begins one")]
    Unknown(String),
}

#[derive(Debug)]
struct Test {
    name: String,
    client: Option<String>,
    judge: Judge,
    has_ended: bool,
}

#[derive(Debug)]
struct Inner {
    /// Whether anybody has asked.
    was_asked: bool,
    subscriber: Subscriber,
    held: Vec<Entry>,
    judge: Judge,
    tests: Vec<Test>,
}

impl Inner {
    fn new(judge: Judge) -> Inner {
        let subscriber = Subscriber::new(Filter::default());
        Inner { was_asked: false, subscriber, held: Vec::new(), judge, tests: Vec::new() }
    }

    /// Judges what the journal has, but for what arrived after `until`: earlier calls may still be under way.
    fn catch_up(&mut self, journal: &Journal, until: u64) {
        loop {
            let before = self.subscriber.missed();
            self.held.extend(self.subscriber.poll(journal));
            let missed = self.subscriber.missed() - before;
            if missed > 0 {
                self.judge.miss(missed);
                self.running().for_each(|test| test.judge.miss(missed));
            }
            if self.held.len() >= MAX_HELD {
                self.judge_to(u64::MAX);
            }
            if !self.subscriber.is_behind(journal) {
                break;
            }
        }
        self.judge_to(until);
    }

    fn judge_to(&mut self, until: u64) {
        let mut held = std::mem::take(&mut self.held);
        held.sort_by_key(|entry| (entry.traffic_ns, entry.seq));
        let ready = held.partition_point(|entry| entry.traffic_ns <= until);
        self.held = held.split_off(ready);
        for entry in &held {
            self.judge.hear(entry);
            self.running()
                .filter(|test| test.client.as_ref().is_none_or(|client| *client == entry.client))
                .for_each(|test| test.judge.hear(entry));
        }
    }

    fn running(&mut self) -> impl Iterator<Item = &mut Test> {
        self.tests.iter_mut().filter(|test| !test.has_ended)
    }
}

/// The conduct of a process's callers.
#[derive(Debug)]
pub struct ConductDesk {
    inner: Mutex<Inner>,
}

impl Default for ConductDesk {
    fn default() -> ConductDesk {
        ConductDesk { inner: Mutex::new(Inner::new(Judge::default())) }
    }
}

impl ConductDesk {
    /// A desk for dealers whose agent cards may be kept for so long.
    pub fn new(card_max_age: Duration) -> ConductDesk {
        ConductDesk { inner: Mutex::new(Inner::new(Judge::new(card_max_age))) }
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // Judges count what they were told; what a panic left behind is at worst one entry short.
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn up_to_date(&self, journal: &Journal) -> MutexGuard<'_, Inner> {
        journal.settle();
        let mut inner = self.lock();
        inner.was_asked = true;
        inner.catch_up(journal, u64::MAX);
        inner
    }

    /// Judges what has come since: to be called at intervals, and before entries are cleared, so that the journal loses less
    /// before it is read. `now_ns` is the traffic clock.
    pub fn keep_up(&self, journal: &Journal, now_ns: u64) {
        let mut inner = self.lock();
        if inner.was_asked || inner.subscriber.missed() == 0 {
            inner.catch_up(journal, now_ns.saturating_sub(HOLD_NS));
        }
    }

    /// Forgets everything, and begins again with what is recorded from now on.
    pub fn clear(&self, journal: &Journal) {
        let mut inner = self.lock();
        let was_asked = inner.was_asked;
        inner.catch_up(journal, u64::MAX);
        let subscriber = inner.subscriber.clone().without_missed();
        *inner = Inner { was_asked, subscriber, ..Inner::new(inner.judge.anew()) };
    }

    /// The report on all that was seen, of every client.
    pub fn report_on_all(&self, journal: &Journal) -> Report {
        self.up_to_date(journal).judge.report(None)
    }

    /// The report on all that was seen or on a named test, of one client if one is named.
    ///
    /// # Errors
    /// [`BadTest::Unknown`].
    pub fn report(
        &self,
        journal: &Journal,
        test: Option<&str>,
        client: Option<&str>,
    ) -> Result<Report, BadTest> {
        let inner = self.up_to_date(journal);
        let Some(name) = test else { return Ok(inner.judge.report(client)) };
        let found = inner.tests.iter().find(|test| test.name == name);
        let test = found.ok_or_else(|| BadTest::Unknown(name.to_owned()))?;
        Ok(Report { test: Some(name.to_owned()), ..test.judge.report(client) })
    }

    /// Begins a named test, of one client if one is named: what its calls break from now on is in its report. What was seen
    /// before is still known (such as the card that was fetched).
    ///
    /// # Errors
    /// [`BadTest`].
    pub fn begin(&self, journal: &Journal, name: &str, client: Option<&str>) -> Result<(), BadTest> {
        if name.is_empty() || name.chars().count() > MAX_NAME {
            return Err(BadTest::Name);
        }
        let mut inner = self.up_to_date(journal);
        let same = inner.tests.iter().position(|test| test.name == name);
        if same.is_some_and(|at| !inner.tests[at].has_ended) {
            return Err(BadTest::Running(name.to_owned()));
        }
        if let Some(at) = same {
            inner.tests.remove(at);
        }
        if inner.tests.len() >= MAX_TESTS {
            let ended = inner.tests.iter().position(|test| test.has_ended).ok_or(BadTest::TooMany)?;
            inner.tests.remove(ended);
        }
        let mut judge = inner.judge.clone();
        judge.acquit();
        let client = client.map(str::to_owned);
        inner.tests.push(Test { name: name.to_owned(), client, judge, has_ended: false });
        Ok(())
    }

    /// Ends a named test, and reports on it.
    ///
    /// # Errors
    /// [`BadTest::Unknown`].
    pub fn end(&self, journal: &Journal, name: &str) -> Result<Report, BadTest> {
        let mut inner = self.up_to_date(journal);
        let test = inner.tests.iter_mut().find(|test| test.name == name);
        let test = test.ok_or_else(|| BadTest::Unknown(name.to_owned()))?;
        test.has_ended = true;
        Ok(Report { test: Some(name.to_owned()), ..test.judge.report(test.client.as_deref()) })
    }
}
