//! Whether a run's own measurement can be believed: decided from what the generator itself did, before any number is
//! shown. It says nothing about whether the target was good.

use crate::units::show_nanos;

/// What a run did.
#[derive(Debug, Clone, Default)]
pub(crate) struct Evidence {
    /// Whether sessions arrived on a schedule.
    pub(crate) is_open: bool,
    /// Sessions that the schedule asked for in the measured time.
    pub(crate) scheduled: u64,
    /// Those of them that were let go within it.
    pub(crate) on_time: u64,
    /// Sessions never begun: too many were in flight, or the run ended before they could be.
    pub(crate) not_sent: u64,
    /// Requests with an outcome.
    pub(crate) finished: u64,
    /// Whether none of them got an HTTP reply, though the scenario expects one.
    pub(crate) is_unanswered: bool,
    /// The pacer's lag, in nanoseconds; `None` if too little was paced.
    pub(crate) lag_p99: Option<u64>,
    /// The response time, in nanoseconds.
    pub(crate) response_p99: Option<u64>,
    /// The share of a core that the busiest worker used.
    pub(crate) busiest_worker: Option<f64>,
    /// Requests that failed because this machine had no port left.
    pub(crate) no_ports: u64,
    /// Requests that failed because this process could open no more files.
    pub(crate) no_descriptors: u64,
    /// Whether this is a part of a load, and no session or user of it falls to this part.
    pub(crate) has_no_share: bool,
    /// Times beyond what the histograms hold.
    pub(crate) saturated: u64,
    /// Requests that had no reply when the run gave up.
    pub(crate) unfinished: u64,
    /// Requests of after the measured time whose outcome the scenario does not expect.
    pub(crate) errors_after_end: u64,
}

/// The verdict on a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// Whether the numbers can be believed.
    pub(crate) valid: bool,
    /// Why not.
    pub(crate) reasons: Vec<String>,
    /// What a reader should know about a valid run.
    pub(crate) notes: Vec<String>,
}

/// At least this share of the scheduled sessions must have been let go in time.
const MIN_RATE: f64 = 0.99;
/// A lag below this distorts nothing.
const LAG_NOTE: u64 = 1_000_000;
/// A lag above this, and above a tenth of the response time, is what the response time then consists of.
const MAX_LAG: u64 = 10_000_000;
/// A worker that uses more of its core than this has no time left to look at its sockets when replies come.
const MAX_CPU: f64 = 0.95;

