//! The other dealers of a process: profiles made from one, each under a name of its own. A number gives the same name under
//! every seed, so that a dealer's path stays what it is.

use super::profile::Profile;

/// First and second words of names. Together they make more names than a process may have dealers.
const FIRST: [&str; 40] = [
    "Alder", "Amber", "Aspen", "Birch", "Bluff", "Canyon", "Cedar", "Clear", "Copper", "Cypress", "Eagle",
    "Elm", "Falcon", "Fox", "Golden", "Granite", "Hazel", "Heron", "Iron", "Juniper", "Laurel", "Linden",
    "Maple", "Mesa", "North", "Oak", "Osprey", "Pine", "Prairie", "Quail", "Red", "Sage", "Sierra", "Silver",
    "Spruce", "Stone", "Summit", "Sunset", "Walnut", "Willow",
];
const SECOND: [&str; 32] = [
    "Bay", "Bend", "Bridge", "Brook", "Coast", "Cove", "Creek", "Crossing", "Dale", "Falls", "Field", "Ford",
    "Gate", "Glen", "Grove", "Haven", "Hill", "Hollow", "Island", "Lake", "Meadow", "Park", "Pass", "Point",
    "Ridge", "River", "Rock", "Run", "Shore", "Springs", "Valley", "View",
];
/// Shares no divisor with the number of names, so that numbers that follow one another get names that look unlike, and each
/// its own.
const STEP: usize = 977;
/// Letters of a name in an id.
const MOST_LETTERS: usize = 48;

/// The two words that stand for the dealer of a number.
fn brand(number: u16) -> [&'static str; 2] {
    let place = usize::from(number) * STEP % (FIRST.len() * SECOND.len());
    [FIRST[place / SECOND.len()], SECOND[place % SECOND.len()]]
}

impl Profile {
    /// The profile of dealer `number`, counted from 0: this one, and then dealers like it under names of their own, in
    /// which other words stand for the first one of this one's name, in web and mail addresses, too. The id is the name and
    /// the number counted from 1: `cedar-ridge-motor-group-2`.
    #[must_use]
    pub fn sibling(&self, number: u16) -> Profile {
        let mut profile = self.clone();
        if number == 0 {
            return profile;
        }
        let old = first_word(&self.name);
        let [first, second] = brand(number);
        let (name, host) = (format!("{first} {second}"), format!("{first}-{second}").to_lowercase());
        let renamed = |text: &mut String| *text = replace_words(text, old, &name, false);
        let rehosted = |text: &mut String| *text = replace_words(text, &old.to_lowercase(), &host, true);
        renamed(&mut profile.name);
        profile.welcome_message.iter_mut().for_each(renamed);
        for rooftop in &mut profile.rooftops {
            renamed(&mut rooftop.name);
            rooftop.legal_name.iter_mut().for_each(renamed);
            rooftop.website.iter_mut().for_each(rehosted);
            rooftop.emails.iter_mut().for_each(|email| rehosted(&mut email.value));
        }
        profile.dealer_id = self.sibling_id(number);
        profile
    }

    /// The id of dealer `number`, as [`sibling`](Profile::sibling) gives it.
    pub fn sibling_id(&self, number: u16) -> String {
        if number == 0 {
            return self.dealer_id.clone();
        }
        let name = replace_words(&self.name, first_word(&self.name), &brand(number).join(" "), false);
        let mut id = slug(&name);
        id.push_str(&format!("-{}", u32::from(number) + 1));
        // A profile may have taken such an id for itself.
        if id == self.dealer_id { id + "-b" } else { id }
    }
}

fn first_word(name: &str) -> &str {
    name.split_whitespace().next().unwrap_or_default()
}

/// Puts `new` in the place of `old` wherever that is a whole word. In addresses a hyphen is part of the word.
fn replace_words(text: &str, old: &str, new: &str, in_address: bool) -> String {
    let inside = |letter: char| letter.is_alphanumeric() || (in_address && letter == '-');
    let mut out = String::with_capacity(text.len() + new.len());
    let mut rest = text;
    while let Some(at) = rest.find(old).filter(|_| !old.is_empty()) {
        let (before, behind) = (&rest[..at], &rest[at + old.len()..]);
        // What was copied already may end in a letter of the same word.
        let begins = !before.chars().next_back().or_else(|| out.chars().next_back()).is_some_and(inside);
        let whole = begins && !behind.chars().next().is_some_and(inside);
        out.push_str(before);
        out.push_str(if whole { new } else { old });
        rest = behind;
    }
    out + rest
}

/// A name as it stands in an id: lower-case ASCII letters and digits, what is between them as one hyphen.
fn slug(name: &str) -> String {
    let words = name.split(|letter: char| !letter.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    let mut slug = words.collect::<Vec<_>>().join("-").to_ascii_lowercase();
    slug.truncate(MOST_LETTERS);
    slug.trim_end_matches('-').to_owned()
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_number_has_a_name_and_an_id_of_its_own() {
        let profile = Profile::built_in().unwrap();
        let (mut names, mut ids) = (HashSet::new(), HashSet::new());
        for number in 0..1000 {
            let sibling = profile.sibling(number);
            assert_eq!(sibling.dealer_id, profile.sibling_id(number));
            assert!(ids.insert(sibling.dealer_id.clone()) && names.insert(sibling.name), "{number}");
            let lawful = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
            assert!(sibling.dealer_id.bytes().all(lawful), "{}", sibling.dealer_id);
        }
        assert_eq!(profile.sibling_id(0), "harbor");
        assert_eq!(profile.sibling_id(1), "red-hollow-motor-group-2", "pinned: paths and rules name it");
    }

    #[test]
    fn a_sibling_says_its_own_name_everywhere() {
        let profile = Profile::built_in().unwrap();
        let sibling = profile.sibling(1);
        assert_eq!(sibling.name, "Red Hollow Motor Group");
        assert_eq!(sibling.rooftops[0].name, "Red Hollow Motors San Diego");
        assert_eq!(sibling.rooftops[0].website.as_deref(), Some("https://sandiego.red-hollow.example"));
        assert_eq!(sibling.rooftops[0].emails[0].value, "sales@sandiego.red-hollow.example");
        assert!(!sibling.information().contains("Harbor Motor"), "{}", sibling.information());
        assert_eq!(sibling.rooftops[0].address, profile.rooftops[0].address);
    }

    #[test]
    fn only_whole_words_are_replaced() {
        let replaced = |text| replace_words(text, "The", "Oak Hill", false);
        assert_eq!(
            replaced("The Theory of The Car, There-The"),
            "Oak Hill Theory of Oak Hill Car, There-Oak Hill"
        );
        assert_eq!(replaced("TheThe"), "TheThe");
        assert_eq!(
            replace_words("https://the-car.the.example/the", "the", "a-b", true),
            "https://the-car.a-b.example/a-b"
        );
        assert_eq!(replace_words("x", "", "y", false), "x");
        assert_eq!(slug("Ünï  & Söhne -- GmbH"), "n-s-hne-gmbh");
    }
}
