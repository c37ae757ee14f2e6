//! What was asked at other doors than A2A and of the documents about a dealer, and what came.

use dealer_sim::protocol::Skill;
use dealer_sim::protocol::error::AAP_ERROR_KIND;
use serde_json::Value;

use super::evidence::{Evidence, cut};
use super::rule::Finding;
use crate::transport::Fault;

/// One request that is none of A2A, and its reply.
#[derive(Debug)]
pub(super) struct Knock {
    /// What it is for.
    pub(super) label: &'static str,
    /// The skill that it calls.
    pub(super) skill: Option<Skill>,
    /// The request as a proof shows it.
    pub(super) sent: String,
    pub(super) answer: Result<Came, Fault>,
}

/// A reply.
#[derive(Debug)]
pub(super) struct Came {
    pub(super) status: u16,
    pub(super) content_type: Option<String>,
    pub(super) allow: Option<String>,
    pub(super) retry_after: Option<String>,
    /// `WWW-Authenticate`.
    pub(super) challenge: Option<String>,
    pub(super) body: Vec<u8>,
    pub(super) json: Option<Value>,
}

impl Came {
    /// The code of a typed error.
    pub(super) fn typed_code(&self) -> Option<&str> {
        let error = self.json.as_ref().filter(|json| json["type"] == AAP_ERROR_KIND)?;
        error["code"].as_str()
    }

    /// Whether it is what may befall a lawful dealer at any moment.
    pub(super) fn is_of_the_moment(&self) -> bool {
        self.status == 408 || self.status == 429 || self.status >= 500
    }
}

impl Knock {
    /// Whether the skill answered.
    pub(super) fn is_served(&self) -> bool {
        self.payload().is_some()
    }

    /// The payload, if the skill answered.
    pub(super) fn payload(&self) -> Option<&Value> {
        let (came, skill) = (self.answer.as_ref().ok()?, self.skill?);
        let json = came.json.as_ref().filter(|json| json["type"] == skill.response_type());
        json.filter(|_| came.status == 200)
    }

    /// The request's name, what was sent and the start of the reply, a line each.
    pub(super) fn quote(&self) -> String {
        let came = match &self.answer {
            Err(fault) => format!("no reply: {fault}"),
            Ok(came) => {
                let kind = came.content_type.as_deref().unwrap_or("no Content-Type");
                format!("HTTP {} ({kind}): {}", came.status, cut(&String::from_utf8_lossy(&came.body)))
            }
        };
        format!("[{}]\nsent: {}\ncame: {came}", self.label, self.sent)
    }
}

impl Evidence {
    /// The knock of this name.
    pub(super) fn knock(&self, label: &str) -> Option<&Knock> {
        self.knocks.iter().find(|knock| knock.label == label)
    }

    /// Judges the knock of a name: `breach` says what is wrong with its reply, if anything. What never came, or is of the
    /// moment, is no breach.
    pub(super) fn judge_knock(
        &self,
        label: &str,
        breach: impl Fn(&Knock, &Came) -> Option<String>,
    ) -> Finding {
        let Some(knock) = self.knock(label) else {
            return match &self.stopped {
                Some(why) => Finding::not_run(why.clone()),
                None => Finding::not_run("the card links no such interface or document, or it was not found"),
            };
        };
        match &knock.answer {
            Err(fault) => Finding::not_run(format!("no reply: {fault}")),
            Ok(came) if came.is_of_the_moment() => Finding::not_run(format!("HTTP {}", came.status)),
            Ok(came) => match breach(knock, came) {
                None => Finding::Pass,
                Some(why) => Finding::fail(format!("{why}\n{}", knock.quote())),
            },
        }
    }
}
