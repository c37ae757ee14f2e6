//! The stock on a later day: what the market has made of the stock at the start. It is made from that stock anew each time, so
//! it does not matter on which days anybody looked before.

use std::collections::HashMap;

use jiff::civil::Date;

use super::catalogue::Catalogue;
use super::columns::{Cells, Column, MISSING, Number, Status};
use super::dictionary::Dictionaries;
use super::generate::{GenerateError, MOST_VEHICLES, Scene, Spec, newest_model_year};
use super::market::{Arrival, Calendar, Fate};
use super::store::{Store, Unit};
use super::unit::{self, UnitText};
use super::vocabulary::Vocabulary;
use super::{Inventory, Profile, build, json, members, stamp};

/// Units that can come in for each one at the start before the oldest of them must go; a small dealer may have some more. Those
/// that go were sold long ago, nearly all of them, and the others are taken to an auction.
const LEAST_PLACES: u32 = 16;

/// Fewer like units than this say nothing about a price.
const FEWEST_PEERS: u32 = 3;

/// How soon each class sells, in per cent of a car, in the order of `VEHICLE_TYPES`.
const PACE: [u64; 5] = [100, 70, 70, 60, 70];

impl Inventory {
    /// The stock on `day`, when this one is that of `start`. Vehicles are sold, become cheaper as they stand, and others come in
    /// where the stock was made from a seed; the vehicles of the first rows, which are there to test with, stay as they are.
    /// The same for the same stock, seed and days, whatever was looked at before.
    ///
    /// # Errors
    /// As [`Inventory::generate`], for what comes in.
    pub(crate) fn after(
        &self,
        profile: &Profile,
        seed: u64,
        start: Date,
        day: Date,
    ) -> Result<Inventory, GenerateError> {
        let calendar = Calendar::new(seed, start, day);
        if calendar.count() == 0 {
            return Ok(self.clone());
        }
        let turnover = Turnover { stock: self, calendar: &calendar, peers: Peers::of(&self.store) };
        let mut store = self.store.clone();
        store.uncluster();
        let mut dictionaries = (*self.dictionaries).clone();
        turnover.move_on(start, &mut store)?;
        if let Some(spec) = &self.spec {
            turnover.take_in(spec, profile, &mut store, &mut dictionaries)?;
        }
        Ok(Inventory::finish(store, dictionaries, self.spec))
    }
}

impl Inventory {
    /// When the listings of a stock that was opened on `start` have all been looked through by `day`, in seconds since 1970; 0
    /// before the first business day has ended.
    pub(crate) fn looked_through(start: Date, day: Date) -> u32 {
        Calendar::new(0, start, day).last_closing()
    }
}

struct Turnover<'a> {
    /// As it was at the start.
    stock: &'a Inventory,
    calendar: &'a Calendar,
    peers: Peers,
}

