//! The methods of the host that permissions open, called by a process in Python.

use std::fs;
use std::os::unix::fs::symlink;
use std::time::Instant;

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{PluginClient, RETRY_TIMEOUT};
use crate::model::request_id_value;

/// A plugin that calls the host, in a thread whose folder the agent may write.
struct HostCaller {
    plugin: PluginClient,
    work: TempDir,
}

impl HostCaller {
    fn start(approval_policy: &str) -> Self {
        Self::start_with(approval_policy, &json!({}))
    }

    /// Starts in a thread with this configuration.
    fn start_with(approval_policy: &str, config: &Value) -> Self {
        let permissions = [
            "workspace.read",
            "workspace.write",
            "command.run",
            "model.call",
            "secrets:RADDLE_LOG_FORMAT",
        ];
        let mut plugin = PluginClient::with_plugin(&permissions, &["host"], &Value::Null);
        let work = TempDir::new_in("/var/tmp").expect("a folder");
        let client = &mut plugin.client;
        let params = json!({
            "cwd": work.path(), "sandbox": "workspace-write", "approvalPolicy": approval_policy,
            "config": config,
        });
        client.ask("thread/start", params);
        let id = request_id_value(client.last_id);
        let started = client.until(|it| it["id"] == id);
        let thread = &started.last().expect("a response")["result"]["thread"]["id"];
        client.thread = thread.as_str().expect("a thread").to_owned();
        Self { plugin, work }
    }

    fn begin(&mut self, method: &str, params: &Value) {
        let arguments = json!({ "method": method, "params": params });
        self.plugin.begin("host", &arguments);
    }

    /// Reads to the end of the turn, and returns the result of the host call, or its error.
    fn end(&mut self) -> Result<Value, String> {
        let (status, item) = self.plugin.end();
        assert_eq!(status, "completed", "{item}");
        let response = &item["result"]["structuredContent"];
        match response["error"]["message"].as_str() {
            Some(error) => Err(error.to_owned()),
            None => Ok(response["result"].clone()),
        }
    }

    fn call(&mut self, method: &str, params: &Value) -> Result<Value, String> {
        self.begin(method, params);
        self.end()
    }

    fn error(&mut self, method: &str, params: &Value) -> String {
        let result = self.call(method, params);
        result.expect_err(&format!("{method} {params} must fail"))
    }

    /// Asks for a permission, which the user approves.
    fn ask_for(&mut self, permission: &str) {
        self.begin(
            "host/request_approval",
            &json!({ "permission": permission }),
        );
        self.plugin.approve(permission);
        assert_eq!(self.end(), Ok(json!({ "approved": true })));
    }

    /// Answers the next question, whose message contains a text.
    fn answer(&mut self, action: &str, text: &str) {
        let client = &mut self.plugin.client;
        let is_question = |it: &Value| it["method"] == "mcpServer/elicitation/request";
        let messages = client.until(is_question);
        let question = messages.last().expect("a question");
        let message = question["params"]["message"].as_str().unwrap_or_default();
        assert!(message.contains(text), "{message}");
        let result = json!({ "action": action, "content": {}, "_meta": null });
        let answer = json!({ "id": question["id"], "result": result });
        client.pipes.send(answer.to_string().as_bytes());
    }

    /// Writes rules beside the one that allows the plugin's tools.
    fn rules(&self, rules: &str) {
        self.plugin.rule("allow");
        let file = self.plugin.client.server.home().join("rules.toml");
        let allowed = fs::read_to_string(&file).expect("rules");
        fs::write(file, allowed + rules).expect("rules");
    }

    fn path(&self, name: &str) -> std::path::PathBuf {
        self.work.path().join(name)
    }
}

