//! The text of an effect, such as `rate_limited(retry_after=2s)`, read in two steps: `syntax` gives names and values with
//! their places, and this file gives them their meaning by the registry, all that is wrong at once.

use std::path::PathBuf;
use std::sync::Arc;

use super::effect::{Arg, Args, Effect, EffectInfo, Param, ParamKind};
use super::sequence::{Element, Per, Sequence};
use super::syntax::{self, ActionText, CallText, ElementText, Value};
use crate::document::fault::listed;
use crate::document::units::{self, DURATION_FORM, SIZE_FORM};
use crate::document::{Fault, Faults, LoadError, Pos, Reporter, Source, quoted};

/// The effects that may be named.
pub type Registry<'r> = &'r [&'static EffectInfo];

/// What a rule does each time it fires.
#[derive(Debug, Clone)]
pub enum Action {
    /// Always the same.
    Always(Arc<Effect>),
    /// One after another.
    Sequence(Sequence),
}

impl Action {
    /// The effects that it may have.
    pub fn effects(&self) -> impl Iterator<Item = &Arc<Effect>> {
        let (one, sequence) = match self {
            Action::Always(effect) => (Some(effect), None),
            Action::Sequence(sequence) => (None, Some(sequence.effects())),
        };
        one.into_iter().chain(sequence.into_iter().flatten())
    }
}

/// As it would be written, every parameter given.
impl std::fmt::Display for Action {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Action::Always(effect) => effect.fmt(f),
            Action::Sequence(sequence) => sequence.fmt(f),
        }
    }
}

/// Reads what a rule does. `place` tells where characters `offset..offset + width` of the text stand in its file.
///
/// # Errors
/// Everything wrong with it.
pub fn parse_action(
    text: &str,
    registry: Registry<'_>,
    place: &dyn Fn(usize, usize) -> Pos,
) -> Result<Action, Vec<Fault>> {
    let parsed = syntax::action(text).map_err(|slip| vec![slip.fault(place)])?;
    let mut binder = Binder { registry, place, faults: Vec::new() };
    let action = match &parsed {
        ActionText::Call(call) => binder.effect(call).map(Action::Always),
        ActionText::Sequence { per, elements } => {
            binder.sequence(per.as_ref(), elements).map(Action::Sequence)
        }
    };
    action.filter(|_| binder.faults.is_empty()).ok_or(binder.faults)
}

/// Reads the effects that a request asks for by itself, one or several with `;` between them. `source` names the text in
/// messages, such as `X-Sim-Fault`.
///
/// # Errors
/// Everything wrong with them; `line:column` counts from 1:1.
pub fn parse_effects(
    source: &str,
    text: &str,
    registry: Registry<'_>,
) -> Result<Vec<Arc<Effect>>, LoadError> {
    let place = |offset, width| Pos::START.shifted(offset, width);
    let mut binder = Binder { registry, place: &place, faults: Vec::new() };
    let effects = match syntax::calls(text) {
        Ok(calls) => calls.iter().filter_map(|call| binder.effect(call)).collect(),
        Err(slip) => {
            binder.faults.push(slip.fault(&place));
            Vec::new()
        }
    };
    let mut faults = Faults::default();
    let source = Arc::new(Source { path: PathBuf::from(source), text: text.to_owned() });
    let mut reporter = Reporter { source, faults: &mut faults };
    binder.faults.into_iter().for_each(|fault| reporter.add(fault));
    faults.finish(Some(effects))
}

/// The value that `text` writes for a parameter of this kind.
///
/// # Errors
/// What would be right.
pub fn value(kind: &ParamKind, text: &str) -> Result<Arg, String> {
    match *kind {
        ParamKind::Duration { max_ns } => match units::duration_ns(text).filter(|ns| *ns <= max_ns) {
            Some(nanos) => Ok(Arg::Duration(nanos)),
            None => Err(format!("{DURATION_FORM}, at most {}", units::show_duration_ns(max_ns))),
        },
        ParamKind::Integer { min, max } => {
            match text.parse::<i64>().ok().filter(|value| (min..=max).contains(value)) {
                Some(value) => Ok(Arg::Integer(value)),
                None => Err(format!("a whole number from {min} to {max}")),
            }
        }
        ParamKind::Number { min, max } => {
            match units::number(text).filter(|value| (min..=max).contains(value)) {
                Some(value) => Ok(Arg::Number(value)),
                None => Err(format!("a number or a ratio (20%, 0.2) from {min} to {max}")),
            }
        }
        ParamKind::Word(words) => match words.iter().find(|word| **word == text) {
            Some(word) => Ok(Arg::Text((*word).to_owned())),
            None => Err(listed(words)),
        },
        ParamKind::Text { max } if text.len() <= max => Ok(Arg::Text(text.to_owned())),
        ParamKind::Text { max } => Err(format!("text of at most {max} bytes")),
        ParamKind::Bytes { max } => match units::bytes(text).filter(|bytes| *bytes <= max) {
            Some(bytes) => Ok(Arg::Bytes(bytes)),
            None => Err(format!("{SIZE_FORM}, at most {}", units::show_bytes(max))),
        },
    }
}

struct Binder<'b> {
    registry: Registry<'b>,
    place: &'b dyn Fn(usize, usize) -> Pos,
    faults: Vec<Fault>,
}

