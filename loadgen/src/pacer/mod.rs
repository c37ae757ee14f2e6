//! The only place that waits: releases sessions and steps at their intended times.
//!
//! Intended times are absolute. A release that is late happens at once and is never skipped. One timer per worker,
//! armed for the earliest release and never sooner than [`SLOT`] after the last one: releases that fall into the same
//! slot share one wake-up, which is what a wake-up per release costs too much for (several microseconds of CPU each).
#![expect(
    clippy::disallowed_methods,
    reason = "the pacer is the part of the rim that reads the clock and waits"
)]

mod timer;

use std::cell::{Cell, RefCell};
use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};

use timer::Timer;

/// Nanoseconds since the start of the run.
pub(crate) type Nanos = u64;

/// No two wake-ups of one pacer are closer than this.
const SLOT: Duration = Duration::from_micros(100);

/// The clock of one run: nanoseconds since its start, and the wall time that belongs to them.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Clock {
    origin: Instant,
    wall: Timestamp,
}

impl Clock {
    /// A run that starts after `delay`, which gives all workers the time to be ready for it.
    pub(crate) fn starting_in(delay: Duration) -> Clock {
        let wall = Timestamp::now();
        let wall = SignedDuration::try_from(delay)
            .ok()
            .and_then(|delay| wall.checked_add(delay).ok())
            .unwrap_or(wall);
        Clock { origin: Instant::now() + delay, wall }
    }

    /// A run that starts at this wall time; `None` if that is over.
    pub(crate) fn starting_at(wall: Timestamp) -> Option<Clock> {
        let (now, origin) = (Timestamp::now(), Instant::now());
        let delay = Duration::try_from(wall.duration_since(now)).ok()?;
        Some(Clock { origin: origin.checked_add(delay)?, wall })
    }

    /// Nanoseconds since the start; 0 before it.
    pub(crate) fn now(&self) -> Nanos {
        Instant::now().saturating_duration_since(self.origin).as_nanos() as Nanos
    }

    /// The wall time at `at`.
    pub(crate) fn wall(&self, at: Nanos) -> Timestamp {
        let since = SignedDuration::from_nanos(i64::try_from(at).unwrap_or(i64::MAX));
        self.wall.checked_add(since).unwrap_or(self.wall)
    }

    /// The wall time of the start, for files that carry it.
    pub(crate) fn started(&self) -> Timestamp {
        self.wall
    }

    fn instant(&self, at: Nanos) -> Instant {
        self.origin + Duration::from_nanos(at)
    }

    /// Waits, coarsely, until `at`.
    pub(crate) async fn sleep_until(&self, at: Nanos) {
        tokio::time::sleep_until(self.instant(at).into()).await;
    }
}

/// Releases what waits at its intended time. Belongs to one worker thread.
#[derive(Debug)]
pub(crate) struct Pacer {
    clock: Clock,
    timer: Timer,
    state: RefCell<State>,
    stopped: Cell<bool>,
}

#[derive(Debug)]
struct State {
    waiting: BinaryHeap<Reverse<Entry>>,
    next_sequence: u64,
    /// What the timer is set to.
    armed: Option<Instant>,
    /// No wake-up before this.
    not_before: Instant,
}

/// One wait, ordered by its time and, within it, by who came first.
#[derive(Debug)]
struct Entry {
    at: Nanos,
    sequence: u64,
    waiter: Rc<Waiter>,
}

#[derive(Debug, Default)]
struct Waiter {
    released: Cell<bool>,
    waker: RefCell<Option<Waker>>,
}

impl PartialEq for Entry {
    fn eq(&self, other: &Entry) -> bool {
        (self.at, self.sequence) == (other.at, other.sequence)
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Entry) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Entry) -> std::cmp::Ordering {
        (self.at, self.sequence).cmp(&(other.at, other.sequence))
    }
}

impl Pacer {
    /// A pacer on the current tokio runtime.
    pub(crate) fn new(clock: Clock) -> io::Result<Pacer> {
        Ok(Pacer {
            clock,
            timer: Timer::new()?,
            state: RefCell::new(State {
                waiting: BinaryHeap::new(),
                next_sequence: 0,
                armed: None,
                not_before: clock.origin,
            }),
            stopped: Cell::new(false),
        })
    }

