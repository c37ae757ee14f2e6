//! Stock as CSV (RFC 4180): reading records with the place of each field, and making the JSON of a vehicle of them.

use serde_json::value::RawValue;

use super::json;
use crate::protocol::payload::STOCK_SHAPE;
use crate::protocol::shape::Shape;

/// Columns that a file may have.
pub(crate) const MOST_COLUMNS: usize = 256;

/// One field of a record.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Field {
    /// What it says, without quotes.
    pub(crate) text: String,
    /// Its line, from 1 on.
    pub(crate) line: usize,
    /// Where its line and the field itself begin.
    line_start: usize,
    start: usize,
    /// What is wrong with how it is written.
    pub(crate) fault: Option<&'static str>,
}

impl Field {
    /// Its place in its line, in characters from 1 on.
    pub(crate) fn column(&self, file: &str) -> usize {
        file.get(self.line_start..self.start).map_or(0, |before| before.chars().count()) + 1
    }
}

/// The records of a file, one after the other.
#[derive(Debug)]
pub(crate) struct Records<'f> {
    file: &'f str,
    at: usize,
    line: usize,
    line_start: usize,
}

impl<'f> Records<'f> {
    pub(crate) fn of(file: &'f str) -> Records<'f> {
        Records { file, at: 0, line: 1, line_start: 0 }
    }

    fn peek(&self) -> Option<u8> {
        self.file.as_bytes().get(self.at).copied()
    }

    /// Passes over a line's end and says whether there was one: a line feed, with or without a carriage return before it.
    fn end_of_line(&mut self) -> bool {
        let rest = &self.file[self.at..];
        let length = if rest.starts_with("\r\n") { 2 } else { usize::from(rest.starts_with('\n')) };
        self.at += length;
        if length > 0 {
            self.line += 1;
            self.line_start = self.at;
        }
        length > 0
    }

    fn field(&mut self) -> Field {
        let mut field = Field {
            text: String::new(),
            line: self.line,
            line_start: self.line_start,
            start: self.at,
            fault: None,
        };
        if self.peek() == Some(b'"') {
            self.quoted(&mut field);
        }
        let from = self.at;
        while !matches!(self.peek(), None | Some(b',' | b'\n')) && !self.file[self.at..].starts_with("\r\n") {
            self.at += 1;
            // The line's end is looked for at the starts of characters only.
            while !self.file.is_char_boundary(self.at) {
                self.at += 1;
            }
        }
        let plain = &self.file[from..self.at];
        if from == field.start {
            if plain.contains('"') {
                field.fault = Some("has a quote inside, so it must stand in quotes, with each quote doubled");
            }
            field.text = plain.to_owned();
        } else if !plain.is_empty() && field.fault.is_none() {
            field.fault = Some("has text after its closing quote; a quote inside is doubled");
        }
        field
    }

    /// Reads a field in quotes, up to and with the closing one.
    fn quoted(&mut self, field: &mut Field) {
        self.at += 1;
        loop {
            let rest = &self.file[self.at..];
            let Some(length) = rest.find('"') else {
                field.text.push_str(rest);
                field.fault = Some("opens a quote that is never closed");
                self.at = self.file.len();
                return;
            };
            let piece = &rest[..length];
            field.text.push_str(piece);
            self.line += piece.matches('\n').count();
            if let Some(last) = piece.rfind('\n') {
                self.line_start = self.at + last + 1;
            }
            self.at += length + 1;
            if self.peek() != Some(b'"') {
                return;
            }
            field.text.push('"');
            self.at += 1;
        }
    }
}

impl Iterator for Records<'_> {
    type Item = Vec<Field>;

    /// The next record; lines without anything are passed over.
    fn next(&mut self) -> Option<Vec<Field>> {
        while self.end_of_line() {}
        self.peek()?;
        let mut fields = vec![self.field()];
        while self.peek() == Some(b',') {
            self.at += 1;
            fields.push(self.field());
        }
        self.end_of_line();
        Some(fields)
    }
}

/// How a field becomes a value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Text,
    Number,
    Flag,
    /// A list or an object, as JSON.
    Json,
    /// The sum of the charges, as an export has it, or the list of them.
    Fees,
}

fn kind(name: &str) -> Kind {
    let Shape::Record(record) = &STOCK_SHAPE else { return Kind::Text };
    match record.fields.iter().find(|field| field.name == name).map(|field| field.shape) {
        _ if name == "fees" => Kind::Fees,
        Some(Shape::Integer { .. } | Shape::Number { .. }) => Kind::Number,
        Some(Shape::Boolean) => Kind::Flag,
        Some(Shape::List { .. } | Shape::Map(_) | Shape::Record(_)) => Kind::Json,
        _ => Kind::Text,
    }
}

/// The header of a file: the members that its columns hold.
#[derive(Debug)]
pub(crate) struct Header {
    columns: Vec<(String, Kind)>,
}

