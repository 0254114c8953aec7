//! Requests of the server to a client, and their answers.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Action, Output};
use crate::{ItemId, Timestamp, TurnId};

/// Number of a request in its thread. On the wire it is a string that names the thread too.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize,
)]
#[serde(transparent)]
pub struct RequestNumber(pub u64);

impl fmt::Display for RequestNumber {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.0, f)
    }
}

/// A request to a client was opened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestOpened {
    /// Number of the request, which stays the same while it is open, whichever owner sends it.
    pub request: RequestNumber,
    /// Turn that sends it.
    pub turn: TurnId,
    /// Item that it is about.
    pub item: ItemId,
    /// Content of the request.
    pub ask: Ask,
    /// Deadline at which it settles itself; `None` if it waits indefinitely.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// Digest of the act to approve: an approval holds for this and nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Files that an approval for the session also covers, if the request is about files.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Whether the policy approves the request if it times out.
    #[serde(
        rename = "yesInTheEnd",
        default,
        skip_serializing_if = "super::is_false"
    )]
    pub approve_on_timeout: bool,
}

/// Content of a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Ask {
    /// Approval to run a command.
    Command(AskCommand),
    /// Approval to change files. The changes are in the item.
    Patch(AskPatch),
    /// Approval to call a tool. The call is in the item.
    Tool(AskTool),
    /// Approval of more rights for the turn.
    Permissions(AskPermissions),
    /// Questions to the user.
    Questions(AskQuestions),
    /// Execution of a client's tool.
    ClientTool {},
    /// A question of an MCP server to the user, in the server's form.
    Elicitation(AskElicitation),
}

impl Ask {
    /// Whether clients show it as an approval.
    pub fn is_approval(&self) -> bool {
        matches!(
            self,
            Self::Command(_) | Self::Patch(_) | Self::Permissions(_)
        )
    }

    /// Whether clients show it as questions.
    pub fn is_input(&self) -> bool {
        matches!(
            self,
            Self::Tool(_) | Self::Questions(_) | Self::Elicitation(_)
        ) && self.trust_folder().is_none()
    }

    /// Returns the folder that the request asks the user to trust. No turn waits for the answer.
    pub fn trust_folder(&self) -> Option<&str> {
        match self {
            Self::Questions(it) => it.trust_folder.as_deref(),
            _ => None,
        }
    }

    /// Returns the permission that a plugin asks for. The question outlives the call and the owner
    /// in which the plugin asked it: the approval is for all calls of the plugin.
    pub fn plugin_permission(&self) -> Option<&PluginPermission> {
        match self {
            Self::Elicitation(it) => it.permission.as_ref(),
            _ => None,
        }
    }
}

/// Approval to run a command.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AskCommand {
    /// The command line, as text.
    pub command: String,
    /// Working folder of the command.
    pub cwd: String,
    /// Reason why approval is needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Guess at the command's actions.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<Action>,
    /// Leading words of the command that a rule could allow.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rule: Vec<String>,
}

/// Approval to change files.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AskPatch {
    /// Reason why approval is needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Folder that becomes writable until the session ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
}

/// Approval to call a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AskTool {
    /// Name of the tool, with that of its group.
    pub tool: String,
    /// Reason why approval is needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// Approval of more rights for the turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AskPermissions {
    /// Working folder of the turn.
    pub cwd: String,
    /// Reason why the rights are needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The rights, in the wire's form.
    pub permissions: Value,
}

/// Questions to the user.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AskQuestions {
    /// The questions, in order.
    pub questions: Vec<UserQuestion>,
    /// Folder that the answer trusts or does not trust, if Raddle itself asks about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub trust_folder: Option<String>,
}

/// One question to the user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserQuestion {
    /// Key of the question in the answer.
    pub id: String,
    /// Short heading above the question.
    pub header: String,
    /// The question, as text.
    pub question: String,
    /// Answers to choose from; `None` asks for free text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<Vec<QuestionChoice>>,
    /// Whether free text is allowed in addition to the options.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub other: bool,
    /// Whether the client hides the typed answer.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub secret: bool,
}

