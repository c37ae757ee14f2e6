//! One vehicle, drawn from its own stream: which build, what state, what prices, and its text.

use fake::Fake;
use fake::faker::name::en::FirstName;

use super::catalogue::{Build, Catalogue, LEVELS, Line};
use super::columns::{CONDITIONS, Cells, Column, MISSING, Number, Status};
use super::draw::Draw;
use super::generate::Scene;
use super::json;
use super::keys;
use super::stamp;
use super::vin::Vin;

/// What a row must be, whatever the seed: the first rows hold one vehicle for each of the values to test with.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Demand {
    /// The class, as an index of `VEHICLE_TYPES`.
    kind: Option<usize>,
    electric: bool,
    status: Option<Status>,
    used: bool,
    /// VIN, stock number, `vehicle_id`, list price and price are all there.
    complete: bool,
    /// Only a `vehicle_id`, a stock number and a note tell what it is.
    undecoded: bool,
    fees: Option<Fees>,
    /// It came in the day before the scene's.
    arrived: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Fees {
    /// A breakdown with at least one charge, and no discount: the list price is below the price.
    Some,
    /// The dealer states that there are none.
    None,
    /// No breakdown.
    Absent,
    /// No price either.
    Unpriced,
}

/// How many of the first rows are there for the values to test with.
pub(crate) const DEMANDED: u32 = 14;

/// What a unit that has just come must be: most stand on the lot, the others are on their way.
pub(crate) fn arrival(is_on_its_way: bool) -> Demand {
    let status = if is_on_its_way { Status::Intransit } else { Status::Available };
    Demand { status: Some(status), arrived: true, ..Demand::default() }
}

/// What a row must be when the stock is made.
pub(crate) fn demand(row: u32) -> Demand {
    let listed = Demand { status: Some(Status::Available), complete: true, ..Demand::default() };
    let car = Demand { kind: Some(0), ..listed };
    match row {
        // What a first example should have: every member that seed 000 shows of a vehicle.
        0 | 1 => Demand { fees: Some(Fees::Some), ..car },
        2 => Demand { status: Some(Status::Pending), ..car },
        3 => Demand { status: Some(Status::Intransit), ..car },
        4 => Demand { status: Some(Status::Sold), ..car },
        5 => Demand { used: true, fees: Some(Fees::Some), ..car },
        6 => Demand { kind: Some(1), ..listed },
        7 => Demand { electric: true, ..car },
        8..=10 => Demand { kind: Some(row as usize - 6), ..listed },
        11 => Demand { status: Some(Status::Intransit), kind: Some(0), undecoded: true, ..Demand::default() },
        12 => Demand { fees: Some(Fees::Unpriced), ..car },
        13 => Demand { fees: Some(Fees::None), ..car },
        _ => Demand::default(),
    }
}

const NEW: usize = 0;
const USED: usize = 1;
const CERTIFIED: usize = 2;

/// Percent of today's price of the trim that a used vehicle of so many years is worth.
const WORTH: [u32; 16] = [92, 84, 76, 68, 61, 54, 48, 43, 38, 34, 30, 27, 24, 22, 20, 18];

/// Buffers of a unit, kept from one to the next.
#[derive(Default)]
pub(crate) struct UnitText {
    /// Members that a listing shows.
    pub(crate) listing: Vec<u8>,
    /// Members that only the detail shows.
    pub(crate) detail: Vec<u8>,
    stock: String,
    vehicle_id: String,
}

/// Draws vehicle `row`: replaces the texts and answers its columns and the number of its build.
pub(crate) fn draw(scene: &Scene<'_>, row: u32, demand: Demand, text: &mut UnitText) -> (Cells, u32) {
    let draw = &mut scene.stream(row);
    let mut cells = Cells::default();

    let status = demand.status.unwrap_or_else(|| match draw.below(100) {
        0..80 => Status::Available,
        80..88 => Status::Intransit,
        88..93 => Status::Pending,
        _ => Status::Sold,
    });
    let (build, condition) = choose(scene, draw, demand, status);
    let line = &scene.catalogue.lines[build.line];
    scene.catalogue.fill(build, &mut cells);
    cells.set(Column::Status, status.code());
    cells.set(Column::Condition, condition as u16 + 1);

    text.listing.clear();
    text.detail.clear();
    let undecoded = demand.undecoded || (!demand.complete && status == Status::Intransit && draw.percent(35));
    let has_stock = demand.complete || demand.undecoded || !undecoded && draw.percent(98) || draw.percent(50);
    write_identifiers(scene, draw, row, build, condition, [!undecoded, has_stock], demand.complete, text);

    let out = &mut text.listing;
    json::text_member(out, "condition", CONDITIONS[condition]);
    json::text_member(out, "status", status.word());
    json::text_member(out, "dealer_id", &scene.profile.dealer_id);
    let rooftop = draw.pick(&scene.rooftops[line.kind]).copied().unwrap_or(0);
    cells.set(Column::Rooftop, scene.rooftop_codes[rooftop]);
    json::text_member(out, "rooftop", &scene.profile.rooftops[rooftop].name);
    if let Some(miles) = mileage(scene, draw, line, build.year, condition, status) {
        cells.set_number(Number::Mileage, miles);
        json::number_member(out, "mileage", u64::from(miles));
    }
    write_colors(scene, draw, line, &mut cells, out);
    write_prices(scene, draw, build, condition, rooftop, demand, &mut cells, out);
    write_dates(scene, draw, status, condition, demand.arrived, &mut cells, out);

    let stock = has_stock.then_some(text.stock.as_str());
    write_detail(scene, draw, status, condition, rooftop, undecoded, stock, &mut text.detail);
    (cells, scene.catalogue.number(build))
}

