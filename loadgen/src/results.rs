//! The commands that read results: `compare`, `merge`, `report`.

use std::io::{self, Write};
use std::path::PathBuf;

use crate::cli::{CompareArgs, MergeArgs, ReportArgs};
use crate::compare::{self, Options};
use crate::merge::{self, MergeError};
use crate::report::{FolderError, Stored, StoredError, write_page, write_text};
use crate::settings::read_seed;
use crate::units;

/// Why a command gave nothing.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ResultsError {
    /// The user must change something; one sentence or more.
    #[error("{}", .0.join("\n"))]
    Usage(Vec<String>),
    /// A folder cannot be read.
    #[error(transparent)]
    Read(#[from] StoredError),
    /// A folder cannot be written.
    #[error(transparent)]
    Write(#[from] FolderError),
    /// A file or standard output cannot be written.
    #[error("{0} cannot be written: {1}")]
    Output(String, io::Error),
    /// Results cannot be merged.
    #[error(transparent)]
    Merge(MergeError),
}

/// Compares; gives whether there is a regression.
pub(crate) fn compare(args: &CompareArgs) -> Result<bool, ResultsError> {
    let mut faults = Vec::new();
    let seed = read_seed(&args.seed).map_err(|fault| faults.push(fault)).unwrap_or(0);
    let allowance = args.allowance.as_deref().and_then(|text| {
        let ratio = units::ratio(text).filter(|ratio| (0.0..1.0).contains(ratio));
        if ratio.is_none() {
            faults.push(format!("--allowance {text:?}: give a ratio such as 2%"));
        }
        ratio
    });
    if !matches!(args.format.as_str(), "text" | "json") {
        faults.push(format!("--format {:?}: give text or json", args.format));
    }
    if !faults.is_empty() {
        return Err(ResultsError::Usage(faults));
    }
    let read =
        |paths: Vec<PathBuf>| paths.iter().map(|path| Stored::read(path)).collect::<Result<Vec<_>, _>>();
    let base = read(args.base.clone())?;
    let new = read(args.new.split(',').map(PathBuf::from).collect())?;
    let comparison = compare::compare(&base, &new, Options { seed, allowance })
        .map_err(|unlike| ResultsError::Usage(unlike.0))?;
    if let Some(path) = &args.html {
        std::fs::write(path, compare::page(&comparison, &base, &new))
            .map_err(|error| ResultsError::Output(path.display().to_string(), error))?;
    }
    print(|out| {
        if args.format == "json" {
            serde_json::to_writer_pretty(&mut *out, &comparison).map_err(io::Error::from)?;
            writeln!(out)
        } else {
            compare::write_text(out, &comparison)
        }
    })?;
    Ok(comparison.regression)
}

/// Merges.
pub(crate) fn merge(args: &MergeArgs) -> Result<(), ResultsError> {
    let result = merge::merge(&args.out, &args.inputs).map_err(|error| match error {
        MergeError::Unlike(faults) => ResultsError::Usage(faults),
        MergeError::Read(error) => ResultsError::Read(error),
        MergeError::Write(error) => ResultsError::Write(error),
        other @ MergeError::Log(_) => ResultsError::Merge(other),
    })?;
    print(|out| write_text(out, &result))
}

/// Writes a folder's page again.
pub(crate) fn report(args: &ReportArgs) -> Result<(), ResultsError> {
    let stored = Stored::read(&args.folder)?;
    let baseline = args.baseline.as_deref().map(Stored::read).transpose()?;
    write_page(&args.folder, baseline.as_ref())?;
    print(|out| {
        write_text(out, &stored.result)?;
        writeln!(out, "\nThe page is {}.", args.folder.join("report.html").display())
    })
}

/// Prints on standard output. Whoever closes it has seen enough.
pub(crate) fn print(
    write: impl FnOnce(&mut io::StdoutLock<'_>) -> io::Result<()>,
) -> Result<(), ResultsError> {
    let mut out = io::stdout().lock();
    match write(&mut out).and_then(|()| out.flush()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => {
            Err(ResultsError::Output("standard output".to_owned(), error))
        }
        _ => Ok(()),
    }
}
