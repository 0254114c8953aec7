//! The server-request table: everything the server may ask of a client, declared once.

use crate::table::{ServerMethod, ServerRequestRow};
use crate::*;

server_requests! {
    /// May this command run?
    "item/commandExecution/requestApproval" => ItemCommandExecutionRequestApproval(CommandExecutionRequestApprovalParams) -> CommandExecutionRequestApprovalResponse;

    /// May these files be changed?
    "item/fileChange/requestApproval" => ItemFileChangeRequestApproval(FileChangeRequestApprovalParams) -> FileChangeRequestApprovalResponse;

    /// May the turn have these permissions?
    "item/permissions/requestApproval" => ItemPermissionsRequestApproval(PermissionsRequestApprovalParams) -> PermissionsRequestApprovalResponse;

    /// What does the user answer?
    "item/tool/requestUserInput" => ItemToolRequestUserInput(ToolRequestUserInputParams) -> ToolRequestUserInputResponse;

    /// Run this tool, which the client hosts.
    "item/tool/call" => ItemToolCall(DynamicToolCallParams) -> DynamicToolCallResponse;

    /// What does the user answer an MCP server?
    "mcpServer/elicitation/request" => McpServerElicitationRequest(McpServerElicitationRequestParams) -> McpServerElicitationRequestResponse;
}
