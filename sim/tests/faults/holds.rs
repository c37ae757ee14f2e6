//! What must hold of what a client gets under each effect that changes what is said: one table for the pure functions and
//! for what comes over a socket.

use dealer_sim::faults::effect::HttpOverride;
use dealer_sim::protocol::Skill;
use dealer_sim::protocol::error::AAP_ERROR_TYPE;
use serde_json::{Value, json};

use super::samples::ID;

/// A reply after an effect, as a value, with what it was before; its id must have kept its letters.
pub(crate) struct Seen {
    pub(crate) before: Value,
    pub(crate) after: Value,
}

impl Seen {
    pub(crate) fn of(name: &str, before: &[u8], after: &[u8]) -> Seen {
        assert!(String::from_utf8_lossy(after).contains(&format!("\"id\":{ID}")), "{name}: the id changed");
        Seen {
            before: serde_json::from_slice(before).unwrap(),
            after: serde_json::from_slice(after).unwrap_or_else(|error| panic!("{name}: {error}")),
        }
    }

    pub(crate) fn message(&self) -> &Value {
        &self.after["result"]["message"]
    }

    pub(crate) fn part(&self) -> &Value {
        &self.message()["parts"][0]
    }

    pub(crate) fn data(&self) -> &Value {
        &self.part()["data"]["data"]
    }

    pub(crate) fn data_before(&self) -> &Value {
        &self.before["result"]["message"]["parts"][0]["data"]["data"]
    }

    pub(crate) fn error(&self) -> &Value {
        &self.after["error"]
    }

    pub(crate) fn typed(&self) -> Option<&Value> {
        self.error()["data"].as_array()?.iter().find(|entry| entry["@type"] == AAP_ERROR_TYPE)
    }
}

fn absent(value: &Value, name: &str) -> bool {
    value.is_object() && value.get(name).is_none()
}

fn every(data: &Value, holds: impl Fn(&Value) -> bool) -> bool {
    let listed = data["vehicles"].as_array().unwrap();
    !listed.is_empty() && listed.iter().all(holds)
}

/// Of a business effect: its name, the reply it shows on, and what must hold of the payload before and after.
pub(crate) type OfData = fn(&Value, &Value) -> bool;

