//! The whole stock as a file: what `serve` would hold, sold vehicles among it.

use std::io::{self, Write};
use std::str::FromStr;

use serde_json::{Map, Value};

use super::Inventory;

/// How a stock is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum ExportFormat {
    /// One vehicle per line, each a JSON object.
    #[default]
    Jsonl,
    /// One JSON array, a vehicle per line.
    Json,
    /// RFC 4180 with the columns of [`CSV_COLUMNS`] and a line of their names; lines end in a line feed alone.
    Csv,
}

/// A format that is not known.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown format {name:?}; the formats are jsonl, json and csv")]
pub struct UnknownFormat {
    /// What was given.
    pub name: String,
}

impl FromStr for ExportFormat {
    type Err = UnknownFormat;

    fn from_str(name: &str) -> Result<ExportFormat, UnknownFormat> {
        match name {
            "jsonl" => Ok(ExportFormat::Jsonl),
            "json" => Ok(ExportFormat::Json),
            "csv" => Ok(ExportFormat::Csv),
            _ => Err(UnknownFormat { name: name.to_owned() }),
        }
    }
}

/// The members of Vehicle that a CSV export shows. Lists and maps are left out, but for `fees`, which is the sum of the
/// charges (empty where the vehicle has no breakdown).
pub const CSV_COLUMNS: [&str; 34] = [
    "vin",
    "stock",
    "vehicle_id",
    "dealer_id",
    "rooftop",
    "vehicle_type",
    "year",
    "make",
    "model",
    "trim",
    "condition",
    "status",
    "price",
    "list_price",
    "msrp",
    "fees",
    "mileage",
    "body",
    "engine",
    "displacement_cc",
    "fuel",
    "transmission",
    "driveline",
    "city_mpg",
    "highway_mpg",
    "electric_range_mi",
    "battery_kwh",
    "dc_fast_charge",
    "charge_port",
    "exterior_color",
    "interior_color",
    "inventory_date",
    "updated_at",
    "vdp_url",
];

/// Text is handed on in pieces of about this many bytes.
const PIECE: usize = 64 * 1024;

impl Inventory {
    /// Writes all vehicles, each as its detail, in the order of their rows. Sold ones have the status `sold`.
    ///
    /// # Errors
    ///
    /// Those of `out`.
    pub fn export(&self, format: ExportFormat, out: &mut impl Write) -> io::Result<()> {
        let mut text = Vec::with_capacity(2 * PIECE);
        let mut vehicle = Vec::new();
        match format {
            ExportFormat::Jsonl => {}
            ExportFormat::Json => text.extend_from_slice(b"[\n"),
            ExportFormat::Csv => {
                text.extend_from_slice(CSV_COLUMNS.join(",").as_bytes());
                text.push(b'\n');
            }
        }
        let mut rows = self.rows().peekable();
        while let Some(row) = rows.next() {
            match format {
                ExportFormat::Jsonl => self.detail(row, &mut text),
                ExportFormat::Json => {
                    self.detail(row, &mut text);
                    if rows.peek().is_some() {
                        text.push(b',');
                    }
                }
                ExportFormat::Csv => {
                    vehicle.clear();
                    self.detail(row, &mut vehicle);
                    write_csv(&serde_json::from_slice(&vehicle)?, &mut text);
                }
            }
            text.push(b'\n');
            if text.len() >= PIECE {
                out.write_all(&text)?;
                text.clear();
            }
        }
        if format == ExportFormat::Json {
            text.extend_from_slice(b"]\n");
        }
        out.write_all(&text)?;
        out.flush()
    }
}

fn write_csv(vehicle: &Map<String, Value>, out: &mut Vec<u8>) {
    for (index, name) in CSV_COLUMNS.into_iter().enumerate() {
        if index > 0 {
            out.push(b',');
        }
        match vehicle.get(name) {
            None | Some(Value::Null) => {}
            Some(Value::String(text)) => write_csv_text(text, out),
            Some(Value::Array(fees)) if name == "fees" => {
                let sum: u64 = fees.iter().filter_map(|fee| fee["amount"].as_u64()).sum();
                out.extend_from_slice(sum.to_string().as_bytes());
            }
            Some(other) => write_csv_text(&other.to_string(), out),
        }
    }
}

/// A field, in quotes where RFC 4180 demands them.
fn write_csv_text(text: &str, out: &mut Vec<u8>) {
    if !text.contains([',', '"', '\n', '\r']) {
        out.extend_from_slice(text.as_bytes());
        return;
    }
    out.push(b'"');
    for byte in text.bytes() {
        if byte == b'"' {
            out.push(b'"');
        }
        out.push(byte);
    }
    out.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_quoted_where_need_be() {
        let mut out = Vec::new();
        for text in ["plain", "a,b", "5\" wheel"] {
            write_csv_text(text, &mut out);
            out.push(b'|');
        }
        assert_eq!(String::from_utf8(out).unwrap(), "plain|\"a,b\"|\"5\"\" wheel\"|");
    }

    #[test]
    fn formats_have_names() {
        assert_eq!("csv".parse(), Ok(ExportFormat::Csv));
        assert_eq!("CSV".parse::<ExportFormat>().unwrap_err().name, "CSV");
    }
}
