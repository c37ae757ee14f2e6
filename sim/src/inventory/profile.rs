//! Who the dealer is: the group, its rooftops, their hours and contacts. A profile comes from a TOML file; one is built in.

use jiff::civil::{Time, Weekday};
use jiff::tz::TimeZone;
use serde::ser::{SerializeMap, SerializeSeq};
use serde::{Serialize, Serializer};

use super::profile_toml;

/// A dealer group.
#[derive(Debug, Clone, Serialize)]
pub struct Profile {
    /// What `Vehicle.dealer_id` says: letters, digits, `-` and `_`.
    #[serde(skip)]
    pub dealer_id: String,
    /// The group's name.
    pub name: String,
    /// A greeting for buyers.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub welcome_message: Option<String>,
    /// At least one; their names differ.
    pub rooftops: Vec<Rooftop>,
}

/// One location of the dealer (AAP digest, section d.1).
#[derive(Debug, Clone, Serialize)]
pub struct Rooftop {
    /// What `Vehicle.rooftop` says.
    pub name: String,
    /// The registered business name.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub legal_name: Option<String>,
    /// An absolute URI.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub website: Option<String>,
    /// Where it is.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub geo: Option<Geo>,
    /// Addresses for mail, each with the department's name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub emails: Vec<Contact>,
    /// E.164 telephone numbers, each with the department's name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub phones: Vec<Contact>,
    /// The postal address.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address: Option<Address>,
    /// Weekly hours of each department, by its name.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub schedules: Vec<Schedule>,
    /// The zone of the schedules, by its IANA name.
    #[serde(serialize_with = "zone_name", skip_serializing_if = "Option::is_none")]
    pub timezone: Option<TimeZone>,
    /// Free text.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub notes: Option<String>,
    /// Charges on every sale: `None` is not disclosed, none at all is an empty list (AAP digest, section d.1).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub fees: Option<Vec<Fee>>,
    /// Free tags, such as `sales`, `service`, `test_drive` or `motorcycle_sales`.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub capabilities: Vec<String>,
}

impl Rooftop {
    /// Whether the rooftop says that it can do `tag`.
    pub fn can(&self, tag: &str) -> bool {
        self.capabilities.iter().any(|capability| capability == tag)
    }

    /// The hours of a department.
    pub fn schedule(&self, name: &str) -> Option<&Schedule> {
        self.schedules.iter().find(|schedule| schedule.name == name)
    }

    /// The zone in which its hours are meant; UTC where the profile names none.
    pub fn zone(&self) -> TimeZone {
        self.timezone.clone().unwrap_or(TimeZone::UTC)
    }

    /// The telephone number of a department, else the first one.
    pub fn phone(&self, department: &str) -> Option<&str> {
        let named = self
            .phones
            .iter()
            .find(|phone| phone.name.as_deref().is_some_and(|name| name.eq_ignore_ascii_case(department)));
        named.or(self.phones.first()).map(|phone| phone.value.as_str())
    }
}

/// A point on the earth, in degrees.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Geo {
    /// -90 to 90.
    pub latitude: f64,
    /// -180 to 180.
    pub longitude: f64,
}

/// A mail address or telephone number.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Contact {
    /// The department.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub name: Option<String>,
    /// The address or number.
    pub value: String,
}

/// A postal address, as much of it as is given.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[allow(missing_docs, reason = "each is the member of Address of that name (AAP digest, section d.1)")]
pub struct Address {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address_line_1: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub address_line_2: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub city: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub state: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub zip: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub country: Option<String>,
}

/// A charge in whole USD (AAP digest, section d.6).
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Fee {
    /// 1 to 120 characters, one of them not blank; unique within a list.
    pub name: String,
    /// Whole USD.
    pub amount: u32,
}

/// The weekly hours of one department.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Schedule {
    /// The department, such as `sales` or `service`.
    pub name: String,
    /// Its hours.
    #[serde(rename = "value")]
    pub hours: WeeklyHours,
}

/// Hours from Monday to Sunday; `None` is closed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct WeeklyHours(pub [Option<Hours>; 7]);

impl WeeklyHours {
    /// The hours of one day of the week.
    pub fn on(&self, day: Weekday) -> Option<Hours> {
        self.0[day.to_monday_zero_offset() as usize]
    }
}

/// The hours of one day, in the rooftop's time zone. It opens before it closes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[allow(missing_docs, reason = "said by their names")]
pub struct Hours {
    pub open: Time,
    pub close: Time,
}

/// The days of the week as they stand in a schedule, from Monday on.
pub(crate) const DAYS: [&str; 7] =
    ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"];

impl Serialize for WeeklyHours {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(Some(DAYS.len()))?;
        for (day, hours) in DAYS.iter().zip(self.0) {
            map.serialize_entry(day, &hours)?;
        }
        map.end()
    }
}

