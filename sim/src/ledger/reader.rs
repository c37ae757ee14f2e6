//! Reading a file of records: what is whole, what was torn off at its end, and where it is damaged.

use std::io::{self, BufRead, Read as _};

use super::record::{BadRecord, Record, read_line};

/// Bytes of a record at most; a lead's body may have a gibibyte (`body_bytes`), and what it is answered with is short.
const MAX_RECORD: u64 = 2 << 30;

/// Why a file of records cannot be read on.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// The system refuses.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// A record is not what was written. It is not the last one, or it is whole: no write that was cut off leaves such a line.
    #[error(
        "damaged at byte {at}, in line {line}: {bad}. What is before that byte can be had by itself \
         (`head -c {at} FILE > NEWFILE`); the lines behind it are records of their own"
    )]
    Damaged {
        /// Where the line begins.
        at: u64,
        /// Which line it is, from 1 on.
        line: u64,
        /// What is wrong with it.
        bad: BadRecord,
    },
}

/// A piece at the end of a file whose write was cut off: nobody was told that it was written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Torn {
    /// Where it begins: what is before it is whole.
    pub at: u64,
    /// How many bytes it has.
    pub bytes: u64,
}

/// Reads records one after the other.
#[derive(Debug)]
pub struct Reader<R> {
    input: R,
    line: Vec<u8>,
    at: u64,
    read: u64,
    torn: Option<Torn>,
}

impl<R: BufRead> Reader<R> {
    /// Of what is read from the start of a file.
    pub fn new(input: R) -> Reader<R> {
        Reader { input, line: Vec::new(), at: 0, read: 0, torn: None }
    }

    /// The next record; nothing at the end, which a torn record is, too.
    ///
    /// # Errors
    /// [`ReadError`]; nothing is to be read after one.
    pub fn next_record(&mut self) -> Result<Option<Record<'_>>, ReadError> {
        self.line.clear();
        let length = (&mut self.input).take(MAX_RECORD).read_until(b'\n', &mut self.line)? as u64;
        if length == 0 {
            return Ok(None);
        }
        if self.line.last() != Some(&b'\n') {
            self.torn = Some(Torn { at: self.at, bytes: length });
            return Ok(None);
        }
        let (at, line) = (self.at, self.read + 1);
        let record = read_line(&self.line[..self.line.len() - 1]).and_then(|record| {
            if record.number == line {
                return Ok(record);
            }
            Err(BadRecord::Form(format!("record {line} is missing: this is number {}", record.number)))
        });
        let record = record.map_err(|bad| ReadError::Damaged { at, line, bad })?;
        self.at += length;
        self.read = line;
        Ok(Some(record))
    }

    /// Records read.
    pub fn read(&self) -> u64 {
        self.read
    }

    /// Bytes of the records read: where the next one is to begin.
    pub fn whole(&self) -> u64 {
        self.at
    }

    /// What was torn off at the end, once the end was met.
    pub fn torn(&self) -> Option<Torn> {
        self.torn
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::{Entry, tests::lead, write_line};
    use super::*;

    fn file(records: u64) -> Vec<u8> {
        let mut bytes = Vec::new();
        for number in 1..=records {
            write_line(&mut bytes, number, "d", &lead(&format!("lead_{number}")));
        }
        bytes
    }

    fn ids(bytes: &[u8]) -> (Vec<String>, Result<Option<Torn>, ReadError>) {
        let mut reader = Reader::new(bytes);
        let mut ids = Vec::new();
        loop {
            match reader.next_record() {
                Ok(Some(Record { entry: Entry::Lead(lead), .. })) => ids.push(lead.lead_id.into_owned()),
                Ok(Some(_)) => {}
                Ok(None) => return (ids, Ok(reader.torn())),
                Err(error) => return (ids, Err(error)),
            }
        }
    }

    #[test]
    fn a_file_cut_anywhere_gives_what_is_whole_and_tells_of_the_rest() {
        let (bytes, one) = (file(3), file(1).len());
        for end in 0..=bytes.len() {
            let (ids, torn) = ids(&bytes[..end]);
            assert_eq!(ids.len(), end / one, "{end}");
            let rest = (end % one) as u64;
            let wanted = (rest > 0).then(|| Torn { at: (end as u64) - rest, bytes: rest });
            assert_eq!(torn.unwrap(), wanted, "{end}");
        }
    }

    #[test]
    fn damage_before_the_end_is_told_with_its_byte() {
        let (mut bytes, one) = (file(3), file(1).len());
        bytes[one + 40] ^= 1;
        let (ids_read, error) = ids(&bytes);
        assert_eq!(ids_read, ["lead_1"]);
        let error = error.unwrap_err().to_string();
        assert!(error.starts_with(&format!("damaged at byte {one}, in line 2: its checksum is ")), "{error}");
        // A line that is gone is told, too; so is one that comes twice.
        let whole = file(3);
        for spliced in [[&whole[..one], &whole[2 * one..]].concat(), [&whole[..one], &whole[..one]].concat()]
        {
            assert!(ids(&spliced).1.unwrap_err().to_string().contains("record 2 is missing"), "{spliced:?}");
        }
        // The last line, if it is whole, was written: it is damaged and not torn.
        let mut last = file(2);
        last[one + 40] ^= 1;
        assert!(matches!(ids(&last).1, Err(ReadError::Damaged { line: 2, .. })));
    }
}
