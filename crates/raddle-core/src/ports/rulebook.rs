//! The rules that someone wrote down, and may go on writing.

use std::sync::Arc;

use super::BoxFuture;
use crate::policy::{Amendment, Policy};

/// The rules as they are now.
pub trait Rulebook: Send + Sync {
    /// The rules as they were last read, and read again if they have changed since. It waits for the disk at
    /// most so long as it takes to look at three small files.
    fn policy(&self) -> Arc<Policy>;

    /// Writes down a rule that the user wants from now on. It is in force when this has succeeded.
    fn amend(&self, amendment: Amendment) -> BoxFuture<'_, Result<(), AmendError>>;
}

/// Why a rule was not written down.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AmendError {
    /// What is there cannot be read, so nothing is added.
    #[error("the rules cannot be read, so none was added: {0}")]
    Unreadable(String),
    /// It could not be written.
    #[error("the rule could not be written: {0}")]
    Unwritable(String),
}
