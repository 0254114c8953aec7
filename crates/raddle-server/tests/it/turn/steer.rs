//! `turn/steer`.

use serde_json::json;

use crate::client::{TestClient, play};
use crate::player::Harness;

#[tokio::test]
async fn conversation() {
    play("turn/steer").await;
}

/// The input of a turn is bounded, and the error names the limit.
#[tokio::test]
async fn input_that_is_too_long_is_refused() {
    let harness = Harness::new();
    let mut server = harness.open();
    let mut client = TestClient::connect(&mut server).await;
    let thread = client.start_thread().await;
    let half = "é".repeat(1 << 19);
    let input = json!([{"type": "text", "text": half}, {"type": "text", "text": half + "x"}]);
    let data = json!({
        "input_error_code": "input_too_large",
        "max_chars": 1_048_576,
        "actual_chars": 1_048_577,
    });
    for (method, params) in [
        ("turn/start", json!({"threadId": thread, "input": input})),
        (
            "turn/steer",
            json!({"threadId": thread, "expectedTurnId": "a", "input": input}),
        ),
    ] {
        let refused = client.ask(method, params).await.expect_err("too long");
        assert_eq!(refused["code"], -32602);
        assert_eq!(refused["data"], data);
    }
}
