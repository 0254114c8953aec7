//! Hooks in the real binary: shell scripts in a real sandbox, which deny, ask, change and add.

use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{MockClient, MockModel};
use crate::support::server::command;

/// A client whose home has hooks, with their scripts in a folder that the sandbox shows.
struct HookedClient {
    client: MockClient,
    scripts: TempDir,
}

impl HookedClient {
    /// Starts a server whose model makes this call when it is told to do it.
    fn start(call: &str) -> Self {
        let script = format!(
            "[[answer]]\nmatch = 'do it'\nsteps = [{call}]\n[[answer]]\nsteps = [{{ text = 'Done.' }}]"
        );
        let mock = MockModel::start(&script);
        let mut arguments = mock.arguments(&[]);
        // The folder of the thread lies in the home, which is hidden unless it is a workspace.
        for setting in [
            "sandbox_mode=workspace-write",
            "sandbox_workspace_write.exclude_slash_tmp=true",
            "sandbox_workspace_write.exclude_tmpdir_env_var=true",
        ] {
            arguments.extend(["-c".to_owned(), setting.to_owned()]);
        }
        Self {
            client: MockClient::of(mock, &arguments),
            scripts: TempDir::new_in("/var/tmp").expect("a folder"),
        }
    }

    fn home(&self) -> &Path {
        self.client.server.home()
    }

    /// Writes a script, and returns its path.
    fn script(&self, name: &str, text: &str) -> String {
        let path = self.scripts.path().join(name);
        std::fs::write(&path, format!("#!/bin/sh\n{text}\n")).expect("a script");
        let executable = std::fs::Permissions::from_mode(0o755);
        std::fs::set_permissions(&path, executable).expect("permissions");
        path.display().to_string()
    }

    /// Defines one hook for each event, without trust.
    fn define(&self, hooks: &[(&str, &str)]) {
        let mut events = json!({});
        for (event, command) in hooks {
            events[*event] = json!([{ "hooks": [{ "type": "command", "command": command }] }]);
        }
        let file = json!({ "hooks": events }).to_string();
        std::fs::write(self.home().join("hooks.json"), file).expect("hooks");
    }

    /// Trusts all hooks as the user does.
    fn trust(&self) {
        let trusted = command(self.home())
            .args(["hooks", "trust", "--all"])
            .output();
        let trusted = trusted.expect("the binary starts");
        assert!(trusted.status.success(), "{trusted:?}");
    }

    /// Runs a turn and answers its requests for approval. Returns its messages, and the last output
    /// of a tool that the model read.
    fn act(&mut self, decision: &str) -> (Vec<Value>, String) {
        let sandbox = json!({
            "type": "workspaceWrite", "excludeSlashTmp": true, "excludeTmpdirEnvVar": true,
        });
        let input = json!([{ "type": "text", "text": "do it" }]);
        let thread = self.client.thread.clone();
        let params = json!({ "threadId": thread, "input": input, "sandboxPolicy": sandbox });
        self.client.ask("turn/start", params);
        let mut messages = Vec::new();
        loop {
            let more = self.client.until(|it| {
                let method = it["method"].as_str().unwrap_or_default();
                method == "turn/completed" || method.ends_with("/requestApproval")
            });
            let last = more.last().cloned().unwrap_or_default();
            messages.extend(more);
            if last["method"] == "turn/completed" {
                break;
            }
            let answer = json!({ "id": last["id"], "result": { "decision": decision } });
            self.client.pipes.send(answer.to_string().as_bytes());
        }
        let requests = self.client.mock.request_bodies();
        let inputs = requests.last().and_then(|it| it["input"].as_array());
        let outputs = inputs.into_iter().flatten();
        let output = outputs.filter_map(|it| it["output"].as_str()).next_back();
        (messages, output.unwrap_or_default().to_owned())
    }

