//! Approvals in the real binary: each is valid for one act, and only while the act is unchanged.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use serde_json::{Value, json};

use super::MockClient;

/// The model's actions, by the text of the user.
const SCRIPT: &str = r#"
repeat = true
[[answer]]
match = 'say run'
steps = [{ call = 'exec_command', arguments = { cmd = './run.sh', login = false, sandbox_permissions = 'require_escalated' } }]
[[answer]]
match = 'say more'
steps = [{ call = 'exec_command', arguments = { cmd = './run.sh more', login = false, sandbox_permissions = 'require_escalated' } }]
[[answer]]
match = 'say sub'
steps = [{ call = 'exec_command', arguments = { cmd = 'cd sub && make', login = false, sandbox_permissions = 'require_escalated' } }]
[[answer]]
match = 'say edit'
steps = [{ call = 'edit_file', arguments = { path = 'note', old = 'one', new = 'two' } }]
[[answer]]
match = 'say several'
steps = [
    { call = 'edit_file', arguments = { path = 'note', old = 'one', new = 'two' } },
    { call = 'edit_file', arguments = { path = 'note', old = 'and', new = 'or' } },
    { call = 'edit_file', arguments = { path = 'note', old = 'all', new = 'none' } },
]
[[answer]]
steps = [{ text = 'Done.' }]
"#;

/// Creates the folder of each case: a script, a makefile and a text.
fn lay_out(work: &Path) {
    fs::create_dir_all(work.join("sub")).expect("folders");
    put(&work.join("run.sh"), "echo one");
    put(&work.join("sub/Makefile"), "all:\n\techo one\n");
    put(&work.join("note"), "one and all\n");
}

fn put(path: &Path, text: &str) {
    fs::write(path, text).expect("a file");
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).expect("its mode");
}

impl MockClient {
    pub(super) fn thread_in(&mut self, cwd: &Path) -> String {
        self.ask("thread/start", json!({ "cwd": cwd }));
        let request_id = self.last_id;
        let answer = self.until(|it| it["id"] == request_id);
        let id = &answer.last().expect("an answer")["result"]["thread"]["id"];
        id.as_str().expect("a thread").to_owned()
    }

    /// Restarts the killed server and resumes the thread.
    pub(super) fn start_again(&mut self) {
        let arguments = self.mock.arguments(&[]);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        self.server.start_again(&arguments);
        self.pipes = self.server.pipes();
        self.pipes.hello();
        let thread = json!({ "threadId": self.thread });
        self.ask("thread/resume", thread);
        let request_id = self.last_id;
        self.until(|it| it["id"] == request_id);
    }

    /// Runs a turn and gives every approval request this answer. Returns the requests, and all
    /// messages.
    pub(super) fn answered(
        &mut self,
        mut params: Value,
        text: &str,
        answer: &str,
    ) -> (Vec<Value>, Vec<Value>) {
        params["input"] = json!([{ "type": "text", "text": text }]);
        self.ask("turn/start", params);
        let is_question = |it: &Value| {
            let method = it["method"].as_str().unwrap_or_default();
            method.ends_with("/requestApproval")
        };
        let (mut questions, mut messages) = (Vec::new(), Vec::new());
        loop {
            let more = self.until(|it| it["method"] == "turn/completed" || is_question(it));
            messages.extend(more);
            let last = messages.last().cloned().unwrap_or_default();
            if !is_question(&last) {
                return (questions, messages);
            }
            let reply = json!({ "id": last["id"], "result": { "decision": answer } });
            self.pipes.send(reply.to_string().as_bytes());
            questions.push(last);
        }
    }

    /// The outputs of calls in the last request to the model, newest last.
    pub(super) fn outputs_to_model(&self) -> Vec<String> {
        let requests = self.mock.request_bodies();
        let input = requests.last().map(|it| it["input"].clone());
        let input = input.unwrap_or_default();
        let outputs = input.as_array().into_iter().flatten();
        let outputs = outputs.filter_map(|it| it["output"].as_str());
        outputs.map(str::to_owned).collect()
    }
}

/// A change between an approval for the session and the next call.
struct Swap {
    what: &'static str,
    first: &'static str,
    then: &'static str,
    change: fn(&Path),
    params: fn(&Path) -> Value,
    is_asked: bool,
}

