//! Reading mappings of a scenario: what every document has, and which names `${…}` can hold.

pub(crate) use dealer_sim::document::members::{
    Members, integer_of, is_name, is_word, key_is_name, list_of, map_of, name_of, text_of,
};

use super::ast::is_reference;
use super::fault::{Fault, Reporter, quoted};
use super::yaml::Key;

/// Whether a member's key is a name that `${…}` can hold; reported if not.
pub(crate) fn key_is_reference(key: &Key, what: &str, reporter: &mut Reporter<'_>) -> bool {
    if !key_is_name(key, what, reporter) {
        return false;
    }
    let valid = is_reference(&key.text);
    if !valid {
        let what = format!("{} cannot be {what}: inside `${{…}}` it reads as a value", quoted(&key.text));
        reporter.add(Fault::new(key.at, what).allowed("a name that begins with a letter"));
    }
    valid
}
