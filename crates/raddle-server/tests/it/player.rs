//! Plays the conversations of `conformance/`, over any transport.
//!
//! `conformance/README.md` describes the syntax of the lines. Nothing here depends on the server:
//! any code that starts a server and carries frames to it can play.

// The path is explicit so that another crate's tests can include this file.
#[path = "player/pattern.rs"]
mod pattern;

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::timeout;

use self::pattern::Bindings;

/// Timeout of a message. Only a failing test waits this long.
const LIMIT: Duration = Duration::from_secs(10);

/// The client's end of a transport.
pub trait ClientWire {
    async fn send(&mut self, frame: &[u8]);
    /// Returns the next frame; none when the connection has ended.
    async fn recv(&mut self) -> Option<Vec<u8>>;
    /// Closes the client's side. Pending messages can be received until the end.
    async fn hang_up(&mut self);
}

/// A checkpoint that the server has.
#[derive(Clone, Debug)]
pub struct GivenCheckpoint {
    pub id: String,
    pub turn: Option<String>,
    /// The changed files, with their content before and after; none where the file is absent.
    pub changes: BTreeMap<String, (Option<String>, Option<String>)>,
}

/// The checkpoints that the server has, oldest first.
pub type GivenCheckpoints = Arc<Mutex<Vec<GivenCheckpoint>>>;

/// Environment of a conversation: a home and a workspace of its own.
#[derive(Debug)]
pub struct Harness {
    folder: TempDir,
    pub home: PathBuf,
    pub workspace: PathBuf,
    /// The messages of the scripted model, one for each call.
    pub says: Vec<String>,
    /// The checkpoints of the thread.
    pub checkpoints: GivenCheckpoints,
}

impl Harness {
    pub fn new() -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        let root = fs::canonicalize(folder.path()).expect("its real path");
        let harness = Self {
            folder,
            home: root.join("home"),
            workspace: root.join("workspace"),
            says: Vec::new(),
            checkpoints: GivenCheckpoints::default(),
        };
        fs::create_dir(&harness.home).expect("a home");
        fs::create_dir(&harness.workspace).expect("a workspace");
        harness
    }

    /// Returns the path of the administrator's configuration.
    pub fn system_config(&self) -> PathBuf {
        self.folder.path().join("system.toml")
    }

    pub fn config(&self) -> PathBuf {
        self.home.join("config.toml")
    }

    /// Adds a checkpoint. Each change is a path with the content before; the file now has the
    /// content after.
    pub fn give_checkpoint(&self, id: &str, turn: Option<&str>, changes: &[(&str, Option<&str>)]) {
        let changes = changes.iter().map(|(path, before)| {
            let after = fs::read_to_string(self.workspace.join(path)).ok();
            ((*path).to_owned(), (before.map(str::to_owned), after))
        });
        let checkpoint = GivenCheckpoint {
            id: id.to_owned(),
            turn: turn.map(str::to_owned),
            changes: changes.collect(),
        };
        let mut checkpoints = self
            .checkpoints
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        checkpoints.push(checkpoint);
    }
}

/// Plays every conversation of `conformance/<name>.md`. `start` starts a server for a harness.
pub async fn play<W: ClientWire>(name: &str, start: impl AsyncFn(&Harness) -> W) {
    let file = format!("conformance/{name}.md");
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(&file);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file}: {error}"));
    if let Err(problem) = play_text(&text, start).await {
        panic!("{file}:{problem}");
    }
}

/// Plays every conversation of a text. An error begins with its line number.
pub async fn play_text<W: ClientWire>(
    text: &str,
    start: impl AsyncFn(&Harness) -> W,
) -> Result<(), String> {
    for scene in read(text)? {
        play_scene(&scene, &start).await?;
    }
    Ok(())
}

/// One block of a file: its lines, with their numbers.
type ConversationBlock = Vec<(usize, ConversationLine)>;

#[derive(Debug)]
enum ConversationLine {
    GivenFile { path: String, text: String },
    GivenFolder { path: String },
    GivenConfig { text: String },
    GivenCheckpoint { checkpoint: Value },
    ModelSays { text: String },
    Initialized { experimental: bool },
    Send(Value),
    SendRaw(String),
    Receive(Value),
    ReceiveNothing,
}

