//! What the server asks, and who answers.

use std::pin::Pin;
use std::sync::Arc;

use raddle_protocol::*;
use serde_json::Value;

/// Answers what the server asks.
///
/// Each method may take as long as it likes; meanwhile everything else goes on. When the question is settled
/// otherwise (someone else answered, the turn was interrupted) or its thread is followed no more, its future is
/// dropped; when the thread is opened again, it is asked again. `None` leaves a question open: another client may
/// answer it, or this one later with [`Client::answer`](crate::Client::answer).
///
/// What is not overridden is refused, and the log says so. So is what a method panics on.
pub trait RequestHandler: Send + Sync + 'static {
    /// May this command run?
    fn command(
        &self,
        asked: CommandExecutionRequestApprovalParams,
    ) -> impl Future<Output = Option<CommandExecutionApprovalDecision>> + Send {
        refused("a command", asked.command.as_deref().unwrap_or_default());
        async { Some(CommandExecutionApprovalDecision::Decline) }
    }

    /// May these files be changed? The changes are in the item, which was told before.
    fn file_change(
        &self,
        asked: FileChangeRequestApprovalParams,
    ) -> impl Future<Output = Option<FileChangeApprovalDecision>> + Send {
        refused("a change of files", asked.item_id.as_str());
        async { Some(FileChangeApprovalDecision::Decline) }
    }

    /// May the turn have these rights? What is refused grants nothing.
    fn permissions(
        &self,
        asked: PermissionsRequestApprovalParams,
    ) -> impl Future<Output = Option<PermissionsRequestApprovalResponse>> + Send {
        refused("more rights", asked.reason.as_deref().unwrap_or_default());
        async {
            Some(PermissionsRequestApprovalResponse {
                permissions: GrantedPermissionProfile {
                    file_system: None,
                    network: None,
                },
                scope: PermissionGrantScope::Turn,
                strict_auto_review: None,
            })
        }
    }

    /// What does the user answer? What is refused has no answers.
    fn question(
        &self,
        asked: ToolRequestUserInputParams,
    ) -> impl Future<Output = Option<ToolRequestUserInputResponse>> + Send {
        let first = asked.questions.first();
        refused(
            "a question",
            first.map_or("", |question| &question.question),
        );
        async {
            Some(ToolRequestUserInputResponse {
                answers: Default::default(),
            })
        }
    }

    /// Run this tool, which this client offered in `dynamicTools`.
    fn tool(
        &self,
        asked: DynamicToolCallParams,
    ) -> impl Future<Output = Option<DynamicToolCallResponse>> + Send {
        refused("a tool", &asked.tool);
        async move {
            let text = format!("this client does not run {}", asked.tool);
            let text = InputTextDynamicToolCallOutputContentItem { text };
            Some(DynamicToolCallResponse {
                content_items: vec![DynamicToolCallOutputContentItem::InputText(text)],
                success: false,
            })
        }
    }

    /// What does the user answer an MCP server?
    fn elicitation(
        &self,
        asked: McpServerElicitationRequestParams,
    ) -> impl Future<Output = Option<McpServerElicitationRequestResponse>> + Send {
        let _ = asked;
        refused("an MCP server's question", "");
        async {
            Some(McpServerElicitationRequestResponse {
                action: McpServerElicitationAction::Decline,
                meta: None,
                content: None,
            })
        }
    }
}

fn refused(what: &str, which: &str) {
    tracing::info!(
        which,
        "{what} was refused: this client answers no such thing"
    );
}

/// Refuses everything.
#[derive(Clone, Copy, Debug, Default)]
pub struct RejectAll;

impl RequestHandler for RejectAll {}

/// What the server asks.
#[derive(Clone, Debug, PartialEq)]
#[expect(missing_docs, reason = "each variant is its request")]
pub enum ServerQuestion {
    Command(CommandExecutionRequestApprovalParams),
    FileChange(FileChangeRequestApprovalParams),
    Permissions(PermissionsRequestApprovalParams),
    Question(ToolRequestUserInputParams),
    Tool(DynamicToolCallParams),
    Elicitation(McpServerElicitationRequestParams),
}

impl ServerQuestion {
    /// Reads a request of the server; nothing if it is not known here.
    pub(crate) fn read(method: &str, params: &str) -> Option<Result<Self, serde_json::Error>> {
        Some(match method {
            ItemCommandExecutionRequestApproval::NAME => {
                serde_json::from_str(params).map(Self::Command)
            }
            ItemFileChangeRequestApproval::NAME => {
                serde_json::from_str(params).map(Self::FileChange)
            }
            ItemPermissionsRequestApproval::NAME => {
                serde_json::from_str(params).map(Self::Permissions)
            }
            ItemToolRequestUserInput::NAME => serde_json::from_str(params).map(Self::Question),
            ItemToolCall::NAME => serde_json::from_str(params).map(Self::Tool),
            McpServerElicitationRequest::NAME => {
                serde_json::from_str(params).map(Self::Elicitation)
            }
            _ => return None,
        })
    }

    /// The turn it belongs to, if it belongs to one.
    pub fn turn(&self) -> Option<&TurnId> {
        match self {
            Self::Command(it) => Some(&it.turn_id),
            Self::FileChange(it) => Some(&it.turn_id),
            Self::Permissions(it) => Some(&it.turn_id),
            Self::Question(it) => Some(&it.turn_id),
            Self::Tool(it) => Some(&it.turn_id),
            Self::Elicitation(_) => None,
        }
    }
}

/// Whoever answers, whatever type it has.
pub(crate) type HandlerFn = Arc<dyn Fn(ServerQuestion) -> AnswerFuture + Send + Sync>;

type AnswerFuture = Pin<Box<dyn Future<Output = Option<Value>> + Send>>;

pub(crate) fn handler_fn(answers: impl RequestHandler) -> HandlerFn {
    let answers = Arc::new(answers);
    Arc::new(move |question| {
        let answers = answers.clone();
        Box::pin(async move { answer(&*answers, question).await })
    })
}

async fn answer<A: RequestHandler>(answers: &A, question: ServerQuestion) -> Option<Value> {
    let written = match question {
        ServerQuestion::Command(asked) => {
            let decision = answers.command(asked).await?;
            serde_json::to_value(CommandExecutionRequestApprovalResponse { decision })
        }
        ServerQuestion::FileChange(asked) => {
            let decision = answers.file_change(asked).await?;
            serde_json::to_value(FileChangeRequestApprovalResponse { decision })
        }
        ServerQuestion::Permissions(asked) => {
            serde_json::to_value(answers.permissions(asked).await?)
        }
        ServerQuestion::Question(asked) => serde_json::to_value(answers.question(asked).await?),
        ServerQuestion::Tool(asked) => serde_json::to_value(answers.tool(asked).await?),
        ServerQuestion::Elicitation(asked) => {
            serde_json::to_value(answers.elicitation(asked).await?)
        }
    };
    // Our own types have no parts that cannot be written.
    written.ok()
}
