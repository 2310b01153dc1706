//! The certificate and the key of a server.

use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::pem::PemObject as _;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// Who a server is to clients that connect with TLS.
#[derive(Clone)]
pub struct TlsIdentity {
    pub(super) acceptor: TlsAcceptor,
}

/// Why a certificate or a key cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("cannot use {}: {reason}", path.display())]
pub struct TlsError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it, and what to do.
    pub reason: String,
}

impl TlsIdentity {
    /// Reads certificates, the server's own first, and its private key from PEM files.
    pub fn load(cert: &Path, key: &Path) -> Result<Self, TlsError> {
        let wrong = |path: &Path, reason: String| TlsError { path: path.to_owned(), reason };
        let unread = |path: &Path, what: &str, error: &dyn fmt::Display| {
            wrong(path, format!("{error}; it should be {what} in PEM"))
        };
        let chain = CertificateDer::pem_file_iter(cert)
            .and_then(Iterator::collect::<Result<Vec<_>, _>>)
            .map_err(|error| unread(cert, "the server's certificate", &error))?;
        if chain.is_empty() {
            return Err(wrong(cert, "no certificate is in it".to_owned()));
        }
        let private = PrivateKeyDer::from_pem_file(key)
            .map_err(|error| unread(key, "the certificate's private key", &error))?;
        let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map(|config| config.with_no_client_auth().with_single_cert(chain, private))
            .and_then(|config| config)
            .map_err(|error| wrong(key, format!("{error}; is it the key of the certificate?")))?;
        Ok(Self { acceptor: TlsAcceptor::from(Arc::new(config)) })
    }
}

impl fmt::Debug for TlsIdentity {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("TlsIdentity").finish_non_exhaustive()
    }
}
