//! Turns on every wire, and threads that change from one to another.

use std::path::Path;

use serde_json::{Value, json};

use super::MockClient;

const WIRES: [&str; 4] = ["responses", "chat", "messages", "gemini"];

/// A turn in which the model reasons, writes a file, and reports it.
const SCRIPT: &str = r#"
    [[answer]]
    match = "write it"
    steps = [
        { reasoning = "A file, then." },
        { call = "write_file", arguments = { path = "loom.txt", content = "warp" } },
        { usage = { input = 50, cached = 20, output = 9 } },
    ]
    [[answer]]
    match = "loom.txt"
    steps = [{ text = "It is written." }]
"#;

fn start(wire: &str) -> MockClient {
    MockClient::start(SCRIPT, &[&format!("wire_api={wire}")])
}

fn run_write_turn(client: &mut MockClient) -> (Vec<Value>, Value) {
    client.turn(&json!({
        "input": [{ "type": "text", "text": "write it" }],
        "approvalPolicy": "never",
        "sandboxPolicy": { "type": "dangerFullAccess" },
    }))
}

#[test]
fn a_tool_is_called_on_every_wire() {
    for wire in WIRES {
        let mut client = start(wire);
        let (messages, turn) = run_write_turn(&mut client);
        assert_eq!(turn["status"], "completed", "{wire}: {turn}");
        let file = std::fs::read_to_string(client.work().join("loom.txt"));
        assert_eq!(file.ok().as_deref(), Some("warp"), "{wire}");
        let completed = messages
            .iter()
            .filter(|it| it["method"] == "item/completed");
        let items: Vec<&Value> = completed.map(|it| &it["params"]["item"]).collect();
        let kinds: Vec<&str> = items.iter().filter_map(|it| it["type"].as_str()).collect();
        let expected = ["userMessage", "reasoning", "fileChange", "agentMessage"];
        assert_eq!(kinds, expected, "{wire}: {messages:?}");
        let thinking = [&items[1]["summary"], &items[1]["content"]];
        let thought = json!(["A file, then."]);
        assert!(thinking.contains(&&thought), "{wire}: {thinking:?}");
        assert_eq!(items[3]["text"], "It is written.", "{wire}");
        let requests = client.mock.request_bodies();
        assert_eq!(requests.len(), 2, "{wire}");
        let second_request = requests[1].to_string();
        assert!(
            second_request.contains("sealed") || wire == "chat",
            "{wire}: {second_request}"
        );
    }
}

#[test]
fn a_key_is_sent_as_the_wire_has_it() {
    for (wire, header) in [
        ("chat", "authorization"),
        ("messages", "x-api-key"),
        ("gemini", "x-goog-api-key"),
    ] {
        // Any variable that is set will do: the mock shows only the names of such headers.
        let settings = [&format!("wire_api={wire}")[..], "env_key=RADDLE_HOME"];
        let mut client = MockClient::start("", &settings);
        let (_, turn) = client.say("hello");
        assert_eq!(turn["status"], "completed", "{wire}: {turn}");
        let headers = client.mock.headers();
        assert!(headers[0][header].is_string(), "{wire}: {headers:?}");
    }
}

#[test]
fn an_unknown_wire_is_reported() {
    let mut client = MockClient::start("", &["wire_api=telegraph"]);
    let (_, turn) = client.say("hello");
    let message = turn["error"]["message"].as_str().unwrap_or_default();
    let expected =
        "wire_api = \"telegraph\"; write one of \"responses\", \"chat\", \"messages\", \"gemini\"";
    assert!(message.contains(expected), "{turn}");
}

/// A client that resumes a thread without subscribers may choose another provider.
fn change_provider(client: &mut MockClient, provider: &str) {
    let thread = client.thread.clone();
    let resume = json!({ "threadId": thread, "modelProvider": provider });
    for (method, params) in [
        ("thread/unsubscribe", json!({ "threadId": thread })),
        ("thread/resume", resume),
    ] {
        client.ask(method, params);
        let request_id = super::request_id_value(client.last_id);
        let messages = client.until(|it| it["id"] == request_id);
        let answer = messages.last().expect("an answer");
        assert!(answer["result"].is_object(), "{method}: {answer}");
    }
}

