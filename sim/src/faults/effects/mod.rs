//! The effects, one file per family or part of one. `sim/src/faults/README.md` says how to add one.

pub mod business;
mod bytes;
mod conversation;
mod discovery;
mod envelope;
mod errors;
mod http;
mod listing;
mod mcp;
pub(crate) mod reply;
mod time;
mod transport;

use crate::protocol::{Binding, Bindings, Contract};

use super::effect::{Apply, Class, EffectInfo, Lawfulness, Param, ParamKind};

/// The entries of every file, in the order of the catalogue.
pub(super) static FAMILIES: [&[EffectInfo]; 11] = [
    business::EFFECTS,
    listing::EFFECTS,
    conversation::EFFECTS,
    envelope::EFFECTS,
    errors::EFFECTS,
    bytes::EFFECTS,
    discovery::EFFECTS,
    http::EFFECTS,
    transport::EFFECTS,
    time::EFFECTS,
    // New families come last: magic VINs are numbered through.
    mcp::EFFECTS,
];

/// The longest wait that an effect can ask for, in nanoseconds: one hour.
const LONGEST_NS: u64 = 3_600_000_000_000;

/// An entry of what a conforming dealer may do.
const fn lawful(
    family: &'static str,
    name: &'static str,
    params: &'static [Param],
    sees: &'static str,
    apply: Apply,
) -> EffectInfo {
    EffectInfo {
        name,
        family,
        params,
        lawfulness: Lawfulness::Lawful,
        sees,
        class: Class::Independent,
        bindings: bindings_of(apply),
        apply,
    }
}

/// What rewrites a finished reply knows the form of one interface; everything else is the same through all.
const fn bindings_of(apply: Apply) -> Bindings {
    match apply {
        Apply::Refine(_) => Bindings::of(&[Binding::A2a]),
        _ => Bindings::ALL,
    }
}

/// An entry of what breaks the contract or a protocol below it.
const fn breach(
    family: &'static str,
    name: &'static str,
    params: &'static [Param],
    sees: &'static str,
    apply: Apply,
) -> EffectInfo {
    EffectInfo {
        name,
        family,
        params,
        lawfulness: Lawfulness::Breach,
        sees,
        class: Class::Independent,
        bindings: bindings_of(apply),
        apply,
    }
}

/// An entry of what breaks these contracts; the others allow it, or have nothing that it could spoil.
const fn breach_of(contracts: &'static [Contract], info: EffectInfo) -> EffectInfo {
    EffectInfo { lawfulness: Lawfulness::BreachOf(contracts), ..info }
}

/// An entry that can touch the calls of these interfaces.
const fn on(bindings: Bindings, info: EffectInfo) -> EffectInfo {
    EffectInfo { bindings, ..info }
}

/// Entries that can touch the calls of these interfaces.
const fn all_on<const N: usize>(bindings: Bindings, mut entries: [EffectInfo; N]) -> [EffectInfo; N] {
    let mut at = 0;
    // No iterator runs in a constant.
    while at < N {
        entries[at].bindings = bindings;
        at += 1;
    }
    entries
}

/// An entry that reads the load, the traffic clock, a bucket or a connection's ordinal: two runs of one seed may differ in
/// it.
const fn of_arrival(info: EffectInfo) -> EffectInfo {
    EffectInfo { class: Class::Arrival, ..info }
}

/// A duration of at most an hour.
const fn duration(name: &'static str, default: &'static str, help: &'static str) -> Param {
    Param { name, kind: ParamKind::Duration { max_ns: LONGEST_NS }, help, default: Some(default) }
}

const fn integer(name: &'static str, min: i64, max: i64, default: &'static str, help: &'static str) -> Param {
    Param { name, kind: ParamKind::Integer { min, max }, help, default: Some(default) }
}

const fn number(name: &'static str, min: f64, max: f64, default: &'static str, help: &'static str) -> Param {
    Param { name, kind: ParamKind::Number { min, max }, help, default: Some(default) }
}

const fn word(
    name: &'static str,
    words: &'static [&'static str],
    default: &'static str,
    help: &'static str,
) -> Param {
    Param { name, kind: ParamKind::Word(words), help, default: Some(default) }
}

/// A text of at most 512 bytes; its default is written with quotes, as a user would.
const fn text(name: &'static str, default: &'static str, help: &'static str) -> Param {
    Param { name, kind: ParamKind::Text { max: 512 }, help, default: Some(default) }
}

const fn bytes(name: &'static str, max: u64, default: &'static str, help: &'static str) -> Param {
    Param { name, kind: ParamKind::Bytes { max }, help, default: Some(default) }
}