/// Judges a run.
pub(crate) fn judge(evidence: &Evidence) -> Verdict {
    let mut reasons = Vec::new();
    let mut notes = Vec::new();
    if evidence.has_no_share {
        notes.push("no session of the load falls to this shard: it has nothing to measure".to_owned());
    } else if evidence.finished == 0 {
        reasons.push("no request finished in the measured time".to_owned());
    }
    if evidence.is_unanswered {
        reasons.push(
            "not one request got an HTTP reply, so that the latencies are only those of failing".to_owned(),
        );
    }
    if evidence.is_open && evidence.scheduled > 0 {
        let reached = evidence.on_time as f64 / evidence.scheduled as f64;
        if reached < MIN_RATE {
            reasons.push(format!(
                "only {:.1} % of the scheduled sessions were started in time ({} of {})",
                reached * 100.0,
                evidence.on_time,
                evidence.scheduled
            ));
        }
    }
    if evidence.not_sent > 0 {
        notes.push(format!(
            "{} sessions were never started: too many were in flight (--max-in-flight), or the run ended before their turn; how long \
             they waited is in no latency",
            evidence.not_sent
        ));
    }
    if let Some(lag) = evidence.lag_p99 {
        let of_response = evidence.response_p99.unwrap_or(0) / 10;
        if lag > MAX_LAG && lag > of_response {
            reasons.push(format!(
                "the generator itself was late: lag p99 {} (allowed: {}, or a tenth of the response time)",
                show_nanos(lag),
                show_nanos(MAX_LAG)
            ));
        } else if lag > LAG_NOTE {
            notes.push(format!("the generator itself was up to {} late (lag p99)", show_nanos(lag)));
        }
    }
    if let Some(busiest) = evidence.busiest_worker
        && busiest > MAX_CPU
    {
        let text = format!("the busiest worker used {:.0} % of a core", busiest * 100.0);
        if evidence.is_open {
            reasons.push(format!(
                "{text}: the generator was the limit (fewer requests per second, or more --threads)"
            ));
        } else {
            notes.push(format!("{text}: the generator, not the target, may have set the rate"));
        }
    }
    if evidence.no_ports > 0 {
        reasons.push(format!(
            "{} requests found no free port on this machine: too many connections were opened and closed \
             (let them be reused, or lower the rate)",
            evidence.no_ports
        ));
    }
    if evidence.no_descriptors > 0 {
        reasons.push(format!(
            "{} requests could not open a connection, because this process may open no more files (raise ulimit -n, or \
             set --connections)",
            evidence.no_descriptors
        ));
    }
    if evidence.saturated > 0 {
        reasons.push(format!("{} times were longer than the hour that is recorded", evidence.saturated));
    }
    if evidence.unfinished > 0 {
        notes.push(format!(
            "{} requests had no reply when the run ended; they are not in the latencies",
            evidence.unfinished
        ));
    }
    if evidence.errors_after_end > 0 {
        notes.push(format!(
            "{} requests that were sent after the measured time had an outcome that the scenario does not expect; only the sessions \
             count them",
            evidence.errors_after_end
        ));
    }
    Verdict { valid: reasons.is_empty(), reasons, notes }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn good() -> Evidence {
        Evidence {
            is_open: true,
            scheduled: 1000,
            on_time: 1000,
            finished: 3000,
            lag_p99: Some(90_000),
            response_p99: Some(20_000_000),
            busiest_worker: Some(0.3),
            ..Evidence::default()
        }
    }

    #[test]
    fn a_good_run_is_valid() {
        assert_eq!(judge(&good()), Verdict { valid: true, reasons: Vec::new(), notes: Vec::new() });
    }

    #[test]
    fn each_fault_has_its_reason() {
        let reason = |evidence: Evidence, words: &str| {
            let verdict = judge(&evidence);
            assert!(!verdict.valid);
            assert_eq!(verdict.reasons.len(), 1, "{verdict:?}");
            assert!(verdict.reasons[0].contains(words), "{verdict:?}");
        };
        reason(Evidence { on_time: 989, ..good() }, "98.9 %");
        reason(Evidence { lag_p99: Some(50_000_000), ..good() }, "late");
        reason(Evidence { busiest_worker: Some(0.99), ..good() }, "99 % of a core");
        reason(Evidence { no_ports: 1, ..good() }, "free port");
        reason(Evidence { no_descriptors: 1, ..good() }, "ulimit");
        reason(Evidence { saturated: 1, ..good() }, "hour");
        reason(Evidence { is_unanswered: true, ..good() }, "HTTP reply");
        reason(Evidence { finished: 0, ..good() }, "no request finished");
    }

    #[test]
    fn a_shard_without_a_share_has_done_what_it_was_to_do() {
        let nothing = Evidence { is_open: true, has_no_share: true, ..Evidence::default() };
        let verdict = judge(&nothing);
        assert!(verdict.valid && verdict.notes.len() == 1, "{verdict:?}");
    }

    #[test]
    fn lag_that_is_small_beside_the_response_is_a_note() {
        let verdict =
            judge(&Evidence { lag_p99: Some(50_000_000), response_p99: Some(5_000_000_000), ..good() });
        assert!(verdict.valid && verdict.notes.len() == 1, "{verdict:?}");
    }

    #[test]
    fn users_ask_for_no_rate() {
        let verdict = judge(&Evidence { is_open: false, busiest_worker: Some(1.0), on_time: 0, ..good() });
        assert!(verdict.valid && verdict.notes.len() == 1, "{verdict:?}");
    }
}