impl Swap {
    const fn new(what: &'static str, say: &'static str, change: fn(&Path)) -> Self {
        Self {
            what,
            first: say,
            then: say,
            change,
            params: |_| json!({}),
            is_asked: true,
        }
    }

    const fn for_nothing(mut self) -> Self {
        self.is_asked = false;
        self
    }
}

/// Replaces a folder by a copy with the same content.
fn exchange(folder: &Path) {
    let away = folder.with_extension("away");
    fs::rename(folder, &away).expect("moved");
    let mut copy = std::process::Command::new("cp");
    let copied = copy.arg("-a").args([&away, folder]).status();
    assert!(copied.expect("cp").success());
}

const SWAPS: [Swap; 16] = [
    Swap::new("nothing, for a command", "say run", |_| {}).for_nothing(),
    // The files that a makefile includes and runs cannot be listed, so its approval is for one
    // call.
    Swap::new("nothing, for a recipe", "say sub", |_| {}),
    Swap::new("the same text again", "say edit", |work| {
        put(&work.join("note"), "one and all\n")
    })
    .for_nothing(),
    Swap::new("the script written anew", "say run", |work| {
        fs::remove_file(work.join("run.sh")).expect("gone");
        put(&work.join("run.sh"), "echo one");
    })
    .for_nothing(),
    Swap::new("a file that is not named", "say run", |work| {
        put(&work.join("other"), "x")
    })
    .for_nothing(),
    Swap {
        then: "say more",
        ..Swap::new("a word", "say run", |_| {})
    },
    Swap {
        params: |work| {
            lay_out(&work.join("sub"));
            json!({ "cwd": work.join("sub") })
        },
        ..Swap::new("the folder", "say run", |_| {})
    },
    Swap::new("which folder it is", "say run", exchange),
    Swap {
        params: |_| json!({ "sandboxPolicy": { "type": "workspaceWrite" } }),
        ..Swap::new("the sandbox", "say run", |_| {})
    },
    Swap::new("the script", "say run", |work| {
        put(&work.join("run.sh"), "echo two")
    }),
    Swap::new("a link to a like script", "say run", |work| {
        fs::rename(work.join("run.sh"), work.join("old.sh")).expect("moved");
        symlink("old.sh", work.join("run.sh")).expect("a link");
    }),
    Swap::new("the recipe", "say sub", |work| {
        put(&work.join("sub/Makefile"), "all:\n\techo two\n");
    }),
    Swap::new("the folder that is gone to", "say sub", |work| {
        exchange(&work.join("sub"))
    }),
    // An approval of a file change for the session is about the files.
    Swap::new("the text around it", "say edit", |work| {
        put(&work.join("note"), "one and only\n");
    })
    .for_nothing(),
    Swap {
        params: |_| json!({ "sandboxPolicy": { "type": "readOnly", "networkAccess": true } }),
        ..Swap::new(
            "the sandbox in which files are written",
            "say edit",
            |work| {
                put(&work.join("note"), "one and all\n");
            },
        )
    },
    Swap::new("where the text is", "say edit", |work| {
        fs::create_dir(work.join("away")).expect("a folder");
        fs::remove_file(work.join("note")).expect("gone");
        put(&work.join("away/note"), "one and all\n");
        symlink("away/note", work.join("note")).expect("a link");
    }),
];

#[test]
fn grant_swap() {
    let mut client = MockClient::start(SCRIPT, &[]);
    for swap in &SWAPS {
        let folder = tempfile::tempdir().expect("a folder");
        let work = folder.path().canonicalize().expect("its name").join("work");
        lay_out(&work);
        let thread = client.thread_in(&work);
        let params = |more: Value| {
            let mut params = json!({ "threadId": thread, "sandboxPolicy": { "type": "readOnly" } });
            for (name, value) in more.as_object().into_iter().flatten() {
                params[name] = value.clone();
            }
            params
        };
        let (questions, _) = client.answered(params(json!({})), swap.first, "acceptForSession");
        assert_eq!(questions.len(), 1, "{}", swap.what);
        (swap.change)(&work);
        let (questions, messages) =
            client.answered(params((swap.params)(&work)), swap.then, "decline");
        assert_eq!(
            questions.len(),
            usize::from(swap.is_asked),
            "{}: {messages:?}",
            swap.what
        );
    }
}

