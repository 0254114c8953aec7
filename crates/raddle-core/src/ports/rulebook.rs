//! The rules of operator and user, to which the user may add.

use std::sync::Arc;

use super::BoxFuture;
use crate::policy::{Amendment, Policy};

/// Access to the current rules.
pub trait Rulebook: Send + Sync {
    /// Returns the rules, read again if they have changed. It blocks on the disk no longer than it
    /// takes to stat three small files.
    fn policy(&self) -> Arc<Policy>;

    /// Stores a rule that the user adds. It is in force once this has succeeded.
    fn amend(&self, amendment: Amendment) -> BoxFuture<'_, Result<(), AmendError>>;
}

/// Reason why a rule was not stored.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AmendError {
    /// The existing rules cannot be read, so nothing is added.
    #[error("the rules cannot be read, so none was added: {0}")]
    Unreadable(String),
    /// The rule could not be written.
    #[error("the rule could not be written: {0}")]
    Unwritable(String),
}
