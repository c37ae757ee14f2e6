//! Sends the suite's requests, one at a time, each on a connection of its own: the only part that acts.

use std::time::Duration;

use dealer_sim::protocol::{Contract, Skill};
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::evidence::{Answer, CardSeen, Exchange, Unanswered, holds_document, read};
use super::request::{Draft, Names, Probe, lead, ordinary};
use crate::endpoint::Endpoint;
use crate::envelope::own_lines;
use crate::pacer::{Clock, Nanos};
use crate::scenario::agent;
use crate::transport::{Address, Client, Config, Fault, Options, PrepareError};
use crate::units;

/// So many calls in a row without any reply end the survey.
const UNANSWERED: usize = 4;
/// Waits that a dealer asks for are kept to in all up to this long; then its limits stand in the way.
const PATIENCE: Duration = Duration::from_secs(10);
/// Times that one call is repeated because of a limit.
const REPEATS: usize = 3;
/// So many of the first replies are listened on after, up to this long and for this many bytes: whether anything follows.
const LISTENED: usize = 3;
const LINGER: Duration = Duration::from_millis(200);
const BEHIND: usize = 64 * 1024;
/// Replies kept, in bytes; what comes beyond is not asked for.
const MEMORY: usize = 256 * 1024 * 1024;

/// Sends requests to one dealer and keeps what comes back.
#[derive(Debug)]
pub(super) struct Caller<'a> {
    endpoint: &'a Endpoint,
    own_lines: String,
    client: Client,
    clock: Clock,
    deadline: Nanos,
    patience: Duration,
    unanswered: usize,
    kept: usize,
    number: u64,
    listened: usize,
    tag: String,
    /// What time it is for the dealer, as far as is known.
    dealer_time: Timestamp,
    pub(super) exchanges: Vec<Exchange>,
    pub(super) stopped: Option<String>,
}