impl Binder<'_> {
    fn at(&self, offset: usize, text: &str) -> Pos {
        (self.place)(offset, text.chars().count())
    }

    fn sequence(&mut self, per: Option<&Value>, elements: &[ElementText]) -> Option<Sequence> {
        let per = match per {
            None => Some(Per::All),
            Some(word) => Per::from_word(&word.text).or_else(|| {
                let fault = Fault::new(self.at(word.at, &word.text), format!("no {}", quoted(&word.text)));
                self.faults.push(fault.one_of(&word.text, Per::WORDS));
                None
            }),
        };
        let mut bound = Vec::with_capacity(elements.len());
        for element in elements {
            let effect = element.call.as_ref().map(|call| self.effect(call));
            bound.push(Element { effect: effect.flatten(), times: element.times });
        }
        let repeats = elements.last().is_some_and(|element| element.repeats);
        Some(Sequence::new(per?, bound, repeats))
    }

    fn effect(&mut self, call: &CallText) -> Option<Arc<Effect>> {
        let Some(info) = self.registry.iter().find(|info| info.name == call.name) else {
            let names = self.registry.iter().map(|info| info.name);
            let fault = Fault::new(
                self.at(call.at, &call.name),
                format!("there is no effect {}", quoted(&call.name)),
            );
            let fault = fault.near(&call.name, names);
            self.faults.push(fault.allowed("an effect of `dealer-sim faults list`"));
            return None;
        };
        let before = self.faults.len();
        let mut values: Vec<Option<Arg>> = vec![None; info.params.len()];
        for (position, argument) in call.arguments.iter().enumerate() {
            let Some(index) = self.parameter(info, position, argument) else { continue };
            let param = &info.params[index];
            if values[index].is_some() {
                let what = format!("the parameter `{}` is given twice", param.name);
                self.faults.push(Fault::new(self.at(argument.at(), argument.first()), what));
            }
            match value(&param.kind, &argument.value.text) {
                Ok(value) => values[index] = Some(value),
                Err(allowed) => {
                    let written = &argument.value.text;
                    let what = format!("`{}` of {} cannot be {}", param.name, info.name, quoted(written));
                    let mut fault = Fault::new(self.at(argument.value.at, written), what);
                    if let ParamKind::Word(words) = param.kind {
                        fault = fault.near(written, words.iter().copied());
                    }
                    self.faults.push(fault.allowed(allowed));
                    // It was given: its absence is not a second fault.
                    values[index] = Some(Arg::Integer(0));
                }
            }
        }
        for (param, value) in info.params.iter().zip(&mut values) {
            if value.is_none() {
                *value = self.default_of(info, param, call);
            }
        }
        let named = info.params.iter().map(|param| param.name).zip(values).collect();
        (self.faults.len() == before).then(|| Arc::new(Effect { info, args: Args::new(named) }))
    }

    /// Which parameter an argument is for.
    fn parameter(
        &mut self,
        info: &'static EffectInfo,
        position: usize,
        argument: &syntax::Argument,
    ) -> Option<usize> {
        let names = || info.params.iter().map(|param| param.name);
        if let Some(name) = &argument.name {
            let found = names().position(|known| known == name.text);
            if found.is_none() {
                let what = format!("{} has no parameter {}", info.name, quoted(&name.text));
                let fault = Fault::new(self.at(name.at, &name.text), what).one_of(&name.text, names());
                self.faults.push(fault);
            }
            return found;
        }
        let what = match (position, info.params.len()) {
            (_, 0) => format!("{} takes no parameter", info.name),
            (0, _) => return Some(0),
            _ => "only the first parameter may stand without its name".to_owned(),
        };
        let fault = Fault::new(self.at(argument.at(), argument.first()), what);
        self.faults.push(fault.allowed(allowed_parameters(info)));
        None
    }

    fn default_of(&mut self, info: &'static EffectInfo, param: &Param, call: &CallText) -> Option<Arg> {
        if let Some(written) = param.default {
            return syntax::written(written).and_then(|text| value(&param.kind, &text).ok());
        }
        // A parameter without a default is required, by the registry's rule.
        let what = format!("{} needs the parameter `{}`: {}", info.name, param.name, param.help);
        self.faults.push(Fault::new(self.at(call.at, &call.name), what));
        None
    }
}

fn allowed_parameters(info: &EffectInfo) -> String {
    match info.params {
        [] => format!("{} alone", info.name),
        params => {
            let names: Vec<_> = params.iter().map(|param| format!("{}=…", param.name)).collect();
            format!("{}({})", info.name, names.join(", "))
        }
    }
}

/// As it would be written, every parameter that has a value given; visible ASCII alone, so that a header can carry it.
impl std::fmt::Display for Effect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.info.name)?;
        for (index, (name, arg)) in self.args.iter().enumerate() {
            write!(f, "{}{name}={}", if index == 0 { "(" } else { ", " }, spelled(arg))?;
        }
        if self.args.iter().next().is_some() { f.write_str(")") } else { Ok(()) }
    }
}

fn spelled(arg: &Arg) -> String {
    match arg {
        Arg::Duration(nanos) => units::show_duration_ns(*nanos),
        Arg::Integer(value) => value.to_string(),
        Arg::Number(value) => value.to_string(),
        Arg::Text(text) => syntax::spelled(text),
        Arg::Bytes(bytes) => units::show_bytes(*bytes),
    }
}
