//! The simulator inside this process, for runs without an endpoint.

use dealer_sim::journal::Limits;
use dealer_sim::protocol::{Binding, Contract};
use dealer_sim::{BuildError, Dealer, RunningDealer};

use crate::endpoint::{self, Endpoint, EndpointError};
use crate::transport::Options;

/// A simulator that runs in this process, on threads of its own, and stops when dropped.
#[derive(Debug)]
pub(crate) struct Embedded {
    /// How to speak to it.
    pub(crate) endpoint: Endpoint,
    dealer: RunningDealer,
}

/// The simulator could not be started.
#[derive(Debug, thiserror::Error)]
#[error("the simulator inside this process cannot be started: {0}; give another dealer with --endpoint")]
pub(crate) enum EmbeddedError {
    /// It could not be made.
    Build(#[from] BuildError),
    /// It does not answer.
    Endpoint(#[from] EndpointError),
}

impl EmbeddedError {
    /// Whether the user asked for what there is not.
    pub(crate) fn is_usage(&self) -> bool {
        matches!(self, EmbeddedError::Endpoint(EndpointError::NoDoor { .. }))
    }
}

impl Embedded {
    /// Starts one on a free loopback port and reads its card like any other's.
    pub(crate) async fn start(
        seed: u64,
        contract: Contract,
        options: &Options,
        binding: Binding,
    ) -> Result<Embedded, EmbeddedError> {
        // Nobody asks it what it was asked.
        let dealer = Dealer::builder().seed(seed).contract(contract).journal(Limits::OFF).start().await?;
        let found = endpoint::discover(&dealer.card_url(), options, Some(contract), binding).await?;
        Ok(Embedded { endpoint: Endpoint { is_embedded: true, ..found }, dealer })
    }

    /// The URL of its card.
    pub(crate) fn card_url(&self) -> String {
        self.dealer.card_url()
    }
}
