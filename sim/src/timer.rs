//! Waiting to a fraction of a millisecond: many waits of one thread over one timer. On Linux that is a timerfd, because
//! the wheel of tokio's own timers turns once a millisecond and rounds up, which would add a millisecond to every delay
//! injected and every latency measured; elsewhere, or where a timerfd cannot be had, it is that wheel.
#![expect(clippy::disallowed_methods, reason = "a part of the rim: it reads the clock and waits")]

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::future::Future;
use std::io;
#[cfg(target_os = "linux")]
use std::os::fd::OwnedFd;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};
use std::time::{Duration, Instant};

use tokio::sync::Notify;

/// The waits of one thread. They are released by [`Waits::run`], which has to run beside what waits.
///
/// ```
/// # use std::{rc::Rc, time::{Duration, Instant}};
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let waits = Rc::new(dealer_sim::timer::Waits::new(Duration::from_micros(50))?);
/// let due = Instant::now() + Duration::from_micros(300);
/// tokio::select! {
///     () = waits.until(due) => assert!(Instant::now() >= due),
///     () = waits.run() => {}
/// }
/// # Ok::<(), std::io::Error>(())
/// # })?;
/// # Ok::<(), std::io::Error>(())
/// ```
#[derive(Debug)]
pub struct Waits {
    timer: Timer,
    /// No two wake-ups are closer than this: what falls due between them shares one.
    slot: Duration,
    state: RefCell<State>,
}

#[derive(Debug)]
struct State {
    /// Those who wait, by when and, within it, by who came first. Who is not in here has been released.
    waiting: BTreeMap<Place, Waker>,
    came: u64,
    /// What the timer is set to.
    armed: Option<Instant>,
    /// No wake-up before this.
    not_before: Instant,
}

type Place = (Instant, u64);

impl Waits {
    /// Waits on the current tokio runtime, whose wake-ups are at least `slot` apart: a wake-up for each wait costs several
    /// microseconds of CPU.
    ///
    /// # Errors
    /// What the system says where it refuses to watch a timer.
    pub fn new(slot: Duration) -> io::Result<Waits> {
        let state = State { waiting: BTreeMap::new(), came: 0, armed: None, not_before: Instant::now() };
        Ok(Waits { timer: Timer::new()?, slot, state: RefCell::new(state) })
    }

    /// Waits by tokio's own timers: to a millisecond, on a runtime that watches nothing, and by its clock if that is paused.
    pub(crate) fn coarse() -> Waits {
        let state = State { waiting: BTreeMap::new(), came: 0, armed: None, not_before: Instant::now() };
        Waits { timer: Timer::wheel(), slot: Duration::ZERO, state: RefCell::new(state) }
    }

    /// Waits until `due`; what is late is over at once. To drop it ends the wait.
    pub fn until(self: &Rc<Self>, due: Instant) -> Until {
        Until { waits: Rc::clone(self), due, place: None }
    }

    /// Does the releasing, until it is dropped.
    pub async fn run(&self) {
        loop {
            self.timer.expired().await;
            let now = Instant::now();
            let mut state = self.state.borrow_mut();
            state.armed = None;
            state.not_before = now + self.slot;
            while let Some(first) = state.waiting.first_entry().filter(|first| first.key().0 <= now) {
                first.remove().wake();
            }
            self.arm(&mut state, now);
        }
    }

    /// Ends every wait that there is now.
    pub fn release_all(&self) {
        let waiting = std::mem::take(&mut self.state.borrow_mut().waiting);
        waiting.into_values().for_each(Waker::wake);
    }

    /// Sets the timer for the earliest wait, if it is not set to something earlier.
    fn arm(&self, state: &mut State, now: Instant) {
        let Some(((earliest, _), _)) = state.waiting.first_key_value() else { return };
        let deadline = (*earliest).max(state.not_before);
        if state.armed.is_none_or(|armed| deadline < armed) {
            state.armed = Some(deadline);
            self.timer.arm(deadline, now);
        }
    }
}

/// A wait of [`Waits`].
#[derive(Debug)]
pub struct Until {
    waits: Rc<Waits>,
    due: Instant,
    place: Option<Place>,
}

impl Future for Until {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<()> {
        let this = &mut *self;
        let mut state = this.waits.state.borrow_mut();
        if let Some(place) = this.place {
            let Some(waker) = state.waiting.get_mut(&place) else { return Poll::Ready(()) };
            waker.clone_from(context.waker());
            return Poll::Pending;
        }
        let now = Instant::now();
        if this.due <= now {
            return Poll::Ready(());
        }
        let place = (this.due, state.came);
        state.came += 1;
        state.waiting.insert(place, context.waker().clone());
        this.place = Some(place);
        this.waits.arm(&mut state, now);
        Poll::Pending
    }
}

impl Drop for Until {
    fn drop(&mut self) {
        if let Some(place) = self.place {
            self.waits.state.borrow_mut().waiting.remove(&place);
        }
    }
}

/// A timer that is armed from anywhere on its thread and awaited in one place.
#[derive(Debug)]
enum Timer {
    #[cfg(target_os = "linux")]
    Fd(tokio::io::unix::AsyncFd<OwnedFd>),
    Wheel {
        deadline: Cell<Option<Instant>>,
        changed: Notify,
    },
}