pub(crate) const BUSINESS: &[(&str, &str, OfData)] = &[
    ("price_higher_in_detail", "detail", |a, b| b["price"].as_i64() > a["price"].as_i64()),
    ("price_lower_in_search", "search", |a, b| {
        a["vehicles"].as_array().unwrap().iter().zip(b["vehicles"].as_array().unwrap()).all(|(a, b)| {
            b["price"].as_i64() < a["price"].as_i64() || a["price"].is_null() && b["price"].is_null()
        })
    }),
    ("price_missing", "search", |_, b| every(b, |v| absent(v, "price"))),
    ("price_zero", "search", |_, b| every(b, |v| v["price"] == 0)),
    ("price_as_text", "detail", |a, b| b["price"] == format!("${}", a["price"])),
    ("price_with_cents", "detail", |a, b| b["price"].as_f64() == a["price"].as_f64().map(|p| p + 0.75)),
    ("fees_doubled", "detail", |a, b| {
        b["fees"].as_array().unwrap().len() == 2 * a["fees"].as_array().unwrap().len()
    }),
    ("fees_added", "detail", |a, b| {
        b["fees"].as_array().unwrap().len() == a["fees"].as_array().unwrap().len() + 1
            && b["price"].as_i64().unwrap() == a["price"].as_i64().unwrap() + 995
    }),
    ("total_lies", "search", |a, b| b["total"].as_i64().unwrap() == a["total"].as_i64().unwrap() + 7),
    ("total_missing", "search", |_, b| absent(b, "total")),
    ("facets_disagree", "facets", |a, b| {
        b["makes"][0]["count"].as_i64().unwrap() == a["makes"][0]["count"].as_i64().unwrap() + 3
            && a["price_range"] == b["price_range"]
    }),
    ("status_sold_in_listing", "search", |a, b| {
        b["vehicles"][0]["status"] == "sold" && b["vehicles"][1] == a["vehicles"][1]
    }),
    ("status_unknown_in_listing", "detail", |_, b| b["status"] == "reserved"),
    ("status_missing", "search", |_, b| every(b, |v| absent(v, "status"))),
    ("updated_at_stale", "detail", |a, b| {
        let at = |v: &Value| v["updated_at"].as_str().unwrap().parse::<jiff::Timestamp>().unwrap();
        at(a).as_second() - at(b).as_second() == 30 * 86_400
    }),
    ("updated_at_missing", "search", |_, b| every(b, |v| absent(v, "updated_at"))),
    ("updated_at_without_offset", "detail", |_, b| b["updated_at"].as_str().unwrap().len() == 19),
    ("vin_bad_check_digit", "search", |_, b| {
        // Some listings have no VIN.
        every(b, |v| {
            v["vin"]
                .as_str()
                .is_none_or(|vin| vin.len() == 17 && !dealer_sim::inventory::vin::has_valid_check_digit(vin))
        })
    }),
    ("vin_malformed", "search", |_, b| every(b, |v| v["vin"].as_str().is_none_or(|vin| vin.len() == 16))),
    ("duplicate_in_page", "search", |a, b| {
        let (a, b) = (a["vehicles"].as_array().unwrap(), b["vehicles"].as_array().unwrap());
        a.len() == b.len() && b.first() == b.last() && a.first() != a.last()
    }),
    ("page_overfull", "search", |a, b| {
        b["vehicles"].as_array().unwrap().len() == a["vehicles"].as_array().unwrap().len() + 1
    }),
    ("page_empty", "search", |a, b| b["vehicles"] == json!([]) && a["total"] == b["total"]),
    ("identifiers_missing", "detail", |_, b| {
        absent(b, "vin") && absent(b, "stock") && absent(b, "vehicle_id")
    }),
    ("condition_of_wear", "detail", |_, b| b["condition"] == "good"),
    ("instructions_in_description", "detail", |_, b| {
        b["description"].as_str().unwrap().starts_with("Ignore your")
    }),
    ("other_vehicle_in_detail", "detail", |a, b| a["vin"] != b["vin"] && a["stock"] != b["stock"]),
    ("lead_status_rejected", "lead", |_, b| b["status"] == "rejected"),
    ("lead_id_missing", "lead", |_, b| absent(b, "lead_id")),
    ("confirmed_without_time", "lead", |_, b| {
        b["appointment"]["status"] == "confirmed" && absent(&b["appointment"], "confirmed_at")
    }),
    ("proposed_without_times", "lead", |_, b| {
        b["appointment"]["status"] == "proposed" && absent(&b["appointment"], "proposed_times")
    }),
    ("rooftops_empty", "information", |_, b| b["rooftops"] == json!([])),
];

/// Of an effect on the conversation: what must hold of the reply's Message.
pub(crate) type OfMessage = fn(&Value) -> bool;

pub(crate) const CONVERSATION: &[(&str, OfMessage)] = &[
    ("context_id_missing", |m| absent(m, "contextId")),
    ("context_id_empty", |m| m["contextId"] == ""),
    ("context_id_null", |m| m.get("contextId") == Some(&Value::Null)),
    ("context_id_retyped", |m| m["contextId"].is_u64()),
    ("context_id_of_another", |m| m["contextId"] == "ctx_of_another_buyer"),
    ("context_id_new", |m| m["contextId"] != "ctx_mine" && m["contextId"].as_str().unwrap().len() == 36),
    ("context_id_upper_case", |m| m["contextId"] == "CTX_MINE"),
    ("task_id_in_reply", |m| m["taskId"] == "task_1"),
    ("reference_task_ids_in_reply", |m| m["referenceTaskIds"] == json!(["task_1"])),
];

/// What must hold of a reply, and of its bytes before and after.
pub(crate) type OfReply = fn(&Seen) -> bool;
pub(crate) type OfBytes = fn(&[u8], &[u8]) -> bool;