#[test]
fn a_plugin_reads_and_writes_the_workspace_and_nothing_else() {
    let mut caller = HostCaller::start("on-request");
    fs::create_dir(caller.path("src")).expect("a folder");
    fs::write(caller.path("src/a.txt"), "warp and weft\n").expect("a file");
    fs::write(caller.path("key"), "secret").expect("a file");
    symlink("/etc/passwd", caller.path("users")).expect("a link");
    let read = |path: &str| json!({ "path": path });
    let write = |path: &str, content: &str| json!({ "path": path, "content": content });

    let error = caller.error("host/workspace_read", &read("src/a.txt"));
    assert!(
        error.contains("has not approved \"workspace.read\""),
        "{error}"
    );
    caller.ask_for("workspace.read");
    let file = caller.call("host/workspace_read", &read("src/a.txt"));
    let expected = json!({
        "path": "src/a.txt", "size": 14, "next_offset": null, "text": "warp and weft\n",
    });
    assert_eq!(file, Ok(expected));
    let list = caller.call("host/workspace_list", &json!({ "depth": 1 }));
    let expected = json!([
        { "path": "key", "kind": "file" },
        { "path": "src", "kind": "folder" },
        { "path": "users", "kind": "other" },
    ]);
    assert_eq!(list.expect("a list")["entries"], expected);
    for path in ["users", "/etc/passwd", "../../../etc/passwd"] {
        let error = caller.error("host/workspace_read", &read(path));
        assert!(error.contains("not in the workspace"), "{path}: {error}");
    }
    caller.rules("[[rule]]\nread = '**/key'\nverdict = 'deny'\n");
    let error = caller.error("host/workspace_read", &read("key"));
    assert!(error.contains("a rule forbids it"), "{error}");

    let error = caller.error("host/workspace_write", &write("src/b.txt", "new\n"));
    assert!(
        error.contains("has not approved \"workspace.write\""),
        "{error}"
    );
    assert!(!caller.path("src/b.txt").exists());
    caller.ask_for("workspace.write");
    let written = caller.call("host/workspace_write", &write("src/b.txt", "new\n"));
    assert_eq!(written, Ok(json!({ "changed": true })));
    let text = fs::read_to_string(caller.path("src/b.txt"));
    assert_eq!(text.expect("a file"), "new\n");
    let beside = caller.work.path().with_extension("beside");
    for path in [beside.to_str().expect("text"), "users", ".git/config"] {
        let error = caller.error("host/workspace_write", &write(path, "x"));
        let is_refused = error.contains("not in the workspace") || error.contains("protected");
        assert!(is_refused, "{path}: {error}");
    }
    assert!(!beside.exists() && !caller.path(".git").exists());
    caller.rules("[[rule]]\nwrite = '**/b.txt'\nverdict = 'deny'\nreason = 'It is done.'\n");
    let error = caller.error("host/workspace_write", &write("src/b.txt", "newer\n"));
    assert!(error.contains("It is done."), "{error}");
    caller.rules("[[rule]]\nwrite = '**/b.txt'\nverdict = 'ask'\n");
    for (action, is_written) in [("decline", false), ("accept", true)] {
        caller.begin("host/workspace_write", &write("src/b.txt", "newest\n"));
        caller.answer(action, "+newest");
        assert_eq!(caller.end().is_ok(), is_written, "{action}");
        let text = fs::read_to_string(caller.path("src/b.txt")).expect("a file");
        assert_eq!(text == "newest\n", is_written, "{text}");
    }
    let log = caller.plugin.raddle(&["plugin", "logs", "org.example"]);
    let line = "raddle: host/workspace_write \"src/b.txt\": done";
    assert!(log.contains(line), "{log}");
}

#[test]
fn a_command_of_a_plugin_is_judged_sandboxed_and_ends_with_its_call() {
    let mut caller = HostCaller::start("on-request");
    let run = |argv: &[&str]| json!({ "argv": argv });
    let error = caller.error("host/command_run", &run(&["ls"]));
    assert!(
        error.contains("has not approved \"command.run\""),
        "{error}"
    );
    caller.ask_for("command.run");
    let params = json!({ "command": "echo out; echo err >&2; pwd; exit 3" });
    let result = caller.call("host/command_run", &params).expect("a result");
    assert_eq!(result["exit_code"], 3, "{result}");
    let work = caller.work.path().canonicalize().expect("a folder");
    let expected = format!("out\nerr\n{}\n", work.display());
    assert_eq!(result["output"], expected, "{result}");
    let outside = TempDir::new_in("/var/tmp").expect("a folder");
    let file = outside.path().join("it");
    let touch = run(&["touch", file.to_str().expect("text")]);
    let result = caller.call("host/command_run", &touch).expect("a result");
    assert!(result["exit_code"] != 0 && !file.exists(), "{result}");
    let slow = json!({ "argv": ["sleep", "600"], "timeout_ms": 200 });
    let result = caller.call("host/command_run", &slow).expect("a result");
    assert_eq!(result["exit_code"], Value::Null, "{result}");
    for params in [
        json!({}),
        json!({ "argv": [] }),
        json!({ "command": "ls", "argv": ["ls"] }),
    ] {
        let error = caller.error("host/command_run", &params);
        assert!(error.contains("Send either `command`"), "{error}");
    }
    // No param leads out of the sandbox.
    let escalated = json!({ "argv": ["ls"], "sandbox_permissions": "require_escalated" });
    let error = caller.error("host/command_run", &escalated);
    assert!(error.contains("unknown field"), "{error}");
    caller.rules("[[rule]]\ncommand = ['touch']\nverdict = 'deny'\n");
    let error = caller.error("host/command_run", &run(&["touch", "here"]));
    assert!(error.contains("a rule forbids it"), "{error}");
    caller.rules("[[rule]]\ncommand = ['touch']\nverdict = 'ask'\n");
    caller.begin("host/command_run", &run(&["touch", "here"]));
    caller.answer("decline", "touch here");
    assert!(caller.end().is_err() && !caller.path("here").exists());
    caller.begin("host/command_run", &run(&["touch", "here"]));
    caller.answer("accept", "touch here");
    assert_eq!(caller.end().expect("a result")["exit_code"], 0);
    assert!(caller.path("here").exists());

    // The user stops the turn, and the command ends with it.
    let sleep = format!("{}.25", 100_000 + std::process::id());
    let params = json!({ "argv": ["sleep", sleep], "timeout_ms": 600_000 });
    caller.begin("host/command_run", &params);
    let is_progress = |it: &Value| it["method"] == "item/mcpToolCall/progress";
    let messages = caller.plugin.client.until(is_progress);
    let progress = &messages.last().expect("progress")["params"];
    let message = progress["message"].as_str().unwrap_or_default();
    assert!(message.starts_with("host/command_run sleep"), "{message}");
    wait_until(|| runs(&sleep));
    let interrupt = json!({
        "threadId": caller.plugin.client.thread, "turnId": progress["turnId"],
    });
    caller.plugin.client.ask("turn/interrupt", interrupt);
    assert_eq!(caller.plugin.end().0, "interrupted");
    wait_until(|| !runs(&sleep));
}

