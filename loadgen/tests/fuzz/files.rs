//! What both programs take from files: plans, scenarios, logs, stock, profiles, limits, leads.

use std::path::{Path, PathBuf};
use std::time::Duration;

use dealer_loadgen::record::{IntervalLog, Tally, read_totals};
use dealer_loadgen::scenario;
use dealer_sim::faults::{Plan, registry};
use dealer_sim::inventory::{ExportFormat, ImportDefaults, ImportFormat, Inventory, Profile, Spec};
use dealer_sim::journal::{Filter, Query};
use dealer_sim::ledger::Reader;
use dealer_sim::server::limits::Limits;

use super::engine::{Said, Target};
use super::mutate::Form;

fn root(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(path)
}

/// The files of a folder with this ending.
fn files(folder: &str, ending: &str) -> Vec<Vec<u8>> {
    let mut paths: Vec<_> =
        std::fs::read_dir(root(folder)).unwrap().map(|entry| entry.unwrap().path()).collect();
    paths.retain(|path| path.extension().is_some_and(|end| end == ending));
    paths.sort();
    paths.into_iter().map(|path| std::fs::read(path).unwrap()).collect()
}

fn text(name: &'static str, seeds: Vec<Vec<u8>>, run: impl FnMut(&str) -> Said + 'static) -> Target {
    let mut run = run;
    let run = move |input: &[u8]| run(&String::from_utf8_lossy(input));
    Target { name, form: Form::Text, seeds, run: Box::new(run) }
}

/// A result in words: what is wrong has to be told.
fn told<T>(result: Result<T, impl std::fmt::Display>) -> Said {
    match result {
        Ok(_) => Ok("taken".to_owned()),
        Err(error) => match error.to_string() {
            empty if empty.trim().is_empty() => Err("refused without a word".to_owned()),
            words => Ok(words),
        },
    }
}

/// A plan; what is taken is written down again in other words, and these are the same plan.
fn plans() -> Target {
    text("fault plan", files("scenarios/faults", "yaml"), |input| {
        let plan = match Plan::parse("plan", input, registry()) {
            Ok(plan) => plan,
            Err(error) => return told(Err::<(), _>(error)),
        };
        let again = plan.to_json().to_string();
        match Plan::parse("again", &again, registry()) {
            Ok(same) if same.hash() == plan.hash() => Ok(format!("{} rules", plan.rules().len())),
            Ok(_) => Err(format!("another plan when it is written again: {again}")),
            Err(error) => Err(format!("refused when it is written again: {error}: {again}")),
        }
    })
}

fn scenarios() -> Target {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("s.yaml");
    let mut seeds = files("scenarios", "yaml");
    seeds.extend(files("loadgen/tests/broken", "yaml"));
    text("scenario", seeds, move |input| {
        // Kept as long as the target is.
        let _ = &folder;
        std::fs::write(&file, input).unwrap();
        told(scenario::load(std::slice::from_ref(&file), &[]))
    })
}

/// An interval log of a few seconds.
fn hlog() -> Vec<u8> {
    let mut log = Vec::new();
    let mut out = IntervalLog::begin(
        &mut log,
        vec!["f/s".to_owned()],
        "2026-01-01T00:00:00Z".parse().unwrap(),
        "seed 42",
    )
    .unwrap();
    for second in 0..3 {
        let mut tally = Tally::new(1);
        (1..50).for_each(|n| {
            tally.steps[0].response.record(n * 100_000 * (second + 1));
            tally.steps[0].service.record(n * 90_000);
        });
        out.write(&tally, Duration::from_secs(second), Duration::from_secs(1)).unwrap();
    }
    drop(out);
    log
}

fn hlogs() -> Target {
    let run = |input: &[u8]| told(read_totals(input).map_err(|error| error.to_string()));
    Target { name: "interval log", form: Form::Text, seeds: vec![hlog()], run: Box::new(run) }
}

