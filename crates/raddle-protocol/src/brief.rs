//! Constructors for params with many members: the required members as arguments, defaults for the
//! rest.

use crate::*;

impl ThreadResumeParams {
    /// Resumes the thread in its current state, with its current settings.
    pub fn of(thread_id: ThreadId) -> Self {
        Self {
            thread_id,
            after_seq: None,
            approval_policy: None,
            approvals_reviewer: None,
            base_instructions: None,
            config: None,
            cwd: None,
            developer_instructions: None,
            exclude_turns: false,
            history: None,
            initial_turns_page: None,
            model: None,
            model_provider: None,
            path: None,
            permissions: None,
            personality: None,
            runtime_workspace_roots: None,
            sandbox: None,
            service_tier: Maybe::Absent,
        }
    }
}

impl TurnStartParams {
    /// Sends input to a thread, with its current settings.
    pub fn of(thread_id: ThreadId, input: Vec<UserInput>) -> Self {
        Self {
            thread_id,
            input,
            additional_context: None,
            approval_policy: None,
            approvals_reviewer: None,
            client_user_message_id: None,
            collaboration_mode: None,
            cwd: None,
            cyber_access_program: None,
            disabled_plugin_ids: None,
            effort: None,
            environments: None,
            model: None,
            model_provider: None,
            multi_agent_mode: None,
            output_schema: None,
            parent_turn_id: None,
            permissions: None,
            personality: None,
            responsesapi_client_metadata: None,
            responsesapi_client_metadata_patch: None,
            root_turn_id: None,
            runtime_workspace_roots: None,
            sandbox_policy: None,
            service_tier: Maybe::Absent,
            service_tier_for_turn: None,
            summary: None,
            tool_output: None,
            turn_trigger: None,
            client_request_id: None,
        }
    }
}

impl UserInput {
    /// Creates a text input without special elements.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text(TextUserInput {
            text: text.into(),
            text_elements: Vec::new(),
        })
    }
}
