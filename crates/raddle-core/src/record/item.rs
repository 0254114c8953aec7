//! Items: what a turn is made of.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::is_false;
use crate::policy::Ruling;
use crate::{ItemId, ThreadId, Timestamp, TurnId};

/// One thing in a turn.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Item {
    /// Its id, unique in the thread.
    pub id: ItemId,
    /// How far it is, or how it ended.
    pub status: ItemStatus,
    /// What it is.
    pub body: ItemBody,
    /// The model's call that it carries out; nothing for what is no tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub call: Option<ToolCall>,
    /// What the model was told came of the call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub output: Option<Output>,
    /// What only the model's vendor can read; given back to that vendor and to no other.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sealed: Option<Sealed>,
    /// When it started.
    pub started_at: Timestamp,
    /// When it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub completed_at: Option<Timestamp>,
}

/// Tools whose calls are told as what they lead to, a plan or a question, and not as items.
const HIDDEN_TOOLS: &[&str] = &["update_plan", "request_user_input", "ask_user"];

impl Item {
    /// Whether people hear of it in another way than as an item.
    pub fn is_hidden(&self) -> bool {
        matches!(&self.body, ItemBody::Tool(it) if HIDDEN_TOOLS.contains(&it.name.as_str()))
    }

    /// Whether it is a command that the user runs.
    pub fn is_users_command(&self) -> bool {
        matches!(&self.body, ItemBody::Command(it) if it.source == CommandSource::User)
    }
}

/// How far an item is, or how it ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ItemStatus {
    /// Open.
    InProgress,
    /// Whole.
    Completed,
    /// Cut off; what there is was kept.
    Partial,
    /// It was tried and did not work.
    Failed,
    /// Someone said no.
    Declined,
    /// Never begun, because its turn ended first.
    NotRun,
    /// Ended by an interrupt.
    Interrupted,
    /// Begun, and nobody knows what came of it.
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
    /// Whether these are a text of any form, and not JSON.
    #[serde(default, skip_serializing_if = "is_false")]
    pub freeform: bool,
    /// Whether it must not run beside other calls.
    #[serde(default, skip_serializing_if = "is_false")]
    pub alone: bool,
}

/// What the model was told came of a call.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Output {
    /// Text, already cut to what a model should read.
    pub text: String,
    /// Images.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub images: Vec<Image>,
    /// All of it, if the text is not.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub full: Option<Blob>,
    /// Whether it went wrong.
    #[serde(default, skip_serializing_if = "is_false")]
    pub failed: bool,
}

impl ToolCall {
    /// How deep arguments may be. A record that is too deep could not be read again.
    pub const DEPTH_MAX: usize = 64;

    /// The arguments as an object; else what is wrong with them.
    pub fn object(&self) -> Result<Value, String> {
        // Some vendors write nothing where there is nothing to say.
        let text = match self.arguments.trim() {
            "" => "{}",
            text => text,
        };
        match serde_json::from_str(text) {
            Ok(value @ Value::Object(_)) if fits(&value, Self::DEPTH_MAX) => Ok(value),
            Ok(Value::Object(_)) => Err(format!("they are more than {} deep", Self::DEPTH_MAX)),
            Ok(_) => Err("they are no JSON object".to_owned()),
            Err(error) => Err(format!("they are no JSON: {error}")),
        }
    }
}

impl Output {
    /// Plain text.
    pub fn text(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            ..Self::default()
        }
    }

    /// Plain text that says what went wrong.
    pub fn failure(text: impl Into<String>) -> Self {
        Self {
            text: text.into(),
            failed: true,
            ..Self::default()
        }
    }
}

/// Bytes kept beside the journal, named by their hash.
#[derive(Clone, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Blob {
    /// SHA-256 in lower-case hex.
    pub hash: String,
    /// How many bytes.
    pub bytes: u64,
    /// What they are, such as `image/png`.
    pub media: String,
}

impl Blob {
    const SCHEME: &str = "raddle-blob:";

    /// A name for it where the wire has a URL. Whoever tells a client of it puts the bytes in its place.
    pub fn url(&self) -> String {
        let Self { hash, bytes, media } = self;
        format!("{}{hash}/{bytes}/{media}", Self::SCHEME)
    }

