//! Runs the examples of `raddle-client`.

#[path = "../../../../raddle-client/examples/approve.rs"]
#[expect(dead_code, reason = "its main is for people")]
mod approve;
#[path = "../../../../raddle-client/examples/ask.rs"]
#[expect(dead_code, reason = "its main is for people")]
mod ask;
#[path = "../../../../raddle-client/examples/watch.rs"]
#[expect(dead_code, reason = "its main is for people")]
mod watch;

use raddle_client::ThreadEvent;
use raddle_client::protocol::{Notification, TurnStatus};

use super::{child, connect, mock, serve, start, unix};

#[tokio::test]
async fn the_ask_example_works() {
    let mock = mock();
    let home = tempfile::tempdir().expect("a home");
    let mut out = Vec::new();
    let text = "MOCK text say=\"a comb on a loom\" size=4";
    let address = child::program(home.path(), &mock);
    let status = ask::ask(address, text, &mut out).await.expect("an answer");
    assert_eq!(status, TurnStatus::Completed);
    assert_eq!(String::from_utf8_lossy(&out), "a comb on a loom\n");
}

#[tokio::test]
async fn the_approve_example_works() {
    for approves in [true, false] {
        let mock = mock();
        let home = tempfile::tempdir().expect("a home");
        let address = child::program(home.path(), &mock);
        let call = r#"{"cmd": "echo done > mark", "login": false, "sandbox_permissions": "require_escalated", "justification": "May I?"}"#;
        let text = format!("MOCK call name=exec_command arguments={call}");
        let gate = approve::ApprovalPrompt(move |question: String| {
            assert!(question.contains("May I?"), "{question}");
            approves
        });
        let (status, _) = approve::work(address, &text, gate).await.expect("an end");
        assert_eq!(status, TurnStatus::Completed);
        assert_eq!(home.path().join("mark").exists(), approves);
    }
}

#[tokio::test]
async fn the_watch_example_works() {
    let mock = mock();
    let (server, _) = serve(&mock);
    let client = connect(unix(&server.socket())).await;
    let mut follow = start(&client).await;
    let mut out = Vec::new();
    let address = unix(&server.socket());
    let thread = follow.id();
    let is_over = |it: &ThreadEvent| match it {
        ThreadEvent::Notification { notification, .. } => {
            matches!(**notification, Notification::TurnCompleted(_))
        }
        _ => false,
    };
    // Starts turn after turn, until the watcher has connected and seen one end.
    let turns = async {
        loop {
            follow.say("MOCK text say=hello").await.expect("a turn");
            follow.finish().await.expect("its end");
        }
    };
    tokio::select! {
        watched = watch::watch(address, thread, &mut out, is_over) => watched.expect("watched"),
        () = turns => {}
    }
    let out = String::from_utf8_lossy(&out);
    assert!(
        out.contains("item/completed") && out.contains("turn/completed"),
        "{out}"
    );
    client.close().await;
    server.stop();
}
