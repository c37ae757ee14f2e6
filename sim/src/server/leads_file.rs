//! The file of leads (`--leads`): read once at the start, then appended to by one writer, which writes and syncs all that came
//! meanwhile at once, so that many leads share the wait for the disk.

use std::fs::{File, OpenOptions, TryLockError};
use std::io::{self, BufReader, Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::time::Instant;

use super::StartError;
use crate::document::units::{DURATION_FORM, duration_ns};
use crate::ledger::{Ledger, ReadError, Reader, Torn};
use crate::world::World;

/// How long after a failure the file is tried again.
const TRY_AGAIN_AFTER: Duration = Duration::from_secs(1);

/// When what was written is made to reach the disk. A process that is killed loses nothing of what it wrote, whatever is chosen:
/// this is about the machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum SyncPolicy {
    /// Before a lead is acknowledged.
    #[default]
    Always,
    /// As often as this; leads are acknowledged when they are written.
    Interval(Duration),
    /// When the system likes.
    Never,
}

/// A policy that cannot be read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{given:?} is no policy; use always, never or interval= with {DURATION_FORM}")]
pub struct BadPolicy {
    given: String,
}

impl FromStr for SyncPolicy {
    type Err = BadPolicy;

    fn from_str(given: &str) -> Result<SyncPolicy, BadPolicy> {
        let interval = |text| duration_ns(text).filter(|ns| *ns > 0).map(Duration::from_nanos);
        match given {
            "always" => Some(SyncPolicy::Always),
            "never" => Some(SyncPolicy::Never),
            _ => given.strip_prefix("interval=").and_then(interval).map(SyncPolicy::Interval),
        }
        .ok_or_else(|| BadPolicy { given: given.to_owned() })
    }
}

/// Where leads are written down.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LeadsFile {
    /// The file; made if it is not there.
    pub path: PathBuf,
    /// When it is synced.
    pub sync: SyncPolicy,
}

/// Why leads cannot be written down.
#[derive(Debug, thiserror::Error)]
pub enum LeadsFileError {
    /// The system refuses.
    #[error("--leads {}: {error}", .path.display())]
    Io {
        /// The file.
        path: PathBuf,
        /// What the system said.
        error: io::Error,
    },
    /// Another process has it open.
    #[error("--leads {}: another process writes this file; each dealer-sim needs its own", .path.display())]
    InUse {
        /// The file.
        path: PathBuf,
    },
    /// It is not what was written.
    #[error("--leads {}: {error}", .path.display())]
    Damaged {
        /// The file.
        path: PathBuf,
        /// Where and how.
        error: ReadError,
    },
}

/// What records are appended to.
pub trait Appendable {
    /// Writes bytes behind what is there.
    ///
    /// # Errors
    /// When not all of them could be written; some may have been.
    fn append(&mut self, bytes: &[u8]) -> io::Result<()>;

    /// Takes away what is behind so many bytes.
    ///
    /// # Errors
    /// As the system says.
    fn cut(&mut self, length: u64) -> io::Result<()>;

    /// Has everything reach the disk.
    fn sync(&mut self) -> impl Future<Output = io::Result<()>>;
}

impl Appendable for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.write_all(bytes)
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)?;
        self.seek(SeekFrom::Start(length)).map(drop)
    }

    async fn sync(&mut self) -> io::Result<()> {
        // The writer has a thread to itself: there is nobody to keep waiting.
        self.sync_data()
    }
}

/// Opens the file, has the dealers know the leads in it, and cuts off what was torn. The file, and how long it is.
fn open(file: &LeadsFile, world: &World, ledger: &Ledger) -> Result<(File, u64), LeadsFileError> {
    let path = &file.path;
    let io = |error| LeadsFileError::Io { path: path.clone(), error };
    let is_new = !path.exists();
    let mut opened =
        OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path).map_err(io)?;
    match opened.try_lock() {
        Ok(()) => {}
        Err(TryLockError::WouldBlock) => return Err(LeadsFileError::InUse { path: path.clone() }),
        // A file system without locks.
        Err(TryLockError::Error(error)) => tracing::warn!("{} cannot be locked: {error}", path.display()),
    }
    if is_new {
        sync_folder(path).map_err(io)?;
    }
    let mut reader = Reader::new(BufReader::with_capacity(1 << 16, &opened));
    let torn = recover(&mut reader, world, ledger).map_err(|error| match error {
        ReadError::Io(error) => io(error),
        error => LeadsFileError::Damaged { path: path.clone(), error },
    })?;
    let whole = reader.whole();
    if let Some(Torn { at, bytes }) = torn {
        tracing::warn!(
            "{}: the last record was torn: {bytes} bytes from byte {at} on are cut off",
            path.display()
        );
    }
    opened.cut(whole).map_err(io)?;
    Ok((opened, whole))
}

