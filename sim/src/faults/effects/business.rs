//! What a dealer may answer, and how it may behave: the twelve codes of AAP at will, limits, leads and appointments.

use super::{breach, duration, integer, lawful, of_arrival, text, word};
use crate::faults::effect::{
    Apply, Args, Behaviour, Bucket, BucketKey, EffectInfo, HttpOverride, Param, ParamKind, RetryHint,
};
use crate::protocol::error::{AapCode, AapError, Detail};
use crate::protocol::validate::Faults;

const FAMILY: &str = "business";
const HINTS: &[&str] = &["ms", "seconds", "both", "none"];
const HINT: Param = word(
    "hint",
    HINTS,
    "ms",
    "how the wait is told: retry_after_ms, retry_after_seconds (rounded up), both or neither",
);

pub(super) static EFFECTS: &[EffectInfo] = &[
    lawful(
        FAMILY,
        "schema_validation_failed",
        &[text("at", "\"/type\"", "JSON Pointer into the payload, of the member said to be wrong")],
        "error SCHEMA_VALIDATION_FAILED (-32602) with one fault in details.errors",
        Apply::Refuse(|args| {
            faulty(AapCode::SchemaValidationFailed, args.text("at"), "type", "must be of another type")
        }),
    ),
    lawful(
        FAMILY,
        "missing_required_field",
        &[
            text("at", "\"\"", "JSON Pointer of the object that lacks the member"),
            text("member", "\"customer\"", "the member said to be missing"),
        ],
        "error MISSING_REQUIRED_FIELD (-32602) with one fault in details.errors",
        Apply::Refuse(|args| {
            let text = format!("must have required property '{}'", args.text("member"));
            faulty(AapCode::MissingRequiredField, args.text("at"), "required", &text)
        }),
    ),
    lawful(
        FAMILY,
        "invalid_condition",
        &[text("at", "\"/filters/condition/0\"", "JSON Pointer into the payload, of the condition word")],
        "error INVALID_CONDITION (-32602) with one fault in details.errors",
        Apply::Refuse(|args| {
            faulty(AapCode::InvalidCondition, args.text("at"), "enum", "must be one of new, used, cpo")
        }),
    ),
    // The card lists only what is served (AAP digest, g).
    breach(
        FAMILY,
        "unsupported_skill",
        &[],
        "error UNSUPPORTED_SKILL (-32004 with the typed entry; -32601 before contract 2.0) for a skill that the card lists",
        Apply::Refuse(|_| plain(AapCode::UnsupportedSkill, "this dealer does not offer the skill")),
    ),
    lawful(
        FAMILY,
        "vehicle_not_found",
        &[],
        "error VEHICLE_NOT_FOUND (-32000)",
        Apply::Refuse(|_| plain(AapCode::VehicleNotFound, "no vehicle has these identifiers")),
    ),
    lawful(
        FAMILY,
        "vehicle_unavailable",
        &[],
        "error VEHICLE_UNAVAILABLE (-32000)",
        Apply::Refuse(|_| plain(AapCode::VehicleUnavailable, "the vehicle is no longer offered")),
    ),
    lawful(
        FAMILY,
        "contact_consent_required",
        &[],
        "error CONTACT_CONSENT_REQUIRED (-32000) with details.missing and details.expected_scope",
        Apply::Refuse(|_| {
            plain(AapCode::ContactConsentRequired, "a lead needs the customer's consent")
                .with("missing", Detail::Texts(vec!["consent".to_owned()]))
                .with("expected_scope", Detail::Texts(vec!["lead_submission".to_owned()]))
        }),
    ),
    lawful(
        FAMILY,
        "invalid_consent",
        &[text(
            "at",
            "\"/consent/expires_at\"",
            "JSON Pointer into the payload, of the part said to be wrong",
        )],
        "error INVALID_CONSENT (-32000) with one fault in details.errors",
        Apply::Refuse(|args| {
            faulty(AapCode::InvalidConsent, args.text("at"), "consent", "the consent is not valid")
        }),
    ),
    lawful(
        FAMILY,
        "appointment_time_unavailable",
        &[],
        "error APPOINTMENT_TIME_UNAVAILABLE (-32000): no such time and no alternative",
        Apply::Refuse(|_| {
            plain(AapCode::AppointmentTimeUnavailable, "the time is taken and there is no other near it")
        }),
    ),
    lawful(
        FAMILY,
        "idempotency_conflict",
        &[],
        "error IDEMPOTENCY_CONFLICT (-32000)",
        Apply::Refuse(|_| {
            plain(AapCode::IdempotencyConflict, "this idempotency_key came with another payload")
        }),
    ),
    lawful(
        FAMILY,
        "rate_limited",
        &[duration("retry_after", "2s", "the wait that the error asks for"), HINT],
        "error RATE_LIMITED (-32000; -32002 before contract 2.0), retryable, with the wait as hint says",
        Apply::Refuse(|args| rate_limited(args.duration_ns("retry_after"), hint(args))),
    ),
    lawful(
        FAMILY,
        "internal_error",
        &[],
        "error INTERNAL_ERROR (-32603), retryable",
        Apply::Refuse(|_| plain(AapCode::InternalError, "the dealer failed unexpectedly")),
    ),
    lawful(
        FAMILY,
        "rate_limited_http",
        &[duration("retry_after", "2s", "the wait that error and Retry-After ask for"), HINT],
        "error RATE_LIMITED under HTTP 429 with Retry-After; the Python SDK drops the error",
        Apply::RefuseHttp(|args| {
            let wait_ns = args.duration_ns("retry_after");
            (rate_limited(wait_ns, hint(args)), too_many_requests(wait_ns))
        }),
    ),
    lawful(
        FAMILY,
        "internal_error_http",
        &[],
        "error INTERNAL_ERROR under HTTP 500",
        Apply::RefuseHttp(|_| {
            let http = HttpOverride { status: Some(500), ..HttpOverride::default() };
            (plain(AapCode::InternalError, "the dealer failed unexpectedly"), http)
        }),
    ),
    of_arrival(lawful(
        FAMILY,
        "token_bucket",
        &[
            integer("rate", 1, 1_000_000, "10", "calls let through in each `per`"),
            Param {
                name: "per",
                kind: ParamKind::Duration { max_ns: 86_400_000_000_000 },
                help: "the time in which `rate` tokens grow (traffic clock)",
                default: Some("1s"),
            },
            integer("burst", 0, 1_000_000, "0", "tokens of a full bucket; 0 takes the rate"),
            word("key", &["client", "conversation", "global"], "client", "what shares one bucket"),
            HINT,
            word(
                "as",
                &["aap", "http"],
                "aap",
                "http answers with HTTP 429 and Retry-After around the error",
            ),
        ],
        "RATE_LIMITED once the bucket is empty, with the true wait for the next token",
        Apply::Behave(|args| Behaviour::TokenBucket(bucket(args))),
    )),
    lawful(
        FAMILY,
        "sold_under_you",
        &[],
        "the vehicle that was just listed is VEHICLE_UNAVAILABLE to this call",
        Apply::Behave(|_| Behaviour::SoldUnderYou),
    ),
    breach(
        FAMILY,
        "idempotency_forgotten",
        &[],
        "a repeated lead.submit with a known idempotency_key makes a second lead with another lead_id",
        Apply::Behave(|_| Behaviour::ForgetIdempotency),
    ),
    lawful(
        FAMILY,
        "lead_duplicate",
        &[],
        "the lead is answered with status duplicate",
        Apply::Behave(|_| Behaviour::LeadIsDuplicate),
    ),
    lawful(
        FAMILY,
        "appointment_requested",
        &[],
        "the appointment is only requested: no booking",
        Apply::Behave(|_| Behaviour::Appointment("requested")),
    ),
    lawful(
        FAMILY,
        "appointment_proposed",
        &[],
        "the appointment is answered with other times; a fresh lead must choose one",
        Apply::Behave(|_| Behaviour::Appointment("proposed")),
    ),
    lawful(
        FAMILY,
        "appointment_confirmed",
        &[],
        "the appointment is confirmed, whatever the diary says",
        Apply::Behave(|_| Behaviour::Appointment("confirmed")),
    ),
    lawful(
        FAMILY,
        "appointment_rejected",
        &[],
        "the lead is received and its appointment rejected",
        Apply::Behave(|_| Behaviour::Appointment("rejected")),
    ),
    lawful(
        FAMILY,
        "duplicate_across_pages",
        &[integer("by", 1, 100, "1", "listings that came in before the page")],
        "the first listings of every page but the first are the last ones of the page before",
        Apply::Behave(|args| Behaviour::ShiftPages(-args.integer("by"))),
    ),
    lawful(
        FAMILY,
        "stock_moves_between_pages",
        &[integer("by", 1, 100, "1", "listings that left before the page")],
        "every page but the first leaves out listings that no other page shows",
        Apply::Behave(|args| Behaviour::ShiftPages(args.integer("by"))),
    ),
];

