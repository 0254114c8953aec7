//! Folders of threads that another thread replaced by a link, in the real binary.

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::MockClient;

const SCRIPT: &str = r#"
repeat = true
[[answer]]
match = 'say write'
steps = [
    { call = 'exec_command', arguments = { cmd = 'echo x > by-command', login = false } },
    { call = 'write_file', arguments = { path = 'by-tool', content = 'x' } },
]
[[answer]]
match = 'say outside'
steps = [{ call = 'exec_command', arguments = { cmd = 'echo x > outside', login = false, sandbox_permissions = 'require_escalated' } }]
[[answer]]
steps = [{ text = 'Done.' }]
"#;

/// The folders of a test: `around` is the workspace of one thread, `around/deep/sub` that of
/// another, and neither may write `outside`.
struct Folders {
    _top: TempDir,
    around: PathBuf,
    sub: PathBuf,
    outside: PathBuf,
}

impl Folders {
    fn new() -> Self {
        let top = tempfile::tempdir().expect("a folder");
        let plain = top.path().canonicalize().expect("its real path");
        let around = plain.join("around");
        let (sub, outside) = (around.join("deep/sub"), plain.join("outside"));
        for folder in [&sub, &outside, &outside.join("sub")] {
            fs::create_dir_all(folder).expect("a folder");
        }
        Self {
            _top: top,
            around,
            sub,
            outside,
        }
    }

    /// Does what a command of the outer thread could do.
    fn link(&self, folder: &Path) {
        if folder.exists() {
            fs::rename(folder, folder.with_extension("away")).expect("moved");
        }
        symlink(&self.outside, folder).expect("a link");
    }

    /// The files outside both workspaces.
    fn written(&self) -> Vec<PathBuf> {
        let files = [&self.outside, &self.outside.join("sub")].map(fs::read_dir);
        let files = files.into_iter().flat_map(|it| it.expect("a folder"));
        let files = files.map(|it| it.expect("an entry").path());
        files.filter(|it| it.is_file()).collect()
    }
}

fn writable(roots: &[&Path]) -> Value {
    json!({
        "type": "workspaceWrite", "writableRoots": roots, "excludeSlashTmp": true, "excludeTmpdirEnvVar": true,
    })
}

/// Starts a thread in a folder, the only one that it may write, and writes files there.
fn thread(client: &mut MockClient, cwd: &Path) -> String {
    let thread = client.thread_in(cwd);
    let params = json!({ "threadId": thread, "sandboxPolicy": writable(&[]) });
    client.answered(params, "say write", "decline");
    thread
}

/// Returns the error of a request, if it is rejected.
fn refusal(client: &mut MockClient, method: &str, params: Value) -> Option<String> {
    client.ask(method, params);
    let request_id = client.last_id;
    let answer = client.until(|it| it["id"] == request_id);
    let error = &answer.last().expect("an answer")["error"]["message"];
    error.as_str().map(str::to_owned)
}

/// Checks that the command of a turn is rejected because a folder leads elsewhere, and that nothing
/// was written there.
fn expect_rejected_write(client: &mut MockClient, folders: &Folders, thread: &str, what: &str) {
    let (_, messages) = client.answered(json!({ "threadId": thread }), "say write", "decline");
    let outputs = client.outputs_to_model();
    let is_refused = outputs.iter().any(|it| it.contains(" leads to "));
    assert!(is_refused, "{what}: {outputs:?}");
    let written = folders.written();
    assert!(written.is_empty(), "{what}: {written:?} {messages:?}");
}

#[test]
fn nothing_is_written_where_a_link_leads_a_thread() {
    for (what, is_missing, linked) in [
        ("the folder", false, "deep/sub"),
        ("a parent", false, "deep"),
        ("a folder that was missing", true, "deep/sub"),
    ] {
        let mut client = MockClient::start(SCRIPT, &[]);
        let folders = Folders::new();
        thread(&mut client, &folders.around);
        if is_missing {
            fs::remove_dir(&folders.sub).expect("removed");
        }
        let inner = thread(&mut client, &folders.sub);
        folders.link(&folders.around.join(linked));
        expect_rejected_write(&mut client, &folders, &inner, what);
        // Also outside the sandbox: neither the agent's command nor the user's own.
        let params = json!({ "threadId": inner });
        let (questions, _) = client.answered(params, "say outside", "accept");
        assert!(questions.is_empty(), "{what}: {questions:?}");
        let params = json!({ "threadId": inner, "command": "echo x > users" });
        client.ask("thread/shellCommand", params);
        let messages = client.until(|it| it["method"] == "turn/completed");
        let written = folders.written();
        assert!(written.is_empty(), "{what}: {written:?} {messages:?}");
    }
}

#[test]
fn nothing_is_written_where_a_link_leads_a_root() {
    let mut client = MockClient::start(SCRIPT, &[]);
    let folders = Folders::new();
    let inner = client.thread_in(&client.work());
    let params = json!({ "threadId": inner, "sandboxPolicy": writable(&[&folders.sub]) });
    client.answered(params, "hello", "decline");
    folders.link(&folders.sub);
    expect_rejected_write(&mut client, &folders, &inner, "a root");
}