impl Turnover<'_> {
    /// The number by which the market knows a unit: its dealer above, as in the draws of the stock.
    fn number(&self, unit: u32) -> u64 {
        let dealer = self.stock.spec.map_or(0, |spec| spec.dealer);
        u64::from(dealer) << 32 | u64::from(unit)
    }

    fn arrival(&self, unit: u32, cells: &Cells, day: u32, age: u32) -> Arrival {
        let class = usize::from(cells.codes[Column::VehicleType as usize]).wrapping_sub(1);
        Arrival {
            number: self.number(unit),
            status: status_of(cells),
            day,
            age,
            price: asked(cells),
            peers: self.peers.price(cells),
            pace: PACE.get(class).copied().unwrap_or(100),
        }
    }

    /// Lets the days pass over the vehicles that were there at the start.
    fn move_on(&self, start: Date, store: &mut Store) -> Result<(), GenerateError> {
        let (mut listing, mut detail) = (Vec::new(), Vec::new());
        let kept = if self.stock.spec.is_some() { unit::DEMANDED } else { 0 };
        for row in self.stock.rows() {
            let mut cells = self.stock.store.cells(row);
            let own = self.stock.store.own_listing(row);
            let unit = self.arrival(row, &cells, 0, age(own, start));
            let fate = if row < kept {
                Fate { status: unit.status, day: 0, price: unit.price.unwrap_or(0) }
            } else {
                self.calendar.fate(&unit)
            };
            if unit.status == Status::Sold {
                continue;
            }
            let touched = self.touched(&unit, &fate);
            if fate.day == 0 && stamp::is_due(own) {
                store.set_number(row, Number::UpdatedAt, touched);
                continue;
            }
            refill(&mut listing, own);
            refill(&mut detail, self.stock.store.own_detail(row));
            cells.set_number(Number::UpdatedAt, touched);
            rewrite(&unit, &fate, &mut cells, &mut listing, &mut detail);
            let build = self.stock.store.build_of(row);
            store.set(row, Unit { cells: &cells, build, listing: &listing, detail: &detail })?;
        }
        Ok(())
    }

    /// Listings are looked through on every business day (AAP digest, section f); what is sold moves no more.
    fn touched(&self, unit: &Arrival, fate: &Fate) -> u32 {
        let day = if fate.status == Status::Sold { fate.day } else { self.calendar.count() };
        self.calendar.touched(unit.number, day)
    }

    /// Puts in what has come since the start: each unit into the place of the one that came as many units before as there are
    /// places.
    fn take_in(
        &self,
        spec: &Spec,
        profile: &Profile,
        store: &mut Store,
        dictionaries: &mut Dictionaries,
    ) -> Result<(), GenerateError> {
        // Stock numbers and VINs are the unit's own as long as numbers of units are.
        let numbers = MOST_VEHICLES - spec.vehicles;
        let places = u64::from(spec.vehicles.max(LEAST_PLACES).min(numbers));
        let dealer = self.number(u32::MAX);
        let days: Vec<u32> = (1..=self.calendar.count())
            .map(|day| self.calendar.arrivals(dealer, day, spec.vehicles))
            .collect();
        let all: u64 = days.iter().copied().map(u64::from).sum();
        if places == 0 {
            return Ok(());
        }
        let vocabulary = Vocabulary::built_in()?;
        let mut builds = Builds::of(store);
        let mut made: Vec<Option<Made>> = Vec::new();
        made.resize_with(all.min(places) as usize, || None);
        let (mut number, mut text) = (0, UnitText::default());
        let mut season: Option<(u16, u16, Catalogue<'_>)> = None;
        for (day, count) in (1..).zip(days) {
            let first = number;
            number += u64::from(count);
            // Those of long ago have gone again.
            if number + places <= all {
                continue;
            }
            // A unit is in the stock from the day after it came.
            let spec = Spec { day: self.calendar.date(day).tomorrow().unwrap_or(spec.day), ..*spec };
            let (year, newest) = (spec.day.year().unsigned_abs(), newest_model_year(spec.day));
            if season.as_ref().is_none_or(|season| (season.0, season.1) != (year, newest)) {
                season = Some((year, newest, Catalogue::new(&vocabulary, year, newest, dictionaries)?));
                builds.begin_season();
            }
            let Some((.., catalogue)) = &season else { continue };
            let mut rooftops = Vec::new();
            for rooftop in &profile.rooftops {
                rooftops.push(dictionaries.intern(Column::Rooftop, &rooftop.name)?);
            }
            let scene = Scene::new(&spec, catalogue, profile, rooftops);
            for number in first.max(all.saturating_sub(places))..number {
                let unit = self.stock.store.len() as u32 + (number % u64::from(numbers)) as u32;
                let demand = unit::arrival(self.calendar.is_on_its_way(self.number(unit), day));
                let (mut cells, build) = unit::draw(&scene, unit, demand, &mut text);
                let arrival = self.arrival(unit, &cells, day, 0);
                let fate = self.calendar.fate(&arrival);
                cells.set_number(Number::UpdatedAt, self.touched(&arrival, &fate));
                rewrite(&arrival, &fate, &mut cells, &mut text.listing, &mut text.detail);
                let build = builds.place(catalogue, spec.seed, build, store)?;
                let (listing, detail) = (text.listing.clone(), text.detail.clone());
                made[(number % places) as usize] = Some(Made { cells, build, listing, detail });
            }
        }
        Ok(store.extend(made.iter().flatten().map(Made::as_unit))?)
    }
}

/// A unit that has come in.
struct Made {
    cells: Cells,
    build: u32,
    listing: Vec<u8>,
    detail: Vec<u8>,
}

impl Made {
    fn as_unit(&self) -> Unit<'_> {
        Unit { cells: &self.cells, build: self.build, listing: &self.listing, detail: &self.detail }
    }
}

fn refill(buffer: &mut Vec<u8>, text: &[u8]) {
    buffer.clear();
    buffer.extend_from_slice(text);
}

fn status_of(cells: &Cells) -> Status {
    let code = cells.codes[Column::Status as usize];
    Status::ALL.into_iter().find(|status| status.code() == code).unwrap_or(Status::Sold)
}

/// What a unit is offered for: the lower one where there are two prices, so that a cut leaves something of both.
fn asked(cells: &Cells) -> Option<u32> {
    let lower = cells.numbers[Number::Price as usize].min(cells.numbers[Number::ListPrice as usize]);
    (lower != MISSING).then_some(lower)
}

