//! Reading mappings of a document: which members there may be, which there must be, and what a name is.

use super::fault::{Fault, Reporter, quoted};
use super::yaml::{Key, Kind, Node, Scalar};

/// Characters of a name.
const MAX_NAME: usize = 64;

/// The members of one mapping, all of them known.
pub struct Members<'n> {
    node: &'n Node,
    list: &'n [(Key, Node)],
}

impl<'n> Members<'n> {
    /// The members of `node`, which is `what`. Unknown ones are reported, and those that a later version may know are
    /// refused in so many words: a member that is silently ignored would be believed to work.
    pub fn of(
        node: &'n Node,
        what: &str,
        allowed: &[&str],
        later: &[&str],
        reporter: &mut Reporter<'_>,
    ) -> Option<Members<'n>> {
        let Kind::Map(list) = &node.kind else {
            let fault = Fault::new(node.at, format!("{what} is a mapping, this is {}", node.sort()));
            reporter.add(fault.allowed(allowed.join(", ")));
            return None;
        };
        for (key, _) in list {
            if later.contains(&key.text.as_str()) {
                let what = format!("{} is not available yet", quoted(&key.text));
                reporter.add(Fault::new(key.at, what).allowed(allowed.join(", ")));
            } else if !allowed.contains(&key.text.as_str()) {
                let what = format!("{what} has no member {}", quoted(&key.text));
                reporter.add(Fault::new(key.at, what).one_of(&key.text, allowed.iter().copied()));
            }
        }
        Some(Members { node, list })
    }

    /// A member, if it is there; one that is null counts as not there.
    pub fn get(&self, name: &str) -> Option<&'n Node> {
        self.list.iter().find(|(key, node)| key.text == name && !node.is_null()).map(|(_, node)| node)
    }

    /// A member that has to be there; reported if it is not.
    pub fn need(&self, name: &str, what: &str, reporter: &mut Reporter<'_>) -> Option<&'n Node> {
        let found = self.get(name);
        if found.is_none() {
            reporter.add(Fault::new(self.node.at, format!("{what} needs a member `{name}`")));
        }
        found
    }
}

/// Whether a text is a name: `[A-Za-z0-9_-]+`, at most 64 characters.
pub fn is_name(text: &str) -> bool {
    !text.is_empty() && text.len() <= MAX_NAME && text.chars().all(is_word)
}

/// A character of a name: names are `[A-Za-z0-9_-]+`.
pub fn is_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_' || c == '-'
}

/// The text that a scalar holds.
pub fn text_of<'n>(node: &'n Node, what: &str, reporter: &mut Reporter<'_>) -> Option<&'n str> {
    if node.text().is_none() {
        reporter.add(Fault::new(node.at, format!("{what} is text, this is {}", node.sort())));
    }
    node.text()
}

/// The name that a scalar holds.
pub fn name_of(node: &Node, what: &str, reporter: &mut Reporter<'_>) -> Option<String> {
    let text = text_of(node, what, reporter)?;
    if !is_name(text) {
        reporter.add(not_a_name(node.at, text, what));
        return None;
    }
    Some(text.to_owned())
}

/// Whether a member's key is a name; reported if not.
pub fn key_is_name(key: &Key, what: &str, reporter: &mut Reporter<'_>) -> bool {
    let valid = is_name(&key.text);
    if !valid {
        reporter.add(not_a_name(key.at, &key.text, what));
    }
    valid
}

fn not_a_name(at: super::fault::Pos, text: &str, what: &str) -> Fault {
    Fault::new(at, format!("{} cannot be {what}", quoted(text)))
        .allowed(format!("1 to {MAX_NAME} letters, digits, `_` and `-`"))
}

/// The elements of a list.
pub fn list_of<'n>(node: &'n Node, what: &str, reporter: &mut Reporter<'_>) -> Option<&'n [Node]> {
    match &node.kind {
        Kind::List(items) => Some(items),
        _ => {
            reporter.add(Fault::new(node.at, format!("{what} is a list, this is {}", node.sort())));
            None
        }
    }
}

/// The members of a mapping whose names are free.
pub fn map_of<'n>(node: &'n Node, what: &str, reporter: &mut Reporter<'_>) -> Option<&'n [(Key, Node)]> {
    match &node.kind {
        Kind::Map(members) => Some(members),
        _ => {
            reporter.add(Fault::new(node.at, format!("{what} is a mapping, this is {}", node.sort())));
            None
        }
    }
}

/// A whole number from `low` to `high`.
pub fn integer_of(node: &Node, what: &str, low: u64, high: u64, reporter: &mut Reporter<'_>) -> Option<u64> {
    let value = match &node.kind {
        Kind::Scalar(scalar) => Scalar::value(scalar).ok().and_then(|value| value.as_u64()),
        _ => None,
    };
    let found = value.filter(|value| (low..=high).contains(value));
    if found.is_none() {
        let fault = Fault::new(node.at, format!("{what} is a whole number"));
        reporter.add(fault.allowed(format!("{low} to {high}")));
    }
    found
}