impl<'a> Caller<'a> {
    pub(super) async fn prepare(
        endpoint: &'a Endpoint,
        options: &Options,
        clock: Clock,
        deadline: Nanos,
    ) -> Result<Caller<'a>, PrepareError> {
        let config = Config::prepare(&endpoint.address, options).await?;
        Ok(Caller {
            endpoint,
            own_lines: own_lines(&options.headers),
            client: Client::new(config, clock, 1, 0),
            clock,
            deadline,
            patience: PATIENCE,
            unanswered: 0,
            kept: 0,
            number: 0,
            listened: 0,
            // Keys and customers of two runs must differ, or a dealer takes the second for the first.
            tag: format!("{:x}", clock.started().as_microsecond()),
            dealer_time: clock.started(),
            exchanges: Vec::new(),
            stopped: None,
        })
    }

    /// Takes note of when listings were last updated. A dealer says so once a business day (AAP digest, section f); one whose
    /// newest word is weeks old lives in another time, as a test system with a frozen clock does, and a consent given today would be
    /// given in its future.
    pub(super) fn note_updates(&mut self, vehicles: &[Value]) {
        const WEEKS: SignedDuration = SignedDuration::from_hours(14 * 24);
        let updates = vehicles.iter().filter_map(|vehicle| vehicle["updated_at"].as_str()?.parse().ok());
        let started = self.clock.started();
        if let Some(newest) =
            updates.max().filter(|newest: &Timestamp| started.duration_since(*newest) > WEEKS)
        {
            self.dealer_time = newest;
        }
    }

    pub(super) fn contract(&self) -> Contract {
        self.endpoint.contract
    }

    /// What makes this run's keys its own.
    pub(super) fn tag(&self) -> &str {
        &self.tag
    }

    /// A lead that a dealer takes, of a customer of its own.
    pub(super) fn lead(&self, of: &str) -> Value {
        // A little in the past: clocks differ.
        let granted = self.dealer_time - SignedDuration::from_secs(3600);
        let granted = granted.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let mut lead = lead(&granted, &format!("{of}-{}", self.tag));
        if self.endpoint.contract.features.agent_as_text {
            agent::as_text(&mut lead, false);
        }
        lead
    }

    fn draft(&mut self, skill: Skill, payload: Value) -> Draft {
        self.number += 1;
        let (id, message_id) =
            (format!("conform-{}", self.number), format!("m-{}-{}", self.tag, self.number));
        let uri = self.endpoint.contract.extension_uri;
        ordinary(skill, payload, &id, &message_id, uri, self.endpoint.tenant.as_deref())
    }

    /// An ordinary call, in this conversation if one is given.
    pub(super) async fn call(&mut self, label: &str, skill: Skill, payload: Value, context: Option<&str>) {
        let mut draft = self.draft(skill, payload);
        if let Some(context) = context {
            draft.envelope["params"]["message"]["contextId"] = context.into();
        }
        self.send(label, draft, true).await;
    }

    /// A call that may be refused as such: the skill of another id than the five.
    pub(super) async fn call_other(&mut self, label: &str, skill_id: &str) {
        let mut draft = self.draft(Skill::DealerInformation, Value::Object(serde_json::Map::new()));
        draft.envelope["params"]["message"]["parts"][0] =
            serde_json::json!({ "data": { "type": format!("{skill_id}.request") } });
        if let Some(params) = draft.envelope["params"].as_object_mut() {
            params.remove("configuration");
        }
        self.send(label, draft, false).await;
    }

    /// The probe of a rule.
    pub(super) async fn probe(&mut self, rule: &str, probe: &Probe, names: &Names) {
        let payload = match probe.skill() {
            Skill::LeadSubmit => self.lead(rule.trim_start_matches("lead.")),
            _ => Value::Object(serde_json::Map::new()),
        };
        let draft = self.draft(probe.skill(), payload).with(probe, names);
        self.send(rule, draft, false).await;
    }

    /// The last exchange.
    pub(super) fn last(&self) -> Option<&Exchange> {
        self.exchanges.last()
    }

    async fn send(&mut self, label: &str, draft: Draft, is_ordinary: bool) {
        if self.stopped.is_some() {
            return;
        }
        let target = &self.endpoint.address;
        let bytes = draft.bytes(&target.target, &target.authority, &self.own_lines);
        let mut answer = self.exchange(&bytes).await;
        for _ in 0..REPEATS {
            let Some(wait) = answer.as_ref().ok().and_then(asked_wait).filter(|wait| *wait <= self.patience)
            else {
                break;
            };
            let until = self.clock.now() + units::nanos(wait);
            if until >= self.deadline {
                break;
            }
            self.patience -= wait;
            self.clock.sleep_until(until).await;
            answer = self.exchange(&bytes).await;
        }
        self.unanswered = if answer.is_err() { self.unanswered + 1 } else { 0 };
        self.kept += answer.as_ref().map_or(0, |answer| answer.body.len());
        if self.unanswered >= UNANSWERED {
            self.stopped = Some(format!("{UNANSWERED} calls in a row got no reply, so no more were made"));
        } else if self.kept > MEMORY {
            self.stopped =
                Some(format!("the replies exceed {} MiB, so no more were asked for", MEMORY >> 20));
        } else if self.clock.now() >= self.deadline {
            self.stopped = Some("the time of --timeout is over".to_owned());
        }
        let sent = draft.body.as_ref().map_or_else(|| draft.envelope.clone(), |_| Value::Null);
        let message =
            |name: &str| Some(sent.pointer(&format!("/params/message/{name}"))?.as_str()?.to_owned());
        let payload = sent.pointer("/params/message/parts/0/data").cloned().unwrap_or_default();
        self.exchanges.push(Exchange {
            label: label.to_owned(),
            contract: self.endpoint.contract,
            skill: Some(draft.skill),
            is_ordinary,
            id: sent.get("id").filter(|id| id.is_string() || id.is_number()).cloned(),
            message_id: message("messageId"),
            context_id: message("contextId"),
            payload,
            sent: draft.told(self.endpoint.contract.extension_uri),
            answer,
        });
    }

    async fn exchange(&mut self, bytes: &[u8]) -> Result<Answer, Unanswered> {
        let mut connection = self.client.acquire().await?;
        let exchange = self.client.exchange(&mut connection, bytes).await;
        // The server was asked to close: what else it has to say comes at once.
        if exchange.reply.as_ref().is_err_and(|fault| *fault == Fault::TooLarge) || self.listened < LISTENED {
            self.listened += 1;
            connection.receive_rest(LINGER, BEHIND).await;
        }
        let span = match exchange.reply {
            Ok(span) => span,
            Err(fault) => return Err(Unanswered { fault, document: holds_document(connection.received()) }),
        };
        let behind = connection.received().get(span.end()..).unwrap_or_default();
        let behind = behind[..behind.len().min(BEHIND)].to_vec();
        let reply = connection.reply(&span);
        let header = |name: &str| reply.header(name).map(str::to_owned);
        Ok(Answer {
            status: reply.status,
            content_type: header("content-type"),
            content_encoding: header("content-encoding"),
            begins_well: reply.begins_well(),
            behind,
            echo: header("a2a-extensions"),
            body: reply.body.to_vec(),
            json: read(reply.body),
        })
    }
}