/// Opens the file, has the dealers know what is in it, and starts its writer.
pub(super) fn start(
    file: &LeadsFile,
    world: &World,
    ledger: &Arc<Ledger>,
) -> Result<JoinHandle<()>, StartError> {
    let (mut opened, length) = open(file, world, ledger)?;
    let (ledger, policy) = (ledger.clone(), file.sync);
    let runtime = super::runtime()?;
    let writer = std::thread::Builder::new().name("leads".to_owned());
    Ok(writer.spawn(move || runtime.block_on(keep(&ledger, &mut opened, length, policy)))?)
}

/// Has the dealers know what was recorded.
///
/// # Errors
/// [`ReadError`]
pub fn recover(
    reader: &mut Reader<impl io::BufRead>,
    world: &World,
    ledger: &Ledger,
) -> Result<Option<Torn>, ReadError> {
    while let Some(record) = reader.next_record()? {
        if !world.recover(&record) {
            ledger.counts.passed_over.fetch_add(1, Ordering::Relaxed);
        }
    }
    ledger.go_on_after(reader.read());
    ledger.counts.recovered.store(world.recovered(), Ordering::Relaxed);
    ledger.counts.torn_bytes.store(reader.torn().map_or(0, |torn| torn.bytes), Ordering::Relaxed);
    Ok(reader.torn())
}

/// A file that was just made is in its folder only once the folder is on the disk.
fn sync_folder(path: &Path) -> io::Result<()> {
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    if cfg!(unix) { File::open(folder)?.sync_all() } else { Ok(()) }
}

/// Writes what is entered, until the ledger is closed and nothing waits. `length` is that of the file.
pub async fn keep(ledger: &Ledger, file: &mut impl Appendable, mut length: u64, policy: SyncPolicy) {
    // The process before may have been killed between writing and syncing: nobody hears of a lead that is not on the disk.
    while policy == SyncPolicy::Always
        && let Err(error) = file.sync().await
    {
        tracing::error!("no lead is taken: the leads file cannot be synced: {error}");
        ledger.fail();
        if ledger.is_closed() {
            return;
        }
        tokio::time::sleep(TRY_AGAIN_AFTER).await;
    }
    ledger.settle_known();
    let mut batch = Vec::new();
    let mut unsynced: Option<Instant> = None;
    loop {
        let due = match (policy, unsynced) {
            (SyncPolicy::Interval(interval), Some(since)) => Some(since + interval),
            _ => None,
        };
        let last = tokio::select! {
            // In this order, so that a simulated run repeats.
            biased;
            last = ledger.next_batch(&mut batch) => last,
            () = until(due) => {
                unsynced = None;
                sync(ledger, file).await;
                continue;
            }
        };
        let Some(last) = last else { break };
        let mut written = write(ledger, file, &batch, policy).await;
        while let Err(error) = written {
            tracing::error!("no lead is taken: the leads file cannot be written: {error}");
            ledger.fail();
            if ledger.is_closed() {
                return;
            }
            tokio::time::sleep(TRY_AGAIN_AFTER).await;
            // Some of it may be there. After a sync that failed nobody knows what is on the disk: all of it is written again.
            written = match file.cut(length) {
                Ok(()) => write(ledger, file, &batch, policy).await,
                Err(error) => Err(error),
            };
        }
        length += batch.len() as u64;
        batch.clear();
        unsynced = unsynced.or_else(|| Some(Instant::now()));
        ledger.settle(last);
    }
    if policy != SyncPolicy::Always && unsynced.is_some() {
        sync(ledger, file).await;
    }
}

async fn write(
    ledger: &Ledger,
    file: &mut impl Appendable,
    batch: &[u8],
    policy: SyncPolicy,
) -> io::Result<()> {
    file.append(batch)?;
    if policy == SyncPolicy::Always {
        file.sync().await?;
        ledger.counts.synced.fetch_add(1, Ordering::Relaxed);
    }
    Ok(())
}

