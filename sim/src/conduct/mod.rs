//! Conduct: whether those who call keep the protocol, rule by rule and with evidence.
//!
//! A judge reads the journal, so that judging costs the calls nothing. It remembers a bounded part of what each client did;
//! what was dropped before it was read, or forgotten since, makes a rule unknown, never kept.

mod catalogue;
mod checks;
mod desk;
mod facts;
mod judge;
mod markup;
mod report;
mod rules;
mod table;

pub use catalogue::catalogue;
pub use desk::{BadTest, ConductDesk, MAX_TESTS};
pub use judge::{Finding, Judge, MAX_CLIENTS, MAX_FINDINGS};
pub use report::{ClientReport, Count, Format, Report, RuleReport, Status};
pub use rules::{RULES, Rule, Severity};

#[cfg(test)]
mod tests;
