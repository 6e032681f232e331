//! TLS as this crate speaks it: rustls with ring, and the certificate authorities that the machine trusts.

use std::sync::Arc;

use rustls::ClientConfig;
use rustls::crypto::CryptoProvider;
use rustls_platform_verifier::Verifier;

use crate::error::SetupError;

/// The configuration for a client. A server reached over plain http needs no authorities, so a machine without any
/// can still speak to one.
///
/// The provider goes in by hand: a library must not choose the provider of the whole process.
///
/// # Errors
/// When `encrypted` and the machine trusts nobody.
pub fn config(encrypted: bool) -> Result<ClientConfig, SetupError> {
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let tls = |error: rustls::Error| SetupError::Tls(error.to_string());
    let builder = |provider: Arc<CryptoProvider>| {
        ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().map_err(tls)
    };
    if !encrypted {
        return Ok(builder(provider)?.with_root_certificates(rustls::RootCertStore::empty()).with_no_client_auth());
    }
    let verifier = Verifier::new(provider.clone()).map_err(tls)?;
    Ok(builder(provider)?.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth())
}
