//! A conversation as the journal keeps it, good unless a test spoils it.

use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::super::{Judge, Status};
use crate::journal::{Delivered, DeliveryState, Entry, Head, Outcome, Said, Sent};
use crate::protocol::Skill;
use crate::protocol::error::AapCode;

const SECOND: u64 = 1_000_000_000;

/// A conversation that grows by a second with each request.
#[derive(Default)]
pub(super) struct Talk {
    pub(super) entries: Vec<Entry>,
    ns: u64,
}

fn said(body: String) -> Said {
    Said { bytes: body.len() as u64, body, truncated: false, lossy: false }
}

impl Talk {
    fn push(&mut self, method: &str, skill: Option<Skill>, body: String) -> &mut Talk {
        self.ns += SECOND;
        self.entries.push(Entry {
            seq: self.entries.len() as u64 + 1,
            at: "2026-01-01T12:00:00.000Z".to_owned(),
            traffic_ns: self.ns,
            dealer: "metro".to_owned(),
            client: "agent".to_owned(),
            connection: 1,
            ordinal: 1,
            head: Head { version: Sent::Right, extension: Sent::Right, conditional: false },
            binding: Some(crate::protocol::Binding::A2a),
            skill,
            method: Some(method.to_owned()),
            conversation: skill.map(|_| "ctx-metro".to_owned()),
            message_id: None,
            key: None,
            attempt: None,
            request: said(body),
            outcome: Outcome::Ok,
            http_status: Some(200),
            reply: said(String::new()),
            faults: Vec::new(),
            delivered: Delivered { bytes: 100, state: DeliveryState::Complete, ms: 1.0 },
        });
        self
    }

    pub(super) fn last(&mut self) -> &mut Entry {
        self.entries.last_mut().unwrap()
    }

    pub(super) fn card(&mut self) -> &mut Talk {
        self.http("GET /.well-known/agent-card.json", 200)
    }

    pub(super) fn http(&mut self, method: &str, status: u16) -> &mut Talk {
        self.push(method, None, String::new());
        self.last().outcome = Outcome::Http(status);
        self
    }

    pub(super) fn call(&mut self, skill: Skill, mut payload: Value) -> &mut Talk {
        payload["type"] = skill.request_type().into();
        let n = self.entries.len();
        let mut message = json!({
            "messageId": format!("m-{n}"), "role": "ROLE_USER",
            "parts": [{ "mediaType": skill.request_media_type(), "data": payload }],
        });
        if self.entries.iter().any(|entry| entry.conversation.is_some()) {
            message["contextId"] = "ctx-metro".into();
        }
        let request = json!({
            "jsonrpc": "2.0", "id": n, "method": "SendMessage", "params": {
                "message": message, "configuration": { "acceptedOutputModes": [skill.response_media_type()] },
            },
        });
        self.push("SendMessage", Some(skill), request.to_string());
        self.replies(&json!({}))
    }

    pub(super) fn replies(&mut self, data: &Value) -> &mut Talk {
        let reply = json!({ "jsonrpc": "2.0", "id": 1, "result": { "message": { "parts": [{ "data": { "data": data } }] } } });
        self.last().reply = said(reply.to_string());
        self
    }

    pub(super) fn search(&mut self) -> &mut Talk {
        self.page(0)
    }

    pub(super) fn page(&mut self, skip: u64) -> &mut Talk {
        self.call(
            Skill::InventorySearch,
            json!({ "pagination": { "skip": skip, "limit": 20 }, "privacy": { "anonymous": true } }),
        );
        let n = self.entries.len();
        self.replies(
            &json!({ "total": 90, "skip": skip, "limit": 20, "vehicles": [vehicle(&format!("N{n}"))] }),
        )
    }

