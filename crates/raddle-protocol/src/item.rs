//! Items: what a turn is made of.

mod event;
mod tool_output;

pub use event::*;
pub use tool_output::*;

use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::*;

tagged! {
    /// One thing that happened in a turn.
    /// Every item is one flat object with an `id`; `type` says which fields follow.
    pub enum ThreadItem by "type" {
        /// Input from the user.
        UserMessage(UserMessageItem) = "userMessage",
        /// Text that hooks put before the model.
        HookPrompt(HookPromptItem) = "hookPrompt",
        /// Text from the agent to the user.
        AgentMessage(AgentMessageItem) = "agentMessage",
        /// A tool's output that the client brought in with `turn/start`.
        FunctionCallOutput(FunctionCallOutputItem) = "functionCallOutput",
        /// A plan the agent proposes.
        Plan(PlanItem) = "plan",
        /// The model's thinking, as far as the provider shows it.
        Reasoning(ReasoningItem) = "reasoning",
        /// A command run by the agent or the user.
        CommandExecution(CommandExecutionItem) = "commandExecution",
        /// A patch to files of the workspace.
        FileChange(FileChangeItem) = "fileChange",
        /// A call of a tool on an MCP server.
        McpToolCall(McpToolCallItem) = "mcpToolCall",
        /// A call of a tool that the client runs.
        DynamicToolCall(DynamicToolCallItem) = "dynamicToolCall",
        /// A call by which one agent directs others.
        CollabAgentToolCall(CollabAgentToolCallItem) = "collabAgentToolCall",
        /// A note that something happened to a sub-agent.
        SubAgentActivity(SubAgentActivityItem) = "subAgentActivity",
        /// A search of the web, or a look at a page.
        WebSearch(WebSearchItem) = "webSearch",
        /// An image file the agent looked at.
        ImageView(ImageViewItem) = "imageView",
        /// A pause the agent asked for. An interrupt cuts it short.
        Sleep(SleepItem) = "sleep",
        /// An image the model made.
        ImageGeneration(ImageGenerationItem) = "imageGeneration",
        /// A review begins.
        EnteredReviewMode(EnteredReviewModeItem) = "enteredReviewMode",
        /// A review has ended.
        ExitedReviewMode(ExitedReviewModeItem) = "exitedReviewMode",
        /// Earlier history was condensed to make room in the model's context.
        ContextCompaction(ContextCompactionItem) = "contextCompaction",
    }
}

/// What the user sent with `turn/start` or `turn/steer`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UserMessageItem {
    /// The item's id, unique in its thread.
    pub id: ItemId,
    /// The parts of the message, in the order they were sent.
    pub content: Vec<UserInput>,
    /// The client's own id for it, as given in `clientUserMessageId`; null if none was given.
    pub client_id: Option<String>,
    /// When it ended, in milliseconds since the epoch; null while open or if not recorded.
    pub completed_at_ms: Option<i64>,
    /// When it started, in milliseconds since the epoch; null if not recorded.
    pub started_at_ms: Option<i64>,
}

/// Text that hooks put before the model, as if it were input.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookPromptItem {
    /// The item's id, unique in its thread.
    pub id: ItemId,
    /// One piece per hook run, in the order the model reads them.
    pub fragments: Vec<HookPromptFragment>,
    /// When it ended, in milliseconds since the epoch; null while open or if not recorded.
    pub completed_at_ms: Option<i64>,
    /// When it started, in milliseconds since the epoch; null if not recorded.
    pub started_at_ms: Option<i64>,
}

/// Text from the agent to the user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AgentMessageItem {
    /// The item's id, unique in its thread.
    pub id: ItemId,
    /// The message so far; all of it once the item is completed.
    pub text: String,
    /// How it reaches the user; null means in the ordinary course of the turn.
    pub delivery: Option<AgentMessageDelivery>,
    /// Memory files and threads the message drew on; null if none.
    pub memory_citation: Option<MemoryCitation>,
    /// What part of the answer it is; null if the model did not say.
    pub phase: Option<MessagePhase>,
    /// Questions to the user that the turn does not wait for; null if none.
    pub questions: Option<Vec<AsyncUserInputQuestion>>,
    /// When it ended, in milliseconds since the epoch; null while open or if not recorded.
    pub completed_at_ms: Option<i64>,
    /// When it started, in milliseconds since the epoch; null if not recorded.
    pub started_at_ms: Option<i64>,
}

