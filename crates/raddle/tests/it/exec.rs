//! `raddle exec` against `raddle mock`.

mod busy_thread;
mod failures;
mod json_lines;
mod killed_server;
mod mcp;
mod questions;
mod signals;
mod stdin;
mod undo;

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};

use serde_json::Value;
use tempfile::TempDir;

use crate::model::MockModel;
use crate::support::eventually;
use crate::support::server::command;

#[test]
fn a_bubblewrap_of_the_workspace_is_never_run() {
    let call = "{ call = 'exec_command', arguments = { cmd = 'echo inside', login = false } }";
    let script = format!(
        "[[answer]]\nmatch = 'do it'\nsteps = [{call}]\n[[answer]]\nsteps = [{{ text = 'Done.' }}]"
    );
    let harness = ExecHarness::new(&script);
    let programs = harness.work.path().join("bin");
    fs::create_dir(&programs).expect("a folder");
    let marker = harness.home.path().join("marker");
    let evil = format!(
        "#!/bin/sh\necho ran >> '{}'\nexec /usr/bin/bwrap \"$@\"\n",
        marker.display()
    );
    fs::write(programs.join("bwrap"), evil).expect("a program");
    let mode = std::os::unix::fs::PermissionsExt::from_mode(0o755);
    fs::set_permissions(programs.join("bwrap"), mode).expect("it is marked");
    let path = format!("{}:/usr/local/bin:/usr/bin:/bin", programs.display());
    let mut exec = harness.command(&["--json", "do it"]);
    let output = ExecOutput::of(exec.env("PATH", path).output().expect("the binary starts"));
    assert!(output.out.contains("inside"), "{output:?}");
    assert!(!marker.exists(), "{output:?}");
}

/// Also the key of an unused provider, in a folder that sandboxed commands may read.
#[test]
fn a_key_file_is_hidden_from_the_model() {
    let outside = tempfile::tempdir_in("/var/tmp").expect("a folder");
    let key = outside.path().canonicalize().expect("a path").join("key");
    fs::write(&key, "sk-planted").expect("a key");
    let neighbour_file = key.with_file_name("beside");
    fs::write(&neighbour_file, "read-as-ever").expect("a file");
    let cat = |path: &Path| {
        format!(
            "{{ call = 'exec_command', arguments = {{ cmd = 'cat {0}; true', login = false }} }}, \
             {{ call = 'read_file', arguments = {{ path = '{0}' }} }}",
            path.display()
        )
    };
    let harness = ExecHarness::new(&format!(
        "[[answer]]\nmatch = 'go'\nsteps = [{}, {}]\n[[answer]]\nsteps = [{{ text = 'Done.' }}]",
        cat(&key),
        cat(&neighbour_file)
    ));
    let file = format!("model_providers.other.key_file='{}'", key.display());
    let address = "model_providers.other.base_url='http://127.0.0.1:9'";
    let output = harness.run(&["--quiet", "-c", &file, "-c", address, "go"]);
    assert_eq!(output.code, Some(0), "{output:?}");
    let request = harness.mock.request_bodies().pop().expect("a call")["input"].to_string();
    assert_eq!(request.matches("read-as-ever").count(), 2, "{request}");
    assert!(!request.contains("sk-planted"), "{request}");
}

/// A home, a folder to work in, and a model.
struct ExecHarness {
    home: TempDir,
    work: TempDir,
    mock: MockModel,
}

/// The exit status and the output of a run.
#[derive(Debug)]
struct ExecOutput {
    code: Option<i32>,
    out: String,
    err: String,
}

impl ExecHarness {
    fn new(script: &str) -> Self {
        Self {
            home: TempDir::new().expect("a home"),
            work: TempDir::new().expect("a folder"),
            mock: MockModel::start(script),
        }
    }

    /// Prepares `raddle exec` with these arguments, without starting it. Its stdin is empty.
    fn command(&self, words: &[&str]) -> Command {
        let mut exec = command(self.home.path());
        exec.arg("exec").args(self.mock.arguments(&[])).args(words);
        exec.current_dir(self.work.path())
            .env("PATH", "/usr/local/bin:/usr/bin:/bin")
            .env_remove("RADDLE_LOG_FORMAT")
            .stdin(Stdio::null());
        exec
    }

    fn run(&self, words: &[&str]) -> ExecOutput {
        ExecOutput::of(self.command(words).output().expect("the binary starts"))
    }

    /// Starts it, and reads its lines one by one.
    fn started(&self, words: &[&str]) -> RunningExec {
        let mut child = self.command(words).spawn().expect("the binary starts");
        let lines = BufReader::new(child.stdout.take().expect("stdout")).lines();
        RunningExec { child, lines }
    }

    fn wait_until_held(&self) {
        eventually("a held answer", || {
            (self.mock.request_log()["held"] == 1).then_some(())
        });
    }
}

impl ExecOutput {
    fn of(output: Output) -> Self {
        Self {
            code: output.status.code(),
            out: String::from_utf8(output.stdout).expect("text"),
            err: String::from_utf8(output.stderr).expect("text"),
        }
    }

    /// Its lines as JSON. There is no other output.
    fn events(&self) -> Vec<Value> {
        let read =
            |line| serde_json::from_str(line).unwrap_or_else(|_| panic!("{line:?} in {self:?}"));
        self.out.lines().map(read).collect()
    }
}

/// A running `exec --json`.
struct RunningExec {
    child: Child,
    lines: std::io::Lines<BufReader<std::process::ChildStdout>>,
}

impl RunningExec {
    /// Returns the next event of this type.
    fn until(&mut self, kind: &str) -> Value {
        for line in self.lines.by_ref() {
            let event: Value = serde_json::from_str(&line.expect("text")).expect("JSON");
            if event["type"] == kind {
                return event;
            }
        }
        panic!("no {kind}");
    }

    /// The server it started.
    fn server(&self) -> Option<u32> {
        server_of(&self.child)
    }

    /// Waits for its end. Returns the rest of its output, and its status.
    fn ended(self) -> ExecOutput {
        let Self { child, lines } = self;
        let rest: Vec<String> = lines.map(|it| it.expect("text")).collect();
        let mut output = child.wait_with_output().expect("an end");
        output.stdout = rest.join("\n").into_bytes();
        ExecOutput::of(output)
    }
}

/// Returns the server that a run started.
fn server_of(run: &Child) -> Option<u32> {
    let id = run.id();
    let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children")).ok()?;
    children.split_whitespace().next()?.parse().ok()
}

fn write(folder: &Path, name: &str, text: &str) -> String {
    let path = folder.join(name);
    fs::write(&path, text).expect("a file");
    path.display().to_string()
}

/// A script that answers every request with this text.
fn script_with_answer(text: &str) -> String {
    format!(
        "repeat = true\n[[answer]]\nsteps = [{{ text = {} }}]\n",
        Value::from(text)
    )
}
