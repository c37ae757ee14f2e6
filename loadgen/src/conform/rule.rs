//! What a rule is, and how what a dealer answered is held against it. Pure: the evidence is all there.

use dealer_sim::protocol::error::AapCode;
use dealer_sim::protocol::{Contract, Skill};

use super::evidence::{Evidence, Exchange};

/// How sure the sources are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Certainty {
    /// A source demands it: a dealer that breaks it does not conform.
    Must,
    /// A source recommends it: told, and no reason to fail.
    Should,
    /// No source settles it: what the dealer does is told, as something that buyers may stumble over.
    Silent,
}

impl Certainty {
    /// All of them, the strongest first.
    pub const ALL: [Certainty; 3] = [Certainty::Must, Certainty::Should, Certainty::Silent];

    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Certainty::Must => "must",
            Certainty::Should => "should",
            Certainty::Silent => "silent",
        }
    }
}

/// What the judgement of one rule came to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Finding {
    /// The rule is kept in all that was seen.
    Pass,
    /// It is broken; each breach with its proof.
    Fail(Vec<String>),
    /// It could not be judged, and why.
    NotRun(String),
}

impl Finding {
    /// A breach if there are any, else that the rule is kept, else (nothing was looked at) that it was not run.
    pub(super) fn of(breaches: Vec<String>, looked_at: usize, nothing: &str) -> Finding {
        match (breaches.is_empty(), looked_at) {
            (false, _) => Finding::Fail(breaches),
            (true, 0) => Finding::NotRun(nothing.to_owned()),
            (true, _) => Finding::Pass,
        }
    }

    pub(super) fn fail(breach: impl Into<String>) -> Finding {
        Finding::Fail(vec![breach.into()])
    }

    pub(super) fn not_run(why: impl Into<String>) -> Finding {
        Finding::NotRun(why.into())
    }
}

/// The contracts whose dealers a rule applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Applies(&'static [Contract]);

impl Applies {
    /// All contracts.
    pub const ALL: Applies = Applies(&Contract::ALL);
    /// The released contracts before 2.0.
    pub const BEFORE_2_0: Applies = Applies(Contract::BEFORE_2_0);
    /// Contracts 2.0 and 3.0.
    pub const FROM_2_0: Applies = Applies(Contract::FROM_2_0);
    /// Contract 1.0, with its `source_agent` as a text.
    pub const V1_0: Applies = Applies(&[Contract::V1_0]);
    /// Contract 1.1.
    pub const V1_1: Applies = Applies(&[Contract::V1_1]);
    /// All but 1.0: `source_agent` is an object, `details.errors[]` lists every fault.
    pub const FROM_1_1: Applies =
        Applies(&[Contract::V1_1, Contract::V1_2, Contract::V1_3, Contract::V2_0, Contract::V3_0]);
    /// Those that know classes of unit.
    pub const FROM_1_2: Applies = Applies(&[Contract::V1_2, Contract::V1_3, Contract::V2_0, Contract::V3_0]);
    /// Those that know `fees`.
    pub const FROM_1_3: Applies = Applies(&[Contract::V1_3, Contract::V2_0, Contract::V3_0]);
    /// All before 3.0.
    pub const BEFORE_3_0: Applies =
        Applies(&[Contract::V1_0, Contract::V1_1, Contract::V1_2, Contract::V1_3, Contract::V2_0]);
    /// Contract 2.0.
    pub const V2_0: Applies = Applies(&[Contract::V2_0]);
    /// Contract 3.0.
    pub const V3_0: Applies = Applies(&[Contract::V3_0]);

    /// Whether a dealer of this contract is held to it.
    pub fn to(self, contract: Contract) -> bool {
        self.0.contains(&contract)
    }

    /// The contracts' names, such as `1.3, 2.0, 3.0`; all of them are `all`.
    pub fn word(self) -> String {
        if self == Applies::ALL {
            return "all".to_owned();
        }
        self.0.iter().map(|contract| contract.name).collect::<Vec<_>>().join(", ")
    }
}

/// One rule of the table.
#[derive(Debug)]
pub struct Rule {
    /// Its name in reports, `group.what`; a request of the same name in the data belongs to it.
    pub id: &'static str,
    /// What a dealer does that keeps it.
    pub title: &'static str,
    /// Where it comes from: sections of the AAP digest by letter (`AAP b`), of A2A 1.0 (`A2A 3.6`), RFCs.
    pub source: &'static str,
    /// How sure that source is.
    pub certainty: Certainty,
    /// The contracts it belongs to.
    pub applies: Applies,
    pub(super) judge: Judge,
}

impl Rule {
    /// Whether it is about the form of every reply, whatever was asked: where it is broken, rules on single requests may be
    /// broken by nothing else.
    pub(super) fn is_of_every_reply(&self) -> bool {
        let group = self.id.split('.').next().unwrap_or_default();
        matches!(self.judge, Judge::Law(_)) && matches!(group, "http" | "rpc" | "message" | "error")
    }
}

