//! The handler of the server's requests.

use std::convert::identity;
use std::pin::Pin;
use std::sync::Arc;

use raddle_protocol::*;
use serde::Serialize;
use serde_json::Value;

/// Answers the requests of the server: approvals, questions to the user, tool calls.
///
/// A method may take as long as it needs; the client keeps running meanwhile. Its future is dropped
/// when the request is resolved otherwise (by another client, by an interrupt) or when the thread
/// is no longer followed. The server asks again when the thread is opened again.
///
/// Every client that follows a thread receives its requests, and the first answer counts. So the
/// defaults decline approvals only, and report for all other requests that this client cannot
/// answer. Both are logged. If a method panics, the client cannot answer either.
pub trait RequestHandler: Send + Sync + 'static {
    /// Decides whether a command may run. The default declines.
    fn command(
        &self,
        params: CommandExecutionRequestApprovalParams,
    ) -> impl Future<Output = HandlerAnswer<CommandExecutionApprovalDecision>> + Send {
        log_rejection("a command", params.command.as_deref().unwrap_or_default());
        async { HandlerAnswer::Given(CommandExecutionApprovalDecision::Decline) }
    }

    /// Decides whether files may be changed. The changes are in the item, which arrived before. The
    /// default declines.
    fn file_change(
        &self,
        params: FileChangeRequestApprovalParams,
    ) -> impl Future<Output = HandlerAnswer<FileChangeApprovalDecision>> + Send {
        log_rejection("a change of files", params.item_id.as_str());
        async { HandlerAnswer::Given(FileChangeApprovalDecision::Decline) }
    }

    /// Decides whether the turn gets more permissions. The default grants none.
    fn permissions(
        &self,
        params: PermissionsRequestApprovalParams,
    ) -> impl Future<Output = HandlerAnswer<PermissionsRequestApprovalResponse>> + Send {
        log_rejection("more rights", params.reason.as_deref().unwrap_or_default());
        async {
            HandlerAnswer::Given(PermissionsRequestApprovalResponse {
                permissions: GrantedPermissionProfile {
                    file_system: None,
                    network: None,
                },
                scope: PermissionGrantScope::Turn,
                strict_auto_review: None,
            })
        }
    }

    /// Asks the user a question.
    fn question(
        &self,
        params: ToolRequestUserInputParams,
    ) -> impl Future<Output = HandlerAnswer<ToolRequestUserInputResponse>> + Send {
        let first = params.questions.first();
        log_unable(
            "a question",
            first.map_or("", |question| &question.question),
        );
        async { HandlerAnswer::Unable }
    }

    /// Runs a tool that this client offered in `dynamicTools`.
    fn tool(
        &self,
        params: DynamicToolCallParams,
    ) -> impl Future<Output = HandlerAnswer<DynamicToolCallResponse>> + Send {
        log_unable("a tool", &params.tool);
        async { HandlerAnswer::Unable }
    }

    /// Forwards a question of an MCP server to the user.
    fn elicitation(
        &self,
        params: McpServerElicitationRequestParams,
    ) -> impl Future<Output = HandlerAnswer<McpServerElicitationRequestResponse>> + Send {
        let _ = params;
        log_unable("an MCP server's question", "");
        async { HandlerAnswer::Unable }
    }
}

/// Result of a method of [`RequestHandler`].
#[derive(Clone, Debug, PartialEq)]
pub enum HandlerAnswer<T> {
    /// The answer.
    Given(T),
    /// No answer yet. Another client may answer, or this one with
    /// [`Client::answer`](crate::Client::answer).
    Open,
    /// This client cannot answer. If no other client can either, the server declines the request.
    Unable,
}

impl<T> HandlerAnswer<T> {
    /// Converts an answer to the result of a response.
    fn into_result<R: Serialize>(self, response: impl FnOnce(T) -> R) -> HandlerAnswer<Value> {
        match self {
            Self::Given(answer) => match serde_json::to_value(response(answer)) {
                Ok(result) => HandlerAnswer::Given(result),
                // The protocol's types always serialize.
                Err(_) => HandlerAnswer::Unable,
            },
            Self::Open => HandlerAnswer::Open,
            Self::Unable => HandlerAnswer::Unable,
        }
    }
}

fn log_rejection(what: &str, which: &str) {
    tracing::info!(
        which,
        "{what} was rejected: this client has no handler for it"
    );
}

fn log_unable(what: &str, which: &str) {
    tracing::info!(
        which,
        "{what} is left to other clients: this client has no handler for it"
    );
}

/// A handler with the default of every method: it declines approvals, and answers nothing else.
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

    /// The error of a client that has no handler for it.
    pub(crate) fn unable_text(&self) -> String {
        match self {
            Self::Tool(it) => format!("this client does not run {}", it.tool),
            Self::Command(_) | Self::FileChange(_) | Self::Permissions(_) => {
                "this client cannot approve".to_owned()
            }
            Self::Question(_) | Self::Elicitation(_) => {
                "this client cannot ask its user".to_owned()
            }
        }
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

type AnswerFuture = Pin<Box<dyn Future<Output = HandlerAnswer<Value>> + Send>>;

pub(crate) fn handler_fn(handler: impl RequestHandler) -> HandlerFn {
    let handler = Arc::new(handler);
    Arc::new(move |question| {
        let handler = handler.clone();
        Box::pin(async move { answer(&*handler, question).await })
    })
}

async fn answer<A: RequestHandler>(handler: &A, question: ServerQuestion) -> HandlerAnswer<Value> {
    match question {
        ServerQuestion::Command(params) => {
            let answer = handler.command(params).await;
            answer.into_result(|decision| CommandExecutionRequestApprovalResponse { decision })
        }
        ServerQuestion::FileChange(params) => {
            let answer = handler.file_change(params).await;
            answer.into_result(|decision| FileChangeRequestApprovalResponse { decision })
        }
        ServerQuestion::Permissions(params) => {
            handler.permissions(params).await.into_result(identity)
        }
        ServerQuestion::Question(params) => handler.question(params).await.into_result(identity),
        ServerQuestion::Tool(params) => handler.tool(params).await.into_result(identity),
        ServerQuestion::Elicitation(params) => {
            handler.elicitation(params).await.into_result(identity)
        }
    }
}
