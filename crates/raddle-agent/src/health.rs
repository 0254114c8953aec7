//! Whether what the threads stand on answers.

use raddle_core::ports::{AppendError, ReadError};
use raddle_core::{Class, Seq};

use crate::{Tally, Threads};

/// How a journal answered. One that cannot be written answers too: beginning anew would not mend it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Answers {
    /// It takes records.
    Well,
    /// It can only be read.
    ReadOnly,
    /// There is no room for more.
    Full,
    /// It does not answer, or cannot do what it was asked.
    Badly,
}

impl Threads {
    /// What happened in the threads.
    pub fn tally(&self) -> &Tally {
        &self.shared.tally
    }

    /// Asks the journal something, and has it write nothing: that stands in line behind all other writes
    /// and takes the same lock. Waits for as long as the journal does.
    pub async fn try_journal(&self) -> Answers {
        let (journal, nobody) = (&self.shared.journal, self.shared.nobody);
        match journal.head(nobody).await {
            Ok(_) | Err(ReadError::NotFound) => {}
            Err(ReadError::Newer(_)) => return Answers::ReadOnly,
            Err(_) => return Answers::Badly,
        }
        match journal.append(nobody, Seq::ZERO, &[], Class::Process).await {
            Ok(_) | Err(AppendError::Conflict) => Answers::Well,
            Err(AppendError::ReadOnly(_) | AppendError::Newer(_)) => Answers::ReadOnly,
            Err(AppendError::Full(_)) => Answers::Full,
            Err(AppendError::Unavailable(_) | AppendError::Unknown(_) | AppendError::NoBlob(_)) => {
                Answers::Badly
            }
        }
    }
}