    /// Returns the trust of each hook, as clients see it.
    fn trust_statuses(&mut self) -> Vec<Value> {
        self.client.ask("hooks/list", json!({}));
        let id = self.client.last_id;
        let messages = self.client.until(|it| it["id"] == id);
        let entry = &messages.last().expect("an answer")["result"]["data"][0];
        let hooks = entry["hooks"].as_array().expect("hooks").iter();
        hooks.map(|it| it["trustStatus"].clone()).collect()
    }
}

/// Returns the runs of hooks among the messages: event, status, and the text of the first entry.
fn runs(messages: &[Value]) -> Vec<(String, String, String)> {
    let ended = messages
        .iter()
        .filter(|it| it["method"] == "hook/completed");
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let run = |it: &Value| {
        let run = &it["params"]["run"];
        (
            text(&run["eventName"]),
            text(&run["status"]),
            text(&run["entries"][0]["text"]),
        )
    };
    ended.map(run).collect()
}

const TOUCH: &str = "{ call = 'exec_command', arguments = { cmd = 'touch here', login = false } }";

/// A hook runs in the form that the user trusted, and in no other.
#[test]
fn a_hook_denies_a_call_while_it_is_trusted() {
    let mut it = HookedClient::start(TOUCH);
    let here = it.client.work().join("here");
    let deny = "grep -q 'touch here' && echo 'no files today' >&2 && exit 2";
    let path = it.script("deny", deny);
    // Hooks count from the moment when their file appears.
    let (messages, _) = it.act("decline");
    assert!(here.exists(), "{messages:?}");
    std::fs::remove_file(&here).expect("removed");
    it.define(&[("PreToolUse", &path)]);

    assert_eq!(it.trust_statuses(), ["untrusted"]);
    let (messages, _) = it.act("decline");
    assert!(
        here.exists(),
        "an untrusted hook does not run: {messages:?}"
    );
    assert!(runs(&messages).is_empty(), "{messages:?}");
    std::fs::remove_file(&here).expect("removed");

    it.trust();
    assert_eq!(it.trust_statuses(), ["trusted"]);
    let (messages, output) = it.act("accept");
    assert!(!here.exists(), "{messages:?}");
    assert!(
        output.contains("a hook of the user forbids it. no files today"),
        "{output}"
    );
    let expected = (
        "preToolUse".into(),
        "blocked".into(),
        "no files today".into(),
    );
    assert_eq!(runs(&messages), [expected]);
    let started = messages.iter().filter(|it| it["method"] == "hook/started");
    assert_eq!(started.count(), 1);

    it.script("deny", "exit 0 # changed");
    assert_eq!(it.trust_statuses(), ["modified"]);
    let (messages, _) = it.act("accept");
    assert!(runs(&messages).is_empty(), "{messages:?}");
    let warned = warnings(&messages);
    assert_eq!(warned.len(), 1, "{messages:?}");
    assert!(
        warned[0].contains("`raddle hooks trust NUMBER`"),
        "{warned:?}"
    );
    let (messages, _) = it.act("accept");
    assert_eq!(warnings(&messages), Vec::<&str>::new());
    it.script("deny", "exit 0 # changed again");
    let (messages, _) = it.act("accept");
    assert_eq!(warnings(&messages).len(), 1, "{messages:?}");
}

/// Returns the texts of the warnings among the messages.
fn warnings(messages: &[Value]) -> Vec<&str> {
    let warnings = messages.iter().filter(|it| it["method"] == "warning");
    let texts = warnings.filter_map(|it| it["params"]["message"].as_str());
    texts.collect()
}

