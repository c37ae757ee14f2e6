//! The words and prices that stock is made of, read from `data/vocabulary/`. The files say what each member means.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde::Deserialize;

/// A vocabulary file that cannot be read. The files are built in and tested, so this tells of an edit gone wrong.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("data/vocabulary/{file}: {problem}")]
pub struct VocabularyError {
    /// The file's name.
    pub file: &'static str,
    /// What is wrong and where.
    pub problem: String,
}

/// All files together.
#[derive(Debug)]
pub(crate) struct Vocabulary {
    pub(crate) powertrains: BTreeMap<String, Powertrain>,
    pub(crate) kinds: Vec<KindFile>,
    pub(crate) words: Words,
}

/// One entry of `powertrains.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Powertrain {
    pub(crate) engine: String,
    pub(crate) fuel: String,
    pub(crate) cc: Option<u32>,
    pub(crate) transmission: Option<String>,
    pub(crate) mpg: Option<[u32; 2]>,
    pub(crate) range: Option<u32>,
    pub(crate) kwh: Option<u32>,
    pub(crate) hp: Option<u32>,
    pub(crate) port: Option<String>,
    pub(crate) dc: Option<bool>,
    #[serde(default)]
    pub(crate) extra: u32,
    pub(crate) since: Option<u16>,
    pub(crate) until: Option<u16>,
}

impl Powertrain {
    /// Whether the powertrain was built in a model year.
    pub(crate) fn built_in(&self, year: u16) -> bool {
        built_in(self.since, self.until, year)
    }
}

/// Whether a model year lies in what `since` and `until` (both inclusive) allow.
pub(crate) fn built_in(since: Option<u16>, until: Option<u16>, year: u16) -> bool {
    since.is_none_or(|since| since <= year) && until.is_none_or(|until| year <= until)
}

/// `cars.toml` and its four siblings.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct KindFile {
    pub(crate) vehicle_type: String,
    pub(crate) miles_per_year: Option<[u32; 2]>,
    pub(crate) make: Vec<Make>,
}

/// A maker and its models of one vehicle type.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Make {
    pub(crate) name: String,
    pub(crate) weight: u32,
    pub(crate) models: Vec<Model>,
}

/// One line of a kind's file.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Model {
    pub(crate) name: String,
    pub(crate) body: String,
    pub(crate) since: u16,
    pub(crate) until: Option<u16>,
    #[serde(default = "usual_weight")]
    pub(crate) weight: u32,
    pub(crate) seats: Option<u32>,
    #[serde(default)]
    pub(crate) mpg_shift: i32,
    pub(crate) miles_per_year: Option<[u32; 2]>,
    pub(crate) trims: BTreeMap<String, u32>,
    #[serde(default)]
    pub(crate) power: Vec<String>,
    #[serde(default)]
    pub(crate) drive: Vec<String>,
    #[serde(default)]
    pub(crate) attributes: BTreeMap<String, Attribute>,
}

fn usual_weight() -> u32 {
    10
}

/// A value of `other_attributes`.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Attribute {
    Flag(bool),
    Number(u32),
    Text(String),
}

/// `words.toml`.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Words {
    pub(crate) types: BTreeMap<String, u32>,
    pub(crate) exterior_colors: Vec<String>,
    pub(crate) interior_colors: Vec<String>,
    pub(crate) features: BTreeMap<String, Vec<String>>,
    pub(crate) add_ons: BTreeMap<String, u32>,
    pub(crate) notes: Notes,
}

/// Sentences for `Vehicle.notes`, by state of life.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Notes {
    pub(crate) available: Vec<String>,
    pub(crate) intransit: Vec<String>,
    pub(crate) pending: Vec<String>,
}

macro_rules! file {
    ($name:literal) => {
        ($name, include_str!(concat!("../../../data/vocabulary/", $name)))
    };
}

impl Vocabulary {
    /// The vocabulary that is built in.
    pub(crate) fn built_in() -> Result<Vocabulary, VocabularyError> {
        let kinds = [
            file!("cars.toml"),
            file!("motorcycles.toml"),
            file!("trailers.toml"),
            file!("rvs.toml"),
            file!("other.toml"),
        ];
        Ok(Vocabulary {
            powertrains: read(file!("powertrains.toml"))?,
            kinds: kinds.into_iter().map(read).collect::<Result<_, _>>()?,
            words: read(file!("words.toml"))?,
        })
    }

    /// The same, read once: many dealers are made of it.
    pub(crate) fn shared() -> Result<&'static Vocabulary, VocabularyError> {
        static SHARED: OnceLock<Result<Vocabulary, VocabularyError>> = OnceLock::new();
        SHARED.get_or_init(Vocabulary::built_in).as_ref().map_err(Clone::clone)
    }
}

