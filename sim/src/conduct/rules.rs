//! The one table of rules: what each asks of a caller, where that is written, and what it is told when it does not.

use serde::Serialize;

/// How much it matters that a rule is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Severity {
    /// It would work better otherwise.
    Advice,
    /// A SHOULD of the specification, or a habit that harms dealers.
    Warning,
    /// A MUST of the specification, or harm to a person.
    Violation,
}

impl Severity {
    /// The word, as in JSON.
    pub fn word(self) -> &'static str {
        match self {
            Severity::Advice => "advice",
            Severity::Warning => "warning",
            Severity::Violation => "violation",
        }
    }

    /// The severity that a word names.
    pub fn from_word(word: &str) -> Option<Severity> {
        [Severity::Advice, Severity::Warning, Severity::Violation].into_iter().find(|one| one.word() == word)
    }
}

/// A rule about callers.
#[derive(Debug, Serialize)]
pub struct Rule {
    /// Its id; it never changes its meaning.
    pub id: &'static str,
    /// How much it matters.
    pub severity: Severity,
    /// What it asks, in a line.
    pub title: &'static str,
    /// Where that is written.
    pub source: &'static str,
    /// Why it is asked, for one who has not read the specification.
    pub why: &'static str,
    /// What to do when it is broken.
    pub fix: &'static str,
    /// Whether earlier calls decide it, so that it cannot be known where some of them were forgotten.
    #[serde(skip)]
    pub(super) needs_past: bool,
}

macro_rules! rules {
    ($($group:literal { $($name:ident $severity:ident $past:literal, $id:literal, $title:literal, $source:literal,
        why: $why:literal, fix: $fix:literal;)* })*) => {
        /// The rules by name, in the order of [`RULES`].
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        #[allow(missing_docs)]
        pub(super) enum R { $($($name,)*)* }

        /// Every rule.
        pub static RULES: &[Rule] = &[$($(Rule {
            id: concat!($group, ".", $id), severity: Severity::$severity, title: $title, source: $source, why: $why, fix: $fix,
            needs_past: $past,
        },)*)*];
    };
}

