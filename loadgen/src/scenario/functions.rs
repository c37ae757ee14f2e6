//! The functions of the expression language: what each takes, and where it may stand.

use std::time::Duration;

use serde_json::Value;

use super::ast::{self, Arg, Ast, AstKind};
use super::compile::{Compiler, Place};
use super::draw::Lognormal;
use super::expr::{Expr, Made, Offset, Pause, pause_of_value};
use super::fault::{Fault, quoted};
use super::people::{CHANNELS, PREFERENCES};
use super::yaml::Node;

/// The functions, as messages list them.
pub(crate) const FUNCTIONS: [&str; 13] = [
    "uniform",
    "lognormal",
    "pick",
    "int",
    "uuid",
    "now",
    "buyer",
    "consent",
    "vin",
    "first_name",
    "last_name",
    "email",
    "phone",
];

/// What `think` takes.
const PAUSES: &str = "a duration (250ms, 30s, 2m, 24h), uniform(100ms, 500ms), lognormal(p50=200ms, p99=1500ms), exponential(mean=2s), \
                      the name of a value";

impl Compiler<'_, '_> {
    /// A call whose result is sent or compared.
    pub(super) fn call(
        &mut self,
        node: &Node,
        ast: &Ast,
        function: &str,
        args: &[Arg],
        place: Place,
    ) -> Option<Expr> {
        self.allowed_here(node, ast, function, place)?;
        match function {
            "uniform" => match args {
                [Arg { name: None, value: low }, Arg { name: None, value: high }] => {
                    let low = self.expr(node, low, place);
                    let high = self.expr(node, high, place);
                    let (low, high) = (low?, high?);
                    self.uniform(node, ast, low, high)
                }
                _ => self.refuse(node, ast, "uniform takes two bounds", "uniform(15000, 40000)"),
            },
            "lognormal" => self.lognormal(node, ast, args),
            "pick" if !args.is_empty() && args.iter().all(|arg| arg.name.is_none()) => {
                let choices: Vec<_> = args.iter().map(|arg| self.expr(node, &arg.value, place)).collect();
                Some(Expr::Pick(choices.into_iter().collect::<Option<_>>()?))
            }
            "pick" => self.refuse(node, ast, "pick takes its choices", "pick('used', 'new'), pick(list)"),
            "int" => match args {
                [Arg { name: None, value }] => Some(Expr::Int(Box::new(self.expr(node, value, place)?))),
                _ => self.refuse(node, ast, "int takes one value", "int(price)"),
            },
            "now" => self.now(node, ast, args),
            "buyer" => self.buyer(node, ast, args),
            "consent" => self.consent(node, args),
            "uuid" => self.no_args(node, ast, function, args, Expr::Uuid),
            "vin" => self.no_args(node, ast, function, args, Expr::Made(Made::Vin)),
            "first_name" => self.no_args(node, ast, function, args, Expr::Made(Made::FirstName)),
            "last_name" => self.no_args(node, ast, function, args, Expr::Made(Made::LastName)),
            "email" => self.no_args(node, ast, function, args, Expr::Made(Made::Email)),
            "phone" => self.no_args(node, ast, function, args, Expr::Made(Made::Phone)),
            unknown => {
                let at = node.within(ast.at, unknown.chars().count());
                let fault = Fault::new(at, format!("there is no function {}", quoted(unknown)));
                self.reporter.add(fault.one_of(unknown, FUNCTIONS));
                None
            }
        }
    }

    /// Refuses time where there is none, and draws where a value must stand still.
    fn allowed_here(&mut self, node: &Node, ast: &Ast, function: &str, place: Place) -> Option<()> {
        let timed = matches!(function, "now" | "consent");
        let what = match place {
            Place::Variable if timed => {
                format!("{function}() tells the moment of sending, and a variable is set before it")
            }
            Place::When if timed => {
                format!("{function}() tells the moment of sending, and `when` comes before it")
            }
            Place::Check if function != "int" => {
                format!("{function}() has no fixed value to compare a reply with")
            }
            _ => return Some(()),
        };
        self.refuse(node, ast, what, if timed { "in a `request`" } else { "a constant, or a name" })
    }

