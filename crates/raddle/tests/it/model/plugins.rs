//! Tools of plugins in the real binary: a process in Python, in its sandbox.

mod contributions;
mod host_methods;
mod network;
mod wire;

use std::fs;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::{MockClient, MockModel};
use crate::support::request;
use crate::support::server::{TestServer, command};

/// Time in which a plugin that failed is started again. Only a failing test waits this long.
const RETRY_TIMEOUT: Duration = Duration::from_secs(90);

/// A client whose home has an installed plugin.
struct PluginClient {
    client: MockClient,
    folder: TempDir,
}

impl PluginClient {
    fn start() -> Self {
        Self::start_with(&Value::Null)
    }

    /// A client with these capabilities.
    fn start_with(capabilities: &Value) -> Self {
        let tools = ["greet", "die", "hang", "echo"];
        Self::with_plugin(&["workspace.read"], &tools, capabilities)
    }

    /// A client whose plugin has these permissions and tools.
    fn with_plugin(permissions: &[&str], tools: &[&str], capabilities: &Value) -> Self {
        Self::start_plugin(permissions, tools, capabilities, "", &[])
    }

    /// A client whose plugin has more in its manifest, and more files.
    fn start_adding(capabilities: &Value, added: &str, files: &[(&str, &str)]) -> Self {
        let tools = ["greet", "die", "hang", "echo"];
        Self::start_plugin(&["workspace.read"], &tools, capabilities, added, files)
    }

    fn start_plugin(
        permissions: &[&str],
        tools: &[&str],
        capabilities: &Value,
        added: &str,
        files: &[(&str, &str)],
    ) -> Self {
        let mut manifest = format!(
            "id = 'org.example'\nversion = '1'\npermissions = {permissions:?}\n\
             entrypoint = ['python3', 'main.py']\n"
        );
        for tool in tools {
            manifest.push_str(&format!(
                "[[contributions.tools]]\nname = '{tool}'\nmethod = '{tool}'\n\
                 description = 'Test.'\n"
            ));
        }
        manifest.push_str(
            "[[contributions.hooks]]\nevent = 'PreToolUse'\nmatcher = 'plugin__.*'\n\
             method = 'check'\n",
        );
        manifest.push_str(added);
        // In `/tmp` it would be in a folder that some threads may write.
        let folder = TempDir::new_in("/var/tmp").expect("a folder");
        fs::write(folder.path().join("plugin.toml"), manifest).expect("a manifest");
        fs::write(folder.path().join("main.py"), include_str!("plugins.py")).expect("a program");
        for (path, text) in files {
            let path = folder.path().join(path);
            fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            fs::write(path, text).expect("a file");
        }
        let mock = MockModel::start("");
        let arguments = mock.arguments(&[]);
        let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
        let mut server = TestServer::start(&arguments);
        let mut pipes = server.pipes();
        let info = json!({ "name": "it", "version": "0" });
        let params = json!({ "clientInfo": info, "capabilities": capabilities });
        pipes.ask(&request(1, "initialize", params));
        let client = Self {
            client: MockClient::on(mock, server, pipes),
            folder,
        };
        client.raddle(&[
            "plugin",
            "add",
            client.folder.path().to_str().expect("a path"),
        ]);
        client.rule("allow");
        client
    }

    /// Runs a command in the home of the server, and returns its output.
    fn raddle(&self, words: &[&str]) -> String {
        let output = command(self.client.server.home()).args(words).output();
        let output = output.expect("the binary starts");
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("text")
    }

    /// Writes a rule about the tools of the plugin.
    fn rule(&self, verdict: &str) {
        let rule = format!("[[rule]]\ntool = 'plugin__org_example__*'\nverdict = '{verdict}'\n");
        fs::write(self.client.server.home().join("rules.toml"), rule).expect("rules");
    }

    /// Starts a turn in which the model calls a tool.
    fn begin(&mut self, tool: &str, arguments: &Value) {
        let text = format!("MOCK call name=plugin__org_example__{tool} arguments={arguments}");
        let input = json!([{ "type": "text", "text": text }]);
        let params = json!({ "threadId": self.client.thread, "input": input });
        self.client.ask("turn/start", params);
    }

