//! `--redact`: what the journal keeps, and what is shown of leads, without the people in it.
//!
//! Texts are kept by the name of their member: those that shopping needs (makes, VINs, conditions, times, identifiers). Every
//! other text is replaced by a mark of its type, so that a payload stays as valid as it was; the same text has the same mark
//! for as long as the process lives, so that a repetition is still known for one. What was replaced in a request is
//! replaced where the reply, or a text that is kept, quotes it. A body that is no JSON is replaced as a whole.

use std::borrow::Cow;

use crate::inventory::vin::has_valid_check_digit;
use crate::protocol::json::{Doc, Kind, Value};
use crate::protocol::write;
use crate::stable::{mix, stable_hash};

/// Texts shorter than this are not looked for in others: `a` is in every text.
const LEAST_QUOTED: usize = 3;

/// Members whose texts stay as they are: the envelopes', and what is asked of a vehicle, a list, an appointment and a consent.
const KEPT: [&str; 60] = [
    "acceptedOutputModes",
    "agent_card_url",
    "allowed_channels",
    "appointment_at",
    "appointment_type",
    "body",
    "condition",
    "contextId",
    "dealer_id",
    "driveline",
    "engine",
    "expires_at",
    "exterior_color",
    "extensions",
    "field",
    "fuel",
    "granted_at",
    "id",
    "idempotency_key",
    "interior_color",
    "inventory_date",
    "jsonrpc",
    "kind",
    "make",
    "mediaType",
    "messageId",
    "method",
    "model",
    "order",
    "preferred_contact",
    "protocolVersion",
    "role",
    "rooftop",
    "rooftops",
    "scope",
    "source_agent",
    "status",
    "stock",
    "submitted_at",
    "taskId",
    "transmission",
    "trim",
    "type",
    "updated_at",
    "uri",
    "url",
    "vehicle_id",
    "vehicle_type",
    "version",
    "vin",
    "progressToken",
    "mimeType",
    "cursor",
    "referenceTaskIds",
    "filename",
    "condition_of_wear",
    "level",
    "protocol",
    "tenant",
    "historyLength",
];
/// Where `name` is that of a program or tool, and no person's.
const NAMED: [&str; 3] = ["source_agent", "clientInfo", "params"];
/// In these even a number may be a person's.
const PERSONAL: [&str; 2] = ["customer", "address"];

/// Replaces what is personal.
#[derive(Debug, Clone, Copy)]
pub struct Redactor {
    salt: u64,
}

/// What was replaced in a request, to be replaced in what quotes it.
#[derive(Debug, Default)]
pub struct Marks(Vec<(String, String)>);

impl Marks {
    /// A text without what was replaced elsewhere.
    pub fn applied<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut text = Cow::Borrowed(text);
        for (original, mark) in &self.0 {
            if text.contains(original.as_str()) {
                text = Cow::Owned(text.replace(original.as_str(), mark));
            }
        }
        text
    }

    fn add(&mut self, original: &str, mark: &str) {
        if original.len() >= LEAST_QUOTED && self.0.iter().all(|(known, _)| known != original) {
            self.0.push((original.to_owned(), mark.to_owned()));
        }
    }

    /// Longer texts first, so that one that is part of another does not spoil it.
    fn sort(&mut self) {
        self.0.sort_by(|(a, _), (b, _)| b.len().cmp(&a.len()).then(a.cmp(b)));
    }
}

/// Where a value stands.
#[derive(Clone, Copy, Default)]
struct At<'a> {
    name: &'a str,
    parent: &'a str,
    is_personal: bool,
    is_traded_in: bool,
}

impl<'a> At<'a> {
    fn member(self, name: &'a str) -> At<'a> {
        At {
            name,
            parent: self.name,
            is_personal: self.is_personal || PERSONAL.contains(&name),
            is_traded_in: self.is_traded_in || name == "trade_in",
        }
    }

    fn keeps_text(self) -> bool {
        match self.name {
            "preferred_contact" => true,
            // Somebody's own car.
            "vin" | "stock" | "vehicle_id" if self.is_traded_in => false,
            "name" => NAMED.contains(&self.parent),
            name => !self.is_personal && KEPT.contains(&name),
        }
    }
}

impl Redactor {
    /// With marks of its own: those of another salt tell nothing about these.
    pub fn new(salt: u64) -> Redactor {
        Redactor { salt }
    }