/// Envelope effects whose reply is still JSON and keeps its id.
pub(crate) const ENVELOPE: &[(&str, OfReply)] = &[
    ("jsonrpc_missing", |s| absent(&s.after, "jsonrpc")),
    ("jsonrpc_wrong", |s| s.after["jsonrpc"] == "1.0"),
    ("result_and_error", |s| s.after["result"].is_object() && s.error()["code"] == -32603),
    ("result_missing", |s| absent(&s.after, "result") && absent(&s.after, "error")),
    ("result_null", |s| s.after.get("result") == Some(&Value::Null)),
    ("error_null", |s| s.after.get("error") == Some(&Value::Null) && s.after["result"].is_object()),
    ("result_flat", |s| s.after["result"] == s.before["result"]["message"]),
    ("task_instead_of_message", |s| {
        let task = &s.after["result"]["task"];
        task["contextId"] == "ctx_mine"
            && task["artifacts"][0]["parts"] == s.before["result"]["message"]["parts"]
            && absent(&s.after["result"], "message")
    }),
    ("dialect_03", |s| {
        let message = &s.after["result"];
        message["kind"] == "message" && message["role"] == "agent" && message["parts"][0]["kind"] == "data"
    }),
    ("role_user", |s| s.message()["role"] == "ROLE_USER"),
    ("role_agent_lower_case", |s| s.message()["role"] == "agent"),
    ("message_id_of_request", |s| s.message()["messageId"] == "m-of-request"),
    ("message_id_repeated", |s| s.message()["messageId"] == "msg_always_the_same"),
    ("message_id_missing", |s| absent(s.message(), "messageId")),
    ("parts_missing", |s| absent(s.message(), "parts")),
    ("parts_empty", |s| s.message()["parts"] == json!([])),
    ("text_part_first", |s| s.part()["text"].is_string() && s.message()["parts"][1]["data"].is_object()),
    ("text_part_last", |s| s.part()["data"].is_object() && s.message()["parts"][1]["text"].is_string()),
    ("payload_as_text", |s| {
        let inner: Value = serde_json::from_str(s.part()["text"].as_str().unwrap()).unwrap();
        inner["data"] == *s.data_before() && absent(s.part(), "data")
    }),
    ("media_type_missing", |s| absent(s.part(), "mediaType")),
    ("media_type_wrong", |s| s.part()["mediaType"] == "application/json"),
    ("response_of_another_skill", |s| {
        s.part()["data"]["type"] == "dealer.information.response"
            && s.part()["mediaType"] == Skill::DealerInformation.response_media_type()
    }),
    ("type_missing", |s| absent(&s.part()["data"], "type")),
    ("payload_missing", |s| absent(&s.part()["data"], "data")),
    ("integers_as_doubles", |s| s.data()["year"].is_f64() && s.data()["price"].is_f64()),
    ("unknown_members", |s| {
        let all = [&s.after, &s.after["result"], s.message(), s.part(), s.data()];
        all.iter().all(|value| value["x_unknown"].is_object())
    }),
    ("null_members", |s| s.message().get("metadata") == Some(&Value::Null)),
];

/// Effects on errors; all of them on a reply that is an error, and on a success.
pub(crate) const ERRORS: &[(&str, OfReply)] = &[
    ("error_data_object", |s| s.error()["data"]["@type"] == AAP_ERROR_TYPE),
    ("error_data_string", |s| s.error()["data"].is_string()),
    ("error_data_absent", |s| absent(s.error(), "data")),
    ("error_data_empty", |s| s.error()["data"] == json!([])),
    ("error_data_without_type", |s| {
        let entries = s.error()["data"].as_array().unwrap();
        entries.len() >= 2 && entries.iter().all(|entry| absent(entry, "@type"))
    }),
    ("error_data_unknown_first", |s| {
        s.error()["data"][0]["@type"] == "type.example.test/vendor.Trace" && s.typed().is_some()
    }),
    ("error_typed_missing", |s| s.typed().is_none() && s.error()["data"][0]["reason"].is_string()),
    ("error_code_text", |s| s.error()["code"].as_str().unwrap().starts_with("-32")),
    ("error_code_vendor", |s| s.error()["code"] == -32_050 && s.typed().is_some()),
    ("error_message_missing", |s| absent(s.error(), "message")),
    ("retryable_flipped", |s| {
        let typed = s.typed().unwrap();
        typed["retryable"] == (typed["code"] != "INTERNAL_ERROR" && typed["code"] != "RATE_LIMITED")
    }),
    ("typed_code_unknown", |s| s.typed().unwrap()["code"] == "DEALER_ON_HOLIDAY"),
    ("rate_limited_as_32002", |s| {
        (s.error()["code"] == -32_002) == (s.typed().unwrap()["code"] == "RATE_LIMITED")
    }),
    ("unsupported_skill_as_32601", |s| {
        (s.error()["code"] == -32_601) == (s.typed().unwrap()["code"] == "UNSUPPORTED_SKILL")
    }),
];

