//! A disk: what is written may be lost until it is synced, and writing may fail.

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use dealer_sim::server::leads_file::Appendable;
use rand::{RngExt as _, SeedableRng as _};
use rand_chacha::ChaCha8Rng;

pub(crate) struct Disk {
    /// The file as processes see it.
    pub(crate) bytes: Vec<u8>,
    /// So much of it survives a power cut.
    synced: usize,
    /// Attempts that will fail.
    failures: u32,
    random: ChaCha8Rng,
}

impl Disk {
    pub(crate) fn new(seed: u64) -> Disk {
        Disk { bytes: Vec::new(), synced: 0, failures: 0, random: ChaCha8Rng::seed_from_u64(seed) }
    }

    /// The next attempts to write or sync fail.
    pub(crate) fn fail_next(&mut self, attempts: u32) {
        self.failures += attempts;
    }

    fn fails(&mut self) -> bool {
        let fails = self.failures > 0;
        self.failures = self.failures.saturating_sub(1);
        fails
    }

    /// Takes some of what was not synced, from any byte on.
    pub(crate) fn lose_power(&mut self) {
        let left = self.random.random_range(self.synced..=self.bytes.len());
        self.bytes.truncate(left);
        self.synced = left;
    }

    /// Takes away what is behind so many bytes, as recovery does.
    pub(crate) fn cut(&mut self, length: usize) {
        self.bytes.truncate(length);
        self.synced = self.synced.min(length);
    }
}

/// The file of one process.
pub(crate) struct File(pub(crate) Rc<RefCell<Disk>>);

impl Appendable for File {
    fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        let mut disk = self.0.borrow_mut();
        if disk.fails() {
            let taken = disk.random.random_range(0..bytes.len());
            disk.bytes.extend_from_slice(&bytes[..taken]);
            return Err(io::ErrorKind::StorageFull.into());
        }
        disk.bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.0.borrow_mut().cut(length as usize);
        Ok(())
    }

    async fn sync(&mut self) -> io::Result<()> {
        let (takes, length) = {
            let mut disk = self.0.borrow_mut();
            (disk.random.random_range(0..20), disk.bytes.len())
        };
        tokio::time::sleep(Duration::from_millis(takes)).await;
        let mut disk = self.0.borrow_mut();
        if disk.fails() {
            return Err(io::ErrorKind::Other.into());
        }
        disk.synced = length;
        Ok(())
    }
}
