//! A buyer: leaves leads, asks again under the same key until it has an answer, and looks around between them.

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use dealer_loadgen::outcome::{Expectation, Outcome, classify};
use dealer_loadgen::transport::Content;
use dealer_sim::protocol::{Contract, Skill};
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _, DuplexStream};

use super::checks::Log;
use super::network::Network;

/// How long a reply is waited for.
const PATIENCE: Duration = Duration::from_millis(300);
/// Attempts at one lead, after which the buyer gives up.
const MOST_ATTEMPTS: u32 = 100;

pub(crate) struct Buyer {
    number: u32,
    random: ChaCha8Rng,
    network: Rc<Network>,
    log: Rc<RefCell<Log>>,
    connection: Option<DuplexStream>,
    /// The inside of the JSON string.
    context_id: Option<String>,
    calls: u64,
}

impl Buyer {
    pub(crate) fn new(number: u32, seed: u64, network: Rc<Network>, log: Rc<RefCell<Log>>) -> Buyer {
        let random = ChaCha8Rng::seed_from_u64(seed);
        Buyer { number, random, network, log, connection: None, context_id: None, calls: 0 }
    }

    pub(crate) async fn shop(mut self, leads: u32) {
        for lead in 0..leads {
            if self.random.random_ratio(1, 3) {
                self.ask(Skill::InventorySearch, json!({ "type": "inventory.search.request" })).await;
            }
            // Sometimes two buyers share a key: one customer, two of their agents.
            let owner = if self.random.random_ratio(1, 5) { 0 } else { self.number };
            let key = format!("buyer-{owner}-lead-{lead}");
            self.log.borrow_mut().sent.insert(key.clone());
            let payload = json!({
                "type": "lead.submit.request",
                "customer": { "first_name": "Anna", "last_name": "Lee", "email": "anna@example.com" },
                "consent": { "granted_at": "2026-01-01T00:00:00Z", "allowed_channels": ["email"], "consent_text": "I agree.",
                    "scope": ["lead_submission"] },
                "source_agent": { "name": "simulation" },
                "idempotency_key": key,
            });
            for _ in 0..MOST_ATTEMPTS {
                if let Some(reply) = self.ask(Skill::LeadSubmit, payload.clone()).await {
                    let lead_id = reply["result"]["message"]["parts"][0]["data"]["data"]["lead_id"].as_str();
                    self.log.borrow_mut().acknowledge(&key, lead_id.unwrap_or_default());
                    break;
                }
                let pause = self.random.random_range(5..150);
                tokio::time::sleep(Duration::from_millis(pause)).await;
            }
        }
    }

    /// The reply to one call, if a good one came in time.
    async fn ask(&mut self, skill: Skill, payload: Value) -> Option<Value> {
        self.calls += 1;
        let (id, message_id) = (self.calls.to_string(), format!("m-{}-{}", self.number, self.calls));
        let mut message = json!({
            "messageId": message_id, "role": "ROLE_USER",
            "parts": [{
                "data": payload,
                "mediaType": format!("application/vnd.autoagent.{}-request+json", skill.id().replace('.', "-")),
            }],
        });
        if let Some(context_id) = &self.context_id {
            message["contextId"] = context_id.as_str().into();
        }
        let call = json!({ "jsonrpc": "2.0", "id": self.calls, "method": "SendMessage", "params": { "message": message } });
        self.log.borrow_mut().attempts += 1;
        let body = match tokio::time::timeout(PATIENCE, self.exchange(&call.to_string())).await {
            Ok(Ok(body)) => body,
            _ => {
                self.connection = None;
                return None;
            }
        };
        if self.random.random_ratio(1, 4) {
            self.connection = None;
        }
        let expected = Expectation {
            binding: dealer_sim::protocol::Binding::A2a,
            id: id.as_bytes(),
            message_id: message_id.as_bytes(),
            context_id: self.context_id.as_deref().map(str::as_bytes),
            skill,
            contract: Contract::V3_0,
        };
        let (outcome, context_id) = classify(200, Content::Json, &body, &expected);
        let mut log = self.log.borrow_mut();
        log.replies += 1;
        *log.outcomes.entry(outcome.label().into_owned()).or_default() += 1;
        match outcome {
            Outcome::Ok => {
                let context_id = String::from_utf8(context_id.unwrap_or_default().to_vec()).unwrap();
                log.note_context(&context_id, self.number);
                self.context_id = Some(context_id);
                serde_json::from_slice(&body).ok()
            }
            // The lead could not be written down: not now, but perhaps later.
            Outcome::Aap(code) if &*code == "INTERNAL_ERROR" => None,
            other => {
                let told = String::from_utf8_lossy(&body).into_owned();
                log.wrong.push(format!("buyer {} got {}: {told}", self.number, other.label()));
                None
            }
        }
    }

    async fn exchange(&mut self, body: &str) -> std::io::Result<Vec<u8>> {
        let mut stream = match self.connection.take() {
            Some(stream) => stream,
            None => self.network.connect().await?,
        };
        let request = format!(
            "POST /a2a HTTP/1.1\r\nHost: dealer.test\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
            body.len()
        );
        stream.write_all(request.as_bytes()).await?;
        let mut reply = Vec::new();
        let (start, length) = loop {
            if stream.read_buf(&mut reply).await? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
            let Some(end) = reply.windows(4).position(|four| four == b"\r\n\r\n") else { continue };
            let head = String::from_utf8_lossy(&reply[..end]).to_lowercase();
            let length =
                head.lines().find_map(|line| line.strip_prefix("content-length: ")?.parse::<usize>().ok());
            break (end + 4, length.unwrap_or(0));
        };
        while reply.len() < start + length {
            if stream.read_buf(&mut reply).await? == 0 {
                return Err(std::io::ErrorKind::UnexpectedEof.into());
            }
        }
        self.connection = Some(stream);
        Ok(reply.split_off(start))
    }
}
