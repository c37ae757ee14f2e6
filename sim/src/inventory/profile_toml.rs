//! Reading a dealer profile: every fault is reported, with its place, in one go.

use std::ops::Range;

use jiff::civil::Time;
use jiff::tz::TimeZone;
use toml::Spanned;
use toml::de::{DeArray, DeTable, DeValue};

use super::profile::{
    Address, Contact, DAYS, Fee, Geo, Hours, Profile, ProfileError, ProfileFault, Rooftop, Schedule,
    WeeklyHours,
};

/// More faults than this are not listed one by one.
const MOST_FAULTS: usize = 100;

/// Reads a profile. `file` is how messages call it.
pub(crate) fn read(file: &str, text: &str) -> Result<Profile, ProfileError> {
    let mut reader = Reader { file, text, faults: Vec::new() };
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in &errors {
        reader.fault(error.span().unwrap_or(0..0), error.message().to_owned());
    }
    // A file that is no TOML is not looked into: what it lacks is more likely misread than missing.
    let profile = if errors.is_empty() { reader.profile(&table) } else { None };
    reader.faults.sort();
    match profile {
        Some(profile) if reader.faults.is_empty() => Ok(profile),
        _ => Err(ProfileError { faults: reader.faults }),
    }
}

type Value<'i> = Spanned<DeValue<'i>>;
type Table<'i> = Spanned<DeTable<'i>>;

struct Reader<'t> {
    file: &'t str,
    text: &'t str,
    faults: Vec<ProfileFault>,
}

