//! The load of a run in words, for `check`: what would be sent, how much of it, and how fast.

use std::fmt;

use crate::load::{Arrivals, OnFull};
use crate::report::through;
use crate::settings::Asked;
use crate::units::{show_nanos, show_rate};

/// Writes what `run` would do with the same flags.
pub(crate) fn explain_load(asked: &Asked, out: &mut dyn fmt::Write) -> fmt::Result {
    let load = &asked.load;
    writeln!(out, "\nload: {}{}", asked.text, through(asked.binding.word()))?;
    match &load.arrivals {
        Arrivals::Open(schedule) => {
            let mean = load.target_rate().unwrap_or_default();
            let peak = schedule.profile.peak_rate() / f64::from(load.shard.count);
            writeln!(
                out,
                "  sessions start on a schedule that waits for nobody: {} on average, {} at most",
                show_rate(mean),
                show_rate(peak)
            )?;
            let first: Vec<String> = schedule
                .lane(u64::from(load.shard.index), u64::from(load.shard.count))
                .take(3)
                .map(|a| show_nanos(a.at))
                .collect();
            if !first.is_empty() {
                writeln!(out, "  the first ones at {}", first.join(", "))?;
            }
        }
        Arrivals::Closed { users } => {
            let users = load.shard.of(u64::from(*users));
            writeln!(out, "  {users} users each run one session after another: the dealer sets the pace")?;
        }
    }
    match load.total_sessions() {
        Some(total) => writeln!(
            out,
            "  {} sessions in all, the warm-up included{}",
            load.shard.of(total),
            if load.shard.count > 1 {
                format!("; all {} parts together {total}", load.shard.count)
            } else {
                String::new()
            }
        )?,
        None => writeln!(out, "  as many sessions as the time allows")?,
    }
    let full = match load.limits.on_full {
        OnFull::Queue => "what comes then waits, and its wait counts",
        OnFull::Drop => "what comes then is not sent, and counted",
    };
    writeln!(out, "  at most {} sessions in flight: {full}", load.limits.in_flight)
}
