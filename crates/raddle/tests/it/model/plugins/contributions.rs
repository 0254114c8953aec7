//! Contributions of a plugin beside its process: skills, and MCP servers.

use super::*;

const SKILL_FILE: &str = "skills/release/SKILL.md";

const SKILL: &str =
    "---\nname: release\ndescription: Cuts a release.\n---\n\n1. Ask the blue owl.\n";

/// Name of the skill for users and the model.
const SKILL_NAME: &str = "org.example:release";

impl PluginClient {
    /// Starts a thread, in which the following turns run.
    pub(super) fn new_thread(&mut self) {
        let params = json!({ "cwd": self.client.work() });
        let response = self.request("thread/start", params);
        let id = &response["result"]["thread"]["id"];
        self.client.thread = id.as_str().expect("a thread").to_owned();
    }

    /// Runs a turn in a new thread, and returns the request that the model got.
    fn model_request(&mut self, text: &str) -> String {
        self.new_thread();
        let (_, turn) = self.client.say(text);
        assert_eq!(turn["status"], "completed", "{turn}");
        let bodies = self.client.mock.request_bodies();
        bodies.last().expect("a request").to_string()
    }

    /// Returns the skills of plugins that clients see.
    fn listed_skills(&mut self) -> Vec<Value> {
        let params = json!({ "cwds": [self.client.work()] });
        let response = self.request("skills/list", params);
        let skills = response["result"]["data"][0]["skills"].as_array();
        let skills = skills.expect("skills").iter();
        let of_plugins = skills.filter(|it| !it["pluginId"].is_null());
        of_plugins.cloned().collect()
    }

    /// Returns the details of the plugin.
    fn detail(&mut self) -> Value {
        let params = json!({ "pluginName": "org.example" });
        let response = self.request("plugin/read", params);
        response["result"]["plugin"].clone()
    }
}

#[test]
fn a_skill_of_a_plugin_is_offered_while_the_plugin_is_enabled_and_trusted() {
    let mut plugin = PluginClient::start_adding(&Value::Null, "", &[(SKILL_FILE, SKILL)]);
    let folder = fs::canonicalize(plugin.folder.path()).expect("a folder");
    let file = folder.join(SKILL_FILE).display().to_string();
    let line = format!("- {SKILL_NAME}: Cuts a release. (file: {file})");
    let request = plugin.model_request("hello");
    assert!(request.contains(&line), "{request}");
    assert!(!request.contains("blue owl"), "{request}");
    let request = plugin.model_request(&format!("Use ${SKILL_NAME}."));
    assert!(request.contains("1. Ask the blue owl."), "{request}");

    let listed = plugin.listed_skills();
    assert_eq!(listed.len(), 1, "{listed:?}");
    for (member, value) in [
        ("name", json!(SKILL_NAME)),
        ("description", json!("Cuts a release.")),
        ("path", json!(file)),
        ("scope", json!("user")),
        ("enabled", json!(true)),
        ("pluginId", json!("org.example")),
    ] {
        assert_eq!(listed[0][member], value, "{member}: {listed:?}");
    }
    let expected = json!([{
        "name": SKILL_NAME, "description": "Cuts a release.", "enabled": true, "path": file,
        "interface": null, "shortDescription": null,
    }]);
    assert_eq!(plugin.detail()["skills"], expected);
    let list = plugin.raddle(&["plugin", "list"]);
    assert!(list.contains("\n  skill: org.example:release\n"), "{list}");

    // The user can disable it alone, like any other.
    let params = json!({ "name": SKILL_NAME, "enabled": false });
    plugin.request("skills/config/write", params);
    assert_eq!(plugin.listed_skills()[0]["enabled"], false);
    assert_eq!(plugin.detail()["skills"][0]["enabled"], false);
    assert!(!plugin.model_request("hello").contains(SKILL_NAME));
    let params = json!({ "name": SKILL_NAME, "enabled": true });
    plugin.request("skills/config/write", params);
    assert!(plugin.model_request("hello").contains(&line));

    let mention = format!("${SKILL_NAME}");
    plugin.raddle(&["plugin", "disable", "org.example"]);
    let request = plugin.model_request(&mention);
    assert!(!request.contains("Cuts a release"), "{request}");
    assert!(!request.contains("blue owl"), "{request}");
    assert_eq!(plugin.listed_skills(), Vec::<Value>::new());
    plugin.raddle(&["plugin", "enable", "org.example"]);
    assert!(plugin.model_request(&mention).contains("blue owl"));

    // The files are no longer the trusted ones.
    fs::write(folder.join(SKILL_FILE), SKILL.replace("blue", "red")).expect("a file");
    let request = plugin.model_request(&mention);
    assert!(!request.contains("Cuts a release"), "{request}");
    assert!(!request.contains("owl"), "{request}");
    assert_eq!(plugin.listed_skills(), Vec::<Value>::new());
    assert_eq!(plugin.detail()["skills"], json!([]));
    plugin.raddle(&["plugin", "trust", "org.example"]);
    assert!(plugin.model_request(&mention).contains("red owl"));
}