impl Header {
    pub(crate) fn of(record: Vec<Field>) -> Header {
        let column = |field: Field| {
            let kind = kind(&field.text);
            (field.text, kind)
        };
        Header { columns: record.into_iter().map(column).collect() }
    }

    pub(crate) fn len(&self) -> usize {
        self.columns.len()
    }

    /// The column of a member.
    pub(crate) fn position(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|(own, _)| own == name)
    }

    /// Replaces `out` by the JSON of a record's vehicle. An empty field is a member that the vehicle does not have. What is not
    /// of its column's kind becomes a text, which the rules of Vehicle then refuse.
    pub(crate) fn write(&self, record: &[Field], out: &mut Vec<u8>) {
        out.clear();
        for ((name, kind), field) in
            self.columns.iter().zip(record).filter(|(_, field)| !field.text.is_empty())
        {
            out.push(if out.is_empty() { b'{' } else { b',' });
            json::string(out, name);
            out.push(b':');
            let text = field.text.as_str();
            let is_json =
                |first: &[char]| text.starts_with(first) && serde_json::from_str::<&RawValue>(text).is_ok();
            const DIGITS: &[char] = &['-', '0', '1', '2', '3', '4', '5', '6', '7', '8', '9'];
            match kind {
                Kind::Number if is_json(DIGITS) => out.extend_from_slice(text.as_bytes()),
                Kind::Flag if matches!(text, "true" | "false") => out.extend_from_slice(text.as_bytes()),
                Kind::Json | Kind::Fees if is_json(&['[', '{']) => out.extend_from_slice(text.as_bytes()),
                Kind::Fees if text == "0" => out.extend_from_slice(b"[]"),
                Kind::Fees if is_json(DIGITS) => {
                    out.extend_from_slice(b"[{\"name\":\"Fees\",\"amount\":");
                    out.extend_from_slice(text.as_bytes());
                    out.extend_from_slice(b"}]");
                }
                _ => json::string(out, text),
            }
        }
        if out.is_empty() {
            out.push(b'{');
        }
        out.push(b'}');
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn read(file: &str) -> Vec<Vec<String>> {
        Records::of(file).map(|record| record.into_iter().map(|field| field.text).collect()).collect()
    }

    #[test]
    fn records_are_read_as_rfc_4180_has_them() {
        assert_eq!(
            read("a,b\r\n\n\"x \"\"y\"\"\",\"1\n2\"\n,\n"),
            [["a", "b"], ["x \"y\"", "1\n2"], ["", ""]]
        );
        assert_eq!(read("a"), [["a"]]);
        assert_eq!(read("\n\r\n"), Vec::<Vec<String>>::new());
    }

    #[test]
    fn a_field_knows_its_place_and_its_fault() {
        let file = "a,b\n\"é\n2\",x\"y,\"z\" ,\"open";
        let fields: Vec<Field> = Records::of(file).flatten().skip(2).collect();
        let places: Vec<_> = fields.iter().map(|field| (field.line, field.column(file))).collect();
        assert_eq!(places, [(2, 1), (3, 4), (3, 8), (3, 13)]);
        assert_eq!(
            fields.iter().map(|field| field.fault.is_some()).collect::<Vec<_>>(),
            [false, true, true, true]
        );
    }

    #[test]
    fn fields_become_values_of_their_kind() {
        let mut records = Records::of(
            "vin,price,fees,dc_fast_charge,features,trim,x-y\n1,20.5,0,true,\"[\"\"a\"\"]\",,z\n2,cheap,700,yes,a,T,",
        );
        let header = Header::of(records.next().unwrap());
        let mut out = Vec::new();
        let lines: Vec<String> = records
            .map(|record| {
                header.write(&record, &mut out);
                String::from_utf8(out.clone()).unwrap()
            })
            .collect();
        assert_eq!(
            lines[0],
            r#"{"vin":"1","price":20.5,"fees":[],"dc_fast_charge":true,"features":["a"],"x-y":"z"}"#
        );
        assert_eq!(
            lines[1],
            r#"{"vin":"2","price":"cheap","fees":[{"name":"Fees","amount":700}],"dc_fast_charge":"yes","features":"a","trim":"T"}"#
        );
    }

    proptest! {
        #[test]
        fn what_is_quoted_comes_back(rows in prop::collection::vec(prop::collection::vec(any::<String>(), 3), 1..4)) {
            let file: String = rows
                .iter()
                .map(|row| {
                    let fields: Vec<String> = row.iter().map(|text| format!("\"{}\"", text.replace('"', "\"\""))).collect();
                    format!("{}\n", fields.join(","))
                })
                .collect();
            prop_assert_eq!(read(&file), rows);
        }

        #[test]
        fn any_text_is_read(file: String) {
            let count: usize = Records::of(&file).map(|record| record.len()).sum();
            prop_assert!(count <= file.len() + 1);
        }
    }
}
