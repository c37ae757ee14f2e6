//! Stock from a seed. Vehicle `i` is drawn from a stream of its own, so a larger stock begins with the smaller one, and the
//! work can be split over threads without a trace in the result.

use jiff::civil::{Date, Weekday};

use super::Inventory;
use super::build;
use super::catalogue::Catalogue;
use super::columns::Column;
use super::dictionary::{Dictionaries, TooManyValues};
use super::draw::Draw;
use super::profile::Profile;
use super::store::{ArenaFull, Draft, GROUP_ROWS, Group, Store};
use super::unit::{self, UnitText};
use super::vin;
use super::vocabulary::{Vocabulary, VocabularyError};
use crate::spread::spread;

/// The most vehicles that one dealer can have: stock numbers have seven digits.
pub const MOST_VEHICLES: u32 = 10_000_000;

/// The first and last year in which stock can be made: enough models of the vocabulary exist, and the next model year is one
/// that AAP allows (digest, section d.5).
pub(crate) const YEARS: std::ops::RangeInclusive<i16> = 2020..=2099;

/// What stock to make.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Spec {
    /// Equal seeds give equal stock.
    pub seed: u64,
    /// How many vehicles the dealer knows, sold ones among them: up to [`MOST_VEHICLES`].
    pub vehicles: u32,
    /// The day on which the stock is as it is; all dates are before it.
    pub day: Date,
    /// The dealer's number where there are several, below [`vin::DEALERS`]. Each one's VINs are its own.
    pub dealer: u16,
    /// How many threads to work with; 0 is one per core. Has no effect on the result.
    pub threads: usize,
}

impl Spec {
    /// 500 vehicles of one dealer.
    pub fn new(seed: u64, day: Date) -> Spec {
        Spec { seed, vehicles: 500, day, dealer: 0, threads: 0 }
    }
}

