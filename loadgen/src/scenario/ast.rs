//! The expression language inside `${…}`: text to syntax tree, nothing looked up yet.
//!
//! ```text
//! text       = ( literal | "$${" | "${" expression "}" )*
//! expression = number | duration | string | "true" | "false" | "null" | name path* | name "(" [ arg ("," arg)* ] ")"
//! path       = "." name | "[" integer "]"
//! arg        = [ name "=" ] expression
//! ```

use std::time::Duration;

use dealer_sim::document::members::is_word;
use serde_json::Value;

/// Calls within calls; a recursive descent stops here.
const MAX_NESTING: usize = 16;

/// A piece of a text with `${…}` in it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Piece {
    Literal(String),
    Expression(Ast),
}

/// An expression and where it stands, in characters from the start of its scalar.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Ast {
    pub(crate) at: usize,
    pub(crate) width: usize,
    pub(crate) kind: AstKind,
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) enum AstKind {
    /// A number, quoted text, boolean or null.
    Literal(Value),
    /// A duration, and whether it carries a minus sign.
    Pause {
        length: Duration,
        negative: bool,
    },
    Name {
        name: String,
        path: Vec<PathStep>,
    },
    Call {
        function: String,
        args: Vec<Arg>,
    },
}

/// A way into a value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum PathStep {
    Member(String),
    Index(usize),
}

/// An argument of a call.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Arg {
    pub(crate) name: Option<String>,
    pub(crate) value: Ast,
}

/// A text that is not an expression: where, in characters from the start of the scalar, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SyntaxError {
    pub(crate) at: usize,
    pub(crate) width: usize,
    pub(crate) what: String,
}

/// Cuts a text into literal pieces and expressions.
pub(crate) fn parse_text(text: &str) -> Result<Vec<Piece>, SyntaxError> {
    let chars: Vec<char> = text.chars().collect();
    let mut parser = Parser { chars: &chars, at: 0, nesting: 0 };
    let mut pieces = Vec::new();
    let mut literal = String::new();
    while let Some(c) = parser.peek(0) {
        if parser.starts_with("$${") {
            literal.push_str("${");
            parser.at += 3;
        } else if parser.starts_with("${") {
            if !literal.is_empty() {
                pieces.push(Piece::Literal(std::mem::take(&mut literal)));
            }
            let start = parser.at;
            parser.at += 2;
            let expression = parser.expression()?;
            parser.blanks();
            match parser.peek(0) {
                Some('}') => parser.at += 1,
                None => return Err(error(start, 2, "this `${` is never closed by `}`")),
                Some(_) => {
                    return Err(error(parser.at, 1, "the expression goes on where `}` should end it"));
                }
            }
            pieces.push(Piece::Expression(expression));
        } else {
            literal.push(c);
            parser.at += 1;
        }
    }
    if !literal.is_empty() {
        pieces.push(Piece::Literal(literal));
    }
    Ok(pieces)
}

/// Parses a text that is one expression without `${}` around it, as `think` has.
pub(crate) fn parse_expression(text: &str) -> Result<Ast, SyntaxError> {
    let chars: Vec<char> = text.chars().collect();
    let mut parser = Parser { chars: &chars, at: 0, nesting: 0 };
    let expression = parser.expression()?;
    parser.blanks();
    match parser.peek(0) {
        None => Ok(expression),
        Some(_) => Err(error(parser.at, chars.len() - parser.at, "this is left over behind the expression")),
    }
}

fn error(at: usize, width: usize, what: impl Into<String>) -> SyntaxError {
    SyntaxError { at, width, what: what.into() }
}

struct Parser<'t> {
    chars: &'t [char],
    at: usize,
    nesting: usize,
}