    /// The blob that such a name means.
    pub fn of_url(url: &str) -> Option<Self> {
        let mut parts = url.strip_prefix(Self::SCHEME)?.splitn(3, '/');
        Some(Self {
            hash: parts.next()?.to_owned(),
            bytes: parts.next()?.parse().ok()?,
            media: parts.next()?.to_owned(),
        })
    }
}

/// An image.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Image {
    /// Beside the journal.
    Blob(Blob),
    /// At an address, or in a small `data:` one.
    Url {
        /// The address.
        url: String,
    },
    /// In a file that the client named.
    Path {
        /// The file.
        path: String,
    },
    /// In a file the vendor keeps.
    File {
        /// The vendor's id for it.
        id: String,
    },
}

/// What only a vendor can read.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sealed {
    /// Whose it is: the provider and wire it came from.
    pub vendor: String,
    /// The vendor's item, as it came.
    pub value: Value,
}

impl Sealed {
    /// How large the value may be as JSON, and how deep. A record that is too deep could not be read again.
    pub const BYTES_MAX: usize = 1 << 20;
    /// See [`Self::BYTES_MAX`].
    pub const DEPTH_MAX: usize = 64;

    /// Whether a record may hold it.
    pub fn fits(&self) -> bool {
        fits(&self.value, Self::DEPTH_MAX) && self.value.to_string().len() <= Self::BYTES_MAX
    }
}

/// Whether a value is no deeper than this.
fn fits(value: &Value, depth_max: usize) -> bool {
    let mut level = vec![value];
    for _ in 0..depth_max {
        level = level.into_iter().flat_map(inside).collect();
    }
    level.is_empty()
}

/// The values inside a value.
fn inside(value: &Value) -> Vec<&Value> {
    match value {
        Value::Array(values) => values.iter().collect(),
        Value::Object(values) => values.values().collect(),
        _ => Vec::new(),
    }
}

/// What an item is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ItemBody {
    /// Input from the user.
    UserMessage(UserMessage),
    /// Text that hooks put before the model.
    HookPrompt(HookPrompt),
    /// Text from the agent to the user.
    AgentMessage(AgentMessage),
    /// A tool's output that the client brought in.
    ToolOutput(ToolOutput),
    /// A plan the agent proposes.
    Plan(PlanText),
    /// The model's thinking.
    Reasoning(Reasoning),
    /// A command.
    Command(CommandRun),
    /// A change to files.
    Patch(Patch),
    /// A tool of an MCP server.
    Mcp(McpCall),
    /// A tool the client runs.
    ClientTool(ClientTool),
    /// A call to other agents.
    Agents(AgentsCall),
    /// Something happened to another agent.
    AgentNote(AgentNote),
    /// A search of the web.
    WebSearch(WebSearch),
    /// An image the agent looked at.
    ImageView(ImageView),
    /// A pause.
    Sleep(Sleep),
    /// An image the model made.
    ImageMade(ImageOutput),
    /// A review begins.
    ReviewEntered(Review),
    /// A review ended.
    ReviewLeft(Review),
    /// History was condensed.
    Compaction {},
    /// A tool that none of the others describes; shown to people only by its output.
    Tool(NamedTool),
}

/// Input from the user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct UserMessage {
    /// Its parts.
    pub input: Vec<Input>,
    /// The client's own id for it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
}

/// One part of a user's message.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Input {
    /// Text, with marks for the client's display passed on as they came.
    Text {
        /// The text.
        text: String,
        /// The client's marks.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        marks: Option<Value>,
    },
    /// An image.
    Image {
        /// Where it is.
        image: Image,
        /// How finely to look.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        detail: Option<String>,
        /// The client's file that it was read from.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<String>,
    },
    /// A sound at an address.
    Audio {
        /// The address.
        url: String,
    },
    /// A sound file.
    AudioFile {
        /// Where it is.
        path: String,
    },
    /// A skill the user picked.
    Skill {
        /// Its name.
        name: String,
        /// Its file.
        path: String,
    },
    /// Something the user pointed at.
    Mention {
        /// Its name.
        name: String,
        /// What it stands for.
        path: String,
    },
}