/// What a message drew on.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemoryCitation {
    /// Passages of memory files.
    pub entries: Vec<MemoryCitationEntry>,
    /// Earlier threads, by id, as the model wrote them.
    pub thread_ids: Vec<String>,
}

/// A passage of a memory file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct MemoryCitationEntry {
    /// Its last line.
    pub line_end: u32,
    /// Its first line.
    pub line_start: u32,
    /// What it was used for.
    pub note: String,
    /// The file.
    pub path: String,
}

/// A question to the user that the turn does not wait for.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct AsyncUserInputQuestion {
    /// The question.
    pub title: String,
    /// Answers to choose from; null asks for free text.
    pub options: Option<Vec<String>>,
}

/// A tool's output that the client brought in with the `toolOutput` of `turn/start`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FunctionCallOutputItem {
    /// The item's id, unique in its thread.
    pub id: ItemId,
    /// The tool it comes from.
    pub name: String,
    /// What the tool gave back.
    pub output: FunctionCallOutputBody,
    /// The group the tool belongs to; null if it stands alone.
    pub namespace: Option<String>,
    /// When it ended, in milliseconds since the epoch; null while open or if not recorded.
    pub completed_at_ms: Option<i64>,
    /// When it started, in milliseconds since the epoch; null if not recorded.
    pub started_at_ms: Option<i64>,
}

/// A plan the agent proposes before it acts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct PlanItem {
    /// The item's id, unique in its thread.
    pub id: ItemId,
    /// The plan so far; all of it once the item is completed.
    pub text: String,
    /// When it ended, in milliseconds since the epoch; null while open or if not recorded.
    pub completed_at_ms: Option<i64>,
    /// When it started, in milliseconds since the epoch; null if not recorded.
    pub started_at_ms: Option<i64>,
}

/// The model's thinking, as far as the provider shows it. Both lists may stay empty.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReasoningItem {
    /// The item's id, unique in its thread.
    pub id: ItemId,
    /// The unabridged reasoning, part by part.
    #[serde(default, deserialize_with = "null_as_default")]
    pub content: Vec<String>,
    /// The provider's summary of it, part by part.
    #[serde(default, deserialize_with = "null_as_default")]
    pub summary: Vec<String>,
    /// When it ended, in milliseconds since the epoch; null while open or if not recorded.
    pub completed_at_ms: Option<i64>,
    /// When it started, in milliseconds since the epoch; null if not recorded.
    pub started_at_ms: Option<i64>,
}

/// A command run by the agent, or by the user through `thread/shellCommand`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CommandExecutionItem {
    /// The item's id, unique in its thread.
    pub id: ItemId,
    /// The terminal it runs in; null before it starts, or if it needs none.
    pub process_id: Option<String>,
    /// The whole command line as one string, quoted for a shell.
    pub command: String,
    /// A guess at what each part of the command does, for display. Decide nothing by it.
    pub command_actions: Vec<CommandAction>,
    /// The directory it runs in.
    pub cwd: String,
    /// How far it is, or how it ended.
    pub status: CommandExecutionStatus,
    /// Both output streams as one text; null as long as there is none to show.
    pub aggregated_output: Option<String>,
    /// How long it ran, in milliseconds; null until it ends.
    pub duration_ms: Option<i64>,
    /// The process's exit code; null until it ends, or if it never ran.
    pub exit_code: Option<i32>,
    /// The plugin whose script this is; null for any other command.
    pub plugin_id: Option<String>,
    /// The script's path inside that plugin; null for any other command.
    pub script_path: Option<String>,
    /// Who ran it, and how. Defaults to `agent`.
    #[serde(default, deserialize_with = "null_as_default")]
    pub source: CommandExecutionSource,
    /// When it ended, in milliseconds since the epoch; null while open or if not recorded.
    pub completed_at_ms: Option<i64>,
    /// When it started, in milliseconds since the epoch; null if not recorded.
    pub started_at_ms: Option<i64>,
}

