//! Items, the parts of a turn.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::is_false;
use crate::policy::Ruling;
use crate::{ItemId, ThreadId, Timestamp, TurnId};

/// One item of a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Item {
    /// Id of the item, unique in the thread.
    pub id: ItemId,
    /// Progress of the item, or how it ended.
    pub status: ItemStatus,
    /// Content of the item.
    pub body: ItemBody,
    /// The model's call that it carries out; `None` for an item without a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<ToolCall>,
    /// Output of the call, as the model got it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Output>,
    /// Opaque data of the model's vendor; returned to that vendor and to no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<Sealed>,
    /// Time at which it started.
    pub started_at: Timestamp,
    /// Time at which it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
}

/// Tools whose calls are shown as their effect, a plan or a question, and not as items. A test of
/// `raddle-tools/src/registry.rs` compares it with the table of tools.
const HIDDEN_TOOLS: &[&str] = &["update_plan", "request_user_input", "ask_user"];

impl Item {
    /// Whether clients show it in another way than as an item.
    pub fn is_hidden(&self) -> bool {
        matches!(&self.body, ItemBody::Tool(it) if HIDDEN_TOOLS.contains(&it.name.as_str()))
    }

    /// Whether it is a command that the user runs.
    pub fn is_users_command(&self) -> bool {
        matches!(&self.body, ItemBody::Command(it) if it.source == CommandSource::User)
    }
}

/// Progress of an item, or how it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ItemStatus {
    /// The item is open.
    InProgress,
    /// The item is complete.
    Completed,
    /// Cut off; the text so far is kept.
    Partial,
    /// It ran and failed.
    Failed,
    /// The user or the policy declined it.
    Declined,
    /// Never started, because its turn ended first.
    NotRun,
    /// Ended by an interrupt.
    Interrupted,
    /// Started, with an unknown outcome.
    Unknown,
}

/// A tool call as the model made it.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolCall {
    /// The model's id for the call.
    pub id: String,
    /// The tool's name as the model knows it.
    pub tool: String,
    /// The arguments, exactly as the model wrote them.
    pub arguments: String,
    /// Whether the arguments are free text, and not JSON.
    #[serde(default, skip_serializing_if = "is_false")]
    pub freeform: bool,
    /// Whether it must not run at the same time as other calls.
    #[serde(default, skip_serializing_if = "is_false")]
    pub alone: bool,
}

/// Reason why the arguments of a call cannot be read, as a clause of a sentence for the model.
#[derive(Debug, thiserror::Error)]
pub enum ArgumentsError {
    /// Their nesting exceeds [`ToolCall::DEPTH_MAX`].
    #[error("they are more than {} deep", ToolCall::DEPTH_MAX)]
    TooDeep,
    /// They are JSON, but no object.
    #[error("they are no JSON object")]
    NoObject,
    /// They are not JSON.
    #[error("they are no JSON: {0}")]
    NoJson(serde_json::Error),
}

/// Output of a call, as the model gets it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    /// Text, already truncated for the model.
    pub text: String,
    /// Images that belong to the output.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// Complete output, if the text is truncated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full: Option<Blob>,
    /// Whether the call failed.
    #[serde(default, skip_serializing_if = "is_false")]
    pub failed: bool,
}

impl ToolCall {
    /// Maximum nesting of arguments. A record with deeper ones could not be read again.
    pub const DEPTH_MAX: usize = 64;

    /// Parses the arguments as an object, or returns the error.
    pub fn object(&self) -> Result<Value, ArgumentsError> {
        // Some vendors send an empty string for no arguments.
        let text = match self.arguments.trim() {
            "" => "{}",
            text => text,
        };
        match serde_json::from_str(text) {
            Ok(value @ Value::Object(_)) if fits(&value, Self::DEPTH_MAX) => Ok(value),
            Ok(Value::Object(_)) => Err(ArgumentsError::TooDeep),
            Ok(_) => Err(ArgumentsError::NoObject),
            Err(error) => Err(ArgumentsError::NoJson(error)),
        }
    }
}

impl Output {
    /// Creates an output of plain text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// Creates a failed output that describes the failure.
    pub fn failure(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            failed: true,
            ..Self::default()
        }
    }
}

/// Bytes stored outside the journal, named by their hash.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Blob {
    /// SHA-256 in lower-case hex.
    pub hash: String,
    /// Number of stored bytes.
    pub bytes: u64,
    /// Media type, such as `image/png`.
    pub media: String,
}

impl Blob {
    const SCHEME: &str = "raddle-blob:";

    /// Returns a placeholder URL for the wire. The server replaces it with the bytes before it
    /// reaches a client.
    pub fn url(&self) -> String {
        let Self { hash, bytes, media } = self;
        format!("{}{hash}/{bytes}/{media}", Self::SCHEME)
    }

