//! Corrections of what the documents say, from a user's file: many names in them are guessed, and the released text may have
//! others.

use serde_json::{Map, Value};

use super::Paper;
use crate::protocol::merge::merge_patch;

/// What is replaced: by document, a patch in the manner of RFC 7396, and a `poppy.json` that takes the place of ours.
#[derive(Debug, Clone, Default)]
pub struct Amendments {
    patches: Map<String, Value>,
    poppy: Option<Vec<u8>>,
}

/// What stands for the base URL in texts of a patch.
const BASE_URL: &str = "{base_url}";

/// Why a file corrects nothing.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum AmendError {
    /// The text is no JSON.
    #[error("not JSON: {0}")]
    NotJson(String),
    /// The text is JSON, but no object.
    #[error("{0} is no JSON object")]
    NotAnObject(String),
    /// A member that names no document.
    #[error(
        "unknown document {0:?}; a member is card (its extension's params), poppy, openapi, ai-catalog, api-catalog or server-card"
    )]
    Unknown(String),
    /// All that is wrong with a file.
    #[error("{}", .0.iter().map(ToString::to_string).collect::<Vec<_>>().join("\n"))]
    Several(Vec<AmendError>),
}

impl Amendments {
    /// Reads patches: an object whose members are documents (`card` patches the params of the card's AAP entry).
    ///
    /// # Errors
    /// [`AmendError`], all of it at once.
    pub fn parse(text: &str) -> Result<Amendments, AmendError> {
        let patches = object(text)?;
        let mut faults = Vec::new();
        for (name, patch) in &patches {
            // A text is no object that a patch could change.
            let is_known = name.parse::<Paper>().is_ok_and(|paper| paper != Paper::Llms);
            if !is_known {
                faults.push(AmendError::Unknown(name.clone()));
            } else if !patch.is_object() {
                faults.push(AmendError::NotAnObject(format!("{name:?}")));
            }
        }
        match faults.len() {
            0 => Ok(Amendments { patches, poppy: None }),
            1 => Err(faults.remove(0)),
            _ => Err(AmendError::Several(faults)),
        }
    }

    /// Has this text served as `poppy.json`, byte for byte.
    ///
    /// # Errors
    /// [`AmendError`], where it is no JSON object.
    pub fn replace_poppy(&mut self, text: String) -> Result<(), AmendError> {
        object(&text)?;
        self.poppy = Some(text.into_bytes());
        Ok(())
    }

    pub(super) fn whole_poppy(&self) -> Option<&[u8]> {
        self.poppy.as_deref()
    }

    /// Corrects a document.
    pub fn apply(&self, name: &str, base_url: &str, document: &mut Value) {
        if let Some(patch) = self.patches.get(name) {
            let mut patch = patch.clone();
            fill_in(&mut patch, base_url);
            merge_patch(document, &patch);
        }
    }
}

fn object(text: &str) -> Result<Map<String, Value>, AmendError> {
    match serde_json::from_str(text) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err(AmendError::NotAnObject("the file".to_owned())),
        Err(error) => Err(AmendError::NotJson(error.to_string())),
    }
}

fn fill_in(patch: &mut Value, base_url: &str) {
    match patch {
        Value::String(text) if text.contains(BASE_URL) => *text = text.replace(BASE_URL, base_url),
        Value::Array(items) => items.iter_mut().for_each(|item| fill_in(item, base_url)),
        Value::Object(members) => members.values_mut().for_each(|member| fill_in(member, base_url)),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::super::tests::facts;
    use super::super::{Facts, poppy};
    use super::*;

    #[test]
    fn a_file_corrects_a_document_and_leaves_the_others() {
        let text =
            r#"{"poppy": {"protocol_version": "1.1", "agent": null, "auth": {"issuer": "{base_url}"}}}"#;
        let amendments = Amendments::parse(text).unwrap();
        let facts = Facts { amendments: &amendments, ..facts("https://h.test") };
        let said: Value = serde_json::from_slice(&Paper::Poppy.write(&facts)).unwrap();
        let mut wanted = poppy(&facts);
        wanted["protocol_version"] = json!("1.1");
        wanted["auth"] = json!({ "issuer": "https://h.test" });
        wanted.as_object_mut().unwrap().remove("agent");
        assert_eq!(said, wanted);
        let catalog: Value = serde_json::from_slice(&Paper::AiCatalog.write(&facts)).unwrap();
        assert_eq!(catalog, super::super::ai_catalog(&facts));
    }

    #[test]
    fn a_poppy_json_of_the_user_is_served_as_it_is() {
        let mut amendments = Amendments::default();
        amendments.replace_poppy("{ \"mine\" : 1 }\n".to_owned()).unwrap();
        let facts = Facts { amendments: &amendments, ..facts("https://h.test") };
        assert_eq!(Paper::Poppy.write(&facts), b"{ \"mine\" : 1 }\n");
        assert!(amendments.replace_poppy("[]".to_owned()).is_err());
    }

    #[test]
    fn all_that_is_wrong_is_told() {
        let error = Amendments::parse(r#"{"poppy": 1, "llms": {}, "openapi": {}}"#).unwrap_err().to_string();
        assert!(error.contains("\"poppy\" is no JSON object") && error.contains("\"llms\""), "{error}");
        assert!(matches!(Amendments::parse("{"), Err(AmendError::NotJson(_))));
        assert!(matches!(Amendments::parse("[]"), Err(AmendError::NotAnObject(_))));
    }
}
