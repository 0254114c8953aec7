//! Requests of clients about plugins.

use super::*;

impl PluginClient {
    /// Sends a request, and returns its response.
    pub(super) fn request(&mut self, method: &str, params: Value) -> Value {
        self.client.ask(method, params);
        let id = self.client.last_id;
        let messages = self.client.until(|it| it["id"] == id);
        messages.last().expect("a response").clone()
    }

    /// Returns the installed plugins.
    pub(super) fn listed(&mut self) -> Value {
        let response = self.request("plugin/list", json!({}));
        response["result"]["marketplaces"].clone()
    }
}

#[test]
fn installed_plugins_are_listed_as_they_are_and_removed() {
    let mut plugin = PluginClient::start();
    let folder = fs::canonicalize(plugin.folder.path()).expect("a folder");
    let file = plugin.client.server.home().join("config.toml");
    let marketplaces = plugin.listed();
    let marketplace = &marketplaces[0];
    assert_eq!(marketplace["name"], "local", "{marketplaces}");
    assert_eq!(marketplace["path"], json!(file), "{marketplaces}");
    let listed = &marketplace["plugins"][0];
    for (member, value) in [
        ("id", json!("org.example")),
        ("name", json!("org.example")),
        ("version", json!("1")),
        ("enabled", json!(true)),
        ("installed", json!(true)),
        ("installPolicy", json!("AVAILABLE")),
        ("source", json!({ "type": "local", "path": folder })),
        ("keywords", json!([])),
    ] {
        assert_eq!(listed[member], value, "{member}: {listed}");
    }
    let interface = &listed["interface"];
    assert_eq!(
        interface["shortDescription"],
        "tools: greet, die, hang, echo"
    );
    assert_eq!(interface["capabilities"], json!(["workspace.read"]));
    let installed = plugin.request("plugin/installed", json!({}));
    assert_eq!(installed["result"]["marketplaces"], marketplaces);
    let vendors = plugin.request("plugin/list", json!({ "marketplaceKinds": ["vertical"] }));
    assert_eq!(vendors["result"]["marketplaces"], json!([]));

    let params = json!({ "pluginName": "org.example", "marketplacePath": file });
    let read = plugin.request("plugin/read", params);
    let detail = &read["result"]["plugin"];
    assert_eq!(detail["summary"], *listed, "{read}");
    let description = "tools: greet, die, hang, echo; may ask for: workspace.read";
    assert_eq!(detail["description"], description, "{read}");

    plugin.raddle(&["plugin", "disable", "org.example"]);
    let disabled = &plugin.listed()[0]["plugins"][0];
    assert_eq!(disabled["enabled"], false, "{disabled}");
    assert_eq!(disabled["version"], "1", "{disabled}");
    plugin.raddle(&["plugin", "enable", "org.example"]);
    fs::write(plugin.folder.path().join("later.py"), "").expect("a file");
    let changed = &plugin.listed()[0]["plugins"][0];
    assert_eq!(changed["enabled"], false, "{changed}");
    let text = changed["interface"]["shortDescription"].to_string();
    let expected = "does not run: its files have changed since they were trusted";
    assert!(text.contains(expected), "{text}");

    plugin.raddle(&["plugin", "trust", "org.example"]);
    let (_, item) = plugin.call("echo", &json!({ "n": 1 }));
    assert_eq!(item["status"], "completed", "{item}");
    let params = json!({ "pluginId": "org.example" });
    let removed = plugin.request("plugin/uninstall", params.clone());
    assert_eq!(removed["result"], json!({}), "{removed}");
    assert_eq!(plugin.listed(), json!([]));
    let text = fs::read_to_string(file).expect("a file");
    assert!(!text.contains("org.example"), "{text}");
    let again = plugin.request("plugin/uninstall", params);
    let error = again["error"]["message"].as_str().unwrap_or_default();
    assert!(error.starts_with("no plugin has the id"), "{again}");
    plugin.client.say("hello");
    assert_eq!(plugin.offered(), Vec::<String>::new());
}

#[test]
fn a_remote_client_removes_a_plugin_only_where_it_may_set_programs() {
    for is_allowed in [false, true] {
        let setting = ["-c", "remote_clients_set_programs=true"];
        let arguments = if is_allowed { &setting[..] } else { &[] };
        let server = TestServer::open_websocket(arguments);
        let file = server.home().join("config.toml");
        let section = "[plugins.'org.example']\npath = '/nowhere'\n";
        fs::write(&file, section).expect("a configuration");
        let mut client = server.client();
        let params = json!({ "pluginId": "org.example" });
        client.send(&request(1, "plugin/uninstall", params));
        let response = loop {
            let message = client.receive();
            if message["id"] == 1 {
                break message;
            }
        };
        assert_eq!(response["result"].is_object(), is_allowed, "{response}");
        let text = fs::read_to_string(file).expect("a file");
        assert_eq!(text.contains("org.example"), !is_allowed, "{text}");
        if !is_allowed {
            let why = response["error"]["message"].as_str().unwrap_or_default();
            assert!(why.contains("remote_clients_set_programs"), "{response}");
        }
        server.stop();
    }
}

/// The capabilities of a client that may call plugins.
fn extended() -> Value {
    json!({ "extensions": { "raddle/plugins": {} } })
}

fn call(method: &str, params: Value) -> Value {
    json!({ "pluginId": "org.example", "method": method, "params": params })
}

