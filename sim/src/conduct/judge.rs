//! The judge: what is remembered of each client, bounded, and what became of each rule.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use super::checks;
use super::facts::{Facts, Kind};
use super::rules::{R, RULES};
use super::table::Table;
use crate::journal::Entry;

/// Clients that are judged; calls of others are counted. A client's memory is bounded by the tables below: some 300 KiB.
pub const MAX_CLIENTS: usize = 256;
/// Findings of one rule and client that are kept; the rest is counted.
pub const MAX_FINDINGS: usize = 8;
/// Bytes of a text that came from a client, as findings quote it.
const MAX_QUOTE: usize = 80;

/// A proof that a rule was broken.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct Finding {
    /// The journal's numbers: the entries that led to it, and last the one that broke the rule.
    pub entries: Vec<u64>,
    /// When it happened by the business clock.
    pub at: String,
    /// The dealer.
    pub dealer: String,
    /// The conversation, if there was one.
    pub conversation: Option<String>,
    /// The call, by its skill or method, and what was wrong with it.
    pub text: String,
}

/// What became of one rule for one client.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    pub(super) kept: u64,
    pub(super) broken: u64,
    pub(super) unknown: u64,
    pub(super) findings: Vec<Finding>,
}

/// A call that failed, or was answered, and may come again.
#[derive(Debug, Clone)]
pub(super) struct Attempt {
    pub(super) seq: u64,
    pub(super) ended: u64,
    /// How it failed the last time.
    pub(super) failure: Option<super::facts::Failure>,
    pub(super) had_hint: bool,
    /// Failures in a row.
    pub(super) failures: u64,
    /// The wait before it, if it was a retry.
    pub(super) waited: Option<u64>,
    /// The payload to the last member.
    pub(super) exact: u64,
    pub(super) lead_key: Option<String>,
    pub(super) text: Finding,
}

/// Who made a contextId.
#[derive(Debug, Clone)]
pub(super) struct Context {
    pub(super) dealer: String,
    pub(super) seq: u64,
}

/// A listing that a client was shown.
#[derive(Debug, Clone)]
pub(super) struct Listing {
    pub(super) seq: u64,
    pub(super) status: String,
    pub(super) updated_at: Option<jiff::Timestamp>,
    pub(super) price: Option<u64>,
    /// The prices that are no price, by name.
    pub(super) others: Vec<(&'static str, u64)>,
    /// Whether it was looked up by itself.
    pub(super) looked_up: bool,
}

/// A payload, and its faults if it was refused for any.
#[derive(Debug, Clone)]
pub(super) struct Refused {
    pub(super) places: Vec<String>,
    pub(super) seq: u64,
    pub(super) told: u64,
    /// The payload to the last member.
    pub(super) exact: u64,
}

/// The agent card as a client last had it.
#[derive(Debug, Clone, Copy)]
pub(super) struct CardSeen {
    pub(super) seq: u64,
    pub(super) ended: u64,
    /// Whether a fault had changed it: what it said is not what the dealer is.
    pub(super) is_altered: bool,
}

/// What a client did with one dealer.
#[derive(Debug, Clone, Default)]
pub(super) struct Relation {
    pub(super) card: Option<CardSeen>,
    pub(super) calls: u64,
    /// The last conversation: its contextId, the entry, and when it was told.
    pub(super) context: Option<(String, u64, u64)>,
    /// Until when nothing is to be sent, by which entry, and from when.
    pub(super) quiet: Option<(u64, u64, u64)>,
    /// Whether something was refused for good.
    pub(super) was_refused: bool,
    /// Vehicles that were unavailable, since the last search: which, told by which entry, in whose conversation.
    pub(super) unavailable: Vec<(String, u64, String)>,
    /// A reply that was shown did not go wholly into the journal.
    pub(super) unseen: bool,
}

/// What is remembered of a client.
#[derive(Debug, Clone)]
pub(super) struct Client {
    pub(super) calls: u64,
    /// Entries that came after others which had arrived later: rules about order may be wrong about them.
    pub(super) late: u64,
    latest: u64,
    pub(super) tallies: Vec<Tally>,
    pub(super) relations: Table<String, Relation>,
    pub(super) in_flight: VecDeque<(String, u64, u64)>,
    pub(super) messages: Table<u64, (u64, u64, bool)>,
    pub(super) contexts: Table<String, Context>,
    pub(super) attempts: Table<u64, Attempt>,
    pub(super) lead_keys: Table<String, (u64, u64)>,
    pub(super) leads: Table<u64, (u64, jiff::Timestamp, Option<String>)>,
    pub(super) listings: Table<String, Listing>,
    pub(super) pages: Table<u64, (u64, u64, u64)>,
    pub(super) searches: Table<u64, VecDeque<(u64, u64)>>,
    /// For each dealer, skill and conversation the last answer to a payload: what was wrong with it.
    pub(super) refused: Table<u64, Refused>,
}

impl Client {
    fn new() -> Client {
        Client {
            calls: 0,
            late: 0,
            latest: 0,
            tallies: vec![Tally::default(); RULES.len()],
            relations: Table::new(64),
            in_flight: VecDeque::new(),
            messages: Table::new(1024),
            contexts: Table::new(512),
            attempts: Table::new(512),
            lead_keys: Table::new(256),
            leads: Table::new(256),
            listings: Table::new(1024),
            pages: Table::new(512),
            searches: Table::new(128),
            refused: Table::new(256),
        }
    }