    /// Parses such a placeholder URL.
    pub fn of_url(url: &str) -> Option<Self> {
        let mut parts = url.strip_prefix(Self::SCHEME)?.splitn(3, '/');
        Some(Self {
            hash: parts.next()?.to_owned(),
            bytes: parts.next()?.parse().ok()?,
            media: parts.next()?.to_owned(),
        })
    }
}

/// An image and its location.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Image {
    /// Stored as a blob.
    Blob(Blob),
    /// At a URL, or in a small `data:` URL.
    Url {
        /// URL of the image.
        url: String,
    },
    /// In a file that the client named.
    Path {
        /// Path of the file.
        path: String,
    },
    /// In a file that the vendor stores.
    File {
        /// The vendor's id for the file.
        id: String,
    },
}

impl Image {
    /// The blob, if the image is stored as one.
    pub fn blob(&self) -> Option<&Blob> {
        match self {
            Self::Blob(blob) => Some(blob),
            Self::Url { .. } | Self::Path { .. } | Self::File { .. } => None,
        }
    }
}

/// Opaque data that only a vendor can read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sealed {
    /// Owner of the data: the provider and wire it came from.
    pub vendor: String,
    /// The vendor's item, as received.
    pub value: Value,
}

impl Sealed {
    /// Limit: opaque data of a vendor in one item, with at most 64 levels; beyond it, the data is
    /// not stored, and the loss is logged.
    ///
    /// [`Self::DEPTH_MAX`] limits its nesting.
    pub const BYTES_MAX: usize = 1 << 20;
    /// Maximum nesting of the value. A record with a deeper one could not be read again.
    pub const DEPTH_MAX: usize = 64;

    /// Whether a record may hold it.
    pub fn fits(&self) -> bool {
        fits(&self.value, Self::DEPTH_MAX) && self.value.to_string().len() <= Self::BYTES_MAX
    }
}

/// Whether a value is nested no deeper than this.
fn fits(value: &Value, depth_max: usize) -> bool {
    let mut level = vec![value];
    for _ in 0..depth_max {
        level = level.into_iter().flat_map(children).collect();
    }
    level.is_empty()
}

/// Returns the values directly inside a value.
fn children(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(values) => values.iter().collect(),
        Value::Object(values) => values.values().collect(),
        _ => Vec::new(),
    }
}

/// Content of an item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ItemBody {
    /// Input of the user.
    UserMessage(UserMessage),
    /// Text that hooks add for the model.
    HookPrompt(HookPrompt),
    /// Text of the agent to the user.
    AgentMessage(AgentMessage),
    /// Output of a tool that the client supplied.
    ToolOutput(ToolOutput),
    /// A plan that the agent proposes.
    Plan(PlanText),
    /// Reasoning of the model that the vendor shows.
    Reasoning(Reasoning),
    /// A shell command of the agent or the user.
    Command(CommandRun),
    /// A change to files.
    Patch(Patch),
    /// A call of an MCP server's tool.
    Mcp(McpCall),
    /// A call of a tool that the client runs.
    ClientTool(ClientTool),
    /// A call to other agents.
    Agents(AgentsCall),
    /// An event of another agent.
    AgentNote(AgentNote),
    /// A search of the web.
    WebSearch(WebSearch),
    /// An image that the agent viewed.
    ImageView(ImageView),
    /// A pause of the agent.
    Sleep(Sleep),
    /// An image that the model generated.
    ImageMade(ImageOutput),
    /// Start of a review.
    ReviewEntered(Review),
    /// End of a review, with its result.
    ReviewLeft(Review),
    /// The history was summarised.
    Compaction {},
    /// A tool that none of the others describes; clients see its name, arguments and output.
    Tool(NamedTool),
}

/// Input of the user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserMessage {
    /// Content of the message, in parts.
    pub input: Vec<Input>,
    /// The client's own id for the message.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
}

/// One part of a user's message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Input {
    /// Text, with the client's display marks passed through.
    Text {
        /// Text of the part.
        text: String,
        /// Display marks of the client.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        marks: Option<Value>,
    },
    /// An image that the user sent.
    Image {
        /// Location of the image.
        image: Image,
        /// Detail level for the model.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
        /// File of the client that it was read from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<String>,
    },
    /// An audio recording at a URL.
    Audio {
        /// URL of the recording.
        url: String,
    },
    /// An audio file of the client.
    AudioFile {
        /// Path of the file.
        path: String,
    },
    /// A skill that the user picked.
    Skill {
        /// Name of the skill.
        name: String,
        /// Path of the skill's file.
        path: String,
    },
    /// A mention, such as of a file or an app.
    Mention {
        /// Name that is shown.
        name: String,
        /// Target of the mention.
        path: String,
    },
}

