//! What is wrong with a command line, all of it at once: clap by itself stops at the first value that it cannot read.

use std::collections::HashSet;
use std::ffi::OsString;
use std::io::Write as _;

use clap::error::{ContextKind, ContextValue, ErrorKind};
use clap::{ArgMatches, Command};

/// Everything wrong with a command line.
#[derive(Debug)]
pub struct Misuse {
    errors: Vec<clap::Error>,
}

impl Misuse {
    /// A single thing wrong.
    pub(super) fn of(error: clap::Error) -> Misuse {
        Misuse { errors: vec![error] }
    }

    /// Whether help or the version was asked for, which is no misuse.
    pub fn asked_for_help(&self) -> bool {
        let is_answer =
            |error: &clap::Error| matches!(error.kind(), ErrorKind::DisplayHelp | ErrorKind::DisplayVersion);
        matches!(self.errors.as_slice(), [error] if is_answer(error))
    }

    /// Prints it: an answer on standard output, errors on standard error.
    pub fn print(&self) {
        if let [error] = self.errors.as_slice() {
            _ = error.print();
            return;
        }
        // A reader that is gone changes nothing.
        _ = write!(std::io::stderr(), "{}", self.text());
    }

    /// The errors, and once what each of them ends with.
    fn text(&self) -> String {
        let mut out = String::new();
        let mut end = String::new();
        for error in &self.errors {
            let text = error.render().to_string();
            let (what, advice) = text.split_once("\n\n").unwrap_or((&text, ""));
            out += what.trim_end();
            out.push('\n');
            advice.clone_into(&mut end);
        }
        format!("{out}\n{}\n", end.trim())
    }
}

/// Reads the command line. While a value cannot be read, its flag is made to take any, so that the next one is found.
pub(super) fn matches(mut command: Command, arguments: &[OsString]) -> Result<ArgMatches, Misuse> {
    let mut errors = Vec::new();
    let mut loosened = HashSet::new();
    loop {
        match command.clone().try_get_matches_from(arguments) {
            Ok(matches) if errors.is_empty() => return Ok(matches),
            Ok(_) => return Err(Misuse { errors }),
            Err(error) => {
                let flag = flag_of(&error).filter(|flag| loosened.insert(flag.clone()));
                // Whatever else is wrong is told when the values are right: it may come of them.
                if flag.is_some() || errors.is_empty() {
                    errors.push(error);
                }
                let Some(flag) = flag else { return Err(Misuse { errors }) };
                command = loosen(command, &flag);
            }
        }
    }
}

/// The flag whose value cannot be read; clap names it as `--journal <N>`.
fn flag_of(error: &clap::Error) -> Option<String> {
    match (error.kind(), error.get(ContextKind::InvalidArg)) {
        (ErrorKind::ValueValidation | ErrorKind::InvalidValue, Some(ContextValue::String(flag))) => {
            let name = flag.strip_prefix("--")?;
            Some(name.split([' ', '=', '[']).next()?.to_owned())
        }
        _ => None,
    }
}

fn loosen(command: Command, flag: &str) -> Command {
    let ids: Vec<_> = command
        .get_arguments()
        .filter(|argument| argument.get_long() == Some(flag))
        .map(|argument| argument.get_id().clone())
        .collect();
    let below: Vec<_> = command.get_subcommands().map(|below| below.get_name().to_owned()).collect();
    let any = |argument: clap::Arg| argument.value_parser(clap::value_parser!(OsString));
    let command = ids.into_iter().fold(command, |command, id| command.mut_arg(id, any));
    below.into_iter().fold(command, |command, name| command.mut_subcommand(name, |below| loosen(below, flag)))
}

/// Reads a count within bounds; what it is of stands in the message.
pub(super) fn count<T: TryFrom<u64>>(
    what: &'static str,
    least: u64,
    most: u64,
) -> impl Fn(&str) -> Result<T, String> + Clone + Send + Sync + 'static {
    move |given| {
        let read = given.parse().ok().filter(|number| (least..=most).contains(number));
        read.and_then(|number| T::try_from(number).ok())
            .ok_or_else(|| format!("give {what}, {least} to {most}"))
    }
}