fn read<'a, T: Deserialize<'a>>((file, text): (&'static str, &'a str)) -> Result<T, VocabularyError> {
    toml::from_str(text).map_err(|error| VocabularyError { file, problem: error.to_string() })
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::super::columns::VEHICLE_TYPES;
    use super::*;

    fn models(vocabulary: &Vocabulary) -> impl Iterator<Item = (&str, &Make, &Model)> {
        vocabulary.kinds.iter().flat_map(|kind| {
            kind.make.iter().flat_map(move |make| {
                make.models.iter().map(move |model| (kind.vehicle_type.as_str(), make, model))
            })
        })
    }

    #[test]
    fn there_is_enough_of_everything() {
        let vocabulary = Vocabulary::built_in().unwrap();
        let count = |kind: &str| {
            let makes: BTreeSet<&str> = models(&vocabulary)
                .filter(|model| model.0 == kind)
                .map(|model| model.1.name.as_str())
                .collect();
            (makes.len(), models(&vocabulary).filter(|model| model.0 == kind).count())
        };
        let (makes, cars) = count("car");
        assert!(makes >= 20 && cars >= 100, "{makes} makes, {cars} models");
        assert!(count("motorcycle").0 >= 5);
        for &kind in VEHICLE_TYPES {
            assert!(count(kind).1 >= 5, "{kind}");
            assert!(vocabulary.words.types[kind] > 0);
            assert!(vocabulary.words.features[kind].len() >= 8, "{kind}");
        }
        assert_eq!(vocabulary.words.types.values().sum::<u32>(), 1000);
    }

    #[test]
    fn things_fit_together() {
        let vocabulary = Vocabulary::built_in().unwrap();
        let bodies = ["sedan", "suv", "truck", "coupe", "hatchback", "wagon", "minivan", "convertible"];
        let segments = ["cruiser", "sport", "touring", "sport_touring", "adventure", "standard", "scooter"];
        let mut used = BTreeSet::new();
        for (kind, make, model) in models(&vocabulary) {
            let name = format!("{} {}", make.name, model.name);
            assert!(!model.trims.is_empty() && model.trims.values().all(|&price| price > 500), "{name}");
            assert!(model.until.is_none_or(|until| model.since <= until), "{name}");
            assert!(model.weight > 0 && make.weight > 0, "{name}");
            for power in &model.power {
                assert!(vocabulary.powertrains.contains_key(power), "{name}: {power}");
                used.insert(power.as_str());
            }
            match kind {
                "car" => {
                    assert!(bodies.contains(&model.body.as_str()), "{name}");
                    assert!(!model.power.is_empty() && !model.drive.is_empty(), "{name}");
                    assert!(
                        model
                            .drive
                            .iter()
                            .all(|drive| ["fwd", "rwd", "awd", "4wd"].contains(&drive.as_str())),
                        "{name}"
                    );
                }
                "motorcycle" => {
                    assert!(segments.contains(&model.body.as_str()), "{name}");
                    assert!(!model.power.is_empty() && model.drive.is_empty(), "{name}");
                    assert!(
                        ["final_drive", "wheel_count", "abs"]
                            .iter()
                            .all(|member| model.attributes.contains_key(*member)),
                        "{name}"
                    );
                }
                _ => assert!(model.drive.is_empty(), "{name}"),
            }
        }
        for (name, power) in &vocabulary.powertrains {
            assert!(used.contains(name.as_str()), "{name} is used by no model");
            let electric = matches!(power.fuel.as_str(), "bev" | "phev");
            assert_eq!(
                electric,
                power.range.is_some() && power.kwh.is_some() && power.hp.is_some() && power.dc.is_some(),
                "{name}"
            );
            assert_eq!(power.fuel == "bev", power.cc.is_none(), "{name}");
            assert!(power.fuel != "bev" || power.mpg.is_none(), "{name}");
            assert!(["gas", "diesel", "hybrid", "phev", "bev"].contains(&power.fuel.as_str()), "{name}");
            assert!(
                power
                    .port
                    .as_deref()
                    .is_none_or(|port| ["nacs", "ccs", "j1772", "chademo", "tesla"].contains(&port)),
                "{name}"
            );
        }
        let f150 = models(&vocabulary).find(|model| model.2.name == "F-150").unwrap().2;
        assert_eq!(f150.body, "truck");
        let leaf = models(&vocabulary).find(|model| model.2.name == "Leaf").unwrap().2;
        assert!(leaf.power.iter().all(|power| vocabulary.powertrains[power].fuel == "bev"));
    }

    #[test]
    fn every_model_year_has_a_powertrain_lately() {
        let vocabulary = Vocabulary::built_in().unwrap();
        for (_, make, model) in models(&vocabulary).filter(|model| !model.2.power.is_empty()) {
            for year in 2022..=model.until.unwrap_or(2030) {
                if year >= model.since {
                    let built = model.power.iter().any(|power| vocabulary.powertrains[power].built_in(year));
                    assert!(built, "{} {} {year}", make.name, model.name);
                }
            }
        }
    }
}