impl Input {
    /// Creates a part of plain text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text {
            text: text.into(),
            marks: None,
        }
    }
}

/// Text that hooks add for the model, by hook run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HookPrompt {
    /// Texts of the runs, in order.
    pub pieces: Vec<HookPiece>,
}

/// Text of one hook run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HookPiece {
    /// Id of the run.
    pub run: String,
    /// Text for the model.
    pub text: String,
}

/// Text of the agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentMessage {
    /// Text of the message; empty while the item is open.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// Phase of the answer that it belongs to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
}

/// Phase of an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Phase {
    /// Remarks during the work.
    Commentary,
    /// A finished part of the answer.
    PartialAnswer,
    /// The final answer of the turn.
    FinalAnswer,
}

/// Output of a tool that the client supplied.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolOutput {
    /// Name of the tool.
    pub name: String,
    /// Group of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Output of the tool, as received.
    pub output: Value,
}

/// A plan as text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanText {
    /// Text of the plan; empty while the item is open.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
}

/// The part of the model's reasoning that the vendor shows.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reasoning {
    /// Summary, part by part; empty while the item is open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub summary: Vec<String>,
    /// Full text, part by part; empty while the item is open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<String>,
}

/// A shell command of the agent or the user.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandRun {
    /// The command line, quoted for a shell.
    pub command: String,
    /// Working folder of the command.
    pub cwd: String,
    /// Guess at the command's actions, for display.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<Action>,
    /// Origin of the command.
    #[serde(default)]
    pub source: CommandSource,
    /// Id of its terminal.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<String>,
    /// Output of the command; empty while it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub printed: Option<String>,
    /// Exit code of the process.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// Run time in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<i64>,
    /// Time limit in milliseconds, if the user set one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ms_max: Option<u64>,
}

/// Origin of a command.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum CommandSource {
    /// The agent, as one command.
    #[default]
    Agent,
    /// Run by the user.
    User,
    /// The agent, in a terminal that stays open.
    Terminal,
    /// The agent, by input to such a terminal.
    Typed,
}

/// Guess at the action of a part of a command.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Action {
    /// Shows the content of a file.
    Read {
        /// Part of the command line.
        command: String,
        /// Short name of the file.
        name: String,
        /// Path of the file.
        path: String,
    },
    /// Lists files of a folder.
    List {
        /// Part of the command line.
        command: String,
        /// Folder that is listed.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<String>,
    },
    /// Searches for text or files.
    Search {
        /// Part of the command line.
        command: String,
        /// Text to search for.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        query: Option<String>,
        /// File or folder that is searched.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<String>,
    },
    /// Any other action, not classified further.
    Other {
        /// Part of the command line.
        command: String,
    },
}

/// A change to files.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Patch {
    /// Changes, one for each file.
    pub changes: Vec<FileChange>,
}

/// A change to one file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileChange {
    /// Path of the file, before any move.
    pub path: String,
    /// Kind of the change.
    pub kind: ChangeKind,
    /// Unified diff; for a new file its content.
    pub diff: String,
}

impl FileChange {
    /// Prefix of the line that replaces the rest of a truncated diff. No diff line starts with it.
    const CUT: &str = "… of ";

    /// Returns the line that ends a truncated diff.
    pub fn cut_mark(bytes: usize) -> String {
        format!("{}{bytes} bytes\n", Self::CUT)
    }

    /// Whether the diff is truncated.
    pub fn is_cut(&self) -> bool {
        let last = self.diff.lines().next_back();
        last.is_some_and(|it| it.starts_with(Self::CUT) && it.ends_with(" bytes"))
    }
}

/// Kind of a change to a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ChangeKind {
    /// The file is created.
    Add {},
    /// The file is removed.
    Delete {},
    /// The file is changed, and perhaps moved.
    Update {
        /// New path of the file.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        moved_to: Option<String>,
    },
}

/// A call of an MCP server's tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpCall {
    /// Name of the server in the configuration.
    pub server: String,
    /// Name of the tool on that server.
    pub tool: String,
    /// Arguments of the call.
    pub arguments: Value,
    /// Result in MCP's form.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Error message of the server.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Run time in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<i64>,
}

/// A call of a tool that the client runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientTool {
    /// Name of the tool.
    pub tool: String,
    /// Group of the tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// Arguments of the call.
    pub arguments: Value,
    /// Response of the client, as received.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Value>,
    /// Run time in milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<i64>,
}

/// A call by which one agent directs others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentsCall {
    /// Name of the operation, as on the wire.
    pub tool: String,
    /// Thread of the calling agent.
    pub sender: ThreadId,
    /// Threads of the agents called.
    pub receivers: Vec<ThreadId>,
    /// State and last message of each agent, if known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<AgentState>,
    /// Text that was sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Model that was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Effort that was requested.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
}

