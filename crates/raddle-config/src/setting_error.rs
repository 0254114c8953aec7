//! Errors of settings, in a request or in the configuration.

use std::borrow::Cow;

/// The maximum bytes of a client's own text that an error quotes.
const QUOTED_BYTES_MAX: usize = 256;

/// Reason why a setting is rejected.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SettingError {
    /// A value that is not possible.
    #[error("{0}")]
    Refused(String),
    /// Two members of a request with different values for one bound.
    #[error("`{first}` and `{second}` bound the same and differ; send one of them")]
    Contradiction {
        /// Path of the first member in the params.
        first: String,
        /// Path of the second member.
        second: String,
    },
    /// A permission profile that does not exist.
    #[error(
        "unknown permission profile `{id}`; use one of {}, or add [permissions.NAME] to the configuration",
        known.join(", ")
    )]
    UnknownProfile {
        /// The id, truncated for the error.
        id: String,
        /// The ids of the existing profiles.
        known: Vec<String>,
    },
}

/// Truncates a client's text for an error, to a length that a person recognises. Errors must not
/// echo megabytes.
pub fn quoted(text: &str) -> Cow<'_, str> {
    if text.len() <= QUOTED_BYTES_MAX {
        return text.into();
    }
    let end = text.floor_char_boundary(QUOTED_BYTES_MAX);
    format!("{}…", &text[..end]).into()
}