/// Which build, and in what condition: the two go together, since a car of 2015 is not new.
fn choose(scene: &Scene<'_>, draw: &mut Draw, demand: Demand, status: Status) -> (Build, usize) {
    let Catalogue { kinds, current, kind_shares, electric, lines, .. } = scene.catalogue;
    let kind = demand.kind.unwrap_or_else(|| draw.weighted(kind_shares));
    let share = match status {
        _ if demand.electric => electric,
        // What comes from the factory is still built there.
        Status::Intransit => &current[kind],
        _ => &kinds[kind],
    };
    let place = share.lines[draw.weighted(&share.cumulative)];
    let line = &lines[place];

    let wanted = match draw.below(100) {
        _ if status == Status::Intransit => NEW,
        _ if demand.used => USED,
        0..45 => NEW,
        45..86 => USED,
        _ if kind == 0 => CERTIFIED,
        _ => USED,
    };
    let this_year = scene.year;
    // Last year's new ones stay until they are sold. This year's come back as used ones when next year's models are there.
    let youngest = if scene.newest > this_year { this_year } else { this_year - 1 };
    let of = |low: u16, high: u16| {
        let from = line.years.partition_point(|&year| year < low);
        &line.years[from..line.years.partition_point(|&year| year <= high).max(from)]
    };
    let (new, used, certified) =
        (of(this_year - 1, scene.newest), of(0, youngest), of(this_year - 6, this_year - 1));
    let (condition, years) = match wanted {
        CERTIFIED if !certified.is_empty() => (CERTIFIED, certified),
        USED | CERTIFIED if !used.is_empty() => (USED, used),
        _ if !new.is_empty() => (NEW, new),
        _ => (USED, &line.years[..]),
    };
    let year = match condition {
        // Most new ones are of the current year.
        NEW if years.contains(&this_year) && draw.percent(65) => this_year,
        NEW => draw.pick(years).copied().unwrap_or(this_year),
        // The lesser of two ages: young used ones are the more common ones.
        _ => {
            years[years.len()
                - 1
                - draw.below(years.len() as u32).min(draw.below(years.len() as u32)) as usize]
        }
    };
    let powers: Vec<usize> = line.powers_in(year).collect();
    let build = Build {
        line: place,
        year,
        trim: draw.below(line.trims.len() as u32) as usize,
        power: draw.pick(&powers).copied(),
        // The first drive is the usual one.
        drive: (line.drives() > 0)
            .then(|| if draw.percent(60) { 0 } else { draw.below(line.drives() as u32) as usize }),
        level: draw.below(LEVELS),
    };
    (build, condition)
}

#[allow(clippy::too_many_arguments, reason = "the parts of one vehicle, known one after the other")]
fn write_identifiers(
    scene: &Scene<'_>,
    draw: &mut Draw,
    row: u32,
    build: Build,
    condition: usize,
    [has_vin, has_stock]: [bool; 2],
    complete: bool,
    text: &mut UnitText,
) {
    use std::fmt::Write as _;
    let vin =
        has_vin.then(|| Vin::compose(scene.dealer, scene.vin_serial(row), build.year, build.line as u8));
    text.stock.clear();
    text.vehicle_id.clear();
    // Writing to a String cannot fail.
    let _ = write!(text.stock, "{}{:07}", ["N", "U", "C"][condition], scene.stock_serial(row));
    let _ = write!(text.vehicle_id, "veh_{:07}", scene.id_serial(row));
    let has_id = complete || vin.is_none() || draw.percent(50);
    let values = [
        vin.as_ref().map(Vin::as_str),
        has_stock.then_some(text.stock.as_str()),
        has_id.then_some(text.vehicle_id.as_str()),
    ];
    keys::write_identifiers(&mut text.listing, values);
}

