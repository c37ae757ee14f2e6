//! Reading a few values out of a reply in one pass: JSON Pointers (RFC 6901) as a tree that a scanner walks along,
//! skipping what nobody asked for. To parse all of it would cost many times as much (5 µs for 8 kB, a tree of all values 40).

use dealer_sim::protocol::Binding;
use serde_json::Value;

use crate::outcome::{NotJson, Scanner};

/// Where the payload stands in the body of a reply (AAP digest, section c; BINDINGS, section c.1).
fn payload_root(binding: Binding) -> &'static [&'static str] {
    match binding {
        Binding::A2a => &["result", "message", "parts", "0", "data"],
        Binding::Mcp => &["result", "structuredContent"],
        Binding::Pap => &[],
    }
}

/// Where a value of a reply is found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Path {
    /// Tokens from the payload.
    Payload(Vec<String>),
    /// Tokens from the root of the body.
    Body(Vec<String>),
    /// A header's name.
    Header(String),
}

impl Path {
    /// Reads `/…` (from the payload), `envelope:/…` (from the whole body) or `header:Name`; the error says what is wrong.
    pub(crate) fn parse(text: &str) -> Result<Path, &'static str> {
        if let Some(name) = text.strip_prefix("header:") {
            // RFC 9110, section 5.6.2: a token.
            let token = |b: u8| b.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&b);
            if name.is_empty() || !name.bytes().all(token) {
                return Err("this is no name of a header");
            }
            return Ok(Path::Header(name.to_owned()));
        }
        if let Some(pointer) = text.strip_prefix("envelope:") {
            return Ok(Path::Body(tokens(pointer)?));
        }
        Ok(Path::Payload(tokens(text)?))
    }
}

fn tokens(pointer: &str) -> Result<Vec<String>, &'static str> {
    if pointer.is_empty() {
        return Ok(Vec::new());
    }
    let rest = pointer.strip_prefix('/').ok_or("a pointer begins with `/`")?;
    rest.split('/')
        .map(|token| {
            if token.replace("~0", "").replace("~1", "").contains('~') {
                return Err("in a pointer `~` is written `~0`, and `/` inside a name `~1`");
            }
            Ok(token.replace("~1", "/").replace("~0", "~"))
        })
        .collect()
}

/// A set of paths, read together. Each has a place in the list of values found.
#[derive(Debug)]
pub(crate) struct Reader {
    /// The tree; node 0 is the root of the body.
    nodes: Vec<TreeNode>,
    headers: Vec<(String, usize)>,
    /// By place.
    paths: Vec<Path>,
    binding: Binding,
}

#[derive(Debug, Default)]
struct TreeNode {
    children: Vec<(String, usize)>,
    /// The places that take the whole value here.
    places: Vec<usize>,
}

impl Reader {
    /// A reader of replies that come through this binding; it reads nothing yet.
    pub(crate) fn of(binding: Binding) -> Reader {
        Reader { nodes: Vec::new(), headers: Vec::new(), paths: Vec::new(), binding }
    }

    /// Reads the same from replies that come through this binding.
    pub(crate) fn turn_to(&mut self, binding: Binding) {
        let before = std::mem::replace(self, Reader::of(binding));
        for path in before.paths {
            self.add(path);
        }
    }

    /// Adds a path; the place of its value in what [`read`](Reader::read) returns.
    pub(crate) fn add(&mut self, path: Path) -> usize {
        let place = self.paths.len();
        match &path {
            Path::Header(name) => self.headers.push((name.clone(), place)),
            Path::Payload(tokens) => {
                let root = payload_root(self.binding).iter().copied();
                let at = self.node(root.chain(tokens.iter().map(String::as_str)));
                self.nodes[at].places.push(place);
            }
            Path::Body(tokens) => {
                let at = self.node(tokens.iter().map(String::as_str));
                self.nodes[at].places.push(place);
            }
        }
        self.paths.push(path);
        place
    }

    /// The node of these tokens from the root of the body, made if it is not there.
    fn node<'t>(&mut self, tokens: impl Iterator<Item = &'t str>) -> usize {
        if self.nodes.is_empty() {
            self.nodes.push(TreeNode::default());
        }
        let mut at = 0;
        for token in tokens {
            at = self.child(at, token.as_bytes()).unwrap_or_else(|| {
                let new = self.nodes.len();
                self.nodes.push(TreeNode::default());
                self.nodes[at].children.push((token.to_owned(), new));
                new
            });
        }
        at
    }

    fn child(&self, at: usize, token: &[u8]) -> Option<usize> {
        self.nodes[at].children.iter().find(|(name, _)| name.as_bytes() == token).map(|(_, child)| *child)
    }

    /// The values at all paths; null where a path leads nowhere or the body is no JSON.
    pub(crate) fn read<'h>(&self, body: &[u8], header: &dyn Fn(&str) -> Option<&'h str>) -> Vec<Value> {
        let mut found = vec![Value::Null; self.paths.len()];
        if !self.nodes.is_empty() {
            let mut scanner = Scanner::new(body);
            if self.walk(0, &mut scanner, &mut found).and_then(|()| scanner.end()).is_err() {
                // Half a body says nothing for sure.
                found.fill(Value::Null);
            }
        }
        for (name, place) in &self.headers {
            found[*place] = header(name).map_or(Value::Null, Value::from);
        }
        found
    }

    /// Takes the next value, and from it what the paths at and below `at` ask for.
    fn walk(&self, at: usize, scanner: &mut Scanner<'_>, found: &mut [Value]) -> Result<(), NotJson> {
        let node = &self.nodes[at];
        if !node.places.is_empty() {
            let value = serde_json::from_slice(scanner.value()?.0).map_err(|_| NotJson)?;
            self.take(at, &value, found);
            return Ok(());
        }
        if !scanner.is_at_array()? {
            // A path that goes on below a scalar leads nowhere.
            let member = |name: &[u8], scanner: &mut Scanner<'_>| match self.child(at, name) {
                Some(child) => self.walk(child, scanner, found),
                None => scanner.value().map(drop),
            };
            return scanner.object(member).map(drop);
        }
        // Skipped as one, since most lists are long and asked for their first elements.
        let list = scanner.value()?;
        let child_of = |position| node.children.iter().find(|(token, _)| index(token) == Some(position));
        let last = node.children.iter().filter_map(|(token, _)| index(token)).max();
        let Some(last) = last else { return Ok(()) };
        Scanner::new(list.0).elements(last, |position, scanner| match child_of(position) {
            Some((_, child)) => self.walk(*child, scanner, found),
            None => scanner.value().map(drop),
        })
    }

    /// Hands a value that is already read to the paths at and below `at`.
    fn take(&self, at: usize, value: &Value, found: &mut [Value]) {
        for (token, child) in &self.nodes[at].children {
            let inner = match value {
                Value::Object(map) => map.get(token),
                Value::Array(list) => index(token).and_then(|index| list.get(index)),
                _ => None,
            };
            if let Some(inner) = inner {
                self.take(*child, inner, found);
            }
        }
        for place in &self.nodes[at].places {
            found[*place] = value.clone();
        }
    }
}

