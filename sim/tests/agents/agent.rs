//! A buyer agent that behaves, unless it is told to break one rule.

use std::thread::sleep;
use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::flaws;
use crate::wire::{Answer, Outgoing, Refusal, header, read};

/// Attempts at one request.
const BUDGET: u32 = 3;
const FIRST_WAIT: Duration = Duration::from_millis(120);
const LONGEST_WAIT: Duration = Duration::from_millis(260);

/// What an agent keeps of a dealer.
#[derive(Debug, Default)]
struct Dealer {
    base: String,
    card: Option<Card>,
    context: Option<String>,
}

#[derive(Debug, Clone)]
struct Card {
    url: String,
    uri: String,
    etag: Option<String>,
    fetched: Instant,
}

/// A buyer agent, its name, and the rule that it breaks.
pub struct Agent {
    pub name: String,
    flaw: Option<&'static str>,
    dealers: Vec<Dealer>,
    count: u64,
    card_max_age: Duration,
}

impl Agent {
    pub fn new(name: &str, flaw: Option<&'static str>, bases: &[String], card_max_age: Duration) -> Agent {
        let dealers = bases.iter().map(|base| Dealer { base: base.clone(), ..Dealer::default() }).collect();
        Agent { name: name.to_owned(), flaw, dealers, count: 0, card_max_age }
    }

    fn breaks(&self, rule: &str) -> bool {
        self.flaw == Some(rule)
    }

    fn fresh(&mut self, kind: &str) -> String {
        self.count += 1;
        format!("{kind}-{}-{}", self.name.replace('.', "-"), self.count)
    }

    /// The whole journey: a first dealer with trouble of every kind, and a second one.
    pub fn shop(&mut self) {
        self.first_dealer();
        self.second_dealer();
        // Later on the card is looked at again.
        let age = self.dealers[0].card.as_ref().map_or(Duration::ZERO, |card| card.fetched.elapsed());
        sleep((self.card_max_age + Duration::from_millis(20)).saturating_sub(age));
        self.fetch_card(0);
        _ = self.search(0, json!({}), 0, 5);
    }

    fn first_dealer(&mut self) {
        if !self.breaks("discovery.card_first") {
            self.fetch_card(0);
        }
        if self.breaks("discovery.card_fresh") {
            self.fetch_card(0);
        }
        // The first attempt is one too many for this dealer.
        let (page, end) = self.search(0, json!({}), 0, 10).unwrap_or_default();
        self.look_around();
        let skip = if self.breaks("load.paging") { end + 3 } else { end };
        _ = self.search(0, json!({}), skip, 10);
        self.narrow();
        let known = |vehicle: &Value| vehicle["vin"].clone();
        let Some(first) = flaws::choose(&page, None) else { return };
        if self.vehicle(0, &first).is_err() {
            if self.breaks("retry.not_retryable") {
                _ = self.vehicle(0, &first);
            }
            if self.breaks("errors.unavailable_then_search") {
                _ = self.lead(0, &first, None);
                return;
            }
        }
        let filters = json!({ "condition": ["used", "cpo", "new"] });
        let (page, _) = self.search(0, filters, 0, 20).unwrap_or_default();
        let second = if self.breaks("listings.unknown_status") {
            page.into_iter().next()
        } else {
            let second = flaws::choose(&page, Some(&known(&first)));
            // Its first two attempts fail.
            second.and_then(|second| self.vehicle(0, &second).or(Ok::<_, Refusal>(second)).ok())
        };
        let Some(second) = second else { return };
        // The answer to the first attempt is lost.
        _ = self.lead(0, &second, None);
        let at = (Timestamp::now() + SignedDuration::from_hours(72)).strftime("%FT18:00:00Z").to_string();
        _ = self.lead(0, &second, Some(json!({ "appointment_type": "sales", "appointment_at": at })));
        if self.breaks("privacy.one_lead_per_intent") {
            _ = self.lead(0, &second, None);
        }
        self.odd_searches();
    }

    /// Two questions at a time.
    fn look_around(&mut self) {
        let kinds = ["dealer.information", "inventory.facets"];
        let both: Vec<_> = kinds
            .iter()
            .map(|kind| {
                let message_id = self.fresh("m");
                self.outgoing(0, &json!({ "type": format!("{kind}.request") }), &message_id)
            })
            .collect();
        std::thread::scope(|scope| {
            let name = &self.name;
            for outgoing in &both {
                scope.spawn(move || outgoing.send(name));
                // The second one comes while the first is on its way.
                sleep(Duration::from_millis(30));
            }
        });
    }

    /// A search that the dealer refuses for its filter, and goes through without it.
    fn narrow(&mut self) {
        let filters = json!({ "condition": ["used"], "mileage_max": 60_000 });
        if let Err(Refusal::Never(code)) = self.search(0, filters, 0, 10) {
            assert_eq!(code, "SCHEMA_VALIDATION_FAILED", "{}", self.name);
            _ = self.search(0, json!({ "condition": ["used"] }), 0, 10);
        }
    }

