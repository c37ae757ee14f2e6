//! What is shown on standard error while a run goes on.

use std::io::{self, IsTerminal, Write};
use std::time::Duration;

use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

use crate::record::Tally;
use crate::units::show_nanos;

/// Without a terminal, one line after this many seconds.
const LINE_SECONDS: u64 = 5;

/// One line on standard error. When that is closed or full there is nobody left to tell: no reason to end a run.
pub(crate) fn tell(text: &str) {
    let _ = writeln!(io::stderr().lock(), "{text}");
}

/// Progress of a run: a bar on a terminal, lines elsewhere, or nothing.
pub(crate) enum Progress {
    Bar(ProgressBar),
    Lines,
    Quiet,
}

impl Progress {
    /// Progress of a run of this length, if it is known.
    pub(crate) fn new(is_quiet: bool, length: Option<Duration>) -> Progress {
        if is_quiet {
            return Progress::Quiet;
        }
        if !std::io::stderr().is_terminal() {
            return Progress::Lines;
        }
        let bar = ProgressBar::with_draw_target(
            length.map(|length| length.as_secs()),
            ProgressDrawTarget::stderr(),
        );
        let template =
            if length.is_some() { "{bar:30} {pos}/{len}s {msg}" } else { "{spinner} {pos}s {msg}" };
        if let Ok(style) = ProgressStyle::with_template(template) {
            bar.set_style(style);
        }
        Progress::Bar(bar)
    }

    /// Another second has passed, the `second`th.
    pub(crate) fn tick(&self, second: u64, tally: &Tally, in_flight: u64, is_warmup: bool) {
        let message = || {
            if is_warmup {
                return format!("warming up, {in_flight} in flight");
            }
            let response = tally.response();
            let p99 = response.quantile(0.99).map_or("-".to_owned(), show_nanos);
            let p50 = response.quantile(0.5).map_or("-".to_owned(), show_nanos);
            format!(
                "{} requests/s, p50 {p50}, p99 {p99}, {} errors, {in_flight} in flight",
                tally.finished(),
                tally.errors()
            )
        };
        match self {
            Progress::Bar(bar) => {
                bar.set_message(message());
                bar.set_position(second);
            }
            Progress::Lines if second.is_multiple_of(LINE_SECONDS) => {
                tell(&format!("{second}s: {}", message()));
            }
            Progress::Lines | Progress::Quiet => {}
        }
    }

    /// Something that must be seen.
    pub(crate) fn say(&self, text: &str) {
        match self {
            Progress::Bar(bar) => bar.suspend(|| tell(text)),
            Progress::Lines => tell(text),
            Progress::Quiet => {}
        }
    }

    /// The run is over.
    pub(crate) fn finish(&self) {
        if let Progress::Bar(bar) = self {
            bar.finish_and_clear();
        }
    }
}