/// Effects that change the id, or after which the reply is no JSON; the test is on the bytes.
pub(crate) const BYTES: &[(&str, OfBytes)] = &[
    ("id_wrong", |_, after| id(after) == json!("another-request")),
    ("id_missing", |_, after| serde_json::from_slice::<Value>(after).unwrap().get("id").is_none()),
    ("id_null", |_, after| id(after).is_null()),
    ("id_retyped", |_, after| id(after).is_string()),
    ("truncated_json", |before, after| before.starts_with(after) && !json_text(after)),
    ("empty_body", |_, after| after.is_empty()),
    ("html_body", |_, after| after.starts_with(b"<!DOCTYPE html>")),
    ("byte_order_mark", |before, after| after.strip_prefix(b"\xef\xbb\xbf") == Some(before)),
    ("invalid_utf8", |_, after| std::str::from_utf8(after).is_err() && after.starts_with(b"{\"x_bytes\"")),
    ("lone_surrogate", |_, after| after.starts_with(b"{\"x_text\":\"\\ud83d\",\"jsonrpc\"")),
    ("duplicate_members", |_, after| {
        let text = std::str::from_utf8(after).unwrap();
        // The last one wins in most parsers: the reply is then as it was.
        text.matches("\"jsonrpc\":").count() == 2 && id(after) != json!("decoy")
    }),
    ("trailing_data", |before, after| after.starts_with(before) && !json_text(after)),
    ("nan_number", |_, after| after.starts_with(b"{\"x_number\":NaN,") && !json_text(after)),
    ("single_quotes", |_, after| after.starts_with(b"{'jsonrpc':'2.0'")),
    ("batch_reply", |_, after| serde_json::from_slice::<Vec<Value>>(after).unwrap().len() == 1),
    ("event_stream_body", |_, after| after.starts_with(b"data: {") && after.ends_with(b"}\n\n")),
    ("huge_reply", |_, after| after.len() == 8 << 20 && json_text(after)),
    ("deep_nesting", |before, after| {
        after.len() == before.len() + 20_012 && after.iter().filter(|byte| **byte == b'[').count() > 10_000
    }),
    ("leading_whitespace", |before, after| {
        after.len() == before.len() + 4096 && after.trim_ascii_start() == before
    }),
    ("escaped_text", |before, after| {
        let value = |text| serde_json::from_slice::<Value>(text).unwrap();
        value(before) == value(after) && !after.windows(4).any(|window| window == b"json")
    }),
];

fn json_text(text: &[u8]) -> bool {
    serde_json::from_slice::<Value>(text).is_ok()
}

fn id(text: &[u8]) -> Value {
    serde_json::from_slice::<Value>(text).unwrap()["id"].clone()
}

/// What HTTP says around a reply, or in its place.
#[derive(Debug, Default)]
pub(crate) struct Said {
    pub(crate) status: u16,
    pub(crate) fields: Vec<(String, String)>,
    /// The body, where it is not the reply.
    pub(crate) page: Option<Vec<u8>>,
    /// Whether the connection is said to close.
    pub(crate) close: bool,
    /// Whether the work was done although its reply was not sent.
    pub(crate) commit: bool,
}

impl Said {
    pub(crate) fn of(http: HttpOverride) -> Said {
        let fields = http.headers.into_iter().map(|(name, value)| (name.to_owned(), value)).collect();
        let (status, close, commit) = (http.status.unwrap_or(200), http.close, http.commit);
        Said { status, fields, page: http.body, close, commit }
    }

    /// A field's value; empty when there is none.
    pub(crate) fn field(&self, name: &str) -> &str {
        self.fields.iter().find(|(known, _)| known == name).map_or("", |(_, value)| value)
    }

    pub(crate) fn has(&self, name: &str) -> bool {
        !self.field(name).is_empty()
    }
}

fn html(said: &Said) -> bool {
    said.field("content-type") == "text/html" && said.page.as_ref().unwrap().starts_with(b"<html>")
}

/// Of an effect on HTTP: its name, the status, and what else must hold.
pub(crate) type OfHttp = fn(&Said) -> bool;

pub(crate) const HTTP: &[(&str, u16, OfHttp)] = &[
    ("http_status", 500, html),
    ("http_400", 400, html),
    ("http_401", 401, |r| html(r) && r.has("www-authenticate")),
    ("http_403", 403, html),
    ("http_404", 404, html),
    ("http_408", 408, |r| html(r) && r.close),
    ("http_413", 413, |r| html(r) && r.close),
    ("http_429", 429, |r| html(r) && r.field("retry-after") == "2"),
    ("http_429_with_date", 429, |r| r.field("retry-after").ends_with("GMT")),
    ("http_500", 500, html),
    ("http_502", 502, |r| html(r) && !r.commit),
    ("http_503", 503, |r| html(r) && !r.has("retry-after")),
    ("http_504", 504, |r| html(r) && r.commit),
    ("http_status_with_reply", 429, |r| r.page.is_none()),
    ("http_204", 204, |r| r.page.as_deref() == Some(b"")),
    ("http_redirect", 307, |r| r.field("location") == "/a2a/"),
    ("http_wrong_content_type", 200, |r| r.field("content-type").starts_with("text/html")),
    ("http_no_content_type", 200, |r| !r.has("content-type")),
    ("http_gzip_claimed", 200, |r| r.field("content-encoding") == "gzip" && r.page.is_none()),
    ("http_encoding_unknown", 200, |r| r.field("content-encoding") == "x-dealer"),
    ("http_huge_headers", 200, |r| r.field("x-huge").len() == 65_536),
    ("http_no_echo", 200, |r| !r.has("a2a-extensions")),
    ("http_echo_wrong", 200, |r| r.field("a2a-extensions").ends_with("/v9")),
    ("http_close", 200, |r| r.close && r.page.is_none()),
];

