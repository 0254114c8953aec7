//! File holds in the real binary: the approved content is what runs outside the sandbox.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Child;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::MockClient;
use crate::support::eventually;
use crate::support::server::command;
use crate::support::stdio::Pipes;

/// How many approvals are raced against a sandboxed command that rewrites the approved file.
/// `RADDLE_HOLD_ROUNDS` sets another number.
fn rounds() -> usize {
    let rounds_variable = std::env::var("RADDLE_HOLD_ROUNDS").ok();
    rounds_variable.and_then(|it| it.parse().ok()).unwrap_or(12)
}

const SCRIPT: &str = r#"
repeat = true
[[answer]]
match = 'say run'
steps = [{ call = 'exec_command', arguments = { cmd = './run.sh', login = false, sandbox_permissions = 'require_escalated' } }]
[[answer]]
match = 'say bash'
steps = [{ call = 'exec_command', arguments = { cmd = 'bash run.sh', login = false, sandbox_permissions = 'require_escalated' } }]
[[answer]]
match = 'say folder'
steps = [{ call = 'exec_command', arguments = { cmd = '$PWD/run.sh', login = false, sandbox_permissions = 'require_escalated' } }]
[[answer]]
match = 'say pattern'
steps = [{ call = 'exec_command', arguments = { cmd = './ru?.sh', login = false, sandbox_permissions = 'require_escalated' } }]
[[answer]]
match = 'say variable'
steps = [{ call = 'exec_command', arguments = { cmd = 'x=run; bash $x.sh', login = false, sandbox_permissions = 'require_escalated' } }]
[[answer]]
match = 'say swap'
steps = [{ call = 'exec_command', arguments = { cmd = 'bash swap.sh', login = false } }]
[[answer]]
steps = [{ text = 'Done.' }]
"#;

/// The approved commands: a script by its name, and by names that the shell expands.
const LINES: [&str; 5] = [
    "say run",
    "say bash",
    "say folder",
    "say pattern",
    "say variable",
];

/// A workspace with a script to approve and one that rewrites it, and a folder that the sandbox
/// cannot write.
struct HoldFixture {
    _folder: TempDir,
    work: PathBuf,
    outside: PathBuf,
}

const GOOD: &str = "echo the approved content";

impl HoldFixture {
    fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let top = folder.path().canonicalize().expect("its name");
        let (work, outside) = (top.join("work"), top.join("outside"));
        for folder in [&work, &outside] {
            fs::create_dir(folder).expect("a folder");
        }
        put(&work.join("run.sh"), GOOD);
        let evil = format!("echo x >> {}", outside.join("ran").display());
        // Each content stays for a few milliseconds: long enough for a check of the file, short
        // enough to be replaced when the command starts.
        let swap = format!(
            "touch begun; for i in {{1..12}}; do for it in '{evil}' '{GOOD}'; do \
             echo \"$it\" > new; chmod 755 new; mv -f new run.sh; sleep 0.00$((RANDOM % 10)); done; done"
        );
        put(&work.join("swap.sh"), &swap);
        Self {
            _folder: folder,
            work,
            outside,
        }
    }
}

fn put(path: &Path, text: &str) {
    fs::write(path, format!("{text}\n")).expect("a file");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("its mode");
}

fn sandbox() -> Value {
    json!({ "type": "workspaceWrite", "excludeSlashTmp": true, "excludeTmpdirEnvVar": true })
}

/// Another server process on the same home, killed on drop.
struct PeerProcess {
    child: Child,
    pipes: Pipes,
    last_id: u64,
}

impl PeerProcess {
    fn start(home: &Path) -> Self {
        let mut command = command(home);
        command
            .arg("app-server")
            .stderr(std::process::Stdio::null());
        let mut child = command.spawn().expect("the binary starts");
        let mut pipes = Pipes::of(&mut child);
        pipes.hello();
        Self {
            child,
            pipes,
            last_id: 100,
        }
    }

    /// Sends a request.
    fn send(&mut self, method: &str, params: Value) {
        self.last_id += 1;
        let request = json!({ "id": self.last_id, "method": method, "params": params });
        self.pipes.send(request.to_string().as_bytes());
    }

