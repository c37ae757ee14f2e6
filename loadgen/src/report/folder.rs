//! The folder that a result travels in. What happens while the run goes on is flushed each second; the rest is written at
//! the end.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use jiff::Timestamp;

use super::series::Series;
use super::{Page, RunResult, Second, Stored, Summary, hgrm, junit, page};
use crate::progress::tell;
use crate::record::{IntervalLog, Latency, Tally};

/// A result folder in the making.
pub(crate) struct Folder {
    path: PathBuf,
    log: IntervalLog<BufWriter<File>>,
    series: Series,
}

/// A file of the folder cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("{path} cannot be written: {source}")]
pub(crate) struct FolderError {
    /// The file.
    pub(crate) path: PathBuf,
    /// Why.
    pub(crate) source: io::Error,
}

/// Whether a file of this name is written at the end of a run.
fn is_result(name: &str) -> bool {
    matches!(name, "summary.json" | "response.hgrm" | "report.html" | "junit.xml")
        || name.ends_with(".response.hgrm")
}

impl Folder {
    /// Makes the folder, if it is not there, and begins its files; those of an earlier run are replaced.
    pub(crate) fn create(
        path: &Path,
        labels: Vec<String>,
        started: Timestamp,
        comment: &str,
    ) -> Result<Folder, FolderError> {
        fs::create_dir_all(path).map_err(|source| FolderError { path: path.to_owned(), source })?;
        // Results of an earlier run beside the first intervals of this one would be taken for one.
        // The steps of that run may have had other labels, so their files are found by their ending.
        let entries = fs::read_dir(path).and_then(Iterator::collect::<io::Result<Vec<_>>>);
        for entry in entries.map_err(|source| FolderError { path: path.to_owned(), source })? {
            let name = entry.file_name();
            if is_result(&name.to_string_lossy()) && entry.file_type().is_ok_and(|kind| !kind.is_dir()) {
                let stale = entry.path();
                fs::remove_file(&stale).map_err(|source| FolderError { path: stale, source })?;
            }
        }
        let log_path = path.join("intervals.hlog");
        let log = File::create(&log_path)
            .and_then(|file| IntervalLog::begin(BufWriter::new(file), labels, started, comment))
            .map_err(|source| FolderError { path: log_path, source })?;
        let series_path = path.join("series.csv");
        let series = File::create(&series_path)
            .and_then(Series::begin)
            .map_err(|source| FolderError { path: series_path, source })?;
        Ok(Folder { path: path.to_owned(), log, series })
    }

    /// Adds what happened from `start` on, for `length`, counted from the start of the run.
    pub(crate) fn add(
        &mut self,
        tally: &Tally,
        start: Duration,
        length: Duration,
        in_flight: u64,
    ) -> Result<(), FolderError> {
        self.log
            .write(tally, start, length)
            .map_err(|source| FolderError { path: self.path.join("intervals.hlog"), source })?;
        self.add_second(Second::of(tally, (start + length).as_secs_f64(), in_flight), &tally.response())
    }

    /// Adds a second that was put together from several results: its histograms by their tags, and its counts.
    pub(crate) fn add_merged<'t>(
        &mut self,
        tagged: impl Iterator<Item = (String, &'t Latency)>,
        start: Duration,
        length: Duration,
    ) -> Result<(), FolderError> {
        let written = self.log.write_tagged(tagged, start, length);
        written.map_err(|source| FolderError { path: self.path.join("intervals.hlog"), source })
    }

    /// Adds a second to the series, with the response times of the requests in it.
    pub(crate) fn add_second(&mut self, second: Second, response: &Latency) -> Result<(), FolderError> {
        self.series
            .add(second, response)
            .map_err(|source| FolderError { path: self.path.join("series.csv"), source })
    }

    /// Writes the summary of what there is so far: a run that is killed leaves that one. The file is replaced at once, so
    /// that no reader finds half of it.
    pub(crate) fn write_partial(&self, result: &RunResult) -> Result<(), FolderError> {
        let path = self.path.join("summary.json");
        let new = self.path.join("summary.json.new");
        write_file(&new, |out| {
            serde_json::to_writer(&mut *out, &Summary::from(result))?;
            writeln!(out)
        })?;
        fs::rename(&new, &path).map_err(|source| FolderError { path, source })
    }

    /// Writes the files of the whole run.
    pub(crate) fn finish(self, result: &RunResult) -> Result<(), FolderError> {
        let Folder { path, log, series } = self;
        drop((log, series));
        write_results(&path, result)?;
        // The page is drawn from the whole log, which may be too long for that after days. Everything else is there.
        if let Err(error) = write_page(&path, None) {
            tell(&format!("{error}; the other results are written"));
        }
        Ok(())
    }
}

/// Writes everything that is made from a whole result, but for the page.
pub(super) fn write_results(path: &Path, result: &RunResult) -> Result<(), FolderError> {
    write_file(&path.join("summary.json"), |out| {
        serde_json::to_writer_pretty(&mut *out, &Summary::from(result))?;
        writeln!(out)
    })?;
    write_file(&path.join("junit.xml"), |out| junit::write(out, result))?;
    write_file(&path.join("response.hgrm"), |out| hgrm::write(out, &result.tally.response()))?;
    for (label, step) in result.labels.iter().zip(&result.tally.steps) {
        let name = format!("{}.response.hgrm", label.replace('/', "."));
        write_file(&path.join(name), |out| hgrm::write(out, &step.response))?;
    }
    Ok(())
}

/// Writes `report.html` from what the folder has, beside a baseline's figures if there is one.
pub(crate) fn write_page(path: &Path, baseline: Option<&Stored>) -> Result<(), FolderError> {
    let target = path.join("report.html");
    let stored = Stored::read(path)
        .map_err(|error| FolderError { path: target.clone(), source: io::Error::other(error.to_string()) })?;
    let html = page(&Page::of(&stored), baseline.map(Page::of).as_ref());
    write_file(&target, |out| out.write_all(html.as_bytes()))
}

/// Writes one file.
pub(super) fn write_file(
    path: &Path,
    write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>,
) -> Result<(), FolderError> {
    let written = File::create(path).and_then(|file| {
        let mut out = BufWriter::new(file);
        write(&mut out)?;
        out.flush()
    });
    written.map_err(|source| FolderError { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_files_of_an_earlier_run_go_and_those_of_others_stay() {
        let folder = tempfile::tempdir().unwrap();
        let names = [
            "summary.json",
            "response.hgrm",
            "old.step.response.hgrm",
            "report.html",
            "notes.hgrm",
            "mine.txt",
        ];
        for name in names {
            fs::write(folder.path().join(name), "x").unwrap();
        }
        Folder::create(folder.path(), vec!["a/b".to_owned()], Timestamp::UNIX_EPOCH, "test").unwrap();
        let left: Vec<_> = names.iter().filter(|name| folder.path().join(name).exists()).collect();
        assert_eq!(left, [&"notes.hgrm", &"mine.txt"]);
    }
}
