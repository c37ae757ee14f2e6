//! The token of a run: asked for before anything else, kept valid beside it.

use std::cell::Cell;
use std::convert::Infallible;
use std::time::Duration;

use crate::envelope::Token;
use crate::oauth::{Authority, OauthError};
use crate::pacer::Clock;
use crate::progress::tell;
use crate::run::RunError;
use crate::settings::Settings;
use crate::signals::Signals;
use crate::units::nanos;

/// Between two attempts at renewing a token.
const PAUSE: Duration = Duration::from_secs(5);

/// A token and who renews it.
pub(crate) struct Authorized {
    pub(crate) token: Token,
    authority: Authority,
    clock: Clock,
    /// When to renew it, on that clock.
    due: Cell<u64>,
}

/// Asks for a token, if the user wants one. A signal ends the waiting for it.
pub(crate) async fn authorize(
    settings: &Settings,
    signals: &mut Signals,
) -> Result<Option<Authorized>, RunError> {
    let Some(grant) = settings.grant.clone() else { return Ok(None) };
    let token = Token::default();
    let asked = async {
        let authority = Authority::prepare(grant, &settings.options).await?;
        let renew_after = authority.renew(&token).await?;
        Ok::<_, OauthError>((authority, renew_after))
    };
    let (authority, renew_after) = tokio::select! {
        asked = asked => asked.map_err(|error| match error {
            OauthError::Prepare { ref source, .. } if source.is_usage() => RunError::usage(error),
            other => RunError::failed(other),
        })?,
        signal = signals.next() => return Err(RunError::Aborted(signal)),
    };
    let clock = Clock::starting_in(Duration::ZERO);
    Ok(Some(Authorized { token, authority, clock, due: Cell::new(nanos(renew_after)) }))
}

impl Authorized {
    /// Renews the token before it expires, as long as this is waited for; the old one is used until that works.
    pub(crate) async fn keep_renewed(&self) -> Infallible {
        loop {
            self.clock.sleep_until(self.due.get()).await;
            let wait = match self.authority.renew(&self.token).await {
                Ok(wait) => wait.max(Duration::from_secs(1)),
                Err(error) => {
                    tell(&format!("dealer-loadgen: {error}; asking again in {} s", PAUSE.as_secs()));
                    PAUSE
                }
            };
            self.due.set(self.clock.now().saturating_add(nanos(wait)));
        }
    }
}