    /// What only broken agents do.
    fn odd_searches(&mut self) {
        let limit = 10;
        if self.breaks("load.no_stampede") {
            (0..6).for_each(|_| _ = self.search(0, json!({ "condition": ["cpo"] }), 0, limit));
        }
        if self.breaks("load.page_limit") {
            _ = self.search(0, json!({ "condition": ["new"] }), 0, 500);
        }
        let wrong = json!({ "year_min": "cheap", "price_max": -1 });
        let half = json!({ "year_min": 2015, "price_max": -1 });
        if self.breaks("errors.valid_payload") || self.breaks("errors.mended_at_once") {
            _ = self.search(0, wrong, 0, limit);
        }
        if self.breaks("errors.mended_at_once") {
            _ = self.search(0, half, 0, limit);
        }
        if self.breaks("errors.valid_payload") || self.breaks("errors.mended_at_once") {
            _ = self.search(0, json!({ "year_min": 2015, "price_max": 90_000 }), 0, limit);
        }
    }

    /// A dealer whose facets never come and whose listings are old.
    fn second_dealer(&mut self) {
        self.fetch_card(1);
        let Ok((page, _)) = self.search(1, json!({}), 0, 10) else { return };
        _ = self.ask(1, json!({ "type": "inventory.facets.request" }));
        let Some(vehicle) = flaws::choose(&page, None) else { return };
        if !self.breaks("listings.stale_rechecked") {
            _ = self.vehicle(1, &vehicle);
        }
        _ = self.lead(1, &vehicle, None);
    }

    /// A short visit to the first dealer, whatever goes wrong there: card, search, two looks at a vehicle and a lead.
    pub fn visit(&mut self) {
        self.fetch_card(0);
        let Ok((page, end)) = self.search(0, json!({}), 0, 10) else { return };
        _ = self.search(0, json!({}), end, 10);
        let Some(vehicle) = flaws::choose(&page, None) else { return };
        match self.vehicle(0, &vehicle) {
            Err(Refusal::Never(_)) => {
                _ = self.search(0, json!({ "condition": ["used"] }), 0, 10);
                return;
            }
            // It may have been sold since.
            Ok(vehicle) if flaws::choose(std::slice::from_ref(&vehicle), None).is_none() => return,
            _ => {}
        }
        _ = self.lead(0, &vehicle, None);
        _ = self.ask(0, json!({ "type": "dealer.information.request" }));
    }

    /// Fetches the card, again with what is known of the last one, until one can be used.
    pub fn fetch_card(&mut self, at: usize) {
        for attempt in 0..BUDGET {
            let dealer = &self.dealers[at];
            let mut headers = vec![("Accept", "application/json".to_owned())];
            let etag = dealer.card.as_ref().and_then(|card| card.etag.clone());
            if let Some(etag) = etag.filter(|_| !self.breaks("discovery.card_revalidated")) {
                headers.push(("If-None-Match", etag));
            }
            let url = format!("{}/.well-known/agent-card.json", dealer.base);
            let reply = Outgoing { method: "GET", url, headers, body: Value::Null }.send(&self.name);
            let dealer = &mut self.dealers[at];
            match reply {
                Some(reply) if reply.status == 304 => {
                    dealer.card.iter_mut().for_each(|card| card.fetched = Instant::now());
                    return;
                }
                Some(reply) if reply.status == 200 => {
                    if let Some(card) = usable(&dealer.base, &reply.body) {
                        let etag = header(&reply.head, "etag").map(str::to_owned);
                        dealer.card = Some(Card { etag, ..card });
                        return;
                    }
                }
                _ => {}
            }
            sleep(FIRST_WAIT * 2u32.pow(attempt));
        }
    }

    fn outgoing(&mut self, at: usize, payload: &Value, message_id: &str) -> Outgoing {
        self.count += 1;
        let dealer = &self.dealers[at];
        let (url, uri) = match &dealer.card {
            Some(card) => (card.url.clone(), card.uri.clone()),
            None => (format!("{}/a2a", dealer.base), flaws::URI.to_owned()),
        };
        let other = self.dealers[0].context.clone().filter(|_| at == 1 && dealer.context.is_none());
        let context = match self.flaw {
            Some("conversation.context_carried") => None,
            Some("conversation.context_of_other_dealer") if other.is_some() => other,
            Some("conversation.context_made_up") if dealer.context.is_some() => {
                Some(format!("mine-{message_id}"))
            }
            _ => dealer.context.clone(),
        };
        let mut outgoing = Outgoing::call(&url, &uri, self.count, message_id, context.as_deref(), payload);
        if let Some(flaw) = self.flaw {
            flaws::spoil_call(flaw, at, &mut outgoing);
        }
        outgoing
    }

