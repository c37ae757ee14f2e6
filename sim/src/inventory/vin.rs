//! Vehicle identification numbers: the check digit and the model-year letter of ISO 3779, and numbers that are right in
//! form and belong to no vehicle.

use std::fmt;

/// The letters and digits of a VIN (ISO 3779: I, O and Q are left out).
const ALPHABET: &[u8; 33] = b"ABCDEFGHJKLMNPRSTUVWXYZ0123456789";

/// The world manufacturer identifier of every VIN made here. ISO 3780 leaves the whole range GA to G0 without a country, so
/// no maker can have been given a code that begins with G, and no VIN made here can name a vehicle that exists.
const MANUFACTURER: &[u8; 3] = b"GDS";

/// The weight of each of the 17 places in the check sum; the ninth is the check digit's own.
const WEIGHTS: [u32; 17] = [8, 7, 6, 5, 4, 3, 2, 10, 0, 9, 8, 7, 6, 5, 4, 3, 2];

/// Model-year codes of 30 years, from 1980 on and again from 2010 on: no I, O, Q, U, Z and no 0.
const YEARS: &[u8; 30] = b"ABCDEFGHJKLMNPRSTVWXY123456789";

/// How many VINs one dealer can have.
pub const SERIALS: u32 = 33_000_000;

/// How many dealers can have VINs of their own. The last pair of letters is kept for numbers
/// that no unit has.
pub const DEALERS: u16 = 33 * 33 - 1;

/// A vehicle identification number of 17 upper-case letters and digits.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Vin([u8; 17]);

impl Vin {
    /// The number of unit `serial` (below [`SERIALS`]) of dealer `dealer` (below [`DEALERS`]). Two units differ in the
    /// dealer's letters or in the last seven places, so numbers are unique whatever `year` and `line` are.
    ///
    /// `line` is any byte that tells model lines apart; it is only decoration.
    pub(crate) fn compose(dealer: u16, serial: u32, year: u16, line: u8) -> Vin {
        let mut vin = [b'0'; 17];
        vin[..3].copy_from_slice(MANUFACTURER);
        vin[3] = ALPHABET[usize::from(dealer / 33 % 33)];
        vin[4] = ALPHABET[usize::from(dealer % 33)];
        vin[5] = ALPHABET[usize::from(line % 23)];
        // 49 CFR 565: place 7 tells the two 30-year cycles apart, a digit before 2010 and a letter since.
        vin[6] = if year >= 2010 { ALPHABET[usize::from(line / 23)] } else { b'0' + line / 26 };
        vin[7] = ALPHABET[23 + usize::from(line % 10)];
        vin[9] = model_year(year);
        vin[10] = ALPHABET[(serial / 1_000_000 % 33) as usize];
        let mut rest = serial % 1_000_000;
        for place in (11..17).rev() {
            vin[place] = b'0' + (rest % 10) as u8;
            rest /= 10;
        }
        vin[8] = check_digit(&vin);
        Vin(vin)
    }

    /// A number with a right check digit that no stock made here holds.
    pub(crate) fn unused(serial: u32) -> Vin {
        Vin::compose(DEALERS, serial, 2020, 0)
    }

    /// The 17 letters and digits.
    pub fn as_str(&self) -> &str {
        std::str::from_utf8(&self.0).unwrap_or_default()
    }

    /// The 17 letters and digits, as bytes.
    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl fmt::Debug for Vin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Vin({})", self.as_str())
    }
}

impl fmt::Display for Vin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// The letter or digit that stands for a model year in place 10.
fn model_year(year: u16) -> u8 {
    YEARS[usize::from(year.saturating_sub(1980) % 30)]
}

/// Whether `vin` has the form that AAP demands, `^[A-HJ-NPR-Z0-9]{17}$` (digest, section d.2). Says nothing about the check
/// digit, which AAP does not ask for.
pub fn is_well_formed(vin: &str) -> bool {
    vin.len() == 17 && vin.bytes().all(|byte| ALPHABET.contains(&byte))
}

/// Whether `vin` is well formed and its ninth place is the check digit of the others (ISO 3779, 49 CFR 565).
pub fn has_valid_check_digit(vin: &str) -> bool {
    is_well_formed(vin) && <&[u8; 17]>::try_from(vin.as_bytes()).is_ok_and(|vin| check_digit(vin) == vin[8])
}

/// The check digit: the sum of each place's value times its weight, modulo 11, where ten is X.
fn check_digit(vin: &[u8; 17]) -> u8 {
    let sum: u32 = vin.iter().zip(WEIGHTS).map(|(&byte, weight)| value(byte) * weight).sum();
    match sum % 11 {
        10 => b'X',
        digit => b'0' + digit as u8,
    }
}

/// The value of a letter or digit in the check sum: A to I count 1 to 9, J to R 1 to 9, S to Z 2 to 9.
fn value(byte: u8) -> u32 {
    u32::from(match byte {
        b'0'..=b'9' => byte - b'0',
        b'A'..=b'I' => byte - b'A' + 1,
        b'J'..=b'R' => byte - b'J' + 1,
        b'S'..=b'Z' => byte - b'S' + 2,
        _ => 0,
    })
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn known_numbers() {
        // The all-ones number of 49 CFR 565's worked example, and two from public registers.
        for vin in ["11111111111111111", "1M8GDM9AXKP042788", "5GZCZ43D13S812715"] {
            assert!(has_valid_check_digit(vin), "{vin}");
        }
        for vin in ["1M8GDM9A0KP042788", "11111111111111112", "1111111111111111", "IOQ11111111111111", ""] {
            assert!(!has_valid_check_digit(vin), "{vin}");
        }
    }

    #[test]
    fn model_years() {
        for (year, letter) in
            [(1980, b'A'), (2009, b'9'), (2010, b'A'), (2026, b'T'), (2030, b'Y'), (2031, b'1')]
        {
            assert_eq!(model_year(year), letter, "{year}");
        }
    }

    proptest! {
        #[test]
        fn composed_numbers_are_well_formed(dealer in 0..DEALERS, serial in 0..SERIALS, year in 1990u16..2100, line: u8) {
            let vin = Vin::compose(dealer, serial, year, line);
            prop_assert!(has_valid_check_digit(vin.as_str()), "{}", vin);
            prop_assert_eq!(vin.as_bytes()[9], model_year(year));
            prop_assert_eq!(&vin.as_bytes()[..3], MANUFACTURER);
            prop_assert_eq!(vin.as_bytes()[6].is_ascii_alphabetic(), year >= 2010);
        }

        #[test]
        fn one_changed_place_is_noticed(serial in 0..SERIALS, place in 0usize..17, byte in proptest::sample::select(&ALPHABET[..])) {
            let vin = Vin::compose(0, serial, 2024, 3);
            let mut other = vin.0;
            other[place] = byte;
            let text = std::str::from_utf8(&other).unwrap();
            // Letters of equal value are the one change that the check sum cannot see.
            prop_assert_eq!(has_valid_check_digit(text), value(byte) == value(vin.0[place]) && place != 8 || other == vin.0);
        }

        #[test]
        fn different_units_have_different_numbers(a in (0..DEALERS, 0..SERIALS), b in (0..DEALERS, 0..SERIALS), years in (2000u16..2030, 2000u16..2030)) {
            let (first, second) = (Vin::compose(a.0, a.1, years.0, 1), Vin::compose(b.0, b.1, years.1, 2));
            prop_assert_eq!(first.0[3..5] == second.0[3..5] && first.0[10..] == second.0[10..], a == b);
            prop_assert_ne!(first, Vin::unused(b.1));
        }
    }
}