/// Each edit builds on the result of the one before.
#[test]
fn several_edits_of_one_file_in_one_answer_are_all_made() {
    let mut client = MockClient::start(SCRIPT, &[]);
    let folder = tempfile::tempdir().expect("a folder");
    let work = folder.path().canonicalize().expect("its name");
    lay_out(&work);
    let thread = client.thread_in(&work);
    let sandbox = json!({ "type": "workspaceWrite" });
    let params = json!({ "threadId": thread, "sandboxPolicy": sandbox });
    let (questions, _) = client.answered(params, "say several", "decline");
    assert_eq!(questions, [Value::Null; 0]);
    let text = fs::read_to_string(work.join("note")).expect("a file");
    assert_eq!(text, "two or none\n", "{:?}", client.outputs_to_model());
}

/// A command inside the sandbox could replace what was approved outside of it.
#[test]
fn nothing_is_escalated_while_a_sandboxed_command_runs() {
    let beyond = "{ call = 'exec_command', arguments = { cmd = 'echo outside', login = false, sandbox_permissions = 'require_escalated' } }";
    let script = format!(
        r#"
[[answer]]
match = 'say go'
steps = [{{ call = 'exec_command', arguments = {{ cmd = 'sleep 600', login = false, yield_time_ms = 250 }} }}]
[[answer]]
match = 'running with session ID 1'
steps = [{beyond}]
[[answer]]
match = 'End these sessions first'
steps = [{{ call = 'write_stdin', arguments = {{ session_id = 1, chars = "\u0003", yield_time_ms = 10000 }} }}]
[[answer]]
match = 'exited with code 1'
steps = [{beyond}]
[[answer]]
steps = [{{ text = 'Done.' }}]
"#
    );
    let mut client = MockClient::start(&script, &[]);
    let work = tempfile::tempdir().expect("a folder");
    let sandbox = json!({ "type": "workspaceWrite" });
    let params = json!({ "threadId": client.thread, "sandboxPolicy": sandbox, "cwd": work.path() });
    let (questions, _) = client.answered(params, "say go", "accept");
    let outputs = client.outputs_to_model();
    assert_eq!((questions.len(), outputs.len()), (2, 4), "{outputs:?}");
    let refused = "This was not run: no command may run outside the sandbox while commands of this thread run in it.";
    assert!(
        outputs[1].starts_with(refused) && outputs[1].ends_with(": 1"),
        "{outputs:?}"
    );
    assert!(outputs[3].ends_with("outside\n"), "{outputs:?}");
}

/// An approval to write to stdin is for that command, not for another with the same session id.
#[test]
fn approved_input_is_bound_to_its_command() {
    let typing =
        "steps = [{ call = 'write_stdin', arguments = { session_id = ID, chars = \"ls\\n\" } }]";
    let into = |id: &str| typing.replace("ID", id);
    let (first, second) = (into("1"), into("2"));
    let script = format!(
        r#"
repeat = true
[[answer]]
match = 'say cat'
steps = [{{ call = 'exec_command', arguments = {{ cmd = 'cat', tty = true, login = false, yield_time_ms = 250, sandbox_permissions = 'require_escalated' }} }}]
[[answer]]
match = 'running with session ID 1'
times = 2
{first}
[[answer]]
match = 'running with session ID 1'
times = 1
steps = [{{ text = 'Done.' }}]
[[answer]]
match = 'running with session ID 1'
times = 1
{first}
[[answer]]
match = 'running with session ID 2'
times = 1
{second}
[[answer]]
steps = [{{ text = 'Done.' }}]
"#
    );
    let mut client = MockClient::start(&script, &[]);
    let mut shown = Vec::new();
    for turn in 0..3 {
        if turn == 2 {
            client.start_again();
        }
        let sandbox = json!({ "type": "workspaceWrite" });
        let params = json!({ "threadId": client.thread, "sandboxPolicy": sandbox });
        let (questions, _) = client.answered(params, "say cat", "acceptForSession");
        let commands = questions.iter().map(|it| &it["params"]["command"]);
        let commands = commands.filter_map(Value::as_str).map(str::to_owned);
        shown.push(commands.collect::<Vec<_>>());
    }
    // The command is the same each time; input for the first one is the same twice.
    let expected = [&["/bin/bash -c cat", "ls\n"][..], &["ls\n"], &["ls\n"]];
    assert_eq!(shown, expected);
}