fn mileage(
    scene: &Scene<'_>,
    draw: &mut Draw,
    line: &Line<'_>,
    year: u16,
    condition: usize,
    status: Status,
) -> Option<u32> {
    let [low, high] = line.miles?;
    if condition == NEW {
        // Delivery and test drives, below 150.
        return Some(if status == Status::Intransit { draw.below(12) } else { draw.between(2, 149) });
    }
    // Sold in its model year, on average: six months at least, so that no used one is fresher than that.
    let months = (u32::from(scene.year.saturating_sub(year)) * 12 + scene.month).saturating_sub(6).max(6);
    // Certified ones have led a quiet life.
    let high = if condition == CERTIFIED { low + (high - low) / 2 } else { high };
    Some(draw.between(low, high) * months / 12 + draw.below(300))
}

fn write_colors(scene: &Scene<'_>, draw: &mut Draw, line: &Line<'_>, cells: &mut Cells, out: &mut Vec<u8>) {
    let Catalogue { exterior, interior, .. } = scene.catalogue;
    // Trailers are often sold without one; only what people sit inside of has an inner colour (AAP digest, section d.5).
    let painted = if line.kind == 2 { 60 } else { 97 };
    let inside = line.kind == 0 || line.kind == 3 && line.miles.is_some();
    for (name, column, colors, chance) in [
        ("exterior_color", Column::ExteriorColor, exterior, painted),
        ("interior_color", Column::InteriorColor, interior, if inside { 92 } else { 0 }),
    ] {
        if draw.percent(chance)
            && let Some(color) = draw.pick(colors)
        {
            cells.set(column, color.code);
            json::text_member(out, name, &color.text);
        }
    }
}

#[allow(clippy::too_many_arguments, reason = "the parts of one vehicle, known one after the other")]
fn write_prices(
    scene: &Scene<'_>,
    draw: &mut Draw,
    build: Build,
    condition: usize,
    rooftop: usize,
    demand: Demand,
    cells: &mut Cells,
    out: &mut Vec<u8>,
) {
    let line = &scene.catalogue.lines[build.line];
    let trim = line.trims[build.trim].1;
    let extra = line.power(build.power).map_or(0, |power| power.data.extra);
    // Each level of equipment adds 5 % of the trim's price.
    let today = trim + extra + trim * build.level / 20;
    let age = u32::from(scene.year.saturating_sub(build.year));
    // Prices of new ones rose by some 2 % a year.
    let msrp = round(today * (100 - (2 * age).min(40)) / 100, 5);
    let list_price = if condition == NEW {
        let below = if draw.percent(70) { 0 } else { draw.between(1, 5) };
        round(msrp * (100 - below) / 100, 5)
    } else {
        let worth = WORTH[(age as usize).min(WORTH.len() - 1)];
        let worth = if condition == CERTIFIED { worth + 3 } else { worth };
        // Two like ones differ by up to 7 % either way; advertised prices end in 00, 50 or 95.
        let value = today / 100 * worth * draw.between(93, 107) / 100;
        (value / 100 * 100 + [0, 50, 95][draw.below(3) as usize]).max(495)
    };
    let fees = demand.fees.unwrap_or_else(|| match draw.below(100) {
        0..6 if !demand.complete => Fees::Unpriced,
        0..45 => Fees::Some,
        45..57 => Fees::None,
        _ => Fees::Absent,
    });
    let list_price = (demand.complete || draw.percent(92)).then_some(list_price).ok_or(list_price);
    if let Ok(price) = list_price {
        cells.set_number(Number::ListPrice, price);
        json::number_member(out, "list_price", u64::from(price));
    }
    if draw.percent(if condition == NEW { 96 } else { 20 }) || demand.complete {
        cells.set_number(Number::Msrp, msrp);
        json::number_member(out, "msrp", u64::from(msrp));
    }
    let list_price = list_price.unwrap_or_else(|price| price);
    let charges = match fees {
        Fees::Some => write_fees(scene, draw, rooftop, demand.fees.is_some(), out),
        Fees::None => {
            json::key(out, "fees");
            out.extend_from_slice(b"[]");
            0
        }
        Fees::Absent => 0,
        Fees::Unpriced => return,
    };
    // price = list_price + fees - discount (AAP digest, section d.6: mandatory charges in, universal discounts off).
    let most = if condition == NEW { 7 } else { 3 };
    let discounted = demand.fees.is_none() && draw.percent(55);
    let discount = if discounted { list_price * draw.between(1, most) / 100 / 25 * 25 } else { 0 };
    let price = (list_price - discount).saturating_add(charges).min(MISSING - 1);
    cells.set_number(Number::Price, price);
    json::number_member(out, "price", u64::from(price));
}

