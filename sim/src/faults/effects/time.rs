//! When a reply comes: distributions of latency, load, decay and stalls. Every draw is a pure function of [`Draw`]; `exp`,
//! `log` and the like come from `libm`, whose answers are the same on every machine, unlike the platform's.

use std::time::Duration;

use super::{duration, lawful, number, of_arrival, word};
use crate::faults::draw::Draw;
use crate::faults::effect::{Apply, Args, DelayFacts, EffectInfo, Param};

const FAMILY: &str = "time";
const MINUTE_NS: f64 = 60e9;
/// The 99th percentile of the standard normal distribution.
const Z99: f64 = 2.326_347_874_040_840_8;

const CAP: Param = duration("cap", "60s", "no delay is longer");

pub(super) static EFFECTS: &[EffectInfo] = &[
    lawful(
        FAMILY,
        "latency",
        &[
            word(
                "kind",
                &["fixed", "uniform", "normal", "lognormal", "exponential", "pareto"],
                "fixed",
                "the distribution",
            ),
            duration("value", "100ms", "of fixed: the delay"),
            duration("min", "50ms", "of uniform: the shortest delay"),
            duration("max", "150ms", "of uniform: the longest delay; less than min counts as min"),
            duration("mean", "100ms", "of normal and exponential: the mean"),
            duration("sd", "20ms", "of normal: the standard deviation; a draw below 0 counts as 0"),
            duration("p50", "80ms", "of lognormal and pareto: the median; at least 1ns"),
            duration(
                "p99",
                "400ms",
                "of lognormal and pareto: the 99th percentile; less than p50 counts as p50",
            ),
            CAP,
        ],
        "every reply is later by a delay drawn from a distribution",
        Apply::Delay(|args, draw, _| latency(args, draw)),
    ),
    lawful(
        FAMILY,
        "latency_two_point",
        &[
            duration("low", "1ms", "the usual delay"),
            duration("high", "1s", "the rare delay"),
            number("share", 0.0, 1.0, "10%", "how often the rare one comes"),
        ],
        "most replies take the usual delay, some the rare one",
        Apply::Delay(|args, draw, _| {
            let name = if draw.hits(args.number("share")) { "high" } else { "low" };
            Duration::from_nanos(args.duration_ns(name))
        }),
    ),
    of_arrival(lawful(
        FAMILY,
        "latency_per_load",
        &[duration("each", "10ms", "delay for each other request being answered"), CAP],
        "replies slow down with every request in flight",
        Apply::Delay(|args, _, facts| {
            let others = facts.in_flight.saturating_sub(1);
            capped(args, args.duration_ns("each").saturating_mul(others) as f64)
        }),
    )),
    of_arrival(lawful(
        FAMILY,
        "degrade",
        &[duration("per_minute", "50ms", "what is added with every minute since the plan took force"), CAP],
        "replies get slower from minute to minute",
        Apply::Delay(|args, _, facts| {
            capped(args, args.duration_ns("per_minute") as f64 * (facts.age_ns as f64 / MINUTE_NS))
        }),
    )),
    of_arrival(lawful(
        FAMILY,
        "warm_up",
        &[
            duration("from", "2s", "the delay at the start"),
            duration("over", "30s", "the time in which it falls to nothing, in a straight line"),
        ],
        "the first replies after the plan took force are slow, as after a cold start",
        Apply::Delay(|args, _, facts| {
            let (from, over) = (args.duration_ns("from"), args.duration_ns("over"));
            let left = over.saturating_sub(facts.age_ns);
            let scaled = u128::from(from) * u128::from(left) / u128::from(over.max(1));
            Duration::from_nanos(u64::try_from(scaled).unwrap_or(u64::MAX))
        }),
    )),
    of_arrival(lawful(
        FAMILY,
        "stall",
        &[
            duration("every", "5s", "the time from one stall's end to the next one's end; at least 1ns"),
            duration("for", "500ms", "how long everything stops; more than every counts as every"),
        ],
        "from time to time everything stops, and all that waited is answered at once",
        Apply::Delay(stall),
    )),
];

/// A delay of at most `cap`, in nanoseconds. A float as `u64` saturates, and NaN is 0.
fn capped(args: &Args, ns: f64) -> Duration {
    Duration::from_nanos((ns.round() as u64).min(args.duration_ns("cap")))
}

fn latency(args: &Args, draw: &mut Draw) -> Duration {
    let ns = |name: &str| args.duration_ns(name) as f64;
    let (p50, p99) = (ns("p50").max(1.0), ns("p99").max(ns("p50")).max(1.0));
    let drawn = match args.text("kind") {
        "uniform" => {
            let min = ns("min");
            min + (ns("max") - min).max(0.0) * draw.unit()
        }
        "normal" => ns("mean") + ns("sd") * standard_normal(draw),
        // ln X is normal, so X is at its median times exp(sigma z), and at p99 when z is the normal's own:
        // sigma = ln(p99 / p50) / z99.
        "lognormal" => p50 * libm::exp(libm::log(p99 / p50) / Z99 * standard_normal(draw)),
        // P(X > x) = exp(-x / mean).
        "exponential" => -ns("mean") * libm::log(positive_unit(draw)),
        // P(X > x) = (m / x)^a; half at p50 and a hundredth at p99 give a = ln 50 / ln(p99 / p50), m = p50 / 2^(1/a).
        // With U uniform, X = m U^(-1/a) = p50 (2 U)^(-1/a).
        "pareto" => p50 * libm::pow(2.0 * positive_unit(draw), -libm::log(p99 / p50) / libm::log(50.0)),
        _ => ns("value"),
    };
    capped(args, drawn)
}

