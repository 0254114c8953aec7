//! Items as they are on the wire.

use raddle_protocol as wire;
use raddle_protocol::ThreadItem;
use serde_json::Value;

use crate::{
    Action, ChangeKind, CommandRun, CommandSource, Image, Input, Item, ItemBody, ItemStatus,
    McpCall, Output, Patch, Phase, QueuedInput, WebAction,
};

/// Converts an open item, without the text that its deltas carry.
pub(super) fn open(item: &Item) -> ThreadItem {
    let mut item = item.clone();
    item.completed_at = None;
    match &mut item.body {
        ItemBody::AgentMessage(message) => message.text.clear(),
        ItemBody::Plan(plan) => plan.text.clear(),
        ItemBody::Reasoning(reasoning) => {
            reasoning.summary.clear();
            reasoning.content.clear();
        }
        _ => {}
    }
    whole(&item)
}

/// Converts an item with all its content.
pub(super) fn whole(item: &Item) -> ThreadItem {
    let id = item.id.clone();
    let started_at_ms = Some(item.started_at.0);
    let completed_at_ms = item.completed_at.map(|at| at.0);
    match &item.body {
        ItemBody::UserMessage(it) => ThreadItem::UserMessage(wire::UserMessageItem {
            id,
            content: it.input.iter().map(input).collect(),
            client_id: it.client_id.clone(),
            completed_at_ms,
            started_at_ms,
        }),
        ItemBody::HookPrompt(it) => ThreadItem::HookPrompt(wire::HookPromptItem {
            id,
            fragments: it
                .pieces
                .iter()
                .map(|piece| wire::HookPromptFragment {
                    hook_run_id: piece.run.clone(),
                    text: piece.text.clone(),
                })
                .collect(),
            completed_at_ms,
            started_at_ms,
        }),
        ItemBody::AgentMessage(it) => ThreadItem::AgentMessage(wire::AgentMessageItem {
            id,
            text: it.text.clone(),
            delivery: None,
            memory_citation: None,
            phase: it.phase.map(phase),
            questions: None,
            completed_at_ms,
            started_at_ms,
        }),
        ItemBody::ToolOutput(it) => ThreadItem::FunctionCallOutput(wire::FunctionCallOutputItem {
            id,
            name: it.name.clone(),
            output: serde_json::from_value(it.output.clone())
                .unwrap_or_else(|_| wire::FunctionCallOutputBody::Text(it.output.to_string())),
            namespace: it.namespace.clone(),
            completed_at_ms,
            started_at_ms,
        }),
        ItemBody::Plan(it) => ThreadItem::Plan(wire::PlanItem {
            id,
            text: it.text.clone(),
            completed_at_ms,
            started_at_ms,
        }),
        ItemBody::Reasoning(it) => ThreadItem::Reasoning(wire::ReasoningItem {
            id,
            content: it.content.clone(),
            summary: it.summary.clone(),
            completed_at_ms,
            started_at_ms,
        }),
        ItemBody::Command(it) => command(item, it),
        ItemBody::Patch(it) => patch(item, it),
        ItemBody::Mcp(it) => mcp(item, it),
        ItemBody::ClientTool(it) => ThreadItem::DynamicToolCall(wire::DynamicToolCallItem {
            id,
            arguments: it.arguments.clone(),
            status: dynamic_status(item.status),
            tool: it.tool.clone(),
            // Where the client returned nothing, the output for the model gives the reason.
            content_items: match &it.content {
                Some(content) => serde_json::from_value(content.clone()).ok(),
                None => item.output.as_ref().map(text_of),
            },
            duration_ms: it.duration_ms,
            namespace: it.namespace.clone(),
            success: success(item.status),
            completed_at_ms,
            started_at_ms,
        }),
        ItemBody::Agents(it) => ThreadItem::CollabAgentToolCall(wire::CollabAgentToolCallItem {
            id,
            agents_states: it
                .states
                .iter()
                .map(|state| {
                    let wire_state = wire::CollabAgentState {
                        status: state.status.as_str().into(),
                        message: state.message.clone(),
                    };
                    (state.thread.to_string(), wire_state)
                })
                .collect(),
            receiver_thread_ids: it.receivers.clone(),
            sender_thread_id: it.sender,
            status: match item.status {
                ItemStatus::InProgress => wire::CollabAgentToolCallStatus::InProgress,
                ItemStatus::Completed => wire::CollabAgentToolCallStatus::Completed,
                ItemStatus::Interrupted | ItemStatus::NotRun => {
                    wire::CollabAgentToolCallStatus::Interrupted
                }
                ItemStatus::Partial
                | ItemStatus::Failed
                | ItemStatus::Declined
                | ItemStatus::Unknown => wire::CollabAgentToolCallStatus::Failed,
            },
            tool: it.tool.as_str().into(),
            model: it.model.clone(),
            prompt: it.prompt.clone(),
            reasoning_effort: it.effort.clone(),
            completed_at_ms,
            started_at_ms,
        }),
        ItemBody::AgentNote(it) => ThreadItem::SubAgentActivity(wire::SubAgentActivityItem {
            id,
            agent_path: it.path.clone(),
            agent_thread_id: it.thread,
            kind: it.kind.as_str().into(),
            model: it.model.clone(),
            reasoning_effort: it.effort.clone(),
            completed_at_ms,
            started_at_ms,
        }),
        ItemBody::WebSearch(it) => ThreadItem::WebSearch(wire::WebSearchItem {
            id,
            query: it.query.clone(),
            action: it.action.as_ref().map(web_action),
            results: it.results.clone(),
            completed_at_ms,
            started_at_ms,
        }),
        ItemBody::ImageView(it) => ThreadItem::ImageView(wire::ImageViewItem {
            id,
            path: it.path.clone(),
            completed_at_ms,
            started_at_ms,
        }),
        ItemBody::Sleep(it) => ThreadItem::Sleep(wire::SleepItem {
            id,
            duration_ms: it.duration_ms,
            completed_at_ms,
            started_at_ms,
        }),
        ItemBody::ImageMade(it) => ThreadItem::ImageGeneration(wire::ImageGenerationItem {
            id,
            status: it.stage.clone(),
            failure: None,
            generation_id: None,
            input_images: Vec::new(),
            revised_prompt: it.prompt.clone(),
            saved_path: it.saved.clone(),
            transparent_background: None,
            completed_at_ms,
            started_at_ms,
            image: match &it.image {
                Some(Image::File { id: file_id }) => wire::GeneratedImage::File {
                    file_id: file_id.clone(),
                },
                Some(Image::Url { url: result }) => wire::GeneratedImage::Inline {
                    result: result.clone(),
                },
                // The file is at the saved path.
                Some(Image::Blob(_) | Image::Path { .. }) | None => wire::GeneratedImage::Inline {
                    result: String::new(),
                },
            },
        }),
        ItemBody::ReviewEntered(it) => ThreadItem::EnteredReviewMode(wire::EnteredReviewModeItem {
            id,
            review: it.text.clone(),
            completed_at_ms,
            started_at_ms,
        }),
        ItemBody::ReviewLeft(it) => ThreadItem::ExitedReviewMode(wire::ExitedReviewModeItem {
            id,
            review: it.text.clone(),
            findings: Some(crate::review::findings(it)).filter(|it| !it.is_empty()),
            completed_at_ms,
            started_at_ms,
        }),
        ItemBody::Compaction {} => ThreadItem::ContextCompaction(wire::ContextCompactionItem {
            id,
            completed_at_ms,
            started_at_ms,
        }),
        // The wire has no item for a tool without a type; this one shows name, arguments and text.
        ItemBody::Tool(it) => ThreadItem::DynamicToolCall(wire::DynamicToolCallItem {
            id,
            arguments: item.call.as_ref().map_or(Value::Null, |call| {
                serde_json::from_str(&call.arguments)
                    .unwrap_or_else(|_| Value::String(call.arguments.clone()))
            }),
            status: dynamic_status(item.status),
            tool: it.name.clone(),
            content_items: item.output.as_ref().map(text_of),
            duration_ms: duration(item),
            namespace: None,
            success: success(item.status),
            completed_at_ms,
            started_at_ms,
        }),
    }
}

