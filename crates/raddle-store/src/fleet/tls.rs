//! TLS of connections to the database, by rustls. The server's certificate is always verified.

use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio_postgres::tls::{ChannelBinding, MakeTlsConnect, TlsConnect, TlsStream};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream as RustlsStream;

/// Connector for every connection of a journal.
#[derive(Clone)]
pub(super) struct TlsDialer {
    config: Arc<ClientConfig>,
}

impl TlsDialer {
    /// Reads the root certificates of the system, or those that `SSL_CERT_FILE` names. Without any,
    /// only connections without TLS succeed.
    pub(super) fn new() -> Result<Self, rustls::Error> {
        let mut roots = RootCertStore::empty();
        let loaded = rustls_native_certs::load_native_certs();
        let (_, unreadable) = roots.add_parsable_certificates(loaded.certs);
        if roots.is_empty() || unreadable > 0 {
            tracing::debug!(
                roots = roots.len(),
                unreadable,
                "loaded root certificates for the database"
            );
        }
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()?
            .with_root_certificates(roots)
            .with_no_client_auth();
        Ok(Self {
            config: Arc::new(config),
        })
    }
}

impl<S> MakeTlsConnect<S> for TlsDialer
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = DatabaseStream<S>;
    type TlsConnect = TlsHandshake;
    type Error = Infallible;

    /// Called for connections without TLS too, so that an invalid name is no failure yet.
    fn make_tls_connect(&mut self, host: &str) -> Result<TlsHandshake, Infallible> {
        Ok(TlsHandshake {
            connector: TlsConnector::from(Arc::clone(&self.config)),
            name: ServerName::try_from(host.to_owned()).ok(),
        })
    }
}

/// Handshake with one host.
pub(super) struct TlsHandshake {
    connector: TlsConnector,
    /// Name that the certificate must have; `None` if the host has no valid one.
    name: Option<ServerName<'static>>,
}

impl<S> TlsConnect<S> for TlsHandshake
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    type Stream = DatabaseStream<S>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<DatabaseStream<S>>> + Send>>;

    fn connect(self, stream: S) -> Self::Future {
        Box::pin(async move {
            let invalid = || io::Error::other("the name of the host is invalid for TLS");
            let name = self.name.ok_or_else(invalid)?;
            let stream = self.connector.connect(name, stream).await?;
            Ok(DatabaseStream(stream))
        })
    }
}

/// Encrypted stream to the database.
pub(super) struct DatabaseStream<S>(RustlsStream<S>);

impl<S: AsyncRead + AsyncWrite + Unpin> TlsStream for DatabaseStream<S> {
    fn channel_binding(&self) -> ChannelBinding {
        ChannelBinding::none()
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncRead for DatabaseStream<S> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(context, buffer)
    }
}

impl<S: AsyncRead + AsyncWrite + Unpin> AsyncWrite for DatabaseStream<S> {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(context)
    }
}
