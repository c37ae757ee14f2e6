//! The client's side of TLS: which certificates it believes.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use rustls::{ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};

/// TLS to one host.
#[derive(Debug, Clone)]
pub(super) struct Tls {
    pub(super) client: Arc<ClientConfig>,
    pub(super) name: ServerName<'static>,
}

/// Why TLS cannot be set up.
#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    /// The host cannot be in a certificate.
    #[error("{0:?} is no name that a certificate can hold")]
    Name(String),
    /// The file of --ca cannot be read or holds no certificate.
    #[error("--ca {path}: {reason}; give a PEM file with the certificate of the authority")]
    Authority {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The files of --cert and --key cannot be read or do not belong together.
    #[error("--cert {cert} and --key {key}: {reason}")]
    Identity {
        /// The file with the certificate.
        cert: PathBuf,
        /// The file with the key.
        key: PathBuf,
        /// What is wrong with them.
        reason: String,
    },
    /// No certificates of authorities were found on this machine.
    #[error("this machine has no list of certificate authorities where it is looked for; give one with --ca")]
    NoRoots,
    /// The library refused.
    #[error("TLS cannot be set up: {0}")]
    Setup(#[from] rustls::Error),
}

/// Where the usual systems keep the certificates that they believe.
const SYSTEM_ROOTS: [&str; 5] = [
    "/etc/ssl/certs/ca-certificates.crt",
    "/etc/pki/tls/certs/ca-bundle.crt",
    "/etc/ssl/ca-bundle.pem",
    "/etc/ssl/cert.pem",
    "/usr/local/share/certs/ca-root-nss.crt",
];

impl Tls {
    /// TLS to `host`: believing the authorities of `ca`, or those of this machine, or, if `insecure`, anyone. `identity` is
    /// the certificate shown to a server that asks for one, and its key. `protocol` is what is to be spoken (RFC 7301).
    pub(super) fn to(
        host: &str,
        ca: Option<&Path>,
        insecure: bool,
        identity: Option<&(PathBuf, PathBuf)>,
        protocol: &[u8],
    ) -> Result<Tls, TlsError> {
        let name = ServerName::try_from(host.to_owned()).map_err(|_| TlsError::Name(host.to_owned()))?;
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let builder = ClientConfig::builder_with_provider(Arc::clone(&provider))
            .with_safe_default_protocol_versions()?;
        let builder = if insecure {
            let anyone = Arc::new(Anyone { provider });
            builder.dangerous().with_custom_certificate_verifier(anyone)
        } else {
            builder.with_root_certificates(roots(ca)?)
        };
        let mut client = match identity {
            None => builder.with_no_client_auth(),
            Some((cert, key)) => {
                let fault =
                    |reason: String| TlsError::Identity { cert: cert.clone(), key: key.clone(), reason };
                let chain = read_pem(cert).map_err(|error| fault(format!("the certificate: {error}")))?;
                if chain.is_empty() {
                    return Err(fault("the first file holds no certificate".to_owned()));
                }
                let secret =
                    PrivateKeyDer::from_pem_file(key).map_err(|error| fault(format!("the key: {error}")))?;
                builder.with_client_auth_cert(chain, secret).map_err(|error| fault(error.to_string()))?
            }
        };
        client.alpn_protocols = vec![protocol.to_vec()];
        Ok(Tls { client: Arc::new(client), name })
    }
}

fn roots(ca: Option<&Path>) -> Result<RootCertStore, TlsError> {
    let mut store = RootCertStore::empty();
    if let Some(path) = ca {
        let fault = |reason: String| TlsError::Authority { path: path.to_owned(), reason };
        for certificate in read_pem(path).map_err(fault)? {
            store.add(certificate).map_err(|error| fault(error.to_string()))?;
        }
        if store.is_empty() {
            return Err(fault("holds no certificate".to_owned()));
        }
        return Ok(store);
    }
    // The variable that OpenSSL's users know comes first.
    let named = std::env::var_os("SSL_CERT_FILE").map(PathBuf::from);
    for path in named.into_iter().chain(SYSTEM_ROOTS.iter().map(PathBuf::from)) {
        if let Ok(certificates) = read_pem(&path) {
            // A system's list may hold a few that the library does not read; the rest still count.
            store.add_parsable_certificates(certificates);
            if !store.is_empty() {
                return Ok(store);
            }
        }
    }
    Err(TlsError::NoRoots)
}

fn read_pem(path: &Path) -> Result<Vec<CertificateDer<'static>>, String> {
    CertificateDer::pem_file_iter(path)
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| error.to_string())
}

/// Believes any certificate: `--insecure`, for test systems.
#[derive(Debug)]
struct Anyone {
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Anyone {
    fn verify_server_cert(
        &self,
        _end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        Ok(ServerCertVerified::assertion())
    }

    // The signatures are still checked: a peer that cannot speak TLS is not the same as one that nobody vouches for.
    fn verify_tls12_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls12_signature(message, certificate, signature, algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        certificate: &CertificateDer<'_>,
        signature: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        let algorithms = &self.provider.signature_verification_algorithms;
        rustls::crypto::verify_tls13_signature(message, certificate, signature, algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}