fn command(item: &Item, it: &CommandRun) -> ThreadItem {
    ThreadItem::CommandExecution(wire::CommandExecutionItem {
        id: item.id.clone(),
        process_id: it.terminal.clone(),
        command: it.command.clone(),
        command_actions: actions(&it.actions),
        cwd: it.cwd.clone(),
        status: match item.status {
            ItemStatus::InProgress => wire::CommandExecutionStatus::InProgress,
            ItemStatus::Completed => wire::CommandExecutionStatus::Completed,
            ItemStatus::Declined | ItemStatus::NotRun => wire::CommandExecutionStatus::Declined,
            ItemStatus::Partial
            | ItemStatus::Failed
            | ItemStatus::Interrupted
            | ItemStatus::Unknown => wire::CommandExecutionStatus::Failed,
        },
        aggregated_output: it.printed.clone(),
        duration_ms: it.duration_ms,
        exit_code: it.exit_code,
        plugin_id: None,
        script_path: None,
        source: match it.source {
            CommandSource::Agent => wire::CommandExecutionSource::Agent,
            CommandSource::User => wire::CommandExecutionSource::UserShell,
            CommandSource::Terminal => wire::CommandExecutionSource::UnifiedExecStartup,
            CommandSource::Typed => wire::CommandExecutionSource::UnifiedExecInteraction,
        },
        completed_at_ms: item.completed_at.map(|at| at.0),
        started_at_ms: Some(item.started_at.0),
    })
}