    /// A search of its own kind.
    pub(super) fn filtered(&mut self, kind: u64) -> &mut Talk {
        let filters = json!({ "price_max": kind });
        self.call(
            Skill::InventorySearch,
            json!({ "filters": filters, "pagination": { "limit": 20 }, "privacy": { "anonymous": true } }),
        );
        self.replies(&json!({ "limit": 20, "vehicles": [] }))
    }

    pub(super) fn lead(&mut self, vin: &str) -> &mut Talk {
        let n = self.entries.len();
        self.call(
            Skill::LeadSubmit,
            json!({
                "idempotency_key": format!("k-{n}"), "source_agent": { "name": "agent" }, "vehicle_of_interest": { "vin": vin },
                "customer": { "first_name": "Anna", "last_name": "Lee", "email": "anna@example.com", "preferred_contact": "email" },
                "consent": { "granted_at": "2026-01-01T11:59:00Z", "allowed_channels": ["email"], "consent_text": "I agree.",
                    "scope": ["lead_submission"] },
            }),
        )
    }

    /// Card, search, lead: what most tests begin or end with.
    pub(super) fn opened(&mut self) -> &mut Talk {
        self.card().search()
    }

    /// The last request fails with an AAP error.
    pub(super) fn fails(&mut self, code: AapCode, retryable: bool, details: &Value) -> &mut Talk {
        let data =
            json!([{ "type": "aap.error", "code": code.name(), "retryable": retryable, "details": details }]);
        let reply = json!({ "jsonrpc": "2.0", "id": 1, "error": { "code": -32000, "data": data } });
        self.last().outcome = Outcome::Aap(code);
        self.last().reply = said(reply.to_string());
        self
    }

    pub(super) fn invalid(&mut self, places: &[&str]) -> &mut Talk {
        let errors: Vec<_> = places.iter().map(|place| json!({ "instanceLocation": place })).collect();
        self.fails(AapCode::SchemaValidationFailed, false, &json!({ "errors": errors }))
    }

    /// Changes the last request.
    pub(super) fn edit(&mut self, change: impl FnOnce(&mut Value)) -> &mut Talk {
        let mut request: Value = serde_json::from_str(&self.last().request.body).unwrap();
        change(&mut request);
        self.last().request = said(request.to_string());
        self
    }

    pub(super) fn edit_message(&mut self, change: impl FnOnce(&mut Value)) -> &mut Talk {
        self.edit(|request| change(&mut request["params"]["message"]))
    }

    pub(super) fn edit_payload(&mut self, change: impl FnOnce(&mut Value)) -> &mut Talk {
        self.edit_message(|message| change(&mut message["parts"][0]["data"]))
    }

    /// Sends the last request again, with a new id and, unless it is to be the same, a new messageId.
    pub(super) fn again(&mut self, after_ms: u64, same_message: bool) -> &mut Talk {
        let mut entry = self.last().clone();
        let seq = entry.seq + 1;
        self.ns += after_ms * 1_000_000 + 1_000_000;
        entry.seq = seq;
        entry.traffic_ns = self.ns;
        entry.outcome = Outcome::Ok;
        entry.delivered.state = DeliveryState::Complete;
        self.entries.push(entry);
        self.replies(&json!({}));
        self.edit(|request| {
            request["id"] = seq.into();
            if !same_message {
                request["params"]["message"]["messageId"] = format!("m-again-{seq}").into();
            }
        })
    }

    pub(super) fn judge(&self) -> Judge {
        let mut judge = Judge::default();
        self.entries.iter().for_each(|entry| judge.hear(entry));
        judge
    }

    pub(super) fn with(&self, status: Status) -> BTreeSet<&'static str> {
        let report = self.judge().report(None);
        let rules = report.clients.iter().flat_map(|client| &client.rules);
        rules.filter(|rule| rule.status == status).map(|rule| rule.rule.id).collect()
    }
}

pub(super) fn vehicle(vin: &str) -> Value {
    json!({ "vin": vin, "status": "available", "price": 20_000, "list_price": 19_000, "updated_at": "2026-01-01T06:00:00Z" })
}
