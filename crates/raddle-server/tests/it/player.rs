//! Plays the conversations of `conformance/`, over any transport.
//!
//! `conformance/README.md` says what the lines mean. Nothing here knows the server: whoever can
//! start one and carry frames to it can play.

// Named by hand so that the file can be taken into another crate's tests by its path.
#[path = "player/pattern.rs"]
mod pattern;

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::time::timeout;

use self::pattern::Bindings;

/// How long a message may take. Only a failing test waits this long.
const LIMIT: Duration = Duration::from_secs(10);

/// The client's end of a transport.
pub trait ClientWire {
    async fn send(&mut self, frame: &[u8]);
    /// The next frame; nothing when the connection has ended.
    async fn recv(&mut self) -> Option<Vec<u8>>;
    /// Sends nothing more. What the server still owes can be received until the end.
    async fn hang_up(&mut self);
}

/// Where a conversation takes place: a home and a workspace that nobody else uses.
#[derive(Debug)]
pub struct Stage {
    folder: TempDir,
    pub home: PathBuf,
    pub workspace: PathBuf,
    /// What the model says, one message in each call.
    pub says: Vec<String>,
}

impl Stage {
    pub fn new() -> Self {
        let folder = TempDir::new().expect("a temporary folder");
        let root = fs::canonicalize(folder.path()).expect("its real path");
        let stage = Self {
            folder,
            home: root.join("home"),
            workspace: root.join("workspace"),
            says: Vec::new(),
        };
        fs::create_dir(&stage.home).expect("a home");
        fs::create_dir(&stage.workspace).expect("a workspace");
        stage
    }

    /// The administrator's configuration, as far as this stage has one.
    pub fn system_config(&self) -> PathBuf {
        self.folder.path().join("system.toml")
    }

    pub fn config(&self) -> PathBuf {
        self.home.join("config.toml")
    }
}

/// Plays every conversation of `conformance/<name>.md`. `start` starts a server on a stage.
pub async fn play<W: ClientWire>(name: &str, start: impl AsyncFn(&Stage) -> W) {
    let file = format!("conformance/{name}.md");
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../..")
        .join(&file);
    let text = fs::read_to_string(&path).unwrap_or_else(|error| panic!("{file}: {error}"));
    if let Err(problem) = play_text(&text, start).await {
        panic!("{file}:{problem}");
    }
}

/// Plays every conversation of a text. An error begins with the number of its line.
pub async fn play_text<W: ClientWire>(
    text: &str,
    start: impl AsyncFn(&Stage) -> W,
) -> Result<(), String> {
    for scene in read(text)? {
        play_scene(&scene, &start).await?;
    }
    Ok(())
}

/// One block of a file: the numbers of its lines, and what they say.
type ConversationBlock = Vec<(usize, ConversationLine)>;

#[derive(Debug)]
enum ConversationLine {
    GivenFile { path: String, text: String },
    GivenFolder { path: String },
    GivenConfig { text: String },
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
    if let Some(given) = line.strip_prefix("given ") {
        return match given.split_once(' ') {
            Some(("config", text)) => Ok(ConversationLine::GivenConfig {
                text: quoted(text)?,
            }),
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
            _ => Err(format!("cannot give: {given}")),
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
    start: &impl AsyncFn(&Stage) -> W,
) -> Result<(), String> {
    let mut stage = Stage::new();
    let says = scene.iter().filter_map(|(_, line)| match line {
        ConversationLine::ModelSays { text } => Some(text.clone()),
        _ => None,
    });
    stage.says.extend(says);
    let mut names = Bindings::default();
    names.set("home", stage.home.display().to_string().into());
    names.set("workspace", stage.workspace.display().to_string().into());
    let mut wire = None;
    let mut last = 0;
    for (number, line) in scene {
        last = *number;
        let here = |problem: String| format!("{number}: {problem}");
        if let Some(given) = prepare(line, &stage, &names, wire.is_some()) {
            given.map_err(here)?;
            continue;
        }
        if wire.is_none() {
            wire = Some(start(&stage).await);
        }
        let Some(wire) = &mut wire else { continue };
        speak(line, wire, &mut names).await.map_err(here)?;
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

/// Does what a `given` line says; other lines are not for it.
fn prepare(
    line: &ConversationLine,
    stage: &Stage,
    names: &Bindings,
    running: bool,
) -> Option<Result<(), String>> {
    let place = |path: &str| Ok(stage.workspace.join(names.fill_text(path)?));
    let write = |path: PathBuf, text: &str| {
        let parent = path.parent().unwrap_or(Path::new("/"));
        fs::create_dir_all(parent)
            .and_then(|()| fs::write(&path, text))
            .map_err(|error| error.to_string())
    };
    Some(match line {
        ConversationLine::GivenFile { path, text } => {
            place(path).and_then(|path| write(path, text))
        }
        ConversationLine::GivenFolder { path } => {
            place(path).and_then(|path| fs::create_dir_all(path).map_err(|error| error.to_string()))
        }
        ConversationLine::GivenConfig { .. } if running => {
            Err("the server has read its configuration".to_owned())
        }
        ConversationLine::GivenConfig { text } => write(stage.config(), text),
        // The model got its lines before the scene began.
        ConversationLine::ModelSays { .. } => Ok(()),
        _ => return None,
    })
}

async fn speak<W: ClientWire>(
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
        | ConversationLine::ModelSays { .. } => {}
    }
    Ok(())
}

/// Frames are taken in order, so if anything was going to come, it comes before the answer to this.
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

    /// A server that says what it was told to, whatever it hears.
    struct CannedServer(VecDeque<&'static str>);

    impl ClientWire for CannedServer {
        async fn send(&mut self, _: &[u8]) {}
        async fn recv(&mut self) -> Option<Vec<u8>> {
            self.0.pop_front().map(|frame| frame.as_bytes().to_vec())
        }
        async fn hang_up(&mut self) {}
    }

    /// What comes of one conversation with a server that says `said`.
    async fn played(conversation: &str, said: &[&'static str]) -> Result<(), String> {
        let text = format!("# Title\n```conversation\n{conversation}\n```\n");
        play_text(&text, async |_: &Stage| {
            CannedServer(said.iter().copied().collect())
        })
        .await
    }

    #[tokio::test]
    async fn a_conversation_as_it_was_written_passes() {
        let said = [
            r#"{"id":1,"result":{"a":"x","b":2}}"#,
            r#"{"method":"m","a":"x"}"#,
        ];
        let text = "given folder f\n--> {\"id\":1}\n<-- {\"id\":1,\"result\":{\"a\":\"$a\",…}}\n<-- {\"method\":\"m\",\"a\":\"$a\"}";
        assert_eq!(played(text, &said).await, Ok(()));
    }

    #[tokio::test]
    async fn any_other_fails_and_names_its_line() {
        for (conversation, said, line) in [
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
            let problem = played(conversation, &said).await.expect_err(conversation);
            assert!(problem.starts_with(line), "{conversation}\n{problem}");
        }
        for text in ["", "# Prose only", "```conversation\n--> {}"] {
            let outcome = play_text(text, async |_: &Stage| CannedServer(VecDeque::new())).await;
            assert!(outcome.is_err(), "{text}");
        }
    }
}
