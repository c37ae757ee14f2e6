//! The token of a run: asked for before anything else, kept valid beside it.

use std::convert::Infallible;
use std::time::Duration;

use crate::envelope::Token;
use crate::oauth::{Authority, OauthError};
use crate::progress::tell;
use crate::run::RunError;
use crate::settings::Settings;
use crate::signals::Signals;

/// A token and who renews it.
pub(crate) struct Authorized {
    pub(crate) token: Token,
    authority: Authority,
    renew_after: Duration,
}

/// Asks for a token, if the user wants one. A signal ends the waiting for it.
pub(crate) async fn authorize(
    settings: &mut Settings,
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
    Ok(Some(Authorized { token, authority, renew_after }))
}

impl Authorized {
    /// Renews the token as long as it is waited for.
    pub(crate) async fn keep_renewed(self) -> Infallible {
        let Authorized { token, authority, renew_after } = self;
        authority.keep(&token, renew_after, |text| tell(&format!("dealer-loadgen: {text}"))).await
    }
}