    fn no_args(&mut self, node: &Node, ast: &Ast, function: &str, args: &[Arg], expr: Expr) -> Option<Expr> {
        if args.is_empty() {
            return Some(expr);
        }
        self.refuse(node, ast, format!("{function} takes no arguments"), &format!("{function}()"))
    }

    fn uniform(&mut self, node: &Node, ast: &Ast, low: Expr, high: Expr) -> Option<Expr> {
        if let (Expr::Const(low), Expr::Const(high)) = (&low, &high) {
            let ordered = match (low.as_f64(), high.as_f64()) {
                (Some(low), Some(high)) => low <= high,
                _ => {
                    return self.refuse(
                        node,
                        ast,
                        "the bounds of uniform are numbers",
                        "uniform(15000, 40000)",
                    );
                }
            };
            if !ordered {
                return self.refuse(
                    node,
                    ast,
                    "the lower bound of uniform stands first",
                    "uniform(15000, 40000)",
                );
            }
        }
        Some(Expr::Uniform(Box::new(low), Box::new(high)))
    }

    fn lognormal(&mut self, node: &Node, ast: &Ast, args: &[Arg]) -> Option<Expr> {
        let number = |arg: &Ast| match &arg.kind {
            AstKind::Literal(Value::Number(number)) => Some((number.as_f64()?, number.is_i64())),
            _ => None,
        };
        if let Some((p50, p99)) = percentiles(args)
            && let (Some((p50, whole)), Some((p99, also_whole))) = (number(p50), number(p99))
            && let Some(law) = Lognormal::new(p50, p99)
        {
            return Some(Expr::Lognormal { law, integer: whole && also_whole });
        }
        let what = "lognormal takes its median and its 99th percentile, two numbers above 0, the median not above the other";
        self.refuse(node, ast, what, "lognormal(p50=20000, p99=60000)")
    }

    fn now(&mut self, node: &Node, ast: &Ast, args: &[Arg]) -> Option<Expr> {
        match args {
            [] => Some(Expr::Now(None)),
            [Arg { name: None, value }] => {
                let negative = matches!(value.kind, AstKind::Pause { negative: true, .. });
                Some(Expr::Now(Some(Offset { length: self.pause_of(node, value)?, negative })))
            }
            _ => self.refuse(node, ast, "now takes one shift or none", "now(), now(+48h), now(-5m)"),
        }
    }

    fn buyer(&mut self, node: &Node, ast: &Ast, args: &[Arg]) -> Option<Expr> {
        let prefers = match args {
            [] => Some("any"),
            [Arg { name: Some(name), value }] if name == "prefers" => one_word(value, &PREFERENCES),
            _ => None,
        };
        match prefers {
            Some(prefers) => Some(Expr::Buyer { prefers }),
            None => self.refuse(
                node,
                ast,
                "buyer takes the way in which the buyer prefers to be reached",
                "buyer(), buyer(prefers=email), or phone, sms, any",
            ),
        }
    }

    fn consent(&mut self, node: &Node, args: &[Arg]) -> Option<Expr> {
        let mut channels: Vec<&'static str> = Vec::new();
        for arg in args {
            match one_word(&arg.value, &CHANNELS) {
                Some(channel) if arg.name.is_none() && !channels.contains(&channel) => channels.push(channel),
                _ => {
                    return self.refuse(
                        node,
                        &arg.value,
                        "consent takes the channels it allows, each once",
                        "consent(), consent(email, phone, sms)",
                    );
                }
            }
        }
        if channels.is_empty() {
            channels = CHANNELS.to_vec();
        }
        Some(Expr::Consent { channels: channels.into() })
    }