fn patch(item: &Item, it: &Patch) -> ThreadItem {
    let changes = it.changes.iter().map(|change| wire::FileUpdateChange {
        diff: change.diff.clone(),
        kind: match &change.kind {
            ChangeKind::Add {} => wire::PatchChangeKind::Add,
            ChangeKind::Delete {} => wire::PatchChangeKind::Delete,
            ChangeKind::Update { moved_to } => {
                wire::PatchChangeKind::Update(wire::UpdatePatchChangeKind {
                    move_path: moved_to.clone(),
                })
            }
        },
        path: change.path.clone(),
    });
    ThreadItem::FileChange(wire::FileChangeItem {
        id: item.id.clone(),
        changes: changes.collect(),
        status: match item.status {
            ItemStatus::InProgress => wire::PatchApplyStatus::InProgress,
            ItemStatus::Completed => wire::PatchApplyStatus::Completed,
            ItemStatus::Declined | ItemStatus::NotRun => wire::PatchApplyStatus::Declined,
            ItemStatus::Partial
            | ItemStatus::Failed
            | ItemStatus::Interrupted
            | ItemStatus::Unknown => wire::PatchApplyStatus::Failed,
        },
        completed_at_ms: item.completed_at.map(|at| at.0),
        started_at_ms: Some(item.started_at.0),
    })
}

fn mcp(item: &Item, it: &McpCall) -> ThreadItem {
    let result = it.result.clone();
    ThreadItem::McpToolCall(wire::McpToolCallItem {
        id: item.id.clone(),
        arguments: it.arguments.clone(),
        server: it.server.clone(),
        status: match item.status {
            ItemStatus::InProgress => wire::McpToolCallStatus::InProgress,
            ItemStatus::Completed => wire::McpToolCallStatus::Completed,
            ItemStatus::Partial
            | ItemStatus::Failed
            | ItemStatus::Declined
            | ItemStatus::NotRun
            | ItemStatus::Interrupted
            | ItemStatus::Unknown => wire::McpToolCallStatus::Failed,
        },
        tool: it.tool.clone(),
        app_context: None,
        duration_ms: it.duration_ms,
        error: it
            .error
            .clone()
            .map(|message| wire::McpToolCallError { message }),
        mcp_app_resource_uri: None,
        mcp_app_ui: None,
        plugin_id: None,
        read_only_hint: None,
        result: result.and_then(|result| serde_json::from_value(result).ok()),
        completed_at_ms: item.completed_at.map(|at| at.0),
        started_at_ms: Some(item.started_at.0),
    })
}

fn dynamic_status(status: ItemStatus) -> wire::DynamicToolCallStatus {
    match status {
        ItemStatus::InProgress => wire::DynamicToolCallStatus::InProgress,
        ItemStatus::Completed => wire::DynamicToolCallStatus::Completed,
        ItemStatus::Partial
        | ItemStatus::Failed
        | ItemStatus::Declined
        | ItemStatus::NotRun
        | ItemStatus::Interrupted
        | ItemStatus::Unknown => wire::DynamicToolCallStatus::Failed,
    }
}

fn success(status: ItemStatus) -> Option<bool> {
    (status != ItemStatus::InProgress).then_some(status == ItemStatus::Completed)
}

fn duration(item: &Item) -> Option<i64> {
    item.completed_at.map(|at| at.since(item.started_at))
}

