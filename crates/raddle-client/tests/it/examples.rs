//! What the examples show of what others wrote.

#[path = "../../examples/approve.rs"]
#[expect(dead_code, reason = "the rest is run where there is a whole server")]
mod approve;

use std::sync::{Arc, Mutex};

use raddle_client::RequestHandler;
use serde_json::json;

#[tokio::test]
async fn a_command_cannot_write_over_the_question() {
    let heard = Arc::new(Mutex::new(String::new()));
    let hears = heard.clone();
    let gate = approve::ApprovalPrompt(move |question: String| {
        *hears.lock().expect("nobody panicked") = question;
        false
    });
    let asked = json!({
        "threadId": "0197f0a0-0000-7000-8000-000000000000",
        "turnId": "turn",
        "itemId": "item",
        "startedAtMs": 0,
        "command": "rm -r \"a b\"\r\u{1b}[2Kls",
        "reason": "to\u{202e}look\n",
    });
    let asked = serde_json::from_value(asked).expect("a question");
    gate.command(asked).await.expect("an answer");
    let heard = heard.lock().expect("nobody panicked").clone();
    let wanted = r#"run rm -r "a b"\r\u{1b}[2Kls? to\u{202e}look\n"#;
    assert_eq!(heard, wanted);
}
