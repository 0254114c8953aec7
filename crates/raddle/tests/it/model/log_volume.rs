//! Output of a server besides the protocol: little in its log, nothing on stdout.
//!
//! `RADDLE_QUIET_DELTAS` sets how many deltas the long turn has.

use serde_json::{Value, json};

use super::{MockClient, MockModel};
use crate::support::server::TestServer;

const DELTAS: &str = "RADDLE_QUIET_DELTAS";

/// Deltas in one message.
const MESSAGE: usize = 5_000;

/// Characters in a delta.
const PIECE: usize = 8;

fn deltas() -> usize {
    match std::env::var(DELTAS) {
        Ok(count) => count.parse().expect("a number of deltas"),
        Err(_) => 50_000,
    }
}

/// At the default log level, the log grows by less than a byte for each delta.
#[test]
fn a_long_turn_is_logged_in_few_words() {
    let deltas = deltas();
    let mock = MockModel::start("");
    let arguments = mock.arguments(&[]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut client = MockClient::at(mock, TestServer::start_with(&arguments, &[]));
    let text = format!(" text n={MESSAGE} size={PIECE}").repeat(deltas.div_ceil(MESSAGE));
    let input = json!([{ "type": "text", "text": format!("MOCK{text}") }]);
    client.ask(
        "turn/start",
        json!({ "threadId": client.thread, "input": input }),
    );
    let mut letters = 0;
    let turn = loop {
        let message = client.pipes.receive();
        let params = &message["params"];
        match message["method"].as_str() {
            Some("item/agentMessage/delta") => {
                letters += params["delta"].as_str().map_or(0, str::len);
            }
            Some("turn/completed") => break params["turn"].clone(),
            _ => {}
        }
    };
    assert_eq!(turn["status"], "completed", "{turn}");
    assert!(letters >= deltas * PIECE, "{letters} letters");
    client.pipes.close();
    while client.pipes.next().is_some() {}
    let log = client.server.ended().log;
    let bytes: usize = log.iter().map(|line| line.len() + 1).sum();
    eprintln!("figure: {deltas} deltas left {bytes} bytes of log");
    assert!(
        bytes < deltas,
        "{bytes} bytes of log, from {:?}",
        log.first()
    );
}

/// Neither the server's log at any level, nor the processes it starts, write to stdout.
#[test]
fn only_the_protocol_is_on_stdout() {
    for level in ["off", "error", "warn", "info", "debug", "trace"] {
        let messages = run_noisy_commands(level);
        for message in &messages {
            assert!(is_protocol(message), "at {level}: {message}");
        }
        // All output was received, each in its message.
        let text = Value::from(messages).to_string();
        for word in ["tool", "user", "client"] {
            for stream in ["out", "err"] {
                let word = format!("{stream}-of-{word}");
                assert!(text.contains(&word), "no {word} at {level}: {text}");
            }
        }
    }
}

/// Returns all messages of a server that logs at this level while it runs each kind of command.
fn run_noisy_commands(level: &str) -> Vec<Value> {
    // The output does not appear in the command itself, which is reported too.
    let shout = |who: &str| format!("who={who}; echo out-of-$who; echo err-of-$who >&2");
    let policy = json!({
        "type": "workspaceWrite", "excludeSlashTmp": true, "excludeTmpdirEnvVar": true,
    });
    let script = format!(
        "[[answer]]\nmatch = 'do it'\n\
         steps = [{{ call = 'exec_command', arguments = {{ cmd = '{}', login = false }} }}]\n\
         [[answer]]\nsteps = [{{ text = 'Done.' }}]",
        shout("tool")
    );
    let mock = MockModel::start(&script);
    let arguments = mock.arguments(&[]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let server = TestServer::start_with(&arguments, &[("RADDLE_LOG", level)]);
    let mut client = MockClient::at(mock, server);
    let (mut messages, turn) = client.turn(&json!({
        "input": [{ "type": "text", "text": "do it" }],
        "sandboxPolicy": policy,
    }));
    assert_eq!(turn["status"], "completed", "{turn}");

    let thread = client.thread.clone();
    let command = shout("user");
    client.ask(
        "thread/shellCommand",
        json!({ "threadId": thread, "command": command }),
    );
    messages.extend(client.until(|it| it["method"] == "turn/completed"));

    client.ask(
        "command/exec",
        json!({
            "command": ["sh", "-c", shout("client")],
            "cwd": client.work(),
            "sandboxPolicy": policy,
        }),
    );
    let request_id = client.last_id;
    messages.extend(client.until(|it| it["id"] == request_id));

    client.pipes.close();
    messages.extend(std::iter::from_fn(|| client.pipes.next()));
    messages
}

/// Whether this is a message of the protocol, without other members.
fn is_protocol(message: &Value) -> bool {
    let Some(members) = message.as_object() else {
        return false;
    };
    let has = |name: &str| members.contains_key(name);
    let known = ["id", "method", "params", "result", "error", "emittedAtMs"];
    let is_answer = has("id") && (has("result") != has("error")) && !has("method");
    let is_notification = has("method") && has("params") && !has("result") && !has("error");
    (is_answer || is_notification) && members.keys().all(|it| known.contains(&it.as_str()))
}
