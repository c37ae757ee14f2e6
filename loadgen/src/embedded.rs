//! The simulator inside this process, for runs without an endpoint.

use dealer_sim::protocol::Contract;
use dealer_sim::{BuildError, Dealer, RunningDealer};

use crate::endpoint::{self, Endpoint, EndpointError};
use crate::transport::Options;

/// A simulator that runs in this process and stops when dropped.
#[derive(Debug)]
pub(crate) struct Embedded {
    /// How to speak to it: read off its card, as any dealer's.
    pub(crate) endpoint: Endpoint,
    _dealer: RunningDealer,
}

/// The simulator could not be started.
#[derive(Debug, thiserror::Error)]
#[error("the simulator inside this process cannot be started: {0}; give another dealer with --endpoint")]
pub(crate) struct EmbeddedError(String);

impl From<BuildError> for EmbeddedError {
    fn from(error: BuildError) -> EmbeddedError {
        EmbeddedError(error.to_string())
    }
}

impl From<EndpointError> for EmbeddedError {
    fn from(error: EndpointError) -> EmbeddedError {
        EmbeddedError(error.to_string())
    }
}

impl Embedded {
    /// Starts one on a free loopback port.
    pub(crate) async fn start(
        seed: u64,
        contract: Contract,
        options: &Options,
    ) -> Result<Embedded, EmbeddedError> {
        let dealer = Dealer::builder().seed(seed).contract(contract).start().await?;
        let found = endpoint::discover(dealer.base_url(), options, Some(contract)).await?;
        Ok(Embedded { endpoint: Endpoint { is_embedded: true, ..found }, _dealer: dealer })
    }
}