#[test]
fn a_client_calls_the_methods_that_a_plugin_declares() {
    let mut plugin = PluginClient::start_with(&extended());
    let echoed = plugin.request("plugin/call", call("echo", json!({ "n": 1 })));
    assert_eq!(echoed["result"]["result"], json!({ "n": 1 }), "{echoed}");
    let mut in_thread = call("echo", Value::Null);
    in_thread["threadId"] = plugin.client.thread.as_str().into();
    let echoed = plugin.request("plugin/call", in_thread.clone());
    assert_eq!(echoed["result"], json!({ "result": {} }), "{echoed}");
    for (params, expected) in [
        (call("plugin/health", json!({})), "declares no method"),
        (call("plugin/shutdown", json!({})), "declares no method"),
        (call("host/ping", json!({})), "declares no method"),
        (call("undeclared", json!({})), "declares no method"),
        (call("echo", json!([1])), "must be a JSON object"),
        // It would ask the user, and there is no turn to ask in.
        (call("greet", json!({ "name": "Ada" })), "failed"),
    ] {
        let response = plugin.request("plugin/call", params);
        let error = response["error"]["message"].as_str().unwrap_or_default();
        assert!(error.contains(expected), "{response}");
    }
    plugin.rule("deny");
    for params in [call("echo", json!({})), in_thread] {
        let response = plugin.request("plugin/call", params);
        let error = response["error"]["message"].as_str().unwrap_or_default();
        assert!(error.contains("forbids it"), "{response}");
    }
    plugin.raddle(&["plugin", "disable", "org.example"]);
    let response = plugin.request("plugin/call", call("echo", json!({})));
    assert!(response["error"].is_object(), "{response}");
}

/// Returns the events of plugins among messages.
fn events(messages: &[Value]) -> Vec<&Value> {
    let events = messages.iter().filter(|it| it["method"] == "plugin/event");
    events.map(|it| &it["params"]).collect()
}

/// Runs a turn that calls `echo` with these arguments, and returns its messages.
fn echo_turn(plugin: &mut PluginClient, arguments: &Value) -> Vec<Value> {
    plugin.begin("echo", arguments);
    plugin.client.until(|it| it["method"] == "turn/completed")
}

#[test]
fn an_event_of_a_plugin_reaches_the_clients_of_its_call_and_forges_no_item() {
    let mut plugin = PluginClient::start_with(&extended());
    let thread = json!(plugin.client.thread);
    let messages = echo_turn(&mut plugin, &json!({ "events": 2 }));
    let forged = |number: u64| {
        let params = json!({ "number": number });
        json!({ "kind": "notification", "method": "item/completed", "params": params })
    };
    let event = |number: u64, thread: &Value| {
        json!({
            "pluginId": "org.example", "threadId": thread,
            "method": "codex/event", "params": forged(number),
        })
    };
    assert_eq!(events(&messages), [&event(0, &thread), &event(1, &thread)]);
    let mut items = messages
        .iter()
        .filter(|it| it["method"] == "item/completed");
    assert!(items.all(|it| it["params"]["item"].is_object()));

    // The client that makes a call receives its events, before the response.
    let arguments = json!({ "events": 1 });
    for named in [json!(null), thread] {
        let mut params = call("echo", arguments.clone());
        params["threadId"] = named.clone();
        plugin.client.ask("plugin/call", params);
        let id = plugin.client.last_id;
        let messages = plugin.client.until(|it| it["id"] == id);
        assert_eq!(events(&messages), [&event(0, &named)]);
    }

    let mut plugin = PluginClient::start();
    let messages = echo_turn(&mut plugin, &json!({ "events": 2 }));
    assert_eq!(events(&messages), Vec::<&Value>::new());
}

#[test]
fn an_event_that_names_its_call_reaches_the_thread_of_that_call() {
    let mut plugin = PluginClient::start_with(&extended());
    let first = json!(plugin.client.thread);
    plugin.begin("hang", &json!({}));
    let is_event = |it: &Value| it["method"] == "plugin/event";
    let messages = plugin.client.until(is_event);
    let event = &messages.last().expect("an event")["params"];
    assert_eq!((&event["threadId"], &event["params"]), (&first, &json!({})));

    // The call of the first thread is open.
    plugin.new_thread();
    let second = json!(plugin.client.thread);
    assert_ne!(first, second);
    let named = json!({ "events": 2, "named": true });
    let messages = echo_turn(&mut plugin, &named);
    let number = |it: &Value| it["params"]["params"]["number"].as_u64();
    let numbers: Vec<_> = events(&messages).into_iter().map(number).collect();
    assert_eq!(numbers, [Some(0), Some(1)]);
    for event in events(&messages) {
        assert_eq!(event["threadId"], second, "{event}");
        assert_eq!(event["params"]["call_id"], Value::Null, "{event}");
    }
    let messages = echo_turn(&mut plugin, &json!({ "events": 2 }));
    assert_eq!(events(&messages), Vec::<&Value>::new());
}

#[test]
fn events_beyond_the_limit_are_counted() {
    let mut plugin = PluginClient::start_with(&extended());
    let (mut sent, mut received, mut dropped) = (0, 0, 0);
    for count in std::iter::once(500).chain(std::iter::repeat(1)) {
        let arguments = json!({ "events": count });
        plugin.client.ask("plugin/call", call("echo", arguments));
        let id = plugin.client.last_id;
        let messages = plugin.client.until(|it| it["id"] == id);
        let events = events(&messages);
        let dropped_before = events.iter().filter_map(|it| it["dropped"].as_u64());
        dropped += dropped_before.sum::<u64>();
        received += events.len() as u64;
        sent += count;
        // Events are dropped until the next period begins.
        if count == 1 && !events.is_empty() {
            break;
        }
    }
    assert!(dropped > 0 && received < 500, "{received} {dropped}");
    assert_eq!(received + dropped, sent);
}