fn read(text: &str) -> Result<Vec<ConversationBlock>, String> {
    let mut scenes = Vec::new();
    let mut scene: Option<ConversationBlock> = None;
    for (number, line) in (1..).zip(text.lines()) {
        match (line.trim(), &mut scene) {
            ("```conversation", None) => scene = Some(ConversationBlock::new()),
            ("```", Some(_)) => scenes.extend(scene.take()),
            (_, None) | ("", _) => {}
            (line, Some(scene)) => {
                let line = read_line(line).map_err(|problem| format!("{number}: {problem}"))?;
                scene.push((number, line));
            }
        }
    }
    if scene.is_some() || scenes.is_empty() || scenes.iter().any(Vec::is_empty) {
        return Err("1: a conversation has no end, nothing in it, or is missing".to_owned());
    }
    Ok(scenes)
}

fn read_line(line: &str) -> Result<ConversationLine, String> {
    let quoted = |text: &str| {
        serde_json::from_str::<String>(text).map_err(|error| format!("not a quoted text: {error}"))
    };
    if let Some(setup) = line.strip_prefix("given ") {
        return match setup.split_once(' ') {
            Some(("config", text)) => Ok(ConversationLine::GivenConfig {
                text: quoted(text)?,
            }),
            Some(("checkpoint", object)) => serde_json::from_str(object)
                .map(|checkpoint| ConversationLine::GivenCheckpoint { checkpoint })
                .map_err(|error| format!("not JSON: {error}")),
            Some(("folder", path)) => Ok(ConversationLine::GivenFolder {
                path: path.to_owned(),
            }),
            Some(("file", rest)) => {
                let (path, text) = rest
                    .split_once(' ')
                    .ok_or("a file needs a path and a text")?;
                Ok(ConversationLine::GivenFile {
                    path: path.to_owned(),
                    text: quoted(text)?,
                })
            }
            _ => Err(format!("cannot give: {setup}")),
        };
    }
    if let Some(text) = line.strip_prefix("model says ") {
        return Ok(ConversationLine::ModelSays {
            text: quoted(text)?,
        });
    }
    if let Some(frame) = line.strip_prefix("--> ") {
        return match frame.strip_prefix("raw ") {
            Some(raw) => Ok(ConversationLine::SendRaw(raw.to_owned())),
            None => serde_json::from_str(frame)
                .map(ConversationLine::Send)
                .map_err(|error| format!("not JSON: {error}")),
        };
    }
    match line.strip_prefix("<-- ") {
        Some("nothing") => Ok(ConversationLine::ReceiveNothing),
        Some(pattern) => pattern::read(pattern).map(ConversationLine::Receive),
        None if line == "initialized" => Ok(ConversationLine::Initialized {
            experimental: false,
        }),
        None if line == "initialized experimental" => {
            Ok(ConversationLine::Initialized { experimental: true })
        }
        None => Err(format!("not a line of a conversation: {line}")),
    }
}

async fn play_scene<W: ClientWire>(
    scene: &ConversationBlock,
    start: &impl AsyncFn(&Harness) -> W,
) -> Result<(), String> {
    let mut harness = Harness::new();
    let model_messages = scene.iter().filter_map(|(_, line)| match line {
        ConversationLine::ModelSays { text } => Some(text.clone()),
        _ => None,
    });
    harness.says.extend(model_messages);
    let mut names = Bindings::default();
    names.set("home", harness.home.display().to_string().into());
    names.set("workspace", harness.workspace.display().to_string().into());
    let mut wire = None;
    let mut last = 0;
    for (number, line) in scene {
        last = *number;
        let with_line_number = |problem: String| format!("{number}: {problem}");
        if let Some(prepared) = prepare(line, &harness, &names, wire.is_some()) {
            prepared.map_err(with_line_number)?;
            continue;
        }
        if wire.is_none() {
            wire = Some(start(&harness).await);
        }
        let Some(wire) = &mut wire else { continue };
        play_line(line, wire, &mut names)
            .await
            .map_err(with_line_number)?;
    }
    let Some(mut wire) = wire else {
        return Err(format!("{last}: nobody says anything"));
    };
    wire.hang_up().await;
    match timeout(LIMIT, wire.recv()).await {
        Ok(None) => Ok(()),
        Ok(Some(frame)) => Err(format!(
            "{last}: nobody expects {}",
            String::from_utf8_lossy(&frame)
        )),
        Err(_) => Err(format!("{last}: the server does not hang up")),
    }
}

