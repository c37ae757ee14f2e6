//! What must be equal for two results to be comparable, and what a scenario's text was.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use sha2::{Digest, Sha256};

use crate::cli::RunArgs;
use crate::load::Arrivals;
use crate::settings::Asked;
use crate::units::{self, show_duration, show_rate};

/// The flags that shape the load, by name, in one form for each value. Where a run is measured, for how long and by which
/// thresholds makes no difference to the load; the scenario and the contract have members of their own.
pub(crate) fn of(args: &RunArgs, asked: &Asked) -> BTreeMap<String, String> {
    let duration = |text: &str| units::duration(text).map_or_else(|| text.to_owned(), show_duration);
    let rate = |text: &str| units::rate(text).map_or_else(|| text.to_owned(), show_rate);
    let given = |text: &Option<String>| text.clone().unwrap_or_else(|| "default".to_owned());
    let load = match (&args.load.users, &args.load.stages, &args.load.rate) {
        (Some(users), _, _) => ("users", users.clone()),
        (None, Some(stages), _) => ("stages", stages.clone()),
        (None, None, Some(text)) => ("rate", rate(text)),
        (None, None, None) => ("rate", "default".to_owned()),
    };
    let is_embedded = args.dealer.endpoint.is_none() && args.endpoint_raw.is_none();
    let pairs = [
        load,
        ("arrivals", trace(asked).or(args.load.arrivals.clone()).unwrap_or_else(|| "constant".to_owned())),
        (
            "think",
            units::factor(&args.load.think)
                .map_or_else(|| args.load.think.clone(), |factor| format!("{factor}x")),
        ),
        ("max-in-flight", args.load.max_in_flight.clone()),
        ("on-full", args.load.on_full.clone()),
        ("sine", given(&args.load.sine)),
        ("trace-speed", args.load.trace_speed.clone()),
        ("validate", args.validate.clone()),
        ("connections", given(&args.connections)),
        ("reuse", args.reuse.clone()),
        ("timeout", duration(&args.timeout)),
        ("connect-timeout", duration(&args.connect_timeout)),
        ("http", args.http.clone()),
        ("embedded", is_embedded.to_string()),
    ];
    // Only of a part: a merge takes it away, and the result is that of the whole.
    let shard = args.load.shard.clone().map(|shard| ("shard", shard));
    // Only another than the usual one, which results of earlier versions had.
    let slot = Some(("slot", duration(&args.load.slot))).filter(|(_, slot)| slot != "100us");
    pairs.into_iter().chain(shard).chain(slot).map(|(name, value)| (name.to_owned(), value)).collect()
}

/// What stands for the file of `--arrivals trace:FILE`: its times, since its name on another machine may be another.
fn trace(asked: &Asked) -> Option<String> {
    let Arrivals::Open(schedule) = &asked.load.arrivals else { return None };
    let mut hash = Sha256::new();
    schedule.profile.times()?.iter().for_each(|at| hash.update(at.to_le_bytes()));
    Some(format!("trace:{}", hexadecimal(hash)))
}

/// The SHA-256 of the scenario files, of the feeders and traces that they name, and of `--set`, in hexadecimal; empty if a
/// file cannot be read any more.
pub(crate) fn scenario_sha256<'d>(
    paths: &[PathBuf],
    data: impl Iterator<Item = &'d str>,
    sets: &[(String, String)],
) -> String {
    let mut hash = Sha256::new();
    // The length before the text: two files are not the same as both in one.
    let mut add = |text: &[u8]| {
        hash.update((text.len() as u64).to_le_bytes());
        hash.update(text);
    };
    for path in paths {
        let Ok(text) = fs::read(path) else { return String::new() };
        add(&text);
    }
    data.for_each(|text| add(text.as_bytes()));
    for (name, value) in sets {
        hash.update(format!("{name}={value}\0"));
    }
    hexadecimal(hash)
}

fn hexadecimal(hash: Sha256) -> String {
    hash.finalize().iter().map(|byte| format!("{byte:02x}")).collect()
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cli::{Cli, Command};

    fn conditions(flags: &[&str]) -> BTreeMap<String, String> {
        let line = ["dealer-loadgen", "run", "x.yaml"].iter().chain(flags);
        let Command::Run(args) = Cli::try_parse_from(line).unwrap().command else { panic!() };
        let (asked, _) = crate::settings::read_load(&args.load).unwrap();
        of(&args, &asked)
    }

    #[test]
    fn a_trace_is_its_times_and_not_its_name() {
        let folder = tempfile::tempdir().unwrap();
        let arrivals = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            conditions(&["--arrivals", &format!("trace:{}", path.display())])
        };
        let one = arrivals("a", "0s\n1s\n");
        assert_eq!(one, arrivals("b", "0s\n1000ms\n"));
        assert_ne!(one, arrivals("a", "0s\n2s\n"));
    }

    #[test]
    fn one_load_has_one_form() {
        assert_eq!(
            conditions(&["--rate", "60/m", "--think", "2"]),
            conditions(&["--rate", "1/s", "--think", "2.0x"])
        );
        assert_ne!(conditions(&["--rate", "1/s"]), conditions(&["--users", "1"]));
        assert_eq!(conditions(&["--duration", "1s", "--threshold", "p99<1s"]), conditions(&[]));
    }

    #[test]
    fn the_hash_is_of_texts_and_sets() {
        let folder = tempfile::tempdir().unwrap();
        let path = |name: &str, text: &str| {
            let path = folder.path().join(name);
            fs::write(&path, text).unwrap();
            path
        };
        let (a, b, ab) = (path("a", "x"), path("b", "y"), path("ab", "xy"));
        let with = |paths: &[&PathBuf], data: &[&str], sets: &[(String, String)]| {
            let paths: Vec<_> = paths.iter().map(|path| (*path).clone()).collect();
            scenario_sha256(&paths, data.iter().copied(), sets)
        };
        let of = |paths: &[&PathBuf], sets: &[(String, String)]| with(paths, &[], sets);
        assert_ne!(with(&[&a], &["row"], &[]), with(&[&a], &["wor"], &[]));
        assert_ne!(with(&[&a], &["row"], &[]), of(&[&a], &[]));
        assert_eq!(of(&[&a], &[]).len(), 64);
        assert_ne!(of(&[&a, &b], &[]), of(&[&ab], &[]));
        assert_ne!(of(&[&a], &[]), of(&[&a], &[("n".to_owned(), "1".to_owned())]));
    }
}
