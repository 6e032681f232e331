//! TLS to PostgreSQL: whom to trust, and the handshake within the server's own protocol.

use std::future::Future;
use std::io;
use std::path::PathBuf;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_platform_verifier::Verifier;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_rustls::TlsConnector;

/// Whose certificate is good enough.
#[derive(Debug, Clone)]
pub(crate) enum Trust {
    /// Anyone's: what is sent is hidden from who only listens.
    Anyone,
    /// One that the system trusts, for the host's name.
    System,
    /// One that these certificates vouch for, for the host's name.
    File(PathBuf),
}

/// Makes connections of TLS.
#[derive(Clone)]
pub(crate) struct Tls {
    config: Arc<ClientConfig>,
    trust: Trust,
}

impl Tls {
    /// With this trust.
    ///
    /// # Errors
    /// The certificates can't be read, or the system has none.
    pub(crate) fn new(trust: &Trust) -> Result<Self, String> {
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()
            .map_err(|error| error.to_string())?;
        let config = match trust {
            Trust::Anyone => {
                let verifier = Arc::new(Anyone(provider));
                builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth()
            }
            Trust::System => {
                let verifier = Verifier::new(provider).map_err(|error| error.to_string())?;
                builder.dangerous().with_custom_certificate_verifier(Arc::new(verifier)).with_no_client_auth()
            }
            Trust::File(file) => {
                let told = |what: String| format!("sslrootcert {}: {what}", file.display());
                let mut roots = RootCertStore::empty();
                for found in CertificateDer::pem_file_iter(file).map_err(|error| told(error.to_string()))? {
                    let certificate = found.map_err(|error| told(error.to_string()))?;
                    roots.add(certificate).map_err(|error| told(error.to_string()))?;
                }
                if roots.is_empty() {
                    return Err(told("there is no certificate in it".to_owned()));
                }
                builder.with_root_certificates(roots).with_no_client_auth()
            }
        };
        Ok(Self { config: Arc::new(config), trust: trust.clone() })
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> MakeTlsConnect<S> for Tls {
    type Stream = Stream<S>;
    type TlsConnect = Handshake;
    type Error = std::convert::Infallible;

    fn make_tls_connect(&mut self, domain: &str) -> Result<Handshake, Self::Error> {
        // Asked for each connection, also where none of TLS is wanted: a socket in the file system has no name.
        let name = ServerName::try_from(domain).map(|name| name.to_owned()).ok();
        Ok(Handshake { connector: TlsConnector::from(Arc::clone(&self.config)), name, trust: self.trust.clone() })
    }
}

/// A handshake that is to come.
pub(crate) struct Handshake {
    connector: TlsConnector,
    name: Option<ServerName<'static>>,
    trust: Trust,
}

/// Why a handshake failed, as one who set the server up can use it.
fn told(error: io::Error, name: &ServerName<'_>, trust: &Trust) -> io::Error {
    let Some(rustls::Error::InvalidCertificate(why)) =
        error.get_ref().and_then(|inner| inner.downcast_ref::<rustls::Error>())
    else {
        return error;
    };
    let why = match why {
        // The second: an authority of the same name, with another key.
        CertificateError::UnknownIssuer | CertificateError::BadSignature => match trust {
            Trust::File(file) => format!("nothing in {} vouches for the server's certificate", file.display()),
            Trust::System | Trust::Anyone => {
                "nothing that the system trusts vouches for the server's certificate; name a file that does with sslrootcert"
                    .to_owned()
            }
        },
        CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
            format!("the server's certificate is not for the name {}", name.to_str())
        }
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "the server's certificate has expired".to_owned()
        }
        other => format!("the server's certificate is not good: {other}"),
    };
    io::Error::new(error.kind(), why)
}

impl<S: AsyncRead + AsyncWrite + Unpin + Send + 'static> TlsConnect<S> for Handshake {
    type Stream = Stream<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Stream<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        let Self { connector, name, trust } = self;
        Box::pin(async move {
            let name = name.ok_or_else(|| io::Error::other("the host has no name that a certificate could be for"))?;
            let stream = connector.connect(name.clone(), stream).await.map_err(|error| told(error, &name, &trust))?;
            Ok(Stream(Box::new(stream)))
        })
    }
}

/// A connection of TLS.
pub(crate) struct Stream<S>(Box<tokio_rustls::client::TlsStream<S>>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for Stream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for Stream<S> {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for Stream<S> {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, buffer: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buffer)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// Takes every certificate whose owner proves that it is theirs: what `sslmode=require` means to libpq as well.
#[derive(Debug)]
struct Anyone(Arc<CryptoProvider>);

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _: &CertificateDer<'_>,
        _: &[CertificateDer<'_>],
        _: &ServerName<'_>,
        _: &[u8],
        _: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, certificate, signed, &self.0.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.0.signature_verification_algorithms.supported_schemes()
    }
}