/// Stock; what is taken and written down again is the same stock.
fn stock(name: &'static str, format: ImportFormat, written: ExportFormat, form: Form) -> Target {
    let export = |stock: &Inventory, format| {
        let mut out = Vec::new();
        stock.export(format, &mut out).unwrap();
        out
    };
    let profile = Profile::built_in().unwrap();
    let made =
        Inventory::generate(&Spec { vehicles: 4, ..Spec::new(7, "2026-01-01".parse().unwrap()) }, &profile)
            .unwrap();
    let seed = export(&made, written);
    let run = move |input: &[u8]| -> Said {
        let defaults =
            ImportDefaults { dealer_id: "d".to_owned(), updated_at: "2026-01-01T00:00:00Z".parse().unwrap() };
        let taken = match Inventory::import(input, format, &defaults) {
            Ok(taken) => taken,
            Err(error) => return told(Err::<(), _>(error.in_file("stock"))),
        };
        let (lines, other) = (export(&taken, ExportFormat::Jsonl), export(&taken, written));
        let again = Inventory::import(&other, format, &defaults)
            .map_err(|error| format!("refused when it is written again: {}", error.in_file("stock")))?;
        // A table has no place for members of the dealer's own.
        let is_same = match written {
            ExportFormat::Csv => export(&again, written) == other,
            _ => export(&again, ExportFormat::Jsonl) == lines,
        };
        match is_same {
            true => Ok(format!("{} vehicles", taken.len())),
            false => {
                Err(format!("another stock when it is written again: {}", String::from_utf8_lossy(&other)))
            }
        }
    };
    Target { name, form, seeds: vec![seed], run: Box::new(run) }
}

fn profiles() -> Target {
    text("profile", files("data/profiles", "toml"), |input| told(Profile::parse("profile", input)))
}

fn limits() -> Target {
    let seed = b"body_bytes = 1048576\nheader_bytes = 65536\nheader_count = 100\nheader_timeout_ms = 60000\nconnections = 10000\npage_cap = 100\n";
    text("limits", vec![seed.to_vec()], |input| told(Limits::parse("limits", input)))
}

/// The file of --leads: whatever is in it, it is read to its end, or its damage has a place in it.
fn leads() -> Target {
    let ledger = dealer_sim::ledger::Ledger::default();
    let entry = dealer_sim::ledger::Entry::Lead(dealer_sim::ledger::LeadEntry {
        lead_id: "lead_1".into(),
        received_at: "2026-01-01T12:00:00Z".parse().unwrap(),
        context_id: "ctx".into(),
        request: "{\"type\":\"lead.submit.request\"}",
        receipt: "{\"data\":{}}",
    });
    (0..3).for_each(|_| _ = ledger.enter("harbor", &entry));
    ledger.enter("harbor", &dealer_sim::ledger::Entry::Reset);
    let mut seed = Vec::new();
    ledger.take_waiting(&mut seed);
    let run = |input: &[u8]| -> Said {
        let mut reader = Reader::new(input);
        loop {
            match reader.next_record() {
                Ok(Some(_)) => {}
                Ok(None) => {
                    let torn = reader.torn().map_or(0, |torn| torn.bytes);
                    let all = reader.whole() + torn == input.len() as u64;
                    return if all {
                        Ok(format!("{} torn", torn > 0))
                    } else {
                        Err("some of it was not read".to_owned())
                    };
                }
                Err(error) => return told(Err::<(), _>(error)),
            }
        }
    };
    Target { name: "leads file", form: Form::Text, seeds: vec![seed], run: Box::new(run) }
}

/// What is asked of the journal.
fn questions() -> Target {
    let seeds = [
        r#"{"match":{"skill":"lead.submit","outcome":"ok","conversation":"c"},"count":{"min":1,"max":3},"after":5}"#,
        r#"{"sequence":[{"skill":"inventory.search"},{"skill":"lead.submit","payload":{"/customer/email":"a"}}]}"#,
        "after=5&limit=10&skill=lead.submit&conversation=c&client=x%20y&fault=a",
    ];
    let run = |input: &[u8]| {
        let asked = told(Query::parse(input).map_err(|error| error.to_string()))?;
        Ok(asked + &told(Filter::parse(&String::from_utf8_lossy(input)).map_err(|error| error.to_string()))?)
    };
    Target {
        name: "journal question",
        form: Form::Json,
        seeds: seeds.map(|seed| seed.as_bytes().to_vec()).to_vec(),
        run: Box::new(run),
    }
}

pub(crate) fn targets() -> Vec<Target> {
    vec![
        plans(),
        scenarios(),
        hlogs(),
        stock("stock JSON", ImportFormat::Json, ExportFormat::Json, Form::Json),
        stock("stock CSV", ImportFormat::Csv, ExportFormat::Csv, Form::Text),
        profiles(),
        limits(),
        leads(),
        questions(),
    ]
}
