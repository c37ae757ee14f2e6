//! The ways in which an agent can be broken: one for each rule of conduct.

use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use crate::wire::Outgoing;

pub const URI: &str = "https://autoagentprotocol.org/extensions/aap/v3.0";

/// A rule, what an agent does that breaks it, and the other rules that cannot be kept then, each with the reason.
pub struct Flaw {
    pub rule: &'static str,
    pub does: &'static str,
    pub implies: &'static [(&'static str, &'static str)],
}

const fn flaw(rule: &'static str, does: &'static str) -> Flaw {
    Flaw { rule, does, implies: &[] }
}

/// One for each rule; a rule that is not here fails the test.
pub static FLAWS: &[Flaw] = &[
    flaw("discovery.card_first", "calls an address that it was built with"),
    flaw("discovery.card_fresh", "fetches the card twice in a row"),
    flaw("discovery.card_revalidated", "fetches an expired card as if it had never had one"),
    flaw("discovery.advertised_skills", "asks for a quote on financing"),
    flaw("discovery.advertised_capabilities", "asks for a stream"),
    flaw("discovery.http_post", "calls with GET"),
    flaw("envelope.content_type", "says that its JSON is text"),
    flaw("envelope.json_rpc", "speaks JSON-RPC 1.0"),
    flaw("envelope.a2a_version", "leaves A2A-Version out"),
    flaw("envelope.a2a_extensions", "leaves A2A-Extensions out"),
    flaw("envelope.method", "calls sendMessage with a small letter"),
    flaw("envelope.no_0_3_dialect", "gives its message a kind, as A2A 0.3 did"),
    flaw("envelope.request_id", "sends id null"),
    flaw("envelope.id_in_flight", "gives two calls at a time the same id"),
    flaw("envelope.message_id", "sends a message without messageId"),
    flaw("envelope.message_id_fresh", "gives every message the same messageId"),
    flaw("envelope.accepted_output_modes", "does not say which answer it understands"),
    flaw("envelope.media_type", "calls its data application/json"),
    flaw("envelope.role", "says that it is the agent that is called"),
    flaw("envelope.first_part", "puts a text before the data"),
    flaw("envelope.no_task", "makes up a taskId"),
    flaw("conversation.context_carried", "never sends a contextId"),
    flaw("conversation.context_of_other_dealer", "opens a talk with the contextId of another dealer"),
    flaw("conversation.context_made_up", "invents a contextId for every turn"),
    flaw("retry.wait_for_hint", "waits for a quarter of the time that it was asked to"),
    flaw("retry.back_off", "sends again at once"),
    flaw("retry.back_off_grows", "waits for 1.2 s and then for 0.12 s"),
    flaw("retry.not_retryable", "asks again for a vehicle that is gone"),
    flaw("retry.retryable_is_retried", "gives up after the first internal error"),
    flaw("retry.retry_budget", "tries nine times"),
    flaw("retry.lead_keeps_key", "sends a lost lead again with another key"),
    flaw("retry.lead_retry_unchanged", "sends a lost lead again with another submitted_at"),
    flaw("retry.lead_key_fresh", "has one key for all leads"),
    flaw("retry.lead_has_key", "sends leads without a key"),
    flaw("errors.valid_payload", "filters by a year in words, and mends it in one go"),
    Flaw {
        rule: "errors.mended_at_once",
        does: "mends the first of two faults, and then the second",
        implies: &[("errors.valid_payload", "what is to be mended was refused first")],
    },
    flaw("errors.unavailable_then_search", "sends a lead for a vehicle that it was told is gone"),
    flaw("privacy.anonymous_search", "does not say that its searches are anonymous"),
    flaw("privacy.no_personal_data", "puts the customer's address into the metadata"),
    flaw("privacy.consent_present", "sends leads without consent"),
    flaw("privacy.consent_granted", "has a clock that is an hour ahead"),
    flaw("privacy.consent_unexpired", "uses a consent of yesterday"),
    flaw("privacy.consent_text", "leaves the text of the consent blank"),
    flaw("privacy.consent_scope", "has the customer's consent to marketing"),
    flaw("privacy.preferred_channel", "asks for a text message where e-mail is allowed"),
    flaw("privacy.contact_data_allowed", "gives the phone number where e-mail is allowed"),
    flaw("privacy.one_lead_per_intent", "sends a lead for the same car twice"),
    flaw("listings.unknown_status", "sends a lead for a car that is listed as reserved"),
    flaw("listings.stale_rechecked", "believes a listing of last month"),
    flaw("listings.price_used", "speaks of the list price"),
    flaw("listings.lead_names_vehicle", "says make and model and not which car"),
    flaw("load.paging", "leaves three vehicles out between two pages"),
    flaw("load.page_limit", "asks for 500 vehicles at once"),
    flaw("load.no_stampede", "makes the same search six times"),
];

