//! The dealer's stock in force: that of the start, moved on by the market to the business clock's day, with the edits that
//! were made from outside on top. Readers take the stock once for each call and see all of a change or nothing of it; a new
//! stock is made beside the old one, never in it.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use arc_swap::{ArcSwap, Guard};
use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use crate::inventory::{
    ChangeError, GenerateError, ImportDefaults, Inventory, Lookup, Profile, VehicleFault, merge_patches,
};

/// Edits that are remembered, so that they stay when the market moves on.
pub const MAX_EDITS: usize = 10_000;
/// Bytes of what they say.
pub const MAX_EDIT_BYTES: usize = 16 << 20;

/// How often calls that still read an old stock are let go first.
const MOST_YIELDS: u32 = 10_000;

/// Why the stock was not changed.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EditError {
    /// There is no such vehicle.
    #[error("no vehicle has this VIN")]
    Unknown,
    /// What was given is wrong, or another vehicle is in the way.
    #[error(transparent)]
    Change(#[from] ChangeError),
    /// Too much was changed already.
    #[error(
        "the stock was changed {MAX_EDITS} times or by {} MiB already, which is as much as is remembered; POST /reset takes it all back",
        MAX_EDIT_BYTES >> 20
    )]
    TooMany,
}

impl EditError {
    /// What is wrong with the vehicle that was given.
    pub fn faults(&self) -> &[VehicleFault] {
        match self {
            EditError::Change(ChangeError::Invalid(faults)) => faults,
            _ => &[],
        }
    }
}

/// A change that was made from outside.
#[derive(Debug, Clone, Copy)]
enum Change {
    /// The vehicle of a VIN is changed as the text says (RFC 7396).
    Patch,
    /// The vehicle that the text is comes in.
    Add,
    /// The vehicle of a VIN goes.
    Remove,
}

#[derive(Debug, Clone)]
struct Edit {
    change: Change,
    /// The VIN; empty for a vehicle that comes in.
    vin: String,
    /// What is changed or comes in; empty for one that goes.
    text: String,
    at: Timestamp,
}

/// What edits and the market share.
#[derive(Debug)]
struct Books {
    edits: Vec<Edit>,
    bytes: usize,
    /// The day up to which the market has moved.
    day: Date,
}

/// A dealer's stock.
#[derive(Debug)]
pub struct Lot {
    start: Arc<Inventory>,
    opened: Date,
    seed: u64,
    dealer_id: String,
    stock: ArcSwap<Inventory>,
    books: Mutex<Books>,
    /// Edits made since the start or the last reset.
    edited: AtomicU64,
    /// Edits refused, since too much was changed already.
    refused: AtomicU64,
}

/// The UTC day of an instant.
pub(crate) fn day_of(instant: Timestamp) -> Date {
    instant.to_zoned_datetime(TimeZone::UTC).date()
}

impl Lot {
    /// The stock of the day on which the dealer opens.
    pub fn new(start: Arc<Inventory>, opened: Date, seed: u64, dealer_id: String) -> Lot {
        Lot {
            stock: ArcSwap::new(start.clone()),
            start,
            opened,
            seed,
            dealer_id,
            books: Mutex::new(Books { edits: Vec::new(), bytes: 0, day: opened }),
            edited: AtomicU64::new(0),
            refused: AtomicU64::new(0),
        }
    }

    /// The stock in force. A call that looks at it twice must take it once.
    pub fn stock(&self) -> Guard<Arc<Inventory>> {
        self.stock.load()
    }

    /// The stock of the start, before the market and any edit.
    pub fn start(&self) -> &Arc<Inventory> {
        &self.start
    }

    /// Edits made and edits refused since the start or the last reset.
    pub fn counts(&self) -> [u64; 2] {
        [self.edited.load(Ordering::Relaxed), self.refused.load(Ordering::Relaxed)]
    }

    fn books(&self) -> MutexGuard<'_, Books> {
        self.books.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether the market has something to do by `now`. An edit or the market being at work counts as no.
    pub fn is_due(&self, now: Timestamp) -> bool {
        self.books.try_lock().is_ok_and(|books| day_of(now) > books.day)
    }

    /// Moves the market on to the day of `now`. Takes some time for a large stock: not for a thread that serves.
    ///
    /// # Errors
    /// As [`Inventory::generate`], for what comes in.
    pub fn catch_up(&self, profile: &Profile, now: Timestamp) -> Result<(), GenerateError> {
        let mut books = self.books();
        let day = day_of(now);
        if day <= books.day {
            return Ok(());
        }
        if Inventory::looked_through(self.opened, day) == Inventory::looked_through(self.opened, books.day) {
            // A weekend.
            books.day = day;
            return Ok(());
        }
        let mut stock = self.start.after(profile, self.seed, self.opened, day)?;
        if !books.edits.is_empty() {
            self.edit_again(&books.edits, day, &mut stock);
        }
        let old = self.stock.swap(Arc::new(stock));
        books.day = day;
        // Who holds it last gives its memory back, which takes a while where it is large. That is not to be a call that is being
        // answered, and those that began with it end soon.
        for _ in 0..MOST_YIELDS {
            if Arc::strong_count(&old) == 1 {
                break;
            }
            std::thread::yield_now();
        }
        Ok(())
    }