/// Why stock cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum GenerateError {
    /// [`Spec::vehicles`] is above [`MOST_VEHICLES`].
    #[error("{vehicles} vehicles are too many: {MOST_VEHICLES} at most")]
    TooManyVehicles {
        /// What was asked for.
        vehicles: u32,
    },
    /// [`Spec::dealer`] is not below [`vin::DEALERS`].
    #[error("dealer number {dealer} is too high: it must be below {}", vin::DEALERS)]
    TooManyDealers {
        /// What was asked for.
        dealer: u16,
    },
    /// The vocabulary has no models for such a day.
    #[error("no stock can be made for {day}: the year must be {} to {}", YEARS.start(), YEARS.end())]
    DayOutOfRange {
        /// What was asked for.
        day: Date,
    },
    /// [`Profile::rooftops`] is empty, so vehicles have no place to be.
    #[error("the dealer's profile has no rooftop; it needs one at least")]
    NoRooftop,
    /// A built-in file was edited wrongly.
    #[error(transparent)]
    Vocabulary(#[from] VocabularyError),
    /// The vocabulary or the profile is too large.
    #[error("too many words: {0}")]
    TooManyValues(#[from] TooManyValues),
    /// The text of the profile's names is too large.
    #[error("too much text: {0}")]
    ArenaFull(#[from] ArenaFull),
}

/// All that a unit is drawn from.
pub(crate) struct Scene<'a> {
    seed: u64,
    pub(crate) dealer: u16,
    pub(crate) catalogue: &'a Catalogue<'a>,
    pub(crate) profile: &'a Profile,
    /// The rooftops that sell each class of vehicle, by their place in the profile.
    pub(crate) rooftops: [Vec<usize>; 5],
    pub(crate) rooftop_codes: Vec<u16>,
    /// The calendar year and month of the day.
    pub(crate) year: u16,
    pub(crate) month: u32,
    /// The newest model year that has come.
    pub(crate) newest: u16,
    /// The day and the days before it, as ISO dates.
    pub(crate) dates: Vec<String>,
    /// The last business days before the day, the latest first: seconds since 1970 at their start.
    pub(crate) business_days: Vec<u32>,
    /// Where the sequences of identifiers begin.
    offsets: [u32; 3],
}

/// What a rooftop must be able to do to sell a class, in the order of `VEHICLE_TYPES`. Where none can, all do.
const TRADES: [&[&str]; 5] = [
    &["sales"],
    &["motorcycle_sales", "powersports"],
    &["trailer_sales", "rv_sales"],
    &["rv_sales"],
    &["powersports"],
];

/// Capabilities of a rooftop that sells no cars.
const NOT_CARS: [&str; 2] = ["motorcycle_sales", "powersports"];

impl<'a> Scene<'a> {
    pub(crate) fn new(
        spec: &Spec,
        catalogue: &'a Catalogue<'a>,
        profile: &'a Profile,
        rooftop_codes: Vec<u16>,
    ) -> Scene<'a> {
        let all: Vec<usize> = (0..profile.rooftops.len()).collect();
        let rooftops = std::array::from_fn(|kind| {
            let sells = |&place: &usize| {
                let rooftop = &profile.rooftops[place];
                let any = |tags: &[&str]| tags.iter().any(|tag| rooftop.can(tag));
                any(TRADES[kind]) && !(kind == 0 && any(&NOT_CARS))
            };
            let some: Vec<usize> = all.iter().copied().filter(sells).collect();
            if some.is_empty() { all.clone() } else { some }
        });
        let days = std::iter::successors(Some(spec.day), |day| day.yesterday().ok());
        let dates = days.clone().take(121).map(|day| day.to_string()).collect();
        let business_days =
            days.skip(1).filter(|day| is_business_day(*day)).take(3).map(seconds_at_start).collect();
        let mut draw = Draw::new(spec.seed, u64::MAX);
        Scene {
            seed: spec.seed,
            dealer: spec.dealer,
            catalogue,
            profile,
            rooftops,
            rooftop_codes,
            year: spec.day.year().unsigned_abs(),
            month: u32::from(spec.day.month().unsigned_abs()),
            newest: newest_model_year(spec.day),
            dates,
            business_days,
            offsets: std::array::from_fn(|_| draw.below(MOST_VEHICLES)),
        }
    }

    /// The stream of a vehicle: its number below, its dealer's above.
    pub(crate) fn stream(&self, row: u32) -> Draw {
        Draw::new(self.seed, u64::from(self.dealer) << 32 | u64::from(row))
    }

    /// The serial number of a VIN: different for each row, since only the last six digits are mixed, and one to one.
    pub(crate) fn vin_serial(&self, row: u32) -> u32 {
        row / 1_000_000 * 1_000_000 + mix(row % 1_000_000, self.offsets[0], 1_000_000)
    }

    /// The digits of a stock number, different for each row.
    pub(crate) fn stock_serial(&self, row: u32) -> u32 {
        mix(row, self.offsets[1], MOST_VEHICLES)
    }

    /// The digits of a `vehicle_id`, different for each row.
    pub(crate) fn id_serial(&self, row: u32) -> u32 {
        mix(row, self.offsets[2], MOST_VEHICLES)
    }
}

/// Whether the dealer does business on a day, as AAP counts business days.
pub(crate) fn is_business_day(day: Date) -> bool {
    !matches!(day.weekday(), Weekday::Saturday | Weekday::Sunday)
}

/// The next year's models come in July.
pub(crate) fn newest_model_year(day: Date) -> u16 {
    day.year().unsigned_abs() + u16::from(day.month() >= 7)
}

/// Maps `0..size` one to one onto itself, so that numbers that follow one another look unlike: `size` is a power of ten, and
/// the factor shares no divisor with it.
fn mix(number: u32, offset: u32, size: u32) -> u32 {
    ((u64::from(number) * 618_033_989 + u64::from(offset)) % u64::from(size)) as u32
}

/// Seconds from 1970 to the start of a day in UTC.
pub(crate) fn seconds_at_start(day: Date) -> u32 {
    let epoch = Date::constant(1970, 1, 1);
    // Both are dates of the calendar in [`YEARS`] or a few days before: some 25,000 days apart.
    let days = (day - epoch).get_days();
    u32::try_from(days).unwrap_or(0) * 86_400
}

