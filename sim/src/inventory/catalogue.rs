//! The vocabulary made ready for one day: which model years are sold, with every word already in its dictionary.

use std::ops::RangeInclusive;

use super::columns::{Cells, Column, Number};
use super::dictionary::{Dictionaries, TooManyValues};
use super::vocabulary::{self, Attribute, Model, Powertrain, Vocabulary};

/// How many model years back a used vehicle may be.
const OLDEST: u16 = 14;

/// Levels of equipment of one trim: each has its own features and price.
pub(crate) const LEVELS: u32 = 3;

/// A word with its code.
#[derive(Debug, Clone)]
pub(crate) struct Coded {
    pub(crate) code: u16,
    pub(crate) text: String,
}

/// A powertrain of the vocabulary with its codes.
#[derive(Debug)]
pub(crate) struct Power<'v> {
    pub(crate) data: &'v Powertrain,
    engine: u16,
    fuel: u16,
    transmission: u16,
    port: u16,
    dc: u16,
}

impl Power<'_> {
    pub(crate) fn is_electric(&self) -> bool {
        self.data.fuel == "bev"
    }
}

/// A model in the years in which it can be in stock.
#[derive(Debug)]
pub(crate) struct Line<'v> {
    pub(crate) data: &'v Model,
    /// The index of its class in `VEHICLE_TYPES`.
    pub(crate) kind: usize,
    pub(crate) make: Coded,
    pub(crate) model: Coded,
    body: u16,
    pub(crate) trims: Vec<(Coded, u32)>,
    drives: Vec<Coded>,
    powers: Vec<Power<'v>>,
    /// Miles in a year, or none where the unit has no odometer.
    pub(crate) miles: Option<[u32; 2]>,
    /// Model years in which it was built, ascending.
    pub(crate) years: Vec<u16>,
    /// The number of its first build.
    base: u32,
}

/// What the factory made the same for all units of a build.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Build {
    pub(crate) line: usize,
    pub(crate) year: u16,
    pub(crate) trim: usize,
    pub(crate) power: Option<usize>,
    pub(crate) drive: Option<usize>,
    /// `0..LEVELS`.
    pub(crate) level: u32,
}

impl Line<'_> {
    /// The powertrains of a model year, by their place.
    pub(crate) fn powers_in(&self, year: u16) -> impl Iterator<Item = usize> {
        self.powers
            .iter()
            .enumerate()
            .filter(move |(_, power)| power.data.built_in(year))
            .map(|(place, _)| place)
    }

    pub(crate) fn power(&self, place: Option<usize>) -> Option<&Power<'_>> {
        place.and_then(|place| self.powers.get(place))
    }

    pub(crate) fn drive(&self, place: Option<usize>) -> Option<&Coded> {
        place.and_then(|place| self.drives.get(place))
    }

    pub(crate) fn drives(&self) -> usize {
        self.drives.len()
    }

    pub(crate) fn attributes(&self) -> impl Iterator<Item = (&str, &Attribute)> {
        self.data.attributes.iter().map(|(name, value)| (name.as_str(), value))
    }

    /// How many builds there are of one trim of one model year.
    fn variants(&self) -> u32 {
        self.powers.len().max(1) as u32 * self.drives.len().max(1) as u32 * LEVELS
    }

    fn builds(&self) -> u32 {
        self.years.len() as u32 * self.trims.len() as u32 * self.variants()
    }
}

/// Lines to draw from, with their shares added up.
#[derive(Debug, Default)]
pub(crate) struct Share {
    pub(crate) lines: Vec<usize>,
    pub(crate) cumulative: Vec<u32>,
}

impl Share {
    fn push(&mut self, line: usize, weight: u32) {
        self.lines.push(line);
        self.cumulative.push(self.cumulative.last().copied().unwrap_or(0) + weight);
    }
}

/// All that stock can be drawn from on one day.
#[derive(Debug)]
pub(crate) struct Catalogue<'v> {
    pub(crate) vocabulary: &'v Vocabulary,
    pub(crate) lines: Vec<Line<'v>>,
    /// The lines of each class, in the order of `VEHICLE_TYPES`.
    pub(crate) kinds: Vec<Share>,
    /// The same, without those that are no longer built: only of the others can new ones come.
    pub(crate) current: Vec<Share>,
    /// Cars that are battery electric in every variant.
    pub(crate) electric: Share,
    /// Shares of the classes, added up.
    pub(crate) kind_shares: Vec<u32>,
    pub(crate) exterior: Vec<Coded>,
    pub(crate) interior: Vec<Coded>,
    pub(crate) builds: u32,
}