rules! {
"discovery" {
    CardFirst Warning true, "card_first", "The agent card is fetched before the first call", "A2A 1.0, 8.2; AAP g",
        why: "The card says which address, version, extension and skills a dealer has. An agent that does not read it works by luck, and breaks when the dealer changes any of them.",
        fix: "Fetch /.well-known/agent-card.json once before the first call to a dealer, and use what it says.";
    CardFresh Advice true, "card_fresh", "A card that is still fresh is not fetched again", "A2A 1.0, 8.6.2; RFC 9111, 4.2",
        why: "The dealer said how long its card is good for. Fetching it for every call doubles the traffic and tells the agent nothing new.",
        fix: "Keep the card for as long as max-age in its Cache-Control says.";
    CardRevalidated Advice true, "card_revalidated", "A card is fetched again with its entity tag", "A2A 1.0, 8.6.2; RFC 9110, 13.1.2",
        why: "With If-None-Match the dealer answers 304 without a body where nothing has changed.",
        fix: "Keep the ETag of the card and send it as If-None-Match when you fetch the card again.";
    CardSkills Violation false, "advertised_skills", "Only skills that the card advertises are called", "AAP c (UNSUPPORTED_SKILL), g (skills)",
        why: "A dealer need not offer every skill. One that it does not list can only fail.",
        fix: "Look into skills of the card before you call one.";
    CardCapabilities Violation false, "advertised_capabilities", "No streaming, tasks or push notifications are asked of a card without them", "A2A 1.0, 3.3.4; AAP c (other methods)",
        why: "AAP dealers answer directly. Streaming, tasks and push notifications are optional parts of A2A that this card does not declare.",
        fix: "Call SendMessage. In an SDK, switch streaming off, or let it follow capabilities.streaming of the card.";
    HttpMethod Violation false, "http_post", "The endpoint is called with POST", "A2A 1.0, 9.1; AAP c",
        why: "JSON-RPC over HTTP has one method: POST to the URL of the card's JSONRPC interface.",
        fix: "POST the call to supportedInterfaces[].url, where protocolBinding is JSONRPC.";
}
"envelope" {
    HttpType Violation false, "content_type", "The body is sent as application/json", "AAP b; A2A 1.0, 9.1",
        why: "A dealer that cannot tell that the body is JSON refuses it before reading.",
        fix: "Send Content-Type: application/json.";
    JsonRpc Violation false, "json_rpc", "The body is a JSON-RPC 2.0 request", "JSON-RPC 2.0, 4; A2A 1.0, 9.3; AAP c",
        why: "What is no JSON, or has no jsonrpc \"2.0\", method and params, cannot be answered as a call.",
        fix: "Send one JSON object with jsonrpc \"2.0\", an id, method \"SendMessage\" and params.";
    VersionHeader Violation false, "a2a_version", "A2A-Version: 1.0 is sent", "AAP b; A2A 1.0, 3.6.1",
        why: "Without the header a strict dealer takes the call for A2A 0.3 and refuses it. This one may have been lenient; the next will not be.",
        fix: "Send the header A2A-Version: 1.0 with every call.";
    ExtensionHeader Violation false, "a2a_extensions", "A2A-Extensions names the card's AAP extension exactly", "AAP b; A2A 1.0, 3.2.6, 4.6",
        why: "The extension's URI names the version of the contract. Another version, or none, is no request for this one, and there is no fallback.",
        fix: "Copy uri of the AAP entry in capabilities.extensions into the header A2A-Extensions, byte for byte.";
    KnownMethod Violation false, "method", "The method is one of A2A's", "A2A 1.0, 9.4; AAP c",
        why: "Skills are not methods: every skill is called with SendMessage and chosen by the type in the payload.",
        fix: "Use method \"SendMessage\".";
    Dialect Violation false, "no_0_3_dialect", "A2A 1.0 is spoken, not 0.3", "A2A 1.0, appendix A.2 (changes since 0.3); AAP c",
        why: "A2A 0.3 had message/send, kind members and the role \"user\". A 1.0 dealer does not know them.",
        fix: "Upgrade the SDK to A2A 1.0: method SendMessage, role ROLE_USER, parts without kind.";
    RequestId Violation false, "request_id", "Each request has an id", "JSON-RPC 2.0, 4; AAP c",
        why: "Without an id the request is a notification: nobody owes it an answer.",
        fix: "Set id to a string or a number.";
    IdInFlight Warning true, "id_in_flight", "An id is used by one request at a time", "JSON-RPC 2.0, 4 (id correlates request and reply)",
        why: "Two requests under way with the same id cannot be told apart in logs, proxies and batches.",
        fix: "Count ids up, or draw a UUID for each request.";
    MessageId Violation false, "message_id", "Each message has a messageId", "A2A 1.0, 4.1.4; AAP c",
        why: "The messageId is how both sides name a message when something went wrong.",
        fix: "Set message.messageId to a fresh UUID.";
    MessageIdFresh Violation true, "message_id_fresh", "A messageId is used again only to retry the same message", "A2A 1.0, 3.3.1, 4.1.4; AAP c",
        why: "A dealer may take a message that it has seen for a repetition, and ignore what is new in it.",
        fix: "Draw a new messageId for each message. Keep it only when you send the same message again because its answer was lost.";
    OutputModes Violation false, "accepted_output_modes", "acceptedOutputModes lists the skill's response type", "AAP c (configuration)",
        why: "It tells the dealer in which form the agent understands the answer. Buyers must list the AAP type.",
        fix: "Set configuration.acceptedOutputModes to [\"application/vnd.autoagent.<skill>-response+json\"].";
    MediaType Violation false, "media_type", "The part's mediaType is the skill's request type", "AAP c (media types)",
        why: "The media type says what the data is. Dealers refuse another one with -32005.",
        fix: "Set parts[0].mediaType to the type in the card's inputModes for the skill (inventory.vehicle has vehicle-detail).";
    Role Violation false, "role", "The role is ROLE_USER", "A2A 1.0, 4.1.5; AAP c",
        why: "The dealer is ROLE_AGENT; who calls is ROLE_USER. Others are refused.",
        fix: "Set message.role to \"ROLE_USER\".";
    FirstPart Violation false, "first_part", "The first part holds the AAP request as data", "AAP c (parts)",
        why: "AAP is data, not prose: no dealer picks a skill by reading a text.",
        fix: "Put the AAP object into parts[0].data, and texts, if any, behind it.";
    NoTask Violation false, "no_task", "No taskId is sent", "A2A 1.0, 3.4.2; AAP c",
        why: "AAP dealers answer with messages and make no tasks, so that no taskId can be right.",
        fix: "Leave taskId out; the thread of a conversation is contextId.";
}
"conversation" {
    ContextCarried Warning true, "context_carried", "The dealer's contextId is carried on", "A2A 1.0, 3.4.2; AAP c (contextId)",
        why: "Each reply names its conversation. A follow-up without that name starts a new one, and the dealer does not know what the customer has looked at.",
        fix: "Keep contextId of the first reply and send it with every later message of the same conversation.";
    ContextOwn Violation true, "context_of_other_dealer", "A contextId is never shown to another dealer", "A2A 1.0, 3.4.1; AAP c (authorized context)",
        why: "It lets dealers link one customer's conversations, and it means nothing to a dealer that did not make it.",
        fix: "Keep the contextId for each dealer apart.";
    ContextKnown Warning true, "context_made_up", "A later turn uses the contextId that the dealer gave", "A2A 1.0, 3.4.1, 3.4.2; AAP c (contextId)",
        why: "A contextId of the agent's own making in a later turn cuts the conversation in two.",
        fix: "Send back the contextId of the dealer's reply instead of a new one.";
}
"retry" {
    RetryHint Violation true, "wait_for_hint", "No call is made before a retry hint has passed", "AAP f (rates and retries), e (RATE_LIMITED)",
        why: "The dealer said how long to wait. Calls before that are refused, too, and make the jam longer for everybody.",
        fix: "Read retry_after_ms of the error's details and send nothing to this dealer until then.";
    RetryBackoff Violation true, "back_off", "Without a hint a retry still waits", "AAP f (back off on INTERNAL_ERROR)",
        why: "A dealer in trouble does not recover under a hail of retries.",
        fix: "Wait at least a few hundred milliseconds before the first retry, with some randomness.";
    RetryGrowth Warning true, "back_off_grows", "Waits between retries do not shrink", "AAP f (exponential back-off)",
        why: "Each failure says that the wait before it was too short.",
        fix: "Double the wait with each failure, up to a limit.";
    RetryRefused Violation true, "not_retryable", "What is not retryable is not sent again unchanged", "AAP e (retryable), f (rates and retries)",
        why: "The dealer said that the same request will fail again. Only a changed one can succeed.",
        fix: "Look at retryable of the error. If it is false, change the request or give up.";
    RetryMade Advice true, "retryable_is_retried", "What is retryable is tried again", "AAP e (retryable), f (rates and retries)",
        why: "The error said that the same request may succeed later; the customer has gone without an answer.",
        fix: "Send the same request again after the hint, or after a back-off.";
    RetryBudget Warning true, "retry_budget", "Retries come to an end", "AAP f (rates and retries); common practice: at most 8 attempts",
        why: "A request that failed eight times will not succeed the ninth time, and its retries keep others from being served.",
        fix: "Give a request a budget of attempts, and tell the customer when it is spent.";
    LeadKeyKept Violation true, "lead_keeps_key", "A lead is sent again only with its idempotency_key", "AAP f (idempotency; retries)",
        why: "The first attempt may have been stored though its answer was lost. Without the same key the dealer gets two leads, and the customer two calls.",
        fix: "Make the idempotency_key before the first attempt, keep it with the lead, and send it with each attempt.";
    LeadUnchanged Warning true, "lead_retry_unchanged", "A lead that is sent again is the same to the last member", "AAP f (IDEMPOTENCY_CONFLICT)",
        why: "The same key with another payload is a conflict, by the letter even if only submitted_at has changed.",
        fix: "Store the payload of the first attempt and send that.";
    LeadKeyFresh Violation true, "lead_key_fresh", "A new lead has a new idempotency_key", "AAP f (IDEMPOTENCY_CONFLICT)",
        why: "The dealer takes it for a repetition of the old lead: the new one is refused or lost.",
        fix: "Draw a UUID for each lead.";
    LeadKey Advice false, "lead_has_key", "A lead has an idempotency_key", "AAP f (retry leads only with a key)",
        why: "Without it the lead cannot be sent again when its answer is lost.",
        fix: "Set idempotency_key to a UUID.";
}
"errors" {
    Valid Violation false, "valid_payload", "Payloads are what their schema asks", "AAP d, e (SCHEMA_VALIDATION_FAILED)",
        why: "The dealer found faults in the request and did nothing with it.",
        fix: "Validate requests against the schemas that the card names before you send them.";
    MendedAtOnce Violation true, "mended_at_once", "All faults that were listed are mended in one round trip", "AAP e (details.errors lists every fault)",
        why: "The dealer lists every fault of a payload at once, so that one more attempt is enough.",
        fix: "Go through all of details.errors before you send the request again.";
    UnavailableSearched Warning true, "unavailable_then_search", "After VEHICLE_UNAVAILABLE comes a new search, not the same lead", "AAP d.4, d.7, e (VEHICLE_UNAVAILABLE)",
        why: "The vehicle is gone. Another lead for it can only fail.",
        fix: "Search again, show the customer what there is, and send a lead for that.";
}
"privacy" {
    Anonymous Advice false, "anonymous_search", "Searches say privacy.anonymous: true", "AAP f (inventory)",
        why: "It tells the dealer that nobody wants to be known by a search.",
        fix: "Set privacy to {\"anonymous\": true}.";
    NoPersonalData Violation false, "no_personal_data", "No e-mail address or phone number outside a consented lead", "AAP f (inventory; consent), c (parts)",
        why: "Searches, texts and metadata are anonymous. Who writes a customer's address into them gives it away without consent.",
        fix: "Send personal data only in customer of lead.submit.";
    ConsentPresent Violation false, "consent_present", "A lead carries the customer's consent", "AAP d.7, f (consent)",
        why: "A dealer may contact a person only with that person's consent, so that a lead without one is refused.",
        fix: "Ask the customer, and send consent with granted_at, allowed_channels, consent_text and scope.";
    ConsentGranted Violation false, "consent_granted", "Consent was granted before it is used", "AAP f (granted_at)",
        why: "A grant in the future is none yet. Often the agent's clock or time zone is wrong.",
        fix: "Set granted_at to the moment at which the customer agreed, in UTC.";
    ConsentUnexpired Violation false, "consent_unexpired", "Consent has not expired", "AAP f (expires_at)",
        why: "The customer agreed until a certain moment, and that has passed.",
        fix: "Ask the customer again.";
    ConsentText Violation false, "consent_text", "Consent holds the text that the customer saw", "AAP f (verbatim consent_text)",
        why: "The text is the proof of what the customer agreed to.",
        fix: "Send the words that were shown, unchanged.";
    ConsentScope Violation false, "consent_scope", "Consent's scope is lead_submission", "AAP d.7, f",
        why: "Another scope does not allow to pass the customer's data on to a dealer.",
        fix: "Set scope to [\"lead_submission\"], if that is what the customer agreed to.";
    ConsentChannel Violation false, "preferred_channel", "The preferred contact is one that consent allows", "AAP f (allowed_channels)",
        why: "The lead asks the dealer to use a channel that the customer did not allow.",
        fix: "Set preferred_contact to one of allowed_channels, or to any.";
    ContactAllowed Warning false, "contact_data_allowed", "E-mail address and phone number are sent only with consent for their channel", "AAP f (consent: no other channel)",
        why: "The dealer must not use it, so that it is given away for nothing.",
        fix: "Leave email out unless allowed_channels has email, and phone unless it has phone or sms.";
    OneLead Warning true, "one_lead_per_intent", "One interest makes one lead", "AAP f (idempotency: duplicates within 24 h)",
        why: "A second lead for the same customer and vehicle makes a second salesperson call.",
        fix: "Remember the leads that were received. Send another only with a new appointment.";
}
"listings" {
    UnknownStatus Violation true, "unknown_status", "Listings with an unknown status are ignored", "AAP f (inventory)",
        why: "Only available, intransit and pending vehicles are for sale.",
        fix: "Drop listings with any other status before you show them.";
    StaleRechecked Warning true, "stale_rechecked", "A listing older than a business day is looked up again before a lead", "AAP f (updated_at)",
        why: "An old listing may be sold, or have another price.",
        fix: "Compare updated_at with the time, and call inventory.vehicle first if a day has passed.";
    PriceUsed Warning true, "price_used", "The price that is spoken of is price, not list_price or msrp", "AAP d.6",
        why: "Only price is what the dealer sells for. The others leave out charges or discounts.",
        fix: "Use price alone where you speak of, compare or negotiate a price.";
    Identified Advice false, "lead_names_vehicle", "A lead's vehicle has a vin, stock number or vehicle_id", "AAP d.7 (vehicle_of_interest)",
        why: "Make and model fit many vehicles. The dealer does not know which one the customer wants.",
        fix: "Copy vin, stock or vehicle_id from the listing.";
}
"load" {
    Paging Warning true, "paging", "Pages follow each other without gap or overlap", "AAP d.2 (pagination)",
        why: "A gap hides vehicles from the customer; an overlap shows them twice. The dealer may serve fewer than were asked for.",
        fix: "Begin the next page at skip plus limit of the reply, not of the request.";
    PageLimit Advice false, "page_limit", "No more than 100 vehicles are asked for at once", "AAP d.2 (cap 100)",
        why: "Dealers cap pages at 100; an agent that counts on more skips vehicles.",
        fix: "Ask for 100 at most.";
    Stampede Warning true, "no_stampede", "The same search is not made again and again", "AAP f (rates and retries); common practice: 5 times in 10 s",
        why: "Stock does not change from second to second; the answer was the same each time.",
        fix: "Keep an answer for a minute at least, and share it among the agent's parts.";
}
}

impl R {
    pub(super) fn rule(self) -> &'static Rule {
        &RULES[self as usize]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn rules_are_told_apart_and_say_what_they_want() {
        let ids: BTreeSet<_> = RULES.iter().map(|rule| rule.id).collect();
        assert_eq!(ids.len(), RULES.len());
        assert!(RULES.len() >= 35, "{}", RULES.len());
        for rule in RULES {
            assert!(rule.why.len() > 40 && rule.fix.len() > 15 && rule.source.len() > 5, "{}", rule.id);
            assert_eq!(Severity::from_word(rule.severity.word()), Some(rule.severity));
        }
        assert_eq!(R::Stampede.rule().id, "load.no_stampede");
    }
}
