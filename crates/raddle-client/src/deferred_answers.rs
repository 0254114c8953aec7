//! A handler for clients that answer the questions of their threads themselves.

use raddle_protocol::{
    CommandExecutionApprovalDecision, CommandExecutionRequestApprovalParams,
    FileChangeApprovalDecision, FileChangeRequestApprovalParams, McpServerElicitationRequestParams,
    McpServerElicitationRequestResponse, PermissionsRequestApprovalParams,
    PermissionsRequestApprovalResponse, ToolRequestUserInputParams, ToolRequestUserInputResponse,
};

use crate::{HandlerAnswer, RequestHandler};

/// A handler that leaves every request for a user open. Requests also arrive as
/// [`ThreadEvent::Question`](crate::ThreadEvent::Question), and the receiver of the events answers
/// them with [`Client::answer`](crate::Client::answer). The client runs no tools.
#[derive(Clone, Copy, Debug, Default)]
pub struct DeferredAnswers;

impl RequestHandler for DeferredAnswers {
    async fn command(
        &self,
        _: CommandExecutionRequestApprovalParams,
    ) -> HandlerAnswer<CommandExecutionApprovalDecision> {
        HandlerAnswer::Open
    }

    async fn file_change(
        &self,
        _: FileChangeRequestApprovalParams,
    ) -> HandlerAnswer<FileChangeApprovalDecision> {
        HandlerAnswer::Open
    }

    async fn permissions(
        &self,
        _: PermissionsRequestApprovalParams,
    ) -> HandlerAnswer<PermissionsRequestApprovalResponse> {
        HandlerAnswer::Open
    }

    async fn question(
        &self,
        _: ToolRequestUserInputParams,
    ) -> HandlerAnswer<ToolRequestUserInputResponse> {
        HandlerAnswer::Open
    }

    async fn elicitation(
        &self,
        _: McpServerElicitationRequestParams,
    ) -> HandlerAnswer<McpServerElicitationRequestResponse> {
        HandlerAnswer::Open
    }
}
