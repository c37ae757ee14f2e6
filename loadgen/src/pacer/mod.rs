//! The only place that waits: releases sessions and steps at their intended times.
//!
//! Intended times are absolute. A release that is late happens at once and is never skipped. One timer per worker,
//! armed for the earliest release and never sooner than a *slot* after the last one: releases that fall into the same
//! slot share one wake-up, since a wake-up for each costs more CPU than the request (`--slot`).
#![expect(
    clippy::disallowed_methods,
    reason = "the pacer is the part of the rim that reads the clock and waits"
)]

use std::cell::Cell;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use dealer_sim::timer::{Until, Waits};
use jiff::{SignedDuration, Timestamp};

/// Nanoseconds since the start of the run.
pub(crate) type Nanos = u64;

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
    waits: Rc<Waits>,
    stopped: Cell<bool>,
}

impl Pacer {
    /// A pacer on the current tokio runtime, no two wake-ups of which are closer than `slot`.
    pub(crate) fn new(clock: Clock, slot: Duration) -> io::Result<Pacer> {
        Ok(Pacer { clock, waits: Rc::new(Waits::new(slot)?), stopped: Cell::new(false) })
    }

    /// Waits for the intended time and gives the time of the release; `None` when the run was stopped. What is late is
    /// released at once.
    pub(crate) fn release_at(&self, intended: Nanos) -> Release<'_> {
        Release { pacer: self, until: self.waits.until(self.clock.instant(intended)) }
    }

    /// Ends every wait, now and later: nothing more is released.
    pub(crate) fn stop(&self) {
        self.stopped.set(true);
        self.waits.release_all();
    }

    /// Does the releasing; runs beside what waits, until it is dropped.
    pub(crate) async fn run(&self) {
        self.waits.run().await;
    }
}

/// A wait for an intended time.
#[derive(Debug)]
pub(crate) struct Release<'a> {
    pacer: &'a Pacer,
    until: Until,
}

impl Future for Release<'_> {
    type Output = Option<Nanos>;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Nanos>> {
        let this = &mut *self;
        if this.pacer.stopped.get() {
            return Poll::Ready(None);
        }
        Pin::new(&mut this.until).poll(context).map(|()| Some(this.pacer.clock.now()))
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    const SLOT: Duration = Duration::from_micros(100);

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
            let pacer = Rc::new(Pacer::new(clock, SLOT).unwrap());
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
            let pacer = Pacer::new(clock, SLOT).unwrap();
            clock.sleep_until(3_000_000).await;
            // No driver runs: only an immediate release can answer.
            assert!(pacer.release_at(1_000_000).await.unwrap() >= 3_000_000);
        });
    }

    #[test]
    fn a_stop_ends_every_wait() {
        on_local_runtime(async {
            let pacer = Rc::new(Pacer::new(Clock::starting_in(Duration::ZERO), SLOT).unwrap());
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