impl Parser<'_> {
    fn peek(&self, ahead: usize) -> Option<char> {
        self.chars.get(self.at + ahead).copied()
    }

    fn starts_with(&self, word: &str) -> bool {
        word.chars().enumerate().all(|(ahead, c)| self.peek(ahead) == Some(c))
    }

    fn blanks(&mut self) {
        while self.peek(0).is_some_and(char::is_whitespace) {
            self.at += 1;
        }
    }

    fn expression(&mut self) -> Result<Ast, SyntaxError> {
        self.nesting += 1;
        if self.nesting > MAX_NESTING {
            return Err(error(self.at, 1, format!("calls nest deeper than {MAX_NESTING}")));
        }
        self.blanks();
        let start = self.at;
        let kind = match self.peek(0) {
            Some('\'' | '"') => self.quoted()?,
            Some(c) if c.is_ascii_digit() || (matches!(c, '+' | '-' | '.') && self.digit_follows()) => {
                self.number_or_duration()?
            }
            Some(c) if is_word(c) => self.word()?,
            Some('}') | None => return Err(error(start, 1, "an expression is missing here")),
            Some(c) => return Err(error(start, 1, format!("an expression cannot begin with {c:?}"))),
        };
        self.nesting -= 1;
        Ok(Ast { at: start, width: self.at - start, kind })
    }

    fn digit_follows(&self) -> bool {
        self.peek(1).is_some_and(|c| c.is_ascii_digit())
    }

    fn quoted(&mut self) -> Result<AstKind, SyntaxError> {
        let start = self.at;
        let quote = self.peek(0);
        self.at += 1;
        let mut text = String::new();
        while let Some(c) = self.peek(0) {
            self.at += 1;
            if Some(c) == quote {
                return Ok(AstKind::Literal(Value::String(text)));
            }
            text.push(c);
        }
        Err(error(start, 1, "this quoted text is never closed"))
    }

    /// A number, a duration, or a name that begins with a digit.
    fn number_or_duration(&mut self) -> Result<AstKind, SyntaxError> {
        let start = self.at;
        self.at += 1;
        while self.peek(0).is_some_and(|c| is_word(c) || c == '.') {
            self.at += 1;
        }
        let text: String = self.chars[start..self.at].iter().collect();
        let unsigned = text.trim_start_matches(['+', '-']);
        if let Some(length) = duration(unsigned) {
            return Ok(AstKind::Pause { length, negative: text.starts_with('-') });
        }
        let number = text.strip_prefix('+').unwrap_or(&text);
        if let Ok(integer) = number.parse::<i64>() {
            return Ok(AstKind::Literal(Value::from(integer)));
        }
        if let Some(float) = number.parse::<f64>().ok().filter(|_| number.contains('.')) {
            return Ok(AstKind::Literal(Value::from(float)));
        }
        if text.chars().all(is_word) && !text.chars().all(|c| c.is_ascii_digit()) {
            self.at = start;
            return self.word();
        }
        let what = format!("`{text}` is no number and no duration (250ms, 30s, 2m, 24h)");
        Err(error(start, self.at - start, what))
    }

    fn name(&mut self) -> String {
        let start = self.at;
        while self.peek(0).is_some_and(is_word) {
            self.at += 1;
        }
        self.chars[start..self.at].iter().collect()
    }

    /// A name with its path, a call, or one of the three literal words.
    fn word(&mut self) -> Result<AstKind, SyntaxError> {
        let name = self.name();
        let after = self.at;
        self.blanks();
        if self.peek(0) == Some('(') {
            self.at += 1;
            return Ok(AstKind::Call { function: name, args: self.args()? });
        }
        self.at = after;
        match name.as_str() {
            "true" => return Ok(AstKind::Literal(Value::Bool(true))),
            "false" => return Ok(AstKind::Literal(Value::Bool(false))),
            "null" => return Ok(AstKind::Literal(Value::Null)),
            _ => {}
        }
        Ok(AstKind::Name { name, path: self.path()? })
    }

    fn path(&mut self) -> Result<Vec<PathStep>, SyntaxError> {
        let mut path = Vec::new();
        loop {
            let start = self.at;
            match self.peek(0) {
                Some('.') => {
                    self.at += 1;
                    let member = self.name();
                    if member.is_empty() {
                        return Err(error(start, 1, "a member's name is missing behind this dot"));
                    }
                    path.push(PathStep::Member(member));
                }
                Some('[') => {
                    self.at += 1;
                    let index = self.name().parse();
                    match (index, self.peek(0)) {
                        (Ok(index), Some(']')) => path.push(PathStep::Index(index)),
                        _ => return Err(error(start, 1, "an index is written `[0]`")),
                    }
                    self.at += 1;
                }
                _ => return Ok(path),
            }
        }
    }

    /// The arguments behind an opening bracket, and the closing one.
    fn args(&mut self) -> Result<Vec<Arg>, SyntaxError> {
        let open = self.at - 1;
        let mut args = Vec::new();
        self.blanks();
        if self.peek(0) == Some(')') {
            self.at += 1;
            return Ok(args);
        }
        loop {
            let name = self.arg_name();
            args.push(Arg { name, value: self.expression()? });
            self.blanks();
            match self.peek(0) {
                Some(',') => self.at += 1,
                Some(')') => {
                    self.at += 1;
                    return Ok(args);
                }
                None | Some('}') => return Err(error(open, 1, "this bracket is never closed")),
                Some(_) => {
                    return Err(error(
                        self.at,
                        1,
                        "between arguments stands a comma, behind the last one `)`",
                    ));
                }
            }
        }
    }

    /// The name in `name=value`; nothing is taken if this argument has none.
    fn arg_name(&mut self) -> Option<String> {
        self.blanks();
        let start = self.at;
        let name = self.name();
        self.blanks();
        if !name.is_empty() && self.peek(0) == Some('=') {
            self.at += 1;
            return Some(name);
        }
        self.at = start;
        None
    }
}

