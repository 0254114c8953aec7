//! Safety of the approval example against hostile text.

#[path = "../../examples/approve.rs"]
#[expect(dead_code, reason = "the rest is run where there is a whole server")]
mod approve;

use std::sync::{Arc, Mutex};

use raddle_client::protocol::CommandExecutionApprovalDecision;
use raddle_client::{HandlerAnswer, RequestHandler};
use serde_json::json;

#[tokio::test]
async fn a_command_cannot_write_over_the_question() {
    let prompt = Arc::new(Mutex::new(String::new()));
    let prompt_writer = prompt.clone();
    let gate = approve::ApprovalPrompt(move |question: String| {
        *prompt_writer.lock().expect("no panic") = question;
        false
    });
    let params = json!({
        "threadId": "0197f0a0-0000-7000-8000-000000000000",
        "turnId": "turn",
        "itemId": "item",
        "startedAtMs": 0,
        "command": "rm -r \"a b\"\r\u{1b}[2Kls",
        "reason": "to\u{202e}look\n",
    });
    let params = serde_json::from_value(params).expect("a question");
    let answer = gate.command(params).await;
    let declined = HandlerAnswer::Given(CommandExecutionApprovalDecision::Decline);
    assert_eq!(answer, declined);
    let prompt = prompt.lock().expect("no panic").clone();
    let expected = r#"run rm -r "a b"\r\u{1b}[2Kls? to\u{202e}look\n"#;
    assert_eq!(prompt, expected);
}