#[test]
fn a_thread_goes_on_with_any_provider() {
    let mut client = MockClient::start(SCRIPT, &[]);
    let base_url = client.mock.base_url.clone();
    let config = WIRES.map(|wire| {
        format!("[model_providers.on-{wire}]\nbase_url = \"{base_url}\"\nwire_api = \"{wire}\"\n")
    });
    std::fs::write(client.server.home().join("config.toml"), config.concat()).expect("a file");
    for first in WIRES {
        for then in WIRES {
            for wire in [first, then] {
                change_provider(&mut client, &format!("on-{wire}"));
                let (_, turn) = run_write_turn(&mut client);
                assert_eq!(turn["status"], "completed", "{first} {then}: {turn}");
            }
        }
    }
    // Content that one wire sealed is sent to no other.
    let requests = client.mock.request_bodies();
    for (member, seal) in [
        ("input", "encrypted_content"),
        ("system", "\"signature\""),
        ("contents", "thoughtSignature"),
        ("stream_options", "reasoning_content"),
    ] {
        let (own, others): (Vec<_>, Vec<_>) =
            requests.iter().partition(|it| it.get(member).is_some());
        assert_eq!((own.len(), others.len()), (16, 48), "{member}");
        assert!(own.iter().any(|it| it.to_string().contains(seal)), "{seal}");
        let leaked = others.iter().find(|it| it.to_string().contains(seal));
        assert_eq!(leaked, None, "{seal}");
    }
}

#[test]
fn a_turn_names_another_provider() {
    let mut client = MockClient::start("", &[]);
    let base_url = client.mock.base_url.clone();
    let config = WIRES.map(|wire| {
        format!("[model_providers.on-{wire}]\nbase_url = \"{base_url}\"\nwire_api = \"{wire}\"\n")
    });
    std::fs::write(client.server.home().join("config.toml"), config.concat()).expect("a file");
    let input = json!([{ "type": "text", "text": "hello" }]);
    let (messages, turn) =
        client.turn(&json!({ "input": input, "model": "m2", "modelProvider": "on-chat" }));
    assert_eq!(turn["status"], "completed", "{turn}");
    let changed = messages
        .iter()
        .find(|it| it["method"] == "thread/settings/updated");
    let settings = &changed.expect("changed settings")["params"]["threadSettings"];
    assert_eq!(settings["modelProvider"], "on-chat", "{settings}");
    // From this turn on.
    client.say("again");
    client.turn(&json!({ "input": input, "modelProvider": "on-messages" }));
    let requests = client.mock.request_bodies();
    let on_messages = requests.iter().map(|it| it.get("system").is_some());
    assert_eq!(on_messages.collect::<Vec<_>>(), [false, false, true]);
    assert!(requests.iter().all(|it| it["model"] == "m2"));
}

/// The pages, and how many of their blocks name a provider.
const PAGES: [(&str, usize); 5] = [
    ("models.md", 2),
    ("models/responses.md", 1),
    ("models/chat.md", 2),
    ("models/messages.md", 1),
    ("models/gemini.md", 1),
];

#[test]
fn examples_of_the_docs_work() {
    for (page, blocks) in PAGES {
        check_example(page, blocks);
    }
}

fn check_example(page: &str, count: usize) {
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs");
    let page = std::fs::read_to_string(Path::new(docs).join(page)).expect("a page");
    let blocks = page.split("```toml\n").skip(1);
    let blocks = blocks.filter_map(|it| it.split("```").next());
    let blocks: Vec<&str> = blocks
        .filter(|it| it.contains("model_provider = "))
        .collect();
    assert_eq!(blocks.len(), count, "{blocks:?}");
    for block in blocks {
        let (_, name) = block.split_once("model_provider = \"").expect("a provider");
        let (name, _) = name.split_once('"').expect("its end");
        let mut client = MockClient::start("", &[]);
        // The mock stands in for the vendor, and a variable that is set for the key.
        let pasted = block.lines().map(|line| match line.split_once(" = ") {
            Some(("base_url", _)) => format!("base_url = \"{}\"\n", client.mock.base_url),
            Some(("env_key", _)) => "env_key = \"RADDLE_HOME\"\n".to_owned(),
            _ => format!("{line}\n"),
        });
        let pasted: String = pasted.collect();
        std::fs::write(client.server.home().join("config.toml"), pasted).expect("a file");
        let start = json!({ "cwd": client.work(), "modelProvider": name });
        client.ask("thread/start", start);
        let request_id = super::request_id_value(client.last_id);
        let started = client.until(|it| it["id"] == request_id);
        let started = started.last().expect("an answer");
        let id = started["result"]["thread"]["id"].as_str();
        client.thread = id.expect("a thread").to_owned();
        let (_, turn) = client.say("hello loom");
        assert_eq!(turn["status"], "completed", "{block}: {turn}");
        let text = turn["items"][0]["text"].as_str().unwrap_or_default();
        assert!(
            text.starts_with("You said: hello loom\n"),
            "{block}: {turn}"
        );
    }
}
