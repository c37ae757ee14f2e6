//! The dealer over TLS and HTTP/2, as clients and attackers meet it: over real sockets, with a client of its own make.

#![allow(clippy::unwrap_used, clippy::panic, clippy::disallowed_methods)]

mod auth;
mod client;
mod http2;
mod tls;

use std::time::Duration;

use dealer_sim::dealer::clock::ClockMode;
use dealer_sim::{Dealer, DealerBuilder};

/// A dealer whose replies repeat.
fn frozen() -> DealerBuilder {
    let clock: ClockMode = "2026-01-05T12:00:00Z".parse().unwrap();
    Dealer::builder().vehicles(60).threads(1).clock(clock)
}

/// Runs a test that must not hang.
fn run(test: impl Future<Output = ()>) {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let ended = runtime.block_on(async { tokio::time::timeout(Duration::from_secs(60), test).await });
    ended.expect("the test hangs");
}