/// A number in (0, 1].
fn positive_unit(draw: &mut Draw) -> f64 {
    1.0 - draw.unit()
}

/// A draw of the standard normal distribution (Box and Muller 1958; the second one of the pair is not kept, so that a draw
/// depends on nothing before it).
fn standard_normal(draw: &mut Draw) -> f64 {
    let radius = libm::sqrt(-2.0 * libm::log(positive_unit(draw)));
    radius * libm::cos(std::f64::consts::TAU * draw.unit())
}

/// The stall is the last part of every period. A request that comes in it waits for the period's end, as all others do.
fn stall(args: &Args, _: &mut Draw, facts: DelayFacts) -> Duration {
    let every = args.duration_ns("every").max(1);
    let left = every - facts.age_ns % every;
    if left <= args.duration_ns("for") { Duration::from_nanos(left) } else { Duration::ZERO }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::faults::effect::Arg;

    const MS: u64 = 1_000_000;

    fn args(kind: &str, durations: &[(&'static str, u64)]) -> Args {
        let mut values =
            vec![("kind", Some(Arg::Text(kind.to_owned()))), ("cap", Some(Arg::Duration(u64::MAX)))];
        values.extend(durations.iter().map(|(name, ns)| (*name, Some(Arg::Duration(*ns)))));
        Args::new(values)
    }

    /// The quantiles of a million draws, one stream each, in nanoseconds.
    fn quantiles(args: &Args, wanted: &[f64]) -> Vec<f64> {
        let mut all: Vec<u64> = (0..1_000_000_u64)
            .map(|key| latency(args, &mut Draw::new(42, "slow", key, 1)).as_nanos() as u64)
            .collect();
        all.sort_unstable();
        wanted.iter().map(|p| all[(p * all.len() as f64) as usize] as f64).collect()
    }

    #[test]
    fn a_million_draws_hit_p50_and_p99() {
        let (p50, p99) = (80 * MS, 400 * MS);
        let lines = [("p50", p50), ("p99", p99)];
        let cases = [
            ("lognormal", args("lognormal", &lines), [p50 as f64, p99 as f64]),
            ("pareto", args("pareto", &lines), [p50 as f64, p99 as f64]),
            // ln 2 and ln 100 times the mean.
            ("exponential", args("exponential", &[("mean", 100 * MS)]), [69_314_718.0, 460_517_019.0]),
            ("normal", args("normal", &[("mean", 100 * MS), ("sd", 20 * MS)]), [100e6, 146_526_957.0]),
            ("uniform", args("uniform", &[("min", 50 * MS), ("max", 150 * MS)]), [100e6, 149e6]),
            ("fixed", args("fixed", &[("value", 100 * MS)]), [100e6, 100e6]),
        ];
        for (name, args, expected) in cases {
            for (got, expected) in quantiles(&args, &[0.50, 0.99]).iter().zip(expected) {
                assert!((got / expected - 1.0).abs() < 0.01, "{name}: {got} instead of {expected}");
            }
        }
    }

    #[test]
    fn draws_are_pinned_and_bounded() {
        let drawn: Vec<_> = ["uniform", "normal", "lognormal", "exponential", "pareto"]
            .iter()
            .map(|kind| {
                let all =
                    [("min", MS), ("max", 3 * MS), ("mean", MS), ("sd", MS), ("p50", MS), ("p99", 9 * MS)];
                latency(&args(kind, &all), &mut Draw::new(7, "r", 1, 1)).as_nanos() as u64
            })
            .collect();
        assert_eq!(drawn, PINNED);

        let mut args = args("pareto", &[("p50", MS), ("p99", 1_000_000 * MS)]);
        let longest = (0..10_000).map(|key| latency(&args, &mut Draw::new(1, "r", key, 1))).max();
        assert!(longest > Some(Duration::from_secs(1_000)));
        args = Args::new(vec![("kind", Some(Arg::Text("pareto".into()))), ("cap", Some(Arg::Duration(MS)))]);
        assert!(
            (0..10_000)
                .all(|key| latency(&args, &mut Draw::new(1, "r", key, 1)).as_nanos() <= u128::from(MS))
        );
    }

    const PINNED: [u64; 5] = [2_245_811, 2_165_574, 3_006_807, 975_259, 1_171_694];

    #[test]
    fn a_stall_ends_for_all_at_once() {
        let args = Args::new(vec![
            ("every", Some(Arg::Duration(5_000 * MS))),
            ("for", Some(Arg::Duration(500 * MS))),
        ]);
        let delay = |age_ms: u64| {
            let facts = DelayFacts { in_flight: 1, age_ns: age_ms * MS };
            stall(&args, &mut Draw::new(1, "r", 1, 1), facts).as_millis() as u64
        };
        assert_eq!([delay(0), delay(4_499), delay(4_500), delay(4_999), delay(5_000)], [0, 0, 500, 1, 0]);
        assert_eq!([delay(9_600), delay(9_900)], [400, 100]);
    }
}
