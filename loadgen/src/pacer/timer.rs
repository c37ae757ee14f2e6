//! One wake-up at a time of day of the monotonic clock. On Linux a timerfd, because the wheel of tokio's own timers
//! turns once a millisecond, which would add a millisecond to every latency measured; elsewhere, or where a timerfd
//! cannot be had, that wheel.

use std::cell::Cell;
use std::io;
use std::time::Instant;

use tokio::sync::Notify;

#[cfg(target_os = "linux")]
use std::os::fd::OwnedFd;

/// A timer that is armed from anywhere on its thread and awaited in one place.
#[derive(Debug)]
pub(super) enum Timer {
    #[cfg(target_os = "linux")]
    Fd(tokio::io::unix::AsyncFd<OwnedFd>),
    Wheel {
        deadline: Cell<Option<Instant>>,
        changed: Notify,
    },
}

impl Timer {
    /// The finest timer there is here.
    pub(super) fn new() -> io::Result<Timer> {
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
    pub(super) fn wheel() -> Timer {
        Timer::Wheel { deadline: Cell::new(None), changed: Notify::new() }
    }

    /// Sets the one deadline; an earlier setting is forgotten.
    pub(super) fn arm(&self, deadline: Instant, now: Instant) {
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
    pub(super) async fn expired(&self) {
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
    use std::time::Duration;

    use super::*;

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
