//! From syntax trees to compiled expressions and templates. Every name is looked up and every argument checked here, at
//! load, so that nothing is left to go wrong while sessions run.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::Value;

use super::ast::{self, Ast, AstKind, PathStep, Piece, SyntaxError};
use super::expr::{Expr, Template, TextPiece, follow};
use super::fault::{Fault, Reporter, listed, quoted};
use super::functions::FUNCTIONS;
use super::yaml::{Kind, Node};

/// Where a template stands: not everything exists everywhere.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// Evaluated when a session begins, before the moment of any step.
    Variable,
    /// Evaluated before a step has a moment of sending.
    When,
    /// Evaluated at the moment of sending.
    Request,
    /// Compared with a reply: the same value each time it is looked at.
    Check,
}

/// The names that one template can use.
pub(crate) struct Scope<'s> {
    /// Values of `--set`; they win over everything.
    pub(crate) sets: &'s BTreeMap<String, Value>,
    /// Every name of the scenario and its slot.
    pub(crate) slots: &'s BTreeMap<String, usize>,
    /// The names that are set when this template is evaluated.
    pub(crate) visible: &'s BTreeSet<String>,
    /// Whether all names are known; not if a feeder could not be read, whose columns are names.
    pub(crate) complete: bool,
}

/// Compiles the templates of one source. Faults go to the reporter; a `None` was reported.
pub(crate) struct Compiler<'c, 'f> {
    pub(crate) scope: Scope<'c>,
    /// The names of `--set` that were used, added to.
    pub(crate) used_sets: &'c mut BTreeSet<String>,
    pub(crate) reporter: &'c mut Reporter<'f>,
}

impl Compiler<'_, '_> {
    /// A value with `${…}` anywhere inside.
    pub(crate) fn template(&mut self, node: &Node, place: Place) -> Option<Template> {
        match &node.kind {
            // All members are compiled even after a fault, so that all faults are found.
            Kind::List(items) => {
                let items: Vec<_> = items.iter().map(|item| self.template(item, place)).collect();
                items.into_iter().collect::<Option<_>>().map(Template::List)
            }
            Kind::Map(members) => {
                let members: Vec<_> = members
                    .iter()
                    .map(|(key, value)| Some((key.text.clone(), self.template(value, place)?)))
                    .collect();
                members.into_iter().collect::<Option<_>>().map(Template::Map)
            }
            Kind::Scalar(scalar) if scalar.text.contains("${") => {
                let pieces = ast::parse_text(&scalar.text).map_err(|error| self.syntax(node, error)).ok()?;
                self.text(node, pieces, place)
            }
            Kind::Scalar(scalar) => match scalar.value() {
                Ok(value) => Some(Template::Const(value)),
                Err(_) => {
                    let what = format!("{} does not fit a 64-bit number", quoted(&scalar.text));
                    self.reporter
                        .add(Fault::new(node.at, what).allowed("quotes around it, to send it as text"));
                    None
                }
            },
        }
    }

    fn text(&mut self, node: &Node, pieces: Vec<Piece>, place: Place) -> Option<Template> {
        if let [Piece::Expression(ast)] = &pieces[..] {
            return self.expr(node, ast, place).map(Template::Expr);
        }
        let compiled: Vec<_> = pieces
            .into_iter()
            .map(|piece| match piece {
                Piece::Literal(literal) => Some(TextPiece::Literal(literal)),
                Piece::Expression(ast) => self.expr(node, &ast, place).map(TextPiece::Expr),
            })
            .collect();
        let compiled = compiled.into_iter().collect::<Option<Vec<_>>>()?;
        if let [TextPiece::Literal(literal)] = &compiled[..] {
            return Some(Template::Const(Value::String(literal.clone())));
        }
        Some(Template::Text(compiled.into()))
    }

    pub(super) fn syntax(&mut self, node: &Node, error: SyntaxError) {
        self.reporter.add(Fault::new(node.within(error.at, error.width), error.what));
    }

    /// A fault at an expression.
    pub(super) fn refuse<T>(
        &mut self,
        node: &Node,
        ast: &Ast,
        what: impl Into<String>,
        allowed: &str,
    ) -> Option<T> {
        let fault = Fault::new(node.within(ast.at, ast.width), what);
        self.reporter.add(if allowed.is_empty() { fault } else { fault.allowed(allowed) });
        None
    }

    pub(super) fn expr(&mut self, node: &Node, ast: &Ast, place: Place) -> Option<Expr> {
        match &ast.kind {
            AstKind::Literal(value) => Some(Expr::Const(value.clone())),
            AstKind::Pause { .. } => {
                self.refuse(node, ast, "a duration cannot be sent", "durations in `think` and in now(+48h)")
            }
            AstKind::Name { name, path } => self.name(node, ast, name, path),
            AstKind::Call { function, args } => self.call(node, ast, function, args, place),
        }
    }

    pub(super) fn name(&mut self, node: &Node, ast: &Ast, name: &str, path: &[PathStep]) -> Option<Expr> {
        let Scope { sets, slots, visible, complete } = &self.scope;
        if let Some(value) = sets.get(name) {
            self.used_sets.insert(name.to_owned());
            return Some(Expr::Const(follow(value, path).clone()));
        }
        if let (true, Some(slot)) = (visible.contains(name), slots.get(name)) {
            return Some(Expr::Slot { slot: *slot, path: path.into() });
        }
        if !complete && !slots.contains_key(name) {
            return Some(Expr::Const(Value::Null));
        }
        let at = node.within(ast.at, ast.width);
        self.reporter.add(if slots.contains_key(name) {
            Fault::new(at, format!("{} is set only further down, it has no value here", quoted(name)))
        } else if FUNCTIONS.contains(&name) {
            Fault::new(at, format!("a function is called with brackets: `{name}()`"))
        } else {
            let mut known: Vec<&str> = visible.iter().chain(sets.keys()).map(String::as_str).collect();
            if self.reporter.faults.is_full() {
                known.clear();
            }
            let names = if known.is_empty() { "no name is set here".to_owned() } else { listed(&known) };
            Fault::new(at, format!("nothing sets {}", quoted(name)))
                .near(name, known)
                .allowed(format!("{names}; text stands in quotes: '{name}'"))
        });
        None
    }
}
