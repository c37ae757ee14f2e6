//! Flags from a TOML file, for a command line that has many: they become the defaults of its flags, so that clap itself keeps the
//! precedence: flag, variable, file, default.

use std::ffi::OsString;
use std::path::PathBuf;

use clap::{Arg, ArgAction, ArgMatches, Command};

/// A configuration file that cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// It cannot be read.
    #[error("{file}: {error}")]
    Read {
        /// The file.
        file: String,
        /// What the system said.
        error: std::io::Error,
    },
    /// It is not TOML.
    #[error("{file}: {problem}")]
    Syntax {
        /// The file.
        file: String,
        /// The parser's words, with line and column.
        problem: String,
    },
    /// It has members that are no flags, or of a kind that no flag takes.
    #[error("{file}: {}", .problems.join("; "))]
    Members {
        /// The file.
        file: String,
        /// Each problem.
        problems: Vec<String>,
    },
}

/// Reads a command line whose `subcommands` take `--config FILE`; `variable` is the name of its environment variable.
///
/// # Errors
/// The outer error is the file's, the inner one clap's (which may be a request for help).
pub fn matches(
    command: Command,
    subcommands: &[&str],
    arguments: impl IntoIterator<Item = OsString>,
    variable: &str,
) -> Result<Result<ArgMatches, clap::Error>, ConfigError> {
    let arguments: Vec<OsString> = arguments.into_iter().collect();
    Ok(applied(command, subcommands, &arguments, variable)?.try_get_matches_from(arguments))
}

/// The command with the members of the file that the command line, or else the variable, names as defaults.
///
/// # Errors
/// If the file cannot be used.
pub fn applied(
    command: Command,
    subcommands: &[&str],
    arguments: &[OsString],
    variable: &str,
) -> Result<Command, ConfigError> {
    let Some(path) = path_in(arguments).or_else(|| std::env::var_os(variable).map(PathBuf::from)) else {
        return Ok(command);
    };
    let file = path.display().to_string();
    let bytes = std::fs::read(&path).map_err(|error| ConfigError::Read { file: file.clone(), error })?;
    let text = String::from_utf8(bytes).map_err(|error| ConfigError::Syntax {
        file: file.clone(),
        problem: format!("not UTF-8: {error}"),
    })?;
    let table: toml::Table = text.parse().map_err(|error: toml::de::Error| ConfigError::Syntax {
        file: file.clone(),
        problem: error.to_string(),
    })?;
    apply(command, subcommands, &file, &table)
}

fn path_in(arguments: &[OsString]) -> Option<PathBuf> {
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if argument == "--config" {
            return rest.next().map(PathBuf::from);
        }
        if let Some(path) = argument.to_str().and_then(|text| text.strip_prefix("--config=")) {
            return Some(PathBuf::from(path));
        }
    }
    None
}

/// The command with the members of a table as the defaults of the flags that `subcommands` have; `file` is named in errors.
///
/// # Errors
/// With every member that is no flag of any of them, or of a kind that the flag does not take.
pub fn apply(
    mut command: Command,
    subcommands: &[&str],
    file: &str,
    table: &toml::Table,
) -> Result<Command, ConfigError> {
    let flags_of = |command: &Command, name: &str| -> Vec<Arg> {
        let found = command.find_subcommand(name).into_iter().flat_map(Command::get_arguments);
        found.filter(|flag| flag.get_long().is_some_and(|long| long != "config")).cloned().collect()
    };
    let mut known: Vec<Arg> = Vec::new();
    for flag in subcommands.iter().flat_map(|name| flags_of(&command, name)) {
        if known.iter().all(|other| other.get_id() != flag.get_id()) {
            known.push(flag);
        }
    }
    let mut problems = Vec::new();
    let mut defaults = Vec::new();
    for (name, value) in table {
        let long = name.replace('_', "-");
        let Some(flag) = known.iter().find(|flag| flag.get_long() == Some(long.as_str())) else {
            let all: Vec<_> = known.iter().filter_map(Arg::get_long).collect();
            problems.push(format!("{name:?} is no flag; the flags are {}", all.join(", ")));
            continue;
        };
        let is_switch = matches!(flag.get_action(), ArgAction::SetTrue);
        match texts(value, is_switch) {
            Some(values) => defaults.push((flag.get_id().clone(), values)),
            None if is_switch => problems.push(format!("{name:?} must be true or false")),
            None => problems.push(format!("{name:?} must be a text, a number or a list of texts")),
        }
    }
    if !problems.is_empty() {
        return Err(ConfigError::Members { file: file.to_owned(), problems });
    }
    for name in subcommands {
        let own: Vec<_> = flags_of(&command, name).iter().map(|flag| flag.get_id().clone()).collect();
        for (id, values) in defaults.iter().filter(|(id, _)| own.contains(id)) {
            command = command.mut_subcommand(*name, |subcommand| {
                subcommand.mut_arg(id, |flag| flag.default_values(values.clone()))
            });
        }
    }
    Ok(command)
}

fn texts(value: &toml::Value, is_switch: bool) -> Option<Vec<String>> {
    match value {
        toml::Value::Boolean(switch) if is_switch => Some(vec![switch.to_string()]),
        _ if is_switch => None,
        toml::Value::String(text) => Some(vec![text.clone()]),
        toml::Value::Integer(number) => Some(vec![number.to_string()]),
        toml::Value::Array(items) => items.iter().map(|item| item.as_str().map(str::to_owned)).collect(),
        _ => None,
    }
}