impl Input {
    /// Plain text.
    pub fn text(text: impl Into<String>) -> Self {
        Self::Text {
            text: text.into(),
            marks: None,
        }
    }
}

/// Text that hooks put before the model: each the run it came from and what it said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HookPrompt {
    /// The pieces, in order.
    pub pieces: Vec<HookPiece>,
}

/// What one hook run said.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct HookPiece {
    /// The run.
    pub run: String,
    /// The text.
    pub text: String,
}

/// Text from the agent.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentMessage {
    /// The text; empty while the item is open.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
    /// What part of the answer it is.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub phase: Option<Phase>,
}

/// What part of an answer a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Phase {
    /// Talk along the way.
    Commentary,
    /// A piece that stands.
    PartialAnswer,
    /// The answer.
    FinalAnswer,
}

/// A tool's output that the client brought in.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolOutput {
    /// The tool.
    pub name: String,
    /// Its group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// What it gave, as it came.
    pub output: Value,
}

/// A plan as text.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PlanText {
    /// The text; empty while the item is open.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub text: String,
}

/// The model's thinking, as far as it is shown.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Reasoning {
    /// A summary, part by part; empty while the item is open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub summary: Vec<String>,
    /// All of it, part by part; empty while the item is open.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub content: Vec<String>,
}

/// A command.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct CommandRun {
    /// The command line, quoted for a shell.
    pub command: String,
    /// Where it runs.
    pub cwd: String,
    /// A guess at what it does, for display.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub actions: Vec<Action>,
    /// Who runs it, and how.
    #[serde(default)]
    pub source: CommandSource,
    /// The terminal it runs in.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub terminal: Option<String>,
    /// What it printed; empty while it is open.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub printed: Option<String>,
    /// How it ended.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// How long it ran.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<i64>,
    /// How long it may run, where the user said so.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub time_ms_max: Option<u64>,
}

/// Who runs a command, and how.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum CommandSource {
    /// The agent, as one command.
    #[default]
    Agent,
    /// The user.
    User,
    /// The agent, in a terminal that stays.
    Terminal,
    /// The agent, by typing into such a terminal.
    Typed,
}

/// A guess at what a part of a command does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Action {
    /// Shows a file.
    Read {
        /// That part of the command.
        command: String,
        /// The file's short name.
        name: String,
        /// The file.
        path: String,
    },
    /// Lists files.
    List {
        /// That part of the command.
        command: String,
        /// Where.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<String>,
    },
    /// Looks for something.
    Search {
        /// That part of the command.
        command: String,
        /// For what.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        query: Option<String>,
        /// Where.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        path: Option<String>,
    },
    /// Anything else.
    Other {
        /// That part of the command.
        command: String,
    },
}

/// A change to files.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Patch {
    /// What happens to each file.
    pub changes: Vec<FileChange>,
}

/// A change to one file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct FileChange {
    /// The file, before any move.
    pub path: String,
    /// What happens to it.
    pub kind: ChangeKind,
    /// A unified diff; for a new file its content.
    pub diff: String,
}

impl FileChange {
    /// The beginning of the line that stands for what is left out of a diff. No line of a diff begins so.
    const CUT: &str = "… of ";

    /// The line that ends a diff of which only the beginning is kept.
    pub fn cut_mark(bytes: usize) -> String {
        format!("{}{bytes} bytes\n", Self::CUT)
    }

    /// Whether only the beginning of the diff is kept.
    pub fn is_cut(&self) -> bool {
        let last = self.diff.lines().next_back();
        last.is_some_and(|it| it.starts_with(Self::CUT) && it.ends_with(" bytes"))
    }
}

/// What happens to a file.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ChangeKind {
    /// It is made.
    Add {},
    /// It is removed.
    Delete {},
    /// It is changed, and perhaps moved.
    Update {
        /// Where to.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        moved_to: Option<String>,
    },
}

/// A tool of an MCP server.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct McpCall {
    /// The server's name in the configuration.
    pub server: String,
    /// The tool's name there.
    pub tool: String,
    /// What it was given.
    pub arguments: Value,
    /// What it gave, as MCP shapes it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub result: Option<Value>,
    /// Why it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// How long it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<i64>,
}