fn text_of(output: &Output) -> Vec<wire::DynamicToolCallOutputContentItem> {
    let text = wire::InputTextDynamicToolCallOutputContentItem {
        text: output.text.clone(),
    };
    vec![wire::DynamicToolCallOutputContentItem::InputText(text)]
}

fn phase(phase: Phase) -> wire::MessagePhase {
    match phase {
        Phase::Commentary => wire::MessagePhase::Commentary,
        Phase::PartialAnswer => wire::MessagePhase::PartialAnswer,
        Phase::FinalAnswer => wire::MessagePhase::FinalAnswer,
    }
}

fn web_action(action: &WebAction) -> wire::WebSearchAction {
    match action {
        WebAction::Search { queries } => {
            wire::WebSearchAction::Search(wire::SearchWebSearchAction {
                queries: (queries.len() > 1).then(|| queries.clone()),
                query: queries.first().cloned(),
            })
        }
        WebAction::Open { url } => {
            wire::WebSearchAction::OpenPage(wire::OpenPageWebSearchAction { url: url.clone() })
        }
        WebAction::Find { url, pattern } => {
            wire::WebSearchAction::FindInPage(wire::FindInPageWebSearchAction {
                pattern: pattern.clone(),
                url: url.clone(),
            })
        }
        WebAction::Other {} => wire::WebSearchAction::Other,
    }
}

pub(super) fn actions(actions: &[Action]) -> Vec<wire::CommandAction> {
    let wire_actions = actions.iter().map(|action| match action {
        Action::Read {
            command,
            name,
            path,
        } => wire::CommandAction::Read(wire::ReadCommandAction {
            command: command.clone(),
            name: name.clone(),
            path: path.clone(),
        }),
        Action::List { command, path } => {
            wire::CommandAction::ListFiles(wire::ListFilesCommandAction {
                command: command.clone(),
                path: path.clone(),
            })
        }
        Action::Search {
            command,
            query,
            path,
        } => wire::CommandAction::Search(wire::SearchCommandAction {
            command: command.clone(),
            path: path.clone(),
            query: query.clone(),
        }),
        Action::Other { command } => wire::CommandAction::Unknown(wire::UnknownCommandAction {
            command: command.clone(),
        }),
    });
    wire_actions.collect()
}

/// Converts queued input to its form on the wire.
pub fn queued_view(queued: &QueuedInput) -> wire::QueuedSubmission {
    wire::QueuedSubmission {
        id: queued.item.to_string(),
        client_user_message_id: queued.client_id.clone().unwrap_or_default(),
        input: queued.input.iter().map(input).collect(),
    }
}

fn input(input: &Input) -> wire::UserInput {
    match input {
        Input::Text { text, marks } => wire::UserInput::Text(wire::TextUserInput {
            text: text.clone(),
            text_elements: marks
                .clone()
                .and_then(|marks| serde_json::from_value(marks).ok())
                .unwrap_or_default(),
        }),
        Input::Image {
            image,
            detail,
            path,
        } => image_input(image, detail.as_deref(), path.as_deref()),
        Input::Audio { url } => wire::UserInput::Audio(wire::AudioUserInput { url: url.clone() }),
        Input::AudioFile { path } => {
            wire::UserInput::LocalAudio(wire::LocalAudioUserInput { path: path.clone() })
        }
        Input::Skill { name, path } => wire::UserInput::Skill(wire::SkillUserInput {
            name: name.clone(),
            path: path.clone(),
        }),
        Input::Mention { name, path } => wire::UserInput::Mention(wire::MentionUserInput {
            name: name.clone(),
            path: path.clone(),
        }),
    }
}

fn image_input(image: &Image, detail: Option<&str>, path: Option<&str>) -> wire::UserInput {
    let detail = detail.map(wire::ImageDetail::from);
    let file = |path: &str, detail| {
        let path = path.to_owned();
        wire::UserInput::LocalImage(wire::LocalImageUserInput { path, detail })
    };
    if let Some(path) = path {
        return file(path, detail);
    }
    let image = match image {
        Image::Path { path } => return file(path, detail),
        Image::File { id: file_id } => wire::InputImage::File {
            file_id: file_id.clone(),
        },
        Image::Url { url } => wire::InputImage::Url { url: url.clone() },
        Image::Blob(blob) => wire::InputImage::Url { url: blob.url() },
    };
    wire::UserInput::Image(wire::ImageUserInput { detail, image })
}