/// State of an agent, if known.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentState {
    /// Thread of the agent.
    pub thread: ThreadId,
    /// Status of the agent, as on the wire.
    pub status: String,
    /// Last message of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// An event of another agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentNote {
    /// Thread of the agent.
    pub thread: ThreadId,
    /// Path of the agent in the tree.
    pub path: String,
    /// Kind of the event, as on the wire.
    pub kind: String,
    /// Model of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Effort of the agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
}

/// A search of the web.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WebSearch {
    /// Text that was searched for.
    pub query: String,
    /// Action that was taken.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<WebAction>,
    /// Results, as the search returned them.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub results: Option<Vec<Value>>,
}

/// Action of a web search.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum WebAction {
    /// Searched the web for terms.
    Search {
        /// Terms of the search.
        queries: Vec<String>,
    },
    /// Opened a page at a URL.
    Open {
        /// URL of the page.
        url: Option<String>,
    },
    /// Searched for text in a page.
    Find {
        /// URL of the page.
        url: Option<String>,
        /// Text that was searched for.
        pattern: Option<String>,
    },
    /// Any other action, not classified further.
    Other {},
}

/// An image that the agent viewed.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageView {
    /// Path of the file.
    pub path: String,
}

/// A pause of the agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sleep {
    /// Requested length in milliseconds.
    pub duration_ms: u64,
}

/// An image that the model generated.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageOutput {
    /// Progress, in the vendor's words.
    pub stage: String,
    /// The image, once generated.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<Image>,
    /// Prompt as the vendor rewrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Path it was saved to.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved: Option<String>,
}

/// A review, as text for the user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Review {
    /// Subject of the review, or its result.
    pub text: String,
    /// Instructions for the model, where they exceed the text.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Hunks in which findings of the result lie, with the paths that the findings name.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub hunks: Vec<ReviewedHunk>,
}

/// A hunk of a diff under review.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReviewedHunk {
    /// Path of the file, relative to the folder of the thread.
    pub path: String,
    /// Id of the hunk, as in the diff of a turn.
    pub id: String,
    /// First line, from 1: the first new one, or the one before the removed lines.
    pub first: u32,
    /// Last line: the last new one, or the one after the removed lines.
    pub last: u32,
}

/// A tool without a separate item type.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NamedTool {
    /// Name of the tool.
    pub name: String,
}

/// Text of an item that can grow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ItemPart {
    /// The text of a message or a plan.
    Text,
    /// A part of a reasoning summary, counted from 0.
    Summary(u32),
    /// A part of the reasoning, counted from 0.
    Content(u32),
    /// Output of a tool.
    Printed,
}

/// An item began and is open.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ItemStarted {
    /// Id of its turn.
    pub turn: TurnId,
    /// The item as it begins.
    pub item: Item,
    /// Condition before its tool may start; `None` for an item without a tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<Gate>,
    /// The policy's ruling on its act, if the policy was consulted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ruling: Option<Ruling>,
}

/// Condition before a tool may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Gate {
    /// None: the tool may start.
    Open,
    /// Approval by the user; the request follows.
    Approval,
    /// Answer of the user, which is also the tool's output; nothing is ever started here.
    Answer,
}

/// Texts of an open item so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ItemSaved {
    /// Id of the item.
    pub item: ItemId,
    /// All texts of the item.
    pub texts: Vec<PartText>,
}

/// One text of an item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PartText {
    /// Part of the item that it belongs to.
    pub part: ItemPart,
    /// Text so far, from the beginning.
    pub text: String,
}

/// A tool is about to have effects. Stored before it does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolStarted {
    /// Id of the turn.
    pub turn: TurnId,
    /// Id of the tool's item.
    pub item: ItemId,
}

/// An item ended, with its final content.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ItemCompleted {
    /// Id of its turn.
    pub turn: TurnId,
    /// The item with its final content.
    pub item: Item,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sealed_data_fits_up_to_its_bounds() {
        let nested = |depth| (1..depth).fold(Value::Array(vec![]), |it, _| Value::Array(vec![it]));
        // As JSON a string has two quotes more.
        let long = |bytes: usize| Value::String("x".repeat(bytes - 2));
        for (value, fits) in [
            (Value::Null, true),
            (nested(Sealed::DEPTH_MAX), true),
            (nested(Sealed::DEPTH_MAX + 1), false),
            (long(Sealed::BYTES_MAX), true),
            (long(Sealed::BYTES_MAX + 1), false),
        ] {
            let vendor = String::new();
            assert_eq!(Sealed { vendor, value }.fits(), fits);
        }
    }
}
