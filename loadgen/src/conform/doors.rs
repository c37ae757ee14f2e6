//! Knocks at the doors that the card links beside A2A: the documents, and PAP. The other part of the suite that acts.

use std::time::Duration;

use dealer_sim::protocol::{Skill, pap};
use serde_json::{Value, json};

use super::evidence::Evidence;
use super::knock::{Came, Knock};
use crate::endpoint::skills_of;
use crate::envelope::{may_hold_secrets, own_lines};
use crate::pacer::{Clock, Nanos};
use crate::transport::{Address, Client, Config, Options};

/// So many knocks in a row without any reply end the visit.
const UNANSWERED: usize = 4;
/// A session that no dealer can have issued: one that uses no sessions reads past it.
const SESSION: &str = "not.a.session";

/// Knocks. `lead` is the first lead that was sent by A2A, with its key.
pub(super) async fn visit(options: &Options, clock: Clock, deadline: Nanos, seen: &mut Evidence) {
    let Some(card) = seen.card.as_ref().and_then(|card| Address::parse(&card.url).ok()) else { return };
    if seen.stopped.is_some() {
        return;
    }
    let params = params(seen).cloned().unwrap_or_default();
    let mut visitor = Visitor { options, clock, deadline, card, unanswered: 0, knocks: Vec::new() };
    let poppy = visitor.fetch("doc.poppy", link(&params, "/pap/discovery_url")).await;
    visitor.fetch("doc.llms", link(&params, "/llms/url")).await;
    if poppy.is_some() {
        let elsewhere = visitor.card.with_target("/.well-known/oauth-protected-resource");
        visitor.fetch("doc.oauth", Some(elsewhere)).await;
    }
    let openapi = link(&params, "/pap/openapi_url");
    let document = visitor.fetch("doc.openapi", openapi.clone()).await;
    let found = openapi.zip(document).and_then(|(address, document)| skills_of(&address, &document).ok());
    if let Some((base, paths)) = found {
        knock_at_pap(&mut visitor, &base, &paths, seen).await;
    }
    seen.knocks = visitor.knocks;
}

/// The params of the card's AAP entry.
pub(super) fn params(seen: &Evidence) -> Option<&Value> {
    let extensions = seen.card.as_ref()?.card()?.pointer("/capabilities/extensions")?.as_array()?;
    let entry = extensions.iter().find(|entry| entry["uri"] == seen.contract.extension_uri)?;
    entry.get("params")
}

fn link(params: &Value, pointer: &str) -> Option<Address> {
    Address::parse(params.pointer(pointer)?.as_str()?).ok()
}

async fn knock_at_pap(
    visitor: &mut Visitor<'_>,
    base: &Address,
    paths: &[String; Skill::ALL.len()],
    seen: &Evidence,
) {
    let at = |skill: Skill| base.with_target(&paths[skill as usize]);
    let ask = |skill: Skill, mut members: Value| {
        members["type"] = json!(skill.request_type());
        members.to_string()
    };
    let search = Skill::InventorySearch;
    let page = ask(search, json!({ "pagination": { "skip": 0, "limit": 20 } }));
    let json = [("Content-Type", pap::JSON)];
    let information = ask(Skill::DealerInformation, json!({}));
    visitor
        .post("pap.information", Skill::DealerInformation, &at(Skill::DealerInformation), &json, &information)
        .await;
    visitor.post("pap.search", search, &at(search), &json, &page).await;
    visitor
        .post(
            "pap.facets",
            Skill::InventoryFacets,
            &at(Skill::InventoryFacets),
            &json,
            &ask(Skill::InventoryFacets, json!({})),
        )
        .await;
    let vin =
        seen.listings().find_map(|(_, vehicle)| vehicle.get("vin").filter(|vin| vin.is_string())).cloned();
    if let Some(vin) = vin {
        let vehicle = Skill::InventoryVehicle;
        visitor.post("pap.vehicle", vehicle, &at(vehicle), &json, &ask(vehicle, json!({ "vin": vin }))).await;
    }
    let wrong = ask(search, json!({ "filters": 7 }));
    for (label, headers, body) in [
        ("pap.accept-any", vec![json[0], ("Accept", "*/*")], page.as_str()),
        ("pap.session", vec![json[0], ("Poppy-Session", SESSION)], &page),
        ("pap.invalid", json.to_vec(), &wrong),
        ("pap.other-type", json.to_vec(), &information),
        ("pap.not-json", json.to_vec(), "{"),
        ("pap.content-type", vec![("Content-Type", "text/plain")], &page),
        ("pap.accept", vec![json[0], ("Accept", "text/html")], &page),
    ] {
        visitor.post(label, search, &at(search), &headers, body).await;
    }
    visitor.get("pap.method", Some(search), &at(search)).await;
    let unknown = ask(Skill::InventoryVehicle, json!({ "vin": "0ABCDEFGH00000000" }));
    visitor
        .post("pap.unknown-vehicle", Skill::InventoryVehicle, &at(Skill::InventoryVehicle), &json, &unknown)
        .await;
    let first = seen.of("lead.received").map(|exchange| exchange.payload.clone());
    if let Some(lead) = first.filter(|_| seen.leads) {
        let skill = Skill::LeadSubmit;
        // The payload of A2A, key and all, through another door: no second lead.
        visitor.post("pap.lead", skill, &at(skill), &json, &lead.to_string()).await;
        let mut without = lead;
        if let Some(members) = without.as_object_mut() {
            members.remove("consent");
            members.remove("idempotency_key");
        }
        visitor.post("pap.consent", skill, &at(skill), &json, &without.to_string()).await;
    }
}