/// A patch to one or more files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileChangeItem {
    /// The item's id, unique in its thread.
    pub id: ItemId,
    /// What happens to each file.
    pub changes: Vec<FileUpdateChange>,
    /// Whether the patch waits, was applied or was refused.
    pub status: PatchApplyStatus,
    /// When it ended, in milliseconds since the epoch; null while open or if not recorded.
    pub completed_at_ms: Option<i64>,
    /// When it started, in milliseconds since the epoch; null if not recorded.
    pub started_at_ms: Option<i64>,
}

/// A call of a tool on an MCP server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpToolCallItem {
    /// The item's id, unique in its thread.
    pub id: ItemId,
    /// What the tool was given: any JSON, usually an object.
    pub arguments: Value,
    /// The MCP server, as named in the configuration.
    pub server: String,
    /// How far the call is, or how it ended.
    pub status: McpToolCallStatus,
    /// The tool's name on that server.
    pub tool: String,
    /// The connector behind the tool and what it was used for; null if there is none.
    pub app_context: Option<Box<McpToolCallAppContext>>,
    /// How long the call took, in milliseconds; null until it ends.
    pub duration_ms: Option<i64>,
    /// Why the call failed; null unless it did.
    pub error: Option<McpToolCallError>,
    /// Older form of the resource named in `mcpAppUi`; null if there is none.
    pub mcp_app_resource_uri: Option<String>,
    /// The UI resource that shows the result, and whether inline or full screen; null if there is none.
    pub mcp_app_ui: Option<Box<McpAppUi>>,
    /// The plugin that brought the server; null if none did.
    pub plugin_id: Option<String>,
    /// The tool's own claim that it changes nothing; null if it claims neither.
    pub read_only_hint: Option<bool>,
    /// What the tool gave back; null until it does.
    pub result: Option<McpToolCallResult>,
    /// When it ended, in milliseconds since the epoch; null while open or if not recorded.
    pub completed_at_ms: Option<i64>,
    /// When it started, in milliseconds since the epoch; null if not recorded.
    pub started_at_ms: Option<i64>,
}

/// A call of a tool the client offered in `dynamicTools` and runs itself, asked by `item/tool/call`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct DynamicToolCallItem {
    /// The item's id, unique in its thread.
    pub id: ItemId,
    /// What the model passed to the tool: any JSON, usually an object.
    pub arguments: Value,
    /// How far the call is, or how it ended.
    pub status: DynamicToolCallStatus,
    /// The tool's name.
    pub tool: String,
    /// The client's answer, as the model reads it; null until it comes.
    pub content_items: Option<Vec<DynamicToolCallOutputContentItem>>,
    /// How long the client took, in milliseconds; null until it answers.
    pub duration_ms: Option<i64>,
    /// The group the tool belongs to; null if it stands alone.
    pub namespace: Option<String>,
    /// Whether the client called it a success; null until it answers.
    pub success: Option<bool>,
    /// When it ended, in milliseconds since the epoch; null while open or if not recorded.
    pub completed_at_ms: Option<i64>,
    /// When it started, in milliseconds since the epoch; null if not recorded.
    pub started_at_ms: Option<i64>,
}