    /// Waits for the intended time and gives the time of the release; `None` when the run was stopped. What is late is
    /// released at once.
    pub(crate) fn release_at(&self, intended: Nanos) -> Release<'_> {
        Release { pacer: self, at: intended, waiter: None }
    }

    /// Ends every wait, now and later: nothing more is released.
    pub(crate) fn stop(&self) {
        self.stopped.set(true);
        let waiting = std::mem::take(&mut self.state.borrow_mut().waiting);
        for Reverse(entry) in waiting {
            entry.waiter.wake();
        }
    }

    /// Does the releasing; runs beside what waits, until it is dropped.
    pub(crate) async fn run(&self) {
        loop {
            self.timer.expired().await;
            let now = Instant::now();
            let mut state = self.state.borrow_mut();
            state.armed = None;
            state.not_before = now + SLOT;
            while state.waiting.peek().is_some_and(|Reverse(entry)| self.clock.instant(entry.at) <= now) {
                if let Some(Reverse(entry)) = state.waiting.pop() {
                    entry.waiter.wake();
                }
            }
            self.arm(&mut state);
        }
    }

    /// Sets the timer for the earliest wait, if it is not set to something earlier.
    fn arm(&self, state: &mut State) {
        let Some(Reverse(earliest)) = state.waiting.peek() else { return };
        let deadline = self.clock.instant(earliest.at).max(state.not_before);
        if state.armed.is_none_or(|armed| deadline < armed) {
            state.armed = Some(deadline);
            self.timer.arm(deadline, Instant::now());
        }
    }
}

impl Waiter {
    fn wake(&self) {
        self.released.set(true);
        if let Some(waker) = self.waker.borrow_mut().take() {
            waker.wake();
        }
    }
}

/// A wait for an intended time.
#[derive(Debug)]
pub(crate) struct Release<'a> {
    pacer: &'a Pacer,
    at: Nanos,
    waiter: Option<Rc<Waiter>>,
}

impl Future for Release<'_> {
    type Output = Option<Nanos>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Nanos>> {
        let this = &mut *self;
        if this.pacer.stopped.get() {
            return Poll::Ready(None);
        }
        if let Some(waiter) = &this.waiter {
            if waiter.released.get() {
                return Poll::Ready(Some(this.pacer.clock.now()));
            }
            *waiter.waker.borrow_mut() = Some(context.waker().clone());
            return Poll::Pending;
        }
        let due = this.pacer.clock.instant(this.at);
        let now = Instant::now();
        if due <= now {
            return Poll::Ready(Some(
                now.saturating_duration_since(this.pacer.clock.origin).as_nanos() as Nanos
            ));
        }
        let waiter = Rc::new(Waiter::default());
        *waiter.waker.borrow_mut() = Some(context.waker().clone());
        let mut state = this.pacer.state.borrow_mut();
        let sequence = state.next_sequence;
        state.next_sequence += 1;
        state.waiting.push(Reverse(Entry { at: this.at, sequence, waiter: Rc::clone(&waiter) }));
        this.pacer.arm(&mut state);
        this.waiter = Some(waiter);
        Poll::Pending
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn on_local_runtime<T>(future: impl Future<Output = T>) -> T {
        tokio::runtime::Builder::new_current_thread()
            .enable_all()
            .build_local(tokio::runtime::LocalOptions::default())
            .unwrap()
            .block_on(future)
    }

    #[test]
    fn releases_in_order_of_intended_time_and_never_early() {
        on_local_runtime(async {
            let clock = Clock::starting_in(Duration::from_millis(5));
            let pacer = Rc::new(Pacer::new(clock).unwrap());
            let driver = tokio::task::spawn_local({
                let pacer = Rc::clone(&pacer);
                async move { pacer.run().await }
            });
            let released = Rc::new(RefCell::new(Vec::new()));
            let tasks: Vec<_> = [9u64, 3, 3, 0, 6, 1, 12, 6]
                .into_iter()
                .enumerate()
                .map(|(index, millis)| {
                    let pacer = Rc::clone(&pacer);
                    let released = Rc::clone(&released);
                    tokio::task::spawn_local(async move {
                        let intended = millis * 1_000_000;
                        let at = pacer.release_at(intended).await.unwrap();
                        assert!(at >= intended, "{at} before {intended}");
                        released.borrow_mut().push((millis, index));
                    })
                })
                .collect();
            for task in tasks {
                task.await.unwrap();
            }
            driver.abort();
            let order: Vec<_> = released.borrow().clone();
            let mut sorted = order.clone();
            sorted.sort_unstable();
            assert_eq!(order, sorted);
        });
    }

    #[test]
    fn what_is_late_is_released_at_once() {
        on_local_runtime(async {
            let clock = Clock::starting_in(Duration::ZERO);
            let pacer = Pacer::new(clock).unwrap();
            clock.sleep_until(3_000_000).await;
            // No driver runs: only an immediate release can answer.
            assert!(pacer.release_at(1_000_000).await.unwrap() >= 3_000_000);
        });
    }

    #[test]
    fn a_stop_ends_every_wait() {
        on_local_runtime(async {
            let pacer = Rc::new(Pacer::new(Clock::starting_in(Duration::ZERO)).unwrap());
            let waiting = tokio::task::spawn_local({
                let pacer = Rc::clone(&pacer);
                async move { pacer.release_at(3_600_000_000_000).await }
            });
            tokio::task::yield_now().await;
            pacer.stop();
            assert_eq!(waiting.await.unwrap(), None);
            assert_eq!(pacer.release_at(0).await, None);
        });
    }
}
