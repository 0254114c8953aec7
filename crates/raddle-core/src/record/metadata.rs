//! What is noted about a thread.

use serde::{Deserialize, Serialize};

use super::Git;

/// What is noted about a thread changed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct MetadataChanged {
    /// State of the repository, all of it, as it is noted from now on.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub git: Option<Git>,
    /// Who asked for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
}