impl Timer {
    /// The finest timer there is here.
    fn new() -> io::Result<Timer> {
        #[cfg(target_os = "linux")]
        {
            use rustix::time::{TimerfdClockId, TimerfdFlags, timerfd_create};
            let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
            if let Ok(fd) = timerfd_create(TimerfdClockId::Monotonic, flags) {
                #[expect(
                    deprecated,
                    reason = "unsound only for types whose descriptor may change or close; an OwnedFd's does not"
                )]
                let fd = tokio::io::unix::AsyncFd::with_interest(fd, tokio::io::Interest::READABLE)?;
                return Ok(Timer::Fd(fd));
            }
        }
        Ok(Timer::wheel())
    }

    /// The coarse timer.
    fn wheel() -> Timer {
        Timer::Wheel { deadline: Cell::new(None), changed: Notify::new() }
    }

    /// Sets the one deadline; an earlier setting is forgotten.
    fn arm(&self, deadline: Instant, now: Instant) {
        match self {
            #[cfg(target_os = "linux")]
            Timer::Fd(fd) => {
                use rustix::time::{Itimerspec, TimerfdTimerFlags, Timespec, timerfd_settime};
                let delay = deadline.saturating_duration_since(now);
                let it_value = Timespec {
                    tv_sec: i64::try_from(delay.as_secs()).unwrap_or(i64::MAX),
                    // All zero would disarm the timer.
                    tv_nsec: i64::from(delay.subsec_nanos().max(1)),
                };
                let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
                // Fails only for a bad descriptor or a time out of range, and neither can be here.
                let set = timerfd_settime(
                    fd.get_ref(),
                    TimerfdTimerFlags::empty(),
                    &Itimerspec { it_interval, it_value },
                );
                debug_assert!(set.is_ok());
            }
            Timer::Wheel { deadline: slot, changed } => {
                slot.set(Some(deadline));
                changed.notify_one();
            }
        }
    }

    /// Waits for the deadline.
    async fn expired(&self) {
        match self {
            #[cfg(target_os = "linux")]
            Timer::Fd(fd) => loop {
                let Ok(mut guard) = fd.readable().await else {
                    // The reactor is gone, and with it the run.
                    return std::future::pending().await;
                };
                let mut ticks = [0; 8];
                let read = rustix::io::read(guard.get_inner(), &mut ticks);
                guard.clear_ready();
                // Armed anew between the event and the read: not yet.
                if read.is_ok() {
                    return;
                }
            },
            Timer::Wheel { deadline, changed } => loop {
                let Some(at) = deadline.get() else {
                    changed.notified().await;
                    continue;
                };
                tokio::select! {
                    () = tokio::time::sleep_until(at.into()) => {
                        deadline.set(None);
                        return;
                    }
                    () = changed.notified() => {}
                }
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn waits_never_end_early_and_leave_nothing_behind() {
        let waits = Rc::new(Waits::new(Duration::from_micros(50)).unwrap());
        let begun = Instant::now();
        let ended = RefCell::new(Vec::new());
        let wait = |millis: u64| {
            let (waits, ended) = (&waits, &ended);
            async move {
                let due = begun + Duration::from_millis(millis);
                waits.until(due).await;
                assert!(Instant::now() >= due);
                ended.borrow_mut().push(millis);
            }
        };
        // What is dropped before its time is no longer waited for.
        let waker = Waker::noop();
        let mut dropped = Box::pin(waits.until(begun + Duration::from_secs(60)));
        assert!(dropped.as_mut().poll(&mut Context::from_waker(waker)).is_pending());
        assert_eq!(waits.state.borrow().waiting.len(), 1);
        drop(dropped);
        let all = async { tokio::join!(wait(9), wait(3), wait(0), wait(6), wait(1), wait(12)) };
        tokio::select! {
            _ = all => {}
            () = waits.run() => {}
        }
        // On a busy machine several are due at once, and `join` looks at them in its own order.
        ended.borrow_mut().sort_unstable();
        assert_eq!(*ended.borrow(), [0, 1, 3, 6, 9, 12]);
        assert!(waits.state.borrow().waiting.is_empty());
    }

    #[tokio::test]
    async fn all_can_be_released_at_once() {
        let waits = Rc::new(Waits::new(Duration::ZERO).unwrap());
        let wait = waits.until(Instant::now() + Duration::from_secs(3_600));
        tokio::join!(wait, async { waits.release_all() });
    }

    async fn fires_at_the_earlier_of_two(timer: Timer) {
        let start = Instant::now();
        timer.arm(start + Duration::from_secs(60), start);
        timer.arm(start + Duration::from_millis(4), start);
        timer.expired().await;
        let passed = start.elapsed();
        assert!(passed >= Duration::from_millis(4), "{passed:?}");
        assert!(passed < Duration::from_secs(30), "{passed:?}");
    }

    #[tokio::test]
    async fn the_finest_timer_fires() {
        fires_at_the_earlier_of_two(Timer::new().unwrap()).await;
    }

    #[tokio::test]
    async fn the_wheel_fires() {
        fires_at_the_earlier_of_two(Timer::wheel()).await;
    }
}
