//! HTTP pages for operators and monitoring, served by the listeners.

use std::fmt;
use std::pin::Pin;

/// The pages that a listener serves besides `/readyz` and `/healthz`, or in their place. This crate
/// defines no page itself.
pub trait AdminPages: fmt::Debug + Send + Sync {
    /// Returns the page at this path.
    fn page(&self, path: &str) -> Option<LazyPage>;

    /// Served on every path while the runtime is blocked.
    fn blocked_page(&self) -> HttpPage;
}

/// A page that is rendered only after the access check.
pub struct LazyPage {
    /// Authorization that a client needs.
    pub access: Access,
    /// The page. The deadline of the handshake covers its rendering.
    pub page: Pin<Box<dyn Future<Output = HttpPage> + Send>>,
}

/// Authorization that a page requires.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// None: the page holds no secret, and costs little to render.
    Everyone,
    /// The same as for a websocket.
    Admitted,
}

/// A page as it is sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpPage {
    /// HTTP status code.
    pub status: u16,
    /// The media type, for example `text/plain`.
    pub media: &'static str,
    /// Body, sent as UTF-8.
    pub text: String,
}

impl fmt::Debug for LazyPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("LazyPage")
            .field("access", &self.access)
            .finish_non_exhaustive()
    }
}