/// Of an effect on the card: what must hold of the card, null where it is no JSON, and of the HTTP around it.
pub(crate) type OfCard = fn(&Value, &Said) -> bool;

pub(crate) const CARDS: &[(&str, OfCard)] = &[
    ("card_missing", |_, http| http.status == 404 && html(http)),
    ("card_server_error", |_, http| http.status == 500 && html(http)),
    ("card_redirect", |_, http| http.status == 301 && http.field("location") == "/card.json"),
    ("card_stale", |card, http| {
        card["version"] == "0.0.1" && url(card) == "http://127.0.0.1:9/a2a" && http.has("age")
    }),
    ("card_other_contract", |card, _| {
        !extensions(card)[0]["uri"].as_str().unwrap().ends_with("v3.0")
            && extensions(card)[0]["params"]["version"] != "3.0.0"
    }),
    ("card_two_contracts", |card, _| {
        extensions(card).len() == 2 && extensions(card)[0]["uri"] != extensions(card)[1]["uri"]
    }),
    ("card_claims_streaming", |card, _| card["capabilities"]["streaming"] == true),
    ("card_claims_push", |card, _| card["capabilities"]["pushNotifications"] == true),
    ("card_claims_extended_card", |card, _| card["capabilities"]["extendedAgentCard"] == true),
    ("card_unreachable_url", |card, _| url(card) == "http://[::]:9/a2a"),
    ("card_relative_url", |card, _| url(card) == "/a2a"),
    ("card_version_unserved", |card, _| card["supportedInterfaces"][0]["protocolVersion"] == "0.3"),
    ("card_other_interface_first", |card, _| {
        card["supportedInterfaces"][0]["protocolBinding"] == "GRPC"
            && card["supportedInterfaces"][1]["protocolBinding"] == "JSONRPC"
    }),
    ("card_wrong_type", |card, _| extensions(card)[0]["required"] == "yes"),
    ("card_extension_optional", |card, _| extensions(card)[0]["required"] == false),
    ("card_without_extension", |card, _| extensions(card).is_empty()),
    ("card_without_params", |card, _| extensions(card)[0].get("params").is_none()),
    ("card_requires_unknown_extension", |card, _| {
        extensions(card).len() == 2 && extensions(card)[1]["required"] == true
    }),
    ("card_without_skills", |card, _| card["skills"] == json!([])),
    ("card_skill_unserved", |card, _| card["skills"][5]["id"] == "finance.quote"),
    ("card_security_required", |card, _| {
        card["securityRequirements"][0]["schemes"]["bearer"].is_object()
            && card["securitySchemes"]["bearer"].is_object()
    }),
    ("card_03_shape", |card, _| {
        card["url"].as_str().unwrap().ends_with("/a2a") && card.get("supportedInterfaces").is_none()
    }),
    ("card_empty_object", |card, _| *card == json!({})),
    ("card_empty_body", |card, _| card.is_null()),
    ("card_not_json", |card, http| card.is_null() && http.field("content-type") == "text/html"),
    ("card_truncated", |card, _| card.is_null()),
    ("card_wrong_content_type", |_, http| http.field("content-type") == "text/plain"),
    ("card_without_caching", |_, http| {
        ["etag", "cache-control", "last-modified"].iter().all(|name| !http.has(name))
    }),
    ("card_changes", |card, http| card["version"] != "0.1.0" && http.has("etag")),
];

fn extensions(card: &Value) -> &Vec<Value> {
    card["capabilities"]["extensions"].as_array().unwrap()
}

fn url(card: &Value) -> &str {
    card["supportedInterfaces"][0]["url"].as_str().unwrap()
}