    /// A request's body without what is personal, and what was replaced.
    pub fn request(&self, body: &[u8]) -> (Vec<u8>, Marks) {
        let mut marks = Marks::default();
        let mut doc = Doc::default();
        let Ok(root) = doc.parse(body) else { return (whole(body), marks) };
        // First all that is to be replaced, since a text before it may quote it.
        self.find(root, At::default(), &mut marks);
        marks.sort();
        let mut out = Vec::with_capacity(body.len());
        let texts = |at: At<'_>, text: &str, out: &mut Vec<u8>| match at.keeps_text() {
            true => write::string(out, &self.text(&marks.applied(text))),
            false => write::string(out, &self.mark(at.name, text)),
        };
        rewrite(root, At::default(), &texts, &mut out);
        (out, marks)
    }

    /// A text that is kept, such as an identifier or a program's name, without the e-mail addresses and telephone numbers in it.
    pub fn text<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut redacted = String::new();
        let mut done = 0;
        for (at, sign) in text.match_indices(['@', '+']) {
            let Some((from, to)) = contact_at(text, at).filter(|(from, _)| *from >= done) else { continue };
            redacted += &text[done..from];
            redacted += &self.mark(if sign == "@" { "email" } else { "phone" }, &text[from..to]);
            done = to;
        }
        match done {
            0 => Cow::Borrowed(text),
            _ => Cow::Owned(redacted + &text[done..]),
        }
    }

    /// A reply's body without what was replaced in its request.
    pub fn reply<'b>(&self, body: &'b [u8], marks: &Marks) -> Cow<'b, [u8]> {
        let Ok(text) = std::str::from_utf8(body) else { return Cow::Owned(whole(body)) };
        // As JSON writes it, which may be longer.
        let is_quoted = |original: &str| {
            let mut escaped = Vec::new();
            write::escaped(&mut escaped, original);
            memchr::memmem::find(body, &escaped).is_some() || text.contains(original)
        };
        if !marks.0.iter().any(|(original, _)| is_quoted(original)) {
            return Cow::Borrowed(body);
        }
        let mut doc = Doc::default();
        let Ok(root) = doc.parse(body) else {
            return Cow::Owned(marks.applied(text).into_owned().into_bytes());
        };
        let mut out = Vec::with_capacity(body.len());
        let texts = |_: At<'_>, text: &str, out: &mut Vec<u8>| write::string(out, &marks.applied(text));
        rewrite(root, At::default(), &texts, &mut out);
        Cow::Owned(out)
    }

    fn find(&self, value: Value<'_>, at: At<'_>, marks: &mut Marks) {
        match value.kind() {
            Kind::Record => {
                value.members().for_each(|(name, value)| self.find(value, at.member(name), marks));
            }
            Kind::List => value.items().for_each(|value| self.find(value, at, marks)),
            Kind::Text if !at.keeps_text() => {
                let text = value.as_str().unwrap_or_default();
                marks.add(text, &self.mark(at.name, text));
            }
            _ => {}
        }
    }

    /// What stands for a text. Of letters alone, where the type lets it: nobody finds a price in it.
    fn mark(&self, name: &str, text: &str) -> String {
        if text.trim().is_empty() {
            return text.to_owned();
        }
        let hash = stable_hash(self.salt, text.as_bytes());
        let letters: String = (0..12).map(|n| char::from(b'a' + ((hash >> (4 * n)) & 15) as u8)).collect();
        match name {
            "email" if text.contains('@') => format!("redacted.{letters}@example.com"),
            // 555-0100 to 555-0199 of some area: reserved for fiction.
            "phone" if text.starts_with('+') => {
                let area = 200 + 100 * (hash % 8) + 10 * ((hash >> 8) % 9) + (hash >> 16) % 10;
                format!("+1{area}55501{:02}", (hash >> 24) % 100)
            }
            "zip" if text.len() == 5 => format!("{:05}", hash % 100_000),
            "vin" if text.len() == 17 => vin_mark(hash),
            _ => {
                // That somebody can be reached by it has to be seen.
                let mut mark = format!("[redacted {letters}]");
                for (sign, name) in [('@', "email"), ('+', "phone")] {
                    let found = text.match_indices(sign).find_map(|(at, _)| contact_at(text, at));
                    if let Some((from, to)) = found {
                        mark = format!("{mark} {}", self.mark(name, &text[from..to]));
                    }
                }
                mark
            }
        }
    }
}