/// A request for approval that the policy would not make, and a hook that rejects another.
#[test]
fn a_hook_asks_for_an_approval_and_may_reject_it() {
    let mut it = HookedClient::start(TOUCH);
    let here = it.client.work().join("here");
    let answer = json!({ "hookSpecificOutput": {
        "hookEventName": "PreToolUse", "permissionDecision": "ask",
        "permissionDecisionReason": "files are precious",
    } });
    let ask = it.script("ask", &format!("echo '{answer}'"));
    it.define(&[("PreToolUse", &ask)]);
    it.trust();
    let (messages, _) = it.act("decline");
    let is_request = |it: &&Value| it["method"] == "item/commandExecution/requestApproval";
    let request = messages.iter().find(is_request).expect("a request");
    assert_eq!(
        request["params"]["reason"], "files are precious",
        "{request}"
    );
    assert!(!here.exists());
    it.act("accept");
    assert!(here.exists());
    std::fs::remove_file(&here).expect("removed");

    let reject = it.script("reject", "echo 'nobody is there' >&2; exit 2");
    it.define(&[("PreToolUse", &ask), ("PermissionRequest", &reject)]);
    it.trust();
    let (messages, output) = it.act("accept");
    assert!(messages.iter().find(is_request).is_none(), "{messages:?}");
    assert!(output.contains("nobody is there"), "{output}");
    assert!(!here.exists());
}

/// The policy judges the changed call, and a hook never allows more than the policy.
#[test]
fn a_hook_changes_the_input_and_adds_to_the_output() {
    let mut it = HookedClient::start(TOUCH);
    let answer = json!({ "hookSpecificOutput": {
        "hookEventName": "PreToolUse", "permissionDecision": "allow",
        "updatedInput": { "command": "touch there" },
    } });
    let change = it.script("change", &format!("echo '{answer}'"));
    let note = json!({ "hookSpecificOutput": {
        "hookEventName": "PostToolUse", "additionalContext": "the file is empty",
    } });
    let note = it.script(
        "note",
        &format!("grep -q '\"tool_response\"' && echo '{note}'"),
    );
    it.define(&[("PreToolUse", &change), ("PostToolUse", &note)]);
    it.trust();
    let (messages, output) = it.act("decline");
    let work = it.client.work();
    assert!(
        work.join("there").exists() && !work.join("here").exists(),
        "{messages:?}"
    );
    assert!(
        output.ends_with("A hook of the user adds: the file is empty"),
        "{output}"
    );

    let rules = "[[rule]]\nverdict = 'deny'\ncommand = ['touch', 'there']\n";
    std::fs::remove_file(work.join("there")).expect("removed");
    std::fs::write(it.home().join("rules.toml"), rules).expect("rules");
    let (messages, _) = it.act("accept");
    assert!(!work.join("there").exists(), "{messages:?}");
}

#[test]
fn hooks_read_input_before_it_is_stored_and_continue_a_turn() {
    let mut it = HookedClient::start(TOUCH);
    let check = "grep -q 'password' && echo 'no secrets' >&2 && exit 2; echo 'the date is secret'";
    let check = it.script("check", check);
    let start = it.script(
        "start",
        "grep -q '\"source\":\"startup\"' && echo 'be brief'",
    );
    let stop = "grep -q '\"stop_hook_active\":true' && exit 0; echo 'run the tests' >&2; exit 2";
    let stop = it.script("stop", stop);
    it.define(&[
        ("UserPromptSubmit", &check),
        ("SessionStart", &start),
        ("Stop", &stop),
    ]);
    it.trust();

    let thread = it.client.thread.clone();
    let input = json!([{ "type": "text", "text": "my password is x" }]);
    let start = json!({ "threadId": thread, "input": input });
    // A hook also runs where the workspace would be the whole disk.
    let mut at_root = start.clone();
    at_root["cwd"] = "/".into();
    at_root["sandboxPolicy"] = json!({ "type": "workspaceWrite" });
    for params in [start, at_root] {
        it.client.ask("turn/start", params);
        let id = it.client.last_id;
        let messages = it.client.until(|it| it["id"] == id);
        let refused = messages.last().expect("an answer");
        let message = refused["error"]["message"].as_str().unwrap_or_default();
        assert!(
            message.contains("a hook rejected the input: no secrets"),
            "{messages:?}"
        );
    }
    assert!(it.client.mock.request_bodies().is_empty());

    let (messages, turn) = it.client.say("hello");
    assert_eq!(turn["status"], "completed", "{turn}");
    let requests = it.client.mock.request_bodies();
    assert_eq!(requests.len(), 2, "{messages:?}");
    let (first, second) = (requests[0].to_string(), requests[1].to_string());
    assert!(
        first.contains("be brief")
            && first.contains("the date is secret")
            && !first.contains("password"),
        "{first}"
    );
    assert!(
        !first.contains("run the tests") && second.contains("run the tests"),
        "{second}"
    );
    let prompts = messages
        .iter()
        .filter(|it| it["method"] == "item/completed")
        .filter(|it| it["params"]["item"]["type"] == "hookPrompt");
    assert_eq!(prompts.count(), 2, "{messages:?}");
}

