//! The distinct values of a text column, each with a small code.

use std::collections::BTreeMap;

use super::columns::{COLUMNS, CONDITIONS, Column, MISSING, Status, VEHICLE_TYPES};

/// The most values one column may have: code 0 means that there is none, and codes are 16 bits wide.
pub(crate) const MOST_VALUES: usize = u16::MAX as usize;

/// A column has more distinct values than fit its codes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("more than {MOST_VALUES} distinct values")]
pub struct TooManyValues;

/// The distinct values of one column.
#[derive(Debug, Clone, Default)]
pub(crate) struct Dictionary {
    /// The value of code `index + 1`.
    values: Vec<Box<str>>,
    codes: BTreeMap<Box<str>, u16>,
    /// What [`Dictionary::seal`] derives: each code's place in code-point order, the codes in that order, and the codes with
    /// their case-folded values in the order of those.
    ranks: Vec<u32>,
    sorted: Vec<u16>,
    folded: Vec<(Box<str>, u16)>,
}

impl Dictionary {
    /// The code of `value`, a new one if need be.
    pub(crate) fn intern(&mut self, value: &str) -> Result<u16, TooManyValues> {
        if let Some(&code) = self.codes.get(value) {
            return Ok(code);
        }
        let code = u16::try_from(self.values.len() + 1).map_err(|_| TooManyValues)?;
        self.values.push(value.into());
        self.codes.insert(value.into(), code);
        Ok(code)
    }

    /// Brings what is derived up to date. To be called after the last [`Dictionary::intern`].
    fn seal(&mut self) {
        self.sorted = self.codes.values().copied().collect();
        // A vehicle without the member sorts last, like one without a number.
        self.ranks = vec![MISSING; self.values.len() + 1];
        for (rank, &code) in self.sorted.iter().enumerate() {
            self.ranks[usize::from(code)] = rank as u32;
        }
        self.folded = self.codes.iter().map(|(value, &code)| (fold(value).into(), code)).collect();
        self.folded.sort_unstable();
    }

    /// How many codes there are, code 0 among them.
    pub(crate) fn codes(&self) -> usize {
        self.values.len() + 1
    }

    /// The value of `code`; empty for code 0 and for a code that is not there.
    pub(crate) fn value(&self, code: u16) -> &str {
        usize::from(code).checked_sub(1).and_then(|index| self.values.get(index)).map_or("", |value| value)
    }

    /// The codes in code-point order of their values.
    pub(crate) fn sorted(&self) -> &[u16] {
        &self.sorted
    }

    /// The place of each code in code-point order; `MISSING` for code 0.
    pub(crate) fn ranks(&self) -> &[u32] {
        &self.ranks
    }

    /// The codes of the values that equal `folded` when folded: several where values differ in case alone.
    pub(crate) fn equal<'a>(&'a self, folded: &'a str) -> impl Iterator<Item = u16> + 'a {
        let start = self.folded.partition_point(|(value, _)| value.as_ref() < folded);
        self.folded[start..]
            .iter()
            .take_while(move |(value, _)| value.as_ref() == folded)
            .map(|&(_, code)| code)
    }

    /// The codes of the values in which `folded` occurs.
    pub(crate) fn containing<'a>(&'a self, folded: &'a str) -> impl Iterator<Item = u16> + 'a {
        self.folded.iter().filter(move |(value, _)| value.contains(folded)).map(|&(_, code)| code)
    }
}

/// `text` in the form that is compared where case does not count.
pub(crate) fn fold(text: &str) -> String {
    let mut folded = String::new();
    fold_into(text, &mut folded);
    folded
}

/// Replaces `folded` by the case-folded `text`.
pub(crate) fn fold_into(text: &str, folded: &mut String) {
    folded.clear();
    folded.extend(text.chars().flat_map(char::to_lowercase));
}

/// One dictionary per column.
#[derive(Debug, Clone)]
pub(crate) struct Dictionaries([Dictionary; COLUMNS]);

impl Dictionaries {
    /// Dictionaries that know the values of AAP's enumerations, at their fixed codes, and nothing else.
    pub(crate) fn new() -> Dictionaries {
        let mut dictionaries = Dictionaries(Default::default());
        let enumerations: [(Column, &[&str]); 4] = [
            (Column::Status, &Status::ALL.map(Status::word)),
            (Column::VehicleType, &VEHICLE_TYPES),
            (Column::Condition, &CONDITIONS),
            (Column::DcFastCharge, &["false", "true"]),
        ];
        for (column, words) in enumerations {
            for word in words {
                // A handful of words cannot outnumber the codes.
                let _ = dictionaries.intern(column, word);
            }
        }
        dictionaries
    }

    /// The code of `value` in `column`, a new one if need be.
    pub(crate) fn intern(&mut self, column: Column, value: &str) -> Result<u16, TooManyValues> {
        self.0[column as usize].intern(value)
    }

    /// Brings what is derived up to date.
    pub(crate) fn seal(&mut self) {
        self.0.iter_mut().for_each(Dictionary::seal);
    }

    /// The dictionary of one column.
    pub(crate) fn of(&self, column: Column) -> &Dictionary {
        &self.0[column as usize]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn enumerations_have_their_fixed_codes() {
        let dictionaries = Dictionaries::new();
        for status in Status::ALL {
            assert_eq!(dictionaries.of(Column::Status).value(status.code()), status.word());
        }
        assert_eq!(dictionaries.of(Column::VehicleType).value(1), "car");
        assert_eq!(dictionaries.of(Column::Condition).value(1), "new");
    }

    #[test]
    fn values_are_found_whatever_their_case() {
        let mut dictionary = Dictionary::default();
        let codes: Vec<u16> =
            ["Kia", "KIA", "Škoda", "Ford"].iter().map(|value| dictionary.intern(value).unwrap()).collect();
        assert_eq!(dictionary.intern("Kia"), Ok(codes[0]));
        dictionary.seal();
        assert_eq!(dictionary.equal("kia").count(), 2);
        assert_eq!(dictionary.equal("škoda").collect::<Vec<_>>(), [codes[2]]);
        assert_eq!(dictionary.equal("ki").count(), 0);
        assert_eq!(dictionary.containing("ki").count(), 2);
        let sorted: Vec<&str> = dictionary.sorted().iter().map(|&code| dictionary.value(code)).collect();
        assert_eq!(sorted, ["Ford", "KIA", "Kia", "Škoda"], "plain code-point order");
        assert_eq!(dictionary.ranks(), [MISSING, 2, 1, 3, 0]);
        assert_eq!(dictionary.value(0), "");
    }

    #[test]
    fn a_full_dictionary_says_so() {
        let mut dictionary = Dictionary::default();
        for value in 0..MOST_VALUES {
            assert!(dictionary.intern(&value.to_string()).is_ok());
        }
        assert_eq!(dictionary.intern("one more"), Err(TooManyValues));
        assert_eq!(dictionary.intern("7"), Ok(8));
    }
}