    /// Asks until there is an answer, it is refused for good, or enough was tried.
    fn ask(&mut self, at: usize, mut payload: Value) -> Result<Answer, Refusal> {
        let is_lead = payload["type"] == "lead.submit.request";
        let budget = if self.breaks("retry.retry_budget") { 9 } else { BUDGET };
        let mut message_id = self.fresh("m");
        let mut wait = if self.breaks("retry.back_off_grows") { FIRST_WAIT * 10 } else { FIRST_WAIT };
        for attempt in 1.. {
            let outgoing = self.outgoing(at, &payload, &message_id);
            let refusal = match read(&outgoing, outgoing.send(&self.name)) {
                Ok(answer) => {
                    let context = answer.context.clone();
                    self.dealers[at].context = context.or(self.dealers[at].context.take());
                    return Ok(answer);
                }
                Err(refusal) => refusal,
            };
            // Without a key nobody knows whether a lead that was lost has been stored.
            let is_safe = !is_lead || payload["idempotency_key"].is_string();
            let gives_up =
                self.breaks("retry.retryable_is_retried") && matches!(refusal, Refusal::Later(None));
            match &refusal {
                Refusal::Never(_) => return Err(refusal),
                _ if attempt == budget || !is_safe || gives_up => return Err(refusal),
                Refusal::Later(Some(hint)) if self.breaks("retry.wait_for_hint") => sleep(*hint / 4),
                Refusal::Later(Some(hint)) => sleep(*hint + Duration::from_millis(5)),
                Refusal::Later(None) | Refusal::Lost => {
                    let began = Instant::now();
                    if !self.breaks("retry.back_off") {
                        sleep(wait);
                    }
                    // Growing from what was really waited.
                    wait = match self.flaw {
                        Some("retry.back_off_grows") => FIRST_WAIT,
                        _ => (began.elapsed() * 2).min(LONGEST_WAIT),
                    };
                }
            }
            if is_lead && self.flaw.is_some_and(|flaw| flaws::spoil_retry(flaw, attempt, &mut payload)) {
                message_id = self.fresh("m");
            }
        }
        unreachable!("attempts end")
    }

    /// A page: its vehicles, and where the next one begins.
    fn search(
        &mut self,
        at: usize,
        filters: Value,
        skip: u64,
        limit: u64,
    ) -> Result<(Vec<Value>, u64), Refusal> {
        let mut payload = json!({
            "type": "inventory.search.request", "filters": filters, "pagination": { "skip": skip, "limit": limit },
            "privacy": { "anonymous": true },
        });
        if self.breaks("privacy.anonymous_search") {
            payload.as_object_mut().unwrap().remove("privacy");
        }
        let answer = self.ask(at, payload)?;
        let end = skip + answer.data["limit"].as_u64().unwrap_or(limit);
        Ok((answer.data["vehicles"].as_array().cloned().unwrap_or_default(), end))
    }

    fn vehicle(&mut self, at: usize, vehicle: &Value) -> Result<Value, Refusal> {
        Ok(self.ask(at, json!({ "type": "inventory.vehicle.request", "vin": vehicle["vin"] }))?.data)
    }

    fn lead(&mut self, at: usize, vehicle: &Value, appointment: Option<Value>) -> Result<Answer, Refusal> {
        let now = Timestamp::now();
        let key = self.fresh("k");
        let mut lead = json!({
            "type": "lead.submit.request", "idempotency_key": key, "submitted_at": now.to_string(),
            "customer": {
                "first_name": "Anna", "last_name": "Lee", "email": format!("{}@example.com", self.name),
                "preferred_contact": "email",
            },
            "consent": {
                "granted_at": (now - SignedDuration::from_mins(1)).to_string(),
                "expires_at": (now + SignedDuration::from_hours(24)).to_string(),
                "allowed_channels": ["email"], "scope": ["lead_submission"],
                "consent_text": "You may pass my name and e-mail address on to this dealer.",
            },
            "vehicle_of_interest": { "vin": vehicle["vin"] },
            "source_agent": { "name": "model agent" },
        });
        if let Some(price) = vehicle["price"].as_u64() {
            lead["message"] = format!("Is ${price} the last word?").into();
        }
        if let Some(appointment) = appointment {
            lead["appointment"] = appointment;
        }
        if let Some(flaw) = self.flaw {
            flaws::spoil_lead(flaw, now, vehicle, &mut lead);
        }
        self.ask(at, lead)
    }
}

/// What is needed of a card, if it has it: a JSONRPC interface of A2A 1.0 at the card's own origin, and an AAP entry.
fn usable(base: &str, text: &str) -> Option<Card> {
    let card: Value = serde_json::from_str(text).ok()?;
    let interfaces = card["supportedInterfaces"].as_array()?;
    let ours = interfaces
        .iter()
        .find(|face| face["protocolBinding"] == "JSONRPC" && face["protocolVersion"] == "1.0")?;
    let url = ours["url"].as_str().filter(|url| url.starts_with(base))?.to_owned();
    let entries = card["capabilities"]["extensions"].as_array()?;
    let uri = entries.iter().filter_map(|entry| entry["uri"].as_str()).find(|uri| *uri == flaws::URI)?;
    card["skills"].as_array().filter(|skills| !skills.is_empty())?;
    Some(Card { url, uri: uri.to_owned(), etag: None, fetched: Instant::now() })
}