/// A call by which one agent starts, addresses or stops others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CollabAgentToolCallItem {
    /// The item's id, unique in its thread.
    pub id: ItemId,
    /// The last known state of each agent addressed, by thread id. May be empty.
    pub agents_states: BTreeMap<String, CollabAgentState>,
    /// The threads of the agents addressed. For `spawnAgent`, the new one's.
    pub receiver_thread_ids: Vec<ThreadId>,
    /// The thread of the agent that made the call.
    pub sender_thread_id: ThreadId,
    /// How far the call is, or how it ended.
    pub status: CollabAgentToolCallStatus,
    /// What was asked of the others.
    pub tool: CollabAgentTool,
    /// The model asked for when starting an agent; null in other calls or if left open.
    pub model: Option<String>,
    /// The text sent to the others; null if none was.
    pub prompt: Option<String>,
    /// The effort asked for when starting an agent; null in other calls or if left open.
    #[schemars(length(min = 1))]
    pub reasoning_effort: Option<String>,
    /// When it ended, in milliseconds since the epoch; null while open or if not recorded.
    pub completed_at_ms: Option<i64>,
    /// When it started, in milliseconds since the epoch; null if not recorded.
    pub started_at_ms: Option<i64>,
}

/// A note in a thread that something happened to one of its sub-agents.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SubAgentActivityItem {
    /// The item's id, unique in its thread.
    pub id: ItemId,
    /// The sub-agent's place in the tree of agents.
    pub agent_path: String,
    /// The sub-agent's own thread.
    pub agent_thread_id: ThreadId,
    /// What happened.
    pub kind: SubAgentActivityKind,
    /// The model it was started with; null if unknown or if this is not about its start.
    pub model: Option<String>,
    /// The effort it was started with; null if unknown.
    #[schemars(length(min = 1))]
    pub reasoning_effort: Option<String>,
    /// When it ended, in milliseconds since the epoch; null while open or if not recorded.
    pub completed_at_ms: Option<i64>,
    /// When it started, in milliseconds since the epoch; null if not recorded.
    pub started_at_ms: Option<i64>,
}

/// A search of the web, or a look at a page, made by the model's provider or a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct WebSearchItem {
    /// The item's id, unique in its thread.
    pub id: ItemId,
    /// What was looked for.
    pub query: String,
    /// What exactly was done; null if not known yet.
    pub action: Option<WebSearchAction>,
    /// What was found, passed on as the search gave it; null if it gave no list.
    pub results: Option<Vec<Value>>,
    /// When it ended, in milliseconds since the epoch; null while open or if not recorded.
    pub completed_at_ms: Option<i64>,
    /// When it started, in milliseconds since the epoch; null if not recorded.
    pub started_at_ms: Option<i64>,
}

/// An image file the agent looked at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageViewItem {
    /// The item's id, unique in its thread.
    pub id: ItemId,
    /// Where the file is.
    pub path: String,
    /// When it ended, in milliseconds since the epoch; null while open or if not recorded.
    pub completed_at_ms: Option<i64>,
    /// When it started, in milliseconds since the epoch; null if not recorded.
    pub started_at_ms: Option<i64>,
}

/// A pause the agent asked for. An interrupt cuts it short.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SleepItem {
    /// The item's id, unique in its thread.
    pub id: ItemId,
    /// How long the agent meant to wait, in milliseconds.
    pub duration_ms: u64,
    /// When it ended, in milliseconds since the epoch; null while open or if not recorded.
    pub completed_at_ms: Option<i64>,
    /// When it started, in milliseconds since the epoch; null if not recorded.
    pub started_at_ms: Option<i64>,
}

/// An image the model made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageGenerationItem {
    /// The item's id, unique in its thread.
    pub id: ItemId,
    /// The provider's own word for how far it is.
    pub status: String,
    /// Why there is no image, such as a usage limit with its reset time; null if nothing failed.
    pub failure: Option<ImageGenerationFailure>,
    /// The provider's id for this image; null if it gave none.
    pub generation_id: Option<String>,
    /// Local images the model worked from. Empty if there were none or they were not recorded.
    #[serde(default, deserialize_with = "null_as_default")]
    pub input_images: Vec<ImageGenerationInputImage>,
    /// The prompt as the provider rewrote it; null if it did not.
    pub revised_prompt: Option<String>,
    /// Absolute path of the file it was saved to; null if it was not.
    pub saved_path: Option<String>,
    /// Whether the image has a transparent background; null if not known.
    pub transparent_background: Option<bool>,
    /// When it ended, in milliseconds since the epoch; null while open or if not recorded.
    pub completed_at_ms: Option<i64>,
    /// When it started, in milliseconds since the epoch; null if not recorded.
    pub started_at_ms: Option<i64>,
    /// Where the image is.
    #[serde(flatten)]
    pub image: GeneratedImage,
}

