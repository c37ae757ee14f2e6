//! What a dealer publishes about itself, as it is served: the agent card, made at the start, and the other documents, each made
//! when it is first asked for and kept.

use std::sync::{Arc, OnceLock};

use jiff::Timestamp;
use sha2::{Digest as _, Sha256};

use crate::dealer::Dealer;
use crate::protocol::card::{Issue, agent_card};
use crate::protocol::discovery::{Amendments, Facts, Paper};

/// A document as it is served.
#[derive(Debug, Clone)]
pub struct Document {
    /// The text.
    pub body: Vec<u8>,
    /// What it is sent as.
    pub media_type: &'static str,
    /// A strong entity tag, with its quotes.
    pub etag: String,
    /// When it took force.
    pub issued: Timestamp,
}

/// Where a dealer publishes.
#[derive(Debug)]
pub(super) struct Place {
    /// The base URL of the dealer there.
    pub(super) base_url: String,
    /// The base URL of the process.
    pub(super) root: String,
    /// How many dealers the process serves.
    pub(super) dealers: u16,
}

/// All documents of a dealer at one of its places.
#[derive(Debug)]
pub struct Papers {
    place: Place,
    amendments: Arc<Amendments>,
    card: Document,
    /// In the order of [`Paper::ALL`]; the card's place stays empty.
    others: [OnceLock<Document>; Paper::ALL.len()],
}

impl Papers {
    /// The documents of a dealer at a place. Those that are seldom asked for wait for that: of a thousand dealers they would
    /// take long.
    pub(super) fn publish(
        place: Place,
        amendments: Arc<Amendments>,
        dealer: &Dealer,
        issued: Timestamp,
    ) -> Papers {
        let body = card(&facts(&place, &amendments, dealer), issued);
        let card = document(Paper::AgentCard, body, issued);
        Papers { place, amendments, card, others: Default::default() }
    }

    /// The agent card.
    pub fn card(&self) -> &Document {
        &self.card
    }

    /// A document of the dealer, if it has it.
    pub fn get(&self, paper: Paper, dealer: &Dealer) -> Option<&Document> {
        if paper == Paper::AgentCard {
            return Some(&self.card);
        }
        let facts = facts(&self.place, &self.amendments, dealer);
        if !paper.is_published(&facts) {
            return None;
        }
        let place = self.others.get(paper as usize)?;
        Some(place.get_or_init(|| document(paper, paper.write(&facts), self.card.issued)))
    }
}

fn facts<'a>(place: &'a Place, amendments: &'a Amendments, dealer: &'a Dealer) -> Facts<'a> {
    let spec = dealer.spec();
    Facts {
        contract: spec.contract,
        base_url: &place.base_url,
        dealer_name: dealer.name(),
        dealer_id: dealer.id(),
        skills: &spec.skills,
        doors: spec.doors,
        auth: &spec.auth,
        page_cap: spec.page_cap,
        dealers: usize::from(place.dealers),
        root_url: &place.root,
        amendments,
    }
}

/// The card. Its version id is derived from what it says, so that it changes when the card does.
fn card(facts: &Facts<'_>, issued: Timestamp) -> Vec<u8> {
    let mut issue =
        Issue { fingerprint: [0; 16], issued_at_ms: u64::try_from(issued.as_millisecond()).unwrap_or(0) };
    let said = Sha256::digest(agent_card(facts, issue).to_string().as_bytes());
    issue.fingerprint.copy_from_slice(&said[..16]);
    agent_card(facts, issue).to_string().into_bytes()
}

fn document(paper: Paper, body: Vec<u8>, issued: Timestamp) -> Document {
    Document { etag: entity_tag(&body), media_type: paper.media_type(), body, issued }
}

/// A strong entity tag of what is served.
pub(crate) fn entity_tag(body: &[u8]) -> String {
    let mut etag = String::from("\"");
    for byte in &Sha256::digest(body)[..12] {
        etag.push_str(&format!("{byte:02x}"));
    }
    etag.push('"');
    etag
}