/// Applies a `given` line; returns none for other lines.
fn prepare(
    line: &ConversationLine,
    harness: &Harness,
    names: &Bindings,
    running: bool,
) -> Option<Result<(), String>> {
    let path_of = |path: &str| Ok(harness.workspace.join(names.fill_text(path)?));
    let write = |path: PathBuf, text: &str| {
        let parent = path.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(parent)
            .and_then(|()| fs::write(&path, text))
            .map_err(|error| error.to_string())
    };
    Some(match line {
        ConversationLine::GivenFile { path, text } => {
            path_of(path).and_then(|path| write(path, text))
        }
        ConversationLine::GivenFolder { path } => path_of(path)
            .and_then(|path| fs::create_dir_all(path).map_err(|error| error.to_string())),
        ConversationLine::GivenConfig { .. } if running => {
            Err("the server has read its configuration".to_owned())
        }
        ConversationLine::GivenConfig { text } => write(harness.config(), text),
        ConversationLine::GivenCheckpoint { checkpoint } => names
            .fill(checkpoint)
            .and_then(|checkpoint| give_checkpoint(harness, &checkpoint)),
        // The model got its messages before the conversation began.
        ConversationLine::ModelSays { .. } => Ok(()),
        _ => return None,
    })
}

async fn play_line<W: ClientWire>(
    line: &ConversationLine,
    wire: &mut W,
    names: &mut Bindings,
) -> Result<(), String> {
    match line {
        ConversationLine::Send(message) => send(wire, &names.fill(message)?).await,
        ConversationLine::SendRaw(raw) => wire.send(raw.as_bytes()).await,
        ConversationLine::Receive(pattern) => {
            let message = receive(wire).await?;
            pattern::check(pattern, &message, names)
                .map_err(|problem| format!("{problem}\n  in {message}"))?;
        }
        ConversationLine::ReceiveNothing => probe(wire).await?,
        ConversationLine::Initialized { experimental } => initialize(wire, *experimental).await?,
        ConversationLine::GivenFile { .. }
        | ConversationLine::GivenFolder { .. }
        | ConversationLine::GivenConfig { .. }
        | ConversationLine::GivenCheckpoint { .. }
        | ConversationLine::ModelSays { .. } => {}
    }
    Ok(())
}

/// Adds a checkpoint with the members `id`, `turn` and `changes`, which has the text of each
/// changed file before the turn, or null.
fn give_checkpoint(harness: &Harness, checkpoint: &Value) -> Result<(), String> {
    let id = checkpoint["id"]
        .as_str()
        .ok_or("a checkpoint needs an id")?;
    let changes = checkpoint["changes"].as_object();
    let changes = changes.ok_or("a checkpoint needs changes")?;
    let changes: Vec<(&str, Option<&str>)> = changes
        .iter()
        .map(|(path, before)| (path.as_str(), before.as_str()))
        .collect();
    harness.give_checkpoint(id, checkpoint["turn"].as_str(), &changes);
    Ok(())
}

/// Checks that no message is pending: frames are handled in order, so it would come before the
/// response to this.
async fn probe<W: ClientWire>(wire: &mut W) -> Result<(), String> {
    send(wire, &json!({"id": "nothing", "method": "nothing"})).await;
    let message = receive(wire).await?;
    if message["id"] == "nothing" && message.get("error").is_some() {
        Ok(())
    } else {
        Err(format!("nobody expects {message}"))
    }
}

