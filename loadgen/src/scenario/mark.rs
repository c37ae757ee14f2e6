//! The test mark of leads that go to a real dealer: people there read `message` and the name of the source agent.

use serde_json::{Map, Value};

use super::ast::PathStep;
use super::expr::{Expr, Template, TextPiece};

/// Stands before the `message`.
const MESSAGE: &str = "[TEST LEAD, please disregard]";
/// Stands behind the `source_agent.name`.
pub(super) const AGENT: &str = " (test)";
/// The name of a source agent that has none.
const NAMELESS: &str = "dealer-loadgen (test)";

/// The members of a lead with the mark. What is invalid on purpose (a `message` that is a list) stays as it is: no dealer
/// takes such a lead.
pub(crate) fn marked(members: &[(String, Template)]) -> Vec<(String, Template)> {
    let mut members = members.to_vec();
    change(&mut members, "message", |message| match message {
        None => constant(MESSAGE),
        Some(text) => around(&format!("{MESSAGE} "), text, ""),
    });
    change(&mut members, "source_agent", |agent| match agent {
        Some(Template::Map(mut own)) => {
            change(&mut own, "name", |name| match name {
                None => constant(NAMELESS),
                Some(text) => around("", text, AGENT),
            });
            Template::Map(own)
        }
        // An object that only exists when the session runs: its name is kept, its links are not.
        Some(Template::Expr(Expr::Slot { slot, path })) => {
            let path = path.into_iter().chain([PathStep::Member("name".to_owned())]).collect();
            let name = around("", Template::Expr(Expr::Slot { slot, path }), AGENT);
            Template::Map(vec![("name".to_owned(), name)])
        }
        None | Some(Template::Expr(_)) => Template::Map(vec![("name".to_owned(), constant(NAMELESS))]),
        Some(invalid) => invalid,
    });
    members
}

/// The same for members that only exist when the session runs.
pub(crate) fn mark_members(members: &Map<String, Value>) -> Map<String, Value> {
    let mut members = members.clone();
    match members.get_mut("message") {
        None | Some(Value::Null) => drop(members.insert("message".to_owned(), Value::from(MESSAGE))),
        Some(Value::String(text)) => *text = format!("{MESSAGE} {text}"),
        Some(_) => {}
    }
    let agent = members.entry("source_agent").or_insert(Value::Null);
    if agent.is_null() {
        *agent = Value::Object(Map::new());
    }
    if let Value::Object(own) = agent {
        match own.get_mut("name") {
            None | Some(Value::Null) => drop(own.insert("name".to_owned(), Value::from(NAMELESS))),
            Some(Value::String(name)) => name.push_str(AGENT),
            Some(_) => {}
        }
    }
    members
}

/// Replaces a member by what `with` makes of it, or adds it.
fn change(
    members: &mut Vec<(String, Template)>,
    name: &str,
    with: impl FnOnce(Option<Template>) -> Template,
) {
    match members.iter_mut().find(|(own, _)| own == name) {
        Some((_, member)) => {
            let old = std::mem::replace(member, Template::Const(Value::Null));
            *member = with(Some(old));
        }
        None => members.push((name.to_owned(), with(None))),
    }
}

fn constant(text: &str) -> Template {
    Template::Const(Value::String(text.to_owned()))
}

/// A text with a literal before and behind it.
fn around(before: &str, text: Template, behind: &str) -> Template {
    let pieces = match text {
        Template::Const(Value::String(text)) => return constant(&format!("{before}{text}{behind}")),
        Template::Expr(expr) => vec![TextPiece::Expr(expr)],
        Template::Text(pieces) => pieces.into_vec(),
        invalid => return invalid,
    };
    let literal = |text: &str| TextPiece::Literal(text.to_owned());
    let pieces = [literal(before)].into_iter().chain(pieces).chain([literal(behind)]);
    Template::Text(pieces.collect())
}
