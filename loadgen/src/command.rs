//! From the command line to an exit code.

use std::ffi::OsString;
use std::io::{self, Write};

use clap::{CommandFactory, FromArgMatches};
use dealer_sim::{flags_file, log};
use serde::Serialize;

use crate::cli::{CheckArgs, Cli, Command, ConformArgs, ImportArgs, WITH_FILE};
use crate::conform::{self, ConformError};
use crate::explain::explain_load;
use crate::import;
use crate::progress::tell;
use crate::results::{self, ResultsError};
use crate::run::{self, Ending, RunError};
use crate::scenario;
use crate::search::{self, SearchEnding};
use crate::settings::{self, Settings};

const USAGE: u8 = 1;
const FAILED: u8 = 2;
const CONDITION: u8 = 3;
const NOT_VALID: u8 = 4;

/// Does what a command line says; gives the exit code.
pub fn main(line: impl Iterator<Item = OsString>) -> u8 {
    let read = match flags_file::matches(Cli::command(), &WITH_FILE, line, "DEALER_LOADGEN_CONFIG") {
        Ok(matches) => matches.and_then(|matches| Cli::from_arg_matches(&matches)),
        Err(error) => return usage(&[error.to_string()]),
    };
    let cli = match read {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are errors to clap, but not to who asked for them.
            let code = if error.use_stderr() { USAGE } else { 0 };
            let _ = error.print();
            return code;
        }
    };
    log::start(cli.log);
    match cli.command {
        Command::Check(args) => check(&args),
        Command::Import(args) => import(&args),
        Command::Run(args) => match Settings::read(&args, |name| std::env::var(name).ok()) {
            Ok(settings) => run(settings),
            Err(faults) => usage(&faults),
        },
        Command::FindMax(args) => {
            let is_json = args.run.format == "json";
            searched(search::find_max(&args), is_json, |out, found| search::write_found(out, found))
        }
        Command::Sweep(args) => {
            let is_json = args.run.format == "json";
            searched(search::sweep(&args), is_json, |out, swept| search::write_swept(out, swept))
        }
        Command::Compare(args) => match results::compare(&args) {
            Ok(is_regression) => {
                if is_regression {
                    CONDITION
                } else {
                    0
                }
            }
            Err(error) => failed(&error),
        },
        Command::Merge(args) => results::merge(&args).map_or_else(|error| failed(&error), |()| 0),
        Command::Conform(args) => conform(&args),
        Command::Report(args) => results::report(&args).map_or_else(|error| failed(&error), |()| 0),
    }
}

fn failed(error: &ResultsError) -> u8 {
    match error {
        ResultsError::Usage(faults) => usage(faults),
        other => {
            complain(&other.to_string());
            FAILED
        }
    }
}

fn run(settings: Settings) -> u8 {
    let ending = on_runtime(run::run(settings));
    exit_code(ending.map(|ending| match ending {
        Ending::Ok => 0,
        Ending::Interrupted(signal) => signal.exit_code(),
        Ending::NotValid => NOT_VALID,
        Ending::ConditionFailed => CONDITION,
    }))
}

/// Carries a search out, and prints what it found.
fn searched<T: Serialize>(
    search: impl Future<Output = Result<(T, SearchEnding), RunError>>,
    is_json: bool,
    write: impl FnOnce(&mut io::StdoutLock<'_>, &T) -> io::Result<()>,
) -> u8 {
    let (found, ending) = match on_runtime(search) {
        Ok(found) => found,
        Err(error) => return exit_code(Err(error)),
    };
    let printed = results::print(|out| {
        if is_json {
            serde_json::to_writer_pretty(&mut *out, &found).map_err(io::Error::from)?;
            writeln!(out)
        } else {
            write(out, &found)
        }
    });
    match (printed, ending) {
        (Err(error), _) => failed(&error),
        (Ok(()), SearchEnding::Ok) => 0,
        (Ok(()), SearchEnding::Interrupted(signal)) => signal.exit_code(),
        (Ok(()), SearchEnding::NotValid) => NOT_VALID,
        (Ok(()), SearchEnding::NothingHolds) => CONDITION,
    }
}

fn on_runtime<T>(work: impl Future<Output = Result<T, RunError>>) -> Result<T, RunError> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| RunError::failed(format!("the runtime could not be started: {error}")))?;
    let ended = runtime.block_on(work);
    // Nothing that still runs may hold the process up.
    runtime.shutdown_background();
    ended
}

fn exit_code(ended: Result<u8, RunError>) -> u8 {
    match ended {
        Ok(code) => code,
        Err(RunError::Usage(faults)) => usage(&faults),
        Err(RunError::Failed(fault)) => {
            complain(&fault.to_string());
            FAILED
        }
        Err(RunError::Aborted(signal)) => signal.exit_code(),
    }
}

fn check(args: &CheckArgs) -> u8 {
    let (mut asked, sets) = match settings::read_load(&args.load) {
        Ok(read) => read,
        Err(faults) => return usage(&faults),
    };
    let mut workload = match scenario::load(&args.scenarios, &sets) {
        Ok(workload) => workload,
        Err(error) => return usage(&[error.to_string()]),
    };
    if let Err(faults) = workload.turn_to(asked.binding) {
        return usage(&faults);
    }
    asked.fit(&workload);
    let mut text = String::new();
    let told = workload.explain(asked.load.seed, &mut text).and_then(|()| explain_load(&asked, &mut text));
    if told.is_err() {
        complain("the scenario could not be explained");
        return FAILED;
    }
    print(&text)
}

fn conform(args: &ConformArgs) -> u8 {
    let request = match settings::read_conform(args, |name| std::env::var(name).ok()) {
        Ok(request) => request,
        Err(faults) => return usage(&faults),
    };
    let judged = on_runtime(async {
        let judged = conform::conform(&request).await;
        judged.map_err(|error| match error {
            error if error.is_usage() => RunError::usage(error.to_string()),
            error @ ConformError::Unreached { .. } => RunError::failed(error.to_string()),
            error => RunError::failed(error),
        })
    });
    let report = match judged {
        Ok(report) => report,
        Err(error) => return exit_code(Err(error)),
    };
    let written = args.out.as_deref().map_or(Ok(()), |folder| conform::write(folder, &report));
    if let Err(error) = written {
        complain(&error.to_string());
        return FAILED;
    }
    match print(&conform::shown(&args.format, &report)) {
        0 => report.exit_code(),
        failed => failed,
    }
}

fn import(args: &ImportArgs) -> u8 {
    match import::import(args) {
        Ok(text) => print(&text),
        Err(error) if error.is_usage() => usage(&[error.to_string()]),
        Err(error) => {
            complain(&error.to_string());
            FAILED
        }
    }
}

fn print(text: &str) -> u8 {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            complain(&format!("standard output cannot be written: {error}"));
            FAILED
        }
        _ => 0,
    }
}

fn usage(faults: &[String]) -> u8 {
    for fault in faults {
        complain(fault);
    }
    USAGE
}

/// One fault on standard error. What is on several lines already has a form of its own.
fn complain(fault: &str) {
    let text = fault.trim_end();
    if text.contains('\n') {
        tell(text);
    } else {
        tell(&format!("dealer-loadgen: {text}"));
    }
}
