//! The dealer's side of TLS: its certificate, and which clients it believes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig};
use tokio_rustls::TlsAcceptor;

/// What is spoken over TLS, the preferred first (RFC 7301).
const ALPN: [&[u8]; 2] = [b"h2", b"http/1.1"];

/// How a listener speaks TLS.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsOptions {
    /// Its own certificate.
    pub certificate: Certificate,
    /// A PEM file of the authorities that vouch for clients; without one no client is asked for a certificate.
    pub client_ca: Option<PathBuf>,
    /// Whether a client may come without a certificate all the same. One that shows a certificate must show a good one.
    pub client_optional: bool,
}

/// Where the dealer's certificate comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Certificate {
    /// PEM files of the certificate, with those between it and its authority, and of its key.
    Files {
        /// The certificates.
        cert: PathBuf,
        /// The key.
        key: PathBuf,
    },
    /// Made at the start, for localhost, the loopback addresses and the host of the dealer's URL; the key is written nowhere.
    SelfSigned,
}

/// Why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The files of the certificate cannot be read or do not belong together.
    #[error("--tls-cert {cert} and --tls-key {key}: {reason}")]
    Identity {
        /// The file with the certificates.
        cert: PathBuf,
        /// The file with the key.
        key: PathBuf,
        /// What is wrong with them.
        reason: String,
    },
    /// The file of the authorities cannot be read or holds none.
    #[error("--client-ca {path}: {reason}; give a PEM file with the certificate of the authority")]
    ClientAuthority {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A certificate could not be made.
    #[error("--tls-self-signed: {0}")]
    SelfSigned(#[from] rcgen::Error),
    /// The library refused.
    #[error("TLS cannot be set up: {0}")]
    Setup(#[from] rustls::Error),
}

/// TLS, ready to be spoken.
pub(crate) struct Tls {
    pub(super) acceptor: TlsAcceptor,
    /// A certificate that was made at the start, as PEM: whoever is to believe it has it from here alone.
    pub(crate) made: Option<String>,
}

impl std::fmt::Debug for Tls {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Tls").finish_non_exhaustive()
    }
}

impl Tls {
    /// Reads or makes what is needed. `host` is the name or address in the dealer's URL.
    pub(super) fn new(options: &TlsOptions, host: &str) -> Result<Tls, TlsError> {
        let ((chain, key), made) = match &options.certificate {
            Certificate::SelfSigned => {
                let (identity, pem) = self_signed(host)?;
                (identity, Some(pem))
            }
            Certificate::Files { cert, key } => (read_identity(cert, key)?, None),
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder =
            ServerConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions()?;
        let builder = match &options.client_ca {
            None => builder.with_no_client_auth(),
            Some(path) => {
                builder.with_client_cert_verifier(client_verifier(path, options.client_optional, provider)?)
            }
        };
        let mut config =
            builder.with_single_cert(chain, key).map_err(|error| match &options.certificate {
                Certificate::Files { cert, key } => {
                    TlsError::Identity { cert: cert.clone(), key: key.clone(), reason: error.to_string() }
                }
                Certificate::SelfSigned => TlsError::Setup(error),
            })?;
        config.alpn_protocols = ALPN.map(<[u8]>::to_vec).to_vec();
        Ok(Tls { acceptor: TlsAcceptor::from(Arc::new(config)), made })
    }
}

type Identity = (Vec<CertificateDer<'static>>, PrivateKeyDer<'static>);

/// A certificate of one's own, and the same as PEM.
fn self_signed(host: &str) -> Result<(Identity, String), TlsError> {
    let mut names = vec!["localhost".to_owned(), "127.0.0.1".to_owned(), "::1".to_owned()];
    if !names.iter().any(|name| name == host) {
        names.push(host.to_owned());
    }
    let made = rcgen::generate_simple_self_signed(names)?;
    let key = PrivateKeyDer::try_from(made.signing_key.serialize_der())
        .map_err(|error| TlsError::Setup(rustls::Error::General(error.to_owned())))?;
    Ok(((vec![made.cert.der().clone()], key), made.cert.pem()))
}

fn read_identity(cert: &Path, key: &Path) -> Result<Identity, TlsError> {
    let fault = |reason| TlsError::Identity { cert: cert.to_owned(), key: key.to_owned(), reason };
    let chain = read_pem(cert).map_err(|error| fault(format!("the certificate: {error}")))?;
    if chain.is_empty() {
        return Err(fault("the first file holds no certificate".to_owned()));
    }
    let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| fault(format!("the key: {error}")))?;
    Ok((chain, secret))
}

fn client_verifier(
    path: &Path,
    is_optional: bool,
    provider: Arc<CryptoProvider>,
) -> Result<Arc<dyn ClientCertVerifier>, TlsError> {
    let fault = |reason: String| TlsError::ClientAuthority { path: path.to_owned(), reason };
    let mut roots = RootCertStore::empty();
    for certificate in read_pem(path).map_err(fault)? {
        roots.add(certificate).map_err(|error| fault(error.to_string()))?;
    }
    if roots.is_empty() {
        return Err(fault("holds no certificate".to_owned()));
    }
    let builder = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider);
    let builder = if is_optional { builder.allow_unauthenticated() } else { builder };
    builder.build().map_err(|error| fault(error.to_string()))
}

fn read_pem(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| error.to_string())
}