/// Whether `${text}` stands for the name `text`, and not for a number, a duration or a word such as `true`.
pub(crate) fn is_reference(text: &str) -> bool {
    matches!(parse_expression(text), Ok(Ast { kind: AstKind::Name { path, .. }, .. }) if path.is_empty())
}

/// A duration as users write it: digits, perhaps a fraction, and `ms`, `s`, `m` or `h`. At most a year.
pub(crate) fn duration(text: &str) -> Option<Duration> {
    let unit_at = text.find(|c: char| c.is_ascii_alphabetic())?;
    let (number, unit) = text.split_at(unit_at);
    let nanos_per_unit: u128 = match unit {
        "ms" => 1_000_000,
        "s" => 1_000_000_000,
        "m" => 60_000_000_000,
        "h" => 3_600_000_000_000,
        _ => return None,
    };
    let (whole, fraction) = number.split_once('.').unwrap_or((number, "0"));
    let digits =
        |part: &str| !part.is_empty() && part.len() <= 12 && part.bytes().all(|b| b.is_ascii_digit());
    if !digits(whole) || !digits(fraction) {
        return None;
    }
    // Integers only: 1.5s is the same number of nanoseconds on every machine.
    let scale = 10_u128.pow(fraction.len() as u32);
    let nanos =
        (whole.parse::<u128>().ok()? * scale + fraction.parse::<u128>().ok()?) * nanos_per_unit / scale;
    let length = Duration::from_nanos(u64::try_from(nanos).ok()?);
    (length <= Duration::from_secs(366 * 24 * 3600)).then_some(length)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn one(text: &str) -> AstKind {
        parse_expression(text).unwrap().kind
    }

    #[test]
    fn literals_keep_their_kind() {
        assert_eq!(one("20"), AstKind::Literal(Value::from(20)));
        assert_eq!(one("-2.5"), AstKind::Literal(Value::from(-2.5)));
        assert_eq!(one("'a b'"), AstKind::Literal(Value::from("a b")));
        assert_eq!(one("1.5s"), AstKind::Pause { length: Duration::from_millis(1500), negative: false });
        assert_eq!(one("-5m"), AstKind::Pause { length: Duration::from_secs(300), negative: true });
        assert_eq!(one("null"), AstKind::Literal(Value::Null));
    }

    #[test]
    fn names_may_hold_dashes_and_begin_with_digits() {
        let name = |name: &str, path| AstKind::Name { name: name.to_owned(), path };
        assert_eq!(one("2nd-car"), name("2nd-car", vec![]));
        let path = vec![PathStep::Member("b-c".to_owned()), PathStep::Index(3)];
        assert_eq!(one("a.b-c[3]"), name("a", path));
    }

    #[test]
    fn some_names_cannot_be_referred_to() {
        assert!(is_reference("a") && is_reference("2nd-car") && is_reference("now"));
        for text in ["5", "30s", "-1", "true", "null", "a.b", ""] {
            assert!(!is_reference(text), "{text}");
        }
    }

    #[test]
    fn text_is_cut_at_expressions_and_the_escape_is_kept_literal() {
        let pieces = parse_text("a $${b} ${c}d").unwrap();
        assert!(matches!(&pieces[..], [Piece::Literal(a), Piece::Expression(c), Piece::Literal(d)]
            if a == "a ${b} " && c.at == 10 && d == "d"));
        assert_eq!(parse_text("cost: $5").unwrap(), [Piece::Literal("cost: $5".to_owned())]);
        assert_eq!(parse_text("").unwrap(), []);
    }

    #[test]
    fn faults_point_at_the_character() {
        let at = |text: &str| parse_text(text).unwrap_err().at;
        assert_eq!(at("ab ${x"), 3);
        assert_eq!(at("${}"), 2);
        assert_eq!(at("${x y}"), 4);
        assert_eq!(at("${f(1 2)}"), 6);
        assert_eq!(at("${f(1}"), 3);
        assert_eq!(at("${f('a)}"), 4);
        assert_eq!(at("${x[1}"), 3);
        assert_eq!(at("${99999999999999999999}"), 2);
    }

    #[test]
    fn deep_nesting_is_refused_and_not_recursed_into() {
        assert!(parse_expression(&"f(".repeat(100_000)).unwrap_err().what.contains("nest"));
    }

    #[test]
    fn durations_have_units_and_bounds() {
        assert_eq!(duration("250ms"), Some(Duration::from_millis(250)));
        assert_eq!(duration("24h"), Some(Duration::from_secs(86_400)));
        for wrong in ["5", "s", "1.s", ".5s", "5d", "1e3s", "99999999h", "-1s"] {
            assert_eq!(duration(wrong), None, "{wrong}");
        }
    }
}