impl<'v> Catalogue<'v> {
    /// What is sold in the calendar year `year`, up to the model year `newest`. All words are put into `dictionaries`.
    pub(crate) fn new(
        vocabulary: &'v Vocabulary,
        year: u16,
        newest: u16,
        dictionaries: &mut Dictionaries,
    ) -> Result<Catalogue<'v>, TooManyValues> {
        let mut catalogue = Catalogue {
            vocabulary,
            lines: Vec::new(),
            kinds: Vec::new(),
            current: Vec::new(),
            electric: Share::default(),
            kind_shares: Vec::new(),
            exterior: coded(dictionaries, Column::ExteriorColor, &vocabulary.words.exterior_colors)?,
            interior: coded(dictionaries, Column::InteriorColor, &vocabulary.words.interior_colors)?,
            builds: 0,
        };
        for (kind, file) in vocabulary.kinds.iter().enumerate() {
            let (mut share, mut current) = (Share::default(), Share::default());
            for make in &file.make {
                let models: u32 = make.models.iter().map(|model| model.weight).sum();
                for model in &make.models {
                    let mut line =
                        line(vocabulary, model, kind, &make.name, year - OLDEST..=newest, dictionaries)?;
                    let Some(&last) = line.years.last() else { continue };
                    line.miles = line.miles.or(file.miles_per_year);
                    line.base = catalogue.builds;
                    catalogue.builds += line.builds();
                    // A make's share is split among its models; in thousandths, so that no model is rounded away.
                    let weight = make.weight * 1000 * model.weight / models.max(1);
                    let place = catalogue.lines.len();
                    share.push(place, weight);
                    if last >= year - 1 {
                        current.push(place, weight);
                    }
                    if kind == 0 && line.powers.iter().all(Power::is_electric) {
                        catalogue.electric.push(place, weight);
                    }
                    catalogue.lines.push(line);
                }
            }
            let weight = vocabulary.words.types.get(&file.vehicle_type).copied().unwrap_or(0);
            catalogue.kind_shares.push(catalogue.kind_shares.last().copied().unwrap_or(0) + weight);
            catalogue.kinds.push(share);
            catalogue.current.push(current);
        }
        Ok(catalogue)
    }

    /// The number of a build, dense from 0 on.
    pub(crate) fn number(&self, build: Build) -> u32 {
        let line = &self.lines[build.line];
        let year = line.years.iter().position(|&year| year == build.year).unwrap_or(0) as u32;
        let mut number = year * line.trims.len() as u32 + build.trim as u32;
        number = number * line.powers.len().max(1) as u32 + build.power.unwrap_or(0) as u32;
        number = number * line.drives.len().max(1) as u32 + build.drive.unwrap_or(0) as u32;
        line.base + number * LEVELS + build.level
    }

    /// The build of a number: the reverse of [`Catalogue::number`].
    pub(crate) fn build(&self, number: u32) -> Build {
        let line = self.lines.partition_point(|line| line.base <= number).saturating_sub(1);
        let place = line;
        let line = &self.lines[place];
        let mut rest = number - line.base;
        let mut take = |count: u32| {
            let digit = rest % count.max(1);
            rest /= count.max(1);
            digit
        };
        let level = take(LEVELS);
        let drive = take(line.drives.len() as u32) as usize;
        let power = take(line.powers.len() as u32) as usize;
        let trim = take(line.trims.len() as u32) as usize;
        let year = take(line.years.len() as u32) as usize;
        Build {
            line: place,
            year: line.years[year],
            trim,
            power: (!line.powers.is_empty()).then_some(power),
            drive: (!line.drives.is_empty()).then_some(drive),
            level,
        }
    }

    /// Sets what all units of a build have in common.
    pub(crate) fn fill(&self, build: Build, cells: &mut Cells) {
        let line = &self.lines[build.line];
        cells.set_number(Number::Year, u32::from(build.year));
        cells.set(Column::VehicleType, line.kind as u16 + 1);
        cells.set(Column::Make, line.make.code);
        cells.set(Column::Model, line.model.code);
        cells.set(Column::Trim, line.trims[build.trim].0.code);
        cells.set(Column::Body, line.body);
        if let Some(drive) = line.drive(build.drive) {
            cells.set(Column::Driveline, drive.code);
        }
        if let Some(power) = line.power(build.power) {
            cells.set(Column::Engine, power.engine);
            cells.set(Column::Fuel, power.fuel);
            cells.set(Column::Transmission, power.transmission);
            cells.set(Column::ChargePort, power.port);
            cells.set(Column::DcFastCharge, power.dc);
            if let Some(cc) = power.data.cc {
                cells.set_number(Number::DisplacementCc, cc);
            }
            if let Some(range) = power.data.range {
                cells.set_number(Number::ElectricRange, range * Number::ElectricRange.scale());
            }
        }
    }
}