/// One answer to choose from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QuestionChoice {
    /// Text that is shown and sent back.
    pub label: String,
    /// Explanation of the choice.
    pub description: String,
}

/// A question of an MCP server to the user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AskElicitation {
    /// Name of the MCP server.
    pub server: String,
    /// Question in the server's own form.
    pub body: Value,
    /// Permission of a plugin that the user approves by accepting, if the question is about one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub permission: Option<PluginPermission>,
}

/// A permission of a plugin.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PluginPermission {
    /// Id of the plugin.
    pub plugin: String,
    /// Hash of the plugin's files, which an approval is for.
    pub hash: String,
    /// Name of the permission.
    pub name: String,
}

/// A request was resolved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestResolved {
    /// Number of the request.
    pub request: RequestNumber,
    /// How it was resolved.
    pub resolution: Resolution,
    /// Rights that were granted with it: at most those requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<Grant>,
}

/// Rights beyond the sandbox.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Grant {
    /// Absolute paths that may be written, with everything below.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<String>,
    /// Whether the network may be used.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub network: bool,
    /// Whether the rights hold until the session ends, not only the turn.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub session: bool,
}

/// How a request was resolved.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Resolution {
    /// A client or webhook answered.
    Answered {
        /// Principal that gave the answer.
        by: String,
        /// Answer, which matches the request.
        answer: Box<RequestAnswer>,
    },
    /// The deadline passed without an answer.
    Expired {},
    /// The request is no longer needed.
    Withdrawn {},
}

impl Resolution {
    /// Returns the principal that accepted the question of an MCP server or of a plugin.
    pub fn accepted_by(&self) -> Option<&str> {
        let Self::Answered { by, answer } = self else {
            return None;
        };
        let RequestAnswer::Elicitation { body } = &**answer else {
            return None;
        };
        (body["action"] == "accept").then_some(by)
    }
}

/// Answer to a request.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum RequestAnswer {
    /// Approves this act, once.
    Accept {},
    /// Approves this and the same acts until the session ends.
    AcceptForSession {},
    /// Approves this and adds a rule, stored as received.
    AcceptWithRule {
        /// Rule in the wire's form.
        rule: Value,
    },
    /// Applies the accepted hunks of a change of files; none declines.
    AcceptHunks {
        /// Decisions on hunks. A hunk without one is dropped.
        hunks: Vec<HunkDecision>,
    },
    /// Declines; the turn continues.
    Decline {},
    /// Declines and ends the turn.
    Cancel {},
    /// Grants these rights, in the wire's form; none declines.
    Permissions {
        /// Rights in the wire's form.
        granted: Value,
    },
    /// The user's answers, by question.
    Answers {
        /// Answers by the question's id.
        answers: BTreeMap<String, Vec<String>>,
    },
    /// Result of the client's tool.
    Tool {
        /// Output for the model.
        output: Output,
        /// Content for the user, as received.
        content: Value,
    },
    /// The user's answer to an MCP server, stored as received.
    Elicitation {
        /// Body in the server's form.
        body: Value,
    },
    /// The client could not answer.
    Failed {
        /// Reason of the client.
        message: String,
    },
}

impl RequestAnswer {
    /// Whether it approves the act, or at least a part of it.
    pub(crate) fn approves(&self) -> bool {
        match self {
            Self::Accept {} | Self::AcceptForSession {} | Self::AcceptWithRule { .. } => true,
            Self::AcceptHunks { hunks } => hunks.iter().any(|it| it.accept),
            Self::Decline {}
            | Self::Cancel {}
            | Self::Permissions { .. }
            | Self::Answers { .. }
            | Self::Tool { .. }
            | Self::Elicitation { .. }
            | Self::Failed { .. } => false,
        }
    }
}

/// The user's decision on one hunk of a proposed change of files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HunkDecision {
    /// Id of the hunk.
    pub id: String,
    /// Whether it is applied.
    pub accept: bool,
    /// Comment for the model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub comment: Option<String>,
    /// Text in place of its new lines.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub replacement: Option<String>,
}
