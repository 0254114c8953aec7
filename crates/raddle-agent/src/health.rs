//! Health of the journal.

use raddle_core::ports::{AppendError, Durability, ReadError};
use raddle_core::{Class, Seq};

use crate::{Counters, Threads};

/// Health of a journal. A journal that rejects writes still counts as responding: a restart would
/// not fix it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JournalHealth {
    /// It stores new records.
    Writable,
    /// It can only be read.
    ReadOnly,
    /// The storage is full.
    Full,
    /// It does not respond, or fails.
    Unavailable,
}

impl Threads {
    /// The counters of all threads.
    pub fn counters(&self) -> &Counters {
        &self.shared.counters
    }

    /// Durability of events, as the journal last measured it.
    pub fn durability(&self) -> Durability {
        self.shared.journal.durability()
    }

    /// Probes the journal with a read and an empty append. The append queues behind all other
    /// writes and takes the same lock. Waits as long as the journal does.
    pub async fn try_journal(&self) -> JournalHealth {
        let (journal, probe_thread) = (&self.shared.journal, self.shared.probe_thread);
        match journal.head(probe_thread).await {
            Ok(_) | Err(ReadError::NotFound) => {}
            Err(ReadError::Newer(_)) => return JournalHealth::ReadOnly,
            Err(_) => return JournalHealth::Unavailable,
        }
        match journal
            .append(probe_thread, Seq::ZERO, &[], Class::Power)
            .await
        {
            Ok(_) | Err(AppendError::Conflict) => JournalHealth::Writable,
            Err(AppendError::ReadOnly(_) | AppendError::Newer(_)) => JournalHealth::ReadOnly,
            Err(AppendError::Full(_)) => JournalHealth::Full,
            Err(AppendError::Unavailable(_) | AppendError::Unknown(_) | AppendError::NoBlob(_)) => {
                JournalHealth::Unavailable
            }
        }
    }
}
