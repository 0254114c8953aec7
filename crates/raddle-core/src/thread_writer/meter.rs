//! Usage of a model call that was cut off.

use std::fmt;
use std::sync::Arc;

use crate::{Event, ModelEnd, Price, RecordBody, Usage};

/// Known usage of a call so far.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeteredUsage {
    /// Tokens used so far.
    pub usage: Usage,
    /// Price of the tokens, if known.
    pub price: Option<Price>,
}

/// Measures the usage of one call. It is read when the call is cut off, because the vendor reports
/// nothing then.
#[derive(Clone)]
pub struct Meter {
    call: u32,
    read: Arc<ReadUsage>,
}

type ReadUsage = dyn Fn() -> Option<MeteredUsage> + Send + Sync;

impl Meter {
    /// Creates a meter; `read` returns `None` until something was sent.
    pub fn new(call: u32, read: impl Fn() -> Option<MeteredUsage> + Send + Sync + 'static) -> Self {
        Self {
            call,
            read: Arc::new(read),
        }
    }

    /// Writes the usage into the end of the call, if it was cut off. Returns whether this is its
    /// end.
    pub(super) fn fill_in(&self, body: &mut RecordBody) -> bool {
        let RecordBody::Event(event) = body else {
            return false;
        };
        let Event::ModelEnded(it) = &mut **event else {
            return false;
        };
        if it.call != self.call {
            return false;
        }
        if matches!(it.end, ModelEnd::Cancelled {})
            && it.usage.is_none()
            && let Some(MeteredUsage { usage, price }) = (self.read)()
        {
            it.usage = Some(usage);
            it.estimated = true;
            it.nano_usd = price.map(|price| price.of(&usage));
        }
        true
    }
}

impl fmt::Debug for Meter {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Meter")
            .field("call", &self.call)
            .finish_non_exhaustive()
    }
}