/// Days that a unit had been in stock at the start.
fn age(listing: &[u8], start: Date) -> u32 {
    let came =
        members::get(listing, "inventory_date").and_then(|value| serde_json::from_slice::<&str>(value).ok());
    let came = came.and_then(|date| date.parse::<Date>().ok());
    came.and_then(|date| u32::try_from((start - date).get_days()).ok()).unwrap_or(0)
}

/// Writes into a unit's cells and text what has become of it. Its `updated_at` is in the cells.
fn rewrite(unit: &Arrival, fate: &Fate, cells: &mut Cells, listing: &mut Vec<u8>, detail: &mut Vec<u8>) {
    if !stamp::is_due(listing) {
        members::remove(listing, "updated_at");
        listing.push(b',');
        listing.extend_from_slice(stamp::OPEN);
    }
    if fate.status != unit.status {
        cells.set(Column::Status, fate.status.code());
        members::set(listing, "status", format!("\"{}\"", fate.status.word()).as_bytes());
        // A note speaks of the state that is over, unless it is all that tells the unit apart (AAP digest, section f).
        if members::get(listing, "vin").is_some() {
            members::remove(detail, "notes");
        }
    }
    let cut = unit.price.unwrap_or(0) - fate.price;
    if cut > 0 {
        for (number, name) in [(Number::Price, "price"), (Number::ListPrice, "list_price")] {
            let before = cells.numbers[number as usize];
            if before != MISSING {
                cells.set_number(number, before - cut);
                let mut text = Vec::new();
                json::number(&mut text, u64::from(before - cut));
                members::set(listing, name, &text);
            }
        }
    }
}

/// What like units cost at the start.
struct Peers(HashMap<[u32; 4], (u64, u32)>);

impl Peers {
    fn of(store: &Store) -> Peers {
        let mut sums: HashMap<_, (u64, u32)> = HashMap::new();
        for row in 0..store.len() as u32 {
            let cells = store.cells(row);
            if let Some(price) = asked(&cells) {
                for group in groups(&cells) {
                    let sum = sums.entry(group).or_default();
                    *sum = (sum.0 + u64::from(price), sum.1 + 1);
                }
            }
        }
        Peers(sums)
    }

    /// The average price of the same model in that condition and year, else of the same body.
    fn price(&self, cells: &Cells) -> Option<u32> {
        groups(cells).into_iter().find_map(|group| {
            let &(sum, count) = self.0.get(&group)?;
            (count >= FEWEST_PEERS).then(|| (sum / u64::from(count)) as u32)
        })
    }
}

/// The groups that a unit's price is compared within, the closer one first.
fn groups(cells: &Cells) -> [[u32; 4]; 2] {
    let code = |column| u32::from(cells.codes[column as usize]);
    let year = cells.numbers[Number::Year as usize];
    [Column::Model, Column::Body].map(|column| [column as u32, code(column), code(Column::Condition), year])
}

/// The builds that a store has, by what they say.
struct Builds {
    by_text: HashMap<u64, Vec<u32>>,
    /// The places of the builds of the season at hand, by their number in its catalogue.
    by_number: HashMap<u32, u32>,
    listing: Vec<u8>,
    detail: Vec<u8>,
}

impl Builds {
    fn of(store: &Store) -> Builds {
        let mut by_text: HashMap<u64, Vec<u32>> = HashMap::new();
        for (place, (listing, detail)) in (0..).zip(store.builds()) {
            by_text.entry(hash(listing, detail)).or_default().push(place);
        }
        Builds { by_text, by_number: HashMap::new(), listing: Vec::new(), detail: Vec::new() }
    }

    fn begin_season(&mut self) {
        self.by_number.clear();
    }

    /// The place of a build in the store, a new one if need be.
    fn place(
        &mut self,
        catalogue: &Catalogue<'_>,
        seed: u64,
        number: u32,
        store: &mut Store,
    ) -> Result<u32, GenerateError> {
        if let Some(&place) = self.by_number.get(&number) {
            return Ok(place);
        }
        let Builds { listing, detail, .. } = self;
        build::write(catalogue, seed, number, listing, detail);
        let alike = self.by_text.entry(hash(listing, detail)).or_default();
        let known = alike.iter().copied().find(|&place| store.build(place) == (&listing[..], &detail[..]));
        let place = match known {
            Some(place) => place,
            None => {
                let place = store.push_build(listing, detail)?;
                alike.push(place);
                place
            }
        };
        self.by_number.insert(number, place);
        Ok(place)
    }
}

fn hash(listing: &[u8], detail: &[u8]) -> u64 {
    crate::stable::stable_hash(listing.len() as u64, &[listing, detail].concat())
}
