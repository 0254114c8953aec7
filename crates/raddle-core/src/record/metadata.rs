//! Git metadata of a thread.

use serde::{Deserialize, Serialize};

use super::Git;

/// The git metadata changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MetadataChanged {
    /// New state of the repository, as a whole.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<Git>,
    /// Principal that sent the command.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
}