    /// Reads to the end of the turn. Returns its status, and the item of the call.
    fn end(&mut self) -> (String, Value) {
        let messages = self.client.until(|it| it["method"] == "turn/completed");
        let status = &messages.last().expect("an end")["params"]["turn"]["status"];
        let is_call = |it: &&Value| {
            let is_tool = it["params"]["item"]["type"] == "mcpToolCall";
            it["method"] == "item/completed" && is_tool
        };
        let item = messages.iter().rfind(is_call);
        let item = item.map(|it| it["params"]["item"].clone());
        (
            status.as_str().expect("a status").to_owned(),
            item.unwrap_or_default(),
        )
    }

    fn call(&mut self, tool: &str, arguments: &Value) -> (String, Value) {
        self.begin(tool, arguments);
        self.end()
    }

    /// Waits for the question for a permission, and accepts it.
    fn approve(&mut self, permission: &str) {
        let is_question = |it: &Value| it["method"] == "mcpServer/elicitation/request";
        let messages = self.client.until(is_question);
        let question = messages.last().expect("a question").clone();
        assert_eq!(
            question["params"]["serverName"], "org.example",
            "{question}"
        );
        let message = format!("The plugin org.example 1 asks for the permission {permission}.");
        assert_eq!(question["params"]["message"], message, "{question}");
        let result = json!({ "action": "accept", "content": {}, "_meta": null });
        let answer = json!({ "id": question["id"], "result": result });
        self.client.pipes.send(answer.to_string().as_bytes());
    }

    /// Runs a turn that calls the plugin, and returns the warnings of the thread in it.
    fn warnings(&mut self) -> Vec<String> {
        self.begin("echo", &json!({ "n": 2 }));
        let messages = self.client.until(|it| it["method"] == "turn/completed");
        let warnings = messages.iter().filter(|it| it["method"] == "warning");
        let texts = warnings.map(|it| {
            assert_eq!(it["params"]["threadId"], self.client.thread, "{it}");
            it["params"]["message"].as_str().expect("a text").to_owned()
        });
        texts.collect()
    }

    /// Returns the last output of a tool that the model read.
    fn last_output(&self) -> String {
        let bodies = self.client.mock.request_bodies();
        let input = bodies.last().expect("a request")["input"].clone();
        let outputs = input.as_array().expect("input").iter();
        let mut outputs = outputs.filter(|it| it["type"] == "function_call_output");
        outputs.next_back().expect("an output")["output"].to_string()
    }

    /// Returns the tools of the plugin that the last model call offered.
    fn offered(&self) -> Vec<String> {
        let bodies = self.client.mock.request_bodies();
        let tools = bodies.last().expect("a request")["tools"].clone();
        let names = tools.as_array().expect("tools").iter();
        let names = names.filter_map(|it| it["name"].as_str());
        let of_plugins = names.filter(|it| it.starts_with("plugin__"));
        of_plugins.map(str::to_owned).collect()
    }
}

#[test]
fn a_tool_of_a_plugin_asks_for_a_permission_once_and_returns_its_result() {
    let mut plugin = PluginClient::start();
    plugin.begin("greet", &json!({ "name": "Ada" }));
    plugin.approve("workspace.read");
    let (status, item) = plugin.end();
    assert_eq!(
        (status.as_str(), &item["status"]),
        ("completed", &json!("completed"))
    );
    assert_eq!(
        (&item["server"], &item["tool"]),
        (&json!("org.example"), &json!("greet"))
    );
    assert_eq!(item["result"]["content"][0]["text"], "Hello, Ada", "{item}");
    assert!(plugin.last_output().contains("Hello, Ada"));
    let offered = ["greet", "die", "hang", "echo"].map(|it| format!("plugin__org_example__{it}"));
    assert_eq!(plugin.offered(), offered);
    // The approval is remembered, so nothing waits for an answer.
    let (_, item) = plugin.call("greet", &json!({ "name": "Bob" }));
    assert_eq!(item["result"]["content"][0]["text"], "Hello, Bob", "{item}");
    let (_, item) = plugin.call("echo", &json!({ "n": 1 }));
    assert_eq!(
        item["result"]["structuredContent"],
        json!({ "n": 1 }),
        "{item}"
    );
    plugin.rule("deny");
    let (_, item) = plugin.call("echo", &json!({}));
    assert_ne!(item["status"], "completed", "{item}");
    let log = plugin.raddle(&["plugin", "logs", "org.example"]);
    assert_eq!(log, "raddle: the plugin is started\n");
}

