//! A car dealer that does not exist: speaks the Auto Agent Protocol (AAP) over A2A 1.0 JSON-RPC, serves a synthetic
//! inventory of any size, and does both exactly.
//!
//! In a test, [`Dealer::builder`] gives a dealer on a free loopback port that stops when it is dropped:
//!
//! ```
//! # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
//! use dealer_sim::Dealer;
//! let dealer = Dealer::builder().seed(7).vehicles(40).start().await?;
//! assert!(dealer.url().starts_with("http://127.0.0.1:"));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! # })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

pub mod admin;
mod builder;
pub mod cli;
pub mod dealer;
pub mod dispatch;
pub mod document;
pub mod faults;
pub mod inventory;
pub mod journal;
pub mod protocol;
pub mod run;
pub mod server;
mod spread;
pub mod stable;
pub mod timer;
pub mod world;

pub use builder::{BuildError, Dealer, DealerBuilder, RunningDealer};