/// The rooftop's own charges and up to two add-ons. Answers their sum.
fn write_fees(
    scene: &Scene<'_>,
    draw: &mut Draw,
    rooftop: usize,
    at_least_one: bool,
    out: &mut Vec<u8>,
) -> u32 {
    json::key(out, "fees");
    out.push(b'[');
    let mut sum = 0;
    let mut fee = |out: &mut Vec<u8>, name: &str, amount: u32| {
        if !out.ends_with(b"[") {
            out.push(b',');
        }
        out.push(b'{');
        out.extend_from_slice(b"\"name\":");
        json::string(out, name);
        out.extend_from_slice(b",\"amount\":");
        json::number(out, u64::from(amount));
        out.push(b'}');
        sum = u32::saturating_add(sum, amount);
    };
    let own = scene.profile.rooftops[rooftop].fees.as_deref().unwrap_or_default();
    for charge in own {
        fee(out, &charge.name, charge.amount);
    }
    let add_ons = &scene.catalogue.vocabulary.words.add_ons;
    let count = draw.below(3).max(u32::from(at_least_one)) as usize;
    let first = draw.below(add_ons.len() as u32) as usize;
    let chosen = add_ons.iter().cycle().skip(first).take(count.min(add_ons.len()));
    // Names are unique within a list (AAP digest, section d.6).
    for (name, &amount) in chosen.filter(|(name, _)| own.iter().all(|charge| charge.name != **name)) {
        fee(out, name, amount);
    }
    out.push(b']');
    sum
}

fn round(amount: u32, to: u32) -> u32 {
    amount / to * to
}

/// When the unit came in, and when something about it last changed: a listing says both (seed 000, reply to
/// `inventory.search`).
fn write_dates(
    scene: &Scene<'_>,
    draw: &mut Draw,
    status: Status,
    condition: usize,
    arrived: bool,
    cells: &mut Cells,
    out: &mut Vec<u8>,
) {
    let seconds = updated(scene, draw, status);
    let most = match (status, condition) {
        _ if arrived => 1,
        (Status::Intransit, _) => 10,
        (_, NEW) => 110,
        _ => 70,
    };
    if let Some(date) = scene.dates.get(draw.between(1, most) as usize) {
        json::text_member(out, "inventory_date", date);
    }
    cells.set_number(Number::UpdatedAt, seconds);
    out.push(b',');
    out.extend_from_slice(stamp::OPEN);
}

/// When availability or price last changed: in the last business days before the stock's day, in business hours.
fn updated(scene: &Scene<'_>, draw: &mut Draw, status: Status) -> u32 {
    let days = &scene.business_days;
    // Listings move at least once per business day (AAP digest, section f); what is sold moves no more.
    let back = if status == Status::Sold { draw.below(days.len() as u32) as usize } else { 0 };
    // 15:00 to 23:59 UTC is the working day between the coasts.
    days[back.min(days.len() - 1)] + draw.between(15 * 3600, 24 * 3600 - 1)
}

#[allow(clippy::too_many_arguments, reason = "the parts of one vehicle, known one after the other")]
fn write_detail(
    scene: &Scene<'_>,
    draw: &mut Draw,
    status: Status,
    condition: usize,
    rooftop: usize,
    undecoded: bool,
    stock: Option<&str>,
    out: &mut Vec<u8>,
) {
    if let (Some(website), Some(stock)) = (&scene.profile.rooftops[rooftop].website, stock) {
        json::key(out, "vdp_url");
        out.push(b'"');
        json::escaped(out, website.trim_end_matches('/'));
        out.extend_from_slice(b"/inventory/");
        out.extend_from_slice(stock.as_bytes());
        out.push(b'"');
    }
    let notes = &scene.catalogue.vocabulary.words.notes;
    let (notes, chance) = match status {
        Status::Available => (&notes.available, if condition == NEW { 5 } else { 30 }),
        Status::Intransit => (&notes.intransit, 60),
        Status::Pending => (&notes.pending, 60),
        Status::Sold => (&notes.pending, 0),
    };
    // A unit that neither VIN nor stock number tells apart needs notes (AAP digest, section f).
    if (undecoded || draw.percent(chance))
        && let Some(note) = draw.pick(notes)
    {
        let name: String =
            if note.contains("{name}") { FirstName().fake_with_rng(draw.rng()) } else { String::new() };
        json::text_member(out, "notes", &note.replace("{name}", &name));
    }
    // Members beyond the schema, which leaves Vehicle open (AAP digest, section d.5).
    if condition != NEW && draw.percent(25) {
        json::text_member(out, "title_status", "clean");
    }
    if condition == CERTIFIED {
        json::text_member(out, "warranty", "7 years or 100,000 miles, powertrain");
    }
}
