//! Whether what the threads stand on answers.

use raddle_core::ports::{AppendError, ReadError};
use raddle_core::{Class, Seq};

use crate::{Counters, Threads};

/// How a journal answered. One that cannot be written answers too: beginning anew would not mend it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JournalHealth {
    /// It takes records.
    Writable,
    /// It can only be read.
    ReadOnly,
    /// There is no room for more.
    Full,
    /// It does not answer, or cannot do what it was asked.
    Unavailable,
}

impl Threads {
    /// What happened in the threads.
    pub fn counters(&self) -> &Counters {
        &self.shared.counters
    }

    /// Asks the journal something, and has it write nothing: that stands in line behind all other writes
    /// and takes the same lock. Waits for as long as the journal does.
    pub async fn try_journal(&self) -> JournalHealth {
        let (journal, nobody) = (&self.shared.journal, self.shared.probe_thread);
        match journal.head(nobody).await {
            Ok(_) | Err(ReadError::NotFound) => {}
            Err(ReadError::Newer(_)) => return JournalHealth::ReadOnly,
            Err(_) => return JournalHealth::Unavailable,
        }
        match journal.append(nobody, Seq::ZERO, &[], Class::Process).await {
            Ok(_) | Err(AppendError::Conflict) => JournalHealth::Writable,
            Err(AppendError::ReadOnly(_) | AppendError::Newer(_)) => JournalHealth::ReadOnly,
            Err(AppendError::Full(_)) => JournalHealth::Full,
            Err(AppendError::Unavailable(_) | AppendError::Unknown(_) | AppendError::NoBlob(_)) => {
                JournalHealth::Unavailable
            }
        }
    }
}