    /// Sends a request, and waits for its response.
    fn ask(&mut self, method: &str, params: Value) -> Value {
        self.send(method, params);
        self.end()
    }

    /// Starts a sandboxed command.
    fn begin(&mut self, cwd: &Path, words: &[&str]) {
        let params = json!({ "command": words, "cwd": cwd, "sandboxPolicy": sandbox() });
        self.send("command/exec", params);
    }

    /// Waits for the response to the last one.
    fn end(&mut self) -> Value {
        loop {
            let message = self.pipes.receive();
            if message["id"] == self.last_id {
                return message;
            }
        }
    }
}

impl Drop for PeerProcess {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Approvals, while a sandboxed command of another thread or process rewrites the file between the
/// request and the start. The foreign content never runs, and the approved content does.
#[test]
fn what_was_approved_is_what_runs() {
    let mut client = MockClient::start(SCRIPT, &[]);
    let mut peer = PeerProcess::start(client.server.home());
    let fixture = HoldFixture::new();
    let thread = client.thread_in(&fixture.work);
    let other = client.thread_in(&fixture.work);
    let say = |client: &mut MockClient, thread: &str, text: &str| {
        let input = json!([{ "type": "text", "text": text }]);
        let params = json!({ "threadId": thread, "sandboxPolicy": sandbox(), "input": input });
        client.ask("turn/start", params);
    };
    let rounds = rounds();
    let (mut foreign, mut approved) = (0, 0);
    // The last round has no concurrent writer.
    for round in 0..=rounds {
        let (is_peer_round, is_last) = (round % 2 == 1, round == rounds);
        put(&fixture.work.join("run.sh"), GOOD);
        let _ = fs::remove_file(fixture.work.join("begun"));
        let text = match is_last {
            true => "say folder",
            false => LINES[round / 2 % LINES.len()],
        };
        say(&mut client, &thread, text);
        let messages = client.until(|it| {
            let method = it["method"].as_str().unwrap_or_default();
            method.ends_with("/requestApproval")
        });
        let question = messages.last().expect("a question")["id"].clone();
        match is_peer_round {
            _ if is_last => {}
            true => peer.begin(&fixture.work, &["bash", "swap.sh"]),
            false => say(&mut client, &other, "say swap"),
        }
        let started_mark = fixture.work.join("begun");
        let has_begun = || (is_last || started_mark.exists()).then_some(());
        eventually("the other command", has_begun);
        let reply = json!({ "id": question, "result": { "decision": "accept" } });
        client.pipes.send(reply.to_string().as_bytes());
        let turns = if is_peer_round || is_last { 1 } else { 2 };
        let mut output = String::new();
        for _ in 0..turns {
            let messages = client.until(|it| it["method"] == "turn/completed");
            let items = messages.iter().filter(|it| {
                it["method"] == "item/completed" && it["params"]["threadId"] == thread
            });
            for it in items {
                let text = &it["params"]["item"]["aggregatedOutput"];
                output.push_str(text.as_str().unwrap_or_default());
            }
        }
        if is_peer_round && !is_last {
            let answer = peer.end();
            assert_eq!(answer["result"]["exitCode"], 0, "{answer}");
        }
        foreign += usize::from(fs::remove_file(fixture.outside.join("ran")).is_ok());
        let is_approved = output.contains("the approved content");
        approved += usize::from(is_approved);
        assert!(is_approved || !is_last, "{output}");
    }
    // A command whose file differed at the last check is not run at all.
    eprintln!(
        "figure: {rounds} approvals: {foreign} ran foreign content, {approved} the approved one"
    );
    assert_eq!(foreign, 0, "of {rounds} approvals ran foreign content");
}

/// A shell reads a script while it runs it. No sandboxed command can write that script until it has
/// ended.
#[test]
fn a_script_is_not_rewritten_while_it_runs_outside_the_sandbox() {
    let script = r#"
[[answer]]
match = 'say long'
steps = [{ call = 'exec_command', arguments = { cmd = 'bash run.sh', login = false, yield_time_ms = 250, sandbox_permissions = 'require_escalated' } }]
[[answer]]
match = 'running with session ID 1'
steps = [{ call = 'exec_command', arguments = { cmd = 'echo "touch ../outside/ran" >> run.sh; echo tried', login = false } }]
[[answer]]
match = 'tried'
steps = [
    { call = 'write_file', arguments = { path = 'run.sh', content = 'touch ../outside/ran' } },
    { call = 'write_file', arguments = { path = 'other', content = 'x' } },
]
[[answer]]
steps = [{ text = 'Done.' }]
"#;
    let mut client = MockClient::start(script, &[]);
    let mut peer = PeerProcess::start(client.server.home());
    let fixture = HoldFixture::new();
    put(&fixture.work.join("run.sh"), "echo begun; sleep 600");
    let before = fs::read(fixture.work.join("run.sh")).expect("a file");
    let thread = client.thread_in(&fixture.work);
    let params = json!({ "threadId": thread, "sandboxPolicy": sandbox() });
    let (questions, messages) = client.answered(params, "say long", "accept");
    assert_eq!(questions.len(), 1, "{messages:?}");
    let outputs = client.outputs_to_model();
    assert_eq!(outputs.len(), 4, "{outputs:?}");
    assert!(outputs[1].contains("tried"), "{outputs:?}");
    assert!(
        outputs[1].contains("was read-only for this command"),
        "{outputs:?}"
    );
    assert!(outputs[2].contains("bash run.sh"), "{outputs:?}");
    assert!(outputs[2].contains("run.sh is held"), "{outputs:?}");
    let now = fs::read(fixture.work.join("run.sh")).expect("a file");
    assert_eq!(now, before, "{outputs:?}");
    assert!(fixture.work.join("other").exists(), "{outputs:?}");
    // It ended with its turn, which releases the file.
    peer.begin(&fixture.work, &["bash", "-c", "echo x >> run.sh"]);
    let answer = peer.end();
    assert_eq!(answer["result"]["exitCode"], 0, "{answer}");
}

/// MCP servers that may write the workspace run in this process and in another one. They end for an
/// approved command, and are started again.
#[test]
fn an_approved_command_does_not_wait_for_mcp_servers_of_any_process() {
    let script = r#"
repeat = true
[[answer]]
match = 'say run'
steps = [{ call = 'exec_command', arguments = { cmd = 'bash run.sh', login = false, sandbox_permissions = 'require_escalated' } }]
[[answer]]
steps = [{ text = 'Done.' }]
"#;
    let server = include_str!("../exec/mcp_server.py");
    let config = format!(
        "[mcp_servers.demo]\ncommand = 'python3'\nargs = ['-c', '''{server}''']\ncwd = '.'\n"
    );
    let mut client = MockClient::start(script, &[]);
    fs::write(client.server.home().join("config.toml"), config).expect("a configuration");
    let fixture = HoldFixture::new();
    let mut peer = PeerProcess::start(client.server.home());
    let start = json!({ "cwd": fixture.work, "sandbox": "workspace-write" });
    let reply = peer.ask("thread/start", start);
    let there = reply["result"]["thread"]["id"].clone();
    let write = |thread: &Value, name: &str| {
        json!({
            "threadId": thread, "server": "demo", "tool": "write", "arguments": { "path": name },
        })
    };
    let reply = peer.ask("mcpServer/tool/call", write(&there, "one"));
    assert_eq!(reply["result"]["content"][0]["text"], "done", "{reply}");
    let thread = client.thread_in(&fixture.work);
    let params = json!({ "threadId": thread, "sandboxPolicy": sandbox() });
    let (questions, messages) = client.answered(params, "say run", "accept");
    assert_eq!(questions.len(), 1, "{messages:?}");
    let outputs = client.outputs_to_model();
    assert!(outputs[0].contains("the approved content"), "{outputs:?}");
    let reply = peer.ask("mcpServer/tool/call", write(&there, "two"));
    assert_eq!(reply["result"]["content"][0]["text"], "done", "{reply}");
    assert!(fixture.work.join("two").exists());
}