#[test]
fn clients_are_notified_when_a_plugin_with_skills_is_disabled() {
    let mut plugin = PluginClient::start_adding(&Value::Null, "", &[(SKILL_FILE, SKILL)]);
    assert_eq!(plugin.listed_skills().len(), 1);
    let params = json!({
        "keyPath": "plugins.org.example.enabled", "value": false, "mergeStrategy": "replace",
    });
    plugin.client.ask("config/value/write", params);
    plugin.client.until(|it| it["method"] == "skills/changed");
    assert_eq!(plugin.listed_skills(), Vec::<Value>::new());
    let params = json!({ "pluginId": "org.example" });
    plugin.client.ask("plugin/uninstall", params);
    plugin.client.until(|it| it["method"] == "skills/changed");
}

/// Key of the plugin's hook.
const HOOK: &str = "org.example:pre_tool_use:check";

impl PluginClient {
    /// Returns the entry of `hooks/list`.
    fn hooks(&mut self) -> Value {
        let response = self.request("hooks/list", json!({ "threadId": self.client.thread }));
        response["result"]["data"][0].clone()
    }

    /// Calls the plugin with arguments that its hook rejects. Returns the starts of hooks, and
    /// whether the plugin was called.
    fn forbidden_call(&mut self) -> (Vec<Value>, bool) {
        self.begin("echo", &json!({ "forbidden": true }));
        let messages = self.client.until(|it| it["method"] == "turn/completed");
        let started = messages.iter().filter(|it| it["method"] == "hook/started");
        let is_called = |it: &Value| {
            it["method"] == "item/completed"
                && it["params"]["item"]["result"]["structuredContent"]["forbidden"] == true
        };
        let runs = started.map(|it| it["params"]["run"].clone());
        (runs.collect(), messages.iter().any(is_called))
    }
}