/// A token as an index: digits without a leading zero (RFC 6901, section 4).
fn index(token: &str) -> Option<usize> {
    let plain = token == "0" || !token.starts_with(['0', '+']);
    token.parse().ok().filter(|_| plain)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    const NO_HEADER: &dyn Fn(&str) -> Option<&'static str> = &|_| None;

    fn read(paths: &[&str], body: &str) -> Vec<Value> {
        through(Binding::A2a, paths, body)
    }

    fn through(binding: Binding, paths: &[&str], body: &str) -> Vec<Value> {
        let mut reader = Reader::of(Binding::A2a);
        for path in paths {
            reader.add(Path::parse(path).unwrap());
        }
        reader.turn_to(binding);
        reader.read(body.as_bytes(), NO_HEADER)
    }

    #[test]
    fn the_payload_stands_where_the_binding_has_it() {
        let payload = r#"{"type":"t","data":{"vin":"A"}}"#;
        let of_mcp = format!(r#"{{"id":7,"result":{{"isError":false,"structuredContent":{payload}}}}}"#);
        let paths = ["/data/vin", "envelope:/id", "/type"];
        assert_eq!(through(Binding::Mcp, &paths, &of_mcp), [json!("A"), json!(7), json!("t")]);
        assert_eq!(through(Binding::Pap, &paths, payload), [json!("A"), json!(null), json!("t")]);
    }

    #[test]
    fn pointers_start_at_the_payload_and_the_envelope() {
        let body =
            r#"{"id":7,"result":{"message":{"parts":[{"data":{"type":"t","data":{"v":[{"vin":"A"}]}}}]}}}"#;
        let paths = ["/data/v/0/vin", "envelope:/id", "/data/v/1/vin", "/type", "", "/data/v/00"];
        let payload = json!({"type": "t", "data": {"v": [{"vin": "A"}]}});
        assert_eq!(read(&paths, body), [json!("A"), json!(7), json!(null), json!("t"), payload, json!(null)]);
    }

    #[test]
    fn a_broken_body_gives_nothing() {
        for body in ["", "{\"id\":1", "{\"id\":1} x", "\u{0}", "[1", "{\"id\":1,\"a\":nul}"] {
            assert_eq!(read(&["envelope:/id"], body), [Value::Null], "{body:?}");
        }
    }

    #[test]
    fn headers_and_escapes() {
        assert_eq!(Path::parse("header:X-A"), Ok(Path::Header("X-A".to_owned())));
        assert_eq!(
            Path::parse("envelope:/a~1b/~01"),
            Ok(Path::Body(vec!["a/b".to_owned(), "~1".to_owned()]))
        );
        for wrong in ["data/vin", "/a~2", "/a~", "header:", "header:a b", "envelope:x"] {
            assert!(Path::parse(wrong).is_err(), "{wrong}");
        }
        let mut reader = Reader::of(Binding::A2a);
        reader.add(Path::Header("Server".to_owned()));
        assert_eq!(reader.read(b"", &|name| (name == "Server").then_some("dealer")), [json!("dealer")]);
    }

    fn any_json() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(json!(null)),
            any::<i32>().prop_map(Value::from),
            "[ab]{0,2}".prop_map(Value::from)
        ];
        leaf.prop_recursive(4, 32, 4, |inner| {
            prop_oneof![
                proptest::collection::vec(inner.clone(), 0..4).prop_map(Value::from),
                proptest::collection::btree_map("[ab0]", inner, 0..4)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        /// The walk finds what a tree of all values finds by pointer.
        #[test]
        fn agrees_with_a_full_parse(value in any_json(), pointers in proptest::collection::vec("(/[ab012]){0,4}", 1..5)) {
            let paths: Vec<String> = pointers.iter().map(|p| format!("envelope:{p}")).collect();
            let found = read(&paths.iter().map(String::as_str).collect::<Vec<_>>(), &value.to_string());
            for (pointer, found) in pointers.iter().zip(found) {
                prop_assert_eq!(&found, value.pointer(pointer).unwrap_or(&Value::Null));
            }
        }
    }
}
