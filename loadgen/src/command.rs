//! From the command line to an exit code.

use std::ffi::OsString;
use std::io::{self, Write};

use clap::Parser;

use crate::cli::{CheckArgs, Cli, Command, ImportArgs};
use crate::explain::explain_load;
use crate::import;
use crate::progress::tell;
use crate::run::{self, Ending, RunError};
use crate::scenario;
use crate::settings::{self, Settings};

const USAGE: u8 = 1;
const FAILED: u8 = 2;
const CONDITION: u8 = 3;
const NOT_VALID: u8 = 4;

/// Does what a command line says; gives the exit code.
pub fn main(line: impl Iterator<Item = OsString>) -> u8 {
    let cli = match Cli::try_parse_from(line) {
        Ok(cli) => cli,
        Err(error) => {
            // Help and version are errors to clap, but not to who asked for them.
            let code = if error.use_stderr() { USAGE } else { 0 };
            let _ = error.print();
            return code;
        }
    };
    match cli.command {
        Command::Check(args) => check(&args),
        Command::Import(args) => import(&args),
        Command::Run(args) => match Settings::read(&args, |name| std::env::var(name).ok()) {
            Ok(settings) => run(settings),
            Err(faults) => usage(&faults),
        },
    }
}

fn run(settings: Settings) -> u8 {
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => {
            complain(&format!("the runtime could not be started: {error}"));
            return FAILED;
        }
    };
    let ended = runtime.block_on(run::run(settings));
    // Nothing that still runs may hold the process up.
    runtime.shutdown_background();
    match ended {
        Ok(Ending::Ok) => 0,
        Ok(Ending::Interrupted(signal)) => signal.exit_code(),
        Ok(Ending::NotValid) => NOT_VALID,
        Ok(Ending::ConditionFailed) => CONDITION,
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
    let workload = match scenario::load(&args.scenarios, &sets) {
        Ok(workload) => workload,
        Err(error) => return usage(&[error.to_string()]),
    };
    asked.fit(&workload);
    let mut text = String::new();
    let told = workload.explain(asked.load.seed, &mut text).and_then(|()| explain_load(&asked, &mut text));
    if told.is_err() {
        complain("the scenario could not be explained");
        return FAILED;
    }
    print(&text)
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
