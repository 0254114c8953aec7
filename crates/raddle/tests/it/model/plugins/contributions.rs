//! What a plugin contributes beside its process: skills.

use super::*;

const SKILL_FILE: &str = "skills/release/SKILL.md";

const SKILL: &str =
    "---\nname: release\ndescription: Cuts a release.\n---\n\n1. Ask the blue owl.\n";

/// Name of the skill for users and the model.
const SKILL_NAME: &str = "org.example:release";

impl PluginClient {
    /// Starts a thread, in which the following turns run.
    fn new_thread(&mut self) {
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