/// A granted folder is the one that the user was shown.
#[test]
fn nothing_is_written_where_a_link_leads_a_granted_right() {
    for is_before in [true, false] {
        let folders = Folders::new();
        let asks = format!(
            "[[answer]]\nmatch = 'say ask'\nsteps = [{{ call = 'request_permissions', arguments = {{ permissions = {{ \
             file_system = {{ write = ['{}'] }} }} }} }}]\n",
            folders.sub.display()
        );
        let script = SCRIPT.replacen("[[answer]]", &format!("{asks}[[answer]]"), 1);
        let mut client = MockClient::start(&script, &[]);
        let inner = client.thread_in(&client.work());
        let input = json!([{ "type": "text", "text": "say ask" }]);
        let params = json!({ "threadId": inner, "input": input, "sandboxPolicy": writable(&[]) });
        client.ask("turn/start", params);
        let question = client.until(|it| it["method"] == "item/permissions/requestApproval");
        let question = question.last().expect("a question").clone();
        if is_before {
            folders.link(&folders.sub);
        }
        let permissions = json!({ "fileSystem": { "write": [folders.sub] } });
        let answer = json!({ "permissions": permissions, "scope": "session" });
        let answer = json!({ "id": question["id"], "result": answer });
        client.pipes.send(answer.to_string().as_bytes());
        client.until(|it| it["method"] == "turn/completed");
        if !is_before {
            folders.link(&folders.sub);
        }
        expect_rejected_write(&mut client, &folders, &inner, "a right");
    }
}

/// A link that an agent may have made is not followed when a client passes it as a folder.
#[test]
fn a_link_in_a_workspace_leads_no_thread_out_of_it() {
    let mut client = MockClient::experimental(SCRIPT);
    let folders = Folders::new();
    let outer = thread(&mut client, &folders.around);
    let work = client.work();
    let inner = thread(&mut client, &work);
    let link = folders.around.join("link");
    symlink(&folders.outside, &link).expect("a link");
    let exec = |cwd: &Path, roots: &[&Path]| json!({ "command": ["true"], "cwd": cwd, "sandboxPolicy": writable(roots) });
    let input = json!([{ "type": "text", "text": "hello" }]);
    let below = link.join("sub");
    for (method, params) in [
        ("thread/start", json!({ "cwd": link })),
        ("thread/start", json!({ "cwd": below })),
        ("thread/start", json!({ "runtimeWorkspaceRoots": [link] })),
        ("thread/resume", json!({ "threadId": inner, "cwd": link })),
        ("thread/fork", json!({ "threadId": inner, "cwd": link })),
        (
            "turn/start",
            json!({ "threadId": inner, "cwd": link, "input": input }),
        ),
        (
            "turn/start",
            json!({ "threadId": outer, "cwd": link, "input": input }),
        ),
        (
            "turn/start",
            json!({ "threadId": inner, "sandboxPolicy": writable(&[&link]), "input": input }),
        ),
        (
            "thread/settings/update",
            json!({ "threadId": inner, "cwd": link }),
        ),
        ("command/exec", exec(&link, &[])),
        ("command/exec", exec(&work, &[&link])),
    ] {
        let refusal = refusal(&mut client, method, params.clone());
        let refusal = refusal.unwrap_or_else(|| panic!("{method} {params} was accepted"));
        assert!(
            refusal.contains("by the link"),
            "{method} {params}: {refusal}"
        );
    }
    // Also after the threads, and with them their permissions, are gone.
    client.thread = outer.clone();
    client.start_again();
    for thread in [&outer, &inner] {
        assert_eq!(
            refusal(&mut client, "thread/delete", json!({ "threadId": thread })),
            None
        );
    }
    let refused = refusal(&mut client, "thread/start", json!({ "cwd": link }));
    assert!(refused.is_some_and(|it| it.contains("by the link")));
    // A link that stays in the workspace gives its agent no new access, and a link of the user is
    // followed.
    let inner_link = folders.around.join("inside");
    symlink(&folders.sub, &inner_link).expect("a link");
    let users = folders.outside.join("users");
    symlink(&folders.sub, &users).expect("a link");
    for cwd in [inner_link, users] {
        let thread = thread(&mut client, &cwd);
        let (_, messages) = client.answered(json!({ "threadId": thread }), "say write", "decline");
        for name in ["by-command", "by-tool"] {
            fs::remove_file(folders.sub.join(name))
                .unwrap_or_else(|_| panic!("{name}: {messages:?}"));
        }
    }
}

/// The server remembers writable folders, even when no thread works in them any more.
#[test]
fn a_link_that_a_client_s_command_made_leads_no_thread_out() {
    let mut client = MockClient::experimental(SCRIPT);
    let folders = Folders::new();
    let link = folders.around.join("link");
    let line = format!("ln -s {} {}", folders.outside.display(), link.display());
    let params = json!({ "command": ["sh", "-c", line], "cwd": folders.around, "sandboxPolicy": writable(&[]) });
    assert_eq!(refusal(&mut client, "command/exec", params), None);
    assert!(link.is_symlink());
    let params = json!({ "cwd": link });
    let refusal = refusal(&mut client, "thread/start", params).expect("a refusal");
    assert!(refusal.contains("by the link"), "{refusal}");
}

/// A thread continues in the folder its client chose, even after a restart of the server.
#[test]
fn a_link_of_the_users_that_leads_elsewhere_stops_the_thread() {
    let mut client = MockClient::start(SCRIPT, &[]);
    let folders = Folders::new();
    let link = folders.outside.join("users");
    symlink(&folders.sub, &link).expect("a link");
    let inner = thread(&mut client, &link);
    client.thread = inner.clone();
    fs::remove_file(&link).expect("removed");
    symlink(folders.outside.join("sub"), &link).expect("a link");
    client.start_again();
    expect_rejected_write(&mut client, &folders, &inner, "another target");
    // The user confirms the folder.
    let params = json!({ "threadId": inner, "cwd": link });
    client.answered(params, "say write", "decline");
    assert_eq!(
        folders.written().len(),
        2,
        "{:?}",
        client.outputs_to_model()
    );
}