/// How a rule is judged.
#[derive(Debug, Clone, Copy)]
pub(super) enum Judge {
    /// By the reply to the request of the rule's name.
    Probe(Expect),
    /// By all that was seen.
    Law(fn(&Evidence) -> Finding),
}

/// What may come of a probe.
#[derive(Debug, Clone, Copy)]
pub(super) enum Expect {
    /// The skill's reply.
    Served,
    /// One of these refusals.
    Refused(&'static [Refusal]),
    /// The skill's reply, or one of these refusals.
    ServedOr(&'static [Refusal]),
    /// A JSON-RPC answer of any kind, or an HTTP refusal of the body (4xx); no crash.
    Survived,
}

/// A refusal.
#[derive(Debug, Clone, Copy)]
pub(super) enum Refusal {
    /// This number, without a typed AAP entry.
    Code(i64),
    /// A typed entry with one of these codes.
    Aap(&'static [AapCode]),
    /// A typed entry with one of these codes that lists a fault at each of these places; each place has alternatives. Where
    /// a contract does not ask for the list (1.0), the code suffices.
    At(&'static [AapCode], &'static [&'static [&'static str]]),
    /// An HTTP status without a JSON-RPC error.
    Http(u16),
}

/// Reasons of the dealer's own that may befall any call, and say nothing about the rule.
const TRANSIENT: [AapCode; 2] = [AapCode::RateLimited, AapCode::InternalError];

/// Holds the reply to a probe against what is expected.
pub(super) fn judge_probe(id: &str, expect: Expect, evidence: &Evidence) -> Finding {
    let Some(exchange) = evidence.of(id) else { return evidence.unasked(id) };
    if let Some(why) = exchange.unjudgeable() {
        return match (expect, exchange.status()) {
            (Expect::Survived, Some(status)) if (400..500).contains(&status) => Finding::Pass,
            (Expect::Refused(any) | Expect::ServedOr(any), Some(status))
                if any
                    .iter()
                    .any(|refusal| matches!(refusal, Refusal::Http(wanted) if *wanted == status)) =>
            {
                Finding::Pass
            }
            _ => Finding::NotRun(why),
        };
    }
    let is_transient = exchange.typed_code().is_some_and(|code| TRANSIENT.iter().any(|c| c.name() == code));
    let kept = match expect {
        Expect::Survived => exchange.json().is_some(),
        Expect::Served => exchange.is_served(),
        Expect::Refused(any) => any.iter().any(|refusal| is_so(exchange, refusal)),
        Expect::ServedOr(any) => exchange.is_served() || any.iter().any(|refusal| is_so(exchange, refusal)),
    };
    match (kept, is_transient) {
        (true, _) => Finding::Pass,
        (false, true) => Finding::not_run(format!("the dealer answered {}", exchange.said())),
        (false, false) => {
            Finding::fail(format!("{}\nwanted: {}", exchange.quote(), wanted(expect, exchange.skill)))
        }
    }
}

fn is_so(exchange: &Exchange, refusal: &Refusal) -> bool {
    let typed = exchange.typed_code();
    let is_one_of = |codes: &[AapCode]| typed.is_some_and(|typed| codes.iter().any(|c| c.name() == typed));
    match refusal {
        Refusal::Code(code) => typed.is_none() && exchange.error_number() == Some(*code),
        Refusal::Aap(codes) => is_one_of(codes),
        Refusal::At(codes, places) => {
            let listed = exchange.fault_places();
            is_one_of(codes)
                && (!exchange.contract.lists_faults
                    || places.iter().all(|any| any.iter().any(|place| listed.iter().any(|at| at == place))))
        }
        Refusal::Http(status) => exchange.status() == Some(*status),
    }
}

fn wanted(expect: Expect, skill: Option<Skill>) -> String {
    let served =
        || skill.map_or_else(|| "a result".to_owned(), |skill| format!("a {}", skill.response_type()));
    let any = |list: &[Refusal]| list.iter().map(one_wanted).collect::<Vec<_>>().join(" or ");
    match expect {
        Expect::Survived => "a JSON-RPC answer".to_owned(),
        Expect::Served => served(),
        Expect::Refused(list) => any(list),
        Expect::ServedOr(list) => format!("{} or {}", served(), any(list)),
    }
}

fn one_wanted(refusal: &Refusal) -> String {
    let names = |codes: &[AapCode]| codes.iter().map(|code| code.name()).collect::<Vec<_>>().join(" or ");
    match refusal {
        Refusal::Code(code) => format!("error {code} without an AAP entry"),
        Refusal::Aap(codes) => names(codes),
        Refusal::At(codes, places) => {
            let places: Vec<_> = places.iter().map(|any| any.join(" or ")).collect();
            format!("{} with details.errors[] at {}", names(codes), places.join(" and "))
        }
        Refusal::Http(status) => format!("HTTP {status}"),
    }
}