/// Where a generated image is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
pub enum GeneratedImage {
    /// In a stored file.
    #[serde(rename_all = "camelCase")]
    File {
        /// The file's id.
        file_id: String,
    },
    /// In the item itself.
    Inline {
        /// The image in base64; empty as long as there is none.
        result: String,
    },
}

/// The start of a review asked for with `review/start`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct EnteredReviewModeItem {
    /// The item's id, unique in its thread.
    pub id: ItemId,
    /// What is being reviewed, in words for the user.
    pub review: String,
    /// When it ended, in milliseconds since the epoch; null while open or if not recorded.
    pub completed_at_ms: Option<i64>,
    /// When it started, in milliseconds since the epoch; null if not recorded.
    pub started_at_ms: Option<i64>,
}

/// The end of a review.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ExitedReviewModeItem {
    /// The item's id, unique in its thread.
    pub id: ItemId,
    /// The outcome of the review, as text.
    pub review: String,
    /// When it ended, in milliseconds since the epoch; null while open or if not recorded.
    pub completed_at_ms: Option<i64>,
    /// When it started, in milliseconds since the epoch; null if not recorded.
    pub started_at_ms: Option<i64>,
}

/// A mark where earlier history was condensed, by itself or through `thread/compact/start`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ContextCompactionItem {
    /// The item's id, unique in its thread.
    pub id: ItemId,
    /// When it ended, in milliseconds since the epoch; null while open or if not recorded.
    pub completed_at_ms: Option<i64>,
    /// When it started, in milliseconds since the epoch; null if not recorded.
    pub started_at_ms: Option<i64>,
}

/// What a patch does to one file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileUpdateChange {
    /// A unified diff for an update; for an added file, simply its content.
    pub diff: String,
    /// Whether the file is added, deleted or updated.
    pub kind: PatchChangeKind,
    /// The file, before any move.
    pub path: String,
}

tagged! {
    /// What one part of a command seems to do: a guess for display, never a basis for a decision.
    pub enum CommandAction by "type" {
        /// Shows a file.
        Read(ReadCommandAction) = "read",
        /// Lists files.
        ListFiles(ListFilesCommandAction) = "listFiles",
        /// Looks for text or for files.
        Search(SearchCommandAction) = "search",
        /// Anything else.
        Unknown(UnknownCommandAction) = "unknown",
    }
}

/// Part of a command that shows a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ReadCommandAction {
    /// That part of the command line.
    pub command: String,
    /// A short name of the file, for display.
    pub name: String,
    /// The file it reads.
    pub path: String,
}

/// Part of a command that lists files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ListFilesCommandAction {
    /// That part of the command line.
    pub command: String,
    /// The folder it lists; null if it names none.
    pub path: Option<String>,
}

/// Part of a command that looks for text or for files.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchCommandAction {
    /// That part of the command line.
    pub command: String,
    /// Where it looks; null if it names no place.
    pub path: Option<String>,
    /// What it looks for; null if that could not be told.
    pub query: Option<String>,
}

/// Part of a command that was not recognised.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UnknownCommandAction {
    /// That part of the command line.
    pub command: String,
}

tagged! {
    /// One part of what a client-run tool gives back to the model.
    pub enum DynamicToolCallOutputContentItem by "type" {
        /// Text.
        InputText(InputTextDynamicToolCallOutputContentItem) = "inputText",
        /// An image.
        InputImage(InputImageDynamicToolCallOutputContentItem) = "inputImage",
        /// A sound.
        InputAudio(InputAudioDynamicToolCallOutputContentItem) = "inputAudio",
    }
}

/// Text from a client-run tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InputTextDynamicToolCallOutputContentItem {
    /// The text the model reads.
    pub text: String,
}