/// The wait that a RATE_LIMITED asks for.
fn asked_wait(answer: &Answer) -> Option<Duration> {
    let json = answer.json.as_ref().ok()?;
    let data = json.pointer("/error/data")?;
    // One entry among others, or alone.
    let mut entries = data.as_array().map_or(std::slice::from_ref(data), Vec::as_slice).iter();
    let entry = entries.find(|entry| entry.get("code").and_then(Value::as_str) == Some("RATE_LIMITED"))?;
    let hint = |name: &str| entry.get("details")?.get(name)?.as_f64();
    let millis =
        hint("retry_after_ms").or_else(|| hint("retry_after_seconds").map(|seconds| seconds * 1e3))?;
    Duration::try_from_secs_f64(millis.max(1.0) / 1e3).ok()
}

/// Fetches the card, and once more with its ETag.
pub(super) async fn fetch_card(
    address: &Address,
    options: &Options,
) -> Result<(CardSeen, Option<String>), CardError> {
    let config = Config::prepare(address, options).await?;
    let client = Client::new(config, Clock::starting_in(Duration::ZERO), 1, 0);
    let (card, server) = fetch(&client, address, options, None).await?;
    let again = match &card.etag {
        Some(etag) => {
            let again = fetch(&client, address, options, Some(etag)).await.ok();
            again.map(|(again, _)| (again.status, again.etag))
        }
        None => None,
    };
    Ok((CardSeen { again, ..card }, server))
}

/// Why there is no card.
#[derive(Debug, thiserror::Error)]
pub(super) enum CardError {
    #[error(transparent)]
    Prepare(#[from] PrepareError),
    #[error("{0}")]
    Unreached(Fault),
}

impl From<Fault> for CardError {
    fn from(fault: Fault) -> CardError {
        CardError::Unreached(fault)
    }
}

async fn fetch(
    client: &Client,
    address: &Address,
    options: &Options,
    etag: Option<&str>,
) -> Result<(CardSeen, Option<String>), CardError> {
    let condition = etag.map_or_else(String::new, |etag| format!("If-None-Match: {etag}\r\n"));
    let request = format!(
        "GET {} HTTP/1.1\r\nHost: {}\r\n{}{condition}Connection: close\r\n\r\n",
        address.target,
        address.authority,
        own_lines(&options.headers)
    );
    let mut connection = client.acquire().await?;
    let span = client.exchange(&mut connection, request.as_bytes()).await.reply?;
    let reply = connection.reply(&span);
    let header = |name: &str| reply.header(name).map(str::to_owned);
    let card = CardSeen {
        url: address.to_string(),
        status: reply.status,
        content_type: header("content-type"),
        etag: header("etag"),
        cache_control: header("cache-control"),
        body: reply.body.to_vec(),
        json: read(reply.body),
        again: None,
    };
    Ok((card, header("server")))
}