#[test]
fn an_approval_outlives_the_server_until_it_is_revoked_or_the_files_change() {
    let mut plugin = PluginClient::start();
    let greet = |plugin: &mut PluginClient, is_asked: bool| {
        plugin.begin("greet", &json!({ "name": "Ada" }));
        if is_asked {
            plugin.approve("workspace.read");
        }
        let (_, item) = plugin.end();
        assert_eq!(item["result"]["content"][0]["text"], "Hello, Ada", "{item}");
    };
    greet(&mut plugin, true);
    let list = plugin.raddle(&["plugin", "list"]);
    assert!(list.contains("\n  approved: workspace.read, by "), "{list}");
    plugin.client.start_again();
    greet(&mut plugin, false);
    plugin.raddle(&["plugin", "revoke", "org.example", "workspace.read"]);
    let list = plugin.raddle(&["plugin", "list", "--json"]);
    let list: Value = serde_json::from_str(&list).expect("JSON");
    assert_eq!(list[0]["approved"], json!({}), "{list}");
    greet(&mut plugin, true);
    fs::write(plugin.folder.path().join("later.py"), "").expect("a file");
    plugin.raddle(&["plugin", "trust", "org.example"]);
    let file = "plugins/org.example.permissions.json";
    assert!(!plugin.client.server.home().join(file).exists());
    greet(&mut plugin, true);
    plugin.raddle(&["plugin", "remove", "org.example"]);
    assert!(!plugin.client.server.home().join(file).exists());
}

#[test]
fn a_changed_plugin_does_not_run_until_it_is_trusted_again() {
    let mut plugin = PluginClient::start();
    let (_, item) = plugin.call("echo", &json!({ "n": 1 }));
    assert_eq!(item["status"], "completed", "{item}");
    // Its process runs, and would load this file only later.
    fs::write(plugin.folder.path().join("later.py"), "").expect("a file");
    let warned = plugin.warnings();
    assert_eq!(warned.len(), 1, "{warned:?}");
    assert!(
        warned[0].contains("run `raddle plugin trust org.example`"),
        "{warned:?}"
    );
    let output = plugin.last_output();
    assert!(output.contains("its files have changed since"), "{output}");
    assert_eq!(plugin.offered(), Vec::<String>::new());
    assert_eq!(plugin.warnings(), Vec::<String>::new());
    plugin.raddle(&["plugin", "trust", "org.example"]);
    let (_, item) = plugin.call("echo", &json!({ "n": 3 }));
    assert_eq!(item["status"], "completed", "{item}");
    for (command, is_offered) in [("disable", false), ("enable", true), ("remove", false)] {
        plugin.raddle(&["plugin", command, "org.example"]);
        plugin.client.say("hello");
        assert_eq!(!plugin.offered().is_empty(), is_offered, "{command}");
    }
}