impl Inventory {
    /// Makes stock: the same for the same seed, size, day, dealer number and profile, on any machine, whatever the number of
    /// threads, and within a major version.
    ///
    /// # Errors
    ///
    /// If the size, the day or the dealer's number is out of range, or the profile has no rooftop.
    pub fn generate(spec: &Spec, profile: &Profile) -> Result<Inventory, GenerateError> {
        if spec.vehicles > MOST_VEHICLES {
            return Err(GenerateError::TooManyVehicles { vehicles: spec.vehicles });
        }
        if spec.dealer >= vin::DEALERS {
            return Err(GenerateError::TooManyDealers { dealer: spec.dealer });
        }
        if !YEARS.contains(&spec.day.year()) {
            return Err(GenerateError::DayOutOfRange { day: spec.day });
        }
        if profile.rooftops.is_empty() {
            return Err(GenerateError::NoRooftop);
        }
        let vocabulary = Vocabulary::shared()?;
        let mut dictionaries = Dictionaries::new();
        let year = spec.day.year().unsigned_abs();
        let catalogue = Catalogue::new(vocabulary, year, newest_model_year(spec.day), &mut dictionaries)?;
        let mut rooftop_codes = Vec::new();
        for rooftop in &profile.rooftops {
            rooftop_codes.push(dictionaries.intern(Column::Rooftop, &rooftop.name)?);
        }
        let scene = Scene::new(spec, &catalogue, profile, rooftop_codes);
        let mut store = Store::new(groups(&scene, spec)?);
        write_builds(&catalogue, spec.seed, &mut store)?;
        Ok(Inventory::finish(store, dictionaries, Some(*spec)))
    }
}

/// Draws all groups; each one's content depends on its rows alone.
fn groups(scene: &Scene<'_>, spec: &Spec) -> Result<Vec<Group>, ArenaFull> {
    let rows = spec.vehicles as usize;
    spread(rows.div_ceil(GROUP_ROWS), spec.threads, |index| {
        let first = index * GROUP_ROWS;
        group(scene, first, (rows - first).min(GROUP_ROWS))
    })
}

fn group(scene: &Scene<'_>, first: usize, rows: usize) -> Result<Group, ArenaFull> {
    let mut text = UnitText::default();
    let mut draft = Draft::new(rows);
    for row in first..first + rows {
        let row = row as u32;
        let (cells, build) = unit::draw(scene, row, unit::demand(row), &mut text);
        draft.push(&cells, build, &text.listing, &text.detail)?;
    }
    Ok(draft.seal())
}

/// Writes the builds that the stock has, once each, and tells the units where they are.
fn write_builds(catalogue: &Catalogue<'_>, seed: u64, store: &mut Store) -> Result<(), ArenaFull> {
    let mut places: Vec<Option<u32>> = vec![None; catalogue.builds as usize];
    let (mut listing, mut detail) = (Vec::new(), Vec::new());
    for group in 0..store.groups().len() {
        for index in 0..store.groups()[group].len() {
            let number = store.build_of((group * GROUP_ROWS + index) as u32);
            let place = match places[number as usize] {
                Some(place) => place,
                None => {
                    build::write(catalogue, seed, number, &mut listing, &mut detail);
                    let place = store.push_build(&listing, &detail)?;
                    places[number as usize] = Some(place);
                    place
                }
            };
            store.group_mut(group).builds_mut()[index] = place;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn serials_are_one_to_one() {
        let mut seen = vec![false; 1_000_000];
        for number in 0..1_000_000 {
            let mixed = mix(number, 777_777, 1_000_000) as usize;
            assert!(!std::mem::replace(&mut seen[mixed], true));
        }
    }

    #[test]
    fn days_are_counted_from_1970() {
        assert_eq!(seconds_at_start(Date::constant(1970, 1, 2)), 86_400);
        assert_eq!(seconds_at_start(Date::constant(2026, 1, 1)), 1_767_225_600);
    }

    #[test]
    fn what_is_out_of_range_is_refused() {
        let profile = Profile::built_in().unwrap();
        let spec = Spec::new(1, Date::constant(2026, 1, 1));
        let refused = |spec: &Spec| Inventory::generate(spec, &profile).unwrap_err();
        assert!(matches!(
            refused(&Spec { vehicles: MOST_VEHICLES + 1, ..spec }),
            GenerateError::TooManyVehicles { .. }
        ));
        assert!(matches!(
            refused(&Spec { dealer: vin::DEALERS, ..spec }),
            GenerateError::TooManyDealers { .. }
        ));
        assert!(matches!(
            refused(&Spec { day: Date::constant(2019, 12, 31), ..spec }),
            GenerateError::DayOutOfRange { .. }
        ));
        let nowhere = Profile { rooftops: Vec::new(), ..profile.clone() };
        assert_eq!(Inventory::generate(&spec, &nowhere).unwrap_err(), GenerateError::NoRooftop);
        assert_eq!(Inventory::generate(&Spec { vehicles: 0, ..spec }, &profile).unwrap().len(), 0);
    }
}
