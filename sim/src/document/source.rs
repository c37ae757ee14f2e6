//! Reads the text of an input file, bounded.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use super::fault::{Fault, Faults, Pos, Reporter, Source};

impl Source {
    /// Reads a file of at most `limit` bytes, which is `what` (`the plan`) in messages. What is wrong goes to `faults`.
    pub fn read(path: &Path, limit: u64, what: &str, faults: &mut Faults) -> Option<Arc<Source>> {
        let bytes = match read_bounded(path, limit) {
            Ok(bytes) => bytes,
            Err(error) => {
                faults.add(Fault::unreadable(path, format!("{what} cannot be read: {error}")));
                return None;
            }
        };
        match into_text(bytes) {
            Ok(text) => Some(Arc::new(Source { path: path.to_owned(), text })),
            Err((text, at)) => {
                let source = Arc::new(Source { path: path.to_owned(), text });
                Reporter { source, faults }.add(Fault::new(at, "this byte is not UTF-8"));
                None
            }
        }
    }
}

/// A file's bytes, not more than `limit`.
///
/// # Errors
/// The file cannot be read, is a directory or larger.
pub fn read_bounded(path: &Path, limit: u64) -> io::Result<Vec<u8>> {
    let file = File::open(path)?;
    if file.metadata()?.is_dir() {
        return Err(io::Error::other("it is a directory"));
    }
    let mut bytes = Vec::new();
    file.take(limit + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > limit {
        return Err(io::Error::other(format!("it is larger than {limit} bytes")));
    }
    Ok(bytes)
}

/// The text without a byte order mark.
///
/// # Errors
/// It is not UTF-8: a readable form of it and the place of the first byte that is not.
pub fn into_text(bytes: Vec<u8>) -> Result<String, (String, Pos)> {
    let text = String::from_utf8(bytes).map_err(|error| {
        let valid = error.utf8_error().valid_up_to();
        let text = String::from_utf8_lossy(error.as_bytes()).into_owned();
        let before = text.get(..valid).unwrap_or_default();
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().unwrap_or_default().chars().count() + 1;
        (text, Pos { line, column, width: 1 })
    })?;
    Ok(text.strip_prefix('\u{feff}').map(str::to_owned).unwrap_or(text))
}
