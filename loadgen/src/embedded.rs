//! The simulator inside this process, for runs without an endpoint.

use dealer_sim::protocol::Contract;

use crate::endpoint::Endpoint;

/// A simulator that runs in this process and stops when dropped.
#[derive(Debug)]
pub(crate) struct Embedded {
    /// How to speak to it.
    pub(crate) endpoint: Endpoint,
}

/// The simulator could not be started.
#[derive(Debug, thiserror::Error)]
#[error("the simulator inside this process cannot be started: {0}; give another dealer with --endpoint")]
pub(crate) struct EmbeddedError(String);

impl Embedded {
    /// Starts one on a free loopback port.
    pub(crate) async fn start(_seed: u64, _contract: Contract) -> Result<Embedded, EmbeddedError> {
        Err(EmbeddedError("it is not part of this build".to_owned()))
    }
}
