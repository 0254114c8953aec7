//! Keys that commands write.

use std::time::Duration;

use raddle_sandbox::{Engine, Launch, Output, Over, Process, Stdio, environment};
use raddle_server::KeyCommand;
use tokio::time::timeout;

use super::KEY_BYTES_MAX;

/// How long a command may take unless the configuration says something else, and how long what it wrote is used.
/// As in Codex.
const PATIENCE: Duration = Duration::from_secs(5);
const KEPT: Duration = Duration::from_secs(300);

/// How long what a command wrote is used.
pub(super) fn kept(command: &KeyCommand) -> Duration {
    match command.refresh_interval_ms {
        None => KEPT,
        Some(0) => Duration::MAX,
        Some(ms) => Duration::from_millis(ms.into()),
    }
}

/// What a command writes, within the time that it may take.
pub(super) async fn written(engine: &Engine, command: &KeyCommand) -> Result<String, String> {
    let patience = command
        .timeout_ms
        .map(|it| Duration::from_millis(it.into()));
    let patience = patience.unwrap_or(PATIENCE);
    let written = timeout(patience, run(engine, command)).await;
    let written = written.unwrap_or_else(|_| {
        let ms = patience.as_millis();
        Err(format!(
            "it was not done after {ms} ms; if it may take longer, raise timeout_ms"
        ))
    });
    written.map_err(|why| format!("`{}` gave no key: {why}", command.program))
}

/// What a command writes to stdout. What it writes to stderr may be a secret too, and is not looked at.
async fn run(engine: &Engine, command: &KeyCommand) -> Result<String, String> {
    let named = std::env::vars_os().filter(|(name, _)| {
        let name = name.to_str();
        name.is_some_and(|name| command.env_vars.iter().any(|it| it == name))
    });
    let mut env = environment::of(std::env::vars_os(), &Default::default());
    env.extend(named);
    let launch = Launch {
        program: command.program.clone().into(),
        args: command.args.iter().map(Into::into).collect(),
        cwd: command.cwd.clone(),
        env,
    };
    let started = engine.start(launch, Stdio::Pipes { input: false });
    let Process {
        stdout,
        stderr,
        mut life,
        ..
    } = started.map_err(|error| error.to_string())?;
    life.started().await.map_err(|error| error.to_string())?;
    let drained = async {
        match &stderr {
            Some(stderr) => read(stderr).await.map(drop),
            None => Ok(()),
        }
    };
    let (written, _, ended) = tokio::join!(read(&stdout), drained, life.ended());
    match ended.over {
        Some(Over::Exit(0)) => {}
        Some(over) => return Err(format!("it ended with {}", over.code())),
        None => return Err("it was killed".to_owned()),
    }
    let written = written.map_err(|error| error.to_string())?;
    String::from_utf8(written).map_err(|_| "what it writes is no text".to_owned())
}

/// Everything that comes, of which no more is kept than shows that it is too much.
async fn read(output: &Output) -> std::io::Result<Vec<u8>> {
    let mut read = Vec::new();
    let mut buffer = [0; 4096];
    loop {
        match output.read(&mut buffer).await? {
            0 => return Ok(read),
            some if read.len() <= KEY_BYTES_MAX => read.extend_from_slice(&buffer[..some]),
            _ => {}
        }
    }
}