fn plain(code: AapCode, message: &str) -> AapError {
    AapError::new(code, message)
}

fn faulty(code: AapCode, at: &str, keyword: &'static str, error: &str) -> AapError {
    let mut faults = Faults::default();
    faults.push(at.to_owned(), keyword, error.to_owned());
    AapError::faulty(code, format!("{at:?}: {error}"), faults)
}

fn hint(args: &Args) -> RetryHint {
    match args.text("hint") {
        "seconds" => RetryHint::Seconds,
        "both" => RetryHint::Both,
        "none" => RetryHint::None,
        _ => RetryHint::Ms,
    }
}

fn bucket(args: &Args) -> Bucket {
    let rate = args.integer("rate").max(1) as u64;
    let burst = args.integer("burst").max(0) as u64;
    Bucket {
        interval_ns: (args.duration_ns("per") / rate).max(1),
        burst: if burst == 0 { rate } else { burst },
        key: match args.text("key") {
            "conversation" => BucketKey::Conversation,
            "global" => BucketKey::Global,
            _ => BucketKey::Client,
        },
        hint: hint(args),
        http: args.text("as") == "http",
    }
}

/// RATE_LIMITED with this wait, in nanoseconds. Both units are rounded up: a caller that waits as long as it is told must
/// not be refused again.
pub fn rate_limited(wait_ns: u64, hint: RetryHint) -> AapError {
    let wait_ms = wait_ns.div_ceil(1_000_000);
    let ms = Detail::Integer(i64::try_from(wait_ms).unwrap_or(i64::MAX));
    let seconds = Detail::Integer(i64::try_from(wait_ms.div_ceil(1_000)).unwrap_or(i64::MAX));
    if hint == RetryHint::None {
        return plain(AapCode::RateLimited, "too many calls");
    }
    let error = AapError::new(AapCode::RateLimited, format!("too many calls; retry after {wait_ms} ms"));
    match hint {
        RetryHint::Seconds => error.with("retry_after_seconds", seconds),
        RetryHint::Both => error.with("retry_after_ms", ms).with("retry_after_seconds", seconds),
        _ => error.with("retry_after_ms", ms),
    }
}

/// HTTP 429 around a JSON-RPC error, with Retry-After in whole seconds, rounded up (RFC 9110, section 10.2.3).
pub fn too_many_requests(wait_ns: u64) -> HttpOverride {
    let seconds = wait_ns.div_ceil(1_000_000_000).to_string();
    HttpOverride { status: Some(429), headers: vec![("retry-after", seconds)], ..HttpOverride::default() }
}
