//! The handler of the server's requests: the events of a thread carry them too.

use raddle_client::RequestHandler;
use raddle_protocol::{
    CommandExecutionApprovalDecision, CommandExecutionRequestApprovalParams,
    FileChangeApprovalDecision, FileChangeRequestApprovalParams, PermissionsRequestApprovalParams,
    PermissionsRequestApprovalResponse, ToolRequestUserInputParams, ToolRequestUserInputResponse,
};

/// Leaves the requests for the user open: the call that follows the thread answers them. Questions
/// of MCP servers are declined, and no tool is offered.
#[derive(Debug)]
pub(crate) struct DeferredAnswers;

impl RequestHandler for DeferredAnswers {
    async fn command(
        &self,
        _: CommandExecutionRequestApprovalParams,
    ) -> Option<CommandExecutionApprovalDecision> {
        None
    }

    async fn file_change(
        &self,
        _: FileChangeRequestApprovalParams,
    ) -> Option<FileChangeApprovalDecision> {
        None
    }

    async fn permissions(
        &self,
        _: PermissionsRequestApprovalParams,
    ) -> Option<PermissionsRequestApprovalResponse> {
        None
    }

    async fn question(
        &self,
        _: ToolRequestUserInputParams,
    ) -> Option<ToolRequestUserInputResponse> {
        None
    }
}
