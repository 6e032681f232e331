//! Tokens: in the `Authorization` header alone, and every wrong one gets the same answer.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, header};
use chips_core::Who;
use chips_store::{Identity, StoreError, secret};

use crate::http::{ApiError, Peer, layers};
use crate::state::AppState;

/// The SHA-256 of a token: what its credential is looked up by, now and again while a stream is open.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Credential([u8; 32]);

impl Credential {
    /// The credential in these headers, if there is one with the form of a token.
    ///
    /// The checksum is tried before the store is asked: a misspelt token costs nothing, and says nothing about others.
    fn of(headers: &HeaderMap) -> Option<Self> {
        let mut values = headers.get_all(header::AUTHORIZATION).iter();
        let (value, None) = (values.next()?, values.next()) else { return None };
        let (scheme, token) = value.to_str().ok()?.split_once(' ')?;
        let token = token.trim_matches(' ');
        (scheme.eq_ignore_ascii_case("bearer") && secret::token_kind(token).is_some())
            .then(|| Self(secret::sha256(token)))
    }

    /// What only whoever has the token, and this server, know.
    pub(crate) const fn secret(&self) -> &[u8; 32] {
        &self.0
    }

    /// Whom the credential speaks for now.
    ///
    /// # Errors
    /// The store can't be read.
    pub async fn identity(self, state: &AppState) -> Result<Option<Identity>, StoreError> {
        state.store.authenticate(self.0).await
    }
}

/// Whoever sent a request with a good token.
#[derive(Debug, Clone)]
pub struct Caller {
    /// Whom the token speaks for, as of the request.
    pub identity: Identity,
    /// To look it up again.
    pub credential: Credential,
}

impl Caller {
    /// Whether the token is a harness's.
    pub fn is_harness(&self) -> bool {
        matches!(self.identity.sender.who, Who::Harness(_))
    }
}

impl FromRequestParts<AppState> for Caller {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, ApiError> {
        if let Some(credential) = Credential::of(&parts.headers)
            && let Some(identity) = credential.identity(state).await?
        {
            layers::speaks_for(&identity);
            return Ok(Self { identity, credential });
        }
        if let Some(peer) = parts.extensions.get::<Peer>() {
            let now = state.store.clock().now();
            state.token_failures.failed(peer.client, now).map_err(|wait| {
                tracing::info!(peer = %peer.client, "too many wrong tokens");
                ApiError::rate_limited(wait)
            })?;
        }
        Err(ApiError::unauthenticated())
    }
}