    /// Entries of its memory that were forgotten.
    pub(super) fn lost(&self) -> u64 {
        self.relations.lost
            + self.messages.lost
            + self.contexts.lost
            + self.attempts.lost
            + self.lead_keys.lost
            + self.leads.lost
            + self.listings.lost
            + self.pages.lost
            + self.searches.lost
            + self.refused.lost
    }
}

/// A request before its judge: what is known, and where verdicts go.
pub(super) struct Case<'c> {
    pub(super) facts: &'c Facts<'c>,
    tallies: &'c mut [Tally],
    /// How long an agent card is fresh, in nanoseconds.
    pub(super) card_fresh_ns: u64,
    /// Whether earlier requests are not known.
    has_gap: bool,
}

impl Case<'_> {
    /// The rule is kept, or broken by what the request and the earlier entries show.
    pub(super) fn check(&mut self, rule: R, is_kept: bool, earlier: &[u64], text: impl FnOnce() -> String) {
        let tally = &mut self.tallies[rule as usize];
        if is_kept {
            tally.kept += 1;
            return;
        }
        tally.broken += 1;
        if tally.findings.len() < MAX_FINDINGS {
            tally.findings.push(finding(self.facts, earlier, text()));
        }
    }

    /// As [`Case::check`], where it is broken by something that never came: what was not seen proves nothing.
    pub(super) fn check_absent(
        &mut self,
        rule: R,
        is_kept: bool,
        earlier: &[u64],
        text: impl FnOnce() -> String,
    ) {
        if !is_kept && self.has_gap {
            self.unknown(rule);
        } else {
            self.check(rule, is_kept, earlier, text);
        }
    }

    /// What decides it was not kept.
    pub(super) fn unknown(&mut self, rule: R) {
        self.tallies[rule as usize].unknown += 1;
    }
}

pub(super) fn finding(facts: &Facts<'_>, earlier: &[u64], text: String) -> Finding {
    let mut entries: Vec<_> = earlier.to_vec();
    entries.push(facts.seq());
    let call = facts.skill().map_or_else(|| plain(facts.method()), |skill| skill.id().to_owned());
    Finding {
        entries,
        at: facts.entry.at.clone(),
        dealer: facts.entry.dealer.clone(),
        conversation: facts.entry.conversation.clone(),
        text: if call.is_empty() { text } else { format!("{call}: {text}") },
    }
}

/// A client's word without what it may do to a terminal, bounded.
fn plain(text: &str) -> String {
    text.chars().filter(|c| !c.is_control()).take(MAX_QUOTE).collect()
}

/// A client's text as a finding shows it: one line, bounded.
pub(super) fn quote(text: &str) -> String {
    let cut: String = text.chars().take(MAX_QUOTE).collect();
    let dots = if cut.len() < text.len() { "…" } else { "" };
    format!("{cut:?}{dots}")
}

/// Judges requests as they are told, in the order in which they arrived.
#[derive(Debug, Clone)]
pub struct Judge {
    /// How long an agent card is fresh, in nanoseconds.
    card_fresh_ns: u64,
    pub(super) clients: BTreeMap<String, Client>,
    /// Calls of clients beyond [`MAX_CLIENTS`].
    pub(super) unjudged: u64,
    /// Entries that never came to the judge.
    pub(super) missed: u64,
    /// Whether entries were missed before the test began: what was not seen since may have been done before.
    pub(super) has_missed_past: bool,
}

impl Default for Judge {
    /// A judge of the callers of dealers whose cards say `max-age=300`.
    fn default() -> Judge {
        Judge::new(Duration::from_secs(300))
    }
}

impl Judge {
    /// A judge of the callers of dealers whose agent cards may be kept for so long.
    pub fn new(card_max_age: Duration) -> Judge {
        let card_fresh_ns = u64::try_from(card_max_age.as_nanos()).unwrap_or(u64::MAX);
        let clients = BTreeMap::new();
        Judge { card_fresh_ns, clients, unjudged: 0, missed: 0, has_missed_past: false }
    }

    /// A judge of the same dealers' callers who has heard nothing.
    pub(super) fn anew(&self) -> Judge {
        Judge::new(Duration::from_nanos(self.card_fresh_ns))
    }

    /// Judges one request.
    pub fn hear(&mut self, entry: &Entry) {
        let facts = Facts::of(entry);
        if !self.clients.contains_key(&entry.client) {
            if self.clients.len() == MAX_CLIENTS {
                self.unjudged += 1;
                return;
            }
            self.clients.insert(entry.client.clone(), Client::new());
        }
        let Some(client) = self.clients.get_mut(&entry.client) else { return };
        if facts.arrived < client.latest {
            client.late += 1;
        }
        client.latest = client.latest.max(facts.arrived);
        let has_gap = self.missed > 0 || self.has_missed_past || client.late > 0 || client.lost() > 0;
        let mut tallies = std::mem::take(&mut client.tallies);
        let mut case =
            Case { facts: &facts, tallies: &mut tallies, card_fresh_ns: self.card_fresh_ns, has_gap };
        if facts.kind == Kind::Call {
            client.calls += 1;
        }
        if client.relations.get(&entry.dealer).is_none() {
            client.relations.put(entry.dealer.clone(), Relation::default());
        }
        checks::judge(&mut case, client);
        client.tallies = tallies;
    }

    /// Entries were dropped before they came here: what has not been seen is not known.
    pub fn miss(&mut self, entries: u64) {
        self.missed += entries;
    }

    /// Forgets all verdicts, but not what was seen: the beginning of a test.
    pub fn acquit(&mut self) {
        for client in self.clients.values_mut() {
            client.tallies = vec![Tally::default(); RULES.len()];
            client.calls = 0;
            client.late = 0;
            client.attempts = Table::new(512);
        }
        self.has_missed_past |= self.missed > 0;
        self.missed = 0;
        self.unjudged = 0;
    }
}
