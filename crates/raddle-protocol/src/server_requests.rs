//! The server-request table: every request that the server may send to a client, declared once.

use crate::table::{ServerMethod, ServerRequestRow};
use crate::*;

server_requests! {
    /// Requests approval to run a command.
    "item/commandExecution/requestApproval" => ItemCommandExecutionRequestApproval(CommandExecutionRequestApprovalParams) -> CommandExecutionRequestApprovalResponse;

    /// Requests approval to change files.
    "item/fileChange/requestApproval" => ItemFileChangeRequestApproval(FileChangeRequestApprovalParams) -> FileChangeRequestApprovalResponse;

    /// Requests permissions for the turn.
    "item/permissions/requestApproval" => ItemPermissionsRequestApproval(PermissionsRequestApprovalParams) -> PermissionsRequestApprovalResponse;

    /// Asks the user questions of the agent.
    "item/tool/requestUserInput" => ItemToolRequestUserInput(ToolRequestUserInputParams) -> ToolRequestUserInputResponse;

    /// Runs a tool that the client hosts.
    "item/tool/call" => ItemToolCall(DynamicToolCallParams) -> DynamicToolCallResponse;

    /// Asks the user a question of an MCP server.
    "mcpServer/elicitation/request" => McpServerElicitationRequest(McpServerElicitationRequestParams) -> McpServerElicitationRequestResponse;
}
