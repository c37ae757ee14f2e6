//! A small registry: one effect for each way of applying, and parameters of each kind.

use std::time::Duration;

use dealer_sim::faults::effect::{Behaviour, Class, HttpOverride, Lawfulness, Param, ParamKind};
use dealer_sim::faults::{Apply, EffectInfo, Registry, Script, Step};
use dealer_sim::protocol::Bindings;
use dealer_sim::protocol::error::{AapCode, AapError};

const DURATION: ParamKind = ParamKind::Duration { max_ns: 3_600_000_000_000 };

const fn param(name: &'static str, kind: ParamKind, default: Option<&'static str>) -> Param {
    Param { name, kind, help: "for tests", default }
}

const fn effect(name: &'static str, params: &'static [Param], apply: Apply) -> EffectInfo {
    let (family, sees) = ("test", "something for tests");
    let class = match apply {
        Apply::Accept(_) => Class::Arrival,
        _ => Class::Independent,
    };
    EffectInfo {
        name,
        family,
        params,
        lawfulness: Lawfulness::Lawful,
        sees,
        class,
        bindings: Bindings::ALL,
        apply,
    }
}

const REFUSE: Apply = Apply::Refuse(|_| AapError::new(AapCode::InternalError, "for tests"));
const DELIVER: Apply = Apply::Deliver(|_, _| Script { steps: vec![Step::Reset] });
const WORDS: &[&str] = &["fixed", "lognormal", "pareto"];

static EFFECTS: [EffectInfo; 12] = [
    effect("rate_limited", &[param("retry_after", DURATION, Some("2s"))], REFUSE),
    effect("vehicle_unavailable", &[], REFUSE),
    effect("internal_error", &[], REFUSE),
    effect("sold_under_you", &[], Apply::Behave(|_| Behaviour::SoldUnderYou)),
    effect(
        "total_lies",
        &[
            param("by", ParamKind::Integer { min: -9, max: 9 }, Some("7")),
            param("share", ParamKind::Number { min: 0.0, max: 1.0 }, Some("20%")),
            param("note", ParamKind::Text { max: 20 }, Some("\"a \\\"b\\\", c\"")),
        ],
        Apply::Refine(|_, _, _, _| ()),
    ),
    effect("card_missing", &[], Apply::RefineCard(|_, _, _, _| HttpOverride::default())),
    effect(
        "http_status",
        &[
            param("status", ParamKind::Integer { min: 400, max: 599 }, Some("500")),
            param("retry_after", DURATION, Some("0s")),
        ],
        Apply::Http(|_| HttpOverride::default()),
    ),
    effect("reset_after_commit", &[], DELIVER),
    effect("fin_in_body", &[param("at", ParamKind::Bytes { max: 1 << 20 }, None)], DELIVER),
    effect("connection_refused", &[], Apply::Accept(|_, _| Script { steps: vec![Step::Reset] })),
    effect(
        "latency",
        &[
            param("kind", ParamKind::Word(WORDS), Some("fixed")),
            param("p50", DURATION, Some("80ms")),
            param("p99", DURATION, Some("400ms")),
        ],
        Apply::Delay(|args, draw, _| {
            let (low, high) = (args.duration_ns("p50"), args.duration_ns("p99"));
            Duration::from_nanos(low + draw.word() % (high - low).max(1))
        }),
    ),
    EffectInfo {
        class: Class::Arrival,
        ..effect(
            "stall",
            &[param("every", DURATION, Some("5s")), param("for", DURATION, Some("500ms"))],
            Apply::Delay(|_, _, _| Duration::ZERO),
        )
    },
];

/// The registry.
pub(crate) fn registry() -> Registry<'static> {
    static LIST: std::sync::LazyLock<Vec<&'static EffectInfo>> =
        std::sync::LazyLock::new(|| EFFECTS.iter().collect());
    &LIST
}