impl Serialize for Hours {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let clock = |time: Time| format!("{:02}:{:02}", time.hour(), time.minute());
        let mut map = serializer.serialize_map(Some(2))?;
        map.serialize_entry("open", &clock(self.open))?;
        map.serialize_entry("close", &clock(self.close))?;
        map.end()
    }
}

fn zone_name<S: Serializer>(zone: &Option<TimeZone>, serializer: S) -> Result<S::Ok, S::Error> {
    match zone.as_ref().and_then(TimeZone::iana_name) {
        Some(name) => serializer.serialize_str(name),
        None => serializer.serialize_seq(Some(0))?.end(),
    }
}

/// A profile that cannot be used: everything that is wrong with it.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", .faults.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
pub struct ProfileError {
    /// In the order of the file; at least one.
    pub faults: Vec<ProfileFault>,
}

/// One thing that is wrong with a profile.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, thiserror::Error)]
#[error("{file}:{line}:{column}: {problem}")]
pub struct ProfileFault {
    /// The file's name, as it was given.
    pub file: String,
    /// From 1 on.
    pub line: usize,
    /// From 1 on, in characters.
    pub column: usize,
    /// What is wrong, and what is allowed.
    pub problem: String,
}

impl Profile {
    /// Reads a profile. `file` is how messages call it.
    ///
    /// # Errors
    ///
    /// All faults at once, each with its place in the file.
    pub fn parse(file: &str, text: &str) -> Result<Profile, ProfileError> {
        profile_toml::read(file, text)
    }

    /// The dealer that is played when no profile is given.
    ///
    /// # Errors
    ///
    /// None, unless the built-in file was edited wrongly.
    pub fn built_in() -> Result<Profile, ProfileError> {
        let file = include_str!("../../../data/profiles/harbor.toml");
        Profile::parse("data/profiles/harbor.toml", file)
    }

    /// The rooftop of a name.
    pub fn rooftop(&self, name: &str) -> Option<&Rooftop> {
        self.rooftops.iter().find(|rooftop| rooftop.name == name)
    }

    /// The `data` object of `dealer.information.response`, ready to send.
    pub fn information(&self) -> String {
        // Strings, numbers and lists only: nothing in a profile can fail to be written.
        serde_json::to_string(self).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_built_in_profile_uses_reserved_names_only() {
        let profile = Profile::built_in().unwrap();
        assert!(profile.rooftops.len() >= 3);
        for rooftop in &profile.rooftops {
            let host = rooftop.website.as_deref().unwrap().strip_prefix("https://").unwrap();
            assert!(host.ends_with(".example"), "{host}");
            assert!(rooftop.emails.iter().all(|email| email.value.ends_with(".example")));
            assert!(!rooftop.phones.is_empty());
            for phone in &rooftop.phones {
                assert!(
                    phone.value.starts_with("+1") && phone.value[5..].starts_with("55501"),
                    "{}",
                    phone.value
                );
                assert_eq!(phone.value.len(), 12);
            }
            assert!(rooftop.schedule("sales").is_some() && rooftop.schedule("service").is_some());
            assert!(rooftop.legal_name.is_some() && rooftop.geo.is_some() && rooftop.address.is_some());
            assert!(rooftop.timezone.is_some() && rooftop.notes.is_some() && rooftop.fees.is_some());
            assert!(rooftop.can("sales"));
        }
    }

    #[test]
    fn the_information_object_has_the_shape_of_the_digest() {
        let profile = Profile::built_in().unwrap();
        let information: serde_json::Value = serde_json::from_str(&profile.information()).unwrap();
        assert_eq!(information["name"], "Harbor Motor Group");
        assert!(information.get("dealer_id").is_none(), "the object is closed");
        let rooftop = &information["rooftops"][0];
        assert_eq!(rooftop["timezone"], "America/Los_Angeles");
        assert_eq!(rooftop["schedules"][0]["name"], "sales");
        assert_eq!(rooftop["schedules"][0]["value"]["monday"]["open"], "09:00");
        assert_eq!(rooftop["schedules"][1]["value"]["sunday"], serde_json::Value::Null);
        assert_eq!(rooftop["schedules"][1]["value"].as_object().unwrap().len(), 7);
        assert_eq!(
            information["rooftops"][2]["fees"],
            serde_json::json!([]),
            "none, which is not the same as not disclosed"
        );
    }

    #[test]
    fn departments_are_reached() {
        let profile = Profile::built_in().unwrap();
        let rooftop = profile.rooftop("Harbor Motors San Diego").unwrap();
        assert_eq!(rooftop.phone("service"), Some("+16195550111"));
        assert_eq!(rooftop.phone("parts"), Some("+16195550110"));
        let service = rooftop.schedule("service").unwrap();
        assert_eq!(service.hours.on(Weekday::Sunday), None);
        assert_eq!(service.hours.on(Weekday::Saturday).unwrap().open, Time::constant(8, 0, 0, 0));
    }
}
