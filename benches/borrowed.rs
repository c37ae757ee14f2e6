//! The floor that dispatch is measured against: the same call, read with serde into borrowed types and nothing more.

use std::borrow::Cow;

use serde::Deserialize;

/// A call's envelope as an agent sends it, around the payload of a skill.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the members of the wire")]
pub struct Call<'a, P> {
    #[serde(borrow)]
    pub jsonrpc: &'a str,
    pub id: &'a str,
    pub method: &'a str,
    #[serde(borrow)]
    pub params: Params<'a, P>,
}

/// `params` of SendMessage.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the members of the wire")]
pub struct Params<'a, P> {
    #[serde(borrow)]
    pub message: Message<'a, P>,
    #[serde(borrow)]
    pub configuration: Configuration<'a>,
}

/// The message.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the members of the wire")]
pub struct Message<'a, P> {
    pub message_id: &'a str,
    pub context_id: Option<&'a str>,
    pub role: &'a str,
    #[serde(borrow)]
    pub parts: Vec<Part<'a, P>>,
}

/// A part with data.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the members of the wire")]
pub struct Part<'a, P> {
    pub data: P,
    #[serde(borrow)]
    pub media_type: Cow<'a, str>,
}

/// What the caller can read.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
#[allow(missing_docs, reason = "the members of the wire")]
pub struct Configuration<'a> {
    #[serde(borrow)]
    pub accepted_output_modes: Vec<&'a str>,
}

/// The payload of inventory.vehicle.
#[derive(Debug, Deserialize)]
#[allow(missing_docs, reason = "the members of the wire")]
pub struct Vehicle<'a> {
    pub r#type: &'a str,
    pub vin: Option<&'a str>,
}

/// The payload of inventory.search, with the members that the bench's search has.
#[derive(Debug, Deserialize)]
#[allow(missing_docs, reason = "the members of the wire")]
pub struct Search<'a> {
    pub r#type: &'a str,
    #[serde(borrow)]
    pub filters: Filters<'a>,
    pub pagination: Pagination,
    #[serde(borrow)]
    pub sort: Sort<'a>,
    pub privacy: Privacy,
}

/// Its filters.
#[derive(Debug, Deserialize)]
#[allow(missing_docs, reason = "the members of the wire")]
pub struct Filters<'a> {
    #[serde(borrow)]
    pub make: Vec<&'a str>,
    #[serde(borrow)]
    pub condition: Vec<&'a str>,
    pub year_min: u32,
    pub price_max: u32,
}

/// Its page.
#[derive(Debug, Deserialize)]
#[allow(missing_docs, reason = "the members of the wire")]
pub struct Pagination {
    pub skip: u32,
    pub limit: u32,
}

/// Its order.
#[derive(Debug, Deserialize)]
#[allow(missing_docs, reason = "the members of the wire")]
pub struct Sort<'a> {
    pub field: &'a str,
    pub order: &'a str,
}

/// Its privacy.
#[derive(Debug, Deserialize)]
#[allow(missing_docs, reason = "the members of the wire")]
pub struct Privacy {
    pub anonymous: bool,
}

/// Reads a call of inventory.vehicle; its VIN's length.
///
/// # Errors
/// When it is none.
pub fn vehicle(body: &str) -> serde_json::Result<usize> {
    let call: Call<'_, Vehicle<'_>> = serde_json::from_str(body)?;
    Ok(call.params.message.parts.first().and_then(|part| part.data.vin).map_or(0, str::len))
}

/// Reads a call of inventory.search; its number of makes.
///
/// # Errors
/// When it is none.
pub fn search(body: &str) -> serde_json::Result<usize> {
    let call: Call<'_, Search<'_>> = serde_json::from_str(body)?;
    Ok(call.params.message.parts.first().map_or(0, |part| part.data.filters.make.len()))
}
