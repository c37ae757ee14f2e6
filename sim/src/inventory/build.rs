//! The text of a build: the members that all its units share.

use super::catalogue::{Build, Catalogue, LEVELS, Line};
use super::columns::VEHICLE_TYPES;
use super::draw::Draw;
use super::json;
use super::vocabulary::Attribute;

/// Streams of builds lie apart from those of vehicles, whose numbers stay below this one.
const STREAMS: u64 = 1 << 63;

/// Where pictures of models would be; a name reserved for examples (RFC 2606).
const PHOTOS: &str = "https://photos.dealer-sim.example";

/// Replaces `listing` and `detail` by the members of a build.
pub(crate) fn write(
    catalogue: &Catalogue<'_>,
    seed: u64,
    number: u32,
    listing: &mut Vec<u8>,
    detail: &mut Vec<u8>,
) {
    let build = catalogue.build(number);
    let line = &catalogue.lines[build.line];
    listing.clear();
    write_listing(line, build, listing);
    detail.clear();
    // A build is drawn by what it is, not by its number, which an added model would shift.
    let mut draw = Draw::new(seed, STREAMS | identity(line, build));
    write_detail(catalogue, line, build, &mut draw, detail);
}

/// A number for what a build is (FNV-1a over its names); two builds that share one merely share features.
fn identity(line: &Line<'_>, build: Build) -> u64 {
    let names = [&line.make.text, &line.model.text, &line.trims[build.trim].0.text];
    let bytes = names.into_iter().flat_map(|name| name.bytes().chain([0]));
    let rest =
        [build.year as u8, build.power.unwrap_or(0) as u8, build.drive.unwrap_or(0) as u8, build.level as u8];
    bytes.chain(rest).fold(0xcbf2_9ce4_8422_2325, |hash: u64, byte| {
        (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
    })
}

fn write_listing(line: &Line<'_>, build: Build, out: &mut Vec<u8>) {
    // A car may leave its class out (AAP digest, section d.5); one level of each does, so that clients meet both.
    if line.kind != 0 || build.level != 0 {
        json::text_member(out, "vehicle_type", VEHICLE_TYPES[line.kind]);
    }
    json::number_member(out, "year", u64::from(build.year));
    json::text_member(out, "make", &line.make.text);
    json::text_member(out, "model", &line.model.text);
    json::text_member(out, "trim", &line.trims[build.trim].0.text);
    json::text_member(out, "body", &line.data.body);
    if let Some(power) = line.power(build.power) {
        json::text_member(out, "engine", &power.data.engine);
        if let Some(cc) = power.data.cc {
            json::number_member(out, "displacement_cc", u64::from(cc));
        }
        json::text_member(out, "fuel", &power.data.fuel);
        if let Some(transmission) = &power.data.transmission {
            json::text_member(out, "transmission", transmission);
        }
    }
    if let Some(drive) = line.drive(build.drive) {
        json::text_member(out, "driveline", &drive.text);
    }
    if let Some(power) = line.power(build.power) {
        if let Some(range) = power.data.range {
            json::number_member(out, "electric_range_mi", u64::from(range));
        }
        if let Some(dc) = power.data.dc {
            json::key(out, "dc_fast_charge");
            out.extend_from_slice(if dc { b"true" } else { b"false" });
        }
        if let Some(port) = &power.data.port {
            json::text_member(out, "charge_port", port);
        }
    }
}

fn write_detail(
    catalogue: &Catalogue<'_>,
    line: &Line<'_>,
    build: Build,
    draw: &mut Draw,
    out: &mut Vec<u8>,
) {
    if let Some(power) = line.power(build.power) {
        if let Some(mpg) = power.data.mpg {
            for (name, mpg) in ["city_mpg", "highway_mpg"].into_iter().zip(mpg) {
                json::number_member(out, name, u64::from(mpg.saturating_add_signed(line.data.mpg_shift)));
            }
        }
        for (name, value) in [("battery_kwh", power.data.kwh), ("motor_power_hp", power.data.hp)] {
            if let Some(value) = value {
                json::number_member(out, name, u64::from(value));
            }
        }
    }
    let features = features(catalogue, line, build, draw);
    json::key(out, "features");
    json::text_array(out, features.iter().copied());
    write_photos(line, build, out);
    // One build in eight has nothing to say for itself.
    if !draw.percent(12) {
        json::key(out, "description");
        json::string(out, &description(line, build, &features));
    }
    write_attributes(line, out);
}

/// Equipment: the costlier the trim and the level, the further down the list of its class.
fn features<'a>(
    catalogue: &'a Catalogue<'_>,
    line: &Line<'_>,
    build: Build,
    draw: &mut Draw,
) -> Vec<&'a str> {
    let Some(all) = catalogue.vocabulary.words.features.get(VEHICLE_TYPES[line.kind]) else {
        return Vec::new();
    };
    let cheaper = line.trims.iter().filter(|trim| trim.1 < line.trims[build.trim].1).count();
    let steps = line.trims.len() + LEVELS as usize;
    let reach = (all.len() * (cheaper + build.level as usize + 2)).div_ceil(steps).clamp(3, all.len());
    all[..reach].iter().map(String::as_str).filter(|_| draw.percent(70)).collect()
}

fn description(line: &Line<'_>, build: Build, features: &[&str]) -> String {
    let mut text =
        format!("{} {} {} {}", build.year, line.make.text, line.model.text, line.trims[build.trim].0.text);
    if let Some(power) = line.power(build.power) {
        text.push_str(" with the ");
        text.push_str(&power.data.engine);
        if let Some(transmission) = &power.data.transmission {
            text.push_str(" and ");
            text.push_str(transmission);
        }
    }
    text.push('.');
    if let Some(seats) = line.data.seats {
        text.push_str(&format!(" Seats {seats}."));
    }
    if let [first, .., last] = features {
        text.push_str(&format!(" Equipped with {first}, {last} and more."));
    }
    text
}

fn write_photos(line: &Line<'_>, build: Build, out: &mut Vec<u8>) {
    let path = format!("{PHOTOS}/{}/{}/{}", slug(&line.make.text), slug(&line.model.text), build.year);
    let photos = ["front", "side", "interior"].map(|view| format!("{path}/{view}.jpg"));
    json::key(out, "photos");
    // Towables and two-wheelers have no interior to show.
    let count = if line.kind == 0 { 3 } else { 2 };
    json::text_array(out, photos[..count].iter().map(String::as_str));
}

/// A name as it stands in an address: lower-case ASCII letters and digits, the rest as hyphens.
fn slug(name: &str) -> String {
    name.chars()
        .map(|letter| if letter.is_ascii_alphanumeric() { letter.to_ascii_lowercase() } else { '-' })
        .collect()
}

fn write_attributes(line: &Line<'_>, out: &mut Vec<u8>) {
    let mut attributes = Vec::new();
    if let Some(seats) = line.data.seats {
        json::number_member(&mut attributes, "seats", u64::from(seats));
    }
    for (name, value) in line.attributes() {
        match value {
            Attribute::Flag(flag) => {
                json::key(&mut attributes, name);
                attributes.extend_from_slice(if *flag { b"true" } else { b"false" });
            }
            Attribute::Number(number) => json::number_member(&mut attributes, name, u64::from(*number)),
            Attribute::Text(text) => json::text_member(&mut attributes, name, text),
        }
    }
    if !attributes.is_empty() {
        json::key(out, "other_attributes");
        out.push(b'{');
        out.extend_from_slice(&attributes);
        out.push(b'}');
    }
}