/// Syncs what is acknowledged already: a failure can only be told.
async fn sync(ledger: &Ledger, file: &mut impl Appendable) {
    match file.sync().await {
        Ok(()) => _ = ledger.counts.synced.fetch_add(1, Ordering::Relaxed),
        Err(error) => {
            ledger.counts.failed.fetch_add(1, Ordering::Relaxed);
            tracing::error!("the leads file cannot be synced: {error}");
        }
    }
}

async fn until(due: Option<Instant>) {
    match due {
        Some(due) => tokio::time::sleep_until(due).await,
        None => std::future::pending().await,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ledger::Entry;

    #[test]
    fn a_policy_is_read_or_refused() {
        assert_eq!("always".parse(), Ok(SyncPolicy::Always));
        assert_eq!("never".parse(), Ok(SyncPolicy::Never));
        assert_eq!("interval=250ms".parse(), Ok(SyncPolicy::Interval(Duration::from_millis(250))));
        for wrong in ["", "sometimes", "interval", "interval=", "interval=0", "interval=5"] {
            let error = wrong.parse::<SyncPolicy>().unwrap_err().to_string();
            assert!(error.contains("use always, never or interval="), "{error}");
        }
    }

    /// A file whose writes fail as told: of each, how many bytes it takes all the same.
    #[derive(Default)]
    struct Moody {
        bytes: Vec<u8>,
        failures: Vec<usize>,
        fails_sync: bool,
    }

    impl Appendable for Moody {
        fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
            match self.failures.pop() {
                Some(taken) => {
                    self.bytes.extend_from_slice(&bytes[..taken]);
                    Err(io::ErrorKind::StorageFull.into())
                }
                None => {
                    self.bytes.extend_from_slice(bytes);
                    Ok(())
                }
            }
        }

        fn cut(&mut self, length: u64) -> io::Result<()> {
            self.bytes.truncate(length as usize);
            Ok(())
        }

        async fn sync(&mut self) -> io::Result<()> {
            if std::mem::take(&mut self.fails_sync) { Err(io::ErrorKind::Other.into()) } else { Ok(()) }
        }
    }

    #[tokio::test(start_paused = true)]
    async fn what_fails_is_written_once_and_whole_when_it_can_be() {
        let ledger = Ledger::default();
        let first = ledger.enter("d", &Entry::Reset);
        let mut file = Moody { failures: vec![9, 0], fails_sync: true, ..Moody::default() };
        let writing = keep(&ledger, &mut file, 0, SyncPolicy::Always);
        let asking = async {
            assert!(ledger.settled(first).await.is_err());
            assert!(!ledger.is_open());
            // Two attempts and a sync that failed: a second apart.
            tokio::time::sleep(TRY_AGAIN_AFTER * 4).await;
            assert!(ledger.is_open());
            let second = ledger.enter("d", &Entry::Reset);
            ledger.settled(first).await.unwrap();
            ledger.settled(second).await.unwrap();
            ledger.close();
        };
        tokio::join!(writing, asking);
        let mut reader = Reader::new(&file.bytes[..]);
        while reader.next_record().unwrap().is_some() {}
        assert_eq!((reader.read(), reader.torn()), (2, None));
        let counts = &ledger.counts;
        let count = |count: &std::sync::atomic::AtomicU64| count.load(Ordering::Relaxed);
        assert_eq!((count(&counts.failed), count(&counts.synced), count(&counts.written)), (3, 2, 2));
    }

    #[tokio::test(start_paused = true)]
    async fn an_interval_syncs_what_is_acknowledged_and_no_more_often() {
        let ledger = Ledger::default();
        let mut file = Moody::default();
        let writing = keep(&ledger, &mut file, 0, SyncPolicy::Interval(Duration::from_secs(10)));
        let asking = async {
            let begun = Instant::now();
            for _ in 0..25 {
                let ticket = ledger.enter("d", &Entry::Reset);
                ledger.settled(ticket).await.unwrap();
                tokio::time::sleep(Duration::from_secs(1)).await;
            }
            assert!(begun.elapsed() < Duration::from_secs(26), "nobody waits for a sync");
            tokio::time::sleep(Duration::from_secs(60)).await;
            assert_eq!(ledger.counts.synced.load(Ordering::Relaxed), 3);
            ledger.close();
        };
        tokio::join!(writing, asking);
        assert_eq!(ledger.counts.synced.load(Ordering::Relaxed), 3, "nothing came since");
    }
}
