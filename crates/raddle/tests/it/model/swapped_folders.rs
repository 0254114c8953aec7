//! Folders of threads that another thread exchanged for a link, in the real program.

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

/// The folders of a test: `around` is the workspace of one thread, `around/sub` that of another, and neither may write
/// `outside`.
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

/// A thread in a folder, which it may write and nothing else, and has written.
fn thread(client: &mut MockClient, cwd: &Path) -> String {
    let thread = client.thread_in(cwd);
    let params = json!({ "threadId": thread, "sandboxPolicy": writable(&[]) });
    client.answered(params, "say write", "decline");
    thread
}

/// The error of a request, if it is refused.
fn refusal(client: &mut MockClient, method: &str, params: Value) -> Option<String> {
    client.ask(method, params);
    let asked = client.asked;
    let answer = client.until(|it| it["id"] == asked);
    let error = &answer.last().expect("an answer")["error"]["message"];
    error.as_str().map(str::to_owned)
}

/// The command of a turn is refused because a folder leads elsewhere, and nothing was written there.
fn is_kept_out(client: &mut MockClient, folders: &Folders, thread: &str, what: &str) {
    let (_, heard) = client.answered(json!({ "threadId": thread }), "say write", "decline");
    let told = client.told();
    let is_refused = told.iter().any(|it| it.contains(" leads to "));
    assert!(is_refused, "{what}: {told:?}");
    let written = folders.written();
    assert!(written.is_empty(), "{what}: {written:?} {heard:?}");
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
        is_kept_out(&mut client, &folders, &inner, what);
        // Outside the sandbox too: neither the agent's command nor the user's own.
        let params = json!({ "threadId": inner });
        let (asked, _) = client.answered(params, "say outside", "accept");
        assert!(asked.is_empty(), "{what}: {asked:?}");
        let params = json!({ "threadId": inner, "command": "echo x > users" });
        client.ask("thread/shellCommand", params);
        let heard = client.until(|it| it["method"] == "turn/completed");
        let written = folders.written();
        assert!(written.is_empty(), "{what}: {written:?} {heard:?}");
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
    is_kept_out(&mut client, &folders, &inner, "a root");
}

/// A folder that was granted is the one that the user was shown.
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
        let given = json!({ "fileSystem": { "write": [folders.sub] } });
        let answer = json!({ "permissions": given, "scope": "session" });
        let answer = json!({ "id": question["id"], "result": answer });
        client.pipes.send(answer.to_string().as_bytes());
        client.until(|it| it["method"] == "turn/completed");
        if !is_before {
            folders.link(&folders.sub);
        }
        is_kept_out(&mut client, &folders, &inner, "a right");
    }
}

/// A link that an agent may have made is not followed when a client names a folder.
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
    // Also when the threads are gone, and with them what they were allowed.
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
    // One that stays in the workspace gives its agent nothing new, and one of the user's is followed.
    let inside = folders.around.join("inside");
    symlink(&folders.sub, &inside).expect("a link");
    let users = folders.outside.join("users");
    symlink(&folders.sub, &users).expect("a link");
    for cwd in [inside, users] {
        let thread = thread(&mut client, &cwd);
        let (_, heard) = client.answered(json!({ "threadId": thread }), "say write", "decline");
        for name in ["by-command", "by-tool"] {
            fs::remove_file(folders.sub.join(name)).unwrap_or_else(|_| panic!("{name}: {heard:?}"));
        }
    }
}

/// Who could make a link is remembered when nobody works in its folder any more.
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

/// A thread goes on where its client put it, also when the process has ended in between.
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
    is_kept_out(&mut client, &folders, &inner, "another target");
    // The user says that it is meant.
    let params = json!({ "threadId": inner, "cwd": link });
    client.answered(params, "say write", "decline");
    assert_eq!(folders.written().len(), 2, "{:?}", client.told());
}
