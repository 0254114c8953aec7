//! Fuzzy search for files by name, once or as the user types.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Params of `fuzzyFileSearch`, which runs a single search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FuzzyFileSearchParams {
    /// Query of the user; its letters need not be adjacent in a match.
    pub query: String,
    /// The directories to search.
    pub roots: Vec<String>,
    /// Arbitrary token. A later search with the same token cancels this one; null cancels nothing.
    pub cancellation_token: Option<String>,
}

/// Result of `fuzzyFileSearch`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FuzzyFileSearchResponse {
    /// At most 50 matches, best first.
    pub files: Vec<FuzzyFileSearchResult>,
}

/// Params of `fuzzyFileSearch/sessionStart`, which prepares a search that follows the user's
/// typing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FuzzyFileSearchSessionStartParams {
    /// Id of the search session, chosen by the client; unrelated to threads.
    pub session_id: String,
    /// The directories to search.
    pub roots: Vec<String>,
}

/// Result of `fuzzyFileSearch/sessionStart`: empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FuzzyFileSearchSessionStartResponse {}

/// Params of `fuzzyFileSearch/sessionUpdate`, which changes the query.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FuzzyFileSearchSessionUpdateParams {
    /// Id of the search session.
    pub session_id: String,
    /// Query that replaces the previous one.
    pub query: String,
}

/// Result of `fuzzyFileSearch/sessionUpdate`: empty. Matches are sent as notifications.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FuzzyFileSearchSessionUpdateResponse {}

/// Params of `fuzzyFileSearch/sessionStop`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FuzzyFileSearchSessionStopParams {
    /// Id of the search session to end.
    pub session_id: String,
}

/// Result of `fuzzyFileSearch/sessionStop`: empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FuzzyFileSearchSessionStopResponse {}

/// `fuzzyFileSearch/sessionUpdated`: matches so far. Sent only to the connection that started the
/// session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FuzzyFileSearchSessionUpdatedNotification {
    /// Id of the search session.
    pub session_id: String,
    /// All matches so far, best first; they replace the previous ones.
    pub files: Vec<FuzzyFileSearchResult>,
    /// The query of these matches, which may be older than the newest query.
    pub query: String,
}

/// `fuzzyFileSearch/sessionCompleted`: the search for the current query is complete. The session
/// stays open for the next query.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FuzzyFileSearchSessionCompletedNotification {
    /// Id of the search session.
    pub session_id: String,
}

/// One match. Its members are in snake_case on the wire.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FuzzyFileSearchResult {
    /// Last component of `path`.
    #[serde(rename = "file_name")]
    pub file_name: String,
    /// Type of the match.
    #[serde(rename = "match_type")]
    pub match_type: FuzzyFileSearchMatchType,
    /// Path relative to `root`.
    pub path: String,
    /// Searched directory that contains the match.
    pub root: String,
    /// Match score; higher is better.
    pub score: u32,
    /// Indices of the matched characters in `path`, ascending; null if not computed.
    pub indices: Option<Vec<u32>>,
}

open_enum! {
    /// Type of a match.
    pub enum FuzzyFileSearchMatchType {
        /// The match is a file.
        File = "file",
        /// The match is a directory.
        Directory = "directory",
    }
}