/// An image from a client-run tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InputImageDynamicToolCallOutputContentItem {
    /// Where the image is, usually a `data:` URL holding it.
    pub image_url: String,
}

/// A sound from a client-run tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct InputAudioDynamicToolCallOutputContentItem {
    /// Where the sound is, usually a `data:` URL holding it.
    pub audio_url: String,
}

/// What one hook run put before the model.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct HookPromptFragment {
    /// The run it came from.
    pub hook_run_id: String,
    /// The text the model reads.
    pub text: String,
}

open_enum! {
    /// How an agent message reaches the user.
    pub enum AgentMessageDelivery {
        /// Beside the work: the turn goes on and waits for no reply.
        Async = "async",
    }
}

open_enum! {
    /// What part an agent message plays in the turn. Not every model says, so be ready for null.
    pub enum MessagePhase {
        /// Talk along the way, such as what comes next. More work may follow.
        Commentary = "commentary",
        /// A piece of the answer that stands, though more may be added.
        PartialAnswer = "partial_answer",
        /// The answer that ends the turn.
        FinalAnswer = "final_answer",
    }
}

open_enum! {
    /// How far a command is, or how it ended.
    pub enum CommandExecutionStatus {
        /// Running, or waiting for approval.
        InProgress = "inProgress",
        /// Ended with exit code 0.
        Completed = "completed",
        /// Ended with another exit code, or could not be run.
        Failed = "failed",
        /// Refused before it ran.
        Declined = "declined",
    }
}

open_enum! {
    /// Who ran a command, and how.
    pub enum CommandExecutionSource or Agent {
        /// The agent, as a single command.
        Agent = "agent",
        /// The user, through `thread/shellCommand`.
        UserShell = "userShell",
        /// The agent, in a terminal that can go on running after the call returns.
        UnifiedExecStartup = "unifiedExecStartup",
        /// The agent, by typing into a terminal already open.
        UnifiedExecInteraction = "unifiedExecInteraction",
    }
}

open_enum! {
    /// How far a patch is, or how it ended.
    pub enum PatchApplyStatus {
        /// Being applied, or waiting for approval.
        InProgress = "inProgress",
        /// Applied.
        Completed = "completed",
        /// Could not be applied.
        Failed = "failed",
        /// Refused before any file was touched.
        Declined = "declined",
    }
}

open_enum! {
    /// How far a call of an MCP tool is, or how it ended.
    pub enum McpToolCallStatus {
        /// Still running, or waiting for approval.
        InProgress = "inProgress",
        /// The tool gave a result.
        Completed = "completed",
        /// The tool, or the way to it, failed.
        Failed = "failed",
    }
}

/// Why a call of an MCP tool failed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpToolCallError {
    /// The reason, for a person to read.
    pub message: String,
}

/// What an MCP tool gave back, as MCP shapes it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct McpToolCallResult {
    /// Content blocks in the tool's order, passed on unchanged.
    pub content: Vec<Value>,
    /// The server's `_meta`, passed on unchanged; null if it sent none.
    #[serde(rename = "_meta")]
    pub meta: Option<Value>,
    /// The result as JSON by the tool's own output schema; null if it sent none.
    pub structured_content: Option<Value>,
}

open_enum! {
    /// How far a call of a client-run tool is, or how it ended.
    pub enum DynamicToolCallStatus {
        /// The client has not answered yet.
        InProgress = "inProgress",
        /// The client answered with success.
        Completed = "completed",
        /// The client reported failure or gave no usable answer.
        Failed = "failed",
    }
}

/// What is known of an agent that was addressed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct CollabAgentState {
    /// What the agent is doing.
    pub status: CollabAgentStatus,
    /// Its last word or its error, by `status`; null if there is none.
    pub message: Option<String>,
}

open_enum! {
    /// How far a call to other agents is, or how it ended.
    pub enum CollabAgentToolCallStatus {
        /// Still under way.
        InProgress = "inProgress",
        /// Done.
        Completed = "completed",
        /// Could not be done.
        Failed = "failed",
        /// Cut short by an interrupt.
        Interrupted = "interrupted",
    }
}

