//! `command/exec`

mod resize;
mod terminate;
mod write;

use serde_json::{Value, json};

use crate::client::{StalledClient, TestClient};
use crate::player::Harness;

#[tokio::test]
async fn conversation() {
    crate::client::play("command/exec").await;
}

fn sh(script: &str, more: Value) -> Value {
    let mut params = json!({
        "command": ["sh", "-c", script],
        "cwd": "/",
        "sandboxPolicy": {"type": "dangerFullAccess"},
    });
    for (name, value) in more.as_object().unwrap() {
        params[name] = value.clone();
    }
    params
}

/// Whether a process with this pid exists and is no zombie.
fn is_alive(pid: &str) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{}/stat", pid.trim()));
    stat.is_ok_and(|stat| !stat.contains(") Z "))
}

async fn when_gone(pid: &str) {
    while is_alive(pid) {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn all_of_an_output_without_a_cap_is_in_the_answer() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    let script = "head -c 5000000 /dev/zero | tr '\\0' x";
    let params = sh(script, json!({"disableOutputCap": true}));
    let result = client.ask("command/exec", params).await.expect("a result");
    assert_eq!(result["stdout"].as_str().unwrap().len(), 5_000_000);
    let params = sh(script, json!({}));
    let result = client.ask("command/exec", params).await.expect("a result");
    assert_eq!(result["stdout"].as_str().unwrap().len(), 1 << 20);
}

#[tokio::test]
async fn output_beyond_the_limit_ends_the_command() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    let params = sh(
        "yes",
        json!({"disableOutputCap": true, "disableTimeout": true}),
    );
    let error = client.ask("command/exec", params).await.unwrap_err();
    assert_eq!(error["code"], -32600, "{error}");
    assert_eq!(
        error["data"],
        json!({"errorInfo": "output_too_large", "bytesMax": 16 << 20})
    );
}

#[tokio::test]
async fn a_connection_that_ends_ends_its_commands() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    let script = "trap '' TERM HUP; setsid sleep 1000 & echo $! $$; sleep 1000; :";
    let more = json!({"processId": "p", "streamStdoutStderr": true, "disableTimeout": true});
    client.request("command/exec", sh(script, more));
    let delta = client.next().await["params"]["deltaBase64"].take();
    let pids = String::from_utf8(
        base64::Engine::decode(
            &base64::engine::general_purpose::STANDARD,
            delta.as_str().unwrap(),
        )
        .unwrap(),
    )
    .unwrap();
    client.disconnect().await.when_ended().await;
    for pid in pids.split_whitespace() {
        when_gone(pid).await;
    }
}

#[tokio::test]
async fn a_client_that_does_not_read_blocks_its_command() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut stalled = StalledClient::connect(&mut server, 8 << 20).await;
    let more = json!({
        "processId": "p", "streamStdoutStderr": true, "disableTimeout": true, "disableOutputCap": true,
    });
    stalled.request("command/exec", sh("yes", more));
    // The first piece is queued, and the queue fills until there is no capacity for one more.
    let mut queued_before = 0;
    loop {
        stalled.when_queued().await;
        for _ in 0..1000 {
            tokio::task::yield_now().await;
        }
        let now = stalled.outgoing.queued_bytes();
        if now == queued_before {
            break;
        }
        queued_before = now;
    }
    assert!(
        queued_before < 512 << 10,
        "{queued_before} bytes are queued"
    );
    stalled.request("command/exec/terminate", json!({"processId": "p"}));
    // Output from before the end still arrives, and the two responses.
    let mut answers = Vec::new();
    while answers.len() < 2 {
        let frames = stalled.take_queued().await;
        answers.extend(frames.into_iter().filter(|it| it.get("id").is_some()));
    }
    assert_eq!(answers[0]["result"], json!({}));
    assert_eq!(
        answers[1]["result"],
        json!({"exitCode": 143, "stdout": "", "stderr": ""})
    );
}

#[tokio::test]
async fn no_connection_has_more_than_64_processes() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    for number in 0..64 {
        let more = json!({"processId": number.to_string(), "disableTimeout": true});
        client.request("command/exec", sh("exec sleep 1000", more));
    }
    let error = client.ask("command/exec", sh(":", json!({}))).await;
    assert_eq!(error.unwrap_err()["code"], -32001);
    // Another client has its own.
    let mut other = TestClient::connect(&mut server).await;
    let result = other.ask("command/exec", sh(":", json!({}))).await;
    assert_eq!(result.unwrap()["exitCode"], 0);
}

#[tokio::test]
async fn a_name_has_at_most_256_bytes() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    let named = |bytes: usize| sh(":", json!({"processId": "x".repeat(bytes)}));
    let result = client.ask("command/exec", named(256)).await;
    assert_eq!(result.unwrap()["exitCode"], 0);
    let error = client.ask("command/exec", named(257)).await.unwrap_err();
    assert_eq!(error["code"], -32600, "{error}");
}