fn line<'v>(
    vocabulary: &'v Vocabulary,
    model: &'v Model,
    kind: usize,
    make: &str,
    years: RangeInclusive<u16>,
    dictionaries: &mut Dictionaries,
) -> Result<Line<'v>, TooManyValues> {
    let mut powers = Vec::new();
    for data in model.power.iter().filter_map(|name| vocabulary.powertrains.get(name)) {
        let mut optional =
            |column, text: Option<&str>| text.map_or(Ok(0), |text| dictionaries.intern(column, text));
        powers.push(Power {
            data,
            engine: optional(Column::Engine, Some(&data.engine))?,
            fuel: optional(Column::Fuel, Some(&data.fuel))?,
            transmission: optional(Column::Transmission, data.transmission.as_deref())?,
            port: optional(Column::ChargePort, data.port.as_deref())?,
            dc: optional(Column::DcFastCharge, data.dc.map(|dc| if dc { "true" } else { "false" }))?,
        });
    }
    let years = years
        .filter(|&year| vocabulary::built_in(Some(model.since), model.until, year))
        .filter(|&year| powers.is_empty() || powers.iter().any(|power| power.data.built_in(year)))
        .collect();
    let mut trims = Vec::new();
    for (name, &price) in &model.trims {
        trims.push((Coded { code: dictionaries.intern(Column::Trim, name)?, text: name.clone() }, price));
    }
    Ok(Line {
        data: model,
        kind,
        make: Coded { code: dictionaries.intern(Column::Make, make)?, text: make.to_owned() },
        model: Coded { code: dictionaries.intern(Column::Model, &model.name)?, text: model.name.clone() },
        body: dictionaries.intern(Column::Body, &model.body)?,
        trims,
        drives: coded(dictionaries, Column::Driveline, &model.drive)?,
        powers,
        miles: model.miles_per_year,
        years,
        base: 0,
    })
}

fn coded(
    dictionaries: &mut Dictionaries,
    column: Column,
    words: &[String],
) -> Result<Vec<Coded>, TooManyValues> {
    words
        .iter()
        .map(|word| Ok(Coded { code: dictionaries.intern(column, word)?, text: word.clone() }))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn builds_are_numbered_densely() {
        let vocabulary = Vocabulary::built_in().unwrap();
        let catalogue = Catalogue::new(&vocabulary, 2026, 2026, &mut Dictionaries::new()).unwrap();
        assert!(catalogue.builds > 10_000);
        for number in 0..catalogue.builds {
            assert_eq!(catalogue.number(catalogue.build(number)), number);
        }
    }

    #[test]
    fn only_what_exists_on_the_day_is_sold() {
        let vocabulary = Vocabulary::built_in().unwrap();
        for (year, newest) in (2020..=2099).flat_map(|year| [(year, year), (year, year + 1)]) {
            let catalogue = Catalogue::new(&vocabulary, year, newest, &mut Dictionaries::new()).unwrap();
            assert!(catalogue.current.iter().all(|kind| !kind.lines.is_empty()), "{year}");
            assert!(!catalogue.electric.lines.is_empty(), "{year}");
            for line in &catalogue.lines {
                assert!(line.years.iter().all(|&built| built >= line.data.since && built <= newest));
                assert!(line.data.until.is_none_or(|until| line.years.iter().all(|&built| built <= until)));
            }
        }
    }
}
