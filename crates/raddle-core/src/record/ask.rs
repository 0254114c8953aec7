//! Requests: what the server asks of a client, and what it is answered.

use std::collections::BTreeMap;
use std::fmt;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{Action, Output};
use crate::{ItemId, Timestamp, TurnId};

/// The number of a request in its thread. On the wire it is a string that names the thread too.
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

/// A client is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestOpened {
    /// Its number, the same for as long as it is open, whoever asks.
    pub request: RequestNumber,
    /// The turn that asks.
    pub turn: TurnId,
    /// The item it is about.
    pub item: ItemId,
    /// What is asked.
    pub ask: Ask,
    /// When it settles itself; nothing if it waits for ever.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expires_at: Option<Timestamp>,
    /// The digest of the act that is asked about: a yes is good for this and nothing else.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// If it is about files: what a yes for the session is good for besides.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub files: Vec<String>,
    /// Whether policy says yes in the end, if nobody answers.
    #[serde(
        rename = "yesInTheEnd",
        default,
        skip_serializing_if = "super::is_false"
    )]
    pub approve_on_timeout: bool,
}

/// What is asked.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Ask {
    /// May this command run?
    Command(AskCommand),
    /// May these files change? The changes are in the item.
    Patch(AskPatch),
    /// May this tool be called? The call is in the item.
    Tool(AskTool),
    /// May the turn have these rights?
    Permissions(AskPermissions),
    /// What does the user say?
    Questions(AskQuestions),
    /// Run this tool of yours.
    ClientTool {},
    /// What does the user answer an MCP server? Kept as the server asked it.
    Elicitation(AskElicitation),
}

impl Ask {
    /// Whether clients are shown something to approve.
    pub fn is_approval(&self) -> bool {
        matches!(
            self,
            Self::Command(_) | Self::Patch(_) | Self::Permissions(_)
        )
    }

    /// Whether clients are shown questions to answer.
    pub fn is_input(&self) -> bool {
        matches!(
            self,
            Self::Tool(_) | Self::Questions(_) | Self::Elicitation(_)
        )
    }
}

/// May this command run?
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AskCommand {
    /// The command line.
    pub command: String,
    /// Where it would run.
    pub cwd: String,
    /// Why approval is needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// A guess at what it does.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<Action>,
    /// Leading words of the command that a rule could let through.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub rule: Vec<String>,
}

/// May these files change?
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AskPatch {
    /// Why approval is needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// A folder to be written to until the session ends.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub root: Option<String>,
}

/// May this tool be called?
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AskTool {
    /// Its name, with that of its group.
    pub tool: String,
    /// Why approval is needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
}

/// May the turn have these rights?
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AskPermissions {
    /// The working folder.
    pub cwd: String,
    /// Why they are needed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// The rights, in the wire's form.
    pub permissions: Value,
}

/// What does the user say?
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AskQuestions {
    /// The questions, in order.
    pub questions: Vec<UserQuestion>,
}

/// One question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserQuestion {
    /// Its name in the answer.
    pub id: String,
    /// A few words above it.
    pub header: String,
    /// The question.
    pub question: String,
    /// Answers to choose from; nothing asks for free text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub options: Option<Vec<QuestionChoice>>,
    /// Whether free text is welcome beside them.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub other: bool,
    /// Whether what is typed stays hidden.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub secret: bool,
}

/// One answer to choose from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct QuestionChoice {
    /// What is shown and sent back.
    pub label: String,
    /// What it means.
    pub description: String,
}

/// What does the user answer an MCP server?
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AskElicitation {
    /// The server.
    pub server: String,
    /// What it asks, as it came.
    pub body: Value,
}

/// A request is settled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RequestResolved {
    /// The request.
    pub request: RequestNumber,
    /// How.
    pub resolution: Resolution,
    /// The rights that were given with it: what was asked for at most.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub grant: Option<Grant>,
}

/// Rights beyond the fence.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Grant {
    /// Where files may be written, with all below it; absolute.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub write: Vec<String>,
    /// Whether the network may be used.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub network: bool,
    /// Whether until the session ends, and not only the turn.
    #[serde(default, skip_serializing_if = "super::is_false")]
    pub session: bool,
}

/// How a request was settled.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Resolution {
    /// Someone answered.
    Answered {
        /// Who.
        by: String,
        /// What.
        answer: Box<RequestAnswer>,
    },
    /// Its time ran out.
    Expired {},
    /// Nobody needs it any more.
    Withdrawn {},
}

/// What was answered.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum RequestAnswer {
    /// Yes, this once.
    Accept {},
    /// Yes, and for the same until the session ends.
    AcceptForSession {},
    /// Yes, and by a rule from now on, kept as it came.
    AcceptWithRule {
        /// The rule.
        rule: Value,
    },
    /// No; the turn goes on.
    Decline {},
    /// No, and the turn ends.
    Cancel {},
    /// These rights, in the wire's form; none of them is a no.
    Permissions {
        /// The rights.
        granted: Value,
    },
    /// The user's answers by question.
    Answers {
        /// By the question's id.
        answers: BTreeMap<String, Vec<String>>,
    },
    /// What the client's tool gave.
    Tool {
        /// For the model.
        output: Output,
        /// As it came, for people.
        content: Value,
    },
    /// What the user answered an MCP server, kept as it came.
    Elicitation {
        /// The answer.
        body: Value,
    },
    /// The client could not answer, and says why.
    Failed {
        /// Why.
        message: String,
    },
}