/// Where the e-mail address around an `@`, or the number behind a `+`, begins and ends.
fn contact_at(text: &str, at: usize) -> Option<(usize, usize)> {
    let (before, after) = (&text[..at], &text[at + 1..]);
    let run = |text: &str, is_part: fn(char) -> bool| text.find(|c| !is_part(c)).unwrap_or(text.len());
    if text.as_bytes()[at] == b'+' {
        // Eight digits at least: E.164 numbers of fewer are nobody's.
        let digits = run(after, |c| c.is_ascii_digit());
        return (digits >= 8).then_some((at, at + 1 + digits));
    }
    let is_local = |c: &char| c.is_alphanumeric() || "._%+-".contains(*c);
    let from = at - before.chars().rev().take_while(is_local).map(char::len_utf8).sum::<usize>();
    let host = run(after, |c| c.is_alphanumeric() || c == '.' || c == '-');
    (from < at && host > 0).then_some((from, at + 1 + host))
}

/// Writes a value again, its texts by `texts`, and personal numbers as 0.
fn rewrite(value: Value<'_>, at: At<'_>, texts: &impl Fn(At<'_>, &str, &mut Vec<u8>), out: &mut Vec<u8>) {
    match value.kind() {
        Kind::Record => {
            out.push(b'{');
            for (index, (name, value)) in value.members().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                write::string(out, name);
                out.push(b':');
                rewrite(value, at.member(name), texts, out);
            }
            out.push(b'}');
        }
        Kind::List => {
            out.push(b'[');
            for (index, value) in value.items().enumerate() {
                if index > 0 {
                    out.push(b',');
                }
                rewrite(value, at, texts, out);
            }
            out.push(b']');
        }
        Kind::Text => texts(at, value.as_str().unwrap_or_default(), out),
        Kind::Number if at.is_personal => out.push(b'0'),
        _ => value.write_canonical(&[], out),
    }
}

/// A VIN with a right check digit, of a maker that does not exist: no region of the world begins with 0 (ISO 3780).
fn vin_mark(hash: u64) -> String {
    const LETTERS: &[u8; 16] = b"ABCDEFGHJKLMNPRS";
    let letter = |n: u64| char::from(LETTERS[((mix(hash) >> (4 * n)) & 15) as usize]);
    let (front, back): (String, String) = ((0..5).map(letter).collect(), (5..11).map(letter).collect());
    let with = |check: char| format!("0RD{front}{check}A{back}0");
    "0123456789X".chars().map(with).find(|vin| has_valid_check_digit(vin)).unwrap_or_else(|| with('0'))
}

