//! A request's payload as bytes that are ready but for the expressions: constant pieces are serialised at load, and
//! rendering only copies them.

use std::borrow::Cow;

use serde_json::Value;

use super::expr::{Env, Expr, Template, TextPiece, join};
use super::mark::mark_members;

/// What writes one piece. Every value is followed by a comma, and closing takes the last one away: a member can be left
/// out without its neighbours knowing.
#[derive(Debug)]
enum Op {
    Bytes(Box<[u8]>),
    /// An expression; with a prefix, the member's name and colon. Left out together when the value is null.
    Value {
        prefix: Box<[u8]>,
        expr: Expr,
    },
    Text(Box<[TextPiece]>),
    /// The members of an object that only exists when the session runs, but for its `type`.
    Members {
        expr: Expr,
        marked: bool,
    },
    Close(u8),
}

/// A payload, compiled.
#[derive(Debug)]
pub(crate) struct Body {
    ops: Box<[Op]>,
}

impl Body {
    /// `members` in their order, the member `type` first: a dealer that reads a stream knows the skill at once.
    pub(crate) fn new(request_type: &str, members: Vec<(String, Template)>) -> Body {
        let (types, others): (Vec<_>, Vec<_>) = members.into_iter().partition(|(name, _)| name == "type");
        let own_type = ("type".to_owned(), Template::Const(Value::String(request_type.to_owned())));
        let typed = if types.is_empty() { vec![own_type] } else { types };
        let mut writer = Writer { ops: Vec::new(), bytes: Vec::new() };
        writer.map(typed.into_iter().chain(others));
        writer.flush();
        Body { ops: writer.ops.into() }
    }

    /// `type`, and the members that an expression has; with the test mark if `marked`. Anything but an object has none.
    pub(crate) fn of_object(request_type: &str, expr: Expr, marked: bool) -> Body {
        let mut writer = Writer { ops: Vec::new(), bytes: Vec::new() };
        writer.bytes.extend_from_slice(b"{\"type\":");
        write_json(&Value::String(request_type.to_owned()), &mut writer.bytes);
        writer.bytes.push(b',');
        writer.push(Op::Members { expr, marked });
        writer.close(b'}');
        writer.flush();
        Body { ops: writer.ops.into() }
    }

    /// Appends the payload to `out`.
    pub(crate) fn render<'e>(&'e self, env: &mut Env<'e>, out: &mut Vec<u8>) {
        for op in &self.ops {
            match op {
                Op::Bytes(bytes) => out.extend_from_slice(bytes),
                Op::Value { prefix, expr } => {
                    let value = expr.eval(env);
                    if !value.is_null() {
                        out.extend_from_slice(prefix);
                        write_json(&value, out);
                        out.push(b',');
                    }
                }
                Op::Text(pieces) => {
                    write_json(&Value::String(join(pieces, env)), out);
                    out.push(b',');
                }
                Op::Members { expr, marked } => {
                    let value = expr.eval(env);
                    let Value::Object(members) = &*value else { continue };
                    let own =
                        if *marked { Cow::Owned(mark_members(members)) } else { Cow::Borrowed(members) };
                    for (name, member) in own.iter().filter(|(name, _)| *name != "type") {
                        write_json(&Value::from(name.as_str()), out);
                        out.push(b':');
                        write_json(member, out);
                        out.push(b',');
                    }
                }
                Op::Close(bracket) => {
                    if out.last() == Some(&b',') {
                        out.pop();
                    }
                    out.extend_from_slice(&[*bracket, b',']);
                }
            }
        }
        out.pop();
    }
}

/// Appends a value as compact JSON.
fn write_json(value: &Value, out: &mut Vec<u8>) {
    // Writing into a Vec cannot fail, and a Value has no keys that JSON cannot hold.
    let written = serde_json::to_writer(&mut *out, value);
    debug_assert!(written.is_ok());
}

struct Writer {
    ops: Vec<Op>,
    bytes: Vec<u8>,
}

impl Writer {
    fn flush(&mut self) {
        if !self.bytes.is_empty() {
            self.ops.push(Op::Bytes(std::mem::take(&mut self.bytes).into()));
        }
    }

    fn push(&mut self, op: Op) {
        self.flush();
        self.ops.push(op);
    }

    /// A closing bracket; part of the bytes where what stands before it is constant too.
    fn close(&mut self, bracket: u8) {
        match self.bytes.last() {
            Some(b',') => {
                self.bytes.pop();
                self.bytes.extend_from_slice(&[bracket, b',']);
            }
            Some(_) => self.bytes.extend_from_slice(&[bracket, b',']),
            None => self.ops.push(Op::Close(bracket)),
        }
    }

    fn map(&mut self, members: impl Iterator<Item = (String, Template)>) {
        self.bytes.push(b'{');
        for (name, member) in members {
            let mut prefix = Vec::new();
            write_json(&Value::String(name), &mut prefix);
            prefix.push(b':');
            match member {
                Template::Expr(expr) => self.push(Op::Value { prefix: prefix.into(), expr }),
                other => {
                    self.bytes.extend_from_slice(&prefix);
                    self.value(other);
                }
            }
        }
        self.close(b'}');
    }

    fn value(&mut self, template: Template) {
        match template {
            Template::Const(value) => {
                write_json(&value, &mut self.bytes);
                self.bytes.push(b',');
            }
            Template::Expr(expr) => self.push(Op::Value { prefix: Box::default(), expr }),
            Template::Text(pieces) => self.push(Op::Text(pieces)),
            Template::Map(members) => self.map(members.into_iter()),
            Template::List(items) => {
                self.bytes.push(b'[');
                for item in items {
                    self.value(item);
                }
                self.close(b']');
            }
        }
    }
}