/// A vehicle to like: for sale, not that one, and with a list price that is not its price where there is such.
pub fn choose(page: &[Value], not: Option<&Value>) -> Option<Value> {
    let for_sale = |vehicle: &&Value| {
        matches!(vehicle["status"].as_str(), Some("available" | "intransit" | "pending"))
            // A dealer may have made a mistake that a request must not repeat.
            && vehicle["vin"].as_str().is_some_and(is_vin)
            && vehicle["price"].as_u64().is_some_and(|price| price > 0)
            && not != Some(&vehicle["vin"])
    };
    let has_two_prices =
        |vehicle: &&Value| vehicle["list_price"].is_u64() && vehicle["list_price"] != vehicle["price"];
    let found = page.iter().filter(for_sale).find(has_two_prices);
    found.or_else(|| page.iter().find(for_sale)).cloned()
}

fn is_vin(text: &str) -> bool {
    text.len() == 17 && text.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase())
}

/// Spoils a call. What makes a dealer refuse it is done to one that the journey can do without: the facets.
pub fn spoil_call(rule: &str, at: usize, call: &mut Outgoing) {
    let asked = call.message()["parts"][0]["data"]["type"].clone();
    let (is_facets, is_information) =
        (asked == "inventory.facets.request" && at == 0, asked == "dealer.information.request");
    let drop_header = |call: &mut Outgoing, name: &str| call.headers.retain(|(field, _)| *field != name);
    match rule {
        "envelope.a2a_version" => drop_header(call, "A2A-Version"),
        "envelope.a2a_extensions" => drop_header(call, "A2A-Extensions"),
        "envelope.no_0_3_dialect" => call.message()["kind"] = "message".into(),
        "envelope.request_id" => call.body["id"] = Value::Null,
        "envelope.id_in_flight" if is_facets || is_information => call.body["id"] = 1.into(),
        "envelope.message_id_fresh" => call.message()["messageId"] = "message".into(),
        "envelope.accepted_output_modes" => {
            _ = call.body["params"].as_object_mut().unwrap().remove("configuration");
        }
        "privacy.no_personal_data" => call.message()["metadata"] = json!({ "for": "anna@example.com" }),
        _ if !is_facets => {}
        "discovery.advertised_skills" => {
            call.message()["parts"][0]["data"]["type"] = "financing.quote.request".into();
        }
        "discovery.advertised_capabilities" => call.body["method"] = "SendStreamingMessage".into(),
        "discovery.http_post" => call.method = "GET",
        "envelope.content_type" => call.headers[0].1 = "text/plain".to_owned(),
        "envelope.json_rpc" => call.body["jsonrpc"] = "1.0".into(),
        "envelope.method" => call.body["method"] = "sendMessage".into(),
        "envelope.message_id" => _ = call.message().as_object_mut().unwrap().remove("messageId"),
        "envelope.media_type" => call.message()["parts"][0]["mediaType"] = "application/json".into(),
        "envelope.role" => call.message()["role"] = "ROLE_AGENT".into(),
        "envelope.first_part" => {
            let parts = call.message()["parts"].as_array_mut().unwrap();
            parts.insert(0, json!({ "text": "What do you have?" }));
        }
        "envelope.no_task" => call.message()["taskId"] = "task-1".into(),
        _ => {}
    }
}

/// Spoils a lead.
pub fn spoil_lead(rule: &str, now: Timestamp, vehicle: &Value, lead: &mut Value) {
    let remove = |lead: &mut Value, name: &str| _ = lead.as_object_mut().unwrap().remove(name);
    let after = |hours| (now + SignedDuration::from_hours(hours)).to_string();
    match rule {
        "retry.lead_key_fresh" => lead["idempotency_key"] = "the-key".into(),
        "retry.lead_has_key" => remove(lead, "idempotency_key"),
        "privacy.consent_present" => remove(lead, "consent"),
        "privacy.consent_granted" => lead["consent"]["granted_at"] = after(1).into(),
        "privacy.consent_unexpired" => {
            lead["consent"]["granted_at"] = after(-48).into();
            lead["consent"]["expires_at"] = after(-24).into();
        }
        "privacy.consent_text" => lead["consent"]["consent_text"] = "".into(),
        "privacy.consent_scope" => lead["consent"]["scope"] = json!(["marketing"]),
        "privacy.preferred_channel" => lead["customer"]["preferred_contact"] = "sms".into(),
        "privacy.contact_data_allowed" => lead["customer"]["phone"] = "+15550100199".into(),
        "listings.price_used" => {
            lead["message"] = format!("Is ${} the last word?", vehicle["list_price"]).into();
        }
        "listings.lead_names_vehicle" => {
            lead["vehicle_of_interest"] = json!({ "make": vehicle["make"], "model": vehicle["model"] });
        }
        _ => {}
    }
}

/// Spoils a lead that is sent again; whether it did.
pub fn spoil_retry(rule: &str, attempt: u32, lead: &mut Value) -> bool {
    match rule {
        "retry.lead_keeps_key" => lead["idempotency_key"] = format!("another-{attempt}").into(),
        "retry.lead_retry_unchanged" => {
            let at: Timestamp = lead["submitted_at"].as_str().unwrap().parse().unwrap();
            lead["submitted_at"] = (at + SignedDuration::from_secs(1)).to_string().into();
        }
        _ => return false,
    }
    true
}