/// Who knocks, each time on a connection of its own.
struct Visitor<'v> {
    options: &'v Options,
    clock: Clock,
    deadline: Nanos,
    card: Address,
    unanswered: usize,
    knocks: Vec<Knock>,
}

impl Visitor<'_> {
    /// Fetches a document; gives what it is, if it is JSON.
    async fn fetch(&mut self, label: &'static str, address: Option<Address>) -> Option<Value> {
        self.get(label, None, &address?).await;
        let last = self.knocks.last().filter(|knock| knock.label == label)?;
        last.answer.as_ref().ok().filter(|came| came.status == 200)?.json.clone()
    }

    async fn get(&mut self, label: &'static str, skill: Option<Skill>, address: &Address) {
        self.send(label, skill, "GET", address, &[], "").await;
    }

    async fn post(
        &mut self,
        label: &'static str,
        skill: Skill,
        address: &Address,
        headers: &[(&str, &str)],
        body: &str,
    ) {
        self.send(label, Some(skill), "POST", address, headers, body).await;
    }

    async fn send(
        &mut self,
        label: &'static str,
        skill: Option<Skill>,
        method: &str,
        address: &Address,
        headers: &[(&str, &str)],
        body: &str,
    ) {
        let is_over = self.unanswered >= UNANSWERED || self.clock.now() >= self.deadline;
        // Credentials are for the card's origin alone.
        let is_foreign = address.origin() != self.card.origin() && may_hold_secrets(&self.options.headers);
        if is_over || is_foreign {
            return;
        }
        let own = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned()));
        let lines: Vec<_> = self.options.headers.iter().cloned().chain(own).collect();
        let request = format!(
            "{method} {} HTTP/1.1\r\nHost: {}\r\n{}Accept-Encoding: identity\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
            address.target,
            address.authority,
            own_lines(&lines),
            body.len()
        );
        let told: Vec<_> = headers.iter().map(|(name, value)| format!("{name}: {value}")).collect();
        let sent = format!("{method} {address} | {} | {body}", told.join(" | "));
        let answer = self.exchange(address, request.as_bytes()).await;
        self.unanswered = if answer.is_err() { self.unanswered + 1 } else { 0 };
        self.knocks.push(Knock { label, skill, sent, answer });
    }

    async fn exchange(&self, address: &Address, request: &[u8]) -> Result<Came, crate::transport::Fault> {
        let config = Config::prepare(address, self.options).await;
        let config = config.map_err(|_| crate::transport::Fault::Refused)?;
        let client = Client::new(config, Clock::starting_in(Duration::ZERO), 1, 0);
        let mut connection = client.acquire().await?;
        let span = client.exchange(&mut connection, request).await.reply?;
        let reply = connection.reply(&span);
        let header = |name: &str| reply.header(name).map(str::to_owned);
        Ok(Came {
            status: reply.status,
            content_type: header("content-type"),
            allow: header("allow"),
            retry_after: header("retry-after"),
            challenge: header("www-authenticate"),
            body: reply.body.to_vec(),
            json: serde_json::from_slice(reply.body).ok(),
        })
    }
}