    /// Makes all edits on a stock that the market has moved on.
    fn edit_again(&self, edits: &[Edit], day: Date, stock: &mut Inventory) {
        let looked_through = Inventory::looked_through(self.opened, day);
        for edit in edits {
            // The market may have let the vehicle go; then there is nothing left to change.
            _ = self.make(edit, looked_through, stock);
        }
        stock.settle(edits.iter().any(|edit| matches!(edit.change, Change::Add)));
    }

    /// Makes an edit on a stock. A listing that it leaves was looked through then at the latest.
    fn make(&self, edit: &Edit, looked_through: u32, stock: &mut Inventory) -> Result<(), EditError> {
        let row = || match stock.find(Some(&edit.vin), None, None) {
            Lookup::Unknown => Err(EditError::Unknown),
            Lookup::Listed(row) | Lookup::Sold(row) => Ok(row),
        };
        match edit.change {
            Change::Patch => {
                let row = row()?;
                stock.patch(row, &edit.text, edit.at)?;
                stock.look_through(row, looked_through);
            }
            Change::Add => {
                let defaults = ImportDefaults { dealer_id: self.dealer_id.clone(), updated_at: edit.at };
                let row = stock.add(&edit.text, &defaults)?;
                stock.look_through(row, looked_through);
            }
            Change::Remove => {
                let row = row()?;
                stock.remove(row);
            }
        }
        Ok(())
    }

    fn edit(&self, edit: Edit) -> Result<Arc<Inventory>, EditError> {
        let mut books = self.books();
        let mut stock = Inventory::clone(&self.stock.load());
        self.make(&edit, 0, &mut stock)?;
        let has_grown = matches!(edit.change, Change::Add);
        if !books.note(edit)? {
            self.refused.fetch_add(1, Ordering::Relaxed);
            return Err(EditError::TooMany);
        }
        stock.settle(has_grown);
        let stock = Arc::new(stock);
        self.stock.store(stock.clone());
        self.edited.fetch_add(1, Ordering::Relaxed);
        Ok(stock)
    }

    /// Changes the vehicle of a VIN as JSON Merge Patch (RFC 7396) does; answers the stock in which it is changed.
    ///
    /// # Errors
    /// [`EditError`], with everything that is wrong with the patch.
    pub fn patch(&self, vin: &str, patch: &str, now: Timestamp) -> Result<Arc<Inventory>, EditError> {
        self.edit(Edit { change: Change::Patch, vin: vin.to_owned(), text: patch.to_owned(), at: now })
    }

    /// Takes in a vehicle in the form of a stock file; answers the stock that has it.
    ///
    /// # Errors
    /// [`EditError`], with everything that is wrong with the vehicle.
    pub fn add(&self, vehicle: &str, now: Timestamp) -> Result<Arc<Inventory>, EditError> {
        self.edit(Edit { change: Change::Add, vin: String::new(), text: vehicle.to_owned(), at: now })
    }

    /// Forgets the vehicle of a VIN.
    ///
    /// # Errors
    /// When there is none.
    pub fn remove(&self, vin: &str, now: Timestamp) -> Result<(), EditError> {
        self.edit(Edit { change: Change::Remove, vin: vin.to_owned(), text: String::new(), at: now })
            .map(drop)
    }
}

impl Books {
    /// Remembers an edit that was made. Patches of one vehicle that follow one another are one. Says whether there was room.
    fn note(&mut self, edit: Edit) -> Result<bool, EditError> {
        let earlier = match edit.change {
            Change::Patch => self.edits.iter_mut().rev().find(|earlier| earlier.vin == edit.vin),
            Change::Add | Change::Remove => None,
        };
        if let Some(earlier) = earlier
            && matches!(earlier.change, Change::Patch)
        {
            let text = merge_patches(&earlier.text, &edit.text)?;
            let bytes = self.bytes + text.len() - earlier.text.len();
            if bytes > MAX_EDIT_BYTES {
                return Ok(false);
            }
            (earlier.text, earlier.at, self.bytes) = (text, edit.at, bytes);
            return Ok(true);
        }
        let bytes = self.bytes + edit.text.len();
        if self.edits.len() >= MAX_EDITS || bytes > MAX_EDIT_BYTES {
            return Ok(false);
        }
        self.bytes = bytes;
        self.edits.push(edit);
        Ok(true)
    }
}