open_enum! {
    /// What one agent can ask of others.
    pub enum CollabAgentTool {
        /// Start a new agent in a thread of its own.
        SpawnAgent = "spawnAgent",
        /// Give an agent input to work on.
        SendInput = "sendInput",
        /// Bring back an agent that was closed.
        ResumeAgent = "resumeAgent",
        /// Wait until agents have something to report.
        Wait = "wait",
        /// End an agent.
        CloseAgent = "closeAgent",
        /// Leave an agent a message without giving it a new task.
        SendMessage = "sendMessage",
        /// Give an agent its next task.
        FollowupTask = "followupTask",
        /// Stop what an agent is doing but keep the agent.
        InterruptAgent = "interruptAgent",
        /// List the agents there are.
        ListAgents = "listAgents",
    }
}

open_enum! {
    /// What happened to a sub-agent.
    pub enum SubAgentActivityKind {
        /// It was started.
        Started = "started",
        /// It was sent something.
        Interacted = "interacted",
        /// It was stopped in its work.
        Interrupted = "interrupted",
        /// It finished its work.
        Completed = "completed",
    }
}

tagged! {
    /// What was done on the web.
    pub enum WebSearchAction by "type" {
        /// Searched.
        Search(SearchWebSearchAction) = "search",
        /// Opened a page.
        OpenPage(OpenPageWebSearchAction) = "openPage",
        /// Looked for text in a page.
        FindInPage(FindInPageWebSearchAction) = "findInPage",
        /// Something else.
        Other = "other",
    }
}

/// A search of the web.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct SearchWebSearchAction {
    /// All search terms, where several were tried at once; otherwise null.
    pub queries: Option<Vec<String>>,
    /// The search term; null if only `queries` is given or it is not known.
    pub query: Option<String>,
}

/// A page was opened.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct OpenPageWebSearchAction {
    /// The page's address; null if not known.
    pub url: Option<String>,
}

/// Text was looked for in a page.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct FindInPageWebSearchAction {
    /// What was looked for; null if not known.
    pub pattern: Option<String>,
    /// The page's address; null if not known.
    pub url: Option<String>,
}

tagged! {
    /// Why an image was not made.
    pub enum ImageGenerationFailure by "type" {
        /// The account's allowance for images is used up.
        UsageLimitExceeded(UsageLimitExceededImageGenerationFailure) = "usageLimitExceeded",
    }
}

/// An allowance that is used up.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UsageLimitExceededImageGenerationFailure {
    /// Which allowance.
    pub limit_id: String,
    /// When it is renewed, in seconds since the epoch; null if not known.
    pub resets_at: Option<i64>,
}

/// A local image the model worked from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct ImageGenerationInputImage {
    /// Absolute path of the file.
    pub path: String,
    /// SHA-256 of the file as it was on disk, in lower-case hex.
    pub sha256: String,
}

tagged! {
    /// What a patch does with a file.
    pub enum PatchChangeKind by "type" {
        /// Creates it.
        Add = "add",
        /// Removes it.
        Delete = "delete",
        /// Changes its content, moves it, or both.
        Update(UpdatePatchChangeKind) = "update",
    }
}

/// A change to a file that exists.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
pub struct UpdatePatchChangeKind {
    /// Where the file goes; null if it stays in place.
    #[serde(rename = "move_path")]
    pub move_path: Option<String>,
}

open_enum! {
    /// What an agent is doing.
    pub enum CollabAgentStatus {
        /// Being set up; it has not begun.
        PendingInit = "pendingInit",
        /// At work.
        Running = "running",
        /// Stopped in its work; it can be given more.
        Interrupted = "interrupted",
        /// Done with its task.
        Completed = "completed",
        /// Ended by an error.
        Errored = "errored",
        /// Closed.
        Shutdown = "shutdown",
        /// There is no such agent.
        NotFound = "notFound",
    }
}