#[test]
fn a_hook_of_a_plugin_is_shown_as_the_plugins_and_can_be_disabled() {
    let mut plugin = PluginClient::start();
    let folder = fs::canonicalize(plugin.folder.path()).expect("a folder");
    let manifest = folder.join("plugin.toml");
    let listed = plugin.hooks();
    assert_eq!(listed["hooks"].as_array().map(Vec::len), Some(1));
    for (member, value) in [
        ("handlerType", json!("mcpTool")),
        ("server", json!("org.example")),
        ("tool", json!("check")),
        ("key", json!(HOOK)),
        ("eventName", json!("preToolUse")),
        ("matcher", json!("plugin__.*")),
        ("source", json!("plugin")),
        ("sourcePath", json!(manifest)),
        ("pluginId", json!("org.example")),
        ("trustStatus", json!("trusted")),
        ("enabled", json!(true)),
        ("isManaged", json!(false)),
        ("timeoutSec", json!(60)),
        ("displayOrder", json!(0)),
    ] {
        assert_eq!(listed["hooks"][0][member], value, "{member}: {listed}");
    }
    let summary = json!([{ "eventName": "preToolUse", "key": HOOK }]);
    assert_eq!(plugin.detail()["hooks"], summary);

    let (runs, is_called) = plugin.forbidden_call();
    assert!(!is_called);
    assert_eq!(runs.len(), 1, "{runs:?}");
    for (member, value) in [
        ("source", json!("plugin")),
        ("handlerType", json!("mcpTool")),
        ("sourcePath", json!(manifest)),
        ("displayOrder", json!(0)),
    ] {
        assert_eq!(runs[0][member], value, "{member}: {runs:?}");
    }

    let set_enabled = |is_enabled: bool| {
        json!({
            "keyPath": format!("hooks.state.\"{HOOK}\".enabled"),
            "value": is_enabled, "mergeStrategy": "replace",
        })
    };
    plugin.request("config/value/write", set_enabled(false));
    assert_eq!(plugin.hooks()["hooks"][0]["enabled"], false);
    assert_eq!(plugin.forbidden_call(), (Vec::new(), true));
    plugin.request("config/value/write", set_enabled(true));
    assert!(!plugin.forbidden_call().1);

    // The files are no longer the trusted ones.
    fs::write(folder.join("later.py"), "").expect("a file");
    let listed = plugin.hooks();
    assert_eq!(listed["hooks"], json!([]), "{listed}");
    let warning = listed["warnings"][0].as_str().unwrap_or_default();
    for part in [
        "does not run; its hooks fail",
        "raddle plugin trust org.example",
    ] {
        assert!(warning.contains(part), "{listed}");
    }

    // Nothing remains that would disable the hook of another installation.
    plugin.request("config/value/write", set_enabled(false));
    let file = plugin.client.server.home().join("config.toml");
    let text = || fs::read_to_string(&file).expect("a configuration");
    assert!(text().contains(HOOK), "{}", text());
    plugin.raddle(&["plugin", "remove", "org.example"]);
    assert!(!text().contains("org.example"), "{}", text());
}

/// Name of the MCP server for users and the model.
const SERVER: &str = "org_example_inspector";

const SERVER_SECTION: &str = "[contributions.mcp_servers.inspector]\ncommand = 'python3'\n\
                              args = ['server.py']\nenv = { SETTING = 'set' }\n";

const SERVER_FILES: &[(&str, &str)] = &[("server.py", include_str!("mcp_server.py"))];

impl PluginClient {
    /// Returns the state of the plugin's MCP server, once it has started; null if there is none.
    fn server_status(&mut self) -> Value {
        let params = json!({ "threadId": self.client.thread });
        let response = self.request("mcpServerStatus/list", params);
        let servers = response["result"]["data"].as_array().expect("servers");
        let server = servers.iter().find(|it| it["name"] == SERVER);
        server.cloned().unwrap_or_default()
    }

    /// Runs a turn in which the model calls the tool of the MCP server. Returns the item of the
    /// call; null if there is none.
    fn inspect(&mut self, port: u16) -> Value {
        let arguments = json!({ "port": port });
        let text = format!("MOCK call name=mcp__{SERVER}__inspect arguments={arguments}");
        let input = json!([{ "type": "text", "text": text }]);
        let params = json!({ "threadId": self.client.thread, "input": input });
        self.client.ask("turn/start", params);
        self.end().1
    }

    fn has_server_tool(&self) -> bool {
        let bodies = self.client.mock.request_bodies();
        let tools = bodies.last().expect("a request")["tools"].to_string();
        tools.contains(&format!("mcp__{SERVER}__inspect"))
    }

    /// Allows the tools of the plugin and of its MCP server.
    fn allow_all(&self) {
        let rule = |tool: &str| format!("[[rule]]\ntool = '{tool}'\nverdict = 'allow'\n");
        let rules = rule("plugin__*") + &rule(&format!("{SERVER}.*"));
        fs::write(self.client.server.home().join("rules.toml"), rules).expect("rules");
    }
}