/// A tool the client runs.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ClientTool {
    /// Its name.
    pub tool: String,
    /// Its group.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub namespace: Option<String>,
    /// What it was given.
    pub arguments: Value,
    /// What the client gave back, as it came.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub content: Option<Value>,
    /// How long it took.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub duration_ms: Option<i64>,
}

/// A call by which one agent directs others.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentsCall {
    /// What is asked of them, in the wire's word for it.
    pub tool: String,
    /// The thread of the agent that asks.
    pub sender: ThreadId,
    /// The threads of those asked.
    pub receivers: Vec<ThreadId>,
    /// What is known of each: its state and last word.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub states: Vec<AgentState>,
    /// The text sent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// The model asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// The effort asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
}

/// What is known of an agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentState {
    /// Its thread.
    pub thread: ThreadId,
    /// What it is doing, in the wire's word for it.
    pub status: String,
    /// Its last word.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub message: Option<String>,
}

/// Something happened to another agent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentNote {
    /// Its thread.
    pub thread: ThreadId,
    /// Its place in the tree.
    pub path: String,
    /// What happened, in the wire's word for it.
    pub kind: String,
    /// Its model.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub model: Option<String>,
    /// Its effort.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub effort: Option<String>,
}

/// A search of the web.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WebSearch {
    /// What was looked for.
    pub query: String,
    /// What was done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub action: Option<WebAction>,
    /// What was found, as the search gave it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub results: Option<Vec<Value>>,
}

/// What was done on the web.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum WebAction {
    /// Searched for these.
    Search {
        /// The terms.
        queries: Vec<String>,
    },
    /// Opened a page.
    Open {
        /// Its address.
        url: Option<String>,
    },
    /// Looked for text in a page.
    Find {
        /// Its address.
        url: Option<String>,
        /// The text.
        pattern: Option<String>,
    },
    /// Something else.
    Other {},
}

/// An image the agent looked at.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageView {
    /// The file.
    pub path: String,
}

/// A pause.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Sleep {
    /// How long it was meant to be.
    pub duration_ms: u64,
}

/// An image the model made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ImageOutput {
    /// The vendor's word for how far it is.
    pub stage: String,
    /// The image.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub image: Option<Image>,
    /// The prompt as the vendor rewrote it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
    /// Where it was saved.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub saved: Option<String>,
}

/// A review, in words for the user.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Review {
    /// What is reviewed, or what came of it.
    pub text: String,
    /// What the model is asked to do, where that is more than people are shown.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub prompt: Option<String>,
}

/// A tool without a shape of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct NamedTool {
    /// Its name.
    pub name: String,
}

/// Which text of an item grows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum ItemPart {
    /// The text of a message or a plan.
    Text,
    /// A part of a reasoning summary, counted from 0.
    Summary(u32),
    /// A part of the reasoning, counted from 0.
    Content(u32),
    /// What a tool prints.
    Printed,
}

/// An item began.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ItemStarted {
    /// Its turn.
    pub turn: TurnId,
    /// The item as it begins.
    pub item: Item,
    /// What must happen before its tool may start; nothing for what is no tool.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub gate: Option<Gate>,
    /// What policy said of what it would do, where it was asked.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ruling: Option<Ruling>,
}

/// What stands before a tool.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum Gate {
    /// Nothing: it may start.
    Open,
    /// Someone's yes; the request follows.
    Approval,
    /// Someone's answer, which is also the tool's output; nothing is ever started here.
    Answer,
}

/// An open item's texts so far.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ItemSaved {
    /// The item.
    pub item: ItemId,
    /// Its texts.
    pub texts: Vec<PartText>,
}

/// One text of an item.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct PartText {
    /// Which.
    pub part: ItemPart,
    /// All of it so far.
    pub text: String,
}

/// A tool is about to touch the world. Stored before it does.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ToolStarted {
    /// The turn.
    pub turn: TurnId,
    /// The tool's item.
    pub item: ItemId,
}

/// An item ended.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ItemCompleted {
    /// Its turn.
    pub turn: TurnId,
    /// Its last form.
    pub item: Item,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_sealed_fits_up_to_its_bounds() {
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
