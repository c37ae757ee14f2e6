//! A record: one line of JSON that a person can read, with a checksum that says whether it is what was written.

use std::borrow::Cow;

use jiff::Timestamp;
use serde::Deserialize;
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};

use crate::protocol::write;

/// What stands before the checksum; everything before it is what was summed up.
const MARK: &str = ",\"check\":\"";
/// Hexadecimal digits of a checksum: the first 64 bits of a SHA-256.
const DIGITS: usize = 16;
/// What follows the checksum.
const END: &str = "\"}";

/// What happened at a dealer.
#[derive(Debug, Clone, PartialEq)]
pub enum Entry<'a> {
    /// A lead was received.
    Lead(LeadEntry<'a>),
    /// The dealer began anew, and knows nothing of the leads before.
    Reset,
}

/// A lead, with all that its repetition is told from.
#[derive(Debug, Clone, PartialEq)]
pub struct LeadEntry<'a> {
    /// The identifier it got.
    pub lead_id: Cow<'a, str>,
    /// When it was received (business clock).
    pub received_at: Timestamp,
    /// The conversation it came in.
    pub context_id: Cow<'a, str>,
    /// The request payload, canonical.
    pub request: &'a str,
    /// The response payload that was given.
    pub receipt: &'a str,
}

/// One line of the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Record<'a> {
    /// Its number in the file, from 1 on without a gap.
    pub number: u64,
    /// The id of the dealer where it happened.
    pub dealer: Cow<'a, str>,
    /// What happened.
    pub entry: Entry<'a>,
}

/// Why a line is no record.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum BadRecord {
    /// The end of the line is not that of a record.
    #[error("it does not end with a checksum")]
    NoChecksum,
    /// The line is not what was written.
    #[error("its checksum is {found} and not {written}, as it says")]
    Checksum {
        /// Of the line as it is.
        found: String,
        /// What the line says.
        written: String,
    },
    /// The checksum holds, but nobody here wrote such a record.
    #[error("{0}")]
    Form(String),
}

fn checksum(bytes: &[u8]) -> String {
    Sha256::digest(bytes)[..DIGITS / 2].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Appends a record's line, its line feed included.
pub(super) fn write_line(out: &mut Vec<u8>, number: u64, dealer: &str, entry: &Entry<'_>) {
    let from = out.len();
    out.extend_from_slice(b"{\"n\":");
    write::unsigned(out, number);
    write::member(out, false, "dealer", dealer);
    match entry {
        Entry::Reset => out.extend_from_slice(b",\"reset\":true"),
        Entry::Lead(lead) => {
            write::member(out, false, "lead_id", &lead.lead_id);
            write::member(out, false, "received_at", &lead.received_at.to_string());
            write::member(out, false, "context_id", &lead.context_id);
            for (name, json) in [("request", lead.request), ("receipt", lead.receipt)] {
                out.push(b',');
                write::string(out, name);
                out.push(b':');
                out.extend_from_slice(json.as_bytes());
            }
        }
    }
    let check = checksum(&out[from..]);
    for text in [MARK, &check, END, "\n"] {
        out.extend_from_slice(text.as_bytes());
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Line<'a> {
    n: u64,
    #[serde(borrow)]
    dealer: Cow<'a, str>,
    reset: Option<bool>,
    #[serde(borrow)]
    lead_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    received_at: Option<Cow<'a, str>>,
    #[serde(borrow)]
    context_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    request: Option<&'a RawValue>,
    #[serde(borrow)]
    receipt: Option<&'a RawValue>,
    #[serde(rename = "check")]
    _check: serde::de::IgnoredAny,
}

/// Reads a line without its line feed.
pub(super) fn read_line(line: &[u8]) -> Result<Record<'_>, BadRecord> {
    let told = line.strip_suffix(END.as_bytes()).and_then(|line| line.split_last_chunk::<DIGITS>());
    let (summed, written) = told
        .and_then(|(head, digits)| Some((head.strip_suffix(MARK.as_bytes())?, digits)))
        .ok_or(BadRecord::NoChecksum)?;
    let found = checksum(summed);
    if found.as_bytes() != written {
        return Err(BadRecord::Checksum { found, written: String::from_utf8_lossy(written).into_owned() });
    }
    let line: Line<'_> = serde_json::from_slice(line).map_err(|error| BadRecord::Form(error.to_string()))?;
    let entry = match line {
        Line { reset: Some(true), .. } => Entry::Reset,
        Line {
            lead_id: Some(lead_id),
            received_at: Some(received_at),
            context_id: Some(context_id),
            request: Some(request),
            receipt: Some(receipt),
            ..
        } => Entry::Lead(LeadEntry {
            lead_id,
            received_at: received_at
                .parse()
                .map_err(|error: jiff::Error| BadRecord::Form(format!("received_at: {error}")))?,
            context_id,
            request: request.get(),
            receipt: receipt.get(),
        }),
        _ => return Err(BadRecord::Form("it is neither a lead nor a reset".to_owned())),
    };
    Ok(Record { number: line.n, dealer: line.dealer, entry })
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    pub(in super::super) fn lead(lead_id: &str) -> Entry<'_> {
        Entry::Lead(LeadEntry {
            lead_id: lead_id.into(),
            received_at: "2026-01-01T12:00:00.123456789Z".parse().unwrap(),
            context_id: "a \"b\"\n\u{1F697}".into(),
            request: r#"{"type":"lead.submit.request","message":"\n\u0001"}"#,
            receipt: r#"{"data":{"lead_id":"x"}}"#,
        })
    }

    #[test]
    fn a_record_is_read_as_it_was_written() {
        for entry in [lead("lead_1"), Entry::Reset] {
            let mut line = Vec::new();
            write_line(&mut line, 7, "harbor", &entry);
            let (end, text) = line.split_last().unwrap();
            assert!(*end == b'\n' && !text.contains(&b'\n'));
            let read = read_line(text).unwrap();
            assert_eq!(read, Record { number: 7, dealer: "harbor".into(), entry });
            let value: serde_json::Value = serde_json::from_slice(text).unwrap();
            assert_eq!(value["dealer"], "harbor");
        }
    }

    #[test]
    fn no_bit_can_turn_unseen() {
        let mut line = Vec::new();
        write_line(&mut line, 7, "harbor", &lead("lead_1"));
        line.pop();
        for bit in 0..line.len() * 8 {
            let mut bad = line.clone();
            bad[bit / 8] ^= 1 << (bit % 8);
            assert!(read_line(&bad).is_err(), "bit {bit}: {}", String::from_utf8_lossy(&bad));
        }
        for end in 0..line.len() {
            assert!(read_line(&line[..end]).is_err(), "{end}");
        }
    }
}