#[test]
fn a_hook_that_fails_or_hangs_decides_nothing() {
    let mut it = HookedClient::start(TOUCH);
    let here = it.client.work().join("here");
    let hang = it.script("hang", "sleep 600");
    let file = json!({ "hooks": { "PreToolUse": [
        { "matcher": "Bash", "hooks": [{ "type": "command", "command": hang, "timeout": 1 }] },
        { "matcher": "Edit", "hooks": [{ "type": "command", "command": "exit 2" }] },
        { "hooks": [{ "type": "command", "command": "exit 3" }] },
    ] } });
    std::fs::write(it.home().join("hooks.json"), file.to_string()).expect("hooks");
    it.trust();
    let (messages, _) = it.act("decline");
    assert!(here.exists(), "{messages:?}");
    let mut texts: Vec<String> = runs(&messages).into_iter().map(|it| it.2).collect();
    texts.sort();
    assert_eq!(texts, ["it exited with 3: ", "it was ended after 1 s"]);
}

/// An interrupt does not wait for a hook that hangs: it ends the hook, and rejects the input.
#[test]
fn an_interrupt_ends_a_hook_on_input() {
    let mut it = HookedClient::start("{ fault = 'stall' }");
    let hang = it.script("hang", "grep -q 'wait for ever' && sleep 600; exit 0");
    it.define(&[("UserPromptSubmit", &hang)]);
    it.trust();
    let thread = it.client.thread.clone();
    let input = |text: &str| json!([{ "type": "text", "text": text }]);
    let start = |text: &str| json!({ "threadId": thread, "input": input(text) });
    it.client.ask("turn/start", start("do it"));
    let messages = it.client.until(|it| it["method"] == "turn/started");
    let turn = messages.last().expect("a turn")["params"]["turn"]["id"].clone();

    let mut steer = start("wait for ever");
    steer["expectedTurnId"] = turn.clone();
    it.client.ask("turn/steer", steer);
    let steer = it.client.last_id;
    it.client.until(|it| it["method"] == "hook/started");
    let interrupt = json!({ "threadId": thread, "turnId": turn });
    it.client.ask("turn/interrupt", interrupt.clone());
    let messages = it.client.until(|it| it["method"] == "turn/completed");
    let ended = &messages.last().expect("an end")["params"]["turn"];
    assert_eq!(ended["status"], "interrupted", "{messages:?}");
    let refused = messages.iter().find(|it| it["id"] == steer);
    let refused = refused.expect("an answer")["error"]["message"].to_string();
    assert!(
        refused.contains("an interrupt came while a hook"),
        "{refused}"
    );
    let expected = (
        "userPromptSubmit".into(),
        "failed".into(),
        "it was ended by an interrupt".into(),
    );
    assert_eq!(runs(&messages), [expected]);

    it.client.ask("turn/start", start("wait for ever"));
    it.client.until(|it| it["method"] == "hook/started");
    it.client.ask("turn/interrupt", interrupt);
    let last = it.client.last_id;
    let messages = it.client.until(|it| it["id"] == last);
    let refused = messages.iter().find(|it| it["id"] == last - 1);
    assert!(
        refused.expect("an answer")["error"].is_object(),
        "{messages:?}"
    );
}
