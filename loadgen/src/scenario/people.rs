//! People who do not exist, their consent, and VINs that no car has.

use fake::Fake;
use fake::faker::name::raw::{FirstName, LastName};
use fake::locales::EN;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::draw::Draws;

/// How a buyer wants to be reached: `preferred_contact` of a Customer (AAP digest, d.7).
pub(crate) const PREFERENCES: [&str; 4] = ["email", "phone", "sms", "any"];
/// What a consent can allow: `allowed_channels` of a ConsentGrant. The first three of [`PREFERENCES`].
pub(crate) const CHANNELS: [&str; 3] = ["email", "phone", "sms"];

pub(crate) fn first_name(draws: &mut Draws) -> String {
    FirstName(EN).fake_with_rng(draws.rng())
}

pub(crate) fn last_name(draws: &mut Draws) -> String {
    LastName(EN).fake_with_rng(draws.rng())
}

/// An address at example.com (RFC 2606: nobody reads it). The number keeps buyers of one name apart, since a dealer takes
/// two leads of one customer within a day as duplicates.
fn email_of(first: &str, last: &str, draws: &mut Draws) -> String {
    let word = |name: &str| -> String {
        name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
    };
    format!("{}.{}.{:08}@example.com", word(first), word(last), draws.below(100_000_000))
}

pub(crate) fn email(draws: &mut Draws) -> String {
    let (first, last) = (first_name(draws), last_name(draws));
    email_of(&first, &last, draws)
}

/// A telephone number in E.164: 555-0100 to 555-0199 is reserved for fiction in every North American area code.
pub(crate) fn phone(draws: &mut Draws) -> String {
    // Area codes are [2-9][0-8][0-9]: a middle 9 is reserved for expansion.
    let (hundreds, tens, ones) = (2 + draws.below(8), draws.below(9), draws.below(10));
    format!("+1{hundreds}{tens}{ones}55501{:02}", draws.below(100))
}

/// A Customer of lead.submit (AAP digest, d.7), with what the preferred way needs and no more: contact data that the
/// consent does not cover is not to be sent (section f). Who takes any way has both.
pub(crate) fn buyer(prefers: &str, draws: &mut Draws) -> Value {
    let (first, last) = (first_name(draws), last_name(draws));
    // Both are drawn, so that a preference changes nothing that is drawn behind it.
    let (email, phone) = (email_of(&first, &last, draws), phone(draws));
    let mut customer = json!({ "first_name": first, "last_name": last, "preferred_contact": prefers });
    if matches!(prefers, "email" | "any") {
        customer["email"] = email.into();
    }
    if prefers != "email" {
        customer["phone"] = phone.into();
    }
    customer
}

