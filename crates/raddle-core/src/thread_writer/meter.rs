//! What a call of the model had used when it was cut off.

use std::fmt;
use std::sync::Arc;

use crate::{Event, ModelEnd, Price, RecordBody, Usage};

/// What a call has used so far, as far as that can be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MeteredUsage {
    /// Tokens.
    pub usage: Usage,
    /// What they cost, if that is known.
    pub price: Option<Price>,
}

/// Tells what one call has used so far. It is asked when the call is cut off: nobody else says so then.
#[derive(Clone)]
pub struct Meter {
    call: u32,
    read: Arc<ReadUsage>,
}

type ReadUsage = dyn Fn() -> Option<MeteredUsage> + Send + Sync;

impl Meter {
    /// What this tells of a call; nothing as long as nothing was sent.
    pub fn new(call: u32, read: impl Fn() -> Option<MeteredUsage> + Send + Sync + 'static) -> Self {
        Self {
            call,
            read: Arc::new(read),
        }
    }

    /// Writes into the end of the call what it had used, if it was cut off. Whether this is its end.
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
