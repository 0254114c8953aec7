//! TLS to vendors: the system's roots, or those that `SSL_CERT_FILE` names.

use std::fmt;
use std::io;
use std::sync::{Arc, OnceLock};

use rustls::pki_types::ServerName;
use rustls::{CertificateError, ClientConfig, RootCertStore};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use crate::io::Io;

impl Io for TlsStream<Box<dyn Io>> {}

/// Secures connections with TLS. The roots are read on first use.
#[derive(Default)]
pub(super) struct Tls {
    config: OnceLock<Result<Arc<ClientConfig>, String>>,
}

/// Reason why a connection is not secure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum TlsError {
    /// The peer did not prove its identity. A retry does not help.
    Untrusted(String),
    /// The handshake failed for another reason.
    Broken(String),
}

impl Tls {
    /// Verifies the peer and secures the connection.
    pub(super) async fn secure(
        &self,
        host: &str,
        io: Box<dyn Io>,
    ) -> Result<Box<dyn Io>, TlsError> {
        let config = self.config().await?;
        let name = ServerName::try_from(host.to_owned())
            .map_err(|_| TlsError::Untrusted(format!("no certificate can be for `{host}`")))?;
        let result = TlsConnector::from(config).connect(name, io).await;
        Ok(Box::new(result.map_err(|error| tls_error(&error))?))
    }

    async fn config(&self) -> Result<Arc<ClientConfig>, TlsError> {
        if self.config.get().is_none() {
            // The roots are files, perhaps hundreds.
            let result = tokio::task::spawn_blocking(read).await;
            let result = result.unwrap_or_else(|error| Err(error.to_string()));
            // Two concurrent first callers read the same.
            let _ = self.config.set(result);
        }
        match self.config.get() {
            Some(Ok(config)) => Ok(config.clone()),
            Some(Err(what)) => Err(TlsError::Untrusted(what.clone())),
            None => Err(TlsError::Broken("there are no settings for TLS".to_owned())),
        }
    }
}

fn read() -> Result<Arc<ClientConfig>, String> {
    let loaded = rustls_native_certs::load_native_certs();
    let mut roots = RootCertStore::empty();
    roots.add_parsable_certificates(loaded.certs);
    if roots.is_empty() {
        let why = loaded.errors.first().map(|error| format!(" ({error})"));
        return Err(format!(
            "there are no root certificates{}; install the system's, such as Debian's package ca-certificates, or name \
             a file of them in SSL_CERT_FILE",
            why.unwrap_or_default()
        ));
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let config = ClientConfig::builder_with_provider(provider)
        .with_safe_default_protocol_versions()
        .map_err(|error| error.to_string())?
        .with_root_certificates(roots)
        .with_no_client_auth();
    Ok(Arc::new(config))
}

fn tls_error(error: &io::Error) -> TlsError {
    let inner = error.get_ref().and_then(|it| it.downcast_ref());
    match inner {
        Some(rustls::Error::InvalidCertificate(what)) => TlsError::Untrusted(untrusted(what)),
        Some(rustls::Error::InvalidMessage(_)) => TlsError::Broken(format!(
            "{error}; does it speak TLS, or should it be http://?"
        )),
        _ => TlsError::Broken(error.to_string()),
    }
}

/// Returns the problem of a certificate, and what to do.
fn untrusted(what: &CertificateError) -> String {
    match what {
        CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
            "its certificate has expired; renew it on that server, or set the clock of this machine if that is wrong"
                .to_owned()
        }
        CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
            "its certificate is not valid yet; set the clock of this machine if that is wrong, or replace the certificate"
                .to_owned()
        }
        what => format!(
            "its certificate is not trusted: {what}; if it is your own or a proxy's, name the file of its CA in SSL_CERT_FILE, \
             and the system's roots in it too if they are still needed"
        ),
    }
}

impl fmt::Debug for Tls {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Tls")
    }
}