/// A ConsentGrant of lead.submit, given half a minute to five minutes before `now`: never in the future, also for a
/// dealer whose clock is a little behind.
pub(crate) fn consent(channels: &[&'static str], now: Timestamp, draws: &mut Draws) -> Value {
    let ago = SignedDuration::from_secs(draws.integer(30, 300));
    let granted_at = timestamp(now.saturating_sub(ago).unwrap_or(now));
    let ways = match channels {
        [] => String::new(),
        [one] => (*one).to_owned(),
        [firsts @ .., last] => format!("{} and {last}", firsts.join(", ")),
    };
    json!({
        "granted_at": granted_at,
        "allowed_channels": channels,
        "consent_text":
            format!("I agree that this dealer may contact me by {ways} about the vehicle and the request in this lead."),
        "scope": ["lead_submission"],
    })
}

/// RFC 3339 in UTC, to the second.
pub(crate) fn timestamp(at: Timestamp) -> String {
    at.strftime("%Y-%m-%dT%H:%M:%SZ").to_string()
}

/// A version 4 UUID.
pub(crate) fn uuid(draws: &mut Draws) -> String {
    let bits = (u128::from(draws.below(u64::MAX)) << 64) | u128::from(draws.below(u64::MAX));
    // Version 4 in bits 48..52 and variant 10 in bits 64..66, counted from the left (RFC 9562, section 5.4).
    let bits = (bits & !(0xf << 76) & !(0x3 << 62)) | (0x4 << 76) | (0x2 << 62);
    let hex = format!("{bits:032x}");
    format!("{}-{}-{}-{}-{}", &hex[..8], &hex[8..12], &hex[12..16], &hex[16..20], &hex[20..])
}

/// Letters and digits of a VIN with their worth in the check sum (49 CFR 565.15); I, O and Q do not occur.
const VIN_ALPHABET: &[u8; 33] = b"0123456789ABCDEFGHJKLMNPRSTUVWXYZ";
const VIN_WORTH: &[u8; 33] = b"012345678912345678123457923456789";
const VIN_WEIGHTS: [u32; 17] = [8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2];
/// Model years 2015 to 2026: the letters in position 10.
const VIN_YEARS: &[u8; 12] = b"FGHJKLMNPRST";
/// A maker that does not exist: no region of the world begins with 0 (ISO 3780).
const VIN_MAKER: &[u8; 3] = b"0LG";

/// A well-formed VIN with a right check digit that no vehicle bears.
pub(crate) fn vin(draws: &mut Draws) -> String {
    let mut vin = [b'0'; 17];
    vin[..3].copy_from_slice(VIN_MAKER);
    for place in [3, 4, 5, 6, 7, 10] {
        vin[place] = VIN_ALPHABET[draws.index(VIN_ALPHABET.len())];
    }
    vin[9] = VIN_YEARS[draws.index(VIN_YEARS.len())];
    let serial = format!("{:06}", draws.below(1_000_000));
    vin[11..].copy_from_slice(serial.as_bytes());
    vin[8] = check_digit(&vin);
    vin.iter().map(|b| *b as char).collect()
}

fn check_digit(vin: &[u8; 17]) -> u8 {
    let worth = |letter: u8| {
        VIN_ALPHABET.iter().position(|l| *l == letter).map_or(0, |index| u32::from(VIN_WORTH[index] - b'0'))
    };
    let sum: u32 = vin.iter().zip(VIN_WEIGHTS).map(|(letter, weight)| worth(*letter) * weight).sum();
    match sum % 11 {
        10 => b'X',
        digit => b'0' + digit as u8,
    }
}

#[cfg(test)]
mod tests {
    use super::super::draw::{Key, Purpose};
    use super::*;

    #[test]
    fn the_check_digit_is_the_published_one() {
        // The worked example of 49 CFR 565.15 and a VIN of ones, whose check digit is 1.
        assert_eq!(check_digit(b"1M8GDM9AXKP042788"), b'X');
        assert_eq!(check_digit(b"11111111111111111"), b'1');
    }

    #[test]
    fn people_are_unreachable_and_well_formed() {
        for ordinal in 0..500 {
            let draws = &mut Key::new(5, ordinal).draws(Purpose::Item, 0);
            let buyer = buyer("any", draws);
            let (email, phone) = (buyer["email"].as_str().unwrap(), buyer["phone"].as_str().unwrap());
            assert!(
                email.ends_with("@example.com") && email.is_ascii() && !email.starts_with('.'),
                "{email}"
            );
            assert!(phone.len() == 12 && phone.starts_with("+1") && &phone[5..10] == "55501", "{phone}");
            let vin = vin(draws);
            assert!(vin.starts_with("0LG"), "no region of the world begins with 0: {vin}");
            assert!(vin.bytes().all(|b| VIN_ALPHABET.contains(&b)) && vin.len() == 17, "{vin}");
        }
    }

    #[test]
    fn a_buyer_tells_only_what_the_preferred_way_needs() {
        for (prefers, email, phone) in
            [("email", true, false), ("phone", false, true), ("sms", false, true), ("any", true, true)]
        {
            let buyer = buyer(prefers, &mut Key::new(5, 1).draws(Purpose::Item, 0));
            assert_eq!(
                (buyer.get("email").is_some(), buyer.get("phone").is_some()),
                (email, phone),
                "{prefers}"
            );
        }
    }

    #[test]
    fn a_uuid_says_its_version_and_variant() {
        let uuid = uuid(&mut Key::new(5, 5).draws(Purpose::Item, 0));
        assert_eq!((uuid.len(), &uuid[14..15]), (36, "4"));
        assert!(matches!(&uuid[19..20], "8" | "9" | "a" | "b"), "{uuid}");
    }

    #[test]
    fn consent_is_given_in_the_past_and_names_its_channels() {
        let now: Timestamp = "2026-01-01T12:00:00Z".parse().unwrap();
        let grant = consent(&CHANNELS, now, &mut Key::new(1, 1).draws(Purpose::Item, 0));
        let granted: Timestamp = grant["granted_at"].as_str().unwrap().parse().unwrap();
        assert!((30..=300).contains(&now.duration_since(granted).as_secs()));
        assert!(grant["consent_text"].as_str().unwrap().contains("by email, phone and sms about"));
        assert_eq!(grant["scope"], json!(["lead_submission"]));
    }
}