#[test]
fn an_mcp_server_of_a_plugin_runs_confined_while_the_plugin_is_enabled_and_trusted() {
    let mut plugin = PluginClient::start_adding(&Value::Null, SERVER_SECTION, SERVER_FILES);
    plugin.allow_all();
    let folder = fs::canonicalize(plugin.folder.path()).expect("a folder");
    let status = plugin.server_status();
    assert!(status["tools"]["inspect"].is_object(), "{status}");
    assert_eq!(status["pluginId"], "org.example", "{status}");
    assert_eq!(plugin.detail()["mcpServers"], json!([SERVER]));
    let list = plugin.raddle(&["plugin", "list"]);
    assert!(
        list.contains(&format!("\n  mcp server: {SERVER}\n")),
        "{list}"
    );

    // It could be reached without a sandbox.
    let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    let item = plugin.inspect(port);
    assert!(plugin.has_server_tool());
    assert_eq!(item["status"], "completed", "{item}");
    assert_eq!(
        (&item["server"], &item["tool"]),
        (&json!(SERVER), &json!("inspect"))
    );
    let text = item["result"]["content"][0]["text"]
        .as_str()
        .expect("a report");
    let report: Value = serde_json::from_str(text).expect("JSON");
    let expected = json!({
        "cwd": folder, "setting": "set", "secret": null, "write": "refused",
        "write_temporary": "refused", "network": "refused",
    });
    assert_eq!(report, expected);

    plugin.raddle(&["plugin", "disable", "org.example"]);
    assert_eq!(plugin.server_status(), Value::Null);
    assert_eq!(plugin.inspect(port)["result"], Value::Null);
    assert!(!plugin.has_server_tool());
    plugin.raddle(&["plugin", "enable", "org.example"]);
    assert!(plugin.server_status()["tools"]["inspect"].is_object());
    assert_eq!(plugin.inspect(port)["status"], "completed");

    // The process runs, and would load this file only later.
    fs::write(folder.join("later.py"), "").expect("a file");
    assert_eq!(plugin.inspect(port)["result"], Value::Null);
    assert!(!plugin.has_server_tool());
    assert_eq!(plugin.server_status(), Value::Null);
    let params = json!({
        "threadId": plugin.client.thread, "server": SERVER, "tool": "inspect",
        "arguments": { "port": port },
    });
    let response = plugin.request("mcpServer/tool/call", params.clone());
    assert!(response["error"].is_object(), "{response}");
    plugin.raddle(&["plugin", "trust", "org.example"]);
    let response = plugin.request("mcpServer/tool/call", params);
    assert!(
        response["result"]["content"][0]["text"].is_string(),
        "{response}"
    );
}

#[test]
fn an_mcp_server_of_a_plugin_asks_before_a_call_and_never_replaces_one_of_the_user() {
    let mut plugin = PluginClient::start_adding(&Value::Null, SERVER_SECTION, SERVER_FILES);
    assert!(plugin.server_status()["tools"]["inspect"].is_object());
    // The declarations about its tool have no effect.
    let text = format!("MOCK call name=mcp__{SERVER}__inspect arguments={{}}");
    let input = json!([{ "type": "text", "text": text }]);
    let params = json!({ "threadId": plugin.client.thread, "input": input });
    plugin.client.ask("turn/start", params);
    let is_question = |it: &Value| {
        let methods = ["item/tool/requestUserInput", "turn/completed"];
        methods.iter().any(|method| it["method"] == *method)
    };
    let messages = plugin.client.until(is_question);
    let question = messages.last().expect("a question").clone();
    assert_eq!(
        question["method"], "item/tool/requestUserInput",
        "{question}"
    );
    let turn = question["params"]["turnId"].clone();
    let interrupt = json!({ "threadId": plugin.client.thread, "turnId": turn });
    plugin.client.ask("turn/interrupt", interrupt);
    assert_eq!(plugin.end().0, "interrupted");

    let file = plugin.client.server.home().join("config.toml");
    let text = fs::read_to_string(&file).expect("a configuration");
    let section = format!("{text}\n[mcp_servers.{SERVER}]\ncommand = 'no-such-program'\n");
    fs::write(&file, section).expect("a configuration");
    let status = plugin.server_status();
    assert_eq!(status["tools"], json!({}), "{status}");
    let listed = plugin.listed();
    let why = listed[0]["plugins"][0]["interface"]["shortDescription"].to_string();
    let expected = format!("does not run: it defines the MCP server `{SERVER}`");
    assert!(why.contains(&expected), "{why}");
    let list = plugin.raddle(&["plugin", "list"]);
    assert!(list.contains(&expected), "{list}");
    fs::write(&file, text).expect("a configuration");
    assert!(plugin.server_status()["tools"]["inspect"].is_object());
}