impl Reader<'_> {
    fn fault(&mut self, span: Range<usize>, problem: String) {
        if self.faults.len() >= MOST_FAULTS {
            return;
        }
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |newline| newline + 1);
        self.faults.push(ProfileFault {
            file: self.file.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
            problem,
        });
    }

    fn unknown(&mut self, key: &Spanned<toml::de::DeString<'_>>, allowed: &str) {
        self.fault(key.span(), format!("unknown key `{}`; known are {allowed}", key.get_ref()));
    }

    fn missing(&mut self, span: Range<usize>, what: &str) {
        self.fault(span.start..span.start, format!("`{what}` is missing"));
    }

    fn text(&mut self, value: &Value<'_>) -> Option<String> {
        match value.get_ref() {
            DeValue::String(text) if !text.trim().is_empty() => Some(text.to_string()),
            DeValue::String(_) => self.wrong(value, "a text that is not empty"),
            _ => self.wrong(value, "a text in quotes"),
        }
    }

    fn wrong<T>(&mut self, value: &Value<'_>, expected: &str) -> Option<T> {
        self.fault(value.span(), format!("expected {expected}"));
        None
    }

    /// A text that `check` accepts; `expected` says what that is.
    fn checked(&mut self, value: &Value<'_>, expected: &str, check: impl Fn(&str) -> bool) -> Option<String> {
        let text = self.text(value)?;
        if check(&text) { Some(text) } else { self.wrong(value, expected) }
    }

    fn array<T>(
        &mut self,
        value: &Value<'_>,
        expected: &str,
        mut item: impl FnMut(&mut Self, &Value<'_>) -> Option<T>,
    ) -> Vec<T> {
        let DeValue::Array(array) = value.get_ref() else {
            self.wrong::<()>(value, expected);
            return Vec::new();
        };
        let array: &DeArray<'_> = array;
        array.iter().filter_map(|value| item(self, value)).collect()
    }

    /// Calls `member` for each key of a table; it answers whether it knows the key.
    fn members(
        &mut self,
        value: &Value<'_>,
        allowed: &str,
        mut member: impl FnMut(&mut Self, &str, &Value<'_>) -> bool,
    ) {
        let DeValue::Table(table) = value.get_ref() else {
            self.wrong::<()>(value, &format!("a table with {allowed}"));
            return;
        };
        for (key, value) in table {
            if !member(self, key.get_ref(), value) {
                self.unknown(key, allowed);
            }
        }
    }

    fn profile(&mut self, table: &Table<'_>) -> Option<Profile> {
        let (mut dealer_id, mut name, mut welcome_message) = (None, None, None);
        let mut rooftops = None;
        for (key, value) in table.get_ref() {
            match key.get_ref().as_ref() {
                "dealer_id" => {
                    dealer_id = Some(self.checked(value, "letters, digits, `-` and `_` only", |text| {
                        text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_'))
                    }));
                }
                "name" => name = Some(self.text(value)),
                "welcome_message" => welcome_message = self.text(value),
                "rooftop" => {
                    rooftops = Some(self.array(value, "one `[[rooftop]]` or more", Reader::rooftop));
                }
                _ => self.unknown(key, "dealer_id, name, welcome_message, rooftop"),
            }
        }
        for (what, given) in [
            ("dealer_id", dealer_id.is_some()),
            ("name", name.is_some()),
            ("[[rooftop]]", rooftops.is_some()),
        ] {
            if !given {
                self.missing(0..0, what);
            }
        }
        let rooftops = rooftops?;
        if rooftops.is_empty() && self.faults.is_empty() {
            self.missing(0..0, "[[rooftop]]");
        }
        for (index, (rooftop, span)) in rooftops.iter().enumerate() {
            if rooftops[..index].iter().any(|(other, _)| other.name == rooftop.name) {
                let problem =
                    format!("a second rooftop is named {:?}; vehicles tell rooftops by name", rooftop.name);
                self.fault(span.clone(), problem);
            }
        }
        Some(Profile {
            dealer_id: dealer_id??,
            name: name??,
            welcome_message,
            rooftops: rooftops.into_iter().map(|(rooftop, _)| rooftop).collect(),
        })
    }

    fn rooftop(&mut self, value: &Value<'_>) -> Option<(Rooftop, Range<usize>)> {
        let mut name = None;
        let mut rooftop = Rooftop {
            name: String::new(),
            legal_name: None,
            website: None,
            geo: None,
            emails: Vec::new(),
            phones: Vec::new(),
            address: None,
            schedules: Vec::new(),
            timezone: None,
            notes: None,
            fees: None,
            capabilities: Vec::new(),
        };
        let allowed = "name, legal_name, website, geo, emails, phones, address, schedules, timezone, notes, fees, capabilities";
        self.members(value, allowed, |reader, key, value| {
            match key {
                "name" => name = Some(reader.text(value)),
                "legal_name" => rooftop.legal_name = reader.text(value),
                "website" => {
                    rooftop.website =
                        reader.checked(value, "an absolute URI such as \"https://dealer.example\"", |text| {
                            fluent_uri::Uri::parse(text).is_ok()
                        });
                }
                "geo" => rooftop.geo = reader.geo(value),
                "emails" => {
                    rooftop.emails = reader.contacts(value, "a mail address", |text| {
                        text.split_once('@')
                            .is_some_and(|(user, host)| !user.is_empty() && host.contains('.'))
                    });
                }
                "phones" => {
                    rooftop.phones =
                        reader.contacts(value, "an E.164 number such as \"+16195550110\"", is_e164);
                }
                "address" => rooftop.address = Some(reader.address(value)),
                "schedules" => rooftop.schedules = reader.schedules(value),
                "timezone" => rooftop.timezone = reader.zone(value),
                "notes" => rooftop.notes = reader.text(value),
                "fees" => rooftop.fees = Some(reader.fees(value)),
                "capabilities" => rooftop.capabilities = reader.array(value, "a list of tags", Reader::text),
                _ => return false,
            }
            true
        });
        if name.is_none() {
            self.missing(value.span(), "name");
        }
        rooftop.name = name??;
        Some((rooftop, value.span()))
    }

    fn geo(&mut self, value: &Value<'_>) -> Option<Geo> {
        let (mut latitude, mut longitude) = (None, None);
        self.members(value, "latitude, longitude", |reader, key, value| {
            match key {
                "latitude" => latitude = reader.degrees(value, 90.0),
                "longitude" => longitude = reader.degrees(value, 180.0),
                _ => return false,
            }
            true
        });
        match (latitude, longitude) {
            (Some(latitude), Some(longitude)) => Some(Geo { latitude, longitude }),
            _ => self.wrong(value, "both `latitude` and `longitude`"),
        }
    }

    fn degrees(&mut self, value: &Value<'_>, most: f64) -> Option<f64> {
        let degrees = match value.get_ref() {
            DeValue::Float(float) => float.as_str().parse::<f64>().ok(),
            DeValue::Integer(integer) => integer.as_str().parse::<f64>().ok(),
            _ => None,
        };
        match degrees.filter(|degrees| degrees.abs() <= most) {
            Some(degrees) => Some(degrees),
            None => self.wrong(value, &format!("degrees from -{most} to {most}")),
        }
    }

    fn contacts(
        &mut self,
        value: &Value<'_>,
        expected: &str,
        check: impl Fn(&str) -> bool + Copy,
    ) -> Vec<Contact> {
        self.array(value, "a list of { name, value }", |reader, item| {
            let (mut name, mut address) = (None, None);
            reader.members(item, "name, value", |reader, key, value| {
                match key {
                    "name" => name = reader.text(value),
                    "value" => address = Some(reader.checked(value, expected, check)),
                    _ => return false,
                }
                true
            });
            if address.is_none() {
                reader.missing(item.span(), "value");
            }
            Some(Contact { name, value: address?? })
        })
    }

    fn address(&mut self, value: &Value<'_>) -> Address {
        let mut address = Address::default();
        let allowed = "address_line_1, address_line_2, city, state, zip, country";
        self.members(value, allowed, |reader, key, value| {
            let member = match key {
                "address_line_1" => &mut address.address_line_1,
                "address_line_2" => &mut address.address_line_2,
                "city" => &mut address.city,
                "state" => &mut address.state,
                "zip" => &mut address.zip,
                "country" => &mut address.country,
                _ => return false,
            };
            *member = reader.text(value);
            true
        });
        address
    }

    fn schedules(&mut self, value: &Value<'_>) -> Vec<Schedule> {
        let mut schedules = Vec::new();
        self.members(value, "one table per department", |reader, name, value| {
            let mut hours = WeeklyHours::default();
            reader.members(value, "monday to sunday", |reader, key, value| {
                let Some(day) = DAYS.iter().position(|day| *day == key) else { return false };
                hours.0[day] = reader.hours(value);
                true
            });
            schedules.push(Schedule { name: name.to_owned(), hours });
            true
        });
        schedules
    }

    fn hours(&mut self, value: &Value<'_>) -> Option<Hours> {
        let expected = "\"closed\" or hours such as \"09:00-18:00\", opening before they close";
        let text = self.text(value)?;
        if text == "closed" {
            return None;
        }
        let hours = text
            .split_once('-')
            .and_then(|(open, close)| Some(Hours { open: clock(open)?, close: clock(close)? }));
        match hours.filter(|hours| hours.open < hours.close) {
            Some(hours) => Some(hours),
            None => self.wrong(value, expected),
        }
    }

    fn zone(&mut self, value: &Value<'_>) -> Option<TimeZone> {
        let name = self.text(value)?;
        match TimeZone::get(&name).ok().filter(|zone| zone.iana_name().is_some()) {
            Some(zone) => Some(zone),
            None => self.wrong(value, "an IANA time zone such as \"America/Denver\""),
        }
    }

    fn fees(&mut self, value: &Value<'_>) -> Vec<Fee> {
        let mut seen: Vec<String> = Vec::new();
        self.array(value, "a list of { name, amount }", |reader, item| {
            let (mut name, mut amount) = (None, None);
            reader.members(item, "name, amount", |reader, key, value| {
                match key {
                    "name" => {
                        name = Some(reader.checked(value, "a name of 1 to 120 characters", |text| {
                            text.chars().count() <= 120
                        }));
                    }
                    "amount" => amount = Some(reader.amount(value)),
                    _ => return false,
                }
                true
            });
            for (what, given) in [("name", name.is_some()), ("amount", amount.is_some())] {
                if !given {
                    reader.missing(item.span(), what);
                }
            }
            let fee = Fee { name: name??, amount: amount?? };
            if seen.contains(&fee.name) {
                reader.fault(item.span(), format!("a second fee is named {:?}; names must differ", fee.name));
            }
            seen.push(fee.name.clone());
            Some(fee)
        })
    }

    fn amount(&mut self, value: &Value<'_>) -> Option<u32> {
        let amount = match value.get_ref() {
            DeValue::Integer(integer) if integer.radix() == 10 => integer.as_str().parse::<u32>().ok(),
            _ => None,
        };
        // Fees are added to prices, which are 32 bits wide.
        match amount.filter(|&amount| amount <= 1_000_000) {
            Some(amount) => Some(amount),
            None => self.wrong(value, "whole USD from 0 to 1000000"),
        }
    }
}

fn is_e164(text: &str) -> bool {
    let Some(digits) = text.strip_prefix('+') else { return false };
    (2..=15).contains(&digits.len())
        && !digits.starts_with('0')
        && digits.bytes().all(|byte| byte.is_ascii_digit())
}

/// `HH:MM`, both of two digits.
fn clock(text: &str) -> Option<Time> {
    let (hour, minute) = text.trim().split_once(':')?;
    let number = |text: &str| (text.len() == 2).then(|| text.parse::<i8>().ok()).flatten();
    Time::new(number(hour)?, number(minute)?, 0, 0).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn faults(text: &str) -> Vec<String> {
        read("p.toml", text).unwrap_err().faults.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn the_least_profile() {
        let profile = read("p.toml", "dealer_id = \"d\"\nname = \"D\"\n[[rooftop]]\nname = \"R\"\n").unwrap();
        assert_eq!(profile.information(), r#"{"name":"D","rooftops":[{"name":"R"}]}"#);
        assert_eq!(profile.rooftops[0].zone(), TimeZone::UTC);
    }

    #[test]
    fn every_fault_is_reported_with_its_place() {
        let text = r#"dealer_id = "two words"
nmae = "D"
[[rooftop]]
name = "R"
website = "no uri"
geo = { latitude = 91, longitude = "x" }
emails = [{ name = "Sales" }]
phones = [{ value = "555" }]
timezone = "Mars/Olympus"
fees = [{ name = "Doc", amount = 1 }, { name = "Doc", amount = -1 }]
schedules = { sales = { monday = "18:00-09:00", funday = "closed" } }
[[rooftop]]
legal_name = ""
"#;
        let faults = faults(text);
        let expected = [
            "p.toml:1:1: `name` is missing",
            "p.toml:1:13: expected letters",
            "p.toml:2:1: unknown key `nmae`; known are dealer_id, name",
            "p.toml:5:11: expected an absolute URI",
            "p.toml:6:7: expected both",
            "p.toml:6:20: expected degrees from -90 to 90",
            "p.toml:6:36: expected degrees from -180 to 180",
            "p.toml:7:11: `value` is missing",
            "p.toml:8:21: expected an E.164 number",
            "p.toml:9:12: expected an IANA time zone",
            "p.toml:10:64: expected whole USD",
            "p.toml:11:34: expected \"closed\" or hours",
            "p.toml:11:49: unknown key `funday`; known are monday to sunday",
            "p.toml:12:1: `name` is missing",
            "p.toml:13:14: expected a text that is not empty",
        ];
        assert_eq!(faults.len(), expected.len(), "{faults:#?}");
        for (fault, expected) in faults.iter().zip(expected) {
            assert!(fault.starts_with(expected), "{fault} should start with {expected}");
        }
    }

    #[test]
    fn text_that_is_no_toml_is_no_panic() {
        assert_eq!(faults("").len(), 3);
        assert!(faults("name = \"ü\nx = [[[").iter().all(|fault| fault.starts_with("p.toml:")));
        assert!(faults("rooftop = 3\nname = 4\ndealer_id = []").len() >= 3);
    }

    #[test]
    fn names_of_rooftops_differ() {
        let faults =
            faults("dealer_id = \"d\"\nname = \"D\"\n[[rooftop]]\nname = \"R\"\n[[rooftop]]\nname = \"R\"\n");
        assert_eq!(faults.len(), 1);
        assert!(faults[0].starts_with("p.toml:5:1: a second rooftop is named \"R\""), "{faults:?}");
    }
}