async fn initialize<W: ClientWire>(wire: &mut W, experimental: bool) -> Result<(), String> {
    let params = json!({
        "clientInfo": {"name": "player", "version": "1"},
        "capabilities": {"experimentalApi": experimental, "extensions": {"raddle/seq": {}}},
    });
    send(
        wire,
        &json!({"id": "initialize", "method": "initialize", "params": params}),
    )
    .await;
    let message = receive(wire).await?;
    if message["id"] != "initialize" || message.get("result").is_none() {
        return Err(format!(
            "initialize must be answered with a result but {message} came"
        ));
    }
    send(wire, &json!({"method": "initialized"})).await;
    Ok(())
}

async fn send<W: ClientWire>(wire: &mut W, message: &Value) {
    wire.send(message.to_string().as_bytes()).await;
}

async fn receive<W: ClientWire>(wire: &mut W) -> Result<Value, String> {
    let frame = timeout(LIMIT, wire.recv())
        .await
        .map_err(|_| format!("nothing came in {LIMIT:?}"))?
        .ok_or("the connection has ended")?;
    serde_json::from_slice(&frame).map_err(|error| format!("the server sent no JSON: {error}"))
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use super::*;

    /// A server with fixed messages, whatever it receives.
    struct CannedServer(VecDeque<&'static str>);

    impl ClientWire for CannedServer {
        async fn send(&mut self, _: &[u8]) {}
        async fn recv(&mut self) -> Option<Vec<u8>> {
            self.0.pop_front().map(|frame| frame.as_bytes().to_vec())
        }
        async fn hang_up(&mut self) {}
    }

    /// Plays one conversation with a server that sends `server_messages`.
    async fn play_with(conversation: &str, server_messages: &[&'static str]) -> Result<(), String> {
        let text = format!("# Title\n```conversation\n{conversation}\n```\n");
        play_text(&text, async |_: &Harness| {
            CannedServer(server_messages.iter().copied().collect())
        })
        .await
    }

    #[tokio::test]
    async fn a_conversation_as_it_was_written_passes() {
        let server_messages = [
            r#"{"id":1,"result":{"a":"x","b":2}}"#,
            r#"{"method":"m","a":"x"}"#,
        ];
        let text = "given folder f\n--> {\"id\":1}\n<-- {\"id\":1,\"result\":{\"a\":\"$a\",…}}\n<-- {\"method\":\"m\",\"a\":\"$a\"}";
        assert_eq!(play_with(text, &server_messages).await, Ok(()));
    }

    #[tokio::test]
    async fn any_other_fails_and_names_its_line() {
        for (conversation, server_messages, line) in [
            ("--> {}\n<-- {\"id\":1}", vec![r#"{"id":2}"#], "4:"),
            ("--> {}\n<-- {\"id\":1}", vec![], "4:"),
            ("--> {}\n<-- {\"id\":1}", vec!["{"], "4:"),
            ("--> {}\n<-- {…}", vec!["{}", "{}"], "4: nobody expects {}"),
            ("--> {}\n<-- nothing", vec!["{}"], "4:"),
            ("--> {\"a\":\"$b\"}", vec![], "3: $b stands for nothing"),
            (
                "initialized",
                vec![r#"{"id":"initialize","error":{}}"#],
                "3:",
            ),
            ("--> {}\ngiven config \"\"", vec![], "4:"),
            ("given file a \"x\"", vec![], "3: nobody says anything"),
            ("given file a\n--> {}", vec![], "3:"),
            ("given cake \"x\"\n--> {}", vec![], "3:"),
            ("--> {", vec![], "3:"),
            ("<-- {", vec![], "3:"),
            ("hello", vec![], "3:"),
            ("", vec![], "1:"),
        ] {
            let problem = play_with(conversation, &server_messages)
                .await
                .expect_err(conversation);
            assert!(problem.starts_with(line), "{conversation}\n{problem}");
        }
        for text in ["", "# Prose only", "```conversation\n--> {}"] {
            let outcome = play_text(text, async |_: &Harness| CannedServer(VecDeque::new())).await;
            assert!(outcome.is_err(), "{text}");
        }
    }
}