fn whole(body: &[u8]) -> Vec<u8> {
    format!("[redacted: {} bytes that are no JSON]", body.len()).into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    const LEAD: &str = r#"{"jsonrpc":"2.0","id":7,"method":"SendMessage","params":{"message":{"messageId":"m-1","role":"ROLE_USER",
        "parts":[{"mediaType":"application/x","data":{"type":"lead.submit.request","customer":{"first_name":"Anna","last_name":"Lee",
        "email":"anna.lee@mail.test","phone":"+16195551234","preferred_contact":"email","address":{"zip":"92101",
        "city":"San Diego","number":4711}},"message":"I am Anna Lee, call +16195551234; 24,500 is fine","idempotency_key":
        "anna.lee@mail.test-1","vehicle_of_interest":{"vin":"1M8GDM9AXKP042788","make":"Ford"},"trade_in":{"vin":
        "11111111111111111","make":"Saab","notes":"dent"},"source_agent":{"name":"bot","email":"dev@bot.test"},"extra":{"ssn":"123-45"},"privacy":{"anonymous":true},"limit":20}}]}}}"#;
    const SECRETS: [&str; 12] = [
        "Anna",
        "Lee",
        "anna.lee",
        "mail.test",
        "6195551234",
        "92101",
        "San Diego",
        "4711",
        "24,500",
        "11111111111111111",
        "dent",
        "123-45",
    ];

    #[test]
    fn people_go_and_shopping_stays() {
        let (redacted, marks) = Redactor::new(7).request(LEAD.as_bytes());
        let text = String::from_utf8(redacted.clone()).unwrap();
        for secret in SECRETS.iter().chain(&["dev@bot"]) {
            assert!(!text.contains(secret), "{secret} in {text}");
        }
        for kept in [
            "\"id\":7",
            "\"anonymous\":true",
            "\"limit\":20",
            "SendMessage",
            "1M8GDM9AXKP042788",
            "Ford",
            "Saab",
            "\"bot\"",
            "\"email\"",
            "m-1",
        ] {
            assert!(text.contains(kept), "{kept} not in {text}");
        }
        let value: serde_json::Value = serde_json::from_slice(&redacted).unwrap();
        let payload = &value["params"]["message"]["parts"][0]["data"];
        assert!(payload["customer"]["email"].as_str().unwrap().ends_with("@example.com"));
        assert!(payload["customer"]["phone"].as_str().unwrap().starts_with("+1"));
        assert_eq!(payload["customer"]["address"]["zip"].as_str().unwrap().len(), 5);
        assert!(has_valid_check_digit(payload["trade_in"]["vin"].as_str().unwrap()));
        let quoting = r#"{"error":"\"anna.lee@mail.test\" of Anna is no address"}"#;
        let reply = Redactor::new(7).reply(quoting.as_bytes(), &marks).into_owned();
        assert!(!String::from_utf8_lossy(&reply).contains("nna"), "{}", String::from_utf8_lossy(&reply));
        let listing = br#"{"data":{"vehicles":[{"vin":"1M8GDM9AXKP042788"}]}}"#;
        assert!(matches!(Redactor::new(7).reply(listing, &marks), Cow::Borrowed(_)));
    }

    #[test]
    fn one_text_has_one_mark_and_another_salt_another() {
        let mark = |salt, text: &str| Redactor::new(salt).mark("message", text);
        assert_eq!(mark(1, "a"), mark(1, "a"));
        assert_ne!(mark(1, "a"), mark(1, "b"));
        assert_ne!(mark(1, "a"), mark(2, "a"));
        assert!(!mark(1, "24500").chars().any(|c| c.is_ascii_digit()));
        let reachable = mark(1, "I am ana@fernsby.test or +16195551234");
        assert!(reachable.ends_with("@example.com") || reachable.contains("@example.com +1"), "{reachable}");
    }

    #[test]
    fn addresses_and_numbers_are_found_in_identifiers() {
        let redactor = Redactor::new(7);
        let told = redactor.text("ctx-ana@fernsby.test/+16195551234!x+1+2,\u{e9}@b").into_owned();
        for gone in ["ana", "fernsby", "6195551234", "\u{e9}@"] {
            assert!(!told.contains(gone), "{told}");
        }
        assert!(told.contains("!x+1+2,"), "{told}");
        for kept in ["ctx_1", "a + b", "@", "a@", "@b", "+1234567"] {
            assert!(matches!(redactor.text(kept), Cow::Borrowed(_)), "{kept}");
        }
    }

    #[test]
    fn what_is_no_json_goes_as_a_whole() {
        for body in ["{\"email\":\"anna@mail.test\"", "anna", "{\"a\":\"anna\",\"a\":1}"] {
            let (redacted, _) = Redactor::new(1).request(body.as_bytes());
            assert!(!String::from_utf8(redacted).unwrap().contains("anna"), "{body}");
        }
    }
}
