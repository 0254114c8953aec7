//! The handler of the server's requests.

use std::pin::Pin;
use std::sync::Arc;

use raddle_protocol::*;
use serde_json::Value;

/// Answers the requests of the server: approvals, questions to the user, tool calls.
///
/// A method may take as long as it needs; the client keeps running meanwhile. Its future is dropped
/// when the request is resolved otherwise (by another client, by an interrupt) or when the thread
/// is no longer followed. The server asks again when the thread is opened again. `None` leaves a
/// request open: another client may answer it, or this one later with
/// [`Client::answer`](crate::Client::answer).
///
/// The default of every method rejects the request and logs it. If a method panics, the client
/// answers with an error.
pub trait RequestHandler: Send + Sync + 'static {
    /// Decides whether a command may run.
    fn command(
        &self,
        params: CommandExecutionRequestApprovalParams,
    ) -> impl Future<Output = Option<CommandExecutionApprovalDecision>> + Send {
        log_rejection("a command", params.command.as_deref().unwrap_or_default());
        async { Some(CommandExecutionApprovalDecision::Decline) }
    }

    /// Decides whether files may be changed. The changes are in the item, which arrived before.
    fn file_change(
        &self,
        params: FileChangeRequestApprovalParams,
    ) -> impl Future<Output = Option<FileChangeApprovalDecision>> + Send {
        log_rejection("a change of files", params.item_id.as_str());
        async { Some(FileChangeApprovalDecision::Decline) }
    }

    /// Decides whether the turn gets more permissions. The default grants none.
    fn permissions(
        &self,
        params: PermissionsRequestApprovalParams,
    ) -> impl Future<Output = Option<PermissionsRequestApprovalResponse>> + Send {
        log_rejection("more rights", params.reason.as_deref().unwrap_or_default());
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

    /// Asks the user a question. The default returns no answers.
    fn question(
        &self,
        params: ToolRequestUserInputParams,
    ) -> impl Future<Output = Option<ToolRequestUserInputResponse>> + Send {
        let first = params.questions.first();
        log_rejection(
            "a question",
            first.map_or("", |question| &question.question),
        );
        async {
            Some(ToolRequestUserInputResponse {
                answers: Default::default(),
            })
        }
    }

    /// Runs a tool that this client offered in `dynamicTools`.
    fn tool(
        &self,
        params: DynamicToolCallParams,
    ) -> impl Future<Output = Option<DynamicToolCallResponse>> + Send {
        log_rejection("a tool", &params.tool);
        async move {
            let text = format!("this client does not run {}", params.tool);
            let text = InputTextDynamicToolCallOutputContentItem { text };
            Some(DynamicToolCallResponse {
                content_items: vec![DynamicToolCallOutputContentItem::InputText(text)],
                success: false,
            })
        }
    }

    /// Forwards a question of an MCP server to the user.
    fn elicitation(
        &self,
        params: McpServerElicitationRequestParams,
    ) -> impl Future<Output = Option<McpServerElicitationRequestResponse>> + Send {
        let _ = params;
        log_rejection("an MCP server's question", "");
        async {
            Some(McpServerElicitationRequestResponse {
                action: McpServerElicitationAction::Decline,
                meta: None,
                content: None,
            })
        }
    }
}

fn log_rejection(what: &str, which: &str) {
    tracing::info!(
        which,
        "{what} was rejected: this client has no handler for it"
    );
}

/// A handler that rejects every request of the server.
#[derive(Clone, Copy, Debug, Default)]
pub struct RejectAll;

impl RequestHandler for RejectAll {}

/// A request that the server sends.
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
    /// Parses a request of the server. Returns `None` for an unknown method.
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

    /// The turn that it belongs to, if any.
    pub fn turn(&self) -> Option<&TurnId> {
        match self {
            Self::Command(it) => Some(&it.turn_id),
            Self::FileChange(it) => Some(&it.turn_id),
            Self::Permissions(it) => Some(&it.turn_id),
            Self::Question(it) => Some(&it.turn_id),
            Self::Tool(it) => Some(&it.turn_id),
            Self::Elicitation(it) => elicitation_turn(it),
        }
    }
}

fn elicitation_turn(params: &McpServerElicitationRequestParams) -> Option<&TurnId> {
    use McpServerElicitationRequestParams as Params;
    match params {
        Params::OpenaiUserVerification(it) => it.turn_id.as_ref(),
        Params::Form(it) => it.turn_id.as_ref(),
        Params::OpenaiForm(it) => it.turn_id.as_ref(),
        Params::OpenaiFormLegacy(it) => it.turn_id.as_ref(),
        Params::Url(it) => it.turn_id.as_ref(),
        Params::Unrecognized(_) => None,
    }
}

/// A type-erased [`RequestHandler`].
pub(crate) type HandlerFn = Arc<dyn Fn(ServerQuestion) -> AnswerFuture + Send + Sync>;

type AnswerFuture = Pin<Box<dyn Future<Output = Option<Value>> + Send>>;

pub(crate) fn handler_fn(handler: impl RequestHandler) -> HandlerFn {
    let handler = Arc::new(handler);
    Arc::new(move |question| {
        let handler = handler.clone();
        Box::pin(async move { answer(&*handler, question).await })
    })
}

async fn answer<A: RequestHandler>(handler: &A, question: ServerQuestion) -> Option<Value> {
    let answer_json = match question {
        ServerQuestion::Command(params) => {
            let decision = handler.command(params).await?;
            serde_json::to_value(CommandExecutionRequestApprovalResponse { decision })
        }
        ServerQuestion::FileChange(params) => {
            let decision = handler.file_change(params).await?;
            serde_json::to_value(FileChangeRequestApprovalResponse { decision })
        }
        ServerQuestion::Permissions(params) => {
            serde_json::to_value(handler.permissions(params).await?)
        }
        ServerQuestion::Question(params) => serde_json::to_value(handler.question(params).await?),
        ServerQuestion::Tool(params) => serde_json::to_value(handler.tool(params).await?),
        ServerQuestion::Elicitation(params) => {
            serde_json::to_value(handler.elicitation(params).await?)
        }
    };
    // The protocol's types always serialize.
    answer_json.ok()
}
