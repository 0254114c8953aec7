//! Progress of a turn that waits.

use serde_json::{Value, json};

use super::MockModel;
use crate::support::request;
use crate::support::server::TestServer;
use crate::support::stdio::Pipes;

fn until(pipes: &mut Pipes, is_it: impl Fn(&Value) -> bool) -> Value {
    loop {
        let message = pipes.receive();
        if is_it(&message) {
            return message;
        }
    }
}

#[test]
fn progress_is_sent_while_the_model_is_silent() {
    let mock = MockModel::start("");
    let arguments = mock.arguments(&[]);
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let mut server = TestServer::start(&arguments);
    let mut pipes = server.pipes();
    let client = json!({
        "clientInfo": { "name": "it", "version": "0" },
        "capabilities": { "extensions": { "raddle/seq": {}, "raddle/progress": {} } },
    });
    pipes.ask(&request(1, "initialize", client));
    pipes.send(&request(2, "thread/start", json!({})));
    let response = until(&mut pipes, |it| it["id"] == 2);
    let thread = &response["result"]["thread"]["id"];
    let input = json!([{ "type": "text", "text": "MOCK stall" }]);
    let turn = json!({ "threadId": thread, "input": input });
    pipes.send(&request(3, "turn/start", turn));
    let started = until(&mut pipes, |it| it["method"] == "turn/started");
    let mut before = started["emittedAtMs"].as_i64().expect("a time");
    for _ in 0..2 {
        let progress = until(&mut pipes, |it| it["method"] == "turn/progress");
        let params = &progress["params"];
        assert_eq!(params["threadId"], *thread);
        assert_eq!(params["turnId"], started["params"]["turn"]["id"]);
        assert_eq!(
            params["waitingFor"],
            json!({ "type": "model", "name": "mock" })
        );
        assert_eq!(progress.get("seq"), None, "{progress}");
        let at = progress["emittedAtMs"].as_i64().expect("a time");
        assert!(at - before <= 5_000, "{} ms", at - before);
        before = at;
    }
}