#[test]
fn a_plugin_calls_the_model_within_the_budget() {
    let mut caller = HostCaller::start("on-request");
    let hello = json!({ "prompt": "warp and weft", "instructions": "Be brief." });
    let error = caller.error("host/model_call", &hello);
    assert!(error.contains("has not approved \"model.call\""), "{error}");
    caller.ask_for("model.call");
    let answer = caller.call("host/model_call", &hello).expect("an answer");
    let text = answer["text"].as_str().unwrap_or_default();
    // The mock repeats the user's message.
    assert!(text.starts_with("You said: warp and weft\n"), "{answer}");
    let tokens = answer["usage"]["input_tokens"].as_u64();
    assert!(tokens > Some(0), "{answer}");
    let schema = json!({
        "type": "object", "properties": { "title": { "type": "string" } },
        "required": ["title"], "additionalProperties": false,
    });
    let titled = json!({ "prompt": "weave", "output_schema": schema });
    let answer = caller.call("host/model_call", &titled).expect("an answer");
    let text = answer["text"].as_str().unwrap_or_default();
    let title: Value = serde_json::from_str(text).expect("JSON");
    assert!(title["title"].is_string(), "{answer}");
    let error = caller.error("host/model_call", &json!({ "prompt": 7 }));
    assert!(error.contains("the params are invalid"), "{error}");

    // The agent's own call used the budget, so the plugin gets no call.
    let mut caller = HostCaller::start_with("on-request", &json!({ "budget.turn.tokens": 1 }));
    caller.begin(
        "host/request_approval",
        &json!({ "permission": "model.call" }),
    );
    caller.plugin.approve("model.call");
    assert_eq!(caller.plugin.end().0, "failed");
    caller.begin("host/model_call", &hello);
    let (status, item) = caller.plugin.end();
    assert_eq!(status, "failed");
    let error = &item["result"]["structuredContent"]["error"]["message"];
    let error = error.as_str().unwrap_or_default();
    assert!(error.starts_with("the budget is "), "{item}");
}

/// Whether a process has this argument.
fn runs(argument: &str) -> bool {
    let processes = fs::read_dir("/proc").expect("processes").flatten();
    let mut command_lines = processes.filter_map(|it| fs::read(it.path().join("cmdline")).ok());
    command_lines.any(|it| {
        it.split(|byte| *byte == 0)
            .any(|it| it == argument.as_bytes())
    })
}

fn wait_until(is_so: impl Fn() -> bool) {
    let began = Instant::now();
    while !is_so() {
        assert!(began.elapsed() < RETRY_TIMEOUT, "it took too long");
        std::thread::yield_now();
    }
}

#[test]
fn a_plugin_keeps_state_logs_and_reads_a_secret() {
    let mut caller = HostCaller::start("on-request");
    let value = json!({ "seen": [1, 2] });
    let set = caller.call("host/state_set", &json!({ "key": "k", "value": value }));
    assert_eq!(set, Ok(json!({})));
    caller.plugin.client.start_again();
    let got = caller.call("host/state_get", &json!({ "key": "k" }));
    assert_eq!(got, Ok(json!({ "value": value })));
    let file = caller
        .plugin
        .client
        .server
        .home()
        .join("plugins/org.example.state.json");
    assert!(file.exists());
    let logged = caller.call("host/log", &json!({ "level": "warn", "message": "so so" }));
    assert_eq!(logged, Ok(json!({ "logged": true })));
    let error = caller.error("host/secret", &json!({ "name": "RADDLE_LOG_FORMAT" }));
    assert!(
        error.contains("has not approved \"secrets:RADDLE_LOG_FORMAT\""),
        "{error}"
    );
    caller.ask_for("secrets:RADDLE_LOG_FORMAT");
    let secret = caller.call("host/secret", &json!({ "name": "RADDLE_LOG_FORMAT" }));
    assert_eq!(secret, Ok(json!({ "value": "json" })));
    let error = caller.error("host/secret", &json!({ "name": "HOME" }));
    assert!(error.contains("does not list \"secrets:HOME\""), "{error}");
    let log = caller.plugin.raddle(&["plugin", "logs", "org.example"]);
    assert!(log.contains("\nwarn: so so\n"), "{log}");
    caller.plugin.raddle(&["plugin", "remove", "org.example"]);
    assert!(!file.exists());
}
