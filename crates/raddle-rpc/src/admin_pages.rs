//! The board beside the doors: pages that a door shows to those who watch the server.

use std::fmt;
use std::pin::Pin;

/// What a door shows besides `/readyz` and `/healthz`. The carriage knows no page itself.
pub trait AdminPages: fmt::Debug + Send + Sync {
    /// What hangs at this path.
    fn page(&self, path: &str) -> Option<LazyPage>;

    /// What is shown everywhere while nothing else runs that could show something.
    fn blocked_page(&self) -> HttpPage;
}

/// A page that is made when someone may read it.
pub struct LazyPage {
    /// Who that is.
    pub access: Access,
    /// The page. A request waits for it no longer than for everything else at the door.
    pub page: Pin<Box<dyn Future<Output = HttpPage> + Send>>,
}

/// Who may read a page.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// Everyone who reaches the door: what it says is no secret, and asking costs little.
    Everyone,
    /// Who would be let in.
    Admitted,
}

/// A page.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HttpPage {
    /// The HTTP status.
    pub status: u16,
    /// The media type.
    pub media: &'static str,
    /// The text.
    pub text: String,
}

impl fmt::Debug for LazyPage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Notice")
            .field("readers", &self.access)
            .finish_non_exhaustive()
    }
}
