//! Finding files by a few letters of their names, once or as the user types.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Params of `fuzzyFileSearch`: one search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FuzzyFileSearchParams {
    /// What the user typed; its letters need not be adjacent in a match.
    pub query: String,
    /// The directories to search.
    pub roots: Vec<String>,
    /// Any text. A later search with the same one cancels this search; null cancels nothing.
    pub cancellation_token: Option<String>,
}

/// Result of `fuzzyFileSearch`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FuzzyFileSearchResponse {
    /// At most 50 matches, best first.
    pub files: Vec<FuzzyFileSearchResult>,
}

/// Params of `fuzzyFileSearch/sessionStart`: make ready for a search that follows the user's typing.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FuzzyFileSearchSessionStartParams {
    /// The client's name for this search session; it has nothing to do with a thread.
    pub session_id: String,
    /// The directories to search.
    pub roots: Vec<String>,
}

/// Result of `fuzzyFileSearch/sessionStart`: empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FuzzyFileSearchSessionStartResponse {}

/// Params of `fuzzyFileSearch/sessionUpdate`: the user typed on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FuzzyFileSearchSessionUpdateParams {
    /// The search session.
    pub session_id: String,
    /// The whole query as it now stands.
    pub query: String,
}

/// Result of `fuzzyFileSearch/sessionUpdate`: empty. Matches come as notifications.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FuzzyFileSearchSessionUpdateResponse {}

/// Params of `fuzzyFileSearch/sessionStop`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FuzzyFileSearchSessionStopParams {
    /// The search session to end.
    pub session_id: String,
}

/// Result of `fuzzyFileSearch/sessionStop`: empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct FuzzyFileSearchSessionStopResponse {}

/// `fuzzyFileSearch/sessionUpdated`: matches so far. Told only to the connection that started the session.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FuzzyFileSearchSessionUpdatedNotification {
    /// The search session.
    pub session_id: String,
    /// All matches so far, best first; they replace those told before.
    pub files: Vec<FuzzyFileSearchResult>,
    /// The query they answer, which may lag behind the newest.
    pub query: String,
}

/// `fuzzyFileSearch/sessionCompleted`: the current query has been searched to the end.
/// The session stays open for the next query.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FuzzyFileSearchSessionCompletedNotification {
    /// The search session.
    pub session_id: String,
}

/// One match. Its members are spelled in snake case on the wire.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FuzzyFileSearchResult {
    /// The last part of `path`.
    #[serde(rename = "file_name")]
    pub file_name: String,
    /// What was found.
    #[serde(rename = "match_type")]
    pub match_type: FuzzyFileSearchMatchType,
    /// Where it is, relative to `root`.
    pub path: String,
    /// Which of the searched directories it lies in.
    pub root: String,
    /// How well it fits; higher is better.
    pub score: u32,
    /// Positions of the matched characters in `path`, ascending; null if not worked out.
    pub indices: Option<Vec<u32>>,
}

open_enum! {
    /// What a match is.
    pub enum FuzzyFileSearchMatchType {
        /// A file.
        File = "file",
        /// A directory.
        Directory = "directory",
    }
}