#[test]
fn a_plugin_that_hangs_or_dies_costs_its_own_call() {
    let mut plugin = PluginClient::start();
    plugin.begin("hang", &json!({}));
    let is_call = |it: &Value| {
        let is_tool = it["params"]["item"]["type"] == "mcpToolCall";
        it["method"] == "item/started" && is_tool
    };
    let messages = plugin.client.until(is_call);
    let turn = &messages.last().expect("an item")["params"]["turnId"];
    let interrupt = json!({ "threadId": plugin.client.thread, "turnId": turn });
    plugin.client.ask("turn/interrupt", interrupt);
    assert_eq!(plugin.end().0, "interrupted");
    let (_, item) = plugin.call("echo", &json!({ "n": 1 }));
    assert_eq!(item["status"], "completed", "{item}");
    let (status, item) = plugin.call("die", &json!({}));
    assert_eq!(
        (status.as_str(), &item["status"]),
        ("completed", &json!("failed")),
        "{item}"
    );
    // After a failure it is not started for a while, and then it is started again.
    let began = Instant::now();
    loop {
        let (_, item) = plugin.call("echo", &json!({ "n": 2 }));
        if item["status"] == "completed" {
            break;
        }
        let error = item["error"]["message"].as_str().unwrap_or_default();
        assert!(error.contains("its process ended with status 3"), "{item}");
        assert!(error.contains("this is the end"), "{item}");
        assert!(began.elapsed() < RETRY_TIMEOUT, "{item}");
    }
    let log = plugin.raddle(&["plugin", "logs", "org.example", "--lines", "1000"]);
    assert!(
        log.contains("\nline 199\nthis is the end\nraddle: "),
        "{log}"
    );
    // The reason of the failure repeats the last lines.
    let (stderr, _) = log
        .split_once("\nraddle: its process ended")
        .expect("a failure");
    assert_eq!(stderr.matches("\nline ").count(), 200, "{log}");
    assert_eq!(log.matches("the plugin is started").count(), 2, "{log}");
}

#[test]
fn a_hook_of_a_plugin_rejects_a_call() {
    let mut plugin = PluginClient::start();
    let (_, item) = plugin.call("echo", &json!({ "n": 1 }));
    assert_eq!(item["status"], "completed", "{item}");
    plugin.begin("echo", &json!({ "forbidden": true }));
    let messages = plugin.client.until(|it| it["method"] == "turn/completed");
    let is_run = |it: &&Value| it["method"] == "hook/completed";
    let run = messages.iter().find(is_run).expect("a run of the hook");
    let run = &run["params"]["run"];
    assert_eq!(run["status"], "blocked", "{run}");
    assert_eq!(run["entries"][0]["text"], "not today", "{run}");
    let source = run["sourcePath"].as_str().unwrap_or_default();
    assert!(source.ends_with("/plugin.toml"), "{run}");
    let output = plugin.last_output();
    assert!(output.contains("not today"), "{output}");
}

/// The hook of this event cannot handle its input, and later its plugin does not run.
#[test]
fn a_hook_of_a_plugin_that_fails_blocks_the_input_if_it_must() {
    let mut plugin = PluginClient::start();
    let manifest = plugin.folder.path().join("plugin.toml");
    let text = fs::read_to_string(&manifest).expect("a manifest");
    let hook = "[[contributions.hooks]]\nevent = 'UserPromptSubmit'\nmethod = 'check'\n";
    let mut failed = |on_failure: &str, is_trusted: bool| {
        if is_trusted {
            fs::write(&manifest, format!("{text}{hook}{on_failure}")).expect("a manifest");
            plugin.raddle(&["plugin", "trust", "org.example"]);
        } else {
            fs::write(plugin.folder.path().join("later.py"), "").expect("a file");
        }
        plugin.begin("echo", &json!({ "n": 1 }));
        // Rejected input starts no turn.
        let id = plugin.client.last_id;
        let is_end = |it: &Value| {
            let is_rejection = it["id"] == id && it["error"].is_object();
            is_rejection || it["method"] == "turn/completed"
        };
        let messages = plugin.client.until(is_end);
        let is_run = |it: &&Value| it["method"] == "hook/completed";
        let rejection = &messages.last().expect("an end")["error"]["message"];
        let error = match messages.iter().find(is_run) {
            Some(run) if rejection.is_null() => {
                let run = &run["params"]["run"];
                assert_eq!(run["status"], "failed", "{run}");
                run["entries"][0]["text"].to_string()
            }
            _ => rejection.to_string(),
        };
        let is_call = |it: &Value| it["params"]["item"]["type"] == "mcpToolCall";
        (error, messages.iter().any(is_call))
    };
    let (error, is_called) = failed("", true);
    assert!(error.contains("tool_input"), "{error}");
    assert!(is_called, "{error}");
    let (error, is_called) = failed("on_failure = 'block'", true);
    assert!(error.contains("tool_input"), "{error}");
    assert!(!is_called, "{error}");
    let (error, is_called) = failed("", false);
    assert!(error.contains("its files have changed since"), "{error}");
    assert!(!is_called, "{error}");
}