    /// The value of `what`, `think` or `pacing`: an expression without `${}` whose result is a length of time.
    pub(crate) fn pause(&mut self, node: &Node, what: &str) -> Option<Pause> {
        let Some(text) = node.text() else {
            self.reporter.add(Fault::new(node.at, format!("`{what}` is {}", node.sort())).allowed(PAUSES));
            return None;
        };
        if text.contains("${") {
            let what = format!("`{what}` is an expression already, it stands without `${{}}`");
            let fault = Fault::new(node.at, what);
            self.reporter.add(fault.allowed(PAUSES));
            return None;
        }
        match ast::parse_expression(text) {
            Ok(ast) => {
                if matches!(ast.kind, AstKind::Pause { negative: true, .. }) {
                    return self.refuse(node, &ast, "nobody thinks for less than no time", PAUSES);
                }
                self.pause_of(node, &ast)
            }
            Err(error) => {
                let fault = Fault::new(node.within(error.at, error.width), error.what);
                self.reporter.add(fault.allowed(PAUSES));
                None
            }
        }
    }

    fn pause_of(&mut self, node: &Node, ast: &Ast) -> Option<Pause> {
        let length = |ast: &Ast| match ast.kind {
            AstKind::Pause { length, negative: false } => Some(length),
            _ => None,
        };
        let nanos = |length: Duration| length.as_nanos() as f64;
        match &ast.kind {
            AstKind::Pause { length, .. } => return Some(Pause::Fixed(*length)),
            AstKind::Call { function, args } if function == "uniform" => {
                if let [Arg { name: None, value: low }, Arg { name: None, value: high }] = &args[..]
                    && let (Some(low), Some(high)) = (length(low), length(high))
                    && low <= high
                {
                    return Some(Pause::Uniform(low, high));
                }
            }
            AstKind::Call { function, args } if function == "lognormal" => {
                if let Some((p50, p99)) = percentiles(args)
                    && let (Some(p50), Some(p99)) = (length(p50), length(p99))
                    && let Some(law) = Lognormal::new(nanos(p50), nanos(p99))
                {
                    return Some(Pause::Lognormal(law));
                }
            }
            AstKind::Call { function, args } if function == "exponential" => {
                if let [Arg { name: Some(name), value: mean }] = &args[..]
                    && name == "mean"
                    && let Some(mean) = length(mean)
                {
                    return Some(Pause::Exponential(nanos(mean)));
                }
            }
            AstKind::Name { name, path } => {
                return match self.name(node, ast, name, path)? {
                    Expr::Slot { slot, path } => Some(Pause::Slot { slot, path }),
                    // A value of `--set`.
                    Expr::Const(value) => match pause_of_value(&value) {
                        Some(length) => Some(Pause::Fixed(length)),
                        None => self.refuse(node, ast, format!("{value} is no length of time"), PAUSES),
                    },
                    _ => None,
                };
            }
            AstKind::Literal(Value::Number(_)) => {
                return self.refuse(node, ast, "a duration needs its unit", PAUSES);
            }
            _ => {}
        }
        self.refuse(node, ast, "this is no length of time", PAUSES)
    }
}

/// The two arguments of `lognormal(p50=…, p99=…)`, in either order.
fn percentiles(args: &[Arg]) -> Option<(&Ast, &Ast)> {
    let named = |name: &str| args.iter().find(|arg| arg.name.as_deref() == Some(name)).map(|arg| &arg.value);
    (args.len() == 2).then_some(())?;
    Some((named("p50")?, named("p99")?))
}

/// An argument that is one of a few words, quoted or not.
fn one_word(ast: &Ast, words: &[&'static str]) -> Option<&'static str> {
    let given = match &ast.kind {
        AstKind::Name { name, path } if path.is_empty() => name,
        AstKind::Literal(Value::String(text)) => text,
        _ => return None,
    };
    words.iter().find(|word| *word == given).copied()
}
